"""What may be said of labels, of a few rows that nothing is fitted for: one answer, which all surfaces render."""

import math
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_audits import change, make_audit
from untwist.audit.findings import collect_findings
from untwist.audit.statements import (
    CLASSES_FOLLOW,
    GIVEN_NOISE,
    INDEPENDENT_ERRORS,
    JUDGEMENTS,
    ONE_PER_GROUP,
    OWN_LABEL_FIRST,
    Sentence,
    Statement,
)
from untwist.audit.verdict import NoticeKind, State
from untwist.noise.estimate import CLEAN_LIMIT
from untwist.report.summary import write_summary

TWINS = SimpleNamespace(share=0.5, describe=lambda for_command: "twins")
HIDDEN = SimpleNamespace(
    column="branch",
    name="branch",
    where="is Ulm",
    rows=9,
    share_there=0.4,
    share_elsewhere=0.1,
    share_as_source=0.02,
    interval_as_source=(0.01, 0.03),
    suspects_as_feature=(1, 2),
    suspects_as_source=(3, 4),
    advise=lambda for_command=False: "branch",
    advise_in_python=lambda: "call",
    advise_on_command_line=lambda: "option",
)


def silence(audit, even=0.01, **changes):
    """The audit without noise that was found, of labels that their rows are sure of."""
    grid = np.array([[0.0], [even]])
    noise = audit.noise.from_grid(grid, np.ones(1), np.ones(1), 0.0, found=False, clearest=1e-3, uneven_limit=0.01)
    posterior = np.where(np.eye(2)[audit.label_indices] == 1, 0.99, 0.01)
    settled = {"noise_rate": (0.0, 0.0, even), "posterior": posterior, "predicted": audit.given}
    return change(audit, noise=noise, wrong=np.zeros(len(audit.given)), **settled | changes)


def make_states():
    """Audits of all kinds, with the state of each and the word that a page begins with."""
    found = make_audit(n=400)
    given = change(found, noise=change(found.noise, evidence=math.nan))
    return {
        "given": (given, State.FOUND, "31.8"),
        "found": (found, State.FOUND, "31.8"),
        "given, among near-duplicates": (change(given, twins=TWINS), State.FOUND, "31.8"),
        "found, perhaps none": (change(found, noise_rate=(0.1, 0.0, 0.3)), State.UNDECIDED, "Undecided"),
        "found among near-duplicates": (change(found, twins=TWINS), State.UNDECIDED, "Undecided"),
        "found by models that have seen": (change(found, in_sample_reason="so"), State.UNDECIDED, "Undecided"),
        "nothing": (silence(found), State.NONE, "No sign"),
        "nothing among near-duplicates": (silence(found, twins=TWINS), State.UNDECIDED, "Undecided"),
        "nothing by models that have seen": (silence(found, in_sample_reason="so"), State.UNDECIDED, "Undecided"),
        "nothing, a column like a source": (silence(found, hidden_source=HIDDEN), State.UNDECIDED, "Undecided"),
        "nothing, but much may be": (silence(found, even=CLEAN_LIMIT), State.UNDECIDED, "Undecided"),
        "nothing, little shown": (silence(found, posterior=found.posterior), State.UNDECIDED, "Undecided"),
        "outcomes of chance": (change(found, chance=True), State.NONE, "Outcomes"),
    }


@pytest.mark.parametrize("kind", make_states())
def test_every_state_has_a_headline_on_the_page(kind):
    audit, state, begins = make_states()[kind]
    assert audit.verdict.state is state
    assert audit.verdict.is_found == (state is State.FOUND)
    page = write_summary(collect_findings(audit), "row")
    assert page.split('<p class="verdict')[1].split(">")[1].startswith(begins)


@pytest.mark.parametrize("kind", make_states())
def test_nothing_is_claimed_without_what_it_rests_on(kind):
    audit, state, _ = make_states()[kind]
    verdict = audit.verdict
    said = f"{audit!r}\n{audit}\n{audit._repr_html_()}\n{write_summary(collect_findings(audit), 'row')}"
    assert "Clean" not in said
    assert "needs correcting" not in said
    for text in said.replace("&nbsp;", " ").splitlines():
        if "at most" in text:
            assert "if errors do not depend on features" in text
    if "given" in kind:
        assert verdict.sentence.endswith("if the noise that was given is right")
        assert verdict.share.rests_on == (GIVEN_NOISE,)
    elif state is State.FOUND:
        assert "if errors do not depend on features and the labels are judgements, not outcomes" in verdict.sentence
        assert verdict.share.rests_on == (INDEPENDENT_ERRORS, CLASSES_FOLLOW, JUDGEMENTS)
        assert verdict.share.low > 0
    else:
        assert verdict.share.low == verdict.suspects_wrong.low == 0
        assert verdict.share.high == verdict.upper_bound.high
        assert verdict.by_label == verdict.pairs == ()
        assert {one.rests_on for one in verdict.by_class} <= {(INDEPENDENT_ERRORS, OWN_LABEL_FIRST)}


def test_where_models_may_have_seen_labels_nothing_is_excluded():
    found = make_audit(n=400)
    for audit in (change(found, twins=TWINS), silence(found, in_sample_reason="so")):
        verdict = audit.verdict
        assert (verdict.upper_bound.high, verdict.is_bounded, verdict.most_wrong) == (1.0, False, None)
        assert verdict.by_class == ()
        assert "%" not in verdict.sentence
        assert "at most" not in repr(audit)


