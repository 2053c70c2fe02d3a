"""``python -m experiments.arena``."""

import sys

from experiments.arena.program import NAME, main
from untwist.commands.main import run_program

if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
