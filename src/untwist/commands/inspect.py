"""What is in a model file, or how a table will be read: ``untwist inspect model.untwist`` (or ``data.csv``)."""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from untwist.arguments import Array
from untwist.commands.cells import Hints, count_infinite, describe_infinite
from untwist.commands.columns import Roles, decide_features
from untwist.commands.features import ColumnDecision
from untwist.commands.labels import read_labels
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
from untwist.export.scoring import MOST_COLUMNS
from untwist.files import header, load
from untwist.files.layout import MAGIC
from untwist.files.writing import list_settings
from untwist.predicting import ModelPredictions
from untwist.progress import print_status

#: The sources that are listed, at most, the noisiest first; --json has them all.
MOST_SOURCES = 10
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
    hints, roles = gather_hints(options), Roles.from_options(options)
    special = roles.check(sheet.names)
    present = np.ones(len(sheet.frame), dtype=np.bool_)
    about_label = ""
    if roles.label is not None:
        present, y, merged = read_labels(sheet.column(roles.label), hints, sheet.name_row)
        absent = [] if present.all() else [f"{np.count_nonzero(~present)} rows have no label and are left out"]
        about_label = "; ".join([f"{np.unique(y).size} classes", *absent, *merged])
    decisions = dict(decide_features(sheet, roles, hints, present))
    reports = []
    for name in sheet.names:
        cells = sheet.column(name).dropna()
        cells = cells if name in special else cells[[not is_missing(str(value).strip()) for value in cells]]
        different = _find_different(cells)
        examples = tuple(str(value).strip()[:MOST_LETTERS] for value in different.head(N_EXAMPLES))
        kind, note, is_used, is_ambiguous = special.get(name, "left out"), "", name in special, False
        if name == roles.label:
            note = about_label
        elif one := decisions.get(name):
            is_used, is_ambiguous = one.convert is not None and not one.left_out, one.is_ambiguous
            note = _describe_use(one, hints) if is_used else one.explain_absence(name)
            kind = one.kind if is_used else "left out"
            if is_used and one.reading is not None and one.reading.kind == "date" and "first" in one.note:
                kind += f", {one.reading.order} first"
        missing = 1.0 - len(cells) / len(sheet.frame)
        reports.append(_ColumnReport(name, kind, examples, missing, len(different), note, is_used, is_ambiguous))
    return reports


def _describe_use(one: ColumnDecision, hints: Hints) -> str:
    """Say what is to be told of a column that is used."""
    words = [one.note] if one.note else []
    if one.kind == "numbers" and (n_infinite := count_infinite(one.ready)):
        words.append(describe_infinite(n_infinite, hints))
    return "; ".join(words)


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
        "near_duplicates": model.model_.has_twins,
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
