"""How an audit comes about: what is refused, what judges say of labels, and what rows, sources and items are called."""

import inspect
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import KFold
from untwist.audit.rows import AuditedRows

from helpers.quick import QuickClassifier
from helpers.small_audits import change, draw_rows, make_matrices, make_pairs, make_sources
from untwist import PILBoostClassifier
from untwist.audit import auditing
from untwist.audit.auditing import audit_labels
from untwist.audit.context import Judge
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
    posterior = model.model_.out_of_fold_posterior_of_labels()
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
    assert audit.judge.name == "PILBoostClassifier, out of fold"
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


def test_a_model_is_fitted_with_what_was_told(rows, monkeypatch):
    X, y = rows
    made, shown = [], []

    class Double(PILBoostClassifier):
        def __init__(self, **settings):
            made.append(settings)

        def fit(self, *table, **told):
            made.append((table, told))
            return self

    monkeypatch.setattr(auditing, "PILBoostClassifier", Double)
    monkeypatch.setattr(auditing, "show_progress", lambda on: shown.append(on) or nullcontext())
    monkeypatch.setattr(auditing, "_audit_by_own_model", lambda *given: given)
    audit_labels(X, y)
    assert made[0] == {"cv": None, "n_jobs": None, "random_state": 0, "verbose": 0}
    assert made[1][0] == (X, y)
    assert set(made[1][1].values()) == {None}
    told = {"source": "s", "item": "i", "groups": "g"}
    found = audit_labels(X, y, cv=3, n_jobs=2, random_state=5, verbose=1, sample_weight="w", reviewed="r", **told)
    assert made[2] == {"cv": 3, "n_jobs": 2, "random_state": 5, "verbose": 1}
    assert made[3][1] == {"sample_weight": "w", "reviewed": "r", **told}
    assert (found[3].source, found[3].item, found[3].groups) == ("s", "i", "g")
    assert shown == [False, True]
    defaults = {name: one.default for name, one in inspect.signature(audit_labels).parameters.items()}
    assert (defaults["random_state"], defaults["verbose"]) == (0, 0)


def test_labels_are_judged_by_the_noise_that_was_fitted_or_is_estimated():
    posterior, labels, weight, _ = draw_rows(2)
    noise = make_pairs()
    fitted = SimpleNamespace(noise=noise, estimate_noise=lambda: "estimated", sources=None)
    judged = auditing._judge(fitted, None, posterior, labels, weight, 2.0, None)
    assert judged.noise is noise
    assert judged.share == judge_alike(noise, posterior, labels, weight, rows_per_case=2.0).share
    other = make_pairs(found=False)
    unknown = SimpleNamespace(noise=None, estimate_noise=lambda: other)
    assert auditing._judge(unknown, None, posterior, labels, weight, 1.0, None).noise is other
    votes = LabelSources(np.arange(3), np.arange(60) % 3, np.arange(60))
    by_source = SimpleNamespace(noise=noise, sources=make_sources(noise, 2))
    judged = auditing._judge(by_source, votes, posterior, labels, weight, 2.0, None)
    expected = judge_by_source(by_source.sources, votes, posterior, labels, weight, rows_per_case=2.0)
    assert judged.share == expected.share


# ---- by posteriors of others ----


def make_rows(posterior, labels, weight, **changes):
    plain = AuditedRows(np.array(list("abcdef")[: posterior.shape[1]]), labels, weight, None, None, None)
    return change(plain, **changes)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_posteriors_below_chance_are_asked_about(n_classes):
    rng = np.random.default_rng(0)
    labels, weight = rng.integers(0, n_classes, 400), np.ones(400)
    limit = 1 / n_classes - 3 * np.sqrt(0.25 / 400)
    order = "a, b, c, d, e, ..." if n_classes == 6 else ", ".join("abc"[:n_classes])
    for own, is_asked in ((limit - 1e-6, True), (limit + 1e-6, False)):
        raw = np.full((400, n_classes), (1 - own) / (n_classes - 1))
        raw[np.arange(400), labels] = own
        given = make_rows(raw, labels, weight)
        if not is_asked:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                auditing._warn_of_contradiction(raw, given)
            continue
        with pytest.warns(UserWarning, match="less than chance would") as caught:
            auditing._warn_of_contradiction(raw, given)
        assert f"order of the sorted classes ({order})?" in str(caught[0].message)
        assert f"give the labels {own:.0%} on average" in str(caught[0].message)
        raw[:200] = np.eye(n_classes)[labels[:200]]
        absent = make_rows(raw, labels, np.where(np.arange(400) < 200, 0.0, 1.0))
        with pytest.warns(UserWarning, match="less than chance would"):
            auditing._warn_of_contradiction(raw, absent)


