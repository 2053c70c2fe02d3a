"""Tables from files, made ready for a model. Whatever is wrong with a file is said in one sentence.

CSV (any separator, compressed or not), Parquet and Arrow. What is done to a column is said in a note: numbers with a
few stray words become numbers, dates become days, ids are left out. `conformed` does the same to new rows.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import lzma
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.classifier import PILBoostClassifier

__all__ = ["Prepared", "conformed", "prepared", "read", "write"]

OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED = {*OPENERS, ".zip", ".zst"}
ARROW = {".arrow", ".feather", ".ipc"}
NEEDED = 'needs pandas and pyarrow: pip install "untwist[cli]"'
NUMERIC_SHARE = 0.95  # of the values of a column of text that are numbers, or dates, from which on it holds these
DISTINCT_SHARE, LEAST_ROWS = 0.95, 50  # of the values of a column of text: it names the rows
LEAK = 0.99  # of the rows told right by one column alone
ID = re.compile(r"(.*_)?(id|uuid|guid|index|rowid|row_number)|unnamed: 0", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"reading tables {NEEDED}") from error
    return pandas


# ---- files ----


def read(path: Path, separator: str | None = None, encoding: str = "utf-8") -> Any:
    """A file as a pandas DataFrame."""
    pandas = _pandas()
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file")
    kind = _kind(path)
    try:
        if kind == ".parquet" or kind in ARROW:
            frame = pandas.read_parquet(path) if kind == ".parquet" else pandas.read_feather(path)
            names = [str(name) for name in frame.columns]
        else:
            separator = separator or _separator(path, encoding)
            options: dict[str, Any] = {"sep": separator, "encoding": encoding, "skipinitialspace": True}
            first = pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
            names = [name.strip() for name in first.iloc[0]]
            frame = pandas.read_csv(path, low_memory=False, **options)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(f"{path} is not {encoding} text (byte {byte:#x}): try --encoding latin-1") from error
    except LookupError as error:
        raise ValueError(f"{encoding!r} is no encoding: try utf-8 or latin-1") from error
    except ImportError as error:
        raise ImportError(f"reading {path} {NEEDED}") from error
    except (ValueError, OSError, EOFError, lzma.LZMAError) as error:  # of pandas' and pyarrow's own kinds
        raise ValueError(f"{path} cannot be read as a table: {_first_line(error)}") from error
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path} has several columns {repeated[0]!r}: rename all but one")
    frame.columns = names
    if not len(frame):
        raise ValueError(f"{path} has no rows")
    return frame


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def _kind(path: Path) -> str:
    suffixes = [one.lower() for one in path.suffixes]
    return next((one for one in reversed(suffixes) if one not in COMPRESSED), "")


def _separator(path: Path, encoding: str) -> str:
    """The sign that the first line has most of."""
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        return ","
    opened: Any = OPENERS.get(path.suffix.lower(), open)
    with opened(path, "rt", encoding=encoding, errors="replace") as file:
        line = file.readline(1 << 20)
    return max(",;\t|", key=line.count)


def write(frame: Any, path: Path | None) -> None:
    """As CSV on standard output, or to a file of the kind that its name says; a file is there whole or not at all."""
    if path is None:
        print(frame.to_csv(index=False), end="")
        return
    part = path.with_name(f".{path.name}.part")
    try:
        if _kind(path) == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            compression = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip", ".zst": "zstd"}
            frame.to_csv(part, index=False, compression=compression.get(path.suffix.lower()))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# ---- columns ----


@dataclass(frozen=True)
class Prepared:
    """Features, labels, the rows of the file that they come from (from 0), and what was done, in words."""

    X: Any
    y: NDArray[Any]
    rows: NDArray[np.intp]
    notes: list[str] = field(default_factory=list)


def prepared(frame: Any, label: str, *, drop: Collection[str] = (), keep: Collection[str] = ()) -> Prepared:
    """The table of a file, ready to fit: columns that are no features left out, unless they are to be kept."""
    for name in [label, *drop, *keep]:
        if name not in frame.columns:
            near = difflib.get_close_matches(name, list(frame.columns), 1)
            hint = f": did you mean {near[0]!r}?" if near else f": the columns are {_listed(frame.columns)}"
            raise ValueError(f"there is no column {name!r}{hint}")
    notes = []
    present = frame[label].notna().to_numpy()
    if not present.all():
        notes.append(f"{(~present).sum()} rows have no label and are left out")
    rows = np.flatnonzero(present)
    if not rows.size:
        raise ValueError(f"no row has a label in column {label!r}")
    frame = frame.iloc[rows]
    y = frame[label].to_numpy()
    if y.dtype == object:
        y = y.astype(str)
    classes = np.unique(y)
    if classes.size == 1:
        raise ValueError(f"column {label!r} holds only {classes.tolist()[0]!r}: two classes are needed")
    if y.dtype.kind == "f" and not (classes == np.round(classes)).all():
        raise ValueError(
            f"column {label!r} holds {classes.size} different numbers, not classes: this is for classification"
        )
    X = frame.drop(columns=[label, *(name for name in drop if name != label)])
    for name in list(X.columns):
        column, note = _feature(X[name])
        left_out = None if name in keep else _no_feature(X[name] if column is None else column)
        if left_out or column is None:
            X = X.drop(columns=name)
            notes.append(
                f"{name}: {left_out or note}; left out" + ("" if column is None else f" (--keep {name} uses it)")
            )
            continue
        X[name] = column
        if note:
            notes.append(f"{name}: {note}")
    if not X.shape[1]:
        raise ValueError("no column is left to learn from")
    return Prepared(X, y, rows, notes + _leaks(X, y))


def _listed(names: Iterable[Any], most: int = 12) -> str:
    listed = [repr(str(name)) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _feature(column: Any) -> tuple[Any, str]:
    """A column as numbers or categories, None if it is of no use, and what was done to it."""
    pandas = _pandas()
    if column.isna().all():
        return None, "all values are missing"
    if pandas.api.types.is_datetime64_any_dtype(column) or pandas.api.types.is_timedelta64_dtype(column):
        return _days(column), "dates, as days since 1970"
    if pandas.api.types.is_bool_dtype(column) or pandas.api.types.is_numeric_dtype(column):
        return column, ""
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return column, ""
    text = column.astype(object).where(column.notna(), None)
    known = text.dropna().astype(str).str.strip()
    numbers = pandas.to_numeric(known, errors="coerce")
    share = numbers.notna().mean()
    if share >= NUMERIC_SHARE:
        stray = known[numbers.isna()].unique()
        words = f"numbers; {_listed(stray, 3)} taken as missing" if len(stray) else ""
        return pandas.to_numeric(text, errors="coerce"), words
    if known.str.fullmatch(DATE).mean() >= NUMERIC_SHARE:
        return _days(pandas.to_datetime(text, errors="coerce", format="mixed", utc=True)), "dates, as days since 1970"
    note = f"text, though {share:.0%} of its values are numbers" if share > 0.5 else ""
    return text.map(lambda one: one if one is None else str(one).strip()).astype("category"), note


def _days(column: Any) -> Any:
    pandas = _pandas()
    if pandas.api.types.is_timedelta64_dtype(column):
        return column / pandas.Timedelta(days=1)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return (column - pandas.Timestamp(0)) / pandas.Timedelta(days=1)


def _no_feature(column: Any) -> str | None:
    """Why a column says nothing of new rows, if it does not."""
    known = column.dropna()
    distinct = known.nunique()
    text = str(column.dtype) in ("category", "object", "str", "string")
    if text and len(known) >= LEAST_ROWS and distinct > DISTINCT_SHARE * len(known):
        return f"{distinct} different words in {len(known)} rows"
    if distinct == len(known) >= LEAST_ROWS and ID.fullmatch(str(column.name)):
        return "looks like an id"
    return None


def _leaks(X: Any, y: NDArray[Any], most: int = 20_000) -> list[str]:
    """Columns that tell the label all by themselves: they may not be known yet when a prediction is wanted."""
    from sklearn.model_selection import cross_val_score
    from sklearn.tree import DecisionTreeClassifier

    classes, labels = np.unique(y, return_inverse=True)
    if not (2 <= classes.size <= 50 and np.bincount(labels).min() >= 5):
        return []
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    notes = []
    for name in X.columns:
        column = X[name].iloc[rows]
        values = column.cat.codes if str(column.dtype) == "category" else column
        values = np.nan_to_num(values.to_numpy(dtype=np.float64), nan=-1e30, posinf=1e30, neginf=-1e30)[:, None]
        usual = np.bincount(labels[rows]).max() / len(rows)
        right = cross_val_score(
            DecisionTreeClassifier(max_depth=4, min_samples_leaf=5), values, labels[rows], cv=2
        ).mean()
        if right > LEAK and right > usual + 0.5 * (1.0 - usual):
            notes.append(f"{name}: tells the label in {right:.1%} of the rows by itself; is it known in advance?")
    return notes


def _as_numbers(column: Any) -> Any:
    """A column as numbers, dates as days, whatever is neither as missing."""
    pandas = _pandas()
    if pandas.api.types.is_datetime64_any_dtype(column) or pandas.api.types.is_timedelta64_dtype(column):
        return _days(column)
    if pandas.api.types.is_numeric_dtype(column):
        return column
    text = column.astype(object).where(column.notna(), None)
    numbers = pandas.to_numeric(text, errors="coerce")
    dates = numbers.isna() & text.map(lambda one: isinstance(one, str) and DATE.fullmatch(one.strip()) is not None)
    if dates.any():
        numbers[dates] = _days(pandas.to_datetime(text[dates], errors="coerce", format="mixed", utc=True))
    return numbers


def conformed(frame: Any, model: PILBoostClassifier) -> tuple[Any, list[str]]:
    """New rows with the columns that the model was fitted to, and what was done, in words."""
    names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
    if missing := [name for name in names if name not in frame.columns]:
        raise ValueError(f"the model needs columns that the file has not: {_listed(missing)}")
    X, notes = frame[names].copy(), []
    for index, name in enumerate(names):
        column, known = X[name], model._schema.categories.get(index)
        if known is None:
            numbers = _as_numbers(column)
            lost = int((numbers.isna() & column.notna()).sum())
            if lost:
                notes.append(f"{name}: {lost} values are no numbers: taken as missing")
            X[name] = numbers
        elif any(isinstance(one, str) for one in known):
            text = column.astype(object).where(column.notna(), None)
            text = text.map(lambda one: one if one is None else str(one).strip())
            new = set(text.dropna()) - set(known)
            if new:
                notes.append(f"{name}: {_listed(sorted(new), 3)} did not occur in training: taken as missing")
            X[name] = text.astype("category")
    return X, notes
