"""The parameters of both estimators, checked once, and what the user left open decided once.

`resolve_paper` and `resolve_recipe` make frozen `Settings` of a constructor's arguments before any data is looked at.
What the recipe leaves open then is what the data have to decide: a tuple of several candidates, or None. What only the
table can tell, such as whether a monotone column exists, `untwist.training_data` checks.
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
from untwist.boosting.engines.engine import Engine, EngineOptions, TreeGrowth
from untwist.boosting.engines.registry import ENGINES, find_engine
from untwist.boosting.forest import count_threads
from untwist.boosting.measuring import Metric, read_metric
from untwist.boosting.runs import Callback
from untwist.column_rules import ColumnRules
from untwist.data.encoding import AcceptedTables
from untwist.data.groups import OwnFolds
from untwist.growth import Growth
from untwist.model import Candidate
from untwist.noise.model import check_matrix
from untwist.theory.links import LINKS, ClippedLink, Link, default_step_size
from untwist.theory.losses import AlphaLoss, Loss, is_alpha_loss

__all__ = [
    "N_FOLDS",
    "RECIPE_DEFAULTS",
    "Settings",
    "choose_engine",
    "choose_recipe_engine",
    "resolve_paper",
    "resolve_recipe",
]

#: The alphas, depths and learning rates that the recipe tries.
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

#: Folds that the recipe judges labels by, unless `cv` says otherwise.
N_FOLDS = 5

#: The depth of the paper's trees.
PLAIN_DEPTH = 3

#: How the boosted trees of the recipe grow: leaves of few rows count as if one row more, of label 0, were in them, and
#: every tree draws so much of the rows and columns.
RECIPE_GROWTH = TreeGrowth(max_depth=PLAIN_DEPTH, l2=1.0, subsample=0.7, max_features=0.7)

#: Rounds without progress after which early stopping ends a fit, where no number is given.
PATIENCE = 10

#: The share of every class that early stopping holds out where no validation rows are given.
VALIDATION_FRACTION = 0.1

#: What `UntwistClassifier` leaves to its own recipe where nothing is said.
RECIPE_DEFAULTS: dict[str, Any] = {
    "noise": "auto",
    "cv": None,
    "class_weight": None,
    "categorical_features": "auto",
    "monotonic_cst": None,
    "interaction_cst": None,
    "engine": "auto",
    "device": "cpu",
    "order": None,
    "callbacks": None,
    "n_jobs": None,
    "random_state": None,
    "verbose": 0,
}

#: Parameters that some engines do not know, with their defaults: such an engine refuses any other value.
ENGINE_SPECIFIC_DEFAULTS: dict[str, Any] = {
    "min_samples_leaf": 1,
    "max_bins": 255,
    "monotonic_cst": None,
    "interaction_cst": None,
    "l2": 0.0,
    "subsample": 1.0,
    "max_features": 1.0,
    "feature_weights": None,
    "extra_trees": False,
    "tree_method": "hist",
    "device": "cpu",
}

#: Those of them that `growth` has.
OF_GROWTH = frozenset(Growth().get_params())


@dataclass(frozen=True, eq=False)
class Settings:
    """What a fit is to do, with nothing left to check but what the table has to tell.

    Parameters
    ----------
    engine, engine_options, accepted_tables
        The engine, what it is told, and the tables that it takes.
    automatic : bool
        Whether candidates are compared by folds: the recipe.
    alphas : tuple of float
        The candidates; a single one where alpha is given, and None where `menon` is to say it.
    depths : tuple of int
        The candidates, a single one where it is given.
    n_rounds : int or None
        The rounds to make; None where they are left open.
    step : float or None
        The step size or learning rate that was given; None for the default.
    by_edge : bool
        Whether steps are multiples of the edge, as in the paper, or all the same, as a learning rate makes them.
    patience : int
        Rounds without progress after which early stopping ends a fit with given settings; 0 without early stopping.
    known_noise : (float, float), array or None
        The rates or the transition matrix that were given.
    estimates_noise : bool
        Whether rows set aside are to tell how noisy the labels are.
    mixes : bool
        Whether trees of random thresholds may join the boosted ones.
    shares : tuple
        The shares of rows and columns that the boosted trees of mixed families draw: the candidates; a single None
        where `growth` has what was given.
    init : str
        "prior" or "zero": where boosting begins.
    loss, link_name
        The loss, None for the alpha-loss, and which of `untwist.theory.links.LINKS` it is boosted with.
    cv : int, splitter or iterable
        The number of folds, or folds of one's own as they were given.
    columns : ColumnRules
        What was said of columns.
    class_weight, callbacks, verbose
        As given.
    metric : Metric or None
        What is measured after each round besides log-loss and error, and stops a fit with given settings early.
    seed : int
        What all random choices of the fit follow from.
    order : tuple or None
        The labels, the lowest first, where classes have an order.
    """

    engine: Engine
    engine_options: EngineOptions
    accepted_tables: AcceptedTables
    columns: ColumnRules
    class_weight: Any
    callbacks: tuple[Callback, ...]
    verbose: int
    seed: int
    automatic: bool
    alphas: tuple[float, ...] | None
    depths: tuple[int, ...]
    init: str
    by_edge: bool
    n_rounds: int | None = None
    step: float | None = None
    patience: int = 0
    known_noise: tuple[float, float] | Array | None = None
    estimates_noise: bool = False
    mixes: bool = False
    shares: tuple[float | None, ...] = (None,)
    loss: Loss | None = None
    link_name: str = "clipped"
    metric: Metric | None = None
    cv: Any = N_FOLDS
    order: tuple[Any, ...] | None = None

    @property
    def growth(self) -> TreeGrowth:
        """How trees grow."""
        return self.engine_options.growth

    @property
    def untwists_posteriors(self) -> bool:
        """Whether posteriors are untwisted, by given or by estimated noise."""
        return self.known_noise is not None or self.estimates_noise

    @property
    def turns_labels_over(self) -> bool:
        """Whether the clean posterior is the complement of the twisted one: a negative alpha."""
        return self.loss is None and self.alphas is not None and self.alphas[0] < 0

    def check_classes(self, n_classes: int) -> None:
        """Raise an error for what does not go with this number of classes."""
        known = self.known_noise
        if known is not None and len(known) != n_classes:  # Two rates are as many as there are classes.
            raise ValueError(
                f"noise must be a matrix of {n_classes} rows and columns for {n_classes} classes, got {known!r}"
            )
        if n_classes > 2 and self.alphas is None:
            raise ValueError('alpha="menon" is for two classes')

    def boosts_jointly(self, n_classes: int) -> bool:
        """Tell whether all classes are boosted together, not each against the rest."""
        return n_classes > 2 and self.automatic and self.engine.boosts_jointly

    def mixes_families(self, n_classes: int) -> bool:
        """Tell whether trees of random thresholds, which heed no rules for columns, join the boosted ones."""
        if not self.mixes or self.columns.interaction_cst is not None:
            return False
        return self.engine.boosts_jointly and (n_classes > 2 or not self.columns.has_directions)

    def make_link(self, alpha: float) -> Link:
        """Return the link at an alpha."""
        loss = AlphaLoss(alpha) if self.loss is None else self.loss
        return LINKS[self.link_name](loss)

    def choose_step(self, link: Link) -> float:
        """Return the step of a fit with given settings: the one that was given, else the paper's."""
        return default_step_size(link) if self.step is None else self.step

    def narrow_to(self, candidate: Candidate) -> Settings:
        """Return the settings of a fit by folds that tries this candidate only and corrects no noise."""
        return replace(
            self,
            alphas=(candidate.alpha,),
            depths=(candidate.max_depth,),
            shares=(candidate.drawn,),
            n_rounds=candidate.n_rounds,
            step=candidate.step,
            known_noise=None,
            estimates_noise=False,
            callbacks=(),
            verbose=0,
        )

    def shrink_to(self, alpha: float, depth: int) -> Settings:
        """Return the settings of a quick fit by folds, of boosted trees alone, that corrects no noise.

        Folds choose nothing but the number of rounds.
        """
        return replace(
            self,
            alphas=(alpha,),
            depths=(depth,),
            shares=(None,),
            mixes=False,
            known_noise=None,
            estimates_noise=False,
        )


