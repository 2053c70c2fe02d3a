"""What a command is asked for is looked at before anything large is imported: a refusal is there at once."""

import json
import subprocess
import sys

import pytest

from tests.helpers.command_line import untwist

#: What takes long to import.
LARGE = ["numpy", "scipy", "sklearn", "pandas", "pyarrow", "untwist._core", "untwist.classifier"]

ASK = """
import contextlib, io, json, sys
from untwist.commands.main import main

answers = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = stop.code
    answers.append([status, out.getvalue() + err.getvalue(), [name for name in LARGE if name in sys.modules]])
print(json.dumps(answers))
"""

#: Arguments, the exit status, and words of the answer.
QUESTIONS = [
    (["--help"], 0, "Learn the truth"),
    (["--version"], 0, "untwist "),
    (["no-such-command"], 2, "invalid choice"),
    *(([command, "--help"], 0, f"usage: untwist {command}") for command in ("train", "predict", "audit", "review")),
    *(([command, "--help"], 0, f"usage: untwist {command}") for command in ("apply", "explain", "inspect", "doctor")),
    (["train", "none.csv", "--label", "y"], 1, "untwist train: none.csv does not exist"),
    (["train", "there.csv", "--label", "y", "--reviewed", "none.csv"], 1, "none.csv does not exist"),
    (["train", "there.csv"], 2, "--label"),
    (["train", "there.csv", "--lable", "y"], 2, "--label"),
    (["train", "there.csv", "--label", "y", "--unknown"], 2, "unrecognized arguments: --unknown"),
    (["train", "there.csv", "--label", "y", "--threads", "0"], 2, "--threads: must be a whole number other than 0"),
    (["train", "there.csv", "--label", "y", "--seed", "-1"], 2, "--seed: must be a whole number from 0 to 4294967295"),
    (["train", "there.csv", "--label", "y", "--blocks"], 1, "only these are read in blocks"),
    (["train", "there.csv", "--label", "y", "--sheet", "a"], 1, "there.csv is no spreadsheet"),
    (["train", "there.csv", "--label", "y", "-o", "nowhere/m"], 1, "there is no folder nowhere"),
    (["train", ".", "--label", "y"], 1, "is a folder"),
    (["train", "there.json", "--label", "y"], 1, "there.json is a .json file"),
    (["predict", "none.untwist", "there.csv"], 1, "none.untwist does not exist"),
    (["predict", "there.csv", "none.csv"], 1, "none.csv does not exist"),
    (["audit", "none.csv", "--label", "y"], 1, "none.csv does not exist"),
    (["audit", "there.csv", "--label", "y", "--probabilities", "none.csv"], 1, "none.csv does not exist"),
    (["audit", "there.csv", "--label", "y", "--suspects", "s.xlsx"], 1, "s.xlsx cannot be written"),
    (["audit", "there.csv", "--label", "y", "--budget", "0"], 2, "--budget: must be at least 1"),
    (["review", "none.csv", "--label", "y"], 1, "none.csv does not exist"),
    (["review", "there.csv", "--label", "y", "--port", "70000"], 2, "--port must be from 0 to 65535"),
    (["apply", "none.csv", "there.csv", "-o", "c.csv"], 1, "none.csv does not exist"),
    (["apply", "there.csv", "none.csv", "-o", "c.csv"], 1, "none.csv does not exist"),
    (["explain", "none.untwist", "there.csv"], 1, "none.untwist does not exist"),
    (["explain", "there.csv", "there.csv", "--top", "0"], 2, "--top: must be at least 1"),
    (["inspect", "none.csv"], 1, "none.csv does not exist"),
    (["inspect", "none.untwist"], 1, "none.untwist does not exist"),
]


def test_what_cannot_be_done_is_told_before_anything_large_is_imported(tmp_path):
    (tmp_path / "there.csv").write_text("x,y\n1,a\n")
    (tmp_path / "there.json").write_text("{}")
    program = f"LARGE = {LARGE!r}\n{ASK}"
    asked = json.dumps([arguments for arguments, _, _ in QUESTIONS])
    done = subprocess.run(
        [sys.executable, "-c", program, asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for (arguments, status, words), (given, answer, imported) in zip(QUESTIONS, json.loads(done.stdout), strict=True):
        assert (given, imported) == (status, []), arguments
        assert words in answer, arguments


def test_the_import_of_the_package_imports_nothing_large():
    program = f"import sys, untwist; print([name for name in {LARGE!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("threads", ["1", "-1", "-2"])
def test_numbers_of_threads_that_the_library_takes_are_taken(tmp_path, capsys, threads):
    status, _, err = untwist(capsys, "train", tmp_path / "none.csv", "--label", "y", "--threads", threads)
    assert status == 1
    assert "does not exist" in err
