"""Figures: the curves of the paper's theory against slow formulas, and that drawing them leaves nothing behind."""

import math
import re
import struct
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from experiments.paper import figures, theory
from experiments.paper.figures import Bars, Boxes, Figure, Heat, Line, Lines, Mark, draw_png, draw_svg
from helpers import reference
from untwist.twists import constructive_alpha

# Programs around the library: `make test-slow` runs their tests.
pytestmark = pytest.mark.slow

THEORY = {figure.name: figure for figure in theory.make_figures()}
LONG = ("Administrative", "Informational", "ProductRelated")
FEATURES = (*LONG, *(f"{name}_Duration" for name in LONG), *(f"Feature {i}" for i in range(11)))  # 17, as of shoppers
METHODS = ("AdaBoost", "PILBoost 1.1", "PILBoost 2", "PILBoost 4", "XGBoost regularised")


@pytest.fixture
def mpl():
    return pytest.importorskip("matplotlib", reason="it draws the figures")


def curves(name, panel=0):
    return {line.label: (line.x, line.y) for line in THEORY[name].panels[panel].lines}


def some(x, y, count=40):
    """A few points of a curve, both ends included."""
    at = np.linspace(0, len(x) - 1, count).astype(int)
    return zip(x[at].tolist(), y[at].tolist(), strict=True)


def alpha_of(label):
    return float(label.removeprefix("α = ").replace("−", "-").replace("∞", "inf"))


def everything():
    rng = np.random.default_rng(0)
    x = np.array([0.05, 0.1, 0.2, 0.4])
    y = 1 - x
    lines = (
        Line("XGBoost", x, y - 0.2, y - 0.25, y - 0.15, marker=True),
        Line("PILBoost <&>", x, y, marker=True, ours=True),
        Line("Bayes", x, y + 0.1, dashed=True),
        Line("", x, y + 0.2),
    )
    marks = (Mark(0.8, "a fifth"), Mark(0.15, "here", vertical=True))
    bars = {"without twister": rng.dirichlet(np.ones(17)), "with twister": rng.dirichlet(np.ones(17))}
    panels = (
        Lines("curves of $a_b$", "noise", "accuracy", lines, marks),
        Lines("logarithmic", "noise", "accuracy", lines[:1], log_x=True, y_range=(0.0, 1.0)),
        Boxes("boxes", "accuracy", {name: rng.normal(0.9, 0.03, 20) for name in METHODS}),
        Bars("bars", "importance", FEATURES, bars),
        Heat(
            "cells", "alpha", "rate", (1.1, 2, math.inf), ("low", "high"), np.array([[0.5, 0.625, 1], [0, 0.25, 0.75]])
        ),
    )
    return Figure("every-kind", "Every kind of panel & more", "What <it> shows.", panels)


# ---- theory: the curves ----


def test_the_theory_figures_are_these():
    assert list(THEORY) == [
        "theory-partial-losses",
        "theory-logit",
        "theory-blunting",
        "theory-bound",
        "theory-cross-entropy",
        "theory-clipped-exact",
        "theory-clipped",
    ]
    labels = ["alphalossplot", "logitplot", "symBayesBlunting", "CEUB", "f-celoss-comp", "f-alpha", "tildef"]
    for figure, label in zip(THEORY.values(), labels, strict=True):
        assert label in figure.caption


def test_partial_losses_are_the_definition():
    lines = curves("theory-partial-losses")
    assert [alpha_of(label) for label in lines] == [0.5, 1, 2, 4, math.inf]
    for label, (u, cost) in lines.items():
        assert [c for _, c in some(u, cost)] == pytest.approx(
            [float(reference.partial_pos(x, alpha_of(label))) for x, _ in some(u, cost)], rel=1e-12
        )


def test_the_logit_is_the_logit():
    ((u, odds),) = curves("theory-logit").values()
    assert odds[[0, 200, -1]].tolist() == [-math.inf, 0, math.inf]
    np.testing.assert_allclose(np.exp(odds[:-1]), u[:-1] / (1 - u[:-1]), rtol=1e-12)