def resolve_recipe(parameters: Mapping[str, Any], *, seed: int | None = None) -> Settings:
    """Check the parameters of `UntwistClassifier` for its own recipe.

    Parameters
    ----------
    parameters : mapping
        The constructor's arguments, as `get_params(deep=False)` gives them.
    seed : int or None
        The seed of an earlier fit; None to draw one by `random_state`.

    Returns
    -------
    Settings

    Raises
    ------
    ValueError
        It names the parameter and its value.
    """
    engine = choose_recipe_engine(parameters["engine"])
    given = {name: parameters[name] for name in ("device", "monotonic_cst", "interaction_cst")}
    _refuse_unknown_settings(given, engine)
    engine_options = EngineOptions(growth=RECIPE_GROWTH, device=parameters["device"], n_jobs=parameters["n_jobs"])
    engine.check_settings(engine_options)
    count_threads(parameters["n_jobs"])  # It refuses what is no number of threads.
    noise = _check_noise(parameters["noise"])
    estimates_noise = isinstance(noise, str)
    return Settings(
        engine=engine,
        engine_options=engine_options,
        accepted_tables=engine.accepted_tables(None, engine_options.tree_method),
        automatic=True,
        alphas=ALPHAS,
        depths=DEPTHS,
        by_edge=False,
        known_noise=None if estimates_noise else noise,
        order=_check_order(parameters["order"]),
        estimates_noise=estimates_noise,
        mixes=True,
        shares=MIXED_SHARES,
        init="prior",
        columns=_read_columns(parameters),
        class_weight=parameters["class_weight"],
        callbacks=_check_callbacks(parameters["callbacks"]),
        verbose=_check_verbose(parameters["verbose"]),
        seed=_draw_seed(parameters["random_state"]) if seed is None else seed,
        cv=_check_cv(parameters["cv"]),
    )


