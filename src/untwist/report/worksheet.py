"""The suspects with their values and similar rows, by column, as one compact text that the script of a page unpacks."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import is_missing
from untwist.audit.findings import Findings
from untwist.audit.labels import LabelAudit
from untwist.audit.reasons import describe_value
from untwist.audit.reviewed import change_reviewed
from untwist.audit.usual import UsualValues, find_usual_values
from untwist.report.markup import name_column
from untwist.text import clip

__all__ = ["RowNames", "Worksheet", "pack_worksheet"]

#: Characters of a packed worksheet, at most.
MOST_PACKED = 2_500_000
#: Columns that are shown of a row, at most.
MOST_COLUMNS = 60
#: Columns that are no features among these, at most: ids, dates as they are written, remarks.
MOST_OTHERS = 20
#: Width of a value at most, in characters.
VALUE_WIDTH = 200
#: A reason of a smaller effect, in log-odds, would be shown as +0.0.
LEAST_SHOWN_EFFECT = 0.05


@dataclass(frozen=True, eq=False)
class RowNames:
    """What the audited rows are called, and what their decisions are kept under.

    Parameters
    ----------
    names : sequence
        What each row is called, say its line in a file.
    word : str
        The word for one of the rows.
    positions : array of int
        The position that the decisions file gives for each row.
    """

    names: Sequence[Any]
    word: str
    positions: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Worksheet:
    """A packed worksheet.

    Parameters
    ----------
    packed : str
        JSON, deflated, in base64: no character of it means anything to HTML.
    n_suspects : int
        How many suspects it holds, the most doubtful ones.
    """

    packed: str
    n_suspects: int


def pack_worksheet(findings: Findings, rows: RowNames, table: Any = None) -> Worksheet:
    """Pack as many suspects as a page can hold.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.
    rows : RowNames
        What the rows are called.
    table : pandas.DataFrame or None
        The values to show of each audited row; None shows those that were audited.

    Returns
    -------
    Worksheet
    """
    n_suspects = len(findings.explanations)
    while True:
        content = _collect(findings, rows, table, n_suspects)
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        packed = base64.b64encode(zlib.compress(text.encode(), 6)).decode()
        if len(packed) <= MOST_PACKED or n_suspects <= 1:
            return Worksheet(packed, n_suspects)
        n_suspects = max(1, int(0.9 * n_suspects * MOST_PACKED / len(packed)))


def _collect(findings: Findings, rows: RowNames, table: Any, n_suspects: int) -> dict[str, Any]:
    """Everything by column; the suspects come first, and after them the rows that are similar to some."""
    audit = findings.audit
    explanations = findings.explanations[:n_suspects]
    suspects = np.array([one.row for one in explanations], dtype=np.intp)
    index = {row: i for i, row in enumerate(suspects.tolist())}
    for one in explanations:
        for row in one.similar:
            index.setdefault(row, len(index))
    shown = np.fromiter(index, dtype=np.intp, count=len(index))
    columns, places = _collect_columns(findings, table, suspects, shown)
    return {
        "n": len(suspects),
        "row": rows.positions[shown].tolist(),
        "name": [_name(rows.names[row]) for row in shown.tolist()],
        "given": audit.label_indices[shown].tolist(),
        "like": np.searchsorted(audit.classes, audit.predicted[suspects]).tolist(),
        "wrong": audit.wrong[suspects].round(4).tolist(),
        "found": findings.verdict.is_found,
        "most": findings.verdict.most_wrong,
        "expected": audit.posterior[suspects, audit.label_indices[suspects]].round(4).tolist()
        if findings.verdict.is_chance
        else None,
        "source": None
        if audit.context.source is None
        else _intern(map(_write_value, audit.context.source[shown].tolist())),
        "against": [[one.n_disagreeing, one.n_similar] for one in explanations],
        "similar": [[index[row] for row in one.similar] for one in explanations],
        "reasons": [
            [
                [places[reason.column], clip(describe_value(reason.usual), VALUE_WIDTH), round(reason.effect, 1)]
                for reason in one.reasons
                if reason.effect >= LEAST_SHOWN_EFFECT and reason.column in places
            ]
            for one in explanations
        ],
        "columns": columns,
        "left_out": _count_columns(findings, table) - len(columns),
    }


# ---- columns ----


def _count_columns(findings: Findings, table: Any) -> int:
    features = [name_column(name) for name in findings.column_names]
    others = [] if table is None else [one for one in map(name_column, table.columns) if one not in set(features)]
    return len(features) + len(others)


def _collect_columns(
    findings: Findings, table: Any, suspects: NDArray[np.intp], shown: NDArray[np.intp]
) -> tuple[list[dict[str, Any]], dict[Any, int]]:
    """The values of rows with what is usual, and the place of each feature among the columns by its name."""
    audit = findings.audit
    features = findings.column_names
    written = {} if table is None else {name_column(name): place for place, name in enumerate(table.columns)}
    feature_names = [name_column(name) for name in features]
    others = [name for name in written if name not in set(feature_names)][:MOST_OTHERS]
    importances = findings.importances if len(findings.importances) else np.zeros(len(features))
    by_importance = np.argsort(-importances, kind="stable")
    kept_features = np.sort(by_importance[: MOST_COLUMNS - len(others)]).tolist()
    usual: list[UsualValues] = []
    if audit.table.encoder is not None:
        known = np.searchsorted(audit.classes, change_reviewed(audit))
        usual = find_usual_values(audit.table.encoder, audit.table.numbers, known, suspects, kept_features)
    columns: dict[str, dict[str, Any]] = {}
    for feature, one in zip(kept_features, usual, strict=True):
        name = feature_names[feature]
        values = _write_numbers(audit, feature, shown)
        if name in written:
            values = [_write_value(value) for value in table.iloc[shown, written[name]].tolist()]
        columns[name] = {
            "name": clip(name, 80),
            **_intern(values),
            "usual": {label: clip(text, 80) for label, text in one.texts.items()},
            "odd": np.flatnonzero(one.is_unusual).tolist(),
        }
    for name in others:
        values = [_write_value(value) for value in table.iloc[shown, written[name]].tolist()]
        columns[name] = {"name": clip(name, 80), **_intern(values)}
    # A table has its own order; columns of the model that it lacks follow.
    order = sorted(columns, key=lambda name: written.get(name, len(written)))
    places = {name: place for place, name in enumerate(order)}
    return [columns[name] for name in order], {
        features[feature]: places[feature_names[feature]] for feature in kept_features
    }


def _write_numbers(audit: LabelAudit, column: int, rows: NDArray[np.intp]) -> list[str]:
    """The values of a column that was audited, each different one written once."""
    numbers, which = np.unique(audit.table.numbers[rows, column], return_inverse=True)
    assert audit.table.encoder is not None  # Without a table there are no columns.
    texts = [_write_value(audit.table.encoder.decode(column, number)) for number in numbers.tolist()]
    return [texts[i] for i in which.tolist()]


def _intern(texts: Iterable[str]) -> dict[str, list[Any]]:
    """The different texts, in order of appearance, and the place of each text among them."""
    places: dict[str, int] = {}
    codes = [places.setdefault(text, len(places)) for text in texts]
    return {"values": list(places), "codes": codes}


def _write_value(value: Any) -> str:
    """A cell as text; nothing where it is missing."""
    if is_missing(value):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.7g}"
    text = str(value).removesuffix(" 00:00:00")
    return text if len(text) <= VALUE_WIDTH // 2 and text.isprintable() else clip(text, VALUE_WIDTH)


def _name(name: Any) -> Any:
    return name if type(name) is int else clip(name, VALUE_WIDTH)
