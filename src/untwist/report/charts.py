"""Charts as inline SVG, for the report and for the pages of the experiments.

Numbers in, text out. Colours are classes of the style sheet, so that charts follow the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from untwist.audit.calibration import Point
from untwist.audit.judging import Interval
from untwist.display import write_share
from untwist.text import clip, for_page

__all__ = [
    "Frame",
    "draw_calibration",
    "draw_curve",
    "draw_finds",
    "draw_intervals",
    "draw_shares",
    "draw_waffle",
    "find_ticks",
    "format_share",
    "write_svg",
]

#: Columns of text that a name in a chart takes at most.
NAME_WIDTH = 18
#: A chart of this width fills a phone as it is, and stands beside another on a desk.
WIDTH = 400


@dataclass(frozen=True)
class Frame:
    """The area of a chart with its margins, and where values lie in it.

    Parameters
    ----------
    x, y : tuple of float
        The values at the left and right ends, and at the lower and upper ends.
    height, width : int
        The size of the chart.
    left, top, right, bottom : int
        The margins.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    height: int = 240
    left: int = 46
    top: int = 30
    right: int = 12
    bottom: int = 42
    width: int = WIDTH

    def place_x(self, value: float) -> float:
        """Find how far to the right a value lies.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        float
        """
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + share * (self.width - self.left - self.right)

    def place_y(self, value: float) -> float:
        """Find how far down a value lies.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        float
        """
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)

    def place(self, point: Point) -> str:
        """Write where a point lies.

        Parameters
        ----------
        point : Point
            Values across and up.

        Returns
        -------
        str
            Two numbers of an SVG path.
        """
        return f"{self.place_x(point[0]):.1f} {self.place_y(point[1]):.1f}"

    def trace(self, points: Iterable[Point]) -> str:
        """Write the path through points.

        Parameters
        ----------
        points : iterable of Point
            Values across and up.

        Returns
        -------
        str
            An SVG path.
        """
        return "M" + "L".join(map(self.place, points))

    def draw_axes(
        self, x_words: str, y_words: str, format_x: Callable[[float], str], format_y: Callable[[float], str]
    ) -> str:
        """Draw lines at round values with their numbers, and say what is shown.

        Parameters
        ----------
        x_words, y_words : str
            What is shown across and up.
        format_x, format_y : callable
            They write a value as text.

        Returns
        -------
        str
            SVG.
        """
        end = self.width - self.right
        low = self.height - self.bottom
        parts = []
        for value in find_ticks(*self.y):
            y = self.place_y(value)
            parts.append(f'<path class=grid d="M{self.left} {y:.1f}H{end}"/>')
            parts.append(
                f'<text class=tick x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{format_y(value)}</text>'
            )
        for value in find_ticks(*self.x):
            x = self.place_x(value)
            parts.append(f'<text class=tick x="{x:.1f}" y="{low + 17}" text-anchor="middle">{format_x(value)}</text>')
        parts.append(f'<text class=axis x="{end}" y="{self.height - 6}" text-anchor="end">{x_words}</text>')
        parts.append(f'<text class=axis x="{self.left - 38}" y="13">{y_words}</text>')
        return "".join(parts)


