"""UntwistClassifier: learns what is true from a table some of whose labels are wrong."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from untwist.any_model.fitting import fit_any_model
from untwist.any_model.rows import encode_review
from untwist.automatic.recipe import fit_recipe
from untwist.blas import use_one_blas_thread
from untwist.class_order import list_ordered_categories
from untwist.data.encoding import AcceptedTables
from untwist.data.reviews import read_review
from untwist.fit_arguments import SourceColumns
from untwist.model import FittedModel
from untwist.near_duplicates import find_near_duplicates
from untwist.predicting import ModelPredictions, expose, require
from untwist.progress import show_progress
from untwist.settings import RECIPE_DEFAULTS, Settings, choose_recipe_engine, resolve_recipe
from untwist.training_data import TrainingData

__all__ = ["UntwistClassifier"]

#: The settings that an estimator of one's own does not have.
OF_THE_RECIPE = (
    "categorical_features",
    "monotonic_cst",
    "interaction_cst",
    "engine",
    "device",
    "callbacks",
)

#: Why `oof_proba_` may be missing.
NO_OUT_OF_FOLD = (
    "not every training row has been judged by a model that has not seen it: Ctrl-C came before, or the model is from "
    "a file, which keeps no rows"
)

#: Why `choice_` may be missing.
NO_CHOICE = "an estimator was given, so that nothing was left to choose"

#: Why `sources_` may be missing.
NO_SOURCES = "fit was not told the sources of the labels, or Ctrl-C came before they were judged"


def _find_sources(model: FittedModel) -> Any:
    """Return how noisy the labels of each source are, None where near-duplicates leave nothing to tell."""
    require(model.sources, NO_SOURCES)
    return model.reliable_sources


class UntwistClassifier(ModelPredictions):
    """A classifier that expects some labels to be wrong: it finds out how many, and answers what is true.

    Models are trained by folds, and what each says of the rows that it has not seen tells how noisy the labels are.
    Their mean predicts what labels will be, and the noise turns that into what is true. For the paper's algorithm by
    itself take `PILBoostClassifier`.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or None, default None
        What judges and predicts. None is the recipe of untwist: boosted and randomised trees (see Notes). Or any
        classifier of scikit-learn's kind: a forest, CatBoost, a Pipeline, a network. Clones of it are fitted by folds,
        and their mean posterior is corrected by the noise. One within `FrozenEstimator`, fitted to other rows before,
        is not fitted again. The settings from `categorical_features` to `callbacks` are for the recipe: give an
        estimator its own.
    noise : "auto", None, (float, float) or array-like of shape (n_classes, n_classes), default "auto"
        "auto" estimates the noise. None believes every label. If you know it, give the share of the first class that
        bears the label of the second, and the share of the second that bears that of the first; or the transition
        matrix, with a row per true class and a column per label, in the order of `classes_`.
    order : array-like of labels or None, default None
        All labels, the lowest first, where several classes have an order: ratings, grades, levels of a number. Rows
        that are hard to tell from a neighbour are then expected, and noise is looked for between other classes. None is
        the order of an ordered categorical of pandas, if the labels are one, and else no order.
    cv : int, splitter, iterable or None, default None
        The folds that labels are judged by. None is five, an int another number: drawn by what rows hold, whole groups
        where `fit` is given some. Or folds of one's own: a splitter of scikit-learn's kind, such as TimeSeriesSplit, or
        pairs (train, test) of positions of rows. Each then trains on exactly the rows that it is told, no row may be
        judged twice, and rows that none judges are not judged: NaN in `oof_proba_`, and no part of the noise. Where
        folds do not train on all that they do not judge, the model itself is trained once more on all rows.
    class_weight : dict, "balanced" or None, default None
        Multiplies the sample weights of each class. Around an estimator it multiplies the probabilities of each class,
        and the estimator is trained without.
    categorical_features : "auto", None, or the columns as indices, names or a mask, default "auto"
        Columns that hold categories. "auto" means those of a category or text type. Of more than 12 categories folds
        tell whether a number for each, by its labels, or sets of up to 254 do better (docs/categories.md).
    monotonic_cst : array-like of -1, 0, +1, dict by name, or None, default None
        Whether the score of the second class may only fall (-1) or rise (+1) with a column. Two classes only.
    interaction_cst : None, "pairwise", "no_interactions" or list of sets of columns, default None
        Which columns may meet on a way from the root of a tree to a leaf, as in HistGradientBoostingClassifier.
    engine : "auto", "compiled" or "xgboost", default "auto"
        What grows the trees. "compiled" gives the same model for any number of threads and any order of the rows.
        "xgboost" has XGBoost grow them, on a GPU or on the rows of many workers (`untwist.distributed`). "auto" is
        "compiled", and with many workers "xgboost".
    device : "cpu", "cuda" or "cuda:N", default "cpu"
        Where XGBoost works; a GPU needs CuPy too.
    callbacks : list of functions or None, default None
        Each is called after every tenth round of each candidate with an `untwist.boosting.runs.Progress`; a true answer
        ends the search: the best candidate so far is finished, without further calls.
    n_jobs : int or None, default None
        Threads; None or -1 for as many as the process may use, -2 for one less. The model does not depend on it. Around
        an estimator it is how many clones are fitted at a time, each in a process; None is one.
    random_state : int, RandomState, Generator or None, default None
        What random choices follow from. A generator of NumPy gives one number to every fit. Around an estimator these
        are the folds; the estimator has its own.
    verbose : int, default 0
        Report every candidate to standard error, and show how far the fit is, with an estimate of what is left: a line
        in a terminal, a bar in a notebook.

    Attributes
    ----------
    model_ : FittedModel or ClonesModel
        All that the fit left behind (`untwist.model`, or with an estimator `untwist.any_model`); the other attributes
        are views of it.
    classes_, n_classes_ : array, int
        The labels and their number; of two, the second is the positive class.
    noise_ : NoiseModel or None
        How noisy the labels are and how sure that is, None where nothing was estimated (of more than 2000 classes
        nothing could be found), or where `fit` has warned of near-duplicates and found no noise, so that nothing can be
        told. Where it has warned of them and found noise all the same, this is a lower limit at best, and its intervals
        exclude no higher rate. It can be printed, and `noise_.matrix` tells which class bears which label how often.
    oof_proba_ : array
        The posterior that labels follow, of every class for the training rows, each by models that have not seen the
        row. NaN where folds of one's own do not judge a row.
    sources_ : NoiseBySource or None
        How noisy the labels of each source are, where `fit` was given sources. It can be printed. `noise_` is then that
        of all labels together, as they weighed in the training. Where `fit` has warned of near-duplicates this is None
        if no noise was found and no source stands out; otherwise its shares are lower limits at best.
    choice_ : Choice
        What the recipe tried and chose. It can be printed. Missing around an estimator, which has nothing to choose.
    feature_importances_ : array
        The sum over the recipe's trees of the impurity importances, normalised. Missing around an estimator.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn; missing around an estimator whose rows are no table.

    Notes
    -----
    The recipe boosts candidates on five folds, at a learning rate of .05 or .1 (.2 where that is too slow), and judges
    them by the log-loss on rows set aside, which needs no clean label. Trees with random thresholds join the best of
    them, unless a column is to be monotone, columns are kept apart, or XGBoost grows the trees. The model is the mean
    of the fold models. More than two classes share the rounds: every tree has a score for each class in its leaves,
    and the loss is the alpha-loss of a softmax.

    Ctrl-C during `fit` keeps what was chosen so far, if anything was: the model is fitted, and KeyboardInterrupt goes
    on to the caller. Nothing long is begun any more: sources are not judged, and of more than 20 classes or of many
    rows the noise is not estimated (`noise_` is None, and nothing is undone). A fit that fails leaves the model of the
    fit before it. Until a new model is whole, other threads predict by that one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = UntwistClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    >>> print(model.noise_)
    no sign of noise that is the same everywhere (rates from 0% to 3% would fit);
    uneven noise of up to 3.3% of the labels is not excluded
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        noise: Any = "auto",
        order: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        categorical_features: Any = "auto",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        engine: str = "auto",
        device: str = "cpu",
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.order = order
        self.cv = cv
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.engine = engine
        self.device = device
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        source: Any = None,
        item: Any = None,
        reviewed: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from (X, y), some of whose labels may be wrong.

        Parameters
        ----------
        X : table
            An array, a list of rows, a sparse matrix, a data frame of pandas, polars or pyarrow, or `Batches`.
        y : array-like
            The labels, as they are.
        sample_weight : array-like or None
            A weight of 2 is a repeated row (up to the order in which ties are broken, and up to the bins of columns
            with many values beyond 100,000 rows), of 0 an absent one. The compiled engine keeps 17 to 24 bits of a
            weight: rows that weigh a millionth of the heaviest count for little or nothing.
        source : array-like or None
            Who or what gave the label of each row: an annotator, a branch, a month. Text, numbers or categories; None
            or NaN where that is not known, and such a row is judged as one of all sources together. Every source then
            has noise rates of its own (`sources_`), and where some are much less reliable than others, what was chosen
            is boosted once more with their labels weighing less. It is no feature: leave its column out of X. It asks
            for ``noise="auto"``, and is not for a distributed fit.
        item : array-like or None
            Which thing each row is a label of, where several sources have labelled the same ones: names, like those of
            sources, and None for a row by itself. Without it rows with equal features are one item where their sources
            all differ, if at least half of all rows repeat so. The labels of an item lie in the same fold, and what
            models say of it is the mean over its rows.
        reviewed : Decisions, array-like or None
            The rows whose labels are known to be right. `Decisions` (`untwist.audit`) say what the labels of reviewed
            rows were and what is right; y may have either label of a row that was decided on, and skipped rows are as
            if nobody had looked. What the reviewer found then tells how noisy the labels are, whichever rows were
            chosen and why. A Boolean for each row, or positions of rows, say that these labels of y are right. What
            they were before is not known then, and the noise is that of the other rows: where suspects were reviewed
            and changed, fewer of these are wrong than of all, and Decisions do better. Either way a known label counts
            as much as the noisy ones that it is worth. It goes neither with source nor with a distributed fit, and asks
            for a noise that is estimated or given.
        groups : array-like or None
            Which rows belong together: those of one patient, customer or machine. Text, numbers or categories; None or
            NaN for a row by itself. All rows of a group lie in one fold, so that no row is judged by a model that has
            seen its group. An item must lie within a group. Like a source it is no feature. Without it a UserWarning
            says where rows of different folds nearly repeat each other.

        Returns
        -------
        self
        """
        settings = self._resolve_settings()
        if settings.order is None:
            settings = replace(settings, order=list_ordered_categories(y))
        columns = SourceColumns(source, item, groups)
        if self.estimator is not None:
            self._refuse_settings_of_the_recipe()
            with show_progress(settings.verbose > 0):
                model = fit_any_model(self.estimator, settings, X, y, sample_weight, columns, reviewed)
            if model.has_twins:
                warnings.warn(model.describe_twins(), UserWarning, stacklevel=2)
            self.model_ = model
            return self
        review = None if reviewed is None else read_review(reviewed, X, y)
        data = TrainingData.collect(
            settings,
            X,
            y if review is None else review.given,
            sample_weight,
            sources=columns,
            has_review=review is not None,
            estimator=self,
        )
        with use_one_blas_thread():
            twins = find_near_duplicates(data)
        if twins is not None:
            warnings.warn(twins.describe(), UserWarning, stacklevel=2)
        with use_one_blas_thread(), show_progress(settings.verbose > 0 and data.workers.rank == 0):
            fit = fit_recipe(data, encode_review(review, data.classes))
        self.model_ = fit.model if twins is None else fit.model.remember_twins(twins)
        if fit.interrupt is not None:
            raise fit.interrupt
        return self

    def _resolve_settings(self) -> Settings:
        """Return the settings of a fit, also of a subclass whose own constructor takes other parameters."""
        return resolve_recipe({name: getattr(self, name) for name in RECIPE_DEFAULTS})

    def _refuse_settings_of_the_recipe(self) -> None:
        """Raise an error for a setting of the recipe that was given beside an estimator."""
        for name in OF_THE_RECIPE:
            value, default = getattr(self, name), RECIPE_DEFAULTS[name]
            if value is not default and not (isinstance(value, str) and value == default):
                raise ValueError(
                    f"{name} is for the recipe of untwist and must be {default!r} with an estimator, which has "
                    f"settings of its own, got {value!r:.100}"
                )

    # ---- what was learned ----

    choice_ = expose(lambda model: require(getattr(model, "choice", None), NO_CHOICE))
    oof_proba_ = expose(lambda model: require(model.out_of_fold_posterior(), NO_OUT_OF_FOLD))
    sources_ = expose(_find_sources)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Tags must not raise; `fit` will.
        if hasattr(self.estimator, "__sklearn_tags__") and not isinstance(self.estimator, type):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _find_accepted_tables(self) -> AcceptedTables:
        try:
            return choose_recipe_engine(self.engine).accepted_tables(None, "hist")
        except ValueError:  # Tags must not raise; `fit` will.
            return AcceptedTables()
