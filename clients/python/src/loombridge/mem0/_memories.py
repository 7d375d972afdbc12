"""mem0's memory over an asynchronous client."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from loombridge import (
    _client,
    _connect,
    _errors,
    _extract,
    _records,
    _values,
)
from loombridge.mem0 import _conditions

AGENT = "mem0"
"""The default owner of the records."""

KIND = "mem0"
"""The kind of a memory's record."""

MESSAGE_KIND = "mem0.message"
"""The kind of a message that a model was given: memories derive from it, none finds it."""

TOP_K = 20
"""Memories that `search` and `get_all` return, as mem0 does."""

THRESHOLD = 0.1
"""The least score of what `search` returns, as in mem0."""


class AsyncMemory:
    """mem0's `AsyncMemory`: the same methods, arguments and results.

    What is not served, and raises TypeError or ValueError: `memory_type`, `prompt`,
    `timestamp`, `expiration_date`, `rerank`, the filters `contains` and `icontains`, and
    `from_config`. A memory that was deleted has no history: the server keeps none of it.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent: str = AGENT,
        model: _extract.Model | None = None,
        token: str | None = None,
        tls: _connect.Tls | bool | None = None,
        timeout: _values.Seconds = 30.0,
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent: the agent in whose memory the records are; default `mem0`, or the
                client's.
            model: what `infer=True` asks, as `ctx.memory.extract` does.
            token: a bearer token, where the server asks for one.
            tls: True or a `Tls` for an encrypted connection.
            timeout: seconds that a call to the server may take.
        """
        self._model = model
        self._lock: asyncio.Lock | None = None
        self._own = not isinstance(server, _client.Client)
        self._client = server if isinstance(server, _client.Client) else None
        self._connecting: _connect.Connecting | None = None
        if not isinstance(server, _client.Client):
            self._connecting = _connect.connect(
                server, agent_id=agent, token=token, tls=tls, timeout=timeout
            )

    async def _ctx(self) -> _client.Client:
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if self._client is None:
                if self._connecting is None:
                    raise _errors.ClientClosedError("the memory is closed")
                self._client = await self._connecting
            return self._client

    async def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = False,
    ) -> dict[str, Any]:
        """Keep messages as memories: each as it stands, or what the model makes of them.

        Args:
            messages: a text, a message with `role` and `content`, or a list of them; those
                of the role `system` are left out.
            user_id: whose they are; one of the three ids is needed.
            agent_id: whose they are.
            run_id: whose they are.
            metadata: the caller's own, of all of them.
            infer: have the model read them. The messages are kept as what its answers
                derive from, and are found by no search.

        Returns:
            `{"results": [{"id", "memory", "event": "ADD", …}]}`.

        Raises:
            ValueError: no id is given, `infer` without a model, or an invalid answer of the model.
        """
        ids = _conditions.whose(user_id=user_id, agent_id=agent_id, run_id=run_id)
        _conditions.some(ids)
        if infer and self._model is None:
            raise ValueError("infer=True needs a model: give one to the constructor")
        kind = MESSAGE_KIND if infer else KIND
        drafts = [_draft(message, kind, ids, metadata) for message in _messages(messages)]
        ctx = await self._ctx()
        saved = await ctx.memory.save_many(drafts) if drafts else ()
        if infer and saved:
            return {"results": await self._inferred(ctx, saved, ids, metadata)}
        return {
            "results": [
                {
                    "id": each.id,
                    "memory": draft.text,
                    "event": "ADD",
                    "actor_id": _scope(draft.metadata).get("actor_id"),
                    "role": _scope(draft.metadata)["role"],
                }
                for draft, each in zip(drafts, saved, strict=True)
            ]
        }

    async def _inferred(
        self,
        ctx: _client.Client,
        saved: Sequence[_records.Saved],
        ids: Mapping[str, str],
        metadata: Mapping[str, Any] | None,
    ) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        read = [await ctx.memory.get(id=each.id) for each in saved]
        size = _extract.LARGEST_BATCH
        for records in (read[start : start + size] for start in range(0, len(read), size)):
            batch = await _extract.derive(
                ctx.memory,
                self._model or _none,
                records,
                kind=KIND,
                metadata={**(metadata or {}), _conditions.PLACE: dict(ids)},
            )
            if batch.refused:
                raise ValueError(f"the model's answer was refused: {batch.refused}")
            results += [
                {"id": each.id, "memory": draft.text, "event": "ADD"}
                for draft, each in zip(batch.drafts, batch.saved, strict=True)
            ]
        return results

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        top_k: int = TOP_K,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = THRESHOLD,
    ) -> dict[str, Any]:
        """Find memories, the best first.

        Args:
            query: what to look for.
            user_id: whose memories; may stand in `filters`, as may the two others. One of
                them is needed.
            agent_id: whose memories.
            run_id: whose memories.
            top_k: how many at most, from 1 to 100.
            limit: what `top_k` was called before mem0ai 2.0.
            filters: only memories with these ids and metadata: values, or mappings of `eq`,
                `ne`, `in`, `nin`, `gt`, `gte`, `lt`, `lte`; `"*"` is any value; `AND`,
                `OR` and `NOT` hold lists of filters.
            threshold: the least score; None: any.

        Returns:
            `{"results": [{"id", "memory", "score", "metadata", "created_at", …}]}`.
        """
        ids = _conditions.whose(user_id=user_id, agent_id=agent_id, run_id=run_id)
        wanted = {**(filters or {}), **ids}
        _conditions.some(wanted)
        ctx = await self._ctx()
        hits = await ctx.memory_query(
            _values.text("query", query),
            limit=top_k if limit is None else limit,
            filter=_conditions.expression([KIND], wanted),
            min_score=threshold,
        )
        return {"results": [{**_item(hit.record), "score": hit.score} for hit in hits]}

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory, None if the id is unknown."""
        record = await self._record(memory_id)
        return None if record is None else _item(record)

    async def _record(self, memory_id: str) -> _records.Record | None:
        ctx = await self._ctx()
        try:
            record = await ctx.memory.get(id=memory_id)
        except _errors.RecordNotFoundError:
            return None
        return record if record.kind == KIND else None

    async def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        top_k: int = TOP_K,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return memories, in the order in which they were added; arguments as of `search`."""
        ids = _conditions.whose(user_id=user_id, agent_id=agent_id, run_id=run_id)
        wanted = {**(filters or {}), **ids}
        _conditions.some(wanted)
        most = _values.integer("top_k", top_k if limit is None else limit)
        ctx = await self._ctx()
        found: list[dict[str, Any]] = []
        if most > 0:
            async for record in ctx.memory.list(
                filter=_conditions.expression([KIND], wanted), page_size=min(most, 500)
            ):
                found.append(_item(record))
                if len(found) == most:
                    break
        return {"results": found}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text of a memory, and members of its metadata; the others stay.

        Args:
            memory_id: which one.
            text: what it says from now on.
            metadata: members of the metadata; members that name the owner stay.
            data: what `text` was called before mem0ai 2.0.

        Raises:
            ValueError: there is no such memory, or nothing to change.
        """
        changed = data if text is None else text
        if changed is None and metadata is None:
            raise ValueError("nothing to update: give a text or metadata")
        if await self._record(memory_id) is None:
            raise ValueError(f"Memory with id {memory_id} not found")
        own = {name: value for name, value in (metadata or {}).items() if name not in _RESERVED}
        ctx = await self._ctx()
        if changed is not None or own:
            await ctx.memory.update(id=memory_id, text=changed, metadata=own or None, merge=True)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory, and its history.

        Raises:
            ValueError: there is no such memory.
        """
        if await self._record(memory_id) is None:
            raise ValueError(f"Memory with id {memory_id} not found")
        await (await self._ctx()).memory.delete(id=memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, str]:
        """Delete all memories of a user, an agent or a run, and the messages they come from.

        Raises:
            ValueError: no id is given; `reset` deletes all.
        """
        ids = _conditions.whose(user_id=user_id, agent_id=agent_id, run_id=run_id)
        _conditions.some(ids)
        ctx = await self._ctx()
        await ctx.memory.delete_matching(_conditions.expression([KIND, MESSAGE_KIND], ids))
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the history of a memory, oldest first; empty for a deleted one."""
        if await self._record(memory_id) is None:
            return []
        versions = await (await self._ctx()).memory.versions(id=memory_id)
        versions.reverse()
        return [
            {
                "id": f"{memory_id}/{now.version}",
                "memory_id": memory_id,
                "old_memory": None if before is None else before.text,
                "new_memory": now.text,
                "event": "ADD" if now.version == 1 else "UPDATE",
                "created_at": now.create_time.isoformat(),
                "updated_at": (now.update_time or now.create_time).isoformat(),
                "is_deleted": False,
                "actor_id": _scope(now.metadata).get("actor_id"),
                "role": _scope(now.metadata).get("role"),
            }
            for before, now in zip([None, *versions], versions, strict=False)
        ]

    async def reset(self) -> None:
        """Delete all memories of the agent, whosever they are."""
        ctx = await self._ctx()
        await ctx.memory.delete_matching(_conditions.expression([KIND, MESSAGE_KIND], {}))

    async def close(self) -> None:
        """End the connection, unless it is that of a client; twice is fine."""
        client, self._connecting = self._client, None
        if self._own:
            self._client = None
            if client is not None:
                await client.close()

    async def __aenter__(self) -> Self:
        """Return it itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the connection."""
        await self.close()


_RESERVED = frozenset((*_conditions.SCOPED, _conditions.PLACE))


def _none(_records: object) -> tuple[()]:
    return ()


def _messages(given: object) -> list[Mapping[str, Any]]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, Mapping):
        given = [cast("Mapping[str, Any]", given)]
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise ValueError("messages must be str, dict, or list[dict]")
    found: list[Mapping[str, Any]] = []
    for number, each in enumerate(cast("Sequence[object]", given)):
        message = _values.mapping(f"messages[{number}]", each)
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise ValueError(f"messages[{number}] needs a role and a content, both texts")
        if message["role"] != "system":
            found.append(message)
    return found


def _draft(
    message: Mapping[str, Any],
    kind: str,
    ids: Mapping[str, str],
    metadata: Mapping[str, Any] | None,
) -> _records.RecordDraft:
    own = dict(metadata or {})
    if taken := sorted(own.keys() & _RESERVED):
        raise ValueError(f"metadata can't have {taken[0]!r}: it is reserved")
    scope = {**ids, "role": message["role"]}
    if message.get("name"):
        scope["actor_id"] = _values.text("name", message["name"])
    return _records.RecordDraft(
        text=message["content"],
        kind=kind,
        session_id="",
        metadata={**own, _conditions.PLACE: scope},
        origin="user" if message["role"] == "user" else None,
    )


def _scope(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (metadata or {}).get(_conditions.PLACE, {})


def _item(record: _records.Record) -> dict[str, Any]:
    """Return a record as mem0 has a memory."""
    hidden = (_conditions.PLACE, _extract.MARK)
    own = {name: value for name, value in record.metadata.items() if name not in hidden}
    digest = hashlib.md5(record.text.encode(), usedforsecurity=False)
    return {
        "id": record.id,
        "memory": record.text,
        "hash": digest.hexdigest(),
        "metadata": own or None,
        "created_at": record.create_time.isoformat(),
        "updated_at": (record.update_time or record.create_time).isoformat(),
        **{name: value for name, value in _scope(record.metadata).items() if name in _RESERVED},
    }
