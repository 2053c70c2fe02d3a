"""The alpha-loss in XGBoost, LightGBM, CatBoost and a PyTorch network, beside their own log-loss and PILBoost.

Labels of the training rows are flipped; accuracy and log-loss are those of clean test rows. Each method gets all the
twisted training rows and no clean label: what stops early does so on a stratified fifth of them, by the log-loss of its
twisted posterior. One thread each; the seeds give the intervals. Rows go to results/objectives.csv.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from experiments.datasets import load
from experiments.paper.comparison import summarise
from experiments.peers import fit_catboost, hold_out
from experiments.protocol import make_rng, split
from experiments.runner import record
from experiments.tables import TextTable
from untwist import UntwistClassifier
from untwist.audit.peers import LEARNING_RATE, PATIENCE, ROUNDS, fit_xgboost
from untwist.objectives import (
    CatBoostMetric,
    CatBoostObjective,
    LightGBMMetric,
    LightGBMObjective,
    XGBoostMetric,
    XGBoostObjective,
    clean_proba,
    torch_loss,
    twisted_log_loss,
)

DATA = ["cancer", "digits_odd", "xd6", "ten digits"]
NOISE = ["0.2", "0.4"]
#: Epochs of the network.
EPOCHS = 200
#: The width of its hidden layer.
HIDDEN = 128
COLUMNS = ["data", "noise", "seed", "library", "loss", "accuracy", "log_loss", "seconds"]


def draw_rows(data: str, noise: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Draw twisted training rows and clean test rows, as arrays."""
    if data != "ten digits":
        parts = split(load(data), f"symmetric-{noise}", seed, 2500)
        return parts.X.to_numpy(float), parts.y, parts.X_test.to_numpy(float), parts.y_test
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    rng = make_rng(data, noise, seed)
    wrong = rng.permutation(y.size) < float(noise) * y.size
    return X, np.where(wrong, (y + rng.integers(1, 10, y.size)) % 10, y), X_test, y_test


def predict_by_xgboost(X: Any, y: Any, X_test: Any, seed: int, alpha: float | None) -> Any:
    """Predict by XGBoost, stopped early."""
    settings: dict[str, Any] = {"n_estimators": ROUNDS, "learning_rate": LEARNING_RATE, "n_jobs": 1}
    if alpha:
        settings |= {"objective": XGBoostObjective(alpha), "eval_metric": XGBoostMetric(alpha)}
    return fit_xgboost(*hold_out(X, y, seed), random_state=seed, **settings).predict_proba(X_test)


