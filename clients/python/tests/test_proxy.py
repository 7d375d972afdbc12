"""Programs that can change an address alone: the providers' own libraries, by the proxy."""

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
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import loombridge
from loombridge import testing
from providers import anthropic_messages, openai_chat, openai_responses, serving

anthropic: Any = pytest.importorskip("anthropic")
openai: Any = pytest.importorskip("openai")

KEY = "sk-callers-own-key-0123456789"
TOOLS: list[Any] = [
    {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
]
FUNCTIONS: list[Any] = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
]


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
async def proxied(binary: Path, upstream: str) -> AsyncGenerator[tuple[testing.Server, str], None]:
    """Serve a proxy before a provider named `it`; give the server and the proxy's address."""
    args = ["--http-addr", "127.0.0.1:0", "--proxy-upstreams", f"it={upstream}"]
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


# N14
async def test_a_stream_of_openai_is_the_providers_own(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        script.answers = [(200, EVENTS, CHAT), (200, EVENTS, CHAT)]
        gpt: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY)
        request: Any = {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": FUNCTIONS,
        }
        async with gpt:
            stream = await gpt.chat.completions.create(**request, stream=True)
            chunks = [each async for each in stream]
            assert "".join(c.choices[0].delta.content or "" for c in chunks[:2]) == "Let me look."
            assert chunks[-1].usage.prompt_tokens == 100
            async with gpt.chat.completions.with_streaming_response.create(
                **request, stream=True
            ) as raw:
                assert b"".join([each async for each in raw.iter_bytes()]) == b"".join(CHAT)
                assert raw.headers["x-request-id"] == "req_7"
        for headers, _ in script.requests:
            assert headers["Authorization"] == f"Bearer {KEY}"


# N14
async def test_errors_and_retries_are_the_programs_own(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        limited = {"Retry-After": "0", "Content-Type": "application/json", "X-Limit": "3"}
        error = b'{"error":{"message":"slow down","type":"rate_limit_error","code":null}}'
        script.answers = [(429, limited, [error]), (500, limited, [error])]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=1) as gpt:
            with pytest.raises(openai.InternalServerError) as failed:
                await gpt.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hi"}]
                )
        assert failed.value.response.headers["x-limit"] == "3"
        assert failed.value.body["message"] == "slow down"
        assert len(script.requests) == 2
        error = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
        script.answers = [(529, limited, [error])]
        async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as claude:
            with pytest.raises(anthropic.APIStatusError) as busy:
                await claude.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
                )
        assert busy.value.status_code == 529
        assert script.requests[-1][0]["Authorization"] == f"Bearer {KEY}"


async def test_a_program_that_goes_ends_its_request(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        script.answers = [(200, EVENTS, [*CHAT[:1], b""])]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
            stream = await gpt.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            async for _ in stream:
                break
            await stream.close()
            assert script.gone.wait(20)


# N14
async def test_a_killed_server_breaks_an_answer(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, [*CHAT[:1], b""])]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
            stream = await gpt.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            parts = aiter(stream)
            await anext(parts)
            await srv.kill9()
            with pytest.raises(Exception, match=r"peer|closed|incomplete|Connection"):
                await anext(parts)
        assert len(script.requests) == 1
        await srv.start()


