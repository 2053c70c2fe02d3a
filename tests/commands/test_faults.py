"""Faults around the library: disks, kills, clocks, missing packages, no network. They end in words, nothing is lost."""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import datasets
from helpers.patience import PATIENCE
from untwist import PILBoostClassifier, UntwistClassifier, load, save
from untwist.audit import audit_labels
from untwist.commands import main as cli
from untwist.files import dumps
from untwist.files.whole_files import write_whole

# From Python 3.12 on a fork warns where there are threads, as libraries and pytest-xdist start them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

SOURCE = Path(sys.modules["untwist"].__file__).parent


@pytest.fixture(scope="module")
def models():
    """Two that differ, the second of some size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    return [PILBoostClassifier(alpha=2.0, n_estimators=n, max_depth=6, n_jobs=1).fit(X, y) for n in (5, 200)]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame.assign(label=np.where(frame["a"] > 0, "yes", "no")).to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def run_in_fork(work):
    """Runs work() in a copy of this process, which may be spoilt; what it raises comes back as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os.write(write, traceback.format_exc().encode()[-3000:])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        words = answer.read()
    os.waitpid(child, 0)
    assert not words, words


pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="for root alone")

# ---- disks ----


def test_a_folder_that_may_not_be_written_to_keeps_its_model(models):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(models[0], folder / "model.untwist")
        folder.chmod(0o555)
        content = dumps(models[1])

        def try_it():
            if os.geteuid() == 0:
                os.setuid(65534)  # Root may write anywhere; this user may not even read the package.
            with pytest.raises(PermissionError):
                write_whole(folder / "model.untwist", content)
            with pytest.raises(PermissionError):
                write_whole(folder / "other.untwist", content)

        run_in_fork(try_it)
        assert (folder / "model.untwist").read_bytes() == dumps(models[0])
        assert os.listdir(folder) == ["model.untwist"]
        folder.chmod(0o755)


