"""Train a model on a table whose labels may be wrong: ``untwist train data.csv --label churn -o model.untwist``."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from typing import Any

import numpy as np

from untwist.classifier import UntwistClassifier
from untwist.commands.blocks import reads_in_blocks
from untwist.commands.columns import PreparedTable
from untwist.commands.decided import read_reviewed
from untwist.commands.steps import (
    describe_near_duplicates,
    describe_noise,
    encode_json,
    find_matrix,
    fit,
    list_sources,
    name_near_duplicates,
    print_result,
    read_table,
)
from untwist.files import save
from untwist.progress import print_status


def main(options: argparse.Namespace) -> int:
    """Fit, save, and print what was learned.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    reviewed = None
    if options.reviewed and reads_in_blocks(options):
        raise ValueError("--reviewed is for tables that are read as a whole: apply the decisions first (untwist apply)")
    sheet, table = read_table(options)
    if options.reviewed:
        reviewed = read_reviewed(options.reviewed, sheet.frame, options.label, table, sheet.name_row)
    noise = None if options.believe_labels else "auto"
    labels = None if reads_in_blocks(options) else sheet.frame[options.label]
    model, was_stopped = fit(table, options, labels, noise=noise, reviewed=reviewed)
    if was_stopped:
        print_status(f"The model has the rounds done so far: {options.output}")
    save(model, options.output)
    found = summarise(model, table) | {"model": str(options.output)}
    twins = None if model.model_.out_of_fold is None else model.model_.out_of_fold.context.twins
    found["near_duplicates"] = describe_near_duplicates(name_near_duplicates(twins, sheet, table, options.label))
    if options.json:
        print(encode_json(found))
    else:
        print_result(_describe(found, model))
    return 130 if was_stopped else 0


def summarise(model: UntwistClassifier, table: PreparedTable) -> dict[str, Any]:
    """Sum up what was learned, and from what.

    Parameters
    ----------
    model : UntwistClassifier
        The fitted classifier.
    table : PreparedTable
        What it was fitted to.

    Returns
    -------
    dict
        What `untwist train --json` prints.
    """
    names = np.asarray(model.feature_names_in_)
    importances = model.importances("gain")
    order = np.argsort(-importances, kind="stable")
    best, mixture = model.choice_.best, model.choice_.mixture
    noise = model.noise_
    sources = list_sources(model)
    return {
        "rows": len(table.y),
        "columns": len(names),
        "classes": model.classes_.tolist(),
        "alpha": model.model_.alpha,
        "max_depth": best.max_depth,
        "rounds": best.n_rounds,
        "agrees_with_labels": _measure_agreement(model, table),
        "log_loss": best.loss if mixture is None else mixture.loss,
        "mixture": None if mixture is None else asdict(mixture),
        "noise_found": bool(noise is not None and noise.found) or any(one["stands_out"] for one in sources or []),
        "noise": describe_noise(model),
        "matrix": find_matrix(model),
        "sources": sources,
        "importances": {str(names[i]): float(importances[i]) for i in order},
        "notes": table.notes,
    }


def _measure_agreement(model: UntwistClassifier, table: PreparedTable) -> float:
    """The share of rows that bear the label that models which have not seen them predict."""
    if not hasattr(model, "oof_proba_"):  # The fit was stopped before all rows were judged.
        return float("nan")
    return float(np.mean(model.classes_[model.oof_proba_.argmax(axis=1)] == table.y))


def _describe(found: dict[str, Any], model: UntwistClassifier) -> str:
    top = [f"{name} {share:.0%}" for name, share in list(found["importances"].items())[:5] if share > 0]
    classes = ", ".join(map(str, model.classes_))
    doubt = " (labels that are wrong count against it)" if found["noise_found"] else ""
    settings = f"depth {found['max_depth']}, {found['rounds']} rounds, alpha {found['alpha']:g}"
    if found["mixture"] is not None:
        settings += f"; {found['mixture']['n_trees']} randomised trees per fold beside the boosted ones"
    agrees = f"Set aside in training, {found['agrees_with_labels']:.1%} of the rows bear the label predicted{doubt}."
    lines = [
        f"Trained on {found['rows']} rows and {found['columns']} columns; classes {classes}.",
        f"Settings, chosen by cross-validation: {settings}.",
        *([agrees] if math.isfinite(found["agrees_with_labels"]) else []),
        f"Noise: {found['noise']}.",
        *([] if found["near_duplicates"] is None else [f"Beware: {found['near_duplicates']['advice']}."]),
        *([] if model.model_.sources is None else [f"Sources: {model.model_.describe_sources()}."]),
        f"What it looks at: {', '.join(top)}." if top else "No column tells anything of the label.",
        f"Model: {found['model']}",
    ]
    return "\n".join(lines)
