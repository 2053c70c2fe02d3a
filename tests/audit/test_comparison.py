"""Other boosters beside an audit: on the same folds, on rows that they have not seen."""

import numpy as np
import pytest

from helpers.report_fixtures import read_text
from untwist import PILBoostClassifier
from untwist.audit import audit_labels, comparison
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
    for audit in (three, audit_labels(three.X, rare, sample_weight=1 + np.arange(600) % 2)):
        for one in compare(audit).values():
            assert one.agreement_with_given > 0.6
            assert np.isfinite(one.log_loss)


@pytest.mark.parametrize("engine", ["compiled", "xgboost"])
def test_peers_get_the_folds_of_the_audit(monkeypatch, engine):
    pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0) ^ (rng.random(300) < 0.2)
    audit = audit_labels(X, y, PILBoostClassifier(engine=engine, random_state=5).fit(X, y))
    judged = []

    class Recorder:
        def __init__(self, X, y, held_out, **settings):
            pass

        def predict_proba(self, X):
            judged.extend(row.tobytes() for row in X)
            return np.full((len(X), 2), 0.5)

    monkeypatch.setattr(comparison, "PEERS", {"recorder": ("numpy", Recorder)})
    compare(audit)
    assert judged == [row.tobytes() for row in X[audit.fitted.out_of_fold.rows]]


def test_peers_that_are_not_installed_are_left_out(monkeypatch, shop):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)
    assert list(compare(shop)) == ["untwist"]
