"""Bytes in records of long-term memory: what is too long for one lies in several."""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loombridge import _filters, _records

BYTES = 42 << 10
"""Bytes that a record holds, before base64: its metadata has at most 64 KiB."""

NO_WORDS = "-"
"""The text of a record that has none."""

_LENGTH = struct.Struct("<I")


def drafts(
    main: _records.RecordDraft,
    kind: str,
    head: object,
    chunks: Sequence[bytes],
    *,
    inside: int = BYTES,
    about: Mapping[str, Any] | None = None,
) -> list[_records.RecordDraft]:
    """Return the records that hold a head, which is JSON, and chunks; the main one last.

    Args:
        main: the record that names the others.
        kind: that of the others.
        head: what is read with the chunks.
        chunks: the bytes.
        inside: how many bytes the main record holds itself at most.
        about: the metadata of the others.
    """
    sizes = [len(chunk) for chunk in chunks]
    top = json.dumps([head, sizes], separators=(",", ":")).encode()
    packed = zlib.compress(b"".join([_LENGTH.pack(len(top)), top, *chunks]), 1)
    own, rest = packed[:inside], packed[inside:]
    pieces = [rest[at : at + BYTES] for at in range(0, len(rest), BYTES)]
    name = f"{kind}:{uuid.uuid4().hex}"
    others = (
        replace(
            main,
            text=NO_WORDS,
            key=f"{name}#{number}",
            kind=kind,
            metadata={**(about or {}), "body": base64.b64encode(piece).decode()},
        )
        for number, piece in enumerate(pieces, 1)
    )
    metadata = {
        **(main.metadata or {}),
        "parts": [name, 1 + len(pieces)],
        "body": base64.b64encode(own).decode(),
    }
    return [*others, replace(main, metadata=metadata)]


def names(record: _records.Record) -> list[str]:
    """Return the keys of the other records that belong to a main one, in order."""
    name, count = record.metadata["parts"]
    return [f"{name}#{number}" for number in range(1, count)]


async def read(
    record: _records.Record, find: Callable[[str], AsyncIterator[_records.Record]]
) -> tuple[Any, list[bytes]]:
    """Return the head and the chunks of a main record; find lists records by a filter.

    Raises:
        KeyError: another one is gone.
    """
    pieces = {"": _piece(record)}
    others = names(record)
    for expression in _filters.some("key", others):
        async for part in find(expression):
            pieces[part.key or ""] = _piece(part)
    data = zlib.decompress(b"".join(pieces[name] for name in ["", *others]))
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    head, sizes = json.loads(data[_LENGTH.size : at])
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    return head, chunks


def _piece(record: _records.Record) -> bytes:
    return base64.b64decode(record.metadata["body"])
