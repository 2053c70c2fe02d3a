"""Other boosters, fitted the way a careful user fits them: stopped early on rows that were held out.

XGBoost and LightGBM are imported when they are asked for, as the package does without them.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any, NamedTuple

__all__ = ["LEARNING_RATE", "PATIENCE", "ROUNDS", "HeldOut", "fit_lightgbm", "fit_xgboost"]

#: The most rounds of a peer that stops early.
ROUNDS = 2000
#: A peer stops when this many rounds have brought no gain on the held-out rows.
PATIENCE = 50
#: The learning rate of a peer that stops early.
LEARNING_RATE = 0.1


class HeldOut(NamedTuple):
    """Rows to stop on, with their weights if they have any."""

    X: Any
    y: Any
    weight: Any = None


def fit_xgboost(
    X: Any,
    y: Any,
    held_out: HeldOut | None = None,
    *,
    weight: Any = None,
    categories: Collection[int] | None = None,
    patience: int = PATIENCE,
    **settings: Any,
) -> Any:
    """Fit XGBoost, stopped early where rows are held out.

    Parameters
    ----------
    X, y : table and labels
        A DataFrame says by its types which columns are categories, an array does not.
    held_out : HeldOut, optional
        Rows to stop on. Without them all rounds are run.
    weight : array, optional
        The weight of each row.
    categories : collection of int, optional
        The columns of an array that hold codes of categories.
    patience : int
        Rounds without a gain on the held-out rows before it stops.
    **settings
        Of `xgboost.XGBClassifier`.

    Returns
    -------
    xgboost.XGBClassifier
    """
    from xgboost import XGBClassifier

    if categories is not None or hasattr(X, "dtypes"):  # An array of plain numbers may meet any tree method.
        settings["enable_categorical"] = True
    if categories is not None:
        settings["feature_types"] = ["c" if column in categories else "float" for column in range(X.shape[1])]
    if held_out is None:
        return XGBClassifier(**settings).fit(X, y, sample_weight=weight)
    watched = {"eval_set": [(held_out.X, held_out.y)], "verbose": False}
    if held_out.weight is not None:
        watched["sample_weight_eval_set"] = [held_out.weight]
    model = XGBClassifier(early_stopping_rounds=patience, **settings)
    return model.fit(X, y, sample_weight=weight, **watched)


def fit_lightgbm(
    X: Any,
    y: Any,
    held_out: HeldOut | None = None,
    *,
    weight: Any = None,
    categories: Collection[int] | None = None,
    patience: int = PATIENCE,
    **settings: Any,
) -> Any:
    """Fit LightGBM, stopped early where rows are held out.

    Parameters
    ----------
    X, y, held_out, weight, categories, patience
        As for `fit_xgboost`.
    **settings
        Of `lightgbm.LGBMClassifier`.

    Returns
    -------
    lightgbm.LGBMClassifier
    """
    from lightgbm import LGBMClassifier, early_stopping

    model = LGBMClassifier(verbose=-1, **settings)
    options: dict[str, Any] = {"sample_weight": weight}
    if categories is not None:
        options["categorical_feature"] = sorted(categories)
    if held_out is not None:
        if "eval_X" in inspect.signature(model.fit).parameters:  # LightGBM 4.7 warns of `eval_set`.
            options |= {"eval_X": (held_out.X,), "eval_y": (held_out.y,)}
        else:
            options["eval_set"] = [(held_out.X, held_out.y)]
        options["callbacks"] = [early_stopping(patience, verbose=False)]
        if held_out.weight is not None:
            options["eval_sample_weight"] = [held_out.weight]
    return model.fit(X, y, **options)
