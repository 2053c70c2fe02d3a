"""Predict the labels of a table: ``untwist predict model.untwist new.csv``; CSV on standard output, or ``-o FILE``."""

from __future__ import annotations

import argparse
from pathlib import Path

from untwist.commands.columns import conformed
from untwist.commands.common import as_json, different, say, table_options
from untwist.commands.sheets import read, write
from untwist.files import load

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """A prediction and the probability of every class for each row."""
    parser = argparse.ArgumentParser(prog="untwist predict", description=__doc__.split(":")[0] + ".")
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `untwist train` wrote")
    table_options(parser, labelled=False)
    parser.add_argument("-o", "--output", type=Path, help="CSV or Parquet file (default: standard output, as CSV)")
    parser.add_argument("--with-input", action="store_true", help="the columns of the table too")
    options = parser.parse_args(arguments)
    different([options.model, options.table], [options.output])
    model = load(options.model)
    frame = read(options.table, options.separator, options.encoding).frame
    X, notes = conformed(frame, model)
    for note in notes:
        say(note)
    model.n_jobs = options.threads
    proba = model.predict_proba(X)
    columns = {"prediction": model.predict(X)}
    columns |= {f"P({label})": proba[:, k] for k, label in enumerate(model.classes_)}
    predictions = frame.copy() if options.with_input else frame[[]].copy()
    for name, values in columns.items():
        while name in predictions:
            name += "_"  # what was there stays
        predictions[name] = values
    if options.json:
        print(as_json(predictions.to_dict(orient="records")))
    if not options.json or options.output:
        write(predictions, options.output)
    if options.output:
        say(f"{len(frame)} predictions in {options.output}")
    return 0
