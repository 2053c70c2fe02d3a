"""Links: closed forms against 80-digit arithmetic, and against the general recipe that works for any loss."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import quad

from helpers import reference
from untwist.links import CanonicalLink, ClippedLink, HalfLogitLink, LogitLink, default_step_size
from untwist.losses import AlphaLoss, ExponentialLoss, FocalLoss, LogLoss, Loss, MatusitaLoss, SquareLoss, SuperLoss

ALPHAS = [0.1, 0.5, 0.9, 1 - 1e-12, 1.0, 1 + 1e-12, 1.0001, 1.1, 1.5, 2.0, 4.0, 8.0, 100.0, 1e6, math.inf]
KINDS = {CanonicalLink: reference.canonical_inverse, ClippedLink: reference.clipped_inverse}

every_alpha = pytest.mark.parametrize("alpha", ALPHAS)
both_kinds = pytest.mark.parametrize("kind", KINDS)


def draw_scores(link, rng, near=0.999):
    """Random scores inside the clip, tiny ones, and some near its end."""
    reach = min(link.clip, 30.0)
    return np.concatenate(
        [rng.uniform(-reach, reach, 12) * near, [0.0, 1e-12, -1e-3], reach * near * np.array([1.0, -1.0])]
    )


@every_alpha
@both_kinds
@pytest.mark.thinned(3)
def test_alpha_inverse_is_exact(kind, alpha):
    """Absolute error below 1e-12 away from the clip (in fact below 1e-15)."""
    link = kind(AlphaLoss(alpha))
    z = draw_scores(link, np.random.default_rng(0))
    exact = np.array([float(KINDS[kind](x, alpha)) for x in z])
    np.testing.assert_allclose(link.inverse(z), exact, rtol=0, atol=1e-15)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0, 4.0, 30.0])
@both_kinds
@pytest.mark.thinned(3)
def test_alpha_inverse_near_the_clip_is_exact_for_the_z_it_is_given(kind, alpha):
    """For alpha > 2 the slope is infinite at the clip, so z is taken as the exact float that it is."""
    link = kind(AlphaLoss(alpha))
    # The clip c is not a float: 1e-13 keeps the distance to it well determined by alpha and z.
    z = -link.clip * (1 - np.geomspace(1e-13, 1e-3, 11))
    exact = np.array([float(KINDS[kind](x, alpha)) for x in z])
    np.testing.assert_allclose(link.inverse(z), exact, rtol=1e-12)


@every_alpha
@both_kinds
def test_beyond_the_clip_the_posterior_is_exactly_0_or_1(kind, alpha):
    link = kind(AlphaLoss(alpha))
    far = 1.001 * link.clip if alpha > 1 else math.inf
    np.testing.assert_array_equal(link.inverse([-far, far, -math.inf, math.inf]), [0, 1, 0, 1])
    np.testing.assert_array_equal(link.tilted([-far, far]), [0, 1])
    np.testing.assert_array_equal(link.weights([far, -far]), [0, 1])
    np.testing.assert_array_equal(link.curvature([far, -far]), [0, 0])
    assert math.isnan(link.inverse(math.nan))
    assert math.isnan(link.tilted(math.nan))
    assert link.inverse(0.0) == link.tilted(0.0) == 0.5


@every_alpha
@both_kinds
def test_link_and_inverse_undo_each_other(kind, alpha):
    link = kind(AlphaLoss(alpha))
    v = np.linspace(0.01, 0.99, 41)
    if math.isfinite(alpha):
        # The link flattens where t = sigma(alpha * logit(v)) is 0 or 1 to rounding.
        v = v[np.abs(alpha * np.log(v / (1 - v))) < 15]
        np.testing.assert_allclose(link.inverse(link.link(v)), v, rtol=1e-9)
    else:
        np.testing.assert_array_equal(link.link([0.2, 0.5, 0.8]), [-1, 0, 1])
    u = link.tilted(z := draw_scores(link, np.random.default_rng(1), near=0.9))
    kept = (u > 1e-9) & (u < 1 - 1e-9)
    np.testing.assert_allclose(link.score(u[kept]), z[kept], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 4.0, math.inf])
@both_kinds
def test_a_negative_alpha_complements_the_clean_posterior_only(kind, alpha):
    link, mirrored = kind(AlphaLoss(alpha)), kind(AlphaLoss(-alpha))
    z = draw_scores(link, np.random.default_rng(2))
    v = np.linspace(0, 1, 21)
    np.testing.assert_array_equal(mirrored.link(v), link.link(v))
    for same in ("inverse", "inverse_derivative", "weights", "margin_loss"):
        np.testing.assert_array_equal(getattr(mirrored, same)(z), getattr(link, same)(z))
    np.testing.assert_allclose(mirrored.tilted(z), 1 - link.tilted(z), atol=1e-15)
    assert default_step_size(mirrored) == default_step_size(link)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.0001, 1.1, 2.0, 4.0, 30.0, math.inf])
@pytest.mark.thinned(2)
def test_surrogate_and_implied_margin_loss_are_exact(alpha):
    loss = AlphaLoss(alpha)
    clip = min(CanonicalLink(loss).clip, 6.0)
    margins = clip * np.array([-1.5, -0.8, -0.2, 0.0, 0.3, 0.7, 0.95, 1.2])
    for kind, exact in ((CanonicalLink, reference.surrogate), (ClippedLink, reference.implied_margin_loss)):
        expected = [float(exact(m, alpha)) for m in margins]
        np.testing.assert_allclose(kind(loss).margin_loss(margins), expected, rtol=1e-12, atol=1e-13)


BOOSTABLE = [
    *(AlphaLoss(alpha) for alpha in (0.5, 1.0, 1.1, 2.0, 4.0, 30.0)),
    LogLoss(),
    SquareLoss(),
    MatusitaLoss(),
    FocalLoss(0.5),
    FocalLoss(2.0),
]


@pytest.mark.parametrize("loss", BOOSTABLE, ids=repr)
@both_kinds
def test_closed_forms_agree_with_the_general_recipe(kind, loss):
    """Lemma "lemINVERTLP" and the definition of the canonical link, from the partial losses alone."""
    link, twin = kind(loss), kind.numerical(loss)
    z = np.linspace(-3, 3, 61)
    v = np.linspace(0.02, 0.98, 25)
    assert link.clip == pytest.approx(twin.clip)
    np.testing.assert_allclose(link.link(v), twin.link(v), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(link.tilted(z), twin.tilted(z), atol=1e-13)
    np.testing.assert_allclose(link.inverse(z), twin.inverse(z), atol=1e-12)
    np.testing.assert_allclose(link.margin_loss(z), twin.margin_loss(z), rtol=1e-11, atol=1e-12)
    inside = np.abs(z) < 0.99 * link.clip
    np.testing.assert_allclose(link.curvature(z[inside]), twin.curvature(z[inside]), rtol=1e-7)


@pytest.mark.parametrize("loss", BOOSTABLE, ids=repr)
@both_kinds
@pytest.mark.thinned(5)
def test_the_weights_are_the_slope_and_the_curvature_theirs(kind, loss):
    """margin_loss(a) - margin_loss(b) is the integral of the weights; likewise the weights of the curvature."""
    link = kind(loss)
    reach = min(0.95 * link.clip, 4.0)
    for low, high in ((-reach, -0.3 * reach), (-0.1 * reach, 0.4 * reach), (0.4 * reach, reach)):
        area = quad(link.weights, low, high, epsabs=1e-12)[0]
        assert link.margin_loss(low) - link.margin_loss(high) == pytest.approx(area, abs=1e-9)
        bend = quad(link.curvature, low, high, epsabs=1e-12, points=[0.0])[0]
        assert link.weights(low) - link.weights(high) == pytest.approx(bend, abs=1e-8)
    assert link.margin_loss(1e4) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("loss", BOOSTABLE, ids=repr)
def test_clipped_meets_canonical_at_0_half_and_1(loss):
    ends = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(ClippedLink(loss).link(ends), CanonicalLink(loss).link(ends), rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 1.1, 2.0, 4.0, 8.0])
def test_slopes_at_zero(alpha):
    """f'(0) = 1/(2 alpha) from alpha = 1 on, 2^(-1/alpha)/alpha below; F''(0) = 2^(1/c - 2)/alpha."""
    loss = AlphaLoss(alpha)
    clipped = 1 / (2 * alpha) if alpha >= 1 else 2 ** (-1 / alpha) / alpha
    assert ClippedLink(loss).curvature(0.0) == pytest.approx(clipped, rel=1e-13)
    assert CanonicalLink(loss).curvature(0.0) == pytest.approx(2 ** (loss.exponent - 2) / alpha, rel=1e-13)


