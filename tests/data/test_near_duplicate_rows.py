"""Rows that nearly repeat rows of other folds: noticed where they fool models, and hardly ever elsewhere."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs

from helpers.grouped_rows import draw_patients
from helpers.quick import make_classifier, resolve
from untwist import UntwistClassifier
from untwist.data import near_duplicates as near_duplicates
from untwist.data.closeness import ComparedRows
from untwist.data.encoding import TableEncoder
from untwist.data.near_duplicates import NearDuplicates, draw_rows, find_split_rows
from untwist.fit_arguments import SourceColumns
from untwist.near_duplicates import find_near_duplicates
from untwist.training_data import TrainingData


def look(X, y, **parameters):
    settings = resolve(make_classifier(random_state=0, **parameters).get_params())
    return find_near_duplicates(TrainingData.collect(settings, X, y))


def look_slowly(X, labels, fold_of_row):
    """The share of rows with near-duplicates in other folds, by all distances; columns have about the same scale."""
    n_rows = len(X)
    table = ComparedRows(X, TableEncoder(X.shape[1]), range(X.shape[1]))
    n_nearest = min(near_duplicates.MOST_NEIGHBOURS, n_rows // near_duplicates.ROWS_PER_NEIGHBOUR)
    asked = range(n_rows)
    logs, found = [], []
    for row in asked:
        others = np.array([other for other in range(n_rows) if other != row])
        distance = np.sqrt(table.measure(np.full(len(others), row), others))
        order = np.argsort(distance, kind="stable")[:n_nearest]
        distance, near = distance[order], others[order]
        best, last = 0.0, 0
        for k in range(n_nearest - 1 - near_duplicates.N_BEYOND):
            if distance[k + 1] / distance[k] > best:
                best, last = distance[k + 1] / distance[k], k
        logs += [np.log(distance[-1] / distance[k]) for k in range(last + 1, n_nearest - 1)]
        has_other = any(fold_of_row[other] != fold_of_row[row] for other in near[: last + 1])
        of_class = np.count_nonzero(labels == labels[row])
        found.append((best, last + 1, has_other, last + 2 > near_duplicates.MOST_SHARE_OF_CLASS * of_class))
    dimension = max(1.0, 1.0 / np.mean(logs))
    return np.mean(
        [
            jump >= near_duplicates.LEAST_JUMP
            and jump ** (-dimension * k) <= near_duplicates.RARE
            and has_other
            and not is_class
            for jump, k, has_other, is_class in found
        ]
    )


@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_the_share_is_that_of_the_slow_twin(spread, monkeypatch):
    monkeypatch.setattr(near_duplicates, "MOST_ASKED", 10_000)
    monkeypatch.setattr(near_duplicates, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(near_duplicates, "LEAST_HIDDEN", 0.0)
    X, y, _, _ = draw_patients(20, 10, 4, spread)
    fold_of_row = np.random.default_rng(0).integers(3, size=len(y))
    trained = fold_of_row[None] != np.arange(3)[:, None]
    table = ComparedRows(X, TableEncoder(X.shape[1]), range(X.shape[1]))
    found = NearDuplicates.find(table, y.astype(np.uint32), fold_of_row, trained)
    assert found.share == pytest.approx(look_slowly(X, y, fold_of_row), abs=1e-12)
    assert found.share > 0.3
    first, second = found.pairs.T
    assert (fold_of_row[first] != fold_of_row[second]).all()
    assert (y[first] == y[second]).mean() > 0.95
    assert found.disagreement < 0.05


@pytest.mark.parametrize("spread", [0.001, 0.05])
def test_patients_are_noticed(spread):
    X, y, patient, _ = draw_patients(spread=spread)
    found = look(X, y)
    assert found.share > 0.8
    assert found.disagreement == 0.0
    assert found.disagreement_beyond > 0.1
    assert (patient[found.pairs[:, 0]] == patient[found.pairs[:, 1]]).all()
    assert (patient[found.pairs_beyond[:, 0]] != patient[found.pairs_beyond[:, 1]]).all()
    assert found.column is None
    assert "groups=..." in found.describe()
    assert "--groups COLUMN" in found.describe(for_command=True)


def test_a_column_that_names_the_patients_is_named():
    pandas = pytest.importorskip("pandas")
    X, y, patient, _ = draw_patients(30, 12, 4)
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(patient=patient + 1000)
    found = look(frame, y)
    assert found.column == "patient"
    assert "'patient' looks like their name" in found.describe()
    assert "--groups patient" in found.describe(for_command=True)
    numbers = np.column_stack([np.where(patient == 3, np.nan, patient), np.zeros(len(y)), X[:, 0]]).T
    assert found.find_group_column(zip("pab", numbers, strict=True)) == "p"  # Missing values are equal to each other.
    assert found.find_group_column([("constant", np.zeros(len(y)))]) is None


def test_a_command_that_is_advised_is_one_word_and_one_line():
    none = np.empty((0, 2), dtype=np.intp)
    for column, word in {"patient no; ls": "'patient no; ls'", "pat\x1b[31m\n2": "COLUMN", None: "COLUMN"}.items():
        said = NearDuplicates(0.9, 0.0, 0.4, none, none, column).describe(for_command=True)
        assert f"--groups {word}" in said
        assert said.isprintable()


def test_what_is_found_does_not_depend_on_the_order_of_the_rows():
    X, y, _, _ = draw_patients(30, 12, 4)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = look(X, y), look(X[order], y[order])
    assert first.describe() == second.describe()
    assert np.array_equal(first.pairs, order[second.pairs])


SILENT = {
    "a number": lambda rng, n: rng.random((n, 1)),
    "two numbers": lambda rng, n: rng.random((n, 2)),
    "five numbers": lambda rng, n: rng.random((n, 5)),
    "the number of a row": lambda rng, n: rng.permutation(n)[:, None],
    "a date": lambda rng, n: rng.integers(0, 365, (n, 1)),
    "two coins": lambda rng, n: rng.integers(0, 2, (n, 2)),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", SILENT)
def test_columns_that_say_nothing_do_not_silence_the_alarm(kind, seed):
    X, y, patient, _ = draw_patients(seed=seed)
    said = np.column_stack([X, SILENT[kind](np.random.default_rng(seed + 7), len(y))])
    found = look(said, y)
    assert found.share > 0.4
    assert found.disagreement == 0.0
    assert (patient[found.pairs[:, 0]] == patient[found.pairs[:, 1]]).mean() > 0.95
    order = np.random.default_rng(seed).permutation(len(y))
    again = look(said[order], y[order], n_jobs=2)
    assert again.describe() == found.describe()
    assert np.array_equal(order[again.pairs], found.pairs)


def test_copies_are_noticed_though_a_number_of_their_own_keeps_them_apart():
    X, y, _, _ = draw_patients(spread=0.0)
    assert look(np.column_stack([X, np.random.default_rng(0).permutation(len(y))]), y).share > 0.9


def test_categories_that_say_nothing_do_not_silence_the_alarm():
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = draw_patients()
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(X).assign(day=rng.choice(list("abcde"), len(y)), time=rng.random(len(y)))
    assert look(frame.astype({"day": "category"}).rename(columns=str), y).share > 0.9


@pytest.mark.parametrize(("columns", "levels"), [(5, 10), (3, 3), (5, 3)])
def test_rows_that_agree_in_categories_give_no_alarm_by_that(columns, levels):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng([1, columns, levels])
    codes = rng.integers(0, levels, (3000, columns))
    frame = (
        pandas.DataFrame(codes).rename(columns=str).astype("category").assign(x=rng.random(3000), z=rng.random(3000))
    )
    place = codes @ levels ** np.arange(columns)
    y = ((place * 2654435761) % 1000 > 500) ^ (rng.random(3000) < 0.1)
    assert look(frame, y) is None


def test_which_of_the_rows_in_one_bin_come_first_does_not_matter():
    """Some of 6,000 rows share all bins, and the engine's hash, though their numbers and labels differ."""
    X, y, _, _ = draw_patients(60, 100, spread=0.02, columns=2)
    rng = np.random.default_rng(0)
    X, y = X.round(2), np.where(rng.random(len(y)) < 0.1, 1 - y, y)
    found = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        one = look(X[order], y[order])
        found.append(None if one is None else (one.describe(), one.share, X[order][one.pairs].tolist()))
    assert found[0] is not None
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("spread", [0.05, 0.1])
def test_copies_of_a_row_in_different_folds_of_ones_own_may_come_in_any_order(spread):
    X, y, _, _ = draw_patients(60, 3, 5, spread)
    rng = np.random.default_rng(0)
    copies = np.repeat(np.arange(len(y)), rng.integers(1, 4, len(y)))
    X, y, fold = X[copies], y[copies], rng.integers(0, 2, len(copies))
    found = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))
        cv = [(np.flatnonzero(fold[order] != own), np.flatnonzero(fold[order] == own)) for own in (0, 1)]
        one = look(X[order], y[order], cv=cv)
        found.append(None if one is None else (one.describe(), X[order][one.pairs].tolist()))
    assert found[0] is not None
    assert found == found[:1] * 5


