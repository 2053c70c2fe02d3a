"""Who judges labels: models that have not seen them, whoever made them.

They are those of an UntwistClassifier that chose by folds, clones of any other classifier, or models that nothing but
their posteriors is known of. All of them leave an `OutOfFold`; what only some know comes beside it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from untwist.any_model.model import ClonesModel
from untwist.any_model.rows import JudgedRows, hash_contents, read_rows
from untwist.arguments import Array
from untwist.audit.posteriors import read_posteriors
from untwist.audit.seen_labels import compare_with_quick_model, find_sign_of_seen_labels
from untwist.class_order import list_ordered_categories
from untwist.classifier import UntwistClassifier
from untwist.crossing import check_estimator, cross_fit_clones, name_estimator
from untwist.data.encoding import TableEncoder
from untwist.data.groups import read_groups
from untwist.data.labels import encode_labels
from untwist.data.sources import read_names
from untwist.data.tables import bring_to_host, compute_fingerprint
from untwist.data.targets import know_rows
from untwist.fit_arguments import SourceColumns
from untwist.noise.calibration import calibrate
from untwist.noise.model import NoiseModel
from untwist.noise.out_of_fold import estimate_noise_of, estimate_noise_of_reviewed, estimate_noise_of_sources
from untwist.noise.sources import NoiseBySource
from untwist.out_of_fold import OutOfFold
from untwist.settings import RECIPE_DEFAULTS, Settings, resolve_recipe
from untwist.sums import average

__all__ = ["Judges", "ask_clones", "ask_fitted_model", "fit_own_model", "judges_by_own_folds", "read_judges"]


@dataclass(frozen=True, eq=False)
class Judges:
    """Models that judge labels which they have not seen.

    Parameters
    ----------
    out_of_fold : OutOfFold
        What they say of every row: of the rows of an item the same, and as often right as it claims.
    noise : NoiseModel
        How noisy that shows the labels to be.
    by_source : NoiseBySource or None
        How noisy the labels of each source are, where sources are known.
    encoder : TableEncoder or None
        How the rows become numbers, where they are a table.
    model : UntwistClassifier or None
        The classifier that the models are of, where it is ours.
    name : str
        What the judges are called.
    in_sample_reason : str
        Why they look as if they had seen the labels, where they do.
    """

    out_of_fold: OutOfFold
    noise: NoiseModel
    by_source: NoiseBySource | None = None
    encoder: TableEncoder | None = None
    model: UntwistClassifier | None = None
    name: str = "UntwistClassifier, out of fold"
    in_sample_reason: str = ""


# ---- a classifier of ours ----


def judges_by_own_folds(model: Any) -> bool:
    """Tell whether the fit of a model judges its rows by folds, so that the audit need not."""
    return isinstance(model, UntwistClassifier)


def _make_auditor(model: UntwistClassifier, verbose: int, **told: Any) -> UntwistClassifier:
    """Return an unfitted classifier like the one given; what that leaves open is as the audit was told."""
    if told["cv"] is not None and model.cv is not None:
        raise ValueError("cv must be None beside a model that has its own: both say which folds judge the labels")
    if told["order"] is not None and model.order is not None:
        raise ValueError("order must be None beside a model that has its own: both say how classes are ordered")
    auditor: UntwistClassifier = clone(model)
    auditor.set_params(**{name: value for name, value in told.items() if getattr(model, name) is None})
    auditor.set_params(verbose=model.verbose or verbose)
    return auditor


def fit_own_model(
    model: UntwistClassifier | None,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    columns: SourceColumns,
    reviewed: Any,
    verbose: int,
    **told: Any,
) -> UntwistClassifier:
    """Return a classifier that is fitted to the rows: the one that is given where it is, else one like it.

    Parameters
    ----------
    model : UntwistClassifier or None
        A classifier that is fitted or not; None for one that chooses everything.
    X, y, sample_weight, columns, reviewed, verbose
        What `audit_labels` was given.
    **told
        Parameters for what an unfitted classifier leaves open: cv, n_jobs and random_state.

    Returns
    -------
    UntwistClassifier
    """
    if model is not None and hasattr(model, "model_"):
        given = {"sample_weight": sample_weight, "reviewed": reviewed, "cv": told["cv"], "order": told["order"]}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} belongs to the fit of the model that is given: leave it out")
        return model
    auditor = UntwistClassifier(verbose=verbose, **told) if model is None else _make_auditor(model, verbose, **told)
    return auditor.fit(
        X,
        y,
        sample_weight=sample_weight,
        source=columns.source,
        item=columns.item,
        reviewed=reviewed,
        groups=columns.groups,
    )


def ask_fitted_model(model: UntwistClassifier, X: Any, y: Any, columns: SourceColumns) -> Judges:
    """Return the judges that a fitted classifier has: the models of its folds.

    Parameters
    ----------
    model : UntwistClassifier
        A classifier that chose by folds.
    X, y, columns
        The rows, which must be those that it was fitted to.

    Returns
    -------
    Judges
    """
    fitted = model.model_
    unseen = fitted.out_of_fold
    if unseen is None or unseen.context.fingerprint is None:
        raise ValueError(
            "model must be an UntwistClassifier whose fit was not cut short. A file keeps no posteriors of folds, so "
            "that a loaded one has none: give it unfitted"
        )
    _check_rows(model, unseen, X, y)
    _check_sources(unseen, columns.source, columns.item)
    _check_groups(unseen, columns.groups)
    noise = estimate_noise_of(unseen) if fitted.noise is None else fitted.noise
    judged = unseen.average_by_item()
    if isinstance(fitted, ClonesModel):
        name = f"{name_estimator(model.estimator)}, fitted out of fold"
        return Judges(judged, noise, fitted.sources, fitted.encoder.by_index, name=name)
    return Judges(judged, noise, fitted.sources, fitted.encoder, model)


def _check_rows(model: UntwistClassifier, unseen: OutOfFold, X: Any, y: Any) -> None:
    """Raise a ValueError where the rows are not those of the fit."""
    labels = encode_labels("y", y, unseen.classes)
    by_index = model.model_.encoder.by_index
    rows = hash_contents(bring_to_host(X), len(labels))[:, None] if by_index is None else by_index.encode(X, model)
    review = unseen.context.reviewed
    if review is not None and len(labels) == len(review.labels):
        labels = review.restore(labels)
    if rows.shape[0] != len(labels) or compute_fingerprint(rows, labels) != unseen.context.fingerprint:
        raise ValueError("X and y must be the rows that the model was fitted to, in the same order")


def _check_sources(unseen: OutOfFold, source: Any, item: Any) -> None:
    """Raise a ValueError where sources and items are not those of the fit."""
    votes = unseen.context.sources
    if votes is None:
        if source is not None or item is not None:
            raise ValueError("the model was fitted without source: fit it with source=..., or leave model out")
        return
    n_rows = len(votes.index)
    if source is not None:
        names, index = read_names("source", source, n_rows)
        if not (np.array_equal(names, votes.names) and np.array_equal(index, votes.index)):
            raise ValueError("source must be that of the rows that the model was fitted to, in the same order")
    if item is not None:
        _, named = read_names("item", item, n_rows)
        # Rows are of one item in both cases, or in neither; one of weight 0 is an item of its own.
        counted = (named >= 0) & (unseen.judged_weight > 0)
        pairs = len(np.unique((named * votes.n_items + votes.items)[counted]))
        if not pairs == len(np.unique(named[counted])) == len(np.unique(votes.items[counted])):
            raise ValueError("item must be that of the rows that the model was fitted to, in the same order")


def _check_groups(unseen: OutOfFold, groups: Any) -> None:
    """Raise a ValueError where the rows that belong together are others than those of the fit."""
    known = unseen.context.groups
    if groups is None:
        return
    if known is None:
        raise ValueError("the model was fitted without groups: fit it with groups=..., or leave model out")
    if not known.is_same_as(read_groups(groups, len(known.index))):
        raise ValueError("groups must be those of the rows that the model was fitted to, in the same order")


# ---- any other models ----


def ask_clones(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    columns: SourceColumns,
    reviewed: Any,
    cv: Any,
    order: Any,
    n_jobs: int | None,
    random_state: Any,
) -> Judges:
    """Return clones of a classifier, each fitted to all rows but those that it judges.

    Parameters
    ----------
    model : classifier
        It stays as it is.
    X, y, sample_weight, columns, reviewed, cv, order, n_jobs, random_state
        What `audit_labels` was given.

    Returns
    -------
    Judges
    """
    check_estimator(model, "model", instead=", or give posteriors as pred_probs")
    settings = _resolve(y, cv=cv, order=order, random_state=random_state)
    rows = read_rows(settings, X, y, sample_weight, columns, reviewed)
    assert rows.folds is not None  # There are rows.
    told = rows.labels, rows.classes, rows.folds, rows.weight
    unseen = cross_fit_clones(model, X, *told, context=rows.context, n_jobs=n_jobs).out_of_fold
    return _let_judge(unseen, rows, f"{name_estimator(model)}, fitted out of fold")


def read_judges(
    pred_probs: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    columns: SourceColumns,
    reviewed: Any,
    order: Any,
    n_jobs: int | None,
    random_state: Any,
) -> Judges:
    """Return models that nothing is known of but their posteriors.

    Parameters
    ----------
    pred_probs : array-like or DataFrame
        What they say of every row.
    X, y, sample_weight, columns, reviewed, order, n_jobs, random_state
        What `audit_labels` was given.

    Returns
    -------
    Judges
        With a UserWarning where they look as if they had seen the labels.
    """
    with know_rows():  # Posteriors of so many classes say that they are classes.
        settings = _resolve(y, order=order, random_state=random_state)
        rows = read_rows(settings, X, y, sample_weight, columns, reviewed)
    n_rows = len(rows.labels)
    raw = read_posteriors(pred_probs, rows.classes, n_rows)
    _warn_of_contradiction(raw, rows)
    reason = _find_seen_labels(raw, X, rows, n_jobs, random_state)
    held_out = np.ones((1, n_rows))  # Whoever made the folds has judged every row.
    unseen = OutOfFold(rows.classes, raw, rows.labels, rows.weight, held_out, rows.context)
    return replace(_let_judge(unseen, rows, "posteriors that were given"), in_sample_reason=reason)


def _resolve(y: Any, **told: Any) -> Settings:
    """Return the settings that say how rows are read."""
    settings = resolve_recipe({**RECIPE_DEFAULTS, **told})
    return settings if settings.order is not None else replace(settings, order=list_ordered_categories(y))


def expect_chance(judges: Judges) -> Judges:
    """Return judges who take no label for wrong, as chance has a part in all of them."""
    return replace(judges, noise=NoiseModel.given(np.eye(len(judges.out_of_fold.classes))), by_source=None)


def _let_judge(unseen: OutOfFold, rows: JudgedRows, name: str) -> Judges:
    """Return judges whose posteriors are brought to what the labels say of them, which shows how noisy these are."""
    unseen = unseen.average_by_item()
    part = np.flatnonzero(unseen.judged)
    posterior = unseen.posterior.copy()
    posterior[part] = calibrate(posterior[part], unseen.labels[part], unseen.weight[part])
    unseen = replace(unseen, posterior=posterior)
    is_reviewed, has_sources = unseen.context.reviewed is not None, unseen.context.sources is not None
    noise = estimate_noise_of_reviewed(unseen) if is_reviewed else estimate_noise_of(unseen)
    by_source = estimate_noise_of_sources(unseen, noise) if has_sources else None
    return Judges(unseen, noise, by_source, rows.encoder, name=name)


def _find_seen_labels(raw: Array, X: Any, rows: JudgedRows, n_jobs: int | None, random_state: Any) -> str:
    """Return why given posteriors look as if they had seen the labels, with a warning; nothing where they do not."""
    if rows.encoder is None:
        reason = find_sign_of_seen_labels(raw, rows.labels, rows.weight)
    else:
        reason = compare_with_quick_model(raw, X, rows.labels, rows.weight, n_jobs=n_jobs, random_state=random_state)
    if reason:
        warnings.warn(
            f"pred_probs look as if they had seen the labels: {reason}. Wrong labels that a model has seen look right "
            "to it: give posteriors out of fold, or the model itself as model=...",
            UserWarning,
            stacklevel=4,
        )
    return reason


def _warn_of_contradiction(raw: Array, rows: JudgedRows) -> None:
    """Warn of posteriors that speak against most labels: their columns may be in another order than the classes."""
    n_classes = raw.shape[1]
    of_label = average(raw[np.arange(len(raw)), rows.labels], rows.weight)
    if of_label < 1.0 / n_classes - 3.0 * np.sqrt(0.25 / len(raw)):
        order = ", ".join(map(str, rows.classes[:5].tolist())) + (", ..." if n_classes > 5 else "")
        warnings.warn(
            f"pred_probs give the labels {of_label:.0%} on average, less than chance would: are their columns in the "
            f"order of the sorted classes ({order})?",
            UserWarning,
            stacklevel=4,
        )
