"""A column that looks like a source: found where it is one, and silence where columns are features or noise is even."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from untwist import PILBoostClassifier
from untwist.audit import audit_labels
from untwist.audit.findings import collect_findings
from untwist.audit.hidden_sources import describe_groups, group_values, screen_columns
from untwist.audit.training import train_on_numbers
from untwist.batches import Batches
from untwist.commands.main import main
from untwist.noise.sources import estimate_by_source
from untwist.report import report
from untwist.report.review import write_review
from untwist.report.sections import write_noise, write_summary
from untwist.report.worksheet import RowNames
from untwist.text import for_page

CITIES = ["Bonn", "Jena", "Kiel", "Leipzig", "Ulm"]


def draw_branches(seed=0, n=2000, steepness=6.0, bad=0.45, good=0.03):
    """Labels by three numbers and a kind; those of Leipzig are often wrong."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["kind"] = rng.choice(list("klm"), n)
    X["branch"] = rng.choice(CITIES, n)
    X["day"] = rng.integers(0, 365, n)
    score = steepness * (X["a"] + 0.6 * X["b"] + 0.6 * (X["kind"] == "k") - 0.2).to_numpy()
    truth = rng.random(n) < 1 / (1 + np.exp(-score))
    wrong = rng.random(n) < np.where(X["branch"] == "Leipzig", bad, good)
    return X, np.where(truth ^ wrong, "yes", "no"), wrong


@pytest.fixture(scope="module")
def branches():
    X, y, wrong = draw_branches()
    return audit_labels(X, y), wrong


# ---- found ----


def test_a_bad_branch_is_found_with_what_follows(branches):
    audit, wrong = branches
    found = audit.hidden_source
    here = (audit.X["branch"] == "Leipzig").to_numpy()
    assert (found.column, found.position, found.where, found.rows) == ("branch", 4, "is Leipzig", here.sum())
    assert found.share_there == pytest.approx(wrong[here].mean(), abs=0.06)
    assert found.share_elsewhere == pytest.approx(wrong[~here].mean(), abs=0.03)
    assert abs(found.share_as_source - wrong.mean()) < abs(found.share_as_feature - wrong.mean())
    there, everywhere = found.suspects_as_feature
    suspects = audit.suspects()
    assert (there, everywhere) == (here[suspects].sum(), len(suspects))
    # As a source most of the wrong labels there are suspects, as a feature next to none.
    assert found.suspects_as_source[0] > 0.7 * wrong[here].sum() > 4 * there
    assert found.margin > 10


def test_what_is_said_follows_from_running_again_by_source(branches):
    audit, _ = branches
    found = audit.hidden_source
    again = run_as_advised(found.advise_in_python(), audit.X, audit.given)
    assert again.hidden_source is None
    assert [one.name for one in again.list_sources() if one.stands_out] == ["Leipzig"]
    by_name = {one.name: one.share_wrong for one in again.list_sources()}
    assert found.share_there == pytest.approx(by_name["Leipzig"], abs=0.04)
    n_there = np.count_nonzero(again.source[again.suspects()] == "Leipzig")
    assert found.suspects_as_source[0] == pytest.approx(n_there, rel=0.15)


def test_its_words_say_where_how_often_and_what_to_do(branches):
    audit, _ = branches
    found = audit.hidden_source
    words = f"labels where branch is Leipzig look wrong {found.times:.0f} times as often"
    assert found.describe().startswith(words)
    assert "branch looks like a source rather than a feature" in str(found)
    call = "audit_labels(X.drop(columns='branch'), y, source=X['branch'])"
    advice = f"in Python {call}; on the command line --source branch"
    assert str(found).endswith(f"; run again with it as source: {advice}")
    assert f"  {found}" in str(audit).splitlines()
    quiet = replace(audit, noise=replace(audit.noise, found=False))
    assert str(found) in str(quiet)
    unnamed = str(replace(found, column=4))
    assert unnamed.startswith("labels where column 4 is Leipzig look wrong")
    assert unnamed.endswith(
        "; run again with it as source: in Python audit_labels(np.delete(X, 4, axis=1), y, source=X[:, 4])"
    )
    assert "look wrong far more often" in str(replace(found, share_elsewhere=0.001))
    assert "look wrong 1.5 times as often" in str(replace(found, share_there=0.3, share_elsewhere=0.2))