def test_a_file_that_may_not_grow_leaves_the_old_one(models, tmp_path):
    path = tmp_path / "model.untwist"
    save(models[0], path)
    before = path.read_bytes()

    def try_it():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for size in (0, 1, len(dumps(models[1])) - 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            with pytest.raises(OSError, match="large") as raised:
                save(models[1], path)
            assert raised.value.errno == errno.EFBIG

    run_in_fork(try_it)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@needs_root
def test_a_disk_that_is_full_keeps_its_model(models, tmp_path):
    with mount_small_disk(tmp_path, kilobytes=len(dumps(models[0])) // 1024 + 40) as folder:
        save(models[0], folder / "model.untwist")
        with pytest.raises(OSError, match="No space"):
            save(models[1], folder / "model.untwist")
        assert (folder / "model.untwist").read_bytes() == dumps(models[0])
        assert os.listdir(folder) == ["model.untwist"]


@needs_root
def test_a_command_on_a_full_disk_ends_with_one_line(table, tmp_path, capsys):
    with mount_small_disk(tmp_path, kilobytes=4) as folder:
        for words in (["train"], ["audit", "--suspects", f"{folder}/suspects.csv", "--budget", "100"]):
            output = ["-o", f"{folder}/model.untwist"] if words == ["train"] else words[1:]
            assert cli.main([words[0], str(table), "--label", "label", *output]) == 1
            said = capsys.readouterr().err.splitlines()[-1]
            assert said.startswith(f"untwist {words[0]}: ")
            assert "No space left" in said
        assert os.listdir(folder) == []


@contextmanager
def mount_small_disk(tmp_path, kilobytes):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.slow
def test_a_full_device_is_an_os_error_for_models_and_one_line_for_results(models, table, tmp_path):
    with pytest.raises(OSError, match="No space"):
        save(models[0], "/dev/full")
    save(
        PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1).fit(*read_labelled_rows(table)),
        tmp_path / "model.untwist",
    )
    words = [sys.executable, "-m", "untwist.commands.main", "predict", str(tmp_path / "model.untwist"), str(table)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def read_labelled_rows(table):
    frame = pd.read_csv(table)
    return frame.drop(columns="label"), frame["label"]


# ---- kills ----


@pytest.mark.slow
def test_a_kill_in_the_middle_of_saving_leaves_a_whole_model(models, tmp_path):
    path, contents = tmp_path / "model.untwist", {dumps(model) for model in models}
    save(models[0], path)
    draw = random.Random(0)
    seen = set()
    for kill in range(2000):
        if kill >= 25 and seen == contents:  # It was in the middle of both; a busy machine takes longer to get there.
            break
        child = os.fork()
        if child == 0:
            while True:
                for content in contents:
                    write_whole(path, content)
        time.sleep(draw.uniform(0.001, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert path.read_bytes() in contents
        seen.add(path.read_bytes())
        load(path)
    assert seen == contents
    save(models[1], path)  # What kills left beside it is in nobody's way.
    assert all(name == path.name or name.startswith(f".{path.name}.") for name in os.listdir(tmp_path))


def test_a_file_reaches_the_disk_before_its_name_and_then_its_folder(models, tmp_path, monkeypatch):
    happened, fsync, replace = [], os.fsync, os.replace

    def synced(handle):
        happened.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def renamed(source, target):
        happened.append(("rename", str(source), str(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    path = tmp_path / "model.untwist"
    save(models[0], path)
    (_, first), (_, source, target), (_, last) = happened
    assert first == source
    assert target == str(path)
    assert last == str(tmp_path)


# ---- clocks ----


def test_a_clock_that_goes_backwards_changes_nothing(monkeypatch, table):
    X, y = read_labelled_rows(table)
    expected = dumps(UntwistClassifier(random_state=0).fit(X, y))
    clock = iter(range(2**31, 0, -86_400))
    for name in ("time", "time_ns"):
        monkeypatch.setattr(time, name, lambda: float(next(clock)))
    told = []
    model = UntwistClassifier(random_state=0, callbacks=[lambda one: told.append(one.seconds)]).fit(X, y)
    assert dumps(model) == expected
    assert told == sorted(told)
    assert told[0] >= 0


def test_durations_are_not_taken_from_the_clock_on_the_wall():
    text = {file: file.read_text() for file in SOURCE.rglob("*.py")}
    assert not [str(file) for file, words in text.items() if "time.time(" in words or "from time import time" in words]


# ---- packages ----

BLOCKED = """
import importlib.abc, sys

class Nobody(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Nobody())
"""
OPTIONAL = ["pandas", "pyarrow", "polars", "xgboost", "lightgbm", "catboost", "torch", "matplotlib", "shap", "onnx",
            "onnxruntime", "treelite", "cleanlab", "dask", "distributed", "pyspark", "ray"]  # fmt: skip
WITHOUT = """
import io, contextlib
import numpy as np
import untwist
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.commands import main as cli
from untwist.audit import audit_labels
from untwist.distributed import ray, spark
from untwist.explain import explain
from untwist.export import to_code, to_onnx, to_treelite
from untwist.files import dumps, loads
from untwist.objectives import torch_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.where(X[:, 0] > 0, "yes", "no")
model = PILBoostClassifier(random_state=0).fit(X, y)
assert (loads(dumps(model)).predict(X) == model.predict(X)).all()
audit = audit_labels(X, y, model)
explained = explain(model, X)
assert "predict_proba" in to_code(model)
for needs in (audit.to_frame, explained.to_shap, lambda: to_onnx(model), lambda: to_treelite(model),
              lambda: torch_loss(2.0), lambda: PILBoostClassifier(2.0, engine="xgboost").fit(X, y),
              lambda: ray.fit(model, X, "y", n_workers=2), lambda: spark.fit(model, X, "y", n_workers=2)):
    try:
        needs()
    except ImportError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError("it needs nothing?")
for words in (["train", "t.csv", "--label", "y"], ["predict", "m", "t.csv"], ["audit", "t.csv", "--label", "y"]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert cli.main(words) == 1
    assert len(said.getvalue().splitlines()) == 1, said.getvalue()
with contextlib.redirect_stdout(io.StringIO()) as said:
    assert cli.main(["doctor"]) == 0
assert "All in order" in said.getvalue()
"""


def test_without_any_optional_package_the_core_works_and_the_rest_says_what_to_install(tmp_path):
    program = BLOCKED.format(names=OPTIONAL) + WITHOUT
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


COMMANDS = """
import contextlib, io, json
from untwist.commands import main as cli

answers = []
for command in ("train", "audit"):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        status = cli.main([command, sys.argv[1], "--label", "label"])
    answers.append([status, said.getvalue()])
print(json.dumps(answers))
"""


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
@pytest.mark.thinned(2)
def test_commands_without_one_of_their_packages_end_with_one_line(table, tmp_path, missing):
    program = [sys.executable, "-c", BLOCKED.format(names=[missing]) + COMMANDS, str(table)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    for status, said in json.loads(done.stdout):
        if status == 0:
            continue  # The command can do without the package.
        assert status == 1
        assert "pip install" in said.splitlines()[-1]


def test_an_xgboost_that_is_too_old_is_named(monkeypatch):
    xgboost = pytest.importorskip("xgboost")
    monkeypatch.setattr(xgboost, "__version__", "2.1.4")
    X = np.arange(20.0)[:, None]
    with pytest.raises(ImportError, match=r"needs xgboost 3 or newer, got 2\.1\.4: pip install --upgrade"):
        PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1, engine="xgboost").fit(X, X[:, 0] > 9)


# ---- networks ----


def test_without_a_network_a_download_says_so(monkeypatch, tmp_path):
    import socket
    from urllib.request import OpenerDirector

    def nobody(*_, **__):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "create_connection", nobody)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr(OpenerDirector, "open", nobody)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    name = sorted(datasets.OPENML)[0]
    with pytest.raises(ValueError, match=rf"{name}.* could not be downloaded .*name resolution.*try again, or put"):
        datasets.load(name, download=True, cache=tmp_path)


def test_nothing_is_downloaded_unless_asked_for(monkeypatch, tmp_path):
    import socket

    def nobody(*_, **__):
        raise AssertionError("it asked for the network")

    monkeypatch.setattr(socket.socket, "connect", nobody)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(ValueError, match="download=True"):
        datasets.load(sorted(datasets.OPENML)[0], folder=None, cache=tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    audit_labels(X, X[:, 0] > 0)
