"""Estimates of noise whose numbers are in fixtures/noise_numbers.json; run this file with --again to renew them.

Do so only where a release changes the numbers on purpose, and say so in the changelog. What is random in the data is
arithmetic of whole numbers, as in `number_fixtures`, so that it depends on no library.
"""

import json
import sys
from pathlib import Path

import numpy as np

from helpers.number_fixtures import draw_below
from helpers.tickets import spread_noise
from untwist import __version__
from untwist.noise.calibration import calibrate
from untwist.noise.rates import estimate_rates
from untwist.noise.sources import estimate_by_source
from untwist.noise.transitions import estimate_transitions

PATH = Path(__file__).parents[1] / "fixtures" / "noise_numbers.json"
FEW = 6  # So many rows of each table are untwisted.


def draw_shares(n, stream):
    """Numbers between 0 and 1."""
    return (draw_below(n, stream, 2**20) + 0.5) / 2**20


def draw_bell(n, stream):
    """About normal numbers, each of four shares."""
    return (draw_shares(4 * n, stream).reshape(n, 4).sum(axis=1) - 2.0) * 3.0**0.5


def draw_table(matrix, n, stream, clarity):
    """Twisted posteriors with an error, noisy labels, and the truth."""
    matrix = np.asarray(matrix)
    n_classes = len(matrix)
    truth = draw_below(n, stream, n_classes)
    logs = draw_bell(n * n_classes, stream + 1).reshape(n, n_classes) + clarity * np.eye(n_classes)[truth]
    clean = np.exp(1.5 * logs)
    clean /= clean.sum(axis=1, keepdims=True)
    labels = (draw_shares(n, stream + 2)[:, None] > matrix[truth].cumsum(axis=1)).sum(axis=1).clip(0, n_classes - 1)
    twisted = clean @ matrix * np.exp(0.2 * draw_bell(n * n_classes, stream + 3).reshape(n, n_classes))
    return twisted / twisted.sum(axis=1, keepdims=True), labels, truth


def draw_labels(matrices, truth, sources, stream):
    """The labels of sources, each by its own matrix."""
    likely = np.asarray(matrices)[sources, truth].cumsum(axis=1)
    return (draw_shares(len(truth), stream)[:, None] > likely).sum(axis=1).clip(0, likely.shape[1] - 1)


CLEAN = np.eye(3)
EVEN = spread_noise(3, 0.2)
UNEVEN = [[0.65, 0.35, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.05, 0.0, 0.85, 0.1], [0.0, 0.0, 0.0, 1.0]]
RATES_OF_SOURCES = [0.4, 0.05, 0.05, 0.1, 0.02]
PAIRS = 0.75 * np.eye(4) + 0.25 * np.roll(np.eye(4), 1, axis=1)


def describe_matrices(noise, posterior, labels):
    """What is said of the noise of several classes, and of a few rows."""
    return {
        "found": bool(noise.found),
        "evidence": noise.evidence,
        "share": [noise.share, *noise.interval, noise.uneven_limit],
        "matrix": noise.matrix.tolist(),
        "classes": np.column_stack([noise.class_shares, noise.class_intervals]).tolist(),
        "spread": np.sqrt(
            noise.weights @ (noise.matrices - noise.matrix).reshape(len(noise.weights), -1) ** 2
        ).tolist(),
        "clean": noise.clean(posterior[:FEW]).tolist(),
        "wrong": noise.probability_wrong(posterior[:FEW], labels[:FEW]).tolist(),
    }


def describe_rates(noise, posterior, labels):
    """What is said of the noise of two classes, and of a few rows."""
    both = np.column_stack([1.0 - posterior, posterior])
    return {
        "found": bool(noise.found),
        "evidence": noise.evidence,
        "rates": [noise.rate_neg, noise.rate_pos, *noise.interval_neg, *noise.interval_pos, noise.uneven_limit],
        "calibration": [noise.scale, noise.offset, noise.clearest, noise.chance_of_noise],
        "share": list(noise.share_wrong(both, labels, 1.0)),
        "clean": noise.clean(both[:FEW])[:, 1].tolist(),
        "wrong": noise.probability_wrong(both[:FEW], labels[:FEW]).tolist(),
    }


def describe_sources(noise):
    """What is said of sources."""
    names = ("counts", "matrices", "common", "shares", "intervals", "class_intervals", "stands_out", "reliability")
    return {"evidence": noise.evidence, **{name: np.asarray(getattr(noise, name)).tolist() for name in names}}


def estimate_matrices(noise, n, stream, clarity=3.5, **settings):
    posterior, labels, _ = draw_table(noise, n, stream, clarity)
    return describe_matrices(estimate_transitions(posterior, labels, **settings), posterior, labels)


