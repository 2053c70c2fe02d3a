"""What the fuzzer feeds with foreign bytes: model files, tables, results files, the border to the compiled core.

Each target takes any bytes. It returns when they were refused in the documented way (a ValueError with a sentence) or
gave sane numbers, and raises otherwise. tests/files/test_corpus.py replays the kept inputs without a fuzzer.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import struct
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from experiments import results
from experiments.arena.rows import BINS, ArenaRow
from reliability.fuzz_models import use_everywhere
from untwist import Growth, PILBoostClassifier, UntwistClassifier, _core, files
from untwist.commands import blocks, cells, columns, kinds, new_rows, sheets
from untwist.data import batches
from untwist.files.decisions import HEADER, format_decisions, format_line, parse_decisions
from untwist.noise import NoiseModel

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
MEMORY = "/dev/shm"  # Where this folder exists, files in it never touch a disk.
PREFIX = struct.Struct("<8sIIQ")  # A model file begins with magic, version, 0 and the bytes of its header.
CHECKSUM = 32  # A model file ends with the bytes of a SHA-256.

__all__ = ["TARGETS", "Choices", "make_seeds"]


class Choices:
    """Decisions read off bytes, and zeros after the last byte: the same bytes make the same decisions."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        taken = self.content[self.at : self.at + count]
        self.at += count
        return taken + bytes(count - len(taken))

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return int.from_bytes(self.take(1 if limit <= 256 else 4), "little") % limit

    def one(self, options: Any) -> Any:
        """One of a sequence."""
        return options[self.below(len(options))]

    @property
    def left(self) -> bool:
        """Whether there are bytes left."""
        return self.at < len(self.content)


# ---- model files ----

WORDS = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    255,
    2**31,
    2**53,
    2**63,
    10**30,
    0.5,
    -0.0,
    1e308,
    5e-324,
    "",
    "x",
    "yes",
    "|O",
]
WORDS += ["__class__", "<U9999", "auto", "reference", "exact", [], {}, [[]], [0, 0], {"number": "inf"}]
WORDS += [{"number": "nan"}, {"pairs": []}, {"pairs": [[[], 1]]}, {"tuple": [1, 2]}, {"pairs": 3}, "\ud800", "\0"]


def sign(content: bytes) -> bytes:
    """With the checksum that it should have, so that what lies behind is reached."""
    return content + hashlib.sha256(content).digest()


def put_together(header: Any, data: bytes) -> bytes:
    """A model file."""
    text = json.dumps(header).encode()
    text += b" " * (-(PREFIX.size + len(text)) % 8)
    return sign(PREFIX.pack(b"UNTWIST\0", files.VERSION, 0, len(text)) + text + data)


@cache
def read_models() -> list[tuple[str, bytes]]:
    """Header, as text, and arrays of the model files kept for the tests."""
    parts = []
    for content in (path.read_bytes() for path in sorted(FIXTURES.glob("*.untwist"))):
        if len(content) > 30_000:  # too slow to be tried often
            continue
        *_, size = PREFIX.unpack_from(content)
        text = content[PREFIX.size : PREFIX.size + size].decode()
        parts.append((text, content[PREFIX.size + size : -CHECKSUM]))
    return parts


def use(content: bytes) -> None:
    """Load a model and do with it what one does."""
    try:
        model = files.loads(content)
    except ValueError as error:
        assert "model file" in str(error), error
        return
    use_everywhere(model)


def try_model_bytes(content: bytes) -> None:
    """The bytes of a file without its checksum."""
    use(sign(content))


