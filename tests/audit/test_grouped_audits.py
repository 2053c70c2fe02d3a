"""Audits of rows that belong together, by folds of one's own, and of rows that nearly repeat rows of other folds."""

import json
import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, TimeSeriesSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from helpers.command_line import untwist
from helpers.grouped_rows import draw_patients
from helpers.noisy_rows import make_noisy_rows
from helpers.quick import QuickClassifier
from helpers.small_audits import change
from untwist.audit import audit_labels
from untwist.audit.explaining import explain_rows
from untwist.audit.judging import doubt_judgement, judge_alike
from untwist.audit.slices import Excess, find_p_values
from untwist.audit.verdict import State
from untwist.commands.steps import find_matrix
from untwist.data.near_duplicates import SOME_WRONG, NearDuplicates
from untwist.noise import out_of_fold as noise_of_folds
from untwist.noise.rates import estimate_rates
from untwist.noise.sources import estimate_by_source
from untwist.report import compare, report

#: What is said of labels that models may have seen.
CANNOT_BE_TOLD = "whether labels are wrong or rows are hard cannot be told from these data"


@pytest.fixture(scope="module")
def patients():
    """60 patients with 30 rows each, which nearly repeat each other; 12 of them are mislabelled."""
    return draw_patients()


@pytest.fixture(scope="module")
def grouped(patients):
    X, y, patient, _ = patients
    return audit_labels(X, y, groups=patient)


@pytest.fixture(scope="module")
def fooled(patients):
    X, y, _, _ = patients
    with pytest.warns(UserWarning, match="have near-duplicates in other folds"):
        return audit_labels(X, y)


@pytest.fixture(scope="module")
def half_fooled():
    """An audit that finds noise among rows with near-duplicates in other folds."""
    X, y, _, _ = draw_patients(800, 2, 160)
    with pytest.warns(UserWarning, match="have near-duplicates in other folds"):
        return audit_labels(X, y)


@pytest.fixture(scope="module")
def timed():
    """Rows whose first quarter no fold judges."""
    X, y = make_noisy_rows(400)
    return audit_labels(X, y, cv=TimeSeriesSplit(3))


# ---- groups ----


def test_mislabelled_patients_are_found(patients, grouped):
    _, _, patient, wrong = patients
    share, low, high = grouped.noise_rate
    assert 0.08 < share < 0.3
    assert low <= 0.2 <= high
    first = grouped.suspects(budget=12 * 30)
    assert np.isin(patient[first], wrong).mean() > 0.75


def test_many_patients_tell_for_certain():
    X, y, patient, wrong = draw_patients(1000, 3, 200)
    audit = audit_labels(X, y, groups=patient)
    _, low, high = audit.noise_rate
    assert audit.noise.found
    assert low < 0.2 < high
    assert np.isin(patient[audit.suspects()], wrong).mean() > 0.85
    assert high - low > 2 * 1.96 * np.sqrt(0.2 * 0.8 / 3000)  # Independent rows would tell more than patients do.


def test_patients_count_and_not_their_rows(patients, grouped):
    X, y, patient, _ = patients
    assert grouped.context.rows_per_case == pytest.approx(30, rel=0.05)
    assert "rows of 60 groups are judged by models that have not seen their group" in str(grouped)
    assert "they count for about 60" in str(grouped)
    one_each = audit_labels(X[::30], y[::30])
    width = [audit.noise_rate[2] - audit.noise_rate[1] for audit in (grouped, one_each)]
    assert width[0] == pytest.approx(width[1], abs=0.15)
    assert grouped.verdict.upper_bound.high > 0.2
    assert grouped.context.groups.tolist() == patient.tolist()


def test_similar_rows_are_of_other_groups():
    X, y, patient, _ = draw_patients(40, 10, 8)
    names = [None if row % 50 == 0 else f"p{one}" for row, one in enumerate(patient)]
    model = QuickClassifier(n_estimators=10, random_state=0).fit(X, y, groups=names)
    for one in explain_rows(audit_labels(X, y, model, groups=names), np.arange(0, 400, 5)):
        assert one.n_similar == 20
        assert one.row not in one.similar
        assert names[one.row] is None or names[one.row] not in [names[other] for other in one.similar]


