"""Every label with the probability that it is wrong.

No row is judged by a model that has seen it: the posteriors are out of fold. How much doubt a disagreement deserves
follows from the noise that the data show as a whole (`untwist.noise`): where there is no evidence of noise there are
no suspects, however hard the rows. Where it is known who gave each label, every source has noise of its own, and where
several sources have labelled an item, all of its labels judge each of them (`untwist.noise.sources`).
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array, check_count, check_share
from untwist.audit import frames, words
from untwist.audit.confusions import Confusion, expect_labels, find_confusions
from untwist.audit.correcting import doubt_correction
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE
from untwist.audit.expectation import Expectation
from untwist.audit.hidden_sources import MOST_CELLS, HiddenSource, find_hidden_source
from untwist.audit.issues.finding import find_issues_in, read_times
from untwist.audit.issues.issue import DataIssue
from untwist.audit.judging import find_unseen_share, widen_interval
from untwist.audit.reasons import N_NAMED, Explanation, ReasonFinder
from untwist.audit.reviewed import ReviewOutcome, describe_review, sum_up_review
from untwist.audit.slices import JudgedRows, Slice, find_slices
from untwist.audit.sources import (
    Disagreement,
    JudgedItem,
    SourceQuality,
    find_disagreements,
    judge_items,
    rate_sources,
)
from untwist.classifier import UntwistClassifier
from untwist.data.decisions import Decisions
from untwist.data.encoding import TableEncoder
from untwist.data.fingerprints import fingerprint
from untwist.data.groups import read_groups
from untwist.data.sources import look_up_sources
from untwist.data.twins import NOTHING_KNOWN, Twins
from untwist.display import (
    write_percent,
)
from untwist.files.decisions import read_decisions
from untwist.model import FittedModel
from untwist.noise.model import NoiseModel
from untwist.noise.sources import NoiseBySource
from untwist.sums import add_up, average
from untwist.theory import twists

__all__ = ["LabelAudit"]

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
        The classifier whose folds judged the labels; `fitted` is the `FittedModel` that it holds. None where posteriors
        of another model did: whatever asks our trees then raises a ValueError that says so.
    X : table or None
        The rows; None where they were not given.
    source : array or None
        Who or what gave each label, None where that is not known of a row; None where no sources were given.
    item : array or None
        The item of each row: its name, or the position of its first row where items have no names.
    by_source : NoiseBySource or None
        What each source gets wrong.
    hidden_source : HiddenSource or None
        A column of X that looks like a source rather than a feature: at some of its values labels look wrong more
        often.
    reviewed : array of bool or None
        The rows that a person has decided on: `wrong` is 1 where `given` is another label than the one decided on, and
        else 0. None where no row was; see `review`.
    before_review : array or None
        The labels before that review; None where they are not known.
    n_skipped : int
        Rows that were looked at and could not be decided on: they are as if nobody had looked.
    encoder : TableEncoder or None
        How the rows become numbers; None where X is no table.
    judge : str
        Whose posteriors judged the labels.
    in_sample_reason : str
        Why posteriors that were given look as if they had seen the labels, which makes wrong labels look right; empty
        where nothing shows that they have.
    groups : array or None
        The group of each row, None where that is not known of a row; None where no groups were given.
    rows_per_case : float
        How many rows count as one in all that is said of the noise, as those of a group err together; 1 without groups.
    judged : array of bool or None
        Whether some fold of one's own judged each row; None where all rows are judged. The others have NaN in
        `posterior` and `wrong`, their own label in `predicted`, weight 0, and no part in anything that is said.
    twins : Twins or None
        Rows of different folds that nearly repeat each other, where so many do that the models may have remembered
        labels; None where there are none. With groups they are looked for among rows whose group has several rows or
        is not known. Nothing is excluded of such rows.
    order : array of int or None
        The place of each class where classes have a natural order, as numbers and ordered categories have; None where
        they have none.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> from untwist.audit import audit_labels
    >>> audit = audit_labels(X, y)
    >>> print(audit)
    569 labels: no sign of noise that is the same everywhere (rates from 0% to 3% would fit); uneven noise of up to 3.3%
    of the labels is not excluded; suspects(budget=...) are the rows to look at first
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
    X: Any
    source: NDArray[Any] | None = None
    item: NDArray[Any] | None = None
    by_source: NoiseBySource | None = None
    hidden_source: HiddenSource | None = None
    reviewed: NDArray[np.bool_] | None = None
    before_review: NDArray[Any] | None = None
    n_skipped: int = 0
    encoder: TableEncoder | None = None
    judge: str = "UntwistClassifier, out of fold"
    in_sample_reason: str = ""
    groups: NDArray[Any] | None = None
    rows_per_case: float = 1.0
    judged: NDArray[np.bool_] | None = None
    twins: Twins | None = None
    order: NDArray[np.intp] | None = None

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        table = f"{self.n_judged} labels of {len(self.classes)} classes"
        if self.review is not None:
            table += f", {self.review.rows} reviewed, {self.review.still_wrong} of them wrong still"
        if not self.noise.found and not self.tells_how_many:
            return f"LabelAudit({table}: {NOTHING_KNOWN})"
        if not self.noise.found:
            return f"LabelAudit({table}: no noise found, up to {self.highest_share:.1%} wrong not excluded)"
        wrong = write_percent(*self.noise_rate) if self.tells_how_many else "some"
        return f"LabelAudit({table}: {wrong} wrong, {len(self.suspects())} suspects)"

    def _repr_html_(self) -> str:
        """Return how noisy the labels are, the first suspects and what a review finds, for notebooks."""
        return words.write_html(self)

    # ---- what a review found ----

    @cached_property
    def review(self) -> ReviewOutcome | None:
        """What a person found, what of it the data still hold, and what is expected of the other rows."""
        return sum_up_review(self)

    @property
    def labels_after_review(self) -> NDArray[Any]:
        """The labels with those decided on in place of what `y` has; `given` where nothing was reviewed."""
        return self.given if self.reviewed is None else np.where(self.reviewed, self.predicted, self.given)

    @property
    def is_known_wrong(self) -> NDArray[np.bool_]:
        """Whether each label was found wrong by a review, and is still in `given`."""
        return np.asarray(self.labels_after_review != self.given)

    @property
    def share_known_wrong(self) -> float:
        """The share of the labels that were found wrong by a review, and are still in `given`."""
        return 0.0 if self.reviewed is None else average(self.is_known_wrong.astype(np.float64), self.weight)

    def describe_review(self, *, for_command: bool = False) -> list[str]:
        """Say in words what was reviewed, what was found, and what is wrong still.

        Parameters
        ----------
        for_command : bool, default False
            Whether advice names the command rather than Python.

        Returns
        -------
        list of str
            A line for each, or none.
        """
        return describe_review(self, for_command=for_command)

    # ---- how noisy ----

    def describe(self, *, for_command: bool = False) -> str:
        """Say in words how noisy the labels are, where most, and who gave the wrong ones; `str` gives the same.

        Parameters
        ----------
        for_command : bool, default False
            Whether advice names options of the command line rather than Python.

        Returns
        -------
        str
            Several lines.
        """
        return words.describe_audit(self, for_command=for_command)

    @property
    def looks_in_sample(self) -> bool:
        """Whether posteriors that were given look as if they had seen the labels."""
        return bool(self.in_sample_reason)

    @property
    def tells_how_many(self) -> bool:
        """Whether the share of wrong labels can be told: not where rows have near twins in other folds.

        `noise_rate` is then a lower limit at best, unless the rates of noise were given.
        """
        return self.twins is None or self.noise.is_given

    @property
    def knows_share(self) -> bool:
        """Whether the share of wrong labels is known: noise was found, and `tells_how_many`."""
        return bool(self.noise.found) and self.tells_how_many

    @property
    def n_judged(self) -> int:
        """The number of rows that were judged."""
        return len(self.given) if self.judged is None else int(self.judged.sum())

    def describe_judge(self, *, for_command: bool = False) -> list[str]:
        """Say in words what speaks against those who judged: that they may have seen the labels, or not all rows.

        Parameters
        ----------
        for_command : bool, default False
            Whether advice names options of the command line rather than Python.

        Returns
        -------
        list of str
            A line for each finding, or none.
        """
        return words.describe_judge(self, for_command=for_command)

    def describe_noise(self) -> str:
        """Say in words how noisy the labels are, with the names of the classes.

        Returns
        -------
        str
            Where no noise was found, what is not excluded.
        """
        return words.describe_noise(self)

    def describe_as_source(self) -> str:
        """Say how many labels look wrong if a column that looks like a source is taken for one.

        Returns
        -------
        str
            Words that go on from how noisy the labels are; none where no such column was found.
        """
        return words.describe_as_source(self)

    @cached_property
    def matrix(self) -> Array:
        """The transition matrix of all labels together: a row per true class, a column per label."""
        if self.by_source is None or len(self.classes) == 2:
            return self.noise.matrix
        expected = expect_labels(self.truth, self.label_indices, self.weight)
        return np.asarray(expected / np.maximum(expected.sum(axis=1, keepdims=True), np.finfo(float).tiny))

    @property
    def highest_share(self) -> float:
        """The largest share of wrong labels that is not excluded, by noise of any kind that is looked for.

        A few wrong labels are never excluded: see `find_unseen_share`. Where a column looks like a source, neither is
        what would be wrong if it is one. Labels that a review found wrong come on top.
        """
        return min(1.0, self.share_known_wrong + self._highest_share_left)

    @property
    def _highest_share_left(self) -> float:
        """The largest share of all labels that is not excluded to be wrong beside those that a review found wrong."""
        unseen = find_unseen_share(np.count_nonzero(self.weight) / self.rows_per_case)
        uneven = 0.0 if self.noise.found else self.noise.uneven_limit
        as_source = 0.0 if self.hidden_source is None else self.hidden_source.interval_as_source[1]
        return max(self.noise_rate[2] - self.share_known_wrong, uneven, unseen, as_source)

    def confusions(self) -> list[Confusion]:
        """Return which class bears which other label how often: "billing is often labelled bug".

        Returns
        -------
        list of Confusion
            The pair with most rows first; pairs of which less than half a row is expected are left out. The list is
            empty where nobody can tell how many labels are wrong, see `tells_how_many`.
        """
        if not self.tells_how_many:
            return []
        return find_confusions(self.noise, self.classes, self.matrix, self.truth, self.label_indices, self.weight > 0)

    def list_class_shares(self) -> list[tuple[float, float, float]]:
        """Return the share of each true class that bears another label, with its 95 % interval.

        Returns
        -------
        list of tuples
            The share and its limits for each of `classes`.
        """
        noise = self.noise
        doubted = 0.0 if self.twins is None else self.twins.share
        if len(self.classes) == 2:
            return [widen_interval(one, doubted) for one in noise.list_class_shares()]
        n_rows = [np.count_nonzero((self.predicted == name) & (self.weight > 0)) for name in self.classes]
        rates = [
            (share, low, high if noise.is_given else max(high, find_unseen_share(int(n) / self.rows_per_case)))
            for (share, low, high), n in zip(noise.list_class_shares(), n_rows, strict=True)
        ]
        return [widen_interval(one, doubted) for one in rates]

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

    def bound_wrong(self, rows: ArrayLike) -> tuple[float, float]:
        """Return how many of some labels are wrong at least and at most, whatever the shape of the noise.

        Noise that rises where rows are hard to tell apart looks exactly like hard rows, so that it is never excluded:
        where no noise was found, this range is all that can be said. Where rows have near twins in other folds it
        spans everything, unless rates of noise were given: wrong labels that models have seen look right.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans.

        Returns
        -------
        low : float
            What `expect_wrong` gives, the number if noise is the same everywhere; 0 where the share of wrong labels is
            not known, as labels that are all right fit as well.
        high : float
            The number if all that speaks against the labels is noise: the sum of `wrong_at_most`. Where no noise was
            found and all weights are 1, no more than may be wrong of all labels, by `highest_share`.
        """
        expected = self.expect_wrong(rows)
        judged = self._find_judged(rows)
        high = add_up(self.wrong_at_most[judged])
        if self.most_wrong is not None:
            elsewhere = np.count_nonzero(self.is_known_wrong) - np.count_nonzero(self.is_known_wrong[judged])
            high = min(high, float(self.most_wrong - elsewhere))
        return expected if self.knows_share else 0.0, max(expected, high)

    @property
    def most_wrong(self) -> int | None:
        """How many of all labels may be wrong at most.

        None where noise was found, where rows have near twins in other folds, and where weights are not all 1.
        """
        weight = self.weight if self.judged is None else self.weight[self.judged]
        if self.noise.found or not self.tells_how_many or not np.all(weight == 1):
            return None
        left = math.ceil(self._highest_share_left * self.n_judged)
        return min(self.n_judged, left + int(np.count_nonzero(self.is_known_wrong)))

    @cached_property
    def wrong_at_most(self) -> Array:
        """The highest probability of each label to be wrong, if all that speaks against it is noise.

        Where another class is likelier by the posterior, that class may be the truth of all such rows, and every label
        against it wrong. Of the other labels those may be wrong that the posterior leaves to other classes. Where rows
        have near twins in other folds, any label may be wrong, as models may have remembered it.
        """
        of_label = self.posterior[np.arange(len(self.given)), self.label_indices]
        is_contradicted = of_label < self.posterior.max(axis=1)
        at_most = np.maximum(self.wrong, np.where(is_contradicted, 1.0, 1.0 - of_label))
        if not self.tells_how_many:
            at_most = np.ones(len(self.given))
        return at_most if self.reviewed is None else np.where(self.reviewed, self.wrong, at_most)

    # ---- who gave the labels ----

    def list_sources(self) -> list[SourceQuality]:
        """Return how good the labels of every source are: "45% of the labels of Leipzig are wrong".

        Returns
        -------
        list of SourceQuality
            Those that stand out first, and of each kind the worst first; none where no sources were given.
        """
        if self.by_source is None:
            return []
        return rate_sources(self.by_source, self.classes, self.source_indices, self.wrong, self.weight)

    def list_disagreements(self) -> list[Disagreement]:
        """Return who disagrees with whom on items that both have labelled, and how much their quality explains.

        Returns
        -------
        list of Disagreement
            Those that stand out first, and of each kind the one with most disagreements that quality does not explain.
        """
        if self.by_source is None:
            return []
        counted = self.weight > 0
        return find_disagreements(
            self.by_source,
            self.truth[counted],
            self.label_indices[counted],
            self.source_indices[counted],
            self.item_indices[counted],
        )

    def list_items(self) -> list[JudgedItem]:
        """Return every item with the class that it most likely is, and who said what of it.

        Returns
        -------
        list of JudgedItem
            In the order of the names of items; none where no sources were given.
        """
        if self.source is None or self.item is None:
            return []
        names = np.unique(self.item)
        return judge_items(self.classes, self.truth, self.label_indices, self.source, self.item_indices, names)

    def describe_sources(self, *, for_command: bool = False) -> list[str]:
        """Say in words which sources stand out, and what several labels of an item add.

        Parameters
        ----------
        for_command : bool, default False
            Whether advice names options of the command line rather than Python.

        Returns
        -------
        list of str
            A line for each finding. Where no sources were given, one about a column that looks like one, if any.
        """
        return words.describe_sources(self, for_command=for_command)

    @property
    def labels_per_item(self) -> float:
        """How many labels an item has on average."""
        return len(self.given) / (int(self.item_indices.max(initial=0)) + 1)

    @property
    def share_repeated(self) -> float:
        """The share of rows whose item has several labels."""
        return float(np.mean(np.bincount(self.item_indices)[self.item_indices] > 1))

    @property
    def alpha_star(self) -> Array:
        """The alpha that undoes the noise of each row's source there: the paper's pointwise alpha*, for two classes.

        It is the quotient of the log-odds of the clean posterior and of the posterior that labels of that source
        follow, both by the features alone; see `untwist.twists.alpha_star`.
        """
        if len(self.classes) != 2:
            raise ValueError(f"alpha_star is for two classes, and there are {len(self.classes)}")
        clean = self.clean
        twisted = self.posterior if self.by_source is None else self.by_source.noisy(clean, self.source_indices)
        return twists.alpha_star(clean[:, 1], twisted[:, 1])

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
        order = order if self.judged is None else order[self.judged[order]]
        return order if self.reviewed is None else order[~self.reviewed[order]]

    @cached_property
    def value_for_model(self) -> Array:
        """How much a model fitted anew with `reviewed=` is expected to learn from a review of each row.

        The model has drawn its conclusions from the label and from how likely that is wrong: it learns from a review
        only as far as the truth comes as a surprise. It moves by the difference between the truth and what was expected
        of it, whose mean is 0, and log-loss falls by the mean square of what it moves: by the variance of the truth,
        1 - sum(q[k]^2), where q is `truth`; of two classes that is 2 * wrong * (1 - wrong). A label that is all but
        certainly wrong is worth little to the model, however surely it is found, and one that may be either is worth
        most. Rows that were reviewed are worth nothing.
        """
        return np.asarray(1.0 - (self.truth**2).sum(axis=1))

    def suspects(
        self, *, false_discovery_rate: float | None = None, budget: int | None = None, aim: str = "labels"
    ) -> NDArray[np.intp]:
        """Return the rows to review, the most suspect first, by position (as for `iloc`).

        Without further arguments they are, of two classes, those that are more likely wrong than right; of several, the
        set with the highest expected F1 (`NoiseModel.choose_suspects`). Without evidence of noise there are none
        but those of a budget. Rows that were reviewed are never among them.

        Parameters
        ----------
        false_discovery_rate : float or None
            As many rows as keep the expected share of right labels among them below this.
        budget : int or None
            This many rows, whatever they are worth.
        aim : "labels" or "model", default "labels"
            What the review is for. "labels" puts those labels first that are most likely wrong, so that a review finds
            as many as it can. "model" puts those rows first that teach a model most which is fitted anew with
            `reviewed=`, by `value_for_model`: with a budget they are other rows, otherwise the same in another order.

        Returns
        -------
        array of int
        """
        if aim not in AIMS:
            raise ValueError(f'aim must be "labels" or "model", got {aim!r}')
        if aim == "model":
            by_value = self._rank(self.value_for_model)
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
        if not self.noise.found:
            return order[:0]
        wrong = self.wrong[order]
        if false_discovery_rate is None:
            return order[self.noise.choose_suspects(wrong)]
        # This share rises from row to row, as the most suspect rows come first.
        share_right = np.cumsum(1.0 - wrong) / np.arange(1, len(wrong) + 1)
        return order[share_right <= false_discovery_rate]

    def corrected(self, rows: ArrayLike | None = None, *, force: bool = False) -> NDArray[Any]:
        """Return a copy of the labels in which some rows have what the other rows speak for.

        Nobody has looked at these rows. Of several classes that may make labels worse, and none is then replaced: see
        `why_not_corrected`. Rows that were reviewed have the label decided on in any case.

        Parameters
        ----------
        rows : array-like or None
            Indices or Booleans, by default those of `suspects()` that are more likely wrong than right. All rows of an
            item are replaced where one is, as an item has one truth.
        force : bool, default False
            Whether labels are replaced though something speaks against it. Without it a UserWarning says what does, and
            no label is replaced.

        Returns
        -------
        array
        """
        labels = self.labels_after_review.copy()
        if self.why_not_corrected and not force:
            warnings.warn(
                f"no label is replaced: {self.why_not_corrected}. Review the suspects, and apply(decisions); "
                "corrected(force=True) replaces labels that nobody has looked at",
                UserWarning,
                stacklevel=2,
            )
            return labels
        chosen = self.find_likely_wrong(self.suspects()) if rows is None else self.find_positions(rows)
        if self.item is not None:
            chosen = np.flatnonzero(np.isin(self.item_indices, self.item_indices[chosen]))
        labels[chosen] = self.predicted[chosen]
        return labels

    @cached_property
    def why_not_corrected(self) -> str:
        """Why labels are not to be replaced without a look; empty where nothing speaks against it.

        Of several classes right labels may look wrong where a class has fewer than 50 rows, and where most confusions
        are between neighbours in the natural order of the classes (`order`).
        """
        return doubt_correction(self)

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
        return fingerprint(self.X, self.given)

    def find_likely_wrong(self, rows: ArrayLike) -> NDArray[np.intp]:
        """Return those of some rows whose label is more likely wrong than right, as indices.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans.

        Returns
        -------
        array of int
        """
        positions = self.find_positions(rows)
        return positions[self.wrong[positions] > 0.5]

    def _find_judged(self, rows: ArrayLike) -> NDArray[np.intp]:
        """Return those of some rows that were judged, as indices."""
        positions = self.find_positions(rows)
        return positions if self.judged is None else positions[self.judged[positions]]

    def find_positions(self, rows: ArrayLike) -> NDArray[np.intp]:
        """Return rows that are given as indices or Booleans as indices.

        Parameters
        ----------
        rows : array-like
            Indices, or a Boolean for each row.

        Returns
        -------
        array of int
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_ and chosen.shape != self.given.shape:
            raise ValueError(f"rows must be {len(self.given)} Booleans or indices, got shape {chosen.shape}")
        positions = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
        if positions.size and not 0 <= positions.min() <= positions.max() < len(self.given):
            raise ValueError(
                f"rows must be indices from 0 to {len(self.given) - 1}, got {positions.min()} to {positions.max()}"
            )
        return positions

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
        return self.explanations([check_count("row", row, low=0, high=len(self.given) - 1)], n_reasons)[0]

    def explanations(self, rows: ArrayLike, n_reasons: int = 3, *, n_compared: int | None = None) -> list[Explanation]:
        """Return `explain` of many rows at once, which takes much less time than one after the other.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans.
        n_reasons : int, default 3
            Columns to name for each, at most.
        n_compared : int or None
            Similar rows are looked for to the first so many only, as that takes most of the time; None: to all.

        Returns
        -------
        list of Explanation
        """
        chosen = self.find_positions(rows)
        n_reasons = check_count("n_reasons", n_reasons, low=0)
        model = self.find_own_model("explanations come")
        groups = None if self.groups is None else read_groups(self.groups, len(self.given)).number_rows()
        known = np.searchsorted(self.classes, self.labels_after_review)  # What is usual for a label, right labels tell.
        known[chosen] = self.label_indices[chosen]
        finder = ReasonFinder(model.model_, self.numbers, known, model.n_jobs, groups)
        usual = {label: finder.find_usual(label) for label in np.unique(self.label_indices[chosen]).tolist()}
        predicted = np.searchsorted(self.classes, self.predicted)
        all_reasons = finder.find_reasons(chosen, usual, predicted[chosen])
        nothing = np.empty(0, dtype=np.intp)
        all_similar = chain(finder.find_similar(chosen[:n_compared]), repeat(nothing))
        found = []
        for row, reasons, similar in zip(chosen.tolist(), all_reasons, all_similar, strict=False):
            found.append(
                Explanation(
                    row=row,
                    given=self.given[row],
                    predicted=self.predicted[row],
                    wrong=float(self.wrong[row]),
                    reasons=tuple(reasons[:n_reasons]),
                    n_disagreeing=int(np.count_nonzero(self.given[similar] != self.given[row])),
                    n_similar=len(similar),
                    wrong_at_most=self.bound_probability(row),
                    n_predicted=self._count_predicted(row, similar),
                    similar=tuple(similar[:N_NAMED].tolist()),
                )
            )
        return found

    def bound_probability(self, row: int) -> float | None:
        """Return the highest probability of a label to be wrong, where nothing nearer can be told.

        Parameters
        ----------
        row : int
            The position of the row.

        Returns
        -------
        float or None
            None where the share of wrong labels is known, so that the label has a probability of its own in `wrong`.
        """
        return None if self.knows_share else float(self.wrong_at_most[row])

    def _count_predicted(self, row: int, similar: NDArray[np.intp]) -> int:
        """Count the similar rows that bear the label which is predicted, if it is another one."""
        if self.predicted[row] == self.given[row]:
            return 0
        return int(np.count_nonzero(self.given[similar] == self.predicted[row]))

    def slices(
        self, columns: ArrayLike | None = None, *, false_discovery_rate: float = FALSE_DISCOVERY_RATE
    ) -> list[Slice]:
        """Return where wrong labels concentrate: parts whose labels look wrong more often than those of all rows.

        A part is a category, a missing value, or a quarter of a column of numbers; the clearest comes first. Rows that
        are modestly harder than others, or of some class more often, make no slice; much harder ones can look the same
        as wrong labels. So where no noise was found, the share of a slice may be as low as 0. No slices are named where
        rows have near twins in other folds: a slice has not as many rows as it seems, and models know them.

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
        if not self.tells_how_many:
            return []
        if columns is None and rate == FALSE_DISCOVERY_RATE:
            return list(self._usual_slices)
        chosen = range(self.numbers.shape[1]) if columns is None else np.asarray(columns, dtype=np.intp).tolist()
        return find_slices(self.judged_rows, self._find_encoder(), chosen, rate)

    @cached_property
    def _usual_slices(self) -> list[Slice]:
        """The slices that are asked for without arguments: a page shows them, and a command prints them too."""
        return find_slices(self.judged_rows, self._find_encoder(), range(self.numbers.shape[1]))

    def find_hidden_source(self) -> HiddenSource | None:
        """Look for a column of X that looks like a source rather than a feature; `audit_labels` does so by default.

        Returns
        -------
        HiddenSource or None
            None where no column clearly does, where the table is too large to look, and where rows have near twins in
            other folds.
        """
        if not self.tells_how_many:
            return None
        model = self.find_own_model("a column that looks like a source is tried")
        n_rows, n_columns = len(self.given), model.model_.encoder.n_features
        if n_rows * max(n_columns, len(self.classes) ** 2) > MOST_CELLS:
            return None
        return find_hidden_source(self.judged_rows, model, self.suspects(), self.noise_rate[0])

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
        encoder = self._find_encoder()
        labels = encoder.feature_labels
        column = labels.index(time) if isinstance(time, str) and time in labels else None
        if isinstance(time, str) and column is None:
            raise ValueError(f"time must be a column of X or one value per row, got {time!r}")
        times = read_times(time, len(self.given)) if column is None else self.numbers[:, column]
        return find_issues_in(
            self.numbers,
            encoder,
            self.label_indices,
            self.classes,
            posterior=self.clean,
            weight=self.weight,
            time=times,
            time_column=column,
            item=self.item,
            are_alone=self.groups is None,
        )

    @property
    def judged_rows(self) -> JudgedRows:
        """The rows that were judged, with what is known of their labels; a column like a source is left out for it."""
        hidden = self.hidden_source
        expected = Expectation.under_one_matrix(self.clean, self.noise.matrix)
        if self.by_source is not None:
            clean = self.by_source.clean(self.posterior)
            expected = Expectation(clean, self.by_source.matrices_by_index, self.source_indices)
        judged = JudgedRows(
            table=self.numbers,
            posterior=self.posterior,
            labels=self._labels_as_given,
            weight=self.weight,
            noise=self.noise,
            expected=expected,
            without={} if hidden is None else {hidden.position: (hidden.posterior, hidden.noise)},
            rows_per_case=self.rows_per_case,
        )
        return judged if self.judged is None else judged.take(np.flatnonzero(self.judged))

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
        return frames.list_rows(self)

    def items_to_frame(self) -> Any:
        """Return the items as a pandas DataFrame, with the columns that cleanlab gives for several annotators.

        Returns
        -------
        pandas.DataFrame
            A line per item: `consensus_label` is its truth, `consensus_quality_score` the probability of that,
            `annotator_agreement` the share of its labels that say so, `num_annotations` how many it has.
        """
        return frames.list_items(self)

    def sources_to_frame(self) -> Any:
        """Return the sources as a pandas DataFrame, with the columns that cleanlab gives for annotators.

        Returns
        -------
        pandas.DataFrame
            A line per source, the worst first: `annotator_quality` is the share of its labels that are right, with
            `low` and `high`, `agreement_with_consensus` the share that names the truth of its item, and `worst_class`
            the true class that it mislabels most often.
        """
        return frames.list_sources(self)

    @property
    def fitted(self) -> FittedModel:
        """The trees and all that was fitted, which the classifier `model` holds."""
        fitted: FittedModel = self.find_own_model("what was fitted comes").model_
        return fitted

    def find_own_model(self, what: str) -> UntwistClassifier:
        """Return the classifier whose folds judged the labels; a ValueError where posteriors of another model did.

        Parameters
        ----------
        what : str
            What needs it, with its verb, as in "explanations come".

        Returns
        -------
        UntwistClassifier
        """
        if self.model is None:
            raise ValueError(
                f"{what} from a model of ours, and these labels were judged by {self.judge}: audit_labels(X, y), "
                "without pred_probs and model, fits one"
            )
        return self.model

    @cached_property
    def numbers(self) -> Array:
        """The rows as float64 numbers: a category is its index, NaN a missing value."""
        return self._find_encoder().by_index.encode_dense(self.X, self.model)

    def _find_encoder(self) -> TableEncoder:
        if self.encoder is None:
            raise ValueError(
                "X must be a table to look into its columns: give audit_labels one beside y and pred_probs"
            )
        return self.encoder

    @cached_property
    def label_indices(self) -> NDArray[np.intp]:
        """The index of each row's label among the classes."""
        return np.searchsorted(self.classes, self.given)

    @property
    def _labels_as_given(self) -> NDArray[np.intp]:
        """The index of each row's label before any review, as the posterior has it."""
        return self.label_indices if self.before_review is None else np.searchsorted(self.classes, self.before_review)

    @cached_property
    def source_indices(self) -> NDArray[np.intp]:
        """The index of each row's source among `by_source.names`; -1 where it is not known, or none were given."""
        if self.by_source is None or self.source is None:
            return np.full(len(self.given), -1, dtype=np.intp)
        return look_up_sources(self.source, self.by_source.names, len(self.given))

    @cached_property
    def item_indices(self) -> NDArray[np.intp]:
        """The number of each row's item, in the order of their names; without items every row is one."""
        if self.item is None:
            return np.arange(len(self.given))
        return np.unique(self.item, return_inverse=True)[1]

    @cached_property
    def clean(self) -> Array:
        """The clean posterior of each class by the features alone, out of fold."""
        return self.noise.clean(self.posterior)

    @cached_property
    def truth(self) -> Array:
        """The probability of each class to be the truth, row by row, by the features and all labels of the item."""
        if self.by_source is not None:
            by_item = self.by_source.find_truth(
                self.posterior, self.label_indices, self.source_indices, self.item_indices
            )
            return by_item[self.item_indices]
        if len(self.classes) > 2:
            truth = self.noise.find_truth(self.posterior, self.label_indices)
            if self.reviewed is not None:
                decided = np.searchsorted(self.classes, self.predicted[self.reviewed])
                truth[self.reviewed] = np.eye(len(self.classes))[decided]
            return truth
        # Of two classes a wrong label says which class is the true one.
        return np.abs(np.eye(2)[self.label_indices] - self.wrong[:, None])
