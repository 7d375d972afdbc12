"""Where a subscriber stands in its topics, and which of their events it wants."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Literal, TypeAlias, cast

from loombridge import _values
from loombridge.v1 import events_pb2 as pb

QualityOfService: TypeAlias = Literal["realtime", "batched", "background"]
"""What happens when a reader falls behind: `realtime` keeps 512 events and drops the
rest, durable ones too; `batched` and `background` skip nothing durable and keep 2,048
and 4,096 volatile ones."""

SETTLE = 5.0
"""Seconds without an event from the past after which a pattern counts as read up to
where it was before them. Order holds within a topic, not between topics: what is newest
in one says nothing of the others, but topics that are behind are read round-robin."""

LAG = timedelta(seconds=1)
"""How much older than the newest one an event may be, and still count as new."""

TOPICS_REMEMBERED = 50_000
"""Topics of a pattern whose last sequence is kept, the latest ones, so that topics
which come and go cost no memory for ever."""

LONGEST_TOPIC = 256
"""Bytes of a topic or pattern, as the server has it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which events of its topics a subscriber wants, and how they wait."""

    qos: pb.QualityOfService = pb.QUALITY_OF_SERVICE_UNSPECIFIED
    event_types: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    session_id: str = ""

    def admits(self, m: pb.Event) -> bool:
        """Tell whether the subscriber wants an event."""
        if self.event_types and m.type not in self.event_types:
            return False
        if self.session_id and (m.session_id or m.headers.get("session_id")) != self.session_id:
            return False
        return all(m.headers.get(key) == value for key, value in self.headers)


def choice(
    qos: QualityOfService | None,
    event_types: Iterable[str],
    headers: Mapping[str, str] | None,
    session_id: str | None,
) -> Choice:
    """Check what a user gave and return it as a choice."""
    number = pb.QUALITY_OF_SERVICE_UNSPECIFIED
    if qos is not None:
        enum = pb.QualityOfService.DESCRIPTOR
        found = _values.enum_number("qos", enum, "QUALITY_OF_SERVICE_", qos)
        number = cast("pb.QualityOfService", found)
    pairs = _values.text_map("headers", headers or {})
    return Choice(
        qos=number,
        event_types=tuple(_values.texts("event_types", event_types)),
        headers=tuple(sorted(pairs.items())),
        session_id=_values.optional_text("session_id", session_id),
    )


class Progress:
    """How far a subscriber got in each of its topics, so that it can resume.

    Exact topics resume behind the last sequence. A pattern resumes from the time up
    to which all its topics were read, or its start; duplicates are recognized by topic and
    sequence.
    """

    def __init__(self, topics: dict[str, int | None], since: datetime | None) -> None:
        """Begin at sequences, at `since`, or else with what comes from now on."""
        self.positions = topics
        """By topic, the sequence of the last event handed out; None: not known."""
        self._since = since
        self._start = since
        self._latest: datetime | None = None
        self._read: datetime | None = None
        self._mark: datetime | None = None
        self._marked = 0.0
        self._lagged = False
        self._seen: dict[str, int] = {}
        self._timed = {topic for topic, after in topics.items() if after is None}

    def begin(self, topic: str) -> int | datetime | None:
        """Return where to begin in a topic: behind a sequence or a time, or from now on."""
        after = self.positions[topic]
        if after is not None:
            return after
        return self._resume_time() if is_pattern(topic) else self._since

    def _resume_time(self) -> datetime | None:
        if self._start is None or self._read is None:
            return self._start or self._read
        return max(self._start, self._read)

    def stand(
        self,
        answer: Iterable[pb.TopicPosition],
        now: datetime | None = None,
        shared: Container[str] = (),
    ) -> None:
        """Note where the server begins, so that a break from here on loses nothing.

        Args:
            answer: the exact topics with the sequence that their events follow.
            now: the server's time, where it is known.
            shared: topics that others listen to on the same stream, so that events
                older than the start of this subscriber may come.
        """
        if self._start is None:
            self._start = now
        for place in answer:
            if place.topic in self.positions and self.positions[place.topic] is None:
                self.positions[place.topic] = place.after_sequence
                if place.topic not in shared:
                    self._timed.discard(place.topic)

    def server_time(self, now: datetime) -> None:
        """Follow a server's clock that was set back: what comes is not from the past."""
        if self._start is not None and not self._since:
            self._start = min(self._start, now)

    def take(self, m: pb.Event) -> bool:
        """Note an event; False when it was seen before or is older than the start."""
        if m.sequence == 0:
            return True
        exact = m.topic in self.positions
        last = self.positions[m.topic] if exact else self._seen.get(m.topic)
        if last is not None and m.sequence <= last:
            return False
        time = _values.moment(m.create_time)
        if self._is_older(m.topic if exact else "", time):
            return False
        self._note(m, exact=exact, time=time)
        return True

    def _is_older(self, exact: str, time: datetime) -> bool:
        """Tell whether somebody else of the same stream asked for this event."""
        if self._start is None or time >= self._start:
            return False
        return not exact or exact in self._timed

    def _note(self, m: pb.Event, *, exact: bool, time: datetime) -> None:
        if exact:
            self.positions[m.topic] = m.sequence
            return
        self._seen.pop(m.topic, None)
        self._seen[m.topic] = m.sequence
        if len(self._seen) > TOPICS_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._settle(time)

    def _settle(self, time: datetime) -> None:
        """Note how far all topics of a pattern were read, as an event reports."""
        now = monotonic()
        if self._latest is None:
            self._mark, self._marked, self._latest = time - LAG, now, time
            if self._start is None:
                self._read = time  # The earliest that is known.
        if now - self._marked >= SETTLE:
            if not self._lagged:
                self._read = self._mark
            self._mark, self._marked, self._lagged = self._latest - LAG, now, False
        self._lagged = self._lagged or time < self._latest - LAG
        self._latest = max(self._latest, time)


