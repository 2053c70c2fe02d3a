"""The layout of a model file: a prefix, a header in JSON, arrays as they are, a checksum.

What the header says is a matter of `writing` and `reading`; docs/model-file.md describes both.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import fields
from typing import Any

import numpy as np

from untwist.boosting.forest import Forest

__all__ = [
    "ALIGNMENT",
    "ARRAY_TYPES",
    "FIFTH_VERSION",
    "FIRST_VERSION",
    "FOREST_ARRAYS",
    "FOURTH_VERSION",
    "LABEL_TYPES",
    "MAGIC",
    "MATRIX_ARRAYS",
    "MOST_SOURCE_LETTERS",
    "SECOND_VERSION",
    "SOURCE_ARRAYS",
    "THIRD_VERSION",
    "UNTWISTING_ADDITIONS",
    "UNTWISTING_ARRAYS",
    "VERSION",
    "pack",
    "unpack",
]

VERSION = 6
"""The newest version of the format, for rounds that begin at another score than 0."""

#: The version for columns of dates and others that are read as numbers.
FIFTH_VERSION = 5

#: The version for columns coded by their labels and for choices that tell what trees drew.
FOURTH_VERSION = 4

#: The version for models that know the noise of sources or clean posteriors with bends.
THIRD_VERSION = 3

#: The version for leaves with a value per class and for transition matrices.
SECOND_VERSION = 2

#: The version for all other models: whatever it can hold is written in it, so that an older untwist can read it.
FIRST_VERSION = 1

#: What every model file begins with.
MAGIC = b"UNTWIST\0"

#: The magic word, the version, a zero, and the number of bytes of the header.
PREFIX = struct.Struct("<8sIIQ")

#: A SHA-256 of everything before it ends the file: this many bytes.
CHECKSUM_BYTES = 32

#: The header and every array end at a multiple of this many bytes.
ALIGNMENT = 8

#: The types that arrays may have, by their names in the file.
ARRAY_TYPES = {"<f8": np.float64, "<i8": np.int64, "<i4": np.int32, "<u8": np.uint64, "|u1": np.uint8}

#: The types that classes may have.
LABEL_TYPES = re.compile(r"\|b1|<[iuf][248]|\|[iu]1|<U\d{1,4}|\|O")

#: The arrays that a forest consists of.
FOREST_ARRAYS = tuple(field.name for field in fields(Forest) if field.name != "n_features")

#: The arrays of an `Untwisting`; its other fields are in the header.
UNTWISTING_ARRAYS = ("weights", "rates_neg", "rates_pos", "slopes", "bends", "shortfalls")

#: The fields of an `Untwisting` that older versions do not know; a file leaves them out where they have their defaults.
UNTWISTING_ADDITIONS = ("bends", "shortfalls", "uneven_limit")

#: The arrays of a `MatrixUntwisting` and their axes: matrices (m), classes (k), the two ends of an interval (2).
MATRIX_ARRAYS = {
    "weights": "m",
    "matrices": "mkk",
    "slopes": "mk",
    "offsets": "mk",
    "class_shares": "k",
    "class_intervals": "k2",
}

#: The arrays of a `NoiseBySource` and their axes: sources (s), classes (k), the two ends of an interval (2).
SOURCE_ARRAYS = {
    "counts": "s",
    "matrices": "skk",
    "common": "kk",
    "shares": "s",
    "intervals": "s2",
    "class_intervals": "sk2",
    "stands_out": "s",
    "reliability": "s",
}

#: Letters of all sources, as an array holds them, at most: their number times the longest name.
MOST_SOURCE_LETTERS = 1 << 24


def pack(header: dict[str, Any], arrays: bytes, version: int) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    header : dict
        What JSON can hold.
    arrays : bytes
        The arrays one after the other, aligned.
    version : int
        The version of the format.

    Returns
    -------
    bytes
        The prefix, the header, the arrays and the checksum.
    """
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(PREFIX.size + len(text)) % ALIGNMENT)
    content = PREFIX.pack(MAGIC, version, 0, len(text)) + text + arrays
    return content + hashlib.sha256(content).digest()


def unpack(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the header and the bytes of the arrays.

    Parameters
    ----------
    content : bytes
        The bytes of a file.

    Returns
    -------
    header : dict
        The header as JSON has it; what it says is not checked.
    arrays : memoryview
        The bytes between the header and the checksum.

    Raises
    ------
    ValueError
        If the file is damaged or none of ours.
    """
    if not content.startswith(MAGIC):
        raise ValueError("this is no untwist model file")
    if len(content) < PREFIX.size + CHECKSUM_BYTES:
        raise ValueError("this model file is damaged: it ends too early")
    _, version, _, header_size = PREFIX.unpack_from(content)
    if version > VERSION:
        known = f"known are {FIRST_VERSION} to {VERSION}"
        raise ValueError(f"this model file is of a newer untwist (format {version}, {known}): update")
    body = memoryview(content)[:-CHECKSUM_BYTES]
    if hashlib.sha256(body).digest() != content[-CHECKSUM_BYTES:]:
        raise ValueError("this model file is damaged: its checksum is not that of its contents")
    if version < FIRST_VERSION or header_size > len(body) - PREFIX.size:
        raise ValueError("this model file does not make sense (its header is longer than the file)")
    header_end = PREFIX.size + header_size
    try:
        header = json.loads(bytes(body[PREFIX.size : header_end]), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError("this model file does not make sense (its header is no JSON)") from error
    if not isinstance(header, dict):
        raise ValueError("this model file does not make sense (its header is no object)")
    return header, body[header_end:]


def _refuse_constant(word: str) -> float:
    """Refuse NaN and infinities, which Python's parser would take."""
    raise ValueError(f"{word} is no JSON")
