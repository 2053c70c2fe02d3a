"""The compiled engine's rules in plain Python: the slow, obviously right twin.

Bins by distinct values or equal weight, fixed-point weights, exact integer sums; ties to the smaller feature, then
missing values to the right, then the smaller code; rows, columns and splits drawn by the hashes that the engine uses.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np


def count_weight_bits(total_weight, rows):
    return next(bits for bits in range(24, 16, -1) if bits == 17 or total_weight * 2**bits + rows / 2 < 2**31)


def place_thresholds(values, weights, max_bins):
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


MASK = 2**64 - 1
SAMPLE = 100_000  # About this many rows place the thresholds.
DRAWN = 2048  # This many values of a column are counted in full where the sample shows few.


def hash_number(x):
    bits = 0 if np.isnan(x) else int(np.float64(x + 0.0).view(np.uint64))
    bits = ((bits ^ (bits >> 32)) * 0xBF58476D1CE4E5B9) & MASK
    return ((bits ^ (bits >> 29)) * 0x94D049BB133111EB) & MASK


def sample_thresholds(X, weights, max_bins):
    """The thresholds of every column of any number of rows: of many, a sample drawn by contents places them."""
    X, weights = X[weights > 0].astype(float) + 0.0, weights[weights > 0]
    if len(X) <= SAMPLE:
        return [place_thresholds(column, weights, max_bins) for column in X.T]
    hashes = np.array([[hash_number(x) for x in row] for row in X.tolist()], dtype=object)
    varies = [f for f in range(X.shape[1]) if len(set(hashes[:, f])) > 1]
    keep = MASK // len(X) * SAMPLE
    drawn = np.array([mix(sum(row) & MASK) <= keep for row in hashes[:, varies].tolist()])
    cuts = []
    for column, column_hashes in zip(X.T, hashes.T, strict=True):
        total = {}
        for x, weight in zip(column[drawn].tolist(), weights[drawn].tolist(), strict=True):
            total[x] = total.get(x, 0) + weight
        if len([x for x in total if not np.isnan(x)]) <= max_bins:
            lowest = set(sorted(set(column_hashes[~np.isnan(column)]))[:DRAWN])
            complete = {}
            for x, h, weight in zip(column.tolist(), column_hashes, weights.tolist(), strict=True):
                if h in lowest and not np.isnan(x):
                    complete[x] = complete.get(x, 0) + weight
            total |= complete
        values = np.array(list(total), dtype=float)
        cuts.append(place_thresholds(values, np.array(list(total.values()), dtype=object), max_bins))
    return cuts


def mix(x):
    """One step of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


#: The keys of the two children of a node are hashes of its own key and these.
CHILD_SALTS = (0x6C65667420636869, 0x7269676874206368)


def scale_down(hashed, end):
    """Return a whole number below `end`."""
    return ((hashed >> 32) * end) >> 32


def find_root_key(round_key):
    """Return what the root of a tree draws its splits by."""
    return mix(round_key ^ 0x73706C6974206F66)


def draw_hash(node_key, place):
    """Return what the split of a column is drawn by, which has this place among those of the tree."""
    return mix(node_key ^ mix(place))


def draw_one(options, hashed):
    """Return the option that is drawn, or none where there are none. Without a hash nothing is drawn, and all stay."""
    if hashed is None or not options:
        return options
    return [options[scale_down(hashed, len(options))]]


def may_split(groups, way, feature):
    """Tell whether some group of columns has all that split on the way here, and this one; all may without groups."""
    return not groups or any({*way, feature} <= set(group) for group in groups)


def draw_columns(varying, key, max_features, weights):
    """Return the columns of a round: those with the smallest hashes, of weighted ones with the largest u ** (1 / w)."""
    if max_features >= 1 or len(varying) < 2:
        return varying
    hashes = {feature: mix(mix(key ^ 0x5851F42D4C957F2D) ^ mix(i)) for i, feature in enumerate(varying)}
    ranked = sorted(hashes, key=hashes.get)
    if weights:
        shares = {feature: 1 - Fraction(hashed >> 11, 2**53) for feature, hashed in hashes.items()}
        possible = [feature for feature in varying if weights[feature] > 0]
        ranked = sorted(possible, key=lambda feature: -np.log(float(shares[feature])) / weights[feature])
    return sorted(ranked[: max(1, int(np.ceil(max_features * len(varying))))])


@dataclass(frozen=True)
class Rules:
    """What the engine calls settings; weights and rows in the unit of the fixed-point weights and of sample weights."""

    depth: int = 3
    max_leaves: int = 0
    l2: Fraction = Fraction(0)
    min_share: Fraction = Fraction(0)
    min_rows: Fraction = Fraction(0)
    smoothing: Fraction = Fraction(0)
    monotone: tuple = ()
    extra: bool = False
    interactions: tuple = ()


