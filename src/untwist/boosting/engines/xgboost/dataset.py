"""Rows as XGBoost takes them, for any number of boosters; in a distributed fit those of this worker."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist import _core
from untwist.arguments import Array
from untwist.boosting.engines.compiled import find_thresholds
from untwist.boosting.engines.engine import EngineOptions, Rows
from untwist.boosting.engines.xgboost.weights import find_array_library
from untwist.boosting.forest import count_threads, iterate_row_blocks
from untwist.data.folds import GOLDEN_RATIO, mix_bits
from untwist.data.tables import bring_to_host
from untwist.optional import import_optional

#: The code of a missing value among the codes of bins.
MISSING_CODE = 255

#: The oldest major version of xgboost whose interface we know.
OLDEST_VERSION = 3


def import_xgboost() -> Any:
    """Return the package xgboost; an ImportError says what to install."""
    xgboost = import_optional("xgboost", 'engine="xgboost"', extra="xgboost")
    if int(xgboost.__version__.split(".")[0]) < OLDEST_VERSION:
        problem = f'engine="xgboost" needs xgboost {OLDEST_VERSION} or newer, got {xgboost.__version__}'
        raise ImportError(f'{problem}: pip install --upgrade "untwist[xgboost]"')
    return xgboost


class XGBoostDataset:
    """A matrix of XGBoost, and what boosters need to know of it.

    "hist" grows trees on codes of bins whose edges all workers share and which do not depend on who has which rows;
    "approx" and "exact" grow them on the numbers themselves, in single precision.
    """

    def __init__(self, rows: Rows, settings: EngineOptions) -> None:
        self.labels = rows.labels
        self.workers = rows.workers
        self.tree_method = settings.tree_method
        self.device = settings.device
        self.n_features = rows.X.shape[1]
        self.n_threads = count_threads(settings.n_jobs)
        self.n_categories = np.zeros(self.n_features, dtype=np.int32)
        self.n_categories[list(rows.n_categories)] = list(rows.n_categories.values())
        if self.tree_method == "exact" and (rows.n_categories or self.device != "cpu"):
            raise ValueError('tree_method="exact" knows neither categories nor GPUs: choose "hist" or "approx"')
        self.splits_codes = self.tree_method == "hist"
        self.max_bins = MISSING_CODE + 1 if self.splits_codes else settings.max_bins
        self.missing = float(MISSING_CODE) if self.splits_codes else math.nan
        self.thresholds: list[Array] | None = None
        if self.splits_codes:
            self.thresholds = find_thresholds(rows, self.n_categories, settings.max_bins, self.n_threads)
            codes, lost = self._encode(rows.X)
            self.table = find_array_library(self.device).asarray(codes)
        else:
            self.table = find_array_library(self.device).asarray(self._check_single_precision(rows.X))
            lost = np.isnan(self.table.sum(axis=0, dtype=np.float64))
        self.has_missing = self.workers.sum(bring_to_host(lost).astype(np.int64)) > 0
        self.matrix = self._make_matrix()
        if settings.growth.feature_weights:
            self.matrix.set_info(feature_weights=np.array(settings.growth.feature_weights))

    def _encode(self, X: Any) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return the codes of all cells, and which columns have missing values."""
        assert self.thresholds is not None
        codes = np.empty(X.shape, dtype=np.uint8)
        has_missing = np.zeros(self.n_features, dtype=bool)
        for rows, block in iterate_row_blocks(X):
            has_missing |= _core.encode(block, self.n_categories, self.thresholds, codes[rows], self.n_threads) > 0
        return codes, has_missing

    def _check_single_precision(self, X: Any) -> Any:
        """Return a dense table whose numbers fit single precision: in a sparse one XGBoost takes 0 for missing."""
        table = X.toarray() if hasattr(X, "toarray") else X
        if max(np.nanmax(table, initial=0.0), -np.nanmin(table, initial=0.0)) > np.finfo(np.float32).max:
            raise ValueError(f'X must fit single precision with tree_method={self.tree_method!r}: choose "hist"')
        return table

    def _make_matrix(self) -> Any:
        """Return XGBoost's matrix of the table."""
        xgboost = import_xgboost()
        options = {
            "missing": self.missing,
            "feature_types": ["c" if count else "q" for count in self.n_categories],
            "enable_categorical": True,
            "nthread": self.n_threads,
        }
        if not self.splits_codes:
            return xgboost.DMatrix(self.table, **options)
        # A table that has every code once tells XGBoost all bins, so that it need not look for quantiles of the rows.
        every_code = find_array_library(self.device).asarray(self._list_codes())
        reference = xgboost.QuantileDMatrix(every_code, max_bin=self.max_bins, **options)
        return xgboost.QuantileDMatrix(self.table, max_bin=self.max_bins, ref=reference, **options)

    def _list_codes(self) -> NDArray[np.uint8]:
        """Return a table in which every column has all of its codes."""
        assert self.thresholds is not None
        highest = np.where(self.n_categories > 0, self.n_categories - 1, [len(known) for known in self.thresholds])
        return np.minimum(np.arange(MISSING_CODE)[:, None], highest).astype(np.uint8)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each row's contents."""
        table = self.table if self.device == "cpu" else self.table.get()
        hashes = np.full(table.shape[0], GOLDEN_RATIO)
        for column in range(table.shape[1]):
            values = np.ascontiguousarray(table[:, column])
            # Adding 0.0 makes a positive zero of a negative one, which equals it.
            bits = values if self.splits_codes else (values.astype(np.float64) + 0.0).view(np.uint64)
            hashes = mix_bits(np.bitwise_xor(hashes, bits.astype(np.uint64)))
        return hashes
