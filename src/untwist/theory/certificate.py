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

import numpy as np
from numpy.typing import ArrayLike

from untwist.arguments import Array, distribution, positive, real
from untwist.boosting.algorithm import Round
from untwist.theory.links import CanonicalLink, Link
from untwist.theory.losses import AlphaLoss

__all__ = ["Certificate", "StepCondition", "SurrogateCertificate", "certify", "step_condition"]

MET, VIOLATED, NOT_APPLICABLE = "met", "violated", "not applicable"


@dataclass(frozen=True)
class StepCondition:
    """(O2), two-sided, for a step size: curvature*a_f*M^2 within (1 - zeta) * [1 - pi, 1 + pi] for some pi < 1."""

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
    """What (O2) says of a step for a link, whatever the margins: for the alpha-loss above alpha = 2 it always fails.

    >>> from untwist.theory.links import ClippedLink, default_step_size
    >>> for alpha in (1.1, 2.0, 4.0):
    ...     link = ClippedLink(AlphaLoss(alpha))
    ...     condition = step_condition(link, default_step_size(link))
    ...     print(alpha, condition.holds, round(condition.pi, 3))
    1.1 True 0.0
    2.0 True 0.414
    4.0 False inf
    """
    step_size, M, zeta = positive("step_size", step_size), positive("M", M), real("zeta", zeta, low=0.0)
    return StepCondition(link.largest_curvature(-math.inf, math.inf), step_size, M, zeta)


