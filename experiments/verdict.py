"""What the rows of the arena show: ranks, tests, losing cases, calibration, time. Nothing is run again.

A cell is a data set under a twist, averaged over seeds; the untwisted cells are judged apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, studentized_range, wilcoxon

from experiments.methods import OURS, PEER, TIMED
from experiments.results import BINS, Row
from experiments.sections import Section
from untwist.arguments import Array

__all__ = ["Verdict", "critical_difference", "holm", "sections", "shares", "signed_rank"]

UNTWISTED = "none"
LOSS = 0.02  # what counts as losing a cell
METRICS = {"accuracy": "Accuracy", "auc": "AUC", "log_loss": "Log-loss"}


def critical_difference(methods: int, cells: int, level: float = 0.05) -> float:
    """Nemenyi: mean ranks further apart than this differ at the level.

    >>> round(critical_difference(methods=4, cells=14), 2)
    1.25
    """
    q = studentized_range.ppf(1.0 - level, methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(methods * (methods + 1) / (6.0 * cells)))


def signed_rank(differences: Array) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; 1 where nothing differs."""
    differences = np.round(differences, 9)  # what differs by rounding alone does not differ
    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def holm(p: Iterable[float]) -> Array:
    """Holm's correction: p of each hypothesis such that all together err with that probability.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.array(list(p), dtype=float)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1)))
    return corrected


@dataclass(frozen=True)
class Verdict:
    """Tables of cells x methods from rows; only runs that every method has come to the end of count."""

    rows: list[Row]
    methods: list[str] = field(init=False)
    cells: list[tuple[str, str]] = field(init=False)  # (data, twist)
    incomplete: int = field(init=False)  # runs left out
    tables: dict[str, Array] = field(init=False)  # by metric: mean over seeds, cells x methods
    bins: Array = field(init=False)  # cells x methods x BINS x 3, summed over seeds

    def __post_init__(self) -> None:
        runs: dict[tuple[str, str, int], dict[str, Row]] = {}
        for row in self.rows:
            runs.setdefault((row.data, row.twist, row.seed), {})[row.method] = row
        methods = sorted({row.method for row in self.rows}, key=lambda name: (name != OURS, name))
        complete = {run: by for run, by in runs.items() if len(by) == len(methods)}
        if not complete:
            raise ValueError("there is no run yet that every method has finished")
        by_cell: dict[tuple[str, str], list[list[Row]]] = {}
        for (data, twist, _), by in complete.items():
            by_cell.setdefault((data, twist), []).append([by[method] for method in methods])
        tables = {
            metric: np.array(
                [[np.mean([getattr(row, metric) for row in column]) for column in zip(*cell, strict=True)]
                 for cell in by_cell.values()]
            )
            for metric in (*METRICS, "brier", "seconds")
        }  # fmt: skip
        sums = [[sum(row.bins for row in column) for column in zip(*cell, strict=True)] for cell in by_cell.values()]
        made: dict[str, Any] = {
            "methods": methods,
            "cells": list(by_cell),
            "incomplete": len(runs) - len(complete),
            "tables": tables,
            "bins": np.array(sums, dtype=float),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def where(self, twisted: bool) -> NDArray[np.bool_]:
        """Which cells are twisted, or not."""
        return np.array([(twist != UNTWISTED) == twisted for _, twist in self.cells])

    def of(self, metric: str, method: str, twisted: bool = True) -> Array:
        """One method's values of the twisted, or the untwisted, cells."""
        column: Array = self.tables[metric][:, self.methods.index(method)]
        return column[self.where(twisted)]

    @property
    def ranks(self) -> dict[str, float]:
        """Mean rank by accuracy over the twisted cells, the best first."""
        accuracy = np.round(self.tables["accuracy"][self.where(True)], 9)  # ties are ties whatever the rounding
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

    def against(self, peer: str, by_data: bool = False) -> Array:
        """Our accuracy less the peer's, per twisted cell, or per data set, as the cells of one are related."""
        lead = self.of("accuracy", OURS) - self.of("accuracy", peer)
        if not by_data:
            return lead
        data = np.array([name for (name, _), here in zip(self.cells, self.where(True), strict=True) if here])
        return np.array([lead[data == name].mean() for name in np.unique(data)])

    def calibration_error(self, method: str) -> float:
        """Mean over the twisted cells of |said - true share|, each tenth of the predictions weighted by its rows."""
        n, p, y = np.moveaxis(self.bins[self.where(True), self.methods.index(method)], -1, 0)
        rows = n.sum(axis=1)
        return float(np.mean((np.abs(p - y).sum(axis=1) / rows)[rows > 0])) if np.any(rows) else math.nan


