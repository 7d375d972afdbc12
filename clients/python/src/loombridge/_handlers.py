"""Handlers: functions of the user's that take the events of listeners."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from loombridge import _errors, _events, _inbox, _threads

HANDLERS_AT_ONCE = 64
"""Events that one handler works on at the same time, by default."""

PLAIN_TIMEOUT = 600.0
"""Seconds that a plain function may work on one event, by default: as long as a tool may run."""

Excuse: TypeAlias = Callable[[_events.Event, Exception], Awaitable[None]]
"""Passes a handler's exception to the callers that wait for an answer to its event."""

_log = logging.getLogger("loombridge")


@dataclass(eq=False, slots=True)
class Handler:
    """A function that takes the events of one listener."""

    inbox: _inbox.Inbox
    callee: _threads.Callee
    timeout: float | None
    """Seconds for one event; None: as many as it takes."""
    slots: asyncio.Semaphore
    """One for each event that it works on at the same time."""
    feeder: "asyncio.Task[None] | None" = None
    """Gives it the events. It has one at most, whatever happens to the stream."""

    @property
    def name(self) -> str:
        """What the function is called, for the log."""
        return getattr(self.callee.function, "__qualname__", repr(self.callee.function))


class Handlers:
    """The handlers of one agent, and the tasks that feed them."""

    def __init__(self, threads: _threads.Threads, excuse: Excuse) -> None:
        """Begin without handlers; `threads` run the plain ones."""
        self._threads = threads
        self._excuse = excuse
        self._handlers: list[Handler] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def add(
        self,
        inbox: _inbox.Inbox,
        function: Callable[..., Any],
        at_once: int,
        timeout: float | None,
    ) -> None:
        """Feed a handler from now on."""
        callee = self._threads.callee(function)
        if timeout is None and callee.plain:
            timeout = PLAIN_TIMEOUT
        handler = Handler(inbox, callee, timeout, asyncio.Semaphore(at_once))
        inbox.handled = True
        self._handlers.append(handler)
        handler.feeder = self._spawn(self._feed(handler))

    def remove(self, inbox: _inbox.Inbox) -> None:
        """Forget the handler of a listener; one that has none is fine."""
        self._handlers = [each for each in self._handlers if each.inbox is not inbox]

    def renew(self) -> None:
        """Begin again after the stream failed."""
        for handler in self._handlers:
            handler.inbox.renew()
            # One that waits for the handler has not heard of the failure, and goes on.
            if handler.feeder is None or handler.feeder.done():
                handler.feeder = self._spawn(self._feed(handler))

    async def close(self, closer: "asyncio.Task[Any] | None") -> None:
        """Cancel all that runs, but the task that closes."""
        tasks = self._tasks - {closer}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _feed(self, handler: Handler) -> None:
        """Give events to a handler, in the order they came."""
        while True:
            await handler.slots.acquire()
            try:
                event = await handler.inbox.next()
            except (StopAsyncIteration, _errors.LoomBridgeError):
                handler.slots.release()
                return
            except Exception:
                # JSON may say what Python refuses, such as a number of 5,000 digits.
                _log.exception("an event that can't be read was left out")
                handler.slots.release()
                continue
            task = self._spawn(self._handle(handler, event))
            task.add_done_callback(lambda _task: handler.slots.release())

    async def _handle(self, handler: Handler, event: _events.Event) -> None:
        """Give one event to a handler; what it raises ends nothing."""
        limit = asyncio.timeout(handler.timeout)
        try:
            async with limit:
                await handler.callee(event)
        except Exception as err:
            failure: Exception = err
            if limit.expired():
                failure = TimeoutError(f"{handler.name} did not end within {handler.timeout:g} s")
                _log.error("%s on an event of %s", failure, event.topic)
            else:
                _log.exception("%s failed on an event of %s", handler.name, event.topic)
            await self._excuse(event, failure)

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
