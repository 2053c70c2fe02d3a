"""Packages that untwist can do without: imported when they are needed, with a line that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["import_optional"]


def import_optional(module: str, purpose: str, *, needs: str | None = None, extra: str | None = None) -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
        The module.
    purpose : str
        What cannot be done without it.
    needs : str or None
        What the error says is missing; by default the package of the module.
    extra : str or None
        The extra of untwist that brings it, if there is one.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    ImportError
        It says what to install.

    Examples
    --------
    >>> import_optional("no_such_package.part", "to_nowhere")
    Traceback (most recent call last):
    ...
    ImportError: to_nowhere needs no_such_package: pip install no_such_package
    >>> import_optional("no_such_package", "to_nowhere", extra="export")
    Traceback (most recent call last):
    ...
    ImportError: to_nowhere needs no_such_package: pip install "untwist[export]"
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        what = f'"untwist[{extra}]"' if extra else package
        raise ImportError(f"{purpose} needs {needs or package}: pip install {what}") from error
