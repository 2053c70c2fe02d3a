"""The search for transition matrices: where it begins, how far it goes, and that it ends at a peak."""

import numpy as np
import pytest
from scipy.special import logit

from untwist.noise import climbing
from untwist.noise.climbing import climb, find_clean_fit, search_matrices
from untwist.noise.families import FreeMatrices, KnownMatrix, TiedMatrices, make_even_matrix
from untwist.noise.plausibility import ChosenRows, Fit, Plausibility


def draw_plausibility(n_rows=60, n_classes=3, seed=0):
    """Rows with ties, weights of many sizes and labels that mostly follow the posteriors."""
    rng = np.random.default_rng(seed)
    twisted = rng.dirichlet(np.full(n_classes, 0.4), n_rows).round(2) + 0.01
    twisted /= twisted.sum(axis=1, keepdims=True)
    labels = np.sort(np.where(rng.random(n_rows) < 0.7, twisted.argmax(axis=1), rng.integers(n_classes, size=n_rows)))
    return Plausibility(ChosenRows(twisted, labels, rng.uniform(0.3, 2.0, n_rows)))


def list_pairs(n_classes):
    """Every class with every other one."""
    return ~np.eye(n_classes, dtype=bool)


# ---- corners ----


def find_corner_slowly(rows, each, part, least_rows):
    """The mean of posterior and label over rows that are as sure of a class as the last one that is needed."""
    n_classes = rows.twisted.shape[1]
    enough = max(10.0, part * sum(w for w, label in zip(rows.weight, rows.labels, strict=True) if label == each))
    falling = sorted(range(len(rows.labels)), key=lambda row: -rows.twisted[row, each])
    taken, weight = [], 0.0
    for row in falling:
        taken.append(row)
        weight += rows.weight[row]
        if weight >= enough:
            break
    surest = [row for row in falling if rows.twisted[row, each] >= rows.twisted[taken[-1], each]]
    total = sum(rows.weight[row] for row in surest)
    corner = np.zeros(n_classes)
    for row in surest:
        corner += rows.weight[row] / total * (rows.twisted[row] + np.eye(n_classes)[rows.labels[row]]) / 2
    if least_rows > 0:
        corner = np.array([0.0 if value < max(0.02, least_rows / enough) else value for value in corner])
    corner[each] = max(corner[each], 0.02)
    return corner / corner.sum()


@pytest.mark.parametrize("n_rows", [4, 60, 400])
@pytest.mark.parametrize(("part", "least_rows"), [(0.2, 1.0), (0.1, 0.0), (0.9, 2.0)])
def test_corners_are_those_of_the_slow_twin(n_rows, part, least_rows):
    objective = draw_plausibility(n_rows, seed=n_rows)
    expected = [find_corner_slowly(objective.rows, each, part, least_rows) for each in range(3)]
    np.testing.assert_allclose(climbing._find_corners(objective, part, least_rows), expected, atol=1e-12)


def test_an_entry_of_a_single_row_is_left_out_of_a_corner_and_one_at_the_limit_is_not():
    twisted = np.tile([0.9, 0.1, 0.0], (20, 1))
    for n_other, is_left_out in ((2, True), (4, False)):
        labels = np.repeat([0, 2], [20 - n_other, n_other])
        objective = Plausibility(ChosenRows(twisted, labels, np.full(20, 0.5)))
        # All rows are equally sure, so that label 2 has n_other / 20 of the weight, and half of that in the corner.
        corner = climbing._find_corners(objective, 0.2, 1.0)[0]
        assert (corner[2] == 0) == is_left_out
        assert climbing._find_corners(objective, 0.2, 0.0)[0, 2] == pytest.approx(n_other / 40)


def test_a_class_that_no_row_is_of_keeps_a_small_diagonal():
    twisted = np.tile([0.5, 0.5, 0.0], (30, 1))
    objective = Plausibility(ChosenRows(twisted, np.repeat([0, 1], 15), np.ones(30)))
    np.testing.assert_allclose(climbing._find_corners(objective, 0.2, 1.0)[2], np.array([0.5, 0.5, 0.02]) / 1.02)


