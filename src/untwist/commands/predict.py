"""Predict the labels of a table: ``untwist predict model.untwist new.csv``; CSV on standard output, or ``-o FILE``."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from untwist.commands.blocks import reads_in_blocks
from untwist.commands.new_rows import NewRows, ignore_strangers
from untwist.commands.sheets import open_writer
from untwist.commands.steps import encode_json, gather_hints, open_table
from untwist.data.memory import limit_memory
from untwist.files import load
from untwist.predicting import ModelPredictions
from untwist.progress import print_status


def main(options: argparse.Namespace) -> int:
    """Write a prediction and the probability of every class for each row.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    model = load(options.model)
    model.n_jobs = options.threads
    if options.json and reads_in_blocks(options):
        raise ValueError("--json needs the table in memory: leave it out, or add --no-blocks")
    sheet = open_table(options)
    with limit_memory(options.table):
        new = NewRows(model, sheet, gather_hints(options))
    count = 0
    with ExitStack() as stack:
        write = None if options.json and not options.output else open_writer(options.output, stack)
        for frame, beside in sheet.frames(with_input=options.with_input):
            # Writing is limited too: a text that many rows share is in memory once, and is written for each of them.
            with limit_memory(options.table):
                table = _add_predictions(model, new.conform(frame), beside)
                if options.json:
                    cells = table.astype(object).where(table.notna(), None)
                    print(encode_json(cells.to_dict(orient="records")))
                if write is not None:
                    write(table)
            count += len(table)
    for note in [*sheet.notes, *new.describe()]:
        print_status(note)
    if options.output:
        print_status(f"{count} predictions in {options.output}")
    return 0


def _add_predictions(model: ModelPredictions, X: Any, beside: Any) -> Any:
    """Add the predicted class and the probability of every class to other columns of the same rows."""
    with ignore_strangers():
        proba = model.predict_proba(X)
        columns = {"prediction": model.predict(X)}
    columns |= {f"P({label})": proba[:, k] for k, label in enumerate(model.classes_)}
    table = beside.copy()
    for name, values in columns.items():
        while name in table:
            name += "_"  # A column of the file keeps its name.
        table[name] = values
    return table
