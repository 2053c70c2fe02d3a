"""Simulated worlds, whose true posteriors are known: rows, true classes, and how hard they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from experiments.datasets import Labels
from experiments.protocol import make_rng
from untwist.arguments import Array

__all__ = [
    "DESIGN_WORLDS",
    "FOUR_WORLDS",
    "JUDGING_WORLDS",
    "RANDOM_WORLDS",
    "TWO_WORLDS",
    "World",
    "flip",
    "simulate",
    "spread_evenly",
]

#: Worlds of two classes that the methods were designed by, and those that judge.
DESIGN_WORLDS = ("easy", "gauss", "sine", "rare")
JUDGING_WORLDS = ("hard", "step", "linear")
#: A world that judges, too, in which 3 % of the clean labels are random however clear the features. No data tells that
#: from noise, so that it is shown by itself.
RANDOM_WORLDS = ("clusters",)
TWO_WORLDS = (*DESIGN_WORLDS, *JUDGING_WORLDS, *RANDOM_WORLDS)
#: Worlds of four classes.
FOUR_WORLDS = ("four-easy", "four-hard")
#: The columns of every world; most say nothing.
COLUMNS = 10


class World(NamedTuple):
    """Rows with their true classes, and the true posterior of each class."""

    X: Array
    y: Labels
    posterior: Array


def simulate(world: str, n_rows: int, rng: np.random.Generator) -> World:
    """Draw rows of a world.

    Parameters
    ----------
    world : str
        Of two classes: `easy` and `hard` are logistic with much and little signal, `sine` is curved, `step` and
        `linear` are sure everywhere, `gauss` has two normal classes, `rare` one class of few rows, `clusters` eight
        clumps; `nothing` tells nothing. `four-easy`, `four-hard` and `four-nothing` have four classes.
    n_rows : int
        How many.
    rng : numpy.random.Generator
        What draws.

    Returns
    -------
    World
    """
    X = rng.normal(size=(n_rows, COLUMNS))
    if world.startswith("four-"):
        # Each class has a direction of its own among six columns, the same for all seeds.
        directions = make_rng("directions of four classes").normal(size=(6, 4))
        strength = {"four-easy": 3.0, "four-hard": 0.8, "four-nothing": 0.0}[world]
        odds = np.exp(strength * X[:, :6] @ directions)
        posterior = odds / odds.sum(axis=1, keepdims=True)
    elif world == "gauss":
        second = rng.random(n_rows) < 0.5
        X[:, :4] += np.where(second, 0.64, -0.64)[:, None]
        eta = expit(2 * 0.64 * X[:, :4].sum(axis=1))
        return World(X, second.astype(np.int64), np.column_stack([1.0 - eta, eta]))
    elif world == "clusters":
        clump = rng.integers(8, size=n_rows)
        X += 1.3 * make_rng("centres of clusters").normal(size=(8, COLUMNS))[clump]
        eta = np.where(clump % 2 == 0, 0.97, 0.03)
        posterior = np.column_stack([1.0 - eta, eta])
    else:
        eta = _find_posterior(world, X)
        posterior = np.column_stack([1.0 - eta, eta])
    return World(X, flip(np.arange(n_rows), posterior, rng), posterior)


def _find_posterior(world: str, X: Array) -> Array:
    """Return the posterior of the second class where it is a formula of the columns."""
    signal = X[:, :3] @ np.array([0.8, 0.5, 0.4])
    formulas: dict[str, Array] = {
        "easy": expit(6.0 * signal),
        "hard": expit(1.5 * signal),
        "sine": expit(4.0 * np.sin(2.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]),
        "step": (X[:, 0] > 0).astype(np.float64),
        "linear": (X[:, :5].sum(axis=1) > 0).astype(np.float64),
        "rare": expit(3.0 * signal - 4.0),
        "nothing": np.full(len(X), 0.5),
    }
    return formulas[world]


def spread_evenly(rates: Array, n_classes: int) -> Array:
    """Return a matrix for each rate, whose wrong labels are any other one equally often.

    Parameters
    ----------
    rates : array of shape (n_rates,)
        Shares of wrong labels.
    n_classes : int
        How many classes there are.

    Returns
    -------
    array of shape (n_rates, n_classes, n_classes)
    """
    correct = np.eye(n_classes)
    wrong = rates[:, None, None] / (n_classes - 1)
    return np.asarray((1.0 - rates)[:, None, None] * correct + wrong * (1.0 - correct))


def flip(y: Labels, matrices: Array, rng: np.random.Generator) -> Labels:
    """Draw labels from true classes.

    Parameters
    ----------
    y : array of int
        The true classes.
    matrices : array of shape (n_classes, n_classes) or (n_rows, n_classes, n_classes)
        Row: true class, column: label; one for all rows, or one for each.
    rng : numpy.random.Generator
        What draws.

    Returns
    -------
    array of int
    """
    rows = matrices[y] if matrices.ndim == 2 else matrices[np.arange(len(y)), y]
    cumulated = np.cumsum(rows, axis=1)
    return np.asarray(np.sum(cumulated[:, :-1] <= rng.random(len(y))[:, None], axis=1), dtype=np.int64)
