"""How items of a store lie in memory: one record each, and one more for each further vector."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

from langgraph.store.base import InvalidNamespaceError, Item, SearchItem

from loombridge import _records, _values

KIND = "langgraph"
"""The kind of an item's record."""

VECTOR_KIND = "langgraph.vector"
"""The kind of a record that holds one of an item's vectors, where it has several."""

NO_WORDS = "-"
"""The text of a record that no words shall find."""

NAME_BYTES = 200
"""Bytes of a record's key that is readable; a longer one is a digest. A server takes 256."""

TEXT_BYTES = 256 << 10
"""Bytes of a text that a server takes."""

METADATA_BYTES = 60 << 10
"""Bytes of a value that stands in the metadata, where it can be filtered; a server takes
64 KiB for all of it. A larger value takes the text's place."""

METADATA_DEPTH = 24
"""Levels of a value that stands in the metadata; a server takes 32 for all of it."""

Place = tuple[tuple[str, ...], str]
"""A namespace and a key: what names an item."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An item on its way into memory."""

    place: Place
    value: Mapping[str, Any]
    texts: Sequence[str]
    """What words shall find it by; none: it is not searched."""
    vectors: Sequence[Sequence[float]] = ()
    """What meaning shall find it by."""
    space: str = ""
    """Where the store's vectors are; empty: it makes none."""
    ttl: timedelta | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Names this writing."""


def check_labels(namespace: Iterable[object]) -> None:
    """Refuse what LangGraph's own methods refuse in a namespace, but for a reserved root.

    Raises:
        InvalidNamespaceError: a label is no text, is empty, or has a `.` or NUL in it.
    """
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label or "\x00" in label:
            raise InvalidNamespaceError(
                f"{label!r} is no label of a namespace: a text without '.' and NUL, not empty"
            )


def name_of(place: Place) -> str:
    """Return the key of an item's record; no two items share one."""
    namespace, key = place
    text = json.dumps([*namespace, key], ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > NAME_BYTES or "\x00" in text:
        text = hashlib.sha256(text.encode()).hexdigest()
    return f"{KIND}:{_values.text('key', text)}"


def part_name(name: str, number: int) -> str:
    """Return the key of the record of an item's vector."""
    return f"{name}#{number}"


def drafts(entry: Entry) -> list[_records.RecordDraft]:
    """Return the records that an item becomes, its own first.

    The others hold its vectors when it has more than one. All of them carry a mark of
    this writing, so that a vector left over from another one is known as such.
    """
    value = plain(entry.value)
    text = _values.json_text("value", value)
    if (size := len(text.encode())) > TEXT_BYTES:
        raise ValueError(
            f"the value of {entry.place} is {size} bytes of JSON; {TEXT_BYTES} are allowed: "
            "keep what is larger elsewhere, or in several items"
        )
    several = len(entry.vectors) > 1
    about: dict[str, Any] = {
        "namespace": {f"n{i}": label for i, label in enumerate(entry.place[0])},
        "key": entry.place[1],
        "mark": entry.mark,
        "searched": bool(entry.texts),
        "vectors": len(entry.vectors) if several else 0,
        "large": size > METADATA_BYTES or _depth(value) > METADATA_DEPTH,
    }
    if entry.ttl is not None:
        about["ttl"] = entry.ttl.total_seconds()
    metadata = {KIND: about} if about["large"] else {KIND: about, "value": value}
    own = _records.RecordDraft(
        text=text if about["large"] else _words(entry.texts),
        key=name_of(entry.place),
        kind=KIND,
        session_id="",
        metadata=metadata,
        ttl=entry.ttl,
    )
    if not several:
        space = entry.space if entry.vectors else None
        return [replace(own, embedding=next(iter(entry.vectors), None), embedding_space=space)]
    return [own, *_parts(entry, own)]


def _parts(entry: Entry, own: _records.RecordDraft) -> list[_records.RecordDraft]:
    return [
        replace(
            own,
            text=NO_WORDS,
            kind=VECTOR_KIND,
            key=part_name(name_of(entry.place), number),
            embedding=vector,
            embedding_space=entry.space,
        )
        for number, vector in enumerate(entry.vectors)
    ]


def _words(texts: Sequence[str]) -> str:
    """Return the text of a record; what is too long is searched in its first part."""
    data = "\n".join(texts).encode()[:TEXT_BYTES]
    return data.decode(errors="ignore").strip() or NO_WORDS


def plain(value: object) -> Any:
    """Return a value as JSON can give it back.

    Raises:
        TypeError: it is not JSON, or an object's key is no string.
    """
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        if wrong := [key for key in pairs if not isinstance(key, str)]:
            raise TypeError(f"keys of a value must be str, not {wrong[0]!r}")
        return {key: plain(each) for key, each in pairs.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("Sequence[object]", value)]
    return value


def _depth(value: object) -> int:
    """Return how many levels of objects and lists a plain value has."""
    deepest, level = 0, [value]
    while level := [each for container in level for each in _members(container)]:
        deepest += 1
    return deepest


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def place_of(record: _records.Record) -> Place:
    """Return which item a record belongs to."""
    about: Any = record.metadata[KIND]
    labels = about["namespace"]
    return tuple(labels[f"n{i}"] for i in range(len(labels))), about["key"]


def mark_of(record: _records.Record) -> str:
    """Return which writing of an item a record comes from."""
    return record.metadata[KIND]["mark"]


def vectors_of(record: _records.Record) -> int:
    """Return how many records of vectors an item has."""
    return record.metadata[KIND]["vectors"]


def ttl_of(record: _records.Record) -> float | None:
    """Return the seconds that an item stays after it was put or prolonged; None: for ever."""
    return record.metadata[KIND].get("ttl")


def put_time(record: _records.Record) -> datetime:
    """Return when an item was put the last time."""
    noted = record.metadata[KIND].get("put")
    return datetime.fromisoformat(noted) if noted else record.update_time or record.create_time


def prolonged(record: _records.Record) -> dict[str, Any] | None:
    """Return the metadata with which an item's record is prolonged; None: as they are.

    Extending the expiry changes the record, but not the item: the item's put time is noted,
    because the record's own time no longer shows it.
    """
    about = record.metadata[KIND]
    if "put" in about:
        return None
    return {**record.metadata, KIND: {**about, "put": put_time(record).isoformat()}}


def is_large(record: _records.Record) -> bool:
    """Report whether the item's value is only in the text of its own record."""
    return record.metadata[KIND]["large"]


def value_of(record: _records.Record) -> dict[str, Any]:
    """Return an item's value."""
    return json.loads(record.text) if is_large(record) else record.metadata["value"]


def item_of(record: _records.Record) -> Item:
    """Return a record as an item."""
    namespace, key = place_of(record)
    return Item(
        value=value_of(record),
        key=key,
        namespace=namespace,
        created_at=record.create_time,
        updated_at=put_time(record),
    )


def found_of(record: _records.Record, score: float | None) -> SearchItem:
    """Return a record as an item that a search found."""
    item = item_of(record)
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=score,
    )
