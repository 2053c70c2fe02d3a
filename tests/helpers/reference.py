"""Slow, obviously right twins of the library's closed forms: the paper's definitions in 80-digit arithmetic (mpmath).

Numbers in (float, int, mpf; alpha may be +-inf), mpf out. A float means its exact binary value: ``mpf(0.1)`` is not
one tenth. Posteriors nearer to 0 than 1e-30 lose digits in 1 - u. Nothing here imports the library.
"""

import mpmath
from mpmath import inf, mp, mpf

mp.dps = 80

# ---- posteriors ----


def sigma(x):
    """The logistic function 1 / (1 + exp(-x)), 0 and 1 at -inf and +inf."""
    x = mpf(x)
    if mpmath.isinf(x):
        return mpf(x > 0)
    return 1 / (1 + mpmath.exp(-x))


def logit(u):
    """log(u / (1 - u)), -inf and +inf at 0 and 1."""
    u = mpf(u)
    if u in (0, 1):
        return inf if u else -inf
    return mpmath.log(u) - mpmath.log(1 - u)


def conjugate(alpha):
    """c with 1/c + 1/|alpha| = 1: infinite at 1, 1 at infinity."""
    a = abs(mpf(alpha))
    if mpmath.isinf(a):
        return mpf(1)
    return inf if a == 1 else a / (a - 1)


# ---- the alpha-loss (Definition "defALPHALOSS") ----


def partial_pos(u, alpha):
    """l_1(u) = c * (1 - u**(1/c)); -log(u) at alpha = 1, 1 - u at +inf, +inf at 0; l_1^{-alpha}(1 - u) below 0."""
    u, alpha = mpf(u), mpf(alpha)
    if alpha < 0:
        return partial_pos(1 - u, -alpha)
    if alpha == 0:
        return inf
    if alpha == 1:
        return -mpmath.log(u) if u else inf
    c = conjugate(alpha)
    if u == 0:
        return c if alpha > 1 else inf
    return c * (1 - u ** (1 / c))


def partial_neg(u, alpha):
    """l_{-1}(u) = l_1(1 - u)."""
    return partial_pos(1 - mpf(u), alpha)


def expectation(eta, value_pos, value_neg):
    """eta * value_pos + (1 - eta) * value_neg with 0 * inf = 0."""
    eta = mpf(eta)
    return (eta * value_pos if eta else mpf(0)) + ((1 - eta) * value_neg if eta != 1 else mpf(0))


def conditional_risk(u, eta, alpha):
    """L(u, eta) = eta * l_1(u) + (1 - eta) * l_{-1}(u)."""
    return expectation(eta, partial_pos(u, alpha), partial_neg(u, alpha))


def tilted_estimate(eta, alpha):
    """t(eta) = eta**alpha / (eta**alpha + (1-eta)**alpha); 0 or 1 at alpha = +-inf; 1/2 where it is all of [0, 1]."""
    eta, alpha = mpf(eta), mpf(alpha)
    if alpha == 0 or 2 * eta == 1:
        return mpf(1) / 2
    if mpmath.isinf(alpha) or eta in (0, 1):
        return mpf((2 * eta > 1) == (alpha > 0))
    return eta**alpha / (eta**alpha + (1 - eta) ** alpha)


def bayes_risk(eta, alpha):
    """inf over u of L(u, eta), at u = t(eta)."""
    return conditional_risk(tilted_estimate(eta, alpha), eta, alpha)


# ---- the canonical link and the surrogate, for a = |alpha| as the Bayes risk is even in alpha ----


def _score(s, alpha):
    """l_{-1}(t) - l_1(t) at t = sigma(s): c * (t**(1/c) - (1-t)**(1/c))."""
    c = conjugate(alpha)
    if c == inf:
        return mpf(s)
    return c * (sigma(s) ** (1 / c) - sigma(-s) ** (1 / c))


def canonical_link(v, alpha):
    """(-L_)'(v) = l_{-1}(t(v)) - l_1(t(v)) for |alpha|; infinite at 0 and 1 for |alpha| <= 1."""
    a, v = abs(mpf(alpha)), mpf(v)
    if 2 * v == 1:
        return mpf(0)
    if v in (0, 1) or mpmath.isinf(a):
        end = conjugate(a) if a > 1 else inf
        return end if 2 * v > 1 else -end
    return _score(a * logit(v), a)


def canonical_logit(z, alpha):
    """s = logit of t at the score z, by bisection: +-inf from the clip c on."""
    a, z = abs(mpf(alpha)), mpf(z)
    if z < 0:
        return -canonical_logit(-z, a)
    if z == 0:
        return mpf(0)
    if mpmath.isinf(z) or (a > 1 and z >= conjugate(a)):
        return inf
    low, high = mpf(0), mpf(1)
    while _score(high, a) < z:
        low, high = high, 2 * high
    while high - low > mpf(10) ** (5 - mp.dps) * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _score(middle, a) < z else (low, middle)
    return (low + high) / 2


def canonical_tilted(z, alpha):
    """The clean posterior t at the score z under the canonical link."""
    s = canonical_logit(z, alpha)
    return sigma(-s if alpha < 0 else s)


def canonical_inverse(z, alpha):
    """The twisted posterior at the score z: the exact inverse of ``canonical_link``; 1/2 inside at alpha = +-inf."""
    s, a = canonical_logit(z, alpha), abs(mpf(alpha))
    return sigma(s if mpmath.isinf(s) else s / a)


def surrogate(z, alpha):
    """F(z) = (-L_)*(-z) = sup over v of L_(v) - z*v, attained at v = canonical_inverse(-z)."""
    z = mpf(z)
    v = canonical_inverse(-z, alpha)
    return bayes_risk(v, alpha) - (z * v if v else 0)


