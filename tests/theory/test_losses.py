"""Every loss: its closed forms against the numerical definitions of the base class, and its properties.

A new loss is tested by being added to LOSSES.
"""

import math

import numpy as np
import pytest

from untwist.links import CanonicalLink, ClippedLink, default_step_size
from untwist.losses import (
    AlphaLoss,
    ExponentialLoss,
    FocalLoss,
    LogLoss,
    Loss,
    MatusitaLoss,
    SquareLoss,
    SuperLoss,
    tilt,
)
from untwist.properties import differentiable, extremes, monotone, proper, properties, strictly_proper, symmetric
from untwist.theory.numerics import slope

LOSSES = [
    *(AlphaLoss(alpha) for alpha in (0.3, 0.9, 1 - 1e-12, 1.0, 1 + 1e-12, 1.0001, 1.1, 2.0, 4.0, 30.0, math.inf)),
    *(AlphaLoss(alpha) for alpha in (-0.5, -1.0, -2.0, -8.0, -math.inf)),
    LogLoss(),
    SquareLoss(),
    MatusitaLoss(),
    ExponentialLoss(),
    FocalLoss(0.0),
    FocalLoss(0.5),
    FocalLoss(2.0),
    FocalLoss(7.0),
    SuperLoss(LogLoss(), tau=0.7, lam=0.5),
    SuperLoss(LogLoss(), tau=0.1, lam=2.0),
    SuperLoss(SquareLoss(), tau=0.25, lam=0.3),
    SuperLoss(AlphaLoss(2.0), tau=0.5, lam=1.0),
]
U = np.unique(
    np.concatenate([np.linspace(0.001, 0.999, 97), np.geomspace(1e-9, 0.4, 20), 1 - np.geomspace(1e-9, 0.4, 20)])
)
ETA = np.array([0.0, 1e-6, 0.01, 0.1, 0.3, 0.5, 0.77, 0.99, 1 - 1e-6, 1.0])

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


class Numerical(Loss):
    """A loss stripped of everything but its partial losses: the slow twin."""

    def __init__(self, loss):
        self.loss = loss

    def partial_pos(self, u):
        return self.loss.partial_pos(u)

    def partial_neg(self, u):
        return self.loss.partial_neg(u)


@every_loss
def test_derivatives_are_those_of_the_partial_losses(loss):
    inside = U[(U > 1e-3) & (U < 1 - 1e-3)]
    twin = Numerical(loss)
    rtol = 1e-2 if isinstance(loss, SuperLoss) else 1e-8  # Its slope has a square-root kink where it stops damping.
    np.testing.assert_allclose(loss.partial_pos_derivative(inside), twin.partial_pos_derivative(inside), rtol=rtol)
    np.testing.assert_allclose(loss.partial_neg_derivative(inside), twin.partial_neg_derivative(inside), rtol=rtol)


@every_loss
@pytest.mark.thinned(3)
def test_tilted_set_agrees_with_the_numerical_one(loss):
    for closed, numerical in zip(loss.tilted_set(ETA), Numerical(loss).tilted_set(ETA), strict=True):
        np.testing.assert_allclose(closed, numerical, atol=1e-7)


@every_loss
def test_no_estimate_beats_the_tilted_one(loss):
    """Brute force: the Bayes risk is the conditional risk at both ends of the tilted set, and no u does better."""
    grid = np.concatenate([[0.0], U, [1.0]])
    risks = loss.conditional_risk(grid, ETA[:, None])
    bayes = loss.bayes_risk(ETA)
    for end in loss.tilted_set(ETA):
        np.testing.assert_allclose(loss.conditional_risk(end, ETA), bayes, rtol=1e-9, atol=1e-12)
    assert (risks >= bayes[:, None] - 1e-12 * (1 + np.abs(bayes[:, None]))).all()


@every_loss
@pytest.mark.thinned(3)
def test_bayes_risk_agrees_with_the_numerical_one(loss):
    np.testing.assert_allclose(loss.bayes_risk(ETA), Numerical(loss).bayes_risk(ETA), rtol=1e-9, atol=1e-12)


@every_loss
def test_tilted_estimate_lies_in_the_tilted_set(loss):
    low, high = loss.tilted_set(ETA)
    estimate = loss.tilted_estimate(ETA)
    assert ((low <= estimate) & (estimate <= high)).all()


