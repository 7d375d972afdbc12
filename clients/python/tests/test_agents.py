"""Attached agents on the real binary."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest

import loombridge
from fake_attach import PATIENCE, until
from loombridge import testing

# A server is started again within this many seconds, and found within two more.
RESTART = 60.0


@pytest.fixture
async def other(srv: testing.Server) -> AsyncGenerator[loombridge.Client, None]:
    """A second agent on the real server."""
    async with loombridge.connect(srv.address, agent_id="a2") as client:
        yield client


async def test_tools_of_an_agent(live: loombridge.Client, other: loombridge.Client) -> None:
    @live.tool
    async def word_count(text: str, scale: float = 1) -> dict[str, float]:
        """Count the words of a text."""
        return {"words": len(text.split()) * scale}

    @live.tool("disk.read")
    def read(path: str) -> str:
        raise FileNotFoundError(f"no file {path}")

    await live.attach()
    for agent in (other, live):
        result = await agent.tool("word_count", {"text": "a b c", "scale": 2})
        assert result.raise_for_error().output == {"words": 6}
        assert result.step
    missing = await other.tool("disk.read", {"path": "x"})
    assert missing.error == loombridge.ToolFailure("not_found", "no file x")
    wrong = await other.tool("word_count", {"txt": "a"})
    assert wrong.error
    assert wrong.error.code == "invalid_arguments"
    assert "text is missing" in wrong.error.message
    assert [step.tool_name for step in await other.context.steps()] == [
        "word_count",
        "disk.read",
        "word_count",
    ]


# E02
async def test_tools_say_their_level_and_the_need_of_approval(
    live: loombridge.Client, other: loombridge.Client
) -> None:
    @live.tool("disk:quiet", level=2)
    async def quiet() -> str:
        return "here"

    @live.tool("disk:wipe", requires_approval=True)
    async def wipe() -> str:
        raise AssertionError

    await live.attach()
    listed = {tool.name: (tool.level, tool.requires_approval) for tool in await other.tools.list()}
    assert (listed["disk:quiet"], listed["disk:wipe"]) == ((2, False), (1, True))
    plain = await other.context.assemble(goal="g")
    assert not any(tool.name.startswith("disk:") for tool in plain.tools)
    named = loombridge.PromptSettings(tools=loombridge.ToolSelection(names=["disk:w*"]))
    prompt = await other.context.assemble(goal="g", settings=named)
    offered = {tool.name for tool in prompt.tools}
    assert "disk:wipe" in offered
    assert "disk:quiet" not in offered
    assert (await other.tool("disk:quiet")).output == "here"
    refused = await other.tool("disk:wipe")
    assert refused.error
    assert refused.error.code == "permission_denied"
    assert refused.step
    assert refused.step.refused


async def test_a_tool_that_comes_later_and_an_agent_that_leaves(
    live: loombridge.Client, srv: testing.Server
) -> None:
    async with loombridge.connect(srv.address, agent_id="a2") as other:
        await other.attach()

        @other.tool
        async def later() -> str:
            return "here"

        await other.attach()
        assert (await live.tool("later")).output == "here"
        listed = {tool.name: tool.agent_id for tool in await live.tools.list()}
        assert listed["later"] == "a2"
        assert listed["fs:read_file"] == ""
    assert "later" not in {tool.name for tool in await live.tools.list()}
    gone = await live.tool("later")
    assert gone.error
    assert gone.error.code == "provider_away"
    assert "its provider a2 is not attached" in gone.error.message


async def test_slow_tools_end_with_their_timeout(
    live: loombridge.Client, other: loombridge.Client
) -> None:
    ended = asyncio.Event()

    @live.tool
    async def sleeps() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    await live.attach()
    result = await other.tool("sleeps", timeout=0.2)
    assert result.error
    assert result.error.code == "timeout"
    await asyncio.wait_for(ended.wait(), PATIENCE)


@pytest.mark.parametrize("durable", [False, True])
async def test_request_and_reply(
    live: loombridge.Client, other: loombridge.Client, durable: bool
) -> None:
    @live.subscribe("math.add", at_once=1)
    async def on_add(event: loombridge.Event) -> None:
        if event.payload["depth"]:
            # A request inside a handler, to the other agent.
            inner = await live.request("math.more", {"n": 1}, durable=durable, timeout=PATIENCE)
            await live.reply(event, inner.payload)

    @other.subscribe("math.more")
    async def on_more(event: loombridge.Event) -> None:
        await other.reply(event, event.payload["n"] + 1)

    await live.attach()
    await other.attach()
    answer = await other.request("math.add", {"depth": 1}, durable=durable, timeout=PATIENCE)
    assert (answer.payload, answer.source) == (2, "a1")
    with pytest.raises(loombridge.DeadlineExceededError, match="no reply"):
        await other.request("math.add", {"depth": 0}, timeout=0.1)


@pytest.mark.parametrize("durable", [False, True])
async def test_a_request_to_a_handler_that_raises(
    live: loombridge.Client, other: loombridge.Client, durable: bool
) -> None:
    @live.subscribe("math.add")
    async def on_add(event: loombridge.Event) -> None:
        raise ValueError(f"no numbers: {event.payload}")

    await live.attach()
    with pytest.raises(loombridge.RequestFailedError, match=r"^no numbers: x$") as caught:
        await other.request("math.add", "x", durable=durable, timeout=PATIENCE)
    assert caught.value.agent_id == "a1"


async def test_two_processes_with_one_agent_id(
    live: loombridge.Client, srv: testing.Server, other: loombridge.Client
) -> None:
    heard: list[str] = []
    async with loombridge.connect(srv.address, agent_id="a1") as twin:
        for name, client in (("first", live), ("second", twin)):

            def who(name: str = name) -> str:
                return name

            def hear(_event: loombridge.Event, name: str = name) -> None:
                heard.append(name)

            client.tool("who", parameters={})(who)
            client.subscribe("t")(hear)
            await client.attach()
        await other.emit("t")
        await until(lambda: len(heard) == 2)
        assert sorted(heard) == ["first", "second"]
        assert (await other.tool("who")).output == "second"
    assert (await other.tool("who")).output == "first"


@pytest.mark.parametrize("name", ["fs:list_dir", "fs_list_dir", "who", "w.ho"])
async def test_names_of_tools_are_not_to_be_had_twice(
    live: loombridge.Client, other: loombridge.Client, name: str
) -> None:
    def answer() -> str:
        return "first"

    live.tool("who", parameters={})(answer)
    live.tool("w:ho", parameters={})(answer)
    await live.attach()
    other.tool(name, parameters={})(lambda: "second")
    with pytest.raises(loombridge.ToolNameTakenError) as caught:
        await other.attach()
    assert caught.value.tool == name
    assert caught.value.agent_id == ("" if name.startswith("fs") else "a1")
    assert (await live.tool("who")).output == "first"


async def test_a_tool_is_known_after_a_restart() -> None:
    async with testing.server() as srv:
        async with loombridge.connect(srv.address, agent_id="a2") as provider:
            provider.tool("sum", parameters={})(lambda: 3)
            await provider.attach()
            await asyncio.sleep(0.5)  # tools are stored within a fifth of that
            await srv.kill9()
            await provider.close()
        await srv.start()
        async with loombridge.connect(srv.address, agent_id="a1", wait=RESTART) as caller:
            away = await caller.tool("sum")
            assert away.error
            assert away.error.code == "provider_away"
            with pytest.raises(loombridge.ToolNotFoundError):
                await caller.tool("summ")


async def test_more_tools_than_one_message_holds(
    live: loombridge.Client, other: loombridge.Client, srv: testing.Server
) -> None:
    text = "x" * 12_000
    clients = [loombridge.connect(srv.address, agent_id=f"large{i}") for i in range(17)]
    async with AsyncExitStack() as stack:
        for i, connecting in enumerate(clients):
            client = await stack.enter_async_context(connecting)
            for k in range(20):
                client.tool(f"large{i:02}:{k}", description=text, parameters={})(lambda: None)
            await client.attach()
        names = [tool.name for tool in await other.tools.list()]
    assert names == sorted(names)
    assert sum(name.startswith("large") for name in names) == 17 * 20


async def test_a_request_that_nobody_hears(live: loombridge.Client) -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(loombridge.NobodyListensError, match=r"math\.nobody"):
        await live.request("math.nobody", 1, timeout=PATIENCE)
    assert asyncio.get_running_loop().time() - began < PATIENCE / 2


EXITS = """
import asyncio, sys, loombridge

