"""Every label with the probability that it is wrong.

No row is judged by a model that has seen it: the posteriors are out of fold. How much doubt a disagreement deserves
follows from the noise that the data show as a whole (`untwist.noise`): where there is no evidence of noise there are
no suspects, however hard the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from untwist.arguments import Array, check_count, check_share
from untwist.audit.confusions import Confusion, find_confusions
from untwist.audit.reasons import Explanation, ReasonFinder
from untwist.audit.slices import FALSE_DISCOVERY_RATE, JudgedRows, Slice, find_slices
from untwist.audit.training import find_label_posterior
from untwist.classifier import PILBoostClassifier
from untwist.data.tables import compute_fingerprint
from untwist.model import FittedModel
from untwist.noise.estimate import CONFIDENCE
from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.untwisting import Untwisting
from untwist.optional import import_optional

__all__ = ["LabelAudit", "audit_labels", "find_unseen_share"]

#: Labels whose share of wrong ones is printed, at most: the noisiest.
MOST_LABELS = 12

#: Pairs of a class and a label that are printed, at most.
MOST_CONFUSIONS = 4


@dataclass(frozen=True, eq=False)
class LabelAudit:
    """What `audit_labels` found; all arrays have one entry per row.

    Parameters
    ----------
    classes : array
        The labels that there are.
    given, predicted : arrays
        The label of each row, and the one that the other rows speak for.
    posterior : array
        The twisted posterior of each class, out of fold.
    wrong : array
        The probability that the label is wrong.
    noise : Untwisting or MatrixUntwisting
        The rates, or of several classes the transition matrices, that fit; `noise.found` says whether there is evidence
        of noise at all, `noise.matrix` which class bears which label how often.
    noise_rate : tuple of float
        The share of wrong labels, with its 95 % interval.
    rate_by_label : dict
        The same among the rows of each given label.
    weight : array
        The sample weights of the fit.
    model : PILBoostClassifier
        The classifier whose folds judged the labels; `fitted` is the `FittedModel` that it holds.
    X : table
        The rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> audit = audit_labels(X, y)
    >>> print(audit)
    569 labels: no evidence of label noise (rates from 0% to 1% would fit); suspects(budget=...) are the rows to look at
    first
    >>> audit.suspects(budget=3)
    array([..., ..., ...])
    """

    classes: NDArray[Any]
    given: NDArray[Any]
    predicted: NDArray[Any]
    posterior: Array
    wrong: Array
    noise: Untwisting | MatrixUntwisting
    noise_rate: tuple[float, float, float]
    rate_by_label: dict[Any, tuple[float, float, float]]
    weight: Array
    model: PILBoostClassifier
    X: Any

    def __str__(self) -> str:
        n_rows = len(self.given)
        if not self.noise.found:
            return f"{n_rows} labels: {self.describe_noise()}; suspects(budget=...) are the rows to look at first"
        rate, low, high = self.noise_rate
        wrong = f"{rate:.1%} of them wrong ({low:.1%} to {high:.1%})"
        suspects = self.suspects()
        doubted = f"{len(suspects)} are more likely wrong than right"
        if isinstance(self.noise, MatrixUntwisting):
            doubted = f"{len(suspects)} are suspects, about {self.expect_wrong(suspects):,.0f} of them truly wrong"
        lines = [f"{n_rows} labels, {wrong}; {doubted}"]
        noisiest = sorted(self.rate_by_label, key=lambda label: -self.rate_by_label[label][0])[:MOST_LABELS]
        for label in (one for one in self.rate_by_label if one in noisiest):
            rate, low, high = self.rate_by_label[label]
            lines.append(f"  of those that say {label}: {rate:.1%} ({low:.1%} to {high:.1%})")
        if n_others := len(self.classes) - len(noisiest):
            lines.append(f"  ... and less of the {n_others} other labels")
        standing_out = [one for one in self.confusions() if one.stands_out]
        return "\n".join(lines + [f"  {one}" for one in standing_out[:MOST_CONFUSIONS]])

    # ---- how noisy ----

    def describe_noise(self) -> str:
        """Say in words how noisy the labels are, with the names of the classes.

        Returns
        -------
        str
            Where no noise was found, what is not excluded.
        """
        return self.noise.describe(self.classes)

    @property
    def highest_share(self) -> float:
        """The largest share of wrong labels that is not excluded, by noise of any kind that is looked for.

        A few wrong labels are never excluded: see `find_unseen_share`.
        """
        unseen = find_unseen_share(int(np.count_nonzero(self.weight)))
        uneven = self.noise.uneven_limit if isinstance(self.noise, MatrixUntwisting) and not self.noise.found else 0.0
        return max(self.noise_rate[2], uneven, unseen)

    def confusions(self) -> list[Confusion]:
        """Return which class bears which other label how often: "billing is often labelled bug".

        Returns
        -------
        list of Confusion
            The pair with most rows first; pairs of which less than half a row is expected are left out.
        """
        return find_confusions(
            self.noise, self.classes, self.posterior, self.label_indices, self.wrong, self.weight > 0
        )

    def list_class_shares(self) -> list[tuple[float, float, float]]:
        """Return the share of each true class that bears another label, with its 95 % interval.

        Returns
        -------
        list of tuples
            The share and its limits for each of `classes`.
        """
        noise = self.noise
        if isinstance(noise, Untwisting):
            return [(noise.rate_neg, *noise.interval_neg), (noise.rate_pos, *noise.interval_pos)]
        n_rows = [np.count_nonzero((self.predicted == name) & (self.weight > 0)) for name in self.classes]
        return [
            (share, low, high if noise.is_given else max(high, find_unseen_share(int(n))))
            for share, (low, high), n in zip(
                noise.class_shares.tolist(), noise.class_intervals.tolist(), n_rows, strict=True
            )
        ]

    def expect_wrong(self, rows: ArrayLike) -> float:
        """Return how many of some labels are expected to be wrong: what a review of them should find.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans.

        Returns
        -------
        float
        """
        return float(self.wrong[self.find_positions(rows)].sum())

    # ---- which rows to look at ----

    @property
    def ranking(self) -> NDArray[np.intp]:
        """All rows, the most suspect first; of equals those whose label the posterior speaks against more."""
        rows = np.arange(len(self.given))
        posterior_of_label = self.posterior[rows, self.label_indices]
        return np.lexsort((rows, posterior_of_label, -self.wrong))

    def suspects(self, *, false_discovery_rate: float | None = None, budget: int | None = None) -> NDArray[np.intp]:
        """Return the rows to review, the most suspect first, by position (as for `iloc`).

        Without either argument they are, of two classes, those that are more likely wrong than right; of several, the
        set with the highest expected F1 (`MatrixUntwisting.choose_suspects`). Without evidence of noise there are none
        but those of a budget.

        Parameters
        ----------
        false_discovery_rate : float or None
            As many rows as keep the expected share of right labels among them below this.
        budget : int or None
            This many rows, whatever they are worth.

        Returns
        -------
        array of int
        """
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
        if false_discovery_rate is None and isinstance(self.noise, MatrixUntwisting):
            return order[self.noise.choose_suspects(wrong)]
        if false_discovery_rate is None:
            return order[wrong > 0.5]
        # This share rises from row to row, as the most suspect rows come first.
        share_right = np.cumsum(1.0 - wrong) / np.arange(1, len(wrong) + 1)
        return order[share_right <= false_discovery_rate]

    def corrected(self, rows: ArrayLike | None = None) -> NDArray[Any]:
        """Return a copy of the labels in which some rows have what the other rows speak for.

        Parameters
        ----------
        rows : array-like or None
            Indices or Booleans, by default those of `suspects()` that are more likely wrong than right.

        Returns
        -------
        array
        """
        chosen = self.find_likely_wrong(self.suspects()) if rows is None else self.find_positions(rows)
        labels = self.given.copy()
        labels[chosen] = self.predicted[chosen]
        return labels

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
        like the predicted one. Similar rows share most leaves of the trees.

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

    def explanations(self, rows: ArrayLike, n_reasons: int = 3) -> list[Explanation]:
        """Return `explain` of many rows at once, which takes much less time than one after the other.

        Parameters
        ----------
        rows : array-like
            Indices or Booleans.
        n_reasons : int, default 3
            Columns to name for each, at most.

        Returns
        -------
        list of Explanation
        """
        chosen = self.find_positions(rows)
        n_reasons = check_count("n_reasons", n_reasons, low=0)
        finder = ReasonFinder(self.fitted, self.numbers, self.label_indices, self.model.n_jobs)
        usual = {label: finder.find_usual(label) for label in np.unique(self.label_indices[chosen]).tolist()}
        predicted = np.searchsorted(self.classes, self.predicted)
        found = []
        for row, similar in zip(chosen.tolist(), finder.find_similar(chosen), strict=True):
            reasons = finder.find_reasons(row, usual[int(self.label_indices[row])], int(predicted[row]))
            found.append(
                Explanation(
                    row=row,
                    given=self.given[row],
                    predicted=self.predicted[row],
                    wrong=float(self.wrong[row]),
                    reasons=tuple(reasons[:n_reasons]),
                    n_disagreeing=int(np.count_nonzero(self.given[similar] != self.given[row])),
                    n_similar=len(similar),
                    n_predicted=self._count_predicted(row, similar),
                )
            )
        return found

    def _count_predicted(self, row: int, similar: NDArray[np.intp]) -> int:
        """Count the similar rows that bear the label which is predicted, if it is another one."""
        if self.predicted[row] == self.given[row]:
            return 0
        return int(np.count_nonzero(self.given[similar] == self.predicted[row]))

    def slices(
        self, columns: ArrayLike | None = None, *, false_discovery_rate: float = FALSE_DISCOVERY_RATE
    ) -> list[Slice]:
        """Return where wrong labels concentrate: parts whose labels are wrong more often than those of all rows.

        A part is a category, a missing value, or a quarter of a column of numbers; the clearest comes first. Rows that
        are only harder than others, or of some class more often, make no slice: labels must contradict clear rows.

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
        judged = JudgedRows(
            table=self.numbers,
            posterior=self.posterior,
            labels=self.label_indices,
            weight=self.weight,
            noise=self.noise,
        )
        chosen = range(self.numbers.shape[1]) if columns is None else np.asarray(columns, dtype=np.intp).tolist()
        return find_slices(judged, self.fitted.encoder, chosen, rate)

    # ---- other forms ----

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns of cleanlab.

        Returns
        -------
        pandas.DataFrame
            `label_quality` is the probability of a right label.
        """
        pandas = import_optional("pandas", "to_frame", extra="frames")
        is_suspect = np.zeros(len(self.given), dtype=np.bool_)
        is_suspect[self.suspects()] = True
        return pandas.DataFrame(
            {
                "is_label_issue": is_suspect,
                "label_quality": 1.0 - self.wrong,
                "given_label": self.given,
                "predicted_label": self.predicted,
            },
            index=getattr(self.X, "index", None),
        )

    @property
    def fitted(self) -> FittedModel:
        """The trees and all that was fitted, which the classifier `model` holds."""
        return self.model.model_

    @cached_property
    def numbers(self) -> Array:
        """The rows as float64 numbers: a category is its index, NaN a missing value."""
        return self.fitted.encoder.encode_dense(self.X, self.model)

    @cached_property
    def label_indices(self) -> NDArray[np.intp]:
        """The index of each row's label among the classes."""
        return np.searchsorted(self.classes, self.given)


