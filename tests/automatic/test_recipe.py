"""The recipe as a `CrossFit`: what its trees say, and how they are boosted anew with other labels and weights."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.quick import make_classifier, resolve
from helpers.small_fits import draw_sample
from helpers.sourced_rows import draw_sourced_rows
from untwist.automatic.recipe import TreesByFold, fit_recipe
from untwist.automatic.search import Search
from untwist.data.reviews import ReviewedRows
from untwist.fit_arguments import SourceColumns
from untwist.training_data import TrainingData

SETTINGS = {"random_state": 0, "n_jobs": 1, "boosted_only": True, "max_depth": 2}


def search_trees(X, y, weight=None, source=None, **settings):
    parameters = make_classifier(**{**SETTINGS, **settings}).get_params(deep=False)
    data = TrainingData.collect(resolve(parameters), X, y, weight, sources=SourceColumns(source))
    search = Search(data)
    model = search.run().model
    return TreesByFold(search, model, model.out_of_fold)


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_say_what_labels_follow_whatever_the_weights_of_classes(classes):
    X, y, *_ = draw_sourced_rows(400, classes=classes)
    trees = search_trees(X, y, class_weight={label: 1.0 + (label == 1) for label in np.unique(y)})
    found = trees.posterior(X)
    assert found.shape == (400, classes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    weighed = found * trees.model.class_weights
    weighed /= weighed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(trees.model.posterior.twisted(trees.model.scores(X)), weighed, atol=2e-3)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_other_labels_and_weights_are_boosted_in_the_same_folds(class_weight):
    X, y = draw_sample(300)
    weight = 1.0 + np.arange(300) % 2
    trees = search_trees(X, y, weight, class_weight=class_weight)
    labels = np.where(np.arange(300) < 30, 1 - trees.out_of_fold.labels, trees.out_of_fold.labels)
    worth = np.where(np.arange(300) < 30, 3.0, 1.0)
    again = trees.refit(labels, trees.out_of_fold.weight * worth)
    data = again.search.data
    np.testing.assert_array_equal(data.rows.labels, labels)
    np.testing.assert_allclose(again.out_of_fold.weight, trees.out_of_fold.weight * worth)
    np.testing.assert_array_equal(again.out_of_fold.held_out, trees.out_of_fold.held_out)
    np.testing.assert_array_equal(again.out_of_fold.labels, labels)
    best, chosen = trees.model.choice.best, again.model.choice
    assert chosen.tried == trees.model.choice.tried
    (tried,) = again.search.candidates.values()
    assert (tried.alpha, tried.max_depth, tried.step) == (best.alpha, best.max_depth, best.step)
    assert chosen.best == tried  # A review may call for other rounds.
    assert data.datasets[0] is not trees.search.data.datasets[0]
    assert again.search.started_at == trees.search.started_at


def test_with_sources_rounds_and_bins_stay():
    X, y, source, _ = draw_sourced_rows(400)
    trees = search_trees(X, y, source=source)
    again = trees.refit(trees.out_of_fold.labels, trees.out_of_fold.weight * np.where(source == "Leipzig", 0.5, 1.0))
    assert again.search.data.datasets is trees.search.data.datasets
    assert again.model.choice.best == trees.model.choice.best
    assert again.search.fixed_rounds == trees.model.choice.best.n_rounds
    np.testing.assert_array_equal(again.out_of_fold.weight, np.where(source == "Leipzig", 0.5, 1.0))


def test_a_callback_that_ends_a_search_leaves_the_trees_as_they_are():
    X, y = draw_sample(200)
    stopped = search_trees(X, y, callbacks=[lambda progress: True])
    labels, weight = stopped.out_of_fold.labels, stopped.out_of_fold.weight
    assert stopped.refit(labels, 2.0 * weight) is stopped
    told = []
    trees = search_trees(X, y, callbacks=[told.append])
    ending = replace(trees.search.settings, callbacks=(lambda progress: True,))
    trees.search.settings = ending
    assert trees.refit(labels, 2.0 * weight) is trees


def test_a_review_is_heard_where_a_callback_ended_the_search():
    X, y = draw_sample(300)
    parameters = make_classifier(**SETTINGS, callbacks=[lambda progress: True]).get_params(deep=False)
    data = TrainingData.collect(resolve(parameters), X, y, has_review=True)
    labels = data.rows.labels
    review = ReviewedRows(np.arange(300) < 100, np.where(np.arange(300) < 30, 1 - labels, labels), labels, True)
    model = fit_recipe(data, review).model
    assert model.out_of_fold.context.reviewed is review
    assert model.noise is not None


def test_verbose_fits_tell_of_the_second_one(capsys):
    X, y = draw_sample(200)
    trees = search_trees(X, y, verbose=1)
    capsys.readouterr()
    trees.refit(trees.out_of_fold.labels, trees.out_of_fold.weight)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "the same once more, each label weighing what it is worth"
    assert lines[1].startswith("alpha ")
