"""What the fuzzer kept, replayed: whatever once broke a reader, and the smallest inputs that reach most of its code."""

import warnings

import pytest

pytest.importorskip("pandas", reason="the commands read tables with pandas")
pytest.importorskip("pyarrow", reason="and Parquet with pyarrow")

from reliability import corpus, fuzz
from reliability.targets import TARGETS, make_seeds

MOST_BYTES = 1_000_000  # All archives together are not larger than this.


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_are_refused_or_harmless(name):
    kept = corpus.read_inputs(name)
    assert kept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for content in [*make_seeds(name), *kept.values()]:
            TARGETS[name](content)


def test_there_are_inputs_for_all_targets_and_they_are_small():
    assert {*corpus.list_targets()} == {*TARGETS, "forest", "engine"}  # The last two are replayed by `make sanitize`.
    assert sum(path.stat().st_size for path in corpus.CORPUS.iterdir()) < MOST_BYTES


def test_an_archive_is_the_same_bytes_whoever_packs_it(tmp_path, monkeypatch):
    before = (corpus.CORPUS / "results.zip").read_bytes()
    inputs = corpus.read_inputs("results")
    corpus.unpack(tmp_path, ["results"])
    assert {file.name: file.read_bytes() for file in (tmp_path / "results").iterdir()} == inputs
    monkeypatch.setattr(corpus, "CORPUS", tmp_path / "packed")
    corpus.pack(tmp_path, ["results"])
    assert (tmp_path / "packed" / "results.zip").read_bytes() == before
    corpus.write_inputs("results", dict(reversed(inputs.items())))
    assert (tmp_path / "packed" / "results.zip").read_bytes() == before


def test_a_case_that_was_found_is_added_by_one_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(corpus, "CORPUS", tmp_path / "corpus")
    for name in ("long-cell", "torn"):
        (tmp_path / name).write_bytes(name.encode())
        corpus.main(["add", "csv", str(tmp_path / name)])
    assert corpus.read_inputs("csv") == {"found-long-cell": b"long-cell", "found-torn": b"torn"}
    assert capsys.readouterr().out.split() == ["found-long-cell", "found-torn"]
    corpus.main(["list"])
    assert "2 inputs" in capsys.readouterr().out


def test_what_the_fuzzer_keeps_replaces_all_but_what_was_found(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "CORPUS", tmp_path / "corpus")
    monkeypatch.setattr(fuzz, "WORK", tmp_path)
    corpus.write_inputs("csv", {"found-torn": b"1", "0123456789ab": b"2"})
    (tmp_path / "csv").mkdir()
    for name, size in (("seed-0", 1), ("a" * 40, 2), ("b" * 40, fuzz.MOST_KEPT)):
        (tmp_path / "csv" / name).write_bytes(b"x" * size)
    fuzz.keep("csv", [])
    assert corpus.read_inputs("csv") == {"aaaaaaaaaaaa": b"xx", "found-torn": b"1"}
