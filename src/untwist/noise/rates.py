"""How many labels are wrong, read off the twisted data alone, and what undoes it.

Noise is described by the share of each true class that bears the other label: `rate_neg` of the negatives, `rate_pos`
of the positives. The posterior of the twisted labels then lies between rate_neg and 1 - rate_pos, however clear the
features: it has plateaus. `estimate_noise` weighs all rates by what out-of-fold posteriors say of them: rows beyond a
plateau must not be more certain than the plateau is, and clean labels should follow from the features. On hard but
clean data the extremes speak against noise; where they do not reach far enough to tell, the answer says so.

`menon` is the paper's estimator. `original_learned` and `taylor` are its other two ways to alpha; they need clean
labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit
from scipy.stats import beta
from sklearn.tree import DecisionTreeClassifier

from untwist.arguments import Array, count, fraction, numbers, probabilities
from untwist.theory.twists import alpha_star

__all__ = ["MenonEstimate", "NoiseEstimate", "Untwisting", "estimate_noise", "menon", "original_learned", "taylor"]

CONFIDENCE = 0.95
ENOUGH = 2.0  # nats of log-likelihood that noise must explain to count as found: about the usual 5 %
EVEN_ODDS = 0.9  # how likely, beforehand, both classes are equally noisy
UNEXPLAINED = 0.15  # the share of the variance of clean labels that features leave unexplained, as expected beforehand
HIGHEST, STEP, FINE_STEP = 0.48, 0.04, 0.01  # the rates that are considered
N_BINS = 64
SCALE_SPREAD, OFFSET_SPREAD = 0.2, 1.0  # of what calibrates log-odds, around a scale of 1 and an offset of 0
LEAST_SCALE = 0.05
MOST_WEIGHT = 1e7  # more rows than that would say nothing new
LEAST = 1e-4  # a posterior nearer to 0 or 1 counts as so near
REACH = 20.0  # log-odds up to which functions of them are tabulated
TABLE = np.linspace(-REACH, REACH, 4097)
SLOPES = np.geomspace(0.35, 3.5, 25)
SLOPE_SPREAD = 0.5  # of the logarithm of the slope around that of a calibrated posterior, beforehand
CLEAREST = 0.005  # a clean posterior is not taken to be nearer to 0 or 1 than this, before the slope,
RAREST = 0.05  # or than this share of the rarer class, whichever is less
LEAK = 1e-3  # beyond that a twisted posterior that is higher still means a little


@dataclass(frozen=True)
class NoiseEstimate:
    """The share of each true class that bears the other label: the likeliest, 95 % intervals, whether noise shows."""

    rate_neg: float
    rate_pos: float
    interval_neg: tuple[float, float]
    interval_pos: tuple[float, float]
    found: bool

    def __str__(self) -> str:
        if not self.found:
            low, high = min(self.interval_neg[0], self.interval_pos[0]), max(self.interval_neg[1], self.interval_pos[1])
            what = "no evidence of label noise" if high < 0.05 else "label noise cannot be told from hard data here"
            return f"{what} (rates from {low:.0%} to {high:.0%} would fit)"
        parts = [
            f"{rate:.1%} ({low:.1%} to {high:.1%}) of the {name}"
            for name, rate, (low, high) in (
                ("negatives", self.rate_neg, self.interval_neg),
                ("positives", self.rate_pos, self.interval_pos),
            )
        ]
        return f"wrong labels{self._by}: {parts[0]}, {parts[1]}"

    @property
    def _by(self) -> str:
        return ""


# ---- from out-of-fold posteriors ----


@dataclass(frozen=True, eq=False)
class Untwisting(NoiseEstimate):
    """All rates that fit the twisted labels, each with its weight and the slope of its clean posterior.

    Under a pair of rates the clean posterior is expit(slope * u), u the log-odds of
    (twisted - rate_neg) / (1 - rate_neg - rate_pos); a slope of 1 takes the twisted posterior at its word. Everything
    here is the mean over the pairs. Log-odds are calibrated first: times `scale`, plus `offset`. `evidence` is the
    log-likelihood that noise explains, in nats (NaN if the rates were given).
    """

    weights: Array
    rates_neg: Array
    rates_pos: Array
    slopes: Array
    evidence: float
    clearest: float
    scale: float = 1.0
    offset: float = 0.0
    n_classes: int = 2

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without the tables

    @property
    def _by(self) -> str:
        return " (as given)" if math.isnan(self.evidence) else ""

    def __str__(self) -> str:
        if self.n_classes == 2 or not self.found:
            return super().__str__()
        low, high = self.interval_pos
        return f"wrong labels: {self.rate_pos:.1%} ({low:.1%} to {high:.1%}) of every class"

    def clean(self, log_odds: ArrayLike) -> Array:
        """The clean posterior where the twisted labels have these log-odds: alpha*(x) point by point."""
        return np.asarray(expit(self.clean_log_odds(log_odds)))

    def clean_log_odds(self, log_odds: ArrayLike) -> Array:
        """The log-odds of `clean`, rising, from a table with a step of 0.01 that ends at +-20."""
        z = self.scale * np.asarray(log_odds, dtype=np.float64) + self.offset
        return np.asarray(np.interp(z, TABLE, self._clean_table) + (z - np.clip(z, -REACH, REACH)))

    def wrong(self, log_odds: ArrayLike, y: ArrayLike) -> Array:
        """The probability that the label y, 0 or 1, is wrong where the twisted labels have these log-odds."""
        z = self.scale * np.asarray(log_odds, dtype=np.float64) + self.offset
        negative, positive = (np.interp(z, TABLE, self.weights @ each) for each in self._wrong_tables)
        return np.where(np.asarray(y) == 1, positive, negative)

    def share_wrong(self, log_odds: ArrayLike, y: ArrayLike, sample_weight: ArrayLike) -> tuple[float, float, float]:
        """The mean of `wrong` over rows, and its 95 % interval over the rates that fit."""
        z, positive = self.scale * np.asarray(log_odds, dtype=np.float64) + self.offset, np.asarray(y) == 1
        place = np.clip(np.rint((z + REACH) / (TABLE[1] - TABLE[0])), 0, len(TABLE) - 1).astype(np.intp)
        weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), z.shape)
        rows = [np.bincount(place[one], weight[one], len(TABLE)) for one in (~positive, positive)]
        total = max(float(weight.sum()), np.finfo(float).tiny)
        shares = sum(table @ own for table, own in zip(self._wrong_tables, rows, strict=True)) / total
        return float(self.weights @ shares), *_interval(np.asarray(shares), self.weights)

    @cached_property
    def _clean_table(self) -> Array:
        odds, weight = self._odds(), np.log(self.weights)[:, None]
        true, false = (np.logaddexp.reduce(weight + log_expit(each), axis=0) for each in (odds, -odds))
        return np.asarray(true - false)

    @cached_property
    def _wrong_tables(self) -> tuple[Array, Array]:
        """The probability of a negative and of a positive label to be wrong, for each pair of rates."""
        rate_neg, rate_pos = self.rates_neg[:, None], self.rates_pos[:, None]
        clean = expit(self._odds())
        twisted = np.clip(rate_neg + (1.0 - rate_neg - rate_pos) * clean, 1e-15, 1.0 - 1e-15)
        return rate_pos * clean / (1.0 - twisted), rate_neg * (1.0 - clean) / twisted

    def _odds(self) -> Array:
        """The clean log-odds over the table, for each pair of rates."""
        return self.slopes[:, None] * _untwisted(TABLE, np.stack([self.rates_neg, self.rates_pos]), self.clearest)

    @classmethod
    def by(cls, rates: tuple[float, float]) -> Untwisting:
        """By rates that are known, of a posterior that is taken at its word."""
        return cls._of(_pair(rates), np.ones(1), np.ones(1), math.nan, True, clearest=1e-9)

    @classmethod
    def _of(
        cls,
        grid: Array,
        weights: Array,
        slopes: Array,
        evidence: float,
        found: bool,
        clearest: float,
        scale: float = 1.0,
        offset: float = 0.0,
        n_classes: int = 2,
    ) -> Untwisting:
        kept = weights > 1e-6
        weights, grid, slopes = weights[kept] / weights[kept].sum(), grid[:, kept], slopes[kept]
        likeliest = int(np.argmax(weights))
        return cls(
            rate_neg=float(grid[0, likeliest]),
            rate_pos=float(grid[1, likeliest]),
            interval_neg=_around(float(grid[0, likeliest]), _interval(grid[0], weights)),
            interval_pos=_around(float(grid[1, likeliest]), _interval(grid[1], weights)),
            found=found and (bool(grid[:, likeliest].any()) or math.isnan(evidence)),
            weights=weights,
            rates_neg=grid[0],
            rates_pos=grid[1],
            slopes=slopes,
            evidence=evidence,
            clearest=clearest,
            scale=scale,
            offset=offset,
            n_classes=n_classes,
        )


def estimate_noise(
    posterior: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    rates: tuple[float, float] | None = None,
    n_classes: int = 2,
) -> Untwisting:
    """The noise of labels y (0 or 1), from posteriors of a model that has not seen them: out of fold.

    The twisted labels follow rate_neg + (1 - rate_neg - rate_pos) * clean, with `clean` as `Untwisting` has it. All
    pairs of rates on a grid are weighed by their likelihood at the best slope, and by what is likely beforehand: nine
    to one, both classes are equally noisy; and features explain most of the clean labels (the unexplained share of
    their variance is exponential with mean 0.15), so that of a disagreement that would fit either, noise gets more than
    bad luck. `rates`, if known, are taken as given: (rate_neg, rate_pos).

    `n_classes` above 2: y says whether a row bears one of so many labels, and a wrong label is as likely any other;
    rate_neg is then rate_pos / (n_classes - 1).

    >>> rng = np.random.default_rng(0)
    >>> twisted = 0.1 + (1.0 - 0.1 - 0.3) * expit(8.0 * rng.normal(size=4000))
    >>> y = rng.random(4000) < twisted
    >>> print(estimate_noise(expit(logit(twisted) + rng.normal(scale=0.5, size=4000)), y))
    wrong labels: 10.0% (8.2% to 12.4%) of the negatives, 32.0% (28.3% to 34.3%) of the positives
    """
    p, labels = probabilities("posterior", posterior), np.asarray(y)
    if p.ndim != 1 or labels.shape != p.shape or p.size == 0:
        raise ValueError(f"posterior and y must be one per row, got shapes {p.shape} and {labels.shape}")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"y must be 0 or 1, got {labels[~np.isin(labels, (0, 1))][0]!r}")
    weight = np.ones(p.size) if sample_weight is None else numbers("sample_weight", sample_weight)
    if weight.shape != p.shape or not ((weight >= 0).all() and 0 < weight.sum() < np.inf):
        raise ValueError("sample_weight must be finite and non-negative, one per row, not all 0, with a finite sum")
    n_classes = count("n_classes", n_classes, low=2)
    if (weight % 1.0 != 0).any() or weight.sum() > 2.0**53:  # only sums of whole numbers do not depend on their order
        order = np.lexsort((weight, labels, p))
        p, labels, weight = p[order], labels[order], weight[order]
    rows = np.count_nonzero(weight) / (n_classes if n_classes > 2 else 1)
    if not rows <= weight.sum() <= MOST_WEIGHT:
        weight = weight / weight.sum() * min(max(rows, weight.sum()), MOST_WEIGHT)
    z = logit(np.clip(p, LEAST, 1.0 - LEAST))
    values, place = np.unique(z, return_inverse=True)  # sorted, so that the order of the rows does not matter
    total, positives = (np.bincount(place, each).astype(np.float64) for each in (weight, weight * labels))
    share = positives.sum() / total.sum()
    clearest = max(min(CLEAREST, RAREST * share, RAREST * (1.0 - share)), 1e-6)
    scale, offset = _calibration(values, total, positives)
    binned = _binned(scale * values + offset, total, positives)
    if rates is not None:
        pair = _pair(rates)
        if n_classes > 2:
            raise ValueError("rates must be None where there are more than two classes")
        return Untwisting._of(
            pair, np.ones(1), _fitted(binned, pair, clearest).slope, math.nan, True, clearest, scale, offset
        )
    grid, curves = _searched(binned, clearest, n_classes)
    weights = _prior(grid, n_classes) * np.exp(curves.plausibility - curves.plausibility.max())
    evidence = float(curves.likelihood.max() - _fitted(binned, np.zeros((2, 1)), clearest).likelihood[0])
    return Untwisting._of(
        grid, weights / weights.sum(), curves.slope, evidence, evidence >= ENOUGH, clearest, scale, offset, n_classes
    )


def _pair(rates: tuple[float, float]) -> Array:
    pair = np.array([[fraction("rates", rate)] for rate in rates])
    if pair.shape != (2, 1) or pair.sum() >= 1:
        raise ValueError(f"rates must be two numbers that sum to less than 1, got {rates!r}")
    return pair


class _Curves(NamedTuple):
    """For each pair of rates the best curve: its log-likelihood, its slope, and what it leaves unexplained."""

    likelihood: Array
    slope: Array
    unexplained: Array

    @property
    def plausibility(self) -> Array:
        """The log-likelihood, and how easy the clean problem would be."""
        return self.likelihood - self.unexplained / UNEXPLAINED


def _searched(binned: Array, clearest: float, n_classes: int) -> tuple[Array, _Curves]:
    """Pairs of rates and their curves; where few fit, only those, on a finer grid."""
    coarse, fine = _grid(STEP, n_classes), _grid(FINE_STEP, n_classes)
    curves = _fitted(binned, coarse, clearest)
    plausible = coarse[:, curves.plausibility >= curves.plausibility.max() - 8.0]
    distance = np.abs(fine[:, :, None] - plausible[:, None, :]).max(axis=0).min(axis=1)
    near = fine[:, distance <= STEP / 2 + 1e-9]
    return (near, _fitted(binned, near, clearest)) if near.shape[1] <= 2 * coarse.shape[1] else (coarse, curves)


def _grid(step: float, n_classes: int) -> Array:
    """Pairs (rate_neg, rate_pos); for several classes those on a line."""
    each = np.arange(round(HIGHEST / step) + 1) * step
    if n_classes > 2:
        return np.stack([each / (n_classes - 1), each])
    return np.stack(np.meshgrid(each, each, indexing="ij")).reshape(2, -1)


def _prior(grid: Array, n_classes: int) -> Array:
    even = grid[0] == grid[1] if n_classes == 2 else np.ones(grid.shape[1], dtype=np.bool_)
    spacing = np.diff(np.unique(grid[1]))
    step = spacing.min() if spacing.size else STEP
    levels = HIGHEST / step + 1.0
    return np.where(even, EVEN_ODDS / levels, (1.0 - EVEN_ODDS) / (levels * (levels - 1.0)))


def _binned(z: Array, total: Array, positives: Array) -> Array:
    """Mean of z (rising), total weight and weight of the positives, in bins of about equal weight."""
    middle = (np.cumsum(total) - 0.5 * total) / total.sum()
    bins = np.minimum((middle * N_BINS * (1 + 1e-9)).astype(np.intp), N_BINS - 1)
    mass, positive, moment = (np.bincount(bins, each, N_BINS) for each in (total, positives, total * z))
    known = mass > 0
    return np.stack([moment[known] / mass[known], mass[known], positive[known]])


def _calibration(z: Array, total: Array, positives: Array) -> tuple[float, float]:
    """The scale and offset of log-odds that fit the labels best, with a scale near 1: a model of few rounds is shy.

    Newton's steps, halved until they help; a scale at its lower bound stays there while the offset is fitted.
    """
    x, spread = np.stack([z, np.ones_like(z)]), np.array([SCALE_SPREAD, OFFSET_SPREAD])

    def cost(at: Array) -> float:
        odds = at @ x
        fits = positives @ log_expit(odds) + (total - positives) @ log_expit(-odds)
        return float(0.5 * (((at - (1.0, 0.0)) / spread) ** 2).sum() - fits)

    at = np.array([1.0, 0.0])
    now = cost(at)
    for _ in range(100):
        p = expit(at @ x)
        gradient = x @ (positives - total * p) - (at - (1.0, 0.0)) / spread**2
        curve = (x * (total * p * (1.0 - p))) @ x.T + np.diag(spread**-2.0)
        step = np.linalg.solve(curve, gradient)
        if at[0] <= LEAST_SCALE and step[0] < 0:
            step = np.array([0.0, gradient[1] / curve[1, 1]])
        for _ in range(60):
            new = np.maximum(at + step, (LEAST_SCALE, -np.inf))
            if (then := cost(new)) <= now:
                break
            step = step / 2.0
        else:
            break
        moved, at, now = float(np.abs(new - at).max()), new, then
        if moved < 1e-13:
            break
    return float(at[0]), float(at[1])


def _untwisted(log_odds: Array, grid: Array, clearest: float) -> Array:
    """For each pair of rates the log-odds of the clean posterior where the twisted one has these."""
    rate_neg, span = grid[0][:, None], (1.0 - grid.sum(axis=0))[:, None]
    clean = np.clip((expit(log_odds) - rate_neg) / span, clearest, 1.0 - clearest)
    middle = np.log1p(grid[0] - grid[1]) - np.log1p(grid[1] - grid[0])  # where the clean posterior is one half
    return np.asarray(logit(clean) + LEAK * (log_odds - middle[:, None]))


def _fitted(binned: Array, grid: Array, clearest: float) -> _Curves:
    """The best slope for each pair of rates."""
    z, total, positives = binned
    odds, share = _untwisted(z, grid, clearest), total / total.sum()
    rate_neg, span = grid[0][:, None], (1.0 - grid.sum(axis=0))[:, None]
    likelihood, slope = np.full(grid.shape[1], -np.inf), np.ones(grid.shape[1])
    for each in SLOPES:
        twisted = np.clip(rate_neg + span * expit(each * odds), 1e-15, 1.0 - 1e-15)
        own = np.log(twisted) @ positives + np.log1p(-twisted) @ (total - positives)
        own = own - 0.5 * (math.log(each) / SLOPE_SPREAD) ** 2
        likelihood, slope = np.maximum(likelihood, own), np.where(own > likelihood, each, slope)
    clean = expit(slope[:, None] * odds)
    mean = np.clip(clean @ share, 1e-15, 1.0 - 1e-15)
    return _Curves(likelihood, slope, (clean * (1.0 - clean)) @ share / (mean * (1.0 - mean)))


def _around(rate: float, interval: tuple[float, float]) -> tuple[float, float]:
    """The interval, as wide as it takes to hold the likeliest rate, which is one of a grid."""
    return min(rate, interval[0]), max(rate, interval[1])


def _interval(rates: Array, weights: Array) -> tuple[float, float]:
    """Where the middle 95 % of the weight lies; that of a rate on the grid is spread halfway to its neighbours."""
    levels, place = np.unique(rates, return_inverse=True)
    middles = (levels[1:] + levels[:-1]) / 2.0
    edges = np.concatenate([levels[:1], middles, levels[-1:]])
    if levels[0] == 0 and len(levels) > 1:
        edges[1] = 0.0  # no noise is a case of its own, not a range
    until = np.concatenate([[0.0], np.cumsum(np.bincount(place, weights))])
    low, high = np.interp([(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0], until / until[-1], edges)
    return float(low), float(high)


# ---- the paper's three ----


@dataclass(frozen=True)
class MenonEstimate(NoiseEstimate):
    """The rates of `menon`, their symmetric reading `rate`, the mean leaf `eta_mean`, and the paper's alpha."""

    rate: float
    eta_mean: float
    alpha: float