def test_rows_are_drawn_by_their_contents_and_as_often_as_they_weigh():
    hashes = np.repeat(np.arange(4000, dtype=np.uint64), 2)
    exact = np.arange(8000, dtype=np.uint64)
    weight = np.tile([1.0, 3.0], 4000)
    drawn = draw_rows(hashes, weight, 1, lambda rows: exact[rows])
    assert len(drawn) == len(set(hashes[drawn])) == 4000
    assert (drawn % 2).mean() == pytest.approx(0.75, abs=0.03)
    order = np.random.default_rng(0).permutation(8000)
    again = draw_rows(hashes[order], weight[order], 1, lambda rows: exact[order][rows])
    assert np.array_equal(order[again], drawn)
    # A weight of 3 is that of three copies.
    copies = np.repeat(np.arange(8000), weight.astype(int))
    several = draw_rows(hashes[copies], np.ones(len(copies)), 1, lambda rows: exact[copies][rows])
    assert np.array_equal(copies[several], drawn)
    absent = draw_rows(hashes, np.tile([1.0, 0.0], 4000), 1, lambda rows: exact[rows])
    assert (absent % 2 == 0).all()
    assert len(draw_rows(hashes, np.zeros(8000), 1, lambda rows: exact[rows])) == 0


def test_groups_or_folds_that_keep_patients_together_are_answer_enough():
    X, y, patient, _ = draw_patients(30, 12, 4)
    assert look(X, y) is not None
    folds = [(np.flatnonzero(patient % 3 != fold), np.flatnonzero(patient % 3 == fold)) for fold in range(3)]
    assert look(X, y, cv=folds) is None


