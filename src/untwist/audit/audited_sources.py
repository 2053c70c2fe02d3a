"""Who gave the labels of an audit: each source, each item, and who disagrees with whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.context import AuditContext
from untwist.audit.sources import (
    Disagreement,
    JudgedItem,
    SourceQuality,
    find_disagreements,
    judge_items,
    rate_sources,
)
from untwist.data.sources import look_up_sources
from untwist.noise.model import NoiseModel
from untwist.optional import import_optional
from untwist.theory import twists

__all__ = ["AuditedSources"]


@dataclass(frozen=True, eq=False)
class AuditedSources:
    """What is known of each source of labels and of each item; `LabelAudit.sources` has it.

    Parameters
    ----------
    classes : array
        The labels that there are.
    labels : array of int
        The index of each row's label among them.
    posterior, wrong, weight, noise
        As in the audit.
    context : AuditContext
        Who gave each label, what it is a label of, and what each source gets wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from untwist.audit import audit_labels
    >>> rng = np.random.default_rng(0)
    >>> X, source = rng.normal(size=(600, 3)), np.repeat(["ann", "bob", "eve"], 200)
    >>> y = X[:, 0] > 0
    >>> y[400:480] = ~y[400:480]
    >>> print(audit_labels(X, y, source=source).sources.rate()[0].name)
    eve
    """

    classes: NDArray[Any]
    labels: NDArray[np.intp]
    posterior: Array
    wrong: Array
    weight: Array
    noise: NoiseModel
    context: AuditContext

    @cached_property
    def indices(self) -> NDArray[np.intp]:
        """The index of each row's source among those known; -1 where it is not known, or none were given."""
        by_source, source = self.context.by_source, self.context.source
        if by_source is None or source is None:
            return np.full(len(self.labels), -1, dtype=np.intp)
        return look_up_sources(source, by_source.names, len(self.labels))

    @cached_property
    def item_indices(self) -> NDArray[np.intp]:
        """The number of each row's item, in the order of their names; without items every row is one."""
        if self.context.item is None:
            return np.arange(len(self.labels))
        return np.unique(self.context.item, return_inverse=True)[1]

    @cached_property
    def truth(self) -> Array:
        """The probability of each class to be the truth, row by row, by the features and all labels of the item."""
        assert self.context.by_source is not None  # Without sources the audit tells it by the labels alone.
        by_item = self.context.by_source.find_truth(self.posterior, self.labels, self.indices, self.item_indices)
        return by_item[self.item_indices]

    @property
    def labels_per_item(self) -> float:
        """How many labels an item has on average."""
        return len(self.labels) / (int(self.item_indices.max(initial=0)) + 1)

    @property
    def share_repeated(self) -> float:
        """The share of rows whose item has several labels."""
        return float(np.mean(np.bincount(self.item_indices)[self.item_indices] > 1))

    @property
    def n_unknown(self) -> int:
        """How many labels are of no known source, and count."""
        return int(np.count_nonzero((self.indices < 0) & (self.weight > 0)))

    @property
    def alpha_star(self) -> Array:
        """The alpha that undoes the noise of each row's source there: the paper's pointwise alpha*, for two classes.

        It is the quotient of the log-odds of the clean posterior and of the posterior that labels of that source
        follow, both by the features alone; see `untwist.twists.alpha_star`.
        """
        if len(self.classes) != 2:
            raise ValueError(f"alpha_star is for two classes, and there are {len(self.classes)}")
        clean = self.noise.clean(self.posterior)
        by_source = self.context.by_source
        twisted = self.posterior if by_source is None else by_source.noisy(clean, self.indices)
        return twists.alpha_star(clean[:, 1], twisted[:, 1])

    def rate(self) -> list[SourceQuality]:
        """Return how good the labels of every source are: "45% of the labels of Leipzig are wrong".

        Returns
        -------
        list of SourceQuality
            Those that stand out first, and of each kind the worst first; none where no sources were given.
        """
        if self.context.by_source is None:
            return []
        return rate_sources(self.context.by_source, self.classes, self.indices, self.wrong, self.weight)

    def find_disagreements(self) -> list[Disagreement]:
        """Return who disagrees with whom on items that both have labelled, and how much their quality explains.

        Returns
        -------
        list of Disagreement
            Those that stand out first, and of each kind the one with most disagreements that quality does not explain.
        """
        if self.context.by_source is None:
            return []
        counted = self.weight > 0
        return find_disagreements(
            self.context.by_source,
            self.truth[counted],
            self.labels[counted],
            self.indices[counted],
            self.item_indices[counted],
        )

    def judge_items(self) -> list[JudgedItem]:
        """Return every item with the class that it most likely is, and who said what of it.

        Returns
        -------
        list of JudgedItem
            In the order of the names of items; none where no sources were given.
        """
        if self.context.source is None or self.context.item is None:
            return []
        names = np.unique(self.context.item)
        return judge_items(self.classes, self.truth, self.labels, self.context.source, self.item_indices, names)

    def to_frame(self) -> Any:
        """Return the sources as a pandas DataFrame, with the columns that cleanlab gives for annotators.

        Returns
        -------
        pandas.DataFrame
            A line per source, the worst first: `annotator_quality` is the share of its labels that are right, with
            `low` and `high`, `agreement_with_consensus` the share that names the truth of its item, and `worst_class`
            the true class that it mislabels most often.
        """
        pandas = import_optional("pandas", "sources.to_frame", extra="cli")
        sources = self.rate()
        by_source = self.context.by_source
        names, n_agreeing = [], []
        if by_source is not None:
            names = by_source.names.tolist()
            agrees = np.argmax(self.truth, axis=1) == self.labels
            counted = (self.weight > 0) & (self.indices >= 0)
            n_agreeing = np.bincount(self.indices[counted & agrees], minlength=len(names)).tolist()
        agreeing = dict(zip(names, n_agreeing, strict=True))
        columns = {
            "annotator_quality": [1.0 - one.share_wrong for one in sources],
            "low": [1.0 - one.high for one in sources],
            "high": [1.0 - one.low for one in sources],
            "num_examples_labeled": [one.labels for one in sources],
            "agreement_with_consensus": [agreeing[one.name] / one.labels if one.labels else np.nan for one in sources],
            "worst_class": [one.worst_class[0] for one in sources],
            "stands_out": [one.stands_out for one in sources],
        }
        return pandas.DataFrame(columns, index=pandas.Index([one.name for one in sources], name="source"))

    def items_to_frame(self) -> Any:
        """Return the items as a pandas DataFrame, with the columns that cleanlab gives for several annotators.

        Returns
        -------
        pandas.DataFrame
            A line per item: `consensus_label` is its truth, `consensus_quality_score` the probability of that,
            `annotator_agreement` the share of its labels that say so, `num_annotations` how many it has.
        """
        pandas = import_optional("pandas", "sources.items_to_frame", extra="cli")
        items = self.judge_items()
        columns = {
            "consensus_label": [one.truth for one in items],
            "consensus_quality_score": [one.probability for one in items],
            "annotator_agreement": [one.agreement for one in items],
            "num_annotations": [len(one.votes) for one in items],
        }
        return pandas.DataFrame(columns, index=pandas.Index([one.item for one in items], name="item"))
