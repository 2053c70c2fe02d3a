"""What the rows of all cells say, what is lost first: false claims, power, intervals, harm, yields, cleanlab."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy import stats

from experiments.tables import TextTable
from experiments.trust.audits import BUDGET, FOUND, NONE, UNDECIDED, CellRow
from experiments.trust.cells import CLEAN, FAR, FOLLOWING, PLANTED, REAL, TOLD
from experiments.trust.parts import write_mean, write_number
from untwist.arguments import Array

__all__ = ["average_by_source", "bound_rate", "make_tables"]

#: Power is promised where a forest is right so often, every class has so many rows, and more is wrong than this.
CLEAR, ENOUGH_ROWS, WORTH_FINDING = 0.9, 100, 0.1
#: What is promised: see `_list_promises`.
MOST_FALSE, MOST_LISTED, LEAST_POWER, LEAST_COVERED, LEAST_AGREEMENT, MOST_ERROR = 0.03, 0.005, 0.9, 0.95, 0.8, 0.05
LEAST_TABLES, LEAST_SOURCES = 300, 30
#: Log-loss on clean tables may be worse by so much, absolute or relative, whichever is more.
ALLOWED_LOSS, ALLOWED_PART = 0.005, 0.02
#: A number of rows is whole, and what is promised is not.
HALF_A_ROW = 0.5
#: A limit that was written with six digits.
ROUNDING = 1e-6
CHANCE = "chance"


# ---- statistics of sources ----


def bound_rate(flags: Sequence[bool], sources: Sequence[str]) -> float:
    """Return the upper limit, at 95 % to one side, of how often something happens.

    It is the limit of Clopper and Pearson with the number of cases that the variance between sources leaves (Korn and
    Graubard, Survey Methodology 24, 1998). Where nothing happened, no variance is seen, and each case counts.

    Parameters
    ----------
    flags : sequence of bool
        Whether it happened, one per case.
    sources : sequence of str
        Cases of one source are no independent evidence.

    Returns
    -------
    float

    Examples
    --------
    >>> round(bound_rate([False] * 99, [str(n) for n in range(99)]), 3)
    0.03
    >>> same = bound_rate([True] * 5 + [False] * 95, ["a"] * 10 + ["b"] * 90)
    >>> apart = bound_rate([True] * 5 + [False] * 95, [str(n) for n in range(100)])
    >>> same > apart
    True
    """
    happened = np.asarray(flags, dtype=np.float64)
    n, rate = len(happened), float(happened.mean())
    effective = float(n)
    if 0.0 < rate < 1.0:
        _, index = np.unique(np.asarray(sources), return_inverse=True)
        by_source = np.bincount(index, happened - rate)
        variance = float(np.sum(by_source**2)) / n**2 * len(by_source) / max(len(by_source) - 1, 1)
        effective = min(effective, rate * (1.0 - rate) / variance) if variance > 0 else effective
    return 1.0 if rate == 1.0 else float(stats.beta.ppf(0.95, rate * effective + 1.0, (1.0 - rate) * effective))


def average_by_source(values: Sequence[float], sources: Sequence[str]) -> tuple[float, float]:
    """Return a mean over cells and how far its 95 % interval reaches to either side, by the variance between sources.

    Parameters
    ----------
    values : sequence of float
        One per cell.
    sources : sequence of str
        Cells of one source are no independent evidence.

    Returns
    -------
    mean, reach : float
        The reach is NaN where there is one source.
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean())
    _, index = np.unique(np.asarray(sources), return_inverse=True)
    by_source = np.bincount(index, numbers - mean)
    k = len(by_source)
    if k == 1:
        return mean, math.nan
    error = math.sqrt(float(np.sum(by_source**2)) * k / (k - 1)) / len(numbers)
    return mean, float(stats.t.ppf(0.975, k - 1)) * error


# ---- what a row says ----


def _is_found(row: CellRow) -> bool:
    return row.state == FOUND


def _is_clear(row: CellRow) -> bool:
    """Tell whether noise is promised to be found in a cell."""
    return row.forest >= CLEAR and row.least >= ENOUGH_ROWS and row.rate > WORTH_FINDING + ROUNDING


def _is_covered(row: CellRow) -> bool:
    return row.low - ROUNDING <= row.true_share <= row.high + ROUNDING


