"""Slices: the test of parts against slow twins, its error rates by simulation, and what audits name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import gamma, kstest, poisson
from sklearn.datasets import make_classification

from helpers.quick import QuickClassifier
from helpers.small_audits import change, make_pairs, make_sources
from untwist.audit import audit_labels, slices
from untwist.audit.discoveries import select_discoveries
from untwist.audit.expectation import LEAST_POSTERIOR, OFFSET_SPREAD, SLOPE_SPREAD, Expectation, calibrate
from untwist.audit.hidden_sources import allow_for
from untwist.audit.slices import (
    EXPECTED_EXCESS,
    WORTH_FITTING,
    Excess,
    JudgedRows,
    find_p_values,
    find_slices,
    measure_parts,
    split_column,
)
from untwist.data.encoding import TableEncoder
from untwist.data.tables import Schema
from untwist.display import write_share

SHAPES = [(2, 1, "plain"), (2, 3, "weighted"), (3, 1, "weighted"), (4, 2, "extreme")]


def draw_expectation(n_rows, n_classes, n_matrices, seed, spread=2.0):
    rng = np.random.default_rng(seed)
    clean = np.exp(spread * rng.normal(size=(n_rows, n_classes)))
    clean /= clean.sum(axis=1, keepdims=True)
    noise = rng.uniform(0.02, 0.3, n_matrices)[:, None, None]
    matrices = (1 - noise) * np.eye(n_classes) + noise * rng.dirichlet(np.ones(n_classes), (n_matrices, n_classes))
    expected = Expectation(clean, matrices, rng.integers(0, n_matrices, n_rows))
    labels = np.array([rng.choice(n_classes, p=p / p.sum()) for p in expected.posterior])
    return expected, labels


def draw_case(n_classes, n_matrices, kind, n_rows=150):
    expected, labels = draw_expectation(n_rows, n_classes, n_matrices, 3, spread=9.0 if kind == "extreme" else 2.0)
    rng = np.random.default_rng(4)
    weight = np.ones(n_rows) if kind == "plain" else rng.choice([0.0, 0.5, 1.0, 3.0], n_rows)
    return expected, labels, weight


# ---- slow twins ----


def find_label_posterior_slowly(expected, row, parameters, excess=0.0):
    """How likely each label of a row is after offsets, a slope and additional wrong labels, one sum after the other."""
    clean = [max(value, LEAST_POSTERIOR) for value in expected.clean[row]]
    n_classes = len(clean)
    powers = [value ** parameters[-1] * np.exp(parameters[index]) for index, value in enumerate(clean)]
    matrix = expected.matrices[expected.matrix_of_row[row]]
    p = [sum(powers[j] / sum(powers) * matrix[j, k] for j in range(n_classes)) for k in range(n_classes)]
    return [(1 - excess) * one + excess * (1 - one) / (n_classes - 1) for one in p]


def find_cost_slowly(parameters, expected, labels, weight):
    cost = ((parameters[-1] - 1) / SLOPE_SPREAD) ** 2 / 2 + sum((parameters[:-1] / OFFSET_SPREAD) ** 2) / 2
    for row, label in enumerate(labels):
        cost -= weight[row] * np.log(find_label_posterior_slowly(expected, row, parameters)[label])
    return cost


def measure_slowly(expected, labels, weight, rows):
    """The score of a part, without offsets; where it is large, at the offsets that fit the part best."""
    n_classes = expected.clean.shape[1]
    start = np.append(np.zeros(n_classes), 1.0)
    found = differentiate_slowly(expected, start, labels, weight, rows)
    if found[0] <= WORTH_FITTING * np.sqrt(found[1]):
        return found
    part = expected.take(rows)

    def find_cost(offsets):
        return find_cost_slowly(np.append(offsets, 1.0), part, labels[rows], weight[rows])

    best = minimize(find_cost, start[:-1], method="BFGS", options={"gtol": 1e-7})
    return differentiate_slowly(expected, np.append(best.x, 1.0), labels, weight, rows)


def differentiate_slowly(expected, parameters, labels, weight, rows):
    """The score by derivatives that are differences, and its moments, which are sums over all labels."""
    n_classes = expected.clean.shape[1]
    step = 1e-5
    scores, chances, values = [], [], []
    for row in rows:
        p = np.array(find_label_posterior_slowly(expected, row, parameters))
        derivatives = []
        for index in range(n_classes + 1):
            moves = np.eye(n_classes + 1)[index] * step
            up, down = (find_label_posterior_slowly(expected, row, parameters + sign * moves) for sign in (1, -1))
            derivatives.append((np.log(up) - np.log(down)) / (2 * step))
        more = np.array(find_label_posterior_slowly(expected, row, parameters, EXPECTED_EXCESS))
        noise = (1 - n_classes * p) / (n_classes - 1) / more
        noise -= sum(p * noise)
        values.append(weight[row] * np.array([*derivatives, noise]))
        chances.append(p)
        scores.append(values[-1][:, labels[row]])
    covariance = sum(p * value @ value.T for p, value in zip(chances, values, strict=True))
    prior = np.diag([OFFSET_SPREAD**-2.0] * n_classes + [SLOPE_SPREAD**-2.0])
    explained = np.linalg.inv(covariance[:-1, :-1] + prior) @ covariance[:-1, -1]
    left = np.append(-explained, 1.0)
    moved = np.diag(prior) * (parameters - np.append(np.zeros(n_classes), 1.0))
    return (
        sum(left @ score for score in scores) + explained @ moved,
        covariance[-1, -1] - explained @ covariance[:-1, -1],
        sum(sum(p * (left @ value) ** 3) for p, value in zip(chances, values, strict=True)),
    )


@pytest.mark.parametrize(("n_classes", "n_matrices", "kind"), SHAPES)
def test_offsets_and_slope_are_the_likeliest(n_classes, n_matrices, kind):
    expected, labels, weight = draw_case(n_classes, n_matrices, kind)
    calibrated, explained, _ = calibrate(expected, labels, weight)
    start = np.append(np.zeros(n_classes), 1.0)
    best = minimize(find_cost_slowly, start, args=(expected, labels, weight), method="BFGS")
    assert explained == pytest.approx(-best.fun, abs=2e-3)
    assert explained >= -find_cost_slowly(start, expected, labels, weight)
    slowly = [find_label_posterior_slowly(expected, row, best.x) for row in range(len(labels))]
    np.testing.assert_allclose(calibrated.posterior, slowly, atol=0.01)


@pytest.mark.parametrize(("n_classes", "n_matrices", "kind"), SHAPES)
def test_the_score_of_a_part_is_that_of_a_slow_twin(n_classes, n_matrices, kind):
    expected, labels, weight = draw_case(n_classes, n_matrices, kind)
    parts = [np.arange(60), np.arange(40, 150, 3), np.array([7])]
    fast = measure_parts(expected, labels, weight, parts)
    calibrated = calibrate(expected, labels, weight).expected
    scaled = weight / weight[weight > 0].mean()
    for part, found in zip(parts, fast, strict=True):
        slow = measure_slowly(calibrated, labels, scaled, part)
        assert found == pytest.approx(slow, rel=2e-3, abs=2e-3)


def test_neither_calibration_nor_scores_depend_on_the_order_of_rows():
    expected, labels, weight = draw_case(3, 2, "weighted")
    order = np.random.default_rng(0).permutation(len(labels))
    part = np.arange(50)
    there = np.flatnonzero(np.isin(order, part))
    turned = expected.take(order), labels[order], weight[order]
    assert calibrate(*turned).explained == calibrate(expected, labels, weight).explained
    assert measure_parts(*turned, [there]) == measure_parts(expected, labels, weight, [part])


# ---- p-values ----


def test_p_values_are_normal_where_nothing_is_skewed():
    deviations = np.linspace(-4, 4, 81)
    found = find_p_values([Excess(5.0 * z, 25.0, 0.0) for z in 0.3 * deviations])
    np.testing.assert_allclose(found, ndtr(-0.3 * deviations), atol=2e-3)
    assert find_p_values([]).shape == (0,)


@pytest.mark.parametrize("mean", [0.3, 1.0, 3.0])
def test_p_values_of_few_unlikely_labels_are_about_those_of_poisson(mean):
    counts = np.arange(1, 7)
    found = find_p_values([Excess(count - mean, mean, mean) for count in [mean] * 20 + counts.tolist()])[20:]
    # A gamma variable has no gaps: about half of the probability of the number itself belongs to it.
    assert (found > 0.35 * poisson.sf(counts - 1, mean)).all()
    assert (found[:3] < poisson.sf(counts - 1, mean)[:3]).all()


def test_where_all_parts_deviate_too_much_none_is_named_for_it():
    rng = np.random.default_rng(0)
    excesses = [Excess(3.0 * z, 1.0, 0.0) for z in rng.normal(size=400)]
    assert not select_discoveries(find_p_values(excesses), 0.05).any()
    assert (find_p_values([*excesses, Excess(30.0, 1.0, 0.0)])[-1]) < 1e-12


def simulate_part(rng, kind, n=900):
    """Posteriors and labels of rows, and which of them are in a part that is of this kind."""
    z = rng.normal(scale=2.5, size=n)
    here = np.arange(n) < n // 3
    truth = z.copy()
    if kind == "harder":
        truth[here] *= rng.normal(1.0, SLOPE_SPREAD)
    if kind == "shifted":
        truth[here] += rng.normal(0.0, OFFSET_SPREAD)
    clean = 1 / (1 + np.exp(-z))
    y = rng.random(n) < 1 / (1 + np.exp(-truth))
    y ^= rng.random(n) < np.where(here & (kind == "noisy"), 0.35, 0.1)
    expected = Expectation.under_one_matrix(np.column_stack([1 - clean, clean]), np.array([[0.9, 0.1], [0.1, 0.9]]))
    return expected, y.astype(int), np.flatnonzero(here)


@pytest.mark.parametrize("kind", ["like all", "harder", "shifted", "noisy"])
@pytest.mark.thinned(3)
def test_p_values_are_even_unless_labels_are_wrong(kind):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        expected, y, part = simulate_part(rng, kind)
        found += find_p_values([*measure_parts(expected, y, np.ones(len(y)), [part]), *[Excess(0.0, 1.0, 0.0)] * 3])[
            :1
        ].tolist()
    if kind == "noisy":
        assert np.mean(np.array(found) < 0.001) > 0.8
        return
    assert np.mean(np.array(found) < 0.05) < 0.08
    assert np.mean(np.array(found) < 0.001) < 0.01
    if kind == "like all":
        assert kstest(found, "uniform").pvalue > 0.001


# ---- audits ----


def draw_rows_of_sites(rate_here, rate_elsewhere, seed=0, n=3000):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "site": rng.choice(list("PQRS"), n)})
    truth = (X["a"] > 0).to_numpy()
    flipped = rng.random(n) < np.where(X["site"] == "P", rate_here, rate_elsewhere)
    return X, (truth ^ flipped).astype(int)


def draw_classes_at_sites(seed, rate_here, rate_elsewhere, n=2000):
    """Four classes at four sites, noise that is the same in every class, and which labels are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, n, p=[0.2, 0.3, 0.3, 0.2])
    X = pd.DataFrame(rng.normal(size=(n, 4)) + 1.8 * rng.normal(size=(4, 4))[truth], columns=list("abcd"))
    X["site"] = rng.choice(list("PQRS"), n)
    wrong = rng.random(n) < np.where(X["site"] == "P", rate_here, rate_elsewhere)
    return X, np.where(wrong, (truth + rng.integers(1, 4, n)) % 4, truth), wrong