def wire(topic: str, members: Sequence[tuple[Progress, Choice]]) -> pb.TopicPosition:
    """Return one topic of a stream, for all of its subscribers together.

    The earliest begins; each leaves out by itself what it did not ask for.
    """
    begins = [progress.begin(topic) for progress, _ in members]
    choices = {chosen for _, chosen in members}
    sequences = [begin for begin in begins if isinstance(begin, int)]
    times = [begin for begin in begins if isinstance(begin, datetime)]
    # Those who want different things get all of it, in the way that drops least.
    chosen = choices.pop() if len(choices) == 1 else Choice()
    place = pb.TopicPosition(
        topic=topic,
        quality_of_service=chosen.qos,
        event_types=chosen.event_types,
        headers=dict(chosen.headers),
        session_id=chosen.session_id,
    )
    if sequences:
        # A time and a sequence can't be compared: only the whole topic serves both.
        place.after_sequence = 0 if times else min(sequences)
    elif times:
        place.since.CopyFrom(_values.timestamp("since", min(times)))
    return place


def is_pattern(topic: str) -> bool:
    """Tell whether a name stands for more than one topic."""
    return "*" in topic


def matches(pattern: str, topic: str) -> bool:
    """Tell whether an event of a topic belongs to a topic or pattern."""
    if not is_pattern(pattern):
        return pattern == topic
    words, has = pattern.split("."), topic.split(".")
    if words[-1] == "**":
        words.pop()
        if len(has) <= len(words):
            return False
        has = has[: len(words)]
    return len(words) == len(has) and all(
        word in ("*", each) for word, each in zip(words, has, strict=True)
    )


def overlap(one: str, other: str) -> bool:
    """Tell whether a topic could belong to both of two topics or patterns."""
    words, others = one.split("."), other.split(".")
    for word, each in zip(words, others, strict=False):
        if "**" in (word, each):
            return True
        if word != each and "*" not in (word, each):
            return False
    return len(words) == len(others)


def check_topic(topic: str) -> str:
    """Return a topic or pattern if the server can take it.

    Raises:
        ValueError: it breaks a rule of topics; says which.
    """
    words = topic.split(".")
    if not 0 < len(topic.encode()) <= LONGEST_TOPIC:
        raise ValueError(f"topic must have 1 to {LONGEST_TOPIC} bytes")
    if "" in words:
        raise ValueError(f"topic {topic!r} has an empty word")
    stars = [word for word in words if is_pattern(word)]
    if any(word not in ("*", "**") for word in stars) or "**" in words[:-1]:
        raise ValueError(
            f"topic {topic!r}: `*` must be a whole word, and `**` the last one of a pattern"
        )
    return topic


def positions(topics: object) -> dict[str, int | None]:
    """Return topics, given as one name or with places to begin behind, as a dict."""
    if isinstance(topics, str):
        topics = {topics: None}
    return {
        _values.text("topic", topic): None
        if after is None
        else _values.long_integer(f"after_sequence of {topic}", after)
        for topic, after in _values.mapping("topics", topics).items()
    }


def moment(since: datetime | None) -> datetime | None:
    """Return a time to begin at, checked; None is from now on."""
    return None if since is None else _values.moment(_values.timestamp("since", since))
