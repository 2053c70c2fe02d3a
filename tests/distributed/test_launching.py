"""What all launchers share, without any cluster: the wait for workers, whose error is told, and tables of columns."""

import numpy as np
import pytest

from untwist import PILBoostClassifier, UntwistClassifier
from untwist.distributed import launching, ray
from untwist.distributed.columns import TrainingColumns, add_predictions
from untwist.distributed.launching import LOST, Outcome, choose_model, limit_threads, wait_for_model

pyarrow = pytest.importorskip("pyarrow")
MODEL = object()
FINE = Outcome(model=MODEL)
REFUSES = Outcome(failure="ValueError", message="no")
MISSES_OTHERS = Outcome(failure="XGBoostError", message="the others are gone")
GONE = Outcome(failure=LOST, message="Somebody lost worker 3")


@pytest.mark.parametrize(
    ("outcomes", "kind", "message"),
    [
        ([FINE, REFUSES], ValueError, "^worker 1 of 4: no$"),
        ([MISSES_OTHERS, REFUSES], ValueError, "^worker 1 of 4: no$"),
        ([MISSES_OTHERS, REFUSES, Outcome(), GONE], RuntimeError, "^Somebody lost worker 3$"),
        ([MISSES_OTHERS], RuntimeError, "^worker 0 of 4: the others are gone$"),
        ([Outcome(failure="MemoryError")], RuntimeError, "^worker 0 of 4: MemoryError$"),
    ],
)
def test_the_cause_is_told_and_not_what_follows_from_it(outcomes, kind, message):
    with pytest.raises(kind, match=message):
        choose_model(dict(enumerate(outcomes)), n_workers=4)


def test_all_are_awaited_and_each_is_asked_until_it_has_ended(monkeypatch):
    monkeypatch.setattr(launching, "SECONDS_BETWEEN_LOOKS", 0.0)
    asked = []

    def look(ranks):
        asked.append(list(ranks))
        return {ranks[-1]: FINE}

    assert wait_for_model(look, 3) is MODEL
    assert asked == [[0, 1, 2], [0, 1], [0]]


def test_a_worker_that_never_ends_does_not_hold_up_the_error_of_another(monkeypatch):
    monkeypatch.setattr(launching, "SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(launching, "SECONDS_TO_TELL", 0.05)
    with pytest.raises(ValueError, match="worker 1 of 2: no"):
        wait_for_model(lambda ranks: {1: REFUSES}, 2)


def test_threads_are_limited_unless_they_are_a_setting():
    assert limit_threads(UntwistClassifier(), 3).n_jobs == 3
    assert limit_threads(PILBoostClassifier(), 3).n_jobs == 3
    assert limit_threads(UntwistClassifier(n_jobs=2), 3).n_jobs == 2


def test_columns_are_chosen_and_checked():
    chosen = TrainingColumns.choose(["a", "w", "y", "b"], "y", None, "w")
    assert chosen == TrainingColumns("y", ("a", "b"), "w")
    assert TrainingColumns.choose(["a", "y", "b"], "y", ["b"], None).names == ["b", "y"]
    for given, message in (
        ({"label": "z", "features": None, "weight": None}, "no column 'z', only 'a', 'y'"),
        ({"label": "y", "features": None, "weight": "z"}, "no column 'z', only 'a', 'y'"),
        ({"label": "y", "features": ["a", "z"], "weight": None}, "no column 'z', only 'a', 'y'"),
        ({"label": "y", "features": "a", "weight": None}, "features must be a list of columns"),
        ({"label": "y", "features": ["a", "y"], "weight": None}, "must not be among the features"),
        ({"label": "y", "features": None, "weight": "a"}, "no column to learn from"),
    ):
        with pytest.raises(ValueError, match=message):
            TrainingColumns.choose(["a", "y"], **given)


def test_tables_are_joined_also_with_empty_ones_that_know_no_types():
    first = pyarrow.table({"a": [1, 2], "s": ["x", "y"]})
    second = pyarrow.table({"a": [0.5], "s": pyarrow.array(["z"], pyarrow.large_string())})
    nothing = pyarrow.table({"a": pyarrow.nulls(0), "s": pyarrow.nulls(0)})
    assert ray._join_tables([nothing, first, second]).to_pydict() == {"a": [1, 2, 0.5], "s": ["x", "y", "z"]}
    assert ray._join_tables([nothing]).num_rows == 0
    assert TrainingColumns("y", ("a",)).read_rows(nothing) == {}


@pytest.mark.parametrize("labels", [[0, 1], [1.0, 2.0], [False, True], ["no", "yes"]])
def test_predictions_become_columns_of_the_type_of_the_labels(labels):
    x = np.linspace(-1.0, 1.0, 40)
    table = pyarrow.table({"b": x, "other": [["a list"]] * 40, "a": x**2})
    y = np.array(labels)[(x > 0).astype(int)]
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(table.select(["a", "b"]), y)
    predicted = add_predictions(model, table)
    assert predicted.column_names == ["b", "other", "a", "prediction", "probability"]
    assert predicted["prediction"].to_pylist() == y.tolist()
    np.testing.assert_array_equal(predicted["probability"].to_pylist(), model.predict_proba(table.select(["a", "b"])))
    assert add_predictions(model, table.slice(0, 0)).schema == predicted.schema
    with pytest.raises(ValueError, match="a column 'prediction' already"):
        add_predictions(model, predicted)
    with pytest.raises(ValueError, match="fitted with a column 'a', which the table lacks"):
        add_predictions(model, table.drop_columns("a"))
    with pytest.raises(ValueError, match="knows no names of columns"):
        add_predictions(PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(x[:, None], y), table)
