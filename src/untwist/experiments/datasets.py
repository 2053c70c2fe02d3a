"""Two-class tables by name: some come with scikit-learn, the others as CSV files from a local folder.

A file has a header and a column `label` of 0 and 1; `label_noisy` beside it holds real noisy labels; text columns are
categories; an empty cell is a missing value. A pair of files is one table whose test part is fixed: NAME_train.csv and
NAME_test.csv, or NAME_train_noisy.csv, whose `label` is the noisy one, and NAME_test_clean.csv.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits

__all__ = ["FOLDER", "Labels", "Table", "load", "names"]

FOLDER = "UNTWIST_DATA"  # the environment variable that names the folder
PAIRS = {"_train.csv": "_test.csv", "_train_noisy.csv": "_test_clean.csv"}

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Features with labels 0 and 1; X is an array, or a pandas DataFrame where it was read from a file."""

    name: str
    X: Any
    y: Labels | None  # the clean labels, where they are known
    y_noisy: Labels | None = None  # real noisy labels of the same rows
    X_test: Any = None  # a test part with clean labels, where it is fixed
    y_test: Labels | None = None


def _digits(positive: Callable[[Labels], Any]) -> tuple[Any, Labels]:
    X, digit = load_digits(return_X_y=True)
    return X, positive(digit)


BUILT_IN: dict[str, Callable[[], tuple[Any, Any]]] = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits_odd": lambda: _digits(lambda digit: digit % 2),
    "digits_large": lambda: _digits(lambda digit: digit >= 5),
}


def names(folder: str | Path | None = None) -> list[str]:
    """What `load` can load; without a folder (here or in the environment), what comes with scikit-learn.

    >>> names()[:2]
    ['cancer', 'digits_large']
    """
    there = _folder(folder)
    files = [file.name for file in there.glob("*.csv")] if there else []
    for train, test in PAIRS.items():
        pairs = [file for file in files if file.endswith(train) and file.removesuffix(train) + test in files]
        files = [file for file in files if not file.endswith((train, test))]
        files += [file.removesuffix(train) + ".csv" for file in pairs]
    return sorted(BUILT_IN) + sorted({file.removesuffix(".csv") for file in files} - set(BUILT_IN))


def load(name: str, folder: str | Path | None = None) -> Table:
    """The table of that name, from scikit-learn or from CSV files in `folder`.

    >>> load("cancer").X.shape
    (569, 30)
    """
    if name in BUILT_IN:
        X, y = BUILT_IN[name]()
        return Table(name, X, np.asarray(y, dtype=np.int64))
    there = _folder(folder)
    if there is None:
        raise ValueError(f"data set {name!r} needs a folder of CSV files: name it, or set {FOLDER}")
    if (there / f"{name}.csv").is_file():
        return Table(name, *_read(there / f"{name}.csv"))
    for train, test in PAIRS.items():
        if (there / (name + train)).is_file() and (there / (name + test)).is_file():
            X, y, y_noisy = _read(there / (name + train))
            X_test, y_test, _ = _read(there / (name + test))
            y, y_noisy = (None, y) if "noisy" in train else (y, y_noisy)
            return Table(name, X, y, y_noisy, _alike(X_test, X, name), y_test)
    raise ValueError(f"no data set {name!r} in {there}: it has {', '.join(names(there))}")


def _folder(folder: str | Path | None) -> Path | None:
    chosen = folder or os.environ.get(FOLDER)
    if chosen and not Path(chosen).is_dir():
        raise ValueError(f"data folder {chosen} does not exist")
    return Path(chosen) if chosen else None


def _read(file: Path) -> tuple[Any, Labels, Labels | None]:
    """Features, labels, and noisy labels if there are any."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ValueError(f'{file} needs pandas to be read: pip install "untwist[arena]"') from error
    try:
        frame = pd.read_csv(file)
    except ValueError as error:  # pandas' own errors of parsing are ValueErrors
        raise ValueError(f"{file} is not a CSV table ({str(error).strip()})") from error
    labels = {}
    for column in ("label", "label_noisy"):
        if column in frame:
            if not frame[column].isin([0, 1]).all():
                raise ValueError(f"{file}: {column} must be 0 or 1 in every row")
            labels[column] = frame.pop(column).to_numpy(dtype=np.int64)
    if "label" not in labels:
        raise ValueError(f"{file} has no column 'label'")
    text = frame.select_dtypes(exclude=["number", "bool"])
    kinds = dict.fromkeys(text, "category") | dict.fromkeys(frame.select_dtypes("bool"), "int64")
    return frame.astype(kinds), labels["label"], labels.get("label_noisy")


def _alike(X_test: Any, X: Any, name: str) -> Any:
    """The test columns with the order and the categories of the training columns."""
    text, text_test = (set(part.select_dtypes("category")) for part in (X, X_test))
    if set(X_test) != set(X) or text_test != text:
        raise ValueError(f"training and test file of {name!r} have different columns")
    return X_test[X.columns].assign(**{one: X_test[one].cat.set_categories(X[one].cat.categories) for one in text})
