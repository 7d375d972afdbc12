"""The listeners of an agent, and the topics that its stream carries for them."""

import asyncio
from collections.abc import Callable, Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from loombridge import _errors, _inbox, _progress, _values
from loombridge._inbox import State
from loombridge.v1 import events_pb2 as pb

DYNAMIC = (State.WAITING, State.ON)
"""States of listeners that come and go while a stream is open."""

TOPICS_PER_STREAM = 64
"""Topics and patterns that an agent may listen to at the same time."""


class Listeners:
    """Who listens to what.

    Listeners of one topic share it on the stream. Each topic has a version, which goes
    up when the stream must begin with it anew: a listener came, or has room again.
    """

    def __init__(self, renew: Callable[[], None]) -> None:
        """Begin without listeners; `renew` has a new stream take over."""
        self.changed = asyncio.Event()
        """Set when the stream may have to carry other topics."""
        self._renew = renew
        self._inboxes: list[_inbox.Inbox] = []
        self._versions: dict[str, int] = {}
        self._version = 0

    def join(self, inbox: _inbox.Inbox) -> None:
        """Add a listener.

        Raises:
            ValueError: the topics become too many.
        """
        if len(self._topics() | inbox.progress.positions.keys()) > TOPICS_PER_STREAM:
            raise ValueError(f"an agent can listen to {TOPICS_PER_STREAM} topics at most")
        self._inboxes.append(inbox)
        inbox.on_full = self.changed.set
        inbox.on_room = lambda: self._enter(inbox)
        self._enter(inbox)

    def _enter(self, inbox: _inbox.Inbox) -> None:
        """Have the stream carry a listener's topics, from where it stands."""
        inbox.state = State.WAITING
        if self._is_mixed(inbox):
            # Newer events of these topics are on their way to others. A stream of
            # its own age is the only one on which the listener gets them in order.
            inbox.state = State.ANEW
            self._renew()
        for topic in inbox.progress.positions:
            if inbox.state is State.WAITING or topic not in self._versions:
                self._version += 1
                self._versions[topic] = self._version
        self.changed.set()

    def _is_mixed(self, inbox: _inbox.Inbox) -> bool:
        """Tell whether others take events that this listener wants from the past on."""
        mine = inbox.progress.positions
        others = self._topics() - mine.keys()
        return any(inbox.progress.begin(topic) is not None for topic in mine) and any(
            _progress.overlap(topic, other) for topic in mine for other in others
        )

    def leave(self, inbox: _inbox.Inbox) -> None:
        """Take a listener away; no error if it is not here."""
        inbox.close()
        if inbox not in self._inboxes:
            return
        self._inboxes.remove(inbox)
        for topic in self._versions.keys() - self._topics():
            del self._versions[topic]
        self.changed.set()

    def _topics(self) -> set[str]:
        return {topic for inbox in self._inboxes for topic in inbox.progress.positions}

    def fail(self, err: _errors.LoomBridgeError) -> None:
        """Hand out an error to all: a loop ends with it, a handler begins again later."""
        for inbox in self._inboxes:
            inbox.fail(err)
        self._inboxes = [inbox for inbox in self._inboxes if inbox.handled]

    def listening(self, *states: State) -> list[_inbox.Inbox]:
        """Return the listeners that have room, or the ones in some states."""
        wanted = states or (State.WAITING, State.ANEW, State.ON)
        return [inbox for inbox in self._inboxes if inbox.state in wanted]

    def carried(self, *states: State) -> dict[str, int]:
        """Return the topics that the stream should carry, with the version of each."""
        return {
            topic: self._versions[topic]
            for inbox in self.listening(*states)
            for topic in inbox.progress.positions
        }

    def members(self, topic: str, *states: State) -> list[_inbox.Inbox]:
        """Return the listeners of a topic that have room, or are in some states."""
        return [each for each in self.listening(*states) if topic in each.progress.positions]

    def shared(self) -> set[str]:
        """Return the topics that have several listeners."""
        return {topic for topic in self.carried() if len(self.members(topic)) > 1}

    def wire(self, topic: str, *states: State) -> pb.TopicPosition:
        """Return a topic, and where to begin in it, as the server wants to hear it."""
        members = self.members(topic, *states)
        return _progress.wire(topic, [(each.progress, each.chosen) for each in members])

    def deliver(self, m: pb.Event, dropped: int) -> None:
        """Give an event to all who want it."""
        for inbox in [each for each in self._inboxes if each.wants(m)]:
            inbox.offer(m, dropped)

    def server_time(self, m: Timestamp) -> None:
        """Tell all what time it is at the server."""
        now = _values.moment(m)
        for inbox in self._inboxes:
            inbox.progress.server_time(now)


def stand(
    members: Iterable[_inbox.Inbox],
    positions: Iterable[pb.TopicPosition],
    server_time: Timestamp,
    shared: set[str],
) -> None:
    """Note for some listeners where the server begins."""
    progress = list(positions)
    now = _values.moment(server_time)
    for inbox in members:
        if inbox.stood.is_set():
            inbox.progress.server_time(now)
        inbox.progress.stand(progress, now, shared)
        if inbox.state in (State.WAITING, State.ANEW):
            inbox.state = State.ON
        inbox.stood.set()
