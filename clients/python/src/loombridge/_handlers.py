"""Handlers: functions of the user's that take the events of listeners."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from loombridge import _errors, _events, _inbox, _provided

HANDLERS_AT_ONCE = 64
"""Events that one handler works on at the same time, unless it is told otherwise."""

Excuse: TypeAlias = Callable[[_events.Event, Exception], Awaitable[None]]
"""Tells whoever waits for an answer to an event what its handler raised."""

_log = logging.getLogger("loombridge")


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that takes the events of one listener."""

    inbox: _inbox.Inbox
    function: Callable[..., Any]
    at_once: int


class Handlers:
    """The handlers of one agent, and the tasks that feed them."""

    def __init__(self, excuse: Excuse) -> None:
        """Begin without handlers."""
        self._excuse = excuse
        self._handlers: list[Handler] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, handler: Handler) -> None:
        """Feed a handler from now on."""
        handler.inbox.handled = True
        self._handlers.append(handler)
        self._spawn(self._feed(handler))

    def remove(self, inbox: _inbox.Inbox) -> None:
        """Forget the handler of a listener; one that has none is fine."""
        self._handlers = [each for each in self._handlers if each.inbox is not inbox]

    def renew(self) -> None:
        """Begin again after the stream failed."""
        for handler in self._handlers:
            handler.inbox.renew()
            self._spawn(self._feed(handler))

    async def close(self, closer: "asyncio.Task[Any] | None") -> None:
        """Cancel all that runs, but the task that closes."""
        tasks = self._tasks - {closer}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _feed(self, handler: Handler) -> None:
        """Give events to a handler, in the order they came."""
        slots = asyncio.Semaphore(handler.at_once)
        while True:
            await slots.acquire()
            try:
                event = await handler.inbox.next()
            except (StopAsyncIteration, _errors.LoomBridgeError):
                return
            except Exception:
                # JSON may say what Python refuses, such as a number of 5,000 digits.
                _log.exception("an event that can't be read was left out")
                slots.release()
                continue
            task = self._spawn(self._handle(handler.function, event))
            task.add_done_callback(lambda _task: slots.release())

    async def _handle(self, function: Callable[..., Any], event: _events.Event) -> None:
        """Give one event to a handler; what it raises ends nothing."""
        try:
            await _provided.call(function, event)
        except Exception as err:
            name = getattr(function, "__qualname__", repr(function))
            _log.exception("%s failed on an event of %s", name, event.topic)
            await self._excuse(event, err)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        # The event loop holds tasks weakly; a set holds them for real.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_look_at)
        return task


def _look_at(task: "asyncio.Task[None]") -> None:
    # SystemExit ends the event loop by itself; asyncio shall not report it as lost too.
    if not task.cancelled():
        task.exception()
