"""Tables read in blocks from Parquet files: the model of the same table in memory, bit for bit, and clear errors."""

import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from helpers.command_line import untwist
from helpers.quick import make_classifier
from untwist import PILBoostClassifier, load
from untwist.batches import Batches
from untwist.data import batches

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
from pyarrow import dataset, parquet  # noqa: E402


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(batches, "CELLS", 1000)  # The table has many blocks then.


def make_table(n=2000, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    words = np.array(["red", "green", "blue", None, *(f"rare {i}" for i in range(300))], dtype=object)
    word = words[np.where(rng.random(n) < 0.7, rng.integers(0, 4, n), rng.integers(0, len(words), n))]
    score = x[:, 0] + x[:, 1] * x[:, 2] + (word == "red")
    label = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    label = np.where(rng.random(n) < 0.15, rng.integers(0, classes, n), label)
    x[rng.random(x.shape) < 0.05] = np.nan
    return pa.table(
        {
            "a": pa.array(x[:, 0], pa.float32()),
            "b": pa.array(x[:, 1], from_pandas=True),
            "whole": pa.array(
                np.where(rng.random(n) < 0.1, np.nan, np.round(3 * x[:, 2])), pa.int16(), from_pandas=True
            ),
            "flag": pa.array(rng.random(n) < 0.5),
            "constant": pa.array(np.ones(n, dtype=np.int64)),
            "word": pa.array(word, pa.string()),
            "coded": pa.array(word).dictionary_encode(),
            "c": pa.array(x[:, 2], from_pandas=True),
            "weight": pa.array(rng.choice([0.0, 0.5, 1.0, 3.0], n)),
            "y": pa.array(label),
        }
    )


@pytest.fixture
def file(tmp_path):
    parquet.write_table(make_table(), tmp_path / "t.parquet", row_group_size=700)
    return tmp_path / "t.parquet"


def assert_same_model(one, other):
    assert repr(one.model_.link) == repr(other.model_.link)
    for a, b in zip(one.model_.shared_forests, other.model_.shared_forests, strict=True):
        for name in ("edge", "offset", "feature", "left", "threshold", "missing_left", "value", "gain", "set", "codes"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert one.model_.encoder.schema == other.model_.encoder.schema
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.feature_names_in_, other.feature_names_in_)
    np.testing.assert_array_equal(one.model_.validation_rows, other.model_.validation_rows)
    assert one.model_.n_effective_rows == other.model_.n_effective_rows


PLAIN = {"alpha": 2.0, "n_estimators": 6, "max_depth": 4, "random_state": 0}


@pytest.mark.parametrize(
    ("settings", "classes"),
    [
        (PLAIN, 2),
        (PLAIN, 3),
        (PLAIN | {"early_stopping": True, "subsample": 0.5}, 2),
        (PLAIN | {"class_weight": "balanced", "max_bins": 7}, 3),
        (PLAIN | {"categorical_features": ["word", "whole"]}, 2),
        ({"n_estimators": 10, "max_depth": 3, "random_state": 0}, 2),
        ({"n_estimators": 5, "random_state": 1, "class_weight": "balanced"}, 3),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.thinned(3)
def test_the_model_is_that_of_the_table_in_memory(tmp_path, settings, classes, weighted):
    memory = make_table(classes=classes)
    parquet.write_table(memory, tmp_path / "t.parquet", row_group_size=700)
    drop = ["y", "weight", *(["coded"] if "categorical_features" in settings else [])]
    X, y = memory.drop_columns(drop), memory["y"].to_numpy()
    source = Batches(tmp_path / "t.parquet")
    rows = source.drop(*drop)
    weight = memory["weight"].to_numpy() if weighted else None
    one = make_classifier(**settings).fit(X, y, weight)
    other = make_classifier(**settings).fit(rows, source.column("y"), source.column("weight") if weighted else None)
    assert_same_model(one, other)
    methods = ["predict", "predict_proba", "decision_function", "predict_proba_twisted"]
    for name in [*methods, "apply"] if "alpha" in settings else methods:
        np.testing.assert_array_equal(getattr(one, name)(X), getattr(other, name)(rows))
    if "alpha" not in settings:
        np.testing.assert_array_equal(one.oof_proba_, other.oof_proba_)
        assert one.model_.out_of_fold.context.fingerprint == other.model_.out_of_fold.context.fingerprint
        assert str(one.noise_) == str(other.noise_)


def test_rows_without_columns_are_still_rows(file):
    rows = Batches(file)
    left = rows.drop(rows.column_names)
    assert sum(len(block) for block in left.blocks()) == left.shape[0] == len(rows)
    assert left.shape[1] == 0
    with pytest.raises(ValueError, match="has no column 'nope'"):
        rows.drop("nope", "never")


def test_xgboost_grows_its_trees_on_blocks_too(file):
    pytest.importorskip("xgboost")
    memory = make_table().drop_columns(["y", "weight"])
    rows, y = Batches(file).drop("y", "weight"), Batches(file).column("y")
    assert_same_model(*(make_classifier(engine="xgboost", **PLAIN).fit(X, y) for X in (memory, rows)))


def test_many_rows_are_sampled_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "CELLS", 200_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130_000, 4))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = np.arange(len(X)) > 120_000  # The column varies late, so the rows are read once more.
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(len(X)) < 0.2)
    memory = pa.table({f"x{i}": column for i, column in enumerate(X.T)})
    parquet.write_table(memory, tmp_path / "t.parquet")
    one, other = (make_classifier(**PLAIN).fit(rows, y) for rows in (memory, Batches(tmp_path / "t.parquet")))
    assert_same_model(one, other)


