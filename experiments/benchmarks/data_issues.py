"""What else is wrong with data, beside cleanlab's Datalab: planted issues found, false alarms, seconds.

Each table is shuffled, freed of equal rows and cut to some rows; then one kind of issue at a time is planted into a
copy of it. Found: the share of the planted rows that are flagged as of that kind (of kinds that are about columns or
all rows, whether it was flagged at all). Right: the share of the flagged rows that were planted. The clean table itself
tells false alarms, of which some are true, as nobody knows all of a real table. Datalab gets standardised numbers,
categories as columns of 0 and 1, medians for missing values, and where groups are sought the same posteriors as we
have. Sets of the design half were looked at when tests and limits were made; those of the other half judge. One thread
each. Rows go to results/data_issues.csv.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import drop_rare_classes, is_pair_with_noise, list_names, list_several, load, load_several
from experiments.halves import DESIGN, JUDGING, find_half
from experiments.protocol import make_rng
from experiments.runner import measure, summarise_error, work_alone
from experiments.tables import TextTable
from untwist.audit import audit_labels, find_data_issues

#: Kinds that are planted, each with our word and with Datalab's for it, none where it looks for no such thing.
KINDS = {
    "exact copies": ("exact_duplicates", "near_duplicate"),
    "copies, other label": ("conflicting_duplicates", None),
    "leak": ("leak", None),
    "constant column": ("constant_column", None),
    "id column": ("id_column", None),
    "drift": ("drift", "non_iid"),
    "small class": ("small_class", "class_imbalance"),
    "failing group": ("failing_group", "underperforming_group"),
}
CLEAN = "clean"
#: Kinds that are about rows; of the others it counts whether anything was flagged.
OF_ROWS = ("exact copies", "copies, other label", "failing group")
METHODS = ("untwist", "Datalab")
#: The share of the rows that is planted.
SHARE = 0.02
#: Rows of the smaller class that are left.
FEW = 5
#: Rows of a class, at least.
LEAST_CLASS = 30
#: Rows of a table, at least.
LEAST_ROWS = 400


@dataclass(frozen=True)
class IssueRow:
    """What a method made of one planted kind, or of one kind in a clean table."""

    data: str
    half: str
    planted: str
    kind: str
    method: str
    seed: int
    rows: int
    found: float
    right: float
    flagged: float
    seconds: float
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What was planted into which table, and who looked for what."""
        return self.data, self.planted, self.kind, self.method, self.seed


@dataclass(frozen=True)
class Planted:
    """A table with one kind of issue, and the rows that have it."""

    X: Any
    y: Any
    rows: Any
    sources: Any


def prepare(name: str, folder: str | None, most: int, seed: int) -> tuple[Any, Any]:
    """Load a table as a frame, shuffled, without equal rows, of so many rows at most."""
    import pandas as pd

    of_two = name in list_names(folder)
    table = load(name, folder) if of_two else drop_rare_classes(load_several(name, folder), LEAST_CLASS)[0]
    X = pd.DataFrame(table.X).rename(columns=str)
    y = np.asarray(table.y)
    kept = ~X.duplicated().to_numpy()
    rows = make_rng("issues", name, seed).permutation(np.flatnonzero(kept))[:most]
    return X.iloc[rows].reset_index(drop=True), y[rows]


def is_numeric(column: Any) -> bool:
    """Tell whether a column holds numbers with many values."""
    return column.dtype.kind in "iuf" and column.nunique() > 20


