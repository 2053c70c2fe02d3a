"""Who judges labels: what is fitted, what must be the same as at the fit, and what posteriors are asked about."""

import inspect
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from helpers.quick import QuickClassifier
from helpers.small_audits import draw_rows, make_pairs
from helpers.unseen import make_unseen
from untwist import UntwistClassifier
from untwist.any_model.rows import JudgedRows
from untwist.audit import judges
from untwist.audit.auditing import audit_labels
from untwist.crossing import name_estimator
from untwist.data.groups import read_groups
from untwist.data.sources import LabelSources
from untwist.fit_arguments import SourceColumns
from untwist.noise.calibration import calibrate
from untwist.out_of_fold import RowContext

NOTHING = SourceColumns(None, None, None)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.where((X[:, 0] > 0) ^ (rng.random(90) < 0.1), "yes", "no")
    return QuickClassifier(n_estimators=3, max_depth=1, random_state=0).fit(X, y), X, y


# ---- a classifier of ours ----


def test_a_model_is_fitted_with_what_was_told(monkeypatch):
    made = []

    class Double(UntwistClassifier):
        def __init__(self, **settings):
            made.append(settings)

        def fit(self, *table, **told):
            made.append((table, told))
            return self

    monkeypatch.setattr(judges, "UntwistClassifier", Double)
    columns = SourceColumns("s", "i", "g")
    fit = judges.fit_own_model(None, "X", "y", "w", columns, "r", 1, order=None, cv=3, n_jobs=2, random_state=5)
    assert made[0] == {"order": None, "cv": 3, "n_jobs": 2, "random_state": 5, "verbose": 1}
    told = {"sample_weight": "w", "reviewed": "r", "source": "s", "item": "i", "groups": "g"}
    assert made[1] == (("X", "y"), told)
    assert isinstance(fit, Double)
    defaults = {name: one.default for name, one in inspect.signature(audit_labels).parameters.items()}
    assert (defaults["random_state"], defaults["verbose"]) == (0, 0)


def test_the_noise_is_the_one_that_was_fitted_or_is_estimated(fitted, monkeypatch):
    model, X, y = fitted
    found = judges.ask_fitted_model(model, X, y, NOTHING)
    assert found.noise is model.model_.noise
    assert (found.model, found.encoder, found.by_source) == (model, model.model_.encoder, None)
    assert found.out_of_fold is model.model_.out_of_fold
    noise = make_pairs(found=False)
    monkeypatch.setattr(judges, "estimate_noise_of", lambda unseen: noise if unseen is found.out_of_fold else None)
    without = SimpleNamespace(model_=replace(model.model_, noise=None))
    monkeypatch.setattr(judges, "_check_rows", lambda *_: None)
    assert judges.ask_fitted_model(without, X, y, NOTHING).noise is noise


def test_models_without_posteriors_of_folds_are_refused(fitted):
    model, X, y = fitted
    for unseen in (None, model.model_.out_of_fold.add_context(fingerprint=None)):
        other = SimpleNamespace(model_=replace(model.model_, out_of_fold=unseen))
        with pytest.raises(ValueError, match="model must be an UntwistClassifier whose fit was not cut short"):
            judges.ask_fitted_model(other, X, y, NOTHING)


def make_items(items, weight=None, groups=None):
    votes = LabelSources(np.array(["ann", "bob"]), np.arange(len(items)) % 2, np.asarray(items))
    return make_unseen(np.full((len(items), 2), 0.5), weight=weight, sources=votes, groups=groups)


def test_sources_and_items_are_those_of_the_fit():
    unseen = make_items([0, 0, 1, 1, 2, 2])
    who = ["ann", "bob"] * 3
    judges._check_sources(unseen, None, None)
    judges._check_sources(unseen, who, None)
    for same in (list("xxyyzz"), ["x", "x", None, None, "z", "z"], [5, 5, 2, 2, 9, 9]):
        judges._check_sources(unseen, who, same)
    for other in (list("xxyyyy"), list("xwyyzz"), list("xyyxzz"), list("xyyzzx")):
        with pytest.raises(ValueError, match="item must be that of the rows that the model was fitted to"):
            judges._check_sources(unseen, None, other)
    for other in (["bob", "ann"] * 3, ["ann", "eve"] * 3, ["ann", None] * 3):
        with pytest.raises(ValueError, match="source must be that of the rows that the model was fitted to"):
            judges._check_sources(unseen, other, None)
    judges._check_sources(
        make_items([0, 0, 1, 2, 3, 3], np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0])), None, list("xxyyzz")
    )
    none = make_unseen(np.full((6, 2), 0.5))
    judges._check_sources(none, None, None)
    for told in ((who, None), (None, list("xxyyzz"))):
        with pytest.raises(ValueError, match="the model was fitted without source"):
            judges._check_sources(none, *told)


