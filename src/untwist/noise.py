"""How many labels are wrong, read off the twisted data alone, and what undoes it.

Noise is described by the share of each true class that bears the other label: `rate_neg` of the negatives, `rate_pos`
of the positives. It can be told from hard data only by plateaus: where the features leave no doubt, the posterior of
the twisted labels stops at rate_neg and at 1 - rate_pos and rises no further, however sure the model becomes; on hard
but clean data it goes on rising. `estimate_noise` looks for plateaus in out-of-fold posteriors and keeps all rates
that fit, each with its weight: where there is nothing to see, the answer is "no evidence of noise".

`menon` is the paper's estimator. `original_learned` and `taylor` are its other two ways to alpha; they need clean
labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit
from scipy.stats import beta
from sklearn.tree import DecisionTreeClassifier

from untwist.arguments import Array, fraction, numbers, probabilities
from untwist.twists import alpha_star

__all__ = ["MenonEstimate", "NoiseEstimate", "Untwisting", "estimate_noise", "menon", "original_learned", "taylor"]

CONFIDENCE = 0.95
ENOUGH = 2.0  # nats of log-likelihood that noise must explain to count as found
EVEN_ODDS = 0.8  # how likely, beforehand, both classes are equally noisy
HIGHEST, STEP, FINE_STEP = 0.48, 0.04, 0.01  # the rates that are considered
N_BINS = 64
LEAST = 1e-4  # a posterior nearer to 0 or 1 counts as so near
REACH = 20.0  # log-odds up to which functions of them are tabulated
TABLE = np.linspace(-REACH, REACH, 4097)
SLOPE_SPREAD, OFFSET_SPREAD = 3.0, 0.25  # of the curve around a calibrated posterior, beforehand


@dataclass(frozen=True)
class NoiseEstimate:
    """The share of each true class that bears the other label, with 95 % intervals, and whether there is evidence."""

    rate_neg: float
    rate_pos: float
    interval_neg: tuple[float, float]
    interval_pos: tuple[float, float]
    found: bool

    def __str__(self) -> str:
        if not self.found:
            most = max(self.interval_neg[1], self.interval_pos[1])
            return f"no evidence of label noise (up to {most:.0%} in a class would not show)"
        parts = [
            f"{rate:.1%} ({low:.1%} to {high:.1%}) of the {name}"
            for name, rate, (low, high) in (
                ("negatives", self.rate_neg, self.interval_neg),
                ("positives", self.rate_pos, self.interval_pos),
            )
        ]
        return f"wrong labels: {parts[0]}, {parts[1]}"


# ---- from out-of-fold posteriors ----


@dataclass(frozen=True)
class Untwisting(NoiseEstimate):
    """All rates that fit the twisted labels, each with its weight and the slope of its clean posterior.

    Under a pair of rates the clean posterior is expit(slope * (z - z0)), for z the log-odds of the twisted posterior
    and z0 those of (1 + rate_neg - rate_pos) / 2, where the clean posterior is one half. Everything here is the mean
    over the pairs. `evidence` is the log-likelihood that noise explains, in nats (NaN if the rates were given).
    """

    weights: Array
    rates_neg: Array
    rates_pos: Array
    slopes: Array
    evidence: float

    def clean(self, log_odds: ArrayLike) -> Array:
        """The clean posterior where the twisted labels have these log-odds: alpha*(x) point by point."""
        return np.asarray(expit(self.clean_log_odds(log_odds)))

    def clean_log_odds(self, log_odds: ArrayLike) -> Array:
        """The log-odds of `clean`, from a table: within 1e-4, rising where they rise, and fast."""
        z = np.asarray(log_odds, dtype=np.float64)
        return np.asarray(np.interp(z, TABLE, self._clean_table) + (z - np.clip(z, -REACH, REACH)))

    def wrong(self, log_odds: ArrayLike, y: ArrayLike) -> Array:
        """The probability that the label y, 0 or 1, is wrong where the twisted labels have these log-odds."""
        z = np.asarray(log_odds, dtype=np.float64)
        negative, positive = (np.interp(z, TABLE, self.weights @ each) for each in self._wrong_tables)
        return np.where(np.asarray(y) == 1, positive, negative)

    def share_wrong(self, log_odds: ArrayLike, y: ArrayLike, sample_weight: ArrayLike) -> tuple[float, float, float]:
        """The mean of `wrong` over rows, and its 95 % interval over the rates that fit."""
        z, positive = np.asarray(log_odds, dtype=np.float64), np.asarray(y) == 1
        place = np.clip(np.rint((z + REACH) / (TABLE[1] - TABLE[0])), 0, len(TABLE) - 1).astype(np.intp)
        weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), z.shape)
        rows = [np.bincount(place[one], weight[one], len(TABLE)) for one in (~positive, positive)]
        total = max(float(weight.sum()), np.finfo(float).tiny)
        shares = sum(each @ count for each, count in zip(self._wrong_tables, rows, strict=True)) / total
        return float(self.weights @ shares), *_interval(np.asarray(shares), self.weights)

    @cached_property
    def _clean_table(self) -> Array:
        true, false = np.full(TABLE.shape, -np.inf), np.full(TABLE.shape, -np.inf)
        for weight, slope, zero in zip(np.log(self.weights), self.slopes, self._zeros(), strict=True):
            true = np.logaddexp(true, weight + log_expit(slope * (TABLE - zero)))
            false = np.logaddexp(false, weight + log_expit(-slope * (TABLE - zero)))
        return np.asarray(true - false)

    @cached_property
    def _wrong_tables(self) -> tuple[Array, Array]:
        """The probability of a negative and of a positive label to be wrong, for each pair of rates."""
        rate_neg, rate_pos = self.rates_neg[:, None], self.rates_pos[:, None]
        clean = expit(self.slopes[:, None] * (TABLE - self._zeros()[:, None]))
        twisted = rate_neg + (1.0 - rate_neg - rate_pos) * clean
        tiny = np.finfo(float).tiny
        return rate_pos * clean / np.maximum(1.0 - twisted, tiny), rate_neg * (1.0 - clean) / np.maximum(twisted, tiny)

    @classmethod
    def by(cls, rates: tuple[float, float]) -> Untwisting:
        """By rates that are known, of a posterior that is taken at its word where the clean one is near one half."""
        pair = _pair(rates)
        middle = (1.0 + pair[0] - pair[1]) / 2.0
        slope = 4.0 * middle * (1.0 - middle) / (1.0 - pair.sum(axis=0))
        return cls._of(pair, np.ones(1), slope, evidence=math.nan, found=True)

    @classmethod
    def _of(cls, grid: Array, weights: Array, slopes: Array, evidence: float, found: bool) -> Untwisting:
        kept = weights > 1e-6
        weights, grid, slopes = weights[kept] / weights[kept].sum(), grid[:, kept], slopes[kept]
        likeliest = int(np.argmax(weights))
        return cls(
            rate_neg=float(grid[0, likeliest]),
            rate_pos=float(grid[1, likeliest]),
            interval_neg=_interval(grid[0], weights),
            interval_pos=_interval(grid[1], weights),
            found=found and bool(grid[:, likeliest].any()),
            weights=weights,
            rates_neg=grid[0],
            rates_pos=grid[1],
            slopes=slopes,
            evidence=evidence,
        )

    def _zeros(self) -> Array:
        return _threshold(self.rates_neg, self.rates_pos)


def estimate_noise(
    posterior: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    rates: tuple[float, float] | None = None,
    n_classes: int = 2,
) -> Untwisting:
    """The noise of labels y (0 or 1), from posteriors of a model that has not seen them: out of fold.

    The twisted labels follow rate_neg + (1 - rate_neg - rate_pos) * expit(slope * (z - z0) + offset), z the log-odds
    of the posterior. All pairs of rates on a grid are weighed by their likelihood at the best slope and offset, with a
    prior that says four to one that both classes are equally noisy. The offset takes up what is not quite calibrated
    and plays no further part. `rates`, if known, are taken as given: (rate_neg, rate_pos).

    `n_classes` above 2: y says whether a row bears one of so many labels, and a wrong label is as likely any other;
    rate_neg is then rate_pos / (n_classes - 1).

    >>> rng = np.random.default_rng(0)
    >>> clean = rng.integers(2, size=4000)
    >>> y = np.where(rng.random(4000) < np.where(clean == 1, 0.3, 0.1), 1 - clean, clean)
    >>> print(estimate_noise(np.where(clean == 1, 0.7, 0.1) + rng.normal(scale=0.02, size=4000), y))
    wrong labels: 10.0% (8.8% to 11.7%) of the negatives, 28.0% (26.3% to 30.2%) of the positives
    """
    p, labels = probabilities("posterior", posterior), np.asarray(y)
    if p.ndim != 1 or labels.shape != p.shape or p.size == 0:
        raise ValueError(f"posterior and y must be one per row, got shapes {p.shape} and {labels.shape}")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"y must be 0 or 1, got {labels[~np.isin(labels, (0, 1))][0]!r}")
    weight = np.ones(p.size) if sample_weight is None else numbers("sample_weight", sample_weight)
    if weight.shape != p.shape or not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and non-negative, one per row, not all 0")
    z = logit(np.clip(p, LEAST, 1.0 - LEAST))
    binned = _binned(z, labels.astype(np.float64), weight)
    if rates is not None:
        pair = _pair(rates)
        return Untwisting._of(pair, np.ones(1), _fitted(binned, pair)[1], evidence=math.nan, found=True)
    grid, likelihood, slopes = _searched(binned, n_classes)
    weights = _prior(grid, n_classes) * np.exp(likelihood - likelihood.max())
    evidence = float(likelihood.max() - _fitted(binned, np.zeros((2, 1)))[0][0])
    return Untwisting._of(grid, weights / weights.sum(), slopes, evidence, found=evidence >= ENOUGH)


def _pair(rates: tuple[float, float]) -> Array:
    pair = np.array([[fraction("rates", rate)] for rate in rates])
    if pair.shape != (2, 1) or pair.sum() >= 1:
        raise ValueError(f"rates must be two numbers that sum to less than 1, got {rates!r}")
    return pair


def _searched(binned: Array, n_classes: int) -> tuple[Array, Array, Array]:
    """Pairs of rates, how well each fits, and its slope; where few fit, only those, on a finer grid."""
    coarse, fine = _grid(STEP, n_classes), _grid(FINE_STEP, n_classes)
    likelihood, slopes = _fitted(binned, coarse)
    plausible = coarse[:, likelihood > likelihood.max() - 8.0]
    distance = np.abs(fine[:, :, None] - plausible[:, None, :]).max(axis=0).min(axis=1)
    near = fine[:, distance <= STEP / 2 + 1e-9]
    return (near, *_fitted(binned, near)) if near.shape[1] <= 2 * coarse.shape[1] else (coarse, likelihood, slopes)


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


def _binned(z: Array, y: Array, weight: Array) -> Array:
    """Mean of z, total weight and weight of the positives, in bins of about equal weight; equal z stay together."""
    values, place = np.unique(z, return_inverse=True)
    mass = np.bincount(place, weight)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    bins = np.minimum((middle * N_BINS * (1 + 1e-9)).astype(np.intp), N_BINS - 1)
    total = np.bincount(bins, mass, N_BINS)
    positives = np.bincount(bins, np.bincount(place, weight * y), N_BINS)
    means = np.bincount(bins, mass * values, N_BINS) / np.maximum(total, np.finfo(float).tiny)
    return np.asarray(np.stack([means, total, positives])[:, total > 0])


def _threshold(rate_neg: Array, rate_pos: Array) -> Array:
    """The twisted log-odds where the clean posterior is one half."""
    return np.asarray(np.log1p(rate_neg - rate_pos) - np.log1p(rate_pos - rate_neg))


def _fitted(binned: Array, grid: Array) -> tuple[Array, Array]:
    """For each pair of rates the log-likelihood at the best slope and offset, and the slope: Newton, all at once."""
    z, total, positives = binned
    rate_neg, span = grid[0][:, None], (1.0 - grid.sum(axis=0))[:, None]
    x = z - _threshold(*grid)[:, None]
    slope, offset = 1.0 / span, np.zeros_like(span)
    damping = np.full_like(span, 1e-3)

    def fit(slope: Array, offset: Array) -> tuple[Array, Array, Array]:
        clean = expit(slope * x + offset)
        p = np.clip(rate_neg + span * clean, 1e-12, 1.0 - 1e-12)
        likelihood = (positives * np.log(p) + (total - positives) * np.log1p(-p)).sum(axis=1, keepdims=True)
        unlikely = ((slope - 1.0) / SLOPE_SPREAD) ** 2 + (offset / OFFSET_SPREAD) ** 2
        return likelihood - 0.5 * unlikely, clean, p

    best, clean, p = fit(slope, offset)
    for _ in range(60):
        steepness = span * clean * (1.0 - clean)
        pull = (positives / p - (total - positives) / (1.0 - p)) * steepness
        curve = total * steepness**2 / (p * (1.0 - p))
        of_offset = pull.sum(axis=1, keepdims=True) - offset / OFFSET_SPREAD**2
        of_slope = (pull * x).sum(axis=1, keepdims=True) - (slope - 1.0) / SLOPE_SPREAD**2
        a = (curve.sum(axis=1, keepdims=True) + OFFSET_SPREAD**-2) * (1.0 + damping)
        b = (curve * x).sum(axis=1, keepdims=True)
        c = ((curve * x**2).sum(axis=1, keepdims=True) + SLOPE_SPREAD**-2) * (1.0 + damping)
        new_slope = np.maximum(slope + (a * of_slope - b * of_offset) / (a * c - b**2), 0.05)
        new_offset = offset + (c * of_offset - b * of_slope) / (a * c - b**2)
        new, new_clean, new_p = fit(new_slope, new_offset)
        better = new > best
        gain = float(np.where(better, new - best, 0.0).max())
        slope, offset = np.where(better, new_slope, slope), np.where(better, new_offset, offset)
        best, clean, p = np.where(better, new, best), np.where(better, new_clean, clean), np.where(better, new_p, p)
        damping = np.clip(np.where(better, 0.3, 5.0) * damping, 1e-9, 1e9)
        if gain < 1e-10 and (better | (damping > 1.0)).all():
            break
    return best[:, 0], slope[:, 0]


def _interval(rates: Array, weights: Array) -> tuple[float, float]:
    """Where the middle 95 % of the weight lies; that of a rate on the grid is spread halfway to its neighbours."""
    levels, place = np.unique(rates, return_inverse=True)
    middles = (levels[1:] + levels[:-1]) / 2.0
    edges = np.concatenate([levels[:1], middles, levels[-1:]])
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
    if table.ndim != 2 or len(table) != len(labels) or len(labels) == 0:
        raise ValueError(f"X must be a table with a row per label, got shapes {table.shape} and {labels.shape}")
    classes, place = np.unique(labels, return_inverse=True)
    if classes.size > 2:
        raise ValueError(f"y must have two classes, got {classes.size}")
    n = len(labels)
    tree = DecisionTreeClassifier(
        criterion="entropy",
        min_samples_leaf=math.ceil(math.sqrt(n)),
        max_leaf_nodes=max(2, math.ceil(math.log(n))),
        random_state=random_state,
    ).fit(table, place, sample_weight=sample_weight)
    weight = np.ones(n) if sample_weight is None else numbers("sample_weight", sample_weight)
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


def _menon_alpha(rate: float, mean: float, n: int) -> float:
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
