"""The audit of labels: wrong ones come first, as many as promised, and for reasons that can be checked."""

import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import average_precision_score

from helpers.quick import QuickClassifier, make_classifier
from untwist import UntwistClassifier
from untwist.audit import LabelAudit, audit_labels
from untwist.audit.explaining import explain_rows
from untwist.audit.statements import INDEPENDENT_ERRORS
from untwist.display import write_range, write_share
from untwist.noise.rates import estimate_rates
from untwist.noise.two_classes import TwoClassNoise
from untwist.twisters import ClassConditionalNoise, ClassNoise, InstanceNoise

TWISTERS = [ClassNoise(0.2), ClassNoise(0.35), ClassConditionalNoise(rate_neg=0.1, rate_pos=0.3)]


def draw_easy_rows(n=1000, seed=2):
    return make_classification(n, 6, n_informative=4, n_redundant=0, class_sep=2.0, flip_y=0, random_state=seed)


def flag_rows(n, rows):
    flagged = np.zeros(n, dtype=bool)
    flagged[rows] = True
    return flagged


@pytest.fixture(scope="module", params=TWISTERS, ids=repr)
def judged(request):
    """An audit of twisted labels, and which of them are wrong."""
    X, y = draw_easy_rows(2000, seed=6)
    _, noisy, flipped = request.param.twist(X, y, 6)
    return audit_labels(X, noisy), flag_rows(len(y), flipped)


