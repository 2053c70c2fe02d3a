"""The benchmark of posteriors of any model: the same posteriors for both, and tables of what they find."""

import numpy as np
import pytest

from experiments.benchmarks import any_model
from experiments.benchmarks.any_model import OURS, SEEN, THEIRS, AuditJob, AuditRow


def test_a_job_judges_the_same_labels_three_times():
    pytest.importorskip("cleanlab")
    job = AuditJob("cancer", "symmetric-0.2", 0, 250, "forest", several=False)
    rows = {row.method: row for row in any_model.judge(job, folder=None)}
    assert [row.key for row in rows.values()] == [job.keys[index] for index in (0, 2, 1)]
    assert {(row.rows, row.wrong) for row in rows.values()} == {(250, rows[OURS].wrong)}
    assert rows[OURS].average_precision > 0.6
    assert rows[THEIRS].average_precision > 0.6
    assert (rows[OURS].named, rows[OURS].named_without_rows) == (0, 0)
    assert (rows[SEEN].named, rows[SEEN].named_without_rows) == (1, 1)


def test_tables_average_over_sets_and_leave_out_what_is_not_known():
    common = {"seed": 0, "max_rows": 9, "model": "forest", "rows": 10}
    rows = [
        AuditRow("a", "x", method=OURS, wrong=4, average_precision=0.5, flagged=4, hits=2, hits_at_number=3, **common),
        AuditRow("b", "x", method=OURS, wrong=4, average_precision=1.0, flagged=4, hits=4, hits_at_number=4, **common),
        AuditRow("a", "none", method=OURS, flagged=1, **common),
        AuditRow("a", "none", method=THEIRS, flagged=3, **common),
        AuditRow("a", "x", method=SEEN, wrong=4, named=1, **common),
    ]
    judged, named = any_model.make_tables(rows, "design")
    assert judged.lines[0] == ["forest", OURS, "0.750", "0.750", "0.875", "0.100", "-", "0.000"]
    assert judged.lines[1][2:6] == ["-", "-", "-", "0.300"]
    assert ["forest", "seen, noisy labels", "1.000", "0.000"] in named.lines
    assert "a, b" in judged.title
    assert np.isnan(rows[2].recall_at_number)
