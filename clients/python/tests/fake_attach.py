"""The server's side of Attach: it notes what agents say, and says what a test tells it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

import loombridge
from fake import Call, refuse
from loombridge import _progress
from loombridge.v1 import attach_pb2 as pb
from loombridge.v1 import events_pb2

T = TypeVar("T")

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
"""The time of a fake server, unless a test sets another."""

PATIENCE = 60.0
"""Seconds a test waits for something that should have come."""


async def until(condition: Callable[[], T]) -> T:
    """Wait until a condition holds; return its value."""
    async with asyncio.timeout(PATIENCE):
        while not (value := condition()):  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.002)
    return value


def wire(moment: datetime) -> Timestamp:
    result = Timestamp()
    result.FromDatetime(moment)
    return result


class Side:
    """The server's side of one stream."""

    def __init__(self, hello: pb.AttachHello) -> None:
        self.hello = hello
        self.got: list[pb.AttachRequest] = []
        self.topics = {place.topic: place for place in hello.topics}
        self.results: dict[str, pb.AttachToolResult] = {}
        self.beats = 0
        self.gone = asyncio.Event()
        self.out: asyncio.Queue[Any] = asyncio.Queue()

    def say(self, **item: Any) -> None:
        """Send a message, given by the name of its item."""
        self.out.put_nowait(pb.AttachResponse(**item))

    def event(self, topic: str, sequence: int = 0, **fields: Any) -> None:
        """Send an event, whose payload is its sequence unless given."""
        fields.setdefault("create_time", wire(NOW))
        fields.setdefault("payload_json", str(sequence))
        fields.setdefault("id", f"{topic}-{sequence}")
        dropped = fields.pop("dropped", 0)
        event = events_pb2.Event(topic=topic, sequence=sequence, **fields)
        self.say(event=event, dropped=dropped)

    def call(self, call_id: str, name: str, arguments: str = "{}", seconds: float = 5) -> None:
        """Ask for a run of a tool."""
        limit = Duration(nanos=int(seconds * 1e9) % 10**9, seconds=int(seconds))
        self.say(
            tool_call=pb.AttachToolCall(
                call_id=call_id,
                name=name,
                arguments_json=arguments,
                timeout=limit,
                caller_id="a2",
            )
        )

    async def result(self, call_id: str) -> pb.AttachToolResult:
        """Wait for the result of a call."""
        return await until(lambda: self.results.get(call_id))  # pyright: ignore[reportReturnType]

    def end(self, reason: str = "", code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        """End the stream with an error."""
        self.out.put_nowait((code, reason))


class Attach:
    """Serves Attach; every stream of an agent is a Side."""

    def __init__(self) -> None:
        self.sides: list[Side] = []
        self.ends: dict[str, int] = {}
        """By topic, the sequence it ends at; default 0."""
        self.refuse_topics: set[str] = set()
        self.refuse_hellos: list[tuple[grpc.StatusCode, str]] = []
        self.now = NOW
        self.heartbeat = 60.0
        self.hold = asyncio.Event()
        """While it is not set, `ready` is held back."""
        self.hold.set()

    async def side(self, number: int = 1) -> Side:
        """Wait for the stream of that number, from 1."""
        await until(lambda: len(self.sides) >= number)
        return self.sides[number - 1]

    async def __call__(
        self, requests: AsyncIterator[pb.AttachRequest], call: Call
    ) -> AsyncGenerator[pb.AttachResponse, None]:
        hello = (await anext(requests)).hello
        if self.refuse_hellos:
            code, reason = self.refuse_hellos.pop(0)
            await refuse(call, code, "no", reason=reason)
        side = Side(hello)
        self.sides.append(side)
        ready = events_pb2.SubscriptionReady(
            positions=self._positions(hello.topics),
            server_time=wire(self.now),
        )
        ready.heartbeat_interval.FromMilliseconds(int(self.heartbeat * 1000))
        await self.hold.wait()
        yield pb.AttachResponse(ready=ready)
        reading = asyncio.create_task(self._read(side, requests))
        try:
            while True:
                item = await side.out.get()
                if item is None:
                    return
                if isinstance(item, pb.AttachResponse):
                    yield item
                else:
                    await refuse(call, item[0], "ended", reason=item[1])
        finally:
            side.gone.set()
            reading.cancel()

    def _now(self) -> events_pb2.SubscriptionReady:
        return events_pb2.SubscriptionReady(server_time=wire(self.now))

    def _positions(self, places: Any) -> list[events_pb2.TopicPosition]:
        return [
            events_pb2.TopicPosition(
                topic=place.topic,
                after_sequence=place.after_sequence
                if place.HasField("after_sequence")
                else self.ends.get(place.topic, 0),
            )
            for place in places
            if not _progress.is_pattern(place.topic)
        ]

    async def _read(self, side: Side, requests: AsyncIterator[pb.AttachRequest]) -> None:
        async for request in requests:
            side.got.append(request)
            match request.WhichOneof("item"):
                case "subscribe":
                    self._subscribe(side, request.ref, request.subscribe)
                case "unsubscribe":
                    for topic in request.unsubscribe.topics:
                        side.topics.pop(topic, None)
                    side.say(answer=pb.AttachAnswer(ref=request.ref))
                case "heartbeat":
                    side.beats += 1
                    side.say(answer=pb.AttachAnswer(ref=request.ref, ready=self._now()))
                case "tool_result":
                    side.results[request.tool_result.call_id] = request.tool_result
                case _:
                    pass
        side.out.put_nowait(None)

    def _subscribe(self, side: Side, ref: int, request: events_pb2.SubscribeRequest) -> None:
        answer = pb.AttachAnswer(ref=ref, ready=self._now())
        if self.refuse_topics & {place.topic for place in request.topics}:
            answer.error.reason = 18  # pyright: ignore[reportAttributeAccessIssue]
            answer.error.message = "the topic ends earlier"
        else:
            side.topics.update({place.topic: place for place in request.topics})
            answer.ready.positions.extend(self._positions(request.topics))
        side.say(answer=answer)


class Heard:
    """Collects the payloads of events."""

    def __init__(self) -> None:
        self.payloads: list[Any] = []

    async def __call__(self, event: loombridge.Event) -> None:
        self.payloads.append(event.payload)

    async def until(self, *payloads: Any) -> None:
        try:
            await until(lambda: len(self.payloads) >= len(payloads))
        finally:
            assert self.payloads == list(payloads)