def test_validation_rows_in_blocks_or_in_memory(file):
    memory = make_table()
    X, y = memory.drop_columns(["y", "weight"]), memory["y"].to_numpy()
    rows = Batches(file).drop(["y", "weight"])
    assert rows.column_names == Batches(file).drop("y", "weight").column_names
    settings = PLAIN | {"early_stopping": True, "n_estimators": 30}
    one = make_classifier(**settings).fit(X, y, X_val=X[:300], y_val=y[:300])
    for part, labels in ((X[:300], y[:300]), (rows, y)):
        other = make_classifier(**settings).fit(rows, y, X_val=part, y_val=labels)
        if part is not rows:
            assert_same_model(one, other)
    with pytest.raises(ValueError, match="X_val must be in memory if X is"):
        make_classifier(**settings).fit(X, y, X_val=rows, y_val=y)


def test_a_warm_start_goes_on_from_blocks(file):
    rows, y = Batches(file).drop("y", "weight"), Batches(file).column("y")
    model = make_classifier(warm_start=True, **PLAIN | {"n_estimators": 3}).fit(rows, y)
    assert_same_model(model.set_params(n_estimators=6).fit(rows, y), make_classifier(**PLAIN).fit(rows, y))


def test_sources_of_every_kind_are_the_same_table(tmp_path):
    memory = make_table()
    (tmp_path / "parts").mkdir()
    for i in range(3):
        parquet.write_table(memory[700 * i : 700 * (i + 1)], tmp_path / f"parts/{i}.parquet")
    folder = tmp_path / "parts"
    sources = [folder, str(folder), sorted(folder.iterdir()), dataset.dataset(folder), dataset.dataset(memory)]
    y = memory["y"].to_numpy()
    one = make_classifier(**PLAIN).fit(memory.drop_columns(["y"]), y)
    for source in sources:
        rows = Batches(source)
        assert rows.shape == (2000, 10)
        assert len(rows) == 2000
        np.testing.assert_array_equal(rows.column("y"), y)
        assert_same_model(one, make_classifier(**PLAIN).fit(rows.drop("y"), y))


def test_rows_can_be_left_out(file):
    memory = make_table()
    keep = np.random.default_rng(0).random(2000) < 0.5
    rows = Batches(file, ["a", "b", "word"], rows=keep)
    assert rows.shape == (keep.sum(), 3)
    assert rows.column_names == ["a", "b", "word"]
    X, y = memory.select(["a", "b", "word"]).filter(keep), memory["y"].to_numpy()[keep]
    assert_same_model(make_classifier(**PLAIN).fit(X, y), make_classifier(**PLAIN).fit(rows, y))
    np.testing.assert_array_equal(Batches(file, rows=keep).column("y"), y)


def test_labels_of_text(tmp_path):
    words = np.resize(["yes", "no", "no"], 100)
    x = np.arange(100.0)
    for column in (pa.array(words), pa.array(words).dictionary_encode()):
        parquet.write_table(pa.table({"x": x, "y": column}), tmp_path / "t.parquet", row_group_size=7)
        assert Batches(tmp_path / "t.parquet").column("y").tolist() == words.tolist()


