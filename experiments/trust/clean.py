"""Does untwisting hurt where labels are clean, and what does it win where they are not? Data sets x twists x splits.

The default is compared with noise=None, which is the same model without the correction of its posteriors, so that
one fit gives both. Of two classes it also gives what other priors of the decision would have made of it: their curve
is what clean sets lose and what noisy ones win. Rows of an earlier version of the estimate say how much of its gain is
kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import (
    Table,
    drop_rare_classes,
    list_names,
    list_several,
    load,
    load_several,
)
from experiments.halves import DESIGN, JUDGING, find_half
from experiments.peers import compute_log_loss, spread_columns
from experiments.protocol import REAL, applies, split
from experiments.results import read
from experiments.several_classes.sets import LEAST_ROWS
from experiments.tables import TextTable
from experiments.trust.parts import Job, Part, write_mean, write_number, write_share
from untwist import UntwistClassifier
from untwist.arguments import Array
from untwist.model import FittedModel
from untwist.noise.rates import estimate_rates

__all__ = ["CLEAN", "CleanRow", "predict_both", "predict_by_prior"]

NAN = math.nan
#: The twists of two classes and of several; clean ones come first.
TWISTS = {
    "two": ("none", "symmetric-0.2", "class-0.1-0.4", "class-0.4-0.1", REAL),
    "several": ("none", "symmetric-0.2", "pair-0.3", "random-matrix", REAL),
}
#: Splits, and the training rows of each at most; clean labels are also tried with nearly all rows of the large sets.
SPLITS = 3
MOST_ROWS = 4_000
ALL_ROWS = 50_000
LARGE = ("adult", "bank_marketing", "electricity", "online_shoppers", "phishing_websites")
#: Sets of a quick run, which come with scikit-learn, and its rows.
QUICK_SETS = ("cancer", "xd6")
QUICK_ROWS = 200
#: On clean labels the log-loss may be worse by so much in the mean, and on any set.
PROMISED_MEAN = 0.01
PROMISED_SET = 0.04
#: How much of the gain under class-conditional noise is to be kept.
PROMISED_GAIN = 0.9
#: Prior probabilities of no noise, in per cent, for the curve of the decision.
PRIORS = (10, 25, 50, 75, 90, 97)
#: What an earlier version of the estimate gave.
REFERENCE = Path(__file__).parents[2] / "docs" / "trust" / "clean-before.csv"


@dataclass(frozen=True)
class CleanRow:
    """One fit, judged on clean test rows with and without the correction.

    `found` is 1 where noise is said to have been found; `prior_50` is the log-loss with a prior probability of no noise
    of 50 %, of two classes.
    """

    data: str
    classes: str
    twist: str
    split: int
    max_rows: int
    n_rows: int = 0
    none_loss: float = NAN
    default_loss: float = NAN
    none_accuracy: float = NAN
    default_accuracy: float = NAN
    found: float = NAN
    prior_10: float = NAN
    prior_25: float = NAN
    prior_50: float = NAN
    prior_75: float = NAN
    prior_90: float = NAN
    prior_97: float = NAN
    error: str = ""

    @property
    def key(self) -> Job:
        """What was run."""
        return self.data, self.classes, self.twist, self.split, self.max_rows

    @property
    def lost(self) -> float:
        """How much worse the default's log-loss is, relative to that of noise=None."""
        return self.default_loss / self.none_loss - 1.0


@lru_cache(maxsize=2)
def _load(data: str, classes: str, folder: str | None) -> Table:
    return load(data, folder) if classes == "two" else drop_rare_classes(load_several(data, folder), LEAST_ROWS)[0]


def _list_sets(classes: str, folder: str | None) -> list[str]:
    return list_names(folder) if classes == "two" else list_several(folder)


def list_jobs(quick: bool, folder: str | None) -> list[Job]:
    """List the fits, the longest first."""
    if quick:
        return [(data, "two", twist, 0, QUICK_ROWS) for data in QUICK_SETS for twist in TWISTS["two"][:2]]
    large = [(data, "two", "none", seed, ALL_ROWS) for data in LARGE if data in list_names(folder) for seed in range(2)]
    return large + [
        (data, classes, twist, seed, MOST_ROWS)
        for classes in ("several", "two")
        for data in _list_sets(classes, folder)
        for twist in TWISTS[classes]
        if applies(twist, _load(data, classes, folder))
        for seed in range(SPLITS)
    ]


