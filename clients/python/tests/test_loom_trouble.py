"""`loombridge.loom`: servers that are away or refuse, and what no step could hold."""

import asyncio
import json
import logging
import time
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, fake_server, refuse
from loombridge import _rpc
from loombridge.loom import attach
from loombridge.v1 import context_pb2 as pb
from loomlog import Log, failing, running
from loomv1.agent import Agent

SOON = 30.0
"""Seconds in which a step has to be recorded; far more than it takes."""


async def test_a_server_that_is_away_delays_nothing(
    fake: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_server() as away:
        address = away.address
    agent = Agent("a", [], address=address)
    agent.client.answers["n"] = lambda call: call.arguments
    async with running(agent) as bridge:
        began = time.monotonic()
        for i in range(20):
            await agent.ctx.tool("n", payload={"i": i})
        assert time.monotonic() - began < SOON
        assert not await bridge.flush(0.3)
        log = Log()
        async with fake_server(int(address.rpartition(":")[2])) as back:
            back.on(_rpc.RECORD_STEP, log.answer)
            assert await bridge.flush(20)
        assert [step[1]["i"] for step in log.steps()] == list(range(20))
        assert bridge.lost == 0
    warnings = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "steps wait to be recorded" in warnings[0].getMessage()


async def test_a_step_sent_again_keeps_its_request_id(fake: Fake) -> None:
    requests: list[pb.RecordStepRequest] = []

    async def answer(request: pb.RecordStepRequest, call: Call) -> pb.RecordStepResponse:
        requests.append(request)
        if len(requests) == 1:
            await refuse(call, grpc.StatusCode.UNAVAILABLE, "later", reason="OVERLOADED")
        return pb.RecordStepResponse()

    fake.on(_rpc.RECORD_STEP, answer)
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["n"] = lambda _call: "1"
    async with running(agent) as bridge:
        await agent.ctx.tool("n")
        assert await bridge.flush()
    first, second = requests
    assert first == second
    assert first.request_id


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
        # A core that has no native API.
        (grpc.StatusCode.UNIMPLEMENTED, ""),
    ],
)
async def test_a_step_that_is_refused_stops_nothing(
    fake: Fake, caplog: pytest.LogCaptureFixture, code: grpc.StatusCode, reason: str
) -> None:
    log = Log()

    async def answer(request: pb.RecordStepRequest, call: Call) -> pb.RecordStepResponse:
        if request.tool_name == "bad":
            await refuse(call, code, "not so", reason=reason)
        return await log.answer(request, call)

    async def status(_request: Any, call: Call) -> Any:
        await refuse(call, grpc.StatusCode.UNIMPLEMENTED, "unknown service")

    fake.on(_rpc.RECORD_STEP, answer)
    fake.on(_rpc.GET_STATUS, status)  # which tells an old server of ours from a core
    agent = Agent("a", [], address=fake.address)
    agent.client.answers = {"bad": lambda _call: "1", "good": lambda _call: "2"}
    async with running(agent) as bridge:
        for name in ("bad", "bad", "good"):
            await agent.ctx.tool(name)
        assert await bridge.flush()
        assert bridge.lost == 2
    assert log.steps() == [("good", {}, 2)]
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert warnings == ["a step of bad is not recorded: not so"]


async def test_the_queue_has_a_bound(fake: Fake, log: Log, monkeypatch: Any) -> None:
    from loombridge.loom import _recorder

    monkeypatch.setattr(_recorder, "QUEUE_ENTRIES", 5)
    gate = asyncio.Event()

    async def answer(request: pb.RecordStepRequest, call: Call) -> pb.RecordStepResponse:
        await gate.wait()
        return await log.answer(request, call)

    fake.on(_rpc.RECORD_STEP, answer)
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["n"] = lambda call: call.arguments
    async with running(agent) as bridge:
        for i in range(8):
            await agent.ctx.tool("n", payload={"i": i})
        assert bridge.lost == 3
        gate.set()
        assert await bridge.flush()
        monkeypatch.setattr(_recorder, "QUEUE_SIZE", 10)
        await agent.ctx.tool("n", payload={"text": "x" * 20})
        assert bridge.lost == 4
    assert [step[1]["i"] for step in log.steps()] == list(range(5))