def plant(kind: str, X: Any, y: Any, rng: Any) -> Planted | None:
    """Plant a kind of issue into a copy of a table; None where the table cannot have it."""
    import pandas as pd

    n = len(y)
    none = np.zeros(0, dtype=int)
    some = rng.choice(n, max(10, round(SHARE * n)), replace=False)
    numeric = [name for name in X if is_numeric(X[name])]
    X = X.copy()
    for name in numeric:
        X[name] = X[name].astype(float)
    if kind == "leak":
        return Planted(X.assign(leak=y + 0.01 * rng.normal(size=n)), y, none, none)
    if kind == "constant column":
        return Planted(X.assign(constant=1.0), y, none, none)
    if kind == "id column":
        return Planted(X.assign(number=10_000.0 + rng.permutation(n)), y, none, none)
    if kind == "small class":
        least = np.argmin(np.bincount(y))
        left = np.sort(np.concatenate([np.flatnonzero(y != least), rng.permutation(np.flatnonzero(y == least))[:FEW]]))
        return Planted(X.iloc[left].reset_index(drop=True), y[left], np.flatnonzero(y[left] == least), none)
    if kind == "failing group":
        branch = rng.integers(0, 8, n)
        inside = np.flatnonzero(branch == 3)
        y = y.copy()
        y[inside] = y[rng.permutation(n)[: len(inside)]]
        names = pd.Categorical([f"branch {one}" for one in branch])
        return Planted(X.assign(branch=names), y, inside, none)
    if kind == "drift":
        column = max(X, key=lambda name: X[name].nunique())
        values = X[column] if is_numeric(X[column]) else X[column].astype("category").cat.codes
        order = np.argsort(values.rank().to_numpy() / n + rng.normal(size=n), kind="stable")
        return Planted(X.iloc[order].reset_index(drop=True), y[order], none, none)
    copies = X.iloc[some].reset_index(drop=True)
    labels = y[some].copy()
    if kind == "copies, other label":
        labels = (labels + rng.integers(1, y.max() + 1, len(labels))) % (y.max() + 1)
    joined, given = pd.concat([X, copies], ignore_index=True), np.concatenate([y, labels])
    order = rng.permutation(len(given))
    place = np.argsort(order)
    return Planted(joined.iloc[order].reset_index(drop=True), given[order], place[n:], place[some])


def spread(X: Any) -> Any:
    """Make of a table what Datalab takes: standardised numbers, a column of 0 and 1 for each category."""
    import pandas as pd
    from sklearn.preprocessing import StandardScaler

    text = [name for name in X if X[name].dtype.kind not in "iufb"]
    numbers = X.drop(columns=text).astype(float)
    numbers = numbers.fillna(numbers.median()).fillna(0.0)
    scaled = StandardScaler().fit_transform(numbers) if numbers.shape[1] else np.zeros((len(X), 0))
    dummies = pd.get_dummies(X[text].astype(str)).to_numpy(dtype=float) if text else np.zeros((len(X), 0))
    return np.hstack([scaled, dummies])


def ask_untwist(planted: Planted, audit: Any) -> tuple[dict[str, Any], float]:
    """Return the rows that we flag by kind, None of a kind without rows; and seconds."""
    start = time.perf_counter()
    issues = find_data_issues(planted.X, planted.y) if audit is None else audit.find_issues()
    seconds = time.perf_counter() - start
    flagged: dict[str, Any] = {}
    for one in issues:
        before = flagged.get(one.kind, np.zeros(0, dtype=int))
        flagged[one.kind] = np.union1d(before, one.rows)
    return flagged, seconds


def ask_datalab(planted: Planted, audit: Any) -> tuple[dict[str, Any], float]:
    """Return the rows that Datalab flags by kind, and seconds."""
    from cleanlab import Datalab

    features = spread(planted.X)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        start = time.perf_counter()
        lab = Datalab({"label": planted.y}, label_name="label", task="classification")
        types: dict[str, Any] = {name: {} for name in ("near_duplicate", "non_iid", "class_imbalance")}
        if audit is not None:
            types["underperforming_group"] = {}
        lab.find_issues(pred_probs=None if audit is None else audit.posterior, features=features, issue_types=types)
        seconds = time.perf_counter() - start
    flagged = {}
    summary = lab.get_issue_summary().set_index("issue_type")["num_issues"]
    for name in summary.index[summary > 0]:
        flagged[name] = np.flatnonzero(lab.get_issues(name)[f"is_{name}_issue"].to_numpy())
    return flagged, seconds


def judge(job: tuple[str, str, str, int, int, str | None]) -> list[IssueRow]:
    """Plant a kind of issue into a table, and ask both."""
    name, half, kind, most, seed, folder = job
    with work_alone():
        try:
            return _judge(name, half, kind, most, seed, folder)
        except Exception as error:  # A table that one of them cannot take is a row of its own.
            nan = float("nan")
            told = summarise_error(error)
            return [IssueRow(name, half, kind, kind, METHODS[0], seed, 0, nan, nan, nan, nan, told)]


