"""Which labels are wrong? Every row with the probability that its label is, and reasons a person can check."""

from untwist.audit.labels import (
    Explanation,
    LabelAudit,
    Reason,
    Slice,
    audit_labels,
)

__all__ = ["Explanation", "LabelAudit", "Reason", "Slice", "audit_labels"]
