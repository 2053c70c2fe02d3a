"""How an audit comes about: what is refused, what judges say of labels, and what rows, sources and items are called."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from helpers.quick import QuickClassifier
from helpers.small_audits import draw_rows, make_matrices, make_pairs, make_sources
from helpers.unseen import make_unseen
from untwist.audit import auditing
from untwist.audit.auditing import audit_labels
from untwist.audit.context import Judge
from untwist.audit.judges import Judges
from untwist.audit.judging import judge_alike, judge_by_source
from untwist.data.groups import read_groups
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources
from untwist.noise.out_of_fold import count_rows_per_case


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    return X, np.where((X[:, 0] > 0) ^ (rng.random(90) < 0.1), "yes", "no")


def fit_quickly(X, y, **told):
    cv = told.pop("cv", None)
    return QuickClassifier(n_estimators=3, max_depth=1, cv=cv, random_state=0).fit(X, y, **told)


# ---- by a model of ours ----


@pytest.mark.usefixtures("few_components")
def test_a_source_is_sought_where_it_is_asked_for_and_rows_are_alone(rows):
    X, y = rows
    plain = fit_quickly(X, y)
    assert audit_labels(X, y, plain).context.hidden_source is None
    for name, told in {
        "source": {"source": np.arange(90) % 3},
        "groups": {"groups": np.arange(90) // 2},
        "folds of your own": {"cv": KFold(3)},
    }.items():
        with pytest.raises(ValueError, match=f"rows stand alone, and these came with {name}"):
            audit_labels(X, y, fit_quickly(X, y, **told)).hidden_sources()
    for name, value in {"sample_weight": np.ones(90), "reviewed": [0], "cv": 3}.items():
        with pytest.raises(ValueError, match=f"{name} belongs to the fit of the model that is given"):
            audit_labels(X, y, plain, **{name: value})


def test_an_audit_by_our_model_holds_what_that_found(rows):
    X, y = rows
    model = fit_quickly(X, y)
    audit = audit_labels(X, y, model)
    posterior = model.model_.out_of_fold.posterior
    labels = (y == "yes").astype(int)
    judged = judge_alike(audit.noise, posterior, labels, np.ones(90))
    np.testing.assert_array_equal(audit.posterior, posterior)
    np.testing.assert_array_equal(audit.wrong, judged.wrong)
    assert audit.predicted.tolist() == audit.classes[judged.predicted].tolist()
    assert audit.noise_rate == judged.share
    assert audit.rate_by_label == {"no": judged.share_by_label[0], "yes": judged.share_by_label[1]}
    assert audit.weight.tolist() == [1.0] * 90
    assert (
        audit.context.source,
        audit.context.item,
        audit.context.by_source,
        audit.context.groups,
        audit.context.judged,
        audit.context.twins,
    ) == (None,) * 6
    assert (audit.reviewed, audit.context.before_review, audit.context.rows_per_case) == (None, None, 1.0)
    assert audit.model is model
    assert audit.judge.name == "UntwistClassifier, out of fold"
    assert audit.table.encoder is model.model_.encoder


def test_reviewed_rows_are_settled(rows):
    X, y = rows
    audit = audit_labels(X, y, fit_quickly(X, y, reviewed=[2, 5]))
    assert np.flatnonzero(audit.reviewed).tolist() == [2, 5]
    assert audit.wrong[[2, 5]].tolist() == [0.0, 0.0]
    assert audit.predicted[[2, 5]].tolist() == y[[2, 5]].tolist()
    assert audit.given.tolist() == y.tolist()
    assert audit.context.before_review is None
    assert sorted(audit.ranking) == [row for row in range(90) if row not in (2, 5)]


def test_a_fit_is_told_what_the_audit_is_told_and_shows_progress_where_asked(rows, monkeypatch):
    X, y = rows
    fits, shown = [], []
    monkeypatch.setattr(auditing, "SourceColumns", lambda *given: given)
    monkeypatch.setattr(auditing, "fit_own_model", lambda *given, **told: fits.append((given, told)) or "fitted")
    monkeypatch.setattr(auditing, "ask_fitted_model", lambda *given: given)
    monkeypatch.setattr(auditing, "_judge", lambda *given, chance: given)
    monkeypatch.setattr(auditing, "show_progress", lambda on: shown.append(on) or nullcontext())
    audit_labels(X, y)
    assert fits[0] == (
        (None, X, y, None, (None, None, None), None, 0),
        {"order": None, "cv": None, "n_jobs": None, "random_state": 0},
    )
    told = {"source": "s", "item": "i", "groups": "g"}
    found = audit_labels(X, y, cv=3, n_jobs=2, random_state=5, verbose=1, sample_weight="w", reviewed="r", **told)
    assert fits[1] == (
        (None, X, y, "w", ("s", "i", "g"), "r", 1),
        {"order": None, "cv": 3, "n_jobs": 2, "random_state": 5},
    )
    assert found == (("fitted", X, y, ("s", "i", "g")), X, y, "i")
    assert shown == [False, True]


# ---- by any models ----


def judge(unseen, y=None, **told):
    """The audit by judges who know how noisy labels are."""
    n_classes = unseen.posterior.shape[1]
    noise = make_pairs() if n_classes == 2 else make_matrices(n_classes)
    judges = Judges(unseen, noise, name="somebody", in_sample_reason="seen", encoder="encoder", **told)
    return auditing._judge(judges, "X", unseen.classes[unseen.labels] if y is None else y, None, chance=False), noise


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_are_judged_alike_by_source_or_after_a_review(n_classes):
    posterior, labels, weight, _ = draw_rows(n_classes)
    twins = SimpleNamespace(share=0.5)
    unseen = make_unseen(posterior, labels, weight)
    audit, noise = judge(unseen)
    judged = judge_alike(noise, posterior, labels, weight)
    np.testing.assert_array_equal(audit.wrong, judged.wrong)
    assert (audit.noise_rate, audit.rate_by_label) == (
        judged.share,
        dict(zip(audit.classes.tolist(), judged.share_by_label, strict=True)),
    )
    assert (audit.given.tolist(), audit.predicted.tolist()) == (
        audit.classes[labels].tolist(),
        audit.classes[judged.predicted].tolist(),
    )
    assert (audit.judge, audit.model, audit.table.X) == (Judge("somebody", "seen"), None, "X")
    context = audit.context
    assert (context.source, context.by_source, audit.reviewed, context.judged, context.groups) == (None,) * 5
    assert audit.table.encoder == "encoder"
    doubted, _ = judge(unseen.add_context(twins=twins))
    assert doubted.noise_rate[2] == pytest.approx(0.5 + 0.5 * judged.share[2])
    votes = LabelSources(np.array(["ann", "bob", "eve"]), np.arange(60) % 4 - 1, np.arange(60) // 2)
    averaged = unseen.add_context(sources=votes).average_by_item()
    sources = make_sources(noise, n_classes)
    by_source, _ = judge(averaged, by_source=sources)
    assert by_source.context.source.tolist() == [[None, "ann", "bob", "eve"][row % 4] for row in range(60)]
    assert by_source.context.item.tolist() == [row // 2 * 2 for row in range(60)]
    expected = judge_by_source(sources, votes, averaged.posterior, labels, weight)
    np.testing.assert_allclose(by_source.wrong, expected.wrong)
    fooled, _ = judge(averaged.add_context(twins=twins), by_source=sources)
    assert (fooled.context.by_source.intervals[:, 1] == 1.0).all()
    assert (fooled.context.by_source.tells_how_many, by_source.context.by_source.tells_how_many) == (False, True)
    after = np.where(np.arange(60) < 9, 0, labels).astype(np.uint32)
    review = ReviewedRows(np.arange(60) < 9, labels.astype(np.uint32), after, True, 3)
    counted = np.where(review.is_reviewed, 0.0, weight)
    left = judge_alike(noise, posterior, labels, counted).share
    # The data hold the labels as they were, or as they were decided on.
    for held in (labels, after):
        settled, _ = judge(unseen.add_context(reviewed=review), y=unseen.classes[held])
        is_wrong = held[:9] != after[:9]
        still = (weight[:9] * is_wrong).sum()
        assert settled.noise_rate == pytest.approx(tuple((still + counted.sum() * one) / weight.sum() for one in left))
        assert settled.given.tolist() == settled.classes[held].tolist()
        assert settled.predicted[:9].tolist() == settled.classes[after[:9]].tolist()
        assert settled.context.before_review.tolist() == settled.classes[labels].tolist()
        assert settled.wrong[:9].tolist() == is_wrong.tolist()
        assert settled.context.n_skipped == 3


def test_rows_that_no_fold_judges_have_no_weight():
    posterior, labels, _, _ = draw_rows(2)
    judged = np.arange(60) % 3 > 0
    posterior[~judged] = np.nan
    audit, noise = judge(make_unseen(posterior, labels, np.full(60, 2.0), held_out=[judged]))
    assert audit.weight.tolist() == np.where(judged, 2.0, 0.0).tolist()
    assert np.isnan(audit.wrong).tolist() == (~judged).tolist()
    np.testing.assert_array_equal(audit.context.judged, judged)
    assert audit.noise_rate == judge_alike(noise, posterior[judged], labels[judged], np.full(40, 2.0)).share


def test_rows_of_a_group_count_as_few():
    posterior, labels, weight, _ = draw_rows(2)
    unseen = make_unseen(posterior, labels, weight, groups=read_groups(labels, 60))
    audit, noise = judge(unseen)
    assert audit.context.rows_per_case == count_rows_per_case(unseen) > 1.0
    assert audit.context.groups.tolist() == labels.tolist()
    cases = audit.context.rows_per_case
    assert audit.noise_rate == judge_alike(noise, posterior, labels, weight, rows_per_case=cases).share


def test_items_have_their_names_or_those_of_their_first_rows():
    votes = LabelSources(np.array(["ann", "bob"]), np.array([0, 1, -1, 0, 1]), np.array([1, 1, 0, 2, 2]))
    weight = np.ones(5)
    assert auditing._name_sources(votes).tolist() == ["ann", "bob", None, "ann", "bob"]
    assert auditing._name_items(votes, None, weight).tolist() == [0, 0, 2, 3, 3]
    assert auditing._name_items(votes, [7, 7, 3, 9, 9], weight).tolist() == [7, 7, 3, 9, 9]
    assert auditing._name_items(votes, [None] * 5, weight).tolist() == [0, 0, 2, 3, 3]
    assert auditing._name_items(votes, ["x", "x", None, "z", "z"], weight).tolist() == ["x", "x", "row 2", "z", "z"]
    absent = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    assert auditing._name_items(votes, list("xxyzz"), absent).tolist() == ["x", "x", "row 2", "z", "z"]
    taken = ["row 2", "row 2", None, "row - 2", "row - 2"]
    assert auditing._name_items(votes, taken, weight).tolist() == [*taken[:2], "row - - 2", *taken[3:]]