def test_an_empty_first_file_must_have_the_columns_of_the_others(file, tmp_path):
    empty = make_table().slice(0, 0)
    parquet.write_table(empty, tmp_path / "alike.parquet")
    assert len(Batches([tmp_path / "alike.parquet", file])) == 2000
    other = tmp_path / "other.parquet"
    parquet.write_table(empty.rename_columns([f"{name}2" for name in empty.column_names]), other)
    for paths in ([other, file], [file, other]):
        with pytest.raises(ValueError, match=r"must have the columns of .* is missing or differs"):
            Batches(paths)


def test_what_is_wrong_is_said(file, tmp_path):
    memory = make_table()
    y = memory["y"].to_numpy()
    rows = Batches(file).drop("y", "weight")

    with pytest.raises(ValueError, match=r"t.parquet has no column 'z': its columns are 'a', 'b'"):
        Batches(file, ["z"])
    with pytest.raises(ValueError, match="has several columns 'a': rename all but one"):
        Batches(file, ["a", "b", "a"])
    with pytest.raises(ValueError, match=r"rows must be 2000 Booleans, one per row, got shape \(3,\)"):
        Batches(file, rows=np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="the dataset has no rows"):
        Batches(dataset.dataset(memory.slice(0, 0)))
    with pytest.raises(ValueError, match="has no column 'label'"):
        Batches(file).column("label")
    with pytest.raises(
        ValueError, match=r"column 'b' of .*t.parquet must have no missing value, got \d+, the first in row"
    ):
        Batches(file).column("b")
    with pytest.raises(ValueError, match="source must be"):
        Batches(memory)
    with pytest.raises(ValueError, match=r"no file \*.parquet in the folder"):
        Batches(make_folder(tmp_path / "empty"))
    with pytest.raises(ValueError, match=r"no.parquet does not exist"):
        Batches(tmp_path / "no.parquet")
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"text.parquet cannot be read as a table"):
        Batches(tmp_path / "text.parquet")
    whole = file.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cut.parquet cannot be read as a table"):
        Batches(tmp_path / "cut.parquet")
    parquet.write_table(memory.slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(ValueError, match=r"none.parquet has no rows"):
        Batches(tmp_path / "none.parquet")
    parquet.write_table(memory.drop_columns(["c"]), tmp_path / "other.parquet")
    with pytest.raises(
        ValueError, match=r"other.parquet must have the columns of .*t.parquet, but 'c' is missing or differs"
    ):
        Batches([file, tmp_path / "other.parquet"])
    parquet.write_table(pa.table({"x": [1.0, np.inf], "d": pa.array([1, 2], pa.date32())}), tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match="X contains infinity: column 'x' in row 1"):
        make_classifier(**PLAIN).fit(Batches(tmp_path / "odd.parquet", ["x"]), [0, 1])
    late = pa.table({"x": np.where(np.arange(5000) == 4321, -np.inf, 1.0)})
    parquet.write_table(late, tmp_path / "late.parquet", row_group_size=900)
    with pytest.raises(ValueError, match="X contains infinity: column 'x' in row 4321:"):
        make_classifier(**PLAIN).fit(Batches(tmp_path / "late.parquet"), np.arange(5000) % 2)
    parquet.write_table(pa.table({"d": pa.array([1, 2], pa.time32("s"))}), tmp_path / "time.parquet")
    with pytest.raises(ValueError, match="column 'd' is time32"):
        make_classifier(**PLAIN).fit(Batches(tmp_path / "time.parquet"), [0, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make_classifier(**PLAIN).fit(rows, y[:-1])
    with pytest.raises(ValueError, match='alpha="menon" needs the table in memory'):
        PILBoostClassifier(alpha="menon", n_estimators=3, max_depth=2).fit(rows, y)
    for other in ({"engine": "reference"}, {"estimator": Ridge()}, {"engine": "xgboost", "tree_method": "exact"}):
        with pytest.raises(ValueError, match="learn from Batches"):
            make_classifier(**PLAIN, **other).fit(rows, y)
    model = make_classifier(**PLAIN).fit(rows, y)
    with pytest.raises(ValueError, match=r"Feature names|feature names"):
        model.predict(Batches(file, ["a", "b"]))
    two = Batches(file, ["a", "b"])
    with pytest.raises(ValueError, match="needs the table in memory"):
        make_classifier(**PLAIN).fit(two, y).certificate(two, y)


def make_folder(folder):
    folder.mkdir()
    return folder


def test_a_file_that_changes_or_breaks_on_the_way_is_noticed(file):
    rows = Batches(file).drop("y", "weight")
    model = make_classifier(**PLAIN).fit(rows, Batches(file).column("y"))
    parquet.write_table(make_table(n=2100), file)
    with pytest.raises(ValueError, match=r"t.parquet has changed since it was read first"):
        model.predict(rows)
    whole = bytearray(file.read_bytes())
    whole[2000:9000] = bytes(7000)
    file.write_bytes(bytes(whole))
    with pytest.raises(ValueError, match=r"t.parquet cannot be read as a table|must have no missing"):
        Batches(file).column("a")


def test_a_dataset_with_other_rows_than_it_had_is_noticed():
    rows = Batches(dataset.dataset(make_table(n=50)))
    assert repr(rows) == "Batches('the dataset', 50 rows, 10 columns)"
    rows._source.n_rows = 60
    with pytest.raises(ValueError, match="the dataset had 60 rows when it was opened, and 50 now: begin again"):
        rows.column("y")


def test_without_pyarrow_the_extra_is_named(monkeypatch, file):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "untwist\[cli\]"'):
        Batches(file)


# ---- the commands ----


def make_people(n=600):
    """Text that is numbers, dates of two kinds, words, ids, labels that are missing."""
    rng = np.random.default_rng(3)
    age = rng.integers(18, 80, n).astype(float)
    city = rng.choice(["Berlin", "Oslo", "", " Paris "], n)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    churn = np.where((age > 50) ^ (city == "Oslo") ^ (rng.random(n) < 0.15), "yes", "no").astype(object)
    churn[rng.random(n) < 0.02] = None
    return pd.DataFrame(
        {
            "customer_id": np.arange(n),
            "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "fee": [("n/a" if i % 50 == 0 else f"{x:.2f}".replace(".", ",")) for i, x in enumerate(rng.random(n) * 90)],
            "since": days.strftime("%Y-%m-%d").where(rng.random(n) < 0.98, "2020"),
            "day": days,
            "date": days.date,
            "city": city,
            "zip": [f"{x:05d}" for x in rng.integers(0, 99, n)],
            "grade": pd.Categorical(rng.integers(1, 4, n)),
            "member": np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.5),
            "name": [f"person {i}" for i in range(n)],
            "churn": churn,
        },
        index=np.arange(n) + 7,
    )


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".feather"])
@pytest.mark.slow
def test_train_and_predict_in_blocks_do_what_they_do_in_memory(tmp_path, monkeypatch, capsys, ending):
    from untwist.commands import sheets

    monkeypatch.chdir(tmp_path)
    make_people().to_parquet("p.parquet", row_group_size=200)
    said, models, tables = [], [], []
    for how in ("--no-blocks", "--blocks"):
        status, _, err = untwist(capsys, "train", "p.parquet", "--label", "churn", "-o", "m.untwist", how)
        assert status == 0
        # How far a long fit is, a busy machine says more often.
        said.append([line for line in err.splitlines() if "read in blocks" not in line and " s left" not in line])
        models.append((tmp_path / "m.untwist").read_bytes())
        status, _, err = untwist(capsys, "predict", "m.untwist", "p.parquet", "-o", f"out{ending}", how, "--with-input")
        assert status == 0
        assert f"600 predictions in out{ending}" in err
        said[-1] += err.splitlines()
        tables.append(sheets.read(tmp_path / f"out{ending}").frame)
    assert said[0] == said[1]
    assert models[0] == models[1]
    pd.testing.assert_frame_equal(*tables, check_dtype=False)
    outs = [untwist(capsys, "predict", "m.untwist", "p.parquet", how)[1] for how in ("--no-blocks", "--blocks")]
    assert outs[0] == outs[1]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.thinned(2)
