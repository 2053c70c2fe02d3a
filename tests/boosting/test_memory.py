"""What would take more memory than there is is refused before the work, and what runs out of it says so."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.quick import make_classifier
from untwist.boosting import memory
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import EngineOptions, Rows, Task, TreeGrowth
from untwist.boosting.engines.xgboost.engine import XGBoostEngine
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss

X = np.arange(2000.0)[:, None]
Y = np.arange(2000) % 400
on_linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells how much memory is used")


def make_joint_booster(n_rows, n_classes):
    labels = (np.arange(n_rows) % n_classes).astype(np.uint32)
    rows = Rows(np.arange(n_rows, dtype=float)[:, None] % 7, labels, np.ones(n_rows))
    engine = CompiledEngine()
    dataset = engine.make_dataset(rows, EngineOptions(n_jobs=1))
    task = Task(ClippedLink(AlphaLoss(1.0)), 0.1, TreeGrowth(max_depth=2), positive_class=None)
    return lambda: engine.make_booster(dataset, task)


@pytest.mark.parametrize(
    ("settings", "least"),
    # Five folds of 400 scores and gradients, and the scores twice; and 400 boosters.
    [
        ({}, 2000 * (5 * (24 + 12 * 400) + 16 * 400)),
        ({"alpha": 1.0, "n_estimators": 2, "max_depth": 2}, 2000 * 24 * 400),
    ],
    ids=["by folds", "given"],
)
def test_too_many_classes_are_refused_before_any_work(settings, least, monkeypatch):
    made = []
    monkeypatch.setattr(CompiledEngine, "make_dataset", lambda *args: made.append(args))
    monkeypatch.setattr(memory, "ALWAYS_THERE", 0)
    monkeypatch.setattr(memory, "find_free_memory", lambda: least - 1)
    words = (
        r"^to boost 400 classes on 2,000 rows takes at least 0\.\d GB of memory at once, and 0\.\d GB is free: fit a "
    )
    with pytest.raises(MemoryError, match=words + "part of the rows, or give rare classes one name$"):
        make_classifier(**settings).fit(X, Y)
    assert made == []
    monkeypatch.setattr(memory, "find_free_memory", lambda: least)
    with pytest.raises(AttributeError):  # The dataset that nobody made is asked for hashes.
        make_classifier(**settings).fit(X, Y)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("settings", "least"),
    [({}, 2000 * (5 * 20 + 16) * 400), ({"alpha": 1.0, "n_estimators": 2, "max_depth": 2}, 2000 * 20 * 400)],
    ids=["by folds", "given"],
)
def test_boosters_of_xgboost_are_counted_too(settings, least, monkeypatch):
    pytest.importorskip("xgboost")
    made = []
    monkeypatch.setattr(XGBoostEngine, "make_dataset", lambda *args: made.append(args))
    monkeypatch.setattr(memory, "ALWAYS_THERE", 0)
    monkeypatch.setattr(memory, "find_free_memory", lambda: least - 1)
    classifier = make_classifier(engine="xgboost", **settings)
    with pytest.raises(MemoryError, match=r"^to boost 400 classes on 2,000 rows takes"):
        classifier.fit(X, Y)
    assert made == []
    monkeypatch.setattr(memory, "find_free_memory", lambda: least)
    with pytest.raises(AttributeError):  # The dataset that nobody made is asked for hashes.
        classifier.fit(X, Y)
    assert len(made) == 1


def test_what_a_gpu_holds_is_not_counted(monkeypatch):
    monkeypatch.setattr(memory, "find_free_memory", lambda: 0)
    memory.check_memory_of_boosters(XGBoostEngine(), 10_000_000, 9, jointly=False, n_folds=0, device="cuda:1")
    with pytest.raises(MemoryError):  # What they say of the rows comes here.
        memory.check_memory_of_boosters(XGBoostEngine(), 10_000_000, 9, jointly=False, n_folds=5, device="cuda:1")


def test_little_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "find_free_memory", lambda: 1 / 0)
    memory.check_memory_of_boosters(CompiledEngine(), 10_000, 3, jointly=True, n_folds=5)
    with pytest.raises(ZeroDivisionError):
        memory.check_memory_of_boosters(CompiledEngine(), 10_000_000, 3, jointly=True, n_folds=5)


MEASURE = """
import resource, sys
from pathlib import Path
from boosting.test_memory import make_joint_booster

def count_bytes():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

make = make_joint_booster(*map(int, sys.argv[1:]))
before = count_bytes()
booster = make()
booster.boost(1)
print(count_bytes() - before)
"""


@on_linux
@pytest.mark.parametrize(("n_rows", "n_classes"), [(100_000, 200), (1_000_000, 7)])
def test_a_booster_holds_what_was_forecast(n_rows, n_classes):
    """In a process of its own: what earlier tests gave back to the allocator would be taken from there."""
    command = [sys.executable, "-c", MEASURE, str(n_rows), str(n_classes)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    # What comes before the booster may have left a little for it.
    assert int(done.stdout) > 0.8 * CompiledEngine().count_bytes(n_rows, n_classes, jointly=True)


@on_linux
def test_memory_that_runs_out_in_the_core_is_told_in_a_sentence():
    import resource

    make = make_joint_booster(300_000, 300)  # A gigabyte.
    usual = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), usual[1]))
    try:
        free = memory.find_free_memory()
        with pytest.raises(MemoryError, match=r"^there is not enough memory for this: give fewer rows, columns or"):
            make()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)
    assert 0 < free <= 1 << 28


def test_a_container_has_what_its_limit_leaves_and_its_cache(tmp_path):
    groups = tmp_path / "cgroup"
    groups.write_text("12:cpu:/other\n0::/outer/inner\n")
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    for folder, most in (("outer", "5000"), ("outer/inner", "max")):
        (tmp_path / folder / "memory.max").write_text(f"{most}\n")
        (tmp_path / folder / "memory.current").write_text("3000\n")
        (tmp_path / folder / "memory.stat").write_text("anon 2500\nfile 400\n")
    assert list(memory._iterate_containers(tmp_path, groups)) == [2400.0]
    assert list(memory._iterate_containers(tmp_path, tmp_path / "none")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells how much memory is free")
def test_the_system_tells_how_much_is_free():
    assert 0 < memory.find_free_memory() < math.inf
