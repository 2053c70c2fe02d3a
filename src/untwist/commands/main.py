"""The command line, ``untwist COMMAND``. Results go to standard output, progress to standard error."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from untwist.commands.parser import CommandParser
from untwist.commands.requests import REQUESTS
from untwist.text import for_terminal

#: The module of each command, whose main(options) it is, and what the command does.
COMMANDS = {
    "train": ("untwist.commands.train", "train a model on a table whose labels may be wrong"),
    "predict": ("untwist.commands.predict", "predict the labels of a table"),
    "audit": ("untwist.commands.audit", "which labels of a table are wrong?"),
    "review": ("untwist.commands.review", "decide about suspect labels on a page of this machine"),
    "apply": ("untwist.commands.apply", "change the labels that a person decided on, and nothing else"),
    "explain": ("untwist.commands.explain", "which columns make a prediction?"),
    "inspect": ("untwist.commands.inspect", "what is in a model file, or how will a table be read?"),
    "doctor": ("untwist.commands.doctor", "is everything in order here? versions, extras, a self-test"),
}


#: What takes the arguments of a command line, by default those of this process, and gives an exit status, None for 0.
Program = Callable[[list[str] | None], int | None]


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status: 0 done, 1 it could not be done, 2 not understood, 130 stopped by Ctrl-C.
    """
    try:
        name, rest = _choose(arguments)
        with _hear_sigterm():
            return run_program(f"untwist {name}", lambda given: _run(name, given), rest)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def _run(name: str, arguments: list[str] | None) -> int | None:
    """Run a command by its name. Nothing large is imported before the options are found to be in order."""
    options = REQUESTS[name](arguments)
    status: int | None = _import(COMMANDS[name][0]).main(options)
    return status


@contextmanager
def _hear_sigterm() -> Iterator[None]:
    """Let SIGTERM remove unfinished files meanwhile, before it ends the program."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end_by_sigterm)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _choose(arguments: list[str] | None) -> tuple[str, list[str]]:
    """The command that was asked for, and its arguments."""
    parser = CommandParser(prog="untwist", description="Learn the truth from data that lies.")
    version = importlib.metadata.version("untwist")
    parser.add_argument("--version", action="version", version=f"untwist {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)  # The command itself answers --help.
    chosen, rest = parser.parse_known_args(arguments)
    return chosen.command, rest


def run_program(name: str, program: Program, arguments: list[str] | None = None) -> int:
    """Run a program; what goes wrong is told in one sentence.

    Parameters
    ----------
    name : str
        What the program is called in that sentence.
    program : Program
        What is run.
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status: 0 done, 1 it could not be done, 130 stopped by Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal that knows no ± gets a question mark.
    try:
        status = program(arguments)
        if sys.stdout is not None:  # It is None where it was closed.
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # Whoever read has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(for_terminal(f"{name}: {reason}"), file=sys.stderr)
        return 1
    except (ValueError, ImportError) as error:
        print(for_terminal(f"{name}: {error}"), file=sys.stderr)
        return 1
    except MemoryError:
        print(f"{name}: there is not enough memory for this", file=sys.stderr)
        return 1
    return int(status or 0)


def _import(name: str) -> Any:
    """Import a module. Ctrl-C meanwhile ends the process at once: within an import the interrupt may get lost."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or current_thread() is not main_thread():
        return importlib.import_module(name)
    signal.signal(signal.SIGINT, _end)
    try:
        return importlib.import_module(name)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_by_sigterm(*_: object) -> None:
    # An exception would get lost where it comes within an import. Nothing is unfinished before the module is there.
    if module := sys.modules.get("untwist.files.whole_files"):
        module.remove_unfinished()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _end(*_: object) -> None:
    os.write(2, b"\nStopped.\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
