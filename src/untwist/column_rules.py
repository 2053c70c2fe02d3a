"""What was said of columns, by position or by name: a constructor takes it, and the table tells what it means."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_monotonic_cst

from untwist.arguments import check_numbers
from untwist.boosting.engines.engine import TreeGrowth
from untwist.data.encoding import TableEncoder

__all__ = ["ColumnRules"]

#: What `interaction_cst` may be.
KINDS_OF_INTERACTIONS = 'interaction_cst must be None, "pairwise", "no_interactions" or a list of sets of columns'


@dataclass(frozen=True, eq=False)
class ColumnRules:
    """What was said of columns.

    Parameters
    ----------
    categorical_features, monotonic_cst, interaction_cst
        As both classifiers take them.
    feature_weights
        As `Growth` takes them.
    """

    categorical_features: Any = "auto"
    monotonic_cst: Any = None
    interaction_cst: Any = None
    feature_weights: Any = None

    @property
    def has_directions(self) -> bool:
        """Whether any column is to be monotone."""
        given = self.monotonic_cst
        directions = list(given.values()) if isinstance(given, dict) else given
        # What is no list of directions is refused where the table is known.
        return directions is not None and np.ndim(directions) > 0 and bool(np.any([one != 0 for one in directions]))

    def tell(
        self, growth: TreeGrowth, encoder: TableEncoder, n_classes: int, turns_over: bool, estimator: Any
    ) -> TreeGrowth:
        """Return how trees grow by these rules.

        Parameters
        ----------
        growth : TreeGrowth
            How they grow without.
        encoder : TableEncoder
            The columns of the table.
        n_classes : int
            How many classes there are.
        turns_over : bool
            Whether the score of the clean posterior falls where the boosted one rises.
        estimator : object or None
            In whose name scikit-learn's errors speak.

        Returns
        -------
        TreeGrowth
            A ValueError where a rule does not go with the table.
        """
        directions = self._find_directions(encoder, n_classes, estimator)
        return replace(
            growth,
            monotone=tuple(-one for one in directions) if turns_over else directions,
            interactions=self._find_interactions(encoder),
            feature_weights=self._find_feature_weights(encoder.n_features),
        )

    def _find_directions(self, encoder: TableEncoder, n_classes: int, estimator: Any) -> tuple[int, ...]:
        """Return the direction of each column; empty where none is monotone."""
        if self.monotonic_cst is None:
            return ()
        directions = _check_monotonic_cst(encoder.stand_in_for(estimator), self.monotonic_cst)
        if not np.any(directions):
            return ()
        if n_classes > 2:
            raise ValueError("monotonic_cst must be None where there are more than two classes")
        for column in encoder.schema.categories:
            if directions[column]:
                name = encoder.feature_labels[column]
                raise ValueError(f"monotonic_cst must be 0 for column {name!r}, which holds categories")
        return tuple(int(direction) for direction in directions)

    def _find_interactions(self, encoder: TableEncoder) -> tuple[tuple[int, ...], ...]:
        """Return the groups of columns that may meet in a tree; empty where all may."""
        given, n_features = self.interaction_cst, encoder.n_features
        if given is None:
            return ()
        if isinstance(given, str) and given == "no_interactions":
            return tuple((column,) for column in range(n_features))
        if isinstance(given, str) and given == "pairwise":
            return tuple(combinations(range(n_features), 2)) if n_features > 1 else ()
        if not isinstance(given, (list, tuple, set, frozenset)):
            raise ValueError(f"{KINDS_OF_INTERACTIONS}, got {given!r}")
        groups = [_find_group(group, encoder) for group in given]
        others = set(range(n_features)).difference(*groups)
        # As in scikit-learn, columns that no group names make one more group.
        return tuple(tuple(sorted(group)) for group in [*groups, *([others] if others else [])])

    def _find_feature_weights(self, n_features: int) -> tuple[float, ...]:
        """Return the chance of each column to be drawn; empty where all have the same."""
        given = self.feature_weights
        if given is None:
            return ()
        weights = check_numbers("feature_weights", given)
        if weights.shape != (n_features,):
            raise ValueError(f"feature_weights must be {n_features} numbers, one per column, got shape {weights.shape}")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise ValueError(f"feature_weights must be finite and non-negative, not all 0, got {given!r:.100}")
        return tuple(weights.tolist())


def _find_group(group: Any, encoder: TableEncoder) -> set[int]:
    """Return the positions of columns that are given by position or by name."""
    if isinstance(group, (str, bytes)) or not isinstance(group, Collection):
        raise ValueError(f"{KINDS_OF_INTERACTIONS}, got a group {group!r}")
    names = [] if encoder.feature_names is None else encoder.feature_names.tolist()
    positions = set()
    for column in group:
        if column in names:
            positions.add(names.index(column))
            continue
        is_position = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if not is_position or not 0 <= column < encoder.n_features:
            raise ValueError(
                f"interaction_cst must hold columns of X, by position from 0 to {encoder.n_features - 1} "
                f"or by name, got {column!r}"
            )
        positions.add(int(column))
    return positions
