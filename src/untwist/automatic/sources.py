"""Labels of several sources: what was chosen is boosted once more where some of them deserve less trust.

The search sees no sources. What its models say of rows they have not seen tells how noisy each source is
(`untwist.noise.sources`). Where that differs much, the best candidate is boosted again on the same folds, with every
label weighing as much as one of its source is worth, and the sources are judged by that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from untwist.arguments import Array
from untwist.automatic.search import MOST_CLASSES, Search
from untwist.boosting.runs import say
from untwist.data.sources import UNKNOWN, LabelSources
from untwist.fitting import Fit
from untwist.model import FittedModel
from untwist.noise.out_of_fold import estimate_noise_of, estimate_noise_of_sources
from untwist.noise.sources import NoiseBySource
from untwist.sums import add_up, average
from untwist.training_data import TrainingData

__all__ = ["differ_much", "fit_by_source", "judge_sources", "weigh_by_reliability"]

#: Sources are alike where labels, weighed by what they are worth, count for at least this share of their number. One
#: bad source of eight makes it about 0.87, half of them at 30 % wrong labels 0.7; by chance alone it stays above 0.95.
ALIKE = 0.92


def fit_by_source(data: TrainingData) -> Fit:
    """Choose what was left open and judge the sources; where they differ much, boost again by what they are worth.

    Parameters
    ----------
    data : TrainingData
        The rows, with their folds and sources.

    Returns
    -------
    Fit
        Its model has `sources`, unless Ctrl-C came before they were judged. What ends the second fit early, Ctrl-C or a
        callback, leaves the model of the first.
    """
    if len(data.classes) > MOST_CLASSES:
        raise ValueError(
            f"source must be None with more than {MOST_CLASSES:,} classes, got {len(data.classes):,}: sources are "
            "judged by their wrong labels, and of so many classes no noise is found"
        )
    search = Search(data)
    fit = search.run()
    model = fit.model
    if fit.interrupt is not None:  # Many sources take long to judge.
        return fit
    try:
        model = judge_sources(model, data)
        if not search.stopped and model.sources is not None and differ_much(model.sources):
            model = _boost_again(search.data, search, model, model.sources)
    except KeyboardInterrupt as interrupt:
        return Fit(model, interrupt)
    return Fit(model)


def judge_sources(model: FittedModel, data: TrainingData, reliability: Array | None = None) -> FittedModel:
    """Return a model that knows how noisy the labels of each source are.

    Parameters
    ----------
    model : FittedModel
        A model of the rows, with its noise.
    data : TrainingData
        The rows and their sources.
    reliability : array or None
        What the weight of each training row was multiplied by in training, where it was; rows set aside have weights
        without that.

    Returns
    -------
    FittedModel
        The model as it was where not every row has been judged by models that have not seen it.
    """
    unseen, noise = model.out_of_fold, model.noise
    assert unseen is not None
    assert noise is not None  # `SourceColumns` has refused settings without.
    if unseen.context.fingerprint is None:
        return model
    unseen = unseen.add_context(sources=data.sources)
    found = estimate_noise_of_sources(unseen, noise, reliability)
    return replace(model, out_of_fold=unseen, sources=found, noise=found.noise, untwists=True)


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


def _boost_again(data: TrainingData, search: Search, model: FittedModel, noise: NoiseBySource) -> FittedModel:
    """Return the chosen candidate, boosted by what labels are worth; the model as it was where a callback ends that."""
    assert data.sources is not None
    assert data.folds is not None
    assert model.choice is not None
    settings = search.settings
    if settings.verbose:
        say("sources differ: the same once more, each label weighing what its source is worth")
    reliability = weigh_by_reliability(noise, data.sources)
    narrowed = settings.narrow_to(model.choice.best)
    weighed = replace(
        data,
        settings=replace(narrowed, callbacks=settings.callbacks, verbose=settings.verbose),
        rows=replace(data.rows, weight=data.rows.weight * reliability),
        weight=data.weight * reliability,
        folds=data.folds * reliability,
    )
    again = Search(weighed)
    again.started_at = search.started_at
    fit = again.run()
    if fit.interrupt is not None:
        raise fit.interrupt
    if again.stopped:
        return model
    assert fit.model.choice is not None
    assert fit.model.out_of_fold is not None
    assert model.out_of_fold is not None
    second = replace(
        fit.model,
        choice=replace(model.choice, mixture=fit.model.choice.mixture),
        noise=estimate_noise_of(fit.model.out_of_fold, None, data.workers),
        # The folds are the same, and with them the rows set aside, which weigh what they weighed before.
        out_of_fold=model.out_of_fold.judge_anew(fit.model.out_of_fold),
    )
    return judge_sources(second, data, reliability)
