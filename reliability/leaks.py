"""Does memory stay flat? Many small fits, predictions, saves and loads; the slope of what the process holds.

``make leaks``: 10,000 of them, about ten minutes; ``python -m reliability.leaks --fits 300`` for a first look.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from contextlib import suppress
from typing import Any

import numpy as np

from reliability.records import Record
from reliability.resources import find_slope, read_resident_bytes
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.files import dumps, loads

WARM_UP = 0.2  # Memory has settled after this share of the fits.
MOST_BYTES = 200.0  # Memory may grow by so many bytes per fit, which is 2 MB over 10,000 fits.
EVERY_RECIPE = 50  # Every so many fits one is by the recipe, which takes a hundred times as long as the others.
SETTINGS: list[dict[str, Any]] = [
    {"alpha": 2.0},
    {"alpha": 1.1, "link": "exact"},
    {"alpha": -2.0, "min_samples_leaf": 5},
    {"alpha": 1.1, "class_weight": "balanced"},
    {"alpha": 4.0, "growth": Growth(init="prior", subsample=0.7, max_features=0.5), "max_leaf_nodes": 6},
    {"alpha": 2.0, "categorical_features": [1], "monotonic_cst": [1, 0, 0, 0]},
    {"alpha": 2.0, "early_stopping": True},
]


def main() -> int:
    """Exit status: 1 if memory grows."""
    parser = argparse.ArgumentParser(description=__doc__.split("?")[0] + "?")
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--record", action="store_true", help="write docs/reliability/leaks.json")
    options = parser.parse_args()
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[:, 1] = rng.integers(0, 4, 120)
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    every = max(1, options.fits // 100)
    held: list[tuple[int, int]] = []  # Pairs of fits done and resident bytes.
    traced = 0
    # Tracing is slow, so it looks at the last fits only.
    tracing = int(0.9 * options.fits)
    traced_from = int(0.92 * options.fits)
    for fit in range(options.fits):
        one = SETTINGS[fit % len(SETTINGS)]
        labels = three if fit % 7 == 0 else y
        model: UntwistClassifier | PILBoostClassifier
        if fit % EVERY_RECIPE == EVERY_RECIPE - 1:
            model = UntwistClassifier(n_jobs=1 + fit % 2, random_state=fit).fit(X, y)
        else:
            settings = {"n_estimators": 5, "n_jobs": 1 + fit % 2, "random_state": fit}
            model = PILBoostClassifier(**settings, **one).fit(X, labels)
        other = loads(dumps(model))
        if not np.array_equal(other.predict_proba(X), model.predict_proba(X)):
            sys.exit("a model that was saved and loaded predicts something else")
        with suppress(ValueError):  # An error must not hold on to memory either.
            loads(dumps(model)[:-40])
        if fit == tracing:
            tracemalloc.start()
        if fit == traced_from:
            gc.collect()
            traced = tracemalloc.get_traced_memory()[0]
        if fit % every == 0:
            gc.collect()
            held.append((fit, read_resident_bytes()))
    gc.collect()
    grown = (tracemalloc.get_traced_memory()[0] - traced) / max(1, options.fits - 1 - traced_from)
    tracemalloc.stop()
    done, sizes = zip(*[(fit, size) for fit, size in held if WARM_UP * options.fits <= fit < tracing], strict=True)
    slope, _ = find_slope(done, sizes)
    flat = slope < MOST_BYTES and grown < MOST_BYTES
    seconds = time.perf_counter() - start
    first, last = sizes[0] / 1e6, sizes[-1] / 1e6
    print(f"{options.fits} fits in {seconds:.0f} s: {first:.1f} MB when settled, {last:.1f} MB at the end")
    print(
        f"{slope:+.1f} bytes per fit by resident memory, {grown:+.1f} by tracemalloc: {'flat' if flat else 'IT GROWS'}"
    )
    if options.record:
        Record(
            name="leaks",
            title="Memory over many fits, predictions, saves and loads",
            figures={
                "fits": options.fits,
                "MB when settled": round(first, 1),
                "MB at the end": round(last, 1),
                "bytes per fit (resident)": round(slope, 1),
                "bytes per fit (tracemalloc)": round(grown, 1),
                "bytes per fit allowed": MOST_BYTES,
            },
            found="Nothing: memory is flat.",
            command="make leaks",
            seconds=round(seconds, 1),
        ).write(failed=not flat)
    return int(not flat)


if __name__ == "__main__":
    sys.exit(main())
