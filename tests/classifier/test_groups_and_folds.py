"""Fits that are told which rows belong together, or which folds to use."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.grouped_rows import draw_patients
from helpers.learners import make_paper_model
from helpers.noisy_rows import make_noisy_rows
from helpers.quick import QuickClassifier, make_classifier, resolve
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.automatic.search import Search
from untwist.files import dumps, loads
from untwist.fit_arguments import NO_OWN_FOLDS_FOR_WORKERS, SourceColumns, ValidationTable
from untwist.training_data import TrainingData

QUICK = {"n_estimators": 12, "max_depth": 2, "random_state": 0}


@pytest.fixture(scope="module")
def patients():
    return draw_patients(24, 12, 4)


def collect(X, y, weight=None, groups=None, **parameters):
    settings = resolve(make_classifier(**QUICK | parameters).get_params())
    return TrainingData.collect(settings, X, y, weight, sources=SourceColumns(groups=groups))


def fit_chosen(model, X, y):
    """A fit of these rows, with the settings that a model has chosen by folds."""
    best = model.choice_.best
    settings = {"alpha": best.alpha, "max_depth": best.max_depth, "n_estimators": best.n_rounds}
    drawn = {"l2": 1.0, "subsample": 0.7, "max_features": 0.7, "learning_rate": best.step}
    return make_paper_model(**settings, **drawn, init="prior", random_state=0).fit(X, y)


# ---- groups ----


def test_models_have_not_seen_the_group_that_they_judge(patients):
    X, y, patient, wrong = patients
    with pytest.warns(UserWarning, match="have near-duplicates in other folds"):
        blind = UntwistClassifier(random_state=0).fit(X, y)
    assert blind.noise_ is None  # It would be that of labels which were remembered.
    seeing = UntwistClassifier(random_state=0).fit(X, y, groups=patient)
    errors = [(one.oof_proba_.argmax(axis=1) != y).mean() for one in (blind, seeing)]
    assert errors[0] < 0.02
    assert errors[1] == pytest.approx(len(wrong) / 24, abs=0.1)
    doubted = seeing.oof_proba_[np.arange(len(y)), y] < 0.5
    assert doubted[np.isin(patient, wrong)].mean() > 0.9


@pytest.mark.parametrize("parameters", [{}, {"cv": 3}, {"engine": "xgboost"}], ids=str)
def test_all_rows_of_a_group_lie_in_one_fold(patients, parameters):
    if "engine" in parameters:
        pytest.importorskip("xgboost")
    X, y, patient, _ = patients
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    data = collect(X, y, weight, patient, **parameters)
    assert len(data.folds) == parameters.get("cv", 5)
    assert np.array_equal(data.folds.sum(axis=0), weight)
    for one in np.unique(patient):
        assert (data.folds[:, patient == one].any(axis=1)).sum() == 1
    for fold in range(len(data.folds)):
        assert np.array_equal(data.training_weight(fold), weight - data.folds[fold])


def test_the_model_depends_neither_on_the_order_of_the_rows_nor_on_the_names_of_groups(patients):
    X, y, patient, _ = patients
    order = np.random.default_rng(0).permutation(len(y))
    first = make_classifier(**QUICK).fit(X, y, groups=patient)
    second = make_classifier(**QUICK).fit(X[order], y[order], groups=[f"p{one}" for one in patient[order]])
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert np.array_equal(first.oof_proba_[order], second.oof_proba_)
    assert str(first.noise_) == str(second.noise_)


def test_a_weight_of_two_is_a_repeated_row_of_the_group(patients):
    X, y, patient, _ = patients
    twice = np.random.default_rng(1).random(len(y)) < 0.3
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    weighed = make_classifier(**QUICK).fit(X, y, 1.0 + twice, groups=patient)
    repeated = make_classifier(**QUICK).fit(X[rows], y[rows], groups=patient[rows])
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
    assert str(weighed.noise_) == str(repeated.noise_)


def test_rows_without_a_group_are_groups_of_their_own_and_copies_stay_together():
    X, y = make_noisy_rows(200)
    groups = np.full(200, None, dtype=object)
    groups[:30] = "first"
    X[60], y[60] = X[61], y[61]
    data = collect(X, y, groups=groups)
    assert data.folds[:, :30].any(axis=1).sum() == 1
    assert np.array_equal(data.folds[:, 60], data.folds[:, 61])
    assert data.folds[:, 30:].any(axis=1).all()


def test_early_stopping_holds_out_whole_groups(patients):
    X, y, patient, _ = patients
    settings = {"alpha": 1.0, "n_estimators": 30, "max_depth": 2, "early_stopping": True}
    model = PILBoostClassifier(**settings, random_state=0).fit(X, y, groups=patient)
    held_out = np.isin(np.arange(len(y)), model.validation_rows_)
    assert 0.05 < held_out.mean() < 0.2
    assert not set(patient[held_out]) & set(patient[~held_out])


def test_groups_that_play_no_part_are_refused(patients):
    X, y, patient, _ = patients
    with pytest.raises(ValueError, match="groups play no part in this fit"):
        PILBoostClassifier(n_estimators=2).fit(X, y, groups=patient)
    with pytest.raises(ValueError, match="give early_stopping=True and no X_val"):
        PILBoostClassifier(n_estimators=2, early_stopping=True).fit(X, y, X, y, groups=patient)


def test_groups_play_no_part_beside_validation_rows(patients):
    X, y, patient, _ = patients
    settings = resolve(PILBoostClassifier(early_stopping=True).get_params())
    data = TrainingData.collect(settings, X, y, None, ValidationTable(X, y), sources=SourceColumns(groups=patient))
    assert data.folds is None
    assert data.rows.groups is None


def test_sources_items_and_reviewed_rows_go_with_groups(patients):
    X, y, patient, _ = patients
    who = np.random.default_rng(0).choice(["Ann", "Bea"], len(y))
    rounded = X.round(1)  # Now the rows of a patient repeat.
    model = make_classifier(**QUICK).fit(rounded, y, source=who, groups=patient)
    items = model.model_.out_of_fold.context.sources.items
    assert all(len(set(patient[items == item])) == 1 for item in np.unique(items))
    named = make_classifier(**QUICK).fit(X, y, source=who, item=patient * 2 + (np.arange(len(y)) % 2), groups=patient)
    assert named.sources_.names.tolist() == ["Ann", "Bea"]
    with pytest.raises(ValueError, match="item must lie within a group"):
        make_classifier(**QUICK).fit(X, y, source=who, item=np.arange(len(y)) % 2, groups=patient)
    reviewed = make_classifier(**QUICK).fit(X, y, reviewed=[0, 13], groups=patient)
    assert reviewed.model_.out_of_fold.context.reviewed is not None
    assert reviewed.model_.out_of_fold.context.groups is not None


def test_groups_are_routed_through_pipelines_and_cross_validation(patients):
    X, y, patient, _ = patients
    seen = []

    class Watching(PILBoostClassifier):
        def fit(self, X, y, sample_weight=None, *, groups=None):
            seen.append(groups)
            return super().fit(X, y, sample_weight, groups=groups)

    with sklearn.config_context(enable_metadata_routing=True):
        model = Watching(alpha=1.0, n_estimators=3, max_depth=2, early_stopping=True).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        cross_validate(pipeline, X, y, cv=GroupKFold(2), params={"groups": patient})
    assert len(seen) == 2
    assert not set(seen[0]) & set(seen[1])
    assert set(seen[0]) | set(seen[1]) == set(patient)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(60), "groups must be two at least"),
        (np.arange(59), "groups must be one name per row of X, got 59 for 60 rows"),
        (np.zeros((60, 2)), "groups must be one name per row"),
        ("patient", "groups must be the values, one per row, and not the name of a column"),
        (np.arange(60) // 30, "lies in too few groups"),
    ],
)
def test_groups_that_cannot_be_meant_are_refused(groups, message):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=message):
        make_classifier(**QUICK).fit(X, np.arange(60) // 30, groups=groups)


# ---- folds of one's own ----


def test_a_number_of_folds():
    X, y = make_noisy_rows(150)
    data = collect(X, y, cv=3)
    assert data.folds.shape == (3, 150)
    assert np.array_equal(collect(X, y, cv=5).folds, collect(X, y).folds)
    order = np.random.default_rng(0).permutation(150)
    models = [make_classifier(cv=3, **QUICK).fit(X[rows], y[rows]) for rows in (np.arange(150), order)]
    assert np.array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


@pytest.mark.parametrize("cv", [1, 0, True, 2.5, "five", {"a": 1}, KFold], ids=str)
def test_what_makes_no_folds_is_refused(cv):
    X, y = make_noisy_rows(60)
    with pytest.raises(ValueError, match="cv must be"):
        make_classifier(cv=cv, **QUICK).fit(X, y)


def test_more_folds_than_there_are_rows_groups_or_items_are_refused(patients):
    X, y = make_noisy_rows(60)
    most = int(np.bincount(y).max())
    assert len(collect(X, y, cv=most).folds) == most
    for n_folds in (most + 1, 1000, 2**31):
        with pytest.raises(
            ValueError, match=f"cv must be at most the number of rows of the largest class, {most}, got"
        ):
            make_classifier(cv=n_folds, **QUICK).fit(X, y)
    copies = np.repeat(np.arange(60), 2)
    for data, weight in (((X[copies], y[copies]), None), ((X, y), np.full(60, 2.0))):
        with pytest.raises(ValueError, match=f"of the largest class, {2 * most}, got {2 * most + 1}"):
            make_classifier(cv=2 * most + 1, **QUICK).fit(*data, weight)
    with pytest.raises(ValueError, match=f"of the largest class, {most}, got {most + 1}"):
        make_classifier(cv=most + 1, **QUICK).fit(X, y, np.full(60, 1e-300))
    few = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    assert len(collect(*few, np.full(40, 1.4), cv=28).folds) == 28  # Copies of equal rows add up before they are whole.
    X, y, patient, _ = patients
    assert len(collect(X, y, groups=patient, cv=24).folds) == 24
    source = np.arange(len(y)) % 3
    for n_folds in (25, 2**31 - 1):
        with pytest.raises(ValueError, match=f"cv must be at most the number of different groups, 24, got {n_folds}"):
            make_classifier(cv=n_folds, **QUICK).fit(X, y, groups=patient)
        with pytest.raises(ValueError, match=f"cv must be at most the number of items, 24, got {n_folds}"):
            UntwistClassifier(random_state=0, cv=n_folds).fit(X, y, source=source, item=patient)


def test_items_that_hold_the_same_make_fewer_folds_than_were_asked_for():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 2)).astype(float)
    y = X[:, 0].astype(int) ^ (rng.random(600) < 0.2)
    fitted = make_classifier(cv=10, **QUICK).fit(X, y, source=np.arange(600) % 3, item=np.repeat(np.arange(200), 3))
    assert fitted.score(X, y) > 0.7


def test_the_default_number_of_folds_is_no_more_than_there_are_groups(patients):
    X, y, patient, _ = patients
    assert len(collect(X, y, groups=patient % 4).folds) == 4
    assert len(collect(X[:3], [0, 1, 1]).folds) == 3


def test_folds_train_on_exactly_the_rows_that_they_are_told():
    X, y = make_noisy_rows(240, values=4)  # Any half of the rows has all values, so that columns are binned alike.
    splitter = TimeSeriesSplit(3, gap=10)
    settings = {"alpha": 1.0, "noise": None, "n_estimators": 12, "boosted_only": True, "random_state": 0}
    model = make_classifier(cv=splitter, **settings).fit(X, y)
    judged = np.zeros(240, dtype=bool)
    for train, test in splitter.split(X):
        expected = fit_chosen(model, X[train], y[train]).predict_proba_twisted(X[test])
        np.testing.assert_allclose(model.oof_proba_[test], expected, rtol=1e-6)
        judged[test] = True
    assert judged.sum() == 180
    assert np.isnan(model.oof_proba_[~judged]).all()
    # The model itself has learned from all rows.
    np.testing.assert_allclose(model.decision_function(X), fit_chosen(model, X, y).decision_function(X), rtol=1e-6)
    assert np.array_equal(model.model_.out_of_fold.judged, judged)
    assert model.model_.out_of_fold.judged_weight.sum() == 180


def test_a_partition_into_folds_is_like_one_of_ours():
    X, y = make_noisy_rows(150)
    ours = collect(X, y)
    own = PredefinedSplit(ours.folds.argmax(axis=0))
    models = [make_classifier(cv=cv, **QUICK).fit(X, y) for cv in (None, own)]
    assert np.array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    assert np.array_equal(models[0].oof_proba_, models[1].oof_proba_)


def test_a_splitter_is_given_the_groups_and_the_labels(patients):
    X, y, patient, _ = patients
    data = collect(X, y, groups=patient, cv=GroupKFold(4))
    assert len(data.folds) == 4
    for one in np.unique(patient):
        assert (data.folds[:, patient == one].any(axis=1)).sum() == 1
    with pytest.raises(ValueError, match="cv trains on some rows of group 0 and judges others"):
        collect(X, y, groups=patient, cv=list(KFold(4, shuffle=True, random_state=0).split(X)))


@pytest.mark.parametrize("splitter", [GroupKFold(3), StratifiedGroupKFold(3)], ids=str)
def test_a_splitter_that_asks_for_groups_says_how_to_give_them(patients, splitter):
    X, y, *_ = patients
    with pytest.raises(
        ValueError, match=r"cv, (Stratified)?GroupKFold.* makes no folds of these rows: .*give groups=..."
    ):
        make_classifier(cv=splitter, **QUICK).fit(X, y)


def test_a_splitter_that_complains_of_something_else_is_not_answered_with_groups(patients):
    X, y, *_ = patients
    with pytest.raises(ValueError, match=r"makes no folds of these rows: n_splits=200 cannot be greater .*class$"):
        make_classifier(cv=StratifiedKFold(200), **QUICK).fit(X, y)


def test_a_splitter_takes_rows_without_a_group_as_groups_of_their_own(patients):
    X, y, groups, _ = patients
    unknown = np.array(groups, dtype=object)
    unknown[:5] = None
    model = make_classifier(cv=GroupKFold(3), **QUICK).fit(X, y, groups=unknown)
    assert np.isfinite(model.oof_proba_).all()


def test_folds_of_ones_own_stay_behind_when_a_model_is_saved(patients):
    X, y, groups, _ = patients
    model = make_classifier(cv=GroupKFold(3), **QUICK).fit(X, y, groups=groups)
    again = loads(dumps(model))
    assert again.cv is None
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_where_folds_leave_rows_out_all_rows_make_the_model():
    """The last rows of a time series are in no training part, and yet the model knows them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(400) // 320, rng.normal(size=400)]).astype(float)
    y = ((X[:, 1] > 0) ^ (X[:, 0] == 1)).astype(int)  # What holds for the first rows is the other way round at the end.
    folds = [(np.arange(160), np.arange(160, 240)), (np.arange(240), np.arange(240, 320))]
    for boosted_only in (True, False):
        model = QuickClassifier(boosted_only=boosted_only, random_state=0, cv=folds).fit(X, y)
        assert (model.predict(X[320:]) == y[320:]).mean() > 0.9
        assert np.isnan(model.oof_proba_[320:]).all()
        assert (model.oof_proba_[160:320].argmax(axis=1) == y[160:320]).mean() > 0.9