def resolve_paper(parameters: Mapping[str, Any], *, seed: int | None = None) -> Settings:
    """Check the parameters of `PILBoostClassifier`.

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
    growth = _read_growth(parameters["growth"])
    engine = choose_engine(parameters)
    _refuse_unknown_settings({**parameters, **growth}, engine)
    if not isinstance(parameters["warm_start"], (bool, np.bool_)):
        raise ValueError(f"warm_start must be True or False, got {parameters['warm_start']!r}")
    loss = _check_loss(parameters["loss"], engine)
    alpha = parameters["loss"].alpha if is_alpha_loss(parameters["loss"]) else parameters["alpha"]
    alphas = _check_alpha(alpha, plays_a_part=loss is None)
    tree_growth = TreeGrowth(
        max_depth=_check_depth(parameters["max_depth"]),
        max_leaf_nodes=_check_leaves(parameters["max_leaf_nodes"]),
        min_samples_leaf=check_count("min_samples_leaf", parameters["min_samples_leaf"]),
        min_weight_fraction_leaf=_check_leaf_share(growth["min_weight_fraction_leaf"]),
        l2=check_non_negative("l2", growth["l2"]),
        subsample=check_share("subsample", growth["subsample"]),
        max_features=check_share("max_features", growth["max_features"]),
        extra=growth["extra_trees"],
    )
    engine_options = EngineOptions(
        growth=tree_growth,
        max_bins=check_count("max_bins", parameters["max_bins"], low=2, high=255),
        tree_method=growth["tree_method"],
        device=growth["device"],
        estimator=_check_estimator(parameters["estimator"]),
        n_jobs=parameters["n_jobs"],
    )
    engine.check_settings(engine_options)
    count_threads(parameters["n_jobs"])  # It refuses what is no number of threads.
    return Settings(
        engine=engine,
        engine_options=engine_options,
        accepted_tables=engine.accepted_tables(parameters["estimator"], growth["tree_method"]),
        automatic=False,
        alphas=alphas,
        depths=(tree_growth.depth,),
        n_rounds=check_count("n_estimators", parameters["n_estimators"]),
        step=_check_step(parameters["step_size"], parameters["learning_rate"]),
        by_edge=parameters["learning_rate"] is None,
        patience=_check_early_stopping(parameters["early_stopping"]),
        init=_check_init(growth["init"]),
        loss=loss,
        link_name=_check_link(parameters["link"], loss, alphas, engine),
        columns=replace(_read_columns(parameters), feature_weights=growth["feature_weights"]),
        class_weight=parameters["class_weight"],
        callbacks=_check_callbacks(parameters["callbacks"]),
        verbose=_check_verbose(parameters["verbose"]),
        seed=_draw_seed(parameters["random_state"]) if seed is None else seed,
        metric=read_metric(parameters["eval_metric"]),
    )


def _read_columns(parameters: Mapping[str, Any]) -> ColumnRules:
    return ColumnRules(
        **{name: parameters[name] for name in ("categorical_features", "monotonic_cst", "interaction_cst")}
    )


def _read_growth(growth: Any) -> dict[str, Any]:
    """Return what is said of how trees grow, by name."""
    if growth is None:
        growth = Growth()
    if not isinstance(growth, Growth):
        raise ValueError(f"growth must be a Growth, such as Growth(subsample=0.5), got {growth!r:.100}")
    found: dict[str, Any] = growth.get_params()
    if not isinstance(found["extra_trees"], (bool, np.bool_)):
        raise ValueError(f"extra_trees must be True or False, got {found['extra_trees']!r}")
    return found | {"extra_trees": bool(found["extra_trees"])}


def choose_recipe_engine(name: Any) -> Engine:
    """Return the engine that grows the trees of the recipe; "auto" is the compiled one."""
    growing_forests = [one for one, engine in ENGINES.items() if engine.grows_forests]
    if not _is_auto(name) and name not in growing_forests:
        known = ", ".join(f'"{one}"' for one in growing_forests)
        raise ValueError(f'engine must be "auto" or one of {known}, which grow forests, got {name!r}')
    return find_engine("compiled" if _is_auto(name) else name)


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
    for name, value in parameters.items():
        if name in engine.known_settings or name not in ENGINE_SPECIFIC_DEFAULTS:
            continue
        default = ENGINE_SPECIFIC_DEFAULTS[name]
        if value is default or (default is not None and np.ndim(value) == 0 and value == default):
            continue
        knowing = [f'"{one.name}"' for one in ENGINES.values() if name in one.known_settings]
        said = f"growth=Growth({name}={value!r})" if name in OF_GROWTH - {"device"} else f"{name}={value!r}"
        raise ValueError(f"{said} needs engine={' or '.join(knowing)}, got the {engine.name} engine")


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


def _check_alpha(alpha: Any, plays_a_part: bool) -> tuple[float, ...] | None:
    """Return the one alpha to boost with; None where the data are to say it."""
    if isinstance(alpha, str) and alpha == "menon":
        return None
    if isinstance(alpha, str) or alpha is None:
        raise ValueError(f'alpha must be a number or "menon", got {alpha!r}')
    if not plays_a_part:
        return (alpha,)
    ClippedLink(AlphaLoss(alpha))  # It refuses what is no alpha.
    return (float(alpha),)


def _check_depth(max_depth: Any) -> Any:
    return None if max_depth is None else check_count("max_depth", max_depth)


def _check_early_stopping(early_stopping: Any) -> int:
    """Return the rounds without progress after which a fit ends; 0 for a fit that makes all its rounds."""
    if isinstance(early_stopping, (bool, np.bool_)):
        return PATIENCE if early_stopping else 0
    if not isinstance(early_stopping, (int, np.integer)):
        raise ValueError(
            f"early_stopping must be True, False or the number of rounds to wait for progress, got {early_stopping!r}"
        )
    return check_count("early_stopping", early_stopping)


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


def _check_estimator(estimator: Any) -> Any:
    can_learn = hasattr(estimator, "fit") and hasattr(estimator, "predict")
    if estimator is not None and (isinstance(estimator, type) or not can_learn):
        raise ValueError(f"estimator must be an object with fit and predict, got {estimator!r}")
    return estimator


def _check_order(order: Any) -> tuple[Any, ...] | None:
    """Return the labels, the lowest first, or None."""
    if order is None:
        return None
    if isinstance(order, str) or np.ndim(order) != 1:
        raise ValueError(f"order must be a list of all labels, the lowest first, or None, got {order!r}")
    return tuple(np.asarray(order).tolist())


def _check_noise(noise: Any) -> Any:
    """Return what is said of the noise: "auto", None, two rates, or the transition matrix of more classes."""
    if noise is None or _is_auto(noise):
        return noise
    if np.ndim(noise) == 2:
        matrix = check_matrix(noise, "noise")
        return matrix if len(matrix) > 2 else (float(matrix[0, 1]), float(matrix[1, 0]))
    try:
        rate_neg, rate_pos = (check_fraction("noise", rate) for rate in noise)
    except (TypeError, ValueError) as error:
        kinds = '"auto", None, two rates in [0, 1], or a transition matrix'
        raise ValueError(f"noise must be {kinds}, got {noise!r}") from error
    if rate_neg + rate_pos >= 1:
        raise ValueError(f"noise must be two rates that sum to less than 1, got {noise!r}: swap the labels first")
    return rate_neg, rate_pos


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