@pytest.fixture(scope="module")
def sites():
    audit = audit_labels(*draw_rows_of_sites(0.4, 0.1))
    return allow_for(audit, audit.hidden_sources()[0])


def test_a_noisy_slice_is_named_with_its_share(sites):
    audit = sites
    here = (audit.table.X["site"] == "P").to_numpy()
    (first,) = audit.slices()
    assert (first.column, first.where, first.rows) == ("site", "P", int(here.sum()))
    assert first.share_wrong == pytest.approx(0.4, abs=0.08)
    assert (audit.noise.found, first.low) == (False, 0.0)  # The rows may as well be much harder than the others.
    assert first.share_wrong < first.high < 0.6
    assert first.p_value < 1e-4
    assert str(first) == f"0 % to {write_share(first.high)} of the {here.sum()} rows where site is P"
    known = change(first, column=2, share_wrong=0.4, low=0.3, high=0.5)
    assert str(known) == f"40.0 % (30.0 % to 50.0 %) of the {here.sum()} rows where column 2 is P"
    assert audit.slices([0, 1]) == []
    assert audit.slices(false_discovery_rate=first.p_value / 100) == []
    with pytest.raises(ValueError, match="false_discovery_rate must lie in"):
        audit.slices(false_discovery_rate=2)


@pytest.mark.slow
def test_a_noisy_slice_of_several_classes_is_named_with_its_share():
    X, given, wrong = draw_classes_at_sites(0, 0.4, 0.08)
    audit = audit_labels(X, given, QuickClassifier(max_depth=3, random_state=0).fit(X, given))
    (first,) = audit.slices()
    here = (X["site"] == "P").to_numpy()
    assert (first.column, first.where, first.rows) == ("site", "P", here.sum())
    # Some of what is wrong everywhere is taken for hard, so that the share comes out too low.
    assert wrong[here].mean() - 0.15 < first.share_wrong < wrong[here].mean() + 0.08
    absent = change(audit, weight=np.where(here & (np.cumsum(here) > 90), 0.0, 1.0))
    assert "site" not in [one.column for one in absent.slices()]  # Fewer than 100 rows tell little.


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.3])
@pytest.mark.thinned(2)
def test_uniform_noise_has_no_slices(rate):
    for seed in range(2):
        assert audit_labels(*draw_rows_of_sites(rate, rate, seed)).slices() == []
    assert audit_labels(*draw_classes_at_sites(1, rate, rate)[:2]).slices() == []


