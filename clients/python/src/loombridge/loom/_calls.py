"""Tool calls of a loom-py agent, brought into the form that a step is recorded in."""

import asyncio
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
import grpc.aio

from loombridge import _results, _values

LARGEST_JSON = 1 << 20
"""Bytes of arguments that the server takes."""

LARGEST_OUTPUT = 16 << 20
"""Characters of an output that are recorded whole: as many as the time for one entry is
enough for."""

KEPT_TEXT = 128 << 10
"""Characters that are kept of a longer one."""

KEPT_ARGUMENT = 1 << 10
"""Characters that are kept of each long argument where all together are too large."""

KEPT_ERROR = 16 << 10
"""Characters that are kept of a failure's text: at four bytes each what the server
takes."""

LONGEST_NAME = 128
"""Characters of a tool's name that the server takes."""

_NO_NAME = re.compile(r"[^A-Za-z0-9_:./-]")

PREFIX = "Tool call failed: "
"""What loom-py puts before the server's own text."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that is over, as the agent saw it."""

    name: str
    """What the agent called."""
    arguments: str
    """Its arguments: JSON, or whatever text the agent sent."""
    output: str
    """What came back: JSON, or whatever text it was; empty for nothing."""
    error: str | None = None
    """Why it failed; None when it did not."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Makes recording it safe to repeat."""

    @property
    def size(self) -> int:
        """How much it holds, in characters."""
        return len(self.arguments) + len(self.output) + len(self.error or "")


@dataclass(frozen=True, slots=True)
class Recordable:
    """A call as the server takes it."""

    tool_name: str
    """At most 128 of the characters that a name may have."""
    arguments: Mapping[str, Any]
    """At most 1 MiB as JSON."""
    output: str | _results.Unset
    """Byte for byte as it came: `JsonText`, or text where it is no JSON."""
    error: str | None
    """At most 64 KiB; None when the call succeeded."""


def snapshot(value: object) -> str:
    """Return value as text, as it is now: the agent may change it later."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    try:
        return json.dumps(value, default=str)
    except Exception:
        return said(value, repr)


def why(err: BaseException) -> str:
    """Return what an exception says, in words for a step."""
    if isinstance(err, asyncio.CancelledError):
        return "cancelled: the agent stopped waiting"
    if isinstance(err, grpc.aio.AioRpcError):
        # As text it is a page for debuggers.
        return f"{err.code().name}: {err.details()}"
    return said(err) or type(err).__name__


def said(value: object, say: Callable[[object], str] = str) -> str:
    """Return value as text, whatever its class does when it is asked."""
    try:
        return say(value)
    except Exception:
        return f"an unprintable {type(value).__name__}"


def recordable(call: Call) -> Recordable:
    """Return the call in a form that the server does not refuse."""
    error = call.error
    if error is not None:
        error = clean(error.removeprefix(PREFIX))[:KEPT_ERROR]
    return Recordable(
        tool_name=_NO_NAME.sub("_", call.name)[:LONGEST_NAME] or "unnamed",
        arguments=_arguments(call.arguments),
        output=_output(call.output),
        error=error,
    )


def _arguments(text: str) -> Mapping[str, Any]:
    value, size = _parse(text)
    if value is None:
        return {}
    named = cast("dict[str, Any]", value) if isinstance(value, dict) else {"payload": value}
    if size <= LARGEST_JSON:
        return named
    short = {key: _short(item) for key, item in named.items()}
    if len(_values.json_text("arguments", short).encode()) <= LARGEST_JSON:
        return short
    return {"payload": _cut(text, KEPT_ARGUMENT)}


def _short(value: object) -> object:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= KEPT_ARGUMENT else _cut(text, KEPT_ARGUMENT)


def _output(text: str) -> str | _results.Unset:
    if not text:
        return _results.UNSET
    if len(text) > LARGEST_OUTPUT:
        return _cut(text, KEPT_TEXT)
    try:
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return clean(text)
    return _results.JsonText(clean(text))


def _no_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _parse(text: str) -> tuple[Any, int]:
    """Return what the text says as JSON, or else the text, and its size on the wire."""
    if not text:
        return None, 0
    try:
        value = json.loads(text)
        return value, len(_values.json_text("value", value).encode())
    except (ValueError, RecursionError):
        # No JSON, or something that Python's JSON has and others do not, such as NaN.
        value = clean(text)
        return value, len(_values.json_text("value", value).encode())


def clean(text: str) -> str:
    """Return text without lone surrogates, which a Python string has and the wire not."""
    return text.encode(errors="replace").decode()


def _cut(text: str, kept: int) -> str:
    return f"{clean(text[:kept])}... [cut: {len(text)} characters in all]"
