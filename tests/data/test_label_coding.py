"""Columns of many categories as numbers: a slow twin, no row's own label, any order of the rows."""

import numpy as np
import pytest

from untwist.data.label_coding import N_PARTS, LabelCoding


def draw_coding(n_rows=120, n_categories=15, n_classes=2, seed=0, weights="ones", missing=0.1, decides=False):
    """A table of two columns, the first to be coded, and what it was made of."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, n_categories, n_rows).astype(float)
    labels = rng.integers(0, n_classes, n_rows)
    if decides:
        labels = category.astype(int) % n_classes
    category[rng.random(n_rows) < missing] = np.nan
    weight = {
        "ones": np.ones(n_rows),
        "whole": rng.integers(0, 4, n_rows).astype(float),
        "shares": rng.random(n_rows) * 1e-6,
        "extreme": 10.0 ** rng.uniform(-9, 9, n_rows),
    }[weights]
    table = np.column_stack([category, rng.integers(0, 30, n_rows)])
    return table, labels.astype(np.uint32), weight, n_categories, n_classes


def read(table, labels, weight, n_categories, n_classes):
    return LabelCoding.read([table], {0: n_categories}, labels, weight, n_classes)


def find_prior_rows(codes, values, weight):
    """The variance of labels within categories over that between them, as an analysis of variance has it."""
    groups = [codes == code for code in np.unique(codes[weight > 0])]
    rows = np.array([weight[group].sum() for group in groups])
    means = np.array([np.average(values[group], weights=weight[group]) for group in groups])
    total, mean = rows.sum(), np.average(values, weights=weight)
    if total - len(groups) < 1:
        return np.inf
    squares = [(weight[group] * (values[group] - own) ** 2).sum() for group, own in zip(groups, means, strict=True)]
    within = sum(squares) / (total - len(groups))
    between = (rows * (means - mean) ** 2).sum() - (len(groups) - 1) * within
    return within * (total - (rows**2).sum() / total) / between if between > 1e-9 else np.inf


def shrink(codes, values, weight, code, of, prior_rows, mean):
    """The mean label of some rows of a category, drawn towards the mean of all."""
    chosen = (codes == code) & of
    rows = weight[chosen].sum()
    if rows == 0 or prior_rows == np.inf:
        return mean
    return (weight[chosen] @ values[chosen] + prior_rows * mean) / (rows + prior_rows)


@pytest.mark.parametrize("weights", ["ones", "whole", "shares"])
@pytest.mark.parametrize("decides", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_twin(seed, decides, weights):
    table, labels, weight, n_categories, n_classes = draw_coding(seed=seed, decides=decides, weights=weights)
    rng = np.random.default_rng(seed)
    trains = np.where(rng.random(len(labels)) < 0.7, weight, 0.0)
    coding = read(table, labels, weight, n_categories, n_classes)
    numbers, rows = coding.number_categories(trains)[0], coding.number_rows(trains)[:, 0]
    parts = find_parts(table, labels, weight)

    known = ~np.isnan(table[:, 0])
    scale = max(np.count_nonzero(trains), trains.sum()) / trains.sum()
    codes, values, mass = table[:, 0][known], labels[known].astype(float), trains[known] * scale
    mean = np.average(values, weights=mass)
    prior_rows = find_prior_rows(codes, values, mass)
    expected = [shrink(codes, values, mass, code, True, prior_rows, mean) for code in range(n_categories)]
    np.testing.assert_allclose(numbers, [*expected, mean], atol=2e-5)
    for row, number in zip(np.flatnonzero(known), rows[known], strict=True):
        of = (parts[known] != parts[row]) if trains[row] > 0 else True
        own = shrink(codes, values, mass, table[row, 0], of, prior_rows, mean)
        np.testing.assert_allclose(number, own, atol=2e-5)
    assert np.isnan(rows[~known]).all()


def find_parts(table, labels, weight):
    """The contents of a category that have a weight, sorted by their hashes, are dealt out in turn."""
    coding = read(table, labels, weight, 50, 2)
    parts = np.zeros(len(labels), dtype=int)
    for category in np.unique(table[:, 0][~np.isnan(table[:, 0])]):
        rows = np.flatnonzero((table[:, 0] == category) & (weight > 0))
        rows = rows[np.lexsort((weight[rows], labels[rows], coding.contents[rows]))]
        contents = list(dict.fromkeys(coding.contents[rows].tolist()))
        for row in rows:
            parts[row] = contents.index(coding.contents[row]) % N_PARTS
    return parts


@pytest.mark.parametrize("weights", ["ones", "whole", "shares", "extreme"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_order_of_the_rows_shows(n_classes, weights):
    table, labels, weight, *rest = draw_coding(n_classes=n_classes, weights=weights)
    order = np.random.default_rng(1).permutation(len(labels))
    first = read(table, labels, weight, *rest)
    second = read(table[order], labels[order], weight[order], *rest)
    np.testing.assert_array_equal(first.number_categories(weight)[0], second.number_categories(weight[order])[0])
    np.testing.assert_array_equal(first.number_rows(weight)[order], second.number_rows(weight[order]))


def test_blocks_of_rows_are_one_table():
    table, labels, weight, n_categories, n_classes = draw_coding()
    whole = read(table, labels, weight, n_categories, n_classes)
    parts = LabelCoding.read([table[:50], table[50:]], {0: n_categories}, labels, weight, n_classes)
    np.testing.assert_array_equal(whole.number_rows(weight), parts.number_rows(weight))


@pytest.mark.parametrize("weights", ["ones", "whole", "extreme"])
def test_a_row_never_has_its_own_label(weights):
    """All else the same, the label of a row and of its copies changes no number of theirs but by the mean of all."""
    table, labels, weight, n_categories, n_classes = draw_coding(weights=weights, missing=0.0)
    table[:5] = table[0]  # Copies of a row.
    before = read(table, labels, weight, n_categories, n_classes)
    changed = np.append(1 - labels[:5], labels[5:]).astype(np.uint32)
    after = read(table, changed, weight, n_categories, n_classes)
    tallies = [one._tally(0, weight) for one in (before, after)]
    part, code = before._parts[0, 0], int(table[0, 0])
    others = [one.by_category[code] - one.units[code, part] for one in tallies]
    assert (before._parts[0, :5] == part).all()
    np.testing.assert_array_equal(*others)


def test_whole_weights_are_copies():
    table, labels, weight, n_categories, n_classes = draw_coding(weights="whole", missing=0.0)
    table[:, 1] = np.arange(len(table))
    copies = np.repeat(np.arange(len(labels)), weight.astype(int))
    weighed = read(table, labels, weight, n_categories, n_classes)
    copied = read(table[copies], labels[copies], np.ones(len(copies)), n_categories, n_classes)
    ones = np.ones(len(copies))
    np.testing.assert_array_equal(weighed.number_categories(weight)[0], copied.number_categories(ones)[0])


def test_a_column_that_says_nothing_becomes_a_constant_and_one_that_decides_is_not_shrunk():
    table, labels, weight, n_categories, n_classes = draw_coding(n_rows=4000, decides=True, missing=0.0)
    numbers = read(table, labels, weight, n_categories, n_classes).number_categories(weight)[0]
    np.testing.assert_array_equal(numbers[:-1], np.arange(n_categories) % 2)
    # Each category has as many of both labels as all others, which is less than chance would have it.
    even = np.tile([0, 1], 2000).astype(np.uint32)
    table[:, 0] = np.repeat(np.arange(20), 200)
    numbers = read(table, even, weight, 20, 2).number_categories(weight)[0]
    np.testing.assert_array_equal(numbers, np.full(21, 0.5, dtype=np.float32))


def test_names_of_single_rows_say_nothing():
    table = np.column_stack([np.arange(50.0), np.zeros(50)])
    labels = (np.arange(50) % 2).astype(np.uint32)
    numbers = read(table, labels, np.ones(50), 50, 2).number_rows(np.ones(50))
    assert len(np.unique(numbers)) == 1


def test_rows_that_are_all_alike_in_a_category_are_dealt_out_one_by_one():
    category = np.repeat(np.arange(30.0), 5)
    labels = (category % 2).astype(np.uint32)
    numbers = read(category[:, None], labels, np.ones(150), 30, 2).number_rows(np.ones(150))[:, 0]
    np.testing.assert_array_equal(numbers, labels)


@pytest.mark.parametrize("n_classes", [3, 6])
def test_several_classes_have_the_direction_in_which_shares_differ_most(n_classes):
    table, labels, weight, n_categories, _ = draw_coding(n_rows=600, n_classes=n_classes, missing=0.0, decides=True)
    noisy = np.random.default_rng(0).integers(0, n_classes, 600)
    labels[::3] = noisy[::3]
    coding = read(table, labels, weight, n_categories, n_classes)
    shares = np.array([np.bincount(labels[table[:, 0] == one], minlength=n_classes) for one in range(n_categories)])
    rows = shares.sum(axis=1)
    apart = shares / rows[:, None] - shares.sum(axis=0) / rows.sum()
    spread = [rows @ (apart @ one) ** 2 for one in (coding._class_numbers[0], *np.eye(n_classes))]
    directions = np.random.default_rng(1).normal(size=(200, n_classes))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    spread += [rows @ (apart @ one) ** 2 for one in directions]
    np.testing.assert_allclose(np.linalg.norm(coding._class_numbers[0]), 1.0)
    assert spread[0] >= max(spread) * (1 - 1e-12)


def test_rows_without_a_weight_take_no_turn():
    table, labels, _, n_categories, n_classes = draw_coding(seed=4)
    weight = np.where(np.arange(len(labels)) % 3 == 0, 0.0, 1.0)
    present = weight > 0
    everything = read(table, labels, weight, n_categories, n_classes).number_rows(weight)
    alone = read(table[present], labels[present], weight[present], n_categories, n_classes)
    np.testing.assert_array_equal(everything[present], alone.number_rows(weight[present]))


def test_copies_stay_together_unless_there_is_no_other_column():
    codes = np.repeat([0.0, 1.0], 20)
    labels = np.tile([0, 1], 20).astype(np.uint32)
    of_user = np.column_stack([codes, codes])
    numbers = read(of_user, labels, np.ones(40), 2, 2).number_rows(np.ones(40))
    np.testing.assert_array_equal(numbers, np.float32(0.5))  # Other rows of a user say nothing about a new one.
    parts = read(of_user[:, :1], labels, np.ones(40), 2, 2)._parts
    assert set(parts[0]) == {0, 1, 2, 3, 4}


def test_huge_weights_give_numbers():
    table, labels, _, n_categories, n_classes = draw_coding(seed=5)
    huge = read(table, labels, np.full(len(labels), 1e300), n_categories, n_classes)
    for numbers in huge.number_categories(np.full(len(labels), 1e300)).values():
        assert np.isfinite(numbers).all()
