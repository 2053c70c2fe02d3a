"""The steps that several commands take: a table read, a fit with its progress, words and JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.class_order import list_ordered_categories
from untwist.classifier import UntwistClassifier
from untwist.commands.blocks import SheetInBlocks, reads_in_blocks
from untwist.commands.cells import Hints
from untwist.commands.columns import PreparedTable, Roles, prepare, remember_readings
from untwist.commands.sheets import Sheet, read
from untwist.data.cells import list_some
from untwist.data.decisions import Decisions
from untwist.data.memory import UnreadableFile, limit_memory
from untwist.data.near_duplicates import NearDuplicates
from untwist.predicting import ModelPredictions
from untwist.progress import ProgressLine, print_status, use_display
from untwist.text import for_json, for_terminal


def print_result(words: str) -> None:
    """Print results on standard output for a person: what comes from data cannot steer the terminal.

    Parameters
    ----------
    words : str
        The results, which may take several lines.
    """
    print(for_terminal(words))


def gather_hints(options: argparse.Namespace) -> Hints:
    """Gather what the options say about how to read cells.

    Parameters
    ----------
    options : argparse.Namespace
        Those of `options.add_infinite_option`, and for tables with labels of `add_role_options` and
        `add_hint_options` there.

    Returns
    -------
    Hints
    """
    hints = Hints(takes_infinite=options.infinite_as == "missing")
    if "label_as_is" not in options:
        return hints
    return replace(
        hints,
        decimal=None if options.decimal is None else {"point": ".", "comma": ","}[options.decimal],
        order=None if options.dates is None else options.dates.removesuffix("-first"),
        label_as_is=options.label_as_is,
    )


def open_table(options: argparse.Namespace) -> Sheet | SheetInBlocks:
    """Open the file of a command, to be read whole or in blocks of rows.

    Parameters
    ----------
    options : argparse.Namespace
        Those of `options.add_table_options`, and of `options.add_blocks_option` where the command can do with blocks.

    Returns
    -------
    Sheet or SheetInBlocks
        Both give the same names, columns and rows, by the same checks and within the same limits.
    """
    if reads_in_blocks(options):
        return SheetInBlocks(options.table)
    return read(options.table, options.separator, options.encoding, options.sheet)


def read_table(options: argparse.Namespace) -> tuple[Any, PreparedTable]:
    """Read the file of a command and make its table ready, with words about what was done to it.

    Parameters
    ----------
    options : argparse.Namespace
        Those of `options.add_table_options`.

    Returns
    -------
    Sheet or SheetInBlocks
        The table as the file has it, in blocks only if the command has the options of `options.add_blocks_option`.
    PreparedTable
        What a model is fitted to.
    """
    sheet = open_table(options)
    for note in sheet.notes:
        print_status(note)
    if isinstance(sheet, SheetInBlocks):
        words = "is read in blocks of rows; first one column after the other, to see what they are"
        print_status(f"{options.table} {words}")
    with limit_memory(options.table):
        table = prepare(sheet, Roles.from_options(options), gather_hints(options))
    for note in table.notes:
        print_status(note)
    print_status(f"{len(table.y)} rows, {table.X.shape[1]} columns, {np.unique(table.y).size} classes")
    return sheet, table


def read_order(text: str | None, y: NDArray[Any], column: Any = None) -> list[Any] | None:
    """Return the labels in the order that was typed; a ValueError names a label that is missing, or is none.

    Parameters
    ----------
    text : str or None
        Names of labels, the lowest first, with commas between them.
    y : array
        The labels.
    column : Series or None
        The labels as the file has them, which may say their order.

    Returns
    -------
    list or None
        None where no order was typed, nor does the file say one.
    """
    labels = {str(label): label for label in np.unique(y).tolist()}
    if text is None:
        known = list_ordered_categories(column)
        return None if known is None else [labels[str(name)] for name in known if str(name) in labels]
    names = [name.strip() for name in text.split(",")]
    if sorted(names) != sorted(labels):
        raise ValueError(f"--order must name every label once, the lowest first: {list_some(labels, 12)}, got {text!r}")
    return [labels[name] for name in names]


def fit(
    table: PreparedTable,
    options: argparse.Namespace,
    labels: Any,
    *,
    noise: Any = "auto",
    reviewed: Decisions | None = None,
) -> tuple[UntwistClassifier, bool]:
    """Fit the default classifier, with a line of progress after two seconds.

    Parameters
    ----------
    table : PreparedTable
        The rows.
    options : argparse.Namespace
        Those of `options.add_table_options`.
    labels : Series or None
        The labels as the file has them, which may say their order; None where the file is read in blocks.
    noise : object
        That of the classifier.
    reviewed : Decisions or None
        What was decided about labels of the table.

    Returns
    -------
    model : UntwistClassifier
        The fitted classifier.
    was_stopped : bool
        Whether Ctrl-C ended its fit early.
    """
    order = read_order(options.order, table.y, labels)
    settings = {"n_jobs": options.threads, "random_state": options.seed, "noise": noise, "order": order}
    model = UntwistClassifier(**settings)
    was_stopped = False
    try:
        with use_display(ProgressLine()), warnings.catch_warnings():
            # Somebody has asked for labels as they are.
            warnings.filterwarnings("ignore", "labels .* differ by case")
            # What commands print says so.
            warnings.filterwarnings("ignore", ".* have near-duplicates in other folds")
            # So do the notes on how the table was read.
            warnings.filterwarnings("ignore", ".* nothing but the shares of the classes can be learned")
            told = {"source": table.source, "item": table.item, "groups": table.groups}
            model.fit(table.X, table.y, reviewed=reviewed, **told)
    except KeyboardInterrupt:
        if not hasattr(model, "model_"):
            raise
        print(file=sys.stderr)
        print_status("Stopped.")
        was_stopped = True
    remember_readings(model, table.readings, table.kinds)
    return model, was_stopped


def name_near_duplicates(
    found: NearDuplicates | None, sheet: Any, table: PreparedTable, label: str
) -> NearDuplicates | None:
    """Look for the column that says which rows belong together, also among those that are left out.

    Parameters
    ----------
    found : NearDuplicates or None
        Rows that nearly repeat rows of other folds.
    sheet : Sheet or SheetInBlocks
        The table as the file has it.
    table : PreparedTable
        What a model was fitted to.
    label : str
        The column of the label.

    Returns
    -------
    NearDuplicates or None
    """
    if found is None:
        return None
    compared = np.unique(np.concatenate([found.pairs, found.pairs_beyond]))

    def read_compared() -> Iterator[tuple[str, Any]]:
        for name in sheet.names:
            if name == label:
                continue
            try:
                column = sheet.column(name)
            except UnreadableFile:  # It was left out: what was fitted stands without it.
                continue
            values = np.full(len(table.rows), None, dtype=object)
            values[compared] = [str(one) for one in column.iloc[table.rows[compared]]]
            yield name, values

    return replace(found, column=found.find_group_column(read_compared()))


def describe_near_duplicates(found: NearDuplicates | None) -> dict[str, Any] | None:
    """Return what JSON says of rows that nearly repeat rows of other folds.

    Parameters
    ----------
    found : NearDuplicates or None
        These rows.

    Returns
    -------
    dict or None
    """
    if found is None:
        return None
    fields = take_fields(found, "share", "disagreement", "disagreement_beyond", "column")
    return fields | {"advice": found.describe(for_command=True)}


def describe_noise(model: ModelPredictions) -> str:
    """Say in words how noisy the labels are, with the names of the classes.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A fitted classifier.

    Returns
    -------
    str
        The words, without a full stop.
    """
    sources = model.model_.sources
    if model.model_.unreliable_words:
        return str(model.model_.unreliable_words)
    if sources is not None and sources.stands_out.any():
        # The noise of the model is that of labels as they weighed in training, those of bad sources less.
        return f"wrong labels: {np.average(sources.shares, weights=sources.counts):.1%} of all"
    return "not estimated" if model.noise_ is None else str(model.noise_.describe(model.classes_))


def find_matrix(model: ModelPredictions) -> Any:
    """Find out which class bears which label how often, whatever the labels of each source weighed in training.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A fitted classifier.

    Returns
    -------
    array of shape (n_classes, n_classes) or None
        A row per true class, a column per label; None where nothing was estimated, or can be told.
    """
    if model.model_.unreliable_words:
        return None
    sources = model.model_.sources
    if sources is not None:
        return sources.overall
    return None if model.noise_ is None else model.noise_.matrix


def list_sources(model: ModelPredictions) -> list[dict[str, Any]] | None:
    """List how good the labels of each source are, the worst first.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A fitted classifier.

    Returns
    -------
    list of dict or None
        What JSON says of each; None where no sources were told. Where no shares can be told, they are None, as are
        reliabilities and matrices; sources that stand out come first all the same, and the others by name.
    """
    noise = model.model_.sources
    if noise is None:
        return None
    is_told = not model.model_.unreliable_words
    untold = {} if is_told else dict.fromkeys(("share", "low", "high", "reliability", "matrix"))
    ranked = noise.shares if is_told else np.where(noise.stands_out, noise.shares, 0.0)
    return [
        {
            "source": noise.names[i],
            "labels": noise.counts[i],
            "share": noise.shares[i],
            "low": noise.intervals[i, 0],
            "high": noise.intervals[i, 1],
            "stands_out": noise.stands_out[i],
            "reliability": noise.reliability[i],
            "matrix": noise.matrices[i],
        }
        | untold
        for i in np.lexsort((-ranked, ~noise.stands_out)).tolist()
    ]


def take_fields(one: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by their names, which JSON has too.

    Parameters
    ----------
    one : object
        Any object.
    *names : str
        The attributes.

    Returns
    -------
    dict of str to object
    """
    return {name: getattr(one, name) for name in names}


def encode_json(value: Any) -> str:
    """Write results for machines: NumPy's numbers too, and null for what is no number.

    Parameters
    ----------
    value : object
        Numbers, text, and lists and dicts of them.

    Returns
    -------
    str
        The JSON.
    """
    return for_json(json.dumps(_to_plain(value), ensure_ascii=False, indent=1, default=str))


def _to_plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _to_plain(each) for key, each in value.items()}
    return [_to_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
