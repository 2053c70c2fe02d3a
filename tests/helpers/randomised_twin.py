"""The rules of the compiled engine's randomised trees in plain Python: the slow, obviously right twin.

Bins and hashes are those of the histogram twin. Nodes come level by level, and every sum is over rows, one by one.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from helpers.histogram_twin import CHILD_SALTS, MASK, mix, sample_thresholds, scale_down

GOLDEN_RATIO = 0x9E3779B97F4A7C15
DEEPEST = 60


@dataclass
class Node:
    """A leaf until it has a feature, of which sides[code] tells whether a code goes left. The last code is missing."""

    rows: list
    key: int
    depth: int
    feature: int = -1
    left: int = -1
    gain: float = 0.0
    sides: list = field(default_factory=list)
    log_shares: list = field(default_factory=list)


def bin_columns(X, weight, categories, max_bins):
    """Return codes, numbers of bins of known values, the next of which is that of missing ones, and thresholds."""
    largest = 2.0 ** math.ceil(math.log2(weight.max()))
    whole = np.array([round(w / largest * 2**32) for w in weight.tolist()], dtype=object)
    codes, counts, thresholds = np.zeros(X.shape, dtype=int), [], sample_thresholds(X, whole, max_bins)
    for column in range(X.shape[1]):
        n_categories = categories.get(column, 0)
        cuts = [] if n_categories else thresholds[column]
        for row, x in enumerate(X[:, column].tolist()):
            code = int(x) if n_categories and not math.isnan(x) else sum(cut < x for cut in cuts)
            codes[row, column] = (n_categories or len(cuts) + 1) if math.isnan(x) else code
        counts.append(n_categories or len(cuts) + 1)
    return codes, counts, thresholds


def draw_split(present, hashed, n_values, is_categorical):
    """Return the side of every code: whether it goes left, or None for the heavier side.

    `present` are the codes that the node has, in order. Where there is only one, nothing is returned.
    """
    if len(present) < 2:
        return None
    if is_categorical:
        sides = {c: bool(mix((hashed + (c // 64 + 1) * GOLDEN_RATIO) & MASK) >> (c % 64) & 1) for c in present}
        if len(set(sides.values())) == 1:
            one = present[scale_down(hashed, len(present))]
            sides[one] = not sides[one]
        return [sides.get(code) for code in range(n_values + 1)]
    known = [code for code in present if code < n_values]
    if len(known) == 1:
        return [True] * n_values + [False]
    last = known[0] + scale_down(hashed, known[-1] - known[0])
    return [code <= last for code in range(n_values)] + [bool(hashed & 1) if n_values in present else None]


def grow(X, labels, number, *, min_samples_leaf, max_features, seed=0, weight=None, trained=None, unit=1, **binning):
    """Return the nodes of a tree and the thresholds of all columns.

    `weight` bins the rows, and `trained` trains: in whole numbers of a unit, so many of which are a row.
    """
    weight = np.ones(len(X), dtype=int) if weight is None else weight
    trained = weight if trained is None else trained
    categories = binning.get("categories") or {}
    codes, n_values, thresholds = bin_columns(X, weight, categories, binning.get("max_bins", 255))
    n_classes = int(labels.max()) + 1
    weighty = [row for row in range(len(X)) if weight[row] > 0]
    columns = [f for f in range(X.shape[1]) if categories.get(f, 0) > 1 or len(set(codes[weighty, f].tolist())) > 1]
    n_drawn = max(1, math.ceil(max_features * len(columns)))

    def weigh(rows):
        """Return the weight of each class."""
        return [float(sum(int(trained[row]) for row in rows if labels[row] == k)) for k in range(n_classes)]

    def find_purity(rows):
        return sum(w * w for w in weigh(rows)) / sum(weigh(rows))

    def find_split(node):
        best, best_purity, order, varied = None, -1.0, list(range(len(columns))), False
        for i in range(len(columns)):
            if i >= n_drawn and varied:
                break
            hashed = mix((node.key + i * GOLDEN_RATIO) & MASK)
            j = i + scale_down(hashed, len(columns) - i)
            order[i], order[j] = order[j], order[i]
            feature = columns[order[i]]
            present = sorted(set(codes[node.rows, feature].tolist()))
            sides = draw_split(present, mix(hashed), n_values[feature], feature in categories)
            if sides is None:
                continue
            varied = True
            left = [row for row in node.rows if sides[codes[row, feature]]]
            right = [row for row in node.rows if not sides[codes[row, feature]]]
            if min(sum(weigh(left)), sum(weigh(right))) < min_samples_leaf * unit:
                continue
            purity = find_purity(left) + find_purity(right)
            if purity > best_purity:
                best, best_purity = (feature, sides, left, right, purity), purity
        return best

    training_rows = [row for row in range(len(X)) if trained[row] > 0]
    total = weigh(training_rows)
    prior = [(w + unit) / (sum(total) + n_classes * unit) for w in total]
    nodes = [Node(training_rows, mix(mix(seed) ^ mix(number)), 0)]
    for node in nodes:  # The list grows meanwhile.
        weights = weigh(node.rows)
        node.log_shares = [
            math.log((w + unit * p) / (sum(weights) + unit)) for w, p in zip(weights, prior, strict=True)
        ]
        is_pure = sum(w > 0 for w in weights) < 2
        if is_pure or node.depth == DEEPEST or sum(weights) < 2 * min_samples_leaf * unit:
            continue
        best = find_split(node)
        if best is None:
            continue
        node.feature, sides, left, right, purity = best
        heavier = 2 * sum(weigh(left)) >= sum(weights)
        node.sides = [heavier if side is None else side for side in sides]
        node.gain = (purity - find_purity(node.rows)) / sum(total)
        node.left = len(nodes)
        for salt, rows in zip(CHILD_SALTS, (left, right), strict=True):
            nodes.append(Node(rows, mix(node.key ^ salt), node.depth + 1))
    return nodes, thresholds
