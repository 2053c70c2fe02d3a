"""What foreign bytes cannot do: run anything, reach other files, ask for much memory, steer a terminal or a page."""

import ast
import bz2
import contextlib
import csv
import gzip
import io
import json
import re
import resource
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from helpers.model_bytes import put_together, take_apart
from helpers.model_fixtures import FOLDER
from helpers.quick import QuickClassifier
from helpers.report_fixtures import HOSTILE
from untwist import PILBoostClassifier, load
from untwist import text as safe
from untwist.commands import cells, features, new_rows, sheets
from untwist.commands import main as cli
from untwist.data import arrow_files, batches, memory
from untwist.data.batches import Batches
from untwist.export import to_code
from untwist.export.scoring import Scoring

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")
ROOT = Path(__file__).parents[2]

NASTY = [
    *HOSTILE,
    "*/ system(0); /*",
    "\n#include </etc/passwd>\n",
    "\\\nint main",
    '"""\nimport os\n"""',
    "'''\nraise SystemExit\n'''",
    "??/\nevil",
    "\x1b]0;title\x07\x1b[2J\x1b[31m",
    "\x9b31m",
    "a\rb",
    "\u202egnp.exe",
    "\u2028alert(1)\u2029",
    "nul\x00byte",
    "%s%n{0.__class__}{",
    "../../../etc/passwd",
    "file:///etc/passwd",
]


# ---- files execute nothing and reach no other file ----

WATCHED = """
import sys, warnings
from pathlib import Path
import numpy as np
from untwist.commands import blocks, columns, sheets
from untwist.files import load

paths = [Path(word) for word in sys.argv[1:]]
X = np.zeros((60, 4))

def use(path):
    try:
        if path.suffix == ".untwist":
            load(path).predict_proba(X)
        else:
            sheet = sheets.read(path)
            columns.prepare(sheet, columns.Roles("y"))
            sheet.lines
            if path.suffix == ".parquet":
                columns.prepare(blocks.SheetInBlocks(path), columns.Roles("y"))
    except ValueError as error:
        return str(error)

for path in paths:
    use(path)  # Whatever is imported late is imported now.

FORBIDDEN = ("exec", "compile", "import", "subprocess", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
             "socket", "ctypes", "pickle", "marshal", "os.remove", "os.rename", "os.mkdir", "os.link", "os.symlink",
             "os.chmod", "os.truncate", "shutil", "urllib", "ftplib", "webbrowser", "code.", "sys.unraisablehook")
seen = []

def watch(event, arguments):
    if event == "open" and str(arguments[0]) not in allowed or event.startswith(FORBIDDEN):
        seen.append((event, repr(arguments)[:200]))

allowed = {"/proc/self/statm"}
sys.addaudithook(watch)
for path in paths:
    allowed.add(str(path))
    use(path)
    allowed.discard(str(path))
print(seen)
"""


def write_hostile_models(folder):
    """Sound models, damaged ones, and one whose every text tries to get out."""
    for path in sorted(FOLDER.glob("*.untwist")):
        yield path
    header, data = take_apart((FOLDER / "format-300-given.untwist").read_bytes())
    for index, text in enumerate(["__import__('os').system('id')", "../../etc/passwd", "cos\nsystem\n(S'id'\ntR."]):
        changed = json.loads(json.dumps(header))
        changed["columns"]["names"] = [text, *"bcd"]
        changed["classes"]["values"] = sorted([text, "~"])
        changed["classes"]["type"] = "|O"
        changed["settings"]["random_state"] = changed["untwist"] = text
        path = folder / f"hostile-{index}.untwist"
        path.write_bytes(put_together(changed, data))
        yield path


