"""Items on the server: getting, putting, searching and counting their namespaces."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import suppress
from operator import mul
from typing import TypeVar

from langgraph.store.base import Item, ListNamespacesOp, SearchItem, SearchOp

import loombridge
from loombridge import _records
from loombridge.langgraph import _filters, _items

ResultT = TypeVar("ResultT")

Ranking = list[tuple[_records.Record, float | None]]
"""Items with their scores, best first; those without one come last."""

AT_ONCE = 16
"""Calls of one batch that are under way at the same time."""

HITS = 100
"""Records that one query finds, at most."""

QUERY_BYTES = 8 << 10
"""Bytes of a query that a server takes; the rest of a longer one is not looked for."""

ATTEMPTS = 5
"""Times that a put begins again because others delete or put the same item meanwhile."""


async def together(calls: Iterable[Awaitable[ResultT]]) -> list[ResultT]:
    """Wait for calls, some at a time; return their results in order."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(call: Awaitable[ResultT]) -> ResultT:
        async with turn:
            return await call

    return await asyncio.gather(*map(one, calls))


class Shelf:
    """The items of one memory."""

    def __init__(self, client: loombridge.Client, user_id: str | None) -> None:
        """Use the memory of the client's agent, or of a person."""
        self._memory = client.memory
        self._query = client.memory_query
        self._user_id = user_id

    async def get(self, place: _items.Place) -> Item | None:
        """Return an item, if it is there."""
        record = await self._record(_items.name_of(place))
        if record is None:
            return None
        if record.sliding_ttl is not None:
            # Reading keeps what is read, and its vectors belong to it.
            await together(map(self._record, _part_names(record)))
        return _items.item_of(record)

    async def _record(self, name: str) -> _records.Record | None:
        with suppress(loombridge.RecordNotFoundError):
            return await self._memory.get(key=name, user_id=self._user_id)
        return None

    async def put(self, entries: Sequence[_items.Entry]) -> None:
        """Store items, new or in place of others of the same place."""
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
        if draft.ttl is None and draft.sliding_ttl is None:
            clear.append("expiry")
        await self._memory.update(
            key=draft.key,
            text=draft.text,
            metadata=draft.metadata,
            ttl=draft.ttl,
            sliding_ttl=draft.sliding_ttl,
            embedding=draft.embedding,
            embedding_space=draft.embedding_space,
            clear=clear,
            user_id=self._user_id,
        )

    async def delete(self, places: Iterable[_items.Place]) -> None:
        """Take items out; those that are not there are fine."""
        await together(map(self._delete, places))

    async def _delete(self, place: _items.Place) -> None:
        record = await self._record(_items.name_of(place))
        if record is not None:
            await self._remove(_items.name_of(place))
            await together(map(self._remove, _part_names(record)))

    async def _remove(self, name: str) -> None:
        with suppress(loombridge.RecordNotFoundError):
            await self._memory.delete(key=name, user_id=self._user_id)

    async def search(
        self, op: SearchOp, vector: Sequence[float] | None, space: str
    ) -> list[SearchItem]:
        """Return the items that a search asks for.

        With a vector those come first whose vectors are nearest, with a query alone
        those that its words find; behind them the others, without a score.
        """
        search = _Search(self, op)
        if vector is not None:
            found = await search.by_vector(vector, space)
        elif op.query:
            found = await search.by_words(op.query)
        else:
            found = [(record, None) async for record in search.scan()]
        return [_items.found_of(*each) for each in found[op.offset : op.offset + op.limit]]

    async def namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return the namespaces of the items, in order, each once."""
        conditions = op.match_conditions or ()
        prefixes = (c.path for c in conditions if c.match_type == "prefix")
        pushed = [part for prefix in prefixes for part in _filters.for_namespace(prefix)]
        found: set[tuple[str, ...]] = set()
        async for record in self.records([f'kind = "{_items.KIND}"', *pushed]):
            namespace = _items.place_of(record)[0]
            if all(_filters.meets(each, namespace) for each in conditions):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]

    def records(
        self, conditions: Iterable[str], *, vectors: bool = False
    ) -> AsyncIterator[_records.Record]:
        """Yield records that meet conditions, in the order in which they came."""
        listing = self._memory.list(
            filter=_filters.joined(conditions), include_embeddings=vectors, user_id=self._user_id
        )
        return aiter(listing)

    async def hits(self, conditions: Iterable[str], **query: object) -> loombridge.Hits:
        """Return the records that a query finds among those that meet conditions."""
        asked = {"filter": _filters.joined(conditions), "user_id": self._user_id, **query}
        return await self._query({name: each for name, each in asked.items() if each is not None})

    async def owns(self, record: _records.Record) -> _records.Record | None:
        """Return the item's own record for one of its vectors, unless that is left over."""
        own = await self._record(_items.name_of(_items.place_of(record)))
        return own if own is not None and _items.mark_of(own) == _items.mark_of(record) else None


