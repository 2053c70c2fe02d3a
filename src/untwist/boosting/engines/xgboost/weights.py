"""Boosting weights where the margins are: in the compiled core, or on a GPU by the same formulas, compiled for it."""

from __future__ import annotations

import importlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from untwist import _core
from untwist.theory.links import CanonicalLink, Link
from untwist.theory.losses import AlphaLoss

#: The core takes an empty array for sample weights that are all 1.
ALL_ONES = np.zeros(0, dtype=np.float32)


def find_array_library(device: str) -> Any:
    """Return NumPy, or CuPy where the device is a GPU."""
    if device == "cpu":
        return np
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ImportError(f"device={device!r} needs CuPy for the CUDA of this machine, say cupy-cuda13x") from error


class Weigher:
    """Finds the weights of margins under a link of the alpha-loss, in single precision, as whole multiples of 1/unit.

    Parameters
    ----------
    link : Link
        The link, of the alpha-loss.
    unit : float
        How many units make a weight of 1.
    device : str
        "cpu", or the GPU where the margins are.
    whole_copies : bool
        Whether sample weights count copies: the weight of a row is then that of one copy times their number.
    """

    def __init__(self, link: Link, unit: float, device: str, *, whole_copies: bool = False) -> None:
        if not isinstance(link.loss, AlphaLoss):
            raise ValueError(f"XGBoost's trees boost the alpha-loss only, got {link.loss!r}")
        self._alpha = abs(link.loss.alpha)
        self._exact = isinstance(link, CanonicalLink)
        self._unit = unit
        self._device = device
        self._whole_copies = whole_copies

    def __call__(self, margins: Any, sample_weight: Any = None, threads: int = 1) -> Any:
        """Return the weights of rows with these margins and sample weights; None means that all are 1."""
        if sample_weight is not None and self._whole_copies:
            return self(margins, threads=threads) * sample_weight.astype(np.float32)
        if self._device != "cpu":  # pragma: no cover - This needs a GPU.
            scale = 1.0 if sample_weight is None else sample_weight
            return _compile_weights()(margins, scale, self._alpha, self._exact, self._unit)
        weights = np.empty(len(margins), dtype=np.float32)
        scale = ALL_ONES if sample_weight is None else sample_weight.astype(np.float32)
        margins = np.ascontiguousarray(margins)
        _core.boosting_weights(
            margin=margins,
            sample_weight=scale,
            alpha=self._alpha,
            link="exact" if self._exact else "clipped",
            unit=self._unit,
            threads=threads,
            out=weights,
        )
        return weights

    def step(
        self, margins: Any, sign: Any, h: Any, leverage: float, sample_weight: Any = None
    ) -> tuple[Any, Any]:  # pragma: no cover - This needs a GPU.
        """Take margins on a GPU to the next round, in place, and return the weights and gradients there."""
        scale = 1.0 if sample_weight is None or self._whole_copies else sample_weight
        copies = sample_weight if sample_weight is not None and self._whole_copies else 1.0
        cupy = importlib.import_module("cupy")
        weight, gradient = (cupy.empty(len(margins), dtype="float32") for _ in range(2))
        constants = (self._alpha, self._exact, self._unit)
        _compile_step()(margins, sign, h, leverage, scale, copies, *constants, margins, weight, gradient)
        return weight, gradient


#: The weight of a margin on a GPU, by the formulas of alpha_link.hpp.
WEIGHT = """
    const double s = exact ? untwist::exact_logit(-m, alpha) : untwist::clipped_logit(-m, alpha);
    const double share = untwist::weight_at_logit(s, alpha) * sample_weight;
    weight = (float)(floor(share * unit + 0.5) / unit);
"""


@lru_cache
def _compile_weights() -> Any:  # pragma: no cover - This needs a GPU; experiments/benchmarks/devices.py tries it.
    """Compile what finds the weights of margins."""
    return _compile(
        "float64 margin, float64 sample_weight, float64 alpha, bool exact, float64 unit",
        "float32 weight",
        "const double m = margin;" + WEIGHT,
        "untwist_weight",
    )


@lru_cache
def _compile_step() -> Any:  # pragma: no cover - This needs a GPU.
    """Compile what takes margins to the next round, with their weights and gradients."""
    return _compile(
        "float64 margin, float64 sign, float32 h, float64 leverage, float64 sample_weight, float64 copies, "
        "float64 alpha, bool exact, float64 unit",
        "float64 next, float32 weight, float32 gradient",
        "const double m = margin + sign * (leverage * (double)h);"
        + WEIGHT
        + "weight *= (float)copies; gradient = (float)-sign * weight; next = m;",
        "untwist_step",
    )


def _compile(inputs: str, outputs: str, body: str, name: str) -> Any:  # pragma: no cover - This needs a GPU.
    """Compile a formula for every row, with the functions of alpha_link.hpp."""
    header = (Path(_core.__file__).parent / "alpha_link.hpp").read_text()
    cupy = importlib.import_module("cupy")
    return cupy.ElementwiseKernel(inputs, outputs, body, name, preamble="#define UNTWIST_CUDA\n" + header)


def sum_weight_and_agreement(weight: Any, sign: Any, h: Any) -> Any:  # pragma: no cover - This needs a GPU.
    """Return the sums of the weights and of weight * y * h(x) over the rows of a GPU, fetched together."""
    agreement = _compile_agreement()(weight, sign, h)
    # CuPy's own sums keep all of a GPU busy; a kernel of ours that sums up would keep a small part of it busy.
    return importlib.import_module("cupy").stack([weight.sum(dtype="float64"), agreement.sum()]).get()


@lru_cache
def _compile_agreement() -> Any:  # pragma: no cover - This needs a GPU.
    """Compile weight * y * h(x)."""
    return importlib.import_module("cupy").ElementwiseKernel(
        "float32 weight, float64 sign, float32 h",
        "float64 agreement",
        "agreement = (double)weight * sign * (double)h",
        "untwist_agreement",
    )