def test_columns_of_many_categories_are_coded_by_the_training_rows_of_a_fold():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = rng.choice([f"n{i}" for i in range(40)], 300)
    X = pandas.DataFrame({"name": pandas.Categorical(names), "x": rng.normal(size=300)})
    y = (rng.random(300) < np.where(np.char.endswith(names.astype(str), "1"), 0.9, 0.3)).astype(int)
    folds = [(np.arange(100), np.arange(100, 200)), (np.arange(200), np.arange(200, 300))]
    data = collect(X, y, cv=folds)
    for number, (train, _) in enumerate(folds):
        weight = np.isin(np.arange(300), train).astype(float)
        assert np.array_equal(data.training_weight(number), weight)
        assert np.array_equal(data.fold_numbers[number], data.coding.number_rows(weight), equal_nan=True)
    model = Search(data).run().model
    assert np.isfinite(model.scores(model.encoder.encode(X, None))).all()


def test_weights_and_class_weights_go_with_folds_of_ones_own():
    X, y = make_noisy_rows(200)
    weight = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    model = make_classifier(class_weight="balanced", cv=TimeSeriesSplit(3), **QUICK).fit(X, y, weight)
    unseen = model.model_.out_of_fold
    np.testing.assert_allclose(unseen.weight, weight)
    np.testing.assert_allclose(unseen.judged_weight, np.where(np.arange(200) < 50, 0.0, weight))


