"""Twisters: they change what they say and nothing else, as often as asked, and label noise follows its posterior."""

import math

import numpy as np
import pandas as pd
import pytest

from untwist.twisters import (
    BernoulliNoise,
    ClassConditionalNoise,
    ClassNoise,
    FeatureNoise,
    Insider,
    InstanceNoise,
    OneBadClass,
    PairFlips,
    RandomTransitions,
    SourceNoise,
    TransitionNoise,
)

LABEL_TWISTERS = [
    ClassNoise(0.3),
    BernoulliNoise(0.3),
    ClassConditionalNoise(rate_neg=0.1, rate_pos=0.4),
    ClassConditionalNoise(rate_neg=0.5),
    ClassConditionalNoise(rate_pos=0.5),
]
# Those that take any number of classes.
SEVERAL = [
    ClassNoise(0.3),
    BernoulliNoise(0.3),
    PairFlips(0.3),
    OneBadClass(0.6),
    RandomTransitions(0.8, seed=3),
]
FOUR_BY_FOUR = [[0.7, 0.1, 0.2, 0.0], [0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.0, 0.5, 0.0, 0.5]]
FEATURE_TWISTERS = [FeatureNoise(0.8), FeatureNoise(1.0, 0.5, columns=[0, 2]), Insider(range(4)), Insider(2)]


