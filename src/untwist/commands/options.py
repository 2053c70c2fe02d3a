"""The options that several commands take, and files that exclude each other: the standard library is enough."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: The largest seed that all generators of random numbers take.
MOST_SEED = 2**32 - 1


def add_table_options(parser: argparse.ArgumentParser, *, labelled: bool) -> None:
    """Add the options that name the file and say how to read it.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a command.
    labelled : bool
        Whether the file has labels, so that options say which column they are in.
    """
    parser.add_argument(
        "table", type=Path, metavar="TABLE", help="CSV (may be compressed), .xlsx, .ods, Parquet or Arrow file"
    )
    if labelled:
        add_role_options(parser)
        add_hint_options(parser)
        parser.add_argument("--seed", type=_read_seed, default=0, help="of what is drawn at random (default 0)")
    add_file_options(parser)
    add_infinite_option(parser)
    parser.add_argument("--threads", type=_read_threads, help="at most (default: all cores)")
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")


def add_role_options(parser: Any, *, is_label_needed: bool = True) -> None:
    """Add the options that say what each column is for.

    Parameters
    ----------
    parser : argparse.ArgumentParser or group
        The parser of a command.
    is_label_needed : bool
        Whether the command cannot do without a label.
    """
    parser.add_argument("--label", required=is_label_needed, metavar="COLUMN", help="the column to predict")
    parser.add_argument("--source", metavar="COLUMN", help="who gave the label: annotator, branch, month; no feature")
    parser.add_argument("--item", metavar="COLUMN", help="what the label is of, where several sources labelled it")
    parser.add_argument("--groups", metavar="COLUMN", help="which rows belong together: patient, customer; no feature")
    parser.add_argument("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    parser.add_argument("--keep", nargs="+", default=[], metavar="COLUMN", help="columns to use though they look odd")
    if is_label_needed:  # To inspect a table takes no order.
        parser.add_argument(
            "--order",
            metavar="A,B,C",
            help="all labels, the lowest first, where they have an order: rows between neighbours are hard, not wrong",
        )
    parser.add_argument(
        "--label-as-is", action="store_true", help="labels that differ by case or blanks alone are different ones"
    )


def add_file_options(parser: Any) -> None:
    """Add the options that say how to open a file.

    Parameters
    ----------
    parser : argparse.ArgumentParser or group
        The parser of a command.
    """
    parser.add_argument("--separator", help="between cells (default: the likeliest of , ; | and tab)")
    parser.add_argument("--encoding", help="of the text (default: utf-8, or else the likeliest)")
    parser.add_argument("--sheet", metavar="NAME", help="of a spreadsheet (default: the first one)")


def add_hint_options(parser: Any) -> None:
    """Add the options that say how to read cells where a column does not decide it.

    Parameters
    ----------
    parser : argparse.ArgumentParser or group
        The parser of a command.
    """
    parser.add_argument("--decimal", choices=["point", "comma"], help="before the fraction of numbers (default: found)")
    parser.add_argument("--dates", choices=["day-first", "month-first"], help="how dates are written (default: found)")


def add_infinite_option(parser: Any) -> None:
    """Add the option that says what becomes of infinite numbers.

    Parameters
    ----------
    parser : argparse.ArgumentParser or group
        The parser of a command.
    """
    parser.add_argument("--infinite-as", choices=["missing"], help="what infinite numbers are (default: refused)")


def add_reviewed_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that learn from what a person has decided.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a command.
    """
    parser.add_argument(
        "--reviewed", type=Path, metavar="FILE", help="decisions about labels: those rows are known, and teach the rest"
    )


def add_blocks_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says whether to read in blocks.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a command.
    """
    parser.add_argument(
        "--blocks",
        action=argparse.BooleanOptionalAction,
        help="read a Parquet file in blocks of rows, with the same result in less memory (default: where its numbers "
        "would take more than 2 GB or a quarter of the memory)",
    )


def add_audit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is audited, and how many rows are suspects.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a command.
    """
    add_table_options(parser, labelled=True)
    parser.add_argument(
        "--budget", type=read_count, help="this many suspects (default: as many as labels are expected to be wrong)"
    )
    parser.add_argument(
        "--chance",
        action="store_true",
        help="labels are outcomes that chance has a part in: none is called wrong, some are surprising",
    )
    parser.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="judge by these: a row per row of the table, a column per class, of any model that has not seen the row",
    )
    parser.add_argument(
        "--seek-sources",
        action="store_true",
        help="look for a column that looks like who gave the labels: trains again without it",
    )
    add_reviewed_option(parser)


def read_count(text: str) -> int:
    """Read a number of things, at least 1.

    Parameters
    ----------
    text : str
        What was typed.

    Returns
    -------
    int
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def _read_threads(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError("must be a whole number other than 0 (-1: all cores, -2: all but one)")
    return int(text)


def _read_seed(text: str) -> int:
    if not re.fullmatch(r"\d+", text, re.ASCII) or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {MOST_SEED}")
    return int(text)


def refuse_same_files(inputs: Sequence[Path], outputs: Sequence[Path | None]) -> None:
    """Raise a ValueError where a command would write over what it reads, twice to one file, or to no file at all.

    Parameters
    ----------
    inputs : sequence of Path
        The files to read.
    outputs : sequence of Path or None
        The files to write; None where one was not asked for.
    """
    seen = {os.path.realpath(path) for path in inputs}
    for output in (one for one in outputs if one is not None):
        if os.path.realpath(output) in seen:
            raise ValueError(f"{output} is read or written already: choose another name")
        seen.add(os.path.realpath(output))
        if not output.parent.is_dir():
            raise ValueError(f"there is no folder {output.parent} to write {output.name} to")
        if output.is_dir():
            raise ValueError(f"{output} is a folder, not a file")
