"""Numbers of a formula that is being written down in some language, and what a language has to bring for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from untwist.arguments import Array


class Writer(Protocol):
    """Writes a formula down in some language."""

    def write(self, operation: str, *terms: Term | float | Array) -> Term:
        """Write what an operation makes of terms: +, -, *, / or a function, class by class where a term is.

        The functions are those of C without their f, copysign of two with a first one that is not negative, and
        look_up, which takes the index of a value in the table of a formula. Over all classes go @, which takes a matrix
        as its second term, total and largest.

        Parameters
        ----------
        operation : str
            The sign or the name of the operation.
        *terms : Term, float or array
            What it is applied to; an array is a constant with an entry per class.

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


def _make_operator(operation: str, *, swapped: bool = False) -> Callable[[Term, Term | float | Array], Term]:
    def operate(self: Term, other: Term | float | Array) -> Term:
        return self.writer.write(operation, *((other, self) if swapped else (self, other)))

    return operate


@dataclass(frozen=True)
class Term:
    """A number in a formula that is being written down.

    Parameters
    ----------
    writer : Writer
        Who writes it down.
    text : str
        What the writer calls it.
    per_class : bool
        Whether there is one for each of several classes.
    """

    writer: Writer
    text: str
    per_class: bool = False

    #: NumPy leaves operators between an array and a term to the term.
    __array_ufunc__: ClassVar[None] = None

    __add__ = _make_operator("+")
    __radd__ = _make_operator("+", swapped=True)
    __sub__ = _make_operator("-")
    __rsub__ = _make_operator("-", swapped=True)
    __mul__ = _make_operator("*")
    __rmul__ = _make_operator("*", swapped=True)
    __truediv__ = _make_operator("/")
    __rtruediv__ = _make_operator("/", swapped=True)
    __matmul__ = _make_operator("@")

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
