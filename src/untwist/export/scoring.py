"""What an exported model computes: trees that add up to a score, and one formula from there to the clean posterior.

The formula is written once, in `Scoring.clean`, over terms that know how to write themselves down: as nodes of an ONNX
graph, as C, as Python. It follows `PILBoostClassifier.predict_proba` to rounding; near the clip, where the posterior
is steepest, to the rounding of the score. Nothing in it overflows, divides by zero or takes a logarithm of zero.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.classifier import PILBoostClassifier
from untwist.noise.untwisting import REACH, TABLE
from untwist.theory.links import CanonicalLink
from untwist.theory.losses import AlphaLoss

__all__ = ["Scoring", "Term", "Writer", "members", "needed", "numbers", "probabilities"]

TINY = 1e-300  # what is left before the clip counts as at least this, so that it has a logarithm
NO_RATE = 1e-7  # alpha this close to 1 is 1: the error is smaller than what dividing by the rate would make of rounding
LOWEST_EXACT = 0.08  # below this alpha the powers in the exact link overflow
NEWTON_STEPS, NEWTON_STEPS_BELOW_ONE = 4, 8  # enough for full precision at every score


def numbers(model: PILBoostClassifier, X: Any) -> Array:
    """The rows of X as exported models take them: float64, a category as its index, NaN where missing or unknown."""
    check_is_fitted(model, "_ensembles")
    rows = model._rows(X)
    return np.ascontiguousarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def probabilities(model: PILBoostClassifier, scores: ArrayLike) -> Array:
    """The clean probabilities of every class at the boosted scores that `to_treelite` gives; one column per class."""
    boosted = Scoring.of(model).sign * np.asarray(scores, dtype=np.float64)
    several = len(model.classes_) > 2
    boosted = boosted.reshape(-1, len(model.classes_)) if several else boosted.reshape(-1)
    return model._clean(model._oriented(boosted))


def needed(package: str, purpose: str, extra: str | None = None) -> Any:
    """A package that is optional; an ImportError says what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name, extra = package.split(".")[0], extra or package.split(".")[0]
        raise ImportError(f'{purpose} needs {name}: pip install "untwist[{extra}]"') from error


