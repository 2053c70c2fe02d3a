"""The figures of the paper's theory, every curve computed by the package's own functions."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from experiments.paper.figures import Figure, Line, Lines, Mark
from untwist.arguments import Array
from untwist.links import CanonicalLink, ClippedLink
from untwist.losses import AlphaLoss
from untwist.twists import alpha_star, cross_entropy, cross_entropy_gain

__all__ = ["cross_entropy_and_bound", "make_figures"]


def make_figures() -> list[Figure]:
    """Make all of them, in the order of the paper."""
    return [
        _draw_partial_losses(),
        _draw_logit(),
        _draw_blunting(),
        _draw_bound(),
        _draw_cross_entropy(),
        _draw_clipped_exact(),
        _draw_clipped(),
    ]


def cross_entropy_and_bound(alpha: Array, *, a: float, b: float, B: float) -> tuple[Array, Array]:
    """K(alpha) and its bound L(alpha) (eq. "eq:upperboundCEUB") for x uniform on [-B, B].

    ``eta_clean = sigma(x/a)``, ``eta_twisted = sigma(x/b)``; L bounds K for certain only if abs(x/b) <= B, which is not
    checked. Gauss-Legendre quadrature, exact to rounding where |alpha| * B / b is below 50 or so.
    """
    node, weight = np.polynomial.legendre.leggauss(200)
    x = B * node
    clean, twisted = expit(x / a), expit(x / b)
    K = np.array([cross_entropy(clean, twisted, one, weight) for one in alpha])
    edge = float(np.sum(weight * (2.0 * clean - 1.0) * x / b)) / (2.0 * B)  # The weights add up to 2.
    return K, np.logaddexp(0.0, alpha * B) - alpha * B * (1.0 + edge) / 2.0


def _name(alpha: float) -> str:
    return f"α = {'∞' if math.isinf(alpha) else f'{alpha:g}'}".replace("-", "−")


def _draw_partial_losses() -> Figure:
    u = np.linspace(0.0, 1.0, 401)
    lines = tuple(Line(_name(a), u, AlphaLoss(a).partial_pos(u)) for a in (0.5, 1.0, 2.0, 4.0, math.inf))
    caption = (
        "What the estimate u costs under the α-loss when the label is +1. A larger α costs less where u is wrong: "
        "above α = 1 the cost at 0 is finite, α/(α − 1), and at α = ∞ the cost is a straight line. α = 1 is the "
        'log-loss. The paper\'s "fig:alphalossplot".'
    )
    panel = Lines("", "estimate u", "ℓ₁(u)", lines, y_range=(0.0, 4.0))
    return Figure("theory-partial-losses", "The α-loss", caption, (panel,))


def _draw_logit() -> Figure:
    u = np.linspace(0.0, 1.0, 401)
    caption = (
        "logit(u) = log(u / (1 − u)): zero at 1/2, infinite at 0 and 1. The α that undoes a twist at one x is a "
        "quotient of two logits; it is infinite where the twisted posterior is 1/2, and negative where the twist "
        'crosses 1/2. The paper\'s "fig:logitplot".'
    )
    panel = Lines("", "u", "logit(u)", (Line("", u, logit(u)),), marks=(Mark(0.0), Mark(0.5, vertical=True)))
    return Figure("theory-logit", "The logit", caption, (panel,))


def _draw_blunting() -> Figure:
    def panel(clean: float, u: Array) -> Lines:
        gains = {a: cross_entropy_gain(clean, u, a) for a in (1.1, 1.5, 2.0, 4.0, 8.0)}
        lines = tuple(Line(_name(a), u, np.where(gain >= 0, gain, np.nan)) for a, gain in gains.items())
        marks = (Mark(clean, "clean", vertical=True),)
        return Lines(f"clean posterior {clean:g}", "twisted posterior", "gain over α = 1", lines, marks)

    caption = (
        "What α > 1 gains in cross-entropy over α = 1 at one x, where it gains at all, against the "
        "twisted posterior. A blunting twist puts it between 1/2 and the clean posterior. A small α gains a little "
        "almost everywhere there, a large one much near 1/2 and nothing further out; beyond the clean posterior none "
        'gains. The two panels mirror each other. The paper\'s "fig:BayesBlunting" and "fig:symBayesBlunting".'
    )
    panels = (panel(0.9, np.linspace(0.5, 1.0, 801)), panel(0.1, np.linspace(0.0, 0.5, 801)))
    return Figure("theory-blunting", "Where a fixed α undoes blunting", caption, panels)


def _draw_bound() -> Figure:
    alpha = np.linspace(-2.0, 2.0, 201)

    def panel(b: float, note: str) -> Lines:
        K, L = cross_entropy_and_bound(alpha, a=10.0, b=b, B=2.0)
        title = f"b = {b:g}: twisted logits up to {2.0 / b:.3g}, {note}"
        return Lines(title, "α", "cross-entropy", (Line("cross-entropy K(α)", alpha, K), Line("bound L(α)", alpha, L)))

    caption = (
        "The cross-entropy K(α) and the bound L(α) whose minimum is the constructive α*, for x uniform on [−B, B], "
        "B = 2, clean posterior σ(x/10), twisted posterior σ(x/b). Left, as in the paper, b = 0.6: the twisted logits "
        "reach 3.33, which its own condition |logit| ≤ B forbids; it is drawn without that check, and the bound "
        "happens to hold (at b = 0.5 it no longer does). Right, b = 1, which meets the condition. Both curves are "
        'log 2 at α = 0. The paper\'s "fig:CEUB".'
    )
    panels = (panel(0.6, "above B = 2"), panel(1.0, "as B = 2 allows"))
    return Figure("theory-bound", "The cross-entropy and its bound", caption, panels)


def _draw_cross_entropy() -> Figure:
    p = np.linspace(0.0, 1.0, 401)
    twisted = float(expit(1.0))  # The twisted logit is 1, or -1 with the label turned.
    best = [cross_entropy(one, twisted, alpha_star(one, twisted)) for one in p]
    proper = [cross_entropy(one, twisted, 1.0) for one in p]
    lines = (Line("at α*, H(p)", p, np.array(best), ours=True), Line("at α = 1, log(1 + e) − p", p, np.array(proper)))
    caption = (
        "Cross-entropy when all twisted logits are ±1 and their sign is right with probability p: at the constructive "
        "α* = logit(p) it is the entropy H(p), at α = 1 it is log(1 + e) − p, never below 0.313. They touch at "
        "p = σ(1) = 0.731, where α* = 1; below p = 1/2 a negative α* turns the posterior over. "
        'The paper\'s "f-celoss-comp".'
    )
    panel = Lines("", "p, probability of the right sign", "cross-entropy", lines)
    return Figure("theory-cross-entropy", "What the constructive α* gains over α = 1", caption, (panel,))


def _draw_clipped_exact() -> Figure:
    loss = AlphaLoss(5.0)
    clipped, exact = ClippedLink(loss), CanonicalLink(loss)
    z = np.linspace(-1.4, 1.4, 561)
    fine = np.linspace(0.0, clipped.clip, 100_001)
    gap = np.abs(clipped.inverse(fine) - exact.inverse(fine))
    curves = (Line("clipped", z, clipped.inverse(z)), Line("exact", z, exact.inverse(z), dashed=True))
    difference = Line("", z, clipped.inverse(z) - exact.inverse(z))
    ends = (Mark(-clipped.clip, "clip", vertical=True), Mark(clipped.clip, "clip", vertical=True))
    caption = (
        "The clipped inverse link against the exact inverse of the canonical link, α = 5, and their difference. They "
        f"agree at 0 and from the clip ±{clipped.clip:g} on; the greatest absolute difference is {gap.max():.5f}, at "
        f'z = ±{fine[gap.argmax()]:.4f}. The paper\'s "f-alpha".'
    )
    panels = (
        Lines("inverse links", "score z", "twisted posterior", curves, ends),
        Lines("their difference", "score z", "clipped − exact", (difference,), ends),
    )
    return Figure("theory-clipped-exact", "The clipped inverse link and the exact one, α = 5", caption, panels)


def _draw_clipped() -> Figure:
    z = np.linspace(-4.0, 4.0, 721)
    links = {a: ClippedLink(AlphaLoss(a)) for a in (1.001, 1.5, 2.0, 5.0, 100.0, -2.0)}
    twisted = tuple(Line(_name(a), z, link.inverse(z), dashed=a < 0, marker=a < 0) for a, link in links.items())
    clean = tuple(Line(_name(a), z, link.tilted(z), dashed=a < 0, marker=a < 0) for a, link in links.items())
    caption = (
        "The clipped inverse link for several α: the score z gives the twisted posterior (left), exactly 0 and 1 from "
        "the clip ±|α|/(|α| − 1) on. Near α = 1 the clip is out of sight; a large α is flat at 1/2 up to its clip near "
        "1. −2 gives the same as 2, as the Bayes risk is even in α; it differs in the clean posterior at the same "
        'score (right, not in the paper), which it turns over. The paper\'s "fig:tildef".'
    )
    panels = (
        Lines("twisted posterior", "score z", "f(z)", twisted),
        Lines("clean posterior", "score z", "t(z)", clean),
    )
    return Figure("theory-clipped", "The clipped inverse link", caption, panels)