def test_parts_stand_out_only_by_more_groups_than_chance():
    excesses = [Excess(score, 100.0, 10.0) for score in (60.0, 1.0, -3.0, 2.0)]
    alone, together = find_p_values(excesses), find_p_values(excesses, rows_per_case=30.0)
    assert alone[0] < 1e-6
    assert together[0] > 0.05


def test_a_fitted_model_knows_its_groups(patients):
    X, y, patient, _ = (one[:360] for one in patients)
    model = QuickClassifier(n_estimators=10, max_depth=2, random_state=0).fit(X, y, groups=patient)
    audit = audit_labels(X, y, model)
    assert audit.context.groups.tolist() == patient.tolist()
    assert (
        audit_labels(X, y, model, groups=[f"p{one}" for one in patient]).context.rows_per_case
        == audit.context.rows_per_case
    )
    with pytest.raises(ValueError, match="groups must be those of the rows that the model was fitted to"):
        audit_labels(X, y, model, groups=patient // 2)
    with pytest.raises(ValueError, match="cv belongs to the fit of the model"):
        audit_labels(X, y, model, cv=3)
    plain = QuickClassifier(n_estimators=10, max_depth=2, random_state=0).fit(X, np.arange(360) % 2)
    with pytest.raises(ValueError, match="the model was fitted without groups"):
        audit_labels(X, np.arange(360) % 2, plain, groups=patient)


def test_other_models_have_not_seen_the_group_that_they_judge(patients):
    X, y, patient, wrong = patients
    forest = RandomForestClassifier(30, random_state=0)
    audit = audit_labels(X, y, forest, groups=patient)
    first = audit.suspects(budget=12 * 30)
    assert np.isin(patient[first], wrong).mean() > 0.6
    assert audit.context.rows_per_case > 20
    posterior = cross_val_predict(forest, X, y, groups=patient, cv=GroupKFold(5), method="predict_proba")
    given = audit_labels(y=y, pred_probs=posterior, groups=patient)
    assert given.context.rows_per_case > 20
    assert given.noise_rate[2] > 0.2
    with pytest.raises(ValueError, match="cv must be None with pred_probs"):
        audit_labels(y=y, pred_probs=posterior, cv=5)


def test_texts_have_groups_and_folds_too():
    rng = np.random.default_rng(0)
    author = np.repeat(np.arange(30), 6)
    y = author % 2
    words = np.array(["red", "blue"])[y]
    texts = [f"{word} author{who} n{rng.integers(99)}" for word, who in zip(words, author, strict=True)]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    audit = audit_labels(texts, y, model, groups=author)
    assert audit.context.groups.tolist() == author.tolist()
    judged = audit_labels(texts, y, model, cv=TimeSeriesSplit(2)).context.judged
    assert judged.tolist() == [False] * 60 + [True] * 120
    order = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match="cv, fold 0, trains on no row of class 1"):
        audit_labels([texts[i] for i in order], y[order], model, cv=TimeSeriesSplit(2))
    with pytest.raises(ValueError, match="class 0 lies in too few groups"):
        audit_labels(texts, y, model, groups=y)


