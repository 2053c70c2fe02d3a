"""What an exported model computes: trees that add up to scores, and a formula from there to the clean posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.data.encoding import TableEncoder
from untwist.export.formulas import Formula, choose_formula
from untwist.predicting import find_model

#: Of a table with more columns than this, without names, only those that trees ask for are described one by one.
MOST_COLUMNS = 10_000

#: No category is at most this: what a node without any category to the left compares with.
BELOW_CATEGORIES = -1.0


def numbers(model: Any, X: Any) -> Array:
    """Return rows as exported models take them.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        The model that is to predict them.
    X : table
        Whatever `predict` takes.

    Returns
    -------
    array
        float64, a category as its index, NaN where a value is missing or unknown. A column of many categories has the
        numbers that its labels gave them, and NaN where a value is missing.
    """
    fitted = find_model(model)
    return fitted.encoder.encode_dense(X, None if fitted is model else model)


def probabilities(model: Any, scores: ArrayLike) -> Array:
    """Return the clean probabilities of boosted scores.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        The model that was exported.
    scores : array-like
        What the models of `to_treelite` and `to_xgboost` give.

    Returns
    -------
    array
        A row for each score, a column for each class.
    """
    fitted = find_model(model)
    boosted = Scoring.from_model(fitted).sign * np.asarray(scores, dtype=np.float64)
    n_classes = len(fitted.classes)
    boosted = boosted.reshape(-1, n_classes) if n_classes > 2 else boosted.reshape(-1)
    return fitted.posterior.clean(fitted.posterior.decision(boosted))


@dataclass(frozen=True, eq=False)
class Scoring:
    """A fitted model as plain numbers.

    Parameters
    ----------
    forests : tuple of Forest
        One for two classes, and one with a vector per leaf for classes that were boosted together; else one per class.
    formula : Formula
        What the scores become.
    classes : array
        The labels.
    columns : list of str
        A line of text about each column.
    """

    forests: tuple[Forest, ...]
    formula: Formula
    classes: NDArray[Any]
    columns: list[str]

    @classmethod
    def from_model(cls, model: Any) -> Scoring:
        """Return what a fitted model computes.

        Parameters
        ----------
        model : UntwistClassifier, PILBoostClassifier or FittedModel
            A fitted model.

        Returns
        -------
        Scoring
            Its trees and its formula.

        Raises
        ------
        ValueError
            If its weak learners are no trees, or its loss is not the alpha-loss.
        """
        fitted = find_model(model)
        forests = fitted.shared_forests
        return cls(forests, choose_formula(fitted), fitted.classes, _describe_columns(fitted.encoder, forests))

    @property
    def sign(self) -> float:
        """-1 where a score speaks against its class, as a negative alpha makes it, else 1."""
        return self.formula.sign

    @property
    def n_scores(self) -> int:
        """The scores of a row: one for two classes, else one per class."""
        return sum(forest.n_outputs for forest in self.forests)

    @property
    def has_vectors(self) -> bool:
        """Whether a leaf has a score for each class."""
        return self.forests[0].n_outputs > 1

    def describe(self) -> list[str]:
        """Return what goes in and comes out, in lines of text.

        Returns
        -------
        list of str
            One line for each column and each class, with a line before them.
        """
        classes = [f"  class {index}: {label!a}" for index, label in enumerate(self.classes.tolist())]
        return [
            "A model of untwist. In goes a row of numbers, NaN where a value is missing or unknown:",
            *self.columns,
            "Out come the clean probabilities of the classes:",
            *classes,
        ]


def _describe_columns(encoder: TableEncoder, forests: tuple[Forest, ...]) -> list[str]:
    """Return a line for each column: its index and name, with the numbers of its categories."""
    if encoder.feature_names is not None:
        return [_describe_column(encoder, index, ascii(str(name))) for index, name in enumerate(encoder.feature_names)]
    if encoder.n_features <= MOST_COLUMNS:
        return [_describe_column(encoder, index, "a number") for index in range(encoder.n_features)]
    used = np.unique(np.concatenate([forest.used_columns for forest in forests])).tolist()
    lines = [_describe_column(encoder, index, "a number") for index in used]
    return [*lines, f"  all other columns, of {encoder.n_features}: numbers that do not matter"]


def _describe_column(encoder: TableEncoder, column: int, name: str) -> str:
    line = f"  {column}: {name}"
    schema = encoder.schema
    known = schema.categories.get(column)
    if known is not None:
        numbers = schema.numbers.get(column, range(len(known)))
        line += "".join(f", {number} = {category!a}" for number, category in zip(numbers, known, strict=False))
    if column in schema.dates:
        line += ", a date as days since 1970-01-01"
    if column in schema.numbers:
        line += f", {schema.numbers[column][-1]} = anything else"
    return line
