"""What the calls of one store share: how many are under way, and what they read."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

ResultT = TypeVar("ResultT")

AT_ONCE = 32
"""Items that are read or written at the same time; thousands that a graph asks for at once
would else wait in the server, until its time for them is over."""


class ReadCoalescer:
    """Makes one reading of equal ones, and bounds how many calls a store has under way.

    It is used on one event loop.
    """

    def __init__(self) -> None:
        """Nobody waits."""
        self.places = asyncio.Semaphore(AT_ONCE)
        """Hold one for as long as an item is written."""
        self._waiting: dict[str, _Reading] = {}
        """Readings that have not begun."""

    async def read(self, name: str, read: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Return what a reading finds, once it has a place.

        Those who ask for the same before it begins share it: none of them misses what was
        written when they asked.

        Args:
            name: what is read; equal names are equal readings.
            read: reads it.
        """
        first = name not in self._waiting
        if first:
            task = asyncio.create_task(self._carry_out(name, read))
            self._waiting[name] = _Reading(task)
        reading = self._waiting[name]
        reading.wanted += 1
        try:
            found = await asyncio.shield(reading.task)
        finally:
            reading.wanted -= 1
            if not reading.wanted:
                self._leave(name, reading)
        # What is found belongs to who asked, who may change it.
        return cast("ResultT", found if first else copy.deepcopy(found))

    async def _carry_out(self, name: str, read: Callable[[], Awaitable[Any]]) -> Any:
        async with self.places:
            # Who comes from now on may have to see what this reading no longer does.
            self._waiting.pop(name, None)
            return await read()

    def _leave(self, name: str, reading: "_Reading") -> None:
        if not reading.task.done():
            reading.task.cancel()
        if self._waiting.get(name) is reading:
            del self._waiting[name]


class _Reading:
    """A reading that waits for its place."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.wanted = 0
        """Who waits for it."""
