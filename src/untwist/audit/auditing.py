"""The audit of labels: whose posteriors judge them, how noisy these show labels to be, and what that says of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.audit.context import AuditContext, AuditedTable, Judge
from untwist.audit.judges import (
    Judges,
    ask_clones,
    ask_fitted_model,
    expect_chance,
    fit_own_model,
    judges_by_own_folds,
    read_judges,
)
from untwist.audit.judging import judge_labels
from untwist.audit.labels import LabelAudit
from untwist.class_order import find_natural_order
from untwist.data.labels import encode_labels
from untwist.data.near_duplicates import NearDuplicates
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources, read_names
from untwist.data.tables import allow_taking_rows
from untwist.fit_arguments import SourceColumns
from untwist.noise.out_of_fold import count_rows_per_case
from untwist.noise.sources import NoiseBySource
from untwist.progress import show_progress

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
    order: Any = None,
    chance: bool = False,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> LabelAudit:
    """Judge every label of (X, y) by models that have not seen it.

    Parameters
    ----------
    X, y, source, item, reviewed, groups, sample_weight
        As `UntwistClassifier.fit` takes them. `source` says who or what gave each label, `item` which rows are labels
        of one thing, and `groups` which rows belong together, as those of one patient do; none is a feature. Rows of a
        group are judged by models that have seen none of it, and where they err together they count as few. Rows that
        nearly repeat rows of other folds are looked for (`AuditContext.twins`), with groups too: among rows whose group
        has several rows or is not known. `reviewed` says what a person found: of these rows it is certain whether the
        label that `y` has is wrong, they are never suspects, and `LabelAudit.review` counts them; it goes without
        `source`. X may be left out where `pred_probs` are given; beside `model` it may be whatever that takes, texts
        for example.
    model : classifier or None
        An `UntwistClassifier` that was fitted to the very same
        rows, so that nothing has to be fitted again, with the same sources if any; one that is not fitted yet is
        fitted here, as a clone. Or any other classifier or pipeline of scikit-learn's kind with `predict_proba`: clones
        of it are fitted here, each to all rows but those that it judges. Rows of equal content, or of one item, are
        never on both sides. None: an UntwistClassifier is fitted.
    pred_probs : array-like of shape (n_rows, n_classes), DataFrame or None
        Posteriors of any model in place of one, out of fold: no row may be judged by a model that has seen its label.
        Columns are in the order of the sorted classes, or those of a DataFrame are named by the classes; of two classes
        the probability of the second one will do. They are calibrated to the labels first. A UserWarning names
        posteriors that look as if they had seen the labels (`LabelAudit.judge`).
    cv : int, splitter, iterable or None
        The folds that labels are judged by, as `UntwistClassifier` takes them. Rows that folds of one's own do not
        judge have NaN in `wrong`, and no part in what is said of the labels. Not with `pred_probs` or a fitted model,
        whose folds are made already.
    order : array-like of labels or None
        All labels, the lowest first, where several classes have an order, as `UntwistClassifier` takes it. Not with a
        fitted model, which knows its own.
    chance : bool, default False
        Whether labels are outcomes that chance has a part in, such as who cancels next month: nothing is then called
        wrong, whatever the model expected, and `ranking` has the most surprising rows first. Outcomes that come out one
        way three times of four look exactly like labels a quarter of which are wrong: only you know which they are.
    n_jobs, random_state
        Those of the classifier that is fitted, unless it is given and has its own; for another model `random_state` is
        that of the folds, and `n_jobs` says how many clones are fitted at a time, each in a process.
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
    _check_arguments(X, y, model, pred_probs, cv)
    columns = SourceColumns(source, item, groups)
    if pred_probs is not None:
        X = allow_taking_rows(X)  # The audit keeps this table, which its encoder has read.
        judges = read_judges(pred_probs, X, y, sample_weight, columns, reviewed, order, n_jobs, random_state)
    elif model is None or judges_by_own_folds(model):
        told = {"order": order, "cv": cv, "n_jobs": n_jobs, "random_state": random_state}
        fitted = fit_own_model(model, X, y, sample_weight, columns, reviewed, verbose, **told)
        judges = ask_fitted_model(fitted, X, y, columns)
    else:
        X = allow_taking_rows(X)
        judges = ask_clones(model, X, y, sample_weight, columns, reviewed, cv, order, n_jobs, random_state)
    with show_progress(verbose > 0):
        return _judge(judges, X, y, item, chance=chance)


