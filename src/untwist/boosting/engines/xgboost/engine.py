"""XGBoost as an engine: what it takes, and how rows are set aside where no worker sees them all."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from untwist.arguments import Array
from untwist.boosting.engines.engine import COLUMN_SETTINGS, Dataset, Engine, EngineOptions, Rows, Task
from untwist.boosting.engines.xgboost.booster import XGBoostBooster
from untwist.boosting.engines.xgboost.dataset import XGBoostDataset
from untwist.data.encoding import AcceptedTables
from untwist.data.folds import draw_folds, draw_share

TREE_METHODS = ("hist", "approx", "exact")
FINEST_BINS = 255
#: A booster on a CPU has of each row its sign, in double and in single precision, and its margin.
BYTES_PER_ROW = 20


class XGBoostEngine(Engine):
    """Trees grown by XGBoost."""

    name: ClassVar[str] = "xgboost"
    boosts_any_loss: ClassVar[bool] = False
    joins_workers: ClassVar[bool] = True
    known_links: ClassVar[frozenset[str]] = frozenset({"clipped", "exact"})
    known_settings: ClassVar[frozenset[str]] = frozenset(
        {"l2", "subsample", "max_features", "max_bins", "tree_method", "device"} | COLUMN_SETTINGS
    )

    def check_settings(self, settings: EngineOptions) -> None:
        """Refuse what XGBoost's tree methods do not know."""
        if settings.tree_method not in TREE_METHODS:
            raise ValueError(f"tree_method must be one of {TREE_METHODS}, got {settings.tree_method!r}")
        if not isinstance(settings.device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", settings.device):
            raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got {settings.device!r}')
        growth = settings.growth
        limited = growth.max_leaf_nodes is not None or growth.max_depth is None or settings.max_bins < FINEST_BINS
        if settings.tree_method == "exact" and limited:
            raise ValueError('tree_method="exact" needs a max_depth and knows neither max_leaf_nodes nor max_bins')

    def accepted_tables(self, estimator: Any, tree_method: str) -> AcceptedTables:
        """Return the tables that XGBoost takes: only bins can be read in blocks."""
        del estimator
        return AcceptedTables(blocks=tree_method == "hist")

    def make_dataset(self, rows: Rows, settings: EngineOptions) -> XGBoostDataset:
        """Return the rows as XGBoost takes them."""
        return XGBoostDataset(rows, settings)

    def make_booster(self, dataset: XGBoostDataset, task: Task) -> XGBoostBooster:
        """Return a booster whose trees XGBoost grows."""
        return XGBoostBooster(dataset, task)

    def count_bytes(self, n_rows: int, n_classes: int, *, jointly: bool) -> int:
        """Return how many bytes a booster of these rows holds at least, on a CPU."""
        del n_classes, jointly
        return n_rows * BYTES_PER_ROW

    def hold_out(self, dataset: Dataset, rows: Rows, share: float, seed: int) -> Array:
        """Return 1 for the rows that are set aside: each worker draws its own, by their groups or contents."""
        held_out = draw_share(dataset.hashes() if rows.groups is None else rows.groups, share, seed)
        _refuse_poor_draw(rows, np.stack([rows.weight * held_out]))
        return held_out

    def make_folds(self, dataset: Dataset, rows: Rows, n_folds: int, seed: int) -> Array:
        """Return the weight that each fold sets aside: each worker draws for its own rows, by groups or contents."""
        hashes = dataset.hashes() if rows.groups is None else rows.groups
        held_out_weight = draw_folds(hashes, rows.weight, n_folds, seed)
        _refuse_poor_draw(rows, held_out_weight)
        return held_out_weight


def _refuse_poor_draw(rows: Rows, held_out_weight: Array) -> None:
    """Raise an error where a draw has set all of a class aside, or nothing: different rows, or groups, are few."""
    n_classes = int(max(rows.workers.gather(int(rows.labels.max(initial=0))))) + 1
    masses = [
        np.bincount(rows.labels, weights=weight, minlength=n_classes) for weight in (*held_out_weight, rows.weight)
    ]
    *aside, total = rows.workers.sum(np.stack(masses))
    present = total > 0
    for mass in aside:
        if mass.sum() == 0 or (mass[present] >= total[present]).any():
            few = "different rows" if rows.groups is None else "groups"
            by = "what they contain" if rows.groups is None else "their names"
            raise ValueError(
                f'too few {few} to set some aside with engine="xgboost", which goes by {by}: '
                "give X_val and y_val, or settings and rounds, or use the compiled engine"
            )
