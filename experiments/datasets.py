"""Tables by name: some are built in, the others come as CSV files from a local folder or from OpenML.

A file has a header and a column `label` of 0 and 1; `label_noisy` beside it holds real noisy labels; text columns are
categories; an empty cell is a missing value. A pair of files is one table whose test part is fixed: NAME_train.csv and
NAME_test.csv, or NAME_train_noisy.csv, whose `label` is the noisy one, and NAME_test_clean.csv. Files of several
classes, whose `label` may be anything, are in a folder `multiclass` of that folder, and `load_several` loads them.

Nothing is downloaded unless asked for. The live download was not exercised: the ids were read from public code, the
tests serve a small table themselves, and a table that is not the known one is refused or warned of.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home, load_breast_cancer, load_digits

__all__ = [
    "FOLDER",
    "Labels",
    "Table",
    "drop_rare_classes",
    "is_pair_with_noise",
    "is_published",
    "list_names",
    "list_several",
    "load",
    "load_several",
]

#: The environment variable that names the folder.
FOLDER = "UNTWIST_DATA"
#: The folder within it that has the tables of several classes.
SEVERAL = "multiclass"
#: How the two files of a pair end, the training part first.
PAIRS = {"_train.csv": "_test.csv", "_train_noisy.csv": "_test_clean.csv"}
#: The paper's names of two tables.
ALIASES = {"diabetes": "pima", "shoppers": "online_shoppers"}
#: Seconds to wait for a sign of OpenML.
TIMEOUT = 30.0

Labels = NDArray[np.int64]


class KnownTable(NamedTuple):
    """A table of OpenML: where it is, and what it has to be.

    `positive` is the label of class 1, where `1` stands for any way to say true; `digest` is that of the CSV file that
    the published results come from.
    """

    id: int
    positive: str
    rows: int
    columns: int
    positives: int
    digest: str
    target: str = "default-target"


OPENML = {
    "adult": KnownTable(1590, ">50K", 48842, 14, 11687, "8e68486b7338"),
    "bank_marketing": KnownTable(1461, "2", 45211, 16, 5289, "f21246856a99"),
    "banknote": KnownTable(1462, "2", 1372, 4, 610, "a1842ade5cef"),
    "german_credit": KnownTable(31, "bad", 1000, 20, 300, "c38ad013ca5e"),
    "ionosphere": KnownTable(59, "g", 351, 34, 225, "a6261f4f25e0"),
    "kr_vs_kp": KnownTable(3, "won", 3196, 36, 1669, "4d4dcbcdefe3"),
    "online_shoppers": KnownTable(46947, "1", 12330, 17, 1908, "0643d1679ff1", "Revenue"),
    "phoneme": KnownTable(1489, "2", 5404, 5, 1586, "fde7a8df1183"),
    "pima": KnownTable(37, "tested_positive", 768, 8, 268, "36aa469bcb8a"),
    "spambase": KnownTable(44, "1", 4601, 57, 1813, "a4d44bd18185"),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Features with labels 0 and 1, or from 0 up; X is an array, or a pandas DataFrame if it was read from a file.

    `y` are the clean labels, where they are known, `y_noisy` real noisy labels of the same rows; `X_test` and `y_test`
    are a test part with clean labels, where it is fixed; `classes` are the names of the labels.
    """

    name: str
    X: Any
    y: Labels | None
    y_noisy: Labels | None = None
    X_test: Any = None
    y_test: Labels | None = None
    classes: tuple[str, ...] = ("0", "1")

    @cached_property
    def digest(self) -> str:
        """12 hex digits that tell this content from any other; names do not count.

        >>> load("xd6").digest
        '0d4bc6668664'
        """
        sha = hashlib.sha256()
        for X, *labels in ((self.X, self.y, self.y_noisy), (self.X_test, self.y_test)):
            parts = [*_encode_columns(X), *(b"-" if y is None else b"y" + y.astype("<i8").tobytes() for y in labels)]
            for part in parts:
                sha.update(b"%d:" % len(part) + part)  # The length keeps two tables from one text.
        return sha.hexdigest()[:12]


def _encode_columns(X: Any) -> Iterator[bytes]:
    """Numbers as float64, one NaN and one zero for all; categories as text, each with its length, `-` where missing."""
    for j in range(0 if X is None else X.shape[1]):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        if column.dtype.kind in "biuf":
            numbers = np.asarray(column.astype("float64")) + 0.0
            yield b"n" + np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes()
        else:
            column = column.astype("category").cat
            texts = [f"{len(text)}:{text}" for text in map(str, column.categories)]
            texts.append("-")  # The code of a missing value is -1.
            yield b"c" + "".join(texts[code] for code in column.codes).encode()


