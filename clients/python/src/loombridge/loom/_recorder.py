"""The queue between a loom-py agent and its log."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from loombridge import _client, _errors, _rpc
from loombridge.loom import _entries

QUEUE_ENTRIES = 1000
"""Entries that may wait to be recorded: minutes of a busy agent, so that a restart of the
server loses nothing. What comes on top is not recorded."""

QUEUE_SIZE = 64 << 20
"""Characters that the waiting entries may hold together."""

_LATER = (
    _errors.ServerUnreachableError,
    _errors.ShuttingDownError,
    _errors.OverloadedError,
    _errors.DeadlineExceededError,
    _errors.OutcomeUnknownError,
)
# Errors that pass: the same entry is sent again, under the same request_id.

_log = logging.getLogger("loombridge.loom")


class Recorder:
    """Records entries one after the other, in the order they are added.

    Belongs to the event loop that adds the first one. Nothing it does raises into the
    agent; what goes wrong is logged, once until a step is recorded again.
    """

    def __init__(self, connect: Callable[[], Awaitable[_client.Client]]) -> None:
        """Record through the client that `connect` returns, asked for with each call."""
        self.lost = 0
        """How many entries of the log were not recorded."""
        self._connect = connect
        self._waiting: deque[_entries.Entry] = deque()
        self._size = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._worker: asyncio.Task[None] | None = None
        self._complaints: set[str] = set()

    def add(self, entry: _entries.Entry) -> None:
        """Take an entry to be recorded soon; returns at once."""
        full = self._size + entry.size > QUEUE_SIZE
        if len(self._waiting) >= QUEUE_ENTRIES or full:
            self._lose(entry)
            self._complain("full", "steps are not recorded: too many are waiting")
            return
        loop = asyncio.get_running_loop()
        self._waiting.append(entry)
        self._size += entry.size
        self._idle.clear()
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())

    async def flush(self, timeout: float) -> bool:
        """Wait until nothing waits, at most so many seconds; say whether that is so."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        return self._idle.is_set()

    async def close(self, timeout: float) -> None:
        """Record what waits, at most for so many seconds, and end; the rest is lost."""
        try:
            await self.flush(timeout)
        finally:
            worker, self._worker = self._worker, None
            if worker is not None:
                worker.cancel()
                await asyncio.wait([worker])
            self._forget()

    def _forget(self) -> None:
        if steps := sum(entry.matters for entry in self._waiting):
            _log.warning("%d steps are not recorded: the agent stopped", steps)
        for entry in self._waiting:
            self._lose(entry)
        self._waiting.clear()
        self._size = 0
        self._idle.set()

    async def _work(self) -> None:
        while self._waiting:
            await self._record(self._waiting[0])
            self._size -= self._waiting.popleft().size
        self._idle.set()

    async def _record(self, entry: _entries.Entry) -> None:
        for pause in _rpc.pauses():
            try:
                await entry.send(await self._connect())
            except _LATER as err:
                self._complain(err.code or "unreachable", "steps wait to be recorded: %s", err)
                await asyncio.sleep(pause)
            except Exception as err:
                # Whatever it is, it is no business of the agent's.
                self._lose(entry)
                # A wrong address is wrong for every tool: it is logged once.
                wrong = isinstance(err, _errors.WrongAddressError)
                kind = type(err).__name__ + ("" if wrong else f" {entry.what}")
                self._complain(kind, "%s is not recorded: %s", entry.what, err)
                return
            else:
                self._complaints.clear()
                entry.over(True)
                return

    def _lose(self, entry: _entries.Entry) -> None:
        self.lost += entry.matters
        entry.over(False)

    def _complain(self, kind: str, text: str, *args: object) -> None:
        level = logging.DEBUG if kind in self._complaints else logging.WARNING
        self._complaints.add(kind)
        _log.log(level, text, *args)