@dataclass(frozen=True)
class SurrogateCertificate:
    """The theorem on one margin loss.

    Per round: `zeta`, the largest `curvature` on the way, the `decrease` of the risk, the `bound` on it (a promise
    where positive) and the verdict. For the run: the risk before the first and after the last round, `step` for (O2)
    with the run's largest zeta and curvature, and `gamma` and `mean_weights` of the weak learner.
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

    @property
    def Q(self) -> float:
        """2*F''* / (gamma^2 * (1-zeta)^2 * (1-pi^2)); infinite where (O1) or (O2) fails."""
        slack = (1.0 - self.step.zeta) ** 2 * (1.0 - self.step.pi**2) if self.step.holds else 0.0
        return 2.0 * self.step.curvature / (self.gamma**2 * slack) if self.gamma**2 * slack > 0 else math.inf

    @property
    def guaranteed_risk(self) -> float:
        """The F(z*) that the first part of the theorem promises after this run: F(0) - sum(mean weights^2) / Q."""
        return max(0.0, self.first_risk - float(np.sum(self.mean_weights**2)) / self.Q)

    def rounds_for(self, theta: float, epsilon: float) -> float:
        """Rounds after which, at some round, at most a share `epsilon` has margin <= theta (second part).

        Domain: theta >= 0 below the clip, epsilon in (0, 1].
        """
        theta, epsilon = real("theta", theta, low=0.0), real("epsilon", epsilon, low=0.0, open_low=True)
        if not theta < self.link.clip:
            raise ValueError(f"theta must be below the clip {self.link.clip:g}, got {theta}")
        if epsilon > 1:
            raise ValueError(f"epsilon must be at most 1, got {epsilon}")
        weight = float(self.link.weights(theta))
        gap = self.first_risk - epsilon * float(self.link.margin_loss(theta))
        enough = (epsilon * weight) ** 2
        return max(0.0, self.Q * gap / enough) if enough > 0 else math.inf


@dataclass(frozen=True)
class Certificate:
    """A run's certificate: the weak learner's constants, and the theorem on the exact and on the implied loss.

    `M` is the largest abs(h), `gamma` the smallest normalised edge |edge| / (mean weight * M), with which (WLA) holds;
    `sufficient_o1` says which rounds meet the paper's sufficient conditions for (O1), None unless for the alpha-loss.
    """

    M: float
    gamma: float
    mean_weights: Array
    step_size: float
    exact: SurrogateCertificate
    implied: SurrogateCertificate
    sufficient_o1: tuple[bool, ...] | None

    def summary(self) -> str:
        """The certificate in plain text."""
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
    rounds: Iterable[Round], link: Link, step_size: float, *, sample_weight: ArrayLike | None = None
) -> Certificate:
    """The certificate of finished `rounds` of `pilboost` with `link` and `step_size`."""
    step_size = positive("step_size", step_size)
    exact_link = CanonicalLink(link.loss)
    links = (exact_link, link)
    rows: dict[Link, list[tuple[float, float, float, float]]] = {one: [] for one in links}
    risks: dict[Link, list[float]] = {one: [float(one.margin_loss(0.0))] for one in links}
    M, edges, mean_weights, outside_band = [], [], [], []
    margins: Array | None = None
    for one in rounds:
        before = np.zeros_like(one.margins) if margins is None else margins
        margins = one.margins
        share = distribution(sample_weight, before.size)
        if not math.isclose(one.leverage, step_size * one.edge, rel_tol=1e-6, abs_tol=1e-12):
            raise ValueError(
                f"rounds were not made with step_size {step_size:g}: {one.leverage:g} is not it times the edge"
            )
        M.append(float(np.abs(one.agreement).max()))
        edges.append(one.edge)
        mean_weights.append(float(share @ one.weights))
        outside_band.append(_outside_band(link, before))
        for kind in links:
            edge = float(share @ (one.agreement * kind.weights(before)))
            gap = abs(edge - one.edge)
            zeta = gap / abs(one.edge) if one.edge else math.inf if gap else 0.0
            curvature = kind.largest_curvature(np.minimum(before, margins), np.maximum(before, margins))
            risks[kind].append(float(share @ kind.margin_loss(margins)))
            bracket = 1.0 - zeta - 0.5 * curvature * step_size * M[-1] ** 2
            rows[kind].append((zeta, curvature, risks[kind][-2] - risks[kind][-1], bracket * step_size * one.edge**2))
    if margins is None:
        raise ValueError("rounds must not be empty: there is nothing to certify")
    weights = np.array(mean_weights)
    gamma = float(np.min(np.abs(edges) / (weights * max(M)))) if max(M) > 0 else 0.0

    def surrogate(name: str, kind: Link) -> SurrogateCertificate:
        zeta, curvature, decrease, bound = np.array(rows[kind]).T
        rounding = 1e-12 * max(1.0, risks[kind][0])
        verdicts = tuple(
            NOT_APPLICABLE if not promised > 0 else MET if fell >= promised - rounding else VIOLATED
            for fell, promised in zip(decrease, bound, strict=True)
        )
        step = StepCondition(float(curvature.max()), step_size, max(M), float(zeta.max()))
        ends = risks[kind][0], risks[kind][-1]
        return SurrogateCertificate(name, zeta, curvature, decrease, bound, verdicts, *ends, step, gamma, weights, kind)

    sufficient = None
    if isinstance(link.loss, AlphaLoss):
        enough = (np.abs(edges) >= 0.14 * weights * max(M)) & (weights >= 0.4) & (abs(link.loss.alpha) >= 2.7)
        sufficient = tuple(bool(ok) for ok in enough & np.array(outside_band))
    return Certificate(
        M=max(M),
        gamma=gamma,
        mean_weights=weights,
        step_size=step_size,
        exact=surrogate("exact surrogate F", exact_link),
        implied=surrogate("margin loss of the link", link),
        sufficient_o1=sufficient,
    )


def _outside_band(link: Link, margins: Array) -> bool:
    """Whether no margin falls into I_alpha = +-c*[1 - 1/alpha^4, 1] (Lemma "edgeALPHA"), where the links part."""
    if not isinstance(link.loss, AlphaLoss) or not math.isfinite(link.clip):
        return True
    sizes = np.abs(margins) / link.clip
    return not bool(((sizes >= 1.0 - abs(link.loss.alpha) ** -4.0) & (sizes <= 1.0)).any())
