"""Results of tools as an agent gives them: every byte is kept as it came."""

import asyncio
import base64
import enum
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias, cast

from loombridge import _values
from loombridge.v1 import context_pb2 as pb

LONGEST_MESSAGE: Final = 1 << 20
"""Bytes of a result that go in one message; a longer one is streamed."""

PIECE: Final = 256 << 10
"""Bytes of a streamed result that go in one message."""

BlobForm: TypeAlias = Literal["original", "text", "stdout", "stderr", "media"]
"""A form of a step's result: every byte as it was given; for reading; what a program
printed, and what it said to its user; an image or other bytes within it, decoded."""


class Unset(enum.Enum):
    """Nothing was given, not even None."""

    UNSET = enum.auto()


UNSET: Final = Unset.UNSET
"""The value of an argument that was not given."""


class JsonText(str):
    """JSON text, to be kept as it is: `output=JsonText('{"price": 1.0}')`.

    Any other `str` is a text. A dict or list is written as JSON by this client, which
    keeps its order and its numbers as Python has them.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An image among content blocks."""

    data: bytes
    """Its bytes."""
    media_type: str = ""
    """Such as `image/png`; default: what the bytes look like."""


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound among content blocks."""

    data: bytes
    """Its bytes."""
    media_type: str = ""
    """Such as `audio/wav`; default: what the bytes look like."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that has an address, among content blocks."""

    uri: str
    """The address."""
    content: str | bytes = ""
    """What is there: text or bytes."""
    media_type: str = ""
    """Its format."""


@dataclass(frozen=True, slots=True)
class Content:
    """A result made of content blocks, as in MCP; a `str` is a block of text.

    It is kept as the JSON that MCP has for it. The blocks take at most 1 MiB together.
    """

    blocks: Sequence[str | Image | Audio | Resource]
    """The blocks, in order; at most 256."""


Output: TypeAlias = (
    _values.JsonValue
    | JsonText
    | bytes
    | bytearray
    | memoryview
    | Path
    | AsyncIterable[bytes]
    | Content
)
"""What a tool gave: text, bytes, JSON, the file at a path, a stream of bytes, or
content blocks."""


class BlobData(bytes):
    """The bytes of a blob, and what they say."""

    def text(self, errors: str = "strict") -> str:
        """Return the bytes as text in UTF-8.

        Raises:
            UnicodeDecodeError: they are none, and `errors` is `strict`.
        """
        return self.decode("utf-8", errors)

    def json(self) -> Any:
        """Return what the bytes say as JSON.

        Raises:
            ValueError: they are not JSON.
        """
        return json.loads(self)


@dataclass(frozen=True, slots=True)
class Upload:
    """A result that goes in several messages."""

    announced: pb.ResultUpload
    """What the first message says of it."""
    pieces: Callable[[], AsyncIterator[bytes]]
    """Returns its pieces, each time it is called if it is repeatable."""
    repeatable: bool
    """It can be sent again from its beginning."""


def put(request: pb.RecordStepRequest, output: Output, media_type: str | None) -> Upload | None:
    """Put a result into a request, or return it as an upload when it is too long.

    Raises:
        TypeError: it is nothing that a result can be.
        ValueError: it is not JSON, or has a media type and no bytes.
    """
    if isinstance(output, bytes | bytearray | memoryview):
        return _put_bytes(request, bytes(output), _values.optional_text("media_type", media_type))
    if isinstance(output, Path):
        announced = _announced(pb.RESULT_FORM_BYTES, media_type)
        return Upload(announced, lambda: _of_file(output), repeatable=True)
    if isinstance(output, AsyncIterable):
        announced = _announced(pb.RESULT_FORM_BYTES, media_type)
        return Upload(announced, lambda: _of_stream(output), repeatable=False)
    if media_type is not None:
        raise ValueError("media_type is for an output of bytes")
    if isinstance(output, Content):
        request.output_json = _content(output)
        return None
    form = pb.RESULT_FORM_JSON
    if isinstance(output, JsonText):
        text = _values.text("output", output, mend=True)
    elif isinstance(output, str):
        form, text = pb.RESULT_FORM_TEXT, _values.text("output", output, mend=True)
    else:
        text = _values.json_text("output", output, mend=True)
    if len(text) > LONGEST_MESSAGE // 4 and len(text.encode()) > LONGEST_MESSAGE:
        data = text.encode()
        return Upload(pb.ResultUpload(form=form), lambda: _of_bytes(data), repeatable=True)
    if form == pb.RESULT_FORM_TEXT:
        request.output_text = text
    else:
        request.output_json = text
    return None


def _put_bytes(request: pb.RecordStepRequest, data: bytes, media_type: str | None) -> Upload | None:
    if len(data) > LONGEST_MESSAGE:
        announced = _announced(pb.RESULT_FORM_BYTES, media_type)
        return Upload(announced, lambda: _of_bytes(data), repeatable=True)
    request.output_bytes.CopyFrom(pb.ResultBytes(data=data, media_type=media_type or ""))
    return None


def _announced(form: pb.ResultForm, media_type: str | None) -> pb.ResultUpload:
    return pb.ResultUpload(
        form=form, media_type=_values.optional_text("media_type", media_type) or ""
    )


def form(name: str) -> pb.BlobForm:
    """Return the number of a form.

    Raises:
        ValueError: it is none.
    """
    # pyright knows enums of the wire by their names only; the number is the same.
    number = _values.enum_number("form", pb.BlobForm.DESCRIPTOR, "BLOB_FORM_", name)
    return cast("pb.BlobForm", number)


async def _of_bytes(data: bytes) -> AsyncIterator[bytes]:
    for piece in _cut(data):
        yield piece


def _cut(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


async def _of_file(path: Path) -> AsyncIterator[bytes]:
    file: IO[bytes] = await asyncio.to_thread(path.open, "rb")
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece


async def _of_stream(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for each in stream:
        for piece in _cut(bytes(each)):
            yield piece


def _content(content: Content) -> str:
    blocks = [_block(i, each) for i, each in enumerate(content.blocks)]
    return json.dumps({"content": blocks}, ensure_ascii=False, separators=(",", ":"))


def _block(i: int, block: object) -> dict[str, object]:
    """Return a block as MCP writes it, keys sorted."""
    if isinstance(block, str):
        return {"text": _values.text(f"blocks[{i}]", block), "type": "text"}
    if isinstance(block, Image | Audio):
        kind = "image" if isinstance(block, Image) else "audio"
        return {"data": _base64(block.data), "mimeType": _media_type(block), "type": kind}
    if isinstance(block, Resource):
        resource: dict[str, object] = {"uri": block.uri}
        if block.media_type:
            resource["mimeType"] = block.media_type
        if isinstance(block.content, str):
            resource["text"] = block.content
        else:
            resource["blob"] = _base64(block.content)
        return {"resource": dict(sorted(resource.items())), "type": "resource"}
    raise TypeError(f"blocks[{i}] must be a str, Image, Audio or Resource, not {block!r:.80}")


_LOOKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def _media_type(block: Image | Audio) -> str:
    """Return the format that is given, or that the bytes look like."""
    if block.media_type:
        return block.media_type
    data = bytes(block.data[:12])
    if data.startswith(b"RIFF") and data[8:12] in _RIFF:
        return _RIFF[data[8:12]]
    looks = (kind for start, kind in _LOOKS if data.startswith(start))
    return next(looks, "application/octet-stream")


def _base64(data: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(bytes(data)).decode()
