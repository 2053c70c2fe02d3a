"""Figures as plain data, and the one place that draws them: as SVG for a page, as PNG for a document.

Nothing here computes results. Drawing needs matplotlib, which is imported only then and whose settings stay untouched.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from untwist.arguments import Array, check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["Bars", "Boxes", "Figure", "Heat", "Line", "Lines", "Mark", "Panel", "draw_png", "draw_svg"]

#: The width of a panel, in inches.
WIDTH = 3.3
#: The height of a panel, in inches.
HEIGHT = 2.5
#: Dots per inch of a PNG file.
DPI = 200
#: The colours of Okabe and Ito, without yellow.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#999999",
    "#000000",
)
DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.2)), (0, (4, 1.2, 1, 1.2)), (0, (1, 1)), (0, (4, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX"
#: The look of a line without a label is black and solid.
NAMELESS = 15
GREY = "#666666"
#: Settings of matplotlib. DejaVu Sans comes with it; a browser may know only the second family. Mathematics is not
#: parsed, as a feature may be called a$b; text in SVG stays text, which is small and can be searched and read out.
STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "grid.color": "#e0e0e0",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "figure.constrained_layout.h_pad": 0.05,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.wspace": 0.03,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "legend.columnspacing": 1.4,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "untwist",
}


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with a band from `low` to `high` if given; a label has the same look in all panels of a figure.

    A line with an empty label is not in the legend.
    """

    label: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None
    dashed: bool = False
    marker: bool = False
    ours: bool = False


@dataclass(frozen=True, eq=False)
class Mark:
    """A thin straight line for reference, across the whole panel."""

    at: float
    label: str = ""
    vertical: bool = False


@dataclass(frozen=True, eq=False)
class Lines:
    """A panel of curves."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Boxes:
    """A panel of box plots: median orange, mean a green triangle, whiskers to 1.5 box heights, circles beyond."""

    title: str
    y_label: str
    boxes: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Bars:
    """A panel of grouped bars: at every name one bar of each group."""

    title: str
    y_label: str
    names: tuple[str, ...]
    bars: Mapping[str, Array]
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Heat:
    """A panel of coloured cells with their numbers, values[i, j] at y[i] (from the top) and x[j]."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[str | float]
    y: Sequence[str | float]
    values: Array
    digits: int = 3


Panel = Lines | Boxes | Bars | Heat


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels under one title, at most `columns` in a row.

    `name` is the stem of its files; the caption is printed by whoever shows the figure.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 2

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][\w-]*", self.name):
            raise ValueError(f"name must be letters, digits and dashes, got {self.name!r}")
        check_count("columns", self.columns)
        if not self.panels:
            raise ValueError(f"panels must not be empty, in figure {self.name!r}")


def draw_svg(figure: Figure) -> str:
    """Draw a figure as an SVG element that needs nothing else and gets along with others on one page."""
    text = _save(figure, "svg", dict.fromkeys(("Creator", "Date", "Format", "Type"))).decode()
    return _make_self_contained(text, figure)


def draw_png(figure: Figure) -> bytes:
    """Draw a figure as a PNG file of 200 dpi."""
    return _save(figure, "png", {"Software": None})


