"""The page on reliability says what its records say, and how to do it again."""

import re
from pathlib import Path

import records

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def test_the_page_is_that_of_the_records():
    assert records.PAGE.read_text(encoding="utf-8") == records.page(records.read()), "make docs-reliability"


def test_every_record_is_complete_and_can_be_made_again():
    for one in records.read():
        assert one.figures, one.name
        assert one.found.strip(), one.name
        assert one.seconds > 0, one.name
        targets = [word for word in one.command.removeprefix("make ").split() if "=" not in word]
        assert one.command.startswith("make "), one.name
        assert all(re.search(rf"^{target}:", MAKEFILE, re.M) for target in targets), one.name


def test_records_come_in_order_and_unknown_ones_last(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    for name in ("zoo", "leaks", "abc", "fuzzing"):
        records.Record(
            name, f"About {name}, twice", {"things": 12345, "share": 0.5}, "Nothing.", "make x", 100.0
        ).write()
    found = records.read()
    assert [one.name for one in found] == ["fuzzing", "leaks", "abc", "zoo"]
    text = records.page(found)
    assert "| things | 12,345 |" in text
    assert "[About zoo, twice](#about-zoo-twice)" in text
    assert "`make x`, 100 s, Python" in text
