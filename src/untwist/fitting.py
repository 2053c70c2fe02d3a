"""A fit whose settings are all given: one run for each class, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist.arguments import Array
from untwist.boosting.algorithm import Round
from untwist.boosting.engines.engine import Team
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import count_threads
from untwist.boosting.measuring import Answers, MeasuredRows, Measurer
from untwist.boosting.runs import BoosterRun, advance
from untwist.data.batches import Encoded
from untwist.model import GIVEN_SCORES, FittedModel
from untwist.noise.paper import MenonEstimate, menon
from untwist.noise.posterior import Posterior, turns_labels_over
from untwist.progress import find_display
from untwist.settings import Settings
from untwist.theory.links import Link
from untwist.training_data import TrainingData

__all__ = [
    "Fit",
    "Replay",
    "boost_given_settings",
    "decide_alpha",
    "make_team",
    "replay_rounds",
]

#: Up to this many rows, boosters work side by side, each on its share of the threads; beyond, one after the other.
MOST_ROWS_SIDE_BY_SIDE = 200_000

#: The compiled engine rounds boosting weights to this share of the heaviest row.
WEIGHT_ROUNDING = 2.0**-17

#: An edge is taken for the one of the fit if it differs by no more than this share of it.
EDGE_TOLERANCE = 1e-3

#: Edges near 0 may differ by this much, whatever their size.
LEAST_EDGE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Fit:
    """The model that a fit made, and Ctrl-C if that ended it early."""

    model: FittedModel
    interrupt: KeyboardInterrupt | None = None


@dataclass(frozen=True, eq=False)
class Replay:
    """The rounds of a fit again, the margins that they began at, and the weights of the rows that trained."""

    rounds: Iterator[Round]
    start: Array
    sample_weight: Array


def decide_alpha(data: TrainingData) -> tuple[float, MenonEstimate | None]:
    """Return the alpha of the settings, or the one that `menon` estimates from the data, and the estimate."""
    if data.settings.alphas is not None:
        return data.settings.alphas[0], None
    if isinstance(data.rows.X, Encoded):
        raise ValueError('alpha="menon" needs the table in memory, got Batches: give a number')
    rows = np.flatnonzero(data.rows.weight)
    table = data.rows.X[rows].toarray() if sparse.issparse(data.rows.X) else data.rows.X[rows]
    weight = data.rows.weight[rows]
    estimate = menon(table, data.rows.labels[rows], sample_weight=weight, random_state=data.growth.seed)
    return estimate.alpha, estimate


def make_team(data: TrainingData) -> Team | None:
    """Return threads that boost boosters side by side; None where they go one after the other.

    Parameters
    ----------
    data : TrainingData
        The rows. Where they are many, a single tree keeps all threads busy, and every booster at work would take much
        memory. The workers of a distributed fit must boost in the same order.

    Returns
    -------
    Team or None
    """
    n_threads = count_threads(data.settings.engine_options.n_jobs)
    if n_threads == 1 or data.workers.size > 1 or data.n_rows > MOST_ROWS_SIDE_BY_SIDE:
        return None
    return data.settings.engine.make_team(n_threads)


def boost_given_settings(
    data: TrainingData,
    previous: FittedModel | None = None,
    wrap_model: Callable[[FittedModel], Any] = lambda model: model,
) -> Fit:
    """Boost with given settings.

    Parameters
    ----------
    data : TrainingData
        The rows, and the settings that they were prepared for.
    previous : FittedModel or None
        The model whose rounds the fit goes on from.
    wrap_model : function
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
    alpha, menon_estimate = decide_alpha(data)
    link = settings.make_link(alpha)
    step_size = settings.choose_step(link)
    n_rounds_left = _count_rounds_left(data, link, previous)
    earlier = None if previous is None else list(previous.ensembles)
    runs = _start_runs(data, link, step_size, earlier)

    measurer = _make_measurer(
        data, lambda: _make_model(data, alpha, menon_estimate, link, step_size, _join_rounds(earlier, runs)).posterior
    )
    judge: Callable[[], bool] | None = None
    if measurer is not None:
        judge = lambda: measurer.measure([run.booster.current_scores() for run in runs])  # noqa: E731
        if previous is not None:
            _measure_earlier_rounds(measurer, data, link, previous)
        if measurer.has_stalled:
            n_rounds_left = 0

    def make_model(ensembles: list[Ensemble]) -> FittedModel:
        model = _make_model(data, alpha, menon_estimate, link, step_size, ensembles)
        return model if measurer is None else replace(model, curves=measurer.list_curves())

    stops_by_metric = settings.metric is not None

    started_at = time.perf_counter()

    def watch() -> None:
        display = find_display()
        done = max(run.count for run in runs)
        if display is not None and done:
            seconds = time.perf_counter() - started_at
            display.show(f"round {done} of {n_rounds_left}", seconds / done * (n_rounds_left - done))

    end = advance(
        runs,
        n_rounds_left,
        first_round=0 if previous is None else previous.n_rounds,
        patience=0 if stops_by_metric else settings.patience,
        callbacks=settings.callbacks,
        verbose=settings.verbose if data.workers.rank == 0 else 0,
        workers=data.workers,
        snapshot=lambda: wrap_model(make_model(_join_rounds(earlier, runs))),
        watch=watch,
        judge=judge,
        team=make_team(data) if len(runs) > 1 else None,
    )
    ensembles = _join_rounds(earlier, runs)
    if settings.patience and not stops_by_metric:
        ensembles = [one.keep_best() for one in ensembles]
    if settings.patience and measurer is not None and measurer.best_round is not None:
        ensembles = _keep_rounds(ensembles, measurer.best_round, earlier)
    if end.interrupt is not None and not all(map(len, ensembles)):
        raise end.interrupt
    return Fit(make_model(ensembles), end.interrupt)


