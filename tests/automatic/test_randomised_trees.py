"""How many randomised trees there are and how large their leaves, beside a loop from the words of the plan."""

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from untwist.automatic import randomised
from untwist.automatic.mixture import find_mixture_weights
from untwist.automatic.out_of_fold import HeldOutScores
from untwist.automatic.randomised import grow_mixture, mix_in_randomised_trees, plan_randomised_trees
from untwist.boosting.engines.engine import Task, TreeGrowth
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.model import Mixture


def plan_slowly(n_rows, n_classes):
    """As `plan_randomised_trees`: leaves grow until the trees hold no more values than they may."""
    many, few, sizes, most = (20, 10, [2, 5, 15, 40], 15_000) if n_classes == 2 else (40, 20, [2, 5, 15], 4_000_000)
    per_node = 1 if n_classes == 2 else n_classes
    for n_trees in (many, few):
        least = next(size for size in count(0) if 1.4 * n_rows * per_node * n_trees <= size * most)
        if least <= sizes[1]:
            break
    return n_trees, sorted({size if size > least else least for size in sizes})


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_trees_and_leaves_are_those_of_a_slow_twin(n_classes):
    edges = [15_000 * size / 1.4 / n_trees for size in (1, 2, 5, 6) for n_trees in (10, 20)]
    for n_rows in [1, 50, 536, 1000, 20_000, 300_000, 5_000_000, *edges, *(np.array(edges) + 1)]:
        assert plan_randomised_trees(n_rows, n_classes) == plan_slowly(n_rows, n_classes)


# ---- what is grown and how it is mixed ----

N = 60
LABELS = (np.arange(N) % 2).astype(np.uint32)
TOWARDS = np.where(LABELS == 1, 1.0, -1.0)


class Trees:
    """A forest that is its scores of all rows."""

    def __init__(self, scores):
        self.scores = scores

    def scale(self, factor):
        return Trees(factor * self.scores)

    def append(self, other):
        return Trees(self.scores + other.scores)


def draw_scores(signal, seed):
    return signal * TOWARDS + np.random.default_rng(seed).normal(size=N)


def score_held_out(forests):
    """Return what each forest says of its own fifth of the rows."""
    rows = np.concatenate([np.arange(N)[fold::5] for fold in range(len(forests))])
    scores = np.concatenate([forest.scores[fold::5] for fold, forest in enumerate(forests)])[:, None]
    return HeldOutScores(rows, 1.0 + rows % 3, scores, LABELS[rows])


def mix(monkeypatch, least=1, share=0.0, sizes=(2, 5, 15), n_first_folds=2):
    """Return what is mixed where leaves of 5 rows are the best, and what was grown and told."""
    grown, told = [], []

    def grow(data, training_weights, fold, n_trees, leaf_size):
        grown.append((fold, n_trees, leaf_size))
        return Trees(draw_scores(3.0 if leaf_size == 5 else 0.5, seed=fold))

    monkeypatch.setattr(randomised, "plan_randomised_trees", lambda n_rows, n_classes: (7, list(sizes)))
    monkeypatch.setattr(randomised, "_grow", grow)
    data = SimpleNamespace(
        growth=SimpleNamespace(min_samples_leaf=least, min_weight_fraction_leaf=share),
        n_effective_rows=float(N),
        classes=[0, 1],
    )
    boosted = [Trees(draw_scores(2.0, seed=10 + fold)) for fold in range(5)]
    found = mix_in_randomised_trees(
        data,
        boosted,
        score_held_out(boosted),
        training_weights=[np.full(N, 0.5)] * 5,
        n_first_folds=n_first_folds,
        score_held_out_rows=score_held_out,
        tell=told.append,
    )
    return boosted, found, grown, told


