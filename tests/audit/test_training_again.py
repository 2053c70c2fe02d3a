"""What the chosen candidate is trained on once more, by a double in place of the search."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.quick import QuickClassifier
from untwist import UntwistClassifier
from untwist.audit import training
from untwist.audit.training import train_on_numbers


@pytest.fixture(scope="module")
def fitted():
    """A small fit to a table with a category, and its rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 3, 80), rng.normal(size=80)])
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = QuickClassifier(
        n_estimators=3, max_depth=1, categorical_features=[1], monotonic_cst=[1, 0, 0], random_state=4
    )
    return model.fit(X, y), X, y


@pytest.fixture
def told(monkeypatch):
    """What the search is given."""
    seen = []

    class Double:
        interrupt = None

        def __init__(self, data):
            seen.append(data)

        def run(self):
            return SimpleNamespace(interrupt=type(self).interrupt, model="trained")

    monkeypatch.setattr(training, "Search", Double)
    seen.append(Double)
    return seen


def test_the_candidate_is_narrowed_down_to_what_was_chosen(fitted, told):
    model, X, y = fitted
    weight = 1.0 + np.arange(80) % 2
    assert train_on_numbers(model, X, y, weight) == "trained"
    data = told[1]
    best = model.choice_.best
    assert (data.settings.alphas, data.settings.depths) == ((best.alpha,), (best.max_depth,))
    assert data.settings.seed == model.model_.seed
    np.testing.assert_allclose(data.weight / data.weight[0], weight)
    assert sorted(data.encoder.schema.categories) == [1]
    told[0].interrupt = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        train_on_numbers(model, X, y, weight)


@pytest.mark.parametrize("without", [None, 0, 1])
def test_a_column_that_is_left_out_is_0_everywhere_and_no_category(fitted, told, without):
    model, X, y = fitted
    before = X.copy()
    train_on_numbers(model, X, y, np.ones(80), without=without)
    np.testing.assert_array_equal(X, before)
    data = told[1]
    assert sorted(data.encoder.schema.categories) == ([] if without == 1 else [1])
    if without is not None:
        expected = np.where(np.arange(3) == without, 0.0, X)
        np.testing.assert_allclose(np.asarray(data.rows.X)[:, without], expected[:, without])
    assert list(data.settings.columns.monotonic_cst) == [1, 0, 0]


def test_folds_of_ones_own_are_kept(told):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    folds = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    model = QuickClassifier(n_estimators=2, max_depth=1, cv=folds, random_state=0).fit(X, y)
    train_on_numbers(model, X, y, np.ones(80))
    assert told[1].settings.cv is model.model_.out_of_fold.context.own_folds


def test_directions_by_the_names_of_columns_hold_for_rows_without_names(told):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["age", "height"])
    y = (X["age"] > 0).astype(int).to_numpy()
    for directions, expected in (({"height": -1}, (0, -1)), ([1, 0], (1, 0)), (None, ())):
        model = QuickClassifier(n_estimators=3, max_depth=1, monotonic_cst=directions, random_state=4).fit(X, y)
        assert train_on_numbers(model, X.to_numpy(), y, np.ones(80)) == "trained"
        assert told[-1].growth.monotone == expected


class Ours(UntwistClassifier):
    """A subclass whose constructor says less."""

    def __init__(self, seed=0):
        super().__init__(random_state=seed, noise=None)
        self.seed = seed


def test_a_subclass_with_a_constructor_of_its_own_is_trained_again(fitted, told):
    _, X, y = fitted
    model = Ours()
    model.model_ = fitted[0].model_
    assert train_on_numbers(model, X, y, np.ones(80)) == "trained"
    assert told[1].settings.known_noise is None
