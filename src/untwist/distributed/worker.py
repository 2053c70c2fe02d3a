"""A worker process of `untwist.distributed.local`: reads its part of the job, fits, and writes what came of it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from untwist.distributed.launching import Outcome, try_shard


def main(folder: Path, rank: int) -> None:
    """Fit the rows of one worker and write what came of it.

    Parameters
    ----------
    folder : path
        Where the job is, and where the outcome goes.
    rank : int
        The number of this worker, from 0.
    """
    try:
        model, communicator = pickle.loads((folder / "job").read_bytes())  # Our parent wrote it.
        with (folder / f"rows-{rank}").open("rb") as file:
            rows = pickle.load(file)
        outcome = try_shard(model, rows() if callable(rows) else rows, communicator, rank)
    except Exception as error:
        outcome = Outcome.of_error(error)
    (folder / f"outcome-{rank}").write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
