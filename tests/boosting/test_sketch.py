"""Bins from blocks and shards of rows: those of the slow twin, and those of the table in memory, bit for bit."""

import itertools

import numpy as np
import pytest

from helpers import histogram_twin
from helpers.engines import get_forest, make_booster, make_dataset
from untwist import _core
from untwist.boosting.engines.engine import TreeGrowth
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss

NONE = np.zeros(0)


def make_extreme_columns(n, seed=0, dtype=np.float64):
    """Columns of every kind, and labels."""
    rng = np.random.default_rng(seed)
    big = np.finfo(np.float32).max
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, big, -big, 1e-40], n)
    columns = [
        rng.normal(size=n),
        np.full(n, 7.0),
        odd,
        np.round(rng.normal(size=n), 1),
        np.where(rng.random(n) < 0.999, 0.0, rng.normal(size=n)),
        np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 5, n)),
        np.full(n, np.nan),
        rng.integers(0, 4, n).astype(float),
    ]
    return np.column_stack(columns).astype(dtype), rng.integers(0, 3, n)


class Rows:
    def __init__(self, blocks):
        self.shape = (sum(map(len, blocks)), blocks[0].shape[1])
        self.blocks = lambda: blocks


def cut_into_shards(X, weight, count, block):
    """(block, its weights), cut in uneven blocks, some of them empty, for each shard."""
    cuts = np.linspace(0, len(X), count + 1).astype(int)
    for first, last in itertools.pairwise(cuts):
        parts = [slice(first, first), *(slice(i, min(i + block, last)) for i in range(first, last, block))]
        yield [(X[part], NONE if weight is None else weight[part]) for part in parts]


def make_sketch(X, weight, *, categories=None, max_bins=255, count=1, block=1000, turn=False, threads=2):
    counts = np.zeros(X.shape[1], dtype=np.int32)
    for column, number in (categories or {}).items():
        counts[column] = number
    largest = 0.0 if weight is None else weight.max()
    parts = list(cut_into_shards(X, weight, count, block))
    sketches = [_core.Sketch(counts, max_bins, largest) for _ in parts]
    for sketch, blocks in zip(sketches, parts, strict=True):
        for rows, row_weight in blocks:
            sketch.observe(rows, row_weight, threads)
    states = [sketch.state() for sketch in sketches]
    whole = _core.Sketch(counts, max_bins, largest)
    for state in reversed(states) if turn else states:
        whole.merge(state)
    if whole.needs_draw:
        known = whole.state()
        drawn = []
        for blocks in parts:
            worker = _core.Sketch(counts, max_bins, largest)
            worker.merge(known)
            for rows, row_weight in blocks:
                worker.draw(rows, row_weight, threads)
            drawn.append(worker.state())
        for state in reversed(drawn) if turn else drawn:
            whole.merge(state)
    assert not whole.needs_draw
    return whole


def round_weights(weight, n):
    if weight is None:
        return np.full(n, 2**32, dtype=object)
    top = 2.0 ** np.ceil(np.log2(weight.max()))
    return np.array([max(1, round(w / top * 2**32)) if w > 0 else 0 for w in weight.tolist()], dtype=object)