def find_jumps(loss):
    return isinstance(loss, SuperLoss) or (isinstance(loss, AlphaLoss) and math.isinf(loss.alpha))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not find_jumps(loss)], ids=repr)
def test_tilted_inverse_undoes_the_tilted_estimate(loss):
    estimate = loss.tilted_estimate(eta := np.linspace(0.05, 0.95, 19))
    kept = np.abs(estimate - 0.5) < 0.5 - 1e-6  # Closer to 0 or 1 than that, rounding has taken the answer away.
    assert kept.any()
    np.testing.assert_allclose(loss.tilted_inverse(estimate[kept]), eta[kept], atol=1e-9)


@every_loss
def test_scalars_lists_and_arrays_of_any_shape(loss):
    assert np.ndim(loss.partial_pos(0.3)) == np.ndim(loss.bayes_risk(0.3)) == np.ndim(loss.tilted_estimate(0.3)) == 0
    square = np.linspace(0.1, 0.8, 6).reshape(2, 3)
    for function in (loss.partial_pos, loss.partial_neg_derivative, loss.bayes_risk, loss.tilted_estimate):
        np.testing.assert_allclose(function(square).ravel(), function(square.ravel().tolist()), rtol=1e-12)
    assert loss.conditional_risk(square[:1], square[:, :1]).shape == (2, 3)
    assert loss.bayes_risk([]).shape == (0,)


@every_loss
@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, [0.5, 2.0], "half"])
def test_values_outside_the_unit_interval_are_refused(loss, bad):
    for call in (loss.partial_pos, loss.partial_neg, loss.partial_pos_derivative, loss.partial_neg_derivative):
        with pytest.raises(ValueError, match=r"^u must"):
            call(bad)
    for call in (loss.bayes_risk, loss.tilted_estimate, loss.tilted_set):
        with pytest.raises(ValueError, match=r"^eta must"):
            call(bad)


#: What each kind of loss is, letter by letter. The checks must find exactly this.
EXPECTED = [
    (AlphaLoss(2.0), "MDSE"),
    (AlphaLoss(0.5), "MDSE"),
    (AlphaLoss(1.0), "MDSEPp"),
    (AlphaLoss(1.0001), "MDSE"),
    (AlphaLoss(-2.0), "DS"),
    (AlphaLoss(math.inf), "MDSE"),
    (LogLoss(), "MDSEPp"),
    (SquareLoss(), "MDSEPp"),
    (MatusitaLoss(), "MDSEPp"),
    (FocalLoss(0.0), "MDSEPp"),
    (FocalLoss(2.0), "MDSE"),
    (SuperLoss(LogLoss(), 0.7, 0.5), "MDS"),
]


@pytest.mark.parametrize(("loss", "letters"), EXPECTED, ids=[repr(loss) for loss, _ in EXPECTED])
@pytest.mark.thinned(3)
def test_properties_hold_exactly_where_they_should(loss, letters):
    checks = {"M": monotone, "D": differentiable, "S": symmetric, "E": extremes, "P": proper, "p": strictly_proper}
    assert "".join(letter for letter, check in checks.items() if check(loss)) == letters
    assert sum(map(bool, properties(loss).values())) == len(letters)


class Broken(Loss):
    """The square loss with one thing wrong."""

    def __init__(self, how):
        self.how = how

    def partial_pos(self, u):
        u = np.asarray(u)
        wrong = {"M": 0.2 * np.sin(9 * u), "D": 0.1 * np.abs(u - 0.637), "E": 0.01, "S": 0.05 * u * (1 - u)}[self.how]
        return (1.0 - u) ** 2 + wrong

    def partial_neg(self, u):
        u = np.asarray(u)
        return SquareLoss().partial_neg(u) if self.how == "S" else self.partial_pos(1.0 - u)


@pytest.mark.parametrize(
    ("how", "check", "where"),
    [("M", monotone, None), ("D", differentiable, 0.637), ("E", extremes, 1.0), ("S", symmetric, None)],
)
def test_a_broken_property_is_found_and_its_place_named(how, check, where):
    verdict = check(Broken(how))
    assert not verdict
    assert verdict.reason
    assert 0 <= verdict.witness <= 1
    if where is not None:
        assert verdict.witness == pytest.approx(where, abs=1e-3)


class Hinged(Loss):
    """Strictly monotone with an affine piece on [.4, .6] (the remark after Lemma "proptilt"): t(1/2) = [.4, .6]."""

    def partial_pos(self, u):
        u = np.asarray(u, float)
        shift = np.where(u < 0.4, (0.4 - u) ** 2, np.where(u > 0.6, (u - 0.6) ** 2, 0.0))
        return 1.0 - u + shift


