"""A classifier that judges rows it has not seen, by doubles that remember what they were fitted to."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from untwist import crossing
from untwist.crossing import cross_fit_clones, find_held_out_shares, takes_sample_weight
from untwist.data.groups import OwnFolds
from untwist.out_of_fold import RowContext

FITS = []


def predict_out_of_fold(model, X, labels, classes, folds, weight, own_folds=None):
    fit = cross_fit_clones(model, X, labels, classes, folds, weight, context=RowContext(own_folds=own_folds))
    return fit.out_of_fold.posterior


class Share(BaseEstimator):
    """Predicts the weighted share of each class that it was fitted to, whatever the row."""

    def __init__(self, class_weight=None):
        self.class_weight = class_weight

    def fit(self, X, y, sample_weight=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        FITS.append((np.asarray(X)[:, 0].tolist(), np.asarray(y).tolist(), sample_weight))
        self.shares_ = np.array([weight[y == one].sum() for one in np.unique(y)]) / weight.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


class Unweighted(Share):
    def fit(self, X, y):
        return super().fit(X, y)


@pytest.fixture(autouse=True)
def _forget():
    FITS.clear()


def judge_slowly(labels, n_classes, shares, weights):
    posterior = np.zeros((len(labels), n_classes))
    for share, weight in zip(shares, weights, strict=True):
        of_class = np.array([weight[labels == k].sum() for k in range(n_classes)]) / weight.sum()
        posterior += share[:, None] * of_class
    return posterior


def test_rows_are_judged_by_what_other_folds_have_learned():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 30)
    weight = np.where(np.arange(30) < 3, 0.0, 1.0 + np.arange(30) % 2)
    folds = np.zeros((3, 30))
    folds[np.arange(30) % 3, np.arange(30)] = weight
    folds[:, 5] = [0.5, 0.5, 1.0]
    X = np.arange(30.0)[:, None]
    shares = np.where(weight > 0, folds / np.maximum(weight, 1.0), 1 / 3)
    expected = judge_slowly(labels, 3, shares, weight - folds)
    found = predict_out_of_fold(Share(), X, labels, np.array(list("abc")), folds, weight)
    np.testing.assert_allclose(found, expected)
    for fold, (rows, targets, told) in enumerate(FITS):
        left = np.flatnonzero(weight - folds[fold] > 0)
        assert rows == left.tolist()
        assert targets == labels[left].tolist()
        np.testing.assert_allclose(told, (weight - folds[fold])[left])
    assert len(FITS) == 3


def test_weights_of_1_are_not_told():
    labels, folds = np.arange(12) % 2, np.eye(2)[:, np.arange(12) // 6]
    predict_out_of_fold(Unweighted(), np.arange(12.0)[:, None], labels, np.arange(2), folds, np.ones(12))
    assert [told for _, _, told in FITS] == [None, None]
    with pytest.raises(ValueError, match="sample_weight must be None with a classifier that takes none"):
        predict_out_of_fold(Unweighted(), np.zeros((12, 1)), labels, np.arange(2), 2 * folds, np.full(12, 2.0))


def test_folds_of_ones_own_train_on_what_they_say():
    labels = np.arange(12) % 2
    weight = np.where(np.arange(12) == 0, 3.0, 1.0)
    trained = np.array([np.arange(12) < 4, np.arange(12) < 8])
    held_out = np.array([(np.arange(12) >= 4) & (np.arange(12) < 8), np.arange(12) >= 8])
    own = OwnFolds(trained, held_out)
    folds = np.where(held_out, weight, 0.0)
    found = predict_out_of_fold(Share(), np.arange(12.0)[:, None], labels, np.arange(2), folds, weight, own)
    assert np.isnan(found[:4]).all()
    np.testing.assert_allclose(found[4:8], np.tile([4 / 6, 2 / 6], (4, 1)))
    np.testing.assert_allclose(found[8:], np.tile([6 / 10, 4 / 10], (4, 1)))


def test_a_fold_with_one_class_left_is_sure_of_it_and_nothing_is_fitted():
    labels = np.array([0, 1, 1, 1])
    folds = np.array([[1.0, 0, 0, 0], [0, 1.0, 1.0, 1.0]])
    found = predict_out_of_fold(Share(), np.zeros((4, 1)), labels, np.arange(2), folds, np.ones(4))
    assert found.tolist() == [[0, 1], [1, 0], [1, 0], [1, 0]]
    assert FITS == []


@pytest.mark.parametrize(
    ("setting", "by_name"),
    [(None, False), ({}, False), ({"a": 1}, True), ({"a": 1, "b": 2}, True), ({"a": 1, "z": 2}, False), ("a", False)],
)
def test_labels_are_named_where_a_setting_names_all_of_its_classes(setting, by_name):
    labels, folds = np.arange(12) % 2, np.eye(2)[:, np.arange(12) // 6]
    predict_out_of_fold(Share(setting), np.zeros((12, 1)), labels, np.array(["a", "b"]), folds, np.ones(12))
    assert FITS[0][1] == (np.array(["a", "b"])[labels[6:]].tolist() if by_name else labels[6:].tolist())
    FITS.clear()
    within = make_pipeline(FunctionTransformer(), Share(setting))
    predict_out_of_fold(within, np.zeros((12, 1)), labels, np.array(["a", "b"]), folds, np.ones(12))
    assert isinstance(FITS[0][1][0], str) == by_name


def test_the_last_step_of_a_pipeline_gets_the_weights():
    labels, folds = np.arange(12) % 2, 2 * np.eye(2)[:, np.arange(12) // 6]
    model = Pipeline([("same", FunctionTransformer()), ("again", FunctionTransformer()), ("last", Share())])
    predict_out_of_fold(model, np.zeros((12, 1)), labels, np.arange(2), folds, np.full(12, 2.0))
    assert FITS[0][2].tolist() == [2.0] * 6


def test_models_that_cannot_be_cloned_are_copied(monkeypatch):
    def refuse(model):
        raise RuntimeError("changed by its constructor")

    monkeypatch.setattr(crossing, "clone", refuse)
    model = Share()
    labels, folds = np.arange(12) % 2, np.eye(2)[:, np.arange(12) // 6]
    predict_out_of_fold(model, np.zeros((12, 1)), labels, np.arange(2), folds, np.ones(12))
    assert len(FITS) == 2
    assert not hasattr(model, "shares_")


def test_models_of_another_kind_are_refused():
    labels, folds = np.arange(12) % 2, np.eye(2)[:, np.arange(12) // 6]
    rows = np.zeros((12, 1)), labels, np.arange(3), folds, np.ones(12)

    class Wide(Share):
        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    class Flat(Share):
        def predict_proba(self, X):
            return np.full(len(X), 0.5)

    for model, message in (
        (Share, r"got a class: give Share\(\)"),
        ("forest", "with fit, got 'forest'"),
        (FunctionTransformer(), "estimator must have predict_proba"),
        (Wide(), r"each of the 2 classes that it was fitted to, got shape \(6, 3\)"),
        (Flat(), r"each of the 2 classes that it was fitted to, got shape \(6,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            predict_out_of_fold(model, *rows)


def test_shares_set_aside_are_whole_up_to_rounding():
    weight = np.array([2.0, 0.0, 1.0, 1.0, 4.0])
    folds = np.array([[2.0 * (1 - 1e-10), 0.0, 1 - 1e-8, 0.5, 1.0], [0.0, 0.0, 1e-8, 0.5, 3.0]])
    found = find_held_out_shares(folds, weight)
    assert found[0].tolist() == [1.0, 0.0, 1 - 1e-8, 0.5, 0.25]
    assert found[1].tolist() == [0.0, 0.0, 1e-8, 0.5, 0.75]


# ---- clones that stay ----


def draw(n_rows=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    labels = ((X[:, 0] > 0) ^ (rng.random(n_rows) < 0.1)).astype(np.intp)
    return X, labels, np.eye(3)[:, np.arange(n_rows) % 3]


CLASSES = np.array(["no", "yes"])


def test_clones_predict_together_and_can_be_fitted_anew_in_the_same_folds():
    X, labels, folds = draw()
    weight = 1.0 + np.arange(90) % 2
    fit = cross_fit_clones(GaussianNB(), X, labels, CLASSES, folds * weight, weight)
    other = np.random.default_rng(1).normal(size=(5, 2))
    single = [GaussianNB().fit(X[kept], labels[kept], weight[kept]) for kept in folds == 0]
    np.testing.assert_allclose(fit.posterior(other), np.mean([one.predict_proba(other) for one in single], axis=0))
    np.testing.assert_array_equal(fit.posterior(other, n_jobs=2), fit.posterior(other))
    np.testing.assert_array_equal(fit.out_of_fold.held_out, folds)
    changed = np.where(np.arange(90) < 10, 1 - labels, labels)
    again = fit.refit(changed, 2.0 * weight)
    expected = cross_fit_clones(GaussianNB(), X, changed, CLASSES, 2.0 * folds * weight, 2.0 * weight)
    np.testing.assert_allclose(again.out_of_fold.posterior, expected.out_of_fold.posterior)
    np.testing.assert_array_equal(again.out_of_fold.labels, changed)
    np.testing.assert_array_equal(again.out_of_fold.weight, 2.0 * weight)
    assert again.out_of_fold.context is fit.out_of_fold.context


def test_processes_fit_the_same_clones():
    X, labels, folds = draw()
    told = LogisticRegression(), X, labels, CLASSES, folds, np.ones(90)
    one, two = cross_fit_clones(*told), cross_fit_clones(*told, n_jobs=2)
    np.testing.assert_array_equal(one.out_of_fold.posterior, two.out_of_fold.posterior)
    np.testing.assert_array_equal(one.posterior(X), two.posterior(X))


def test_what_is_kept_predicts_without_the_rows():
    X, labels, folds = draw()
    fit = cross_fit_clones(GaussianNB(), X, labels, CLASSES, folds, np.ones(90))
    kept = pickle.loads(pickle.dumps(fit.drop_rows()))
    assert kept.X is None
    np.testing.assert_array_equal(kept.posterior(X), fit.posterior(X))
    with pytest.raises(ValueError, match="the rows were dropped"):
        kept.refit(labels, np.ones(90))


def test_weights_that_an_estimator_refuses_leave_it_with_the_labels():
    X, labels, folds = draw()
    fit = cross_fit_clones(KNeighborsClassifier(), X, labels, CLASSES, folds, np.ones(90))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = fit.refit(labels, np.ones(90))
    np.testing.assert_array_equal(same.out_of_fold.posterior, fit.out_of_fold.posterior)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        changed = fit.refit(1 - labels, np.where(np.arange(90) < 5, 0.0, 3.0))
    expected = cross_fit_clones(
        KNeighborsClassifier(), X, 1 - labels, CLASSES, folds * (np.arange(90) >= 5), (np.arange(90) >= 5) * 1.0
    )
    np.testing.assert_array_equal(changed.out_of_fold.posterior[5:], expected.out_of_fold.posterior[5:])
    assert takes_sample_weight(make_pipeline(FunctionTransformer(), make_pipeline(LogisticRegression())))
    assert not takes_sample_weight(make_pipeline(LogisticRegression(), KNeighborsClassifier()))


def test_where_nothing_is_to_be_fitted_anew_clones_stay_as_they_are():
    X, labels, folds = draw()
    told = X, labels, CLASSES, folds, np.ones(90)
    deaf = cross_fit_clones(KNeighborsClassifier(), *told)
    with pytest.warns(UserWarning, match="all count alike, whatever they are worth"):
        assert deaf.refit(labels, np.full(90, 0.5)) is deaf
    frozen = cross_fit_clones(FrozenEstimator(GaussianNB().fit(X, CLASSES[labels])), *told)
    assert frozen.refit(1 - labels, np.full(90, 0.5)) is frozen


def test_folds_that_leave_out_rows_are_joined_by_a_clone_of_all():
    X, labels, _ = draw()
    held_out = np.array([np.arange(90) // 30 == 1, np.arange(90) // 30 == 2])
    own_folds = OwnFolds(np.array([np.arange(90) < 30, np.arange(90) < 60]), held_out)
    told = X, labels, CLASSES, held_out * 1.0, np.ones(90)
    fit = cross_fit_clones(GaussianNB(), *told, context=RowContext(own_folds=own_folds))
    whole = GaussianNB().fit(X, labels).predict_proba(X)
    np.testing.assert_allclose(fit.posterior(X), whole)
    assert np.isnan(fit.out_of_fold.posterior[:30]).all()
    np.testing.assert_allclose(
        fit.out_of_fold.posterior[30:60], GaussianNB().fit(X[:30], labels[:30]).predict_proba(X[30:60])
    )


def test_a_frozen_classifier_judges_every_row_by_the_names_of_its_classes():
    X, labels, folds = draw()
    trained = LogisticRegression().fit(X, CLASSES[labels])
    found = cross_fit_clones(FrozenEstimator(trained), X, labels, CLASSES, folds, np.ones(90))
    np.testing.assert_allclose(found.out_of_fold.posterior, trained.predict_proba(X))
    np.testing.assert_allclose(found.posterior(X), trained.predict_proba(X))
    for classes in (["false", "yes"], ["maybe", "no", "yes"], ["no"]):
        with pytest.raises(ValueError, match=r"fitted to the classes of y, \[.*\], got one of \['no', 'yes'\]"):
            cross_fit_clones(FrozenEstimator(trained), X, 0 * labels, np.array(classes), folds, np.ones(90))
    with pytest.raises(ValueError, match="a frozen classifier must be fitted"):
        cross_fit_clones(FrozenEstimator(GaussianNB()), X, labels, CLASSES, folds, np.ones(90))


class Careless(BaseEstimator):
    """A classifier that says what it is told in one row, and .5 everywhere else."""

    def __init__(self, row=0, said=(0.5, 0.5)):
        self.row, self.said = row, said

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        found = np.full((len(X), 2), 0.5)
        found[X[:, 0] == self.row] = self.said
        return found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((-0.2, 1.2), "be from 0 to 1, got -0.2 in row 7"),
        ((0.5, 1.5), "be from 0 to 1, got 1.5 in row 7"),
        ((np.nan, 0.5), "be from 0 to 1, got nan in row 7"),
        ((0.3, 0.3), "sum to 1 in each row, got 0.6 in row 7"),
        ((0.0, 0.0), "sum to 1 in each row, got 0 in row 7"),
        ((0.499, 0.499), None),
    ],
)
def test_what_is_no_probability_is_named_with_its_row(said, words):
    X = np.column_stack([np.arange(12.0), np.zeros(12)])
    told = Careless(7, said), X, np.arange(12) % 2, CLASSES, np.eye(3)[:, np.arange(12) % 3], np.ones(12)
    if words is None:  # That much is rounding.
        assert cross_fit_clones(*told).out_of_fold.posterior[7].tolist() == list(said)
        return
    with pytest.raises(ValueError, match=f"predict_proba of Careless must {words}"):
        cross_fit_clones(*told)
    with pytest.raises(ValueError, match="in row 1"):
        crossing.FittedClone(told[0].fit(X, told[2]), np.arange(2), 2).posterior(X[6:])
