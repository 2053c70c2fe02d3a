"""Which labels are wrong? Every row with the probability that its label is, and reasons a person can check.

The room judges labels and computes everything that a report shows:

- `auditing`: the audit itself;
- `judges`: whose posteriors judge the labels: our own models, clones of any other, or models that are not known;
- `rows`, `posteriors`: for the latter two, the rows, and the posteriors that are given;
- `seen_labels`: posteriors that are too good to be of a model that has not seen the labels;
- `labels`: what it found; `context` has what is known of the rows, `audited_sources` who gave the labels;
- `statements`: numbers that say what they are of and rest on, and how numbers are written;
- `verdict`: what may be said of the labels, decided once, which `notebook` shows; `yields`: what a review finds;
- `judging`: how likely each label is wrong, and how many are;
- `sources`: how good the labels of each source are, and what several labels of an item say;
- `reasons`, `explaining`: why a label is doubted;
- `confusions`: which class bears which label how often;
- `slices`: where wrong labels concentrate;
- `hidden_sources`: a column that looks like a source rather than a feature;
- `issues`: what else is wrong with the data;
- `training`: the chosen candidate once more, without a column;
- `findings`, `calibration`: the numbers of a report, for which nothing is fitted;
- `comparison`, `peers`: how other boosters do on the same folds.
"""

from untwist.audit.audited_sources import AuditedSources
from untwist.audit.auditing import audit_labels
from untwist.audit.confusions import Confusion
from untwist.audit.context import AuditContext, AuditedTable, Judge
from untwist.audit.explaining import explain_rows
from untwist.audit.hidden_sources import HiddenSource
from untwist.audit.issues import DataIssue, Example, find_data_issues
from untwist.audit.labels import LabelAudit
from untwist.audit.reasons import Explanation, Reason
from untwist.audit.reviewed import ReviewOutcome
from untwist.audit.slices import Slice
from untwist.audit.sources import Disagreement, JudgedItem, SourceQuality
from untwist.audit.statements import Statement
from untwist.audit.verdict import Notice, NoticeKind, State, Verdict
from untwist.data.decisions import Decisions
from untwist.files.decisions import read_decisions, write_decisions

__all__ = [
    "AuditContext",
    "AuditedSources",
    "AuditedTable",
    "Confusion",
    "DataIssue",
    "Decisions",
    "Disagreement",
    "Example",
    "Explanation",
    "HiddenSource",
    "Judge",
    "JudgedItem",
    "LabelAudit",
    "Notice",
    "NoticeKind",
    "Reason",
    "ReviewOutcome",
    "Slice",
    "SourceQuality",
    "State",
    "Statement",
    "Verdict",
    "audit_labels",
    "explain_rows",
    "find_data_issues",
    "read_decisions",
    "write_decisions",
]
