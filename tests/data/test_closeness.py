"""Distances between rows that know no units, beside a slow twin."""

import numpy as np
import pytest

from untwist.data.closeness import SQUARED_MISMATCH, ComparedRows
from untwist.data.encoding import TableEncoder
from untwist.data.tables import Schema


def test_distances_are_those_of_a_slow_twin():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 4, 80), rng.normal(size=80)])
    X[5, 2] = X[6, 2] = np.nan
    encoder = TableEncoder(3, schema=Schema({1: tuple(map(str, range(50)))}))
    table = ComparedRows(X, encoder, range(3))
    places, spread = table.places
    slow = ((places[:, None].astype(float) - places[None]) ** 2).sum(axis=2) + spread[:, None] + spread
    np.fill_diagonal(slow, np.inf)
    rows = np.arange(80)
    squares, nearest = table.find_nearest(rows, rows, 5)
    assert squares == pytest.approx(np.sort(slow, axis=1)[:, :5], abs=1e-6)
    assert slow[rows[:, None], nearest] == pytest.approx(squares, abs=1e-6)
    category = places[:, 1:-2]
    differ = X[:, None, 1] != X[None, :, 1]
    assert ((category[:, None] - category[None]) ** 2).sum(axis=2) == pytest.approx(SQUARED_MISMATCH * differ)