def _is_kept(row: CellRow) -> bool:
    """Tell whether the list without a budget, and that of a budget, hold as many wrong labels as was said."""
    listed = row.promised_low - HALF_A_ROW <= row.wrong <= row.promised_high + HALF_A_ROW
    return listed and row.budget_low - HALF_A_ROW <= row.budget_wrong <= row.budget_high + HALF_A_ROW


def _is_harmed(row: CellRow) -> bool:
    """Tell whether the correction of posteriors costs more log-loss than is allowed, beyond two standard errors."""
    lost = row.clean_loss - row.plain_loss
    return lost > max(ALLOWED_LOSS, ALLOWED_PART * row.plain_loss) and lost > 2.0 * row.loss_error


def _count_classes(row: CellRow) -> str:
    return "two" if row.n_classes == 2 else "several"


def _name_group(row: CellRow) -> tuple[str, ...]:
    return row.group, _count_classes(row)


def _sources(rows: Iterable[CellRow]) -> list[str]:
    return [row.source for row in rows]


def _count(flags: Iterable[bool]) -> str:
    known = list(flags)
    return f"{sum(known)} of {len(known)}"


def _percent(value: float, digits: int = 1) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}%}"


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _group(rows: Iterable[CellRow], key: Callable[[CellRow], tuple[str, ...]]) -> dict[tuple[str, ...], list[CellRow]]:
    cells: dict[tuple[str, ...], list[CellRow]] = {}
    for row in rows:
        cells.setdefault(key(row), []).append(row)
    return dict(sorted(cells.items()))


def _by_kind(rows: Iterable[CellRow]) -> dict[tuple[str, ...], list[CellRow]]:
    return _group(rows, lambda row: (row.group, row.kind, _count_classes(row)))


def _name(key: tuple[str, ...]) -> str:
    """Name cells: "by class, even .2, several"; a group that says no more than the kind is left out."""
    group, kind, classes = key
    return f"{kind}, {classes}" if group in (CLEAN, FAR, REAL, TOLD) else f"{group}, {kind}, {classes}"


# ---- tables ----


def make_tables(rows: list[CellRow], before: list[CellRow]) -> list[TextTable]:
    """Make the tables, what was promised and is lost first.

    Parameters
    ----------
    rows : list of CellRow
        Rows without errors.
    before : list of CellRow
        Those of an earlier version, of the same cells.

    Returns
    -------
    list of TextTable
    """
    tables = [
        _list_promises(rows),
        _tabulate_false_claims([row for row in rows if row.group in (CLEAN, TOLD)]),
        _list_false_claims([row for row in rows if row.group == CLEAN and _is_found(row)]),
        _tabulate_power([row for row in rows if row.group == PLANTED]),
        _tabulate_intervals([row for row in rows if row.group != TOLD and not math.isnan(row.true_share)]),
        _tabulate_harm([row for row in rows if not math.isnan(row.plain_loss)]),
        _tabulate_yields([row for row in rows if row.group != TOLD and not math.isnan(row.wrong)]),
        _tabulate_corrections([row for row in rows if not math.isnan(row.right)]),
        _tabulate_agreement([row for row in rows if not math.isnan(row.agreement)]),
        _tabulate_peer([row for row in rows if not math.isnan(row.peer_flagged)]),
        _list_real([row for row in rows if row.group == REAL]),
        _compare(rows, before),
    ]
    return [table for table in tables if table.lines]


