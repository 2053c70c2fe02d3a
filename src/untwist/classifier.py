"""PILBoostClassifier: PILBoost as a scikit-learn classifier."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from untwist.arguments import Array
from untwist.automatic.reviews import fit_with_review
from untwist.automatic.search import Search
from untwist.automatic.sources import fit_by_source
from untwist.blas import use_one_blas_thread
from untwist.data.encoding import AcceptedTables
from untwist.data.labels import settle_objects
from untwist.data.reviews import read_review
from untwist.display import write_fragment
from untwist.fitting import boost_given_settings, replay_rounds
from untwist.model import FittedModel
from untwist.progress import show_progress
from untwist.settings import choose_engine, resolve
from untwist.theory.certificate import Certificate, certify
from untwist.theory.links import Link
from untwist.theory.losses import Loss
from untwist.theory.twists import alpha_star
from untwist.training_data import InitScores, SourceColumns, TrainingData, ValidationTable

__all__ = ["PILBoostClassifier", "find_model", "list_parameters"]

#: Why `oof_proba_` may be missing.
NO_OUT_OF_FOLD = "not every training row has been judged by a model that has not seen it: that takes a choice by folds"

#: What is said of the noise where folds could have told of it and nothing was estimated.
NO_NOISE = "not estimated: probabilities are those that alpha implies, and with alpha 1 those of the labels as they are"

#: Why `sources_` may be missing.
NO_SOURCES = "fit was not told the sources of the labels, or Ctrl-C came before they were judged"


def _expose(find: Callable[[FittedModel], Any]) -> Any:
    """Return a property of the fitted model; an AttributeError, as scikit-learn expects it, where there is none yet."""

    def get(self: PILBoostClassifier) -> Any:
        if "model_" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        try:
            return find(self.model_)
        except ValueError as error:
            raise AttributeError(str(error)) from error

    return property(get)


def _require(value: Any, what_is_missing: str) -> Any:
    """Return a value that only some fits leave behind."""
    if value is None:
        raise AttributeError(what_is_missing)
    return value


def _find_sources(model: FittedModel) -> Any:
    """Return how noisy the labels of each source are, None where near twins leave nothing to tell."""
    _require(model.sources, NO_SOURCES)
    return model.reliable_sources


class PILBoostClassifier(ClassifierMixin, BaseEstimator):
    """Boosting with the alpha-loss, which learns the clean posterior from twisted labels.

    More than two classes are boosted together where settings are left open, and otherwise each against the rest (see
    Notes). Columns may be numbers, with missing values, or categories.

    Parameters
    ----------
    alpha : float in [-inf, +inf] except 0, "auto" or "menon", default "auto"
        1 trains the log-loss, which believes every label. Larger values undo more label noise; negative ones undo a
        twist that turns most labels over. "auto", here, for `n_estimators` or for `max_depth`, leaves the choice to the
        data (see Notes). "menon" is the paper's estimate, for two classes (`untwist.noise.menon`).
    step_size : float > 0 or "auto", default "auto"
        The paper's a_f, typically 1 to 15: the coefficient of a tree is step_size * edge. "auto" is 2*a up to a = 2 and
        2*a/(a-1) above, for a = abs(alpha).
    learning_rate : float > 0 or None, default None
        The coefficient of every tree, as in other boosters, instead of `step_size`. The paper's steps shrink with the
        edges as boosting goes on, and these do not. 0.2 learns about as fast as XGBoost at 0.1.
    n_estimators : int or "auto", default "auto"
        Number of boosting rounds; fewer if every training row is beyond the clip or early stopping ends them.
    max_depth : int, None or "auto", default "auto"
        Depth of the trees that serve as weak learners; None for as deep as they get.
    max_leaf_nodes : int >= 2 or None, default None
        Grow the best split first up to so many leaves, instead of level by level.
    min_samples_leaf : int, default 1
        Rows in a leaf, at least. Only rows with a boosting weight count; in the compiled engine each counts with its
        sample weight.
    min_weight_fraction_leaf : float in [0, 0.5], default 0
        Share of the round's total boosting weight in a leaf, at least.
    l2_regularization : float >= 0 or "auto", default "auto"
        Shrinks a leaf with few rows: its value is G / (W + l2_regularization), in units of one row. "auto" is 1 if
        something is chosen from the data, else 0. `l2` is an older name, which is still taken.
    subsample : float in (0, 1] or "auto", default "auto"
        Share of the rows drawn for every tree, by their contents: copies of a row are drawn together. "auto" is 0.7 if
        something is chosen from the data, else 1.
    max_features : float in (0, 1] or "auto", default "auto"
        Share of the columns drawn for every tree. "auto" is 0.7 if something is chosen from the data, else 1.
    feature_weights : array-like or None, default None
        The chance of each column to be drawn where `max_features` is below 1, up to a factor, as in XGBoost; a column
        of weight 0 is not drawn. Boosted trees heed it, and are not mixed with others then.
    extra_trees : bool, default False
        Of each column one split is drawn at random at every node, and only these are compared, which makes trees that
        differ more. Splits are drawn among the bins that the node's rows span, those of categories in the order of
        their mean label. The compiled engine has it.
    max_bins : int in [2, 255], default 255
        A column with more distinct values than this is binned.
    categorical_features : "auto", None, or the columns as indices, names or a mask, default "auto"
        Columns that hold categories. "auto" means those of a category or text type. Trees split up to 12 categories by
        sets, and one that is unseen in training counts as missing. A column of more is coded by its labels: each
        category is one number, drawn towards that of all rows, which one that is unseen has too (docs/categories.md).
        Where settings are chosen by folds, these also tell whether sets of up to 254 categories do better.
    monotonic_cst : array-like of -1, 0, +1, dict by name, or None, default None
        Whether the score of the second class may only fall (-1) or rise (+1) with a column. Two classes only.
    interaction_cst : None, "pairwise", "no_interactions" or list of sets of columns, default None
        Which columns may meet on a way from the root of a tree to a leaf, as in HistGradientBoostingClassifier: those
        of one set, by position or by name; columns that are in no set make one more. "pairwise" is every set of two,
        "no_interactions" every column by itself. Boosted trees keep to it, and are not mixed with others then.
    missing : float or None, default None
        A number that counts as missing in columns of numbers, besides NaN.
    class_weight : dict, "balanced" or None, default None
        Multiplies the sample weights of each class.
    noise_rates : "auto", (float, float), array-like of shape (n_classes, n_classes) or None, default "auto"
        The share of the first class that bears the label of the second, and the share of the second that bears that
        of the first, if you know them; or the transition matrix, with a row per true class and a column per label, in
        the order of `classes_`. Probabilities and predictions are then untwisted by them. "auto" takes the rates or
        matrices that fit the out-of-fold posteriors if alpha is "auto" too (`untwist.noise.NoiseModel`),
        and corrects nothing otherwise: a UserWarning says so where alpha is 1 and folds could have told. With None the
        clean posterior is the one that alpha implies.
    families : "auto", "boosted" or "mixed", default "auto"
        The families of trees that make a model where `n_estimators` and `max_depth` are left open: "boosted" ones
        alone, or "mixed" with trees of random thresholds, by weights that do best on rows set aside
        (`choice_.mixture`). "auto" mixes them where nothing was asked for that only boosted trees can do: of two
        classes a given alpha, a monotone column, another link or engine; of more a negative or infinite alpha, another
        link or engine.
    init : "prior" or "zero", default "prior"
        The score that boosting begins at: that of the base rate, with sample and class weights, as in other boosters
        (within 1 to 999 and the clip of the link), or 0 as in the paper. `start_` has it.
    link : "clipped", "exact" or "logit", default "clipped"
        The paper's clipped inverse link (`ClippedLink`) or the exact one (`CanonicalLink`); or that of scores which are
        log-odds (`LogitLink`), for an alpha from 1 on, under which labels that contradict the scores hardly count.
    loss : Loss or None, default None
        A loss to boost instead; `alpha` then plays no part. ``AlphaLoss(a)`` is the same as ``alpha=a``.
    engine : "auto", "compiled", "xgboost" or "reference", default "auto"
        "compiled" grows histogram trees, all rounds in compiled code: the same model for any number of threads and any
        order of the rows. "xgboost" has XGBoost grow them, on a GPU or on the rows of many workers
        (`untwist.distributed`); docs/distributed.md says what differs. "reference" runs the loop of
        `untwist.boosting.algorithm` over regression trees of scikit-learn, and knows neither categories nor the
        settings `l2_regularization`, `subsample`, `max_features`, `feature_weights`, `extra_trees`, `max_bins`,
        `monotonic_cst` and `interaction_cst`. "auto" is "compiled" for the alpha-loss unless an `estimator` is given.
    tree_method : "hist", "approx" or "exact", default "hist"
        How XGBoost looks for splits. "hist" splits the bins of the compiled engine, "approx" and "exact" the numbers
        in single precision.
    device : "cpu", "cuda" or "cuda:N", default "cpu"
        Where XGBoost works; a GPU needs CuPy too.
    estimator : scikit-learn regressor or None, default None
        A weak learner of your own, fitted to labels -1 and +1 with sample weights; the settings of trees then play no
        part. Not together with `engine`.
    cv : int, splitter, iterable or None, default None
        The folds that settings are chosen and labels are judged by. None is five, an int another number: drawn by what
        rows hold, whole groups where `fit` is given some. Or folds of one's own: a splitter of scikit-learn's kind,
        such as TimeSeriesSplit, or pairs (train, test) of positions of rows. Each then trains on exactly the rows that
        it is told, no row may be judged twice, and rows that none judges are not judged: NaN in `oof_proba_`, and no
        part of the noise. Where folds do not train on all that they do not judge, the model itself is boosted once more
        on all rows.
    early_stopping : bool, default False
        Stop when the log-loss of the twisted posterior on validation rows has not fallen for `n_iter_no_change` rounds,
        and keep the rounds up to its minimum. Validation rows are those given to `fit`, else a `validation_fraction` of
        every class, drawn by contents. Classes beyond two stop each by itself. Where something is chosen from the data,
        folds do this in any case, and True makes a given `n_estimators` an upper limit.
    validation_fraction : float in (0, 1), default 0.1
        Share of every class that early stopping holds out where no validation rows are given.
    n_iter_no_change : int, default 10
        Rounds that early stopping waits for progress.
    eval_metric : str, function or None, default None
        What early stopping goes by in place of the log-loss, and what `evals_result_` tells besides it, of the twisted
        posterior of validation rows, whose labels are noisy too (see Notes). It needs alpha, n_estimators and max_depth
        to be given.
    eval_training : bool, default False
        Tell log-loss, error and `eval_metric` of the training rows too: ``evals_result_["training"]``.
    warm_start : bool, default False
        Go on from the rounds of the last `fit` instead of starting anew; give the same data, `init_score` included, and
        a larger n_estimators. Link, init and missing must be the same.
    callbacks : list of functions or None, default None
        Each is called after every round (every tenth of each candidate where something is chosen from the data) with an
        `untwist.boosting.runs.Progress`; a true answer ends the rounds. Where something is chosen it ends the search:
        the best candidate so far is finished, without further calls.
    n_jobs : int or None, default None
        Threads; None or -1 for as many as the process may use, -2 for one less. The model does not depend on it.
    verbose : int, default 0
        Report to standard error every so many rounds, or every candidate where something is chosen from the data; and
        show how far the fit is, with an estimate of what is left: a line in a terminal, a bar in a notebook.
    random_state : int, RandomState, Generator or None, default None
        What random choices follow from. A generator of NumPy gives one number to every fit.
    l2 : float >= 0 or "auto", default "auto"
        The older name of `l2_regularization`; give one of them.

    Attributes
    ----------
    model_ : FittedModel
        All that the fit left behind (`untwist.model`); the other attributes are views of it.
    classes_, n_classes_ : array, int
        The labels and their number; of two, the second is the positive class.
    estimators_, leverages_, edges_ : sequences
        The weak hypotheses, their coefficients and edges, per round; a list per class that was boosted by itself.
    forest_ : Forest or None
        The trees as arrays, None for weak learners of another kind; a list per class that was boosted by itself. Trees
        of classes that were boosted together have a vector in every leaf.
    start_ : float
        The score that rounds began at; a list per class that was boosted by itself. Where something was chosen from the
        data it is part of the trees, and this is 0.
    evals_result_ : dict
        {"validation": {"log_loss": ..., "error": ...}} after each round, if there were validation rows, with the
        `eval_metric`; the same of "training" rows, if they were asked for. Where something was chosen from the data
        validation rows are those that folds set aside, and rounds are told of that were not kept. After a warm start,
        rounds that were not measured are NaN.
    link_, alpha_, step_size_ : Link or SoftmaxLink, float, float
        What was used; `step_size_` may be a learning rate.
    n_iter_ : int
        Rounds kept, of the class that kept most; the trees of all folds where something was chosen from the data.
    choice_ : Choice
        What was tried and chosen, where something was chosen from the data. It can be printed.
    noise_ : NoiseModel, MenonEstimate or None
        How noisy the labels are and how sure that is, None where nothing was estimated (of more than 2000 classes
        nothing could be found), or where `fit` has warned of near twins and found no noise, so that nothing can be
        told. Where it has warned of them and found noise all the same, this is a lower limit at best, and its intervals
        exclude no higher rate. It can be printed, and `noise_.matrix` tells which class bears which label how often.
    sources_ : NoiseBySource or None
        How noisy the labels of each source are, where `fit` was given sources. It can be printed. `noise_` is then that
        of all labels together, as they weighed in the training. Where `fit` has warned of near twins this is None if no
        noise was found and no source stands out; otherwise its shares are lower limits at best, and are not printed.
    oof_proba_ : array
        The twisted posterior of every class for the training rows, each by models that have not seen the row; where
        something was chosen by folds. NaN where folds of one's own do not judge a row.
    validation_rows_ : array
        Indices of the training rows that `fit` held out for validation.
    feature_importances_ : array
        The paper's importances: the sum over rounds of leverage times the tree's impurity importances, normalised.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Notes
    -----
    With "auto" for alpha, n_estimators or max_depth the engine boosts candidates on five folds (or beside the
    validation rows given), at a learning rate of 0.1 (0.2 where that is too slow; half of that where families are mixed
    or several classes boosted together) unless a step is given, and judges them by the log-loss of the twisted
    posterior on rows set aside. The model is the mean of the fold models of the best candidate. With alpha "auto" the
    rows set aside also tell how noisy each class is, and the posterior is untwisted by that, row by row; `predict`
    follows. With the reference engine, another loss or an estimator of your own "auto" stands for alpha 2, 100 rounds
    and depth 3.

    More than two classes then share the rounds of the compiled engine: every tree has a score for each class in its
    leaves, and the loss is the alpha-loss of a softmax. This is our extension of the paper, which has two classes; with
    settings given, with the exact link or with another engine each class is boosted against the rest.

    Where neither n_estimators nor max_depth nor max_leaf_nodes is given, trees with random thresholds join the boosted
    ones (`choice_.mixture`), unless `families` says otherwise.

    `eval_metric` is the name of a scorer of scikit-learn, or a scorer, and more is better; or a function of labels and
    posteriors (those of the second class, where there are two), which may take a `sample_weight`. A function returns
    (name, value, is_higher_better), as for LightGBM, or a number; its name then ends with _score if more is better, and
    with _loss, _error or _deviance if less is, as in scikit-learn. With it all classes stop after the same round. What
    it compares with the labels is the posterior that labels follow, noise included, as the log-loss of early stopping
    does (`predict_proba_twisted`); for alpha 1 without noise_rates that is the clean posterior too. A warm start
    measures the rounds before it again.

    Ctrl-C during `fit` keeps the rounds done so far, if there are any: the model is fitted, and KeyboardInterrupt goes
    on to the caller. Nothing long is begun any more: sources are not judged, and of more than 20 classes or of many
    rows the noise is not estimated (`noise_` is None, and nothing is undone). A fit that fails, or that Ctrl-C ends
    before the first rounds, leaves the model of the fit before it. Until a new model is whole, other threads predict by
    that one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PILBoostClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:3]), model.alpha_
    (array([0, 0, 0]), 1.0)
    >>> print(model.noise_)
    no sign of noise that is the same everywhere (rates from 0% to 3% would fit);
    uneven noise of up to 3.3% of the labels is not excluded
    >>> model = PILBoostClassifier(alpha=2.0, n_estimators=50, max_depth=3, init="zero").fit(X, y)  # as in the paper
    >>> model.predict(X[:3]), model.decision_function(X[:3]).round(2)
    (array([0, 0, 0]), array([-2.31, -2.54, -3.27]))
    """

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        step_size: float | str = "auto",
        learning_rate: float | None = None,
        n_estimators: int | str = "auto",
        max_depth: int | str | None = "auto",
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        l2_regularization: float | str = "auto",
        subsample: float | str = "auto",
        max_features: float | str = "auto",
        feature_weights: Any = None,
        extra_trees: bool = False,
        max_bins: int = 255,
        categorical_features: Any = "auto",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        missing: float | None = None,
        class_weight: Any = None,
        noise_rates: Any = "auto",
        families: str = "auto",
        init: str = "prior",
        link: str = "clipped",
        loss: Loss | None = None,
        engine: str = "auto",
        tree_method: str = "hist",
        device: str = "cpu",
        estimator: Any = None,
        cv: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        eval_metric: Any = None,
        eval_training: bool = False,
        warm_start: bool = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        l2: float | str = "auto",
    ) -> None:
        self.alpha = alpha
        self.step_size = step_size
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.max_features = max_features
        self.feature_weights = feature_weights
        self.extra_trees = extra_trees
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.missing = missing
        self.class_weight = class_weight
        self.noise_rates = noise_rates
        self.families = families
        self.init = init
        self.link = link
        self.loss = loss
        self.engine = engine
        self.tree_method = tree_method
        self.device = device
        self.estimator = estimator
        self.cv = cv
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.eval_metric = eval_metric
        self.eval_training = eval_training
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.l2 = l2

    model_: FittedModel

    # ---- training ----

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
        *,
        source: Any = None,
        item: Any = None,
        reviewed: Any = None,
        groups: Any = None,
        init_score: ArrayLike | None = None,
        init_score_val: ArrayLike | None = None,
    ) -> Self:
        """Boost on (X, y).

        Parameters
        ----------
        X : table
            An array, a list of rows, a sparse matrix, a data frame of pandas, polars or pyarrow, or `Batches`.
        y : array-like
            The labels, as they are: some of them may be wrong.
        sample_weight : array-like or None
            A weight of 2 is a repeated row (up to the order in which ties are broken, and up to the bins of columns
            with many values beyond 100,000 rows), of 0 an absent one. The compiled engine keeps 17 to 24 bits of a
            weight: rows that weigh a millionth of the heaviest count for little or nothing.
        X_val, y_val, sample_weight_val
            Validation rows. They serve to follow the loss and to stop early, never to train.
        source : array-like or None
            Who or what gave the label of each row: an annotator, a branch, a month. Text, numbers or categories; None
            or NaN where that is not known, and such a row is judged as one of all sources together. Every source then
            has noise rates of its own (`sources_`), and where some are much less reliable than others, what was chosen
            is boosted once more with their labels weighing less. It is no feature: leave its column out of X. It asks
            for alpha and noise_rates "auto", and goes with neither X_val nor a distributed fit.
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
            as much as the noisy ones that it is worth. It asks for alpha "auto" and goes with neither X_val nor source
            nor a distributed fit.
        groups : array-like or None
            Which rows belong together: those of one patient, customer or machine. Text, numbers or categories; None or
            NaN for a row by itself. All rows of a group lie in one fold, and early stopping holds out whole groups, so
            that no row is judged by a model that has seen its group. An item must lie within a group. Like a source it
            is no feature. Without it a UserWarning says where rows of different folds nearly repeat each other.
        init_score, init_score_val : array-like or None
            The score of each row (of X, of X_val) that boosting begins at, a column per class beyond two, such as the
            `decision_function` of another model: what is learned is what to add to it. As in LightGBM it takes the
            place of `init`, and predictions do not have it: add it to `decision_function`. It needs alpha, n_estimators
            and max_depth to be given, and goes without noise_rates.

        Returns
        -------
        self
        """
        if source is not None and self.warm_start:
            raise ValueError("source must be None with warm_start=True: sources are judged by folds, which begin anew")
        if reviewed is not None and self.warm_start:
            raise ValueError("reviewed must be None with warm_start=True: labels are judged by folds, which begin anew")
        previous = self._find_previous()
        settings = resolve(list_parameters(self), seed=None if previous is None else previous.seed)
        validation = ValidationTable(X_val, y_val, sample_weight_val)
        sources = SourceColumns(source, item, groups)
        review = None if reviewed is None else read_review(reviewed, X, y)
        data = TrainingData.collect(
            settings,
            X,
            y if review is None else review.given,
            sample_weight,
            validation,
            sources=sources,
            has_review=review is not None,
            init_scores=InitScores(init_score, init_score_val),
            previous=previous,
            estimator=self,
        )
        for words in self._list_surprises(data):
            warnings.warn(words, UserWarning, stacklevel=2)
        with use_one_blas_thread():
            twins = data.find_twins()
        if twins is not None:
            warnings.warn(twins.describe(), UserWarning, stacklevel=2)
        with use_one_blas_thread(), show_progress(settings.verbose > 0 and data.workers.rank == 0):
            if data.sources is not None:
                fit = fit_by_source(data)
            elif review is not None and review.is_reviewed.any():
                fit = fit_with_review(data, review.encode(data.classes))
            else:
                fit = Search(data).run() if settings.automatic else boost_given_settings(data, previous, self._hold)
        self.model_ = fit.model if twins is None else fit.model.remember_twins(twins)
        if fit.interrupt is not None:
            raise fit.interrupt
        return self

    def _find_previous(self) -> FittedModel | None:
        """Return the model that a warm start goes on from."""
        return getattr(self, "model_", None) if self.warm_start else None

    def _list_surprises(self, data: TrainingData) -> list[str]:
        """Return a sentence for each parameter that this fit does not read, or that leaves out what others would do."""
        found = []
        if data.settings.undoes_no_noise:
            found.append(
                "noise is neither estimated nor undone in this fit, as alpha=1 believes every label: leave alpha out "
                "to have that done, give noise_rates, or say noise_rates=None to have the labels believed"
            )
        if self.cv is not None and data.folds is None:
            found.append(
                "cv plays no part in this fit, as nothing is chosen by folds where X_val is given, or alpha, "
                "n_estimators and max_depth are: leave one of them out, or cv"
            )
        if self.eval_metric is not None and data.validation_weight is None and not self.eval_training:
            found.append(
                "eval_metric measures nothing in this fit: give X_val and y_val, early_stopping=True or "
                "eval_training=True"
            )
        if self.feature_weights is not None and data.growth.max_features >= 1.0:
            found.append(
                "feature_weights play no part in this fit, as every tree may use all columns: give max_features too, "
                "such as 0.5"
            )
        return found

    def _hold(self, model: FittedModel) -> PILBoostClassifier:
        """Return a classifier with the same settings that holds another fitted model."""
        holder = copy(self)
        holder.model_ = model
        return holder

    # ---- prediction ----

    def predict(self, X: Any, iteration_range: tuple[int, int] | None = None) -> NDArray[Any]:
        """Return the class whose clean posterior is largest; of two, classes_[0] at a score of exactly 0.

        Parameters
        ----------
        X : table
            Whatever `fit` takes.
        iteration_range : (int, int) or None
            Only the rounds from the first number to before the second count, as in XGBoost, and where they began. It is
            not for models that were chosen by folds, which are the mean of several.

        Returns
        -------
        array
            One label per row.
        """
        model = find_model(self)
        return model.choose_labels(self._decide(model, X, iteration_range))

    def predict_proba(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the clean posterior of every class, kept within [1/(n+2), 1 - 1/(n+2)].

        It is the twisted posterior untwisted by the noise that was estimated or given, else by alpha. Beyond the clip
        the estimate is exactly 0 or 1; by the rule of succession n rows cannot justify more. n is the number of
        training rows or their total weight, whichever is larger. More than two classes are scaled to sum to one.
        `iteration_range` is that of `predict`.
        """
        model = find_model(self)
        return model.posterior.clean(self._decide(model, X, iteration_range))

    def predict_log_proba(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X, iteration_range))

    def predict_proba_twisted(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the posterior of every class as the twisted training labels follow it, within the same limits.

        `iteration_range` is that of `predict`.
        """
        model = find_model(self)
        return model.posterior.twisted(self._score(model, X, iteration_range))

    def decision_function(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the score of the clean posterior; a column per class beyond two.

        Of two classes it is positive where `predict` says classes_[1]; of more the largest speaks for its class.
        `iteration_range` is that of `predict`.
        """
        return self._decide(find_model(self), X, iteration_range)

    def alpha_star(self, X: Any, source: Any = None) -> Array:
        """Return the paper's pointwise alpha*(x), which undoes the noise of each row's label. Two classes only.

        It is the log-odds of the clean posterior over those of the posterior that labels follow: 1 where labels are
        clean, larger the more noise there is, negative where most labels are wrong (`untwist.twists.alpha_star`).

        Parameters
        ----------
        X : table
            As for `predict`.
        source : array-like or None
            Who gives the label of each row, among the sources that `fit` was told. None, here or for a row: nobody
            knows, and the noise is that of all sources together; without sources, that of all labels.

        Returns
        -------
        array
            One alpha per row.
        """
        model = find_model(self)
        if len(model.classes) != 2:
            raise ValueError(f"alpha_star is for two classes, got a model of {len(model.classes)}")
        scores = self._score(model, X)
        clean = model.unweigh(model.posterior.clean(model.posterior.decision(scores)))
        if source is None and model.sources is None:
            twisted = model.unweigh(model.posterior.twisted(scores))
        else:
            twisted = model.find_source_labels_follow(clean, source)
        return alpha_star(clean[:, 1], twisted[:, 1])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose label is the predicted one, by weight if there are weights."""
        return float(super().score(X, settle_objects(y), sample_weight))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield `decision_function` after each round; a class whose rounds have ended keeps its scores."""
        return self._iterate_decisions(find_model(self), X)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield `predict` after each round."""
        model = find_model(self)
        return map(model.choose_labels, self._iterate_decisions(model, X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield `predict_proba` after each round."""
        model = find_model(self)
        return map(model.posterior.clean, self._iterate_decisions(model, X))

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf of every row in every tree of the compiled engine, as an index into the tree's nodes.

        A third axis has the classes that were boosted by themselves; -1 where the rounds of a class have ended.
        """
        model = find_model(self)
        leaves = model.leaves(model.encoder.encode(X, self), self.n_jobs)
        return leaves[:, :, 0] if leaves.shape[2] == 1 else leaves

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """Return y * H(x) of every row: how clearly the model agrees with its label; a column per class beyond two."""
        return self._find_margins(find_model(self), X, y)

    def weights(self, X: Any, y: ArrayLike) -> Array:
        """Return the boosting weight in [0, 1] of every row after the last round; a column per class beyond two.

        It says how much of the row's label is yet to be learned.
        """
        model = find_model(self)
        return model.link.weights(self._find_margins(model, X, y))

    # Each of these takes the model that its caller has read, once: another thread may fit meanwhile.

    def _score(self, model: FittedModel, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        rounds = model.check_rounds(iteration_range)
        return model.scores(model.encoder.encode(X, self), self.n_jobs, rounds)

    def _decide(self, model: FittedModel, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        return model.posterior.decision(self._score(model, X, iteration_range))

    def _iterate_decisions(self, model: FittedModel, X: Any) -> Iterator[Array]:
        return map(model.posterior.decision, model.staged_scores(model.encoder.encode(X, self)))

    def _find_margins(self, model: FittedModel, X: Any, y: ArrayLike) -> Array:
        rows, labels = model.encoder.encode(X, self), model.encode_labels("y", y)
        check_consistent_length(rows, labels)
        return model.margins(model.scores(rows, self.n_jobs), labels)

    # ---- what was learned ----

    classes_ = _expose(lambda model: model.classes)
    n_classes_ = _expose(lambda model: len(model.classes))
    n_features_in_ = _expose(lambda model: model.encoder.n_features_in_)
    feature_names_in_ = _expose(lambda model: model.encoder.feature_names_in_)
    link_ = _expose(lambda model: model.link)
    alpha_ = _expose(lambda model: model.alpha)
    step_size_ = _expose(lambda model: model.step_size)
    n_iter_ = _expose(lambda model: model.n_rounds)
    noise_ = _expose(lambda model: model.reliable_noise)
    choice_ = _expose(lambda model: _require(model.choice, "nothing was left to choose from the data"))
    oof_proba_ = _expose(lambda model: _require(model.out_of_fold_posterior(), NO_OUT_OF_FOLD))
    sources_ = _expose(_find_sources)
    validation_rows_ = _expose(lambda model: model.validation_rows)
    estimators_ = _expose(lambda model: model.by_class("hypotheses"))
    leverages_ = _expose(lambda model: model.by_class("leverages"))
    edges_ = _expose(lambda model: model.by_class("edges"))
    start_ = _expose(lambda model: model.by_class("start"))
    forest_ = _expose(lambda model: model.by_class("forest"))
    evals_result_ = _expose(lambda model: model.validation_curves())
    feature_importances_ = _expose(lambda model: model.importances("paper"))

    def importances(self, kind: str = "paper") -> Array:
        """Return how much each column contributes, as shares.

        Parameters
        ----------
        kind : "paper", "gain" or "splits"
            The paper's (`feature_importances_`), the gain of all splits of a column, or their number.
        """
        return find_model(self).importances(kind)

    def certificate(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
        """Return the convergence certificate of this fit, which takes the very data that `fit` was given.

        It is for two classes, the paper's steps and rounds that see all rows.
        """
        model = find_model(self)
        rows, labels = model.encoder.encode(X, self), model.encode_labels("y", y)
        weight = np.ones(len(labels)) if sample_weight is None else np.array(_check_sample_weight(sample_weight, rows))
        settings = resolve(list_parameters(self), seed=model.seed)
        replay = replay_rounds(model, settings, rows, labels, weight)
        assert isinstance(model.link, Link)  # Two classes have one, and others have no certificate.
        return certify(
            replay.rounds, model.link, model.step_size, sample_weight=replay.sample_weight, start=replay.start
        )

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram with what was chosen and how noisy the labels are, for notebooks."""
        return f"{super()._repr_html_inner()}{self._write_html()}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the same, and the text beside it; notebooks ask for this first."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # scikit-learn's setting of "display" may ask for text alone.
            bundle["text/html"] += self._write_html()
        return bundle

    def _write_html(self) -> str:
        """Return what the fit has found as HTML; nothing before it."""
        model = vars(self).get("model_")
        if model is None:
            return ""
        parts = [] if model.choice is None else [model.choice.write_html()]
        if model.estimate is not None:
            words = model.unreliable_words
            parts.append(write_fragment("Noise", words) if words else model.estimate.write_html(model.classes))
        elif model.choice is not None:
            parts.append(write_fragment("Noise", NO_NOISE))
        return "".join(f"<div>{part}</div>" for part in parts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepted = self._find_accepted_tables()
        tags.input_tags.allow_nan = accepted.missing_values
        tags.input_tags.sparse = accepted.sparse
        tags.input_tags.categorical = accepted.categories
        return tags

    def _find_accepted_tables(self) -> AcceptedTables:
        parameters = list_parameters(self)
        try:
            engine = choose_engine(parameters)
        except ValueError:  # Tags must not raise; `fit` will.
            return AcceptedTables()
        return engine.accepted_tables(parameters["estimator"], parameters["tree_method"])


#: The names of the constructor's parameters.
PARAMETER_NAMES = [name for name in inspect.signature(PILBoostClassifier.__init__).parameters if name != "self"]


def list_parameters(classifier: PILBoostClassifier) -> dict[str, Any]:
    """Return the parameters of a classifier by name, also of a subclass whose own constructor takes others."""
    return {name: getattr(classifier, name) for name in PARAMETER_NAMES}


def find_model(model: Any) -> FittedModel:
    """Return the fitted model behind a classifier, or the model itself; a ValueError for anything else."""
    if isinstance(model, FittedModel):
        return model
    if not isinstance(model, PILBoostClassifier):
        raise ValueError(f"model must be a PILBoostClassifier (of a pipeline the last step), got {model!r:.100}")
    if "model_" not in vars(model):  # This takes a single row no time, other than scikit-learn's own check.
        check_is_fitted(model, "model_")
    return model.model_
