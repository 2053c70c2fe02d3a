# %% [markdown]
# # What alpha does
#
# A loss decides what a model answers. The log-loss, which most boosters minimise, has one best answer: whatever the
# labels say, mistakes included. The alpha-loss has another for each alpha, and with the right one it is the truth.
# This page shows how in plots. It comes from ["Being Properly
# Improper"](https://proceedings.mlr.press/v162/sypherd22a.html) (ICML 2022); [the theory](../docs/theory.md) has it
# on one page.

# %%
import matplotlib.pyplot as plt
import numpy as np

from untwist.losses import AlphaLoss

GREY, COLOURS = "#777777", ("#56B4E9", "#0072B2", "#009E73", "#D55E00")
alphas = (0.5, 1.0, 2.0, 4.0)
posteriors = np.linspace(0.001, 0.999, 500)

# %% [markdown]
# ## What an estimate costs
# A model says that a label is 1 with probability *u*, and the label is 1. The left plot shows what that costs. At
# alpha = 1 it is the log-loss, and an answer that is far off costs without limit. Above 1 there is a limit: a label
# that contradicts everything else does not outweigh it.
#
# ## What it answers
# If a share of the labels is 1 (x-axis), the best answer is the one of the lowest expected cost (y-axis). The right
# plot shows it: alpha = 1 repeats what the labels say, a larger alpha is surer than they are, a smaller one less sure.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5), layout="constrained")
for alpha, colour in zip(alphas, COLOURS, strict=True):
    loss = AlphaLoss(alpha)
    left.plot(posteriors, loss.partial_pos(posteriors), color=colour, label=f"alpha = {alpha:g}")
    right.plot(posteriors, loss.tilted_estimate(posteriors), color=colour, label=f"alpha = {alpha:g}")
left.set(xlabel="estimate u", ylabel="cost if the label is 1", ylim=(0, 5), title="Cost")
right.set(xlabel="share of labels 1", ylabel="best answer", title="Answer")
right.set_aspect("equal")
_ = left.legend()

# %% [markdown]
# In formulas the log-odds of the answer are alpha times those of the labels. `tilt` does that:

# %%
from scipy.special import logit

from untwist.losses import tilt

for alpha in alphas:
    print(f"alpha {alpha:3g}: log-odds times {logit(tilt(0.7, alpha)) / logit(0.7):.2f}")

# %% [markdown]
# ## Why that undoes noise
# Flip one label in five at random. Where the truth is 1 in nine of ten cases, labels say so in fewer. All of them
# have moved towards one half, and an alpha above 1 moves them back.

# %%
from untwist.twists import SymmetricNoise, alpha_star, best_fixed_alpha

noise = SymmetricNoise(0.2)
labels_say = noise(posteriors)
best = best_fixed_alpha(posteriors, labels_say)
print(f"truth 0.90, labels say {noise(0.9):.2f}; the best single alpha is {best:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5), layout="constrained")
left.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="the truth")
left.plot(posteriors, labels_say, color=COLOURS[1], label="what labels say: alpha = 1")
left.plot(posteriors, tilt(labels_say, best), color=COLOURS[3], label=f"alpha = {best:.2f}")
left.set(xlabel="truth", ylabel="answer", title="One label in five flipped")
left.set_aspect("equal")
left.legend()
for rate, colour in zip((0.0, 0.1, 0.2, 0.3), COLOURS, strict=True):
    twisted = SymmetricNoise(rate)(posteriors)
    right.plot(posteriors, alpha_star(posteriors, twisted), color=colour, label=f"{rate:.0%} flipped")
right.set(xlabel="truth", ylabel="alpha that undoes it exactly", ylim=(0, 6), title="The right alpha")
_ = right.legend(ncols=2)

# %% [markdown]
# Each row has an alpha of its own that undoes the noise exactly, and more noise takes a larger one (right). One alpha
# for all comes close (left).
#
# ## Losses that cannot do it
# A family of losses is *twist-proper* if it has a member for every twist: whatever the labels say and whatever is
# true, one of them answers the truth. Two well-known losses also have settings to turn. The focal loss gives less
# weight to rows that are easy, the Super Loss less to those that are hard. Are they twist-proper? Take many members
# of each family, over all of their settings, and shade what lies between the least and the greatest answer.

# %%
from untwist.losses import FocalLoss, LogLoss, SuperLoss

