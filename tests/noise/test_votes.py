"""Votes by item and source: their order is that of what they contain, and bins lose next to nothing."""

import numpy as np
import pytest

from untwist.noise import votes as votes_module
from untwist.noise.votes import arrange_votes


def make_rows(n_rows, n_classes, several, seed=0):
    rng = np.random.default_rng(seed)
    items = rng.permutation(n_rows) // 3 if several else None
    posterior = rng.dirichlet(np.ones(n_classes), n_rows)
    if several:
        posterior = posterior[np.unique(items, return_index=True)[1]][items]
    return {
        "posterior": posterior,
        "labels": rng.integers(n_classes, size=n_rows),
        "sources": rng.integers(4, size=n_rows),
        "items": items,
        "weight": rng.uniform(0.5, 2.0, n_rows),
        "pooled_weight": rng.uniform(0.5, 1.0, n_rows),
    }


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("several", [False, True])
def test_votes_are_those_of_the_rows_in_any_order(n_classes, several):
    rows = make_rows(90, n_classes, several)
    rng = np.random.default_rng(1)
    order, renamed = rng.permutation(90), rng.permutation(4)
    moved = {name: None if each is None else each[order] for name, each in rows.items()}
    moved["sources"] = renamed[moved["sources"]]
    one, other = arrange_votes(**rows, n_sources=4), arrange_votes(**moved, n_sources=4)
    for name in one._fields:
        if name != "original":
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(renamed[one.original], other.original)
    assert one.has_repeated_items == several
    # Every label of every source is there as often as in the rows.
    counted = one.sum_by_source_and_label(np.ones(90))
    back = np.empty_like(counted)
    back[one.original] = counted
    expected = np.zeros((4, n_classes))
    np.add.at(expected, (rows["sources"], rows["labels"]), 1)
    np.testing.assert_array_equal(back, expected)


def test_the_votes_of_an_item_are_neighbours_and_share_its_posterior():
    rows = make_rows(60, 3, True)
    votes = arrange_votes(**rows, n_sources=4)
    assert len(votes.first) == 20
    assert (np.diff(votes.item) >= 0).all()
    found = {tuple(votes.posterior[item]): sorted(votes.label[votes.item == item]) for item in range(20)}
    for item in range(20):
        mine = rows["items"] == item
        assert found[tuple(rows["posterior"][mine][0])] == sorted(rows["labels"][mine])
    assert votes.has_several_votes.all()


def test_bins_keep_the_weight_of_every_source_and_label_and_the_mean_of_posteriors():
    rows = make_rows(5000, 2, False) | {"weight": np.ones(5000), "pooled_weight": np.ones(5000)}
    votes = arrange_votes(**rows, n_sources=4)
    assert len(votes.label) <= 4 * 2 * votes_module.N_BINS
    back = np.empty((4, 2))
    back[votes.original] = votes.sum_by_source_and_label(votes.vote_weight)
    expected = np.zeros((4, 2))
    np.add.at(expected, (rows["sources"], rows["labels"]), 1)
    np.testing.assert_array_equal(back, expected)
    assert votes.weight @ votes.posterior[:, 1] == pytest.approx(rows["posterior"][:, 1].sum())


def test_weights_count_as_many_votes_as_there_are_at_least():
    rows = make_rows(60, 3, False)
    light = arrange_votes(**(rows | {"weight": rows["weight"] / 1e6}), n_sources=4)
    assert light.vote_weight.sum() == pytest.approx(60)
    heavy = arrange_votes(**(rows | {"weight": rows["weight"] * 100}), n_sources=4)
    assert heavy.vote_weight.sum() == pytest.approx(100 * rows["weight"].sum())


