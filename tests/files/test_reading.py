"""The limits of what a model file may say, one by one: what lies at a limit is read, what lies beyond it is refused."""

import math

import numpy as np
import pytest

from helpers.file_arrays import Arrays, above, below, refuses
from untwist.files import reading, writing
from untwist.files.layout import SOURCE_ARRAYS
from untwist.noise import MenonEstimate
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise

# ---- columns ----


def test_categories_are_text_or_numbers_that_differ_in_columns_that_are_there():
    assert reading._read_categories([[0, [1, "a", 0.5]], [2, []]], 3) == {0: (1, "a", 0.5), 2: ()}
    with refuses("categories are a list"):
        reading._read_categories([[0, {"tuple": [1, 2]}]], 1)
    for odd in ([1, 1], ["a", "a"], [1, 1.0], [True], ["a", None], [{"number": "nan"}], [{"tuple": [1]}]):
        with refuses("categories are different"):
            reading._read_categories([[0, odd]], 1)
    with refuses("a column has its categories once"):
        reading._read_categories([[0, [1]], [0, [1]]], 1)
    for column in (-1, 3, "0"):
        with pytest.raises(ValueError, match="is no whole number from 0 to 2"):
            reading._read_categories([[column, [1]]], 3)


def read_numbers(values, categories=("a", "b"), times=1):
    arrays = Arrays()
    about = [[1, arrays.put(values)] for _ in range(times)]
    return reading._read_numbers(about, {1: categories}, arrays.make_reader())


def test_a_coded_column_has_a_number_per_category_and_one_more():
    assert read_numbers([-1e6, 0.5, 1e6]) == {1: (-1e6, 0.5, 1e6)}
    for values in ([0.0, 0.0], [0.0] * 4):
        with refuses("there is a number for each category and for an unknown one"):
            read_numbers(values)
    for odd in (above(1e6), below(-1e6), math.nan):
        with refuses("the numbers of categories are finite"):
            read_numbers([0.0, odd, 0.0])
    with refuses("a column has its numbers once"):
        read_numbers([0.0] * 3, times=2)


def test_readings_are_of_columns_that_are_there():
    (found,) = reading._read_readings([[2, "number", ",", "month"]], {}, 3).items()
    assert (found[0], found[1].kind, found[1].decimal, found[1].order) == (2, "number", ",", "month")
    for column in (-1, 3):
        with pytest.raises(ValueError, match="is no whole number from 0 to 2"):
            reading._read_readings([[column, "date", ".", "day"]], {}, 3)


def read_columns(n_scores=1, **about):
    about = {"count": 2, "names": None, "categories": [], "numbers": [], "readings": []} | about
    about = {"missing": None, "other_names": None, "durations": [], "truths": []} | about
    return reading._read_columns(about, n_scores, None, Arrays().make_reader())


def test_columns_are_counted_named_and_bounded():
    assert read_columns().n_features == 2
    assert read_columns().feature_names is None
    assert read_columns(names=["a", "b"]).feature_names.tolist() == ["a", "b"]
    for names in (["a"], ["a", "b", "c"]):
        with refuses("there is a name for each column"):
            read_columns(names=names)
    assert read_columns(count=1).n_features == 1
    assert read_columns(count=2**23).n_features == 2**23
    assert read_columns(count=2**20, n_scores=8).n_features == 2**20
    assert read_columns(count=2**23, n_scores=0).n_features == 2**23
    for count, n_scores in [(0, 1), (2**23 + 1, 1), (2**20 + 1, 8)]:
        with pytest.raises(ValueError, match="is no whole number from 1 to"):
            read_columns(count=count, n_scores=n_scores)


def test_254_categories_make_sets_and_255_do_not():
    assert len(read_columns(categories=[[1, list(range(254))]]).schema.categories[1]) == 254
    with refuses("a column that is not coded by its labels has at most 254 categories"):
        read_columns(categories=[[1, list(range(255))]])


