"""Tables with infinite numbers, an index, wide text or another kind of contents: read, or refused with what to do."""

import gzip
import json
import zipfile
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.prepared_tables import prepare_frame
from untwist import UntwistClassifier, save
from untwist.commands import sheets
from untwist.commands.blocks import SheetInBlocks
from untwist.data import arrow_files, batches
from untwist.data.batches import Batches

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")

WAYS = [("csv", [], np.inf), ("parquet", ["--no-blocks"], -np.inf), ("parquet", ["--blocks"], np.inf)]


def make_frame(n=120):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "z": rng.normal(size=n), "y": np.where((x > 0) ^ (rng.random(n) < 0.1), "a", "b")})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(frame, ending):
    """The name of the file."""
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet("t.parquet")
    else:
        frame.to_csv("t.csv", index=False)
    return f"t.{ending}"


# ---- infinite numbers ----


@pytest.mark.parametrize(("ending", "way", "value"), WAYS)
@pytest.mark.thinned(3)
def test_an_infinite_cell_is_named_or_taken_as_missing(folder, monkeypatch, capsys, ending, way, value):
    monkeypatch.setattr(batches, "CELLS", 60)  # The cell is in a later block.
    frame = make_frame()
    untwist(capsys, "train", write(frame, ending), "--label", "y", "-o", "sound.untwist", *way)
    spoilt = frame.assign(z=frame["z"].mask(frame.index == 57, value))
    path = write(spoilt, ending)
    place = "line 59" if ending == "csv" else "row 58"
    commands = [
        ["train", path, "--label", "y", "-o", "m.untwist", *way],
        ["predict", "sound.untwist", path, "-o", "p.csv", *way],
    ]
    if "--blocks" not in way:
        commands += [["audit", path, "--label", "y"], ["explain", "sound.untwist", path]]
    for command in commands:
        status, _, err = untwist(capsys, *command)
        assert status == 1
        assert f"column 'z' holds {value:g} in {place}, and numbers must be finite: --infinite-as missing" in err
        status, _, err = untwist(capsys, *command, "--infinite-as", "missing")
        assert status == 0
        assert "z: 1 infinite number taken as missing" in err
    model, predicted = ((folder / name).read_bytes() for name in ("m.untwist", "p.csv"))
    path = write(frame.assign(z=frame["z"].mask(frame.index == 57)), ending)
    for command in commands[:2]:
        assert untwist(capsys, *command)[0] == 0
    assert (folder / "m.untwist").read_bytes() == model
    assert (folder / "p.csv").read_bytes() == predicted


def test_all_infinite_cells_are_counted_and_a_column_left_out_may_hold_some(folder, capsys):
    frame = make_frame()
    frame.loc[[3, 9], "z"] = np.inf, -np.inf
    path = write(frame, "csv")
    err = untwist(capsys, "train", path, "--label", "y")[2]
    assert "column 'z' holds inf in line 5 and in 1 other rows" in err
    assert untwist(capsys, "train", path, "--label", "y", "--drop", "z")[0] == 0
    assert "z: 2 infinite numbers, refused without --infinite-as missing" in untwist(capsys, "inspect", path)[1]
    out = untwist(capsys, "inspect", path, "--infinite-as", "missing", "--json")[1]
    assert {one["name"]: one["note"] for one in json.loads(out)["columns"]}[
        "z"
    ] == "2 infinite numbers taken as missing"


