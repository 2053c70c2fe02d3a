"""Tables too large for memory: Parquet files or an Arrow dataset, read in blocks of rows as often as need be."""

from untwist.data.batches import (
    Batches,
    Encoded,
)

__all__ = ["Batches", "Encoded"]