def test_scores_are_counted_by_ensembles_or_by_outputs():
    one, three = {"outputs": 1}, {"outputs": 3}
    assert reading._count_scores([one]) == 1
    assert reading._count_scores([one, one, one]) == 3
    assert reading._count_scores([three]) == 3
    for odd in (0, 2**23 + 1):
        with pytest.raises(ValueError, match="is no whole number from 1"):
            reading._count_scores([{"outputs": odd}])
    with refuses("two classes have one score"):
        reading._count_scores([{"outputs": 2}])
    with refuses("an ensemble with several outputs is the only one"):
        reading._count_scores([one, three])


# ---- classes ----


def read_names(values, kind="<U3", most_letters=9):
    return reading._read_names("classes", {"type": kind, "values": values}, most_letters)


def test_names_are_sorted_different_and_of_their_type():
    assert read_names(["a", "b", "c"]).tolist() == ["a", "b", "c"]
    assert read_names([-1, 5], "<i8").tolist() == [-1, 5]
    assert read_names([1, "b"][1:], "|O").dtype == object
    for values, kind in [(["b", "a"], "<U3"), (["a", "a"], "<U3"), (["long"], "<U3"), ([256], "|u1"), ([0.5], "<i8")]:
        with pytest.raises((ValueError, OverflowError)):
            read_names(values, kind)
    for values, kind, message in [
        (["a", 1], "<U3", "classes of a text type are text"),
        ([1, "a"], "<i8", "classes of a type of numbers are numbers"),
        ([None], "|O", "classes are text or numbers"),
        ([], "<i8", "there are classes"),
        ("ab", "<U3", "there are classes"),
        ([1], ["<i8"], ".* is a type of classes"),
        ([1], "<c16", ".* is a type of classes"),
    ]:
        with refuses(message):
            read_names(values, kind)


def test_letters_are_counted_by_the_longest_name():
    assert read_names(["a", "b", "c"], "<U3", 9).dtype == "<U3"
    with refuses("names of classes are short"):
        read_names(["a", "b", "c"], "<U3", 8)


def test_classes_are_two_at_least_and_no_more_than_scores():
    def read_classes(count, n_scores):
        return len(reading._read_classes({"type": "<i8", "values": list(range(count))}, n_scores))

    assert [read_classes(2, 1), read_classes(3, 3)] == [2, 3]
    for count, n_scores, message in [(1, 1, "there are two classes"), (3, 1, "there are trees for each class")]:
        with refuses(message):
            read_classes(count, n_scores)


def test_class_weights_have_finite_ratios():
    def read(*weights):
        return reading._read_class_weights(list(weights), np.arange(2)).tolist()

    assert read(0.0, 1.0) == [0.0, 1.0]
    assert read(above(1e-100), below(1e100)) == [above(1e-100), below(1e100)]
    for odd, message in [
        ((1e-100, 1.0), "class weights are 0 or between"),
        ((1.0, 1e100), "class weights are 0 or between"),
        ((0.0, 0.0), "a class has a weight above 0"),
        ((1.0,), "there is a weight per class"),
        ((-1.0, 1.0), "numbers are finite and at least 0"),
    ]:
        with refuses(message):
            read(*odd)


# ---- the rest of the model ----


def test_each_row_held_out_has_a_share():
    arrays = Arrays()
    about = [arrays.put([4, 7], "<i8"), arrays.put([0.5, 1.0])]
    rows, shares = reading._read_held_out(about, arrays.make_reader(), 8)
    assert (rows.tolist(), rows.dtype, shares.tolist()) == ([4, 7], np.intp, [0.5, 1.0])
    for held_out, message in [([0.5], "each row held out has a share"), ([0.5, -0.1], "numbers are finite and at")]:
        arrays = Arrays()
        about = [arrays.put([4, 7], "<i8"), arrays.put(held_out)]
        with refuses(message):
            reading._read_held_out(about, arrays.make_reader(), 8)


@pytest.mark.parametrize("row", [-1, 8])
def test_rows_held_out_are_rows_of_the_training(row):
    arrays = Arrays()
    about = [arrays.put([4, row], "<i8"), arrays.put([0.5, 1.0])]
    with refuses("rows held out are rows of the training"):
        reading._read_held_out(about, arrays.make_reader(), 8)


