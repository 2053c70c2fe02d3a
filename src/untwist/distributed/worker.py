"""A worker process of `untwist.distributed.local`: reads its part of the job, fits, and writes what came of it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from untwist.distributed.shard import fit_shard


def main(folder: Path, rank: int) -> int:
    """Fit the rows of one worker and write what came of it.

    Parameters
    ----------
    folder : path
        Where the job is, and where the model or an error goes.
    rank : int
        The number of this worker, from 0; the first one writes the model.

    Returns
    -------
    int
        The exit code: 0 where all went well.
    """
    try:
        model, communicator = pickle.loads((folder / "job").read_bytes())  # Our parent wrote it.
        with (folder / f"rows-{rank}").open("rb") as file:
            rows = pickle.load(file)
        fitted = fit_shard(model, rows() if callable(rows) else rows, communicator, rank)
    except Exception as error:
        (folder / f"error-{rank}").write_text(f"{type(error).__name__}: {error}")
        return 1
    if rank == 0:
        (folder / "model").write_bytes(pickle.dumps(fitted))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
