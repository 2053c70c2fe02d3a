"""Several classes: who is labelled as what, where, why, and what is not excluded."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.quick import QuickClassifier
from helpers.report_fixtures import read_text
from helpers.small_audits import make_matrices, make_pairs
from helpers.tickets import TICKETS, judge_by, make_components, make_tickets, measure_matrix, spread_noise
from untwist.audit import audit_labels
from untwist.audit.confusions import expect_labels, find_confusions
from untwist.audit.correcting import find_likely_wrong
from untwist.display import write_percent, write_range, write_share
from untwist.noise.estimate import RatesEstimate, describe_range
from untwist.noise.model import move_interval
from untwist.noise.several_classes import SeveralClassesNoise, find_interval
from untwist.report import report


@pytest.fixture(scope="module")
def tickets():
    """The audit of tickets, judged by nearly their own noise, and the truth."""
    X, given, truth = make_tickets(1500)
    return judge_by(audit_labels(X, given), make_components(measure_matrix(given, truth))), truth


def untwist_slowly(noise, component, twisted):
    """The clean posterior of one row, number by number."""
    inverse = np.linalg.inv(noise.matrices[component])
    plain = [max(sum(q * inverse[k, j] for k, q in enumerate(twisted)), noise.least) for j in range(len(twisted))]
    raised = [
        np.exp(b) * (p / sum(plain)) ** a
        for p, a, b in zip(plain, noise.slopes[component], noise.offsets[component], strict=True)
    ]
    return [one / sum(raised) for one in raised]


# ---- who is labelled as what ----


def test_truths_are_those_of_bayes_row_by_row(tickets):
    audit, _ = tickets
    noise = replace(
        audit.noise, slopes=np.array([[1.0, 0.9, 1.1, 1.0]] * 3), offsets=np.array([[0.1, 0.0, -0.2, 0.0]] * 3)
    )
    rows = audit.ranking[:8]
    labels = audit.label_indices[rows]
    for component, truths in enumerate(noise.iterate_truths(audit.posterior[rows], labels)):
        matrix = noise.matrices[component]
        for i, row in enumerate(rows):
            clean = untwist_slowly(noise, component, audit.posterior[row])
            joint = [clean[j] * matrix[j, labels[i]] for j in range(4)]
            np.testing.assert_allclose(truths[i], np.array(joint) / sum(joint), rtol=1e-9, atol=1e-15)


def test_confusions_add_up_to_the_wrong_labels(tickets):
    audit, _ = tickets
    found = audit.confusions()
    assert [one.rows for one in found] == sorted((one.rows for one in found), reverse=True)
    for label in TICKETS:
        rows = sum(one.rows for one in found if one.label == label)
        # Pairs of less than half a row are left out, three of a label at most.
        assert rows == pytest.approx(audit.wrong[audit.given == label].sum(), abs=1.5)
    (first, *_) = found
    assert (first.truth, first.label) == ("billing", "bug")
    assert first.share == pytest.approx(audit.noise.matrix[1, 2])
    components = find_interval(audit.noise.matrices[:, 1, 2], audit.noise.weights)
    # All of the class's wrong labels but a few say bug, so that its interval is nearly that of the class.
    assert (first.low, first.high) == pytest.approx(audit.noise.class_intervals[1], rel=0.03)
    assert first.low <= components[0] <= first.share <= components[1] <= first.high
    assert [one for one in found if one.stands_out] == [first]
    words = f"billing is often labelled bug: {write_share(first.share)} of it ({write_range(first.low, first.high)})"
    assert str(first) == f"{words}, about {first.rows:.0f} rows"
    numbers = write_percent(first.share, first.low, first.high)
    assert f"  true class billing labelled bug: {numbers}" in str(audit).splitlines()


def test_about_as_many_rows_are_confused_as_expected(tickets):
    audit, truth = tickets
    confused = np.count_nonzero((truth == "billing") & (audit.given == "bug"))
    # The slopes of this noise are 1, so that posteriors that are not sure enough hide some of the rows.
    assert audit.confusions()[0].rows == pytest.approx(confused, rel=0.25)
    assert audit.expect_wrong(audit.suspects()) == pytest.approx(
        np.sum((audit.given != truth)[audit.suspects()]), rel=0.2
    )
    assert audit.expect_wrong(audit.given == "bug") == pytest.approx(audit.wrong[audit.given == "bug"].sum())


def test_suspects_are_as_many_as_are_wrong_and_only_likely_ones_are_corrected(tickets):
    audit, _ = tickets
    suspects = audit.suspects()
    np.testing.assert_array_equal(suspects, audit.ranking[: round(audit.wrong.sum())])
    assert (np.diff(audit.wrong[suspects]) <= 0).all()
    likely = find_likely_wrong(audit, suspects)
    assert set(likely) == {row for row in suspects if audit.wrong[row] > 0.5}
    expected = audit.given.copy()
    expected[likely] = audit.predicted[likely]
    np.testing.assert_array_equal(audit.corrected(), expected)
    about = audit.wrong[suspects].sum()
    assert f"{len(suspects)} suspects, about {about:.0f} (" in str(audit)


def test_noise_that_is_the_same_everywhere_names_no_pair(tickets):
    audit, _ = tickets
    even = judge_by(audit, make_components(spread_noise(4, 0.2)))
    assert even.confusions()
    assert not any(one.stands_out for one in even.confusions())
    assert even.verdict.pairs == ()
    assert str(even.confusions()[0]).split(":")[0].split(" is ")[1].startswith("sometimes labelled ")


def test_rows_of_weight_0_are_not_counted(tickets):
    audit, _ = tickets
    weight = np.where(audit.given == "bug", 0.0, 1.0)
    assert "bug" not in {one.label for one in replace(audit, weight=weight).confusions()}


def test_what_is_expected_of_each_pair_is_a_sum_over_rows():
    rng = np.random.default_rng(0)
    truth, labels, weight = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50), rng.integers(0, 3, 50) * 1.0
    expected = np.zeros((3, 3))
    for row in range(50):
        expected[:, labels[row]] += weight[row] * truth[row]
    np.testing.assert_allclose(expect_labels(truth, labels, weight), expected)


@pytest.mark.parametrize("is_own", [True, False])
def test_pairs_have_the_interval_of_their_definition(is_own):
    rng = np.random.default_rng(1)
    noise = make_matrices(3)
    noise.matrices[0] = [[0.9, 0.08, 0.02], [0.05, 0.9, 0.05], [0.0, 0.0, 1.0]]
    matrix = noise.matrix if is_own else np.array([[0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.015, 0.005, 0.98]])
    truth, labels, counted = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40), rng.random(40) < 0.8
    rows = expect_labels(truth, labels, counted.astype(float))
    found = find_confusions(noise, np.array(list("abc")), matrix, truth, labels, counted)
    order = sorted((-rows[i, j], i, j) for i in range(3) for j in range(3) if i != j)
    assert [(one.truth, one.label) for one in found] == [("abc"[i], "abc"[j]) for _, i, j in order]
    even = np.mean([matrix[i, j] for _, i, j in order])
    for one, (_, i, j) in zip(found, order, strict=True):
        share = matrix[i, j]
        low, high = find_interval(noise.matrices[:, i, j], noise.weights)
        if not is_own:
            low, high = move_interval(share, (noise.matrix[i, j], low, high))
        of_class = [share * end / noise.class_shares[i] for end in noise.class_intervals[i]]
        limits = max(0.0, min(low, of_class[0], share)), min(1.0, max(high, of_class[1], share))
        assert (one.share, one.rows) == pytest.approx((share, rows[i, j]))
        assert (one.low, one.high) == pytest.approx(limits)
        assert one.stands_out == (one.low > even and share >= 0.02)


def test_pairs_of_less_than_half_a_row_are_left_out_and_small_shares_do_not_stand_out():
    noise = replace(make_pairs(), rate_neg=0.02, interval_neg=(0.01, 0.03), interval_pos=(0.1, 0.2))
    truth, labels = np.array([[0.5, 0.5], [0.51, 0.49]]), np.array([1, 0])
    matrix = np.array([[0.98, 0.02], [0.1, 0.9]])

    def find(truth):
        return find_confusions(noise, np.array(list("ab")), matrix, truth, labels, np.ones(2, dtype=bool))

    (one,) = find(truth)
    assert (one.truth, one.label, one.rows, one.low, one.high) == ("a", "b", 0.5, 0.01, 0.03)
    assert [(one.truth, one.low) for one in find(truth[::-1])] == [("a", 0.01), ("b", 0.1)]
    assert not one.stands_out  # Of two classes no pair is more than even.


def test_of_several_classes_too_half_a_row_is_a_pair():
    noise = make_matrices(3)
    truth = np.array([[0.5, 0.25, 0.25], [0.49, 0.51, 0.0]])
    found = find_confusions(
        noise, np.array(list("abc")), noise.matrix, truth, np.array([1, 1]), np.array([True, False])
    )
    assert [(one.truth, one.label, one.rows) for one in found] == [("a", "b", 0.5)]


@pytest.mark.parametrize("n_classes", [3, 5])
def test_wrong_labels_that_are_certainly_spread_evenly_stand_out_nowhere(n_classes):
    share = 0.125
    matrix = np.full((n_classes, n_classes), share)
    np.fill_diagonal(matrix, 1.0 - (n_classes - 1) * share)
    of_class = np.full(n_classes, (n_classes - 1) * share)
    even = replace(
        SeveralClassesNoise.from_matrix(matrix),
        class_shares=of_class,
        class_intervals=np.column_stack([of_class, of_class]),
    )
    labels = np.arange(20 * n_classes) % n_classes
    truth, counted = np.full((len(labels), n_classes), 1.0 / n_classes), np.ones(len(labels), dtype=bool)
    names = np.arange(n_classes)
    found = find_confusions(even, names, matrix, truth, labels, counted)
    assert len(found) == n_classes * (n_classes - 1)
    assert all(one.low == one.share == share for one in found)
    assert not any(one.stands_out for one in found)
    matrix[0, 1] += 0.01  # A certain excess does.
    found = find_confusions(even, names, matrix, truth, labels, counted)
    assert [(one.truth, one.label) for one in found if one.stands_out] == [(0, 1)]


def test_two_classes_have_a_matrix_and_confusions_too(shop):
    noise = shop.noise
    np.testing.assert_allclose(
        noise.matrix, [[1 - noise.rate_neg, noise.rate_neg], [noise.rate_pos, 1 - noise.rate_pos]]
    )
    found = {(one.truth, one.label): one for one in shop.confusions()}
    one = found["leaves", "stays"]
    assert (one.share, one.low, one.high) == (noise.rate_neg, *noise.interval_neg)
    assert one.rows == pytest.approx(shop.wrong[shop.given == "stays"].sum())
    assert found["stays", "leaves"].rows == pytest.approx(shop.wrong[shop.given == "leaves"].sum())
    last = shop.verdict.by_class[1]
    assert (last.value, last.low, last.high) == (noise.rate_pos, *noise.interval_pos)


def test_the_noisiest_of_many_labels_are_printed(tickets):
    names = [f"label {i:02d}" for i in range(30)]
    many = replace(
        tickets[0],
        classes=np.array(names),
        given=np.resize(names, 1500),
        posterior=np.full((1500, 30), 1 / 30),
        noise=make_components(spread_noise(30, 0.2)),
        rate_by_label={name: (0.01 * i, 0.001 * i, 0.5) for i, name in enumerate(names)},
    )
    lines = str(many).splitlines()
    assert [line.split(",")[0] for line in lines[1:13]] == [f"  of labels that say {name}" for name in names[18:]]
    assert lines[13:] == ["  ... and less of the 18 other labels"]


# ---- what is not excluded ----


def test_no_table_excludes_every_wrong_label(tickets, clean):
    audit, _ = tickets
    silent = replace(audit, noise=replace(audit.noise, found=False, uneven_limit=0.07), noise_rate=(0.0, 0.0, 0.0))
    assert (1 - silent.verdict.upper_bound.high) ** 1500 <= 0.05
    few = replace(silent, weight=np.r_[np.ones(20), np.zeros(1480)])
    assert (1 - few.verdict.upper_bound.high) ** 20 <= 0.05
    assert replace(silent, noise_rate=(0.1, 0.0, 0.9)).verdict.upper_bound.high == 0.9
    assert clean.verdict.upper_bound.high >= max(clean.noise_rate[2], 3 / 569 * 0.99)


def test_no_words_exclude_every_rate():
    assert describe_range(0.0, 0.0) == describe_range(0.0, 0.004) == "rates below 1%"
    assert describe_range(0.0, 0.012) == "rates from 0% to 1%"
    silent = RatesEstimate(False, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0))
    assert str(silent) == "no sign of noise that is the same everywhere (rates below 1% would fit)"
    assert silent.describe(["a", "b"]) == str(silent)
    found = RatesEstimate(True, 0.1, 0.2, (0.05, 0.15), (0.1, 0.3))
    assert found.describe(["a", "b"]) == (
        "wrong labels: of what is truly a 10.0% (5.0% to 15.0%), of what is truly b 20.0% (10.0% to 30.0%)"
    )


@pytest.mark.slow
def test_support_tickets_with_one_class_confused_are_not_called_clean():
    """4,000 tickets, 9.5 % of the labels wrong: billing that is labelled bug, and no other."""
    X, given, truth = make_tickets(4000)
    wrong = given != truth
    audit = audit_labels(X, given)
    assert audit.noise.found
    share, low, high = audit.noise_rate
    assert share == pytest.approx(wrong.mean(), abs=0.02)
    assert low - 0.01 <= wrong.mean() <= high + 0.01
    (first, *_) = [one for one in audit.confusions() if one.stands_out]
    assert (first.truth, first.label) == ("billing", "bug")
    assert first.low <= 0.095 / 0.3 <= first.high
    assert "true class billing labelled bug" in str(audit)
    suspects = audit.suspects()
    assert wrong[suspects].mean() > 0.8
    assert wrong[suspects].sum() > 0.75 * wrong.sum()
    # What a review is told to find is what it finds.
    for budget in (50, 200, 400):
        rows = audit.suspects(budget=budget)
        assert audit.expect_wrong(rows) == pytest.approx(wrong[rows].sum(), abs=0.15 * budget)
    assert np.mean(audit.corrected() == truth) > 0.97
    text = read_text(report(audit, title="tickets"))
    assert "Clean" not in text
    assert "true class billing labelled bug" in text


# ---- why ----


def test_reasons_are_about_the_given_and_the_predicted_class(tickets):
    audit, _ = tickets
    row = audit.ranking[0]
    found = audit.explain(row, n_reasons=20)
    assert (found.given, found.predicted) == ("bug", "billing")
    assert 0 < found.n_predicted <= found.n_disagreeing
    given, predicted = audit.classes.tolist().index("bug"), audit.classes.tolist().index("billing")

    def measure(table):
        twisted = audit.model.model_.posterior.twisted(
            audit.model.model_.scores(audit.model.model_.encoder.encode(table, audit.model))
        )
        return np.log(twisted[0, given] / twisted[0, predicted])

    assert found.reasons
    for reason in found.reasons:
        changed = audit.table.X.iloc[[row]].copy()
        column = audit.table.X[reason.column]
        of_label = column[audit.given == "bug"]
        changed[reason.column] = of_label.mode()[0] if reason.column == "team" else of_label.median()
        assert reason.effect == pytest.approx(measure(changed) - measure(audit.table.X.iloc[[row]]), abs=1e-9)


def test_a_row_that_looks_like_its_label_is_compared_with_the_next_class(tickets):
    audit, _ = tickets
    row = audit.ranking[-1]
    assert audit.given[row] == audit.predicted[row]
    found = audit.explain(row)
    assert found.n_predicted == 0
    assert "of them" not in str(found)


def test_words_tell_how_many_similar_rows_bear_the_predicted_label(tickets):
    audit, _ = tickets
    one = replace(audit.explain(audit.ranking[0]), n_disagreeing=15, n_similar=20, n_predicted=11)
    assert "  15 of the 20 most similar rows bear another label, 11 of them billing" in str(one)
    assert "of them" not in str(replace(one, n_predicted=15))


# ---- weights of classes ----


@pytest.mark.parametrize("kind", ["one class", "even"])
def test_class_weights_change_neither_the_noise_nor_the_ranking_much(kind):
    X, given, truth = make_tickets(1500)
    if kind == "even":
        rng = np.random.default_rng(1)
        names, places = np.unique(truth, return_inverse=True)
        given = np.where(rng.random(1500) < 0.2, names[(places + rng.integers(1, 4, 1500)) % 4], truth)
    keep = (truth != "account") | (np.arange(1500) % 4 == 0)
    X, given, wrong = X[keep], given[keep], (given != truth)[keep]
    plain = audit_labels(X, given, QuickClassifier(alpha=1.0, max_depth=3, noise=None, random_state=0).fit(X, given))
    balanced = QuickClassifier(alpha=1.0, max_depth=3, noise=None, class_weight="balanced", random_state=0).fit(
        X, given
    )
    weighted = audit_labels(X, given, balanced)
    np.testing.assert_allclose(weighted.posterior.sum(axis=1), 1.0)
    # Without the weights the posterior is about that of the labels.
    shares = np.array([np.mean(given == name) for name in weighted.classes])
    np.testing.assert_allclose(weighted.posterior.mean(axis=0), shares, atol=0.03)
    assert weighted.noise.found
    assert plain.noise.found
    assert abs(weighted.noise_rate[0] - plain.noise_rate[0]) < 0.05
    found, expected = (np.mean(wrong[audit.ranking[: wrong.sum()]]) for audit in (weighted, plain))
    assert found > expected - 0.05
