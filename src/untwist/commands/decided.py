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
    with_labels = [name for name in frame.columns if fingerprint_labels(frame[name]) == labels]
    fitting = [name for name in frame.columns if fingerprint_columns(_leave_out(columns, name)) == features]
    if found := [name for name in with_labels if name in fitting]:
        return str(found[0])
    if fitting:
        raise ValueError(f"its labels, in column {fitting[0]!r}, are not those that were decided on")
    if with_labels:
        raise ValueError(f"its labels, in column {with_labels[0]!r}, are those decided on, but other cells changed")
    raise ValueError("neither its labels nor its other cells are those that were decided on")


def _leave_out(columns: list[tuple[str, str]], label: str) -> list[tuple[str, str]]:
    return [column for column in columns if column[0] != label]