async def main():
    async with loombridge.connect(sys.argv[1], agent_id="a3") as ctx:
        ctx.subscribe("t")(KIND)
        await ctx.attach()
        await ctx.emit("t")
        await ctx.serve()

async def soft(event): sys.exit(3)
def hard(event): sys.exit(3)
asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["soft", "hard"])
async def test_a_handler_may_end_the_program(srv: testing.Server, kind: str) -> None:
    code = EXITS.replace("KIND", kind)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, srv.address, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(), RESTART)
    assert (process.returncode, errors.decode()) == (3, "")


async def test_filters_patterns_and_since(
    live: loombridge.Client, other: loombridge.Client
) -> None:
    first = await other.emit("news.a", "old", type="small", tags=["x"])
    async with (
        live.subscribe("news.**") as everything,
        live.subscribe("news.**", event_types=["big"]) as big,
        live.subscribe({"news.a": 0}) as from_the_start,
        live.events.subscribe("news.*", event_types=["big"], headers={"h": "v"}) as own,
    ):
        await other.emit("news.a", "new", type="big", headers={"h": "v"})
        await other.emit("news.b.c", "deep", volatile=True)
        heard = [await anext(everything) for _ in range(2)]
        assert {event.payload for event in heard} == {"new", "deep"}
        assert (await anext(big)).payload == "new"
        assert [(await anext(from_the_start)).payload for _ in range(2)] == ["old", "new"]
        assert (await anext(own)).payload == "new"
    async with live.subscribe("news.**", since=first.time) as later:
        event = await anext(later)
    assert (event.payload, event.type) == ("new", "big")
    with pytest.raises(loombridge.PositionUnknownError):
        async with live.subscribe({"news.a": 99}):
            pass


