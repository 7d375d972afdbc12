"""A stand-in for the providers of models, for users without a key.

It speaks all four of their interfaces, and plays one short part: it writes a file, reads
it, and says what the file says. First it gets its calls wrong, as models do: what was wrong
it reads as their results.
"""

import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SYSTEM = "You keep notes in files."
QUESTION = "Note in harbour.txt that the harbour is closed until Monday. What does it say then?"

FILE = {"path": "harbour.txt"}
TEXT = "The harbour is closed until Monday."

PART: list[tuple[str, dict[str, str]]] = [
    ("note_write", {"note": TEXT}),
    ("fs_write_file", {"file": "harbour.txt", "content": TEXT}),
    ("fs_write_file", {**FILE, "content": TEXT}),
    ("fs_read_file", FILE),
]
"""The calls that it asks for, one after the other."""


@contextmanager
def provider(key: str) -> Generator[dict[str, Any], None, None]:
    """Give what a provider's library needs: the key of the environment, or a stand-in."""
    if os.environ.get(key):
        yield {"api_key": os.environ[key]}
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), stand_in())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield {"api_key": "none", "base_url": f"http://127.0.0.1:{server.server_port}"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def stand_in() -> type[BaseHTTPRequestHandler]:
    """Return what answers the requests of one conversation."""
    turns = enumerate(PART)

    class StandIn(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(answer(self.path, next(turns, None))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    return StandIn


def answer(path: str, call: tuple[int, tuple[str, dict[str, str]]] | None) -> dict[str, Any]:
    """Return a call, or at the end a text, as the interface has it."""
    text = f"It says: {TEXT}"
    number, (name, arguments) = call or (len(PART), ("", {}))
    identity = f"call_{number}"
    if path.endswith("/messages"):
        block: dict[str, Any] = {"type": "text", "text": text}
        if call:
            block = {"type": "tool_use", "id": identity, "name": name, "input": arguments}
        reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in"}
        usage = {"input_tokens": 100, "output_tokens": 10}
        return {**reply, "content": [block], "stop_reason": "end_turn", "usage": usage}
    if path.endswith("/completions"):
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if call:
            called = {"name": name, "arguments": json.dumps(arguments)}
            message["content"] = None
            message["tool_calls"] = [{"id": identity, "type": "function", "function": called}]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "stand-in"}
        return {**reply, "choices": [choice]}
    if path.endswith("/responses"):
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
        if call:
            item = {"type": "function_call", "call_id": identity, "name": name}
            item["arguments"] = json.dumps(arguments)
        item |= {"id": f"msg_{number}", "status": "completed"}
        reply = {"id": "resp_1", "object": "response", "created_at": 0, "model": "stand-in"}
        settings: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return {**reply, **settings, "output": [item]}
    said: dict[str, Any] = {"text": text}
    if call:
        said = {"functionCall": {"name": name, "args": arguments}}
    content = {"role": "model", "parts": [said]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
