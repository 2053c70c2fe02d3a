"""A lock beside a file: whoever holds it writes the file. The system releases it however its process ends."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from untwist.files.whole_files import remove_left_behind

if sys.platform == "win32":
    import msvcrt

    def _seize(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _seize(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


#: Bytes of the lock file that are looked at.
MOST_BYTES = 1000


class Lock:
    """The right to write a file, held until `release` or the end of the process.

    Where its holder is to be found stands in the lock file, for its owner only: a process that takes over after a crash
    can be found at the same place. What the one that crashed had begun to write of the file is removed.

    Parameters
    ----------
    path : Path
        The file to write. Its lock is beside it, with ``.lock`` at the end of the name.
    """

    def __init__(self, path: Path) -> None:
        path = Path(os.path.realpath(path))  # Two names of one file have one lock.
        self._place = path.with_name(f"{path.name}.lock")
        self._handle = self._take(path)
        remove_left_behind(path)
        self._left_behind = self._read()

    def _take(self, path: Path) -> int:
        while True:
            handle = os.open(self._place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            try:
                _seize(handle)
            except OSError as error:
                os.close(handle)
                raise ValueError(
                    f"{path} is being written by another review: use its page, end it, or choose another --decisions"
                ) from error
            with suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(self._place)):
                    return handle
            os.close(handle)  # Whoever held it has removed the file meanwhile.

    def _read(self) -> dict[str, Any]:
        """What a process that ended without a word has left, if nobody else could have written or read it."""
        about = os.fstat(self._handle)
        is_private = sys.platform == "win32" or (about.st_uid == os.getuid() and not about.st_mode & 0o077)
        try:
            found = json.loads(os.read(self._handle, MOST_BYTES)) if is_private else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def find_address(self) -> tuple[int, str] | None:
        """Find the port and the token of a server that was killed, so that its pages find the next one.

        Returns
        -------
        tuple of int and str, or None
        """
        port, token = self._left_behind.get("port"), self._left_behind.get("token")
        if not isinstance(port, int) or not 0 < port < 65536 or not isinstance(token, str):
            return None
        return (port, token) if re.fullmatch("[A-Za-z0-9_-]{40,60}", token) else None

    def write(self, port: int, token: str) -> None:
        """Say where the holder of the lock is to be found.

        Parameters
        ----------
        port : int
            The port of its server.
        token : str
            What its address holds.
        """
        if sys.platform != "win32":
            os.fchmod(self._handle, 0o600)
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, json.dumps({"port": port, "token": token}).encode())

    def release(self) -> None:
        """Give the lock back and remove its file."""
        with suppress(OSError):
            os.unlink(self._place)
        with suppress(OSError):
            os.close(self._handle)
