"""How checkpoints lie in memory: one record each, with what changed since another.

The value of a channel is stored in the record of the checkpoint that changed it, and others
name that checkpoint. A long value is stored as what to change in an earlier one.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from loombridge import _filters, _parts, _records

KIND = "langgraph.checkpoint"
"""The kind of a checkpoint's record."""

WRITES_KIND = "langgraph.writes"
"""The kind of a record of writes that belong to a checkpoint."""

PART_KIND = "langgraph.part"
"""The kind of a record that holds more of what does not fit into another."""

Typed: TypeAlias = tuple[str, bytes]
"""A value as a serializer of LangGraph makes it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The checkpoints of one graph, or sub-graph, in one thread."""

    thread: str
    ns: str

    @property
    def session(self) -> str:
        """The session that the records are in."""
        return session_of(self.thread)

    def key(self, checkpoint_id: str) -> str:
        """Return the key of a checkpoint's record."""
        return f"{KIND}:{_digest(self.thread, self.ns, checkpoint_id)}"

    def filter(self, *conditions: str) -> str:
        """Return the filter of records that belong to checkpoints."""
        return " AND ".join(
            [
                f"session_id = {_filters.literal(self.session)}",
                f"{_PATH}.ns = {_filters.literal(self.ns)}",
                *conditions,
            ]
        )


_PATH = "metadata.langgraph"


@dataclass(frozen=True, slots=True)
class Value:
    """Where the bytes of a value are, and what they are."""

    kind: str
    """The serializer's name of the type."""
    chunk: int
    """Which chunk of the body."""
    base: str = ""
    """The checkpoint whose value it changes; empty: it is whole."""
    root: str = ""
    """The first checkpoint of that chain."""
    depth: int = 0
    """How many values change others."""
    changed: int = 0
    """Bytes of all changes since the root."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a checkpoint's record holds."""

    chunks: Sequence[bytes]
    checkpoint: Value
    metadata: Value
    parent: str | None
    values: Mapping[str, Value]
    """By channel what this checkpoint has set."""
    where: Mapping[str, str]
    """By channel the checkpoint that has set it, for the other ones."""

    def typed(self, value: Value) -> Typed:
        """Return a whole value."""
        return value.kind, self.chunks[value.chunk]

    @property
    def size(self) -> int:
        """Bytes of it."""
        return sum(map(len, self.chunks)) + 200 * len(self.values)

    def owners(self, own: str) -> dict[str, str]:
        """Return by channel the checkpoint that has set it; own: its own id."""
        return {**self.where, **dict.fromkeys(self.values, own)}


def session_of(thread: str) -> str:
    """Return the session of a thread: its name, or a digest of one that is too long."""
    plain = thread and thread.isprintable() and len(thread.encode()) <= 200
    return thread if plain else f"sha256:{_digest(thread)}"


def draft(
    place: Place,
    key: str | None,
    kind: str,
    about: Mapping[str, str],
    chunks: Sequence[bytes],
    head: object,
) -> list[_records.RecordDraft]:
    """Return the records that hold a head, which is JSON, and chunks; the main one last."""
    main = _records.RecordDraft(
        text=_parts.NO_WORDS,
        key=key,
        kind=kind,
        session_id=place.session,
        metadata={"langgraph": {"thread": place.thread, "ns": place.ns, **about}},
    )
    return _parts.drafts(main, PART_KIND, head, chunks)


def body_draft(place: Place, checkpoint_id: str, body: Body) -> list[_records.RecordDraft]:
    """Return the records of a checkpoint, its own one last."""
    head = {
        "checkpoint": list(asdict(body.checkpoint).values()),
        "metadata": list(asdict(body.metadata).values()),
        "parent": body.parent,
        "values": {name: list(asdict(each).values()) for name, each in body.values.items()},
        "where": body.where,
    }
    about = {"id": checkpoint_id}
    return draft(place, place.key(checkpoint_id), KIND, about, body.chunks, head)


def body_of(head: Any, chunks: Sequence[bytes]) -> Body:
    """Return a checkpoint of what its records hold together."""
    return Body(
        chunks=chunks,
        checkpoint=Value(*head["checkpoint"]),
        metadata=Value(*head["metadata"]),
        parent=head["parent"],
        values={name: Value(*each) for name, each in head["values"].items()},
        where=head["where"],
    )


def about(record: _records.Record) -> Mapping[str, str]:
    """Return what a record says of its place."""
    return record.metadata["langgraph"]


def place_of(record: _records.Record) -> Place:
    """Return where a record's checkpoint is."""
    said = about(record)
    return Place(said["thread"], said["ns"])


def _digest(*names: str) -> str:
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:40]
