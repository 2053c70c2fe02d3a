"""PILBoostClassifier: PILBoost as a scikit-learn classifier."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.validation import (
    _check_feature_names,
    _check_monotonic_cst,
    _check_n_features,
    _check_sample_weight,
    _check_y,
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from untwist import _core
from untwist.arguments import Array, count, fraction, non_negative, positive, real, share
from untwist.automatic import search as automatic
from untwist.boosting.algorithm import Round, ValidationLoss, WeakLearner, pilboost
from untwist.boosting import forest as trees
from untwist.boosting.runs import CompiledRun, Ensemble, Progress, ReferenceRun, Run, advance
from untwist.data import tables
from untwist.data import workers as collective
from untwist.data.batches import Batches, Encoded
from untwist.data.folds import cross_folds, drawn_folds, drawn_share, hold_out
from untwist.data.labels import class_weights, classes_of, refuse_missing
from untwist.data.workers import ALONE, Workers
from untwist.noise.rates import MenonEstimate, NoiseEstimate, Untwisting, estimate_noise, menon
from untwist.theory.certificate import Certificate, certify
from untwist.theory.links import CanonicalLink, ClippedLink, Link, default_step_size
from untwist.theory.losses import AlphaLoss, Loss
from untwist.boosting.engines.xgboost import booster as engine

__all__ = ["PILBoostClassifier"]

TREE_METHODS = ("hist", "approx", "exact")
PLAIN_ROUNDS, PLAIN_DEPTH = 100, 3  # what "auto" stands for where nothing can be chosen


class PILBoostClassifier(ClassifierMixin, BaseEstimator):
    """Boosting with the alpha-loss, which learns the clean posterior from twisted labels.

    More than two classes are boosted one against the rest. Columns may be numbers, with missing values, or categories.

    Parameters
    ----------
    alpha : float in [-inf, +inf] except 0, "auto" or "menon", default "auto"
        1 trains the log-loss, which believes every label. Larger values undo more label noise; negative ones undo a
        twist that turns most labels over. "auto", here, for `n_estimators` or for `max_depth`: what is left open is
        chosen from the data, see below. "menon" is the paper's estimate (`untwist.noise.rates.menon`; two classes).
    step_size : float > 0 or "auto", default "auto"
        The paper's a_f, typically 1 to 15: the coefficient of a tree is step_size * edge. "auto" is 2*a up to a = 2 and
        2*a/(a-1) above, for a = abs(alpha).
    learning_rate : float > 0 or None, default None
        The coefficient of every tree instead, as in other boosters: as edges shrink while boosting goes on, the paper's
        steps do too, and these do not. 0.2 learns about as fast as XGBoost at 0.1. Not together with `step_size`.
    n_estimators : int or "auto", default "auto"
        Number of boosting rounds; fewer if every training row is beyond the clip or early stopping ends them.
    max_depth : int, None or "auto", default "auto"
        Depth of the trees that serve as weak learners; None for as deep as they get.
    max_leaf_nodes : int >= 2 or None, default None
        Grow the best split first up to so many leaves, instead of level by level.
    min_samples_leaf : int, default 1
        Rows in a leaf, at least; a row counts with its sample weight (not in another engine than the compiled one),
        and only if it has a boosting weight.
    min_weight_fraction_leaf : float in [0, 0.5], default 0
        Share of the round's total boosting weight in a leaf, at least.
    l2 : float >= 0 or "auto", default "auto"
        Shrinks a leaf with few rows: its value is G / (W + l2), in units of one row. "auto" is 0, or 1 if something is
        chosen from the data.
    subsample : float in (0, 1] or "auto", default "auto"
        Share of the rows drawn for every tree, by their contents: copies of a row are drawn together. "auto" is 1, or
        0.7.
    max_features : float in (0, 1] or "auto", default "auto"
        Share of the columns drawn for every tree. "auto" is 1, or 0.7.
    max_bins : int in [2, 255], default 255
        A column with more distinct values than this is binned.
    categorical_features : "auto", None, or the columns as indices, names or a mask, default "auto"
        Columns that hold categories. "auto": those of a category or text type. Categories beyond the 254 most
        frequent of a column and those unseen in training count as missing.
    monotonic_cst : array-like of -1, 0, +1, dict by name, or None, default None
        Whether the score of the second class may only fall (-1) or rise (+1) with a column. Two classes only.
    class_weight : dict, "balanced" or None, default None
        Multiplies the sample weights of each class.
    noise_rates : "auto", (float, float) or None, default "auto"
        The share of the first class that bears the label of the second, and the share of the second that bears that
        of the first, if you know them: probabilities and threshold are then untwisted by them. "auto": by the rates
        that fit the out-of-fold posteriors, where alpha is "auto" (`untwist.noise.rates.estimate_noise`), else not at all.
        None: not at all, so that the clean posterior is the one that alpha implies. More than two classes with a
        `class_weight` are not untwisted either.
    link : "clipped" or "exact", default "clipped"
        The paper's clipped inverse link (`ClippedLink`) or the exact one (`CanonicalLink`).
    loss : Loss or None, default None
        A loss to boost instead of the alpha-loss; `alpha` then plays no part.
    engine : "auto", "compiled", "xgboost" or "reference", default "auto"
        "compiled" grows histogram trees, all rounds in compiled code: the same model for any number of threads and any
        order of the rows. "xgboost" has XGBoost grow them, on a GPU or on the rows of many workers
        (`untwist.distributed`); docs/distributed.md says what differs. "reference" runs the loop of `untwist.boosting.algorithm`
        over regression trees of scikit-learn, and knows neither categories nor the settings `l2`, `subsample`,
        `max_features`, `max_bins` and `monotonic_cst`. "auto" is "compiled" for the alpha-loss unless an `estimator` is
        given.
    tree_method : "hist", "approx" or "exact", default "hist"
        How XGBoost looks for splits. "hist" splits the bins of the compiled engine, "approx" and "exact" the numbers
        in single precision.
    device : "cpu", "cuda" or "cuda:N", default "cpu"
        Where XGBoost works; a GPU needs CuPy too.
    estimator : scikit-learn regressor or None, default None
        A weak learner of your own, fitted to labels -1 and +1 with sample weights; the settings of trees then play no
        part. Not together with `engine`.
    early_stopping : bool, default False
        Stop when the log-loss of the twisted posterior on validation rows has not fallen for `n_iter_no_change` rounds,
        and keep the rounds up to its minimum. Validation rows are those given to `fit`, else a `validation_fraction` of
        every class, drawn by contents. Classes beyond two stop each by itself. Where something is left "auto", folds
        do this in any case, and True makes a given `n_estimators` the most.
    validation_fraction : float in (0, 1), default 0.1
    n_iter_no_change : int, default 10
    warm_start : bool, default False
        Go on from the rounds of the last `fit` instead of starting anew; give the same data and a larger n_estimators.
    callbacks : list of functions or None, default None
        Each is called after every round (every tenth of each candidate where something is left "auto") with a
        `untwist.boosting.runs.Progress`; a true answer ends the fit.
    n_jobs : int or None, default None
        Threads; None for as many as the process may use. The model does not depend on it.
    verbose : int, default 0
        Report to standard error every so many rounds; of every candidate where something is left "auto".
    random_state : int, RandomState instance or None, default None

    Attributes
    ----------
    classes_ : the labels; of two, the second is the positive class
    estimators_, leverages_, edges_ : the weak hypotheses, their coefficients and edges, per round (a list per class
        where there are more than two)
    forest_ : the trees as arrays, None for weak learners of another kind (one per class beyond two)
    evals_result_ : {"validation": {"log_loss": ..., "error": ...}} after each round, if there were validation rows;
        where something was chosen from the data, of the rows that the folds set aside, also of rounds not kept
    link_, step_size_, n_iter_ : the link and step (or learning rate) that were used, and the number of rounds kept (of
        the class that kept most; the trees of all five folds where something was left open)
    alpha_, choice_, noise_ : the alpha that was used; what was tried and chosen (only if something was left open); how
        noisy the labels are and how sure that is (None where nothing was estimated). All can be printed.
    oof_proba_ : the twisted posterior of every class for the training rows, each by models that have not seen the row;
        where something was chosen by folds
    validation_rows_ : indices of the training rows that `fit` held out for validation (empty if none)
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Ctrl-C during `fit` keeps the rounds done so far: the model is fitted, and KeyboardInterrupt goes on to the caller.

    With "auto" for alpha, n_estimators or max_depth the compiled engine boosts candidates on five folds (or beside the
    validation rows given), at a learning rate of 0.1 (0.2 where that is too slow) unless a step is given, and judges
    them by the log-loss of the twisted posterior on rows set aside. The model is the mean of the fold models of the
    best candidate; `n_iter_` counts the trees of all folds. With alpha "auto" the rows set aside also tell how noisy
    each class is, and the posterior is untwisted by that, row by row; `predict` follows. Callbacks are told of every
    tenth round, and a true answer ends the search with what there is, as Ctrl-C does. With the reference engine, a
    loss or an estimator of your own "auto" stands for alpha 2, 100 rounds and depth 3.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PILBoostClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:3]), model.alpha_
    (array([0, 0, 0]), 1.0)
    >>> print(model.noise_)
    no evidence of label noise (rates from 0% to 1% would fit)
    >>> model = PILBoostClassifier(alpha=2.0, n_estimators=50, max_depth=3).fit(X, y)  # as in the paper
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
        l2: float | str = "auto",
        subsample: float | str = "auto",
        max_features: float | str = "auto",
        max_bins: int = 255,
        categorical_features: Any = "auto",
        monotonic_cst: Any = None,
        class_weight: Any = None,
        noise_rates: Any = "auto",
        link: str = "clipped",
        loss: Loss | None = None,
        engine: str = "auto",
        tree_method: str = "hist",
        device: str = "cpu",
        estimator: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.step_size = step_size
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.l2 = l2
        self.subsample = subsample
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.class_weight = class_weight
        self.noise_rates = noise_rates
        self.link = link
        self.loss = loss
        self.engine = engine
        self.tree_method = tree_method
        self.device = device
        self.estimator = estimator
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    _ensembles: list[Ensemble]
    _schema: tables.Schema
    link_: Link
    n_iter_: int
    noise_: NoiseEstimate | None
    _unseen: automatic.Unseen
    _trained_on: int | None
    _untwisting: Untwisting | None

    # ---- training ----

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Boost on (X, y). Validation rows, if given, serve to follow the loss and to stop early, never to train.

        A sample weight of 2 is a repeated row (up to the order in which ties are broken, and up to the bins of columns
        with many values beyond 100,000 rows), of 0 an absent one. The compiled engine keeps 17 to 24 bits of a weight:
        rows that weigh a millionth of the heaviest count for little or nothing.
        """
        if self._automatic():
            return self._fit_automatic(X, y, sample_weight, X_val, y_val, sample_weight_val)
        most, patience = self._rounds_and_patience()
        verbose = self._report_every()
        before = self._ensembles if self.warm_start and hasattr(self, "_ensembles") else None
        if before is not None and hasattr(self, "choice_"):  # curves of folds are not those of the rounds to come
            before = [replace(one, losses=np.zeros(0), errors=np.zeros(0)) for one in before]
        for name in ("choice_", "_unseen", "_trained_on"):
            self.__dict__.pop(name, None)  # of an automatic fit
        done = 0 if before is None else self.n_iter_
        self._check_noise_rates()
        if done > most:
            raise ValueError(f"n_estimators must be at least the {done} rounds of the last fit, got {most}")
        if before is None:
            self._begin()
        X, labels, weight = self._training_data(X, y, sample_weight, before is not None)
        self._refuse_rates_of_several_classes()
        noise = self._menon(X, labels, weight) if self._is_menon() else None
        alpha = self._given_alpha() if noise is None else noise.alpha
        link = self._link_at(alpha)
        step_size = self._step_size(link)
        if before is not None and repr(link) != repr(self.link_):
            raise ValueError(f"a warm start goes on with the link of the last fit, {self.link_!r}, got {link!r}")
        sample = self._sample(X, labels, weight, X_val, y_val, sample_weight_val)
        runs: list[Run] = []
        runs.extend(
            (self._forest_runs if self._grows_forests() else self._reference_runs)(sample, link, step_size, before)
        )

        def so_far() -> list[Ensemble]:
            ensembles = [run.ensemble() for run in runs]
            return [old.followed_by(new) for old, new in zip(before, ensembles, strict=True)] if before else ensembles

        def snapshot() -> PILBoostClassifier:
            model = copy(self)
            model._keep(so_far(), link, step_size, alpha, noise, sample)
            return model

        interrupt = advance(
            runs,
            most - done,
            first_round=done,
            patience=patience,
            callbacks=self.callbacks or (),
            verbose=verbose,
            workers=self._workers,
            snapshot=snapshot,
        )
        ensembles = [one.first(one.best()) for one in so_far()] if patience else so_far()
        if interrupt is not None and not all(map(len, ensembles)):
            raise interrupt  # not even a round of every class
        self._keep(ensembles, link, step_size, alpha, noise, sample)
        if interrupt is not None:
            raise interrupt
        return self

    def _keep(
        self,
        ensembles: list[Ensemble],
        link: Link,
        step_size: float,
        alpha: float,
        noise: MenonEstimate | None,
        sample: _Sample,
    ) -> None:
        """What a fit with given settings leaves behind."""
        self._ensembles, self.link_, self.step_size_ = ensembles, link, step_size
        self.alpha_, self.noise_, self._untwisting = alpha, noise, None
        if self.noise_rates is not None and not _is_auto(self.noise_rates):
            self.noise_ = self._untwisting = Untwisting.by(self._known_rates())
        self.n_iter_ = max(map(len, ensembles))
        self.validation_rows_ = np.flatnonzero(sample.held)
        self._validation_shares = sample.held[self.validation_rows_]
        self._n_rows, self._n_samples = len(sample.held), sample.n_samples

    def _begin(self) -> None:
        """Forgets an earlier fit, so that one that fails leaves no mixture of old and new, and draws a seed."""
        for name in ("_ensembles", "choice_", "alpha_", "noise_", "_untwisting", "_unseen", "_trained_on", "classes_"):
            self.__dict__.pop(name, None)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._seed = self._workers.first_of(seed)

    def _report_every(self) -> int:
        every = int(self.verbose) if isinstance(self.verbose, bool) else count("verbose", self.verbose, low=0)
        return every if self._workers.rank == 0 else 0

    def _automatic(self) -> bool:
        """Whether something is to be chosen from the data."""
        open_ = any(_is_auto(value) for value in (self.alpha, self.n_estimators, self.max_depth))
        return open_ and self._grows_forests() and self.loss is None

    def _fit_automatic(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        X_val: Any,
        y_val: Any,
        sample_weight_val: ArrayLike | None,
    ) -> Self:
        """What is left open chosen by folds; the mean of the fold models."""
        if self.warm_start:
            raise ValueError("warm_start needs alpha, n_estimators and max_depth to be given")
        self._check_flags()
        self._check_noise_rates()
        depths = automatic.DEPTHS if _is_auto(self.max_depth) else (self._depth(),)
        n_rounds = None if _is_auto(self.n_estimators) else count("n_estimators", self.n_estimators)
        verbose = self._report_every()
        if not (_is_auto(self.alpha) or self._is_menon()):
            self._link_at(self.alpha)  # refuses what is no alpha, before any work
        self._begin()
        numbers, labels, weight = self._training_data(X, y, sample_weight, before=False)
        self._refuse_rates_of_several_classes()
        alphas: Any = automatic.ALPHAS if _is_auto(self.alpha) else (self.alpha,)
        noise = self._menon(numbers, labels, weight) if self._is_menon() else None
        if noise is not None:
            alphas = (noise.alpha,)
        sample = self._sample(numbers, labels, weight, X_val, y_val, sample_weight_val)
        given = sample.watch is not None  # validation rows take the place of folds
        held = sample.watch[None, :] if sample.watch is not None else self._folds(sample.data, labels, weight)

        def booster(link: Link, growth: trees.Growth, step: float, label: int, fold: int) -> Any:
            train = sample.weight if given else sample.weight - held[fold]
            return self._booster(sample, link, step, growth, label, weight=train, watch=held[fold])

        steps: tuple[float, ...] = automatic.STEPS
        if self.learning_rate is not None or self._by_edge():
            steps = (self._step_size(self._link_at(alphas[0])),)
        chosen = automatic.choose(
            automatic.Folds(
                booster,
                self._positive_classes(),
                self._workers.total(held.sum(axis=1)),
                numbers.shape[1],
                trees.threads(self.n_jobs),
            ),
            self._growth(),
            self._link_at,
            alphas=alphas,
            depths=depths,
            steps=steps,
            n_rounds=n_rounds,
            at_most=bool(self.early_stopping),
            report=lambda one: print(one, file=sys.stderr) if verbose else None,
            tell=self._told if self.callbacks else None,
        )
        self.choice_, self.alpha_ = chosen.choice, chosen.choice.best.alpha
        self.link_ = self._link_at(self.alpha_)
        self.step_size_ = chosen.choice.best.step
        self.validation_rows_, self._validation_shares = np.zeros(0, dtype=np.intp), np.zeros(0)
        self._n_rows, self._n_samples = len(labels), sample.n_samples
        complete, held = chosen.n_folds == len(held), held[: chosen.n_folds]
        unseen = automatic.judged(
            chosen.forests, sample.X, held, n_training=0 if given else len(labels), n_jobs=self.n_jobs
        )
        if not given:  # class weights do not belong to the labels; rows given to validate have weights of their own
            by_class = self._class_weights[sample.labels[unseen.rows]]
            own = np.divide(unseen.weight, by_class, out=np.zeros_like(unseen.weight), where=unseen.weight > 0)
            unseen = replace(unseen, weight=own)
        self._unseen, self._unseen_labels, self._trained_on = unseen, sample.labels[unseen.rows], None
        self.noise_, self._untwisting = noise, None
        weighted = self.class_weight is not None and len(self.classes_) > 2  # their posteriors are not of the labels
        if self.noise_rates is not None and (_is_auto(self.alpha) or not _is_auto(self.noise_rates)) and not weighted:
            self.noise_ = self._untwisting = self._noise()
        if complete and not given and self._workers.size == 1:
            self._trained_on = tables.fingerprint(numbers, labels)
        self._ensembles = [
            Ensemble.of(trees.Forest.mean(each_fold), *curve)
            for each_fold, curve in zip(chosen.forests, chosen.curves, strict=True)
        ]
        self.n_iter_ = max(map(len, self._ensembles))
        if chosen.interrupt is not None:
            raise chosen.interrupt
        return self

    def _folds(self, data: Any, labels: NDArray[np.uint32], weight: Array) -> NDArray[np.float64]:
        if self._engine() == "compiled":
            return cross_folds(data.hashes(), labels, weight, automatic.N_FOLDS, self._seed)
        held = drawn_folds(data.hashes(), weight, automatic.N_FOLDS, self._seed)  # no worker has seen all rows
        self._refuse_poor_draw(held, labels, weight)
        return held

    def _refuse_poor_draw(self, held: NDArray[np.float64], labels: NDArray[np.uint32], weight: Array) -> None:
        """Of few different rows a draw by contents may set all of a class aside, or nothing."""
        n_classes = len(self.classes_)
        mass = np.stack([np.bincount(labels, weights=one, minlength=n_classes) for one in (*held, weight)])
        *aside, total = self._workers.total(mass)
        for one in aside:
            if one.sum() == 0 or (one[total > 0] >= total[total > 0]).any():
                raise ValueError(
                    'too few different rows to set some aside with engine="xgboost", which goes by what they contain: '
                    "give X_val and y_val, or settings and rounds, or use the compiled engine"
                )

    def _told(self, progress: Progress) -> bool:
        answers = [callback(progress) for callback in self.callbacks]
        return any(self._workers.all_of(any(answers)))

    def _noise(self) -> Untwisting:
        """The noise that posteriors of rows show to models that have not seen them."""
        unseen, n_classes = self._unseen, len(self.classes_)
        if n_classes == 2:
            known = self.noise_rates is not None and not _is_auto(self.noise_rates)
            rates = self._known_rates() if known else None
            posterior = expit(self._log_odds(unseen.scores[:, 0]) - self._shift)
            posterior, labels, weight = _in_order(self._workers, posterior, self._unseen_labels, unseen.weight)
            return estimate_noise(posterior, labels, sample_weight=weight, rates=rates)
        posterior = self.link_.inverse(unseen.scores)
        bears = self._unseen_labels[:, None] == np.arange(n_classes)
        weight = np.repeat(unseen.weight / (n_classes - 1), n_classes)  # a row is counted once for every class
        posterior, bears, weight = _in_order(self._workers, posterior.ravel(), bears.ravel(), weight)
        return estimate_noise(posterior, bears, sample_weight=weight, n_classes=n_classes)

    @property
    def oof_proba_(self) -> Array:
        """The twisted posterior of every training row; the mean where several folds had a part of it."""
        if getattr(self, "_trained_on", None) is None:
            raise AttributeError(f"this {type(self).__name__} has not chosen anything by folds")
        scores = self._unseen.mean_scores()
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        return self._probabilities(self.link_.inverse(scores), scores)

    def _menon(self, X: Any, labels: NDArray[np.uint32], weight: Array) -> MenonEstimate:
        if len(self.classes_) > 2:
            raise ValueError('alpha="menon" is for two classes')
        if isinstance(X, Encoded):
            raise ValueError('alpha="menon" needs the table in memory, got Batches: give a number, or leave "auto"')
        rows = np.flatnonzero(weight)
        table = X[rows].toarray() if sparse.issparse(X) else X[rows]
        return menon(table, labels[rows], sample_weight=weight[rows], random_state=self._seed)

    def _is_menon(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "menon"

    def _given_alpha(self) -> Any:
        return 2.0 if _is_auto(self.alpha) else self.alpha

    def _check_noise_rates(self) -> None:
        if self.noise_rates is not None and not _is_auto(self.noise_rates):
            self._known_rates()

    def _refuse_rates_of_several_classes(self) -> None:
        if len(self.classes_) > 2 and self.noise_rates is not None and not _is_auto(self.noise_rates):
            raise ValueError('noise_rates must be None or "auto" where there are more than two classes')

    def _known_rates(self) -> tuple[float, float]:
        try:
            neg, pos = (fraction("noise_rates", rate) for rate in self.noise_rates)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f'noise_rates must be "auto", None or two numbers in [0, 1], got {self.noise_rates!r}'
            ) from error
        if neg + pos >= 1:
            raise ValueError(f"noise_rates must sum to less than 1, got {self.noise_rates!r}: swap the labels first")
        if not isinstance(self.alpha, str) and self.alpha < 0:
            raise ValueError(
                f"noise_rates must not be given with a negative alpha, got {self.alpha!r}: one turns labels"
            )
        return neg, pos

    def _by_edge(self) -> bool:
        return self.learning_rate is None and not (self._automatic() and _is_auto(self.step_size))

    def _depth(self) -> int:
        depth: Any = PLAIN_DEPTH if _is_auto(self.max_depth) else self.max_depth
        return 60 if depth is None else min(60, count("max_depth", depth))

    def _training_data(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, before: bool
    ) -> tuple[Any, NDArray[np.uint32], Array]:
        """X as numbers, y as class numbers, and the sample weights, class weights included."""
        X, y, sample_weight = map(tables.on_host, (X, y, sample_weight))
        refuse_missing(y)
        names = list(getattr(X, "column_names", getattr(X, "columns", [])))  # of Arrow, of pandas and polars
        if repeated := [name for name, times in Counter(names).items() if times > 1]:
            raise ValueError(f"X must have different names of columns, got {repeated} more than once")
        weight = None
        if sample_weight is not None:
            weight = self._weights_of(sample_weight, X, ensure_non_negative=True)
        if isinstance(X, Batches) and not (self._grows_forests() and self.tree_method == "hist"):
            raise ValueError('only the compiled engine and XGBoost with "hist" learn from Batches')
        self._agree_on_columns(names, X)
        if before:
            schema = self._schema
        elif isinstance(X, Batches):
            schema = X.learn(self.categorical_features, sample_weight=weight)
        else:
            schema = tables.learn(X, self.categorical_features, sample_weight=weight, workers=self._workers)
        if schema.categories and not self._grows_forests():
            holding = [names[column] if names else column for column in schema.categories]
            raise ValueError(
                f"only the compiled engine knows categories, but columns {holding} hold some: encode them, say with "
                "OrdinalEncoder"
            )
        if before:
            numbers, labels = self._rows_of(X), self._class_numbers("y", y)
            check_consistent_length(numbers, labels)
        else:
            if isinstance(X, Batches):
                numbers, y, X = X.encoded(schema, self._checked), _check_y(y, estimator=self), X.head
                check_consistent_length(numbers, y)
                _check_n_features(self, numbers, reset=True)
            else:
                with np.errstate(invalid="ignore"):  # it sums X, where infinities of both signs may come about
                    numbers, y = validate_data(self, schema.encode(X), y, **self._checks())
            _check_feature_names(self, X, reset=True)
            self.classes_, labels = classes_of(y, self._workers)
        self._schema = schema
        if weight is None:
            weight = np.broadcast_to(1.0, len(labels))  # no memory for what is all the same
        self._class_weights = np.ones(len(self.classes_))
        mass = self._workers.total(np.bincount(labels, weights=weight, minlength=len(self.classes_)))
        if self.class_weight is not None:
            self._class_weights = class_weights(self.class_weight, self.classes_, mass)
            weight = weight * self._class_weights[labels]
        if np.count_nonzero((mass > 0) & (self._class_weights > 0)) < 2:
            raise ValueError("y must have two classes among the rows with positive sample_weight and class_weight")
        return numbers, labels, weight

    def _weights_of(self, weight: ArrayLike | None, X: Any, **options: Any) -> Array:
        """Sample weights, checked; those of one worker among several may well all be 0."""
        if self._workers.size > 1 and weight is not None and not np.any(weight):
            return np.asarray(0.0 * _check_sample_weight(np.ones_like(weight), X, dtype=np.float64))
        return np.asarray(_check_sample_weight(weight, X, dtype=np.float64, **options))

    def _agree_on_columns(self, names: list[Any], X: Any) -> None:
        workers = self._workers
        if workers.size == 1:
            return
        if any(workers.all_of(isinstance(X, Batches))):
            raise ValueError("Batches are for one worker: give each of several its rows as a table")
        if len({repr(columns) for columns in workers.all_of((names or np.shape(X)[1:], sparse.issparse(X)))}) > 1:
            raise ValueError("the workers must have the same columns, in the same order, all sparse or all dense")

    def _sample(
        self,
        X: Any,
        labels: NDArray[np.uint32],
        weight: Array,
        X_val: Any,
        y_val: Any,
        sample_weight_val: ArrayLike | None,
    ) -> _Sample:
        """The rows that train, and those that the loss is followed on."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val must come with X_val and y_val")
        watch, rows = None, len(labels)
        if X_val is not None:
            try:
                X_val, y_val = self._rows_of(X_val), self._class_numbers("y_val", y_val)
            except ValueError as error:
                raise ValueError(f"validation rows: {error}") from error
            if X_val.shape[0] != len(y_val):
                raise ValueError(f"X_val and y_val must have as many rows, got {X_val.shape[0]} and {len(y_val)}")
            own = self._weights_of(sample_weight_val, X_val)
            if not ((own >= 0).all() and (own.any() or self._workers.size > 1)):
                raise ValueError("sample_weight_val must be finite and non-negative, not all 0")
            if isinstance(X, Encoded):
                X = X.followed_by(X_val.toarray() if sparse.issparse(X_val) else X_val)
            elif isinstance(X_val, Encoded):
                raise ValueError("X_val must be in memory if X is")
            elif sparse.issparse(X):
                X = sparse.vstack([X, X_val], "csr")
            else:
                X = np.concatenate([X, X_val.toarray() if sparse.issparse(X_val) else X_val])
            labels, watch = np.concatenate([labels, y_val]), np.concatenate([np.zeros(rows), own])
            weight = np.concatenate([weight, np.zeros(len(y_val))])
        if any(self._workers.all_of(watch is not None)) and watch is None:
            watch = np.zeros(rows)  # other workers have rows to validate
        data, held = None, np.zeros(rows)
        drawing = self.early_stopping and watch is None and not self._automatic()
        if self._grows_forests() or drawing:
            data = self._dataset(X, labels, weight)
        if drawing and data is not None:
            share = self._share_to_hold_out(labels, weight)
            if self._engine() == "xgboost":
                held = drawn_share(data.hashes(), share, self._seed)
                self._refuse_poor_draw(np.stack([weight * held]), labels, weight)
            else:
                held = hold_out(data.hashes(), labels, weight, share, self._seed)
            weight, watch = weight * (1.0 - held), weight * held
        own = weight[:rows]
        own = np.sort(own) if (own % 1.0 != 0).any() else own  # so that their order does not matter to the sum
        total = self._workers.total(np.array([float(np.count_nonzero(own)), float(own.sum())]))
        return _Sample(X, labels, weight, watch, data, held, min(float(total.max()), 2.0**53))

    def _dataset(self, X: Any, labels: NDArray[np.uint32], weight: Array) -> Any:
        """The rows as the engine has them; for another weak learner those of the compiled engine, to tell copies."""
        max_bins = count("max_bins", self.max_bins, low=2, high=255)
        categories = {column: len(known) for column, known in self._schema.categories.items()}
        if self._engine() != "xgboost":
            return trees.dataset(X, labels, weight, categories=categories, max_bins=max_bins, n_jobs=self.n_jobs)
        if self.tree_method not in TREE_METHODS:
            raise ValueError(f"tree_method must be one of {TREE_METHODS}, got {self.tree_method!r}")
        if not isinstance(self.device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got {self.device!r}')
        if self.min_samples_leaf != 1:
            raise ValueError(f'min_samples_leaf must be 1 with engine="xgboost", got {self.min_samples_leaf!r}')
        limited = self.max_leaf_nodes is not None or self.max_depth is None or max_bins < 255
        if self.tree_method == "exact" and limited:
            raise ValueError('tree_method="exact" needs a max_depth and knows neither max_leaf_nodes nor max_bins')
        return engine.Dataset(
            X,
            labels,
            weight,
            categories=categories,
            max_bins=max_bins,
            tree_method=self.tree_method,
            device=self.device,
            n_jobs=self.n_jobs,
            workers=self._workers,
        )

    def _share_to_hold_out(self, labels: NDArray[np.uint32], weight: Array) -> float:
        share = real("validation_fraction", self.validation_fraction, low=0.0, open_low=True)
        if share >= 1:
            raise ValueError(f"validation_fraction must be below 1, got {share}")
        n_classes = len(self.classes_)
        masses = [np.bincount(labels, weights=one, minlength=n_classes) for one in (weight > 0, weight)]
        counts = np.maximum(*self._workers.total(np.stack(masses)))
        rows, smallest = int(counts.sum()), int(counts[counts > 0].min())
        if smallest < 2 or rows * min(share, 1.0 - share) < 2:
            raise ValueError(
                f"early_stopping cannot hold out {share:g} of {rows} rows, {smallest} in the smallest class: "
                "give X_val and y_val, or more rows"
            )
        return share

    def _forest_runs(
        self, sample: _Sample, link: Link, step_size: float, before: list[Ensemble] | None
    ) -> list[CompiledRun]:
        growth, n_features = self._growth(), sample.X.shape[1]
        runs = []
        for index, label in enumerate(self._positive_classes()):
            start = None if before is None else before[index].scores(sample.X, self.n_jobs)
            booster = self._booster(
                sample,
                link,
                step_size,
                growth,
                label,
                weight=sample.weight,
                watch=sample.watch,
                start=start,
                first_round=0 if before is None else len(before[index]),
            )
            earlier = np.zeros(0)
            if before is not None and len(before[index].losses) == len(before[index]):
                earlier = before[index].losses  # of rounds that early stopping has not cut off
            runs.append(CompiledRun(booster, n_features, trees.threads(self.n_jobs), earlier))
        return runs

    def _booster(
        self, sample: _Sample, link: Link, step: float, growth: trees.Growth, label: int, **rows: Any
    ) -> _core.Booster:
        """One class against the rest; `rows` says which rows train, which are watched, and where they start."""
        least = 1.0 / (sample.n_samples + 2.0)
        by_edge = self._by_edge()
        made: Any = trees.booster if self._engine() == "compiled" else engine.Booster
        return made(  # type: ignore[no-any-return]
            sample.data, link, step, growth, by_edge=by_edge, least=least, positive_class=label, **rows
        )

    def _growth(self) -> trees.Growth:
        leaves = self.max_leaf_nodes
        return trees.Growth(
            max_depth=self._depth(),
            max_leaf_nodes=None if leaves is None else count("max_leaf_nodes", leaves, low=2),
            min_samples_leaf=count("min_samples_leaf", self.min_samples_leaf),
            min_weight_fraction_leaf=self._least_share(),
            l2=non_negative("l2", self._given(self.l2, plain=0.0, chosen=1.0)),
            subsample=share("subsample", self._given(self.subsample, plain=1.0, chosen=0.7)),
            max_features=share("max_features", self._given(self.max_features, plain=1.0, chosen=0.7)),
            seed=self._seed,
            monotone=self._monotone(),
        )

    def _given(self, value: Any, *, plain: float, chosen: float) -> Any:
        """A setting as it is, or what "auto" stands for in a plain fit, and where something is chosen from the data."""
        return value if not _is_auto(value) else chosen if self._automatic() else plain

    def _least_share(self) -> float:
        share = real("min_weight_fraction_leaf", self.min_weight_fraction_leaf, low=0.0)
        if share > 0.5:
            raise ValueError(f"min_weight_fraction_leaf must lie in [0, 0.5], got {self.min_weight_fraction_leaf!r}")
        return share

    def _monotone(self) -> tuple[int, ...]:
        if self.monotonic_cst is None:
            return ()
        directions = _check_monotonic_cst(self, self.monotonic_cst)
        if not np.any(directions):
            return ()
        if len(self.classes_) > 2:
            raise ValueError("monotonic_cst must be None where there are more than two classes")
        for column in self._schema.categories:
            if directions[column]:
                name = getattr(self, "feature_names_in_", range(self.n_features_in_))[column]
                raise ValueError(f"monotonic_cst must be 0 for column {name!r}, which holds categories")
        turned = not isinstance(self.alpha, str) and _turns_over(self._link_at(self.alpha))
        return tuple(int(-direction if turned else direction) for direction in directions)

    def _reference_runs(
        self, sample: _Sample, link: Link, step_size: float, before: list[Ensemble] | None
    ) -> list[ReferenceRun]:
        learner = self._weak_learner()
        train = np.flatnonzero(sample.weight)
        watched = np.zeros(0, dtype=np.intp) if sample.watch is None else np.flatnonzero(sample.watch)
        runs = []
        for index, label in enumerate(self._positive_classes()):
            signs = np.where(sample.labels == label, 1.0, -1.0)
            start = np.zeros(len(signs)) if before is None else before[index].scores(sample.X)
            rng = np.random.default_rng([self._seed, index, 0 if before is None else len(before[index])])
            rounds = pilboost(
                sample.X[train],
                signs[train],
                learner,
                link,
                step_size,
                sample_weight=sample.weight[train],
                by_edge=self._by_edge(),
                start=start[train],
                rng=rng,
            )
            loss = None
            if sample.watch is not None:
                own, least = sample.watch[watched], 1.0 / (sample.n_samples + 2.0)
                loss = ValidationLoss(sample.X[watched], signs[watched], link, own, start=start[watched], least=least)
            runs.append(ReferenceRun(rounds, loss))
        return runs

    def _positive_classes(self) -> list[int]:
        """One problem for two classes, one against the rest each for more."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _check_flags(self) -> None:
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise ValueError(f"early_stopping must be True or False, got {self.early_stopping!r}")
        if not isinstance(self.warm_start, (bool, np.bool_)):
            raise ValueError(f"warm_start must be True or False, got {self.warm_start!r}")
        if not isinstance(self.callbacks or [], (list, tuple)) or not all(map(callable, self.callbacks or [])):
            raise ValueError(f"callbacks must be a list of functions, got {self.callbacks!r}")

    def _rounds_and_patience(self) -> tuple[int, int]:
        self._check_flags()
        patience = count("n_iter_no_change", self.n_iter_no_change) if self.early_stopping else 0
        rounds: Any = PLAIN_ROUNDS if _is_auto(self.n_estimators) else self.n_estimators
        return count("n_estimators", rounds), patience

    def _engine(self) -> str:
        if self.engine not in ("auto", "compiled", "xgboost", "reference"):
            raise ValueError(f'engine must be "auto", "compiled", "xgboost" or "reference", got {self.engine!r}')
        if self.engine != "auto" and self.estimator is not None:
            raise ValueError(f"engine={self.engine!r} and estimator= exclude each other: give one of them")
        if self.engine != "xgboost":
            for name, default in _XGBOOST_ONLY.items():
                if getattr(self, name) != default:
                    raise ValueError(f'{name}={getattr(self, name)!r} needs engine="xgboost"')
        if self.engine != "auto":
            return self.engine
        return "compiled" if self.estimator is None and self.loss is None else "reference"

    def _grows_forests(self) -> bool:
        return self._engine() != "reference"

    @property
    def _workers(self) -> Workers:
        """Who has a part of the rows: this process, or all workers of XGBoost's communicator."""
        return collective.present() if self.engine == "xgboost" else ALONE

    def _step_size(self, link: Link) -> float:
        if _is_auto(self.step_size):
            if self.learning_rate is not None:
                return positive("learning_rate", self.learning_rate)
            return default_step_size(link)
        if self.learning_rate is not None:
            raise ValueError("step_size and learning_rate exclude each other: give one of them")
        if self.step_size is None or isinstance(self.step_size, str):
            raise ValueError(f'step_size must be a number > 0 or "auto", got {self.step_size!r}')
        return positive("step_size", self.step_size)

    def _link_at(self, alpha: Any) -> Link:
        if isinstance(alpha, str) or alpha is None:
            raise ValueError(f'alpha must be a number, "auto" or "menon", got {alpha!r}')
        loss = AlphaLoss(alpha) if self.loss is None else self.loss
        if self.link not in ("clipped", "exact"):
            raise ValueError(f'link must be "clipped" or "exact", got {self.link!r}')
        return ClippedLink(loss) if self.link == "clipped" else CanonicalLink(loss)

    def _weak_learner(self) -> WeakLearner:
        for name, default in _COMPILED_ONLY.items():
            value = getattr(self, name)
            if value is not default and (default is None or value != default):
                raise ValueError(f"only the compiled engine knows {name}, got {name}={value!r}")
        if self.estimator is None:
            depth: Any = PLAIN_DEPTH if _is_auto(self.max_depth) else self.max_depth
            leaves = self.max_leaf_nodes
            return DecisionTreeRegressor(  # type: ignore[no-any-return]  # untyped
                max_depth=None if depth is None else count("max_depth", depth),
                max_leaf_nodes=None if leaves is None else count("max_leaf_nodes", leaves, low=2),
                min_samples_leaf=count("min_samples_leaf", self.min_samples_leaf),
                min_weight_fraction_leaf=self._least_share(),
            )
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")
        ):
            raise ValueError(f"estimator must be an object with fit and predict, got {self.estimator!r}")
        return self.estimator  # type: ignore[no-any-return]  # just checked

    # ---- tables ----

    def _checks(self) -> dict[str, Any]:
        """What scikit-learn is to check of X."""
        takes = self._takes()
        kinds: Any = [np.float64, np.float32]  # either, as it comes
        if not self._grows_forests():
            kinds = (
                np.float32 if self.estimator is None else np.float64
            )  # what the trees of scikit-learn work on anyway
        return {
            "dtype": kinds,
            "ensure_all_finite": "allow-nan" if takes["allow_nan"] else True,
            "accept_sparse": ["csr", "csc"] if takes["sparse"] else False,
        }

    def _takes(self) -> dict[str, bool]:
        """Which tables the engine takes."""
        if self.estimator is None and self.loss is None and self.engine != "reference":
            return {"allow_nan": True, "sparse": True}
        learner = DecisionTreeRegressor() if self.estimator is None else self.estimator
        tags = get_tags(learner).input_tags if hasattr(learner, "__sklearn_tags__") else None
        return {name: tags is not None and getattr(tags, name) for name in ("allow_nan", "sparse")}

    def _rows(self, X: Any) -> Any:
        """X as numbers, checked against what `fit` saw."""
        if self._plain(X):
            return X
        check_is_fitted(self, "_ensembles")
        return self._rows_of(X)

    def _rows_of(self, X: Any) -> Any:
        in_blocks = isinstance(X, Batches)
        _check_feature_names(self, X.head if in_blocks else X, reset=False)
        numbers = X.encoded(self._schema, self._checked) if in_blocks else self._checked(self._schema.encode(X))
        _check_n_features(self, numbers, reset=False)
        return numbers

    def _checked(self, numbers: Any) -> Any:
        with np.errstate(invalid="ignore"):  # it sums X, where infinities of both signs may come about
            return check_array(numbers, estimator=self, input_name="X", **self._checks())

    def _plain(self, X: Any) -> bool:
        """Whether X is an array that needs no checking but this, which takes a microsecond: the path of single rows."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in (np.float64, np.float32)
            and getattr(self, "_plain_columns", None) == X.shape[1]
            and X.size > 0
            and X.flags.c_contiguous
            and math.isfinite(X.min())  # no NaN, nothing infinite
            and math.isfinite(X.max())
        )

    @property
    def _plain_columns(self) -> int | None:
        """The number of columns, if they are all numbers without a name and go to the compiled trees."""
        plain = hasattr(self, "_ensembles") and not self._schema.categories and not hasattr(self, "feature_names_in_")
        return self.n_features_in_ if plain and self._ensembles[0].forest is not None else None

    def _class_numbers(self, name: str, y: Any) -> NDArray[np.uint32]:
        """Labels as indices of classes_."""
        y = column_or_1d(tables.on_host(y))
        try:
            unknown = np.setdiff1d(y, self.classes_)
        except TypeError as error:
            raise ValueError(f"{name} must hold labels of one kind, none missing ({error})") from error
        if unknown.size:
            raise ValueError(f"{name} has labels that the training labels have not: {unknown[:5]}")
        return np.asarray(np.searchsorted(self.classes_, y), dtype=np.uint32)

    # ---- prediction ----

    def decision_function(self, X: Any) -> Array:
        """Score of the clean posterior: positive where `predict` says classes_[1]; a column per class beyond two."""
        return self._oriented(self._scores(self._rows(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose clean posterior is largest; of two, classes_[0] at a score of exactly 0."""
        return self._decide(self.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """Clean posterior of every class, kept within [1/(n+2), 1 - 1/(n+2)].

        It is the twisted posterior untwisted by the noise that was estimated or given, else by alpha. Beyond the clip
        the estimate is exactly 0 or 1; by the rule of succession n rows cannot justify more. n is the number of
        training rows or their total weight, whichever is larger. More than two classes, each estimated against the
        rest, are scaled to sum to one.
        """
        return self._clean(self.decision_function(X))

    def predict_proba_twisted(self, X: Any) -> Array:
        """Posterior of every class as the twisted training labels follow it, within the same limits."""
        X = self._rows(X)
        scores = self._scores(X)
        return self._probabilities(self.link_.inverse(scores), scores)

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each round; a class whose rounds have ended keeps its scores."""
        X = self._rows(X)
        last: list[Array] = []
        for stage in zip_longest(*(one.staged_scores(X) for one in self._ensembles)):
            last = [old if new is None else new for old, new in zip_longest(last, stage)]
            yield self._oriented(last[0] if len(last) == 1 else np.column_stack(last))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each round."""
        return map(self._decide, self.staged_decision_function(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after each round."""
        return map(self._clean, self.staged_decision_function(X))

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf of every row in every tree of the compiled engine, as an index into the tree's nodes.

        A third axis has the classes where there are more than two; -1 where the rounds of a class have ended.
        """
        X = self._rows(X)
        leaves = np.full((X.shape[0], self.n_iter_, len(self._ensembles)), -1, dtype=np.int32)
        for index, one in enumerate(self._ensembles):
            if one.forest is None:
                raise ValueError("only the trees of the compiled engine have leaves to apply")
            leaves[:, : len(one), index] = one.forest.leaves(X, self.n_jobs)
        return leaves[:, :, 0] if len(self._ensembles) == 1 else leaves

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """y * H(x) of every row: how clearly the model agrees with its label; a column per class beyond two."""
        X, labels = self._rows(X), self._class_numbers("y", y)
        check_consistent_length(X, labels)
        scores = self._scores(X)
        signs = [np.where(labels == label, 1.0, -1.0) for label in self._positive_classes()]
        return np.asarray(scores * (signs[0] if len(signs) == 1 else np.column_stack(signs)))

    def weights(self, X: Any, y: ArrayLike) -> Array:
        """Boosting weight in [0, 1] of every row after the last round: how much of its label is yet to be learned.

        A column per class beyond two.
        """
        return self.link_.weights(self.margins(X, y))

    def _scores(self, X: Any) -> Array:
        if isinstance(X, Encoded):
            return np.concatenate([self._scores(block) for _, block in trees.row_blocks(X)])
        scores = [one.scores(X, self.n_jobs) for one in self._ensembles]
        return scores[0] if len(scores) == 1 else np.column_stack(scores)

    def _oriented(self, scores: Array) -> Array:
        """Scores of the clean posterior: those of the boosted trees, or the log-odds that noise rates make of them."""
        if self._untwisting is None:
            return -scores if _turns_over(self.link_) else scores  # a negative alpha complements the clean posterior
        beyond = 1e-6 * scores / (1.0 + np.abs(scores))  # beyond the clip the scores still tell which is larger
        return self._untwisting.clean_log_odds(self._log_odds(scores) + beyond - self._shift) + self._shift

    def _log_odds(self, scores: Array) -> Array:
        """The log-odds of the twisted posterior, within its limits."""
        least = 1.0 / (self._n_samples + 2.0)
        return np.asarray(logit(np.clip(self.link_.inverse(scores), least, 1.0 - least)))

    @property
    def _shift(self) -> float:
        """What class weights add to the log-odds; noise is a matter of the labels as they are."""
        if len(self.classes_) > 2 or not (self._class_weights > 0).all():
            return 0.0
        return float(np.log(self._class_weights[1] / self._class_weights[0]))

    def _decide(self, scores: Array) -> NDArray[Any]:
        return np.asarray(self.classes_[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)])

    def _clean(self, scores: Array) -> Array:
        if self._untwisting is not None:
            return self._probabilities(expit(scores), scores)
        return self._probabilities(self.link_.tilted(-scores if _turns_over(self.link_) else scores), scores)

    def _probabilities(self, positive_class: Array, scores: Array) -> Array:
        least = 1.0 / (self._n_samples + 2.0)
        p = np.clip(positive_class, least, 1.0 - least)
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        p = p + 1e-6 * least * scores / (1.0 + np.abs(scores))  # beyond the clip the scores still tell which is larger
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    # ---- what was learned ----

    @property
    def estimators_(self) -> Any:
        """Weak hypotheses, one per round."""
        return self._of_ensembles("hypotheses")

    @property
    def leverages_(self) -> Any:
        """Their coefficients."""
        return self._of_ensembles("leverages")

    @property
    def edges_(self) -> Any:
        """Their edges."""
        return self._of_ensembles("edges")

    @property
    def forest_(self) -> Any:
        """The trees of the compiled engine as arrays."""
        return self._of_ensembles("forest")

    @property
    def evals_result_(self) -> dict[str, dict[str, Any]]:
        """Loss and error of the validation rows after each round."""
        losses, errors = self._of_ensembles("losses"), self._of_ensembles("errors")
        return {"validation": {"log_loss": losses, "error": errors}} if len(self._ensembles[0].losses) else {}

    def _of_ensembles(self, name: str) -> Any:
        if not hasattr(self, "_ensembles"):
            raise AttributeError(f"this {type(self).__name__} has no {name} yet: call fit first")
        found = [getattr(one, name) for one in self._ensembles]
        return found[0] if len(found) == 1 else found

    @property
    def feature_importances_(self) -> Array:
        """The paper's importances: sum over rounds of leverage times the tree's impurity importances, normalised."""
        return self.importances("paper")

    def importances(self, kind: str = "paper") -> Array:
        """How much each column contributes, as shares: "paper", "gain" of all its splits, or the number of "splits"."""
        check_is_fitted(self, "_ensembles")
        if kind not in ("paper", "gain", "splits"):
            raise ValueError(f'kind must be "paper", "gain" or "splits", got {kind!r}')
        total = np.zeros(self.n_features_in_)
        for one in self._ensembles:
            if kind == "paper":
                for leverage, hypothesis in one.rounds():
                    total += abs(leverage) * hypothesis.feature_importances_  # type: ignore[attr-defined]
                continue
            if one.forest is None:
                raise ValueError(f'kind={kind!r} needs the trees of the compiled engine: ask for kind="paper"')
            inner = one.forest.feature >= 0
            amount = one.forest.gain[inner] if kind == "gain" else np.ones(inner.sum())
            total += np.bincount(one.forest.feature[inner], weights=amount, minlength=len(total))
        return total / total.sum() if total.sum() else total

    def certificate(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
        """The convergence certificate of this fit; takes the very data that `fit` was given. Two classes only."""
        check_is_fitted(self, "_ensembles")
        if len(self._ensembles) > 1:
            raise ValueError("a certificate is for two classes")
        if not self._by_edge():
            raise ValueError("a certificate is for the paper's steps: learning_rate=None and nothing chosen by folds")
        if self._given(self.subsample, plain=1.0, chosen=0.7) != 1.0 and self._ensembles[0].forest is not None:
            raise ValueError("a certificate is for rounds that see all rows: subsample=1")
        X, labels = self._rows(X), self._class_numbers("y", y)
        if not X.shape[0] == len(labels) == self._n_rows:
            raise ValueError(
                f"X and y must be the {self._n_rows} rows that fit was given, got {X.shape[0]} and {len(labels)}"
            )
        weight = np.ones(len(labels)) if sample_weight is None else np.array(_check_sample_weight(sample_weight, X))
        if self.class_weight is not None:
            weight = weight * self._class_weights[labels]
        weight[self.validation_rows_] *= 1.0 - self._validation_shares
        rows = np.flatnonzero(weight)
        signs = np.where(labels[rows] == 1, 1.0, -1.0)
        return certify(
            self._replay(X[rows], signs, weight[rows]), self.link_, self.step_size_, sample_weight=weight[rows]
        )

    def _replay(self, X: Any, signs: Array, weight: Array) -> Iterator[Round]:
        """The rounds of the fit again, from its hypotheses."""
        margins = np.zeros(len(signs))
        rounding = 2.0**-17 * len(weight) * weight.max() / weight.sum()  # of the compiled engine's weights
        for index, (leverage, hypothesis) in enumerate(self._ensembles[0].rounds()):
            weights, agreement = self.link_.weights(margins), signs * hypothesis.predict(X)
            edge = float(np.average(weights * agreement, weights=weight))
            if not np.isclose(edge, self.edges_[index], rtol=1e-3, atol=1e-6 + rounding):
                raise ValueError("X, y and sample_weight must be the data that fit was given: the edges differ")
            margins = margins + leverage * agreement
            yield Round(index, hypothesis, self.edges_[index], leverage, weights, agreement, margins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for name, value in self._takes().items():
            setattr(tags.input_tags, name, value)
        tags.input_tags.categorical = tags.input_tags.allow_nan and self.estimator is None
        return tags


#: Settings that play no part in another engine, with their defaults.
_XGBOOST_ONLY = {"tree_method": "hist", "device": "cpu"}
_COMPILED_ONLY = {
    "l2": "auto",
    "subsample": "auto",
    "max_features": "auto",
    "max_bins": 255,
    "monotonic_cst": None,
}


@dataclass(frozen=True)
class _Sample:
    """Training rows, then the validation rows that were given; `held` is what was held out of the former."""

    X: Any
    labels: NDArray[np.uint32]
    weight: Array
    watch: Array | None
    data: Any
    held: Array
    n_samples: float  # the number of training rows or their total weight, whichever is larger


def _in_order(workers: Workers, *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """The rows of all workers, in an order that does not depend on who had them; those of one worker as they are."""
    if workers.size == 1:
        return list(columns)
    joined = [np.concatenate(parts) for parts in zip(*workers.all_of(columns), strict=True)]
    order = np.lexsort(joined[::-1])
    return [column[order] for column in joined]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _turns_over(link: Link) -> bool:
    """Whether the clean posterior is the complement of the twisted one: a negative alpha."""
    return isinstance(link.loss, AlphaLoss) and link.loss.alpha < 0
