"""PILBoost over several processes or machines, by XGBoost's collective.

`untwist.distributed.local` starts worker processes on this machine; `dask`, `ray` and `spark` run on such clusters. In
all of them each worker calls `PILBoostClassifier(engine="xgboost").fit` on its own rows, and what has to be known of
all rows goes over `untwist.data.workers`: any other launcher that opens a communicator can do the same, by
`untwist.distributed.shard.fit_shard`.
"""

from importlib import import_module
from typing import Any

__all__ = ["dask", "local", "ray", "shard", "spark"]


def __getattr__(name: str) -> Any:
    """Import a launcher when it is asked for, as clusters are optional."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"untwist.distributed.{name}")
