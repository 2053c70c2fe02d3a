"""Everything that a report shows, computed from an audit. What has to be boosted for that is boosted here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from untwist.arguments import Array
from untwist.audit.comparison import Peer
from untwist.audit.confusions import Confusion
from untwist.audit.issues.issue import DataIssue
from untwist.audit.labels import LabelAudit
from untwist.audit.reasons import Explanation
from untwist.audit.slices import Slice
from untwist.audit.sources import Disagreement, SourceQuality
from untwist.audit.training import train_chosen_candidate, train_on_numbers
from untwist.audit.words import LEAST_REPEATED
from untwist.fit_arguments import SourceColumns
from untwist.model import Choice, FittedModel
from untwist.noise.estimate import CONFIDENCE
from untwist.sums import add_up, add_up_by_group, average
from untwist.theory.several_classes import SoftmaxLink

__all__ = [
    "BoundedPeer",
    "Calibration",
    "CountedConfusion",
    "Findings",
    "Interval",
    "Point",
    "TrainingFacts",
    "collect_findings",
    "count_finds",
    "explain_rows",
]

#: Suspects that are explained, at most.
MOST_EXPLAINED = 10_000

#: Suspects that are compared with similar rows, at most.
MOST_COMPARED = 1000

#: Rows of the trees that see suspects corrected, at most.
MOST_TRAINED_AGAIN = 200_000

#: Groups of rows that predicted and counted labels are compared by, at most.
MOST_GROUPS = 12

#: A group has this many rows, at least.
LEAST_IN_GROUP = 25

#: Bins of the histogram of posteriors.
N_BINS = 25

#: Points of the curve of the clean posterior.
CURVE_POINTS = 101

#: Points of the curve of expected finds, at most.
FINDS_POINTS = 120

#: The curve of expected finds covers this many rows, at least, or all where there are fewer.
LEAST_REVIEWED = 50

#: Posteriors of the curve are kept this far from 0 and 1.
CURVE_FLOOR = 1e-4

#: A value with its lower and upper limit.
Interval = tuple[float, float, float]

#: A point of a curve.
Point = tuple[float, float]


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
class Calibration:
    """What was predicted against what was counted, and against the truth.

    Of two classes it is about the second; of more about the one that is likeliest, so that each row counts once.

    Parameters
    ----------
    groups : tuple
        For groups of rows of about equal weight the mean posterior, and the share of rows that bear the label.
    clean_curve : tuple of Point
        The clean posterior over the twisted one; of several classes its mean over each of the groups.
    spread : tuple of float
        The share of the weight in bins of the posterior from 0 to 1.
    """

    groups: tuple[tuple[float, Interval], ...]
    clean_curve: tuple[Point, ...]
    spread: tuple[float, ...]


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
        Numbers of rows, the worst first, with the number of wrong labels expected among them; where no noise was
        found, how many there may be at most.
    column_names : list
        The names of the columns, or their numbers.
    importances : array
        The share of the gain of all splits that each column has; empty where there are no trees of ours.
    corrected_importances : array or None
        The same of trees that have seen the suspects corrected; None where there is nothing to correct.
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
    corrected_importances: Array | None
    peers: dict[str, BoundedPeer]
    issues: list[DataIssue]

    @property
    def is_uneven(self) -> bool:
        """Whether labels look wrong more often in a part: a column looks like a source, or there are slices."""
        return self.audit.hidden_source is not None or bool(self.slices)


def collect_findings(
    audit: LabelAudit,
    suspects: ArrayLike | None = None,
    peers: Mapping[str, Peer] | None = None,
    issues: list[DataIssue] | None = None,
) -> Findings:
    """Compute all that a report shows. It trains the chosen candidate once more, on corrected labels.

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
        listed = audit.ranking[np.isin(audit.ranking, audit.find_positions(suspects))]
    has_trees = audit.model is not None
    losses, errors = average_learning_curves(audit.fitted) if has_trees else (np.zeros(0), np.zeros(0))
    importances, corrected_importances = compare_importances(audit, listed) if has_trees else (np.zeros(0), None)
    return Findings(
        audit=audit,
        suspects=listed,
        asked_for=suspects is not None,
        explanations=explain_rows(audit, listed[:MOST_EXPLAINED], n_compared=MOST_COMPARED),
        n_rows_given=_count_rows(audit, audit.given),
        n_rows_corrected=_count_rows(audit, audit.corrected(audit.find_likely_wrong(listed), force=True)),
        confusions=count_confusions(audit, listed),
        slices=[] if audit.encoder is None else audit.slices(),
        sources=audit.list_sources(),
        disagreements=audit.list_disagreements() if audit.share_repeated >= LEAST_REPEATED else [],
        training=describe_training(audit) if has_trees else None,
        losses=losses,
        errors=errors,
        calibration=Calibration(
            groups=tuple(measure_reliability(audit)),
            clean_curve=tuple(trace_clean_posterior(audit)),
            spread=tuple(measure_spread(audit)),
        ),
        expected_finds=expect_finds(audit, min(len(audit.given), max(2 * len(listed), LEAST_REVIEWED))),
        column_names=[] if audit.encoder is None else audit.encoder.feature_labels,
        importances=importances,
        corrected_importances=corrected_importances,
        peers=_bound_peers(audit, peers or {}),
        issues=_find_issues(audit) if issues is None else issues,
    )