def find_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Find round values between two.

    Parameters
    ----------
    low, high : float
        The two.
    most : int
        Steps between them, at most.

    Returns
    -------
    list of float
    """
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * size for size in (1, 2, 2.5, 5, 10) if unit * size >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * i, 12) for i in range(first, last + 1)]


def write_svg(height: float, words: str, *parts: str, width: int = WIDTH, kind: str = "") -> str:
    """Write parts as one picture.

    Parameters
    ----------
    height : float
        The height of the picture.
    words : str
        What describes the chart to whoever cannot see it.
    *parts : str
        SVG.
    width : int
        The width of the picture.
    kind : str
        Its class in the style sheet.

    Returns
    -------
    str
        SVG.
    """
    attribute = f" class={kind}" if kind else ""
    return (
        f'<svg{attribute} viewBox="0 0 {width} {height:g}" role=img aria-label="{for_page(words)}">'
        f"{''.join(parts)}</svg>"
    )


def format_share(value: float) -> str:
    """Write a share in percent.

    Parameters
    ----------
    value : float
        The share, from 0 to 1.

    Returns
    -------
    str
        Plain text.
    """
    return f"{100 * value:g} %"


def draw_curve(values: Sequence[float], kept: int, y_words: str, words: str, *, share: bool = False) -> str:
    """Draw a value after each round, and the round up to which they were kept.

    Parameters
    ----------
    values : sequence of float
        The value after each round.
    kept : int
        The number of rounds that were kept.
    y_words : str
        What the values are.
    words : str
        What describes the chart to whoever cannot see it.
    share : bool
        Whether the values are shares, to be written in percent.

    Returns
    -------
    str
        SVG.
    """
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.05 * max(abs(high), 1e-3)
    frame = Frame((1, max(len(values), 2)), (max(0.0, low - room), high + room))
    points = [(float(i + 1), value) for i, value in enumerate(values)]
    x = frame.place_x(kept)
    y = frame.place_y(values[kept - 1])
    anchor, beside = ("end", -9) if x > WIDTH / 2 else ("start", 9)
    return write_svg(
        frame.height,
        words,
        frame.draw_axes("rounds of boosting", y_words, "{:g}".format, format_share if share else "{:g}".format),
        f'<path class=mark d="M{x:.1f} {frame.top}V{frame.height - frame.bottom}"/>',
        f'<path class="line clean" d="{frame.trace(points)}"/>',
        f'<circle class="dot clean" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>',
        f'<text class=note x="{x + beside:.1f}" y="{frame.top + 11}" text-anchor="{anchor}">kept: {kept}</text>',
    )


def draw_calibration(
    bins: Sequence[tuple[float, Interval]], clean: Sequence[Point], rows: Sequence[float], words: str
) -> str:
    """Draw shares of labels over what was predicted, with intervals; the clean posterior; how many rows lie where.

    Parameters
    ----------
    bins : sequence of tuples
        For each group of rows what was predicted, and the share of labels with its interval.
    clean : sequence of Point
        The curve of the clean posterior; empty to leave it out.
    rows : sequence of float
        The share of rows in bins of the prediction from 0 to 1.
    words : str
        What describes the chart to whoever cannot see it.

    Returns
    -------
    str
        SVG.
    """
    frame = Frame((0.0, 1.0), (0.0, 1.0), height=372, top=58)
    most = max([*rows, 1e-12])
    base = frame.height - frame.bottom
    parts = [frame.draw_axes("predicted for the labels as given", "", format_share, format_share)]
    wide = frame.place_x(1.0 / len(rows)) - frame.place_x(0.0)
    for i, share in enumerate(rows):
        left = frame.place_x(i / len(rows)) + 0.5
        tall = max(1.0, 34 * share / most) if share > 0 else 0.0
        size = f'width="{wide - 1:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class=rows x="{left:.1f}" y="{base - tall:.1f}" {size}/>')
    parts.append(f'<path class=diagonal d="{frame.trace([(0, 0), (1, 1)])}"/>')
    if clean:
        parts.append(f'<path class="line clean" d="{frame.trace(clean)}"/>')
        parts.append('<path class="line clean" d="M6 32H22"/>')
        parts.append('<text class=note x="28" y="36">the truth behind them, untwisted</text>')
    for said, (share, low, high) in bins:
        x = frame.place_x(said)
        parts.append(f'<path class="whisker noisy" d="M{x:.1f} {frame.place_y(low):.1f}V{frame.place_y(high):.1f}"/>')
        parts.append(f'<circle class="dot noisy" cx="{x:.1f}" cy="{frame.place_y(share):.1f}" r="4"/>')
    parts += [
        '<circle class="dot noisy" cx="14" cy="11" r="4"/>',
        '<text class=note x="28" y="15">labels as given, counted</text>',
    ]
    return write_svg(frame.height, words, *parts)


def draw_finds(found: Sequence[Point], by_chance: float, marked: int, words: str) -> str:
    """Draw how many wrong labels a review finds, the worst rows first, and in any order.

    Parameters
    ----------
    found : sequence of Point
        Rows reviewed, and wrong labels found among them.
    by_chance : float
        Wrong labels found in each row of a review in any order.
    marked : int
        The number of rows at which the curve has a dot; none at 0.
    words : str
        What describes the chart to whoever cannot see it.

    Returns
    -------
    str
        SVG.
    """
    last = found[-1]
    frame = Frame((0.0, last[0]), (0.0, max(last[1], 1.0) * 1.06))
    area = f"{frame.trace(found)}L{frame.place((last[0], 0))}L{frame.place((0, 0))}Z"
    parts = [
        f'<path class="area noisy" d="{area}"/>',
        frame.draw_axes("rows reviewed, the worst first", "wrong labels found", "{:,.0f}".format, "{:,.0f}".format),
        f'<path class=diagonal d="{frame.trace([(0, 0), (last[0], by_chance * last[0])])}"/>',
        f'<path class="line noisy" d="{frame.trace(found)}"/>',
    ]
    at = max(found, key=lambda point: (point[0] <= marked, point[0] if point[0] <= marked else 0))
    if marked:
        x = frame.place_x(at[0])
        y = frame.place_y(at[1])
        parts.append(f'<path class=mark d="M{x:.1f} {y:.1f}V{frame.height - frame.bottom}"/>')
        parts.append(f'<circle class="dot noisy" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    x = frame.place_x(last[0])
    y = frame.place_y(by_chance * last[0])
    parts.append(f'<text class=axis x="{x:.1f}" y="{y - 6:.1f}" text-anchor="end">in any order</text>')
    return write_svg(frame.height, words, *parts)


def draw_intervals(
    rows: Sequence[tuple[str, Interval]],
    words: str,
    *,
    x_words: str,
    band: Interval | None = None,
) -> str:
    """Draw a share with its interval for each name.

    Parameters
    ----------
    rows : sequence of tuples
        For each line its name and its share.
    words : str
        What describes the chart to whoever cannot see it.
    x_words : str
        What the shares are.
    band : Interval, optional
        A share whose interval is shaded.

    Returns
    -------
    str
        SVG.
    """
    left = 18 + 8 * max(len(clip(name, NAME_WIDTH)) for name, _ in rows)
    line = 27
    top = 8
    limits = [high for _, (_, _, high) in rows] + ([] if band is None else [band[2]])
    most = max(*limits, 0.01) * 1.04
    height = top + line * len(rows) + 40
    frame = Frame((0.0, min(1.0, most)), (0.0, 1.0), height, left, top, 52, 36)
    base = height - frame.bottom
    parts = []
    if band is not None:
        low = frame.place_x(band[1])
        wide = max(frame.place_x(band[2]) - low, 1)
        parts.append(f'<rect class=band x="{low:.1f}" y="{top}" width="{wide:.1f}" height="{base - top}"/>')
    for value in find_ticks(*frame.x, most=4):
        x = frame.place_x(value)
        parts.append(f'<path class=grid d="M{x:.1f} {top}V{base}"/>')
        parts.append(f'<text class=tick x="{x:.1f}" y="{base + 17}" text-anchor="middle">{format_share(value)}</text>')
    for i, (name, (rate, lowest, highest)) in enumerate(rows):
        y = top + line * (i + 0.5)
        ends = f"M{frame.place_x(lowest):.1f} {y:.1f}H{frame.place_x(min(highest, frame.x[1])):.1f}"
        parts.append(
            f'<text class=name x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{for_page(name, NAME_WIDTH)}</text>'
        )
        parts.append(f'<path class="whisker noisy" d="{ends}"/>')
        parts.append(f'<circle class="dot noisy" cx="{frame.place_x(rate):.1f}" cy="{y:.1f}" r="4.5"/>')
        parts.append(f'<text class=note x="{WIDTH}" y="{y + 4:.1f}" text-anchor="end">{write_share(rate)}</text>')
    parts.append(f'<text class=axis x="{WIDTH}" y="{height - 3}" text-anchor="end">{x_words}</text>')
    return write_svg(height, words, *parts)


def draw_shares(rows: Sequence[tuple[str, float]], words: str) -> str:
    """Draw a bar for each name.

    Parameters
    ----------
    rows : sequence of tuples
        The share of each name.
    words : str
        What describes the chart to whoever cannot see it.

    Returns
    -------
    str
        SVG.
    """
    left = 18 + 8 * max(len(clip(name, NAME_WIDTH)) for name, _ in rows)
    scale = (WIDTH - left - 50) / max([share for _, share in rows] + [1e-12])
    line, top, parts = 26, 4, []
    for i, (name, share) in enumerate(rows):
        y = top + line * i
        whole = clip(name, 200)
        tip = "" if whole == clip(name, NAME_WIDTH) else f"<title>{for_page(whole)}</title>"
        at = f'x="{left - 10}" y="{y + line / 2 + 2:.1f}"'
        wide = max(1.0, scale * share)
        parts.append(f'<text class=name {at} text-anchor="end">{for_page(name, NAME_WIDTH)}{tip}</text>')
        parts.append(f'<rect class="bar noisy" x="{left}" y="{y + 4}" width="{wide:.1f}" height="10" rx="2"/>')
        parts.append(f'<text class=tick x="{left + wide + 6:.1f}" y="{y + 13}">{write_share(share)}</text>')
    return write_svg(top + line * len(rows) + 4, words, *parts)


def draw_waffle(rate: Interval, words: str) -> str:
    """Draw a hundred labels: those that are wrong for sure, those that may be, and the rest.

    Parameters
    ----------
    rate : Interval
        The share of wrong labels.
    words : str
        What describes the chart to whoever cannot see it.

    Returns
    -------
    str
        SVG.
    """
    low = math.floor(100 * rate[1] + 0.5)
    high = math.floor(100 * rate[2] + 0.5)
    parts = []
    for i in range(100):
        kind = "wrong" if i < low else "maybe" if i < high else "right"
        parts.append(f'<rect class={kind} x="{20 * (i % 10)}" y="{20 * (i // 10)}" width="16" height="16" rx="3.5"/>')
    return write_svg(196, words, *parts, width=196, kind="waffle")