shares = np.linspace(0.02, 0.98, 50)
families = {
    "alpha-loss": [AlphaLoss(sign * size) for sign in (-1, 1) for size in np.geomspace(1e-3, 1e3, 60)],
    "focal loss": [FocalLoss(gamma) for gamma in (0, *np.geomspace(0.01, 100, 15))],
    "Super Loss": [SuperLoss(LogLoss(), tau, lam) for tau in (-1, 0, 0.5, 1) for lam in (0.001, 0.1, 1, 100)],
}
answers = {name: np.array([loss.tilted_estimate(shares) for loss in family]) for name, family in families.items()}

figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.9), layout="constrained", sharey=True)
for ax, (name, reached) in zip(axes, answers.items(), strict=True):
    ax.fill_between(shares, reached.min(axis=0), reached.max(axis=0), color=COLOURS[0], alpha=0.4)
    ax.plot(shares, shares, color=GREY, linestyle=":")
    ax.set(xlabel="share of labels 1", title=name, xlim=(0, 1), ylim=(0, 1))
    ax.set_aspect("equal")
_ = axes[0].set_ylabel("answers of the family")

# %% [markdown]
# The alpha-loss answers anything, wherever labels lean to one side. The focal loss only moves towards one half, which
# is where noise has moved the labels already: it can undo none of it. The Super Loss only moves away from one half:
# it can undo random flips, but neither labels that are too sure nor labels that are mostly wrong.
#
# `explore` looks for the setting that undoes one given twist. Three kinds of them:

# %%
from untwist.explorer import ALPHA, FOCAL, LossFamily, explore

super_loss = LossFamily(
    "Super Loss",
    lambda tau, lam: SuperLoss(LogLoss(), tau, lam),
    {"tau": (-1.0, 0.0, 0.5, 1.0), "lam": (0.01, 0.1, 1.0, 100.0)},
)
twists = {"noise has blunted it": (0.9, 0.66), "labels are too sure": (0.6, 0.9), "most labels are wrong": (0.8, 0.3)}
found = {}
for kind, (truth, say) in twists.items():
    print(f"{kind}: labels say {say}, the truth is {truth}")
    for family in (ALPHA, FOCAL, super_loss):
        found[kind, family.name] = explore(family, truth, say, refinements=6)
        closest = found[kind, family.name]
        outcome = "undoes it" if closest.reaches(0.001) else f"comes no closer than {closest.estimate:.2f}"
        print(f"  the {family.name} {outcome}")

# %% [markdown]
# ## What one alpha cannot do
# Noise is often worse in one class. Here a tenth of the zeros and four in ten of the ones bear the other label.
# Labels then cross one half where the truth does not, and no positive alpha moves anything across one half. Even the
# best one leaves the answer about where the labels are.

# %%
from untwist.twists import ClassConditionalTwist

uneven = ClassConditionalTwist(rate_neg=0.1, rate_pos=0.4)
labels_say = uneven(posteriors)
best_of_uneven = best_fixed_alpha(posteriors, labels_say)
answer = tilt(labels_say, best_of_uneven)
crossed = posteriors[(posteriors > 0.5) != (answer > 0.5)]
print(f"on the wrong side of one half: where the truth is {crossed.min():.2f} to {crossed.max():.2f}")

figure, ax = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="the truth")
ax.plot(posteriors, labels_say, color=COLOURS[1], label="what labels say")
ax.plot(posteriors, answer, color=COLOURS[3], label=f"alpha = {best_of_uneven:.2f}, the best one")
ax.plot(posteriors, uneven.inverse(labels_say), color=COLOURS[2], linestyle="--", label="undone by the rates")
ax.axhline(0.5, color=GREY, linewidth=0.5)
ax.set(xlabel="truth", ylabel="answer", title="Classes of unequal noise")
ax.set_aspect("equal")
_ = ax.legend()

# %% [markdown]
# With the rates of both classes the truth follows at every point. That is why `UntwistClassifier()` estimates these
# rates unless it is told otherwise, and takes alpha as one of the settings to choose.
#
# ## Where to go next
# - [Choosing alpha, or not](../docs/choosing-alpha.md): what has been measured.
# - [A custom loss](a_custom_loss.py): one of your own, from partial losses to boosting.
# - [The theory](../docs/theory.md), with sliders.
