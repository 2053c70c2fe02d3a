"""A worker process of `untwist.distributed.local`: reads its part of the job, fits, and writes what came of it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from untwist.distributed.shard import fit_shard


def main(folder: Path, task: int) -> int:
    """Fit the shard of this task; 0 where that went well."""
    try:
        model, communicator = pickle.loads((folder / "job").read_bytes())  # Our parent wrote it.
        with (folder / f"rows-{task}").open("rb") as file:
            rows = pickle.load(file)
        fitted = fit_shard(model, rows() if callable(rows) else rows, communicator, task)
    except Exception as error:
        (folder / f"error-{task}").write_text(f"{type(error).__name__}: {error}")
        return 1
    if task == 0:
        (folder / "model").write_bytes(pickle.dumps(fitted))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