@pytest.fixture(scope="module")
def three():
    """An audit of three classes by name, and which labels are wrong."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 1500)
    X = rng.normal(size=(1500, 4)) + 4 * np.eye(3, 4)[truth]
    wrong = rng.random(1500) < 0.2
    labels = np.array(["ant", "bee", "cat"])[np.where(wrong, (truth + rng.integers(1, 3, 1500)) % 3, truth)]
    return audit_labels(X, labels), wrong


# ---- how many and which ----


def test_wrong_labels_come_first(judged):
    audit, wrong = judged
    assert audit.noise.found
    assert average_precision_score(wrong, audit.wrong) > 2 * wrong.mean() + 0.2
    assert audit.wrong[wrong].mean() > 3 * audit.wrong[~wrong].mean()


def test_the_number_of_wrong_labels_lies_in_its_interval_or_next_to_it(judged):
    audit, wrong = judged
    share, low, high = audit.noise_rate
    assert low <= share <= high
    # Posteriors are learned: the rate is a little too low rather than too high.
    assert low - 0.03 < wrong.mean() < high + 0.03
    assert share == pytest.approx(audit.wrong.mean(), abs=2e-3)
    assert f"2,000 labels, about {write_share(share)} wrong ({write_range(low, high)})" in str(audit)
    for label in (0, 1):
        of_label = audit.given == label
        assert audit.rate_by_label[label][0] == pytest.approx(audit.wrong[of_label].mean(), abs=2e-3)
        assert audit.rate_by_label[label][0] == pytest.approx(wrong[of_label].mean(), abs=0.07)


@pytest.mark.parametrize("q", [0.1, 0.2, 0.3])
def test_the_share_of_false_discoveries_is_kept(judged, q):
    audit, wrong = judged
    chosen = audit.suspects(false_discovery_rate=q)
    assert len(chosen) >= 20
    assert np.mean(~wrong[chosen]) <= q + 0.05
    assert np.mean(1 - audit.wrong[chosen]) <= q
    more = audit.ranking[: len(chosen) + 1]
    assert np.mean(1 - audit.wrong[more]) > q  # One more would be too many.
    assert set(chosen) <= set(audit.suspects(false_discovery_rate=q + 0.1))


def test_suspects_are_as_many_as_are_expected_to_be_wrong_and_mostly_are(judged):
    audit, wrong = judged
    chosen = audit.suspects()
    np.testing.assert_array_equal(chosen, audit.ranking[: round(audit.wrong.sum())])
    assert wrong[chosen].mean() > 0.75
    assert wrong[chosen].sum() > 0.6 * wrong.sum()


def test_a_budget_is_the_head_of_the_ranking(judged):
    audit, _ = judged
    np.testing.assert_array_equal(audit.suspects(budget=17), audit.ranking[:17])
    assert audit.suspects(budget=0).size == 0
    assert audit.suspects(budget=10**9).size == 2000


def test_the_ranking_is_by_wrong_then_by_the_posterior_then_by_row(judged):
    audit, _ = judged
    order = audit.ranking
    posterior = audit.posterior[np.arange(2000), audit.given]
    keys = list(zip(-audit.wrong[order], posterior[order], order, strict=True))
    assert keys == sorted(keys)
    assert sorted(order) == list(range(2000))


def test_ties_in_the_ranking_go_by_posterior_and_then_by_row():
    posterior = np.array([[0.5, 0.5], [0.4, 0.6], [0.5, 0.5], [0.9, 0.1]])
    X, y = draw_easy_rows(100)
    audit = audit_labels(X, y)
    tied = LabelAudit(
        **{
            **{field.name: getattr(audit, field.name) for field in fields(audit)},
            "given": np.array([1, 1, 1, 1]),
            "posterior": posterior,
            "wrong": np.array([0.3, 0.3, 0.3, 0.4]),
        }
    )
    assert tied.ranking.tolist() == [3, 0, 2, 1]


def test_corrected_labels_are_a_copy_with_likely_suspects_relabelled(judged):
    audit, wrong = judged
    before = audit.given.copy()
    corrected = audit.corrected()
    np.testing.assert_array_equal(audit.given, before)
    likely = [row for row in audit.suspects() if audit.wrong[row] > 0.5]
    np.testing.assert_array_equal(np.flatnonzero(corrected != before), np.sort(likely))
    assert np.mean(corrected != np.where(wrong, 1 - before, before)) < wrong.mean() / 2
    assert audit.corrected([0, 1])[2:].tolist() == before[2:].tolist()
    assert audit.corrected([0, 1])[:2].tolist() == audit.predicted[:2].tolist()


def test_no_rows_to_correct_leave_all_labels(judged):
    assert judged[0].corrected([]).tolist() == judged[0].given.tolist()


@pytest.mark.parametrize("kind", ["easy", "hard"])
def test_clean_labels_are_not_called_wrong(kind):
    for seed in range(2):
        X, y = draw_easy_rows(500, seed)
        if kind == "hard":
            rng = np.random.default_rng(seed)
            y = rng.integers(0, 2, 500)
            X = rng.normal(size=(500, 3)) + 0.7 * y[:, None]
        audit = audit_labels(X, y)
        assert not audit.noise.found
        assert not (audit.wrong > 0.5).any()
        # Where rows are hard there is some chance of noise, and as many labels are listed as are wrong by it.
        assert len(audit.suspects()) == round(audit.wrong.sum()) <= (0.05 * 500 if kind == "hard" else 0)
        assert audit.to_frame()["is_label_issue"].sum() == len(audit.suspects())
        with pytest.warns(UserWarning, match="no label is replaced: it is undecided"):
            np.testing.assert_array_equal(audit.corrected([3, 7]), y)
        np.testing.assert_array_equal(audit.corrected(), y)  # None of the suspects is likely wrong.
        if kind == "easy":
            assert audit.slices() == []
        assert audit.suspects(false_discovery_rate=0.5).size == 0
        assert audit.suspects(false_discovery_rate=1.0).size == 500
        with pytest.raises(ValueError, match="false_discovery_rate must lie in"):
            audit.suspects(false_discovery_rate=7)
        assert audit.suspects(budget=3).size == 3
        assert "no sign of wrong labels; at most" in str(audit) or "cannot be told" in str(audit)


def test_what_a_review_finds_is_within_the_range_that_was_told(judged):
    audit, wrong = judged
    for budget in (20, 100, 300):
        rows = audit.suspects(budget=budget)
        found = audit.expected_yield(rows)
        assert found.low <= found.value <= found.high
        # Posteriors are learned, and make the share a little too low rather than too high.
        assert found.low - 0.05 * budget <= np.count_nonzero(wrong[rows]) <= found.high + 0.05 * budget


def test_rows_are_refused_that_are_no_rows(clean):
    with pytest.raises(ValueError, match="rows must be indices"):
        clean.expected_yield([-1])


def test_noise_that_looks_like_hard_rows_is_within_the_range_or_beyond_its_if():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    given = InstanceNoise(0.12).twist(X, y, rng)[1]
    audit = audit_labels(X, given)
    assert not audit.noise.found
    for budget in (1, 50, 100, 300):
        rows = audit.suspects(budget=budget)
        found = audit.expected_yield(rows)
        n_wrong = np.count_nonzero((given != y)[rows])
        assert found.low == 0.0 <= n_wrong
        # The range is all rows, or it rests on what is not true here, and says so.
        assert found.high == budget if INDEPENDENT_ERRORS not in found.rests_on else n_wrong > found.high
    assert INDEPENDENT_ERRORS in found.rests_on
    assert "if errors do not depend on features" in audit.verdict.describe_yield(found)
    worst = audit.explain(audit.suspects(budget=1)[0])
    assert worst.wrong == audit.wrong[worst.row] < 0.01
    assert "under 1 % likely wrong" in str(worst)


def test_several_classes(three):
    audit, wrong = three
    assert audit.noise.found
    assert audit.noise_rate[0] == pytest.approx(wrong.mean(), abs=0.04)
    assert average_precision_score(wrong, audit.wrong) > 0.8
    chosen = audit.suspects(false_discovery_rate=0.1)
    assert len(chosen) > 100
    assert np.mean(~wrong[chosen]) < 0.15
    assert list(audit.rate_by_label) == ["ant", "bee", "cat"]
    assert audit.posterior.shape == (1500, 3)
    assert (audit.predicted[audit.suspects()] != audit.given[audit.suspects()]).mean() > 0.99
    reasons = audit.explain(audit.ranking[0])
    assert reasons.given != reasons.predicted
    assert reasons.n_disagreeing > 10
    assert reasons.reasons[0].column in (0, 1, 2)


# ---- tables ----


def make_shop_table(n=800):
    """Text labels by a city and an age with gaps, a fifth of them wrong, under an index of its own."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "city": pd.Categorical(rng.choice(["Bern", "Oslo", "Rome"], n)),
            "age": rng.normal(40, 10, n).round(1),
            "noise": rng.normal(size=n),
        },
        index=[f"r{i}" for i in range(n)],
    )
    truth = np.where((table["city"] == "Rome") | (table["age"] > 48), "stays", "leaves")
    table.loc[table.index[::9], "noise"] = np.nan
    table.loc[table.index[::31], "city"] = None
    _, labels, flipped = ClassNoise(0.2).twist(table, pd.Series(truth, index=table.index), 0)
    return table, labels, flag_rows(n, flipped)


