"""Handlers and loops of an attached agent, on a fake server."""

import asyncio
from datetime import timedelta
from typing import Any

import grpc
import pytest

import loombridge
from fake_attach import NOW, PATIENCE, Attach, Heard, until, wire
from loombridge import _inbox
from loombridge.v1 import errors_pb2


async def test_handlers_hear_what_they_asked_for(agent: loombridge.Client, attach: Attach) -> None:
    news, exact, typed = Heard(), Heard(), Heard()
    agent.subscribe("news.**")(news)
    agent.subscribe("news.*")(exact)
    agent.subscribe("news.**", event_types=["big"], headers={"h": "v"})(typed)
    await agent.attach()
    side = await attach.side()
    assert [place.topic for place in side.hello.topics] == ["news.**", "news.*"]
    assert not side.hello.topics[0].event_types
    side.event("news", 1)
    side.event("news.a.b", 1, payload_json='"deep"')
    side.event("news.a", 1, payload_json='"flat"')
    side.event("news.a", 2, payload_json='"big"', type="big", headers={"h": "v", "x": "y"})
    side.event("news.a", 3, payload_json='"half"', type="big")
    await news.until("deep", "flat", "big", "half")
    await exact.until("flat", "big", "half")
    await typed.until("big")


async def test_events_carry_type_and_tags(agent: loombridge.Client, attach: Attach) -> None:
    async with agent.subscribe("t") as events:
        attach.sides[0].event("t", 1, type="kind", tags=["x", "y"], source="a2")
        event = await anext(events)
    assert (event.type, event.tags, event.source) == ("kind", ("x", "y"), "a2")


async def test_a_handler_that_raises_ends_nothing(
    agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    @agent.subscribe("t", at_once=1)
    def on_event(event: loombridge.Event) -> None:
        if event.payload == 1:
            raise RuntimeError("not this one")
        heard.append(event.payload)

    await agent.attach()
    side = await attach.side()
    side.event("t", 1)
    side.event("t", 2, payload_json="9" * 5000)
    side.event("t", 3)
    await until(lambda: heard == [3])
    assert "not this one" in caplog.text
    assert "can't be read" in caplog.text
    assert len(attach.sides) == 1


async def test_handlers_run_at_the_same_time_or_in_order(
    agent: loombridge.Client, attach: Attach
) -> None:
    go = asyncio.Event()
    ended: list[Any] = []

    async def handle(event: loombridge.Event) -> None:
        if event.payload == 1:
            await go.wait()
        ended.append(event.payload)

    agent.subscribe("wide")(handle)
    agent.subscribe("narrow", at_once=1)(handle)
    await agent.attach()
    side = await attach.side()
    side.event("wide", 1)
    side.event("wide", 2)
    await until(lambda: ended == [2])
    side.event("narrow", 1)
    side.event("narrow", 3)
    await asyncio.sleep(0.02)
    go.set()
    await until(lambda: len(ended) == 4)
    assert ended.index(1) < ended.index(3)


@pytest.mark.parametrize("at_once", [1, 2])
async def test_a_handler_has_one_feeder_whatever_happens(
    agent: loombridge.Client, attach: Attach, at_once: int
) -> None:
    running, most = 0, 0
    go = asyncio.Event()
    begun: list[int] = []

    @agent.subscribe({"t": 0}, at_once=at_once)
    async def handler(event: loombridge.Event) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        begun.append(event.sequence)
        await go.wait()
        running -= 1

    await agent.attach()
    for failures in range(3):
        side = await attach.side(failures + 1)
        side.event("t", failures + 1)
        await until(lambda: len(begun) == min(failures + 1, at_once))  # noqa: B023  awaited here
        # The stream fails in a way that attaching again can't mend; serve says so.
        serving = asyncio.create_task(agent.serve())
        await asyncio.sleep(0)
        side.end("AGENT_NOT_OWNED", grpc.StatusCode.PERMISSION_DENIED)
        with pytest.raises(loombridge.AgentNotOwnedError):
            await asyncio.wait_for(serving, PATIENCE)
        await agent.attach()
    side = await attach.side(4)
    for sequence in (4, 5, 6):
        side.event("t", sequence)
    await asyncio.sleep(0.1)
    go.set()
    await until(lambda: len(begun) == 6)
    assert (most, begun) == (at_once, [1, 2, 3, 4, 5, 6])


async def test_a_slow_handler_loses_nothing_durable(
    agent: loombridge.Client, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_inbox, "INBOX_EVENTS", 4)
    go = asyncio.Event()
    heard: list[int] = []

    @agent.subscribe({"t": 0}, at_once=1)
    async def slow(event: loombridge.Event) -> None:
        await go.wait()
        heard.append(event.payload)

    quick = Heard()
    agent.subscribe("u")(quick)
    await agent.attach()
    side = await attach.side()
    for sequence in range(1, 11):
        side.event("t", sequence)
    side.event("t", 0)
    await until(lambda: "t" not in side.topics)
    side.event("u", 1)
    await quick.until(1)
    go.set()
    await until(lambda: "t" in side.topics)
    after = side.topics["t"].after_sequence
    assert 4 <= after <= 6
    for sequence in range(after + 1, 11):
        side.event("t", sequence)
    await until(lambda: heard == list(range(1, 11)))


async def test_a_handler_takes_one_argument(agent: loombridge.Client) -> None:
    def two(_a: Any, _b: Any) -> None: ...

    with pytest.raises(TypeError, match="takes one argument"):
        agent.subscribe("t")(two)
    listener = agent.subscribe("t")
    listener(Heard())
    with pytest.raises(RuntimeError, match="in use"):
        listener(Heard())
    with pytest.raises(RuntimeError, match="a handler takes"):
        await anext(listener)


def test_subscribe_without_parentheses_says_what_to_write() -> None:
    client: Any = loombridge.Client(None, "a", "")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r'write @ctx\.subscribe\("topic"\)'):

        @client.subscribe
        async def on_event(_event: loombridge.Event) -> None: ...


