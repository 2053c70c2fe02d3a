"""What is in a model file, or how a table will be read: ``untwist inspect model.untwist`` (or ``data.csv``)."""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from untwist.arguments import Array
from untwist.commands.cells import count_infinite, describe_infinite
from untwist.commands.columns import check_roles
from untwist.commands.features import decide_column
from untwist.commands.labels import read_labels
from untwist.commands.row_names import describe_place
from untwist.commands.sheets import Sheet, read
from untwist.commands.steps import (
    describe_noise,
    encode_json,
    find_matrix,
    gather_hints,
    list_sources,
    print_result,
)
from untwist.data.cells import is_missing
from untwist.data.memory import limit_memory
from untwist.data.tables import Schema
from untwist.files import header, load
from untwist.files.layout import MAGIC
from untwist.files.writing import list_settings
from untwist.predicting import ModelPredictions
from untwist.progress import print_status

__all__ = ["main"]

#: The sources that are listed, at most, the noisiest first; --json has them all.
MOST_SOURCES = 10
#: Of a model with more columns than this, without names, only those that trees ask for are listed.
MOST_COLUMNS = 10_000
#: Values of a column of a table that are shown.
N_EXAMPLES = 3
#: Letters of a value that are shown, at most.
MOST_LETTERS = 20


def main(options: argparse.Namespace) -> int:
    """Print columns, classes, settings, noise and size of a model, or how each column of a table will be read.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    return _inspect_model(options) if _is_model(options.file) else _inspect_table(options)


def _is_model(path: Path) -> bool:
    """Tell whether a file is a model, or called like one."""
    if path.suffix == ".untwist" or not path.is_file():
        return path.suffix == ".untwist"
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@dataclass(frozen=True)
class _ColumnReport:
    """How a column of a table will be read: what `--json` has for it."""

    name: str
    kind: str
    examples: tuple[str, ...]
    missing: float
    distinct: int
    note: str
    is_used: bool
    is_ambiguous: bool = False


def _inspect_table(options: argparse.Namespace) -> int:
    """Print how each column of a table will be read, before anything is trained."""
    sheet = read(options.file, options.separator, options.encoding, options.sheet)
    for note in sheet.notes:
        print_status(note)
    with limit_memory(options.file):
        reports = _report_columns(sheet, options)
    if options.json:
        print(
            encode_json({"rows": len(sheet.frame), "notes": sheet.notes, "columns": [asdict(one) for one in reports]})
        )
        return 0
    how = "" if sheet.separator is None else f", separator {sheet.separator!r}, {sheet.encoding}"
    print_result(f"{options.file}: {len(sheet.frame)} rows, {len(reports)} columns{how}")
    table = [("column", "read as", "missing", "different", "such as")]
    table += [(one.name, one.kind, f"{one.missing:.0%}", str(one.distinct), ", ".join(one.examples)) for one in reports]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for name, kind, missing, distinct, examples in table:
        cells = (f"{name:<{widths[0]}}", f"{kind:<{widths[1]}}", f"{missing:>{widths[2]}}", f"{distinct:>{widths[3]}}")
        print_result("  ".join([" ", *cells, examples]).rstrip())
    for one in reports:
        if one.note:
            print_result(f"{one.name}: {one.note}")
    if unsure := [one.name for one in reports if one.is_ambiguous]:
        print_result(f"Nothing decides how to read {', '.join(unsure)}: see above for what is assumed.")
    return 0


def _report_columns(sheet: Sheet, options: argparse.Namespace) -> list[_ColumnReport]:
    """Find out what training would make of each column, by the same decisions."""
    frame = sheet.frame
    hints = gather_hints(options)
    given = {"label": options.label, "source": options.source, "item": options.item, "groups": options.groups}
    special = check_roles(sheet.names, given, options.drop, options.keep)
    reports = []
    present = np.ones(len(frame), dtype=np.bool_)
    if options.label is not None:
        present, y, merged = read_labels(frame[options.label], hints, sheet.name_row)
    for name in frame.columns:
        cells = frame[name].dropna()
        cells = cells[[not is_missing(str(value).strip()) for value in cells]] if name not in special else cells
        different = _find_different(cells)
        examples = tuple(str(value).strip()[:MOST_LETTERS] for value in different.head(N_EXAMPLES))
        seen: dict[str, Any] = {"name": name, "examples": examples, "distinct": len(different)}
        seen["missing"] = 1.0 - len(cells) / len(frame)
        if name == options.label:
            n_classes = np.unique(y).size
            words = [f"{np.count_nonzero(~present)} rows have no label and are left out"] if not present.all() else []
            note = "; ".join([f"{n_classes} classes", *words, *merged])
            reports.append(_ColumnReport(**seen, kind="label", note=note, is_used=True))
        elif name in special:
            reports.append(_ColumnReport(**seen, kind=special[name], note="", is_used=True))
        elif name in options.drop:
            reports.append(_ColumnReport(**seen, kind="left out", note="", is_used=False))
        else:
            place = describe_place(name, sheet.names, sheet.unnamed)
            one = decide_column(frame[name][present], hints, is_kept=name in options.keep, **place)
            is_used = one.convert is not None and not one.left_out
            kind = one.kind
            if one.reading is not None and one.reading.kind == "date" and "first" in one.note:
                kind += f", {one.reading.order} first"
            words = [one.note] if one.note else []
            if one.kind == "numbers" and (n_infinite := count_infinite(one.ready)):
                words.append(describe_infinite(n_infinite, hints))
            hint = f"{one.left_out or one.note}; left out" + (
                "" if one.convert is None else f" (--keep {name!r} uses it)"
            )
            reports.append(
                _ColumnReport(
                    **seen,
                    kind=kind if is_used else "left out",
                    note="; ".join(words) if is_used else hint,
                    is_used=is_used,
                    is_ambiguous=one.is_ambiguous,
                )
            )
    return reports


def _find_different(cells: Any) -> Any:
    """Each value of a column once; lists and the like, which pandas cannot compare, as text."""
    if cells.dtype == object and not all(isinstance(one, Hashable) for one in cells):
        cells = cells.map(str)
    return cells.drop_duplicates()


def _inspect_model(options: argparse.Namespace) -> int:
    """Print columns, classes, settings, noise and size of a model."""
    model = load(options.file)
    about: dict[str, Any] = header(options.file.read_bytes())
    importances = model.importances("gain")
    columns = _list_columns(model, importances)
    found = {
        "model": about["model"],
        "untwist": str(about.get("untwist", "?"))[:20],
        "bytes": options.file.stat().st_size,
        "training_rows": model.model_.n_rows,
        "classes": model.classes_.tolist(),
        "trees": sum(map(len, model.model_.ensembles)),
        "alpha": model.model_.alpha,
        "noise": describe_noise(model),
        "near_twins": model.model_.has_twins,
        "matrix": find_matrix(model),
        "sources": list_sources(model),
        "columns": columns,
        "settings": list_settings(model),
    }
    if options.json:
        print(encode_json(found))
        return 0
    size = f"{found['trees']} trees, {found['bytes'] / 1000:.0f} kB"
    print_result(f"{options.file}: {found['model']}, {size}, untwist {found['untwist']}")
    classes = ", ".join(str(label) for label in model.classes_)
    print_result(f"trained on {found['training_rows']} rows; classes {classes}; alpha {model.model_.alpha:g}")
    print_result(f"noise: {found['noise']}")
    if model.model_.sources is not None:
        print_result(f"sources: {model.model_.describe_sources()}")
        _print_sources(found["sources"])
    if hasattr(model, "choice_"):
        print_result(str(model.choice_))
    width = max((len(column["name"]) for column in columns), default=0)
    for column in sorted(columns, key=lambda one: -one["importance"]):
        print_result(f"  {column['name']:<{width}}  {column['kind']:<16} {column['importance']:6.1%}")
    if len(columns) < len(importances):
        print_result(f"  no tree asks for the other columns, of {len(importances)}")
    return 0


def _list_columns(model: ModelPredictions, importances: Array) -> list[dict[str, Any]]:
    """Return name, kind and importance of each column; of very many without names only of those that matter."""
    encoder = model.model_.encoder
    names = encoder.feature_labels if encoder.has_names else None
    is_listed = np.full(len(importances), names is not None or len(importances) <= MOST_COLUMNS) | (importances > 0)
    return [
        {
            "name": str(i if names is None else names[i]),
            "kind": _describe_kind(encoder.schema, i),
            "importance": float(importances[i]),
        }
        for i in np.flatnonzero(is_listed).tolist()
    ]


def _describe_kind(schema: Schema, column: int) -> str:
    if column not in schema.categories:
        return "dates" if column in schema.dates else "numbers"
    count = f"{len(schema.categories[column])} categories"
    return f"{count}, coded by their labels" if column in schema.numbers else count


def _print_sources(sources: list[dict[str, Any]]) -> None:
    width = max(len(str(one["source"])) for one in sources[:MOST_SOURCES])
    for one in sources[:MOST_SOURCES]:
        what = f"{one['labels']:g} labels"
        if one["share"] is not None:
            what = f"{one['share']:6.1%} wrong ({one['low']:.1%} to {one['high']:.1%}) of {what}"
        print_result(f"  {one['source']!s:<{width}}  {what}{', stands out' if one['stands_out'] else ''}")
    if len(sources) > MOST_SOURCES:
        print_result(f"  and {len(sources) - MOST_SOURCES} sources more")
