"""How checkpoints lie in memory: one record each, with what changed since another.

The value of a channel is stored in the record of the checkpoint that changed it, and others
name that checkpoint. A long value is stored as what to change in an earlier one.
"""

import base64
import hashlib
import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from loombridge import _records

KIND = "langgraph.checkpoint"
"""The kind of a checkpoint's record."""

WRITES_KIND = "langgraph.writes"
"""The kind of a record of writes that belong to a checkpoint."""

PART_KIND = "langgraph.part"
"""The kind of a record that holds more of what does not fit into another."""

PART_BYTES = 42 << 10
"""Bytes that a record holds, before base64: its metadata has at most 64 KiB."""

NO_WORDS = "-"

_LENGTH = struct.Struct("<I")

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
                f"session_id = {literal(self.session)}",
                f"{_PATH}.ns = {literal(self.ns)}",
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


def literal(text: str) -> str:
    """Return a text for a filter, where an asterisk is itself."""
    return json.dumps(text).replace("*", "\\\\*")


def draft(
    place: Place,
    key: str | None,
    kind: str,
    about: Mapping[str, str],
    chunks: Sequence[bytes],
    head: object,
) -> list[_records.RecordDraft]:
    """Return the records that hold a head, which is JSON, and chunks; the main one last."""
    sizes = [len(chunk) for chunk in chunks]
    top = json.dumps([head, sizes], separators=(",", ":")).encode()
    packed = zlib.compress(b"".join([_LENGTH.pack(len(top)), top, *chunks]), 1)
    pieces = [packed[at : at + PART_BYTES] for at in range(0, len(packed), PART_BYTES)]
    name = f"{PART_KIND}:{uuid.uuid4().hex}"
    main = _records.RecordDraft(
        text=NO_WORDS,
        key=key,
        kind=kind,
        session_id=place.session,
        metadata={
            "langgraph": {"thread": place.thread, "ns": place.ns, **about},
            "parts": [name, len(pieces)],
            "body": base64.b64encode(pieces[0]).decode(),
        },
    )
    return [
        *(
            replace(
                main,
                key=f"{name}#{number}",
                kind=PART_KIND,
                metadata={"body": base64.b64encode(piece).decode()},
            )
            for number, piece in enumerate(pieces[1:], 1)
        ),
        main,
    ]


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


def body_of(packed: bytes) -> Body:
    """Return what the records of a checkpoint hold together."""
    head, chunks = unpacked(packed)
    return Body(
        chunks=chunks,
        checkpoint=Value(*head["checkpoint"]),
        metadata=Value(*head["metadata"]),
        parent=head["parent"],
        values={name: Value(*each) for name, each in head["values"].items()},
        where=head["where"],
    )


def unpacked(packed: bytes) -> tuple[Any, list[bytes]]:
    """Return the head and the chunks of records."""
    data = zlib.decompress(packed)
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    head, sizes = json.loads(data[_LENGTH.size : at])
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    return head, chunks


def piece_of(record: _records.Record) -> bytes:
    """Return the bytes that a record holds."""
    return base64.b64decode(record.metadata["body"])


def part_names(record: _records.Record) -> list[str]:
    """Return the keys of the other records that belong to one, in order."""
    name, count = record.metadata["parts"]
    return [f"{name}#{number}" for number in range(1, count)]


def about(record: _records.Record) -> Mapping[str, str]:
    """Return what a record says of its place."""
    return record.metadata["langgraph"]


def place_of(record: _records.Record) -> Place:
    """Return where a record's checkpoint is."""
    said = about(record)
    return Place(said["thread"], said["ns"])


def any_of(field_name: str, values: Iterable[str]) -> str:
    """Return the condition that a field has one of some values."""
    return f"({' OR '.join(f'{field_name} = {literal(value)}' for value in values)})"


def _digest(*names: str) -> str:
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:40]
