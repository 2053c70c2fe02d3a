"""The noise of several classes by transition matrices: its slow twin, shares and their intervals, pairs, words."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import transitions_twin as twin
from helpers.shared_models import draw_matrices
from untwist.noise import several_classes
from untwist.noise.model import move_interval
from untwist.noise.several_classes import (
    SeveralClassesNoise,
    check_matrix,
    find_interval,
    invert_matrices,
    spread_share,
    untwist_by_matrix,
)


@pytest.fixture(scope="module")
def noise():
    return draw_matrices(4, 3, np.random.default_rng(0))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(4), 60), rng.integers(4, size=60)


def test_the_clean_posterior_is_that_of_the_slow_twin(noise, rows):
    posterior, _ = rows
    expected = np.zeros_like(posterior)
    for weight, matrix, slope, offset in zip(noise.weights, noise.matrices, noise.slopes, noise.offsets, strict=True):
        one = [twin.untwist_row(q, matrix, slope, offset, noise.least) for q in posterior]
        np.testing.assert_allclose(untwist_by_matrix(posterior, matrix, slope, offset, noise.least), one, atol=1e-12)
        expected += weight * np.array(one)
    np.testing.assert_allclose(noise.clean(posterior), expected, atol=1e-12)


def test_the_probability_of_a_wrong_label_is_that_of_the_slow_twin(noise, rows):
    posterior, labels = rows
    expected = [
        sum(
            weight * twin.find_wrong(q, label, matrix, slope, offset, noise.least)
            for weight, matrix, slope, offset in zip(
                noise.weights, noise.matrices, noise.slopes, noise.offsets, strict=True
            )
        )
        for q, label in zip(posterior, labels, strict=True)
    ]
    np.testing.assert_allclose(noise.probability_wrong(posterior, labels), expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 9, 40])
def test_a_row_is_untwisted_to_the_same_bits_alone_and_among_many(n_classes):
    rng = np.random.default_rng(n_classes)
    noise = draw_matrices(n_classes, 3, rng)
    posterior, labels = rng.dirichlet(np.ones(n_classes), 300), rng.integers(n_classes, size=300)
    clean, wrong = noise.clean(posterior), noise.probability_wrong(posterior, labels)
    for count in (1, 2, 63, 65):
        for first in (0, 100, 235):
            few = slice(first, first + count)
            np.testing.assert_array_equal(noise.clean(posterior[few]), clean[few])
            np.testing.assert_array_equal(noise.probability_wrong(posterior[few], labels[few]), wrong[few])
    assert noise.clean(posterior[:0]).shape == (0, n_classes)


def test_a_known_matrix_undoes_itself():
    matrix = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.1, 0.6]])
    clean = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    np.testing.assert_allclose(SeveralClassesNoise.from_matrix(matrix).clean(clean @ matrix), clean, atol=1e-8)


# ---- shares ----


def test_the_share_of_wrong_labels_is_the_mean_of_their_probabilities(noise, rows):
    posterior, labels = rows
    weight = np.random.default_rng(2).uniform(size=60)
    share, low, high = noise.share_wrong(posterior, labels, weight)
    assert share == pytest.approx(np.average(noise.probability_wrong(posterior, labels), weights=weight))
    assert low < share < high
    # The interval is as wide, in log-odds, as that of all labels.
    width = np.diff(np.log(np.array([low, high]) / (1 - np.array([low, high]))))
    all_low, all_high = noise.interval
    assert width == pytest.approx(np.log(all_high / (1 - all_high)) - np.log(all_low / (1 - all_low)))


def test_where_nothing_was_found_shares_begin_at_0_and_end_where_more_is_excluded(noise, rows):
    posterior, labels = rows
    limits = np.array([0.9, 0.8, 0.95, 0.85])
    unseen = replace(noise, found=False, class_intervals=np.column_stack([np.zeros(4), limits]))
    share, low, high = unseen.share_wrong(posterior, labels, 1.0)
    assert low == 0.0
    assert high == pytest.approx(limits[labels].mean())
    assert share < high


def test_the_share_of_a_known_matrix_is_certain(rows):
    share, low, high = SeveralClassesNoise.from_matrix(0.7 * np.eye(4) + 0.075).share_wrong(*rows, 1.0)
    assert share == pytest.approx(low)
    assert share == pytest.approx(high)


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.3, 1.0])
def test_an_interval_holds_its_share(share):
    low, high = spread_share(share, 0.2)
    assert 0 <= low <= share <= high <= 1
    if 0 < share < 1:
        assert np.log(high / (1 - high)) - np.log(low / (1 - low)) == pytest.approx(2 * 1.96 * 0.2, rel=1e-6)


def test_an_interval_leaves_out_what_is_unlikely():
    values, weights = np.array([0.3, 0.0, 0.2, 0.9]), np.array([0.5, 0.02, 0.46, 0.02])
    assert find_interval(values, weights) == (0.2, 0.3)
    assert find_interval(values, np.array([0.4, 0.1, 0.4, 0.1])) == (0.0, 0.9)
    assert find_interval(np.array([0.4]), np.ones(1)) == (0.4, 0.4)


# ---- pairs ----


def test_noise_is_found_between_decided_pairs_and_nowhere_where_none_was_found(noise):
    decided = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=bool)
    some = replace(noise, decided_pairs=decided)
    np.testing.assert_array_equal(some.found_pairs, decided)
    assert not replace(some, found=False).found_pairs.any()
    known = SeveralClassesNoise.from_matrix(0.7 * np.eye(4) + 0.075)
    np.testing.assert_array_equal(known.found_pairs, ~np.eye(4, dtype=bool))


def test_where_sources_alone_find_noise_all_pairs_are_decided(noise):
    decided = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    for was_found, found, expected in (
        (True, True, decided),
        (True, False, decided),
        (False, False, decided),
        (False, True, ~np.eye(4, dtype=bool)),
    ):
        some = replace(noise, found=was_found, decided_pairs=decided)
        pooled = some.pool_sources(0.2, (0.1, 0.3), np.full(4, 0.2), np.tile([0.1, 0.3], (4, 1)), found=found)
        np.testing.assert_array_equal(pooled.decided_pairs, expected)
        np.testing.assert_array_equal(pooled.found_pairs, expected & found)
        assert (pooled.share, pooled.interval, pooled.found) == (0.2, (0.1, 0.3), found)


def test_an_entry_is_bounded_by_noise_alone_where_noise_was_found(noise):
    unseen = 0.998 * np.eye(4) + 0.002 * (1 - np.eye(4)) / 3
    matrices = np.array([unseen, 0.7 * np.eye(4) + 0.075, 0.6 * np.eye(4) + 0.1])
    wide = np.tile([0.3, 0.31], (4, 1))
    mixed = replace(noise, weights=np.array([0.2, 0.5, 0.3]), matrices=matrices, class_shares=np.full(4, 0.3))
    mixed = replace(mixed, class_intervals=wide)
    entry = float(mixed.matrix[0, 1])
    low, high = mixed.bound_entry(0, 1, entry)
    # That of its class says entry / 0.3 times what is between 0.3 and 0.31; the components say 0.075 to 0.1.
    assert (low, high) == (pytest.approx(min(0.075, entry)), pytest.approx(0.1))
    low, high = replace(mixed, found=False).bound_entry(0, 1, entry)
    assert (low, high) == (pytest.approx(0.002 / 3), pytest.approx(0.1))
    alone = replace(mixed, weights=np.ones(1), matrices=matrices[:1])
    assert alone.bound_entry(0, 1, 0.002 / 3)[0] == pytest.approx(0.002 / 3)


# ---- words ----


def test_words_for_noise_that_was_found(noise):
    matrix = np.eye(4)
    matrix[1] = [0.0, 0.7, 0.28, 0.02]
    known = replace(noise, weights=np.ones(1), matrices=matrix[None], share=0.094, interval=(0.079, 0.112))
    text = known.describe(["account", "billing", "bug", "feature"])
    assert text == "wrong labels: 9.4% (7.9% to 11.2%) of all; most of them: 28% of billing labelled bug"
    assert str(known).endswith("28% of class 1 labelled class 2")
    uncertain = replace(known, class_intervals=np.tile([0.0, 1.0], (4, 1)))
    assert str(uncertain) == "wrong labels: 9.4% (7.9% to 11.2%) of all"
    even = replace(known, matrices=(0.8 * np.eye(4) + 0.05)[None])
    assert even.describe("abcd") == "wrong labels: 9.4% (7.9% to 11.2%) of all"


def test_words_where_nothing_was_found(noise):
    limits = np.column_stack([np.zeros(4), [0.05, 0.012, 0.03, 0.09]])
    unseen = replace(noise, found=False, interval=(0.0, 0.04), class_intervals=limits, uneven_limit=0.04)
    assert str(unseen) == (
        "no sign of noise that is the same in every class (0% to 1.2% would fit); "
        "uneven noise of up to 4.0% of the labels is not excluded"
    )


def test_words_for_a_matrix_that_was_given():
    assert str(SeveralClassesNoise.from_matrix(0.7 * np.eye(4) + 0.075)) == "wrong labels (as given): 22.5%"


# ---- what is refused ----


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.9, 0.1]], "must be square"),
        ([[1.0]], "must be square"),
        ([[1.1, -0.1], [0.0, 1.0]], "shares from 0 to 1"),
        ([[0.9, 0.2], [0.0, 1.0]], "must sum to 1, got 1.1 for row 0"),
        ([[0.5, 0.5], [0.0, 1.0]], "bear its own label more often than any other"),
        ([[0.4, 0.6], [0.6, 0.4]], "bear its own label more often than any other"),
    ],
)
def test_bad_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_matrix(matrix)


def test_a_class_may_be_wrong_more_often_than_right():
    # Its own label is still the commonest one, and that is enough to tell the classes apart.
    matrix = np.array([[0.4, 0.3, 0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(check_matrix(matrix), matrix)


def test_posteriors_of_other_classes_are_refused(noise):
    with pytest.raises(ValueError, match="a column per class, 4 in all"):
        noise.clean(np.ones((2, 3)) / 3)


@pytest.mark.parametrize("n_classes", [2, 3, 17, 60])
def test_inverses_are_those_of_a_library(n_classes):
    rng = np.random.default_rng(n_classes)
    likely = rng.dirichlet(np.full(n_classes, 0.3), size=(4, n_classes)) + np.eye(n_classes)
    matrices = np.concatenate([likely / 2.0, np.eye(n_classes)[None, ::-1]])
    np.testing.assert_allclose(invert_matrices(matrices), np.linalg.inv(matrices), rtol=1e-9, atol=1e-11)


# ---- at the limits ----


def test_a_matrix_may_miss_1_by_rounding_and_is_scaled():
    found = check_matrix([[0.9, 0.1 + 9e-7], [0.2, 0.8]])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-15)
    for wrong in ([[0.9, 0.1 + 2e-6], [0.2, 0.8]], [[0.9, 0.1 - 2e-6], [0.2, 0.8]]):
        with pytest.raises(ValueError, match="must sum to 1"):
            check_matrix(wrong)
    with pytest.raises(ValueError, match=r"the rows of noise must sum to 1, got 0\.7 for row 1"):
        check_matrix([[0.9, 0.11], [0.0, 0.7]], "noise")
    # Every class bears its own label most, and still two mixtures of classes bear the same labels.
    with pytest.raises(ValueError, match="must be invertible"):
        check_matrix(np.array([[6, 5, 1, 0], [5, 6, 0, 1], [1, 0, 6, 5], [0, 1, 5, 6]]) / 12)
    for not_square in (np.eye(2)[0], np.ones((3, 2)), np.eye(2)[None]):
        with pytest.raises(ValueError, match="must be square"):
            check_matrix(not_square)


def test_a_known_matrix_is_taken_at_its_word():
    matrix = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.1, 0.6]])
    known = SeveralClassesNoise.from_matrix(matrix)
    assert known.found
    assert known.is_given
    assert known.share == known.uneven_limit == pytest.approx(0.7 / 3)
    assert known.interval == (known.share, known.share)
    np.testing.assert_allclose(known.class_shares, [0.3, 0.0, 0.4])
    np.testing.assert_allclose(known.class_intervals, [[0.3, 0.3], [0.0, 0.0], [0.4, 0.4]])
    assert (known.weights.tolist(), known.slopes.tolist(), known.offsets.tolist()) == ([1.0], [[1.0] * 3], [[0.0] * 3])
    assert known.even_limit == 0.0
    assert known.n_classes == 3


def test_confusions_are_named_that_stand_out_the_largest_first_and_three_at_most(noise):
    matrix = np.eye(5)
    entries = {(0, 1): 0.3, (1, 2): 0.2, (2, 0): 0.25, (3, 4): 0.15, (4, 3): 0.02}
    for (j, k), entry in entries.items():
        matrix[j, k] = entry
        matrix[j, j] -= entry
    five = SeveralClassesNoise.from_matrix(matrix)
    assert five._list_confusions() == [(0, 1), (2, 0), (1, 2)]
    hardly_known = replace(five, class_intervals=np.array([[0.1, 0.4], [0.1, 0.4], [0.0, 0.4], [0.1, 0.4], [0, 1]]))
    assert hardly_known._list_confusions() == [(0, 1), (1, 2)]
    small = SeveralClassesNoise.from_matrix([[0.979, 0.021, 0.0], [0.019, 0.981, 0.0], [0.0, 0.0, 1.0]])
    assert small._list_confusions() == [(0, 1)]
    # An entry must be twice the usual one, of the six that there are.
    uneven = np.array([[0.8, 0.1, 0.1], [0.21, 0.69, 0.1], [0.1, 0.1, 0.8]])
    assert SeveralClassesNoise.from_matrix(uneven)._list_confusions() == []
    uneven[1] = [0.31, 0.59, 0.1]
    assert SeveralClassesNoise.from_matrix(uneven)._list_confusions() == [(1, 0)]


def test_many_rows_are_untwisted_in_blocks_to_the_same(noise, monkeypatch):
    rng = np.random.default_rng(4)
    posterior, labels = rng.dirichlet(np.ones(4), 150), rng.integers(4, size=150)
    clean, wrong = noise.clean(posterior), noise.probability_wrong(posterior, labels)
    monkeypatch.setattr(several_classes, "CELLS_PER_BLOCK", 280)
    assert [(one.start, one.stop) for one in several_classes._iterate_blocks(posterior)] == [
        (0, 70),
        (70, 140),
        (140, 210),
    ]
    np.testing.assert_array_equal(noise.clean(posterior), clean)
    np.testing.assert_array_equal(noise.probability_wrong(posterior, labels), wrong)
    monkeypatch.setattr(several_classes, "CELLS_PER_BLOCK", 1)
    assert len(list(several_classes._iterate_blocks(posterior[:3]))) == 3


def test_an_interval_ends_where_its_tails_do():
    values = np.arange(100) / 100.0
    assert find_interval(values[::-1], np.ones(100)) == (0.02, 0.97)
    assert find_interval(values, 1e-3 * np.ones(100)) == (0.02, 0.97)


def test_the_interval_of_some_labels_is_as_wide_as_that_of_all():
    for share, low, high in ((0.2, 0.1, 0.4), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)):
        found = move_interval(share, (0.2, 0.1, 0.4))
        assert found == pytest.approx((low, high), abs=1e-12)
    low, high = move_interval(0.5, (0.2, 0.1, 0.4))
    assert low / (1 - low) == pytest.approx((0.1 / 0.9) / (0.2 / 0.8))
    assert high / (1 - high) == pytest.approx((0.4 / 0.6) / (0.2 / 0.8))
