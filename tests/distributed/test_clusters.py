"""The launchers for Ray and Spark, each on a local cluster and by the same tests; see `make test-distributed`."""

import os
import shutil
import sys

import numpy as np
import pytest

from helpers.noisy_rows import make_noisy_rows
from helpers.workers import GIVEN, TESTS, Killer, assert_same_model
from untwist import PILBoostClassifier, load, save
from untwist.distributed import ray as on_ray
from untwist.distributed import spark as on_spark

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]  # Clusters have warnings of their own
pytest.importorskip("xgboost")
pandas = pytest.importorskip("pandas")
COLUMNS = list("abcdef")


class RayCluster:
    """Ray on this machine, with four slots."""

    launcher = on_ray
    name = "Ray"

    def __init__(self):
        self.ray = pytest.importorskip("ray", reason='needs Ray: pip install "untwist[ray]"')
        pytest.importorskip("ray.data", reason='needs Ray Data: pip install "untwist[ray]"')
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
        self.ray.init(num_cpus=4, object_store_memory=10**8, **quiet)

    def distribute(self, parts):
        return self.ray.data.from_pandas(parts)

    def collect(self, dataset):
        return dataset.to_pandas()

    def end(self):
        self.ray.shutdown()


class SparkCluster:
    """Spark on this machine, with four slots."""

    launcher = on_spark
    name = "Spark"

    def __init__(self):
        sql = pytest.importorskip("pyspark.sql", reason='needs Spark: pip install "untwist[spark]"')
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            pytest.skip("Spark needs Java, version 17 or newer: on Debian, apt-get install openjdk-17-jre-headless")
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
            "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
        }
        self.session = sql.SparkSession.builder.master("local[4]").config(map=settings).getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")

    def distribute(self, parts):
        frames = [self.session.createDataFrame(part) for part in parts if len(part)]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.union(frame)
        return whole

    def collect(self, frame):
        return frame.toPandas()

    def end(self):
        self.session.stop()


@pytest.fixture(scope="module", params=[RayCluster, SparkCluster])
def cluster(request):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", TESTS)
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        running = request.param()
        yield running
        running.end()


def make_frame(n_rows, classes=2):
    X, y = make_noisy_rows(n_rows, classes=classes)
    X[::13, 1] = np.nan
    frame = pandas.DataFrame(X, columns=COLUMNS)
    frame["word"] = np.array(["red", "green", "blue"])[(y + (np.arange(n_rows) % 7 == 0)) % 3]
    frame["label"] = np.array(["low", "mean", "top"])[y]
    frame["weight"] = np.random.default_rng(0).exponential(size=n_rows)
    return frame


def test_any_number_of_workers_makes_the_model_of_one_process(cluster, tmp_path):
    frame = make_frame(1500, classes=3)
    X = frame.drop(columns=["label", "weight"])
    alone = PILBoostClassifier(**GIVEN).fit(X, frame["label"], frame["weight"])
    unequal = cluster.distribute([frame.iloc[:10], frame.iloc[10:10], frame.iloc[10:]])
    for n_workers in (1, 3):
        model = cluster.launcher.fit(
            PILBoostClassifier(**GIVEN), unequal, "label", weight="weight", n_workers=n_workers
        )
        assert_same_model(model, alone)
    assert type(model) is PILBoostClassifier
    assert model.get_params() == alone.get_params()
    save(model, tmp_path / "model.untwist")
    np.testing.assert_array_equal(load(tmp_path / "model.untwist").predict_proba(X), model.predict_proba(X))
    predicted = cluster.collect(cluster.launcher.predict(model, unequal)).sort_values("weight")
    expected = frame.sort_values("weight")
    X = expected.drop(columns=["label", "weight"])
    np.testing.assert_array_equal(predicted["label"], expected["label"])
    np.testing.assert_array_equal(predicted["prediction"], alone.predict(X))
    np.testing.assert_allclose(np.stack(predicted["probability"]), alone.predict_proba(X), rtol=1e-14)


