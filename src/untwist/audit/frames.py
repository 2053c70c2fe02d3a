"""What an audit found as data frames, with the names of columns that users of cleanlab know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from untwist.optional import import_optional

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["list_items", "list_rows", "list_sources"]


def list_rows(audit: LabelAudit) -> Any:
    """Return the rows with the columns of cleanlab.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    pandas.DataFrame
    """
    pandas = import_optional("pandas", "to_frame", extra="cli")
    is_suspect = np.zeros(len(audit.given), dtype=np.bool_)
    is_suspect[audit.suspects()] = True
    columns = {
        "is_label_issue": is_suspect,
        "label_quality": 1.0 - audit.wrong,
        "given_label": audit.given,
        "predicted_label": audit.predicted,
    }
    if audit.source is not None and audit.item is not None:
        columns |= {"source": audit.source, "item": audit.item}
    return pandas.DataFrame(columns, index=audit.X.index if hasattr(audit.X, "iloc") else None)


def list_items(audit: LabelAudit) -> Any:
    """Return the items with the columns that cleanlab gives for several annotators.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    pandas.DataFrame
    """
    pandas = import_optional("pandas", "items_to_frame", extra="cli")
    items = audit.list_items()
    columns = {
        "consensus_label": [one.truth for one in items],
        "consensus_quality_score": [one.probability for one in items],
        "annotator_agreement": [one.agreement for one in items],
        "num_annotations": [len(one.votes) for one in items],
    }
    return pandas.DataFrame(columns, index=pandas.Index([one.item for one in items], name="item"))


def list_sources(audit: LabelAudit) -> Any:
    """Return the sources with the columns that cleanlab gives for annotators.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    pandas.DataFrame
    """
    pandas = import_optional("pandas", "sources_to_frame", extra="cli")
    sources = audit.list_sources()
    agrees = np.argmax(audit.truth, axis=1) == audit.label_indices
    counted = (audit.weight > 0) & (audit.source_indices >= 0)
    names = [] if audit.by_source is None else audit.by_source.names.tolist()
    n_agreeing = np.bincount(audit.source_indices[counted & agrees], minlength=len(names)).tolist()
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