def test_infinite_numbers_of_any_spelling_and_type_are_found(folder, capsys):
    pytest.importorskip("pyarrow")
    frame = make_frame()
    for cell in ("inf", "Infinity", "1e999", "-INF"):
        frame.astype({"z": object}).assign(z=frame["z"].astype(str).mask(frame.index == 4, cell)).to_csv(
            "t.csv", index=False
        )
        assert "column 'z' holds" in untwist(capsys, "train", "t.csv", "--label", "y")[2]
    for kind in ("float32", "Float64"):
        frame.assign(z=frame["z"].mask(frame.index == 4, np.inf).astype(kind)).to_parquet("t.parquet")
        assert "column 'z' holds inf in row 5" in untwist(capsys, "train", "t.parquet", "--label", "y")[2]


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_an_infinite_label_is_none(folder, capsys, way):
    pytest.importorskip("pyarrow")
    frame = make_frame().assign(y=lambda t: (t["y"] == "a").astype(float))
    frame.loc[7, "y"] = np.inf
    frame.to_parquet("t.parquet")
    frame.to_csv("t.csv", index=False)
    for name, place, ways in (("t.parquet", "row 8", [way]), ("t.csv", "line 9", [])):
        assert f"column 'y' holds inf in {place}" in untwist(capsys, "train", name, "--label", "y", *ways)[2]
        status, _, err = untwist(capsys, "inspect", name, "--label", "y")
        assert status == 1
        assert f"column 'y' holds inf in {place}" in err
        err = untwist(capsys, "train", name, "--label", "y", *ways, "--infinite-as", "missing")[2]
        assert "1 rows have no label and are left out" in err
        assert "119 rows, 2 columns, 2 classes" in err


def test_inf_among_words_is_a_word(folder, capsys):
    frame = make_frame().assign(y=lambda t: t["y"].replace("b", "inf"))
    out = untwist(capsys, "inspect", write(frame, "csv"), "--label", "y")[1]
    assert "y: 2 classes" in out


def test_inspect_refuses_the_labels_that_training_refuses(folder, capsys):
    frame = make_frame()
    frames = [frame.assign(y="a"), frame.assign(y=""), frame.assign(y=frame["x"])]
    for one in frames:
        path = write(one, "csv")
        said = [untwist(capsys, command, path, "--label", "y")[2] for command in ("inspect", "train")]
        assert "column 'y'" in said[0]
        assert said[0].removeprefix("untwist inspect") == said[1].removeprefix("untwist train")


# ---- an index of pandas ----


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_an_index_with_a_name_is_a_column(folder, monkeypatch, capsys, way):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(batches, "CELLS", 60)
    frame = make_frame()
    branch = np.resize(["Oslo", "Rome", "Bern"], len(frame))
    day = pd.date_range("2020-01-01", periods=len(frame))
    frame.set_index([pd.Index(branch, name="branch"), pd.Index(day, name="day")]).to_parquet("i.parquet")
    frame.assign(branch=branch, day=day).to_parquet("c.parquet")
    models = []
    for name in ("i.parquet", "c.parquet"):
        status, _, err = untwist(capsys, "train", name, "--label", "y", "--source", "branch", way)
        assert status == 0
        assert "branch: who gave the label, one of 3" in err
        models.append((folder / "model.untwist").read_bytes())
    assert models[0] == models[1]
    untwist(capsys, "predict", "model.untwist", "i.parquet", "--with-input", "-o", "p.csv", way)
    assert pd.read_csv("p.csv")["branch"].tolist() == branch.tolist()


def test_an_index_without_a_name_is_left_out_and_told_of(folder, capsys):
    pytest.importorskip("pyarrow")
    frame = make_frame().sample(60, random_state=0)
    frame.to_parquet("t.parquet")
    for way in ("--blocks", "--no-blocks"):
        err = untwist(capsys, "train", "t.parquet", "--label", "y", way)[2]
        assert "t.parquet: the index has no name and is left out" in err
        assert "60 rows, 2 columns" in err
    assert Batches("t.parquet").column_names == ["x", "z", "y"]
    assert Batches("t.parquet", ["__index_level_0__"]).column("__index_level_0__").tolist() == frame.index.tolist()
    make_frame().rename_axis("row").to_parquet("range.parquet")  # A range is not stored: it is the number of the row.
    assert sheets.read(folder / "range.parquet").names == ["x", "z", "y"]


