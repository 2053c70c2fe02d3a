"""What the rows of the arena show: ranks, tests, losing cases, calibration, time. Nothing is run again.

A cell is a data set under a twist, averaged over seeds; the untwisted cells are judged apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, studentized_range, wilcoxon

from experiments.arena.methods import OURS, PEER, TIMED
from experiments.arena.rows import BINS, ArenaRow
from experiments.tables import TextTable
from untwist.arguments import Array

__all__ = ["Standings", "critical_difference", "find_shares", "holm", "make_tables", "signed_rank"]

#: The twist of cells whose training data are as they were.
UNTWISTED = "none"
#: Our method loses a cell if its accuracy is further than this below the peer's.
LOSS = 0.02
#: Our method aims to take this many times as long as `TIMED`, at most.
TIME_AIM = 1.0
#: Our method must take this many times as long as `TIMED`, at most, even where the aim costs too much accuracy.
TIME_LIMIT = 3.0
#: The metrics that have a table by twist, and their names.
METRICS = {"accuracy": "Accuracy", "auc": "AUC", "log_loss": "Log-loss"}


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


def signed_rank(differences: Array) -> float:
    """Compute the p of Wilcoxon's signed-rank test.

    Parameters
    ----------
    differences : array
        One for each pair.

    Returns
    -------
    float
        The two-sided p, 1 where nothing differs.
    """
    differences = np.round(differences, 9)  # What differs by rounding alone does not differ.
    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def holm(p: Iterable[float]) -> Array:
    """Correct p-values by Holm's method, so that all hypotheses together err with that probability.

    Parameters
    ----------
    p : iterable of float
        The p-value of each hypothesis.

    Returns
    -------
    array

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.array(list(p), dtype=float)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1)))
    return corrected


class Standings:
    """Tables of cells x methods from rows; only runs that every method has come to the end of count.

    Attributes
    ----------
    rows : list of ArenaRow
        What it was made from.
    methods : list of str
        Ours first.
    cells : list of tuples
        The data set and the twist of each cell.
    incomplete : int
        Runs that were left out.
    tables : dict
        By metric the mean over seeds, cells x methods.
    bins : array
        Cells x methods x BINS x 3, summed over seeds.
    """

    def __init__(self, rows: list[ArenaRow]) -> None:
        self.rows = rows
        self.methods = sorted({row.method for row in rows}, key=lambda name: (name != OURS, name))
        runs: dict[tuple[str, str, int], dict[str, ArenaRow]] = {}
        for row in rows:
            runs.setdefault((row.data, row.twist, row.seed), {})[row.method] = row
        complete = {run: by_method for run, by_method in runs.items() if len(by_method) == len(self.methods)}
        if not complete:
            raise ValueError("there is no run yet that every method has finished")
        self.incomplete = len(runs) - len(complete)
        by_cell: dict[tuple[str, str], dict[str, list[ArenaRow]]] = {}
        for (data, twist, _), by_method in complete.items():
            cell = by_cell.setdefault((data, twist), {method: [] for method in self.methods})
            for method in self.methods:
                cell[method].append(by_method[method])
        self.cells = list(by_cell)
        self.tables: dict[str, Array] = {
            metric: np.array(
                [
                    [np.mean([getattr(row, metric) for row in fits]) for fits in cell.values()]
                    for cell in by_cell.values()
                ]
            )
            for metric in (*METRICS, "brier", "seconds")
        }
        sums = [[sum(row.bins for row in fits) for fits in cell.values()] for cell in by_cell.values()]
        self.bins: Array = np.array(sums, dtype=float)

    def mark(self, twisted: bool) -> NDArray[np.bool_]:
        """Mark the cells that are twisted, or those that are not.

        Parameters
        ----------
        twisted : bool
            Whether to mark those that are.

        Returns
        -------
        array of bool
        """
        return np.array([(twist != UNTWISTED) == twisted for _, twist in self.cells])

    def pick(self, metric: str, method: str, twisted: bool = True) -> Array:
        """Pick one method's values of the twisted, or the untwisted, cells.

        Parameters
        ----------
        metric, method : str
            What was measured, and of whom.
        twisted : bool
            Whether the cells are the twisted ones.

        Returns
        -------
        array
        """
        column: Array = self.tables[metric][:, self.methods.index(method)]
        return column[self.mark(twisted)]

    @property
    def ranks(self) -> dict[str, float]:
        """Mean rank by accuracy over the twisted cells, the best first."""
        accuracy = np.round(self.tables["accuracy"][self.mark(True)], 9)  # Ties stay ties whatever the rounding.
        if not len(accuracy):
            return {}
        mean = rankdata(-accuracy, axis=1).mean(axis=0)
        return dict(sorted(zip(self.methods, mean.tolist(), strict=True), key=lambda pair: pair[1]))

    @property
    def compared(self) -> list[str]:
        """Ours and the peer that it must not lose to, or who is there of them."""
        return [method for method in (OURS, PEER) if method in self.methods] or self.methods[:1]

    @property
    def peers(self) -> list[str]:
        """All methods but ours."""
        return [method for method in self.methods if method != OURS]

    def find_lead(self, peer: str, by_data: bool = False) -> Array:
        """Find our accuracy less the peer's.

        Parameters
        ----------
        peer : str
            The other method.
        by_data : bool
            Whether to average over the cells of a data set, as they are related.

        Returns
        -------
        array
            By twisted cell, or by data set.
        """
        lead = self.pick("accuracy", OURS) - self.pick("accuracy", peer)
        if not by_data:
            return lead
        data = np.array([name for (name, _), here in zip(self.cells, self.mark(True), strict=True) if here])
        return np.array([lead[data == name].mean() for name in np.unique(data)])

    def measure_calibration(self, method: str) -> float:
        """Measure the calibration error of a method.

        Parameters
        ----------
        method : str
            The method.

        Returns
        -------
        float
            The mean over the twisted cells of |said - true share|, each tenth of the predictions weighted by its rows.
        """
        n, p, y = np.moveaxis(self.bins[self.mark(True), self.methods.index(method)], -1, 0)
        rows = n.sum(axis=1)
        return float(np.mean((np.abs(p - y).sum(axis=1) / rows)[rows > 0])) if np.any(rows) else math.nan


