"""Checks of arguments, and the way between Python values and protobuf."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, TypeAlias, Union, cast

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

JsonValue: TypeAlias = Union[  # noqa: UP007  a quoted name has no | at run time
    Mapping[str, "JsonValue"], Sequence["JsonValue"], str, int, float, bool, None
]
"""What JSON can say. Integers keep all their digits."""

Seconds: TypeAlias = timedelta | float
"""A span of time: a `timedelta`, or a number of seconds."""


def text(name: str, value: object, *, mend: bool = False) -> str:
    """Return value as text that the wire can carry.

    With mend, halves of surrogate pairs that belong together become the character that
    they stand for, and others the replacement character: models write both.

    Raises:
        TypeError: it is no string.
        ValueError: it holds a lone surrogate, which UTF-8 cannot express.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as err:
        if mend:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        raise ValueError(f"{name} is not valid Unicode at character {err.start}") from None
    return value


def optional_text(name: str, value: object, *, mend: bool = False) -> str:
    """Return value as text; None is empty, which the wire takes as not given."""
    return "" if value is None else text(name, value, mend=mend)


def by_model(name: str, value: object) -> str:
    """Return a name or an id that a model or its host made.

    None is empty, a number its digits, and halves of surrogate pairs are mended.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return optional_text(name, value, mend=True)


def texts(name: str, values: object) -> list[str]:
    """Return values, an iterable of strings, as a list; a bare string is refused."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of str, not {kind(values)}")
    items = cast("Iterable[object]", values)
    return [text(f"{name}[{i}]", item) for i, item in enumerate(items)]


def text_map(name: str, values: object) -> dict[str, str]:
    """Return values, a mapping of strings to strings, as a dict."""
    pairs = mapping(name, values).items()
    return {text(f"{name} key", key): text(f"{name}[{key!r}]", value) for key, value in pairs}


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return value if it is a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping such as a dict, not {kind(value)}")
    return cast("Mapping[str, Any]", value)


def integer(name: str, value: object) -> int:
    """Return value if it is an integer that fits 32 bits."""
    return _integer(name, value, 1 << 31)


def long_integer(name: str, value: object) -> int:
    """Return value if it is an integer that fits 64 bits."""
    return _integer(name, value, 1 << 63)


def _integer(name: str, value: object, bound: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {kind(value)}")
    if not -bound <= value < bound:
        raise ValueError(f"{name} is out of range: {value}")
    return value


def number(name: str, value: object) -> float:
    """Return value as a finite float."""
    # Real: the numbers of numpy, too.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {kind(value)}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return float(value)


def seconds(name: str, value: object) -> float:
    """Return a span of time in seconds; it must be more than zero."""
    span = _span(name, value)
    if span <= 0:
        raise ValueError(f"{name} must be more than zero, not {span:g} s")
    return span


def wait(name: str, value: object) -> float:
    """Return a span of time in seconds that may also be zero."""
    span = _span(name, value)
    if span < 0:
        raise ValueError(f"{name} must not be less than zero, not {span:g} s")
    return span


def _span(name: str, value: object) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else number(name, value)


def duration(name: str, value: object) -> Duration:
    """Return a span of time as protobuf has it."""
    result = Duration()
    result.FromTimedelta(timedelta(seconds=seconds(name, value)))
    return result


def timestamp(name: str, value: object) -> Timestamp:
    """Return a moment as protobuf has it; it must know its time zone."""
    if not isinstance(value, datetime):
        raise TypeError(f"{name} must be a datetime, not {kind(value)}")
    if value.utcoffset() is None:
        raise ValueError(f"{name} needs a time zone, such as datetime.now(UTC)")
    result = Timestamp()
    result.FromDatetime(value)
    return result


def moment(value: Timestamp) -> datetime:
    """Return a moment in UTC, cut to microseconds."""
    return value.ToDatetime(tzinfo=UTC)


def count(name: str, value: object) -> int:
    """Return a number of things that is at least 1: on the wire 0 stands for the default.

    Raises:
        TypeError: it is no number.
        ValueError: it is less.
    """
    if (number := integer(name, value)) < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number


def json_text(name: str, value: object, *, mend: bool = False) -> str:
    """Return value as exact JSON text; mend is that of `text`.

    Raises:
        TypeError: it holds something that JSON cannot say.
        ValueError: it holds NaN, infinity, itself, or invalid Unicode.
    """
    try:
        result = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
    except TypeError as err:
        raise TypeError(f"{name} is not JSON: {err}") from None
    except (ValueError, RecursionError) as err:
        raise ValueError(f"{name} is not JSON: {err}") from None
    return text(name, result, mend=mend)


def json_object(name: str, value: object, *, mend: bool = False) -> str:
    """Return a mapping as exact JSON text; mend is that of `text`."""
    return json_text(name, mapping(name, value), mend=mend)


def from_json(value: str) -> Any:
    """Return what JSON text says; empty text is None."""
    return json.loads(value) if value else None


def written(text: str) -> dict[str, Any]:
    """Return the arguments of a call as a model wrote them, which need not be a JSON object.

    Python reads NaN and 1e999 as well, which nothing else takes for JSON.
    """
    with suppress(ValueError, RecursionError):
        given: object = json.loads(text or "{}")
        if isinstance(given, dict) and json.dumps(given, allow_nan=False):
            return cast("dict[str, Any]", given)
    return {"arguments": text}


def enum_number(name: str, enum: EnumDescriptor, prefix: str, value: object) -> int:
    """Return the number of an enum value given by its short lower-case name."""
    found = enum.values_by_name.get(prefix + text(name, value).upper())
    if found is None or found.number == 0:
        raise ValueError(f"{name} must be one of {_enum_names(enum, prefix)}, not {value!r}")
    return found.number


def enum_name(enum: EnumDescriptor, prefix: str, value: int) -> str:
    """Return the short lower-case name of an enum value; its number if unknown."""
    found = enum.values_by_number.get(value)
    return str(value) if found is None else found.name.removeprefix(prefix).lower()


def _enum_names(enum: EnumDescriptor, prefix: str) -> str:
    names = (v.name.removeprefix(prefix).lower() for v in enum.values if v.number != 0)
    return ", ".join(map(repr, names))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"{kind(value)} has no JSON form")


def kind(value: object) -> str:
    """Return the name of a value's type, as an error says it."""
    return "None" if value is None else type(value).__name__