@pytest.fixture(scope="module")
def shopped():
    table, labels, wrong = make_shop_table()
    return audit_labels(table, labels), wrong


def test_text_labels_of_a_table_with_categories_and_gaps(shopped):
    audit, wrong = shopped
    table, labels, _ = make_shop_table()
    assert audit.given.tolist() == labels.tolist()
    assert set(audit.predicted) == {"leaves", "stays"}
    assert average_precision_score(wrong, audit.wrong) > 0.8
    assert list(audit.rate_by_label) == ["leaves", "stays"]
    pd.testing.assert_frame_equal(audit.table.X, table)  # The table is left alone.


def test_the_frame_has_the_columns_of_cleanlab_under_the_index_of_the_table(shopped):
    audit, _ = shopped
    frame = audit.to_frame()
    assert list(frame) == ["is_label_issue", "label_quality", "given_label", "predicted_label"]
    assert frame.index.tolist() == [f"r{i}" for i in range(800)]
    assert frame["is_label_issue"].dtype == bool
    np.testing.assert_array_equal(np.flatnonzero(frame["is_label_issue"]), np.sort(audit.suspects()))
    np.testing.assert_array_equal(frame["label_quality"], 1 - audit.wrong)
    np.testing.assert_array_equal(frame["given_label"], audit.given)
    np.testing.assert_array_equal(frame["predicted_label"], audit.predicted)


# ---- reasons ----


def test_a_planted_column_speaks_against_a_planted_label(shopped):
    audit, _ = shopped
    table, labels, wrong = make_shop_table()
    row = next(i for i in audit.ranking if table["city"].iloc[i] == "Rome" and table["age"].iloc[i] < 45)
    assert wrong[row]
    found = audit.explain(row)
    assert (found.row, found.given, found.predicted, found.wrong) == (row, "leaves", "stays", audit.wrong[row])
    first = found.reasons[0]
    usual = table["city"][labels == "leaves"].mode()[0]
    assert (first.column, first.value, first.usual) == ("city", "Rome", usual)
    assert first.effect > 0
    assert f"row {row}: labelled leaves, looks like stays" in str(found)
    assert f"city is Rome, usually {usual} (+" in str(found)
    effects = [reason.effect for reason in found.reasons]
    assert effects == sorted(effects, reverse=True)
    assert audit.explain(row, n_reasons=0).reasons == ()