def test_the_first_line_and_the_highest_share_allow_for_the_source(branches):
    audit, wrong = branches
    found = audit.hidden_source
    low, high = found.interval_as_source
    assert low < found.share_as_source < high
    assert low < wrong.mean() < high
    assert audit.highest_share >= high
    quiet = replace(audit, noise=replace(audit.noise, found=True), noise_rate=(0.02, 0.0, 0.05))
    assert quiet.highest_share == high
    assert replace(quiet, hidden_source=None).highest_share == 0.05
    share = f"{found.share_as_source:.1%} ({low:.1%} to {high:.1%})"
    words = f", with branch taken as a feature; {share} wrong if branch is taken for a source; "
    for one in (audit, replace(audit, noise=replace(audit.noise, found=False))):
        assert words in str(one).splitlines()[0]
        assert "taken for a source" not in str(replace(one, hidden_source=None))


def run_as_advised(advice, X, y):
    """Do what the advice says, in Python."""
    return eval(advice, {"audit_labels": audit_labels, "X": X, "y": y, "np": np})


def test_its_advice_can_be_followed_where_cells_are_empty(branches):
    audit, _ = branches
    X = audit.X.assign(branch=audit.X["branch"].mask(audit.X["branch"] == "Leipzig"))
    found = audit_labels(X, audit.given).hidden_source
    assert (found.column, found.where) == ("branch", "is missing")
    assert found.has_missing
    assert "once the empty cells of the column have a name" in found.advise_on_command_line()
    again = run_as_advised(found.advise_in_python(), X, audit.given)
    bad = [one for one in again.list_sources() if one.stands_out]
    assert [one.labels for one in bad] == [found.rows]
    assert bad[0].share_wrong == pytest.approx(found.share_there, abs=0.05)


def test_its_advice_tells_ranges_apart(branches):
    found = branches[0].hidden_source

    def advise(*ranges, column="day", has_missing=False):
        one = replace(found, column=column, where="is above 251", ranges=ranges, has_missing=has_missing)
        return one.advise_in_python(), one.advise_on_command_line()

    in_python, on_command_line = advise((251.0, np.inf))
    assert in_python == "audit_labels(X.drop(columns='day'), y, source=X['day'] > 251)"
    assert on_command_line == (
        "add a column that says of every row whether day is above 251, name it by --source, and leave the old one out "
        "by --drop day"
    )
    assert advise((-np.inf, 0.5), (2.0, 1234567.25))[0].endswith(
        ", source=(X['day'] <= 0.5) | ((X['day'] > 2) & (X['day'] <= 1234567.25)))"
    )
    assert advise(has_missing=True)[0].endswith(", source=X['day'].isna())")
    assert advise((3.0, np.inf), column=2, has_missing=True)[0] == (
        "audit_labels(np.delete(X, 2, axis=1), y, source=(X[:, 2] > 3) | (np.isnan(X[:, 2])))"
    )
    assert advise((3.0, np.inf), column="the day")[1].endswith("--drop 'the day'")


@pytest.mark.slow
def test_a_hard_table_with_a_bad_branch():
    X, y, _ = draw_branches(seed=1, n=3000, steepness=1.5)
    found = audit_labels(X, y).hidden_source
    assert (found.column, found.where) == ("branch", "is Leipzig")


@pytest.mark.slow
def test_several_classes_with_a_bad_branch():
    rng = np.random.default_rng(0)
    n = 2000
    truth = rng.integers(0, 3, n)
    X = pd.DataFrame(rng.normal(size=(n, 3)) + 3 * np.eye(3)[truth], columns=list("abc")).assign(
        branch=rng.choice(CITIES, n)
    )
    wrong = rng.random(n) < np.where(X["branch"] == "Leipzig", 0.45, 0.03)
    found = audit_labels(X, np.where(wrong, (truth + rng.integers(1, 3, n)) % 3, truth)).hidden_source
    assert (found.column, found.where) == ("branch", "is Leipzig")
    assert found.share_there == pytest.approx(0.45, abs=0.08)


