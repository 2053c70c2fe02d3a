"""Which columns make a prediction: ``untwist explain model.untwist data.csv`` for all rows, ``--line 17`` for one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.classifier import PILBoostClassifier
from untwist.commands.columns import conform, ignore_strangers
from untwist.commands.parser import CommandParser
from untwist.commands.sheets import Sheet, read
from untwist.commands.steps import add_table_options, encode_json, gather_hints, print_result
from untwist.data.memory import limit_memory
from untwist.explain import Contributions, explain
from untwist.files import load
from untwist.progress import print_status

__all__ = ["main"]

#: This many rows, drawn at random, speak for the whole table.
MOST_ROWS = 2000
#: Characters of the longest bar.
BAR_WIDTH = 30


def main(arguments: list[str] | None = None) -> int:
    """Print contributions to the score, in log-odds or the like: exact Shapley values of the trees.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status.
    """
    parser = CommandParser(prog="untwist explain", description=__doc__.split(":")[0] + ".")
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `untwist train` wrote")
    add_table_options(parser, labelled=False)
    parser.add_argument(
        "--line", type=int, nargs="+", help="lines of the file, the header being line 1 (Parquet: rows, from 1)"
    )
    parser.add_argument("--top", type=int, default=10, help="columns to show (default 10)")
    options = parser.parse_args(arguments)
    model = load(options.model)
    model.n_jobs = options.threads
    sheet = read(options.table, options.separator, options.encoding, options.sheet)
    with limit_memory(options.table):
        X, notes = conform(sheet.frame, model, gather_hints(options), sheet.name_row)
    for note in [*sheet.notes, *notes]:
        print_status(note)
    sample = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    rows = sample
    if options.line is not None:
        row_of_line = {line: row for row, line in enumerate(sheet.lines.tolist())}
        if strange := [line for line in options.line if line not in row_of_line]:
            parser.error(f"no row begins in {sheet.row_word} {strange[0]} of {options.table.name}")
        rows = np.array([row_of_line[line] for line in options.line])
    with ignore_strangers():
        contributions = explain(model, X.iloc[rows], background=X.iloc[sample])
        proba = model.predict_proba(X.iloc[rows])
    if options.line is None:
        _print_averages(contributions, proba, options)
        return 0
    explained = _describe_lines(model, contributions, proba, rows, options)
    if options.json:
        print(encode_json(explained))
    else:
        _print_lines(sheet, explained)
    return 0


def _choose_class(values: Array, proba: Array) -> Array:
    """Return contributions to one score for each row: of several classes, to that of the predicted one."""
    if values.ndim == 2:
        return values
    predicted = proba.argmax(axis=1)
    return np.take_along_axis(values, predicted[:, None, None], axis=2)[:, :, 0]


def _describe_lines(
    model: PILBoostClassifier,
    contributions: Contributions,
    proba: Array,
    rows: NDArray[np.intp],
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Return for each line what is predicted, and the columns that contribute most to it."""
    values = _choose_class(contributions.values, proba)
    if proba.shape[1] == 2:  # What speaks for the prediction is to be positive, whichever class it is.
        values = np.where(proba.argmax(axis=1) == 0, -1.0, 1.0)[:, None] * values
    described = []
    for i, line in enumerate(options.line):
        predicted = int(proba[i].argmax())
        largest = np.argsort(-np.abs(values[i]), kind="stable")[: options.top]
        columns = [
            {
                "name": str(contributions.feature_names[column]),
                "value": _format_cell(contributions.shown[i][column]),
                "contribution": float(values[i, column]),
            }
            for column in largest
        ]
        described.append(
            {
                "line": line,
                "row": int(rows[i]),
                "prediction": model.classes_.tolist()[predicted],
                "probability": float(proba[i, predicted]),
                "columns": columns,
            }
        )
    return described


def _print_lines(sheet: Sheet, described: list[dict[str, Any]]) -> None:
    for one in described:
        print_result(f"{sheet.row_word} {one['line']}: {one['prediction']}, {one['probability']:.1%}")
        for column in one["columns"]:
            print_result(f"  {column['contribution']:+7.3f}  {column['name']} is {column['value']}")


def _print_averages(contributions: Contributions, proba: Array, options: argparse.Namespace) -> None:
    """Print how much each column moves the score, on average over rows."""
    means = np.abs(_choose_class(contributions.values, proba)).mean(axis=0)
    largest = np.argsort(-means, kind="stable")[: options.top]
    mean_of_column = {str(contributions.feature_names[i]): float(means[i]) for i in largest}
    if options.json:
        print(encode_json({"rows": len(proba), "mean_contribution": mean_of_column}))
        return
    print(f"What moves the score of {len(proba)} rows, on average:")
    width = max((len(name) for name in mean_of_column), default=0)
    longest = max(means.max(), 1e-300)
    for name, mean in mean_of_column.items():
        bar = "█" * round(BAR_WIDTH * mean / longest)
        print_result(f"  {name:<{width}}  {mean:6.3f}  {bar}")


def _format_cell(cell: Any) -> Any:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "missing"
    return f"{cell:g}" if isinstance(cell, float) else cell
