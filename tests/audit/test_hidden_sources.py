"""A column that looks like a source: found where it is one, and silence where columns are features or noise is even."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.small_audits import change, draw_rows, make_pairs, make_sources
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.audit import audit_labels, hidden_sources
from untwist.audit.expectation import Expectation, calibrate
from untwist.audit.findings import collect_findings
from untwist.audit.hidden_sources import (
    HiddenSource,
    allow_for,
    describe_groups,
    find_hidden_sources,
    group_values,
    screen_columns,
)
from untwist.audit.judging import bound_share
from untwist.audit.slices import JudgedRows, collect_judged_rows
from untwist.audit.training import train_on_numbers
from untwist.audit.verdict import State
from untwist.batches import Batches
from untwist.commands.main import main
from untwist.data.encoding import TableEncoder
from untwist.data.tables import Schema
from untwist.display import write_percent, write_share
from untwist.noise.sources import estimate_by_source
from untwist.report import report
from untwist.report.noise import write_noise
from untwist.report.review import write_review
from untwist.report.summary import write_summary
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
    audit = audit_labels(X, y)
    return allow_for(audit, audit.hidden_sources()[0]), wrong


# ---- found ----


def test_a_bad_branch_is_found_with_what_follows(branches):
    audit, wrong = branches
    found = audit.context.hidden_source
    here = (audit.table.X["branch"] == "Leipzig").to_numpy()
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
    found = audit.context.hidden_source
    again = run_as_advised(found.advise_in_python(), audit.table.X, audit.given)
    with pytest.raises(ValueError, match="rows stand alone, and these came with source"):
        again.hidden_sources()
    assert [one.name for one in again.sources.rate() if one.stands_out] == ["Leipzig"]
    by_name = {one.name: one.share_wrong for one in again.sources.rate()}
    assert found.share_there == pytest.approx(by_name["Leipzig"], abs=0.04)
    n_there = np.count_nonzero(again.context.source[again.suspects()] == "Leipzig")
    assert found.suspects_as_source[0] == pytest.approx(n_there, rel=0.15)


def test_its_words_say_where_how_often_and_what_to_do(branches):
    audit, _ = branches
    found = audit.context.hidden_source
    words = f"labels where branch is Leipzig look wrong {found.times:.0f} times as often"
    assert found.describe().startswith(words)
    assert "branch looks like a source rather than a feature" in str(found)
    call = "audit_labels(X.drop(columns='branch'), y, source=X['branch'])"
    advice = f"in Python {call}; on the command line --source branch"
    assert str(found).endswith(f"; run again with it as source: {advice}")
    assert f"  {found}; with branch taken for a source " in str(audit)
    quiet = change(audit, noise=change(audit.noise, found=False))
    assert str(found) in str(quiet)
    unnamed = str(change(found, column=4))
    assert unnamed.startswith("labels where column 4 is Leipzig look wrong")
    assert unnamed.endswith(
        "; run again with it as source: in Python audit_labels(np.delete(X, 4, axis=1), y, source=X[:, 4])"
    )
    assert "look wrong far more often" in str(change(found, share_elsewhere=0.001))
    assert "look wrong 1.5 times as often" in str(change(found, share_there=0.3, share_elsewhere=0.2))


def test_the_first_line_and_the_highest_share_allow_for_the_source(branches):
    audit, wrong = branches
    found = audit.context.hidden_source
    low, high = found.interval_as_source
    assert low < found.share_as_source < high
    assert low < wrong.mean() < high
    assert audit.verdict.upper_bound.high >= high
    quiet = change(audit, noise=change(audit.noise, found=False), noise_rate=(0.02, 0.0, 0.05))
    assert quiet.verdict.upper_bound.high >= max(high, change(quiet, hidden_source=None).verdict.upper_bound.high)
    assert quiet.verdict.state is State.UNDECIDED
    words = f"with branch taken for a source {write_percent(found.share_as_source, low, high)} of all labels look wrong"
    for one in (audit, quiet):
        assert str(one).count(words) == 1


def run_as_advised(advice, X, y):
    """Do what the advice says, in Python."""
    return eval(advice, {"audit_labels": audit_labels, "X": X, "y": y, "np": np})


@pytest.mark.slow
def test_its_advice_can_be_followed_where_cells_are_empty(branches):
    audit, _ = branches
    X = audit.table.X.assign(branch=audit.table.X["branch"].mask(audit.table.X["branch"] == "Leipzig"))
    found = audit_labels(X, audit.given).hidden_sources()[0]
    assert (found.column, found.where) == ("branch", "is missing")
    assert found.has_missing
    assert "once the empty cells of the column have a name" in found.advise_on_command_line()
    assert change(found, column="b\x1b[1m").advise_on_command_line().startswith("--source COLUMN, once")
    again = run_as_advised(found.advise_in_python(), X, audit.given)
    bad = [one for one in again.sources.rate() if one.stands_out]
    assert [one.labels for one in bad] == [found.rows]
    assert bad[0].share_wrong == pytest.approx(found.share_there, abs=0.05)


def test_its_advice_tells_ranges_apart(branches):
    found = branches[0].context.hidden_source

    def advise(*ranges, column="day", has_missing=False):
        one = change(found, column=column, where="is above 251", ranges=ranges, has_missing=has_missing)
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
    found = audit_labels(X, y).hidden_sources()[0]
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
    found = audit_labels(X, np.where(wrong, (truth + rng.integers(1, 3, n)) % 3, truth)).hidden_sources()[0]
    assert (found.column, found.where) == ("branch", "is Leipzig")
    assert found.share_there == pytest.approx(0.45, abs=0.08)


@pytest.mark.slow
def test_noise_along_a_column_of_numbers_has_a_limit():
    X, y, _ = draw_branches(seed=2, bad=0.03)
    late = (X["day"] > 273).to_numpy()
    rng = np.random.default_rng(0)
    flipped = late & (rng.random(len(y)) < 0.45)
    labels = np.where(flipped, np.where(y == "yes", "no", "yes"), y)
    found = audit_labels(X, labels).hidden_sources()[0]
    assert found.column == "day"
    assert found.where.startswith("is above ")
    assert float(found.where.split()[-1]) == pytest.approx(273, abs=50)
    assert found.ranges == ((float(found.where.split()[-1]), np.inf),)
    again = run_as_advised(found.advise_in_python(), X, labels)
    assert [(one.name, one.labels) for one in again.sources.rate() if one.stands_out] == [(True, found.rows)]


# ---- silence ----


@pytest.mark.parametrize(("good", "steepness"), [(0.0, 6.0), (0.2, 6.0), (0.0, 1.5), (0.2, 1.5)])
@pytest.mark.thinned(3)
def test_even_noise_hides_no_source(good, steepness):
    X, y, _ = draw_branches(seed=3, steepness=steepness, bad=good, good=good)
    assert audit_labels(X, y).hidden_sources() == []


def test_a_feature_with_values_that_are_harder_is_no_source():
    rng = np.random.default_rng(4)
    n = 2500
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).assign(plant=rng.choice(list("pqrs"), n))
    # What speaks for a label is another thing at plant p, and less clear at plant q.
    score = np.select([X["plant"] == "p", X["plant"] == "q"], [5 * X["b"], 3 * X["a"]], 6 * X["a"])
    y = rng.random(n) < 1 / (1 + np.exp(-score))
    assert audit_labels(X, y).hidden_sources() == []


def test_a_few_rows_are_no_source(branches, monkeypatch):
    audit, _ = branches
    n_there = audit.context.hidden_source.rows
    for least, is_found in ((n_there, True), (n_there + 1, False)):
        monkeypatch.setattr("untwist.audit.hidden_sources.LEAST_ROWS", least)
        assert bool(audit.hidden_sources()) == is_found


def test_labels_that_are_wrong_in_one_direction_are_no_source(branches, monkeypatch):
    audit, _ = branches

    def estimate(*arguments, **options):
        found = estimate_by_source(*arguments, **options)
        intervals = found.class_intervals.copy()
        intervals[:, 0, 0] = 0.0  # What is truly of the first class may all be labelled rightly.
        return change(found, class_intervals=intervals)

    monkeypatch.setattr("untwist.audit.hidden_sources.estimate_by_source", estimate)
    assert audit.context.hidden_source is not None
    assert audit.hidden_sources() == []


def test_nothing_is_sought_where_it_is_not_wanted_or_cannot_be_found(monkeypatch):
    X, y, _ = draw_branches(n=600)
    assert audit_labels(X[["a"]], y).hidden_sources() == []
    monkeypatch.setattr("untwist.audit.hidden_sources.MOST_CELLS", 599 * 6)
    monkeypatch.setattr("untwist.audit.hidden_sources.find_hidden_sources", lambda *_: pytest.fail("sought"))
    audit = audit_labels(X, y)
    assert audit.context.hidden_source is None
    assert audit.hidden_sources() == []


def test_nothing_is_trained_unless_the_screen_names_a_column(branches, monkeypatch):
    audit, _ = branches
    assert screen_columns(collect_judged_rows(audit), audit.model) == [4]
    X, y, _ = draw_branches(seed=3, bad=0.0, good=0.0)
    model = UntwistClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr("untwist.audit.hidden_sources.train_on_numbers", lambda *_, **__: pytest.fail("trained"))
    assert audit_labels(X, y, model).hidden_sources() == []


@pytest.mark.slow
def test_of_many_rows_some_are_tried_first(branches, monkeypatch):
    audit, _ = branches
    trained = []

    def count_rows(model, numbers, *arguments, **options):
        trained.append((len(numbers), options.get("without")))
        return train_on_numbers(model, numbers, *arguments, **options)

    n_rows = len(audit.given)
    monkeypatch.setattr("untwist.audit.hidden_sources.MOST_TRIED_FIRST", n_rows - 500)
    monkeypatch.setattr("untwist.audit.hidden_sources.train_on_numbers", count_rows)
    assert audit.hidden_sources()[0].column == audit.context.hidden_source.column
    assert trained == [(n_rows - 500, None), (n_rows - 500, 4), (n_rows, 4)]
    trained.clear()
    monkeypatch.setattr("untwist.audit.hidden_sources.screen_columns", lambda *_: [0])  # It is a feature.
    assert audit.hidden_sources() == []
    assert trained == [(n_rows - 500, None), (n_rows - 500, 0)]


# ---- the same, whatever the order ----


@pytest.mark.slow
def test_the_order_of_rows_does_not_matter():
    X, y, _ = draw_branches(n=1200)
    order = np.random.default_rng(0).permutation(len(y))
    one = audit_labels(X, y).hidden_sources()[0]
    other = audit_labels(X.iloc[order], y[order], n_jobs=2).hidden_sources()[0]
    assert (one.margin, one.share_there) == pytest.approx((other.margin, other.share_there), rel=1e-9)
    assert one.suspects_as_source == other.suspects_as_source


def test_training_without_a_column_is_training_on_the_other_columns(branches):
    audit, _ = branches
    fitted = train_on_numbers(audit.model, audit.table.numbers, audit.given, audit.weight, without=4)
    X = audit.table.X.drop(columns="branch")
    best = audit.model.choice_.best
    twin = PILBoostClassifier(
        alpha=best.alpha, n_estimators=best.n_rounds, max_depth=best.max_depth, learning_rate=best.step, random_state=0
    )
    assert fitted.importances("gain")[4] == 0
    assert fitted.choice.best.max_depth == best.max_depth
    here = fitted.out_of_fold.posterior[:, 1]
    agreement = np.corrcoef(here, twin.fit(X, audit.given).predict_proba(X)[:, 1])[0, 1]
    assert agreement > 0.95


def test_directions_of_named_columns_are_kept():
    X, y, _ = draw_branches(n=600)
    model = UntwistClassifier(monotonic_cst={"a": 1}, random_state=0).fit(X, y)
    audit = audit_labels(X, y, model)
    fitted = train_on_numbers(model, audit.table.numbers, audit.given, audit.weight, without=4)
    rows = np.repeat(audit.table.numbers[:1], 50, axis=0)
    rows[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(fitted.scores(rows)) >= 0).all()


# ---- groups of values ----


def test_groups_are_values_ranges_and_what_is_missing():
    X, y, _ = draw_branches(n=400)
    X["day"] = X["day"].astype(float)
    X.loc[::10, "day"] = np.nan
    X["few"] = np.arange(400) % 3
    X["month"] = np.array(["2024-01", "2024-02", "2024-03", "2024-04"])[np.arange(400) % 4]
    audit = audit_labels(X, y)
    encoder, numbers = audit.model.model_.encoder, audit.table.numbers
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


@pytest.mark.parametrize("n_values", [3, 12, 13, 40])
def test_few_numbers_are_groups_of_their_own_and_many_are_cut_into_ranges(n_values):
    values = np.append(np.random.default_rng(0).permutation(np.repeat(np.arange(n_values) * 2.0, 4)), np.nan)
    encoder = TableEncoder(2, schema=Schema({1: tuple(f"c{one}" for one in range(80))}))
    group, names, upper = group_values(encoder, 0, values)
    assert (names[-1], group[-1], np.isnan(upper[-1])) == ("missing", len(names) - 1, True)
    if n_values <= 12:
        assert names[:-1] == [f"{2 * one}" for one in range(n_values)]
        assert upper[:-1].tolist() == np.unique(values[:-1]).tolist()
    else:
        known = np.sort(values[:-1])
        limits = sorted({known[int((len(known) - 1) * part / 16)] for part in range(1, 16)} | {known[-1]})
        assert upper[:-1].tolist() == limits
        assert names[0] == f"at most {limits[0]:g}"
        assert names[1] == f"above {limits[0]:g} and at most {limits[1]:g}"
        assert names[-2] == f"above {limits[-2]:g}"
    for value, index in zip(values[:-1], group[:-1], strict=True):
        assert value <= upper[index]
        assert index == 0 or value > upper[index - 1]
    assert group_values(encoder, 1, values)[1] == [f"c{2 * one}" for one in range(n_values)] + ["missing"]
    assert "missing" not in group_values(encoder, 0, values[:-1])[1]


def test_words_put_only_neighbours_together():
    months = tuple(f"2024-{month:02}" for month in range(1, 6))
    encoder = TableEncoder(2, schema=Schema({0: months, 1: ("u", "v", "w", "x", "y")}))

    def describe(values, *chosen, column=0):
        n_groups = len(group_values(encoder, column, values)[1])
        return describe_groups(encoder, column, values, np.isin(np.arange(n_groups), chosen))

    full, gaps = np.arange(5.0), np.append(np.arange(5.0), np.nan)
    assert describe(full, 0, 1) == describe(gaps, 0, 1) == "is from 2024-01 to 2024-02"
    assert describe(full, 3, 4) == describe(gaps, 3, 4) == "is 2024-04 or later"
    assert describe(full, 4) == "is 2024-05"
    assert describe(full, 0, 2) == "is 2024-01 or 2024-03"
    assert describe(gaps, 4, 5) == "is 2024-05 or missing"
    assert describe(full, 0, 1, column=1) == "is u or v"


def find_ranges_slowly(limits, chosen):
    """Where rows of chosen ranges lie, by points between all limits."""
    edges = [-np.inf, *limits[:-1], np.inf]
    return [(low, high) for low, high, one in zip(edges[:-1], edges[1:], chosen, strict=True) if one]


@pytest.mark.parametrize("chosen", [(1, 1, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1), (0, 1, 0, 1), (1, 1, 1, 0), (0, 0, 0, 0)])
def test_chosen_ranges_are_put_together(chosen):
    limits = [1.0, 2.5, 4.0, 9.0]
    points = np.array([0.5, 1.0, 1.5, 2.5, 3.0, 4.0, 5.0, 9.0, 12.0])
    expected = [any(low < x <= high for low, high in find_ranges_slowly(limits, chosen)) for x in points]
    ranges = hidden_sources._find_ranges(np.append(limits, np.nan), np.array([*chosen, 1], dtype=bool))
    assert [any(low < x <= high for low, high in ranges) for x in points] == expected
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ranges))
    for low, high in ranges:
        within = eval(hidden_sources._write_range("x", low, high, False), {"x": points})
        assert within.tolist() == [low < x <= high for x in points]


def test_ranges_of_dates_are_written_as_dates():
    assert hidden_sources._write_range("X['d']", 31.0, np.inf, True) == "X['d'] > '1970-02-01'"
    assert hidden_sources._write_range("d", 0.0, 31.0, True) == "(d > '1970-01-01') & (d <= '1970-02-01')"
    assert hidden_sources._write_range("d", -np.inf, 31.25, False) == "d <= 31.25"


# ---- the parts of the search ----


def make_judged(n_classes=2, seed=0, n=60, n_columns=2):
    """Rows with drawn posteriors; the first column has three values."""
    posterior, labels, weight, rng = draw_rows(n_classes, seed, n)
    table = np.column_stack([rng.integers(0, 3, n), *rng.normal(size=(n_columns - 1, n))]).astype(float)
    noise = make_pairs()
    expected = Expectation.under_one_matrix(posterior, np.eye(n_classes))
    return JudgedRows(table, posterior, labels, weight, noise, expected)


class Scores:
    """A model whose posterior follows from the numbers of a row."""

    def __init__(self, n_columns=2, n_classes=2, importances=None):
        self.classes = np.arange(n_classes)
        self.encoder = TableEncoder(n_columns)
        self.posterior = self
        self.gains = np.ones(n_columns) if importances is None else np.asarray(importances, dtype=float)
        self.model_, self.n_jobs = self, None

    def importances(self, kind):
        assert kind == "gain"
        return self.gains

    def scores(self, table, n_jobs):
        return table.sum(axis=1)

    def twisted(self, scores):
        powers = np.exp(np.outer(scores, np.arange(len(self.classes))))
        return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_of_groups_explains_what_the_best_of_some_shares_does(n_classes):
    posterior, labels, weight, rng = draw_rows(n_classes, n=90)
    expected = Expectation.under_one_matrix(posterior, np.eye(n_classes))
    group = rng.integers(0, 4, 90)
    plain = [0.0] * 4
    noisy = [[0.0] * 4 for _ in range(10)]
    for row in range(90):
        p = expected.posterior[row, labels[row]]
        plain[group[row]] += weight[row] * np.log(p)
        for index, share in enumerate(np.arange(0.05, 0.501, 0.05)):
            mixed = (1 - share) * p + share * (1 - p) / (n_classes - 1)
            noisy[index][group[row]] += weight[row] * np.log(mixed)
    gains = [max(one[index] for one in noisy) - plain[index] for index in range(4)]
    found = hidden_sources._explain_by_noise(expected, labels, weight, group)
    assert found == pytest.approx((sum(plain), sum(gain for gain in gains if gain > 2.0)))
    assert any(gain > 2.0 for gain in gains)


def test_other_values_are_imagined_as_frequent_as_they_are(monkeypatch):
    model, rng = Scores(), np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 5, 40), rng.normal(size=40)]).astype(float)
    group = table[:, 0].astype(int) + 1  # The first group has no row.
    monkeypatch.setattr(hidden_sources, "MOST_REPLACED", 3)
    times = [sum(group == one) for one in range(6)]
    frequent = sorted(range(6), key=lambda one: (-times[one], one))[:3]
    expected = np.zeros((40, 2))
    for one in frequent:
        changed = np.column_stack([np.full(40, one - 1.0), table[:, 1]])
        share = times[one] / sum(times[other] for other in frequent)
        expected += share * np.log(model.twisted(model.scores(changed, None)))
    np.testing.assert_allclose(hidden_sources._imagine_other_values(model, table, 0, group), expected)
    middle = hidden_sources._imagine_other_values(model, table, 1, np.zeros(40, dtype=int))
    changed = np.column_stack([table[:, 0], np.full(40, np.sort(table[:, 1])[19])])
    np.testing.assert_allclose(middle, np.log(model.twisted(model.scores(changed, None))))


def screen(monkeypatch, told, importances, **limits):
    """The columns that the screen names where it is told what each explains as a source, beside 100 nats in all."""
    n_columns = len(told)
    judged, asked = make_judged(n_columns=n_columns), []
    judged.table[:] = np.arange(n_columns) + np.arange(60)[:, None] % 3

    def explain(expected, labels, weight, group):
        return told[asked[-1]]

    def group_one(encoder, column, values):
        asked.append(column)
        return np.arange(len(values)) % 3, list("abc"), np.arange(3.0)

    for name, value in {"_explain_by_noise": explain, "group_values": group_one, **limits}.items():
        monkeypatch.setattr(hidden_sources, name, value)
    monkeypatch.setattr(Expectation, "find_likelihood", lambda *_: 100.0)
    return screen_columns(judged, Scores(n_columns, importances=importances)), asked


def test_the_screen_names_columns_that_explain_about_as_much_as_sources(monkeypatch):
    told = {0: (90.0, 4.99), 1: (90.0, 5.0), 2: (80.0, 8.0), 3: (80.0, 7.99), 4: (95.0, 20.0)}
    # What is lost: 5.01, 5, 12 and 12.01 beside 1.5 times as much as is gained, and less than nothing.
    found, asked = screen(monkeypatch, told, [0, 1, 2, 3, 4], MOST_TRAINED=9)
    assert asked == [4, 3, 2, 1, 0]
    assert found == [4, 1]
    told[2] = (80.0, 8.01)
    assert screen(monkeypatch, told, [0, 1, 2, 3, 4], MOST_TRAINED=2)[0] == [4, 1]
    assert screen(monkeypatch, told, [0, 1, 2, 3, 4], MOST_TRAINED=9)[0] == [4, 1, 2]
    assert screen(monkeypatch, told, [0, 1, 2, 3, 4], MOST_GROUPS=3)[0] == [4, 1, 2]
    assert screen(monkeypatch, told, [0, 1, 2, 3, 4], MOST_GROUPS=2)[0] == []
    assert screen(monkeypatch, told, [5, 1, 2, 2, 2], MOST_SCREENED=3)[1] == [0, 2, 3]


def test_a_column_of_some_importance_is_judged_by_what_its_other_values_would_say(monkeypatch):
    judged, model, seen = make_judged(), Scores(importances=[1.0, 0.0]), []

    def fit(posterior, labels, weight):
        seen.append(posterior)
        return Expectation.under_one_matrix(posterior, np.eye(2))

    monkeypatch.setattr(hidden_sources, "_fit_posterior", fit)
    screen_columns(judged, model)
    rows = judged.choose_rows(60)
    table, posterior = judged.table[rows], judged.posterior[rows]
    as_is = np.log(model.twisted(model.scores(table, None)))
    group = group_values(model.encoder, 0, table[:, 0])[0]
    powers = posterior * np.exp(hidden_sources._imagine_other_values(model, table, 0, group) - as_is)
    np.testing.assert_allclose(seen[0], posterior)
    np.testing.assert_allclose(seen[1], powers / powers.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(seen[2], posterior)


def test_the_column_that_explains_most_comes_first(monkeypatch):
    judged, model = make_judged(), Scores()
    margins = {0: 5.0, 1: 9.0}
    doubts = []

    def judge(judged, model, column, as_feature, doubted, share):
        assert as_feature == calibrate(judged.expected, judged.labels, judged.weight).explained
        assert share == 0.25
        doubts.append(np.flatnonzero(doubted).tolist())
        return None if column > 1 else SimpleNamespace(column=column, margin=margins[column])

    monkeypatch.setattr(hidden_sources, "_judge_without", judge)
    for named, best in (([0, 1], 1), ([1, 0, 2], 1), ([0], 0)):
        monkeypatch.setattr(hidden_sources, "screen_columns", lambda *_, named=named: named)
        assert find_hidden_sources(judged, model, np.array([3, 9]), 0.25)[0].column == best
    assert doubts == [[3, 9]] * 6
    for named in ([2], []):
        monkeypatch.setattr(hidden_sources, "screen_columns", lambda *_, named=named: named)
        assert find_hidden_sources(judged, model, np.array([3]), 0.25) == []
    monkeypatch.setattr(hidden_sources, "screen_columns", lambda *_: [0])
    monkeypatch.setattr(hidden_sources, "_try_some_rows", lambda *_: [])
    monkeypatch.setattr(hidden_sources, "MOST_TRIED_FIRST", 60)
    assert find_hidden_sources(judged, model, np.array([3]), 0.25)
    monkeypatch.setattr(hidden_sources, "MOST_TRIED_FIRST", 59)
    assert find_hidden_sources(judged, model, np.array([3]), 0.25) == []
    one_column = change(judged, table=judged.table[:, :1])
    assert find_hidden_sources(one_column, model, np.array([3]), 0.25) == []


@pytest.fixture
def told(monkeypatch):
    """Rows at three values of a column, by sources of which the last is said to be bad, and what goes on in between."""
    judged = make_judged(n=120)
    noise = make_pairs()
    by_value = make_sources(noise, 2)
    intervals = by_value.class_intervals.copy()
    intervals[:, :, 0] = [[0.0, 0.0], [0.0, 0.9], [0.9, 0.9]]
    by_value = change(
        by_value,
        class_intervals=intervals,
        stands_out=np.array([False, True, True]),
        evidence=7.0,
        matrices=np.array([[[0.97, 0.03], [0.03, 0.97]]] * 2 + [[[0.55, 0.45], [0.45, 0.55]]]),
    )
    posterior = np.random.default_rng(5).dirichlet([1, 1], 120)
    fitted = SimpleNamespace(out_of_fold=SimpleNamespace(posterior=posterior))
    noise_by_fit = {id(fitted.out_of_fold): noise}
    monkeypatch.setattr(hidden_sources, "estimate_noise_of", lambda unseen: noise_by_fit[id(unseen)])
    changes = {"evidence": 7.0}
    monkeypatch.setattr(hidden_sources, "train_on_numbers", lambda *_, **__: fitted)
    monkeypatch.setattr(hidden_sources, "estimate_by_source", lambda *_, **__: change(by_value, **changes))
    monkeypatch.setattr(hidden_sources, "LEAST_ROWS", 1)
    monkeypatch.setattr(hidden_sources, "LEAST_MARGIN", -1e9)
    return judged, by_value, posterior, noise, changes


def judge_told(judged, as_feature=-1e6):
    doubted = np.arange(len(judged.labels)) % 4 == 0
    return hidden_sources._judge_without(judged, Scores(), 0, as_feature, doubted, 0.25), doubted


def test_what_is_said_of_a_source_is_that_of_its_definition(told):
    judged, by_value, posterior, noise, _ = told
    found, doubted = judge_told(judged)
    group = judged.table[:, 0].astype(int)
    there = (group == 2) & (judged.weight > 0)
    assert (found.column, found.where, found.rows, found.ranges) == (0, "is 2", there.sum(), None)
    assert (found.share_there, found.share_as_feature) == (by_value.shares[2], 0.25)
    assert found.share_elsewhere == pytest.approx(np.average(by_value.shares[:2], weights=by_value.counts[:2]))
    assert found.share_as_source == pytest.approx(np.average(by_value.shares, weights=by_value.counts))
    limits = bound_share(found.share_as_source, by_value, noise, posterior, judged.labels, judged.weight)
    assert found.interval_as_source == pytest.approx(limits)
    wrong = 1 - by_value.find_truth(posterior, judged.labels, group)[np.arange(120), judged.labels]
    surest = np.argsort(-wrong)[: round(wrong.sum())]
    assert found.suspects_as_source == (np.sum(there[surest]), len(surest))
    assert found.suspects_as_feature == (np.sum(doubted & there), np.sum(doubted))
    assert not found.has_missing
    assert not found.is_date
    by_source = Expectation(by_value.clean(posterior), by_value.matrices, group)
    as_source = calibrate(by_source, judged.labels, judged.weight).explained
    as_feature = []
    for expected in (
        Expectation.under_one_matrix(noise.clean(posterior), noise.matrix),
        Expectation.under_one_matrix(posterior, np.eye(2)),
    ):
        parts = [np.flatnonzero((group == one) & (judged.weight > 0)) for one in range(3)]
        fits = [calibrate(expected.take(rows), judged.labels[rows], judged.weight[rows]) for rows in parts]
        as_feature.append(sum(one.explained for one in fits))
    assert found.margin == pytest.approx(as_source - max(as_feature))
    lost, _ = judge_told(judged, as_source + 3.0)
    assert lost.margin == pytest.approx(found.margin - 3.0)


def test_a_source_must_be_clear_by_every_measure(told, monkeypatch):
    judged, _, _, _, changes = told
    found, _ = judge_told(judged)
    for name, value, enough in (
        ("LEAST_ROWS", found.rows, found.rows + 1),
        ("LEAST_EVIDENCE", 7.0, 7.001),
        ("LEAST_MARGIN", found.margin, found.margin + 0.001),
    ):
        before = getattr(hidden_sources, name)
        monkeypatch.setattr(hidden_sources, name, value)
        assert judge_told(judged)[0] is not None
        monkeypatch.setattr(hidden_sources, name, enough)
        assert judge_told(judged)[0] is None
        monkeypatch.setattr(hidden_sources, name, before)
    changes.update(stands_out=np.ones(3, dtype=bool), class_intervals=np.full((3, 2, 2), 0.9))
    assert judge_told(judged)[0] is None  # Where all values are bad there is no other.


def test_some_rows_are_judged_by_models_of_these_rows_alone(told, monkeypatch):
    judged, _, posterior, noise, _ = told
    seen = []

    def judge(some, model, column, as_feature, doubted, share):
        seen.append((some, as_feature))
        assert not doubted.any()
        return None if column else "found"

    monkeypatch.setattr(hidden_sources, "_judge_without", judge)
    judged = change(judged, weight=np.ones(120))
    assert hidden_sources._try_some_rows(judged, Scores(), [0, 1]) == [0]
    some, as_feature = seen[0]
    assert some.posterior is posterior
    assert some.noise is noise
    np.testing.assert_array_equal(np.sort(some.table, axis=0), np.sort(judged.table, axis=0))
    expected = Expectation.under_one_matrix(noise.clean(posterior), noise.matrix)
    assert as_feature == pytest.approx(calibrate(expected, some.labels, some.weight).explained)


def make_hidden(**changes):
    by_value = make_sources(make_pairs(), 2)
    plain = HiddenSource(
        "branch", 4, "is Ulm", 1200, 0.3, 0.1, 0.05, 0.2, (0.1, 0.3), (3, 10), (1234, 2345), None, False, 9.0, by_value,
        np.zeros(1, dtype=int), np.zeros((1, 2)), by_value.noise,
    )  # fmt: skip
    return change(plain, **changes)


@pytest.mark.parametrize(
    ("there", "elsewhere", "words"),
    [
        (0.3, 0.1, "3 times as often"),
        (0.25, 0.1, "2 times as often"),
        (0.24, 0.1, "2.4 times as often"),
        (0.6, 0.03, "far more often"),
        (0.585, 0.03, "20 times as often"),
        (0.008, 0.005, "1.6 times as often"),
        (0.0076, 0.0049, "far more often"),
    ],
)
def test_times_are_counted_where_that_says_something(there, elsewhere, words):
    found = make_hidden(share_there=there, share_elsewhere=elsewhere)
    assert found.times == pytest.approx(there / elsewhere)
    shares = f"{write_share(there)} of 1,200, {write_share(elsewhere)} elsewhere"
    assert found.describe() == (
        f"labels where branch is Ulm look wrong {words} ({shares}): branch looks like a source rather than a feature, "
        "and may hide them: 1,234 of 2,345 suspects are there if it is taken for one, 3 of 10 as it is"
    )


def test_advice_is_for_python_for_the_command_line_or_for_both():
    found = make_hidden()
    both = f"in Python {found.advise_in_python()}; on the command line --source branch"
    assert str(found) == f"{found.describe()}; run again with it as source: {both}"
    assert found.advise(for_command=True) == f"{found.describe()}; run again with it as source: --source branch"
    gaps = make_hidden(has_missing=True)
    assert gaps.advise_in_python() == (
        "audit_labels(X.drop(columns='branch'), y, source=[str(value) for value in X['branch']])"
    )
    assert make_hidden(share_elsewhere=0.0).times == pytest.approx(0.3e6)


# ---- for people and machines ----


@pytest.mark.slow
def test_the_command_and_the_page_tell_it(tmp_path, capsys):
    X, y, _ = draw_branches(n=1200)
    X.assign(ok=y).to_csv(tmp_path / "cases.csv", index=False)
    arguments = ["audit", str(tmp_path / "cases.csv"), "--label", "ok", "--seek-sources"]
    page = tmp_path / "page.html"
    assert main([*arguments, "-o", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "labels where branch is Leipzig look wrong" in printed
    assert "--source branch" in printed
    assert "labels look wrong more often (or are much harder to tell): " in printed
    assert "with branch taken for a source " in printed
    summary = page.read_text().split("<h2")[1]
    assert "Labels where <b>branch is Leipzig</b> look wrong in" in summary
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hidden_source"]["column"] == "branch"
    assert (
        found["hidden_source"]["suspects_as_source"]["there"] > found["hidden_source"]["suspects_as_feature"]["there"]
    )
    assert found["verdict"]["upper_bound"]["high"] >= found["hidden_source"]["wrong_as_source_high"]
    assert found["hidden_source"]["wrong_as_source_low"] < found["hidden_source"]["wrong_as_source"]
    assert "--source branch" in found["hidden_source"]["advice"]
    (part,) = found["slices"]
    assert (part["column"], part["where"]) == ("branch", "Leipzig")
    assert part["low"] < part["share"] < part["high"]
    assert part["p_value"] < 1e-6


def test_a_page_without_a_hidden_source_points_to_slices(branches):
    audit, _ = branches
    silent = change(audit, hidden_source=None)
    (hidden,) = audit.hidden_sources()
    slices = silent.slices()
    page = report(silent, title="cases")
    assert "Run again with it as source" not in page
    assert ("(or are much harder to tell) where <b>branch is Leipzig</b>" in page) == bool(slices)
    assert report(silent, title="cases", hidden_source=hidden) == report(audit, title="cases")
    assert "Run again with it as source" in report(audit, title="cases")


@pytest.fixture(scope="module", params=[True, False])
def uneven(request, branches):
    """Whether even noise was found, and the findings of an audit with next to none of it but a bad part."""
    audit, _ = branches
    noise = change(audit.noise, found=request.param, uneven_limit=0.01)
    # Where no noise is found, next to none is expected, and no row is a suspect.
    wrong = audit.wrong if request.param else audit.wrong / (3.0 * audit.wrong.sum())
    return request.param, collect_findings(change(audit, noise=noise, wrong=wrong, noise_rate=(0.0, 0.0, 0.01)))


@pytest.mark.parametrize("part", ["source", "slices"])
def test_a_page_with_a_bad_part_says_nowhere_that_all_is_well(branches, uneven, part):
    found, findings = uneven
    audit = findings.audit
    if part == "slices":
        slices = branches[0].slices()
        assert slices
        findings = change(findings, audit=change(audit, hidden_source=None), slices=slices)
    else:
        findings = change(findings, slices=[])
    rows = RowNames(range(2000), "row", np.arange(2000))
    page = "".join([write_summary(findings, "row"), write_noise(findings), write_review(findings, rows, {})])
    for words in (
        "Clean",
        "no noise is claimed",
        "nothing to review",
        "no evidence of wrong labels",
        "No sign",
        "Nothing needs correcting",
    ):
        assert words not in page
    assert ("Undecided" in page) == (not audit.verdict.is_found)
    assert ("branch looks like who gave the labels" in page) == (part == "source")
    if part == "source":
        assert f"<code>{for_page(audit.context.hidden_source.advise_in_python(), 400)}</code>" in page
        assert "on the command line: --source branch." in page
        unnamed = change(findings, audit=change(audit, hidden_source=change(audit.context.hidden_source, column=4)))
        assert "on the command line" not in write_summary(unnamed, "row")
    elif not found:
        assert "review some of them there" in page


@pytest.mark.slow
def test_a_table_in_blocks_is_searched_like_one_in_memory(tmp_path):
    pytest.importorskip("pyarrow")
    X, y, _ = draw_branches(n=600)
    X.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    found = audit_labels(Batches(tmp_path / "rows.parquet"), y)
    expected = audit_labels(X, y)
    assert str(found) == str(expected)
    assert found.hidden_sources()[0].column == expected.hidden_sources()[0].column == "branch"
    assert list(map(str, found.slices())) == list(map(str, expected.slices()))
