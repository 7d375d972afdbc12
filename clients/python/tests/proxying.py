"""A provider that sends what a test says, and a server that is the proxy before it."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

import loombridge
from loombridge import testing

KEY = "sk-callers-own-key-0123456789"
TOOLS: list[Any] = [
    {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
]
FUNCTIONS: list[Any] = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
]
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


@dataclass
class Script:
    """What a provider sends, byte for byte, and what it was sent."""

    url: str = ""
    answers: list[tuple[int, dict[str, str], list[bytes]]] = field(default_factory=list[Any])
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list[Any])
    gone: Event = field(default_factory=Event)
    """A caller went before its answer had ended."""


@pytest.fixture
def script() -> Generator[Script, None, None]:
    """A provider that answers with what it is told; an empty part waits for the caller to go."""
    found = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.requests.append((dict(self.headers), body))
            status, headers, parts = found.answers.pop(0)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in parts:
                if not part:
                    self.rfile.read(1)
                    found.gone.set()
                    self.close_connection = True
                    return
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@asynccontextmanager
async def proxied(
    binary: Path, upstream: str, *settings: str
) -> AsyncGenerator[tuple[testing.Server, str], None]:
    """Serve a proxy before a provider named `it`; give the server and the proxy's address."""
    args = ["--http-addr", "127.0.0.1:0", "--proxy-upstreams", f"it={upstream}", *settings]
    async with testing.server(binary, args=args) as srv:
        yield srv, await address(srv)
        await srv.stop()
        no_key(srv)


async def address(srv: testing.Server, starts: int = 1) -> str:
    """Return where the proxy is: the server says it each time when it listens."""
    while True:
        found = re.findall(r"(?m)^  http +(http://\S+)$", srv.log.read_text())
        if len(found) == starts:
            return f"{found[-1]}/proxy/it"
        await asyncio.sleep(0.01)


def no_key(srv: testing.Server) -> None:
    """Check that the key stands in no file of the store, nor in the log."""
    files = [each for each in srv.data_dir.rglob("*") if each.is_file()]
    assert files
    for file in (*files, srv.log):
        assert KEY.encode() not in file.read_bytes(), file


def sse(*events: str) -> list[bytes]:
    """Return server-sent events as a provider sends them."""
    return [f"data: {each}\n\n".encode() for each in events]


CHAT = sse(
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"role":"assistant","content":"Let me "},"finish_reason":null}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"content":"look."},"finish_reason":null}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look",'
    '"arguments":""}},{"index":1,"id":"call_2","type":"function","function":{"name":"look",'
    '"arguments":"{\\"at\\""}}]},"finish_reason":null}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},'
    '{"index":1,"function":{"arguments":":2}"}}]},"finish_reason":null}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{},"finish_reason":"tool_calls"}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[],'
    '"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}',
    "[DONE]",
)
EVENTS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Request-Id": "req_7"}


ANSWER = sse(
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"role":"assistant","content":"Yes"},"finish_reason":null}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"content":". "},"finish_reason":"stop"}]}',
    "[DONE]",
)


async def answered(srv: testing.Server, agent: str = "proxy") -> dict[str, list[str]]:
    """Return the same once each session ends with an answer, which is recorded behind its end."""
    while True:
        found = await recorded(srv, agent)
        if all(told[-1].startswith("assistant: ") for told in found.values()):
            return found
        await asyncio.sleep(0.01)


async def recorded(srv: testing.Server, agent: str = "proxy") -> dict[str, list[str]]:
    """Return what the sessions of an agent hold, in short."""
    found: dict[str, list[str]] = {}
    async with loombridge.connect(srv.address, agent_id=agent) as ctx:
        async for session in ctx.context.sessions():
            name = session.session_id
            found[name] = []
            async for entry in ctx.context.conversation(session_id=name):
                if entry.step:
                    found[name].append(entry.step.tool_name)
                elif entry.message:
                    found[name].append(in_short(entry.message))
    return found


def in_short(message: loombridge.Message) -> str:
    blocks: list[Any] = message.blocks or []
    inner = [each.get("content") or [each] for each in blocks]
    told = [part for parts in inner for part in ([parts] if isinstance(parts, str) else parts)]
    texts = [
        message.content,
        *(part if isinstance(part, str) else part.get("text", "") for part in told),
    ]
    calls = [call.id for call in message.calls()]
    return f"{message.role}: {' '.join(calls or filter(None, texts))}"


async def post(url: str, body: bytes, want: list[bytes] | None = None, /, **headers: str) -> Any:
    """Send bytes with the key; return the headers of the answer."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}", **headers}
    request = Request(url, body, headers)  # noqa: S310  it is http

    def send() -> Any:
        with urlopen(request) as answer:  # noqa: S310
            assert answer.read() == b"".join(want or ANSWER)
            return answer.headers

    return await asyncio.to_thread(send)


def asks(path: str, *said: Any) -> bytes:
    """Return a request as odd as a program may write it."""
    name = "input" if path.endswith("responses") else "messages"
    roles = ("user", "assistant")
    told = [{"role": roles[i % 2], "content": each} for i, each in enumerate(said)]
    text = json.dumps(told, indent=1)
    return f'{{ "n":1.0,"{name}" : {text},\r\n"model":"m", "x":"\\u00e9<" }}'.encode()