def predict_both(model: UntwistClassifier, X: Any) -> tuple[Any, Any]:
    """Predict posteriors without and with the correction for noise: as noise=None would, and as it comes.

    Parameters
    ----------
    model : UntwistClassifier
        A model that was fitted with its defaults.
    X : table
        The rows.

    Returns
    -------
    uncorrected, corrected : arrays of shape (n_rows, n_classes)
    """
    plain = replace(model.model_, untwists=False)
    scores = plain.scores(plain.encoder.encode(X, model), 1)
    return plain.posterior.clean(plain.posterior.decision(scores)), model.predict_proba(X)


def predict_by_prior(model: UntwistClassifier, X: Any, prior_of_no_noise: float) -> Array:
    """Predict posteriors of two classes as they would be with another prior probability that no label is wrong.

    Parameters
    ----------
    model : UntwistClassifier
        A model of two classes that was fitted with its defaults.
    X : table
        The rows.
    prior_of_no_noise : float
        That of `untwist.noise.rates.estimate_rates`.

    Returns
    -------
    array of shape (n_rows, 2)
    """
    fitted: FittedModel = model.model_
    unseen = fitted.out_of_fold
    assert unseen is not None
    parts = unseen.parts
    noise = estimate_rates(
        parts.posterior[:, 1],
        unseen.labels[parts.rows],
        sample_weight=parts.weight,
        prior_of_no_noise=prior_of_no_noise,
    )
    other = replace(fitted, noise=noise, untwists=True)
    scores = other.scores(other.encoder.encode(X, model), 1)
    return other.posterior.clean(other.posterior.decision(scores))


def judge(job: Job, folder: str | None) -> list[CleanRow]:
    """Fit once and judge both posteriors."""
    data, classes, twist, seed, max_rows = job
    table = _load(data, classes, folder)
    part = split(table, twist, seed, max_rows)
    model = UntwistClassifier(n_jobs=1, random_state=seed).fit(part.X, part.y)
    # A class may have lost all of its labels.
    both = [spread_columns(one, model.classes_, len(table.classes)) for one in predict_both(model, part.X_test)]
    losses = [compute_log_loss(part.y_test, one) for one in both]
    accuracies = [float(np.mean(one.argmax(axis=1) == part.y_test)) for one in both]
    noise = model.noise_
    row = replace(CleanRow(*job), n_rows=len(part.y), found=float(noise is not None and noise.found))
    row = replace(row, none_loss=losses[0], default_loss=losses[1])
    row = replace(row, none_accuracy=accuracies[0], default_accuracy=accuracies[1])
    by_prior: dict[str, Any] = {}
    if len(table.classes) == 2:
        by_prior = {
            f"prior_{prior}": compute_log_loss(part.y_test, predict_by_prior(model, part.X_test, prior / 100))
            for prior in PRIORS
        }
    return [replace(row, **by_prior)]


def make_tables(rows: list[CleanRow]) -> list[TextTable]:
    """Make the tables: what clean labels lose, set by set, the worst first; then what is won with noisy ones."""
    halves: dict[Any, str] = {}
    for classes in TWISTS:
        names = sorted({row.data for row in rows if row.classes == classes})
        halves |= {(data, classes): half for data, half in find_half(names).items()}
    clean = [row for row in rows if row.twist == "none"]
    tables = [_tabulate_bars(rows, halves)] if rows else []
    if clean:
        tables.append(_tabulate_clean(clean, halves))
    tables.append(_tabulate_gains(rows, halves))
    curved = [row for row in rows if not np.isnan(row.prior_50)]
    if curved:
        tables.append(_tabulate_curve(curved, halves))
    return tables


def _tabulate_curve(rows: list[CleanRow], halves: dict[Any, str]) -> TextTable:
    """Say for each prior what clean sets lose by it and what noisy ones win."""
    lines = []
    for half in (JUDGING, DESIGN):
        here = [row for row in rows if halves[row.data, row.classes] == half]
        for prior in PRIORS:
            moved = [replace(row, default_loss=getattr(row, f"prior_{prior}")) for row in here]
            clean = _average(row for row in moved if row.twist == "none")
            cells = [
                [row.none_loss - row.default_loss for row in moved if row.twist.startswith(kind)]
                for kind in ("class", "symmetric", REAL)
            ]
            if not clean:
                continue
            none, default = np.mean(list(clean.values()), axis=0)
            worst = max(float(one[1] / one[0] - 1.0) for one in clean.values())
            won = [write_mean(cell, 4) for cell in cells]
            lines.append([f"{half}, {prior} %", f"{default / none - 1.0:+.2%}", f"{worst:+.1%}", *won])
    header = ["half, prior of no noise", "clean, mean", "clean, worst", "won: by class", "won: symmetric", "won: real"]
    note = "Two classes: what log-loss clean sets lose, relative to noise=None, and how much noisy ones win."
    return TextTable("the curve of the decision", note, header, lines)


