"""The open connections of a server: how many there may be, how long each may take, and which one makes room."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition

#: Connections at once, at most. A browser opens six to a server, and a handful of tabs share these.
MOST_CONNECTIONS = 64
#: Seconds that a client may take to send its whole request, and again to receive the whole answer.
PATIENCE = 20
#: Seconds to wait for a descriptor where the process has none left, unless one is given back before.
REST = 0.5


@dataclass
class _State:
    """What is known of an open connection; a deadline of None is one whose answer is being made."""

    deadline: float | None
    is_stranger: bool = True
    is_dropped: bool = False


class Connections:
    """The connections that a server has accepted and not yet closed, the oldest first.

    One that is dropped can neither send nor receive from then on, so that whoever serves it wakes up and closes it. It
    counts until it is closed.

    Parameters
    ----------
    clock : callable
        Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = Condition()
        self._open: dict[socket.socket, _State] = {}

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: socket.socket) -> bool:
        """Take in a new connection; where there are too many, the oldest stranger makes room for it.

        Parameters
        ----------
        connection : socket
            One that was just accepted.

        Returns
        -------
        bool
            Whether it may be served: not where there are too many and none of them is a stranger.
        """
        with self._changed:
            while len(self._open) >= MOST_CONNECTIONS:
                if not self._make_room():
                    return False
                self._changed.wait()
            self._open[connection] = _State(self._clock() + PATIENCE)
        return True

    def release(self, connection: socket.socket) -> None:
        """Forget a connection that is about to be closed.

        Parameters
        ----------
        connection : socket
            One that may have been admitted.
        """
        with self._changed:
            self._open.pop(connection, None)
            self._changed.notify_all()

    def trust(self, connection: socket.socket) -> None:
        """Let nobody take the place of a connection which has shown that it may ask.

        Parameters
        ----------
        connection : socket
            One that was admitted.
        """
        with self._changed:
            self._open[connection].is_stranger = False

    def hold(self, connection: socket.socket) -> None:
        """Stop the clock of a connection whose request has come: what its answer takes is not its fault.

        Parameters
        ----------
        connection : socket
            One that was admitted.
        """
        with self._changed:
            self._open[connection].deadline = None

    def renew(self, connection: socket.socket) -> None:
        """Start the clock of a connection that is about to be answered.

        Parameters
        ----------
        connection : socket
            One that was admitted.
        """
        with self._changed:
            self._open[connection].deadline = self._clock() + PATIENCE

    def drop_late(self) -> None:
        """Drop the connections that have taken too long, however busily they send."""
        with self._changed:
            now = self._clock()
            for connection, state in self._open.items():
                if state.deadline is not None and state.deadline <= now:
                    _drop(connection, state)

    def rest(self) -> None:
        """Wait for a descriptor where the process has none left; the oldest stranger gives up its own."""
        with self._changed:
            self._make_room()
            self._changed.wait(REST)

    def _make_room(self) -> bool:
        """Drop the oldest stranger, unless a connection is about to be closed anyway; say whether there is one."""
        if any(state.is_dropped for state in self._open.values()):
            return True
        for connection, state in self._open.items():
            if state.is_stranger:
                _drop(connection, state)
                return True
        return False


def _drop(connection: socket.socket, state: _State) -> None:
    if not state.is_dropped:
        state.is_dropped = True
        with suppress(OSError):  # The client has gone already.
            connection.shutdown(socket.SHUT_RDWR)
