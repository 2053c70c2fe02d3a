"""The parameters of `PILBoostClassifier`, checked once, and every "auto" decided once.

`resolve` makes frozen `Settings` of the constructor's arguments before any data is looked at. What is left open then is
what the data have to decide: a tuple of several candidates, or None. What only the table can tell, such as whether a
monotone column exists, `untwist.training_data` checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from untwist.arguments import (
    Array,
    check_count,
    check_fraction,
    check_non_negative,
    check_positive,
    check_real,
    check_share,
)
from untwist.boosting.engines.engine import Engine, EngineOptions, Growth
from untwist.boosting.engines.registry import ENGINES, find_engine
from untwist.boosting.forest import count_threads
from untwist.boosting.measuring import Metric, read_metric
from untwist.boosting.runs import Callback
from untwist.data.encoding import AcceptedTables
from untwist.data.groups import OwnFolds
from untwist.model import Candidate
from untwist.noise.model import check_matrix
from untwist.theory.links import LINKS, ClippedLink, Link, default_step_size
from untwist.theory.losses import AlphaLoss, Loss, is_alpha_loss

__all__ = ["ENGINE_SPECIFIC_DEFAULTS", "N_FOLDS", "Settings", "choose_engine", "resolve"]

#: The alphas, depths and learning rates that are tried where they are left open.
ALPHAS = (1.0, 2.0)
DEPTHS = (2, 4, 6)
LEARNING_RATES = (0.1, 0.2)

#: The learning rates that are tried where all classes are boosted together, whose trees serve more than one of them, or
#: where families are mixed.
JOINT_LEARNING_RATES = (0.05, 0.1)

#: The alphas and depths that are tried for the boosted trees of two classes that others are mixed with.
MIXED_ALPHAS = (1.0, 2.0, 4.0)
MIXED_DEPTHS = (2, 3, 4, 6)

#: The shares of the rows and columns that their trees draw: at the first alpha, and at larger ones.
MIXED_SHARES = (0.7, 1.0)

#: Folds that candidates are compared by, unless `cv` says otherwise.
N_FOLDS = 5

#: What "auto" stands for where nothing can be chosen from the data.
PLAIN_ALPHA = 2.0
PLAIN_ROUNDS = 100
PLAIN_DEPTH = 3

#: What "auto" stands for where something is chosen from the data, and where nothing is.
REGULARISATION = {"l2_regularization": (1.0, 0.0), "subsample": (0.7, 1.0), "max_features": (0.7, 1.0)}

#: Older names of parameters, which are still taken, and the names that they have now. "auto" means not given.
OLDER_NAMES = {"l2": "l2_regularization"}

#: Parameters that some engines do not know, with their defaults: such an engine refuses any other value.
ENGINE_SPECIFIC_DEFAULTS: dict[str, Any] = {
    "min_samples_leaf": 1,
    "l2_regularization": "auto",
    "subsample": "auto",
    "max_features": "auto",
    "extra_trees": False,
    "max_bins": 255,
    "monotonic_cst": None,
    "interaction_cst": None,
    "feature_weights": None,
    "tree_method": "hist",
    "device": "cpu",
}


@dataclass(frozen=True, eq=False)
class Settings:
    """What a fit is to do, with nothing left to check but what the table has to tell.

    Parameters
    ----------
    engine, engine_options, accepted_tables
        The engine, what it is told, and the tables that it takes.
    automatic : bool
        Whether candidates are compared by folds.
    alphas : tuple of float
        The candidates; a single one where alpha is given, and None where `menon` is to say it.
    depths : tuple of int
        The candidates, a single one where it is given.
    n_rounds : int or None
        The rounds to make; None where they are left open.
    rounds_are_limit : bool
        Whether fewer rounds than `n_rounds` may do: early stopping.
    step : float or None
        The step size or learning rate that was given; None for the default.
    by_edge : bool
        Whether steps are multiples of the edge, as in the paper, or all the same, as a learning rate makes them.
    patience : int
        Rounds without progress after which early stopping ends a plain fit; 0 without early stopping.
    noise_rates : "auto", (float, float), array or None
        As given; an array is the transition matrix of more than two classes.
    families : str
        "boosted", "mixed" or "auto", as given; "boosted" too where n_estimators, max_depth or max_leaf_nodes is given.
    mixes_two_classes : bool
        Whether "auto" stands for mixed families where there are two classes.
    shares : tuple
        The shares of rows and columns that the boosted trees of mixed families draw: the candidates; a single None
        where `growth` has what was given.
    init : str
        "prior" or "zero": where boosting begins.
    loss, link_name
        The loss, None for the alpha-loss, and which of `untwist.theory.links.LINKS` it is boosted with.
    cv : int, splitter or iterable
        The number of folds, or folds of one's own as they were given.
    validation_fraction, categorical_features, monotonic_cst, interaction_cst, feature_weights, missing, class_weight
        As given.
    warm_start, callbacks, n_jobs, verbose
        As given.
    metric : Metric or None
        What is measured after each round besides log-loss and error, and stops a plain fit early.
    eval_training : bool
        Whether training rows are measured too.
    seed : int
        What all random choices of the fit follow from.
    """

    engine: Engine
    engine_options: EngineOptions
    accepted_tables: AcceptedTables
    automatic: bool
    alphas: tuple[float, ...] | None
    depths: tuple[int, ...]
    n_rounds: int | None
    rounds_are_limit: bool
    step: float | None
    by_edge: bool
    patience: int
    noise_rates: Any
    families: str
    mixes_two_classes: bool
    shares: tuple[float | None, ...]
    init: str
    loss: Loss | None
    link_name: str
    validation_fraction: float
    categorical_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    feature_weights: Any
    missing: float | None
    class_weight: Any
    warm_start: bool
    callbacks: tuple[Callback, ...]
    n_jobs: int | None
    verbose: int
    seed: int
    metric: Metric | None = None
    eval_training: bool = False
    cv: Any = N_FOLDS

    @property
    def growth(self) -> Growth:
        """How trees grow."""
        return self.engine_options.growth

    @property
    def known_noise(self) -> tuple[float, float] | Array | None:
        """The noise rates or the transition matrix that were given, None where they were not."""
        return None if isinstance(self.noise_rates, str) else self.noise_rates

    @property
    def untwists_posteriors(self) -> bool:
        """Whether posteriors are untwisted, by given or by estimated noise rates."""
        alpha_was_open = self.alphas is not None and len(self.alphas) > 1
        return self.known_noise is not None or (alpha_was_open and self.noise_rates is not None)

    @property
    def undoes_no_noise(self) -> bool:
        """Whether folds could tell how noisy labels are, but alpha is given as 1, which believes every one of them."""
        believes = self.alphas is not None and self.alphas == (1.0,)
        return self.automatic and believes and isinstance(self.noise_rates, str)

    @property
    def turns_labels_over(self) -> bool:
        """Whether the clean posterior is the complement of the twisted one: a negative alpha."""
        return self.loss is None and self.alphas is not None and self.alphas[0] < 0

    def check_classes(self, n_classes: int) -> None:
        """Raise an error for what does not go with so many classes."""
        known = self.known_noise
        if known is not None and len(known) != n_classes:  # Two rates are as many as there are classes.
            raise ValueError(
                f"noise_rates must be a matrix of {n_classes} rows and columns for {n_classes} classes, got {known!r}"
            )
        if self.families == "mixed" and n_classes == 2:
            if self.alphas is None or len(self.alphas) == 1:
                raise ValueError('families="mixed" needs alpha to be left open for two classes')
            if _has_directions(self.monotonic_cst):
                raise ValueError('families="mixed" knows no monotonic_cst: random thresholds do not keep to it')
        if self.families == "mixed" and self.restricts_columns:
            raise ValueError('families="mixed" knows neither interaction_cst nor feature_weights: give one of them up')
        if self.families == "mixed" and n_classes > 2 and not self.boosts_jointly(n_classes):
            raise ValueError('families="mixed" needs a finite alpha above 0 for several classes')
        if n_classes > 2 and self.alphas is None:
            raise ValueError('alpha="menon" is for two classes')

    def boosts_jointly(self, n_classes: int) -> bool:
        """Tell whether all classes are boosted together, not each against the rest."""
        has_softmax = self.alphas is not None and all(0 < alpha < np.inf for alpha in self.alphas)
        return (
            n_classes > 2
            and self.automatic
            and self.engine.boosts_jointly
            and has_softmax
            and self.link_name == "clipped"
        )

    def mixes_families(self, n_classes: int) -> bool:
        """Tell whether several families of trees make the model."""
        if n_classes == 2:
            may_mix = self.mixes_two_classes and not self.restricts_columns
            return self.families == "mixed" or (self.families == "auto" and may_mix)
        return self.families != "boosted" and not self.restricts_columns and self.boosts_jointly(n_classes)

    @property
    def restricts_columns(self) -> bool:
        """Whether it was said which columns may meet or be drawn, which trees of random thresholds do not heed."""
        return self.interaction_cst is not None or self.feature_weights is not None

    def make_link(self, alpha: float) -> Link:
        """Return the link at an alpha."""
        loss = AlphaLoss(alpha) if self.loss is None else self.loss
        return LINKS[self.link_name](loss)

    def choose_step(self, link: Link) -> float:
        """Return the step of a plain fit: the one that was given, else the paper's."""
        return default_step_size(link) if self.step is None else self.step

    def narrow_to(self, candidate: Candidate) -> Settings:
        """Return the settings of a fit by folds that tries this candidate only and corrects no noise."""
        return replace(
            self,
            alphas=(candidate.alpha,),
            depths=(candidate.max_depth,),
            shares=(candidate.drawn,),
            n_rounds=candidate.n_rounds,
            rounds_are_limit=False,
            step=candidate.step,
            noise_rates=None,
            callbacks=(),
            verbose=0,
        )


