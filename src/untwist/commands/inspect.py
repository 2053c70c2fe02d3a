"""What is in a model file: ``untwist inspect model.untwist``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.commands.steps import describe_noise, encode_json, find_matrix, list_sources, print_result
from untwist.data.tables import Schema
from untwist.files import header, load

__all__ = ["main"]

#: The sources that are listed, at most, the noisiest first; --json has them all.
MOST_SOURCES = 10


def main(arguments: list[str] | None = None) -> int:
    """Print columns, classes, settings, noise and size.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="untwist inspect", description=__doc__.split(":")[0] + ".")
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `untwist train` wrote")
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")
    options = parser.parse_args(arguments)
    model = load(options.model)
    about: dict[str, Any] = header(options.model.read_bytes())
    names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
    importances = model.importances("gain")
    schema = model.model_.encoder.schema
    found = {
        "untwist": str(about.get("untwist", "?"))[:20],
        "bytes": options.model.stat().st_size,
        "training_rows": model.model_.n_rows,
        "classes": model.classes_.tolist(),
        "trees": sum(map(len, model.model_.ensembles)),
        "alpha": model.alpha_,
        "noise": describe_noise(model),
        "matrix": find_matrix(model),
        "sources": list_sources(model),
        "columns": [
            {"name": name, "kind": _describe_kind(schema, i), "importance": share}
            for i, (name, share) in enumerate(zip(names, importances.tolist(), strict=True))
        ],
        "settings": model.get_params(deep=False) | {"callbacks": None},
    }
    if options.json:
        print(encode_json(found))
        return 0
    print_result(f"{options.model}: {found['trees']} trees, {found['bytes'] / 1000:.0f} kB, untwist {found['untwist']}")
    classes = ", ".join(str(label) for label in model.classes_)
    print_result(f"trained on {found['training_rows']} rows; classes {classes}; alpha {model.alpha_:g}")
    print_result(f"noise: {found['noise']}")
    if model.model_.sources is not None:
        print_result(f"sources: {model.model_.sources.describe()}")
        _print_sources(found["sources"])
    if hasattr(model, "choice_"):
        print_result(str(model.choice_))
    width = max(map(len, names))
    for i in np.argsort(-importances, kind="stable").tolist():
        column: Any = found["columns"][i]
        print_result(f"  {column['name']:<{width}}  {column['kind']:<16} {column['importance']:6.1%}")
    return 0


def _describe_kind(schema: Schema, column: int) -> str:
    if column not in schema.categories:
        return "numbers"
    count = f"{len(schema.categories[column])} categories"
    return f"{count}, coded by their labels" if column in schema.numbers else count


def _print_sources(sources: list[dict[str, Any]]) -> None:
    width = max(len(str(one["source"])) for one in sources[:MOST_SOURCES])
    for one in sources[:MOST_SOURCES]:
        what = f"{one['share']:6.1%} wrong ({one['low']:.1%} to {one['high']:.1%}) of {one['labels']:g} labels"
        print_result(f"  {one['source']!s:<{width}}  {what}{', stands out' if one['stands_out'] else ''}")
    if len(sources) > MOST_SOURCES:
        print_result(f"  and {len(sources) - MOST_SOURCES} sources more")
