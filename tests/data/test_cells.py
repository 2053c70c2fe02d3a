"""Cells of text: what a column holds is decided by all of its texts, and other texts are read alike."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from untwist.data.cells import EPOCH, Reading, decide, find_spellings, is_missing, looks_ambiguous, to_date

NAN = math.nan


def read(*texts, **options):
    """What the texts of a column are read as."""
    return decide(texts, [1] * len(texts), **options).reading.read(texts).tolist()


def count_days(*date):
    return (datetime.datetime(*date) - EPOCH) / datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["12.5", "-3", "+4", "1e5"], [12.5, -3, 4, 1e5]),
        (["12,5", "-3", ",5"], [12.5, -3, 0.5]),
        (["3.700,25", "12,90"], [3700.25, 12.9]),
        (["3,700.25", "12.90"], [3700.25, 12.9]),
        (["3 700,25", "3\u202f700", "12"], [3700.25, 3700, 12]),
        (["3'700.25", "1\u2019234\u2019567"], [3700.25, 1234567]),
        (["1.234", "12,5"], [1234, 12.5]),
        (["1.234", "12.5"], [1.234, 12.5]),
        (["1,234", "12.5"], [1234, 12.5]),
        (["1,234", "12,5"], [1.234, 12.5]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["1.234", "2.500", "12.340", "3.450", "9.990", "950"], [1234, 2500, 12340, 3450, 9990, 950]),
        (["1.234 €", "2.500 €"], [1234, 2500]),
        (["EUR 12,90", "12,90 €", "-€5", "€ -5"], [12.9, 12.9, -5, -5]),
        (["$1,234.50", "($12.50)", "(3)", "\u22127"], [1234.5, -12.5, -3, -7]),
        (["12 %", "3%", "-0.5 %"], [0.12, 0.03, -0.005]),
        (["true", "FALSE", "?"], [1, 0, NAN]),
        (["5", "?", "-", "n.a.", "k.A.", "#DIV/0!", "NaN", "–"], [5] + [NAN] * 7),
    ],
)
def test_numbers(texts, numbers):
    np.testing.assert_allclose(read(*texts), numbers, rtol=1e-15)


@pytest.mark.parametrize(
    ("texts", "date"),
    [
        (["20.08.2021", "01.02.2021"], (2021, 2, 1)),
        (["20/08/2021", "1/2/2021"], (2021, 2, 1)),
        (["8/20/2021", "1/2/2021"], (2021, 1, 2)),
        (["8-20-21", "1-2-21"], (2021, 1, 2)),
        (["20-08-21", "01-02-69"], (1969, 2, 1)),
        (["20 Aug 2021", "1 Feb 2021"], (2021, 2, 1)),
        (["Aug 20, 2021", "February 1st, 2021"], (2021, 2, 1)),
        (["20-Aug-21", "1-Feb-21"], (2021, 2, 1)),
        (["3. Oktober 2020", "1. März 2021"], (2021, 3, 1)),
        (["Fri, 20 Aug 2021", "Mon, 1 Feb 2021"], (2021, 2, 1)),
        (["20.08.2021 00:00:00", "01.02.2021 13:45"], (2021, 2, 1, 13, 45)),
        (["8/20/2021 1:05 PM", "1/2/2021 12:30 am"], (2021, 1, 2, 0, 30)),
        (["2021-08-20", "2021-02-01"], (2021, 2, 1)),
        (["2021-08-20T10:00Z", "2021-02-01 10:00:30.5+02:00"], (2021, 2, 1, 8, 0, 30, 500000)),
        (["2021/08/20", "2021/2/1"], (2021, 2, 1)),
        (["20.08.2021", "-", "2021-02-01"], (2021, 2, 1)),
    ],
)
def test_dates(texts, date):
    assert decide(texts, [1] * len(texts)).reading.kind == "date"
    assert read(*texts)[-1] == pytest.approx(count_days(*date), abs=1e-9)


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "12"],
        ["01234", "99999"],
        ["1.2.3", "1.2", "1.10"],
        ["10.4.11", "10.4.12"],
        ["+49 30 1234567", "+49 301 234"],
        ["555 123 456", "555 234 567"],
        ["030-1234567", "0171/123"],
        ["192.168.0.1", "10.0.0.1"],
        ["A1", "B2"],
        ["12abc", "13abc"],
        ["-", "?"],
        ["1 2 3", "4 5 6"],
        ["31.02.2021", "30.02.2021"],
        ["yes", "no"],
    ],
)
def test_what_stays_text(texts):
    assert decide(texts, [1] * len(texts)).reading is None


def test_what_nothing_decides_is_named_with_what_is_assumed_and_can_be_said():
    dates = decide(["1/2/2021", "3/4/2021"], [1, 1])
    assert dates.is_ambiguous
    assert "'1/2/2021' is read as 2021-02-01 (--dates month-first)" in dates.note
    assert read("1/2/2021", "3/4/2021", order="month")[0] == count_days(2021, 1, 2)
    assert not decide(["01.02.2021", "03.04.2021"], [1, 1]).is_ambiguous  # No one writes 12.31.2021.
    for text, number, other, options in (
        ("1.234", 1.234, 1234, {"decimal": ","}),
        ("1,234", 1234, 1.234, {"decimal": ","}),
    ):
        found = decide([text], [1])
        assert found.is_ambiguous
        assert f"{text!r} is read as {number}, which nothing decides (--decimal comma reads {other})" in found.note
        assert read(text) == [number]
        assert read(text, **options) == [other]


def test_one_value_decides_for_the_column():
    texts = [f"{day}/{month}/2021" for day in range(1, 13) for month in range(1, 13)]
    assert decide(texts, [1] * 144).is_ambiguous
    assert decide([*texts, "13/1/2021"], [1] * 145).reading.order == "day"
    assert decide([*texts, "1/13/2021"], [1] * 145).reading.order == "month"
    numbers = [f"{n}.{n + 100}" for n in range(1, 50)]
    assert decide([*numbers, "1.5"], [1] * 50).reading.decimal == "."
    assert decide([*numbers, "1,5"], [1] * 50).reading.decimal == ","


def test_missing_cells_do_not_count_and_stray_words_do():
    assert decide(["?", "5"], [20, 80]).reading == Reading()
    assert decide(["?", "5"], [99, 1]).reading == Reading()
    few = decide(["many", "5"], [5, 95])
    assert few.reading == Reading()
    assert few.note == "numbers; 'many' taken as missing"
    assert decide(["many", "5"], [6, 94]).note == "text, though 94% of its values are numbers"
    assert decide(["many", "5"], [5, 95], share=1.0).reading is None


def test_a_hyphen_is_a_word_among_words():
    assert is_missing("k.A.")
    assert is_missing("?")
    assert not is_missing("-")
    assert not is_missing("None")


def test_only_what_may_be_thousands_is_looked_at_closely():
    assert looks_ambiguous(["950", "1.234"])
    assert not looks_ambiguous(["950", "12"])
    assert not looks_ambiguous(["1.234", "0.500"])
    assert not looks_ambiguous(["1.234", "1.25"])
    assert not looks_ambiguous(["1.234", "1234"])


@given(st.lists(st.floats(-1e9, 1e9).map(lambda one: round(one, 2)), min_size=1, max_size=20))
def test_numbers_are_read_as_they_were_written(numbers):
    writings = {
        "en": [f"{one:,.2f}" for one in numbers],
        "de": [f"{one:,.2f}".translate(str.maketrans(",.", ".,")) for one in numbers],
        "fr": [f"{one:,.2f}".translate(str.maketrans(",.", "\u202f,")) for one in numbers],
        "ch": [f"{one:,.2f}".replace(",", "'") for one in numbers],
        "$": [f"${one:,.2f}" if one >= 0 else f"(${-one:,.2f})" for one in numbers],
        "€": [f"{one:.2f} €".replace(".", ",") for one in numbers],
    }
    for name, texts in writings.items():
        distinct = list(dict.fromkeys(texts))
        reading = decide(distinct, [1] * len(distinct)).reading
        np.testing.assert_array_equal(reading.read(texts), numbers, err_msg=name)


@given(st.lists(st.dates(datetime.date(1970, 1, 1), datetime.date(2068, 12, 31)), min_size=1, max_size=20))
def test_dates_are_read_as_they_were_written(dates):
    dates = [datetime.date(2021, 12, 31), *dates]  # This one decides.
    days = [(one - EPOCH.date()).days for one in dates]
    for form in (
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d-%m-%y",
        "%m/%d/%y",
        "%d %b %Y",
        "%Y-%m-%d",
        "%b %d, %Y",
        "%d.%m.%y",
    ):
        texts = list(dict.fromkeys(one.strftime(form) for one in dates))
        reading = decide(texts, [1] * len(texts)).reading
        np.testing.assert_array_equal(reading.read([one.strftime(form) for one in dates]), days, err_msg=form)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_any_text_is_decided_and_read(texts):
    texts = list(dict.fromkeys(text.strip() for text in texts))
    found = decide(texts, [1] * len(texts))
    for reading in (found.reading, Reading(), Reading("date")):
        if reading is not None:
            assert reading.read(texts).shape == (len(texts),)


def test_days_are_shown_as_dates():
    assert str(to_date(18859.0)) == "2021-08-20"
    assert str(to_date(18859.5)) == "2021-08-20 12:00:00"
    assert to_date(1e12) == 1e12


def test_labels_that_differ_by_case_or_blanks():
    assert find_spellings(["Yes", "YES", "no", "very  good", "Very good"]) == {
        "yes": ["YES", "Yes"],
        "very good": ["Very good", "very  good"],
    }
