"""Data and settings that try to break things, for the properties in test_invariants.py and its neighbours.

`holds` makes a property of a test. UNTWIST_EXAMPLES says how many examples are tried, as a multiple of the number that
the property names: 0.3 in `make test`, 1 in `make test-slow`, the same examples in every run; 20 in
`make test-properties`, new ones in every run. `TRIED` counts them.
"""

import functools
import os
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES = float(os.environ.get("UNTWIST_EXAMPLES", "0.3"))
TRIED = Counter()  # Examples tried so far, by the name of the test.


def holds(examples, **strategies):
    """Make a property of a test: it holds whatever the strategies give; `examples` is how often that is tried."""

    def decorate(test):
        @functools.wraps(test)
        def count_and_test(*arguments, **drawn):
            TRIED[test.__name__] += 1
            return test(*arguments, **drawn)

        return settings(max_examples=max(3, round(examples * EXAMPLES)))(given(**strategies)(count_and_test))

    return decorate


# ---- columns and tables ----

LARGEST = np.finfo(np.float64).max
SMALLEST = 5e-324

COLUMNS = {  # Columns of float64 by what is odd about them, each made from a generator and a number of rows.
    "usual": lambda rng, n: rng.normal(size=n),
    "bits": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "few values": lambda rng, n: rng.integers(0, 4, n) * 1.0,
    "ties": lambda rng, n: rng.normal(size=n).round(1),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, -1.5, 1e308, SMALLEST])),
    "zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0], n),
    "neighbours": lambda rng, n: 1.0 + rng.integers(0, 9, n) * np.finfo(np.float64).eps,
    "subnormal": lambda rng, n: rng.integers(-9, 10, n) * SMALLEST,
    "huge": lambda rng, n: rng.choice([LARGEST, -LARGEST, 1e308, -1e308, 1e307], n),
    "all scales": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-320, 308, n),
}
GAPS = {
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "there or not": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, 1.0),
}


@dataclass(frozen=True)
class Sample:
    """Rows, labels 0 to K-1 and the generator that made them; `kinds` says what each column is."""

    X: np.ndarray
    y: np.ndarray
    rng: np.random.Generator
    kinds: tuple[str, ...]

    def _repr_pretty_(self, printer, _):
        """How hypothesis shows it."""
        printer.text(f"<{len(self.y)} rows of classes {np.bincount(self.y).tolist()}, columns {self.kinds}>")

    def take(self, rows):
        """Some of the rows."""
        return replace(self, X=self.X[rows], y=self.y[rows])


@st.composite
def samples(draw, classes=2, rows=(6, 60), columns=(1, 5), gaps=True, kinds=None):
    """A table of odd columns, at times one of them twice, with labels of so many classes: alike, or one class rare."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n_classes = draw(st.integers(*classes)) if isinstance(classes, tuple) else classes
    n = max(draw(st.integers(*rows)), 2 * n_classes + 1)
    known = COLUMNS | (GAPS if gaps else {})
    chosen = draw(st.lists(st.sampled_from(sorted(kinds or known)), min_size=columns[0], max_size=columns[1]))
    made = [known[kind](rng, n) for kind in chosen]
    if len(made) < columns[1] and draw(st.booleans(), label="a column twice"):
        made, chosen = [*made, made[0]], [*chosen, "copy"]
    how = draw(st.sampled_from(["at random", "by the first column", "one of each but the first"]))
    if how == "by the first column":
        place = np.argsort(np.argsort(np.nan_to_num(made[0]), kind="stable"), kind="stable")
        y = np.where(rng.random(n) < 0.2, rng.integers(0, n_classes, n), place * n_classes // n)
    else:
        y = rng.integers(0, n_classes, n) if how == "at random" else np.zeros(n, dtype=np.int64)
    y[rng.choice(n, n_classes, replace=False)] = np.arange(n_classes)  # No class is absent.
    return Sample(np.column_stack(made), y, rng, tuple(chosen))


#: What holds for all tables of numbers is tried on these.
tables = samples()
several = samples(classes=(3, 8))

# ---- settings ----

ALPHAS = [0.5, 1.0, 1.1, 2.0, 4.0, np.inf, -2.0]

#: A fit in the compiled engine with every setting given; each setting by itself may be absent.
given_settings = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from(ALPHAS),
        "n_estimators": st.integers(1, 6),
        "max_depth": st.sampled_from([1, 2, 3, None]),
        "random_state": st.integers(0, 3),
        "n_jobs": st.just(1),
    },
    optional={
        "link": st.sampled_from(["clipped", "exact"]),
        "learning_rate": st.sampled_from([0.05, 0.3, 3.0]),
        "max_leaf_nodes": st.integers(2, 6),
        "min_samples_leaf": st.integers(1, 4),
        "min_weight_fraction_leaf": st.sampled_from([0.05, 0.3]),
        "l2": st.sampled_from([0.0, 0.5, 10.0]),
        "subsample": st.sampled_from([0.5, 0.9]),
        "max_features": st.sampled_from([0.4, 0.8]),
        "extra_trees": st.booleans(),
        "max_bins": st.sampled_from([2, 5, 40]),
    },
)

#: The same, or with something left to be chosen from the data.
any_settings = st.one_of(
    given_settings,
    st.fixed_dictionaries(
        {"n_estimators": st.integers(1, 12), "random_state": st.integers(0, 3), "n_jobs": st.just(1)},
        optional={"alpha": st.sampled_from([1.0, 2.0]), "boosted_only": st.just(True), "noise": st.none()},
    ),
)


def weights(kinds=("whole", "reals", "scales", "with zeros")):
    """Functions that make weights for a sample; every class keeps rows that weigh something."""

    def make(kind):
        def weigh(sample):
            n = len(sample.y)
            rng = np.random.default_rng(int(sample.y.sum()) + n)
            weight = {
                "whole": lambda: rng.integers(1, 6, n) * 1.0,
                "reals": lambda: rng.uniform(0.1, 2.0, n),
                "scales": lambda: 10.0 ** rng.uniform(-300, 300, n),
                "with zeros": lambda: rng.integers(0, 4, n) * 1.0,
            }[kind]()
            weight[np.unique(sample.y, return_index=True)[1]] = weight.max() or 1.0
            return weight

        weigh.__name__ = kind
        return weigh

    return st.sampled_from([make(kind) for kind in kinds])
