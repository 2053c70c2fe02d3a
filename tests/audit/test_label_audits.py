"""What an audit answers, of a few rows that nothing is fitted for, against loops over the rows."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.small_audits import change, make_audit, make_audit_by_source, make_matrices
from untwist.audit import Decisions, hidden_sources
from untwist.audit import labels as labels_module
from untwist.audit.context import find_positions
from untwist.audit.correcting import find_likely_wrong
from untwist.audit.explaining import explain_rows
from untwist.audit.hidden_sources import allow_for
from untwist.audit.judging import find_unseen_share
from untwist.audit.labels import value_review
from untwist.audit.slices import FALSE_DISCOVERY_RATE, collect_judged_rows
from untwist.data.encoding import TableEncoder
from untwist.noise.bounds import bound_rates, bound_share
from untwist.noise.model import move_interval
from untwist.out_of_fold import RowContext
from untwist.twists import alpha_star

TWINS = SimpleNamespace(share=0.5, describe=lambda for_command: "twins")
HIDDEN = SimpleNamespace(
    name="branch", share_as_source=0.3, interval_as_source=(0.2, 0.4), advise=lambda for_command=False: "branch"
)


def silence(audit):
    """The audit without noise that was found, of labels that their rows are sure of."""
    noise = audit.noise.from_grid(
        np.zeros((2, 1)), np.ones(1), np.ones(1), 0.0, found=False, clearest=1e-3, uneven_limit=0.01
    )
    posterior = np.where(np.eye(2)[audit.label_indices] == 1, 0.99, 0.01)
    return change(audit, noise=noise, noise_rate=(0.0, 0.0, 0.0), posterior=posterior, wrong=np.zeros(len(audit.given)))


def list_numbers(audit):
    return [(one.value, one.low, one.high) for one in audit.verdict.by_class]


# ---- how noisy ----


def test_the_upper_bound_is_the_highest_of_all_that_is_not_excluded():
    audit = silence(make_audit(n=600))
    rates = bound_rates(audit.posterior, audit.label_indices)
    by_rates = bound_share(rates, np.bincount(audit.label_indices) / 600)
    assert audit.verdict.upper_bound.high == by_rates > find_unseen_share(600)
    assert change(audit, noise_rate=(0.01, 0.0, 0.3)).verdict.upper_bound.high == 0.3
    assert change(audit, rows_per_case=20.0).verdict.upper_bound.high == find_unseen_share(30) > by_rates
    half = change(audit, weight=np.repeat([1.0, 0.0], 300)).verdict.upper_bound.high
    assert half > 1.7 * by_rates
    assert change(audit, hidden_source=HIDDEN).verdict.upper_bound.high == 0.4
    given = change(audit, noise=change(audit.noise, evidence=math.nan), noise_rate=(0.01, 0.0, 0.02))
    assert given.verdict.upper_bound.high == 0.02


def test_the_shares_of_classes_are_those_of_the_noise():
    audit = make_audit()
    noise = audit.noise
    assert list_numbers(audit) == [(noise.rate_neg, *noise.interval_neg), (noise.rate_pos, *noise.interval_pos)]
    assert [one.of for one in audit.verdict.by_class] == ["true class a", "true class b"]
    assert [(one.of, one.value, one.low, one.high) for one in audit.verdict.by_label] == [
        (f"given label {label}", *rate) for label, rate in audit.rate_by_label.items()
    ]
    assert change(audit, twins=TWINS).verdict.by_class == ()


def test_where_nothing_was_found_classes_have_upper_bounds():
    audit = silence(make_audit(n=600))
    rates = bound_rates(audit.posterior, audit.label_indices)
    assert list_numbers(audit) == [(0.0, 0.0, rate) for rate in rates]
    unsure = change(audit, noise=change(audit.noise, interval_neg=(0.0, 0.9)))
    assert [high for _, _, high in list_numbers(unsure)] == [0.9, rates[1]]


def test_of_several_classes_the_shares_end_no_lower_than_rows_can_tell():
    shares = {"noise_rate": (0.2, 0.1, 0.3)}
    audit = make_audit(3, rows_per_case=2.0, weight=np.where(np.arange(60) % 4 == 0, 0.0, 1.0), **shares)
    for name, found, share, (low, high) in zip(
        "abc", list_numbers(audit), audit.noise.class_shares, audit.noise.class_intervals, strict=True
    ):
        n_rows = sum(audit.predicted[row] == name and audit.weight[row] > 0 for row in range(60))
        assert found == (share, low, max(high, find_unseen_share(n_rows / 2.0)))
    given = change(audit, noise=change(audit.noise, evidence=math.nan))
    for one in (given, change(given, twins=TWINS)):
        assert [high for _, _, high in list_numbers(one)] == given.noise.class_intervals[:, 1].tolist()


def test_all_labels_that_may_be_wrong_are_counted_where_no_noise_is_found():
    audit = make_audit(found=False)
    assert audit.verdict.most_wrong == math.ceil(audit.verdict.upper_bound.high * 60)
    assert make_audit().verdict.most_wrong is None
    assert change(audit, weight=np.full(60, 2.0)).verdict.most_wrong is None
    judged = np.arange(60) >= 20
    part = change(audit, judged=judged, weight=judged.astype(float))
    assert (part.verdict.n_judged, part.verdict.most_wrong) == (40, math.ceil(part.verdict.upper_bound.high * 40))
    assert audit.verdict.n_judged == 60


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_no_noise_was_found_all_of_some_rows_or_none_may_be_wrong(n_classes):
    audit = make_audit(n_classes, found=False)
    rows = [3, 9, 20]
    found = audit.expected_yield(rows)
    assert (found.value, found.low, found.high) == (audit.expect_wrong(rows), 0.0, 3.0)
    assert found.of == "these 3 rows"
    assert found.rests_on == ()
    everything = audit.expected_yield(np.ones(60, dtype=bool))
    assert everything.rests_on == audit.verdict.upper_bound.rests_on
    assert everything.high == audit.verdict.most_wrong < 60
    sure = change(audit, wrong=np.full(60, 0.9)).expected_yield(np.arange(60))
    assert (sure.value, sure.low) == (pytest.approx(54.0), 0.0)
    assert sure.high == max(sure.value, audit.verdict.most_wrong)  # No less than is expected.
    reviewed = np.arange(60) < 5
    predicted = np.where(np.arange(60) == 3, np.roll(audit.classes, 1)[audit.label_indices], audit.given)
    # Row 3 was found wrong, and is not changed.
    settled = change(audit, reviewed=reviewed, predicted=np.where(reviewed, predicted, audit.predicted))
    settled = change(settled, wrong=np.where(reviewed, np.arange(60) == 3, audit.wrong))
    found = settled.expected_yield([1, 3, 9, 20])
    assert (found.low, found.high) == (1.0, 3.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_noise_was_found_the_yield_has_an_interval_of_both_errors(n_classes):
    audit = make_audit(n_classes, noise_rate=(0.2, 0.15, 0.27))
    rows = audit.ranking[:25]
    wrong = audit.wrong[rows]
    found = audit.expected_yield(rows)
    low = move_interval(wrong.mean(), audit.noise_rate)[0]
    chance = 1.959964 * np.sqrt((wrong * (1 - wrong)).sum())
    assert found.value == pytest.approx(wrong.sum())
    assert found.low == pytest.approx(max(0, 25 * low - chance))
    # No more of these are wrong than of all.
    assert found.high == pytest.approx(min(25, max(60 * 0.27, wrong.sum()) + chance))
    in_groups = change(audit, rows_per_case=4.0).expected_yield(rows)
    assert in_groups.low < found.low
    empty = audit.expected_yield([])
    assert (empty.value, empty.low, empty.high) == (0.0, 0.0, 0.0)
    reviewed = np.isin(np.arange(60), rows)
    known = change(audit, reviewed=reviewed, predicted=np.where(reviewed, audit.given, audit.predicted))
    certain = change(known, wrong=np.where(reviewed, 0.0, audit.wrong)).expected_yield(rows)
    assert (certain.value, certain.low, certain.high) == (0.0, 0.0, 0.0)


def test_the_matrix_by_sources_is_what_their_labels_are_expected_to_be():
    audit = make_audit_by_source(3, weight=1.0 + np.arange(60) % 2)
    expected = np.zeros((3, 3))
    for row in range(60):
        expected[:, audit.label_indices[row]] += audit.weight[row] * audit.truth[row]
    np.testing.assert_allclose(audit.matrix, expected / expected.sum(axis=1, keepdims=True))
    of_two = make_audit_by_source(2)
    np.testing.assert_array_equal(of_two.matrix, of_two.noise.matrix)
    plain = make_audit(3)
    np.testing.assert_array_equal(plain.matrix, plain.noise.matrix)


def test_a_class_without_any_row_has_no_confusions():
    audit = make_audit_by_source(3, weight=np.zeros(60))
    assert (audit.matrix == 0).all()
    assert audit.confusions() == []


# ---- truth ----


def test_the_truth_of_two_classes_is_told_by_the_chance_of_a_wrong_label():
    audit = make_audit()
    for row, label in enumerate(audit.label_indices):
        assert audit.truth[row, label] == pytest.approx(1 - audit.wrong[row])
        assert audit.truth[row, 1 - label] == pytest.approx(audit.wrong[row])
    np.testing.assert_allclose(value_review(audit.truth), 2 * audit.wrong * (1 - audit.wrong))


def test_the_truth_of_several_classes_is_the_mean_over_the_components():
    audit = make_audit(3, reviewed=np.arange(60) == 4)
    noise = audit.noise
    for row in (0, 4, 11, 30):
        label = audit.label_indices[row]
        expected = np.zeros(3)
        for weight, matrix in zip(noise.weights, noise.matrices, strict=True):
            clean = np.maximum(audit.posterior[row] @ np.linalg.inv(matrix), noise.least)
            joint = clean / clean.sum() * matrix[:, label]
            expected += weight * joint / joint.sum()
        decided = np.eye(3)[audit.classes.tolist().index(audit.predicted[row])]
        np.testing.assert_allclose(audit.truth[row], decided if row == 4 else expected, atol=1e-9)
        assert value_review(audit.truth)[row] == pytest.approx(1 - sum(audit.truth[row] ** 2), abs=1e-12)


def test_items_and_sources_are_counted():
    audit = make_audit_by_source(item=np.array([f"i{row // 3 % 19:02}" for row in range(60)]))
    assert audit.sources.item_indices.tolist() == [row // 3 % 19 for row in range(60)]
    assert audit.sources.labels_per_item == 60 / 19
    assert audit.sources.share_repeated == 1.0
    assert audit.sources.indices.tolist() == [-1 if row % 5 == 0 else row % 3 for row in range(60)]
    some = change(audit, item=np.maximum(np.arange(60), 2))
    assert some.sources.share_repeated == 3 / 60
    alone = change(audit, item=None)
    assert (alone.sources.labels_per_item, alone.sources.share_repeated, alone.sources.judge_items()) == (1.0, 0.0, [])
    assert alone.sources.item_indices.tolist() == list(range(60))
    for one in (change(audit, source=None), change(audit, by_source=None)):
        assert one.sources.indices.tolist() == [-1] * 60
    assert change(audit, source=None).sources.judge_items() == []
    assert [one.item for one in audit.sources.judge_items()] == sorted(set(audit.context.item.tolist()))
    np.testing.assert_allclose(audit.truth.sum(axis=1), 1.0)


def test_labels_of_weight_0_disagree_with_nobody():
    audit = make_audit_by_source()
    everyone = audit.sources.find_disagreements()
    counted = change(audit, weight=np.where(audit.context.source == "eve", 0.0, 1.0)).sources.find_disagreements()
    assert {(one.first, one.second) for one in everyone} == {("ann", "bob"), ("ann", "eve"), ("bob", "eve")}
    assert counted == [change(one, stands_out=counted[0].stands_out) for one in everyone if one.second == "bob"]
    assert make_audit().sources.find_disagreements() == make_audit().sources.rate() == []


def test_alpha_star_is_the_quotient_of_log_odds():
    plain, by_source = make_audit(), make_audit_by_source()
    np.testing.assert_allclose(plain.sources.alpha_star, alpha_star(plain.clean[:, 1], plain.posterior[:, 1]))
    followed = by_source.context.by_source.noisy(by_source.clean, by_source.sources.indices)[:, 1]
    np.testing.assert_allclose(by_source.sources.alpha_star, alpha_star(by_source.clean[:, 1], followed))
    with pytest.raises(ValueError, match="alpha_star is for two classes, and there are 3"):
        make_audit(3).sources.alpha_star  # noqa: B018


# ---- which rows ----


def rank_slowly(audit, value):
    rows = [row for row in range(60) if audit.context.judged is None or audit.context.judged[row]]
    rows = [row for row in rows if audit.reviewed is None or not audit.reviewed[row]]
    return sorted(rows, key=lambda row: (-value[row], audit.posterior[row, audit.label_indices[row]], row))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_suspects_are_the_head_of_the_ranking_by_every_rule(n_classes):
    audit = make_audit(n_classes, judged=np.arange(60) % 7 > 0, reviewed=np.arange(60) % 11 == 1)
    audit.wrong[10:14] = audit.wrong[10]  # Some are equally likely wrong.
    audit.wrong[15] = 0.5
    order = rank_slowly(audit, audit.wrong)
    assert audit.ranking.tolist() == order
    assert audit.suspects(budget=9).tolist() == order[:9]
    assert audit.suspects(budget=0).tolist() == []
    for rate in (0.05, 0.3, 0.6, 1.0):
        shares = [np.mean([1 - audit.wrong[row] for row in order[: n + 1]]) for n in range(len(order))]
        expected = [row for row, share in zip(order, shares, strict=True) if share <= rate]
        assert audit.suspects(false_discovery_rate=rate).tolist() == expected
    n_expected = round(sum(audit.wrong[row] for row in order))
    assert 0 < n_expected < len(order)
    assert audit.suspects().tolist() == order[:n_expected]
    by_value = rank_slowly(audit, value_review(audit.truth))
    assert audit.suspects(aim="model", budget=5).tolist() == by_value[:5]
    assert audit.suspects(aim="model").tolist() == [row for row in by_value if row in audit.suspects()]
    some = audit.suspects(false_discovery_rate=0.4)
    assert audit.suspects(aim="model", false_discovery_rate=0.4).tolist() == [row for row in by_value if row in some]
    assert 0 < len(some) < len(by_value)
    silent = change(audit, noise=change(audit.noise, found=False))
    # Whether noise was found is no matter: its chance is in the probabilities.
    assert silent.suspects().tolist() == order[:n_expected]
    assert silent.suspects(false_discovery_rate=1.0).tolist() == order
    assert silent.suspects(budget=4).tolist() == order[:4]
    clean = change(silent, wrong=np.full(60, 0.4 / len(order)))
    assert clean.suspects().tolist() == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"aim": "rows"}, 'aim must be "labels" or "model", got \'rows\''),
        ({"false_discovery_rate": 0.1, "budget": 3}, "exclude each other"),
        ({"false_discovery_rate": 0.1, "budget": 3, "aim": "model"}, "exclude each other"),
        ({"false_discovery_rate": 2.0}, "false_discovery_rate must lie in"),
        ({"budget": -1}, "budget must be an integer >= 0"),
        ({"budget": -1, "aim": "model"}, "budget must be an integer >= 0"),
    ],
)
def test_suspects_that_cannot_be_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        make_audit().suspects(**asked)


def test_rows_are_indices_or_booleans_and_all_of_them_exist():
    assert find_positions([59, 0, 0], 60).tolist() == [59, 0, 0]
    assert find_positions(np.arange(60) == 59, 60).tolist() == [59]
    assert find_positions([], 60).tolist() == []
    for rows in ([60], [0, 60], [-1], [-1, 5]):
        with pytest.raises(ValueError, match=f"indices from 0 to 59, got {min(rows)} to {max(rows)}"):
            find_positions(rows, 60)
    with pytest.raises(ValueError, match=r"rows must be 60 Booleans or indices, got shape \(5,\)"):
        find_positions(np.ones(5, dtype=bool), 60)
    audit = make_audit()
    audit.wrong[:3] = 0.5, 0.51, 0.49
    assert find_likely_wrong(audit, [0, 1, 2]).tolist() == [1]


def test_labels_are_corrected_where_they_are_likely_wrong_and_items_as_a_whole():
    audit = make_audit()
    likely = [row for row in audit.suspects() if audit.wrong[row] > 0.5]
    expected = [audit.predicted[row] if row in likely else audit.given[row] for row in range(60)]
    assert audit.corrected().tolist() == expected
    assert audit.corrected([7]).tolist() == [
        audit.predicted[row] if row == 7 else audit.given[row] for row in range(60)
    ]
    by_item = make_audit_by_source(predicted=np.full(60, "b"), given=np.full(60, "a"))
    assert np.flatnonzero(by_item.corrected([7]) == "b").tolist() == [6, 7, 8]


def test_labels_are_replaced_only_where_noise_was_found_between_their_classes():
    audit = make_audit(3, n=600)
    pairs = audit.noise.found_pairs.copy()
    pairs[0, 1] = False  # It is undecided whether a b is an a, and not whether an a is a b.
    audit = change(audit, noise=change(audit.noise, decided_pairs=pairs))
    truth, label = np.searchsorted(audit.classes, audit.predicted), audit.label_indices
    is_open = (truth == 0) & (label == 1)
    assert 0 < is_open.sum() < 600
    expected = np.where(is_open, audit.given, audit.predicted)
    kept = f"{is_open.sum()} of 600 labels are not replaced: it is undecided whether labels are wrong or rows are hard"
    with pytest.warns(UserWarning, match=kept):
        np.testing.assert_array_equal(audit.corrected(np.arange(600)), expected)
    some = np.flatnonzero(~is_open)
    np.testing.assert_array_equal(audit.corrected(some)[some], audit.predicted[some])
    with pytest.warns(UserWarning, match="no label is replaced: it is undecided"):
        np.testing.assert_array_equal(audit.corrected(is_open), audit.given)
    np.testing.assert_array_equal(audit.corrected(np.arange(600), force=True), audit.predicted)
    # By default the suspects are asked for that are likely wrong; nothing is warned of where all of them are settled.
    silent = change(audit, noise=change(audit.noise, found=False))
    with pytest.warns(UserWarning, match="no label is replaced: it is undecided"):
        np.testing.assert_array_equal(silent.corrected(), silent.given)
    likely = [row for row in silent.suspects() if silent.wrong[row] > 0.5]
    assert np.flatnonzero(silent.corrected(force=True) != silent.given).tolist() == sorted(
        row for row in likely if silent.predicted[row] != silent.given[row]
    )


def test_decisions_change_only_the_rows_decided_on():
    audit = make_audit(X=np.zeros((60, 1)))
    other = "b" if audit.given[4] == "a" else "a"
    decisions = Decisions([4], audit.given[[4]], ["relabel"], [other], [""], audit.fingerprint)
    assert np.flatnonzero(audit.apply(decisions) != audit.given).tolist() == [4]


# ---- what it takes ----


def test_slices_are_asked_for_once_unless_others_are_wanted(monkeypatch):
    asked = []
    monkeypatch.setattr(
        labels_module, "find_slices", lambda judged, encoder, *options: asked.append(options) or ["one"]
    )
    audit = make_audit(X=np.zeros((60, 3)), encoder=TableEncoder(3))
    found = audit.slices()
    found.clear()
    assert audit.slices() == audit.slices(false_discovery_rate=FALSE_DISCOVERY_RATE) == ["one"]
    assert asked == [(range(3),)]
    assert audit.slices([0, 2]) == audit.slices(false_discovery_rate=0.2) == ["one"]
    assert asked[1:] == [([0, 2], FALSE_DISCOVERY_RATE), (range(3), 0.2)]
    with pytest.raises(ValueError, match="X must be a table"):
        make_audit().slices()


def test_a_hidden_source_is_sought_in_tables_of_so_many_cells(monkeypatch):
    sought = []
    monkeypatch.setattr(hidden_sources, "find_hidden_sources", lambda *given: sought.append(given) or ["found"])
    fitted = SimpleNamespace(encoder=SimpleNamespace(n_features=4), out_of_fold=SimpleNamespace(context=RowContext()))
    model = SimpleNamespace(model_=fitted)
    audit = make_audit(X=np.zeros((60, 4)), encoder=TableEncoder(4), model=model)
    monkeypatch.setattr(hidden_sources, "MOST_CELLS", 60 * 4)
    assert audit.hidden_sources() == ["found"]
    judged, by, suspects, share = sought[0]
    assert (by, share, suspects.tolist()) == (model, audit.noise_rate[0], audit.suspects().tolist())
    assert judged.posterior is audit.posterior
    monkeypatch.setattr(hidden_sources, "MOST_CELLS", 60 * 4 - 1)
    assert audit.hidden_sources() == []
    several = make_audit(3, X=np.zeros((60, 4)), encoder=TableEncoder(4), model=model)
    monkeypatch.setattr(hidden_sources, "MOST_CELLS", 60 * 9 - 1)
    assert several.hidden_sources() == []
    monkeypatch.setattr(hidden_sources, "MOST_CELLS", 60 * 9)
    assert several.hidden_sources() == ["found"]


def test_times_of_issues_are_a_column_or_given(monkeypatch):
    asked = []
    monkeypatch.setattr(labels_module, "find_issues_in", lambda *rows, **options: asked.append((rows, options)) or [])
    X = pd.DataFrame({"size": np.arange(60.0), "day": 2.0 * np.arange(60)})
    encoder = TableEncoder(2, feature_names=np.array(["size", "day"]))
    audit = make_audit(X=X, encoder=encoder, item=np.arange(60))
    assert audit.find_issues() == audit.find_issues("day") == audit.find_issues(np.arange(60)) == []
    times = [options["time"] for _, options in asked]
    assert times[0] is None
    np.testing.assert_array_equal(times[1], X["day"])
    np.testing.assert_array_equal(times[2], np.arange(60))
    assert [options["time_column"] for _, options in asked] == [None, 1, None]
    assert asked[0][1]["posterior"] is audit.clean
    with pytest.raises(ValueError, match="time must be a column of X or one value per row, got 'hour'"):
        audit.find_issues("hour")


def test_judged_rows_are_those_that_some_fold_judged_with_labels_before_any_review():
    X = np.arange(60.0)[:, None]
    given = make_audit().given
    before = np.where(given == "a", "b", "a")
    audit = make_audit(X=X, encoder=TableEncoder(1), judged=np.arange(60) % 2 > 0, before_review=before)
    rows = collect_judged_rows(audit)
    np.testing.assert_array_equal(rows.table, X[1::2])
    np.testing.assert_array_equal(rows.labels, 1 - audit.label_indices[1::2])
    np.testing.assert_allclose(rows.expected.clean, audit.clean[1::2])
    np.testing.assert_allclose(rows.expected.matrices, audit.noise.matrix[None])
    assert rows.without == {}
    hidden = SimpleNamespace(position=0, posterior=audit.posterior, noise=audit.noise)
    allowed = collect_judged_rows(allow_for(change(audit, judged=None), hidden))
    assert allowed.without == {0: (audit.posterior, audit.noise)}
    by_source = make_audit_by_source(X=X, encoder=TableEncoder(1), rows_per_case=4.0)
    rows = collect_judged_rows(by_source)
    np.testing.assert_array_equal(rows.expected.matrix_of_row, by_source.sources.indices)
    np.testing.assert_allclose(rows.expected.matrices, by_source.context.by_source.matrices_by_index)
    np.testing.assert_allclose(rows.expected.clean, by_source.context.by_source.clean(by_source.posterior))
    assert rows.rows_per_case == 4.0
    np.testing.assert_array_equal(rows.labels, by_source.label_indices)


def test_what_asks_for_our_model_says_who_judged():
    audit = make_audit(noise=make_matrices(2))
    for ask in (lambda: audit.explain(0), audit.hidden_sources):
        with pytest.raises(ValueError, match="from a model of ours, and these labels were judged by somebody"):
            ask()
    with pytest.raises(ValueError, match="row must be at most 59"):
        audit.explain(60)
    with pytest.raises(ValueError, match="n_reasons must be an integer >= 0"):
        explain_rows(audit, [0], -1)
    assert not audit.judge.looks_in_sample
    assert change(audit, in_sample_reason="too good").judge.looks_in_sample
