"""PILBoost over several processes or machines, by XGBoost's collective.

`untwist.distributed.local` starts worker processes on this machine, `untwist.distributed.dask` runs on the workers of a
Dask cluster. Either way each worker calls `PILBoostClassifier(engine="xgboost").fit` on its own rows, and what has to
be known of all rows goes over the `untwist.data.workers`: any other launcher that opens a communicator can do the same.
"""
