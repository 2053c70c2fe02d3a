"""From boosted scores to clean posteriors, written down once for all languages.

A formula is written over terms that know how to write themselves down: as nodes of an ONNX graph, as C, as Python. The
formulas follow `untwist.noise.posterior` to rounding; near the clip, where the posterior is steepest, to the rounding
of the score. Nothing in them overflows, divides by zero or takes a logarithm of zero.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from untwist.arguments import Array
from untwist.export.terms import Term
from untwist.model import FittedModel
from untwist.noise.model import NoiseFormula
from untwist.noise.posterior import TIE_BREAK, turns_labels_over
from untwist.noise.two_classes import REACH, TABLE
from untwist.theory.links import find_link_name
from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import SoftmaxLink

#: What is left before the clip counts as at least this, so that it has a logarithm.
SMALLEST_LOGARITHM_ARGUMENT = 1e-300

#: A number closer to 0 than this counts as an `inverse_clip` of 0: dividing by it would make more of rounding.
SMALLEST_INVERSE_CLIP = 1e-7

#: Below this alpha the powers in the exact link overflow.
LOWEST_EXACT_ALPHA = 0.08

#: Below an alpha of 1, clean log-odds are computed up to this decay.
MOST_DECAY = 60.0

#: This many steps of Newton's method give the exact link to full precision at every score, for an alpha above 1.
NEWTON_STEPS = 4

#: Below an alpha of 1 the exact link takes this many steps of Newton's method.
NEWTON_STEPS_BELOW_ONE = 8


class Formula(Protocol):
    """From the score of a row to its clean posterior; of several classes, from a score for each."""

    @property
    def sign(self) -> float:
        """-1 where a score speaks against its class, as a negative alpha makes it, else 1."""

    @property
    def table(self) -> Array | None:
        """What look_up of a `Writer` looks up, if the formula does."""

    def write_clean(self, score: Term) -> tuple[Term, Term]:
        """Write the decision score and the clean posterior.

        Parameters
        ----------
        score : Term
            The sum of the leaves that a row reaches; one for each class beyond two.

        Returns
        -------
        decision : Term
            What `decision_function` gives.
        posterior : Term
            The clean posterior of the second class; of several classes, of each.
        """


def choose_formula(fitted: FittedModel) -> Formula:
    """Return the formula that a fitted model computes after its trees.

    Parameters
    ----------
    fitted : FittedModel
        The model.

    Returns
    -------
    Formula
        The formula with the model's numbers. A ValueError where its loss is not the alpha-loss.
    """
    loss = fitted.link.loss
    if not isinstance(loss, AlphaLoss):
        raise ValueError(f"model must boost the alpha-loss to be exported or explained, got {loss!r}")
    posterior = fitted.posterior
    link = None
    if not isinstance(fitted.link, SoftmaxLink):
        link = LinkFormula(abs(loss.alpha), find_link_name(fitted.link), posterior.floor)
    if posterior.noise is not None and len(fitted.classes) > 2:
        return MatrixFormula(link, posterior.floor, posterior.class_weights, posterior.noise.formula())
    if link is None:
        return TiltedSoftmaxFormula(loss.alpha, posterior.floor)
    return ScoreFormula(
        link=link,
        sign=-1.0 if posterior.noise is None and turns_labels_over(posterior.link) else 1.0,
        shift=posterior.shift,
        noise=NoiseFormula() if posterior.noise is None else posterior.noise.formula(),
    )


# ---- one score ----


@dataclass(frozen=True)
class LinkFormula:
    """A link of the alpha-loss.

    Parameters
    ----------
    alpha : float
        Without its sign.
    name : str
        Which of `untwist.theory.links.LINKS` it is.
    floor : float
        Posteriors are kept within [floor, 1 - floor].
    """

    alpha: float
    name: str
    floor: float

    @property
    def inverse_clip(self) -> float:
        """1 - 1/alpha: one over the score at which the clipped link ends, for an alpha above 1; 0 where alpha is 1."""
        value = 1.0 if math.isinf(self.alpha) else (self.alpha - 1.0) / self.alpha
        return 0.0 if abs(value) < SMALLEST_INVERSE_CLIP else value

    def write_inverse(self, score: Term) -> Term:
        """Write the twisted posterior, within its limits.

        Parameters
        ----------
        score : Term
            The boosted score.

        Returns
        -------
        Term
            The posterior.
        """
        write = score.writer.write
        size = score.define("size", write("abs", score))
        half_log_odds = 0.5 * self.write_twisted_log_odds(size)
        return 0.5 + write("copysign", 0.5 * write("tanh", half_log_odds), score)

    def write_twisted_log_odds(self, size: Term) -> Term:
        """Write the size of the twisted log-odds, within the limits of posteriors."""
        write = size.writer.write
        most = math.log(1.0 / self.floor - 1.0)
        if math.isinf(self.alpha):
            # Up to the clip, which is at 1, the posterior is one half.
            is_clipped = write("floor", write("min", size, 1.0))
            return most * is_clipped
        return write("min", self.write_log_odds(size) / self.alpha, most)

    def write_log_odds(self, size: Term) -> Term:
        """Write the log-odds of the clean posterior of |alpha| at the size of a score."""
        if self.name == "logit":
            return size
        write = size.writer.write
        define = size.define
        inverse_clip = self.inverse_clip
        if self.alpha < 1 and self.name == "clipped":
            size = define("scaled", 2.0**inverse_clip * size)
        decay = size
        if inverse_clip:
            left = define("left", write("max", 1.0 - inverse_clip * size, SMALLEST_LOGARITHM_ARGUMENT))
            decay = define("decay", -1.0 / inverse_clip * write("log", left))
        if self.name == "clipped":
            return define("odds", decay + write("log", 2.0 - write("exp", -1.0 * decay)))
        return self._write_exact_log_odds(decay) if inverse_clip else decay

    def _write_exact_log_odds(self, decay: Term) -> Term:
        """Write the log-odds that the exact link has at a decay: Newton's method, from above."""
        write = decay.writer.write
        define = decay.define
        inverse_clip = self.inverse_clip
        if self.alpha < LOWEST_EXACT_ALPHA:
            lowest = f"the exact link cannot be exported below alpha = {LOWEST_EXACT_ALPHA}"
            raise ValueError(f"{lowest}, got {self.alpha:g}")
        if inverse_clip < 0:
            decay = define("decay", write("min", decay, MOST_DECAY))
        odds = define("odds", write("min", 2.0**inverse_clip * decay, decay + math.log(2.0)))
        for _ in range(NEWTON_STEPS if inverse_clip > 0 else NEWTON_STEPS_BELOW_ONE):
            log_p = define("log_p", -1.0 * write("log", 1.0 + write("exp", -1.0 * odds)))
            log_q = define("log_q", log_p - odds)
            p_power = define("power", write("exp", inverse_clip * log_p))
            q_power = define("power", write("exp", inverse_clip * log_q))
            gap = define("gap", (1.0 - p_power) + q_power)
            slope = define("slope", (p_power * write("exp", log_q) + q_power * write("exp", log_p)) / gap)
            error = -1.0 / inverse_clip * write("log", gap) - decay
            odds = define("odds", odds - error / slope)
        return odds