def test_the_usual_number_is_the_median_of_the_rows_that_bear_the_label(shopped):
    audit, _ = shopped
    table, labels, _ = make_shop_table()
    row = next(i for i in audit.ranking if table["age"].iloc[i] > 50 and table["city"].iloc[i] != "Rome")
    first = audit.explain(row).reasons[0]
    assert (first.column, first.value) == ("age", table["age"].iloc[row])
    assert first.usual == pytest.approx(table["age"][labels == labels.iloc[row]].median())


def test_effects_are_what_the_model_says_when_one_value_is_made_usual():
    X, y = draw_easy_rows(600)
    _, noisy, _ = ClassNoise(0.2).twist(X, y, 0)
    audit = audit_labels(X, noisy)
    row = audit.ranking[0]
    sign = 1 if audit.given[row] == 1 else -1
    for reason in audit.explain(row, n_reasons=6).reasons:
        changed = X[[row]].copy()
        changed[0, reason.column] = np.median(X[noisy == noisy[row], reason.column])
        rise = audit.model.decision_function(changed) - audit.model.decision_function(X[[row]])
        assert reason.effect == pytest.approx(sign * rise[0])


def test_effects_of_several_classes_are_told_from_the_predicted_one(three):
    audit, _ = three
    fitted, n_told = audit.model.model_, 0

    def measure(values, label, predicted):
        encoded = fitted.encoder.schema.put_numbers(values[None])
        posterior = fitted.posterior.twisted(fitted.scores(encoded))[0]
        others = [k for k in range(len(posterior)) if k != label] if predicted == label else [predicted]
        return np.log(posterior[label]) - np.log(max(posterior[k] for k in others))

    for found in explain_rows(audit, [*audit.ranking[:3], *audit.ranking[-3:]], n_reasons=9):
        label, predicted = np.searchsorted(audit.classes, [found.given, found.predicted])
        here = audit.table.numbers[found.row]
        effects = []
        for column in range(len(here)):
            changed = here.copy()
            changed[column] = np.median(audit.table.numbers[audit.given == found.given, column])
            effects.append(measure(changed, label, predicted) - measure(here, label, predicted))
        strongest = sorted((i for i in range(len(here)) if effects[i] > 0.005), key=lambda i: -effects[i])
        assert [one.column for one in found.reasons] == strongest
        assert [one.effect for one in found.reasons] == pytest.approx([effects[i] for i in strongest])
        n_told += len(strongest)
    assert n_told > 5


@pytest.mark.parametrize("name", ["shopped", "three"])
def test_similar_rows_are_those_that_share_most_leaves(name, request):
    audit, _ = request.getfixturevalue(name)
    fitted = audit.model.model_
    encoded = fitted.encoder.schema.put_numbers(audit.table.numbers)
    leaves = fitted.leaves(encoded).reshape(len(audit.given), -1)
    for row in [0, *audit.ranking[:2]]:
        shared = [int(sum(leaves[i] == leaves[row])) for i in range(len(leaves))]
        others = sorted((i for i in range(len(leaves)) if i != row), key=lambda i: (-shared[i], i))[:20]
        found = audit.explain(row)
        assert found.n_similar == 20
        assert found.n_disagreeing == sum(audit.given[i] != audit.given[row] for i in others)
        assert list(found.similar) == others[:5]
    assert audit.explain(audit.ranking[0]).n_disagreeing > 10


@pytest.mark.parametrize(
    ("row", "message"),
    [(-1, "row must be an integer >= 0"), (800, "row must be at most 799"), (1.5, "row must be an int")],
)
def test_rows_that_are_not_there_are_named(shopped, row, message):
    with pytest.raises(ValueError, match=message):
        shopped[0].explain(row)


@pytest.mark.parametrize("name", ["shopped", "three"])
def test_many_rows_are_explained_at_once(name, request):
    audit, _ = request.getfixturevalue(name)
    rows = audit.ranking[:300]
    found = explain_rows(audit, rows, n_reasons=2)
    for place in (0, 1, 249, 250, 299):
        assert found[place] == audit.explain(rows[place], n_reasons=2)
    assert explain_rows(audit, []) == []
    with pytest.raises(ValueError, match="rows must be indices"):
        explain_rows(audit, [0, len(audit.given)])


def test_the_rest_is_explained_without_similar_rows(shopped):
    audit, _ = shopped
    first, second = explain_rows(audit, audit.ranking[:2], n_compared=1)
    assert first == audit.explain(audit.ranking[0])
    assert (second.n_similar, second.similar) == (0, ())
    assert second.reasons == audit.explain(audit.ranking[1]).reasons
    assert "similar rows" in str(first)
    assert "similar rows" not in str(second)