@pytest.mark.slow
def test_noise_along_a_column_of_numbers_has_a_limit():
    X, y, _ = draw_branches(seed=2, bad=0.03)
    late = (X["day"] > 273).to_numpy()
    rng = np.random.default_rng(0)
    flipped = late & (rng.random(len(y)) < 0.45)
    labels = np.where(flipped, np.where(y == "yes", "no", "yes"), y)
    found = audit_labels(X, labels).hidden_source
    assert found.column == "day"
    assert found.where.startswith("is above ")
    assert float(found.where.split()[-1]) == pytest.approx(273, abs=50)
    assert found.ranges == ((float(found.where.split()[-1]), np.inf),)
    again = run_as_advised(found.advise_in_python(), X, labels)
    assert [(one.name, one.labels) for one in again.list_sources() if one.stands_out] == [(True, found.rows)]


# ---- silence ----


@pytest.mark.parametrize(("good", "steepness"), [(0.0, 6.0), (0.2, 6.0), (0.0, 1.5), (0.2, 1.5)])
@pytest.mark.thinned(3)
def test_even_noise_hides_no_source(good, steepness):
    X, y, _ = draw_branches(seed=3, steepness=steepness, bad=good, good=good)
    assert audit_labels(X, y).hidden_source is None


def test_a_feature_with_values_that_are_harder_is_no_source():
    rng = np.random.default_rng(4)
    n = 2500
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).assign(plant=rng.choice(list("pqrs"), n))
    # What speaks for a label is another thing at plant p, and less clear at plant q.
    score = np.select([X["plant"] == "p", X["plant"] == "q"], [5 * X["b"], 3 * X["a"]], 6 * X["a"])
    y = rng.random(n) < 1 / (1 + np.exp(-score))
    assert audit_labels(X, y).hidden_source is None


def test_a_few_rows_are_no_source(branches, monkeypatch):
    audit, _ = branches
    n_there = audit.hidden_source.rows
    for least, is_found in ((n_there, True), (n_there + 1, False)):
        monkeypatch.setattr("untwist.audit.hidden_sources.LEAST_ROWS", least)
        assert (audit.find_hidden_source() is not None) == is_found


def test_labels_that_are_wrong_in_one_direction_are_no_source(branches, monkeypatch):
    audit, _ = branches

    def estimate(*arguments, **options):
        found = estimate_by_source(*arguments, **options)
        intervals = found.class_intervals.copy()
        intervals[:, 0, 0] = 0.0  # What is truly of the first class may all be labelled rightly.
        return replace(found, class_intervals=intervals)

    monkeypatch.setattr("untwist.audit.hidden_sources.estimate_by_source", estimate)
    assert audit.hidden_source is not None
    assert audit.find_hidden_source() is None


def test_nothing_is_sought_where_it_is_not_wanted_or_cannot_be_found(monkeypatch):
    X, y, _ = draw_branches(n=600)
    assert audit_labels(X, y, seeks_sources=False).hidden_source is None
    assert audit_labels(X[["a"]], y).hidden_source is None
    monkeypatch.setattr("untwist.audit.labels.MOST_CELLS", 599 * 6)
    monkeypatch.setattr("untwist.audit.labels.find_hidden_source", lambda *_: pytest.fail("sought"))
    assert audit_labels(X, y).hidden_source is None


def test_nothing_is_trained_unless_the_screen_names_a_column(branches, monkeypatch):
    audit, _ = branches
    assert screen_columns(audit.judged_rows, audit.model) == [4]
    X, y, _ = draw_branches(seed=3, bad=0.0, good=0.0)
    model = PILBoostClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr("untwist.audit.hidden_sources.train_on_numbers", lambda *_, **__: pytest.fail("trained"))
    assert audit_labels(X, y, model).hidden_source is None


def test_of_many_rows_some_are_tried_first(branches, monkeypatch):
    audit, _ = branches
    trained = []

    def count_rows(model, numbers, *arguments, **options):
        trained.append((len(numbers), options.get("without")))
        return train_on_numbers(model, numbers, *arguments, **options)

    n_rows = len(audit.given)
    monkeypatch.setattr("untwist.audit.hidden_sources.MOST_TRIED_FIRST", n_rows - 500)
    monkeypatch.setattr("untwist.audit.hidden_sources.train_on_numbers", count_rows)
    assert audit.find_hidden_source().column == audit.hidden_source.column
    assert trained == [(n_rows - 500, None), (n_rows - 500, 4), (n_rows, 4)]
    trained.clear()
    monkeypatch.setattr("untwist.audit.hidden_sources.screen_columns", lambda *_: [0])  # It is a feature.
    assert audit.find_hidden_source() is None
    assert trained == [(n_rows - 500, None), (n_rows - 500, 0)]


