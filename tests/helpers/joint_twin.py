"""The compiled engine's rules for all classes together, in plain NumPy: the slow twin.

Gradients are computed in single precision by the engine's own series, so that they are the same whole numbers; sums
over rows are sums over rows; every split of every column is tried. Ties go to the smaller feature, then to missing
values on the right, then to the smaller code; categories are tried in the order of each lane in turn. Where splits are
drawn, so is the lane.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from helpers.histogram_twin import (
    CHILD_SALTS,
    draw_columns,
    draw_hash,
    draw_one,
    encode,
    find_root_key,
    may_split,
    mix,
    place_thresholds,
)

SINGLE = np.float32


def take_exponent(x):
    """exp(x) for x <= 0 by the engine's series, step by step in single precision."""
    x = np.maximum(x.astype(SINGLE), SINGLE(-87.0))
    whole = np.trunc(x * SINGLE(1.44269504) - SINGLE(0.5)).astype(SINGLE)
    f = (x - whole * SINGLE(0.693359375)) - whole * SINGLE(-2.12194440e-4)
    p = SINGLE(0.0013888)
    for coefficient in (0.008333452, 0.041666645, 0.16666667, 0.5, 1.0, 1.0):
        p = SINGLE(coefficient) + f * p
    return p * np.ldexp(SINGLE(1.0), whole.astype(np.int32)).astype(SINGLE)


def take_logarithm(x):
    """log(x) by the engine's series."""
    bits = x.astype(SINGLE).view(np.int32)
    shifted = bits - np.int32(0x3F3504F3)
    exponent = (shifted >> 23).astype(SINGLE)
    mantissa = (bits - (shifted & np.uint32(0xFF800000).view(np.int32))).view(SINGLE)
    t = (mantissa - SINGLE(1)) / (mantissa + SINGLE(1))
    s = t * t
    series = SINGLE(0.2222221)
    for coefficient in (0.28571430, 0.4, 0.66666667, 2.0):
        series = SINGLE(coefficient) + s * series
    return t * series + exponent * SINGLE(0.69314718)


def find_emphasis(p, alpha):
    if alpha == 1:
        return np.ones_like(p)
    if alpha == 2:
        return np.sqrt(p)
    power = SINGLE((alpha - 1) / alpha)
    exponent = np.abs(power) * take_logarithm(p)
    if power < 0:
        return SINGLE(1) / take_exponent(np.maximum(exponent, SINGLE(-2.7725887)))
    return take_exponent(exponent)


def find_gradients(scores, labels, alpha, unit, weight, copies):
    """The negative gradients as whole numbers, and the mass of each row."""
    n, n_classes = scores.shape
    below = np.maximum(scores - scores.max(axis=1, keepdims=True), -1e3)
    shares = take_exponent(below.astype(SINGLE))
    total = np.zeros(n, dtype=SINGLE)
    for k in range(n_classes):
        total += shares[:, k]
    p = np.maximum(shares[np.arange(n), labels] / total, SINGLE(1e-37))
    scale = find_emphasis(p, alpha) * (SINGLE(unit) * weight.astype(SINGLE) / total)
    sizes = np.trunc(shares * scale[:, None] + SINGLE(0.5)).astype(np.int64)
    own = np.arange(n_classes) == labels[:, None]
    mass = np.where(own, 0, sizes).sum(axis=1)
    return np.where(own, mass[:, None], -sizes) * copies[:, None], mass * copies


def count_bits(total, roundings, n_classes, shared, alpha):
    per_weight = (16.0 if alpha < 1 else 1.0) * (2.0 if shared else 1.0)
    fits = [b for b in range(24, 13, -1) if total * per_weight * 2.0**b + n_classes * roundings < 2.0**31]
    return fits[0] if fits else 17


def add_up(squares):
    """The sum of a register, half of it to the other half, as the engine adds."""
    while len(squares) > 1:
        half = len(squares) // 2
        squares = squares[:half] + squares[half:]
    return squares[0]


@dataclass
class Rules:
    depth: int
    max_leaves: int
    l2: float
    min_weight: float
    min_rows: float
    smoothing: float
    lanes: int
    gradient_lanes: int
    extra: bool
    interactions: tuple


@dataclass
class Node:
    """A leaf until it has a feature; `goes_left` is the set of codes that go left, `way` the columns that led here."""

    rows: np.ndarray
    depth: int
    key: int
    way: tuple = ()
    feature: int = -1
    goes_left: frozenset = frozenset()
    gain: float = 0.0
    children: tuple = ()
    value: np.ndarray = field(default_factory=lambda: np.zeros(0))


def find_worth(left, node, rules):
    worth = 0.0
    for sums in (left, node - left):
        squares = np.zeros(rules.lanes)
        squares[: rules.gradient_lanes] = sums[: rules.gradient_lanes].astype(float) ** 2
        worth += add_up(squares) / (2.0 * float(sums[-1]) + rules.l2)
    return worth


