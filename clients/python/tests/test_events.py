"""Subscriptions: order, resuming, leaving."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, refuse
from loombridge import _rpc
from loombridge.v1 import events_pb2 as pb


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01, 0.01))


def ready(**positions: int) -> pb.SubscribeResponse:
    return pb.SubscribeResponse(
        ready=pb.SubscriptionReady(
            positions=[
                pb.TopicPosition(topic=topic, after_sequence=after)
                for topic, after in positions.items()
            ]
        )
    )


def event(sequence: int, *, topic: str = "t", dropped: int = 0) -> pb.SubscribeResponse:
    return pb.SubscribeResponse(
        event=pb.Event(
            id=f"e{sequence}", topic=topic, sequence=sequence, payload_json=f'{{"n":{sequence}}}'
        ),
        dropped_volatile=dropped,
    )


class Topic:
    """A topic of some events whose stream breaks after each two of them."""

    def __init__(self, last: int, *, at_a_time: int = 2) -> None:
        self.last = last
        self.at_a_time = at_a_time
        self.asked: list[int | None] = []

    async def __call__(
        self, request: pb.SubscribeRequest, call: Call
    ) -> AsyncGenerator[pb.SubscribeResponse, None]:
        place = request.topics[0]
        self.asked.append(place.after_sequence if place.HasField("after_sequence") else None)
        begin = self.asked[-1] or 0
        yield ready(t=begin)
        for sequence in range(begin + 1, min(begin + self.at_a_time, self.last) + 1):
            yield event(sequence)
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "bye", reason="SHUTTING_DOWN")


async def take(subscription: loombridge.Subscription, count: int) -> list[int]:
    got: list[int] = []
    async for each in subscription:
        got.append(each.sequence)
        if len(got) == count:
            break
    return got


async def test_breaks_lose_nothing_and_repeat_nothing(fake: Fake, ctx: loombridge.Client) -> None:
    topic = Topic(7)
    fake.on_stream(_rpc.SUBSCRIBE, topic)
    subscription = ctx.events.subscribe({"t": 0})
    assert await take(subscription, 7) == [1, 2, 3, 4, 5, 6, 7]
    assert topic.asked == [0, 2, 4, 6]
    assert subscription.positions == {"t": 7}
    subscription.close()


async def test_the_place_of_a_new_subscription_survives_a_break(
    fake: Fake, ctx: loombridge.Client
) -> None:
    asked: list[int | None] = []

    async def stream(
        request: pb.SubscribeRequest, call: Call
    ) -> AsyncGenerator[pb.SubscribeResponse, None]:
        place = request.topics[0]
        asked.append(place.after_sequence if place.HasField("after_sequence") else None)
        yield ready(t=40)
        if len(asked) == 1:
            await refuse(call, grpc.StatusCode.UNAVAILABLE, "bye")
        yield event(41)

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    async with ctx.events.subscribe("t") as subscription:
        assert subscription.positions == {"t": 40}
        assert (await anext(subscription)).sequence == 41
    assert asked == [None, 40]


async def test_events_seen_before_are_left_out(fake: Fake, ctx: loombridge.Client) -> None:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[pb.SubscribeResponse, None]:
        yield ready(t=1, u=0)
        for sequence in (1, 2, 2, 1, 3):
            yield event(sequence)
        yield event(1, topic="u")
        yield event(0, dropped=5)
        yield event(0, dropped=1)

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    async with ctx.events.subscribe({"t": 1, "u": 0}) as subscription:
        got = [(each.topic, each.sequence) async for each in subscription]
    assert got == [("t", 2), ("t", 3), ("u", 1), ("t", 0), ("t", 0)]
    assert subscription.dropped_volatile == 6


async def test_without_reconnect_a_break_is_an_error(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on_stream(_rpc.SUBSCRIBE, Topic(2))
    async with ctx.events.subscribe({"t": 0}, reconnect=False) as subscription:
        assert await take(subscription, 2) == [1, 2]
        with pytest.raises(loombridge.ShuttingDownError):
            await anext(subscription)


async def test_other_errors_end_the_subscription(fake: Fake, ctx: loombridge.Client) -> None:
    async def stream(_request: Any, call: Call) -> AsyncGenerator[pb.SubscribeResponse, None]:
        yield ready(t=0)
        yield event(1)
        await refuse(call, grpc.StatusCode.RESOURCE_EXHAUSTED, "slow", reason="SLOW_CONSUMER")

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    subscription = ctx.events.subscribe({"t": 0})
    assert (await anext(subscription)).payload == {"n": 1}
    with pytest.raises(loombridge.SlowConsumerError):
        await anext(subscription)
    assert subscription.positions == {"t": 1}


async def test_a_server_that_never_stood_is_given_up(fake: Fake, ctx: loombridge.Client) -> None:
    async def stream(_request: Any, call: Call) -> AsyncGenerator[pb.SubscribeResponse, None]:
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "away")
        yield ready()

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    with pytest.raises(loombridge.ServerUnreachableError):
        await anext(ctx.events.subscribe("t"))


async def test_a_subscription_must_stand_in_time(fake: Fake, ctx: loombridge.Client) -> None:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[pb.SubscribeResponse, None]:
        await asyncio.sleep(60)
        yield ready()

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    with pytest.raises(loombridge.DeadlineExceededError, match="did not stand"):
        async with ctx.events.subscribe("t", timeout=0.05):
            pass


class Endless:
    """A topic that never ends, and knows when its reader left."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.waits = asyncio.Event()

    async def __call__(
        self, _request: Any, _call: Call
    ) -> AsyncGenerator[pb.SubscribeResponse, None]:
        try:
            yield ready(t=0)
            yield event(1)
            self.waits.set()
            await asyncio.sleep(60)
        finally:
            self.left.set()


