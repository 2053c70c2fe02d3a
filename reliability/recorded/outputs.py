"""Which numbers of a fit and of an audit are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reliability.recorded.cases import Outputs

__all__ = ["describe_audit", "describe_fit", "describe_noise", "describe_sources", "pick"]

#: Rows whose numbers are compared, and rows of a ranking.
FEW = 40


def pick(values: ArrayLike) -> NDArray[np.float64]:
    """Return the values of evenly chosen rows, and below them the sum over all rows."""
    array = np.asarray(values, dtype=np.float64)
    rows = np.linspace(0, len(array) - 1, min(FEW, len(array))).round().astype(int)
    return np.concatenate([array[rows], np.nansum(array, axis=0, keepdims=True)])


def encode(classes: NDArray[Any], labels: ArrayLike) -> NDArray[np.intp]:
    """Return labels as positions of classes."""
    return np.searchsorted(classes, np.asarray(labels))


def describe_fit(model: Any, X: Any) -> Outputs:
    """The numbers of a fitted classifier: what it says of rows, and what it thinks of the labels."""
    outputs = {
        "posterior": pick(model.predict_proba(X)),
        "posterior of labels": pick(model.predict_proba_twisted(X)),
        "score": pick(model.decision_function(X)),
        "label": pick(encode(model.classes_, model.predict(X))),
        "rounds": model.model_.n_rounds,
        "alpha and step": [model.model_.alpha, model.model_.step_size],
    }
    if hasattr(model, "feature_importances_"):
        outputs["importances"] = model.feature_importances_
    if hasattr(model, "oof_proba_"):
        outputs["posterior out of fold"] = pick(model.oof_proba_)
    if model.noise_ is not None:
        outputs |= describe_noise(model.noise_)
    if hasattr(model, "sources_") and model.sources_ is not None:
        outputs |= describe_sources(model.sources_)
    return outputs


def describe_noise(noise: Any) -> Outputs:
    """The numbers of an estimate of noise, of two classes or of several."""
    outputs = {"noise matrix": noise.matrix, "noise found": noise.found}
    if hasattr(noise, "evidence"):
        outputs |= {"noise evidence": noise.evidence, "noise uneven": noise.uneven_limit}
    if hasattr(noise, "class_intervals"):
        outputs |= {"noise share": [noise.share, *noise.interval], "noise intervals": noise.class_intervals}
    else:
        outputs["noise intervals"] = [noise.interval_neg, noise.interval_pos]
    return outputs


def describe_sources(sources: Any) -> Outputs:
    """The numbers of the noise of each source."""
    return {
        "sources' matrices": sources.matrices,
        "sources' shares": np.column_stack([sources.shares, sources.intervals]),
        "sources' intervals": sources.class_intervals,
        "sources' trust": np.column_stack([sources.counts, sources.stands_out, sources.reliability]),
        "sources' evidence": sources.evidence,
    }


def describe_audit(audit: Any) -> Outputs:
    """The numbers of an audit: each label, all of them, and which are suspects."""
    suspects = audit.suspects()
    outputs = {
        "posterior": pick(audit.posterior),
        "wrong": pick(audit.wrong),
        "clean posterior": pick(audit.clean),
        "truth": pick(audit.truth),
        "weight": pick(audit.weight),
        "predicted": pick(encode(audit.classes, audit.predicted)),
        "corrected": pick(encode(audit.classes, audit.corrected())),
        "share": audit.noise_rate,
        "share by label": list(audit.rate_by_label.values()),
        "matrix": audit.matrix,
        "suspects": suspects,
        "wrong suspects": audit.expect_wrong(suspects),
        "suspects by discovery rate": audit.suspects(false_discovery_rate=0.2),
        "suspects for the model": audit.suspects(budget=FEW, aim="model"),
        "ranking": audit.ranking[:FEW],
        "rows per case": audit.context.rows_per_case,
        **describe_noise(audit.noise),
    }
    if audit.context.by_source is not None:
        outputs |= describe_sources(audit.context.by_source)
    return outputs
