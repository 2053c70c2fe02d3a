"""The Dask launcher on a cluster of its own, on loopback; `make test-distributed` runs it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers.noisy_rows import make_noisy_rows
from helpers.workers import GIVEN, Killer, assert_same_model
from untwist import PILBoostClassifier, UntwistClassifier

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]  # Dask has warnings of its own
pytest.importorskip("xgboost")
distributed = pytest.importorskip("distributed")
array = pytest.importorskip("dask.array")
dataframe = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")

from untwist.distributed.dask import (  # noqa: E402 - after what it needs
    DaskPILBoostClassifier,
    DaskUntwistClassifier,
    _join_tables,
)


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


def cut_into_blocks(*tables, rows=700):
    return [array.from_array(table, chunks=(rows, *table.shape[1:])) for table in tables]


def test_groups_make_the_model_of_one_process(client):
    X, y = make_noisy_rows(1500)
    groups = np.random.default_rng(0).integers(60, size=len(y))
    alone = UntwistClassifier(engine="xgboost", n_jobs=1, random_state=0).fit(X, y, groups=groups)
    blocks = cut_into_blocks(X, y, groups)
    model = DaskUntwistClassifier(n_jobs=1, random_state=0).fit(*blocks[:2], groups=blocks[2])
    assert_same_model(model, alone)


def test_arrays_make_the_model_of_one_process(client):
    X, y = make_noisy_rows(3000)
    X[::13, 1] = np.nan
    weight = np.random.default_rng(0).exponential(size=len(y))
    alone = PILBoostClassifier(**GIVEN).fit(X, y, weight)
    model = DaskPILBoostClassifier(**GIVEN).fit(*cut_into_blocks(X, y, weight))
    assert_same_model(model, alone)
    blocks = array.from_array(X, chunks=(500, 2))  # The blocks cut through the columns too.
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(blocks)
        assert isinstance(lazy, array.Array)
        np.testing.assert_allclose(lazy.compute(), getattr(alone, method)(X), rtol=1e-14)
        assert lazy.shape == getattr(alone, method)(X).shape
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))  # A table in memory is predicted at once.
    assert type(model.local()) is PILBoostClassifier


def test_sources_and_reviews_are_not_for_distributed_rows():
    for given in ({"source": ["a"] * 9}, {"item": range(9)}):
        with pytest.raises(ValueError, match="source and item must be None in a distributed fit"):
            DaskUntwistClassifier().fit(np.zeros((9, 2)), np.arange(9) % 2, **given)
    with pytest.raises(ValueError, match="reviewed must be None in a distributed fit"):
        DaskUntwistClassifier().fit(np.zeros((9, 2)), np.arange(9) % 2, reviewed=[0])


def test_frames_with_text_and_several_classes_make_the_model_of_one_process(client):
    X, y = make_noisy_rows(2100, classes=3)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    frame["word"] = np.array(["red", "green", "blue"])[y]
    names = pandas.Series(np.array(["low", "mean", "top"])[y], name="label")
    names[::9] = "low"
    alone = PILBoostClassifier(**GIVEN).fit(frame, names)
    parts = dataframe.from_pandas(frame, npartitions=5)
    model = DaskPILBoostClassifier(**GIVEN).fit(parts, dataframe.from_pandas(names, npartitions=5))
    assert_same_model(model, alone)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.predict(parts).compute(), alone.predict(frame))
    np.testing.assert_array_equal(model.predict_proba(parts).compute(), alone.predict_proba(frame))


def test_early_stopping_and_what_is_open(client):
    X, y = make_noisy_rows(3000)
    settings = GIVEN | {"n_estimators": 60, "early_stopping": 3}
    alone = PILBoostClassifier(**settings).fit(X[:2000], y[:2000], X_val=X[2000:], y_val=y[2000:])
    model = DaskPILBoostClassifier(**settings)
    model.fit(*cut_into_blocks(X[:2000], y[:2000]), None, *cut_into_blocks(X[2000:], y[2000:], rows=400))
    assert_same_model(model, alone)
    chosen = DaskUntwistClassifier(n_jobs=1, random_state=0).fit(*cut_into_blocks(X, y))
    one = UntwistClassifier(engine="xgboost", n_jobs=1, random_state=0).fit(X, y)
    np.testing.assert_allclose(chosen.predict_proba(X), one.predict_proba(X), atol=1e-9)
    assert str(chosen.noise_) == str(one.noise_)


def test_rows_to_validate_on_other_workers_and_fits_one_after_the_other(client):
    X, y = make_noisy_rows(1000)
    settings = GIVEN | {"n_estimators": 30, "early_stopping": 3}
    alone = PILBoostClassifier(**settings).fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    model = DaskPILBoostClassifier(**settings)
    model.fit(*cut_into_blocks(X[:600], y[:600], rows=600), None, *cut_into_blocks(X[600:], y[600:], rows=100))
    assert_same_model(model, alone)
    assert "validation" in model.evals_result_
    model.set_params(**GIVEN, early_stopping=False).fit(*cut_into_blocks(X, y, rows=300))
    assert_same_model(model, PILBoostClassifier(**GIVEN).fit(X, y))
    assert "validation" not in model.evals_result_


def test_columns_of_a_file_have_as_many_partitions_as_the_table(client, tmp_path):
    X, y = make_noisy_rows(1200)
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(label=y)
    for part in range(4):
        frame.iloc[part::4].to_parquet(tmp_path / f"{part}.parquet", index=False)
    table = dataframe.read_parquet(tmp_path)
    model = DaskPILBoostClassifier(**GIVEN).fit(table.drop(columns=["label"]), table["label"])
    assert_same_model(model, PILBoostClassifier(**GIVEN).fit(frame.drop(columns=["label"]), y))
    some = array.from_array(X, chunks=(300, 6))
    few = some[some[:, 0] > np.sort(X[:, 0])[-2]]  # Most blocks have no row left.
    assert model.predict_proba(few).compute().shape == (1, 2)


def test_masks_of_joined_partitions_are_kept():
    masked, plain = np.ma.array([0, 1], mask=[0, 1]), np.array([1, 0])
    assert _join_tables([masked, plain]).tolist() == [0, None, 1, 0]
    assert type(_join_tables([plain, plain])) is np.ndarray


def test_partitions_without_rows_are_left_out(client):
    X, y = make_noisy_rows(800)
    X[:400, 0], X[400:, 0] = np.abs(X[:400, 0]), -np.abs(X[400:, 0])
    rows, labels = cut_into_blocks(X, y, rows=200)
    kept = rows[:, 0] > 0  # The last two blocks have no row left.
    model = DaskPILBoostClassifier(**GIVEN).fit(rows[kept], labels[kept])
    assert_same_model(model, PILBoostClassifier(**GIVEN).fit(X[:400], y[:400]))
    with pytest.raises(ValueError, match="X and y have no rows"):
        model.fit(rows[rows[:, 0] > 99], labels[rows[:, 0] > 99])


def test_fits_at_the_same_time_do_not_disturb_each_other(client):
    X, y = make_noisy_rows(800)
    alone = PILBoostClassifier(**GIVEN).fit(X, y)
    with ThreadPoolExecutor(3) as pool:

        def fit(_):
            with client.as_current():
                return DaskPILBoostClassifier(**GIVEN).fit(*cut_into_blocks(X, y, rows=200))

        for model in pool.map(fit, range(3)):
            assert_same_model(model, alone)


def test_what_it_cannot_take_is_refused(client):
    X, y = make_noisy_rows(600)
    with pytest.raises(ValueError, match="X must be a Dask collection"):
        DaskPILBoostClassifier(**GIVEN).fit(X, *cut_into_blocks(y))
    with pytest.raises(ValueError, match="as many partitions"):
        DaskPILBoostClassifier(**GIVEN).fit(*cut_into_blocks(X, rows=100), *cut_into_blocks(y, rows=300))
    with pytest.raises(ValueError, match='needs engine="xgboost"'):
        DaskPILBoostClassifier(**GIVEN | {"engine": "reference"}).fit(*cut_into_blocks(X, y, rows=100))
    blocks = cut_into_blocks(X, y, rows=100)
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        DaskPILBoostClassifier(**GIVEN).fit(*blocks, y_val=blocks[1])
    with pytest.raises(ValueError, match="sample_weight_val must come with X_val and y_val"):
        DaskPILBoostClassifier(**GIVEN).fit(*blocks, sample_weight_val=blocks[1])
    y[:] = 1
    with pytest.raises(ValueError, match="two classes"):
        DaskPILBoostClassifier(**GIVEN).fit(*cut_into_blocks(X, y, rows=100))
    # The cluster is as good as before.
    model = DaskPILBoostClassifier(**GIVEN).fit(*cut_into_blocks(*make_noisy_rows(600), rows=100))
    assert model.n_iter_ == GIVEN["n_estimators"]


def test_without_a_client_a_sentence_says_so(monkeypatch):
    def nobody():
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", nobody)
    X, y = make_noisy_rows(100)
    with pytest.raises(ValueError, match=r"make a dask.distributed.Client first"):
        DaskPILBoostClassifier(**GIVEN).fit(*cut_into_blocks(X, y))


def test_a_killed_worker_is_an_error():
    X, y = make_noisy_rows(1200)
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    model = DaskPILBoostClassifier(callbacks=[Killer(rank=1, round_=3)], **GIVEN)
    lost = pytest.raises(RuntimeError, match="Dask lost worker tcp://")
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster), lost:
        model.fit(*cut_into_blocks(X, y, rows=300))
