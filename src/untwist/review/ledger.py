"""The decisions of a review, in memory and in their file: a change counts once it is on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock as Mutex
from typing import Any

import numpy as np

from untwist.data.decisions import KEEP, RELABEL, SKIP, Decisions, match_labels, mean_the_same
from untwist.files.decisions import HEADER, format_line, read_decisions, write_text

#: Characters of a label, at most.
MOST_LABEL = 1000
#: Characters of a note, at most.
MOST_NOTE = 10_000


@dataclass(frozen=True)
class _Entry:
    """The last word on a row; a decision that is None was undone."""

    decision: str | None
    label: str
    note: str
    decided_at: str
    version: int


class Ledger:
    """The decisions about a table, several pages at a time.

    Every change has a version, which only rises, also from one process to the next: a page asks for what has changed
    since the version that it knows.

    Parameters
    ----------
    path : Path
        The file of the decisions. One that exists must be about the same data; the review goes on from it.
    fingerprint : str
        That of the data.
    given : mapping
        The label of each row that may be decided on, as text, by the row's position.
    lines : mapping
        Where each of these rows is in its file, as text.
    """

    def __init__(self, path: Path, fingerprint: str, given: Mapping[int, str], lines: Mapping[int, str]) -> None:
        self.path = path
        self._fingerprint = fingerprint
        self._given = given
        self._lines = lines
        self._mutex = Mutex()
        self._is_closed = False
        # Microseconds: no ledger takes decisions faster, so that the next one begins above the last version of it.
        self._version = self._first = time.time_ns() // 1000
        self._entries: dict[int, _Entry] = {}
        self._stamp = _read_stamp(path)
        if self._stamp is not None:
            self._entries = self._load()
        self._texts = {row: self._format(row, entry) for row, entry in self._entries.items()}

    def _load(self) -> dict[int, _Entry]:
        decisions = read_decisions(self.path)
        try:
            decisions.check_fingerprint(self._fingerprint)
            for row, given in zip(decisions.rows.tolist(), decisions.given.tolist(), strict=True):
                if row not in self._given or not mean_the_same(given, self._given[row]):
                    raise ValueError(f"row {row} has the label {self._given.get(row)!r:.40}, not {given!r:.40}")
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}; choose another file by --decisions") from error
        assert decisions.decided_at is not None  # It is filled with empty text.
        labels = match_labels(decisions.labels.tolist(), sorted(set(self._given.values())))
        fields = (decisions.decision, np.array(labels, dtype=object), decisions.notes, decisions.decided_at)
        entries = zip(*(one.tolist() for one in fields), strict=True)
        return {
            row: _Entry(decision, self._given[row] if decision != RELABEL else label, note, when, self._version)
            for row, (decision, label, note, when) in zip(decisions.rows.tolist(), entries, strict=True)
        }

    @property
    def decisions(self) -> Decisions:
        """What has been decided so far."""
        kept = {row: entry for row, entry in self._entries.items() if entry.decision is not None}
        return Decisions(
            rows=np.array(list(kept), dtype=np.intp),
            given=_as_text(self._given[row] for row in kept),
            decision=_as_text(entry.decision for entry in kept.values()),
            labels=_as_text(entry.label for entry in kept.values()),
            notes=_as_text(entry.note for entry in kept.values()),
            fingerprint=self._fingerprint,
            lines=_as_text(self._lines[row] for row in kept),
            decided_at=_as_text(entry.decided_at for entry in kept.values()),
        )

    def list_changes(self, since: int) -> dict[str, Any]:
        """List what has changed since a version.

        Parameters
        ----------
        since : int
            A version that an earlier answer had, or 0.

        Returns
        -------
        dict
            The `version` now, the `decisions` changed since, null where one was undone, and whether this is the
            `whole`: rows that are not listed are then undecided, whatever the page has heard of them from a server that
            has ended.
        """
        with self._mutex:
            whole = not self._first <= since <= self._version
            return {
                "version": self._version,
                "whole": whole,
                "decisions": [
                    {"row": row, **vars(entry)}
                    for row, entry in self._entries.items()
                    if whole or entry.version > since
                ],
            }

    def decide(self, row: Any, decision: Any, label: Any = "", note: Any = "") -> None:
        """Write a decision to disk; when this returns, it is there.

        Parameters
        ----------
        row : int
            The position of the row.
        decision : str or None
            "keep", "relabel", "skip", or None to undo what was decided.
        label : str
            The right label, where it is another one.
        note : str
            Anything.
        """
        if type(row) is not int or row not in self._given:
            raise ValueError(f"row must be the position of a row that has a label, got {row!r:.40}")
        if decision not in (KEEP, RELABEL, SKIP, None):
            raise ValueError(f"decision must be keep, relabel, skip or null, got {decision!r:.40}")
        note = "" if note is None else note
        if not isinstance(note, str) or len(note) > MOST_NOTE:
            raise ValueError(f"note must be text of at most {MOST_NOTE} characters")
        if decision != RELABEL:
            label = self._given[row]
        elif not isinstance(label, str) or not label.strip() or len(label) > MOST_LABEL:
            raise ValueError(f"label must be text of 1 to {MOST_LABEL} characters where a row is relabelled")
        with self._mutex:
            when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            version = self._version + 1
            entries = self._entries | {row: _Entry(decision, label, note, when, version)}
            texts = {one: text for one, text in self._texts.items() if one != row or decision is not None}
            if decision is not None:
                texts[row] = self._format(row, entries[row])
            self._write(texts)
            self._entries, self._texts, self._version = entries, texts, version

    def close(self) -> None:
        """Take no more decisions; one that is being written is on disk when this returns."""
        with self._mutex:
            self._is_closed = True

    def _format(self, row: int, entry: _Entry) -> str:
        """Return the line of a decision in the file; lines are kept, as every decision writes all of them again."""
        cells = (row, self._lines[row], self._given[row], entry.decision, entry.label, entry.note, entry.decided_at)
        return format_line(*cells, self._fingerprint)

    def _write(self, texts: Mapping[int, str]) -> None:
        if self._is_closed:
            raise OSError("the review has ended")
        if _read_stamp(self.path) != self._stamp:
            raise OSError(f"{self.path} was changed by another program: end this review and start it again")
        write_text(self.path, "".join([HEADER, *texts.values()]))
        self._stamp = _read_stamp(self.path)


def _as_text(values: Any) -> Any:
    return np.array(list(values), dtype=object)


def _read_stamp(path: Path) -> tuple[int, int, int] | None:
    """What differs where a file was written by somebody else; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
