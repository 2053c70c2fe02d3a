"""Fits over several workers: the model of one process, bit for bit; what happens when a worker fails or dies."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone

import untwist
from helpers.learners import make_paper_model
from helpers.noisy_rows import make_noisy_rows
from helpers.patience import PATIENCE
from helpers.workers import GIVEN, TESTS, Killer, assert_same_model
from untwist import PILBoostClassifier, UntwistClassifier, training_table
from untwist.checkpoints import Checkpoint, resumed
from untwist.data.folds import draw_folds, draw_share
from untwist.data.tables import KNOWN_CATEGORIES
from untwist.data.workers import find_workers, solo
from untwist.distributed import local

pytest.importorskip("xgboost")


def shuffle(X, y, *more, seed=0):
    order = np.random.default_rng(seed).permutation(len(y))
    return [table[order] for table in (X, y, *more)]


def list_workers_left():
    """Worker processes of this one that are still there."""
    command = ["pgrep", "-P", str(os.getpid()), "-f", "untwist.distributed.local"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.slow
def test_two_workers_make_the_model_of_one_process():
    X, y = make_noisy_rows(3000)
    X[::17, 0] = np.nan
    model = PILBoostClassifier(**GIVEN)
    alone = PILBoostClassifier(**GIVEN).fit(X, y)
    together = local.fit(model, [tuple(part.values()) for part in local.shards(2, *shuffle(X, y))])
    assert_same_model(together, alone)
    assert not list_workers_left()


@pytest.mark.cluster
@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alpha": 1.2, "class_weight": "balanced", "l2": 1.0, "subsample": 0.6, "max_features": 0.5},
        {"n_estimators": 60, "early_stopping": 3, "learning_rate": 0.5},
        {"monotonic_cst": [1, 0, 0, 0, 0, 0]},
    ],
)
def test_any_number_of_workers_makes_the_same_model(n_workers, settings):
    X, y = make_noisy_rows(2000)
    weight = np.random.default_rng(2).exponential(size=len(y))
    settings = GIVEN | settings
    alone = make_paper_model(**settings).fit(X, y, weight)
    parts = local.shards(n_workers, *shuffle(X, y, weight, seed=n_workers))
    assert_same_model(local.fit(make_paper_model(**settings), parts), alone)


@pytest.mark.cluster
def test_workers_keep_groups_together_whoever_has_their_rows():
    X, y = make_noisy_rows(1500)
    groups = np.random.default_rng(0).integers(60, size=len(y))
    model = UntwistClassifier(engine="xgboost", n_jobs=1, random_state=0)
    alone = clone(model).fit(X, y, groups=groups)
    X_here, y_here, groups_here = shuffle(X, y, groups)
    parts = local.shards(2, X_here, y_here)
    for part, some in zip(parts, np.array_split(groups_here, 2), strict=True):
        part["groups"] = some
    together = local.fit(model, parts)
    assert_same_model(together, alone)
    assert str(together.noise_) == str(alone.noise_)


@pytest.mark.cluster
def test_several_classes_categories_and_many_rows_make_the_same_model(monkeypatch):
    monkeypatch.setattr(training_table, "MANY_CATEGORIES", KNOWN_CATEGORIES)  # Workers split categories by sets only.
    X, y = make_noisy_rows(110_000, columns=5, classes=3)
    X[:, 4] = np.minimum(np.random.default_rng(0).geometric(0.02, len(y)), KNOWN_CATEGORIES)
    settings = GIVEN | {"categorical_features": [4], "n_estimators": 3}
    names = np.array(["low", "mean", "top"])[y]
    alone = make_paper_model(**settings).fit(X, names)
    together = local.fit(make_paper_model(**settings), local.shards(3, *shuffle(X, names)))
    assert_same_model(together, alone)
    np.testing.assert_array_equal(together.predict(X[:1000]), alone.predict(X[:1000]))


@pytest.mark.cluster
@pytest.mark.parametrize("verbose", [0, 1, 3])
def test_workers_go_from_class_to_class_together(verbose):
    X, y = make_noisy_rows(3000, classes=3)
    settings = GIVEN | {"n_estimators": 12, "verbose": verbose}
    parts = [{"X": X[:2900], "y": y[:2900]}, {"X": X[2900:], "y": y[2900:]}]  # One of them has next to nothing to do.
    assert_same_model(local.fit(make_paper_model(**settings), parts), make_paper_model(**settings).fit(X, y))


@pytest.mark.cluster
def test_a_worker_may_have_one_class_or_no_weight():
    X, y = make_noisy_rows(900)
    order = np.argsort(y, kind="stable")
    weight = np.where(np.arange(len(y)) < 300, 0.0, 1.0)
    alone = PILBoostClassifier(**GIVEN).fit(X[order], y[order], weight)
    assert_same_model(local.fit(PILBoostClassifier(**GIVEN), local.shards(3, X[order], y[order], weight)), alone)


@pytest.mark.cluster
def test_frames_with_text_that_no_worker_has_all_of():
    pandas = pytest.importorskip("pandas")
    X, y = make_noisy_rows(2000)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    frame["word"] = np.array(["yes", "no"])[(y + (np.arange(len(y)) % 7 == 0)) % 2]
    order = np.argsort(frame["word"].to_numpy(), kind="stable")  # Each worker sees other words.
    frame, y = frame.iloc[order], y[order]
    alone = PILBoostClassifier(**GIVEN).fit(frame, y)
    assert_same_model(local.fit(PILBoostClassifier(**GIVEN), local.shards(2, frame, y)), alone)


@pytest.mark.cluster
def test_workers_choose_what_is_open_together():
    X, y = make_noisy_rows(2500)
    settings = {"engine": "xgboost", "n_jobs": 1, "random_state": 0}
    alone = UntwistClassifier(**settings).fit(X, y)
    together = local.fit(UntwistClassifier(**settings), local.shards(2, *shuffle(X, y)))
    assert together.choice_.best.alpha == alone.choice_.best.alpha
    assert together.choice_.best.n_rounds == alone.choice_.best.n_rounds
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-9)
    assert not hasattr(together, "oof_proba_")  # Each worker knows its own rows only.


@pytest.mark.cluster
def test_validation_rows_that_only_some_workers_have():
    X, y = make_noisy_rows(3000)
    settings = GIVEN | {"n_estimators": 60, "early_stopping": 3}
    alone = make_paper_model(**settings).fit(X[:2000], y[:2000], X_val=X[2000:], y_val=y[2000:])
    parts = local.shards(2, X[:2000], y[:2000])
    parts[1] |= {"X_val": X[2000:], "y_val": y[2000:]}
    assert_same_model(local.fit(make_paper_model(**settings), parts), alone)


@pytest.mark.cluster
def test_a_killed_worker_is_named_and_nobody_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", TESTS)
    X, y = make_noisy_rows(1000)
    model = make_paper_model(callbacks=[Killer(rank=1, round_=3, marker=tmp_path / "killed")], **GIVEN)
    with pytest.raises(RuntimeError, match=r"worker 1 of 2 was killed \(SIGKILL\)"):
        local.fit(model, local.shards(2, X, y))
    assert not list_workers_left()


@pytest.mark.cluster
def test_a_restart_does_not_take_the_checkpoint_of_another_fit(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", TESTS)
    X, y = make_noisy_rows(1000)
    path = tmp_path / "run.untwist"
    untwist.save(PILBoostClassifier(**GIVEN | {"n_estimators": 4}).fit(X, 1 - y), path)
    callbacks = [Checkpoint(path, every=4), Killer(rank=0, round_=2, marker=tmp_path / "killed")]
    model = local.fit(make_paper_model(callbacks=callbacks, **GIVEN), local.shards(2, X, y), restarts=1)
    assert_same_model(model, PILBoostClassifier(**GIVEN).fit(X, y))


@pytest.mark.cluster
def test_a_restart_goes_on_from_the_checkpoint_to_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", TESTS)
    X, y = make_noisy_rows(1000)
    settings = GIVEN | {"subsample": 0.7, "n_estimators": 12}
    callbacks = [Checkpoint(tmp_path / "run.untwist", every=4), Killer(rank=0, round_=6, marker=tmp_path / "killed")]
    model = local.fit(make_paper_model(callbacks=callbacks, **settings), local.shards(2, X, y), restarts=1)
    assert (tmp_path / "killed").exists()
    assert_same_model(model, make_paper_model(**settings).fit(X, y))
    assert untwist.load(tmp_path / "run.untwist").n_iter_ == 12


@pytest.mark.parametrize("engine", ["compiled", "xgboost"])
@pytest.mark.parametrize("stopping", [False, True])
def test_a_checkpoint_goes_on_to_the_same_model(tmp_path, engine, stopping):
    X, y = make_noisy_rows(1500)
    settings = GIVEN | {"engine": engine, "n_estimators": 40, "early_stopping": stopping and 4}
    path = tmp_path / "run.untwist"
    whole = make_paper_model(callbacks=[Checkpoint(path, every=5)], **settings).fit(X, y)
    assert untwist.load(path).n_iter_ == (40 if not stopping else untwist.load(path).n_iter_)
    begun = make_paper_model(callbacks=[Checkpoint(path, every=5), lambda progress: progress.round == 8], **settings)
    begun.fit(X, y)
    assert untwist.load(path).n_iter_ == 5
    model = resumed(make_paper_model(**settings), path).fit(X, y)
    assert_same_model(model, whole)


def test_a_checkpoint_survives_a_full_disk(tmp_path, monkeypatch):
    X, y = make_noisy_rows(500)
    path = tmp_path / "run.untwist"
    settings = GIVEN | {"engine": "compiled"}
    make_paper_model(callbacks=[Checkpoint(path, every=4)], **settings | {"n_estimators": 4}).fit(X, y)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        make_paper_model(callbacks=[Checkpoint(path, every=4)], **settings).fit(X[::-1], y[::-1])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.untwist"]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    X, y = make_noisy_rows(300)
    untwist.save(PILBoostClassifier(**GIVEN).fit(X, y), tmp_path / "run.untwist")
    with pytest.raises(ValueError, match="was fitted with max_depth=3, not 5"):
        resumed(PILBoostClassifier(**GIVEN | {"max_depth": 5}), tmp_path / "run.untwist")


def test_a_checkpoint_needs_given_settings(tmp_path):
    X, y = make_noisy_rows(300)
    with pytest.raises(ValueError, match="a checkpoint is for a PILBoostClassifier"):
        UntwistClassifier(callbacks=[Checkpoint(tmp_path / "run.untwist")]).fit(X, y)
    assert resumed(model := PILBoostClassifier(), tmp_path / "nothing") is model


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda part: part | {"y": part["y"][:-1]}, "worker 1 of 2"),
        (lambda part: part | {"X": part["X"][:, :-1]}, "same columns"),
        (lambda part: part | {"X": np.full(part["X"].shape, np.inf)}, "worker 1 of 2"),
    ],
)
def test_rows_that_a_worker_refuses_are_an_error_for_all(spoil, message):
    X, y = make_noisy_rows(400)
    parts = local.shards(2, X, y)
    parts[1] = spoil(parts[1])
    with pytest.raises((ValueError, RuntimeError), match=message):
        local.fit(PILBoostClassifier(**GIVEN), parts)
    assert not list_workers_left()


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"source": ["a"] * 200}, "source and item must be None in a distributed fit"),
        ({"reviewed": [0]}, "reviewed must be None in a distributed fit"),
    ],
    ids=["source", "reviewed"],
)
def test_what_no_worker_can_judge_is_an_error_for_all(told, message):
    X, y = make_noisy_rows(400)
    parts = local.shards(2, X, y)
    parts[1] = parts[1] | told
    with pytest.raises((ValueError, RuntimeError), match=message):
        local.fit(UntwistClassifier(engine="xgboost", n_jobs=1, random_state=0), parts)
    assert not list_workers_left()


def test_lambdas_are_refused_before_anything_starts():
    X, y = make_noisy_rows(200)
    with pytest.raises(ValueError, match="no lambdas"):
        local.fit(make_paper_model(callbacks=[lambda progress: None], **GIVEN), local.shards(2, X, y))
    with pytest.raises(ValueError, match="no lambdas"):
        local.fit(PILBoostClassifier(**GIVEN), [lambda: {"X": X, "y": y}])


def test_settings_that_no_worker_can_have_are_refused():
    X, y = make_noisy_rows(200)
    for one in (UntwistClassifier(engine="compiled"), PILBoostClassifier(engine="compiled")):
        with pytest.raises(ValueError, match='needs engine="xgboost"'):
            local.fit(one, local.shards(2, X, y))
    with pytest.raises(ValueError, match="exact"):
        local.fit(make_paper_model(tree_method="exact", **GIVEN), local.shards(2, X, y))
    with pytest.raises(ValueError, match="menon"):
        local.fit(PILBoostClassifier(alpha="menon"), local.shards(2, X, y))


def test_alone_nobody_is_asked():
    assert find_workers() is solo
    assert solo.gather(3) == [3]
    np.testing.assert_array_equal(solo.sum(np.arange(3)), np.arange(3))


def test_draws_depend_on_contents_alone():
    rng = np.random.default_rng(0)
    hashes, weight = rng.integers(0, 2**63, 10_000).astype(np.uint64), rng.random(10_000)
    hashes[::2] = hashes[0]
    held = draw_share(hashes, 0.3, seed=1)
    assert set(held[::2]) in ({0.0}, {1.0})
    assert 0.27 < held[1::2].mean() < 0.33
    folds = draw_folds(hashes, weight, 5, seed=1)
    np.testing.assert_allclose(folds.sum(axis=0), weight)
    assert ((folds > 0).sum(axis=0) == 1).all()
    np.testing.assert_array_equal(draw_folds(hashes[7:9], weight[7:9], 5, seed=1), folds[:, 7:9])


@pytest.mark.cluster
def test_a_script_without_a_main_guard_can_start_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np
            from untwist import PILBoostClassifier
            from untwist.distributed import local
            X = np.arange(600.0).reshape(-1, 2) % 37
            y = (X[:, 0] > 18).astype(int)
            model = PILBoostClassifier(2.0, n_estimators=5, max_depth=2)
            print(local.fit(model, local.shards(2, X, y)).score(X, y))
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "1.0"
