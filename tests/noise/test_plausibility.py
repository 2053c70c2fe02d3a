"""Which rows the search looks at, in which order, and what the plausibility adds up, at the limits."""

import numpy as np
import pytest

from helpers import transitions_twin as twin
from untwist.noise import plausibility
from untwist.noise.families import make_even_matrix
from untwist.noise.plausibility import ChosenRows, Fit, Plausibility, choose_rows, scramble_bits


def draw_rows(n=30, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_classes), n), rng.integers(n_classes, size=n), rng.uniform(0.5, 2.0, n)


def list_contents(rows):
    """What rows contain, whatever their order."""
    return sorted(zip(map(tuple, rows.twisted.tolist()), rows.labels.tolist(), rows.weight.tolist(), strict=True))


def test_all_of_a_few_rows_are_chosen_sorted_by_label_copies_as_one():
    twisted, labels, weight = draw_rows()
    rows = choose_rows(np.vstack([twisted, twisted[:5]]), np.append(labels, labels[:5]), np.append(weight, weight[:5]))
    assert (np.diff(rows.labels) >= 0).all()
    expected = ChosenRows(twisted, labels, weight * np.where(np.arange(30) < 5, 2.0, 1.0))
    for found, one in zip(list_contents(rows), list_contents(expected), strict=True):
        np.testing.assert_allclose(found[0], one[0], atol=1e-12)
        assert found[1] == one[1]
        assert found[2] == pytest.approx(one[2])


