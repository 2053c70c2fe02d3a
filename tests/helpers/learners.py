"""Weak learners that do as they are told, and a classifier that chooses nothing: test doubles."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from untwist import Growth, PILBoostClassifier


class Oracle(RegressorMixin, BaseEstimator):
    """Predicts column 0 of X, times a factor: perfect, useless or adversarial as the column says."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y, sample_weight):
        self.seen_weight_ = np.array(sample_weight)
        return self

    def predict(self, X):
        return self.factor * np.asarray(X)[:, 0]


class Plain:
    """The protocol and nothing else: no get_params, no tags."""

    def fit(self, X, y, sample_weight):
        self.mean = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)


class Spoiler(Oracle):
    """Predicts well while no weight is below 1/2, as in the first round, then `value`."""

    def __init__(self, value=np.nan):
        self.value = value

    def predict(self, X):
        return np.where(self.seen_weight_.min() < 0.5, self.value, np.asarray(X, float)[:, 0])


class Misshapen(Oracle):
    """Predicts a column where a row is asked for."""

    def predict(self, X):
        return np.zeros((len(X), 1))


def make_paper_model(alpha=2.0, **settings):
    """A PILBoostClassifier; settings of its `growth` are given like all others."""
    growth = {name: settings.pop(name) for name in Growth().get_params() if name in settings}
    return PILBoostClassifier(alpha=alpha, growth=Growth(**growth) if growth else None, **settings)