async def until_it_waits(topic: Endless, subscription: loombridge.Subscription) -> None:
    """Return when the reader has taken the event and waits for the next one."""
    await topic.waits.wait()
    async with asyncio.timeout(60):
        while subscription.positions["t"] != 1:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.001)


async def test_leaving_the_loop_ends_the_call(fake: Fake, ctx: loombridge.Client) -> None:
    topic = Endless()
    fake.on_stream(_rpc.SUBSCRIBE, topic)
    async for each in ctx.events.subscribe({"t": 0}):
        assert each.sequence == 1
        break
    await asyncio.wait_for(topic.left.wait(), 60)


async def test_leaving_the_block_ends_the_call(fake: Fake, ctx: loombridge.Client) -> None:
    topic = Endless()
    fake.on_stream(_rpc.SUBSCRIBE, topic)
    async with ctx.events.subscribe({"t": 0}) as subscription:
        await anext(subscription)
    await asyncio.wait_for(topic.left.wait(), 60)
    with pytest.raises(StopAsyncIteration):
        await anext(subscription)


async def test_closing_ends_a_loop_that_waits(fake: Fake, ctx: loombridge.Client) -> None:
    topic = Endless()
    fake.on_stream(_rpc.SUBSCRIBE, topic)
    subscription = ctx.events.subscribe({"t": 0})
    task = asyncio.create_task(take(subscription, 2))
    await until_it_waits(topic, subscription)
    subscription.close()
    subscription.close()
    assert await asyncio.wait_for(task, 60) == [1]


async def test_a_cancelled_loop_that_is_forgotten_ends_the_call(
    fake: Fake, ctx: loombridge.Client
) -> None:
    topic = Endless()
    fake.on_stream(_rpc.SUBSCRIBE, topic)
    subscription = ctx.events.subscribe({"t": 0})
    task = asyncio.create_task(take(subscription, 2))
    await until_it_waits(topic, subscription)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not topic.left.is_set()
    # The task's error refers to the loop, and the loop to the subscription.
    del task, subscription
    await asyncio.wait_for(topic.left.wait(), 60)


async def test_patterns_resume_from_what_was_read(fake: Fake, ctx: loombridge.Client) -> None:
    asked: list[pb.SubscribeRequest] = []

    async def stream(
        request: pb.SubscribeRequest, call: Call
    ) -> AsyncGenerator[pb.SubscribeResponse, None]:
        asked.append(request)
        yield ready()
        for sequence in range(1, 3):
            message = event(sequence, topic="news.a")
            message.event.create_time.FromSeconds(1000 + 60 * sequence)
            yield message
        if len(asked) == 1:
            await refuse(call, grpc.StatusCode.UNAVAILABLE, "bye")
        yield event(0, topic="news.b")

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    subscription = ctx.events.subscribe(
        "news.*", qos="realtime", event_types=["x"], headers={"h": "v"}
    )
    assert await take(subscription, 3) == [1, 2, 0]
    subscription.close()
    first, second = (request.topics[0] for request in asked)
    assert (first.quality_of_service, list(first.event_types), dict(first.headers)) == (
        pb.QUALITY_OF_SERVICE_REALTIME,
        ["x"],
        {"h": "v"},
    )
    assert not first.HasField("since")
    assert second.since.seconds == 1000 + 60
    assert subscription.positions == {"news.*": None}


async def test_a_pattern_that_breaks_before_its_first_event(
    fake: Fake, ctx: loombridge.Client
) -> None:
    asked: list[pb.SubscribeRequest] = []

    async def stream(
        request: pb.SubscribeRequest, call: Call
    ) -> AsyncGenerator[pb.SubscribeResponse, None]:
        asked.append(request)
        message = ready()
        message.ready.server_time.FromSeconds(1000)
        yield message
        if len(asked) == 1:
            await refuse(call, grpc.StatusCode.UNAVAILABLE, "bye")
        missed = event(1, topic="news.a")
        missed.event.create_time.FromSeconds(1001)
        yield missed

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    subscription = ctx.events.subscribe("news.*")
    assert await take(subscription, 1) == [1]
    subscription.close()
    assert [request.topics[0].since.seconds for request in asked] == [0, 1000]


async def test_since(fake: Fake, ctx: loombridge.Client) -> None:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[pb.SubscribeResponse, None]:
        yield ready(t=5)

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    since = datetime(2026, 1, 2, tzinfo=UTC)
    subscription = ctx.events.subscribe({"t": None, "u": 4, "p.**": None}, since=since)
    assert [each async for each in subscription] == []
    t, u, p = fake.requests[0].topics
    assert t.since.ToDatetime(tzinfo=UTC) == p.since.ToDatetime(tzinfo=UTC) == since
    assert not t.HasField("after_sequence")
    assert (u.after_sequence, u.HasField("since")) == (4, False)
    assert subscription.positions == {"t": 5, "u": 4, "p.**": None}


async def test_payloads_and_headers(fake: Fake, ctx: loombridge.Client) -> None:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[pb.SubscribeResponse, None]:
        yield ready(t=0)
        big = pb.Event(topic="t", sequence=1, payload_json="9007199254740993", source="a2")
        raw = pb.Event(topic="t", sequence=2, payload_bytes=b"\xff", headers={"h": "v"})
        yield pb.SubscribeResponse(event=big)
        yield pb.SubscribeResponse(event=raw)

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    first, second = [each async for each in ctx.events.subscribe({"t": 0})]
    assert (first.payload, first.source) == (9007199254740993, "a2")
    assert (second.payload, second.headers) == (b"\xff", {"h": "v"})
