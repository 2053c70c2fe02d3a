"""A server for one page on the loopback address, and for the decisions made on it.

It answers whoever knows its address, which holds a random token, and nobody else: other paths, hosts and origins get an
empty answer. No answer allows another site to read it, and a decision is taken as JSON only, which no form can send.
Connections are few, and each has a deadline: whoever holds many of them open keeps nobody else waiting.
"""

from __future__ import annotations

import errno
import html
import json
import re
import secrets
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from untwist.review.connections import PATIENCE, Connections
from untwist.review.ledger import Ledger

#: The only address that the server listens to.
LOOPBACK = "127.0.0.1"
#: Names of that address in a browser.
HOSTS = (LOOPBACK, "localhost")
#: Bytes of a decision, at most.
MOST_BYTES = 64 << 10
#: What the system says where it has no descriptor, or no memory, for another connection.
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
#: What kind of answer a sentence is.
TEXT = "text/plain; charset=utf-8"
#: The policy that stands in a page.
POLICY = re.compile(r"<meta http-equiv=Content-Security-Policy content=\"(.*?)\">")
#: What every answer says.
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class ReviewServer(ThreadingHTTPServer):
    """A server that shows a page and takes decisions; `serve_forever` runs it.

    Parameters
    ----------
    page : str
        HTML, with its own content security policy.
    ledger : Ledger
        Where decisions go.
    port : int
        0 for any that is free.
    token : str or None
        What the address holds; None draws one.
    """

    daemon_threads = True
    #: Connections that the system keeps until they are accepted.
    request_queue_size = 128
    #: On Windows it would let another process share the port; elsewhere it only frees the port at once.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, page: str, ledger: Ledger, port: int = 0, token: str | None = None) -> None:
        found = POLICY.search(page)
        if found is None:
            raise ValueError("the page must have a content security policy")
        self.connections = Connections()
        super().__init__((LOOPBACK, port), _Handler)
        self.page = page.encode()
        self.policy = f"{html.unescape(found[1])}; frame-ancestors 'none'"
        self.ledger = ledger
        self.token = secrets.token_urlsafe(32) if token is None else token
        self.hosts = {f"{host}:{self.server_port}" for host in HOSTS}

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; where there is no descriptor for it, rest instead of asking again and again.

        Returns
        -------
        tuple
            The connection, and the address of the client.
        """
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in EXHAUSTED:
                self.connections.rest()
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection by a thread of its own, if there is room for it.

        Parameters
        ----------
        request, client_address
            Whose it is.
        """
        if self.connections.admit(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection.

        Parameters
        ----------
        request
            Whose it is.
        """
        self.connections.release(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Drop whoever takes too long; `serve_forever` calls this twice a second, and after every connection."""
        self.connections.drop_late()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a client went away in the middle of an answer.

        Parameters
        ----------
        request, client_address
            Whose it was.
        """
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Refusal(Exception):
    """An answer without any word but its status, or with one sentence for those who know the token."""

    def __init__(self, status: HTTPStatus, words: str = "") -> None:
        super().__init__(words)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    #: Where nobody wakes a thread up, as after `shutdown`, the system ends its waiting.
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, find: Any) -> None:
        try:
            name = self._check_caller()
            self.server.connections.trust(self.connection)
            find(name)
        except _Refusal as refusal:
            self._send(refusal.status, str(refusal).encode(), TEXT)

    def _check_caller(self) -> str:
        """Return what is asked for below the token; nobody else learns whether there is anything."""
        try:
            token, slash, name = urlsplit(self.path).path.removeprefix("/").partition("/")
        except ValueError as error:
            raise _Refusal(HTTPStatus.NOT_FOUND) from error
        known = secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        hosts = self.headers.get_all("Host") or []
        is_ours = known and len(hosts) == 1 and hosts[0] in self.server.hosts
        if not is_ours or not slash or name not in ("", "decisions"):
            raise _Refusal(HTTPStatus.NOT_FOUND)
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            raise _Refusal(HTTPStatus.FORBIDDEN)
        return name

    def _get(self, name: str) -> None:
        self.server.connections.hold(self.connection)
        if name == "":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8", self.server.policy)
            return
        asked = parse_qs(urlsplit(self.path).query).get("since", ["0"])[0]
        self._send_changes(int(asked) if re.fullmatch(r"[0-9]{1,16}", asked) else 0)

    def _post(self, name: str) -> None:
        if name != "decisions":
            raise _Refusal(HTTPStatus.NOT_FOUND)
        # Browsers say where a request comes from; those that are too old do not.
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise _Refusal(HTTPStatus.FORBIDDEN)
        if self.headers.get_content_type() != "application/json" or "Content-Type" not in self.headers:
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a decision must come as application/json")
        asked = self._read_body()
        self.server.connections.hold(self.connection)
        try:
            self.server.ledger.decide(
                asked.get("row"), asked.get("decision"), asked.get("label", ""), asked.get("note", "")
            )
        except ValueError as error:
            raise _Refusal(HTTPStatus.BAD_REQUEST, str(error)) from error
        except OSError as error:
            words = f"the decision was not written: {error}"
            raise _Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, words) from error
        since = asked.get("since", 0)
        self._send_changes(since if type(since) is int else 0)

    def _read_body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not re.fullmatch(r"[0-9]{1,15}", length):
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > MOST_BYTES:
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a decision takes at most {MOST_BYTES} bytes")
        try:
            body = self.rfile.read(int(length))
            asked = json.loads(body.decode())
        except (ValueError, RecursionError) as error:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "a decision must be JSON") from error
        if len(body) != int(length) or not isinstance(asked, dict) or "row" not in asked or "decision" not in asked:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "a decision must be an object with row and decision")
        return asked

    def _send_changes(self, since: int) -> None:
        found = json.dumps(self.server.ledger.list_changes(since))
        self._send(HTTPStatus.OK, found.encode(), "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, policy: str | None = None) -> None:
        self.server.connections.renew(self.connection)
        self.send_response_only(status)
        headers = {
            **HEADERS,
            "Content-Security-Policy": policy or "default-src 'none'; frame-ancestors 'none'",
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Connection": "close",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def send_error(self, code: int, *_: Any, **__: Any) -> None:
        """Answer what is no request at all, or by a method that there is not, without a word about the server."""
        self._send(HTTPStatus(code), b"", TEXT)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: the address holds the token."""