def test_columns_are_called_as_the_file_calls_them(folder):
    pytest.importorskip("pyarrow")
    frame = make_frame()
    several = frame.set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", "z"), ("b", "y")]), axis=1)
    several.index = pd.Index(np.arange(len(frame)) * 2, name="id")
    several.to_parquet("t.parquet")
    for sheet in (sheets.read(folder / "t.parquet"), SheetInBlocks(folder / "t.parquet")):
        assert sheet.names[:3] == ["('a', 'x')", "('a', 'z')", "('b', 'y')"]
        assert len(sheet.names) == 4


def test_both_ways_give_the_same_cells(folder, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(batches, "CELLS", 60)
    frame = make_frame().assign(
        text=["", "ä", None] * 40,
        kind=pd.Categorical(["u", "v"] * 60),
        day=pd.date_range("2020-01-01", periods=120, tz="Europe/Oslo"),
        count=pd.array([1, None, 3] * 40, dtype="Int64"),
        flag=[True, False] * 60,
    )
    frame.to_parquet("t.parquet", row_group_size=50)
    whole, parts = sheets.read(folder / "t.parquet"), SheetInBlocks(folder / "t.parquet")
    frames = [frame for frame, _ in parts.frames()]
    assert len(frames) > 10
    assert whole.names == parts.names
    assert whole.head.dtypes.drop("kind").tolist() == parts.head.dtypes.drop("kind").tolist()
    for name in whole.names:
        pd.testing.assert_series_equal(whole.column(name), parts.column(name))
    joined = pd.concat(frames)
    pd.testing.assert_frame_equal(joined.astype({"kind": frame["kind"].dtype}), next(whole.frames())[0])


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_what_is_written_has_the_types_of_the_file_wherever_cells_are_missing(folder, monkeypatch, capsys, ending):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    monkeypatch.setattr(batches, "CELLS", 200)
    frame = make_frame()
    untwist(capsys, "train", write(frame, "csv"), "--label", "y")
    late = [None] * 100
    cells = {
        "flag": pa.array([*late, *[True, False] * 10], pa.bool_()),
        "day": pa.array([*late, *range(20)], pa.date32()),
        "whole": pa.array([*range(20), *late], pa.int32()),
        "order": pa.array([None, *range(2**53 + 1, 2**53 + 120)], pa.int64()),  # More than floating point can tell.
        "price": pa.array([Decimal(cents) / 100 for cents in range(120)], pa.decimal128(10, 2)),
        "moment": pa.array(range(0, 120 * 43_200_000, 43_200_000), pa.timestamp("ms")),
        "kind": pa.array(["u"] * 60 + ["v"] * 60).dictionary_encode(),
        "bytes": pa.array([b"\xff"] * 120),
        "view": pa.array(["text"] * 120, pa.string_view()),
        "tags": pa.array([[("a", 1)]] * 120, pa.map_(pa.string(), pa.int64())),
        "words": pa.array([*late, *"abcdefghijklmnopqrst"], pa.string()),
        "lists": pa.array([*late, *[[1]] * 20], pa.list_(pa.int64())),
    }
    table = pa.table({"x": frame["x"], "z": frame["z"], **cells})
    parquet.write_table(table, "t.parquet", row_group_size=50)
    read = {"parquet": parquet.read_table, "feather": feather.read_table, "csv": pd.read_csv}[ending]
    written = []
    for way in ("--blocks", "--no-blocks"):
        status, _, err = untwist(
            capsys, "predict", "model.untwist", "t.parquet", "--with-input", "-o", f"p.{ending}", way
        )
        assert status == 0, err
        written.append(read(f"p.{ending}"))
    assert written[0].equals(written[1])
    if ending == "csv":
        orders = pd.read_csv("p.csv", dtype=str)["order"].tolist()
        assert orders[1:] == [str(one) for one in table["order"].to_pylist()[1:]]
        return
    for name in cells:
        assert written[0][name].to_pylist() == table[name].to_pylist(), name
        assert written[0].schema.field(name).type == (pa.large_string() if name == "view" else table[name].type), name
    out = untwist(capsys, "predict", "model.untwist", "t.parquet", "--with-input", "--json")[1]
    assert [one["order"] for one in json.loads(out)] == table["order"].to_pylist()


def test_columns_of_lists_are_shown_or_refused_in_a_sentence(folder, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    frame = make_frame()
    nested = {
        "lists": pa.array([[1, 2]] * 120),
        "parts": pa.array([{"q": 1}] * 120),
        "tags": pa.array([[("a", 1)]] * 120, pa.map_(pa.string(), pa.int64())),
    }
    for name, column in nested.items():
        parquet.write_table(pa.table({**frame, name: column}), "t.parquet")
        status, _, err = untwist(capsys, "inspect", "t.parquet")
        assert status == 1
        assert f"column {name!r} cannot be read as numbers or text" in err
        status, out, _ = untwist(capsys, "inspect", "t.parquet", "--drop", name, "--json")
        assert status == 0
        assert json.loads(out)["columns"][3]["distinct"] == 1
    status, _, err = untwist(capsys, "audit", "t.parquet", "--label", "y", "--drop", "tags", "--suspects", "s.parquet")
    assert status == 1
    assert "s.parquet cannot be written: " in err
    assert not (folder / "s.parquet").exists()


def test_a_model_of_numbers_refuses_lists_in_a_sentence(folder, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    frame = make_frame()
    write(frame, "parquet")
    assert untwist(capsys, "train", "t.parquet", "--label", "y")[0] == 0
    lists = pa.array([[value] for value in frame["x"]])
    parquet.write_table(pa.table({**frame.drop(columns="x"), "x": lists}), "lists.parquet")
    predict = ["predict", "model.untwist", "lists.parquet"]
    for command in ([*predict, "--blocks"], [*predict, "--no-blocks"], ["explain", *predict[1:]]):
        status, _, err = untwist(capsys, *command)
        assert status == 1
        assert "column 'x' cannot be read as numbers or text" in err


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_a_name_of_two_columns_is_refused_with_what_to_do(folder, capsys, way):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = [pa.array(make_frame()[name]) for name in "xzy"]
    parquet.write_table(pa.Table.from_arrays(columns, names=["x", "x", "y"]), "t.parquet")
    status, _, err = untwist(capsys, "train", "t.parquet", "--label", "y", way)
    assert status == 1
    assert "t.parquet has several columns 'x': rename all but one" in err


def test_dates_far_away_are_read_in_both_ways(folder, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    frame = make_frame()
    far = pa.array((1e15 * frame["x"]).astype(np.int64), pa.timestamp("s"))  # Millions of years.
    parquet.write_table(pa.table({**frame, "x": far}), "t.parquet")
    told = [untwist(capsys, "train", "t.parquet", "--label", "y", "--json", way) for way in ("--blocks", "--no-blocks")]
    assert told[0][0] == 0, told[0][2]
    assert told[0][1] == told[1][1]


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
@pytest.mark.parametrize(("option", "value"), [("--sheet", "Sheet1"), ("--separator", ";"), ("--encoding", "latin-1")])
def test_options_of_other_kinds_of_files_are_refused(folder, capsys, way, option, value):
    path = write(make_frame(), "parquet")
    status, _, err = untwist(capsys, "train", path, "--label", "y", way, option, value)
    assert status == 1
    assert "t.parquet is no spreadsheet" in err if option == "--sheet" else f"leave out {option}" in err


# ---- other text, other kinds of files ----


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("words", [["name", "age"], ["名前", "年齢"]])
def test_wide_text_is_recognised(folder, capsys, encoding, words):
    cells = ["漢字", "ひらがな"] if words[0] != "name" else ["a", "b"]
    text = ",".join(words) + "\n" + "".join(f"{cells[i % 2]},{cells[i // 2 % 2]}\n" for i in range(300))
    for name in ("t.csv", "t.csv.gz"):
        content = text.encode(encoding)
        (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        sheet = sheets.read(folder / name)
        assert sheet.names == words
        assert sheet.frame.iloc[:2, 0].tolist() == cells
        assert f"is no UTF-8 and is read as {encoding}" in sheet.notes[0]
    for wrong in ("utf-8", "latin-1"):
        status, _, err = untwist(capsys, "inspect", "t.csv", "--encoding", wrong)
        assert status == 1
        assert f"t.csv is {encoding} text, not {wrong}: try --encoding {encoding}" in err
    assert untwist(capsys, "inspect", "t.csv", "--encoding", encoding)[0] == 0


@pytest.mark.parametrize("cell", ['"x\n\0z"', '"x\r\n\0"', '"\0\n\0"'])
@pytest.mark.parametrize("header", ["a,c,y", "a,c,yy", "größe,c,y"])
def test_cells_with_zeros_do_not_make_wide_text(folder, header, cell):
    (folder / "t.csv").write_text(f"{header}\n" + f"1,{cell},yes\n2,k,no\n" * 20, encoding="utf-8", newline="")
    for encoding in (None, "utf-8"):
        sheet = sheets.read(folder / "t.csv", encoding=encoding)
        assert sheet.names == header.split(",")
        assert sheet.frame.iloc[1].tolist() == ["2", "k", "no"]


def test_wide_text_in_an_archive_is_advised(folder, capsys):
    with zipfile.ZipFile("t.csv.zip", "w") as archive:
        archive.writestr("t.csv", "größe,y\n1,a\n2,b\n".encode("utf-16"))
    status, _, err = untwist(capsys, "inspect", "t.csv.zip")
    assert status == 1
    assert "t.csv.zip is not utf-8 text (byte 0xff): try --encoding utf-16" in err
    assert untwist(capsys, "inspect", "t.csv.zip", "--encoding", "utf-16")[0] == 0


@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.json.gz", "t.xls", "t.pkl", "t.sqlite"])
@pytest.mark.thinned(3)
def test_a_file_of_another_kind_is_refused_with_what_can_be_read(folder, capsys, name):
    make_frame().to_csv("good.csv", index=False)
    untwist(capsys, "train", "good.csv", "--label", "y")
    (folder / name).write_bytes(b"a,y\n1,0\n2,1\n")
    for command in (["inspect", name], ["train", name, "--label", "y"], ["predict", "model.untwist", name]):
        status, _, err = untwist(capsys, *command)
        assert status == 1
        assert f"{name} is a .{name.split('.')[1]} file: tables are read from CSV files" in err
        assert "Parquet and Arrow files" in err


@pytest.mark.parametrize("orient", ["records", "columns", "values", "split", "table"])
def test_json_of_any_name_is_recognised(folder, capsys, orient):
    make_frame().to_json("t.txt", orient=orient)
    status, _, err = untwist(capsys, "train", "t.txt", "--label", "y")
    assert status == 1
    assert "t.txt holds JSON: tables are read from CSV files" in err


def test_names_in_brackets_are_no_json(folder):
    (folder / "t.csv").write_text("[1],{a},y\n1,2,a\n2,1,b\n")
    assert sheets.read(folder / "t.csv").names == ["[1]", "{a}", "y"]


def test_a_parquet_file_with_fewer_rows_than_it_says_is_refused_in_both_ways(folder, capsys, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    make_frame().to_csv("good.csv", index=False)
    untwist(capsys, "train", "good.csv", "--label", "y")
    make_frame().to_parquet("t.parquet", index=False)
    n_rows = len(make_frame())
    declare_rows(monkeypatch, parquet, n_rows + 1, [n_rows + 1])
    for blocks in ([], ["--blocks"]):
        status, out, err = untwist(capsys, "predict", "model.untwist", "t.parquet", *blocks)
        assert (status, f"it says that it has {n_rows + 1} rows, and has {n_rows}" in err) == (1, True), (out, err)


def declare_rows(monkeypatch, parquet, in_all, in_groups):
    """Let every file of Parquet declare so many rows, in all and in its groups."""
    groups = [SimpleNamespace(num_rows=size) for size in in_groups]
    metadata = SimpleNamespace(num_rows=in_all, num_row_groups=len(groups), row_group=groups.__getitem__)
    monkeypatch.setattr(parquet.ParquetFile, "metadata", metadata)


@pytest.mark.parametrize("sizes", [[-1], [40, 0], [-10, 130], [], [61, 60]])
def test_a_parquet_file_whose_groups_of_rows_say_other_numbers_is_refused_in_both_ways(
    folder, capsys, monkeypatch, sizes
):
    parquet = pytest.importorskip("pyarrow.parquet")
    make_frame().to_csv("good.csv", index=False)
    untwist(capsys, "train", "good.csv", "--label", "y")
    make_frame().to_parquet("t.parquet", index=False)
    declare_rows(monkeypatch, parquet, 120, sizes)
    words = f"it says that it has 120 rows, and its groups of rows say {sum(sizes)}"
    for blocks in ([], ["--blocks"]):
        status, out, err = untwist(capsys, "predict", "model.untwist", "t.parquet", *blocks)
        assert (status, words in err) == (1, True), (out, err)


def test_lists_in_a_parquet_file_have_any_number_of_values_a_row(folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"x": [1.0, 2.0, 3.0], "several": [[1, 2], [], [3, 4]], "pair": [{"u": 1, "v": [2, 3]}] * 3})
    parquet.write_table(table, "t.parquet")
    assert arrow_files.read_parquet(folder / "t.parquet").equals(table)


def test_blocks_of_many_small_groups_of_rows_are_read(folder):
    pytest.importorskip("pyarrow.parquet")
    frame = make_frame()
    frame.to_parquet("t.parquet", index=False, row_group_size=7)
    tables = list(arrow_files.read_blocks(folder / "t.parquet", list(frame.columns), 10))
    assert sum(table.num_rows for table in tables) == len(frame)
    assert max(table.num_rows for table in tables) <= 14


# ---- CSV that cannot be a table, and columns that are not what they were ----


@pytest.mark.parametrize("separator", [";;", "", '"', "\n"])
def test_a_separator_is_one_character(folder, recwarn, separator):
    make_frame().to_csv("t.csv", index=False)
    with pytest.raises(ValueError, match="--separator must be one character"):
        sheets.read(folder / "t.csv", separator)
    assert not recwarn


def test_a_separator_beyond_ascii_warns_of_nothing(folder, recwarn):
    (folder / "t.csv").write_text("a§b\n1§2\n", encoding="utf-8")
    assert sheets.read(folder / "t.csv", "§").frame.to_numpy().tolist() == [["1", "2"]]
    assert not recwarn


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,b\n"1\n2",3\n4,5,6\n', r"line 4 has 3 cells, not 2: put quotes"),  # A row of two lines comes before it.
        ("", "t.csv is empty: the first line of a table names its columns"),
        ('a,b\n1,"2\n3,4\n', "a quote that opens a cell is never closed"),
    ],
)
def test_text_that_is_no_table_is_told_in_own_words(folder, text, message):
    (folder / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        sheets.read(folder / "t.csv")


def test_a_quote_that_is_never_closed_is_named_for_any_separator(folder):
    (folder / "t.csv").write_text('a§b\n1§"2\n3§4\n', encoding="utf-8")
    with pytest.raises(ValueError, match="a quote that opens a cell is never closed"):
        sheets.read(folder / "t.csv", separator="§")


@pytest.mark.parametrize(("ending", "way"), [("csv", []), ("parquet", ["--no-blocks"]), ("parquet", ["--blocks"])])
def test_a_column_of_numbers_without_any_number_is_refused(folder, monkeypatch, capsys, ending, way):
    monkeypatch.setattr(batches, "CELLS", 60)  # Each block holds fewer texts than are refused.
    frame = make_frame()
    untwist(capsys, "train", write(frame, ending), "--label", "y", "-o", "m.untwist", *way)
    texts = pd.Series(["abc"] * 20 + [None] * 100)
    predict = ["predict", "m.untwist", f"t.{ending}", "-o", "p.csv", *way]
    write(frame.assign(x=texts), ending)
    status, _, err = untwist(capsys, *predict)
    assert status == 1
    assert "column 'x' is one of numbers to the model, and none of its 20 cells" in err
    assert not (folder / "p.csv").exists()
    for right in (texts.mask(texts.index == 0), texts.mask(texts.index == 119, "1.5")):
        write(frame.assign(x=right), ending)
        status, _, err = untwist(capsys, *predict)
        assert status == 0
        assert "values are no numbers: taken as missing" in err


@pytest.mark.parametrize(("ending", "way"), [("csv", []), ("parquet", []), ("parquet", ["--blocks"])])
def test_dates_in_a_column_of_numbers_are_refused(folder, capsys, ending, way):
    frame = make_frame()
    untwist(capsys, "train", write(frame, ending), "--label", "y", "-o", "m.untwist", *way)
    dates = pd.Series(pd.date_range("2020-01-01", periods=len(frame)))
    predict = ["predict", "m.untwist", f"t.{ending}", "-o", "p.csv", *way]
    for column in (dates, dates.dt.strftime("%Y-%m-%d")):
        write(frame.assign(x=column), ending)
        status, _, err = untwist(capsys, *predict)
        assert status == 1
        is_text = ending == "csv" or column is not dates
        holds = "none of its 120 cells that are not empty is a number" if is_text else "holds dates now"
        assert f"column 'x' is one of numbers to the model, and {holds}" in err
        assert not (folder / "p.csv").exists()


def test_a_few_dates_in_a_column_of_numbers_are_no_numbers(folder, capsys):
    frame = make_frame().assign(empty=np.nan)
    save(UntwistClassifier(random_state=0).fit(frame.drop(columns="y"), frame["y"]), "m.untwist")
    few = frame.iloc[:19].assign(x="2020-01-01")
    for rows, status in [(few, 0), (pd.concat([few, few.iloc[:1]]), 1), (frame.assign(empty="2020-01-01"), 0)]:
        write(rows, "csv")
        found, _, err = untwist(capsys, "predict", "m.untwist", "t.csv", "-o", "p.csv")
        assert found == status, err
        assert ("x: 19 values are no numbers: taken as missing" in err) == (rows is few)


def test_notes_show_the_beginning_of_long_texts(folder, capsys):
    frame = make_frame()
    frame = frame.assign(k=np.where(frame["y"] == frame["y"].iloc[0], "u", "v"))
    untwist(capsys, "train", write(frame, "csv"), "--label", "y", "-o", "m.untwist")
    write(frame.assign(k="z" * 5000), "csv")
    _, _, err = untwist(capsys, "predict", "m.untwist", "t.csv", "-o", "p.csv")
    assert f"k: '{'z' * 80}...' did not occur in training" in err
    assert len(err) < 500


def test_a_column_that_no_tree_asks_for_may_become_text(folder, capsys):
    frame = make_frame().assign(empty=np.nan)
    save(UntwistClassifier(random_state=0).fit(frame.drop(columns="y"), frame["y"]), "m.untwist")
    write(frame.assign(empty="abc"), "csv")
    status, _, err = untwist(capsys, "predict", "m.untwist", "t.csv", "-o", "p.csv")
    assert status == 0, err


def test_a_name_that_nobody_can_type_is_not_put_into_advice(folder):
    frame = pd.DataFrame(
        {"\x1b[1mid": [f"w{row}" for row in range(200)], "x": np.arange(200) % 7, "y": ["a", "b"] * 100}
    )
    assert "(--keep COLUMN uses it)" in "".join(prepare_frame(frame, "y").notes)
