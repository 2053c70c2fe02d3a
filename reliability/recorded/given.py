"""Fits whose settings are all given: the paper's algorithm, with each setting that changes its numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.tree import DecisionTreeRegressor

from reliability.recorded.cases import Outputs, case, import_or_skip
from reliability.recorded.outputs import describe_fit, describe_noise, pick
from reliability.recorded.tables import draw_classes, draw_groups, draw_mixed_columns, draw_two, draw_weights
from untwist import Growth, PILBoostClassifier
from untwist.batches import Batches
from untwist.explain import explain
from untwist.losses import FocalLoss, LogLoss, MatusitaLoss, SquareLoss
from untwist.noise import menon

#: Rounds begin at the base rate.
FROM_PRIOR = Growth(init="prior")


# ---- alpha, steps and where rounds begin ----


@case
def paper() -> Outputs:
    """As in the paper: alpha 2, from a score of 0."""
    X, y, _ = draw_two()
    return describe_fit(PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=3).fit(X, y), X)


@case
def prior() -> Outputs:
    """From the base rate, which is the default."""
    X, y, _ = draw_two()
    return describe_fit(PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=3, growth=FROM_PRIOR).fit(X, y), X)


@case
def alpha_of_a_half() -> Outputs:
    """Below 1, where losses grow faster than the log-loss."""
    X, y, _ = draw_two()
    return describe_fit(PILBoostClassifier(alpha=0.5, n_estimators=20, max_depth=3).fit(X, y), X)


@case
def alpha_of_one() -> Outputs:
    """The log-loss, which believes every label."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=1.0, n_estimators=20, max_depth=3)
    return describe_fit(model.fit(X, y), X)


@case
def alpha_of_eleven_tenths() -> Outputs:
    """The paper's smallest alpha."""
    X, y, _ = draw_two()
    return describe_fit(PILBoostClassifier(alpha=1.1, n_estimators=20, max_depth=3).fit(X, y), X)


@case
def alpha_of_four() -> Outputs:
    """The paper's largest alpha."""
    X, y, _ = draw_two()
    return describe_fit(PILBoostClassifier(alpha=4.0, n_estimators=20, max_depth=3).fit(X, y), X)


@case
def negative_alpha() -> Outputs:
    """Labels most of which are wrong."""
    X, y, _ = draw_two(rates=(0.8, 0.7))
    return describe_fit(PILBoostClassifier(alpha=-2.0, n_estimators=20, max_depth=3).fit(X, y), X)


@case
def infinite_alpha() -> Outputs:
    """The limit, where weights do not change."""
    X, y, _ = draw_two()
    return describe_fit(PILBoostClassifier(alpha=np.inf, n_estimators=10, max_depth=3).fit(X, y), X)


@case
def menons_alpha() -> Outputs:
    """Alpha by the paper's estimate of the noise, and that estimate."""
    X, y, _ = draw_two()
    outputs = describe_fit(
        PILBoostClassifier(alpha="menon", n_estimators=20, max_depth=3, random_state=0, growth=FROM_PRIOR).fit(X, y),
        X,
    )
    estimate = menon(X, y)
    return outputs | describe_noise(estimate) | {"estimate": [estimate.alpha, estimate.rate, estimate.eta_mean]}


@case
def step_size() -> Outputs:
    """A step of one's own."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=1.1, step_size=3.0, n_estimators=20, max_depth=3)
    return describe_fit(model.fit(X, y), X)


@case
def learning_rate() -> Outputs:
    """The same coefficient for every tree."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=2.0, learning_rate=0.2, n_estimators=20, max_depth=3)
    return describe_fit(model.fit(X, y), X)


@case
def exact_link() -> Outputs:
    """The canonical link."""
    X, y, _ = draw_two()
    return describe_fit(
        PILBoostClassifier(alpha=2.0, link="exact", n_estimators=20, max_depth=3, growth=FROM_PRIOR).fit(X, y),
        X,
    )


@case
def logit_link() -> Outputs:
    """Scores that are log-odds."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, link="logit", learning_rate=0.3, n_estimators=20, max_depth=3, growth=FROM_PRIOR
    )
    return describe_fit(model.fit(X, y), X)


@case
def initial_scores() -> Outputs:
    """What is to be added to the scores of another model."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=1.1, n_estimators=15, max_depth=3, growth=FROM_PRIOR)
    return describe_fit(model.fit(X, y, init_score=0.5 * X[:, 0]), X)


# ---- other losses, learners and engines ----


@case
def square_loss() -> Outputs:
    """A loss that is proper."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(loss=SquareLoss(), n_estimators=10, max_depth=3, random_state=0)
    return describe_fit(model.fit(X, y), X)


@case
def log_loss() -> Outputs:
    """The log-loss, which is the alpha-loss at 1."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(loss=LogLoss(), n_estimators=10, max_depth=3, random_state=0, growth=FROM_PRIOR)
    return describe_fit(model.fit(X, y), X)


