"""Fitted models as bytes. The same model gives the same bytes."""

from __future__ import annotations

import importlib.metadata
import math
import os
from dataclasses import asdict, astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from untwist.any_model.model import ClonesModel
from untwist.boosting.ensemble import Ensemble
from untwist.classifier import UntwistClassifier
from untwist.data.encoding import TableEncoder
from untwist.files.estimators import ESTIMATORS
from untwist.files.layout import (
    ALIGNMENT,
    ARRAY_TYPES,
    FOREST_ARRAYS,
    LABEL_TYPES,
    MOST_SOURCE_LETTERS,
    SOURCE_ARRAYS,
    pack,
)
from untwist.files.reading_trees import LARGEST_SCORE
from untwist.files.whole_files import write_whole
from untwist.model import Choice, FittedModel
from untwist.noise.model import NoiseModel
from untwist.noise.paper import MenonEstimate
from untwist.noise.sources import NoiseBySource
from untwist.predicting import ModelPredictions
from untwist.theory.links import Link, find_link_name
from untwist.theory.losses import AlphaLoss, is_alpha_loss
from untwist.theory.several_classes import SoftmaxLink


def save(model: ModelPredictions, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A fitted model whose weak learners are trees of the compiled engine or of XGBoost.
    path : str or path
        The file. An older one of that name stays as it was until the new one is complete.

    Raises
    ------
    ValueError
        If the model holds something that a file cannot hold.
    """
    write_whole(path, dumps(model))


def dumps(model: ModelPredictions) -> bytes:
    """Return a fitted model as the bytes of a file.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        As for `save`.

    Returns
    -------
    bytes
        What `loads` takes.
    """
    kind = next((name for name, one in ESTIMATORS.items() if isinstance(model, one)), None)
    if kind is None:
        raise ValueError(
            f"only {' and '.join(ESTIMATORS)} can be written to a model file, got a {type(model).__name__}"
        )
    check_is_fitted(model, "model_")
    fitted = model.model_  # Another thread may fit the classifier meanwhile.
    if isinstance(fitted, ClonesModel):
        raise ValueError(
            f"only trees of untwist can be written to a model file, got {fitted.clones!r}: pickle the classifier"
        )
    if any(ensemble.forest is None for ensemble in fitted.ensembles):
        raise ValueError("only forests can be written to a file: this model has weak learners of another kind")
    _refuse_large(fitted)
    arrays = _ArrayWriter()
    header = {
        "model": kind,
        "untwist": importlib.metadata.version("untwist"),
        "settings": {name: make_plain(name, value) for name, value in list_settings(model).items()},
        **_describe_model(fitted, arrays),
        "arrays": arrays.table,
    }
    return pack(header, b"".join(arrays.parts))


def _refuse_large(model: FittedModel) -> None:
    """Raise a ValueError for numbers of trees that no file is read with."""
    for one in model.ensembles:
        assert one.forest is not None
        numbers = (one.forest.value, one.forest.gain, one.forest.leverage, np.array([one.start]))
        largest = max(float(np.abs(each).max(initial=0.0)) for each in numbers)
        if not largest < LARGEST_SCORE:
            raise ValueError(
                f"a model file holds scores, leverages and gains below {LARGEST_SCORE:g}, but this model has "
                f"{largest:.3g}: boost with an alpha that is less extreme than {model.alpha:g}"
            )


def list_settings(model: ModelPredictions) -> dict[str, Any]:
    """Return the arguments of the constructor as a file holds them.

    Functions, folds of one's own and generators of random numbers stay behind. The alpha-loss, given as a loss, is its
    alpha.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier, fitted or not.

    Returns
    -------
    dict of str to object
        The value of every setting by its name.
    """
    settings: dict[str, Any] = model.get_params(deep=False)
    settings["callbacks"] = None
    if not isinstance(settings["random_state"], (int, np.integer)):
        settings["random_state"] = None
    if isinstance(model, UntwistClassifier):
        if not isinstance(settings["cv"], (int, np.integer)):
            settings["cv"] = None  # Splits are of the rows of this fit.
        return settings
    if not isinstance(settings["eval_metric"], str):
        settings["eval_metric"] = None
    if settings["growth"] is not None:
        settings["growth"] = settings["growth"].get_params()
    if is_alpha_loss(settings["loss"]):
        settings["alpha"] = settings["loss"].alpha
        settings["loss"] = None
    return settings


class _ArrayWriter:
    """Arrays one after the other, each named by its number."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.table: list[Any] = []
        self.size = 0

    def add(self, array: NDArray[Any]) -> int:
        """Add an array and return its number."""
        kind = next(name for name, dtype in ARRAY_TYPES.items() if dtype == array.dtype)
        content = np.ascontiguousarray(array).astype(kind).tobytes()
        content += b"\0" * (-len(content) % ALIGNMENT)
        self.table.append([kind, array.size, self.size])
        self.parts.append(content)
        self.size += len(content)
        return len(self.table) - 1


def _describe_model(model: FittedModel, arrays: _ArrayWriter) -> dict[str, Any]:
    """Return the header of a fitted model. The order of its entries, and of the arrays, belongs to the format."""
    return {
        "columns": _describe_columns(model.encoder, arrays),
        "classes": _describe_names("labels", model.classes),
        "class_weights": make_plain("class_weight", model.class_weights),
        "link": _describe_link(model.link),
        "alpha": _make_number(model.alpha),
        "step_size": _make_number(model.step_size),
        "seed": model.seed,
        "rows": model.n_rows,
        "weight": _make_number(model.n_effective_rows),
        "choice": None if model.choice is None else _describe_choice(model.choice),
        "noise": None if model.noise is None else _describe_noise(model.noise, arrays),
        "untwists": model.untwists,
        "menon": None if model.menon is None else _describe_menon(model.menon),
        "held_out": [arrays.add(model.validation_rows.astype("<i8")), arrays.add(model.validation_shares)],
        "ensembles": [_describe_ensemble(ensemble, arrays) for ensemble in model.ensembles],
        "sources": None if model.sources is None else _describe_sources(model.sources, arrays),
        "near_duplicates": model.has_twins,
        "init": model.init,
    }


def _describe_choice(choice: Choice) -> Any:
    return make_plain("choice_", asdict(choice))


def _describe_columns(encoder: TableEncoder, arrays: _ArrayWriter) -> dict[str, Any]:
    categories = encoder.schema.categories.items()
    names = encoder.feature_names
    numbers = [[column, arrays.add(np.array(one))] for column, one in encoder.schema.numbers.items()]
    readings = [[column, *astuple(one)] for column, one in encoder.schema.readings.items()]
    return {
        "count": encoder.n_features,
        "names": None if names is None else [str(name) for name in names],
        "categories": [[column, make_plain("a category", list(known))] for column, known in categories],
        "numbers": numbers,
        "readings": readings,
        "other_names": None if encoder.other_names is None else list(encoder.other_names),
        "durations": sorted(encoder.schema.durations),
        "truths": None if encoder.schema.truths is None else sorted(encoder.schema.truths),
    }


def _describe_link(link: Link | SoftmaxLink) -> dict[str, Any]:
    if not isinstance(link.loss, AlphaLoss):
        raise ValueError(f"only models of the alpha-loss can be written to a file, got {link.loss!r}")
    kind = "softmax" if isinstance(link, SoftmaxLink) else find_link_name(link)
    return {"kind": kind, "alpha": _make_number(link.loss.alpha)}


def _describe_menon(estimate: MenonEstimate) -> dict[str, Any]:
    return {field.name: make_plain(field.name, getattr(estimate, field.name)) for field in fields(estimate)}


def _describe_noise(noise: NoiseModel, arrays: _ArrayWriter) -> dict[str, Any]:
    header: dict[str, Any] = {}
    for field in fields(noise):
        value = getattr(noise, field.name)
        is_array = field.name in noise.array_axes and value is not None
        is_flag = is_array and value.dtype == np.bool_
        value = value.astype(np.float64) if is_flag else value
        header[field.name] = arrays.add(value) if is_array else make_plain(field.name, value)
    return header


def _describe_sources(sources: NoiseBySource, arrays: _ArrayWriter) -> dict[str, Any]:
    """Return what is known of sources; what untwists posteriors is the model's noise."""
    header: dict[str, Any] = {"names": _describe_names("sources", sources.names)}
    if sources.names.dtype.kind == "U" and sources.names.dtype.itemsize // 4 * len(sources.names) > MOST_SOURCE_LETTERS:
        raise ValueError(
            f"{len(sources.names)} sources with names of up to {sources.names.dtype.itemsize // 4} letters cannot be "
            "written to a file: give shorter names"
        )
    for name in SOURCE_ARRAYS:
        values = getattr(sources, name)
        header[name] = arrays.add(values.astype(np.uint8) if name == "stands_out" else values)
    return header | {"evidence": _make_number(sources.evidence)}


def _describe_ensemble(ensemble: Ensemble, arrays: _ArrayWriter) -> dict[str, Any]:
    forest = ensemble.forest
    assert forest is not None  # `dumps` has refused all others.
    values = {name: getattr(forest, name) for name in FOREST_ARRAYS}
    if forest.n_outputs > 1:
        values["value"] = forest.value[forest.feature < 0]
    header: dict[str, Any] = {name: arrays.add(array) for name, array in values.items()}
    header |= {"losses": arrays.add(ensemble.losses), "errors": arrays.add(ensemble.errors)}
    return header | {"outputs": forest.n_outputs, "start": _make_number(ensemble.start)}


def _describe_names(what: str, names: NDArray[Any]) -> dict[str, Any]:
    """Return the type and the values of classes, or of sources."""
    kind = names.dtype.str
    if not LABEL_TYPES.fullmatch(kind):
        raise ValueError(f"{what} of type {names.dtype} cannot be written to a file: make text or numbers of them")
    return {"type": kind, "values": make_plain(f"one of the {what}", names.tolist())}


def make_plain(name: str, value: Any) -> Any:
    """Return a value as JSON has it; a dict is a list of pairs, as its keys may be numbers.

    Parameters
    ----------
    name : str
        What to call the value in an error.
    value
        The value.

    Returns
    -------
    object
        What `json.dumps` takes and `untwist.files.values.read_value` turns back.

    Raises
    ------
    ValueError
        If a file cannot hold the value.

    Examples
    --------
    >>> make_plain("alpha", np.float64("inf"))
    {'number': 'inf'}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _make_number(value)
    if isinstance(value, tuple):
        return {"tuple": [make_plain(name, one) for one in value]}
    if isinstance(value, (set, frozenset)):  # The order of a set differs from one process to the next.
        return sorted((make_plain(name, one) for one in value), key=repr)
    if isinstance(value, (list, range)) or hasattr(value, "tolist"):
        return [make_plain(name, one) for one in value]
    if isinstance(value, dict):
        return {"pairs": [[make_plain(name, key), make_plain(name, one)] for key, one in value.items()]}
    raise ValueError(f"{name} cannot be written to a file: it holds a {type(value).__name__}, {value!r:.50}")


def _make_number(value: float) -> Any:
    """Return a number; as text where JSON has no word for it."""
    value = float(value)
    return value if math.isfinite(value) else {"number": repr(value)}
