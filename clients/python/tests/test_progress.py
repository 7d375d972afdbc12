"""Patterns, and where a subscriber resumes."""

from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loombridge import _progress
from loombridge.v1 import events_pb2 as pb

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALL = _progress.Choice()


def event(topic: str, sequence: int, seconds: float = 0) -> pb.Event:
    time = Timestamp()
    time.FromDatetime(NOW + timedelta(seconds=seconds))
    return pb.Event(topic=topic, sequence=sequence, create_time=time)


def place(topic: str, after: int) -> pb.TopicPosition:
    return pb.TopicPosition(topic=topic, after_sequence=after)


def since(position: pb.TopicPosition) -> float | None:
    """Return how many seconds after NOW a position begins."""
    if not position.HasField("since"):
        return None
    return (position.since.ToDatetime(tzinfo=UTC) - NOW).total_seconds()


@pytest.mark.parametrize(
    ("pattern", "topic", "fits"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("*.b", "a.b", True),
        ("*.b", "a.c", False),
        ("a.*.c", "a.x.c", True),
        ("a.**", "a.b.c", True),
        ("a.**", "a.b", True),
        ("a.**", "a", False),
        ("a.**", "ab.c", False),
        ("**", "a", True),
        ("*", "a", True),
        ("*", "a.b", False),
        ("*.**", "a", False),
        ("*.**", "a.b", True),
    ],
)
def test_matching(pattern: str, topic: str, fits: bool) -> None:
    assert _progress.matches(pattern, topic) is fits


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a.*", "a.b", True),
        ("a.*", "*.b", True),
        ("a.*", "b.*", False),
        ("a.*", "a", False),
        ("a.**", "a.b.c", True),
        ("a.**", "a", False),
        ("**", "a", True),
        ("a.**", "*.b.*", True),
        ("a.b.**", "a.*", False),
    ],
)
def test_overlap(one: str, other: str, meet: bool) -> None:
    assert _progress.overlap(one, other) is meet
    assert _progress.overlap(other, one) is meet


def test_an_exact_topic_resumes_behind_its_last_event() -> None:
    progress = _progress.Progress({"t": None}, None)
    assert not _progress.wire("t", [(progress, ALL)]).HasField("after_sequence")
    progress.stand([place("t", 4), place("other", 9)], NOW)
    assert _progress.wire("t", [(progress, ALL)]).after_sequence == 4
    assert [progress.take(event("t", n)) for n in (4, 5, 5, 6)] == [False, True, False, True]
    assert progress.positions == {"t": 6}
    assert _progress.wire("t", [(progress, ALL)]).after_sequence == 6


class Clock:
    """The clock of this machine, as a test sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(_progress, "monotonic", lambda: self.now)


def test_a_pattern_resumes_where_all_its_topics_were_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    progress = _progress.Progress({"p.*": None}, None)
    assert since(_progress.wire("p.*", [(progress, ALL)])) is None
    progress.stand([], NOW)
    resumed: list[float | None] = []
    for sequence in range(1, 5):
        assert progress.take(event("p.a", sequence, 6 * sequence))
        resumed.append(since(_progress.wire("p.*", [(progress, ALL)])))
        clock.now += 6
    assert resumed == [0, 5, 5, 11]
    assert not progress.take(event("p.a", 1, 6))
    assert not progress.take(event("p.c", 1, -1))
    assert progress.positions == {"p.*": None}


def test_a_pattern_that_is_behind_in_a_topic_does_not_skip_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    progress = _progress.Progress({"p.*": None}, NOW)
    for sequence in range(1, 9):
        assert progress.take(event("p.new", sequence, 1000 + sequence))
        assert progress.take(event("p.old", sequence, sequence))
        clock.now += 2
    assert since(_progress.wire("p.*", [(progress, ALL)])) == 0
    for sequence in range(9, 20):
        assert progress.take(event("p.new", sequence, 1000 + 2 * sequence))
        clock.now += 2
    assert since(_progress.wire("p.*", [(progress, ALL)])) == 1029


def test_since_holds_for_topics_without_a_sequence() -> None:
    progress = _progress.Progress({"t": None, "u": 3, "p.**": None}, NOW)
    positions = [_progress.wire(topic, [(progress, ALL)]) for topic in ("t", "u", "p.**")]
    assert [since(each) for each in positions] == [0, None, 0]
    assert positions[1].after_sequence == 3
    progress.stand([place("t", 2), place("u", 3)], NOW + timedelta(hours=1))
    assert progress.take(event("p.a", 1, 1))
    assert progress.take(event("t", 3, 1))
    assert _progress.wire("t", [(progress, ALL)]).after_sequence == 3


def test_volatile_events_are_always_taken() -> None:
    progress = _progress.Progress({"p.*": None}, None)
    progress.stand([], NOW)
    assert [progress.take(event("p.a", 0, -5)) for _ in range(2)] == [True, True]


def test_topics_that_come_and_go_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "TOPICS_REMEMBERED", 2)
    progress = _progress.Progress({"p.*": None}, None)
    for name, sequence in (("a", 1), ("b", 1), ("a", 2), ("c", 1)):
        assert progress.take(event(f"p.{name}", sequence))
    assert not progress.take(event("p.c", 1))
    assert not progress.take(event("p.a", 2))
    assert progress.take(event("p.b", 1))


@pytest.mark.parametrize(
    ("one", "other", "after", "begins"),
    [
        ((None, None), (None, None), None, None),
        ((5, None), (None, None), 5, None),
        ((5, None), (3, None), 3, None),
        ((None, NOW), (None, None), None, 0),
        ((None, NOW), (None, NOW - timedelta(seconds=9)), None, -9),
        ((5, None), (None, NOW), 0, None),
    ],
)
def test_those_who_share_a_topic_begin_with_the_earliest(
    one: tuple[int | None, datetime | None],
    other: tuple[int | None, datetime | None],
    after: int | None,
    begins: float | None,
) -> None:
    members = [(_progress.Progress({"t": n}, time), ALL) for n, time in (one, other)]
    position = _progress.wire("t", members)
    assert (position.after_sequence if position.HasField("after_sequence") else None) == after
    assert since(position) == begins


def test_those_who_share_a_topic_get_what_each_wants() -> None:
    progress = _progress.Progress({"t": 1}, None)
    fresh = _progress.choice("realtime", ["big"], {"h": "v"}, None)
    alone = _progress.wire("t", [(progress, fresh), (progress, fresh)])
    assert alone.quality_of_service == pb.QUALITY_OF_SERVICE_REALTIME
    assert (list(alone.event_types), dict(alone.headers)) == (["big"], {"h": "v"})
    both = _progress.wire("t", [(progress, fresh), (progress, ALL)])
    assert both == pb.TopicPosition(topic="t", after_sequence=1)