def _check_arguments(X: Any, y: Any, model: Any, pred_probs: Any, cv: Any) -> None:
    """Raise a ValueError where what was given does not say whose posteriors judge which labels."""
    if np.ndim(y) == 2 and np.ndim(X) == 1:
        raise ValueError("X comes first, and then y: without X it is audit_labels(y=labels, pred_probs=posteriors)")
    if y is None:
        raise ValueError("y must be the labels: audit_labels(X, y), or audit_labels(y=y, pred_probs=...)")
    if pred_probs is not None and model is not None:
        raise ValueError("pred_probs and model exclude each other: both say whose posteriors judge the labels")
    if pred_probs is None and X is None:
        raise ValueError("X must be the rows, unless pred_probs are given")
    if pred_probs is not None and cv is not None:
        raise ValueError("cv must be None with pred_probs, whose folds are made already")


def _judge(judges: Judges, X: Any, y: Any, item: Any, *, chance: bool) -> LabelAudit:
    """Judge every label by what models say that have not seen it, and by how noisy labels are."""
    known = judges.out_of_fold.context
    if chance and (known.sources is not None or known.reviewed is not None):
        raise ValueError("chance=True goes neither with source nor with reviewed: no outcome is wrong")
    judges = expect_chance(judges) if chance else judges
    unseen, by_source = judges.out_of_fold, judges.by_source
    classes, context, weight = unseen.classes, unseen.context, unseen.judged_weight
    sources, review, twins = context.sources, context.reviewed, context.twins
    held = unseen.labels if review is None else encode_labels("y", y, classes).astype(np.intp)
    judged = judge_labels(unseen, judges.noise, by_source, held)
    return LabelAudit(
        classes=classes,
        given=classes[held],
        predicted=classes[judged.predicted],
        posterior=unseen.posterior,
        wrong=judged.wrong,
        noise=judged.noise,
        noise_rate=judged.share,
        rate_by_label=dict(zip(classes.tolist(), judged.share_by_label, strict=True)),
        weight=weight,
        model=judges.model,
        table=AuditedTable(X, judges.encoder, judges.model),
        judge=Judge(judges.name, judges.in_sample_reason),
        context=AuditContext(
            source=None if sources is None else _name_sources(sources),
            item=None if sources is None else _name_items(sources, item, weight),
            by_source=_doubt_sources(by_source, twins),
            reviewed=None if review is None else review.is_reviewed,
            before_review=_name_labels_before(review, classes),
            n_skipped=0 if review is None else review.n_skipped,
            groups=None if context.groups is None else context.groups.name_rows(),
            rows_per_case=count_rows_per_case(unseen),
            judged=None if unseen.judged.all() else unseen.judged,
            twins=twins,
            order=find_natural_order(y, classes) if context.order is None else context.order,
            chance=chance,
        ),
    )


def _doubt_sources(by_source: NoiseBySource | None, twins: NearDuplicates | None) -> NoiseBySource | None:
    is_in_doubt = by_source is not None and twins is not None and not by_source.noise.is_given
    return by_source.drop_upper_limits() if by_source is not None and is_in_doubt else by_source


def _name_labels_before(review: ReviewedRows | None, classes: NDArray[Any]) -> NDArray[Any] | None:
    """Return the labels before a review, if they are known."""
    return None if review is None or not review.knows_given else np.asarray(classes[review.given])


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
