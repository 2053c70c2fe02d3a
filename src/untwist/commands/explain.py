"""Which columns make a prediction: ``untwist explain model.untwist data.csv`` for all rows, ``--line 17`` for one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.commands.columns import conform
from untwist.commands.sheets import read
from untwist.commands.steps import add_table_options, encode_json, say, tell
from untwist.explain import explain
from untwist.files import load

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
        say(note)
    sample = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    rows = sample
    if options.line is not None:
        found_at = {line: row for row, line in enumerate(sheet.lines.tolist())}
        if strange := [line for line in options.line if line not in found_at]:
            parser.error(f"no row begins in {sheet.place} {strange[0]} of {options.table.name}")
        rows = np.array([found_at[line] for line in options.line])
    found = explain(model, X.iloc[rows], background=X.iloc[sample])
    names = np.array(found.feature_names)
    proba = model.predict_proba(X.iloc[rows])
    values = found.values if found.values.ndim == 2 else _pick_predicted(found.values, proba)
    if options.line is None:
        means = np.abs(values).mean(axis=0)
        order = np.argsort(-means, kind="stable")[: options.top]
        shares = {str(names[i]): float(means[i]) for i in order}
        if options.json:
            print(encode_json({"rows": len(rows), "mean_contribution": shares}))
            return 0
        print(f"What moves the score of {len(rows)} rows, on average:")
        width = max((len(name) for name in shares), default=0)
        for name, mean in shares.items():
            tell(f"  {name:<{width}}  {mean:6.3f}  {'█' * round(30 * mean / max(means.max(), 1e-300))}")
        return 0
    told = [_explain_row(int(line), row, names, values[i], found.shown[i], proba[i], model, options.top)
            for i, (line, row) in enumerate(zip(options.line, rows, strict=True))]  # fmt: skip
    if options.json:
        print(encode_json(told))
        return 0
    for one in told:
        tell(f"{sheet.place} {one['line']}: {one['prediction']}, {one['probability']:.1%}")
        for column in one["columns"]:
            tell(f"  {column['contribution']:+7.3f}  {column['name']} is {column['value']}")
    return 0


def _pick_predicted(values: Any, proba: Any) -> Any:
    """Of several classes the contributions to the predicted one."""
    return np.take_along_axis(values, proba.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]


def _explain_row(
    line: int, row: Any, names: Any, values: Any, shown: Any, proba: Any, model: Any, top: int
) -> dict[str, Any]:
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    place = int(np.argmax(proba))
    sign = -1.0 if len(proba) == 2 and place == 0 else 1.0  # What speaks for the prediction is positive.
    return {
        "line": line,
        "row": int(row),
        "prediction": model.classes_.tolist()[place],
        "probability": float(proba[place]),
        "columns": [
            {"name": str(names[i]), "value": _format_value(shown[i]), "contribution": float(sign * values[i])}
            for i in order
        ],
    }


def _format_value(one: Any) -> Any:
    missing = one is None or (isinstance(one, float) and np.isnan(one))
    return "missing" if missing else f"{one:g}" if isinstance(one, float) else one
