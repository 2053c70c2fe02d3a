"""PILBoostClassifier: what it promises beyond scikit-learn's own checks."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from helpers.learners import Misshapen, Plain, Spoiler, make_paper_model
from helpers.quick import make_classifier
from untwist.boosting.algorithm import pilboost
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss, FocalLoss, LogLoss, SquareLoss
from untwist.twisters import ClassNoise


def draw_sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


@pytest.fixture(scope="module")
def data():
    return draw_sample()


def test_it_is_the_loop_of_boosting(data):
    X, y = data
    settings = {"n_estimators": 12, "engine": "reference"}
    model = make_paper_model(alpha=1.5, step_size=2.0, random_state=0, **settings).fit(X, y)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    rounds = pilboost(X.astype(np.float32), 2.0 * y - 1, tree, ClippedLink(AlphaLoss(1.5)), 2.0)
    for edge, one in zip(model.edges_, rounds, strict=False):
        assert edge == pytest.approx(one.edge, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.1, 2.0, 4.0, math.inf, -1.5, -math.inf])
@pytest.mark.parametrize("link", ["clipped", "exact"])
def test_decision_prediction_and_probabilities_agree(data, alpha, link):
    X, y = data
    model = make_paper_model(alpha, link=link, n_estimators=20, random_state=0).fit(X, y)
    score, clean, twisted = model.decision_function(X), model.predict_proba(X), model.predict_proba_twisted(X)
    np.testing.assert_array_equal(model.predict(X), (score > 0).astype(int))
    for probabilities in (clean, twisted):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert ((probabilities >= 1 / 302) & (probabilities <= 1 - 1 / 302)).all()
    assert (clean[score > 0, 1] >= 0.5).all()
    assert (clean[score < 0, 1] <= 0.5).all()
    flip = -1 if alpha < 0 else 1
    assert np.mean(flip * score * (2 * y - 1) > 0) > 0.9  # A negative alpha decides against the labels it saw.
    np.testing.assert_allclose(model.link_.inverse(flip * score).clip(1 / 302, 301 / 302), twisted[:, 1])


def test_negative_alpha_undoes_a_majority_of_wrong_labels(data):
    X, y = data
    _, twisted, _ = ClassNoise(0.85).twist(X, y, np.random.default_rng(0))
    assert make_paper_model(-2.0, n_estimators=30, random_state=0).fit(X, twisted).score(X, y) > 0.8
    assert make_paper_model(2.0, n_estimators=30, random_state=0).fit(X, twisted).score(X, y) < 0.2


def test_staged_predictions_end_where_the_others_are(data):
    X, y = data
    model = make_paper_model(n_estimators=7, random_state=0).fit(X, y)
    stages = [
        list(stage(X)) for stage in (model.staged_decision_function, model.staged_predict, model.staged_predict_proba)
    ]
    assert [len(stage) for stage in stages] == [7, 7, 7]
    np.testing.assert_array_equal(stages[0][-1], model.decision_function(X))
    np.testing.assert_array_equal(stages[1][-1], model.predict(X))
    np.testing.assert_array_equal(stages[2][-1], model.predict_proba(X))
    shorter = make_paper_model(n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(stages[0][2], shorter.decision_function(X))


@pytest.mark.parametrize(
    "labels", [np.array(["no", "yes"]), np.array([False, True]), np.array([-1, 1]), np.array([2.0, 7.0])]
)
def test_labels_of_any_kind(data, labels):
    X, y = data
    model = make_paper_model(n_estimators=10, random_state=0).fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, labels)
    assert np.mean(model.predict(X) == labels[y]) > 0.9


def test_data_frames_missing_values_and_constant_columns(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=1.0)
    frame.loc[::7, "a"] = np.nan
    model = make_paper_model(n_estimators=30, random_state=0).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == list("abcde")
    assert model.score(frame, y) > 0.85
    assert model.feature_importances_[4] == 0
    assert model.feature_importances_.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])


def test_early_stopping_keeps_the_rounds_up_to_the_best(data):
    X, y = data
    _, noisy, _ = ClassNoise(0.3).twist(X, y, np.random.default_rng(0))
    model = make_paper_model(early_stopping=True, n_estimators=200, random_state=0).fit(X, noisy)
    losses, errors = (model.evals_result_["validation"][name] for name in ("log_loss", "error"))
    assert model.n_iter_ == np.argmin(losses) + 1 == len(model.estimators_) < 200
    assert len(losses) == len(errors) == model.n_iter_ + 10
    assert 28 <= len(model.validation_rows_) <= 32
    assert len(model.forest_) == model.n_iter_
    assert all(tree.forest is model.forest_ for tree in model.estimators_)  # Nothing is kept, or pickled, twice.
    held_out = model.validation_rows_
    posterior = model.predict_proba_twisted(X)[held_out, noisy[held_out]]
    assert -np.log(posterior).mean() == pytest.approx(losses.min(), rel=1e-4)
    assert np.mean(model.predict(X)[held_out] != noisy[held_out]) == pytest.approx(errors[model.n_iter_ - 1])


def test_a_validation_set_of_your_own(data):
    X, y = data
    X_val, y_val = draw_sample(seed=1)
    followed = make_paper_model(n_estimators=25, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    losses = followed.evals_result_["validation"]["log_loss"]
    assert followed.n_iter_ == len(losses) == 25
    plain = make_paper_model(n_estimators=25, random_state=0).fit(X, y)
    np.testing.assert_array_equal(followed.decision_function(X), plain.decision_function(X))
    stopped = make_paper_model(n_estimators=500, early_stopping=True, random_state=0).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    early = stopped.evals_result_["validation"]["log_loss"][:25]
    np.testing.assert_array_equal(early, losses[: len(early)])
    loop = make_paper_model(n_estimators=5, engine="reference", random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(loop.evals_result_["validation"]["log_loss"], losses[:5], rtol=0.05)
    weighted = make_paper_model(n_estimators=5, random_state=0)
    weighted.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=np.arange(300) < 10)
    few = make_paper_model(n_estimators=5, random_state=0).fit(X, y, X_val=X_val[:10], y_val=y_val[:10])
    for name in ("log_loss", "error"):
        np.testing.assert_allclose(weighted.evals_result_["validation"][name], few.evals_result_["validation"][name])


@pytest.mark.slow
def test_certificate_of_a_fit(data):
    X, y = data
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    for settings in ({}, {"early_stopping": True}, {"link": "exact"}, {"loss": FocalLoss(1.0)}):
        model = make_paper_model(n_estimators=15, random_state=0, **settings).fit(X, y, sample_weight=weight)
        certificate = model.certificate(X, y, sample_weight=weight)
        assert len(certificate.implied.verdicts) == model.n_iter_
        assert "violated" not in certificate.exact.verdicts + certificate.implied.verdicts
        with pytest.raises(ValueError, match="the data that fit was given"):
            model.certificate(X, 1 - y, sample_weight=weight)
    with pytest.raises(ValueError, match="labels that the training labels have not"):
        model.certificate(X, y + 5)
    with pytest.raises(ValueError, match="must be the 300 rows that fit was given, got 20 and 20"):
        model.certificate(X[:20], y[:20])


@pytest.mark.parametrize("loss", [LogLoss(), SquareLoss(), FocalLoss(2.0)], ids=repr)
def test_any_loss_can_be_boosted(data, loss):
    X, y = data
    assert make_paper_model(loss=loss, n_estimators=30, random_state=0).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    "estimator", [Ridge(), RandomForestRegressor(n_estimators=3, max_depth=3)], ids=["ridge", "forest"]
)
def test_any_regressor_can_be_the_weak_learner(data, estimator):
    X, y = data
    model = make_paper_model(estimator=estimator, n_estimators=10, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))


def test_it_lives_in_scikit_learns_world(data):
    X, y = data
    model = make_paper_model(n_estimators=5, random_state=0)
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"pilboostclassifier__alpha": [1.1, 2.0]}, cv=2).fit(
        X, y
    )
    assert search.best_params_["pilboostclassifier__alpha"] in (1.1, 2.0)
    assert CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X).shape == (300, 2)
    assert cross_val_score(model, X, y, cv=3, scoring="roc_auc").min() > 0.8
    restored = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))


def test_a_learner_that_is_no_scikit_learn_estimator(data):
    X, y = data
    model = make_paper_model(estimator=Plain(), n_estimators=3).fit(X, y)
    assert model.n_iter_ == 3


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_size_of_all_weights_does_not_matter(data, scale):
    X, y = data
    plain = make_paper_model(n_estimators=5, random_state=0).fit(X, y)
    scaled = make_paper_model(n_estimators=5, random_state=0).fit(X, y, sample_weight=np.full(300, scale))
    np.testing.assert_allclose(scaled.decision_function(X), plain.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"alpha": 2.0, "n_estimators": 3}])
def test_a_weight_of_any_size_gives_probabilities(data, settings):
    X, y = data
    for weight in (np.where(np.arange(300) == 3, 1.7e308, 1.0), np.full(300, 1.7e308)):
        for n_classes in (2, 3):
            labels = y if n_classes == 2 else y + (X[:, 0] > 1)
            model = make_classifier(**settings, random_state=0).fit(X, labels, sample_weight=weight)
            proba = model.predict_proba(X)
            assert np.isfinite(proba).all()
            np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)


def test_labels_may_be_objects_that_are_booleans_or_numbers(data):
    X, y = data
    plain = make_paper_model(n_estimators=3, random_state=0).fit(X, y > 0)
    for labels in ((y > 0).astype(object), pd.Series(y > 0, dtype=object), pd.Series(y > 0, dtype="boolean")):
        model = make_paper_model(n_estimators=3, random_state=0).fit(X, labels)
        assert model.classes_.tolist() == [False, True]
        assert model.predict(X).dtype == bool
        assert model.score(X, labels) == plain.score(X, y > 0)
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(model.margins(X, labels), plain.margins(X, y > 0))
    with pytest.raises(ValueError, match="labels of one kind, got Booleans beside numbers"):
        make_paper_model(n_estimators=3).fit(X, np.array([True if one > 0 else 0 for one in y], dtype=object))


def test_a_failed_fit_leaves_the_model_unfitted(data):
    X, y = data
    model = make_paper_model(estimator=Spoiler())
    with pytest.raises(ValueError, match="predicted nan"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_verbose_reports_to_standard_error(data, capsys):
    make_paper_model(n_estimators=4, verbose=2).fit(*data)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("round") == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": math.nan}, "alpha must be a number, got nan"),
        ({"alpha": "some"}, 'alpha must be a number or "menon", got .some.'),
        ({"alpha": 0}, "alpha must not be 0"),
        ({"step_size": 0}, "step_size must be a number > 0, got 0"),
        ({"step_size": -1.0}, "step_size must be a number > 0, got -1.0"),
        ({"step_size": "big"}, "step_size must be a number > 0 or \"auto\", got 'big'"),
        (
            {"early_stopping": "auto"},
            "early_stopping must be True, False or the number of rounds to wait for progress, got 'auto'",
        ),
        ({"warm_start": 1}, "warm_start must be True or False, got 1"),
        ({"engine": "fast"}, "engine must be"),
        ({"engine": "compiled", "estimator": Ridge()}, "engine='compiled' and estimator= exclude each other"),
        ({"engine": "compiled", "loss": LogLoss(), "link": "exact", "l2": -1.0}, "l2 must be a number >= 0"),
        ({"engine": "compiled", "loss": SquareLoss()}, "boosts the alpha-loss only"),
        ({"max_bins": 256}, "max_bins must be at most 255"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"n_jobs": 2.0}, "n_jobs must be an integer other than 0"),
        ({"estimator": "tree"}, "estimator must be an object with fit and predict, got 'tree'"),
        ({"link": ["clipped"]}, "link must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0, got 0.0"),
        ({"learning_rate": 0.1, "step_size": 2.0}, "step_size and learning_rate exclude each other"),
        ({"step_size": None}, 'step_size must be a number > 0 or "auto", got None'),
        ({"max_depth": 0}, "max_depth must be an integer >= 1, got 0"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1, got 0"),
        ({"n_estimators": 10.0}, "n_estimators must be an integer >= 1, got 10.0"),
        ({"link": "probit"}, 'link must be "clipped", "exact" or "logit", got \'probit\''),
        ({"loss": "log"}, "loss must be a Loss, got 'log'"),
        ({"verbose": -1}, "verbose must be an integer >= 0"),
        ({"early_stopping": 0}, "early_stopping must be an integer >= 1, got 0"),
        ({"estimator": Spoiler()}, "predicted nan"),
        ({"estimator": Misshapen()}, "must predict 300 numbers"),
    ],
)
def test_bad_settings_are_named(data, settings, message):
    with pytest.raises(ValueError, match=message):
        make_paper_model(**settings).fit(*data)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [1.0]], [1, 1], "two classes, got one class only"),
        (np.zeros((0, 2)), [], "0 sample"),
        ([[0.0], [math.inf]], [0, 1], "infinity"),
        ([[0.0], [1.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([[0.0], [1.0]], [0.3, 0.7], "continuous"),
        (
            [[0.0], [1.0]],
            np.array(["a", None], dtype=object),
            "y must have no missing labels, got 1, the first in row 1",
        ),
        ([[0.0], [1.0]], [0, np.nan], "y must have no missing labels, got 1, the first in row 1: leave them out"),
        ([[0.0], [1.0]], np.ma.array([0, 1], mask=[1, 0]), "y must have no missing labels, got 1, the first in row 0"),
    ],
)
def test_bad_data_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        make_paper_model().fit(X, y)


def test_masked_arguments_are_missing_ones(data):
    X, y = data
    hides_two = np.isin(np.arange(len(y)), [3, 7])
    labels, weight = np.ma.array(y, mask=hides_two), np.ma.array(np.ones(len(y)), mask=hides_two)
    model = make_paper_model(n_estimators=2, early_stopping=True)
    with pytest.raises(ValueError, match="y_val must have no missing labels, got 2, the first in row 3"):
        model.fit(X, y, X_val=X, y_val=labels)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        model.fit(X, y, weight)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        model.fit(X, y, X_val=X, y_val=y, sample_weight_val=weight)
    hidden = np.ma.array(X, mask=np.random.default_rng(0).random(X.shape) < 0.1)
    one, other = (make_paper_model(n_estimators=2).fit(table, y) for table in (hidden, hidden.filled(np.nan)))
    np.testing.assert_array_equal(one.predict_proba(hidden), other.predict_proba(hidden.filled(np.nan)))


def test_misused_validation_and_weights_are_named(data):
    X, y = data
    model = make_paper_model(n_estimators=3)
    with pytest.raises(ValueError, match="must be given together"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match=r"y_val has labels that the training labels have not: \[9\]"):
        model.fit(X, y, X_val=X[:2], y_val=[0, 9])
    with pytest.raises(ValueError, match="sample_weight_val must come with"):
        model.fit(X, y, sample_weight_val=np.ones(300))
    with pytest.raises(ValueError, match="sample_weight_val must be finite and non-negative"):
        model.fit(X, y, X_val=X, y_val=y, sample_weight_val=-np.ones(300))
    with pytest.raises(ValueError, match="two classes among the rows with positive sample_weight"):
        model.fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="early_stopping"):
        make_paper_model(early_stopping=True).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
