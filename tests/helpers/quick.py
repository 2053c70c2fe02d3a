"""The recipe with less to choose from, for tests that ask what follows from a choice and not how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from helpers.learners import make_paper_model
from untwist.classifier import UntwistClassifier
from untwist.pilboost import PILBoostClassifier
from untwist.settings import Settings, resolve_paper, resolve_recipe


class QuickClassifier(UntwistClassifier):
    """An `UntwistClassifier` some of whose choices are made: an alpha, a number of rounds, a depth.

    Trees of random thresholds join only where all three are left open, and `boosted_only` leaves them out there too.
    With a given alpha the noise is not estimated.
    """

    def __init__(
        self,
        *,
        alpha: float | None = None,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        boosted_only: bool = False,
        noise: Any = "auto",
        cv: Any = None,
        class_weight: Any = None,
        order: Any = None,
        categorical_features: Any = "auto",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        engine: str = "auto",
        device: str = "cpu",
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            noise=noise,
            cv=cv,
            class_weight=class_weight,
            order=order,
            categorical_features=categorical_features,
            monotonic_cst=monotonic_cst,
            interaction_cst=interaction_cst,
            engine=engine,
            device=device,
            callbacks=callbacks,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.alpha = alpha
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.boosted_only = boosted_only

    def _resolve_settings(self) -> Settings:
        return resolve_quickly(self.get_params(deep=False))


def resolve_quickly(parameters: Mapping[str, Any], *, seed: int | None = None) -> Settings:
    """Return the settings of a `QuickClassifier`."""
    settings = resolve_recipe(parameters, seed=seed)
    alpha, n_rounds, depth = (parameters[name] for name in ("alpha", "n_estimators", "max_depth"))
    has_sizes = n_rounds is not None or depth is not None
    if parameters["boosted_only"] or has_sizes or alpha is not None:
        settings = replace(settings, mixes=False)
    if alpha is not None:
        settings = replace(settings, alphas=(alpha,), estimates_noise=False)
    if n_rounds is not None:
        settings = replace(settings, n_rounds=n_rounds)
    return settings if depth is None else replace(settings, depths=(depth,))


def make_classifier(alpha: Any = None, **settings: Any) -> UntwistClassifier | PILBoostClassifier:
    """A classifier by settings alone: the paper's where alpha, rounds and depth are given, or what only it knows.

    Elsewhere it is the recipe with what is left to choose. Settings of `growth` are given like all others.
    """
    if alpha is not None:
        settings = {"alpha": alpha, **settings}
    sizes = {"alpha", "n_estimators", "max_depth"}
    if sizes <= settings.keys() or settings.keys() - RECIPE_SETTINGS or settings.get("engine") == "reference":
        return make_paper_model(**settings)
    return QuickClassifier(**settings)


def resolve(parameters: Mapping[str, Any], *, seed: int | None = None) -> Settings:
    """Return the settings of either classifier, or of a quick one, by its parameters."""
    if "growth" in parameters:
        return resolve_paper(parameters, seed=seed)
    return (resolve_quickly if "boosted_only" in parameters else resolve_recipe)(parameters, seed=seed)


RECIPE_SETTINGS = set(QuickClassifier().get_params())
