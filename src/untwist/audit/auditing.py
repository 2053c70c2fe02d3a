"""The audit of labels: whose posteriors judge them, whose rows they are, and who gave them.

Posteriors are those of a PILBoostClassifier that chose by folds, or of any other model: given, or by clones that are
fitted here out of fold.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from untwist.arguments import Array
from untwist.audit.context import AuditedTable, Judge, RowContext
from untwist.audit.correcting import find_order
from untwist.audit.judging import (
    Judgement,
    doubt_judgement,
    judge_alike,
    judge_by_source,
    settle_reviewed,
)
from untwist.audit.labels import LabelAudit
from untwist.audit.out_of_fold import predict_out_of_fold
from untwist.audit.posteriors import read_posteriors
from untwist.audit.rows import AuditedRows, read_rows
from untwist.audit.seen_labels import compare_with_quick_model, find_sign_of_seen_labels
from untwist.classifier import PILBoostClassifier, list_parameters
from untwist.data.groups import RowGroups, read_groups
from untwist.data.labels import encode_labels
from untwist.data.reviews import ReviewedRows, read_review
from untwist.data.sources import LabelSources, read_names
from untwist.data.tables import allow_taking_rows, compute_fingerprint
from untwist.data.targets import know_rows
from untwist.data.twins import Twins
from untwist.model import FittedModel, average_by_item
from untwist.noise.calibration import calibrate
from untwist.noise.dependence import find_rows_per_case
from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.rates import estimate_noise
from untwist.noise.reviews import learn_from_review
from untwist.noise.sources import NoiseBySource, estimate_by_source
from untwist.noise.transitions import estimate_transitions
from untwist.noise.untwisting import Untwisting
from untwist.progress import show_progress
from untwist.settings import resolve
from untwist.sums import average
from untwist.training_data import SourceColumns

__all__ = ["audit_labels"]


def audit_labels(
    X: Any = None,
    y: Any = None,
    model: Any = None,
    *,
    pred_probs: Any = None,
    source: Any = None,
    item: Any = None,
    reviewed: Any = None,
    groups: Any = None,
    cv: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> LabelAudit:
    """Judge every label of (X, y) by models that have not seen it.

    Parameters
    ----------
    X, y, source, item, reviewed, groups, sample_weight
        As `PILBoostClassifier.fit` takes them. `source` says who or what gave each label, `item` which rows are labels
        of one thing, and `groups` which rows belong together, as those of one patient do; none is a feature. Rows of a
        group are judged by models that have seen none of it, and where they err together they count as few. Rows that
        nearly repeat rows of other folds are looked for (`RowContext.twins`), with groups too: among rows whose group
        has several rows or is not known. `reviewed` says what a person found: of these rows it is certain whether the
        label that `y` has is wrong, they are never suspects, and `LabelAudit.review` counts them; it goes without
        `source`. X may be left out where `pred_probs` are given; beside `model` it may be whatever that takes, texts
        for example.
    model : classifier or None
        A `PILBoostClassifier` that chose by folds (as `PILBoostClassifier()` does) and was fitted to the very same
        rows, so that nothing has to be fitted again, with the same sources if any; one that is not fitted yet is
        fitted here, as a clone. Or any other classifier or pipeline of scikit-learn's kind with `predict_proba`: clones
        of it are fitted here, each to all rows but those that it judges. Rows of equal content, or of one item, are
        never on both sides. None: a PILBoostClassifier is fitted.
    pred_probs : array-like of shape (n_rows, n_classes), DataFrame or None
        Posteriors of any model in place of one, out of fold: no row may be judged by a model that has seen its label.
        Columns are in the order of the sorted classes, or those of a DataFrame are named by the classes; of two classes
        the probability of the second one will do. They are calibrated to the labels first. A UserWarning names
        posteriors that look as if they had seen the labels (`LabelAudit.judge`).
    cv : int, splitter, iterable or None
        The folds that labels are judged by, as `PILBoostClassifier` takes them. Rows that folds of one's own do not
        judge have NaN in `wrong`, and no part in what is said of the labels. Not with `pred_probs` or a fitted model,
        whose folds are made already.
    n_jobs, random_state
        Those of the classifier that is fitted, unless it is given and has its own; for another model `random_state` is
        that of the folds.
    verbose : int, default 0
        That of the classifier that is fitted. Above 0 it is shown how far the audit is, with an estimate of what is
        left: a line in a terminal, a bar in a notebook.

    Returns
    -------
    LabelAudit
        By posteriors of another model it has no trees of ours: `explain` raises an error that says so. Without a table
        `slices` does too.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X[:, 0] > 0
    >>> flipped = rng.choice(500, 50, replace=False)
    >>> y[flipped] = ~y[flipped]
    >>> suspects = audit_labels(X, y).suspects()
    >>> bool(np.isin(suspects, flipped).mean() > 0.9)
    True
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> suspects = audit_labels(X, y, RandomForestClassifier(random_state=0)).suspects()
    >>> bool(np.isin(suspects, flipped).mean() > 0.9)
    True
    """
    if np.ndim(y) == 2 and np.ndim(X) == 1:
        raise ValueError("X comes first, and then y: without X it is audit_labels(y=labels, pred_probs=posteriors)")
    if y is None:
        raise ValueError("y must be the labels: audit_labels(X, y), or audit_labels(y=y, pred_probs=...)")
    if pred_probs is not None and model is not None:
        raise ValueError("pred_probs and model exclude each other: both say whose posteriors judge the labels")
    if pred_probs is None and X is None:
        raise ValueError("X must be the rows, unless pred_probs are given")
    if pred_probs is None and (model is None or _judges_by_own_folds(model)):
        if model is None:
            model = PILBoostClassifier(cv=cv, n_jobs=n_jobs, random_state=random_state, verbose=verbose)
            model.fit(X, y, sample_weight=sample_weight, source=source, item=item, reviewed=reviewed, groups=groups)
        elif not hasattr(model, "model_"):
            model = _make_auditor(model, cv=cv, n_jobs=n_jobs, random_state=random_state, verbose=verbose)
            model.fit(X, y, sample_weight=sample_weight, source=source, item=item, reviewed=reviewed, groups=groups)
        else:
            for name, value in {"sample_weight": sample_weight, "reviewed": reviewed, "cv": cv}.items():
                if value is not None:
                    raise ValueError(f"{name} belongs to the fit of the model that is given: leave it out")
        with show_progress(verbose > 0):
            return _audit_by_own_model(X, y, model, SourceColumns(source, item, groups))
    if pred_probs is not None and cv is not None:
        raise ValueError("cv must be None with pred_probs, whose folds are made already")
    if reviewed is not None and source is not None:
        raise ValueError("reviewed and source exclude each other: apply the decisions to y, and leave reviewed out")
    X = allow_taking_rows(X)
    review = None if reviewed is None else read_review(reviewed, X, y)
    labels_before = y if review is None else review.given
    columns = SourceColumns(source, item, groups)
    # Posteriors say how many classes there are.
    with nullcontext() if pred_probs is None else know_rows():
        rows = read_rows(X, labels_before, sample_weight, columns, random_state, cv, review is not None)
    reason = ""
    if pred_probs is None:
        assert rows.folds is not None  # There are rows.
        judge = f"{_name_model(model)}, fitted out of fold"
        raw = predict_out_of_fold(model, X, rows.labels, rows.classes, rows.folds, rows.weight, rows.own_folds)
    else:
        judge = "posteriors that were given"
        raw = read_posteriors(pred_probs, rows.classes, len(rows.labels))
        _warn_of_contradiction(raw, rows)
        reason = _find_seen_labels(raw, X, rows, n_jobs, random_state)
    known = None if review is None or not review.is_reviewed.any() else review.encode(rows.classes)
    return _audit_by_posterior(raw, X, y, rows, item, known, judge, reason)


def _judges_by_own_folds(model: Any) -> bool:
    """Tell whether a model is a PILBoostClassifier that was fitted, or whose fit is to choose by folds."""
    if not isinstance(model, PILBoostClassifier):
        return False
    return hasattr(model, "model_") or resolve(list_parameters(model), seed=0).automatic


def _make_auditor(model: PILBoostClassifier, *, verbose: int, **told: Any) -> PILBoostClassifier:
    """Return an unfitted classifier like the one given; what that leaves open is as the audit was told."""
    if told["cv"] is not None and model.cv is not None:
        raise ValueError("cv must be None beside a model that has its own: both say which folds judge the labels")
    auditor: PILBoostClassifier = clone(model)
    auditor.set_params(**{name: value for name, value in told.items() if getattr(model, name) is None})
    auditor.set_params(verbose=model.verbose or verbose)
    if not resolve(list_parameters(model), seed=0).untwists_posteriors:
        auditor.set_params(noise_rates=None)  # What the fit leaves out the audit does, so that nothing need be said.
    return auditor


def _audit_by_own_model(X: Any, y: Any, model: PILBoostClassifier, columns: SourceColumns) -> LabelAudit:
    """Judge labels by a classifier that chose by folds."""
    posterior = getattr(model, "oof_proba_", None)
    if posterior is None:
        raise ValueError(
            "model must be a PILBoostClassifier that chose by folds: fitted, with alpha, n_estimators or max_depth "
            '"auto", and without X_val. A file keeps no posteriors of folds, so that a loaded one is none'
        )
    fitted = model.model_
    labels, held = _check_rows(model, X, y)
    votes = _check_sources(fitted, columns.source, columns.item)
    groups = _check_groups(fitted, columns.groups)
    if isinstance(fitted.alpha, float) and fitted.alpha < 0:
        raise ValueError(f"model must have a positive alpha, got {fitted.alpha}: it takes most labels for wrong")
    posterior = fitted.out_of_fold_posterior_of_labels()
    assert fitted.out_of_fold is not None  # The posterior comes from there.
    weight = fitted.out_of_fold.row_weights()
    review = fitted.out_of_fold.reviewed
    counted = weight if review is None else np.where(review.is_reviewed, 0.0, weight)
    is_judged, twins = fitted.out_of_fold.judged, fitted.out_of_fold.twins
    cases = _find_cases(posterior, labels, weight, groups)
    judged = _judge(fitted, votes, posterior, labels, counted, cases, is_judged)
    if review is not None:
        judged = settle_reviewed(judged, review, held, weight)
    if twins is not None:
        judged = doubt_judgement(judged, twins.share)
    return LabelAudit(
        classes=fitted.classes,
        given=fitted.classes[held],
        predicted=fitted.classes[judged.predicted],
        posterior=posterior,
        wrong=judged.wrong,
        noise=judged.noise,
        noise_rate=judged.share,
        rate_by_label=dict(zip(fitted.classes.tolist(), judged.share_by_label, strict=True)),
        weight=weight,
        model=model,
        table=AuditedTable(X, fitted.encoder, model),
        context=RowContext(
            source=None if votes is None else _name_sources(votes),
            item=None if votes is None else _name_items(votes, columns.item, weight),
            by_source=_doubt_sources(fitted.sources, twins),
            reviewed=None if review is None else review.is_reviewed,
            before_review=_name_labels_before(review, fitted.classes),
            n_skipped=0 if review is None else review.n_skipped,
            groups=None if groups is None else groups.name_rows(),
            rows_per_case=cases,
            judged=is_judged,
            twins=twins,
            order=find_order(y, fitted.classes),
        ),
    )


def _audit_by_posterior(
    raw: Array,
    X: Any,
    y: Any,
    rows: AuditedRows,
    item: Any,
    review: ReviewedRows | None,
    judge: str,
    in_sample_reason: str,
) -> LabelAudit:
    """Judge labels by posteriors of any model, once these say how often each label is borne."""
    labels, weight, votes = rows.labels, rows.weight, rows.votes
    held = labels if review is None else encode_labels("y", y, rows.classes).astype(np.intp)
    if votes is not None and votes.has_repeated_items:
        raw = average_by_item(raw, votes.items)
    is_judged = rows.judged
    if is_judged is not None:
        weight = np.where(is_judged, weight, 0.0)
    part = np.arange(len(labels)) if is_judged is None else np.flatnonzero(is_judged)
    posterior = raw.copy()
    posterior[part] = calibrate(raw[part], labels[part], weight[part])
    cases = _find_cases(posterior, labels, weight, rows.groups)
    by_source = None
    if review is not None:
        counted = np.where(review.is_reviewed, 0.0, weight)
        noise = _learn_noise(posterior, labels, weight, review, cases)
        judged = judge_alike(noise, posterior, labels, counted, rows_per_case=cases)
        judged = settle_reviewed(judged, review, held, weight)
    elif votes is not None:
        noise = _estimate_noise(posterior, labels, weight, cases)
        by_source = _estimate_by_source(noise, votes, posterior, labels, weight, cases)
        judged = judge_by_source(by_source, votes, posterior, labels, weight, rows_per_case=cases)
    else:
        noise = _estimate_noise(posterior[part], labels[part], weight[part], cases)
        judged = judge_alike(noise, posterior, labels, weight, rows_per_case=cases, judged=is_judged)
    if rows.twins is not None:
        judged = doubt_judgement(judged, rows.twins.share)
    return LabelAudit(
        classes=rows.classes,
        given=rows.classes[held],
        predicted=rows.classes[judged.predicted],
        posterior=posterior,
        wrong=judged.wrong,
        noise=judged.noise,
        noise_rate=judged.share,
        rate_by_label=dict(zip(rows.classes.tolist(), judged.share_by_label, strict=True)),
        weight=weight,
        model=None,
        table=AuditedTable(X, rows.encoder),
        judge=Judge(judge, in_sample_reason),
        context=RowContext(
            source=None if votes is None else _name_sources(votes),
            item=None if votes is None else _name_items(votes, item, weight),
            by_source=_doubt_sources(by_source, rows.twins),
            reviewed=None if review is None else review.is_reviewed,
            before_review=_name_labels_before(review, rows.classes),
            n_skipped=0 if review is None else review.n_skipped,
            groups=None if rows.groups is None else rows.groups.name_rows(),
            rows_per_case=cases,
            judged=is_judged,
            twins=rows.twins,
            order=find_order(y, rows.classes),
        ),
    )


def _doubt_sources(by_source: NoiseBySource | None, twins: Twins | None) -> NoiseBySource | None:
    is_in_doubt = by_source is not None and twins is not None and not by_source.untwisting.is_given
    return by_source.drop_upper_limits() if by_source is not None and is_in_doubt else by_source


def _find_cases(posterior: Array, labels: NDArray[np.intp], weight: Array, groups: RowGroups | None) -> float:
    """Return how many rows count as one, as those of a group err together."""
    if groups is None:
        return 1.0
    return find_rows_per_case(posterior, labels, weight, groups.number_rows())


def _estimate_noise(
    posterior: Array, labels: NDArray[np.intp], weight: Array, cases: float
) -> Untwisting | MatrixUntwisting:
    if posterior.shape[1] == 2:
        return estimate_noise(posterior[:, 1], labels, sample_weight=weight, rows_per_case=cases)
    return estimate_transitions(posterior, labels, weight, rows_per_case=cases)


def _learn_noise(
    posterior: Array, labels: NDArray[np.intp], weight: Array, review: ReviewedRows, cases: float
) -> Untwisting | MatrixUntwisting:
    """Estimate the noise with what a review found; where nobody knows what it changed, that of the other rows."""
    is_open = ~review.is_reviewed
    if not review.knows_given:
        return _estimate_noise(posterior, labels, weight * is_open if weight[is_open].any() else weight, cases)
    known = np.flatnonzero(review.is_reviewed & (weight > 0))
    noise = _estimate_noise(posterior, labels, weight, cases)
    return learn_from_review(noise, posterior[known], labels[known], review.labels[known].astype(np.intp))


def _estimate_by_source(
    noise: Untwisting | MatrixUntwisting,
    votes: LabelSources,
    posterior: Array,
    labels: NDArray[np.intp],
    weight: Array,
    cases: float,
) -> NoiseBySource:
    present = np.flatnonzero(weight)  # A row of weight 0 is an absent one.
    return estimate_by_source(
        posterior[present],
        labels[present],
        votes.index[present],
        names=votes.names,
        noise=noise,
        weight=weight[present],
        items=np.unique(votes.items[present], return_inverse=True)[1],
        pooled_weight=weight[present],
        rows_per_case=cases,
    )


def _find_seen_labels(raw: Array, X: Any, rows: AuditedRows, n_jobs: int | None, random_state: Any) -> str:
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
            stacklevel=3,
        )
    return reason


def _warn_of_contradiction(raw: Array, rows: AuditedRows) -> None:
    """Warn of posteriors that speak against most labels: their columns may be in another order than the classes."""
    n_classes = raw.shape[1]
    of_label = average(raw[np.arange(len(raw)), rows.labels], rows.weight)
    if of_label < 1.0 / n_classes - 3.0 * np.sqrt(0.25 / len(raw)):
        order = ", ".join(map(str, rows.classes[:5].tolist())) + (", ..." if n_classes > 5 else "")
        warnings.warn(
            f"pred_probs give the labels {of_label:.0%} on average, less than chance would: are their columns in the "
            f"order of the sorted classes ({order})?",
            UserWarning,
            stacklevel=3,
        )


def _name_model(model: Any) -> str:
    """Return the class of a model; of a pipeline that of its last step."""
    return type(model.steps[-1][1] if isinstance(model, Pipeline) else model).__name__


def _judge(
    fitted: FittedModel,
    votes: LabelSources | None,
    posterior: Array,
    labels: NDArray[np.intp],
    weight: Array,
    cases: float,
    judged: NDArray[np.bool_] | None,
) -> Judgement:
    """Judge labels by their sources where these are known, and all alike where not."""
    if votes is None:
        noise = fitted.noise if isinstance(fitted.noise, (Untwisting, MatrixUntwisting)) else fitted.estimate_noise()
        return judge_alike(noise, posterior, labels, weight, rows_per_case=cases, judged=judged)
    assert fitted.sources is not None  # Sources that were given are estimated.
    return judge_by_source(fitted.sources, votes, posterior, labels, weight, rows_per_case=cases)


def _name_labels_before(review: ReviewedRows | None, classes: NDArray[Any]) -> NDArray[Any] | None:
    """Return the labels before a review, if they are known."""
    return None if review is None or not review.knows_given else np.asarray(classes[review.given])


def _check_rows(model: PILBoostClassifier, X: Any, y: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the labels as indices of classes, before any review and as `y` has them.

    A ValueError where the rows are not those of the fit.
    """
    fitted = model.model_
    rows = fitted.encoder.by_index.encode(X, model)
    held = labels = fitted.encode_labels("y", y)
    assert fitted.out_of_fold is not None
    review = fitted.out_of_fold.reviewed
    if review is not None and len(labels) == len(review.labels):
        labels = review.restore(labels)
    if rows.shape[0] != len(labels) or compute_fingerprint(rows, labels) != fitted.out_of_fold.fingerprint:
        raise ValueError("X and y must be the rows that the model was fitted to, in the same order")
    return labels.astype(np.intp), held.astype(np.intp)