def menon(X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, random_state: Any = 0) -> MenonEstimate:
    """The paper's estimator: the extremes of the leaves of one entropy tree. Two classes; X are numbers.

    The tree has at least ceil(sqrt(n)) rows per leaf and at most ceil(ln n) leaves; rate_neg is the lowest share of
    positives in a leaf, 1 - rate_pos the highest, `rate` = sqrt(rate_neg * rate_pos), and alpha the paper's alpha_0,
    which takes the mean over leaves for the twisted posterior. On hard but clean data it invents noise. The intervals
    hold for all leaves at once; noise is found if one of them leaves out 0.

    Where the formula says nothing: a mean of one half has the limit 1 / (1 - 2 rate); leaves that are all alike tell
    nothing, and alpha is 1; a clean posterior beyond 0 or 1 counts as 1/(n+2) from it.
    """
    table, labels = np.asarray(X), np.asarray(y)
    if table.ndim != 2 or labels.ndim != 1 or len(table) != len(labels) or len(labels) == 0:
        raise ValueError(f"X must be a table with a row per label, got shapes {table.shape} and {labels.shape}")
    classes, place = np.unique(labels, return_inverse=True)
    if classes.size > 2:
        raise ValueError(f"y must have two classes, got {classes.size}")
    weight = np.ones(len(labels)) if sample_weight is None else numbers("sample_weight", sample_weight)
    if weight.shape != labels.shape or not ((weight >= 0).all() and 0 < weight.sum() < np.inf):
        raise ValueError("sample_weight must be finite and non-negative, one per row, not all 0")
    table, place, weight = table[weight > 0], place[weight > 0], weight[weight > 0]
    n = max(len(place), float(weight.sum()))
    least = math.ceil(math.sqrt(n)) / n
    tree = DecisionTreeClassifier(
        criterion="entropy",
        min_weight_fraction_leaf=min(least * (1.0 - 1e-9), 0.5),
        min_samples_split=2 if least <= 0.5 else len(place) + 1,  # too few to split
        max_leaf_nodes=max(2, math.ceil(math.log(n))),
        random_state=random_state,
    ).fit(table, place, sample_weight=weight)
    _, leaf = np.unique(tree.apply(table), return_inverse=True)
    rows, positives = np.bincount(leaf, weight), np.bincount(leaf, weight * place)
    share = positives / rows
    low, high = share.min(), share.max()
    tail = (1.0 - CONFIDENCE) / 2.0 / len(rows)  # all leaves at once
    lower = np.where(positives > 0, beta.ppf(tail, positives, rows - positives + 1.0), 0.0)
    upper = np.where(positives < rows, beta.ppf(1.0 - tail, positives + 1.0, rows - positives), 1.0)
    rate, mean = math.sqrt(low * (1.0 - high)), float(share.mean())
    interval_neg = float(lower.min()), float(upper.min())
    interval_pos = float(1.0 - upper.max()), float(1.0 - lower.max())
    return MenonEstimate(
        rate_neg=float(low),
        rate_pos=float(1.0 - high),
        interval_neg=interval_neg,
        interval_pos=interval_pos,
        found=bool(len(rows) > 1 and max(interval_neg[0], interval_pos[0]) > 0),
        rate=rate,
        eta_mean=mean,
        alpha=_menon_alpha(rate, mean, n),
    )


