"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: Random bytes in the name of a file that is being written.
MARK_BYTES = 8
#: The files that are being written, each with its process: a child that was forked meanwhile has none of them.
_unfinished: dict[Path, int] = {}


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that is there whole or not at all; a device or a pipe is written to as it is.

    Parameters
    ----------
    path : str or path
        The file. An older one of that name stays as it was until the new one is complete.
    content : bytes
        What to write.
    """
    with open_whole(path) as file:
        file.write(content)


@contextmanager
def open_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of an older one at the end, and only if nothing went wrong.

    Parameters
    ----------
    path : str or path
        The file, which keeps its permissions; a link to one stays a link.

    Yields
    ------
    binary file
        Where to write the content.
    """
    target = Path(os.path.realpath(path))
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(MARK_BYTES)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    permissions = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    _unfinished[temporary] = os.getpid()
    try:
        handle = os.open(temporary, flags, permissions)
        with os.fdopen(handle, "wb") as file:
            if old is not None:  # The umask may have taken some of the permissions away.
                os.chmod(temporary, permissions)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        del _unfinished[temporary]
    _sync_folder(target.parent)


def remove_unfinished() -> None:
    """Remove what this process has begun to write: for a signal that is about to end it."""
    for temporary, process in list(_unfinished.items()):
        if process == os.getpid():
            with suppress(OSError):
                os.unlink(temporary)


def remove_left_behind(path: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed had begun to write of a file, by whoever alone may write it now.

    Parameters
    ----------
    path : str or path
        The file that `open_whole` was given.
    """
    target = Path(os.path.realpath(path))
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * MARK_BYTES}}}")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for one in entries:
            if name.fullmatch(one.name) and one.is_file(follow_symlinks=False):
                with suppress(OSError):
                    os.unlink(one.path)


def _sync_folder(path: Path) -> None:
    """Write the new name to disk too, where the system can do that for a folder."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