def test_a_start_goes_part_of_the_way_to_the_corners_and_keeps_a_diagonal():
    corners = np.array([[0.8, 0.15, 0.05], [0.0, 1.0, 0.0], [0.6, 0.3, 0.1]])
    expected = np.array([[0.9, 0.075, 0.025], [0.0, 1.0, 0.0], [0.3, 0.15, 0.55]])
    np.testing.assert_allclose(climbing._go_towards(corners, list_pairs(3), 0.5), expected, atol=1e-12)
    expected[0] = [0.8, 0.15, 0.05]
    expected[2] = [0.55 * 2 / 3, 0.55 / 3, 0.45]
    np.testing.assert_allclose(climbing._go_towards(corners, list_pairs(3), 1.0), expected, atol=1e-12)


def test_a_start_between_some_pairs_goes_to_the_part_of_the_corners_that_is_theirs():
    corners = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.6, 0.3, 0.1]])
    pairs = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=bool)
    # What goes to other classes counts neither way: 0.15 of 0.95 of class 0 is labelled 1, 0.3 of 0.4 of class 2.
    first = 0.5 * 0.15 / 0.95
    expected = [[1 - first, first, 0.0], [0.0, 1.0, 0.0], [0.0, 0.375, 0.625]]
    np.testing.assert_allclose(climbing._go_towards(corners, pairs, 0.5), expected, atol=1e-12)


# ---- one climb ----


class Hill:
    """A plausibility with one peak, in the matrix, the log-slopes and the offsets."""

    def __init__(self, matrix, log_slopes, offsets):
        self.peak = [np.asarray(one, dtype=float) for one in (matrix, log_slopes, offsets)]
        self.n_classes = len(log_slopes)
        self.n_evaluations = 0

    def evaluate(self, *point):
        self.n_evaluations += 1
        away = [one - peak for one, peak in zip(point, self.peak, strict=True)]
        return 7.0 - sum((one**2).sum() for one in away), *(-2.0 * one for one in away)


def test_a_climb_ends_at_the_peak_or_at_the_limits():
    hill = Hill(np.eye(2), [0.5, 3.0], [-1.5, -9.0])
    fit, parameters = climb(hill, KnownMatrix(np.eye(2)), np.zeros(0), np.zeros(2), np.zeros(2), 50)
    assert parameters.size == 0
    np.testing.assert_allclose(fit.log_slopes, [0.5, 1.2], atol=1e-5)
    np.testing.assert_allclose(fit.offsets, [-1.5, -2.0], atol=1e-5)
    assert fit.value == pytest.approx(7.0 - 1.8**2 - 7.0**2)
    np.testing.assert_array_equal(fit.matrix, np.eye(2))
    other = Hill(np.eye(2), [-3.0, 0.0], [9.0, 0.0])
    fit, _ = climb(other, KnownMatrix(np.eye(2)), np.zeros(0), np.full(2, 5.0), np.full(2, -5.0), 50)
    np.testing.assert_allclose([fit.log_slopes, fit.offsets], [[-1.2, 0.0], [2.0, 0.0]], atol=1e-5)


def test_a_climb_in_a_family_finds_its_matrix_and_takes_no_more_steps_than_it_may():
    family = TiedMatrices(make_even_matrix(3, 1.0))
    hill = Hill(make_even_matrix(3, 0.2), [0.1, 0.2, 0.3], [0.3, 0.2, 0.1])
    fit, parameters = climb(hill, family, np.array([-3.0]), np.zeros(3), np.zeros(3), 100)
    np.testing.assert_allclose(fit.matrix, make_even_matrix(3, 0.2), atol=1e-5)
    np.testing.assert_allclose(family.make(parameters), fit.matrix)
    assert fit.common == pytest.approx(0.1, abs=1e-5)
    n_until_there, hill.n_evaluations = hill.n_evaluations, 0
    climb(hill, family, np.array([-3.0]), np.zeros(3), np.zeros(3), 1)
    assert hill.n_evaluations < n_until_there


def test_a_climb_among_all_matrices_ends_where_no_direction_rises():
    objective, family = draw_plausibility(200), FreeMatrices(list_pairs(3))
    start = family.start(make_even_matrix(3, 0.1), 0.0)
    fit, parameters = climb(objective, family, start, np.zeros(3), np.zeros(3), 2000)

    def find_value(parameters, log_slopes, offsets):
        matrix = family.make(parameters)
        return objective.evaluate(matrix, log_slopes, offsets)[0] - family.price(parameters, matrix)[0]

    found = np.concatenate([parameters, fit.log_slopes, fit.offsets])
    assert fit.value == pytest.approx(find_value(*np.split(found, [7, 10])))
    low, high = np.array([*family.bounds, *[(-1.2, 1.2)] * 3, *[(-2.0, 2.0)] * 3]).T
    assert ((low <= found) & (found <= high)).all()
    for step in 1e-3 * np.vstack([np.eye(13), -np.eye(13)]):
        # The search ends where steps gain less than about a hundred-thousandth.
        assert find_value(*np.split(np.clip(found + step, low, high), [7, 10])) < fit.value + 1e-5


