"""Damaged models: ``python -m reliability.fuzz_damage 5000`` draws so many, and uses what loads in every way.

Each is a sound file with one to three of its values or numbers replaced, most of them by odd ones, and a right
checksum. It must be refused at load, or do no harm wherever it goes.
"""

from __future__ import annotations

import argparse
import json
import random
import traceback
import warnings
from collections import Counter
from copy import deepcopy
from typing import Any

import numpy as np

from reliability.fuzz_models import use_everywhere
from reliability.targets import WORDS, put_together, read_models
from untwist import files

__all__ = ["damage_model", "use_damaged"]

#: Numbers that some reader may take for others than the next one does.
ODD_REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e-300, 1e29, 1e31, 1e99, 1e308, -1e308)
ODD_REALS += (float("inf"), float("-inf"), float("nan"))
ODD_WHOLES = (0, 1, 2, 3, 4, 5, 63, 64, 127, 128, 253, 254, 255, 256, 2**16, 2**31 - 1, 2**31, 2**62, 2**63)


def damage_model(seed: int) -> bytes:
    """A model file with a right checksum and some of its contents replaced."""
    rng = random.Random(seed)
    text, arrays = rng.choice(read_models())
    header, data = json.loads(text), bytearray(arrays)
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.6:
            _damage_array(rng, json.loads(text)["arrays"], data)
        else:
            _damage_header(rng, header)
    return put_together(header, bytes(data))


def _damage_array(rng: random.Random, table: list[Any], data: bytearray) -> None:
    """Put an odd number, or another one of the same array, into an array."""
    kind, size, offset = rng.choice([one for one in table if one[1] > 0])
    values = np.frombuffer(data, kind, size, offset).copy()
    at = rng.randrange(size)
    way = rng.random()
    if way < 0.3:
        values[at] = values[rng.randrange(size)]
    elif kind == "<f8":
        values[at] = rng.choice(ODD_REALS)
    elif way < 0.6:
        values[at] = np.array(rng.choice(ODD_WHOLES), np.uint64).astype(kind)
    else:
        values[at] = (int(values[at]) + rng.choice((-1, 1, 2))) % 2**7
    data[offset : offset + values.nbytes] = values.tobytes()


def _damage_header(rng: random.Random, header: Any) -> None:
    """Replace, drop, or exchange something that the header says."""
    places = [*_walk(header)]
    place, key = rng.choice(places)
    way = rng.random()
    if way < 0.15:
        del place[key]
    elif way < 0.4:
        other, other_key = rng.choice(places)
        place[key] = deepcopy(other[other_key])
    elif type(place[key]) is int and way < 0.8:
        place[key] = rng.choice((place[key] + 1, place[key] - 1, *ODD_WHOLES))
    else:
        place[key] = deepcopy(rng.choice(WORDS))


def _walk(place: Any) -> Any:
    """Every place of a header, as what holds it and its key there."""
    for key in list(place) if isinstance(place, dict) else range(len(place)):
        yield place, key
        if isinstance(place[key], (dict, list)):
            yield from _walk(place[key])


def use_damaged(content: bytes) -> list[str] | None:
    """The ways in which a damaged model was used; None where it was refused."""
    try:
        model = files.loads(content)
    except ValueError as error:
        assert "model file" in str(error), error
        return None
    return use_everywhere(model)


def main() -> None:
    """Count what is refused and what is used, and tell the first lines of what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        try:
            done = use_damaged(damage_model(seed))
        except Exception:
            counts["wrong"] += 1
            print(f"seed {seed}: {traceback.format_exc(limit=-3)}")
            continue
        counts.update(["refused"] if done is None else ["loaded", *done])
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