def _keep_rounds(ensembles: list[Ensemble], count: int, earlier: list[Ensemble] | None) -> list[Ensemble]:
    """Return what each class had after a count of rounds; classes may have ended earlier ones at different rounds."""
    n_earlier = [0] * len(ensembles) if earlier is None else [len(one) for one in earlier]
    n_later = max(0, count - max(n_earlier))
    kept = [min(count, before) + n_later for before in n_earlier]
    return [one.keep_first(min(own, len(one))) for one, own in zip(ensembles, kept, strict=True)]


def _make_measurer(data: TrainingData, make_posterior: Callable[[], Posterior]) -> Measurer | None:
    """Return what measures validation rows after each round, where there are such and a metric."""
    settings = data.settings
    if settings.metric is None or data.validation.weight is None:
        return None
    if data.workers.size > 1:
        raise ValueError("eval_metric is for one machine: each worker knows its own rows only")
    return Measurer(
        metric=settings.metric,
        answers=Answers(data.classes, make_posterior()),
        rows=MeasuredRows.choose(data.rows.labels, data.validation.weight),
        patience=settings.patience,
    )


def _measure_earlier_rounds(measurer: Measurer, data: TrainingData, link: Link, previous: FittedModel) -> None:
    """Measure the rounds that a fit goes on from as if it had made them, where that can be judged."""
    if _may_have_seen_validation(data, previous):
        measurer.not_measured = previous.n_rounds
        return
    X, positions = data.rows.X, measurer.rows.positions
    in_blocks = isinstance(X, Encoded)
    given = [_find_given_scores(data, link, index) for index in range(len(previous.ensembles))]
    for scores in previous.staged_scores(X if in_blocks else X[positions]):
        chosen = scores[positions] if in_blocks else scores
        columns = chosen.reshape(len(positions), -1).T
        measurer.measure_rows(
            [one if own is None else one + own[positions] for one, own in zip(columns, given, strict=True)]
        )


def _may_have_seen_validation(data: TrainingData, previous: FittedModel) -> bool:
    """Tell whether an earlier model may have trained on rows that are held out for validation now."""
    held_out = np.flatnonzero(data.validation.share)
    holds_out_the_same = np.array_equal(held_out, previous.validation_rows) and np.array_equal(
        data.validation.share[held_out], previous.validation_shares
    )
    return not (data.validation.was_given or holds_out_the_same)


def _count_rounds_left(data: TrainingData, link: Link, previous: FittedModel | None) -> int:
    """Return the rounds to make, after those of the model that the fit goes on from."""
    settings = data.settings
    assert settings.n_rounds is not None  # Only a search leaves them open.
    if previous is None:
        return settings.n_rounds
    if repr(link) != repr(previous.link):
        raise ValueError(f"a warm start goes on with the link of the last fit, {previous.link!r}, got {link!r}")
    _check_same_start(data, previous)
    if previous.init not in (GIVEN_SCORES, settings.init):
        raise ValueError(f"a warm start goes on with init of the last fit, {previous.init!r}, got {settings.init!r}")
    if previous.n_rounds > settings.n_rounds:
        raise ValueError(
            f"n_estimators must be at least the {previous.n_rounds} rounds of the last fit, got {settings.n_rounds}"
        )
    return settings.n_rounds - previous.n_rounds


def _check_same_start(data: TrainingData, previous: FittedModel) -> None:
    """Raise an error where only one of the two fits was given `init_score`."""
    is_given = data.init_scores is not None
    if previous.init == GIVEN_SCORES and not is_given:
        raise ValueError(
            "a warm start goes on with init_score of the last fit, got none: give the same init_score again"
        )
    if is_given and previous.init != GIVEN_SCORES:
        raise ValueError("a warm start goes on with init_score of the last fit, which had none: leave out init_score")