@dataclass(frozen=True, eq=False)
class ScoreFormula:
    """The posterior of two classes, or of one class against the rest.

    Parameters
    ----------
    link : LinkFormula
        The link that the scores were boosted with.
    sign : float
        -1 where the score speaks for the first class, as a negative alpha makes it, else 1.
    shift : float
        What class weights add to the log-odds.
    noise : NoiseFormula
        The noise to undo; without a table where alpha alone untwists.
    """

    link: LinkFormula
    sign: float
    shift: float
    noise: NoiseFormula

    @property
    def table(self) -> Array | None:
        """The clean log-odds over the twisted ones, where there are such."""
        return self.noise.table

    def write_clean(self, score: Term) -> tuple[Term, Term]:
        """Write the decision score and the clean posterior of the class in question, within its limits.

        Parameters
        ----------
        score : Term
            The sum of the leaves that a row reaches; of each class against the rest where there are several.

        Returns
        -------
        decision, posterior : Term
            As for `Formula`.
        """
        write = score.writer.write
        size = score.define("size", write("abs", score))
        if self.table is None:
            decision = score if self.sign > 0 else score.define("turned", -1.0 * score)
            half_log_odds = 0.5 * self.link.write_log_odds(size)
            posterior = 0.5 + write("copysign", 0.5 * write("tanh", half_log_odds), decision)
        else:
            twisted = write("copysign", self.link.write_twisted_log_odds(size), score)
            tie_break = TIE_BREAK * score / (1.0 + size)
            calibrated = self.noise.scale * (twisted + tie_break - self.shift) + self.noise.offset
            decision = self._write_untwisted(calibrated)
            posterior = 0.5 + 0.5 * write("tanh", 0.5 * decision)
        if score.per_class:
            return decision, _write_shares(posterior, decision, self.link.floor)
        return decision, score.define("posterior", _write_within(posterior, self.link.floor))

    def _write_untwisted(self, odds: Term) -> Term:
        """Write `TwoClassNoise.clean_log_odds`: linear between the points of the table, with slope 1 beyond them."""
        write = odds.writer.write
        define = odds.define
        odds = define("twisted", odds)
        inside = define("inside", write("min", write("max", odds, -REACH), REACH))
        position = define("position", (inside + REACH) / float(TABLE[1] - TABLE[0]))
        cell = define("cell", write("min", write("floor", position), len(TABLE) - 2.0))
        below = define("below", write("look_up", cell + 0.0))
        above = define("above", write("look_up", cell + 1.0))
        between = below + (above - below) * (position - cell)
        return define("decision", between + (odds - inside) + self.shift)


