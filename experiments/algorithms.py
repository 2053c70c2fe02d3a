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

from experiments.methods import XGBOOST
from untwist.arguments import Array
from untwist.boosting import algorithm as boosting
from untwist.boosting import forest as trees
from untwist.classifier import PILBoostClassifier
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
    "Fitted",
    "Lesson",
    "LightGBM",
    "Menon",
    "OriginalLearned",
    "PILBoost",
    "Stopping",
    "TaylorSeries",
    "Untwist",
    "XGBoost",
]


OURS = ("untwist",)


class Lesson(NamedTuple):
    """Twisted training rows, the same rows before the twist (for the cheats), and the experiment's settings."""

    X: Array
    y: NDArray[np.int64]
    X_clean: Array
    y_clean: NDArray[np.int64]
    depth: int
    rounds: int
    seed: int

    def held_out(self, clean: bool) -> tuple[Lesson, Array, NDArray[np.int64]]:
        """The lesson without a stratified fifth of its rows, and that fifth: twisted, or clean."""
        rows, held = train_test_split(np.arange(self.y.size), test_size=0.2, stratify=self.y, random_state=self.seed)
        rest = self._replace(X=self.X[rows], y=self.y[rows], X_clean=self.X_clean[rows], y_clean=self.y_clean[rows])
        return (rest, self.X_clean[held], self.y_clean[held]) if clean else (rest, self.X[held], self.y[held])


@dataclass(frozen=True)
class Fitted:
    """What an algorithm learned: labels 0 and 1 for rows, and what the tables tell about it."""

    predict: Callable[[Array], Any]
    rounds: int  # trees it kept
    importances: Array
    alpha: float = np.nan  # the one it chose or was given


class Algorithm(Protocol):
    """Learns a lesson; `packages` are the distributions it may come from."""

    packages: ClassVar[tuple[str, ...]]

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""


@dataclass(frozen=True)
class PILBoost:
    """PILBoost as in the paper; `link` is "clipped" or "exact"."""

    alpha: float
    step_size: float
    link: str = "clipped"
    packages: ClassVar[tuple[str, ...]] = OURS

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        model = PILBoostClassifier(
            self.alpha,
            step_size=self.step_size,
            link=self.link,
            n_estimators=lesson.rounds,
            max_depth=lesson.depth,
            n_jobs=1,
            random_state=lesson.seed,
        ).fit(lesson.X, lesson.y)
        return Fitted(model.predict, model.n_iter_, model.feature_importances_, self.alpha)


@dataclass(frozen=True)
class Untwist:
    """Our own default, which chooses everything from the twisted rows."""

    packages: ClassVar[tuple[str, ...]] = OURS

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        model = PILBoostClassifier(n_jobs=1, random_state=lesson.seed).fit(lesson.X, lesson.y)
        return Fitted(model.predict, model.n_iter_, model.feature_importances_, model.alpha_)


@dataclass(frozen=True)
class Menon:
    """PILBoost with alpha by Menon's estimate of the noise, from the twisted rows alone."""

    step_size: float
    packages: ClassVar[tuple[str, ...]] = OURS

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
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

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        rest, X_clean, y_clean = lesson.held_out(clean=True)
        alpha = original_learned(y_clean, XGBoost().fit(rest).predict(X_clean))
        return _at(alpha, self.step_size, lesson)


@dataclass(frozen=True)
class TaylorSeries:
    """`OriginalLearned` by its first-order expansion, at the noise rate .1 that the authors fixed: it cheats."""

    step_size: float
    packages: ClassVar[tuple[str, ...]] = XGBOOST

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        rest, X_clean, y_clean = lesson.held_out(clean=True)
        return _at(taylor(y_clean, XGBoost().fit(rest).predict(X_clean)), self.step_size, lesson)


def _at(alpha: float, step_size: float, lesson: Lesson) -> Fitted:
    """PILBoost at an estimated alpha; an infinite one is a large one, and one near 0 is of no use."""
    return PILBoost(float(np.clip(alpha, -100.0, 100.0)) if abs(alpha) > 0.01 else 1.0, step_size).fit(lesson)


