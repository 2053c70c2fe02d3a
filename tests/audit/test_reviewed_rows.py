"""An audit of labels some of which have been reviewed, and the order in which to review the others."""

import math

import numpy as np
import pytest
from scipy.special import entr

from untwist.audit import Decisions, audit_labels
from untwist.audit.labels import value_review
from untwist.audit.reviewed import change_reviewed, find_known_wrong
from untwist.data.fingerprints import fingerprint
from untwist.display import write_range, write_share


def draw_rows(n=600, classes=2, rate=0.25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2
    truth = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    y = np.where(rng.random(n) < rate, (truth + rng.integers(1, classes, n)) % classes, truth)
    return X, y, truth


def decide(X, y, truth, rows):
    words = np.where(y[rows] == truth[rows], "keep", "relabel")
    return Decisions(rows, y[rows], words, truth[rows], [""] * len(rows), fingerprint(X, y))


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def reviewed(request):
    """A first audit, one after a review of its worst and some of its best rows, these rows, and what is true."""
    X, y, truth = draw_rows(classes=request.param)
    first = audit_labels(X, y, n_jobs=1)
    rows = np.concatenate([first.ranking[:80], first.ranking[-10:]])
    second = audit_labels(X, y, reviewed=decide(X, y, truth, rows), n_jobs=1)
    return first, second, rows, truth


# ---- of reviewed rows it is certain whether their labels are wrong ----


def test_reviewed_rows_are_certain_and_never_suspects(reviewed):
    first, second, rows, truth = reviewed
    assert np.flatnonzero(second.reviewed).tolist() == sorted(rows.tolist())
    np.testing.assert_array_equal(second.given, first.given)
    for labels in (second.predicted, change_reviewed(second)):
        np.testing.assert_array_equal(labels[rows], truth[rows])
    is_wrong = first.given[rows] != truth[rows]
    np.testing.assert_array_equal(second.wrong[rows], is_wrong)
    np.testing.assert_allclose(second.truth[rows], np.eye(len(second.classes))[truth[rows]])
    others = np.setdiff1d(np.arange(600), rows)
    np.testing.assert_array_equal(second.given[others], first.given[others])
    assert sorted(second.ranking.tolist()) == others.tolist()
    for chosen in (
        second.suspects(),
        second.suspects(budget=600),
        second.suspects(false_discovery_rate=0.3),
        second.suspects(budget=600, aim="model"),
    ):
        assert len(chosen)
        assert not np.isin(chosen, rows).any()
    assert first.reviewed is None


def test_shares_are_those_of_the_labels_that_are_left(reviewed):
    first, second, _, truth = reviewed
    still_wrong = second.given != truth
    share, low, high = second.noise_rate
    # Shares are summed up over a table of log-odds in steps of 0.01.
    assert share == pytest.approx(second.wrong.mean(), abs=1e-3)
    assert low <= still_wrong.mean() <= high
    for label, (one, lowest, highest) in second.rate_by_label.items():
        here = second.given == label
        assert one == pytest.approx(second.wrong[here].mean(), abs=1e-3)
        assert lowest <= one <= highest
    assert "reviewed" not in str(first)


def test_labels_found_wrong_count_as_wrong_until_they_are_changed(reviewed):
    first, before, rows, truth = reviewed
    n_wrong = int(np.count_nonzero(first.given[rows] != truth[rows]))
    changed = change_reviewed(before)
    after = audit_labels(before.table.X, changed, reviewed=decide(before.table.X, first.given, truth, rows), n_jobs=1)
    for audit, still in ((before, n_wrong), (after, 0)):
        review = audit.review
        assert (review.rows, review.wrong, review.right) == (90, n_wrong, 90 - n_wrong)
        assert (review.still_wrong, review.skipped, review.rows_left) == (still, 0, 510)
        assert np.count_nonzero(find_known_wrong(audit)) == still
        share, low, high = audit.noise_rate
        assert low <= np.mean(audit.given != truth) <= high
        assert share == pytest.approx((still + review.wrong_left[0]) / 600)
        assert f"90 reviewed, {still} of them wrong still" in repr(audit)
        words = str(audit)
        assert f"about {write_share(share)} wrong ({write_range(low, high)})" in words
        assert f"90 rows are reviewed: {n_wrong} of their labels were wrong, {90 - n_wrong} right" in words
        expected, lowest, highest = review.wrong_left
        assert f"of the 510 rows not reviewed about {expected:,.0f} ({math.floor(lowest):,} to " in words
        assert f" to {math.ceil(highest):,}) have a wrong label" in words
        rate = {label: share for label, (share, _, _) in audit.rate_by_label.items()}
        assert sum(rate[one] for one in audit.given.tolist()) / 600 == pytest.approx(share, abs=1e-3)
        found = audit.expected_yield(np.arange(600))
        assert found.value == pytest.approx(still + expected, abs=1)
        assert still < found.low < found.value < found.high
        np.testing.assert_array_equal(audit.corrected()[rows], truth[rows])
    assert before.review.wrong_left == pytest.approx(after.review.wrong_left)
    assert f"the data still hold all {n_wrong} labels found wrong: apply(decisions) changes them" in str(before)
    assert "the data hold none of the labels found wrong any more" in str(after)
    np.testing.assert_array_equal(before.wrong[~before.reviewed], after.wrong[~after.reviewed])
    np.testing.assert_array_equal(before.suspects(), after.suspects())
    assert before.noise_rate[0] - after.noise_rate[0] == pytest.approx(n_wrong / 600)


def test_labels_changed_in_part_count_in_part(reviewed):
    first, before, rows, truth = reviewed
    labels = first.given.copy()
    changed = rows[labels[rows] != truth[rows]][:7]
    labels[changed] = truth[changed]
    audit = audit_labels(before.table.X, labels, before.model)
    n_wrong = before.review.wrong
    assert audit.review.still_wrong == n_wrong - 7
    assert f"the data still hold {n_wrong - 7} of the {n_wrong} labels found wrong" in str(audit)


def test_posteriors_of_another_model_count_alike(reviewed):
    first, second, rows, truth = reviewed
    decisions = decide(second.table.X, first.given, truth, rows)
    for labels in (first.given, change_reviewed(second)):
        audit = audit_labels(second.table.X, labels, pred_probs=first.posterior, reviewed=decisions)
        np.testing.assert_array_equal(audit.given, labels)
        assert audit.review.wrong == second.review.wrong
        assert audit.review.still_wrong == np.count_nonzero(labels[rows] != truth[rows])


def test_rows_that_were_skipped_are_counted_and_left():
    X, y, truth = draw_rows(300)
    rows = np.arange(30)
    decisions = decide(X, y, truth, rows)
    words = np.where(rows < 10, "skip", decisions.decision)
    labels = np.where(rows < 10, y[rows], truth[rows])
    decisions = Decisions(rows, y[rows], words, labels, [""] * 30, decisions.fingerprint)
    audit = audit_labels(X, y, reviewed=decisions, n_jobs=1)
    assert (audit.review.rows, audit.review.skipped, audit.review.rows_left) == (20, 10, 280)
    assert "right; 10 more were skipped" in str(audit)


def test_without_decisions_nobody_knows_what_was_found():
    X, y, _ = draw_rows(300)
    audit = audit_labels(X, y, reviewed=np.arange(20), n_jobs=1)
    assert (audit.review.wrong, audit.review.right, audit.review.still_wrong) == (None, None, 0)
    assert "20 rows are reviewed: their labels are right" in str(audit)


def test_clean_labels_beside_some_found_wrong_are_not_called_clean():
    X, _, truth = draw_rows(300)
    y = truth.copy()
    y[:3] = 1 - y[:3]
    rows = np.arange(60)
    audit = audit_labels(X, y, reviewed=decide(X, y, truth, rows), n_jobs=1)
    assert audit.review.still_wrong == 3
    assert audit.verdict.upper_bound.high >= 3 / 300
    found = audit.expected_yield(rows)
    assert (found.low, found.value, found.high) == (3.0, 3.0, 3.0)
    assert "the data still hold all 3 labels found wrong" in str(audit)


def test_what_is_left_is_ranked_well(reviewed):
    _, second, _, truth = reviewed
    left = ~second.reviewed
    is_wrong = (second.given != truth)[left]
    best = np.argsort(-second.wrong[left])[: is_wrong.sum()]
    assert is_wrong[best].mean() > 3 * is_wrong.mean()


def test_reasons_slices_and_the_next_labels_follow(reviewed):
    _, second, rows, truth = reviewed
    assert second.explain(int(second.suspects(budget=1)[0])).wrong > 0.5
    assert second.confusions()
    assert isinstance(second.slices(), list)
    corrected = second.corrected()
    np.testing.assert_array_equal(corrected[rows], truth[rows])
    assert np.mean(corrected == truth) > np.mean(second.given == truth)
    # Decisions about this audit join those that it was told of.
    suspects = second.suspects(budget=5)
    decisions = Decisions(
        suspects,
        second.given[suspects],
        np.where(second.given[suspects] == truth[suspects], "keep", "relabel"),
        truth[suspects],
        [""] * 5,
        second.fingerprint,
    )
    decided = np.concatenate([suspects, rows])
    np.testing.assert_array_equal(second.apply(decisions)[decided], truth[decided])


def test_a_model_that_was_taught_is_audited_by_its_own_review(reviewed):
    first, second, rows, truth = reviewed
    for labels in (first.given, change_reviewed(second)):
        again = audit_labels(second.table.X, labels, second.model)
        np.testing.assert_array_equal(again.wrong[~again.reviewed], second.wrong[~second.reviewed])
        np.testing.assert_array_equal(again.given, labels)
    with pytest.raises(ValueError, match="reviewed belongs to the fit of the model that is given"):
        audit_labels(second.table.X, first.given, second.model, reviewed=rows)
    other = first.given.copy()
    row = int(rows[first.given[rows] == truth[rows]][0])
    other[row] = (other[row] + 1) % len(second.classes)
    with pytest.raises(ValueError, match=f"row {row} has another one"):
        audit_labels(second.table.X, other, second.model)


def test_confirmed_labels_of_clean_data_leave_no_suspects():
    X, _, truth = draw_rows(300)
    rows = audit_labels(X, truth, n_jobs=1).suspects(budget=60)
    audit = audit_labels(X, truth, reviewed=decide(X, truth, truth, rows), n_jobs=1)
    assert not audit.noise.found
    assert len(audit.suspects()) == 0
    assert not np.isin(audit.suspects(budget=300), rows).any()


# ---- what a review is for ----


def test_aims_are_two_orders(reviewed):
    first, second, _, _ = reviewed
    for audit in (first, second):
        value = value_review(audit.truth)
        for row in range(0, 600, 50):  # The slow way: the variance of each class, one by one.
            expected = sum(q * (1.0 - q) for q in audit.truth[row])
            assert value[row] == pytest.approx(expected, abs=1e-12)
        by_value = audit.suspects(budget=600, aim="model")
        assert (np.diff(value[by_value]) <= 0).all()
        assert audit.suspects(budget=7, aim="model").tolist() == by_value[:7].tolist()
        np.testing.assert_array_equal(audit.suspects(aim="labels"), audit.suspects())
        assert sorted(audit.suspects(aim="model")) == sorted(audit.suspects())
        with pytest.raises(ValueError, match='aim must be "labels" or "model", got \'rows\''):
            audit.suspects(aim="rows")
        with pytest.raises(ValueError, match="exclude each other"):
            audit.suspects(aim="model", budget=3, false_discovery_rate=0.1)
    np.testing.assert_array_equal(value_review(second.truth)[second.reviewed], 0.0)


GRID = np.linspace(0.005, 0.995, 199)


def refit(labels, rates, truths=()):
    """Fit rows of one kind: weigh clean posteriors by noisy labels, of which there are so many, and by known truths.

    Return the weights on the grid of clean posteriors; their mean is what the model predicts.
    """
    follow = rates[0] + (1.0 - sum(rates)) * GRID
    logs = labels[1] * np.log(follow) + labels[0] * np.log1p(-follow)
    for truth in truths:
        logs = logs + np.log(GRID if truth else 1.0 - GRID)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def find_log_loss(weights):
    """Return the log-loss that the model expects of the true class of one more such row."""
    return float(sum(entr(p) for p in (weights @ GRID, 1.0 - weights @ GRID)))


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.1, 0.3), (0.3, 0.2)])
@pytest.mark.parametrize("clean", [0.15, 0.3, 0.6, 0.8, 0.9])
def test_what_teaches_most_is_what_lowers_log_loss_most_when_a_model_is_fitted_again(rates, clean):
    """Of forty rows of one kind, for either label: fit anew with one row reviewed, for both truths that it may have."""
    follow = rates[0] + (1.0 - sum(rates)) * clean
    labels = np.array([round(40 * (1.0 - follow)), round(40 * follow)])
    before = refit(labels, rates)
    gains, values = [], []
    for label in (0, 1):
        joint = [(1.0 - GRID) * (rates[0] if label else 1.0 - rates[0]), GRID * (1.0 - rates[1] if label else rates[1])]
        of_truth = [float(before @ (one / sum(joint))) for one in joint]
        without = labels - np.eye(2, dtype=int)[label]
        after = sum(p * find_log_loss(refit(without, rates, [truth])) for truth, p in enumerate(of_truth))
        gains.append(find_log_loss(before) - after)
        values.append(1.0 - sum(p**2 for p in of_truth))
    assert min(gains) > 0
    assert np.argmax(values) == np.argmax(gains)
    # The gain is the variance of the truth, times what is the same for both labels, up to terms of higher order.
    assert gains[0] / gains[1] == pytest.approx(values[0] / values[1], rel=0.35)


@pytest.mark.parametrize("emptied", [0, 1, 2])
def test_a_review_may_leave_a_class_without_rows(emptied):
    X, _, truth = draw_rows()
    others = [label for label in range(3) if label != emptied]
    truth = np.array(others)[truth]
    y = np.where(X[:, 2] > 1, emptied, truth)
    decisions = decide(X, y, truth, np.flatnonzero(y == emptied))
    audit = audit_labels(X, y, reviewed=decisions, n_jobs=1)
    assert audit.posterior.shape == (600, 3)
    assert audit.posterior[:, emptied].max() < 0.01
    assert audit.rate_by_label[emptied][0] == 1.0
    after = audit_labels(X, audit.apply(decisions), reviewed=decisions, n_jobs=1)
    assert after.review.still_wrong == 0


def test_a_single_reviewed_row_is_told_of_in_the_singular():
    X, y, truth = draw_rows()
    row = np.flatnonzero(y != truth)[:1]
    words = str(audit_labels(X, y, reviewed=decide(X, y, truth, row), n_jobs=1))
    assert "1 row is reviewed: its label was wrong" in words
    assert "the data still hold the label found wrong: apply(decisions) changes it\n" in words