# ---- all classes together ----


@dataclass(frozen=True)
class TiltedSoftmaxFormula:
    """The posteriors of classes that were boosted together, where alpha alone untwists.

    Parameters
    ----------
    alpha : float
        The alpha of the loss.
    floor : float
        Posteriors are kept at or above this, before they are scaled to sum to one.
    """

    alpha: float
    floor: float
    sign: float = 1.0
    table: None = None

    def write_clean(self, score: Term) -> tuple[Term, Term]:
        """Write the decision scores and the clean posteriors.

        Parameters
        ----------
        score : Term
            The sums of the leaves that a row reaches.

        Returns
        -------
        decision, posterior : Term
            As for `Formula`.
        """
        return score, _write_shares(_write_softmax(self.alpha * score), score, self.floor)


@dataclass(frozen=True, eq=False)
class MatrixFormula:
    """The posteriors of several classes whose labels follow a transition matrix, or one of several.

    Parameters
    ----------
    link : LinkFormula or None
        The link of scores of each class against the rest; None for classes that were boosted together.
    floor : float
        Posteriors are kept at or above this, before they are scaled to sum to one.
    class_weights : array
        What the rows of each class were multiplied by.
    noise : NoiseFormula
        The noise to undo.
    """

    link: LinkFormula | None
    floor: float
    class_weights: Array
    noise: NoiseFormula
    sign: float = 1.0
    table: None = None

    def write_clean(self, score: Term) -> tuple[Term, Term]:
        """Write the decision scores, which are logarithms of the clean posteriors, and these.

        Parameters
        ----------
        score : Term
            The sums of the leaves that a row reaches.

        Returns
        -------
        decision, posterior : Term
            As for `Formula`.
        """
        write = score.writer.write
        weights = np.where(self.class_weights > 0, self.class_weights, 1.0)
        inverse = _write_softmax(score) if self.link is None else self.link.write_inverse(score)
        twisted = _write_shares(inverse, score, self.floor)
        if (weights != 1.0).any():
            twisted = _write_scaled_to_one(twisted / weights)
        clean = write("max", self._write_mean(twisted), sys.float_info.min)
        weighted = score.define("weighted", write("log", clean) + np.log(weights))
        log_total = write("log", write("total", write("exp", weighted)))
        decision = score.define("decision", weighted - log_total)
        return decision, _write_shares(write("exp", decision), decision, self.floor)

    def _write_mean(self, twisted: Term) -> Term:
        """Write `SeveralClassesNoise.clean`: the mean over the components."""
        twisted = twisted.define("twisted", twisted)
        parts = [self._write_component(twisted, *numbers) * weight for weight, *numbers in self.noise.components]
        mean = parts[0]
        for part in parts[1:]:
            mean = mean.define("mean", mean + part)
        return mean

    def _write_component(self, twisted: Term, matrix: Array, slope: Array, offset: Array) -> Term:
        """Write `untwist_by_matrix`."""
        write = twisted.writer.write
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        plain = twisted.define("plain", write("max", twisted @ inverse, self.noise.least))
        log_plain = write("log", plain) - write("log", write("total", plain))
        return _write_softmax(log_plain * slope + offset)


def _write_softmax(score: Term) -> Term:
    """Write posteriors whose logarithms are the scores, up to a constant."""
    score = score.define("exponent", score)
    write = score.writer.write
    odds = score.define("odds", write("exp", score - write("largest", score)))
    return odds / write("total", odds)


def _write_within(posterior: Term, floor: float) -> Term:
    write = posterior.writer.write
    return write("min", write("max", posterior, floor), 1.0 - floor)


def _write_shares(posterior: Term, score: Term, floor: float) -> Term:
    """Write posteriors within their limits that sum to one; scores tell apart what the limits make equal."""
    tie_break = TIE_BREAK * floor * score / (1.0 + score.writer.write("abs", score))
    return _write_scaled_to_one(_write_within(posterior, floor) + tie_break)


def _write_scaled_to_one(shares: Term) -> Term:
    shares = shares.define("share", shares)
    return shares / shares.writer.write("total", shares)
