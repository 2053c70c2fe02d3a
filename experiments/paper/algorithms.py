"""The algorithms of the paper's experiments, and those that it left out; each a value whose repr names it.

All use one thread. They learn from the twisted training rows alone; the paper's cheats, which are named so, also see
the clean labels and features of a fifth of the training rows, and train on the others. Nobody sees the test rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from experiments.peers import XGBOOST
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.arguments import Array
from untwist.audit.peers import HeldOut, fit_lightgbm, fit_xgboost
from untwist.boosting import algorithm as boosting
from untwist.boosting.engines.compiled import CompiledBooster, CompiledDataset
from untwist.boosting.engines.engine import Rows, Task, TreeGrowth
from untwist.boosting.forest import Forest, Tree
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.noise import menon, original_learned, taylor

__all__ = [
    "CAREFUL",
    "CHEATING",
    "PAPER",
    "AdaBoost",
    "Algorithm",
    "EngineTree",
    "Lesson",
    "LightGBM",
    "Menon",
    "OriginalLearned",
    "PILBoost",
    "Stopping",
    "TaylorSeries",
    "TrainedAlgorithm",
    "Untwist",
    "XGBoost",
]

#: The distribution of our own algorithms.
UNTWIST = ("untwist",)


class Lesson(NamedTuple):
    """Twisted training rows, the same rows before the twist (for the cheats), and the experiment's settings."""

    X: Array
    y: NDArray[np.int64]
    X_clean: Array
    y_clean: NDArray[np.int64]
    depth: int
    rounds: int
    seed: int

    def hold_out(self, clean: bool) -> tuple[Lesson, HeldOut]:
        """Set a stratified fifth of the rows aside, as they are twisted or clean; the rest is a lesson again."""
        every_row = np.arange(self.y.size)
        rows, held = train_test_split(every_row, test_size=0.2, stratify=self.y, random_state=self.seed)
        rest = self._replace(X=self.X[rows], y=self.y[rows], X_clean=self.X_clean[rows], y_clean=self.y_clean[rows])
        if clean:
            return rest, HeldOut(self.X_clean[held], self.y_clean[held])
        return rest, HeldOut(self.X[held], self.y[held])


@dataclass(frozen=True, eq=False)
class TrainedAlgorithm:
    """What an algorithm learned: labels 0 and 1 for rows, and what the tables tell about it.

    `rounds` are the trees that it kept; `alpha` is the one that it chose or was given.
    """

    predict: Callable[[Array], Any]
    rounds: int
    importances: Array
    alpha: float = np.nan


class Algorithm(Protocol):
    """Learns a lesson; `packages` are the distributions it may come from."""

    packages: ClassVar[tuple[str, ...]]

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""


@dataclass(frozen=True)
class PILBoost:
    """PILBoost as in the paper; `link` is "clipped" or "exact"."""

    alpha: float
    step_size: float
    link: str = "clipped"
    packages: ClassVar[tuple[str, ...]] = UNTWIST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        model = PILBoostClassifier(
            alpha=self.alpha,
            step_size=self.step_size,
            link=self.link,
            n_estimators=lesson.rounds,
            max_depth=lesson.depth,
            n_jobs=1,
            random_state=lesson.seed,
        ).fit(lesson.X, lesson.y)
        return TrainedAlgorithm(model.predict, model.n_iter_, model.feature_importances_, self.alpha)


@dataclass(frozen=True)
class Untwist:
    """Our own default, which chooses everything from the twisted rows."""

    packages: ClassVar[tuple[str, ...]] = UNTWIST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        model = UntwistClassifier(n_jobs=1, random_state=lesson.seed).fit(lesson.X, lesson.y)
        return TrainedAlgorithm(model.predict, model.model_.n_rounds, model.feature_importances_, model.model_.alpha)


@dataclass(frozen=True)
class Menon:
    """PILBoost with alpha by Menon's estimate of the noise, from the twisted rows alone."""

    step_size: float
    packages: ClassVar[tuple[str, ...]] = UNTWIST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        alpha = menon(lesson.X, lesson.y, random_state=lesson.seed).alpha
        return PILBoost(alpha, self.step_size).fit(lesson)


@dataclass(frozen=True)
class OriginalLearned:
    """PILBoost with alpha from the errors of XGBoost on clean rows: it cheats.

    The authors took the test set for these rows; here they are a fifth of the training rows, which PILBoost may then
    use in their twisted form.
    """

    step_size: float
    packages: ClassVar[tuple[str, ...]] = XGBOOST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        rest, held_out = lesson.hold_out(clean=True)
        alpha = original_learned(held_out.y, XGBoost().fit(rest).predict(held_out.X))
        return _fit_at(alpha, self.step_size, lesson)


@dataclass(frozen=True)
class TaylorSeries:
    """`OriginalLearned` by its first-order expansion, at the noise rate .1 that the authors fixed: it cheats."""

    step_size: float
    packages: ClassVar[tuple[str, ...]] = XGBOOST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        rest, held_out = lesson.hold_out(clean=True)
        alpha = taylor(held_out.y, XGBoost().fit(rest).predict(held_out.X))
        return _fit_at(alpha, self.step_size, lesson)


def _fit_at(alpha: float, step_size: float, lesson: Lesson) -> TrainedAlgorithm:
    """Fit PILBoost at an estimated alpha; an infinite one is a large one, and one near 0 is of no use."""
    usable = float(np.clip(alpha, -100.0, 100.0)) if abs(alpha) > 0.01 else 1.0
    return PILBoost(usable, step_size).fit(lesson)