@dataclass
class Flow:
    """An agent's loop with a provider's own library."""

    provider: Any
    turns: list[serving.Turn] = field(
        default_factory=lambda: [
            serving.Turn(
                "I look.",
                "I have to look.",
                [serving.Call("look", {"at": 1}, "c1"), serving.Call("look", {"at": 2}, "c2")],
            )
        ]
    )


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def anthropic_loop(url: str) -> str:
    """Ask with an image, answer two calls at once; thoughts go back signed."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    said: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image", "source": source},
            ],
        }
    ]
    async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY) as claude:
        while True:
            answer = await claude.messages.create(
                model="m", max_tokens=99, system="Look.", messages=said, tools=TOOLS
            )
            calls = [each for each in answer.content if each.type == "tool_use"]
            if not calls:
                return answer.content[0].text
            said.append({"role": "assistant", "content": answer.content})
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": f"seen {c.input['at']}"}
                for c in calls
            ]
            said.append({"role": "user", "content": results})


async def chat_loop(url: str) -> str:
    """Do the same by Chat Completions."""
    said: list[Any] = [
        {"role": "system", "content": "Look."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ],
        },
    ]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
        while True:
            answer = await gpt.chat.completions.create(
                model="gpt-4o", messages=said, tools=FUNCTIONS
            )
            message = answer.choices[0].message
            if not message.tool_calls:
                return message.content
            said.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                said.append({"role": "tool", "tool_call_id": call.id, "content": "seen"})


async def responses_loop(url: str) -> str:
    """Do the same by Responses."""
    said: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": f"data:image/png;base64,{PNG}",
                },
            ],
        }
    ]
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
        while True:
            answer = await gpt.responses.create(
                model="gpt-4o", instructions="Look.", input=said, tools=[tool]
            )
            calls = [each for each in answer.output if each.type == "function_call"]
            if not calls:
                return answer.output_text
            said += [each.model_dump(exclude_none=True) for each in answer.output]
            said += [
                {"type": "function_call_output", "call_id": c.call_id, "output": "seen"}
                for c in calls
            ]


LOOPS: list[Any] = [
    (anthropic_messages, anthropic_loop),
    (openai_chat, chat_loop),
    (openai_responses, responses_loop),
]


# N14, N15
@pytest.mark.parametrize(("provider", "loop"), LOOPS, ids=["anthropic", "chat", "responses"])
async def test_a_loop_with_the_providers_library(binary: Path, provider: Any, loop: Any) -> None:
    with serving.serve(provider.check, provider.answer) as strict:
        strict.turns = Flow(provider).turns
        async with proxied(binary, strict.url) as (srv, url):
            assert await loop(url) == "Done."
            want = [
                "user: What is it?",
                "assistant: c1 c2",
                "look",
                "look",
                "assistant: Done.",
            ]
            ((session, told),) = (await answered(srv)).items()
            assert re.fullmatch(r"proxy-[0-9a-f]{16}", session)
            assert told == want
        assert strict.refusals == []
        assert len(strict.requests) == 2


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


async def say(url: str, *said: str, **headers: str) -> Any:
    """Send a conversation by Chat Completions, as a stream; return the answer's headers."""
    messages: Any = [
        {"role": "assistant" if i % 2 else "user", "content": each} for i, each in enumerate(said)
    ]
    gpt: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    async with (
        gpt,
        gpt.chat.completions.with_streaming_response.create(
            model="m", messages=messages, stream=True, extra_headers=headers
        ) as raw,
    ):
        assert b"".join([each async for each in raw.iter_bytes()]) == b"".join(ANSWER)
        return raw.headers


ANSWER = sse(
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"role":"assistant","content":"Yes"},"finish_reason":null}]}',
    '{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,'
    '"delta":{"content":". "},"finish_reason":"stop"}]}',
    "[DONE]",
)


# N15
async def test_which_session_a_conversation_is(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(10)]
        did = (await say(url, "A?"))["loom-did"]
        first = did.removeprefix("recorded 1 in ")
        # It goes on, though the program took the space off the answer's end.
        assert (await say(url, "A?", "Yes.", "B?"))["loom-did"] == f"recorded 1 in {first}"
        # The same beginning again is another one; so is what was said otherwise.
        assert (await say(url, "A?"))["loom-did"].startswith(f"recorded 1 in {first}-")
        await say(url, "A?", "No.", "B?")
        await say(url, "C?", **{"Loom-Session-Id": "mine", "Loom-Agent-Id": "me"})
        await say(url, "C?", "Yes.", "D?", **{"Loom-Session-Id": "mine", "Loom-Agent-Id": "me"})
        await say(url, "E?", **{"Loom-Session-Id": "mine", "Loom-Agent-Id": "me"})
        assert "loom-did" not in await say(url, "F?", **{"Loom-Off": "memory, record"})
        assert (await say(url, "G?", **{"Loom-Session-Id": "x" * 300}))["loom-did"] == (
            "recorded nothing: InvalidArgument"
        )
        # A server that was killed knows it by its log.
        await srv.kill9()
        await srv.start()
        url = await address(srv, starts=2)
        did = await say(url, "A?", "Yes.", "B?", "Yes.", "H?")
        assert did["loom-did"] == f"recorded 1 in {first}"
        for _, body in script.requests:
            assert b"Loom" not in body
        found = await answered(srv)
        a, b, yes = "user: A?", "user: B?", "assistant: Yes. "
        assert found.pop(first) == [a, yes, b, yes, "user: H?", yes]
        assert sorted(found.values()) == [[a, "assistant: No.", b, yes], [a, yes]]
        found = await answered(srv, "me")
        assert found == {"mine": ["user: C?", yes, "user: D?", yes, "user: E?", yes]}


