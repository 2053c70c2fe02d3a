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
