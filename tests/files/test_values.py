"""Values of a header: what lies at a limit is taken, what lies just beyond it is refused."""

import math
import struct

import numpy as np
import pytest

from helpers.model_bytes import sign
from untwist.files.layout import ALIGNMENT, VERSION, pack, unpack
from untwist.files.values import (
    ArrayReader,
    check_finite,
    read_number,
    read_one_of,
    read_texts,
    read_value,
    read_whole,
    require,
)

ABOVE_ONE, BELOW_MINUS_TWO = np.nextafter(1.0, 2.0), np.nextafter(-2.0, -3.0)


def test_numbers_lie_between_their_limits_and_may_lie_on_them():
    assert [read_number(one, -2.0, 1.0) for one in (-2.0, -2, 0, 0.5, 1, 1.0)] == [-2.0, -2.0, 0.0, 0.5, 1.0, 1.0]
    assert isinstance(read_number(1), float)
    for odd in (ABOVE_ONE, BELOW_MINUS_TWO, 2, -3, math.nan, {"number": "nan"}, {"number": "inf"}, {"number": "-inf"}):
        with pytest.raises(ValueError, match=r"lies in \[-2.0, 1.0\]"):
            read_number(odd, -2.0, 1.0)
    for one_limit in ({"low": 0.0}, {"high": 0.0}):
        assert read_number(0.0, **one_limit) == 0.0
        with pytest.raises(ValueError, match="nan lies in"):
            read_number({"number": "nan"}, **one_limit)


def test_numbers_without_limits_may_be_anything_that_is_a_number():
    assert read_number({"number": "inf"}) == math.inf
    assert read_number({"number": "-inf"}) == -math.inf
    assert math.isnan(read_number({"number": "nan"}))
    for odd in (True, False, "1", None, [1.0]):
        with pytest.raises(ValueError, match="is no number"):
            read_number(odd)


def test_whole_numbers_lie_between_their_limits_and_may_lie_on_them():
    assert [read_whole(one, 3, 5) for one in (3, 4, 5)] == [3, 4, 5]
    assert read_whole(2**62, 0) == 2**62
    for odd, low, high in [(2, 3, 5), (6, 3, 5), (3.0, 3, 5), (True, 0, 5), (None, 0, 5), (2**62 + 1, 0, 2**62)]:
        with pytest.raises(ValueError, match=f"is no whole number from {low} to {high}"):
            read_whole(odd, low, high)
    with pytest.raises(ValueError, match="is no whole number from 0"):
        read_whole(2**62 + 1, 0)


def test_texts_are_a_list_of_nothing_but_text():
    assert read_texts(["a", ""]) == ["a", ""]
    assert read_texts([]) == []
    for odd in ("ab", ("a",), ["a", 1], [1, "a"], None):
        with pytest.raises(ValueError, match="not a list of text"):
            read_texts(odd)


def test_a_word_is_one_of_the_known_ones():
    assert read_one_of("b", iter(("a", "b"))) == "b"
    for odd in ("c", "", None, ["a"]):
        with pytest.raises(ValueError, match="is none of a, b"):
            read_one_of(odd, ("a", "b"))


def test_finite_numbers_are_a_list_and_none_is_below_the_limit():
    for values, low in [([-1e300, 0.0, 1e300], -math.inf), ([0.0, 1.0], 0.0), ([], 0.0), ([-2.0], -2.0)]:
        array = np.array(values)
        assert check_finite(array, low) is array
    for values, low in [
        ([1.0, math.nan], -math.inf),
        ([math.inf], -math.inf),
        ([-math.inf], -math.inf),
        ([[1.0]], 0.0),
    ]:
        with pytest.raises(ValueError, match="not so: numbers are finite"):
            check_finite(np.array(values), low)
    with pytest.raises(ValueError, match="not so: numbers are finite and at least -2"):
        check_finite(np.array([0.0, BELOW_MINUS_TWO]), -2.0)


def test_values_of_python_come_back_from_their_plain_form():
    plain = [{"tuple": [1, {"number": "-inf"}]}, {"pairs": [[1, {"tuple": []}], ["a", [None, True]]]}, "x", 0.5]
    assert read_value(plain) == [(1, -math.inf), {1: (), "a": [None, True]}, "x", 0.5]


def test_what_has_to_hold_is_said_where_it_does_not():
    require(True, "water is wet")
    with pytest.raises(ValueError, match="not so: water is dry"):
        require(False, "water is dry")


# ---- arrays ----


def make_reader(table, n_bytes=32):
    return ArrayReader(table, memoryview(np.arange(n_bytes, dtype=np.uint8).tobytes()))


