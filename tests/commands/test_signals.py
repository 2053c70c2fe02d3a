"""Ctrl-C at any moment: work ends soon, leaves something of use, and no process stays behind.

How soon is measured in the time of the processor, which other processes do not lengthen: all of it ends within 0.6 s.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import interrupting
from helpers.patience import PATIENCE
from untwist import load
from untwist.commands import main as cli

SOON = 8.0  # Seconds of the processor; each of the cases would take a minute and more.
TESTS = Path(__file__).parents[1]


def start(*arguments, **settings):
    """A process that hears Ctrl-C, which a job in the background of a shell ignores."""

    def hear() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(arguments, **pipes, text=True, preexec_fn=hear, **settings)


@pytest.mark.parametrize("case", interrupting.CASES)
@pytest.mark.slow
def test_ctrl_c_ends_work_soon_and_leaves_it_of_use(case):
    with start(sys.executable, "-m", "helpers.interrupting", case, "0.02", "0.7", cwd=TESTS) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, err
    for moment, seconds, _ in json.loads(out):
        assert seconds < SOON, f"{seconds} s after a signal at {moment} s"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60_000, 8)).round(3), columns=list("abcdefgh"))
    frame["label"] = np.where(frame["a"] + rng.normal(size=len(frame)) > 0, "yes", "no")
    path = tmp_path_factory.mktemp("table") / "table.csv"
    frame.to_csv(path, index=False)
    return path


def wait_for_imports(process, library="numpy"):
    """Wait until the process has begun to import, or has ended."""
    for _ in range(200 * PATIENCE):
        if process.poll() is not None or library in Path(f"/proc/{process.pid}/maps").read_text():
            return
        time.sleep(0.005)


TERMINATED = """
import os, signal, sys
from untwist.commands import main, train
from untwist.files.whole_files import open_whole

def end_while_it_writes(arguments):
    with open_whole("model.untwist") as file:
        file.write(b"half of it")
        child = os.fork()
        if not child:
            main._end_by_sigterm()
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
        assert len(os.listdir()) == 1  # It is not the child's to remove.
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

main.REQUESTS["train"] = lambda arguments: None
train.main = end_while_it_writes
main.main(["train"])
"""


def test_sigterm_leaves_no_half_of_a_file(tmp_path):
    # From Python 3.12 on a fork warns where there are threads, as libraries may have started.
    quiet = "-Wignore:This process:DeprecationWarning"
    with start(sys.executable, quiet, "-c", TERMINATED, cwd=tmp_path) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (-signal.SIGTERM, "")
    assert os.listdir(tmp_path) == []


def test_sigterm_is_as_it_was_after_a_command(capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["doctor"]) in (0, 1)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("command", "moments"),
    [
        (["train", "-o", "model.untwist"], (0.0, 1.5)),
        (["train", "-o", "model.untwist"], (0.3, 3.5)),
        (["audit", "--suspects", "suspects.csv"], (0.1, 2.0)),
    ],
    ids=["train", "train, other moments", "audit"],
)
def test_ctrl_c_ends_a_command_with_plain_words_from_its_imports_on(table, tmp_path, command, moments):
    for moment in moments:
        words = [command[0], str(table), "--label", "label", "--threads", "1", *command[1:]]
        with start(sys.executable, "-m", "untwist.commands.main", *words, cwd=tmp_path) as process:
            try:
                wait_for_imports(process)
                time.sleep(moment)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
        assert "Traceback" not in err, f"after a signal at {moment} s"
        if process.returncode == 0 and moment > 0.5:
            return  # It was done when the signal came.
        # If the signal comes while an import executes text, Python ends itself by it: a shell calls that 130 too.
        assert process.returncode in (130, -signal.SIGINT), f"after a signal at {moment} s: {err}"
        assert "Stopped." in err or process.returncode == -signal.SIGINT
        model = tmp_path / "model.untwist"
        if model.exists():
            assert len(load(model).classes_) == 2
            model.unlink()
        assert os.listdir(tmp_path) == []
