"""Which tables an engine takes, and how tables like the training table become numbers, checked by scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_X_y

from untwist.arguments import Array
from untwist.data.batches import Batches, Encoded
from untwist.data.cells import to_date
from untwist.data.column_names import check_other_names
from untwist.data.tables import Schema, refuse_other_objects


@dataclass(frozen=True)
class AcceptedTables:
    """The tables that an engine takes.

    Parameters
    ----------
    missing_values : bool
        Whether cells may be missing.
    sparse : bool
        Whether SciPy's sparse matrices may come as they are.
    categories : bool
        Whether columns may hold categories.
    blocks : bool
        Whether `Batches`, of which only a block of rows is in memory at a time, will do.
    dtypes : tuple of NumPy types
        The types of numbers that need no conversion; others become the first one.
    """

    missing_values: bool = True
    sparse: bool = True
    categories: bool = True
    blocks: bool = True
    dtypes: tuple[type, ...] = (np.float64, np.float32)

    def check(self, numbers: Any, estimator: Any, names: Sequence[Any] | None = None, first_row: int = 0) -> Any:
        """Return a table of numbers as the engine takes it, or raise scikit-learn's error in the estimator's name.

        Parameters
        ----------
        numbers : ndarray or sparse matrix
            The rows as numbers.
        estimator : object
            In whose name scikit-learn's errors speak.
        names : sequence or None
            What the columns are called where one holds an infinite number; their numbers if there are none.
        first_row : int
            The number of the first of these rows.

        Returns
        -------
        ndarray or sparse matrix
            The rows, converted if need be.
        """
        with _name_infinite(numbers, names, first_row):
            return check_array(numbers, estimator=estimator, input_name="X", **self._options())

    def check_with_labels(
        self, numbers: Any, y: Any, estimator: Any, names: Sequence[Any] | None = None
    ) -> tuple[Any, Any]:
        """Return a table and its labels, checked together.

        Parameters
        ----------
        numbers : ndarray or sparse matrix
            The rows as numbers.
        y : array_like of shape (n_rows,)
            Their labels.
        estimator : object
            In whose name scikit-learn's errors speak.
        names : sequence or None
            As for `check`.

        Returns
        -------
        numbers : ndarray or sparse matrix
            The rows, converted if need be.
        y : ndarray of shape (n_rows,)
            The labels.
        """
        if y is None:
            name = type(estimator).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        with _name_infinite(numbers, names):
            return check_X_y(numbers, y, estimator=estimator, **self._options())  # type: ignore[no-any-return]

    def _options(self) -> dict[str, Any]:
        return {
            "dtype": list(self.dtypes) if len(self.dtypes) > 1 else self.dtypes[0],
            "ensure_all_finite": "allow-nan" if self.missing_values else True,
            "accept_sparse": ["csr", "csc"] if self.sparse else False,
        }


@contextmanager
def _name_infinite(numbers: Any, names: Sequence[Any] | None, first_row: int = 0) -> Iterator[None]:
    """Say which cell is infinite where scikit-learn's check only says that some cell is."""
    try:
        with np.errstate(invalid="ignore"):  # The check sums all cells, and infinities of both signs sum to NaN.
            yield
    except ValueError as error:
        if "X contains infinity" not in str(error):
            raise
        rows, columns = _find_infinite(numbers)
        if not len(rows):
            raise  # A number is too large for the type that the engine takes.
        names = range(numbers.shape[1]) if names is None else names
        others = f" and {len(rows) - 1} more cells" if len(rows) > 1 else ""
        raise ValueError(
            f"Input X contains infinity: column {names[columns[0]]!r} in row {first_row + rows[0]}{others}: replace it "
            "by a finite number, or by NaN, which is a missing one"
        ) from error


