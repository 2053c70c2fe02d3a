"""Model files: a header in JSON, arrays as they are, a checksum. Reading one executes nothing.

``save(model, path)`` and ``load(path)``; `dumps` and `loads` do the same with bytes. A file holds all that predictions
need and what is known of the training, but no training rows: what was predicted out of fold stays behind. The same
model gives the same bytes. docs/model-file.md describes the format.
"""

from untwist.files.layout import VERSION
from untwist.files.reading import header, load, loads
from untwist.files.writing import dumps, save

__all__ = ["VERSION", "dumps", "header", "load", "loads", "save"]
