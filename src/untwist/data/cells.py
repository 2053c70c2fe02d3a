"""Cells of text as people write them: numbers, dates, words for a missing value, codes that only look like numbers.

What a column holds is decided by all of its different texts together, in `decide`: whether 1.234 is a thousand, or
02/03/2021 the second of March, no cell can say alone. What was decided is a `Reading`, which reads other cells alike.
docs/reading-tables.md lists every rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A column of text holds numbers, or dates, if at least this share of its values are such.
NUMERIC_SHARE = 0.95
#: Dates are days since this one.
EPOCH = datetime(1970, 1, 1)
#: From this many days on the microseconds do not fit 64 bits: 292,000 years.
MOST_DAYS_IN_MICROSECONDS = 2**63 // 86_400_000_000
#: Texts that stand for a missing value in every column, in lower case.
MISSING = frozenset(
    [
        *("", "na", "n/a", "#n/a", "#na", "nan", "null", "<na>", "n.a.", "n. a.", "n.v.", "k.a.", "k. a.", "?"),
        *("#div/0!", "#ref!", "#value!", "#name?", "#num!", "#null!", "#wert!", "#bezug!", "#zahl!", "#nv", "#leer!"),
    ]
)
#: Texts that stand for a missing value among numbers and dates; in a column of words they are words.
MISSING_AMONG_NUMBERS = MISSING | {"-", "--", "---", "–", "—", ".", "..", "none", "unknown", "missing", "unbekannt"}
#: The numbers that truth values become.
TRUTH = {"true": 1.0, "false": 0.0}
#: Words that are infinite numbers.
INFINITE = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf}
#: 007 is a code and no number.
CODE = re.compile(r"[+-]?0\d+")
#: 1.10.2 is a version and no number.
VERSION = re.compile(r"v?\d+(\.\d+){2,}")
#: Two-digit years from this one on are of the last century.
PIVOT_YEAR = 69
#: Fewer different numbers such as 12.500 do not show whether they are thousands or fractions.
TELLING = 5
#: Numbers in groups of digits are telephone numbers if all have the same shape and at least this many digits.
PHONE_DIGITS = 7

_CURRENCY = (
    r"(?:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|RUB|BRL|MXN|AUD|CAD|NZD|ZAR|KRW|SGD|HKD"
    r"|US\$|A\$|C\$|Fr\.|kr\.?|zł|Kč|Ft|[€$£¥₹₽₩₺₪₴₦฿])"
)
_SIGN = r"[+\-\u2212]?"
_NUMBER = re.compile(
    rf"(?P<open>\()? ?(?P<sign>{_SIGN}) ?(?P<before>{_CURRENCY})? ?(?P<inner>{_SIGN})"
    rf"(?P<body>\d[\d.,' ]*|[.,]\d+)(?P<exponent>[eE][+-]?\d+)? ?(?P<after>%|{_CURRENCY})? ?(?P<close>\))?"
)
_GROUPS = {".": r"[1-9]\d{0,2}(?:,\d{3})+", ",": r"[1-9]\d{0,2}(?:\.\d{3})+"}
_BODY = {
    mark: re.compile(rf"(?:\d+|{groups}|[1-9]\d{{0,2}}(?:[ ']\d{{3}})+)(?:\{mark}\d*)?|\{mark}\d+")
    for mark, groups in _GROUPS.items()
}
#: A number that may have a fraction of three digits, or be a thousand; and one that says nothing about that.
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_SILENT = re.compile(r"[+-]?\d{1,3}")
#: A whole number that float64 may not hold; there are none of more than 308 digits.
_LONG = re.compile(r"[+-]?\d{16,308}")
#: Signs that stand for a blank or for an apostrophe.
_ALIKE = str.maketrans("\u00a0\u202f\u2009\t\u2019`\u00b4", "    '''")

_TIME = (
    r"(?:(?:T|,? +)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)? ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
)
_NAMED_DAY = r"(?:[^\W\d]{2,10}\.?,? )?"
_MONTH = r"(?P<name>[^\W\d]{3,10})\.?"
_DATES = tuple(
    re.compile(pattern + _TIME)
    for pattern in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)",
        r"(?P<one>\d\d?)(?P<mark>[./-]) ?(?P<two>\d\d?)(?P=mark) ?(?P<year>\d{4}|\d\d)",
        rf"{_NAMED_DAY}(?P<day>\d\d?)(?:\.|st|nd|rd|th)?[ -]?{_MONTH},?[ -]?(?P<year>\d{{4}}|\d\d)",
        rf"{_NAMED_DAY}{_MONTH}[ -](?P<day>\d\d?)(?:st|nd|rd|th)?,?[ -](?P<year>\d{{4}})",
    )
)
#: A date, year first, that NumPy reads by itself.
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
#: How the names of months begin in English, German, French, Spanish, Italian and Dutch.
_MONTHS = {
    start: month
    for month, starts in enumerate(
        (
            *(("jan", "ene", "gen"), ("feb", "fev", "fév"), ("mar", "mär", "mrz", "maa"), ("apr", "avr", "abr")),
            *(
                ("mai", "may", "mag", "mei"),
                ("jun", "jui", "giu"),
                ("juil", "jul", "lug"),
                ("aug", "aou", "aoû", "ago"),
            ),
            *(("sep", "set"), ("oct", "okt", "ott", "out"), ("nov",), ("dec", "dez", "déc", "dic")),
        ),
        start=1,
    )
    for start in starts
}


@dataclass(frozen=True)
class Reading:
    """How the texts of a column are read as numbers.

    Parameters
    ----------
    kind : str
        "number", or "date" for days since 1970.
    decimal : str
        What sets off the fraction of a number, "." or ",". A text that makes sense with the other one only is read so.
    order : str
        Whether "day" or "month" comes first in a date of digits whose year is last.

    Examples
    --------
    >>> Reading(decimal=",").read(["3.700", "EUR 12,90", "12 %", "(5)", "k.A."]).tolist()
    [3700.0, 12.9, 0.12, -5.0, nan]
    >>> Reading("date").read(["20.08.2021", "1970-01-02", "2 Jan 1970 06:00"]).tolist()
    [18859.0, 1.0, 1.25]
    """

    kind: str = "number"
    decimal: str = "."
    order: str = "day"

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Read texts.

        Parameters
        ----------
        texts : sequence of str
            The texts, each of them once if that is possible.

        Returns
        -------
        ndarray of float64
            A number for each; NaN for one that is missing or that cannot be read.
        """
        if self.kind == "date":
            if texts and all(map(_PLAIN_DATE.fullmatch, texts)):
                try:
                    return to_days(np.array(texts, dtype="datetime64[us]"))
                except ValueError:  # There is no 31st of June.
                    pass
            pairs = [_read_date(text) for text in texts]
            chosen = int(self.order == "month")
            return np.array([math.nan if pair is None else pair[chosen] for pair in pairs], dtype=np.float64)
        numbers = [_read_number(text) for text in texts]
        return np.array([math.nan if one is None else one.choose(self.decimal) for one in numbers], dtype=np.float64)


