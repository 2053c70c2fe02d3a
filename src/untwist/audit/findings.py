"""Everything that a report shows, computed from an audit. Nothing is fitted for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.audit.calibration import (
    Calibration,
    Point,
    bound_share,
    count_effective_rows,
    measure_calibration,
)
from untwist.audit.comparison import Peer
from untwist.audit.confusions import Confusion
from untwist.audit.context import find_positions
from untwist.audit.correcting import find_likely_wrong
from untwist.audit.explaining import explain_rows, require_model
from untwist.audit.issues.issue import DataIssue
from untwist.audit.judging import Interval
from untwist.audit.labels import LabelAudit
from untwist.audit.reasons import Explanation
from untwist.audit.slices import Slice
from untwist.audit.sources import Disagreement, SourceQuality
from untwist.audit.verdict import LEAST_REPEATED, Verdict
from untwist.model import Choice, FittedModel
from untwist.theory.several_classes import SoftmaxLink

__all__ = [
    "BoundedPeer",
    "CountedConfusion",
    "Findings",
    "TrainingFacts",
    "collect_findings",
]

#: Suspects that are explained, at most.
MOST_EXPLAINED = 10_000

#: Suspects that are compared with similar rows, at most.
MOST_COMPARED = 1000

#: Points of the curve of expected finds, at most.
FINDS_POINTS = 120

#: The curve of expected finds covers this many rows, at least, or all where there are fewer.
LEAST_REVIEWED = 50


@dataclass(frozen=True)
class CountedConfusion:
    """A pair of a true class and a label, and how many of the suspects are of it.

    Parameters
    ----------
    confusion : Confusion
        The pair.
    n_suspects : int
        How many suspects bear that label and look like that class.
    """

    confusion: Confusion
    n_suspects: int


@dataclass(frozen=True)
class TrainingFacts:
    """What was trained on what.

    Parameters
    ----------
    n_columns, n_categorical : int
        Columns, and how many of them hold categories.
    missing_share : float
        The share of cells that are missing.
    n_trees : int
        Trees of the class that has most.
    choice : Choice
        What was tried and chosen.
    untwists : bool
        Whether probabilities are corrected by the noise.
    boosts_jointly : bool
        Whether all classes were boosted together; if not, and there are several, each was against the rest.
    """

    n_columns: int
    n_categorical: int
    missing_share: float
    n_trees: int
    choice: Choice
    untwists: bool
    boosts_jointly: bool


@dataclass(frozen=True)
class BoundedPeer:
    """A `Peer` whose two shares of agreement are bounded by 95 % intervals; its log-loss has none.

    Parameters
    ----------
    agreement_with_given, agreement_with_corrected : Interval
        The shares of the labels, as given and as corrected, that the method predicts.
    log_loss : float
        Its log-loss on the labels as given.
    """

    agreement_with_given: Interval
    log_loss: float
    agreement_with_corrected: Interval


@dataclass(frozen=True, eq=False)
class Findings:
    """All that a report shows.

    Parameters
    ----------
    audit : LabelAudit
        The labels and what is known of them.
    suspects : array of int
        The rows to list, the most doubtful first.
    asked_for : bool
        Whether these rows were asked for, or are those of `audit.suspects()`.
    explanations : list of Explanation
        Of the first suspects.
    n_rows_given, n_rows_corrected : arrays of int
        Rows of each class by the labels as given, and with those suspects corrected that are likelier wrong than right.
    confusions : list of CountedConfusion
        Which class bears which label, the pair with most rows first.
    slices : list of Slice
        Where wrong labels concentrate.
    sources : list of SourceQuality
        How good the labels of each source are, the worst first; none where no sources were told.
    disagreements : list of Disagreement
        Who disagrees with whom; none where hardly any item has several labels.
    training : TrainingFacts or None
        What was trained on what; None where posteriors of another model judged the labels.
    losses, errors : arrays
        Log-loss and error of rows set aside after each round, the mean over classes; empty where they are not known.
    calibration : Calibration
        What was predicted against what was counted.
    expected_finds : list of Point
        Numbers of rows, the worst first, with the number of wrong labels expected among them.
    column_names : list
        The names of the columns, or their numbers.
    importances : array
        The share of the gain of all splits that each column has; empty where there are no trees of ours.
    peers : dict of BoundedPeer
        How others predict the same rows, by their names.
    issues : list of DataIssue
        What else is wrong with the data.
    """

    audit: LabelAudit
    suspects: NDArray[np.intp]
    asked_for: bool
    explanations: list[Explanation]
    n_rows_given: NDArray[np.intp]
    n_rows_corrected: NDArray[np.intp]
    confusions: list[CountedConfusion]
    slices: list[Slice]
    sources: list[SourceQuality]
    disagreements: list[Disagreement]
    training: TrainingFacts | None
    losses: Array
    errors: Array
    calibration: Calibration
    expected_finds: list[Point]
    column_names: list[Any]
    importances: Array
    peers: dict[str, BoundedPeer]
    issues: list[DataIssue]

    @property
    def verdict(self) -> Verdict:
        """What may be said of the labels."""
        return self.audit.verdict

    @property
    def is_uneven(self) -> bool:
        """Whether labels look wrong more often in a part: a column looks like a source, or there are slices."""
        return self.audit.context.hidden_source is not None or bool(self.slices)


def collect_findings(
    audit: LabelAudit,
    suspects: ArrayLike | None = None,
    peers: Mapping[str, Peer] | None = None,
    issues: list[DataIssue] | None = None,
) -> Findings:
    """Compute all that a report shows; nothing is fitted for it.

    Where posteriors of another model judged the labels, whatever asks the trees of ours is left out.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    suspects : array-like or None
        The rows to list, as indices or Booleans; by default `audit.suspects()`.
    peers : mapping or None
        What `compare` measured.
    issues : list of DataIssue or None
        What else is wrong with the data; by default `audit.find_issues()`.

    Returns
    -------
    Findings
    """
    listed = audit.suspects()
    if suspects is not None:
        listed = audit.ranking[np.isin(audit.ranking, find_positions(suspects, len(audit.given)))]
    fitted = None if audit.model is None else audit.model.model_
    nothing, sources = np.zeros(0), audit.sources
    losses, errors = (nothing, nothing) if fitted is None else average_learning_curves(fitted)
    return Findings(
        audit=audit,
        suspects=listed,
        asked_for=suspects is not None,
        explanations=explain_rows(audit, listed[:MOST_EXPLAINED], n_compared=MOST_COMPARED),
        n_rows_given=_count_rows(audit, audit.given),
        n_rows_corrected=_count_rows(audit, audit.corrected(find_likely_wrong(audit, listed), force=True)),
        confusions=count_confusions(audit, listed),
        slices=[] if audit.table.encoder is None or audit.context.chance else audit.slices(),
        sources=sources.rate(),
        disagreements=sources.find_disagreements() if sources.share_repeated >= LEAST_REPEATED else [],
        training=None if audit.model is None else describe_training(audit),
        losses=losses,
        errors=errors,
        calibration=measure_calibration(audit),
        expected_finds=expect_finds(audit, min(len(audit.given), max(2 * len(listed), LEAST_REVIEWED))),
        column_names=audit.table.names,
        importances=nothing if fitted is None else fitted.importances("gain"),
        peers=_bound_peers(audit, peers or {}),
        issues=_find_issues(audit) if issues is None else issues,
    )


def _find_issues(audit: LabelAudit) -> list[DataIssue]:
    return [] if audit.table.encoder is None else audit.find_issues()


def _bound_peers(audit: LabelAudit, peers: Mapping[str, Peer]) -> dict[str, BoundedPeer]:
    n_rows = count_effective_rows(audit.weight)
    return {
        name: BoundedPeer(
            agreement_with_given=bound_share(peer.agreement_with_given, n_rows),
            log_loss=peer.log_loss,
            agreement_with_corrected=bound_share(peer.agreement_with_corrected, n_rows),
        )
        for name, peer in peers.items()
    }


# ---- the labels ----


def _count_rows(audit: LabelAudit, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of rows of each class."""
    return np.bincount(np.searchsorted(audit.classes, labels), minlength=len(audit.classes))


