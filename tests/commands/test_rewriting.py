"""Cells of CSV files changed in place: the cell is what it should be, and no other byte has changed."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from untwist.commands import sheets
from untwist.commands.rewriting import replace_cells

pytest.importorskip("pandas")


def test_quotes_blanks_and_line_ends_stay(tmp_path):
    text = 'id; "na""me" ;y;z\r\n"1" ; "a;\nb" ; no  ;"x"\r\n2;;"no";\n3; "" ;no'
    (tmp_path / "t.csv").write_text(text, newline="")
    sheet = sheets.read(tmp_path / "t.csv")
    changed = sheet.replace_labels("y", np.array([0, 1, 2]), ["yes", "yes", 'a"b'])[0].decode()
    assert changed == 'id; "na""me" ;y;z\r\n"1" ; "a;\nb" ; yes  ;"x"\r\n2;;"yes";\n3; "" ;"a""b"'


CELL = st.text(st.sampled_from("ab ,;\"'\r\n\tü"), max_size=6)


@given(st.data(), st.integers(2, 4), st.sampled_from(",;\t"), st.booleans())
def test_any_cell_of_any_file_can_be_changed(data, n_columns, separator, quotes_all):
    rows = data.draw(st.lists(st.lists(CELL, min_size=n_columns, max_size=n_columns), min_size=1, max_size=4))
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=separator, quoting=quoting).writerows(rows)

    def parse(text):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        lines, found = [], []
        before = 0
        for cells in reader:
            lines.append(before + 1)
            found.append(cells)
            before = reader.line_num
        return lines, found

    lines, before = parse(out.getvalue())
    row = data.draw(st.integers(0, len(before) - 1))
    column = data.draw(st.integers(0, n_columns - 1))
    label = data.draw(CELL.filter(lambda text: text == text.strip()))
    texts = {row: (before[row][column], label)}
    changed = replace_cells(out.getvalue().encode(), texts, lines, column, separator, "utf-8")[0].decode()
    expected = [list(cells) for cells in before]
    expected[row][column] = label
    found = parse(changed)[1]
    found[row][column] = found[row][column].rstrip(" ")  # Blanks after the old cell stay.
    assert found == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "cp1252"])
def test_encodings_and_marks_stay(encoding):
    for mark in ["", "\ufeff"] if encoding == "utf-8" else [""]:
        before = f"{mark}größe,y\r\nä,no\r\n".encode(encoding)
        after = replace_cells(before, {0: ("no", "ja, ü")}, [2], 1, ",", encoding)[0]
        assert after == f'{mark}größe,y\r\nä,"ja, ü"\r\n'.encode(encoding)
    if encoding == "utf-16":
        swapped = b"\xfe\xff" + "a,y\nb,no\n".encode("utf-16-be")
        expected = b"\xfe\xff" + "a,y\nb,yes\n".encode("utf-16-be")
        assert replace_cells(swapped, {0: ("no", "yes")}, [2], 1, ",", encoding)[0] == expected
    if encoding == "utf-8-sig":
        assert replace_cells(b"a,y\nb,no\n", {0: ("no", "yes")}, [2], 1, ",", encoding)[0] == b"a,y\nb,yes\n"


def test_what_cannot_be_written_is_refused():
    with pytest.raises(ValueError, match="line 2 has no cell 'maybe' for the label"):
        replace_cells(b"a,y\nb,no\n", {0: ("maybe", "yes")}, [2], 1, ",", "utf-8")
    with pytest.raises(ValueError, match="line 2 has no cell 'no' for the label"):
        replace_cells(b"a,y\nb\n", {0: ("no", "yes")}, [2], 1, ",", "utf-8")
    with pytest.raises(ValueError, match="'€' cannot be written in latin-1"):
        replace_cells(b"a,y\nb,no\n", {0: ("no", "€")}, [2], 1, ",", "latin-1")
