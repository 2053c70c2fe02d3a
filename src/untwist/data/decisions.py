"""What a person decided about labels: which are right, which are not, and what they should be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: The label is right.
KEEP = "keep"
#: The label is wrong, and this is the right one.
RELABEL = "relabel"
#: The reviewer could not tell.
SKIP = "skip"

#: What fingerprints look like.
_FINGERPRINT = re.compile("[0-9a-f]{16}-[0-9a-f]{16}")


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a person decided about some labels of a table; all arrays have one entry per decision.

    Parameters
    ----------
    rows : array of int
        The position of each row decided on, from 0, no row twice.
    given : array
        The label that the row had.
    decision : array of str
        "keep" where the label is right, "relabel" where another one is, "skip" where that could not be told.
    labels : array
        The label decided on; that given for "keep" and "skip".
    notes : array of str
        What the reviewer wrote; empty where nothing.
    fingerprint : str
        That of the data, as `LabelAudit.fingerprint` has it: of all that is no label, and of the labels as they were.
    lines : array of str, optional
        Where each row is in a file, for people; empty where that is not known.
    decided_at : array of str, optional
        When; empty where that is not known.

    Examples
    --------
    >>> Decisions([7, 3], ["no", "no"], ["keep", "relabel"], ["no", "yes"], ["", "typo"], f"{1:016x}-{2:016x}").reviewed
    array([ True,  True])
    """

    rows: NDArray[np.intp]
    given: NDArray[Any]
    decision: NDArray[np.str_]
    labels: NDArray[Any]
    notes: NDArray[np.str_]
    fingerprint: str
    lines: NDArray[np.str_] | None = None
    decided_at: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError(f"rows must be positions, whole numbers from 0, got {self.rows!r:.80}")
        self._set("rows", rows.astype(np.intp))
        for name in ("given", "decision", "labels", "notes", "lines", "decided_at"):
            value = getattr(self, name)
            array = np.full(len(rows), "") if value is None else np.asarray(value)
            if array.shape != rows.shape:
                raise ValueError(f"{name} must be {len(rows)} values, one per decision, got shape {array.shape}")
            self._set(name, array)
        self._check()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Raise a ValueError that names the first row whose decision makes no sense."""
        if len(self.rows) and not _FINGERPRINT.fullmatch(self.fingerprint):
            raise ValueError(
                f"fingerprint must be two times 16 hexadecimal digits, got {self.fingerprint!r:.80}: without it nobody "
                "knows what the decisions are about"
            )
        seen: set[int] = set()
        for row, given, decision, label in zip(
            self.rows.tolist(), self.given.tolist(), self.decision.tolist(), self.labels.tolist(), strict=True
        ):
            if row < 0:
                raise ValueError(f"rows must be positions from 0, got {row}")
            if row in seen:
                raise ValueError(f"row {row} is decided on twice: leave one of the two decisions")
            seen.add(row)
            if decision not in (KEEP, RELABEL, SKIP):
                raise ValueError(f"row {row} has the decision {decision!r:.40}: it must be keep, relabel or skip")
            if str(label).strip() == "":
                raise ValueError(f"row {row} has no label: say which one is right, or skip the row")
            if decision != RELABEL and str(label) != str(given):
                raise ValueError(
                    f"row {row} says {decision}, but its label changes from {given!r:.40} to {label!r:.40}: "
                    "say relabel, or leave the label as it was"
                )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def reviewed(self) -> NDArray[np.bool_]:
        """Whether each row's label is known now: it was not skipped."""
        return np.asarray(self.decision != SKIP)

    @property
    def relabelled(self) -> NDArray[np.bool_]:
        """Whether each row gets another label than the one that it had."""
        return np.array([str(a) != str(b) for a, b in zip(self.labels, self.given, strict=True)], dtype=np.bool_)

    def check_fingerprint(self, fingerprint: str) -> None:
        """Raise a ValueError unless these decisions are about the data of a fingerprint.

        Parameters
        ----------
        fingerprint : str
            That of the data at hand.
        """
        if not len(self):
            return
        words = ("other features (or rows)", "other labels")
        halves = zip(self.fingerprint.split("-"), fingerprint.split("-"), words, strict=True)
        if different := [word for ours, theirs, word in halves if ours != theirs]:
            raise ValueError(
                f"the decisions are about other data: the data they were made for have {' and '.join(different)} "
                f"({self.fingerprint}, here {fingerprint}); decisions about a CSV file are about its cells as text, as "
                "pandas reads them with dtype=str, keep_default_na=False"
            )

    def change(self, labels: ArrayLike) -> NDArray[Any]:
        """Return a copy of labels in which those decided on are what was decided, and nothing else changed.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            The labels that the decisions were made for.

        Returns
        -------
        array
            Of the same kind; longer text makes room for itself. A ValueError where a row had another label, or where a
            label decided on is of no kind that the labels are.
        """
        changed = np.array(labels)
        if len(self) and self.rows.max() >= len(changed):
            raise ValueError(f"row {self.rows.max()} is decided on, but there are {len(changed)} rows, from 0")
        classes = np.unique(changed).tolist()
        before, after = match_labels(self.given.tolist(), classes), match_labels(self.labels.tolist(), classes)
        for row, given in zip(self.rows.tolist(), before, strict=True):
            if given != changed[row]:
                was = f"had the label {str(given)!r:.40} when it was decided on"
                raise ValueError(f"row {row} {was}, not {str(changed[row])!r:.40}")
        new = [_convert(row, label, changed.dtype) for row, label in zip(self.rows.tolist(), after, strict=True)]
        if changed.dtype.kind == "U" and new:
            changed = changed.astype(np.result_type(changed.dtype, np.array(new).dtype))
        changed[self.rows] = np.array(new, dtype=changed.dtype)
        return changed


