"""An audit of a table in files answers whatever one of the same table in memory does, and with the same words."""

import tempfile

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from helpers.quick import QuickClassifier
from untwist.audit import audit_labels, find_data_issues
from untwist.audit.explaining import explain_rows
from untwist.batches import Batches
from untwist.data import batches
from untwist.files import dumps, loads
from untwist.report import compare, report

N = 300


def mark_slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture(scope="module", autouse=True)
def _read_many_blocks():
    """Blocks have some 60 rows here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "CELLS", 240)
        yield


@pytest.fixture(scope="module")
def table():
    """Rows of numbers, categories and dates; labels of three sources, one of which errs more than the others."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "level": rng.integers(0, 5, N) * 1.0,
            "city": rng.choice(["Ayr", "Bath", "Cork"], N),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D"),
        }
    )
    source = rng.choice(["a", "b", "c"], N)
    wrong = rng.random(N) < np.where(source == "c", 0.4, 0.05)
    rows["label"] = np.where((rows["size"] > 0) ^ wrong, "yes", "no")
    rows["source"] = source
    return rows


def audit(X, y, told):
    """The audit of a quick fit that chooses by folds."""
    model = QuickClassifier(n_estimators=8, max_depth=2, random_state=0).fit(X, y, **told)
    return audit_labels(X, y, model, source=told.get("source"))


@pytest.fixture(scope="module", params=["plain", mark_slow("by source"), mark_slow("reviewed")])
def both(request, table, tmp_path_factory):
    """The audit of a table in files, and that of the same table in memory."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pandas(table, preserve_index=False), path, row_group_size=100)
    told = {"plain": {}, "by source": {"source": table["source"].to_numpy()}, "reviewed": {"reviewed": np.arange(20)}}
    X, y = table.drop(columns=["label", "source"]), table["label"].to_numpy()
    return tuple(audit(rows, y, told[request.param]) for rows in (Batches(path).drop("label", "source"), X))


@pytest.fixture(params=["in a file", mark_slow("in memory")])
def place(request, both, monkeypatch):
    """Where the numbers of a table in files go: to memory, or where they are many to a nameless file."""
    made = []
    if request.param == "in a file":
        monkeypatch.setattr(batches, "MOST_CELLS_IN_MEMORY", 100)
        make = tempfile.TemporaryFile
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda: made.append(make()) or made[-1])
    vars(both[0].table).pop("numbers", None)
    yield request.param
    vars(both[0].table).pop("numbers", None)
    assert len(made) == (request.param == "in a file")
    assert all(file.closed for file in made)


def test_numbers_are_those_of_the_table_in_memory(both, place):
    in_files, in_memory = both
    np.testing.assert_array_equal(in_files.table.numbers, in_memory.table.numbers)
    assert isinstance(in_files.table.numbers.base, np.memmap) == (place == "in a file")


@pytest.mark.usefixtures("place")
def test_reasons_slices_issues_and_the_page_are_the_same(both):
    in_files, in_memory = both
    suspects = in_memory.ranking[:5]
    assert [str(one) for one in explain_rows(in_files, suspects)] == [
        str(one) for one in explain_rows(in_memory, suspects)
    ]
    assert str(in_files.explain(int(suspects[0]))) == str(in_memory.explain(int(suspects[0])))
    assert in_files.slices(false_discovery_rate=0.5) == in_memory.slices(false_discovery_rate=0.5)
    assert [str(one) for one in in_files.find_issues()] == [str(one) for one in in_memory.find_issues()]
    assert in_files.fingerprint == in_memory.fingerprint
    assert report(in_files, title="rows") == report(in_memory, title="rows")


def test_other_boosters_need_the_rows_in_memory(both, monkeypatch):
    monkeypatch.setattr(batches, "MOST_CELLS_IN_MEMORY", 100)
    with pytest.raises(
        ValueError, match=r"need all rows in memory, and Batches\(.*, 300 rows, 4 columns\) are too many"
    ):
        compare(both[0])


def test_issues_of_a_table_in_files_are_those_of_the_same_table(table, tmp_path):
    rows = table.drop(columns=["label", "source"]).take([*range(290), *range(10)]).reset_index(drop=True)
    rows.to_parquet(tmp_path / "rows.parquet")
    labels = table["label"]
    found = [find_data_issues(one, labels) for one in (Batches(tmp_path / "rows.parquet"), rows)]
    assert [str(one) for one in found[0]] == [str(one) for one in found[1]]
    assert "exact_duplicates" in {one.kind for one in found[0]}
    with pytest.raises(ValueError, match="y must have no missing labels, got 300, the first in row 0"):
        find_data_issues(rows, np.ma.masked_all(300))


def test_a_page_shows_data_frames_of_pandas(both):
    with pytest.raises(ValueError, match="table must be a pandas DataFrame of what to show, got a ndarray"):
        report(both[1], title="rows", table=np.zeros((N, 2)))


def test_a_model_from_a_file_cannot_be_audited(both):
    in_memory = both[1]
    with pytest.raises(ValueError, match="A file keeps no posteriors of folds, so that a loaded one is none"):
        audit_labels(in_memory.table.X, in_memory.given, loads(dumps(in_memory.model)))
