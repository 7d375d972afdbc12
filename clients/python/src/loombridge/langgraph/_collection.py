"""Items on the server: getting, putting and deleting them, and listing their namespaces."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from langgraph.store.base import GetOp, Item, ListNamespacesOp

import loombridge
from loombridge import _records
from loombridge.langgraph import _filters, _items, _leases

ResultT = TypeVar("ResultT")

AT_ONCE = 16
"""Calls of one batch that are under way at the same time."""

LOOK = 500
"""Items of a listing of namespaces after which it is asked whether these repeat."""

FEW = 4
"""Namespaces of those items that are then passed over in what follows."""

ATTEMPTS = 5
"""Times that a put begins again because others delete or put the same item meanwhile."""


async def together(calls: Iterable[Awaitable[ResultT]]) -> list[ResultT]:
    """Wait for calls, some at a time; return their results in order."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(call: Awaitable[ResultT]) -> ResultT:
        async with turn:
            return await call

    return await asyncio.gather(*map(one, calls))


class Collection:
    """The items of one memory."""

    def __init__(
        self, client: loombridge.Client, user_id: str | None, leases: _leases.Leases
    ) -> None:
        """Use the memory of the client's agent, or of a person."""
        self._memory = client.memory
        self._query = client.memory_query
        self._user_id = user_id
        self._leases = leases

    async def get(self, op: GetOp) -> Item | None:
        """Return an item, if it is there."""
        record = await self._record(_items.name_of((tuple(op.namespace), op.key)))
        if record is None:
            return None
        if op.refresh_ttl:
            await self.prolong([record])
        return _items.item_of(record)

    async def versions(self, place: _items.Place) -> list[Item]:
        """Return an item as it is and was, the newest first; none if it is not there."""
        with suppress(loombridge.RecordNotFoundError):
            records = await self._memory.versions(key=_items.name_of(place), user_id=self._user_id)
            # To prolong an item changes its record, and is no writing of the item.
            written = {_items.mark_of(record): record for record in records}
            return [_items.item_of(record) for record in written.values()]
        return []

    async def prolong(self, records: Iterable[_records.Record]) -> None:
        """Let items that have a time to live, and their vectors, stay as long from now."""
        ttls = ((record, _items.ttl_of(record)) for record in records)
        due = [(record, ttl) for record, ttl in ttls if ttl is not None]
        due = [each for each in due if self._leases.renew(_items.mark_of(each[0]), each[1])]
        await together(self._prolong_one(record, ttl) for record, ttl in due)

    async def _prolong_one(self, record: _records.Record, ttl: float) -> None:
        # Whoever puts it at the same time prolongs it, too.
        with suppress(loombridge.RecordNotFoundError, loombridge.VersionConflictError):
            await self._memory.update(
                key=record.key,
                metadata=_items.prolonged(record),
                ttl=ttl,
                expected_version=record.version,
                user_id=self._user_id,
            )
            await together(self._prolong_part(name, ttl) for name in _part_names(record))

    async def _prolong_part(self, name: str, ttl: float) -> None:
        with suppress(loombridge.RecordNotFoundError):
            await self._memory.update(key=name, ttl=ttl, user_id=self._user_id)

    async def _record(self, name: str) -> _records.Record | None:
        with suppress(loombridge.RecordNotFoundError):
            return await self._memory.get(key=name, user_id=self._user_id)
        return None

    async def put(self, entries: Sequence[_items.Entry]) -> None:
        """Store items, new or in place of others of the same place."""
        for entry in entries:
            if entry.ttl is not None:
                self._leases.renew(entry.mark, entry.ttl.total_seconds())
        if len(entries) > 1:
            # Most of the time, many at once are new.
            fresh = [draft for entry in entries for draft in _items.drafts(entry)]
            with suppress(loombridge.RecordExistsError):
                await self._memory.save_many(fresh, user_id=self._user_id)
                return
        await together(map(self._put, entries))

    async def _put(self, entry: _items.Entry) -> None:
        own, *parts = _items.drafts(entry)
        before = await self._record(_items.name_of(entry.place)) if entry.space else None
        await self._write(own)
        await together(map(self._write, parts))
        if before is not None:
            await together(map(self._remove, _part_names(before)[len(parts) :]))

    async def _write(self, draft: _records.RecordDraft) -> None:
        for _ in range(ATTEMPTS - 1):
            with suppress(loombridge.RecordNotFoundError):
                await self._overwrite(draft)
                return
            with suppress(loombridge.RecordExistsError):
                await self._memory.save_many([draft], user_id=self._user_id)
                return
        await self._overwrite(draft)

    async def _overwrite(self, draft: _records.RecordDraft) -> None:
        clear: list[loombridge.RecordField] = []
        if draft.embedding is None:
            clear.append("embedding")
        if draft.ttl is None:
            clear.append("expiry")
        await self._memory.update(
            key=draft.key,
            text=draft.text,
            metadata=draft.metadata,
            ttl=draft.ttl,
            embedding=draft.embedding,
            embedding_space=draft.embedding_space,
            clear=clear,
            user_id=self._user_id,
        )

    async def delete(self, places: Iterable[_items.Place]) -> None:
        """Take items out; missing ones are fine."""
        await together(map(self._delete, places))

    async def _delete(self, place: _items.Place) -> None:
        record = await self._record(_items.name_of(place))
        if record is not None:
            await self._remove(_items.name_of(place))
            await together(map(self._remove, _part_names(record)))

    async def _remove(self, name: str) -> None:
        with suppress(loombridge.RecordNotFoundError):
            await self._memory.delete(key=name, user_id=self._user_id)

    async def namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return the namespaces of the items, in order, each once."""
        prefixes = (c.path for c in op.match_conditions or () if c.match_type == "prefix")
        pushed = [part for prefix in prefixes for part in _filters.for_namespace(prefix)]
        asked = [f'kind = "{_items.KIND}"', *pushed]
        found: set[tuple[str, ...]] = set()
        while asked:
            asked = await self._more_namespaces(op, asked, found)
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _more_namespaces(
        self, op: ListNamespacesOp, asked: list[str], found: set[tuple[str, ...]]
    ) -> list[str]:
        """Add namespaces to those found.

        Returns:
            What to ask for next, without the namespaces of the items so far, when these
            were few; else nothing, since all items were seen.
        """
        known: set[str | None] = set()
        count = 0
        async for record in self.records(asked):
            namespace = _items.place_of(record)[0]
            whole, shown = True, namespace[: op.max_depth]
            if all(_filters.meets(each, namespace) for each in op.match_conditions or ()):
                found.add(shown)
                whole = op.max_depth != len(shown)
            passed = namespace if whole else shown
            known.add(_filters.but_for(passed, all_below=not whole))
            count += 1
            if count == LOOK and len(known) <= FEW:
                others = [*asked, *filter(None, known)]
                if None not in known and _filters.fits(others):
                    return others
        return []

    def records(
        self, conditions: Iterable[str], *, vectors: bool = False, page_size: int | None = None
    ) -> AsyncIterator[_records.Record]:
        """Yield records that meet conditions, in the order in which they came."""
        listing = self._memory.list(
            filter=_filters.joined(conditions),
            include_embeddings=vectors,
            page_size=page_size,
            user_id=self._user_id,
        )
        return aiter(listing)

    async def hits(self, conditions: Iterable[str], **query: object) -> loombridge.Hits:
        """Return the records that a query finds among the ones that meet conditions."""
        asked = {"filter": _filters.joined(conditions), "user_id": self._user_id, **query}
        return await self._query({name: each for name, each in asked.items() if each is not None})

    async def owns(self, record: _records.Record) -> _records.Record | None:
        """Return the item's own record for one of its vectors, unless that is left over."""
        own = await self._record(_items.name_of(_items.place_of(record)))
        return own if own is not None and _items.mark_of(own) == _items.mark_of(record) else None


def _part_names(record: _records.Record) -> list[str]:
    name = _items.name_of(_items.place_of(record))
    return [_items.part_name(name, i) for i in range(_items.vectors_of(record))]
