"""Model files: a header in JSON, arrays as they are, a checksum. Reading one executes nothing.

``save(model, path)`` and ``load(path)``; `dumps` and `loads` do the same with bytes. A file holds all that predictions
need and what is known of the training, but no training rows: what was predicted out of fold stays behind. The same
model gives the same bytes. docs/model-file.md describes the format.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import re
import secrets
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from untwist.arguments import Array
from untwist.automatic.search import Candidate, Choice
from untwist.boosting.forest import Forest
from untwist.boosting.runs import Ensemble
from untwist.classifier import PILBoostClassifier
from untwist.data.tables import Schema
from untwist.noise import MenonEstimate, NoiseEstimate, Untwisting

__all__ = ["VERSION", "dumps", "header", "load", "loads", "save", "whole_file", "write_whole"]

VERSION = 1
MAGIC = b"UNTWIST\0"
PREFIX = struct.Struct("<8sIIQ")  # magic, version, 0, bytes of the header
CHECKSUM = 32  # bytes of SHA-256, at the end
ALIGNED = 8
KINDS = {"<f8": np.float64, "<i8": np.int64, "<i4": np.int32, "<u8": np.uint64, "|u1": np.uint8}
LABELS = re.compile(r"\|b1|<[iuf][248]|\|[iu]1|<U\d{1,4}|\|O")  # types of classes
MOST_COLUMNS = 1 << 23  # times classes: a small file must not ask for much memory
MOST_RATES, MOST_CATEGORIES, DEEPEST = 512, 255, 60
MOST_TEXT = 1 << 22  # letters of all classes, as an array holds them

# ---- writing ----


def save(model: PILBoostClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model. An older file of that name stays as it was until the new one is complete."""
    write_whole(path, dumps(model))


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that is there whole or not at all; a device or a pipe is written to as it is."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of an older one at the end, and only if nothing went wrong."""
    target = Path(os.path.realpath(path))  # a link stays one
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with target.open("wb") as file:
            yield file
        return
    name = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(name, flags, 0o666 if old is None else stat.S_IMODE(old.st_mode))
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    with suppress(OSError):  # not everywhere can a folder be synced
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def dumps(model: PILBoostClassifier) -> bytes:
    """A fitted model as the bytes of a file."""
    if not isinstance(model, PILBoostClassifier):
        raise ValueError(f"only a PILBoostClassifier can be written to a model file, got a {type(model).__name__}")
    check_is_fitted(model, "_ensembles")
    if any(one.forest is None for one in model._ensembles):
        raise ValueError("only forests can be written to a file: this model has weak learners of another kind")
    arrays = _Arrays()
    header = {
        "model": "PILBoostClassifier",
        "untwist": importlib.metadata.version("untwist"),
        "settings": {name: _plain(name, value) for name, value in _settings(model).items()},
        "columns": {
            "count": model.n_features_in_,
            "names": [str(name) for name in model.feature_names_in_] if hasattr(model, "feature_names_in_") else None,
            "categories": [
                [index, _plain("a category", list(known))] for index, known in model._schema.categories.items()
            ],
        },
        "classes": {"type": _label_type(model.classes_), "values": _plain("a class", model.classes_.tolist())},
        "class_weights": _plain("class_weight", model._class_weights),
        "link": {"kind": "clipped" if model.link == "clipped" else "exact", "alpha": _number(model.link_.loss.alpha)},  # type: ignore[attr-defined]
        "alpha": _number(model.alpha_),
        "step_size": _number(model.step_size_),
        "seed": model._seed,
        "rows": model._n_rows,
        "weight": _number(model._n_samples),  # of all training rows
        "choice": None if not hasattr(model, "choice_") else _plain("choice_", asdict(model.choice_)),
        "noise": _noise_header(model.noise_, arrays),
        "untwists": model._untwisting is not None,  # whether probabilities are corrected by that noise
        "held_out": [arrays.add(model.validation_rows_.astype("<i8")), arrays.add(model._validation_shares)],
        "ensembles": [_ensemble_header(one, arrays) for one in model._ensembles],
    }
    header["arrays"] = arrays.table
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()  # ASCII: any text is safe in it
    text += b" " * (-(PREFIX.size + len(text)) % ALIGNED)
    content = PREFIX.pack(MAGIC, VERSION, 0, len(text)) + text + b"".join(arrays.parts)
    return content + hashlib.sha256(content).digest()


