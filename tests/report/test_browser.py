"""The report in a real browser: it renders, sorts, filters and downloads, fetches nothing and complains of nothing."""

import csv
import io
import json
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest

from helpers.browser import Browser, find_chromium
from helpers.report_fixtures import audit_hostile_table, make_customers
from helpers.tickets import judge_by, make_components, make_tickets, measure_matrix
from untwist.audit import audit_labels
from untwist.report import compare, report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium here: as root on Debian, apt-get install chromium"),
]
SCREENSHOTS = Path(__file__).parents[2] / "results/screenshots"
TABLE = "document.getElementById('suspects')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("downloads"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def shop():
    table, labels, _ = make_customers(3000)
    return audit_labels(table, labels)


@pytest.fixture(scope="module")
def file(shop, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(
        report(shop, title="customers.csv", rows=np.arange(3000) + 2, row_name="line", peers=compare(shop)), "utf-8"
    )
    return path


@pytest.fixture(scope="module")
def tickets_file(tmp_path_factory):
    X, given, truth = make_tickets(1000)
    audit = judge_by(audit_labels(X, given), make_components(measure_matrix(given, truth)))
    path = tmp_path_factory.mktemp("tickets") / "report.html"
    path.write_text(report(audit, title="tickets.csv"), "utf-8")
    return path


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory):
    audit, names = audit_hostile_table()
    path = tmp_path_factory.mktemp("hostile") / 'a "b" <c> & ?#.html'
    path.write_text(report(audit, title="</title><script>alert(5)</script>" * 5, rows=names, row_name="<i>"), "utf-8")
    return path, audit, names


def assert_quiet(browser, path):
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []


def read_column(browser, place, *, all_rows=False):
    """What a column of the table shows from top to bottom."""
    which = "" if all_rows else ".filter(row => !row.hidden)"
    return browser.run(f"[...{TABLE}.tBodies[0].rows]{which}.map(row => row.cells[{place}].textContent)")


def read_status(browser):
    return browser.run("document.getElementById('status').textContent")


def choose(browser, control, value):
    browser.run(
        f"(() => {{ const one = document.getElementById('{control}'); one.value = {json.dumps(value)};"
        "one.dispatchEvent(new Event('input')); })()"
    )


@pytest.mark.parametrize(
    ("name", "view"),
    [("light", {}), ("dark", {"dark": True}), ("narrow", {"width": 390, "height": 844}), ("tiny", {"width": 320})],
)
def test_it_renders_without_a_request_or_a_complaint_and_fits(browser, file, name, view):
    browser.open(file, **view)
    assert_quiet(browser, file)
    assert browser.run("document.title") == "customers.csv: label audit"
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run(
        "[...document.querySelectorAll('svg')].every(one => one.getBoundingClientRect().width < innerWidth)"
    )
    sizes = browser.run("[...document.querySelectorAll('section')].map(one => one.getBoundingClientRect().height)")
    assert len(sizes) == 7
    assert min(sizes) > 100
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(19, 21, 25)") == (name == "dark")
    browser.take_picture(SCREENSHOTS / f"report-{name}.png")


@pytest.mark.parametrize(
    "view", [{}, {"dark": True}, {"width": 390, "height": 844}, {"width": 390, "dark": True}], ids=str
)
def test_the_matrix_of_several_classes_fits_and_its_colours_differ(browser, tickets_file, view):
    browser.open(tickets_file, **view)
    assert_quiet(browser, tickets_file)
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    find = "(name) => getComputedStyle(document.querySelector('.heat .' + name))"
    colours = [browser.run(f"({find})('{name}').backgroundColor") for name in ("own", "heat0", "heat5")]
    assert len(set(colours)) == 3
    assert browser.run(f"({find})('heat0').color") != browser.run(f"({find})('heat5').color")
    picture = f"several-{'dark' if view.get('dark') else 'light'}-{view.get('width', 1280)}"
    browser.take_picture(SCREENSHOTS / f"report-{picture}.png")


