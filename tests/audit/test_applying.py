"""Decisions applied to the labels of an audit."""

import numpy as np
import pytest

from helpers.small_audits import change
from untwist.audit import Decisions, write_decisions


def decide(audit, rows, labels, mark=None):
    given = audit.given[rows]
    words = ["keep" if str(a) == str(b) else "relabel" for a, b in zip(given, labels, strict=True)]
    return Decisions(rows, given, words, labels, [""] * len(rows), mark or audit.fingerprint)


def test_labels_decided_on_change_and_no_others(shop, tmp_path):
    other = shop.classes[1] if shop.given[5] == shop.classes[0] else shop.classes[0]
    decisions = decide(shop, [5, 9], [other, shop.given[9]])
    expected = shop.given.copy()
    expected[5] = other
    assert shop.apply(decisions).tolist() == expected.tolist()
    write_decisions(tmp_path / "d.csv", decisions)
    assert shop.apply(tmp_path / "d.csv").tolist() == shop.apply(str(tmp_path / "d.csv")).tolist() == expected.tolist()


def test_numbers_stay_numbers(three, tmp_path):
    write_decisions(tmp_path / "d.csv", decide(three, [0], [(three.given[0] + 1) % 3]))
    changed = three.apply(tmp_path / "d.csv")
    assert changed.dtype == three.given.dtype
    assert np.flatnonzero(changed != three.given).tolist() == [0]


def test_decisions_about_other_data_are_refused(three):
    features, labels = three.fingerprint.split("-")
    for mark, words in ((f"{9:016x}-{labels}", "other features"), (f"{features}-{9:016x}", "other labels")):
        with pytest.raises(ValueError, match=words):
            three.apply(decide(three, [0], [three.given[0]], mark))


def test_where_rows_are_one_item_only_the_row_decided_on_changes(three):
    audit = change(three, item=np.zeros(len(three.given), dtype=int))
    changed = audit.apply(decide(audit, [3], [(audit.given[3] + 1) % 3]))
    assert np.flatnonzero(changed != audit.given).tolist() == [3]
