"""Checkpoints on the server: written, read, copied and deleted."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from loombridge import _client, _errors, _filters, _parts, _records
from loombridge.langgraph import _checkpoints, _deltas
from loombridge.langgraph._checkpoints import Body, Place, Typed, Value

WHOLE_BYTES = 1 << 10
"""A value up to this length is stored as it is."""

LONGEST_CHAIN = 1000
"""Values that are read, at most, to make one of what changed."""

STEP = 32
"""Of so many of them one is remembered, so that the next need not be read from the first."""

DIRECT = 4
"""Records that are read one by one; more are read as a listing."""

REMEMBERED_BYTES = 64 << 20
"""Bytes of what was read or written lately that a saver remembers."""

Write = tuple[str, str, Typed]
"""Task, channel and value."""


class Memo:
    """What was read or written lately; a checkpoint, once put, never changes."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._kept: OrderedDict[tuple[Place, str, str], Any] = OrderedDict()
        self._sizes: dict[tuple[Place, str, str], int] = {}
        self._size = 0

    def get(self, place: Place, checkpoint_id: str, channel: str) -> Any:
        """Return a body (of no channel) or the bytes of a value; None: unknown."""
        name = (place, checkpoint_id, channel)
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def put(self, place: Place, checkpoint_id: str, channel: str, it: Any, size: int) -> None:
        """Remember it, and forget what was not asked for the longest."""
        name = (place, checkpoint_id, channel)
        self._drop(name)
        self._kept[name], self._sizes[name] = it, size
        self._size += size
        while self._size > REMEMBERED_BYTES:
            self._drop(next(iter(self._kept)))

    def forget(self, thread: str) -> None:
        """Forget a thread."""
        for name in [name for name in self._kept if name[0].thread == thread]:
            self._drop(name)

    def _drop(self, name: tuple[Place, str, str]) -> None:
        if self._kept.pop(name, None) is not None:
            self._size -= self._sizes.pop(name)