def make_tables(standings: Standings) -> list[TextTable]:
    """Make all there is to show, the losing cases first.

    Parameters
    ----------
    standings : Standings
        The standings.

    Returns
    -------
    list of TextTable
    """
    parts = [_list_losses(standings), _check_aims(standings)] if {OURS, PEER} <= set(standings.methods) else []
    parts += [_list_ranks(standings)] if len(standings.methods) > 1 and standings.ranks else []
    parts += [_average_by_twist(standings, metric) for metric in METRICS]
    parts += [_list_calibration(standings), _list_reliability(standings)] if standings.ranks else []
    parts += [_list_times(standings)]
    return parts + ([_list_failures(standings)] if any(row.error for row in standings.rows) else [])


def _find_leads(standings: Standings) -> Array:
    """Our accuracy less the early-stopped peer's in every cell, untwisted ones too."""
    ours, peer = (standings.tables["accuracy"][:, standings.methods.index(name)] for name in (OURS, PEER))
    return np.round(ours - peer, 9)  # After rounding, .76 is exactly .02 below .78.


def _list_losses(standings: Standings) -> TextTable:
    lead = _find_leads(standings)
    accuracy = standings.tables["accuracy"]
    both = [standings.methods.index(name) for name in (OURS, PEER)]
    lost = int(np.sum(lead < -LOSS))
    worst = np.argsort(lead, kind="stable")[: lost or 5]
    table = [[*standings.cells[i], *(f"{accuracy[i, j]:.3f}" for j in both), f"{lead[i]:+.3f}"] for i in worst]
    title = f"Losing cases: {lost or 'none'} of {len(lead)}"
    note = f"Data set x twist more than {LOSS} below {PEER} in accuracy" + (
        "." if lost else "; the five closest to it."
    )
    return TextTable(title, note, ["data", "twist", "ours", "peer", "lead"], table)


def _check_aims(standings: Standings) -> TextTable:
    """The aims of the project, and whether they are met."""
    lines = []

    def bar(aim: str, found: str, met: bool) -> None:
        lines.append([aim, found, "met" if met else "missed"])

    if standings.ranks:
        best, rank = next(iter(standings.ranks.items()))
        bar("best mean rank by accuracy, twisted cells", f"{best}, {rank:.2f}", best == OURS)
        leads = [standings.find_lead(peer) for peer in standings.peers]
        p = holm(map(signed_rank, leads))
        ahead = sum(bool(lead.mean() > 0 and one < 0.05) for lead, one in zip(leads, p, strict=True))
        bar("ahead of each peer (Wilcoxon, Holm, 5 %)", f"{ahead} of {len(leads)} peers", ahead == len(leads))
    if np.any(standings.mark(False)):
        ours = float(standings.pick("accuracy", OURS, twisted=False).mean())
        peer = max(standings.peers, key=lambda name: standings.pick("accuracy", name, twisted=False).mean())
        gap = ours - float(standings.pick("accuracy", peer, twisted=False).mean())
        bar("untwisted: within .005 of the best peer", f"{gap:+.4f} to {peer}", gap >= -0.005)
    low = float(_find_leads(standings).min())
    bar(f"nowhere more than {LOSS} below {PEER}", f"{low:+.3f} at worst", low >= -LOSS)
    for what, values in [
        ("log-loss", {name: float(standings.pick("log_loss", name).mean()) for name in standings.methods}),
        ("calibration error", {name: standings.measure_calibration(name) for name in standings.methods}),
    ]:
        if standings.ranks:
            best = min(values, key=values.__getitem__)
            bar(f"lowest clean {what}, twisted cells", f"{best}, {values[best]:.3f}", best == OURS)
    if TIMED in standings.methods:
        times = standings.tables["seconds"].mean(axis=0)
        ratio = float(times[standings.methods.index(OURS)] / times[standings.methods.index(TIMED)])
        found = f"{ratio:.2f} times"
        bar(f"as fast as {TIMED}", found, ratio <= TIME_AIM)
        bar(f"at most {TIME_LIMIT:g} times as slow as {TIMED}", found, ratio <= TIME_LIMIT)
    return TextTable("Aims", "What the default classifier should show.", ["aim", "found", ""], lines)


