"""Other boosters beside an audit: on the same folds, on rows that they have not seen."""

from types import SimpleNamespace

import numpy as np
import pytest

from helpers.report_fixtures import read_text
from helpers.small_audits import change, make_audit
from untwist import UntwistClassifier
from untwist.audit import audit_labels, comparison
from untwist.audit.comparison import FEW_ROWS, STOPPING_SHARE
from untwist.audit.context import AuditedTable
from untwist.audit.peers import LEARNING_RATE, ROUNDS
from untwist.data.batches import Batches
from untwist.data.encoding import TableEncoder
from untwist.data.tables import Schema
from untwist.report import compare, report


def test_peers_are_measured_on_rows_they_have_not_seen(monkeypatch, shop):
    pytest.importorskip("xgboost")
    pytest.importorskip("lightgbm")
    found = compare(shop)
    assert list(found) == ["untwist", "XGBoost, stopped early", "LightGBM, stopped early"]
    ours, *others = found.values()
    labels = np.searchsorted(shop.classes, shop.given)
    assert ours.agreement_with_given == np.mean(shop.predicted == shop.given)
    assert ours.agreement_with_corrected == np.mean(shop.predicted == shop.corrected())
    assert ours.log_loss == pytest.approx(-np.log(shop.posterior[np.arange(1500), labels]).mean())
    for one in others:
        assert 0.7 < one.agreement_with_given < 0.85  # 18 % of the labels are wrong: more would be by heart
        assert 0.45 < one.log_loss < 0.69
    text = read_text(report(shop, title="t", peers=found))
    for name, one in found.items():
        assert f"{name} {100 * one.agreement_with_given:.1f} % (" in text
        assert f"{one.log_loss:.4f}" in text
    assert "the last column flatters it" in text

    seen = []

    class ByHeart:
        def __init__(self, X, y, held_out, **settings):
            self.known = {row.tobytes() for table in (X, held_out.X) for row in table}

        def predict_proba(self, X):
            seen.append([row.tobytes() in self.known for row in X])
            return np.full((len(X), 2), 0.5)

    monkeypatch.setattr(comparison, "PEERS", {"by heart": ("numpy", ByHeart)})
    assert compare(shop)["by heart"].log_loss == pytest.approx(np.log(2))
    assert sum(map(len, seen)) == 1500
    assert not any(map(any, seen))


@pytest.mark.slow
def test_peers_of_many_classes_with_weights(three):
    pytest.importorskip("xgboost")
    rare = three.given.copy()
    rare[:2] = 7  # too few for every fold
    for audit in (three, audit_labels(three.table.X, rare, sample_weight=1 + np.arange(600) % 2)):
        for one in compare(audit).values():
            assert one.agreement_with_given > 0.6
            assert np.isfinite(one.log_loss)


@pytest.mark.parametrize("engine", ["compiled", "xgboost"])
def test_peers_get_the_folds_of_the_audit(monkeypatch, engine):
    pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0) ^ (rng.random(300) < 0.2)
    audit = audit_labels(X, y, UntwistClassifier(engine=engine, random_state=5).fit(X, y))
    judged = []

    class Recorder:
        def __init__(self, X, y, held_out, **settings):
            pass

        def predict_proba(self, X):
            judged.extend(row.tobytes() for row in X)
            return np.full((len(X), 2), 0.5)

    monkeypatch.setattr(comparison, "PEERS", {"recorder": ("numpy", Recorder)})
    compare(audit)
    assert judged == [row.tobytes() for row in X[audit.model.model_.out_of_fold.rows]]


def test_peers_that_are_not_installed_are_left_out(monkeypatch, shop):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)
    assert list(compare(shop)) == ["untwist"]


