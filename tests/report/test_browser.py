"""The report in a real browser: a place to work by keyboard alone, which fetches nothing and complains of nothing."""

import csv
import io
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.browser import Browser, find_chromium
from helpers.patience import PATIENCE
from helpers.report_fixtures import audit_hostile_table, make_customers
from helpers.stub_server import StubServer
from helpers.tickets import judge_by, make_components, make_tickets, measure_matrix
from untwist.audit import audit_labels, read_decisions
from untwist.report import compare, report
from untwist.report.worksheet import LEAST_SHOWN_EFFECT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium here: as root on Debian, apt-get install chromium"),
]
SCREENSHOTS = Path(__file__).parents[2] / "results/screenshots"
READY = "document.getElementById('work') && !document.getElementById('work').hidden"


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
    table = shop.table.X.assign(signup=[f"{1 + i % 28:02d}.03.2021" for i in range(3000)])
    table.insert(0, "customer", [f"C-{i:04d}" for i in range(3000)])
    lines = np.arange(3000) + 2
    page = report(shop, title="customers.csv", rows=lines, row_name="line", peers=compare(shop), table=table)
    path.write_text(page, "utf-8")
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
    return path, audit


def assert_quiet(browser, path):
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []


def open_desk(browser, path, **view):
    """Open a page without what earlier tests decided on it."""
    browser.open(path, **view)
    browser.run("localStorage.clear()")
    browser.open(path, **view)
    browser.wait_for(READY)
    show_row(browser)


def show_row(browser):
    """Scroll to where keys act: the row at hand is in view."""
    browser.run("document.getElementById('sheet').scrollIntoView({ behavior: 'instant' })")


def read(browser, name):
    return browser.run(f"document.getElementById('{name}').textContent")


def read_names(browser):
    """The names of the rows that the list has drawn, from top to bottom."""
    return browser.run("[...document.querySelectorAll('.item b')].map(one => one.textContent)")


def read_current(browser):
    """The name of the row that is at hand."""
    return browser.run("document.querySelector('.item[aria-selected=true] b').textContent")


def read_values(browser):
    """The values of the row at hand, by column."""
    script = "[...document.querySelectorAll('.values tbody tr')].map(row => [...row.cells].map(one => one.textContent))"
    return {name: cells for name, *cells in browser.run(script)}


def choose(browser, control, value):
    browser.run(
        f"(() => {{ const one = document.getElementById('{control}'); one.value = {json.dumps(value)};"
        "one.dispatchEvent(new Event('input')); })()"
    )


def read_class_buttons(browser):
    """What the buttons of classes say: the class, and its key."""
    return browser.run("[...document.querySelectorAll('#classes button')].map(one => one.textContent)")


def take_csv(browser, name):
    content = browser.take_download(name)
    assert content.startswith(b"\xef\xbb\xbf")  # spreadsheets need to be told of UTF-8
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize(
    ("name", "view"),
    [("light", {}), ("dark", {"dark": True}), ("narrow", {"width": 390, "height": 844}), ("tiny", {"width": 320})],
)
def test_it_renders_without_a_request_or_a_complaint_and_fits(browser, file, name, view):
    open_desk(browser, file, **view)
    browser.press("r", "j", "Y", "s", "n")
    browser.write("ask Anna")
    browser.press("Enter")
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
    browser.take_picture(SCREENSHOTS / f"review-{name}.png", "#review")


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


# ---- the rows ----


def test_a_row_is_shown_with_all_that_is_known_of_it(browser, file, shop):
    open_desk(browser, file)
    first = shop.explain(shop.suspects()[0])
    assert read(browser, "head").startswith(f"line {first.row + 2}{first.given} looks like {first.predicted}")
    assert f"{first.n_disagreeing} of 20 similar rows bear another label" in read(browser, "head")
    reasons = browser.run("[...document.querySelectorAll('.reasons li')].map(one => one.textContent)")
    assert [text.split(" is ")[0] for text in reasons] == [one.column for one in first.reasons]
    values = read_values(browser)
    assert list(values) == ["label", "customer", *shop.table.X.columns, "signup"]
    assert values["customer"][0] == f"C-{first.row:04d}"
    assert values["city"][0].startswith(shop.table.X["city"].iloc[first.row])
    assert values["signup"][0] == f"{1 + first.row % 28:02d}.03.2021"
    low, high = shop.table.X["age"][shop.given == first.given].quantile([0.025, 0.975])
    assert values["age"][1] == f"{low:.4g} to {high:.4g}"
    assert values["label"][2:] == shop.given[list(first.similar)].tolist()
    assert values["age"][2:] == [str(shop.table.X["age"].iloc[row]) for row in first.similar]
    differs = browser.run("[...document.querySelectorAll('.values .label td')].map(one => one.className == 'differs')")
    assert differs[2:] == [shop.given[row] != first.given for row in first.similar]
    against = browser.run(
        "[...document.querySelectorAll('.values .against')].map(one => one.parentNode.cells[0].textContent)"
    )
    assert set(against) == {one.column for one in first.reasons}
    assert_quiet(browser, file)


