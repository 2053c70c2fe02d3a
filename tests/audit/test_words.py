"""The words of an audit, of a few rows that nothing is fitted for."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_audits import change, make_audit, make_audit_by_source
from untwist.audit import notebook, verdict
from untwist.audit.audited_sources import AuditedSources
from untwist.audit.confusions import Confusion
from untwist.audit.labels import LabelAudit
from untwist.audit.sources import Disagreement, SourceQuality
from untwist.audit.verdict import NoticeKind

TWINS = SimpleNamespace(share=0.5, describe=lambda for_command: f"twins, {'command' if for_command else 'Python'}")
IF_FOUND = "if errors do not depend on features and the labels are judgements, not outcomes of chance"
HIDDEN = SimpleNamespace(
    name="branch",
    share_as_source=0.2,
    interval_as_source=(0.1, 0.3),
    advise=lambda for_command=False: f"branch, {'command' if for_command else 'Python'}",
)


def percent(share, low, high):
    return f"{100 * share:.1f} % ({100 * low:.1f} % to {100 * high:.1f} %)"


def stub_method(monkeypatch, name, answer):
    kind = LabelAudit if hasattr(LabelAudit, name) else AuditedSources
    monkeypatch.setattr(kind, name, lambda *_, **__: answer)


def tell(sentences, for_command=False):
    return [one.tell(for_command=for_command) for one in sentences]


def list_notices(audit):
    return [one.sentence for one in audit.verdict.notices]


# ---- how noisy ----


def test_the_first_line_says_how_many_are_wrong_and_the_next_ones_of_which_class_and_label(monkeypatch):
    stub_method(monkeypatch, "confusions", [])
    audit = make_audit()
    share, low, high = (f"{100 * one:.1f} %" for one in audit.noise_rate)
    suspects = audit.suspects()
    found = audit.expected_yield(suspects)
    numbers = f"{found.value:.0f} ({math.floor(found.low)} to {math.ceil(found.high)})"
    doubted = f"{len(suspects)} suspects, about {numbers} of them wrong; audit.suspects() are the rows to review"
    assert str(audit).splitlines() == [
        f"60 labels, about {share} wrong ({low} to {high}), {IF_FOUND}; {doubted}",
        *(
            f"  {percent(*one)} of true {name} bear another label"
            for name, one in zip("ab", audit.noise.list_class_shares(), strict=True)
        ),
        *(f"  of labels that say {label}, {percent(*audit.rate_by_label[label])} are wrong" for label in "ab"),
    ]
    three = make_audit(3)
    assert "true" not in str(three)
    found = three.expected_yield(three.suspects())
    assert found.value == pytest.approx(three.wrong[three.suspects()].sum())
    assert f"; {len(three.suspects())} suspects, about {found.value:.0f} (" in str(three)


def test_pairs_that_stand_out_and_were_found_are_named_and_no_more_than_a_few(monkeypatch):
    pairs = [
        Confusion("a", name, share, 0.005, 0.2, 3.0, stands_out=name != "d")
        for name, share in zip("bcdefgh", (0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03), strict=True)
    ]
    stub_method(monkeypatch, "confusions", pairs)
    audit = make_audit(8)
    told = [
        f"  true class a labelled {name}: {share}.0 % (0.5 % to 20.0 %)"
        for name, share in zip("bcef", (9, 8, 6, 5), strict=True)
    ]
    assert str(audit).splitlines()[9:] == told
    assert [one.of for one in audit.verdict.pairs] == [f"true class a labelled {name}" for name in "bcefgh"]
    undecided = np.ones((8, 8), dtype=bool)
    undecided[0, 2] = False
    some = change(audit, noise=change(audit.noise, decided_pairs=undecided)).verdict.pairs
    assert [one.of for one in some] == [f"true class a labelled {name}" for name in "befgh"]
    silent = change(audit, noise_rate=(0.1, 0.0, 0.2)).verdict
    assert silent.pairs == silent.by_label == ()


def test_the_noisiest_labels_are_told_and_the_others_counted(monkeypatch):
    stub_method(monkeypatch, "confusions", [])
    rates = {"a": (0.1, 0.05, 0.2), "b": (0.3, 0.1, 0.4), "c": (0.2, 0.1, 0.3)}
    audit = make_audit(3, rate_by_label=rates)
    monkeypatch.setattr(verdict, "MOST_TOLD", 2)
    assert str(audit).splitlines()[1:] == [
        f"  of labels that say b, {percent(*rates['b'])} are wrong",
        f"  of labels that say c, {percent(*rates['c'])} are wrong",
        "  ... and less of the 1 other labels",
    ]
    monkeypatch.setattr(verdict, "MOST_TOLD", 3)
    assert len(str(change(audit)).splitlines()) == 4


@pytest.mark.parametrize("for_command", [False, True])
def test_without_noise_the_first_rows_are_offered(for_command):
    audit = make_audit(found=False)
    offer = (
        "--budget 50 lists the rows to look at" if for_command else "audit.suspects(budget=50) are the rows to look at"
    )
    first, *others = audit.verdict.describe(for_command=for_command).splitlines()
    bound = f"at most {100 * audit.verdict.upper_bound.high:.1f} % are wrong if errors do not depend on features"
    unknown = "60 labels: whether labels are wrong or rows are hard cannot be told from these data"
    n_suspects = len(audit.suspects())
    assert first == f"{unknown}; {bound}; {n_suspects} suspects, 0 to {n_suspects} of them wrong; {offer} first"
    assert others == []
    reviewed = np.arange(60) < 7
    settled = change(audit, reviewed=reviewed, predicted=np.where(reviewed, audit.given, audit.predicted))
    fooled = change(settled, twins=TWINS).verdict.describe(for_command=for_command).splitlines()
    n_suspects = len(settled.suspects())
    assert fooled == [
        f"{unknown}; {n_suspects} suspects, 0 to {n_suspects} of them wrong",
        f"  twins, {'command' if for_command else 'Python'}",
        "  7 rows are reviewed: their labels are right",
        "  how many of the 53 rows not reviewed have a wrong label cannot be told",
    ]


def test_a_column_like_a_source_is_told_with_what_is_wrong_if_it_is_one(monkeypatch):
    stub_method(monkeypatch, "confusions", [])
    told = "; with branch taken for a source 20.0 % (10.0 % to 30.0 %) of all labels look wrong"
    for audit in (make_audit(), make_audit(found=False)):
        assert "taken for a source" not in str(audit)
        hiding = change(audit, hidden_source=HIDDEN)
        for for_command, name in ((False, "Python"), (True, "command")):
            assert hiding.verdict.describe(for_command=for_command).splitlines()[-1] == f"  branch, {name}{told}"
        assert audit.verdict.notes(NoticeKind.SOURCE) == ()


def test_noise_among_near_duplicates_is_told_without_numbers(monkeypatch):
    stub_method(monkeypatch, "confusions", [])
    plain = make_audit()
    audit = change(plain, twins=TWINS)
    unknown = "whether labels are wrong or rows are hard cannot be told from these data"
    n_suspects = len(audit.suspects())
    doubted = f"{n_suspects} suspects, 0 to {n_suspects} of them wrong"
    assert str(audit).splitlines() == [f"60 labels: {unknown}; {doubted}", "  twins, Python"]
    assert repr(audit) == f"LabelAudit(60 labels of 2 classes: undecided; {doubted})"
    assert "%" not in audit._repr_html_().split("likely wrong</th>")[0]
    assert audit.noise_rate == plain.noise_rate
    told = change(audit, noise=change(audit.noise, evidence=math.nan))
    assert str(told).startswith(f"60 labels, about {100 * audit.noise_rate[0]:.1f} % wrong")  # The rates were given.


# ---- who judged ----


def test_what_speaks_against_the_judges_is_told():
    audit = make_audit()
    assert audit.verdict.notices == ()
    (seen,) = tell(list_notices(change(audit, in_sample_reason="too good")))
    assert seen.startswith("the posteriors look as if they had seen the labels: too good; wrong labels that were seen")
    assert tell(list_notices(change(audit, twins=TWINS)), for_command=True) == ["twins, command"]
    assert tell(list_notices(change(audit, twins=TWINS))) == ["twins, Python"]
    (left,) = tell(list_notices(change(audit, judged=np.arange(60) > 9)))
    assert left.startswith("10 of the 60 labels are not judged, as no fold sets them aside")


def test_groups_are_counted_where_their_rows_are():
    groups = np.array([None if row < 4 else f"g{row // 10}" for row in range(60)], dtype=object)
    weight = np.where(np.arange(60) < 50, 1.0, 0.0)
    (told,) = tell(list_notices(make_audit(groups=groups, weight=weight, rows_per_case=4.0)))
    assert told.startswith("rows of 5 groups are judged by models that have not seen their group")
    assert told.endswith("they count for about 12")


def test_groups_of_one_row_each_are_said_to_keep_nothing_together():
    groups = np.array([None if row < 4 else row for row in range(60)], dtype=object)
    (told,) = tell(list_notices(make_audit(groups=groups)))
    assert told.startswith("none of the 56 groups has several rows: nothing keeps rows together")


# ---- sources ----


def make_quality(name="eve", stands_out=True):
    return SourceQuality(name, 20, 0.4, 0.3, 0.5, 8.0, 0.1, (("a", 0.4, 0.3, 0.5),), stands_out=stands_out)


def test_the_worst_sources_are_told_and_the_others_counted(monkeypatch):
    audit = make_audit_by_source(item=np.arange(60))
    unknown = "12 labels are of no known source: they are judged as those of all"
    for n_bad in (1, 4, 5, 1007):
        bad = [make_quality(name) for name in range(n_bad)]
        stub_method(monkeypatch, "rate", [*bad, make_quality("good", stands_out=False)])
        more = [] if n_bad < 5 else [f"... and {n_bad - 4:,} more sources stand out: "]
        for for_command, where in ((False, "sources.rate() has them all"), (True, "--json lists them all")):
            found = tell(change(audit).verdict.sources, for_command)
            assert found == [unknown, *map(str, bad[:4]), *(one + where for one in more)]
    few = tell(change(audit, weight=np.where(audit.sources.indices < 0, 0.0, 1.0)).verdict.sources)
    assert unknown not in few


def test_where_none_stands_out_the_share_in_common_is_told(monkeypatch):
    audit = make_audit_by_source(item=np.arange(60), weight=(np.arange(60) % 5 > 0).astype(float))
    stub_method(monkeypatch, "rate", [make_quality(stands_out=False)] * 2)
    in_common = f": of the labels of all {percent(*audit.noise_rate)} are wrong"
    assert tell(change(audit).verdict.sources) == [f"no source stands out among 2{in_common}"]
    for silent in (change(audit, noise=change(audit.noise, found=False)), change(audit, twins=TWINS)):
        assert tell(silent.verdict.sources) == ["no source stands out among 2"]
    unknown = change(audit, noise=change(audit.noise, found=False), twins=TWINS).verdict.sources
    assert tell(unknown) == ["which of 2 are noisier than the others cannot be told either"]
    stub_method(monkeypatch, "rate", [make_quality(stands_out=False)])
    assert tell(change(audit).verdict.sources) == ["no source stands out among 1"]


def test_items_with_several_labels_are_worth_a_word_where_there_are_some(monkeypatch):
    pairs = [Disagreement("ann", "bob", items, 0.4, 0.1, stands_out=items != 8) for items in range(9, 2, -1)]
    stub_method(monkeypatch, "find_disagreements", pairs)
    stub_method(monkeypatch, "rate", [make_quality()])
    audit = make_audit_by_source(weight=(np.arange(60) % 5 > 0).astype(float))
    told = "the truth of each item comes from its features and 3 labels on average"
    assert tell(change(audit).verdict.sources) == [
        str(make_quality()),
        told,
        *[str(one) for one in pairs if one.stands_out][:4],
    ]
    some = change(audit, item=np.maximum(np.arange(60), 5))  # Six rows of sixty are of one item.
    assert some.sources.share_repeated == 0.1
    assert tell(some.verdict.sources)[1].startswith("the truth of each item comes from its features and 1.1 labels")
    assert tell(change(audit, item=np.maximum(np.arange(60), 4)).verdict.sources) == [str(make_quality())]


# ---- notebooks ----


def test_a_notebook_shows_labels_suspects_and_what_a_review_finds(monkeypatch):
    shown = {}
    monkeypatch.setattr(notebook, "write_table", lambda header, rows: shown.setdefault(header[0], rows) and header[0])
    monkeypatch.setattr(notebook, "write_bar", lambda *rate, longest: (rate, longest))
    monkeypatch.setattr(notebook, "write_curve", lambda points, told: shown.update(curve=points, told=told) or "curve")
    monkeypatch.setattr(notebook, "write_fragment", lambda title, told, *parts: (title, told, parts))
    audit = make_audit(3)
    title, told, parts = audit._repr_html_()
    assert (title, parts) == ("Label audit", ("of labels that say", "row", "curve"))
    assert told.splitlines() == [line for line in str(audit).splitlines() if "of labels that say" not in line]
    longest = max(high for _, _, high in audit.rate_by_label.values())
    assert [row[0] for row in shown["of labels that say"]] == ["<b>a</b>", "<b>b</b>", "<b>c</b>"]
    assert [row[2] for row in shown["of labels that say"]] == [(rate, longest) for rate in audit.rate_by_label.values()]
    suspects = audit.suspects()
    assert len(suspects) > 5
    assert [row[0] for row in shown["row"]] == [f"{row}" for row in suspects[:5]]
    assert [row[1:3] for row in shown["row"]] == [[audit.given[row], audit.predicted[row]] for row in suspects[:5]]
    reviewed = audit.ranking[: 2 * len(suspects)]
    assert shown["curve"][0] == (0.0, 0.0)
    for n, found in shown["curve"]:
        assert found == pytest.approx(audit.wrong[reviewed[: int(n)]].sum())
    assert shown["curve"][-1][0] == len(reviewed)
    assert shown["told"].startswith(f"first {len(reviewed)} rows reviewed: about {audit.wrong[reviewed].sum():,.0f} (")
    assert len(shown["curve"]) <= notebook.CURVE_POINTS
    monkeypatch.setattr(notebook, "MOST_TOLD", 1)
    noisiest = max(audit.rate_by_label, key=lambda label: audit.rate_by_label[label][0])
    shown.clear()
    assert audit._repr_html_()
    assert [row[0] for row in shown["of labels that say"]] == [f"<b>{noisiest}</b>"]
    sure = change(audit, wrong=np.where(np.arange(60) == 3, 0.9, 0.0))
    assert len(sure.suspects()) == 1
    assert sure._repr_html_()[2] == ("of labels that say", "row", "curve")
    silent = change(audit, noise=change(audit.noise, found=False))
    shown.clear()
    labels, _, curve = silent._repr_html_()[2]
    assert labels == []  # No rows.
    assert curve == ""
