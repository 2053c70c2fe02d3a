"""Audits by our models and by others, with all that they can be told, and what is read off them."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reliability.recorded.cases import Outputs, case
from reliability.recorded.outputs import describe_audit, encode, pick
from reliability.recorded.tables import (
    cut_folds,
    decide,
    draw_branches,
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
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.audit import audit_labels
from untwist.audit.explaining import explain_rows
from untwist.audit.hidden_sources import allow_for

#: Rounds begin at the base rate.
FROM_PRIOR = Growth(init="prior")


# ---- by a model of ours ----


@case
def two_classes() -> Outputs:
    """A model that the audit fits."""
    X, y, _ = draw_two()
    audit = audit_labels(X, y)
    return describe_audit(audit) | {"alpha of rows": pick(audit.sources.alpha_star)}


@case
def two_clean() -> Outputs:
    """Labels that nobody has changed."""
    X, y, _ = load_cancer()
    return describe_audit(audit_labels(X, y))


@case
def four_classes() -> Outputs:
    """Several classes without an order, and their confusions."""
    X, y, _ = draw_classes(rows=600, classes=4, by_pairs=True)
    audit = audit_labels(X, y)
    shares = [[one.share, one.low, one.high, one.rows] for one in audit.confusions()]
    names = [encode(audit.classes, [one.truth, one.label]) for one in audit.confusions()]
    return describe_audit(audit) | {"confusions": shares, "confused": names}


@case
def ordered_classes() -> Outputs:
    """Classes that are numbers, whose neighbours are taken for each other: none is corrected."""
    X, y, _ = draw_classes(rows=600, classes=4, by_pairs=True)
    return describe_audit(audit_labels(X, np.searchsorted(np.unique(y), y)))


@case
def three_clean() -> Outputs:
    """Several classes that nobody has mislabelled."""
    X, y, _ = load_wines()
    return describe_audit(audit_labels(X, y))


@case
def fitted_model() -> Outputs:
    """A model that was fitted before, with weights."""
    X, y, _ = draw_two()
    model = UntwistClassifier(random_state=3).fit(X, y, sample_weight=draw_weights(len(y)))
    return describe_audit(audit_labels(X, y, model))


@case
def unfitted_model() -> Outputs:
    """A model with settings of its own, and folds of the audit's."""
    X, y, _ = draw_two()
    model = UntwistClassifier()
    return describe_audit(audit_labels(X, y, model, cv=3, random_state=5))


@case
def given_settings() -> Outputs:
    """A model whose settings are all given: clones of it judge, as of any other model."""
    X, y, _ = draw_two()
    model = PILBoostClassifier(alpha=1.1, n_estimators=30, max_depth=3, growth=FROM_PRIOR)
    return describe_audit(audit_labels(X, y, model))


@case
def own_folds() -> Outputs:
    """Folds of one's own, with rows that none judges."""
    X, y, _ = draw_two()
    return describe_audit(audit_labels(X, y, cv=list(cut_folds(len(y))), sample_weight=draw_weights(len(y), 1)))


# ---- by other models ----


@case
def forest() -> Outputs:
    """A forest of scikit-learn."""
    X, y, _ = draw_two()
    return describe_audit(audit_labels(X, y, RandomForestClassifier(50, min_samples_leaf=3, random_state=0)))


@case
def forest_of_four_classes() -> Outputs:
    """The same of several classes, with weights and folds of one's own."""
    X, y, _ = draw_classes(rows=600, classes=4, by_pairs=True)
    model = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    return describe_audit(audit_labels(X, y, model, cv=list(cut_folds(len(y))), sample_weight=draw_weights(len(y))))


@case
def forest_with_groups() -> Outputs:
    """The same with rows that belong together."""
    (X, y, _), patient = draw_groups()
    return describe_audit(audit_labels(X, y, RandomForestClassifier(50, random_state=0), groups=patient))


@case
def pipeline_with_sources() -> Outputs:
    """A pipeline that ends with a linear model, with sources."""
    (X, y, _), source = draw_sourced()
    return describe_audit(audit_labels(X, y, make_pipeline(StandardScaler(), LogisticRegression()), source=source))


@case
def posteriors() -> Outputs:
    """Posteriors that are given, without a table."""
    X, y, _ = draw_two()
    given = cross_val_predict(LogisticRegression(), X, y, method="predict_proba")
    return describe_audit(audit_labels(y=y, pred_probs=given))