def try_model_edits(content: bytes) -> None:
    """A sound file with values of its header replaced or taken away, and words of its arrays."""
    choices = Choices(content)
    text, arrays = choices.one(read_models())
    header, data = json.loads(text), bytearray(arrays)
    for _ in range(8):
        if not choices.left:
            break
        if choices.below(3) == 0:
            at = choices.below(len(data) // 4) * 4
            data[at : at + 8] = choices.take(8)[: len(data) - at]
            continue
        if choices.below(2):  # an array's words, as small numbers
            kind, size, offset = choices.one([one for one in json.loads(text)["arrays"] if one[1] > 0])
            form = {"<i4": "<i", "<i8": "<q", "<f8": "<d", "<u8": "<Q", "|u1": "<B"}[kind]
            value = choices.below(256) - (0 if form in ("<B", "<Q") else 128)
            struct.pack_into(form, data, offset + choices.below(size) * struct.calcsize(form), value)
            continue
        place: Any = header
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = choices.one(keys)
            if isinstance(place[key], (dict, list)) and choices.below(4):
                place = place[key]
                continue
            if choices.below(5) == 0:
                del place[key]
            else:
                place[key] = deepcopy(choices.one(WORDS))
            break
    use(put_together(header, bytes(data)))


# ---- tables ----

ENDINGS = [".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".tar", ".csv.zst", ".txt"]
ENCODINGS = ["utf-8", "latin-1", "utf-16", "utf-7", "cp1252"]


def try_blocks(path: Path, label: str) -> Any:
    """Read a Parquet file in blocks of a few rows; returns what is made ready of it, or None where it is refused."""
    try:
        sheet = blocks.SheetInBlocks(path)
        for frame, _ in sheet.frames():
            assert list(frame.columns) == sheet.names, "names of a block"
        return columns.prepare(sheet, columns.Roles(label or sheet.names[-1], keep=sheet.names[:-1]))
    except (ValueError, ImportError) as error:
        assert str(error), "no words"
        return None


def compare_numbers(path: Path, sheet: Any, ready: Any, model: Any) -> None:
    """What is read in blocks is what is read whole: labels, notes, numbers."""
    parts = try_blocks(path, sheet.names[-1])
    assert parts is not None, "read whole, and refused in blocks"
    assert parts.notes == ready.notes, "notes of blocks"
    assert np.array_equal(parts.y, ready.y), "labels of blocks"
    encode = model.model_.encoder.encode
    assert np.array_equal(np.concatenate([*encode(parts.X).blocks()]), encode(ready.X), equal_nan=True), (
        "numbers of blocks"
    )


def compare_predictions(path: Path, sheet: Any, model: Any) -> None:
    """What is predicted of a file in blocks is what is predicted of it as a whole."""
    in_blocks = blocks.SheetInBlocks(path)
    ways = []
    for one in (sheet, in_blocks):
        new = new_rows.NewRows(model, one, cells.Hints(takes_infinite=True))
        ways.append(np.concatenate([model.predict_proba(new.conform(frame)) for frame, _ in one.frames()]))
    assert np.array_equal(*ways), "predictions of blocks"


def try_table(content: bytes, ending: str, separator: str | None = None, encoding: str | None = None) -> None:
    """A file of a table: read, made ready, fitted, predicted, written again; Parquet in blocks too."""
    folder = MEMORY if os.path.isdir(MEMORY) else None
    with (
        tempfile.TemporaryDirectory(dir=folder) as name,
        warnings.catch_warnings(),
        mock.patch.object(batches, "CELLS", 20),
    ):
        warnings.simplefilter("ignore")
        path = Path(name) / f"table{ending}"
        path.write_bytes(content)
        try:
            sheet = sheets.read(path, separator, encoding)
            label = sheet.frame.columns[-1]
            ready = columns.prepare(sheet, columns.Roles(label, keep=sheet.names[:-1]))
            lines = sheet.lines
        except (ValueError, ImportError) as error:
            assert str(error), "no words"
            assert ending != ".parquet" or try_blocks(path, "") is None, "refused whole, and read in blocks"
            return
        assert len(lines) == len(sheet.frame), "lines and rows"
        first = ready.rows[:1]
        again = path.with_name(f"again{ending}")
        try:
            again.write_bytes(
                kinds.COMPRESS.get(path.suffix, bytes)(sheet.replace_labels(label, first, ready.y[:1].tolist())[0])
            )
            other = sheets.read(again, sheet.separator, sheet.encoding).frame
        except ValueError as error:
            assert str(error), "no words"
        else:
            assert len(other) == len(sheet.frame), "rows after a label was replaced"
        if len(ready.y) > 200 or ready.X.shape[1] > 20:
            return
        try:
            model = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=2, n_jobs=1).fit(ready.X, ready.y)
        except ValueError as error:
            assert str(error), "no words"
            return
        if ending == ".parquet":
            compare_numbers(path, sheet, ready, model)
        columns.remember_readings(model, ready.readings, ready.kinds)
        X = new_rows.NewRows(model, sheet, cells.Hints(takes_infinite=True)).conform(sheet.frame)
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all(), "probabilities that are none"
        if ending == ".parquet":
            compare_predictions(path, sheet, model)


def try_csv(content: bytes) -> None:
    """The first byte says how the file is called, the second how it is read."""
    choices = Choices(content)
    ending, how = choices.one(ENDINGS), choices.below(256)
    separator = (None, ",", ";", "\t")[how % 4]
    try_table(content[2:], ending, separator, None if how < 192 else ENCODINGS[how % len(ENCODINGS)])


def try_parquet(content: bytes) -> None:
    """The first byte says whether it is Parquet or Arrow."""
    try_table(content[1:], ".feather" if content[:1] == b"F" else ".parquet")


def try_workbook(content: bytes) -> None:
    """The first byte says whether it is a spreadsheet of Excel or of LibreOffice."""
    try_table(content[1:], ".ods" if content[:1] == b"O" else ".xlsx")


def try_decisions(content: bytes) -> None:
    """A file of decisions about labels: read, written and read again."""
    try:
        decisions = parse_decisions(content.decode("utf-8-sig", "surrogatepass"))
    except (UnicodeDecodeError, ValueError) as error:
        assert str(error), "no words"
        return
    again = parse_decisions(format_decisions(decisions))
    assert format_decisions(again) == format_decisions(decisions), "decisions changed by writing them"


def try_results(content: bytes) -> None:
    """The file of the arena's results."""
    folder = MEMORY if os.path.isdir(MEMORY) else None
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "results.csv"
        path.write_bytes(content)
        try:
            rows = results.read(path, ArenaRow)
        except ValueError as error:
            assert str(path) in str(error), error
            return
        with results.Writer(path, results.list_columns(ArenaRow)) as writer:
            for row in rows[:3]:
                writer.add(dataclasses.astuple(row))
        assert {row.key for row in results.read(path, ArenaRow)} == {row.key for row in rows}, "rows lost"


# ---- the border to the compiled core ----

DTYPES = ["f8", "f4", "i8", "i4", "u4", "u1", "i1", "u8", "f2", "?", ">f8", "c16", "O"]
REALS = [
    0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    1e-300,
    1e300,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
    3.0,
    254.0,
    256.0,
    -0.0,
]
WHOLES = [0, 1, 2, 3, 5, 7, 60, 100, -1, -2, 255, 256, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, 2**64 - 1]
REFUSED = (TypeError, ValueError, RuntimeError, OverflowError)


def make_array(choices: Choices, dtype: str, ndim: int, shape: tuple[int, ...] | None = None) -> Any:
    """An array, most often of the type and dimensions asked for: of any strides, read-only now and then."""
    odd = choices.below(16)
    kind = choices.one(DTYPES) if odd == 0 else dtype
    shape = (
        tuple(choices.below(9) for _ in range(choices.below(4) if odd == 1 else ndim))
        if shape is None or odd == 1
        else shape
    )
    size = int(np.prod(shape)) if shape else 1
    exact = np.dtype(kind).kind in "iu"
    values = [choices.one(WHOLES if exact else REALS) for _ in range(min(size, 40))] or [0]
    with np.errstate(all="ignore"):
        if exact:
            some = np.array([one % 2**64 for one in values], dtype=np.uint64).astype(kind)
        else:
            some = np.array(values, dtype=np.float64).astype(kind)
        made = np.resize(some, size).reshape(shape)
    match choices.below(8):
        case 1 if made.ndim == 2:
            made = np.asfortranarray(made)
        case 2 if made.ndim:
            made = made[::-1]
        case 3 if made.ndim == 2:
            made = made[:, ::-1]
        case 4 if made.ndim:
            made = np.repeat(made, 2, axis=0)[::2]
        case 5 if made.ndim and len(made):
            made = np.broadcast_to(made[:1], made.shape)
        case 6:
            made = made.copy()
            made.flags.writeable = False
        case 7 if made.nbytes and made.dtype != object:  # not aligned
            moved = bytearray(b"\0" + made.tobytes())
            made = np.frombuffer(moved, dtype=made.dtype, offset=1).reshape(made.shape)
    return made


def try_forest(choices: Choices) -> None:
    """Trees that may be none: refused, or walked."""
    trees, features = choices.below(4), choices.below(5)
    offset, feature, left, sets = [0], [], [], []
    for _ in range(trees):
        splits = choices.below(6)
        nodes = 2 * splits + 1
        next_child = 1
        for node in range(nodes):
            inner = next_child < nodes and (node + 1 == next_child or choices.below(2) == 0)
            feature.append(choices.below(max(features, 1)) if inner else -1)
            left.append(next_child if inner else -1)
            sets.append(choices.below(3) - 1 if inner else -1)
            next_child += 2 * inner
        offset.append(len(feature))
    count = len(feature)
    kinds = {
        "offset": "i8",
        "feature": "i4",
        "left": "i4",
        "threshold": "f8",
        "missing_left": "u1",
        "value": "f8",
        "set": "i4",
        "codes": "u8",
    }
    sound = {"offset": offset, "feature": feature, "left": left, "set": sets}
    outputs = (count // 2 % 4,) if count // 2 % 4 else ()  # Some forests have several outputs.
    shapes = {"codes": (8,), "value": (count, *outputs)}
    arrays: dict[str, Any] = {}
    for name, kind in kinds.items():
        if name in sound:
            arrays[name] = np.array(sound[name], dtype=kind)
        else:
            shape = shapes.get(name, (count,))
            arrays[name] = make_array(choices, kind, len(shape), shape)
    for _ in range(choices.below(3)):
        name = choices.one(list(kinds))
        if choices.below(3) == 0:
            arrays[name] = make_array(choices, kinds[name], 1)
        elif arrays[name].size and arrays[name].flags.writeable and arrays[name].dtype.kind in "iu":
            wild = np.array([choices.one(WHOLES) % 2**64], dtype=np.uint64).astype(arrays[name].dtype)
            arrays[name][choices.below(len(arrays[name]))] = wild[0]
    claimed = choices.one([features, 0, 1, 3, 1000]) if choices.below(4) == 0 else features
    forest = _core.Forest(**arrays, features=claimed)
    for _ in range(3):
        rows = choices.one([0, 1, 5, 8, 33, 48, 60, 300])
        X = make_array(choices, choices.one(["f8", "f4"]), 2, (rows, features))
        first, last = (0, trees) if choices.below(4) else (choices.one(WHOLES), choices.one(WHOLES))
        threads = choices.one([1, 1, 2, 0, -1, 2**31 - 1] if choices.below(8) == 0 else [1])
        try:
            if choices.below(2):
                shape = (rows, *outputs)
                forest.add_scores(X, first, last, threads, make_array(choices, "f8", len(shape), shape))
            else:
                forest.leaves(X, first, last, threads, make_array(choices, "i4", 2, (rows, trees)))
        except REFUSED:
            continue


def try_engine(choices: Choices) -> None:
    """A data set and a run on it with settings that may be out of range."""
    rows, features, classes = 2 + choices.below(60), 1 + choices.below(4), 2 + choices.below(2)
    labels = np.array([i if i < classes else choices.below(classes) for i in range(rows)], dtype="u4") % max(classes, 1)
    data = _core.Dataset(labels if choices.below(8) else make_array(choices, "u4", 1), classes, features)
    X = make_array(choices, choices.one(["f8", "f4"]), 2, (rows, features))
    categories = np.array(
        [choices.one([0, 0, 3, 254, 255, -1]) if choices.below(3) == 0 else 0 for _ in range(features)], dtype="i4"
    )
    weight = make_array(choices, "f8", 1, (rows,)) if choices.below(4) == 0 else np.ones(choices.one([0, rows]))
    data.observe(X, weight, 1)
    if choices.below(8):  # else a run on columns that never came
        data.add_columns(X, choices.one([0, 0, 0, 1]), categories, weight, choices.one([255, 2, 16, 256, 1]), 1)
    data.hashes()
    odd = choices.below(4) == 0

    def real(*usual: float) -> float:
        return float(choices.one(REALS) if odd and choices.below(4) == 0 else choices.one(usual))

    def whole(*usual: int) -> int:
        return int(choices.one(WHOLES) if odd and choices.below(4) == 0 else choices.one(usual))

    validation_weight = (
        make_array(choices, "f8", 1, (rows,)) if choices.below(4) == 0 else np.ones(choices.one([0, rows]))
    )
    start = make_array(choices, "f8", 1, (rows,)) if choices.below(4) == 0 else np.zeros(0)
    monotone = make_array(choices, "i1", 1, (features,)) if choices.below(4) == 0 else np.zeros(0, dtype="i1")
    positive_class = whole(0, 1)
    alpha = real(2.0, 1.1, 0.5, 4.0, float("inf"))
    exact_link = bool(choices.below(2))
    step_size = real(1.0, 4.0, 1e300)
    step_by_edge = bool(choices.below(2))
    posterior_floor = real(1e-6, 0.1)
    growth = {
        "max_depth": whole(1, 3, 60),
        "max_leaf_nodes": whole(0, 2, 7),
        "min_weight_fraction_leaf": real(0.0, 0.1, 0.5),
        "l2": real(0.0, 1.0, 1e300),
        "min_samples_leaf": real(0.0, 2.0, 1e300),
        "category_smoothing": real(0.0, 1.0, 1e300),
        "subsample": real(1.0, 0.5, 1e-300),
        "max_features": real(1.0, 0.5, 1e-300),
        "seed": whole(0, 7),
    }
    task = _core.BoostingTask(
        positive_class=positive_class,
        sample_weight=weight,
        validation_weight=validation_weight,
        start_scores=start,
        alpha=alpha,
        link="exact" if exact_link else "clipped",
        step_size=step_size,
        step_by_edge=step_by_edge,
        posterior_floor=posterior_floor,
        first_round=whole(0, 5),
        begins_at_shares=True,
    )
    rounds, patience, threads = choices.one([3, 0, -1, 6]), choices.one([0, 1, -1]), choices.one([1, 2])
    extra = choices.below(2) == 1  # An input that is used up chooses 0.
    of_columns = {
        "monotone": monotone,
        "grouped_columns": np.zeros(0, dtype=np.uint32),
        "group_starts": np.zeros(0, dtype=np.int64),
        "feature_weights": np.zeros(0),
        "features": features,
    }
    if choices.below(4) == 3:  # An input that is used up chooses 0.
        of_columns |= {
            "grouped_columns": make_array(choices, "u4", 1, (choices.one([features, 2 * features]),)),
            "group_starts": make_array(choices, "i8", 1, (choices.one([2, 3]),)),
            "feature_weights": make_array(choices, "f8", 1, (features,)),
        }
    run = _core.Booster(data, task, _core.TreeGrowth(extra=extra, **of_columns, **growth))
    run.boost(rounds, patience, threads)
    _, _, offset, feature, left, threshold, missing_left, value, _, sets, codes = run.trees(0)
    assert len(offset) == len(run.trees(0)[0]) + 1, "offsets and trees"
    forest = _core.Forest(offset, feature, left, threshold, missing_left, value, sets, codes, features)
    scores = np.zeros(rows)
    forest.add_scores(X, 0, len(offset) - 1, 1, scores)
    known = all(np.nanmax(X[:, place], initial=0.0) < count for place, count in enumerate(categories) if count > 0)
    if known and not len(start):
        np.testing.assert_array_equal(scores, run.scores())


def try_sketch(choices: Choices) -> None:
    """Blocks of rows, states that another one sent, damaged or not, and codes by given thresholds."""
    columns = 1 + choices.below(3)
    categories = np.array([choices.one([0, 0, 3, 254]) for _ in range(columns)], dtype="i4")
    weighted, max_bins = choices.below(2) == 1, choices.one([2, 16, 255])
    sketches = [_core.Sketch(categories, max_bins, 128.0 if weighted else 0.0) for _ in range(2)]
    rows = choices.below(40)
    X = make_array(choices, choices.one(["f8", "f4"]), 2, (rows, columns))
    weight = np.full(rows if weighted else 0, float(choices.one([1, 0.5, 3, 128])))
    for sketch in sketches:
        sketch.observe(X, weight, 1)
    state = bytearray(sketches[0].state())
    for _ in range(choices.below(4)):
        at = choices.below(max(1, len(state) // 8)) * 8
        wild = choices.one(WHOLES) % 2**64 if choices.below(2) else int.from_bytes(choices.take(8), "little")
        state[at : at + 8] = struct.pack("<Q", wild)
    sketches[1].merge(bytes(state[: len(state) - choices.one([0, 0, 0, 8, 3])]))
    if sketches[1].needs_draw:
        sketches[1].draw(X, weight, 1)
        return
    found = sketches[1].thresholds()
    _core.encode(X, categories, found, np.zeros((rows, columns), dtype="u1"), 1)
    data = _core.Dataset(np.arange(max(rows, 1), dtype="u4") % 2, min(2, max(rows, 1)), columns)
    data.set_bins(sketches[1])
    data.add_rows(X, choices.one([0, 0, 1, 2**63]), weight, 1)
    data.hashes()


def try_links(choices: Choices) -> None:
    """The inverse links on any numbers."""
    z = make_array(choices, "f8", 1)
    out = np.zeros(len(z)) if choices.below(4) else make_array(choices, "f8", 1)
    choices.one([_core.clipped_logit, _core.clipped_posterior, _core.exact_logit])(z, float(choices.one(REALS)), out)


def try_core(content: bytes) -> None:
    """Functions of the compiled core with arrays of random shapes, types, strides and values."""
    choices = Choices(content)
    try:
        choices.one([try_forest, try_forest, try_engine, try_engine, try_links, try_sketch])(choices)
    except REFUSED:
        return


# ---- what the fuzzer begins with ----


def make_seeds(name: str) -> list[bytes]:
    """Sound inputs of a target, and some that are known to be nasty."""
    return SEEDS[name]()


def _make_models() -> list[bytes]:
    """The smallest models there are: what matters is their shape."""
    X = np.column_stack([np.arange(40.0) % 7, np.arange(40) % 3, np.arange(40) % 2])
    small: dict[str, Any] = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1, "random_state": 0}
    two, three = (np.arange(40) % 7 > 3).astype(int), np.arange(40) % 3
    given = UntwistClassifier(noise=(0.1, 0.2), n_jobs=1, random_state=0)
    few = PILBoostClassifier(alpha=1.1, **small).fit(X, two > 0)
    given.model_ = dataclasses.replace(few.model_, noise=NoiseModel.given((0.1, 0.2)), untwists=True)
    fitted = [
        PILBoostClassifier(alpha=2.0, **small).fit(X, two),
        PILBoostClassifier(alpha=-2.0, link="exact", categorical_features=[1], **small).fit(
            X, np.array(["no", "yes"])[two]
        ),
        given,
        PILBoostClassifier(alpha=4.0, growth=Growth(init="prior"), **small).fit(X, three),
    ]
    return [files.dumps(model)[:-CHECKSUM] for model in fitted]


def _make_tables() -> list[bytes]:
    text = "id,größe,stadt,wann,y\n" + "".join(
        f'{i},{i * 0.5},"{"AB"[i % 2]}, {i % 3}",2020-01-{i + 1:02d},{"ja" if i % 3 else "nein"}\n' for i in range(12)
    )
    plain = text.encode()
    packed = [
        bytes([place, 0]) + kinds.COMPRESS[ending](plain) for place, ending in ((1, ".gz"), (2, ".bz2"), (3, ".xz"))
    ]
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../table.csv", plain)
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as tape:
        entry = tarfile.TarInfo("../../table.csv")
        entry.size = len(plain)
        tape.addfile(entry, io.BytesIO(plain))
    odd = b'a;b;y\r\n1,5;"x\ny";0\r\n"2,5";007;1\r\n;NA;1\r\n45 %;true;0\r\n'
    lines = "t,y\na\u2028b,0\nc\x0bd,1\ne\x85f,0\n\x1c,1\n".encode()
    utf16 = b"\x00\xc2" + text.encode("utf-16")
    return [
        b"\0\0" + plain,
        b"\7\2" + odd,
        b"\0\1" + lines,
        utf16,
        *packed,
        b"\4\1" + memory.getvalue(),
        b"\5\1" + tar.getvalue(),
    ]


def _make_arrow_tables() -> list[bytes]:
    import pandas
    import pyarrow
    from pyarrow import feather, parquet

    days = pandas.date_range("2020-01-01", periods=12, tz="Europe/Stockholm")
    frame = pandas.DataFrame({"a": np.arange(12.0), "b": list("xyz") * 4, "c": days, "d": [None, True, False] * 4})
    frame["e"] = frame["b"].astype("category")
    frame["y"] = [0, 1] * 6
    out = []
    for first, write in ((b"P", parquet.write_table), (b"F", feather.write_feather)):
        for table in (pyarrow.Table.from_pandas(frame), pyarrow.table({"a": [1, 2, 3, 4], "y": [0, 1, 0, 1]})):
            sink = pyarrow.BufferOutputStream()
            write(table, sink)
            out.append(first + bytes(sink.getvalue()))
    return out


def _make_workbooks() -> list[bytes]:
    """Spreadsheets of a few cells, written by hand: what else is in such files is not read."""
    cells = [["a", "b", "y"], [1, "x", 0], [2.5, "y", 1], ["", "z", 0], [4, "x", 1]]

    def pack(parts: dict[str, str]) -> bytes:
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
        return memory.getvalue()

    def write_cell(place: str, value: Any) -> str:
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c r="{place}"><v>{value}</v></c>'

    rows = ""
    for row, line in enumerate(cells, start=1):
        written = [write_cell(f"{letter}{row}", one) for letter, one in zip("ABC", line, strict=True)]
        rows += f'<row r="{row}">{"".join(written)}</row>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    excel = pack(
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
            '<sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
        }
    )
    table = ""
    for line in cells:
        kinds = ["string" if isinstance(one, str) else f'float" office:value="{one}' for one in line]
        written = [
            f'<table:table-cell office:value-type="{kind}"><text:p>{one}</text:p></table:table-cell>'
            for kind, one in zip(kinds, line, strict=True)
        ]
        table += f"<table:table-row>{''.join(written)}</table:table-row>"
    names = "".join(
        f' xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"' for one in ("office", "table", "text")
    )
    libre = pack(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": '<manifest xmlns="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
            "content.xml": f"<office:document-content{names}><office:body><office:spreadsheet>"
            f'<table:table table:name="S">{table}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )
    return [b"X" + excel, b"O" + libre]


def _make_decisions() -> list[bytes]:
    mark = f"{0:016x}-{1:016x}"
    lines = [
        HEADER,
        format_line(3, 5, "yes", "relabel", "no", "note, with\nlines", "2024-01-01T00:00:00Z", mark),
        format_line(4, 6, "=1+1", "keep", "=1+1", "", "", mark),
        format_line(7, 9, "no", "skip", "", "", "", mark),
    ]
    return ["".join(lines).encode("utf-8-sig"), "".join(lines).replace(",", ";").encode(), HEADER.encode(), b""]


def _make_results() -> list[bytes]:
    header = ",".join(field.name for field in dataclasses.fields(ArenaRow))
    bins = " ".join(["1/0.5/1"] * BINS)
    row = f"moon,none,0,100,pilboost,0.9,0.9,0.3,0.1,0.5,{bins},1,"
    failed = 'moon,none,1,100,xgboost,0.5,0.5,0.69,0.25,0,,1,"no, ""really"" not\nat all"'
    return [f"{header}\n{row}\n{failed}\n".encode(), header[:20].encode(), b""]


def _make_choices() -> list[bytes]:
    rng = np.random.default_rng(0)
    return [rng.bytes(size) for size in (8, 30, 60, 90, 150, 250) for _ in range(4)]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "model": _make_models,
    "edits": _make_choices,
    "csv": _make_tables,
    "parquet": _make_arrow_tables,
    "workbook": _make_workbooks,
    "decisions": _make_decisions,
    "results": _make_results,
    "core": _make_choices,
}
TARGETS: dict[str, Callable[[bytes], None]] = {
    "model": try_model_bytes,
    "edits": try_model_edits,
    "csv": try_csv,
    "parquet": try_parquet,
    "workbook": try_workbook,
    "decisions": try_decisions,
    "results": try_results,
    "core": try_core,
}
