"""The rows that a page holds for its script: every value, what is usual, who is similar; and that they stay small."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from helpers.report_fixtures import make_customers, read_text, unpack
from untwist.audit import audit_labels, findings
from untwist.report import report, worksheet


def read_column(sheet, name):
    (column,) = [one for one in sheet["columns"] if one["name"] == name]
    return [column["values"][code] for code in column["codes"]], column


@pytest.fixture(scope="module")
def sheet(shop):
    return unpack(report(shop, title="t"))


def test_it_has_every_suspect_with_its_values_and_reasons(shop, sheet):
    suspects = shop.suspects()
    assert sheet["n"] == len(suspects)
    assert sheet["row"][: sheet["n"]] == suspects.tolist()
    assert [shop.classes[i] for i in sheet["given"]] == shop.given[sheet["row"]].tolist()
    assert [shop.classes[i] for i in sheet["like"]] == shop.predicted[suspects].tolist()
    assert sheet["wrong"] == pytest.approx(shop.wrong[suspects], abs=5e-5)
    assert sheet["most"] is None
    assert sheet["source"] is None
    assert [one["name"] for one in sheet["columns"]] == list(shop.table.X.columns)
    assert read_column(sheet, "city")[0] == shop.table.X["city"].iloc[sheet["row"]].tolist()
    calls = shop.table.X["calls to support"].iloc[sheet["row"]]
    assert read_column(sheet, "calls to support")[0] == ["" if np.isnan(one) else f"{one:.0f}" for one in calls]
    for place in (0, 5, sheet["n"] - 1):
        one = shop.explain(suspects[place])
        assert sheet["against"][place] == [one.n_disagreeing, one.n_similar]
        assert [sheet["row"][i] for i in sheet["similar"][place]] == list(one.similar)
        reasons = [reason for reason in one.reasons if reason.effect >= worksheet.LEAST_SHOWN_EFFECT]
        found = [(sheet["columns"][column]["name"], effect) for column, _, effect in sheet["reasons"][place]]
        assert found == [(reason.column, round(reason.effect, 1)) for reason in reasons]


def test_what_is_usual_is_said_for_each_label(shop, sheet):
    for label, name in enumerate(shop.classes):
        ages = shop.table.X["age"][shop.given == name]
        low = np.quantile(ages, 0.025, method="lower")
        high = np.quantile(ages, 0.975, method="higher")
        _, column = read_column(sheet, "age")
        assert column["usual"][str(label)] == f"{low:.4g} to {high:.4g}"
        cities = shop.table.X["city"][shop.given == name]
        commonest = cities.mode()[0]
        assert read_column(sheet, "city")[1]["usual"][str(label)] == f"{commonest} ({(cities == commonest).mean():.0%})"
        odd = [i for i in column["odd"] if shop.classes[sheet["given"][i]] == name]
        ages_here = shop.table.X["age"].iloc[sheet["row"]].to_numpy()
        expected = [
            i for i in range(sheet["n"]) if sheet["given"][i] == label and (ages_here[i] < low or ages_here[i] > high)
        ]
        assert odd == expected


def test_a_table_shows_what_the_model_does_not_see_as_it_is_written(shop):
    n = len(shop.given)
    table = pd.DataFrame({"id": [f"C-{i}" for i in range(n)], "signup": ["20.08.2021"] * n, "age": "old"})
    sheet = unpack(report(shop, title="t", table=table))
    names = [one["name"] for one in sheet["columns"]]
    assert names[:3] == ["id", "signup", "age"]
    assert set(names[3:]) == set(shop.table.X.columns) - {"age"}
    assert read_column(sheet, "id")[0] == [f"C-{row}" for row in sheet["row"]]
    assert "usual" not in read_column(sheet, "id")[1]
    values, age = read_column(sheet, "age")
    assert set(values) == {"old"}
    assert age["usual"]


def test_cells_of_any_kind_are_text():
    cells = [
        None,
        np.nan,
        pd.NaT,
        pd.NA,
        3.0,
        0.1 + 0.2,
        10**20,
        1e300,
        True,
        pd.Timestamp("2024-02-29"),
        "a\nb",
        "x" * 999,
    ]
    texts = [worksheet._write_value(cell) for cell in cells]
    assert texts[:10] == ["", "", "", "", "3", "0.3", str(10**20), "1e+300", "True", "2024-02-29"]
    assert texts[10] == "a b"
    assert texts[11] == "x" * 199 + "…"


def test_sources_come_with_the_rows():
    table, labels, _ = make_customers(400)
    source = np.array(["Anna", "Ben", None, "Anna"] * 100, dtype=object)
    audit = audit_labels(table, labels, source=source)
    sheet = unpack(report(audit, title="t", suspects=audit.suspects(budget=30)))
    found = [sheet["source"]["values"][code] for code in sheet["source"]["codes"]]
    assert found == [source[row] or "" for row in sheet["row"]]


def test_a_page_holds_as_many_rows_as_it_can_and_says_so(shop, monkeypatch):
    full = report(shop, title="t")
    assert "This page holds" not in full
    monkeypatch.setattr(worksheet, "MOST_PACKED", 12_000)
    page = report(shop, title="t")
    sheet = unpack(page)
    assert 10 < sheet["n"] < len(shop.suspects())
    assert len(page) < len(full)
    assert f"This page holds the first {sheet['n']:,} of {len(shop.suspects()):,}." in read_text(page)


def test_more_suspects_than_are_explained_are_counted(shop, monkeypatch):
    monkeypatch.setattr(findings, "MOST_EXPLAINED", 20)
    monkeypatch.setattr(findings, "MOST_COMPARED", 5)
    page = report(shop, title="t")
    sheet = unpack(page)
    assert sheet["n"] == 20
    assert [bool(one) for one in sheet["similar"]] == [True] * 5 + [False] * 15
    assert all(sheet["reasons"])
    assert f"This page holds the first 20 of {len(shop.suspects()):,}." in read_text(page)


@pytest.mark.slow
def test_of_very_many_columns_those_that_matter_are_shown():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 80)), columns=[f"measurement {i}" for i in range(80)])
    audit = audit_labels(X, ((X.iloc[:, 77] > 0) ^ (rng.random(200) < 0.15)).astype(int))
    sheet = unpack(report(audit, title="wide", suspects=audit.suspects(budget=5)))
    names = [one["name"] for one in sheet["columns"]]
    assert len(names) == worksheet.MOST_COLUMNS
    assert sheet["left_out"] == 20
    assert "measurement 77" in names
    assert names == [name for name in X.columns if name in names]
    wide = X.assign(**{f"remark {i}": "text" for i in range(30)})
    names = [one["name"] for one in unpack(report(audit, title="t", suspects=[3], table=wide))["columns"]]
    assert len([name for name in names if name.startswith("remark")]) == worksheet.MOST_OTHERS
    assert "measurement 77" in names


def test_the_script_is_told_of_the_data_and_of_a_server(shop):
    page = report(shop, title="</script>", row_name="line")
    (config,) = re.findall(r"id=review-config>(.*?)</script>", page)
    assert json.loads(config) == {
        "fingerprint": shop.fingerprint,
        "title": "</script>",
        "classes": ["leaves", "stays"],
        "row_name": "line",
        "server": None,
        "has_names": False,
    }
    served = report(shop, title="t", fingerprint="a-b", server="decisions")
    assert '"fingerprint":"a-b"' in served
    assert '"server":"decisions"' in served
    assert "connect-src 'self'" in served
    assert "sends nothing" not in served
