"""The estimates of earlier papers: Menon's of the rates, and two of alpha that need clean labels."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.tree import DecisionTreeClassifier

from untwist.noise import menon, original_learned, taylor
from untwist.noise.paper import _menon_alpha
from untwist.twists import alpha_star


def count_by_leaf(X, y, others=None, labels_of_others=None, seed=0):
    """(rows, positives) of every leaf that these rows grow, counted one row at a time, of other rows if given."""
    n = len(y)
    tree = DecisionTreeClassifier(
        criterion="entropy",
        min_samples_leaf=math.ceil(math.sqrt(n)),
        max_leaf_nodes=math.ceil(math.log(n)),
        random_state=seed,
    ).fit(X, y)
    counts = {}
    counted = zip(X, y, strict=True) if others is None else zip(others, labels_of_others, strict=True)
    for row, label in counted:
        leaf = int(tree.apply(row[None])[0])
        rows, positives = counts.get(leaf, (0, 0))
        counts[leaf] = rows + 1, positives + int(label)
    return list(counts.values())


def draw_overlapping_rows(n=300, rate=0.15, seed=0, gap=1.5):
    rng = np.random.default_rng(seed)
    clean = rng.random(n) < 0.4
    X = rng.normal(size=(n, 3)) + gap * clean[:, None]
    return X, (clean ^ (rng.random(n) < rate)).astype(int)


@pytest.mark.parametrize("seed", range(4))
def test_menon_reads_the_extreme_leaves_of_one_entropy_tree(seed):
    X, y = draw_overlapping_rows(seed=seed)
    found = menon(X, y)
    shares = [positives / rows for rows, positives in count_by_leaf(X, y)]
    assert found.rate_neg == pytest.approx(min(shares))
    assert found.rate_pos == pytest.approx(1 - max(shares))
    assert found.rate == pytest.approx(math.sqrt(min(shares) * (1 - max(shares))))
    assert found.eta_mean == pytest.approx(sum(shares) / len(shares))
    p, mean = found.rate, found.eta_mean
    clean = (mean - p) / (1 - 2 * p)
    alpha = math.log(clean / (1 - clean)) / math.log(mean / (1 - mean))
    assert found.alpha == pytest.approx(max(1.0, alpha) + 0.01)
    again = menon(X.tolist(), np.where(y == 1, "spam", "ham").tolist())
    assert (again.alpha, again.interval_neg) == (found.alpha, found.interval_neg)


@pytest.mark.parametrize("seed", range(4))
def test_menon_intervals_are_exact_binomial_ones_of_leaves_that_other_rows_grew(seed):
    X, y = draw_overlapping_rows(seed=seed)
    found = menon(X, y)
    by_content = sorted(range(len(y)), key=lambda row: (*X[row][::-1], y[row]))
    drawn = np.random.RandomState(0).permutation(by_content)
    half = (len(y) + 1) // 2
    leaves = count_by_leaf(X[np.sort(drawn[:half])], y[np.sort(drawn[:half])], X[drawn[half:]], y[drawn[half:]])
    tail = 0.025 / len(leaves)

    def least(rows, positives):
        """The lowest share under which so many positives are not too many."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if binom.sf(positives - 1, rows, middle) > tail else (middle, high)
        return low

    lower = [least(*leaf) if leaf[1] else 0.0 for leaf in leaves]
    upper = [1 - least(rows, rows - positives) if positives < rows else 1.0 for rows, positives in leaves]
    # They reach as far as the rates of the tree that all rows grew.
    neg, pos = found.rate_neg, found.rate_pos
    assert found.interval_neg == pytest.approx((min(*lower, neg), max(min(upper), neg)), abs=1e-9)
    assert found.interval_pos == pytest.approx((min(1 - max(upper), pos), max(1 - max(lower), pos)), abs=1e-9)
    assert found.found == (max(found.interval_neg[0], found.interval_pos[0]) > 0)


@pytest.mark.slow
def test_menon_intervals_hold_the_truth_of_many_sharp_rows():
    # Counted on the rows that grew the tree, four of these ten intervals of the first class left it out.
    covered = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50_000, 2))
        found = menon(X, (X[:, 0] > 0) ^ (rng.random(50_000) < 0.2))
        covered += [low <= 0.2 <= high for low, high in (found.interval_neg, found.interval_pos)]
    assert sum(covered) >= 18


