"""The filters of mem0 as the server's filter expressions."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

IDS = ("user_id", "agent_id", "run_id")
"""Whose a memory is: at least one of them is given."""

SCOPED = (*IDS, "actor_id", "role")
"""The stored fields of a memory other than the caller's own metadata."""

PLACE = "mem0"
"""The member of a record's metadata that holds it."""

_SIGNS: Mapping[str, str] = {
    "eq": "=",
    "ne": "!=",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_RESERVED = frozenset(("AND", "OR", "NOT"))


def expression(kinds: Iterable[str], wanted: Mapping[str, Any]) -> str:
    """Return the filter that lets through what mem0's filter would.

    Raises:
        ValueError: it has an operator, a name or a value that is not served.
    """
    either = " OR ".join(f"kind = {json.dumps(kind)}" for kind in kinds)
    return " AND ".join([f"({either})", *_all(wanted)])


def _all(wanted: Mapping[str, Any]) -> list[str]:
    return [_one(name, value) for name, value in wanted.items()]


def _one(name: str, value: Any) -> str:
    if name in _RESERVED:
        if not isinstance(value, list):
            raise ValueError(f"filters[{name!r}] must be a list of filters")
        parts = [f"({' AND '.join(_all(each))})" for each in cast("list[Mapping[str, Any]]", value)]
        joined = f"({(' AND ' if name == 'AND' else ' OR ').join(parts)})"
        return f"NOT {joined}" if name == "NOT" else joined
    field = _field(name)
    if not isinstance(value, Mapping):
        return f"{field}:*" if value == "*" else f"{field} = {_literal(name, value)}"
    operators = cast("Mapping[str, Any]", value)
    return " AND ".join(_compared(name, field, sign, each) for sign, each in operators.items())


def _compared(name: str, field: str, sign: str, operand: Any) -> str:
    if sign in ("in", "nin"):
        either = " OR ".join(f"{field} = {_literal(name, each)}" for each in operand)
        return f"({either})" if sign == "in" else f"NOT ({either})"
    if sign not in _SIGNS:
        raise ValueError(f"filters[{name!r}] has {sign!r}, which is not served")
    return f"{field} {_SIGNS[sign]} {_literal(name, operand)}"


def _field(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} can't be filtered by: letters, digits and _ only")
    return f"metadata.{PLACE}.{name}" if name in SCOPED else f"metadata.{name}"


def _literal(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return json.dumps(value)
    raise ValueError(f"filters[{name!r}] must be a text, a number or a bool")


def whose(**ids: str | None) -> dict[str, str]:
    """Return the ids that are given, without spaces around them.

    Raises:
        ValueError: one is empty or has a space within.
    """
    found: dict[str, str] = {}
    for name, value in ids.items():
        if value is None:
            continue
        text = value.strip()
        if not text or len(text.split()) > 1:
            raise ValueError(f"Invalid {name}: it must not be empty or have spaces")
        found[name] = text
    return found


def some(ids: Mapping[str, Any]) -> None:
    """Refuse a call that does not say whose memories it means."""
    if not any(ids.get(name) for name in IDS):
        raise ValueError("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
