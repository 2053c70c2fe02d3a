import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Table = NDArray[np.float64] | NDArray[np.float32]
Trees = tuple[Reals, NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], Reals, NDArray[np.uint8], Reals, Reals]

def clipped_logit(z: Reals, alpha: float, out: Reals) -> None: ...
def exact_logit(z: Reals, alpha: float, out: Reals) -> None: ...

class Booster:
    def boost(self, rounds: int) -> int: ...
    def trees(self, first: int) -> Trees: ...

def booster(
    X: Table,
    positive: NDArray[np.uint8],
    weight: Reals,
    alpha: float,
    exact_link: bool,
    step_size: float,
    max_depth: int,
    l2: float,
    max_bins: int,
    threads: int,
    /,
) -> Booster: ...
def add_scores(
    X: Table,
    offset: NDArray[np.int64],
    feature: NDArray[np.int32],
    left: NDArray[np.int32],
    threshold: Reals,
    missing_left: NDArray[np.uint8],
    value: Reals,
    first: int,
    last: int,
    threads: int,
    out: Reals,
    /,
) -> None: ...