def write_hostile_tables(folder):
    text = "a,b,y\n" + "".join(f"{i},{NASTY[i % 4]!r},{i % 2}\n" for i in range(60))
    plain = text.encode()
    for name, content in {
        "t.csv": plain,
        "t.csv.gz": gzip.compress(plain),
        "t.csv.bz2": bz2.compress(plain),
        "broken.csv.gz": gzip.compress(plain)[:-20],
        "none.csv": b"",
    }.items():
        (folder / name).write_bytes(content)
        yield folder / name
    with zipfile.ZipFile(folder / "t.csv.zip", "w") as archive:
        archive.writestr("../../../../tmp/untwist-evil.csv", text)
    yield folder / "t.csv.zip"
    with tarfile.open(folder / "t.csv.tar", "w") as tape:
        entry = tarfile.TarInfo("../../../../tmp/untwist-evil.csv")
        entry.size = len(plain)
        tape.addfile(entry, io.BytesIO(plain))
    yield folder / "t.csv.tar"
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    frame = pd.DataFrame({"a": np.arange(60.0), "b": ["<x>", "y"] * 30, "y": [0, 1, 1] * 20})
    table = pa.Table.from_pandas(frame)
    evil = dict(table.schema.metadata)
    evil[b"ARROW:extension:name"] = b"arrow.py_extension_type"
    evil[b"ARROW:extension:metadata"] = b"\x80\x04cos\nsystem\n\x94\x8c\x02id\x94\x85\x94R\x94."
    parquet.write_table(table.replace_schema_metadata(evil), folder / "t.parquet")
    field = table.schema.field("a").with_metadata(evil)
    feather.write_feather(table.cast(table.schema.set(0, field)), folder / "t.feather")
    yield folder / "t.parquet"
    yield folder / "t.feather"


def test_reading_runs_nothing_and_opens_no_other_file(tmp_path):
    paths = [str(path) for path in (*write_hostile_models(tmp_path), *write_hostile_tables(tmp_path))]
    before = sorted(tmp_path.iterdir())
    watched = subprocess.run([sys.executable, "-c", WATCHED, *paths], capture_output=True, text=True, cwd=tmp_path)
    assert watched.returncode == 0, watched.stderr
    assert ast.literal_eval(watched.stdout.strip()) == []
    assert sorted(tmp_path.iterdir()) == before
    assert not Path("/tmp/untwist-evil.csv").exists()


@pytest.mark.slow
def test_the_watch_sees_what_it_should(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    spied = WATCHED.replace(
        "            sheet.lines\n", "            sheet.lines\n            open('/dev/null'); eval('1')\n"
    )
    watched = subprocess.run(
        [sys.executable, "-c", spied, "t.csv"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert {event for event, _ in ast.literal_eval(watched.stdout.strip())} == {"open", "compile", "exec"}


def test_the_package_has_no_way_to_run_foreign_bytes():
    for path in sorted((ROOT / "src" / "untwist").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, path
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "subprocess", "yaml", "code"} & {
                name.split(".")[0] for name in names
            }
            if path.parent.name == "distributed":  # A parent and its children talk through a folder of their own.
                found -= {"pickle", "subprocess"}
            assert not found, (path, found)
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert getattr(node.value, "value", True) is False, path


# ---- a small file asks for little ----

LIMITED = """
import resource, sys
from pathlib import Path
from untwist.commands import blocks, sheets
from untwist.data import memory
from untwist.files import load
import pandas, pyarrow.parquet, pyarrow.feather

memory.LEAST_BYTES = 200 << 20
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
# This is where the machine itself would end it.
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))

def read_in_blocks(path):
    sheet = blocks.SheetInBlocks(path)
    for frame, _ in sheet.frames():
        pass
    for name in sheet.names:
        sheet.column(name)

WAYS = {".untwist": [load], ".parquet": [sheets.read, read_in_blocks]}
for word in sys.argv[1:]:
    path = Path(word)
    for read in WAYS.get(path.suffix, [sheets.read]):
        try:
            read(path)
        except ValueError as error:
            print(str(error).removeprefix(str(path)))
        else:
            print("read")
print(resource.getrlimit(resource.RLIMIT_AS)[0] == used + (1 << 30))
"""


def read_with_little_memory(*paths):
    """What reading says where memory is short."""
    command = [sys.executable, "-c", LIMITED, *map(str, paths)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    *lines, restored = process.stdout.splitlines()
    assert restored == "True"
    return lines


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux alone")
@pytest.mark.slow
def test_a_small_table_cannot_ask_for_much(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"a,y\n")
        for _ in range(25):
            file.write(b"1,0\n" * (1 << 20))  # In all this is 100 MB of text, 26 million rows.
    with zipfile.ZipFile(tmp_path / "bomb.csv.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("bomb.csv", b"a,y\n" + b"1,0\n" * (25 << 20))
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, dtype=np.int32)), pa.array(["x" * 1_000_000]))
    plain = pa.table({"text": text})
    parquet.write_table(plain, tmp_path / "words.parquet", store_schema=False)  # Unpacked this is 100 GB of text.
    parquet.write_table(pa.table({"a": np.zeros(50 << 20)}), tmp_path / "rows.parquet", compression="zstd")
    # Many rows of few bytes and one long text go to blocks by themselves.
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3 << 20, dtype=np.int32)), pa.array(["x" * 16_000]))
    parquet.write_table(pa.table({"text": text}), tmp_path / "long.parquet", store_schema=False)
    feather.write_feather(pa.table({"a": np.zeros(50 << 20)}), tmp_path / "rows.feather", compression="zstd")
    paths = sorted(path for path in tmp_path.iterdir())
    assert all(path.stat().st_size < 1_000_000 for path in paths)
    ways = [path for path in paths for _ in range(1 + (path.suffix == ".parquet"))]
    for path, line in zip(ways, read_with_little_memory(*paths), strict=True):
        assert re.match(r" needs more than \d GB of memory: unpack or split it", line), (path, line)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux alone")
