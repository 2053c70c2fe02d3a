"""Scores that are log-odds: the booster of one class against the other, and that of both classes together, agree."""

import numpy as np
import pytest

from helpers.engines import get_forest, make_booster, make_dataset
from helpers.quick import make_classifier
from untwist import UntwistClassifier, _core
from untwist.boosting.engines.engine import TreeGrowth
from untwist.links import ClippedLink, LogitLink
from untwist.losses import AlphaLoss

GIVEN = {"n_estimators": 20, "max_depth": 3, "random_state": 0}


def draw_sample(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1] * X[:, 2] - 1))).astype(int)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_equals_both_classes_boosted_together(alpha, share):
    """With a column for each class, steps count twice, and boosting begins at the shares of the classes."""
    X, y = draw_sample()
    growth = TreeGrowth(max_depth=4, subsample=share, max_features=share, seed=3)
    start = alpha * np.log(y.mean() / (1 - y.mean()))
    dataset = make_dataset(X, y)
    one = make_booster(dataset, LogitLink(AlphaLoss(alpha)), 0.2, growth, by_edge=False, start=np.full(len(y), start))
    both = make_booster(dataset, ClippedLink(AlphaLoss(alpha)), 0.1, growth, by_edge=False, positive_class=None)
    one.boost(12)
    both.boost(12)
    by_class = get_forest(both).scores(X)
    np.testing.assert_array_equal(get_forest(one).feature, get_forest(both).feature)
    np.testing.assert_allclose(start + get_forest(one).scores(X), by_class[:, 1] - by_class[:, 0], atol=1e-5)


@pytest.mark.parametrize("alpha", [1.0, 1.01, 2.0, 3.3, 4.0, 1e9])
def test_weights_of_the_core_are_those_of_the_link(alpha):
    rng = np.random.default_rng(0)
    margin = np.concatenate([rng.normal(scale=4, size=500), [0.0, -0.0, 90.0, -90.0, 1e300, -1e300, 700.0, -700.0]])
    factor = rng.random(len(margin)).astype(np.float32)
    unit = 2.0**24
    expected = LogitLink(AlphaLoss(alpha)).weights(margin)
    for sample_weight in (np.zeros(0, dtype=np.float32), factor):
        found = np.empty(len(margin), dtype=np.float32)
        _core.boosting_weights(
            margin=margin, sample_weight=sample_weight, alpha=alpha, link="logit", unit=unit, threads=1, out=found
        )
        scale = sample_weight.astype(float) if len(sample_weight) else 1.0
        np.testing.assert_allclose(found, expected * scale, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 4.0])
def test_the_reference_engine_agrees(alpha):
    X, y = draw_sample(200)
    X = np.round(X, 1)
    settings = {"alpha": alpha, "link": "logit", "step_size": 1.0, "init": "zero", **GIVEN}
    fast = make_classifier(**settings).fit(X, y)
    slow = make_classifier(engine="reference", **settings).fit(X, y)
    np.testing.assert_allclose(fast.decision_function(X), slow.decision_function(X), atol=1e-3)


def test_posteriors_are_those_of_log_odds():
    X, y = draw_sample()
    model = make_classifier(alpha=4.0, link="logit", **GIVEN).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), atol=2e-3)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_the_recipe_boosts_log_odds_of_two_classes():
    X, y = draw_sample(300)
    model = UntwistClassifier(random_state=0).fit(X, y)
    assert isinstance(model.model_.link, LogitLink)
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"alpha": 0.5}, r"finite alpha from 1 on, got 0.5"),
        ({"alpha": -2.0}, r"finite alpha from 1 on, got -2.0"),
        ({"alpha": np.inf}, r"finite alpha from 1 on, got inf"),
        ({"alpha": "menon"}, r"finite alpha from 1 on, got 'menon'"),
        ({"engine": "xgboost"}, r"not for the xgboost engine"),
    ],
    ids=str,
)
def test_what_does_not_go_with_it_is_refused(settings, match):
    X, y = draw_sample(50)
    with pytest.raises(ValueError, match=match):
        make_classifier(**({"alpha": 2.0, "link": "logit", **GIVEN} | settings)).fit(X, y)


def test_no_certificate_where_the_margin_loss_is_not_convex():
    X, y = draw_sample(100)
    model = make_classifier(alpha=4.0, link="logit", **GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="convex"):
        model.certificate(X, y)