def test_rows_that_differ_in_label_alone_are_not_merged():
    twisted = np.tile([0.2, 0.8], (4, 1))
    rows = choose_rows(twisted, np.array([0, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert list_contents(rows) == [((0.2, 0.8), 0, 5.0), ((0.2, 0.8), 1, 5.0)]


def test_posteriors_of_chosen_rows_keep_off_0_and_sum_to_1():
    rows = choose_rows(np.array([[0.0, 1.0], [0.5, 0.5], [0.00005, 0.9]]), np.array([0, 1, 1]), np.ones(3))
    np.testing.assert_allclose(rows.twisted.sum(axis=1), 1.0)
    assert sorted(rows.twisted[:, 0].tolist()) == pytest.approx([1e-4 / 1.0001, 1e-4 / 0.9001, 0.5])


@pytest.mark.parametrize(("n_classes", "most"), [(2, 6000), (40, 3250), (100, 2500)])
def test_so_many_rows_are_chosen_and_stand_for_all(n_classes, most):
    rng = np.random.default_rng(0)
    n = 7000
    twisted, labels = rng.random((n, n_classes)) + 0.01, rng.integers(n_classes, size=n)
    twisted /= twisted.sum(axis=1, keepdims=True)
    rows = choose_rows(twisted, labels, np.ones(n))
    assert len(rows.labels) == most
    # As many rows as were looked at count, and weights of any scale count for as many as there are.
    assert rows.weight.sum() == pytest.approx(most)
    assert choose_rows(twisted, labels, np.full(n, 1e-3)).weight.sum() == pytest.approx(most)
    assert choose_rows(twisted, labels, np.full(n, 1.2)).weight.sum() == pytest.approx(1.2 * most)
    assert choose_rows(twisted, labels, np.full(n, 9.0)).weight.sum() == pytest.approx(10_000)
    # Which rows these are does not depend on their order, nor on that of the classes.
    order, columns = rng.permutation(n), rng.permutation(n_classes)
    moved = choose_rows(twisted[order][:, columns], np.argsort(columns)[labels[order]], np.ones(n))
    np.testing.assert_allclose(
        np.sort(moved.twisted.max(axis=1)), np.sort(rows.twisted.max(axis=1)), rtol=1e-12, atol=0
    )


def test_rows_of_one_code_are_sorted_by_all_that_they_contain(monkeypatch):
    twisted, labels, weight = draw_rows()
    twisted[10:20] = twisted[:10]
    labels[10:15] = labels[:5]
    monkeypatch.setattr(plausibility, "scramble_bits", np.zeros_like)  # All codes are equal.
    order = np.random.default_rng(1).permutation(30)
    one = plausibility._merge_copies(twisted, labels, weight)
    other = plausibility._merge_copies(twisted[order], labels[order], weight[order])
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(one[1]) == 20 + np.count_nonzero(labels[15:20] != labels[5:10])


def test_bits_are_scrambled_as_by_splitmix64():
    # The first numbers of the generator that starts at 1234567, as its authors publish them.
    state = np.uint64(1234567)
    numbers = []
    with np.errstate(over="ignore"):
        for step in range(3):
            numbers.append(int(scramble_bits(np.array([state + np.uint64(step) * np.uint64(0x9E3779B97F4A7C15)]))[0]))
    assert numbers == [6457827717110365317, 3203168211198807973, 9817491932198370423]


# ---- what is added up ----


def test_what_a_fit_leaves_unsure_and_gets_wrong_are_shares_of_weight():
    twisted = np.array([[0.9, 0.1], [0.5, 0.5], [0.3, 0.7], [0.05, 0.95]])
    objective = Plausibility(ChosenRows(twisted, np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0])))
    nothing = Fit(0.0, np.eye(2), np.zeros(2), np.zeros(2), 0.0)
    assert objective.find_unsure_share(nothing) == pytest.approx(0.5)
    steep = Fit(0.0, np.eye(2), np.full(2, 1.0), np.zeros(2), 0.0)
    assert objective.find_unsure_share(steep) == pytest.approx(0.2)


def make_fit(matrix, seed=4):
    """A fit with slopes and offsets."""
    rng = np.random.default_rng(seed)
    n_classes = len(matrix)
    return Fit(0.0, np.asarray(matrix), rng.normal(0.0, 0.2, n_classes), rng.normal(0.0, 0.2, n_classes), 0.0)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_overlap_of_classes_and_the_likelihood_of_labels_are_those_of_the_slow_twin(n_classes):
    twisted, labels, weight = draw_rows(60, n_classes)
    objective = Plausibility(ChosenRows(twisted, np.sort(labels), weight))
    fit = make_fit(make_even_matrix(n_classes, 0.25))
    slopes = np.exp(fit.log_slopes)
    clean = [twin.untwist_row(q, fit.matrix, slopes, fit.offsets, objective.least) for q in twisted]
    np.testing.assert_allclose(objective.clean(fit), clean)
    overlap = objective.find_overlap(fit)
    np.testing.assert_allclose(overlap, twin.find_overlap(objective.rows, clean, objective.least))
    np.testing.assert_allclose(overlap, overlap.T)
    assert objective.find_likelihood(fit) == pytest.approx(twin.find_likelihood(objective.rows, clean, fit.matrix))


def test_classes_overlap_wholly_where_features_say_nothing_and_not_at_all_where_they_say_all():
    nothing = Fit(0.0, np.eye(3), np.zeros(3), np.zeros(3), 0.0)
    labels, weight = np.repeat([0, 1, 2], [10, 20, 30]), np.linspace(0.5, 1.5, 60)
    # Of the first two classes rows bear nothing, and the third one is told apart.
    twisted = np.where(labels[:, None] == 2, [0.002, 0.002, 0.996], [0.4, 0.596, 0.004])
    overlap = Plausibility(ChosenRows(twisted, labels, weight)).find_overlap(nothing)
    share = weight[labels < 2].sum() / weight.sum()
    assert overlap[0, 1] == pytest.approx(1.0 / share, rel=1e-2)
    assert overlap[0, 2] == overlap[1, 2] == 0.0  # The floor of posteriors does not count.
    alike = Plausibility(ChosenRows(np.tile([0.2, 0.3, 0.5], (60, 1)), labels, weight)).find_overlap(nothing)
    np.testing.assert_allclose(alike, 1.0)


def test_a_class_that_no_row_belongs_to_is_told_apart_from_none():
    nothing = Fit(0.0, np.eye(3), np.zeros(3), np.zeros(3), 0.0)
    twisted = np.repeat([[0.99, 0.005, 0.005], [0.005, 0.99, 0.005]], 20, axis=0)
    overlap = Plausibility(ChosenRows(twisted, np.repeat([0, 1], 20), np.ones(40))).find_overlap(nothing)
    assert overlap[0, 1] == overlap[1, 0] == 0.0
    np.testing.assert_array_equal(overlap[2], 1.0)
    np.testing.assert_array_equal(overlap[:, 2], 1.0)


def test_what_features_leave_unexplained_is_that_of_classes_by_the_root_of_their_shares():
    rows = ChosenRows(*draw_rows())
    rows = ChosenRows(rows.twisted, np.sort(rows.labels), rows.weight)
    objective = Plausibility(rows)
    clean = np.random.default_rng(1).dirichlet(np.ones(3), 30)
    share = rows.weight / rows.weight.sum()
    roots = np.sqrt([share[rows.labels == k].sum() for k in range(3)])
    expected = 0.0
    for k in range(3):
        mean = share @ clean[:, k]
        expected += roots[k] / roots.sum() * (share @ (clean[:, k] * (1 - clean[:, k]))) / (mean * (1 - mean))
    found, by_mean, by_square = objective.find_unexplained(clean.T)
    assert found == pytest.approx(expected)
    # The gradients are those of a class whose posterior rises in one row.
    for k, row in ((0, 3), (2, 17)):
        moved = clean.T.copy()
        moved[k, row] += 1e-6
        slope = (objective.find_unexplained(moved)[0] - found) / 1e-6
        assert share[row] * (by_mean[k] + 2 * clean[row, k] * by_square[k]) == pytest.approx(slope, rel=1e-4)
    # A class that no row is of has next to no variance, and leaves nothing to explain.
    gone = np.vstack([np.full(30, 1.0), np.zeros((2, 30))])
    value, by_mean, by_square = objective.find_unexplained(gone)
    assert value == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(by_mean, roots / roots.sum() / 1e-6)
    np.testing.assert_allclose(by_square, -by_mean)


def test_few_rows_are_worth_less_to_explain_and_clean_posteriors_come_nearer_to_0_where_classes_are_many():
    twisted, labels, _ = draw_rows(30)
    objective = Plausibility(ChosenRows(twisted, np.sort(labels), np.full(30, 1.0)))
    assert objective.worth_of_explaining == pytest.approx(6.0 * 10 / 20)
    assert Plausibility(ChosenRows(twisted, np.sort(labels), np.full(30, 9.0))).worth_of_explaining == 6.0
    assert objective.least == 0.005
    assert Plausibility(ChosenRows(np.full((2, 20), 0.05), np.array([0, 1]), np.ones(2))).least == 0.0025
    np.testing.assert_allclose(objective.shares, 1 / 30)
    assert objective.rows_per_class == 10.0


def test_rates_beyond_what_the_surest_rows_allow_are_dear():
    twisted, labels, weight = draw_rows(40)
    objective = Plausibility(ChosenRows(twisted, np.sort(labels), weight[:40]))
    matrix, zeros = make_even_matrix(3, 0.3), np.zeros(3)
    objective.caps = np.array([0.25, 0.5, 0.3])
    dear = objective.evaluate(matrix, zeros, zeros)[0]
    objective.caps = np.ones(3)
    assert objective.evaluate(matrix, zeros, zeros)[0] - dear == pytest.approx((0.05 / 0.02) ** 2 / 2)


def test_labels_that_follow_from_features_among_few_or_unsure_rows_contradict_nothing():
    n = 40
    first = np.linspace(0.6, 0.95, n)
    twisted = np.column_stack([first, 1.0 - first])
    labels = (first < 0.7).astype(int)
    order = np.argsort(labels, kind="stable")
    twisted, labels = twisted[order], labels[order]
    matrix = np.array([[0.7, 0.3], [0.0, 1.0]])
    fit = Fit(0.0, matrix, np.full(2, 0.5), np.zeros(2), 0.0)
    assert Plausibility(ChosenRows(twisted, labels, np.ones(n))).find_contradiction(fit) > 5.0
    # Fewer than ten rows by weight, small entries, labels the other way round, equal log-odds: none says anything.
    assert Plausibility(ChosenRows(twisted, labels, np.full(n, 0.2))).find_contradiction(fit) == 0.0
    small = fit._replace(matrix=np.array([[0.96, 0.04], [0.0, 1.0]]))
    assert Plausibility(ChosenRows(twisted, labels, np.ones(n))).find_contradiction(small) == 0.0
    turned = np.argsort(first > 0.85, kind="stable")
    surest = ChosenRows(np.column_stack([first, 1.0 - first])[turned], (first > 0.85)[turned].astype(int), np.ones(n))
    assert Plausibility(surest).find_contradiction(fit) == 0.0
    alike = np.tile([0.9, 0.1], (n, 1))
    assert Plausibility(ChosenRows(alike, labels, np.ones(n))).find_contradiction(fit) == 0.0