def test_the_browser_would_have_told(browser, file, tmp_path):
    path = tmp_path / "bad.html"
    bad = '<img src="http://127.0.0.1:9/x.png"><script>document.title = "run"; nothing.here()</script>'
    path.write_text("<!doctype html>" + bad)
    browser.open(path)
    assert browser.requests == [path.as_uri(), "http://127.0.0.1:9/x.png"]
    assert any("nothing is not defined" in str(one) for one in browser.complaints)
    path.write_text(file.read_text("utf-8").replace("<footer>", bad + "<footer>"), "utf-8")  # had escaping failed
    browser.open(path)
    assert browser.run("document.title") == "customers.csv: label audit"
    assert any("Content Security Policy" in str(one) for one in browser.complaints)
    assert [one for one in browser.requests if not one.startswith("file:")] in ([], ["http://127.0.0.1:9/x.png"])


def test_every_column_sorts_numbers_as_numbers(browser, file, shop):
    browser.open(file)
    assert read_status(browser) == f"10 of {min(250, len(shop.suspects()))} rows shown."
    listed = shop.suspects()[:250]
    number = {
        0: listed + 2,
        3: shop.wrong[listed].round(6),
        4: np.array([one.n_disagreeing for one in shop.explanations(listed)]),
    }
    for place in range(6):
        click = f"{TABLE}.tHead.rows[0].cells[{place}].firstElementChild.click()"
        sorts = f"[...{TABLE}.tHead.rows[0].cells].map(cell => cell.ariaSort)"
        for direction in ("ascending", "descending"):
            browser.run(click)
            assert browser.run(sorts) == [direction if i == place else "none" for i in range(6)]
            if place in number:
                script = f"[...{TABLE}.tBodies[0].rows].map(row => +row.cells[{place}].dataset.v)"
                order = sorted(number[place].tolist(), reverse=direction == "descending")
                assert browser.run(script) == pytest.approx(order)
            else:
                found = [text.casefold() for text in read_column(browser, place, all_rows=True)]
                ranks = browser.run(f"[...{TABLE}.tBodies[0].rows].map(row => +row.dataset.i)")
                if place < 5:  # reasons hold numbers, which count as such
                    assert found == sorted(found, reverse=direction == "descending")
                equal = [(one, two) for one, two in pairwise(zip(found, ranks, strict=True)) if one[0] == two[0]]
                assert all(one[1] < two[1] for one, two in equal)  # of equals the worst first
                names = [text.split(" is ")[0] for text in found]
                assert place < 5 or len(list(groupby(names))) == len(set(names))
            assert len(read_column(browser, place)) == 10
    assert_quiet(browser, file)


def test_filters_and_search_and_more(browser, file, shop):
    browser.open(file)
    listed = shop.suspects()[:250]
    leaving = int(np.count_nonzero(shop.given[listed] == "leaves"))
    assert 0 < leaving < len(listed)
    choose(browser, "given", "0")
    assert set(read_column(browser, 1)) == {"leaves"}
    assert read_status(browser) == f"{min(10, leaving)} of {leaving} rows shown ({len(listed)} in the table)."
    choose(browser, "like", "0")
    assert read_status(browser) == "No row matches."
    choose(browser, "given", "")
    choose(browser, "like", "")
    choose(browser, "words", "  BASEL ")
    assert all("Basel" in text for text in read_column(browser, 5))
    assert read_column(browser, 0)
    choose(browser, "words", "nowhere to be found")
    assert read_column(browser, 0) == []
    assert read_status(browser) == "No row matches."
    choose(browser, "words", "")
    assert len(read_column(browser, 0)) == 10
    browser.run("document.getElementById('more').click()")
    assert len(read_column(browser, 0)) == 50
    while browser.run("!document.getElementById('more').hidden"):
        browser.run("document.getElementById('more').click()")
    assert read_column(browser, 0) == [str(row + 2) for row in listed]
    assert_quiet(browser, file)


def download(browser):
    browser.run("document.getElementById('download').click()")
    content = browser.take_download("review-list.csv")
    assert content.startswith(b"\xef\xbb\xbf")  # spreadsheets need to be told of UTF-8
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_the_review_list_has_every_suspect(browser, file, shop):
    browser.open(file)
    choose(browser, "words", "Basel")  # neither a filter nor an order changes it
    browser.run(f"{TABLE}.tHead.rows[0].cells[0].firstElementChild.click()")
    head, *rows = download(browser)
    assert head == ["line", "label", "looks_like", "probability_wrong", "reasons", "right_label"]
    suspects = shop.suspects()
    assert [int(row[0]) for row in rows] == (suspects + 2).tolist()
    assert [row[1] for row in rows] == shop.given[suspects].tolist()
    assert [row[2] for row in rows] == shop.predicted[suspects].tolist()
    assert [float(row[3]) for row in rows] == pytest.approx(shop.wrong[suspects], abs=5e-5)
    first = shop.explain(suspects[0]).reasons[0]
    assert rows[0][4].startswith(f"{first.column} is ")
    assert all(row[4] for row in rows[:250])
    assert not any(row[4] for row in rows[250:])
    assert_quiet(browser, file)