def test_menon_does_not_depend_on_the_order_of_rows():
    X, y = draw_overlapping_rows()
    order = np.random.default_rng(1).permutation(len(y))
    assert menon(X[order], y[order]) == menon(X, y)


def test_menon_excludes_no_rate_where_no_row_is_left_to_count():
    found = menon([[1.0]], [0])
    assert (found.interval_neg, found.interval_pos) == ((0.0, 1.0), (0.0, 1.0))


def test_menon_grows_with_the_noise_and_finds_none_in_separable_data():
    rates = [menon(*draw_overlapping_rows(2000, rate, gap=4.0)).rate for rate in (0.0, 0.2, 0.3, 0.4)]
    assert (np.diff(rates) > 0).all()
    assert not menon(*draw_overlapping_rows(2000, 0.0, gap=9.0)).found
    assert menon(*draw_overlapping_rows(2000, 0.2, gap=4.0)).found


@pytest.mark.parametrize(
    ("X", "y", "rates", "alpha"),
    [
        ([[1.0]], [1], (0.0, 1.0), 1.0),  # A class that is alone counts as the first.
        ([[1.0]], [0], (0.0, 1.0), 1.0),
        (np.arange(40.0)[:, None], np.ones(40), (0.0, 1.0), 1.0),
        (np.zeros((40, 2)), np.arange(40) % 2, (0.5, 0.5), 1.0),
        (np.arange(40.0)[:, None], np.arange(40) >= 20, (0.0, 0.0), 1.01),
    ],
    ids=["one row", "one row of 0", "one class", "constant", "pure leaves, mean one half"],
)
def test_menon_where_the_formula_says_nothing(X, y, rates, alpha):
    found = menon(X, y)
    assert (found.rate_neg, found.rate_pos, found.alpha) == (*rates, alpha)
    assert not found.found
    assert np.isfinite([*found.interval_neg, *found.interval_pos, found.rate, found.eta_mean]).all()


def test_menon_alpha_at_its_limits():
    assert _menon_alpha(0.2, 0.5, 100) == pytest.approx(1 / 0.6 + 0.01)
    for mean in (0.5 - 1e-6, 0.5 + 1e-6):
        assert _menon_alpha(0.2, mean, 100) == pytest.approx(1 / 0.6 + 0.01, rel=1e-4)
    # Beyond what noise of .2 leaves, the rule of succession is the limit.
    for mean, clean in ((0.1, 1 / 102), (0.95, 101 / 102)):
        assert _menon_alpha(0.2, mean, 100) == pytest.approx(alpha_star(clean, mean) + 0.01)
    assert _menon_alpha(0.0, 0.3, 100) == pytest.approx(1.01)  # Without noise it is 1, and 1 / 100 more.
    assert _menon_alpha(0.5, 0.3, 100) == _menon_alpha(0.1, 0.0, 9) == _menon_alpha(0.1, 1.0, 9) == 1.0


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(3), [0, 1, 0], r"X must be a table with a row per label, got shapes \(3,\)"),
        (np.zeros((3, 1)), [0, 1], "X must be a table with a row per label"),
        (np.zeros((0, 1)), [], "X must be a table with a row per label"),
        (np.zeros((3, 1)), [0, 1, 2], "y must have at most two classes, got 3"),
    ],
)
def test_menon_names_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        menon(X, y)


def test_menon_takes_a_row_of_weight_0_for_an_absent_one():
    X, y = draw_overlapping_rows()
    weight = (np.arange(300) % 3 > 0).astype(float)
    assert menon(X, y, sample_weight=weight) == menon(X[weight > 0], y[weight > 0])


@pytest.mark.parametrize(
    "weight", [-np.ones(300), np.zeros(300), np.ones(299), np.full(300, math.inf), np.full(300, math.nan)]
)
def test_menon_refuses_bad_weights(weight):
    with pytest.raises(ValueError, match="sample_weight must be"):
        menon(*draw_overlapping_rows(), sample_weight=weight)


