"""Why the labels of an audit are doubted, row by row."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import check_count
from untwist.audit.context import find_positions
from untwist.audit.reasons import N_NAMED, Explanation, Reason, ReasonFinder
from untwist.audit.reviewed import change_reviewed
from untwist.classifier import UntwistClassifier
from untwist.data.groups import read_groups

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["explain_rows", "require_model"]

#: Columns that speak against a label, and the rows that are similar to it.
Findings = tuple[list[Reason], NDArray[np.intp]]


def require_model(audit: LabelAudit, what: str) -> UntwistClassifier:
    """Return the classifier whose folds judged the labels; a ValueError where posteriors of another model did.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    what : str
        What needs it, with its verb, as in "explanations come".

    Returns
    -------
    UntwistClassifier
    """
    if audit.model is None:
        raise ValueError(
            f"{what} from a model of ours, and these labels were judged by {audit.judge.name}: audit_labels(X, y), "
            "without pred_probs and model, fits one"
        )
    return audit.model


def explain_rows(
    audit: LabelAudit, rows: ArrayLike, n_reasons: int = 3, *, n_compared: int | None = None
) -> list[Explanation]:
    """Explain why labels are doubted, as far as is known: without trees of ours there are no reasons to name.

    Many rows at once take much less time than one after the other.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    rows : array-like
        Indices or Booleans.
    n_reasons : int, default 3
        Columns to name for each, at most.
    n_compared : int or None
        Similar rows are looked for to the first so many only, as that takes most of the time; None: to all.

    Returns
    -------
    list of Explanation
        As `LabelAudit.explain` has them; without reasons and similar rows where another model judged the labels.
    """
    chosen = find_positions(rows, len(audit.given))
    n_reasons = check_count("n_reasons", n_reasons, low=0)
    nothing: Findings = [], np.empty(0, dtype=np.intp)
    found = [nothing] * len(chosen) if audit.model is None else _ask_trees(audit, audit.model, chosen, n_compared)
    return [
        Explanation(
            row=row,
            given=audit.given[row],
            predicted=audit.predicted[row],
            wrong=float(audit.wrong[row]),
            reasons=tuple(reasons[:n_reasons]),
            n_disagreeing=int(np.count_nonzero(audit.given[similar] != audit.given[row])),
            n_similar=len(similar),
            expected=float(audit.posterior[row, audit.label_indices[row]]) if audit.context.chance else None,
            n_predicted=_count_predicted(audit, row, similar),
            similar=tuple(similar[:N_NAMED].tolist()),
        )
        for row, (reasons, similar) in zip(chosen.tolist(), found, strict=True)
    ]


def _ask_trees(
    audit: LabelAudit, model: UntwistClassifier, chosen: NDArray[np.intp], n_compared: int | None
) -> list[Findings]:
    """Return what speaks against each label, and the similar rows, in their order."""
    given_groups = audit.context.groups
    groups = None if given_groups is None else read_groups(given_groups, len(audit.given)).number_rows()
    known = np.searchsorted(audit.classes, change_reviewed(audit))  # What is usual for a label, right labels tell.
    known[chosen] = audit.label_indices[chosen]
    finder = ReasonFinder(model.model_, audit.table.numbers, known, model.n_jobs, groups)
    usual = {label: finder.find_usual(label) for label in np.unique(audit.label_indices[chosen]).tolist()}
    predicted = np.searchsorted(audit.classes, audit.predicted)
    all_reasons = finder.find_reasons(chosen, usual, predicted[chosen])
    all_similar = chain(finder.find_similar(chosen[:n_compared]), repeat(np.empty(0, dtype=np.intp)))
    return list(zip(all_reasons, all_similar, strict=False))


def _count_predicted(audit: LabelAudit, row: int, similar: NDArray[np.intp]) -> int:
    """Count the similar rows that bear the label which is predicted, if it is another one."""
    if audit.predicted[row] == audit.given[row]:
        return 0
    return int(np.count_nonzero(audit.given[similar] == audit.predicted[row]))
