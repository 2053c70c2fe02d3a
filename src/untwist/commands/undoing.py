"""What takes changed labels of a file back: written beside the copy that has them, read by ``untwist apply --undo``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from untwist.commands.decided import find_label, fingerprint_file
from untwist.commands.kinds import name_undo
from untwist.commands.sheets import Sheet, read
from untwist.files.decisions import Undo, write_undo

__all__ = ["keep_undo", "take_back"]


def keep_undo(sheet: Sheet, label: str, rows: NDArray[np.intp], copy: Path) -> Path | None:
    """Write what takes the labels of a copy back, beside it.

    Parameters
    ----------
    sheet : Sheet
        The file that the copy was made of.
    label : str
        The column of the labels.
    rows : array of int
        The rows whose labels were changed, from 0.
    copy : Path
        The copy, which is there already.

    Returns
    -------
    Path or None
        The file that was written; None where no label was changed.
    """
    if not len(rows):
        return None
    is_text = sheet.separator is not None
    separator = "," if sheet.rows is not None else sheet.separator  # The copy of a spreadsheet is CSV.
    written = read(copy, separator, sheet.encoding if is_text else None)
    undo = Undo(
        rows=rows,
        lines=[str(one) for one in written.lines[rows].tolist()],
        labels=[str(one) for one in written.frame[label].iloc[rows]],
        before=sheet.read_labels_as_written(label, rows),
        fingerprint=fingerprint_file(written.frame, label),
    )
    path = name_undo(copy)
    write_undo(path, undo)
    return path


def take_back(sheet: Sheet, undo: Undo, path: Path) -> tuple[str, bytes]:
    """Take changed labels back.

    Parameters
    ----------
    sheet : Sheet
        The file with changed labels.
    undo : Undo
        What was changed.
    path : Path
        The file that says so.

    Returns
    -------
    label : str
        The column of the labels.
    content : bytes
        What the file is with the labels that it had before, without compression.
    """
    try:
        label = find_label(sheet.frame, undo.fingerprint)
    except ValueError as error:
        raise ValueError(
            f"{sheet.path} is not the file that {path} takes back, or has changed since it was written: {error}"
        ) from error
    if undo.rows.max() >= len(sheet.frame):
        raise ValueError(f"{path} names row {undo.rows.max()}, but {sheet.path} has {len(sheet.frame)} rows, from 0")
    try:
        return label, sheet.replace_labels(label, undo.rows, undo.before, as_written=True)
    except ValueError as error:
        raise ValueError(f"{sheet.path}: {error}") from error
