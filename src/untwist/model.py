"""What a fit leaves behind: immutable, with public attributes. Files, exports, explanations and audits read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest, iterate_row_blocks
from untwist.data.batches import Encoded
from untwist.data.encoding import TableEncoder
from untwist.data.labels import encode_labels, list_positive_classes
from untwist.data.sources import UNKNOWN, look_up_sources
from untwist.data.twins import NOTHING_KNOWN, SOME_WRONG, Twins
from untwist.display import write_fragment, write_table
from untwist.noise.estimate import NoiseEstimate
from untwist.noise.model import NoiseModel
from untwist.noise.paper import MenonEstimate
from untwist.noise.posterior import Posterior, find_posterior_floor
from untwist.noise.sources import NoiseBySource
from untwist.out_of_fold import OutOfFold
from untwist.text import for_page
from untwist.theory.links import Link
from untwist.theory.several_classes import SoftmaxLink

__all__ = ["GIVEN_SCORES", "Candidate", "Choice", "FittedModel", "Mixture"]

IMPORTANCES = ("paper", "gain", "splits")

#: What is said of the noise where nothing was estimated.
NO_NOISE = "not estimated: probabilities are those of the labels as they are"

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


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model.

    Parameters
    ----------
    classes : array
        The labels; of two, the second is the positive class.
    encoder : TableEncoder
        The columns of the training table, and how another one becomes numbers like it.
    ensembles : tuple of Ensemble
        One for two classes, and one for classes that were boosted together; else one per class against the rest.
    link : Link or SoftmaxLink
        What the scores were boosted with; a SoftmaxLink where classes were boosted together.
    alpha : float
        The alpha that was used.
    step_size : float
        The step size or learning rate that was used.
    class_weights : array
        What rows of each class were multiplied by.
    seed : int
        What all random choices of the fit followed from.
    n_rows : int
        Training rows, those held out for validation included.
    n_effective_rows : float
        The number of rows that trained or their total weight, whichever is larger.
    choice : Choice or None
        What was tried and chosen; None where nothing was left open.
    noise : NoiseModel or None
        What is believed of the noise; None where nothing was estimated or given.
    untwists : bool
        Whether posteriors are corrected by that noise.
    menon : MenonEstimate or None
        What alpha follows from, where the paper's estimate says it.
    validation_rows, validation_shares : arrays
        The training rows that `fit` held out for validation, and the share of each one's weight.
    out_of_fold : OutOfFold or None
        What models said of rows that they had not seen; None where nothing was chosen by folds.
    sources : NoiseBySource or None
        How noisy the labels of each source are; None where `fit` was given no sources.
    curves : dict
        What was measured after each round besides log-loss and error of the validation rows. Files leave it out.
    init : "prior", "zero", "init_score" or None
        Where boosting began, with settings that were given: "init_score" is at scores that `fit` was given. None where
        that is not known.
    has_twins : bool
        Whether so many training rows nearly repeat rows of other folds that the folds may have remembered labels.
    """

    classes: NDArray[Any]
    encoder: TableEncoder
    ensembles: tuple[Ensemble, ...]
    link: Link | SoftmaxLink
    alpha: float
    step_size: float
    class_weights: Array
    seed: int
    n_rows: int
    n_effective_rows: float
    choice: Choice | None = None
    noise: NoiseModel | None = None
    untwists: bool = False
    menon: MenonEstimate | None = None
    validation_rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    validation_shares: Array = field(default_factory=lambda: np.zeros(0))
    out_of_fold: OutOfFold | None = None
    sources: NoiseBySource | None = None
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)
    init: str | None = None
    has_twins: bool = False

    def __repr__(self) -> str:
        table = f"{self.n_rows} rows, {self.encoder.n_features} columns, {len(self.classes)} classes"
        noise = "; noise not estimated" if self.choice is not None else ""
        if self.estimate is not None:
            noise = f"; {self.unreliable_words or self.estimate}"
        return f"FittedModel({table}, alpha {self.alpha:g}, {self.n_rounds} rounds{noise})"

    @property
    def estimate(self) -> NoiseEstimate | None:
        """How noisy the labels are, by whatever has estimated it."""
        return self.menon if self.noise is None else self.noise

    @property
    def has_wrong_labels(self) -> bool:
        """Whether wrong labels were found: among all labels, or as those of a source that stands out."""
        stands_out = self.sources is not None and bool(self.sources.stands_out.any())
        return stands_out or (self.estimate is not None and bool(self.estimate.found))

    @property
    def unreliable_words(self) -> str:
        """What is said in place of rates that near twins make too low; empty where rates can be told."""
        if not self.has_twins or (self.untwists and self.noise is not None and self.noise.is_given):
            return ""
        return SOME_WRONG if self.has_wrong_labels else NOTHING_KNOWN

    @property
    def reliable_noise(self) -> NoiseEstimate | None:
        """How noisy the labels are; None where nothing was estimated, or where the estimate cannot be relied on.

        Where near twins make rates too low, no higher rate is excluded.
        """
        if self.estimate is None or not self.unreliable_words:
            return self.estimate
        return self.estimate.drop_upper_limits() if self.estimate.found else None

    @property
    def reliable_sources(self) -> NoiseBySource | None:
        """How noisy the labels of each source are; None where `fit` was given no sources, or where nothing can be told.

        Where near twins make shares too low, no higher share is excluded.
        """
        if self.sources is None or not self.unreliable_words:
            return self.sources
        return self.sources.drop_upper_limits() if self.has_wrong_labels else None

    def write_html_parts(self) -> list[str]:
        """Write what was chosen and how noisy the labels are as fragments of HTML, as far as either is known."""
        parts = [] if self.choice is None else [self.choice.write_html()]
        if self.estimate is not None:
            words = self.unreliable_words
            parts.append(write_fragment("Noise", words) if words else self.estimate.write_html(self.classes))
        elif self.choice is not None:
            parts.append(write_fragment("Noise", NO_NOISE))
        return parts

    def describe_sources(self) -> str:
        """Say in words which sources are noisier than the others; empty where `fit` was given no sources."""
        if self.sources is None:
            return ""
        if self.reliable_sources is None:
            return f"which of {len(self.sources.names):,} are noisier than the others cannot be told either"
        return self.reliable_sources.describe()

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

    @cached_property
    def posterior(self) -> Posterior:
        """How scores become posteriors."""
        floor = find_posterior_floor(self.n_effective_rows)
        return Posterior(self.link, floor, self.class_weights, self.noise if self.untwists else None)

    def encode_labels(self, name: str, y: Any) -> NDArray[np.uint32]:
        """Return labels as indices of `classes`; `name` is what errors call them."""
        return encode_labels(name, y, self.classes)

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
        if self.choice is not None:
            raise ValueError(
                "iteration_range must be None for a model that was chosen by folds: it is the mean of their models, "
                "and no round follows another"
            )
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

    def choose_labels(self, decision: Array) -> NDArray[Any]:
        """Return the label that decision values speak for."""
        return np.asarray(self.classes[self.posterior.choose(decision)])

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
        curves = {name: dict(known) for name, known in self.curves.items()}
        if len(self.ensembles[0].losses):
            losses = {"log_loss": self.by_class("losses"), "error": self.by_class("errors")}
            curves["validation"] = losses | curves.get("validation", {})
        return curves

    def out_of_fold_posterior(self) -> Array | None:
        """Return the twisted posterior of every training row by models that have not seen it, if there are such."""
        if self.out_of_fold is None or self.out_of_fold.context.fingerprint is None:
            return None
        posterior = self.out_of_fold.posterior
        if (self.class_weights == 1).all():
            return posterior
        weighted = posterior * np.where(self.class_weights > 0, self.class_weights, 1.0)
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))

    def remember_twins(self, twins: Twins) -> FittedModel:
        """Return the same model, which knows of rows that nearly repeat rows of other folds."""
        if self.out_of_fold is None:
            return self
        return replace(self, out_of_fold=self.out_of_fold.add_context(twins=twins), has_twins=True)

    def unweigh(self, posterior: Array) -> Array:
        """Return posteriors of labels that class weights have multiplied as they are without them.

        Parameters
        ----------
        posterior : array of shape (n_rows, n_classes)
            Posteriors of every class.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        return self.posterior.unweigh(posterior)

    def find_posterior_of_labels(self, scores: Array) -> Array:
        """Return the twisted posterior that labels follow, without the weights of classes.

        Parameters
        ----------
        scores : array of shape (n_rows, n_columns)
            Boosted scores: one column for two classes, else one per class.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        return self.posterior.twisted_of_labels(scores[:, 0] if len(self.classes) == 2 else scores)

    def find_source_labels_follow(self, clean: Array, source: Any = None) -> Array:
        """Return the posterior that labels of given sources follow where the clean one is known.

        Parameters
        ----------
        clean : array of shape (n_rows, n_classes)
            The clean posterior, without the weights of classes.
        source : array-like of shape (n_rows,) or None
            Who gives each label; None for a source that nobody knows, which errs as all of them together do.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        if self.sources is None:
            raise ValueError("source must be None: fit was not told the sources of its labels")
        unknown = np.full(len(clean), UNKNOWN, dtype=np.intp)
        index = unknown if source is None else look_up_sources(source, self.sources.names, len(clean))
        return self.sources.noisy(clean, index)


def _join(columns: list[Array]) -> Array:
    """Return one column as it is, several as a table."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)
