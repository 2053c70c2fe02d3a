"""What an audit found as data frames, against loops over rows, items and sources."""

import numpy as np
import pandas as pd
import pytest

from helpers.small_audits import change, make_audit, make_audit_by_source


def test_rows_have_the_index_of_the_table_and_their_source_and_item():
    audit = make_audit()
    frame = audit.to_frame()
    assert list(frame) == ["is_label_issue", "label_quality", "given_label", "predicted_label"]
    assert frame.index.tolist() == list(range(60))
    assert frame.index[frame["is_label_issue"]].tolist() == sorted(audit.suspects())
    np.testing.assert_array_equal(frame["label_quality"], 1.0 - audit.wrong)
    named = make_audit_by_source(X=pd.DataFrame({"x": np.arange(60)}, index=[f"r{row}" for row in range(60)]))
    frame = named.to_frame()
    assert frame.index.tolist() == [f"r{row}" for row in range(60)]
    assert list(frame)[4:] == ["source", "item"]
    assert frame["source"].isna().tolist() == [one is None for one in named.context.source]
    assert frame["source"].dropna().tolist() == [one for one in named.context.source if one is not None]
    assert frame["item"].tolist() == named.context.item.tolist()
    assert list(change(named, item=None).to_frame())[4:] == list(change(named, source=None).to_frame())[4:] == []


def test_items_have_their_consensus():
    audit = make_audit_by_source(3)
    frame = audit.sources.items_to_frame()
    assert frame.index.name == "item"
    assert frame.index.tolist() == list(range(20))
    for item, line in frame.iterrows():
        rows = [row for row in range(60) if audit.context.item[row] == item]
        best = int(audit.truth[rows[0]].argmax())
        assert line["consensus_label"] == audit.classes[best]
        assert line["consensus_quality_score"] == audit.truth[rows[0], best]
        assert line["annotator_agreement"] == np.mean([audit.given[row] == audit.classes[best] for row in rows])
        assert line["num_annotations"] == 3


def test_sources_have_what_is_right_of_their_labels():
    audit = make_audit_by_source(3, weight=(np.arange(60) % 4 > 0).astype(float))
    frame = audit.sources.to_frame()
    assert frame.index.tolist() == [one.name for one in audit.sources.rate()]
    for one in audit.sources.rate():
        line = frame.loc[one.name]
        rows = [row for row in range(60) if audit.context.source[row] == one.name and audit.weight[row] > 0]
        agreeing = [audit.truth[row].argmax() == audit.label_indices[row] for row in rows]
        assert line["annotator_quality"] == 1 - one.share_wrong
        assert (line["low"], line["high"]) == (1 - one.high, 1 - one.low)
        assert line["num_examples_labeled"] == len(rows) == one.labels
        assert line["agreement_with_consensus"] == pytest.approx(np.mean(agreeing))
        assert line["worst_class"] == one.worst_class[0]
        assert line["stands_out"] == one.stands_out
    absent = change(audit, weight=np.where(audit.context.source == "eve", 0.0, 1.0)).sources.to_frame()
    assert np.isnan(absent.loc["eve", "agreement_with_consensus"])
    assert absent["agreement_with_consensus"].drop("eve").notna().all()
    assert len(make_audit().sources.to_frame()) == 0
