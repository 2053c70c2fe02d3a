"""The parser of a command's arguments."""

from __future__ import annotations

import argparse
from typing import NoReturn

from untwist.text import for_terminal


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors a terminal shows and does not obey: names of files are foreign text."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and end the program with status 2.

        Parameters
        ----------
        message : str
            What is wrong.
        """
        super().error(for_terminal(message))