def test_the_best_leaves_of_the_first_folds_are_grown_on_the_others_and_mixed_in(monkeypatch):
    boosted, (mixed, unseen, mixture), grown, told = mix(monkeypatch)
    assert grown == [(fold, 7, size) for size in (2, 5, 15) for fold in (0, 1)] + [(fold, 7, 5) for fold in (2, 3, 4)]
    np.testing.assert_allclose(told, np.arange(1, 10) / 9)
    own = [Trees(draw_scores(3.0, seed=fold)) for fold in range(5)]
    members = [score_held_out(one) for one in (boosted, own)]
    rows, weight = members[0].rows, members[0].weight
    first, second = find_mixture_weights([one.scores for one in members], LABELS[rows], weight)
    assert (mixture.boosted_weight, mixture.randomised_weight) == (first, second)
    assert (mixture.n_trees, mixture.min_samples_leaf) == (7, 5)
    for fold in range(5):
        np.testing.assert_allclose(mixed[fold].scores, first * boosted[fold].scores + second * own[fold].scores)
    np.testing.assert_allclose(unseen.scores, first * members[0].scores + second * members[1].scores)
    assert unseen.rows.tolist() == rows.tolist()
    for loss, scores in [
        (mixture.boosted_loss, members[0].scores),
        (mixture.randomised_loss, members[1].scores),
        (mixture.loss, unseen.scores),
    ]:
        assert loss == pytest.approx(np.average(np.log1p(np.exp(-TOWARDS[rows] * scores[:, 0])), weights=weight))


@pytest.mark.parametrize(
    ("least", "share", "expected"),
    [
        (1, 0.0, {2, 5, 15}),
        (4, 0.0, {4, 5, 15}),
        (5, 0.0, {5, 15}),
        (1, 0.2, {6, 15}),  # A fifth of the weight that a fold trains on.
        (1, 0.19, {6, 15}),
        (9, 0.2, {9, 15}),
    ],
)
def test_leaves_are_no_smaller_than_asked_for(monkeypatch, least, share, expected):
    assert {size for *_, size in mix(monkeypatch, least, share)[2]} == expected


def test_where_there_is_one_size_of_leaves_nothing_is_tried(monkeypatch):
    _, (_, _, mixture), grown, told = mix(monkeypatch, least=40)
    assert grown == [(fold, 7, 40) for fold in range(5)]
    assert told == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert mixture.min_samples_leaf == 40


def test_all_folds_may_be_first_ones(monkeypatch):
    _, (mixed, _, mixture), grown, _ = mix(monkeypatch, n_first_folds=9)
    assert (len(grown), len(mixed), mixture.min_samples_leaf) == (15, 5, 5)


def test_trees_of_all_rows_are_as_many_as_those_of_all_folds(monkeypatch):
    grown = []
    monkeypatch.setattr(randomised, "_grow", lambda *arguments: grown.append(arguments) or Trees(np.full(N, 4.0)))
    mixture = Mixture(0.5, 0.25, n_trees=7, min_samples_leaf=3, boosted_loss=0.5, randomised_loss=0.5, loss=0.5)
    data = SimpleNamespace(weight=np.ones(N))
    mixed = grow_mixture(data, Trees(np.full(N, 10.0)), mixture, n_folds=5)
    np.testing.assert_array_equal(mixed.scores, 6.0)
    assert grown == [(data, [data.weight], 0, 35, 3)]


@pytest.mark.parametrize(("n_features", "share"), [(4, 0.5), (5000, 0.5), (10_000, 0.25)])
def test_each_fold_draws_trees_of_its_own_from_half_of_the_columns_at_most(n_features, share):
    def grow_randomised(dataset, task, n_trees, leaf_size, drawn, first_tree):
        return dataset, task.weight, n_trees, leaf_size, drawn, first_tree

    engine = SimpleNamespace(grow_randomised=grow_randomised)
    link = ClippedLink(AlphaLoss(1.0))
    data = SimpleNamespace(
        settings=SimpleNamespace(engine=engine, make_link=lambda alpha: link),
        make_task=lambda link, step, index: Task(link, step, TreeGrowth(), positive_class=index),
        dataset_of=lambda fold: f"fold {fold}",
        encoder=SimpleNamespace(n_features=n_features),
    )
    assert randomised._grow(data, ["a", "b", "c"], 2, 20, 5) == ("fold 2", "c", 20, 5, share, 40)
