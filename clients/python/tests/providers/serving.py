"""A provider behind an address of this machine."""

import json
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from providers.rules import RefusedError

Body = dict[str, Any]


@dataclass
class Call:
    """A call of a tool that the pretended model wants."""

    name: str
    arguments: Body
    id: str = "call_1"


@dataclass
class Turn:
    """What the pretended model says."""

    text: str = ""
    thought: str = ""
    calls: Sequence[Call] = ()


@dataclass
class Provider:
    """What a test sees of a provider that is served."""

    url: str
    turns: list[Turn] = field(default_factory=list[Turn])
    """What the model says next; when nothing is left it says `Done.`"""
    requests: list[Body] = field(default_factory=list[Body])
    """The requests that were taken."""
    refusals: list[str] = field(default_factory=list[str])
    """Why others were not."""


@contextmanager
def serve(
    check: Callable[[Body], None], answer: Callable[[Body, Turn], Body]
) -> Generator[Provider, None, None]:
    """Serve a provider on a free port while the block runs."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body: Body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model = self.path.rpartition("/models/")[2].partition(":")[0]
            try:
                with lock:
                    check(body)
                    provider.requests.append(body)
                    turn = provider.turns.pop(0) if provider.turns else Turn("Done.")
                self.reply(200, answer({"model": model, **body}, turn))
            except RefusedError as err:
                provider.refusals.append(str(err))
                error = {"type": "invalid_request_error", "message": str(err), "code": 400}
                self.reply(400, {"type": "error", "error": error})

        def reply(self, status: int, told: Body) -> None:
            text = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