def _save(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ValueError("figures need matplotlib: pip install matplotlib") from error
    out = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # The figure is the same whatever settings the user has.
        mpl.rcParams.update(STYLE)
        _lay_out(figure).savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def _lay_out(figure: Figure) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    columns = min(figure.columns, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    sizes = [_measure(panel) for panel in figure.panels]
    width = columns * max(w for w, _ in sizes)
    height = rows * max(h for _, h in sizes)
    labels = list(dict.fromkeys(label for label in _list_labels(figure.panels) if label))
    looks = {label: i for i, label in enumerate(labels)}
    fit = max(1, int(72 * width / (35 + 4.4 * max(map(len, labels), default=0))))  # Labels that fit a row.
    legend_rows = math.ceil(len(labels) / fit)
    title = textwrap.fill(figure.title, int(72 * width / 5.6))
    height += 0.18 * (title.count("\n") + 1) + 0.17 * legend_rows

    canvas = Canvas(figsize=(width, height), layout="constrained")
    canvas.suptitle(title, fontsize=9, fontweight="bold")
    handles: dict[str, Any] = {}
    for i, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(rows, columns, i + 1)
        axes.set_title(textwrap.fill(panel.title, 48), pad=14 if _has_mark_above(panel) else 6)
        handles |= _draw(axes, panel, looks)
    if shown := [label for label in labels if label in handles]:
        across = math.ceil(len(shown) / legend_rows)
        canvas.legend([handles[label] for label in shown], shown, loc="outside lower center", ncols=across)
    return canvas


def _measure(panel: Panel) -> tuple[float, float]:
    """Width and height in inches: more where many names, or long ones, need it."""
    match panel:
        case Bars():
            return max(WIDTH, 0.6 + 0.16 * len(panel.names)), HEIGHT + 0.045 * max(map(len, panel.names), default=0)
        case Boxes():
            longest = max((len(word) for name in panel.boxes for word in name.split()), default=0)
            return max(WIDTH, 0.6 + len(panel.boxes) * max(0.54, 0.1 + 0.06 * longest)), HEIGHT
        case Heat():
            return max(WIDTH, 1.2 + 0.4 * len(panel.x)), max(HEIGHT, 0.9 + 0.22 * len(panel.y))
        case Lines():
            return WIDTH, HEIGHT


def _list_labels(panels: Iterable[Panel]) -> Iterable[str]:
    for panel in panels:
        if isinstance(panel, Lines):
            yield from (line.label for line in panel.lines)
        elif isinstance(panel, Bars):
            yield from panel.bars


def _has_mark_above(panel: Panel) -> bool:
    return isinstance(panel, Lines) and any(mark.vertical and mark.label for mark in panel.marks)


def _draw(axes: Axes, panel: Panel, looks: dict[str, int]) -> dict[str, Any]:
    """What the legend needs, by label."""
    if not _has_data(panel):
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no data", ha="center", va="center", color=GREY, transform=axes.transAxes)
        return {}
    axes.set_ylabel(panel.y_label)
    match panel:
        case Lines():
            return _draw_lines(axes, panel, looks)
        case Bars():
            return _draw_bars(axes, panel, looks)
        case Boxes():
            _draw_boxes(axes, panel)
        case Heat():
            _draw_heat(axes, panel)
    return {}


def _has_data(panel: Panel) -> bool:
    match panel:
        case Lines():
            values: Iterable[Any] = [np.add(*_find_points(line, panel.log_x)) for line in panel.lines]
        case Boxes():
            values = panel.boxes.values()
        case Bars():
            values = panel.bars.values()
        case Heat():
            values = [panel.values]
    return any(np.isfinite(np.asarray(each, dtype=float)).any() for each in values)


def _draw_lines(axes: Axes, panel: Lines, looks: dict[str, int]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for line in panel.lines:
        i = looks.get(line.label, NAMELESS)
        x, y = _find_points(line, panel.log_x)
        colour = COLOURS[i % len(COLOURS)]
        # A marker tells a line apart, or else its dashes do.
        dash = (0, (3, 2)) if line.dashed else DASHES[0 if line.marker else i % len(DASHES)]
        (handles[line.label],) = axes.plot(
            x,
            y,
            color=colour,
            linestyle=dash,
            linewidth=2.4 if line.ours else 1.3,
            marker=MARKERS[i % len(MARKERS)] if line.marker else None,
            markersize=4,
            markevery=max(1, x.size // 12),
            zorder=3 if line.ours else 2,
        )
        if line.low is not None and line.high is not None:
            axes.fill_between(
                x, _drop_infinite(line.low), _drop_infinite(line.high), color=colour, alpha=0.18, linewidth=0
            )
    for mark in panel.marks:
        _draw_mark(axes, mark)
    axes.set_xlabel(panel.x_label)
    axes.grid(True, axis="y")
    if panel.log_x:
        _set_log_ticks(axes, np.concatenate([_find_points(line, True)[0] for line in panel.lines]))
    if panel.y_range is not None:
        axes.set_ylim(panel.y_range)
    return handles


def _draw_mark(axes: Axes, mark: Mark) -> None:
    look: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (2, 2)), "zorder": 1}
    if mark.vertical:
        axes.axvline(mark.at, **look)
        where: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axes.text(mark.at, 1.01, mark.label, color=GREY, fontsize=7, **where)
    else:
        axes.axhline(mark.at, **look)
        where = {"transform": axes.get_yaxis_transform(), "ha": "left", "va": "center"}
        axes.text(1.01, mark.at, mark.label, color=GREY, fontsize=7, **where)


def _set_log_ticks(axes: Axes, x: Array) -> None:
    """Plain numbers at 1, 2 and 5 of each decade; at 1 alone when there are many decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    wide = np.nanmax(x) > 500 * np.nanmin(x)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _draw_boxes(axes: Axes, panel: Boxes) -> None:
    values = [np.asarray(box, dtype=float).ravel() for box in panel.boxes.values()]
    thin = {"linewidth": 0.8}
    axes.boxplot(
        [box[np.isfinite(box)] for box in values],
        widths=0.55,
        showmeans=True,
        boxprops=thin,
        whiskerprops=thin,
        capprops=thin,
        medianprops={"color": COLOURS[4], "linewidth": 1.6},
        meanprops={"marker": "^", "markerfacecolor": COLOURS[2], "markeredgecolor": COLOURS[2], "markersize": 4.5},
        flierprops={"marker": "o", "markersize": 3.5, "markeredgewidth": 0.7},
    )
    names = [textwrap.fill(name, 9, break_long_words=False) for name in panel.boxes]
    axes.set_xticks(range(1, len(names) + 1), names)
    axes.grid(True, axis="y")


def _draw_bars(axes: Axes, panel: Bars, looks: dict[str, int]) -> dict[str, Any]:
    width, at = 0.8 / len(panel.bars), np.arange(len(panel.names))
    handles = {}
    for i, (label, heights) in enumerate(panel.bars.items()):
        offset = (i - (len(panel.bars) - 1) / 2) * width
        colour = COLOURS[looks.get(label, NAMELESS) % len(COLOURS)]
        handles[label] = axes.bar(at + offset, np.nan_to_num(_drop_infinite(heights)), width, color=colour)
    axes.set_xticks(at, panel.names, rotation=55, ha="right", rotation_mode="anchor")
    axes.grid(True, axis="y")
    axes.set_xlim(-0.6, len(panel.names) - 0.4)
    if panel.y_range is not None:
        axes.set_ylim(panel.y_range)
    return handles


def _draw_heat(axes: Axes, panel: Heat) -> None:
    values = np.ma.masked_invalid(panel.values)
    columns, rows = np.arange(len(panel.x)), np.arange(len(panel.y))
    axes.pcolormesh(columns, rows, values, cmap="cividis", edgecolors="white", linewidth=0.8)
    axes.invert_yaxis()
    middle = (values.min() + values.max()) / 2
    for (i, j), value in np.ndenumerate(np.asarray(panel.values, dtype=float)):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            axes.text(j, i, f"{value:.{panel.digits}f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(columns, [_format_tick(one) for one in panel.x])
    axes.set_yticks(rows, [_format_tick(one) for one in panel.y])
    axes.set_xlabel(panel.x_label)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _format_tick(tick: str | float) -> str:
    return tick if isinstance(tick, str) else f"{tick:g}".replace("inf", "∞")


def _find_points(line: Line, positive: bool) -> tuple[Array, Array]:
    """x and y as they are drawn, NaN where nothing is; on a logarithmic axis x must be positive."""
    x = _drop_infinite(line.x)
    return np.where(x > 0, x, np.nan) if positive else x, _drop_infinite(line.y)


def _drop_infinite(values: Array) -> Array:
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.nan)


SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
#: Digits of a number beyond a hundredth.
TOO_EXACT = re.compile(r"(\.\d\d)\d+")


def _make_self_contained(text: str, figure: Figure) -> str:
    """matplotlib's SVG made fit for a page: described, its ids and styles its own, a hundredth of a point exact."""
    ElementTree.register_namespace("", SVG[1:-1])
    ElementTree.register_namespace("xlink", LINK[1:-5])
    root = ElementTree.fromstring(text)
    used = set(re.findall(r'(?:href="|url\()#([\w-]+)', text))
    for element in root.iter():
        if (name := element.attrib.pop("id", None)) in used:
            element.set("id", f"{figure.name}-{name}")
        for key in (LINK, "clip-path"):
            if key in element.attrib:
                element.set(key, element.attrib[key].replace("#", f"#{figure.name}-"))
        for key in {"d", "x", "y", "transform"} & set(element.attrib):
            element.set(key, " ".join(TOO_EXACT.sub(r"\1", element.attrib[key]).split()))
    for metadata in root.findall(f"{SVG}metadata"):
        root.remove(metadata)
    for style in root.iter(f"{SVG}style"):  # What the page says of its own drawings must not reach this one.
        own = "fill:inherit;stroke:inherit;stroke-linejoin:round;stroke-linecap:butt"
        style.text = f"#{figure.name}{{fill:#000;stroke:none}}#{figure.name} *{{{own}}}"
    for i, (tag, words) in enumerate((("title", figure.title), ("desc", figure.caption))):
        described = ElementTree.Element(SVG + tag)
        described.text = words
        root.insert(i, described)
    root.attrib |= {"id": figure.name, "role": "img", "aria-label": figure.title}
    return ElementTree.tostring(root, encoding="unicode")
