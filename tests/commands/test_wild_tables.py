"""Tables as people have them: each is audited like its clean twin, which a machine could have written.

The tolerance is nothing at all: the same rows are read from both, number by number, so that the same labels are suspect
with the same probabilities, to the last bit.
"""

import functools
import json
import zipfile

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.prepared_tables import prepare_frame
from untwist import UntwistClassifier
from untwist.audit import audit_labels
from untwist.commands import sheets
from untwist.twisters import ClassNoise

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")
pytestmark = pytest.mark.usefixtures("few_components")
N = 600


@functools.cache
def make_clean():
    """Amounts, shares, dates, towns and flags; the label follows amount, share and date, and a sixth is wrong."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "amount": rng.gamma(2.0, 1500.0, N).round(2),
            "share": rng.integers(0, 101, N) / 100,
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1200, N), "D"),
            "town": rng.choice(["Köln", "Besançon", "Málaga", "York"], N),
            "member": rng.choice(["Yes", "No"], N),
            "visits": rng.integers(0, 2000, N),
        }
    )
    score = (frame["amount"] > 2500).astype(int) + (frame["share"] > 0.5) + (frame["since"] > "2020-09-01")
    truth = np.where(score >= 2, "yes", "no")
    return frame.assign(churn=ClassNoise(1 / 6).twist(None, truth, 0)[1])


def write_clean(frame, path):
    frame.assign(since=frame["since"].dt.strftime("%Y-%m-%d")).to_csv(path, index=False)


def to_iso(frame):
    return frame.assign(since=frame["since"].dt.strftime("%Y-%m-%d"))


def to_german(frame, **columns):
    """Numbers as a German Excel writes them."""
    swap = str.maketrans(",.", ".,")
    amount = [f"{one:,.2f}".translate(swap) for one in frame["amount"]]
    return frame.assign(
        amount=amount,
        share=[str(one).translate(swap) for one in frame["share"]],
        **({"since": frame["since"].dt.strftime("%d.%m.%Y")} | columns),
    )


def write_semicolons(frame, path):
    to_german(frame).to_csv(path, index=False, sep=";")


def write_sep_line(frame, path):
    text = "sep=;\r\n" + to_german(frame).to_csv(index=False, sep=";", lineterminator="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())


def write_encoded(frame, path, encoding):
    path.write_bytes(to_german(frame).to_csv(index=False, sep=";").encode(encoding))


def write_dates(frame, path, form):
    frame.assign(since=frame["since"].dt.strftime(form)).to_csv(path, index=False)


def write_amounts(frame, path, write):
    to_iso(frame.assign(amount=[write(one) for one in frame["amount"]])).to_csv(path, index=False)


def write_percent(frame, path):
    to_iso(frame.assign(share=[f"{100 * one:.0f} %" for one in frame["share"]])).to_csv(path, index=False)


def write_labels_by_case(frame, path):
    wild = frame["churn"].to_numpy().astype(object)
    wild[::9] = [f" {one.upper()} " for one in wild[::9]]
    wild[1::11] = [one.capitalize() for one in wild[1::11]]
    to_iso(frame.assign(churn=wild)).to_csv(path, index=False)


def write_ids(frame, path):
    rng = np.random.default_rng(1)
    wild = to_iso(frame)
    wild.insert(0, "lfd. Nr.", np.arange(1, N + 1))
    wild.insert(1, "count", np.arange(1000, 1000 + 5 * N, 5))
    wild["OrderNo"] = rng.permutation(10 * N)[:N]
    wild["mail"] = [f"p{i % 200}@example.org" for i in range(N)]
    wild["uuid"] = [f"{i:08x}-0000-4000-8000-00000000abcd" for i in range(N)]
    wild["digest"] = [f"{i:06d}abcdef" + "0a" * 10 for i in range(N)]
    wild.to_csv(path, index=False)


def write_xlsx(frame, path):
    pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        frame.to_excel(book, index=False, sheet_name="Data")
        pd.DataFrame({"note": ["nothing"]}).to_excel(book, index=False, sheet_name="Notes")


def write_ods(frame, path):
    pytest.importorskip("odf")
    pytest.importorskip("python_calamine")
    frame.to_excel(path, index=False, engine="odf")


def write_xlsx_of_text(frame, path):
    write_xlsx(to_german(frame).astype(str), path)


def add_question_marks(frame, word):
    visits = frame["visits"].astype(object)
    visits[np.random.default_rng(2).random(N) < 0.2] = word
    return frame.assign(visits=visits)


#: By name: the end of the file's name, what writes the wild table, and what makes its twin of the clean one.
WILD = {
    "semicolons and decimal commas": (".csv", write_semicolons),
    "a mark and sep=;": (".csv", write_sep_line),
    "Latin-1": (".csv", functools.partial(write_encoded, encoding="latin-1")),
    "UTF-16": (".csv", functools.partial(write_encoded, encoding="utf-16")),
    "UTF-16 without a mark": (".csv", functools.partial(write_encoded, encoding="utf-16-le")),
    "xlsx": (".xlsx", write_xlsx),
    "xlsx, all of it text": (".xlsx", write_xlsx_of_text),
    "ods": (".ods", write_ods),
    "dates, day first": (".csv", functools.partial(write_dates, form="%d.%m.%Y")),
    "dates with slashes, day first": (".csv", functools.partial(write_dates, form="%d/%m/%Y 00:00")),
    "dates, month first": (".csv", functools.partial(write_dates, form="%m/%d/%y")),
    "dates with names of months": (".csv", functools.partial(write_dates, form="%d %b %Y")),
    "thousands with commas": (".csv", functools.partial(write_amounts, write=lambda one: f"{one:,.2f}")),
    "thousands with apostrophes": (
        ".csv",
        functools.partial(write_amounts, write=lambda one: f"{one:,.2f}".replace(",", "'")),
    ),
    "thousands with blanks": (
        ".csv",
        functools.partial(write_amounts, write=lambda one: f"{one:,.2f}".translate(str.maketrans(",.", "\u00a0,"))),
    ),
    "dollars": (".csv", functools.partial(write_amounts, write=lambda one: f"${one:,.2f}")),
    "euros": (".csv", functools.partial(write_amounts, write=lambda one: f"{one:.2f} €".replace(".", ","))),
    "percent": (".csv", write_percent),
    "question marks": (".csv", lambda frame, path: write_clean(add_question_marks(frame, "?"), path)),
    "words for nothing": (".csv", lambda frame, path: write_clean(add_question_marks(frame, "k.A."), path)),
    "labels by case": (".csv", write_labels_by_case),
    "ids": (".csv", write_ids),
}
TWINS = {"question marks": "empty cells", "words for nothing": "empty cells"}


@functools.cache
def audit_twin(name, folder):
    """The clean twin, prepared and audited."""
    frame = make_clean()
    path = folder / f"{name}.csv"
    write_clean(frame if name == "clean" else add_question_marks(frame, ""), path)
    return audit(path)


def audit(path):
    table = prepare_frame(sheets.read(path).frame, "churn")
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(table.X, table.y)
    return table, audit_labels(table.X, table.y, model)


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    return tmp_path_factory.mktemp("twins")


@pytest.mark.parametrize("name", WILD)
@pytest.mark.thinned(4)
def test_a_wild_table_is_audited_like_its_clean_twin(name, tmp_path, twins):
    ending, write = WILD[name]
    path = tmp_path / f"wild{ending}"
    write(make_clean(), path)
    clean, expected = audit_twin(TWINS.get(name, "clean"), twins)
    table, found = audit(path)
    pd.testing.assert_frame_equal(table.X, clean.X, check_dtype=False, check_categorical=False, rtol=0, atol=0)
    np.testing.assert_array_equal(table.y, clean.y)
    assert len(expected.suspects()) > 10
    np.testing.assert_array_equal(found.suspects(), expected.suspects())
    np.testing.assert_array_equal(found.wrong, expected.wrong)


@pytest.mark.parametrize("name", ["semicolons and decimal commas", "a mark and sep=;", "dates, month first", "xlsx"])
@pytest.mark.thinned(2)
def test_new_rows_are_read_as_in_training_though_they_would_not_decide_it(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ending, write = WILD[name]
    frame = make_clean()
    write(frame, tmp_path / f"wild{ending}")
    status, _, err = untwist(capsys, "train", f"wild{ending}", "--label", "churn", "-o", "m.untwist")
    assert status == 0, err
    status, _, err = untwist(capsys, "predict", "m.untwist", f"wild{ending}", "-o", "all.csv")
    assert status == 0, err
    expected = pd.read_csv("all.csv")
    # Of these few rows no day is after the 12th, and amounts may be thousands.
    few = frame[(frame["since"].dt.day <= 12)].head(5).index
    write(frame.loc[few], tmp_path / f"few{ending}")
    assert untwist(capsys, "predict", "m.untwist", f"few{ending}", "-o", "few-out.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("few-out.csv"), expected.loc[few].reset_index(drop=True))


@pytest.mark.slow
def test_what_was_done_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_labels_by_case(make_clean(), tmp_path / "labels.csv")
    status, out, err = untwist(capsys, "audit", "labels.csv", "--label", "churn")
    assert status == 0
    assert "churn: 'NO', 'No' read as 'no' (" in err
    assert "rows; --label-as-is keeps them apart)" in err
    assert "since is 20" in out or "since" not in out  # Dates are shown as dates.
    status, out, err = untwist(capsys, "train", "labels.csv", "--label", "churn", "--label-as-is")
    assert "6 classes" in err
    write_ids(make_clean(), tmp_path / "ids.csv")
    err = untwist(capsys, "train", "ids.csv", "--label", "churn", "--keep", "count")[2]
    assert "lfd. Nr.: looks like an id; left out (--keep 'lfd. Nr.' uses it)" in err
    assert "OrderNo: looks like an id; left out" in err
    assert "mail: e-mail addresses, 200 different ones in 600 rows; left out" in err
    assert "uuid: looks like an id; left out" in err
    assert "digest: hashes, 600 different ones in 600 rows; left out" in err
    assert f"{N} rows, 7 columns" in err
    write_xlsx(make_clean(), tmp_path / "book.xlsx")
    err = untwist(capsys, "train", "book.xlsx", "--label", "churn")[2]
    assert "book.xlsx: the first of 2 sheets, 'Data' (--sheet decides)" in err
    status, _, err = untwist(capsys, "train", "book.xlsx", "--label", "churn", "--sheet", "Dta")
    assert status == 1
    assert "it has no sheet 'Dta': there are 'Data', 'Notes'" in err
    assert "is no spreadsheet" in untwist(capsys, "train", "ids.csv", "--label", "churn", "--sheet", "Data")[2]


def test_a_column_is_no_id_because_its_numbers_are_all_different():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "weight": rng.normal(size=200),
            "income": rng.permutation(100_000)[:200],
            "code": rng.integers(0, 30, 200),
            "key": np.linspace(0, 1, 200),
            "year": np.resize([2019, 2020, 2021], 200),
            "y": np.resize(["a", "b"], 200),
        }
    )
    assert list(prepare_frame(frame, "y").X) == list(frame.columns[:-1])
    sklearn_data = pytest.importorskip("sklearn.datasets")
    for load in (
        sklearn_data.load_breast_cancer,
        sklearn_data.load_iris,
        sklearn_data.load_wine,
        sklearn_data.load_digits,
    ):
        table = load(as_frame=True)
        X = prepare_frame(table.frame, "target").X
        assert X.shape[1] + (table.data.nunique() == 0).sum() == table.data.shape[1]


def test_a_serial_number_with_gaps_where_labels_are_missing_is_one():
    frame = pd.DataFrame({"serial": np.arange(200), "x": np.arange(200) % 7, "y": np.resize(["a", "b", None], 200)})
    table = prepare_frame(frame, "y")
    assert list(table.X) == ["x"]


def test_lines_are_those_of_the_file_whatever_comes_before(tmp_path):
    write_sep_line(make_clean(), tmp_path / "s.csv")
    sheet = sheets.read(tmp_path / "s.csv")
    assert sheet.lines[:2].tolist() == [3, 4]
    content, _ = sheet.replace_labels("churn", np.array([1]), ["maybe"])
    before, after = (tmp_path / "s.csv").read_bytes(), content
    assert after.startswith(b"\xef\xbb\xbfsep=;")
    changed = [
        i for i, pair in enumerate(zip(before.splitlines(), after.splitlines(), strict=True)) if len(set(pair)) > 1
    ]
    assert changed == [3]
    write_xlsx(make_clean(), tmp_path / "book.xlsx")
    sheet = sheets.read(tmp_path / "book.xlsx")
    assert sheet.lines[:2].tolist() == [2, 3]
    assert sheet.replace_labels("churn", np.array([0]), ["maybe"])[0].splitlines()[1].endswith(b",maybe")


# How a table will be read


def test_inspect_tells_how_each_column_will_be_read(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = make_clean()
    frame = to_german(
        frame, since=frame["since"].dt.strftime("%d/%m/%Y"), visits=add_question_marks(frame, "?")["visits"]
    )
    frame.insert(0, "nr", np.arange(N))
    frame["odd"] = np.resize(["1/2/2021", "3/4/2021"], N)
    frame.to_csv("t.csv", index=False, sep=";")
    status, out, _ = untwist(capsys, "inspect", "t.csv", "--label", "churn", "--json")
    assert status == 0
    found = {one["name"]: one for one in json.loads(out)["columns"]}
    kinds = {name: one["kind"] for name, one in found.items()}
    assert kinds == {
        "nr": "left out",
        "amount": "numbers",
        "share": "numbers",
        "since": "dates, day first",
        "town": "categories",
        "member": "categories",
        "visits": "numbers",
        "churn": "label",
        "odd": "dates, day first",
    }
    assert 0.1 < found["visits"]["missing"] < 0.3
    assert found["nr"]["note"] == "looks like an id; left out (--keep 'nr' uses it)"
    assert [name for name, one in found.items() if one["is_ambiguous"]] == ["odd"]
    assert found["town"]["distinct"] == frame["town"].nunique()
    assert found["member"]["examples"] == frame["member"].drop_duplicates().tolist()
    status, out, _ = untwist(capsys, "inspect", "t.csv", "--dates", "month-first")
    assert status == 0
    assert "t.csv: 600 rows, 9 columns, separator ';', utf-8" in out
    assert "odd: dates, month first" in out
    assert "since: text: dates, some" not in out
    assert "Nothing decides how to read odd" in untwist(capsys, "inspect", "t.csv")[1]
    assert untwist(capsys, "inspect", "t.csv", "--label", "chrun")[0] == 1
    assert untwist(capsys, "inspect", "none.csv")[0] == 1


# Spreadsheets that mean harm


def make_bomb(path, sheet, times=1):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
            for _ in range(times):
                file.write(sheet)


def test_a_spreadsheet_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("python_calamine")
    from untwist.commands import workbooks

    monkeypatch.setattr(workbooks, "LEAST_UNPACKED", 1 << 20)
    make_bomb(tmp_path / "bomb.xlsx", b" " * (1 << 20), times=8)
    assert (tmp_path / "bomb.xlsx").stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"bomb.xlsx cannot be read as a table: it unpacks to more than \d MB"):
        sheets.read(tmp_path / "bomb.xlsx")


def test_a_spreadsheet_whose_cells_are_far_apart_is_refused(tmp_path):
    pytest.importorskip("python_calamine")
    make_bomb(tmp_path / "far.xlsx", b'<row r="1"><c r="A1"/></row><row r="1048576"><c s="1" r="XFD1048576"/></row>')
    with pytest.raises(ValueError, match="it spans 17,179,869,184 cells"):
        sheets.read(tmp_path / "far.xlsx")
    row = b'<table:table-row table:number-rows-repeated="1000000"><table:table-cell office:value-type="float" '
    row += b'office:value="1" table:number-columns-repeated="1000"></table:table-cell></table:table-row>'
    with zipfile.ZipFile(tmp_path / "far.ods", "w") as archive:
        archive.writestr("content.xml", row)
    with pytest.raises(ValueError, match="it spans 1,000,000,000 cells"):
        sheets.read(tmp_path / "far.ods")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"no archive at all"])
def test_a_broken_spreadsheet_gets_a_sentence(tmp_path, content):
    pytest.importorskip("python_calamine")
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(ValueError, match=r"t.xlsx cannot be read as a table"):
        sheets.read(tmp_path / "t.xlsx")


def test_a_spreadsheet_without_its_reader_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    make_bomb(tmp_path / "t.xlsx", b"")
    status, _, err = untwist(capsys, "train", tmp_path / "t.xlsx", "--label", "y")
    assert status == 1
    assert 'reading spreadsheets needs python-calamine: pip install "untwist[cli]"' in err
