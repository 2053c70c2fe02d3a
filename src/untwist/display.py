"""How objects show themselves: short in a prompt, as a fragment of HTML in a notebook.

A fragment has neither script nor style sheet nor names, so that it can stand anywhere; what it takes from the page are
the font and the colour of its text, which are light in a dark notebook. Its own colours can be read on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from untwist.text import clip, for_page

__all__ = [
    "NAME_WIDTH",
    "abbreviate",
    "format_probability",
    "write_bar",
    "write_curve",
    "write_fragment",
    "write_matrix",
    "write_noise",
    "write_percent",
    "write_range",
    "write_share",
    "write_table",
]

#: Arrays of at most this many values are shown as they are.
FEW_VALUES = 6
#: Width of a value other than an array in a short form, in characters.
VALUE_WIDTH = 60
#: Width of the name of a class, or of what else comes from data, in a table, in characters.
NAME_WIDTH = 30
#: Classes that a table shows, at most.
MOST_CLASSES = 12
#: Where all shares of a matrix are smaller, even the largest has but a faint colour.
LEAST_SHADED = 0.2
#: Pixels of a bar, and of a curve.
BAR_SIZE = (120, 10)
CURVE_SIZE = (260, 90)
#: Orange and blue are told apart by the colour-blind, and stand out on white and on black.
BLUE, ORANGE = "#2f83d6", "#d9822b"
FRAME = "border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:.6em .9em;margin:.4em 0;display:inline-block"
CELL = "padding:.15em .7em .15em 0;text-align:{};border:none;background:none;color:inherit;vertical-align:middle"


def abbreviate(thing: Any) -> str:
    """Write a dataclass with its fields, large arrays by their shapes only; it serves as `__repr__`.

    Parameters
    ----------
    thing : object
        An instance of a dataclass.

    Returns
    -------
    str
        One line.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Curve:
    ...     name: str
    ...     losses: np.ndarray
    ...     __repr__ = abbreviate
    >>> Curve("validation", np.zeros((100, 2)))
    Curve(name='validation', losses=<100 x 2 values>)
    """
    shown = ", ".join(f"{field.name}={_abbreviate_value(getattr(thing, field.name))}" for field in fields(thing))
    return f"{type(thing).__name__}({shown})"


def _abbreviate_value(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > FEW_VALUES:
        return f"<{' x '.join(map(str, value.shape))} values>"
    if isinstance(value, np.ndarray):
        return clip(value.tolist(), VALUE_WIDTH)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple, dict)) and len(value) > FEW_VALUES:
        return f"<{len(value)} values>"
    return clip(repr(value), VALUE_WIDTH)


def write_fragment(title: str, words: str, *parts: str) -> str:
    """Write a framed piece of HTML.

    Parameters
    ----------
    title, words : str
        Text: a heading, and what is to be said first, in lines.
    *parts : str
        HTML that follows.

    Returns
    -------
    str
        HTML.
    """
    lines = "<br>".join(for_page(line.strip()) for line in words.splitlines())
    body = "".join(f'<div style="margin-top:.5em">{part}</div>' for part in parts if part)
    return f'<div style="{FRAME}"><div><b>{for_page(title)}</b></div><div>{lines}</div>{body}</div>'


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]], marked: int | None = None) -> str:
    """Write a table.

    Parameters
    ----------
    header : sequence of str
        Text of the first row.
    rows : sequence of sequences of str
        HTML of the cells. The first column is set to the left, the others to the right.
    marked : int or None
        The position of a row to be set in bold.

    Returns
    -------
    str
        HTML; none where there are no rows.
    """
    if not rows:
        return ""
    styles = [CELL.format("left"), *[CELL.format("right")] * (len(header) - 1)]
    line = "border:none;border-bottom:1px solid rgba(128,128,128,.4)"
    first = "".join(
        f'<th style="{style};font-weight:600">{for_page(name)}</th>' for style, name in zip(styles, header, strict=True)
    )
    lines = [f'<tr style="{line};background:none">{first}</tr>']
    for position, cells in enumerate(rows):
        weight = ";font-weight:600" if position == marked else ""
        written = "".join(f'<td style="{style}{weight}">{cell}</td>' for style, cell in zip(styles, cells, strict=True))
        lines.append(f'<tr style="border:none;background:none">{written}</tr>')
    return f'<table style="border-collapse:collapse;border:none;margin:0">{"".join(lines)}</table>'


def write_share(share: float) -> str:
    """Write a share in percent.

    Parameters
    ----------
    share : float
        From 0 to 1.

    Returns
    -------
    str
        With one digit after the point; a share above 0 is never written as none, nor one below 1 as all.

    Examples
    --------
    >>> [write_share(share) for share in (0.0, 0.0001, 0.123, 0.9999, 1.0)]
    ['0 %', 'under 0.1 %', '12.3 %', 'over 99.9 %', '100 %']
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    written = f"{100.0 * share:.1f} %"
    return {"0.0 %": "under 0.1 %", "100.0 %": "over 99.9 %"}.get(written, written)


def write_range(low: float, high: float) -> str:
    """Write the limits of a share.

    Parameters
    ----------
    low, high : float
        From 0 to 1.

    Returns
    -------
    str

    Examples
    --------
    >>> write_range(0.0, 0.25)
    '0 % to 25.0 %'
    """
    return f"{write_share(low)} to {write_share(high)}"


