"""Models as source text of C or Python that needs nothing but the language's own mathematics."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.export.scoring import Scoring, Term

__all__ = ["to_code"]

#: The text in C around the parts of a model.
C = """\
{description}
#include <math.h>

{arrays}

static double score(const double *row, int tree, int end) {{
  double total = 0.0;
  for (; tree < end; ++tree) {{
    int node = ROOT[tree];
    while (FEATURE[node] >= 0) {{
      const double x = row[FEATURE[node]];
      int left = isnan(x) ? MISSING_LEFT[node] : x <= NUMBER[node];
{sets}      node = LEFT[node] + !left;
    }}
    total += NUMBER[node];
  }}
  return total;
}}

static double clean(double z) {{
{formula}
}}

void {name}(const double *row, double *out) {{
{answer}
}}
"""
#: How a row goes on at a split by categories, in C.
C_SETS = """\
      if (SET[node] >= 0) {
        const int code = x >= 0 && x < 256 && x == floor(x) ? (int)x : -1;
        left = code < 0 ? MISSING_LEFT[node] : (int)(CODES[4 * SET[node] + code / 64] >> code % 64 & 1);
      }
"""
#: The probabilities of two classes, in C.
C_TWO = """\
  out[1] = clean(score(row, FIRST[0], FIRST[1]));
  out[0] = 1.0 - out[1];"""
#: The probabilities of more than two classes, in C.
C_SEVERAL = """\
  double total = 0.0;
  for (int k = 0; k < {count}; ++k) total += out[k] = clean(score(row, FIRST[k], FIRST[k + 1]));
  for (int k = 0; k < {count}; ++k) out[k] /= total;"""

#: The text in Python around the parts of a model.
PYTHON = """\
{description}
from math import copysign, exp, fabs, floor, isnan, log, tanh

{arrays}


def score(row, tree, end):
    total = 0.0
    for node in ROOT[tree:end]:
        while FEATURE[node] >= 0:
            x = row[FEATURE[node]]
            left = MISSING_LEFT[node] if isnan(x) else x <= NUMBER[node]
{sets}            node = LEFT[node] + (not left)
        total += NUMBER[node]
    return total


def clean(z):
{formula}


def {name}(row):
{answer}
"""
#: How a row goes on at a split by categories, in Python.
PYTHON_SETS = """\
            if SET[node] >= 0:
                code = int(x) if 0 <= x < 256 and x == floor(x) else -1
                left = MISSING_LEFT[node] if code < 0 else CODES[4 * SET[node] + code // 64] >> code % 64 & 1
"""
#: The probabilities of two classes, in Python.
PYTHON_TWO = """\
    p = clean(score(row, FIRST[0], FIRST[1]))
    return [1.0 - p, p]"""
#: The probabilities of more than two classes, in Python.
PYTHON_SEVERAL = """\
    each = [clean(score(row, FIRST[k], FIRST[k + 1])) for k in range({count})]
    return [one / sum(each) for one in each]"""


def to_code(model: Any, language: str = "c", *, name: str = "predict_proba") -> str:
    """Return source text of a function that gives the clean probabilities of a row, as `predict_proba` does.

    The row is one of `numbers`. Comments say what the columns and classes are. The text grows with the model, by about
    40 characters for each split and each leaf, and by 80 kB where noise was found or given.

    Parameters
    ----------
    model : PILBoostClassifier or FittedModel
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
    text = _Text(in_c)
    decision, posterior = scoring.write_clean(Term(text, "z"))
    answer = posterior if n_classes == 2 else scoring.write_share(posterior, decision)
    text.lines.append(f"{text.indent}return {answer.text}{text.end}")
    arrays = _list_arrays(scoring)
    comment = "// " if in_c else "# "
    sets = C_SETS if in_c else PYTHON_SETS
    answers = (C_TWO, C_SEVERAL) if in_c else (PYTHON_TWO, PYTHON_SEVERAL)
    return (C if in_c else PYTHON).format(
        description="\n".join(comment + line for line in scoring.describe()),
        arrays="\n".join(_write_array(in_c, array_name, values) for array_name, values in arrays.items()),
        sets=sets if "SET" in arrays else "",
        formula="\n".join(text.lines),
        name=name,
        answer=answers[n_classes > 2].format(count=n_classes),
    )


class _Text:
    """Lines of a function; a `Writer`, whose terms are expressions."""

    def __init__(self, in_c: bool) -> None:
        self.indent = "  " if in_c else "    "
        self.end = ";" if in_c else ""
        self.let = "const double " if in_c else ""
        self.functions = {"abs": "fabs", "min": "fmin", "max": "fmax"} if in_c else {"abs": "fabs"}
        self.index = "TABLE[(int)({})]" if in_c else "TABLE[int({})]"
        self.lines: list[str] = []

    def write(self, operation: str, *terms: Term | float) -> Term:
        """Write an operation as an expression."""
        texts = [term.text if isinstance(term, Term) else repr(float(term)) for term in terms]
        if operation in "+-*/":
            return Term(self, f"({texts[0]} {operation} {texts[1]})")
        if operation == "look_up":
            return Term(self, self.index.format(texts[0]))
        return Term(self, f"{self.functions.get(operation, operation)}({', '.join(texts)})")

    def define(self, name: str, term: Term) -> Term:
        """Write a line that gives a term its name."""
        name = f"{name}_{len(self.lines)}"
        self.lines.append(f"{self.indent}{self.let}{name} = {term.text}{self.end}")
        return Term(self, name)


def _list_arrays(scoring: Scoring) -> dict[str, NDArray[Any]]:
    """Return the trees of all classes one after the other; NUMBER is a split's threshold or a leaf's value."""
    forests = scoring.forests
    joined = forests[0]
    for forest in forests[1:]:
        joined = joined.append(forest)
    root = joined.offset[:-1]
    # A threshold is infinite where all that is not missing goes left.
    threshold = np.minimum(joined.threshold, sys.float_info.max)
    arrays = {
        "FIRST": np.cumsum([0, *map(len, forests)]),
        "ROOT": root,
        "FEATURE": joined.feature,
        "LEFT": joined.left + np.repeat(root, np.diff(joined.offset)),
        "MISSING_LEFT": joined.missing_left,
        "NUMBER": np.where(joined.feature < 0, joined.value, threshold),
    }
    if (joined.set >= 0).any():
        arrays |= {"SET": joined.set, "CODES": joined.codes}
    if scoring.table is not None:
        arrays["TABLE"] = scoring.table
    return arrays


def _write_array(in_c: bool, name: str, values: NDArray[Any]) -> str:
    """Write a constant array in either language."""
    kind, suffix = {"u": ("unsigned long long", "ULL"), "f": ("double", "")}.get(values.dtype.kind, ("int", ""))
    if values.dtype.itemsize == 1:  # They are 0 or 1.
        kind, suffix = "char", ""
    items = [repr(value) + (suffix if in_c else "") for value in values.tolist()]
    lines = ",\n  ".join(", ".join(items[start : start + 8]) for start in range(0, len(items), 8))
    return f"static const {kind} {name}[] = {{\n  {lines}}};" if in_c else f"{name} = [\n  {lines}]"