@dataclass(frozen=True)
class CellDecision:
    """What the texts of a column are.

    Parameters
    ----------
    reading : Reading or None
        What makes numbers of them; None for words.
    note : str
        What is to be told of it, in words; empty where nothing is.
    is_ambiguous : bool
        Whether nothing in the column decided how to read it.
    """

    reading: Reading | None
    note: str = ""
    is_ambiguous: bool = False


@dataclass(frozen=True)
class _Number:
    """A text as a number with a decimal point and with a decimal comma, NaN where it is none so, and its unit."""

    with_point: float
    with_comma: float
    unit: str = ""

    def choose(self, decimal: str) -> float:
        first, second = self.with_point, self.with_comma
        if decimal == ",":
            first, second = second, first
        return second if math.isnan(first) else first


def is_missing(text: str) -> bool:
    """Tell whether a text stands for a missing value in every kind of column.

    Parameters
    ----------
    text : str
        The text of a cell, without blanks around.

    Returns
    -------
    bool
    """
    return text.lower() in MISSING


def looks_ambiguous(texts: Iterable[str]) -> bool:
    """Tell whether numbers of digits and points may all be in thousands, such as 12.500 and 950.

    Parameters
    ----------
    texts : iterable of str
        Plain numbers.

    Returns
    -------
    bool
        False as soon as one number has another fraction, or thousands without a point.
    """
    found = False
    for text in texts:
        if _AMBIGUOUS.fullmatch(text):
            found = True
        elif not _SILENT.fullmatch(text):
            return False
    return found


