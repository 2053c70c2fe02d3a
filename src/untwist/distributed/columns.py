"""Arrow tables of a cluster: which columns train, and predictions as further columns. Ray and Spark share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from untwist.optional import import_optional
from untwist.predicting import ModelPredictions

#: The columns that predictions add: the class, and the clean posterior of every class in the order of `classes_`.
PREDICTED = ("prediction", "probability")


@dataclass(frozen=True)
class TrainingColumns:
    """The columns of a table that `fit` takes.

    Parameters
    ----------
    label : str
        The column of the labels.
    features : tuple of str
        The columns to learn from.
    weight : str or None
        The column of the weights.
    """

    label: str
    features: tuple[str, ...]
    weight: str | None = None

    @classmethod
    def choose(
        cls, present: Sequence[str], label: str, features: Sequence[str] | None, weight: str | None
    ) -> TrainingColumns:
        """Check the names; without features, all other columns of the table are.

        Parameters
        ----------
        present : sequence of str
            The columns of the table.
        label, features, weight
            As the launchers take them.

        Returns
        -------
        TrainingColumns
        """
        if isinstance(features, str):
            raise ValueError(f"features must be a list of columns, got {features!r}: give [{features!r}]")
        others = [name for name in present if name not in (label, weight)]
        columns = cls(label, tuple(others if features is None else features), weight)
        missing = [name for name in columns.names if name not in present]
        if missing:
            raise ValueError(f"the table has no column {missing[0]!r}, only {', '.join(map(repr, present))}")
        if not columns.features:
            raise ValueError("there is no column to learn from beside those of labels and weights")
        if {label, weight} & set(columns.features):
            raise ValueError("the columns of labels and weights must not be among the features")
        return columns

    @property
    def names(self) -> list[str]:
        """All of these columns."""
        return [*self.features, self.label] + ([] if self.weight is None else [self.weight])

    def read_rows(self, table: Any, suffix: str = "") -> dict[str, Any]:
        """Return the arguments of `fit` that a table holds.

        Parameters
        ----------
        table : pyarrow.Table
            Some rows with these columns; of none, there are no arguments.
        suffix : str
            "_val" for rows to validate on.

        Returns
        -------
        dict
        """
        if not table.num_rows:
            return {}
        rows = {"X": table.select(self.features), "y": table[self.label].to_numpy()}
        if self.weight is not None:
            rows["sample_weight"] = table[self.weight].to_numpy()
        return {f"{name}{suffix}": part for name, part in rows.items()}


def import_pyarrow(purpose: str) -> Any:
    """Return pyarrow, which every cluster that speaks Arrow has."""
    return import_optional("pyarrow", purpose, extra="cli")


def add_predictions(model: ModelPredictions, table: Any) -> Any:
    """Add `PREDICTED` to the columns of a table.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier that was fitted to columns with names.
    table : pyarrow.Table
        Rows with these columns, and perhaps others.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    ValueError
        If the table lacks a column, or has one of the names that are to be added.
    """
    pyarrow = import_pyarrow("add_predictions")
    names = list_features(model)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(f"the model was fitted with a column {missing[0]!r}, which the table lacks")
    taken = [name for name in PREDICTED if name in table.column_names]
    if taken:
        raise ValueError(f"the table has a column {taken[0]!r} already: rename it or leave it out")
    labels, probabilities = model.classes_[:0], []
    if table.num_rows:
        labels = model.predict(table.select(names))
        probabilities = model.predict_proba(table.select(names)).tolist()
    columns = [
        pyarrow.array(labels.tolist(), type=find_label_type(model)),
        pyarrow.array(probabilities, type=pyarrow.list_(pyarrow.float64())),
    ]
    for name, column in zip(PREDICTED, columns, strict=True):
        table = table.append_column(name, column)
    return table


def list_features(model: ModelPredictions) -> list[str]:
    """Return the columns that a model predicts by.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier that was fitted to columns with names.

    Returns
    -------
    list of str
    """
    check_is_fitted(model, "model_")
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not names:
        raise ValueError("the model knows no names of columns: fit it to a table that has some")
    return names


def find_label_type(model: ModelPredictions) -> Any:
    """Return the Arrow type of a model's labels: int64, double, bool or string.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A fitted classifier.

    Returns
    -------
    pyarrow.DataType
    """
    return import_pyarrow("find_label_type").array(model.classes_.tolist()).type