@pytest.mark.parametrize(("panel", "clean"), [(0, 0.9), (1, 0.1)])
def test_blunting_shows_the_non_negative_part_of_f(panel, clean):
    """The paper's eq. "eq:simpleexpressionf", and where theory knows its sign."""
    for label, (u, gain) in curves("theory-blunting", panel).items():
        a = alpha_of(label)
        inside = (u > 0) & (u < 1)
        v = u[inside]
        f = (a - 1) * (clean * np.log(v) + (1 - clean) * np.log(1 - v)) - np.log(v**a + (1 - v) ** a)
        np.testing.assert_allclose(np.nan_to_num(gain[inside]), np.maximum(f, 0), atol=1e-13)
        beyond = np.abs(u - 0.5) >= abs(clean - 0.5)
        assert np.isnan(gain[beyond]).all()  # more confident already: f < 0
        best = 1 / (1 + (1 / clean - 1) ** (1 / a))  # the twisted posterior that this very alpha undoes
        up_to_it = (np.abs(u - 0.5) <= abs(best - 0.5)) & (u != 0.5)
        assert (gain[up_to_it] > 0).all()
        assert gain[u == 0.5].tolist() == [0]


def test_blunting_is_symmetric():
    for right, left in zip(curves("theory-blunting", 0).values(), curves("theory-blunting", 1).values(), strict=True):
        np.testing.assert_allclose(right[1], left[1][::-1], atol=1e-12)


@pytest.mark.parametrize(("panel", "b"), [(0, 0.6), (1, 1.0)])
def test_the_bound_figure_by_quadrature(panel, b):
    def mean(function):
        return quad(function, -2, 2, epsabs=1e-12, epsrel=1e-12)[0] / 4

    def cross_entropy(alpha):
        def cost(x):
            clean, tilted = 1 / (1 + math.exp(-x / 10)), 1 / (1 + math.exp(-alpha * x / b))
            return -clean * math.log(tilted) - (1 - clean) * math.log(1 - tilted)

        return mean(cost)

    edge = mean(lambda x: math.tanh(x / 20) * x / b) / 2
    K, L = curves("theory-bound", panel).values()
    for alpha, value in some(*K, 21):
        assert value == pytest.approx(cross_entropy(alpha), abs=1e-10)
    for alpha, value in some(*L, 21):
        assert value == pytest.approx(math.log(1 + math.exp(2 * alpha)) - alpha * (2 + 2 * edge) / 2, abs=1e-12)
    assert (L[1] >= K[1] - 1e-15).all()  # a theorem for b = 1; for the paper's b = 0.6 it happens
    at_zero = K[0] == 0
    assert [K[1][at_zero].item(), L[1][at_zero].item()] == pytest.approx([math.log(2)] * 2, rel=1e-14)


def test_the_bound_needs_its_condition():
    alpha = np.linspace(-2, 2, 41)
    K, L = theory.cross_entropy_and_bound(alpha, a=10.0, b=0.5, B=2.0)
    assert (L < K - 0.01).any()  # the caption says so


def test_the_bound_is_least_at_the_constructive_alpha():
    node, weight = np.polynomial.legendre.leggauss(100)
    clean, twisted = 1 / (1 + np.exp(-2 * node / 10)), 1 / (1 + np.exp(-2 * node))
    found = constructive_alpha(clean, twisted, 2.0, weight)
    K, L = theory.cross_entropy_and_bound(found.alpha + np.array([-1e-3, 0, 1e-3]), a=10.0, b=1.0, B=2.0)
    assert L.argmin() == 1
    assert [K[1], L[1]] == pytest.approx([found.cross_entropy, found.bound], rel=1e-12)


def test_cross_entropy_at_alpha_star_is_the_entropy():
    (p, best), (_, proper) = curves("theory-cross-entropy").values()
    assert [h for _, h in some(p, best)] == pytest.approx(
        [float(reference.binary_entropy(x)) for x, _ in some(p, best)], abs=1e-14
    )
    np.testing.assert_allclose(proper, math.log(1 + math.e) - p, rtol=1e-13)
    assert (best <= proper).all()
    assert proper.min() == pytest.approx(0.313, abs=5e-4)  # the caption says so
    assert p[(proper - best).argmin()] == pytest.approx(1 / (1 + math.exp(-1)), abs=0.002)


def test_clipped_and_exact_are_the_paper_s():
    (z, clipped), (_, exact) = curves("theory-clipped-exact").values()
    ((_, difference),) = curves("theory-clipped-exact", 1).values()
    for x, value in some(z, clipped):
        assert value == pytest.approx(float(reference.clipped_inverse(x, 5)), abs=1e-12)
    for x, value in some(z, exact, 15):
        assert value == pytest.approx(float(reference.canonical_inverse(x, 5)), abs=1e-12)
    same = (np.abs(z) >= 1.25) | (z == 0)
    assert same.sum() > 50
    np.testing.assert_array_equal(clipped[same], exact[same])
    np.testing.assert_array_equal(difference, clipped - exact)