@pytest.mark.parametrize(
    ("cv", "more", "message"),
    [
        ([(range(30), range(40, 60))], {}, "trains on no row of class 1"),
        ([([0, 59], range(1, 30)), ([0, 59], range(20, 40))], {}, "folds 0 and 1 both judge row 20"),
        ([([0, 59], [60])], {}, "positions from 0 to 59"),
        ([([0, 59], [1])], {"source": ["a"] * 60}, "source must be None with a cv that does not judge every row"),
        ([([0, 59], [1])], {"reviewed": [1]}, "reviewed must be None with a cv that does not judge every row"),
        (iter([]), {}, "cv must have one fold at least"),
    ],
)
def test_folds_that_do_not_go_with_the_rows_are_refused(cv, more, message):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=message):
        make_classifier(cv=cv, **QUICK).fit(X, np.arange(60) // 30, **more)


def test_workers_take_groups_and_refuse_folds_of_ones_own():
    class Two:
        size, rank = 2, 0

        def gather(self, item):
            return [item, None if item is True else item]

    settings = resolve(UntwistClassifier(engine="xgboost", cv=KFold(3)).get_params())
    with pytest.raises(ValueError, match="cv must be None or a number of folds in a distributed fit"):
        SourceColumns().check_allowed(settings, Two())
    assert "give groups" in NO_OWN_FOLDS_FOR_WORKERS
    settings = resolve(UntwistClassifier(engine="xgboost").get_params())
    with pytest.raises(ValueError, match="groups must be given to all workers"):
        SourceColumns(groups=[1]).check_allowed(settings, Two())
