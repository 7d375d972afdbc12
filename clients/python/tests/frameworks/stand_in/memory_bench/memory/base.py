"""What the benchmark asks of its providers."""

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from memory_bench.models import Document

Found = tuple[list[Document], dict[str, Any] | None]


class MemoryProvider(ABC):
    """A memory that is measured."""

    name: str
    description: str
    kind: str
    concurrency: int = 4

    def prepare(  # noqa: B027  providers need not have it
        self, store_dir: Path, unit_ids: set[str] | None = None, reset: bool = True
    ) -> None:
        """Come before the others."""

    def cleanup(self) -> None:  # noqa: B027  providers need not have it
        """Come last."""

    @abstractmethod
    def ingest(self, documents: list[Document]) -> None:
        """Remember documents."""

    @abstractmethod
    def retrieve(
        self,
        query: str,
        k: int = 10,
        user_id: str | None = None,
        query_timestamp: str | None = None,
    ) -> Found:
        """Return what answers a query."""

    async def async_ingest(self, documents: list[Document]) -> None:
        """Do so in a thread, as the benchmark does."""
        await asyncio.to_thread(self.ingest, documents)

    async def async_retrieve(self, *given: Any, **named: Any) -> Found:
        """Do so in a thread, as the benchmark does."""
        return await asyncio.to_thread(self.retrieve, *given, **named)