def write_percent(share: float, low: float | None = None, high: float | None = None) -> str:
    """Write a share, with its interval where there is one.

    Parameters
    ----------
    share : float
        The share.
    low, high : float or None
        Its limits.

    Returns
    -------
    str
        Text.

    Examples
    --------
    >>> write_percent(0.123), write_percent(0.123, 0.1, 0.2)
    ('12.3 %', '12.3 % (10.0 % to 20.0 %)')
    """
    limits = "" if low is None or high is None else f" ({write_range(low, high)})"
    return write_share(share) + limits


def write_bar(share: float, low: float | None = None, high: float | None = None, longest: float = 1.0) -> str:
    """Draw a share as a bar, and its interval as a line across the end.

    Parameters
    ----------
    share : float
        The share.
    low, high : float or None
        Its limits.
    longest : float
        The share that takes the whole width.

    Returns
    -------
    str
        SVG.
    """
    width, height = BAR_SIZE
    scale = width / (longest or 1.0)  # Where all shares are 0 there is nothing to see.
    drawn = f'<rect width="{min(share * scale, width):.1f}" height="{height}" fill="{BLUE}"/>'
    if low is not None and high is not None:
        left, right = (min(limit * scale, width) for limit in (low, high))
        drawn += f'<path d="M{left:.1f} {height / 2}H{right:.1f}" stroke="{ORANGE}" stroke-width="2"/>'
    words = for_page(write_percent(share, low, high))
    return f'<svg width="{width}" height="{height}" role="img" aria-label="{words}">{drawn}</svg>'


def write_matrix(names: Sequence[Any], matrix: np.ndarray, corner: str) -> str:
    """Write a table of shares, the cells off the diagonal the more coloured the larger they are.

    Parameters
    ----------
    names : sequence
        What rows and columns are called.
    matrix : array of shape (n_names, n_names)
        The shares.
    corner : str
        Text of the first cell.

    Returns
    -------
    str
        HTML.
    """
    written = [for_page(name, NAME_WIDTH) for name in names]
    highest = max(float(np.max(matrix - np.diag(np.diag(matrix)), initial=0.0)), LEAST_SHADED)
    rows = []
    for position, name in enumerate(written):
        cells = [f"<b>{name}</b>"]
        for label, share in enumerate(matrix[position].tolist()):
            shade = 0.0 if label == position else 0.6 * share / highest
            style = f"display:block;padding:0 .3em;background:rgba(217,130,43,{shade:.2f})"
            cells.append(f'<span style="{style}">{write_share(share)}</span>')
        rows.append(cells)
    return write_table([corner, *(clip(name, NAME_WIDTH) for name in names)], rows)


def write_curve(points: Sequence[tuple[float, float]], words: str) -> str:
    """Draw a rising curve from (0, 0) with the area below it.

    Parameters
    ----------
    points : sequence of pairs of float
        The curve, from left to right.
    words : str
        Text that says what it shows, below it.

    Returns
    -------
    str
        HTML; none where there is nothing to draw.
    """
    across, up = (max((point[axis] for point in points), default=0.0) for axis in (0, 1))
    if across <= 0 or up <= 0:
        return ""
    width, height = CURVE_SIZE
    path = "L".join(f"{x / across * width:.1f} {height - y / up * (height - 2):.1f}" for x, y in points)
    drawn = (
        f'<path d="M{path}L{width} {height}Z" fill="{BLUE}" fill-opacity=".25"/>'
        f'<path d="M{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>'
        f'<path d="M0 {height}H{width}" stroke="currentColor" stroke-opacity=".5"/>'
    )
    image = f'<svg width="{width}" height="{height}" role="img" aria-label="{for_page(words)}">{drawn}</svg>'
    return f'{image}<div style="font-size:.9em;opacity:.8">{for_page(words)}</div>'


def write_noise(
    words: str, classes: Sequence[Any], rates: Sequence[tuple[float, float, float]], matrix: np.ndarray
) -> str:
    """Write how noisy labels are.

    Parameters
    ----------
    words : str
        The same in words.
    classes : sequence
        What the classes are called.
    rates : sequence of tuples
        For each true class the share that bears another label, with its limits.
    matrix : array of shape (n_classes, n_classes)
        The transition matrix, shown where there are more than two classes, and not too many.

    Returns
    -------
    str
        HTML.
    """
    longest = max((high for *_, high in rates), default=1.0)
    rows = [
        [f"<b>{for_page(name, NAME_WIDTH)}</b>", write_percent(*rate), write_bar(*rate, longest=longest)]
        for name, rate in list(zip(classes, rates, strict=True))[:MOST_CLASSES]
    ]
    parts = [write_table(["true class", "labelled otherwise", ""], rows)]
    if 2 < len(classes) <= MOST_CLASSES:
        parts.append(write_matrix(classes, matrix, "truth \\ label"))
    if len(classes) > MOST_CLASSES:
        parts.append(f"and {len(classes) - MOST_CLASSES} more classes: see .matrix")
    return write_fragment("Label noise", words, *parts)


def format_probability(probability: float) -> str:
    """Write a probability in percent that does not claim certainty.

    Parameters
    ----------
    probability : float
        From 0 to 1.

    Returns
    -------
    str
        Plain text.
    """
    return "over 99 %" if probability > 0.99 else "under 1 %" if probability < 0.01 else f"{100.0 * probability:.0f} %"
