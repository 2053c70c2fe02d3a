"""The protocol of an engine: which tables and settings it takes, how it holds rows, and how it makes rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest
from untwist.data.encoding import AcceptedTables
from untwist.data.folds import hold_out_groups, hold_out_share, split_groups_into_folds, split_into_folds
from untwist.data.workers import Workers, solo
from untwist.theory.links import LINKS, Link
from untwist.theory.losses import Loss, is_alpha_loss

#: Settings that say something of single columns, which trees of any kind may heed.
COLUMN_SETTINGS = frozenset({"monotonic_cst", "interaction_cst", "feature_weights"})

#: Trees are never deeper than this, whatever `max_depth` says.
DEEPEST = 60


@dataclass(frozen=True)
class TreeGrowth:
    """How trees grow.

    The parameters are those of `PILBoostClassifier`; `l2` and `min_samples_leaf` count in rows.

    Parameters
    ----------
    category_smoothing : float
        Categories are split in the order of their mean label, each drawn towards 0 by this many rows, so that rare
        categories do not lead that order.
    extra : bool
        Whether only one split of each column, drawn at random, is a candidate at a node: `extra_trees`.
    seed : int
        What rows, columns and splits are drawn by.
    monotone : tuple of int
        For each column whether the score may only fall (-1) or rise (+1) with it; empty where nothing is asked for.
    interactions : tuple of tuples of int
        Groups of columns, each column in one at least: only those of one group meet on a way from the root of a tree to
        a leaf. Empty where all may meet.
    feature_weights : tuple of float
        The chance of each column to be drawn, up to a factor; empty where all have the same.
    """

    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    l2: float = 0.0
    category_smoothing: float = 10.0
    subsample: float = 1.0
    max_features: float = 1.0
    extra: bool = False
    seed: int = 0
    monotone: tuple[int, ...] = ()
    interactions: tuple[tuple[int, ...], ...] = ()
    feature_weights: tuple[float, ...] = ()

    @property
    def depth(self) -> int:
        """The depth of the trees as a number, where `max_depth` may be None for no limit."""
        return DEEPEST if self.max_depth is None else min(DEEPEST, self.max_depth)


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is told before it sees any rows; the parameters are those of `PILBoostClassifier`."""

    growth: TreeGrowth = field(default_factory=TreeGrowth)
    max_bins: int = 255
    tree_method: str = "hist"
    device: str = "cpu"
    estimator: Any = None
    n_jobs: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as an engine gets them, as numbers.

    Parameters
    ----------
    X : array, sparse matrix or Encoded
        The table; a category is its index among the known ones.
    labels : array of uint32
        The index of each row's class.
    weight : array
        The sample weight of each row. Rows of weight 0 have no say in how columns are binned.
    n_categories : mapping
        How many categories each categorical column has.
    workers : Workers
        Who else has rows of the same table.
    groups : array of uint64 or None
        A hash of each row's group, where rows that belong together are set aside together.
    n_classes : int
        How many classes there are, where some may have no row; 0 where labels tell.
    """

    X: Any
    labels: NDArray[np.uint32]
    weight: Array
    n_categories: Mapping[int, int] = field(default_factory=dict)
    workers: Workers = solo
    groups: NDArray[np.uint64] | None = None
    n_classes: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """What a booster has to do: boost one class against the rest.

    Parameters
    ----------
    link : Link
        The link, and with it the loss, to boost.
    step_size : float
        The coefficient of a hypothesis is step_size * edge, as in the paper, or with `by_edge=False` step_size itself.
    growth : TreeGrowth
        How trees grow.
    positive_class : int or None
        The class to tell from the others; None for a booster of all classes together.
    weight : array or None
        What each row weighs in training; rows of weight 0 do not train. None: all rows weigh 1.
    validation_weight : array or None
        What each row weighs in the validation loss; None for no validation.
    posterior_floor : float
        For the validation loss, posteriors are kept within [posterior_floor, 1 - posterior_floor].
    start : array or None
        The scores to go on from, of a model that `first_round` rounds made.
    begins_at_shares : bool
        Whether a booster of all classes together begins at the shares of the classes; otherwise at 0.
    stream : int
        The number of the booster. The reference engine draws the seeds of its weak learners by it, so that those of
        different classes differ; the other engines draw by the contents of rows alone.
    """

    link: Link
    step_size: float
    growth: TreeGrowth
    by_edge: bool = True
    positive_class: int | None = 1
    weight: Array | None = None
    validation_weight: Array | None = None
    posterior_floor: float = 1e-6
    start: Array | None = None
    first_round: int = 0
    begins_at_shares: bool = True
    stream: int = 0


class Dataset(Protocol):
    """Rows as an engine holds them, for any number of boosters."""

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each row's contents: copies of a row have the same one."""


