"""Which tables an engine takes, and scikit-learn's check that a table is one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_X_y

__all__ = ["AcceptedTables"]


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

    def check(self, numbers: Any, estimator: Any) -> Any:
        """Return a table of numbers as the engine takes it, or raise scikit-learn's error in the estimator's name."""
        with np.errstate(invalid="ignore"):  # The check sums all cells, and infinities of both signs sum to NaN.
            return check_array(numbers, estimator=estimator, input_name="X", **self._options())

    def check_with_labels(self, numbers: Any, y: Any, estimator: Any) -> tuple[Any, Any]:
        """Return a table and its labels, checked together."""
        with np.errstate(invalid="ignore"):
            return check_X_y(numbers, y, estimator=estimator, **self._options())  # type: ignore[no-any-return]

    def _options(self) -> dict[str, Any]:
        return {
            "dtype": list(self.dtypes) if len(self.dtypes) > 1 else self.dtypes[0],
            "ensure_all_finite": "allow-nan" if self.missing_values else True,
            "accept_sparse": ["csr", "csc"] if self.sparse else False,
        }
