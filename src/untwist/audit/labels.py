"""Which labels are wrong? Every row with the probability that its label is, and reasons a person can check.

    audit = audit_labels(X, y)
    print(audit)                        # how noisy the labels are, class by class
    audit.suspects()                    # rows that are more likely wrong than right, the worst first
    audit.suspects(budget=50)           # the 50 rows to look at first
    print(audit.explain(audit.suspects()[0]))
    audit.to_frame()                    # the columns of cleanlab

No row is judged by a model that has seen it: the posteriors are out of fold. How much doubt a disagreement deserves
follows from the noise that the data show as a whole (`untwist.noise`): where there is no evidence of noise there are
no suspects, however hard the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit, ndtri

from untwist.arguments import Array, check_count, check_share
from untwist.classifier import PILBoostClassifier
from untwist.data.tables import fingerprint
from untwist.noise import Untwisting, estimate_noise

__all__ = ["Explanation", "LabelAudit", "Reason", "Slice", "audit_labels"]

N_SIMILAR, MOST_LOOKED_AT = 20, 10_000  # rows similar to a suspect, and among how many they are looked for
LEAST_IN_SLICE = 100  # rows: fewer tell little of their noise


@dataclass(frozen=True)
class Reason:
    """A column that speaks against a label: its value, what is usual for that label, and by how many log-odds."""

    column: Any
    value: Any
    usual: Any
    effect: float

    def __str__(self) -> str:
        return f"{self.column} is {_shown(self.value)}, usually {_shown(self.usual)} ({self.effect:+.2f})"


@dataclass(frozen=True)
class Explanation:
    """Why a label is doubted. Of the most similar rows, `n_similar`, so many bear another label."""

    row: int
    given: Any
    predicted: Any
    wrong: float
    reasons: tuple[Reason, ...]
    n_disagreeing: int
    n_similar: int

    def __str__(self) -> str:
        lines = [
            f"row {self.row}: labelled {self.given}, looks like {self.predicted}, {self.wrong:.0%} likely wrong",
            f"  {self.n_disagreeing} of the {self.n_similar} most similar rows bear another label",
        ]
        return "\n".join(lines + [f"  {reason}" for reason in self.reasons])


@dataclass(frozen=True)
class Slice:
    """A part of the data in which more labels are wrong than elsewhere: `column` is `where`."""

    column: Any
    where: str
    rows: int
    share_wrong: float

    def __str__(self) -> str:
        return f"{self.share_wrong:.1%} of the {self.rows} rows where {self.column} is {self.where}"


@dataclass(frozen=True)
class LabelAudit:
    """What `audit_labels` found; all arrays have one entry per row.

    - `wrong`: the probability that the label is wrong;
    - `given`, `predicted`: the label, and the one that the other rows speak for;
    - `posterior`: the twisted posterior of each class, out of fold;
    - `noise`: the rates that fit, `noise.found` whether there is evidence of noise at all;
    - `noise_rate`: the share of wrong labels, with its 95 % interval;
    - `rate_by_label`: the same among the rows of each given label;
    - `weight`: the sample weights of the fit.
    """

    classes: NDArray[Any]
    given: NDArray[Any]
    predicted: NDArray[Any]
    posterior: Array
    wrong: Array
    noise: Untwisting
    noise_rate: tuple[float, float, float]
    rate_by_label: dict[Any, tuple[float, float, float]]
    weight: Array
    model: PILBoostClassifier
    X: Any

    def __str__(self) -> str:
        if not self.noise.found:
            return f"{len(self.given)} labels: {self.noise}; suspects(budget=...) are the rows to look at first"
        rate, low, high = self.noise_rate
        many = f"{rate:.1%} of them wrong ({low:.1%} to {high:.1%})"
        lines = [f"{len(self.given)} labels, {many}; {len(self.suspects())} are more likely wrong than right"]
        for label, (rate, low, high) in self.rate_by_label.items():
            lines.append(f"  of those that say {label}: {rate:.1%} ({low:.1%} to {high:.1%})")
        return "\n".join(lines)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """All rows, the most suspect first; of equals those whose label the posterior speaks against more."""
        rows = np.arange(len(self.given))
        own = self.posterior[rows, np.searchsorted(self.classes, self.given)]
        return np.lexsort((rows, own, -self.wrong))

    def suspects(self, *, false_discovery_rate: float | None = None, budget: int | None = None) -> NDArray[np.intp]:
        """The rows to review, the most suspect first, by position (as for `iloc`).

        Those that are more likely wrong than right; or as many as keep the expected share of right labels among them
        below `false_discovery_rate`; or the first `budget`, whatever they are worth. Without evidence of noise there
        are none but those of a budget.
        """
        if false_discovery_rate is not None and budget is not None:
            raise ValueError("false_discovery_rate and budget exclude each other: give one of them")
        order = self.ranking
        if budget is not None:
            return order[: check_count("budget", budget, low=0)]
        if not self.noise.found:
            return order[:0]
        wrong = self.wrong[order]
        if false_discovery_rate is None:
            return order[wrong > 0.5]
        right = np.cumsum(1.0 - wrong) / np.arange(1, len(wrong) + 1)  # rises, as the worst come first
        return order[right <= check_share("false_discovery_rate", false_discovery_rate)]

    def corrected(self, rows: ArrayLike | None = None) -> NDArray[Any]:
        """A copy of the labels in which `rows` have what the other rows speak for.

        `rows` are indices or Booleans, by default `suspects()`.
        """
        chosen = self.suspects() if rows is None else self._positions(rows)
        labels = self.given.copy()
        labels[chosen] = self.predicted[chosen]
        return labels

    def _positions(self, rows: ArrayLike) -> NDArray[np.intp]:
        """Rows that are given as indices or Booleans, as indices."""
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_ and chosen.shape != self.given.shape:
            raise ValueError(f"rows must be {len(self.given)} Booleans or indices, got shape {chosen.shape}")
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
        if places.size and not 0 <= places.min() <= places.max() < len(self.given):
            raise ValueError(
                f"rows must be indices from 0 to {len(self.given) - 1}, got {places.min()} to {places.max()}"
            )
        return places

    def explain(self, row: int, n_reasons: int = 3) -> Explanation:
        """Why the label of a row is doubted.

        A column speaks against a label if the row would look more like that label with what is usual for it there: the
        median, or the most frequent category, of the rows that bear it. Similar rows share most leaves of the trees.
        """
        return self.explanations([check_count("row", row, low=0, high=len(self.given) - 1)], n_reasons)[0]

    def explanations(self, rows: ArrayLike, n_reasons: int = 3) -> list[Explanation]:
        """`explain` for many rows at once, which takes much less time than one after the other."""
        chosen, n_reasons = self._positions(rows), check_count("n_reasons", n_reasons, low=0)
        table, usual = self._numbers, {}
        for label in np.unique(np.searchsorted(self.classes, self.given[chosen])):
            bears = np.flatnonzero(self.given == self.classes[label])
            usual[label] = _usual(table[bears], self.model._schema.categories)
        alike = chain.from_iterable(self._similar(chosen[i : i + 250]) for i in range(0, len(chosen), 250))
        found = []
        for row, similar in zip(chosen.tolist(), alike, strict=True):
            given = self.given[row]
            reasons = self._reasons(row, usual[np.searchsorted(self.classes, given)])[:n_reasons]
            disagreeing = int(np.count_nonzero(self.given[similar] != given))
            wrong = float(self.wrong[row])
            found.append(Explanation(row, given, self.predicted[row], wrong, tuple(reasons), disagreeing, len(similar)))
        return found

    def _reasons(self, row: int, usual: Array) -> list[Reason]:
        """The columns that speak against the label of a row, most of all first; `usual` is what is usual for it."""
        here = self._numbers[[row]]
        effects, as_it_is = np.zeros(here.shape[1]), self._scores(here, row)[0]
        for columns in np.array_split(self._split_on, max(1, here.shape[1] // 250)):  # a few at a time
            changed = np.repeat(here, len(columns), axis=0)
            changed[np.arange(len(columns)), columns] = usual[columns]
            if len(columns):
                effects[columns] = self._scores(changed, row) - as_it_is
        names = getattr(self.model, "feature_names_in_", range(here.shape[1]))
        return [
            Reason(names[j], self._value(j, here[0, j]), self._value(j, usual[j]), float(effects[j]))
            for j in np.argsort(-effects, kind="stable")
            if effects[j] > 0.005
        ]

    def slices(self, columns: ArrayLike | None = None) -> list[Slice]:
        """Where wrong labels concentrate: parts whose noise, estimated by itself, is clearly above that of all rows.

        A part is a category, a missing value, or a quarter of a column of numbers; the largest excess comes first. Two
        classes only. `columns` are the positions of those to look at, by default all.
        """
        if len(self.classes) > 2:
            raise ValueError("slices are for two classes")
        table, (overall, _, most) = self._numbers, self.noise_rate
        names = getattr(self.model, "feature_names_in_", range(table.shape[1]))
        posterior, labels = self.posterior[:, 1], (self.given == self.classes[1]).astype(np.intp)
        disagree = self.given != self.predicted
        looked_at = range(table.shape[1]) if columns is None else np.asarray(columns, dtype=np.intp).tolist()
        parts = [(j, where, part) for j in looked_at for where, part in self._parts(j, table[:, j])]
        doubt = ndtri(1.0 - 0.05 / max(1, len(parts)))  # of so many parts some look noisy by chance
        found = []
        for j, where, part in parts:
            rows = np.flatnonzero(part & (self.weight > 0))
            if not LEAST_IN_SLICE <= len(rows) < np.count_nonzero(self.weight):
                continue
            if disagree[rows].mean() <= disagree.mean():
                continue  # not worth a closer look
            weight = self.weight[rows]
            noise = estimate_noise(posterior[rows], labels[rows], sample_weight=weight)
            rate, low, high = noise.share_wrong(logit(posterior[rows]), labels[rows], weight)
            spread = (high - low) / 3.92  # the interval reaches 1.96 of it to either side
            if low > most and rate - doubt * spread > overall and (self.noise.found or noise.found):
                found.append((weight.sum() * (rate - overall), Slice(names[j], where, len(rows), rate)))
        return [one for _, one in sorted(found, key=lambda pair: -pair[0])]

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns of cleanlab; `label_quality` is the probability of a right label."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('to_frame needs pandas: pip install "untwist[frames]"') from error

        issue = np.zeros(len(self.given), dtype=np.bool_)
        issue[self.suspects()] = True
        return pd.DataFrame(
            {
                "is_label_issue": issue,
                "label_quality": 1.0 - self.wrong,
                "given_label": self.given,
                "predicted_label": self.predicted,
            },
            index=getattr(self.X, "index", None),
        )

    @cached_property
    def _numbers(self) -> Any:
        table = self.model._rows(self.X)
        return table.toarray() if sparse.issparse(table) else np.asarray(table, dtype=np.float64)

    @cached_property
    def _split_on(self) -> NDArray[np.intp]:
        """The columns that some tree splits on."""
        features = [one.forest.feature for one in self.model._ensembles if one.forest is not None]
        used = np.unique(np.concatenate(features)).astype(np.intp)
        return used[used >= 0]

    def _scores(self, table: Array, row: int) -> Array:
        """How much rows look like the label of `row`, in log-odds."""
        place = int(np.searchsorted(self.classes, self.given[row]))
        scores = self.model._oriented(self.model._scores(np.ascontiguousarray(table)))
        if scores.ndim == 1:
            return scores if place == 1 else -scores
        return np.asarray(scores[:, place] - np.delete(scores, place, axis=1).max(axis=1))

    def _similar(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """For each of the rows those that share most leaves with it, most of all first."""
        others = np.arange(len(self.given))
        if len(others) > MOST_LOOKED_AT:
            others = np.sort(np.random.default_rng(0).choice(others, MOST_LOOKED_AT, replace=False))
        table = self._numbers
        shared = np.zeros((len(rows), len(others)), dtype=np.int32)
        for one in self.model._ensembles:
            assert one.forest is not None  # folds are the compiled engine's
            own = one.forest.leaves(table[rows])
            for start in range(0, len(others), 1000):
                leaves = one.forest.leaves(table[others[start : start + 1000]])
                for place, leaf in enumerate(own):
                    shared[place, start : start + 1000] += np.count_nonzero(leaves == leaf, axis=1)
        shared[rows[:, None] == others] = -1  # no row is similar to itself
        most = min(N_SIMILAR, len(self.given) - 1)
        return np.stack([others[np.argsort(-each, kind="stable")[:most]] for each in shared])

    def _value(self, column: int, number: float) -> Any:
        """A number of the encoded table as the user knows it."""
        if np.isnan(number):
            return None
        known = self.model._schema.categories.get(column)
        return float(number) if known is None else known[int(number)]

    def _parts(self, column: int, values: Array) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """The slices of a column: what they are called, and their rows."""
        missing = np.isnan(values)
        if missing.any():
            yield "missing", missing
        if column in self.model._schema.categories or len(np.unique(values[~missing])) <= 4:
            for level in np.unique(values[~missing]):
                yield _shown(self._value(column, level)), values == level
            return
        edges = np.unique(np.quantile(values[~missing], (0.25, 0.5, 0.75)))
        place = np.where(missing, -1, np.searchsorted(edges, values))
        for part in range(len(edges) + 1):
            low = "" if part == 0 else f"above {edges[part - 1]:g}"
            high = "" if part == len(edges) else f"at most {edges[part]:g}"
            yield " and ".join(filter(None, (low, high))), place == part


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

    `model`, if given, is a classifier that chose by folds (as `PILBoostClassifier()` does) and was fitted to the very
    same rows, so that nothing has to be fitted again.
    """
    if model is None:
        model = PILBoostClassifier(n_jobs=n_jobs, random_state=random_state).fit(X, y, sample_weight=sample_weight)
    elif sample_weight is not None:
        raise ValueError("sample_weight belongs to the fit of the model that is given: leave it out")
    elif not hasattr(model, "oof_proba_"):
        raise ValueError(
            "model must be a PILBoostClassifier that chose by folds: fitted, with alpha, n_estimators or max_depth "
            '"auto", and without X_val'
        )
    numbers, labels = model._rows(X), model._class_numbers("y", y)
    if numbers.shape[0] != len(labels) or fingerprint(numbers, labels) != model._trained_on:
        raise ValueError("X and y must be the rows that the model was fitted to, in the same order")
    if isinstance(model.alpha_, float) and model.alpha_ < 0:
        raise ValueError(f"model must have a positive alpha, got {model.alpha_}: it takes most labels for wrong")
    if len(model.classes_) > 2 and model.class_weight is not None:
        raise ValueError("class_weight of the model must be None to audit more than two classes")
    noise = model.noise_ if isinstance(model.noise_, Untwisting) else model._noise()
    posterior = model.oof_proba_
    weight = np.bincount(model._unseen.rows, model._unseen.weight).astype(np.float64)
    if len(model.classes_) == 2:
        posterior = _shifted(posterior, -model._shift)  # the labels as they are
        odds, own = logit(posterior[:, 1]), labels
        predicted = (noise.clean_log_odds(odds) > 0).astype(np.intp)
    else:  # whether a row bears its label, of so many
        odds, own = logit(posterior[np.arange(len(labels)), labels]), np.ones(len(labels), dtype=np.uint32)
        predicted = posterior.argmax(axis=1)
    return LabelAudit(
        classes=model.classes_,
        given=model.classes_[labels],
        predicted=model.classes_[predicted],
        posterior=posterior,
        wrong=noise.probability_wrong(odds, own),
        noise=noise,
        noise_rate=noise.share_wrong(odds, own, weight),
        rate_by_label={
            label: noise.share_wrong(odds, own, np.where(labels == number, weight, 0.0))
            for number, label in enumerate(model.classes_.tolist())
        },
        weight=weight,
        model=model,
        X=X,
    )


def _shifted(posterior: Array, log_odds: float) -> Array:
    """Posteriors of two classes with so much added to their log-odds."""
    positive = expit(logit(posterior[:, 1]) + log_odds)
    return np.column_stack([1.0 - positive, positive])


def _usual(table: Array, categories: Any) -> Array:
    """The median of every column, the most frequent value of one with categories; NaN where all is missing."""
    usual = np.full(table.shape[1], np.nan)
    for j, values in enumerate(table.T):
        known = values[~np.isnan(values)]
        if j in categories and known.size:
            levels, times = np.unique(known, return_counts=True)
            usual[j] = levels[times.argmax()]
        elif known.size:
            usual[j] = np.median(known)
    return usual


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
