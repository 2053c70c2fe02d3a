"""The robust focal loss of Robust-GBDT (Luo, Quan and Xu, arXiv 2310.05067), as an objective of XGBoost.

Where p is the predicted probability of the label that a row bears, the loss is (1 - p)^r (1 - p^q) / q. Rows that are
clear count less the larger r, as in the focal loss, and rows that contradict their label count less the larger q; with
q = 0 the second factor is -log p. It is not convex: Newton's method asks for a positive sum of second derivatives in
every leaf only, and XGBoost grows no leaf without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from untwist.arguments import Array

__all__ = ["RobustFocalLoss"]

#: No probability counts as nearer to 0 or 1 than this.
NEAREST = 1e-12


@dataclass(frozen=True)
class RobustFocalLoss:
    """The loss as what XGBoost asks of an objective: first and second derivatives by the margin.

    Attributes
    ----------
    r : float
        How much less clear rows count, at least 0.
    q : float
        How much less contradicting rows count, from 0 to 1.
    """

    r: float
    q: float

    def __call__(self, y: Any, margin: Any) -> tuple[Array, Array]:
        """Derive the loss of every row.

        With dp / dmargin = p (1 - p) the first derivative, for a label of 1, is -(1 - p)^r times
        `pull` = r p (1 - p^q) / q + (1 - p) p^q; the second one follows from it.

        Parameters
        ----------
        y : array
            Labels, 0 or 1.
        margin : array
            Log-odds of label 1.

        Returns
        -------
        first, second : array
        """
        r, q = self.r, self.q
        sign = np.where(np.asarray(y) > 0, 1.0, -1.0)
        p = np.clip(expit(sign * np.asarray(margin, dtype=float)), NEAREST, 1.0 - NEAREST)
        power = p**q
        rest = (1.0 - power) / q if q > 0.0 else -np.log(p)
        pull = r * p * rest + (1.0 - p) * power
        slope_of_pull = r * rest - (r + 1.0) * power + q * (1.0 - p) * power / p
        shrinking = (1.0 - p) ** r
        return -sign * shrinking * pull, p * shrinking * (r * pull - (1.0 - p) * slope_of_pull)