class _Search:
    """One search under way."""

    def __init__(self, shelf: Shelf, op: SearchOp) -> None:
        self._shelf = shelf
        self._op = op
        self._needed = op.offset + op.limit if min(op.offset, op.limit) >= 0 else None
        """Items after which no more are looked at; None: all are, as in a slice."""
        self._conditions = [
            *_filters.for_namespace(op.namespace_prefix),
            _filters.for_value(op.filter),
        ]

    def _is_meant(self, record: _records.Record) -> bool:
        place = _items.place_of(record)
        return _filters.starts_with(place[0], tuple(self._op.namespace_prefix)) and (
            _filters.matches(_items.value_of(record), self._op.filter)
        )

    async def scan(
        self, passed: "set[_items.Place] | None" = None, needed: int | None = None
    ) -> AsyncIterator[_records.Record]:
        """Yield the items that are meant, but for some, until there are enough."""
        needed = self._needed if needed is None else needed
        count = 0
        if needed == 0:
            return
        async for record in self._shelf.records([f'kind = "{_items.KIND}"', *self._conditions]):
            if self._is_meant(record) and _items.place_of(record) not in (passed or ()):
                yield record
                count += 1
                if count == needed:
                    return

    async def by_words(self, query: str) -> Ranking:
        """Return the items that words find, and behind them the others."""
        limit = HITS if self._needed is None else min(self._needed, HITS)
        found = await self._worded(query, limit)
        if len(found) < limit < HITS:
            # Perhaps the server's filter let others through, in place of some.
            found = await self._worded(query, HITS)
        return await self._filled(found)

    async def _worded(self, query: str, limit: int) -> Ranking:
        if limit == 0:
            return []
        searched = [f'kind = "{_items.KIND}"', "metadata.langgraph.searched = true"]
        hits = await self._shelf.hits(
            [*searched, *self._conditions],
            query=query.encode()[:QUERY_BYTES].decode(errors="ignore"),
            limit=limit,
        )
        return [(hit.record, hit.score) for hit in hits if self._is_meant(hit.record)]

    async def _filled(self, found: Ranking) -> Ranking:
        """Return what was found and behind it the other items, as far as they are needed."""
        if self._needed is not None and len(found) >= self._needed:
            return found
        passed = {_items.place_of(record) for record, _ in found}
        missing = None if self._needed is None else self._needed - len(found)
        async for record in self.scan(passed, missing):
            found.append((record, None))
        return found

    async def by_vector(self, vector: Sequence[float], space: str) -> Ranking:
        nearest = await self._nearest(vector, space)
        if self._needed is not None and len(nearest) >= self._needed:
            return nearest
        # There are items that the query did not give, perhaps without a vector.
        return await self._all(vector, space)

    async def _nearest(self, vector: Sequence[float], space: str) -> Ranking:
        """Return the items with the nearest vectors: a beginning of all of them."""
        if not self._needed or self._needed > HITS:
            return []
        hits = await self._shelf.hits(
            [_EITHER_KIND, *self._conditions],
            embedding=vector,
            embedding_space=space,
            mode="vector",
            include_embeddings=True,
            limit=HITS,
        )
        best: dict[_items.Place, tuple[float, _records.Record]] = {}
        for hit in hits:
            score = cosine(vector, hit.record.embedding)
            place = _items.place_of(hit.record)
            if place not in best or score > best[place][0]:
                best[place] = (score, hit.record)
        ranked = sorted(best.values(), key=lambda each: (-each[0], each[1].create_time))
        owners = await together(self._owner(record) for _, record in ranked[: self._needed])
        return [
            (own, score)
            for own, (score, _) in zip(owners, ranked, strict=False)
            if own is not None and self._is_meant(own)
        ]

    async def _owner(self, record: _records.Record) -> _records.Record | None:
        return record if record.kind == _items.KIND else await self._shelf.owns(record)

    async def _all(self, vector: Sequence[float], space: str) -> Ranking:
        """Return all items that are meant, those with vectors first, the nearest first."""
        own: dict[str, _records.Record] = {}
        scores: dict[str, float] = {}
        async for record in self._shelf.records([_EITHER_KIND, *self._conditions], vectors=True):
            mark = _items.mark_of(record)
            if record.kind == _items.KIND and self._is_meant(record):
                own[mark] = record
            if record.embedding_space == space:
                score = cosine(vector, record.embedding)
                scores[mark] = max(score, scores.get(mark, score))
        scored = [mark for mark in own if mark in scores]
        scored.sort(key=scores.__getitem__, reverse=True)
        ranked = [(own[mark], scores[mark]) for mark in scored]
        return [*ranked, *((record, None) for mark, record in own.items() if mark not in scores)]


_EITHER_KIND = f'(kind = "{_items.KIND}" OR kind = "{_items.VECTOR_KIND}")'


def _part_names(record: _records.Record) -> list[str]:
    name = _items.name_of(_items.place_of(record))
    return [_items.part_name(name, i) for i in range(_items.vectors_of(record))]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Return how near two vectors are, from -1 to 1; 0 when one has no direction."""
    length = math.sqrt(sum(map(mul, a, a)) * sum(map(mul, b, b)))
    return sum(map(mul, a, b)) / length if length > 0 else 0.0
