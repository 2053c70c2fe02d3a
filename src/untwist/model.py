"""What a fit leaves behind: immutable, with public attributes. Files, exports, explanations and audits read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest, iterate_row_blocks
from untwist.data.batches import Encoded
from untwist.data.encoding import TableEncoder
from untwist.data.labels import list_positive_classes
from untwist.display import write_fragment, write_table
from untwist.label_model import LabelModel
from untwist.text import for_page
from untwist.theory.several_classes import SoftmaxLink

__all__ = ["GIVEN_SCORES", "Candidate", "Choice", "FittedModel", "Mixture"]

IMPORTANCES = ("paper", "gain", "splits")

#: What `FittedModel.init` says where `fit` was given `init_score`.
GIVEN_SCORES = "init_score"


@dataclass(frozen=True)
class Candidate:
    """A setting that was tried: the rounds that would be kept, and log-loss and error of the rows set aside there.

    Where it was open whether trees draw rows and columns, `drawn` is the share of each that they draw, else None.
    """

    alpha: float
    max_depth: int
    step: float
    n_rounds: int
    loss: float
    error: float
    drawn: float | None = None

    def __str__(self) -> str:
        draws = ", all rows and columns" if self.drawn == 1 else ""
        return (
            f"alpha {self.alpha:<4g} depth {self.max_depth}, {self.n_rounds:4d} rounds of {self.step:g}{draws}: "
            f"log-loss {self.loss:.4f}, error {self.error:.4f}"
        )


@dataclass(frozen=True)
class Mixture:
    """Boosted and randomised trees in one model.

    Parameters
    ----------
    boosted_weight, randomised_weight : float
        By how much the scores of each count.
    n_trees : int
        The randomised trees of each fold.
    min_samples_leaf : int
        The rows that each of their leaves has at least.
    boosted_loss, randomised_loss, loss : float
        The log-loss, on rows set aside, of either alone and of both.
    """

    boosted_weight: float
    randomised_weight: float
    n_trees: int
    min_samples_leaf: int
    boosted_loss: float
    randomised_loss: float
    loss: float

    def __str__(self) -> str:
        return (
            f"on all rows set aside: boosted trees times {self.boosted_weight:.2f} "
            f"(log-loss {self.boosted_loss:.4f}) and {self.n_trees} randomised trees of {self.min_samples_leaf} "
            f"rows per leaf times {self.randomised_weight:.2f} ({self.randomised_loss:.4f}), together {self.loss:.4f}"
        )


@dataclass(frozen=True)
class Choice:
    """The best candidate, all that were tried, and the mixture with randomised trees, if there is one.

    Where rows are many, candidates are compared on the first folds only. Those in `tried` are as they were compared,
    and `best` is the one that was chosen, on all folds.
    """

    best: Candidate
    tried: tuple[Candidate, ...]
    mixture: Mixture | None = None

    def __str__(self) -> str:
        draws = ", all rows and columns" if self.best.drawn == 1 else ""
        kept = f"alpha {self.best.alpha:g}, depth {self.best.max_depth}{draws}, {self.best.n_rounds} rounds"
        where = "" if self.best in self.tried else " on the first folds"
        lines = [f"{kept}, chosen{where} from:"]
        lines += [f"  {one}" for one in self.tried]
        return "\n".join(lines if self.mixture is None else [*lines, str(self.mixture)])

    def __repr__(self) -> str:
        mixed = "" if self.mixture is None else f", with {self.mixture.n_trees} randomised trees a fold"
        best = f"alpha {self.best.alpha:g}, depth {self.best.max_depth}, {self.best.n_rounds} rounds"
        return f"Choice({best}, the best of {len(self.tried)} tried{mixed})"

    def write_html(self) -> str:
        """Write what was tried as a fragment of HTML."""
        rows = [
            [
                f"alpha {one.alpha:g}, depth {one.max_depth}{', all rows and columns' if one.drawn == 1 else ''}",
                f"{one.n_rounds}",
                f"{one.loss:.4f}",
                f"{one.error:.1%}",
            ]
            for one in self.tried
        ]
        header = ["tried", "rounds", "log-loss", "error"]
        first, *_ = str(self).splitlines()
        mixture = "" if self.mixture is None else for_page(self.mixture)
        return write_fragment("What was chosen", first, write_table(header, rows, self._find_chosen()), mixture)

    def _repr_html_(self) -> str:
        """Return `write_html` for notebooks."""
        return self.write_html()

    def _find_chosen(self) -> int | None:
        """Return which of the candidates that were tried is the best one, which has a loss of its own on all folds."""
        best = self.best
        for position, one in enumerate(self.tried):
            if (one.alpha, one.max_depth, one.drawn) == (best.alpha, best.max_depth, best.drawn):
                return position
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(LabelModel):
    """What a fit of ours leaves behind: trees, or weak learners of another kind.

    Parameters
    ----------
    encoder : TableEncoder
        The columns of the training table, and how another one becomes numbers like it.
    ensembles : tuple of Ensemble
        One for two classes, and one for classes that were boosted together; else one per class against the rest. `link`
        is a SoftmaxLink where classes were boosted together.
    alpha : float
        The alpha that was used.
    step_size : float
        The step size or learning rate that was used.
    seed : int
        What all random choices of the fit followed from.
    choice : Choice or None
        What was tried and chosen; None where nothing was left open.
    validation_rows, validation_shares : arrays
        The training rows that `fit` held out for validation, and the share of each one's weight.
    curves : dict
        What was measured of validation rows after each round besides log-loss and error. Files leave it out.
    init : "prior", "zero", "init_score" or None
        Where boosting began, with settings that were given: "init_score" is at scores that `fit` was given. None for
        what was chosen by folds.
    """

    encoder: TableEncoder
    ensembles: tuple[Ensemble, ...]
    alpha: float
    step_size: float
    seed: int
    choice: Choice | None = None
    validation_rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    validation_shares: Array = field(default_factory=lambda: np.zeros(0))
    curves: dict[str, Array] = field(default_factory=dict)
    init: str | None = None

    def __repr__(self) -> str:
        table = f"{self.n_rows} rows, {self.encoder.n_features} columns, {len(self.classes)} classes"
        noise = "; noise not estimated" if self.choice is not None else ""
        if self.estimate is not None:
            noise = f"; {self.unreliable_words or self.estimate}"
        return f"FittedModel({table}, alpha {self.alpha:g}, {self.n_rounds} rounds{noise})"

    def write_html_parts(self) -> list[str]:
        """Write what was chosen and how noisy the labels are as fragments of HTML, as far as either is known."""
        chosen = [] if self.choice is None else [self.choice.write_html()]
        return [*chosen, *super().write_html_parts()] if chosen or self.estimate is not None else []

    # ---- what it is made of ----

    @property
    def n_rounds(self) -> int:
        """Rounds of the class that kept most."""
        return max(map(len, self.ensembles))

    @property
    def positive_classes(self) -> list[int]:
        """The class that each column of the scores speaks for."""
        return list_positive_classes(len(self.classes))

    @property
    def forests(self) -> tuple[Forest, ...]:
        """The trees of each column of the scores; a ValueError where the weak learners are of another kind."""
        if isinstance(self.link, SoftmaxLink):
            (shared,) = self.shared_forests
            return tuple(shared.output(index) for index in range(shared.n_outputs))
        return self.shared_forests

    @property
    def shared_forests(self) -> tuple[Forest, ...]:
        """The trees of each ensemble, with its start: of classes boosted together one forest of vectors."""
        whole = (one.whole_forest for one in self.ensembles)
        forests = tuple(forest for forest in whole if forest is not None)
        if not forests:
            raise ValueError('model must be one of the compiled engine: without estimator, loss or engine="reference"')
        return forests

    # ---- scores and posteriors ----

    def scores(self, rows: Any, n_jobs: int | None = None, rounds: tuple[int, int] | None = None) -> Array:
        """Return the boosted scores H(x) of encoded rows; a column per class beyond two.

        With `rounds` only those from the first to before the second number count, and the start.
        """
        if isinstance(rows, Encoded):
            return np.concatenate([self.scores(block, n_jobs, rounds) for _, block in iterate_row_blocks(rows)])
        return _join([one.scores(rows, n_jobs, rounds) for one in self.ensembles])

    def check_rounds(self, iteration_range: Any) -> tuple[int, int] | None:
        """Return a range of rounds, checked; None for all of them."""
        if iteration_range is None:
            return None
        pair = tuple(iteration_range) if isinstance(iteration_range, (tuple, list)) else ()
        if len(pair) != 2 or not all(isinstance(one, (int, np.integer)) for one in pair):
            raise ValueError(f"iteration_range must be two whole numbers (begin, end), got {iteration_range!r}")
        begin, end = int(pair[0]), int(pair[1])
        if (begin, end) == (0, 0):  # This is XGBoost's way to say all.
            return None
        if not 0 <= begin < end <= self.n_rounds:
            raise ValueError(
                f"iteration_range must lie within the {self.n_rounds} rounds of the model, 0 <= begin < end, got "
                f"{iteration_range!r}"
            )
        return begin, end

    def staged_scores(self, rows: Any) -> Iterator[Array]:
        """Yield the scores after each round; a class whose rounds have ended keeps its scores."""
        last: list[Array] = []
        for stage in zip_longest(*(one.staged_scores(rows) for one in self.ensembles)):
            last = [old if new is None else new for old, new in zip_longest(last, stage)]
            yield _join(last)

    def leaves(self, rows: Any, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Return the leaf of every row by round and class, -1 where the rounds of a class have ended."""
        leaves = np.full((rows.shape[0], self.n_rounds, len(self.ensembles)), -1, dtype=np.int32)
        for index, one in enumerate(self.ensembles):
            if one.forest is None:
                raise ValueError("only the trees of the compiled engine have leaves to apply")
            leaves[:, : len(one), index] = one.forest.leaves(rows, n_jobs)
        return leaves

    def margins(self, scores: Array, labels: NDArray[np.uint32]) -> Array:
        """Return y * H(x) of every row; a column per class beyond two."""
        signs = [np.where(labels == label, 1.0, -1.0) for label in self.positive_classes]
        values = self.link.margins(scores) if isinstance(self.link, SoftmaxLink) else scores
        return np.asarray(values * _join(signs))

    # ---- what is known of the training ----

    def importances(self, kind: str = "paper") -> Array:
        """Return how much each column contributes, as shares.

        Parameters
        ----------
        kind : "paper", "gain" or "splits"
            The paper's is the sum over rounds of leverage times the tree's impurity importances; the others are the
            gain of all splits of a column, or their number.
        """
        if kind not in IMPORTANCES:
            raise ValueError(f'kind must be "paper", "gain" or "splits", got {kind!r}')
        total = np.zeros(self.encoder.n_features)
        for one in self.ensembles:
            if kind == "paper":
                for leverage, hypothesis in one.iterate_rounds():
                    if not hasattr(hypothesis, "feature_importances_"):
                        raise ValueError(
                            f'kind="paper" needs weak learners with importances, and {hypothesis!r} has none'
                        )
                    total += abs(leverage) * hypothesis.feature_importances_
                continue
            if one.forest is None:
                raise ValueError(f'kind={kind!r} needs the trees of the compiled engine: ask for kind="paper"')
            split = one.forest.feature >= 0
            amount = one.forest.gain[split] if kind == "gain" else np.ones(split.sum())
            total += np.bincount(one.forest.feature[split], weights=amount, minlength=len(total))
        return total / total.sum() if total.sum() else total

    def by_class(self, name: str) -> Any:
        """Return an attribute of the ensembles: a list by class, or for two classes what there is but once."""
        values = [getattr(ensemble, name) for ensemble in self.ensembles]
        return values[0] if len(values) == 1 else values

    def validation_curves(self) -> dict[str, dict[str, Any]]:
        """Return what was measured after each round, in the form of XGBoost's results."""
        curves: dict[str, Any] = dict(self.curves)
        if len(self.ensembles[0].losses):
            curves = {"log_loss": self.by_class("losses"), "error": self.by_class("errors")} | curves
        return {"validation": curves} if curves else {}


def _join(columns: list[Array]) -> Array:
    """Return one column as it is, several as a table."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)