@case
def matusita_loss() -> Outputs:
    """A loss that is infinite at the wrong end."""
    X, y, _ = draw_two(300)
    model = PILBoostClassifier(loss=MatusitaLoss(), n_estimators=8, max_depth=3, random_state=0)
    return describe_fit(model.fit(X, y), X)


@case
def focal_loss() -> Outputs:
    """A loss that is not proper."""
    X, y, _ = draw_two(300)
    model = PILBoostClassifier(loss=FocalLoss(2.0), n_estimators=8, max_depth=3, random_state=0)
    return describe_fit(model.fit(X, y), X)


@case
def estimator() -> Outputs:
    """A weak learner of one's own."""
    X, y, _ = draw_two()
    weak = DecisionTreeRegressor(max_depth=2, min_samples_leaf=5, random_state=0)
    model = PILBoostClassifier(alpha=2.0, estimator=weak, n_estimators=20, max_depth=3, random_state=0)
    return describe_fit(model.fit(X, y), X)


@case
def reference_engine() -> Outputs:
    """The literal loop over trees of scikit-learn."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=2.0, engine="reference", n_estimators=20, max_depth=3, random_state=0)
    return describe_fit(model.fit(X, y), X)


@case
def xgboost_engine() -> Outputs:
    """Trees that XGBoost grows from bins."""
    import_or_skip("xgboost")
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, engine="xgboost", n_estimators=20, max_depth=3, random_state=0, growth=FROM_PRIOR
    )
    return describe_fit(model.fit(X, y), X)


@case
def xgboost_engine_exact() -> Outputs:
    """Trees that XGBoost grows from numbers, of three classes."""
    import_or_skip("xgboost")
    X, y, _ = draw_classes()
    model = PILBoostClassifier(
        alpha=1.1,
        engine="xgboost",
        n_estimators=10,
        max_depth=3,
        random_state=0,
        growth=Growth(init="prior", tree_method="exact"),
    )
    return describe_fit(model.fit(X, y), X)


# ---- how trees grow ----


@case
def leaf_by_leaf() -> Outputs:
    """The best split first, with limits to leaves."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0,
        n_estimators=20,
        max_depth=None,
        max_leaf_nodes=9,
        min_samples_leaf=5,
        growth=Growth(min_weight_fraction_leaf=0.01),
    )
    return describe_fit(model.fit(X, y), X)


@case
def shrunken_leaves() -> Outputs:
    """Leaves of few rows count less."""
    X, y, _ = draw_two()
    return describe_fit(
        PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=4, growth=Growth(init="prior", l2=3.0)).fit(X, y), X
    )


@case
def drawn_rows() -> Outputs:
    """Half of the rows for every tree."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, n_estimators=20, max_depth=3, random_state=0, growth=Growth(init="prior", subsample=0.5)
    )
    return describe_fit(model.fit(X, y), X)


@case
def drawn_columns() -> Outputs:
    """Half of the columns for every tree, by weights."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0,
        n_estimators=20,
        max_depth=3,
        random_state=0,
        growth=Growth(init="prior", max_features=0.5, feature_weights=[1, 2, 3, 4, 5, 0]),
    )
    return describe_fit(model.fit(X, y), X)


@case
def random_thresholds() -> Outputs:
    """One split of each column, drawn at random."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, n_estimators=20, max_depth=4, random_state=0, growth=Growth(init="prior", extra_trees=True)
    )
    return describe_fit(model.fit(X, y), X)


@case
def few_bins() -> Outputs:
    """Columns with more values than bins."""
    X, y, _ = draw_two()
    return describe_fit(
        PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, max_bins=16, growth=FROM_PRIOR).fit(X, y),
        X,
    )


@case
def monotone_columns() -> Outputs:
    """Scores that may only rise with one column, and fall with another."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, n_estimators=20, max_depth=4, monotonic_cst=[1, -1, 0, 0, 0, 0], growth=FROM_PRIOR
    )
    return describe_fit(model.fit(X, y), X)


