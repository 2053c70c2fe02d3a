"""The reference engine: the loop of `untwist.boosting.algorithm` over any regressor with sample weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags

from untwist.arguments import Array
from untwist.boosting.algorithm import Hypothesis, Round, ValidationLoss, WeakLearner, pilboost
from untwist.boosting.engines.compiled import CompiledDataset
from untwist.boosting.engines.engine import Engine, EngineOptions, Rows, Task
from untwist.boosting.ensemble import Ensemble, is_stale
from untwist.data.encoding import AcceptedTables


class ReferenceEngine(Engine):
    """Any weak learner, by default regression trees of scikit-learn."""

    name: ClassVar[str] = "reference"
    grows_forests: ClassVar[bool] = False
    known_settings: ClassVar[frozenset[str]] = frozenset({"min_samples_leaf"})

    def accepted_tables(self, estimator: Any, tree_method: str) -> AcceptedTables:
        """Return the tables that the weak learner takes."""
        del tree_method
        learner = DecisionTreeRegressor() if estimator is None else estimator
        tags = get_tags(learner).input_tags if hasattr(learner, "__sklearn_tags__") else None
        return AcceptedTables(
            missing_values=tags is not None and tags.allow_nan,
            sparse=tags is not None and tags.sparse,
            categories=False,
            blocks=False,
            # Trees of scikit-learn work on single precision anyway.
            dtypes=(np.float32,) if estimator is None else (np.float64,),
        )

    def make_dataset(self, rows: Rows, settings: EngineOptions) -> ReferenceDataset:
        """Keep the rows as they are."""
        return ReferenceDataset(rows, settings)

    def make_booster(self, dataset: ReferenceDataset, task: Task) -> ReferenceBooster:
        """Return a booster over the weak learner."""
        return ReferenceBooster(dataset, task)


@dataclass(frozen=True, eq=False)
class ReferenceDataset:
    """Rows as they are, and the settings of the weak learner."""

    rows: Rows
    settings: EngineOptions

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each row's codes as the compiled engine bins it."""
        return self._binned.hashes()

    @cached_property
    def _binned(self) -> CompiledDataset:
        return CompiledDataset(self.rows, max_bins=self.settings.max_bins, n_jobs=self.settings.n_jobs)

    def make_weak_learner(self) -> WeakLearner:
        """Return the weak learner, not fitted."""
        if self.settings.estimator is not None:
            return self.settings.estimator  # type: ignore[no-any-return]  # The settings have checked it.
        growth = self.settings.growth
        return DecisionTreeRegressor(  # type: ignore[no-any-return]  # scikit-learn has no types.
            max_depth=growth.max_depth,
            max_leaf_nodes=growth.max_leaf_nodes,
            min_samples_leaf=growth.min_samples_leaf,
            min_weight_fraction_leaf=growth.min_weight_fraction_leaf,
        )


class ReferenceBooster:
    """A run of the loop."""

    def __init__(self, dataset: ReferenceDataset, task: Task) -> None:
        X, labels = dataset.rows.X, dataset.rows.labels
        weight = np.ones(len(labels)) if task.weight is None else task.weight
        start = np.zeros(len(labels)) if task.start is None else task.start
        signs = np.where(labels == task.positive_class, 1.0, -1.0)
        training = np.flatnonzero(weight)
        self._start = start
        self._last_round: Round | None = None
        self._signs = signs
        self._training = training
        self._rounds = pilboost(
            X[training],
            signs[training],
            dataset.make_weak_learner(),
            task.link,
            task.step_size,
            sample_weight=weight[training],
            by_edge=task.by_edge,
            start=start[training],
            rng=np.random.default_rng([task.growth.seed, task.stream, task.first_round]),
        )
        self._kept: list[tuple[Hypothesis, float, float]] = []
        self._validation: ValidationLoss | None = None
        if task.validation_weight is not None:
            watched = np.flatnonzero(task.validation_weight)
            self._watched = watched
            self._validation = ValidationLoss(
                X[watched],
                signs[watched],
                task.link,
                task.validation_weight[watched],
                start=start[watched],
                posterior_floor=task.posterior_floor,
            )

    def boost(self, n_rounds: int, patience: int = 0) -> int:
        """Make up to `n_rounds` more rounds and return how many there are now."""
        for _ in range(n_rounds):
            if is_stale(self.losses(), patience):
                break
            one = next(self._rounds, None)
            if one is None:
                break
            self._kept.append((one.hypothesis, one.leverage, one.edge))
            self._last_round = one
            if self._validation is not None:
                self._validation(one)
        return len(self._kept)

    def last_edge(self) -> float:
        """Return the edge of the last round."""
        return self._kept[-1][2]

    def losses(self) -> Array:
        """Return the log-loss of the validation rows after each round."""
        return np.array([] if self._validation is None else self._validation.losses)

    def errors(self) -> Array:
        """Return the error of the validation rows after each round."""
        return np.array([] if self._validation is None else self._validation.errors)

    def current_scores(self) -> Array:
        """Return the score of every row that trains or is validated after the rounds so far."""
        scores = self._start.copy()
        if self._last_round is not None:
            scores[self._training] = self._signs[self._training] * self._last_round.margins
        if self._validation is not None:
            scores[self._watched] = self._signs[self._watched] * self._validation.margins
        return scores

    def ensemble(self) -> Ensemble:
        """Return the hypotheses so far."""
        return Ensemble(
            hypotheses=[hypothesis for hypothesis, _, _ in self._kept],
            leverages=np.array([leverage for _, leverage, _ in self._kept]),
            edges=np.array([edge for _, _, edge in self._kept]),
            losses=self.losses(),
            errors=self.errors(),
        )
