"""The noise that models show which have not seen the rows: what is estimated from which rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_audits import draw_rows, make_pairs
from helpers.unseen import make_unseen
from untwist.data.groups import read_groups
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources
from untwist.data.workers import Workers, solo
from untwist.noise import out_of_fold as noise_of_folds
from untwist.noise.dependence import find_rows_per_case
from untwist.noise.model import NoiseModel
from untwist.noise.out_of_fold import (
    count_rows_per_case,
    estimate_noise_of,
    estimate_noise_of_reviewed,
    estimate_noise_of_sources,
)
from untwist.noise.rates import estimate_rates
from untwist.noise.transitions import estimate_transitions


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_parts_of_rows_that_are_judged_tell_the_noise(n_classes):
    posterior, labels, weight, _ = draw_rows(n_classes)
    judged = np.arange(60) % 5 > 0
    unseen = make_unseen(np.where(judged[:, None], posterior, np.nan), labels, weight, held_out=[judged])
    rows = np.repeat(np.arange(60), 2)
    halves = make_unseen(posterior, labels, weight, by_fold=(rows, weight[rows] / 2, posterior[rows]))
    for one, told, part in ((unseen, np.flatnonzero(judged), weight[judged]), (halves, rows, weight[rows] / 2)):
        if n_classes == 2:
            expected = estimate_rates(posterior[told, 1], labels[told], sample_weight=part)
        else:
            expected = estimate_transitions(posterior[told], labels[told], part)
        np.testing.assert_array_equal(estimate_noise_of(one).matrix, expected.matrix)


def test_known_noise_and_rows_of_a_group_are_told(monkeypatch):
    asked = []
    monkeypatch.setattr(NoiseModel, "estimate", lambda *given, **told: asked.append((given, told)))
    two, labels, weight, _ = draw_rows(2)
    three, *_ = draw_rows(3)
    groups = read_groups(np.arange(60) // 4, 60)
    estimate_noise_of(make_unseen(two, labels, weight, groups=groups), (0.1, 0.2))
    estimate_noise_of(make_unseen(three, labels, weight, groups=groups), np.eye(3))
    assert asked[0][1]["known"] == (0.1, 0.2)
    np.testing.assert_array_equal(asked[1][1]["known"], np.eye(3))
    for (_, told), posterior in zip(asked, (two, three), strict=True):
        expected = find_rows_per_case(posterior, labels, weight, np.arange(60) // 4)
        assert told["rows_per_case"] == pytest.approx(expected)
        assert count_rows_per_case(make_unseen(posterior, labels, weight, groups=groups)) == pytest.approx(expected)
    assert count_rows_per_case(make_unseen(two, labels, weight)) == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_workers_add_their_rows_and_the_order_does_not_matter(n_classes):
    posterior, labels, weight, _ = draw_rows(n_classes)

    class Both(Workers):
        def __init__(self, rank, others):
            super().__init__(rank, 2)
            self.others = others

        def gather(self, item):
            self.item = item
            return [item, self.others] if self.rank == 0 else [self.others, item]

    def take(rows):
        return make_unseen(posterior[rows], labels[rows], weight[rows])

    first, second = np.arange(20), np.arange(20, 60)
    probe = Both(0, None)
    with pytest.raises(TypeError):
        estimate_noise_of(take(second), workers=probe)
    other = Both(1, None)
    with pytest.raises(TypeError):
        estimate_noise_of(take(first), workers=other)
    here = estimate_noise_of(take(first), workers=Both(0, probe.item))
    there = estimate_noise_of(take(second), workers=Both(1, other.item))
    np.testing.assert_array_equal(here.matrix, there.matrix)
    np.testing.assert_allclose(here.matrix, estimate_noise_of(take(np.arange(60))).matrix, atol=1e-6)


def note(unseen, known, workers):
    """Take the place of an estimate: what it was asked for."""
    weight = unseen.parts.weight
    return SimpleNamespace(weight=weight, known=known, workers=workers, learn=lambda *found: (weight, *found))


def test_noise_is_learned_from_a_review_as_far_as_that_is_known(monkeypatch):
    posterior, labels, _, _ = draw_rows(2, n=6)
    weight = np.array([1.0, 2.0, 1.0, 0.0, 1.0, 1.0])
    is_reviewed = np.array([True, False, False, True, False, True])
    after = np.array([1, 1, 0, 0, 1, 0], dtype=np.uint32)
    monkeypatch.setattr(noise_of_folds, "estimate_noise_of", note)

    def learn(weight, reviewed=is_reviewed, knows_given=False, **more):
        review = ReviewedRows(reviewed, labels.astype(np.uint32), after, knows_given=knows_given)
        unseen = make_unseen(posterior, labels, weight, reviewed=review, **more)
        return estimate_noise_of_reviewed(unseen, "known", "workers")

    found = learn(weight)
    assert found.weight.tolist() == [0.0, 2.0, 1.0, 0.0, 1.0, 0.0]
    assert (found.known, found.workers) == ("known", "workers")
    everything = np.array([True, True, True, False, True, True])
    assert learn(weight, everything).weight.tolist() == weight.tolist()
    absent = weight * (np.arange(6) != 2)  # Some of the rows that are left have no weight.
    assert learn(absent).weight.tolist() == [0.0, 2.0, 0.0, 0.0, 1.0, 0.0]
    parts = np.array([0, 1, 1, 4]), np.full(4, 0.5), posterior[[0, 1, 1, 4]]
    assert learn(weight, by_fold=parts).weight.tolist() == [0.0, 0.5, 0.5, 0.5]
    counted, seen, before, decided = learn(weight, knows_given=True)
    assert counted.tolist() == weight.tolist()  # All rows count, with the labels from before.
    np.testing.assert_array_equal(seen, posterior[[0, 5]])
    assert (before.tolist(), decided.tolist()) == (labels[[0, 5]].tolist(), [1, 0])
    assert before.dtype == decided.dtype == np.intp


def test_rows_of_weight_0_are_absent_where_sources_are_estimated(monkeypatch):
    posterior, labels, weight, rng = draw_rows(2)
    votes = LabelSources(np.array(list("xyz")), rng.integers(-1, 3, 60), rng.permutation(60) // 2)
    monkeypatch.setattr(noise_of_folds, "estimate_by_source", lambda *given, **told: (given, told))
    groups = read_groups(votes.items, 60)
    unseen = make_unseen(posterior, labels, weight, sources=votes, groups=groups)
    reliability = 1.0 + np.arange(60) % 3
    noise = make_pairs()
    for trust in (None, reliability):
        given, told = estimate_noise_of_sources(unseen, noise, trust)
        present = [row for row in range(60) if weight[row] > 0]
        by_item = unseen.average_by_item()
        for one, whole in zip(given, (by_item.posterior, labels, votes.index), strict=True):
            np.testing.assert_array_equal(one, whole[present])
        np.testing.assert_array_equal(told["weight"], weight[present])
        pooled = weight if trust is None else weight * trust
        np.testing.assert_array_equal(told["pooled_weight"], pooled[present])
        assert (told["noise"] is noise, told["names"] is votes.names) == (True, True)
        assert told["rows_per_case"] == count_rows_per_case(by_item)
        ranks = {item: rank for rank, item in enumerate(sorted(set(votes.items[present])))}
        assert told["items"].tolist() == [ranks[item] for item in votes.items[present]]


def test_one_worker_is_asked_nothing():
    posterior, labels, weight, _ = draw_rows(2)
    unseen = make_unseen(posterior, labels, weight)
    np.testing.assert_array_equal(estimate_noise_of(unseen).matrix, estimate_noise_of(unseen, workers=solo).matrix)
