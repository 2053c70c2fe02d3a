"""Ways to boost several classes, side by side: one against the rest, a tree for each class and round, shared trees.

One against the rest boosts every class by itself and normalises the posteriors. XGBoost stands for rounds with a
softmax and a tree for each class. Shared trees are ours, with a number for each class in every leaf, at alpha 1 and 2.
All of them stop early on the same held-out rows and are judged on others; labels are as they come, or a fifth of them
is replaced by any other class (of training and held-out rows, never of those that judge). One thread each. Rows go to
results/several_classes_boosters.csv.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from experiments.results import Writer
from experiments.tables import TextTable
from untwist.boosting.engines.compiled import CompiledBooster, CompiledDataset
from untwist.boosting.engines.engine import Rows, Task, TreeGrowth
from untwist.boosting.forest import Forest
from untwist.optional import import_optional
from untwist.progress import ProgressLine, describe_progress
from untwist.theory.links import ClippedLink
from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import find_twisted_posterior

COLUMNS = [
    "data",
    "rows",
    "classes",
    "noise",
    "seed",
    "method",
    "accuracy",
    "log_loss",
    "seconds",
    "rounds",
    "kilobytes",
]

#: Rounds are at most so many, and end when the held-out rows have had no better one for so many.
MOST_ROUNDS, PATIENCE = 2000, 20

DEPTH = 4
LEARNING_RATE = 0.1

#: The share of labels that are replaced.
NOISE = (0.0, 0.2)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that train, that stop, and that judge, by their places."""

    name: str
    X: Any
    labels: Any
    given: Any
    train: Any
    watch: Any
    judge: Any

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True, eq=False)
class Outcome:
    """The posteriors of the rows that judge, the rounds that were kept, and how large the model is."""

    posterior: Any
    rounds: int
    n_bytes: int


def make_sample(name: str, X: Any, labels: Any, noise: float, seed: int) -> Sample:
    """Split rows and replace labels."""
    rng = np.random.default_rng([seed, len(labels)])
    n_classes = int(labels.max()) + 1
    others = (labels + rng.integers(1, n_classes, size=len(labels))) % n_classes
    given = np.where(rng.random(len(labels)) < noise, others, labels)
    rest, judge = train_test_split(np.arange(len(labels)), test_size=0.4, stratify=labels, random_state=seed)
    train, watch = train_test_split(rest, test_size=0.2, random_state=seed)
    return Sample(name, X, labels, given, train, watch, judge)


def make_tables(rows: int, features: int, counts: list[int]) -> Iterator[tuple[str, Any, Any]]:
    """Make tables of rows with so many classes."""
    for n_classes in counts:
        X, labels = make_classification(
            n_samples=rows,
            n_features=features,
            n_informative=12,
            n_redundant=2,
            n_classes=n_classes,
            n_clusters_per_class=1,
            class_sep=1.2,
            random_state=n_classes,
        )
        yield f"made, {n_classes} classes", X, labels