# ---- the starts ----


class Guide:
    """Stands in for `climb`: records where each climb begins and returns the next of the given values."""

    def __init__(self, values, even_rate=0.1):
        self.values = iter(values)
        self.even_rate = even_rate
        self.begun = []

    def __call__(self, _plausibility, family, start, log_slopes, offsets, steps):
        n_classes = len(log_slopes)
        self.begun.append((family, start, log_slopes, offsets, steps))
        number = float(len(self.begun))
        is_tied = isinstance(family, TiedMatrices)
        matrix = make_even_matrix(n_classes, self.even_rate) if is_tied else family.make(start)
        fit = Fit(next(self.values), matrix, np.full(n_classes, number), np.full(n_classes, -number), 0.01 * number)
        return fit, start + 1.0


def make_clean_fit(n_classes):
    """A fit without noise whose slopes and offsets are told from those of all climbs."""
    return Fit(1.0, np.eye(n_classes), np.full(n_classes, 1.0), np.full(n_classes, -1.0), 0.0)


def guide_search(monkeypatch, objective, values, even_rate=0.1, pairs=None):
    guide = Guide(values, even_rate)
    monkeypatch.setattr(climbing, "climb", guide)
    pairs = list_pairs(objective.n_classes) if pairs is None else pairs
    return search_matrices(objective, pairs, make_clean_fit(objective.n_classes)), guide.begun


def test_no_noise_is_climbed_to_from_slopes_of_1_and_no_offsets(monkeypatch):
    guide = Guide([5.0])
    monkeypatch.setattr(climbing, "climb", guide)
    clean = find_clean_fit(draw_plausibility())
    ((family, start, log_slopes, offsets, steps),) = guide.begun
    assert isinstance(family, KnownMatrix)
    np.testing.assert_array_equal(family.matrix, np.eye(3))
    assert (start.size, steps, clean.value) == (0, 30, 5.0)
    np.testing.assert_array_equal([log_slopes, offsets], np.zeros((2, 3)))


def test_the_search_begins_with_even_noise_at_two_corners_and_between(monkeypatch):
    objective = draw_plausibility(300)
    values = [2.0, 3.0, 5.0, 7.0, 6.0, 8.0, 4.5, 4.0]
    (even, one_by_one, uneven), begun = guide_search(monkeypatch, objective, values)
    assert (even.value, one_by_one.value) == (3.0, 4.5)
    # The best of any shape was climbed again; the others follow, the better first.
    assert [fit.value for fit in uneven] == [8.0, 6.0, 5.0]
    families, starts, slopes, offsets, steps = zip(*begun, strict=True)
    assert [type(one) for one in families] == [*[TiedMatrices] * 2, *[FreeMatrices] * 4, *[TiedMatrices] * 2]
    assert steps == (30, 30, 30, 30, 30, 60, 30, 30)
    # Slopes and offsets begin where those without noise ended, 1 and -1; even noise, the better of two, ended at 2.
    np.testing.assert_allclose([one[0] for one in slopes], [1.05, 1.3, 1.3, 1.3, 2.0, 4.0, 1.05, 1.3])
    np.testing.assert_allclose([one[0] for one in offsets], [-1, -1, -1, -1, -2.0, -4.0, -1, -1])
    for index, rate in ((0, 0.05), (1, 0.3), (6, 0.05), (7, 0.3)):
        assert starts[index] == pytest.approx(logit(rate / 0.7))
    np.testing.assert_allclose(families[0].make(starts[0]), make_even_matrix(3, 0.05))
    near = climbing._go_towards(climbing._find_corners(objective, 0.2, 1.0), list_pairs(3), 0.8)
    sharp = climbing._go_towards(climbing._find_corners(objective, 0.1, 0.0), list_pairs(3), 0.8)
    free = FreeMatrices(list_pairs(3))
    np.testing.assert_allclose(starts[2], free.start(near, 0.0))
    np.testing.assert_allclose(starts[3], free.start(sharp, 0.0))
    np.testing.assert_allclose(starts[4], free.start((make_even_matrix(3, 0.1) + near) / 2, 0.02))
    np.testing.assert_allclose(starts[5], starts[3] + 1.0)
    # One by one, each class bears the label, other than its own, that the sharp corners show most of.
    targets = [max((k for k in range(3) if k != j), key=lambda k: sharp[j, k]) for j in range(3)]
    np.testing.assert_allclose(families[6].make(starts[6]), 0.95 * np.eye(3) + 0.05 * np.eye(3)[targets])