@case
def interactions() -> Outputs:
    """Columns that may meet in a tree."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0, n_estimators=20, max_depth=4, interaction_cst=[{0, 1}, {2, 3, 4}], growth=FROM_PRIOR
    )
    return describe_fit(model.fit(X, y), X)


# ---- tables ----


@case
def categories() -> Outputs:
    """A data frame with few and many categories, and gaps."""
    X, y, _ = draw_mixed_columns()
    return describe_fit(
        PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=4, random_state=0, growth=FROM_PRIOR).fit(X, y),
        X,
    )


@case
def sparse_table() -> Outputs:
    """A sparse matrix."""
    X, y, _ = draw_two()
    X = csr_array(np.where(np.abs(X) < 1.0, 0.0, X))
    return describe_fit(PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, growth=FROM_PRIOR).fit(X, y), X)


@case
def table_in_a_file() -> Outputs:
    """Blocks of a Parquet file."""
    import_or_skip("pyarrow")
    X, y, _ = draw_two()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        pd.DataFrame(X, columns=list("abcdef")).assign(label=y).to_parquet(path)
        table = Batches(path)
        model = PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, growth=FROM_PRIOR)
        return describe_fit(model.fit(table.drop("label"), table.column("label")), X)


# ---- weights, noise and classes ----


@case
def class_weights() -> Outputs:
    """Classes that weigh alike."""
    X, y, _ = draw_two(rates=(0.0, 0.5))
    model = PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, class_weight="balanced", growth=FROM_PRIOR)
    return describe_fit(model.fit(X, y), X)


@case
def sample_weights() -> Outputs:
    """Rows that weigh differently, some of them nothing."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, min_samples_leaf=4, growth=FROM_PRIOR)
    return describe_fit(model.fit(X, y, sample_weight=draw_weights(len(y))), X)


@case
def three_classes() -> Outputs:
    """Each class against the rest."""
    X, y, _ = draw_classes()
    return describe_fit(PILBoostClassifier(alpha=2.0, n_estimators=15, max_depth=3).fit(X, y), X)


# ---- when rounds end ----


@case
def early_stopping() -> Outputs:
    """Validation rows that are drawn."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=1.1, n_estimators=200, max_depth=4, early_stopping=True, random_state=0, growth=FROM_PRIOR
    )
    model.fit(X, y)
    losses = model.evals_result_["validation"]["log_loss"]
    return describe_fit(model, X) | {"losses": losses, "validation rows": model.validation_rows_}


@case
def early_stopping_by_group() -> Outputs:
    """Whole groups that are held out."""
    (X, y, _), patient = draw_groups()
    model = PILBoostClassifier(
        alpha=1.1, n_estimators=100, max_depth=3, early_stopping=True, random_state=0, growth=FROM_PRIOR
    )
    model.fit(X, y, groups=patient)
    return describe_fit(model, X) | {"validation rows": model.validation_rows_}


@case
def early_stopping_given_rows() -> Outputs:
    """Validation rows that are given, and a metric."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=1.1, n_estimators=200, max_depth=4, early_stopping=5, eval_metric="roc_auc", growth=FROM_PRIOR
    )
    model.fit(X[:350], y[:350], X_val=X[350:], y_val=y[350:], sample_weight_val=1.0 + np.arange(150) % 3)
    curves = model.evals_result_["validation"]
    return describe_fit(model, X) | {f"curve {name}": values for name, values in curves.items()}


@case
def early_stopping_three_classes() -> Outputs:
    """Each class stops by itself."""
    X, y, _ = draw_classes()
    model = PILBoostClassifier(
        alpha=1.1, n_estimators=100, max_depth=4, early_stopping=True, random_state=0, growth=FROM_PRIOR
    )
    return describe_fit(model.fit(X, y), X)


@case
def warm_start() -> Outputs:
    """Rounds that go on from those before."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0,
        n_estimators=10,
        max_depth=3,
        warm_start=True,
        random_state=0,
        growth=Growth(init="prior", subsample=0.7),
    )
    model.fit(X, y)
    return describe_fit(model.set_params(n_estimators=25).fit(X, y), X)


@case
def callback() -> Outputs:
    """Rounds that a callback ends."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(
        alpha=2.0,
        n_estimators=30,
        max_depth=3,
        callbacks=[lambda progress: progress.round >= 12],
        growth=FROM_PRIOR,
    )
    return describe_fit(model.fit(X, y), X)


# ---- what a model tells ----


@case
def rounds_and_leaves() -> Outputs:
    """Scores after each round, the leaves of rows, margins, weights, importances and the certificate."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=2.0, n_estimators=12, max_depth=3).fit(X, y)
    certificate = model.certificate(X, y)
    return {
        "scores of rounds": np.stack([pick(scores) for scores in model.staged_decision_function(X)]),
        "posterior of few rounds": pick(model.predict_proba(X, iteration_range=(2, 6))),
        "leaves": pick(model.apply(X)),
        "margins": pick(model.margins(X, y)),
        "weights": pick(model.weights(X, y)),
        "alpha of rows": pick(model.alpha_star(X)),
        "edges and leverages": [model.edges_, model.leverages_],
        "importances": [model.importances(kind) for kind in ("paper", "gain", "splits")],
        "certificate": [certificate.M, certificate.gamma, *certificate.mean_weights],
    }


@case
def contributions() -> Outputs:
    """What each column adds to a score."""
    X, y, _ = draw_mixed_columns(300)
    model = PILBoostClassifier(alpha=2.0, n_estimators=10, max_depth=3, random_state=0, growth=FROM_PRIOR).fit(X, y)
    found = explain(model, X)
    return {"values": pick(found.values), "base": found.base_values}
