"""Rows set aside by their contents: the draws themselves. What the folds of a fit do is in test_automatic.py."""

import numpy as np
import pytest
from scipy.stats import binom

from helpers.folds_twin import hold_out_slowly, split_slowly
from untwist.data.folds import (
    FREQUENT,
    draw_folds,
    draw_share,
    hold_out_share,
    mix_bits,
    split_into_folds,
    split_items_into_folds,
)


def numbers(*values):
    return np.array(values, dtype=np.uint64)


def test_mixed_is_splitmix64():
    """The first numbers of the published generator from the seed 0."""
    step = 0x9E3779B97F4A7C15
    states = numbers(0, step, 2 * step % 2**64)
    assert mix_bits(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_about_a_share_of_every_class_is_held_out(share):
    contents, labels = np.arange(1000, dtype=np.uint64), (np.arange(1000) < 100).astype(np.uint32)
    held = hold_out_share(contents, labels, np.ones(1000), share, 3)
    assert set(np.unique(held)) == {0.0, 1.0}
    for label in (0, 1):
        assert held[labels == label].mean() == pytest.approx(share, abs=0.006)
    assert (hold_out_share(contents, labels, np.ones(1000), share, 4) != held).any()


def test_a_content_that_weighs_more_than_may_be_held_out_is_shared_out():
    held = hold_out_share(numbers(1, 2, 3, 4), np.zeros(4, np.uint32), np.array([1.0, 1.0, 1.0, 7.0]), 0.4, 0)
    assert held[3] == 0.4
    assert set(held[:3]) <= {0.0, 1.0}
    assert held[:3].sum() == 1.0  # One of three light rows is held out.


def test_copies_of_a_frequent_content_with_several_labels_are_drawn_binomially():
    copies, seeds = 3 * FREQUENT, range(300)
    contents, labels = np.zeros(2 * copies, np.uint64), np.repeat(np.array([0, 1], np.uint32), copies)
    held = np.array([hold_out_share(contents, labels, np.ones(2 * copies), 0.2, seed) for seed in seeds])
    assert (held == held[:, :1]).mean() < 0.6  # The classes are drawn apart.
    drawn = copies * held[:, 0]
    np.testing.assert_allclose(drawn, np.rint(drawn), atol=1e-9)
    assert abs(drawn.mean() - 0.2 * copies) < 4 * np.sqrt(copies * 0.2 * 0.8 / len(seeds))
    assert drawn.var() == pytest.approx(copies * 0.2 * 0.8, rel=0.35)
    assert drawn.max() <= binom.ppf(1 - 1e-6, copies, 0.2)


def test_one_label_less_than_frequent_is_no_sample_of_its_own():
    for labels, weight in ([0] * FREQUENT, 1.0), ([0, 1] * (FREQUENT // 2 - 1), 1.0):
        n = len(labels)
        held = hold_out_share(np.zeros(n, np.uint64), np.array(labels, np.uint32), np.full(n, weight), 0.3, 0)
        np.testing.assert_array_equal(held, 0.3)  # Heavy contents are shared out evenly, not drawn.


def test_where_none_of_few_copies_is_drawn_each_gives_a_part():
    contents, labels = np.zeros(10, np.uint64), np.arange(10, dtype=np.uint32) % 2
    held = [hold_out_share(contents, labels, np.ones(10), 0.1, seed) for seed in range(40)]
    assert all(one.any() for one in held)
    assert any((one == 0.1).all() for one in held)
    assert all((one < 1).all() for one in held)  # Some copies stay.
    assert any(len(set(one)) > 1 for one in held)  # Ten copies are enough for some to be drawn.


def test_the_only_copy_of_a_class_and_the_last_row_stay():
    contents, labels = np.zeros(21, np.uint64), (np.arange(21) > 0).astype(np.uint32)
    assert all(hold_out_share(contents, labels, np.ones(21), 0.5, seed)[0] == 0.0 for seed in range(40))
    for seed in range(10):
        assert sorted(hold_out_share(numbers(1, 2), np.zeros(2, np.uint32), np.ones(2), 0.9, seed)) == [0.0, 1.0]


def test_rows_that_weigh_exactly_their_share_stay_whole():
    for n in (2, 3, 5, 10):
        held = hold_out_share(np.arange(n, dtype=np.uint64), np.zeros(n, np.uint32), np.ones(n), 1.0 / n, 0)
        assert sorted(held) == [0.0] * (n - 1) + [1.0]


def test_a_frequent_content_does_not_count_among_the_others():
    contents = np.append(np.zeros(20, np.uint64), numbers(1, 2, 3))
    labels = np.append(np.arange(20) % 2, [0, 0, 0]).astype(np.uint32)
    assert all(hold_out_share(contents, labels, np.ones(23), 0.34, seed)[20:].sum() == 1.0 for seed in range(40))


def test_a_heavy_content_is_dealt_to_all_folds():
    held = split_into_folds(
        np.arange(5, dtype=np.uint64), np.zeros(5, np.uint32), np.array([6.0, 1.0, 1.0, 1.0, 1.0]), 2, 0
    )
    assert held[:, 0].tolist() == [3.0, 3.0]
    assert held[:, 1:].sum(axis=1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 6])
def test_no_fold_is_empty(n_rows):
    weight = np.arange(1.0, n_rows + 1.0)
    folds = split_into_folds(np.arange(n_rows, dtype=np.uint64), np.zeros(n_rows, np.uint32), 0.3 * weight, 5, seed=0)
    assert folds.any(axis=1).all()
    np.testing.assert_allclose(folds.sum(axis=0), 0.3 * weight)


def test_weights_that_are_no_counts_are_set_aside_whole():
    weight = np.tile([0.5, 1.0, 2.25], 40)
    held = split_into_folds(np.arange(120, dtype=np.uint64), np.zeros(120, np.uint32), weight, 4, 0)
    np.testing.assert_allclose(held.sum(axis=0), weight)
    assert ((held > 0).sum(axis=0) == 1).all()


def test_a_copy_that_lies_in_one_fold_as_a_whole_leaves_no_remainder_to_train_on():
    rng = np.random.default_rng(0)
    for weight in (rng.choice([0.3, 1.0, 2.0], 600), rng.exponential(size=600)):
        held = split_into_folds(np.repeat(np.arange(300, dtype=np.uint64), 2), np.zeros(600, np.uint32), weight, 5, 0)
        rest = (weight - held)[held > 0]
        assert (rest == 0).mean() > 0.9
        assert rest[rest > 0].min(initial=1.0) > 1e-3


def test_folds_of_a_frequent_content_add_up_and_are_even_on_average():
    copies = 40
    contents, labels = np.zeros(2 * copies, np.uint64), np.arange(2 * copies, dtype=np.uint32) % 2
    sizes, alike = [], 0
    for seed in range(100):
        held = split_into_folds(contents, labels, np.ones(2 * copies), 4, seed)
        np.testing.assert_array_equal(held.sum(axis=0), 1.0)
        assert set(np.unique(held)) == {0.0, 1.0}
        sizes.append(held[:, labels == 0].sum(axis=1))
        alike += (held[:, labels == 1].sum(axis=1) == sizes[-1]).all()
    assert alike < 50  # The classes are drawn apart.
    np.testing.assert_allclose(np.mean(sizes, axis=0), 10.0, atol=1.2)
    assert np.var(sizes) == pytest.approx(copies * 0.25 * 0.75, rel=0.4)


def test_huge_weights_are_drawn_by_their_mean():
    held = hold_out_share(numbers(5, 5), np.array([0, 1], np.uint32), np.array([1e12, 3e12]), 0.25, 0)
    np.testing.assert_allclose(held, 0.25)


def test_draws_without_looking_at_other_rows():
    contents = np.arange(20_000, dtype=np.uint64)
    assert draw_share(contents, 0.3, 1).mean() == pytest.approx(0.3, abs=0.015)
    assert draw_share(contents, 0.0, 1).sum() == 0
    assert draw_share(contents, 1.0, 1).all()
    folds = draw_folds(contents, np.full(20_000, 2.0), 5, 1)
    np.testing.assert_allclose(folds.sum(axis=1) / 40_000, 0.2, atol=0.015)
    np.testing.assert_array_equal(folds[0] > 0, draw_share(contents, 0.2, 1) > 0)
    assert (draw_share(contents, 0.3, 2) != draw_share(contents, 0.3, 1)).any()


# Items with several labels


def draw_items(n_items=200, seed=0, values=None, classes=2):
    """Items with one to five labels each: hashes, items, labels, weights."""
    rng = np.random.default_rng(seed)
    content = rng.integers(0, 2**63, n_items) if values is None else rng.integers(0, values, n_items)
    items = np.repeat(np.arange(n_items), rng.integers(1, 6, n_items))
    labels = rng.integers(0, classes, len(items)).astype(np.uint32)
    return content.astype(np.uint64)[items], items, labels, rng.integers(0, 3, len(items)).astype(float)


@pytest.mark.parametrize("values", [None, 1000, 30, 3, 1])
@pytest.mark.parametrize("classes", [2, 4])
def test_all_labels_of_an_item_lie_in_one_fold(values, classes):
    for seed in range(5):
        hashes, items, labels, weight = draw_items(seed=seed, values=values, classes=classes)
        folds = split_items_into_folds(hashes, items, labels, weight, 5, seed)
        assert folds.shape == (5, len(items))
        np.testing.assert_array_equal(folds.sum(axis=0), weight)
        assert np.count_nonzero(folds, axis=0).max() == 1
        for item in np.unique(items):
            assert np.count_nonzero(folds[:, items == item].sum(axis=1)) <= 1


def test_copies_stay_together_unless_they_are_a_sample_of_their_own():
    hashes = np.repeat(np.arange(40, dtype=np.uint64), 3)
    items, labels = np.arange(120), (np.arange(120) % 2).astype(np.uint32)
    folds = split_items_into_folds(hashes, items, labels, np.ones(120), 5, 0)
    for content in range(40):
        assert np.count_nonzero(folds[:, hashes == content].sum(axis=1)) == 1
    frequent = np.repeat(np.arange(10, dtype=np.uint64), 12)
    folds = split_items_into_folds(frequent, items, labels, np.ones(120), 5, 0)
    for content in range(10):
        assert np.count_nonzero(folds[:, frequent == content].sum(axis=1)) == 5
    heavy = np.zeros(120, np.uint64)
    folds = split_items_into_folds(heavy, items, np.zeros(120, np.uint32), np.ones(120), 5, 0)
    np.testing.assert_array_equal(folds.sum(axis=1), 24)


def test_every_fold_has_about_as_many_items_of_each_kind():
    rng = np.random.default_rng(0)
    items = np.repeat(np.arange(300), 3)
    truth = rng.random(300) < 0.2
    labels = np.where(rng.random(900) < 0.2, ~truth[items], truth[items]).astype(np.uint32)
    folds = split_items_into_folds(items.astype(np.uint64), items, labels, np.ones(900), 5, 7)
    n_positive = np.bincount(items, labels).astype(int)
    fold_of_item = folds[:, ::3].argmax(axis=0)
    for votes in range(4):
        counts = np.bincount(fold_of_item[n_positive == votes], minlength=5)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(folds.sum(axis=1), 180)


def test_folds_of_items_know_no_order_of_rows_and_no_absent_rows():
    hashes, items, labels, weight = draw_items(seed=3, values=60)
    folds = split_items_into_folds(hashes, items, labels, weight, 5, 1)
    order = np.random.default_rng(1).permutation(len(items))
    again = split_items_into_folds(hashes[order], items[order], labels[order], weight[order], 5, 1)
    np.testing.assert_array_equal(again, folds[:, order])
    present = weight > 0
    without = split_items_into_folds(hashes[present], items[present], labels[present], weight[present], 5, 1)
    np.testing.assert_array_equal(without, folds[:, present])
    other = split_items_into_folds(hashes, items, labels, weight, 5, 2)
    assert (other != folds).any()


def test_there_are_as_many_folds_as_items_and_two_at_least():
    items, labels = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1], np.uint32)
    assert split_items_into_folds(items.astype(np.uint64), items, labels, np.ones(5), 5, 0).shape == (3, 5)
    with pytest.raises(ValueError, match="two different items at least"):
        split_items_into_folds(numbers(1, 1), np.array([0, 0]), labels[:2], np.ones(2), 5, 0)