def test_menon_takes_a_weight_for_so_many_rows():
    X, y = draw_overlapping_rows()
    weight = 1 + np.arange(300) % 3
    weighted = menon(X, y, sample_weight=weight)
    repeated = menon(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # Which rows the intervals are counted on is drawn by row.
    for name in ("rate_neg", "rate_pos", "rate", "eta_mean", "alpha"):
        assert getattr(weighted, name) == getattr(repeated, name)


# ---- the two that need clean labels ----


def make_labels(true_pos, false_pos, true_neg, false_neg):
    counts = (true_pos, false_pos, true_neg, false_neg)
    return np.repeat([1, 0, 0, 1], counts), np.repeat([1, 1, 0, 0], counts)


def odds(p):
    return math.log(p / (1 - p))


MATRICES = [(30, 10, 50, 10), (5, 1, 70, 24), (60, 3, 20, 17), (1, 0, 9, 0), (40, 20, 20, 5)]


@pytest.mark.parametrize("matrix", MATRICES, ids=str)
def test_original_learned_is_its_formula_by_text_and_by_script(matrix):
    tp, fp, tn, fn = matrix
    eta = (fn + tp) / sum(matrix)
    by_text = (fp / (tp + fp) + fn / (fn + tn)) / 2
    by_script = (fn / (fn + tp) + fp / (fp + tn)) / 2
    for by, p in (("text", by_text), ("script", by_script)):
        expected = odds(eta) / odds(eta * (1 - p) + (1 - eta) * p)
        assert original_learned(*make_labels(*matrix), by=by) == pytest.approx(expected)
    assert original_learned(*make_labels(*matrix)) == original_learned(*make_labels(*matrix), by="text")


@pytest.mark.parametrize("matrix", MATRICES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_taylor_is_its_formula_and_first_order_in_the_rate(matrix, rate):
    tp, fp, _, _ = matrix
    eta = (fp + tp) / sum(matrix)
    slope = 2.0 if eta == 0.5 else (1 - 2 * eta) / ((eta - 1) * eta * odds(eta))
    assert taylor(*make_labels(*matrix), rate=rate) == pytest.approx(1 + slope * rate)
    assert taylor(*make_labels(*matrix)) == taylor(*make_labels(*matrix), rate=0.1)
    if eta != 0.5:
        small = 1e-6
        exact = odds(eta) / odds(eta * (1 - small) + (1 - eta) * small)
        assert slope == pytest.approx((exact - 1) / small, rel=1e-3)


def test_taylor_at_one_half_is_the_limit():
    assert taylor(*make_labels(5, 5, 5, 5), rate=0.2) == 1.4
    assert taylor(*make_labels(50_001, 0, 50_000, 0), rate=0.2) == pytest.approx(1.4, rel=1e-4)


def test_original_learned_at_one_half_is_the_limit():
    # Here p is 0.2, and half of the labels are positive.
    assert original_learned(*make_labels(40, 10, 40, 10)) == pytest.approx(1 / 0.6)


@pytest.mark.parametrize(
    ("matrix", "rate", "eta"),
    [((0, 0, 8, 2), 0.1, 0.2), ((0, 0, 9, 0), 0.0, 1 / 11), ((9, 0, 0, 0), 0.0, 10 / 11), ((0, 1, 8, 0), 0.5, 1 / 11)],
    ids=str,
)
def test_empty_cells_count_as_no_error_and_extremes_as_the_rule_of_succession(matrix, rate, eta):
    twisted_eta = eta * (1 - rate) + (1 - eta) * rate
    expected = odds(eta) / odds(twisted_eta) if rate < 0.5 else math.inf
    assert abs(original_learned(*make_labels(*matrix))) == pytest.approx(expected)
    assert math.isfinite(taylor(*make_labels(*matrix)))


def test_bad_confusions_are_named():
    for call, message in [
        (lambda: original_learned([0, 1], [0]), "y_clean and y_predicted must be one per row"),
        (lambda: original_learned([], []), "y_clean and y_predicted must be one per row"),
        (lambda: original_learned([0, 2], [0, 1]), "y_clean and y_predicted must be 0 or 1"),
        (lambda: taylor([0, 1], [0, "a"]), "y_clean and y_predicted must be 0 or 1"),
        (lambda: original_learned([0, 1], [0, 1], by="code"), 'by must be "text" or "script", got \'code\''),
        (lambda: taylor([0, 1], [0, 1], rate=1.5), r"rate must lie in \[0, 1\], got 1.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
