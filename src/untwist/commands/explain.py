"""Which columns make a prediction: ``untwist explain model.untwist data.csv`` for all rows, ``--line 17`` for one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.commands.columns import conform
from untwist.commands.sheets import read
from untwist.commands.steps import add_table_options, encode_json, print_result
from untwist.explain import explain
from untwist.files import load
from untwist.progress import print_status

__all__ = ["main"]

#: So many rows speak for the whole table.
MOST_ROWS = 2000


def main(arguments: list[str] | None = None) -> int:
    """Tell contributions to the score, in log-odds or the like: exact Shapley values of the trees."""
    parser = argparse.ArgumentParser(prog="untwist explain", description=__doc__.split(":")[0] + ".")
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `untwist train` wrote")
    add_table_options(parser, labelled=False)
    parser.add_argument(
        "--line", type=int, nargs="+", help="lines of the file, the header being line 1 (Parquet: rows, from 1)"
    )
    parser.add_argument("--top", type=int, default=10, help="columns to show (default 10)")
    options = parser.parse_args(arguments)
    model = load(options.model)
    model.n_jobs = options.threads
    sheet = read(options.table, options.separator, options.encoding)
    X, notes = conform(sheet.frame, model)
    for note in notes:
        print_status(note)
    sample = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    if options.line is None:
        rows = sample
    else:
        row_of_line = {line: row for row, line in enumerate(sheet.lines.tolist())}
        if strange := [line for line in options.line if line not in row_of_line]:
            parser.error(f"no row begins in {sheet.place} {strange[0]} of {options.table.name}")
        rows = np.array([row_of_line[line] for line in options.line])
    contributions = explain(model, X.iloc[rows], background=X.iloc[sample])
    proba = model.predict_proba(X.iloc[rows])
    values = contributions.values
    if values.ndim == 3:  # Of several classes, the contributions to the predicted one are told.
        values = np.take_along_axis(values, proba.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]
    names = [str(name) for name in contributions.feature_names]
    if options.line is None:
        _tell_averages(names, values, options)
        return 0
    explained = []
    for i, line in enumerate(options.line):
        place = int(np.argmax(proba[i]))
        against = len(proba[i]) == 2 and place == 0  # What speaks for the prediction is positive.
        explained.append(
            {
                "line": int(line),
                "row": int(rows[i]),
                "prediction": model.classes_.tolist()[place],
                "probability": float(proba[i, place]),
                "columns": _list_columns(
                    names, -values[i] if against else values[i], contributions.shown[i], options.top
                ),
            }
        )
    if options.json:
        print(encode_json(explained))
        return 0
    for row in explained:
        print_result(f"{sheet.place} {row['line']}: {row['prediction']}, {row['probability']:.1%}")
        for column in row["columns"]:
            print_result(f"  {column['contribution']:+7.3f}  {column['name']} is {column['value']}")
    return 0


def _tell_averages(names: list[str], values: Any, options: argparse.Namespace) -> None:
    """Tell how much each column moves the score, on average over rows."""
    means = np.abs(values).mean(axis=0)
    order = np.argsort(-means, kind="stable")[: options.top]
    shares = {names[i]: float(means[i]) for i in order}
    if options.json:
        print(encode_json({"rows": len(values), "mean_contribution": shares}))
        return
    print(f"What moves the score of {len(values)} rows, on average:")
    width = max((len(name) for name in shares), default=0)
    for name, mean in shares.items():
        bar = "█" * round(30 * mean / max(means.max(), 1e-300))
        print_result(f"  {name:<{width}}  {mean:6.3f}  {bar}")


def _list_columns(names: list[str], values: Any, cells: Any, top: int) -> list[dict[str, Any]]:
    """The columns that contribute most to the score of a row."""
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return [{"name": names[i], "value": _format_cell(cells[i]), "contribution": float(values[i])} for i in order]


def _format_cell(cell: Any) -> Any:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "missing"
    return f"{cell:g}" if isinstance(cell, float) else cell