def test_groups_are_those_of_the_fit():
    unseen = make_items(np.arange(6), groups=read_groups(np.arange(6) // 2, 6))
    judges._check_groups(unseen, None)
    judges._check_groups(unseen, list("aabbcc"))
    with pytest.raises(ValueError, match="groups must be those of the rows"):
        judges._check_groups(unseen, list("aabbbb"))
    without = make_items(np.arange(6))
    judges._check_groups(without, None)
    with pytest.raises(ValueError, match="the model was fitted without groups"):
        judges._check_groups(without, list("aabbcc"))


def test_rows_are_those_of_the_fit(fitted):
    model, X, y = fitted
    unseen = model.model_.out_of_fold
    judges._check_rows(model, unseen, X, y)
    for other, given in ((X[::-1], y), (X, y[::-1]), (X[:50], y), (X, y[:50]), (X[:50], y[:50])):
        with pytest.raises(ValueError, match="X and y must be the rows that the model was fitted to"):
            judges._check_rows(model, unseen, other, given)


# ---- any other models ----


def make_rows(posterior, labels, weight, **changes):
    classes = np.array(list("abcdef")[: posterior.shape[1]])
    return replace(JudgedRows(classes, labels, weight, None, None, RowContext()), **changes)


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
                judges._warn_of_contradiction(raw, given)
            continue
        with pytest.warns(UserWarning, match="less than chance would") as caught:
            judges._warn_of_contradiction(raw, given)
        assert f"order of the sorted classes ({order})?" in str(caught[0].message)
        assert f"give the labels {own:.0%} on average" in str(caught[0].message)
        raw[:200] = np.eye(n_classes)[labels[:200]]
        absent = make_rows(raw, labels, np.where(np.arange(400) < 200, 0.0, 1.0))
        with pytest.warns(UserWarning, match="less than chance would"):
            judges._warn_of_contradiction(raw, absent)


def test_warnings_name_the_line_that_asks_for_the_audit():
    labels = np.arange(400) % 2
    with pytest.warns(UserWarning, match="less than chance would") as caught:
        audit_labels(y=labels, pred_probs=np.column_stack([labels, 1 - labels]) * 0.8 + 0.1)
    assert caught[0].filename == __file__


def test_signs_of_seen_labels_are_looked_for_with_and_without_rows(monkeypatch):
    posterior, labels, weight, _ = draw_rows(2)
    given = make_rows(posterior, labels, weight)
    asked = []
    monkeypatch.setattr(judges, "find_sign_of_seen_labels", lambda *rows: asked.append(rows) or "too good")
    monkeypatch.setattr(judges, "compare_with_quick_model", lambda *rows, **told: asked.append((*rows, told)) or "")
    with pytest.warns(UserWarning, match="pred_probs look as if they had seen the labels: too good. Wrong labels"):
        assert judges._find_seen_labels(posterior, None, given, 2, 5) == "too good"
    assert asked[0] == (posterior, labels, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judges._find_seen_labels(posterior, "X", replace(given, encoder="some"), 2, 5) == ""
    assert asked[1] == (posterior, "X", labels, weight, {"n_jobs": 2, "random_state": 5})


def test_posteriors_are_brought_to_the_labels_of_the_rows_that_are_judged(monkeypatch):
    posterior, labels, weight, _ = draw_rows(2)
    posterior = posterior**3 / (posterior**3).sum(axis=1, keepdims=True)
    judged = np.arange(60) % 3 > 0
    unseen = make_unseen(np.where(judged[:, None], posterior, np.nan), labels, weight, held_out=[judged])
    asked = []
    for name in ("estimate_noise_of", "estimate_noise_of_reviewed"):
        monkeypatch.setattr(judges, name, lambda unseen, name=name: asked.append(unseen) or name)
    monkeypatch.setattr(judges, "estimate_noise_of_sources", lambda unseen, noise: (unseen, noise))
    rows = make_rows(posterior, labels, weight, encoder="encoder")
    found = judges._let_judge(unseen, rows, "somebody")
    expected = calibrate(posterior[judged], labels[judged], weight[judged])
    np.testing.assert_array_equal(found.out_of_fold.posterior[judged], expected)
    assert np.isnan(found.out_of_fold.posterior[~judged]).all()
    assert (found.noise, found.by_source, found.name, found.encoder) == (
        "estimate_noise_of",
        None,
        "somebody",
        "encoder",
    )
    assert asked[0] is found.out_of_fold
    reviewed = judges._let_judge(unseen.add_context(reviewed="some"), rows, "somebody")
    assert reviewed.noise == "estimate_noise_of_reviewed"
    votes = LabelSources(np.array(["ann", "bob"]), np.arange(60) % 2, np.arange(60) // 2)
    whole = make_unseen(posterior, labels, weight, sources=votes)
    by_source = judges._let_judge(whole, rows, "somebody")
    assert by_source.by_source == (by_source.out_of_fold, "estimate_noise_of")
    expected = calibrate(whole.average_by_item().posterior, labels, weight)
    np.testing.assert_array_equal(by_source.out_of_fold.posterior, expected)


def test_the_judge_is_named_by_its_last_step():
    assert name_estimator(LogisticRegression()) == "LogisticRegression"
    assert name_estimator(make_pipeline(make_pipeline(LogisticRegression()))) == "LogisticRegression"
