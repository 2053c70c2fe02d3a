"""Text that comes from data, made harmless for where it is shown: a terminal, JSON, a spreadsheet, a page, a script.

All of them agree on which characters are dangerous: `UNSEEN`.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from typing import Any

__all__ = ["UNSEEN", "clip", "for_json", "for_page", "for_script", "for_spreadsheet", "for_terminal"]

#: Characters that move the cursor, turn text around, end a line or are not seen; halves of surrogate pairs; code points
#: that are no characters. Tabs and line feeds are not among them.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def for_terminal(text: str) -> str:
    r"""Replace what a terminal would obey instead of showing it; tabs and line ends stay.

    >>> for_terminal("red \x1b[31m\r")
    'red �[31m�'
    """
    return UNSEEN.sub(_REPLACEMENT, text)


def for_json(text: str) -> str:
    """Rewrite JSON so that every unseen character in it is an escape; it still says the same."""
    return UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def for_spreadsheet(value: Any) -> Any:
    """Put a quote before text that a spreadsheet would take for a formula; anything else stays as it is.

    The script of the report does the same to the list that it offers for download.

    >>> [for_spreadsheet(value) for value in ("=1+1", "-5", "@cmd", "a=b", 7)]
    ["'=1+1", '-5', "'@cmd", 'a=b', 7]
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def clip(value: Any, width: int = 80) -> str:
    r"""Shorten a value to one harmless line of at most so many columns; a wide character takes two.

    >>> clip("one\ntwo three", 8)
    'one two…'
    """
    beginning = str(value)[: 4 * width]
    line = for_terminal(" ".join(beginning.split())) or "(empty)"
    columns = 0
    for place, character in enumerate(line):
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns > width:
            return line[: max(place - 1, 1)].rstrip() + "…"
    return line


def for_page(value: Any, width: int | None = None) -> str:
    """Escape a value for HTML, in an element or in a quoted attribute; clip it where a width is given.

    >>> for_page("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return html.escape(for_terminal(str(value)) if width is None else clip(value, width))


def for_script(value: Any) -> str:
    r"""Write a value as JSON that can stand inside a script element: nothing in it ends the element or begins another.

    >>> for_script("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