@pytest.mark.parametrize("topic", ["", "a..b", "a.*x", "**.a", "x" * 257, ".a"])
def test_wrong_topics_are_refused_at_once(topic: str) -> None:
    client: Any = loombridge.Client(None, "a", "")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="topic"):
        client.subscribe(topic)


def test_wrong_options_are_refused_at_once() -> None:
    client: Any = loombridge.Client(None, "a", "")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="takes no sequence"):
        client.subscribe({"a.*": 3})
    with pytest.raises(ValueError, match="qos must be one of 'realtime', 'batched'"):
        client.subscribe("a", qos="fast")
    with pytest.raises(ValueError, match="since needs a time zone"):
        client.subscribe("a", since=NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="at_once must be at least 1"):
        client.subscribe("a", at_once=0)


async def test_a_loop_joins_and_leaves(agent: loombridge.Client, attach: Attach) -> None:
    await agent.attach()
    side = await attach.side()
    attach.ends["t"] = 40
    async with agent.subscribe("t") as events:
        assert events.positions == {"t": 40}
        side.event("t", 41)
        side.event("t", 41)
        side.event("t", 42)
        assert [(await anext(events)).sequence for _ in range(2)] == [41, 42]
        assert events.positions == {"t": 42}
    await until(lambda: "t" not in side.topics)
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_leaving_a_loop_ends_the_subscription(
    agent: loombridge.Client, attach: Attach
) -> None:
    await agent.attach()
    side = await attach.side()

    async def first() -> int:
        async for event in agent.subscribe({"t": 0}):
            return event.sequence
        return 0

    task = asyncio.create_task(first())
    await until(lambda: "t" in side.topics)
    side.event("t", 1)
    assert await task == 1
    await until(lambda: "t" not in side.topics)


async def test_closing_ends_a_loop_that_waits(agent: loombridge.Client, attach: Attach) -> None:
    listener = agent.subscribe("t")

    async def all_of_them() -> list[Any]:
        return [event.payload async for event in listener]

    task = asyncio.create_task(all_of_them())
    await until(lambda: attach.sides and "t" in attach.sides[0].topics)
    listener.close()
    assert await asyncio.wait_for(task, PATIENCE) == []


async def test_a_refused_topic_is_the_loops_error(agent: loombridge.Client, attach: Attach) -> None:
    await agent.attach()
    attach.refuse_topics.add("t")
    with pytest.raises(loombridge.PositionUnknownError, match="ends earlier"):
        async with agent.subscribe({"t": 99}):
            pass
    async with agent.subscribe("u") as events:
        attach.sides[0].event("u", 1)
        assert (await anext(events)).sequence == 1


async def test_a_refused_topic_of_a_handler_ends_serve(
    agent: loombridge.Client, attach: Attach
) -> None:
    await agent.attach()
    serving = asyncio.create_task(agent.serve())
    await asyncio.sleep(0)
    attach.refuse_topics.add("t")
    agent.subscribe({"t": 99})(Heard())
    with pytest.raises(loombridge.PositionUnknownError):
        await asyncio.wait_for(serving, PATIENCE)


async def test_two_loops_on_one_topic_share_it(agent: loombridge.Client, attach: Attach) -> None:
    attach.ends["t"] = 2
    async with agent.subscribe("t") as new:
        side = attach.sides[0]
        async with agent.subscribe({"t": 0}) as old:
            assert side.topics["t"].after_sequence == 0
            past = wire(NOW - timedelta(seconds=1))
            for sequence in (1, 2):
                side.event("t", sequence, create_time=past)
            side.event("t", 3)
            assert [(await anext(old)).sequence for _ in range(3)] == [1, 2, 3]
        assert (await anext(new)).sequence == 3
        await until(lambda: list(side.topics) == ["t"])


async def test_a_newcomer_is_not_given_the_past_of_others(
    agent: loombridge.Client, attach: Attach
) -> None:
    past = wire(NOW - timedelta(hours=1))
    async with agent.subscribe({"t.a": 0}) as old, agent.subscribe("t.*") as new:
        side = attach.sides[0]
        side.event("t.a", 1, create_time=past)
        side.event("t.a", 2)
        assert [(await anext(old)).sequence for _ in range(2)] == [1, 2]
        assert (await anext(new)).sequence == 2


async def test_a_servers_clock_may_go_back(agent: loombridge.Client, attach: Attach) -> None:
    attach.heartbeat = 0.01
    heard = Heard()
    agent.subscribe("t.*")(heard)
    await agent.attach()
    side = await attach.side()
    attach.now = NOW - timedelta(hours=1)
    beats = side.beats
    await until(lambda: side.beats > beats + 1)
    side.event("t.a", 1, create_time=wire(attach.now))
    await heard.until(1)


def test_the_fake_refuses_as_the_server_does() -> None:
    assert errors_pb2.ERROR_REASON_POSITION_UNKNOWN == 18
