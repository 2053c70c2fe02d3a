"""Fits by source: what is judged, when a second fit follows, and what ends it."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.quick import make_classifier, resolve
from helpers.sourced_rows import draw_sourced_rows, draw_votes
from untwist import UntwistClassifier, learning_noise
from untwist.automatic.recipe import fit_recipe
from untwist.automatic.search import Search
from untwist.data.sources import LabelSources
from untwist.fit_arguments import SourceColumns
from untwist.learning_noise import differ_much, judge_sources, weigh_by_reliability
from untwist.training_data import TrainingData

pytestmark = pytest.mark.usefixtures("few_components")
SETTINGS = {"random_state": 0, "n_jobs": 1}


def collect(X, y, source, item=None, weight=None, **settings):
    parameters = make_classifier(**SETTINGS, **settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), X, y, weight, sources=SourceColumns(source, item))


@pytest.fixture(scope="module")
def uneven():
    X, y, source, _ = draw_sourced_rows()
    data = collect(X, y, source)
    return data, fit_recipe(data).model


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.thinned(2)
def test_where_sources_differ_much_the_same_candidate_is_boosted_by_what_labels_are_worth(classes):
    X, y, source, truth = draw_sourced_rows(900, classes=classes, bad_rate=0.6)
    model = make_classifier(**SETTINGS).fit(X, y, source=source)
    plain = make_classifier(**SETTINGS).fit(X, y)
    assert model.choice_.best == plain.choice_.best
    assert model.choice_.tried == plain.choice_.tried
    assert model.sources_.names[model.sources_.stands_out].tolist() == ["Leipzig"]
    assert model.sources_.shares[1] == pytest.approx(0.6, abs=0.1)
    assert (model.decision_function(X) != plain.decision_function(X)).any()
    assert (model.predict(X) == truth).mean() >= (plain.predict(X) == truth).mean()
    # The first fit, weighted by hand, is the second one.
    data = collect(X, y, source)
    unseen = plain.model_.out_of_fold.add_context(sources=data.sources)
    first = judge_sources(replace(plain.model_, out_of_fold=unseen))
    weight = first.sources.reliability[np.searchsorted(first.sources.names, source)]
    settings = resolve(make_classifier(**SETTINGS).get_params(deep=False)).narrow_to(plain.choice_.best)
    weighed = replace(data, settings=settings, weight=data.weight * weight, folds=data.folds * weight)
    expected = Search(weighed).run().model
    for one, other in zip(model.model_.ensembles, expected.ensembles, strict=True):
        np.testing.assert_array_equal(one.forest.value, other.forest.value)


def test_where_sources_are_alike_the_trees_are_those_of_a_fit_without():
    X, y, source, _ = draw_sourced_rows(bad_rate=0.02)
    model = make_classifier(**SETTINGS).fit(X, y, source=source)
    plain = make_classifier(**SETTINGS).fit(X, y)
    assert not model.sources_.stands_out.any()
    np.testing.assert_array_equal(model.model_.by_class("forest").value, plain.model_.by_class("forest").value)
    np.testing.assert_array_equal(model.oof_proba_, plain.oof_proba_)


def test_the_noise_that_is_undone_is_that_of_the_sources(uneven):
    _, model = uneven
    assert model.noise is model.posterior.noise is model.sources.noise


def test_rows_set_aside_keep_their_own_weights(uneven):
    data, model = uneven
    np.testing.assert_array_equal(model.out_of_fold.judged_weight, np.ones(data.n_rows))
    assert model.out_of_fold.context.sources is data.sources
    assert model.out_of_fold.context.fingerprint == data.fingerprint


def test_labels_of_unknown_sources_are_worth_the_mean(uneven):
    _, model = uneven
    noise = replace(model.sources, counts=np.array([1.0, 3.0, 0.0, 4.0]), reliability=np.array([1.0, 0.25, 0.5, 0.5]))
    rows = LabelSources(noise.names, np.array([1, -1, 3, 0]), np.arange(4))
    np.testing.assert_array_equal(weigh_by_reliability(noise, rows), [0.25, (1.0 + 0.75 + 2.0) / 8.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("counts", "reliability", "expected"),
    [
        ([100, 100], [1.0, 1.0], False),
        ([100, 100], [1.0, 0.6], False),
        ([100, 100], [1.0, 0.5], True),
        ([700, 100], [1.0, 0.1], True),
        ([700, 10], [1.0, 0.02], False),  # However bad, it has too few labels to matter.
        ([700, 0], [1.0, 0.02], False),
        ([0, 0], [1.0, 0.02], False),
        ([1, 1], [1e-3, 1.0], True),
    ],
)
def test_when_sources_differ_much(uneven, counts, reliability, expected):
    noise = replace(uneven[1].sources, counts=np.array(counts, dtype=float), reliability=np.array(reliability))
    assert differ_much(noise) is expected
    weight = np.repeat(reliability, counts)
    if len(weight):
        assert (weight.sum() ** 2 / (weight**2).sum() < 0.92 * len(weight)) == expected


@pytest.mark.parametrize("long", [False, True])
def test_any_order_of_the_rows_gives_the_same_model(long):
    X, y, source, *_ = draw_votes(100) if long else draw_sourced_rows(400)
    order = np.random.default_rng(5).permutation(len(y))
    model = make_classifier(**SETTINGS).fit(X, y, source=source)
    other = make_classifier(**SETTINGS).fit(X[order], y[order], source=source[order])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(model.oof_proba_[order], other.oof_proba_)
    np.testing.assert_array_equal(model.sources_.matrices, other.sources_.matrices)
    np.testing.assert_array_equal(model.sources_.intervals, other.sources_.intervals)


@pytest.mark.slow
def test_the_number_of_threads_makes_no_difference():
    X, y, source, _ = draw_sourced_rows()
    one, two = (UntwistClassifier(random_state=0, n_jobs=n).fit(X, y, source=source) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_labels_of_an_item_are_judged_by_one_model():
    X, y, source, items, _ = draw_votes()
    data = collect(X, y, source)
    np.testing.assert_array_equal(find_pairs(data.sources.items), find_pairs(items))
    fold_of_row = data.folds.argmax(axis=0)
    assert all(len(set(fold_of_row[items == item])) == 1 for item in np.unique(items))
    posterior = fit_recipe(data).model.out_of_fold.average_by_item().posterior
    for item in np.unique(items)[:20]:
        assert len(np.unique(posterior[items == item], axis=0)) == 1


def find_pairs(items):
    """Whether two rows are of one item."""
    return items[:, None] == items[None, :]


def test_rows_of_a_named_item_may_differ_and_are_judged_by_their_mean():
    X, y, source, items, _ = draw_votes()
    X = X + np.random.default_rng(1).normal(scale=1e-3, size=X.shape)
    data = collect(X, y, source, [f"item {one}" for one in items])
    np.testing.assert_array_equal(find_pairs(data.sources.items), find_pairs(items))
    model = fit_recipe(data).model
    found = model.out_of_fold.average_by_item().posterior
    by_row = model.out_of_fold.posterior
    for item in np.unique(items)[:20]:
        np.testing.assert_allclose(found[items == item], by_row[items == item].mean(axis=0)[None].repeat(3, axis=0))


@pytest.mark.slow
def test_verbose_fits_tell_of_the_second_one(capsys):
    X, y, source, _ = draw_sourced_rows()
    make_classifier(**SETTINGS, verbose=1).fit(X, y, source=source)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2] == "the same once more, each label weighing what it is worth"
    assert lines[-1].startswith("alpha ")


@pytest.mark.slow
def test_callbacks_hear_of_the_second_fit_and_may_end_it():
    X, y, source, _ = draw_sourced_rows()
    heard = []
    whole = make_classifier(callbacks=[heard.append], **SETTINGS).fit(X, y, source=source)
    n_of_first = len(heard) - -(-whole.choice_.best.n_rounds // 10)
    assert [one.round for one in heard[n_of_first:]] == [
        min(10 * (step + 1), whole.choice_.best.n_rounds) for step in range(len(heard) - n_of_first)
    ]
    assert heard[n_of_first].seconds > heard[n_of_first - 1].seconds
    calls = []
    stopped = make_classifier(callbacks=[lambda progress: calls.append(0) or len(calls) > n_of_first], **SETTINGS)
    stopped.fit(X, y, source=source)
    assert len(calls) == n_of_first + 1
    plain = make_classifier(**SETTINGS).fit(X, y)
    np.testing.assert_array_equal(stopped.model_.by_class("forest").value, plain.model_.by_class("forest").value)
    assert stopped.sources_.stands_out.any()


def interrupt_after(n_calls):
    """A callback that hears Ctrl-C at its so-and-so-manyth call."""
    calls = []

    def callback(progress):
        calls.append(progress)
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    return callback


def test_ctrl_c_in_the_second_fit_keeps_the_first():
    X, y, source, _ = draw_sourced_rows()
    heard = []
    whole = make_classifier(callbacks=[heard.append], **SETTINGS).fit(X, y, source=source)
    n_of_first = len(heard) - -(-whole.choice_.best.n_rounds // 10)
    model = make_classifier(callbacks=[interrupt_after(n_of_first + 2)], **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, source=source)
    plain = make_classifier(**SETTINGS).fit(X, y)
    np.testing.assert_array_equal(model.model_.by_class("forest").value, plain.model_.by_class("forest").value)
    assert model.sources_.stands_out.any()
    assert model.model_.posterior.noise is model.sources_.noise


def test_ctrl_c_in_the_search_leaves_a_model_as_ever():
    X, y, source, _ = draw_sourced_rows()
    model = make_classifier(callbacks=[interrupt_after(2)], **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, source=source)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.noise_ is not None


def test_ctrl_c_while_sources_are_judged_leaves_the_model_without_them(monkeypatch):
    def interrupt(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(learning_noise, "estimate_noise_of_sources", interrupt)
    X, y, source, _ = draw_sourced_rows()
    model = make_classifier(**SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, source=source)
    plain = make_classifier(**SETTINGS).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert not hasattr(model, "sources_")


@pytest.mark.slow
def test_a_weight_of_two_is_a_label_that_counts_twice_and_one_of_zero_none():
    X, y, source, _ = draw_sourced_rows(500)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    present = weight > 0
    model = make_classifier(**SETTINGS).fit(X, y, weight, source=source)
    without = make_classifier(**SETTINGS).fit(X[present], y[present], weight[present], source=source[present])
    # The trees are the same; how much either family counts is found by a search that ends a little elsewhere.
    np.testing.assert_array_equal(
        model.model_.by_class("forest").threshold, without.model_.by_class("forest").threshold
    )
    np.testing.assert_allclose(
        model.model_.by_class("forest").value, without.model_.by_class("forest").value, rtol=1e-7
    )
    np.testing.assert_allclose(model.predict_proba(X), without.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(
        model.sources_.counts, [weight[source == name].sum() for name in model.sources_.names]
    )


@pytest.mark.slow
def test_class_weights_are_no_part_of_what_is_said_of_sources():
    X, y, source, _ = draw_sourced_rows(900)
    kept = (y == 0) | (np.arange(len(y)) % 4 == 0)  # One class is rare.
    X, y, source = X[kept], y[kept], source[kept]
    plain = make_classifier(**SETTINGS).fit(X, y, source=source)
    balanced = make_classifier(class_weight="balanced", **SETTINGS).fit(X, y, source=source)
    np.testing.assert_allclose(balanced.sources_.counts, plain.sources_.counts, rtol=1e-12)
    np.testing.assert_allclose(balanced.model_.out_of_fold.judged_weight, 1.0, rtol=1e-12)
    np.testing.assert_allclose(balanced.sources_.shares, plain.sources_.shares, atol=0.06)
    assert balanced.sources_.stands_out.tolist() == plain.sources_.stands_out.tolist() == [False, True, False, False]