def _find_issues(audit: LabelAudit) -> list[DataIssue]:
    return [] if audit.encoder is None else audit.find_issues()


# ---- shares and their intervals ----


def bound_share(share: float, n_rows: float) -> Interval:
    """Bound a share by Wilson's 95 % interval.

    Parameters
    ----------
    share : float
        The share.
    n_rows : float
        The number of rows that it was counted in; weights make it a fraction.

    Returns
    -------
    Interval
    """
    z_squared = float(ndtri((1.0 + CONFIDENCE) / 2.0)) ** 2
    scale = 1 + z_squared / n_rows
    middle = (share + z_squared / (2 * n_rows)) / scale
    variance = share * (1 - share) / n_rows + z_squared / (4 * n_rows * n_rows)
    half_width = float(np.sqrt(z_squared * variance)) / scale
    return share, max(0.0, min(middle - half_width, share)), min(1.0, max(middle + half_width, share))


def count_effective_rows(weight: Array) -> float:
    """Count how many rows of one weight would tell as much: unequal weights tell less.

    Parameters
    ----------
    weight : array
        The weights of the rows.

    Returns
    -------
    float
    """
    return add_up(weight) ** 2 / add_up(weight**2)


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


def explain_rows(audit: LabelAudit, rows: NDArray[np.intp], n_compared: int | None = None) -> list[Explanation]:
    """Explain why labels are doubted, as far as is known: without trees of ours there are no reasons to name.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    rows : array of int
        The rows.
    n_compared : int or None
        How many of them, the first ones, are compared with similar rows; None: all.

    Returns
    -------
    list of Explanation
        Of `LabelAudit.explanations`; where that needs a model which is not there, without reasons and similar rows.
    """
    if audit.model is not None:
        return audit.explanations(rows, n_compared=n_compared)
    return [
        Explanation(
            row=row,
            given=audit.given[row],
            predicted=audit.predicted[row],
            wrong=float(audit.wrong[row]),
            reasons=(),
            n_disagreeing=0,
            n_similar=0,
            wrong_at_most=audit.bound_probability(row),
        )
        for row in rows.tolist()
    ]


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


def count_finds(audit: LabelAudit, rows: NDArray[np.intp]) -> float:
    """Return how many wrong labels a review of some rows finds: about, or where their share is not known, at most.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    rows : array of int
        The rows.

    Returns
    -------
    float
        One of the two of `LabelAudit.bound_wrong`.
    """
    expected, at_most = audit.bound_wrong(rows)
    return expected if audit.knows_share else at_most