class _Arrays:
    """Arrays one after the other, each named by its number."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.table: list[Any] = []
        self.size = 0

    def add(self, array: NDArray[Any]) -> int:
        kind = next(name for name, dtype in KINDS.items() if dtype == array.dtype)
        content = np.ascontiguousarray(array).astype(kind).tobytes()
        content += b"\0" * (-len(content) % ALIGNED)
        self.table.append([kind, array.size, self.size])
        self.parts.append(content)
        self.size += len(content)
        return len(self.table) - 1


FOREST = [field.name for field in fields(Forest) if field.name != "n_features"]
TABLES = ("weights", "rates_neg", "rates_pos", "slopes")  # of an Untwisting


def _ensemble_header(one: Ensemble, arrays: _Arrays) -> dict[str, int]:
    header = {name: arrays.add(getattr(one.forest, name)) for name in FOREST}
    return header | {"losses": arrays.add(one.losses), "errors": arrays.add(one.errors)}


def _noise_header(noise: NoiseEstimate | None, arrays: _Arrays) -> dict[str, Any] | None:
    if noise is None:
        return None
    header: dict[str, Any] = {"kind": type(noise).__name__}
    for field in fields(noise):
        value = getattr(noise, field.name)
        header[field.name] = arrays.add(value) if field.name in TABLES else _plain(field.name, value)
    return header


def _settings(model: PILBoostClassifier) -> dict[str, Any]:
    """The arguments of the constructor, without those that no file can hold: functions and generators."""
    settings: dict[str, Any] = model.get_params(deep=False)
    settings["callbacks"] = None
    if not isinstance(settings["random_state"], (int, np.integer)):
        settings["random_state"] = None
    return settings


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it; a dict is a list of pairs, as its keys may be numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, tuple):
        return {"tuple": [_plain(name, one) for one in value]}
    if isinstance(value, (list, set, frozenset, range)) or hasattr(value, "tolist"):
        return [_plain(name, one) for one in value]
    if isinstance(value, dict):
        return {"pairs": [[_plain(name, key), _plain(name, one)] for key, one in value.items()]}
    raise ValueError(f"{name} cannot be written to a file: it holds a {type(value).__name__}, {value!r:.50}")


def _number(value: float) -> Any:
    """A number; as text where JSON has no word for it."""
    value = float(value)
    return value if math.isfinite(value) else {"number": repr(value)}


def _label_type(classes: NDArray[Any]) -> str:
    kind = classes.dtype.str
    if not LABELS.fullmatch(kind):
        raise ValueError(f"labels of type {classes.dtype} cannot be written to a file: make text or numbers of them")
    return kind


# ---- reading ----


def load(path: str | os.PathLike[str]) -> PILBoostClassifier:
    """Read a model. A file that is damaged, or no model at all, is refused with a ValueError that says so."""
    try:
        return loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def loads(content: bytes) -> PILBoostClassifier:
    """The model of a file's bytes."""
    about, data = _opened(content)
    try:
        return _model(about, data)
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else str(error)
        raise ValueError(f"this model file does not make sense ({reason:.200})") from error


def header(content: bytes) -> dict[str, Any]:
    """What a file's bytes say of the model, without its arrays."""
    about: dict[str, Any] = _opened(content)[0]
    return about


