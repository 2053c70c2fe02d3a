"""Plots have the numbers of the audit, say what is missing, and draw where they are told to."""

import builtins
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.quick import QuickClassifier
from untwist import PILBoostClassifier, plot
from untwist.audit import calibration, findings

matplotlib = pytest.importorskip("matplotlib", reason="untwist.plot needs matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot", reason="untwist.plot needs matplotlib")

OF_AUDITS = [plot.plot_calibration, plot.plot_review_yield]
OF_MODELS = [
    plot.plot_importances,
    plot.plot_learning_curves,
    plot.plot_noise_posterior,
    plot.plot_transition_matrix,
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def given():
    """A model of given settings, which knows no noise and has no rows set aside."""
    X = np.arange(40.0)[:, None]
    return PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=1).fit(X, np.arange(40) > 19)


@pytest.mark.parametrize("name", ["shop", "three", "clean"])
@pytest.mark.parametrize("draw", OF_AUDITS + OF_MODELS, ids=lambda draw: draw.__name__)
@pytest.mark.thinned(2)
def test_every_plot_is_drawn_where_it_should_be(draw, name, request):
    audit = request.getfixturevalue(name)
    figure, axes = pyplot.subplots()
    assert draw(audit, ax=axes) is axes
    made = draw(audit)
    assert made.figure is not figure
    assert made.get_title()
    made.figure.canvas.draw()  # What Matplotlib takes for a formula would fail here.
    if draw in OF_MODELS:
        assert draw(audit.model).get_title() == draw(audit.model.model_).get_title() == made.get_title()


@pytest.mark.parametrize("draw", OF_AUDITS, ids=lambda draw: draw.__name__)
def test_what_needs_an_audit_says_so(draw, shop):
    with pytest.raises(ValueError, match="audit must be what audit_labels returns, got UntwistClassifier"):
        draw(shop.model)


def test_what_a_model_does_not_have_is_named(given):
    with pytest.raises(ValueError, match="model has no learning curves"):
        plot.plot_learning_curves(given)
    for draw in (plot.plot_noise_posterior, plot.plot_transition_matrix):
        with pytest.raises(ValueError, match="model has no estimate of the noise"):
            draw(given)
    with pytest.raises(ValueError, match='metric must be "log_loss" or "error"'):
        plot.plot_learning_curves(given, "auc")
    with pytest.raises(ValueError, match="model must be an UntwistClassifier or a PILBoostClassifier"):
        plot.plot_importances("model")


def test_learning_curves_are_those_of_the_rows_set_aside(shop):
    for metric, curve in zip(("log_loss", "error"), findings.average_learning_curves(shop.model.model_), strict=True):
        line, kept = plot.plot_learning_curves(shop, metric).get_lines()
        np.testing.assert_array_equal(line.get_ydata(), curve)
        assert kept.get_xdata()[0] == shop.model.choice_.best.n_rounds


def test_the_noise_posterior_of_two_classes_has_the_weights_of_all_rates(shop):
    noise = shop.noise
    is_noise = (noise.rates_neg > 0) | (noise.rates_pos > 0)
    lines = plot.plot_noise_posterior(shop).get_lines()
    for line, rates in zip(lines, (noise.rates_neg, noise.rates_pos), strict=True):
        for x, y in line.get_xydata():
            weight = noise.weights[is_noise & np.isclose(100 * rates, x)].sum() / noise.weights[is_noise].sum()
            assert y == pytest.approx(100 * weight)
        assert line.get_ydata().sum() == pytest.approx(100)


def test_the_noise_posterior_of_several_classes_has_shares_and_intervals(three):
    axes = plot.plot_noise_posterior(three)
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), 100 * three.noise.class_shares)
    (bars,) = axes.collections
    drawn = [segment[:, 0] for segment in bars.get_segments()]
    np.testing.assert_allclose(drawn, 100 * three.noise.class_intervals, atol=1e-9)


