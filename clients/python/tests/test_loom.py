"""`loombridge.loom`: memory and recorded steps for an agent of loom-py."""

import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

import loombridge
from fake import Fake
from loombridge import _rpc, testing
from loombridge.loom import attach, with_bridge
from loombridge.v1 import memory_pb2
from loomlog import Log, add, asked, failing, odd, running, shout
from loomv1.agent import Agent, Envelope, EventContext, ToolCall
from loomv1.cognitive import executor


async def test_handlers_get_memory(fake: Fake) -> None:
    fake.on(_rpc.MEMORY_SAVE, memory_pb2.MemorySaveResponse(id="r1"))
    fake.on(_rpc.MEMORY_QUERY, memory_pb2.MemoryQueryResponse())
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def on_event(ctx: EventContext, topic: str, event: Envelope) -> None:
        memory: Any = ctx
        saved = await memory.memory_save(f"{topic}: {event.type}", tags=["news"])
        done.set_result((saved, await memory.memory_query({"query": "news", "limit": 3})))

    agent = Agent("reader", ["news"], address=fake.address, on_event=on_event)
    async with running(agent):
        agent.client.deliver("news", Envelope("e1", "rain"))
        saved, hits = await done
    assert (saved.id, list(hits)) == ("r1", [])
    save, query = (r for r in fake.requests if not isinstance(r, bytes))
    assert (save.agent_id, save.text, list(save.tags)) == ("reader", "news: rain", ["news"])
    assert (query.agent_id, query.query, query.limit) == ("reader", "news", 3)


def test_memory_has_the_signatures_of_the_client() -> None:
    agent = Agent("a", [])
    attach(agent)
    for name in ("memory_save", "memory_query"):
        lent, own = getattr(agent.ctx, name), getattr(loombridge.Client, name)
        assert inspect.iscoroutinefunction(lent)
        assert lent.__doc__ == own.__doc__
        assert ["self", *inspect.signature(lent).parameters] == [*inspect.signature(own).parameters]


