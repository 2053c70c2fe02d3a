"""The numbers that a report shows are those of the audit."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest

from helpers.report_fixtures import make_customers
from helpers.small_audits import change, make_audit, make_audit_by_source
from untwist import UntwistClassifier
from untwist.audit import audit_labels, calibration, findings
from untwist.audit.comparison import Peer
from untwist.audit.confusions import Confusion
from untwist.audit.labels import LabelAudit
from untwist.automatic.search import Search
from untwist.data.encoding import TableEncoder
from untwist.losses import AlphaLoss
from untwist.report import report
from untwist.theory.several_classes import SoftmaxLink


def test_an_audit_can_be_compared_and_hashed(shop, three):
    assert shop == shop
    assert shop != three
    assert len({shop, three}) == 2


def test_wilson_is_that_of_scipy():
    for k, n in ((0, 7), (3, 10), (50, 50), (400, 1000)):
        share, low, high = calibration.bound_share(k / n, n)
        expected = binomtest(k, n).proportion_ci(method="wilson")
        assert (share, low, high) == pytest.approx((k / n, expected.low, expected.high), abs=1e-9)


def test_reliability_counts_every_row_once(shop, three):
    for audit in (shop, three):
        bins = calibration.measure_reliability(audit)
        assert [said for said, _ in bins] == sorted(said for said, _ in bins)
        said = audit.posterior[:, 1] if audit is shop else audit.posterior.max(axis=1)
        bears = audit.given == (audit.classes[1] if audit is shop else audit.classes[audit.posterior.argmax(axis=1)])
        n_bins = len(bins)
        assert np.mean([one for one, _ in bins]) == pytest.approx(said.mean(), abs=0.01)  # of about equal weight
        assert np.mean([share for _, (share, _, _) in bins]) == pytest.approx(bears.mean(), abs=0.01)
        first = np.argsort(said, kind="stable")[: len(said) // n_bins]
        assert bins[0][1][0] == pytest.approx(bears[first].mean(), abs=1e-12)
        assert bins[0][1] == calibration.bound_share(bears[first].mean(), len(first))
        assert sum(calibration.measure_spread(audit)) == pytest.approx(1)


def test_weights_count_but_unequal_ones_tell_less():
    assert calibration.count_effective_rows(np.full(600, 2.0)) == 600
    assert calibration.count_effective_rows(np.array([1.0, 0.0, 0.0])) == 1
    table, labels, _ = make_customers(600)
    weight = 1.0 + np.arange(600) % 3
    audit = audit_labels(table, labels, sample_weight=weight)
    bins = calibration.measure_reliability(audit)
    mean = np.average(labels == "stays", weights=weight)
    assert np.mean([share for _, (share, _, _) in bins]) == pytest.approx(mean, abs=0.01)  # bins of about equal weight


def test_the_clean_curve_is_that_of_the_noise(shop, three):
    for x, y in calibration.trace_clean_posterior(shop)[1:-1]:
        assert y == pytest.approx(float(shop.noise.clean([[1 - x, x]])[0, 1]), rel=1e-9)
    curve = calibration.trace_clean_posterior(three)
    assert [x for x, _ in curve] == [said for said, _ in calibration.measure_reliability(three)]
    likeliest = three.posterior.argmax(axis=1)
    clean = three.noise.clean(three.posterior)[np.arange(600), likeliest]
    assert np.mean([y for _, y in curve]) == pytest.approx(clean.mean(), abs=0.01)  # Groups are of about equal weight.


def test_the_learning_curve_is_that_of_the_best_candidate(shop, three):
    for audit in (shop, three):
        losses, errors = findings.average_learning_curves(audit.model.model_)
        best = audit.model.choice_.best
        assert losses[best.n_rounds - 1] == pytest.approx(best.loss)
        assert errors[best.n_rounds - 1] == pytest.approx(best.error)


def test_expected_finds_add_up(shop):
    points = findings.expect_finds(shop, 300)
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (300.0, pytest.approx(shop.wrong[shop.ranking[:300]].sum()))
    assert len(points) <= 120


# ---- a few rows that nothing is fitted for ----


def follow_label_slowly(audit):
    """By row the posterior that is shown, and whether the row bears that label."""
    labels = audit.given if audit.context.before_review is None else audit.context.before_review
    if len(audit.classes) == 2:
        return [(p[1], label == audit.classes[1]) for p, label in zip(audit.posterior, labels, strict=True)]
    best = audit.posterior.argmax(axis=1)
    return [(max(p), label == audit.classes[k]) for p, k, label in zip(audit.posterior, best, labels, strict=True)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_reviewed", [False, True])
def test_groups_bins_and_the_clean_curve_are_weighed_row_by_row(n_classes, is_reviewed):
    audit = make_audit(n_classes, n=80, weight=np.arange(80) % 4 * 0.5)
    if is_reviewed:
        audit = change(audit, before_review=audit.given[::-1])
    followed, weight = follow_label_slowly(audit), audit.weight
    rows = sorted((row for row in range(80) if weight[row] > 0), key=lambda row: (followed[row][0], weight[row]))
    groups, before = {}, 0.0
    for row in rows:  # 60 rows that count make two groups of 25 or more.
        groups.setdefault(int(2 * (before + weight[row] / 2) / sum(weight)), []).append(row)
        before += weight[row]
    found = calibration.measure_reliability(audit)
    assert len(found) == len(groups) == 2
    for (mean, share), here in zip(found, groups.values(), strict=True):
        assert mean == pytest.approx(np.average([followed[row][0] for row in here], weights=weight[here]))
        borne = np.average([followed[row][1] for row in here], weights=weight[here])
        assert share == pytest.approx(calibration.bound_share(borne, sum(weight[here]) ** 2 / sum(weight[here] ** 2)))
    bins = [0.0] * 25
    for (p, _), mass in zip(followed, weight, strict=True):
        bins[min(int(p * 25), 24)] += mass / sum(weight)
    assert calibration.measure_spread(audit) == pytest.approx(bins)
    curve = calibration.trace_clean_posterior(audit)
    if n_classes == 2:
        assert [x for x, _ in curve] == pytest.approx([one / 100 for one in range(101)])
        ends = np.clip([x for x, _ in curve], 1e-4, 1 - 1e-4)
        assert [y for _, y in curve] == pytest.approx(audit.noise.clean(np.column_stack([1 - ends, ends]))[:, 1])
        return
    best = audit.posterior.argmax(axis=1)
    clean = audit.noise.clean(audit.posterior)[np.arange(80), best]
    assert [x for x, _ in curve] == [mean for mean, _ in found]
    assert [y for _, y in curve] == pytest.approx(
        [np.average(clean[here], weights=weight[here]) for here in groups.values()]
    )


def test_posteriors_at_the_ends_are_in_the_first_and_the_last_bin():
    audit = make_audit(n=8)
    audit.posterior[:, 1] = [0.0, 0.039, 0.04, 0.5, 0.96, 0.9601, 0.999, 1.0]
    spread = calibration.measure_spread(audit)
    assert [spread[place] * 8 for place in (0, 1, 12, 24)] == [2, 1, 1, 4]


@pytest.mark.parametrize(("n", "n_groups"), [(8, 1), (49, 1), (50, 2), (299, 11), (300, 12), (400, 12)])
def test_groups_have_25_rows_and_are_no_more_than_12(n, n_groups):
    audit = make_audit(n=n)
    groups = calibration._group_rows(audit, audit.posterior[:, 1])
    assert len(groups) == n_groups
    assert sorted(np.concatenate(groups)) == list(range(n))
    assert max(map(len, groups)) - min(map(len, groups)) <= 1


@pytest.mark.parametrize("found", [True, False])
def test_finds_are_counted_along_the_ranking(found):
    audit = make_audit(found=found)
    points = findings.expect_finds(audit, 40)
    assert [x for x, _ in points] == list(range(41))
    for n, finds in points:
        assert finds == audit.expected_yield(audit.ranking[: int(n)]).value
    assert findings.expect_finds(audit, 99)[-1][0] == 60
    assert len(findings.expect_finds(make_audit(n=300), 300)) == findings.FINDS_POINTS


def test_without_trees_rows_are_explained_by_their_probability_alone():
    for found in (True, False):
        audit = make_audit(found=found)
        (one, other) = findings.explain_rows(audit, np.array([7, 3]))
        assert (one.row, other.row) == (7, 3)
        assert (one.given, one.predicted, one.wrong) == (audit.given[7], audit.predicted[7], audit.wrong[7])
        assert (one.reasons, one.n_disagreeing, one.n_similar, one.similar) == ((), 0, 0, ())
        assert one.expected is None
    by_chance = change(audit, chance=True)
    (one,) = findings.explain_rows(by_chance, np.array([7]))
    assert one.expected == audit.posterior[7, audit.label_indices[7]]


def test_suspects_are_counted_by_pair(monkeypatch):
    audit = make_audit()
    pairs = [Confusion("a", "b", 0.1, 0.0, 0.2, 3.0, False), Confusion("b", "a", 0.1, 0.0, 0.2, 2.0, False)]
    monkeypatch.setattr(LabelAudit, "confusions", lambda _: pairs)
    rows = audit.ranking[:20]
    for one in findings.count_confusions(audit, rows):
        pair = one.confusion
        assert one.n_suspects == sum(
            audit.predicted[row] == pair.truth and audit.given[row] == pair.label for row in rows
        )
    assert [one.confusion for one in findings.count_confusions(audit, rows)] == pairs


def test_all_that_is_shown_of_posteriors_of_others():
    audit = make_audit(n=80)
    peers = {"other": Peer(0.7, 0.5, 0.8)}
    shown = findings.collect_findings(audit, peers=peers)
    suspects = audit.suspects()
    assert shown.suspects.tolist() == suspects.tolist()
    assert (shown.asked_for, shown.training, shown.slices, shown.issues, shown.column_names) == (
        False,
        None,
        [],
        [],
        [],
    )
    assert shown.losses.size == shown.errors.size == shown.importances.size == 0
    assert (shown.sources, shown.disagreements) == ([], [])
    assert shown.n_rows_given.tolist() == [sum(audit.given == name) for name in audit.classes]
    likely = [row for row in suspects if audit.wrong[row] > 0.5]
    assert 0 < len(likely) < len(suspects)
    corrected = audit.corrected(likely)
    assert shown.n_rows_corrected.tolist() == [sum(corrected == name) for name in audit.classes]
    assert [one.row for one in shown.explanations] == suspects.tolist()
    assert shown.peers["other"].agreement_with_given == calibration.bound_share(0.7, 80)
    assert shown.peers["other"].agreement_with_corrected == calibration.bound_share(0.8, 80)
    assert shown.peers["other"].log_loss == 0.5
    assert shown.expected_finds[-1][0] == max(50, 2 * len(suspects))
    assert not shown.is_uneven
    assert change(shown, slices=["one"]).is_uneven
    assert change(shown, audit=change(audit, hidden_source=SimpleNamespace())).is_uneven
    asked = findings.collect_findings(audit, suspects=[int(audit.ranking[5]), int(audit.ranking[2])], issues=["one"])
    assert asked.suspects.tolist() == audit.ranking[[2, 5]].tolist()
    assert asked.asked_for
    assert asked.issues == ["one"]
    assert asked.expected_finds[-1][0] == 50
    assert findings.collect_findings(make_audit(n=30)).expected_finds[-1][0] == 30
    everything = findings.collect_findings(audit, suspects=np.ones(80, dtype=bool))
    assert len(everything.expected_finds) == 81
    likely = audit.corrected(audit.wrong > 0.5)
    assert everything.n_rows_corrected.tolist() == [sum(likely == name) for name in audit.classes]


def test_disagreements_are_shown_where_items_have_several_labels():
    audit = make_audit_by_source()
    assert findings.collect_findings(audit).disagreements == audit.sources.find_disagreements() != []
    some, few = (
        change(audit, item=np.maximum(np.arange(60), last)) for last in (5, 4)
    )  # Six rows of an item, or five.
    assert findings.collect_findings(some).disagreements == some.sources.find_disagreements()
    assert findings.collect_findings(few).disagreements == []
    assert findings.collect_findings(audit).sources == audit.sources.rate()


def test_many_suspects_are_explained_and_compared_as_far_as_there_is_time(monkeypatch):
    asked = []
    monkeypatch.setattr(findings, "explain_rows", lambda audit, rows, n_compared: asked.append((rows, n_compared)))
    monkeypatch.setattr(findings, "MOST_EXPLAINED", 4)
    audit = make_audit()
    findings.collect_findings(audit)
    assert asked[0][0].tolist() == audit.suspects()[:4].tolist()
    assert asked[0][1] == findings.MOST_COMPARED


def make_trained(**changes):
    """An audit by a model that says what it is."""
    schema = TableEncoder(3).schema
    model = SimpleNamespace(
        choice="choice",
        encoder=SimpleNamespace(schema=change(schema, categories={1: ("x", "y")})),
        n_rounds=17,
        untwists=False,
        link=None,
        importances=lambda kind: kind,
        out_of_fold=SimpleNamespace(weight="weights"),
    )
    X = np.zeros((60, 3))
    X[:6, 0] = X[:18, 2] = np.nan
    return make_audit(X=X, encoder=TableEncoder(3), model=SimpleNamespace(model_=model), **changes), model


def test_what_was_trained_is_described():
    audit, model = make_trained()
    facts = findings.describe_training(audit)
    assert (facts.n_columns, facts.n_categorical, facts.n_trees, facts.choice) == (3, 1, 17, "choice")
    assert facts.missing_share == pytest.approx((6 + 18) / 180)
    assert (facts.untwists, facts.boosts_jointly) == (False, False)
    model.untwists, model.link = True, SoftmaxLink(AlphaLoss(1.0))
    facts = findings.describe_training(audit)
    assert (facts.untwists, facts.boosts_jointly) == (True, True)


def test_learning_curves_are_the_mean_over_classes():
    curves = {"validation": {"log_loss": [[1.0, 0.5], [0.6, 0.3]], "error": [[0.4, 0.2], [0.2, 0.2]]}}
    losses, errors = findings.average_learning_curves(SimpleNamespace(validation_curves=lambda: curves))
    assert losses.tolist() == [0.8, 0.4]
    assert errors.tolist() == pytest.approx([0.3, 0.2])
    losses, errors = findings.average_learning_curves(SimpleNamespace(validation_curves=dict))
    assert losses.size == errors.size == 0


def test_nothing_is_fitted_for_what_a_page_shows(shop, monkeypatch):
    monkeypatch.setattr(UntwistClassifier, "fit", lambda *_, **__: pytest.fail("fitted"))
    monkeypatch.setattr(Search, "run", lambda _: pytest.fail("searched"))
    assert "Labels to review" in report(change(shop), title="customers")
