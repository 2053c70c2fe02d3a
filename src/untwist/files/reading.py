"""Models from the bytes of files. Reading executes nothing and believes nothing: all values are checked."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.engines.registry import ENGINES
from untwist.boosting.forest import count_threads
from untwist.classifier import UntwistClassifier
from untwist.data.cells import Reading
from untwist.data.columns import Category
from untwist.data.encoding import AcceptedTables, TableEncoder
from untwist.data.labels import MOST_WEIGHT
from untwist.data.tables import KNOWN_CATEGORIES, Schema
from untwist.files.estimators import ESTIMATORS
from untwist.files.layout import (
    LABEL_TYPES,
    MOST_SOURCE_LETTERS,
    SOURCE_ARRAYS,
    unpack,
)
from untwist.files.reading_trees import read_ensemble
from untwist.files.values import (
    ArrayReader,
    check_finite,
    read_number,
    read_one_of,
    read_texts,
    read_value,
    read_whole,
    require,
)
from untwist.growth import Growth
from untwist.model import GIVEN_SCORES, Candidate, Choice, FittedModel, Mixture
from untwist.noise.model import NoiseModel
from untwist.noise.paper import MenonEstimate
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.sources import NoiseBySource
from untwist.noise.two_classes import TwoClassNoise
from untwist.pilboost import PILBoostClassifier
from untwist.predicting import ModelPredictions
from untwist.settings import choose_engine, choose_recipe_engine
from untwist.theory.links import LINKS, Link, LogitLink
from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import SoftmaxLink

Record = TypeVar("Record", Candidate, Mixture)

#: Columns times classes, at most: a small file must not ask for much memory.
MOST_COLUMNS = 1 << 23

#: Pairs of noise rates, or transition matrices, at most.
MOST_COMPONENTS = 512

#: The rows of a transition matrix, and the weights of noise, miss a sum of 1 by less than this.
ROUNDING = 1e-9

#: The inverse of a transition matrix has smaller numbers than this, so that more than rounding is left of a posterior.
LARGEST_INVERSE = 1e9

#: Letters of all classes, as an array holds them, at most.
MOST_LETTERS = 1 << 22

#: The weight of a class is 0, or between one over this and this, so that ratios of class weights are finite. The alpha
#: of classes that were boosted together stays below it, so that tilted scores are.
LARGEST_FACTOR = 1e100

#: The slopes of clean posteriors stay below this, so that untwisted probabilities are numbers.
LARGEST_SLOPE = 1e3

#: The scale and the offsets of calibrations and of clean posteriors, and the numbers of categories, stay below this, so
#: that untwisted probabilities are numbers, in single precision too.
LARGEST_NUMBER = 1e6

#: The kind of link of classes that were boosted together.
SOFTMAX = "softmax"

#: What a header that makes no sense may lead to.
SENSELESS = (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError, ValueError)


def load(path: str | os.PathLike[str]) -> ModelPredictions:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
        A file that `save` wrote.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        A fitted model that predicts as the saved one did, bit for bit.

    Raises
    ------
    ValueError
        If the file is damaged or no model at all; it says so.
    """
    try:
        return loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def loads(content: bytes) -> ModelPredictions:
    """Return the model of a file's bytes.

    Parameters
    ----------
    content : bytes
        What `dumps` gave.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        As of `load`.
    """
    about, data = unpack(content)
    try:
        return _read_classifier(about, ArrayReader(about["arrays"], data))
    except SENSELESS as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"this model file does not make sense ({reason:.200})") from error


def header(content: bytes) -> dict[str, Any]:
    """Return what a file's bytes say of the model, without its arrays.

    Parameters
    ----------
    content : bytes
        What `dumps` gave.

    Returns
    -------
    dict
        The header as docs/model-file.md describes it.
    """
    return unpack(content)[0]


