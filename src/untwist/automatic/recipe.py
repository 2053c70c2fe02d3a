"""The fit of the recipe: a search, the noise that its models show, and what follows where more is known of labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.automatic.search import MOST_CLASSES_AFTER_INTERRUPT, Search
from untwist.boosting.runs import say
from untwist.data.reviews import ReviewedRows
from untwist.fitting import Fit
from untwist.learning_noise import learn_noise
from untwist.model import FittedModel
from untwist.noise.model import NoiseModel
from untwist.noise.plausibility import MOST_TELLING_WEIGHT
from untwist.noise.transitions import FEWEST_ROWS_PER_CLASS
from untwist.out_of_fold import OutOfFold
from untwist.training_data import TrainingData

__all__ = ["MOST_CLASSES", "TreesByFold", "fit_recipe"]

#: Among more classes the noise is not estimated: the most telling rows are then fewer than find any.
MOST_CLASSES = int(MOST_TELLING_WEIGHT / FEWEST_ROWS_PER_CLASS)
#: What is said where Ctrl-C has left the noise out.
NO_TIME_FOR_NOISE = "The model has the rounds so far; how noisy the labels are was not estimated, and is not undone."


@dataclass(frozen=True, eq=False)
class TreesByFold:
    """The trees that a search has chosen, those of each fold, and what they say of rows that they have not seen.

    Parameters
    ----------
    search : Search
        What has chosen them, with the rows.
    model : FittedModel
        Their mean, which believes every label.
    out_of_fold : OutOfFold
        What the trees of each fold say of the rows that it set aside.
    """

    search: Search
    model: FittedModel
    out_of_fold: OutOfFold

    def posterior(self, X: object, n_jobs: int | None = None) -> Array:
        """Return the posterior of the given labels, without the weights of classes.

        Parameters
        ----------
        X : table
            Rows with the columns of the training table.
        n_jobs : int or None
            Threads.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        rows = self.model.encoder.encode(X, None)
        return self.model.find_posterior_of_labels(self.model.scores(rows, n_jobs).reshape(rows.shape[0], -1))

    def refit(self, labels: NDArray[np.intp], weight: Array) -> TreesByFold:
        """Boost what was chosen anew in the same folds, with other labels and weights.

        Parameters
        ----------
        labels : array of int
            The index of each row's label.
        weight : array
            The weight of each row.

        Returns
        -------
        TreesByFold
            These trees themselves where a callback has ended the search, or ends this one.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C comes.
        """
        search, settings, choice = self.search, self.search.settings, self.model.choice
        assert choice is not None
        if search.stopped:
            return self
        if settings.verbose:
            say("the same once more, each label weighing what it is worth")
        before = self.out_of_fold.weight
        worth = np.divide(weight, before, out=np.ones_like(before), where=before > 0)
        data = search.data.relabel(labels.astype(np.uint32), worth)
        # Sources only change weights, and rounds stay as chosen; a review changes labels, which may bear other rounds.
        keeps_rounds = data.sources is not None
        narrowed = replace(settings.narrow_to(choice.best), callbacks=settings.callbacks, verbose=settings.verbose)
        if not keeps_rounds:
            narrowed = replace(narrowed, n_rounds=settings.n_rounds)
        again = Search(replace(data, settings=narrowed), started_at=search.started_at)
        fit = again.run()
        if fit.interrupt is not None:
            raise fit.interrupt
        if again.stopped:
            return self
        assert fit.model.choice is not None
        assert fit.model.out_of_fold is not None
        chosen = replace(
            fit.model.choice, tried=choice.tried, best=choice.best if keeps_rounds else fit.model.choice.best
        )
        return TreesByFold(again, replace(fit.model, choice=chosen), fit.model.out_of_fold)


def fit_recipe(data: TrainingData, review: ReviewedRows | None = None) -> Fit:
    """Choose what was left open by the labels as they were given, and learn how noisy these are.

    Parameters
    ----------
    data : TrainingData
        The rows with their folds and sources, and the labels as they were given.
    review : ReviewedRows or None
        The rows that were reviewed.

    Returns
    -------
    Fit
        What ends a second fit early, Ctrl-C or a callback, leaves the model of the first.
    """
    if data.sources is not None and len(data.classes) > MOST_CLASSES:
        raise ValueError(
            f"source must be None with more than {MOST_CLASSES:,} classes, got {len(data.classes):,}: sources are "
            "judged by their wrong labels, and of so many classes no noise is found"
        )
    search = Search(data)
    fit = search.run()
    if not data.settings.untwists_posteriors:
        return fit
    model, interrupt, known = fit.model, fit.interrupt, data.settings.known_noise
    if known is not None:
        given = NoiseModel.given(known)
        model = replace(model, noise=given, untwists=given.is_undone)
    unseen = model.out_of_fold
    if unseen is not None and interrupt is None and unseen.context.fingerprint is not None:
        unseen = unseen.add_context(sources=data.sources, reviewed=review)
    most = MOST_CLASSES if interrupt is None else MOST_CLASSES_AFTER_INTERRUPT
    if unseen is not None and (len(data.classes) <= most or unseen.context.reviewed is not None):
        search.show_noise()
        trees = TreesByFold(search, fit.model, unseen)
        try:
            for better in learn_noise(trees, _take_model, known, data.workers):
                model = better
        except KeyboardInterrupt as caught:
            interrupt = caught
    if interrupt is not None and model.noise is None:
        interrupt.add_note(NO_TIME_FOR_NOISE)
    return Fit(model, interrupt)


def _take_model(trees: TreesByFold, unseen: OutOfFold) -> FittedModel:
    """Return the mean of the trees, with what they say of rows set aside."""
    return replace(trees.model, out_of_fold=unseen)
