"""Groups of rows and folds of one's own: what is read, dealt out and refused. Fits are in classifier/test_groups.py."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

from untwist.data import folds as folds_module
from untwist.data.folds import MOST_DEALT, hold_out_groups, mix_bits, split_groups_into_folds
from untwist.data.groups import (
    OwnFolds,
    RowGroups,
    check_own_folds,
    check_trained_classes,
    keep_items_in_groups,
    read_groups,
    read_own_folds,
)

Y = np.array([0, 1] * 6)


def draw_groups(n=400, n_groups=37, n_classes=3, seed=0):
    """Hashes of rows, groups of very different sizes, labels that go with them, and weights."""
    rng = np.random.default_rng(seed)
    groups = np.minimum(rng.geometric(0.08, n), n_groups)
    labels = np.where(rng.random(n) < 0.5, groups % n_classes, rng.integers(n_classes, size=n))
    hashes = rng.integers(2**63, size=n, dtype=np.uint64)
    return hashes, groups.astype(np.uint64), labels.astype(np.uint32), rng.integers(0, 4, n).astype(float)


def deal_slowly(groups, labels, weight, n_folds, order):
    """Each group in turn to where the sum of squared shares is lowest after it; every sum is taken anew."""
    counts = [(labels == label) * weight for label in np.unique(labels)]
    fold_of_group = {}

    def find_cost(choice):
        shares = [
            [one[np.isin(groups, [g for g, f in choice.items() if f == fold])].sum() / one.sum() for one in counts]
            for fold in range(n_folds)
        ]
        return np.sum(np.square(shares)), [sum(row) for row in shares]

    for group in order:
        costs = [find_cost(fold_of_group | {group: fold})[0] for fold in range(n_folds)]
        close = [fold for fold in range(n_folds) if costs[fold] <= min(costs) + 1e-12]
        filled = find_cost(fold_of_group)[1]
        fold_of_group[group] = min(close, key=lambda fold: filled[fold])
    return np.array([fold_of_group.get(one, -1) for one in groups.tolist()])


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_dealt_out_one_by_one_the_heaviest_first(seed):
    hashes, groups, labels, _ = draw_groups(120, 15, seed=seed)
    weight = np.random.default_rng(seed).exponential(size=120)
    weight[::10] = 0.0
    folds = split_groups_into_folds(hashes, groups, labels, weight, 3, seed)
    mass = {group: weight[groups == group].sum() for group in groups.tolist()}
    order = sorted((group for group in mass if mass[group] > 0), key=lambda group: -mass[group])
    expected = deal_slowly(groups, labels, weight, 3, order)
    assert np.array_equal(folds, np.where(expected == np.arange(3)[:, None], weight, 0.0))


@pytest.mark.parametrize("seed", range(3))
def test_classes_are_spread_as_far_as_groups_allow_in_any_order_of_the_rows(seed):
    hashes, groups, labels, weight = draw_groups(seed=seed)
    folds = split_groups_into_folds(hashes, groups, labels, weight, 5, seed)
    heaviest = max(weight[(groups == g) & (labels == k)].sum() for g in np.unique(groups) for k in range(3))
    for label in range(3):
        mass = folds[:, labels == label].sum(axis=1)
        assert np.ptp(mass) <= heaviest
    order = np.random.default_rng(seed).permutation(len(labels))
    shuffled = split_groups_into_folds(hashes[order], groups[order], labels[order], weight[order], 5, seed)
    assert np.array_equal(shuffled, folds[:, order])
    renamed = split_groups_into_folds(hashes, groups * np.uint64(7919), labels, weight, 5, seed)
    assert np.array_equal(renamed, folds)  # What groups are called plays no part.


def test_of_very_many_groups_the_light_ones_are_drawn():
    n = 3 * MOST_DEALT
    hashes = np.random.default_rng(0).integers(2**63, size=n, dtype=np.uint64)
    labels = (np.arange(n) % 4 == 0).astype(np.uint32)
    folds = split_groups_into_folds(hashes, np.arange(n, dtype=np.uint64), labels, np.ones(n), 5, 0)
    assert np.array_equal(folds.sum(axis=0), np.ones(n))
    for label in (0, 1):
        assert folds[:, labels == label].sum(axis=1) / (labels == label).sum() == pytest.approx([0.2] * 5, abs=0.02)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_about_a_share_is_held_out_in_whole_groups(share):
    hashes, groups, labels, weight = draw_groups(2000, 150, 2, seed=1)
    held_out = hold_out_groups(hashes, groups, labels, weight, share, 0)
    assert set(held_out[weight > 0]) == {0.0, 1.0}
    for group in np.unique(groups):
        assert len(set(held_out[(groups == group) & (weight > 0)])) <= 1
    for label in (0, 1):
        here = labels == label
        assert np.average(held_out[here], weights=weight[here]) == pytest.approx(share, abs=0.03)


def deal_to_targets(hashes, groups, labels, weight, targets, seed, most_dealt):
    """Return the part of each group with a weight, one group after the other, from the words of `_deal_out`."""
    salted = mix_bits(hashes ^ mix_bits(np.array([seed], dtype=np.uint64)))
    present = sorted({int(g) for g, w in zip(groups, weight, strict=True) if w > 0})
    rows = {g: np.flatnonzero((groups == g) & (weight > 0)) for g in present}
    chance = {g: min(int(one) for one in salted[rows[g]]) for g in present}
    order = sorted(present, key=lambda g: (-weight[rows[g]].sum(), chance[g], g))
    totals = {k: weight[labels == k].sum() for k in sorted(set(labels[weight > 0].tolist()))}
    share = {g: [weight[rows[g]][labels[rows[g]] == k].sum() / totals[k] for k in totals] for g in present}
    filled, part = np.zeros((len(targets), len(totals))), {}
    for place, group in enumerate(order):
        if place >= most_dealt:
            drawn = float(mix_bits(np.array([chance[group]], dtype=np.uint64))[0] >> np.uint64(11)) / 2**53
            part[group] = next(one for one in range(len(targets)) if drawn < sum(targets[: one + 1]))
            continue

        def find_cost(one, group=group):
            after = filled.copy()
            after[one] += share[group]
            return sum(float(x) ** 2 / target for row, target in zip(after, targets, strict=True) for x in row)

        costs = [find_cost(one) for one in range(len(targets))]
        close = [one for one in range(len(targets)) if costs[one] <= min(costs) + 1e-9]
        part[group] = min(close, key=lambda one: filled[one].sum() / targets[one])
        filled[part[group]] += share[group]
    return part


@pytest.mark.parametrize("most_dealt", [0, 4, MOST_DEALT])
@pytest.mark.parametrize("seed", range(5))
def test_groups_that_are_dealt_out_and_drawn_are_those_of_a_slow_twin(seed, most_dealt, monkeypatch):
    monkeypatch.setattr(folds_module, "MOST_DEALT", most_dealt)
    hashes, groups, labels, weight = draw_groups(90, 14, n_classes=1 + seed % 3, seed=seed)
    if seed % 2:
        weight[:] = 1.0  # Many groups weigh the same.
        groups = np.arange(90, dtype=np.uint64) % np.uint64(15)
    present = weight > 0
    share = [0.2, 0.5, 0.8][seed % 3]
    part = deal_to_targets(hashes, groups, labels, weight, [1.0 - share, share], seed, most_dealt)
    if len(set(part.values())) == 2:
        held_out = hold_out_groups(hashes, groups, labels, weight, share, seed)
        assert held_out[present].tolist() == [part[g] for g in groups[present].tolist()]
        assert not held_out[~present].any()
    part = deal_to_targets(hashes, groups, labels, weight, [0.25] * 4, seed, most_dealt)
    found = split_groups_into_folds(hashes, groups, labels, weight, 4, seed)
    expected = np.zeros((4, 90))
    for row in np.flatnonzero(present):
        expected[part[int(groups[row])], row] = weight[row]
    np.testing.assert_array_equal(found, expected[expected.any(axis=1)])


def test_where_all_groups_or_none_would_be_held_out_the_lightest_makes_the_difference():
    hashes, labels = np.arange(6, dtype=np.uint64), np.zeros(6, dtype=np.uint32)
    groups = np.array([1, 1, 1, 2, 2, 3], dtype=np.uint64)
    assert hold_out_groups(hashes, groups, labels, np.ones(6), 1e-9, 0).tolist() == [0, 0, 0, 0, 0, 1]
    assert hold_out_groups(hashes, groups, labels, np.ones(6), 1 - 1e-9, 0).tolist() == [1, 1, 1, 1, 1, 0]


def test_one_group_at_least_is_held_out_and_one_is_not():
    hashes, labels = np.arange(9, dtype=np.uint64), np.zeros(9, dtype=np.uint32)
    groups = np.array([1, 1, 1, 2, 2, 2, 3, 3, 3], dtype=np.uint64)
    for share in (0.01, 0.99):
        held_out = hold_out_groups(hashes, groups, labels, np.ones(9), share, 0)
        assert held_out.sum() == (3 if share < 0.5 else 6)


def test_a_single_group_cannot_be_split():
    hashes = np.arange(4, dtype=np.uint64)
    with pytest.raises(ValueError, match="groups must be two at least"):
        split_groups_into_folds(hashes, np.ones(4, np.uint64), np.array([0, 1, 0, 1], np.uint32), np.ones(4), 5, 0)
    two = np.array([1, 1, 2, 2], dtype=np.uint64)
    folds = split_groups_into_folds(hashes, two, np.array([0, 1, 0, 1], np.uint32), np.ones(4), 5, 0)
    assert folds.shape == (2, 4)  # There are fewer folds where there is not a group for each.


# ---- names ----


def test_workers_know_a_group_by_its_name_whatever_its_type():
    own = np.arange(3, dtype=np.uint64)
    whole = read_groups([5, 7, 5], 3).hash_rows(own)
    assert np.array_equal(whole, read_groups([5.0, 7.0, 5.0], 3).hash_rows(own))
    assert np.array_equal(whole, read_groups(["5", "7", "5"], 3).hash_rows(own))
    assert whole[0] == whole[2] != whole[1]
    assert np.array_equal(read_groups([None, 7, np.nan], 3).hash_rows(own)[[0, 2]], own[[0, 2]])
    assert np.array_equal(read_groups([None] * 3, 3).hash_rows(own), own)


def test_groups_are_the_same_by_other_names():
    groups = read_groups(["a", "b", None, "a"], 4)
    assert groups.is_same_as(read_groups([2, 1, None, 2], 4))
    assert not groups.is_same_as(read_groups([2, 1, None, 1], 4))
    assert not groups.is_same_as(read_groups([2, 1, 3, 2], 4))
    assert not groups.is_same_as(read_groups([2, 2, None, 2], 4))
    assert groups.name_rows().tolist() == ["a", "b", None, "a"]
    assert groups.number_rows().tolist() == [0, 1, 4, 0]


def test_an_item_lies_within_a_group():
    groups = RowGroups(np.array(["a", "b"]), np.array([0, 0, 1, 1, -1]))
    contents = np.full(5, 9, dtype=np.uint64)
    apart, named = keep_items_in_groups(contents, None, groups)
    assert named is None
    assert apart[0] == apart[1] != apart[2] == apart[3]
    assert apart[4] == 9
    _, named = keep_items_in_groups(contents, np.array([0, 0, 1, -1, -1]), groups)
    assert np.array_equal(named, [0, 0, 1, -1, -1])
    with pytest.raises(ValueError, match="rows 1 and 2 are of one item and of two groups"):
        keep_items_in_groups(contents, np.array([1, 0, 0, -1, -1]), groups)


# ---- folds of one's own ----


def test_a_splitter_says_which_rows_train_and_which_are_judged():
    folds = read_own_folds(TimeSeriesSplit(3), np.zeros((12, 1)), Y, None)
    assert folds.trained.sum(axis=1).tolist() == [3, 6, 9]
    assert folds.judged.tolist() == [False] * 3 + [True] * 9
    assert not folds.is_complete
    assert read_own_folds(KFold(3), np.zeros((12, 1)), Y, None).is_complete
    assert read_own_folds(iter(KFold(3).split(Y)), None, Y, None).is_complete
    masks = [(np.arange(12) < 6, np.arange(12) >= 6)]
    assert read_own_folds(masks, None, Y, None).judged.sum() == 6
    assert read_own_folds(folds, None, Y, None) is folds
    assert folds.take(np.arange(6)).held_out.shape == (3, 6)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([([0, 1], [2]), ([0, 1], [2, 3])], "folds 0 and 1 both judge row 2"),
        (ShuffleSplit(3, test_size=0.5, random_state=0), "must judge a row once at most"),
        ([([0, 1, 2], [2])], "fold 0, trains on row 2 and judges it"),
        ([([0, 1], [])], "fold 0, the rows to judge: there are none"),
        ([([], [0])], "fold 0, the rows to train on: there are none"),
        ([([0, 1], [12])], "positions from 0 to 11, got 12 to 12"),
        ([([-1, 1], [2])], "positions from 0 to 11, got -1 to 1"),
        ([([0.5, 1], [2])], "must be whole numbers or Booleans"),
        ([(np.ones(3, bool), [2])], "12 Booleans or positions, got 3"),
        ([3, 4], "pairs .train, test. of positions of rows, got 3"),
        ([], "must have one fold at least"),
        (OwnFolds(np.ones((1, 3), bool), np.zeros((1, 3), bool)), "folds of 12 rows, got some of 3"),
    ],
)
def test_folds_that_cannot_be_meant_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        read_own_folds(cv, np.zeros((12, 1)), Y, None)


def test_folds_of_ones_own_keep_groups_and_items_together():
    folds = read_own_folds([([0, 1, 2], [3, 4])], None, Y, None)
    index = np.array([0, 0, 1, 1, 2] + [-1] * 7)
    with pytest.raises(ValueError, match="some rows of group 'b' and judges others"):
        check_own_folds(folds, RowGroups(np.array(["a", "b", "c"]), index), None, None)
    with pytest.raises(ValueError, match="the item of row 3 and judges others"):
        check_own_folds(folds, None, np.where(index < 0, 3 + np.arange(12), index), None)
    with pytest.raises(ValueError, match="source must be None with a cv that does not judge every row, and 2 of 12"):
        check_own_folds(folds, None, None, "source")
    check_own_folds(folds, RowGroups(np.array(["a"]), np.array([0, 0, 0] + [-1] * 9)), np.arange(12), None)


def test_every_fold_trains_on_all_classes():
    labels, weight = np.array([0, 0, 1, 1], dtype=np.uint32), np.ones(4)
    folds = read_own_folds([([0, 1, 2], [3]), ([0, 1], [2])], None, labels, None)
    with pytest.raises(ValueError, match="cv, fold 1, trains on no row of class 'b'"):
        check_trained_classes(labels, weight, np.array(["a", "b"]), folds.trained * weight, folds)
    with pytest.raises(ValueError, match="class 'b' lies in too few groups"):
        check_trained_classes(labels, weight, np.array(["a", "b"]), folds.trained * weight, None)
    # A class without weight is absent.
    check_trained_classes(labels, np.array([1, 1, 0, 0.0]), np.array(["a", "b"]), folds.trained * weight, folds)


def test_parts_that_have_as_little_of_a_class_are_told_apart_by_all_classes():
    # Of one class 0.6 and 0.4, dealt to either part, and of the other two halves: the second of these would fit both.
    mass = np.array([[0.6, 0.0], [0.4, 0.0], [0.0, 0.5], [0.0, 0.5]])
    units = SimpleNamespace(order_by_weight=lambda: np.arange(4), mass=mass, chance=np.arange(4, dtype=np.uint64))
    # The first part has 1.1 of 0.75 by then, the second 0.4 of 0.25.
    assert folds_module._deal_out(units, np.array([0.75, 0.25])).tolist() == [0, 1, 0, 0]
