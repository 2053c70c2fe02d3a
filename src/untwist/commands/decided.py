"""Which file decisions are about: its fingerprint, and the column of the labels that they change."""

from __future__ import annotations

from typing import Any

from untwist.data.decisions import Decisions
from untwist.data.fingerprints import digest_columns, fingerprint, fingerprint_columns, fingerprint_labels

__all__ = ["find_label", "fingerprint_file"]


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


def find_label(frame: Any, decisions: Decisions) -> str:
    """Find the column whose labels were decided on; there is one only if nothing has changed since.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table in the file.
    decisions : Decisions
        At least one decision.

    Returns
    -------
    str
        The name of the column. A ValueError that says what differs where there is none.
    """
    features, labels = decisions.fingerprint.split("-")
    columns = list(digest_columns(frame))
    for name in frame.columns:
        if fingerprint_columns(column for column in columns if column[0] != name) != features:
            continue
        if fingerprint_labels(frame[name]) != labels:
            raise ValueError(f"its labels, in column {name!r}, are not those that were decided on")
        return str(name)
    if found := [name for name in frame.columns if fingerprint_labels(frame[name]) == labels]:
        raise ValueError(f"its labels, in column {found[0]!r}, are those decided on, but other cells changed")
    raise ValueError("neither its labels nor its other cells are those that were decided on")