def test_the_caption_names_the_greatest_difference():
    caption = THEORY["theory-clipped-exact"].caption
    claimed, where = map(float, re.search(r"difference is ([\d.]+), at z = ±([\d.]+\d)", caption).groups())

    def difference(z):
        return float(abs(reference.clipped_inverse(z, 5) - reference.canonical_inverse(z, 5)))

    with mpmath.workdps(30):
        assert difference(where) == pytest.approx(claimed, abs=5e-6)
        others = [*np.linspace(0.1, 1.2, 12), where - 1e-3, where + 1e-3, 1.245, 1.2499]
        assert all(difference(z) < claimed for z in others)


def test_clipped_links_are_the_paper_s():
    twisted, clean = curves("theory-clipped", 0), curves("theory-clipped", 1)
    assert [alpha_of(label) for label in twisted] == [1.001, 1.5, 2, 5, 100, -2]
    for label in twisted:
        a = alpha_of(label)
        for x, value in some(*twisted[label]):
            assert value == pytest.approx(float(reference.clipped_inverse(x, a)), abs=1e-12)
        for x, value in some(*clean[label]):
            assert value == pytest.approx(float(reference.clipped_tilted(x, a)), abs=1e-12)
    np.testing.assert_array_equal(twisted["α = 2"][1], twisted["α = −2"][1])
    np.testing.assert_allclose(clean["α = 2"][1], 1 - clean["α = −2"][1], atol=1e-15)


# ---- drawing ----

ALL = THEORY | {"every-kind": everything()}


@cache
def drawn(name):
    return draw_svg(ALL[name])


def words(text):
    return " ".join(ElementTree.fromstring(text).itertext()).split()


def labels_of(panel):
    yield panel.title
    yield panel.y_label
    match panel:
        case Lines():
            yield panel.x_label
            yield from (line.label for line in panel.lines)
            yield from (mark.label for mark in panel.marks)
        case Boxes():
            yield from panel.boxes
        case Bars():
            yield from (*panel.names, *panel.bars)
        case Heat():
            yield panel.x_label
            yield from ("1.1", "2", "∞", "low", "high", "0.625", "0.000")


@pytest.mark.parametrize("name", ["theory-clipped-exact", "every-kind"])
@pytest.mark.thinned(3)
def test_an_svg_is_the_same_every_time(mpl, name):
    assert draw_svg(ALL[name]) == drawn(name)


@pytest.mark.parametrize("name", ALL)
def test_an_svg_says_all_and_needs_nothing(mpl, name):
    figure, text = ALL[name], drawn(name)
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") == figure.title
    assert [root[0].text, root[1].text] == [figure.title, figure.caption]
    said = words(text)
    for label in (figure.title, *(label for panel in figure.panels for label in labels_of(panel))):
        assert set(label.split()) <= set(said), label
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert not re.search(r"<image|@import|<script|dasharray: *[;\"]", text)  # no dashes is not "dashes of nothing"
    assert len(text) < 100_000


def test_several_svgs_share_a_page(mpl):
    seen = set()
    for name in ALL:
        text = drawn(name)
        ids = re.findall(r'\bid="([^"]*)"', text)
        assert name in ids
        assert len(ids) == len(set(ids))
        assert not seen & set(ids)
        seen |= set(ids)
        assert set(re.findall(r'(?:href="|url\()#([^")]*)', text)) <= set(ids)
        (style,) = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
        assert all(rule.startswith(f"#{name}") for rule in re.findall(r"[^{}]+(?={)", style))


def test_a_png_has_its_size(mpl):
    def size(figure):
        data = draw_png(figure)
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        return struct.unpack(">II", data[16:24])

    one, *_ = everything().panels
    small = Figure("small", "small", "", (replace(one, lines=(Line("", np.arange(3.0), np.arange(3.0)),)),))
    assert size(small) == (660, 536)  # 3.3 x 2.5 inches and a line for the title
    assert size(replace(small, panels=small.panels * 3)) == (1320, 1036)
    assert size(replace(small, panels=small.panels * 3, columns=3)) == (1980, 536)
    assert draw_png(small) == draw_png(small)