async def test_a_call_is_recorded_and_unchanged(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    calls: list[ToolCall] = []

    def weather(call: ToolCall) -> str:
        calls.append(call)
        return '{"temperature": 21.5, "id": 36893488147419103232}'

    agent.client.answers["weather:get"] = weather
    async with running(agent) as bridge:
        output = await agent.ctx.tool(
            "weather:get", payload={"location": "Tokyo"}, timeout_ms=7000, headers={"h": "1"}
        )
        assert output == '{"temperature": 21.5, "id": 36893488147419103232}'
        assert await bridge.flush()
    assert (calls[0].arguments, calls[0].timeout_ms) == ('{"location": "Tokyo"}', 7000)
    assert (calls[0].headers["h"], calls[0].headers["x-agent-id"]) == ("1", "a")
    assert log.steps() == [
        ("weather:get", {"location": "Tokyo"}, {"temperature": 21.5, "id": 2**65})
    ]
    request = log.requests[0]
    assert (request.agent_id, request.session_id, bool(request.request_id)) == ("a", "", True)


async def test_a_failure_is_recorded_and_raised(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["fs:delete"] = failing("EXECUTION_ERROR", "Permission denied: no")
    async with running(agent) as bridge:
        with pytest.raises(RuntimeError, match=r"^Tool call failed: Permission denied: no$"):
            await agent.ctx.tool("fs:delete", payload={"path": "x"})
        with pytest.raises(TypeError, match="name"):
            await agent.ctx.tool()  # pyright: ignore[reportCallIssue]
        assert await bridge.flush()
    assert log.steps() == [("fs:delete", {"path": "x"}, "error: Permission denied: no")]


async def test_a_cancelled_call_is_recorded(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["slow"] = lambda _call: asyncio.sleep(60, "late")
    async with running(agent) as bridge:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await agent.ctx.tool("slow")
        assert await bridge.flush()
    assert log.steps() == [("slow", {}, "error: cancelled: the agent stopped waiting")]


async def test_a_core_that_is_gone_is_recorded_in_a_line(fake: Fake, log: Log) -> None:
    async def unreachable(_call: ToolCall) -> str:
        async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
            anyone: Any = channel
            return await anyone.unary_unary("/loom.v1.Bridge/ForwardToolCall")(b"")

    agent = Agent("a", [], address=fake.address)
    agent.client.answers["far"] = unreachable
    async with running(agent) as bridge:
        with pytest.raises(grpc.aio.AioRpcError):
            await agent.ctx.tool("far")
        assert await bridge.flush()
    message = log.requests[0].error_message
    assert message.startswith("UNAVAILABLE: ")
    assert "\n" not in message


async def test_calls_at_once_are_all_recorded(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["n"] = lambda call: call.arguments
    async with running(agent) as bridge:
        await asyncio.gather(*(agent.ctx.tool("n", payload={"i": i}) for i in range(50)))
        assert await bridge.flush()
    assert sorted(step[1]["i"] for step in log.steps()) == list(range(50))
    assert len({each.request_id for each in log.requests}) == 50


async def test_what_cannot_be_printed_does_no_harm(fake: Fake, log: Log) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

        __repr__ = __str__

    def odd(_call: ToolCall) -> str:
        raise OddError

    agent = Agent("a", [], address=fake.address)
    agent.client.answers["n"] = odd
    async with running(agent) as bridge:
        with pytest.raises(OddError):
            await agent.ctx.tool("n", payload="{}")
        with pytest.raises(TypeError):
            await agent.ctx.tool("n", payload={"x": OddError(), 7: {1}})
        assert await bridge.flush()
    assert [each.error_message[:26] for each in log.requests] == [
        "an unprintable OddError",
        "Object of type OddError is",
    ]


# Tools of the agent's own


async def test_what_others_ask_of_the_agent_is_recorded(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], tools=[add, shout, odd], address=fake.address)
    async with running(agent) as bridge:
        relay = agent.client.relay
        assert (await relay(asked("math.add", '{"a": 1, "b": 2}'))).output == "3"
        assert (await relay(asked("text.shout", '{"text": "hi"}'))).output == '{"text": "HI"}'
        failed = await relay(asked("text.shout", '{"text": ""}'))
        assert failed.error.message == "nothing to shout"
        unsaid = await relay(asked("odd.thing", ""))
        assert await bridge.flush()
    assert agent.client.registered == ["math.add", "text.shout", "odd.thing"]
    assert log.steps() == [
        ("math.add", {"a": 1, "b": 2}, 3),
        ("text.shout", {"text": "hi"}, {"text": "HI"}),
        ("text.shout", {"text": ""}, "error: nothing to shout"),
        ("odd.thing", {}, f"error: {unsaid.error.message}"),
    ]


async def test_the_agents_call_of_its_own_tool_is_one_step(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], tools=[add], address=fake.address)
    async with running(agent) as bridge:
        assert await agent.ctx.tool("math.add", payload={"a": 2, "b": 2}) == "4"
        assert await bridge.flush()
    assert log.steps() == [("math.add", {"a": 2, "b": 2}, 4)]


async def test_agents_that_share_a_tool_keep_their_steps_apart(fake: Fake, log: Log) -> None:
    a, b = (Agent(name, [], tools=[add], address=fake.address) for name in "ab")
    plain = Agent("c", [], tools=[add])
    async with running(a) as first, running(b) as second:
        await plain.start()
        call = asked("math.add", '{"a": 1, "b": 1}')
        for agent in (b, plain):
            assert (await agent.client.relay(call)).output == "2"
        await plain.stop()
        assert await first.flush()
        assert await second.flush()
    assert [each.agent_id for each in log.requests] == ["b"]
    assert add(1, 1) == 2


# Attaching


def test_attach_says_what_an_agent_lacks() -> None:
    with pytest.raises(TypeError, match=r"^attach needs an Agent of loom-py; int has no agent_id"):
        attach(7)

    class Half:
        agent_id = "a"
        ctx = EventContext("a", Agent("a", []).client)

        async def start(self) -> None: ...

    with pytest.raises(TypeError, match=r"Half has no async stop\(\)$"):
        attach(Half())
    with pytest.raises(TypeError, match="no agent_id"):
        attach(Agent("", []))


def test_attach_finds_wrong_arguments_at_once() -> None:
    with pytest.raises(ValueError, match="address"):
        attach(Agent("a", []), address="nowhere")
    with pytest.raises(ValueError, match="token"):
        attach(Agent("a", []), address="10.0.0.1:50051", token="t")  # noqa: S106


async def test_attaching_twice_is_once(fake: Fake, log: Log) -> None:
    agent = with_bridge(Agent("a", [], address=fake.address), session_id="s9")
    agent.client.answers["n"] = lambda _call: "1"
    bridge = attach(agent)
    assert attach(agent) is bridge
    await agent.start()
    await agent.ctx.tool("n")
    await agent.stop()
    assert [each.session_id for each in log.requests] == ["s9"]


async def test_attach_finds_the_server_as_the_agent_does(
    fake: Fake, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOM_BRIDGE_ADDR", fake.address)
    agent = Agent("a", [])
    agent.client.answers["n"] = lambda _call: "1"
    async with running(agent) as bridge:
        await agent.ctx.tool("n")
        assert await bridge.flush()
    assert len(log.requests) == 1


async def test_attach_works_on_a_running_agent(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], tools=[add], address=fake.address)
    agent.client.answers["n"] = lambda _call: "1"
    await agent.start()
    await agent.ctx.tool("n")
    attach(agent)
    await agent.ctx.tool("n")
    await agent.client.relay(asked("math.add", '{"a": 1, "b": 2}'))
    await agent.stop()
    assert [step[0] for step in log.steps()] == ["n", "math.add"]


def test_loom_py_is_not_needed_to_import() -> None:
    code = "import loombridge.loom, sys; assert 'loom' not in sys.modules"
    source = Path(loombridge.__file__).parents[1]
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=source, check=False)
    assert run.returncode == 0


# On the real server


async def test_the_log_of_a_real_server_has_the_steps(srv: testing.Server, tmp_path: Path) -> None:
    agent = Agent("planner", [], tools=[add], address=srv.address)
    agent.client.answers["weather:get"] = lambda _call: '{"temperature": 21}'
    agent.client.answers["fs:read_file"] = lambda _call: json.dumps({"content": "line\n" * 5000})
    async with running(agent) as bridge:
        loop = executor.ToolExecutor(agent.ctx, permission_callback=lambda *_: True)
        await agent.ctx.tool("weather:get", payload={"location": "Tokyo"})
        await srv.kill9()
        await agent.ctx.tool("fs:read_file", payload={"path": "big.txt"})
        arguments = {"path": str(tmp_path / "n"), "content": "hello"}
        await loop.execute_tool(executor.ToolCall("fs:write_file", arguments))
        await srv.start()
        await agent.client.relay(asked("math.add", '{"a": 1, "b": 2}'))
        assert await bridge.flush(20)
        memory: Any = agent.ctx
        await memory.memory_save("It is 21 degrees in Tokyo")
        hits = await memory.memory_query("Tokyo")
        steps = await (await bridge.client()).context.steps()
        assert bridge.lost == 0
    assert [hit.record.text for hit in hits] == ["It is 21 degrees in Tokyo"]
    assert [(step.tool_name, step.success) for step in steps] == [
        ("weather:get", True),
        ("fs:read_file", True),
        ("fs:write_file", True),
        ("math.add", True),
    ]
    assert [step.needs_offload for step in steps] == [False, True, False, False]
