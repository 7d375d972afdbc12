"""Results of tools, shortened for a prompt."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from loombridge import _brief, _steps, _values
from loombridge.v1 import context_pb2 as pb

ResultKind: TypeAlias = Literal["search", "file", "exec", "api", "text"]
"""What a result is, which says how it can be shortened."""

CompressHint: TypeAlias = Literal["skip", "normal", "force", "search"]
"""What to do with a result: leave it, shorten what is long, shorten much of what is not
very short, or take it for the result of a search."""


@dataclass(frozen=True, slots=True, repr=False)
class CompressedResult(_brief.Brief):
    """A result as a prompt should show it."""

    content: str
    """The text."""
    compressed: bool
    """It is not the whole."""
    blob: _steps.BlobInfo | None
    """A JSON object whose `content` is the whole, when that is more than `content` here."""
    strategy: str
    """What was applied, such as `search`; empty when nothing was."""


def content_text(content: object) -> str:
    """Return a result as text: text as it is, anything else as JSON."""
    if isinstance(content, str):
        return _values.text("content", content)
    return _values.json_text("content", content)


def hint_number(hint: object) -> pb.CompressHint:
    """Return the number of a hint."""
    number = _values.enum_number("hint", pb.CompressHint.DESCRIPTOR, "COMPRESS_HINT_", hint)
    # pyright knows enums of the wire by their names only; the number is the same.
    return cast("pb.CompressHint", number)


def compressed_result(m: pb.CompressResultResponse) -> CompressedResult:
    """Return a shortened result as users see it."""
    return CompressedResult(
        content=m.content,
        compressed=m.compressed,
        blob=_steps.blob_info(m.blob) if m.HasField("blob") else None,
        strategy=m.strategy,
    )
