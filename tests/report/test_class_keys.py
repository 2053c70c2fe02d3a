"""The keys of classes: digits, each on the button that it presses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.report_fixtures import make_customers
from untwist.audit import audit_labels
from untwist.report import report
from untwist.report.review import MOST_KEYED, assign_keys


@pytest.mark.parametrize(
    ("classes", "keys"),
    [
        (["0", "1"], "01"),
        (["0", "1", "2", "3"], "0123"),
        (["-1", "1"], "21"),
        (["1.0", "2.0", "0.0"], "120"),
        (["leaves", "stays"], "12"),
        (["a", "1", "b"], "213"),
        (["1", "1.0", " 1"], "123"),
        ([str(digit) for digit in range(10)], "0123456789"),
        ([f"c{i}" for i in range(10)], "1234567890"),
        (["", "٣", "²"], "123"),
    ],
    ids=str,
)
def test_a_label_that_is_a_digit_has_it_for_a_key_and_others_the_first_that_are_free(classes, keys):
    assert assign_keys(classes) == list(keys)


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-3, 12).map(str)), max_size=MOST_KEYED))
def test_keys_are_digits_and_all_differ(classes):
    keys = assign_keys(classes)
    assert len(set(keys)) == len(keys) == len(classes)
    assert set(keys) <= set("0123456789")
    own = [re.sub(r"\.0+$", "", name.strip()) for name in classes]
    for digit in set(classes) & set("0123456789"):
        assert digit == own[keys.index(digit)]


def test_a_button_shows_the_key_that_presses_it():
    table, labels, _ = make_customers(400)
    audit = audit_labels(table, labels == "stays")
    page = report(audit, title="t", suspects=audit.suspects(budget=5))
    buttons = re.findall(r"<button type=button ([^>]*) aria-keyshortcuts=\"(.)\">(.*?)<kbd>(.)</kbd></button>", page)
    assert len(buttons) == page.count("<kbd>") - 1 == 7  # the note has a key too, and is no button
    assert all(key == shown for _, key, _, shown in buttons)
    assert len({key.lower() for _, key, _, _ in buttons} | set("jkn/")) == 7 + 4
    assert [(words, key) for attributes, key, words, _ in buttons if "data-label" in attributes] == [
        ("False", "1"),
        ("True", "2"),
    ]
