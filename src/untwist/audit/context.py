"""What is known of audited rows beside their labels: their values, who gave and who judged the labels, what was seen.

`LabelAudit` holds one of each: `table`, `judge` and `context`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.classifier import UntwistClassifier
from untwist.data.encoding import TableEncoder
from untwist.data.near_duplicates import NearDuplicates
from untwist.noise.model import NoiseModel
from untwist.noise.sources import NoiseBySource

if TYPE_CHECKING:
    from untwist.audit.hidden_sources import HiddenSource

__all__ = ["AuditContext", "AuditedTable", "Judge", "find_positions"]


@dataclass(frozen=True, eq=False)
class AuditedTable:
    """The values of the rows.

    Parameters
    ----------
    X : table or None
        The rows; None where they were not given.
    encoder : TableEncoder or None
        How the rows become numbers; None where X is no table.
    model : UntwistClassifier or None
        The classifier that was fitted to them; None where another model judged.
    """

    X: Any = None
    encoder: TableEncoder | None = None
    model: UntwistClassifier | None = None

    @property
    def names(self) -> list[Any]:
        """The names of the columns, or their numbers; none without a table."""
        return [] if self.encoder is None else self.encoder.feature_labels

    @cached_property
    def numbers(self) -> Array:
        """The rows as float64 numbers: a category is its index, NaN a missing value."""
        return self.require_encoder().by_index.encode_dense(self.X, self.model)

    def require_encoder(self) -> TableEncoder:
        """Return how the rows become numbers; a ValueError where there is no table."""
        if self.encoder is None:
            raise ValueError(
                "X must be a table to look into its columns: give audit_labels one beside y and pred_probs"
            )
        return self.encoder


@dataclass(frozen=True)
class Judge:
    """Whose posteriors judged the labels.

    Parameters
    ----------
    name : str
        What the judge is called.
    in_sample_reason : str
        Why posteriors that were given look as if they had seen the labels, which makes wrong labels look right; empty
        where nothing shows that they have.
    """

    name: str = "UntwistClassifier, out of fold"
    in_sample_reason: str = ""

    @property
    def looks_in_sample(self) -> bool:
        """Whether posteriors that were given look as if they had seen the labels."""
        return bool(self.in_sample_reason)


@dataclass(frozen=True, eq=False)
class AuditContext:
    """What is known of the rows beside their values and labels; all arrays have one entry per row.

    Parameters
    ----------
    source : array or None
        Who or what gave each label, None where that is not known of a row; None where no sources were given.
    item : array or None
        The item of each row: its name, or the position of its first row where items have no names.
    by_source : NoiseBySource or None
        What each source gets wrong.
    hidden_source : HiddenSource or None
        A column of the table that looks like a source rather than a feature, where one was looked for and found: see
        `allow_for`.
    reviewed : array of bool or None
        The rows that a person has decided on; None where no row was.
    before_review : array or None
        The labels before that review; None where they are not known.
    n_skipped : int
        Rows that were looked at and could not be decided on: they are as if nobody had looked.
    groups : array or None
        The group of each row, None where that is not known of a row; None where no groups were given.
    rows_per_case : float
        How many rows count as one in all that is said of the noise, as those of a group err together; 1 without groups.
    judged : array of bool or None
        Whether some fold of one's own judged each row; None where all rows are judged. The others have NaN in
        `posterior` and `wrong`, their own label in `predicted`, weight 0, and no part in anything that is said.
    twins : NearDuplicates or None
        Rows of different folds that nearly repeat each other, where so many do that the models may have remembered
        labels; None where there are none. With groups they are looked for among rows whose group has several rows or
        is not known. Nothing is excluded of such rows.
    order : array of int or None
        The place of each class where classes have a natural order, as numbers and ordered categories have; None where
        they have none.
    chance : bool
        Whether labels are outcomes that chance has a part in, none of which is called wrong.
    """

    source: NDArray[Any] | None = None
    item: NDArray[Any] | None = None
    by_source: NoiseBySource | None = None
    hidden_source: HiddenSource | None = None
    reviewed: NDArray[np.bool_] | None = None
    before_review: NDArray[Any] | None = None
    n_skipped: int = 0
    groups: NDArray[Any] | None = None
    rows_per_case: float = 1.0
    judged: NDArray[np.bool_] | None = None
    twins: NearDuplicates | None = None
    order: NDArray[np.intp] | None = None
    chance: bool = False

    def can_tell(self, noise: NoiseModel) -> bool:
        """Tell whether the share of wrong labels can be told: not where rows have near-duplicates in other folds.

        Parameters
        ----------
        noise : NoiseModel
            The noise; rates that were given are believed.

        Returns
        -------
        bool
        """
        return self.twins is None or noise.is_given

    def take_judged(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of some rows that were judged.

        Parameters
        ----------
        positions : array of int
            The rows.

        Returns
        -------
        array of int
        """
        return positions if self.judged is None else positions[self.judged[positions]]

    def take_open(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of some rows that nobody has reviewed.

        Parameters
        ----------
        positions : array of int
            The rows.

        Returns
        -------
        array of int
        """
        return positions if self.reviewed is None else positions[~self.reviewed[positions]]


def find_positions(rows: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """Return rows that are given as indices or Booleans as indices.

    Parameters
    ----------
    rows : array-like
        Indices, or a Boolean for each row.
    n_rows : int
        How many rows there are.

    Returns
    -------
    array of int
    """
    chosen = np.asarray(rows)
    if chosen.dtype == np.bool_ and chosen.shape != (n_rows,):
        raise ValueError(f"rows must be {n_rows} Booleans or indices, got shape {chosen.shape}")
    positions = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
    if positions.size and not 0 <= positions.min() <= positions.max() < n_rows:
        raise ValueError(f"rows must be indices from 0 to {n_rows - 1}, got {positions.min()} to {positions.max()}")
    return positions
