"""Models as source text of C or Python that needs nothing but the language's own mathematics."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.export.scoring import Scoring
from untwist.export.terms import Term

#: The text in C around the parts of a model.
C = """\
{description}
#include <math.h>

{arrays}

static int find_leaf(const double *row, int node) {{
  while (FEATURE[node] >= 0) {{
    const double x = row[FEATURE[node]];
    int left = isnan(x) ? MISSING_LEFT[node] : x <= NUMBER[node];
{sets}    node = LEFT[node] + !left;
  }}
  return node;
}}

void {name}(const double *row, double *out) {{
{scores}
{formula}
}}
"""
#: How a row goes on at a split by categories, in C.
C_SETS = """\
    if (SET[node] >= 0) {
      const int code = x >= 0 && x < 256 && x == floor(x) ? (int)x : -1;
      left = code < 0 ? MISSING_LEFT[node] : (int)(CODES[4 * SET[node] + code / 64] >> code % 64 & 1);
    }
"""
#: The score of each class against the rest, of two classes that of the second, in C.
C_SCORES = """\
  double score[{n_scores}] = {{0.0}};
  for (int k = 0; k < {n_scores}; ++k)
    for (int tree = FIRST[k]; tree < FIRST[k + 1]; ++tree) score[k] += NUMBER[find_leaf(row, ROOT[tree])];"""
#: The scores of classes that were boosted together, in C: a leaf has the place of its values instead of children.
C_SHARED_SCORES = """\
  double score[{n_classes}] = {{0.0}};
  for (int tree = 0; tree < {n_trees}; ++tree) {{
    const double *value = VALUE + {n_classes} * LEFT[find_leaf(row, ROOT[tree])];
    for (int k = 0; k < {n_classes}; ++k) score[k] += value[k];
  }}"""
#: The answer for two classes, in C.
C_TWO = """\
  out[0] = 1.0 - {posterior};
  out[1] = {posterior};"""
#: The answer for more than two classes, in C.
C_SEVERAL = """\
  for (int k = 0; k < {n_classes}; ++k) out[k] = {posterior};"""

#: The text in Python around the parts of a model.
PYTHON = """\
{description}
from math import copysign, exp, fabs, floor, isnan, log, tanh

{arrays}


def find_leaf(row, node):
    while FEATURE[node] >= 0:
        x = row[FEATURE[node]]
        left = MISSING_LEFT[node] if isnan(x) else x <= NUMBER[node]
{sets}        node = LEFT[node] + (not left)
    return node