def audit_labels(
    X: Any,
    y: Any,
    model: PILBoostClassifier | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> LabelAudit:
    """Judge every label of (X, y) by models that have not seen it.

    Parameters
    ----------
    X, y, sample_weight
        As `PILBoostClassifier.fit` takes them.
    model : PILBoostClassifier or None
        A classifier that chose by folds (as `PILBoostClassifier()` does) and was fitted to the very same rows, so that
        nothing has to be fitted again. None: one is fitted.
    n_jobs, random_state
        Those of the classifier that is fitted.

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
        model = PILBoostClassifier(n_jobs=n_jobs, random_state=random_state).fit(X, y, sample_weight=sample_weight)
    elif sample_weight is not None:
        raise ValueError("sample_weight belongs to the fit of the model that is given: leave it out")
    posterior = getattr(model, "oof_proba_", None)
    if posterior is None:
        raise ValueError(
            "model must be a PILBoostClassifier that chose by folds: fitted, with alpha, n_estimators or max_depth "
            '"auto", and without X_val'
        )
    fitted = model.model_
    labels = _check_rows(model, X, y)
    if isinstance(fitted.alpha, float) and fitted.alpha < 0:
        raise ValueError(f"model must have a positive alpha, got {fitted.alpha}: it takes most labels for wrong")
    assert fitted.out_of_fold is not None  # The posterior comes from there.
    weight = fitted.out_of_fold.row_weights()
    noise = fitted.noise if isinstance(fitted.noise, (Untwisting, MatrixUntwisting)) else fitted.estimate_noise()
    posterior = find_label_posterior(fitted, posterior)
    if isinstance(noise, Untwisting):
        twisted = logit(posterior[:, 1])  # Of two classes the noise takes log-odds.
        predicted = (noise.clean_log_odds(twisted) > 0).astype(np.intp)
    else:
        twisted = posterior
        predicted = noise.clean(posterior).argmax(axis=1)
    return LabelAudit(
        classes=fitted.classes,
        given=fitted.classes[labels],
        predicted=fitted.classes[predicted],
        posterior=posterior,
        wrong=noise.probability_wrong(twisted, labels),
        noise=noise,
        noise_rate=_bound_share_wrong(noise, twisted, labels, weight),
        rate_by_label={
            label: _bound_share_wrong(noise, twisted, labels, np.where(labels == index, weight, 0.0))
            for index, label in enumerate(fitted.classes.tolist())
        },
        weight=weight,
        model=model,
        X=X,
    )


def find_unseen_share(n_rows: int) -> float:
    """Return the share of wrong labels that would show in none of so many rows in one case of twenty.

    Parameters
    ----------
    n_rows : int
        The number of rows.

    Returns
    -------
    float
        About three by the number of rows: no estimate from so many rows excludes less.
    """
    return -float(np.expm1(np.log(1.0 - CONFIDENCE) / max(1, n_rows)))


def _bound_share_wrong(
    noise: Untwisting | MatrixUntwisting, twisted: Array, labels: NDArray[np.uint32], weight: Array
) -> tuple[float, float, float]:
    """Return the share of wrong labels with its interval, which ends no lower than rows can tell."""
    share, low, high = noise.share_wrong(twisted, labels, weight)
    if noise.is_given:
        return share, low, high  # The noise was given: nothing has to be told by rows.
    return share, low, max(high, find_unseen_share(int(np.count_nonzero(weight))))


def _check_rows(model: PILBoostClassifier, X: Any, y: Any) -> NDArray[np.uint32]:
    """Return the labels as indices of classes; a ValueError where the rows are not those of the fit."""
    fitted = model.model_
    rows = fitted.encoder.encode(X, model)
    labels = fitted.encode_labels("y", y)
    assert fitted.out_of_fold is not None
    if rows.shape[0] != len(labels) or compute_fingerprint(rows, labels) != fitted.out_of_fold.fingerprint:
        raise ValueError("X and y must be the rows that the model was fitted to, in the same order")
    return labels