def test_similar_rows_are_looked_for_among_some_where_there_are_many(monkeypatch, shopped):
    audit, _ = shopped
    monkeypatch.setattr("untwist.audit.reasons.MOST_LOOKED_AT", 100)
    some = audit.explain(audit.ranking[0])
    assert some == audit.explain(audit.ranking[0])
    assert some.n_similar == 20
    assert some.n_disagreeing > 10


# ---- one audit for the same data ----


def assert_equal_audits(one, other, order=slice(None)):
    np.testing.assert_array_equal(one.wrong, other.wrong[order])
    np.testing.assert_array_equal(one.posterior, other.posterior[order])
    np.testing.assert_array_equal(one.predicted, other.predicted[order])
    assert one.noise_rate == pytest.approx(other.noise_rate, rel=1e-12)


def test_neither_threads_nor_the_order_of_rows_matter():
    X, y = draw_easy_rows(500)
    _, noisy, _ = ClassNoise(0.2).twist(X, y, 0)
    audit = audit_labels(X, noisy)
    order = np.random.default_rng(1).permutation(500)
    assert_equal_audits(audit_labels(X[order], noisy[order], n_jobs=2), audit, order)
    assert (audit_labels(X, noisy, random_state=1).wrong != audit.wrong).any()


def test_a_fitted_model_is_audited_without_another_fit(monkeypatch):
    X, y = draw_easy_rows(500)
    _, noisy, _ = ClassNoise(0.2).twist(X, y, 0)
    audit = audit_labels(X, noisy)
    model = UntwistClassifier(random_state=0).fit(X, noisy)
    monkeypatch.setattr(UntwistClassifier, "fit", lambda *_: pytest.fail("fitted again"))
    again = audit_labels(X, noisy, model)
    assert_equal_audits(again, audit)
    assert again.model is model


def test_the_audit_and_the_model_it_uses_agree_on_the_noise():
    X, y = load_iris(return_X_y=True)
    model = UntwistClassifier(random_state=0).fit(X, y)
    assert audit_labels(X, y, model).noise is model.noise_
    X, y = draw_easy_rows(300)
    model = UntwistClassifier(noise=(0.1, 0.3), random_state=0).fit(X, y)
    noise = audit_labels(X, y, model).noise
    assert (noise.rate_neg, noise.rate_pos, noise.found) == (0.1, 0.3, True)


@pytest.mark.parametrize("settings", [{}, {"alpha": 1.0}], ids=str)
def test_a_model_without_an_estimate_of_its_own_is_audited_by_its_posteriors(settings):
    X, y = draw_easy_rows(400)
    _, noisy, _ = ClassNoise(0.2).twist(X, y, 0)
    model = make_classifier(noise=None, random_state=0, **settings).fit(X, noisy)
    noise = audit_labels(X, noisy, model).noise
    assert isinstance(noise, TwoClassNoise)
    expected = estimate_rates(model.oof_proba_[:, 1], noisy)
    assert (noise.rate_neg, noise.rate_pos) == pytest.approx((expected.rate_neg, expected.rate_pos), abs=1e-3)
    assert noise.found == expected.found
    assert noise.evidence == pytest.approx(expected.evidence, abs=0.1)


def test_rows_of_weight_0_are_judged_by_all_folds_and_count_for_nothing():
    X, y = draw_easy_rows(500)
    _, noisy, flipped = ClassNoise(0.2).twist(X, y, 0)
    weight = np.ones(500)
    weight[:50] = 0
    audit = audit_labels(X, noisy, sample_weight=weight)
    without = audit_labels(X[50:], noisy[50:])
    assert np.isfinite(audit.wrong).all()
    np.testing.assert_allclose(audit.wrong[50:], without.wrong, atol=1e-6)
    np.testing.assert_allclose(audit.noise_rate, without.noise_rate, atol=1e-6)
    for label, rates in without.rate_by_label.items():
        np.testing.assert_allclose(audit.rate_by_label[label], rates, atol=1e-6)
    np.testing.assert_allclose(audit.posterior[:50], audit.model.predict_proba_twisted(X[:50]), atol=1e-9)
    assert np.mean(audit.predicted[:50] == y[:50]) > 0.9
    assert average_precision_score(flag_rows(500, flipped)[:50], audit.wrong[:50]) > 0.8
    assert sorted(audit.ranking) == list(range(500))
    assert audit.to_frame()["label_quality"].notna().all()


