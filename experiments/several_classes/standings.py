"""What the rows show: losing cells, aims, means by kind of noise. Nothing is run again.

A run is a data set with a kind of noise and a split; a cell is the mean over its splits. Only runs that every method
has come to the end of count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from experiments.protocol import REAL
from experiments.several_classes.methods import AUDITORS, CONTROLS, OURS, PEER, RIVALS
from experiments.several_classes.rows import Row
from experiments.several_classes.sets import KINDS
from experiments.tables import TextTable

__all__ = ["Standings", "make_real_table", "make_tables"]

#: Our method loses a cell if its accuracy is further than this below the peer's.
LOSS = 0.02
#: The share of clean rows that may be flagged.
FALSE_ALARMS = 0.01
#: How far the estimated share of wrong labels may be off, in the median.
SHARE_ERROR = 0.02
#: How often intervals with a confidence of 95 % must cover the truth.
COVERAGE = 0.9
#: The part of the fit that the estimate of the noise may take.
NOISE_TIME = 0.1

#: Means of the same numbers in another order may differ by this much.
ROUNDING = 1e-9

Value = Callable[[Row], float]


def _mean(values: Iterable[float]) -> float:
    """Return the mean of the values that are known."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _median(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else math.nan


def _write(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


class Standings:
    """The runs that every method has finished.

    Parameters
    ----------
    rows : list of Row
        Of one half of the data sets, or of all.

    Attributes
    ----------
    methods : list of str
        Who took part, ours first.
    kinds : list of str
        The kinds of noise that there are.
    runs : dict
        By data set, kind and split the row of each method.
    incomplete : int
        Runs that were left out.
    failures : list of Row
        The rows with an error.
    """

    def __init__(self, rows: list[Row]) -> None:
        known = [OURS, *CONTROLS, *RIVALS, *AUDITORS]
        rows = [row for row in rows if row.kind != REAL]
        self.failures = [row for row in rows if row.error]
        self.methods = sorted({row.method for row in rows}, key=lambda name: (known.index(name), name))
        runs: dict[tuple[str, str, int], dict[str, Row]] = {}
        for row in rows:
            by_method = runs.setdefault((row.data, row.kind, row.split), {})
            if not row.error:
                by_method[row.method] = row
        self.runs = {run: by_method for run, by_method in runs.items() if len(by_method) == len(self.methods)}
        self.incomplete = len(runs) - len(self.runs)
        present = {kind for _, kind, _ in self.runs}
        self.kinds = [kind for kind in KINDS if kind in present]

    def pick(self, method: str, kind: str | None = None) -> list[Row]:
        """Pick the rows of a method, of one kind of noise or of all.

        Parameters
        ----------
        method : str
            The method.
        kind : str, optional
            The kind of noise.

        Returns
        -------
        list of Row
        """
        return [by_method[method] for (_, one, _), by_method in self.runs.items() if kind in (None, one)]

    def average(self, method: str, kind: str | None, value: Value) -> float:
        """Average a value over the runs of a kind of noise.

        Parameters
        ----------
        method : str
            The method.
        kind : str or None
            The kind of noise, None for all.
        value : callable
            What to take of a row; what is NaN does not count.

        Returns
        -------
        float
        """
        return _mean(value(row) for row in self.pick(method, kind))

    def average_precision(self, method: str, kind: str) -> float:
        """Average the precision of a ranking; of cleanlab's two rankings the better one counts."""
        rankings: list[Value] = [lambda row: row.average_precision, lambda row: row.by_margin]
        means = [self.average(method, kind, value) for value in rankings]
        return max((mean for mean in means if not math.isnan(mean)), default=math.nan)

    def find_cells(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Find our accuracy and the peer's by data set and kind of noise, the mean over splits."""
        cells: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for (data, kind, _), by_method in self.runs.items():
            cells.setdefault((data, kind), []).append((by_method[OURS].accuracy, by_method[PEER].accuracy))
        return {cell: (_mean(one for one, _ in both), _mean(two for _, two in both)) for cell, both in cells.items()}


# ---- what is compared, kind by kind ----


class _Comparison(NamedTuple):
    """Ours beside the best peer, in one metric and under one kind of noise."""

    metric: str
    kind: str
    ours: float
    best_peer: str
    best: float
    ahead: bool


def _compare(standings: Standings) -> list[_Comparison]:
    """Compare ours with the best peer, in all metrics and under all kinds of noise."""
    compared = []
    rivals = [name for name in RIVALS if name in standings.methods]
    auditors = [name for name in AUDITORS if name in standings.methods]
    metrics: list[tuple[str, list[str], Callable[[str, str], float], int]] = [
        ("accuracy", rivals, lambda name, kind: standings.average(name, kind, lambda row: row.accuracy), 1),
        ("log-loss", rivals, lambda name, kind: standings.average(name, kind, lambda row: row.log_loss), -1),
        ("average precision", auditors, standings.average_precision, 1),
        ("F1", auditors, lambda name, kind: standings.average(name, kind, lambda row: row.f1), 1),
    ]
    for metric, peers, measure, sign in metrics:
        for kind in standings.kinds:
            values = {name: measure(name, kind) for name in peers}
            values = {name: value for name, value in values.items() if not math.isnan(value)}
            ours = measure(OURS, kind)
            if not values or math.isnan(ours):
                continue
            best = max(values, key=lambda name: sign * values[name])
            ahead = sign * (ours - values[best]) >= -ROUNDING
            compared.append(_Comparison(metric, kind, ours, best, values[best], ahead))
    return compared


def make_tables(standings: Standings, half: str) -> list[TextTable]:
    """Make all there is to show of one half, what is lost first.

    Parameters
    ----------
    standings : Standings
        The standings.
    half : str
        Its name.

    Returns
    -------
    list of TextTable
    """
    if not standings.runs:
        return [_list_failures(standings)] if standings.failures else []
    both = {OURS, PEER} <= set(standings.methods)
    parts = [_list_losses(standings), _list_lost_kinds(standings), _check_aims(standings)] if both else []
    audited = [name for name in [OURS, *AUDITORS] if name in standings.methods]
    predicting = [name for name in standings.methods if name not in AUDITORS]
    average = standings.average
    noisy = [kind for kind in standings.kinds if kind != "none"]
    for title, methods, kinds, measure in [
        ("Accuracy", predicting, standings.kinds, lambda one, kind: average(one, kind, lambda row: row.accuracy)),
        ("Log-loss", predicting, standings.kinds, lambda one, kind: average(one, kind, lambda row: row.log_loss)),
        ("Average precision of the ranking", audited, noisy, standings.average_precision),
        ("F1 of the flagged rows", audited, noisy, lambda one, kind: average(one, kind, lambda row: row.f1)),
        ("Precision of the flagged rows", audited, noisy, lambda one, kind: average(one, kind, _take_precision)),
        ("Recall of the flagged rows", audited, noisy, lambda one, kind: average(one, kind, lambda row: row.recall)),
        ("Share of rows flagged", audited, standings.kinds, lambda one, kind: average(one, kind, _take_flagged)),
    ]:
        if methods and kinds:
            parts.append(_average_by_kind(title, methods, kinds, measure))
    parts += [_list_shares(standings, audited)] if audited else []
    parts += [_list_times(standings)]
    parts += [_list_failures(standings)] if standings.failures else []
    return [TextTable(f"{half}: {one.title}", one.note, one.header, one.lines) for one in parts]


def _take_precision(row: Row) -> float:
    return row.precision


def _take_flagged(row: Row) -> float:
    return row.flagged


def _list_losses(standings: Standings) -> TextTable:
    leads = {cell: round(ours - peer, 9) for cell, (ours, peer) in standings.find_cells().items()}
    lost = sum(lead < -LOSS for lead in leads.values())
    worst = sorted(leads, key=leads.__getitem__)[: lost or 5]
    cells = standings.find_cells()
    lines = [[*cell, *(f"{value:.3f}" for value in cells[cell]), f"{leads[cell]:+.3f}"] for cell in worst]
    note = f"Data set x kind, mean of its splits, more than {LOSS} below {PEER} in accuracy" + (
        "." if lost else "; the five closest to it."
    )
    title = f"losing cells, {lost or 'none'} of {len(leads)}"
    return TextTable(title, note, ["data", "kind", "ours", PEER, "lead"], lines)


def _list_lost_kinds(standings: Standings) -> TextTable:
    compared = _compare(standings)
    behind = [one for one in compared if not one.ahead]
    lines = [
        [one.metric, one.kind, f"{one.ours:.4f}", one.best_peer, f"{one.best:.4f}", f"{one.ours - one.best:+.4f}"]
        for one in behind
    ]
    note = "Means over data sets and splits, beside the best peer; cleanlab with the best posteriors of its three."
    title = f"kinds of noise where ours is behind, {len(behind) or 'none'} of {len(compared)}"
    return TextTable(title, note, ["metric", "kind", "ours", "best peer", "its", "lead"], lines)


def _check_aims(standings: Standings) -> TextTable:
    """List the aims of the project, and whether they are met."""
    lines = []

    def add(aim: str, found: str, met: bool) -> None:
        lines.append([aim, found, "met" if met else "missed"])

    compared = _compare(standings)
    for metric in dict.fromkeys(one.metric for one in compared):
        ahead = [one.ahead for one in compared if one.metric == metric]
        whom = "every peer" if metric in ("accuracy", "log-loss") else "cleanlab with its best posteriors"
        add(f"{metric} ahead of {whom} in the mean", f"{sum(ahead)} of {len(ahead)} kinds", all(ahead))
    lead = min(ours - peer for ours, peer in standings.find_cells().values())
    add(f"nowhere more than {LOSS} below {PEER}", f"{lead:+.3f} at worst", round(lead, 9) >= -LOSS)
    if not math.isnan(flagged := standings.average(OURS, "none", _take_flagged)):
        add(f"at most {FALSE_ALARMS:.0%} flagged in clean data", f"{flagged:.2%}", flagged <= FALSE_ALARMS)
    rows = standings.pick(OURS)
    # Clean data alone would make half of a good median.
    error = _median(abs(row.share_said - row.share_true) for row in rows if row.kind != "none")
    if not math.isnan(error):
        add(f"share of wrong labels within {SHARE_ERROR} in the median", _write(error), error <= SHARE_ERROR)
    covered = _mean(_covers(row) for row in rows)
    add(f"95 % intervals cover {COVERAGE:.0%} of the time", f"{covered:.1%}", covered >= COVERAGE)
    ratio = _mean(row.seconds for row in rows) / _mean(row.seconds for row in standings.pick(PEER))
    add(f"as fast as {PEER} with its search", f"{ratio:.2f} times", ratio <= 1.0)
    part = _mean(row.noise_seconds for row in rows) / _mean(row.seconds for row in rows)
    add(f"the noise in at most {NOISE_TIME:.0%} of the fit", f"{part:.1%}", part <= NOISE_TIME)
    return TextTable("aims", "What the default classifier should show.", ["aim", "found", ""], lines)


def _covers(row: Row) -> float:
    if math.isnan(row.share_low) or math.isnan(row.share_true):
        return math.nan
    # The share of a clean sample is 0 to the last digit, and an interval that begins just above is no miss.
    return float(row.share_low - 1e-4 <= row.share_true <= row.share_high + 1e-4)


def _average_by_kind(
    title: str, methods: list[str], kinds: list[str], measure: Callable[[str, str], float]
) -> TextTable:
    table = {name: [measure(name, kind) for kind in kinds] for name in methods}
    lines = [[name, *map(_write, values), _write(_mean(values))] for name, values in table.items()]
    return TextTable(title.lower(), "Mean over data sets and splits.", ["method", *kinds, "mean"], lines)


def _list_shares(standings: Standings, audited: list[str]) -> TextTable:
    lines = []
    for kind in standings.kinds:
        ours = standings.pick(OURS, kind) if OURS in audited else []
        others = [standings.pick(name, kind) for name in audited if name != OURS]
        errors = [_median(abs(row.share_said - row.share_true) for row in rows) for rows in others]
        lines.append(
            [
                kind,
                _write(_mean(row.share_true for row in ours)),
                _write(_mean(row.share_said for row in ours)),
                _write(_median(abs(row.share_said - row.share_true) for row in ours)),
                _write(min((error for error in errors if not math.isnan(error)), default=math.nan)),
                _write(_mean(_covers(row) for row in ours), 2),
                _write(_mean(row.share_high - row.share_low for row in ours)),
                _write(_mean(row.found for row in ours), 2),
            ]
        )
    header = ["kind", "true", "said", "median error", "cleanlab's", "covered", "width", "found"]
    note = "The share of wrong labels; the median error of cleanlab is its best; covered: by the 95 % interval."
    return TextTable("share of wrong labels", note, header, lines)


def _list_times(standings: Standings) -> TextTable:
    lines = []
    base = standings.average(PEER, None, lambda row: row.seconds) if PEER in standings.methods else math.nan
    for name in standings.methods:
        mean = standings.average(name, None, lambda row: row.seconds)
        noise = standings.average(name, None, lambda row: row.noise_seconds)
        median = _median(row.seconds for row in standings.pick(name))
        lines.append([name, _write(mean, 2), _write(median, 2), _write(mean / base, 2), _write(noise, 2)])
    note = "Seconds of processor time with one thread: the fit with all that was searched, and the estimate of noise."
    return TextTable("time", note, ["method", "mean", "median", f"mean / {PEER}", "noise"], lines)


def _list_failures(standings: Standings) -> TextTable:
    lines = [[row.method, row.data, row.kind, str(row.split), row.error] for row in standings.failures]
    note = "Runs in which a method failed are left out, for all methods."
    return TextTable(f"failures, {len(lines)}", note, ["method", "data", "kind", "split", "error"], lines)


def make_real_table(rows: list[Row]) -> list[TextTable]:
    """Make a table for each data set that comes with real noise and clean test rows.

    Parameters
    ----------
    rows : list of Row
        All rows.

    Returns
    -------
    list of TextTable
    """
    tables = []
    order = [OURS, *CONTROLS, *RIVALS, *AUDITORS]
    real = [row for row in rows if row.kind == REAL and not row.error]
    for data in dict.fromkeys(row.data for row in real):
        here = [row for row in real if row.data == data]
        lines = []
        for name in sorted({row.method for row in here}, key=order.index):
            mine = [row for row in here if row.method == name]
            values: list[tuple[Value, int]] = [
                (lambda row: row.accuracy, 3),
                (lambda row: row.log_loss, 3),
                (lambda row: row.share_said, 3),
                (lambda row: row.share_low, 3),
                (lambda row: row.share_high, 3),
                (lambda row: row.flagged, 3),
                (lambda row: row.found, 2),
                (lambda row: row.seconds, 1),
            ]
            lines.append([name, *(_write(_mean(map(value, mine)), digits) for value, digits in values)])
        header = ["method", "accuracy", "log-loss", "share said", "from", "to", "flagged", "found", "seconds"]
        splits = len({row.split for row in here})
        note = (
            f"Real noisy labels, clean test rows; mean over {splits} draws of at most {here[0].max_rows} training rows."
        )
        tables.append(TextTable(f"real noise: {data}", note, header, lines))
    return tables