@pytest.mark.parametrize("n", [1, 2, 500, 5000])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_bins", [2, 16, 255])
@pytest.mark.thinned(3)
def test_thresholds_are_those_of_the_twin(n, weighted, dtype, max_bins):
    X, _ = make_extreme_columns(n, seed=n, dtype=dtype)
    weight = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 7.0], n) if weighted else None
    if weighted:
        weight[0] = 2.0
    with np.errstate(invalid="ignore", over="ignore"):
        twin = histogram_twin.sample_thresholds(X, round_weights(weight, n), max_bins)
    for count, block in ((1, 10_000), (2, 77), (5, 1)):
        ours = make_sketch(X, weight, max_bins=max_bins, count=count, block=block).thresholds()
        for one, other in zip(ours, twin, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_bins", [2, 16, 255])
def test_thresholds_and_bins_do_not_depend_on_the_number_of_threads(dtype, max_bins):
    X, labels = make_extreme_columns(3000, seed=8, dtype=dtype)
    weight = np.random.default_rng(8).choice([0.0, 0.3, 1.0, 7.0], len(X))
    with np.errstate(invalid="ignore", over="ignore"):
        twin = histogram_twin.sample_thresholds(X, round_weights(weight, len(X)), max_bins)
    hashes = []
    for threads in (1, 3, 17):
        found = make_sketch(X, weight, max_bins=max_bins).thresholds(threads)
        assert len(found) == len(twin)
        for one, other in zip(found, twin, strict=True):
            np.testing.assert_array_equal(one, other)
        dataset = _core.Dataset(labels.astype(np.uint32), 3, X.shape[1], lean=True)
        dataset.set_bins(make_sketch(X, weight, max_bins=max_bins), threads)
        dataset.add_rows(X, 0, weight, threads)
        hashes.append(dataset.hashes())
    np.testing.assert_array_equal(hashes[1:], [hashes[0]] * 2)
    assert len(np.unique(hashes[0])) > 10


@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_sketch_has_seen_does_not_depend_on_threads_or_blocks(weighted):
    """The table has more columns than are looked at together, and columns with more values than are kept."""
    rng = np.random.default_rng(4)
    n = 6000
    X = np.column_stack([rng.normal(size=(n, 60)), rng.integers(0, 3, size=(n, 10)), np.full(n, 2.0)])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, -1] = 2.0
    weight = rng.choice([0.0, 0.3, 1.0], n) if weighted else None
    categories = {62: 3}
    states = [
        make_sketch(X, weight, categories=categories, block=block, threads=threads).state()
        for block, threads in ((n, 1), (n, 2), (n, 5), (512, 3), (n, 17))
    ]
    assert states[1:] == states[:1] * 4
    other = make_sketch(X + 1.0, weight, categories=categories, block=n).state()
    assert other != states[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.slow
def test_thresholds_of_many_rows_are_those_of_the_twin(weighted):
    n = 110_000
    rng = np.random.default_rng(3)
    X = make_extreme_columns(n, seed=3)[0][:, :5]
    X[:, 1] = rng.integers(0, 9000, 30)[np.arange(n) % 30]
    X[60_000:, 3] = X[:50_000, 0]  # These are copies of values.
    weight = rng.choice([0.0, 1.0, 2.5], n, p=[0.02, 0.5, 0.48]) if weighted else None
    with np.errstate(invalid="ignore"):
        twin = histogram_twin.sample_thresholds(X, round_weights(weight, n), 100)
    ours = make_sketch(X, weight, max_bins=100, count=3, block=30_000).thresholds()
    for one, other in zip(ours, twin, strict=True):
        np.testing.assert_array_equal(one, other)


def repeat_few_contents(n):
    """Rows of 3000 different contents, of which a sample has few."""
    return np.column_stack([np.arange(n) % 3000.0, np.arange(n) % 3.0])


def vary_late(n):
    """A column that varies after more than 100,000 rows only: they must be seen twice."""
    X = make_extreme_columns(n, seed=5)[0]
    X[:, 1] = np.arange(n) > 130_000
    return X


@pytest.mark.parametrize("make", [lambda n: make_extreme_columns(n, seed=2)[0], repeat_few_contents, vary_late])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_blocks_and_shards_of_many_rows_give_the_table_in_memory(make, weighted, dtype):
    n = 150_000
    X = make(n).astype(dtype)
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, n)
    weight = rng.choice([0.0, 0.7, 3.0], n) if weighted else None
    categories = {X.shape[1] - 1: 3}
    memory = make_dataset(X, labels, weight, categories=categories)
    for block in (n, 20_011):
        blocks = [X[i : i + block] for i in range(0, n, block)]
        assert_same_bins(memory, make_dataset(Rows(blocks), labels, weight, categories=categories), weight)
    reference = make_sketch(X, weight, categories=categories)
    order = rng.permutation(n)
    shuffled = X[order], None if weight is None else weight[order]
    for count, turn, (rows, row_weight) in ((2, True, (X, weight)), (5, False, (X, weight)), (3, False, shuffled)):
        other = make_sketch(rows, row_weight, categories=categories, count=count, turn=turn, block=40_000)
        for one, two in zip(reference.thresholds(), other.thresholds(), strict=True):
            np.testing.assert_array_equal(one, two)


def assert_same_bins(one, other, weight):
    """Codes, thresholds and flags, by the hashes of the rows and the trees that grow."""
    np.testing.assert_array_equal(one.hashes(), other.hashes())
    link = ClippedLink(AlphaLoss(2.0))
    boosters = [make_booster(data, link, 2.0, TreeGrowth(max_depth=6), weight=weight) for data in (one, other)]
    for booster in boosters:
        booster.boost(3)
    first, second = (vars(get_forest(booster)) for booster in boosters)
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


