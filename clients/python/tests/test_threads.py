"""Plain functions run in threads of the client's own, and one that hangs holds up no other."""

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator

import pytest

import loombridge
from fake_attach import Attach, until
from loombridge import _threads, testing
from loombridge.v1 import tools_pb2

STUCK = 40
"""More calls than the event loop's shared pool has threads, on any machine."""


@pytest.fixture
def gate() -> Generator[threading.Event, None, None]:
    """Holds plain functions until the end of a test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
async def other(srv: testing.Server) -> AsyncGenerator[loombridge.Client, None]:
    """A second agent on the real server."""
    async with loombridge.connect(srv.address, agent_id="a2") as client:
        yield client


async def test_stuck_functions_hold_up_no_others(
    live: loombridge.Client, other: loombridge.Client, gate: threading.Event
) -> None:
    heard: list[int] = []
    begun: list[int] = []

    @live.subscribe("stuck")
    def stuck(event: loombridge.Event) -> None:
        begun.append(event.payload)
        gate.wait()

    @live.subscribe("fine")
    def fine(event: loombridge.Event) -> None:
        heard.append(event.payload)

    @live.tool
    def word_count(text: str) -> int:
        """Count the words of a text."""
        return len(text.split())

    await live.attach()
    for n in range(STUCK):
        await other.emit("stuck", n)
    await until(lambda: len(begun) == _threads.THREADS_PER_FUNCTION)
    await other.emit("fine", 1)
    await until(lambda: heard == [1])
    assert (await other.tool("word_count", {"text": "a b"}, timeout=5)).output == 2
    # The pool that the event loop shares with everybody is untouched.
    async with asyncio.timeout(60):
        assert await asyncio.to_thread(lambda: 3) == 3
    gate.set()
    await until(lambda: len(begun) == STUCK)


async def test_stuck_tools_hold_up_no_others(
    agent: loombridge.Client, attach: Attach, gate: threading.Event
) -> None:
    @agent.tool
    def stuck() -> None:
        gate.wait()

    @agent.tool
    async def hangs() -> None:
        await asyncio.sleep(60)

    @agent.tool
    def fine() -> int:
        return 1

    await agent.attach()
    side = await attach.side()
    for n in range(100):
        side.call(f"s{n}", "stuck", seconds=60)
        side.call(f"h{n}", "hangs", seconds=60)
    side.call("f", "fine")
    assert (await side.result("f")).output_json == "1"


async def test_a_stuck_function_of_which_all_threads_are_taken(
    agent: loombridge.Client,
    attach: Attach,
    gate: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_threads, "THREADS_PER_FUNCTION", 2)

    @agent.tool
    def stuck() -> int:
        gate.wait()
        return 1

    await agent.attach()
    side = await attach.side()
    for n in range(3):
        side.call(f"c{n}", "stuck", seconds=0.1)
    for n in range(3):
        answer = await side.result(f"c{n}")
        assert answer.error_code == tools_pb2.TOOL_ERROR_CODE_TIMEOUT
    # The threads come back when the function does, though nobody waits any more.
    gate.set()
    side.call("c3", "stuck")
    assert (await side.result("c3")).output_json == "1"


async def test_a_handler_has_a_timeout(
    agent: loombridge.Client,
    attach: Attach,
    gate: threading.Event,
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun: list[int] = []
    cancelled: list[int] = []

    @agent.subscribe({"t": 0}, at_once=1, timeout=0.05)
    def stuck(event: loombridge.Event) -> None:
        begun.append(event.sequence)
        gate.wait()

    @agent.subscribe({"u": 0}, timeout=0.05)
    async def hangs(event: loombridge.Event) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.append(event.sequence)

    await agent.attach()
    side = await attach.side()
    side.event("t", 1)
    side.event("t", 2)
    side.event("u", 1)
    await until(lambda: (begun, cancelled) == ([1, 2], [1]))
    await until(lambda: caplog.text.count("did not end within 0.05 s on an event of") == 3)


async def test_what_a_plain_function_gets_and_gives(
    agent: loombridge.Client, attach: Attach
) -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")

    @agent.tool
    def names() -> list[str]:
        trace.set("changed in the thread")
        return [trace.get(), threading.current_thread().name]

    @agent.tool
    def stops() -> None:
        raise StopIteration

    await agent.attach()
    side = await attach.side()
    side.call("c1", "names")
    side.call("c2", "stops")
    assert (await side.result("c1")).output_json == '["changed in the thread","loombridge"]'
    assert "StopIteration" in (await side.result("c2")).error_message
    assert trace.get() == "none"


async def test_closing_waits_a_moment_for_what_still_runs(
    agent: loombridge.Client, attach: Attach, gate: threading.Event
) -> None:
    ended: list[int] = []

    @agent.subscribe({"t": 0})
    def slow(event: loombridge.Event) -> None:
        time.sleep(0.2)
        ended.append(event.sequence)

    await agent.attach()
    side = await attach.side()
    side.event("t", 1)
    await asyncio.sleep(0.05)
    await agent.close()
    assert ended == [1]


async def test_closing_leaves_behind_what_never_ends(
    agent: loombridge.Client,
    attach: Attach,
    gate: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_threads, "CLOSE_TIMEOUT", 0.05)
    begun = threading.Event()

    @agent.subscribe({"t": 0})
    def stuck(event: loombridge.Event) -> None:
        begun.set()
        gate.wait()

    await agent.attach()
    side = await attach.side()
    side.event("t", 1)
    await until(begun.is_set)
    async with asyncio.timeout(60):
        await agent.close()


PROGRAM = """
import asyncio, sys, threading, time
import loombridge

async def main():
    async with loombridge.connect(sys.argv[1], agent_id="a1") as ctx:
        begun = threading.Event()

        @ctx.subscribe("t")
        def stuck(event):
            begun.set()
            time.sleep(3600)

        await ctx.attach()
        await ctx.emit("t")
        while not begun.is_set():
            await asyncio.sleep(0.01)

asyncio.run(main())
"""


async def test_a_program_with_a_stuck_function_ends(srv: testing.Server) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, srv.address)
    async with asyncio.timeout(60):
        assert await process.wait() == 0
