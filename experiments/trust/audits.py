"""What an audit says of a cell, beside what is true: a row per cell. It needs the package and scikit-learn alone."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

import untwist
from experiments.datasets import Labels
from experiments.runner import summarise_error, work_alone
from experiments.trust.cells import CLEAN, FAR, PLANTED, TOLD, Cell, predict_unseen
from untwist.arguments import Array
from untwist.audit import audit_labels

__all__ = ["FOUND", "NONE", "UNDECIDED", "CellRow", "measure_cell"]

NAN = math.nan
#: What an audit may say of labels.
FOUND, UNDECIDED, NONE = "found", "undecided", "none"
#: Rows that are asked for, beside those that an audit lists by itself.
BUDGET = 50
#: What every surface says that tells a share: the condition under which it holds.
CONDITION = "depend on features"
#: Probabilities below this are taken for it where their logarithm is needed.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class CellRow:
    """An audit of one cell. Shares are of all rows, yields are numbers of rows.

    Attributes
    ----------
    name, kind : str
        The cell.
    source, group, n_classes, n_rows, rate, in_order
        As `Cell` has them.
    least : int
        The rows of the smallest class.
    version : str
        That of the package.
    forest : float
        How often a forest that was trained on the clean labels is right on rows it has not seen.
    state : str
        What the audit says.
    true_share, share, low, high, upper : float
        The share of wrong labels; what is said of it, its interval, and its upper bound.
    says_if : float
        Whether all of repr, print and notebook name the condition on which this rests, that errors do not depend on
        features: 1 or 0.
    classes_covered : float
        Of how many classes the interval holds the share that bears another label.
    flagged : float
        The share of rows that are listed without a budget.
    promised, promised_low, promised_high, wrong : float
        How many of these are said to be wrong, at least, at most, and how many are.
    budget_promised, budget_low, budget_high, budget_wrong : float
        The same of the first `BUDGET` rows.
    precision_of_ranking : float
        The average precision of the ranking.
    right, corrected, changed, least_gain : float
        The share of right labels before and after `corrected()`, the share that it changes, and what is won at least,
        with any seed.
    plain_loss, clean_loss, loss_error : float
        Log-loss out of fold without and with the correction of posteriors, and the standard error of the difference.
    plain_accuracy, clean_accuracy : float
        The same of the accuracy.
    n_seeds, agreement, found_again : float
        The number of seeds; the mean Jaccard index of what two of them list, and the share of seeds that find noise.
    peer_flagged, peer_wrong : float
        The share of rows that cleanlab lists by the same posteriors, and how many of them are wrong.
    seconds : float
        Of the processor, for one audit.
    error : str
        What went wrong.
    """

    name: str
    kind: str
    source: str = ""
    group: str = ""
    n_classes: int = 0
    n_rows: int = 0
    rate: float = NAN
    in_order: int = 0
    least: int = 0
    version: str = ""
    forest: float = NAN
    state: str = ""
    true_share: float = NAN
    share: float = NAN
    low: float = NAN
    high: float = NAN
    upper: float = NAN
    says_if: float = NAN
    classes_covered: float = NAN
    flagged: float = NAN
    promised: float = NAN
    promised_low: float = NAN
    promised_high: float = NAN
    wrong: float = NAN
    budget_promised: float = NAN
    budget_low: float = NAN
    budget_high: float = NAN
    budget_wrong: float = NAN
    precision_of_ranking: float = NAN
    right: float = NAN
    corrected: float = NAN
    changed: float = NAN
    least_gain: float = NAN
    plain_loss: float = NAN
    clean_loss: float = NAN
    loss_error: float = NAN
    plain_accuracy: float = NAN
    clean_accuracy: float = NAN
    n_seeds: int = 1
    agreement: float = NAN
    found_again: float = NAN
    peer_flagged: float = NAN
    peer_wrong: float = NAN
    seconds: float = NAN
    error: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The cell."""
        return self.name, self.kind


