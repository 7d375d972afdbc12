"""Emitted events, and listening to them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeAlias

import grpc

from loombridge import _brief, _errors, _progress, _rpc, _spelling, _statuses, _stream, _values
from loombridge.v1 import events_pb2 as pb

RECONNECT_FOR = 300.0
"""Seconds a subscription that once stood looks for the server: longer than a
restart or a new release takes, and an end for a server that is gone."""

_Call: TypeAlias = "grpc.aio.UnaryStreamCall[pb.SubscribeRequest, pb.SubscribeResponse]"


@dataclass(frozen=True, slots=True)
class Emitted:
    """Proof that an event was taken."""

    event_id: str
    """Names the event."""
    sequence: int
    """Its place in the topic, from 1; 0 when volatile."""
    time: datetime
    """When the server took it, in UTC."""


@dataclass(frozen=True, slots=True, repr=False)
class Event(_brief.Brief):
    """One thing that happened."""

    id: str
    """Names the event."""
    topic: str
    """Where it was emitted."""
    sequence: int
    """Its place in the topic, from 1 without gaps; 0 when volatile."""
    source: str
    """The agent that emitted it."""
    session_id: str
    """The emitter's session, or empty."""
    time: datetime
    """When the server took it, in UTC."""
    payload: Any
    """What it says: JSON, or bytes when bytes were emitted."""
    headers: Mapping[str, str]
    """The emitter's own key-value pairs."""
    type: str = ""
    """What sort of event it is, in the emitter's words; may be empty."""
    tags: tuple[str, ...] = ()
    """The emitter's own labels."""