@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_both_ways_have_one_limit(tmp_path, monkeypatch, capsys, way):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    # Unpacked this is 2 GB of text.
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, dtype=np.int32)), pa.array(["x" * 1_000_000]))
    table = pa.table({"a": np.arange(2000.0), "text": text, "y": np.arange(2000) % 3 == 0})
    parquet.write_table(table.select(["a", "y"]), "good.parquet")
    parquet.write_table(table, "bad.parquet", store_schema=False)
    assert cli.main(["train", "good.parquet", "--label", "y", "--keep", "a"]) == 0
    monkeypatch.setattr(memory, "LEAST_BYTES", 300 << 20)
    before = resource.getrlimit(resource.RLIMIT_AS)
    for arguments in (["train", "bad.parquet", "--label", "y"], ["predict", "model.untwist", "bad.parquet"]):
        capsys.readouterr()
        assert cli.main([*arguments, way]) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert "bad.parquet needs more than 0 GB of memory: unpack or split it" in said
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def write_shared_texts(rows=2000, letters=500_000):
    """Two long texts as categories of the file, one for each row: a gigabyte for whoever writes them out."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    x = np.arange(rows) % 7 - 3.0
    codes = pa.array((x > 0).astype(np.int32))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["p" * letters, "q" * letters]))
    table = pa.table({"x": x, "y": x > 0, "text": text})
    parquet.write_table(table.select(["x", "y"]), "good.parquet")
    parquet.write_table(table, "bad.parquet")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux alone")
@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_texts_that_rows_share_are_written_within_the_limit(tmp_path, monkeypatch, capsys, way):
    monkeypatch.chdir(tmp_path)
    write_shared_texts()
    assert cli.main(["train", "good.parquet", "--label", "y"]) == 0
    monkeypatch.setattr(memory, "LEAST_BYTES", 300 << 20)
    capsys.readouterr()
    assert cli.main(["predict", "model.untwist", "bad.parquet", "--with-input", "-o", "p.csv", way]) == 1
    assert "bad.parquet needs more than 0 GB of memory: unpack or split it" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_texts_are_counted_before_memory_ends(tmp_path, monkeypatch, capsys, way):
    """pyarrow may end the process where memory ends in one of its threads."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(500, dtype=np.int32)), pa.array(["x" * 10_000]))
    table = pa.table({"a": np.arange(500.0) % 7, "text": text, "y": np.arange(500) % 7 > 3})
    parquet.write_table(table, "t.parquet", store_schema=False)
    for least, status in [(1 << 30, 0), (1 << 20, 1)]:
        monkeypatch.setattr(memory, "LEAST_BYTES", least)
        # Nothing but the count of texts keeps this from being read.
        monkeypatch.setattr(memory, "_limit_address_space", lambda most: contextlib.nullcontext())
        assert cli.main(["train", "t.parquet", "--label", "y", "-o", "m.untwist", way]) == status
    assert "t.parquet needs more than 0 GB of memory: unpack or split it" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"t\.parquet needs more than 0 GB of memory"):
        Batches("t.parquet").column("text")
    assert Batches("t.parquet").column("a").tolist() == table["a"].to_pylist()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux alone")
def test_labels_that_rows_share_are_read_within_the_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shared_texts()
    monkeypatch.setattr(memory, "LEAST_BYTES", 300 << 20)
    with pytest.raises(ValueError, match=r"bad\.parquet needs more than 0 GB of memory"):
        Batches("bad.parquet").column("text")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux alone")
