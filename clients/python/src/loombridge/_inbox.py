"""The events that wait for one listener of an attached agent."""

import asyncio
import enum
from collections import deque
from collections.abc import Callable

from loombridge import _errors, _events, _progress
from loombridge.v1 import events_pb2 as pb

INBOX_EVENTS = 16_384
"""Events that may wait for one listener: small ones fill the bytes below."""

INBOX_BYTES = 8 << 20
"""Bytes of them. A listener with more is taken off the stream until half of them are
gone, and then goes on from where it was: so one slow listener holds up neither the
others nor the tools, and costs no more memory."""


class State(enum.Enum):
    """How a listener and the stream are to each other."""

    WAITING = "to be put on the stream"
    ANEW = "to be put on the next stream"
    ON = "on the stream"
    FULL = "off the stream, until there is room"


class Inbox:
    """What one listener wants, where it stands, and what waits for it.

    The stream puts events in without ever waiting. A durable event that finds no room
    is not lost: it is asked for again when there is room. A volatile one is dropped.
    """

    def __init__(self, progress: _progress.Progress, chosen: _progress.Choice) -> None:
        """Begin empty, and on no stream."""
        self.progress = progress
        self.chosen = chosen
        self.handled = False
        """A handler takes the events, so only it learns of an error."""
        self.dropped = 0
        """How many events were dropped, here or by the server."""
        self.state = State.WAITING
        """Durable events that come in another state than ON are asked for later."""
        self.on_full: Callable[[], None] = lambda: None
        """Called when there is no room."""
        self.on_room: Callable[[], None] = lambda: None
        """Called when there is room again."""
        self.stood = asyncio.Event()
        """Set when it was on the stream once, and when it never will be."""
        self._events: deque[pb.Event] = deque()
        self._bytes = 0
        self._some = asyncio.Event()
        self._error: _errors.LoomBridgeError | None = None
        self._closed = False

    @property
    def failed(self) -> bool:
        """The stream failed for good."""
        return self._error is not None

    def wants(self, m: pb.Event) -> bool:
        """Tell whether an event is for this listener."""
        topics = self.progress.positions
        return any(_progress.matches(topic, m.topic) for topic in topics) and self.chosen.admits(m)

    def offer(self, m: pb.Event, dropped: int) -> None:
        """Put an event in, unless it was there before or there is no room."""
        self.dropped += dropped
        full = len(self._events) >= INBOX_EVENTS or self._bytes >= INBOX_BYTES
        on = self.state is State.ON
        if m.sequence == 0 and (full or not on):
            self.dropped += self.stood.is_set()
        elif full and on and self.chosen.qos == pb.QUALITY_OF_SERVICE_REALTIME:
            self.dropped += self.progress.take(m)
        elif full and on:
            self.state = State.FULL
            self.on_full()
        elif on and self.progress.take(m):
            self._events.append(m)
            self._bytes += m.ByteSize()
            self._some.set()

    async def next(self) -> _events.Event:
        """Wait for the next event.

        Raises:
            StopAsyncIteration: the listener was closed.
            LoomBridgeError: the stream failed for good.
        """
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._closed:
                raise StopAsyncIteration
            self._some.clear()
            await self._some.wait()
        m = self._events.popleft()
        self._bytes -= m.ByteSize()
        half = 2 * len(self._events) <= INBOX_EVENTS and 2 * self._bytes <= INBOX_BYTES
        if half and self.state is State.FULL:
            self.on_room()
        return _events.event(m)

    async def stand(self) -> None:
        """Wait until the listener is on the stream.

        Raises:
            LoomBridgeError: it was refused, or the stream failed for good.
        """
        await self.stood.wait()
        if self._error is not None:
            raise self._error

    def fail(self, err: _errors.LoomBridgeError) -> None:
        """Hand out what waits, and then the error."""
        self._error = err
        self._some.set()
        self.stood.set()

    def renew(self) -> None:
        """Begin again after an error."""
        if self._error is not None:
            self._error = None
            self.stood.clear()

    def close(self) -> None:
        """End the reader's loop."""
        self._closed = True
        self._events.clear()
        self._some.set()
        self.stood.set()
