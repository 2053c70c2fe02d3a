"""The tables: built in, from a folder, and from OpenML, which a small server on this machine plays."""

import gzip
import hashlib
import json
import os
import re
import socket
import sys
import threading
import types
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pytest
from sklearn.datasets import _openml

from experiments import datasets
from experiments.datasets import KnownTable, Table, list_names, load

pd = pytest.importorskip("pandas", reason="tables from files and from OpenML are pandas frames")

DATA = Path(os.environ.get(datasets.FOLDER) or Path(__file__).parents[3] / "shared/data")


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)


def local(name):
    if not (DATA / f"{name}.csv").is_file():
        pytest.skip(f"{name}.csv is not at hand: set {datasets.FOLDER} to a folder that has it")
    return DATA / f"{name}.csv"


# Built in and from a folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plain.csv").write_text("n,flag,text,label\n1,True,a,0\n,False,,1\n3,True,b,1\n")
    (tmp_path / "both.csv").write_text("n,label_noisy,label\n1,1,0\n2,1,1\n")
    (tmp_path / "pair_train.csv").write_text("n,text,label_noisy,label\n1,a,1,0\n2,b,1,1\n")
    (tmp_path / "pair_test.csv").write_text("n,text,label\n5,b,1\n6,c,0\n")
    (tmp_path / "crowd_train_noisy.csv").write_text("n,label\n1,0\n2,1\n")
    (tmp_path / "crowd_test_clean.csv").write_text("n,label\n3,1\n")
    return tmp_path


def test_tables_from_a_folder(folder, monkeypatch):
    assert list_names() == ["cancer", "digits_large", "digits_odd", "xd6"]
    assert list_names(folder) == [*list_names(), "both", "crowd", "pair", "plain"]
    plain = load("plain", folder)
    assert [str(kind) for kind in plain.X.dtypes] == ["float64", "int64", "category"]
    assert plain.X.isna().sum().tolist() == [1, 0, 1]
    assert (plain.y.tolist(), plain.y_noisy, plain.X_test) == ([0, 1, 1], None, None)
    assert load("both", folder).y_noisy.tolist() == [1, 1]
    assert list(load("both", folder).X) == ["n"]
    monkeypatch.setenv(datasets.FOLDER, str(folder))
    pair = load("pair")
    assert (pair.y.tolist(), pair.y_noisy.tolist(), pair.y_test.tolist()) == ([0, 1], [1, 1], [1, 0])
    assert pair.X_test["text"].dtype == pair.X["text"].dtype
    crowd = load("crowd")
    assert (crowd.y, crowd.y_noisy.tolist(), crowd.y_test.tolist()) == (None, [0, 1], [1])
    (folder / "pair_test.csv").write_text("n,text,label\n5,1,1\n")
    with pytest.raises(ValueError, match="training and test file of 'pair' have different columns"):
        load("pair")


def test_the_loader_says_what_is_missing(folder, monkeypatch):
    both_ways = (
        "data set 'shoppers' needs online_shoppers.csv in a folder (name it, or set UNTWIST_DATA), "
        "or download=True (on the command line --download) to fetch it from OpenML"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(both_ways)}$"):
        load("shoppers")
    for download in (False, True):
        with pytest.raises(
            ValueError, match=r"'monks3' needs monks3.csv in a folder \(name it, or set UNTWIST_DATA\)$"
        ):
            load("monks3", download=download)
    with pytest.raises(ValueError, match=r"data folder .*nowhere does not exist"):
        load("adult", folder / "nowhere")
    with pytest.raises(
        ValueError, match=r"no data set 'adult' in .*: it has cancer, .*plain; download=True .* fetches it"
    ):
        load("adult", folder)
    with pytest.raises(ValueError, match=r"no data set 'other' in .*: it has cancer, .*plain$"):
        load("other", folder)
    (folder / "plain.csv").write_text("n,label\n1,yes\n")
    with pytest.raises(ValueError, match=r"plain\.csv: label must be 0 or 1 in every row"):
        load("plain", folder)
    (folder / "plain.csv").write_text("n,target\n1,1\n")
    with pytest.raises(ValueError, match=r"plain\.csv has no column 'label'"):
        load("plain", folder)
    (folder / "plain.csv").write_text("")
    with pytest.raises(ValueError, match=r"plain\.csv is not a CSV table"):
        load("plain", folder)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"^[^ ]*plain\.csv needs pandas to be read: pip install pandas"):
        load("plain", folder)
    assert load("cancer").X.shape == (569, 30)