def _judge(name: str, half: str, kind: str, most: int, seed: int, folder: str | None) -> list[IssueRow]:
    X, y = prepare(name, folder, most, seed)
    rng = make_rng("plant", name, kind, seed)
    planted = Planted(X, y, None, None) if kind == CLEAN else plant(kind, X, y, rng)
    nan = float("nan")
    if planted is None:
        return [IssueRow(name, half, kind, kind, method, seed, len(y), nan, nan, nan, nan) for method in METHODS]
    audit = None
    if kind in (CLEAN, "failing group"):
        audit = audit_labels(planted.X, planted.y, n_jobs=1, random_state=seed)
    rows = []
    for position, (method, ask) in enumerate(zip(METHODS, (ask_untwist, ask_datalab), strict=True)):
        flagged, seconds = ask(planted, audit)
        for one in KINDS if kind == CLEAN else [kind]:
            word = KINDS[one][position]
            if word is None:
                rows.append(IssueRow(name, half, kind, one, method, seed, len(planted.y), nan, nan, nan, seconds))
                continue
            here = flagged.get(word)
            n_flagged = 0.0 if here is None else len(here) / len(planted.y) if one in OF_ROWS else 1.0
            found, right = nan, nan
            if kind != CLEAN and one in OF_ROWS:
                here = np.zeros(0, dtype=int) if here is None else here
                found = float(np.isin(planted.rows, here).mean())
                truly = np.union1d(planted.rows, planted.sources)
                right = float(np.isin(here, truly).mean()) if len(here) else nan
            elif kind != CLEAN:
                found = float(here is not None)
            rows.append(IssueRow(name, half, kind, one, method, seed, len(planted.y), found, right, n_flagged, seconds))
    return rows


def make_tables(rows: list[IssueRow]) -> list[TextTable]:
    """Average over the sets of each half."""

    def average(values: list[float]) -> str:
        known = [one for one in values if not np.isnan(one)]
        return f"{np.mean(known):.3f}" if known else "-"

    tables = []
    for half in (DESIGN, JUDGING):
        here = [row for row in rows if row.half == half and not row.error]
        lines = []
        for kind in KINDS:
            cells = []
            for method in METHODS:
                mine = [row for row in here if row.method == method and row.kind == kind]
                with_it = [row for row in mine if row.planted == kind]
                clean = [row.flagged for row in mine if row.planted == CLEAN]
                cells.append(
                    [average([row.found for row in with_it]), average([row.right for row in with_it]), average(clean)]
                )
            n_sets = len({row.data for row in here if row.planted == kind and not np.isnan(row.seconds)})
            lines.append([kind, f"{n_sets}", *(one for pair in zip(*cells, strict=True) for one in pair)])
        seconds = [average([row.seconds for row in here if row.method == method]) for method in METHODS]
        header = ["", "sets", "found: untwist", "Datalab", "right: untwist", "Datalab", "in clean: untwist", "Datalab"]
        note = (
            "Found: planted rows that are flagged, or tables where the kind is. Right: flagged rows that were planted. "
            "In clean: rows flagged in the table as it is, or tables. - : not looked for. "
            f"Seconds: untwist {seconds[0]}, Datalab {seconds[1]}."
        )
        if here:
            tables.append(TextTable(f"The {half} half", note, header, lines))
    return tables


def main() -> None:
    """Plant all kinds into all tables and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files; without, the sets of scikit-learn")
    parser.add_argument("--rows", type=int, default=2000, help="rows of each table, at most")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--sets", nargs="*", help="these sets only")
    parser.add_argument("--out", type=Path, default=Path("results/data_issues.csv"))
    options = parser.parse_args()
    names = [name for name in list_names(options.data) if load(name, options.data).y is not None]
    names += [name for name in list_several(options.data) if not is_pair_with_noise(name, options.data)]
    half = find_half(names)
    chosen = [
        name
        for name in options.sets or names
        if options.sets or len(prepare(name, options.data, options.rows, 0)[1]) >= LEAST_ROWS
    ]
    jobs = [
        (name, half[name], planted, options.rows, seed, options.data)
        for name in chosen
        for planted in (CLEAN, *KINDS)
        for seed in range(options.seeds)
    ]
    wanted = {
        (job[0], job[2], kind, method, job[4]): job
        for job in jobs
        for kind in (KINDS if job[2] == CLEAN else [job[2]])
        for method in METHODS
    }
    rows = measure(wanted, judge, options.out, IssueRow, processes=options.jobs)
    for table in make_tables(rows):
        print(table)
    print(f"Rows: {options.out}")


if __name__ == "__main__":
    main()