def _check_sources(fitted: FittedModel, source: Any, item: Any) -> LabelSources | None:
    """Return who gave each label; a ValueError where sources and items are not those of the fit."""
    assert fitted.out_of_fold is not None
    votes = fitted.out_of_fold.sources
    if votes is None:
        if source is not None or item is not None:
            raise ValueError("the model was fitted without source: fit it with source=..., or leave model out")
        return None
    n_rows = len(votes.index)
    weight = fitted.out_of_fold.row_weights()
    if source is not None:
        names, index = read_names("source", source, n_rows)
        if not (np.array_equal(names, votes.names) and np.array_equal(index, votes.index)):
            raise ValueError("source must be that of the rows that the model was fitted to, in the same order")
    if item is not None:
        _, named = read_names("item", item, n_rows)
        # Rows are of one item in both cases, or in neither; one of weight 0 is an item of its own.
        counted = (named >= 0) & (weight > 0)
        pairs = len(np.unique((named * votes.n_items + votes.items)[counted]))
        if not pairs == len(np.unique(named[counted])) == len(np.unique(votes.items[counted])):
            raise ValueError("item must be that of the rows that the model was fitted to, in the same order")
    return votes


def _check_groups(fitted: FittedModel, groups: Any) -> RowGroups | None:
    """Return which rows belong together; a ValueError where that is not what the fit was told."""
    assert fitted.out_of_fold is not None
    known = fitted.out_of_fold.groups
    if groups is None:
        return known
    if known is None:
        raise ValueError("the model was fitted without groups: fit it with groups=..., or leave model out")
    if not known.is_same_as(read_groups(groups, len(known.index))):
        raise ValueError("groups must be those of the rows that the model was fitted to, in the same order")
    return known


def _name_sources(votes: LabelSources) -> NDArray[Any]:
    """Return the name of each row's source, None where it is not known."""
    names = np.array([*votes.names.tolist(), None], dtype=object)
    return np.asarray(names[votes.index])


def _name_items(votes: LabelSources, item: Any, weight: Array) -> NDArray[Any]:
    """Return the name of each row's item; where it has none, or no weight, the position of its first row."""
    _, first = np.unique(votes.items, return_index=True)
    positions = first[votes.items]
    if item is None:
        return positions
    names, named = read_names("item", item, len(positions))
    has_name = (named >= 0) & (weight > 0)
    if has_name.all():
        return np.asarray(names[named])
    if not has_name.any():
        return positions
    texts, numbers = names[named].astype(np.str_), positions.astype(np.str_)
    word = "row "
    while np.isin(np.char.add(word, numbers[~has_name]), texts[has_name]).any():
        word += "- "  # No name that was given becomes that of another item.
    return np.where(has_name, texts, np.char.add(word, numbers))
