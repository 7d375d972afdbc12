"""What a storage of CrewAI takes and returns, as CrewAI 1.15 has it."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, Field


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


class MemoryRecord(BaseModel):
    """A memory."""

    id: str = Field(default_factory=lambda: str(uuid4()))
    content: str
    scope: str = "/"
    categories: list[str] = []
    metadata: dict[str, Any] = {}
    importance: float = 0.5
    created_at: datetime = Field(default_factory=_now)
    last_accessed: datetime = Field(default_factory=_now)
    embedding: list[float] | None = Field(default=None, exclude=True)
    source: str | None = None
    private: bool = False


class ScopeInfo(BaseModel):
    """What there is in a scope."""

    path: str
    record_count: int = 0
    categories: list[str] = []
    oldest_record: datetime | None = None
    newest_record: datetime | None = None
    child_scopes: list[str] = []
