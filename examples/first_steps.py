# %% [markdown]
# # First steps
#
# Some of your labels are wrong, and you do not know which. This page trains a classifier that expects that, asks it
# how many labels are wrong, and finds them.
#
# ## Data with wrong labels
# scikit-learn has 1,797 pictures of handwritten digits. The question is whether a digit is odd. To know what is found
# and what is missed, we take right labels and make three in ten of them wrong ourselves.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from untwist.twisters import ClassNoise

X, digit = load_digits(return_X_y=True)
truth = np.where(digit % 2, "odd", "even")
X, X_test, truth, truth_test = train_test_split(X, truth, random_state=0)
_, labels, flipped = ClassNoise(0.3).twist(X, truth, rng=0)
print(f"{len(flipped)} of {len(labels)} training labels are wrong; those of the {len(X_test)} test rows are all right")

# %% [markdown]
# ## Train
# `UntwistClassifier` is used like any classifier of scikit-learn, and nothing needs to be tuned. Beside it, gradient
# boosting as scikit-learn has it, which believes every label.

# %%
from sklearn.ensemble import HistGradientBoostingClassifier

from untwist import UntwistClassifier

model = UntwistClassifier(random_state=0).fit(X, labels)
believer = HistGradientBoostingClassifier(random_state=0).fit(X, labels)
print(f"right on test rows: untwist {model.score(X_test, truth_test):.1%}, ", end="")
print(f"gradient boosting {believer.score(X_test, truth_test):.1%}")

# %% [markdown]
# ## How many labels are wrong?
# The model has looked for the answer without being told, and gives a range with it. *Negatives* are the first of
# `model.classes_`, here the even digits, and *positives* the second.

# %%
model.noise_

# %%
from untwist.plot import plot_noise_posterior

ax = plot_noise_posterior(model)
ax.axvline(30, color="black", linestyle=":", label="what we did")
_ = ax.legend()  # An assignment keeps the notebook from printing the object.

# %% [markdown]
# ## Two kinds of probabilities
# `predict_proba` is about the truth, `predict_proba_twisted` about the labels. With three wrong labels in ten, no
# label can be foretold much better than 70 to 30; the truth can.

# %%
import matplotlib.pyplot as plt

odd_column = list(model.classes_).index("odd")
of_truth = model.predict_proba(X_test)[:, odd_column]
of_labels = model.predict_proba_twisted(X_test)[:, odd_column]
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
bins = np.linspace(0, 1, 21)
ax.hist(of_labels, bins, color="#0072B2", alpha=0.7, label="that the label says odd")
ax.hist(of_truth, bins, color="#D55E00", alpha=0.7, label="that the digit is odd")
ax.set(xlabel="probability", ylabel="test rows", title="Labels and truth")
_ = ax.legend()

# %% [markdown]
# ## Which labels are wrong?
# The audit judges every label by models that have not seen it.

# %%
from untwist.audit import audit_labels

audit = audit_labels(X, labels, model)
audit

# %% [markdown]
# Look at the most doubtful labels first: here are twelve of them with what their labels say.

# %%
doubtful = audit.suspects(budget=50)
figure, axes = plt.subplots(2, 6, figsize=(7, 3), layout="constrained")
for row, ax in zip(doubtful, axes.flat, strict=False):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"“{labels[row]}”")
    ax.set_axis_off()

# %%
n_wrong = np.isin(doubtful, flipped).sum()
n_expected = audit.expect_wrong(doubtful)
print(f"{n_wrong} of the {len(doubtful)} most doubtful labels are wrong, {n_expected:.0f} were expected")

# %% [markdown]
# ## Keep the model
# A file holds the model and no code, so opening a stranger's file is safe.

# %%
import tempfile
from pathlib import Path

import untwist

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.untwist"
    untwist.save(model, path)
    again = untwist.load(path)
print("The same answers:", np.array_equal(again.predict_proba(X_test), model.predict_proba(X_test)))

# %% [markdown]
# ## Where to go next
# - [Coming from XGBoost](coming_from_xgboost.py): the same words, and what differs.
# - [Cleaning a table](cleaning_a_table.py): from suspects to better labels.
# - [The command line](../docs/command-line.md): all of this for a CSV file, without Python.
