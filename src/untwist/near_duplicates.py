"""Rows of a fit that nearly repeat rows of other folds, which models may have remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from untwist.boosting.forest import iterate_row_blocks
from untwist.data.batches import Encoded
from untwist.data.closeness import ComparedRows
from untwist.data.folds import mix_bits
from untwist.data.near_duplicates import NearDuplicates, draw_rows, find_split_rows
from untwist.training_data import TrainingData

__all__ = ["find_near_duplicates"]

#: Rows that are hashed at once, so that what it takes of memory is bounded.
ROWS_PER_HASHING = 65_536


def find_near_duplicates(data: TrainingData) -> NearDuplicates | None:
    """Look for rows that nearly repeat rows of other folds: groups that were given may not keep them together.

    Parameters
    ----------
    data : TrainingData
        The rows with their folds.

    Returns
    -------
    NearDuplicates or None
        None too where the table is sparse, or where other workers have rows: nobody looks then.
    """
    if data.folds is None or data.workers.size > 1:
        return None
    if not isinstance(data.table, (np.ndarray, Encoded)):
        return None
    judged = data.folds.any(axis=0)
    # Rows of the same one of many categories are no near-duplicates by that: what a category says is to be learned.
    coded = () if data.coding is None else data.coding.n_categories
    compared = [column for column in range(data.table.shape[1]) if column not in coded]
    hashes = data.datasets[0].hashes() if data.coding is None else data.coding.hashes()
    rows = draw_rows(hashes, data.weight, len(compared), lambda tied: _hash_exactly(data, tied, compared))
    numbers = data.table.take_rows(rows) if isinstance(data.table, Encoded) else data.table[rows]
    fold_of_row = np.where(judged, data.folds.argmax(axis=0), -1)[rows]
    trained = np.stack([data.training_weight(fold)[rows] > 0 for fold in range(len(data.folds))])
    if not _are_folds_told(data):
        # Where copies of a row lie in several folds, the order of the table may decide which copy lies in which.
        # No such row is asked for its near-duplicates, and it counts as one that every fold trains on.
        is_split = find_split_rows(hashes, rows, data.folds)
        fold_of_row[is_split] = -1
        trained[:, is_split] = True
    group = None if data.groups is None else data.groups.index[rows]
    found = NearDuplicates.find(
        ComparedRows(numbers, data.encoder, compared), data.rows.labels[rows], fold_of_row, trained, group
    )
    if found is None:
        return None
    return replace(
        found,
        column=found.find_group_column(zip(data.encoder.feature_labels, numbers.T, strict=True)),
        pairs=rows[found.pairs],
        pairs_beyond=rows[found.pairs_beyond],
        has_groups=data.groups is not None,
    )


def _are_folds_told(data: TrainingData) -> bool:
    """Tell whether more than the contents of a row tells which folds it lies in: its group, or folds of one's own."""
    return data.own_folds is not None or data.groups is not None


def _hash_exactly(data: TrainingData, rows: NDArray[np.intp], columns: Sequence[int]) -> NDArray[np.uint64]:
    """Return hashes of the numbers in these columns and of the labels of some rows, whose positions are in order.

    The engine's hashes are of bins, each of which may hold several numbers. Groups and folds of one's own are hashed
    too, as copies of a row may lie in different ones.
    """
    parts = []
    for where, block in iterate_row_blocks(data.table):
        first, last = np.searchsorted(rows, (where.start, where.stop))
        for start in range(first, last, ROWS_PER_HASHING):
            chosen = rows[start : min(last, start + ROWS_PER_HASHING)] - where.start
            parts.append(ComparedRows(block[chosen], data.encoder, columns).hashes)
    hashes = mix_bits(np.concatenate(parts) ^ mix_bits(data.rows.labels[rows].astype(np.uint64)))
    if data.groups is not None:
        hashes = mix_bits(hashes ^ mix_bits(data.groups.index[rows].astype(np.uint64)))
    if data.folds is not None and _are_folds_told(data):
        for fold, is_judged in enumerate(data.folds[:, rows] > 0):
            is_trained = data.training_weight(fold)[rows] > 0
            hashes = mix_bits(hashes + is_judged.astype(np.uint64) + 2 * is_trained.astype(np.uint64))
    return hashes