def split_items_slowly(hashes, items, labels, weight, n_folds, seed):
    """Folds of items, one row after the other."""
    rows = [row for row in range(len(items)) if weight[row] > 0]
    total = sum(weight[row] for row in rows)
    group = {row: {row} for row in rows}

    def join(one, other):
        if group[one] is not group[other]:
            group[one] |= group[other]
            for row in group[other]:
                group[row] = group[one]

    for content in {int(hashes[row]) for row in rows}:
        copies = [row for row in rows if hashes[row] == content]
        mass = sum(weight[row] for row in copies)
        several_labels = len({labels[row] for row in copies}) > 1
        several_items = len({items[row] for row in copies}) > 1
        if not (several_items and ((mass >= FREQUENT and several_labels) or mass > total / n_folds * (1 + 1e-9))):
            for row in copies:
                join(copies[0], row)
    for item in {items[row] for row in rows}:
        own = [row for row in rows if items[row] == item]
        for row in own:
            join(own[0], row)
    units = {id(one): one for one in group.values()}.values()
    salted = mix_bits(hashes ^ mix_bits(numbers(seed)))

    def find_key(unit):
        mass = [sum(weight[row] for row in unit if labels[row] == label) for label in range(max(labels) + 1)]
        most = max(mass)
        return (
            mass.index(most),
            most / sum(mass),
            min(int(salted[row]) for row in unit),
            min(items[row] for row in unit),
        )

    folds = np.zeros((min(n_folds, len(units)), len(items)))
    for place, unit in enumerate(sorted(units, key=find_key)):
        for row in unit:
            folds[place % n_folds, row] = weight[row]
    return folds