def match_labels(labels: Iterable[Any], classes: Iterable[Any]) -> list[Any]:
    """Return the class that each label means, which may be written as text.

    A spreadsheet writes 1 for 1.0 and TRUE for true; where no class is written exactly so, the one that differs in that
    way only is meant.

    Parameters
    ----------
    labels : iterable
        The labels, mostly text.
    classes : iterable
        The classes.

    Returns
    -------
    list
        One of the classes for each label, or the label itself where it is none of them.

    Examples
    --------
    >>> match_labels(["1", "2"], [0.0, 1.0]), match_labels(["TRUE", "maybe"], ["false", "true"])
    ([1.0, '2'], ['true', 'maybe'])
    """
    by_text = {str(one): one for one in classes}
    by_meaning: dict[float | str, list[Any]] = {}
    for text, one in by_text.items():
        by_meaning.setdefault(_simplify(text), []).append(one)

    def match(label: Any) -> Any:
        text = str(label)
        alike = [by_text[text]] if text in by_text else by_meaning.get(_simplify(text), [])
        return alike[0] if len(alike) == 1 else label

    return [match(label) for label in labels]


def mean_the_same(one: Any, other: Any) -> bool:
    """Tell whether two labels are one class: they differ in case, in blanks or in how a number is written at most.

    Parameters
    ----------
    one, other : object
        Labels, as text or as what they are.

    Returns
    -------
    bool

    Examples
    --------
    >>> mean_the_same("Yes", "yes "), mean_the_same("1", 1.0), mean_the_same("no", "yes")
    (True, True, False)
    """
    return str(one) == str(other) or _simplify(str(one)) == _simplify(str(other))


def _simplify(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return " ".join(text.split()).casefold()


def _convert(row: int, label: Any, dtype: np.dtype[Any]) -> Any:
    """Return a label of a new class as what the labels are."""
    if dtype.kind not in "biuf" or not isinstance(label, str):
        return label
    try:
        value = np.array(label).astype(np.float64)
        number = value.astype(dtype)
        if dtype.kind != "b" and number == value:
            return number.item()
    except (ValueError, OverflowError):
        pass
    kind = "a truth value" if dtype.kind == "b" else "a number of that kind"
    raise ValueError(f"row {row} is relabelled {label!r:.40}, but the labels are {dtype}: that is not {kind}")