def test_the_names_of_the_paper(folder):
    (folder / "pima.csv").write_text("n,label\n1,0\n2,1\n")
    (folder / "online_shoppers_train.csv").write_text("n,label\n1,0\n2,1\n")
    (folder / "online_shoppers_test.csv").write_text("n,label\n1,0\n")
    assert (load("diabetes", folder).name, load("pima", folder).name) == ("diabetes", "pima")
    assert load("diabetes", folder).digest == load("pima", folder).digest
    assert (load("shoppers", folder).name, len(load("shoppers", folder).X_test)) == ("shoppers", 1)
    assert not {"diabetes", "shoppers"} & set(list_names(folder))
    (folder / "diabetes.csv").write_text("n,label\n7,1\n")  # a file of that very name is what was asked for
    assert load("diabetes", folder).y.tolist() == [1]
    assert list_names(folder).count("diabetes") == 1


def test_xd6_is_built_in(folder):
    (folder / "xd6.csv").write_text("n,label\n1,0\n2,1\n")
    table = load("xd6", folder)
    assert (table.X.shape, table.X.dtype, table.y.dtype) == ((973, 9), np.int64, np.int64)
    assert table.y.sum() == 322
    rows, times = np.unique(table.X, axis=0, return_counts=True)
    assert (len(rows), np.bincount(times).tolist()) == (512, [0, 51, 461])
    assert list_names(folder).count("xd6") == 1


def test_xd6_has_the_rows_of_the_file():
    there = np.loadtxt(local("xd6"), delimiter=",", skiprows=1, dtype=int)
    here = load("xd6")
    assert sorted(map(tuple, np.column_stack([here.X, here.y]))) == sorted(map(tuple, there))


# The digest


def test_the_digest_is_of_the_content_alone():
    X = pd.DataFrame({"n": [1.0, np.nan, 0.0], "text": ["a", None, "b"]})
    table = Table("one", X, np.array([0, 1, 1]))
    assert re.fullmatch("[0-9a-f]{12}", table.digest)
    other = X.set_axis(["b", "a"], axis=1).astype({"a": pd.CategoricalDtype(["z", "b", "a"])})
    other.loc[2, "b"] = -0.0
    other.loc[1, "b"] = np.frombuffer(b"\x01\0\0\0\0\0\xf8\xff", "<f8")[0]  # another NaN
    assert Table("two", other, table.y).digest == table.digest
    assert Table("x", np.eye(3, dtype=int), None).digest == Table("x", pd.DataFrame(np.eye(3)), None).digest
    y = table.y
    changed = [
        replace(table, y=1 - y),
        replace(table, y=None),
        replace(table, y=None, y_noisy=y),
        replace(table, y_noisy=y),
        replace(table, X_test=X, y_test=y),
        replace(table, X=X[["text", "n"]]),
        replace(table, X=X.assign(n=[1.0, 2.0, 0.0])),
        replace(table, X=X.assign(text=["a", "", "b"])),
        replace(table, X=X.assign(text=["a", "-", "b"])),
        replace(table, X=X.assign(text=["a", "b", None])),
    ]
    assert len({table.digest, *(one.digest for one in changed)}) == len(changed) + 1


@pytest.mark.parametrize("name", datasets.OPENML)
def test_what_is_known_of_openml_holds_for_the_files(name):
    table, known = load(name, local(name).parent), datasets.OPENML[name]
    assert (*table.X.shape, table.y.sum(), table.digest) == known[2:6]


# OpenML

ARFF = """% a comment
@RELATION made
@ATTRIBUTE n REAL
@ATTRIBUTE code {1,2,10}
@ATTRIBUTE flag {TRUE,FALSE}
@ATTRIBUTE colour {red,'light blue'}
@ATTRIBUTE class {no,YES}
@DATA
1.5,10,TRUE,red,YES
?,2,FALSE,'light blue',no
0.1,1,TRUE,?,no
-3,1,FALSE,red,YES
4,2,FALSE,red,no
"""
CSV = """n,code,flag,colour,label
1.5,10,True,red,1
,2,False,light blue,0
0.1,1,True,,0
-3,1,False,red,1
4,2,False,red,0
"""
COLUMNS = {"n": "numeric", "code": "nominal", "flag": "nominal", "colour": "nominal", "class": "nominal"}
INFO, FEATURES, QUALITIES = (f"/api/v1/json/data/{part}77" for part in ("", "features/", "qualities/"))
FILE = "/data/v1/download/5/made.arff"