def _load_digits(positive: Callable[[Labels], Any]) -> tuple[Any, Labels]:
    X, digit = load_digits(return_X_y=True)
    return X, positive(digit)


def _make_xd6() -> tuple[Any, Any]:
    """The truth table of (x1&x2&x3)|(x4&x5&x6)|(x7&x8&x9): 461 of its 512 rows are there twice."""
    once = (
        "0 6 10 14 19 21 22 26 39 47 71 82 90 98 112 115 138 155 174 196 215 226 228 257 260 266 281 319 321 325 335 "
        "338 341 343 350 362 367 382 386 395 400 422 434 436 441 442 447 456 477 498 505"
    )
    times = np.full(512, 2)
    times[[int(row) for row in once.split()]] = 1
    X = np.repeat(np.array(list(itertools.product((0, 1), repeat=9))), times, axis=0)
    return X, X.reshape(-1, 3, 3).min(axis=2).max(axis=1)


BUILT_IN: dict[str, Callable[[], tuple[Any, Any]]] = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits_odd": lambda: _load_digits(lambda digit: digit % 2),
    "digits_large": lambda: _load_digits(lambda digit: digit >= 5),
    "xd6": _make_xd6,
}


def list_names(folder: str | Path | None = None) -> list[str]:
    """List what `load` can load without a download; without a folder (here or in the environment), what is built in.

    >>> list_names()[:2]
    ['cancer', 'digits_large']
    """
    return sorted(BUILT_IN) + sorted(_list_files(_find_folder(folder)) - set(BUILT_IN))


def _list_files(there: Path | None) -> set[str]:
    """The names of the tables in a folder; a pair of files is one."""
    files = [file.name for file in there.glob("*.csv")] if there else []
    for train, test in PAIRS.items():
        pairs = [file for file in files if file.endswith(train) and file.removesuffix(train) + test in files]
        files = [file for file in files if not file.endswith((train, test))]
        files += [file.removesuffix(train) + ".csv" for file in pairs]
    return {file.removesuffix(".csv") for file in files}


def list_several(folder: str | Path | None = None) -> list[str]:
    """List what `load_several` can load; nothing without a folder, here or in the environment.

    Parameters
    ----------
    folder : str or Path, optional
        A folder of such tables, or one that has a folder `multiclass`.

    Returns
    -------
    list of str
    """
    return sorted(_list_files(_find_several(folder)))


def is_pair_with_noise(name: str, folder: str | Path | None = None) -> bool:
    """Find out, by its files alone, whether a table of several classes has real noisy labels and clean test rows.

    Parameters
    ----------
    name, folder
        As for `load_several`.

    Returns
    -------
    bool
    """
    there = _find_several(folder)
    return bool(there and not (there / f"{name}.csv").is_file() and (there / f"{name}_train_noisy.csv").is_file())


def load_several(name: str, folder: str | Path | None = None) -> Table:
    """Load a table of several classes from a CSV file, or from a pair of files, whose `label` may be anything.

    Parameters
    ----------
    name : str
        The name of the table, see `list_several`.
    folder : str or Path, optional
        A folder of such tables, or one that has a folder `multiclass`; by default that of the environment.

    Returns
    -------
    Table
        Its labels are indices of `classes`, which are sorted: by number, if all are whole numbers, else by name.
    """
    there = _find_several(folder)
    table = _read_local(name, there / name, several=True) if there else None
    if table is None:
        known = f": there are {', '.join(list_several(folder))}" if there else f" (name it, or set {FOLDER})"
        raise ValueError(f"data set {name!r} needs {name}.csv in a folder of tables of several classes{known}")
    return table