@pytest.mark.parametrize("fits", [True, False])
def test_rows_that_memory_does_not_hold_are_not_compared(monkeypatch, fits):
    batches = object.__new__(Batches)
    audit = SimpleNamespace(table=AuditedTable(batches), posterior=np.zeros((1, 2)), clean=np.zeros((1, 2)))
    monkeypatch.setattr(Batches, "__repr__", lambda self: "Batches of a year")
    monkeypatch.setattr(comparison, "fit_memory", lambda rows: fits if rows is batches else None)
    monkeypatch.setattr(comparison, "_find_folds", lambda _: "folds")
    monkeypatch.setattr(comparison, "_measure", lambda *_: "measured")
    monkeypatch.setattr(comparison, "PEERS", {})
    if fits:
        assert comparison.compare(audit) == {"untwist": "measured"}
        return
    with pytest.raises(ValueError, match="other boosters need all rows in memory, and Batches of a year are too many"):
        comparison.compare(audit)


def test_a_method_is_measured_on_the_rows_that_count():
    audit = make_audit(3, weight=np.arange(60) % 3 * 1.0)
    posterior = audit.posterior.copy()
    posterior[1] = [1.0, 0.0, 0.0]
    predicted = np.arange(60) % 3
    found = comparison._measure(audit, posterior, predicted)
    labels, corrected = audit.label_indices, audit.corrected(force=True)
    for name, agree in (
        ("agreement_with_given", [predicted[row] == labels[row] for row in range(60)]),
        ("agreement_with_corrected", [audit.classes[predicted[row]] == corrected[row] for row in range(60)]),
    ):
        assert getattr(found, name) == pytest.approx(np.average(agree, weights=audit.weight))
    losses = [-np.log(min(max(posterior[row, labels[row]], 1 / 62), 61 / 62)) for row in range(60)]
    assert found.log_loss == pytest.approx(np.average(losses, weights=audit.weight))
    judged = change(audit, judged=np.arange(60) % 3 > 0)
    losses = [-np.log(min(max(posterior[row, labels[row]], 1 / 42), 41 / 42)) for row in range(60)]
    assert comparison._measure(judged, posterior, predicted).log_loss == pytest.approx(
        np.average(losses, weights=audit.weight)
    )


def test_posteriors_of_peers_are_the_mean_over_the_folds_that_judge_a_row(monkeypatch):
    audit = make_audit(3)
    shares = np.array([np.where(np.arange(60) < 20, 1.0, 0.25), np.where(np.arange(60) < 20, 0.0, 0.75)])
    weights = np.array([np.ones(60), np.full(60, 2.0)])
    monkeypatch.setattr(comparison, "_find_folds", lambda _: (shares, weights))
    monkeypatch.setattr(comparison, "PEERS", {"one": ("numpy", "fit"), "absent": ("no_such_package", "fit")})
    by_fold = {1.0: np.array([0.7, 0.2, 0.1]), 2.0: np.array([0.1, 0.3, 0.6])}
    monkeypatch.setattr(
        comparison, "_predict", lambda fit, audit, weight, rows: np.tile(by_fold[weight[0]], (len(rows), 1))
    )
    found = comparison.compare(audit)
    assert list(found) == ["untwist", "one"]
    assert found["untwist"] == comparison._measure(audit, audit.posterior, audit.noise.clean(audit.posterior).argmax(1))
    mixed = 0.25 * by_fold[1.0] + 0.75 * by_fold[2.0]
    posterior = np.array([by_fold[1.0] if row < 20 else mixed for row in range(60)])
    assert found["one"] == comparison._measure(audit, posterior, np.where(np.arange(60) < 20, 0, 2))


def test_rows_to_stop_on_are_a_fifth_of_each_class_where_there_are_enough():
    labels = np.repeat([0, 1], [80, 20])
    train, stop = comparison._split(labels, 2)
    assert STOPPING_SHARE == 0.2
    assert np.bincount(labels[stop]).tolist() == [16, 4]
    assert sorted([*train, *stop]) == list(range(100))
    for seed in range(8):
        turned = np.random.default_rng(seed).permutation(np.repeat([0, 1], [15, 5]))
        assert turned[comparison._split(turned, 2)[1]].sum() == 1
    fewer = [np.random.default_rng(seed).permutation(np.repeat([0, 1], [14, 5])) for seed in range(8)]
    assert {int(one[comparison._split(one, 2)[1]].sum()) for one in fewer} != {1}
    # A class of one row cannot be split, and so few rows are not: the one row may be set aside, and then all train.
    for few in (np.repeat([0, 1], [19, 1]), np.repeat([0, 1], [17, 2])):
        for seed in range(8):
            turned = np.random.default_rng(seed).permutation(few)
            train, stop = comparison._split(turned, 2)
            assert set(turned[train]) == {0, 1}
            assert len(stop) == 4
            is_split = len(train) + len(stop) == len(few)
            assert is_split or len(train) == len(few)