# N15
async def test_an_answer_that_breaks_is_not_recorded(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        # It closes in the middle of a call; then it sends what no provider sends.
        length = {**EVENTS, "Connection": "close"}
        script.answers = [
            (200, length, [*CHAT[:4]]),
            (200, EVENTS, [b"data: {\x00]\n", b"\xff" * (1 << 20)]),
        ]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as gpt:
            for _ in range(2):
                async with gpt.chat.completions.with_streaming_response.create(
                    model="m", messages=[{"role": "user", "content": "A?"}], stream=True
                ) as raw:
                    assert [each async for each in raw.iter_bytes()]
        script.answers = [(200, EVENTS, ANSWER)]
        await say(url, "A?")
        assert list((await answered(srv)).values()) == [["user: A?", "assistant: Yes. "]]


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


TURNS = 24


def report(call: str) -> str:
    """Return what a call gives: a text that no other gives."""
    return "\n".join(f"line {i} of {call}-{i}.txt took {i * 7} ms" for i in range(30))


async def long_loop(provider: Any, url: str, headers: dict[str, str]) -> list[str]:
    """Call a tool in each turn until the model is done; return what the proxy did."""
    did: list[str] = []

    async def hear(response: Any) -> None:
        did.append(response.headers.get("loom-did", ""))

    said: list[Any] = [{"role": "user", "content": "Look at all, one by one. " * 10}]
    hooks: Any = {"response": [hear]}
    if provider is anthropic_messages:
        http: Any = anthropic.DefaultAsyncHttpxClient(event_hooks=hooks)
        async with anthropic.AsyncAnthropic(
            base_url=url, api_key=KEY, http_client=http, default_headers=headers
        ) as claude:
            while True:
                told = await claude.messages.create(
                    model="m", max_tokens=99, messages=said, tools=TOOLS
                )
                calls = [each.id for each in told.content if each.type == "tool_use"]
                if not calls:
                    return did
                results = [
                    {"type": "tool_result", "tool_use_id": call, "content": report(call)}
                    for call in calls
                ]
                said += [
                    {"role": "assistant", "content": told.content},
                    {"role": "user", "content": results},
                ]
    http = openai.DefaultAsyncHttpxClient(event_hooks=hooks)
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key=KEY, http_client=http, default_headers=headers
    ) as gpt:
        while provider is openai_chat:
            told = await gpt.chat.completions.create(model="m", messages=said, tools=FUNCTIONS)
            message = told.choices[0].message
            if not message.tool_calls:
                return did
            said.append(message.model_dump(exclude_none=True))
            said += [
                {"role": "tool", "tool_call_id": call.id, "content": report(call.id)}
                for call in message.tool_calls
            ]
        tool = {**FUNCTIONS[0]["function"], "type": "function", "strict": False}
        while True:
            told = await gpt.responses.create(model="m", input=said, tools=[tool])
            calls = [each.call_id for each in told.output if each.type == "function_call"]
            if not calls:
                return did
            said += [each.model_dump(exclude_none=True) for each in told.output]
            said += [
                {"type": "function_call_output", "call_id": call, "output": report(call)}
                for call in calls
            ]