def _read_classifier(about: Any, arrays: ArrayReader) -> ModelPredictions:
    kind = ESTIMATORS[read_one_of(about["model"], ESTIMATORS)]
    known = kind().get_params(deep=False)
    settings = {name: read_value(value) for name, value in about["settings"].items() if name in known}
    settings["callbacks"] = None
    count_threads(settings.get("n_jobs"))  # Predictions would refuse what this refuses.
    classifier: ModelPredictions
    if kind is UntwistClassifier:
        classifier = UntwistClassifier(**{**settings, "estimator": None})
        accepted = choose_recipe_engine(classifier.engine).accepted_tables(None, "hist")
    else:
        classifier = PILBoostClassifier(
            **{**settings, "growth": _read_growth(settings), "estimator": None, "loss": None}
        )
        accepted = _find_accepted_tables(classifier)
    model = _read_model(about, arrays, accepted)
    has_chosen = model.choice is not None
    require(has_chosen == (kind is UntwistClassifier), "an UntwistClassifier has chosen, and no other class has")
    classifier.model_ = model
    return classifier


def _read_growth(settings: dict[str, Any]) -> Growth | None:
    return None if settings.get("growth") is None else Growth(**settings["growth"])


def _find_accepted_tables(classifier: PILBoostClassifier) -> AcceptedTables:
    """Return the tables that a classifier takes, whose link and engine a file may name."""
    read_one_of(classifier.link, LINKS)
    growing_forests = [name for name, engine in ENGINES.items() if engine.grows_forests]
    engine = classifier.engine
    require(engine in ["auto", *growing_forests], f"the engine {engine!r:.50} is registered here and grows forests")
    tree_method = "hist" if classifier.growth is None else classifier.growth.tree_method
    return choose_engine(classifier.get_params(deep=False)).accepted_tables(None, tree_method)


def _read_model(about: Any, arrays: ArrayReader, accepted: AcceptedTables) -> FittedModel:
    n_scores = _count_scores(about["ensembles"])
    encoder = _read_columns(about["columns"], n_scores, accepted, arrays)
    classes = _read_classes(about["classes"], n_scores)
    noise = _read_noise(about["noise"], arrays, len(classes))
    untwists = about["untwists"]
    require(isinstance(untwists, bool), "untwists is true or false")
    require(noise is not None or not untwists, "there is noise to untwist")
    undone = noise if untwists else None
    has_twins = about["near_duplicates"]
    require(isinstance(has_twins, bool), "near_duplicates is true or false")
    n_rows = read_whole(about["rows"], 0)
    validation_rows, validation_shares = _read_held_out(about["held_out"], arrays, n_rows)
    model = FittedModel(
        classes=classes,
        encoder=encoder,
        ensembles=tuple(read_ensemble(one, arrays, encoder.n_features, encoder.schema) for one in about["ensembles"]),
        link=_read_link(about["link"]),
        alpha=read_number(about["alpha"]),
        step_size=read_number(about["step_size"]),
        class_weights=_read_class_weights(about["class_weights"], classes),
        seed=read_whole(about["seed"], 0),
        n_rows=n_rows,
        n_effective_rows=read_number(about["weight"], low=0.0, high=MOST_WEIGHT),
        choice=None if about["choice"] is None else _read_choice(about["choice"]),
        noise=noise,
        untwists=untwists,
        menon=None if about["menon"] is None else _read_menon(about["menon"], len(classes)),
        validation_rows=validation_rows,
        validation_shares=validation_shares,
        sources=None if about["sources"] is None else _read_sources(about["sources"], arrays, len(classes), undone),
        init=None if about["init"] is None else read_one_of(about["init"], ("prior", "zero", GIVEN_SCORES)),
        has_twins=has_twins,
    )
    require(n_scores == len(model.positive_classes), "there are trees for each class")
    is_shared = n_scores > len(model.ensembles)
    require(isinstance(model.link, SoftmaxLink) == is_shared, "classes share trees where the link is a softmax")
    _check_alpha(model)
    return model


