"""The audit of labels: whose posteriors judge them, whose rows they are, and who gave them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.audit.judging import Judgement, judge_alike, judge_by_source, settle_reviewed
from untwist.audit.labels import LabelAudit
from untwist.classifier import PILBoostClassifier
from untwist.data.sources import LabelSources, read_names
from untwist.data.tables import compute_fingerprint
from untwist.model import FittedModel
from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.untwisting import Untwisting
from untwist.progress import show_progress

__all__ = ["audit_labels"]


def audit_labels(
    X: Any,
    y: Any,
    model: PILBoostClassifier | None = None,
    *,
    source: Any = None,
    item: Any = None,
    reviewed: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    seeks_sources: bool = True,
    verbose: int = 0,
) -> LabelAudit:
    """Judge every label of (X, y) by models that have not seen it.

    Parameters
    ----------
    X, y, source, item, reviewed, sample_weight
        As `PILBoostClassifier.fit` takes them. `source` says who or what gave each label, and `item` which rows are
        labels of one thing; neither is a feature. `reviewed` are the rows whose labels are known to be right: they are
        never suspects, and `given` has the labels that were decided on.
    model : PILBoostClassifier or None
        A classifier that chose by folds (as `PILBoostClassifier()` does) and was fitted to the very same rows, so that
        nothing has to be fitted again, with the same sources if any. None: one is fitted.
    n_jobs, random_state
        Those of the classifier that is fitted.
    seeks_sources : bool, default True
        Where no source is given, whether to look for a column that looks like one: see `HiddenSource`. Where some
        column may be one, the chosen candidate is trained again without it, of two columns at most.
    verbose : int, default 0
        That of the classifier that is fitted. Above 0 it is shown how far the audit is, with an estimate of what is
        left: a line in a terminal, a bar in a notebook.

    Returns
    -------
    LabelAudit

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
    """
    if model is None:
        model = PILBoostClassifier(n_jobs=n_jobs, random_state=random_state, verbose=verbose)
        model.fit(X, y, sample_weight=sample_weight, source=source, item=item, reviewed=reviewed)
    elif sample_weight is not None or reviewed is not None:
        name = "reviewed" if sample_weight is None else "sample_weight"
        raise ValueError(f"{name} belongs to the fit of the model that is given: leave it out")
    posterior = getattr(model, "oof_proba_", None)
    if posterior is None:
        raise ValueError(
            "model must be a PILBoostClassifier that chose by folds: fitted, with alpha, n_estimators or max_depth "
            '"auto", and without X_val'
        )
    fitted = model.model_
    labels = _check_rows(model, X, y)
    votes = _check_sources(fitted, source, item)
    if isinstance(fitted.alpha, float) and fitted.alpha < 0:
        raise ValueError(f"model must have a positive alpha, got {fitted.alpha}: it takes most labels for wrong")
    posterior = fitted.out_of_fold_posterior_of_labels()
    assert fitted.out_of_fold is not None  # The posterior comes from there.
    weight = fitted.out_of_fold.row_weights()
    review = fitted.out_of_fold.reviewed
    counted = weight if review is None else np.where(review.is_reviewed, 0.0, weight)
    judged = _judge(fitted, votes, posterior, labels, counted)
    if review is not None:
        judged = settle_reviewed(judged, review, weight)
        labels = review.labels.astype(np.intp)
    audit = LabelAudit(
        classes=fitted.classes,
        given=fitted.classes[labels],
        predicted=fitted.classes[judged.predicted],
        posterior=posterior,
        wrong=judged.wrong,
        noise=judged.noise,
        noise_rate=judged.share,
        rate_by_label=dict(zip(fitted.classes.tolist(), judged.share_by_label, strict=True)),
        weight=weight,
        model=model,
        X=X,
        source=None if votes is None else _name_sources(votes),
        item=None if votes is None else _name_items(votes, item, weight),
        by_source=fitted.sources,
        reviewed=None if review is None else review.is_reviewed,
    )
    if not seeks_sources or votes is not None:
        return audit
    with show_progress(verbose > 0):
        return replace(audit, hidden_source=audit.find_hidden_source())


def _judge(
    fitted: FittedModel, votes: LabelSources | None, posterior: Array, labels: NDArray[np.intp], weight: Array
) -> Judgement:
    """Judge labels by their sources where these are known, and all alike where not."""
    if votes is None:
        noise = fitted.noise if isinstance(fitted.noise, (Untwisting, MatrixUntwisting)) else fitted.estimate_noise()
        return judge_alike(noise, posterior, labels, weight)
    assert fitted.sources is not None  # Sources that were given are estimated.
    return judge_by_source(fitted.sources, votes, posterior, labels, weight)


def _check_rows(model: PILBoostClassifier, X: Any, y: Any) -> NDArray[np.intp]:
    """Return the labels, before any review, as indices of classes; a ValueError where the rows are not those of fit."""
    fitted = model.model_
    rows = fitted.encoder.by_index.encode(X, model)
    labels = fitted.encode_labels("y", y)
    assert fitted.out_of_fold is not None
    review = fitted.out_of_fold.reviewed
    if review is not None and len(labels) == len(review.labels):
        labels = review.restore(labels)
    if rows.shape[0] != len(labels) or compute_fingerprint(rows, labels) != fitted.out_of_fold.fingerprint:
        raise ValueError("X and y must be the rows that the model was fitted to, in the same order")
    return labels.astype(np.intp)


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