@dataclass
class Node:
    """A leaf until it has a feature; `left_if` says of a value whether it goes left, `way` which columns led here."""

    rows: np.ndarray
    depth: int
    bounds: tuple
    key: int
    way: tuple = ()
    value: Fraction = Fraction(0)
    feature: int = -1
    left_if: object = None
    children: tuple = ()


def clamp(value, bounds):
    low, high = bounds
    value = value if low is None or value > low else low
    return value if high is None or value < high else high


def leaf_value(G, W, rules, bounds):
    return clamp(Fraction(G) / (W + rules.l2), bounds)


def worth(G, W, rules, bounds):
    value = leaf_value(G, W, rules, bounds)
    return value * (2 * G - (W + rules.l2) * value)


def list_candidates(column, cuts, categories, y, q, rules, hashed):
    """(rows that go left, what says so of any value), in the order in which ties are broken.

    With a hash only one of the splits that tell the node's values apart is a candidate.
    """
    missing = np.isnan(column)
    W = int(q.sum())
    heavier = lambda left: 2 * int(q[left].sum()) >= W  # noqa: E731
    if categories:
        groups = {}
        for code in [*range(categories), None]:
            rows = missing if code is None else column == code
            if q[rows].sum():
                mean = Fraction(int((q * y)[rows].sum())) / (int(q[rows].sum()) + rules.l2 + rules.smoothing)
                groups[code] = (float(mean), categories if code is None else code, rows)
        order = sorted(groups, key=lambda code: groups[code][:2])
        for count in draw_one(range(1, len(order)), hashed):
            left = np.logical_or.reduce([groups[code][2] for code in order[:count]])
            side = {code: i < count for i, code in enumerate(order)}
            unseen = heavier(left)
            yield left, lambda x, side=side, unseen=unseen: side.get(None if np.isnan(x) else int(x), unseen)
        return
    lost = (missing & (q > 0)).any()
    limits = [*cuts, np.inf]
    if hashed is not None:
        codes = [sum(cut < x for cut in cuts) for x in column[~missing & (q > 0)].tolist()]
        limits = draw_one(limits[min(codes) : max(codes) + lost], hashed) if codes else []
    for missing_left in (False, True) if lost else (False,):
        for limit in limits:
            left = np.where(missing, missing_left, column <= limit)
            side = missing_left if lost else heavier(left)
            yield left, lambda x, limit=limit, side=side: bool(side) if np.isnan(x) else x <= limit


def find_best_split(X, columns, y, q, sample_weight, node, rules, playing):
    rows, total_weight = node.rows, int(q.sum())
    y, q, sample_weight = y[rows], q[rows], sample_weight[rows]
    G, W, N = int((q * y).sum()), int(q.sum()), sum(sample_weight.tolist())
    none = worth(G, W, rules, node.bounds)
    best, found = none + Fraction(1, 10**12) * W, None
    for place, feature in enumerate(playing):
        if not may_split(rules.interactions, node.way, feature):
            continue
        cuts, categories = columns[feature]
        hashed = draw_hash(node.key, place) if rules.extra else None
        sign = rules.monotone[feature] if rules.monotone else 0
        for left, left_if in list_candidates(X[rows, feature], cuts, categories, y, q, rules, hashed):
            G_left, W_left, N_left = int((q * y)[left].sum()), int(q[left].sum()), sum(sample_weight[left].tolist())
            too_light = min(W_left, W - W_left) < rules.min_share * total_weight
            if W_left in (0, W) or too_light or min(N_left, N - N_left) < rules.min_rows:
                continue
            values = [leaf_value(*side, rules, node.bounds) for side in ((G_left, W_left), (G - G_left, W - W_left))]
            if sign * (values[1] - values[0]) < 0:
                continue
            total = worth(G_left, W_left, rules, node.bounds) + worth(G - G_left, W - W_left, rules, node.bounds)
            if total > best * (1 + Fraction(1, 10**13)):
                best, found = total, (feature, left, left_if, values)
    return None if found is None else (best - none, found)


