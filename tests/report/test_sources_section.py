"""The section of a report by source: the worst first, what to do, no more than a page can hold."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.report_fixtures import HOSTILE, Page, read_text
from helpers.small_audits import change
from helpers.sourced_rows import draw_sourced_rows, draw_votes
from untwist.audit import audit_labels
from untwist.audit.findings import collect_findings
from untwist.audit.sources import Disagreement
from untwist.display import write_percent, write_share
from untwist.report import compare, report
from untwist.report.page import write_report
from untwist.report.sources import write_sources

pytestmark = pytest.mark.usefixtures("few_components")

TWINS = SimpleNamespace(share=0.5, describe=lambda for_command: "twins")


@pytest.fixture(scope="module")
def found():
    X, y, source, _ = draw_sourced_rows(1000)
    return collect_findings(audit_labels(pd.DataFrame(X, columns=list("abcd")), y, source=source))


@pytest.fixture(scope="module")
def voted():
    X, y, source, items, _ = draw_votes(250)
    return collect_findings(audit_labels(X, y, source=source, item=items))


def test_the_worst_source_comes_first_with_what_to_do(found):
    text = read_text(write_sources(found))
    first = found.sources[0]
    assert first.name == "Leipzig"
    share = write_percent(first.share_wrong, first.low, first.high)
    assert f"Of the labels of Leipzig {share} are wrong; of the others {write_share(first.others)}" in text
    assert f"about {first.expected_wrong:,.0f} of {first.labels:,}. Review them first, or leave them out" in text
    assert f"Leipzig stands out {first.labels:,} {share} {first.expected_wrong:,.0f} " in text
    assert text.count("Review them first") == 1
    marks = [" stands out" if one.stands_out else "" for one in found.sources]
    places = [text.index(f"{one.name}{mark} {one.labels:,} ") for one, mark in zip(found.sources, marks, strict=True)]
    assert places == sorted(places)
    assert "Who disagrees with whom" not in text


def test_the_page_has_the_section_and_points_to_it(found):
    page = write_report(found, title="branches")
    whole = Page(page)
    assert [one for one in whole.values("id") if one in ("noise", "sources", "review")] == [
        "noise",
        "sources",
        "review",
    ]
    text = read_text(page)
    assert "Labels of Leipzig are wrong more often than those of the others: by source." in text
    assert f"one for all, by {found.audit.context.by_source.evidence:,.1f} units of log-likelihood." in text
    assert page == report(found.audit, title="branches")


def test_without_sources_there_is_no_section():
    X, y, _, _ = draw_sourced_rows(300)
    page = report(audit_labels(X, y), title="plain")
    assert "#sources" not in page
    assert "id=sources" not in page


def test_good_sources_are_said_to_be_so(found):
    good = change(found, sources=[change(one, stands_out=False) for one in found.sources])
    text = read_text(write_sources(good))
    in_common = write_percent(*found.audit.noise_rate)
    assert f"No source stands out: of the labels of all {in_common} are wrong." in text
    assert "What to do" not in text
    quiet = change(found.audit, noise=change(found.audit.noise, found=False))
    for silent in (quiet, change(found.audit, twins=TWINS)):
        text = read_text(write_sources(change(good, audit=silent)))
        assert "Which of them are noisier than the others cannot be told." in text
        assert "share wrong" not in text
    assert "Labels of Leipzig are wrong" not in read_text(write_report(good, title="good"))


def test_of_many_sources_the_worst_are_shown_and_the_others_counted(found):
    one = found.sources[0]
    many = change(found, sources=[change(one, name=f"source {i}") for i in range(3000)])
    text = write_sources(many)
    assert text.count("<th scope=row>source ") == 25
    assert "... and 2,975 more" in text
    assert "2,994 more sources stand out" in text
    assert "The worst 12 of 3,000." in text
    assert len(text) < 30_000


def test_annotators_are_compared(voted):
    text = read_text(write_sources(voted))
    assert "An item has 3 labels on average" in text
    assert "Who disagrees with whom" in text
    assert len(voted.disagreements) == 10
    first = voted.disagreements[0]
    shares = f"{write_share(first.share)} {write_share(first.expected)}"
    assert f"{first.first} and {first.second} {first.items} {shares}" in text
    many = [Disagreement(i, i + 1, 10, 0.5, 0.1, stands_out=True) for i in range(500)]
    assert write_sources(change(voted, disagreements=many)).count("<th scope=row>") == len(voted.sources) + 12


def test_a_source_that_is_mostly_wrong_is_asked_about_its_classes(found):
    swapped = change(found.sources[0], share_wrong=0.9, low=0.85, high=0.95)
    text = read_text(write_sources(change(found, sources=[swapped, *found.sources[1:]])))
    assert "ask whether its classes were mixed up" in text


def test_a_source_that_errs_in_one_class_is_told_which(found):
    uneven = change(found.sources[0], class_shares=((0, 0.1, 0.05, 0.2), ("<yes>", 0.9, 0.85, 0.95)))
    text = read_text(write_sources(change(found, sources=[uneven, *found.sources[1:]])))
    assert "Most of all it mislabels what is truly <yes>, 90.0 % (85.0 % to 95.0 %) of it." in text
    assert "Most of all" not in read_text(write_sources(found))


def test_labels_of_no_known_source_are_counted():
    X, y, source, _ = draw_sourced_rows(600)
    audit = audit_labels(X, y, source=np.where(np.arange(600) < 60, None, source))
    text = read_text(write_sources(collect_findings(audit)))
    assert "60 labels are of no known source and are judged as those of all." in text


def test_hostile_names_of_sources_stay_text():
    X, y, source, _ = draw_sourced_rows(600)
    names = np.array(HOSTILE[:4], dtype=object)[np.unique(source, return_inverse=True)[1]]
    page = report(audit_labels(X, y, source=names), title="hostile")
    whole = Page(page)
    assert whole.tags.count("script") == 3
    assert "img" not in whole.tags
    assert not [name for _, name, _ in whole.attributes if name.startswith("on")]


def test_what_is_compared_is_told_by_the_features_alone(voted):
    audit = voted.audit
    measured = compare(audit)["untwist"]
    by_features = audit.clean.argmax(axis=1)
    assert measured.agreement_with_given == pytest.approx(np.mean(by_features == audit.label_indices))