def members(forest: Forest, node: int) -> list[int]:
    """The categories that go left at a node that splits by a set."""
    words = forest.codes[4 * forest.set[node] : 4 * forest.set[node] + 4]
    return np.flatnonzero(np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")).tolist()


@dataclass(frozen=True)
class Scoring:
    """A fitted model as plain numbers.

    Each class beyond two has a forest. `sign` is -1 where the score speaks for the first class, as a negative alpha
    makes it; `alpha` is positive. `least` and 1 - `least` are the limits of posteriors, `shift` is what class weights
    add to the log-odds, `table` the untwisted log-odds over those of the twisted posterior times `scale` plus `offset`
    (None where alpha alone untwists). `columns` and `classes` describe what goes in and comes out.
    """

    forests: list[Forest]
    sign: float
    alpha: float
    exact: bool
    least: float
    shift: float
    table: Array | None
    scale: float
    offset: float
    classes: NDArray[Any]
    columns: list[str]

    @classmethod
    def of(cls, model: PILBoostClassifier) -> Scoring:
        """That of a fitted model of the compiled engine."""
        if not isinstance(model, PILBoostClassifier):
            raise ValueError(f"model must be a PILBoostClassifier (of a pipeline the last step), got {model!r:.100}")
        check_is_fitted(model, "_ensembles")
        forests = [one.forest for one in model._ensembles if one.forest is not None]
        if not forests:
            raise ValueError('model must be one of the compiled engine: without estimator, loss or engine="reference"')
        untwisting, loss = model._untwisting, model.link_.loss
        assert isinstance(loss, AlphaLoss)  # the compiled engine boosts no other
        turned = loss.alpha < 0 and untwisting is None
        return cls(
            forests=forests,
            sign=-1.0 if turned else 1.0,
            alpha=abs(loss.alpha),
            exact=isinstance(model.link_, CanonicalLink),
            least=1.0 / (model._n_samples + 2.0),
            shift=model._shift,
            table=None if untwisting is None else untwisting.clean_table,
            scale=1.0 if untwisting is None else untwisting.scale,
            offset=0.0 if untwisting is None else untwisting.offset,
            classes=model.classes_,
            columns=_columns(model),
        )

    @property
    def rate(self) -> float:
        """1 - 1/alpha; 0 where alpha is 1."""
        rate = 1.0 if math.isinf(self.alpha) else (self.alpha - 1.0) / self.alpha
        return 0.0 if abs(rate) < NO_RATE else rate

    def description(self) -> list[str]:
        """What goes in and comes out, in lines of text."""
        what = [f"  class {index}: {label!a}" for index, label in enumerate(self.classes.tolist())]
        return [
            "A model of untwist. In goes a row of numbers, NaN where a value is missing or unknown:",
            *self.columns,
            "Out come the clean probabilities of the classes:",
            *what,
        ]

    def clean(self, score: Term) -> tuple[Term, Term]:
        """The decision score and the clean posterior, within its limits, at a score of the trees."""
        write = score.writer.write
        size = score.named("size", write("abs", score))
        if self.table is None:
            decision = score if self.sign > 0 else score.named("turned", -1.0 * score)
            posterior = 0.5 + write("copysign", 0.5 * write("tanh", 0.5 * self._log_odds(size)), decision)
        else:
            most = math.log(1.0 / self.least - 1.0)
            if math.isinf(self.alpha):  # a half up to the clip, at 1
                odds = most * write("floor", write("min", size, 1.0))
            else:
                odds = write("min", self._log_odds(size) / self.alpha, most)
            beyond = 1e-6 * score / (1.0 + size)  # as in the classifier: beyond the clip scores still tell rows apart
            twisted = write("copysign", odds, score) + beyond - self.shift
            decision = self._untwisted(self.scale * twisted + self.offset)
            posterior = 0.5 + 0.5 * write("tanh", 0.5 * decision)
        within = write("min", write("max", posterior, self.least), 1.0 - self.least)
        return decision, score.named("posterior", within)

    def share(self, posterior: Term, decision: Term) -> Term:
        """What a class beyond two weighs before all are scaled to sum to one."""
        return posterior + 1e-6 * self.least * decision / (1.0 + decision.writer.write("abs", decision))

    def _log_odds(self, size: Term) -> Term:
        """The log-odds of the clean posterior of |alpha| at the size of a score: `clipped_logit`, `exact_logit`."""
        write, named, rate = size.writer.write, size.named, self.rate
        if self.alpha < 1 and not self.exact:
            size = named("scaled", 2.0**rate * size)
        decay = size
        if rate:
            left = named("left", write("max", 1.0 - rate * size, TINY))
            decay = named("decay", -1.0 / rate * write("log", left))
        if not self.exact:
            return named("odds", decay + write("log", 2.0 - write("exp", -1.0 * decay)))
        if not rate:
            return decay
        if self.alpha < LOWEST_EXACT:
            raise ValueError(f"the exact link cannot be exported below alpha = {LOWEST_EXACT}, got {self.alpha:g}")
        if rate < 0:
            decay = named("decay", write("min", decay, 60.0))
        odds = named("odds", write("min", 2.0**rate * decay, decay + math.log(2.0)))
        for _ in range(NEWTON_STEPS if rate > 0 else NEWTON_STEPS_BELOW_ONE):
            log_p = named("log_p", -1.0 * write("log", 1.0 + write("exp", -1.0 * odds)))
            log_q = named("log_q", log_p - odds)
            p_power, q_power = (named("power", write("exp", rate * each)) for each in (log_p, log_q))
            gap = named("gap", (1.0 - p_power) + q_power)
            slope = named("slope", (p_power * write("exp", log_q) + q_power * write("exp", log_p)) / gap)
            odds = named("odds", odds - (-1.0 / rate * write("log", gap) - decay) / slope)
        return odds

    def _untwisted(self, odds: Term) -> Term:
        """`Untwisting.clean_log_odds`: linear between the points of the table, with slope 1 beyond its ends."""
        write, named = odds.writer.write, odds.named
        odds = named("twisted", odds)
        inside = named("inside", write("min", write("max", odds, -REACH), REACH))
        place = named("place", (inside + REACH) / float(TABLE[1] - TABLE[0]))
        cell = named("cell", write("min", write("floor", place), len(TABLE) - 2.0))
        below, above = (named(name, write("look_up", cell + step)) for name, step in (("below", 0.0), ("above", 1.0)))
        between = below + (above - below) * (place - cell)
        return named("decision", between + (odds - inside) + self.shift)


class Writer(Protocol):
    """Writes a formula down in some language."""

    def write(self, operation: str, *terms: Term | float) -> Term:
        """What an operation makes of terms: +, -, *, / or a function.

        The functions are those of C without their f, copysign of two with a first one that is not negative, and
        look_up, which takes the place of a value in the table of a `Scoring`.
        """

    def named(self, name: str, term: Term) -> Term:
        """The term under a name, so that it is written but once."""


def _operator(operation: str, swapped: bool = False) -> Callable[[Term, Term | float], Term]:
    def operator(self: Term, other: Term | float) -> Term:
        return self.writer.write(operation, *((other, self) if swapped else (self, other)))

    return operator


@dataclass(frozen=True)
class Term:
    """A number in a formula that is being written down; `text` is what its writer calls it."""

    writer: Writer
    text: str

    __add__, __radd__ = _operator("+"), _operator("+", swapped=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", swapped=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", swapped=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", swapped=True)

    def named(self, name: str, term: Term) -> Term:
        """A term under a name in this one's formula."""
        return self.writer.named(name, term)


def _columns(model: PILBoostClassifier) -> list[str]:
    """Each column by its place and name, with the numbers of its categories."""
    names = getattr(model, "feature_names_in_", [None] * model.n_features_in_)
    lines = []
    for index, name in enumerate(names):
        line = f"  {index}: {'a number' if name is None else ascii(str(name))}"
        if (known := model._schema.categories.get(index)) is not None:
            line += ", " + ", ".join(f"{code} = {category!a}" for code, category in enumerate(known))
        lines.append(line)
    return lines