@pytest.mark.parametrize("n", [3, 4000])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_few_rows_give_the_table_in_memory(n, weighted):
    X, labels = make_extreme_columns(n, seed=1)
    labels[:3] = [0, 1, 2]
    weight = np.arange(n) % 4.0 if weighted else None
    memory = make_dataset(X, labels, weight, categories={7: 3}, max_bins=20)
    for block in (1, 999, n):
        blocks = [X[:0], *(X[i : i + block] for i in range(0, n, block))]
        assert_same_bins(memory, make_dataset(Rows(blocks), labels, weight, categories={7: 3}, max_bins=20), weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_those_of_the_twin(dtype):
    X, _ = make_extreme_columns(3000, dtype=dtype)
    categories = np.array([0] * 7 + [3], dtype=np.int32)
    sketch = make_sketch(X, None, categories={7: 3})
    codes = np.zeros(X.shape, dtype=np.uint8)
    cuts = sketch.thresholds()
    _core.encode(X, categories, cuts, codes, 2)
    known = X.astype(float)
    known[known[:, 7] > 2, 7] = np.nan  # A fourth category of three is unknown.
    twin = histogram_twin.encode(known, [(cuts[f].tolist(), categories[f]) for f in range(8)])
    np.testing.assert_array_equal(codes, np.where(np.isnan(known), 255, twin))


def encode_slowly(X, n_categories, thresholds):
    """Return the codes of a table cell by cell."""
    codes = np.zeros(X.shape, dtype=int)
    for (row, column), value in np.ndenumerate(X.astype(float)):
        if n_categories[column] > 0:
            known = value in range(n_categories[column])
            codes[row, column] = int(value) if known else 255
        else:
            codes[row, column] = 255 if np.isnan(value) else np.sum(thresholds[column] < value)
    return codes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_cuts", [1, 100, 254])
def test_missing_values_have_the_last_code_in_every_column(dtype, n_cuts):
    """That is also where a column has so few bins, or as many as there can be, and where categories are unknown."""
    rng = np.random.default_rng(n_cuts)
    n_categories = np.array([0, 3, 0, 254, 0, 1], dtype=np.int32)
    n = 4000  # Other threads are called for that many cells.
    X = np.round(rng.normal(scale=100, size=(n, 6)), 1).astype(dtype)
    X[:, n_categories > 0] = rng.integers(-2, 258, size=(n, 3))
    X[::7, 3], X[::5, 1], X[::3, 5] = 253, 2, 0
    X[1::9, 1::2] += 0.5
    X[rng.random(X.shape) < 0.2] = np.nan
    X[5:, 4] = np.nan
    X[3], X[4] = np.inf, -np.inf
    values = (np.arange(-2500, 2500) / 10).astype(dtype)  # Cells are equal to many of the thresholds.
    cuts = [np.sort(rng.choice(values, 0 if count else n_cuts, replace=False)).astype(float) for count in n_categories]
    expected = encode_slowly(X, n_categories, cuts)
    assert ((expected == 255).mean(axis=0) > 0.1).all()
    assert (expected < 255).any(axis=0).tolist() == [True] * 6
    for threads in (1, 3):
        for table in (X, np.asfortranarray(X)):
            codes = np.full(X.shape, 77, dtype=np.uint8)
            has_missing = _core.encode(table, n_categories, cuts, codes, threads)
            np.testing.assert_array_equal(codes, expected)
            assert has_missing.tolist() == [1] * 6
    whole = np.where(expected == 255, 0.0, X)
    whole[3:, 1] = 0.0
    whole[:3, 1] = np.nan, 7.0, 1.5
    has_missing = _core.encode(whole, n_categories, cuts, codes, 3)
    assert has_missing.tolist() == [0, 1, 0, 0, 0, 0]


def test_a_table_that_changes_between_passes_is_refused():
    X, labels = make_extreme_columns(100)
    rows = Rows([X])
    passes = iter([[X], [X[:50]]])
    rows.blocks = lambda: next(passes)
    with pytest.raises(ValueError, match="had 100 rows when it was read first, and 50 now"):
        make_dataset(rows, labels)


def test_the_border_refuses_nonsense():
    sketch = _core.Sketch(np.zeros(2, dtype=np.int32), 255)
    sketch.observe(np.ones((3, 2)), NONE, 1)
    state = sketch.state()
    for bad in (b"", b"nonsense", state[:-8], state[:40] + b"\x7f" + state[41:], bytes(len(state)), state + bytes(8)):
        with pytest.raises(ValueError, match="must be the state of a Sketch"):
            sketch.merge(bad)
    with pytest.raises(ValueError, match="the same columns"):
        _core.Sketch(np.zeros(3, dtype=np.int32), 255).merge(state)
    with pytest.raises(ValueError, match="all columns"):
        sketch.observe(np.ones((3, 3)), NONE, 1)
    with pytest.raises(ValueError, match="only where needs_draw"):
        sketch.draw(np.ones((3, 2)), NONE, 1)
    with pytest.raises(ValueError, match="one weight per row if"):
        sketch.observe(np.ones((3, 2)), np.ones(3), 1)
    with pytest.raises(ValueError, match="above the largest"):
        _core.Sketch(np.zeros(2, dtype=np.int32), 255, 1.0).observe(np.ones((3, 2)), np.full(3, 2.0), 1)
    many = _core.Sketch(np.zeros(2, dtype=np.int32), 255)
    rows = vary_late(150_000)[:, :2]
    for first in range(0, len(rows), 30_000):
        many.observe(rows[first : first + 30_000], NONE, 2)
    assert many.needs_draw
    with pytest.raises(ValueError, match="must be drawn first"):
        many.thresholds()
    many.draw(rows[:10], NONE, 1)
    with pytest.raises(ValueError, match="must be drawn first"):
        many.thresholds()
    with pytest.raises(ValueError, match="observed before"):
        many.observe(rows, NONE, 1)
    with pytest.raises(ValueError, match="only the rows that were observed"):
        many.draw(rows, NONE, 1)