def test_search_finds_values_ids_labels_and_reasons(browser, file, shop):
    open_desk(browser, file)
    suspects = shop.suspects()
    rows = shop.table.X.iloc[suspects]

    def find(words):
        choose(browser, "words", words)
        return read(browser, "status")

    def count(mask):
        return f"{np.count_nonzero(mask):,} of {len(suspects):,} rows"

    basel = rows["city"] == "Basel"
    assert find("city:BASEL") == find(" CITY:basel ") == count(basel)
    assert find("city:Basel plan:family") == count(basel & (rows["plan"] == "family"))
    assert find("city:Basel label:leaves") == count(basel & (shop.given[suspects] == "leaves"))
    assert find('"tenure in months":7') == find("tenure_in_months:7") == find("TenureInMonths:7")
    assert find("tenure_in_months:7") == count(rows["tenure in months"].astype(str).str.contains("7"))
    assert find(f"C-{suspects[7]:04d}") == f"1 of {len(suspects):,} rows"
    assert read_names(browser) == [str(suspects[7] + 2)]
    assert read_current(browser) == str(suspects[7] + 2)  # what is at hand is among what is listed
    find("Gent")
    assert int(read(browser, "status").split()[0].replace(",", "")) >= np.count_nonzero(rows["city"] == "Gent")
    assert find("why:city") == count(
        [
            any(one.column == "city" and one.effect >= LEAST_SHOWN_EFFECT for one in shop.explain(row).reasons)
            for row in suspects
        ]
    )
    assert find("nowhere to be found") == "No row matches."
    assert read_names(browser) == []
    browser.press("r")  # nothing is listed, nothing is decided
    assert find("") == f"{len(suspects):,} rows"
    assert read(browser, "yield").startswith("Nothing is decided yet")
    assert_quiet(browser, file)


def test_filters_and_orders(browser, file, shop):
    open_desk(browser, file)
    suspects = shop.suspects()
    leaving = suspects[shop.given[suspects] == "leaves"]
    choose(browser, "given", "0")
    assert read(browser, "status") == f"{len(leaving):,} of {len(suspects):,} rows"
    assert read_names(browser) == [str(row + 2) for row in leaving[: len(read_names(browser))]]
    choose(browser, "like", "0")
    assert read(browser, "status") == "No row matches."
    choose(browser, "like", "1")
    assert read(browser, "status") == f"{len(leaving):,} of {len(suspects):,} rows"
    choose(browser, "like", "")
    choose(browser, "given", "")
    choose(browser, "order", "name")
    browser.run("document.getElementById('list').focus()")
    browser.press("Home")
    assert read_names(browser)[:5] == [str(row + 2) for row in np.sort(suspects)[:5]]  # 9 comes before 10
    browser.press("End")
    assert read_current(browser) == str(suspects.max() + 2)
    choose(browser, "order", "")
    browser.press("Home", "r", "r", "Y", "s")
    for state, number in (("decided", 4), ("relabel", 2), ("keep", 1), ("skip", 1), ("open", len(suspects) - 4)):
        choose(browser, "state", state)
        assert read(browser, "status") == f"{number:,} of {len(suspects):,} rows"
    browser.press("r", "r")  # what is decided leaves the list of what is open, and the next row is at hand
    assert read(browser, "status") == f"{len(suspects) - 6:,} of {len(suspects):,} rows"
    assert read_names(browser)[0] == read_current(browser) == str(suspects[6] + 2)
    assert_quiet(browser, file)


