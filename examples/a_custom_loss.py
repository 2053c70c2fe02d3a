# %% [markdown]
# # A custom loss, from partial losses to boosting
#
# A loss of your own takes one method. Everything else follows from it numerically: what the loss answers, which
# properties it has, the link that boosting needs. This page makes one, looks at it, and boosts with it.
#
# ## One method
# `partial_pos(u)` is what an estimate *u* costs if the label is 1. If the label is 0 the mirror image is taken,
# unless `partial_neg` is defined, too. Our example raises the distance to the label to a power; at power 2 that is
# the square loss.

# %%
import matplotlib.pyplot as plt
import numpy as np

from untwist.losses import Loss, SquareLoss


class PowerLoss(Loss):
    """The distance between estimate and label, raised to a power."""

    def __init__(self, power):
        self.power = power

    def partial_pos(self, u):
        """(1 - u)**power."""
        return (1.0 - np.asarray(u)) ** self.power


u = np.linspace(0.0, 1.0, 201)
print("At power 2 it is the square loss:", np.allclose(PowerLoss(2.0).partial_pos(u), SquareLoss().partial_pos(u)))

# %% [markdown]
# ## Its properties
# The paper asks whether a loss falls towards the label (M), has no kinks (D), treats classes alike (S) and costs
# nothing where it is right (E). Boosting by the link below needs M, S and E. Is the loss proper, so that its best
# answer is what the labels say?

# %%
from untwist.properties import properties

checks = {power: properties(PowerLoss(power)) for power in (2.0, 1.5)}
for power, check in checks.items():
    print(f"power {power}: " + ", ".join(f"{name} {'yes' if holds else 'no'}" for name, holds in check.items()))

# %% [markdown]
# ## What it answers
# At 1.5 it is not proper, and that is the point. The plot shows its best answer for every share of labels 1.

# %%
colours = {3.0: "#56B4E9", 2.0: "#0072B2", 1.5: "#D55E00"}
shares = np.linspace(0.01, 0.99, 99)
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5), layout="constrained")
for power, colour in colours.items():
    left.plot(u, PowerLoss(power).partial_pos(u), color=colour, label=f"power {power:g}")
    right.plot(shares, PowerLoss(power).tilted_estimate(shares), color=colour, label=f"power {power:g}")
left.set(xlabel="estimate u", ylabel="cost if the label is 1", title="Cost")
right.set(xlabel="share of labels 1", ylabel="best answer", title="Answer")
right.set_aspect("equal")
_ = left.legend()

# %% [markdown]
# Below 2 the answer is surer than the labels, as that of the alpha-loss is at an alpha above 1. It is even the same
# answer, for an alpha of 1 / (power − 1): both multiply log-odds.

# %%
from untwist.losses import tilt

for power in (3.0, 1.5, 1.25):
    gap = np.abs(PowerLoss(power).tilted_estimate(shares) - tilt(shares, 1 / (power - 1))).max()
    print(f"power {power:4}: like alpha {1 / (power - 1):g}, to within {gap:.0e}")

# %% [markdown]
# ## Closed forms
# Whatever is known can be written down, and is then used in place of the numerical answer: quicker, and exact. The
# base class is what to compare it with.


# %%
class QuickPowerLoss(PowerLoss):
    """The power loss, with what is known of it in closed form."""

    def partial_pos_derivative(self, u):
        """-power * (1 - u)**(power - 1)."""
        return -self.power * (1.0 - np.asarray(u)) ** (self.power - 1.0)

    def partial_neg_derivative(self, u):
        """power * u**(power - 1)."""
        return self.power * np.asarray(u) ** (self.power - 1.0)

    def tilted_set(self, eta):
        """Return the best answer, which is one point: both ends of the interval."""
        answer = tilt(eta, 1.0 / (self.power - 1.0))
        return answer, answer


quick, numerical = QuickPowerLoss(1.5), PowerLoss(1.5)
for name in ("partial_pos_derivative", "partial_neg_derivative", "tilted_estimate", "bayes_risk"):
    gap = np.abs(getattr(quick, name)(shares) - getattr(numerical, name)(shares)).max()
    print(f"{name:<24} differs by {gap:.0e} at most")

# %% [markdown]
# ## The power that undoes noise
# If answers can be surer than labels, there should be a power that undoes label noise. `explore` searches a family of
# losses for it. Three labels in ten are flipped, the truth is 0.9, and labels say 0.66.

# %%
from untwist.explorer import LossFamily, explore

family = LossFamily("power loss", QuickPowerLoss, {"power": (1.1, 1.3, 1.5, 2.0, 3.0)})
explored = explore(family, eta_clean=0.9, eta_twisted=0.66)
print(explored)

# %% [markdown]
# ## The link
# Boosting adds up scores, and a link turns a score into an estimate. `ClippedLink` makes one of any loss with M, S
# and E. What boosting uses of it are weights: how much a row counts in the next round, given its margin, which is
# above 0 where the score agrees with the label. With a bounded loss, rows that are right by a wide margin weigh
# nothing; with the log-loss they always weigh a little.

# %%
from untwist.links import ClippedLink
from untwist.losses import LogLoss

margins = np.linspace(-4, 4, 201)
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for loss, colour, name in (
    (LogLoss(), "#777777", "log-loss"),
    (SquareLoss(), "#0072B2", "square loss, power 2"),
    (quick, "#D55E00", "power 1.5"),
):
    ax.plot(margins, ClippedLink(loss).weights(margins), color=colour, label=name)
ax.set(xlabel="margin of a row", ylabel="its weight in the next round", title="Weights by margin")
_ = ax.legend()

# %% [markdown]
# ## Boosting
# Two moons, and a quarter of the training labels flipped. `loss=` takes any loss. It is boosted by the reference
# engine, in Python, as the compiled one knows the alpha-loss alone.

# %%
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from untwist import PILBoostClassifier
from untwist.twisters import ClassNoise

X, y = make_moons(1500, noise=0.25, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
_, y_noisy, _ = ClassNoise(0.25).twist(X, y, rng=0)

models, costs = {}, {}
for power in (2.0, 1.5):
    model = PILBoostClassifier(loss=QuickPowerLoss(power), n_estimators=40, max_depth=2)
    models[power] = model.fit(X, y_noisy)
    costs[power] = log_loss(y_test, model.predict_proba(X_test))
    accuracy = model.score(X_test, y_test)
    print(f"power {power}: right on {accuracy:.1%} of clean test rows, log-loss {costs[power]:.3f}")

# %% [markdown]
# Both draw about the same boundary. The proper one, at power 2, says how likely the *label* is and never gets sure;
# the other is much closer to the truth.

# %%
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 120), np.linspace(-1.4, 1.9, 100)), axis=-1)
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1), layout="constrained", sharey=True)
for ax, (power, model) in zip(axes, models.items(), strict=True):
    probability = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
    levels = np.linspace(0, 1, 11)
    shades = ax.contourf(grid[..., 0], grid[..., 1], probability, levels, cmap="RdBu_r")
    ax.scatter(*X_test[::4].T, c=y_test[::4], cmap="RdBu_r", edgecolors="white", linewidths=0.5, s=14)
    ax.set(xlabel="first feature", title=f"power {power}")
axes[0].set_ylabel("second feature")
_ = figure.colorbar(shades, ax=axes, label="probability of class 1")

# %% [markdown]
# ## Where to go next
# - [Adding to it](../docs/extending.md): twisters and weak learners of your own.
# - [From symbol to code](../docs/notation.md): where each formula of the paper is.