def test_a_link_is_known_and_has_an_alpha():
    assert reading._read_link({"kind": "softmax", "alpha": 1e100}).loss.alpha == 1e100
    for odd in (-0.5, above(1e100), {"number": "inf"}):
        with refuses(".* lies in"):
            reading._read_link({"kind": "softmax", "alpha": odd})
    assert reading._read_link({"kind": "clipped", "alpha": -2.0}).loss.alpha == -2.0


def test_noise_of_the_paper_holds_no_arrays():
    values = {"rate_neg": 0.1, "interval_neg": (0.0, 0.2), "rate_pos": 0.3, "interval_pos": (0.25, 0.5), "found": False}
    estimate = MenonEstimate(**values, rate=0.2, eta_mean=0.4, alpha=1.5)
    about = writing._describe_menon(estimate)
    assert reading._read_menon(about, 2) == estimate
    with refuses("found is true or false"):
        reading._read_menon(about | {"found": 0}, 2)
    with refuses("the estimate of the paper is for two classes"):
        reading._read_menon(about, 3)
    assert reading._read_noise(None, Arrays().make_reader(), 2) is None


def test_arrays_of_rates_are_at_least_0_and_bends_may_be_below():
    for name in ("weights", "rates_neg", "rates_pos", "slopes", "shortfalls", "bends"):
        arrays = Arrays()
        number = arrays.put([0.5, -0.5])
        if name == "bends":
            assert reading._read_of_pairs(name, number, arrays.make_reader()).tolist() == [0.5, -0.5]
            continue
        with refuses("numbers are finite and at least 0"):
            reading._read_of_pairs(name, number, arrays.make_reader())


def test_other_fields_of_noise_are_numbers_of_their_kind():
    def read(name, plain):
        return reading._read_noise_field(name, plain)

    assert read("interval_neg", {"tuple": [0, 0.5]}) == (0.0, 0.5)
    assert (read("found", True), read("uneven_limit", 1), read("share", 0)) == (True, 1.0, 0.0)
    assert read("offset", {"number": "inf"}) == math.inf
    for name, odd in [
        ("found", 1),
        ("uneven_limit", above(1.0)),
        ("uneven_limit", -1e-9),
        ("share", above(1.0)),
        ("rate", "x"),
        ("rate_neg", -1e-9),
        ("rate_pos", above(1.0)),
        ("rate", {"number": "nan"}),
        ("interval_neg", {"tuple": [0.5, 0.25]}),
        ("interval_pos", {"tuple": [0.5, {"number": "inf"}]}),
    ]:
        with pytest.raises(ValueError, match=r"."):
            read(name, odd)


OF_PAIRS = ("weights", "rates_neg", "rates_pos", "slopes", "bends")
GOOD = {
    "weights": [0.25, 0.75],
    "rates_neg": [0.0, 0.5],
    "rates_pos": [0.2, 0.5 - 2.0**-53],
    "slopes": [2.0, below(1e3)],
    "bends": [-2.0, 0.0],
    "shortfalls": None,
    "clearest": 0.1,
    "scale": 1.0,
    "offset": -3.0,
}


def check_rates(**changes):
    values = {name: np.array(one) if isinstance(one, list) else one for name, one in (GOOD | changes).items()}
    reading._check_rates(values)