def test_columns_are_decided_within_the_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"a": np.arange(100) % 7 / 2, "k": ["u", "v"] * 50, "y": ["p", "p", "q", "q"] * 25})
    table.to_csv("t.csv", index=False)
    assert cli.main(["train", "t.csv", "--label", "y"]) == 0
    limits = []
    to_text = cells.to_text

    def watch(*arguments, **options):
        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
        return to_text(*arguments, **options)

    for module in (cells, features, new_rows):
        monkeypatch.setattr(module, "to_text", watch)
    usual = resource.getrlimit(resource.RLIMIT_AS)[0]
    for command in (["inspect"], ["predict", "model.untwist"], ["explain", "model.untwist"]):
        limits.clear()
        assert cli.main([*command, "t.csv"]) == 0
        assert limits
        assert usual not in limits


def test_a_limit_within_another_keeps_the_lower_one(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"1")
    with memory.limit_memory(tmp_path / "t.csv"):
        low = resource.getrlimit(resource.RLIMIT_AS)
        with memory.limit_memory(tmp_path / "t.csv"):
            assert resource.getrlimit(resource.RLIMIT_AS)[0] <= low[0]
        assert resource.getrlimit(resource.RLIMIT_AS) == low
        with memory.limit_memory():
            assert resource.getrlimit(resource.RLIMIT_AS) == low


# ---- what is checked before it is used ----


def write_damaged_table(path):
    """Text that is no UTF-8, in a column that no model knows."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    frame = write_bad_table(path.with_suffix(".csv"), 60)
    bad = pa.array([b"\xff\xfe" if row == 40 else b"fine" for row in range(60)], type=pa.binary())
    text = pa.Array.from_buffers(pa.string(), 60, bad.buffers())
    table = pa.Table.from_pandas(frame.assign(plain=np.arange(60.0) % 7))
    parquet.write_table(table, path.with_name("sound.parquet"), row_group_size=20)
    parquet.write_table(table.append_column("odd", text), path, row_group_size=20)


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_text_that_is_no_utf8_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys, way):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches, "CELLS", 100)  # The row is in the third block.
    write_damaged_table(tmp_path / "bad.parquet")
    assert cli.main(["train", "sound.parquet", "--label", "y"]) == 0
    for arguments in (
        ["train", "bad.parquet", "--label", "y"],
        ["predict", "model.untwist", "bad.parquet", "-o", "p.csv"],
        ["predict", "model.untwist", "bad.parquet", "-o", "p.csv", "--with-input"],
    ):
        capsys.readouterr()
        assert cli.main([*arguments, way]) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert re.search(
            r"bad.parquet cannot be read as a table: column 'odd', row 41: the text is not UTF-8: write", said
        )
    assert not (tmp_path / "p.csv").exists()


def test_categories_that_are_no_utf8_are_named_with_their_first_row(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    bytes_of_words = pa.array([b"fine", b"\xff\xfe"], type=pa.binary())
    words = pa.Array.from_buffers(pa.string(), 2, bytes_of_words.buffers())
    for codes, kind, place in [
        ([0, None, 0, 1, 1], pa.int32(), "row 4"),
        ([0, 1, 0, 1, 1], pa.uint32(), "row 2"),
        ([0, 0, 0, 0, 0], pa.int8(), "from row 1 on"),
    ]:
        coded = pa.DictionaryArray.from_arrays(pa.array(codes, kind), words)
        with pytest.raises(ValueError, match=f"column 'w', {place}: "):
            arrow_files.check_table(pa.table({"w": coded}))
    parquet.write_table(pa.table({"w": pa.array(["a", "b"]).dictionary_encode()}), tmp_path / "good.parquet")
    assert [table.num_rows for table in arrow_files.read_blocks(tmp_path / "good.parquet", None, 9)] == [2]


def test_blocks_share_their_categories_and_each_counts_once(tmp_path, monkeypatch):
    """pyarrow makes a copy of the categories for each block."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    words = pa.array(["x" * 40_000, "y" * 40_000])
    codes = pa.array(np.arange(100_000) % 2, mask=np.arange(100_000) % 7 == 0)
    coded = pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), words)
    parquet.write_table(pa.table({"a": np.arange(100_000.0), "w": coded}), tmp_path / "t.parquet")
    monkeypatch.setattr(memory, "LEAST_BYTES", 500_000)
    table = arrow_files.read_parquet(tmp_path / "t.parquet")
    chunks = table["w"].chunks
    assert len(chunks) > 5
    assert len({chunk.dictionary.buffers()[2].address for chunk in chunks}) == 1
    expected = [word if word is None else word[0] for word in coded.to_pylist()]
    assert [word if word is None else word[0] for word in table["w"].to_pylist()] == expected
    assert table.schema == parquet.read_schema(tmp_path / "t.parquet")
    monkeypatch.setattr(memory, "LEAST_BYTES", 1_000)
    monkeypatch.setattr(memory, "BYTES_PER_BYTE", 0)
    with pytest.raises(ValueError, match=r"t\.parquet needs more than 0 GB of memory"):
        arrow_files.read_parquet(tmp_path / "t.parquet")


