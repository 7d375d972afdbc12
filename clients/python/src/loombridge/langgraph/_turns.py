"""Whose turn it is at an item: who came first."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from loombridge.langgraph import _items


class Turns:
    """The readers and writers of each item, in the order in which they came, from any thread.

    So `asyncio.gather` of two puts and a get of one item leaves the second and gets it, and
    a put behind the get changes nothing of what that gets, as with a store that is at hand.
    """

    def __init__(self) -> None:
        """Nobody writes yet."""
        self._lock = threading.Lock()
        """Guards the writers: a turn is taken for all of its items at once, which is why no
        two wait for each other."""
        self._last: dict[_items.Place, Turn] = {}
        """By item the writer that came last, unless it is over."""
        self._readers: dict[_items.Place, set[Turn]] = {}
        """By item, the readers that came since then and are not done."""

    def take(self, read: Iterable[_items.Place], written: Iterable[_items.Place]) -> "Turn":
        """Return the turn of one who came now, and who reads some items and writes some."""
        turn = Turn(self, frozenset(read), frozenset(written))
        with self._lock:
            places = (place for place in turn.read | turn.written if place in self._last)
            turn.before = {place: self._last[place] for place in places}
            for place in turn.written:
                turn.readers.extend(self._readers.pop(place, ()))
            for place in turn.read - turn.written:
                self._readers.setdefault(place, set()).add(turn)
            self._last.update(dict.fromkeys(turn.written, turn))
        return turn

    def over(self, turn: "Turn") -> None:
        """Let later callers write; if the turn never came, once the earlier ones have written."""
        with self._lock:
            turn.end.set_result(None)
            for place in turn.read:
                if (readers := self._readers.get(place)) is not None:
                    readers.discard(turn)
                    if not readers:
                        del self._readers[place]
            for place in turn.written:
                if self._last.get(place) is not turn:
                    continue
                if (before := turn.writer_before(place)) is None:
                    del self._last[place]
                else:
                    self._last[place] = before


class Turn:
    """The turn of one caller: over at the end of its `with` block, whatever happens in it."""

    def __init__(
        self, turns: Turns, read: frozenset[_items.Place], written: frozenset[_items.Place]
    ) -> None:
        """Made by `Turns.take`."""
        self._turns = turns
        self.read = read
        """The items that are read."""
        self.written = written
        """The items that are written."""
        self.before: Mapping[_items.Place, Turn] = {}
        """By item the writer that came last before; none once this turn has come."""
        self.readers: list[Turn] = []
        """Those who came before to read what this turn writes; none once it has come."""
        self.end: Future[None] = Future()
        """Done when the turn is over."""
        # A future that runs can't be cancelled, and so not by one who no longer waits for it.
        self.end.set_running_or_notify_cancel()

    async def come(self) -> None:
        """Wait until all who came before have written, and read, on any event loop."""
        waiting = [*self.before.values(), *self.readers]
        while waiting:
            turn = waiting.pop()
            await asyncio.wrap_future(turn.end)
            # It gave up before its turn came.
            waiting.extend(turn.before.values())
            waiting.extend(turn.readers)
        self.before, self.readers = {}, []

    def writer_before(self, place: _items.Place) -> "Turn | None":
        """Return the earlier callers that are still to write an item."""
        turn = self.before.get(place)
        while turn is not None and turn.end.done():
            turn = turn.before.get(place)
        return turn

    def __enter__(self) -> Self:
        """Return the turn itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the turn."""
        self._turns.over(self)