def test_alpha_2_in_closed_form():
    z = np.linspace(-2, 2, 41)
    np.testing.assert_allclose(CanonicalLink(AlphaLoss(2.0)).tilted(z), 0.5 + z * np.sqrt(8 - z**2) / 8, atol=1e-15)


@pytest.mark.parametrize(
    ("alpha", "kind", "limit"),
    [
        (1.5, ClippedLink, 0.0),
        (2.0, ClippedLink, 2**-1.5),
        (2.0, CanonicalLink, 0.5),
        (4.0, ClippedLink, math.inf),
        (math.inf, CanonicalLink, math.inf),
    ],
)
def test_curvature_at_the_clip(alpha, kind, limit):
    link = kind(AlphaLoss(alpha))
    assert link.clip_curvature == limit
    close = link.curvature(link.clip * (1 - 1e-12))
    if math.isfinite(limit):
        assert close == pytest.approx(limit, abs=1e-4)
    elif math.isfinite(alpha):
        assert close > 100


@pytest.mark.parametrize(
    "loss", [AlphaLoss(1.5), AlphaLoss(2.0), AlphaLoss(4.0), LogLoss(), MatusitaLoss(), SquareLoss()], ids=repr
)
@both_kinds
@pytest.mark.thinned(2)
def test_largest_curvature_against_a_dense_look(kind, loss):
    link = kind(loss)
    rng = np.random.default_rng(3)
    reach = min(0.98 * link.clip, 3.0)
    for _ in range(20):
        low, high = np.sort(rng.uniform(-reach, reach, 2))
        dense = link.curvature(np.linspace(low, high, 4001)).max()
        assert link.largest_curvature(low, high) == pytest.approx(dense, rel=1e-3)
        assert link.largest_curvature(low, high) >= dense * (1 - 1e-9)
    assert link.largest_curvature(-math.inf, math.inf) >= link.curvature(0.0) * (1 - 1e-9)