def test_errors_of_arguments_do_not_reach_a_terminal_raw(capsys):
    for arguments in (["inspect", "a.csv", "b\x1b[31m\u202e\x07.csv"], ["tr\x1bain"], ["train", "a.csv", "--n\x1bo"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert "error: " in said
        assert not set(said) & {"\x1b", "\u202e", "\x07"}


def test_batches_of_text_that_is_no_utf8_are_refused_too(tmp_path):
    write_damaged_table(tmp_path / "bad.parquet")
    from pyarrow import dataset

    for source in (tmp_path / "bad.parquet", dataset.dataset(tmp_path / "bad.parquet")):
        rows = Batches(source, ["plain", "odd"])
        with pytest.raises(ValueError, match="column 'odd', row 41: the text is not UTF-8"):
            QuickClassifier(alpha=2.0, n_estimators=2).fit(rows, np.arange(60) % 2)
        with pytest.raises(ValueError, match="column 'odd', row 41: the text is not UTF-8"):
            rows.column("odd")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux alone")
@pytest.mark.slow
def test_a_small_model_cannot_ask_for_much(tmp_path):
    header, data = take_apart((FOLDER / "format-300-several.untwist").read_bytes())

    def written(name, **values):
        path = tmp_path / f"{name}.untwist"
        path.write_bytes(put_together(header | values, data))
        return path

    columns = header["columns"]
    paths = [
        written("columns", columns=columns | {"count": 2**60}),
        written("many", columns=columns | {"count": 1 << 21, "names": None, "categories": []}),
        written(
            "text", classes={"type": "<U9999", "values": [f"{i:05}" for i in range(50_000)]}, ensembles=[{}] * 50_000
        ),
        written("arrays", arrays=[["<f8", 2**40, 0]] * 1000),
        written("digits", seed=10**3000),
        written("deep", settings={"alpha": json.loads("[" * 900 + "]" * 900)}),
    ]
    for path, line in zip(paths, read_with_little_memory(*paths), strict=True):
        assert "model file" in line or (line == "read" and path.stem == "many"), (path, line)


@pytest.mark.slow
def test_many_columns_do_not_take_forever(tmp_path):
    (tmp_path / "wide.csv").write_text("," * 10_000 + "\n" + "," * 10_000 + "\n")
    assert sheets.read(tmp_path / "wide.csv").frame.shape == (1, 10_001)
    (tmp_path / "same.csv").write_text("x," * 10_000 + "x\n" + "," * 10_000 + "\n")
    with pytest.raises(ValueError, match="several columns 'x'"):
        sheets.read(tmp_path / "same.csv")


# ---- a terminal only shows ----


def write_bad_table(path, rows=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "\x1b]0;title\x07 \u202e name\r": x,
            "=cmd|'/c calc'!A0": rng.choice([*NASTY[:11], "\x1b[2J"], rows),
            "@empty\x9b31m": [""] * rows,
            "y": np.where((x > 0) ^ (rng.random(rows) < 0.15), "=1+1\x1b[31m", "-a\u202e"),
        }
    )
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return frame


def run_command(capsys, *arguments):
    with contextlib.suppress(SystemExit):
        cli.main(list(map(str, arguments)))
    return capsys.readouterr()


@pytest.mark.parametrize("way", ["csv", "parquet", "blocks"])
def test_no_command_prints_what_steers_a_terminal(tmp_path, monkeypatch, capsys, way):
    monkeypatch.chdir(tmp_path)
    frame = write_bad_table("bad.csv", 120)
    if way != "csv":
        pytest.importorskip("pyarrow")
        frame.to_parquet("bad.parquet")
    table = "bad.csv" if way == "csv" else "bad.parquet"
    blocks = ["--blocks"] if way == "blocks" else []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    both_ways = [
        ["train", table, "--label", "y", "-o", "m.untwist", *blocks],
        ["train", table, "--label", "y", "-o", "m.untwist", "--json", *blocks],
        ["predict", "m.untwist", table, "--with-input", *blocks],
        ["predict", "m.untwist", table, *blocks],
        ["train", table, "--label", "z\x1b[2J", *blocks],
        ["train", f"no\x1b[2J.{way}", "--label", "y", *blocks],
    ]
    whole = [
        ["predict", "m.untwist", table, "--with-input", "--json"],
        ["audit", table, "--label", "y"],
        ["audit", table, "--label", "y", "--json"],
        ["explain", "m.untwist", table],
        ["explain", "m.untwist", table, "--line", "3", "--json"],
        ["inspect", table],
        ["inspect", table, "--json"],
        ["inspect", "m.untwist"],
        ["inspect", "m.untwist", "--json"],
    ]
    for arguments in [*both_ways, *([] if blocks else whole)]:
        out, err = run_command(capsys, *arguments)
        assert out or err
        for text in (out, err):
            assert safe.UNSEEN.search(text) is None, (arguments, safe.UNSEEN.findall(text))
        if "--json" in arguments:
            json.loads(out)
        elif "--with-input" in arguments:
            assert "\ufffd" in out


def test_json_that_is_escaped_is_the_same():
    value = {"\x9b\u202e": ["\U000e0041", "\ud800", "plain ä\n\x1b"]}
    text = safe.for_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert safe.UNSEEN.search(text) is None


def test_terminal_page_and_line_agree_on_what_is_dangerous():
    for code in range(0x110000):
        character = chr(code)
        replaced = safe.for_terminal(character) != character
        assert replaced == (safe.for_page(character) == "\N{REPLACEMENT CHARACTER}") or code == 0xFFFD
        if replaced or character.isspace():
            assert safe.UNSEEN.search(safe.clip(f"a{character}b")) is None
    assert {"\x1b", "\x9b", "\r", "\u202e", "\u2066", "\u200b", "\ud800", "\ufffb", "\U000e0041"} <= {
        chr(code) for code in range(0x110000) if safe.UNSEEN.match(chr(code))
    }


# ---- a spreadsheet calculates nothing ----


def test_the_list_of_suspects_has_no_formulas_and_predictions_are_as_they_were(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = write_bad_table("bad.csv")
    run_command(capsys, "audit", "bad.csv", "--label", "y", "--suspects", "s.csv", "--corrected", "c.csv")
    listed = pd.read_csv("s.csv", dtype=str, keep_default_na=False)
    assert len(listed) > 5
    cells = [*listed.columns, *listed.to_numpy().ravel()]
    assert not [one for one in cells if one[:1] in tuple("=+-@\t\r\n") and not safe._NUMBER.fullmatch(one)]
    assert "'=1+1\x1b[31m" in set(listed["label"])
    corrected = pd.read_csv("c.csv", dtype=str, keep_default_na=False)
    original = pd.read_csv("bad.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(corrected.drop(columns="y"), original.drop(columns="y"))
    assert set(corrected["y"]) == set(frame["y"])


# ---- exported code is the model and nothing else ----


def fit_named_model(names, categories, classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 6, (200, 2)).astype(float), columns=names)
    X[names[0]] = pd.Categorical.from_codes(X[names[0]].astype(int) % len(categories), categories)
    y = np.array(classes, dtype=object)[(rng.random(200) + (X[names[1]] > 2) > 0.9).astype(int)]
    return PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2, n_jobs=1).fit(X, y)


def test_names_cannot_leave_the_comments_of_exported_code(tmp_path):
    plain = fit_named_model(["a", "b"], ["c", "d", "e"], ["f", "g"])
    texts = sorted(set(NASTY))
    for place in range(0, len(texts) - 7, 5):
        first, second, *others = texts[place : place + 7]
        model = fit_named_model([first, second], others[:3], sorted(others[3:5]))
        for line in Scoring.from_model(model).describe():
            assert line.isascii()
            assert line.isprintable()
            assert not line.endswith("\\")
        python, twin = to_code(model, "python"), to_code(plain, "python")
        assert ast.dump(ast.parse(python)) == ast.dump(ast.parse(twin))
        c, c_twin = to_code(model, "c"), to_code(plain, "c")
        assert re.sub(r"^//.*\n", "", c, flags=re.M) == re.sub(r"^//.*\n", "", c_twin, flags=re.M)


@pytest.mark.parametrize("name", ["main(){} int x", "a b", "", "ä", "x;", "a\n", "\x00"])
def test_a_function_has_a_plain_name(name):
    model = load(FOLDER / "format-300-negative.untwist")
    with pytest.raises(ValueError, match="name must be a name"):
        to_code(model, "c", name=name)