def list_splits(codes, lane_sums, column, rules, hashed):
    """(codes that go left, sums on the left) in the order in which ties are broken.

    With a hash only one of the splits that tell the node's values apart is a candidate.
    """
    cuts, categories = column
    missing = categories or len(cuts) + 1
    bins = np.zeros((missing + 1, rules.lanes), dtype=np.int64)
    np.add.at(bins, codes, lane_sums)
    if not categories:
        lost = bins[missing, -1] > 0
        known = np.flatnonzero(bins[:missing, -1])
        all_tell_apart = range(known[0], known[-1] + lost) if len(known) else range(0)
        last_codes = range(missing) if hashed is None else draw_one(all_tell_apart, hashed)
        sums = bins[:missing].cumsum(axis=0)
        for missing_left in (False, True) if lost else (False,):
            for last in last_codes:
                left = sums[last] + (bins[missing] if missing_left else 0)
                yield set(range(last + 1)) | ({missing} if missing_left else set()), left, bins, lost
        return
    seen = [code for code in range(missing + 1) if bins[code, -1] > 0]
    for lane in draw_one(range(rules.gradient_lanes), None if hashed is None else mix(hashed)):
        mean = {c: float(bins[c, lane]) / (2.0 * float(bins[c, -1]) + rules.l2 + rules.smoothing) for c in seen}
        order = sorted(seen, key=lambda code: (mean[code], code))
        sums = bins[order].cumsum(axis=0)
        for count in draw_one(range(1, len(order)), hashed):
            yield set(order[:count]), sums[count - 1], bins, missing in seen


def find_split(codes, lane_sums, columns, playing, node, rules):
    rows = node.rows
    total = lane_sums[rows].sum(axis=0)
    squares = sum(float(one) ** 2 for one in total[: rules.gradient_lanes])
    leaf = squares / (2.0 * float(total[-1]) + rules.l2)
    best, found = leaf + 1e-12 * float(total[-1]), None
    if (lane_sums[rows, -1] > 0).sum() < 2 or float(total[-1]) < 2 * rules.min_weight:
        return None
    for place, feature in enumerate(playing):
        if not may_split(rules.interactions, node.way, feature):
            continue
        hashed = draw_hash(node.key, place) if rules.extra else None
        for left_codes, left, bins, missing_known in list_splits(
            codes[rows, feature], lane_sums[rows], columns[feature], rules, hashed
        ):
            mass, rows_left = float(left[-1]), float(left[-2])
            if mass in (0.0, float(total[-1])):
                continue
            if min(mass, float(total[-1]) - mass) < rules.min_weight:
                continue
            if rules.min_rows and min(rows_left, float(total[-2]) - rows_left) < rules.min_rows:
                continue
            worth = find_worth(left, total, rules)
            if worth > best:
                cuts, categories = columns[feature]
                heavier = 2.0 * mass >= float(total[-1])
                unseen = [c for c in range(len(bins)) if bins[c, -1] == 0] if categories else []
                if not categories and not missing_known:
                    unseen = [len(cuts) + 1]
                best, found = worth, (feature, frozenset(left_codes | (set(unseen) if heavier else set())))
    return None if found is None else (best - leaf, *found)


def grow(codes, lane_sums, columns, playing, rules, total_weight, key):
    root = Node(np.arange(len(codes)), 0, find_root_key(key))
    open_nodes, leaves, number = [], 1, 0

    def settle(node):
        nonlocal number
        split = None if node.depth == rules.depth else find_split(codes, lane_sums, columns, playing, node, rules)
        if split is not None:
            open_nodes.append((split, number, node))
        number += 1

    settle(root)
    while open_nodes and leaves != rules.max_leaves:
        chosen = max(open_nodes, key=lambda one: (one[0][0], -one[1])) if rules.max_leaves else open_nodes[0]
        open_nodes.remove(chosen)
        (gain, node_feature, goes_left), _, node = chosen
        node.feature, node.goes_left, node.gain = node_feature, goes_left, gain / total_weight
        left = np.isin(codes[node.rows, node_feature], list(goes_left))
        node.children = tuple(
            Node(node.rows[side], node.depth + 1, mix(node.key ^ salt), (*node.way, node_feature))
            for side, salt in zip((left, ~left), CHILD_SALTS, strict=True)
        )
        leaves += 1
        for child in node.children:
            settle(child)
    return root


def list_leaves(node):
    return [node] if node.feature < 0 else [leaf for child in node.children for leaf in list_leaves(child)]


