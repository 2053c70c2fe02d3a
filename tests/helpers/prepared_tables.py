"""Frames made ready as the commands make the tables of files ready."""

from pathlib import Path

from untwist.commands.cells import NO_HINTS
from untwist.commands.columns import Roles, prepare
from untwist.commands.sheets import Sheet


def prepare_frame(frame, label, hints=NO_HINTS, **roles):
    """Prepare a frame as the table of a file that is no CSV."""
    return prepare(Sheet(Path("table"), frame), Roles(label, **roles), hints)