def resolve(parameters: Mapping[str, Any], *, seed: int | None = None) -> Settings:
    """Check all parameters and decide what "auto" means.

    Parameters
    ----------
    parameters : mapping
        The constructor's arguments, as `get_params(deep=False)` gives them.
    seed : int or None
        The seed of an earlier fit to go on from; None to draw one by `random_state`.

    Returns
    -------
    Settings

    Raises
    ------
    ValueError
        It names the parameter and its value.
    """
    parameters = _take_older_names(parameters)
    engine = choose_engine(parameters)
    _refuse_unknown_settings(parameters, engine)
    _check_flags(parameters)
    loss = _check_loss(parameters["loss"], engine)
    alpha = parameters["alpha"]
    if is_alpha_loss(parameters["loss"]):
        alpha = parameters["loss"].alpha
    anything_open = any(_is_auto(value) for value in (alpha, parameters["n_estimators"], parameters["max_depth"]))
    automatic = anything_open and engine.grows_forests and loss is None
    if automatic and parameters["warm_start"]:
        raise ValueError("warm_start needs alpha, n_estimators and max_depth to be given")
    alphas = _decide_alphas(alpha, automatic, plays_a_part=loss is None)
    link_name = _check_link(parameters["link"], loss, alphas, engine)
    max_depth = _check_depth(parameters["max_depth"])
    step = _check_step(parameters["step_size"], parameters["learning_rate"])
    growth = Growth(
        max_depth=PLAIN_DEPTH if _is_auto(max_depth) else max_depth,
        max_leaf_nodes=_check_leaves(parameters["max_leaf_nodes"]),
        min_samples_leaf=check_count("min_samples_leaf", parameters["min_samples_leaf"]),
        min_weight_fraction_leaf=_check_leaf_share(parameters["min_weight_fraction_leaf"]),
        l2=check_non_negative("l2_regularization", _decide_regularisation("l2_regularization", parameters, automatic)),
        subsample=check_share("subsample", _decide_regularisation("subsample", parameters, automatic)),
        max_features=check_share("max_features", _decide_regularisation("max_features", parameters, automatic)),
        extra=bool(parameters["extra_trees"]),
    )
    engine_options = EngineOptions(
        growth=growth,
        max_bins=check_count("max_bins", parameters["max_bins"], low=2, high=255),
        tree_method=parameters["tree_method"],
        device=parameters["device"],
        estimator=_check_estimator(parameters["estimator"]),
        n_jobs=parameters["n_jobs"],
    )
    engine.check_settings(engine_options)
    count_threads(parameters["n_jobs"])  # It refuses what is no number of threads.
    metric = read_metric(parameters["eval_metric"])
    if automatic and (metric is not None or parameters["eval_training"]):
        name = "eval_training" if metric is None else "eval_metric"
        raise ValueError(
            f"{name} needs alpha, n_estimators and max_depth to be given: where something is chosen from the data, "
            "candidates are compared by the log-loss of rows that folds set aside"
        )
    patience = check_count("n_iter_no_change", parameters["n_iter_no_change"])
    early_stopping = bool(parameters["early_stopping"])
    return Settings(
        engine=engine,
        engine_options=engine_options,
        accepted_tables=engine.accepted_tables(parameters["estimator"], parameters["tree_method"]),
        automatic=automatic,
        alphas=alphas,
        depths=DEPTHS if automatic and _is_auto(max_depth) else (growth.depth,),
        n_rounds=_decide_rounds(parameters["n_estimators"], automatic),
        rounds_are_limit=early_stopping,
        step=step,
        by_edge=parameters["learning_rate"] is None and not (automatic and step is None),
        patience=patience if early_stopping else 0,
        noise_rates=_check_noise_rates(parameters["noise_rates"], alphas),
        families=_check_families(parameters, automatic, engine),
        mixes_two_classes=_can_mix_two_classes(alphas, link_name, engine, parameters["monotonic_cst"]),
        shares=MIXED_SHARES if all(_is_auto(parameters[name]) for name in ("subsample", "max_features")) else (None,),
        init=_check_init(parameters["init"]),
        loss=loss,
        link_name=link_name,
        validation_fraction=_check_validation_fraction(parameters["validation_fraction"]),
        categorical_features=parameters["categorical_features"],
        monotonic_cst=parameters["monotonic_cst"],
        interaction_cst=parameters["interaction_cst"],
        feature_weights=parameters["feature_weights"],
        missing=_check_missing(parameters["missing"]),
        class_weight=parameters["class_weight"],
        warm_start=bool(parameters["warm_start"]),
        callbacks=_check_callbacks(parameters["callbacks"]),
        n_jobs=parameters["n_jobs"],
        verbose=_check_verbose(parameters["verbose"]),
        seed=_draw_seed(parameters["random_state"]) if seed is None else seed,
        metric=metric,
        eval_training=bool(parameters["eval_training"]),
        cv=_check_cv(parameters["cv"]),
    )


