"""What every fitted model knows of the labels: what each row's label will be, how noisy labels are, what is true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.labels import encode_labels
from untwist.data.near_duplicates import NOTHING_KNOWN, SOME_WRONG, NearDuplicates
from untwist.data.sources import UNKNOWN, look_up_sources
from untwist.display import write_fragment
from untwist.noise.estimate import NoiseEstimate
from untwist.noise.model import NoiseModel
from untwist.noise.paper import MenonEstimate
from untwist.noise.posterior import Posterior, find_posterior_floor
from untwist.noise.sources import NoiseBySource
from untwist.out_of_fold import OutOfFold
from untwist.theory.links import Link
from untwist.theory.several_classes import SoftmaxLink

__all__ = ["LabelModel"]

#: What is said of the noise where nothing was estimated.
NO_NOISE = "not estimated: probabilities are those of the labels as they are"


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelModel:
    """A fitted model of labels some of which may be wrong; a subclass says how rows become scores.

    Parameters
    ----------
    classes : array
        The labels; of two, the second is the positive class.
    link : Link or SoftmaxLink
        How scores become the posterior that labels follow.
    class_weights : array
        What rows of each class were multiplied by.
    n_rows : int
        Training rows, those held out for validation included.
    n_effective_rows : float
        The number of rows that trained or their total weight, whichever is larger.
    noise : NoiseModel or None
        What is believed of the noise; None where nothing was estimated or given.
    untwists : bool
        Whether posteriors are corrected by that noise.
    menon : MenonEstimate or None
        What alpha follows from, where the paper's estimate says it.
    out_of_fold : OutOfFold or None
        What models said of rows that they had not seen; None where rows were not judged by folds.
    sources : NoiseBySource or None
        How noisy the labels of each source are; None where `fit` was given no sources.
    has_twins : bool
        Whether enough training rows nearly repeat rows of other folds for these to have remembered labels.
    """

    classes: NDArray[Any]
    link: Link | SoftmaxLink
    class_weights: Array
    n_rows: int
    n_effective_rows: float
    noise: NoiseModel | None = None
    untwists: bool = False
    menon: MenonEstimate | None = None
    out_of_fold: OutOfFold | None = None
    sources: NoiseBySource | None = None
    has_twins: bool = False

    @property
    def estimate(self) -> NoiseEstimate | None:
        """How noisy the labels are, by whatever has estimated it."""
        return self.menon if self.noise is None else self.noise

    @property
    def has_wrong_labels(self) -> bool:
        """Whether wrong labels were found: among all labels, or as those of a source that stands out."""
        stands_out = self.sources is not None and bool(self.sources.stands_out.any())
        return stands_out or (self.estimate is not None and bool(self.estimate.found))

    @property
    def unreliable_words(self) -> str:
        """What is said in place of rates that near-duplicates make too low; empty where rates can be told."""
        if not self.has_twins or (self.untwists and self.noise is not None and self.noise.is_given):
            return ""
        return SOME_WRONG if self.has_wrong_labels else NOTHING_KNOWN

    @property
    def reliable_noise(self) -> NoiseEstimate | None:
        """How noisy the labels are; None where nothing was estimated, or where the estimate cannot be relied on.

        Where near-duplicates make rates too low, no higher rate is excluded.
        """
        if self.estimate is None or not self.unreliable_words:
            return self.estimate
        return self.estimate.drop_upper_limits() if self.estimate.found else None

    @property
    def reliable_sources(self) -> NoiseBySource | None:
        """How noisy the labels of each source are; None where `fit` was given no sources, or where nothing can be told.

        Where near-duplicates make shares too low, no higher share is excluded.
        """
        if self.sources is None or not self.unreliable_words:
            return self.sources
        return self.sources.drop_upper_limits() if self.has_wrong_labels else None

    def write_html_parts(self) -> list[str]:
        """Write how noisy the labels are as fragments of HTML, as far as that is known."""
        if self.estimate is None:
            return [write_fragment("Noise", NO_NOISE)]
        words = self.unreliable_words
        return [write_fragment("Noise", words) if words else self.estimate.write_html(self.classes)]

    def describe_sources(self) -> str:
        """Say in words which sources are noisier than the others; empty where `fit` was given no sources."""
        if self.sources is None:
            return ""
        if self.reliable_sources is None:
            return f"which of {len(self.sources.names):,} are noisier than the others cannot be told either"
        return self.reliable_sources.describe()

    @cached_property
    def posterior(self) -> Posterior:
        """How scores become posteriors."""
        floor = find_posterior_floor(self.n_effective_rows)
        return Posterior(self.link, floor, self.class_weights, self.noise if self.untwists else None)

    def encode_labels(self, name: str, y: Any) -> NDArray[np.uint32]:
        """Return labels as indices of `classes`; `name` is what errors call them."""
        return encode_labels(name, y, self.classes)

    def choose_labels(self, decision: Array) -> NDArray[Any]:
        """Return the label that decision values speak for."""
        return np.asarray(self.classes[self.posterior.choose(decision)])

    def out_of_fold_posterior(self) -> Array | None:
        """Return the twisted posterior of every training row by models that have not seen it, if there are such."""
        if self.out_of_fold is None or self.out_of_fold.context.fingerprint is None:
            return None
        posterior = self.out_of_fold.posterior
        if (self.class_weights == 1).all():
            return posterior
        weighted = posterior * np.where(self.class_weights > 0, self.class_weights, 1.0)
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))

    def remember_twins(self, twins: NearDuplicates) -> Self:
        """Return the same model, which knows of rows that nearly repeat rows of other folds."""
        if self.out_of_fold is None:
            return self
        return replace(self, out_of_fold=self.out_of_fold.add_context(twins=twins), has_twins=True)

    def unweigh(self, posterior: Array) -> Array:
        """Return posteriors of labels that class weights have multiplied as they are without them.

        Parameters
        ----------
        posterior : array of shape (n_rows, n_classes)
            Posteriors of every class.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        return self.posterior.unweigh(posterior)

    def find_posterior_of_labels(self, scores: Array) -> Array:
        """Return the twisted posterior that labels follow, without the weights of classes.

        Parameters
        ----------
        scores : array of shape (n_rows, n_columns)
            Boosted scores: one column for two classes, else one per class.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        return self.posterior.twisted_of_labels(scores[:, 0] if len(self.classes) == 2 else scores)

    def find_source_labels_follow(self, clean: Array, source: Any = None) -> Array:
        """Return the posterior that labels of given sources follow where the clean one is known.

        Parameters
        ----------
        clean : array of shape (n_rows, n_classes)
            The clean posterior, without the weights of classes.
        source : array-like of shape (n_rows,) or None
            Who gives each label; None for a source that nobody knows, which errs as all of them together do.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        if self.sources is None:
            raise ValueError("source must be None: fit was not told the sources of its labels")
        unknown = np.full(len(clean), UNKNOWN, dtype=np.intp)
        index = unknown if source is None else look_up_sources(source, self.sources.names, len(clean))
        return self.sources.noisy(clean, index)
