"""Searching for items: by prefix and filter, by words, by vectors."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from langgraph.store.base import SearchItem, SearchOp

from loombridge import _bulk, _records
from loombridge.langgraph import _collection, _filters, _items, _measures

Ranking = list[tuple[_records.Record, float | None]]
"""Items with their scores, best first; those without one come last."""

HITS = 100
"""Records that one query finds, at most."""

QUERY_BYTES = 8 << 10
"""Bytes of a query that a server takes; the rest of a longer one is not looked for."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What a search by meaning looks for."""

    vector: Sequence[float]
    """The query's vector."""
    space: str
    """Where the vectors of items are."""
    measure: _measures.Measure
    """The text that its similarity is computed from."""


async def search(
    collection: _collection.Collection, op: SearchOp, sought: Sought | None
) -> list[SearchItem]:
    """Return the items that a search asks for.

    By meaning those come first whose vectors are nearest, with a query alone those
    that its words find; behind them the others, without a score.
    """
    asked = _Search(collection, op)
    if sought is not None:
        found = await asked.by_vector(sought)
    elif op.query:
        found = await asked.by_words(op.query)
    else:
        found = [(record, None) async for record in asked.scan()]
    found = found[op.offset : op.offset + op.limit]
    if op.refresh_ttl:
        await collection.prolong(record for record, _ in found)
    return [_items.found_of(*each) for each in found]


class _Search:
    """One search under way."""

    def __init__(self, collection: _collection.Collection, op: SearchOp) -> None:
        self._collection = collection
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
        conditions = [f'kind = "{_items.KIND}"', *self._conditions]
        # What the server lets through is mostly what is meant, except with a filter.
        page_size = None
        if needed is not None and not self._op.filter:
            page_size = min(needed + len(passed or ()), _bulk.RECORDS_PER_PAGE)
        async for record in self._collection.records(conditions, page_size=page_size):
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
        hits = await self._collection.hits(
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

    async def by_vector(self, sought: Sought) -> Ranking:
        """Return the items with the nearest vectors, and behind them those without one."""
        nearest = await self._nearest(sought)
        if self._needed is not None and len(nearest) >= self._needed:
            return nearest
        # There are items that the query did not give, perhaps without a vector.
        return await self._all(sought)

    async def _nearest(self, sought: Sought) -> Ranking:
        """Return the items with the nearest vectors: a beginning of all of them."""
        if not self._needed or self._needed > HITS or sought.measure is not _measures.cosine:
            return []  # The server knows what is nearest by cosine only.
        hits = await self._collection.hits(
            [_EITHER_KIND, *self._conditions],
            embedding=sought.vector,
            embedding_space=sought.space,
            mode="vector",
            include_embeddings=True,
            limit=HITS,
        )
        best: dict[_items.Place, tuple[float, _records.Record]] = {}
        for hit in hits:
            score = sought.measure(sought.vector, hit.record.embedding)
            place = _items.place_of(hit.record)
            if place not in best or score > best[place][0]:
                best[place] = (score, hit.record)
        ranked = sorted(best.values(), key=lambda each: (-each[0], each[1].create_time))
        owners = await _collection.together(
            self._owner(record) for _, record in ranked[: self._needed]
        )
        return [
            (own, score)
            for own, (score, _) in zip(owners, ranked, strict=False)
            if own is not None and self._is_meant(own)
        ]

    async def _owner(self, record: _records.Record) -> _records.Record | None:
        return record if record.kind == _items.KIND else await self._collection.owns(record)

    async def _all(self, sought: Sought) -> Ranking:
        """Return all items that are meant, those with vectors first, the nearest first."""
        own: dict[str, _records.Record] = {}
        scores: dict[str, float] = {}
        async for record in self._collection.records(
            [_EITHER_KIND, *self._conditions], vectors=True
        ):
            mark = _items.mark_of(record)
            if record.kind == _items.KIND and self._is_meant(record):
                own[mark] = record
            if record.embedding_space == sought.space:
                score = sought.measure(sought.vector, record.embedding)
                scores[mark] = max(score, scores.get(mark, score))
        scored = [mark for mark in own if mark in scores]
        scored.sort(key=scores.__getitem__, reverse=True)
        ranked = [(own[mark], scores[mark]) for mark in scored]
        return [*ranked, *((record, None) for mark, record in own.items() if mark not in scores)]


_EITHER_KIND = f'(kind = "{_items.KIND}" OR kind = "{_items.VECTOR_KIND}")'