#: The first round of boosting is the same whatever the link is.
LINK = ClippedLink(AlphaLoss(2.0))


class EngineTree:
    """A regression tree of the compiled engine as a weak learner, for tables that are binned once."""

    forest: Forest

    def __init__(self, data: CompiledDataset, depth: int) -> None:
        self.data = data
        self.depth = depth

    @classmethod
    def bin_table(cls, X: Array, labels: NDArray[Any], depth: int) -> EngineTree:
        """Return a weak learner for a table with labels 0 and 1."""
        rows = Rows(X, np.asarray(labels, dtype=np.uint32), np.ones(len(labels)))
        return cls(CompiledDataset(rows, n_jobs=1), depth)

    def __sklearn_clone__(self) -> EngineTree:
        return EngineTree(self.data, self.depth)

    def fit(self, X: Any, y: Array, sample_weight: Array) -> Self:  # noqa: ARG002  # The data holds both.
        """Boost one round from score 0, where all rows weigh as much as their own weight, with coefficient 1."""
        growth = TreeGrowth(max_depth=self.depth)
        booster = CompiledBooster(self.data, Task(LINK, 1.0, growth, by_edge=False, weight=sample_weight))
        booster.boost(1)
        forest = booster.ensemble().forest
        assert forest is not None  # The compiled engine grows forests.
        self.forest = forest
        return self

    def predict(self, X: Any) -> Array:
        """Give h(x)."""
        return self.forest.scores(X, n_jobs=1)

    @property
    def feature_importances_(self) -> Array:
        """Each column's share of the tree's gain."""
        return Tree(self.forest, 0).feature_importances_


@dataclass(frozen=True)
class AdaBoost:
    """The paper's AdaBoost, over the same regression trees as PILBoost."""

    packages: ClassVar[tuple[str, ...]] = UNTWIST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        tree = EngineTree.bin_table(lesson.X, lesson.y, lesson.depth)
        rounds = boosting.adaboost(lesson.X, 2.0 * lesson.y - 1.0, tree)
        steps: list[tuple[float, Any]] = [(one.leverage, one.hypothesis) for one in islice(rounds, lesson.rounds)]

        def predict(X: Array) -> Any:
            *_, scores = boosting.staged_scores(steps, X)
            return (scores > 0).astype(int)

        importances = [abs(leverage) * tree.feature_importances_ for leverage, tree in steps]
        return TrainedAlgorithm(predict, len(steps), _normalise(np.sum(importances, axis=0)))


class Stopping(NamedTuple):
    """How to stop early, on a fifth of the rows: as they are twisted, or, which is to cheat, `clean`."""

    learning_rate: float
    patience: int
    metric: str
    clean: bool = False


#: Stopping as the paper does, at XGBoost's own learning rate.
PAPER = Stopping(0.3, 10, "aucpr")
#: Stopping as the paper does, on clean rows.
CHEATING = PAPER._replace(clean=True)
#: Stopping as careful users do.
CAREFUL = Stopping(0.1, 50, "logloss")


@dataclass(frozen=True)
class XGBoost:
    """XGBoost at the experiment's depth, all else default: today's defaults, or with `exact` those of 2021."""

    exact: bool = False
    l2: float = 1.0
    stop: Stopping | None = None
    packages: ClassVar[tuple[str, ...]] = XGBOOST

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        settings: dict[str, Any] = {"tree_method": "exact", "base_score": 0.5} if self.exact else {}
        held_out = None
        if self.stop is not None:
            lesson, held_out = lesson.hold_out(self.stop.clean)
            settings |= {"learning_rate": self.stop.learning_rate, "eval_metric": self.stop.metric}
            settings["patience"] = self.stop.patience
        model = fit_xgboost(
            lesson.X,
            lesson.y,
            held_out,
            n_estimators=lesson.rounds,
            max_depth=lesson.depth,
            reg_lambda=self.l2,
            n_jobs=1,
            random_state=lesson.seed,
            **settings,
        )
        rounds = model.best_iteration + 1 if self.stop else lesson.rounds
        gain = model.get_booster()[:rounds].get_score(importance_type="gain")  # Only trees that predict count.
        importances = np.array([gain.get(f"f{column}", 0.0) for column in range(lesson.X.shape[1])])
        return TrainedAlgorithm(model.predict, rounds, _normalise(importances))


@dataclass(frozen=True)
class LightGBM:
    """LightGBM at the experiment's depth, stopped early."""

    stop: Stopping = CAREFUL
    packages: ClassVar[tuple[str, ...]] = ("lightgbm",)

    def fit(self, lesson: Lesson) -> TrainedAlgorithm:
        """Learn the lesson."""
        lesson, held_out = lesson.hold_out(self.stop.clean)
        model = fit_lightgbm(
            lesson.X,
            lesson.y,
            held_out,
            patience=self.stop.patience,
            n_estimators=lesson.rounds,
            max_depth=lesson.depth,
            num_leaves=2**lesson.depth,
            learning_rate=self.stop.learning_rate,
            importance_type="gain",
            n_jobs=1,
            random_state=lesson.seed,
        )
        rounds = int(model.best_iteration_ or lesson.rounds)
        return TrainedAlgorithm(model.predict, rounds, _normalise(model.feature_importances_.astype(np.float64)))


def _normalise(amounts: Array) -> Array:
    return amounts / amounts.sum() if amounts.sum() else amounts
