"""What the rows of the arena show: losing cells, bars, means with intervals, calibration, time. Nothing is run again.

A cell is a data set under a twist, averaged over seeds. There are three kinds of cells, which are judged apart:
twisted, untwisted and with real noise. Peers that have our untwisting on top stand apart and have no rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, studentized_range

from experiments.arena.methods import OURS, PEER, is_peer
from experiments.arena.rows import BINS, ArenaRow
from experiments.protocol import REAL
from experiments.tables import TextTable
from untwist.arguments import Array

__all__ = ["TWISTED", "Standings", "bound_mean", "critical_difference", "find_shares", "make_tables"]

#: The kinds of cells besides `REAL`: the training data are twisted, or as they were.
TWISTED, UNTWISTED = "twisted", "none"
#: What the kinds are called.
KINDS = {TWISTED: "twisted training data", UNTWISTED: "untwisted training data", REAL: "real noise"}
#: Our method loses a cell if its accuracy is further than this below the peer's.
LOSS = 0.02
#: The mean rank that ours must be below, the lead it must have under twists, and what it may lose without.
RANK_BAR, LEAD_BAR, UNTWISTED_BAR = 2.0, 0.02, 0.002
#: What is averaged, and 1 where more is better.
METRICS = {"accuracy": 1, "log_loss": -1, "calibration": -1, "auc": 1}
#: Draws of data sets behind an interval.
DRAWS = 10_000


def critical_difference(methods: int, cells: int, level: float = 0.05) -> float:
    """Compute Nemenyi's critical difference: mean ranks further apart than this differ at the level.

    Parameters
    ----------
    methods, cells : int
        How many methods are ranked, and in how many cells.
    level : float
        The level of the test.

    Returns
    -------
    float

    Examples
    --------
    >>> round(critical_difference(methods=4, cells=14), 2)
    1.25
    """
    q = studentized_range.ppf(1.0 - level, methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(methods * (methods + 1) / (6.0 * cells)))


def bound_mean(values: Array, groups: Iterable[str]) -> tuple[float, float]:
    """Bound a mean by the 95 % interval of the bootstrap over groups, as the values of a group are related.

    Parameters
    ----------
    values : array
        What the mean is of.
    groups : iterable of str
        The group of each value, such as its data set.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> bound_mean(np.array([0.25, 0.75, 0.5]), ["a", "a", "b"])
    (0.5, 0.5)
    """
    _, group = np.unique(list(groups), return_inverse=True)
    sums, counts = np.bincount(group, values), np.bincount(group)
    drawn = np.random.default_rng(0).integers(counts.size, size=(DRAWS, counts.size))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


class Standings:
    """Tables of cells x methods from rows; only runs that every method has come to the end of count.

    Attributes
    ----------
    rows : list of ArenaRow
        What it was made from.
    methods : list of str
        Ours first, those with our untwisting on top last.
    cells : list of tuples
        The data set and the twist of each cell.
    kinds : list of str
        The kinds of cells that there are, of `KINDS`.
    incomplete : int
        Runs that were left out.
    tables : dict
        By metric the mean over seeds, cells x methods; NaN where a method has failed and there is nothing to calibrate.
    bins : array
        Cells x methods x BINS x 3, summed over seeds.
    """

    def __init__(self, rows: list[ArenaRow]) -> None:
        self.rows = rows
        self.methods = sorted({row.method for row in rows}, key=lambda name: (name != OURS, not is_peer(name), name))
        runs: dict[tuple[str, str, int], dict[str, ArenaRow]] = {}
        for row in rows:
            runs.setdefault((row.data, row.twist, row.seed), {})[row.method] = row
        complete = {run: by_method for run, by_method in runs.items() if len(by_method) == len(self.methods)}
        if not complete:
            raise ValueError("there is no run yet that every method has finished")
        self.incomplete = len(runs) - len(complete)
        by_cell: dict[tuple[str, str], dict[str, list[ArenaRow]]] = {}
        for (data, twist, _), by_method in sorted(complete.items()):
            cell = by_cell.setdefault((data, twist), {method: [] for method in self.methods})
            for method in self.methods:
                cell[method].append(by_method[method])
        self.cells = list(by_cell)
        self.kinds = [kind for kind in KINDS if np.any(self.mark(kind))]
        sums = [[sum(row.bins for row in fits) for fits in cell.values()] for cell in by_cell.values()]
        self.bins: Array = np.array(sums, dtype=float)
        self.tables: dict[str, Array] = {
            metric: np.array(
                [
                    [np.mean([getattr(row, metric) for row in fits]) for fits in cell.values()]
                    for cell in by_cell.values()
                ]
            )
            for metric in ("accuracy", "log_loss", "auc", "seconds")
        }
        count, said, true = np.moveaxis(self.bins, -1, 0)
        n_rows = count.sum(axis=2)
        # The calibration error is the mean of |said - true share| over tenths of the predictions, weighted by rows.
        error = np.abs(said - true).sum(axis=2) / np.maximum(n_rows, 1.0)
        self.tables["calibration"] = np.where(n_rows > 0, error, np.nan)

    def mark(self, kind: str) -> NDArray[np.bool_]:
        """Mark the cells of a kind."""
        return np.array([(twist if twist in (UNTWISTED, REAL) else TWISTED) == kind for _, twist in self.cells])

    def pick(self, metric: str, method: str, kind: str = TWISTED) -> Array:
        """Pick one method's values of the cells of a kind.

        Parameters
        ----------
        metric, method : str
            What was measured, and of whom.
        kind : str
            The kind of cells.

        Returns
        -------
        array
        """
        column: Array = self.tables[metric][:, self.methods.index(method)]
        return column[self.mark(kind)]

    def average(self, metric: str, method: str, kind: str = TWISTED) -> float:
        """Average one method's values over the cells of a kind, those where it failed at giving any left out."""
        values = self.pick(metric, method, kind)
        known = values[~np.isnan(values)]
        return float(known.mean()) if known.size else math.nan

    @property
    def peers(self) -> list[str]:
        """All methods but ours and those that have a part of ours."""
        return [method for method in self.methods if is_peer(method)]

    @property
    def on_top(self) -> list[str]:
        """The peers with our untwisting on top."""
        return [method for method in self.methods if method != OURS and not is_peer(method)]

    @property
    def compared(self) -> list[str]:
        """Ours and the peer that it must not lose to, or who is there of them."""
        return [method for method in (OURS, PEER) if method in self.methods] or self.methods[:1]

    def rank(self, *kinds: str) -> dict[str, float]:
        """Find the mean ranks by accuracy over cells of these kinds, of ours and the peers, the best first."""
        ranked = [method for method in self.methods if method not in self.on_top]
        columns = [self.methods.index(method) for method in ranked]
        here = np.logical_or.reduce([self.mark(kind) for kind in kinds])
        accuracy = np.round(self.tables["accuracy"][here][:, columns], 9)  # Ties stay ties whatever the rounding.
        if not len(accuracy):
            return {}
        mean = rankdata(-accuracy, axis=1).mean(axis=0)
        return dict(sorted(zip(ranked, mean.tolist(), strict=True), key=lambda pair: pair[1]))

    def find_lead(self, method: str, kind: str = TWISTED) -> tuple[float, float, float]:
        """Find our accuracy less another's, the mean over cells of a kind, with its interval over data sets."""
        lead = self.pick("accuracy", OURS, kind) - self.pick("accuracy", method, kind)
        sets = [data for (data, _), here in zip(self.cells, self.mark(kind), strict=True) if here]
        return float(lead.mean()), *bound_mean(lead, sets)

    def find_best_peer(self, metric: str, kind: str) -> tuple[str, float]:
        """Find the peer that is best in a metric, and by how much ours is better than it; negative where it is not."""
        sign = METRICS[metric]
        values = {peer: self.average(metric, peer, kind) for peer in self.peers}
        best = max(values, key=lambda peer: -math.inf if math.isnan(values[peer]) else sign * values[peer])
        return best, round(sign * (self.average(metric, OURS, kind) - values[best]), 9)


