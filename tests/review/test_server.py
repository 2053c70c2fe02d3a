"""The server of a review: who is answered, who is not, and what a broken client can do."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.patience import PATIENCE
from untwist.audit import read_decisions
from untwist.review import Ledger, ReviewServer, server

PAGE = """<!doctype html><html><head><meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="default-src 'none'; connect-src 'self'"></head>
<body>Grüße</body></html>"""
GIVEN = dict.fromkeys(range(100), "no")


@pytest.fixture
def served(tmp_path):
    """A running server."""
    ledger = Ledger(tmp_path / "d.csv", f"{1:016x}-{2:016x}", GIVEN, dict.fromkeys(GIVEN, ""))
    with ReviewServer(PAGE, ledger) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(served, method="GET", path="", body=None, *, token=None, host=None, **headers):
    """Send a request; returns status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", served.server_port, timeout=PATIENCE)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    fields["Host"] = host or f"127.0.0.1:{served.server_port}"
    connection.request(method, f"/{served.token if token is None else token}/{path}", body, fields)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def post(served, decision, **headers):
    headers = {"Content_Type": "application/json"} | headers
    body = decision if isinstance(decision, (bytes, str)) else json.dumps(decision)
    status, _, content = ask(served, "POST", "decisions", body, **headers)
    return status, json.loads(content) if status == 200 else content.decode()


def test_the_page_is_served_with_what_keeps_it_to_itself(served):
    status, headers, content = ask(served)
    assert (status, content.decode()) == (200, PAGE)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; connect-src 'self'; frame-ancestors 'none'"
    assert "Server" not in headers
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert served.server_address[0] == "127.0.0.1"
    assert len(served.token) >= 43


def test_decisions_are_taken_undone_and_told(served):
    status, answer = post(served, {"row": 7, "decision": "relabel", "label": "yes", "note": "<b>", "since": 0})
    assert status == 200
    (one,) = answer["decisions"]
    assert one.items() >= {"row": 7, "decision": "relabel", "label": "yes", "note": "<b>"}.items()
    assert read_decisions(served.ledger.path).labels.tolist() == ["yes"]
    status, news = post(served, {"row": 7, "decision": None, "since": answer["version"]})
    assert [(one["row"], one["decision"]) for one in news["decisions"]] == [(7, None)]
    assert len(read_decisions(served.ledger.path)) == 0
    status, _, content = ask(served, path=f"decisions?since={answer['version']}")
    assert status == 200
    assert json.loads(content) == news


@pytest.mark.parametrize(
    "request_",
    [
        {"token": "x" * 43},
        {"token": ""},
        {"token": "%s"},
        {"path": "etc/passwd"},
        {"path": "../"},
        {"path": "decisions/"},
        {"host": "evil.example"},
        {"host": "evil.example:80"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_strangers_learn_nothing(served, request_, method):
    body = json.dumps({"row": 1, "decision": "keep"}) if method == "POST" else None
    status, _, content = ask(served, method, body=body, Content_Type="application/json", **request_)
    assert (status, content) == (404, b"")
    assert served.ledger.list_changes(0)["decisions"] == []


def test_localhost_is_this_machine_too(served):
    host = f"localhost:{served.server_port}"
    assert ask(served, host=host, Origin=f"http://{host}")[0] == 200
    assert ask(served, host=host, Origin=f"http://127.0.0.1:{served.server_port}")[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        {"Content_Type": ""},
    ],
    ids=str,
)
def test_other_sites_cannot_decide(served, headers):
    status, _ = post(served, {"row": 1, "decision": "keep"}, **headers)
    assert status in (403, 415)
    assert not served.ledger.path.exists()


def test_a_page_of_this_server_can(served):
    origin = f"http://127.0.0.1:{served.server_port}"
    kind = "application/json; charset=utf-8"
    assert (
        post(served, {"row": 1, "decision": "keep"}, Origin=origin, Sec_Fetch_Site="same-origin", Content_Type=kind)[0]
        == 200
    )


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "HEAD", "PATCH", "TRACE"])
def test_other_methods_are_refused_without_a_word(served, method):
    status, headers, content = ask(served, method, "decisions", Origin="http://evil.example")
    assert (status, content) == (501, b"")
    assert not [name for name in headers if name.lower().startswith(("access-control", "server", "allow"))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", 400),
        ("{", 400),
        ("[]", 400),
        ("7", 400),
        (b"\xff", 400),
        ("[" * 20_000, 400),
        ("{}", 400),
        ('{"row": 1}', 400),
        ('{"row": 100, "decision": "keep"}', 400),
        ('{"row": -1, "decision": "keep"}', 400),
        ('{"row": 1.5, "decision": "keep"}', 400),
        ('{"row": 1e999, "decision": "keep"}', 400),
        ('{"row": 1, "decision": "burn"}', 400),
        ('{"row": 1, "decision": "relabel"}', 400),
        ('{"row": 1, "decision": "relabel", "label": {}}', 400),
        (json.dumps({"row": 1, "decision": "keep", "note": "x" * 70_000}), 413),
    ],
    ids=lambda value: str(value)[:50],
)
def test_bodies_that_make_no_sense_are_refused(served, body, expected):
    assert post(served, body)[0] == expected
    assert not served.ledger.path.exists()


def test_a_length_is_asked_for(served):
    def speak(text):
        with socket.create_connection(("127.0.0.1", served.server_port), timeout=PATIENCE) as talk:
            talk.sendall(text.encode())
            return talk.recv(1000).split(b"\r\n")[0]

    head = f"POST /{served.token}/decisions HTTP/1.1\r\nHost: 127.0.0.1:{served.server_port}\r\n"
    head += "Content-Type: application/json\r\n"
    assert b"411" in speak(f"{head}\r\n")
    assert b"411" in speak(f"{head}Transfer-Encoding: chunked\r\n\r\n")
    assert b"411" in speak(f"{head}Content-Length: -5\r\n\r\n")
    assert b"413" in speak(f"{head}Content-Length: 99999999999\r\n\r\n")
    assert speak("nonsense\r\n\r\n") == b""
    assert b"404" in speak(
        f"GET /{served.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{served.server_port}\r\nHost: evil\r\n\r\n"
    )


def test_a_client_that_says_nothing_keeps_nobody_waiting(served, monkeypatch):
    silent = [socket.create_connection(("127.0.0.1", served.server_port)) for _ in range(5)]
    half = socket.create_connection(("127.0.0.1", served.server_port))
    half.sendall(b"POST /" + served.token.encode())
    assert ask(served)[0] == 200
    for one in (*silent, half):
        one.close()
    assert ask(served)[0] == 200
    assert server._Handler.timeout == server.PATIENCE < 60


def test_many_clients_at_once_lose_nothing(served):
    def work(row):
        return post(served, {"row": row, "decision": "keep", "note": str(row)})[0]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(100))) == {200}
    found = read_decisions(served.ledger.path)
    assert sorted(found.rows.tolist()) == list(range(100))
    assert found.notes.tolist() == [str(row) for row in found.rows]
    versions = [one["version"] for one in served.ledger.list_changes(0)["decisions"]]
    assert len(set(versions)) == 100


def test_what_was_not_written_is_not_said_to_be(served):
    served.ledger.path.write_text("somebody else's")
    status, answer = post(served, {"row": 1, "decision": "keep"})
    assert status == 500
    assert "changed by another program" in answer


def test_a_page_without_a_policy_is_not_served(tmp_path):
    with pytest.raises(ValueError, match="policy"):
        ReviewServer("<html>", Ledger(tmp_path / "d.csv", "", GIVEN, {}))
