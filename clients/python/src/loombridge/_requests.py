"""Requests and replies over events, as agents of both APIs understand them."""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from typing import Any, Protocol, cast

from loombridge import _attach, _errors, _events, _inbox, _progress, _values
from loombridge.v1 import events_pb2 as pb

REPLY_TO = ("loom.reply_to", "reply_to")
"""Headers that name the topic for the reply; the first one present counts."""

CORRELATION = ("loom.correlation_id", "correlation_id")
"""Headers that say which request a reply belongs to; without them it is the event's id."""


ERROR = "error"
"""Header of a reply that says why there is no answer; the payload has `error` as well."""

LONGEST_ERROR = 1 << 10
"""Characters of the header; all headers together may have 8 KiB. The payload has room
for sixteen times as many."""

_log = logging.getLogger("loombridge")


class Emit(Protocol):
    """What publishes an event: `ctx.emit`."""

    async def __call__(
        self,
        topic: str,
        payload: Any = None,
        *,
        volatile: bool = False,
        headers: Mapping[str, str] | None = None,
        event_id: str | None = None,
        request_id: str | None = None,
        needs_listener: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _events.Emitted:
        """Publish one event."""
        ...


class _Mailbox(_inbox.Inbox):
    """The agent's own topic of replies: each goes to the request that waits for it."""

    def __init__(self, topic: str) -> None:
        super().__init__(_progress.Progress({topic: None}, None), _progress.Choice())
        self.waiting: dict[str, asyncio.Future[_events.Event]] = {}

    def offer(self, m: pb.Event, dropped: int) -> None:
        """Answer the request, never waiting behind other events."""
        self.dropped += dropped
        correlation = _first(m.headers, CORRELATION) or ""
        waiting = self.waiting.get(correlation)
        # A request sent to the mailbox itself is not its own reply.
        if not self.progress.take(m) or waiting is None or waiting.done() or m.id == correlation:
            return
        try:
            _settle(waiting, _events.event(m))
        except (ValueError, RecursionError) as err:
            waiting.set_exception(err)

    def fail(self, err: _errors.LoomBridgeError) -> None:
        super().fail(err)
        for waiting in self.waiting.values():
            if not waiting.done():
                waiting.set_exception(err)


class Requests:
    """The requests of one agent that wait for a reply."""

    def __init__(self, attachment: _attach.Attachment, agent_id: str, emit: Emit) -> None:
        """Made by the client."""
        self._attachment = attachment
        self._topic = mailbox(agent_id)
        self._emit = emit
        self._mailbox: _Mailbox | None = None

    async def request(
        self,
        topic: str,
        payload: Any,
        *,
        headers: Mapping[str, str] | None,
        durable: bool,
        seconds: float,
    ) -> _events.Event:
        """Emit a request and wait for its reply.

        Raises:
            DeadlineExceededError: no reply came in time.
            NobodyListensError: the topic has no subscriber.
            RequestFailedError: the reply says that there is no answer.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._ask(topic, payload, headers or {}, durable=durable)
        except TimeoutError:
            raise _errors.DeadlineExceededError(
                f"no reply to {topic} within {seconds:g} s", reason="DEADLINE_EXCEEDED"
            ) from None

    async def _ask(
        self, topic: str, payload: Any, headers: Mapping[str, str], *, durable: bool
    ) -> _events.Event:
        replies = await self._open()
        name = uuid.uuid4().hex
        waiting: asyncio.Future[_events.Event] = asyncio.get_running_loop().create_future()
        replies.waiting[name] = waiting
        try:
            await self._emit(
                topic,
                payload,
                volatile=not durable,
                headers={**headers, "reply_to": self._topic, "correlation_id": name},
                event_id=name,
                request_id=name if durable else None,
                needs_listener=True,
            )
            return await waiting
        finally:
            del replies.waiting[name]
            if not waiting.cancel() and not waiting.cancelled():
                waiting.exception()  # Retrieved, so that asyncio does not warn.

    async def _open(self) -> _Mailbox:
        """Return the mailbox when the server fills it."""
        replies = self._mailbox
        if replies is None or replies.failed:
            replies = self._mailbox = _Mailbox(self._topic)
            self._attachment.join(replies)
        await replies.stand()
        # During a break a reply would be lost, and the request perhaps as well.
        await self._attachment.attached()
        return replies


def _settle(waiting: "asyncio.Future[_events.Event]", reply: _events.Event) -> None:
    """Give a request its reply, or the error that the reply stands for."""
    short = reply.headers.get(ERROR)
    if not short:
        waiting.set_result(reply)
        return
    said: object = reply.payload
    full = cast("dict[str, object]", said).get(ERROR) if isinstance(said, dict) else None
    waiting.set_exception(
        _errors.RequestFailedError(
            full if isinstance(full, str) and full else short,
            metadata={"agent_id": reply.source} if reply.source else None,
        )
    )


async def excuse(emit: Emit, event: _events.Event, err: Exception) -> None:
    """Answer a request whose handler raised; other events need no answer."""
    topic = _first(event.headers, REPLY_TO)
    if not topic:
        return
    text = _errors.said_by(err)
    durable = event.sequence != 0
    short = " ".join(text[:LONGEST_ERROR].split())
    try:
        await emit(
            topic,
            {ERROR: text[: 16 * LONGEST_ERROR]},
            volatile=not durable,
            headers={ERROR: short or type(err).__name__, **reply_headers(event)},
            request_id=uuid.uuid4().hex if durable else None,
        )
    except Exception as failure:
        _log.warning("no reply to %s could be sent: %s", event.topic, failure)


def mailbox(agent_id: str) -> str:
    """Return the topic where replies to an agent go."""
    return f"agent.{agent_id}.replies"


def reply_address(event: _events.Event) -> str:
    """Return where to reply to an event.

    Raises:
        ValueError: it says neither that nor who sent it.
    """
    topic = _first(event.headers, REPLY_TO)
    if topic:
        return topic
    if not event.source:
        raise ValueError(f"event {event.id} does not say where to reply to")
    return mailbox(event.source)


def reply_headers(event: _events.Event) -> dict[str, str]:
    """Return the headers that tie a reply to a request."""
    return dict.fromkeys(CORRELATION, _first(event.headers, CORRELATION) or event.id)


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((headers[name] for name in names if headers.get(name)), None)