# N15
@pytest.mark.parametrize(
    "provider", [each for each, _ in LOOPS], ids=["anthropic", "chat", "responses"]
)
async def test_old_results_are_folded(binary: Path, provider: Any) -> None:
    turns = [
        serving.Turn(f"I look {i}.", "", [serving.Call("look", {"at": i}, f"c{i}")])
        for i in range(TURNS)
    ]
    with serving.serve(provider.check, provider.answer) as strict:
        async with proxied(binary, strict.url) as (srv, url):
            me = {"Loom-Agent-Id": "me", "Loom-Session-Id": "mine"}
            async with loombridge.connect(srv.address, agent_id="me", session_id="mine") as ctx:
                await ctx.context.configure(max_tokens=8000)
                strict.turns = list(turns)
                did = await long_loop(provider, url, me)
                assert strict.refusals == []
                sent = [each.get("messages") or each["input"] for each in strict.requests]
                assert len(sent) == TURNS + 1
                assert "folded" not in did[1]
                assert re.fullmatch(r"recorded \d in mine, folded \d+", did[-1])
                assert max(len(json.dumps(each)) for each in sent) < 32_000
                # The newest result stands as it is, and what was sent stands where it stood.
                for i in range(TURNS):
                    assert json.dumps(report(f"c{i}")) in json.dumps(sent[i + 1])
                kept = [sent[i + 1][: len(sent[i])] == sent[i] for i in range(TURNS)]
                assert kept.count(False) in range(1, TURNS // 2)
                # Each byte that was taken out is read back by the name that stands there.
                assert json.dumps(report("c0")) not in json.dumps(sent[-1])
                assert any('001 look {\\"at\\": 0}' in json.dumps(each) for each in sent)
                for i in range(TURNS):
                    name = f"step_{i + 1:03}"
                    assert bytes(await ctx.context.read_blob(name)).decode() == report(f"c{i}")
                # Its receipt is that of the session's prompts.
                found = await ctx.context.find_in_prompts()
                assert len(found.prompts) == TURNS + 1
                assert any(each.fold_batch for each in found.prompts)
            # Another session of the same has all, as the header says.
            strict.turns = list(turns)
            strict.requests.clear()
            whole = {**me, "Loom-Session-Id": "whole", "Loom-Off": "fold"}
            did = await long_loop(provider, url, whole)
            assert re.fullmatch(r"recorded \d in whole", did[-1])
            assert strict.refusals == []
            assert all(
                json.dumps(report(f"c{i}")) in json.dumps(strict.requests[-1]) for i in range(TURNS)
            )


def looked(calls: int) -> bytes:
    """Return a request of Chat Completions behind so many calls, for a model of 8,192 tokens."""
    said: list[Any] = [{"role": "user", "content": "Look at all."}]
    for i in range(calls):
        function = {"name": "look", "arguments": json.dumps({"at": i})}
        call = {"id": f"c{i}", "type": "function", "function": function}
        said += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": report(f"c{i}")},
        ]
    return json.dumps({"messages": said, "model": "gpt-4", "n": 1}, indent=1).encode()


# N15
async def test_what_the_window_has_room_for_stays(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(5)]
        path = f"{url}/v1/chat/completions"
        for calls in (2, 8):
            await post(path, looked(calls))
            assert script.requests[-1][1] == looked(calls)
        for calls in (30, 31):
            assert ", folded " in (await post(path, looked(calls)))["Loom-Did"]
            assert len(script.requests[-1][1]) < 8192 * 4
            told = json.loads(script.requests[-1][1])
            assert told["n"] == 1
            assert told["messages"][-1]["content"] == report(f"c{calls - 1}")
        # Nobody knows how much another model takes.
        other = looked(30).replace(b"gpt-4", b"m")
        await post(path, other)
        assert script.requests[-1][1] == other


USED: list[Any] = [
    (
        "/v1/chat/completions",
        sse(
            '{"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}',
            '{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":9}}',
        ),
    ),
    (
        "/v1/messages",
        sse(
            '{"type":"message_start","message":{"usage":{"input_tokens":100,'
            '"cache_read_input_tokens":700,"cache_creation_input_tokens":100,"output_tokens":1}}}',
            '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Yes"}}',
            '{"type":"message_delta","usage":{"output_tokens":9}}',
            '{"type":"message_stop"}',
        ),
    ),
    (
        "/v1/responses",
        sse(
            '{"type":"response.completed","response":{"id":"r","output":[{"type":"message",'
            '"role":"assistant","content":[{"type":"output_text","text":"Yes"}]}],'
            '"usage":{"input_tokens":900,"output_tokens":9}}}'
        ),
    ),
]


# N15
@pytest.mark.parametrize(("path", "answer"), USED, ids=["chat", "anthropic", "responses"])
async def test_what_the_provider_counts_is_learned(
    binary: Path, script: Script, path: str, answer: list[bytes]
) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, answer)]
        headers = {"Loom-Agent-Id": "me", "Loom-Session-Id": "mine"}
        await post(url + path, asks(path, "A?"), answer, **headers)
        assert (await answered(srv, "me"))["mine"] == ["user: A?", "assistant: Yes"]
        async with loombridge.connect(srv.address, agent_id="me", session_id="mine") as ctx:
            none = loombridge.PromptSettings(tools=loombridge.ToolSelection(none=True))
            prompt = await ctx.context.assemble(model="m", settings=none, dry_run=True)
            assert prompt.tokens in range(900, 950)


PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


# N15
@pytest.mark.parametrize("path", PATHS)
async def test_memory_stands_behind_what_the_user_says(
    binary: Path, script: Script, path: str
) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(11)]
        me = {"Loom-Agent-Id": "me"}
        question, thanks = "Which fruit is best?", "And where may pears grow?"
        kind = "input_text" if path == PATHS[2] else "text"
        block = [{"type": kind, "text": question}]
        # Nothing is remembered: what is sent is the program's own, byte for byte.
        for body in (asks(path, question), asks(path, question, "Apples.", block)):
            assert "memory" not in (await post(url + path, body, **me))["Loom-Did"]
            assert script.requests[-1][1] == body
        async with loombridge.connect(srv.address, agent_id="me") as ctx:
            await ctx.memory_save("The best fruit is a <pear>, and pears grow in Ghent.")
        for said in (f"{question} 2", [{"type": kind, "text": f"{question} 3"}]):
            did = await post(url + path, asks(path, said), **me)
            assert did["Loom-Did"].endswith(", memory 1")
            first = script.requests[-1][1]
            found = json.loads(first)["input" if kind == "input_text" else "messages"]
            told = found[0]["content"]
            assert "<user_memory>" in (told if isinstance(told, str) else told[1]["text"])
            # It stands there again in what follows, so that a provider's cache holds.
            await post(url + path, asks(path, said, "Pears.", thanks), **me)
            second = script.requests[-1][1]
            start = first.split(b"</user_memory>")[0]
            assert second.startswith(start)
            assert second.count(b"<user_memory>") == 2
            off = asks(path, said, "Pears.", thanks)
            await post(url + path, off, **me, **{"Loom-Off": "memory, record"})
            assert script.requests[-1][1] == off
        for told in (await recorded(srv, "me")).values():
            assert not any("user_memory" in each for each in told)
        await post(url + path, asks(path, f"{question} 4"))
        assert b"user_memory" not in script.requests[-1][1], "another agent's memory"
        # What is erased stands in no request any more, nor where it stood before.
        async with loombridge.connect(srv.address, agent_id="me") as ctx:
            await ctx.admin.erase(agent_id="me")
        for said in (f"{question} 2", [{"type": kind, "text": f"{question} 3"}]):
            body = asks(path, said, "Pears.", thanks)
            await post(url + path, body, **me)
            assert script.requests[-1][1] == body


# N15
async def test_memory_is_as_it_is_when_it_is_asked(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        path = PATHS[0]

        async def told(*said: str) -> str:
            script.answers = [(200, EVENTS, ANSWER)]
            await post(url + path, asks(path, *said), **{"Loom-Agent-Id": "me"})
            return script.requests[-1][1].decode()

        async with loombridge.connect(srv.address, agent_id="me") as ctx:
            question = "Which number opens the gate?"
            assert "memory" not in await told(question)
            first = await ctx.memory_save("The number of the gate is 4711.", key="gate")
            talk = (question, "It is 4711.", "Is that the number of the gate?")
            # Another conversation that begins with the same words knows what was saved since.
            assert "4711" in (await told(question)).split("user_memory")[1]
            assert (await told(*talk)).count("<user_memory>") == 2
            await ctx.memory_save("The number of the gate is 1234.", key="gate", replace=True)
            assert "1234" in (await told(question)).split("user_memory")[1]
            # What is deleted is said no more, in a conversation that was told it neither.
            assert (await told(*talk, "Yes.", "Which gate?")).count("<user_memory>") >= 2
            await ctx.memory.delete(id=first.id)
            for said in ((question,), talk, (*talk, "Yes.", "Which gate?")):
                assert "user_memory" not in await told(*said)


# N15
async def test_a_part_that_is_mistyped_is_refused(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        with pytest.raises(HTTPError) as refused:
            await post(url + PATHS[0], asks(PATHS[0], "A?"), **{"Loom-Off": "memory, recrod"})
        assert refused.value.code == 400
        assert "Loom-Off" in refused.value.read().decode()
        assert not script.requests
