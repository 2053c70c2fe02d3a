"""Decide about suspect labels on a page of this machine: ``untwist review data.csv --label churn``."""

from __future__ import annotations

import argparse
import shlex
import threading
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np

from untwist.audit import LabelAudit, Statement
from untwist.audit.statements import write_conditions, write_counts
from untwist.commands.audit import JudgedFile, judge
from untwist.commands.columns import PreparedTable
from untwist.commands.decided import fingerprint_file
from untwist.commands.kinds import WORKBOOKS, find_kind
from untwist.commands.requests import find_stem
from untwist.commands.sheets import Sheet
from untwist.commands.steps import encode_json, print_result, read_table
from untwist.data.decisions import SKIP
from untwist.progress import print_status
from untwist.report import report
from untwist.review import Ledger, Lock, ReviewServer

#: Rows to look at where nothing is suspect by itself.
LEAST_REVIEWED = 50


def main(options: argparse.Namespace) -> int:
    """Audit a table, show its suspects on a page, and write what is decided there as it is decided.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    lock = Lock(options.decisions)
    try:
        sheet, table = read_table(options)
        mark = fingerprint_file(sheet.frame, options.label)
        ledger = _open_ledger(options.decisions, mark, sheet, table)
        judged = judge(sheet, table, options)
        with _open_server(_write_page(judged, mark, options.label), ledger, options.port, lock) as server:
            _serve(server, opens_browser=options.browser)
        ledger.close()
    finally:
        lock.release()
    counts, expected = _count(ledger, judged.audit, table)
    command = _name_next_command(options)
    if options.json:
        print(encode_json(counts | {"expected": expected.to_dict(), "decisions": options.decisions, "next": command}))
    else:
        _print_summary(counts, expected, options.decisions, command)
    return 0


def _open_ledger(path: Path, mark: str, sheet: Sheet, table: PreparedTable) -> Ledger:
    """Open the decisions about the rows of a file that have a label."""
    rows = table.rows.tolist()
    given = dict(zip(rows, map(str, table.y.tolist()), strict=True))
    lines = dict(zip(rows, map(str, sheet.lines[table.rows].tolist()), strict=True))
    ledger = Ledger(path, mark, given, lines)
    if done := len(ledger.decisions):
        print_status(f"{path} has {done:,} decisions already: the review goes on from there")
    return ledger


def _write_page(judged: JudgedFile, mark: str, label: str) -> str:
    """Write the page of the audit, which sends decisions to the server."""
    audit, sheet, table = judged.audit, judged.sheet, judged.table
    suspects = judged.suspects
    if not len(suspects):
        suspects = audit.suspects(budget=min(LEAST_REVIEWED, len(table.y)))
        print_status(f"no label is suspect by itself: the page has the {len(suspects)} rows to look at first")
    return report(
        audit,
        title=sheet.path.name,
        rows=sheet.lines[table.rows].tolist(),
        row_name=sheet.row_word,
        suspects=suspects,
        table=judged.values_beside(label),
        positions=table.rows,
        fingerprint=mark,
        server="decisions",
    )


def _open_server(page: str, ledger: Ledger, port: int, lock: Lock) -> ReviewServer:
    """Open a server; where one was killed, at its address, so that pages which are still open go on."""
    before = lock.find_address()
    server = None
    if before is not None and port in (0, before[0]):
        try:
            server = ReviewServer(page, ledger, *before)
        except OSError:  # Somebody else has the port now.
            print_status("the port of the review that was killed is taken: its pages will not find this one")
    try:
        server = server or ReviewServer(page, ledger, port)
    except OSError as error:
        raise ValueError(
            f"port {port} cannot be had ({error.strerror}): leave out --port, or choose another"
        ) from error
    lock.write(server.server_port, server.token)
    return server


def _serve(server: ReviewServer, *, opens_browser: bool) -> None:
    """Serve until Ctrl-C."""
    print_status(f"Review at {server.address}")
    print_status(f"Decisions are written to {server.ledger.path} as they are made; Ctrl-C ends the review.")
    if opens_browser:
        threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print_status("")


def _count(ledger: Ledger, audit: LabelAudit, table: PreparedTable) -> tuple[dict[str, Any], Statement]:
    """Count what was decided, and how many wrong labels were to be expected among the rows that were not skipped."""
    decisions = ledger.decisions
    reviewed = np.searchsorted(table.rows, decisions.rows[decisions.reviewed])
    counts = {
        "decided": len(decisions),
        "wrong": int(np.count_nonzero(decisions.relabelled)),
        "right": int(np.count_nonzero(decisions.reviewed & ~decisions.relabelled)),
        "skipped": int(np.count_nonzero(decisions.decision == SKIP)),
        "state": audit.verdict.state.value,
    }
    return counts, audit.expected_yield(reviewed)


def _print_summary(counts: dict[str, Any], expected: Statement, path: Path, command: str) -> None:
    if not counts["decided"]:
        print_result("Nothing was decided.")
        return
    about = "about " if expected.low > 0 else ""
    told = f"{about}{write_counts(expected)} were expected{write_conditions(expected.rests_on)}"
    n_reviewed = counts["wrong"] + counts["right"]
    skipped = f"; {counts['skipped']:,} skipped" if counts["skipped"] else ""
    print_result(f"{counts['wrong']:,} of {n_reviewed:,} labels were wrong, {told}{skipped}. {path} has it all.")
    print_result(f"To change the labels: {command}")


def _name_next_command(options: argparse.Namespace) -> str:
    """Write down the command that applies the decisions."""
    table = options.table
    suffixes = table.name[len(find_stem(table)) :]
    words = ["untwist", "apply", str(options.decisions), str(table)]
    suffixes = ".csv" if find_kind(table) in WORKBOOKS else suffixes
    words += ["-o", str(table.with_name(f"{find_stem(table)}.cleaned{suffixes}"))]
    for name in ("separator", "encoding", "sheet"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", value]
    return shlex.join(words)
