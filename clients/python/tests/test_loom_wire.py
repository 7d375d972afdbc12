"""loom.v1 on the wire: what existing agents of loom-py say and hear, on the real server."""

import asyncio
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

import loombridge
from loombridge import testing
from loomv1.raw import PATIENCE, Peer, Stubs, generate, meta

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("grpc_tools") is None,
    reason="stubs are generated for the test, and this environment has no grpcio-tools",
)

TOPIC = "wire.news"


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    """The stubs of loom.v1, in a folder of the test's own."""
    folder = tmp_path_factory.mktemp("stubs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield generate(folder)


async def test_register_stream_and_echo(srv: testing.Server, stubs: Stubs) -> None:
    async with Peer(stubs, srv.address, "a", [TOPIC]) as a:
        sent = await a.emit(TOPIC, "note", b"\x00\xff")
        topic, event = await a.next()
        assert (topic, event.id, event.type) == (TOPIC, sent, "note")
        assert (event.payload, event.source, event.priority) == (b"\x00\xff", "python", 50)
        assert meta(event, "sender") == "a"
        beat = await a.stub.Heartbeat(stubs.bridge.HeartbeatRequest(timestamp_ms=12345))
        assert (beat.timestamp_ms, beat.status) == (12345, "ok")


async def test_an_event_has_a_correlation_id_for_all_but_its_sender(
    srv: testing.Server, stubs: Stubs
) -> None:
    async with (
        Peer(stubs, srv.address, "a", [TOPIC]) as a,
        Peer(stubs, srv.address, "b", [TOPIC]) as b,
        loombridge.connect(srv.address, agent_id="c") as native,
    ):
        sent = await a.emit(TOPIC, "note", b"x")
        _, heard = await b.next()
        _, echo = await a.next()
        assert (heard.id, meta(heard, "correlation_id")) == (sent, sent)
        assert (echo.id, "correlation_id" in echo.metadata) == (sent, False)
        emitted = await native.emit(TOPIC, {"n": 1})
        _, heard = await b.next()
        assert meta(heard, "correlation_id") == emitted.event_id
        assert meta(heard, "sender") == "c"
        # An event that names no sender has an empty one, not none.
        await a.publish(TOPIC, stubs.event.Event(id="e9", type="note"))
        _, heard = await b.next()
        assert (heard.metadata["sender"], heard.metadata["correlation_id"]) == ("", "e9")


async def test_registration_without_an_id_is_told(srv: testing.Server, stubs: Stubs) -> None:
    async with grpc.aio.insecure_channel(srv.address) as channel:
        bridge: Any = stubs.services.BridgeStub(channel)
        answer = await bridge.RegisterAgent(stubs.bridge.AgentRegisterRequest())
    assert not answer.success
    assert "agent_id" in answer.error_message


async def test_two_agents_hear_each_other_in_order(srv: testing.Server, stubs: Stubs) -> None:
    async with (
        Peer(stubs, srv.address, "a", [TOPIC]) as a,
        Peer(stubs, srv.address, "b", ["wire.*", TOPIC, TOPIC]) as b,
    ):
        sent = [await a.emit(TOPIC, "note", str(i).encode()) for i in range(50)]
        assert await a.until(sent[-1]) == sent
        # Once for the pattern and once for the topic, though that was listed twice.
        heard = [await b.next() for _ in range(100)]
        for pattern in ("wire.*", TOPIC):
            assert [event.id for topic, event in heard if topic == pattern] == sent
        assert {event.metadata["loom.topic"] for _, event in heard} == {TOPIC}


def _add(arguments: dict[str, Any]) -> int:
    return arguments["a"] + arguments["b"]


def _shout(arguments: dict[str, Any]) -> str:
    return str(arguments.get("text", "")).upper()


def _fail(arguments: dict[str, Any]) -> None:
    raise ValueError(f"no {arguments['what']}")


async def test_tools_are_relayed_both_ways(srv: testing.Server, stubs: Stubs) -> None:
    async with (
        Peer(stubs, srv.address, "a", [], {"math.add": _add}) as a,
        Peer(stubs, srv.address, "b", [], {"text.shout": _shout, "bad": _fail}) as b,
    ):
        shouted = await a.call("text.shout", '{"text": "hello"}')
        assert (shouted.status, json.loads(shouted.output)) == (stubs.action.TOOL_OK, "HELLO")
        added = await b.call("math.add", '{"a": 1, "b": 2}')
        assert (added.status, json.loads(added.output)) == (stubs.action.TOOL_OK, 3)
        # Without arguments, and an agent's own tool.
        assert json.loads((await b.call("text.shout")).output) == ""
        failed = await a.call("bad", '{"what": "luck"}')
        assert (failed.status, failed.error.code) == (stubs.action.TOOL_ERROR, "TOOL_ERROR")
        assert failed.error.message == "no luck"
        unknown = await a.call("no.such")
        assert (unknown.status, unknown.error.code) == (stubs.action.TOOL_NOT_FOUND, "NOT_FOUND")
        assert unknown.error.message == "Tool not found: no.such"
        calls = [a.call("text.shout", json.dumps({"text": f"t{i}"})) for i in range(40)]
        answers = [json.loads(each.output) for each in await asyncio.gather(*calls)]
        assert answers == [f"T{i}" for i in range(40)]


async def test_the_shell_runs_what_is_allowed(srv: testing.Server, stubs: Stubs) -> None:
    # loom-py looks for "Permission denied", asks its user, and runs the command itself.
    async with (
        Peer(stubs, srv.address, "a", []) as a,
        loombridge.connect(srv.address, agent_id="a") as ctx,
    ):
        denied = await a.call("system:shell", '{"command": "rm", "args": ["-r", "x"]}')
        assert (denied.status, denied.error.code) == (stubs.action.TOOL_ERROR, "EXECUTION_ERROR")
        assert denied.error.message == "Permission denied: Command 'rm' is not allowed"
        invalid = await a.call("system:shell", "{}")
        assert invalid.status == stubs.action.TOOL_INVALID_ARGUMENTS
        long = await a.call("system:shell", json.dumps({"command": "é" * 500}))
        assert long.error.message.startswith("Permission denied: Command 'éé")
        assert len(long.error.message) < 200
        # The native API has no list where programs are confined.
        for name in ("system:shell", "system_shell"):
            result = await ctx.tool(name, {"command": "é" * 500})
            assert result.error is not None
            assert result.error.code == "failed"
        assert {"system:shell", "shell:run"} <= {tool.name for tool in await ctx.tools.list()}
        ran = await a.call("system:shell", '{"command": "echo", "args": ["a", "b"]}')
        assert ran.status == stubs.action.TOOL_OK
        assert json.loads(ran.output) == {"stdout": "a b\n", "stderr": "", "exit_code": 0}
        line = await ctx.tool("shell:run", {"command": "echo one two | wc -w"})
        assert line.output == {"stdout": "2\n", "stderr": "", "exit_code": 0}
        # A tool of the server wins over one of an agent.
        async with Peer(stubs, srv.address, "b", [], {"system:shell": _shout}):
            own = await a.call("system:shell", '{"command": "pwd"}')
            assert "stdout" in json.loads(own.output)


async def test_arguments_as_loom_py_writes_them(srv: testing.Server, stubs: Stubs) -> None:
    lines = [f"line {n}\n" for n in range(1, 11)]
    async with (
        Peer(stubs, srv.address, "a", []) as a,
        loombridge.connect(srv.address, agent_id="a") as ctx,
    ):
        await ctx.tool("fs:write_file", {"path": "ten", "content": "".join(lines)})
        for arguments, want in (
            ({"start_line": 1, "end_line": -1}, lines),
            ({"start_line": 0, "end_line": 0}, lines),
            ({"start_line": "9", "end_line": "-1"}, lines[8:]),
            ({"start_line": 9, "end_line": None}, lines[8:]),
            ({"limit": 0}, lines),
            ({"offset": "2", "limit": "3"}, lines[1:4]),
        ):
            payload: dict[str, Any] = {"path": "ten", **arguments}
            answer = await a.call("fs:read_file", json.dumps(payload))
            assert answer.status == stubs.action.TOOL_OK, (arguments, answer.error.message)
            assert json.loads(answer.output)["content"] == "".join(want)
            native = (await ctx.tool("fs:read_file", payload)).raise_for_error()
            assert native.output["content"] == "".join(want)
        flags = {"query": "LINE 1", "ignore_case": "True", "limit": "1"}
        found = await a.call("fs:search", json.dumps(flags))
        assert len(json.loads(found.output)["matches"]) == 1
        refused = await a.call("fs:read_file", '{"path": "ten", "end_line": "last"}')
        assert refused.status == stubs.action.TOOL_INVALID_ARGUMENTS
        assert "end_line: must be integer, not string" in refused.error.message


async def test_what_is_asked_for_and_not_served_is_one_line_of_the_log(
    binary: Path, stubs: Stubs
) -> None:
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://secret"}
    async with (
        testing.server(binary, env=asked) as srv,
        Peer(stubs, srv.address, "a", [TOPIC]) as a,
    ):
        await a.until(await a.emit(TOPIC, "note"))
        assert a.errors == []
        (line,) = [line for line in srv.log.read_text().splitlines() if "OTEL_" in line]
        assert "level=INFO" in line
        assert "is set, but without --otel no telemetry is exported" in line
        assert "secret" not in line
        missing = await a.call("no:tool", '{"query": "x"}')
        assert missing.status == stubs.action.TOOL_NOT_FOUND
        assert missing.error.message == "Tool not found: no:tool"


async def test_nothing_is_told_where_nothing_is_missing(srv: testing.Server, stubs: Stubs) -> None:
    async with Peer(stubs, srv.address, "a", [TOPIC]) as a:
        await a.until(await a.emit(TOPIC, "note"))
        assert a.errors == []


async def test_what_a_prompt_folded_can_be_read_back(srv: testing.Server, stubs: Stubs) -> None:
    whole = "\n".join(f"line {n}" for n in range(200))
    async with (
        Peer(stubs, srv.address, "a", []) as a,
        loombridge.connect(srv.address, agent_id="a", session_id="run-1") as ctx,
    ):
        recorded = await ctx.context.record_step("my:report", output=whole)
        for name in (recorded.step.id, recorded.step.outcome_path):
            read = await a.call("fs:read_file", json.dumps({"path": name}))
            assert read.status == stubs.action.TOOL_OK, read.error.message
            assert json.loads(read.output)["content"] == whole


async def test_a_provider_that_left_is_told_at_once(srv: testing.Server, stubs: Stubs) -> None:
    async with Peer(stubs, srv.address, "a", []) as a:
        async with Peer(stubs, srv.address, "b", [], {"b.tool": lambda _args: 1}):
            assert (await a.call("b.tool")).status == stubs.action.TOOL_OK

        # The server may notice the end of the stream a moment later; a call that it
        # still sends there ends with the stream.
        result = await a.call("b.tool")
    assert (result.status, result.error.code) == (stubs.action.TOOL_ERROR, "EXECUTION_ERROR")
    assert result.error.message == "Execution failed: agent b is not connected"


@pytest.mark.parametrize("topics", [[], ["wire.ask"], ["wire.*"]])
async def test_a_request_is_answered_within_a_second(
    srv: testing.Server, stubs: Stubs, topics: list[str]
) -> None:
    async def answer(peer: Peer, topic: str, event: Any) -> None:
        if topic == "wire.ask":
            await peer.reply(event, b"re: " + event.payload)

    async with (
        Peer(stubs, srv.address, "asker", topics) as asker,
        Peer(stubs, srv.address, "answerer", ["wire.ask"], on_event=answer),
    ):
        for i in range(5):
            reply = await asker.request("wire.ask", b"%d" % i, timeout=30.0)
            assert reply.payload == b"re: %d" % i
            assert reply.type == "reply"


async def test_a_handler_of_the_other_api_that_raises(srv: testing.Server, stubs: Stubs) -> None:
    async with (
        Peer(stubs, srv.address, "asker", []) as asker,
        loombridge.connect(srv.address, agent_id="answerer") as answerer,
    ):

        @answerer.subscribe("wire.ask")
        async def on_ask(_event: loombridge.Event) -> None:
            raise ValueError("no answer")

        await answerer.attach()
        reply = await asker.request("wire.ask", b"?", timeout=PATIENCE)
        assert json.loads(reply.payload) == {"error": "no answer"}
        assert meta(reply, "error") == "no answer"


async def test_a_server_that_stops_says_unavailable(srv: testing.Server, stubs: Stubs) -> None:
    async with Peer(stubs, srv.address, "a", [TOPIC]) as a:
        a.may_come_back.clear()  # a server that stops may still take it
        await srv.stop()
        await srv.start()
        a.may_come_back.set()
        await asyncio.wait_for(a.came_back.wait(), 2 * PATIENCE)
        assert a.ended[0] is grpc.StatusCode.UNAVAILABLE
        sent = await a.emit(TOPIC, "note")
        assert await a.until(sent) == [sent]


async def test_after_a_kill_the_gap_comes_once(srv: testing.Server, stubs: Stubs) -> None:
    async with (
        Peer(stubs, srv.address, "listener", [TOPIC, "gap.*"]) as listener,
        Peer(stubs, srv.address, "speaker", []) as speaker,
    ):
        heard = await _speak(speaker, 5)
        assert await listener.until(heard[-1]) == heard
        for _ in range(2):
            missed = await _miss(srv, stubs, listener, speaker)
            marker = await speaker.emit(TOPIC, "marker")
            got = await listener.until(marker)
            # Different topics have no common order.
            assert sorted(got[:-1]) == sorted(missed)
            assert got.count(marker) == 1


async def _speak(speaker: Peer, count: int) -> list[str]:
    return [await speaker.emit(TOPIC, "note", b"%d" % i) for i in range(count)]


async def _miss(srv: testing.Server, stubs: Stubs, listener: Peer, speaker: Peer) -> list[str]:
    """Kill the server, and speak while the listener is away; return what it missed."""
    # What has been delivered is noted down some milliseconds later.
    await asyncio.sleep(0.2)
    for peer in (listener, speaker):
        peer.came_back.clear()
    listener.may_come_back.clear()
    await srv.kill9()
    await srv.start()
    await asyncio.wait_for(speaker.came_back.wait(), 2 * PATIENCE)
    missed = await _speak(speaker, 5)
    async with grpc.aio.insecure_channel(srv.address) as channel:
        bus: Any = stubs.bus.EventBusStub(channel)
        for topic in ("gap.deep.er", TOPIC, "agent.listener.replies"):
            event = speaker.event("acknowledged")
            answer = await bus.Publish(stubs.event.PublishRequest(topic=topic, event=event))
            assert answer.success, answer.error_message
            # A mailbox holds answers to questions that nobody asks any more.
            if not topic.endswith(".replies"):
                missed.append(event.id)
    listener.may_come_back.set()
    await asyncio.wait_for(listener.came_back.wait(), 2 * PATIENCE)
    return missed