def _find_given_scores(data: TrainingData, link: Link, class_index: int) -> Array | None:
    """Return the score of each row that a booster was told to begin at, None where it was told nothing.

    What is given is a score of the clean posterior, and what is boosted one of the twisted posterior.
    """
    if data.init_scores is None:
        return None
    given = data.init_scores[:, class_index]
    return -given if turns_labels_over(link) else given


def _start_runs(data: TrainingData, link: Link, step_size: float, earlier: list[Ensemble] | None) -> list[BoosterRun]:
    """Return a run for each class, before its first round."""
    runs = []
    starts = data.find_starts(link, data.weight)
    for index, start in enumerate(starts):
        task = data.make_task(link, step_size, index)
        losses = np.zeros(0)
        if earlier is not None:
            ensemble = earlier[index]
            task = replace(
                task, start=ensemble.scores(data.rows.X, data.settings.engine_options.n_jobs), first_round=len(ensemble)
            )
            if len(ensemble.losses) == len(ensemble):  # Otherwise early stopping has cut rounds off.
                losses = ensemble.losses
        elif start:
            task = replace(task, start=np.full(len(data.rows.labels), start))
        given = _find_given_scores(data, link, index)
        if given is not None:
            task = replace(task, start=given if task.start is None else task.start + given)
        runs.append(BoosterRun(data.settings.engine.make_booster(data.dataset_of(0), task), losses, start))
    return runs


def _join_rounds(earlier: list[Ensemble] | None, runs: list[BoosterRun]) -> list[Ensemble]:
    """Return what all rounds so far leave behind."""
    ensembles = [run.ensemble() for run in runs]
    if earlier is None:
        return ensembles
    return [before.append(after) for before, after in zip(earlier, ensembles, strict=True)]


def _make_model(
    data: TrainingData,
    alpha: float,
    estimate: MenonEstimate | None,
    link: Link,
    step_size: float,
    ensembles: list[Ensemble],
) -> FittedModel:
    """Return the fitted model of these ensembles, with the noise that `menon` estimated, if it did."""
    validation_rows = np.flatnonzero(data.validation.share)
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
        n_effective_rows=data.n_effective_rows,
        menon=estimate,
        validation_rows=validation_rows,
        validation_shares=data.validation.share[validation_rows],
        init=data.settings.init if data.init_scores is None else GIVEN_SCORES,
    )


def replay_rounds(
    model: FittedModel, settings: Settings, X: Any, labels: NDArray[np.uint32], sample_weight: Array
) -> Replay:
    """Return the rounds of a fit again, from its hypotheses and its data."""
    if len(model.classes) > 2:
        raise ValueError("a certificate is for two classes")
    if not settings.by_edge:
        raise ValueError("a certificate is for the paper's steps: learning_rate=None")
    if model.encoder.schema.numbers:
        raise ValueError(
            "a certificate is for rows that predict as they trained, but columns of many categories are coded by the "
            "labels of other rows in training: leave these columns out"
        )
    if settings.link_name == "logit":
        raise ValueError('a certificate is for margin losses that are convex: link="clipped" or "exact"')
    if settings.growth.subsample != 1.0 and model.ensembles[0].forest is not None:
        raise ValueError("a certificate is for rounds that see all rows: subsample=1")
    if not X.shape[0] == len(labels) == model.n_rows:
        raise ValueError(
            f"X and y must be the {model.n_rows} rows that fit was given, got {X.shape[0]} and {len(labels)}"
        )
    training_weight = np.array(sample_weight, dtype=np.float64)
    if settings.class_weight is not None:
        training_weight *= model.class_weights[labels]
    training_weight[model.validation_rows] *= 1.0 - model.validation_shares
    rows = np.flatnonzero(training_weight)
    signs = np.where(labels[rows] == 1, 1.0, -1.0)
    start = model.ensembles[0].start * signs
    return Replay(_replay(model, X[rows], signs, start, training_weight[rows]), start, training_weight[rows])


def _replay(model: FittedModel, X: Any, signs: Array, start: Array, sample_weight: Array) -> Iterator[Round]:
    margins = start
    ensemble = model.ensembles[0]
    rounding = WEIGHT_ROUNDING * len(sample_weight) * sample_weight.max() / sample_weight.sum()
    for index, (leverage, hypothesis) in enumerate(ensemble.iterate_rounds()):
        boosting_weight = model.link.weights(margins)
        agreement = signs * hypothesis.predict(X)
        edge = float(np.average(boosting_weight * agreement, weights=sample_weight))
        if not np.isclose(edge, ensemble.edges[index], rtol=EDGE_TOLERANCE, atol=LEAST_EDGE_TOLERANCE + rounding):
            raise ValueError(
                "X, y and sample_weight must be the data that fit was given, without init_score: the edges differ"
            )
        margins = margins + leverage * agreement
        yield Round(index, hypothesis, ensemble.edges[index], leverage, boosting_weight, agreement, margins)
