"""Lengths of time, Booleans and numbers do not take each other's place in silence."""

import numpy as np
import pytest

from helpers.command_line import untwist

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")

NUMBERS = np.random.default_rng(0).normal(size=300).round(3)
LABELS = np.where(NUMBERS > 0.2, "yes", "no")


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """What trains a model on a column."""
    monkeypatch.chdir(tmp_path)

    def run(values, *options):
        pd.DataFrame({"t": values, "y": LABELS}).to_parquet("train.parquet")
        assert untwist(capsys, "train", "train.parquet", "--label", "y", "-o", "m.untwist", *options)[0] == 0

    return run


def predict(capsys, values, name="new.parquet", *options):
    frame = pd.DataFrame({"t": values})
    frame.to_parquet(name) if name.endswith("parquet") else frame.to_csv(name, index=False)
    status, _, err = untwist(capsys, "predict", "m.untwist", name, "-o", "p.csv", *options)
    return status, err


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_lengths_of_time_and_numbers_are_told_apart(way, train, capsys):
    lengths = pd.to_timedelta(NUMBERS, unit="D")
    train(lengths, way)
    assert predict(capsys, lengths, "new.parquet", way)[0] == 0
    status, err = predict(capsys, NUMBERS, "new.parquet", way)
    assert status == 1
    assert "column 't' is one of lengths of time to the model, and holds numbers now" in err
    train(NUMBERS, way)
    status, err = predict(capsys, lengths, "new.parquet", way)
    assert status == 1
    assert "column 't' is one of numbers to the model, and holds lengths of time now" in err


@pytest.mark.parametrize("name", ["new.parquet", "new.csv"])
def test_booleans_and_numbers_are_told_apart(name, train, capsys):
    train(NUMBERS)
    status, err = predict(capsys, NUMBERS > 0.2, name)
    assert status == 0
    assert "t: holds Booleans, and held numbers in training: true is 1 and false is 0" in err
    assert "Booleans" not in predict(capsys, NUMBERS, name)[1]
    for truths in (NUMBERS > 0.2, np.where(NUMBERS > 0.2, "True", "False")):
        train(truths)
        for alike in (NUMBERS > 0.2, (NUMBERS > 0.2) * 1):
            assert predict(capsys, alike, name) == (0, "300 predictions in p.csv\n")
        status, err = predict(capsys, 1 + (NUMBERS > 0.2), name)
        assert status == 1
        assert "column 't' held Booleans when fitted, and numbers other than 0 and 1 now" in err


@pytest.mark.parametrize("name", ["new.parquet", "new.csv"])
def test_columns_that_no_tree_asks_for_may_hold_anything(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    unused = {"spent": pd.to_timedelta(np.ones(300), unit="h"), "flag": True}
    frame = pd.DataFrame({"t": NUMBERS, **unused})
    frame.assign(y=LABELS).to_parquet("train.parquet")
    assert untwist(capsys, "train", "train.parquet", "--label", "y", "-o", "m.untwist")[0] == 0
    found = []
    for new in (frame, frame.assign(spent=3.5), frame.assign(flag=2), frame.assign(spent="?", flag=pd.NaT)):
        new.to_parquet(name) if name.endswith("parquet") else new.to_csv(name, index=False)
        assert untwist(capsys, "predict", "m.untwist", name, "-o", "p.csv")[0] == 0
        found.append((tmp_path / "p.csv").read_text())
    assert len(set(found)) == 1


@pytest.mark.parametrize("kind", ["lengths of time", "numbers"])
def test_an_emptied_column_is_missing_of_whatever_kind_it_was(kind, train, capsys):
    train(pd.to_timedelta(NUMBERS, unit="D") if kind == "lengths of time" else NUMBERS)
    for nothing in (pd.NaT, np.nan, None):
        assert predict(capsys, pd.Series([nothing] * 300))[0] == 0
