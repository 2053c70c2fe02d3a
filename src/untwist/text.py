"""Text that comes from data, made harmless for where it is shown: a terminal, JSON, a spreadsheet, a page, a script.

All of them agree on which characters are dangerous: `UNSEEN`.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from typing import Any

__all__ = ["UNSEEN", "clip", "for_json", "for_page", "for_script", "for_spreadsheet", "for_terminal", "name_column"]

#: Characters that move the cursor, turn text around, end a line or are not seen; halves of surrogate pairs; code points
#: that are no characters. Tabs and line feeds are not among them.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)
#: What unseen characters are replaced by.
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
#: How text begins that a spreadsheet may take for a formula.
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
#: A number, which is no formula though it may begin like one.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def for_terminal(text: str) -> str:
    r"""Replace what a terminal would obey instead of showing it; tabs and line ends stay.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The text with a replacement character for each unseen one.

    Examples
    --------
    >>> for_terminal("red \x1b[31m\r")
    'red �[31m�'
    """
    return UNSEEN.sub(_REPLACEMENT, text)


def for_json(text: str) -> str:
    """Rewrite JSON so that every unseen character in it is an escape; it still says the same.

    Parameters
    ----------
    text : str
        JSON.

    Returns
    -------
    str
        JSON.
    """
    return UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def for_spreadsheet(value: Any) -> Any:
    """Put a quote before text that a spreadsheet would take for a formula; anything else stays as it is.

    The script of the report does the same to the list that it offers for download.

    Parameters
    ----------
    value : object
        A cell.

    Returns
    -------
    object
        The cell, made harmless.

    Examples
    --------
    >>> [for_spreadsheet(value) for value in ("=1+1", "-5", "@cmd", "a=b", 7)]
    ["'=1+1", '-5', "'@cmd", 'a=b', 7]
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def clip(value: Any, width: int = 80) -> str:
    r"""Shorten a value to one harmless line.

    Parameters
    ----------
    value : object
        Anything that can be written as text.
    width : int
        Columns of a terminal that the line may take; a wide character takes two.

    Returns
    -------
    str
        The line, with an ellipsis at its end where it was cut.

    Examples
    --------
    >>> clip("one\ntwo three", 8)
    'one two…'
    """
    beginning = str(value)[: 4 * width]
    line = for_terminal(" ".join(beginning.split())) or "(empty)"
    columns = 0
    for position, character in enumerate(line):
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns > width:
            return line[: max(position - 1, 1)].rstrip() + "…"
    return line


def for_page(value: Any, width: int | None = None) -> str:
    """Escape a value for HTML, in an element or in a quoted attribute.

    Parameters
    ----------
    value : object
        Anything that can be written as text.
    width : int or None
        Columns to which `clip` shortens it; None leaves it as long as it is.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> for_page("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return html.escape(for_terminal(str(value)) if width is None else clip(value, width))


def for_script(value: Any) -> str:
    r"""Write a value as JSON that can stand inside a script element: nothing in it ends the element or begins another.

    Parameters
    ----------
    value : object
        What JSON can hold.

    Returns
    -------
    str
        JSON.

    Examples
    --------
    >>> for_script("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def name_column(column: Any) -> str:
    """Name a column for people; those of an array have numbers only, and those of a frame may have an empty name.

    Parameters
    ----------
    column : object
        Its name or its number.

    Returns
    -------
    str
        Plain text.

    Examples
    --------
    >>> [name_column(column) for column in (3, "age", "")]
    ['column 3', 'age', '(no name)']
    """
    return f"column {column}" if isinstance(column, int) else str(column) if str(column).strip() else "(no name)"
