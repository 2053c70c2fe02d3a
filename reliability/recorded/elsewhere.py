"""Models that were saved, exported, or fitted by several processes."""

from __future__ import annotations

import pickle
import warnings

import numpy as np

from reliability.recorded.cases import Outputs, case, import_or_skip
from reliability.recorded.outputs import describe_fit, pick
from reliability.recorded.tables import draw_classes, draw_groups, draw_mixed_columns, draw_sourced, draw_two
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.distributed import local
from untwist.export import numbers, probabilities, to_code, to_xgboost
from untwist.files import dumps, loads

#: Rounds begin at the base rate.
FROM_PRIOR = Growth(init="prior")


# ---- files ----


@case
def saved_given() -> Outputs:
    """A saved and loaded model of given settings, with categories."""
    X, y, _ = draw_mixed_columns()
    model = PILBoostClassifier(alpha=2.0, n_estimators=15, max_depth=4, random_state=0, growth=FROM_PRIOR).fit(X, y)
    return describe_fit(loads(dumps(model)), X)


@case
def saved_automatic() -> Outputs:
    """A saved and loaded model that was chosen by folds; the file keeps no rows."""
    X, y, _ = draw_mixed_columns()
    return describe_fit(loads(dumps(UntwistClassifier(random_state=0).fit(X, y))), X)


@case
def saved_four_classes() -> Outputs:
    """The same of several classes."""
    X, y, _ = draw_classes(classes=4, by_pairs=True)
    return describe_fit(loads(dumps(UntwistClassifier(random_state=0).fit(X, y))), X)


@case
def saved_sources() -> Outputs:
    """The same with sources."""
    (X, y, _), source = draw_sourced()
    return describe_fit(loads(dumps(UntwistClassifier(random_state=0).fit(X, y, source=source))), X)


@case
def pickled() -> Outputs:
    """A pickled model."""
    X, y, _ = draw_two()
    return describe_fit(pickle.loads(pickle.dumps(UntwistClassifier(random_state=0).fit(X, y))), X)


# ---- exports ----


@case
def python_code() -> Outputs:
    """Source text of Python, run."""
    X, y, _ = draw_mixed_columns(300)
    model = UntwistClassifier(random_state=0).fit(X, y)
    names: dict = {}
    exec(to_code(model, "python"), names)
    return {"posterior": pick([names["predict_proba"](row) for row in numbers(model, X).tolist()])}


@case
def python_code_of_three_classes() -> Outputs:
    """The same of several classes."""
    X, y, _ = draw_classes(300)
    model = UntwistClassifier(random_state=0).fit(X, y)
    names: dict = {}
    exec(to_code(model, "python"), names)
    return {"posterior": pick([names["predict_proba"](row) for row in numbers(model, X).tolist()])}


@case
def xgboost_model() -> Outputs:
    """A model as XGBoost has it."""
    xgboost = import_or_skip("xgboost")
    X, y, _ = draw_two()
    model = UntwistClassifier(random_state=0).fit(X, y)
    margins = to_xgboost(model).predict(xgboost.DMatrix(numbers(model, X)), output_margin=True)
    return {"margins": pick(margins), "posterior": pick(probabilities(model, margins))}


# ---- several processes ----


@case
def two_processes() -> Outputs:
    """Settings that are given, by two processes."""
    import_or_skip("xgboost")
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, engine="xgboost", n_estimators=10, max_depth=3, n_jobs=1, random_state=0, growth=FROM_PRIOR
    )
    return describe_fit(local.fit(model, local.shards(2, X, y)), X)


@case
def two_processes_automatic() -> Outputs:
    """What is left open, by two processes, with groups that both have rows of."""
    import_or_skip("xgboost")
    (X, y, _), patient = draw_groups()
    model = UntwistClassifier(engine="xgboost", n_jobs=1, random_state=0)
    half = np.arange(len(y)) % 2 == 0
    parts = [{"X": X[rows], "y": y[rows], "groups": patient[rows]} for rows in (half, ~half)]
    return describe_fit(local.fit(model, parts), X)


@case
def dask() -> Outputs:
    """What is left open, by two workers of Dask."""
    import_or_skip("xgboost")
    array, distributed = import_or_skip("dask.array"), import_or_skip("distributed")
    from untwist.distributed.dask import DaskUntwistClassifier

    X, y, _ = draw_two()
    blocks = [array.from_array(table, chunks=(125, *table.shape[1:])) for table in (X, y)]
    model = DaskUntwistClassifier(engine="xgboost", n_jobs=1, random_state=0)
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        warnings.simplefilter("ignore")
        model.fit(*blocks)
        return describe_fit(model, X)