def make_tables(standings: Standings, half: str = "") -> list[TextTable]:
    """Make all there is to show of one half of the data sets, the losing cells first.

    Parameters
    ----------
    standings : Standings
        The standings.
    half : str
        What titles begin with.

    Returns
    -------
    list of TextTable
    """
    parts = [_list_losses(standings), _check_bars(standings)] if {OURS, PEER} <= set(standings.methods) else []
    for kind in standings.kinds:
        parts += [_list_methods(standings, kind)]
        parts += [_list_variants(standings, kind)] if standings.on_top else []
    parts += [_average_by_twist(standings), _list_reliability(standings), _list_times(standings)]
    parts += [_list_failures(standings)] if any(row.error for row in standings.rows) else []
    return [TextTable(f"{half}{one.title}", one.note, one.header, one.lines, one.figure) for one in parts]


def _find_leads(standings: Standings) -> Array:
    """Our accuracy less the peer's in every cell."""
    ours, peer = (standings.tables["accuracy"][:, standings.methods.index(name)] for name in (OURS, PEER))
    return np.round(ours - peer, 9)  # After rounding, .76 is exactly .02 below .78.


def _list_losses(standings: Standings) -> TextTable:
    both = [standings.tables["accuracy"][:, standings.methods.index(name)] for name in (OURS, PEER)]
    lead = _find_leads(standings)
    lost = int(np.sum(lead < -LOSS))
    worst = np.argsort(lead, kind="stable")[: lost or 5]
    table = [[*standings.cells[i], *(f"{accuracy[i]:.3f}" for accuracy in both), f"{lead[i]:+.3f}"] for i in worst]
    note = f"Data set x twist more than {LOSS} below {PEER} in accuracy" + (
        "." if lost else "; the five closest to it."
    )
    return TextTable(
        f"losing cells, {lost or 'none'} of {len(lead)}", note, ["data", "twist", OURS, PEER, "lead"], table
    )