def test_large_tables_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(near_duplicates, "MOST_AMONG", 600)
    monkeypatch.setattr(near_duplicates, "FEW_AMONG", 240)
    X, y, _, _ = draw_patients(40, 80, 8)
    assert look(X, y).share > 0.8  # Of 80 rows each 15 are left, and 6.


SOUND = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "a blob for each class": lambda: make_blobs(600, centers=10, n_features=5, cluster_std=0.2, random_state=0),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_tables_give_no_alarm(name):
    assert look(*SOUND[name]()) is None


@pytest.mark.parametrize("columns", [1, 2, 5, 20])
@pytest.mark.parametrize("kind", ["normal", "heavy", "walk", "coarse"])
def test_independent_rows_give_no_alarm(columns, kind):
    rng = np.random.default_rng(columns)
    X = rng.standard_t(1.5, size=(800, columns)) if kind == "heavy" else rng.normal(size=(800, columns))
    X = np.cumsum(X, axis=0) if kind == "walk" else X.round(0) if kind == "coarse" else X
    y = (X[:, 0] > np.median(X[:, 0])) ^ (rng.random(800) < 0.2)
    assert look(X, y) is None


def test_near_twins_whose_labels_differ_fool_nobody():
    X, _, _, _ = draw_patients(30, 12, 4)
    assert look(X, np.random.default_rng(0).integers(2, size=len(X))) is None


