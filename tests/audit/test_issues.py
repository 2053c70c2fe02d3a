"""What else is wrong with the data: found where it is, silent where chance explains it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, kruskal
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from untwist.audit import audit_labels, find_data_issues
from untwist.audit.issues.columns import measure_leak
from untwist.audit.issues.drift import measure_drift
from untwist.audit.issues.duplicates import find_copies
from untwist.audit.issues.issue import KINDS
from untwist.audit.issues.rows import ComparedRows
from untwist.data.encoding import TableEncoder


def draw(n=600, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def make_table(X):
    return ComparedRows(X, TableEncoder(X.shape[1]), range(X.shape[1]))


def find(kind, *args, **options):
    return [one for one in find_data_issues(*args, **options) if one.kind == kind]


def make_frame(n=400, seed=1):
    rng = np.random.default_rng(seed)
    X, y = draw(n, 3, seed)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["town"] = pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n))
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    return frame, y


# ---- silence ----


@pytest.mark.parametrize("seed", range(5))
def test_clean_tables_are_silent(seed):
    assert find_data_issues(*draw(seed=seed)) == []
    assert find_data_issues(*make_frame(seed=seed)) == []


def test_small_real_tables_are_silent():
    # One pair of equal irises is what chance gives where lengths are rounded to millimetres.
    assert find_data_issues(*load_iris(return_X_y=True)) == []
    assert find_data_issues(*load_wine(return_X_y=True)) == []


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_repeats_in_a_coarse_table_are_chance(levels):
    rng = np.random.default_rng(levels)
    X = rng.integers(0, levels, size=(1500, 5)).astype(float)
    y = rng.integers(0, 2, 1500)
    assert len(np.unique(X, axis=0)) < 1300  # Many rows are equal.
    assert not {one.kind for one in find_data_issues(X, y)} & {"exact_duplicates", "conflicting_duplicates"}


# ---- rows ----


def test_copies_are_found_with_their_labels():
    X, y = make_frame()
    X = pd.concat([X, X.iloc[[3, 5, 5]]], ignore_index=True)
    y = np.concatenate([y, [y[3], 1 - y[5], y[5]]])
    conflicting, equal = find_data_issues(X, y)
    assert (conflicting.kind, conflicting.rows.tolist()) == ("conflicting_duplicates", [5, 401, 402])
    assert (equal.kind, equal.rows.tolist()) == ("exact_duplicates", [3, 5, 400, 401, 402])
    assert equal.examples[0].rows == (5, 401, 402)
    assert "rows 5, 401, 402: labelled" in str(conflicting)
    names = [f"no. {row}" for row in range(403)]
    assert "lines no. 5, no. 401, no. 402" in equal.describe(names, "line")


def test_equal_rows_of_one_item_are_meant():
    X, y = draw()
    X[7] = X[5]
    item = np.arange(600)
    assert find("exact_duplicates", X, y, item=item)[0].rows.tolist() == [5, 7]
    item[7] = 5
    assert find("exact_duplicates", X, y, item=item) == []


def test_expected_copies_are_those_of_a_slow_count():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    found = find_copies(make_table(X))
    same = (X[:, None] == X[None]) | (np.isnan(X[:, None]) & np.isnan(X[None]))
    n_differ = (~same).sum(axis=2)
    alike = (n_differ == 1).sum() / 200
    assert np.array_equal(found.group[:, None] == found.group, n_differ == 0)
    for content, expected in zip(found.repeated, found.expected, strict=True):
        row = np.flatnonzero(found.group == content)[0]
        shares = same[row].mean(axis=0)
        only = [((n_differ[row] == 1) & ~same[row, :, column]).sum() for column in range(4)]
        local = max(n * share / (1 - share) for n, share in zip(only, shares, strict=True))
        assert expected == pytest.approx(max(local, alike / ((1 - shares) / shares).sum()))


# ---- columns ----


def test_columns_are_judged():
    X, y = make_frame()
    rng = np.random.default_rng(0)
    X["leak"] = np.where(y == 1, "closed", "open")
    X["one"] = 1
    X["name"] = [f"person {one}" for one in range(400)]
    X["number"] = 5000 + rng.permutation(400)
    found = {one.kind: one for one in find_data_issues(X, y)}
    assert found["leak"].columns == ("leak",)
    assert found["constant_column"].columns == ("one",)
    assert found["id_column"].columns == ("name", "number")
    assert set(found) == {"leak", "constant_column", "id_column"}


def test_an_id_does_not_hide_copies():
    X, y = make_frame()
    X = pd.concat([X, X.iloc[[3]]], ignore_index=True)
    X["number"] = np.arange(401)
    assert find("exact_duplicates", X, np.append(y, y[3]))[0].rows.tolist() == [3, 400]


def test_numbers_that_differ_by_chance_are_no_id():
    X, y = draw(300)
    X[:, 0] = np.random.default_rng(0).permutation(10_000_000)[:300]
    assert find("id_column", X, y) == []


def test_a_column_that_is_nearly_constant_is_named_with_its_rows():
    X, y = draw(3000)
    X[:, 2] = 0.0
    X[[11, 700], 2] = 1.0
    [issue] = find("constant_column", X, y)
    assert issue.rows.tolist() == [11, 700]
    assert "in all rows but 2" in issue.reason


def test_a_weak_column_is_no_leak():
    _, y = draw()
    rng = np.random.default_rng(0)
    assert measure_leak(y + 0.01 * rng.normal(size=600), y) > 0.99
    wrong = rng.random(600) < 0.05
    assert measure_leak(np.where(wrong, 1 - y, y).astype(float), y) is None
    assert measure_leak(y.astype(float), np.zeros(600, dtype=int)) is None
    many = rng.integers(0, 30, 1500)
    assert measure_leak(many.astype(float), many) > 0.99


def test_leaks_are_those_of_scikit_learns_cross_validation():
    rng = np.random.default_rng(0)
    found = 0
    for spread in np.repeat([0.01, 0.1, 0.2, 0.25], 10):
        y = rng.integers(0, int(rng.integers(2, 5)), int(rng.integers(40, 300)))
        values = y + spread * rng.normal(size=len(y))
        values[rng.random(len(y)) < 0.01] = rng.choice([np.nan, np.inf, 0.0])
        tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=5, random_state=0)
        share = cross_val_score(tree, np.nan_to_num(values, nan=-1e30, posinf=1e30)[:, None], y, cv=2).mean()
        largest = np.bincount(y).max() / len(y)
        expected = share if share > max(0.99, largest + 0.5 * (1.0 - largest)) else None
        assert measure_leak(values, y) == expected
        found += expected is not None
    assert 5 < found < 35


# ---- order, classes, groups ----


def test_drift_with_order_and_with_time():
    X, y = draw(1000)
    shifted = X.copy()
    shifted[:, 4] += np.linspace(0, 2, 1000)
    [issue] = find_data_issues(shifted, y)
    assert (issue.kind, issue.columns) == ("drift", (4,))
    order = np.random.default_rng(0).permutation(1000)
    assert find_data_issues(shifted[order], y[order]) == []
    days = np.datetime64("2024-01-01") + order
    [issue] = find_data_issues(shifted[order], y[order], time=days)
    assert "with time" in issue.reason
    with pytest.raises(ValueError, match="time must be one for each"):
        find_data_issues(X, y, time=days[:5])
    with pytest.raises(ValueError, match="time must hold numbers or dates"):
        find_data_issues(X, y, time=["monday"] * 1000)


def test_a_table_sorted_by_its_label_is_one_finding():
    X, y = draw(1000)
    order = np.argsort(y, kind="stable")
    [issue] = find_data_issues(X[order], y[order])
    assert issue.kind == "drift"
    assert "shares of the classes" in issue.reason


def test_drift_is_tested_as_kruskal_and_pearson_do():
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(10), 50)
    values = rng.normal(size=500) + 0.05 * block
    ranks = np.argsort(np.argsort(values)).astype(float)[:, None]
    expected = kruskal(*(values[block == one] for one in range(10))).pvalue
    assert measure_drift(ranks, block, None)[1] == pytest.approx(expected, rel=1e-6)
    codes = rng.integers(0, 4, 500)
    counts = np.array([[(codes[block == one] == code).sum() for code in range(4)] for one in range(10)])
    indicators = (codes[:, None] == np.arange(4)).astype(float)
    assert measure_drift(indicators, block, None)[1] == pytest.approx(chi2_contingency(counts).pvalue, rel=0.01)


def test_a_small_class_is_named():
    X, y = draw()
    names = np.where(y == 1, "yes", "no").astype(object)
    names[:4] = "perhaps"
    [issue] = find_data_issues(X, names)
    assert (issue.kind, issue.rows.tolist()) == ("small_class", [0, 1, 2, 3])
    assert "perhaps (4)" in issue.reason


def test_a_group_where_the_model_fails():
    X, y = make_frame(1200)
    inside = (X["town"] == "Ulm").to_numpy()
    posterior = np.eye(2)[y] * 0.8 + 0.1
    assert find("failing_group", X, y, pred_probs=posterior) == []
    rng = np.random.default_rng(0)
    posterior[inside] = rng.dirichlet([1, 1], inside.sum())
    [issue] = find("failing_group", X, y, pred_probs=posterior)
    assert np.array_equal(issue.rows, np.flatnonzero(inside))
    assert "where town is Ulm" in issue.reason
    with pytest.raises(ValueError, match="pred_probs needs"):
        find_data_issues(X, pred_probs=posterior)
    with pytest.raises(ValueError, match="y must be one label"):
        find_data_issues(X, y[:4])


# ---- all together ----


def test_the_order_of_the_rows_makes_no_difference():
    X, y = draw(9000, 8)
    X[:20], X[:, 3] = X[-20:], y
    order = np.random.default_rng(3).permutation(9000)
    assert [one.kind for one in find_data_issues(X, y)] == ["leak", "exact_duplicates"]
    for one, other in zip(find_data_issues(X, y), find_data_issues(X[order], y[order]), strict=True):
        assert (one.kind, one.reason) == (other.kind, other.reason)
        assert np.array_equal(one.rows, np.sort(order[other.rows]))


def test_an_audit_finds_issues():
    X, y = make_frame(300)
    X.loc[7] = X.loc[5]
    y[7] = y[5]
    audit = audit_labels(X, y, n_jobs=1)
    [issue] = audit.find_issues()
    assert (issue.kind, issue.rows.tolist()) == ("exact_duplicates", [5, 7])
    assert audit.find_issues(time="a")[0].kind in KINDS
    with pytest.raises(ValueError, match="time must be a column"):
        audit.find_issues(time="d")


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_acts_on_the_label_beside_time_does_not_drift(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"when": np.sort(rng.normal(size=1000)), "age": rng.normal(size=1000)})
    y = X["when"] + X["age"] + 0.1 * rng.normal(size=1000) > 0
    drifting = [issue.columns for issue in find_data_issues(X, y) if issue.kind == "drift"]
    assert ("when",) in drifting
    assert not any("age" in columns for columns in drifting)


def test_dates_do_not_drift():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"when": pd.date_range("2021-01-01", periods=500), "age": rng.normal(size=500)})
    assert not [issue for issue in find_data_issues(X, X["age"] > 0) if issue.kind == "drift"]


def test_a_table_of_ids_has_no_equal_rows():
    found = find_data_issues(np.arange(300.0)[:, None], np.arange(300) % 2)
    assert [issue.kind for issue in found] == ["id_column"]


def test_huge_values_are_looked_at():
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[:3, 1] = [1e200, -1e200, 1e308]
    assert find_data_issues(X, X[:, 0] + X[:, 1] > 0) == []


def test_times_of_any_kind():
    rng = np.random.default_rng(0)
    times = pd.Series(pd.date_range("2021-01-01", periods=400, tz="Europe/Berlin")).sample(frac=1, random_state=0)
    X = pd.DataFrame({"level": times.dt.day_of_year.to_numpy() + rng.normal(size=400), "age": rng.normal(size=400)})
    for given in (times, times.astype(object), times.dt.tz_localize(None).to_numpy()):
        assert [(one.kind, one.columns) for one in find_data_issues(X, time=given)] == [("drift", ("level",))]
