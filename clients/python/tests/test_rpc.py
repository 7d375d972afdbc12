"""The table of RPCs against the protos, and when a call is made again."""

import time
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import MethodOptions

import loombridge
from fake import Call, Fake, fake_server, methods, refuse
from loombridge import _rpc
from loombridge.v1 import (
    admin_pb2,
    bridge_pb2,
    context_pb2,
    events_pb2,
    memory_pb2,
    sharing_pb2,
    tools_pb2,
    transfer_pb2,
)


def test_table_agrees_with_the_protos() -> None:
    modules: list[Any] = [
        admin_pb2,
        bridge_pb2,
        context_pb2,
        events_pb2,
        memory_pb2,
        sharing_pb2,
        tools_pb2,
        transfer_pb2,
    ]
    declared = {
        f"/{service.full_name}/{rpc.name}": (
            rpc.input_type.full_name,
            rpc.output_type.full_name,
            rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS,
        )
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
        for rpc in service.methods
    }
    known = {
        m.path: (m.request.DESCRIPTOR.full_name, m.response.DESCRIPTOR.full_name, m.reads)
        for m in methods()
    }
    assert known == declared


class Flaky:
    """Finds no server for a while, then an answer."""

    def __init__(self, failures: int, answer: Any) -> None:
        self.calls = 0
        self._failures = failures
        self._answer = answer

    async def __call__(self, _request: Any, call: Call) -> Any:
        self.calls += 1
        if self.calls <= self._failures:
            await refuse(call, grpc.StatusCode.UNAVAILABLE, "away")
        return self._answer


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01, 0.01))


async def test_reads_are_made_again(fake: Fake, ctx: loombridge.Client) -> None:
    flaky = Flaky(2, admin_pb2.GetStatusResponse(version="1.2.3"))
    fake.on(_rpc.GET_STATUS, flaky)
    assert (await ctx.status()).version == "1.2.3"
    assert flaky.calls == 3


async def test_reads_are_given_up_in_the_end(fake: Fake, ctx: loombridge.Client) -> None:
    flaky = Flaky(99, admin_pb2.GetStatusResponse())
    fake.on(_rpc.GET_STATUS, flaky)
    with pytest.raises(loombridge.ServerUnreachableError):
        await ctx.status()
    assert flaky.calls == 3


async def test_changes_are_not_made_again(fake: Fake, ctx: loombridge.Client) -> None:
    flaky = Flaky(1, memory_pb2.MemorySaveResponse(id="r1"))
    fake.on(_rpc.MEMORY_SAVE, flaky)
    with pytest.raises(loombridge.ServerUnreachableError):
        await ctx.memory_save("text")
    assert flaky.calls == 1


async def test_changes_with_a_request_id_are_made_again(fake: Fake, ctx: loombridge.Client) -> None:
    answers: list[tuple[_rpc.Method[Any, Any], Any]] = [
        (_rpc.MEMORY_SAVE, memory_pb2.MemorySaveResponse(id="r1")),
        (_rpc.EMIT, events_pb2.EmitResponse(event_id="e1")),
        (_rpc.TOOL, tools_pb2.ToolResponse(success=True)),
        (_rpc.APPEND_MESSAGES, context_pb2.AppendMessagesResponse(positions=[1])),
    ]
    flaky = {method.name: Flaky(1, answer) for method, answer in answers}
    for method, _ in answers:
        fake.on(method, flaky[method.name])
    await ctx.memory_save("text", request_id="q1")
    await ctx.emit("t", request_id="q2")
    await ctx.tool("fs:stat", {"path": "."}, request_id="q3")
    await ctx.context.append({"role": "user", "content": "hi"}, request_id="q4")
    assert {name: each.calls for name, each in flaky.items()} == dict.fromkeys(flaky, 2)


async def test_other_errors_are_not_made_again(fake: Fake, ctx: loombridge.Client) -> None:
    calls = 0

    async def answer(_request: Any, call: Call) -> Any:
        nonlocal calls
        calls += 1
        await refuse(call, grpc.StatusCode.NOT_FOUND, "gone", reason="RECORD_NOT_FOUND")

    fake.on(_rpc.GET_RECORD, answer)
    with pytest.raises(loombridge.RecordNotFoundError):
        await ctx.memory.get(id="r1")
    assert calls == 1


async def test_the_timeout_holds_over_all_attempts(
    fake: Fake, ctx: loombridge.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (60.0,))
    fake.on(_rpc.GET_STATUS, Flaky(99, None))
    begin = time.monotonic()
    with pytest.raises(loombridge.ServerUnreachableError):
        await ctx.status(timeout=20)
    assert time.monotonic() - begin < 30


async def test_a_client_finds_a_server_that_came_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.1,) * 50)
    async with fake_server() as first:
        ctx = await loombridge.connect(first.address, agent_id="a1")
    port = int(first.address.rpartition(":")[2])
    async with fake_server(port) as second:
        second.on(_rpc.GET_STATUS, admin_pb2.GetStatusResponse(version="2"))
        assert (await ctx.status()).version == "2"
    await ctx.close()
