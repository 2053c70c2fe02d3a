"""A callback that workers can load: when each round was done, by the first worker's clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from untwist.data.workers import find_workers


class Stamps:
    """Writes a line of seconds after each round."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, _progress: Any) -> None:
        """Write when a round was done."""
        if find_workers().rank == 0:
            with Path(self.path).open("a") as file:
                file.write(f"{time.perf_counter()}\n")
