"""Support tickets of four classes, one of which is confused with a neighbour; and noise that is known nearly."""

from dataclasses import replace

import numpy as np
import pandas as pd

from untwist.noise.several_classes import SeveralClassesNoise

TICKETS = np.array(["account", "billing", "bug", "feature"])
SHARES = np.array([0.2, 0.3, 0.3, 0.2])


def make_tickets(n=4000, seed=0, *, wrong=0.095):
    """A table, labels of which the share `wrong` says bug where billing is the truth, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, n, p=SHARES)
    centres = rng.normal(size=(4, 8))
    X = pd.DataFrame(rng.normal(size=(n, 8)) + 1.2 * centres[truth], columns=[f"topic {i}" for i in range(8)])
    X["team"] = rng.choice(["north", "south", "west"], n)
    flipped = (truth == 1) & (rng.random(n) < wrong / SHARES[1])
    return X, TICKETS[np.where(flipped, 2, truth)], TICKETS[truth]


def measure_matrix(given, truth):
    """The transition matrix that labels show beside the truth."""
    names = np.unique(truth)
    return np.array([[np.mean(given[truth == one] == other) for other in names] for one in names])


def spread_noise(n_classes, rate):
    """The matrix of noise that is the same in every class."""
    return (1 - rate) * np.eye(n_classes) + rate * (1 - np.eye(n_classes)) / (n_classes - 1)


def make_components(matrix):
    """Noise of this matrix, a little more and a little less of it."""
    n_classes = len(matrix)
    matrices = np.array([np.eye(n_classes) + scale * (matrix - np.eye(n_classes)) for scale in (0.8, 1.0, 1.15)])
    weights = np.array([0.25, 0.5, 0.25])
    class_shares = 1.0 - np.diag(matrix)
    return replace(
        SeveralClassesNoise.from_matrix(matrix),
        weights=weights,
        matrices=matrices,
        slopes=np.ones((3, n_classes)),
        offsets=np.zeros((3, n_classes)),
        least=0.005,
        evidence=20.0,
        class_intervals=np.column_stack([0.8 * class_shares, 1.15 * class_shares]),
    )


def judge_by(audit, noise):
    """The audit, had it found this noise."""
    labels = audit.label_indices
    return replace(
        audit,
        noise=noise,
        predicted=audit.classes[noise.clean(audit.posterior).argmax(axis=1)],
        wrong=noise.probability_wrong(audit.posterior, labels),
        noise_rate=noise.share_wrong(audit.posterior, labels, audit.weight),
        rate_by_label={
            label: noise.share_wrong(audit.posterior, labels, np.where(audit.given == label, audit.weight, 0.0))
            for label in audit.classes.tolist()
        },
    )