def estimate_kinds():
    """Rows of four kinds, of which one is hard."""
    kinds = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
    posterior = kinds[draw_below(400, 31, 4)]
    labels = (draw_shares(400, 32)[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
    return describe_matrices(estimate_transitions(posterior, labels), posterior, labels)


def estimate_pair(noise, n, stream, clarity=2.5, **settings):
    matrix = [[1.0 - noise[0], noise[0]], [noise[1], 1.0 - noise[1]]]
    posterior, labels, _ = draw_table(matrix, n, stream, clarity)
    return describe_rates(estimate_rates(posterior[:, 1], labels, **settings), posterior[:, 1], labels)


def estimate_steps():
    """Rows of six kinds with scatter, and no wrong labels."""
    kind = draw_below(600, 41, 6)
    posterior = np.array([0.02, 0.2, 0.4, 0.6, 0.8, 0.98])[kind] + 0.01 * (draw_shares(600, 42) - 0.5)
    labels = (draw_shares(600, 43) < posterior).astype(int)
    return describe_rates(estimate_rates(posterior, labels), posterior, labels)


def review(matrix, stream):
    """What a review of the most suspect labels, and of a few others, makes of an estimate."""
    posterior, labels, truth = draw_table(matrix, 400, stream, 2.0)
    two = len(matrix) == 2
    noise = estimate_rates(posterior[:, 1], labels) if two else estimate_transitions(posterior, labels)
    at_label = posterior[np.arange(400), labels]
    rows = np.append(np.argsort(at_label, kind="stable")[:40], np.argsort(-at_label, kind="stable")[:20])
    learned = noise.learn(posterior[rows], labels[rows], truth[rows])
    return describe_rates(learned, posterior[:, 1], labels) if two else describe_matrices(learned, posterior, labels)


def estimate_sources(n_classes, stream, rates, several, **settings):
    """Sources that err at these rates, and one more without labels; with several, each item has three labels."""
    n_items = 240 if several else 700
    posterior, _, truth = draw_table(spread_noise(n_classes, 0.1), n_items, stream, 2.5)
    items = np.repeat(np.arange(n_items), 3) if several else np.arange(n_items)
    sources = draw_below(len(items), stream + 5, len(rates))
    labels = draw_labels([spread_noise(n_classes, rate) for rate in rates], truth[items], sources, stream + 6)
    if n_classes == 2:
        noise = estimate_rates(posterior[items, 1], labels)
    else:
        noise = estimate_transitions(posterior[items], labels)
    found = estimate_by_source(
        posterior[items],
        labels,
        sources=sources,
        names=np.arange(len(rates) + 1),
        noise=noise,
        items=items if several else None,
        weight=1.0 + (sources == 1),
        pooled_weight=1.0 / (1.0 + items % 3),
        **settings,
    )
    rows = slice(0, 3 * FEW) if several else slice(0, FEW)
    truths = found.find_truth(posterior[items][rows], labels[rows], sources[rows], items[rows] if several else None)
    return describe_sources(found) | {"truth": truths.tolist()}


def calibrate_boasting():
    posterior, labels, _ = draw_table(EVEN, 300, 71, 1.0)
    boasting = posterior**4 / (posterior**4).sum(axis=1, keepdims=True)
    return {"posterior": calibrate(np.where(boasting < 1e-5, 0.0, boasting), labels, np.ones(300))[: 2 * FEW].tolist()}


# How far numbers may be from those kept, as an absolute and a relative tolerance. Newton's steps end at one point. A
# search by BFGS, or by expectation and maximisation, ends near it, and other libraries may make it stop a step earlier;
# with many classes it stops early, when its steps are spent, so its numbers vary most.
EXACT, SEARCHED, SEARCHED_MANY_CLASSES = 1e-7, 1e-4, 2e-3
CASES = {
    "clean": (lambda: estimate_matrices(CLEAN, 400, 1), SEARCHED),
    "even": (lambda: estimate_matrices(EVEN, 400, 5), SEARCHED),
    "uneven": (lambda: estimate_matrices(UNEVEN, 800, 9), SEARCHED),
    "pairs, three rows to a case": (lambda: estimate_matrices(PAIRS, 500, 13, 2.5, rows_per_case=3.0), SEARCHED),
    "weak": (lambda: estimate_matrices(EVEN, 40, 101, 2.0), SEARCHED),
    "many classes": (lambda: estimate_matrices(spread_noise(22, 0.3), 300, 117, 3.0), SEARCHED_MANY_CLASSES),
    "too few rows": (lambda: estimate_matrices(spread_noise(22, 0.3), 90, 117, 3.0), SEARCHED),
    "known matrix": (lambda: estimate_matrices(EVEN, 200, 5, matrix=EVEN), SEARCHED),
    "kinds": (estimate_kinds, SEARCHED),
    "two classes": (lambda: estimate_pair((0.1, 0.3), 700, 21), EXACT),
    "two clean classes": (lambda: estimate_pair((0.0, 0.0), 300, 25, 1.0), EXACT),
    "known rates": (lambda: estimate_pair((0.2, 0.0), 300, 29, rates=(0.2, 0.0), rows_per_case=2.0), EXACT),
    "steps": (estimate_steps, EXACT),
    "review of two classes": (lambda: review([[0.9, 0.1], [0.3, 0.7]], 45), EXACT),
    "review of three classes": (lambda: review(EVEN, 49), SEARCHED),
    "sources of two classes": (lambda: estimate_sources(2, 53, RATES_OF_SOURCES, several=False), SEARCHED),
    "sources that are alike": (lambda: estimate_sources(2, 53, [0.02] * 3, False, rows_per_case=2.0), SEARCHED),
    "several votes of two classes": (lambda: estimate_sources(2, 57, RATES_OF_SOURCES, several=True), SEARCHED),
    "sources of three classes": (lambda: estimate_sources(3, 61, RATES_OF_SOURCES, several=False), SEARCHED),
    "several votes of three classes": (lambda: estimate_sources(3, 61, RATES_OF_SOURCES, several=True), SEARCHED),
    "calibration": (calibrate_boasting, SEARCHED),
}


def shorten(value):
    """Nine digits of every number, which is more than any tolerance asks for."""
    if isinstance(value, list):
        return [shorten(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


if __name__ == "__main__":
    if PATH.exists() and "--again" not in sys.argv:
        raise SystemExit(f"{PATH.name} is there: --again writes it anew, which gives up the numbers of before")
    lines = [
        f"{json.dumps(name)}: {json.dumps({what: shorten(value) for what, value in make().items()})}"
        for name, (make, _) in CASES.items()
    ]
    PATH.write_text(f'{{"untwist": "{__version__}", "cases": {{\n' + ",\n".join(lines) + "\n}}\n")
