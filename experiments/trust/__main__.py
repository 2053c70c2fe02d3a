"""``python -m experiments.trust``."""

import sys

from experiments.trust.program import NAME, main
from untwist.commands.main import run_program

if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
