"""Filters of records, as the server takes them."""

import json
from collections.abc import Iterable, Sequence

NAMED = 24
"""Values that one filter names; it may have 4 KiB."""


def some(field: str, values: Sequence[str]) -> list[str]:
    """Return the filters that let records through whose field has one of some values."""
    starts = range(0, len(values), NAMED)
    return [any_of(field, values[start : start + NAMED]) for start in starts]


def any_of(field: str, values: Iterable[str]) -> str:
    """Return the condition that a field has one of some values."""
    return f"({' OR '.join(f'{field} = {literal(value)}' for value in values)})"


def literal(text: str) -> str:
    """Return a text for a filter, where an asterisk is itself."""
    return json.dumps(text, ensure_ascii=False).replace("*", "\\\\*")