def _find_infinite(numbers: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and the columns of infinite cells, the first row first."""
    if not sparse.issparse(numbers):
        return np.nonzero(np.isinf(numbers))  # type: ignore[return-value]
    cells = numbers.tocoo()
    infinite = np.isinf(cells.data)
    order = np.lexsort((cells.col[infinite], cells.row[infinite]))
    return cells.row[infinite][order], cells.col[infinite][order]


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """What the columns of the training table were, and how another table becomes numbers like it.

    Parameters
    ----------
    n_features : int
        The number of columns.
    feature_names : array of str or None
        Their names, where they have any.
    schema : Schema
        Their categories and dates.
    accepted_tables : AcceptedTables
        The tables that the engine takes.
    other_names : tuple of str or None
        The names of the columns as text, where they are no text: numbers, dates or tuples.
    """

    n_features: int
    feature_names: NDArray[Any] | None = None
    schema: Schema = field(default_factory=lambda: Schema({}))
    accepted_tables: AcceptedTables = field(default_factory=AcceptedTables)
    other_names: tuple[str, ...] | None = None

    def encode(self, X: Any, estimator: Any = None) -> Any:
        """Return a table as numbers, in the form that the engine takes.

        Parameters
        ----------
        X : table
            Whatever `fit` takes.
        estimator : object or None
            In whose name scikit-learn's errors speak; by default this encoder's.

        Returns
        -------
        ndarray, sparse matrix or Encoded
            The rows as numbers; in blocks if X is `Batches`.
        """
        if self._needs_no_check(X):
            return X
        refuse_other_objects(X)
        estimator = self if estimator is None else self.stand_in_for(estimator)
        names = self.feature_labels if self.has_names else None  # Many columns without a name need no list.
        if isinstance(X, Batches):
            self._check_names(X.head, estimator)
            numbers: Any = X.encode(
                self.schema,
                lambda block, first_row: self.accepted_tables.check(block, estimator, names, first_row),
            )
        else:
            self._check_names(X, estimator)
            numbers = self.accepted_tables.check(self.schema.encode(X), estimator, names)
        _check_n_features(estimator, numbers, reset=False)
        return numbers

    def _check_names(self, X: Any, estimator: Any) -> None:
        """Raise an error where the names of columns are not those of the training table, in its order."""
        _check_feature_names(estimator, X, reset=False)
        names = None if self.feature_names is None else self.feature_names.tolist()
        check_other_names(X, names, self.other_names)

    def stand_in_for(self, estimator: Any) -> Any:
        """Return what scikit-learn's checks take for an estimator fitted to these columns, to name it in messages."""
        columns: dict[str, Any] = {"n_features_in_": self.n_features}
        if self.feature_names is not None:
            columns["feature_names_in_"] = self.feature_names
        return type(type(estimator).__name__, (), columns)()

    def encode_dense(self, X: Any, estimator: Any = None) -> Array:
        """Return a table as dense float64 numbers, as the trees take them.

        Parameters
        ----------
        X : table
            Whatever `fit` takes; all of it comes to memory, or a large one in blocks to a file (`Encoded.to_array`).
        estimator : object or None
            In whose name scikit-learn's errors speak; by default this encoder's.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows as numbers: a category is its index, NaN a missing or unknown value; where a column is coded by its
            labels it is a number, and NaN a missing value.
        """
        rows = self.encode(X, estimator)
        if isinstance(rows, Encoded):
            return rows.to_array()
        return np.ascontiguousarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)

    @cached_property
    def by_index(self) -> TableEncoder:
        """An encoder for which all categories are indices, also those that are coded by their labels.

        What it gives can be decoded: categories that are coded by their labels may have the same number.
        """
        return replace(self, schema=replace(self.schema, numbers={}))

    def decode(self, column: int, number: float) -> Any:
        """Return a cell of a table that `by_index` has encoded as the user knows it.

        Parameters
        ----------
        column : int
            The index of the column.
        number : float
            What the cell is in that table.

        Returns
        -------
        float, date, category or None
            The number, the date or the category; None where it is missing.
        """
        if np.isnan(number):
            return None
        if column in self.schema.dates:
            return to_date(float(number))
        categories = self.schema.categories.get(column)
        return float(number) if categories is None else categories[int(number)]

    @property
    def has_names(self) -> bool:
        """Whether the columns have names, of whatever kind."""
        return self.feature_names is not None or self.other_names is not None

    @property
    def feature_labels(self) -> list[Any]:
        """The names of the columns, or their numbers where they have none."""
        if self.feature_names is not None:
            return list(self.feature_names.tolist())
        return list(range(self.n_features) if self.other_names is None else self.other_names)

    def _needs_no_check(self, X: Any) -> bool:
        """Tell whether X is an array of finite numbers of the right shape, which takes a microsecond for a row."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[1] == self.n_features
            and X.dtype.type in self.accepted_tables.dtypes
            and X.size > 0
            and X.flags.c_contiguous
            and self.feature_names is None
            and self.schema.takes_any_number
            and math.isfinite(X.min())
            and math.isfinite(X.max())
        )

    @property
    def n_features_in_(self) -> int:
        """The number of columns, under the name that scikit-learn's checks look for."""
        return self.n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns, under the name that scikit-learn's checks look for."""
        if self.feature_names is None:
            raise AttributeError("the columns of the training table had no names")
        return self.feature_names