def test_ten_thousand_rows_are_not_all_drawn(browser, tmp_path):
    table, labels, _ = make_customers(12_000)
    audit = audit_labels(table, labels)
    suspects = audit.suspects(budget=10_400)
    path = tmp_path / "many.html"
    table = pd.DataFrame({"id": [f"row-{i}" for i in range(12_000)]})
    path.write_text(report(audit, title="many", suspects=suspects, table=table), "utf-8")
    assert path.stat().st_size < 3_000_000
    open_desk(browser, path)
    assert "This page holds the first 10,000 of 10,400." in browser.run("document.body.textContent")
    assert read(browser, "status") == "10,000 rows"
    browser.run("document.getElementById('list').focus()")
    for keys in ([], ["End"], ["ArrowUp"] * 3, ["r", "Y"], ["Home"]):
        browser.press(*keys)
        assert 0 < len(read_names(browser)) < 60
    browser.press("End")
    assert read_current(browser) == str(suspects[9999])
    browser.run("document.getElementById('list').scrollTop = 5000 * 54")
    browser.wait_for(f"[...document.querySelectorAll('.item b')].some(one => one.textContent == '{suspects[5000]}')")
    assert len(read_names(browser)) < 60
    choose(browser, "words", f"id:row-{suspects[9998]}")
    assert str(suspects[9998]) in read_names(browser)
    assert read_values(browser)["age"][2:] == []  # similar rows are looked for to the first thousand
    assert_quiet(browser, path)


# ---- deciding ----


def test_the_whole_way_by_keyboard_alone(browser, file, shop, tmp_path):
    open_desk(browser, file)
    suspects = shop.suspects()
    lines = [str(row + 2) for row in suspects]
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to the report"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0  # it shows when it has the focus
    browser.press_until("Tab", "document.activeElement.id == 'list'")
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")
    browser.press("r")  # not while the help is open
    browser.press("Escape")
    assert not browser.run("document.getElementById('keys').open")
    browser.press("?", "Enter")
    assert not browser.run("document.getElementById('keys').open")
    assert read(browser, "yield").startswith("Nothing is decided yet")

    browser.press("j", "j", "ArrowDown", "k", "ArrowUp")
    assert read_current(browser) == lines[1]
    browser.press("r")  # row 1
    assert read_current(browser) == lines[2]
    browser.press("K", "y", "1", "2", "s")  # rows 2 to 6
    browser.press("r", "u")
    assert read_current(browser) == lines[7]  # what was undone is at hand again
    browser.press("n")
    browser.write("=ask, Anna")
    browser.press("Enter")
    assert browser.run("document.activeElement.id") == "list"
    browser.press("n")
    browser.write("dropped")
    browser.press("Escape")
    decided = [1, 2, 3, 4, 5, 6, 7]
    given = shop.given[suspects[decided]].tolist()
    labels = [shop.predicted[suspects[1]], given[1], given[2], "leaves", "stays", given[5], given[6]]
    decisions = [
        "relabel",
        "keep",
        "keep",
        *["keep" if labels[i] == given[i] else "relabel" for i in (3, 4)],
        "skip",
        "skip",
    ]
    wrong = decisions.count("relabel")
    expected = shop.expect_wrong(suspects[1:6])
    assert (
        read(browser, "yield")
        == f"{wrong} of 5 were wrong; expected {expected:.0f} · {len(suspects) - 7} open, 2 skipped"
    )
    assert browser.run("document.getElementById('done').value") == 7

    browser.press("/")
    assert browser.run("document.activeElement.id") == "words"
    browser.write("Anna")
    browser.press("Enter")
    assert read_names(browser) == [lines[7]]
    browser.press("/", "Escape")
    assert read(browser, "status") == f"{len(suspects):,} rows"

    browser.press_until("Tab", "document.activeElement.id == 'save'")
    browser.press("Enter")
    content = browser.take_download("decisions.csv")
    saved = tmp_path / "decisions.csv"
    saved.write_bytes(content)
    found = read_decisions(saved)
    order = np.argsort(suspects[decided])
    assert found.rows.tolist() == suspects[decided][order].tolist()
    assert found.given.tolist() == [given[i] for i in order]
    assert found.decision.tolist() == [decisions[i] for i in order]
    assert found.labels.tolist() == [labels[i] for i in order]
    assert found.notes.tolist() == [["", "", "", "", "", "", "=ask, Anna"][i] for i in order]
    assert found.lines.tolist() == [lines[decided[i]] for i in order]
    assert found.fingerprint == shop.fingerprint
    assert b"'=ask" in content  # a spreadsheet takes it for text

    browser.open(file)  # what was decided is there again, and the next row that is open is at hand
    browser.wait_for(READY)
    assert read_current(browser) == lines[0]
    assert read(browser, "yield").startswith(f"{wrong} of 5 were wrong")
    open_desk(browser, file)  # or, in a browser that knows nothing of it, from the file
    assert read(browser, "yield").startswith("Nothing")
    browser.press_until("Tab", "document.activeElement.id == 'load'")
    browser.press("Enter")
    browser.choose_file(saved)
    browser.wait_for("!document.getElementById('message').hidden")
    assert read(browser, "message") == "7 decisions loaded from decisions.csv."
    assert read(browser, "yield").startswith(f"{wrong} of 5 were wrong")
    browser.press_until("Tab", "document.activeElement.id == 'save'")
    browser.press("Enter")
    assert browser.take_download("decisions.csv") == content
    assert_quiet(browser, file)


