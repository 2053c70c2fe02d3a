"""Fits that choose by folds: all that is left open, two classes and several, with all that `fit` can be told."""

from __future__ import annotations

import numpy as np

from reliability.recorded.cases import Outputs, case, import_or_skip
from reliability.recorded.outputs import describe_fit, pick
from reliability.recorded.tables import (
    cut_folds,
    decide,
    draw_classes,
    draw_groups,
    draw_mixed_columns,
    draw_sourced,
    draw_two,
    draw_votes,
    draw_weights,
    load_cancer,
    load_wines,
)
from untwist import UntwistClassifier

# ---- two classes ----


@case
def two_clean() -> Outputs:
    """Labels that nobody has changed."""
    X, y, _ = load_cancer()
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


@case
def two_class_noise() -> Outputs:
    """More wrong labels in one class."""
    X, y, _ = draw_two()
    model = UntwistClassifier(random_state=0).fit(X, y)
    chosen = model.choice_
    found = {"chosen": [chosen.best.loss, chosen.best.error, chosen.best.max_depth, chosen.best.n_rounds]}
    return describe_fit(model, X) | found | {"alpha of rows": pick(model.alpha_star(X))}


@case
def two_symmetric_noise() -> Outputs:
    """As many wrong labels in both classes."""
    X, y, _ = draw_two(600, rates=(0.2, 0.2), seed=3)
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


@case
def two_mostly_wrong() -> Outputs:
    """Most labels of a class are wrong."""
    X, y, _ = draw_two(rates=(0.02, 0.6), seed=2)
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


@case
def two_monotone() -> Outputs:
    """A column that scores may only rise with."""
    X, y, _ = draw_two()
    return describe_fit(UntwistClassifier(monotonic_cst=[1, 0, 0, 0, 0, 0], random_state=0).fit(X, y), X)


@case
def two_xgboost_engine() -> Outputs:
    """Trees that XGBoost grows."""
    import_or_skip("xgboost")
    X, y, _ = draw_two()
    model = UntwistClassifier(engine="xgboost", random_state=0)
    return describe_fit(model.fit(X, y), X)


# ---- folds ----


@case
def three_folds() -> Outputs:
    """Another number of folds."""
    X, y, _ = draw_two()
    return describe_fit(UntwistClassifier(cv=3, random_state=0).fit(X, y), X)


@case
def own_folds() -> Outputs:
    """Folds of one's own, with rows that none judges."""
    X, y, _ = draw_two()
    return describe_fit(UntwistClassifier(cv=list(cut_folds(len(y))), random_state=0).fit(X, y), X)


@case
def own_folds_of_the_past() -> Outputs:
    """Folds that do not train on all that they do not judge."""
    X, y, _ = draw_two()
    folds = [(np.arange(end), np.arange(end, end + 100)) for end in (200, 300, 400)]
    return describe_fit(UntwistClassifier(cv=folds, random_state=0).fit(X, y), X)


@case
def groups() -> Outputs:
    """Rows of the same group in one fold."""
    (X, y, _), patient = draw_groups()
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y, groups=patient), X)


@case
def near_twins() -> Outputs:
    """Rows that nearly repeat each other."""
    X, y, _ = draw_two(250)
    near = X + 1e-4 * np.random.default_rng(0).normal(size=X.shape)
    return describe_fit(UntwistClassifier(random_state=0).fit(np.vstack([X, near]), np.tile(y, 2)), X)


# ---- weights and noise ----


@case
def sample_weights() -> Outputs:
    """Rows that weigh differently, some of them nothing."""
    X, y, _ = draw_two()
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y, sample_weight=draw_weights(len(y))), X)


@case
def class_weights() -> Outputs:
    """Classes that weigh alike."""
    X, y, _ = draw_two(rates=(0.0, 0.5))
    return describe_fit(UntwistClassifier(class_weight="balanced", random_state=0).fit(X, y), X)


@case
def known_rates() -> Outputs:
    """Rates of noise that are known."""
    X, y, _ = draw_two()
    return describe_fit(UntwistClassifier(noise=(0.05, 0.3), random_state=0).fit(X, y), X)