def test_rows_to_validate_on_stop_the_fit(cluster):
    frame = make_frame(1500).assign(other="not to be learned from")
    train, held_out = frame.iloc[:1000], frame.iloc[1000:]
    settings = GIVEN | {"n_estimators": 60, "early_stopping": 3, "n_jobs": None}
    alone = PILBoostClassifier(**settings).fit(
        train[COLUMNS], train["label"], X_val=held_out[COLUMNS], y_val=held_out["label"]
    )
    data, validation = cluster.distribute([train]), cluster.distribute([held_out])
    model = PILBoostClassifier(**settings)
    model = cluster.launcher.fit(model, data, "label", features=COLUMNS, validation=validation, n_workers=2)
    assert_same_model(model, alone)
    assert model.n_jobs is None  # The threads of a worker are no setting of the model.


def test_workers_without_rows_stay_out(cluster):
    few = make_frame(3)[[*COLUMNS, "label"]].assign(label=[True, False, True])
    alone = PILBoostClassifier(**GIVEN).fit(few[COLUMNS], few["label"])
    model = cluster.launcher.fit(PILBoostClassifier(**GIVEN), cluster.distribute([few]), "label", n_workers=4)
    assert_same_model(model, alone)
    predicted = cluster.collect(cluster.launcher.predict(model, cluster.distribute([few])))
    assert sorted(predicted["prediction"]) == sorted(alone.predict(few[COLUMNS]))


def test_what_it_cannot_take_is_refused(cluster):
    frame = make_frame(200)[[*COLUMNS, "label"]]
    data, model, fit = cluster.distribute([frame]), PILBoostClassifier(**GIVEN), cluster.launcher.fit
    with pytest.raises(ValueError, match="no column 'y', only 'a', 'b'"):
        fit(model, data, "y", n_workers=2)
    with pytest.raises(ValueError, match="must not be among the features"):
        fit(model, data, "label", features=["a", "label"], n_workers=2)
    with pytest.raises(ValueError, match="n_workers"):
        fit(model, data, "label", n_workers=0)
    with pytest.raises(ValueError, match=r"worker \d of 2: .*two classes"):
        fit(model, cluster.distribute([frame.assign(label="low")]), "label", n_workers=2)
    with pytest.raises(ValueError, match="knows no names of columns"):
        cluster.collect(cluster.launcher.predict(model.fit(frame[COLUMNS].to_numpy(), frame["label"]), data))


def test_a_killed_worker_is_an_error_and_a_restart_goes_on_to_the_same_model(cluster, tmp_path):
    frame = make_frame(600)[[*COLUMNS, "label"]]
    data = cluster.distribute([frame])
    marker = tmp_path / "killed"
    model = PILBoostClassifier(callbacks=[Killer(rank=1, round_=3)], **GIVEN)
    with pytest.raises(RuntimeError, match=f"{cluster.name} lost"):
        cluster.launcher.fit(model, data, "label", n_workers=2)
    model.callbacks = [Killer(rank=1, round_=3, marker=marker)]
    again = cluster.launcher.fit(model, data, "label", n_workers=2, restarts=1)
    assert marker.exists()
    assert_same_model(again, PILBoostClassifier(**GIVEN).fit(frame[COLUMNS], frame["label"]))


def test_a_cluster_without_room_says_so_in_time(cluster):
    data = cluster.distribute([make_frame(50)[[*COLUMNS, "label"]]])
    timeout = {"timeout": 0.5} if cluster.name == "Ray" else {}  # That of Spark is one of its own settings.
    with pytest.raises(TimeoutError, match=f"{cluster.name} had no room for 9 workers"):
        cluster.launcher.fit(PILBoostClassifier(**GIVEN), data, "label", n_workers=9, **timeout)


def test_a_spark_task_that_could_only_validate_is_refused(cluster):
    if cluster.name != "Spark":
        pytest.skip("Ray cuts the rows to validate on in as many parts as there are workers")
    frame = make_frame(42)[[*COLUMNS, "label"]]
    data, validation = cluster.distribute([frame.iloc[:2]]), cluster.distribute([frame.iloc[2:]])
    with pytest.raises(ValueError, match="none to train on: ask for fewer workers"):
        cluster.launcher.fit(PILBoostClassifier(**GIVEN), data, "label", validation=validation, n_workers=4)