def _tabulate_clean(rows: list[CleanRow], halves: dict[Any, str]) -> TextTable:
    lines = []
    for (data, classes, max_rows), (none, default) in _average(rows).items():
        here = [row for row in rows if (row.data, row.classes, row.max_rows) == (data, classes, max_rows)]
        accuracy = np.mean([row.default_accuracy - row.none_accuracy for row in here])
        found = f"{write_share(row.found for row in here)} of {len(here)}"
        half = halves[data, classes]
        cell = [half, str(max_rows), write_number(none), write_number(default), f"{default / none - 1.0:+.1%}"]
        lines.append([data, *cell, f"{accuracy:+.4f}", found])
    lines.sort(key=lambda line: -float(line[5].rstrip("%")))
    header = ["data", "half", "rows", "None", "default", "worse by", "accuracy", "found"]
    note = "Clean labels: log-loss of noise=None and of the default, the mean over splits; the worst set first."
    return TextTable("clean sets", note, header, lines)


def _average(rows: Iterable[CleanRow]) -> dict[Any, Array]:
    """Return by set and size the log-loss of None and of the default, the means over splits."""
    cells: dict[Any, list[tuple[float, float]]] = {}
    for row in rows:
        cells.setdefault((row.data, row.classes, row.max_rows), []).append((row.none_loss, row.default_loss))
    return {key: np.mean(both, axis=0) for key, both in cells.items()}


def _tabulate_bars(rows: list[CleanRow], halves: dict[Any, str]) -> TextTable:
    """Say what was promised and what came of it, by half."""
    lines = []
    before = {row.key: row for row in read(REFERENCE, CleanRow)}
    for half in (JUDGING, DESIGN, "all"):
        here = [row for row in rows if half in ("all", halves[row.data, row.classes])]
        losses = _average(row for row in here if row.twist == "none")
        if losses:
            lost = {key: float(default / none - 1.0) for key, (none, default) in losses.items()}
            worst = max(lost, key=lambda key: lost[key])
            none, default = np.mean(list(losses.values()), axis=0)
            mean = float(default / none - 1.0)
            lines.append([half, "clean, mean", f"{mean:+.2%}", f"{PROMISED_MEAN:+.0%}", _judge(mean <= PROMISED_MEAN)])
            words = f"{lost[worst]:+.2%} ({worst[0]})"
            lines.append([half, "clean, worst", words, f"{PROMISED_SET:+.0%}", _judge(lost[worst] <= PROMISED_SET)])
        class_noise = [row for row in here if row.twist.startswith(("class", "pair", "random")) and row.key in before]
        if class_noise:
            gained = sum(row.none_loss - row.default_loss for row in class_noise)
            once = sum(before[row.key].none_loss - before[row.key].default_loss for row in class_noise)
            kept = gained / once
            words = f"{kept:.0%} of {once / len(class_noise):.4f}"
            lines.append([half, "gain kept", words, f"{PROMISED_GAIN:.0%}", _judge(kept >= PROMISED_GAIN)])
    note = "Log-loss against noise=None; the gain under noise by class is set against that of the estimate before."
    return TextTable("hard or noisy: what was promised", note, ["half", "what", "measured", "promised", ""], lines)


def _judge(met: bool) -> str:
    return "met" if met else "missed"


def _tabulate_gains(rows: list[CleanRow], halves: dict[Any, str]) -> TextTable:
    before = {row.key: row for row in read(REFERENCE, CleanRow)}
    lines = []
    for half in (JUDGING, DESIGN):
        for classes, twists in TWISTS.items():
            for twist in twists:
                here = [
                    row
                    for row in rows
                    if (row.twist, row.classes, row.max_rows) == (twist, classes, MOST_ROWS)
                    and halves[row.data, classes] == half
                ]
                if not here:
                    continue
                old = [before[row.key].default_loss for row in here if row.key in before]
                lines.append(
                    [
                        f"{half}, {classes}, {twist}",
                        str(len(here)),
                        write_mean(row.none_loss for row in here),
                        write_mean(old) if len(old) == len(here) else "-",
                        write_mean(row.default_loss for row in here),
                        write_mean((row.none_loss - row.default_loss for row in here), 4),
                        write_mean((row.default_accuracy - row.none_accuracy for row in here), 4),
                        write_share(row.found for row in here),
                    ]
                )
    header = ["half, classes, twist", "fits", "None", "before", "default", "won", "accuracy", "found"]
    note = f"Mean log-loss on clean test rows, at most {MOST_ROWS} training rows: without correction, before, and now."
    return TextTable("log-loss by twist", note, header, lines)


#: The part.
CLEAN = Part("clean", "Does the default hurt where labels are clean?", CleanRow, list_jobs, judge, make_tables)
