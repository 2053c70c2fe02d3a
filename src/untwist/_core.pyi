import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Table = NDArray[np.float64] | NDArray[np.float32]
Trees = tuple[
    Reals,
    Reals,
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    Reals,
    NDArray[np.uint8],
    Reals,
    Reals,
    NDArray[np.int32],
    NDArray[np.uint64],
]

def instruction_set() -> str: ...
def clipped_logit(z: Reals, alpha: float, out: Reals) -> None: ...
def clipped_posterior(z: Reals, alpha: float, out: Reals) -> None: ...
def exact_logit(z: Reals, alpha: float, out: Reals) -> None: ...
def boosting_weights(
    margin: Reals,
    sample_weight: NDArray[np.float32],
    alpha: float,
    link: str,
    unit: float,
    threads: int,
    out: NDArray[np.float32],
) -> None: ...
def weight_bits(total_weight: float, rows: int) -> int: ...

class Dataset:
    def __init__(
        self, labels: NDArray[np.uint32], classes: int, features: int, lean: bool = False, sparse: bool = False
    ) -> None: ...
    def observe(self, X: Table, weight: Reals, threads: int) -> None: ...
    def add_columns(
        self, X: Table, first: int, n_categories: NDArray[np.int32], weight: Reals, max_bins: int, threads: int
    ) -> None: ...
    def add_sparse_columns(
        self,
        start: NDArray[np.int64],
        row: NDArray[np.int32],
        value: NDArray[np.float64] | NDArray[np.float32],
        weight: Reals,
        max_bins: int,
        threads: int,
    ) -> None: ...
    def set_bins(self, sketch: Sketch, threads: int = 1) -> None: ...
    def add_rows(self, X: Table, first: int, weight: Reals, threads: int) -> None: ...
    def hashes(self) -> NDArray[np.uint64]: ...

class Sketch:
    def __init__(self, n_categories: NDArray[np.int32], max_bins: int, largest_weight: float = 0.0) -> None: ...
    def observe(self, X: Table, weight: Reals, threads: int) -> None: ...
    @property
    def needs_draw(self) -> bool: ...
    def draw(self, X: Table, weight: Reals, threads: int) -> None: ...
    def state(self) -> bytes: ...
    def merge(self, state: bytes) -> None: ...
    def thresholds(self, threads: int = 1) -> list[Reals]: ...

def encode(
    X: Table, n_categories: NDArray[np.int32], thresholds: list[Reals], out: NDArray[np.uint8], threads: int
) -> NDArray[np.uint8]: ...

class TreeGrowth:
    def __init__(
        self,
        *,
        max_depth: int,
        max_leaf_nodes: int,
        min_samples_leaf: float,
        min_weight_fraction_leaf: float,
        l2: float,
        category_smoothing: float,
        subsample: float,
        max_features: float,
        extra: bool,
        seed: int,
        monotone: NDArray[np.int8],
        grouped_columns: NDArray[np.uint32],
        group_starts: NDArray[np.int64],
        feature_weights: Reals,
        features: int,
    ) -> None: ...

class BoostingTask:
    def __init__(
        self,
        *,
        positive_class: int | None,
        sample_weight: Reals,
        validation_weight: Reals,
        start_scores: Reals,
        alpha: float,
        link: str,
        step_size: float,
        step_by_edge: bool,
        posterior_floor: float,
        first_round: int,
        begins_at_shares: bool,
    ) -> None: ...

class Booster:
    def __init__(self, dataset: Dataset, task: BoostingTask, growth: TreeGrowth) -> None: ...
    def boost(self, rounds: int, patience: int = 0, threads: int = 1) -> int: ...
    def __len__(self) -> int: ...
    def trees(self, first: int) -> Trees: ...
    def scores(self) -> Reals: ...
    def losses(self) -> Reals: ...
    def errors(self) -> Reals: ...

class Team:
    def __init__(self, threads: int) -> None: ...
    def boost(self, boosters: list[Booster], rounds: int, patience: int = 0) -> None: ...

def grow_randomised(
    dataset: Dataset,
    *,
    sample_weight: Reals,
    trees: int,
    first_tree: int,
    min_samples_leaf: float,
    max_features: float,
    smoothing: float,
    seed: int,
    threads: int,
) -> Trees: ...

class Forest:
    def __init__(
        self,
        offset: NDArray[np.int64],
        feature: NDArray[np.int32],
        left: NDArray[np.int32],
        threshold: Reals,
        missing_left: NDArray[np.uint8],
        value: Reals,
        set: NDArray[np.int32],
        codes: NDArray[np.uint64],
        features: int,
    ) -> None: ...
    def add_scores(self, X: Table, first: int, last: int, threads: int, out: Reals) -> None: ...
    def leaves(self, X: Table, first: int, last: int, threads: int, out: NDArray[np.int32]) -> None: ...