def test_clean_but_hard_data_have_no_slices():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 500)
    assert audit_labels(rng.normal(size=(500, 3)) + 0.7 * y[:, None], y).slices() == []
    X, y = make_classification(1000, 6, n_informative=4, n_redundant=0, class_sep=0.6, flip_y=0, random_state=3)
    assert audit_labels(X, y).slices() == []


@pytest.mark.slow
def test_what_sources_explain_is_no_slice():
    X, y = draw_rows_of_sites(0.4, 0.1, n=2000)
    X = X.assign(room=np.where(X["site"] == "P", "cellar", "hall"))
    audit = audit_labels(X[["a", "b", "room"]], y)
    named = allow_for(audit, audit.hidden_sources()[0]).slices()
    assert [(one.column, one.where) for one in named] == [("room", "cellar")]
    assert audit_labels(X[["a", "b", "room"]], y, source=X["site"]).slices() == []


def test_slices_leave_out_rows_of_weight_0():
    X, y = draw_rows_of_sites(0.1, 0.1, n=1500)
    weight = np.ones(1500)
    absent = np.flatnonzero(X["site"] == "P")[:200]
    weight[absent] = 0.0
    y[absent] = X["a"].iloc[absent] < 0  # All of these labels are wrong.
    assert audit_labels(X, y, sample_weight=weight).slices() == []