def expect_finds(audit: LabelAudit, most: int) -> list[Point]:
    """Return how many wrong labels a review is expected to find, the worst rows first.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    most : int
        Rows to review, at most.

    Returns
    -------
    list of Point
        Rows reviewed, from none to `most`, and wrong labels expected among them; where no noise was found, how many
        there may be at most.
    """
    order = audit.ranking[:most]
    n_reviewed = np.unique(np.linspace(0, len(order), FINDS_POINTS).astype(int))
    return [(float(n), count_finds(audit, order[:n])) for n in n_reviewed]


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
    model = audit.find_own_model("what was trained comes").model_
    assert model.choice is not None  # A model that can be audited has chosen by folds.
    return TrainingFacts(
        n_columns=audit.numbers.shape[1],
        n_categorical=len(model.encoder.schema.categories),
        missing_share=float(np.mean([np.isnan(column).mean() for column in audit.numbers.T])),
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


def compare_importances(audit: LabelAudit, suspects: NDArray[np.intp]) -> tuple[Array, Array | None]:
    """Compare the columns' shares of the gain in the model's trees with those in trees that see suspects corrected.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    suspects : array of int
        The rows to correct.

    Returns
    -------
    importances : array
        The shares in the model's trees.
    corrected_importances : array or None
        The shares in the others; None where there is nothing to correct, where nothing is corrected without a look, or
        if a class would be left without rows.
    """
    counted = audit.weight > 0
    before = audit.fitted.importances("gain")
    if audit.why_not_corrected:
        return before, None
    labels = audit.corrected(audit.find_likely_wrong(suspects))
    nothing_changes = not (labels != audit.labels_after_review)[counted].any()
    if nothing_changes or len(np.unique(labels[counted])) < len(audit.classes):
        return before, None
    return before, train_again(audit, labels).importances("gain")


def train_again(audit: LabelAudit, labels: NDArray[Any]) -> FittedModel:
    """Train the chosen candidate on other labels, by folds of its own, with nothing left to choose.

    Of many rows some will do: `MOST_TRAINED_AGAIN`.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    labels : array
        The other labels.

    Returns
    -------
    FittedModel
    """
    told = audit.source, audit.item, audit.groups
    model = audit.find_own_model("trees on other labels come")
    if len(labels) <= MOST_TRAINED_AGAIN:
        assert model.model_.out_of_fold is not None  # A model that can be audited has chosen by folds.
        weight = model.model_.out_of_fold.weight
        return train_chosen_candidate(model, audit.X, labels, weight, SourceColumns(*told))
    rows = audit.judged_rows.choose_rows(MOST_TRAINED_AGAIN)
    rows = rows if audit.judged is None else np.flatnonzero(audit.judged)[rows]
    sources = SourceColumns(*(None if one is None else one[rows] for one in told))
    return train_on_numbers(model, audit.numbers[rows], labels[rows], audit.weight[rows], sources, rows=rows)


# ---- calibration ----


def _follow_label(audit: LabelAudit) -> tuple[Array, NDArray[np.bool_]]:
    """Return the twisted posterior of a label for each row, and whether the row bears it; see `Calibration`."""
    # The twisted posterior is that of labels before any review.
    labels = audit.given if audit.before_review is None else audit.before_review
    if len(audit.classes) == 2:
        return audit.posterior[:, 1], labels == audit.classes[1]
    likeliest = audit.posterior.argmax(axis=1)
    return audit.posterior.max(axis=1), labels == audit.classes[likeliest]


def measure_reliability(audit: LabelAudit) -> list[tuple[float, Interval]]:
    """Measure predicted and counted labels in groups of rows of about equal weight; see `Calibration`.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    list of tuples
        For each group the mean posterior, and the share of rows that bear the label.
    """
    posterior, bears = _follow_label(audit)
    found = []
    for rows in _group_rows(audit, posterior):
        weight = audit.weight[rows]
        share = average(bears[rows], weight)
        mean_posterior = average(posterior[rows], weight)
        found.append((mean_posterior, bound_share(share, count_effective_rows(weight))))
    return found


def _group_rows(audit: LabelAudit, posterior: Array) -> list[NDArray[np.intp]]:
    """Return groups of rows of about equal weight, the one with the lowest posteriors first."""
    order = np.lexsort((audit.weight, posterior))  # Groups do not depend on the order of the rows.
    order = order[audit.weight[order] > 0]
    weight = audit.weight[order]
    n_groups = max(1, min(MOST_GROUPS, len(order) // LEAST_IN_GROUP))
    weight_before = np.cumsum(weight) - 0.5 * weight
    group_of_row = np.minimum(weight_before / weight.sum() * n_groups, n_groups - 1).astype(np.intp)
    return [order[group_of_row == group] for group in np.unique(group_of_row)]


def measure_spread(audit: LabelAudit) -> list[float]:
    """Measure where the posteriors lie.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    list of float
        The share of the weight in each bin.
    """
    posterior, _ = _follow_label(audit)
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    bin_of_row = np.clip(np.searchsorted(edges, posterior, side="right") - 1, 0, N_BINS - 1)
    mass = add_up_by_group(audit.weight, bin_of_row, N_BINS)
    return [float(one) for one in mass / mass.sum()]


def trace_clean_posterior(audit: LabelAudit) -> list[Point]:
    """Trace the clean posterior over the twisted one.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    list of Point
    """
    if len(audit.classes) > 2:
        return _trace_mean_clean_posterior(audit)
    twisted = np.linspace(0.0, 1.0, CURVE_POINTS)
    within = np.clip(twisted, CURVE_FLOOR, 1 - CURVE_FLOOR)
    clean = audit.noise.clean(np.column_stack([1.0 - within, within]))[:, 1]
    return [(float(x), float(y)) for x, y in zip(twisted, clean, strict=True)]


def _trace_mean_clean_posterior(audit: LabelAudit) -> list[Point]:
    """Trace the clean posterior of what was likeliest: of several classes, its mean over each group of rows."""
    twisted, _ = _follow_label(audit)
    likeliest = audit.posterior.argmax(axis=1)
    clean = audit.noise.clean(audit.posterior)[np.arange(len(likeliest)), likeliest]
    return [
        (average(twisted[rows], weight), average(clean[rows], weight))
        for rows in _group_rows(audit, twisted)
        for weight in [audit.weight[rows]]
    ]
