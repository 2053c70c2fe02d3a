"""Is everything in order here? ``untwist doctor``: versions, instruction set, threads, extras, a self-test."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import re
import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer

from untwist import _core
from untwist.boosting.forest import count_threads
from untwist.classifier import UntwistClassifier
from untwist.commands.steps import encode_json
from untwist.files import dumps, loads
from untwist.pilboost import PILBoostClassifier
from untwist.theory.links import CanonicalLink
from untwist.theory.losses import AlphaLoss
from untwist.twisters import ClassNoise


def list_extras() -> dict[str, dict[str, str]]:
    """List what each extra brings.

    Returns
    -------
    dict
        By extra and distribution the version, empty where it is missing.
    """
    found: dict[str, dict[str, str]] = {}
    of_others: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("untwist") or []:
        match = re.match(r"([A-Za-z0-9_.-]+)(?:\[([^\]]*)\])?[^;]*;.*extra\s*==\s*['\"]([^'\"]+)", line)
        if match and match[1] == "untwist":  # The extra is made of others.
            of_others[match[3]] = match[2].split(",")
        elif match:
            found.setdefault(match[3], {})[match[1]] = find_version(match[1])

    def all_of(extra: str) -> dict[str, str]:
        packages = dict(found.get(extra, {}))
        for other in of_others.get(extra, []):
            packages |= all_of(other.strip())
        return packages

    return {name: all_of(name) for name in sorted({*found, *of_others}) if name != "dev"}


def find_version(name: str) -> str:
    """Return the version of a distribution, empty where it is missing."""
    for each in (name, f"{name}-cpu"):  # XGBoost goes by two names.
        try:
            return importlib.metadata.version(each)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def run_self_test() -> dict[str, bool]:
    """Run small checks of what everything rests on.

    Returns
    -------
    dict
        By the name of a check, whether it was passed.
    """
    X, y = load_breast_cancer(return_X_y=True)
    _, noisy, flipped = ClassNoise(0.3).twist(X, y, rng=0)
    on_one_thread, on_two_threads = (
        PILBoostClassifier(n_estimators=50, max_depth=2, n_jobs=jobs).fit(X, noisy) for jobs in (1, 2)
    )
    z = np.linspace(-3, 3, 1001)
    compiled, plain = CanonicalLink(AlphaLoss(1.5)), CanonicalLink.numerical(AlphaLoss(1.5))
    model = UntwistClassifier(random_state=0).fit(X, noisy)
    return {
        "compiled links are those of the formulas": bool(np.abs(compiled.inverse(z) - plain.inverse(z)).max() < 1e-6),
        "the same model on one thread and on two": bool(
            np.array_equal(on_one_thread.decision_function(X), on_two_threads.decision_function(X))
        ),
        "finds wrong labels": bool(np.mean(model.predict(X)[flipped] == y[flipped]) > 0.8),
        "a model file gives back the model": bool(
            np.array_equal(loads(dumps(model)).predict_proba(X), model.predict_proba(X))
        ),
    }


def main(options: argparse.Namespace) -> int:
    """Print versions and what is missing; the exit status is 1 if the self-test fails.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    start = time.monotonic()
    core = {name: find_version(name) for name in ("untwist", "numpy", "scipy", "scikit-learn")}
    checks = run_self_test()
    found = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "instruction_set": _core.instruction_set(),
        "threads": count_threads(None),
        "versions": core,
        "extras": list_extras(),
        "self_test": checks,
        "seconds": round(time.monotonic() - start, 2),
    }
    if options.json:
        print(encode_json(found))
    else:
        print(f"Python {found['python']}, {found['machine']} ({found['instruction_set']}), {found['threads']} threads")
        print(", ".join(f"{name} {version}" for name, version in core.items()))
        for name, packages in list_extras().items():
            missing = [package for package, version in packages.items() if not version]
            words = f'missing {", ".join(missing)}: pip install "untwist[{name}]"' if missing else "complete"
            print(f"  {name:<12} {words}")
        for name, passed in checks.items():
            print(f"  {'ok    ' if passed else 'FAILED'} {name}")
        print(f"{'All in order' if all(checks.values()) else 'Something is wrong'} ({found['seconds']} s)")
    if not all(checks.values()):
        print("Please report this with the lines above.", file=sys.stderr)
        return 1
    return 0