def read_tables(folder: Path, names: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Read tables whose labels are in the column `label`; classes of fewer than ten rows are left out."""
    pandas = import_optional("pandas", "read tables")
    for name in names:
        table = pandas.read_csv(folder / f"{name}.csv")
        label = table.pop("label").astype(str)
        often = label.map(label.value_counts()) >= 10
        X = pandas.get_dummies(table[often], dtype=float).to_numpy(dtype=np.float64)
        yield name, X, np.unique(label[often], return_inverse=True)[1]


def count_bytes(forest: Forest) -> int:
    """Count the bytes of a forest that are needed to predict."""
    names = ("offset", "feature", "left", "threshold", "missing_left", "value", "set", "codes")
    return sum(getattr(forest, name).nbytes for name in names)


def boost(data: CompiledDataset, sample: Sample, alpha: float, positive_class: int | None) -> Forest:
    """Boost one class, or all together, and keep the best rounds."""
    weight = np.zeros(len(sample.labels))
    weight[sample.train] = 1.0
    watch = np.zeros(len(sample.labels))
    watch[sample.watch] = 1.0
    task = Task(
        ClippedLink(AlphaLoss(alpha)),
        LEARNING_RATE if positive_class is not None else LEARNING_RATE * alpha,  # Joint scores grow with alpha.
        TreeGrowth(max_depth=DEPTH, l2=1.0),
        by_edge=False,
        positive_class=positive_class,
        weight=weight,
        validation_weight=watch,
    )
    booster = CompiledBooster(data, task)
    booster.boost(MOST_ROUNDS, PATIENCE)
    forest = booster.ensemble().keep_best().forest
    assert forest is not None
    return forest


def make_dataset(sample: Sample) -> CompiledDataset:
    """Bin the rows by those that train."""
    weight = np.zeros(len(sample.labels))
    weight[sample.train] = 1.0
    return CompiledDataset(Rows(sample.X, sample.given.astype(np.uint32), weight), n_jobs=1)


def boost_one_against_rest(sample: Sample, alpha: float) -> Outcome:
    """Boost every class by itself."""
    data = make_dataset(sample)
    link = ClippedLink(AlphaLoss(alpha))
    forests = [boost(data, sample, alpha, k) for k in range(sample.n_classes)]
    scores = np.column_stack([forest.scores(sample.X[sample.judge], n_jobs=1) for forest in forests])
    posterior = np.maximum(link.inverse(scores), 1e-6)
    rounds = round(float(np.mean([len(forest) for forest in forests])))
    return Outcome(posterior / posterior.sum(axis=1, keepdims=True), rounds, sum(map(count_bytes, forests)))


def boost_together(sample: Sample, alpha: float) -> Outcome:
    """Boost all classes with shared trees."""
    forest = boost(make_dataset(sample), sample, alpha, None)
    scores = forest.scores(sample.X[sample.judge], n_jobs=1)
    return Outcome(find_twisted_posterior(scores, alpha), len(forest), count_bytes(forest))


def boost_with_xgboost(sample: Sample) -> Outcome:
    """Boost by XGBoost, a tree for each class and round."""
    xgboost = import_optional("xgboost", "compare with it")
    model = xgboost.XGBClassifier(
        n_estimators=MOST_ROUNDS,
        learning_rate=LEARNING_RATE,
        max_depth=DEPTH,
        tree_method="hist",
        early_stopping_rounds=PATIENCE,
        n_jobs=1,
    )
    watched = [(sample.X[sample.watch], sample.given[sample.watch])]
    model.fit(sample.X[sample.train], sample.given[sample.train], eval_set=watched, verbose=False)
    rounds = int(model.best_iteration) + 1
    size = len(model.get_booster()[:rounds].save_raw("ubj"))
    return Outcome(model.predict_proba(sample.X[sample.judge]), rounds, size)


METHODS: dict[str, Callable[[Sample], Outcome]] = {
    "one against the rest, alpha 1": lambda sample: boost_one_against_rest(sample, 1.0),
    "one against the rest, alpha 2": lambda sample: boost_one_against_rest(sample, 2.0),
    "a tree for each class (XGBoost)": boost_with_xgboost,
    "shared trees, alpha 1": lambda sample: boost_together(sample, 1.0),
    "shared trees, alpha 2": lambda sample: boost_together(sample, 2.0),
}


def measure(sample: Sample, method: str) -> dict[str, float]:
    """Fit by a method and judge it."""
    start = time.process_time()
    outcome = METHODS[method](sample)
    seconds = time.process_time() - start
    labels = sample.labels[sample.judge]
    p = np.maximum(outcome.posterior[np.arange(len(labels)), labels], 1e-6)
    return {
        "accuracy": float((outcome.posterior.argmax(axis=1) == labels).mean()),
        "log_loss": float(-np.log(p).mean()),
        "seconds": seconds,
        "rounds": outcome.rounds,
        "kilobytes": outcome.n_bytes / 1024,
    }


def make_table(rows: list[dict[str, Any]], name: str, noise: float) -> TextTable:
    """Average over the splits of a data set."""
    here = [row for row in rows if row["data"] == name and row["noise"] == noise]
    lines = []
    for method in METHODS:
        found = [row for row in here if row["method"] == method]
        means = {column: float(np.mean([row[column] for row in found])) for column in COLUMNS[6:]}
        lines.append(
            [
                method,
                f"{means['accuracy']:.3f}",
                f"{means['log_loss']:.3f}",
                f"{means['seconds']:.2f}",
                f"{means['rounds']:.0f}",
                f"{means['kilobytes']:.0f}",
            ]
        )
    labels = f"{noise:.0%} of the labels replaced" if noise else "labels as they come"
    title = f"{name}: {here[0]['rows']} rows, {here[0]['classes']} classes, {labels}"
    return TextTable(title, "", ["", "accuracy", "log-loss", "seconds", "rounds", "kB"], lines)


def main() -> None:
    """Boost all tables by every method and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", type=Path, help="folder of CSV files with a column label")
    parser.add_argument("--names", nargs="*", default=[], help="files of that folder, without .csv")
    parser.add_argument("--classes", nargs="*", type=int, default=[3, 10, 50], help="classes of the tables to make")
    parser.add_argument("--rows", type=int, default=8000, help="rows of the tables to make")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    tables = list(make_tables(options.rows, 16, options.classes))
    if options.data is not None:
        tables += read_tables(options.data, options.names)
    out = Path("results/several_classes_boosters.csv")
    rows: list[dict[str, Any]] = []
    with Writer(out, COLUMNS, resume=False) as results, ProgressLine() as line:
        for count, (name, X, labels) in enumerate(tables, start=1):
            for noise in NOISE:
                for seed in range(options.seeds):
                    sample = make_sample(name, X, labels, noise, seed)
                    for method in METHODS:
                        first = [name, len(labels), sample.n_classes, noise, seed, method]
                        row = dict(zip(COLUMNS, first, strict=False)) | measure(sample, method)
                        rows.append(row)
                        results.add(row.values())
            line.show(describe_progress(count, len(tables), line.seconds, "tables"))
    for name, _, _ in tables:
        for noise in NOISE:
            print(make_table(rows, name, noise))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
