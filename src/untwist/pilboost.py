"""PILBoostClassifier: the paper's boosting algorithm as a scikit-learn classifier, with nothing chosen unasked."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from untwist.arguments import Array
from untwist.blas import use_one_blas_thread
from untwist.data.encoding import AcceptedTables
from untwist.fit_arguments import InitScores, SourceColumns, ValidationTable
from untwist.fitting import boost_given_settings, replay_rounds
from untwist.growth import Growth
from untwist.model import FittedModel
from untwist.predicting import ModelPredictions, expose, find_model
from untwist.progress import show_progress
from untwist.settings import choose_engine, resolve_paper
from untwist.theory.certificate import Certificate, certify
from untwist.theory.links import Link
from untwist.theory.losses import Loss
from untwist.training_data import TrainingData

__all__ = ["PILBoostClassifier"]


class PILBoostClassifier(ModelPredictions):
    """PILBoost of "Being Properly Improper" (ICML 2022): boosting with the alpha-loss by a clipped inverse link.

    Nothing is chosen behind your back: rounds begin at 0, nothing is shrunken, drawn or averaged, and more than two
    classes are boosted each against the rest. For a table with noisy labels and nothing else in mind take
    `UntwistClassifier`, which finds out how noisy the labels are. Columns may be numbers, with missing values, or
    categories.

    Parameters
    ----------
    alpha : float in [-inf, +inf] except 0, or "menon", default 2
        1 trains the log-loss, which believes every label. Larger values undo more label noise; negative ones undo a
        twist that turns most labels over. "menon" is the paper's estimate from the data, for two classes
        (`untwist.noise.menon`); only then is the noise estimated (`noise_`).
    step_size : float > 0 or "auto", default "auto"
        The paper's a_f, typically 1 to 15: the coefficient of a tree is step_size * edge. "auto" is 2*a up to a = 2 and
        2*a/(a-1) above, for a = abs(alpha).
    learning_rate : float > 0 or None, default None
        The coefficient of every tree, as in other boosters, instead of `step_size`. The paper's steps shrink with the
        edges as boosting goes on, and these do not. 0.2 learns about as fast as XGBoost at 0.1.
    n_estimators : int, default 100
        Number of boosting rounds; fewer if every training row is beyond the clip or early stopping ends them.
    max_depth : int or None, default 3
        Depth of the trees that serve as weak learners; None for as deep as they get.
    max_leaf_nodes : int >= 2 or None, default None
        Grow the best split first up to this number of leaves, instead of level by level.
    min_samples_leaf : int, default 1
        Rows in a leaf, at least. Only rows with a boosting weight count; in the compiled engine each counts with its
        sample weight.
    max_bins : int in [2, 255], default 255
        A column with more distinct values than this is binned.
    categorical_features : "auto", None, or the columns as indices, names or a mask, default "auto"
        Columns that hold categories. "auto" means those of a category or text type. Trees split up to 12 categories by
        sets, and one that is unseen in training counts as missing. A column of more is coded by its labels: each
        category is one number, drawn towards that of all rows, which one that is unseen has too (docs/categories.md).
    monotonic_cst : array-like of -1, 0, +1, dict by name, or None, default None
        Whether the score of the second class may only fall (-1) or rise (+1) with a column. Two classes only.
    interaction_cst : None, "pairwise", "no_interactions" or list of sets of columns, default None
        Which columns may meet on a way from the root of a tree to a leaf, as in HistGradientBoostingClassifier: those
        of one set, by position or by name; columns that are in no set make one more. "pairwise" is every set of two,
        "no_interactions" every column by itself.
    class_weight : dict, "balanced" or None, default None
        Multiplies the sample weights of each class.
    link : "clipped", "exact" or "logit", default "clipped"
        The paper's clipped inverse link (`ClippedLink`) or the exact one (`CanonicalLink`); or that of scores which are
        log-odds (`LogitLink`), for an alpha from 1 on, under which labels that contradict the scores hardly count.
    loss : Loss or None, default None
        A loss to boost instead; `alpha` then plays no part. ``AlphaLoss(a)`` is the same as ``alpha=a``.
    estimator : scikit-learn regressor or None, default None
        A weak learner of your own, fitted to labels -1 and +1 with sample weights; the settings of trees then play no
        part. Not together with `engine`.
    engine : "auto", "compiled", "xgboost" or "reference", default "auto"
        "compiled" grows histogram trees, all rounds in compiled code: the same model for any number of threads and any
        order of the rows. "xgboost" has XGBoost grow them, on a GPU or on the rows of many workers
        (`untwist.distributed`); docs/distributed.md says what differs. "reference" runs the loop of
        `untwist.boosting.algorithm`, the paper's pseudo-code, over regression trees of scikit-learn, and knows neither
        categories nor most of `growth`. "auto" is "compiled" for the alpha-loss unless an `estimator` is given.
    early_stopping : bool or int, default False
        Stop when the log-loss of the twisted posterior on validation rows has not fallen for this number of rounds
        (True: 10), and keep the rounds up to its minimum. Validation rows are those given to `fit`, else a tenth of
        every class, drawn by contents. Classes beyond two stop each by itself.
    eval_metric : str, function or None, default None
        What early stopping goes by in place of the log-loss, and what `evals_result_` tells besides it, of the twisted
        posterior of validation rows, whose labels are noisy too (see Notes).
    callbacks : list of functions or None, default None
        Each is called after every round with an `untwist.boosting.runs.Progress`; a true answer ends the rounds.
    warm_start : bool, default False
        Go on from the rounds of the last `fit` instead of starting anew; give the same data, `init_score` included, and
        a larger n_estimators. Link and `growth.init` must be the same.
    growth : Growth or None, default None
        What few need to say of how trees grow: shrinking, drawing, where rounds begin, how XGBoost works. See
        `untwist.Growth`; None is its defaults. ``set_params(growth__l2=1)`` works.
    n_jobs : int or None, default None
        Threads; None or -1 for as many as the process may use, -2 for one less. The model does not depend on it.
    random_state : int, RandomState, Generator or None, default None
        What random choices follow from. A generator of NumPy gives one number to every fit.
    verbose : int, default 0
        Rounds between two reports to standard error, none for 0. It also shows how far the fit is, with an estimate of
        what is left: a line in a terminal, a bar in a notebook.

    Attributes
    ----------
    model_ : FittedModel
        All that the fit left behind (`untwist.model`); the other attributes are views of it.
    classes_, n_classes_ : array, int
        The labels and their number; of two, the second is the positive class.
    estimators_, leverages_, edges_ : sequences
        The weak hypotheses, their coefficients and edges, per round; beyond two classes a list per class.
    forest_ : Forest or None
        The trees as arrays, None for weak learners of another kind; beyond two classes a list per class.
    start_ : float
        The score that rounds began at; beyond two classes a list per class.
    evals_result_ : dict
        {"validation": {"log_loss": ..., "error": ...}} after each round, if there were validation rows, with the
        `eval_metric`. After a warm start, rounds that were not measured are NaN.
    link_, alpha_, step_size_ : Link, float, float
        What was used; `step_size_` may be a learning rate.
    n_iter_ : int
        Rounds kept, of the class that kept most.
    noise_ : MenonEstimate or None
        How noisy the labels are by the paper's estimate, with ``alpha="menon"``.
    validation_rows_ : array
        Indices of the training rows that `fit` held out for validation.
    feature_importances_ : array
        The paper's importances: the sum over rounds of leverage times the tree's impurity importances, normalised.
        Missing where an `estimator` was given that has none.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Notes
    -----
    `eval_metric` is the name of a scorer of scikit-learn, or a scorer, and more is better; or a function of labels and
    posteriors (those of the second class, where there are two), which may take a `sample_weight`. A function returns
    (name, value, is_higher_better), as for LightGBM, or a number; its name then ends with _score if more is better, and
    with _loss, _error or _deviance if less is, as in scikit-learn. With it all classes stop after the same round. What
    it compares with the labels is the posterior that labels follow, noise included, as the log-loss of early stopping
    does (`predict_proba_twisted`). A warm start measures the rounds before it again.

    The compiled engine is the pseudo-code to 1e-6 where columns have at most 255 different values, and
    ``engine="reference"`` to 1e-9, until a margin comes to the clip, where the slope of the link is infinite.

    Ctrl-C during `fit` keeps the rounds done so far, if there are any: the model is fitted, and KeyboardInterrupt goes
    on to the caller. A fit that fails, or that Ctrl-C ends before the first round, leaves the model of the fit before
    it. Until a new model is whole, other threads predict by that one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PILBoostClassifier(alpha=2.0, n_estimators=50).fit(X, y)
    >>> model.predict(X[:3]), model.decision_function(X[:3]).round(2)
    (array([0, 0, 0]), array([-2.31, -2.54, -3.27]))
    """

    def __init__(
        self,
        alpha: float | str = 2.0,
        *,
        step_size: float | str = "auto",
        learning_rate: float | None = None,
        n_estimators: int = 100,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 1,
        max_bins: int = 255,
        categorical_features: Any = "auto",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        class_weight: Any = None,
        link: str = "clipped",
        loss: Loss | None = None,
        estimator: Any = None,
        engine: str = "auto",
        early_stopping: bool | int = False,
        eval_metric: Any = None,
        callbacks: Any = None,
        warm_start: bool = False,
        growth: Growth | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.step_size = step_size
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.class_weight = class_weight
        self.link = link
        self.loss = loss
        self.estimator = estimator
        self.engine = engine
        self.early_stopping = early_stopping
        self.eval_metric = eval_metric
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.growth = growth
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as everywhere in scikit-learn; ``growth__l2=1`` sets one of `growth`."""
        says_some = any(name.startswith("growth__") for name in params)
        if says_some and params.get("growth", self.growth) is None:
            params = {**params, "growth": Growth()}
        super().set_params(**params)
        return self

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
        groups : array-like or None
            Which rows belong together: those of one patient, customer or machine. Text, numbers or categories; None or
            NaN for a row by itself. Early stopping holds out whole groups, which is all that they are for: without it,
            or with X_val, there must be none. It is no feature: leave its column out of X.
        init_score, init_score_val : array-like or None
            The score of each row (of X, of X_val) that boosting begins at, a column per class beyond two, such as the
            `decision_function` of another model: what is learned is what to add to it. As in LightGBM predictions do
            not have it: add it to `decision_function`.

        Returns
        -------
        self
        """
        previous = getattr(self, "model_", None) if self.warm_start else None
        settings = resolve_paper(list_parameters(self), seed=None if previous is None else previous.seed)
        if groups is not None and (X_val is not None or not settings.patience):
            raise ValueError(
                "groups play no part in this fit, as only early stopping keeps them together, where it holds rows out: "
                "give early_stopping=True and no X_val, or leave groups out"
            )
        data = TrainingData.collect(
            settings,
            X,
            y,
            sample_weight,
            ValidationTable(X_val, y_val, sample_weight_val),
            sources=SourceColumns(groups=groups),
            init_scores=InitScores(init_score, init_score_val),
            previous=previous,
            estimator=self,
        )
        self._warn_of_idle_parameters(data)
        with use_one_blas_thread(), show_progress(settings.verbose > 0 and data.workers.rank == 0):
            fit = boost_given_settings(data, previous, self._hold)
        self.model_ = fit.model
        if fit.interrupt is not None:
            raise fit.interrupt
        return self

    def _warn_of_idle_parameters(self, data: TrainingData) -> None:
        """Warn of parameters that were given and play no part in this fit."""
        if self.eval_metric is not None and data.validation.weight is None:
            warnings.warn(
                "eval_metric measures nothing in this fit: give X_val and y_val, or early_stopping=True",
                UserWarning,
                stacklevel=3,
            )
        if data.settings.columns.feature_weights is not None and data.growth.max_features >= 1.0:
            warnings.warn(
                "feature_weights play no part in this fit, as every tree may use all columns: give max_features too, "
                "such as Growth(max_features=0.5, feature_weights=...)",
                UserWarning,
                stacklevel=3,
            )

    def _hold(self, model: FittedModel) -> PILBoostClassifier:
        """Return a classifier with the same settings that holds another fitted model."""
        holder = copy(self)
        holder.model_ = model
        return holder

    # ---- prediction, also by some of the rounds ----

    def predict(self, X: Any, iteration_range: tuple[int, int] | None = None) -> NDArray[Any]:
        """Return the class whose clean posterior is largest; of two, classes_[0] at a score of exactly 0.

        Parameters
        ----------
        X : table
            Whatever `fit` takes.
        iteration_range : (int, int) or None
            Only the rounds from the first number to before the second count, as in XGBoost, and where they began.

        Returns
        -------
        array
            One label per row.
        """
        model = find_model(self)
        return model.choose_labels(self._decide(model, X, model.check_rounds(iteration_range)))

    def predict_proba(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the clean posterior of every class, of two kept within [1/(n+2), 1 - 1/(n+2)].

        It is the twisted posterior untwisted by alpha. Beyond the clip it is exactly 0 or 1; by the rule of succession
        n rows cannot justify more. n is the number of training rows or their total weight, whichever is larger. More
        than two classes are scaled to sum to one after that. `iteration_range` is that of `predict`.
        """
        model = find_model(self)
        return model.posterior.clean(self._decide(model, X, model.check_rounds(iteration_range)))

    def predict_proba_twisted(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the posterior of every class as the twisted training labels follow it, within the same limits.

        `iteration_range` is that of `predict`.
        """
        model = find_model(self)
        return model.posterior.twisted(self._score(model, X, model.check_rounds(iteration_range)))

    def decision_function(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Array:
        """Return the score of the clean posterior; a column per class beyond two.

        Of two classes it is positive where `predict` says classes_[1]; of more the largest speaks for its class.
        `iteration_range` is that of `predict`.
        """
        model = find_model(self)
        return self._decide(model, X, model.check_rounds(iteration_range))

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

    def _iterate_decisions(self, model: FittedModel, X: Any) -> Iterator[Array]:
        return map(model.posterior.decision, model.staged_scores(model.encoder.encode(X, self)))

    def _find_margins(self, model: FittedModel, X: Any, y: ArrayLike) -> Array:
        rows, labels = model.encoder.encode(X, self), model.encode_labels("y", y)
        check_consistent_length(rows, labels)
        return model.margins(model.scores(rows, self.n_jobs), labels)

    # ---- what was learned ----

    link_ = expose(lambda model: model.link)
    alpha_ = expose(lambda model: model.alpha)
    step_size_ = expose(lambda model: model.step_size)
    n_iter_ = expose(lambda model: model.n_rounds)
    validation_rows_ = expose(lambda model: model.validation_rows)
    estimators_ = expose(lambda model: model.by_class("hypotheses"))
    leverages_ = expose(lambda model: model.by_class("leverages"))
    edges_ = expose(lambda model: model.by_class("edges"))
    start_ = expose(lambda model: model.by_class("start"))
    forest_ = expose(lambda model: model.by_class("forest"))
    evals_result_ = expose(lambda model: model.validation_curves())

    def certificate(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
        """Return the convergence certificate of this fit, which takes the very data that `fit` was given.

        It is for two classes, the paper's steps and rounds that see all rows.
        """
        model = find_model(self)
        rows, labels = model.encoder.encode(X, self), model.encode_labels("y", y)
        weight = np.ones(len(labels)) if sample_weight is None else np.array(_check_sample_weight(sample_weight, rows))
        settings = resolve_paper(list_parameters(self), seed=model.seed)
        replay = replay_rounds(model, settings, rows, labels, weight)
        assert isinstance(model.link, Link)  # Two classes have one, and others have no certificate.
        return certify(
            replay.rounds, model.link, model.step_size, sample_weight=replay.sample_weight, start=replay.start
        )

    def _find_accepted_tables(self) -> AcceptedTables:
        parameters = list_parameters(self)
        growth = Growth() if self.growth is None else self.growth
        try:
            engine = choose_engine(parameters)
        except ValueError:  # Tags must not raise; `fit` will.
            return AcceptedTables()
        return engine.accepted_tables(self.estimator, getattr(growth, "tree_method", "hist"))


#: The names of the constructor's parameters.
PARAMETER_NAMES = [name for name in inspect.signature(PILBoostClassifier.__init__).parameters if name != "self"]


def list_parameters(classifier: PILBoostClassifier) -> dict[str, Any]:
    """Return the parameters of a classifier by name, also of a subclass whose own constructor takes others."""
    return {name: getattr(classifier, name) for name in PARAMETER_NAMES}
