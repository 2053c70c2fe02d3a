"""What other boosters are told, by doubles that note it down."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from untwist.audit.peers import PATIENCE, HeldOut, fit_lightgbm, fit_xgboost

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
HELD_OUT = HeldOut(X[:2], Y[:2])
WEIGHT = np.ones(6)


class Booster:
    """Notes down its settings and what it is fitted to."""

    def __init__(self, **settings):
        self.settings = settings

    def fit(self, X, y, sample_weight=None, **options):
        self.X, self.y, self.weight, self.options = X, y, sample_weight, options
        return self


class NewBooster(Booster):
    """The same, which takes the rows to stop on in two parts."""

    def fit(self, X, y, sample_weight=None, eval_X=None, eval_y=None, **options):
        return super().fit(X, y, sample_weight, eval_X=eval_X, eval_y=eval_y, **options)


@pytest.fixture(autouse=True)
def _doubles(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", SimpleNamespace(XGBClassifier=Booster))
    stop = SimpleNamespace(LGBMClassifier=Booster, early_stopping=lambda patience, verbose: (patience, verbose))
    monkeypatch.setitem(sys.modules, "lightgbm", stop)


def test_xgboost_stops_on_rows_that_are_held_out():
    plain = fit_xgboost(X, Y, weight=WEIGHT, n_estimators=7)
    assert plain.settings == {"n_estimators": 7}
    assert (plain.weight is WEIGHT, plain.options) == (True, {})
    stopped = fit_xgboost(X, Y, HELD_OUT, weight=WEIGHT, n_estimators=7)
    assert stopped.settings == {"n_estimators": 7, "early_stopping_rounds": PATIENCE}
    assert stopped.options == {"eval_set": [(HELD_OUT.X, HELD_OUT.y)], "verbose": False}
    assert stopped.weight is WEIGHT
    weighed = fit_xgboost(X, Y, HELD_OUT._replace(weight=WEIGHT[:2]), patience=3)
    assert weighed.settings == {"early_stopping_rounds": 3}
    assert weighed.options["sample_weight_eval_set"][0].tolist() == [1, 1]
    assert (stopped.X is X, stopped.y is Y) == (True, True)


def test_xgboost_is_told_of_categories():
    told = fit_xgboost(X, Y, categories=[1]).settings
    assert told == {"enable_categorical": True, "feature_types": ["float", "c"]}
    assert fit_xgboost(X, Y, categories=[]).settings["feature_types"] == ["float", "float"]
    assert fit_xgboost(pd.DataFrame(X), Y).settings == {"enable_categorical": True}
    assert fit_xgboost(X, Y).settings == {}


@pytest.mark.parametrize("booster", [Booster, NewBooster])
def test_lightgbm_stops_on_rows_that_are_held_out(booster, monkeypatch):
    monkeypatch.setattr(sys.modules["lightgbm"], "LGBMClassifier", booster)
    plain = fit_lightgbm(X, Y, weight=WEIGHT, n_estimators=7)
    assert plain.settings == {"n_estimators": 7, "verbose": -1}
    assert plain.weight is WEIGHT
    assert "callbacks" not in plain.options
    stopped = fit_lightgbm(X, Y, HELD_OUT, patience=3, categories={1, 0}).options
    if booster is NewBooster:
        assert (stopped["eval_X"], stopped["eval_y"]) == ((HELD_OUT.X,), (HELD_OUT.y,))
        assert "eval_set" not in stopped
    else:
        assert stopped["eval_set"] == [(HELD_OUT.X, HELD_OUT.y)]
    assert stopped["callbacks"] == [(3, False)]
    assert stopped["categorical_feature"] == [0, 1]
    assert "eval_sample_weight" not in stopped
    weighed = fit_lightgbm(X, Y, HELD_OUT._replace(weight=WEIGHT[:2])).options
    assert weighed["eval_sample_weight"][0].tolist() == [1, 1]
    assert weighed["callbacks"] == [(PATIENCE, False)]
    assert "categorical_feature" not in weighed
