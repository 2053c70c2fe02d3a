"""A fit whose settings are all given: one run for each class, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.algorithm import Round
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.runs import BoosterRun, advance
from untwist.model import FittedModel
from untwist.noise.paper import MenonEstimate
from untwist.noise.untwisting import Untwisting
from untwist.settings import Settings
from untwist.training_data import TrainingData

__all__ = ["Fit", "boost_given_settings", "decide_alpha", "replay_rounds"]

#: The compiled engine rounds boosting weights to this share of the heaviest row.
WEIGHT_ROUNDING = 2.0**-17


@dataclass(frozen=True, eq=False)
class Fit:
    """The model that a fit made, and Ctrl-C if that ended it early."""

    model: FittedModel
    interrupt: KeyboardInterrupt | None = None


def decide_alpha(data: TrainingData) -> tuple[tuple[float, ...], MenonEstimate | None]:
    """Return the alphas to try, and the estimate of `menon` where that is to say it."""
    if data.settings.alphas is not None:
        return data.settings.alphas, None
    estimate = data.estimate_menon()
    return (estimate.alpha,), estimate


def boost_given_settings(
    data: TrainingData,
    previous: FittedModel | None = None,
    present: Callable[[FittedModel], Any] = lambda model: model,
) -> Fit:
    """Boost with given settings.

    Parameters
    ----------
    data : TrainingData
        The rows, and the settings that they were prepared for.
    previous : FittedModel or None
        The model whose rounds the fit goes on from.
    present : function
        Makes what callbacks are shown of a model of the rounds so far.

    Returns
    -------
    Fit

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C came before there was a round of every class.
    """
    settings = data.settings
    (alpha,), noise = decide_alpha(data)
    link = settings.make_link(alpha)
    step_size = settings.choose_step(link)
    if previous is not None and repr(link) != repr(previous.link):
        raise ValueError(f"a warm start goes on with the link of the last fit, {previous.link!r}, got {link!r}")
    n_rounds_before = 0 if previous is None else previous.n_rounds
    assert settings.n_rounds is not None  # Only a search leaves them open.
    if n_rounds_before > settings.n_rounds:
        raise ValueError(
            f"n_estimators must be at least the {n_rounds_before} rounds of the last fit, got {settings.n_rounds}"
        )
    earlier = _list_earlier(previous)
    runs = []
    for index in range(len(data.positive_classes)):
        task = data.make_task(link, step_size, index)
        losses = np.zeros(0)
        if earlier is not None:
            ensemble = earlier[index]
            start = ensemble.scores(data.rows.X, settings.n_jobs)
            task = replace(task, start=start, first_round=len(ensemble))
            if len(ensemble.losses) == len(ensemble):  # Otherwise early stopping has cut rounds off.
                losses = ensemble.losses
        runs.append(BoosterRun(settings.engine.make_booster(data.dataset, task), losses))

    held_out_rows = np.flatnonzero(data.held_out)
    untwisting = None if settings.known_rates is None else Untwisting.from_rates(settings.known_rates)

    def make_model(ensembles: list[Ensemble]) -> FittedModel:
        return FittedModel(
            classes=data.classes,
            encoder=data.encoder,
            ensembles=tuple(ensembles),
            link=link,
            alpha=alpha,
            step_size=step_size,
            class_weights=data.class_weights,
            seed=data.growth.seed,
            n_rows=data.n_rows,
            total_weight=data.total_weight,
            noise=noise if untwisting is None else untwisting,
            untwisting=untwisting,
            validation_rows=held_out_rows,
            validation_shares=data.held_out[held_out_rows],
        )

    def list_ensembles() -> list[Ensemble]:
        ensembles = [run.ensemble() for run in runs]
        if earlier is None:
            return ensembles
        return [before.append(after) for before, after in zip(earlier, ensembles, strict=True)]

    end = advance(
        runs,
        settings.n_rounds - n_rounds_before,
        first_round=n_rounds_before,
        patience=settings.patience,
        callbacks=settings.callbacks,
        verbose=settings.verbose if data.workers.rank == 0 else 0,
        workers=data.workers,
        snapshot=lambda: present(make_model(list_ensembles())),
    )
    ensembles = list_ensembles()
    if settings.patience:
        ensembles = [one.keep_best() for one in ensembles]
    if end.interrupt is not None and not all(map(len, ensembles)):
        raise end.interrupt
    return Fit(make_model(ensembles), end.interrupt)


def _list_earlier(previous: FittedModel | None) -> list[Ensemble] | None:
    """Return the rounds to go on from. What folds set aside tells nothing of the rounds to come."""
    if previous is None:
        return None
    if previous.choice is None:
        return list(previous.ensembles)
    return [ensemble.forget_validation() for ensemble in previous.ensembles]


def replay_rounds(
    model: FittedModel, settings: Settings, X: Any, labels: NDArray[np.uint32], weight: Array
) -> tuple[Iterator[Round], Array]:
    """Return the rounds of a fit again, from its hypotheses and its data, and the weights of the rows that trained."""
    if len(model.ensembles) > 1:
        raise ValueError("a certificate is for two classes")
    if not settings.by_edge:
        raise ValueError("a certificate is for the paper's steps: learning_rate=None and nothing chosen by folds")
    if settings.growth.subsample != 1.0 and model.ensembles[0].forest is not None:
        raise ValueError("a certificate is for rounds that see all rows: subsample=1")
    if not X.shape[0] == len(labels) == model.n_rows:
        raise ValueError(
            f"X and y must be the {model.n_rows} rows that fit was given, got {X.shape[0]} and {len(labels)}"
        )
    if settings.class_weight is not None:
        weight = weight * model.class_weights[labels]
    weight[model.validation_rows] *= 1.0 - model.validation_shares
    rows = np.flatnonzero(weight)
    signs = np.where(labels[rows] == 1, 1.0, -1.0)
    return _replay(model, X[rows], signs, weight[rows]), weight[rows]


def _replay(model: FittedModel, X: Any, signs: Array, weight: Array) -> Iterator[Round]:
    margins = np.zeros(len(signs))
    rounding = WEIGHT_ROUNDING * len(weight) * weight.max() / weight.sum()
    ensemble = model.ensembles[0]
    for index, (leverage, hypothesis) in enumerate(ensemble.rounds()):
        weights, agreement = model.link.weights(margins), signs * hypothesis.predict(X)
        edge = float(np.average(weights * agreement, weights=weight))
        if not np.isclose(edge, ensemble.edges[index], rtol=1e-3, atol=1e-6 + rounding):
            raise ValueError("X, y and sample_weight must be the data that fit was given: the edges differ")
        margins = margins + leverage * agreement
        yield Round(index, hypothesis, ensemble.edges[index], leverage, weights, agreement, margins)
