# %% [markdown]
# # Several classes and sources
#
# With more than two classes the question is not only how many labels are wrong, but what is taken for what. And where
# several people have labelled, who is to be trusted? This page asks an audit both.
#
# ## What is taken for what
# 500 pictures of four digits. Three in ten of the sevens are labelled as ones, and three in ten of the threes as
# eights; all other labels are right.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from untwist.audit import audit_labels
from untwist.twisters import PairFlips, SourceNoise

X, digit = load_digits(return_X_y=True)
names = {1: "one", 3: "three", 7: "seven", 8: "eight"}
kept = np.flatnonzero(np.isin(digit, list(names)))[:500]
X, truth = X[kept], np.array([names[one] for one in digit[kept]])
_, labels, flipped = PairFlips(0.3, {"seven": "one", "three": "eight"}).twist(X, truth, rng=0)
print(f"{len(labels)} labels, {len(flipped)} of them wrong")

# %%
audit = audit_labels(X, labels)
audit

# %% [markdown]
# `confusions` names who is labelled as what, the most rows first. A confusion is called frequent only if even its
# lower limit stands out.

# %%
for confusion in audit.confusions()[:3]:
    print(confusion)

# %%
from untwist.plot import plot_transition_matrix

figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_ = plot_transition_matrix(audit, ax=ax)

# %% [markdown]
# Some of the suspects, with what their labels say and what the audit takes them for:

# %%
suspects = audit.suspects()
figure, axes = plt.subplots(1, 6, figsize=(8, 2), layout="constrained")
for row, ax in zip(suspects, axes, strict=False):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"“{labels[row]}”,\nlooks like {audit.predicted[row]}", fontsize="small")
    ax.set_axis_off()

# %% [markdown]
# `corrected` replaces labels that are more likely wrong than right. It is no review, but here it can be counted:

# %%
corrected = audit.corrected()
print(f"wrong labels: {np.sum(labels != truth)} as given, {np.sum(corrected != truth)} as corrected")

# %% [markdown]
# ## Who gave the labels?
# Now each picture was labelled by one of five people. Four of them err now and then. Dan gets four in ten wrong. Tell
# the audit whose label is whose by `source=`; it is no feature, as it says nothing about the picture.

# %%
rng = np.random.default_rng(0)
who = rng.choice(["Ann", "Ben", "Cleo", "Dan", "Eva"], len(X))
_, labels, flipped = SourceNoise(who, {"Dan": 0.4}, others=0.04).twist(X, truth, rng=0)
audit_of_people = audit_labels(X, labels, source=who)
for source in audit_of_people.sources.rate():
    print(source)

# %%
rated = audit_of_people.sources.rate()
share, low, high = 100 * np.array([(one.share_wrong, one.low, one.high) for one in rated]).T
done = [100 * np.mean((labels != truth)[who == one.name]) for one in rated]
figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
place = np.arange(len(rated))
ax.errorbar(share, place, xerr=[share - low, high - share], fmt="o", color="#0072B2", capsize=3, label="as estimated")
ax.plot(done, place, "|", color="#D55E00", markersize=18, label="as it is")
ax.set_yticks(place, [one.name for one in rated])
ax.invert_yaxis()
ax.set(xlabel="wrong labels, %", title="Whose labels are wrong, with 95 % intervals")
ax.set_xlim(left=0)
_ = ax.legend()

# %% [markdown]
# Each label is now judged by what its source is worth: a doubtful label of Dan's is suspected sooner than one of
# Eva's.

# %%
suspects = audit_of_people.suspects()
share_found = np.isin(flipped, suspects).mean()
share_truly_wrong = np.isin(suspects, flipped).mean()
print(f"{len(suspects)} suspects: {share_truly_wrong:.0%} of them are wrong, ", end="")
print(f"and {share_found:.0%} of the wrong labels are among them")

# %% [markdown]
# ## Several labels of one thing
# Three of six people have looked at each of 200 pictures, and each label has a row of its own. The audit weighs the
# labels of a picture by how good the people are, and asks the picture itself, too.

# %%
n_pictures = 200
picture = np.repeat(np.arange(n_pictures), 3)
errs = {"Ann": 0.4, "Ben": 0.35, "Cleo": 0.3, "Dan": 0.15, "Eva": 0.1, "Fay": 0.05}
who = np.concatenate([rng.permutation(list(errs))[:3] for _ in range(n_pictures)])
_, votes, _ = SourceNoise(who, errs).twist(None, truth[picture], rng=0)
audit_of_votes = audit_labels(X[picture], votes, source=who, item=picture)
audit_of_votes.sources.to_frame()[["annotator_quality", "low", "high"]].round(2)


# %%
def find_majority(votes):
    """Return the label of most votes; where several have as many, the first by the alphabet."""
    labels, counts = np.unique(votes, return_counts=True)
    return labels[counts.argmax()]


true_labels = truth[:n_pictures]
most_votes = np.array([find_majority(three) for three in votes.reshape(-1, 3)])
weighed = audit_of_votes.sources.items_to_frame()["consensus_label"].to_numpy()
by_votes, by_audit = np.mean(most_votes == true_labels), np.mean(weighed == true_labels)
print(f"pictures with the right label: {by_votes:.1%} by most votes, {by_audit:.1%} by the audit")

# %% [markdown]
# ## Where to go next
# - [Several classes](../docs/several-classes.md): how it works and what it does not claim.
# - [Who gave the labels](../docs/sources.md): sources you did not name, and slices.