def test_noise_of_two_classes_may_lie_on_its_limits():
    check_rates()
    check_rates(bends=None)
    check_rates(scale=below(1e6), clearest=above(0.0))
    check_rates(clearest=below(0.5), scale=above(0.0))
    check_rates(offset=-below(1e6))
    many = {name: [0.25] * 512 for name in OF_PAIRS}
    check_rates(**many | {"weights": [1.0 / 512] * 512})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [1.0]}, "there is a weight per pair of rates"),
        ({name: [] for name in OF_PAIRS}, "there is a weight per pair"),
        (
            {name: [0.25] * 513 for name in OF_PAIRS},
            "there is a weight",
        ),
        ({"weights": [1.0, 0.0]}, "weights of rates are positive"),
        ({"weights": [0.5, 0.5 + 1e-8]}, "weights of rates sum to one"),
        ({"rates_pos": [0.2, 0.5]}, "rates sum to less than one"),
        ({"clearest": 0.0}, "the clearest posterior lies in"),
        ({"clearest": 0.5}, "the clearest posterior lies in"),
        ({"scale": 0.0}, "the scale of the calibration is positive"),
        ({"scale": math.inf}, "the calibration is finite"),
        ({"offset": math.inf}, "the calibration is finite"),
        ({"offset": math.nan}, "the calibration is finite"),
        ({"offset": -1e6}, "the offset of the calibration is below"),
        ({"scale": 1e6}, "the scale of the calibration is below"),
        ({"slopes": [2.0, 1e3]}, "slopes are below"),
        ({"bends": [above(2.0), 0.0]}, "clean posteriors rise"),
        ({"bends": [below(-2.0), 0.0]}, "clean posteriors rise"),
    ],
    ids=str,
)
def test_noise_of_two_classes_beyond_its_limits_is_refused(changes, message):
    with refuses(message):
        check_rates(**changes)


EYE = np.eye(3).tolist()
MATRICES = {
    "weights": [0.5, 0.5],
    "matrices": [EYE, [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]],
    "slopes": [[0.0, 1.0, below(1e3)]] * 2,
    "offsets": [[below(1e6), -below(1e6), 0.0]] * 2,
    "class_shares": [0.0, 0.5, 1.0],
    "class_intervals": [[0.0, 1.0]] * 3,
    "decided_pairs": [[0, 1, 0], [1, 0, 1], [0, 0, 0]],
}
BESIDE = {"least": 0.01, "evidence": 1.5, "share": 0.0, "interval": {"tuple": [0.0, 1.0]}, "uneven_limit": 1.0}


def read_matrices(n_classes=3, beside=None, **changes):
    arrays = Arrays()
    about = {name: arrays.put(np.ravel((MATRICES | changes)[name])) for name in SeveralClassesNoise.array_axes}
    about |= BESIDE | {"found": True} | (beside or {})
    return reading._read_noise(about, arrays.make_reader(), n_classes)


def test_matrices_may_lie_on_their_limits():
    found = read_matrices()
    assert isinstance(found, SeveralClassesNoise)
    for name, expected in MATRICES.items():
        np.testing.assert_array_equal(getattr(found, name), expected)
    assert (found.least, found.evidence, found.share, found.interval) == (0.01, 1.5, 0.0, (0.0, 1.0))
    assert (found.uneven_limit, found.found, found.decided_pairs.dtype) == (1.0, True, np.bool_)
    read_matrices(beside={"least": below(1.0 / 3.0), "evidence": {"number": "nan"}})
    repeated = {
        name: np.repeat(np.array(MATRICES[name])[:1], 512, axis=0) for name in ("matrices", "slopes", "offsets")
    }
    read_matrices(weights=[1 / 512] * 512, **repeated)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_classes": 2}, "the noise of 2 classes has weights, rates_neg"),
        ({"weights": [1.0, 0.0]}, "weights of matrices are positive"),
        ({"weights": [0.5, 0.5 - 2e-9]}, "weights of matrices sum to one"),
        ({"weights": [0.5, 0.5 + 2e-9]}, "weights of matrices sum to one"),
        ({"slopes": [[0.0, -1e-9, 1.0]] * 2}, "slopes are between"),
        ({"slopes": [[0.0, 1e3, 1.0]] * 2}, "slopes are between"),
        ({"offsets": [[-1e6, 0.0, 0.0]] * 2}, "offsets are below"),
        ({"class_shares": [0.0, above(1.0), 0.5]}, "class_shares are shares"),
        ({"class_intervals": [[-1e-9, 1.0]] * 3}, "class_intervals are shares"),
        ({"decided_pairs": [[0, 0.5, 0]] * 3}, "decided_pairs are 0 or 1"),
        ({"decided_pairs": [[0, 2, 0]] * 3}, "decided_pairs are 0 or 1"),
        ({"decided_pairs": [[0, 1]] * 3}, "decided_pairs has a number for each of its axes"),
        ({"beside": {"least": 0.0}}, "the least posterior is positive"),
        ({"beside": {"least": 1.0 / 3.0}}, "the least posterior is positive"),
        ({"beside": {"uneven_limit": above(1.0)}}, ".* lies in"),
        ({"beside": {"interval": {"tuple": [0.0, above(1.0)]}}}, ".* lies in"),
        ({"beside": {"share": -1e-9}}, ".* lies in"),
        ({"matrices": [EYE, (2 * np.eye(3) - 1 / 3).tolist()]}, "the rows of transition matrices are shares"),
        ({"matrices": [EYE, ((1 + 2e-9) * np.eye(3)).tolist()]}, "the rows of transition matrices are shares"),
        ({"matrices": [EYE, ((1 - 2e-9) * np.eye(3)).tolist()]}, "the rows of transition matrices are shares"),
    ],
    ids=str,
)
def test_matrices_beyond_their_limits_are_refused(changes, message):
    with refuses(message):
        read_matrices(**changes)