def _menon_alpha(rate: float, mean: float, n: float) -> float:
    if rate >= 0.5 or mean in (0.0, 1.0):
        return 1.0  # all leaves alike: nothing to undo
    if math.isclose(mean, 0.5, abs_tol=1e-9):
        return 1.0 / (1.0 - 2.0 * rate) + 0.01
    least = 1.0 / (n + 2.0)
    clean = min(max((mean - rate) / (1.0 - 2.0 * rate), least), 1.0 - least)
    return max(1.0, float(alpha_star(clean, mean))) + 0.01


def original_learned(y_clean: ArrayLike, y_predicted: ArrayLike, *, by: str = "text") -> float:
    """alpha from the errors of a model trained on twisted labels, on rows whose labels (0, 1) are *clean*.

    `by` "text": the error rate is the mean over predicted classes; "script", as the authors ran it, over true classes.
    """
    true_pos, false_pos, true_neg, false_neg = _confusion(y_clean, y_predicted)
    if by == "text":
        rate = (_share(false_pos, true_pos) + _share(false_neg, true_neg)) / 2.0
    elif by == "script":
        rate = (_share(false_neg, true_pos) + _share(false_pos, true_neg)) / 2.0
    else:
        raise ValueError(f'by must be "text" or "script", got {by!r}')
    total = true_pos + false_pos + true_neg + false_neg
    clean = _inside((false_neg + true_pos) / total, total)
    if math.isclose(clean, 0.5, abs_tol=1e-9) and rate < 0.5:
        return 1.0 / (1.0 - 2.0 * rate)  # the limit
    return float(alpha_star(clean, clean * (1.0 - rate) + (1.0 - clean) * rate))