def test_arrays_may_end_where_the_file_ends_and_use_all_of_it():
    reader = make_reader([["<f8", 2, 0], ["|u1", 16, 16], ["<i4", 0, 32]])
    expected = np.arange(32, dtype=np.uint8)
    np.testing.assert_array_equal(reader.read(0).view(np.uint8), expected[:16])
    np.testing.assert_array_equal(reader.read(1, np.uint8), expected[16:])
    last = reader.read(2, np.int32)
    assert (last.size, last.dtype, last.flags.writeable) == (0, np.int32, True)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (["|u1", 17, 16], "array 0 lies inside the file"),
        (["|u1", 1, 32], "array 0 lies inside the file"),
        (["<f8", 4, 1], "array 0 lies inside the file"),
        (["|u1", -1, 0], "array 0 has a length and an offset"),
        (["|u1", 1, -1], "array 0 has a length and an offset"),
        (["|u1", 1.0, 0], "array 0 has a length and an offset"),
        (["|u1", 1, 0.0], "array 0 has a length and an offset"),
        (["|u1", True, True], "array 0 has a length and an offset"),
        (["|u2", 1, 0], "array 0 is '|u2', not"),
    ],
)
def test_an_array_outside_of_the_file_or_of_another_type_is_refused(entry, message):
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        make_reader([entry]).read(0, np.float64 if entry[0] == "<f8" else np.uint8)


def test_an_array_is_read_once_and_by_its_number():
    reader = make_reader([["|u1", 8, 0], ["|u1", 8, 0]])
    reader.read(1, np.uint8)
    for odd in (1, 2, -1, True, 0.0, "0", None):
        with pytest.raises(ValueError, match="an array is named once"):
            reader.read(odd, np.uint8)
    reader.read(0, np.uint8)


def test_arrays_together_are_no_larger_than_the_file():
    reader = make_reader([["|u1", 16, 0], ["|u1", 16, 8], ["|u1", 1, 0]])
    reader.read(0, np.uint8)
    reader.read(1, np.uint8)
    with pytest.raises(ValueError, match="array 2 lies inside the file"):
        reader.read(2, np.uint8)


# ---- the layout ----


@pytest.mark.parametrize("length", range(9))
def test_a_header_ends_at_a_multiple_of_eight_bytes_whatever_its_length(length):
    header, arrays = {"a": "x" * length}, bytes(range(16))
    content = pack(header, arrays)
    assert (len(content) - 32 - 16) % 8 == 0
    assert len(content) < len(pack({"a": ""}, b"")) + 16 + length + ALIGNMENT
    found, data = unpack(content)
    assert (found, bytes(data)) == (header, arrays)


def test_a_header_holds_nothing_that_json_has_no_word_for():
    with pytest.raises(ValueError, match="JSON"):
        pack({"a": math.nan}, b"")
    assert pack({"a": [1, "b"]}, b"")[24:].startswith(b'{"a":[1,"b"]}')
    assert pack({}, b"")[:16] == b"UNTWIST\0" + struct.pack("<II", VERSION, 0)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, r"format 0, not 300: untwist 0\.2\.0 reads it"),
        (299, r"untwist 0\.2\.0 reads it"),
        (301, r"format 301, not 300: untwist 0\.3\.1 and newer read it"),
        (120_305, r"untwist 12\.3\.5 and newer read it"),
    ],
)
def test_a_file_of_another_format_is_refused_by_who_reads_it_whatever_it_holds(number, words):
    with pytest.raises(ValueError, match=words):
        unpack(struct.pack("<8sIIQ", b"UNTWIST\0", number, 0, 2**60) + bytes(40))


def test_a_file_of_nothing_but_a_header_is_whole():
    content = pack({}, b"")
    assert unpack(content)[0] == {}
    assert len(unpack(content)[1]) == 0
    with pytest.raises(ValueError, match="ends too early"):
        unpack(content[:55])
    with pytest.raises(ValueError, match="its checksum is not that of its contents"):
        unpack(content[:56])


@pytest.mark.parametrize("more", [1, 24, 48, 2**63])
def test_a_header_does_not_reach_beyond_the_file(more):
    size = len(pack({}, b"")) - 24 - 32
    content = struct.pack("<8sIIQ", b"UNTWIST\0", VERSION, 0, size + more) + b"{}".ljust(size)
    with pytest.raises(ValueError, match="its header is longer than the file"):
        unpack(sign(content))


@pytest.mark.parametrize("text", ["[]", "1", "{", "", '{"a": NaN}', '{"a": -Infinity}'])
def test_a_header_is_an_object_of_json(text):
    content = struct.pack("<8sIIQ", b"UNTWIST\0", VERSION, 0, len(text)) + text.encode()
    with pytest.raises(ValueError, match=r"its header is no (JSON|object)"):
        unpack(sign(content))
