"""What the benchmark gives to its providers."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Document:
    """Something to remember, or what was found."""

    id: str
    content: str
    user_id: str | None = None
    messages: list[dict[str, Any]] | None = None
    timestamp: str | None = None
    context: str | None = None