def test_rates_that_were_given_are_drawn_as_given():
    X = np.arange(40.0)[:, None]
    two = QuickClassifier(alpha=2.0, n_estimators=3, max_depth=1, noise=(0.1, 0.2)).fit(X, np.arange(40) > 19)
    axes = plot.plot_noise_posterior(two)
    assert axes.get_title() == "Noise, as given"
    assert [line.get_xdata()[0] for line in axes.get_lines()] == pytest.approx([10, 20])


def test_the_matrix_has_its_numbers_and_no_formulas(shop, three):
    for audit in (shop, three):
        axes = plot.plot_transition_matrix(audit)
        assert [float(text.get_text()) for text in axes.texts] == pytest.approx(100 * audit.matrix.ravel(), abs=0.051)
    X = np.arange(40.0)[:, None]
    names = np.array(["$\\bad{$", "x" * 200])[(np.arange(40) > 19).astype(int)]
    odd = QuickClassifier(alpha=2.0, n_estimators=3, max_depth=1, noise=(0.1, 0.2)).fit(X, names)
    axes = plot.plot_transition_matrix(odd)
    axes.figure.canvas.draw()
    assert max(len(label.get_text()) for label in axes.get_xticklabels()) < 40


def test_calibration_has_counted_shares_and_the_clean_curve(shop, three):
    for audit in (shop, three):
        _, counted, *_, clean = plot.plot_calibration(audit).get_lines()  # Between them are the ends of intervals.
        groups = calibration.measure_reliability(audit)
        np.testing.assert_allclose(counted.get_xydata(), [(said, share) for said, (share, _, _) in groups])
        np.testing.assert_allclose(clean.get_xydata(), calibration.trace_clean_posterior(audit))


def test_importances_are_sorted_and_cut(shop):
    axes = plot.plot_importances(shop, "gain", most=2)
    largest = np.sort(shop.model.importances("gain"))[::-1]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(100 * largest[:2])
    assert axes.get_title() == f"Importances, {len(largest) - 2} columns left out"
    with pytest.raises(ValueError, match="most must be"):
        plot.plot_importances(shop, most=0)


def test_the_yield_is_what_is_expected(shop):
    line, _ = plot.plot_review_yield(shop, most=40).get_lines()
    for n, expected in line.get_xydata():
        assert expected == pytest.approx(shop.wrong[shop.ranking[: int(n)]].sum())


def test_the_yield_of_a_review_counts_what_was_relabelled(shop):
    rng = np.random.default_rng(0)
    rows = rng.permutation(shop.ranking[:30])
    labels = shop.given[rows].copy()
    changed = rng.random(30) < 0.6
    labels[changed] = np.where(labels[changed] == shop.classes[0], shop.classes[1], shop.classes[0])
    reviewed = np.arange(30) % 5 > 0
    decisions = SimpleNamespace(rows=rows, given=shop.given[rows], labels=labels, reviewed=reviewed)
    _, found, there, _ = plot.plot_review_yield(shop, decisions).get_lines()
    count = found_so_far = 0
    expected = 0.0
    for row in shop.ranking.tolist():  # One row after the other, the most suspect first.
        if row in rows[reviewed]:
            count += 1
            found_so_far += bool(changed[rows == row][0])
            expected += shop.wrong[row]
            assert tuple(found.get_xydata()[count]) == (count, found_so_far)
            assert there.get_ydata()[count] == pytest.approx(expected)
    assert count == reviewed.sum()
    skipped = SimpleNamespace(rows=rows, given=shop.given[rows], labels=labels, reviewed=np.zeros(30, dtype=bool))
    with pytest.raises(ValueError, match="all were skipped"):
        plot.plot_review_yield(shop, skipped)


def test_without_matplotlib_a_line_says_what_to_install(shop, monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr("importlib.import_module", lambda name: refuse(name))
    with pytest.raises(ImportError, match=r'untwist.plot needs matplotlib: pip install "untwist\[plot\]"'):
        plot.plot_importances(shop)
