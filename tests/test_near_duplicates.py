"""Which rows near-duplicates are looked for among."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from helpers.quick import make_classifier, resolve
from untwist import near_duplicates
from untwist.data.workers import Workers
from untwist.fit_arguments import SourceColumns
from untwist.near_duplicates import find_near_duplicates
from untwist.training_data import TrainingData


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no"), rng.integers(1, 4, size=120).astype(float)


def collect(table, *args, sources=None, **settings):
    X, y, weight = table
    parameters = make_classifier(*args, random_state=0, **settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), X, y, weight, sources=sources)


def test_near_duplicates_are_looked_for_among_rows_that_train_and_rows_that_are_judged(table, monkeypatch):
    row = np.arange(120)
    data = collect(table, cv=[(row[:50], row[50:80]), (row[40:110], row[:20])])
    told = []
    monkeypatch.setattr(near_duplicates, "draw_rows", lambda *_: np.array([3, 60, 90, 115]))
    monkeypatch.setattr(near_duplicates.NearDuplicates, "find", lambda *arguments: told.append(arguments))
    assert find_near_duplicates(data) is None
    ((_, labels, fold, trained, group),) = told
    np.testing.assert_array_equal(labels, data.rows.labels[[3, 60, 90, 115]])
    assert fold.tolist() == [1, 0, -1, -1]  # Two of them are judged by nobody.
    assert trained.tolist() == [[True, False, False, False], [False, True, True, False]]
    assert group is None


def test_near_duplicates_are_looked_for_where_folds_are_ours(table):
    X, y, weight = table
    rng = np.random.default_rng(0)
    near = (np.vstack([X, X + 1e-9 * rng.normal(size=X.shape)]), np.append(y, y), np.append(weight, weight))
    found = find_near_duplicates(collect(near))
    assert found is not None
    first, second = found.pairs.T
    np.testing.assert_array_equal(np.minimum(first, second) + 120, np.maximum(first, second))
    assert find_near_duplicates(collect(table)) is None
    assert find_near_duplicates(collect(near, 2.0, n_estimators=2, max_depth=2)) is None
    assert find_near_duplicates(collect(near, sources=SourceColumns(groups=np.arange(240) % 120))) is None
    assert find_near_duplicates(collect((sparse.csr_array(near[0]), *near[1:]))) is None
    assert find_near_duplicates(replace(collect(near), workers=Workers(0, 2))) is None
    row = np.arange(240)
    apart = [(row[60:120], row[:60]), (row[180:], row[120:180])]  # No fold trains on near-duplicates of what it judges.
    assert find_near_duplicates(collect(near, cv=apart)) is None
    together = [(row[120:], row[:60]), (row[:120], row[120:180])]
    assert find_near_duplicates(collect(near, cv=together)) is not None