def test_drawing_leaves_the_settings_of_others_alone(mpl):
    expected = draw_svg(THEORY["theory-logit"])
    with mpl.rc_context({"font.size": 30, "axes.grid": True, "svg.hashsalt": None, "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        assert draw_svg(THEORY["theory-logit"]) == expected
        draw_png(THEORY["theory-logit"])
        assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_matplotlib_is_loaded_to_draw_only_and_pyplot_never(mpl):
    code = (
        "import sys\nfrom experiments.paper import figures, theory\nlogit = theory.make_figures()[1]\n"
        "print('matplotlib' in sys.modules)\nfigures.draw_svg(logit)\nfigures.draw_png(logit)\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.split() == ["False", "True", "False"]
    # Where it draws for the first time, Matplotlib says that it looks for fonts if that takes five seconds.
    assert [line for line in output.stderr.splitlines() if "font cache" not in line] == []


@pytest.mark.parametrize("draw", [draw_svg, draw_png])
def test_without_matplotlib_one_line_says_what_to_do(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"^figures need matplotlib: pip install matplotlib$"):
        draw(THEORY["theory-logit"])


NAN, NOTHING = np.full(3, np.nan), np.array([])


@pytest.mark.parametrize(
    "panel",
    [
        Lines("empty", "x", "y", ()),
        Lines("empty", "x", "y", (Line("a", NOTHING, NOTHING),)),
        Lines("empty", "x", "y", (Line("a", np.arange(3.0), NAN, NAN, NAN), Line("b", NAN, np.full(3, np.inf)))),
        Lines("empty", "x", "y", (Line("a", np.array([-1.0, 0.0]), np.ones(2)),), log_x=True),
        Boxes("empty", "y", {}),
        Boxes("empty", "y", {"a": NOTHING, "b": NAN}),
        Bars("empty", "y", (), {}),
        Bars("empty", "y", ("a", "b", "c"), {"with": NAN}),
        Heat("empty", "x", "y", (), (), np.empty((0, 0))),
        Heat("empty", "x", "y", (1, 2, 3), (1,), NAN[None]),
    ],
)
def test_a_panel_without_data_says_so(mpl, panel):
    text = draw_svg(Figure("nothing", "Nothing", "", (panel,)))
    assert "no data" in text
    assert "empty" in words(text)


def test_a_panel_with_some_data_draws_it(mpl):
    x = np.array([0.0, 1.0, 2.0, 3.0])
    gaps = np.array([np.nan, 1.0, np.inf, 2.0])
    panels = (
        Lines("", "x", "y", (Line("a", x, gaps, gaps - 1, gaps + 1), Line("b", x, x * np.nan)), log_x=True),
        Boxes("", "y", {"none": NAN, "some": gaps, "one": np.ones(1)}),
        Bars("", "y", ("a", "b", "c", "d"), {"with": gaps}),
        Heat("", "x", "y", x, (1,), gaps[None]),
    )
    text = draw_svg(Figure("gaps", "Gaps", "", panels))
    assert "no data" not in text
    assert {"none", "some", "one", "1.000", "2.000"} <= set(words(text))
    assert "nan" not in text.lower()


def test_names_and_legend_do_not_overlap(mpl):
    figure = everything()
    with mpl.rc_context(figures.STYLE):
        canvas = figures._lay_out(figure)
        canvas.draw_without_rendering()
        for axes, panel in zip(canvas.axes, figure.panels, strict=True):
            ticks = [tick.get_window_extent() for tick in axes.get_xticklabels() if tick.get_text()]
            if isinstance(panel, Bars):  # slanted: neighbours are a line of text apart
                gap = (ticks[1].x1 - ticks[0].x1) * math.sin(math.radians(55))
                assert gap > 0.9 * 7 * canvas.dpi / 72
            else:
                assert all(one.x1 < other.x0 for one, other in pairwise(ticks))
            legend = canvas.legends[0].get_window_extent()
            whole = axes.get_tightbbox()
            assert not legend.overlaps(whole)
            assert canvas.bbox.x0 <= whole.x0
            assert whole.x1 <= canvas.bbox.x1


@pytest.mark.parametrize("change", [{"name": "a b"}, {"name": ""}, {"panels": ()}, {"columns": 0}])
def test_a_figure_refuses_what_it_cannot_be(change):
    with pytest.raises(ValueError, match="|".join(change)):
        replace(everything(), **change)