# C21
async def test_events_of_a_session(live: loombridge.Client, srv: testing.Server) -> None:
    async with (
        loombridge.connect(srv.address, agent_id="teller", session_id="s1") as of_s1,
        loombridge.connect(srv.address, agent_id="teller", session_id="s2") as of_s2,
        live.subscribe("talk", session_id="s1") as shared,
        live.subscribe("talk") as everything,
        live.events.subscribe("talk", session_id="s2") as own,
    ):
        for teller, told in ((of_s1, 1), (of_s2, 2), (of_s1, 3), (of_s2, 4)):
            await teller.emit("talk", told)
        assert [(await anext(shared)).payload for _ in range(2)] == [1, 3]
        assert [(await anext(own)).payload for _ in range(2)] == [2, 4]
        assert [(await anext(everything)).payload for _ in range(4)] == [1, 2, 3, 4]


async def test_agents_live_through_kill_9(live: loombridge.Client, srv: testing.Server) -> None:
    heard: list[Any] = []

    @live.tool
    async def word_count(text: str) -> int:
        return len(text.split())

    async def note(event: loombridge.Event) -> None:
        heard.append((event.topic, event.payload))

    live.subscribe("t", at_once=1)(note)
    live.subscribe("p.*", at_once=1)(note)
    await live.attach()
    await live.emit("t", 1)
    await live.emit("p.a", 1)
    await until(lambda: len(heard) == 2)
    await srv.kill9()
    await srv.start()
    async with loombridge.connect(srv.address, agent_id="a2") as other:
        await other.emit("t", 2)
        await other.emit("p.a", 2)
        await other.emit("p.b", 1)
        async with asyncio.timeout(RESTART):
            await live.attach()
            assert (await other.tool("word_count", {"text": "a b"})).output == 2
            while len(heard) < 5:  # noqa: ASYNC110  nothing tells of it
                await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert sorted(heard) == [("p.a", 1), ("p.a", 2), ("p.b", 1), ("t", 1), ("t", 2)]


async def test_a_request_survives_a_restart(live: loombridge.Client, srv: testing.Server) -> None:
    asked: list[loombridge.Event] = []
    live.subscribe("slow")(asked.append)
    await live.attach()
    asking = asyncio.create_task(live.request("slow", durable=True, timeout=RESTART))
    (request,) = await until(lambda: asked)
    await srv.restart()
    await live.attach()
    await live.reply(request, "late")
    assert (await asking).payload == "late"


async def test_a_slow_handler_gets_everything(
    live: loombridge.Client, other: loombridge.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loombridge._inbox.INBOX_EVENTS", 8)
    heard: list[int] = []

    async def note(event: loombridge.Event) -> None:
        await asyncio.sleep(0.002)
        heard.append(event.payload)

    live.subscribe("t", at_once=1)(note)
    await live.attach()
    for n in range(100):
        await other.emit("t", n)
    async with asyncio.timeout(RESTART):
        while len(heard) < 100:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.01)
    assert heard == list(range(100))
