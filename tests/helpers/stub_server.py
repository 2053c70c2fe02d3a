"""A server of the review page's protocol in a few lines: it keeps decisions in memory and can go away."""

import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class StubServer:
    """One page, and the decisions that it sends; `refuses` is what the next decision is answered with."""

    def __init__(self, page):
        self.page = page
        self.decisions = {}
        self.version = 0
        self.refuses = None
        self.port = 0
        self._holder = socket.socket()
        self._connections = set()
        self.start()

    def start(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # No connection stays open when the server goes away.

            def setup(self):
                super().setup()
                owner._connections.add(self.connection)

            def finish(self):
                owner._connections.discard(self.connection)
                super().finish()

            def log_message(self, *_):
                pass

            def answer(self, status, kind, content):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(content.encode())

            def answer_since(self, since):
                changed = [one for one in owner.decisions.values() if one["version"] > since]
                self.answer(200, "application/json", json.dumps({"version": owner.version, "decisions": changed}))

            def do_GET(self):
                address = urlsplit(self.path)
                if address.path == "/token/":
                    self.answer(200, "text/html; charset=utf-8", owner.page)
                elif address.path == "/token/decisions":
                    self.answer_since(int(parse_qs(address.query)["since"][0]))
                else:
                    self.answer(404, "text/plain", "not here")

            def do_POST(self):
                told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if owner.refuses:
                    refused, owner.refuses = owner.refuses, None
                    self.answer(400, "text/plain", refused)
                    return
                owner.decide(told["row"], told["decision"], told["label"], told["note"])
                self.answer_since(told["since"])

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        self._holder.close()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in list(self._connections):  # A browser opens some before it has anything to ask for.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        # A socket that does not listen refuses connections, and keeps the port from being given to others.
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind(("127.0.0.1", self.port))

    def close(self):
        self.stop()
        self._holder.close()

    def decide(self, row, decision, label, note=""):
        """Decide as another tab would."""
        self.version += 1
        self.decisions[row] = {
            "row": row,
            "decision": decision,
            "label": label,
            "note": note,
            "decided_at": "2030-01-01T00:00:00Z",
            "version": self.version,
        }

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/token/"
