"""What an attached agent does: it listens, asks, answers, and stays."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from loombridge import (
    _attach,
    _errors,
    _events,
    _handlers,
    _inbox,
    _progress,
    _requests,
    _rpc,
    _spelling,
    _values,
)

HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])


class Listener:
    """The events of some topics, for a handler or a loop; made by `ctx.subscribe`.

    As a decorator it gives each event to a function:

        @ctx.subscribe("news.**")
        async def on_news(event): ...

    In a loop it hands them out one by one; `async with` returns when everything that
    is emitted from then on arrives:

        async with ctx.subscribe("news.**") as events:
            async for event in events: ...

    Durable events are neither lost nor repeated, also when the connection breaks or
    the reader is slow; volatile ones emitted meanwhile are lost. Leaving the loop or
    the block ends the subscription.
    """

    def __init__(
        self,
        attachment: _attach.Attachment,
        inbox: _inbox.Inbox,
        at_once: int,
        timeout: float | None,
    ) -> None:
        """Made by `ctx.subscribe`."""
        self._attachment = attachment
        self._inbox = inbox
        self._at_once = at_once
        self._timeout = timeout
        self._joined = False

    @property
    def positions(self) -> Mapping[str, int | None]:
        """By exact topic, the sequence of the last event that came.

        Pass it to `subscribe` to go on from there; None: not known, or a pattern.
        """
        return dict(self._inbox.progress.positions)

    @property
    def dropped(self) -> int:
        """How many events were dropped because this agent was behind, as far as known."""
        return self._inbox.dropped

    def __call__(self, function: HandlerT) -> HandlerT:
        """Give each event to a function; a plain one runs in a separate thread.

        Exceptions are logged and end nothing; a caller waiting for a reply to the event gets the
        error at once.
        """
        if not callable(function):
            raise TypeError(f"a handler must be a function, not {type(function).__name__}")
        try:
            inspect.signature(function).bind(None)
        except TypeError as err:
            raise TypeError(f"a handler takes one argument, the event: {err}") from None
        self._join_once()
        self._attachment.handle(self._inbox, function, self._at_once, self._timeout)
        return function

    def _join_once(self) -> None:
        if self._joined:
            raise RuntimeError("this listener is in use; call ctx.subscribe again for another")
        self._joined = True

    def _join(self) -> None:
        if not self._joined:
            self._joined = True
            self._attachment.join(self._inbox)

    def __aiter__(self) -> Self:
        """Return the listener itself."""
        return self

    async def __anext__(self) -> _events.Event:
        """Wait for the next event, as long as it takes.

        Raises:
            PositionUnknownError: a topic has no such sequence yet.
            InvalidRequestError: a topic was refused.
            ClientClosedError: the client was closed.
        """
        if self._inbox.handled:
            raise RuntimeError("a handler takes the events of this listener")
        self._join()
        return await self._inbox.next()

    async def __aenter__(self) -> Self:
        """Return when the subscription stands."""
        self._join()
        try:
            await self._inbox.stand()
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the subscription."""
        self.close()

    def close(self) -> None:
        """End the subscription; twice is fine. A loop that waits ends."""
        self._attachment.leave(self._inbox)

    def __del__(self) -> None:
        """End the subscription of a loop that was left; a handler stays."""
        # The event loop may be gone already, and with it the stream.
        with suppress(RuntimeError):
            if not self._inbox.handled:
                self.close()