def test_between_some_pairs_even_noise_and_that_of_one_label_each_go_to_these_alone(monkeypatch):
    objective = draw_plausibility(300, 4)
    pairs = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1], [1, 0, 0, 0]], dtype=bool)
    _, begun = guide_search(monkeypatch, objective, range(100, 0, -1), pairs=pairs)
    families, starts, *_ = zip(*begun, strict=True)
    even = [[0.95, 0.025, 0.025, 0], [0, 1, 0, 0], [0.05 / 3, 0.05 / 3, 0.95, 0.05 / 3], [0.05, 0, 0, 0.95]]
    np.testing.assert_allclose(families[0].make(starts[0]), even)
    sharp = climbing._go_towards(climbing._find_corners(objective, 0.1, 0.0), pairs, 0.8)
    expected = np.eye(4)
    for j in (0, 2, 3):
        expected[j, j] = 0.95
        expected[j, max(np.flatnonzero(pairs[j]), key=lambda k: sharp[j, k])] = 0.05
    np.testing.assert_allclose(families[-2].make(starts[-2]), expected)


def test_of_labels_that_corners_show_equally_much_of_the_first_is_taken(monkeypatch):
    corners = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    corners[2] = [0.0, 0.0, 1.0, 0.0]
    monkeypatch.setattr(climbing, "_find_corners", lambda *_: corners.copy())
    _, begun = guide_search(monkeypatch, draw_plausibility(60, 4), range(100, 0, -1))
    family, start, *_ = begun[-1]
    # Class 2 bears no other label, and keeps its own.
    expected = [[0.7, 0.3, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 1, 0], [0.3, 0, 0, 0.7]]
    np.testing.assert_allclose(family.make(start), expected)


@pytest.mark.parametrize("seed", range(4))
def test_no_fit_has_entries_outside_its_pairs(seed):
    rng = np.random.default_rng(seed)
    objective = draw_plausibility(200, 5, seed)
    pairs = list_pairs(5) & (rng.random((5, 5)) < (0.0, 0.2, 0.5, 0.8)[seed])
    even, one_by_one, uneven = search_matrices(objective, pairs, find_clean_fit(objective))
    assert len(uneven) >= 2
    for fit in (even, one_by_one, *uneven):
        assert (fit.matrix[~pairs & list_pairs(5)] == 0.0).all()
        np.testing.assert_allclose(fit.matrix.sum(axis=1), 1.0)
        # A class without pairs keeps its labels.
        np.testing.assert_allclose(np.diag(fit.matrix)[~pairs.any(axis=1)], 1.0, rtol=1e-15)
    # All classes that may have noise have the same rate of it, and each goes to all labels alike, or to one.
    for fit in (even, one_by_one):
        rates = 1.0 - np.diag(fit.matrix)
        used = (fit.matrix > 0) & pairs
        for j in np.flatnonzero(used.any(axis=1)):
            assert rates[j] == pytest.approx(rates.max())
            np.testing.assert_allclose(fit.matrix[j][used[j]], rates[j] / used[j].sum())
    np.testing.assert_array_equal((even.matrix > 0) & pairs, pairs)
    assert (((one_by_one.matrix > 0) & pairs).sum(axis=1) <= 1).all()


def test_next_to_no_even_noise_is_no_start(monkeypatch):
    for rate, n_starts in ((0.024, 2), (0.025, 2), (0.026, 3)):
        (*_, uneven), _ = guide_search(monkeypatch, draw_plausibility(), range(100, 0, -1), rate)
        assert len(uneven) == n_starts


def test_many_classes_have_no_sharp_start(monkeypatch):
    for n_classes, n_starts in ((20, 3), (21, 2)):
        objective = draw_plausibility(80, n_classes)
        (*_, uneven), _ = guide_search(monkeypatch, objective, range(100, 0, -1))
        assert len(uneven) == n_starts