def decide(
    texts: Sequence[str],
    counts: Sequence[int] | NDArray[Any],
    *,
    share: float = NUMERIC_SHARE,
    decimal: str | None = None,
    order: str | None = None,
) -> CellDecision:
    """Decide what the different texts of a column are.

    Parameters
    ----------
    texts : sequence of str
        The different texts, without blanks around; those that are missing in every column may be left out.
    counts : sequence of int
        How many cells hold each of them.
    share : float
        At least this share of the cells that are not missing must be numbers, or dates.
    decimal, order : str or None
        As in a `Reading`, where somebody has said so; by default the texts decide.

    Returns
    -------
    CellDecision

    Examples
    --------
    >>> decide(["3.700,25", "12,50", "?"], [1, 1, 1]).reading
    Reading(kind='number', decimal=',', order='day')
    >>> decide(["8/20/2021", "1/2/2021"], [1, 1]).reading.order
    'month'
    >>> decide(["007", "12"], [1, 1]).reading is None
    True
    """
    pairs = [
        (text, int(count))
        for text, count in zip(texts, counts, strict=True)
        if text.lower() not in MISSING_AMONG_NUMBERS
    ]
    if not pairs:
        return CellDecision(None)
    known, weights = [text for text, _ in pairs], np.array([count for _, count in pairs], dtype=np.float64)
    total = weights.sum()
    found = _decide_dates(known, weights, share * total, order)
    if found is not None:
        return found
    if any(CODE.fullmatch(text) for text in known):
        is_code = all(text.lstrip("+-").isdigit() for text in known)
        return CellDecision(None, "text: it has numbers with leading zeros" if is_code else "")
    return _decide_numbers(known, weights, share * total, decimal)


def _decide_dates(
    known: list[str], weights: NDArray[np.float64], least: float, order: str | None
) -> CellDecision | None:
    if order is None and all(map(_PLAIN_DATE.fullmatch, known)):
        # This is the fast way for what machines write.
        are_dates = ~np.isnan(Reading("date").read(known))
        return CellDecision(Reading("date"), "dates") if weights[are_dates].sum() >= least else None
    pairs = [_read_date(text) for text in known]
    if sum(weight for pair, weight in zip(pairs, weights, strict=True) if pair is not None) < least:
        return None
    both = np.array([(math.nan, math.nan) if pair is None else pair for pair in pairs])
    with_day, with_month = (float(weights[~np.isnan(one)].sum()) for one in both.T)
    differ = both[:, 0] != both[:, 1]  # NaN differs from itself, too.
    differ &= ~np.isnan(both).all(axis=1)
    is_ambiguous = order is None and with_day == with_month and bool(differ.any())
    # Nobody writes the month first and then a point.
    is_ambiguous &= not all("." in text for text, one in zip(known, differ, strict=True) if one)
    chosen = order or ("month" if with_month > with_day else "day")
    if max(with_day, with_month) < least:
        return CellDecision(None, "text: dates, some of them with the day first and some with the month")
    reading = Reading("date", order=chosen)
    note = "dates"
    if differ.any():
        note += f", {chosen} first"
    if is_ambiguous:
        example = next(text for text, one in zip(known, differ, strict=True) if one)
        note += f", which nothing decides: {example!r} is read as {_show_days(reading, example)} (--dates month-first)"
    numbers = both[:, int(chosen == "month")]
    return CellDecision(reading, note + _list_stray(known, np.isnan(numbers)), is_ambiguous)


def _decide_numbers(known: list[str], weights: NDArray[np.float64], least: float, decimal: str | None) -> CellDecision:
    if any(VERSION.fullmatch(text) and _read_number(text) is None for text in known):
        return CellDecision(None)
    found = [_read_number(text) for text in known]
    numbers = [(text, one, weight) for text, one, weight in zip(known, found, weights, strict=True) if one is not None]
    part = sum(weight for _, _, weight in numbers)
    if part < least:
        share = part / weights.sum()
        return CellDecision(None, f"text, though {share:.0%} of its values are numbers" if share > 0.5 else "")
    longest = [int(text) for text, _, _ in numbers if _LONG.fullmatch(text)]
    if len({float(one) for one in longest}) < len(set(longest)):
        return CellDecision(None, "text: whole numbers that are too long to be told apart as numbers")
    if _are_phone_numbers([text for text, _, _ in numbers]):
        return CellDecision(None, "text: groups of digits, as in telephone numbers")
    with_point = sum(weight for _, one, weight in numbers if math.isnan(one.with_comma))
    with_comma = sum(weight for _, one, weight in numbers if math.isnan(one.with_point))
    ambiguous = [
        (text, one)
        for text, one, _ in numbers
        if one.with_point != one.with_comma and not math.isnan(one.with_point) and not math.isnan(one.with_comma)
    ]
    units = sorted({one.unit for _, one, _ in numbers} - {""})
    is_ambiguous = decimal is None and not with_point and not with_comma and bool(ambiguous)
    words = []
    if decimal is None:
        decimal = "," if with_comma > with_point else "."
        if is_ambiguous and _are_thousands([text for text, _, _ in numbers], [text for text, _ in ambiguous], units):
            decimal = "," if "." in ambiguous[0][0] else "."
    if decimal == ",":
        words.append("numbers with a decimal comma" if with_comma or not ambiguous else "numbers in thousands")
    if with_point and with_comma:
        words.append("both decimal commas and decimal points occur")
    if is_ambiguous:
        text, one = ambiguous[0]
        other = "point" if decimal == "," else "comma"
        words.append(
            f"{text!r} is read as {one.choose(decimal):.10g}, which nothing decides (--decimal {other} reads "
            f"{one.choose('.' if decimal == ',' else ','):.10g})"
        )
    words += _describe_units(units, [one.unit for _, one, _ in numbers])
    stray = _list_stray(known, np.array([one is None for one in found]))
    if stray and not words:
        words = ["numbers"]
    return CellDecision(Reading(decimal=decimal), "; ".join(words) + stray, is_ambiguous)


