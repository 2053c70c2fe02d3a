"""Any order of the rows gives the same bits, whatever they weigh: of a fitted model, and of an audit.

Weights are fractions of all sizes, so that no plain sum of them is the same in two orders.
"""

import numpy as np
import pytest
from hypothesis import strategies as st

from helpers.quick import make_classifier
from helpers.strategies import holds
from untwist import PILBoostClassifier
from untwist.audit import audit_labels
from untwist.audit.calibration import measure_reliability, measure_spread, trace_clean_posterior
from untwist.files import dumps

N = 120
GIVEN = {"alpha": 1.5, "n_estimators": 6, "max_depth": 3}
FOLDS = {"n_estimators": 8, "max_depth": 2}

#: Settings of fits, one for each way that a weight can take to a model.
FITS = {
    "given": GIVEN,
    "by log-odds": GIVEN | {"link": "logit", "learning_rate": 0.3},
    "drawn": GIVEN | {"subsample": 0.7, "max_features": 0.7, "extra_trees": True},
    "small leaves": GIVEN | {"min_weight_fraction_leaf": 0.05, "l2": 1.0, "max_leaf_nodes": 5},
    "stopped early": GIVEN | {"n_estimators": 30, "early_stopping": True},
    "by folds": FOLDS,
    "mixed": {},
    "coded by labels": FOLDS | {"categorical_features": [3]},
}


def draw(seed, n_classes, n_rows=N):
    """Rows of which some come twice, labels of which a fifth are wrong, weights, sources, items and an order."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    X[:, 1] = rng.integers(0, 5, n_rows)
    X[:, 3] = rng.integers(0, 30, n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[n_rows - 20 :] = X[:20]
    height = np.nan_to_num(X[:, 0]) + 0.5 * rng.normal(size=n_rows)
    y = np.digitize(height, np.quantile(height, np.arange(1, n_classes) / n_classes))
    y = np.where(rng.random(n_rows) < 0.2, rng.integers(0, n_classes, n_rows), y)
    weight = rng.random(n_rows) ** 2 * 10.0 ** rng.uniform(-2, 2)
    return X, y, weight, rng


def choose_class_weight(kind, n_classes):
    return dict(enumerate(np.linspace(0.3, 1.7, n_classes))) if kind == "given" else kind


def list_validation_shares(model, n_rows):
    shares = np.zeros(n_rows)
    shares[model.model_.validation_rows] = model.model_.validation_shares
    return shares


@pytest.mark.parametrize("name", FITS)
@holds(
    6,
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 4),
    class_weight=st.sampled_from([None, "balanced", "given"]),
)
@pytest.mark.thinned(3)
def test_a_fit_is_the_same_to_the_bit(name, seed, n_classes, class_weight):
    X, y, weight, rng = draw(seed, n_classes)
    order = rng.permutation(len(y))
    settings = FITS[name] | {"class_weight": choose_class_weight(class_weight, n_classes), "random_state": 0}
    model = make_classifier(**settings).fit(X, y, weight)
    shuffled = make_classifier(**settings).fit(X[order], y[order], weight[order])
    np.testing.assert_array_equal(
        list_validation_shares(shuffled, len(y)), list_validation_shares(model, len(y))[order]
    )
    np.testing.assert_array_equal(shuffled.predict_proba(X), model.predict_proba(X))
    if not settings.get("early_stopping"):  # Files tell which rows were held out, by their position.
        assert dumps(shuffled) == dumps(model)


@holds(6, seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 3))
def test_validation_rows_may_come_in_any_order(seed, n_classes):
    X, y, weight, rng = draw(seed, n_classes)
    order = rng.permutation(len(y))
    for early_stopping in (True, False):
        model, shuffled = (
            PILBoostClassifier(class_weight="balanced", early_stopping=early_stopping, random_state=0, **GIVEN).fit(
                X, y, weight, X_val=X[rows], y_val=y[rows], sample_weight_val=weight[rows]
            )
            for rows in (slice(None), order)
        )
        assert dumps(shuffled) == dumps(model)


def test_menons_estimate_is_the_same_to_the_bit():
    X, y, weight, rng = draw(0, 2)
    order = rng.permutation(len(y))
    settings = {"alpha": "menon", "n_estimators": 4, "max_depth": 2, "class_weight": "balanced", "random_state": 0}
    model = make_classifier(**settings).fit(X, y, weight)
    assert dumps(make_classifier(**settings).fit(X[order], y[order], weight[order])) == dumps(model)


# ---- audits ----


def take(values, rows):
    return {name: value[rows] for name, value in values.items()}


def assert_same_audits(shuffled, audit, order):
    """Both audits say the same of every row, of all together, of sources and of slices, and on the page."""
    for name in ("posterior", "wrong", "predicted", "weight", "truth"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(audit, name)[order], err_msg=name)
    assert shuffled.noise_rate == audit.noise_rate
    assert shuffled.verdict == audit.verdict
    assert shuffled.judge.in_sample_reason == audit.judge.in_sample_reason
    assert shuffled.rate_by_label == audit.rate_by_label
    assert shuffled.confusions() == audit.confusions()
    np.testing.assert_array_equal(shuffled.matrix, audit.matrix)
    assert str(shuffled.noise) == str(audit.noise)
    # Of rows that are equally suspect the first come first, whichever they are.
    first, second = audit.suspects(), order[shuffled.suspects()]
    np.testing.assert_array_equal(audit.wrong[first], audit.wrong[second])
    if audit.context.source is not None:
        assert shuffled.sources.rate() == audit.sources.rate()
        assert shuffled.sources.find_disagreements() == audit.sources.find_disagreements()
    if audit.table.X is not None:
        assert shuffled.slices(false_discovery_rate=0.5) == audit.slices(false_discovery_rate=0.5)
    for measure in (measure_reliability, measure_spread, trace_clean_posterior):
        assert measure(shuffled) == measure(audit)


SLOW_AUDITS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("plain", "by source", "by item", "reviewed")]


# Posteriors of few rows may look so by chance.
@pytest.mark.filterwarnings("ignore:pred_probs look as if they had seen the labels")
@pytest.mark.parametrize("kind", ["by posteriors", *SLOW_AUDITS])
@holds(3, seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 3))
def test_an_audit_is_the_same_to_the_bit(kind, seed, n_classes):
    X, y, weight, rng = draw(seed, n_classes)
    told = {}
    if kind in ("by source", "by item"):
        told["source"] = rng.integers(0, 3, N)
    if kind == "by item":
        told["item"] = rng.integers(0, N // 3, N)
        X = X[told["item"]]
    if kind == "reviewed":
        told["reviewed"] = rng.random(N) < 0.2
    order = rng.permutation(N)
    audits = []
    for rows in (slice(None), order):
        there = take(told, rows)
        if kind == "by posteriors":
            raw = np.column_stack([np.exp(-((np.nan_to_num(X[rows, 0]) - k) ** 2)) for k in range(n_classes)])
            raw /= raw.sum(axis=1, keepdims=True)
            audits.append(audit_labels(X[rows], y[rows], pred_probs=raw, sample_weight=weight[rows]))
            continue
        model = make_classifier(class_weight="balanced", random_state=0, **FOLDS)
        model.fit(X[rows], y[rows], weight[rows], **there)
        there.pop("reviewed", None)
        audits.append(audit_labels(X[rows], y[rows], model, **there))
    assert_same_audits(audits[1], audits[0], order)