def test_a_peer_learns_from_the_rows_of_its_fold_alone():
    told = {}

    class Note:
        def __init__(self, X, y, held_out, **settings):
            told.update(settings, X=X, y=y, held_out=held_out)

        def predict_proba(self, X):
            told["judged"] = X
            return np.tile([0.3, 0.7], (len(X), 1))

    encoder = TableEncoder(2, schema=Schema({1: ("u", "v")}))
    model = SimpleNamespace(model_=SimpleNamespace(encoder=encoder, seed=11), n_jobs=None)
    X = np.column_stack([np.arange(60.0), np.zeros(60)])
    given = np.repeat(["a", "b", "c"], [26, 26, 8])
    audit = make_audit(3, X=X, encoder=TableEncoder(2), model=model, given=given)
    weight = np.where(np.arange(60) < 50, 1.0 + np.arange(60) % 2, 0.0)  # No row of the third class is left.
    rows = np.array([55, 3])
    posterior = comparison._predict(Note, audit, weight, rows)
    assert posterior.tolist() == [[0.3, 0.7, 0.0]] * 2
    assert told["judged"][:, 0].tolist() == [55, 3]
    seen, stopped = told["X"][:, 0].astype(int), told["held_out"].X[:, 0].astype(int)
    assert sorted([*seen, *stopped]) == list(range(50))
    assert told["y"].tolist() == (seen >= 26).tolist()
    assert told["held_out"].y.tolist() == (stopped >= 26).tolist()
    assert told["weight"].tolist() == weight[seen].tolist()
    assert told["held_out"].weight.tolist() == weight[stopped].tolist()
    settings = {name: told[name] for name in ("categories", "n_estimators", "learning_rate", "random_state", "n_jobs")}
    assert settings == {
        "categories": [1],
        "n_estimators": ROUNDS,
        "learning_rate": LEARNING_RATE,
        "random_state": 11,
        "n_jobs": 1,
    }
    model.n_jobs = 3
    comparison._predict(Note, audit, weight, rows)
    assert told["n_jobs"] == 3
    assert FEW_ROWS > 60
    only = np.where(np.arange(60) < 20, 1.0, 0.0)
    assert comparison._predict(None, audit, only, rows).tolist() == [[1.0, 0.0, 0.0]] * 2


def test_threads_are_as_many_as_there_are_for_many_rows(monkeypatch):
    told = []

    def fit(*rows, **settings):
        told.append(settings["n_jobs"])
        return SimpleNamespace(predict_proba=lambda X: np.full((len(X), 2), 0.5))

    model = SimpleNamespace(model_=SimpleNamespace(encoder=TableEncoder(1), seed=0), n_jobs=None)
    audit = make_audit(X=np.zeros((60, 1)), encoder=TableEncoder(1), model=model)
    for few in (60, 61):
        monkeypatch.setattr(comparison, "FEW_ROWS", few)
        comparison._predict(fit, audit, np.ones(60), np.array([0]))
    assert told == [None, 1]


@pytest.mark.parametrize("has_own_folds", [False, True])
def test_folds_train_on_what_they_do_not_set_aside_or_as_they_were_told(has_own_folds):
    held_out = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    trained = np.array([[False, False, True], [True, False, False]])
    own_folds = SimpleNamespace(trained=trained) if has_own_folds else None
    unseen = make_unseen(np.full((3, 2), 0.5), weight=[4, 3, 2], held_out=held_out, own_folds=own_folds)
    model = SimpleNamespace(model_=SimpleNamespace(out_of_fold=unseen))
    shares, weight = comparison._find_folds(make_audit(model=model))
    assert shares.tolist() == [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]
    expected = [[0.0, 0.0, 2.0], [4.0, 0.0, 0.0]] if has_own_folds else [[0.0, 3.0, 1.0], [4.0, 0.0, 1.0]]
    assert weight.tolist() == expected
