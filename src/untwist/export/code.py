"""Models as source text of C or Python that needs nothing but the language's own mathematics."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from untwist.classifier import PILBoostClassifier
from untwist.export.scoring import Scoring, Term

__all__ = ["to_code"]

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
C_SETS = """\
      if (SET[node] >= 0) {
        const int code = x >= 0 && x < 256 && x == floor(x) ? (int)x : -1;
        left = code < 0 ? MISSING_LEFT[node] : (int)(CODES[4 * SET[node] + code / 64] >> code % 64 & 1);
      }
"""
C_TWO = """\
  out[1] = clean(score(row, FIRST[0], FIRST[1]));
  out[0] = 1.0 - out[1];"""
C_SEVERAL = """\
  double total = 0.0;
  for (int k = 0; k < {count}; ++k) total += out[k] = clean(score(row, FIRST[k], FIRST[k + 1]));
  for (int k = 0; k < {count}; ++k) out[k] /= total;"""

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
PYTHON_SETS = """\
            if SET[node] >= 0:
                code = int(x) if 0 <= x < 256 and x == floor(x) else -1
                left = MISSING_LEFT[node] if code < 0 else CODES[4 * SET[node] + code // 64] >> code % 64 & 1
"""
PYTHON_TWO = """\
    p = clean(score(row, FIRST[0], FIRST[1]))
    return [1.0 - p, p]"""
PYTHON_SEVERAL = """\
    each = [clean(score(row, FIRST[k], FIRST[k + 1])) for k in range({count})]
    return [one / sum(each) for one in each]"""


def to_code(model: PILBoostClassifier, language: str = "c", *, name: str = "predict_proba") -> str:
    """Source text of a function that gives the clean probabilities of a row of `numbers`, as `predict_proba` does.

    In "c" (C99) it is `void predict_proba(const double *row, double *out)`, in "python" `predict_proba(row)`, which
    returns a list; `name` names it. Comments say what the columns and classes are. The text grows with the model, by
    about 40 characters for each split and each leaf, and by 80 kB where noise was found or given.
    """
    if language not in ("c", "python"):
        raise ValueError(f'language must be "c" or "python", got {language!r}')
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"name must be a name in C and Python, got {name!r}")
    scoring, in_c = Scoring.of(model), language == "c"
    count, comment = len(scoring.classes), "// " if in_c else "# "
    text = _Text(in_c)
    decision, posterior = scoring.clean(Term(text, "z"))
    answer = posterior if count == 2 else scoring.share(posterior, decision)
    text.lines.append(f"{text.indent}return {answer.text}{text.end}")
    arrays = _arrays(scoring)
    sets = C_SETS if in_c else PYTHON_SETS
    answers = (C_TWO, C_SEVERAL) if in_c else (PYTHON_TWO, PYTHON_SEVERAL)
    return (C if in_c else PYTHON).format(
        description="\n".join(comment + line for line in scoring.description()),
        arrays="\n".join(_array(in_c, *each) for each in arrays),
        sets=sets if any(name == "SET" for name, _ in arrays) else "",
        formula="\n".join(text.lines),
        name=name,
        answer=answers[count > 2].format(count=count),
    )


class _Text:
    """Lines of a function; a `Writer`, whose terms are expressions."""

    def __init__(self, in_c: bool) -> None:
        self.indent, self.end, self.let = ("  ", ";", "const double ") if in_c else ("    ", "", "")
        self.functions = {"abs": "fabs"} | ({"min": "fmin", "max": "fmax"} if in_c else {})
        self.index = "TABLE[(int)({})]" if in_c else "TABLE[int({})]"
        self.lines: list[str] = []

    def write(self, operation: str, *terms: Term | float) -> Term:
        """As Writer says."""
        texts = [term.text if isinstance(term, Term) else repr(float(term)) for term in terms]
        if operation in "+-*/":
            return Term(self, f"({texts[0]} {operation} {texts[1]})")
        if operation == "look_up":
            return Term(self, self.index.format(texts[0]))
        return Term(self, f"{self.functions.get(operation, operation)}({', '.join(texts)})")

    def named(self, name: str, term: Term) -> Term:
        """As Writer says: a line of its own."""
        name = f"{name}_{len(self.lines)}"
        self.lines.append(f"{self.indent}{self.let}{name} = {term.text}{self.end}")
        return Term(self, name)


def _arrays(scoring: Scoring) -> list[tuple[str, Any]]:
    """The trees of all classes one after the other; NUMBER is the threshold of a split and the value of a leaf."""
    forests = scoring.forests
    joined = forests[0]
    for forest in forests[1:]:
        joined = joined.followed_by(forest)
    root = joined.offset[:-1]
    threshold = np.minimum(joined.threshold, sys.float_info.max)  # infinite where all that is not missing goes left
    arrays: list[tuple[str, Any]] = [
        ("FIRST", np.cumsum([0, *map(len, forests)])),
        ("ROOT", root),
        ("FEATURE", joined.feature),
        ("LEFT", joined.left + np.repeat(root, np.diff(joined.offset))),
        ("MISSING_LEFT", joined.missing_left),
        ("NUMBER", np.where(joined.feature < 0, joined.value, threshold)),
    ]
    if (joined.set >= 0).any():
        arrays += [("SET", joined.set), ("CODES", joined.codes)]
    return arrays if scoring.table is None else [*arrays, ("TABLE", scoring.table)]


def _array(in_c: bool, name: str, values: Any) -> str:
    """A constant array in either language."""
    kind, suffix = {"u": ("unsigned long long", "ULL"), "f": ("double", "")}.get(values.dtype.kind, ("int", ""))
    if values.dtype.itemsize == 1:  # Booleans of the forest
        kind, suffix = "char", ""
    items = [repr(value) + (suffix if in_c else "") for value in values.tolist()]
    lines = ",\n  ".join(", ".join(items[start : start + 8]) for start in range(0, len(items), 8))
    return f"static const {kind} {name}[] = {{\n  {lines}}};" if in_c else f"{name} = [\n  {lines}]"
