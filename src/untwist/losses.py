"""Losses for class probability estimation (Section 3 of the paper; the alpha-loss is its Definition "defALPHALOSS")."""

from untwist.theory.losses import (
    AlphaLoss,
    ExponentialLoss,
    FocalLoss,
    LogLoss,
    Loss,
    MatusitaLoss,
    SquareLoss,
    SuperLoss,
    tilt,
    tilted_logit,
)

__all__ = [
    "AlphaLoss",
    "ExponentialLoss",
    "FocalLoss",
    "LogLoss",
    "Loss",
    "MatusitaLoss",
    "SquareLoss",
    "SuperLoss",
    "tilt",
    "tilted_logit",
]
