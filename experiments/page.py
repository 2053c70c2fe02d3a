"""The verdict as one page that needs nothing else: tables, and figures as inline SVG."""

from __future__ import annotations

import html
from itertools import pairwise

from experiments.methods import OURS
from experiments.sections import document
from experiments.verdict import Verdict, critical_difference, sections, shares

__all__ = ["page", "rank_figure", "reliability_figure"]


def rank_figure(ranks: dict[str, float], cd: float) -> str:
    """Critical-difference diagram: ranks on a line, the best at the left; a bar joins what is not told apart."""
    count, width, left, top = len(ranks), 900, 190, 60
    scale = (width - 2 * left) / max(count - 1, 1)

    def x(rank: float) -> float:
        return left + (rank - 1) * scale

    parts = [f'<line x1="{x(1):.1f}" y1="{top}" x2="{x(count):.1f}" y2="{top}"/>']
    for tick in range(1, count + 1):
        parts.append(f'<line x1="{x(tick):.1f}" y1="{top - 6}" x2="{x(tick):.1f}" y2="{top}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{top - 11}" text-anchor="middle">{tick}</text>')
    parts.append(f'<line class="bar" x1="{x(1):.1f}" y1="18" x2="{x(1 + cd):.1f}" y2="18"/>')
    parts.append(f'<text x="{x(1 + cd) + 8:.1f}" y="22">critical difference {cd:.2f}</text>')
    values = list(ranks.values())
    bars = _cliques(values, cd)
    below = top + 16 + 9 * len(bars)
    for i, (first, last) in enumerate(bars):
        y, ends = top + 12 + 9 * i, (x(values[first]) - 4, x(values[last]) + 4)
        parts.append(f'<line class="bar" x1="{ends[0]:.1f}" y1="{y}" x2="{ends[1]:.1f}" y2="{y}"/>')
    half = (count + 1) // 2
    for i, (name, rank) in enumerate(ranks.items()):
        at_left = i < half
        y = below + 20 * (i if at_left else count - 1 - i)
        end, anchor = (left - 12, "end") if at_left else (width - left + 12, "start")
        mark = ' class="ours"' if name == OURS else ""
        parts.append(f'<path class="faint" d="M{x(rank):.1f} {top}V{y}H{end}"/>')
        text = f"{html.escape(name)} {rank:.2f}"
        parts.append(f'<text{mark} x="{end + (-5 if at_left else 5)}" y="{y + 4}" text-anchor="{anchor}">{text}</text>')
    return _svg(width, below + 20 * half, "Mean ranks with the critical difference", parts)


def _cliques(values: list[float], cd: float) -> list[tuple[int, int]]:
    """Longest stretches of sorted ranks that span less than cd, none inside another, singles left out."""
    reach = [max(j for j in range(len(values)) if values[j] - values[i] < cd) for i in range(len(values))]
    ends = [-1, *reach]
    return [(i, end) for i, (before, end) in enumerate(pairwise(ends)) if end > before and end > i]


def reliability_figure(curves: dict[str, list[tuple[float, float]]]) -> str:
    """Predicted against true share; the diagonal is perfect."""
    size, left = 300, 60

    def at(point: tuple[float, float]) -> str:
        return f"{left + size * point[0]:.1f} {10 + size * (1 - point[1]):.1f}"

    parts = [f'<path class="faint" d="M{at((0, 0))}L{at((1, 1))}M{at((0, 1))}L{at((0, 0))}L{at((1, 0))}"/>']
    for value, text in ((0.0, "0"), (0.5, ".5"), (1.0, "1")):
        parts.append(f'<text x="{left + size * value}" y="{size + 28}" text-anchor="middle">{text}</text>')
        parts.append(f'<text x="{left - 8}" y="{14 + size * (1 - value)}" text-anchor="end">{text}</text>')
    for i, (name, points) in enumerate(curves.items()):
        mark = ' class="ours"' if name == OURS else ' stroke-dasharray="5 3"'
        parts.append(f'<path{mark} stroke-width="2" d="M{"L".join(map(at, points))}"/>')
        words = " (dashed)" if name != OURS else ""
        mark = mark if name == OURS else ""
        parts.append(f'<text{mark} x="{left + size + 20}" y="{40 + 20 * i}">{html.escape(name)}{words}</text>')
    parts.append(f'<text x="{left + size / 2}" y="{size + 48}" text-anchor="middle">said</text>')
    parts.append(f'<text x="{left - 30}" y="{10 + size / 2}" text-anchor="end">true</text>')
    return _svg(left + size + 200, size + 55, "Reliability: said and true share of ones", parts)


def _svg(width: int, height: int, label: str, parts: list[str]) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{label}">'
    return head + "".join(parts) + "</svg>"


def _figure(name: str, verdict: Verdict) -> str:
    if name == "ranks":
        cells = int(verdict.where(True).sum())
        return rank_figure(verdict.ranks, critical_difference(len(verdict.methods), cells))
    if name == "reliability":
        curves = {method: shares(verdict, method)[:, 1:] for method in verdict.compared}
        return reliability_figure({m: [(p, y) for p, y in curve.tolist() if p == p] for m, curve in curves.items()})
    return ""


def page(verdict: Verdict, setting: str) -> str:
    """The whole page; `setting` says in words what was run."""
    parts = [f"<p>{html.escape(setting)}</p>\n"]
    for one in sections(verdict):
        parts += [f"<h2>{html.escape(one.title)}</h2>\n<p>{html.escape(one.note)}</p>\n"]
        parts += [_figure(one.figure, verdict), one.html(ours=lambda name: name == OURS)]
    return document("untwist arena", "Who learns the truth from twisted data?", parts)