def test_of_many_categories_the_most_frequent_are_parts():
    names = tuple(f"n{one:03}" for one in range(300))
    encoder = TableEncoder(1, schema=Schema({0: names}))
    values = np.concatenate([np.arange(300.0), np.arange(40.0, 294.0)])
    parts = list(split_column(encoder, 0, values))
    assert [where for where, _ in parts] == list(names[40:294])
    assert all(rows.sum() == 2 for _, rows in parts)


def test_slices_are_quarters_categories_and_what_is_missing():
    X, y = draw_rows_of_sites(0.2, 0.2, n=400)
    X.loc[::10, "b"] = np.nan
    audit = audit_labels(X, y)
    values = audit.table.numbers
    for column, name in enumerate(X):
        parts = list(split_column(audit.model.model_.encoder, column, values[:, column]))
        np.testing.assert_array_equal(sum(rows.astype(int) for _, rows in parts), 1)  # Every row is in one part.
        if name == "site":
            assert [where for where, _ in parts] == list("PQRS")
        if name == "b":
            assert parts[0][0] == "missing"
            assert parts[0][1].sum() == 40
            assert [rows.sum() for _, rows in parts[1:]] == [90, 90, 90, 90]
            edge = np.nanquantile(X["b"], 0.25)
            assert parts[1][0] == f"at most {edge:g}"
            assert parts[2][0].startswith(f"above {edge:g} and at most ")


