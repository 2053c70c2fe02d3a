"""The convergence certificate: Theorem "genBOOST" checked on a finished run, with the run's own constants.

In every round the risk of a convex margin loss Phi falls by at least ``(1 - zeta - C*a_f*M^2/2) * a_f * edge^2``, with
zeta the relative gap between the edge under Phi's own weights and the edge used, C the largest curvature of Phi on the
way from the old margins to the new, and M the largest abs(h). It is reported for the exact surrogate F of the loss
and for the margin loss that the link used implies, where zeta = 0. A bracket that is not positive promises nothing:
"not applicable" is a normal verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from untwist.arguments import Array, check_numbers, check_positive, check_real, normalise_weights
from untwist.theory.links import CanonicalLink, Link, LogitLink
from untwist.theory.losses import AlphaLoss

__all__ = ["Certificate", "StepCondition", "SurrogateCertificate", "certify", "step_condition"]

# The theorem promised a decrease in a round, and the risk fell at least as much.
MET = "met"
# The theorem promised a decrease in a round, and the risk fell less.
VIOLATED = "violated"
# The theorem promises nothing for a round.
NOT_APPLICABLE = "not applicable"


class BoostingRound(Protocol):
    """What a certificate reads of a round of boosting."""

    @property
    def edge(self) -> float:
        """The mean of weight * y * h(x) over the sample."""

    @property
    def leverage(self) -> float:
        """The coefficient of the hypothesis, a_f * edge."""

    @property
    def weights(self) -> Array:
        """The boosting weight of each example."""

    @property
    def agreement(self) -> Array:
        """y * h(x) of each example."""

    @property
    def margins(self) -> Array:
        """y * H(x) of each example after the round."""


@dataclass(frozen=True)
class StepCondition:
    """(O2), two-sided, for a step size: `curvature*a_f*M^2` within `(1 - zeta) * [1 - pi, 1 + pi]` for some pi < 1.

    Attributes
    ----------
    curvature : float
        The largest curvature of the margin loss.
    step_size : float
        The step a_f.
    M : float
        The largest abs(h).
    zeta : float
        The relative gap between the edge under the loss's own weights and the edge used.
    """

    curvature: float
    step_size: float
    M: float
    zeta: float

    @property
    def pi(self) -> float:
        """The smallest pi that does it; 0 for the ideal step, at least 1 where (O2) fails."""
        return abs(self.step_size * self.curvature * self.M**2 / (1.0 - self.zeta) - 1.0) if self.zeta < 1 else math.inf

    @property
    def holds(self) -> bool:
        """Whether pi < 1."""
        return self.pi < 1

    @property
    def ideal_step(self) -> float:
        """The step with pi = 0, which the theorem likes best; 0 where the curvature is unbounded."""
        bend = self.curvature * self.M**2
        return max(0.0, 1.0 - self.zeta) / bend if bend > 0 else math.inf


def step_condition(link: Link, step_size: float, M: float = 1.0, zeta: float = 0.0) -> StepCondition:
    """Tell what (O2) says of a step for a link at any margins: for the alpha-loss above alpha = 2 it always fails.

    Parameters
    ----------
    link : Link
        The link to boost with.
    step_size : float
        The step a_f; positive.
    M : float, default 1.0
        The largest abs(h) of the weak learner; positive.
    zeta : float, default 0.0
        The relative gap between the edges; not negative.

    Returns
    -------
    StepCondition
        Its ``holds`` and ``pi`` answer.

    Examples
    --------
    >>> from untwist.theory.links import ClippedLink, default_step_size
    >>> for alpha in (1.1, 2.0, 4.0):
    ...     link = ClippedLink(AlphaLoss(alpha))
    ...     condition = step_condition(link, default_step_size(link))
    ...     print(alpha, condition.holds, round(condition.pi, 3))
    1.1 True 0.0
    2.0 True 0.414
    4.0 False inf
    """
    step_size = check_positive("step_size", step_size)
    M = check_positive("M", M)
    zeta = check_real("zeta", zeta, low=0.0)
    return StepCondition(link.largest_curvature(-math.inf, math.inf), step_size, M, zeta)


@dataclass(frozen=True, eq=False)
class SurrogateCertificate:
    """The theorem on one margin loss.

    Attributes
    ----------
    name : str
        What to call the loss.
    zeta : ndarray
        Per round, the relative gap between the edge under the loss's own weights and the edge used.
    curvature : ndarray
        Per round, the largest curvature on the way from the old margins to the new.
    decrease : ndarray
        Per round, how much the risk fell.
    bound : ndarray
        Per round, the bound on the decrease, a promise where it is positive.
    verdicts : tuple of str
        Per round "met", "violated" or "not applicable".
    first_risk, last_risk : float
        The risk before the first and after the last round.
    step : StepCondition
        (O2) with the run's largest zeta and curvature.
    gamma : float
        The smallest normalised edge of the weak learner.
    mean_weights : ndarray
        The mean boosting weight of each round.
    link : Link
        The link whose margin loss it is.
    boosted_link : Link
        The link that the rounds were boosted with, whose weights the second part of the theorem counts.
    """

    name: str
    zeta: Array
    curvature: Array
    decrease: Array
    bound: Array
    verdicts: tuple[str, ...]
    first_risk: float
    last_risk: float
    step: StepCondition
    gamma: float
    mean_weights: Array
    link: Link = field(repr=False)
    boosted_link: Link = field(repr=False)

    @property
    def infimum(self) -> float:
        """The least that the loss comes to, at an infinite margin: 0 for every loss with property E."""
        return float(self.link.margin_loss(math.inf))

    @property
    def Q(self) -> float:
        """`2*F''* / (gamma^2 * (1-zeta)^2 * (1-pi^2))`; infinite where (O1) or (O2) fails."""
        slack = (1.0 - self.step.zeta) ** 2 * (1.0 - self.step.pi**2) if self.step.holds else 0.0
        return 2.0 * self.step.curvature / (self.gamma**2 * slack) if self.gamma**2 * slack > 0 else math.inf

    @property
    def guaranteed_risk(self) -> float:
        """The F(z*) that the first part of the theorem promises after this run: F(start) - sum(mean weights^2) / Q."""
        return max(self.infimum, self.first_risk - float(np.sum(self.mean_weights**2)) / self.Q)

    def rounds_for(self, theta: float, epsilon: float) -> float:
        """Return the rounds after which, at some round, at most a share `epsilon` has margin <= theta (second part).

        `Q * (F(start) - (1-epsilon)*inf F - epsilon*F(theta)) / (epsilon * w)^2`, with F the margin loss and w the
        weight that the link boosted with gives the margin theta.

        Parameters
        ----------
        theta : float
            The margin; at least 0 and below the clip of the link boosted with.
        epsilon : float
            The share of examples, in (0, 1].

        Returns
        -------
        float
            The number of rounds, possibly infinite.
        """
        theta = check_real("theta", theta, low=0.0)
        epsilon = check_real("epsilon", epsilon, low=0.0, open_low=True)
        if not theta < self.boosted_link.clip:
            raise ValueError(f"theta must be below the clip {self.boosted_link.clip:g}, got {theta}")
        if epsilon > 1:
            raise ValueError(f"epsilon must be at most 1, got {epsilon}")
        weight = float(self.boosted_link.weights(theta))
        risk = (1.0 - epsilon) * self.infimum + epsilon * float(self.link.margin_loss(theta))
        enough = (epsilon * weight) ** 2
        return max(0.0, self.Q * (self.first_risk - risk) / enough) if enough > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Certificate:
    """A run's certificate: the weak learner's constants, and the theorem on the exact and on the implied loss.

    Attributes
    ----------
    M : float
        The largest abs(h).
    gamma : float
        The smallest normalised edge |edge| / (mean weight * M), with which (WLA) holds.
    mean_weights : ndarray
        The mean boosting weight of each round.
    step_size : float
        The step a_f.
    exact : SurrogateCertificate
        The theorem on the exact surrogate F of the loss.
    implied : SurrogateCertificate
        The theorem on the margin loss that the link implies.
    sufficient_o1 : tuple of bool or None
        Which rounds meet the paper's sufficient conditions for (O1); None unless the loss is an alpha-loss.
    """

    M: float
    gamma: float
    mean_weights: Array
    step_size: float
    exact: SurrogateCertificate
    implied: SurrogateCertificate
    sufficient_o1: tuple[bool, ...] | None

    def summary(self) -> str:
        """Return the certificate in plain text.

        Returns
        -------
        str
            Several lines.
        """
        rounds = len(self.mean_weights)
        weights = f"mean weight {self.mean_weights[0]:.3g} to {self.mean_weights[-1]:.3g}"
        promised = sum(verdict != NOT_APPLICABLE for verdict in self.implied.verdicts)
        kept = "was broken" if VIOLATED in self.implied.verdicts else "was kept"
        fell = f"risk of the loss it descends {self.implied.first_risk:.4g} -> {self.implied.last_risk:.4g}"
        lines = [
            f"Convergence certificate over {rounds} rounds, step size {self.step_size:g}",
            f"  in short: {fell}; the theorem promised a decrease in {promised} of {rounds} rounds and {kept}",
            f"  weak learner: M = max |h| = {self.M:.4g}, smallest normalised edge gamma = {self.gamma:.4g}, {weights}",
        ]
        for one in (self.exact, self.implied):
            count = Counter(one.verdicts)
            tally = ", ".join(
                f"{count[verdict]} {verdict}" for verdict in (MET, VIOLATED, NOT_APPLICABLE) if count[verdict]
            )
            o2 = f"(O2) holds with pi = {one.step.pi:.3g}" if one.step.holds else "(O2) fails"
            constants = f"zeta = {one.step.zeta:.3g}, curvature = {one.step.curvature:.3g}, {o2}, Q = {one.Q:.3g}"
            lines += [
                f"  {one.name}: risk {one.first_risk:.4g} -> {one.last_risk:.4g}; bound on the decrease: {tally}",
                f"    {constants}; risk guaranteed after these rounds: {one.guaranteed_risk:.4g}",
            ]
        if self.sufficient_o1 is not None:
            lines.append(f"  the paper's sufficient conditions for (O1) hold in {sum(self.sufficient_o1)} rounds")
        return "\n".join(lines)

    __str__ = summary


def certify(
    rounds: Iterable[BoostingRound],
    link: Link,
    step_size: float,
    *,
    sample_weight: ArrayLike | None = None,
    start: ArrayLike | None = None,
) -> Certificate:
    """Certify finished rounds of PILBoost.

    Parameters
    ----------
    rounds : iterable of BoostingRound
        The rounds of `untwist.boosting.pilboost`, from the first on.
    link : Link
        The link that they were boosted with; its margin loss is convex, which that of log-odds is at alpha = 1 only.
    step_size : float
        The step a_f that they were boosted with.
    sample_weight : array_like, optional
        The weights of the examples, if the rounds had any.
    start : array_like, optional
        The margins y*H(x) before the first round; 0 as in the paper if not given. The theorem adds up what every round
        takes off the risk, so that it holds from any start, with the risk there in the place of F(0).

    Returns
    -------
    Certificate
        The constants of the run, and what the theorem says of every round.
    """
    if isinstance(link, LogitLink) and link.loss != AlphaLoss(1.0):
        raise ValueError(f"link must have a convex margin loss for a certificate, got {link!r}")
    step_size = check_positive("step_size", step_size)
    first_margins = np.zeros(1) if start is None else check_numbers("start", start)
    exact = _Ledger("exact surrogate F", CanonicalLink(link.loss))
    implied = _Ledger("margin loss of the link", link)
    largest_predictions, edges, mean_weights, outside_band = [], [], [], []
    margins: Array | None = None
    for one in rounds:
        before = np.broadcast_to(first_margins, one.margins.shape) if margins is None else margins
        margins = one.margins
        share = normalise_weights(sample_weight, before.size)
        if not math.isclose(one.leverage, step_size * one.edge, rel_tol=1e-6, abs_tol=1e-12):
            raise ValueError(
                f"rounds were not made with step_size {step_size:g}: {one.leverage:g} is not it times the edge"
            )
        largest_predictions.append(float(np.abs(one.agreement).max()))
        edges.append(one.edge)
        mean_weights.append(float(share @ one.weights))
        outside_band.append(_lies_outside_band(link, before))
        for ledger in (exact, implied):
            if not ledger.risks:
                ledger.begin(before, share)
            ledger.enter(one, before, share, step_size, largest_predictions[-1])
    if margins is None:
        raise ValueError("rounds must not be empty: there is nothing to certify")
    M = max(largest_predictions)
    weights = np.array(mean_weights)
    gamma = float(np.min(np.abs(edges) / (weights * M))) if M > 0 else 0.0
    sufficient = None
    if isinstance(link.loss, AlphaLoss):
        strong_edge = np.abs(edges) >= 0.14 * weights * M
        enough = strong_edge & (weights >= 0.4) & (abs(link.loss.alpha) >= 2.7)
        sufficient = tuple(bool(ok) for ok in enough & np.array(outside_band))
    return Certificate(
        M=M,
        gamma=gamma,
        mean_weights=weights,
        step_size=step_size,
        exact=exact.certify(step_size, M, gamma, weights, link),
        implied=implied.certify(step_size, M, gamma, weights, link),
        sufficient_o1=sufficient,
    )


class _Ledger:
    """What the rounds of a run did to the risk of one margin loss."""

    def __init__(self, name: str, link: Link) -> None:
        self.name = name
        self.link = link
        self.risks: list[float] = []
        self.rows: list[tuple[float, float, float, float]] = []

    def begin(self, margins: Array, share: Array) -> None:
        """Note the risk before the first round; where all margins are 0 no rounding of shares shows in it."""
        risk = share @ self.link.margin_loss(margins) if margins.any() else self.link.margin_loss(0.0)
        self.risks.append(float(risk))

    def enter(self, one: BoostingRound, before: Array, share: Array, step_size: float, M: float) -> None:
        """Note zeta, the curvature, the decrease of the risk and the bound on it for a round."""
        edge = float(share @ (one.agreement * self.link.weights(before)))
        gap = abs(edge - one.edge)
        zeta = gap / abs(one.edge) if one.edge else math.inf if gap else 0.0
        low = np.minimum(before, one.margins)
        high = np.maximum(before, one.margins)
        curvature = self.link.largest_curvature(low, high)
        self.risks.append(float(share @ self.link.margin_loss(one.margins)))
        decrease = self.risks[-2] - self.risks[-1]
        bracket = 1.0 - zeta - 0.5 * curvature * step_size * M**2
        self.rows.append((zeta, curvature, decrease, bracket * step_size * one.edge**2))

    def certify(
        self, step_size: float, M: float, gamma: float, mean_weights: Array, boosted_link: Link
    ) -> SurrogateCertificate:
        """Return the theorem on this margin loss."""
        zeta, curvature, decrease, bound = np.array(self.rows).T
        rounding = 1e-12 * max(1.0, self.risks[0])
        verdicts = tuple(
            NOT_APPLICABLE if not promised > 0 else MET if fell >= promised - rounding else VIOLATED
            for fell, promised in zip(decrease, bound, strict=True)
        )
        return SurrogateCertificate(
            name=self.name,
            zeta=zeta,
            curvature=curvature,
            decrease=decrease,
            bound=bound,
            verdicts=verdicts,
            first_risk=self.risks[0],
            last_risk=self.risks[-1],
            step=StepCondition(float(curvature.max()), step_size, M, float(zeta.max())),
            gamma=gamma,
            mean_weights=mean_weights,
            link=self.link,
            boosted_link=boosted_link,
        )


def _lies_outside_band(link: Link, margins: Array) -> bool:
    """Tell whether no margin falls into I_alpha = +-c*[1 - 1/alpha^4, 1] (Lemma "edgeALPHA"), where the links part."""
    if not isinstance(link.loss, AlphaLoss) or not math.isfinite(link.clip):
        return True
    sizes = np.abs(margins) / link.clip
    return not bool(((sizes >= 1.0 - abs(link.loss.alpha) ** -4.0) & (sizes <= 1.0)).any())
