"""Attached agents on a fake server: hello, tools, and what breaks."""

import asyncio
import functools
import logging
import re
import threading
from datetime import timedelta
from typing import Any

import grpc
import pytest

import loombridge
from fake import Fake
from fake_attach import NOW, PATIENCE, Attach, Heard, until, wire
from loombridge import _provided, _rpc
from loombridge.v1 import events_pb2, tools_pb2

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def heard_nothing() -> None:
    """Take no arguments and do nothing."""


async def test_hello_says_all_that_was_set_up(agent: loombridge.Client, attach: Attach) -> None:
    @agent.tool
    async def word_count(text: str) -> int:
        """Count the words of a text."""
        return len(text.split())

    @agent.tool("math.add", description="Add two numbers.")
    def add(a: float, b: float) -> float:
        return a + b

    @agent.subscribe("news.**", qos="background", event_types=["big"], headers={"h": "v"})
    async def on_news(_event: loombridge.Event) -> None: ...

    agent.subscribe({"orders": 7})(on_news)
    await agent.attach(
        metadata={"team": "x"}, capabilities=["write"], parent_id="boss", heartbeat=2
    )
    (side,) = attach.sides
    hello = side.hello
    assert (hello.agent_id, hello.session_id, hello.parent_id) == ("a1", "s1", "boss")
    assert (dict(hello.metadata), list(hello.capabilities)) == ({"team": "x"}, ["write"])
    assert hello.heartbeat_interval.ToTimedelta() == timedelta(seconds=2)
    tools = {tool.name: tool for tool in hello.tools}
    assert set(tools) == {"word_count", "math.add"}
    assert tools["word_count"].description == "Count the words of a text."
    assert tools["math.add"].description == "Add two numbers."
    assert '"required":["a","b"]' in tools["math.add"].parameters_schema_json
    news, orders = hello.topics
    assert (news.topic, news.quality_of_service) == (
        "news.**",
        events_pb2.QUALITY_OF_SERVICE_BACKGROUND,
    )
    assert not news.HasField("since")
    assert not news.HasField("after_sequence")
    assert (list(news.event_types), dict(news.headers)) == (["big"], {"h": "v"})
    assert (orders.topic, orders.after_sequence) == ("orders", 7)


async def test_nothing_attaches_by_itself(agent: loombridge.Client, attach: Attach) -> None:
    agent.subscribe("news")
    await agent.emit("t")
    await asyncio.sleep(0.02)
    assert attach.sides == []
    await agent.attach()
    assert len(attach.sides) == 1


async def test_heartbeats(agent: loombridge.Client, attach: Attach) -> None:
    attach.heartbeat = 0.01
    await agent.attach()
    side = await attach.side()
    await until(lambda: side.beats >= 3)


async def test_closing_the_client_says_goodbye(fake: Fake, attach: Attach) -> None:
    async with loombridge.connect(fake.address, agent_id="a1") as client:
        await client.attach()
        side = await attach.side()
        serving = asyncio.create_task(client.serve())
    await asyncio.wait_for(side.gone.wait(), PATIENCE)
    await asyncio.wait_for(serving, PATIENCE)
    await client.close()


async def test_tools_answer_calls(agent: loombridge.Client, attach: Attach) -> None:
    threads: list[threading.Thread] = []

    @agent.tool
    async def word_count(text: str) -> int:
        return len(text.split())

    @agent.tool
    def shout(text: str, times: int = 1) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return {"said": text.upper() * times}

    assert await word_count("still a function") == 3
    await agent.attach()
    side = await attach.side()
    side.call("c1", "word_count", '{"text":"a b c"}')
    side.call("c2", "shout", '{"text":"hé","times":2}')
    first, second = await side.result("c1"), await side.result("c2")
    assert (first.success, first.output_json) == (True, "3")
    assert (second.success, second.output_json) == (True, '{"said":"HÉHÉ"}')
    assert threads != [threading.main_thread()]