def test_some_rows_are_the_same_whatever_their_order():
    rng = np.random.default_rng(7)
    n = 400
    table = rng.integers(0, 3, (n, 2)).astype(float)
    posterior = np.column_stack((rng.integers(0, 5, n) / 5, np.zeros(n)))
    labels, weight = rng.integers(0, 2, n), (rng.random(n) > 0.1).astype(float)
    judged = JudgedRows(table, posterior, labels, weight, None, Expectation.under_one_matrix(posterior, np.eye(2)))
    twin = np.lexsort((*table.T, labels, posterior[:, 0]))
    twin = twin[weight[twin] > 0]
    content = np.column_stack((posterior, labels, table))
    for order in (np.arange(n), rng.permutation(n)):
        chosen = judged.take(order)
        found = np.column_stack((chosen.posterior, chosen.labels, chosen.table))[chosen.choose_rows(50)]
        np.testing.assert_array_equal(found, content[twin[np.linspace(0, len(twin) - 1, 50).astype(int)]])
    assert len(judged.choose_rows(n)) == np.count_nonzero(weight)


@pytest.mark.parametrize("rows_per_case", [1.0, 4.0])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_p_values_are_those_of_a_gamma_variable_with_three_moments(rows_per_case, scale):
    rng = np.random.default_rng(0)
    excesses = [Excess(scale * rng.normal(), rng.uniform(1, 2), rng.normal()) for _ in range(9)]
    found = find_p_values(excesses, rows_per_case)
    deviations = [one.score / one.variance**0.5 for one in excesses]
    inflation = max(rows_per_case, np.median(np.square(deviations)) / 0.4549)
    for one, p_value, z in zip(excesses, found, deviations, strict=True):
        skewness = max(one.third / one.variance**1.5, 1e-3)
        shape = 4 / skewness**2
        # Its mean is 0, its variance 1, and its skewness that of the sum.
        twin = gamma(shape, loc=-(shape**0.5), scale=shape**-0.5)
        assert p_value == pytest.approx(twin.sf(z / inflation**0.5), rel=1e-6)


def make_rows(n=300):
    """Rows with a column of three categories, one of numbers, and one of a single value."""
    rng = np.random.default_rng(0)
    table = np.column_stack([np.arange(n) % 3, rng.normal(size=n), np.zeros(n)])
    posterior = rng.dirichlet([1, 1], n)
    labels = rng.integers(0, 2, n)
    expected = Expectation.under_one_matrix(posterior, np.eye(2))
    encoder = TableEncoder(3, schema=Schema({0: ("x", "y", "z")}))
    return JudgedRows(table, posterior, labels, np.ones(n), make_pairs(), expected), encoder


@pytest.fixture
def asked(monkeypatch):
    """What parts are measured, with scores that are told, and what they are taken for as sources."""
    seen = {"parts": [], "scores": iter(()), "sources": [], "shares": None}

    def measure(expected, labels, weight, parts):
        seen["parts"].append((expected, [part.tolist() for part in parts]))
        return [Excess(next(seen["scores"]), 1.0, 0.0) for _ in parts]

    def estimate(posterior, labels, sources, **options):
        seen["sources"].append((posterior, sources, options))
        found = make_sources(options["noise"], 2, names=tuple(options["names"]))
        shares = found.shares if seen["shares"] is None else np.array(seen["shares"])
        return change(found, shares=shares, counts=np.arange(1.0, len(shares) + 1))

    monkeypatch.setattr(slices, "measure_parts", measure)
    monkeypatch.setattr(slices, "estimate_by_source", estimate)
    return seen


def test_parts_of_enough_rows_are_measured_and_the_clearest_named_first(asked):
    judged, encoder = make_rows(400)
    scores = [0.1, 6.0, 5.5, 0.1, 0.2, 0.1, 0.2]

    def find(*shares):
        asked["scores"], asked["shares"] = iter(scores), shares
        return find_slices(change(judged, rows_per_case=1.5), encoder, range(3))

    found = find(0.1, 0.4, 0.5)
    assert asked["parts"][0][1][:3] == [list(range(one, 400, 3)) for one in range(3)]
    assert [(one.column, one.where, one.rows) for one in found] == [(0, "y", 133), (0, "z", 133)]
    assert [one.share_wrong for one in found] == [0.4, 0.5]
    p_values = find_p_values([Excess(score, 1.0, 0.0) for score in scores], 1.5)
    assert [one.p_value for one in found] == p_values[1:3].tolist()
    posterior, sources, options = asked["sources"][0]
    assert posterior is judged.posterior
    assert sources.tolist() == judged.table[:, 0].tolist()
    assert (options["names"], options["noise"], options["rows_per_case"]) == (["x", "y", "z"], judged.noise, 1.5)
    assert options["weight"] is judged.weight
    # Only where more is wrong than in the whole column, by how many labels each part has: one, two and three.
    assert [one.where for one in find(0.1, 0.4, 0.2)] == ["y"]
    assert [one.where for one in find(0.1, 0.25, 0.26)] == ["y", "z"]
    assert [one.where for one in find(0.4, 0.25, 0.26)] == []
    assert [one.where for one in find(0.25, 0.25, 0.25)] == []