def sections(verdict: Verdict) -> list[Section]:
    """All there is to show, the losing cases first."""
    parts = [_losses(verdict), _bars(verdict)] if {OURS, PEER} <= set(verdict.methods) else []
    parts += [_ranks(verdict)] if len(verdict.methods) > 1 and verdict.ranks else []
    parts += [_by_twist(verdict, metric) for metric in METRICS]
    parts += [_calibration(verdict), _reliability(verdict)] if verdict.ranks else []
    parts += [_time(verdict)]
    return parts + ([_failures(verdict)] if any(row.error for row in verdict.rows) else [])


def _lead(verdict: Verdict) -> Array:
    """Our accuracy less the early-stopped peer's in every cell, untwisted ones too."""
    ours, peer = (verdict.tables["accuracy"][:, verdict.methods.index(name)] for name in (OURS, PEER))
    return np.round(ours - peer, 9)  # .76 is exactly .02 below .78


def _losses(verdict: Verdict) -> Section:
    lead, accuracy = _lead(verdict), verdict.tables["accuracy"]
    both = [verdict.methods.index(name) for name in (OURS, PEER)]
    lost = int(np.sum(lead < -LOSS))
    worst = np.argsort(lead, kind="stable")[: lost or 5]
    table = [[*verdict.cells[i], *(f"{accuracy[i, j]:.3f}" for j in both), f"{lead[i]:+.3f}"] for i in worst]
    title = f"Losing cases: {lost or 'none'} of {len(lead)}"
    note = f"Data set x twist more than {LOSS} below {PEER} in accuracy" + (
        "." if lost else "; the five closest to it."
    )
    return Section(title, note, ["data", "twist", "ours", "peer", "lead"], table)


def _bars(verdict: Verdict) -> Section:
    """The aims of the project, and whether they are met."""
    lines = []

    def bar(aim: str, found: str, met: bool) -> None:
        lines.append([aim, found, "met" if met else "missed"])

    if verdict.ranks:
        best, rank = next(iter(verdict.ranks.items()))
        bar("best mean rank by accuracy, twisted cells", f"{best}, {rank:.2f}", best == OURS)
        leads = [verdict.against(peer) for peer in verdict.peers]
        p = holm(map(signed_rank, leads))
        ahead = sum(bool(lead.mean() > 0 and one < 0.05) for lead, one in zip(leads, p, strict=True))
        bar("ahead of each peer (Wilcoxon, Holm, 5 %)", f"{ahead} of {len(leads)} peers", ahead == len(leads))
    if np.any(verdict.where(False)):
        ours = float(verdict.of("accuracy", OURS, twisted=False).mean())
        peer = max(verdict.peers, key=lambda name: verdict.of("accuracy", name, twisted=False).mean())
        gap = ours - float(verdict.of("accuracy", peer, twisted=False).mean())
        bar("untwisted: within .005 of the best peer", f"{gap:+.4f} to {peer}", gap >= -0.005)
    low = float(_lead(verdict).min())
    bar(f"nowhere more than {LOSS} below {PEER}", f"{low:+.3f} at worst", low >= -LOSS)
    for what, values in [
        ("log-loss", {name: float(verdict.of("log_loss", name).mean()) for name in verdict.methods}),
        ("calibration error", {name: verdict.calibration_error(name) for name in verdict.methods}),
    ]:
        if verdict.ranks:
            best = min(values, key=values.__getitem__)
            bar(f"lowest clean {what}, twisted cells", f"{best}, {values[best]:.3f}", best == OURS)
    if TIMED in verdict.methods:
        times = verdict.tables["seconds"].mean(axis=0)
        ratio = float(times[0] / times[verdict.methods.index(TIMED)])
        bar(f"as fast as {TIMED} (at most 3 times)", f"{ratio:.2f} times", ratio <= 1)
    return Section("Aims", "What the default classifier should show.", ["aim", "found", ""], lines)