def count_confusions(audit: LabelAudit, suspects: NDArray[np.intp]) -> list[CountedConfusion]:
    """Count how many of the suspects are of each pair of a true class and a label.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    suspects : array of int
        The rows that count.

    Returns
    -------
    list of CountedConfusion
        In the order of `audit.confusions()`.
    """
    times = Counter(zip(audit.predicted[suspects].tolist(), audit.given[suspects].tolist(), strict=True))
    return [CountedConfusion(one, times[one.truth, one.label]) for one in audit.confusions()]


def expect_finds(audit: LabelAudit, most: int, n_points: int = FINDS_POINTS) -> list[Point]:
    """Return how many wrong labels a review is expected to find, the worst rows first.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    most : int
        Rows to review, at most.
    n_points : int
        Points of the curve, at most.

    Returns
    -------
    list of Point
        Rows reviewed, from none to `most`, and wrong labels expected among them: the `value` of
        `LabelAudit.expected_yield`.
    """
    order = audit.ranking[:most]
    n_reviewed = np.unique(np.linspace(0, len(order), n_points).astype(int))
    return [(float(n), audit.expect_wrong(order[:n])) for n in n_reviewed]


# ---- the model ----


def describe_training(audit: LabelAudit) -> TrainingFacts:
    """Describe what was trained on what.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    TrainingFacts
    """
    model = require_model(audit, "what was trained comes").model_
    assert model.choice is not None  # A model that can be audited has chosen by folds.
    return TrainingFacts(
        n_columns=audit.table.numbers.shape[1],
        n_categorical=len(model.encoder.schema.categories),
        missing_share=float(np.mean([np.isnan(column).mean() for column in audit.table.numbers.T])),
        n_trees=model.n_rounds,
        choice=model.choice,
        untwists=model.untwists,
        boosts_jointly=isinstance(model.link, SoftmaxLink),
    )


def average_learning_curves(model: FittedModel) -> tuple[Array, Array]:
    """Average the learning curves of rows set aside over classes.

    Parameters
    ----------
    model : FittedModel
        The model.

    Returns
    -------
    losses, errors : arrays
        Log-loss and error after each round; empty where they are not known.
    """
    curves = model.validation_curves().get("validation", {"log_loss": [], "error": []})
    losses, errors = (np.atleast_2d(curves[name]).mean(axis=0) for name in ("log_loss", "error"))
    return losses, errors