class Booster(Protocol):
    """A run of boosting that goes on when asked to."""

    def boost(self, n_rounds: int, patience: int = 0) -> int:
        """Make up to `n_rounds` more rounds and return how many there are now.

        There are fewer if all weights are zero, or if the validation loss was at its lowest `patience` rounds ago.
        """

    def last_edge(self) -> float:
        """Return the edge of the last round."""

    def losses(self) -> Array:
        """Return the log-loss of the validation rows after each round; empty where there are none."""

    def errors(self) -> Array:
        """Return the error of the validation rows after each round."""

    def current_scores(self) -> Array:
        """Return the score of every row that trains or is validated after the rounds so far, in the order given."""

    def ensemble(self) -> Ensemble:
        """Return what the rounds so far leave behind."""


class Team(Protocol):
    """Threads that boost several boosters of one engine side by side."""

    def boost(self, boosters: Sequence[Any], n_rounds: int, patience: int = 0) -> list[int]:
        """Do what `Booster.boost` does for every booster, and return how many rounds each has now.

        What comes out is the same as one after the other. On Ctrl-C some may be ahead of others.
        """


class Engine(ABC):
    """An engine. A subclass says what it takes and makes datasets and boosters.

    Attributes
    ----------
    name : str
        What `PILBoostClassifier(engine=...)` calls it.
    grows_forests : bool
        Whether its ensembles are forests. Only then can settings be chosen by folds, and models be saved and exported.
    boosts_jointly : bool
        Whether it can boost all classes together, by a task without a positive class.
    boosts_any_loss : bool
        Whether it can boost other losses than the alpha-loss.
    joins_workers : bool
        Whether it takes part in a distributed fit where a communicator is open.
    known_links : frozenset of str
        Those of `untwist.theory.links.LINKS` that it boosts with.
    known_settings : frozenset of str
        Those of `untwist.settings.ENGINE_SPECIFIC_DEFAULTS` that it knows; others must have their defaults.
    """

    name: ClassVar[str]
    grows_forests: ClassVar[bool] = True
    boosts_jointly: ClassVar[bool] = False
    boosts_any_loss: ClassVar[bool] = True
    joins_workers: ClassVar[bool] = False
    known_links: ClassVar[frozenset[str]] = frozenset(LINKS)
    known_settings: ClassVar[frozenset[str]] = frozenset()

    def check_settings(self, settings: EngineOptions) -> None:
        """Raise a ValueError for settings that do not go together."""
        del settings

    def check_loss(self, loss: Loss) -> None:
        """Raise a ValueError for a loss that the engine cannot boost."""
        if not self.boosts_any_loss and not is_alpha_loss(loss):
            raise ValueError(f"the {self.name} engine boosts the alpha-loss only, got {loss!r}")

    def accepted_tables(self, estimator: Any, tree_method: str) -> AcceptedTables:
        """Return which tables the engine takes under these settings."""
        del estimator, tree_method
        return AcceptedTables()

    @abstractmethod
    def make_dataset(self, rows: Rows, settings: EngineOptions) -> Dataset:
        """Return the rows as the engine holds them."""

    @abstractmethod
    def make_booster(self, dataset: Any, task: Task) -> Booster:
        """Return a booster that has not made a round yet. `dataset` is one that `make_dataset` made."""

    def count_bytes(self, n_rows: int, n_classes: int, *, jointly: bool) -> int:
        """Return how many bytes a booster of these rows holds at least; 0 where nobody has counted."""
        del n_rows, n_classes, jointly
        return 0

    def make_team(self, n_threads: int) -> Team | None:
        """Return threads that boost boosters side by side; None where one is boosted after the other."""
        del n_threads
        return None

    def grow_randomised(
        self,
        dataset: Any,
        task: Task,
        n_trees: int,
        min_samples_leaf: int,
        max_features: float,
        first_tree: int = 0,
    ) -> Forest:
        """Return trees whose thresholds are drawn at random, with the logarithms of class shares in their leaves.

        Leaves have an output per class, or one where there are two classes: the log-odds of the second.
        Only engines that boost all classes together have them.
        """
        raise NotImplementedError(f"the {self.name} engine grows no randomised trees")

    def hold_out(self, dataset: Dataset, rows: Rows, share: float, seed: int) -> Array:
        """Return how much of each row's weight is set aside, in [0, 1]: about `share` of the weight of every class."""
        if rows.groups is not None:
            return hold_out_groups(dataset.hashes(), rows.groups, rows.labels, rows.weight, share, seed)
        return hold_out_share(dataset.hashes(), rows.labels, rows.weight, share, seed)

    def make_folds(self, dataset: Dataset, rows: Rows, n_folds: int, seed: int) -> Array:
        """Return, for every fold, the weight of each row that it sets aside; over the folds that is all of it."""
        if rows.groups is not None:
            return split_groups_into_folds(dataset.hashes(), rows.groups, rows.labels, rows.weight, n_folds, seed)
        return split_into_folds(dataset.hashes(), rows.labels, rows.weight, n_folds, seed)