def test_labels_that_a_review_found_wrong_leave_no_verdict_of_none():
    reviewed = np.arange(400) < 3
    clean = silence(make_audit(n=400))
    assert change(clean, reviewed=reviewed).verdict.state is State.NONE
    predicted = np.where(reviewed, np.where(clean.given == "a", "b", "a"), clean.predicted)
    found_wrong = change(clean, reviewed=reviewed, predicted=predicted).verdict
    assert found_wrong.state is State.UNDECIDED
    assert found_wrong.upper_bound.low == 3 / 400 <= found_wrong.upper_bound.high
    assert "3 rows that were reviewed" in found_wrong.upper_bound.rests_on


def test_the_bound_counts_each_group_once_and_reviewed_rows_as_they_were():
    audit = silence(make_audit(n=400))
    grouped = change(audit, groups=np.arange(400) // 2, rows_per_case=1.0).verdict
    assert grouped.upper_bound.high > 1.2 * audit.verdict.upper_bound.high
    assert ONE_PER_GROUP in grouped.upper_bound.rests_on
    reviewed = np.arange(400) < 30
    other = np.where(audit.given == "a", "b", "a")
    unknown = change(audit, reviewed=reviewed).verdict.upper_bound.high
    before = change(audit, reviewed=reviewed, before_review=np.where(reviewed, other, audit.given)).verdict
    assert unknown == before.upper_bound.high > audit.verdict.upper_bound.high + 0.03
    same = change(audit, reviewed=reviewed, before_review=audit.given).verdict.upper_bound
    assert same.high == audit.verdict.upper_bound.high


def test_confusions_along_an_order_are_mentioned_whether_it_was_told_or_not():
    line = np.array([[80, 20, 0, 0], [20, 60, 20, 0], [0, 20, 60, 20], [0, 0, 20, 80]])
    shuffled = [2, 0, 3, 1]
    counts = line[np.ix_(shuffled, shuffled)]
    features, labels = np.repeat(np.indices((4, 4)).reshape(2, 16), counts.ravel(), axis=1)
    audit = make_audit(4, n=len(labels), posterior=np.eye(4)[features] * 0.96 + 0.01)
    audit = change(audit, given=audit.classes[labels])
    told = change(audit, order=np.array(shuffled))
    names = ["b", "d", "a", "c"]
    for one in (told, audit):
        (notice,) = one.verdict.notes(NoticeKind.ORDER)
        listed = [one.strip("'") for one in notice.sentence.python.split("order ")[1].split(":")[0].split(", ")]
        assert listed in (names, names[::-1])
    pairs = np.array([[80, 20, 0, 0], [20, 80, 0, 0], [0, 0, 80, 20], [0, 0, 20, 80]])
    features, labels = np.repeat(np.indices((4, 4)).reshape(2, 16), pairs.ravel(), axis=1)
    apart = change(audit, posterior=np.eye(4)[features] * 0.96 + 0.01, given=audit.classes[labels])
    assert apart.verdict.notes(NoticeKind.ORDER) == ()


def test_advice_is_for_python_or_for_the_command_line():
    verdict = silence(make_audit(n=400)).verdict
    for for_command, advice in ((False, "suspects(budget=50)"), (True, "--budget 50")):
        assert advice in verdict.describe(for_command=for_command)
        assert advice not in verdict.describe(for_command=for_command, lists_rows=True)
    assert str(verdict) == verdict.describe()
    assert Sentence.alike("so").tell(for_command=True) == Sentence("so", "else").tell(for_command=False) == "so"
    assert make_audit().verdict.next_step.python == "audit.suspects() are the rows to review"
    assert change(make_audit(), twins=TWINS).verdict.next_step.command.startswith("--groups COLUMN")
    assert "have not seen" in change(make_audit(), in_sample_reason="so").verdict.next_step.python
    assert "surprising" in change(make_audit(), chance=True).verdict.next_step.python


def test_statements_stay_as_they_are_and_say_what_they_are_of():
    one = Statement(0.1, 0.05, 0.2, of="true class x", rests_on=(INDEPENDENT_ERRORS,))
    with pytest.raises(FrozenInstanceError):
        one.value = 0.2
    assert (
        repr(one) == "Statement(10.0 % (5.0 % to 20.0 %) of true class x; rests on: errors do not depend on features)"
    )
    assert one.name == "x"
    assert Statement(0.1, 0.05, 0.2, of="given label y").name == "y"
    assert str(Statement(3.2, 0.5, 8.1, of="these 20 rows")) == "3 (0 to 9) of these 20 rows; rests on: "
    assert one.to_dict() == {
        "value": 0.1,
        "low": 0.05,
        "high": 0.2,
        "level": 0.95,
        "of": "true class x",
        "rests_on": ["errors do not depend on features"],
    }


def test_of_outcomes_of_chance_none_is_called_wrong():
    audit = change(make_audit(n=400), chance=True)
    said = f"{audit!r}\n{audit}\n{audit._repr_html_()}"
    assert "400 outcomes of chance: none is called wrong, some are surprising" in said
    assert "likely wrong" not in said
    assert audit.expected_yield([0, 1]).low == 0
    assert audit.verdict.describe_yield(audit.expected_yield([0, 1])) == "none of which is called wrong"