@case
def posteriors_of_four_classes() -> Outputs:
    """Posteriors of several classes, with the table."""
    X, y, _ = draw_classes(rows=600, classes=4, by_pairs=True)
    given = cross_val_predict(LogisticRegression(max_iter=500), X, y, method="predict_proba")
    return describe_audit(audit_labels(X, y, pred_probs=given))


# ---- sources, groups and reviews ----


@case
def sources() -> Outputs:
    """Who gave each label, and how good each source is."""
    (X, y, _), source = draw_sourced()
    audit = audit_labels(X, y, source=source)
    rated = [[one.share_wrong, one.low, one.high] for one in audit.sources.rate()]
    return describe_audit(audit) | {"rated sources": rated, "alpha of rows": pick(audit.sources.alpha_star)}


@case
def sources_of_three_classes() -> Outputs:
    """The same of several classes."""
    (X, y, _), source = draw_sourced(classes=3)
    return describe_audit(audit_labels(X, y, source=source))


@case
def sources_and_items() -> Outputs:
    """Several labels of each thing, and where they disagree."""
    (X, y, _), source, item = draw_votes()
    audit = audit_labels(X, y, source=source, item=item)
    disagreements = [[one.share, one.expected] for one in audit.sources.find_disagreements()]
    items = [one.probability for one in audit.sources.judge_items()]
    return describe_audit(audit) | {"disagreements": disagreements, "items": pick(items)}


@case
def groups() -> Outputs:
    """Rows that belong together."""
    (X, y, _), patient = draw_groups()
    return describe_audit(audit_labels(X, y, groups=patient))


@case
def decisions() -> Outputs:
    """What a person has decided about some labels, which are not changed yet."""
    table = draw_two()
    reviewed = decide(table, np.arange(0, 500, 8))
    return describe_audit(audit_labels(table.X, table.y, reviewed=reviewed))


@case
def decisions_of_three_classes() -> Outputs:
    """The same of several classes."""
    table = draw_classes(rows=600)
    return describe_audit(audit_labels(table.X, table.y, reviewed=decide(table, np.arange(0, 600, 8))))


@case
def decisions_that_were_applied() -> Outputs:
    """Labels that a review has changed already."""
    table = draw_two()
    reviewed = decide(table, np.arange(0, 500, 8))
    return describe_audit(audit_labels(table.X, reviewed.change(table.y), reviewed=reviewed))


@case
def decisions_and_a_forest() -> Outputs:
    """The same by another model."""
    table = draw_two()
    reviewed = decide(table, np.arange(0, 500, 8))
    model = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    return describe_audit(audit_labels(table.X, table.y, model, reviewed=reviewed))


@case
def reviewed_rows() -> Outputs:
    """Rows whose labels are known to be right, as Booleans."""
    X, y, truth = draw_two()
    is_known = np.arange(len(y)) % 6 == 0
    return describe_audit(audit_labels(X, np.where(is_known, truth, y), reviewed=is_known))


# ---- what is read off an audit ----


@case
def hidden_source() -> Outputs:
    """A column that looks like a source, and the slices of the table."""
    X, y, _ = draw_branches()
    audit = audit_labels(X, y)
    found = audit.hidden_sources()[0]
    audit = allow_for(audit, found)
    return describe_audit(audit) | {
        "column": [found.position, found.rows],
        "shares": [found.share_there, found.share_elsewhere, found.share_as_feature, found.share_as_source],
        "interval": found.interval_as_source,
        "suspects by column": [*found.suspects_as_feature, *found.suspects_as_source],
    }


@case
def slices() -> Outputs:
    """Where wrong labels concentrate."""
    X, y, _ = draw_branches()
    audit = audit_labels(X, y)
    found = allow_for(audit, audit.hidden_sources()[0]).slices(false_discovery_rate=0.5)
    return {"slices": [[one.rows, one.share_wrong, one.low, one.high, one.p_value] for one in found]}


@case
def reasons() -> Outputs:
    """Why labels are doubted."""
    X, y, _ = draw_mixed_columns()
    audit = audit_labels(X, y)
    explanations = explain_rows(audit, audit.ranking[:10])
    return {"reasons": [reason.effect for one in explanations for reason in one.reasons]}


@case
def issues() -> Outputs:
    """What else is wrong with the data."""
    X, y, _ = draw_two()
    X[20:30] = X[:10]
    y[20:25] = 1 - y[:5]
    X[:, 5] = 1.0
    found = audit_labels(X, y).find_issues()
    return {f"{number} {one.kind}": [one.severity, *one.rows] for number, one in enumerate(found)}