@pytest.mark.parametrize("values", [2, 5, 20, 1000])
@pytest.mark.parametrize("n_items", [3, 12, 60])
def test_folds_of_items_are_those_of_a_slow_twin(n_items, values):
    for seed in range(8):
        hashes, items, labels, weight = draw_items(n_items, seed, values, classes=3)
        rng = np.random.default_rng(seed)
        wandering = rng.random(len(items)) < 0.1  # Rows of an item need not be alike.
        hashes = np.where(wandering, rng.integers(0, values, len(items)).astype(np.uint64), hashes)
        expected = split_items_slowly(hashes, items, labels, weight, 5, seed)
        if len(expected) < 2:
            with pytest.raises(ValueError, match="two different items"):
                split_items_into_folds(hashes, items, labels, weight, 5, seed)
            continue
        np.testing.assert_array_equal(split_items_into_folds(hashes, items, labels, weight, 5, seed), expected)


def draw_rows_with_copies(seed, kind):
    """Few or many contents, one to three classes, and weights of a kind; the order of rows is drawn too."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 90))
    hashes = rng.integers(0, rng.choice([2, 6, 40, 10**6]), n).astype(np.uint64)
    labels = rng.choice([0, 3, 7][: rng.integers(1, 4)], n).astype(np.uint32)
    weight = {
        "ones": np.ones(n),
        "counts": rng.integers(0, 5, n).astype(float),
        "fractions": rng.exponential(size=n),
        "spread": np.floor(10.0 ** rng.uniform(0, 4, n)),
        "huge": np.where(rng.random(n) < 0.2, 1e10, 1.0),
    }[kind]
    return hashes, labels, weight


WEIGHTS = ["ones", "counts", "fractions", "spread", "huge"]


@pytest.mark.parametrize("kind", WEIGHTS)
def test_what_is_held_out_is_that_of_a_slow_twin(kind):
    for seed in range(12):
        rows, share = draw_rows_with_copies(seed, kind), [0.1, 0.3, 0.5, 0.9][seed % 4]
        expected = hold_out_slowly(*rows, share, seed)
        np.testing.assert_allclose(hold_out_share(*rows, share, seed), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_folds_are_those_of_a_slow_twin(kind):
    for seed in range(12):
        rows, n_folds = draw_rows_with_copies(seed, kind), 2 + seed % 5
        expected = split_slowly(*rows, n_folds, seed)
        found = split_into_folds(*rows, n_folds, seed)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * max(1.0, rows[2].max()))
        np.testing.assert_allclose(found.sum(axis=0), rows[2], rtol=1e-9)