def _list_ranks(standings: Standings) -> TextTable:
    cells = int(standings.mark(True).sum())
    cd = critical_difference(len(standings.methods), cells)
    note = f"By accuracy over {cells} twisted cells; ranks closer than {cd:.2f} (Nemenyi, 5 %) are not told apart."
    header = ["method", "rank", "accuracy"]
    table = [
        [name, f"{rank:.2f}", f"{standings.pick('accuracy', name).mean():.4f}"]
        for name, rank in standings.ranks.items()
    ]
    if OURS in standings.methods:
        note += (
            " Wilcoxon's p (Holm) of our lead: over cells and, as cells of one data set are related, over data sets."
        )
        header += ["our lead", "won", "tied", "lost", "p, cells", "p, data sets"]
        by_cells = holm(signed_rank(standings.find_lead(peer)) for peer in standings.peers)
        by_data = holm(signed_rank(standings.find_lead(peer, by_data=True)) for peer in standings.peers)
        corrected = dict(zip(standings.peers, zip(by_cells, by_data, strict=True), strict=True))
        for line in table:
            if line[0] == OURS:
                line += [""] * 6
                continue
            lead = np.round(standings.find_lead(line[0]), 9)
            counts = [str(int(np.sum(np.sign(lead) == sign))) for sign in (1, 0, -1)]
            line += [f"{lead.mean():+.4f}", *counts, *(f"{one:.2g}" for one in corrected[line[0]])]
    return TextTable("Mean ranks", note, header, table, figure="ranks")


def _average_by_twist(standings: Standings, metric: str) -> TextTable:
    twists = list(dict.fromkeys(twist for _, twist in standings.cells))
    of_twist = {twist: np.array([other == twist for _, other in standings.cells]) for twist in twists}
    by_twist = [standings.tables[metric][here].mean(axis=0) for here in of_twist.values()]
    means = np.array(by_twist)
    best = (np.argmin if metric == "log_loss" else np.argmax)(means, axis=1)
    table = [
        [name, *(f"{means[i, j]:.3f}{'*' if best[i] == j else ' '}" for i in range(len(twists)))]
        for j, name in enumerate(standings.methods)
    ]
    return TextTable(f"{METRICS[metric]} by twist", "Mean over data sets; * the best.", ["method", *twists], table)


def _list_calibration(standings: Standings) -> TextTable:
    table = []
    for name in standings.methods:
        means = [standings.pick(metric, name).mean() for metric in ("log_loss", "brier")]
        table.append([name, *(f"{value:.3f}" for value in (*means, standings.measure_calibration(name)))])
    table.sort(key=lambda line: float(line[1]))
    note = (
        "Twisted cells, against the clean labels; the calibration error compares predicted and clean shares in tenths."
    )
    return TextTable("Probabilities", note, ["method", "log-loss", "Brier", "calibration error"], table)


def find_shares(standings: Standings, method: str) -> Array:
    """Find how a method's predictions agree with the clean labels, all twisted cells together.

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
    n, p, y = standings.bins[standings.mark(True), standings.methods.index(method)].sum(axis=0).T
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
    note = "Twisted cells together: where a method says so much, how often is the clean label 1?"
    return TextTable("Reliability", note, header, table, figure="reliability")


def _list_times(standings: Standings) -> TextTable:
    seconds = standings.tables["seconds"]
    base = seconds[:, standings.methods.index(TIMED)].mean() if TIMED in standings.methods else math.nan
    table = [
        [name, f"{column.mean():.3f}", f"{np.median(column):.3f}", f"{column.mean() / base:.2f}" if base > 0 else "-"]
        for name, column in zip(standings.methods, seconds.T, strict=True)
    ]
    table.sort(key=lambda line: float(line[1]))
    note = "Seconds of processor time for a fit with one thread, over all cells."
    return TextTable("Time", note, ["method", "mean", "median", f"mean / {TIMED}"], table)


def _list_failures(standings: Standings) -> TextTable:
    failed = [[row.method, row.data, row.twist, str(row.seed), row.error] for row in standings.rows if row.error]
    note = "A method that fails counts as a coin toss."
    return TextTable(f"Failures: {len(failed)}", note, ["method", "data", "twist", "seed", "error"], failed)
