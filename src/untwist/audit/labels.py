"""Every label with the probability that it is wrong.

No row is judged by a model that has seen it: the posteriors are out of fold. How much doubt a disagreement deserves
follows from the noise that the data show as a whole (`untwist.noise`): as many rows are suspects as labels are
expected to be wrong. Where it is known who gave each label, every source has noise of its own, and where several
sources have labelled an item, all of its labels judge each of them (`untwist.noise.sources`).
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array, check_count, check_share
from untwist.audit import notebook
from untwist.audit.audited_sources import AuditedSources
from untwist.audit.confusions import Confusion, expect_labels, find_confusions
from untwist.audit.context import AuditContext, AuditedTable, Judge, find_positions
from untwist.audit.correcting import UNDECIDED, count_expected, find_likely_wrong, find_settled
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE
from untwist.audit.explaining import explain_rows, require_model
from untwist.audit.hidden_sources import HiddenSource, look_for_sources
from untwist.audit.issues.finding import find_issues_in, read_times
from untwist.audit.issues.issue import DataIssue
from untwist.audit.reasons import Explanation
from untwist.audit.reviewed import ReviewOutcome, change_reviewed, sum_up_review
from untwist.audit.slices import Slice, collect_judged_rows, find_slices
from untwist.audit.statements import Statement
from untwist.audit.verdict import Verdict, find_verdict
from untwist.audit.yields import count_wrong
from untwist.classifier import UntwistClassifier
from untwist.data.decisions import Decisions
from untwist.data.fingerprints import fingerprint
from untwist.files.decisions import read_decisions
from untwist.noise.model import NoiseModel
from untwist.optional import import_optional
from untwist.sums import add_up

__all__ = ["LabelAudit", "value_review"]

#: What a review may be for.
AIMS = ("labels", "model")


@dataclass(frozen=True, eq=False)
class LabelAudit:
    """What `audit_labels` found; all arrays have one entry per row.

    Parameters
    ----------
    classes : array
        The labels that there are.
    given, predicted : arrays
        The label of each row, as `y` has it, and the one that the other rows speak for; where its item has several
        labels, or its own is likelier wrong than right, the one that the features and all labels of the item speak for,
        and where the row was reviewed, the one that was decided on.
    posterior : array
        The twisted posterior of each class, out of fold.
    wrong : array
        The probability that the label is wrong.
    noise : NoiseModel
        The rates, or of several classes the transition matrices, that fit; `noise.found` says whether there is evidence
        of noise at all, `matrix` which class bears which label how often.
    noise_rate : tuple of float
        The share of wrong labels, with its 95 % interval.
    rate_by_label : dict
        The same among the rows of each given label.
    weight : array
        The sample weights of the fit.
    model : UntwistClassifier or None
        The classifier whose folds judged the labels. None where posteriors of another model did: whatever asks our
        trees then raises a ValueError that says so.
    table : AuditedTable
        The values of the rows.
    judge : Judge
        Whose posteriors judged the labels, and what speaks against them.
    context : AuditContext
        What else is known of the rows: who gave the labels, which rows belong together, which were reviewed and judged.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> from untwist.audit import audit_labels
    >>> audit = audit_labels(X, y)
    >>> print(audit)
    569 labels: no sign of wrong labels; at most ... % are wrong if errors do not depend on features; errors that follow
    the features cannot be seen without looking at rows; ...
    >>> audit.suspects(budget=3)
    array([..., ..., ...])
    """

    classes: NDArray[Any]
    given: NDArray[Any]
    predicted: NDArray[Any]
    posterior: Array
    wrong: Array
    noise: NoiseModel
    noise_rate: tuple[float, float, float]
    rate_by_label: dict[Any, tuple[float, float, float]]
    weight: Array
    model: UntwistClassifier | None
    table: AuditedTable = field(default_factory=AuditedTable)
    judge: Judge = field(default_factory=Judge)
    context: AuditContext = field(default_factory=AuditContext)

    def __str__(self) -> str:
        return self.verdict.describe()

    def __repr__(self) -> str:
        verdict = self.verdict
        table = f"{verdict.n_judged:,} labels of {len(self.classes)} classes"
        if self.review is not None:
            table += f", {self.review.rows:,} reviewed, {self.review.still_wrong:,} of them wrong still"
        return f"LabelAudit({'; '.join(one for one in (f'{table}: {verdict.brief}', verdict.suspects) if one)})"

    def _repr_html_(self) -> str:
        """Return how noisy the labels are, the first suspects and what a review finds, for notebooks."""
        return notebook.write_html(self)

    # ---- what may be said of the labels ----

    @cached_property
    def verdict(self) -> Verdict:
        """What may be said of the labels: a state, statements and what was noticed; `str` has its words."""
        return find_verdict(self)

    @property
    def reviewed(self) -> NDArray[np.bool_] | None:
        """The rows that a person has decided on; None where no row was.

        There `wrong` is 1 where `given` is another label than the one decided on, and else 0.
        """
        return self.context.reviewed

    @cached_property
    def review(self) -> ReviewOutcome | None:
        """What a person found, what of it the data still hold, and what is expected of the other rows."""
        return sum_up_review(self)

    @cached_property
    def sources(self) -> AuditedSources:
        """Who gave the labels: how good each source is, what is true of each item, and who disagrees with whom."""
        return AuditedSources(
            self.classes, self.label_indices, self.posterior, self.wrong, self.weight, self.noise, self.context
        )

    # ---- how noisy ----

    @cached_property
    def matrix(self) -> Array:
        """The transition matrix of all labels together: a row per true class, a column per label."""
        if self.context.by_source is None or len(self.classes) == 2:
            return self.noise.matrix
        expected = expect_labels(self.truth, self.label_indices, self.weight)
        return np.asarray(expected / np.maximum(expected.sum(axis=1, keepdims=True), np.finfo(float).tiny))

    def confusions(self) -> list[Confusion]:
        """Return which class bears which other label how often: "billing is often labelled bug".

        Returns
        -------
        list of Confusion
            The pair with most rows first; pairs of which less than half a row is expected are left out. The list is
            empty where rows have near-duplicates in other folds, unless the noise was given.
        """
        if not self.context.can_tell(self.noise):
            return []
        return find_confusions(self.noise, self.classes, self.matrix, self.truth, self.label_indices, self.weight > 0)

    def expect_wrong(self, rows: ArrayLike) -> float:
        """Return how many of some labels are expected to be wrong: what a review of them should find.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans.

        Returns
        -------
        float
            Rows that no fold judges do not count.
        """
        return add_up(self.wrong[self._find_judged(rows)])

    def expected_yield(self, rows: ArrayLike) -> Statement:
        """Return how many of some labels are wrong: what a review of them finds, with a 95 % interval.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans; rows that no fold judges do not count.

        Returns
        -------
        Statement
            Its value is `expect_wrong`. Its range begins at 0, but for labels that a review found wrong, unless noise
            was found: labels that are all right fit as well then, and of all labels no more are wrong than
            `Verdict.upper_bound` says.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from untwist.audit import audit_labels
        >>> audit = audit_labels(*load_breast_cancer(return_X_y=True))
        >>> found = audit.expected_yield(audit.suspects(budget=10))
        >>> found.low, found.high
        (0.0, 10.0)
        """
        verdict = self.verdict
        positions = find_positions(rows, len(self.given))
        return count_wrong(
            self,
            positions,
            is_found=verdict.is_found,
            most_wrong=verdict.most_wrong,
            rests_on=verdict.share.rests_on,
        )

    def _find_judged(self, rows: ArrayLike) -> NDArray[np.intp]:
        """Return those of some rows that were judged, as indices."""
        return self.context.take_judged(find_positions(rows, len(self.given)))

    # ---- which rows to look at ----

    @property
    def ranking(self) -> NDArray[np.intp]:
        """All rows that were judged and that nobody has reviewed, the most suspect first.

        Of equals those come first whose label the posterior speaks against more.
        """
        return self._rank(self.wrong)

    def _rank(self, value: Array) -> NDArray[np.intp]:
        """Return all rows that were judged and not reviewed, those of the highest value first."""
        rows = np.arange(len(self.given))
        posterior_of_label = self.posterior[rows, self.label_indices]
        order = np.lexsort((rows, posterior_of_label, -value))
        return self.context.take_open(self.context.take_judged(order))

    def suspects(
        self, *, false_discovery_rate: float | None = None, budget: int | None = None, aim: str = "labels"
    ) -> NDArray[np.intp]:
        """Return the rows to review, the most suspect first, by position (as for `iloc`).

        Without further arguments they are as many as labels are expected to be wrong: the sum of `wrong`, rounded, with
        the chance counted in that there is no noise. Rows that were reviewed are never among them.

        Parameters
        ----------
        false_discovery_rate : float or None
            As many rows as keep the expected share of right labels among them below this.
        budget : int or None
            This many rows, whatever they are worth.
        aim : "labels" or "model", default "labels"
            What the review is for. "labels" puts those labels first that are most likely wrong, so that a review finds
            as many as it can. "model" puts those rows first that teach a model most which is fitted anew with
            `reviewed=`: with a budget they are other rows, otherwise the same in another order.

        Returns
        -------
        array of int
        """
        if aim not in AIMS:
            raise ValueError(f'aim must be "labels" or "model", got {aim!r}')
        if aim == "model":
            by_value = self._rank(value_review(self.truth))
            if budget is not None and false_discovery_rate is None:
                return by_value[: check_count("budget", budget, low=0)]
            chosen = self.suspects(false_discovery_rate=false_discovery_rate, budget=budget)
            return by_value[np.isin(by_value, chosen)]
        if false_discovery_rate is not None and budget is not None:
            raise ValueError("false_discovery_rate and budget exclude each other: give one of them")
        if false_discovery_rate is not None:
            false_discovery_rate = check_share("false_discovery_rate", false_discovery_rate)
        order = self.ranking
        if budget is not None:
            return order[: check_count("budget", budget, low=0)]
        order = order[self.weight[order] > 0]  # A row of weight 0 is an absent one.
        wrong = self.wrong[order]
        if false_discovery_rate is None:
            return order[: count_expected(wrong)]
        # This share rises from row to row, as the most suspect rows come first.
        share_right = np.cumsum(1.0 - wrong) / np.arange(1, len(wrong) + 1)
        return order[share_right <= false_discovery_rate]

    def corrected(self, rows: ArrayLike | None = None, *, force: bool = False) -> NDArray[Any]:
        """Return a copy of the labels in which some rows have what the other rows speak for.

        Nobody has looked at these rows. Labels are replaced between a true class and a label for which noise was found
        (`NoiseModel.found_pairs`); where none was found, or something else speaks against it, none is: see
        `Verdict.why_not_corrected`. A UserWarning says what was not done. Rows that were reviewed have the label
        decided on in any case.

        Parameters
        ----------
        rows : array-like or None
            Indices or Booleans, by default those of `suspects()` that are more likely wrong than right. All rows of an
            item are replaced where one is, as an item has one truth.
        force : bool, default False
            Whether labels are replaced though something speaks against it, and where it is undecided whether they are
            wrong.

        Returns
        -------
        array
        """
        labels = change_reviewed(self).copy()
        suspects = find_likely_wrong(self, self.suspects()) if rows is None else rows
        chosen = find_positions(suspects, len(labels))
        if self.context.item is not None:
            items = self.sources.item_indices
            chosen = np.flatnonzero(np.isin(items, items[chosen]))
        if not force:
            asked, chosen = chosen, find_settled(self, chosen)
            if len(chosen) < len(asked):
                kept = len(asked) - len(chosen)
                left = f"{kept} of {len(asked)} labels are not" if len(chosen) else "no label is"
                warnings.warn(
                    f"{left} replaced: {self.verdict.why_not_corrected or UNDECIDED}. Review the suspects, and "
                    "apply(decisions); corrected(force=True) replaces labels that nobody has looked at",
                    UserWarning,
                    stacklevel=2,
                )
        labels[chosen] = self.predicted[chosen]
        return labels

    def apply(self, decisions: Decisions | str | os.PathLike[str]) -> NDArray[Any]:
        """Return a copy of the labels in which those that a person decided on are changed, and nothing else.

        Where several rows are labels of one item, only the row decided on changes: what a source said stays said. What
        was decided in a review that the audit was told of is changed too.

        Parameters
        ----------
        decisions : Decisions, str or path
            What was decided about the labels of this audit, or the file of it. Decisions about other rows or other
            labels, by their fingerprint, are a ValueError.

        Returns
        -------
        array
        """
        decided = decisions if isinstance(decisions, Decisions) else read_decisions(decisions)
        decided.check_fingerprint(self.fingerprint)
        changed = decided.change(self.given)
        if self.reviewed is not None:
            known = np.setdiff1d(np.flatnonzero(self.reviewed), decided.rows[decided.reviewed])
            changed[known] = self.predicted[known]
        return changed

    @cached_property
    def fingerprint(self) -> str:
        """What tells these rows and labels from others: `Decisions` carry it."""
        return fingerprint(self.table.X, self.given)

    # ---- why, and where ----

    def explain(self, row: int, n_reasons: int = 3) -> Explanation:
        """Return why the label of a row is doubted.

        A column speaks against a label if the row would look more like that label with what is usual for it there: the
        median, or the most frequent category, of the rows that bear it. Of several classes, more like that label than
        like the predicted one. Similar rows share most leaves of the trees; where groups were given they are of other
        groups, as rows of one group may share a wrong label.

        Parameters
        ----------
        row : int
            The position of the row.
        n_reasons : int, default 3
            Columns to name, at most.

        Returns
        -------
        Explanation
        """
        chosen = check_count("row", row, low=0, high=len(self.given) - 1)
        require_model(self, "explanations come")
        return explain_rows(self, [chosen], n_reasons)[0]

    def slices(
        self, columns: ArrayLike | None = None, *, false_discovery_rate: float = FALSE_DISCOVERY_RATE
    ) -> list[Slice]:
        """Return where wrong labels concentrate: parts whose labels look wrong more often than those of all rows.

        A part is a category, a missing value, or a quarter of a column of numbers; the clearest comes first. Rows that
        are modestly harder than others, or of some class more often, make no slice; much harder ones can look the same
        as wrong labels. So where no noise was found, the share of a slice may be as low as 0. No slices are named where
        rows have near-duplicates in other folds: a slice has not as many rows as it seems, and models know them.

        Parameters
        ----------
        columns : array-like or None
            The positions of those to look at, by default all.
        false_discovery_rate : float, default 0.05
            The share of the slices that is expected to be named by chance, at most.

        Returns
        -------
        list of Slice
        """
        rate = check_share("false_discovery_rate", false_discovery_rate)
        if not self.context.can_tell(self.noise):
            return []
        if columns is None and rate == FALSE_DISCOVERY_RATE:
            return list(self._usual_slices)
        chosen = range(self.table.numbers.shape[1]) if columns is None else np.asarray(columns, dtype=np.intp).tolist()
        return find_slices(collect_judged_rows(self), self.table.require_encoder(), chosen, rate)

    @cached_property
    def _usual_slices(self) -> list[Slice]:
        """The slices that are asked for without arguments: a page shows them, and a command prints them too."""
        everything = range(self.table.numbers.shape[1])
        return find_slices(collect_judged_rows(self), self.table.require_encoder(), everything)

    def hidden_sources(self) -> list[HiddenSource]:
        """Look for columns that look like sources of labels rather than features: some of their values gave worse ones.

        The chosen candidate is trained again without each column that may be one, of two columns at most; nothing else
        that an audit tells fits a model.

        Returns
        -------
        list of HiddenSource
            The clearest first; none where no column clearly looks like one, where the table is too large to look, and
            where rows have near-duplicates in other folds. `untwist.report.report` takes the first one, to show it.
        """
        return look_for_sources(self, require_model(self, "a column that looks like a source is tried"))

    def find_issues(self, time: ArrayLike | None = None) -> list[DataIssue]:
        """Find what else is wrong with the data: equal rows, leaks, drift and the like, each with its rows and reason.

        Parameters
        ----------
        time : array-like or None
            When each row was taken, as numbers or dates, or the name of a column of X that says so; without it drift is
            looked for along the order of the rows only.

        Returns
        -------
        list of DataIssue
            By kind; nothing where nothing was found.
        """
        encoder = self.table.require_encoder()
        labels = encoder.feature_labels
        column = labels.index(time) if isinstance(time, str) and time in labels else None
        if isinstance(time, str) and column is None:
            raise ValueError(f"time must be a column of X or one value per row, got {time!r}")
        times = read_times(time, len(self.given)) if column is None else self.table.numbers[:, column]
        return find_issues_in(
            self.table.numbers,
            encoder,
            self.label_indices,
            self.classes,
            posterior=self.clean,
            weight=self.weight,
            time=times,
            time_column=column,
            item=self.context.item,
            are_alone=self.context.groups is None,
        )

    # ---- other forms ----

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns of cleanlab.

        Returns
        -------
        pandas.DataFrame
            `label_quality` is the probability of a right label; `predicted_label` is what the other rows speak for, and
            may differ from a label that is more likely right than wrong. Where sources were given, `source` and `item`
            follow.
        """
        pandas = import_optional("pandas", "to_frame", extra="cli")
        is_suspect = np.zeros(len(self.given), dtype=np.bool_)
        is_suspect[self.suspects()] = True
        columns = {
            "is_label_issue": is_suspect,
            "label_quality": 1.0 - self.wrong,
            "given_label": self.given,
            "predicted_label": self.predicted,
        }
        if self.context.source is not None and self.context.item is not None:
            columns |= {"source": self.context.source, "item": self.context.item}
        X = self.table.X
        return pandas.DataFrame(columns, index=X.index if hasattr(X, "iloc") else None)

    @cached_property
    def label_indices(self) -> NDArray[np.intp]:
        """The index of each row's label among the classes."""
        return np.searchsorted(self.classes, self.given)

    @cached_property
    def clean(self) -> Array:
        """The clean posterior of each class by the features alone, out of fold."""
        return self.noise.clean(self.posterior)

    @cached_property
    def truth(self) -> Array:
        """The probability of each class to be the truth, row by row, by the features and all labels of the item."""
        if self.context.by_source is not None:
            return self.sources.truth
        if len(self.classes) > 2:
            truth = self.noise.find_truth(self.posterior, self.label_indices)
            if self.reviewed is not None:
                decided = np.searchsorted(self.classes, self.predicted[self.reviewed])
                truth[self.reviewed] = np.eye(len(self.classes))[decided]
            return truth
        # Of two classes a wrong label says which class is the true one.
        return np.abs(np.eye(2)[self.label_indices] - self.wrong[:, None])


def value_review(truth: Array) -> Array:
    """Return how much a model fitted anew with `reviewed=` is expected to learn from a review of each row.

    The model has drawn its conclusions from the label and from how likely that is wrong: it learns from a review only
    as far as the truth comes as a surprise. It moves by the difference between the truth and what was expected of it,
    whose mean is 0, and log-loss falls by the mean square of what it moves: by the variance of the truth,
    1 - sum(q[k]^2), where q is `truth`; of two classes that is 2 * wrong * (1 - wrong). A label that is all but
    certainly wrong is worth little to the model, however surely it is found, and one that may be either is worth most.
    Rows that were reviewed are worth nothing.

    Parameters
    ----------
    truth : array of shape (n_rows, n_classes)
        The probability of each class to be the truth.

    Returns
    -------
    array
    """
    return np.asarray(1.0 - (truth**2).sum(axis=1))