def _take_older_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters by the names that they have now."""
    renamed = dict(parameters)
    for older, name in OLDER_NAMES.items():
        value = renamed.pop(older)
        if _is_auto(value):
            continue
        if not _is_auto(renamed[name]):
            raise ValueError(
                f"{name} and {older} are one parameter: give {name} alone, got {renamed[name]!r}, {value!r}"
            )
        renamed[name] = value
    return renamed


def choose_engine(parameters: Mapping[str, Any]) -> Engine:
    """Return the engine that the parameters ask for; "auto" is the compiled one wherever it can do the job."""
    engine, estimator, loss = (parameters[name] for name in ("engine", "estimator", "loss"))
    if not _is_auto(engine):
        found = find_engine(engine)
        if estimator is not None:
            raise ValueError(f"engine={engine!r} and estimator= exclude each other: give one of them")
        return found
    alpha_loss = loss is None or is_alpha_loss(loss)
    return find_engine("compiled" if estimator is None and alpha_loss else "reference")


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _refuse_unknown_settings(parameters: Mapping[str, Any], engine: Engine) -> None:
    """Raise an error for a parameter that plays no part in the engine and yet was given."""
    known = {OLDER_NAMES.get(name, name) for name in engine.known_settings}
    for name, default in ENGINE_SPECIFIC_DEFAULTS.items():
        value = parameters[name]
        is_default = value is default or (default is not None and np.ndim(value) == 0 and value == default)
        if name not in known and not is_default:
            knowing = [f'"{one.name}"' for one in ENGINES.values() if name in one.known_settings]
            raise ValueError(f"{name}={value!r} needs engine={' or '.join(knowing)}, got the {engine.name} engine")


def _check_flags(parameters: Mapping[str, Any]) -> None:
    for name in ("extra_trees", "early_stopping", "warm_start", "eval_training"):
        if not isinstance(parameters[name], (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {parameters[name]!r}")


def _check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    functions = callbacks or []
    if not isinstance(functions, (list, tuple)) or not all(map(callable, functions)):
        raise ValueError(f"callbacks must be a list of functions, got {callbacks!r}")
    return tuple(functions)


def _check_loss(loss: Any, engine: Engine) -> Loss | None:
    """Return the loss; None for the alpha-loss, whose alpha is a parameter like any other."""
    if loss is None or is_alpha_loss(loss):
        return None
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a Loss, got {loss!r}")
    engine.check_loss(loss)
    return loss


def _decide_alphas(alpha: Any, automatic: bool, plays_a_part: bool) -> tuple[float, ...] | None:
    if _is_auto(alpha):
        return ALPHAS if automatic else (PLAIN_ALPHA,)
    if isinstance(alpha, str) and alpha == "menon":
        return None
    if isinstance(alpha, str) or alpha is None:
        raise ValueError(f'alpha must be a number, "auto" or "menon", got {alpha!r}')
    if not plays_a_part:
        return (alpha,)
    ClippedLink(AlphaLoss(alpha))  # It refuses what is no alpha.
    return (float(alpha),)


def _check_depth(max_depth: Any) -> Any:
    return max_depth if max_depth is None or _is_auto(max_depth) else check_count("max_depth", max_depth)


def _decide_rounds(n_estimators: Any, automatic: bool) -> int | None:
    if _is_auto(n_estimators):
        return None if automatic else PLAIN_ROUNDS
    return check_count("n_estimators", n_estimators)


def _check_step(step_size: Any, learning_rate: Any) -> float | None:
    if _is_auto(step_size):
        return None if learning_rate is None else check_positive("learning_rate", learning_rate)
    if learning_rate is not None:
        raise ValueError("step_size and learning_rate exclude each other: give one of them")
    if step_size is None or isinstance(step_size, str):
        raise ValueError(f'step_size must be a number > 0 or "auto", got {step_size!r}')
    return check_positive("step_size", step_size)


def _check_leaves(max_leaf_nodes: Any) -> int | None:
    return None if max_leaf_nodes is None else check_count("max_leaf_nodes", max_leaf_nodes, low=2)


def _check_leaf_share(min_weight_fraction_leaf: Any) -> float:
    least = check_real("min_weight_fraction_leaf", min_weight_fraction_leaf, low=0.0)
    if least > 0.5:
        raise ValueError(f"min_weight_fraction_leaf must lie in [0, 0.5], got {min_weight_fraction_leaf!r}")
    return least


def _decide_regularisation(name: str, parameters: Mapping[str, Any], automatic: bool) -> Any:
    if not _is_auto(parameters[name]):
        return parameters[name]
    automatic_value, plain_value = REGULARISATION[name]
    return automatic_value if automatic else plain_value


def _check_estimator(estimator: Any) -> Any:
    can_learn = hasattr(estimator, "fit") and hasattr(estimator, "predict")
    if estimator is not None and (isinstance(estimator, type) or not can_learn):
        raise ValueError(f"estimator must be an object with fit and predict, got {estimator!r}")
    return estimator


def _check_noise_rates(noise_rates: Any, alphas: tuple[float, ...] | None) -> Any:
    if noise_rates is None or _is_auto(noise_rates):
        return noise_rates
    if alphas is not None and alphas[0] < 0:
        raise ValueError(f"noise_rates must not be given with a negative alpha, got {alphas[0]!r}: one turns labels")
    if np.ndim(noise_rates) == 2:
        matrix = check_matrix(noise_rates, "noise_rates")
        return matrix if len(matrix) > 2 else (float(matrix[0, 1]), float(matrix[1, 0]))
    try:
        rate_neg, rate_pos = (check_fraction("noise_rates", rate) for rate in noise_rates)
    except (TypeError, ValueError) as error:
        kinds = '"auto", None, two numbers in [0, 1], or a transition matrix'
        raise ValueError(f"noise_rates must be {kinds}, got {noise_rates!r}") from error
    if rate_neg + rate_pos >= 1:
        raise ValueError(f"noise_rates must sum to less than 1, got {noise_rates!r}: swap the labels first")
    return rate_neg, rate_pos


def _check_families(parameters: Mapping[str, Any], automatic: bool, engine: Engine) -> str:
    """Return which families of trees are asked for."""
    families = parameters["families"]
    if families not in ("auto", "boosted", "mixed"):
        raise ValueError(f'families must be "auto", "boosted" or "mixed", got {families!r}')
    if families == "mixed" and not (engine.boosts_jointly and parameters["link"] == "clipped"):
        raise ValueError('families="mixed" is for the compiled engine and its default link')
    sizes_are_open = automatic and all(_is_auto(parameters[name]) for name in ("n_estimators", "max_depth"))
    if sizes_are_open and parameters["max_leaf_nodes"] is None:
        return str(families)
    if families == "mixed":
        raise ValueError('families="mixed" needs n_estimators, max_depth and max_leaf_nodes to be left open')
    return "boosted"


def _can_mix_two_classes(alphas: tuple[float, ...] | None, link_name: str, engine: Engine, monotonic_cst: Any) -> bool:
    """Tell whether nothing was asked for that only boosted trees can do."""
    alpha_is_open = alphas is not None and len(alphas) > 1
    return alpha_is_open and link_name == "clipped" and engine.boosts_jointly and not _has_directions(monotonic_cst)


def _has_directions(monotonic_cst: Any) -> bool:
    """Tell whether any column is to be monotone."""
    directions = list(monotonic_cst.values()) if isinstance(monotonic_cst, dict) else monotonic_cst
    # What is no list of directions is refused where the table is known.
    return directions is not None and np.ndim(directions) > 0 and bool(np.any([one != 0 for one in directions]))


def _check_link(link: Any, loss: Loss | None, alphas: tuple[float, ...] | None, engine: Engine) -> str:
    """Return the name of the link, if the engine and the loss go with it."""
    if not isinstance(link, str) or link not in LINKS:
        raise ValueError(f'link must be "clipped", "exact" or "logit", got {link!r}')
    if link not in engine.known_links:
        raise ValueError(f"link={link!r} is not for the {engine.name} engine")
    if link == "logit":
        if loss is not None:
            raise ValueError(f'link="logit" is for the alpha-loss, got loss={loss!r}')
        if alphas is None or min(alphas) < 1 or max(alphas) == np.inf:
            given = "menon" if alphas is None else alphas[0]
            raise ValueError(f'link="logit" needs a finite alpha from 1 on, got {given!r}')
    return link


def _check_init(init: Any) -> str:
    if not isinstance(init, str) or init not in ("prior", "zero"):
        raise ValueError(f'init must be "prior" or "zero", got {init!r}')
    return init


def _check_validation_fraction(validation_fraction: Any) -> float:
    part = check_real("validation_fraction", validation_fraction, low=0.0, open_low=True)
    if part >= 1:
        raise ValueError(f"validation_fraction must be below 1, got {part}")
    return part


def _check_cv(cv: Any) -> Any:
    """Return the number of folds, or what makes folds of one's own."""
    if cv is None:
        return N_FOLDS
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return check_count("cv", cv, low=2)
    if isinstance(cv, (str, bytes, dict, type)) or not (hasattr(cv, "split") or isinstance(cv, (Iterable, OwnFolds))):
        raise ValueError(
            f"cv must be None, a number of folds, a splitter of scikit-learn's kind, or pairs (train, test) of "
            f"positions of rows, got {cv!r:.100}"
        )
    return cv


def _check_verbose(verbose: Any) -> int:
    return int(verbose) if isinstance(verbose, bool) else check_count("verbose", verbose, low=0)


def _check_missing(missing: Any) -> float | None:
    """Return the number that counts as missing, None for NaN alone."""
    if missing is None:
        return None
    if isinstance(missing, (bool, np.bool_)) or not isinstance(missing, (int, float, np.integer, np.floating)):
        raise ValueError(f"missing must be a number or None, got {missing!r}")
    if np.isinf(missing):
        raise ValueError(f"missing must be finite or NaN, got {missing!r}")
    return None if np.isnan(missing) else float(missing)


def _draw_seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise ValueError(
            "random_state must be None, a whole number from 0 to 2**32 - 1, a RandomState or a Generator of NumPy, got "
            f"{random_state!r}"
        ) from error
