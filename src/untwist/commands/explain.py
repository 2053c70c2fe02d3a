"""Which columns make a prediction: ``untwist explain model.untwist data.csv`` for all rows, ``--line 17`` for one."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.commands.new_rows import NewRows, ignore_strangers
from untwist.commands.parser import CommandParser
from untwist.commands.sheets import Sheet, read
from untwist.commands.steps import encode_json, gather_hints, print_result
from untwist.data.memory import limit_memory
from untwist.explain import Contributions, explain
from untwist.export.scoring import Scoring
from untwist.files import load
from untwist.predicting import ModelPredictions
from untwist.progress import print_status
from untwist.text import name_column
from untwist.theory.links import LogitLink
from untwist.theory.several_classes import SoftmaxLink

#: This many rows, drawn at random, speak for the whole table.
MOST_ROWS = 2000
#: Characters of the longest bar.
BAR_WIDTH = 30


def main(options: argparse.Namespace) -> int:
    """Print contributions to the score, with its unit and what it starts from: exact Shapley values of the trees.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    model = load(options.model)
    model.n_jobs = options.threads
    sheet = read(options.table, options.separator, options.encoding, options.sheet)
    with limit_memory(options.table):
        new = NewRows(model, sheet, gather_hints(options))
        X = new.conform(sheet.frame)
    for note in [*sheet.notes, *new.describe()]:
        print_status(note)
    sample = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    rows = sample if options.line is None else _find_rows(sheet, options.line)
    with ignore_strangers():
        contributions = explain(model, X.iloc[rows], background=X.iloc[sample])
        told = _Told(model, contributions, model.predict_proba(X.iloc[rows]))
    if options.line is None:
        _print_averages(told, options)
        return 0
    explained = [
        {sheet.row_word: line, "position": int(rows[i])} | told.describe(i, options.top)
        for i, line in enumerate(options.line)
    ]
    if options.json:
        print(encode_json(explained))
    else:
        for row, one in zip(rows.tolist(), explained, strict=True):
            _print_row(sheet.name_row(row), one)
    return 0


def _find_rows(sheet: Sheet, lines: list[int]) -> NDArray[np.intp]:
    """The positions of the rows that begin in these lines."""
    row_of_line = {line: row for row, line in enumerate(sheet.lines.tolist())}
    if strange := [line for line in lines if line not in row_of_line]:
        parser = CommandParser(prog="untwist explain", usage="untwist explain MODEL TABLE --line LINE ...")
        parser.error(f"no row begins in {sheet.row_word} {strange[0]} of {sheet.path.name}")
    return np.array([row_of_line[line] for line in lines])


@dataclass(frozen=True, eq=False)
class _Told:
    """What is told of some rows: contributions, and the probabilities of the classes once noise is undone."""

    model: ModelPredictions
    contributions: Contributions
    proba: Array

    @property
    def has_two(self) -> bool:
        """Whether there are two classes, and one score for both."""
        return self.contributions.values.ndim == 2

    @property
    def unit(self) -> str:
        """What scores and contributions are numbers of."""
        link = self.model.model_.posterior.link
        if isinstance(link, SoftmaxLink):
            return "logarithms of probabilities, up to a constant that the classes of a row share"
        unit = f"units of the score of the alpha-loss, alpha {self.model.model_.alpha:g}: 0 is one half"
        if isinstance(link, LogitLink):
            unit = "log-odds"
        return unit if self.has_two else f"{unit}{'' if unit == 'log-odds' else ','} against all other classes"

    def find_labelled(self, scores: Array) -> Array:
        """The probabilities of the labels, wrong ones among them, at scores that contributions add up to."""
        boosted = Scoring.from_model(self.model).sign * (np.atleast_1d(scores) if self.has_two else scores[None, :])
        return np.asarray(self.model.model_.posterior.twisted(boosted))

    def describe(self, row: int, top: int) -> dict[str, Any]:
        """What is predicted for a row, and the sum that makes its score: a baseline, columns, and all other columns."""
        predicted = int(self.proba[row].argmax())
        scores = self.contributions.scores[row]
        base, values = self.contributions.base_values, self.contributions.values[row]
        if self.has_two:  # What speaks for the prediction is to be positive, whichever class it is.
            sign = -1.0 if predicted == 0 else 1.0
            score, baseline, values = sign * scores, sign * base, sign * values
        else:
            score, baseline, values = scores[predicted], base[predicted], values[:, predicted]
        largest = np.argsort(-np.abs(values), kind="stable")
        shown, others = largest[:top], largest[top:]
        return {
            "prediction": self.model.classes_.tolist()[predicted],
            "probability": float(self.proba[row, predicted]),
            "unit": self.unit,
            "baseline": float(baseline),
            "columns": [
                {
                    "name": name_column(self.contributions.feature_names[column]),
                    "value": _format_cell(self.contributions.shown[row][column]),
                    "contribution": float(values[column]),
                }
                for column in shown
            ],
            "other_columns": {"columns": len(others), "contribution": float(values[others].sum())},
            "score": float(score),
            "probability_of_label": float(self.find_labelled(scores)[0, predicted]),
        }