async def test_what_goes_wrong_in_a_tool_is_its_answer(
    agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @agent.tool
    async def fails(kind: str) -> Any:
        errors: dict[str, Any] = {
            "plain": RuntimeError("it broke"),
            "silent": ValueError(),
            "missing": FileNotFoundError("no such file"),
            "forbidden": PermissionError("not yours"),
            "inner": loombridge.ToolFailedError("too much", reason="TOO_LARGE"),
            "surrogate": RuntimeError("\ud800"),
            "speechless": SpeechlessError(),
        }
        if kind in errors:
            raise errors[kind]
        return {"set": {1}} if kind == "set" else "x" * (4 << 20)

    await agent.attach()
    side = await attach.side()
    codes = tools_pb2.ToolErrorCode
    expected = {
        "plain": (codes.TOOL_ERROR_CODE_FAILED, "it broke"),
        "silent": (codes.TOOL_ERROR_CODE_FAILED, "ValueError"),
        "missing": (codes.TOOL_ERROR_CODE_NOT_FOUND, "no such file"),
        "forbidden": (codes.TOOL_ERROR_CODE_PERMISSION_DENIED, "not yours"),
        "inner": (codes.TOOL_ERROR_CODE_TOO_LARGE, "too much"),
        "speechless": (codes.TOOL_ERROR_CODE_FAILED, "SpeechlessError"),
        "surrogate": (codes.TOOL_ERROR_CODE_FAILED, "?"),
        "set": (codes.TOOL_ERROR_CODE_FAILED, "the result is not JSON: set has no JSON form"),
        "large": (
            codes.TOOL_ERROR_CODE_TOO_LARGE,
            "result of 4194304 bytes exceeds the limit of 3145728",
        ),
    }
    for kind in expected:
        side.call(kind, "fails", f'{{"kind":"{kind}"}}')
    for kind, (code, text) in expected.items():
        result = await side.result(kind)
        assert (result.success, result.error_code, result.error_message) == (False, code, text)
    assert "it broke" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("{}", "invalid arguments: text is missing"),
        ('{"text":1,"x":2}', "text must be a string, not an integer; x is unknown; known are text"),
        ("[]", "arguments must be an object, not an array"),
        ("{", "arguments are not JSON"),
    ],
)
async def test_arguments_are_checked(
    agent: loombridge.Client, attach: Attach, arguments: str, text: str
) -> None:
    @agent.tool
    async def word_count(text: str) -> int:
        return len(text)

    await agent.attach()
    side = await attach.side()
    side.call("c", "word_count", arguments)
    result = await side.result("c")
    code = tools_pb2.TOOL_ERROR_CODE_INVALID_ARGUMENTS
    assert (result.success, result.error_code) == (False, code)
    assert text in result.error_message


async def test_a_tool_that_is_not_here(agent: loombridge.Client, attach: Attach) -> None:
    await agent.attach()
    side = await attach.side()
    side.call("c", "nothing")
    assert (await side.result("c")).error_code == tools_pb2.TOOL_ERROR_CODE_NOT_FOUND


