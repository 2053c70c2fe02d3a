"""What the fuzzer kept, replayed: whatever once broke a reader, and the smallest inputs that reach most of its code."""

import warnings

import pytest

pytest.importorskip("pandas", reason="the commands read tables with pandas")
pytest.importorskip("pyarrow", reason="and Parquet with pyarrow")

from targets import CORPUS, TARGETS, seeds

MOST_BYTES = 1_000_000  # of all that is kept


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_are_refused_or_harmless(name):
    kept = sorted((CORPUS / name).iterdir())
    assert kept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for content in [*seeds(name), *(path.read_bytes() for path in kept)]:
            TARGETS[name](content)


def test_there_are_inputs_for_all_targets_and_they_are_small():
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == {*TARGETS, "forest", "engine"}  # the last two: `make sanitize`
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
