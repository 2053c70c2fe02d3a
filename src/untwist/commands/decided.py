"""Which file decisions are about: its fingerprint, the column of the labels that they change, and its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from untwist.commands.columns import PreparedTable
from untwist.commands.names import find_names_in_file
from untwist.data.decisions import RELABEL, SKIP, Decisions, mean_the_same
from untwist.data.fingerprints import digest_columns, fingerprint, fingerprint_columns, fingerprint_labels
from untwist.files.decisions import read_decisions

#: What makes decisions from Python fit a file.
AS_TEXT = "decisions from Python are about a CSV file's cells if it was read with dtype=str, keep_default_na=False"


def fingerprint_file(frame: Any, label: str) -> str:
    """Compute the fingerprint of the table in a file: all cells as the file has them.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    label : str
        The column of the labels.

    Returns
    -------
    str
        The fingerprint.
    """
    in_file = _find_names(frame)
    return fingerprint(frame.drop(columns=label).rename(columns=in_file), frame[label])


def _find_names(frame: Any) -> dict[str, str]:
    """What the file calls each column."""
    return dict(zip(frame.columns, find_names_in_file(list(frame.columns)), strict=True))


def find_label(frame: Any, mark: str) -> str:
    """Find the column whose labels a fingerprint is about; there is one only if nothing has changed since.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table in the file.
    mark : str
        The fingerprint of the table as it was.

    Returns
    -------
    str
        The name of the column. A ValueError that says what differs where there is none.
    """
    features, labels = mark.split("-")
    in_file = _find_names(frame)
    columns = list(digest_columns(frame.rename(columns=in_file)))
    for name in frame.columns:
        if fingerprint_columns(column for column in columns if column[0] != in_file[name]) != features:
            continue
        if fingerprint_labels(frame[name]) != labels:
            raise ValueError(f"its labels, in column {name!r}, are not those that were decided on")
        return str(name)
    if found := [name for name in frame.columns if fingerprint_labels(frame[name]) == labels]:
        raise ValueError(
            f"its labels, in column {found[0]!r}, are those decided on, but other cells changed, or were read as "
            f"something else: {AS_TEXT}"
        )
    raise ValueError("neither its labels nor its other cells are those that were decided on")


def describe_row_beyond(decisions: Decisions, table: object, n_rows: int) -> str:
    """Say that a decision is about a row that a table has not.

    Parameters
    ----------
    decisions : Decisions
        The decisions.
    table : object
        What the table is called.
    n_rows : int
        Its rows.

    Returns
    -------
    str
    """
    return f"a decision has {decisions.rows.max()} for its row, which is counted from 0, but {table} has {n_rows} rows"


def read_reviewed(
    path: Path,
    frame: Any,
    label: str,
    table: PreparedTable,
    name_row: Callable[[int], str] = "row {}".format,
) -> Decisions:
    """Read decisions about the rows of a file, as decisions about the rows that a model is fitted to.

    Parameters
    ----------
    path : Path
        The file of the decisions, whose rows are those of the file with the table, from 0.
    frame : pandas.DataFrame
        The table in the file.
    label : str
        The column of the labels.
    table : PreparedTable
        What was made of it.
    name_row : callable
        Says what the file calls a row, which is counted from 0.

    Returns
    -------
    Decisions
        Those about rows that have a label. A ValueError where the decisions were made for other features; the labels
        may have been changed since to what was decided.
    """
    decisions = read_decisions(path)
    features = fingerprint_file(frame, label).split("-")[0]
    if len(decisions) and decisions.fingerprint.split("-")[0] != features:
        raise ValueError(
            f"{path} is about another file, or about another label than {label!r}: rows and columns must be those that "
            f"were reviewed, and only labels may have changed; {AS_TEXT}"
        )
    position = np.full(len(frame), -1, dtype=np.intp)
    position[table.rows] = np.arange(len(table.rows))
    if len(decisions) and decisions.rows.max() >= len(frame):
        raise ValueError(f"{path}: {describe_row_beyond(decisions, 'the table', len(frame))}")
    kept = position[decisions.rows] >= 0
    _refuse_other_labels(path, decisions, kept, dict(zip(table.rows.tolist(), table.y.tolist(), strict=True)), name_row)
    arrays = ("given", "decision", "labels", "notes", "lines", "decided_at")
    return replace(
        decisions,
        rows=position[decisions.rows][kept],
        fingerprint=fingerprint(table.X, table.y),
        **{name: getattr(decisions, name)[kept] for name in arrays},
    )


def _refuse_other_labels(
    path: Path, decisions: Decisions, kept: Any, label_of: dict[int, Any], name_row: Callable[[int], str]
) -> None:
    """Raise a ValueError where a row has neither the label given nor the one decided on, or gets one of no class."""
    classes = set(label_of.values())
    fields = (decisions.rows, decisions.given, decisions.decision, decisions.labels)
    for row, given, decision, label in zip(*(one[kept].tolist() for one in fields), strict=True):
        if decision == SKIP:
            continue
        now = label_of[row]
        if not (mean_the_same(now, given) or mean_the_same(now, label)):
            raise ValueError(
                f"{path}: {name_row(row)} is labelled {str(now)!r:.40}, but it was {str(given)!r:.40} when it was "
                f"reviewed, and {str(label)!r:.40} was decided on"
            )
        if decision == RELABEL and not any(mean_the_same(label, one) for one in classes):
            raise ValueError(
                f"{path}: {name_row(row)} is relabelled {str(label)!r:.40}, which is the label of no row of the table: "
                "a class needs rows to be learned from"
            )