def make_frame(n=60):
    """One column of each kind, with gaps, under an index of its own."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "city": rng.choice(["Rome", "Bern", "Oslo"], n),
            "flag": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n)),
            "count": rng.integers(0, 9, n),
            "small": rng.normal(size=n).astype(np.float32),
            "nullable": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "mixed": rng.choice(np.array([1, 2.5, "x"], dtype=object), n),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, n), unit="D"),
        },
        index=np.arange(n)[::-1] + 100,
    )
    for column in ("number", "city", "size", "small", "nullable", "maybe", "mixed", "day"):
        table.loc[table.index[:3], column] = None
    return table


def list_cells(table):
    """The table as objects, with one object for all that is missing."""
    values = pd.DataFrame(table).astype(object).to_numpy()
    values[pd.isna(values)] = "missing"
    return values


# ---- labels ----


@pytest.mark.parametrize(
    ("rate", "n", "count"), [(0.0, 10, 0), (0.3, 10, 3), (0.15, 681, 103), (0.301, 10, 4), (1.0, 7, 7)]
)
def test_flips_exactly_the_ceiling(rate, n, count):
    y = np.arange(n) % 2
    X = np.random.default_rng(1).normal(size=(n, 2))
    X_twisted, twisted, flipped = ClassNoise(rate).twist(X, y, np.random.default_rng(0))
    assert X_twisted is X
    np.testing.assert_array_equal(np.flatnonzero(twisted != y), flipped)
    assert len(flipped) == count


@pytest.mark.parametrize("twister", LABEL_TWISTERS, ids=repr)
@pytest.mark.parametrize("classes", [("ham", "spam"), (-1, 1), (False, True), (0.5, 2.0)], ids=str)
@pytest.mark.parametrize("kind", [np.array, list, None, "category", "object", "string", "str"], ids=str)
def test_labels_of_any_kind(twister, classes, kind):
    classes = tuple(map(str, classes)) if kind in ("string", "str") else classes
    plain = [classes[i % 3 == 0] for i in range(40)]
    y = pd.Series(plain, dtype=kind, index=range(40, 0, -1), name="label") if not callable(kind) else kind(plain)
    _, twisted, flipped = twister.twist(None, y, 0)
    assert list(y) == plain  # The input is left alone.
    other = dict(zip(classes, classes[::-1], strict=True))
    assert list(twisted) == [other[label] if i in flipped else label for i, label in enumerate(plain)]
    assert 0 < len(flipped) < 40
    assert flipped.tolist() == sorted(flipped)
    if isinstance(y, pd.Series):
        assert (twisted.dtype, twisted.name) == (y.dtype, y.name)
        assert twisted.index.equals(y.index)
    again = twister.twist(None, y, np.random.default_rng(0))
    assert list(again[1]) == list(twisted)
    assert twister.twist(None, y, 1)[2].tolist() != flipped.tolist()


@pytest.mark.parametrize("twister", LABEL_TWISTERS, ids=repr)
@pytest.mark.parametrize("eta", [0.0, 0.3, 0.8, 1.0])
def test_posterior_is_what_the_sample_shows(twister, eta):
    rng = np.random.default_rng(0)
    n = 100_000
    y = (rng.random(n) < eta).astype(int)
    y[:2] = 0, 1  # There are two classes even where eta is 0 or 1.
    _, twisted, _ = twister.twist(None, y, rng)
    expected = twister.posterior(eta)
    assert twisted.mean() == pytest.approx(expected, abs=4 * math.sqrt(max(expected * (1 - expected), 1 / n) / n))


def test_noise_at_its_extremes():
    y = np.array([0, 1, 1, 0, 1])
    for twister, twisted in [
        (BernoulliNoise(0.0), y),
        (BernoulliNoise(1.0), 1 - y),
        (ClassConditionalNoise(), y),
        (ClassConditionalNoise(rate_pos=1.0), 0 * y),
        (ClassConditionalNoise(rate_neg=1.0), 0 * y + 1),
        (ClassConditionalNoise(rate_neg=1.0, rate_pos=1.0), 1 - y),
    ]:
        np.testing.assert_array_equal(twister.twist(None, y, 0)[1], twisted)


def test_bernoulli_noise_varies_in_number_and_class_noise_does_not():
    y = np.arange(100) % 2
    counts = {len(BernoulliNoise(0.3).twist(None, y, seed)[2]) for seed in range(20)}
    assert len(counts) > 3
    assert {len(ClassNoise(0.3).twist(None, y, seed)[2]) for seed in range(20)} == {30}


def test_bad_labels_and_rates():
    with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\], got 1.2"):
        ClassNoise(1.2)
    with pytest.raises(ValueError, match=r"rate must be a number, got nan"):
        BernoulliNoise(math.nan)
    with pytest.raises(ValueError, match=r"rate_neg must lie in \[0, 1\], got -0.1"):
        ClassConditionalNoise(rate_neg=-0.1)
    with pytest.raises(TypeError):
        ClassConditionalNoise(0.1, 0.2)  # Which is which would be a guess.
    with pytest.raises(ValueError, match=r"y must have two classes to flip between, got \[0 1 2\]"):
        ClassConditionalNoise(rate_pos=0.1).twist(None, [0, 1, 2], np.random.default_rng(0))
    for missing in ([0.0, 1.0, np.nan], ["a", "b", None], pd.array([0, 1, None], dtype="Int64")):
        with pytest.raises(ValueError, match="none missing"):
            ClassNoise(0.1).twist(None, pd.Series(missing), np.random.default_rng(0))
    for one_class in ([1], ["a", "a"], [True, True], []):
        with pytest.raises(ValueError, match="two classes"):
            BernoulliNoise(0.1).twist(None, one_class, 0)
    with pytest.raises(ValueError, match="as many rows, got 2 and 3"):
        ClassNoise(0.1).twist(np.zeros((2, 1)), [0, 1, 0], np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"one label per row, got shape \(2, 1\)"):
        ClassNoise(0.1).twist(None, [[0], [1]], 0)


# ---- labels of several classes ----


@pytest.mark.parametrize("twister", [*SEVERAL, TransitionNoise(FOUR_BY_FOUR)], ids=repr)
@pytest.mark.parametrize(
    "classes", [("bug", "ham", "praise", "spam"), (-1, 0, 1, 7), (0.5, 1.5, 2.0, 9.0), ("x", "y", 1, 2)], ids=str
)
@pytest.mark.parametrize("kind", ["array", "list", "category", "object", "string"])
def test_several_labels_of_any_kind(twister, classes, kind):
    classes = tuple(map(str, classes)) if kind == "string" else classes
    mixed = len(set(map(type, classes))) > 1
    plain = [classes[i * 7 % 4] for i in range(80)]
    dtype = object if mixed else None
    y = {"list": lambda: plain, "array": lambda: np.array(plain, dtype=dtype)}.get(
        kind, lambda: pd.Series(plain, dtype=kind, index=range(80, 0, -1), name="label")
    )()
    y = np.array(plain, dtype=object) if mixed and kind == "list" else y
    X = np.zeros((80, 1))
    same, twisted, changed = twister.twist(X, y, 0)
    assert same is X
    assert list(y) == plain  # The input is left alone.
    assert changed.tolist() == [i for i in range(80) if list(twisted)[i] != plain[i]]
    assert 0 < len(changed) < 80
    assert set(twisted) <= set(classes)
    if isinstance(y, pd.Series):
        assert (twisted.dtype, twisted.name) == (y.dtype, y.name)
        assert twisted.index.equals(y.index)
    else:
        assert twisted.dtype == np.asarray(y).dtype
    assert list(twister.twist(None, y, np.random.default_rng(0))[1]) == list(twisted)
    assert list(twister.twist(None, y, 1)[1]) != list(twisted)


@pytest.mark.parametrize("twister", [*SEVERAL, TransitionNoise(FOUR_BY_FOUR)], ids=repr)
def test_the_matrix_is_what_the_sample_shows(twister):
    n = 200_000
    y = np.random.default_rng(1).integers(0, 4, n)
    matrix = twister.transition_matrix(range(4))
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    twisted = twister.twist(None, y, 2)[1]
    # Of about 50,000 rows of each class, a share is known to four standard errors of at most 0.0023.
    shares = np.array([[np.mean(twisted[y == true] == label) for label in range(4)] for true in range(4)])
    np.testing.assert_allclose(shares, matrix, atol=4 * math.sqrt(0.25 / 49_000))
    assert (shares[matrix == 0] == 0).all()
    np.testing.assert_array_equal(twister.transition_matrix(y[:100]), matrix)  # Labels of rows serve as well.


@pytest.mark.parametrize("twister", LABEL_TWISTERS, ids=repr)
def test_the_matrix_of_two_classes_is_the_posterior_of_a_sure_row(twister):
    matrix = twister.transition_matrix(["ham", "spam"])
    np.testing.assert_allclose(matrix[:, 1], twister.posterior([0.0, 1.0]), atol=1e-15)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-15)


def test_matrices_that_are_given_in_words():
    classes = ["a", "b", "c", "d"]
    for twister, matrix in [
        (BernoulliNoise(0.3), [[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7]]),
        (PairFlips(0.3), [[0.7, 0.3, 0, 0], [0, 0.7, 0.3, 0], [0, 0, 0.7, 0.3], [0.3, 0, 0, 0.7]]),
        (PairFlips(0.3, {"a": "c", "d": "a"}), [[0.7, 0, 0.3, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.3, 0, 0, 0.7]]),
        (PairFlips(0.3, [("b", "a")]), [[1, 0, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        (OneBadClass(0.4), [[0.6, 0.4, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        (OneBadClass(0.4, "d"), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.4, 0, 0, 0.6]]),
        (OneBadClass(0.4, "b", "d"), [[1, 0, 0, 0], [0, 0.6, 0, 0.4], [0, 0, 1, 0], [0, 0, 0, 1]]),
        (OneBadClass(0.4, target="c"), [[0.6, 0, 0.4, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        (TransitionNoise(FOUR_BY_FOUR), FOUR_BY_FOUR),
    ]:
        np.testing.assert_allclose(twister.transition_matrix(classes), matrix, atol=1e-15)


def test_random_transitions_follow_their_seed_up_to_their_rate():
    rates, largest = [], []
    for seed in range(200):
        twister = RandomTransitions(0.4, seed)
        matrix = twister.transition_matrix(range(6))
        rates.append(1 - np.diag(matrix))
        off = matrix - np.diag(np.diag(matrix))
        largest.append(off.max(axis=1) / off.sum(axis=1))
    assert np.max(rates) < 0.4
    # Uniform from 0 to 0.4: 1200 rates with a mean of 0.2 and a standard error of 0.4 / sqrt(12 * 1200).
    assert np.mean(rates) == pytest.approx(0.2, abs=4 * 0.4 / math.sqrt(12 * 1200))
    assert np.mean(largest) > 0.5  # With parameter 1 the largest of five would have 0.457.
    first, second = (RandomTransitions(0.4, seed).transition_matrix(range(6)) for seed in (0, 1))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(RandomTransitions(0.4, 0).transition_matrix(list("abcdef")), first)
    np.testing.assert_allclose(RandomTransitions(0.0, 0).transition_matrix(range(6)), np.eye(6), atol=1e-15)


def test_transitions_at_their_extremes():
    y = np.array([0, 1, 2, 2, 1])
    for twister, twisted in [
        (BernoulliNoise(0.0), y),
        (PairFlips(0.0), y),
        (PairFlips(1.0), (y + 1) % 3),
        (OneBadClass(1.0, 2), [0, 1, 0, 0, 1]),
        (TransitionNoise(np.eye(3)), y),
        (TransitionNoise([[0, 0, 1], [1, 0, 0], [0, 1, 0]]), (y + 2) % 3),
    ]:
        np.testing.assert_array_equal(twister.twist(None, y, 0)[1], twisted)
    assert (ClassNoise(1.0).twist(None, y, 0)[1] != y).all()
    assert {len(ClassNoise(0.3).twist(None, np.arange(100) % 5, seed)[2]) for seed in range(9)} == {30}


def test_flips_of_two_classes_are_drawn_as_ever():
    y = np.arange(12) % 2
    assert (
        ClassNoise(0.3).twist(None, y, 0)[2].tolist()
        == np.sort(np.random.default_rng(0).choice(12, size=4, replace=False)).tolist()
    )
    flipped = np.flatnonzero(np.random.default_rng(0).random(12) < 0.3)
    assert BernoulliNoise(0.3).twist(None, y, 0)[2].tolist() == flipped.tolist()


def test_transitions_are_values():
    assert TransitionNoise(np.eye(2)) == TransitionNoise([[1, 0], [0, 1]])
    assert TransitionNoise(np.eye(2)) != TransitionNoise([[0.9, 0.1], [0, 1]])
    assert PairFlips(0.1, {"a": "b"}) == PairFlips(0.1, [["a", "b"]])
    assert repr(PairFlips(0.1, {"a": "b"})) == "PairFlips(rate=0.1, pairs=(('a', 'b'),))"
    made = [TransitionNoise(np.eye(2)), PairFlips(0.1, {"a": "b"}), OneBadClass(0.1), RandomTransitions()]
    assert len({*made, *made}) == 4
    matrix = np.eye(2)
    noise = TransitionNoise(matrix)
    matrix[0] = 0.5
    assert noise == TransitionNoise(np.eye(2))
    rounded = TransitionNoise([[1 / 3, 0.333333, 0.333333], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(np.sum(rounded.matrix, axis=1), 1.0, atol=1e-15)


def test_bad_transitions():
    y = ["a", "b", "c"]
    for call, message in [
        (lambda: TransitionNoise([[0.9, 0.1], [0.3, 0.6]]), "matrix must sum to 1 in each row, got 0.9 in row 1"),
        (lambda: TransitionNoise([[1.1, -0.1], [0, 1]]), r"matrix must lie in \[0, 1\], got 1.1"),
        (lambda: TransitionNoise([[1.0, 0.0]]), r"row and a column for each of two or more classes, got \(1, 2\)"),
        (lambda: TransitionNoise([[1.0]]), r"two or more classes, got \(1, 1\)"),
        (lambda: TransitionNoise("none"), "matrix must be numbers, got 'none'"),
        (lambda: TransitionNoise(np.eye(2)).twist(None, y, 0), "y must have 2 classes, as the matrix has, got 3"),
        (lambda: PairFlips(1.5), r"rate must lie in \[0, 1\], got 1.5"),
        (lambda: PairFlips(0.5, 3), "pairs must be a mapping or a list of pairs of labels, got 3"),
        (lambda: PairFlips(0.5, {"a": "a"}), "pairs must be two different labels each"),
        (lambda: PairFlips(0.5, ["abc"]), "pairs must be two different labels each"),
        (lambda: PairFlips(0.5, [("a", "b"), ("a", "c")]), "pairs must begin with a label at most once each"),
        (lambda: PairFlips(0.5, {"a": "z"}).twist(None, y, 0), r"pairs must be labels that y has.*got 'z'"),
        (lambda: OneBadClass(-0.1), r"rate must lie in \[0, 1\], got -0.1"),
        (
            lambda: OneBadClass(0.5, "z").twist(None, y, 0),
            r"label must be labels that y has, such as \['a', 'b', 'c'\]",
        ),
        (lambda: OneBadClass(0.5, "a", "z").twist(None, y, 0), "target must be labels that y has"),
        (lambda: OneBadClass(0.5, "a", "a"), "target must differ from label, got 'a' for both"),
        (lambda: OneBadClass(0.5, target="a").twist(None, y, 0), "target must differ from the class that changes"),
        (lambda: RandomTransitions(2.0), r"rate must lie in \[0, 1\], got 2.0"),
        (lambda: RandomTransitions(0.5, seed=-1), "seed must be an integer >= 0, got -1"),
        (lambda: PairFlips(0.5).twist(None, ["a", "b", None], 0), "y must have at least two classes and none missing"),
        (lambda: PairFlips(0.5).twist(None, ["a", "a"], 0), "y must have at least two classes"),
        (lambda: PairFlips(0.5).transition_matrix(["a"]), "classes must have at least two classes"),
        (lambda: ClassConditionalNoise().transition_matrix(y), "two classes to flip between"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# ---- labels, by what the row is ----


ROW_FRAME = pd.DataFrame(
    {
        "branch": np.array(["Bonn", "Leipzig", "Kiel", None], dtype=object)[np.arange(400) % 4],
        "day": np.arange(400.0)[::-1],
    }
)
ROW_TWISTERS = [
    SourceNoise("branch", {"Leipzig": 0.6, "Kiel": 0.3}, others=0.1),
    SourceNoise(0, 0.9, seed=1),
    SourceNoise(np.arange(400) % 3, {2: 1.0}, others=0.2),
    InstanceNoise(0.3, column="day", highest=0.9),
]
TOWARDS_BOUNDARY = InstanceNoise(0.25, model=np.random.default_rng(0).dirichlet(np.ones(4), 400))


def name_twister(twister):
    """An array in a twister would make a long name."""
    return repr(twister)[:50]


@pytest.mark.parametrize("twister", ROW_TWISTERS, ids=name_twister)
@pytest.mark.parametrize("classes", [("ham", "spam"), (-1, 1), (False, True)], ids=str)
@pytest.mark.parametrize("kind", ["array", "list", "category", "object"])
@pytest.mark.thinned(3)
def test_row_twisters_take_labels_of_any_kind_and_leave_the_input_alone(twister, classes, kind):
    plain = [classes[i % 7 < 3] for i in range(400)]
    y = {"list": plain, "array": np.array(plain)}.get(kind)
    y = pd.Series(plain, dtype=kind, index=range(400, 0, -1), name="label") if y is None else y
    X = ROW_FRAME.copy()
    same, twisted, changed = twister.twist(X, y, 0)
    assert same is X
    pd.testing.assert_frame_equal(X, ROW_FRAME)
    assert list(y) == plain
    assert changed.tolist() == [i for i in range(400) if list(twisted)[i] != plain[i]]
    assert 0 < len(changed) < 400
    assert set(twisted) == set(classes)
    if isinstance(y, pd.Series):
        assert (twisted.dtype, twisted.name) == (y.dtype, y.name)
        assert twisted.index.equals(y.index)
    assert list(twister.twist(X, y, np.random.default_rng(0))[1]) == list(twisted)
    assert list(twister.twist(X, y, 1)[1]) != list(twisted)


@pytest.mark.parametrize(
    ("twister", "n_classes"),
    [*((one, n_classes) for one in ROW_TWISTERS for n_classes in (2, 4)), (TOWARDS_BOUNDARY, 4)],
    ids=name_twister,
)
@pytest.mark.thinned(3)
def test_the_matrices_of_rows_are_what_many_draws_show(twister, n_classes):
    y = np.random.default_rng(1).integers(0, n_classes, 400)
    matrices = twister.transition_matrices(ROW_FRAME, y)
    assert matrices.shape == (400, n_classes, n_classes)
    assert (matrices >= 0).all()
    np.testing.assert_allclose(matrices.sum(axis=2), 1.0, atol=1e-12)
    draws = 300
    rng = np.random.default_rng(2)
    counts = np.zeros((400, n_classes))
    for _ in range(draws):
        counts[np.arange(400), twister.twist(ROW_FRAME, y, rng)[1]] += 1
    expected = matrices[np.arange(400), y]
    assert (counts[expected == 0] == 0).all()
    # A standardised sum over all rows and labels: of so many squares the mean is close to 1.
    spread = draws * expected * (1 - expected)
    squares = (counts - draws * expected)[spread > 1] ** 2 / spread[spread > 1]
    assert squares.mean() == pytest.approx(1.0, abs=6 * math.sqrt(2 / squares.size))


def test_every_source_has_its_own_rates():
    y = np.array([0, 1, 2])
    rows = {"source": ["a", "b", "c", None], "noise": {"a": 0.3, "b": [0.1, 0.2, 0.5], "c": np.eye(3)[[1, 1, 2]]}}
    for others in (0.0, 0.6):
        matrices = SourceNoise(rows["source"], rows["noise"], others).transition_matrices(None, [0, 1, 2, 0])
        np.testing.assert_allclose(matrices[0], [[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]])
        np.testing.assert_allclose(matrices[1], [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])
        np.testing.assert_allclose(matrices[2], [[0, 1, 0], [0, 1, 0], [0, 0, 1]])
        np.testing.assert_allclose(matrices[3], np.where(np.eye(3) > 0, 1 - others, others / 2))
    assert SourceNoise(y, {1: 1.0}, others=1.0).twist(None, y, 0)[2].size == 3
    # A column by its name and by its index, of a frame and of an array.
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "office": [7, 8, 9]})
    for source, X in [("office", frame), (1, frame), (1, frame.to_numpy()), (frame["office"], None)]:
        matrices = SourceNoise(source, {8: 0.5}).transition_matrices(X, y)
        assert np.argwhere(matrices[:, 0, 0] != 1.0).tolist() == [[1]]


def test_one_bad_source_is_drawn_by_the_seed():
    sources = np.repeat(["a", "b", "c", "d"], [1000, 200, 30, 4])
    y = np.arange(1234) % 2
    bad = []
    for seed in range(200):
        changed = SourceNoise(sources, 1.0, seed=seed).twist(None, y, 0)[2]
        (one,) = set(sources[changed])
        assert changed.tolist() == np.flatnonzero(sources == one).tolist()
        bad.append(one)
    counts = [bad.count(name) for name in "abcd"]
    # Each is as likely as the others, however many rows it has: 50 of 200, with a standard error of 6.1.
    assert min(counts) > 50 - 4 * 6.1
    assert max(counts) < 50 + 4 * 6.1


def test_noise_rises_along_a_column_with_the_mean_that_was_asked_for():
    n = 1001
    column = np.random.default_rng(0).permutation(n).astype(float)
    y = np.arange(n) % 3
    for rate, highest in [(0.2, 0.5), (0.45, 0.5), (0.5, 0.5), (0.1, 1.0), (0.7, 0.8), (0.0, 0.5), (1.0, 1.0)]:
        rates = 1 - InstanceNoise(rate, 0, highest=highest).transition_matrices(column[:, None], y)[:, 0, 0]
        assert rates.mean() == pytest.approx(rate, abs=1e-12)
        assert (np.diff(rates[np.argsort(column)]) >= 0).all()
        if 0 < rate < highest:
            assert rates.max() == pytest.approx(highest, rel=0.01)
            assert rates.min() < 0.5 * rate
    # The order counts and the distances do not; ties share their rate; what is missing has the mean.
    noise = InstanceNoise(0.25, "t")
    far = np.array(["3024-03", "1023-01", "1023-01", "2024-01", "NaT"], dtype="datetime64[s]")  # Beyond nanoseconds.
    first, *others = (
        1 - noise.transition_matrices(pd.DataFrame({"t": values}), [0, 1, 1, 0, 1])[:, 0, 0]
        for values in (
            [3.0, 1.0, 1.0, 2.0, np.nan],
            pd.to_datetime(["2024-03", "2023-01", "2023-01", "2024-01", None]),
            far,
        )
    )
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert first[1] == first[2] < first[3] < first[0]
    assert first[4] == 0.25
    assert first.mean() == pytest.approx(0.25, abs=1e-12)
    np.testing.assert_allclose(noise.transition_matrices(pd.DataFrame({"t": [np.nan] * 3}), [0, 1, 1])[:, 0, 1], 0.25)


def test_noise_rises_towards_the_boundary():
    eta = np.arange(513) / 512
    y = (eta > 0.5).astype(int)
    by_column, by_matrix = (InstanceNoise(0.2, model=model) for model in (eta, np.column_stack([1 - eta, eta])))
    matrices = by_column.transition_matrices(None, y)
    np.testing.assert_allclose(by_matrix.transition_matrices(None, y), matrices, atol=1e-12)
    rates = matrices[:, 0, 1]
    np.testing.assert_array_equal(rates, matrices[:, 1, 0])
    np.testing.assert_allclose(rates, rates[::-1], atol=1e-12)
    assert (np.diff(rates[:257]) > 0).all()
    assert rates.mean() == pytest.approx(0.2, abs=1e-12)
    assert rates.max() <= 0.51
    # Up to a rate of one half no row changes its side.
    twisted = np.einsum("nk,nkl->nl", np.column_stack([1 - eta, eta]), matrices)[:, 1]
    assert (twisted[eta > 0.51] > 0.499).all()
    # Of several classes the likeliest is taken for the second one, and all others for the likeliest.
    matrix = InstanceNoise(0.5, model=[[0.1, 0.6, 0.0, 0.3]] * 5).transition_matrices(None, [0, 1, 2, 3, 0])[0]
    np.testing.assert_allclose(matrix, [[0.5, 0.5, 0, 0], [0, 0.5, 0, 0.5], [0, 0.5, 0.5, 0], [0, 0.5, 0, 0.5]])


def test_the_boundary_is_found_from_clean_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] > 0, "spam", "ham")
    rates = InstanceNoise(0.2).transition_matrices(X, y)[:, 0, 1]
    near, far = (np.abs(X[:, 0]) < 0.2), (np.abs(X[:, 0]) > 1.0)
    assert rates[near].mean() > 0.35
    assert rates[far].mean() < 0.13
    assert rates.mean() == pytest.approx(0.2, abs=1e-12)
    frame = pd.DataFrame({"x": X[:, 0], "city": rng.choice(["Rome", "Bern"], 600), "empty": np.nan})
    frame.loc[:9, "x"] = np.nan
    rates = InstanceNoise(0.2).transition_matrices(frame, y)[:, 0, 1]
    assert rates[near].mean() > 0.35

    class Model:
        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-X[:, 1]))
            return np.column_stack([1 - p, p])

    rates = InstanceNoise(0.2, model=Model()).transition_matrices(X, y)[:, 0, 1]
    assert (np.diff(rates[np.argsort(np.abs(X[:, 1]))]) <= 0).all()
    # Rows that are in every draw count as near to the boundary, and nothing breaks.
    assert InstanceNoise(0.2).twist(X[:2], y[:2] if y[0] != y[1] else ["ham", "spam"], 0)[1].size == 2


def test_row_twisters_are_values():
    assert SourceNoise(np.array(["a", "b"]), {"a": np.eye(2)}) == SourceNoise(("a", "b"), {"a": ((1, 0), (0, 1))})
    assert SourceNoise("a", {"a": 0.1}) != SourceNoise("a", {"a": 0.2})
    assert InstanceNoise(0.1, model=np.array([0.5, 0.1])) == InstanceNoise(0.1, model=[0.5, 0.1])
    made = [SourceNoise([1, 2], {1: [0.1, 0.2]}), SourceNoise("a", 0.3), InstanceNoise(0.1), InstanceNoise(0.1, "a")]
    assert len({*made, *made}) == 4
    rates = {"a": 0.1}
    noise = SourceNoise("x", rates)
    rates["a"] = 0.9
    assert noise.noise == {"a": 0.1}


def test_bad_sources_columns_and_models():
    y = ["a", "b", "c"]
    X = pd.DataFrame({"who": ["p", "q", "p"], "t": [1.0, 2.0, 3.0]})
    for call, message in [
        (lambda: SourceNoise(None, 0.1), "source must be the name or the index of a column, or an array, got None"),
        (lambda: SourceNoise(1.5, 0.1), "source must be the name or the index of a column, or an array, got 1.5"),
        (lambda: SourceNoise(np.zeros((3, 2)), 0.1), r"source must be one per row, got shape \(3, 2\)"),
        (lambda: SourceNoise([1, 2], 0.1).twist(None, y, 0), "source must be one per row, got 2 for 3 rows"),
        (lambda: SourceNoise([None] * 3, 0.1).twist(None, y, 0), "source must name at least one source, got none"),
        (lambda: SourceNoise("who", 0.1).twist(None, y, 0), "X must be a table .* to find the source in"),
        (lambda: SourceNoise("whom", 0.1).twist(X, y, 0), "source must be indices from 0 to 1 or names .* got 'whom'"),
        (lambda: SourceNoise("who", {"z": 0.1}).twist(X, y, 0), r"sources that there are, such as \['p', 'q'\], got"),
        (lambda: SourceNoise("who", 1.1), r"noise must lie in \[0, 1\], got 1.1"),
        (lambda: SourceNoise("who", {"p": -1}), r"noise of 'p' must lie in \[0, 1\], got -1"),
        (lambda: SourceNoise("who", 0.1, others="x"), "others must be numbers, got 'x'"),
        (
            lambda: SourceNoise("who", {"p": [0.5]}),
            "noise of 'p' must be a rate, a rate for each class or a transition",
        ),
        (lambda: SourceNoise("who", [[0.5, 0.4], [0, 1]]), "noise must sum to 1 in each row, got 0.9 in row 0"),
        (lambda: SourceNoise("who", 0.1, seed=-1), "seed must be an integer >= 0, got -1"),
        (lambda: SourceNoise("who", [0.1, 0.2]).twist(X, y, 0), "y must have 2 classes, as the noise has, got 3"),
        (lambda: InstanceNoise(0.6), "rate must be at most highest, 0.5, got 0.6"),
        (lambda: InstanceNoise(-0.1), r"rate must lie in \[0, 1\], got -0.1"),
        (lambda: InstanceNoise(0.1, highest=2), r"highest must lie in \[0, 1\], got 2"),
        (lambda: InstanceNoise(0.1, ["t"]), r"column must be the name or the index of a column, got \['t'\]"),
        (lambda: InstanceNoise(0.1, "t", model=[0.1]), "column and model must not both be given"),
        (
            lambda: InstanceNoise(0.1, "who").twist(X, y, 0),
            "column must be one of numbers or dates, which 'who' is not",
        ),
        (lambda: InstanceNoise(0.1, "u").twist(X, y, 0), "column must be indices from 0 to 1 or names .*, got 'u'"),
        (lambda: InstanceNoise(0.1, "t").twist(None, y, 0), "X must be a table .* to find the column in"),
        (lambda: InstanceNoise(0.1).twist(None, y, 0), "X must be a table .* to find the model in"),
        (lambda: InstanceNoise(0.1, model="x"), "model must be numbers, got 'x'"),
        (lambda: InstanceNoise(0.1, model=[0.1, 2.0]), r"model must lie in \[0, 1\], got 2.0"),
        (
            lambda: InstanceNoise(0.1, model=[0.1, 0.2, 0.3]).twist(None, y, 0),
            r"model must give posteriors of shape \(3, 3\), got \(3,\)",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# ---- features: what holds for all ----


@pytest.mark.parametrize("twister", FEATURE_TWISTERS, ids=repr)
@pytest.mark.parametrize("as_array", [False, True], ids=["frame", "array"])
def test_feature_twisters_report_what_they_change_and_leave_the_input_alone(twister, as_array):
    X = make_frame().to_numpy(dtype=object) if as_array else make_frame()
    y = np.arange(len(X)) % 2
    before = X.copy()
    twisted, y_twisted, changed = twister.twist(X, y, 0)
    np.testing.assert_array_equal(list_cells(X), list_cells(before))
    assert y_twisted is y
    assert type(twisted) is type(X)
    assert changed.any()
    np.testing.assert_array_equal(changed, list_cells(twisted) != list_cells(X))
    # What is missing stays so, and nothing else becomes missing.
    np.testing.assert_array_equal(pd.isna(twisted), pd.isna(X))
    np.testing.assert_array_equal(list_cells(twister.twist(X, y, np.random.default_rng(0))[0]), list_cells(twisted))
    assert (list_cells(twister.twist(X, y, 1)[0]) != list_cells(twisted)).any()
    if not as_array:
        assert twisted.index.equals(X.index)
        assert twisted.columns.equals(X.columns)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, bool, "U3", object])
def test_arrays_keep_their_type(kind):
    X = np.array([[1, 0], [0, 0], [1, 1], [0, 1]]).astype(kind)
    twisted, _, changed = FeatureNoise(1.0).twist(X, None, 0)
    assert twisted.dtype == X.dtype
    assert changed.all()
    np.testing.assert_array_equal(twisted, (1 - X.astype(int)).astype(kind))


def test_twisters_are_values():
    assert FeatureNoise(0.1, columns=["a"]) == FeatureNoise(0.1, columns=("a",))
    assert Insider(["a"], noise={"a": 1}) == Insider(("a",), noise={"a": 1.0})
    assert Insider(["a"], noise={"a": 1}) != Insider(["a"], noise={"a": 2})
    assert BernoulliNoise(0.1) != ClassNoise(0.1)
    assert len({FeatureNoise(0.1, columns=["a"]), FeatureNoise(0.1, columns=["a"])}) == 1
    assert len({Insider(["a"], noise={"a": 1}), Insider(["a"], noise={"a": 1})}) == 1


# ---- feature noise ----


def test_feature_noise_takes_rows_and_then_cells():
    n, d = 20_000, 9
    X = np.random.default_rng(0).random((n, d)) < 0.5
    twisted, _, changed = FeatureNoise(0.3).twist(X, None, 0)
    np.testing.assert_array_equal(twisted, X ^ changed)
    assert changed.mean() == pytest.approx(0.09, abs=0.005)
    assert changed.any(axis=1).mean() == pytest.approx(0.3 * (1 - 0.7**d), abs=4 * math.sqrt(0.25 / n))
    assert changed[changed.any(axis=1)].mean() == pytest.approx(0.3 / (1 - 0.7**d), abs=0.01)
    _, _, changed = FeatureNoise(0.5, 0.1).twist(X, None, 0)
    assert changed.mean() == pytest.approx(0.05, abs=0.005)


def test_feature_noise_at_its_extremes():
    X = np.array([[0, 5, 7, 1], [1, 5, 8, 2], [1, 5, 9, 2]])
    for rates in [(0.0,), (1.0, 0.0), (0.0, 1.0)]:
        twisted, _, changed = FeatureNoise(*rates).twist(X, None, 0)
        np.testing.assert_array_equal(twisted, X)
        assert not changed.any()
        assert not np.shares_memory(twisted, X)
    twisted, _, changed = FeatureNoise(1.0).twist(X, None, 0)
    np.testing.assert_array_equal(twisted[:, [0, 1, 3]], [[1, 5, 2], [0, 5, 1], [0, 5, 1]])
    assert set(twisted[:, 2]) <= {7, 8, 9}
    assert changed[:, 2].all()  # The values are those of another row, and these all differ.
    one_row, _, changed = FeatureNoise(1.0).twist(pd.DataFrame({"a": [1.5], "b": ["x"], "c": [True]}), None, 0)
    assert one_row.to_numpy().tolist() == [[1.5, "x", False]]  # A Boolean has another value even if it is alone.
    assert changed.tolist() == [[False, False, True]]
    assert FeatureNoise(1.0).twist(np.empty((0, 2)), None, 0)[0].shape == (0, 2)


def test_feature_noise_draws_from_the_other_rows():
    column = np.repeat([0.0, 1.0, 2.0], [1, 1000, 3000])
    twisted, _, _ = FeatureNoise(1.0).twist(column[:, None], None, 0)
    assert np.mean(twisted == 2) == pytest.approx(0.75, abs=4 * math.sqrt(0.25 / 4000))
    assert twisted[0] != 0
    gaps = np.array([[np.nan], [3.0], [np.nan], [4.0], [5.0]])
    for seed in range(20):
        twisted, _, changed = FeatureNoise(1.0).twist(gaps, None, seed)
        np.testing.assert_array_equal(changed[:, 0], [False, True, False, True, True])
        assert set(twisted[changed]) <= {3.0, 4.0, 5.0}


def test_feature_noise_in_chosen_columns_of_a_frame_keeps_all_types():
    X = make_frame()
    twisted, _, changed = FeatureNoise(1.0).twist(X, None, 0)
    assert twisted.dtypes.equals(X.dtypes)
    assert changed.any(axis=0).all()
    assert changed[3:, [2, 7]].all()  # Booleans, plain and nullable
    _, _, changed = FeatureNoise(1.0, columns=["flag", 4, "flag"]).twist(X, None, 0)
    assert np.flatnonzero(changed.any(axis=0)).tolist() == [2, 4]
    assert changed[:, 2].all()  # A column given twice is flipped once.
    _, _, changed = FeatureNoise(1.0, columns=[]).twist(X, None, 0)
    assert not changed.any()


# ---- the insider ----


def make_shoppers(n=20_000):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "PageValues": rng.exponential(6.0, n),
            "Month": rng.choice(["Aug", "Dec", "Feb", "May"], n),
            "Region": rng.integers(1, 10, n),
            "VisitorType": rng.choice(["New_Visitor", "Other", "Returning_Visitor"], n),
        }
    )


def test_the_insider_of_the_paper():
    X = make_shoppers()
    n = len(X)
    insider = Insider(["PageValues", "Month", "VisitorType"], noise={"PageValues": 60.0})
    twisted, _, changed = insider.twist(X, None, 0)
    added = twisted["PageValues"] - X["PageValues"]
    assert added.mean() == pytest.approx(0.0, abs=4 * 60 / math.sqrt(n))
    assert added.std() == pytest.approx(60.0, rel=4 / math.sqrt(2 * n))
    after = {"Aug": "Dec", "Dec": "Feb", "Feb": "May", "May": "Aug"}
    after |= {"New_Visitor": "Other", "Other": "Returning_Visitor", "Returning_Visitor": "New_Visitor"}
    for name in ("Month", "VisitorType"):
        shifted = changed[:, X.columns.get_loc(name)]
        assert shifted.mean() == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / n))
        assert twisted[name][shifted].equals(X[name][shifted].map(after))
    assert changed[:, 0].all()
    assert twisted["Region"].equals(X["Region"])


def test_the_insider_of_the_paper_on_encoded_columns():
    X = make_shoppers(500)
    codes = X.assign(**{name: X[name].astype("category").cat.codes for name in ("Month", "VisitorType")})
    named = Insider(["PageValues", "Month", "VisitorType"], noise={"PageValues": 60.0}).twist(X, None, 0)
    coded = Insider([0, 1, 3], noise={0: 60.0}).twist(codes.to_numpy(dtype=float), None, 0)
    np.testing.assert_array_equal(named[2], coded[2])
    np.testing.assert_array_equal(named[0]["PageValues"], coded[0][:, 0])
    np.testing.assert_array_equal(named[0]["Month"].astype("category").cat.codes, coded[0][:, 1])


def test_noise_in_standard_deviations_and_the_types_it_leaves():
    X = make_frame(4000)
    twisted, _, _ = Insider(range(10), noise=2.0, shift=1.0).twist(X, None, 0)
    for name in ("number", "small", "count", "nullable"):
        added = twisted[name].astype(float) - X[name].astype(float)
        assert added.std() == pytest.approx(2 * X[name].astype(float).std(), rel=0.06)
    kept = [name for name in X if name not in ("count", "nullable")]
    assert twisted[kept].dtypes.equals(X[kept].dtypes)
    assert twisted["count"].dtype == twisted["nullable"].dtype == np.float64
    assert (
        twisted["size"].dropna() == X["size"].dropna().map({"L": "M", "M": "S", "S": "L"}).astype(X["size"].dtype)
    ).all()
    assert (twisted["flag"] == ~X["flag"]).all()
    assert Insider([0]).twist(np.array([[1, 2], [3, 4]]), None, 0)[0].dtype == np.float64
    assert Insider([0]).twist(np.array([[1, 2], [3, 4]], np.float32), None, 0)[0].dtype == np.float32


def test_categories_that_are_numbers_shift_only_where_they_count_as_categories():
    X = pd.DataFrame({"code": pd.Categorical([3, 1, None, 10]), "number": [3, 1, 1, 10]})
    twisted, _, _ = Insider(["code"], shift=1.0).twist(X, None, 0)
    assert twisted["code"].dtype == X["code"].dtype
    assert twisted["code"].dropna().tolist() == [10, 3, 1]  # 10 is the last, after 3, not the second, after "1".
    mixed = np.array([["b"], [10], [None], [9], ["a"]], dtype=object)
    assert Insider([0], shift=1.0).twist(mixed, None, 0)[0].ravel().tolist() == [9, "a", None, 10, "b"]
    twisted, _, _ = Insider(["number"], noise={}, shift=1.0).twist(X, None, 0)
    assert twisted["number"].tolist() == [10, 3, 3, 1]


def test_what_an_insider_does_unless_told_otherwise():
    plain = Insider([0])
    assert (plain.noise, plain.shift) == (1.0, 0.5)
    x = np.arange(5000.0)[:, None]
    noise = plain.twist(x, None, rng=0)[0] - x
    assert noise.std() == pytest.approx(x.std(), rel=0.05)
    assert noise.mean() == pytest.approx(0.0, abs=4 * x.std() / np.sqrt(5000))


def test_an_insider_keeps_scales_of_its_own():
    scales = {0: 3}
    insider = Insider([0], noise=scales)
    scales[0] = 7
    assert insider.noise == {0: 3.0}


def test_whole_numbers_are_floats_as_soon_as_one_is_not_whole_any_more():
    twisted = Insider([0], noise={0: 1.0}).twist(np.array([[10**17], [1]]), None, rng=0)[0]
    assert twisted.dtype == np.float64
    assert twisted[1, 0] % 1 != 0


def test_the_insider_at_its_extremes():
    X = pd.DataFrame({"constant": [7, 7, 7], "same": ["x"] * 3, "none": [None] * 3, "big": [np.inf, 1.0, np.nan]})
    twisted, _, changed = Insider(range(4), shift=1.0).twist(X, None, 0)
    assert not changed.any()  # There is no spread, no second category, or nothing at all.
    assert twisted.equals(X)
    twisted, _, changed = Insider(["constant", "big"], noise={"constant": 1e30, "big": 1.0}).twist(X, None, 0)
    assert changed[:, 0].all()
    assert (twisted["constant"].abs() > 1e20).any()
    assert changed[:, 3].tolist() == [False, True, False]
    X = make_shoppers(30)
    _, _, changed = Insider(range(4), noise=0.0, shift=0.0).twist(X, None, 0)
    assert not changed.any()
    twisted, _, changed = Insider([0, 1], noise={0: 1.0}, shift=1.0).twist(X.iloc[:1], None, 0)
    assert changed.tolist() == [[True, False, False, False]]


def test_the_most_informative_columns():
    rng = np.random.default_rng(0)
    X = make_shoppers(800)
    X.iloc[:50, 0] = np.nan
    y = np.where((X["Month"] == "Dec") == (X["Region"] > 4), "buys", "leaves")
    y[X["Region"] > 7] = "buys"
    X["noise"], X["empty"], X["hint"] = rng.normal(size=800), np.nan, y == "buys"
    for k, expected in [(1, [6]), (3, [1, 2, 6]), (7, [0, 1, 2, 3, 4, 6])]:
        _, _, changed = Insider(k).twist(X, y, 0)
        assert np.flatnonzero(changed.any(axis=0)).tolist() == expected


def test_bad_tables_columns_and_scales():
    X = make_shoppers(5)
    for call, message in [
        (lambda: FeatureNoise(1.5), r"row_rate must lie in \[0, 1\], got 1.5"),
        (lambda: FeatureNoise(0.5, -1), r"cell_rate must lie in \[0, 1\], got -1"),
        (lambda: FeatureNoise(0.5, columns=2), "columns must be a list of column names or indices, got 2"),
        (lambda: FeatureNoise(0.5, columns="Month"), "columns must be a list of column names or indices, got 'Month'"),
        (lambda: FeatureNoise(0.5, columns=[True]), "columns must be a list"),
        (lambda: Insider(0), "columns must be an integer >= 1, got 0"),
        (lambda: Insider(["a"], noise=-1), "noise must be a number >= 0, got -1"),
        (lambda: Insider(["a"], noise={"a": math.inf}), "noise of 'a' must be finite, got inf"),
        (lambda: Insider(["a"], shift=2), r"shift must lie in \[0, 1\], got 2"),
        (lambda: Insider(2, noise={"a": 1.0}), "noise must be one number where columns is one too"),
        (lambda: Insider(2).twist(X, None, 0), "y must be given to find the most informative columns"),
        (lambda: Insider(5).twist(X, [0, 1, 0, 1, 0], 0), "columns must be at most 4, got 5"),
        (lambda: Insider(["Moon"]).twist(X, None, 0), "indices from 0 to 3 or names such as .*, got 'Moon'"),
        (lambda: Insider([4]).twist(X, None, 0), "columns must be indices from 0 to 3.*, got 4"),
        (lambda: Insider([-1]).twist(X.to_numpy(), None, 0), "columns must be indices from 0 to 3, got -1"),
        (lambda: Insider([0], noise={"Month": 1.0}).twist(X, None, 0), "noise must be for columns among .* column 1"),
        (lambda: Insider([1], noise={1: 1.0}).twist(X, None, 0), "noise must be for columns of numbers, not column 1"),
        (lambda: FeatureNoise(0.5).twist(np.zeros(3), None, 0), r"X must be a table of rows and columns.* \(3,\)"),
        (lambda: FeatureNoise(0.5).twist(X, [0, 1], 0), "as many rows, got 5 and 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [1e-4, 1e-6, 1e-12])
def test_noise_that_rises_has_its_mean_rate_however_low(rate):
    rows = np.arange(100.0)[:, None]
    matrices = InstanceNoise(rate, column=0).transition_matrices(rows, np.arange(100) % 2)
    assert matrices[:, 0, 1].mean() == pytest.approx(rate)
