"""Which file decisions are about: its fingerprint, the column of the labels that they change, and its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from untwist.commands.columns import PreparedTable
from untwist.data.decisions import Decisions
from untwist.data.fingerprints import digest_columns, fingerprint, fingerprint_columns, fingerprint_labels
from untwist.files.decisions import read_decisions

__all__ = ["find_label", "fingerprint_file", "read_reviewed"]

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
    return fingerprint(frame.drop(columns=label), frame[label])


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
    columns = list(digest_columns(frame))
    for name in frame.columns:
        if fingerprint_columns(column for column in columns if column[0] != name) != features:
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


def read_reviewed(path: Path, frame: Any, label: str, table: PreparedTable) -> Decisions:
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
        raise ValueError(f"{path} decides on row {decisions.rows.max()}, but there are {len(frame)} rows, from 0")
    kept = position[decisions.rows] >= 0
    arrays = ("given", "decision", "labels", "notes", "lines", "decided_at")
    return replace(
        decisions,
        rows=position[decisions.rows][kept],
        fingerprint=fingerprint(table.X, table.y),
        **{name: getattr(decisions, name)[kept] for name in arrays},
    )
