"""What can be read off a fitted model: margins, weights, importances and certificates."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from helpers.shared_models import make_shared_model
from helpers.small_fits import draw_sample, list_forests, make_model


@pytest.mark.parametrize("alpha", [2.0, -2.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_margins_and_weights(alpha, classes):
    X, y = draw_sample(classes=classes)
    labels = np.array(["a", "b", "c"])
    fitted = make_model(alpha=alpha).fit(X, labels[y])
    scores = np.sign(alpha) * fitted.decision_function(X)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0) if classes > 2 else 2.0 * y - 1
    np.testing.assert_array_equal(fitted.margins(X, labels[y]), signs * scores)
    weights = fitted.weights(X, labels[y])
    np.testing.assert_array_equal(weights, fitted.link_.weights(signs * scores))
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[signs * scores < 0].min() > 0.5 > weights[signs * scores > 0].max()
    with pytest.raises(ValueError, match="labels that the training labels have not"):
        fitted.margins(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_importances_by_hand(classes):
    X, y = draw_sample(classes=classes)
    fitted = make_model(max_depth=2).fit(X, y)
    paper, gain, splits = np.zeros(4), np.zeros(4), np.zeros(4)
    leverages = [fitted.leverages_] if classes == 2 else fitted.leverages_
    for forest, leverage in zip(list_forests(fitted), leverages, strict=True):
        for t in range(len(forest)):
            gain_of_tree = np.zeros(4)
            for node in range(forest.offset[t], forest.offset[t + 1]):
                if forest.feature[node] >= 0:
                    gain_of_tree[forest.feature[node]] += forest.gain[node]
                    splits[forest.feature[node]] += 1
            gain += gain_of_tree
            paper += leverage[t] * gain_of_tree / gain_of_tree.sum()
    for kind, by_hand in (("paper", paper), ("gain", gain), ("splits", splits)):
        shares = fitted.importances(kind)
        assert shares.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(shares, by_hand / by_hand.sum(), rtol=1e-12)
    np.testing.assert_array_equal(fitted.feature_importances_, fitted.importances())
    assert fitted.importances("gain")[3] == fitted.importances("gain").min()
    with pytest.raises(ValueError, match="kind must be"):
        fitted.importances("weight")
    loop = make_model(engine="reference").fit(X, y)
    assert loop.importances("paper").sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="needs the trees of the compiled engine"):
        loop.importances("splits")
    with pytest.raises(NotFittedError):
        make_model().importances()


def test_importances_of_classes_that_share_trees():
    X, y = draw_sample(classes=3)
    fitted = make_shared_model(X, y, n_classes=3, alpha=2.0)
    (forest,) = fitted.model_.shared_forests
    assert forest.n_outputs == 3
    paper, gain, splits = np.zeros(4), np.zeros(4), np.zeros(4)
    for tree in range(len(forest)):  # A tree counts once, however many classes share it.
        nodes = range(forest.offset[tree], forest.offset[tree + 1])
        inner = [node for node in nodes if forest.feature[node] >= 0]
        gain_of_tree = sum(forest.gain[node] for node in inner)
        for node in inner:
            splits[forest.feature[node]] += 1
            gain[forest.feature[node]] += forest.gain[node]
            paper[forest.feature[node]] += forest.leverage[tree] * forest.gain[node] / gain_of_tree
    for kind, by_hand in (("paper", paper), ("gain", gain), ("splits", splits)):
        np.testing.assert_allclose(fitted.importances(kind), by_hand / by_hand.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"early_stopping": True, "class_weight": "balanced"},
        {"class_weight": {0: 2.5}, "max_features": 0.5},
        {"l2": 2.0, "max_leaf_nodes": 5, "min_samples_leaf": 4},
        {"monotonic_cst": [1, 0, 0, 0]},
        {"alpha": -2.0},
        {"estimator": Ridge(5.0), "class_weight": "balanced"},
    ],
    ids=str,
)
def test_certificates(settings):
    X, y = draw_sample()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    fitted = make_model(10, **settings).fit(X, y, sample_weight=weight)
    certificate = fitted.certificate(X, y, sample_weight=weight)
    assert len(certificate.exact.verdicts) == fitted.n_iter_
    assert "violated" not in certificate.exact.verdicts + certificate.implied.verdicts
    with pytest.raises(ValueError, match="the data that fit was given"):
        fitted.certificate(X, y)
    with pytest.raises(ValueError, match="the data that fit was given"):
        fitted.certificate(X[::-1], y, sample_weight=weight)


def test_certificates_that_cannot_be():
    X, y = draw_sample()
    with pytest.raises(NotFittedError):
        make_model().certificate(X, y)
    with pytest.raises(ValueError, match="subsample=1"):
        make_model(subsample=0.5).fit(X, y).certificate(X, y)
    X, y = draw_sample(classes=3)
    with pytest.raises(ValueError, match="two classes"):
        make_model().fit(X, y).certificate(X, y)
