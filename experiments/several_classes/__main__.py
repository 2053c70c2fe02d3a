"""``python -m experiments.several_classes``."""

import sys

from experiments.several_classes.program import NAME, main
from untwist.commands.main import run_program

if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