def measure_cell(cell: Cell) -> list[CellRow]:
    """Audit a cell with one thread. An error is a result too.

    Parameters
    ----------
    cell : Cell
        The cell.

    Returns
    -------
    list of CellRow
        One row.
    """
    least = int(np.bincount(cell.y if cell.true is None else cell.true, minlength=cell.n_classes).min())
    row = CellRow(cell.name, cell.kind, cell.source, cell.group, cell.n_classes, len(cell.y), cell.rate)
    row = replace(row, in_order=int(cell.in_order), least=least, version=untwist.__version__, n_seeds=cell.n_seeds)
    try:
        with work_alone():
            return [_measure(cell, row)]
    except Exception as error:  # Whatever goes wrong belongs in the row.
        return [replace(row, error=summarise_error(error))]


def _measure(cell: Cell, row: CellRow) -> CellRow:
    X = np.asarray(cell.X, dtype=np.float64)
    names = np.array([f"class {number:03d}" for number in range(cell.n_classes)])
    labels = cell.y if cell.in_order else names[cell.y]
    start = time.process_time()
    told = {"chance": True} if cell.group == TOLD else {}
    audit = audit_labels(X, labels, n_jobs=1, random_state=0, **told)
    row = _write_claims(replace(row, seconds=time.process_time() - start), audit)
    suspects = audit.suspects()
    row = replace(row, flagged=len(suspects) / len(cell.y))
    if is_peer_installed():
        of_peer = find_issues_by_peer(audit)
        row = replace(row, peer_flagged=float(of_peer.mean()))
    if cell.true is None:
        return row
    is_wrong = cell.y != cell.true
    # The classes of an audit are those that some label has.
    there = np.unique(cell.y)
    row = replace(row, true_share=float(is_wrong.mean()), classes_covered=_cover_classes(audit, cell, there))
    row = replace(
        row, wrong=float(is_wrong[suspects].sum()), budget_wrong=float(is_wrong[audit.ranking[:BUDGET]].sum())
    )
    if is_peer_installed():
        row = replace(row, peer_wrong=float(is_wrong[of_peer].sum()))
    if is_wrong.any():
        value = np.zeros(len(is_wrong))
        value[audit.ranking] = np.arange(len(audit.ranking), 0, -1)
        row = replace(row, precision_of_ranking=float(average_precision_score(is_wrong, value)))
    row = _judge_posteriors(row, audit, cell, there)
    right = cell.true if cell.in_order else names[cell.true]
    row = _judge_seeds(row, cell, X, labels, right, audit)
    if cell.group in (CLEAN, PLANTED, FAR):
        accuracy = np.mean(predict_unseen(cell.X, cell.true).argmax(axis=1) == cell.true)
        row = replace(row, forest=float(accuracy))
    return row


def _write_claims(row: CellRow, audit: Any) -> CellRow:
    """Write down what an audit says."""
    share, low, high = audit.noise_rate
    row = replace(row, state=_find_state(audit), share=float(share), low=float(low), high=float(high))
    surfaces = (repr(audit), str(audit), audit._repr_html_())
    row = replace(row, says_if=float(all(CONDITION in " ".join(text.split()) for text in surfaces)))
    # 0.2.0, which the page sets beside, has another name for it.
    bound = getattr(audit.verdict, "upper_bound", None)
    row = replace(row, upper=float(audit.verdict.highest_share if bound is None else bound.high))
    promises = [_read_promise(audit, rows) for rows in (audit.suspects(), audit.suspects(budget=BUDGET))]
    (value, least, most), (of_budget, budget_low, budget_high) = promises
    row = replace(row, promised=value, promised_low=least, promised_high=most)
    return replace(row, budget_promised=of_budget, budget_low=budget_low, budget_high=budget_high)


def _find_state(audit: Any) -> str:
    said = audit.verdict.state.value
    if said in (FOUND, UNDECIDED, NONE):
        return str(said)
    # 0.2.0, which the page sets beside, has other states: it counts how many are wrong wherever it finds noise.
    return FOUND if audit.noise.found else NONE if said == "clean" else UNDECIDED