def test_too_few_rows_tell_nothing():
    X, y, _, _ = draw_patients(20, 5, 4)
    assert len(y) == near_duplicates.LEAST_ROWS
    assert look(X, y) is not None
    assert look(X[:-1], y[:-1]) is None


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_numbers_of_half_the_width_are_looked_at_too(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(-300, 300, (5000, 3)).astype(dtype)
    rows, wide = (ComparedRows(table, TableEncoder(3), range(3)) for table in (X, X.astype(np.float64)))
    assert len(rows) > len(rows.draw(100)) == 100
    assert (rows.hashes == wide.hashes).all()
    X, y, _, _ = draw_patients(30, 12, 4)
    narrow = (100 * X).round().astype(dtype)
    found, expected = look(narrow, y), look(narrow.astype(np.float64), y)
    assert found.describe() == expected.describe()
    assert np.array_equal(found.pairs, expected.pairs)


def look_with_groups(X, y, groups):
    settings = resolve(UntwistClassifier(random_state=0).get_params())
    return find_near_duplicates(TrainingData.collect(settings, X, y, sources=SourceColumns(groups=groups)))


def test_groups_that_do_not_keep_patients_together_are_said_to():
    X, y, patient, _ = draw_patients(30, 12, 4)
    assert look_with_groups(X, y, patient) is None
    partly_known = [None if row % 12 == 0 else one for row, one in enumerate(patient)]
    for groups in (np.arange(len(y)) % 40, partly_known, [None] * len(y)):
        found = look_with_groups(X, y, groups)
        assert found.share > 0.5
        assert "groups that were given do not keep them together" in found.describe()
    assert "groups that were given" not in look(X, y).describe()


def test_groups_of_one_row_with_a_name_say_that_no_rows_belong_together():
    X, y, _, _ = draw_patients(30, 12, 4)
    assert look_with_groups(X, y, np.arange(len(y))) is None


def test_which_groups_copies_have_decides_in_any_order_of_the_rows():
    X, y, _, _ = draw_patients(30, 12, 4, spread=0.0)
    X[::3] += np.random.default_rng(0).normal(scale=1e-3, size=X[::3].shape)
    groups = np.arange(len(y)) % 50
    found = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        found.append(look_with_groups(X[order], y[order], groups[order]).describe())
    assert found == found[:1] * 4


def draw_clusters(seed, apart, spread_of_patients, visits):
    """Ten kinds of patients, each with a label of its own, a tenth of the patients mislabelled."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(np.arange(10), 20)
    patients = apart * rng.normal(size=(10, 6))[kind] + spread_of_patients * rng.normal(size=(200, 6))
    labels = (kind % 2) ^ (rng.random(200) < 0.1)
    patient = np.repeat(np.arange(200), visits)
    return patients[patient] + 0.15 * rng.normal(size=(len(patient), 6)), labels[patient], patient


@pytest.mark.parametrize("visits", [1, 4])
@pytest.mark.parametrize("apart", [1.0, 3.0, 6.0])
def test_kinds_of_patients_are_no_twins_where_groups_keep_patients_together(apart, visits):
    for seed in range(3):
        assert look_with_groups(*draw_clusters(seed, apart, 0.4, visits)) is None


def test_patients_who_differ_no_more_than_their_visits_are_near_duplicates():
    assert look_with_groups(*draw_clusters(0, 6.0, 0.02, 4)).share > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_most_columns_may_be_coarse_where_the_others_tell_patients_apart(seed):
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(60), 8)
    fine, coarse = rng.normal(size=(60, 4))[patient], rng.integers(0, 2, (60, 8))[patient]
    y = (fine[:, 0] > 0) ^ (rng.random(60) < 0.2)[patient]
    X = np.column_stack([fine + 0.01 * rng.normal(size=fine.shape), coarse, np.arange(480), rng.random(480)])
    found = look(X, y)
    assert found.disagreement == 0.0
    assert (patient[found.pairs[:, 0]] == patient[found.pairs[:, 1]]).all()


COARSE = {
    "yes or no": lambda rng, shape: rng.integers(0, 2, shape),
    "0 to 2": lambda rng, shape: rng.integers(0, 3, shape),
    "counts": lambda rng, shape: rng.poisson(1.0, shape),
    "mostly missing": lambda rng, shape: np.where(rng.random(shape) < 0.9, np.nan, rng.normal(size=shape)),
}


@pytest.mark.parametrize("share_wrong", [0.0, 0.1])
@pytest.mark.parametrize("kind", COARSE)
def test_rows_that_agree_in_numbers_of_few_values_give_no_alarm_by_that(kind, share_wrong):
    for seed, (n_rows, n_columns) in enumerate([(300, 6), (800, 6), (1000, 8), (5000, 8), (800, 14)]):
        rng = np.random.default_rng(seed)
        X = COARSE[kind](rng, (n_rows, n_columns)).astype(float)
        y = (np.nan_to_num(X[:, 0]) > 0) ^ (rng.random(n_rows) < share_wrong)
        assert look(X, y) is None


def test_columns_that_are_left_out_leave_the_others_where_they_are():
    X, _, _, _ = draw_patients(30, 12, 6)
    table = ComparedRows(X, TableEncoder(6), range(6))
    some = table.take_columns([1, 4])
    np.testing.assert_array_equal(some.places[0], table.places[0][:, [1, 4]])
    pairs = np.arange(20), np.arange(20, 40)
    by_column = table.measure_by_column(*pairs)
    np.testing.assert_allclose(some.measure(*pairs), by_column[1] + by_column[4], rtol=1e-5)


def test_things_that_are_all_equally_far_from_each_other_are_noticed():
    """The dimension that rows fill has no bound here: distances after the jump do not grow at all."""
    n_things, size = 30, 12
    thing = np.repeat(np.arange(n_things), size)
    rows = np.arange(len(thing))
    distance = np.where(thing[:, None] == thing, 0.1, 1.0)
    near = np.array([np.argsort(distance[row] - 2.0 * (rows == row), kind="stable")[1:46] for row in rows])
    labels = (thing % 2).astype(np.uint32)
    fold_of_row = rows % 3
    sample = near_duplicates._Sample(
        ComparedRows(np.zeros((len(rows), 1)), TableEncoder(1), range(1)),
        labels,
        fold_of_row,
        fold_of_row[None] != np.arange(3)[:, None],
    )
    sample.__dict__["neighbours"] = near_duplicates._Neighbours(rows, near, np.take_along_axis(distance, near, axis=1))
    found = sample.find()
    assert found.share == 1.0
    assert (thing[found.pairs[:, 0]] == thing[found.pairs[:, 1]]).all()
    assert (thing[found.pairs_beyond[:, 0]] != thing[found.pairs_beyond[:, 1]]).all()


def test_rows_whose_copies_several_folds_set_aside_are_told():
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 40, 90).astype(np.uint64)
    folds = (rng.integers(0, 3, 90) == np.arange(3)[:, None]) * rng.integers(0, 3, 90)
    rows = rng.permutation(np.unique(hashes, return_index=True)[1])[:25]
    expected = [sum(((hashes == hashes[row]) & (fold > 0)).any() for fold in folds) > 1 for row in rows]
    assert 3 < sum(expected) < 22
    np.testing.assert_array_equal(find_split_rows(hashes, rows, folds), expected)


def test_the_two_smallest_numbers_have_places():
    X = np.zeros((120, 2))
    X[::3, 0] = np.nextafter(0.0, 1.0)
    X[:, 1] = np.arange(120)
    places, spread = ComparedRows(X, TableEncoder(2), range(2)).places
    assert np.isfinite(places).all()
    assert np.isfinite(spread).all()
    assert len(np.unique(places[:, 0])) == 2