def test_booleans_of_which_some_are_missing_are_numbers_in_blocks_and_in_memory(tmp_path, capsys, nullable):
    some = pd.array([None, *make_people(599)["age"].gt(50)], dtype="boolean")
    frame = make_people().assign(member=some if nullable else some.astype(object), paid=np.arange(600) % 3 == 0)
    frame.to_parquet(tmp_path / "p.parquet", row_group_size=200)
    frame.loc[frame["member"].notna()].to_parquet(tmp_path / "new.parquet")
    models = []
    for how in ("--no-blocks", "--blocks"):
        options = ["--label", "churn", "-o", tmp_path / "m.untwist", how]
        assert untwist(capsys, "train", tmp_path / "p.parquet", *options)[0] == 0
        models.append(load(tmp_path / "m.untwist"))
    names = models[0].feature_names_in_.tolist()
    for model in models:
        assert model.model_.encoder.schema.truths == {names.index("member"), names.index("paid")}
        assert names.index("member") not in model.model_.encoder.schema.categories
    # Where none is missing any more they are what they were.
    status, _, err = untwist(capsys, "predict", tmp_path / "m.untwist", tmp_path / "new.parquet")
    assert (status, "Booleans" in err) == (0, False)


@pytest.mark.slow
def test_large_files_are_read_in_blocks_by_themselves(tmp_path, monkeypatch, capsys):
    from untwist.commands import blocks

    monkeypatch.chdir(tmp_path)
    make_people().to_parquet("p.parquet")
    assert "read in blocks" not in untwist(capsys, "train", "p.parquet", "--label", "churn")[2]
    monkeypatch.setattr(blocks, "MOST_BYTES", 1e4)
    assert "read in blocks" in untwist(capsys, "train", "p.parquet", "--label", "churn")[2]
    status, _, err = untwist(capsys, "predict", "model.untwist", "p.parquet", "--json")
    assert status
    assert "--json needs the table in memory" in err
    make_people().to_csv("p.csv")
    assert "only these are read in blocks" in untwist(capsys, "train", "p.csv", "--label", "churn", "--blocks")[2]