def test_the_weight_of_an_item_is_the_mean_of_its_rows_and_of_all_that_counts_the_mean_is_1_in_training():
    posterior = np.array([[0.3, 0.7]] * 3 + [[0.6, 0.4]] * 2 + [[0.5, 0.5]] * 2)
    votes = arrange_votes(
        posterior,
        labels=np.array([1, 1, 0, 0, 1, 0, 0]),
        sources=np.array([0, 1, 2, 0, 2, -1, 1]),  # The source of the sixth is not known.
        items=np.array([5, 5, 5, 9, 9, 2, 3]),
        weight=np.array([1.0, 2.0, 6.0, 4.0, 2.0, 1.0, 0.0]),  # The last does not count.
        pooled_weight=np.array([1.0, 2.0, 3.0, 4.0, 5.0, 60.0, 70.0]),
        n_sources=3,
    )
    assert votes.has_repeated_items
    assert votes.first.tolist() == [0, 3] or votes.first.tolist() == [0, 2]
    by_posterior = dict(zip(votes.posterior[:, 1].tolist(), votes.weight.tolist(), strict=True))
    assert by_posterior == {0.7: 3.0, 0.4: 3.0}
    found = sorted(zip(votes.original[votes.source], votes.label, (3 * votes.pooled_weight).tolist(), strict=True))
    assert found == [(0, 0, 4.0), (0, 1, 1.0), (1, 1, 2.0), (2, 0, 3.0), (2, 1, 5.0)]
    assert votes.vote_weight.tolist() == [3.0] * 5


def test_items_with_one_vote_and_with_several_are_told_apart():
    rows = make_rows(9, 3, False) | {"items": np.array([0, 1, 1, 2, 2, 2, 3, 4, 4])}
    rows["posterior"] = rows["posterior"][rows["items"]]
    votes = arrange_votes(**rows, n_sources=4)
    sizes = {
        tuple(p): n for p, n in zip(rows["posterior"].tolist(), np.bincount(rows["items"])[rows["items"]], strict=True)
    }
    expected = [sizes[tuple(p)] > 1 for p in votes.posterior.tolist()]
    assert votes.has_several_votes.tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_no_more_weight_counts_than_leaves_no_doubt():
    rows = make_rows(30, 3, False)
    heavy = arrange_votes(**(rows | {"weight": np.full(30, 1e9)}), n_sources=4)
    assert heavy.vote_weight.sum() == pytest.approx(1e7)


def merge_slowly(votes):
    """By bin, source and label: the weight, the mean posterior of the bin, and the mean weight in training."""
    total, until, bins = votes.weight.sum(), 0.0, {}
    for value in np.unique(votes.posterior[:, 1]):
        rows = np.flatnonzero(votes.posterior[:, 1] == value)
        mass = votes.weight[rows].sum()
        place = min(int((until + mass / 2) / total * 64 * (1 + 1e-9)), 63)
        until += mass
        bins.setdefault(place, []).extend(rows)
    cells = []
    for rows in bins.values():
        mean = np.average(votes.posterior[rows, 1], weights=votes.weight[rows])
        for source in range(votes.n_sources):
            for label in range(2):
                mine = [row for row in rows if votes.source[row] == source and votes.label[row] == label]
                if mine:
                    pooled = np.average(votes.pooled_weight[mine], weights=votes.weight[mine])
                    cells.append((mean, source, label, votes.weight[mine].sum(), pooled))
    return sorted(cells)


@pytest.mark.parametrize("digits", [1, 6])
def test_bins_are_those_of_the_slow_twin(digits, monkeypatch):
    rows = make_rows(600, 2, False)
    of_second = rows["posterior"][:, 1].round(digits)
    rows["posterior"] = np.column_stack([1.0 - of_second, of_second])
    found = arrange_votes(**rows, n_sources=4)
    monkeypatch.setattr(votes_module, "_merge_in_bins", lambda votes: votes)
    plain = arrange_votes(**rows, n_sources=4)
    assert len(found.label) < len(plain.label) == 600
    cells = sorted(
        zip(found.posterior[:, 1], found.source, found.label, found.weight, found.pooled_weight, strict=True)
    )
    np.testing.assert_allclose(cells, merge_slowly(plain), rtol=1e-9)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.item, np.arange(len(found.label)))
    np.testing.assert_array_equal(found.first, found.item)


def test_rows_that_bins_would_not_make_fewer_stay_as_they_are():
    for n_rows, is_merged in ((512, False), (513, True)):  # There are 64 bins of two labels of four sources.
        rows = make_rows(n_rows, 2, False)
        assert (len(arrange_votes(**rows, n_sources=4).label) < n_rows) == is_merged