async def test_stop_records_what_waits_and_closes(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["n"] = lambda call: call.arguments
    bridge = attach(agent)
    await agent.start()
    for i in range(30):
        await agent.ctx.tool("n", payload={"i": i})
    client = await bridge.client()
    await agent.stop()
    assert [step[1]["i"] for step in log.steps()] == list(range(30))
    with pytest.raises(loombridge.ClientClosedError):
        await client.status()
    with pytest.raises(loombridge.ClientClosedError, match="the agent was stopped"):
        await bridge.client()
    await agent.stop()

    await agent.start()
    await agent.ctx.tool("n", payload={"i": 30})
    await agent.stop()
    assert [step[1]["i"] for step in log.steps()] == list(range(31))


async def test_stop_does_not_wait_for_a_server_that_is_gone(fake: Fake) -> None:
    async with fake_server() as away:
        address = away.address
    agent = Agent("a", [], address=address)
    agent.client.answers["n"] = lambda _call: "1"
    bridge = attach(agent)
    await agent.start()
    await agent.ctx.tool("n")
    began = time.monotonic()
    await agent.stop()
    assert time.monotonic() - began < SOON
    assert bridge.lost == 1
    assert not agent.client.connected


async def test_memory_without_a_server_raises_what_a_client_raises(fake: Fake) -> None:
    async with fake_server() as away:
        address = away.address
    agent = Agent("a", [], address=address)
    async with running(agent):
        memory: Any = agent.ctx
        with pytest.raises(loombridge.ServerUnreachableError):
            await memory.memory_save("x")


# The form of a step


async def test_what_the_server_would_refuse_is_brought_into_form(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    agent.client.answers = {
        "plain text": lambda _call: "no JSON",
        "nan": lambda _call: '{"x": NaN}',
        "half": lambda _call: "\ud800 and more",
        "none": lambda _call: "",
        "x" * 200: lambda _call: "1",
        "": lambda _call: "1",
    }
    async with running(agent) as bridge:
        await agent.ctx.tool("plain text", payload="also none")
        await agent.ctx.tool("nan", payload=[1, 2])
        await agent.ctx.tool("half", payload='{"a": 1}')
        await agent.ctx.tool("none")
        await agent.ctx.tool("x" * 200, payload={"n": 2**70})
        await agent.ctx.tool("", payload={"s": "\ud800"})
        assert await bridge.flush()
    assert log.steps() == [
        ("plain_text", {"payload": "also none"}, "no JSON"),
        ("nan", {"payload": [1, 2]}, '{"x": NaN}'),
        ("half", {"a": 1}, "? and more"),
        ("none", {}, ""),
        ("x" * 128, {"n": 2**70}, 1),
        ("unnamed", {"payload": '{"s": "\\ud800"}'}, 1),
    ]


async def test_what_is_too_large_is_cut(fake: Fake, log: Log) -> None:
    large = "\x01" * (2 << 20)
    agent = Agent("a", [], address=fake.address)
    agent.client.answers = {
        "fs:write_file": lambda _call: json.dumps({"content": large}),
        "many": failing("EXECUTION_ERROR", "€" * 100_000),
    }
    async with running(agent) as bridge:
        await agent.ctx.tool("fs:write_file", payload={"path": "x", "content": large})
        with pytest.raises(RuntimeError):
            await agent.ctx.tool("many", payload={str(i): "y" * 500 for i in range(3000)})
        assert await bridge.flush()
    first, second = log.requests
    arguments = json.loads(first.arguments_json)
    assert arguments["path"] == "x"
    assert arguments["content"].endswith(f"... [cut: {2 << 20} characters in all]")
    assert json.loads(first.output_json) == {"content": large}
    assert list(json.loads(second.arguments_json)) == ["payload"]
    for request in log.requests:
        assert len(request.arguments_json.encode()) <= 1 << 20
        assert len(request.error_message.encode()) <= 64 << 10