def test_files_that_are_about_something_else_are_refused(browser, file, shop, tmp_path):
    open_desk(browser, file)
    head = "row,line,given,decision,label,note,decided_at,fingerprint\n"
    own = shop.fingerprint
    cases = [
        (f"{head}1,,stays,keep,stays,,,{own[:-1]}x\n", "its decisions are about other data (the fingerprint differs)"),
        ("a,b\n1,2\n", 'there is no column "row"'),
        (f"{head}1,,stays,perhaps,stays,,,{own}\n", "line 2: the decision must be keep, relabel or skip"),
        (f"{head}1,,stays,relabel,<b>,,,{own}\n", 'line 2: "<b>" is no class of these data'),
        (f"{head}-1,,stays,keep,stays,,,{own}\n", "line 2: row must be a whole number from 0"),
    ]
    path = tmp_path / "other.csv"
    for content, words in cases:
        path.write_text(content)
        browser.run("document.getElementById('load').focus()")
        browser.press("Enter")
        browser.choose_file(path)
        browser.wait_for(f"document.getElementById('message').textContent.includes({json.dumps(words)})")
        assert read(browser, "yield").startswith("Nothing")
    # A spreadsheet may save it with semicolons, without the line and with quotes everywhere.
    row = int(shop.suspects()[3])
    other = next(i for i in range(3000) if i not in shop.suspects())
    names = "row;given;decision;label;note;fingerprint"
    kept = f'"{row}";"{shop.given[row]}";"keep";"{shop.given[row]}";"two\nlines ""quoted""; here";"{own}"'
    elsewhere = f"{other};stays;skip;;;{own}"
    path.write_text("\n".join([names, kept, elsewhere]))
    browser.run("document.getElementById('load').focus()")
    browser.press("Enter")
    browser.choose_file(path)
    browser.wait_for("document.getElementById('message').textContent.startsWith('2 decisions loaded')")
    assert read(browser, "yield").startswith("0 of 1 were wrong")
    browser.run("document.getElementById('save').click()")
    _, *lines = take_csv(browser, "decisions.csv")  # a row that is not listed is not lost
    assert [[line[0], *line[2:6]] for line in lines] == sorted(
        [
            [str(row), shop.given[row], "keep", shop.given[row], 'two\nlines "quoted"; here'],
            [str(other), "stays", "skip", "stays", ""],
        ],
        key=lambda line: int(line[0]),
    )
    assert_quiet(browser, file)


def test_the_list_follows_the_filter_and_the_decisions_do_not(browser, file, shop):
    open_desk(browser, file)
    suspects = shop.suspects()
    browser.press("r", "Y")
    choose(browser, "words", "city:Basel")
    choose(browser, "order", "name")
    browser.run("document.getElementById('download').click()")
    head, *rows = take_csv(browser, "review-list.csv")
    known = ["line", "label", "looks_like", "probability_wrong", "reasons", "decision", "right_label", "note"]
    assert head == [*known, "customer", *shop.table.X.columns, "signup"]
    basel = np.sort(suspects[shop.table.X["city"].iloc[suspects] == "Basel"])
    assert [int(row[0]) for row in rows] == (basel + 2).tolist()
    assert [row[1] for row in rows] == shop.given[basel].tolist()
    assert [float(row[3]) for row in rows] == pytest.approx(shop.wrong[basel], abs=5e-5)
    assert rows[0][8] == f"C-{basel[0]:04d}"
    first = shop.explain(basel[0]).reasons[0]
    assert rows[0][4].startswith(f"{first.column} is ")
    browser.run("document.getElementById('save').click()")
    _, *rows = take_csv(browser, "decisions.csv")
    assert {int(row[0]) for row in rows} == set(suspects[:2].tolist())
    assert_quiet(browser, file)


def test_the_mouse_is_enough(browser, file, shop):
    open_desk(browser, file)
    suspects = shop.suspects()
    browser.run("document.querySelectorAll('.item')[3].click()")
    assert read_current(browser) == str(suspects[3] + 2)
    for button in ("relabel", "keep", "skip", "undo"):
        browser.run(f"document.getElementById('{button}').click()")
    assert read_current(browser) == str(suspects[5] + 2)
    assert read(browser, "yield").startswith("1 of 2 were wrong; ")
    browser.run("document.querySelectorAll('.item')[3].click()")
    pressed = "[...document.querySelectorAll('.actions [aria-pressed=true]')].map(one => one.id)"
    assert browser.run(pressed) == ["relabel"]
    assert "relabelled to " in read(browser, "head")
    assert_quiet(browser, file)