async def test_a_tool_that_takes_too_long_is_cancelled(
    agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    cancelled = asyncio.Event()

    @agent.tool
    async def sleeps() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    await agent.attach()
    side = await attach.side()
    side.call("c", "sleeps", seconds=0.05)
    result = await side.result("c")
    assert result.error_code == tools_pb2.TOOL_ERROR_CODE_TIMEOUT
    assert result.error_message == "sleeps did not end in time"
    assert cancelled.is_set()
    (record,) = caplog.records
    assert record.getMessage() == "tool sleeps took longer than a2 waits"
    assert record.exc_info is None


async def test_tools_run_at_the_same_time_up_to_a_limit(
    agent: loombridge.Client, attach: Attach
) -> None:
    running, most = 0, 0
    go = asyncio.Event()

    @agent.tool
    async def waits() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1

    await agent.attach()
    side = await attach.side()
    count = _provided.CALLS_PER_TOOL + 5
    for i in range(count):
        side.call(str(i), "waits")
    await until(lambda: running == _provided.CALLS_PER_TOOL)
    go.set()
    await until(lambda: len(side.results) == count)
    assert most == _provided.CALLS_PER_TOOL


async def test_a_later_tool_attaches_anew_without_being_away(
    agent: loombridge.Client, attach: Attach
) -> None:
    go = asyncio.Event()

    @agent.tool
    async def slow() -> str:
        await go.wait()
        return "done"

    heard = Heard()
    agent.subscribe({"t": 0})(heard)
    await agent.attach()
    first = await attach.side()
    first.event("t", 1)
    first.call("c1", "slow")
    await heard.until(1)

    @agent.tool
    async def later() -> str:
        return "here"

    await agent.attach()
    second = await attach.side(2)
    assert {tool.name for tool in second.hello.tools} == {"slow", "later"}
    assert second.hello.topics[0].after_sequence == 1
    first.event("t", 2)
    second.event("t", 2)
    second.event("t", 3)
    second.call("c2", "later")
    assert (await second.result("c2")).output_text == "here"
    await heard.until(1, 2, 3)
    assert not first.gone.is_set()
    go.set()
    assert (await first.result("c1")).output_text == "done"
    await asyncio.wait_for(first.gone.wait(), PATIENCE)
    assert not second.gone.is_set()


async def test_a_volatile_event_on_two_streams_comes_once(
    agent: loombridge.Client, attach: Attach
) -> None:
    heard = Heard()
    agent.subscribe("t", at_once=1)(heard)
    await agent.attach()
    first = await attach.side()
    go = attach.hold = asyncio.Event()
    agent.tool(description="Later.")(heard_nothing)
    second = await attach.side(2)
    first.event("t", 0, id="both", payload_json="1")
    await heard.until(1)
    second.event("t", 0, id="both", payload_json="1")
    second.event("t", 0, id="new", payload_json="2")
    first.event("t", 0, id="old", payload_json="3")
    go.set()
    await until(lambda: len(heard.payloads) == 3)
    assert sorted(heard.payloads) == [1, 2, 3]
    await asyncio.wait_for(first.gone.wait(), PATIENCE)
    second.event("t", 0, id="both", payload_json="4")
    await until(lambda: 4 in heard.payloads)


async def test_who_wants_the_past_of_what_others_hear_gets_a_new_stream(
    agent: loombridge.Client, attach: Attach
) -> None:
    async with agent.subscribe("t.*") as everything:
        first = await attach.side()
        first.event("t.a", 7)
        assert (await anext(everything)).sequence == 7
        async with agent.subscribe({"t.a": 5}) as past:
            second = await attach.side(2)
            assert {place.topic for place in second.hello.topics} == {"t.*", "t.a"}
            for sequence in (6, 7, 8):
                second.event("t.a", sequence)
            assert [(await anext(past)).sequence for _ in range(3)] == [6, 7, 8]
        assert (await anext(everything)).sequence == 8


async def test_tool_is_a_call_and_a_decorator(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    fake.on(_rpc.TOOL, tools_pb2.ToolResponse(success=True, output_json="1"))
    assert (await agent.tool("fs:stat")).output == 1
    assert (await asyncio.create_task(agent.tool("fs:stat"))).output == 1
    both = await asyncio.gather(agent.tool("fs:stat"), agent.tool("fs:stat", {"path": "."}))
    assert [each.output for each in both] == [1, 1]

    @agent.tool()
    def one() -> None: ...

    @agent.tool("the:second")
    def two() -> None: ...

    @agent.tool(description="Third.", parameters={"type": "object"})
    def three(**_arguments: Any) -> None: ...

    await agent.attach()
    tools = {tool.name: tool for tool in attach.sides[0].hello.tools}
    assert set(tools) == {"one", "the:second", "three"}
    assert tools["three"].parameters_schema_json == '{"type":"object"}'
    unfit: Any = agent.tool
    with pytest.raises(TypeError, match="either called or provided"):
        unfit("x", {}, description="d")
    with pytest.raises(TypeError, match="either called or provided"):
        unfit(one, timeout=5)
    with pytest.raises(ValueError, match="name must be 1 to 128"):
        agent.tool("a b")(one)
    with pytest.raises(TypeError, match="must be a function, not partial"):
        agent.tool(functools.partial(one))


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("", UNAVAILABLE),
        ("SHUTTING_DOWN", UNAVAILABLE),
        ("SLOW_CONSUMER", grpc.StatusCode.RESOURCE_EXHAUSTED),
        ("", grpc.StatusCode.INTERNAL),
    ],
)
async def test_breaks_lose_nothing_and_repeat_nothing(
    agent: loombridge.Client, attach: Attach, reason: str, code: grpc.StatusCode
) -> None:
    exact, pattern = Heard(), Heard()
    attach.ends["t"] = 10
    agent.subscribe("t")(exact)
    agent.subscribe("p.*")(pattern)
    await agent.attach()
    first = await attach.side()
    first.event("t", 11)
    later = NOW + timedelta(minutes=1)
    first.event("p.a", 5, create_time=wire(later))
    await exact.until(11)
    await pattern.until(5)
    first.end(reason, code)
    second = await attach.side(2)
    t, p = second.hello.topics
    assert t.after_sequence == 11
    assert p.since.ToDatetime(tzinfo=NOW.tzinfo) == NOW
    second.event("p.a", 5, create_time=wire(later))
    second.event("p.a", 6, create_time=wire(later))
    second.event("p.b", 1, create_time=wire(later - timedelta(seconds=2)))
    second.event("t", 12)
    await exact.until(11, 12)
    await pattern.until(5, 6, 1)


