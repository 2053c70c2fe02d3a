"""A plugin of pytest that puts stand-ins into the tests of scikit-learn and holds them to the list of differences."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from sklearn import ensemble

from reliability.peers.stand_ins import STAND_INS, Fits

# Scikit-learn's own modules import what they need before anything is replaced.
for name in ("calibration", "inspection", "model_selection", "multiclass", "multioutput", "semi_supervised"):
    importlib.import_module(f"sklearn.{name}")

ENSEMBLES = "sklearn.ensemble.tests"
HISTOGRAMS = "sklearn.ensemble._hist_gradient_boosting.tests"
ANY_CLASSIFIER = tuple(STAND_INS)  # Tests of meta-estimators, of inspection and of searches hold any of them.
#: By module of tests the classifiers that PILBoostClassifier stands in for.
SUITES: dict[str, tuple[type, ...]] = {
    f"{HISTOGRAMS}.test_gradient_boosting": (ensemble.HistGradientBoostingClassifier,),
    f"{HISTOGRAMS}.test_monotonic_constraints": (ensemble.HistGradientBoostingClassifier,),
    f"{HISTOGRAMS}.test_warm_start": (ensemble.HistGradientBoostingClassifier,),
    f"{ENSEMBLES}.test_gradient_boosting": (ensemble.GradientBoostingClassifier,),
    f"{ENSEMBLES}.test_forest": (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier),
    f"{ENSEMBLES}.test_weight_boosting": (ensemble.AdaBoostClassifier,),
    **dict.fromkeys(
        [
            f"{ENSEMBLES}.test_bagging",
            f"{ENSEMBLES}.test_stacking",
            f"{ENSEMBLES}.test_voting",
            "sklearn.feature_selection.tests.test_from_model",
            "sklearn.feature_selection.tests.test_rfe",
            "sklearn.inspection.tests.test_partial_dependence",
            "sklearn.inspection.tests.test_permutation_importance",
            "sklearn.model_selection.tests.test_classification_threshold",
            "sklearn.model_selection.tests.test_plot",
            "sklearn.model_selection.tests.test_search",
            "sklearn.model_selection.tests.test_validation",
            "sklearn.semi_supervised.tests.test_self_training",
            "sklearn.tests.test_calibration",
            "sklearn.tests.test_multiclass",
            "sklearn.tests.test_multioutput",
        ],
        ANY_CLASSIFIER,
    ),
}
#: Kinds of rows in the list of differences. What does not apply is not run; the others are, and must fail.
NOT_APPLICABLE = "does not apply"
DIFFERENT = "different"
MISSING = "missing"
DIFFERENCES = Path(__file__).with_name("differences.toml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to run the tests without the list, to write it."""
    parser.addoption("--unlisted", action="store_true", help="run all tests, and expect nothing of any")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let the modules of tests import the stand-ins in place of what they ask for."""
    with ExitStack() as patches:
        if isinstance(collector, pytest.Module):
            for peer in SUITES[name_module(collector.path)]:
                patches.enter_context(mock.patch(f"{find_package(peer)}.{peer.__name__}", STAND_INS[peer]))
        return (yield)


def name_module(path: Path) -> str:
    """The name under which a file of scikit-learn is imported."""
    parts = path.with_suffix("").parts
    return ".".join(parts[len(parts) - parts[::-1].index("sklearn") - 1 :])


def find_package(peer: type) -> str:
    """The public package that a classifier is imported from: `sklearn.svm`."""
    return ".".join(peer.__module__.split(".")[:2])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply, and expect what is listed as different to fail."""
    if config.getoption("unlisted"):
        return
    names = {item: f"{name_module(item.path).removeprefix('sklearn.')}::{item.name}" for item in items}
    run = {name.partition("::")[0] for name in names.values()}
    for row in read_differences():
        reason = f"{row['kind']}: {row['reason']}"
        mark = pytest.mark.skip if row["kind"] == NOT_APPLICABLE else partial(pytest.mark.xfail, strict=True)
        for pattern in row["tests"]:
            matching = [item for item, name in names.items() if matches(name, pattern)]
            if not matching and pattern.partition("::")[0] in run:
                raise pytest.UsageError(f"{DIFFERENCES.name} lists {pattern}, which is no test of this scikit-learn")
            for item in matching:
                item.add_marker(mark(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note down how many models of ours a test fits."""
    before = Fits.count
    try:
        return (yield)
    finally:
        item.user_properties.append(("fits", Fits.count - before))


def read_differences() -> list[dict[str, Any]]:
    """The list of tests that do not apply or are known to fail, each with its kind and its reason."""
    rows: list[dict[str, Any]] = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))["difference"]
    return rows


def matches(name: str, pattern: str) -> bool:
    """Whether a test is one of those that a pattern with stars stands for."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
