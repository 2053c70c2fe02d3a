"""What an exported model computes: trees that add up to a score, and one formula from there to the clean posterior.

The formula is written once, in `Scoring.write_clean`, over terms that know how to write themselves down: as nodes of an
ONNX graph, as C, as Python. It follows `untwist.noise.posterior` to rounding; near the clip, where the posterior is
steepest, to the rounding of the score. Nothing in it overflows, divides by zero or takes a logarithm of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.classifier import find_model
from untwist.data.encoding import TableEncoder
from untwist.noise.posterior import TIE_BREAK, turns_labels_over
from untwist.noise.untwisting import REACH, TABLE
from untwist.theory.links import CanonicalLink
from untwist.theory.losses import AlphaLoss

__all__ = ["BELOW_CATEGORIES", "Scoring", "Term", "Writer", "numbers", "probabilities"]

#: No category is at most this: what a node without any category to the left compares with.
BELOW_CATEGORIES = -1.0

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


def numbers(model: Any, X: Any) -> Array:
    """Return rows as exported models take them.

    Parameters
    ----------
    model : PILBoostClassifier or FittedModel
        The model that is to predict them.
    X : table
        Whatever `predict` takes.

    Returns
    -------
    array
        float64, a category as its index, NaN where a value is missing or unknown.
    """
    fitted = find_model(model)
    return fitted.encoder.encode_dense(X, None if fitted is model else model)


def probabilities(model: Any, scores: ArrayLike) -> Array:
    """Return the clean probabilities of boosted scores.

    Parameters
    ----------
    model : PILBoostClassifier or FittedModel
        The model that was exported.
    scores : array-like
        What the models of `to_treelite` and `to_xgboost` give.

    Returns
    -------
    array
        A row for each score, a column for each class.
    """
    fitted = find_model(model)
    boosted = Scoring.from_model(fitted).sign * np.asarray(scores, dtype=np.float64)
    n_classes = len(fitted.classes)
    boosted = boosted.reshape(-1, n_classes) if n_classes > 2 else boosted.reshape(-1)
    return fitted.posterior.clean(fitted.posterior.decision(boosted))


@dataclass(frozen=True, eq=False)
class Scoring:
    """A fitted model as plain numbers.

    Parameters
    ----------
    forests : tuple of Forest
        One for two classes, else one per class.
    sign : float
        -1 where the score speaks for the first class, as a negative alpha makes it, else 1.
    alpha : float
        Without its sign.
    exact_link : bool
        Whether the link is the exact one.
    posterior_floor : float
        Posteriors are kept within [posterior_floor, 1 - posterior_floor].
    shift : float
        What class weights add to the log-odds.
    table : array or None
        The untwisted log-odds over those of the twisted posterior times `scale` plus `offset`; None where alpha alone
        untwists.
    scale, offset : float
        The calibration of the twisted log-odds.
    classes : array
        The labels.
    columns : list of str
        A line of text about each column.
    """

    forests: tuple[Forest, ...]
    sign: float
    alpha: float
    exact_link: bool
    posterior_floor: float
    shift: float
    table: Array | None
    scale: float
    offset: float
    classes: NDArray[Any]
    columns: list[str]

    @classmethod
    def from_model(cls, model: Any) -> Scoring:
        """Return what a fitted model computes.

        Parameters
        ----------
        model : PILBoostClassifier or FittedModel
            A fitted model.

        Returns
        -------
        Scoring
            Its trees and the numbers of its formula.

        Raises
        ------
        ValueError
            If its weak learners are no trees, or its loss is not the alpha-loss.
        """
        fitted = find_model(model)
        forests = fitted.forests
        posterior = fitted.posterior
        untwisting = posterior.untwisting
        loss = fitted.link.loss
        if not isinstance(loss, AlphaLoss):
            raise ValueError(f"model must boost the alpha-loss to be exported or explained, got {loss!r}")
        return cls(
            forests=forests,
            sign=-1.0 if untwisting is None and turns_labels_over(fitted.link) else 1.0,
            alpha=abs(loss.alpha),
            exact_link=isinstance(fitted.link, CanonicalLink),
            posterior_floor=posterior.floor,
            shift=posterior.shift,
            table=None if untwisting is None else untwisting.clean_table,
            scale=1.0 if untwisting is None else untwisting.scale,
            offset=0.0 if untwisting is None else untwisting.offset,
            classes=fitted.classes,
            columns=_describe_columns(fitted.encoder),
        )

    @property
    def inverse_clip(self) -> float:
        """1 - 1/alpha: one over the score at which the clipped link ends, for an alpha above 1; 0 where alpha is 1."""
        value = 1.0 if math.isinf(self.alpha) else (self.alpha - 1.0) / self.alpha
        return 0.0 if abs(value) < SMALLEST_INVERSE_CLIP else value

    def describe(self) -> list[str]:
        """Return what goes in and comes out, in lines of text.

        Returns
        -------
        list of str
            One line for each column and each class, with a line before them.
        """
        classes = [f"  class {index}: {label!a}" for index, label in enumerate(self.classes.tolist())]
        return [
            "A model of untwist. In goes a row of numbers, NaN where a value is missing or unknown:",
            *self.columns,
            "Out come the clean probabilities of the classes:",
            *classes,
        ]

    def write_clean(self, score: Term) -> tuple[Term, Term]:
        """Write the decision score and the clean posterior, within its limits.

        Parameters
        ----------
        score : Term
            The sum of the leaves that a row reaches.

        Returns
        -------
        decision : Term
            What `decision_function` gives.
        posterior : Term
            The clean posterior of the second class, or of the class in question beyond two.
        """
        write = score.writer.write
        size = score.define("size", write("abs", score))
        if self.table is None:
            decision = score if self.sign > 0 else score.define("turned", -1.0 * score)
            half_log_odds = 0.5 * self._write_log_odds(size)
            posterior = 0.5 + write("copysign", 0.5 * write("tanh", half_log_odds), decision)
        else:
            twisted = write("copysign", self._write_twisted_log_odds(size), score)
            tie_break = TIE_BREAK * score / (1.0 + size)
            calibrated = self.scale * (twisted + tie_break - self.shift) + self.offset
            decision = self._write_untwisted(calibrated)
            posterior = 0.5 + 0.5 * write("tanh", 0.5 * decision)
        within = write("min", write("max", posterior, self.posterior_floor), 1.0 - self.posterior_floor)
        return decision, score.define("posterior", within)

    def write_share(self, posterior: Term, decision: Term) -> Term:
        """Write what a class weighs before all are scaled to sum to one, where there are more than two.

        Parameters
        ----------
        posterior, decision : Term
            What `write_clean` gave for the class.

        Returns
        -------
        Term
            The class's share, up to the scale.
        """
        size = decision.writer.write("abs", decision)
        return posterior + TIE_BREAK * self.posterior_floor * decision / (1.0 + size)

    def _write_twisted_log_odds(self, size: Term) -> Term:
        """Write the size of the twisted log-odds, within the limits of posteriors."""
        write = size.writer.write
        most = math.log(1.0 / self.posterior_floor - 1.0)
        if math.isinf(self.alpha):
            # Up to the clip, which is at 1, the posterior is one half.
            is_clipped = write("floor", write("min", size, 1.0))
            return most * is_clipped
        return write("min", self._write_log_odds(size) / self.alpha, most)

    def _write_log_odds(self, size: Term) -> Term:
        """Write the log-odds of the clean posterior of |alpha| at the size of a score, by either link."""
        write = size.writer.write
        define = size.define
        inverse_clip = self.inverse_clip
        if self.alpha < 1 and not self.exact_link:
            size = define("scaled", 2.0**inverse_clip * size)
        decay = size
        if inverse_clip:
            left = define("left", write("max", 1.0 - inverse_clip * size, SMALLEST_LOGARITHM_ARGUMENT))
            decay = define("decay", -1.0 / inverse_clip * write("log", left))
        if not self.exact_link:
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

    def _write_untwisted(self, odds: Term) -> Term:
        """Write `Untwisting.clean_log_odds`: linear between the points of the table, with slope 1 beyond its ends."""
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


class Writer(Protocol):
    """Writes a formula down in some language."""

    def write(self, operation: str, *terms: Term | float) -> Term:
        """Write what an operation makes of terms: +, -, *, / or a function.

        The functions are those of C without their f, copysign of two with a first one that is not negative, and
        look_up, which takes the index of a value in the table of a `Scoring`.

        Parameters
        ----------
        operation : str
            The sign or the name of the operation.
        *terms : Term or float
            What it is applied to.

        Returns
        -------
        Term
            The result.
        """

    def define(self, name: str, term: Term) -> Term:
        """Give a term a name, so that it is written but once.

        Parameters
        ----------
        name : str
            What to call it; the writer may add to it.
        term : Term
            The term.

        Returns
        -------
        Term
            The same number by its name.
        """


def _make_operator(operation: str, *, swapped: bool = False) -> Callable[[Term, Term | float], Term]:
    def operate(self: Term, other: Term | float) -> Term:
        return self.writer.write(operation, *((other, self) if swapped else (self, other)))

    return operate


@dataclass(frozen=True)
class Term:
    """A number in a formula that is being written down; `text` is what its writer calls it."""

    writer: Writer
    text: str

    __add__ = _make_operator("+")
    __radd__ = _make_operator("+", swapped=True)
    __sub__ = _make_operator("-")
    __rsub__ = _make_operator("-", swapped=True)
    __mul__ = _make_operator("*")
    __rmul__ = _make_operator("*", swapped=True)
    __truediv__ = _make_operator("/")
    __rtruediv__ = _make_operator("/", swapped=True)

    def define(self, name: str, term: Term) -> Term:
        """Give a term a name in this one's formula.

        Parameters
        ----------
        name, term
            As for `Writer.define`.

        Returns
        -------
        Term
            The same number by its name.
        """
        return self.writer.define(name, term)


def _describe_columns(encoder: TableEncoder) -> list[str]:
    """Return a line for each column: its index and name, with the numbers of its categories."""
    names = [None] * encoder.n_features if encoder.feature_names is None else encoder.feature_names
    lines = []
    for column, name in enumerate(names):
        line = f"  {column}: {'a number' if name is None else ascii(str(name))}"
        known = encoder.schema.categories.get(column)
        if known is not None:
            line += ", " + ", ".join(f"{code} = {category!a}" for code, category in enumerate(known))
        lines.append(line)
    return lines