def {name}(row):
{scores}
{formula}
"""
#: How a row goes on at a split by categories, in Python.
PYTHON_SETS = """\
        if SET[node] >= 0:
            code = int(x) if 0 <= x < 256 and x == floor(x) else -1
            left = MISSING_LEFT[node] if code < 0 else CODES[4 * SET[node] + code // 64] >> code % 64 & 1
"""
#: The score of each class against the rest, of two classes that of the second, in Python.
PYTHON_SCORES = """\
    score = [0.0] * {n_scores}
    for k in range({n_scores}):
        for root in ROOT[FIRST[k]:FIRST[k + 1]]:
            score[k] += NUMBER[find_leaf(row, root)]"""
#: The scores of classes that were boosted together, in Python: a leaf has the place of its values instead of children.
PYTHON_SHARED_SCORES = """\
    score = [0.0] * {n_classes}
    for root in ROOT:
        first = {n_classes} * LEFT[find_leaf(row, root)]
        for k in range({n_classes}):
            score[k] += VALUE[first + k]"""
#: The answer for two classes, in Python.
PYTHON_TWO = """\
    return [1.0 - {posterior}, {posterior}]"""
#: The answer for more than two classes, in Python.
PYTHON_SEVERAL = """\
    return [{posterior} for k in range({n_classes})]"""


def to_code(model: Any, language: str = "c", *, name: str = "predict_proba") -> str:
    """Return source text of a function that gives the clean probabilities of a row, as `predict_proba` does.

    The row is one of `numbers`. Comments say what the columns and classes are. The text grows with the model, by about
    40 characters for each split and each leaf (20 more for each class where a leaf has a value for every class), and by
    80 kB where noise rates were found or given.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        A fitted model.
    language : "c" or "python", default "c"
        In C (C99) it is `void predict_proba(const double *row, double *out)`, in Python `predict_proba(row)`, which
        returns a list.
    name : str, default "predict_proba"
        The name of the function.

    Returns
    -------
    str
        The text of a source file.
    """
    if language not in ("c", "python"):
        raise ValueError(f'language must be "c" or "python", got {language!r}')
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"name must be a name in C and Python, got {name!r}")
    in_c = language == "c"
    scoring = Scoring.from_model(model)
    n_classes = len(scoring.classes)
    several = n_classes > 2
    text = _Text(in_c, n_classes)
    _, posterior = scoring.formula.write_clean(Term(text, "score[k]" if several else "score[0]", several))
    arrays = _list_arrays(scoring) | text.arrays
    comment = "// " if in_c else "# "
    sets = C_SETS if in_c else PYTHON_SETS
    one_each, shared = (C_SCORES, C_SHARED_SCORES) if in_c else (PYTHON_SCORES, PYTHON_SHARED_SCORES)
    for_two, for_several = (C_TWO, C_SEVERAL) if in_c else (PYTHON_TWO, PYTHON_SEVERAL)
    counts = {"n_classes": n_classes, "n_scores": scoring.n_scores, "n_trees": len(arrays["ROOT"])}
    answer = for_several if several else for_two
    return (C if in_c else PYTHON).format(
        description="\n".join(comment + line for line in scoring.describe()),
        arrays="\n".join(_write_array(in_c, array_name, values) for array_name, values in arrays.items()),
        sets=sets if "SET" in arrays else "",
        name=name,
        scores=(shared if scoring.has_vectors else one_each).format(**counts),
        formula="\n".join([*text.lines, answer.format(n_classes=n_classes, posterior=posterior.text)]),
    )


class _Text:
    """Lines of a function; a `Writer`, whose terms are expressions, in k where there is one for each class."""

    def __init__(self, in_c: bool, n_classes: int) -> None:
        self.in_c = in_c
        self.n_classes = n_classes
        self.functions = {"abs": "fabs", "min": "fmin", "max": "fmax"} if in_c else {"abs": "fabs"}
        self.index = "TABLE[(int)({})]" if in_c else "TABLE[int({})]"
        self.lines: list[str] = []
        self.arrays: dict[str, Array] = {}

    def write(self, operation: str, *terms: Term | float | Array) -> Term:
        """Write an operation as an expression; one over all classes as lines of its own."""
        if operation == "@":
            return self._write_product(*terms)
        texts = [self._write_operand(term) for term in terms]
        if operation in ("total", "largest"):
            return self._write_reduction(operation, texts[0])
        per_class = any(isinstance(term, np.ndarray) or getattr(term, "per_class", False) for term in terms)
        if operation in "+-*/":
            return Term(self, f"({texts[0]} {operation} {texts[1]})", per_class)
        if operation == "look_up":
            return Term(self, self.index.format(texts[0]), per_class)
        return Term(self, f"{self.functions.get(operation, operation)}({', '.join(texts)})", per_class)

    def define(self, name: str, term: Term) -> Term:
        """Write lines that give a term its name."""
        name = self._make_name(name)
        if not term.per_class:
            self._add_line(f"const double {name} = {term.text};", f"{name} = {term.text}")
            return Term(self, name)
        self._add_line(f"double {name}[{self.n_classes}];")
        self._add_line(f"{self._loop('k')} {name}[k] = {term.text};", f"{name} = [{term.text} {self._loop('k')}]")
        return Term(self, f"{name}[k]", True)

    def _write_operand(self, term: Term | float | Array) -> str:
        if isinstance(term, Term):
            return term.text
        if isinstance(term, np.ndarray):
            return f"{self._add_array(term)}[k]"
        return repr(float(term))

    def _write_reduction(self, operation: str, text: str) -> Term:
        """Write a sum or a maximum over the classes."""
        name = self._make_name(operation)
        start, function, step = {
            "total": ("0.0", "sum", f"{name} += {text}"),
            "largest": ("-HUGE_VAL", "max", f"{name} = fmax({name}, {text})"),
        }[operation]
        self._add_line(f"double {name} = {start};")
        self._add_line(f"{self._loop('k')} {step};", f"{name} = {function}({text} {self._loop('k')})")
        return Term(self, name)

    def _write_product(self, row: Any, matrix: Any) -> Term:
        """Write the product of a row, which has a name, and a matrix."""
        array = self._add_array(matrix)
        name = self._make_name("product")
        factors = f"{row.text.removesuffix('[k]')}[j] * {array}[{self.n_classes} * j + k]"
        self._add_line(f"double {name}[{self.n_classes}] = {{0.0}};")
        self._add_line(
            f"{self._loop('j')} {self._loop('k')} {name}[k] += {factors};",
            f"{name} = [sum({factors} {self._loop('j')}) {self._loop('k')}]",
        )
        return Term(self, f"{name}[k]", True)

    def _loop(self, index: str) -> str:
        if self.in_c:
            return f"for (int {index} = 0; {index} < {self.n_classes}; ++{index})"
        return f"for {index} in range({self.n_classes})"

    def _make_name(self, name: str) -> str:
        return f"{name}_{len(self.lines)}"

    def _add_line(self, in_c: str, in_python: str | None = None) -> None:
        """Add a line in either language, or in C only."""
        line = f"  {in_c}" if self.in_c else f"    {in_python}"
        if self.in_c or in_python is not None:
            self.lines.append(line)

    def _add_array(self, values: Array) -> str:
        name = f"CONSTANT_{len(self.arrays)}"
        self.arrays[name] = values.ravel()
        return name


def _list_arrays(scoring: Scoring) -> dict[str, NDArray[Any]]:
    """Return the trees of all classes one after the other; NUMBER is a split's threshold or a leaf's value.

    Where a leaf has a value for each class, these are in VALUE, and its LEFT is their place there.
    """
    joined = Forest.join(scoring.forests)
    root = joined.offset[:-1]
    is_leaf = joined.feature < 0
    # A threshold is infinite where all that is not missing goes to one side.
    threshold = np.clip(joined.threshold, -sys.float_info.max, sys.float_info.max)
    left = joined.left + np.repeat(root, np.diff(joined.offset))
    arrays: dict[str, NDArray[Any]] = {"ROOT": root, "FEATURE": joined.feature, "MISSING_LEFT": joined.missing_left}
    if scoring.has_vectors:
        place = np.cumsum(is_leaf) - 1
        arrays |= {"LEFT": np.where(is_leaf, place, left), "NUMBER": np.where(is_leaf, 0.0, threshold)}
        arrays["VALUE"] = joined.value[is_leaf].ravel()
    else:
        arrays |= {"LEFT": left, "NUMBER": np.where(is_leaf, joined.value, threshold)}
        arrays["FIRST"] = np.cumsum([0, *map(len, scoring.forests)])
    if (joined.set >= 0).any():
        arrays |= {"SET": joined.set, "CODES": joined.codes}
    if scoring.formula.table is not None:
        arrays["TABLE"] = scoring.formula.table
    return arrays


def _write_array(in_c: bool, name: str, values: NDArray[Any]) -> str:
    """Write a constant array in either language."""
    kind, suffix = {"u": ("unsigned long long", "ULL"), "f": ("double", "")}.get(values.dtype.kind, ("int", ""))
    if values.dtype.itemsize == 1:  # They are 0 or 1.
        kind, suffix = "char", ""
    items = [repr(value) + (suffix if in_c else "") for value in values.tolist()]
    lines = ",\n  ".join(", ".join(items[start : start + 8]) for start in range(0, len(items), 8))
    return f"static const {kind} {name}[] = {{\n  {lines}}};" if in_c else f"{name} = [\n  {lines}]"