# ---- the same, whatever the order ----


def test_the_order_of_rows_does_not_matter():
    X, y, _ = draw_branches(n=1200)
    order = np.random.default_rng(0).permutation(len(y))
    one = audit_labels(X, y).hidden_source
    other = audit_labels(X.iloc[order], y[order], n_jobs=2).hidden_source
    assert (one.margin, one.share_there) == pytest.approx((other.margin, other.share_there), rel=1e-9)
    assert one.suspects_as_source == other.suspects_as_source


def test_training_without_a_column_is_training_on_the_other_columns(branches):
    audit, _ = branches
    fitted = train_on_numbers(audit.model, audit.numbers, audit.given, audit.weight, without=4)
    X = audit.X.drop(columns="branch")
    best = audit.model.choice_.best
    twin = PILBoostClassifier(
        best.alpha,
        n_estimators=best.n_rounds,
        max_depth=best.max_depth,
        learning_rate=best.step,
        noise_rates=None,
        random_state=0,
    )
    assert fitted.importances("gain")[4] == 0
    assert fitted.choice.best.max_depth == best.max_depth
    here = fitted.out_of_fold_posterior_of_labels()[:, 1]
    agreement = np.corrcoef(here, twin.fit(X, audit.given).predict_proba(X)[:, 1])[0, 1]
    assert agreement > 0.95


def test_directions_of_named_columns_are_kept():
    X, y, _ = draw_branches(n=600)
    model = PILBoostClassifier(monotonic_cst={"a": 1}, random_state=0).fit(X, y)
    audit = audit_labels(X, y, model, seeks_sources=False)
    fitted = train_on_numbers(model, audit.numbers, audit.given, audit.weight, without=4)
    rows = np.repeat(audit.numbers[:1], 50, axis=0)
    rows[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(fitted.scores(rows)) >= 0).all()


# ---- groups of values ----


def test_groups_are_values_ranges_and_what_is_missing():
    X, y, _ = draw_branches(n=400)
    X["day"] = X["day"].astype(float)
    X.loc[::10, "day"] = np.nan
    X["few"] = np.arange(400) % 3
    X["month"] = np.array(["2024-01", "2024-02", "2024-03", "2024-04"])[np.arange(400) % 4]
    audit = audit_labels(X, y, seeks_sources=False)
    encoder, numbers = audit.fitted.encoder, audit.numbers
    group, names, upper = group_values(encoder, 5, numbers[:, 5])
    assert len(names) == len(upper) == 17
    assert names[0].startswith("at most ")
    assert names[15].startswith("above ")
    assert names[16] == "missing"
    np.testing.assert_array_equal(group == 16, np.isnan(X["day"]))
    for index in range(16):
        values = X["day"][group == index]
        assert values.max() == upper[index]
        assert len(values) == pytest.approx(22, abs=6)
    assert group_values(encoder, 4, numbers[:, 4])[1] == CITIES
    assert group_values(encoder, 6, numbers[:, 6])[1] == ["0", "1", "2"]

    def describe(column, *chosen):
        names = group_values(encoder, column, numbers[:, column])[1]
        return describe_groups(encoder, column, numbers[:, column], np.isin(np.arange(len(names)), chosen))

    assert describe(5, 14, 15) == f"is above {upper[13]:g}"
    assert describe(5, 0) == f"is at most {upper[0]:g}"
    assert describe(5, 2, 3) == f"is above {upper[1]:g} and at most {upper[3]:g}"
    assert describe(5, 0, 16) == f"is at most {upper[0]:g} or missing"
    assert describe(4, 1, 3) == "is Jena or Leipzig"
    assert describe(6, 1, 2) == "is 1 or 2"
    assert describe(7, 2, 3) == "is 2024-03 or later"
    assert describe(7, 1, 2) == "is from 2024-02 to 2024-03"
    assert describe(7, 0) == "is 2024-01"