def drop_rare_classes(table: Table, least: int) -> tuple[Table, dict[str, int]]:
    """Drop the rows of classes that are too rare to be split.

    Parameters
    ----------
    table : Table
        The table.
    least : int
        The number of training rows that a class must have.

    Returns
    -------
    Table
        Without these classes.
    dict
        The names of what was dropped, with the number of its training rows.
    """
    labels = table.y if table.y is not None else table.y_noisy
    assert labels is not None, "a table has labels"
    counts = np.bincount(labels, minlength=len(table.classes))
    kept = np.flatnonzero(counts >= least)
    dropped = {table.classes[index]: int(counts[index]) for index in np.flatnonzero(counts < least)}
    if not dropped:
        return table, {}
    new_index = np.full(len(table.classes), -1)
    new_index[kept] = np.arange(kept.size)
    rows = new_index[labels] >= 0
    if table.y is not None and table.y_noisy is not None:
        rows &= new_index[table.y_noisy] >= 0
    test_rows = None if table.y_test is None else new_index[table.y_test] >= 0

    def keep(values: Any, chosen: Any) -> Any:
        if values is None:
            return None
        return values[chosen].reset_index(drop=True) if hasattr(values, "iloc") else values[chosen]

    def relabel(values: Labels | None, chosen: Any) -> Labels | None:
        return None if values is None else new_index[values[chosen]].astype(np.int64)

    smaller = Table(
        table.name,
        keep(table.X, rows),
        relabel(table.y, rows),
        relabel(table.y_noisy, rows),
        keep(table.X_test, test_rows),
        relabel(table.y_test, test_rows),
        tuple(table.classes[index] for index in kept),
    )
    return smaller, dropped


def is_published(table: Table) -> bool:
    """Find out whether the published results of this project come from this table, as far as that is known.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    bool
    """
    known = OPENML.get(ALIASES.get(table.name, table.name))
    return known is None or table.digest == known.digest


def load(
    name: str, folder: str | Path | None = None, *, download: bool = False, cache: str | Path | None = None
) -> Table:
    """Load the table of that name: built in, else from CSV files in `folder`, else, with `download`, from OpenML.

    Downloads are kept in the folder `cache`, scikit-learn's data home by default.

    >>> load("cancer").X.shape
    (569, 30)
    """
    if name in BUILT_IN:
        X, y = BUILT_IN[name]()
        return Table(name, X, np.asarray(y, dtype=np.int64))
    there = _find_folder(folder)
    stem = ALIASES.get(name, name)
    for path in [there / name, there / stem] if there else []:  # A file of that very name comes first.
        if table := _read_local(name, path):
            return table
    if download and stem in OPENML:
        return _download(name, stem, cache)
    if there:
        other = "; download=True (on the command line --download) fetches it from OpenML" if stem in OPENML else ""
        raise ValueError(f"no data set {name!r} in {there}: it has {', '.join(list_names(there))}{other}")
    other = ", or download=True (on the command line --download) to fetch it from OpenML" if stem in OPENML else ""
    raise ValueError(f"data set {name!r} needs {stem}.csv in a folder (name it, or set {FOLDER}){other}")


def _read_local(name: str, path: Path, several: bool = False) -> Table | None:
    """The table of the file or the pair of files that begin with `path`, if they are there."""
    if (file := Path(f"{path}.csv")).is_file():
        X, *labels = _read(file, several=several)
        return _index_classes(Table(name, X, *labels), several)
    for train, test in PAIRS.items():
        if (file := Path(f"{path}{train}")).is_file() and (file_test := Path(f"{path}{test}")).is_file():
            X, y, y_noisy = _read(file, several=several)
            X_test, y_test, _ = _read(file_test, several=several)
            clean, noisy = (None, y) if "noisy" in train else (y, y_noisy)
            table = Table(name, X, clean, noisy, _align_columns(X_test, X, name), y_test)
            return _index_classes(table, several)
    return None


def _index_classes(table: Table, several: bool) -> Table:
    """The table with labels that are indices of its classes, where labels were read as text."""
    if not several:
        return table
    columns = (table.y, table.y_noisy, table.y_test)
    names = {str(label) for column in columns if column is not None for label in column}
    whole = all(name.lstrip("-").isdigit() for name in names)
    classes = sorted(names, key=lambda name: (int(name), name) if whole else (0, name))
    index = {name: position for position, name in enumerate(classes)}

    def encode(column: Any) -> Labels | None:
        return None if column is None else np.array([index[str(label)] for label in column], dtype=np.int64)

    y, y_noisy, y_test = map(encode, columns)
    return Table(table.name, table.X, y, y_noisy, table.X_test, y_test, tuple(classes))


