"""Predict the labels of a table: ``untwist predict model.untwist new.csv``; CSV on standard output, or ``-o FILE``."""

from __future__ import annotations

import argparse
from pathlib import Path

from untwist.commands.blocks import add_blocks_option, add_predictions, predict_in_blocks, reads_in_blocks
from untwist.commands.columns import conform
from untwist.commands.sheets import read, refuse_unwritable, write
from untwist.commands.steps import add_table_options, encode_json, refuse_same_files
from untwist.files import load
from untwist.progress import print_status

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Write a prediction and the probability of every class for each row.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="untwist predict", description=__doc__.split(":")[0] + ".")
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `untwist train` wrote")
    add_table_options(parser, labelled=False)
    add_blocks_option(parser)
    parser.add_argument("-o", "--output", type=Path, help="CSV or Parquet file (default: standard output, as CSV)")
    parser.add_argument("--with-input", action="store_true", help="the columns of the table too")
    options = parser.parse_args(arguments)
    refuse_same_files([options.model, options.table], [options.output])
    refuse_unwritable(options.output)
    model = load(options.model)
    model.n_jobs = options.threads
    if reads_in_blocks(options):
        if options.json:
            raise ValueError("--json needs the table in memory: leave it out, or add --no-blocks")
        count, notes = predict_in_blocks(model, options.table, options.output, options.with_input)
        for note in notes:
            print_status(note)
        if options.output:
            print_status(f"{count} predictions in {options.output}")
        return 0
    sheet = read(options.table, options.separator, options.encoding, options.sheet)
    frame = sheet.frame
    X, notes = conform(frame, model)
    for note in [*sheet.notes, *notes]:
        print_status(note)
    table = add_predictions(model, X, frame if options.with_input else frame[[]])
    if options.json:
        print(encode_json(table.to_dict(orient="records")))
    if not options.json or options.output:
        write(table, options.output)
    if options.output:
        print_status(f"{len(frame)} predictions in {options.output}")
    return 0