def _check_bars(standings: Standings) -> TextTable:
    """List what the default classifier must show, and whether it does."""
    lines = []

    def add(bar: str, found: str, met: bool) -> None:
        lines.append([bar, found, "met" if met else "missed"])

    if TWISTED in standings.kinds:
        ranks = standings.rank(TWISTED)
        with_real = standings.rank(TWISTED, REAL)[OURS]
        found = f"{ranks[OURS]:.2f} of {len(ranks)}; {with_real:.2f} with real noise"
        add(f"mean rank below {RANK_BAR:g}, twisted", found, ranks[OURS] < RANK_BAR)
        best, lead = standings.find_best_peer("accuracy", TWISTED)
        add(f"accuracy {LEAD_BAR} above the best, twisted", f"{lead:+.4f} to {best}", lead >= LEAD_BAR)
    if UNTWISTED in standings.kinds:
        best, lead = standings.find_best_peer("accuracy", UNTWISTED)
        add(f"accuracy within {UNTWISTED_BAR} of the best, untwisted", f"{lead:+.4f} to {best}", lead >= -UNTWISTED_BAR)
    for words, metric, kind in [
        ("lowest log-loss, twisted", "log_loss", TWISTED),
        ("lowest calibration error, twisted", "calibration", TWISTED),
        ("highest AUC, real noise", "auc", REAL),
    ]:
        if kind in standings.kinds:
            best, lead = standings.find_best_peer(metric, kind)
            ours, its = (standings.average(metric, name, kind) for name in (OURS, best))
            add(words, f"{ours:.4f}, {best} {its:.4f}", lead >= 0.0)
    leads = _find_leads(standings)
    found = f"{np.sum(leads < -LOSS)} cells, {leads.min():+.3f} at worst"
    add(f"no cell more than {LOSS} below {PEER}", found, bool(leads.min() >= -LOSS))
    return TextTable("bars", "What the default classifier should show.", ["bar", "found", ""], lines)


def _list_methods(standings: Standings, kind: str) -> TextTable:
    ranks = standings.rank(kind)
    cells = int(standings.mark(kind).sum())
    note = f"Mean over {cells} cells; lead: our accuracy less that, with its 95 % interval over data sets."
    lines = [[*_write_method(standings, name, kind), f"{rank:.2f}"] for name, rank in ranks.items()]
    return TextTable(KINDS[kind], note, [*HEADER, "rank"], lines, figure=f"ranks {kind}" if len(ranks) > 1 else "")