def _check_alpha(model: FittedModel) -> None:
    """Refuse a link of another alpha, but log-odds of trees that folds put together, whose alpha is 1."""
    assert isinstance(model.link.loss, AlphaLoss)
    has_log_odds = isinstance(model.link, LogitLink) and model.choice is not None
    expected = (model.alpha, 1.0) if has_log_odds else (model.alpha,)
    require(model.link.loss.alpha in expected, "the link is that of alpha")


def _count_scores(about: Any) -> int:
    """Return how many scores a row has: one from each ensemble, or several from a single one."""
    n_outputs = [read_whole(one["outputs"], 1, MOST_COLUMNS) for one in about]
    require(2 not in n_outputs, "two classes have one score")
    require(len(about) == 1 or max(n_outputs) == 1, "an ensemble with several outputs is the only one")
    return max(len(about), *n_outputs)


def _read_columns(about: Any, n_scores: int, accepted: AcceptedTables, arrays: ArrayReader) -> TableEncoder:
    n_features = read_whole(about["count"], 1, MOST_COLUMNS // max(1, n_scores))
    feature_names = None
    if about["names"] is not None:
        names = read_texts(about["names"])
        require(len(names) == n_features, "there is a name for each column")
        feature_names = np.array(names, dtype=object)
    categories = _read_categories(about["categories"], n_features)
    numbers = _read_numbers(about["numbers"], categories, arrays)
    readings = _read_readings(about["readings"], categories, n_features)
    durations = _read_places(about["durations"], n_features)
    truths = None if about["truths"] is None else _read_places(about["truths"], n_features)
    schema = Schema(categories, numbers, readings, durations, truths)
    kinds: list[Collection[int]] = [durations, truths or set(), schema.dates, categories.keys()]
    require(sum(map(len, kinds)) == len(set().union(*kinds)), "a column holds one kind of values")
    most = max(schema.n_sets.values(), default=0)
    require(
        most <= KNOWN_CATEGORIES, f"a column that is not coded by its labels has at most {KNOWN_CATEGORIES} categories"
    )
    other_names = None
    if about["other_names"] is not None:
        other_names = tuple(read_texts(about["other_names"]))
        require(len(other_names) == n_features and feature_names is None, "there is one name for each column")
    return TableEncoder(n_features, feature_names, schema, accepted, other_names)


def _read_places(about: Any, n_features: int) -> frozenset[int]:
    """Return the positions of some columns."""
    require(isinstance(about, list), "positions are a list")
    return frozenset(read_whole(column, 0, n_features - 1) for column in about)


def _read_categories(about: Any, n_features: int) -> dict[int, tuple[Category, ...]]:
    categories = {}
    for column, plain in about:
        known = read_value(plain)
        require(isinstance(known, list), "categories are a list")
        require(all(map(_is_category, known)) and len(set(known)) == len(known), "categories are different")
        categories[read_whole(column, 0, n_features - 1)] = tuple(known)
    require(len(categories) == len(about), "a column has its categories once")
    return categories


def _read_numbers(
    about: Any, categories: dict[int, tuple[Category, ...]], arrays: ArrayReader
) -> dict[int, tuple[float, ...]]:
    """Return the numbers of categories in columns that are coded by their labels."""
    numbers = {}
    for column, array in about:
        known = categories[column]
        values = arrays.read(array)
        require(len(values) == len(known) + 1, "there is a number for each category and for an unknown one")
        require(bool((np.abs(values) <= LARGEST_NUMBER).all()), "the numbers of categories are finite")
        numbers[column] = tuple(values.tolist())
    require(len(numbers) == len(about), "a column has its numbers once")
    return numbers


def _read_readings(about: Any, categories: dict[int, tuple[Category, ...]], n_features: int) -> dict[int, Reading]:
    """Return how the texts of columns become numbers."""
    readings = {}
    for column, kind, decimal, order in about:
        known = kind in ("number", "date") and decimal in (".", ",") and order in ("day", "month")
        require(known, "texts are read as numbers or dates in a known way")
        readings[read_whole(column, 0, n_features - 1)] = Reading(kind, decimal, order)
    require(len(readings) == len(about), "a column is read in one way")
    require(not readings.keys() & categories.keys(), "a column of categories is not read as numbers")
    return readings


def _is_category(value: Any) -> bool:
    """Tell whether a value is text or a number that equals itself, which NaN does not."""
    return isinstance(value, (int, float, str)) and not isinstance(value, bool) and value == value


def _read_classes(about: Any, n_scores: int) -> NDArray[Any]:
    classes = _read_names("classes", about, MOST_LETTERS)
    require(len(classes) >= 2, "there are two classes")
    require(len(classes) <= max(2, n_scores), "there are trees for each class")
    return classes


def _read_names(what: str, about: Any, most_letters: int) -> NDArray[Any]:
    """Return the classes, or the sources: sorted, all different."""
    kind = about["type"]
    values = read_value(about["values"])
    require(isinstance(kind, str) and LABEL_TYPES.fullmatch(kind) is not None, f"{kind!r:.50} is a type of {what}")
    require(isinstance(values, list) and len(values) > 0, f"there are {what}")
    require(all(isinstance(one, (bool, int, float, str)) for one in values), f"{what} are text or numbers")
    is_text = [isinstance(one, str) for one in values]
    if "U" in kind:
        require(int(kind[2:]) * len(values) <= most_letters, f"names of {what} are short")
        require(all(is_text), f"{what} of a text type are text")
    elif kind != "|O":
        require(not any(is_text), f"{what} of a type of numbers are numbers")
    names = np.array(values, dtype=kind)
    is_sorted = names.tolist() == values and bool(np.all(names[:-1] < names[1:]))
    require(is_sorted, f"{what} are sorted and different")
    return names


def _read_class_weights(about: Any, classes: NDArray[Any]) -> Array:
    weights = check_finite(np.array(read_value(about), dtype=np.float64), low=0.0)
    require(weights.shape == classes.shape, "there is a weight per class")
    positive = weights[weights > 0]
    require(positive.size > 0, "a class has a weight above 0")
    has_ratios = positive.min() > 1.0 / LARGEST_FACTOR and positive.max() < LARGEST_FACTOR
    require(bool(has_ratios), f"class weights are 0 or between 1/{LARGEST_FACTOR:g} and it")
    return weights


def _read_link(about: Any) -> Link | SoftmaxLink:
    if about["kind"] == SOFTMAX:
        alpha = read_number(about["alpha"], low=0.0, high=LARGEST_FACTOR)
        return SoftmaxLink(AlphaLoss(alpha))
    link: Link = LINKS[about["kind"]](AlphaLoss(read_number(about["alpha"])))
    return link


def _read_held_out(about: Any, arrays: ArrayReader, n_rows: int) -> tuple[NDArray[np.intp], Array]:
    rows_number, shares_number = about
    rows = arrays.read(rows_number, np.int64).astype(np.intp)
    require(bool(np.all((rows >= 0) & (rows < n_rows))), "rows held out are rows of the training")
    shares = check_finite(arrays.read(shares_number), low=0.0)
    require(len(rows) == len(shares), "each row held out has a share")
    return rows, shares


def _read_choice(about: Any) -> Choice:
    pairs = dict(about["pairs"])
    tried = tuple(_read_record(one, Candidate) for one in pairs["tried"]["tuple"])
    mixture = None if pairs["mixture"] is None else _read_record(pairs["mixture"], Mixture)
    return Choice(_read_record(pairs["best"], Candidate), tried, mixture)


def _read_record(about: Any, kind: type[Record]) -> Record:
    """Return a record of numbers, some of which are whole; only what trees drew may be unknown."""
    whole = {field.name for field in fields(kind) if field.type in ("int", int)}
    values: dict[str, Any] = {
        name: read_whole(value, 0) if name in whole else read_number(value)
        for name, value in about["pairs"]
        if (name, value) != ("drawn", None)
    }
    return kind(**values)


def _read_noise(about: Any, arrays: ArrayReader, n_classes: int) -> NoiseModel | None:
    if about is None:
        return None
    kind = TwoClassNoise if n_classes == 2 else SeveralClassesNoise
    has_arrays = kind.array_axes.keys() <= about.keys()
    require(has_arrays, f"the noise of {n_classes} classes has {', '.join(kind.array_axes)}")
    return _read_rates(about, arrays) if n_classes == 2 else _read_matrices(about, arrays, n_classes)


def _read_menon(about: Any, n_classes: int) -> MenonEstimate:
    require(n_classes == 2, "the estimate of the paper is for two classes")
    return MenonEstimate(
        **{field.name: _read_noise_field(field.name, about[field.name]) for field in fields(MenonEstimate)}
    )


def _read_rates(about: Any, arrays: ArrayReader) -> TwoClassNoise:
    values: dict[str, Any] = {name: _read_of_pairs(name, about[name], arrays) for name in TwoClassNoise.array_axes}
    values |= {name: _read_noise_field(name, about[name]) for name in _list_other_fields(TwoClassNoise)}
    _check_rates(values)
    return TwoClassNoise(**values)


def _read_of_pairs(name: str, plain: Any, arrays: ArrayReader) -> Array | None:
    if name in ("bends", "shortfalls") and plain is None:  # Rates that are known have none.
        return None
    return check_finite(arrays.read(plain), low=-math.inf if name == "bends" else 0.0)


def _read_noise_field(name: str, plain: Any) -> Any:
    if name.startswith("interval"):
        return _read_interval(plain)
    if name == "found":
        require(isinstance(plain, bool), "found is true or false")
        return plain
    is_share = name.startswith("rate") or name in ("share", "uneven_limit")
    return read_number(plain, low=0.0, high=1.0) if is_share else read_number(plain)


def _read_interval(plain: Any) -> tuple[float, float]:
    low, high = (read_number(end, low=0.0, high=1.0) for end in plain["tuple"])
    require(low <= high, "an interval begins before it ends")
    return low, high


def _check_rates(values: dict[str, Any]) -> None:
    sizes = {len(values[name]) for name in TwoClassNoise.array_axes if values[name] is not None}
    require(len(sizes) == 1 and 1 <= sizes.pop() <= MOST_COMPONENTS, "there is a weight per pair of rates")
    require(bool(np.all(values["weights"] > 0)), "weights of rates are positive")
    require(bool(abs(values["weights"].sum() - 1.0) < ROUNDING), "weights of rates sum to one")
    require(bool(np.all(values["rates_neg"] + values["rates_pos"] < 1)), "rates sum to less than one")
    require(0 < values["clearest"] < 0.5, "the clearest posterior lies in (0, 0.5)")
    require(values["scale"] > 0, "the scale of the calibration is positive")
    require(math.isfinite(values["scale"]) and math.isfinite(values["offset"]), "the calibration is finite")
    require(abs(values["offset"]) < LARGEST_NUMBER, f"the offset of the calibration is below {LARGEST_NUMBER}")
    require(bool(np.all(values["slopes"] < LARGEST_SLOPE)), f"slopes are below {LARGEST_SLOPE}")
    is_rising = values["bends"] is None or bool(np.all(np.abs(values["bends"]) <= values["slopes"]))
    require(is_rising, "clean posteriors rise: bends are no larger than slopes")
    require(values["scale"] < LARGEST_NUMBER, f"the scale of the calibration is below {LARGEST_NUMBER}")


def _read_matrices(about: Any, arrays: ArrayReader, n_classes: int) -> SeveralClassesNoise:
    values: dict[str, Any] = {name: check_finite(arrays.read(about[name])) for name in SeveralClassesNoise.array_axes}
    n_matrices = len(values["weights"])
    require(1 <= n_matrices <= MOST_COMPONENTS, f"there are 1 to {MOST_COMPONENTS} matrices")
    _shape_arrays(values, SeveralClassesNoise.array_axes, {"m": n_matrices, "k": n_classes, "2": 2})
    _check_matrices(values["matrices"])
    require(bool(np.all(values["weights"] > 0)), "weights of matrices are positive")
    require(bool(abs(values["weights"].sum() - 1.0) < ROUNDING), "weights of matrices sum to one")
    are_slopes = bool(np.all(values["slopes"] >= 0) and np.all(values["slopes"] < LARGEST_SLOPE))
    require(are_slopes, f"slopes are between 0 and {LARGEST_SLOPE}")
    require(bool(np.all(np.abs(values["offsets"]) < LARGEST_NUMBER)), f"offsets are below {LARGEST_NUMBER}")
    for name in ("class_shares", "class_intervals"):
        require(bool(np.all((values[name] >= 0) & (values[name] <= 1))), f"{name} are shares")
    require(bool(np.isin(values["decided_pairs"], (0, 1)).all()), "decided_pairs are 0 or 1")
    values["decided_pairs"] = values["decided_pairs"].astype(np.bool_)
    values |= {name: _read_noise_field(name, about[name]) for name in _list_other_fields(SeveralClassesNoise)}
    require(0 < values["least"] < 1.0 / n_classes, "the least posterior is positive and below that of equal classes")
    return SeveralClassesNoise(**values)


def _shape_arrays(values: dict[str, Any], axes_of: Mapping[str, str], lengths: dict[str, int]) -> None:
    """Give arrays their axes, each of which has a letter; refuse those that have other numbers of entries."""
    for name, axes in axes_of.items():
        shape = [lengths[axis] for axis in axes]
        require(values[name].size == math.prod(shape), f"{name} has a number for each of its axes")
        values[name] = values[name].reshape(shape)


def _check_matrices(matrices: Array) -> None:
    are_shares = bool(np.all(matrices >= 0) and np.all(np.abs(matrices.sum(axis=2) - 1.0) < ROUNDING))
    require(are_shares, "the rows of transition matrices are shares that sum to one")
    for matrix in matrices:
        try:
            largest = float(np.abs(np.linalg.inv(matrix)).max())
        except np.linalg.LinAlgError:
            largest = math.inf
        require(largest < LARGEST_INVERSE, "transition matrices are invertible")


def _read_sources(about: Any, arrays: ArrayReader, n_classes: int, noise: NoiseModel | None) -> NoiseBySource:
    names = _read_names("sources", about["names"], MOST_SOURCE_LETTERS)
    values: dict[str, Any] = {
        name: check_finite(arrays.read(about[name], np.uint8 if name == "stands_out" else np.float64), low=0.0)
        for name in SOURCE_ARRAYS
    }
    _shape_arrays(values, SOURCE_ARRAYS, {"s": len(names), "k": n_classes, "2": 2})
    for name in [one for one in SOURCE_ARRAYS if one != "counts"]:
        require(bool(np.all(values[name] <= 1)), f"{name} are shares")
    for name in ("matrices", "common"):
        require(bool(np.all(np.abs(values[name].sum(axis=-1) - 1.0) < ROUNDING)), f"the rows of {name} sum to one")
    for name in ("intervals", "class_intervals"):
        require(bool(np.all(values[name][..., 0] <= values[name][..., 1])), f"{name} begin before they end")
    require(bool(np.all(values["counts"] < MOST_WEIGHT)), f"the labels of a source weigh less than {MOST_WEIGHT:g}")
    require(bool(np.all(values["reliability"] > 0)), "a label of any source is worth something")
    evidence = read_number(about["evidence"])
    require(math.isfinite(evidence), "the evidence of sources is finite")
    if noise is None:
        raise ValueError("not so: where there are sources, posteriors of all classes are untwisted")
    values["stands_out"] = values["stands_out"].astype(np.bool_)
    return NoiseBySource(names=names, evidence=evidence, noise=noise, **values)


def _list_other_fields(kind: type[NoiseModel]) -> list[str]:
    return [field.name for field in fields(kind) if field.name not in kind.array_axes]
