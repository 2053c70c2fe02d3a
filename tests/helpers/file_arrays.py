"""Arrays as a model file holds them, numbers next to a limit, and how a reader refuses what lies beyond one."""

import math

import numpy as np
import pytest

from untwist.files.values import ArrayReader


class Arrays:
    """Arrays as a file would hold them: `put` returns the number of one, `make_reader` reads all of them."""

    def __init__(self):
        self.table = []
        self.parts = []

    def put(self, values, kind="<f8"):
        array = np.asarray(values, dtype=kind)
        offset = sum(map(len, self.parts))
        self.parts.append(array.tobytes())
        self.table.append([kind, array.size, offset])
        return len(self.table) - 1

    def make_reader(self):
        return ArrayReader(self.table, memoryview(b"".join(self.parts)))


def above(value):
    return float(np.nextafter(value, math.inf))


def below(value):
    return float(np.nextafter(value, -math.inf))


def refuses(message):
    return pytest.raises(ValueError, match=f"not so: {message}")