def answers(arff=ARFF, columns=COLUMNS):
    """What OpenML answers, by path."""
    plain = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    features = [
        {"index": str(j), "name": name, "data_type": kind, "is_target": str(name == "class").lower(), **plain}
        for j, (name, kind) in enumerate(columns.items())
    ]
    info = {"id": "77", "name": "made", "version": "1", "description": "made up", "format": "ARFF", "status": "active"}
    info |= {"url": f"https://www.openml.org{FILE}", "md5_checksum": hashlib.md5(arff.encode()).hexdigest()}
    return {
        INFO: json.dumps({"data_set_description": info}).encode(),
        FEATURES: json.dumps({"data_features": {"feature": features}}).encode(),
        QUALITIES: json.dumps({"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "5"}]}}).encode(),
        FILE: arff.encode(),
    }


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        openml = self.server.openml
        openml.requests.append(self.path)
        answer = openml.answers.get(self.path, 404)
        if answer == "silence":
            openml.over.wait(5)
        elif isinstance(answer, int):
            self.send_error(answer)
        else:
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(answer if answer.startswith(b"\x1f\x8b") else gzip.compress(answer))

    def log_message(self, *_):
        pass


class OpenML:
    """A server of one table, with the requests it got."""

    def __init__(self):
        self.answers, self.requests, self.over = answers(), [], threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.openml = self
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def open(self, request):
        """In the place of `urlopen`: the same request, but to here."""
        here = f"http://127.0.0.1:{self.server.server_port}{urlparse(request.full_url).path}"
        return build_opener(ProxyHandler({})).open(Request(here, headers=dict(request.header_items())))

    def stop(self):
        self.over.set()
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()


@pytest.fixture
def openml(monkeypatch, tmp_path):
    server = OpenML()
    (tmp_path / "twin.csv").write_text(CSV)
    known = KnownTable(77, "yes", 5, 4, 2, load("twin", tmp_path).digest)
    monkeypatch.setattr(datasets, "OPENML", {"made": known})
    monkeypatch.setattr(datasets, "ALIASES", {"papers": "made"})
    monkeypatch.setattr(_openml, "urlopen", server.open)
    monkeypatch.setattr(_openml, "time", types.SimpleNamespace(sleep=lambda _: None))  # between retries
    yield server
    server.stop()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def expect(monkeypatch, **changes):
    monkeypatch.setitem(datasets.OPENML, "made", datasets.OPENML["made"]._replace(**changes))


def test_a_table_is_downloaded_once(openml, cache):
    table = load("papers", download=True, cache=cache)
    assert table.name == "papers"
    assert [str(kind) for kind in table.X.dtypes] == ["float64", "int64", "int64", "category"]
    assert table.X["code"].tolist() == [10, 2, 1, 1, 2]
    assert table.X["flag"].tolist() == [1, 0, 1, 0, 0]
    assert table.X["colour"].tolist()[:2] == ["red", "light blue"]
    assert table.X.isna().sum().tolist() == [1, 0, 0, 1]
    assert (table.y.tolist(), table.y.dtype) == ([1, 0, 0, 1, 0], np.int64)
    assert openml.requests == [INFO, FEATURES, QUALITIES, FILE]
    openml.stop()
    assert load("made", download=True, cache=cache).digest == table.digest
    assert len(openml.requests) == 4


def test_nothing_is_downloaded_unless_asked_for(openml, folder, cache, monkeypatch):
    with pytest.raises(
        ValueError, match=r"or download=True \(on the command line --download\) to fetch it from OpenML$"
    ):
        load("made", cache=cache)
    with pytest.raises(ValueError, match=r"download=True .* fetches it from OpenML"):
        load("made", folder)
    (folder / "made.csv").write_text("n,label\n1,1\n")
    assert load("papers", folder, download=True).y.tolist() == [1]
    assert load("cancer", download=True).X.shape == (569, 30)
    with pytest.raises(ValueError, match="no data set 'other'"):
        load("other", folder, download=True)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"'made' \(OpenML id 77\) needs pandas to be read: pip install pandas"):
        load("made", download=True, cache=cache)
    assert openml.requests == []
    assert not cache.exists()


def test_scikit_learns_own_cache_is_the_default(openml, tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    load("made", download=True)
    assert len(list((tmp_path / "home").rglob("*.gz"))) == 4


def test_a_folder_without_the_file_leads_to_the_download(openml, folder, cache):
    assert load("made", folder, download=True, cache=cache).y.sum() == 2


@pytest.mark.parametrize(
    "change", [{"rows": 6}, {"columns": 5}, {"positives": 3}, {"positive": "maybe"}, {"target": "flag"}]
)
def test_another_shape_is_refused(openml, cache, monkeypatch, change):
    expect(monkeypatch, **change)
    words = r"'made' \(OpenML id 77\) should have \d rows, \d columns and \d positives but came with 5 rows, 4 columns"
    with pytest.raises(ValueError, match=words):
        load("made", download=True, cache=cache)


def test_another_content_is_warned_of(openml, cache):
    openml.answers = answers(ARFF.replace("-3,1", "-3,2"))
    with pytest.warns(UserWarning, match=r"'made' .*digest .*results may differ from the published ones") as caught:
        table = load("made", download=True, cache=cache)
    assert caught[0].filename == __file__
    assert table.X["code"].tolist() == [10, 2, 1, 2, 2]


@pytest.mark.parametrize("labels", ["TRUE FALSE", "true false", "True False", "1 0", "1.0 0.0"])
@pytest.mark.parametrize("kind", ["nominal", "numeric", "string"])
def test_true_can_be_said_in_many_ways(openml, cache, monkeypatch, labels, kind):
    true, false = labels.split()
    openml.answers = answers(ARFF.replace(",YES", f",{true}").replace(",no", f",{false}"), COLUMNS | {"class": kind})
    expect(monkeypatch, positive="1")
    assert load("made", download=True, cache=cache).y.tolist() == [1, 0, 0, 1, 0]


def refused(cache, words="could not"):
    with pytest.raises(ValueError, match=words) as caught:
        load("made", download=True, cache=cache)
    text = str(caught.value)
    assert type(caught.value) is ValueError
    assert text.startswith("data set 'made' (OpenML id 77) could not be downloaded (")
    assert text.endswith("try again, or put made.csv in a folder and name that")
    assert "\n" not in text


WRONG = {
    **{str(status): status for status in (404, 412, 500)},
    **{text: text.encode() for text in ("", "<html>welcome to this hotel</html>", "{}", "[1]", "null")},
    "cut": gzip.compress(ARFF.encode())[:30],
    "other table": ARFF.replace("red", "green").encode(),
}


@pytest.mark.parametrize("path", [INFO, FEATURES, FILE])
@pytest.mark.parametrize("answer", WRONG)
def test_a_wrong_answer_gets_one_sentence_and_leaves_no_trace(openml, cache, path, answer):
    right, openml.answers[path] = openml.answers[path], WRONG[answer]
    refused(cache)
    openml.answers[path] = right
    assert load("made", download=True, cache=cache).y.sum() == 2


def test_a_server_that_is_gone_or_silent(openml, cache, monkeypatch):
    right = openml.answers
    monkeypatch.setattr(datasets, "TIMEOUT", 0.05)
    openml.answers = dict.fromkeys(right, "silence")
    refused(cache, "timed out")
    assert socket.getdefaulttimeout() is None
    openml.stop()
    refused(cache, "refused")


def test_a_cache_that_cannot_be_written(openml, cache):
    cache.write_text("a file")
    refused(cache, "Exists")


@pytest.mark.parametrize("path", [INFO, FEATURES, QUALITIES, FILE])
@pytest.mark.parametrize("damage", ["cut", "other bytes", "empty", "other content"])
def test_a_damaged_cache_is_renewed(openml, cache, path, damage):
    digest = load("made", download=True, cache=cache).digest
    (file,) = (file for file in cache.rglob("*.gz") if file.as_posix().endswith(f"{path}.gz"))
    whole = file.read_bytes()
    other = gzip.compress(b"[]")
    file.write_bytes(
        {"cut": whole[: len(whole) // 2], "other bytes": b"?", "empty": b"", "other content": other}[damage]
    )
    if damage == "other content" and path != FILE:  # of which scikit-learn knows nothing: refused once
        refused(cache)
    assert load("made", download=True, cache=cache).digest == digest
    openml.stop()
    assert load("made", download=True, cache=cache).digest == digest


def test_a_damaged_cache_without_a_server_is_an_error(openml, cache):
    load("made", download=True, cache=cache)
    openml.stop()
    for file in cache.rglob("*.gz"):
        file.write_bytes(file.read_bytes()[:20])
    refused(cache, "refused")