async def test_a_pattern_without_events_resumes_from_where_it_stood(
    agent: loombridge.Client, attach: Attach
) -> None:
    agent.subscribe("p.*")(Heard())
    await agent.attach()
    (await attach.side()).end()
    second = await attach.side(2)
    assert second.hello.topics[0].since.ToDatetime(tzinfo=NOW.tzinfo) == NOW


async def test_a_server_that_goes_for_a_while(
    agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "loombridge")
    await agent.attach()
    attach.refuse_hellos = [(UNAVAILABLE, ""), (UNAVAILABLE, "SHUTTING_DOWN")] * 2
    (await attach.side()).end("SHUTTING_DOWN")
    await attach.side(2)
    await agent.attach()
    said = [(each.levelname, each.getMessage()) for each in caplog.records]
    first, *waits, last = [(level, text) for level, text in said if text.startswith("agent a1")]
    assert first == ("WARNING", "agent a1 attaches again: ended")
    assert [level for level, _ in waits] == ["DEBUG"] * 4
    assert all(re.fullmatch(r"agent a1 tries again in 0\.\d s", text) for _, text in waits)
    assert last[0] == "INFO"
    assert re.fullmatch(r"agent a1 attached again after \d\.\d s", last[1])


async def test_a_stream_that_ends_well_is_opened_again(
    agent: loombridge.Client, attach: Attach
) -> None:
    await agent.attach()
    (await attach.side()).out.put_nowait(None)
    await attach.side(2)


async def test_what_attaching_again_cannot_mend_ends_all(
    agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    await agent.attach()
    serving = asyncio.create_task(agent.serve())
    asking = asyncio.create_task(agent.request("t"))
    listener = agent.subscribe("t")
    reading = asyncio.create_task(anext(listener))
    await until(lambda: {"t", "agent.a1.replies"} <= set(attach.sides[0].topics))
    attach.refuse_hellos = [(grpc.StatusCode.PERMISSION_DENIED, "AGENT_NOT_OWNED")]
    (await attach.side()).end()
    tasks: list[asyncio.Task[Any]] = [serving, asking, reading]
    for task in tasks:
        with pytest.raises(loombridge.AgentNotOwnedError):
            await asyncio.wait_for(task, PATIENCE)
    assert "is not attached any more" in caplog.text
    await agent.attach()
    assert len(attach.sides) == 2


async def test_no_server_from_the_start(agent: loombridge.Client, attach: Attach) -> None:
    attach.refuse_hellos = [(UNAVAILABLE, "")] * 99
    with pytest.raises(loombridge.ServerUnreachableError):
        await agent.attach()
    with pytest.raises(loombridge.ServerUnreachableError):
        await agent.serve()


async def test_a_break_cancels_tools_nobody_waits_for(
    agent: loombridge.Client, attach: Attach
) -> None:
    cancelled = asyncio.Event()
    begun = asyncio.Event()

    @agent.tool
    async def sleeps() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    await agent.attach()
    side = await attach.side()
    side.call("c", "sleeps")
    await begun.wait()
    side.end()
    await asyncio.wait_for(cancelled.wait(), PATIENCE)


async def test_closing_from_a_handler_and_from_a_tool(fake: Fake, attach: Attach) -> None:
    for way in ("handler", "tool"):
        client = await loombridge.connect(fake.address, agent_id=way)

        async def leave(_event: Any = None, client: loombridge.Client = client) -> None:
            await client.close()

        client.subscribe("t")(leave)
        client.tool("leave", parameters={})(leave)
        await client.attach()
        side = attach.sides[-1]
        if way == "handler":
            side.event("t", 1)
        else:
            side.call("c", "leave")
        async with asyncio.timeout(PATIENCE):
            await side.gone.wait()