class EngineTree:
    """A regression tree of the compiled engine as a weak learner, for tables that are binned once."""

    def __init__(self, data: Any, depth: int, columns: int) -> None:
        self.data, self.depth, self.columns = data, depth, columns

    def __sklearn_clone__(self) -> EngineTree:
        return EngineTree(self.data, self.depth, self.columns)

    def fit(self, X: Any, y: Array, sample_weight: Array) -> Self:  # noqa: ARG002  # both are in the data
        """One round from score 0, where all rows weigh as much as their own weight, with coefficient 1."""
        growth = trees.Growth(max_depth=self.depth)
        engine = trees.booster(self.data, LINK, 1.0, growth, by_edge=False, weight=sample_weight)
        engine.boost(1)
        self.forest = trees.grown(engine, self.columns)
        return self

    def predict(self, X: Any) -> Array:
        """h(x)."""
        return self.forest.scores(X, n_jobs=1)

    @property
    def feature_importances_(self) -> Array:
        """Each column's share of the tree's gain."""
        return trees.Tree(self.forest, 0).feature_importances_


LINK = ClippedLink(AlphaLoss(2.0))  # any would do


@dataclass(frozen=True)
class AdaBoost:
    """The paper's AdaBoost, over the same regression trees as PILBoost."""

    packages: ClassVar[tuple[str, ...]] = OURS

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        tree = EngineTree(trees.dataset(lesson.X, lesson.y, n_jobs=1), lesson.depth, lesson.X.shape[1])
        rounds = boosting.adaboost(lesson.X, 2.0 * lesson.y - 1.0, tree)
        steps: list[tuple[float, Any]] = [(one.leverage, one.hypothesis) for one in islice(rounds, lesson.rounds)]

        def predict(X: Array) -> Any:
            *_, scores = boosting.staged_scores(steps, X)
            return (scores > 0).astype(int)

        importances = [abs(leverage) * tree.feature_importances_ for leverage, tree in steps]
        return Fitted(predict, len(steps), _shares(np.sum(importances, axis=0)))


class Stopping(NamedTuple):
    """How to stop early, on a fifth of the rows: as they are twisted, or, which is to cheat, `clean`."""

    learning_rate: float
    patience: int
    metric: str
    clean: bool = False


PAPER = Stopping(0.3, 10, "aucpr")  # as the paper does, at XGBoost's own learning rate
CHEATING = PAPER._replace(clean=True)
CAREFUL = Stopping(0.1, 50, "logloss")  # as careful users do


@dataclass(frozen=True)
class XGBoost:
    """XGBoost at the experiment's depth, all else default: today's defaults, or with `exact` those of 2021."""

    exact: bool = False
    l2: float = 1.0
    stop: Stopping | None = None
    packages: ClassVar[tuple[str, ...]] = XGBOOST

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        from xgboost import XGBClassifier

        settings: dict[str, Any] = {"tree_method": "exact", "base_score": 0.5} if self.exact else {}
        watch: dict[str, Any] = {}
        if self.stop is not None:
            lesson, *held = lesson.held_out(self.stop.clean)
            settings |= {"learning_rate": self.stop.learning_rate, "eval_metric": self.stop.metric}
            settings["early_stopping_rounds"] = self.stop.patience
            watch = {"eval_set": [tuple(held)], "verbose": False}
        model = XGBClassifier(
            n_estimators=lesson.rounds,
            max_depth=lesson.depth,
            reg_lambda=self.l2,
            n_jobs=1,
            random_state=lesson.seed,
            **settings,
        ).fit(lesson.X, lesson.y, **watch)
        rounds = model.best_iteration + 1 if self.stop else lesson.rounds
        gain = model.get_booster()[:rounds].get_score(importance_type="gain")  # of the trees that predict
        return Fitted(
            model.predict, rounds, _shares(np.array([gain.get(f"f{j}", 0.0) for j in range(lesson.X.shape[1])]))
        )


@dataclass(frozen=True)
class LightGBM:
    """LightGBM at the experiment's depth, stopped early."""

    stop: Stopping = CAREFUL
    packages: ClassVar[tuple[str, ...]] = ("lightgbm",)

    def fit(self, lesson: Lesson) -> Fitted:
        """The model."""
        from lightgbm import LGBMClassifier, early_stopping

        lesson, X_val, y_val = lesson.held_out(self.stop.clean)
        model = LGBMClassifier(
            n_estimators=lesson.rounds,
            max_depth=lesson.depth,
            num_leaves=2**lesson.depth,
            learning_rate=self.stop.learning_rate,
            importance_type="gain",
            n_jobs=1,
            random_state=lesson.seed,
            verbose=-1,
        )
        stop = early_stopping(self.stop.patience, verbose=False)
        model.fit(lesson.X, lesson.y, eval_set=[(X_val, y_val)], callbacks=[stop])
        rounds = int(model.best_iteration_ or lesson.rounds)
        return Fitted(model.predict, rounds, _shares(model.feature_importances_.astype(np.float64)))


def _shares(amounts: Array) -> Array:
    return amounts / amounts.sum() if amounts.sum() else amounts
