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

from untwist.boosting.ensemble import Ensemble
from untwist.classifier import PILBoostClassifier
from untwist.data.encoding import TableEncoder
from untwist.files.layout import (
    ALIGNMENT,
    ARRAY_TYPES,
    FIFTH_VERSION,
    FIRST_VERSION,
    FOREST_ARRAYS,
    FOURTH_VERSION,
    LABEL_TYPES,
    MATRIX_ARRAYS,
    MOST_SOURCE_LETTERS,
    SECOND_VERSION,
    SOURCE_ARRAYS,
    THIRD_VERSION,
    UNTWISTING_ADDITIONS,
    UNTWISTING_ARRAYS,
    VERSION,
    pack,
)
from untwist.files.reading_trees import LARGEST_SCORE
from untwist.files.whole_files import write_whole
from untwist.model import GIVEN_SCORES, Choice, FittedModel
from untwist.noise import NoiseEstimate
from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.sources import NoiseBySource
from untwist.noise.untwisting import Untwisting
from untwist.theory.links import Link, LogitLink, find_link_name
from untwist.theory.losses import AlphaLoss, is_alpha_loss
from untwist.theory.several_classes import SoftmaxLink

__all__ = ["dumps", "list_settings", "make_plain", "save"]


def save(model: PILBoostClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : PILBoostClassifier
        A fitted model whose weak learners are trees of the compiled engine or of XGBoost.
    path : str or path
        The file. An older one of that name stays as it was until the new one is complete.

    Raises
    ------
    ValueError
        If the model holds something that a file cannot hold.
    """
    write_whole(path, dumps(model))


def dumps(model: PILBoostClassifier) -> bytes:
    """Return a fitted model as the bytes of a file.

    Parameters
    ----------
    model : PILBoostClassifier
        As for `save`.

    Returns
    -------
    bytes
        What `loads` takes.
    """
    if not isinstance(model, PILBoostClassifier):
        raise ValueError(f"only a PILBoostClassifier can be written to a model file, got a {type(model).__name__}")
    check_is_fitted(model, "model_")
    fitted = model.model_  # Another thread may fit the classifier meanwhile.
    if any(ensemble.forest is None for ensemble in fitted.ensembles):
        raise ValueError("only forests can be written to a file: this model has weak learners of another kind")
    _refuse_large(fitted)
    arrays = _ArrayWriter()
    header = {
        "model": "PILBoostClassifier",
        "untwist": importlib.metadata.version("untwist"),
        "settings": {name: make_plain(name, value) for name, value in list_settings(model).items()},
        **_describe_model(fitted, arrays),
        "arrays": arrays.table,
    }
    return pack(header, b"".join(arrays.parts), _choose_version(fitted))


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


def _choose_version(model: FittedModel) -> int:
    """Return the first version of the format that can hold a model."""
    has_start = any(ensemble.start for ensemble in model.ensembles)
    tells_more = model.has_twins or model.init == GIVEN_SCORES
    if has_start or tells_more or model.encoder.schema.missing is not None:
        return VERSION
    if model.encoder.schema.readings:
        return FIFTH_VERSION
    tells_draws = model.choice is not None and any(one.drawn is not None for one in model.choice.tried)
    if model.encoder.schema.numbers or tells_draws:
        return FOURTH_VERSION
    has_bends = isinstance(model.noise, Untwisting) and model.noise.bends is not None
    if model.sources is not None or has_bends or isinstance(model.link, LogitLink):
        return THIRD_VERSION
    is_shared = isinstance(model.link, SoftmaxLink)
    is_mixed = model.choice is not None and model.choice.mixture is not None
    return SECOND_VERSION if is_shared or is_mixed or isinstance(model.noise, MatrixUntwisting) else FIRST_VERSION


def list_settings(model: PILBoostClassifier) -> dict[str, Any]:
    """Return the arguments of the constructor as a file holds them.

    Functions, folds of one's own and generators of random numbers stay behind. The alpha-loss, given as a loss, is its
    alpha.

    Parameters
    ----------
    model : PILBoostClassifier
        A classifier, fitted or not.

    Returns
    -------
    dict of str to object
        The value of every setting by its name.
    """
    settings: dict[str, Any] = model.get_params(deep=False)
    settings["callbacks"] = None
    if not isinstance(settings["cv"], (int, np.integer)):
        settings["cv"] = None  # Splits are of the rows of this fit.
    if not isinstance(settings["eval_metric"], str):
        settings["eval_metric"] = None
    if not isinstance(settings["random_state"], (int, np.integer)):
        settings["random_state"] = None
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
        "noise": _describe_noise(model.noise, arrays),
        "untwists": model.untwisting is not None,
        "held_out": [arrays.add(model.validation_rows.astype("<i8")), arrays.add(model.validation_shares)],
        "ensembles": [_describe_ensemble(ensemble, arrays) for ensemble in model.ensembles],
        **({} if model.sources is None else {"sources": _describe_sources(model.sources, arrays)}),
        **({"near_twins": True} if model.has_twins else {}),
        **({"given_scores": True} if model.init == GIVEN_SCORES else {}),
    }


def _describe_choice(choice: Choice) -> Any:
    values = asdict(choice)
    if choice.mixture is None:  # Format 1 knows none.
        del values["mixture"]
    for candidate in (values["best"], *values["tried"]):
        if candidate["drawn"] is None:  # Formats before 4 know nothing of it.
            del candidate["drawn"]
    return make_plain("choice_", values)


def _describe_columns(encoder: TableEncoder, arrays: _ArrayWriter) -> dict[str, Any]:
    categories = encoder.schema.categories.items()
    names = encoder.feature_names
    numbers = [[column, arrays.add(np.array(one))] for column, one in encoder.schema.numbers.items()]
    readings = [[column, *astuple(one)] for column, one in encoder.schema.readings.items()]
    return {
        "count": encoder.n_features,
        "names": None if names is None else [str(name) for name in names],
        "categories": [[column, make_plain("a category", list(known))] for column, known in categories],
        **({"numbers": numbers} if numbers else {}),
        **({"readings": readings} if readings else {}),
        **({} if encoder.schema.missing is None else {"missing": encoder.schema.missing}),
        **({} if encoder.other_names is None else {"other_names": list(encoder.other_names)}),
        **({"durations": sorted(encoder.schema.durations)} if encoder.schema.durations else {}),
        **({} if encoder.schema.truths is None else {"truths": sorted(encoder.schema.truths)}),
    }


def _describe_link(link: Link | SoftmaxLink) -> dict[str, Any]:
    if not isinstance(link.loss, AlphaLoss):
        raise ValueError(f"only models of the alpha-loss can be written to a file, got {link.loss!r}")
    kind = "softmax" if isinstance(link, SoftmaxLink) else find_link_name(link)
    return {"kind": kind, "alpha": _make_number(link.loss.alpha)}


def _describe_noise(noise: NoiseEstimate | MatrixUntwisting | None, arrays: _ArrayWriter) -> dict[str, Any] | None:
    if noise is None:
        return None
    header: dict[str, Any] = {"kind": type(noise).__name__}
    in_arrays = MATRIX_ARRAYS if isinstance(noise, MatrixUntwisting) else UNTWISTING_ARRAYS
    for field in fields(noise):
        value = getattr(noise, field.name)
        if value is None or (
            field.name in UNTWISTING_ADDITIONS and isinstance(value, float) and value == field.default
        ):
            continue
        header[field.name] = arrays.add(value) if field.name in in_arrays else make_plain(field.name, value)
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
    header |= {"outputs": forest.n_outputs} if forest.n_outputs > 1 else {}
    return header | ({"start": _make_number(ensemble.start)} if ensemble.start else {})


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
