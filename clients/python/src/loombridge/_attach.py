"""An attached agent: one stream to the server, for as long as the agent lives."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from loombridge import (
    _errors,
    _handlers,
    _inbox,
    _link,
    _listeners,
    _provided,
    _reasons,
    _rpc,
    _threads,
)
from loombridge.v1 import attach_pb2 as pb
from loombridge.v1 import errors_pb2, events_pb2

HEARTBEAT = 5.0
"""Seconds between two heartbeats, unless `attach` gets another value."""

STEADY = 5.0
"""Seconds after which a stream counts as a good one: the pauses begin small again."""

GATHER = 0.05
"""Seconds in which tools that come later are gathered for one new stream."""

_AGAIN = (
    _errors.ServerUnreachableError,
    _errors.ShuttingDownError,
    _errors.SlowConsumerError,
    _errors.OverloadedError,
    _errors.DeadlineExceededError,
)

_log = logging.getLogger("loombridge")


@dataclass(slots=True)
class About:
    """What an agent says of itself when it attaches."""

    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    capabilities: tuple[str, ...] = ()
    parent_id: str = ""
    heartbeat: float = HEARTBEAT


class Attachment:
    """The agent's stream, its tools and its listeners.

    It opens the stream when there is something to attach for, and opens it again when
    it breaks. A tool that comes later opens a new stream before the old one ends, so
    that the agent is never away; listeners come and go on the stream that is open.
    """

    def __init__(
        self,
        transport: _rpc.Transport,
        agent_id: str,
        session_id: str,
        excuse: _handlers.Excuse,
    ) -> None:
        """Made by the client; the stream opens later."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id
        self._about = About()
        self._threads = _threads.Threads()
        self._toolbox = _provided.Toolbox(self._threads)
        self._renew = asyncio.Event()
        self._listeners = _listeners.Listeners(self._renew.set)
        self._handlers = _handlers.Handlers(self._threads, excuse)
        self._link: _link.Link | None = None
        self._links: set[_link.Link] = set()
        self._leaving: _link.Link | None = None
        self._overlap = False
        self._doubled: set[str] = set()
        self._runner: asyncio.Task[None] | None = None
        self._failure: _errors.LoomBridgeError | None = None
        self._wanted = 0
        self._said = 0
        self._news = asyncio.Event()

    def describe(self, about: About) -> None:
        """Say something else of the agent from now on."""
        if about != self._about:
            self._about = about
            self._say_again()

    def provide(self, tool: _provided.ProvidedTool) -> None:
        """Offer a tool to others, in place of an earlier one of the same name."""
        self._begin()
        self._toolbox.add(tool)
        self._say_again()

    def _say_again(self) -> None:
        self._wanted += 1
        self._renew.set()

    def join(self, inbox: _inbox.Inbox) -> None:
        """Put a listener on the stream."""
        self._begin()
        self._listeners.join(inbox)

    def handle(
        self,
        inbox: _inbox.Inbox,
        function: Callable[..., Any],
        at_once: int,
        timeout: float | None,
    ) -> None:
        """Give each event of a listener to a function."""
        self.join(inbox)
        self._handlers.add(inbox, function, at_once, timeout)

    def leave(self, inbox: _inbox.Inbox) -> None:
        """Take a listener off the stream; no error if it is not there."""
        self._handlers.remove(inbox)
        self._listeners.leave(inbox)

    def _begin(self) -> None:
        """Attach, unless that is under way."""
        self._transport.check_open()
        if self._runner is not None and not self._runner.done():
            return
        self._failure = None
        self._handlers.renew()
        self._runner = asyncio.create_task(self._run())

    async def attached(self) -> None:
        """Attach; return when everything said so far stands in the directory.

        Raises:
            LoomBridgeError: it can't be done.
        """
        self._begin()
        wanted = self._wanted
        while self._link is None or self._said < wanted:
            await self._hear()

    async def serve(self) -> None:
        """Stay attached until the client is closed.

        Raises:
            LoomBridgeError: the stream failed for good.
        """
        self._begin()
        with suppress(_errors.ClientClosedError):
            while True:
                await self._hear()

    async def _hear(self) -> None:
        """Wait until something happens to the stream; raise what it failed from."""
        if self._failure is None:
            await self._news.wait()
        if self._failure is not None:
            raise self._failure

    def _tell(self) -> None:
        """Wake all who wait for news."""
        self._news.set()
        self._news = asyncio.Event()

    async def _run(self) -> None:
        """Stay attached; keep the error that ended it."""
        try:
            await self._stay()
        except _errors.ClientClosedError as err:
            self._fail(err)
        except _errors.LoomBridgeError as err:
            _log.error("agent %s is not attached any more: %s", self._agent_id, err)
            self._cut()
            self._fail(err)
        except asyncio.CancelledError:
            self._fail(_errors.ClientClosedError("the client is closed"))
            raise
        except Exception as err:
            _log.exception("agent %s is not attached any more", self._agent_id)
            self._cut()
            self._fail(_errors.InternalError(f"a fault of the client: {err!r}"))

    def _cut(self) -> None:
        self._link = None
        for link in self._links:
            link.cut()

    def _fail(self, err: _errors.LoomBridgeError) -> None:
        self._failure = err
        self._listeners.fail(err)
        self._tell()

    async def _stay(self) -> None:
        """Attach again and again, until the stream fails for good."""
        now = asyncio.get_running_loop().time
        give_up = now() + sum(_rpc.RETRY_PAUSES)
        pauses = _rpc.pauses()
        stood = False
        lost: float | None = None
        while True:
            begun = now()
            try:
                link, changes = await self._attach()
                stood = True
                if lost is not None:
                    _log.info("agent %s attached again after %.1f s", self._agent_id, now() - lost)
                    lost = None
                await self._until_over(link, changes)
                await asyncio.sleep(GATHER)
                continue  # There is more to say.
            except _errors.LoomBridgeError as err:
                if now() - begun > STEADY:
                    pauses = _rpc.pauses()
                pause = next(pauses)
                if not (_may_resume(err, stood=stood) and (stood or now() + pause < give_up)):
                    raise
                if lost is None:
                    lost = now()
                    _log.warning("agent %s attaches again: %s", self._agent_id, err)
                else:
                    _log.debug("agent %s tries again in %.1f s", self._agent_id, pause)
            await asyncio.sleep(pause)

    async def _attach(self) -> "tuple[_link.Link, asyncio.Task[None]]":
        """Open a stream; return it and the task that keeps its topics as wanted."""
        await self._transport.stand()
        link = _link.Link(self._transport)
        said = self._wanted
        self._overlap = self._link is not None
        self._renew.clear()
        link.subscribed, shared = self._listeners.carried(), self._listeners.shared()
        members = self._listeners.listening()
        ready = await link.open(self._hello(), self._transport.timeout)
        _listeners.stand(members, ready.positions, ready.server_time, shared)
        link.start(lambda message: self._take(link, message))
        link.live(self._beat(link, ready.heartbeat_interval.ToTimedelta().total_seconds()))
        self._listeners.changed.set()
        self._replace(link)
        self._said = said
        self._tell()
        return link, link.live(self._follow_changes(link))

    async def _until_over(self, link: _link.Link, changes: "asyncio.Task[None]") -> None:
        """Return when there is more to say than the hello of this stream said.

        Raises:
            LoomBridgeError: the stream ended, or a handler's topic was refused.
        """
        renew = asyncio.create_task(self._renew.wait())
        try:
            await asyncio.wait({renew, link.reader, changes}, return_when=asyncio.FIRST_COMPLETED)
            if link.reader.done():
                link.reader.result()
            if changes.done():
                changes.result()
        except _errors.LoomBridgeError:
            self._link = None
            link.cut()
            raise
        finally:
            renew.cancel()
            changes.cancel()

    def _replace(self, link: _link.Link) -> None:
        """Let a new stream take over from the one that stood."""
        self._leaving, self._link = self._link, link
        self._links = {each for each in self._links if not each.is_over} | {link}
        if self._leaving is None or self._leaving.is_over:
            self._part()
        else:
            self._leaving.live(self._retire(self._leaving))

    async def _retire(self, link: _link.Link) -> None:
        """Take the last events of a stream that was replaced, and let it end."""
        request = pb.AttachRequest(unsubscribe=pb.AttachUnsubscribe(topics=link.subscribed))
        try:
            if link.subscribed:
                await link.ask(request)
        finally:
            if self._leaving is link:
                self._part()
            link.retire()

    def _part(self) -> None:
        self._leaving, self._overlap = None, False
        self._doubled.clear()

    def _hello(self) -> pb.AttachHello:
        hello = pb.AttachHello(
            agent_id=self._agent_id,
            session_id=self._session_id,
            topics=[self._listeners.wire(topic) for topic in self._listeners.carried()],
            tools=self._toolbox.wire(),
            metadata=dict(self._about.metadata),
            capabilities=self._about.capabilities,
            parent_id=self._about.parent_id,
        )
        hello.heartbeat_interval.FromTimedelta(timedelta(seconds=self._about.heartbeat))
        return hello

    async def _beat(self, link: _link.Link, seconds: float) -> None:
        """Say that the agent is alive, and follow the server's clock."""
        while True:
            await asyncio.sleep(seconds or HEARTBEAT)
            answer = await link.ask(pb.AttachRequest(heartbeat=pb.AttachHeartbeat()))
            if answer.HasField("ready"):
                self._listeners.server_time(answer.ready.server_time)

    async def _follow_changes(self, link: _link.Link) -> None:
        """Keep the topics of the stream as they are wanted."""
        while True:
            await self._listeners.changed.wait()
            self._listeners.changed.clear()
            carried = self._listeners.carried(*_listeners.DYNAMIC)
            present = self._listeners.listening(*_listeners.DYNAMIC)
            gone = [each for each, v in link.subscribed.items() if carried.get(each) != v]
            if gone:
                request = pb.AttachRequest(unsubscribe=pb.AttachUnsubscribe(topics=gone))
                # With the answer, nothing of these topics is on its way any more: who
                # begins with them anew gets their events in order.
                await link.ask(request)
            for topic in gone:
                link.subscribed.pop(topic, None)
            for topic, version in carried.items():
                now = self._listeners.members(topic, *_listeners.DYNAMIC)
                members = [inbox for inbox in now if inbox in present]
                if topic not in link.subscribed and members:
                    link.subscribed[topic] = version
                    await self._subscribe(link, topic, members)

    async def _subscribe(self, link: _link.Link, topic: str, members: list[_inbox.Inbox]) -> None:
        shared = self._listeners.shared()
        position = self._listeners.wire(topic, *_listeners.DYNAMIC)
        request = pb.AttachRequest(subscribe=events_pb2.SubscribeRequest(topics=[position]))
        for inbox in members:
            # Its first events may pass the answer.
            inbox.state = _inbox.State.ON
        answer = await link.ask(request)
        if not answer.HasField("error"):
            _listeners.stand(members, answer.ready.positions, answer.ready.server_time, shared)
            return
        link.subscribed.pop(topic, None)
        error = _refusal(answer.error)
        for inbox in members:
            if inbox.handled:
                raise error
            inbox.fail(error)
            self.leave(inbox)

    def _take(self, link: _link.Link, message: pb.AttachResponse) -> None:
        """Take in one message of a stream."""
        if message.HasField("tool_call"):
            link.serve(self._answer(link, message.tool_call))
        elif message.HasField("event") and self._is_first(link, message.event):
            self._listeners.deliver(message.event, message.dropped)

    def _is_first(self, link: _link.Link, m: events_pb2.Event) -> bool:
        """Tell whether an event is to be taken from this stream, and only once.

        The stream that takes over brings every durable event that the old one still
        had; a volatile one may come on either, or on both.
        """
        if m.sequence != 0:
            return link is self._link
        if link not in (self._link, self._leaving) or m.id in self._doubled:
            return False
        if self._overlap:
            self._doubled.add(m.id)
        return True

    async def _answer(self, link: _link.Link, call: pb.AttachToolCall) -> None:
        """Run a tool for somebody and send what it gave."""
        result = await self._toolbox.answer(call)
        await link.send(pb.AttachRequest(tool_result=result))

    async def close(self) -> None:
        """End the stream and everything that runs for it; twice is fine."""
        # Whoever closes may itself be a handler or a tool.
        closer = asyncio.current_task()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        await self._handlers.close(closer)
        self._link = None
        await asyncio.gather(*(link.close(closer) for link in self._links))
        self._links.clear()
        await self._threads.close()


def _may_resume(err: _errors.LoomBridgeError, *, stood: bool) -> bool:
    if isinstance(err, _AGAIN):
        return True
    # Without a reason it was not the server that spoke, but something on the way.
    return stood and not err.reason and err.code in ("INTERNAL", "UNKNOWN", "CANCELLED")


def _refusal(m: pb.AttachError) -> _errors.LoomBridgeError:
    """Return the error that the refusal of a message stands for."""
    name = errors_pb2.ErrorReason.Name(m.reason).removeprefix("ERROR_REASON_")
    violations = [_errors.FieldViolation(*each) for each in sorted(m.fields.items())]
    kind = _reasons.BY_REASON.get(name, _errors.LoomBridgeError)
    return kind(m.message, reason=name, violations=violations)