def test_weight_2_is_a_repeated_row():
    X, y = draw_easy_rows(400)
    _, noisy, _ = ClassConditionalNoise(rate_neg=0.1, rate_pos=0.3).twist(X, y, 0)
    weight = 1 + 3 * noisy
    weighted = audit_labels(X, noisy, sample_weight=weight)
    copies = audit_labels(np.repeat(X, weight, axis=0), np.repeat(noisy, weight))
    assert weighted.noise_rate == pytest.approx(copies.noise_rate, abs=0.02)


# ---- what is refused ----


def test_a_column_without_any_value_explains_nothing():
    X, y = draw_easy_rows(200)
    X = np.column_stack([X, np.full(len(X), np.nan)])
    audit = audit_labels(X, y, UntwistClassifier(random_state=0).fit(X, y))
    assert X.shape[1] - 1 not in [reason.column for reason in audit.explain(0).reasons]


def test_other_labels_than_those_of_the_fit_are_refused():
    X, y = draw_easy_rows(100)
    model = UntwistClassifier(random_state=0).fit(X, y)
    message = "X and y must be the rows that the model was fitted to, in the same order"
    for other in (1 - y, y[:50]):
        with pytest.raises(ValueError, match=message):
            audit_labels(X, other, model)
    with pytest.raises(ValueError, match="y has labels that the training labels have not"):
        audit_labels(X, np.where(y == 1, 2, 0), model)
    with pytest.raises(ValueError, match="sample_weight belongs to the fit of the model"):
        audit_labels(X, y, model, sample_weight=np.ones(100))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[::-1], "X and y must be the rows"),
        (lambda X: X[:50], "X and y must be the rows"),
        (lambda X: X + 1e-9, "X and y must be the rows"),
        (lambda X: None, "X must be the rows, unless pred_probs are given"),
    ],
    ids=["other", "fewer", "nearly", "None"],
)
def test_other_rows_than_those_of_the_fit_are_refused(change, message):
    X, y = draw_easy_rows(100)
    model = UntwistClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=message):
        audit_labels(change(X), y, model)


def test_a_single_other_row_among_many_is_refused():
    X, y = draw_easy_rows(2000)
    model = QuickClassifier(alpha=1.0, n_estimators=5, noise=None, random_state=0).fit(X, y)
    other = X.copy()
    other[1] += 1.0
    with pytest.raises(ValueError, match="X and y must be the rows"):
        audit_labels(other, y, model)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"false_discovery_rate": 0.1, "budget": 5}, "false_discovery_rate and budget exclude each other"),
        ({"budget": -1}, "budget must be an integer >= 0, got -1"),
        ({"budget": 2.5}, "budget must be an integer >= 0, got 2.5"),
        ({"false_discovery_rate": 0}, "false_discovery_rate must be a number > 0, got 0"),
        ({"false_discovery_rate": 1.5}, r"false_discovery_rate must lie in \(0, 1\], got 1.5"),
        ({"false_discovery_rate": math.nan}, "false_discovery_rate must be a number > 0, got nan"),
    ],
)
def test_bad_cuts_are_named(shopped, settings, message):
    with pytest.raises(ValueError, match=message):
        shopped[0].suspects(**settings)


def test_the_noise_of_an_audit_can_be_printed_and_asked(shopped):
    audit, _ = shopped
    assert isinstance(audit.noise, TwoClassNoise)
    assert str(audit).splitlines()[1].endswith(" of true leaves bear another label")


def test_rows_to_correct_may_be_booleans_and_must_exist():
    X, y = draw_easy_rows(300)
    audit = audit_labels(X, 1 - np.where(np.arange(300) % 5 == 0, y, 1 - y))
    assert audit.noise.found
    rows = audit.ranking[:2]
    mask = np.zeros(300, dtype=bool)
    mask[rows] = True
    expected = np.where(mask, audit.predicted, audit.given)
    assert (expected != audit.given).sum() == 2
    for chosen in (rows, mask, pd.Series(mask)):
        np.testing.assert_array_equal(audit.corrected(chosen), expected)
    for rows in ([300], [-1]):
        with pytest.raises(ValueError, match="rows must be indices from 0 to 299"):
            audit.corrected(rows)
    with pytest.raises(ValueError, match="rows must be 300 Booleans or indices"):
        audit.corrected(mask[:5])
