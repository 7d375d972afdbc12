"""Which items were prolonged a moment ago, so that not every reading writes."""

import time

STEPS = 10
"""An item is prolonged again after this part of its time to live."""

MOST = 4096
"""Items that are known, at most; those forgotten are prolonged once more."""


class Leases:
    """The items that were put or prolonged lately; used on one event loop."""

    def __init__(self) -> None:
        """None yet."""
        self._until: dict[str, float] = {}
        """By mark of a writing the moment from which it is prolonged again."""

    def renew(self, mark: str, ttl: float) -> bool:
        """Tell whether an item is to be prolonged, which the caller then does.

        Args:
            mark: names a writing of the item.
            ttl: its time to live, in seconds.
        """
        # A clock of this machine alone: the server's may show another time.
        now = time.monotonic()
        if self._until.get(mark, now) > now:
            return False
        if len(self._until) >= MOST:
            self._until = {each: until for each, until in self._until.items() if until > now}
        if len(self._until) >= MOST:
            self._until.clear()
        self._until[mark] = now + ttl / STEPS
        return True
