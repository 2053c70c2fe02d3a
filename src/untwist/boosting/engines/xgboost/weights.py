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

__all__ = ["Weigher", "arrays_of"]

NO_OWN = np.zeros(0, dtype=np.float32)


def arrays_of(device: str) -> Any:
    """NumPy, or CuPy where the device is a GPU."""
    if device == "cpu":
        return np
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ImportError(f"device={device!r} needs CuPy for the CUDA of this machine, say cupy-cuda13x") from error


class Weigher:
    """Weights of margins under a link of the alpha-loss, in single precision, whole multiples of 1/unit."""

    def __init__(self, link: Link, unit: float, device: str, *, whole_copies: bool = False) -> None:
        if not isinstance(link.loss, AlphaLoss):
            raise ValueError(f"XGBoost's trees boost the alpha-loss only, got {link.loss!r}")
        self._alpha, self._exact = abs(link.loss.alpha), isinstance(link, CanonicalLink)
        self._unit, self._device, self._whole_copies = unit, device, whole_copies

    def __call__(self, margins: Any, own: Any = None, threads: int = 1) -> Any:
        """The weights of rows with these margins and sample weights, all 1 where None is given.

        Where sample weights are `whole_copies`, a row has so many times the weight of one copy.
        """
        if own is not None and self._whole_copies:
            return self(margins, threads=threads) * own.astype(np.float32)
        if self._device != "cpu":  # pragma: no cover - needs a GPU, as below
            return _kernel()(margins, 1.0 if own is None else own, self._alpha, self._exact, self._unit)
        weights = np.empty(len(margins), dtype=np.float32)
        own = NO_OWN if own is None else own.astype(np.float32)
        margins = np.ascontiguousarray(margins)
        _core.boosting_weights(
            margin=margins,
            sample_weight=own,
            alpha=self._alpha,
            exact_link=self._exact,
            unit=self._unit,
            threads=threads,
            out=weights,
        )
        return weights


@lru_cache
def _kernel() -> Any:  # pragma: no cover - needs a GPU: benchmarks/devices.py tries it on one
    """The weights of margins on the GPU, by the formulas of alpha_link.hpp."""
    header = (Path(_core.__file__).parent / "alpha_link.hpp").read_text()
    logit = "exact ? untwist::exact_logit(-margin, alpha) : untwist::clipped_logit(-margin, alpha)"
    return importlib.import_module("cupy").ElementwiseKernel(
        "float64 margin, float64 sample_weight, float64 alpha, bool exact, float64 unit",
        "float32 weight",
        f"const double share = untwist::weight_at_logit({logit}, alpha) * sample_weight;"
        "weight = (float)(floor(share * unit + 0.5) / unit);",
        "untwist_weight",
        preamble="#define UNTWIST_CUDA\n" + header,
    )
