"""The command line as a person uses it, and the words that it says."""

import re

from untwist.commands import main as cli

# A fit that takes long says how far it is; on a busy machine any fit may.
PROGRESS = re.compile(
    r"[█░]+ \d+%, about .* left: .*|trying alpha .*, round \d+|\d+ of \d+ folds of the classifier, .*"
)


def untwist(capsys, *arguments):
    """Run a command; returns its exit status, its standard output, and its standard error without lines of progress."""
    try:
        status = cli.main(list(map(str, arguments)))
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    return status, out, drop_progress(err)


def drop_progress(text):
    """The text without the lines that tell how far a fit is."""
    return "".join(line for line in text.splitlines(keepends=True) if not PROGRESS.fullmatch(line.rstrip("\n")))
