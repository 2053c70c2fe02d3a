"""Models of classes that were boosted together, and of labels that follow transition matrices, made by hand."""

from dataclasses import replace

import numpy as np

from helpers.quick import make_classifier
from untwist.boosting.ensemble import Ensemble
from untwist.losses import AlphaLoss
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.theory.several_classes import SoftmaxLink


def draw_matrices(n_classes, n_components, rng):
    """Transition matrices with slopes and offsets, as an estimate might find them."""
    matrices = []
    for _ in range(n_components):
        wrong = rng.dirichlet(np.ones(n_classes - 1), size=n_classes) * rng.uniform(0.05, 0.4, (n_classes, 1))
        matrix = np.array([np.insert(row, index, 1.0 - row.sum()) for index, row in enumerate(wrong)])
        matrices.append(matrix)
    shape = (n_components, n_classes)
    wrong = 1.0 - np.mean([np.diag(matrix) for matrix in matrices], axis=0)
    return SeveralClassesNoise(
        weights=rng.dirichlet(np.full(n_components, 3.0)),
        matrices=np.array(matrices),
        slopes=rng.uniform(0.7, 1.5, shape),
        offsets=rng.normal(0.0, 0.3, shape),
        least=min(0.005, 0.05 / n_classes),
        evidence=12.5,
        found=True,
        share=float(wrong.mean()),
        interval=(0.05, 0.5),
        class_shares=wrong,
        class_intervals=np.column_stack([wrong / 2, wrong * 1.5]),
        decided_pairs=~np.eye(n_classes, dtype=np.bool_),
        uneven_limit=0.1,
    )


def share_trees(model, spread, rng):
    """Give the trees of a model a random vector per leaf, as if all classes had been boosted together."""
    first, *others = (ensemble.forest for ensemble in model.model_.ensembles)
    for other in others:
        first = first.append(other)
    value = np.where(first.feature[:, None] < 0, rng.normal(size=(len(first.feature), len(model.classes_))), 0.0)
    forest = replace(first, value=spread * value / np.sqrt(len(first)))
    losses, errors = np.linspace(1.0, 0.5, len(forest)), np.linspace(0.5, 0.3, len(forest))
    model.model_ = replace(
        model.model_,
        ensembles=(Ensemble.from_forest(forest, losses, errors),),
        link=SoftmaxLink(AlphaLoss(model.alpha)),
    )


def make_shared_model(X, y, n_classes, components=None, *, shared=True, spread=3.0, seed=0, **settings):
    """A model of several classes: boosted together unless not `shared`, with so many transition matrices to untwist."""
    rng = np.random.default_rng(seed)
    model = make_classifier(**{"n_estimators": 4, "max_depth": 4, **settings}, n_jobs=1, random_state=0).fit(X, y)
    assert len(model.classes_) == n_classes
    if shared:
        share_trees(model, spread, rng)
    if components is not None:
        count = 1 if components == "given" else components
        noise = draw_matrices(n_classes, count, rng)
        noise = SeveralClassesNoise.from_matrix(noise.matrices[0]) if components == "given" else noise
        model.model_ = replace(model.model_, noise=noise, untwists=True)
    return model
