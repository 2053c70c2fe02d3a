"""Every surface renders one verdict: each number that one of them shows of the labels is the verdict's, to the digit.

Audits are drawn: of two and of several classes, with noise and without, in groups, after reviews, by sources. All
shares in percent and all ranges of rows are read off what a person sees, and looked up among the statements.
"""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.report_fixtures import read_text
from helpers.small_audits import change, make_audit, make_audit_by_source
from untwist.audit.findings import collect_findings
from untwist.audit.reviewed import measure_known_wrong
from untwist.audit.statements import write_counts
from untwist.audit.verdict import State
from untwist.commands.steps import encode_json
from untwist.display import write_share
from untwist.report.noise import write_noise
from untwist.report.review import _introduce, _write_expectation
from untwist.report.sources import write_sources
from untwist.report.summary import write_summary

#: A share as any surface writes it.
SHARE = re.compile(r"(?:under |over )?\d+(?:\.\d+)?\s%")
#: A range of numbers of rows, perhaps after the number that is expected.
ROWS = re.compile(r"(?:([\d,]+) \()?([\d,]+) to ([\d,]+)\b(?!\s?%|\.\d)")
#: What must follow what is said to be the most.
IF = "if errors do not depend on features"


def draw_audit(seed):
    """An audit of some rows that nothing is fitted for: of what kind, the seed says."""
    rng = np.random.default_rng(seed)
    n_classes, n = int(rng.choice([2, 3, 5])), int(rng.choice([60, 300]))
    make = (make_audit, make_audit_by_source)[rng.integers(2)]
    audit = make(n_classes, bool(rng.integers(2)), n)
    if rng.integers(2):  # Rows that are sure of their labels.
        sure = np.where(np.eye(n_classes)[audit.label_indices] == 1, 0.95, 0.05 / (n_classes - 1))
        audit = change(audit, posterior=sure, noise_rate=(0.01, 0.0, 0.02), wrong=rng.uniform(0.0, 0.05, n))
    if rng.integers(2):
        low, share, high = np.sort(rng.uniform(0.0, 0.5, 3)).tolist()
        audit = change(audit, noise_rate=(share, low * rng.integers(2), high))
    if rng.integers(2):
        audit = change(audit, groups=np.arange(n) // 3, rows_per_case=2.0)
    if rng.integers(2) and make is make_audit:
        reviewed = rng.random(n) < 0.1
        found = np.where(rng.random(n) < 0.5, audit.given, audit.classes[0])
        predicted = np.where(reviewed, found, audit.predicted)
        wrong = np.where(reviewed, predicted != audit.given, audit.wrong)
        audit = change(audit, reviewed=reviewed, predicted=predicted, wrong=wrong, before_review=audit.given)
        known = measure_known_wrong(audit)
        audit = change(audit, noise_rate=tuple(known + one * (1.0 - known) for one in audit.noise_rate))
    if rng.integers(3) == 0:
        audit = change(audit, weight=rng.integers(1, 3, n).astype(float))
    reason = "so" if rng.integers(4) == 0 else ""
    is_chance = rng.integers(6) == 0 and audit.reviewed is None and make is make_audit
    if is_chance:  # No outcome is wrong.
        audit = change(audit, wrong=np.zeros(n), noise_rate=(0.0, 0.0, 0.0))
    return change(audit, in_sample_reason=reason, chance=bool(is_chance))


def list_statements(audit):
    verdict = audit.verdict
    return [
        *(verdict.share, verdict.upper_bound),
        *(verdict.by_class + verdict.by_label + verdict.pairs),
    ]


def read_page(section):
    """The text of a section of a page, without what is written along the axes of its charts."""
    return read_text(re.sub(r"<text class=\"?tick[^>]*>.*?</text>", "", section))


def read_surfaces(audit):
    """What each surface says of the labels, as a person reads it."""
    findings = collect_findings(audit)
    yield "short form", repr(audit)
    yield "text", str(audit)
    yield "command", audit.verdict.describe(for_command=True, lists_rows=True)
    yield "notebook", read_text(re.sub(r"<svg.*?</svg>", "", audit._repr_html_()).replace("<br>", " "))
    yield "page, summary", read_page(write_summary(findings, "row"))
    yield "page, noise", read_page(write_noise(findings))
    if len(findings.suspects):
        yield "page, review", f"{read_text(_introduce(findings, 10**9))} {read_page(_write_expectation(findings))}"


def leave_out_rows(name, text, audit):
    """Leave out what is said of single rows, and of sources by themselves."""
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    for one in audit.verdict.sources:
        text = text.replace(one.python, "").replace(one.command, "")
    if name == "notebook":
        text = text.split("row labelled looks like")[0] + " ".join(text.split("rows reviewed")[1:])
    return re.sub(r"95 % intervals?", "", text)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_number_on_every_surface_is_one_of_the_verdict(seed):
    audit = draw_audit(seed)
    verdict, statements = audit.verdict, list_statements(audit)
    shares = {write_share(number) for one in statements for number in (one.value, one.low, one.high)}
    if verdict.is_found and len(audit.classes) > 2:  # The matrix, and the pairs of a table.
        shares |= {write_share(number) for one in audit.confusions() for number in (one.share, one.low, one.high)}
    cuts = [10, 50, 100, 500, verdict.n_suspects, 2 * verdict.n_suspects]
    yields = {write_counts(audit.expected_yield(audit.ranking[:k])) for k in cuts}
    yields.add(write_counts(verdict.suspects_wrong))
    for name, text in read_surfaces(audit):
        said = leave_out_rows(name, text, audit)
        assert {one.strip() for one in SHARE.findall(said)} <= shares, (name, said)
        for found in ROWS.finditer(said):
            left = audit.review is not None and found[0] in audit.review.left
            assert found[0] in yields or any(found[0] in one for one in yields) or left, (name, found[0], said)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_said_to_be_the_most_has_its_if_on_every_surface(seed):
    audit = draw_audit(seed)
    for name, text in read_surfaces(audit):
        for rest in re.split(r"\b[Aa]t most\b", text)[1:]:
            assert IF in rest[:80], (name, text)
        if audit.verdict.state is State.NONE and not audit.verdict.is_chance and name in ("text", "command"):
            assert "errors that follow the features cannot be seen without looking at rows" in text
        for words in ("Clean", "needs correcting", "not excluded"):
            assert words not in text
        assert ("likely wrong" in text) <= (not audit.verdict.is_chance)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_verdict_does_not_contradict_itself(seed):
    audit = draw_audit(seed)
    verdict = audit.verdict
    for one in [*list_statements(audit), verdict.suspects_wrong]:
        assert one.low <= one.value + 1e-12
        assert one.value <= one.high + 1e-12
        assert one.level == 0.95
    assert verdict.share.high <= verdict.upper_bound.high
    assert (verdict.state is State.FOUND) == verdict.is_found
    if not verdict.is_found:
        known = 0 if audit.review is None else audit.review.still_wrong
        assert verdict.share.low == 0.0
        assert verdict.suspects_wrong.low == 0.0
        assert audit.expected_yield(np.arange(len(audit.given))).low == known
    if verdict.state is State.NONE and not verdict.is_chance:
        assert verdict.upper_bound.high < 0.05
    (told,) = [json.loads(encode_json(verdict.to_dict()))]
    assert told["state"] == verdict.state.value
    for name in ("share", "upper_bound", "suspects_wrong"):
        numbers = {key: told[name][key] for key in ("value", "low", "high", "level")}
        assert numbers == pytest.approx({key: getattr(getattr(verdict, name), key) for key in numbers})
        assert told[name]["rests_on"] == list(getattr(verdict, name).rests_on)
    for name in ("by_class", "by_label", "pairs"):
        assert [one["high"] for one in told[name]] == pytest.approx([one.high for one in getattr(verdict, name)])


def test_the_section_by_source_tells_shares_where_noise_was_found_alone():
    found = make_audit_by_source(2, n=300)
    silent = change(found, noise_rate=(0.1, 0.0, 0.2))
    assert SHARE.search(read_text(write_sources(collect_findings(found))).split("Who disagrees")[0])
    assert not SHARE.search(read_text(write_sources(collect_findings(silent))).split("Who disagrees")[0])