def _download(name: str, stem: str, cache: str | Path | None) -> Table:
    """The table of OpenML, which has to be of the known shape; other content is warned of."""
    known = OPENML[stem]
    what = f"data set {name!r} (OpenML id {known.id})"
    _import_pandas(what)
    try:
        X, y = _fetch(known, cache, what)
    except Exception as error:  # An answer or a cache that makes no sense can lead to any error.
        if isinstance(error, HTTPError):
            error.close()
        if not isinstance(error, OSError):  # scikit-learn renews files that it cannot read, but not other content.
            for file in Path(get_data_home(cache), "openml").glob(f"*/api/**/{known.id}.gz"):
                file.unlink(missing_ok=True)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(
            f"{what} could not be downloaded ({reason}): try again, or put {stem}.csv in a folder and name that"
        ) from error
    came = (*X.shape, int(y.sum()))
    if came != known[2:5]:
        expected, got = ("{} rows, {} columns and {} positives".format(*shape) for shape in (known[2:5], came))
        raise ValueError(f"{what} should have {expected} but came with {got}")
    table = Table(name, X, y)
    if table.digest != known.digest:
        warnings.warn(
            f"{what} has the digest {table.digest}, not {known.digest}: results may differ from the published ones",
            stacklevel=3,
        )
    return table


def _fetch(known: KnownTable, cache: str | Path | None, what: str) -> tuple[Any, Labels]:
    """Features and labels as if they had been in a CSV file: its reader tells numbers from text."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(before or TIMEOUT)  # scikit-learn sets none and would wait for ever.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # They tell of retries; what came is judged by its content.
            X, label = fetch_openml(
                data_id=known.id,
                target_column=known.target,
                data_home=cache,
                as_frame=True,
                parser="auto",
                n_retries=1,
                delay=0.5,
                read_csv_kwargs={"dtype": str},  # scikit-learn 1.9 fails on numbers as categories.
                return_X_y=True,
            )
    finally:
        socket.setdefaulttimeout(before)
    frame = X.assign(label=label).replace("^'(.*)'$", r"\1", regex=True)  # ARFF writes quotes.
    label = frame["label"].str.lower().str.removesuffix(".0").replace("true", "1")
    text = frame.assign(label=(label == known.positive.lower()).astype(int)).to_csv(index=False)
    X, y, _ = _read(StringIO(text), what)
    return X, y


def _find_folder(folder: str | Path | None) -> Path | None:
    chosen = folder or os.environ.get(FOLDER)
    if chosen and not Path(chosen).is_dir():
        raise ValueError(f"data folder {chosen} does not exist")
    return Path(chosen) if chosen else None


def _find_several(folder: str | Path | None) -> Path | None:
    there = _find_folder(folder)
    return there / SEVERAL if there and (there / SEVERAL).is_dir() else there


def _import_pandas(what: Any) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ValueError(f"{what} needs pandas to be read: pip install pandas") from error
    return pandas


def _read(file: Path | StringIO, what: str = "", several: bool = False) -> tuple[Any, Any, Any]:
    """Features, labels, and noisy labels if there are any; those of several classes as text."""
    what = what or str(file)
    pandas = _import_pandas(what)
    try:
        frame = pandas.read_csv(file)
    except ValueError as error:  # The errors of pandas' parser are ValueErrors.
        raise ValueError(f"{what} is not a CSV table ({str(error).strip()})") from error
    labels: dict[str, Any] = {}
    for column in ("label", "label_noisy"):
        if column in frame:
            if several:
                if frame[column].isna().any():
                    raise ValueError(f"{what}: {column} must not be missing in any row")
                labels[column] = frame.pop(column).astype(str).to_numpy(dtype=object)
                continue
            if not frame[column].isin([0, 1]).all():
                raise ValueError(f"{what}: {column} must be 0 or 1 in every row")
            labels[column] = frame.pop(column).to_numpy(dtype=np.int64)
    if "label" not in labels:
        raise ValueError(f"{what} has no column 'label'")
    text = frame.select_dtypes(exclude=["number", "bool"])
    kinds = dict.fromkeys(text, "category") | dict.fromkeys(frame.select_dtypes("bool"), "int64")
    return frame.astype(kinds), labels["label"], labels.get("label_noisy")


def _align_columns(X_test: Any, X: Any, name: str) -> Any:
    """The test columns with the order and the categories of the training columns."""
    text, text_test = (set(part.select_dtypes("category")) for part in (X, X_test))
    if set(X_test) != set(X) or text_test != text:
        raise ValueError(f"training and test file of {name!r} have different columns")
    return X_test[X.columns].assign(**{one: X_test[one].cat.set_categories(X[one].cat.categories) for one in text})