def _describe_units(units: list[str], unit_of_text: list[str]) -> list[str]:
    currencies = [unit for unit in units if unit != "%"]
    words = []
    if "%" in units:
        mixed = any(unit != "%" for unit in unit_of_text)
        words.append("percent, 12 % as 0.12" + ("; numbers without % as they are" if mixed else ""))
    if len(currencies) == 1:
        words.append(f"amounts in {currencies[0]}")
    elif currencies:
        words.append(f"amounts in {' and '.join(currencies)}, taken as plain numbers")
    return words


def _are_phone_numbers(texts: list[str]) -> bool:
    """Tell whether all are groups of digits with blanks between, and of the same length, as no amounts are."""
    shapes = {re.sub(r"\d", "0", text.translate(_ALIKE)) for text in texts[:1000]}
    shape = next(iter(shapes))
    return (
        len(texts) > 1
        and len(shapes) == 1
        and " " in shape.strip()
        and re.fullmatch(r"0+( 0+)+", shape) is not None
        and shape.count("0") >= PHONE_DIGITS
    )


def _are_thousands(texts: list[str], ambiguous: list[str], units: list[str]) -> bool:
    """Tell whether numbers such as 12.500 or 12,500 are thousands, where no number decides it alone.

    Amounts of money have no three decimals. Fractions of three digits come with some of two, as a final zero is not
    written, or else all numbers have three; thousands come with plain numbers below a thousand, and with none above.
    """
    others = [text for text in texts if text not in set(ambiguous)]
    if any(unit != "%" for unit in units):
        return True
    if any(len(re.sub(r"\D", "", text)) > 3 for text in others):
        return False
    if "," in ambiguous[0]:
        return True
    return bool(others) and len(ambiguous) >= TELLING and any(text.rstrip(" %").endswith("0") for text in ambiguous)


def _list_stray(known: list[str], is_stray: NDArray[np.bool_]) -> str:
    stray = [known[index] for index in np.flatnonzero(is_stray)]
    return f"; {list_some(stray)} taken as missing" if stray else ""


#: So much of a text is listed.
LONGEST_LISTED = 80


def list_some(texts: Iterable[Any], most: int = 3) -> str:
    """List the first of some texts, in quotes.

    Parameters
    ----------
    texts : iterable
        Texts, or names of columns.
    most : int
        How many are listed.

    Returns
    -------
    str
    """
    shown = [str(text) for text in texts]
    listed = [repr(text if len(text) <= LONGEST_LISTED else f"{text[:LONGEST_LISTED]}...") for text in shown]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _show_days(reading: Reading, text: str) -> str:
    return str(to_date(float(reading.read([text])[0])))


