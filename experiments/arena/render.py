"""The standings as pages: one of HTML that needs nothing else, with figures, and one of Markdown for docs/arena.md."""

from __future__ import annotations

import math
from itertools import pairwise

from experiments.arena.methods import OURS
from experiments.arena.standings import Standings, critical_difference, find_shares, make_tables
from experiments.tables import TextTable
from untwist.audit.calibration import Point
from untwist.report.charts import Frame, format_share, write_svg
from untwist.report.markup import Section, write_figure, write_page
from untwist.text import for_page

__all__ = ["draw_ranks", "draw_reliability", "list_tables", "render", "write_markdown"]

#: What the page of Markdown begins with.
INTRODUCTION = """# The arena: what it said

Who learns the truth from twisted training data? Every method sees the twisted training rows only and is judged on
clean test rows. The peers are set up as careful users do it: two depths, learning rate .05, early stopping with
patience 50 on a stratified fifth of the twisted rows, the better depth fitted again to all rows; forests and ExtraTrees
with their rows per leaf chosen on that fifth. *Cautious* adds row and column sampling, larger leaves and a larger
penalty; *focal* is the robust focal loss of Robust-GBDT, chosen by AUC as its authors do; *extra* has LightGBM's
`extra_trees`. Methods that end in *+untwist* are careful peers with our noise estimate on top: what it adds to them,
and what our booster adds to it. They stand apart. HistGradientBoosting stops by its own rules; `xgboost` is XGBoost as
it comes.

Half of the data sets, by a hash of their names, and the paper's own were there to design by; the others judge and come
first here.
`make arena` with `UNTWIST_DATA` set runs all of it and writes this page, which `make docs-arena` puts here. With
`--several` the program takes data sets of several classes; `make several-classes` judges the audit of these too.
"""


def draw_ranks(ranks: dict[str, float], cd: float) -> str:
    """Draw the critical-difference diagram: ranks on a line, the best at the left; a bar joins what is not told apart.

    Parameters
    ----------
    ranks : dict
        Mean ranks by method, the best first.
    cd : float
        The critical difference: ranks further apart than this differ.

    Returns
    -------
    str
        An SVG element.
    """
    count = len(ranks)
    half = (count + 1) // 2
    values = list(ranks.values())
    bars = _find_cliques(values, cd)
    line = 60
    below = line + 16 + 9 * len(bars)
    frame = Frame((1, max(count, 2)), (0, 1), height=below + 20 * half, left=190, right=190, width=900)
    left, right = frame.place_x(1), frame.place_x(max(count, 2))
    parts = [f'<path class=mark d="M{left:.1f} {line}H{right:.1f}"/>']
    for tick in range(1, count + 1):
        x = frame.place_x(tick)
        parts.append(f'<path class=mark d="M{x:.1f} {line - 6}V{line}"/>')
        parts.append(f'<text class=tick x="{x:.1f}" y="{line - 11}" text-anchor="middle">{tick}</text>')
    end = frame.place_x(1 + cd)
    parts.append(f'<path class=bracket d="M{left:.1f} 18H{end:.1f}"/>')
    parts.append(f'<text class=note x="{end + 8:.1f}" y="22">critical difference {cd:.2f}</text>')
    for i, (first, last) in enumerate(bars):
        y = line + 12 + 9 * i
        ends = f"M{frame.place_x(values[first]) - 4:.1f} {y}H{frame.place_x(values[last]) + 4:.1f}"
        parts.append(f'<path class=bracket d="{ends}"/>')
    for i, (name, rank) in enumerate(ranks.items()):
        at_left = i < half
        y = below + 20 * (i if at_left else count - 1 - i)
        end = frame.left - 12 if at_left else frame.width - frame.right + 12
        anchor, shift = ("end", -5) if at_left else ("start", 5)
        kind = "ours" if name == OURS else "name"
        parts.append(f'<path class=grid d="M{frame.place_x(rank):.1f} {line}V{y}H{end}"/>')
        place = f'x="{end + shift}" y="{y + 4}" text-anchor="{anchor}"'
        parts.append(f"<text class={kind} {place}>{for_page(name)} {rank:.2f}</text>")
    return write_svg(frame.height, "Mean ranks with the critical difference", *parts, width=frame.width)


def _find_cliques(values: list[float], cd: float) -> list[tuple[int, int]]:
    """Longest stretches of sorted ranks that span less than cd, none inside another, singles left out."""
    reach = [max(j for j in range(len(values)) if values[j] - values[i] < cd) for i in range(len(values))]
    ends = [-1, *reach]
    return [(i, end) for i, (before, end) in enumerate(pairwise(ends)) if end > before and end > i]


def draw_reliability(curves: dict[str, list[Point]]) -> str:
    """Draw the true share of ones against the predicted one; the diagonal is perfect."""
    frame = Frame((0.0, 1.0), (0.0, 1.0), height=372, top=58)
    parts = [
        frame.draw_axes("predicted share of ones", "true share", format_share, format_share),
        f'<path class=diagonal d="{frame.trace([(0, 0), (1, 1)])}"/>',
    ]
    for i, (name, points) in enumerate(curves.items()):
        kind = "clean" if name == OURS else "noisy"
        y = 15 + 21 * i
        parts.append(f'<path class="line {kind}" d="{frame.trace(points)}"/>')
        parts.append(f'<path class="line {kind}" d="M90 {y - 4}H106"/>')
        parts.append(f'<text class=note x="112" y="{y}">{for_page(name)}</text>')
    return write_svg(frame.height, "Reliability: predicted and true share of ones", *parts)


def _draw(name: str, standings: Standings) -> str:
    """The figure of that name."""
    figure, _, kind = name.partition(" ")
    if figure == "ranks":
        ranks = standings.rank(kind)
        return write_figure(draw_ranks(ranks, critical_difference(len(ranks), int(standings.mark(kind).sum()))))
    if figure == "reliability":
        curves = {}
        for method in standings.compared:
            points = find_shares(standings, method)[:, 1:].tolist()
            curves[method] = [(p, y) for p, y in points if not math.isnan(p)]
        return write_figure(draw_reliability(curves))
    return ""


def list_tables(halves: dict[str, Standings]) -> list[tuple[TextTable, Standings]]:
    """List the tables of all halves, in their order, each with the standings that it shows."""
    return [
        (table, standings)
        for half, standings in halves.items()
        for table in make_tables(standings, f"{half.capitalize()}: ")
    ]


def render(halves: dict[str, Standings], setting: str) -> str:
    """Write the whole page of HTML; `setting` says in words what was run."""
    sections = []
    for i, (table, standings) in enumerate(list_tables(halves)):
        before = f"<p>{for_page(setting)}</p>\n" if i == 0 else ""
        body = before + _draw(table.figure, standings) + table.to_html(stands_out=lambda name: name == OURS)
        title = for_page(table.title)
        sections.append(Section(f"table-{i + 1}", title, title, body))
    return write_page("untwist: the arena", "The arena", "Who learns the truth from twisted data?", sections)


def write_markdown(halves: dict[str, Standings], setting: str) -> str:
    """Write the page of Markdown; `setting` says in words what was run."""
    return "\n".join([INTRODUCTION, setting, "", *(table.to_markdown() for table, _ in list_tables(halves))])