def test_the_keyboard_is_enough(browser, file):
    browser.open(file)
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to the report"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0  # it shows when it has the focus
    seen = []
    for _ in range(60):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.closest('th')?.textContent ?? document.activeElement.id"))
        if seen[-1] == "line":
            break
    assert seen[-1] == "line"
    assert {"words", "given", "like", "download"} <= set(seen)
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    assert browser.run(f"{TABLE}.tHead.rows[0].cells[0].ariaSort") == "ascending"
    lines = [int(text) for text in read_column(browser, 0)]
    assert lines == sorted(lines)
    browser.press(" ")
    assert browser.run(f"{TABLE}.tHead.rows[0].cells[0].ariaSort") == "descending"
    browser.run("document.getElementById('words').focus()")
    browser.write("gent")
    assert all("gent" in text.casefold() for text in read_column(browser, 5))
    browser.press("Enter")  # a form that is sent would load the page again
    assert all("gent" in text.casefold() for text in read_column(browser, 5))
    assert_quiet(browser, file)


def test_a_screen_reader_finds_a_table_and_names(browser, file):
    for width in (1280, 390):  # cards on a phone stay a table
        browser.open(file, width=width)
        tree = browser.send("Accessibility.getFullAXTree")["nodes"]
        roles = [one["role"]["value"] for one in tree if not one.get("ignored")]
        for role in ("banner", "navigation", "main", "contentinfo", "search", "table", "columnheader", "rowheader"):
            assert role in roles, (role, width)
        for one in tree:
            if not one.get("ignored") and one["role"]["value"] in (
                "button",
                "textbox",
                "combobox",
                "image",
                "region",
                "link",
            ):
                assert one["name"]["value"].strip(), one


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_data_do_nothing(browser, hostile_file, width):
    path, audit, names = hostile_file
    browser.open(path, width=width)
    assert_quiet(browser, path)
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img, iframe, i').length") == 0
    assert browser.run("document.querySelector('h1').textContent").startswith("</title><script>alert(5)</script>")
    assert "<script>alert(3)</script>" in " ".join(read_column(browser, 5))
    choose(browser, "words", "<script>alert(3)")
    assert read_column(browser, 5)
    if width == 1280:
        _, *rows = download(browser)
        suspects = audit.suspects()
        assert [row[0] for row in rows] == ["'" + names[row].replace("\ud800", "\ufffd") for row in suspects]
        assert {row[1] for row in rows} <= {"</title></script><b>yes", '\'=HYPERLINK("http://x";"no")'}
        assert not [cell for row in rows for cell in row if cell and cell[0] in "=+-@\t\r"]
    assert_quiet(browser, path)


def test_numbers_in_the_review_list_stay_numbers(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    audit = audit_labels(X, np.where((X[:, 0] > 0) ^ (rng.random(300) < 0.2), 1, -1))
    path = tmp_path / "signs.html"
    path.write_text(report(audit, title="signs", suspects=audit.suspects(budget=30)), "utf-8")
    browser.open(path)
    _, *rows = download(browser)
    assert {row[1] for row in rows} | {row[2] for row in rows} == {"-1", "1"}


def test_nothing_to_review_leaves_nothing_to_control(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3))
    path = tmp_path / "clean.html"
    path.write_text(report(audit_labels(X, X[:, 0] > 0), title="clean"), "utf-8")
    browser.open(path)
    assert_quiet(browser, path)
    assert browser.run("document.querySelectorAll('form, #suspects, #more').length") == 0


def test_without_a_script_all_rows_are_there(browser, file, shop):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(file)
        assert len(read_column(browser, 0)) == min(250, len(shop.suspects()))
        assert browser.run("getComputedStyle(document.querySelector('form')).display") == "none"
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_a_print_shows_the_page_without_its_controls(browser, file):
    browser.open(file)
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run("getComputedStyle(document.querySelector('form')).display") == "none"
        assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")
