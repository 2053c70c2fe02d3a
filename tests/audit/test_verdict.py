"""What may be said of labels, of a few rows that nothing is fitted for: one answer, which all surfaces render."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_audits import change, make_audit
from untwist.audit.findings import collect_findings
from untwist.audit.verdict import Sentence, State
from untwist.report.summary import write_summary

TWINS = SimpleNamespace(share=0.5, describe=lambda for_command: "twins")
HIDDEN = SimpleNamespace(
    column="branch",
    name="branch",
    where="is Ulm",
    rows=9,
    share_there=0.4,
    share_elsewhere=0.1,
    share_as_source=0.2,
    interval_as_source=(0.1, 0.3),
    suspects_as_feature=(1, 2),
    suspects_as_source=(3, 4),
    advise=lambda for_command=False: "branch",
    advise_in_python=lambda: "call",
    advise_on_command_line=lambda: "option",
)


def silence(audit, even=0.01, uneven=0.01, **changes):
    """The audit without noise that was found, and with limits of the noise that is not excluded."""
    grid = np.array([[0.0], [even]])
    noise = audit.noise.from_grid(grid, np.ones(1), np.ones(1), 0.0, found=False, clearest=1e-3, uneven_limit=uneven)
    return change(audit, noise=noise, noise_rate=(0.0, 0.0, even), **changes)


def make_states():
    """An audit for each state, with the word that a page begins with."""
    found = make_audit(n=400)
    given = change(found, noise=change(found.noise, evidence=math.nan))
    return {
        State.GIVEN: (given, "%"),
        State.FOUND: (found, "%"),
        State.SOME: (change(found, twins=TWINS), "At least some"),
        State.UNKNOWN: (silence(found, twins=TWINS), "Nothing"),
        State.SEEN: (silence(found, in_sample_reason="too good"), "Nothing"),
        State.AS_SOURCE: (silence(found, hidden_source=HIDDEN), "Uneven"),
        State.CLEAN: (silence(found), "Clean"),
        State.NO_SIGN: (silence(found, uneven=0.2), "No sign"),
        State.UNCLEAR: (make_audit(3, found=False, n=400), "Unclear"),
    }


@pytest.mark.parametrize("state", [one for one in State if one is not State.UNEVEN])
def test_every_state_has_a_headline_on_the_page(state):
    audit, begins = make_states()[state]
    assert audit.verdict.state is state
    page = write_summary(collect_findings(audit), "row")
    assert begins in page.split('<p class="verdict')[1].split("</p>")[0]


def test_parts_that_look_wrong_more_often_make_labels_uneven_where_nothing_else_is_known():
    uneven = (State.CLEAN, State.NO_SIGN, State.UNCLEAR)
    for state, (audit, _) in make_states().items():
        allowed = audit.verdict.allow_for_parts()
        assert allowed.state is (State.UNEVEN if state in uneven else state)
        assert change(allowed, state=state) == audit.verdict


def test_labels_that_a_review_found_wrong_are_not_called_clean():
    reviewed = np.arange(400) < 3
    clean = silence(make_audit(n=400))
    predicted = np.where(reviewed, np.where(clean.given == "a", "b", "a"), clean.predicted)
    assert change(clean, reviewed=reviewed, predicted=np.where(reviewed, clean.given, predicted)).verdict.state is (
        State.CLEAN
    )
    assert change(clean, reviewed=reviewed, predicted=predicted).verdict.state is State.NO_SIGN


def test_advice_is_for_python_or_for_the_command_line():
    verdict = silence(make_audit()).verdict
    for for_command, advice in ((False, "suspects(budget=...)"), (True, "--budget 50")):
        assert advice in verdict.describe(for_command=for_command)
        assert advice not in verdict.describe(for_command=for_command, lists_rows=True)
    assert str(verdict) == verdict.describe()
    assert Sentence.alike("so").tell(for_command=True) == Sentence("so", "else").tell(for_command=False) == "so"
    assert make_audit().verdict.next_step is None
