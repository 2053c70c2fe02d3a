"""What writing makes of values, arrays and settings before they are bytes; whole files are in test_files.py."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.learners import make_paper_model
from helpers.quick import QuickClassifier, make_classifier
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.checkpoints import Checkpoint, resumed
from untwist.files import writing
from untwist.files.values import ArrayReader, read_value
from untwist.files.writing import list_settings, make_plain
from untwist.losses import AlphaLoss


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.bool_(True), True),
        (None, None),
        (0.5, 0.5),
        (-math.inf, {"number": "-inf"}),
        (np.float32("nan"), {"number": "nan"}),
        (("a", 1.0), {"tuple": ["a", 1.0]}),
        ([(), []], [{"tuple": []}, []]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("ba"), ["a", "b"]),
        (range(2, 4), [2, 3]),
        (np.array([[1.5], [math.inf]]), [[1.5], [{"number": "inf"}]]),
        ({1: (2,), "a": None}, {"pairs": [[1, {"tuple": [2]}], ["a", None]]}),
    ],
)
def test_values_become_what_json_holds(value, plain):
    made = make_plain("x", value)
    assert made == plain
    assert json.loads(json.dumps(made, allow_nan=False)) == plain


def test_values_come_back_and_others_are_refused_by_name():
    for value in [(1, [2.0, (math.inf,)]), {"a": {1: ()}}, [None, True, "x"]]:
        assert read_value(make_plain("x", value)) == value
    for odd in (object(), [1j], {"a": object}, {object()}):
        with pytest.raises(ValueError, match="x cannot be written to a file: it holds a"):
            make_plain("x", odd)


def test_settings_are_written_as_far_as_they_are_values():
    plain = list_settings(UntwistClassifier(noise=None, cv=7, random_state=3, callbacks=[print]))
    assert plain.keys() == UntwistClassifier().get_params(deep=False).keys()
    kept = {"noise": None, "cv": 7, "random_state": 3, "callbacks": None}
    assert {name: plain[name] for name in kept} == kept
    paper = list_settings(PILBoostClassifier(eval_metric="neg_log_loss", random_state=3, callbacks=[print]))
    assert paper.keys() == PILBoostClassifier().get_params(deep=False).keys()
    kept = {"alpha": 2.0, "random_state": 3, "eval_metric": "neg_log_loss", "callbacks": None, "loss": None}
    assert {name: paper[name] for name in kept} == kept
    assert paper["growth"] is None
    growth = list_settings(PILBoostClassifier(growth=Growth(l2=1.0)))["growth"]
    assert growth == Growth(l2=1.0).get_params()
    numbers = list_settings(UntwistClassifier(cv=np.int64(7), random_state=np.int32(3)))
    assert (numbers["cv"], numbers["random_state"]) == (7, 3)
    left = list_settings(UntwistClassifier(cv=[([0], [1])], random_state=np.random.RandomState(0)))
    assert (left["cv"], left["random_state"]) == (None, None)
    assert list_settings(PILBoostClassifier(eval_metric=print))["eval_metric"] is None
    of_loss = list_settings(PILBoostClassifier(loss=AlphaLoss(4.0)))
    assert (of_loss["alpha"], of_loss["loss"]) == (4.0, None)


def test_arrays_follow_each_other_each_from_a_multiple_of_eight_bytes():
    writer = writing._ArrayWriter()
    arrays = [
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([0.5, -0.5]),
        np.zeros(0, dtype=np.int32),
        np.arange(6, dtype=np.int64).reshape(2, 3).T,
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([-7], dtype=np.int32),
    ]
    assert [writer.add(one) for one in arrays] == list(range(6))
    assert [entry[2] for entry in writer.table] == [0, 8, 24, 24, 72, 80]
    content = b"".join(writer.parts)
    assert len(content) == writer.size == 88
    reader = ArrayReader(writer.table, memoryview(content))
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(reader.read(number, array.dtype.type), array.ravel())


# ---- checkpoints ----


def test_a_checkpoint_is_written_every_so_many_rounds(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("untwist.files.checkpoints.save", lambda model, path: saved.append((model, path)))
    for every, expected in [(3, [3, 6, 9]), (1, list(range(1, 10)))]:
        saved.clear()
        checkpoint = Checkpoint(tmp_path / "run", every)
        for number in range(1, 10):
            checkpoint(SimpleNamespace(round=number, model=lambda number=number: number))
        assert saved == [(number, tmp_path / "run") for number in expected]
    assert Checkpoint("run").every == 50
    with pytest.raises(ValueError, match="every"):
        Checkpoint("run", 0)
    with pytest.raises(ValueError, match="a checkpoint is for a PILBoostClassifier, whose rounds follow one another"):
        Checkpoint("run", 3)(SimpleNamespace(round=1, model=None))


def test_other_workers_than_the_first_save_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("untwist.files.checkpoints.find_workers", lambda: SimpleNamespace(rank=1))
    Checkpoint(tmp_path / "run", 1)(SimpleNamespace(round=1, model=lambda: pytest.fail("made for nothing")))
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_the_model_itself_is_resumed(tmp_path):
    model = QuickClassifier(alpha=2.0)
    assert resumed(model, tmp_path / "none") is model


def test_a_resumed_model_may_have_other_free_settings_and_warm_start(tmp_path):
    X = np.arange(20.0).reshape(-1, 1)
    settings = {"alpha": 2.0, "max_depth": 1, "n_estimators": 3}
    fitted = make_classifier(**settings).fit(X, X[:, 0] > 9)
    writing.save(fitted, tmp_path / "run")
    wanted = make_classifier(**settings | {"n_estimators": 9, "verbose": 2, "random_state": 5, "n_jobs": 1})
    again = resumed(wanted, tmp_path / "run")
    assert again.get_params() == wanted.get_params() | {"warm_start": True}
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    assert not wanted.warm_start
    assert not hasattr(wanted, "model_")


@pytest.mark.parametrize("alpha", [0.005, 0.003])
def test_a_model_that_could_not_be_read_again_is_not_written(alpha):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (X[:, 0] > 0.3).astype(int)
    model = make_paper_model(alpha=alpha, n_estimators=3, max_depth=2, init="prior").fit(X, y)
    with pytest.raises(ValueError, match=f"below 1e.30, but this model has .* less extreme than {alpha}"):
        writing.dumps(model)
