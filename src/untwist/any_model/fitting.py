"""The fit of any classifier to labels some of which are wrong: clones by folds, the noise they show, and what follows.

Nothing is asked of the classifier but `fit`, `predict_proba` and `get_params`. Its clones judge rows that they have not
seen; once their posteriors are brought to what the labels say of them, these show how noisy labels are. Where a person
has looked at rows, or where sources differ much, the clones are fitted once more in the same folds: to labels as they
should be, each weighing what it is worth.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.any_model.model import ClonesModel, PassedRows, settle_rows
from untwist.any_model.rows import JudgedRows, read_rows
from untwist.arguments import Array
from untwist.automatic.sources import differ_much, weigh_by_reliability
from untwist.crossing import ClonesByFold, cross_fit_clones, name_estimator, takes_sample_weight
from untwist.data.labels import weigh_classes
from untwist.data.workers import solo
from untwist.fit_arguments import SourceColumns
from untwist.noise.calibration import find_calibration
from untwist.noise.model import NoiseModel
from untwist.noise.out_of_fold import estimate_noise_of, estimate_noise_of_reviewed, estimate_noise_of_sources
from untwist.settings import Settings
from untwist.sums import add_up, add_up_by_group
from untwist.theory.links import LogitLink
from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import SoftmaxLink
from untwist.training_data import check_review_allowed

__all__ = ["fit_any_model", "make_model"]


def fit_any_model(
    estimator: Any,
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    columns: SourceColumns,
    reviewed: Any = None,
) -> ClonesModel:
    """Fit clones of a classifier by folds, estimate the noise, and fit them again where more is known of the labels.

    Parameters
    ----------
    estimator : classifier or pipeline
        It stays as it is.
    settings : Settings
        The noise, the folds and the seed.
    X, y, sample_weight, reviewed
        As `UntwistClassifier.fit` takes them.
    columns : SourceColumns
        Who gave each label, and which rows belong together.

    Returns
    -------
    ClonesModel
    """
    X = settle_rows(X)
    columns.check_allowed(settings, solo)
    check_review_allowed(reviewed is not None, settings, columns, solo)
    rows = read_rows(X, y, sample_weight, columns, None, settings.cv, reviewed, settings.seed)
    settings.check_classes(len(rows.classes))
    assert rows.folds is not None  # There are rows.
    class_weights = _weigh_classes(settings, rows)
    clones = cross_fit_clones(
        estimator,
        X,
        rows.labels,
        rows.classes,
        rows.folds,
        rows.weight,
        context=rows.context,
        n_jobs=settings.n_jobs,
    )
    model = judge(make_model(clones, rows, class_weights), settings)
    unseen = model.out_of_fold
    assert unseen is not None
    context = unseen.context
    if context.reviewed is not None and model.noise is not None:
        known = np.flatnonzero(context.reviewed.is_reviewed)
        right = context.reviewed.labels.astype(np.intp)
        worth = np.ones(len(right))
        worth[known] = model.noise.worth(unseen.posterior[known], right[known])
        model = fit_to_reviewed(model, settings, right, rows.weight * worth)
    elif context.sources is not None and model.sources is not None and differ_much(model.sources):
        if takes_sample_weight(estimator):
            model = fit_by_reliability(model, weigh_by_reliability(model.sources, context.sources))
        else:
            warnings.warn(
                f"{name_estimator(estimator)} takes no sample_weight: labels of bad sources count as much as others",
                UserWarning,
                stacklevel=3,
            )
    return replace(model, clones=model.clones.drop_rows(), has_twins=context.twins is not None)


def _weigh_classes(settings: Settings, rows: JudgedRows) -> Array:
    """Return what multiplies the probabilities of each class; two classes at least must have rows."""
    mass = add_up_by_group(rows.weight, rows.labels, len(rows.classes))
    if np.count_nonzero(mass) < 2:
        raise ValueError("y must have two classes among the rows with positive sample_weight")
    if settings.class_weight is None:
        return np.ones(len(rows.classes))
    weights = weigh_classes(settings.class_weight, rows.classes, mass)
    absent = rows.classes[(weights == 0) & (mass > 0)].tolist()
    if absent:
        raise ValueError(
            f"class_weight must be above 0 with an estimator, whose probabilities it multiplies, got 0 for "
            f"{absent[0]!r}: leave out the rows of this class"
        )
    return weights


def make_model(clones: ClonesByFold, rows: JudgedRows, class_weights: Array) -> ClonesModel:
    """Return clones as a model that corrects nothing yet, with posteriors that are as often right as they claim."""
    unseen = clones.out_of_fold.average_by_item()
    judged = np.flatnonzero(unseen.judged)
    told = unseen.posterior[judged], unseen.labels[judged], unseen.weight[judged]
    calibration = find_calibration(*told, are_counts=True)
    posterior = unseen.posterior.copy()
    posterior[judged] = calibration.apply(posterior[judged])
    alpha_of_labels = AlphaLoss(1.0)  # The log-loss: scores are logarithms of what labels follow.
    return ClonesModel(
        classes=rows.classes,
        link=LogitLink(alpha_of_labels) if len(rows.classes) == 2 else SoftmaxLink(alpha_of_labels),
        class_weights=class_weights,
        n_rows=len(rows.labels),
        n_effective_rows=max(float(np.count_nonzero(rows.weight)), add_up(rows.weight)),
        out_of_fold=replace(unseen, posterior=posterior),
        clones=clones,
        calibration=calibration,
        encoder=PassedRows(rows.encoder),
    )


def judge(model: ClonesModel, settings: Settings) -> ClonesModel:
    """Return a model that knows how noisy the labels are, those of each source too, and undoes it."""
    unseen = model.out_of_fold
    assert unseen is not None
    if not settings.untwists_posteriors:
        return model
    noise: NoiseModel
    if unseen.context.reviewed is not None:
        noise = estimate_noise_of_reviewed(unseen, settings.known_noise)
    else:
        noise = estimate_noise_of(unseen, settings.known_noise)
    if unseen.context.sources is None:
        return replace(model, noise=noise, untwists=noise.is_undone)
    found = estimate_noise_of_sources(unseen, noise)
    return replace(model, noise=found.noise, untwists=True, sources=found)


def fit_to_reviewed(model: ClonesModel, settings: Settings, labels: Any, weight: Array) -> ClonesModel:
    """Return a model of clones that were fitted to labels as a review left them, in the same folds.

    With weights that are what a label is worth, the clones still say what labels will be. So what they say is compared
    with the labels as they were given, which weigh what they weighed before.
    """
    before = model.clones.out_of_fold
    clones = model.clones.refit(labels, weight)
    clones = replace(clones, out_of_fold=before.judge_anew(clones.out_of_fold))
    return judge(make_model(clones, _list_rows(model), model.class_weights), settings)


def fit_by_reliability(model: ClonesModel, reliability: Array) -> ClonesModel:
    """Return a model of clones that were fitted to labels weighing what their sources are worth, in the same folds.

    They follow labels as these weighed in the training, and so does the noise. Sources are judged by the weights that
    labels had before.
    """
    before = model.clones.out_of_fold
    weighed = make_model(
        model.clones.refit(before.labels, before.weight * reliability), _list_rows(model), model.class_weights
    )
    assert weighed.out_of_fold is not None
    unseen = before.judge_anew(weighed.out_of_fold)
    found = estimate_noise_of_sources(unseen, estimate_noise_of(weighed.out_of_fold), reliability)
    return replace(weighed, out_of_fold=unseen, noise=found.noise, untwists=True, sources=found)


def _list_rows(model: ClonesModel) -> JudgedRows:
    """Return the rows of a model with the labels and weights that they were given with."""
    given = model.clones.out_of_fold
    return JudgedRows(model.classes, given.labels, given.weight, None, model.encoder.by_index, given.context)