def _list_promises(rows: list[CellRow]) -> TextTable:
    """Judge what was promised."""
    clean = [row for row in rows if row.group == CLEAN]
    no_chance = [row for row in clean if row.kind != CHANCE]
    few = [row for row in clean if row.kind == "few rows"]
    far = [row for row in rows if row.group == FAR]
    under_the_if = [row for row in rows if row.group in (PLANTED, FAR)]
    beyond_the_if = [row for row in rows if row.group == REAL or row.kind == "moons"]
    agreeing = [row for row in rows if row.group == PLANTED and row.n_classes == 2 and not math.isnan(row.agreement)]
    lines = []

    def promise(what: str, measured: str, promised: str, met: bool) -> None:
        lines.append([what, measured, promised, "met" if met else "missed"])

    if clean:
        n_sources = len(set(_sources(clean)))
        promised = f"at least {LEAST_TABLES} of {LEAST_SOURCES} sources"
        enough = len(clean) >= LEAST_TABLES and n_sources >= LEAST_SOURCES
        promise("clean tables", f"{len(clean)} of {n_sources} sources", promised, enough)
    for where, here in (("clean tables", clean), ("clean tables without chance", no_chance)):
        if here:
            bound = bound_rate([_is_found(row) for row in here], _sources(here))
            counted = f"{_count(map(_is_found, here))}, at most {_percent(bound)}"
            promise(f"noise found on {where}", counted, f"at most {_percent(MOST_FALSE, 0)}", bound <= MOST_FALSE)
            listed = _mean(row.flagged for row in here)
            promised = f"at most {_percent(MOST_LISTED)}"
            promise(f"rows listed of {where}", _percent(listed, 2), promised, listed <= MOST_LISTED)
    if told := [row for row in rows if row.group == TOLD]:
        called = [_is_found(row) or row.changed > 0.0 for row in told]
        promise("chance=True: a label is called wrong or changed", _count(called), "none", not any(called))
    if few:
        promise("noise found, few rows a class", _count(map(_is_found, few)), "none", not any(map(_is_found, few)))
    for classes in ("two", "several"):
        planted = [row for row in rows if row.group == PLANTED and _count_classes(row) == classes]
        if clear := [row for row in planted if _is_clear(row)]:
            power = _mean(float(_is_found(row)) for row in clear)
            promised = f"at least {_percent(LEAST_POWER, 0)}"
            promise(
                f"noise found where classes are clear, {classes}",
                _count(map(_is_found, clear)),
                promised,
                power >= LEAST_POWER,
            )
            if classes == "several":
                error = _mean(abs(row.share - row.true_share) for row in clear)
                promised = f"at most {write_number(MOST_ERROR, 2)}"
                promise("error of their share, several", write_number(error), promised, error <= MOST_ERROR)
    if under_the_if:
        for words, judge in (("intervals that hold the share", _is_covered), ("yields in their range", _is_kept)):
            held = _mean(float(judge(row)) for row in under_the_if)
            counted = f"{_count(map(judge, under_the_if))}, {_percent(held)}"
            promise(
                f"{words}, errors by class", counted, f"at least {_percent(LEAST_COVERED, 0)}", held >= LEAST_COVERED
            )
    if beyond_the_if:
        conditional = [row.says_if == 1.0 for row in beyond_the_if]
        promise("moons, real errors: all surfaces say if", _count(conditional), "all", all(conditional))
    if far:
        fewer = [row.least_gain < -ROUNDING for row in far]
        promise("far errors: fewer right labels after corrected()", _count(fewer), "none", not any(fewer))
        gain = _mean(row.corrected - row.right for row in far)
        promise("far errors: right labels won", f"{gain:+.2%}", "more than none", gain > 0.0)
    if no_chance:
        harmed = [_is_harmed(row) for row in no_chance]
        promise("clean tables without chance: log-loss worse", _count(harmed), "none", not any(harmed))
    if agreeing:
        agreement = _mean(row.agreement for row in agreeing)
        promised = f"at least {write_number(LEAST_AGREEMENT, 1)}"
        promise("agreement of lists by seed, two", write_number(agreement, 2), promised, agreement >= LEAST_AGREEMENT)
    lines.sort(key=lambda line: line[3] != "missed")
    note = (
        f"Classes are clear where a forest is right on {_percent(CLEAR, 0)} of the rows with clean labels, every class "
        f"has {ENOUGH_ROWS} rows or more, and more than {_percent(WORTH_FINDING, 0)} of the labels are wrong. Log-loss "
        f"is worse where it is by more than {_percent(ALLOWED_PART, 0)} and {ALLOWED_LOSS}, and by more than two "
        "standard errors. At most: the upper limit of 95 %, by the variance between sources (Korn and Graubard)."
    )
    return TextTable("what was promised", note, ["", "measured", "promised", ""], lines)