def taylor(y_clean: ArrayLike, y_predicted: ArrayLike, *, rate: float = 0.1) -> float:
    """`original_learned` to first order in the noise rate, which the authors fix at 0.1, at the predicted positives."""
    rate = fraction("rate", rate)
    true_pos, false_pos, true_neg, false_neg = _confusion(y_clean, y_predicted)
    total = true_pos + false_pos + true_neg + false_neg
    eta = _inside((false_pos + true_pos) / total, total)
    if math.isclose(eta, 0.5, abs_tol=1e-9):
        return 1.0 + 2.0 * rate  # the limit
    return float(1.0 + (1.0 - 2.0 * eta) * rate / ((eta - 1.0) * eta * logit(eta)))


def _confusion(y_clean: ArrayLike, y_predicted: ArrayLike) -> tuple[float, float, float, float]:
    """True and false positives, true and false negatives."""
    clean, predicted = np.asarray(y_clean), np.asarray(y_predicted)
    if clean.ndim != 1 or clean.shape != predicted.shape or clean.size == 0:
        raise ValueError(f"y_clean and y_predicted must be one per row, got shapes {clean.shape}, {predicted.shape}")
    if not (np.isin(clean, (0, 1)).all() and np.isin(predicted, (0, 1)).all()):
        raise ValueError("y_clean and y_predicted must be 0 or 1")

    def rows(truth: int, said: int) -> float:
        return float(np.count_nonzero((clean == truth) & (predicted == said)))

    return rows(1, 1), rows(0, 1), rows(0, 0), rows(1, 0)


def _share(wrong: float, right: float) -> float:
    return wrong / (wrong + right) if wrong + right else 0.0


def _inside(eta: float, n: float) -> float:
    return min(max(eta, 1.0 / (n + 2.0)), 1.0 - 1.0 / (n + 2.0))
