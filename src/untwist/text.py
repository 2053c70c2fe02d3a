"""Text that comes from data, made harmless: for a terminal, for JSON on one, and for a spreadsheet."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["escaped", "printable", "unlike_a_formula"]

# What moves the cursor, turns text around, ends a line or is not seen; half of a surrogate pair; what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
)
FORMULA = re.compile(r"[=+\-@\t\r\n]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def printable(text: str) -> str:
    r"""Text that a terminal only shows, with its tabs and line ends.

    >>> printable("red \x1b[31m\r")
    'red �[31m�'
    """
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def escaped(text: str) -> str:
    """The same JSON, with what is not printable written as a number."""
    return UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def unlike_a_formula(value: Any) -> Any:
    """A cell as it is, but text that a spreadsheet would take for a formula with a quote before it.

    >>> [unlike_a_formula(one) for one in ("=1+1", "-5", "@cmd", "a=b", 7)]
    ["'=1+1", '-5', "'@cmd", 'a=b', 7]
    """
    if not isinstance(value, str) or not FORMULA.match(value) or NUMBER.fullmatch(value):
        return value
    return f"'{value}"
