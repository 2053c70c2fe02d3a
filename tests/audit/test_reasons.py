"""Reasons, by a model whose trees are written by hand: what is usual, what speaks against a label, what is similar."""

import datetime
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_audits import change
from untwist.audit import reasons
from untwist.audit.reasons import Explanation, Reason, ReasonFinder, describe_limit, describe_value
from untwist.data.encoding import TableEncoder
from untwist.data.tables import Schema


class Stump:
    """Trees of two leaves each: a row is in the second leaf where a column is above a limit."""

    def __init__(self, *splits):
        self.splits = splits
        self.feature = np.array([one for column, _ in splits for one in (column, -1, -1)])
        self.offset = 3 * np.arange(len(splits) + 1)

    def __len__(self):
        return len(self.splits)

    def leaves(self, table, n_jobs):
        return np.column_stack([1 + (table[:, column] > limit) for column, limit in self.splits]).astype(np.int32)


class Model:
    """Log-odds are the sum of the columns, or of several classes its multiples."""

    def __init__(self, schema, n_classes=2):
        self.encoder = TableEncoder(4, schema=schema)
        self.shared_forests = Stump((0, 0.0), (1, 1.0)), Stump((3, 2.0)), Stump((0, -0.5))
        self.n_classes = n_classes
        self.posterior = SimpleNamespace(decision=lambda scores: 2.0 * scores, twisted=self.twist)

    def scores(self, table, n_jobs):
        plain = np.nan_to_num(table).sum(axis=1)
        return plain if self.n_classes == 2 else np.outer(plain, np.arange(self.n_classes))

    def twist(self, scores):
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def make_finder(n_classes=2, n=40, seed=0, **changes):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 4)).round(2)
    table[:, 3] = rng.integers(0, 3, n)
    table[rng.random((n, 4)) < 0.1] = np.nan
    labels = rng.integers(0, n_classes, n)
    return change(ReasonFinder(Model(Schema({3: ("u", "v", "w")}), n_classes), table, labels), **changes)


def test_what_is_usual_is_the_median_or_the_commonest_category():
    finder = make_finder()
    for label in (0, 1):
        usual = finder.find_usual(label)
        for column in range(4):
            values = [one for one in finder.table[finder.labels == label, column] if one == one]
            if column < 3:
                assert usual[column] == np.median(values)
            else:
                assert usual[column] == max(sorted(set(values)), key=values.count)
    finder.table[:, 1] = finder.table[:, 3] = np.nan
    assert np.isnan(finder.find_usual(0)[[1, 3]]).all()
    dates = make_finder()
    dates.table[:, 0] = np.arange(40.0)
    schema = SimpleNamespace(categories={}, dates={0})
    dates = change(dates, fitted=SimpleNamespace(encoder=SimpleNamespace(schema=schema)), labels=np.zeros(40, int))
    assert dates.find_usual(0)[0] == 19.0  # And no mean of two dates.


def measure_slowly(model, row, label, predicted):
    if model.n_classes == 2:
        odds = 2.0 * np.nan_to_num(row).sum()
        return odds if label == 1 else -odds
    logs = np.log(model.twist(model.scores(row[None], None)))[0]
    others = [logs[k] for k in range(model.n_classes) if k != label]
    return logs[label] - (max(others) if predicted == label else logs[predicted])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_together", [20_000, 7, 1])
def test_effects_are_those_of_one_column_after_the_other(n_classes, n_together, monkeypatch):
    monkeypatch.setattr(reasons, "CHANGED_PER_BLOCK", n_together)
    finder = make_finder(n_classes)
    rows = np.array([3, 8, 1, 30, 17])
    predicted = np.array([0, 1, 1, 0, 1])
    usual = {label: finder.find_usual(label) for label in range(n_classes)}
    found = list(finder.find_reasons(rows, usual, predicted))
    assert len(found) == 5
    for row, likely, listed in zip(rows, predicted, found, strict=True):
        label, here = finder.labels[row], finder.table[row]
        effects = {}
        for column in (0, 1, 3):  # No tree splits on the third column.
            changed = here.copy()
            changed[column] = usual[label][column]
            model = finder.fitted
            effect = measure_slowly(model, changed, label, likely) - measure_slowly(model, here, label, likely)
            if effect > 0.005:
                effects[column] = effect
        assert [one.column for one in listed] == sorted(effects, key=lambda column: -effects[column])
        for one in listed:
            assert one.effect == pytest.approx(effects[one.column])
            assert one.value == finder.fitted.encoder.decode(one.column, here[one.column])
            assert one.usual == finder.fitted.encoder.decode(one.column, usual[label][one.column])


def test_small_effects_are_no_reasons():
    finder = make_finder()
    finder.table[:] = 0.0
    usual = {0: np.array([-0.0024, -0.0026, 9.0, 0.0]), 1: np.array([0.0, 0.0026, 9.0, 0.0])}
    found = next(finder.find_reasons(np.array([0]), usual, np.array([1])))
    assert [one.column for one in found] == [1]
    assert found[0].effect == pytest.approx(0.0052)