def _tabulate_false_claims(rows: list[CellRow]) -> TextTable:
    lines = []
    cells = [(_name(key), here) for key, here in _by_kind(rows).items()]
    cells.sort(key=lambda cell: -_mean(float(_is_found(row)) for row in cell[1]))
    untold = [row for row in rows if row.group != TOLD]
    cells += [("all untold", untold), ("all without chance", [row for row in untold if row.kind != CHANCE])]
    for name, here in cells:
        if not here:
            continue
        found = [_is_found(row) for row in here]
        said = [_percent(_mean(float(row.state == state) for row in here), 0) for state in (UNDECIDED, NONE)]
        listed = [_percent(_mean(getattr(row, name) for row in here), 2) for name in ("flagged", "peer_flagged")]
        bound = _percent(bound_rate(found, _sources(here)))
        of_sources = len({row.source for row in here if _is_found(row)})
        counts = [str(len(here)), str(len(set(_sources(here)))), str(sum(found)), str(of_sources)]
        lines.append([name, *counts, bound, *said, *listed])
    note = (
        "No label of these tables is wrong, as far as that is known. Found: on how many tables, and of how many "
        "sources; at most: the upper limit of that rate by sources. Told: with chance=True, by which no label is "
        "called wrong, and rows listed are those that surprise."
    )
    header = [
        "",
        "tables",
        "sources",
        "found",
        "of sources",
        "at most",
        "undecided",
        "none",
        "rows listed",
        "by cleanlab",
    ]
    return TextTable("noise found where no label is wrong", note, header, lines)


def _list_false_claims(rows: list[CellRow]) -> TextTable:
    lines = [
        [
            f"{row.name} ({row.kind})",
            str(row.n_classes),
            str(row.n_rows),
            write_number(row.forest, 2),
            f"{_percent(row.share)} ({_percent(row.low)} to {_percent(row.high)})",
            _percent(row.flagged),
            _percent(row.corrected - row.right),
        ]
        for row in sorted(rows, key=lambda row: -row.share)
    ]
    note = "Each of them: what is said to be wrong though nothing is, and what corrected() does to right labels."
    header = ["table", "classes", "rows", "forest", "said to be wrong", "rows listed", "right labels"]
    return TextTable("tables without a wrong label where noise was found", note, header, lines)


def _tabulate_power(rows: list[CellRow]) -> TextTable:
    lines = []
    cells = [(_name(key), [row for row in here if _is_clear(row)]) for key, here in _by_kind(rows).items()]
    cells.sort(key=lambda cell: _mean(float(_is_found(row)) for row in cell[1]))
    for classes in ("two", "several"):
        here = [row for row in rows if _count_classes(row) == classes]
        cells.append((f"all clear, {classes}", [row for row in here if _is_clear(row)]))
        rest = [row for row in here if not _is_clear(row) and row.rate > WORTH_FINDING + ROUNDING]
        cells.append((f"all others with as much noise, {classes}", rest))
    for name, here in cells:
        if not here:
            continue
        lines.append(
            [
                name,
                str(len(here)),
                str(len(set(_sources(here)))),
                _count(map(_is_found, here)),
                _percent(_mean(row.true_share for row in here)),
                write_mean(abs(row.share - row.true_share) for row in here),
                write_mean(row.high - row.low for row in here),
                _percent(_mean(float(_is_covered(row)) for row in here), 0),
            ]
        )
    note = (
        "Errors by the class alone, where classes are clear. Error and width are means, of the share of wrong labels."
    )
    header = ["", "tables", "sources", "found", "wrong", "error", "width", "covered"]
    return TextTable("power: noise found where there is some", note, header, lines)


def _tabulate_intervals(rows: list[CellRow]) -> TextTable:
    lines = []
    rests_on_if = {CLEAN: "", PLANTED: "holds", FAR: "holds", FOLLOWING: "fails", REAL: "fails"}
    by_group = {(one[0], "", one[1]): here for one, here in _group(rows, _name_group).items()}
    for (group, kind, classes), here in [*by_group.items(), *_by_kind(rows).items()]:
        found = [row for row in here if _is_found(row)]
        lines.append(
            [
                _name((group, kind, classes)) if kind else f"all {group}, {classes}",
                rests_on_if[group],
                str(len(here)),
                _percent(_mean(float(_is_covered(row)) for row in here), 0),
                _percent(_mean(float(_is_covered(row)) for row in found), 0),
                _percent(_mean(float(row.true_share <= row.upper + ROUNDING) for row in here), 0),
                _percent(_mean(row.classes_covered for row in here), 0),
                write_mean(row.high - row.low for row in here),
                write_mean(row.upper for row in here),
                write_mean(row.true_share for row in here),
            ]
        )
    lines.sort(key=lambda line: (not line[0].startswith("all "), line[1] == "fails", float(line[3].rstrip(" %"))))
    note = (
        "How often the interval of the share holds it, in all cells and where noise was found; how often it is no more "
        "than the upper bound; of how many classes the interval holds the rate. The if: errors do not depend on "
        "features."
    )
    header = ["", "the if", "tables", "covered", "if found", "bounded", "by class", "width", "bound", "wrong"]
    return TextTable("intervals and bounds", note, header, lines)


