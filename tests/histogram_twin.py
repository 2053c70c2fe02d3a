"""The compiled engine's rules in plain Python: the slow, obviously right twin.

Bins by distinct values or equal weight, fixed-point weights, exact integer sums, one level of the tree at a time, ties
to the smaller feature, then the smaller code, then missing values to the right.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np


def weight_bits(total_weight, rows):
    return next(bits for bits in range(24, 16, -1) if bits == 17 or total_weight * 2**bits + rows / 2 <= 2**31)


def thresholds(values, weights, max_bins):
    """Half way between neighbours where every value can have a bin, else bins of about equal weight."""
    values, weights = values[~np.isnan(values)], weights[~np.isnan(values)]
    distinct = sorted(set(values.tolist()))
    total = dict.fromkeys(distinct, 0)
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        total[value] += weight
    few, bins, everything = len(distinct) <= max_bins, max_bins, sum(total.values())
    heavy = {value: total[value] >= everything // max_bins for value in distinct}
    light, heavies = sum(total[v] for v in distinct if not heavy[v]), sum(heavy.values())
    cuts, filled = [], 0
    for i in range(len(distinct) - 1):
        if not few:
            if bins <= 1:
                break
            filled += total[distinct[i]]
            alone = heavy[distinct[i]] or heavy[distinct[i + 1]]
            if not (alone or filled >= light // max(1, bins - heavies) or len(distinct) - i <= bins):
                continue
            if heavy[distinct[i]]:
                heavies -= 1
            else:
                light -= filled
            filled, bins = 0, bins - 1
        middle = 0.5 * distinct[i] + 0.5 * distinct[i + 1]
        cuts.append(middle if middle < distinct[i + 1] else distinct[i])
    return cuts


@dataclass
class Leaf:
    value: Fraction


@dataclass
class Inner:
    feature: int
    threshold: float
    missing_left: bool
    left: object
    right: object


def grow(X, cuts, y, q, depth, l2):
    """A tree for integer weights q: l2 is in the same unit."""
    G, W = int((q * y).sum()), int(q.sum())
    leaf = Leaf(Fraction(G) / (W + l2))
    if depth == 0:
        return leaf
    best, found = Fraction(G) ** 2 / (W + l2) + Fraction(1, 10**12) * W, None
    for feature, limits in enumerate(cuts):
        column = X[:, feature]
        missing = np.isnan(column)
        lost = missing & (q > 0)
        for missing_left in (False, True) if lost.any() else (False,):
            for limit in [*limits, np.inf]:
                goes_left = np.where(missing, missing_left, column <= limit)
                W_left = int(q[goes_left].sum())
                if W_left in (0, W):
                    continue
                G_left = int((q * y)[goes_left].sum())
                value = Fraction(G_left) ** 2 / (W_left + l2) + Fraction(G - G_left) ** 2 / (W - W_left + l2)
                if value > best * (1 + Fraction(1, 10**13)):
                    side = missing_left if lost.any() else 2 * W_left >= W
                    best, found = value, (feature, limit, side, goes_left)
    if found is None:
        return leaf
    feature, limit, side, goes_left = found
    goes_left = np.where(np.isnan(X[:, feature]), side, X[:, feature] <= limit)
    children = [grow(X[rows], cuts, y[rows], q[rows], depth - 1, l2) for rows in (goes_left, ~goes_left)]
    return Inner(feature, limit, bool(side), *children)


def predict(tree, row):
    while isinstance(tree, Inner):
        x = row[tree.feature]
        tree = tree.left if (tree.missing_left if np.isnan(x) else x <= tree.threshold) else tree.right
    return float(tree.value)


def boost(X, y, link, step_size, *, rounds, depth, max_bins=255, l2=0.0, sample_weight=None):
    """Yields (tree, edge, scores) per round."""
    weight = np.ones(len(y)) if sample_weight is None else sample_weight / sample_weight.max()
    whole = np.array([round(w * 2**32) for w in weight.tolist()], dtype=object)
    cuts = [thresholds(X[:, f].astype(float), whole, max_bins) for f in range(X.shape[1])]
    unit = 2 ** weight_bits(sum(whole) * 2**-32, len(y))
    scores = np.zeros(len(y))
    for _ in range(rounds):
        q = np.floor(link.weights(y * scores) * weight * unit + 0.5).astype(np.int64)
        if not q.any():
            return
        active = q > 0
        tree = grow(X[active].astype(float), cuts, y[active].astype(np.int64), q[active], depth, Fraction(l2) * unit)
        h = np.array([predict(tree, row) for row in X.astype(float)])
        edge = float((q * y * h).sum() / (sum(whole) * 2**-32 * unit))
        scores = scores + step_size * edge * h
        yield tree, edge, scores
