"""Rows that a person has reviewed: what was chosen is boosted once more, with their labels as they should be.

The search sees the labels as they were given. What its models say of rows that they have not seen tells how noisy these
are, and what the reviewer found tells it better (`untwist.noise.model`). Then the chosen candidate is boosted again
on the same folds: a reviewed row has its right label, which weighs as much as the noisy labels that it is worth there
(`NoiseModel.worth`). With these weights the twisted posterior stays what the boosted trees learn, whichever rows were
chosen for the review and why, so that nothing that follows has to know of it.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from untwist.arguments import Array
from untwist.automatic.search import Search
from untwist.data.reviews import ReviewedRows
from untwist.fitting import Fit
from untwist.model import FittedModel, OutOfFold
from untwist.training_data import TrainingData

__all__ = ["fit_with_review", "judge_with_review"]


def fit_with_review(data: TrainingData, review: ReviewedRows) -> Fit:
    """Choose what was left open by the labels as they were given, and boost it again with what the review found.

    Parameters
    ----------
    data : TrainingData
        The rows with their folds, and the labels as they were given.
    review : ReviewedRows
        The rows that were reviewed.

    Returns
    -------
    Fit
        What ends the second fit early, Ctrl-C or a callback, leaves the model of the first.
    """
    search = Search(data)
    fit = search.run()
    model = fit.model
    if fit.interrupt is not None or search.stopped:
        return fit
    assert model.out_of_fold is not None  # It is there unless Ctrl-C came.
    if model.out_of_fold.fingerprint is None:
        return fit
    try:
        model = judge_with_review(model, data, model.out_of_fold, review)
        return Fit(_boost_again(search, model, review))
    except KeyboardInterrupt as interrupt:
        return Fit(model, interrupt)


def judge_with_review(model: FittedModel, data: TrainingData, unseen: OutOfFold, review: ReviewedRows) -> FittedModel:
    """Return a model that knows how noisy labels are by what a review found.

    Parameters
    ----------
    model : FittedModel
        A model of the rows.
    data : TrainingData
        The rows.
    unseen : OutOfFold
        What its folds say of the rows that they have not seen, with the labels as they were given.
    review : ReviewedRows
        The rows that were reviewed.

    Returns
    -------
    FittedModel
        Where nobody knows what the labels of reviewed rows were, the noise is that of the other rows, if there are any.
    """
    judged = replace(model, out_of_fold=replace(unseen, reviewed=review))
    counted = unseen
    if not review.knows_given and unseen.weight[~review.is_reviewed[unseen.rows]].any():
        counted = replace(unseen, weight=np.where(review.is_reviewed[unseen.rows], 0.0, unseen.weight))
    noise = replace(model, out_of_fold=counted).estimate_noise(data.settings.known_noise, data.workers)
    if review.knows_given:
        known = np.flatnonzero(review.is_reviewed & (unseen.row_weights() > 0))
        noise = noise.learn(
            judged.out_of_fold_posterior_of_labels()[known],
            review.given[known].astype(np.intp),
            review.labels[known].astype(np.intp),
        )
    return replace(judged, noise=noise, untwists=noise.is_undone)


def _boost_again(search: Search, model: FittedModel, review: ReviewedRows) -> FittedModel:
    """Return the chosen candidate, boosted with reviewed labels; the model as it was where a callback ends that."""
    data, settings = search.data, search.settings
    assert model.choice is not None
    assert model.out_of_fold is not None
    if settings.verbose:
        print("reviewed labels: the same once more, each weighing what it is worth", file=sys.stderr)
    narrowed = replace(
        settings.narrow_to(model.choice.best),
        n_rounds=settings.n_rounds,
        rounds_are_limit=settings.rounds_are_limit,
        callbacks=settings.callbacks,
        verbose=settings.verbose,
    )
    again = Search(replace(data.relabel(review.labels, _weigh(model, review)), settings=narrowed))
    again.started_at = search.started_at
    fit = again.run()
    if fit.interrupt is not None:
        raise fit.interrupt
    if again.stopped:
        return model
    assert fit.model.choice is not None
    assert fit.model.out_of_fold is not None
    # The folds are the same, and with them the rows set aside, which have the labels and weights that they had before.
    unseen = replace(model.out_of_fold, scores=fit.model.out_of_fold.scores)
    second = replace(fit.model, choice=replace(fit.model.choice, tried=model.choice.tried))
    return judge_with_review(second, data, unseen, review)


def _weigh(model: FittedModel, review: ReviewedRows) -> Array:
    """Return how many noisy labels the label of each row is worth."""
    assert model.noise is not None  # `TrainingData` has refused settings without.
    worth = np.ones(len(review.labels))
    known = np.flatnonzero(review.is_reviewed)
    posterior = model.out_of_fold_posterior_of_labels()[known]
    worth[known] = model.noise.worth(posterior, review.labels[known].astype(np.intp))
    return worth
