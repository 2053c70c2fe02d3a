"""The server of a review: who is answered, who is not, and what a broken client can do."""

import errno
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from socketserver import TCPServer
from urllib.parse import urlsplit

import pytest

from helpers.patience import PATIENCE
from untwist.audit import read_decisions
from untwist.review import Ledger, ReviewServer, connections, server

PAGE = """<!doctype html><html><head><meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="default-src 'none'; connect-src 'self'"></head>
<body>Grüße</body></html>"""
GIVEN = dict.fromkeys(range(100), "no")


class Clock:
    """A clock that stands still until a test moves it, however busy the machine is."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A running server, whose `clock` a test can move."""
    monkeypatch.setattr(server._Handler, "timeout", PATIENCE)
    ledger = Ledger(tmp_path / "d.csv", f"{1:016x}-{2:016x}", GIVEN, dict.fromkeys(GIVEN, ""))
    with ReviewServer(PAGE, ledger) as running:
        running.clock = Clock()
        running.connections = connections.Connections(running.clock)
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def connect(served):
    return socket.create_connection(("127.0.0.1", served.server_port), timeout=PATIENCE)


def is_closed(talk):
    """Wait until the other end has closed a connection; False where it answers."""
    try:
        return talk.recv(1000) == b""
    except ConnectionResetError:
        return True


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


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


def test_a_client_that_says_nothing_keeps_nobody_waiting(served):
    silent = [connect(served) for _ in range(5)]
    half = connect(served)
    half.sendall(b"POST /" + served.token.encode())
    assert ask(served)[0] == 200
    for one in (*silent, half):
        one.close()
    assert ask(served)[0] == 200
    assert server._Handler.timeout is not None


@pytest.mark.parametrize("knows_the_token", [False, True])
def test_a_request_has_a_deadline_however_busily_it_is_sent(served, knows_the_token):
    head = f"POST /{served.token if knows_the_token else ''}/decisions HTTP/1.1\r\n"
    head += f"Host: 127.0.0.1:{served.server_port}\r\nContent-Type: application/json\r\nContent-Length: 999\r\n"
    with connect(served) as slow:
        slow.sendall(head.encode() + (b"\r\n" if knows_the_token else b""))
        wait_until(lambda: len(served.connections) == 1)
        for _ in range(4):  # A byte now and then, so that no single read waits for long.
            slow.sendall(b" ")
            served.clock.now += connections.PATIENCE / 4
        content = b""
        try:
            while piece := slow.recv(1000):
                content += piece
        except ConnectionResetError:
            pass
        assert b"200" not in content
    wait_until(lambda: len(served.connections) == 0)
    assert ask(served)[0] == 200


def test_an_answer_has_a_deadline_of_its_own(served, monkeypatch):
    started, goes_on = threading.Event(), threading.Event()
    decide = served.ledger.decide

    def decide_slowly(*asked):
        started.set()
        assert goes_on.wait(PATIENCE)
        decide(*asked)

    monkeypatch.setattr(served.ledger, "decide", decide_slowly)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, served, {"row": 1, "decision": "keep"})
        assert started.wait(PATIENCE)
        served.clock.now += 10 * connections.PATIENCE  # What the disk takes is not the client's fault.
        assert ask(served)[0] == 200
        goes_on.set()
        assert answer.result(PATIENCE)[0] == 200


def test_of_too_many_connections_the_oldest_make_room(served, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 4)
    most = []
    admit = served.connections.admit

    def watch(connection):
        found = admit(connection)
        most.append(len(served.connections))
        return found

    monkeypatch.setattr(served.connections, "admit", watch)
    silent = [connect(served) for _ in range(20)]
    for _ in range(3):
        assert ask(served)[0] == 200
    assert post(served, {"row": 1, "decision": "keep"})[0] == 200
    assert all(map(is_closed, silent[:16]))
    assert max(most) == 4
    for one in silent:
        one.close()


def test_a_server_without_descriptors_rests_and_goes_on(served, monkeypatch):
    rests, refusals = [], iter([errno.EMFILE, errno.ENFILE, errno.EMFILE])
    accept = TCPServer.get_request

    def run_out(self):
        if number := next(refusals, None):
            raise OSError(number, os.strerror(number))
        return accept(self)

    monkeypatch.setattr(TCPServer, "get_request", run_out)
    monkeypatch.setattr(served.connections, "rest", lambda: rests.append(1))
    assert ask(served)[0] == 200
    assert len(rests) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not limited there")
def test_a_process_of_few_descriptors_answers_beside_many_silent_connections(tmp_path):
    program = tmp_path / "serve.py"
    program.write_text(FEW_DESCRIPTORS)
    command = [sys.executable, str(program), str(tmp_path / "d.csv"), PAGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = urlsplit(process.stdout.readline())
            silent = [socket.create_connection((address.hostname, address.port)) for _ in range(100)]
            for _ in range(3):
                talk = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
                talk.request("GET", address.path.strip())
                assert talk.getresponse().status == 200
                talk.close()
            assert process.poll() is None
        finally:
            process.kill()
    for one in silent:
        one.close()


FEW_DESCRIPTORS = """
import pathlib, resource, sys
from untwist.review import Ledger, ReviewServer
server = ReviewServer(sys.argv[2], Ledger(pathlib.Path(sys.argv[1]), "", {}, {}))
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
print(server.address, flush=True)
server.serve_forever()
"""


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
