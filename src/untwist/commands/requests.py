"""What each command is asked for: its options read, and refused what cannot be done, before anything large is imported.

A typing error or a file that is not there is told at once, as nothing here imports more than the standard library.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from untwist.commands.kinds import (
    ARROW,
    COMPRESSED,
    WORKBOOKS,
    find_kind,
    name_undo,
    refuse_absent,
    refuse_no_table,
    refuse_unwritable,
)
from untwist.commands.options import (
    add_audit_options,
    add_blocks_option,
    add_file_options,
    add_hint_options,
    add_infinite_option,
    add_reviewed_option,
    add_role_options,
    add_table_options,
    read_count,
    refuse_same_files,
)
from untwist.commands.parser import CommandParser

#: What takes the arguments of a command line, by default those of this process, and gives the options of a command.
Request = Callable[[list[str] | None], argparse.Namespace]


def _read_train(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandParser(prog="untwist train", description="Train a model on a table whose labels may be wrong.")
    add_table_options(parser, labelled=True)
    add_blocks_option(parser)
    add_reviewed_option(parser)
    parser.add_argument("-o", "--output", type=Path, default=Path("model.untwist"), help="(default model.untwist)")
    parser.add_argument("--believe-labels", action="store_true", help="correct nothing: rows are hard, not mislabelled")
    options = parser.parse_args(arguments)
    if options.believe_labels and options.source:
        parser.error("--believe-labels and --source exclude each other: sources are told apart by their wrong labels")
    if options.reviewed and (options.believe_labels or options.source):
        parser.error("--reviewed goes with neither --source nor --believe-labels: untwist apply makes a table of it")
    if options.reviewed and options.blocks:
        parser.error("--reviewed is for tables that are read as a whole: apply the decisions first (untwist apply)")
    refuse_same_files([options.table, *filter(None, [options.reviewed])], [options.output])
    _refuse_table(options)
    refuse_absent(options.reviewed)
    return options


def _read_predict(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandParser(prog="untwist predict", description="Predict the labels of a table.")
    _add_model(parser)
    add_table_options(parser, labelled=False)
    add_blocks_option(parser)
    parser.add_argument("-o", "--output", type=Path, help="CSV or Parquet file (default: standard output, as CSV)")
    parser.add_argument("--with-input", action="store_true", help="the columns of the table too")
    options = parser.parse_args(arguments)
    refuse_same_files([options.model, options.table], [options.output])
    refuse_unwritable(options.output)
    refuse_absent(options.model)
    _refuse_table(options)
    return options


def _read_audit(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandParser(prog="untwist audit", description="Which labels of a table are wrong?")
    add_audit_options(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a report to open in a browser")
    parser.add_argument("--peers", action="store_true", help="XGBoost and LightGBM in the report too")
    parser.add_argument("--suspects", type=Path, metavar="FILE", help="the suspect rows, the worst first")
    parser.add_argument(
        "--corrected",
        type=Path,
        metavar="FILE",
        help="a copy of the table, labels that are likelier wrong than right replaced, where noise was found between "
        "their classes; of several classes refused where one has under 50 rows; FILE.undo takes it back (untwist apply "
        "--undo)",
    )
    parser.add_argument("--force", action="store_true", help="write --corrected where it is refused")
    options = parser.parse_args(arguments)
    undo = options.corrected and name_undo(options.corrected)
    refuse_same_files(_list_audited(parser, options), [options.output, options.suspects, options.corrected, undo])
    if options.force and not options.corrected:
        parser.error("--force is for --corrected FILE")
    if options.corrected and not _are_alike(options.table, options.corrected):
        parser.error(f"--corrected must be a file of the same kind as {options.table.name}")
    if options.probabilities and options.peers:
        parser.error("--peers are compared on the folds of our own model: leave out --peers, or --probabilities")
    refuse_unwritable(options.suspects)
    refuse_unwritable(options.corrected)
    _refuse_audited(options)
    return options


def _list_audited(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Path]:
    """List the files that an audit reads; options that exclude each other are an error of the parser."""
    if options.reviewed and options.source:
        parser.error("--reviewed and --source exclude each other: untwist apply makes a table of the decisions")
    if options.reviewed and options.probabilities:
        parser.error("--reviewed and --probabilities exclude each other: reviewed rows teach a model of ours")
    if options.chance and (options.source or options.reviewed or getattr(options, "corrected", None)):
        parser.error("--chance goes without --source, --reviewed and --corrected: no outcome is wrong")
    if options.chance and options.seek_sources:
        parser.error("--chance and --seek-sources exclude each other: no source gets an outcome wrong")
    if options.seek_sources and (options.source or options.groups or options.probabilities):
        parser.error(
            "--seek-sources is for rows that stand alone, judged by a model of ours: leave out --source, --groups and "
            "--probabilities, or --seek-sources"
        )
    return [options.table, *filter(None, [options.reviewed, options.probabilities])]


def _are_alike(one: Path, other: Path) -> bool:
    """Whether both are files of the same kind; all kinds of text are alike."""
    kinds = {find_kind(one), find_kind(other)}
    return len(kinds) == 1 or not kinds & {".parquet", *ARROW}


def _refuse_audited(options: argparse.Namespace) -> None:
    """Raise a ValueError where a file that an audit reads is not there, or no table."""
    _refuse_table(options)
    refuse_absent(options.reviewed)
    if options.probabilities is not None:
        refuse_no_table(options.probabilities)


def _read_review(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandParser(prog="untwist review", description="Decide about suspect labels on a page of this machine.")
    add_audit_options(parser)
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="file that decisions are added to; may exist (default: beside the table, with .decisions.csv)",
    )
    parser.add_argument("--port", type=int, default=0, help="of the server on 127.0.0.1 (default: any that is free)")
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="print the address, and open no browser"
    )
    options = parser.parse_args(arguments)
    if not 0 <= options.port < 65536:
        parser.error("--port must be from 0 to 65535")
    if options.decisions is None:
        options.decisions = options.table.with_name(f"{find_stem(options.table)}.decisions.csv")
    refuse_same_files(_list_audited(parser, options), [options.decisions])
    _refuse_audited(options)
    return options


def find_stem(path: Path) -> str:
    """Find the name of a file without what says of which kind it is.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
    """
    name = path.name
    if path.suffix.lower() in COMPRESSED:
        name = name[: -len(path.suffix)]
    return name[: len(name) - len(find_kind(path))] or name


def _read_apply(arguments: list[str] | None) -> argparse.Namespace:
    about = "Change the labels that a person decided on."
    parser = CommandParser(prog="untwist apply", description=about)
    parser.add_argument(
        "decisions",
        type=Path,
        metavar="DECISIONS",
        help="the file that untwist review wrote; with --undo the one beside TABLE, with .undo after its name",
    )
    parser.add_argument(
        "table", type=Path, metavar="TABLE", help="the file that was reviewed, as it was then; with --undo its copy"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help="the copy with other labels")
    parser.add_argument(
        "--undo",
        action="store_true",
        help="take back what this command, or audit --corrected, has changed in TABLE",
    )
    add_file_options(parser)
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    options = parser.parse_args(arguments)
    outputs = [options.output] if options.undo else [options.output, name_undo(options.output)]
    refuse_same_files([options.decisions, options.table], outputs)
    refuse_unwritable(options.output)
    binary = {".parquet", *ARROW}
    kinds = find_kind(options.table), find_kind(options.output)
    if kinds[0] in WORKBOOKS:
        if kinds[1] in binary:
            parser.error("the copy of a spreadsheet must be a CSV file: single cells of a workbook cannot be changed")
    elif kinds[0] != kinds[1] and set(kinds) & binary:
        parser.error(f"the copy must be a file of the same kind as {options.table.name}")
    refuse_absent(options.decisions)
    _refuse_table(options)
    return options


def _read_explain(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandParser(prog="untwist explain", description="Which columns make a prediction.")
    _add_model(parser)
    add_table_options(parser, labelled=False)
    parser.add_argument(
        "--line", type=int, nargs="+", help="lines of the file, the header being line 1 (Parquet: rows, from 1)"
    )
    parser.add_argument("--top", type=read_count, default=10, help="columns to show (default 10)")
    options = parser.parse_args(arguments)
    refuse_absent(options.model)
    _refuse_table(options)
    return options


def _read_inspect(arguments: list[str] | None) -> argparse.Namespace:
    about = "What is in a model file, or how a table will be read."
    parser = CommandParser(prog="untwist inspect", description=about)
    what = "file that `untwist train` wrote, or a table: CSV (may be compressed), .xlsx, .ods, Parquet, Arrow"
    parser.add_argument("file", type=Path, metavar="FILE", help=what)
    table = parser.add_argument_group("for tables")
    add_role_options(table, is_label_needed=False)
    add_hint_options(table)
    add_file_options(table)
    add_infinite_option(table)
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")
    options = parser.parse_args(arguments)
    refuse_absent(options.file)
    return options


def _read_doctor(arguments: list[str] | None) -> argparse.Namespace:
    parser = CommandParser(prog="untwist doctor", description="Is everything in order here?")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser.parse_args(arguments)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `untwist train` wrote")


def _refuse_table(options: argparse.Namespace) -> None:
    """Raise a ValueError where the table of a command is not there, or cannot be read the way that was asked for."""
    refuse_no_table(options.table, options.separator, options.encoding, options.sheet)
    if getattr(options, "blocks", None) and find_kind(options.table) != ".parquet":
        raise ValueError(
            f"{options.table} is no Parquet file, and only these are read in blocks (docs/beyond-memory.md)"
        )


#: What reads the options of each command.
REQUESTS: dict[str, Request] = {
    "train": _read_train,
    "predict": _read_predict,
    "audit": _read_audit,
    "review": _read_review,
    "apply": _read_apply,
    "explain": _read_explain,
    "inspect": _read_inspect,
    "doctor": _read_doctor,
}