def _tabulate_harm(rows: list[CellRow]) -> TextTable:
    lines = []
    for key, here in _by_kind(rows).items():
        lost: Array = np.array([row.clean_loss - row.plain_loss for row in here])
        worst = here[int(lost.argmax())]
        accuracy = [row.clean_accuracy - row.plain_accuracy for row in here]
        lines.append(
            [
                _name(key),
                str(len(here)),
                str(sum(map(_is_harmed, here))),
                write_mean(row.plain_loss for row in here),
                write_mean(row.clean_loss for row in here),
                f"{lost.max():+.3f} ({worst.name})",
                f"{np.mean(accuracy):+.4f}",
                f"{np.min(accuracy):+.4f}",
            ]
        )
    lines.sort(key=lambda line: -int(line[2]) / int(line[1]))
    note = (
        "Log-loss and accuracy of the true classes, out of fold, without and with the correction of posteriors. Worse: "
        "tables on which it costs more than is allowed on clean ones."
    )
    header = ["", "tables", "worse", "without", "with", "worst", "accuracy won", "at least"]
    return TextTable("does the correction of posteriors harm?", note, header, lines)


def _tabulate_yields(rows: list[CellRow]) -> TextTable:
    lines = []
    for key, here in _by_kind(rows).items():
        ours = [sum(getattr(row, name) for row in here) for name in ("promised", "wrong")]
        budget = [sum(getattr(row, name) for row in here) for name in ("budget_promised", "budget_wrong")]
        listed = [row.flagged * row.n_rows for row in here]
        lines.append(
            [
                _name(key),
                str(len(here)),
                _percent(_mean(float(_is_kept(row)) for row in here), 0),
                f"{sum(listed):.0f}",
                *[f"{number:.0f}" for number in ours],
                str(BUDGET * len(here)),
                *[f"{number:.0f}" for number in budget],
                write_mean((row.precision_of_ranking for row in here), 2),
            ]
        )
    lines.sort(key=lambda line: float(line[2].rstrip(" %")))
    note = (
        "Rows listed by themselves and by a budget, how many were said to be wrong, and how many are; kept: the tables "
        "where both are within the range that was said. Last, the average precision of the ranking."
    )
    header = ["", "tables", "kept", "listed", "promised", "wrong", f"first {BUDGET}", "promised", "wrong", "ranking"]
    return TextTable("yields: promised and real", note, header, lines)


def _tabulate_corrections(rows: list[CellRow]) -> TextTable:
    lines = []
    for key, here in _by_kind(rows).items():
        worst = min(here, key=lambda row: row.least_gain)
        lines.append(
            [
                _name(key),
                str(len(here)),
                str(sum(row.least_gain < -ROUNDING for row in here)),
                _percent(_mean(row.right for row in here)),
                _percent(_mean(row.corrected for row in here)),
                _percent(_mean(row.changed for row in here)),
                f"{worst.least_gain:+.1%} ({worst.name})" if worst.least_gain < -ROUNDING else "-",
            ]
        )
    lines.sort(key=lambda line: -int(line[2]) / int(line[1]))
    note = (
        "The share of right labels before and after corrected(). Fewer: tables that have fewer of them with any seed."
    )
    header = ["", "tables", "fewer", "before", "after", "changed", "worst"]
    return TextTable("right labels before and after corrected()", note, header, lines)


def _tabulate_agreement(rows: list[CellRow]) -> TextTable:
    lines = []
    for key, here in _by_kind(rows).items():
        worst = min(here, key=lambda row: row.agreement)
        changing = sum(0.0 < row.found_again < 1.0 for row in here)
        lines.append(
            [
                _name(key),
                str(len(here)),
                str(here[0].n_seeds),
                write_mean((row.agreement for row in here), 2),
                f"{worst.agreement:.2f} ({worst.name})",
                str(changing),
            ]
        )
    lines.sort(key=lambda line: float(line[3]))
    note = (
        "The mean Jaccard index of the lists of two seeds; changing: tables on which some seeds find noise, and others "
        "do not."
    )
    return TextTable(
        "do audits of other seeds agree?", note, ["", "tables", "seeds", "agreement", "worst", "changing"], lines
    )


