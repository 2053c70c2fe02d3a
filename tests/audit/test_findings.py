"""The numbers that a report shows are those of the audit."""

import numpy as np
import pytest
from scipy.stats import binomtest

from helpers.report_fixtures import make_customers
from untwist import PILBoostClassifier
from untwist.audit import audit_labels, findings


def test_an_audit_can_be_compared_and_hashed(shop, three):
    assert shop == shop
    assert shop != three
    assert len({shop, three}) == 2


def test_wilson_is_that_of_scipy():
    for k, n in ((0, 7), (3, 10), (50, 50), (400, 1000)):
        share, low, high = findings.bound_share(k / n, n)
        expected = binomtest(k, n).proportion_ci(method="wilson")
        assert (share, low, high) == pytest.approx((k / n, expected.low, expected.high), abs=1e-9)


def test_reliability_counts_every_row_once(shop, three):
    for audit in (shop, three):
        bins = findings.measure_reliability(audit)
        assert [said for said, _ in bins] == sorted(said for said, _ in bins)
        said = audit.posterior[:, 1] if audit is shop else audit.posterior.max(axis=1)
        bears = audit.given == (audit.classes[1] if audit is shop else audit.classes[audit.posterior.argmax(axis=1)])
        n_bins = len(bins)
        assert np.mean([one for one, _ in bins]) == pytest.approx(said.mean(), abs=0.01)  # of about equal weight
        assert np.mean([share for _, (share, _, _) in bins]) == pytest.approx(bears.mean(), abs=0.01)
        first = np.argsort(said, kind="stable")[: len(said) // n_bins]
        assert bins[0][1][0] == pytest.approx(bears[first].mean(), abs=1e-12)
        assert bins[0][1] == findings.bound_share(bears[first].mean(), len(first))
        assert sum(findings.measure_spread(audit)) == pytest.approx(1)


def test_weights_count_but_unequal_ones_tell_less():
    assert findings.count_effective_rows(np.full(600, 2.0)) == 600
    assert findings.count_effective_rows(np.array([1.0, 0.0, 0.0])) == 1
    table, labels, _ = make_customers(600)
    weight = 1.0 + np.arange(600) % 3
    audit = audit_labels(table, labels, sample_weight=weight, seeks_sources=False)
    bins = findings.measure_reliability(audit)
    mean = np.average(labels == "stays", weights=weight)
    assert np.mean([share for _, (share, _, _) in bins]) == pytest.approx(mean, abs=0.01)  # bins of about equal weight


def test_the_clean_curve_is_that_of_the_noise(shop, three):
    for x, y in findings.trace_clean_posterior(shop)[1:-1]:
        assert y == pytest.approx(float(shop.noise.clean(np.log(x / (1 - x)))), rel=1e-9)
    curve = findings.trace_clean_posterior(three)
    assert [x for x, _ in curve] == [said for said, _ in findings.measure_reliability(three)]
    likeliest = three.posterior.argmax(axis=1)
    clean = three.noise.clean(three.posterior)[np.arange(600), likeliest]
    assert np.mean([y for _, y in curve]) == pytest.approx(clean.mean(), abs=0.01)  # Groups are of about equal weight.


def test_the_learning_curve_is_that_of_the_best_candidate(shop, three):
    for audit in (shop, three):
        losses, errors = findings.average_learning_curves(audit.fitted)
        best = audit.model.choice_.best
        assert losses[best.n_rounds - 1] == pytest.approx(best.loss)
        assert errors[best.n_rounds - 1] == pytest.approx(best.error)


def test_without_noise_found_finds_are_those_at_most(clean):
    points = findings.expect_finds(clean, 50)
    assert points[-1] == (50.0, pytest.approx(clean.bound_wrong(clean.suspects(budget=50))[1]))
    assert points[-1][1] > 5 + clean.expect_wrong(clean.suspects(budget=50))


def test_expected_finds_add_up(shop):
    points = findings.expect_finds(shop, 300)
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (300.0, pytest.approx(shop.wrong[shop.ranking[:300]].sum()))
    assert len(points) <= 120


def test_trees_that_learn_the_same_labels_again_are_the_same(shop, three):
    for audit in (shop, three):
        again = findings.train_again(audit, audit.given)
        np.testing.assert_array_equal(again.importances("gain"), audit.model.importances("gain"))
        np.testing.assert_array_equal(again.scores(audit.numbers), audit.fitted.scores(audit.numbers))


@pytest.mark.parametrize(
    "settings", [{"step_size": 2.0}, {"learning_rate": 0.3}, {"class_weight": "balanced", "l2": 3.0}]
)
def test_they_are_so_with_other_settings_too(settings):
    table, labels, _ = make_customers(400)
    model = PILBoostClassifier(random_state=3, **settings).fit(table, labels)
    again = findings.train_again(audit_labels(table, labels, model, seeks_sources=False), labels)
    np.testing.assert_array_equal(again.importances("gain"), model.importances("gain"))


def test_columns_that_explained_wrong_labels_lose(shop):
    before, after = findings.compare_importances(shop, shop.suspects())
    np.testing.assert_array_equal(before, shop.model.importances("gain"))
    assert after.sum() == pytest.approx(1)
    useless = [list(shop.X).index(name) for name in ("monthly fee", "plan")]
    assert (after[useless] < before[useless]).all()
    assert findings.compare_importances(shop, np.zeros(0, dtype=int))[1] is None


def test_of_many_rows_some_show_what_corrections_change(shop, monkeypatch):
    _, of_all = findings.compare_importances(shop, shop.suspects())
    monkeypatch.setattr(findings, "MOST_TRAINED_AGAIN", len(shop.given) - 1)
    _, of_some = findings.compare_importances(shop, shop.suspects())
    assert not np.array_equal(of_some, of_all)
    np.testing.assert_allclose(of_some, of_all, atol=0.05)


def test_nothing_is_compared_where_a_class_would_vanish():
    audit = audit_labels(np.arange(40.0)[:, None], np.where(np.arange(40) == 20, "rare", "usual"))
    assert audit.predicted[20] == "usual"
    assert findings.compare_importances(audit, np.array([20]))[1] is None