def _print_row(name: str, one: dict[str, Any]) -> None:
    """Print what is predicted for a row, and the sum that makes its score."""
    prediction = one["prediction"]
    print_result(f"{name}: {prediction}, {one['probability']:.1%}")
    print_result(f"  what speaks for {prediction}, in {one['unit']}")
    print_result(f"  {one['baseline']:+7.3f}  baseline, where no column is known")
    for column in one["columns"]:
        print_result(f"  {column['contribution']:+7.3f}  {column['name']} is {column['value']}")
    if count := one["other_columns"]["columns"]:
        words = f"{count} other columns" if count > 1 else "the other column"
        print_result(f"  {one['other_columns']['contribution']:+7.3f}  {words}")
    labelled = f"a row like this is labelled {prediction} with probability {one['probability_of_label']:.1%}"
    is_corrected = abs(one["probability_of_label"] - one["probability"]) >= 5e-4
    truth = f"; once wrong labels are allowed for, it is {prediction} with {one['probability']:.1%}"
    print_result(f"= {one['score']:+7.3f}  {labelled}{truth if is_corrected else ''}")


def _print_averages(told: _Told, options: argparse.Namespace) -> None:
    """Print how much each column moves the score, on average over rows."""
    values, classes = told.contributions.values, told.model.classes_.tolist()
    if not told.has_two:
        values = np.take_along_axis(values, told.proba.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]
    means = np.abs(values).mean(axis=0)
    largest = np.argsort(-means, kind="stable")[: options.top]
    mean_of_column = {name_column(told.contributions.feature_names[i]): float(means[i]) for i in largest}
    bases = np.atleast_1d(told.contributions.base_values).tolist()
    score_of = classes[1:] if told.has_two else classes
    if options.json:
        found = {"rows": len(told.proba), "unit": told.unit, "mean_contribution": mean_of_column}
        print(encode_json(found | {"baselines": dict(zip(map(str, score_of), bases, strict=True))}))
        return
    whose = f"for {classes[1]}" if told.has_two else "for the class predicted"
    print_result(f"What moves the score {whose} of {len(told.proba)} rows, up or down, on average; in {told.unit}:")
    width = max((len(name) for name in mean_of_column), default=0)
    longest = max(means.max(), 1e-300)
    for name, mean in mean_of_column.items():
        bar = "█" * round(BAR_WIDTH * mean / longest)
        print_result(f"  {name:<{width}}  {mean:6.3f}  {bar}")
    if told.has_two:
        share = told.find_labelled(np.asarray(told.contributions.base_values))[0, 1]
        print_result(f"Baseline, where no column is known: {bases[0]:+.3f}, which is {share:.1%} {classes[1]}.")


def _format_cell(cell: Any) -> Any:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "missing"
    return f"{cell:g}" if isinstance(cell, float) else cell