class Subscription(_stream.Stream[pb.SubscribeRequest, pb.SubscribeResponse]):
    """The events of some topics, in order per topic: `async for event in subscription`.

    Use it in a `for` loop directly, or hold it by `async with`, which returns when
    the subscription stands: everything emitted from then on arrives. Leaving the
    loop or the block ends the call; a wait that is cancelled, as by a timeout, does
    not: the next one goes on where it was. One reader at a time.

    When the connection breaks, it resumes behind the last event handed out, with
    growing pauses, for up to five minutes: durable events are neither lost nor
    repeated; volatile ones emitted meanwhile are lost.
    """

    _receiver: "_Standing"

    def __init__(self, receiver: "_Standing") -> None:
        """Made by `ctx.events.subscribe`."""
        super().__init__(receiver)
        self.positions: Mapping[str, int | None] = receiver.progress.positions
        """By topic, the sequence of the last event handed out. Pass it to
        `subscribe` to go on from there; None: not known yet, or a pattern."""
        self.dropped_volatile: int = 0
        """How many volatile events the server dropped because the reader was behind."""

    def __aiter__(self) -> Self:
        """Return the subscription itself."""
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event, as long as it takes.

        Raises:
            PositionUnknownError: a topic has no such sequence yet.
            SlowConsumerError: this reader took nothing for too long.
            ServerUnreachableError: the connection broke and could not be resumed.
        """
        while True:
            message = await self._receiver.next()
            self.dropped_volatile += message.dropped_volatile
            if message.HasField("event") and self._receiver.progress.take(message.event):
                return event(message.event)

    async def __aenter__(self) -> Self:
        """Return when the subscription stands."""
        await self._receiver.stand()
        return self


class _Standing(_stream.Receiver[pb.SubscribeRequest, pb.SubscribeResponse]):
    """Receives what a subscription says, and subscribes again when the stream breaks."""

    def __init__(
        self,
        transport: _rpc.Transport,
        agent_id: str,
        progress: _progress.Progress,
        chosen: _progress.Choice,
        *,
        reconnect: bool,
        timeout: float,
    ) -> None:
        super().__init__(
            transport,
            _rpc.SUBSCRIBE,
            pb.SubscribeRequest(agent_id=agent_id),
            timeout,
            _stream.Resume.ALWAYS if reconnect else _stream.Resume.NEVER,
            "the subscription did not stand",
        )
        self.progress = progress
        self._chosen = chosen
        self._stood = False
        self._standing = asyncio.Lock()

    async def receive(self) -> pb.SubscribeResponse | None:
        while not self.closed:
            call = self._call or await self.stand()
            try:
                message = await self._transport.read(call)
            except grpc.aio.AioRpcError as err:
                self._call = None
                self._check_may_resume(err)
                continue
            self.closed = self.closed or message is None
            return message
        return None

    async def stand(self) -> _Call:
        """Return the stream when it is open and the server says that it stands."""
        # Entering the block and an abandoned wait for an event may both want it.
        async with self._standing:
            return self._call or await self._connect()

    async def _connect(self) -> _Call:
        pauses = _rpc.pauses()
        now = asyncio.get_running_loop().time
        give_up = now() + (RECONNECT_FOR if self._stood else sum(_rpc.RETRY_PAUSES))
        if self._stood:
            # A server that accepts and breaks off at once must not be hammered.
            await asyncio.sleep(next(pauses))
        while True:
            try:
                return await self._open()
            except grpc.aio.AioRpcError as err:
                pause = next(pauses)
                self._check_may_resume(err, in_time=now() + pause <= give_up)
            await asyncio.sleep(pause)

    async def _open(self) -> _Call:
        await self.all_taken()
        await self._transport.stand()
        members = [(self.progress, self._chosen)]
        del self.request.topics[:]
        self.request.topics.extend(
            _progress.wire(topic, members) for topic in self.progress.positions
        )
        call = self._call = self._transport.stream(_rpc.SUBSCRIBE, self.request)
        try:
            async with asyncio.timeout(self._timeout):
                message = await self._transport.read(call)
            self._take_positions(message)
        except TimeoutError:
            self._drop(call)
            raise _errors.DeadlineExceededError(
                f"{self._nothing} within {self._timeout:g} s", reason="DEADLINE_EXCEEDED"
            ) from None
        except BaseException:
            self._drop(call)
            raise
        self._stood = True
        return call

    def _drop(self, call: _Call) -> None:
        call.cancel()
        self._call = None

    def _take_positions(self, message: pb.SubscribeResponse | None) -> None:
        """Note where each topic begins, so that a break from here on loses nothing."""
        if message is None or not message.HasField("ready"):
            raise _errors.InternalError("the server opened a subscription without `ready`")
        ready = message.ready
        known = ready.HasField("server_time")
        now = _values.moment(ready.server_time) if known else None
        self.progress.stand(ready.positions, now)

    def _check_may_resume(self, err: grpc.aio.AioRpcError, *, in_time: bool = True) -> None:
        """Raise what broke the stream, unless the stream may be opened again."""
        resumes = self._resume is _stream.Resume.ALWAYS
        if not (resumes and in_time and err.code() is grpc.StatusCode.UNAVAILABLE):
            error = _statuses.from_rpc(err, self._transport.address)
            raise error from _statuses.cause(error, err)


@_spelling.helpful
class Events:
    """Listening to events; reached as `ctx.events`. Publishing is `ctx.emit`."""

    def __init__(self, transport: _rpc.Transport, agent_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id

    def subscribe(
        self,
        topics: str | Mapping[str, int | None],
        *,
        since: datetime | None = None,
        qos: _progress.QualityOfService | None = None,
        event_types: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        session_id: str | None = None,
        reconnect: bool = True,
        timeout: _values.Seconds | None = None,
    ) -> Subscription:
        """Listen to one topic, or to several with the places to begin at.

        Args:
            topics: a topic, for what comes from now on; or topics with the sequence
                to begin behind: 0 for all there is, None for what comes from now on.
                A pattern may stand for a topic: the word `*` is any one word, `**` at
                the end one or more; it takes no sequence.
            since: begin with the durable events after this time, in each topic that
                is given no sequence; with a time zone.
            qos: what happens when this reader falls behind; default `batched`.
            event_types: only events with one of these types; default: all.
            headers: only events that have all of these headers.
            session_id: only events of this session; default: of all, and of none.
            reconnect: resume when the connection breaks. With False, a break
                raises `ServerUnreachableError`.
            timeout: seconds until the subscription stands; default: the client's.

        Raises:
            TypeError: a topic is no string, or a place no integer.
        """
        return Subscription(
            _Standing(
                self._transport,
                self._agent_id,
                _progress.Progress(_progress.positions(topics), _progress.moment(since)),
                _progress.choice(qos, event_types, headers, session_id),
                reconnect=reconnect,
                timeout=self._transport.timeout
                if timeout is None
                else _values.seconds("timeout", timeout),
            )
        )


def emitted(m: pb.EmitResponse) -> Emitted:
    """Return the answer to an emit as users see it."""
    return Emitted(event_id=m.event_id, sequence=m.sequence, time=_values.moment(m.create_time))


def event(m: pb.Event) -> Event:
    """Return an event as users see it."""
    raw = m.WhichOneof("payload_form") == "payload_bytes"
    return Event(
        id=m.id,
        topic=m.topic,
        sequence=m.sequence,
        source=m.source,
        session_id=m.session_id,
        time=_values.moment(m.create_time),
        payload=m.payload_bytes if raw else _values.from_json(m.payload_json),
        headers=dict(m.headers),
        type=m.type,
        tags=tuple(m.tags),
    )
