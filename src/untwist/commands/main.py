"""The command line, ``untwist COMMAND``. Results go to standard output, progress to standard error."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import io
import os
import signal
import sys
from threading import current_thread, main_thread
from typing import Any

from untwist.text import printable

COMMANDS = {  # the module whose main(arguments) it is, and what it does
    "train": ("untwist.commands.train", "train a model on a table whose labels may be wrong"),
    "predict": ("untwist.commands.predict", "predict the labels of a table"),
    "audit": ("untwist.commands.audit", "which labels of a table are wrong?"),
    "explain": ("untwist.commands.explain", "which columns make a prediction?"),
    "inspect": ("untwist.commands.inspect", "what is in a model file?"),
    "doctor": ("untwist.commands.doctor", "is everything in order here? versions, extras, a self-test"),
}


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 done, 1 it could not be done, 2 not understood, 130 stopped by Ctrl-C."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def _run(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="untwist", description="Learn the truth from data that lies.")
    version = importlib.metadata.version("untwist")
    parser.add_argument("--version", action="version", version=f"untwist {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)  # the command itself answers --help
    chosen, rest = parser.parse_known_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no ± gets a question mark
    try:
        status = _imported(COMMANDS[chosen.command][0]).main(rest)
        if sys.stdout is not None:  # as it is where it was closed
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(printable(f"untwist {chosen.command}: {reason}"), file=sys.stderr)
        return 1
    except (ValueError, ImportError) as error:
        print(printable(f"untwist {chosen.command}: {error}"), file=sys.stderr)
        return 1
    except MemoryError:
        print(f"untwist {chosen.command}: there is not enough memory for this", file=sys.stderr)
        return 1
    return int(status or 0)


def _imported(name: str) -> Any:
    """A module. Ctrl-C meanwhile ends the process at once: within an import the interrupt may get lost."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or current_thread() is not main_thread():
        return importlib.import_module(name)
    signal.signal(signal.SIGINT, _end)
    try:
        return importlib.import_module(name)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os.write(2, b"\nStopped.\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
