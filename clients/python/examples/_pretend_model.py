"""A model to practise on: an OpenAI-compatible server on this machine that plays a script.

It looks into one module after the other, and counts and bills as a provider does: what
a prompt begins with and was sent before comes from its cache.
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os.path import commonprefix
from typing import Any

CHARS_PER_TOKEN = 4
"""Characters that this model takes for a token."""

TOOLS = ("read_module", "run_tests", "search_log")


class Script:
    """What the model says, turn by turn."""

    def __init__(self, turns: int) -> None:
        """Ask for a tool so many times, then answer."""
        self._turns = turns
        self._turn = 0
        self._before = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a chat completions request."""
        sent = json.dumps([request.get("tools"), request["messages"]])
        cached = len(commonprefix([sent, self._before])) // CHARS_PER_TOKEN
        self._before = sent
        message = self._next()
        return {
            "choices": [{"message": message}],
            "usage": {
                "prompt_tokens": len(sent) // CHARS_PER_TOKEN,
                "completion_tokens": len(json.dumps(message)) // CHARS_PER_TOKEN,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }

    def _next(self) -> dict[str, Any]:
        turn = self._turn
        self._turn += 1
        if turn == self._turns:
            return {"role": "assistant", "content": "Module 7 leaks its connections."}
        function = {
            "name": TOOLS[turn % len(TOOLS)],
            "arguments": json.dumps({"module": f"billing/part_{turn:02}.py"}),
        }
        return {
            "role": "assistant",
            "content": f"Part {turn} comes next.",
            "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}],
        }


@contextmanager
def pretend_model(turns: int) -> Generator[str, None, None]:
    """Serve while the block runs; give the base URL."""
    script = Script(turns)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(script.answer(json.loads(body))).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