@case
def no_rates() -> Outputs:
    """Labels that are believed."""
    X, y, _ = draw_two()
    return describe_fit(UntwistClassifier(noise=None, random_state=0).fit(X, y), X)


@case
def categories() -> Outputs:
    """Few and many categories, and gaps."""
    X, y, _ = draw_mixed_columns()
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


# ---- sources and reviews ----


@case
def sources() -> Outputs:
    """Who gave each label; one source is bad."""
    (X, y, _), source = draw_sourced()
    model = UntwistClassifier(random_state=0).fit(X, y, source=source)
    return describe_fit(model, X) | {"alpha of rows": pick(model.alpha_star(X, source))}


@case
def sources_of_three_classes() -> Outputs:
    """The same of several classes."""
    (X, y, _), source = draw_sourced(classes=3)
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y, source=source), X)


@case
def sources_and_items() -> Outputs:
    """Several labels of each thing."""
    (X, y, _), source, item = draw_votes()
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y, source=source, item=item), X)


@case
def sources_and_groups() -> Outputs:
    """Sources of labels, with rows that belong together and labels of unknown source."""
    (X, y, _), patient = draw_groups()
    source = np.array(["ann", "bob", "eve", None], dtype=object)[np.arange(len(y)) % 4]
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y, source=source, groups=patient), X)


@case
def decisions() -> Outputs:
    """What a person has decided about some labels."""
    table = draw_two()
    reviewed = decide(table, np.arange(0, 500, 8))
    return describe_fit(UntwistClassifier(random_state=0).fit(table.X, table.y, reviewed=reviewed), table.X)


@case
def decisions_of_three_classes() -> Outputs:
    """The same of several classes."""
    table = draw_classes()
    reviewed = decide(table, np.arange(0, 500, 8))
    return describe_fit(UntwistClassifier(random_state=0).fit(table.X, table.y, reviewed=reviewed), table.X)


@case
def reviewed_rows() -> Outputs:
    """Rows whose labels are known to be right, as Booleans, and groups."""
    (X, y, truth), patient = draw_groups()
    is_known = np.arange(len(y)) % 6 == 0
    known = np.where(is_known, truth, y)
    return describe_fit(UntwistClassifier(random_state=0).fit(X, known, reviewed=is_known, groups=patient), X)


# ---- several classes ----


@case
def three_clean() -> Outputs:
    """Labels that nobody has changed."""
    X, y, _ = load_wines()
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


@case
def three_symmetric_noise() -> Outputs:
    """Labels taken for any other."""
    X, y, _ = draw_classes()
    model = UntwistClassifier(random_state=0).fit(X, y)
    best = model.choice_.best
    return describe_fit(model, X) | {"chosen": [best.loss, best.error, best.max_depth, best.n_rounds]}


@case
def four_class_noise() -> Outputs:
    """Each class taken for one other."""
    X, y, _ = draw_classes(classes=4, share=0.25, by_pairs=True, seed=1)
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


@case
def twelve_classes() -> Outputs:
    """Many classes."""
    X, y, _ = draw_classes(rows=600, classes=12, share=0.15, seed=2)
    return describe_fit(UntwistClassifier(random_state=0).fit(X, y), X)


@case
def three_known_matrix() -> Outputs:
    """A transition matrix that is known."""
    X, y, _ = draw_classes(by_pairs=True)
    matrix = 0.8 * np.eye(3) + 0.2 * np.roll(np.eye(3), 1, axis=1)
    return describe_fit(UntwistClassifier(noise=matrix, random_state=0).fit(X, y), X)


@case
def three_no_rates() -> Outputs:
    """Labels that are believed."""
    X, y, _ = draw_classes()
    return describe_fit(UntwistClassifier(noise=None, random_state=0).fit(X, y), X)


@case
def three_weights() -> Outputs:
    """Sample weights, class weights and folds of one's own."""
    X, y, _ = draw_classes()
    model = UntwistClassifier(class_weight="balanced", cv=list(cut_folds(len(y))), random_state=0)
    return describe_fit(model.fit(X, y, sample_weight=draw_weights(len(y))), X)
