"""What is said of labels, as numbers that say what they are of and what they rest on, and how numbers are written.

A `Statement` is made once, by `untwist.audit.verdict`; every surface writes it by the functions of this module, so that
the same number reads the same everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from untwist.display import write_range, write_share
from untwist.noise.estimate import CONFIDENCE

__all__ = [
    "ALL_LABELS",
    "CLASSES_FOLLOW",
    "GIVEN_NOISE",
    "INDEPENDENT_ERRORS",
    "JUDGEMENTS",
    "ONE_PER_GROUP",
    "OWN_LABEL_FIRST",
    "Sentence",
    "Statement",
    "name_class",
    "name_label",
    "name_pair",
    "write_conditions",
    "write_count",
    "write_counts",
    "write_shares",
]

# ---- what statements are of ----

ALL_LABELS = "all labels"


def name_class(name: Any) -> str:
    """Return what a share of a true class is of."""
    return f"true class {name}"


def name_label(name: Any) -> str:
    """Return what a share of the rows of a given label is of."""
    return f"given label {name}"


def name_pair(truth: Any, label: Any) -> str:
    """Return what a share of a true class is of that bears some other label."""
    return f"true class {truth} labelled {label}"


# ---- what statements rest on ----

INDEPENDENT_ERRORS = "errors do not depend on features"
CLASSES_FOLLOW = "classes follow from the features"
JUDGEMENTS = "labels are judgements, not outcomes"
OWN_LABEL_FIRST = "no class bears a label more often than the class that it names"
ONE_PER_GROUP = "rows of a group count as one"
GIVEN_NOISE = "the noise that was given"


@dataclass(frozen=True)
class Statement:
    """A share or a number of wrong labels, with what it is of and what it rests on.

    Parameters
    ----------
    value, low, high : float
        What is expected, and the limits of its interval; a bound has its `high` for a value.
    level : float
        The confidence of the interval, if what it rests on is true.
    of : str
        What it is a share of: "all labels", "true class NAME", "given label NAME", "true class A labelled B"; of a
        number which rows are counted.
    rests_on : tuple of str
        What must be true for it to hold, each as a phrase that follows "if", "given" or "by".

    Examples
    --------
    >>> Statement(0.1, 0.08, 0.13, 0.95, ALL_LABELS, (INDEPENDENT_ERRORS,))
    Statement(10.0 % (8.0 % to 13.0 %) of all labels; rests on: errors do not depend on features)
    """

    value: float
    low: float
    high: float
    level: float = CONFIDENCE
    of: str = ALL_LABELS
    rests_on: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Statement({self})"

    def __str__(self) -> str:
        numbers = write_counts(self) if self.counts_rows else write_shares(self)
        return f"{numbers} of {self.of}; rests on: {', '.join(self.rests_on)}"

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows, not a share."""
        return self.of.startswith("these ")

    @property
    def name(self) -> str:
        """The class that it is of, as a true class or as a given label; else what it is of."""
        return self.of.removeprefix(name_class("")).removeprefix(name_label(""))

    def to_dict(self) -> dict[str, Any]:
        """Return the same for machines.

        Returns
        -------
        dict
        """
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "of": self.of,
            "rests_on": list(self.rests_on),
        }


class Sentence(NamedTuple):
    """A sentence whose advice names Python, and the same with options of the command line."""

    python: str
    command: str

    @classmethod
    def alike(cls, words: str) -> Sentence:
        """Return a sentence that is the same for both.

        Parameters
        ----------
        words : str
            The sentence.

        Returns
        -------
        Sentence
        """
        return cls(words, words)

    def tell(self, *, for_command: bool) -> str:
        """Return the words for the command line, or those for Python.

        Parameters
        ----------
        for_command : bool
            Which of the two.

        Returns
        -------
        str
        """
        return self.command if for_command else self.python


# ---- how numbers are written ----


def write_shares(one: Statement | tuple[float, float, float]) -> str:
    """Write a share with its limits.

    Parameters
    ----------
    one : Statement or tuple of float
        The share, and its limits.

    Returns
    -------
    str

    Examples
    --------
    >>> write_shares((0.1, 0.08, 0.13))
    '10.0 % (8.0 % to 13.0 %)'
    """
    value, low, high = (one.value, one.low, one.high) if isinstance(one, Statement) else one
    return f"{write_share(value)} ({write_range(low, high)})"


def write_count(number: float) -> str:
    """Write a number of rows that is expected.

    Parameters
    ----------
    number : float
        The number.

    Returns
    -------
    str
        A whole number.
    """
    return f"{number:,.0f}"


def write_counts(one: Statement) -> str:
    """Write how many rows are expected, with the limits.

    Parameters
    ----------
    one : Statement
        The number.

    Returns
    -------
    str
        Where the limits begin at 0 these alone, as any number between them fits as well.

    Examples
    --------
    >>> write_counts(Statement(8.2, 5.7, 9.4)), write_counts(Statement(8.2, 0, 20))
    ('8 (5 to 10)', '0 to 20')
    """
    limits = f"{math.floor(one.low):,} to {math.ceil(one.high):,}"
    return limits if one.low == 0 else f"{write_count(one.value)} ({limits})"


def write_conditions(rests_on: tuple[str, ...]) -> str:
    """Write what must be true for a statement, as a clause that follows it.

    Parameters
    ----------
    rests_on : tuple of str
        What a statement rests on; only what may be false is told.

    Returns
    -------
    str
        It begins with a blank; nothing where nothing need be told.

    Examples
    --------
    >>> write_conditions((INDEPENDENT_ERRORS, JUDGEMENTS))
    ' if errors do not depend on features and the labels are judgements, not outcomes of chance'
    """
    told = {
        INDEPENDENT_ERRORS: INDEPENDENT_ERRORS,
        JUDGEMENTS: "the labels are judgements, not outcomes of chance",
        GIVEN_NOISE: "the noise that was given is right",
    }
    clauses = [words for phrase, words in told.items() if phrase in rests_on]
    return f" if {' and '.join(clauses)}" if clauses else ""