def _tabulate_peer(rows: list[CellRow]) -> TextTable:
    lines = []
    for key, here in _by_kind(
        [row for row in rows if row.group not in (CLEAN, TOLD) and not math.isnan(row.wrong)]
    ).items():
        wrong = [row.true_share * row.n_rows for row in here]
        line = [_name(key), str(len(here)), f"{np.mean(wrong):.0f}"]
        precisions = []
        for flagged, hits in (("flagged", "wrong"), ("peer_flagged", "peer_wrong")):
            listed = [getattr(row, flagged) * row.n_rows for row in here]
            found = [getattr(row, hits) for row in here]
            precision = [hit / n for hit, n in zip(found, listed, strict=True) if n > 0]
            recall = [hit / n for hit, n in zip(found, wrong, strict=True) if n > 0]
            precisions.append(_mean(precision))
            line += [f"{np.mean(listed):.0f}", write_number(_mean(precision), 2), write_number(_mean(recall), 2)]
        lines.append(line)
    note = (
        "Rows listed without a budget by us, and by cleanlab's find_label_issues with the same posteriors: the number, "
        "the precision where any is listed, and the recall, means over tables. cleanlab 2.9 counts a row whose "
        "posterior passes the thresholds of several classes for the likeliest class of all, though that may pass none "
        "(its issue 1248); it is run as it comes."
    )
    header = ["", "tables", "wrong", "ours", "precision", "recall", "cleanlab's", "precision", "recall"]
    return TextTable("beside cleanlab", note, header, lines)


def _list_real(rows: list[CellRow]) -> TextTable:
    lines = [
        [
            row.name,
            str(row.n_rows),
            _percent(row.true_share),
            row.state,
            f"{_percent(row.share)} ({_percent(row.low)} to {_percent(row.high)})",
            _percent(row.upper),
            f"{row.wrong:.0f} of {row.flagged * row.n_rows:.0f}" if not math.isnan(row.wrong) else "-",
            f"{row.peer_wrong:.0f} of {row.peer_flagged * row.n_rows:.0f}" if not math.isnan(row.peer_wrong) else "-",
            write_number(row.clean_loss - row.plain_loss),
        ]
        for row in sorted(rows, key=lambda row: (math.isnan(row.true_share), -(row.true_share - row.upper)))
    ]
    note = (
        "Errors that nobody planted, as far as they are known; they follow the features. Those first whose share is "
        "farthest above the bound, which holds if errors do not depend on features."
    )
    header = ["table", "rows", "wrong", "state", "said", "bound", "listed", "by cleanlab", "log-loss"]
    return TextTable("real errors", note, header, lines)


def _compare(rows: list[CellRow], before: list[CellRow]) -> TextTable:
    """Set the rows beside those of an earlier version, cell by cell."""
    old = {row.key: row for row in before if not row.error}
    lines = []
    for (group, classes), here in _group(rows, _name_group).items():
        pairs = [(row, old[row.key]) for row in here if row.key in old and not math.isnan(row.plain_loss)]
        if not pairs:
            continue
        sources = [row.source for row, _ in pairs]
        line = [f"{group}, {classes}", str(len(pairs))]
        for name in ("clean_loss", "clean_accuracy"):
            differences = [getattr(row, name) - getattr(was, name) for row, was in pairs]
            mean, reach = average_by_source(differences, sources)
            line.append(f"{mean:+.4f} ± {write_number(reach, 4)}")
        for measure in (
            lambda row: float(_is_found(row)),
            lambda row: row.high - row.low,
            lambda row: abs(row.share - row.true_share),
            lambda row: row.flagged,
            lambda row: row.corrected,
        ):
            line.append(" / ".join(write_mean(map(measure, some)) for some in zip(*pairs, strict=True)))
        lines.append(line)
    version = before[0].version if before else ""
    note = (
        "The difference of log-loss and accuracy with the correction, with its 95 % interval by the variance between "
        "sources; then, now and before: how often noise is found, the width of the interval, the error of the share, "
        "the rows listed, and the right labels after corrected()."
    )
    header = ["", "tables", "log-loss", "accuracy", "found", "width", "error", "listed", "right"]
    return TextTable(f"beside version {version}", note, header, lines)