def test_several_classes_have_a_key_each(browser, tickets_file):
    open_desk(browser, tickets_file)
    names = read_class_buttons(browser)
    assert names == ["account1", "billing2", "bug3", "feature4"]
    first = read_current(browser)
    given = browser.run("document.querySelector('.was').textContent")
    number, other = next((i, name[:-1]) for i, name in enumerate(names) if name[:-1] != given)
    browser.press(str(number + 1), "9")
    browser.run("document.querySelector('.item').click()")
    assert read_current(browser) == first
    assert f"relabelled to {other}" in read(browser, "head")
    assert_quiet(browser, tickets_file)


def write_numbered(path, labels, n_rows=300, budget=30):
    """Write the report of an audit of labels that are drawn at random, among others, and return the audit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    truth = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(1, len(labels)) / len(labels)))
    given = np.where(rng.random(n_rows) < 0.2, rng.integers(0, len(labels), n_rows), truth)
    audit = audit_labels(X, np.asarray(labels)[given])
    path.write_text(report(audit, title="numbers", suspects=audit.suspects(budget=budget)), "utf-8")
    return audit


@pytest.mark.parametrize(
    ("labels", "keys"),
    [
        ([0, 1], "01"),
        ([0, 1, 2, 3], "0123"),
        ([-1, 1], "21"),
        ([1, 2, 30], "123"),
        (["0", "1", "no", "r"], "0123"),
        (["3.0", "a", "b", "c"], "3124"),
    ],
    ids=str,
)
def test_a_key_sets_the_label_of_the_button_that_shows_it(browser, tmp_path, labels, keys):
    path = tmp_path / "numbers.html"
    audit = write_numbered(path, labels)
    open_desk(browser, path)
    classes = list(map(str, audit.classes.tolist()))
    by_class = dict(zip(map(str, labels), keys, strict=True))
    assert sorted(read_class_buttons(browser)) == sorted(name + key for name, key in by_class.items())
    suspects = audit.suspects(budget=30)[: len(classes) * 2]
    wanted = [classes[i % len(classes)] for i in range(len(suspects))]
    browser.press(*[by_class[name] for name in wanted])
    unused = next(digit for digit in "9876543210" if digit not in keys)
    browser.press(unused)
    browser.run("document.getElementById('save').click()")
    _, *lines = take_csv(browser, "decisions.csv")
    decided = {int(line[0]): (line[3], line[4]) for line in lines}
    given = list(map(str, audit.given[suspects].tolist()))
    expected = {
        row: ("keep" if old == new else "relabel", new)
        for row, old, new in zip(suspects.tolist(), given, wanted, strict=True)
    }
    assert decided == expected
    assert_quiet(browser, path)


def test_every_key_on_a_button_presses_that_button(browser, tickets_file):
    open_desk(browser, tickets_file)
    shown = "[...document.querySelectorAll('#work button:has(kbd)')].map(one => one.querySelector('kbd').textContent)"
    keys = browser.run(shown)
    assert len(set(map(str.lower, keys))) == len(keys) == 9
    browser.run(
        "window.pressed = []; for (const one of document.querySelectorAll('#work button'))"
        " one.addEventListener('click', () => pressed.push(one.querySelector('kbd')?.textContent))"
    )
    browser.press(*[key for key in keys if key not in "U?"], "u", "?")
    pressed = browser.run("pressed")
    assert pressed == [*[key for key in keys if key not in "U?"], "U", "?"]
    assert not set(map(str.lower, keys)) & set("jkn/")


def test_keys_act_only_where_the_row_at_hand_is_in_view(browser, file, shop):
    open_desk(browser, file)
    lines = [str(row + 2) for row in shop.suspects()[:4]]
    browser.press("r")
    browser.run("document.querySelectorAll('.item')[0].click()")
    assert read_current(browser) == lines[0]
    assert "relabelled to" in read(browser, "head")
    top = "document.getElementById('head').getBoundingClientRect().top"
    for key in ("Y", "s", "u", "1", "2", "r", "j", "n", "c"):
        browser.run("scrollTo({ top: 0, behavior: 'instant' })")
        assert browser.run(top) > 900
        browser.press(key)
        assert read(browser, "yield").startswith("1 of 1 was wrong"), key
        assert read_current(browser) == lines[0]
        assert (0 <= browser.run(top) < 700) == (key != "c")  # but for a key that is none here, it is in view now
    browser.run("scrollTo({ top: 1e6, behavior: 'instant' })")
    browser.press("Y")
    assert "Here it is: press the key again." in read(browser, "message")
    browser.press("Y")
    assert read(browser, "yield").startswith("0 of 1 were wrong")
    assert browser.run("document.getElementById('message').hidden")
    browser.run("scrollTo({ top: 0, behavior: 'instant' })")
    browser.press("ArrowUp")  # the list has the focus, and a move decides nothing
    assert read(browser, "yield").startswith("0 of 1 were wrong")
    assert_quiet(browser, file)


def test_a_key_that_is_held_down_decides_once(browser, file):
    open_desk(browser, file)
    browser.press("r")
    held = {"key": "r", "code": "KeyR", "text": "r", "windowsVirtualKeyCode": ord("R")}
    for _ in range(5):
        browser.send("Input.dispatchKeyEvent", type="keyDown", autoRepeat=True, **held)
    assert read(browser, "yield").startswith("1 of 1 was wrong")


def test_caps_lock_changes_no_key(browser, file, shop):
    open_desk(browser, file)
    lines = [str(row + 2) for row in shop.suspects()[:3]]
    browser.press("j", "j")
    locked = {"key": "K", "code": "KeyK", "text": "K", "windowsVirtualKeyCode": ord("K")}
    browser.send("Input.dispatchKeyEvent", type="keyDown", **locked)
    assert read_current(browser) == lines[1]
    assert read(browser, "yield").startswith("Nothing is decided")


def test_keys_can_be_switched_off_and_stay_off(browser, file, shop):
    open_desk(browser, file)
    lines = [str(row + 2) for row in shop.suspects()[:3]]
    shown = "getComputedStyle(document.querySelector('#keep kbd')).display != 'none'"
    assert browser.run(shown)
    browser.run("document.getElementById('uses-keys').click()")
    for _ in range(2):
        browser.press("r", "Y", "1", "j", "u", "?", "/")
        assert read(browser, "yield").startswith("Nothing is decided yet")
        assert read_current(browser) == lines[0]
        assert not browser.run("document.getElementById('keys').open")
        assert not browser.run(shown)
        browser.open(file)
        browser.wait_for(READY)
        show_row(browser)
    assert not browser.run("document.getElementById('uses-keys').checked")
    browser.run("document.getElementById('list').focus()")
    browser.press("ArrowDown")  # what a list is moved in by is no shortcut
    assert read_current(browser) == lines[1]
    browser.run("document.getElementById('uses-keys').click()")
    browser.open(file)
    browser.wait_for(READY)
    show_row(browser)
    browser.press("r")
    assert read(browser, "yield").startswith("1 of 1 was wrong")
    assert_quiet(browser, file)


def test_of_many_classes_one_is_chosen_by_typing(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    truth = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(1, 12) / 12))
    names = np.array([f"class <{letter}>" for letter in "abcdefghijkl"])
    audit = audit_labels(X, names[np.where(rng.random(600) < 0.1, rng.integers(0, 12, 600), truth)])
    path = tmp_path / "many.html"
    path.write_text(report(audit, title="classes", suspects=audit.suspects(budget=20)), "utf-8")
    open_desk(browser, path)
    assert read_class_buttons(browser) == []
    given = browser.run("document.querySelector('.was').textContent")
    target = next(name for name in ("class <k>", "class <l>") if name != given)
    browser.press("c")
    assert browser.run("document.activeElement.id") == "pick"
    assert browser.run("document.querySelectorAll('#picks div').length") == 12
    browser.write(target[-2])
    assert target in browser.run("[...document.querySelectorAll('#picks div')].map(one => one.textContent)")
    browser.write(">")
    browser.press("Enter")
    assert not browser.run("document.getElementById('picker').open")
    browser.press("k")
    assert f"relabelled to {target}" in read(browser, "head")
    second = "class <b>" if given != "class <b>" else "class <c>"
    browser.press("c", *["ArrowDown"] * (1 if second == "class <b>" else 2), "Enter", "k")
    assert f"relabelled to {second}" in read(browser, "head")
    browser.press("c", "Escape")
    assert_quiet(browser, path)


def test_where_no_noise_was_found_nothing_is_promised(browser, clean, tmp_path):
    suspects = clean.suspects(budget=40)
    path = tmp_path / "clean.html"
    path.write_text(report(clean, title="cancer", suspects=suspects), "utf-8")
    open_desk(browser, path)
    browser.press(*["Y"] * 30)
    most = min(30, clean.verdict.most_wrong)
    assert read(browser, "yield").startswith(f"0 of 30 were wrong; expected 0 to {most}")
    assert_quiet(browser, path)


def test_what_another_tab_decides_is_seen(browser, file, shop):
    open_desk(browser, file)
    suspects = shop.suspects()
    browser.press("r", "Y")
    saved = browser.run("Object.fromEntries(Object.entries(localStorage))")
    assert len(saved) == 2  # an entry per row, so that tabs do not overwrite each other
    key = next(one for one in saved if one.endswith(f":{suspects[0]}"))
    told = "dispatchEvent(new StorageEvent('storage', {{ key: {}, newValue: {} }}))"
    browser.run(told.format(json.dumps(key.replace(str(suspects[0]), str(suspects[4]))), json.dumps(saved[key])))
    assert read(browser, "yield").startswith("2 of 3 were wrong")
    browser.run(told.format(json.dumps(key), "null"))
    assert read(browser, "yield").startswith("1 of 2 were wrong")


# ---- with a server ----


@pytest.fixture
def server(shop):
    lines = np.arange(3000) + 2
    one = StubServer(report(shop, title="customers.csv", rows=lines, row_name="line", server="decisions"))
    yield one
    one.close()


def test_a_server_keeps_decisions_and_other_tabs_see_them(browser, server, shop):
    open_desk(browser, server.address)
    suspects = shop.suspects().tolist()
    browser.press("r", "Y", "s", "n")
    browser.write("Anna")
    browser.press("Enter")
    decisions = ["relabel", "keep", "skip", "skip"]
    wait_until(lambda: [server.decisions.get(row, {}).get("decision") for row in suspects[:4]] == decisions)
    assert server.decisions[suspects[0]]["label"] == shop.predicted[suspects[0]]
    assert server.decisions[suspects[1]]["label"] == shop.given[suspects[1]]
    assert server.decisions[suspects[3]]["note"] == "Anna"
    server.decide(suspects[5], "keep", shop.given[suspects[5]])
    server.decide(suspects[0], None, "")
    browser.wait_for("document.getElementById('yield').textContent.startsWith('0 of 2 were wrong')")
    browser.press("u")
    wait_until(lambda: server.decisions[suspects[3]]["decision"] is None)
    server.refuses = "row 1 is <b>locked</b>"
    browser.press("r")
    browser.wait_for(
        "document.getElementById('message').textContent == 'The server refused a decision: row 1 is <b>locked</b>'"
    )
    browser.open(server.address)
    browser.wait_for("document.getElementById('yield')?.textContent.startsWith('0 of 2 were wrong')")
    assert browser.run("localStorage.length") == 0  # the server has it all
    assert {one.split("?")[0] for one in browser.requests} == {server.address, f"{server.address}decisions"}


def test_a_review_opens_on_the_next_open_row_in_view(browser, server, shop):
    suspects = shop.suspects().tolist()
    for row in (suspects[0], suspects[1], suspects[3]):
        server.decide(row, "keep", shop.given[row])
    for width in (1280, 390):
        browser.open(server.address, width=width)
        browser.wait_for(READY)
        assert read_current(browser) == str(suspects[2] + 2)
        assert read(browser, "yield").startswith("0 of 3 were wrong")
        top = browser.run("document.querySelector('#head .eyebrow').getBoundingClientRect().top")
        assert 0 <= top < 850
    browser.press("Y")
    assert read_current(browser) == str(suspects[4] + 2)
    wait_until(lambda: len(server.decisions) == 4)
    assert {one["decision"] for one in server.decisions.values()} == {"keep"}


def test_what_is_decided_without_the_server_is_sent_when_it_is_back(browser, server, shop):
    open_desk(browser, server.address)
    suspects = shop.suspects().tolist()
    server.stop()
    browser.press("r", "Y", "r")
    browser.wait_for("document.getElementById('message').textContent.startsWith('The server is gone.')")
    browser.press("u")
    assert read(browser, "yield").startswith("1 of 2 were wrong")
    assert server.decisions == {}
    assert browser.run("localStorage.length") == 3
    server.start()
    wait_until(lambda: len(server.decisions) == 3)
    assert [server.decisions[row]["decision"] for row in suspects[:3]] == ["relabel", "keep", None]
    browser.wait_for("document.getElementById('message').hidden")
    assert browser.run("localStorage.length") == 0


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# ---- everybody ----


def test_a_screen_reader_finds_names(browser, file):
    for width in (1280, 390):
        open_desk(browser, file, width=width)
        tree = browser.send("Accessibility.getFullAXTree")["nodes"]
        roles = [one["role"]["value"] for one in tree if not one.get("ignored")]
        for role in ("banner", "navigation", "main", "contentinfo", "search", "table", "listbox", "option", "article"):
            assert role in roles, (role, width)
        for one in tree:
            if not one.get("ignored") and one["role"]["value"] in (
                "button",
                "textbox",
                "searchbox",
                "combobox",
                "listbox",
                "image",
                "region",
                "link",
            ):
                assert one["name"]["value"].strip(), one
        current = browser.run("document.getElementById('list').getAttribute('aria-activedescendant')")
        assert browser.run(f"document.getElementById('{current}').ariaSelected") == "true"


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_data_do_nothing(browser, hostile_file, width):
    path, audit = hostile_file
    open_desk(browser, path, width=width)
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert browser.run("document.querySelectorAll('img, iframe, i').length") == 0
    assert browser.run("document.querySelector('h1').textContent").startswith("</title><script>alert(5)</script>")
    assert "<script>alert(3)</script>" in read_values(browser)
    choose(browser, "words", "<img src=x onerror=")
    assert read_names(browser)
    choose(browser, "words", "")
    browser.press("r", "Y", "n")
    browser.write("<img src=x onerror=alert(20)>")
    browser.press("Enter")
    browser.run("document.getElementById('save').click()")
    saved = browser.take_download("decisions.csv")
    file = path.parent / "decisions.csv"
    file.write_bytes(saved)
    found = read_decisions(file)
    assert len(found) == 3
    assert found.check_fingerprint(audit.fingerprint) is None
    assert set(found.given.tolist()) | set(found.labels.tolist()) <= set(audit.classes.tolist())
    assert found.change(audit.given).shape == audit.given.shape
    browser.run("document.getElementById('load').focus()")
    browser.press("Enter")
    browser.choose_file(file)
    browser.wait_for("document.getElementById('message').textContent.startsWith('3 decisions loaded')")
    browser.run("document.getElementById('download').click()")
    _, *rows = take_csv(browser, "review-list.csv")
    assert len(rows) == len(audit.suspects())
    assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+@\t\r")]
    if width == 1280:
        browser.take_picture(SCREENSHOTS / "review-hostile.png", "#review")
    assert_quiet(browser, path)


def test_numbers_in_the_review_list_stay_numbers(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    audit = audit_labels(X, np.where((X[:, 0] > 0) ^ (rng.random(300) < 0.2), 1, -1))
    path = tmp_path / "signs.html"
    path.write_text(report(audit, title="signs", suspects=audit.suspects(budget=30)), "utf-8")
    open_desk(browser, path)
    browser.run("document.getElementById('download').click()")
    _, *rows = take_csv(browser, "review-list.csv")
    assert {row[1] for row in rows} | {row[2] for row in rows} == {"-1", "1"}
    assert [float(row[8]) for row in rows] == pytest.approx(X[audit.suspects(budget=30), 0], rel=1e-6)


def test_nothing_to_review_leaves_nothing_to_control(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3))
    path = tmp_path / "clean.html"
    path.write_text(report(audit_labels(X, X[:, 0] > 0), title="clean"), "utf-8")
    browser.open(path)
    assert_quiet(browser, path)
    assert browser.run("document.querySelectorAll('form, #suspects, #work').length") == 0


def test_without_a_script_the_first_rows_can_be_read(browser, file, shop):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(file)
        visible = "getComputedStyle(document.getElementById('{}')).display != 'none'"
        assert browser.run(visible.format("plain"))
        assert not browser.run(visible.format("work"))
        names = browser.run("[...document.querySelectorAll('#suspects tbody th')].map(one => one.textContent)")
        assert names == [str(row + 2) for row in shop.suspects()[:50]]
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_a_print_shows_a_table_with_what_was_decided(browser, file):
    open_desk(browser, file)
    browser.press("r", "Y", "n")
    browser.write("ask Anna")
    browser.press("Enter")
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        hidden = [f"getComputedStyle(document.querySelector('{one}')).display == 'none'" for one in ("#work", "nav")]
        assert all(map(browser.run, hidden))
        assert browser.run("getComputedStyle(document.getElementById('plain')).display") == "block"
        decided = browser.run(
            "[...document.querySelectorAll('#suspects tbody tr')].slice(0, 4).map(one => one.cells[6].textContent)"
        )
        assert decided[0].startswith("relabelled: ")
        assert decided[1:] == ["kept", "skipped (ask Anna)", ""]
        browser.take_picture(SCREENSHOTS / "review-print.png", "#review")
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")