def _list_variants(standings: Standings, kind: str) -> TextTable:
    lines = [_write_method(standings, name, kind) for name in standings.on_top]
    title = f"{KINDS[kind]}, peers with our untwisting on top"
    return TextTable(title, "The same cells; these have no rank.", HEADER, lines)


HEADER = ["method", "accuracy", "lead", "from", "to", "log-loss", "calibration error", "AUC"]


def _write_method(standings: Standings, name: str, kind: str) -> list[str]:
    """The means of a method over the cells of a kind, with our lead."""
    accuracy, *others = (f"{standings.average(metric, name, kind):.4f}" for metric in METRICS)
    if name == OURS or OURS not in standings.methods:
        return [name, accuracy, "", "", "", *others]
    return [name, accuracy, *(f"{value:+.4f}" for value in standings.find_lead(name, kind)), *others]


def _average_by_twist(standings: Standings) -> TextTable:
    twists = list(dict.fromkeys(twist for _, twist in standings.cells))
    of_twist = [np.array([other == twist for _, other in standings.cells]) for twist in twists]
    means = np.array([standings.tables["accuracy"][here].mean(axis=0) for here in of_twist])
    best = np.argmax(means[:, : len(standings.methods) - len(standings.on_top)], axis=1)
    table = [
        [name, *(f"{means[i, j]:.3f}{'*' if best[i] == j else ' '}" for i in range(len(twists)))]
        for j, name in enumerate(standings.methods)
    ]
    return TextTable(
        "accuracy by twist",
        "Mean over data sets; * the best, those with our untwisting on top, which come last, apart.",
        ["method", *twists],
        table,
    )


def find_shares(standings: Standings, method: str) -> Array:
    """Find how a method's predictions agree with the clean labels, all cells together.

    Parameters
    ----------
    standings : Standings
        The standings.
    method : str
        The method.

    Returns
    -------
    array
        By tenth of the predictions: rows, mean prediction, clean share of ones; NaN without rows.
    """
    n, p, y = standings.bins[:, standings.methods.index(method)].sum(axis=0).T
    known = np.where(n > 0, n, np.nan)
    return np.column_stack([n, p / known, y / known])


def _list_reliability(standings: Standings) -> TextTable:
    shares = [find_shares(standings, name) for name in standings.compared]
    table = []
    for i in range(BINS):
        line = [f"{i / BINS:.1f} to {(i + 1) / BINS:.1f}"]
        for rows, said, true in (one[i] for one in shares):
            line += [f"{rows:.0f}", *("-" if math.isnan(share) else f"{share:.3f}" for share in (said, true))]
        table.append(line)
    header = ["P(1)", *(f"{name}{what}" for name in standings.compared for what in (": rows", ", said", ", true"))]
    note = "All cells together: where a method says so much, how often is the clean label 1?"
    return TextTable("reliability", note, header, table, figure="reliability")


def _list_times(standings: Standings) -> TextTable:
    seconds = standings.tables["seconds"]
    base = seconds[:, standings.methods.index(PEER)].mean() if PEER in standings.methods else math.nan
    table = [
        [name, f"{column.mean():.3f}", f"{np.median(column):.3f}", f"{column.mean() / base:.2f}" if base > 0 else "-"]
        for name, column in zip(standings.methods, seconds.T, strict=True)
    ]
    table.sort(key=lambda line: (line[0] in standings.on_top, float(line[1])))
    note = "Seconds of processor time with one thread, over all cells: the fit with all that was searched."
    return TextTable("time", note, ["method", "mean", "median", f"mean / {PEER}"], table)


def _list_failures(standings: Standings) -> TextTable:
    failed = [[row.method, row.data, row.twist, str(row.seed), row.error] for row in standings.rows if row.error]
    note = "A method that fails counts as a coin toss."
    return TextTable(f"failures, {len(failed)}", note, ["method", "data", "twist", "seed", "error"], failed)
