"""The store itself: LangGraph's operations, embedded here and carried out on the server."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    Embeddings,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

import loombridge
from loombridge import _loops, _values
from loombridge.langgraph import (
    _coalescer,
    _collection,
    _items,
    _leases,
    _measures,
    _search,
    _turns,
)

AGENT = "langgraph"
"""The default owner of the memory."""

_WHOLE = "$"
"""The path of a whole value."""


class LoomBridgeStore(_loops.Adapter, BaseStore):
    """A LangGraph store whose items are records of long-term memory.

    Any thread and any event loop may use it; `close` it, or use it in a `with` or `async
    with` block. What it keeps of `BaseStore`, and where it goes beyond:

    - Without an `index`, `query` ranks by the words of the whole value, by the server. Items
      that have none of them follow without a score.
    - With `index={"embed": …, "dims": …}`, scores are cosines, the best of an item's
      vectors, as in `InMemoryStore`; `fields`, and `index` of a single put, say what is
      embedded. `"distance_type": "l2"` or `"inner_product"` scores as that store on
      Postgres does, and looks at every item below the prefix.
    - `filter` takes `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, nested values, and `a.b`
      for what is in `a` as `b`. Numbers are compared as numbers, texts as texts; what is
      missing or of another type is neither less nor more.
    - `ttl`, in minutes, counts from the last time the item was got or found, unless
      `refresh_ttl` of the call, or `ttl={"refresh_on_read": False}` of the store, says
      not to; it is prolonged in steps of a tenth. Expired items are gone at once.
    - Calls that are under way at the same time see and leave an item as if its writers had come
    one after the other. - A value is what JSON can say, up to 256 KiB, and comes back equal (a
    tuple as a list).
      `created_at` stays when an item is put again.
    - Without a query, items come in the order in which they were first put.
    """

    supports_ttl = True

    def __init__(
        self,
        server: loombridge.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        embedding_space: str | None = None,
        token: str | None = None,
        tls: loombridge.Tls | bool | None = None,
        timeout: loombridge.Seconds = 30.0,
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, whose agent and
                connection are used; then synchronous calls work from other threads than
                that of its event loop only.
            agent_id: whose memory the items are in; default `langgraph`, or the
                client's.
            user_id: keep them in that person's memory instead, which all agents share.
            index: the embedded fields, and the function; default: search by words.
            ttl: the default time to live, and whether reading prolongs it.
            embedding_space: names the model of the vectors; a model must not be changed
                under the same name. Default: from the embeddings' own `model` and `dims`.
            token: a bearer token, where the server asks for one.
            tls: True or a `Tls` for an encrypted connection.
            timeout: seconds that a call to the server may take.
        """
        self.index_config = index.copy() if index else None
        """What is embedded, as it was given."""
        embed = self.index_config.get("embed") if self.index_config else None
        self.embeddings: Embeddings | None = ensure_embeddings(embed) if embed else None
        """What makes vectors; None: the server searches by words."""
        self.ttl_config = ttl
        config = cast("Mapping[str, Any]", index or {})
        self._fields = config.get("fields") or config.get("text_fields") or [_WHOLE]
        self._measure = _measure(config.get("distance_type", "cosine"))
        self._turns = _turns.Turns()
        self._leases = _leases.Leases()
        self._coalescer = _coalescer.ReadCoalescer()
        self._space = embedding_space or self._default_space()
        self._user_id = user_id
        self._open(server, agent_id, AGENT, {"token": token, "tls": tls, "timeout": timeout})

    def _default_space(self) -> str:
        if self.index_config is None or self.embeddings is None:
            return ""
        model = getattr(self.embeddings, "model", None)
        name = model if isinstance(model, str) and model else AGENT
        return f"{name}/{self.index_config.get('dims', '')}"[:128]

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: all that read, then all that write, of each item the last."""
        work = _Work(ops, self._fields)
        with self._turns.take(work.read(), work.written()) as turn:
            vectors: Sequence[Sequence[float]] = []
            queries: Sequence[Sequence[float]] = []
            if self.embeddings is not None:
                vectors = self.embeddings.embed_documents(work.texts) if work.texts else []
                queries = [self.embeddings.embed_query(query) for query in work.queries]
            return self._loop.call(self._carried_out(work, vectors, queries, turn))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: all that read, then all that write, of each item the last."""
        work = _Work(ops, self._fields)
        with self._turns.take(work.read(), work.written()) as turn:
            vectors: Sequence[Sequence[float]] = []
            queries: Sequence[Sequence[float]] = []
            if self.embeddings is not None:
                vectors = await self.embeddings.aembed_documents(work.texts) if work.texts else []
                queries = await asyncio.gather(*map(self.embeddings.aembed_query, work.queries))
            return await self._loop.acall(self._carried_out(work, vectors, queries, turn))

    def history(
        self, namespace: tuple[str, ...], key: str, *, limit: int | None = None
    ) -> list[Item]:
        """Return an item as it is and as it was before each put, the newest first.

        Looking prolongs no time to live. `updated_at` of each is when it was put. An item
        that was deleted, or has expired, has none; the server keeps the last 1,000 changes.

        Args:
            namespace: where the item is.
            key: its key.
            limit: how many at most; default: all that are kept.
        """
        place = _place(namespace, key)
        with self._turns.take([place], []) as turn:
            return self._loop.call(self._looked_back(place, limit, turn))

    async def ahistory(
        self, namespace: tuple[str, ...], key: str, *, limit: int | None = None
    ) -> list[Item]:
        """Return an item as it is and as it was before each put; see `history`."""
        place = _place(namespace, key)
        with self._turns.take([place], []) as turn:
            return await self._loop.acall(self._looked_back(place, limit, turn))

    def _looked_back(
        self, place: _items.Place, limit: int | None, turn: _turns.Turn
    ) -> "_loops.Work[list[Item]]":
        user_id, leases = self._user_id, self._leases

        async def look_back(client: loombridge.Client) -> list[Item]:
            await turn.come()
            found = await _collection.Collection(client, user_id, leases).versions(place)
            return found[:limit]

        return look_back

    def _carried_out(
        self,
        work: "_Work",
        vectors: Sequence[Sequence[float]],
        queries: Sequence[Sequence[float]],
        turn: _turns.Turn,
    ) -> "_loops.Work[list[Result]]":
        """Return what carries out work, with the vectors of its texts and queries."""
        embedded = dict(zip(work.texts, vectors, strict=True)) if self.embeddings else {}
        asked = dict(zip(work.queries, queries, strict=True)) if self.embeddings else {}
        entries = [self._entry(op, work.texts_of[place], embedded) for place, op in work.puts()]

        # The work outlives a caller that waits no longer; it must not hold the store.
        user_id, leases, coalescer = self._user_id, self._leases, self._coalescer
        space, measure = self._space, self._measure

        async def carry_out(client: loombridge.Client) -> list[Result]:
            collection = _collection.Collection(client, user_id, leases)

            async def read(op: Op) -> Result:
                if isinstance(op, GetOp):
                    return await coalescer.read(repr(op), lambda: collection.get(op))
                if isinstance(op, SearchOp):
                    vector = asked.get(op.query or "")
                    sought = None if vector is None else _search.Sought(vector, space, measure)
                    found = await coalescer.read(
                        repr(op), lambda: _search.search(collection, op, sought)
                    )
                    return cast("Result", found)
                if isinstance(op, ListNamespacesOp):
                    return await coalescer.read(repr(op), lambda: collection.namespaces(op))
                return None

            await turn.come()
            results = await _collection.together(map(read, work.ops))
            if work.written():
                async with coalescer.places:
                    await collection.delete(work.deletes())
                    await collection.put(entries)
            return results

        return carry_out

    def _entry(
        self, op: PutOp, texts: Sequence[str], embedded: Mapping[str, Sequence[float]]
    ) -> _items.Entry:
        return _items.Entry(
            place=(tuple(op.namespace), op.key),
            value=op.value or {},
            texts=texts,
            vectors=[embedded[text] for text in texts] if embedded else (),
            space=self._space,
            ttl=None if op.ttl is None else timedelta(minutes=op.ttl),
        )


class _Work:
    """The operations of a batch, and the texts in them that need vectors."""

    def __init__(self, ops: Iterable[Op], fields: Sequence[str]) -> None:
        self.ops = list(ops)
        self._writes: dict[_items.Place, PutOp] = {}
        """By item the last write: those before it are never seen."""
        for op in self.ops:
            _check(op)
            if isinstance(op, PutOp):
                self._writes[(tuple(op.namespace), op.key)] = op
        self.texts_of = {place: _texts(op, fields) for place, op in self.puts()}
        """By item what it is searched by."""
        self.texts = list(dict.fromkeys(text for each in self.texts_of.values() for text in each))
        """All of them, each once."""
        asked = (op.query for op in self.ops if isinstance(op, SearchOp) and op.query)
        self.queries = list(dict.fromkeys(asked))
        """What is looked for, each once."""

    def read(self) -> list[_items.Place]:
        return [(tuple(op.namespace), op.key) for op in self.ops if isinstance(op, GetOp)]

    def written(self) -> list[_items.Place]:
        return list(self._writes)

    def puts(self) -> list[tuple[_items.Place, PutOp]]:
        return [(place, op) for place, op in self._writes.items() if op.value is not None]

    def deletes(self) -> list[_items.Place]:
        return [place for place, op in self._writes.items() if op.value is None]


def _place(namespace: Iterable[str], key: str) -> _items.Place:
    _items.check_labels(namespace)
    return tuple(namespace), key


def _check(op: Op) -> None:
    if isinstance(op, GetOp | PutOp):
        _items.check_labels(op.namespace)
        if isinstance(op, PutOp):
            _check_put(op)
    elif isinstance(op, SearchOp):
        _items.check_labels(op.namespace_prefix)
        if op.filter is not None:
            _values.mapping("filter", op.filter)
        _values.optional_text("query", op.query)
    elif isinstance(cast("object", op), ListNamespacesOp):
        for condition in op.match_conditions or ():
            _items.check_labels(condition.path)
    else:
        raise ValueError(f"Unknown operation type: {type(op)}")


def _check_put(op: PutOp) -> None:
    if op.value is not None:
        _values.mapping("value", op.value)
    if op.index is not None and op.index is not False:
        _values.texts("index", op.index)


def _measure(distance_type: str) -> _measures.Measure:
    if (measure := _measures.BY_NAME.get(distance_type)) is None:
        known = ", ".join(_measures.BY_NAME)
        raise ValueError(f"distance_type {distance_type!r} is not one of {known}")
    return measure


def _texts(op: PutOp, fields: Sequence[str]) -> list[str]:
    """Return the texts that an item is searched by: the texts at its paths."""
    if op.index is False:
        return []
    value = _items.plain(op.value)
    found: list[str] = []
    for path in fields if op.index is None else op.index:
        found += get_text_at_path(value, path if path == _WHOLE else tokenize_path(path))
    return found
