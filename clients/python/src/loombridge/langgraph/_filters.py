"""Which items a search or a listing means: LangGraph's rules, and the server's help.

The rules are decided here, on the items; the server is asked for no more than it
surely need not send, so that both always agree.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any, cast

from langgraph.store.base import MatchCondition

from loombridge import _values

CONDITIONS = 40
"""Conditions that a search sends, at most: a server takes 64 in a filter."""

FILTER_BYTES = 3 << 10
"""Bytes of the conditions that a search sends, at most: a server takes 4 KiB."""

LARGEST_EXACT = 1 << 53
"""Numbers below it are the same to LangGraph, which compares floats, and to the server,
which compares digits."""

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}
_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}\Z")
_RESERVED = frozenset(("AND", "OR", "NOT"))


def starts_with(namespace: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Tell whether a namespace is the prefix or lies below it."""
    return namespace[: len(prefix)] == prefix


def meets(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Tell whether a namespace meets a condition of a listing; `*` is any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        labels = namespace[: len(path)]
    elif condition.match_type == "suffix":
        labels = namespace[len(namespace) - len(path) :]
    else:
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    return all(want in ("*", label) for want, label in zip(path, labels, strict=True))


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Tell whether an item's value meets a search's filter."""
    return all(_agrees(_at(value, name), want) for name, want in (wanted or {}).items())


def _at(value: Mapping[str, Any], name: str) -> Any:
    """Return what a value has under a name; `a.b` is also the name of what is in `a` as `b`."""
    if name in value or "." not in name:
        return value.get(name)
    found: Any = value
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, Any]", found).get(part)
    return found


def _agrees(value: Any, want: Any) -> bool:
    if isinstance(want, Mapping):
        parts = cast("Mapping[str, Any]", want)
        if any(name.startswith("$") for name in parts):
            return all(_compares(value, sign, operand) for sign, operand in parts.items())
        return isinstance(value, Mapping) and matches(cast("Mapping[str, Any]", value), parts)
    if isinstance(want, list | tuple):
        if not isinstance(value, list | tuple):
            return False
        wants, values = list(cast("Iterable[Any]", want)), list(cast("Iterable[Any]", value))
        return len(values) == len(wants) and all(map(_agrees, values, wants))
    return value == want


def _compares(value: Any, sign: str, operand: Any) -> bool:
    if sign == "$eq":
        return value == operand
    if sign == "$ne":
        return value != operand
    if sign not in _ORDER:
        raise ValueError(f"Unsupported operator: {sign}; there are $eq, $ne, {', '.join(_ORDER)}")
    pair = _comparable(value, operand)
    return pair is not None and _ORDER[sign](*pair)


def _comparable(value: Any, operand: Any) -> tuple[Any, Any] | None:
    """Return what to compare: two numbers, or two texts such as dates.

    What is missing or of another type is neither less nor more. LangGraph's own stores
    differ here: that on Postgres passes over such an item, InMemoryStore raises.
    """
    try:
        return float(value), float(operand)
    except (TypeError, ValueError):
        return (value, operand) if isinstance(value, str) and isinstance(operand, str) else None
    except OverflowError:  # Beyond all floats; so exact, unless one is a text.
        return (value, operand) if not isinstance(value, str) | isinstance(operand, str) else None


def for_namespace(prefix: Iterable[str]) -> list[str]:
    """Return conditions that hold for all items below a prefix; `*` is any label."""
    labels = ((i, label) for i, label in enumerate(prefix) if label != "*")
    return [
        f"metadata.langgraph.namespace.n{i} = {literal}"
        for i, label in labels
        if (literal := _text(label)) is not None
    ]


def but_for(namespace: Iterable[str], *, all_below: bool) -> str | None:
    """Return a condition for all items but those in a namespace; None: there is none.

    Args:
        namespace: the labels, none of which stands for others here.
        all_below: pass over what is below it, too.
    """
    literals = [_text(label) for label in namespace]
    if not literals or None in literals:
        return None
    path = "metadata.langgraph.namespace.n"
    same = [f"{path}{i} = {literal}" for i, literal in enumerate(literals)]
    end = [] if all_below else [f"NOT {path}{len(literals)}:*"]
    return f"NOT ({' AND '.join([*same, *end])})"


def for_value(wanted: Mapping[str, Any] | None) -> str:
    """Return a condition that holds for all items that meet a filter; empty: for all."""
    pushed = (_condition(name, want) for name, want in (wanted or {}).items())
    conditions = " AND ".join(filter(None, pushed))
    # A large value is not in the metadata, so it can only be looked at here.
    return f"(metadata.langgraph.large = true OR ({conditions}))" if conditions else ""


def fits(conditions: Iterable[str]) -> bool:
    """Tell whether a server takes all of the conditions."""
    conditions = list(conditions)
    return joined(conditions) == " AND ".join(filter(None, conditions))


def joined(conditions: Iterable[str]) -> str:
    """Return a filter of as many of the conditions as a server takes, in their order."""
    kept, size, count = list[str](), 0, 0
    for condition in filter(None, conditions):
        size += len(condition.encode()) + len(" AND ")
        count += condition.count("metadata.") or 1
        if size <= FILTER_BYTES and count <= CONDITIONS:
            kept.append(condition)
    return " AND ".join(kept)


def _condition(name: str, want: Any) -> str | None:
    """Return the server's form of one condition, as far as it has one."""
    if not _NAME.match(name) or name in _RESERVED:
        return None
    path = f"metadata.value.{name}"
    if not isinstance(want, Mapping):
        return _equals(path, want)
    signs = cast("Mapping[str, Any]", want).items()
    parts = [_equals(path, x) if sign == "$eq" else _range(path, sign, x) for sign, x in signs]
    return " AND ".join(filter(None, parts))


def _equals(path: str, want: Any) -> str | None:
    if isinstance(want, str):
        literal = _text(want)
        return None if literal is None else f"{path} = {literal}"
    literal = _number(want)
    if literal is None:
        return None
    if want in (0, 1):
        # To Python, true is 1 and false is 0.
        return f"({path} = {int(want)} OR {path} = {'true' if want else 'false'})"
    return f"{path} = {literal}"


def _range(path: str, sign: str, operand: Any) -> str | None:
    literal = _number(operand)
    if literal is None or sign not in _SIGNS:
        return None
    # A text may hold a number, and true and false are 1 and 0.
    others = f'{path} >= "" OR {path} = true OR {path} = false'
    return f"({path} {_SIGNS[sign]} {literal} OR {others})"


def _number(value: Any) -> str | None:
    if not isinstance(value, int | float) or not abs(value) < LARGEST_EXACT:
        return None
    digits = str(int(value)) if isinstance(value, bool) else repr(value)
    return digits if re.fullmatch(r"-?\d+(\.\d+)?", digits) else None


def _text(value: str) -> str | None:
    if not value.isprintable() or len(value) > 256 or any(c in value for c in '"\\*'):
        return None
    return f'"{_values.text("filter", value)}"'