# ---- for people and machines ----


def test_the_command_and_the_page_tell_it(tmp_path, capsys):
    X, y, _ = draw_branches(n=1200)
    X.assign(ok=y).to_csv(tmp_path / "cases.csv", index=False)
    arguments = ["audit", str(tmp_path / "cases.csv"), "--label", "ok"]
    page = tmp_path / "page.html"
    assert main([*arguments, "-o", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "labels where branch is Leipzig look wrong" in printed
    assert "--source branch" in printed
    assert "labels look wrong more often (or are much harder to tell): " in printed
    assert "wrong if branch is taken for a source" in printed.splitlines()[0]
    summary = page.read_text().split("<h2")[1]
    assert "Labels where <b>branch is Leipzig</b> look wrong in" in summary
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hidden_source"]["column"] == "branch"
    assert (
        found["hidden_source"]["suspects_as_source"]["there"] > found["hidden_source"]["suspects_as_feature"]["there"]
    )
    assert found["wrong"]["not_excluded"] >= found["hidden_source"]["wrong_as_source_high"]
    assert found["hidden_source"]["wrong_as_source_low"] < found["hidden_source"]["wrong_as_source"]
    assert "--source branch" in found["hidden_source"]["advice"]
    (part,) = found["slices"]
    assert (part["column"], part["where"]) == ("branch", "Leipzig")
    assert part["low"] < part["share"] < part["high"]
    assert part["p_value"] < 1e-6


def test_a_page_without_a_hidden_source_points_to_slices(branches):
    audit, _ = branches
    silent = replace(audit, hidden_source=None)
    slices = silent.slices()
    page = report(silent, title="cases")
    assert "Run again with it as source" not in page
    assert ("(or are much harder to tell) where <b>branch is Leipzig</b>" in page) == bool(slices)
    assert "Run again with it as source" in report(audit, title="cases")


@pytest.fixture(scope="module", params=[True, False])
def uneven(request, branches):
    """Whether even noise was found, and the findings of an audit with next to none of it but a bad part."""
    audit, _ = branches
    noise = replace(audit.noise, found=request.param, uneven_limit=0.01)
    return request.param, collect_findings(replace(audit, noise=noise, noise_rate=(0.0, 0.0, 0.01)))


@pytest.mark.parametrize("part", ["source", "slices"])
def test_a_page_with_a_bad_part_says_nowhere_that_all_is_well(branches, uneven, part):
    found, findings = uneven
    audit = findings.audit
    if part == "slices":
        slices = branches[0].slices()
        assert slices
        findings = replace(findings, audit=replace(audit, hidden_source=None), slices=slices)
    else:
        findings = replace(findings, slices=[])
    rows = RowNames(range(2000), "row", np.arange(2000))
    page = "".join([write_summary(findings, "row"), write_noise(findings), write_review(findings, rows, {})])
    for words in (
        "Clean",
        "no noise is claimed",
        "nothing to review",
        "no evidence of wrong labels",
        "No label can be called wrong",
        "can be used as it is",
        "Nothing needs correcting",
        "no noise was found",
    ):
        assert words not in page
    assert ("Uneven" in page) != found
    assert ("if branch is taken for a source" in page) == (part == "source")
    if part == "source":
        assert f"<code>{for_page(audit.hidden_source.advise_in_python(), 400)}</code>" in page
        assert "on the command line: --source branch." in page
        unnamed = replace(findings, audit=replace(audit, hidden_source=replace(audit.hidden_source, column=4)))
        assert "on the command line" not in write_summary(unnamed, "row")
    elif not found:
        assert "review some of them there" in page
    even = replace(findings, audit=replace(findings.audit, hidden_source=None), slices=[])
    assert "can be used as it is" in write_summary(even, "row")


@pytest.mark.slow
def test_a_table_in_blocks_is_searched_like_one_in_memory(tmp_path):
    pytest.importorskip("pyarrow")
    X, y, _ = draw_branches(n=600)
    X.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    found = audit_labels(Batches(tmp_path / "rows.parquet"), y)
    expected = audit_labels(X, y)
    assert str(found) == str(expected)
    assert found.hidden_source.column == expected.hidden_source.column == "branch"
    assert list(map(str, found.slices())) == list(map(str, expected.slices()))