def predict_by_lightgbm(X: Any, y: Any, X_test: Any, seed: int, alpha: float | None) -> Any:
    """Predict by LightGBM, stopped early; its own interface takes an objective of several classes."""
    import lightgbm

    X, y, held_out = hold_out(X, y, seed)
    classes = np.unique(y).size
    settings: dict[str, Any] = {"learning_rate": LEARNING_RATE, "num_threads": 1, "seed": seed, "verbose": -1}
    settings |= {"objective": "multiclass", "num_class": classes} if classes > 2 else {"objective": "binary"}
    if alpha:
        settings["objective"] = LightGBMObjective(alpha)
    rows = lightgbm.Dataset(X, y)
    model = lightgbm.train(
        settings,
        rows,
        ROUNDS,
        valid_sets=[rows.create_valid(held_out.X, held_out.y)],
        feval=LightGBMMetric(alpha) if alpha else None,
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return clean_proba(model.predict(X_test, raw_score=True))


def predict_by_catboost(X: Any, y: Any, X_test: Any, seed: int, alpha: float | None) -> Any:
    """Predict by CatBoost, stopped early."""
    X, y, held_out = hold_out(X, y, seed)
    classes = np.unique(y).size
    settings: dict[str, Any] = {"iterations": ROUNDS, "learning_rate": LEARNING_RATE, "random_seed": seed}
    if alpha:
        settings |= {"loss_function": CatBoostObjective(alpha), "eval_metric": CatBoostMetric(alpha)}
        settings |= {"classes_count": classes} if classes > 2 else {}
    model = fit_catboost(X, y, held_out, **settings)
    return clean_proba(model.predict(X_test, prediction_type="RawFormulaVal"))


def predict_by_torch(X: Any, y: Any, X_test: Any, seed: int, alpha: float | None) -> Any:
    """Predict by a network: a hidden layer, batches of 64, the epoch that was best on the held-out rows."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    X, y, held_out = hold_out(X, y, seed)
    y_val = held_out.y
    scaler = StandardScaler().fit(X)
    classes = np.unique(y).size
    X, X_val, X_test = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (X, held_out.X, X_test))
    wide = torch.nn.Linear(X.shape[1], HIDDEN)
    layers = wide, torch.nn.ReLU(), torch.nn.Linear(HIDDEN, classes if classes > 2 else 1)
    network, target = torch.nn.Sequential(*layers), torch.tensor(y)
    if alpha:
        criterion = torch_loss(alpha)
    elif classes > 2:
        criterion = torch.nn.CrossEntropyLoss()
    else:
        criterion, target = torch.nn.BCEWithLogitsLoss(), target.float()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    best = np.inf
    margin = np.zeros(len(X_test))
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            criterion(network(X[batch]).squeeze(1), target[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            loss = twisted_log_loss(network(X_val).squeeze(1).numpy(), y_val, alpha or 1.0)
            if loss < best:
                best = loss
                margin = network(X_test).squeeze(1).numpy()
    return clean_proba(margin)


def predict_by_untwist(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """Predict by our default."""
    return UntwistClassifier(n_jobs=1, random_state=seed).fit(X, y).predict_proba(X_test)


LIBRARIES = {
    "XGBoost": predict_by_xgboost,
    "LightGBM": predict_by_lightgbm,
    "CatBoost": predict_by_catboost,
    "PyTorch": predict_by_torch,
}
LOSSES = {"its own log-loss": None, "alpha-loss, 2": 2.0, "alpha-loss, 4": 4.0}
METHODS: dict[tuple[str, str], Callable[..., Any]] = {
    (library, loss): partial(fit, alpha=alpha) for library, fit in LIBRARIES.items() for loss, alpha in LOSSES.items()
}
METHODS["UntwistClassifier", "as it comes"] = predict_by_untwist


def judge(task: tuple[str, str, int, list[str]]) -> list[list[Any]]:
    """Fit all methods of the libraries to one split and judge them on its clean test rows."""
    data, noise, seed, libraries = task
    warnings.filterwarnings("ignore")
    X, y, X_test, y_test = draw_rows(data, noise, seed)
    rows = []
    for (library, loss), fit in METHODS.items():
        if library not in libraries:
            continue
        begin = time.process_time()
        p = fit(X, y, X_test, seed).clip(1e-6, 1 - 1e-6)
        seconds = time.process_time() - begin
        accuracy = float(np.mean(p.argmax(axis=1) == y_test))
        cost = float(log_loss(y_test, p / p.sum(axis=1, keepdims=True)))
        rows.append([data, noise, seed, library, loss, accuracy, cost, seconds])
    return rows


def pick(rows: list[dict[str, Any]], **key: str) -> list[float]:
    """Pick the column `of` from the runs with that key, in the order of the seeds."""
    column = key.pop("of")
    runs = [row for row in rows if all(row[name] == value for name, value in key.items())]
    return [row[column] for row in sorted(runs, key=lambda row: row["seed"])]


def count_leads(rows: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Count columns, and those where PILBoost is more and less accurate than the best of the others (paired, 95 %)."""
    leads = []
    for data in DATA:
        for noise in NOISE:
            runs = [pick(rows, of="accuracy", data=data, noise=noise, library=one, loss=loss) for one, loss in METHODS]
            *others, ours = filter(None, runs)
            leads.append(summarise(np.subtract(ours, max(others, key=np.mean))))
    return len(leads), sum(one.mean > one.half for one in leads), sum(one.mean < -one.half for one in leads)


def make_table(rows: list[dict[str, Any]]) -> TextTable:
    """Average over splits, and mark what differs from the library's own loss."""
    lines = []
    marks = ""
    lower = []
    for noise in NOISE:
        for library, loss in METHODS:
            if not any(row["library"] == library for row in rows):
                continue
            line = [f"{float(noise):.0%}  {library}, {loss}"]
            for data in DATA:
                where = {"data": data, "noise": noise, "library": library}
                scores = pick(rows, of="accuracy", loss=loss, **where)
                costs = summarise(pick(rows, of="log_loss", loss=loss, **where))
                own = pick(rows, of="accuracy", loss="its own log-loss", **where) or scores
                ahead = summarise(np.subtract(scores, own))
                mark = "+" if ahead.mean > ahead.half else "-" if ahead.mean < -ahead.half else " "
                mean = summarise(scores)
                if LOSSES.get(loss):
                    marks += mark
                    lower.append(costs.mean < np.mean(pick(rows, of="log_loss", loss="its own log-loss", **where)))
                line += [f"{mean.mean:.3f} ±{mean.half:.3f}{mark}", f"{costs.mean:.2f} ±{costs.half:.2f}"]
            lines.append([*line, f"{np.mean(pick(rows, of='seconds', library=library, loss=loss, noise=noise)):.2f}"])
    header = ["wrong labels, method", *(cell for data in DATA for cell in (data, "log-loss")), "seconds"]
    note = (
        f"Accuracy and log-loss on clean test rows, mean of {len({row['seed'] for row in rows})} splits ± 95 %.\n"
        "+ and -: more or less accurate than with the library's own log-loss (95 % interval of paired differences).\n"
        f"Of {len(marks)} means of the alpha-loss, {marks.count('+')} are more accurate, {marks.count('-')} less, and"
        f" {sum(lower)} have a lower log-loss.\n"
        "UntwistClassifier beside the most accurate of the others in each of {} columns: ahead {}, behind {}.".format(
            *count_leads(rows)
        )
    )
    return TextTable("The alpha-loss in other libraries", note, header, lines)


def main() -> None:
    """Run all methods and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="two splits of the two smallest sets")
    parser.add_argument("--render", action="store_true", help="the table of rows that are there")
    options = parser.parse_args()
    out = Path("results/objectives.csv")
    if options.render:
        with out.open(newline="") as file:
            numbers = ("seed", "accuracy", "log_loss", "seconds")
            print(make_table([row | {name: float(row[name]) for name in numbers} for row in csv.DictReader(file)]))
        return
    if options.quick:
        DATA[:] = ["cancer", "xd6"]
        options.seeds = 2
    libraries = ["UntwistClassifier"]
    for library in LIBRARIES:
        name = library.lower().removeprefix("py")
        if importlib.util.find_spec(name):
            libraries.append(library)
        else:
            print(f"{library} is left out: pip install {name} brings it.", file=sys.stderr)
    tasks = [(data, noise, seed, libraries) for seed in range(options.seeds) for data in DATA for noise in NOISE]
    rows = record(tasks, judge, COLUMNS, out)
    print(make_table([dict(zip(COLUMNS, row, strict=True)) for row in rows]))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
