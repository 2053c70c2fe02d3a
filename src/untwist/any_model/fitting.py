"""The fit of any classifier to labels some of which are wrong: clones by folds, the noise they show, and what follows.

Nothing is asked of the classifier but `fit`, `predict_proba` and `get_params`. Its clones judge rows that they have not
seen; once their posteriors are brought to what the labels say of them, these show how noisy labels are, and what
follows from that (`untwist.learning_noise`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.any_model.model import ClonesModel, PassedRows, settle_rows
from untwist.any_model.rows import JudgedRows, read_rows
from untwist.arguments import Array
from untwist.crossing import ClonesByFold, cross_fit_clones
from untwist.data.labels import weigh_classes
from untwist.data.workers import solo
from untwist.fit_arguments import SourceColumns
from untwist.learning_noise import learn_noise
from untwist.noise.calibration import find_calibration
from untwist.out_of_fold import OutOfFold
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
    rows = read_rows(settings, X, y, sample_weight, columns, reviewed)
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
        n_jobs=settings.engine_options.n_jobs,
    )
    make = partial(make_model, rows=rows, class_weights=class_weights)
    model = make(clones, clones.out_of_fold)
    if settings.untwists_posteriors:
        *_, model = learn_noise(clones, make, settings.known_noise)
    return replace(model, clones=model.clones.drop_rows(), has_twins=rows.context.twins is not None)


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


def make_model(clones: ClonesByFold, unseen: OutOfFold, *, rows: JudgedRows, class_weights: Array) -> ClonesModel:
    """Return clones as a model that believes every label, with posteriors that are as often right as they claim.

    Parameters
    ----------
    clones : ClonesByFold
        The clones.
    unseen : OutOfFold
        What they say of rows set aside, and the labels that this is compared with.
    rows : JudgedRows
        The rows with the labels and weights that they were given with.
    class_weights : array
        What multiplies the probabilities of each class.

    Returns
    -------
    ClonesModel
    """
    unseen = unseen.average_by_item()
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