@_spelling.helpful
class Agent:
    """An agent that others can reach: it listens, provides tools, asks and answers.

    It attaches by itself as soon as it has a tool, a handler or a request, over one
    stream for all of them. When that breaks, it attaches again with growing pauses.
    """

    agent_id: str
    """The agent this client acts for."""

    def __init__(
        self, transport: _rpc.Transport, agent_id: str, session_id: str, emit: _requests.Emit
    ) -> None:
        """Made by the client."""
        self.agent_id = agent_id
        self._transport = transport
        self._emit = emit
        self._attachment = _attach.Attachment(
            transport, agent_id, session_id, functools.partial(_requests.excuse, emit)
        )
        self._requests = _requests.Requests(self._attachment, agent_id, emit)

    def subscribe(
        self,
        topics: str | Mapping[str, int | None],
        *,
        since: datetime | None = None,
        qos: _progress.QualityOfService | None = None,
        event_types: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        session_id: str | None = None,
        at_once: int = _handlers.HANDLERS_AT_ONCE,
        timeout: _values.Seconds | None = None,
    ) -> Listener:
        """Listen to topics, by a handler (`@ctx.subscribe("t")`) or in a loop.

        All listeners of the agent share its stream, with 64 topics at most;
        `ctx.events.subscribe` opens a separate one and attaches no agent. When another
        listener comes to a topic, volatile events of that moment may be lost.

        Args:
            topics: a topic, for what comes from now on; or topics with the sequence
                to begin behind: 0 for all there is, None for what comes from now on.
                A pattern may stand for a topic: the word `*` is any one word, `**` at
                the end one or more; it takes no sequence.
            since: begin with the durable events after this time, in each topic that
                is given no sequence; with a time zone.
            qos: what happens when this agent falls behind; default `batched`.
            event_types: only events with one of these types; default: all.
            headers: only events that have all of these headers.
            session_id: only events of this session; default: of all, and of none.
            at_once: events that a handler works on at the same time, a plain function
                on 32 at most; 1 keeps them in order.
            timeout: seconds that a handler may work on one event. Then it counts as
                failed: an async one is cancelled, a plain one runs on in its thread
                without a waiter. Default: 600 for a plain one, else no end.

        Raises:
            TypeError: a topic is no string, or a place no integer.
            ValueError: a topic breaks a rule.
        """
        if callable(topics):
            raise TypeError('write @ctx.subscribe("topic"): a handler needs to be given topics')
        progress = _progress.positions(topics)
        for topic, after in progress.items():
            _progress.check_topic(topic)
            if after is not None and _progress.is_pattern(topic):
                raise ValueError(f"the pattern {topic} takes no sequence; use since")
        if _values.integer("at_once", at_once) < 1:
            raise ValueError(f"at_once must be at least 1, not {at_once}")
        return Listener(
            self._attachment,
            _inbox.Inbox(
                _progress.Progress(progress, _progress.moment(since)),
                _progress.choice(qos, event_types, headers, session_id),
            ),
            at_once,
            None if timeout is None else _values.seconds("timeout", timeout),
        )

    async def request(
        self,
        topic: str,
        payload: _values.JsonValue | bytes | bytearray = None,
        *,
        headers: Mapping[str, str] | None = None,
        durable: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _events.Event:
        """Emit a request and return the first reply to it.

        Whoever listens to the topic may answer with `ctx.reply`; agents of loom.v1 can
        as well. A break of the connection does not end the wait.

        Args:
            topic: where somebody listens who knows the answer.
            payload: JSON, or bytes; at most 1 MiB. Default: JSON null.
            headers: the caller's own pairs, in addition to `reply_to` and `correlation_id`.
            durable: keep the request, and with it the reply, in the store: neither is
                lost when a connection breaks. Default: only for current listeners.
            timeout: seconds until the reply must be here; default: the client's.

        Raises:
            DeadlineExceededError: no reply came in time.
            NobodyListensError: the topic has no subscriber. For a durable request an agent that is
                briefly away counts.
            RequestFailedError: who was asked could not answer, and says why.
        """
        return await self._requests.request(
            topic,
            payload,
            headers=headers,
            durable=durable,
            seconds=self._transport.timeout
            if timeout is None
            else _values.seconds("timeout", timeout),
        )

    async def reply(
        self,
        event: _events.Event,
        payload: _values.JsonValue | bytes | bytearray = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _events.Emitted:
        """Answer a request; the reply is kept in the store if the request was.

        A handler that raises has answered as well: with its error.

        Args:
            event: the request.
            payload: JSON, or bytes; at most 1 MiB. Default: JSON null.
            headers: the caller's own pairs.
            timeout: seconds; default: the client's.

        Raises:
            ValueError: the event does not say where to reply to.
        """
        return await self._emit(
            _requests.reply_address(event),
            payload,
            volatile=event.sequence == 0,
            headers={**(headers or {}), **_requests.reply_headers(event)},
            timeout=timeout,
        )

    async def attach(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        capabilities: Iterable[str] = (),
        parent_id: str = "",
        heartbeat: _values.Seconds = _attach.HEARTBEAT,
    ) -> None:
        """Attach now; return when the agent and all its tools are in the directory.

        Only needed to wait for that, or to say more than that the agent is there.

        Args:
            metadata: describes the agent: at most 32 pairs, together at most 8 KiB.
            capabilities: what others may look for, in addition to the names of its tools.
            parent_id: the agent that started this one.
            heartbeat: seconds between two signs of life. Without three of them in a
                row the agent counts as inactive.

        Raises:
            ServerUnreachableError: no server answers.
            AgentNotOwnedError: the credential may not act for this agent.
            InvalidRequestError: something that is said of the agent breaks a rule.
            ToolNameTakenError: the name of a tool is the server's or another agent's.
            ToolNotAllowedError: the credential does not let it provide the tool.
            QuotaExceededError: the agents' tools are too large together.
        """
        about = _attach.About(
            metadata=_values.text_map("metadata", metadata or {}),
            capabilities=tuple(_values.texts("capabilities", capabilities)),
            parent_id=_values.text("parent_id", parent_id),
            heartbeat=_values.seconds("heartbeat", heartbeat),
        )
        self._attachment.describe(about)
        await self._attachment.attached()

    async def serve(self) -> None:
        """Stay attached until this is cancelled or the client is closed.

        Handlers and tools work without it; it is the last line of a program that does
        nothing else, and it says why when the agent can't stay attached.

        Raises:
            LoomBridgeError: the stream failed in a way that attaching again can't mend.
        """
        await self._attachment.serve()

    async def _leave(self) -> None:
        with suppress(_errors.ClientClosedError):
            await self._attachment.close()