def test_rows_of_rare_categories_are_of_no_known_part(asked, monkeypatch):
    monkeypatch.setattr(slices, "MOST_CATEGORIES", 2)
    judged, encoder = make_rows(400)
    judged.table[:200, 0] = np.arange(200) % 2  # The third category is the rarest.
    asked["scores"] = iter([0.1, 6.0, 0.1, 0.1, 0.1, 0.1])
    asked["shares"] = [0.1, 0.4]
    (found,) = find_slices(judged, encoder, range(2))
    assert found.where == "y"
    _, sources, options = asked["sources"][0]
    assert options["names"] == ["x", "y"]
    assert sources.tolist() == np.where(judged.table[:, 0] == 2, -1, judged.table[:, 0]).tolist()


def test_too_few_rows_or_all_of_them_are_no_part(asked):
    judged, encoder = make_rows()
    weight = np.ones(300)
    weight[0] = 0.0
    asked["scores"] = iter([0.0] * 9)
    assert find_slices(change(judged, weight=weight), encoder, range(3)) == []
    assert [len(part) for part in asked["parts"][0][1]] == [100, 100]
    judged.table[:, 0] = 0.0
    assert find_slices(judged, encoder, [0, 2]) == []
    assert asked["parts"][1][1] == []


def test_parts_of_a_column_that_was_left_out_are_judged_by_the_model_without_it(asked):
    judged, encoder = make_rows(400)
    other = np.random.default_rng(5).dirichlet([1, 1], 400)
    noise = make_pairs()
    judged = change(judged, without={0: (other, noise)})
    asked["scores"] = iter([0.1, 0.2, 0.1, 0.2, 0.1, 6.0, 0.1])
    asked["shares"] = [0.1, 0.4, 0.1]
    (found,) = find_slices(judged, encoder, [1, 0])
    assert (found.column, found.where) == (0, "y")
    (first, of_numbers), (second, of_categories) = asked["parts"]
    assert first is judged.expected
    assert [len(part) for part in of_numbers] == [100] * 4
    assert [part[0] for part in of_categories] == [0, 1, 2]
    np.testing.assert_allclose(second.clean, noise.clean(other))
    np.testing.assert_allclose(second.matrices[0], noise.matrix)
    posterior, _, options = asked["sources"][0]
    assert posterior is other
    assert options["noise"] is noise


def test_few_numbers_are_parts_of_their_own():
    encoder = TableEncoder(1)
    for n_values in (4, 5):
        values = np.append(np.repeat(np.arange(float(n_values)), 6), np.nan)
        parts = dict(split_column(encoder, 0, values))
        np.testing.assert_array_equal(parts.pop("missing"), np.isnan(values))
        if n_values == 4:
            assert list(parts) == ["0", "1", "2", "3"]
        else:
            assert list(parts) == ["at most 1", "above 1 and at most 2", "above 2 and at most 3", "above 3"]
            limits = [(-np.inf, 1), (1, 2), (2, 3), (3, np.inf)]
            for rows, (low, high) in zip(parts.values(), limits, strict=True):
                np.testing.assert_array_equal(rows, (values > low) & (values <= high))


def test_a_row_is_a_case_unless_told_otherwise():
    assert make_rows()[0].rows_per_case == 1.0


def test_taking_rows_takes_all_that_is_known_of_them():
    judged, _ = make_rows()
    judged = change(judged, without={1: (judged.posterior, judged.noise)}, weight=np.arange(300.0))
    rows = np.array([9, 2])
    taken = judged.take(rows)
    np.testing.assert_array_equal(taken.table, judged.table[rows])
    np.testing.assert_array_equal(taken.without[1][0], judged.posterior[rows])
    np.testing.assert_array_equal(taken.expected.clean, judged.posterior[rows])
    assert (taken.weight.tolist(), taken.labels.tolist()) == ([9.0, 2.0], judged.labels[rows].tolist())
