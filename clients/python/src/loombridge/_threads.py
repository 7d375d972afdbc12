"""Functions of the user's: async ones are awaited, plain ones run in threads.

The threads are the client's own. The event loop's shared ones also look up host names,
and a plain function that never comes back would keep one of those few for ever.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

THREADS = 256
"""Plain functions of one client that run at the same time, including ones without waiters. More
wait for one to end."""

THREADS_PER_FUNCTION = 32
"""Runs of one plain function at the same time: one that never comes back keeps so many
threads at most, and the others go on."""

CLOSE_TIMEOUT = 2.0
"""Seconds that closing waits for plain functions that still run. One that takes longer
is left behind, and ends with the process."""


class Threads:
    """The threads of one client's plain functions."""

    def __init__(self) -> None:
        """Begin without a thread: each is made for one run and ends with it."""
        self._slots = asyncio.Semaphore(THREADS)
        self._runs: set[asyncio.Future[None]] = set()

    def callee(self, function: Callable[..., Any]) -> "Callee":
        """Return a function, to be called with its own slots."""
        return Callee(self, function)

    async def run(self, slots: asyncio.Semaphore, work: Callable[[], Any]) -> Any:
        """Run work in a thread; a wait that is cancelled leaves the thread alone.

        Both slots are free again when the thread ends, even if a caller still waits for it.
        """
        await slots.acquire()
        try:
            await self._slots.acquire()
        except BaseException:
            slots.release()
            raise
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()
        self._runs.add(ended)

        def end(value: Any, err: BaseException | None) -> None:
            self._runs.discard(ended)
            self._slots.release()
            slots.release()
            ended.set_result(None)
            if result.done():
                return
            if err is None:
                result.set_result(value)
            else:
                result.set_exception(err)

        def body() -> None:
            value, err = _outcome(work)
            # The event loop may be gone, and with it the waiters.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end, value, err)

        try:
            # Python waits at its end for threads that are no daemons.
            threading.Thread(target=body, daemon=True, name="loombridge").start()
        except RuntimeError as err:
            end(None, err)
        return await result

    async def close(self) -> None:
        """Give running ones a moment to end."""
        if self._runs:
            await asyncio.wait(self._runs, timeout=CLOSE_TIMEOUT)


def _outcome(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except StopIteration as err:
        # A future refuses it: to a coroutine it would look like its own end.
        error = RuntimeError("the function raised StopIteration")
        error.__cause__ = err
        return None, error
    except BaseException as err:  # SystemExit, too, is for the waiter.
        return None, err


class Callee:
    """A function of the user's, async or plain."""

    def __init__(self, threads: Threads, function: Callable[..., Any]) -> None:
        """Made by `Threads.callee`."""
        self.function = function
        self.plain = not (
            inspect.iscoroutinefunction(function)
            or inspect.iscoroutinefunction(
                getattr(function, "__call__", None)  # noqa: B004  it is looked at, not called
            )
        )
        self._threads = threads
        self._slots = asyncio.Semaphore(THREADS_PER_FUNCTION)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it: a plain one in a thread, so that it may block."""
        if not self.plain:
            return await self.function(*args, **kwargs)
        work = functools.partial(contextvars.copy_context().run, self.function, *args, **kwargs)
        result = await self._threads.run(self._slots, work)
        return await result if inspect.isawaitable(result) else result