class Threads:
    """The threads of one memory."""

    def __init__(self, ctx: _client.Client, user_id: str | None, memo: Memo) -> None:
        """Use the memory of the client's agent, or of a person."""
        self._memory = ctx.memory
        self._user_id = user_id
        self._memo = memo

    async def put(
        self,
        place: Place,
        checkpoint_id: str,
        parent: str | None,
        checkpoint: Typed,
        metadata: Typed,
        values: Mapping[str, Typed],
        where: Mapping[str, str],
    ) -> None:
        """Store a checkpoint.

        Args:
            place: where it is.
            checkpoint_id: its id.
            parent: the id of the one that it follows.
            checkpoint: it, without the values of channels.
            metadata: what is said of it.
            values: the values that it sets.
            where: by channel the checkpoint that has set the value, where it is the parent's.
        """
        before = await self.body(place, parent) if parent else None
        owners = before.owners(parent or "") if before else {}
        chunks = [checkpoint[1], metadata[1]]
        stored: dict[str, Value] = {}
        for name, (kind, data) in values.items():
            value = Value(kind, len(chunks))
            if name in owners and len(data) > WHOLE_BYTES:
                value, data = await self._changed(place, owners[name], name, value, data)
            stored[name] = value
            chunks.append(data)
        body = Body(chunks, Value(checkpoint[0], 0), Value(metadata[0], 1), parent, stored, where)
        *parts, own = _checkpoints.body_draft(place, checkpoint_id, body)
        await self._store(parts, own)
        self._memo.put(place, checkpoint_id, "", body, body.size)
        for name, (_, data) in values.items():
            if len(data) > WHOLE_BYTES:
                self._memo.put(place, checkpoint_id, name, data, len(data))

    async def _changed(
        self, place: Place, owner: str, channel: str, value: Value, data: bytes
    ) -> tuple[Value, bytes]:
        """Return a value as what it changes in an earlier one, if that is shorter."""
        base = await self.body(place, owner)
        earlier = base.values.get(channel) if base else None
        if earlier is None or earlier.kind != value.kind or earlier.depth >= LONGEST_CHAIN:
            return value, data
        try:
            delta = _deltas.delta(await self.value(place, owner, channel), data)
        except LookupError:
            return value, data
        if delta is None or earlier.changed + len(delta) > len(data):
            return value, data
        value = replace(
            value,
            base=owner,
            root=earlier.root or owner,
            depth=earlier.depth + 1,
            changed=earlier.changed + len(delta),
        )
        return value, delta

    async def _store(
        self, parts: Sequence[_records.RecordDraft], own: _records.RecordDraft
    ) -> None:
        try:
            # One commit, up to 4 MiB; of more the last has the record that names the others.
            await self._memory.save_many([*parts, own], user_id=self._user_id)
        except _errors.RecordExistsError:
            if parts:
                await self._memory.save_many(parts, user_id=self._user_id)
            await self._memory.update(key=own.key, metadata=own.metadata, user_id=self._user_id)

    async def put_writes(
        self, place: Place, checkpoint_id: str, head: Mapping[str, Any], chunks: Sequence[bytes]
    ) -> None:
        """Store writes that belong to a checkpoint; head says whose they are, and of what."""
        about = {"id": checkpoint_id}
        drafts = _checkpoints.draft(place, None, _checkpoints.WRITES_KIND, about, chunks, head)
        await self._memory.save_many(drafts, user_id=self._user_id)

    async def newest(self, place: Place) -> str | None:
        """Return the largest id of a checkpoint."""
        found: str | None = None
        while True:
            conditions = [f'kind = "{_checkpoints.KIND}"']
            if found is not None:
                # It came last; another may be later by its id, all the same.
                conditions.append(f"metadata.langgraph.id > {_filters.literal(found)}")
            listing = self._list(place.filter(*conditions), newest_first=True, page_size=1)
            newer = [_checkpoints.about(record)["id"] async for record in _first(listing)]
            if not newer:
                return found
            found = newer[0]

    async def at(
        self, place: Place, checkpoint_id: str
    ) -> tuple[Body, dict[str, Typed], list[tuple[Any, list[bytes]]]] | None:
        """Return a checkpoint, its values, and the writes that belong to it in their order."""
        named = f"metadata.langgraph.id = {_filters.literal(checkpoint_id)}"
        body: Body | None = None
        writes: list[tuple[Any, list[bytes]]] = []
        async for record in self._list(place.filter(named)):
            if record.kind == _checkpoints.KIND:
                body = await self._body_of(place, record)
            else:
                writes.append(await self._whole(record))
        if body is None:
            return None
        try:
            values = await self.values(place, checkpoint_id, body)
        except LookupError:
            # Another process has deleted what is remembered here, and written this one anew.
            self._memo.forget(place.thread)
            if (body := await self.body(place, checkpoint_id)) is None:
                return None
            values = await self.values(place, checkpoint_id, body)
        return body, values, writes

    async def body(self, place: Place, checkpoint_id: str) -> Body | None:
        """Return a checkpoint; None: there is none."""
        if (known := self._memo.get(place, checkpoint_id, "")) is not None:
            return known
        with suppress(_errors.RecordNotFoundError):
            record = await self._memory.get(key=place.key(checkpoint_id), user_id=self._user_id)
            return await self._body_of(place, record)
        return None

    async def _body_of(self, place: Place, record: _records.Record) -> Body:
        checkpoint_id = _checkpoints.about(record)["id"]
        if (known := self._memo.get(place, checkpoint_id, "")) is not None:
            return known
        body = _checkpoints.body_of(*await self._whole(record))
        self._memo.put(place, checkpoint_id, "", body, body.size)
        return body

    async def _whole(self, record: _records.Record) -> tuple[Any, list[bytes]]:
        return await _parts.read(record, self._list)

    async def values(self, place: Place, checkpoint_id: str, body: Body) -> dict[str, Typed]:
        """Return the values of a checkpoint's channels.

        Raises:
            LookupError: a checkpoint is not there that has one of them.
        """
        owners = body.owners(checkpoint_id)
        await asyncio.gather(*(self.body(place, each) for each in set(owners.values())))
        found: dict[str, Typed] = {}
        for channel, named in owners.items():
            owner, there = await self._owner(place, body, named, channel)
            found[channel] = (there.values[channel].kind, await self.value(place, owner, channel))
        return found

    async def _owner(
        self, place: Place, body: Body | None, owner: str, channel: str
    ) -> tuple[str, Body]:
        """Return the checkpoint that has the value which a body says that another has.

        When another process has deleted that one while the body was written, its parent, which
        then was written anew, has the value.

        Raises:
            LookupError: none has it.
        """
        asked: set[str] = set()
        while (there := await self.body(place, owner)) is None or channel not in there.values:
            parent = body.parent if body else None
            body = await self.body(place, parent) if parent else None
            owners = body.owners(parent or "") if body else {}
            if channel not in owners or parent in asked:
                raise LookupError(
                    f"thread {place.thread!r} has no checkpoint {owner!r} with a value of "
                    f"{channel!r}, which later ones need"
                )
            asked.add(parent or "")
            owner = owners[channel]
        return owner, there

    async def value(self, place: Place, checkpoint_id: str, channel: str) -> bytes:
        """Return the bytes of the value that a checkpoint has set.

        Raises:
            LookupError: a checkpoint is not there whose value it changes.
        """
        chain: list[str] = []
        data: bytes | None = None
        own, body = checkpoint_id, None
        while (data := self._memo.get(place, own, channel)) is None:
            own, body = await self._owner(place, body, own, channel)
            value = body.values[channel]
            if not value.base:
                data = body.chunks[value.chunk]
                break
            if not chain and value.depth > DIRECT:
                await self._fetch(place, value.root, own)
            chain.append(own)
            own = value.base
        chain.reverse()
        for start in range(0, len(chain), STEP):
            group = chain[start : start + STEP]
            changes: list[bytes] = []
            for each in group:
                _, body = await self._owner(place, None, each, channel)
                changes.append(body.chunks[body.values[channel].chunk])
            data = _deltas.apply(data, changes)
            self._memo.put(place, group[-1], channel, data, len(data))
        return data

    async def _fetch(self, place: Place, first: str, last: str) -> None:
        """Read the checkpoints from one to another at once, to remember them."""
        path = "metadata.langgraph.id"
        span = place.filter(
            f'kind = "{_checkpoints.KIND}"',
            f"{path} >= {_filters.literal(first)}",
            f"{path} <= {_filters.literal(last)}",
        )
        async for record in self._list(span):
            await self._body_of(place, record)

    async def records(
        self, thread: str | None, ns: str | None = None, *, kinds: Sequence[str] = ()
    ) -> list[_records.Record]:
        """Return the main records of a thread, or of all threads."""
        conditions = [_filters.any_of("kind", kinds or (_checkpoints.KIND,))]
        if thread is not None:
            session = _filters.literal(_checkpoints.session_of(thread))
            conditions.insert(0, f"session_id = {session}")
        if ns is not None:
            conditions.append(f"metadata.langgraph.ns = {_filters.literal(ns)}")
        return [record async for record in self._list(" AND ".join(conditions))]

    async def delete_thread(self, thread: str) -> None:
        """Delete all of a thread."""
        session = _filters.literal(_checkpoints.session_of(thread))
        kinds = (_checkpoints.KIND, _checkpoints.WRITES_KIND, _checkpoints.PART_KIND)
        await self._memory.delete_matching(
            f"session_id = {session} AND {_filters.any_of('kind', kinds)}",
            user_id=self._user_id,
        )
        self._memo.forget(thread)

    async def delete(self, thread: str, gone: Sequence[_records.Record]) -> None:
        """Delete checkpoints, and the writes that belong to them.

        Those that stay get what they have of the ones that go, before these go.
        """
        names = {record.key for record in gone}
        stays = [each for each in await self.records(thread) if each.key not in names]
        sound: set[tuple[Place, str, str]] = set()
        for record in sorted(stays, key=lambda each: _checkpoints.about(each)["id"]):
            await self._free(record, names, sound)
        keys = [record.key or "" for record in gone]
        keys += [name for record in gone for name in _parts.names(record)]
        ids = {(_checkpoints.place_of(r).ns, _checkpoints.about(r)["id"]) for r in gone}
        for record in await self.records(thread, kinds=(_checkpoints.WRITES_KIND,)):
            said = _checkpoints.about(record)
            if (said["ns"], said["id"]) in ids:
                keys += _parts.names(record)
                await self._memory.delete(id=record.id, user_id=self._user_id)
        await self._named_gone(keys)
        self._memo.forget(thread)

    async def _free(
        self,
        record: _records.Record,
        gone: Container[str | None],
        sound: set[tuple[Place, str, str]],
    ) -> None:
        """Write a checkpoint anew if it needs one that goes; add its values to the sound ones."""
        place, own = _checkpoints.place_of(record), _checkpoints.about(record)["id"]
        body = await self._body_of(place, record)
        owners = body.owners(own)
        broken = [
            await self._needs(place, owner, channel, gone, sound)
            for channel, owner in owners.items()
        ]
        if any(broken):
            try:
                values = await self.values(place, own, body)
            except LookupError:
                return  # It had lost them before.
            chunks = [*body.chunks[:2], *(data for _, data in values.values())]
            stored = {
                channel: Value(kind, number)
                for number, (channel, (kind, _)) in enumerate(values.items(), 2)
            }
            body = replace(body, chunks=chunks, values=stored, where={})
            *parts, main = _checkpoints.body_draft(place, own, body)
            await self._store(parts, main)
            self._memo.put(place, own, "", body, body.size)
            await self._named_gone(_parts.names(record))
        sound.update((place, own, channel) for channel in body.values)

    async def _needs(
        self,
        place: Place,
        owner: str,
        channel: str,
        gone: Container[str | None],
        sound: set[tuple[Place, str, str]],
    ) -> bool:
        """Report whether a value is made of one that goes, or has gone."""
        while (place, owner, channel) not in sound:
            if place.key(owner) in gone:
                return True
            body = await self.body(place, owner)
            if body is None or channel not in body.values:
                return True
            if not (base := body.values[channel].base):
                return False
            owner = base
        return False

    async def _named_gone(self, keys: Sequence[str]) -> None:
        for expression in _filters.some("key", keys):
            await self._memory.delete_matching(expression, user_id=self._user_id)

    async def copy(self, source: str, target: str) -> None:
        """Copy all of a thread into another."""
        records = await self.records(source, kinds=(_checkpoints.KIND, _checkpoints.WRITES_KIND))
        for record in records:
            place = replace(_checkpoints.place_of(record), thread=target)
            checkpoint_id = _checkpoints.about(record)["id"]
            head, chunks = await self._whole(record)
            key = place.key(checkpoint_id) if record.kind == _checkpoints.KIND else None
            *parts, own = _checkpoints.draft(
                place, key, record.kind, {"id": checkpoint_id}, chunks, head
            )
            await self._store(parts, own)

    def _list(
        self, expression: str, *, newest_first: bool = False, page_size: int | None = None
    ) -> AsyncIterator[_records.Record]:
        return aiter(
            self._memory.list(
                filter=expression,
                newest_first=newest_first,
                page_size=page_size,
                user_id=self._user_id,
            )
        )


async def _first(listing: AsyncIterator[_records.Record]) -> AsyncIterator[_records.Record]:
    async for record in listing:
        yield record
        return
