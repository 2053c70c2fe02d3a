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

VERSION = 300
"""The number of the format: the untwist that first wrote it, 0.3.0, as 10000 major + 100 minor + patch."""

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


def pack(header: dict[str, Any], arrays: bytes) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    header : dict
        What JSON can hold.
    arrays : bytes
        The arrays one after the other, aligned.

    Returns
    -------
    bytes
        The prefix, the header, the arrays and the checksum.
    """
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(PREFIX.size + len(text)) % ALIGNMENT)
    content = PREFIX.pack(MAGIC, VERSION, 0, len(text)) + text + arrays
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
    if version != VERSION:
        raise ValueError(f"this model file has format {version}, not {VERSION}: {_find_reader(version)}")
    body = memoryview(content)[:-CHECKSUM_BYTES]
    if hashlib.sha256(body).digest() != content[-CHECKSUM_BYTES:]:
        raise ValueError("this model file is damaged: its checksum is not that of its contents")
    if header_size > len(body) - PREFIX.size:
        raise ValueError("this model file does not make sense (its header is longer than the file)")
    header_end = PREFIX.size + header_size
    try:
        header = json.loads(bytes(body[PREFIX.size : header_end]), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError("this model file does not make sense (its header is no JSON)") from error
    if not isinstance(header, dict):
        raise ValueError("this model file does not make sense (its header is no object)")
    return header, body[header_end:]


def _find_reader(version: int) -> str:
    """Say which untwist reads a file of another format."""
    if version < VERSION:
        return "untwist 0.2.0 reads it; train the model again for this one"
    major, minor, patch = version // 10_000, version // 100 % 100, version % 100
    return f"untwist {major}.{minor}.{patch} and newer read it"


def _refuse_constant(word: str) -> float:
    """Refuse NaN and infinities, which Python's parser would take."""
    raise ValueError(f"{word} is no JSON")