@pytest.mark.slow
def test_a_failure_loses_nothing_already_saved(tmp_path, monkeypatch, capsys):
    from untwist.commands import predict

    monkeypatch.chdir(tmp_path)
    make_people().to_parquet("p.parquet")
    untwist(capsys, "train", "p.parquet", "--label", "churn", "--blocks")
    untwist(capsys, "predict", "model.untwist", "p.parquet", "--blocks", "-o", "out.csv")
    model, out = ((tmp_path / name).read_bytes() for name in ("model.untwist", "out.csv"))
    whole = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(whole[: len(whole) // 3])
    for arguments in (
        ["train", "p.parquet", "--label", "churn"],
        ["predict", "model.untwist", "p.parquet", "-o", "out.csv"],
    ):
        status, _, err = untwist(capsys, *arguments, "--blocks")
        assert status
        assert "p.parquet cannot be read as a table" in err
    (tmp_path / "p.parquet").write_bytes(whole)
    done = []

    def full(model, X, beside):
        done.append(len(X))
        if len(done) == 3:
            raise OSError(28, "No space left on device")
        return beside.assign(prediction=0)

    monkeypatch.setattr(predict, "_add_predictions", full)
    status, _, err = untwist(capsys, "predict", "model.untwist", "p.parquet", "--blocks", "-o", "out.csv")
    assert status
    assert "No space left" in err
    assert (tmp_path / "model.untwist").read_bytes() == model
    assert (tmp_path / "out.csv").read_bytes() == out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.untwist", "out.csv", "p.parquet"]


def test_a_block_may_be_prepared_as_a_table_of_arrow(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    day = pyarrow.array(np.arange(400), pyarrow.int32()).cast(pyarrow.date32())
    parquet.write_table(pyarrow.table({"day": day, "y": np.arange(400) % 3 == 0}), tmp_path / "days.parquet")

    def numbers(table):
        return table.set_column(0, "day", table["day"].cast(pyarrow.int32()))

    table = Batches(tmp_path / "days.parquet", ["day"], prepare=numbers)
    assert table.column_names == ["day"]
    labels = Batches(tmp_path / "days.parquet").column("y")
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(table, labels)
    same = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(np.arange(400.0)[:, None], labels)
    np.testing.assert_array_equal(model.forest_.value, same.forest_.value)


def test_some_rows_come_to_memory_in_any_order(file):
    table = Batches(file, ["a", "b", "c"])
    encoded = table.encode(table.learn())
    everything = encoded.to_array()
    rng = np.random.default_rng(0)
    for rows in (rng.permutation(2000)[:300], np.array([1999, 0]), np.zeros(0, dtype=np.intp), np.arange(2000)):
        np.testing.assert_array_equal(encoded.take_rows(rows), everything[rows])