def _read_promise(audit: Any, rows: Any) -> tuple[float, float, float]:
    """Return how many of some rows are said to be wrong, at least and at most."""
    if hasattr(audit, "expected_yield"):  # 0.2.0 has not.
        said = audit.expected_yield(rows)
        return float(said.value), float(said.low), float(said.high)
    low, high = audit.bound_wrong(rows)
    return float(audit.expect_wrong(rows)), float(low), float(high)


def _cover_classes(audit: Any, cell: Cell, there: Labels) -> float:
    """Return of how many classes the interval holds the share that bears another label."""
    verdict = audit.verdict
    said = (
        [(one.value, one.low, one.high) for one in verdict.by_class]
        if hasattr(verdict, "by_class")  # 0.2.0 has not.
        else verdict.share_by_class
    )
    if len(said) != len(there):
        return NAN
    assert cell.true is not None
    covered = []
    for (_, low, high), true in zip(said, there.tolist(), strict=True):
        rows = cell.true == true
        if rows.any():
            covered.append(low - 1e-9 <= np.mean(cell.y[rows] != true) <= high + 1e-9)
    return float(np.mean(covered))


def _judge_posteriors(row: CellRow, audit: Any, cell: Cell, there: Labels) -> CellRow:
    assert cell.true is not None
    rows = np.arange(len(cell.y))
    losses, accuracies = [], []
    for posterior in (audit.posterior, audit.clean):
        spread: Array = np.zeros((len(rows), cell.n_classes))
        spread[:, there] = posterior
        losses.append(-np.log(np.maximum(spread[rows, cell.true], LEAST_PROBABILITY)))
        accuracies.append(float(np.mean(spread.argmax(axis=1) == cell.true)))
    difference = losses[1] - losses[0]
    row = replace(row, plain_loss=float(losses[0].mean()), clean_loss=float(losses[1].mean()))
    row = replace(row, loss_error=float(difference.std() / np.sqrt(len(rows))))
    return replace(row, plain_accuracy=accuracies[0], clean_accuracy=accuracies[1])


def _judge_seeds(row: CellRow, cell: Cell, X: Array, labels: Any, right: Any, first: Any) -> CellRow:
    """Judge what `corrected()` does to labels, and how far audits of other seeds agree."""
    audits = [first]
    audits += [audit_labels(X, labels, n_jobs=1, random_state=seed) for seed in range(1, cell.n_seeds)]
    changed = [np.asarray(audit.corrected()) for audit in audits]
    before = float(np.mean(labels == right))
    after = [float(np.mean(one == right)) for one in changed]
    row = replace(row, right=before, corrected=after[0], changed=float(np.mean(changed[0] != labels)))
    row = replace(row, least_gain=min(after) - before)
    if cell.n_seeds == 1:
        return row
    lists = [set(audit.suspects().tolist()) for audit in audits]
    agreement = np.mean([len(a & b) / max(len(a | b), 1) if a | b else 1.0 for a, b in combinations(lists, 2)])
    found = np.mean([_find_state(audit) == FOUND for audit in audits])
    return replace(row, agreement=float(agreement), found_again=float(found))


# ---- cleanlab ----


@lru_cache
def is_peer_installed() -> bool:
    """Tell whether cleanlab can be imported, with what it needs."""
    try:
        import cleanlab.filter  # noqa: F401
    except ImportError:
        return False
    return True


def find_issues_by_peer(audit: Any) -> Any:
    """Find wrong labels by cleanlab as it comes, with the posteriors of an audit before their correction.

    Parameters
    ----------
    audit : LabelAudit
        The audit.

    Returns
    -------
    array of bool
        One per row.
    """
    from cleanlab.filter import find_label_issues

    return np.asarray(find_label_issues(audit.label_indices, audit.posterior, n_jobs=1), dtype=bool)
