"""Charts as inline SVG. Numbers in, text out; colours are classes of the style sheet, so that they follow the page."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from untwist.report.markup import Interval, clipped, shown

__all__ = ["Point", "calibration", "curve", "finds", "intervals", "pairs", "waffle"]

MOST_SIGNS = 18  # of a name
WIDTH = 400  # a chart fills a phone as it is, and stands beside another on a desk
Point = tuple[float, float]


@dataclass(frozen=True)
class _Frame:
    """The area of a chart, and where values lie in it."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int = 240
    left: int = 46
    top: int = 30
    right: int = 12
    bottom: int = 42

    def across(self, value: float) -> float:
        return self.left + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - self.left - self.right)

    def down(self, value: float) -> float:
        return (
            self.height
            - self.bottom
            - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - self.top - self.bottom)
        )

    def at(self, point: Point) -> str:
        return f"{self.across(point[0]):.1f} {self.down(point[1]):.1f}"

    def path(self, points: Sequence[Point]) -> str:
        return "M" + "L".join(map(self.at, points))

    def axes(self, x_words: str, y_words: str, x_form: Callable[[float], str], y_form: Callable[[float], str]) -> str:
        """Lines at round values, their numbers, and what they are."""
        parts, end = [], WIDTH - self.right
        for value in _ticks(*self.y):
            at = self.down(value)
            parts.append(f'<path class=grid d="M{self.left} {at:.1f}H{end}"/>')
            parts.append(
                f'<text class=tick x="{self.left - 8}" y="{at + 4:.1f}" text-anchor="end">{y_form(value)}</text>'
            )
        for value in _ticks(*self.x):
            at, low = self.across(value), self.height - self.bottom
            parts.append(f'<text class=tick x="{at:.1f}" y="{low + 17}" text-anchor="middle">{x_form(value)}</text>')
        parts.append(f'<text class=axis x="{end}" y="{self.height - 6}" text-anchor="end">{x_words}</text>')
        parts.append(f'<text class=axis x="{self.left - 38}" y="13">{y_words}</text>')
        return "".join(parts)


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values between two."""
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * size for size in (1, 2, 2.5, 5, 10) if unit * size >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * i, 12) for i in range(first, last + 1)]


def _svg(height: float, words: str, *parts: str) -> str:
    label = html.escape(words, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role=img aria-label="{label}">{"".join(parts)}</svg>'


def _percent(value: float) -> str:
    return f"{100 * value:g}%"


def _room(names: Iterable[str]) -> int:
    """The width that names take."""
    return 18 + 8 * max(len(clipped(name, MOST_SIGNS)) for name in names)


def curve(values: Sequence[float], kept: int, y_words: str, words: str, *, share: bool = False) -> str:
    """A value after each round, and the round up to which they were kept."""
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.05 * max(abs(high), 1e-3)
    frame = _Frame((1, max(len(values), 2)), (max(0.0, low - room), high + room))
    points = [(float(i + 1), value) for i, value in enumerate(values)]
    x, y = frame.across(kept), frame.down(values[kept - 1])
    anchor, beside = ("end", -9) if x > WIDTH / 2 else ("start", 9)
    return _svg(
        frame.height,
        words,
        frame.axes("rounds of boosting", y_words, "{:g}".format, _percent if share else "{:g}".format),
        f'<path class=mark d="M{x:.1f} {frame.top}V{frame.height - frame.bottom}"/>',
        f'<path class="line clean" d="{frame.path(points)}"/>',
        f'<circle class="dot clean" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>',
        f'<text class=note x="{x + beside:.1f}" y="{frame.top + 11}" text-anchor="{anchor}">kept: {kept}</text>',
    )


def calibration(
    bins: Sequence[tuple[float, Interval]], clean: Sequence[Point], rows: Sequence[float], words: str
) -> str:
    """Shares of labels over what was predicted, with their intervals; the clean posterior; how many rows lie where."""
    frame = _Frame((0.0, 1.0), (0.0, 1.0), height=372, top=58)
    most, base = max([*rows, 1e-12]), frame.height - frame.bottom
    parts = [frame.axes("predicted for the labels as given", "", _percent, _percent)]
    wide = frame.across(1.0 / len(rows)) - frame.across(0.0)
    for i, share in enumerate(rows):
        left, tall = frame.across(i / len(rows)) + 0.5, max(1.0, 34 * share / most) if share > 0 else 0.0
        size = f'width="{wide - 1:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class=rows x="{left:.1f}" y="{base - tall:.1f}" {size}/>')
    parts.append(f'<path class=diagonal d="{frame.path([(0, 0), (1, 1)])}"/>')
    parts.append(f'<path class="line clean" d="{frame.path(clean)}"/>')
    for said, (share, low, high) in bins:
        x = frame.across(said)
        parts.append(f'<path class="whisker noisy" d="M{x:.1f} {frame.down(low):.1f}V{frame.down(high):.1f}"/>')
        parts.append(f'<circle class="dot noisy" cx="{x:.1f}" cy="{frame.down(share):.1f}" r="4"/>')
    parts += [
        '<circle class="dot noisy" cx="14" cy="11" r="4"/><path class="line clean" d="M6 32H22"/>',
        '<text class=note x="28" y="15">labels as given, counted</text>',
        '<text class=note x="28" y="36">the truth behind them, untwisted</text>',
    ]
    return _svg(frame.height, words, *parts)


def finds(found: Sequence[Point], by_chance: float, marked: int, words: str) -> str:
    """How many wrong labels turn up after so many rows, worst first, and in any order."""
    last = found[-1]
    frame = _Frame((0.0, last[0]), (0.0, max(last[1], 1.0) * 1.06))
    area = f"{frame.path(found)}L{frame.at((last[0], 0))}L{frame.at((0, 0))}Z"
    parts = [
        f'<path class="area noisy" d="{area}"/>',
        frame.axes("rows reviewed, the worst first", "wrong labels found", "{:,.0f}".format, "{:,.0f}".format),
        f'<path class=diagonal d="{frame.path([(0, 0), (last[0], by_chance * last[0])])}"/>',
        f'<path class="line noisy" d="{frame.path(found)}"/>',
    ]
    at = max(found, key=lambda point: (point[0] <= marked, point[0] if point[0] <= marked else 0))
    if marked:
        x, y = frame.across(at[0]), frame.down(at[1])
        parts.append(f'<path class=mark d="M{x:.1f} {y:.1f}V{frame.height - frame.bottom}"/>')
        parts.append(f'<circle class="dot noisy" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    x, y = frame.across(last[0]), frame.down(by_chance * last[0])
    parts.append(f'<text class=axis x="{x:.1f}" y="{y - 6:.1f}" text-anchor="end">in any order</text>')
    return _svg(frame.height, words, *parts)


def intervals(rows: Sequence[tuple[str, Interval]], overall: Interval, words: str) -> str:
    """A share with its interval for each name, over that of all."""
    left, line, top = _room(name for name, _ in rows), 27, 8
    most = max(overall[2], *(high for _, (_, _, high) in rows), 0.01) * 1.04
    height = top + line * len(rows) + 40
    frame = _Frame((0.0, min(1.0, most)), (0.0, 1.0), height, left, top, 52, 36)
    low, high, base = frame.across(overall[1]), frame.across(overall[2]), height - frame.bottom
    parts = [f'<rect class=band x="{low:.1f}" y="{top}" width="{max(high - low, 1):.1f}" height="{base - top}"/>']
    for value in _ticks(*frame.x, most=4):
        x = frame.across(value)
        parts.append(f'<path class=grid d="M{x:.1f} {top}V{base}"/>')
        parts.append(f'<text class=tick x="{x:.1f}" y="{base + 17}" text-anchor="middle">{_percent(value)}</text>')
    for i, (name, (rate, lowest, highest)) in enumerate(rows):
        y = top + line * (i + 0.5)
        ends = f"M{frame.across(lowest):.1f} {y:.1f}H{frame.across(highest):.1f}"
        parts.append(
            f'<text class=name x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{shown(name, MOST_SIGNS)}</text>'
        )
        parts.append(f'<path class="whisker noisy" d="{ends}"/>')
        parts.append(f'<circle class="dot noisy" cx="{frame.across(rate):.1f}" cy="{y:.1f}" r="4.5"/>')
        parts.append(f'<text class=note x="{WIDTH}" y="{y + 4:.1f}" text-anchor="end">{rate:.1%}</text>')
    words_below = "share of wrong labels; shaded: all labels"
    parts.append(f'<text class=axis x="{WIDTH}" y="{height - 3}" text-anchor="end">{words_below}</text>')
    return _svg(height, words, *parts)


def pairs(rows: Sequence[tuple[str, float, float | None]], words: str) -> str:
    """Two bars for each name, or one where there is no second value."""
    left, two = _room(name for name, _, _ in rows), any(after is not None for _, _, after in rows)
    line = 38 if two else 26
    most = max([max(before, after or 0.0) for _, before, after in rows] + [1e-12])
    scale = (WIDTH - left - 50) / most
    top = 30 if two else 4
    parts = []
    if two:
        parts.append('<rect class="bar noisy" x="0" y="5" width="14" height="9" rx="2"/>')
        parts.append('<text class=note x="20" y="14">labels as given</text>')
        parts.append('<rect class="bar clean" x="138" y="5" width="14" height="9" rx="2"/>')
        parts.append('<text class=note x="158" y="14">suspects corrected</text>')
    for i, (name, before, after) in enumerate(rows):
        y = top + line * i
        whole = clipped(name, 200)
        tip = "" if whole == clipped(name, MOST_SIGNS) else f"<title>{html.escape(whole)}</title>"
        at = f'x="{left - 10}" y="{y + line / 2 + 2:.1f}"'
        parts.append(f'<text class=name {at} text-anchor="end">{shown(name, MOST_SIGNS)}{tip}</text>')
        bars = [("noisy", before)] if after is None else [("noisy", before), ("clean", after)]
        for kind, value in bars:
            wide = max(1.0, scale * value)
            parts.append(f'<rect class="bar {kind}" x="{left}" y="{y + 4}" width="{wide:.1f}" height="10" rx="2"/>')
            parts.append(f'<text class=tick x="{left + wide + 6:.1f}" y="{y + 13}">{value:.1%}</text>')
            y += 14
    return _svg(top + line * len(rows) + 4, words, *parts)


def waffle(rate: Interval, words: str) -> str:
    """A hundred labels: those that are wrong for sure, those that may be, and the rest."""
    low, high = math.floor(100 * rate[1] + 0.5), math.floor(100 * rate[2] + 0.5)
    parts = []
    for i in range(100):
        kind = "wrong" if i < low else "maybe" if i < high else "right"
        parts.append(f'<rect class={kind} x="{20 * (i % 10)}" y="{20 * (i // 10)}" width="16" height="16" rx="3.5"/>')
    label = html.escape(words, quote=True)
    return f'<svg class=waffle viewBox="0 0 196 196" role=img aria-label="{label}">{"".join(parts)}</svg>'