def grow(X, columns, y, q, sample_weight, rules, playing, key):
    """A tree for integer weights q and sample weights `sample_weight`, over the rows that have a weight."""
    root = Node(np.flatnonzero(q > 0), 0, (None, None), find_root_key(key))
    made, open_nodes, leaves = [], [], 1

    def settle(node):
        rows = node.rows
        node.value = leaf_value(int((q * y)[rows].sum()), int(q[rows].sum()), rules, node.bounds)
        made.append(node)
        if node.depth < rules.depth and abs(int((q * y)[rows].sum())) < int(q[rows].sum()):
            split = find_best_split(X, columns, y, q, sample_weight, node, rules, playing)
            if split is not None:
                open_nodes.append((split, len(made), node))

    settle(root)
    while open_nodes and leaves != rules.max_leaves:
        chosen = max(open_nodes, key=lambda entry: (entry[0][0], -entry[1])) if rules.max_leaves else open_nodes[0]
        open_nodes.remove(chosen)
        (_, (feature, left, left_if, values)), _, node = chosen
        low, high = node.bounds
        middle, sign = sum(values) / 2, rules.monotone[feature] if rules.monotone else 0
        bounds = [(low, high)] * 2
        if sign:
            bounds = [(low, middle), (middle, high)][::sign]
        node.feature, node.left_if = feature, left_if
        node.children = tuple(
            Node(node.rows[side], node.depth + 1, limits, mix(node.key ^ salt), (*node.way, feature))
            for side, limits, salt in zip((left, ~left), bounds, CHILD_SALTS, strict=True)
        )
        leaves += 1
        for child in node.children:
            settle(child)
    return root


def predict(tree, row):
    while tree.feature >= 0:
        tree = tree.children[0 if tree.left_if(row[tree.feature]) else 1]
    return float(tree.value)


def encode(X, columns):
    """Codes: numbers of thresholds below, categories, and one more for missing values."""
    codes = np.zeros(X.shape, dtype=int)
    for feature, (cuts, categories) in enumerate(columns):
        x = X[:, feature]
        known = np.nan_to_num(x).astype(int) if categories else np.searchsorted(cuts, x, side="left")
        codes[:, feature] = np.where(np.isnan(x), categories or len(cuts) + 1, known)
    return codes


def boost(
    X,
    y,
    link,
    step_size,
    *,
    rounds,
    depth=3,
    max_bins=255,
    l2=0.0,
    sample_weight=None,
    categories=None,
    max_leaves=0,
    min_rows=1,
    min_share=0.0,
    smoothing=10.0,
    monotone=(),
    subsample=1.0,
    max_features=1.0,
    extra=False,
    interactions=(),
    feature_weights=(),
    seed=0,
):
    """Yields (tree, edge, scores) per round."""
    X = X.astype(float)
    given = np.ones(len(y)) if sample_weight is None else sample_weight
    counts = (given == np.floor(given)).all() and given.max() <= 128
    same = (given == given.max()).all()
    top = 1.0 if counts else given.max() if same else 2.0 ** np.ceil(np.log2(given.max()))
    weight = given / top
    whole = np.array([round(w * 2**32) for w in weight.tolist()], dtype=object)
    columns = []
    for feature in range(X.shape[1]):
        count = (categories or {}).get(feature, 0)
        columns.append(([] if count else place_thresholds(X[:, feature], whole, max_bins), count))
    codes = encode(X, columns)
    varying = [f for f in range(X.shape[1]) if len(set(codes[:, f].tolist())) > 1]
    unit = 2 ** count_weight_bits(sum(whole) * 2**-32, given.sum() if counts else len(y))
    scale = Fraction(unit) / Fraction(float(top))
    rules = Rules(
        depth,
        max_leaves,
        Fraction(l2) * scale,
        Fraction(min_share),
        Fraction(min_rows if min_rows > 1 else 0),
        Fraction(smoothing) * scale,
        tuple(monotone),
        extra,
        interactions,
    )
    hashes = []
    for row in codes:
        key = 0x9E3779B97F4A7C15
        for feature in varying:
            key = mix(key ^ int(row[feature]))
        hashes.append(key)
    scores = np.zeros(len(y))
    for t in range(rounds):
        w = link.weights(y * scores)
        q = np.floor(w * unit + 0.5) * weight if counts else np.floor(w * weight * unit + 0.5)
        q = q.astype(np.int64)
        if not q.any():
            return
        key = mix(seed ^ mix(t))
        drawn = np.array([mix(one ^ key) < subsample * 2**64 for one in hashes])
        if not q[drawn].any():
            drawn[:] = True
        q[~drawn] = 0
        playing = draw_columns(varying, key, max_features, feature_weights)
        tree = grow(X, columns, y.astype(np.int64), q, given, rules, playing, key)
        h = np.array([predict(tree, row) for row in X])
        edge = float((q * y * h).sum() / (float(sum(whole[drawn])) * 2**-32 * unit))
        scores = scores + step_size * edge * h
        yield tree, edge, scores
