"""Models to practise on: OpenAI-compatible servers on this machine.

They count and bill as a provider does: what a prompt begins with and was sent before comes
from their cache. One plays a script and looks into one module after the other; the other
one works with what its prompt says, and gets nowhere without it.
"""

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os.path import commonprefix
from typing import Any, TypeAlias

CHARS_PER_TOKEN = 4
"""Characters that this model takes for a token."""

TOOLS = ("read_module", "run_tests", "search_log")

FILE = re.compile(r"[\w-]+\.txt")
AMOUNT = re.compile(r"amount: (\d+)")

Result: TypeAlias = tuple[str, dict[str, Any], str]
"""Name, arguments and result of a tool call."""


class Model:
    """Says something to each prompt."""

    def __init__(self) -> None:
        """Have nothing in the cache."""
        self._before = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a chat completions request."""
        sent = json.dumps([request.get("tools"), request["messages"]])
        cached = len(commonprefix([sent, self._before])) // CHARS_PER_TOKEN
        self._before = sent
        message = {"role": "assistant", **self.say(request)}
        return {
            "choices": [{"message": message}],
            "usage": {
                "prompt_tokens": len(sent) // CHARS_PER_TOKEN,
                "completion_tokens": len(json.dumps(message)) // CHARS_PER_TOKEN,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }

    def say(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the content and the tool calls of a message."""
        raise NotImplementedError


class Script(Model):
    """What it says, turn by turn."""

    def __init__(self, turns: int) -> None:
        """Ask for a tool so many times, then answer."""
        super().__init__()
        self._turns = turns
        self._turn = 0

    def say(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what comes next."""
        turn = self._turn
        self._turn += 1
        if turn == self._turns:
            return {"content": "Module 7 leaks its connections."}
        module = {"module": f"billing/part_{turn:02}.py"}
        return {
            "content": f"Part {turn} comes next.",
            "tool_calls": [_call(f"call_{turn}", TOOLS[turn % len(TOOLS)], module)],
        }


class Clerk(Model):
    """Adds up the amounts in a folder's files, if its prompt shows what it has found."""

    def __init__(self) -> None:
        """Know of no tools yet."""
        super().__init__()
        self._offered: set[str] = set()

    def say(self, request: dict[str, Any]) -> dict[str, Any]:
        """Choose by what the messages hold: list, read, add, write, report."""
        self._offered = {tool["function"]["name"] for tool in request.get("tools") or ()}
        seen = _results(request["messages"])
        folder = re.findall(r"Add up the amounts in (\w+)/", json.dumps(request["messages"]))
        listed = [text for name, _, text in seen if name == "fs_list_dir"]
        read = {given["path"]: text for name, given, text in seen if name == "fs_read_file"}
        sums = [text for name, _, text in seen if name == "add_up"]
        written = any(name == "fs_write_file" for name, _, _ in seen)
        if not folder:
            return {"content": "What shall I do?"}
        if not listed:
            return self._ask(seen, [("fs_list_dir", {"path": folder[-1]})])
        files = [f"{folder[-1]}/{name}" for name in sorted(set(FILE.findall(listed[0])))]
        if unread := [path for path in files if path not in read]:
            return self._ask(seen, [("fs_read_file", {"path": path}) for path in unread[:2]])
        amounts = [int(amount) for path in files for amount in AMOUNT.findall(read[path])]
        if not sums:
            return self._ask(seen, [("add_up", {"amounts": amounts})])
        total = re.findall(r"\d+", sums[0])[-1]
        if not written:
            return self._ask(seen, [("fs_write_file", {"path": "total.txt", "content": total})])
        return {"content": f"The total is {total}."}

    def _ask(self, seen: list[Result], calls: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        if missing := {name for name, _ in calls} - self._offered:
            return {"content": f"I have no tool {', '.join(missing)}."}
        numbered = enumerate(calls, start=len(seen))
        return {
            "content": f"{calls[0][0]} comes next.",
            "tool_calls": [_call(f"call_{n}", name, given) for n, (name, given) in numbered],
        }


def _results(messages: list[dict[str, Any]]) -> list[Result]:
    """Return the name, the arguments and the result of each call that was answered."""
    answers = {m["tool_call_id"]: str(m["content"]) for m in messages if m["role"] == "tool"}
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), answers[call["id"]])
        for message in messages
        for call in message.get("tool_calls") or ()
        if call["id"] in answers
    ]


def _call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


@contextmanager
def pretend_model(model: Model | int) -> Generator[str, None, None]:
    """Serve a model, or a script of so many turns, while the block runs; give the base URL."""
    script = Script(model) if isinstance(model, int) else model

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