@pytest.mark.parametrize("loss", BOOSTABLE, ids=repr)
@both_kinds
def test_far_margins(kind, loss):
    """For symmetric losses the margin loss of -m exceeds that of m by exactly m, however large."""
    link = kind(loss)
    np.testing.assert_allclose(link.margin_loss([-1e3, -1e8, -1e300]), [1e3, 1e8, 1e300], rtol=1e-2)
    assert link.margin_loss(math.inf) == 0
    assert math.isnan(link.margin_loss(math.nan))
    assert math.isnan(link.curvature(math.nan))


@pytest.mark.parametrize("alpha", [5e-4, 1e-2])
@both_kinds
def test_tiny_alpha(kind, alpha):
    link = kind(AlphaLoss(alpha))
    np.testing.assert_array_equal(link.inverse([-math.inf, 0.0, math.inf]), [0.0, 0.5, 1.0])
    assert 0 <= link.curvature(0.0) < 1e-20
    assert link.inverse(1.0) >= 0.5


@pytest.mark.parametrize("alpha", [-0.5, -2.0, -4.0])
@both_kinds
def test_score_and_tilted_undo_each_other_for_negative_alpha(kind, alpha):
    link = kind(AlphaLoss(alpha))
    u = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(link.tilted(link.score(u)), u, rtol=1e-9)
    slope = (link.score(u + 1e-6) - link.score(u - 1e-6)) / 2e-6
    np.testing.assert_allclose(link.score_derivative(u), slope, rtol=1e-4)


def test_half_logit_link_is_adaboost():
    link = HalfLogitLink(ExponentialLoss())
    m = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(link.margin_loss(m), np.exp(-m))
    np.testing.assert_allclose(link.inverse(link.link([0.1, 0.8])), [0.1, 0.8])
    np.testing.assert_allclose(ExponentialLoss().partial_pos(link.tilted(m)), np.exp(-m))
    u = np.array([0.2, 0.5, 0.9])
    slope = (link.score(u + 1e-6) - link.score(u - 1e-6)) / 2e-6
    np.testing.assert_allclose(link.score_derivative(u), slope, rtol=1e-6)
    assert link.score_derivative(1.0) == math.inf
    assert link.largest_curvature(-math.inf, math.inf) == math.inf
    with pytest.raises(ValueError, match=r"loss must be ExponentialLoss\(\)"):
        HalfLogitLink(LogLoss())


