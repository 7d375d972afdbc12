"""An event loop in a separate thread, for callers without a loop, or with another one."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from loombridge import _errors

ResultT = TypeVar("ResultT")

Work: TypeAlias = Callable[[], Coroutine[Any, Any, ResultT]]
"""What is done on the loop; it is begun there."""


class Background:
    """An event loop in a daemon thread, which begins with the first call.

    Any thread and any event loop may call, but for the loop's own thread, which would wait
    for itself. It belongs to the process that made the first call: neither a thread nor a
    connection of gRPC outlives a fork.
    """

    def __init__(self, name: str, what: str) -> None:
        """Start nothing yet.

        Args:
            name: the thread's.
            what: whose calls these are, for the texts of errors: `the client`.
        """
        self._name = name
        self._what = what
        self._executor = concurrent.futures.ThreadPoolExecutor(thread_name_prefix=name)
        """The loop's own, so that closing need not wait for what runs in it."""
        self._lock = threading.Lock()
        """Guards what follows: the loop and the thread begin and end once."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._closed = False

    def call(self, work: Work[ResultT]) -> ResultT:
        """Do work and wait for it; a wait that is interrupted, by Ctrl-C, cancels it.

        Raises:
            ClientClosedError: it was closed, before the call or during it.
            RuntimeError: this is the loop's own thread, or a process that was forked.
        """
        loop = self._begin()
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                f"{self._what} can't be used in a function that its own event loop runs: make "
                "that a plain function, which gets a separate thread, or use an async client"
            )
        future = asyncio.run_coroutine_threadsafe(work(), loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise self._gone() from None
        except BaseException:
            future.cancel()
            raise

    async def acall(self, work: Work[ResultT]) -> ResultT:
        """Do work; cancelling the caller cancels it."""
        loop = self._begin()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))

    def soon(self, step: Callable[[], object]) -> None:
        """Have the loop take a step, if there still is a loop; return at once."""
        loop = self._loop
        if loop is not None and self._process == os.getpid():
            with suppress(RuntimeError):  # It was closed meanwhile.
                loop.call_soon_threadsafe(step)

    def _begin(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise self._gone()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(self._executor)
                self._process = os.getpid()
                # A program that forgets to close ends all the same.
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name=self._name, daemon=True
                )
                self._thread.start()
            elif self._process != os.getpid():
                raise RuntimeError(
                    f"{self._what} belongs to process {self._process}, from which this one was "
                    "forked: connect after the fork"
                )
            return self._loop

    def _gone(self) -> _errors.ClientClosedError:
        return _errors.ClientClosedError(f"{self._what} is closed")

    def close(self, last: Work[None] | None = None) -> None:
        """End all calls and the thread, after some last work; twice is fine."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._process != os.getpid():
            return
        if thread is threading.current_thread():
            # What used it was forgotten, and it is here that nothing held it any longer.
            loop.create_task(_end(last)).add_done_callback(lambda _: loop.stop())
            return
        asyncio.run_coroutine_threadsafe(_end(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        self._executor.shutdown(wait=False)
        loop.close()


async def _end(last: Work[None] | None) -> None:
    try:
        if last is not None:
            await last()
    finally:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
