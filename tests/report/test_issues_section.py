"""The section of a report about the data beside the labels."""

import numpy as np
import pandas as pd

from helpers.report_fixtures import Page, read_text
from untwist.audit import DataIssue, Example, audit_labels
from untwist.audit.issues.issue import KINDS
from untwist.report import report
from untwist.report.issues import write_issues


def test_every_finding_has_its_reason_its_rows_and_examples():
    issue = DataIssue("small_class", np.array([3, 4]), ("<b>",), 0.1, "2 rows <i>", (Example((3,), "<b> is 7"),))
    text = write_issues([issue], [f"line-{row}" for row in range(9)], "line")
    assert Page(text).tags.count("tr") == 2
    assert "Class too small to learn" in text
    assert "2 rows &lt;i&gt;" in text
    assert "line line-3: &lt;b&gt; is 7" in text
    assert write_issues([], [], "row") == ""
    many = read_text(write_issues([issue] * 50, list(range(9)), "row"))
    assert "... and 10 more." in many


def test_all_kinds_have_words():
    for kind in KINDS:
        assert write_issues([DataIssue(kind, np.zeros(0, dtype=int), (), 1.0, "why")], [], "row")


def test_a_report_has_the_section_only_where_there_is_something():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y = (X["a"] > 0).to_numpy().astype(int)
    audit = audit_labels(X, y, n_jobs=1)
    assert "What else to look at" not in report(audit, title="t", issues=[])
    X.loc[7] = X.loc[5]
    y[7] = y[5]
    page = read_text(report(audit_labels(X, y, n_jobs=1), title="t"))
    assert "What else to look at" in page
    assert "rows 5, 7" in page
