# %% [markdown]
# # Cleaning a table with the audit
#
# An audit says how many labels of a table are wrong and which to look at; a person decides; the decisions change the
# labels and nothing else. This page goes all the way with a table whose true labels we know, so that each step can be
# checked.
#
# ## A table with wrong labels
# 569 tumours with 30 measurements each. One diagnosis in seven is flipped.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from untwist.twisters import ClassNoise

table, target = load_breast_cancer(return_X_y=True, as_frame=True)
truth = np.array(["malignant", "benign"])[target]
table, table_test, truth, truth_test = train_test_split(table, truth, test_size=0.3, random_state=0)
table = table.reset_index(drop=True)  # Rows are called by their positions from here on.
_, labels, flipped = ClassNoise(1 / 7).twist(table, truth, rng=0)
print(f"{len(labels)} rows, {len(flipped)} wrong labels")

# %% [markdown]
# ## The audit
# It needs the table and the labels. Every row is judged by models that have not seen it.

# %%
from untwist.audit import audit_labels

audit = audit_labels(table, labels)
audit

# %% [markdown]
# The share of wrong labels comes with a range. What we did is known here:

# %%
share, low, high = audit.noise_rate
print(f"estimated: {share:.1%} of the labels are wrong ({low:.1%} to {high:.1%})")
print(f"actually flipped: {len(flipped) / len(labels):.1%}")

# %% [markdown]
# ## Suspects, with reasons
# `to_frame` has a line per row of the table, and `suspects()` the rows whose labels are more likely wrong than right,
# the most doubtful first. `label_quality` is the probability that a label is right.

# %%
suspects = audit.suspects()
columns = ["given_label", "predicted_label", "label_quality"]
audit.to_frame()[columns].iloc[suspects[:5]].round(3)

# %%
print(audit.explain(suspects[0]))

# %% [markdown]
# ## What would a review find?
# Nobody has time for all rows. The curve says how many wrong labels to expect among so many rows, so that one can
# tell when to stop.

# %%
from untwist.plot import plot_review_yield

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
_ = plot_review_yield(audit, ax=ax)

# %% [markdown]
# ## The review
# Now somebody who knows the truth looks at the first 80 rows. On your own data that is a person with `untwist
# review`, or with the page that `untwist.report` writes; here we look the answers up. Each decision is a word, *keep*
# or *relabel*, and the right label.

# %%
from untwist.audit import Decisions

rows = audit.suspects(budget=80)
words = np.where(truth[rows] == labels[rows], "keep", "relabel")
decisions = Decisions(rows, labels[rows], words, truth[rows], notes=[""] * len(rows), fingerprint=audit.fingerprint)
print(f"{decisions.relabelled.sum()} of {len(rows)} labels were wrong, {audit.expect_wrong(rows):.0f} were expected")

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
_ = plot_review_yield(audit, decisions, ax=ax)

# %% [markdown]
# ## The cleaned labels
# `apply` returns the labels as decided. Rows that nobody looked at keep theirs.

# %%
cleaned = audit.apply(decisions)
print(f"wrong labels: {np.sum(labels != truth)} before the review, {np.sum(cleaned != truth)} after")

# %% [markdown]
# ## Was it worth it?
# Two models show what the review is worth: one that believes every label, and ours.

# %%
from sklearn.ensemble import HistGradientBoostingClassifier

from untwist import UntwistClassifier

scores = {}
for name, y_train in (("as given", labels), ("cleaned", cleaned)):
    for classifier in (HistGradientBoostingClassifier(random_state=0), UntwistClassifier(random_state=0)):
        scores[type(classifier).__name__, name] = classifier.fit(table, y_train).score(table_test, truth_test)
for (model_name, name), score in scores.items():
    print(f"{model_name:<32} labels {name:<8}  right on test rows: {score:.1%}")

# %% [markdown]
# ## The page to send around
# One HTML file that opens without a network, with the suspects, their reasons, and a place to decide. The picture
# shows such a page: that of `make demo`, for all 569 rows with one label in five flipped.

# %%
import tempfile
from pathlib import Path

from untwist.report import report

page = report(audit, title="Diagnoses to look at")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "report.html"
    path.write_text(page, encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")

# %% [markdown]
# ![The page of an audit](../docs/report.png)
#
# ## Where to go next
# - [Reading an audit](../docs/reading-an-audit.md): every figure and what it means.
# - [Cleaning labels](../docs/cleaning-labels.md): `untwist review` and `untwist apply`, for files.
# - [Hard or noisy?](../docs/hard-or-noisy.md): what an audit cannot know.
