"""A storage for CrewAI's memory, whose memories are records of long-term memory.

    from loombridge.crewai import LoomBridgeStorage

    crew = Crew(agents=[…], tasks=[…], memory=Memory(storage=LoomBridgeStorage("127.0.0.1:50051")))

Crews on several machines share what they know, and `memory_query` of the same agent finds it,
too. CrewAI brings the vectors. Install it with `pip install "loombridge[crewai]"`.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Unpack

try:
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] != "crewai":
        raise
    raise ImportError('loombridge.crewai needs CrewAI: pip install "loombridge[crewai]"') from err

from loombridge import _client, _errors, _filters, _loops, _records

__all__ = ["LoomBridgeStorage"]

AGENT = "crewai"
"""The default owner of the records."""

KIND = "crewai.memory"
"""The kind of a memory's record."""

ACCESSED = "crewai_accessed"
"""The member of the metadata that says when a memory was recalled, which changes alone."""

MOST_FOUND = 100
"""Memories that a search returns at most, as the server's."""


class LoomBridgeStorage(_loops.Adapter):
    """A `StorageBackend` of CrewAI; close it, or use it in a `with` block.

    Any thread and any event loop may use it, and several processes the same memories. The score
    of a search is the cosine of the vectors. Vectors of another length are not found by a search.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory it is; default `crewai`, or the client's.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        self._open(server, agent_id, AGENT, connection)

    def save(self, records: list[MemoryRecord]) -> None:
        """Save memories, in place of those with the same ids."""
        self._loop.call(lambda ctx: _save(ctx, records))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Save memories, in place of those with the same ids."""
        await self._loop.acall(lambda ctx: _save(ctx, records))

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the memories that are nearest to a vector, up to 100, the nearest first.

        Args:
            query_embedding: the vector.
            scope_prefix: only those of this scope and of what is below it.
            categories: only those that have one of these.
            metadata_filter: only those whose metadata have all of these texts, numbers and bools.
            limit: so many at most.
            min_score: only those with at least this score.
        """
        wanted = _filter(scope_prefix, categories, metadata_filter)
        return self._loop.call(lambda ctx: _search(ctx, query_embedding, wanted, limit, min_score))

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the memories that are nearest to a vector; see `search`."""
        wanted = _filter(scope_prefix, categories, metadata_filter)
        return await self._loop.acall(
            lambda ctx: _search(ctx, query_embedding, wanted, limit, min_score)
        )

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the memories that meet all of the conditions; return how many that were."""
        wanted = _filter(scope_prefix, categories, metadata_filter, older_than)
        return self._loop.call(lambda ctx: _delete(ctx, wanted, record_ids))

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the memories that meet all of the conditions; return how many that were."""
        wanted = _filter(scope_prefix, categories, metadata_filter, older_than)
        return await self._loop.acall(lambda ctx: _delete(ctx, wanted, record_ids))

    def update(self, record: MemoryRecord) -> None:
        """Save a memory in place of that with the same id."""
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a memory with its vector; None: there is none."""

        async def get(ctx: _client.Client) -> MemoryRecord | None:
            try:
                record = await ctx.memory.get(id=record_id, include_embedding=True)
            except _errors.RecordNotFoundError:
                return None
            return _memory(record) if record.kind == KIND else None

        return self._loop.call(get) if record_id else None

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return memories of a scope and of what is below it, the newest first."""
        return self._all(scope_prefix)[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what there is in a scope and below it."""
        memories = self._all(scope)
        return ScopeInfo(
            path=_path(scope) or "/",
            record_count=len(memories),
            categories=sorted({each for memory in memories for each in memory.categories}),
            oldest_record=memories[-1].created_at if memories else None,
            newest_record=memories[0].created_at if memories else None,
            child_scopes=_children(scope, memories),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes that lie in another one."""
        return _children(parent, self._all(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the categories in a scope and below it, with how many memories have each."""
        memories = self._all(scope_prefix)
        return dict(Counter(each for memory in memories for each in memory.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return how many memories there are in a scope and below it."""
        wanted = _filter(scope_prefix)
        return self._loop.call(lambda ctx: ctx.memory.delete_matching(wanted, dry_run=True))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all memories in a scope and below it."""
        self.delete(scope_prefix)

    def touch_records(self, record_ids: list[str]) -> None:
        """Note that memories were recalled now."""
        now = datetime.now(UTC).replace(tzinfo=None).isoformat()

        async def touch(ctx: _client.Client) -> None:
            for each in record_ids:
                with suppress(_errors.RecordNotFoundError):
                    await ctx.memory.update(id=each, metadata={ACCESSED: now}, merge=True)

        self._loop.call(touch)

    def _all(self, scope_prefix: str | None) -> list[MemoryRecord]:
        """Return the memories of a scope and of what is below it, the newest first."""

        async def find(ctx: _client.Client) -> list[MemoryRecord]:
            listing: AsyncIterator[_records.Record] = aiter(
                ctx.memory.list(filter=_filter(scope_prefix))
            )
            return [_memory(record) async for record in listing]

        return sorted(self._loop.call(find), key=lambda each: _utc(each.created_at), reverse=True)


async def _save(ctx: _client.Client, memories: Sequence[MemoryRecord]) -> None:
    drafts = [_draft(memory) for memory in memories]
    try:
        await ctx.memory.save_many(drafts)
    except _errors.RecordExistsError:
        for draft in drafts:
            await _replace(ctx, draft)


async def _replace(ctx: _client.Client, draft: _records.RecordDraft) -> None:
    try:
        await ctx.memory.update(
            id=draft.id,
            text=draft.text,
            event_time=draft.event_time,
            metadata=draft.metadata,
            tags=draft.tags,
            importance=draft.importance,
            embedding=draft.embedding or None,
            embedding_space=draft.embedding_space,
        )
    except _errors.RecordNotFoundError:
        await ctx.memory.save_many([draft])


async def _search(
    ctx: _client.Client, vector: Sequence[float], wanted: str, limit: int, min_score: float
) -> list[tuple[MemoryRecord, float]]:
    if not any(vector) or limit < 1:
        return []
    hits = await ctx.memory_query(
        mode="vector",
        embedding=vector,
        embedding_space=_space(vector),
        filter=wanted,
        limit=min(limit, MOST_FOUND),
    )
    return [(_memory(hit.record), hit.score) for hit in hits if hit.score >= min_score]


async def _delete(ctx: _client.Client, wanted: str, ids: Sequence[str] | None) -> int:
    if ids is None:
        return await ctx.memory.delete_matching(wanted)
    some = _filters.some("id", ids)
    return sum([await ctx.memory.delete_matching(f"{wanted} AND {each}") for each in some])


def _filter(
    scope: str | None = None,
    categories: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    older_than: datetime | None = None,
) -> str:
    """Return the filter that lets such memories through.

    Raises:
        ValueError: metadata are compared with something else than a text, a number or a bool.
    """
    conditions = [f'kind = "{KIND}"']
    if path := _path(scope or "/"):
        below = _filters.literal(f"{path}/")[:-1] + '*"'
        place = "metadata.crewai.path"
        conditions.append(f"({place} = {_filters.literal(path)} OR {place} = {below})")
    if categories:
        either = " OR ".join(f"tags:{_filters.literal(each)}" for each in categories)
        conditions.append(f"({either})")
    for name, value in (metadata or {}).items():
        conditions.append(f"metadata.crewai.metadata.{_filters.literal(name)} = {_value(value)}")
    if older_than is not None:
        conditions.append(f'event_time < "{_utc(older_than).isoformat()}"')
    return " AND ".join(conditions)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _filters.literal(value)
    raise ValueError(f"metadata are compared with a text, a number or a bool, not with {value!r}")


def _path(scope: str) -> str:
    """Return a scope in one form, which begins with a slash; that of all is empty."""
    return "".join(f"/{name}" for name in scope.split("/") if name)


def _children(parent: str, memories: Sequence[MemoryRecord]) -> list[str]:
    begin = f"{_path(parent)}/"
    paths = (_path(memory.scope) for memory in memories)
    return sorted({begin + p[len(begin) :].split("/")[0] for p in paths if p.startswith(begin)})


def _utc(moment: datetime) -> datetime:
    """Return a moment of CrewAI's, whose own have no time zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _space(vector: Sequence[float]) -> str:
    return f"{AGENT}-{len(vector)}"


def _draft(memory: MemoryRecord) -> _records.RecordDraft:
    vector = memory.embedding if memory.embedding and any(memory.embedding) else None
    own = memory.model_dump(
        mode="json", exclude={"id", "content", "categories", "importance", "embedding"}
    )
    return _records.RecordDraft(
        text=memory.content,
        id=memory.id,
        kind=KIND,
        event_time=_utc(memory.created_at),
        metadata={
            ACCESSED: own.pop("last_accessed"),
            "crewai": {**own, "path": _path(memory.scope)},
        },
        tags=memory.categories,
        importance=memory.importance,
        embedding=vector or (),
        embedding_space=_space(vector) if vector else None,
    )


def _memory(record: _records.Record) -> MemoryRecord:
    own = {name: value for name, value in record.metadata["crewai"].items() if name != "path"}
    return MemoryRecord(
        **own,
        last_accessed=record.metadata[ACCESSED],
        id=record.id,
        content=record.text,
        categories=list(record.tags),
        importance=record.importance,
        embedding=list(record.embedding) or None,
    )