def boost(
    X,
    labels,
    n_classes,
    alpha,
    step,
    *,
    rounds,
    depth=3,
    max_bins=255,
    l2=0.0,
    weight=None,
    categories=None,
    max_leaves=0,
    min_rows=1,
    min_share=0.0,
    smoothing=10.0,
    subsample=1.0,
    max_features=1.0,
    extra=False,
    interactions=(),
    feature_weights=(),
    seed=0,
    by_edge=False,
    begins_at_shares=True,
):
    """Yields (tree, edge, leverage, scores) per round; rows of weight 0 go down the trees but do not grow them."""
    n = len(labels)
    given = np.ones(n) if weight is None else weight
    counts = (given == np.floor(given)).all() and given.max() <= 128
    alike = ((given == given.max()) | (given == 0)).all()
    top = 1.0 if counts else given.max() if alike else 2.0 ** np.ceil(np.log2(given.max()))
    scaled = given / top
    trains = given > 0
    whole = np.array([round(w * 2**32) for w in scaled.tolist()], dtype=object)
    columns = []
    for feature in range(X.shape[1]):
        count = (categories or {}).get(feature, 0)
        columns.append(([] if count else place_thresholds(X[:, feature], np.full(n, 2**32), max_bins), count))
    codes = encode(X, columns)
    varying = [f for f in range(X.shape[1]) if len(set(codes[:, f].tolist())) > 1]
    counted = min_rows > 1
    lanes = 4 if n_classes + 1 + counted <= 4 else 8
    gradient_lanes = min(n_classes, lanes - 1 - counted)
    are_copies = weight is not None and not (given == 1).all() and (scaled == np.floor(scaled)).all()
    total = sum(whole.tolist()) * 2.0**-32
    roundings = total if are_copies else int(trains.sum())
    unit = 2.0 ** count_bits(total, roundings, n_classes, n_classes > gradient_lanes, alpha)
    hashes = []
    for row in codes:
        key = 0x9E3779B97F4A7C15
        for feature in varying:
            key = mix(key ^ int(row[feature]))
        hashes.append(key)
    singles = scaled.astype(SINGLE)
    shares = [
        max(sum(round(float(w) * 2**30) for w in singles[labels == k].tolist()) / 2**30, 0.5) / total
        for k in range(n_classes)
    ]
    start = np.array([alpha * math.log(share) if begins_at_shares else 0.0 for share in shares])
    scores = np.tile(start, (n, 1))
    for t in range(rounds):
        key = mix(seed ^ mix(t))
        drawn = np.array([mix(one ^ key) < subsample * 2**64 for one in hashes])
        copies = singles.astype(np.int64) if are_copies else np.ones(n, dtype=np.int64)
        one_copy = (singles > 0).astype(SINGLE) if are_copies else singles
        gradients, mass = find_gradients(scores, labels, alpha, unit, one_copy * drawn, copies)
        if not mass.any():
            drawn[:] = True
            gradients, mass = find_gradients(scores, labels, alpha, unit, one_copy, copies)
        if not mass.any():
            return
        lane_sums = np.zeros((n, lanes), dtype=np.int64)
        if n_classes > gradient_lanes:
            lane_key = mix(key ^ 0x2545F4914F6CDD1D)
            for i, (hashed, k) in enumerate(sorted((mix(lane_key ^ mix(k)), k) for k in range(n_classes))):
                lane_sums[:, i % gradient_lanes] += (1 if hashed & 1 else -1) * gradients[:, k]
        else:
            lane_sums[:, :n_classes] = gradients
        if counted:
            lane_sums[:, -2] = np.where(mass > 0, np.trunc(singles.astype(float) * unit + 0.5), 0).astype(np.int64)
        lane_sums[:, -1] = mass
        playing = draw_columns(varying, key, max_features, feature_weights)
        drawn_weight = sum(round(float(w) * 2**30) for w in singles[drawn].tolist()) / 2**30
        total_weight = (drawn_weight if subsample < 1 and not drawn.all() else total) * unit
        rules = Rules(
            depth,
            max_leaves,
            l2 / top * unit,
            min_share * float(mass.sum()),
            (min_rows / top if counted else 0.0) * unit * (1 - 2.0**-12),
            smoothing / top * unit,
            lanes,
            gradient_lanes,
            extra,
            interactions,
        )
        tree = grow(codes, lane_sums, columns, playing, rules, total_weight, key)
        leaves = list_leaves(tree)
        agreement = 0.0
        for leaf in leaves:
            sums = gradients[leaf.rows].sum(axis=0)
            sizes = np.abs(gradients[leaf.rows]).sum(axis=0) + rules.l2
            leaf.value = np.where(sizes > 0, sums / np.where(sizes > 0, sizes, 1.0), 0.0)
            agreement += float(sums @ leaf.value)
        edge = agreement / total_weight
        leverage = step * edge if by_edge else step
        if t == 0:
            scores = np.zeros_like(scores)
        for leaf in leaves:
            leaf.value = (start if t == 0 else 0.0) + leverage * leaf.value
            scores[leaf.rows] += leaf.value
        yield tree, edge, leverage, scores.copy()