def test_matrices_that_are_nearly_singular_are_refused():
    def make(gap):
        """Return a matrix whose inverse has numbers up to about 1 / gap."""
        return np.array([[[0.5 + gap / 2, 0.5 - gap / 2], [0.5 - gap / 2, 0.5 + gap / 2]]])

    reading._check_matrices(make(1e-8))
    for gap in (1e-10, 0.0):
        with refuses("transition matrices are invertible"):
            reading._check_matrices(make(gap))


SOURCES = {
    "counts": [0.0, below(2.0**53)],
    "matrices": [np.eye(2).tolist()] * 2,
    "common": np.eye(2).tolist(),
    "shares": [0.0, 1.0],
    "intervals": [[0.5, 0.5], [0.0, 1.0]],
    "class_intervals": [[[0.25, 0.25], [0.0, 1.0]]] * 2,
    "stands_out": [0, 1],
    "reliability": [above(0.0), 1.0],
}


def read_sources(n_classes=2, evidence=1.0, noise=True, **changes):
    arrays = Arrays()
    about = {"names": {"type": "<U1", "values": ["a", "b"]}, "evidence": evidence}
    for name in SOURCE_ARRAYS:
        about[name] = arrays.put(np.ravel((SOURCES | changes)[name]), "|u1" if name == "stands_out" else "<f8")
    noise = TwoClassNoise.from_rates((0.1, 0.1)) if noise else None
    return reading._read_sources(about, arrays.make_reader(), n_classes, noise)


def test_sources_may_lie_on_their_limits():
    found = read_sources()
    for name, expected in SOURCES.items():
        np.testing.assert_array_equal(getattr(found, name), expected)
    assert (found.names.tolist(), found.evidence, found.stands_out.dtype) == (["a", "b"], 1.0, np.bool_)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": [0.0, 2.0**53]}, "the labels of a source weigh less than"),
        ({"counts": [-1.0, 1.0]}, "numbers are finite and at least 0"),
        ({"shares": [0.0, above(1.0)]}, "shares are shares"),
        ({"intervals": [[above(0.5), 0.5], [0.0, 1.0]]}, "intervals begin before they end"),
        ({"class_intervals": [[[above(0.25), 0.25], [0.0, 1.0]]] * 2}, "class_intervals begin before they end"),
        ({"reliability": [0.0, 1.0]}, "a label of any source is worth something"),
        ({"common": [[1.0, 0.0], [0.0, 1.0 - 2e-9]]}, "the rows of common sum to one"),
        ({"matrices": [[[1.0, 0.0], [2e-9, 1.0]]] * 2}, "the rows of matrices sum to one"),
        ({"evidence": {"number": "-inf"}}, "the evidence of sources is finite"),
        ({"noise": False}, "where there are sources, posteriors of all classes are untwisted"),
    ],
    ids=str,
)
def test_sources_beyond_their_limits_are_refused(changes, message):
    with refuses(message):
        read_sources(**changes)