@pytest.mark.parametrize("alpha", [1.0, 1.1, 2.0, 4.0, 50.0])
def test_logit_link_has_log_odds_for_scores_and_the_slopes_of_the_loss_for_weights(alpha):
    loss = AlphaLoss(alpha)
    link = LogitLink(loss)
    m = np.linspace(-6, 6, 25)
    np.testing.assert_allclose(link.tilted(m), 1 / (1 + np.exp(-m)))
    np.testing.assert_allclose(link.margin_loss(m), loss.partial_pos(link.tilted(m)), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(loss.tilted_estimate(link.inverse(m)), link.tilted(m), rtol=1e-10)
    np.testing.assert_allclose(link.inverse(link.link([0.4, 0.5, 0.55])), [0.4, 0.5, 0.55])
    for function, derivative, sign in [
        (link.margin_loss, link.weights, -1.0),
        (link.weights, link.curvature, -1.0),
        (link.inverse, link.inverse_derivative, 1.0),
    ]:
        slope = (function(m + 1e-5) - function(m - 1e-5)) / 2e-5
        np.testing.assert_allclose(derivative(m), sign * slope, rtol=1e-6, atol=1e-9)
    u = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(
        link.score_derivative(u), (link.score(u + 1e-6) - link.score(u - 1e-6)) / 2e-6, rtol=1e-6
    )
    assert link.weights([-1e300, 1e300]).tolist() == [1.0 if alpha == 1 else 0.0, 0.0]
    assert np.isnan(link.weights(np.nan))


def test_logit_link_at_alpha_1_is_the_canonical_one():
    m = np.linspace(-5, 5, 11)
    logit, canonical = LogitLink(AlphaLoss(1.0)), CanonicalLink(AlphaLoss(1.0))
    for name in ("tilted", "inverse", "weights", "margin_loss", "curvature"):
        np.testing.assert_allclose(getattr(logit, name)(m), getattr(canonical, name)(m), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("loss", [AlphaLoss(0.5), AlphaLoss(-2.0), AlphaLoss(math.inf), SquareLoss()], ids=repr)
def test_logit_link_refuses(loss):
    with pytest.raises(ValueError, match=r"finite alpha >= 1"):
        LogitLink(loss)


@pytest.mark.parametrize(
    ("alpha", "step"), [(0.5, 1.0), (1.0, 2.0), (1.1, 2.2), (2.0, 4.0), (4.0, 8 / 3), (math.inf, 2.0)]
)
def test_default_step_size(alpha, step):
    assert default_step_size(ClippedLink(AlphaLoss(alpha))) == pytest.approx(step)


@pytest.mark.parametrize("loss", [SquareLoss(), MatusitaLoss(), FocalLoss(2.0)], ids=repr)
def test_default_step_size_of_other_losses_is_one_over_the_curvature(loss):
    link = ClippedLink(loss)
    assert default_step_size(link) * link.curvature(0.0) == pytest.approx(1.0)


class Lopsided(Loss):
    def partial_pos(self, u):
        return (1.0 - np.asarray(u, float)) ** 2

    def partial_neg(self, u):
        return np.asarray(u, float) ** 3


def test_the_canonical_link_of_a_lopsided_loss():
    """Without symmetry: the weights are the slope of the margin loss, which is straight beyond both ends."""
    link = CanonicalLink(Lopsided())
    assert link.clip == 1.0
    for low, high in ((-3.0, -1.2), (-1.5, -0.5), (-0.5, 0.5), (0.3, 1.4)):
        area = quad(link.weights, low, high, epsabs=1e-12, points=[-1.0, 1.0])[0]
        assert link.margin_loss(low) - link.margin_loss(high) == pytest.approx(area, abs=1e-7)
    assert link.margin_loss(-3.0) == pytest.approx(3.0)
    assert link.margin_loss(1.5) == 0.0


def test_the_canonical_link_of_a_lopsided_loss_without_a_clip():
    class Open(Lopsided):
        def partial_neg(self, u):
            return -np.log1p(-np.asarray(u, float))

    link = CanonicalLink(Open())
    assert link.clip == math.inf
    assert link.margin_loss(1.5) == 0.0
    area = quad(link.weights, -4.0, 1.5, epsabs=1e-12, points=[1.0])[0]
    assert link.margin_loss(-4.0) == pytest.approx(area, abs=1e-7)


class Sloped(Loss):
    """It falls all the way to 1: rare classes are never estimated, and the weights jump to 0 at the clip."""

    def partial_pos(self, u):
        return (1.0 - np.asarray(u, float)) ** 2 + 0.1 * (1.0 - np.asarray(u, float))


@both_kinds
def test_weights_are_the_slope_beyond_a_clip_where_they_jump(kind):
    link = kind(Sloped())
    np.testing.assert_array_equal(link.weights([1.01 * link.clip, -1.01 * link.clip]), [0.0, 1.0])
    assert link.weights(0.999 * link.clip) > 0.04
    for low, high in ((-2.0 * link.clip, -0.5), (-0.5, 0.5), (0.5, 2.0 * link.clip)):
        area = quad(link.weights, low, high, epsabs=1e-12, points=[-link.clip, link.clip])[0]
        assert link.margin_loss(low) - link.margin_loss(high) == pytest.approx(area, abs=1e-7)


@pytest.mark.parametrize("kind", [CanonicalLink, ClippedLink])
def test_numerical_posteriors_are_exact_from_the_clip_on(kind):
    link = kind.numerical(AlphaLoss(2.0))
    np.testing.assert_array_equal(link.tilted([-link.clip, link.clip]), [0.0, 1.0])
    np.testing.assert_array_equal(link.curvature([-1.01 * link.clip, 1.01 * link.clip]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClippedLink(SuperLoss(LogLoss(), 0.7, 0.5)), "property E"),
        (lambda: ClippedLink(Lopsided()), "property S"),
        (lambda: ClippedLink.numerical(AlphaLoss(-2.0)), "property M"),
        (lambda: ClippedLink(AlphaLoss(0.0)), "alpha must not be 0"),
        (lambda: CanonicalLink(AlphaLoss(0.0)), "alpha must not be 0"),
        (lambda: CanonicalLink.numerical(AlphaLoss(-2.0)), "property M"),
        (lambda: CanonicalLink(SuperLoss(LogLoss(), 1.0, 1.0)), "invertible tilted estimate"),
        (lambda: CanonicalLink.numerical("log"), "loss must be a Loss, got 'log'"),
        (lambda: CanonicalLink("log"), "loss must be a Loss, got 'log'"),
        (lambda: CanonicalLink(LogLoss()).link(1.5), r"must lie in \[0, 1\], got 1.5"),
    ],
)
def test_bad_losses_are_refused_with_the_reason(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@both_kinds
def test_any_shape_dtype_and_layout(kind):
    link = kind(AlphaLoss(2.0))
    z = np.linspace(-1, 1, 24)
    expected = link.inverse(z)
    np.testing.assert_array_equal(link.inverse(z.reshape(2, 3, 4)).ravel(), expected)
    np.testing.assert_array_equal(link.inverse(np.asfortranarray(z.reshape(4, 6))).ravel(), expected)
    np.testing.assert_array_equal(link.inverse(z[::2]), expected[::2])
    np.testing.assert_array_equal(link.inverse(z.astype(">f8")), expected)
    np.testing.assert_array_equal(link.inverse(z.tolist()), expected)
    assert link.inverse([]).shape == (0,)
    assert np.ndim(link.inverse(1)) == 0


def test_closed_forms_are_there_when_nothing_but_the_links_is_imported():
    code = (
        "from untwist.theory.links import CanonicalLink, ClippedLink; from untwist.theory.losses import AlphaLoss; "
        "print(*(type(kind(AlphaLoss(2.0))) is not kind for kind in (CanonicalLink, ClippedLink)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.split() == ["True", "True"]


@both_kinds
def test_links_can_be_pickled_and_copied(kind):
    link = kind(AlphaLoss(1.7))
    for one in (link, kind.numerical(AlphaLoss(1.7))):
        for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert type(twin) is type(one)
            np.testing.assert_array_equal(twin.inverse([-0.3, 0.7]), one.inverse([-0.3, 0.7]))
    assert repr(link) == f"{kind.__name__}(AlphaLoss(alpha=1.7))"