def _ranks(verdict: Verdict) -> Section:
    cells = int(verdict.where(True).sum())
    cd = critical_difference(len(verdict.methods), cells)
    note = f"By accuracy over {cells} twisted cells; ranks closer than {cd:.2f} (Nemenyi, 5 %) are not told apart."
    header = ["method", "rank", "accuracy"]
    table = [
        [name, f"{rank:.2f}", f"{verdict.of('accuracy', name).mean():.4f}"] for name, rank in verdict.ranks.items()
    ]
    if OURS in verdict.methods:
        note += (
            " Wilcoxon's p (Holm) of our lead: over cells and, as cells of one data set are related, over data sets."
        )
        header += ["our lead", "won", "tied", "lost", "p, cells", "p, data sets"]
        p = {peer: [signed_rank(verdict.against(peer, by_data)) for by_data in (False, True)] for peer in verdict.peers}
        corrected = dict(
            zip(p, zip(*(holm(column) for column in zip(*p.values(), strict=True)), strict=True), strict=True)
        )
        for line in table:
            if line[0] == OURS:
                line += [""] * 6
                continue
            lead = np.round(verdict.against(line[0]), 9)
            counts = [str(int(np.sum(np.sign(lead) == sign))) for sign in (1, 0, -1)]
            line += [f"{lead.mean():+.4f}", *counts, *(f"{one:.2g}" for one in corrected[line[0]])]
    return Section("Mean ranks", note, header, table, figure="ranks")


def _by_twist(verdict: Verdict, metric: str) -> Section:
    twists = list(dict.fromkeys(twist for _, twist in verdict.cells))
    of_twist = {twist: np.array([other == twist for _, other in verdict.cells]) for twist in twists}
    means = np.array([verdict.tables[metric][here].mean(axis=0) for here in of_twist.values()])  # twists x methods
    best = (np.argmin if metric == "log_loss" else np.argmax)(means, axis=1)
    table = [
        [name, *(f"{means[i, j]:.3f}{'*' if best[i] == j else ' '}" for i in range(len(twists)))]
        for j, name in enumerate(verdict.methods)
    ]
    return Section(f"{METRICS[metric]} by twist", "Mean over data sets; * the best.", ["method", *twists], table)


def _calibration(verdict: Verdict) -> Section:
    table = [
        [name, *(f"{verdict.of(metric, name).mean():.3f}" for metric in ("log_loss", "brier")),
         f"{verdict.calibration_error(name):.3f}"]
        for name in verdict.methods
    ]  # fmt: skip
    table.sort(key=lambda line: float(line[1]))
    note = (
        "Twisted cells, against the clean labels; the calibration error compares predicted and clean shares in tenths."
    )
    return Section("Probabilities", note, ["method", "log-loss", "Brier", "calibration error"], table)


def shares(verdict: Verdict, method: str) -> Array:
    """BINS x 3: rows, mean prediction, clean share of ones; all twisted cells together, NaN where there are no rows."""
    n, p, y = verdict.bins[verdict.where(True), verdict.methods.index(method)].sum(axis=0).T
    known = np.where(n > 0, n, np.nan)
    return np.column_stack([n, p / known, y / known])


def _reliability(verdict: Verdict) -> Section:
    columns = [shares(verdict, name) for name in verdict.compared]
    table = [
        [f"{i / BINS:.1f} to {(i + 1) / BINS:.1f}", *(cell for one in columns for cell in
         (f"{one[i, 0]:.0f}", *("-" if math.isnan(x) else f"{x:.3f}" for x in one[i, 1:])))]
        for i in range(BINS)
    ]  # fmt: skip
    header = ["P(1)", *(f"{name}{what}" for name in verdict.compared for what in (": rows", ", said", ", true"))]
    note = "Twisted cells together: where a method says so much, how often is the clean label 1?"
    return Section("Reliability", note, header, table, figure="reliability")


def _time(verdict: Verdict) -> Section:
    seconds = verdict.tables["seconds"]
    base = seconds[:, verdict.methods.index(TIMED)].mean() if TIMED in verdict.methods else math.nan
    table = [
        [name, f"{column.mean():.3f}", f"{np.median(column):.3f}", f"{column.mean() / base:.2f}" if base > 0 else "-"]
        for name, column in zip(verdict.methods, seconds.T, strict=True)
    ]
    table.sort(key=lambda line: float(line[1]))
    note = "Seconds of processor time for a fit with one thread, over all cells."
    return Section("Time", note, ["method", "mean", "median", f"mean / {TIMED}"], table)


def _failures(verdict: Verdict) -> Section:
    failed = [[row.method, row.data, row.twist, str(row.seed), row.error] for row in verdict.rows if row.error]
    note = "A method that fails counts as a coin toss."
    return Section(f"Failures: {len(failed)}", note, ["method", "data", "twist", "seed", "error"], failed)