def _read_number(text: str) -> _Number | None:
    """Read a text as a number; None if it is none."""
    word = text.lower()
    if word in TRUTH or word in INFINITE:
        number = TRUTH.get(word, INFINITE.get(word, math.nan))
        return _Number(number, number)
    found = _NUMBER.fullmatch(text.translate(_ALIKE))
    if found is None or bool(found["open"]) != bool(found["close"]) or (found["sign"] and found["inner"]):
        return None
    body = found["body"].rstrip()
    sign = found["sign"] or found["inner"]
    if (sign == "+" and " " in body) or (found["before"] and found["after"]) or (found["open"] and sign):
        return None
    factor = -1.0 if sign in ("-", "\u2212") or found["open"] else 1.0
    values = []
    for mark, pattern in _BODY.items():
        if pattern.fullmatch(body) is None:
            values.append(math.nan)
            continue
        digits = body.replace(" ", "").replace("'", "").replace("," if mark == "." else ".", "").replace(mark, ".")
        number = float(digits + (found["exponent"] or ""))
        values.append(factor * (number / 100.0 if found["after"] == "%" else number))
    if math.isnan(values[0]) and math.isnan(values[1]):
        return None
    return _Number(values[0], values[1], found["after"] or found["before"] or "")


def _read_date(text: str) -> tuple[float, float] | None:
    """Read a text as a date, with the day first and with the month first, NaN for what is none; None if neither is."""
    text = text.translate(_ALIKE)
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        if "one" in parts:
            one, two = parts["one"], parts["two"]
            if parts["mark"] == "." and len(parts["year"]) == 2 and len(one + two) < 4:
                return None  # 1.2.10 may be a version.
            days = _count_days(parts, two, one), _count_days(parts, one, two)
            return None if math.isnan(days[0]) and math.isnan(days[1]) else days
        month = parts["month"] if "month" in parts else _find_month(parts["name"])
        day = _count_days(parts, month, parts["day"])
        return None if math.isnan(day) else (day, day)
    return None


def _find_month(name: str) -> str:
    """Return the number of a month by its name, "0" if there is none of that name."""
    word = name.lower()
    return str(_MONTHS.get(word[:4]) or _MONTHS.get(word[:3], 0))


def _count_days(parts: dict[str, Any], month: str, day: str) -> float:
    """Return the days from 1970 to a date; NaN if there is no such day."""
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 1900 if year >= PIVOT_YEAR else 2000
    hour, half = int(parts["hour"] or 0), (parts["half"] or "").lower()[:1]
    if half:
        if not 1 <= hour <= 12:
            return math.nan
        hour = hour % 12 + (12 if half == "p" else 0)
    microsecond = int((parts["fraction"] or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(
            year, int(month), int(day), hour, int(parts["minute"] or 0), int(parts["second"] or 0), microsecond
        )
    except ValueError:
        return math.nan
    since = moment - EPOCH
    if (zone := parts["zone"]) and zone[0] in "+-":
        ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        since += ahead if zone[0] == "-" else -ahead
    return since / timedelta(days=1)


def to_days(dates: NDArray[Any]) -> NDArray[np.float64]:
    """Return dates of NumPy as days since 1970, or lengths of time as days.

    Parameters
    ----------
    dates : ndarray of datetime64 or timedelta64
        The dates.

    Returns
    -------
    ndarray of float64
        NaN where a date is missing.
    """
    kind = "datetime64" if dates.dtype.kind == "M" else "timedelta64"
    day = dates.astype(f"{kind}[D]")
    is_far = np.abs(day.astype(np.int64)) >= MOST_DAYS_IN_MICROSECONDS
    near = np.where(is_far, np.array("NaT", dtype=dates.dtype), dates).astype(f"{kind}[us]")
    days = np.where(np.isnat(near), np.nan, near.astype(np.int64) / 86_400e6)
    if is_far.any():
        days[is_far] = day[is_far].astype(np.int64) + (dates - day)[is_far] / np.timedelta64(1, "D")
    return days


def to_date(days: float) -> date | datetime | float:
    """Return days since 1970 as a date, with the time of day where there is one, to the second.

    Parameters
    ----------
    days : float
        The days.

    Returns
    -------
    datetime.date, datetime.datetime or float
        A date, or the days themselves where no calendar reaches them.
    """
    try:
        moment = EPOCH + timedelta(seconds=round(days * 86_400))
    except (OverflowError, ValueError):
        return days
    return moment.date() if moment == datetime(moment.year, moment.month, moment.day) else moment


def find_spellings(labels: Iterable[str]) -> dict[str, list[str]]:
    """Find labels that differ by upper and lower case or by blanks alone.

    Parameters
    ----------
    labels : iterable of str
        Different labels.

    Returns
    -------
    dict of str to list of str
        By what they have in common the labels, in order, where there are several.

    Examples
    --------
    >>> find_spellings(["Yes", "yes", "no"])
    {'yes': ['Yes', 'yes']}
    """
    found: dict[str, list[str]] = {}
    for label in sorted(labels):
        found.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return {key: several for key, several in found.items() if len(several) > 1}
