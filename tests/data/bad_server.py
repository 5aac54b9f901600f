"""A small web server that misbehaves on purpose."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """What one request for a path gets. `length` lies about the body's length; the connection is
    closed after `cut` bytes of it, and after `stall` bytes (-1: before the headers) nothing comes for
    a while."""

    body: bytes = b""
    status: int = 200
    length: int | None = None
    cut: int | None = None
    stall: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True


class Server(ThreadingHTTPServer):
    """Answers by path; a list of answers is used up one by one, the last one stays."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.stall_seconds = 1.5
        self.scheme = "http"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""

    @property
    def url(self) -> str:
        """Address without a slash at its end."""
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, *answers: Answer) -> str:
        """Set what a path gets; gives its address."""
        self.answers[path] = list(answers)
        return self.url + path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """Send the next answer of the path."""
        asked = self.headers.get("Range")
        self.server.requests.append((self.path, asked))
        waiting = self.server.answers.get(self.path, [Answer(b"nothing here", 404)])
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        body, status, headers = answer.body, answer.status, dict(answer.headers)
        if answer.stall == -1:
            time.sleep(self.server.stall_seconds)
        if asked and answer.ranges and status == 200:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            headers.setdefault("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            body, status = body[start:], 206
        self.send_response(status)
        headers.setdefault(
            "Content-Length", str(len(body) if answer.length is None else answer.length)
        )
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if answer.stall is not None and answer.stall > 0:
            self.wfile.write(body[: answer.stall])
            self.wfile.flush()
            time.sleep(self.server.stall_seconds)
            self.close_connection = True
            return
        self.wfile.write(body if answer.cut is None else body[: answer.cut])
        if answer.cut is not None or answer.length is not None:
            self.wfile.flush()
            self.close_connection = True


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A running server, over TLS if a context is given."""
    with Server() as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            server.scheme = "https"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