class Flat(Loss):
    """A risk that is flat from `low` to `high` for eta = 1/2."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def partial_pos(self, u):
        u = np.asarray(u, float)
        return 1.0 - u + np.maximum(self.low - u, 0.0) + np.maximum(u - self.high, 0.0)

    def partial_neg(self, u):
        u = np.asarray(u, float)
        return u + np.maximum(self.low - u, 0.0) + np.maximum(u - self.high, 0.0)


@pytest.mark.parametrize(("low", "high"), [(0.4995, 0.5095), (0.4905, 0.5005), (0.2, 0.9), (0.0, 0.3), (0.6, 1.0)])
def test_the_rims_of_a_flat_piece_however_narrow(low, high):
    found = Flat(low, high).tilted_set([0.5, 0.5])
    np.testing.assert_allclose(found, [[low, low], [high, high]], atol=1e-6)


def test_numerical_estimates_keep_their_digits_close_to_0():
    eta = np.array([1e-300, 1e-100, 1e-20, 1e-16])
    np.testing.assert_allclose(FocalLoss(0.0).tilted_estimate(eta), eta, rtol=1e-9)


def test_many_estimates_are_found_in_parts():
    eta = np.linspace(0.01, 0.99, 5000)
    np.testing.assert_allclose(FocalLoss(0.0).tilted_estimate(eta), eta, rtol=0, atol=1e-12)


def test_a_flat_piece_gives_an_interval():
    low, high = Hinged().tilted_set(0.5)
    assert (low, high) == (pytest.approx(0.4, abs=1e-6), pytest.approx(0.6, abs=1e-6))
    assert Hinged().tilted_estimate(0.5) == pytest.approx(0.5)


class Power(Loss):
    """scale * (1 - u)**p + extra * (1 - u): smooth at both ends, given by its partial loss alone."""

    def __init__(self, scale, p, extra=0.0):
        self.scale, self.p, self.extra = scale, p, extra

    def partial_pos(self, u):
        return self.scale * (1.0 - u) ** self.p + self.extra * (1.0 - u)


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0, 5.75])
@pytest.mark.parametrize(("p", "extra"), [(1.2, 0.0), (1.5, 0.0), (2.0, 0.0), (2.0, 0.1), (3.0, 0.0)])
def test_numerical_derivatives_up_to_the_ends(scale, p, extra):
    loss = Power(scale, p, extra)
    u = np.array([0.0, 1e-300, 1e-20, 1e-12, 1e-7, 1e-3, 0.5, 0.999, 1 - 1e-7, 1 - 1e-12, 1.0])
    exact = -scale * p * (1.0 - u) ** (p - 1) - extra
    np.testing.assert_allclose(loss.partial_pos_derivative(u), exact, rtol=2e-4, atol=1e-6 * scale)
    for kind in (CanonicalLink, ClippedLink):
        link = kind(loss)
        z = np.linspace(-2, 2, 21) * link.clip
        for values in (link.inverse(z), link.tilted(z), link.margin_loss(z)):
            assert np.isfinite(values).all()
        assert (np.diff(link.inverse(z)) >= 0).all()


def test_the_numerical_derivative_of_a_flat_piece_is_zero_up_to_the_end():
    """The differences of a constant are rounding, from which no power law must be read off."""

    class Capped(Loss):
        def partial_pos(self, u):
            return np.maximum(1.0 - np.asarray(u, float), 0.3)

    u = np.array([0.0, 1e-9, 0.2, 0.8, 1.0 - 1e-9, 1.0])
    np.testing.assert_allclose(Capped().partial_pos_derivative(u), [-1.0, -1.0, -1.0, 0.0, 0.0, 0.0], atol=1e-7)
    np.testing.assert_allclose(slope(lambda u: 0.0 * u, u), 0.0)
    np.testing.assert_allclose(slope(lambda u: 0.0 * u + 1.0, u), 0.0, atol=1e-7)


def test_numerical_derivatives_of_singular_losses():
    u = np.array([1e-300, 1e-20, 1e-9, 1e-7])
    for loss in (LogLoss(), MatusitaLoss(), AlphaLoss(2.0), AlphaLoss(0.5)):
        np.testing.assert_allclose(Numerical(loss).partial_pos_derivative(u), loss.partial_pos_derivative(u), rtol=1e-3)
    np.testing.assert_array_equal(Numerical(LogLoss()).partial_pos_derivative(0.0), -math.inf)


def test_a_loss_with_infinities_does_not_warn():
    class Plain(Loss):
        def partial_pos(self, u):
            return -np.log(u)

    np.testing.assert_allclose(Plain().bayes_risk([0.0, 0.3, 1.0]), LogLoss().bayes_risk([0.0, 0.3, 1.0]), atol=1e-12)
    np.testing.assert_allclose(
        CanonicalLink(Plain()).inverse([-3.0, 1.0]), CanonicalLink(LogLoss()).inverse([-3.0, 1.0])
    )


@pytest.mark.parametrize(
    ("partial", "message"),
    [
        (lambda u: np.nan * u, "partial_pos is NaN"),
        (lambda u: 0.5, "partial_pos gives shape"),
        (lambda u: 1.0 if u < 0.5 else 0.0, "partial_pos does not take an array"),
    ],
)
def test_a_malformed_loss_is_told_what_is_wrong(partial, message):
    class Bad(Loss):
        def partial_pos(self, u):
            return partial(u)

    assert message in monotone(Bad()).reason
    with pytest.raises(ValueError, match=message):
        ClippedLink(Bad())


@pytest.mark.parametrize(
    ("pos", "neg", "check", "where", "reason"),
    [
        (lambda u: np.where(u == 0.25, np.inf, 1.0 - u), abs, differentiable, 0.25, "partial_pos is not finite"),
        (
            lambda u: 1.0 - u,
            lambda u: np.where(u == 0.75, np.inf, u),
            differentiable,
            0.75,
            "partial_neg is not finite",
        ),
        (lambda u: 1.0 - u, lambda u: -u, monotone, 0.0, "partial_neg decreases"),
        (lambda u: u, abs, monotone, 0.0, "partial_pos increases"),
        (lambda u: 1.0 - u + 0.01 * (np.abs(u - 0.503) < 1e-4), abs, monotone, 0.502, "partial_pos increases"),
        (lambda u: 1.1 - u, abs, extremes, 1.0, "partial_pos(1) is not 0"),
        (lambda u: 1.0 - u, lambda u: u + 0.1, extremes, 0.0, "partial_neg(0) is not 0"),
        (lambda u: u - 1.0, abs, extremes, 0.0, "a partial loss is negative"),
        (lambda u: 1.0 - u, lambda u: -u, extremes, 0.0, "a partial loss is negative"),
    ],
)
def test_each_side_of_a_property_is_looked_at(pos, neg, check, where, reason):
    verdict = check(Given(pos, neg))
    assert not verdict
    assert reason in verdict.reason
    assert verdict.witness == pytest.approx(where, abs=1e-6)


class Given(Loss):
    """A loss of these partial losses."""

    def __init__(self, pos, neg):
        self.pos, self.neg = pos, neg

    def partial_pos(self, u):
        return self.pos(np.asarray(u, float))

    def partial_neg(self, u):
        return self.neg(np.asarray(u, float))


def test_a_cost_may_be_infinite_over_a_whole_piece():
    assert monotone(Given(lambda u: np.where(u < 0.1, np.inf, 1.0 - u), lambda u: np.where(u > 0.9, np.inf, u)))


def test_a_straight_loss_has_no_default_step():
    class Straight(Loss):
        def partial_pos(self, u):
            return 1.0 - u

    with pytest.raises(ValueError, match="step_size: there is no default"):
        default_step_size(ClippedLink(Straight()))


@pytest.mark.parametrize("ends", [(0.0, 0.1), (-0.1, 0.0)])
def test_a_second_optimal_estimate_on_either_side_is_not_strictly_proper(ends):
    class Wide(SquareLoss):
        def tilted_set(self, eta):
            return tuple(np.clip(eta + end, 0, 1) for end in ends)

    assert not strictly_proper(Wide())


def test_alpha_loss_at_the_ends_of_its_range():
    u = np.array([0.0, 0.25, 1.0])
    np.testing.assert_allclose(AlphaLoss(math.inf).partial_pos(u), [1.0, 0.75, 0.0])
    np.testing.assert_allclose(AlphaLoss(-math.inf).partial_pos(u), [0.0, 0.25, 1.0])
    np.testing.assert_array_equal(AlphaLoss(0.0).partial_pos(u), [math.inf] * 3)
    np.testing.assert_array_equal(AlphaLoss(0.0).bayes_risk(u), [math.inf] * 3)
    np.testing.assert_array_equal(AlphaLoss(1.0).partial_pos(0.0), math.inf)
    np.testing.assert_array_equal(AlphaLoss(2.0).partial_pos(0.0), 2.0)
    assert AlphaLoss(0.0).tilted_set(0.3) == (0.0, 1.0)
    assert AlphaLoss(-math.inf).tilted_set(0.5) == (0.0, 1.0)
    assert AlphaLoss(math.inf).tilted_set(0.7) == (1.0, 1.0)
    assert AlphaLoss(-math.inf).tilted_set(0.7) == (0.0, 0.0)


def test_exponent_and_conjugate_at_the_ends_of_the_range():
    assert [AlphaLoss(alpha).exponent for alpha in (0.0, 1.0, -2.0, -math.inf)] == [-math.inf, 0.0, 0.5, 1.0]
    assert [AlphaLoss(alpha).conjugate for alpha in (0.0, 1.0, -2.0, math.inf)] == [0.0, math.inf, 2.0, 1.0]
    assert AlphaLoss(4.0).exponent == 0.75
    assert AlphaLoss(1e-300).exponent == pytest.approx(-1e300)  # This alpha is next to 0.
    for derivative in (AlphaLoss(0.0).partial_pos_derivative, AlphaLoss(0.0).partial_neg_derivative):
        assert np.isnan(derivative([0.0, 0.3, 1.0])).all()


def test_alpha_loss_is_continuous_through_one():
    u = np.array([1e-12, 0.1, 0.5, 0.9])
    for function in ("partial_pos", "partial_neg", "partial_pos_derivative", "bayes_risk", "tilted_estimate"):
        at_one = getattr(AlphaLoss(1.0), function)(u)
        for alpha in (1 - 1e-12, 1 + 1e-12):
            np.testing.assert_allclose(getattr(AlphaLoss(alpha), function)(u), at_one, rtol=1e-9)


def test_the_slope_of_a_focal_loss_at_its_ends():
    assert FocalLoss(2.0).partial_pos_derivative([0.0, 1.0]).tolist() == [-math.inf, 0.0]
    assert FocalLoss(2.0).partial_neg_derivative([0.0, 1.0]).tolist() == [0.0, math.inf]
    assert FocalLoss(0.0).partial_pos_derivative([0.0, 1.0]).tolist() == [-math.inf, -1.0]
    assert FocalLoss(0.0).partial_neg_derivative([0.0, 1.0]).tolist() == [1.0, math.inf]


def test_tilt_takes_one_alpha_per_point():
    np.testing.assert_allclose(tilt([0.3, 0.7], [-1.0, 1.0]), [0.7, 0.7])
    assert tilt(1.0, 0.0) == 0.5  # Here 0 * inf is 0.
    assert tilt(0.5, math.inf) == 0.5


def test_losses_are_values():
    assert AlphaLoss(2.0) == AlphaLoss(2) != AlphaLoss(3.0)
    assert len({AlphaLoss(2.0), AlphaLoss(2), LogLoss(), LogLoss()}) == 2
    assert repr(SuperLoss(LogLoss(), 0.5, 1.0)) == "SuperLoss(loss=LogLoss(), tau=0.5, lam=1.0)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AlphaLoss(math.nan), "alpha must be a number, got nan"),
        (lambda: AlphaLoss("two"), "alpha must be a number, got 'two'"),
        (lambda: AlphaLoss(True), "alpha must be a number, got True"),
        (lambda: AlphaLoss(-9e-301), "alpha must be 0 or at least 1e-300 in size, got -9e-301"),
        (lambda: FocalLoss(-1.0), "gamma must be a number >= 0, got -1.0"),
        (lambda: FocalLoss(math.inf), "gamma must be finite"),
        (lambda: SuperLoss(LogLoss(), 0.0, 0.0), "lam must be a number > 0, got 0.0"),
        (lambda: SuperLoss(LogLoss(), math.inf, 1.0), "tau must be finite"),
        (lambda: SuperLoss("log", 0.0, 1.0), "loss must be a Loss, got 'log'"),
        (lambda: AlphaLoss(0.0).tilted_inverse(0.5), "alpha must not be 0"),
        (lambda: tilt(0.3, math.nan), "alpha must be a number, got nan"),
    ],
)
def test_bad_hyperparameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