def draw_mislabelled_groups(seed):
    """60 groups of 20 rows, some of which are mislabelled as a whole; of six sources each labels whole groups."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(60), 20)
    of_second = np.where(rng.random(60) < 0.5, 0.97, 0.03)[group]
    labels = (rng.random(1200) < of_second) ^ (rng.random(60) < 0.12)[group]
    posterior = np.clip(0.12 + 0.76 * of_second + rng.normal(0.0, 0.02, 1200), 0.01, 0.99)
    return labels.astype(int), posterior, group, rng.integers(0, 6, 60)[group]


@pytest.mark.slow
def test_no_source_is_accused_of_what_a_few_groups_share():
    accused = 0
    for seed in range(5):
        y, posterior, group, source = draw_mislabelled_groups(seed)
        audit = audit_labels(y=y, pred_probs=posterior, groups=group, source=source)
        accused += audit.context.by_source.stands_out.sum()
        _, low, high = audit.noise_rate
        assert low <= 0.12 <= high
        assert audit.context.by_source.counts.sum() == 1200
        for label, (_, _, most) in audit.rate_by_label.items():
            assert most >= 1.0 - 0.05 ** (audit.context.rows_per_case / (y == label).sum())
    assert accused == 0


def test_a_bad_source_of_many_groups_is_still_named():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(400), 3)
    of_second = np.where(rng.random(400) < 0.5, 0.97, 0.03)[group]
    source = rng.integers(0, 4, 400)[group]
    wrong = (rng.random(400) < 0.4)[group] & (source == 2)
    y = ((rng.random(1200) < of_second) ^ wrong).astype(int)
    audit = audit_labels(y=y, pred_probs=0.1 + 0.8 * of_second, groups=group, source=source)
    assert audit.context.rows_per_case > 1.5
    assert audit.context.by_source.stands_out.tolist() == [False, False, True, False]


def test_a_fit_counts_groups_where_it_tells_sources_apart(patients, monkeypatch):
    X, y, patient, _ = (one[:360] for one in patients)
    told = []

    def estimate(*arguments, **options):
        told.append(options["rows_per_case"])
        return estimate_by_source(*arguments, **options)

    monkeypatch.setattr(noise_of_folds, "estimate_by_source", estimate)
    model = QuickClassifier(n_estimators=10, max_depth=2, random_state=0)
    model.fit(X, y, groups=patient, source=patient % 3)
    assert told[-1] == audit_labels(X, y, model).context.rows_per_case > 20


# ---- rows that are not judged ----


@pytest.mark.parametrize("model", [None, GaussianNB()], ids=["ours", "another"])
def test_rows_that_no_fold_judges_have_no_part_in_what_is_said(model):
    X, y = make_noisy_rows(400)
    audit = audit_labels(X, y, model, cv=TimeSeriesSplit(3))
    left = np.arange(400) < 100
    assert np.array_equal(audit.context.judged, ~left)
    assert audit.verdict.n_judged == 300
    for values in (audit.wrong, audit.posterior.sum(axis=1), audit.clean.sum(axis=1), audit.truth.sum(axis=1)):
        assert np.array_equal(np.isnan(values), left)
    assert np.array_equal(audit.predicted[left], y[left])
    assert not np.isin(audit.ranking, np.flatnonzero(left)).any()
    assert len(audit.suspects(budget=400)) == len(audit.suspects(budget=400, aim="model")) == 300
    assert "100 of the 400 labels are not judged, as no fold sets them aside" in str(audit)
    assert audit.weight[left].sum() == 0
    # Whatever the labels of these rows are, the shares are those of the others.
    mean = np.nanmean(audit.wrong)
    assert audit.noise_rate[0] == pytest.approx(mean, rel=1e-3)
    assert audit.matrix.shape == (2, 2)


def test_an_audit_by_time_can_be_shown_and_compared(timed):
    audit = timed
    page = report(audit, title="by time")
    assert "100 of the 400 labels are not judged" in page
    audit.slices()
    audit.confusions()
    audit.find_issues()
    assert audit.to_frame()["label_quality"].isna().sum() == 100
    assert "not judged" in audit._repr_html_()
    pytest.importorskip("lightgbm")
    peers = compare(audit)
    assert 0.5 < peers["untwist"].agreement_with_given < 0.9
    assert 0.3 < peers["untwist"].log_loss < 0.7
    assert 0.5 < peers["LightGBM, stopped early"].agreement_with_given < 0.9
    assert audit.context.hidden_source is None


def test_rows_that_nobody_judged_are_not_counted(timed):
    assert str(timed).startswith("300 labels")
    assert repr(timed).startswith("LabelAudit(300 labels")
    assert "<dt>labels judged</dt><dd><b>300</b>" in report(timed, title="by time")
    everything, judged = np.arange(400), np.arange(100, 400)
    assert timed.expect_wrong(everything) == timed.expect_wrong(judged) == pytest.approx(np.nansum(timed.wrong))
    found = [timed.expected_yield(rows) for rows in (everything, judged)]
    assert (found[0].low, found[0].high) == (found[1].low, found[1].high)
    assert (timed.expected_yield([0]).value, timed.expected_yield([0]).high) == (0.0, 0.0)
    assert "not judged" in str(timed.explain(0))
    assert "nan" not in str(timed.explain(0))
    assert "likely wrong" in str(timed.explain(200))


def test_what_is_not_judged_is_judged_alike_elsewhere():
    rng = np.random.default_rng(0)
    of_second = rng.random(300)
    labels = (rng.random(300) < of_second).astype(np.intp)
    posterior = np.column_stack([1 - of_second, of_second])
    judged = np.arange(300) % 3 > 0
    noise = estimate_rates(of_second[judged], labels[judged])
    part = judge_alike(noise, posterior[judged], labels[judged], np.ones(200))
    posterior[~judged] = np.nan
    whole = judge_alike(noise, posterior, labels, judged.astype(float), judged=judged)
    assert whole.share == part.share
    assert whole.share_by_label == part.share_by_label
    assert np.array_equal(whole.wrong[judged], part.wrong)
    assert np.isnan(whole.wrong[~judged]).all()
    assert np.array_equal(whole.predicted[~judged], labels[~judged])


# ---- near-duplicates ----


def test_without_groups_nothing_is_claimed_of_rows_that_repeat_others(fooled):
    assert not fooled.noise.found
    assert str(fooled).splitlines()[0] == f"1,800 labels: {CANNOT_BE_TOLD}"
    assert "groups=..." in str(fooled)
    assert "no sign of noise" not in str(fooled)
    assert fooled.context.twins.share > 0.9
    _, low, high = fooled.noise_rate
    assert low <= 0.2 <= high
    assert fooled.verdict.upper_bound.high == 1.0
    assert all(one[2] > 0.9 for one in fooled.rate_by_label.values())
    assert fooled.verdict.by_class == fooled.verdict.by_label == ()
    page = report(fooled, title="patients")
    assert CANNOT_BE_TOLD in page
    assert "have near-duplicates in other folds" in page
    assert "Clean" not in page
    assert "keeps together the rows that are about one thing" in page


#: What stands beside shares and numbers of wrong labels on a page.
NUMBERS = (
    "95&nbsp;% interval",
    "it allows for the noise",
    " of true <b>",
    "shaded: all labels",
    "What a review is expected to find",
    "Full colour: wrong",
    "A hundred squares",
)

#: How the limits of a share look.
LIMITS = re.compile(r"\([\d.]+(&nbsp;| )% to [\d.]+(&nbsp;| )%\)")


def find_section(page, name):
    """Return what a page says from the heading of a section up to that of the next."""
    return page.split(f"<section id={name}", 1)[1].split("</section>", 1)[0]


def test_where_noise_is_found_among_twins_no_number_is_told(half_fooled):
    audit = half_fooled
    assert audit.noise.found
    assert audit.verdict.state is State.UNDECIDED
    share, _, high = audit.noise_rate
    assert share < 0.2 < high
    assert str(audit).startswith(f"1,600 labels: {CANNOT_BE_TOLD}; ")
    page = report(audit, title="patients")
    assert f'<p class="verdict open">Undecided</p><p class=lead>1,600 labels: {CANNOT_BE_TOLD}.' in page
    assert "expected wrong" not in page
    without_calibration = page.replace(find_section(page, "calibration"), "")  # Of predictions there are intervals.
    assert [one for one in NUMBERS if one in without_calibration] == []
    assert not LIMITS.search(find_section(page, "noise"))
    assert "models may have seen the labels that they judge" in find_section(page, "noise")
    assert f", 0 to {len(audit.suspects())} of them wrong." in page
    assert "keeps together the rows that are about one thing" in find_section(page, "summary")
    assert "rows reviewed" not in audit._repr_html_()
    assert not LIMITS.search(audit._repr_html_())


def test_numbers_are_told_where_no_rows_have_near_duplicates(half_fooled):
    """The words that the test above looks for do stand on other pages."""
    page = report(change(half_fooled, twins=None), title="patients")
    assert [one for one in NUMBERS if one not in page] == []
    assert LIMITS.search(find_section(page, "noise"))


def test_a_model_of_such_rows_tells_no_number_either(half_fooled):
    model = half_fooled.model
    assert model.model_.unreliable_words == SOME_WRONG
    assert SOME_WRONG in model._repr_html_()
    assert not LIMITS.search(model._repr_html_())
    assert find_matrix(model) is None
    assert model.noise_ is not None


def test_the_command_tells_no_number_of_such_rows(tmp_path, monkeypatch, capsys):
    pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")
    monkeypatch.chdir(tmp_path)
    X, y, _, _ = draw_patients(800, 2, 160)
    pd.DataFrame(X, columns=list("abcdef")).assign(ill=y).to_csv("visits.csv", index=False)
    found = json.loads(untwist(capsys, "audit", "visits.csv", "--label", "ill", "--json")[1])
    assert found["verdict"]["state"] == "undecided"
    assert found["verdict"]["upper_bound"]["high"] == 1.0
    assert found["verdict"]["by_class"] == found["verdict"]["by_label"] == []
    assert next(one["kind"] for one in found["verdict"]["notices"]) == "near-duplicates"
    assert found["matrix"] is None
    assert found["confusions"] == []
    assert found["suspects"]
    assert found["near_duplicates"]["share"] > 0.5
    _, out, _ = untwist(capsys, "audit", "visits.csv", "--label", "ill")
    assert ", 0 to " in out
    assert "expected to be wrong" not in out
    assert not LIMITS.search(out)


def test_of_several_classes_and_sources_no_number_is_told_either():
    rng = np.random.default_rng(0)
    truth, source = rng.integers(0, 3, 1200), rng.integers(0, 4, 1200)
    y = np.where(rng.random(1200) < np.where(source == 2, 0.4, 0.05), (truth + 1) % 3, truth)
    posterior = (np.full((1200, 3), 0.06) + 0.82 * np.eye(3)[truth]) * rng.uniform(0.98, 1.02, (1200, 3))
    posterior /= posterior.sum(axis=1, keepdims=True)
    audit = audit_labels(y=y, pred_probs=posterior)
    pairs = np.array([[0, 1]])
    twins = NearDuplicates(0.5, 0.0, 0.4, pairs, pairs)
    assert " suspects, about " in str(audit)
    first = str(change(audit, twins=twins)).splitlines()[0]
    n_suspects = len(audit.suspects())
    assert first == f"1,200 labels: {CANNOT_BE_TOLD}; {n_suspects} suspects, 0 to {n_suspects} of them wrong"
    audit = audit_labels(y=y, pred_probs=posterior, source=source)
    assert audit.context.by_source.stands_out.tolist() == [False, False, True, False]
    assert LIMITS.search(find_section(report(audit, title="sources"), "sources"))
    audit = change(audit, twins=twins, by_source=audit.context.by_source.drop_upper_limits())
    assert "labels of 2 are wrong more often than those of the others" in str(audit)
    assert not LIMITS.search(str(audit))
    page = report(audit, title="sources")
    assert not LIMITS.search(find_section(page, "sources"))
    assert "Labels of <b>2</b> are wrong more often" in find_section(page, "sources")
    assert "how many labels of 0 are wrong cannot be told" in map(str, audit.sources.rate())
    without_calibration = page.replace(find_section(page, "calibration"), "")
    assert [one for one in NUMBERS if one in without_calibration] == []


def test_a_review_of_such_rows_finds_as_many_as_there_are_at_most(fooled, half_fooled):
    for audit in (fooled, half_fooled):
        rows = np.arange(0, 900, 3)
        assert audit.verdict.most_wrong is None
        found = audit.expected_yield(rows)
        assert (found.low, found.high, found.rests_on) == (0.0, 300.0, ())
        assert audit.slices() == audit.confusions() == []


def test_predictions_are_not_said_to_mean_a_truth_among_such_rows(fooled, half_fooled):
    for audit in (fooled, half_fooled):
        section = find_section(report(audit, title="patients"), "calibration")
        assert "What such a prediction means for the truth is not told" in section
        assert "truly so" not in section
        assert "the truth behind them" not in section
    page = report(change(half_fooled, twins=None), title="patients")
    assert "truly so" in find_section(page, "calibration")
    assert "the truth behind them" in find_section(page, "calibration")


def test_noise_of_such_rows_has_no_upper_limit_and_is_not_drawn(half_fooled):
    assert (half_fooled.noise.interval_neg[1], half_fooled.noise.interval_pos[1]) == (1.0, 1.0)
    pytest.importorskip("matplotlib", reason="it draws with Matplotlib")
    from untwist.plot import plot_transition_matrix

    for fitted in (half_fooled, half_fooled.model):
        with pytest.raises(ValueError, match=r"there is no noise to draw: .*cannot be told"):
            plot_transition_matrix(fitted)


def test_tests_that_count_rows_find_no_faults_among_groups(grouped):
    kinds = {issue.kind for issue in change(grouped, groups=None).find_issues()}
    assert kinds & {"failing_group", "drift"}  # Rows of a patient follow each other, and are wrong together.
    assert not {issue.kind for issue in grouped.find_issues()} & {"failing_group", "drift"}


def test_sources_of_such_rows_are_not_said_to_be_alike(patients):
    X, y, _, _ = patients
    with pytest.warns(UserWarning, match="have near-duplicates in other folds"):
        audit = audit_labels(X, y, source=np.arange(len(y)) % 3)
    words = "which of 3 are noisier than the others cannot be told either"
    assert words in [one.python for one in audit.verdict.sources]
    assert audit.model.model_.describe_sources() == words
    page = report(audit, title="patients")
    assert "Which of them are noisier than the others cannot be told." in page
    assert "No source stands out" not in page


def test_nothing_is_excluded_of_the_sources_of_such_rows(patients):
    X, y, patient, _ = patients
    audit = audit_labels(X, y, GaussianNB(), source=patient % 3)
    assert audit.context.twins is not None
    assert audit.context.by_source.intervals[:, 1].min() > 0.9
    assert audit.context.by_source.class_intervals[..., 1].min() > 0.9


def test_other_models_are_fooled_too(patients):
    X, y, _, _ = patients
    audit = audit_labels(X, y, RandomForestClassifier(20, random_state=0))
    assert audit.context.twins is not None
    assert CANNOT_BE_TOLD in str(audit)


def test_a_doubted_judgement_excludes_nothing_of_the_rows_in_doubt():
    rng = np.random.default_rng(0)
    of_second = np.where(rng.random(400) < 0.5, 0.01, 0.99)
    labels = (of_second > 0.5).astype(np.intp)
    posterior = np.column_stack([1 - of_second, of_second])
    judged = judge_alike(estimate_rates(of_second, labels), posterior, labels, np.ones(400))
    doubted = doubt_judgement(judged, 0.75)
    assert doubted.share[:2] == judged.share[:2]
    assert doubted.share[2] == pytest.approx(0.75 + 0.25 * judged.share[2])
    assert [one[2] > 0.75 for one in doubted.share_by_label] == [True, True]
