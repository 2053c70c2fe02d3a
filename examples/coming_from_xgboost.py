# %% [markdown]
# # Coming from XGBoost
#
# You have `XGBClassifier().fit(X, y)` and some of your labels are wrong. This page shows what changes, what stays,
# and what you can have without leaving XGBoost. It needs `pip install xgboost`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.twisters import ClassNoise

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

# %% [markdown]
# ## The same lines
# A quarter of the training labels are flipped; the test labels stay right. Both get the same table, a DataFrame.

# %%
_, y_noisy, _ = ClassNoise(0.25).twist(X, y, rng=0)

before = XGBClassifier().fit(X, y_noisy)
after = UntwistClassifier(random_state=0).fit(X, y_noisy)
for name, model in (("XGBoost", before), ("untwist", after)):
    print(f"{name}: right on {model.score(X_test, y_test):.1%} of the test rows")

# %% [markdown]
# ## From clean labels to noisy ones
# Where labels are clean there is nothing to gain, and a little may be lost. The more of them are wrong, the more
# there is to gain. XGBoost that stops early, on rows set aside, is the careful user's choice and belongs in the
# comparison.


# %%
def fit_stopped_xgboost(X, y):
    """Fit XGBoost, with rounds up to the lowest log-loss on a fifth of the rows."""
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
    careful = XGBClassifier(n_estimators=500, max_depth=4, learning_rate=0.05, early_stopping_rounds=20)
    return careful.fit(X_fit, y_fit, eval_set=[(X_val, y_val)], verbose=False)


shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
contestants = {
    "untwist, as it comes": lambda X, y: UntwistClassifier(random_state=0).fit(X, y),
    "XGBoost, stopped early": fit_stopped_xgboost,
    "XGBoost, as it comes": lambda X, y: XGBClassifier().fit(X, y),
}

accuracy = {name: [] for name in contestants}
for share in shares:
    _, spoilt, _ = ClassNoise(share).twist(X, y, rng=1)
    for name, fit in contestants.items():
        accuracy[name].append(fit(X, spoilt).score(X_test, y_test))

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, scores), colour in zip(accuracy.items(), ("#D55E00", "#009E73", "#0072B2"), strict=True):
    ax.plot(100 * shares, 100 * np.array(scores), marker="o", color=colour, label=name)
ax.set(xlabel="wrong training labels, %", ylabel="right on clean test rows, %", title="Breast cancer")
_ = ax.legend()

# %% [markdown]
# One data set and one draw show how it looks, not how much it is: [the benchmark](../docs/arena.md) has many.
#
# ## Probabilities
# XGBoost's `predict_proba` follows the labels, mistakes included. Ours follows the truth; `predict_proba_twisted` is
# what the labels follow. The log-loss on clean test rows says how good each is as a probability of the truth.

# %%
from sklearn.metrics import log_loss

for name, probabilities in {
    "XGBoost": before.predict_proba(X_test),
    "untwist, of the labels": after.predict_proba_twisted(X_test),
    "untwist, of the truth": after.predict_proba(X_test),
}.items():
    print(f"{name:<24} log-loss {log_loss(y_test, probabilities):.3f}")

# %% [markdown]
# ## Your settings
# `UntwistClassifier` has none to tune. `PILBoostClassifier` is the booster by itself: it takes yours and chooses
# nothing. [This table](../docs/from-xgboost.md) lists the other parameter names. Early stopping takes rows of your
# own, whose labels may be as noisy as the others.

# %%
X_fit, X_val, y_fit, y_val = train_test_split(X, y_noisy, test_size=0.2, random_state=0)
given = PILBoostClassifier(
    alpha=2.0,
    n_estimators=500,
    max_depth=4,
    learning_rate=0.1,
    early_stopping=True,
    random_state=0,
    growth=Growth(
        init="prior",  # XGBoost's base_score, as it estimates it
        l2=1.0,  # XGBoost's reg_lambda
        subsample=0.8,
        max_features=0.8,  # XGBoost's colsample_bytree
    ),
).fit(X_fit, y_fit, X_val=X_val, y_val=y_val)
print(f"{given.n_iter_} rounds kept, right on test rows: {given.score(X_test, y_test):.1%}")

# %% [markdown]
# Importances by gain are those that you know:

# %%
from untwist.plot import plot_importances

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
_ = plot_importances(after, kind="gain", most=8, ax=ax)

# %% [markdown]
# ## If you would rather stay
# The loss is available as an objective for XGBoost. A row whose label the model contradicts pulls less, which pays
# where nothing stops XGBoost from learning the mistakes, as here: digits, odd or even, a quarter of the labels wrong.
# How many labels are wrong it does not estimate, and [it does not always pay](../docs/objectives.md#measured).

# %%
from sklearn.datasets import load_digits

from untwist.objectives import XGBoostObjective

pixels, digit = load_digits(return_X_y=True)
pixels, pixels_test, is_odd, is_odd_test = train_test_split(pixels, digit % 2, test_size=0.4, random_state=0)
_, is_odd_noisy, _ = ClassNoise(0.25).twist(pixels, is_odd, rng=0)

stayed = {
    "log-loss": XGBClassifier(n_estimators=100, max_depth=3),
    "alpha-loss": XGBClassifier(n_estimators=100, max_depth=3, objective=XGBoostObjective(alpha=4.0)),
}
for name, booster in stayed.items():
    booster.fit(pixels, is_odd_noisy)
    accuracy_here = booster.score(pixels_test, is_odd_test)
    cost = log_loss(is_odd_test, booster.predict_proba(pixels_test))
    print(f"XGBoost by {name:<10}: right on test rows {accuracy_here:.1%}, log-loss {cost:.3f}")

# %% [markdown]
# ## Where to go next
# - [Cleaning a table](cleaning_a_table.py): which labels are wrong?
# - [What alpha does](what_alpha_does.py): the loss behind it.
# - [When not to use it](../docs/when-not.md).