# ---- the clipped inverse link (Lemma "lemPILalphaloss") and the margin loss that it implies ----


def clipped_link(u, alpha):
    """f_l(u) of the paper for |alpha| > 1: c * ((2t)**(1/c) - 1) up to 1/2, c * (1 - (2(1-t))**(1/c)) above."""
    a, c = abs(mpf(alpha)), conjugate(alpha)
    t = tilted_estimate(u, a)
    return c * ((2 * t) ** (1 / c) - 1) if 2 * t <= 1 else c * (1 - (2 * (1 - t)) ** (1 / c))


def clipped_tail(z, alpha):
    """t(-|z|) from Lemma "lemINVERTLP": (1 - |z|/c)**c / 2 above |alpha| = 1, its limits, and the extension below."""
    a, z, c = abs(mpf(alpha)), abs(mpf(z)), conjugate(alpha)
    if a == 1:
        return mpmath.exp(-z) / 2
    if a < 1:  # Nothing is clipped and the stretch a_l is 1, so l_1(t) = l_1(1/2) + |z|.
        return (mpf(2) ** (-1 / c) - z / c) ** c
    return (1 - z / c) ** c / 2 if z < c else mpf(0)


def clipped_tilted(z, alpha):
    """The clean posterior t at the score z under the clipped link."""
    tail = clipped_tail(z, alpha)
    return tail if (z <= 0) == (alpha > 0) else 1 - tail


def clipped_inverse(z, alpha):
    """The paper's formula as printed for finite |alpha| > 1; else t**-1 of ``clipped_tail`` (limits, extension)."""
    a, z, c = abs(mpf(alpha)), mpf(z), conjugate(alpha)
    if z > 0:
        return 1 - clipped_inverse(-z, a)
    if a > 1 and z <= -c:
        return mpf(0)
    if mpmath.isinf(a):
        return mpf(1) / 2
    if a <= 1:
        return sigma(logit(clipped_tail(z, a)) / a)
    near = (c + z) ** (c / a)
    return near / (near + (2 * c**c - (c + z) ** c) ** (1 / a))


def implied_margin_loss(m, alpha):
    """G(m) = integral of clipped_inverse(-s) over s from m to infinity (to the clip, where it ends), by quadrature."""
    m, c = mpf(m), conjugate(alpha)
    end = c if abs(alpha) > 1 else inf
    straight = max(mpf(0), -end - m) if end != inf else mpf(0)  # The weight is 1 below minus the clip.
    points = sorted({max(m, -end), mpf(0), end})
    points = [point for point in points if point >= m]
    with mp.workdps(40):  # There are many nodes; 40 digits leave 25 even at alpha = 1 + 1e-12.
        curved = mpmath.quad(lambda s: clipped_inverse(-s, alpha), points) if len(points) > 1 else mpf(0)
    return straight + curved


# ---- twists ----


def binary_entropy(u):
    """H_b(u) = -u*log(u) - (1-u)*log(1-u)."""
    u = mpf(u)
    return -sum(p * mpmath.log(p) for p in (u, 1 - u) if p)


def cross_entropy(eta_clean, eta_twisted, alpha, weights=None):
    """CE by its definition (eq. "defCE"), over lists of equal length; weights are normalised, uniform by default."""
    weights = [mpf(1)] * len(eta_clean) if weights is None else [mpf(weight) for weight in weights]
    total = mpf(0)
    for clean, twisted, weight in zip(eta_clean, eta_twisted, weights, strict=True):
        estimates = tilted_estimate(twisted, alpha), tilted_estimate(1 - mpf(twisted), alpha)  # These are t and 1 - t.
        total += weight * expectation(clean, *(-mpmath.log(p) if p else inf for p in estimates))
    return total / sum(weights)


# ---- brute force, for any loss ----


def argmin_on_grid(loss, eta, grid, tolerance=1e-12):
    """Smallest and largest u of `grid` whose conditional risk at eta is within `tolerance` of the least one."""
    cost_pos, cost_neg = loss.partial_pos(grid), loss.partial_neg(grid)
    risk = [expectation(eta, pos, neg) for pos, neg in zip(cost_pos.tolist(), cost_neg.tolist(), strict=True)]
    least = min(risk)
    best = [float(u) for u, value in zip(grid, risk, strict=True) if value <= least + tolerance]
    return best[0], best[-1]


# ---- automatic differentiation ----


class Jet:
    """A number with its first two derivatives along a line, and the rules that carry them on."""

    def __init__(self, value, first=0, second=0):
        self.value, self.first, self.second = mpf(value), mpf(first), mpf(second)

    def __add__(self, other):
        other = other if isinstance(other, Jet) else Jet(other)
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    def __mul__(self, scale):
        return Jet(scale * self.value, scale * self.first, scale * self.second)

    def __sub__(self, other):
        return self + (other * -1)

    def exp(self):
        e = mpmath.exp(self.value)
        return Jet(e, e * self.first, e * (self.second + self.first**2))

    def log(self):
        slope = self.first / self.value
        return Jet(mpmath.log(self.value), slope, self.second / self.value - slope**2)


def margin_loss(margins, y, alpha, direction):
    """The alpha-loss of softmax(margins), label y, as a Jet along `direction`; one margin z stands for (0, z)."""
    if len(margins) == 1:
        margins, direction = (0, *margins), (0, *direction)
        y, alpha = (y if alpha > 0 else 1 - y), abs(alpha)
    jets = [Jet(z, d) for z, d in zip(margins, direction, strict=True)]
    total = sum((jet.exp() for jet in jets), Jet(0))
    log_p = jets[y] - total.log()
    if alpha == 1:
        return log_p * -1
    r = 1 / conjugate(alpha)
    return ((log_p * r).exp() - 1) * (-1 / r)
