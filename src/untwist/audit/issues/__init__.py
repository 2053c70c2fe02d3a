"""What else is wrong with the data than its labels, each finding with its rows and its reason.

- `issue`: what a finding is;
- `rows`: how rows are compared, whatever their units;
- `duplicates`: rows that repeat others;
- `columns`: columns that give the label away, say nothing, or name the rows;
- `drift`: what changes with the order of the rows, or with time;
- `groups`: classes too small to learn, groups where the model fails;
- `finding`: all of these in one list.
"""

from untwist.audit.issues.finding import find_data_issues
from untwist.audit.issues.issue import DataIssue, Example

__all__ = ["DataIssue", "Example", "find_data_issues"]
