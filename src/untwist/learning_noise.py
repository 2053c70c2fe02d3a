"""The way of every `CrossFit`, ours or of clones, from models that believe every label to one that knows better.

What models say of rows that they have not seen tells how noisy the labels are, and those of each source. Where a person
has looked at rows, or where sources differ much, they are fitted once more in the same folds: a reviewed row has its
right label, which weighs as much as the noisy labels that it is worth there, and a label of a source what it is worth.
With these weights the twisted posterior stays what models learn, whichever rows were reviewed and why, so that nothing
that follows has to know of it. Rows set aside keep the labels and weights that they were given with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from untwist.arguments import Array
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import UNKNOWN, LabelSources
from untwist.data.workers import Workers, solo
from untwist.label_model import LabelModel
from untwist.noise.out_of_fold import estimate_noise_of, estimate_noise_of_reviewed, estimate_noise_of_sources
from untwist.noise.sources import NoiseBySource
from untwist.out_of_fold import CrossFit, OutOfFold
from untwist.sums import add_up, average

__all__ = ["differ_much", "judge_sources", "learn_noise", "weigh_by_reliability"]

#: Sources are alike where labels, weighed by what they are worth, count for at least this share of their number. One
#: bad source of eight makes it about 0.87, half of them at 30 % wrong labels 0.7; by chance alone it stays above 0.95.
ALIKE = 0.92

AnyCrossFit = TypeVar("AnyCrossFit", bound=CrossFit)
AnyModel = TypeVar("AnyModel", bound=LabelModel)


def learn_noise(
    cross_fit: AnyCrossFit,
    make_model: Callable[[AnyCrossFit, OutOfFold], AnyModel],
    known: tuple[float, float] | Array | None = None,
    workers: Workers = solo,
) -> Iterator[AnyModel]:
    """Yield a model that knows the noise, then what is better still, as far as the context of the rows allows it.

    Parameters
    ----------
    cross_fit : CrossFit
        Models of all folds, with what was told of sources, or of reviewed rows, in the context of their rows.
    make_model : callable
        Makes a model that believes every label of a `CrossFit`, and of what it says of rows set aside.
    known : tuple of float, array or None
        The rates or the transition matrix, where they are known.
    workers : Workers
        Who else has rows.

    Yields
    ------
    LabelModel
        Who is interrupted has the last one.
    """
    unseen = cross_fit.out_of_fold
    review, sources = unseen.context.reviewed, unseen.context.sources
    model = _estimate_noise(make_model(cross_fit, unseen), known, workers)
    yield model
    if review is not None:
        again = cross_fit.refit(review.labels.astype(np.intp), unseen.weight * _weigh_reviewed(model, review))
        if again is not cross_fit:
            yield _estimate_noise(make_model(again, unseen.judge_anew(again.out_of_fold)), known, workers)
    elif sources is not None:
        model = judge_sources(model)
        yield model
        assert model.sources is not None
        if not differ_much(model.sources):
            return
        reliability = weigh_by_reliability(model.sources, sources)
        again = cross_fit.refit(unseen.labels, unseen.weight * reliability)
        if again is not cross_fit:
            # Models follow labels as these weighed in the training, and so does the noise.
            weighed = _estimate_noise(make_model(again, again.out_of_fold), None, workers)
            assert weighed.out_of_fold is not None
            yield judge_sources(replace(weighed, out_of_fold=unseen.judge_anew(weighed.out_of_fold)), reliability)


def _estimate_noise(model: AnyModel, known: tuple[float, float] | Array | None, workers: Workers) -> AnyModel:
    """Return a model that knows how noisy all labels together are, and undoes it."""
    unseen = model.out_of_fold
    assert unseen is not None
    estimate = estimate_noise_of if unseen.context.reviewed is None else estimate_noise_of_reviewed
    noise = estimate(unseen, known, workers)
    return replace(model, noise=noise, untwists=noise.is_undone)


def judge_sources(model: AnyModel, reliability: Array | None = None) -> AnyModel:
    """Return a model that knows how noisy the labels of each source are.

    Parameters
    ----------
    model : LabelModel
        A model of the rows, with their noise; the context of the rows has their sources.
    reliability : array or None
        What the weight of each training row was multiplied by in training, where it was; rows set aside have weights
        without that.

    Returns
    -------
    LabelModel
    """
    assert model.out_of_fold is not None
    assert model.noise is not None
    found = estimate_noise_of_sources(model.out_of_fold, model.noise, reliability)
    return replace(model, sources=found, noise=found.noise, untwists=True)


def differ_much(noise: NoiseBySource) -> bool:
    """Tell whether labels of some sources are worth so much less than others that all of them should not count alike.

    What matters is how many labels are worth little: a small source that is bad may stand out and still change nothing,
    and where half of the sources are bad none stands out. Labels of weights w count for sum(w)^2 / sum(w^2) in effect.

    Parameters
    ----------
    noise : NoiseBySource
        How noisy each source is.

    Returns
    -------
    bool
    """
    # The sums do not depend on what sources are called.
    total, weighed, squared = (add_up(noise.counts * noise.reliability**power) for power in (0.0, 1.0, 2.0))
    return weighed**2 < ALIKE * total * squared


def weigh_by_reliability(noise: NoiseBySource, sources: LabelSources) -> Array:
    """Return what one label of each row's source is worth.

    Parameters
    ----------
    noise : NoiseBySource
        How noisy each source is.
    sources : LabelSources
        Who gave each label.

    Returns
    -------
    array of shape (n_rows,)
        A label of an unknown source is worth as much as labels are in the mean.
    """
    mean = average(noise.reliability, noise.counts)
    known = sources.index != UNKNOWN
    return np.where(known, noise.reliability[sources.index], mean)


def _weigh_reviewed(model: LabelModel, review: ReviewedRows) -> Array:
    """Return how many noisy labels the label of each row is worth."""
    assert model.noise is not None
    assert model.out_of_fold is not None
    worth = np.ones(len(review.labels))
    known = np.flatnonzero(review.is_reviewed)
    worth[known] = model.noise.worth(model.out_of_fold.posterior[known], review.labels[known].astype(np.intp))
    return worth
