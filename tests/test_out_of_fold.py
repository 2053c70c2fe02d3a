"""What models say of rows that they have not seen, as all that judges labels reads it."""

import numpy as np
import pytest

from helpers.quick import QuickClassifier
from helpers.unseen import make_unseen
from untwist import PILBoostClassifier
from untwist.crossing import cross_fit_clones
from untwist.data.groups import read_groups
from untwist.data.sources import LabelSources

POSTERIOR = np.column_stack([np.linspace(0.1, 0.9, 5), 1 - np.linspace(0.1, 0.9, 5)])


def test_a_row_that_no_fold_judges_counts_as_absent():
    unseen = make_unseen(POSTERIOR, weight=[1, 2, 3, 4, 0], held_out=[[1, 0, 0.5, 0, 1], [0, 0, 0.5, 1, 0]])
    assert unseen.judged.tolist() == [True, False, True, True, True]
    assert unseen.judged_weight.tolist() == [1.0, 0.0, 3.0, 4.0, 0.0]
    assert unseen.weight.tolist() == [1.0, 2.0, 3.0, 4.0, 0.0]


def test_parts_are_rows_as_a_whole_unless_folds_were_kept():
    unseen = make_unseen(POSTERIOR, weight=[1, 2, 3, 4, 0], held_out=[[1, 0, 1, 1, 1]])
    assert unseen.parts.rows.tolist() == [0, 2, 3, 4]
    assert unseen.parts.weight.tolist() == [1.0, 3.0, 4.0, 0.0]
    np.testing.assert_array_equal(unseen.parts.posterior, POSTERIOR[[0, 2, 3, 4]])
    kept = make_unseen(POSTERIOR, by_fold=([0, 0, 1], [1.0, 2.0, 1.0], POSTERIOR[:3]))
    assert kept.parts is kept.by_fold


def test_rows_of_a_group_have_one_hash_and_rows_alone_one_of_their_own_on_every_worker():
    rows = np.array([3, 0, 4, 3])
    assert make_unseen(POSTERIOR).hash_groups(rows, 0) is None
    unseen = make_unseen(POSTERIOR, groups=read_groups(["x", "x", None, "x", None], 5))
    here, there = unseen.hash_groups(rows, 0), unseen.hash_groups(rows, 1)
    assert here[0] == here[1] == here[3] == there[0] != here[2]
    assert there[2] != here[2] != unseen.hash_groups(np.array([2]), 0)[0]


def test_more_of_the_context_leaves_the_rest_as_it_was():
    unseen = make_unseen(POSTERIOR, fingerprint=7)
    known = unseen.add_context(twins="twins")
    assert (known.context.fingerprint, known.context.twins, unseen.context.twins) == (7, "twins", None)
    assert known.posterior is unseen.posterior


def test_another_fit_judges_the_same_rows_with_their_own_labels_and_weights():
    by_fold = [0, 0, 1, 2, 3, 4], np.ones(6), POSTERIOR[[0, 0, 1, 2, 3, 4]]
    first = make_unseen(POSTERIOR, weight=[1, 2, 3, 4, 5], by_fold=by_fold, fingerprint=7)
    turned = by_fold[0], np.full(6, 9.0), by_fold[2][:, ::-1]
    other = make_unseen(POSTERIOR[:, ::-1], labels=[1] * 5, weight=[9] * 5, by_fold=turned)
    both = first.judge_anew(other)
    assert both.posterior is other.posterior
    assert both.by_fold.posterior is other.by_fold.posterior
    assert (both.weight is first.weight, both.labels is first.labels, both.context is first.context) == (True,) * 3
    assert both.by_fold.weight is first.by_fold.weight
    assert first.judge_anew(make_unseen(POSTERIOR)).by_fold is None
    assert make_unseen(POSTERIOR).judge_anew(other).by_fold is None


def test_rows_of_an_item_share_the_mean_of_what_is_said_of_them():
    rng = np.random.default_rng(0)
    posterior, items = rng.dirichlet([1, 1, 1], 400), np.unique(rng.integers(0, 150, 400), return_inverse=True)[1]
    sources = LabelSources(np.array(["a"]), np.zeros(400, dtype=np.intp), items)
    unseen = make_unseen(posterior, sources=sources, by_fold=(np.arange(400), np.ones(400), posterior))
    averaged = unseen.average_by_item()
    for item in np.unique(items):
        here = averaged.posterior[items == item]
        np.testing.assert_allclose(here, np.broadcast_to(posterior[items == item].mean(axis=0), here.shape))
        assert len(np.unique(here, axis=0)) == 1
    assert averaged.by_fold is None
    order = rng.permutation(400)
    again = make_unseen(posterior[order], sources=LabelSources(sources.names, sources.index, items[order]))
    np.testing.assert_array_equal(again.average_by_item().posterior, averaged.posterior[order])
    alone = make_unseen(posterior, sources=LabelSources(sources.names, sources.index, np.arange(400)))
    assert alone.average_by_item() is alone
    assert make_unseen(posterior).average_by_item().posterior is not None


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}], ids=["plain", "weighted"])
def test_clones_and_our_own_models_leave_the_same_for_the_same_folds(settings):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0.5) ^ (rng.random(120) < 0.1)
    weight = 1.0 + rng.integers(0, 2, 120)
    fold = np.arange(120) % 3
    folds = [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in (0, 1)]
    told = {"alpha": 2.0, "n_estimators": 5, "max_depth": 2, "random_state": 0}
    own = QuickClassifier(**told, cv=folds, **settings).fit(X, y, weight).model_.out_of_fold
    fit = cross_fit_clones(
        PILBoostClassifier(**told), X, own.labels, own.classes, own.held_out, weight, context=own.context
    )
    found = fit.out_of_fold
    for name in ("classes", "labels", "held_out", "judged"):
        np.testing.assert_array_equal(getattr(found, name), getattr(own, name))
    np.testing.assert_allclose(found.weight / found.weight[0], own.weight / own.weight[0])
    assert np.isnan(found.posterior).tolist() == np.isnan(own.posterior).tolist()
    assert np.isnan(found.posterior).any(axis=1).sum() == 40