def test_signs_of_seen_labels_are_looked_for_with_and_without_rows(monkeypatch):
    posterior, labels, weight, _ = draw_rows(2)
    given = make_rows(posterior, labels, weight)
    asked = []
    monkeypatch.setattr(auditing, "find_sign_of_seen_labels", lambda *rows: asked.append(rows) or "too good")
    monkeypatch.setattr(auditing, "compare_with_quick_model", lambda *rows, **told: asked.append((*rows, told)) or "")
    with pytest.warns(UserWarning, match="pred_probs look as if they had seen the labels: too good. Wrong labels"):
        assert auditing._find_seen_labels(posterior, None, given, 2, 5) == "too good"
    assert asked[0] == (posterior, labels, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert auditing._find_seen_labels(posterior, "X", change(given, encoder="some"), 2, 5) == ""
    assert asked[1] == (posterior, "X", labels, weight, {"n_jobs": 2, "random_state": 5})


def estimate(posterior, labels, weight, cases):
    """What noise was asked for, in place of an estimate."""
    return SimpleNamespace(labels=labels, weight=np.asarray(weight), cases=cases)


def test_noise_is_learned_from_a_review_as_far_as_that_is_known(monkeypatch):
    posterior, labels, _, _ = draw_rows(2, n=6)
    weight = np.array([1.0, 2.0, 1.0, 0.0, 1.0, 1.0])
    is_reviewed = np.array([True, False, False, True, False, True])
    after = np.array([1, 1, 0, 0, 1, 0], dtype=np.uint32)
    monkeypatch.setattr(auditing, "_estimate_noise", estimate)
    monkeypatch.setattr(auditing, "learn_from_review", lambda *given: given)
    unknown = ReviewedRows(is_reviewed, after, after, knows_given=False)
    found = auditing._learn_noise(posterior, labels, weight, unknown, 2.0)
    assert found.weight.tolist() == [0.0, 2.0, 1.0, 0.0, 1.0, 0.0]
    assert found.cases == 2.0
    everything = change(unknown, is_reviewed=np.array([True, True, True, False, True, True]))
    assert auditing._learn_noise(posterior, labels, weight, everything, 2.0).weight.tolist() == weight.tolist()
    absent = weight * (np.arange(6) != 2)  # Some of the rows that are left have no weight.
    found = auditing._learn_noise(posterior, labels, absent, unknown, 2.0)
    assert found.weight.tolist() == [0.0, 2.0, 0.0, 0.0, 1.0, 0.0]
    known = change(unknown, knows_given=True)
    noise, seen, before, decided = auditing._learn_noise(posterior, labels, weight, known, 2.0)
    assert noise.weight.tolist() == weight.tolist()
    np.testing.assert_array_equal(seen, posterior[[0, 5]])
    assert (before.tolist(), decided.tolist()) == (labels[[0, 5]].tolist(), [1, 0])


def test_noise_is_estimated_by_rates_or_by_transitions(monkeypatch):
    asked = []
    monkeypatch.setattr(auditing, "estimate_noise", lambda *given, **told: asked.append((*given, told)))
    monkeypatch.setattr(auditing, "estimate_transitions", lambda *given, **told: asked.append((*given, told)))
    two, labels, weight, _ = draw_rows(2)
    three, *_ = draw_rows(3)
    auditing._estimate_noise(two, labels, weight, 3.0)
    auditing._estimate_noise(three, labels, weight, 4.0)
    assert asked[0][0].tolist() == two[:, 1].tolist()
    assert asked[0][2] == {"sample_weight": weight, "rows_per_case": 3.0}
    assert asked[1][:3] == (three, labels, weight)
    assert asked[1][3] == {"rows_per_case": 4.0}


def test_rows_of_weight_0_are_absent_where_sources_are_estimated(monkeypatch):
    posterior, labels, weight, rng = draw_rows(2)
    votes = LabelSources(np.array(list("xyz")), rng.integers(-1, 3, 60), rng.permutation(60))
    monkeypatch.setattr(auditing, "estimate_by_source", lambda *given, **told: (given, told))
    given, told = auditing._estimate_by_source("noise", votes, posterior, labels, weight, 2.0)
    present = [row for row in range(60) if weight[row] > 0]
    for one, whole in zip(given, (posterior, labels, votes.index), strict=True):
        np.testing.assert_array_equal(one, whole[present])
    np.testing.assert_array_equal(told["weight"], weight[present])
    np.testing.assert_array_equal(told["pooled_weight"], weight[present])
    assert (told["noise"], told["rows_per_case"], told["names"] is votes.names) == ("noise", 2.0, True)
    ranks = {item: rank for rank, item in enumerate(sorted(votes.items[present]))}
    assert told["items"].tolist() == [ranks[item] for item in votes.items[present]]


def judge_posteriors(monkeypatch, rows, posterior, review=None, item=None, y=None):
    """The audit by posteriors that are calibrated already, and noise that is given."""
    noise = make_pairs() if posterior.shape[1] == 2 else make_matrices(posterior.shape[1])
    asked = []
    monkeypatch.setattr(auditing, "calibrate", lambda raw, labels, weight: asked.append(weight) or raw)
    monkeypatch.setattr(auditing, "_estimate_noise", lambda *given: asked.append(given) or noise)
    monkeypatch.setattr(auditing, "_learn_noise", lambda *given: asked.append(given) or noise)
    monkeypatch.setattr(auditing, "_estimate_by_source", lambda *given: make_sources(noise, posterior.shape[1]))
    y = rows.classes[rows.labels] if y is None else y
    return auditing._audit_by_posterior(posterior, "X", y, rows, item, review, "somebody", "seen"), noise, asked


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
    assert (
        audit.context.source,
        audit.context.by_source,
        audit.reviewed,
        audit.context.judged,
        audit.context.groups,
    ) == (None,) * 5
    np.testing.assert_array_equal(asked[0], weight)
    doubted, *_ = judge_posteriors(monkeypatch, change(given, twins=twins), posterior)
    assert doubted.noise_rate[2] == pytest.approx(0.5 + 0.5 * judged.share[2])
    votes = LabelSources(np.array(["ann", "bob", "eve"]), np.arange(60) % 4 - 1, np.arange(60) // 2)
    by_source, *_ = judge_posteriors(monkeypatch, change(given, votes=votes), posterior)
    for item in range(30):
        mean = posterior[2 * item : 2 * item + 2].mean(axis=0)
        np.testing.assert_allclose(by_source.posterior[2 * item : 2 * item + 2], [mean, mean])
    assert by_source.context.source.tolist() == [[None, "ann", "bob", "eve"][row % 4] for row in range(60)]
    assert by_source.context.item.tolist() == [row // 2 * 2 for row in range(60)]
    expected = judge_by_source(make_sources(noise, n_classes), votes, by_source.posterior, labels, weight)
    np.testing.assert_allclose(by_source.wrong, expected.wrong)
    fooled, *_ = judge_posteriors(monkeypatch, change(given, votes=votes, twins=twins), posterior)
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
        assert settled.n_skipped == 3


def test_rows_that_no_fold_judges_have_no_weight():
    posterior, labels, _, _ = draw_rows(2)
    judged = np.arange(60) % 3 > 0
    posterior[~judged] = np.nan
    audit, noise = judge(make_unseen(posterior, labels, np.full(60, 2.0), held_out=[judged]))
    assert audit.weight.tolist() == np.where(judged, 2.0, 0.0).tolist()
    assert np.isnan(audit.wrong).tolist() == (~judged).tolist()
    np.testing.assert_array_equal(audit.context.judged, judged)
    assert asked[0].tolist() == [2.0] * 40
    np.testing.assert_array_equal(asked[1][0], posterior[judged])
    assert audit.noise_rate == judge_alike(noise, posterior[judged], labels[judged], np.full(40, 2.0)).share


def test_rows_of_a_group_count_as_few():
    posterior, labels, weight, _ = draw_rows(2)
    unseen = make_unseen(posterior, labels, weight, groups=read_groups(labels, 60))
    audit, noise = judge(unseen)
    assert audit.rows_per_case == count_rows_per_case(unseen) > 1.0
    assert audit.groups.tolist() == labels.tolist()
    assert audit.noise_rate == judge_alike(noise, posterior, labels, weight, rows_per_case=audit.rows_per_case).share


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
