"""The second agent: it hears what the first one finds, and keeps count."""

import asyncio
from collections import Counter
from pathlib import PurePosixPath

import loombridge
from _agent import TOPIC


class Listener:
    """Subscribed from the first event on, across every death of the server."""

    def __init__(self, ctx: loombridge.Client) -> None:
        """Listen on a separate connection."""
        self._ctx = ctx
        self._heard = asyncio.Condition()
        self.sequences: list[int] = []
        """Places of the events in their topic, in the order they came."""
        self.folders = Counter[str]()
        """How many findings there are about each top-level folder."""

    async def listen(self) -> None:
        """Take in events until cancelled."""
        async for event in self._ctx.events.subscribe({TOPIC: 0}):
            path = PurePosixPath(str(event.payload["path"]))
            self.folders[path.parts[0] if path.parts else "."] += 1
            async with self._heard:
                self.sequences.append(event.sequence)
                self._heard.notify_all()

    async def has_heard(self, sequence: int, within: float) -> bool:
        """Wait until an event has come; False when it did not within that time."""
        try:
            async with asyncio.timeout(within), self._heard:
                await self._heard.wait_for(lambda: sequence in self.sequences)
        except TimeoutError:
            return False
        return True

    def lost(self, emitted: list[int]) -> list[int]:
        """Return the events that were acknowledged but never came."""
        return sorted(set(emitted) - set(self.sequences))

    def duplicated(self) -> list[int]:
        """Return the events that came more than once."""
        return sorted(place for place, times in Counter(self.sequences).items() if times > 1)