@pytest.mark.parametrize("block", [250, 3])
def test_similar_rows_share_most_leaves_and_of_equals_the_first_come_first(block, monkeypatch):
    monkeypatch.setattr(reasons, "ROWS_PER_BLOCK", block)
    finder = make_finder()
    in_leaves = np.hstack([forest.leaves(finder.table, None) for forest in finder.fitted.shared_forests])
    rows = np.array([5, 0, 39, 20, 21])
    found = list(finder.find_similar(rows))
    for row, similar in zip(rows, found, strict=True):
        shared = [sum(in_leaves[row] == in_leaves[other]) for other in range(40)]
        expected = sorted((other for other in range(40) if other != row), key=lambda other: (-shared[other], other))
        assert similar.tolist() == expected[:20]
    many = make_finder(n=300, seed=1)
    in_leaves = np.hstack([forest.leaves(many.table, None) for forest in many.fitted.shared_forests])
    shared = (in_leaves[:, None] == in_leaves).sum(axis=2)
    for row, similar in enumerate(many.find_similar(np.arange(300))):
        others = sorted(np.delete(np.arange(300), row), key=lambda other: (-shared[row, other], other))
        assert similar.tolist() == others[:20]
    groups = np.arange(300) // 4
    for row, similar in enumerate(change(many, groups=groups).find_similar(np.arange(300))):
        others = np.flatnonzero(groups != groups[row])
        assert similar.tolist() == sorted(others, key=lambda other: (-shared[row, other], other))[:20]
    few = make_finder(n=6)
    in_three, alone = change(few, groups=np.array([0, 0, 0, 0, 1, 2])).find_similar(np.array([2, 4]))
    assert sorted(in_three) == [4, 5]
    assert sorted(alone) == [0, 1, 2, 3, 5]
    assert [one.tolist() for one in change(few, groups=np.zeros(6, int)).find_similar(np.array([2]))] == [[]]
    (similar,) = few.find_similar(np.array([2]))
    assert sorted(similar) == [0, 1, 3, 4, 5]


def test_of_many_rows_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(reasons, "MOST_LOOKED_AT", 30)
    finder = make_finder()
    others, _ = finder._looked_at
    assert len(others) == 30
    assert (np.diff(others) > 0).all()
    for similar in finder.find_similar(np.arange(40)):
        assert np.isin(similar, others).all()
    monkeypatch.setattr(reasons, "MOST_LOOKED_AT", 40)
    assert make_finder()._looked_at[0].tolist() == list(range(40))


def test_leaves_of_all_trees_are_told_apart():
    finder = make_finder()
    marked = finder._mark_leaves(np.arange(40)).toarray()
    assert marked.shape == (40, 12)
    assert (marked.sum(axis=1) == 4).all()
    expected = np.zeros((40, 12))
    for row in range(40):
        for tree, (column, limit) in enumerate([(0, 0.0), (1, 1.0), (3, 2.0), (0, -0.5)]):
            expected[row, 3 * tree + 1 + (finder.table[row, column] > limit)] = 1
    np.testing.assert_array_equal(marked, expected)
    assert finder._split_columns.tolist() == [0, 1, 3]


# ---- words ----


def test_values_and_limits_in_words():
    assert [describe_value(one) for one in (None, float("nan"), 1234.56, 0.5, "x", 3)] == [
        "missing",
        "missing",
        "1235",
        "0.5",
        "x",
        "3",
    ]
    assert describe_limit(TableEncoder(1), 0, 1234.5678) == "1234.57"
    schema = SimpleNamespace(dates={0})
    encoder = SimpleNamespace(schema=schema, decode=lambda column, number: datetime.date(2020, 1, int(number)))
    assert describe_limit(encoder, 0, 7.0) == "2020-01-07"
    assert describe_limit(encoder, 1, 7.0) == "7"
    assert str(Reason("age", 51.0, None, 0.25)) == "age is 51, usually missing (+0.25)"


def test_an_explanation_in_words():
    one = Explanation(7, "no", "yes", 0.8, (Reason("age", 51.0, 40.0, 0.25),), 12, 20, n_predicted=9)
    assert str(one).splitlines() == [
        "row 7: labelled no, looks like yes, 80 % likely wrong",
        "  12 of the 20 most similar rows bear another label, 9 of them yes",
        "  age is 51, usually 40 (+0.25)",
    ]
    for n_predicted in (0, 12):
        told = str(change(one, n_predicted=n_predicted)).splitlines()[1]
        assert told == "  12 of the 20 most similar rows bear another label"
    assert "1 of them yes" in str(change(one, n_predicted=1))
    assert "11 of them yes" in str(change(one, n_predicted=11))
    assert str(change(one, n_similar=0)).splitlines()[1:] == ["  age is 51, usually 40 (+0.25)"]
    outcome = change(one, expected=0.03)
    assert str(outcome).splitlines()[0] == "row 7: no, which was 3 % likely"
    unknown = change(one, wrong=float("nan"))
    assert (one.is_judged, unknown.is_judged, unknown.likely) == (True, False, "not judged")
    assert str(unknown).startswith("row 7: labelled no, not judged\n")