def _opened(content: bytes) -> tuple[Any, memoryview]:
    """The header and the arrays' bytes, checked as a whole."""
    if not content.startswith(MAGIC):
        raise ValueError("this is no untwist model file")
    if len(content) < PREFIX.size + CHECKSUM:
        raise ValueError("this model file is damaged: it ends too early")
    _, version, _, size = PREFIX.unpack_from(content)
    if version > VERSION:
        raise ValueError(f"this model file is of a newer untwist (format {version}, known are 1 to {VERSION}): update")
    body = memoryview(content)[:-CHECKSUM]
    if hashlib.sha256(body).digest() != content[-CHECKSUM:]:
        raise ValueError("this model file is damaged: its checksum is not that of its contents")
    if version < 1 or size > len(body) - PREFIX.size:
        raise ValueError("this model file does not make sense (its header is longer than the file)")
    try:
        header = json.loads(bytes(body[PREFIX.size : PREFIX.size + size]), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError("this model file does not make sense (its header is no JSON)") from error
    if not isinstance(header, dict):
        raise ValueError("this model file does not make sense (its header is no object)")
    return header, body[PREFIX.size + size :]


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _model(header: Any, data: memoryview) -> PILBoostClassifier:
    """The model that a header describes; whatever is not as it has to be raises."""
    table, used = header["arrays"], set()
    free = len(data)

    def array(number: Any, dtype: type[np.generic] = np.float64) -> Any:
        nonlocal free
        _require(type(number) is int and 0 <= number < len(table) and number not in used, "an array is named once")
        used.add(number)
        kind, size, offset = table[number]
        if KINDS.get(kind) is not dtype:
            raise ValueError(f"array {number} is {kind!r}, not {np.dtype(dtype).str!r}")
        item = np.dtype(dtype).itemsize
        _require(type(size) is type(offset) is int and size >= 0 and offset >= 0, f"array {number} has no place")
        free -= size * item  # the same bytes must not be read over and over
        _require(offset + size * item <= len(data) and free >= 0, f"array {number} lies outside the file")
        return np.frombuffer(data, kind, size, offset).astype(dtype)  # a copy that is writable and aligned

    _require(header["model"] == "PILBoostClassifier", f"it holds a {header['model']!r:.50}")
    known = PILBoostClassifier().get_params(deep=False)
    settings = {name: _value(value) for name, value in header["settings"].items() if name in known}
    settings |= {"estimator": None, "loss": None, "callbacks": None, "link": _one_of(header["link"]["kind"], LINKS)}
    _one_of(settings.get("engine", "auto"), ("auto", "compiled", "xgboost"))
    model = PILBoostClassifier(**settings)
    columns = header["columns"]
    model.n_features_in_ = n_features = _whole(columns["count"], 1, MOST_COLUMNS // max(1, len(header["ensembles"])))
    if columns["names"] is not None:
        names = _texts(columns["names"])
        _require(len(names) == n_features, f"{len(names)} names of {n_features} columns")
        model.feature_names_in_ = np.array(names, dtype=object)
    model._schema = _schema(columns["categories"], n_features)
    model.classes_ = _classes(header["classes"], len(header["ensembles"]))
    model._class_weights = _finite(np.array(_value(header["class_weights"]), dtype=np.float64), low=0.0)
    _require(model._class_weights.shape == model.classes_.shape, "there is a weight per class")
    weights = model._class_weights[model._class_weights > 0]
    _require(weights.size > 0 and 1e-100 < weights.min() <= weights.max() < 1e100, "class weights are weights")
    model.link_ = model._link_at(_real(header["link"]["alpha"]))
    model.alpha_, model.step_size_ = _real(header["alpha"]), _real(header["step_size"])
    model._seed, model._n_rows = _whole(header["seed"], 0), _whole(header["rows"], 0)
    model._n_samples = _real(header["weight"], low=0.0, high=2.0**53)
    if header["choice"] is not None:
        model.choice_ = _choice(header["choice"])
    model.noise_ = _noise(header["noise"], array)
    _require(isinstance(header["untwists"], bool), "untwists is true or false")
    model._untwisting = model.noise_ if header["untwists"] and isinstance(model.noise_, Untwisting) else None
    _require((model._untwisting is not None) == header["untwists"], "there is noise to untwist")
    rows, shares = header["held_out"]
    model.validation_rows_ = array(rows, np.int64).astype(np.intp)
    model._validation_shares = _finite(array(shares), low=0.0)
    _require(len(model.validation_rows_) == len(model._validation_shares), "each row held out has a share")
    model._ensembles = [_ensemble(one, array, n_features) for one in header["ensembles"]]
    _require(len(model._ensembles) == len(model._positive_classes()), "there are trees for each class")
    model.n_iter_ = max(map(len, model._ensembles))
    return model


LINKS = ("clipped", "exact")
ArrayOf = Callable[..., Any]


def _ensemble(header: Any, array: ArrayOf, n_features: int) -> Ensemble:
    types = {"offset": np.int64, "feature": np.int32, "left": np.int32, "set": np.int32}
    types |= {"missing_left": np.uint8, "codes": np.uint64}
    arrays = {name: array(header[name], types.get(name, np.float64)) for name in FOREST}
    forest = Forest(**arrays, n_features=n_features)
    nodes, trees = len(forest.feature), len(forest.edge)
    by_node = (forest.left, forest.threshold, forest.missing_left, forest.value, forest.gain, forest.set)
    _require(all(len(one) == nodes for one in by_node), "arrays of nodes are of one length")
    _require(len(forest.leverage) == trees == len(forest.offset) - 1 and trees > 0, "arrays of trees are of one length")
    _require(len(forest.codes) % 4 == 0, "a set is four words")
    for values in (forest.edge, forest.leverage, forest.value, forest.gain):
        _finite(values)
    _require(float(np.abs(forest.value).max(initial=0.0)) < 1e100, "scores are finite")
    forest.prepared  # noqa: B018 - the core refuses what it could not walk
    _require(_depth(forest) <= DEEPEST, f"trees are no deeper than {DEEPEST}")
    return Ensemble.of(forest, array(header["losses"]), array(header["errors"]))


def _depth(forest: Forest) -> int:
    """Splits on the longest way down; children come after their parents, which `prepared` has made sure of."""
    depth = np.zeros(len(forest.feature), dtype=np.int64)
    first = np.repeat(forest.offset[:-1], np.diff(forest.offset))
    for node in np.flatnonzero(forest.feature >= 0).tolist():
        left = int(first[node] + forest.left[node])
        depth[left] = depth[left + 1] = depth[node] + 1
    return int(depth.max(initial=0))


def _noise(header: Any, array: ArrayOf) -> NoiseEstimate | None:
    if header is None:
        return None
    kinds: dict[str, type[NoiseEstimate]] = {"Untwisting": Untwisting, "MenonEstimate": MenonEstimate}
    kind = kinds[header["kind"]]
    values: dict[str, Any] = {}
    for field in fields(kind):
        value = header[field.name]
        if field.name in TABLES:
            values[field.name] = _finite(array(value), low=0.0)
        elif field.name.startswith("interval"):
            low, high = (_real(one) for one in value["tuple"])
            values[field.name] = (low, high)
        elif field.name == "found":
            _require(isinstance(value, bool), "found is true or false")
            values[field.name] = value
        else:
            values[field.name] = _whole(value, 2) if field.name == "n_classes" else _real(value)
    if kind is Untwisting:
        sizes = {len(values[name]) for name in TABLES}
        _require(len(sizes) == 1 and 1 <= sizes.pop() <= MOST_RATES, "there is a weight per pair of rates")
        _require(bool(np.all(values["weights"] > 0)), "weights of rates are positive")
        _require(bool(np.all(values["rates_neg"] + values["rates_pos"] < 1)), "rates sum to less than one")
        _require(0 < values["clearest"] < 0.5 and values["scale"] > 0, "the calibration is one")
        _require(all(math.isfinite(values[name]) for name in ("scale", "offset")), "the calibration is finite")
        _require(bool(np.all(values["slopes"] < 1e3)) and values["scale"] < 1e6, "slopes are those of probabilities")
    return kind(**values)


def _choice(header: Any) -> Choice:
    def candidate(one: Any) -> Candidate:
        values = dict(one["pairs"])
        whole = {name: _whole(values.pop(name), 0) for name in ("max_depth", "n_rounds")}
        return Candidate(**whole, **{name: _real(value) for name, value in values.items()})  # type: ignore[arg-type]

    pairs = dict(header["pairs"])
    return Choice(candidate(pairs["best"]), tuple(candidate(one) for one in pairs["tried"]["tuple"]))


def _schema(header: Any, n_features: int) -> Schema:
    categories = {}
    for index, known in header:
        values = _value(known)
        _require(isinstance(values, list), "categories are a list")
        _require(len(values) <= MOST_CATEGORIES, f"a column has at most {MOST_CATEGORIES} categories")
        plain = all(isinstance(one, (int, float, str)) and not isinstance(one, bool) and one == one for one in values)
        _require(plain and len(set(values)) == len(values), "categories are different numbers or text")
        categories[_whole(index, 0, n_features - 1)] = tuple(values)
    _require(len(categories) == len(header), "a column has its categories once")
    return Schema(categories)


def _classes(header: Any, n_ensembles: int) -> NDArray[Any]:
    kind, values = header["type"], _value(header["values"])
    _require(isinstance(kind, str) and LABELS.fullmatch(kind) is not None, f"{kind!r:.50} is no type of labels")
    _require(isinstance(values, list) and len(values) >= 2, "there are two classes")
    _require(all(isinstance(one, (bool, int, float, str)) for one in values), "classes are text or numbers")
    _require(len(values) <= max(2, n_ensembles), "there are trees for each class")
    _require("U" not in kind or int(kind[2:]) * len(values) <= MOST_TEXT, "names of classes are short")
    text = all(isinstance(one, str) for one in values)
    _require(
        text if "U" in kind else kind == "|O" or not any(isinstance(one, str) for one in values), "they are labels"
    )
    classes = np.array(values, dtype=kind)
    _require(
        classes.tolist() == values and bool(np.all(classes[:-1] < classes[1:])), "classes are sorted and different"
    )
    return classes


# ---- values of the header ----


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"not so: {what}")


def _value(plain: Any) -> Any:
    """What `_plain` was given."""
    if isinstance(plain, dict):
        if "number" in plain:
            return _real(plain)
        if "tuple" in plain:
            return tuple(_value(plain["tuple"]))
        return {_value(key): _value(one) for key, one in plain["pairs"]}
    return [_value(one) for one in plain] if isinstance(plain, list) else plain


def _real(plain: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(plain, dict):
        plain = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[plain["number"]]
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        raise ValueError(f"{plain!r:.50} is no number")
    bounded = math.isfinite(low) or math.isfinite(high)
    _require(low <= plain <= high or (math.isnan(plain) and not bounded), f"{plain!r} lies in [{low}, {high}]")
    return float(plain)


def _whole(plain: Any, low: int, high: int = 2**62) -> int:
    if type(plain) is not int or not low <= plain <= high:
        raise ValueError(f"{plain!r:.50} is no whole number from {low} to {high}")
    return plain


def _texts(plain: Any) -> list[str]:
    if not isinstance(plain, list) or not all(isinstance(one, str) for one in plain):
        raise ValueError("names of columns are not a list of text")
    return plain


def _one_of(value: Any, known: Iterable[str]) -> str:
    if value not in tuple(known):
        raise ValueError(f"{value!r:.50} is none of {', '.join(known)}")
    return str(value)


def _finite(values: Array, low: float = -math.inf) -> Array:
    _require(values.ndim == 1 and bool(np.isfinite(values).all() and (values >= low).all()), "numbers are finite")
    return values
