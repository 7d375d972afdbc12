"""The checkpointer: LangGraph's checkpoints, serialized here and stored on the server."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Unpack, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from loombridge import _client, _loops, _records, _values
from loombridge.langgraph import _checkpoints, _threads

AGENT = "langgraph"
"""The default owner of the memory."""

_Write = tuple[str, str, _checkpoints.Typed]
"""Task, channel and value."""


class LoomBridgeSaver(_loops.Adapter, BaseCheckpointSaver[int]):
    """A LangGraph checkpointer whose checkpoints are records of long-term memory.

    Any thread and any event loop may use it; `close` it, or use it in a `with` or `async
    with` block. A checkpoint is one commit (above 4 MiB its parts come before it) and holds
    what its step has changed: a value that no step changes is stored once, and of a long one
    that changes a little only the change. What several keep in one thread is kept when one of
    them is deleted or pruned, and checkpoints stay that a DeltaChannel of others is replayed
    from. Values of 64 MiB in sum that were used last stay in this process.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        serde: SerializerProtocol | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open; then
                synchronous calls work from other threads than that of its event loop only.
            agent_id: whose memory the checkpoints are in; default `langgraph`, or the
                client's.
            user_id: keep them in that person's memory instead, which all agents share.
            serde: makes bytes of values; default: LangGraph's own.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        super().__init__(serde=serde)
        self._user_id = user_id
        self._memo = _threads.Memo()
        self._open(server, agent_id, AGENT, connection)

    def _threads(self, ctx: _client.Client) -> _threads.Threads:
        return _threads.Threads(ctx, self._user_id, self._memo)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the newest of its thread if the config names none."""
        return self._loop.call(lambda ctx: self._get(ctx, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the newest of its thread if the config names none."""
        return await self._loop.acall(lambda ctx: self._get(ctx, config))

    async def _get(self, ctx: _client.Client, config: RunnableConfig) -> CheckpointTuple | None:
        place = _place(config)
        checkpoint_id = get_checkpoint_id(config) or await self._threads(ctx).newest(place)
        return await self._tuple(ctx, place, checkpoint_id) if checkpoint_id else None

    async def _tuple(
        self, ctx: _client.Client, place: _checkpoints.Place, checkpoint_id: str
    ) -> CheckpointTuple | None:
        found = await self._threads(ctx).at(place, checkpoint_id)
        if found is None:
            return None
        body, values, batches = found
        return CheckpointTuple(
            config=_config(place, checkpoint_id),
            checkpoint={
                **self._checkpoint(body),
                "channel_values": {
                    name: self.serde.loads_typed(typed) for name, typed in values.items()
                },
            },
            metadata=self._metadata(body),
            parent_config=_config(place, body.parent) if body.parent else None,
            pending_writes=[
                (task, channel, self.serde.loads_typed(typed))
                for task, channel, typed in _ordered(batches)
            ],
        )

    def _checkpoint(self, body: _checkpoints.Body) -> Checkpoint:
        return cast("Checkpoint", self.serde.loads_typed(body.typed(body.checkpoint)))

    def _metadata(self, body: _checkpoints.Body) -> CheckpointMetadata:
        return cast("CheckpointMetadata", self.serde.loads_typed(body.typed(body.metadata)))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's own word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest first."""
        for place, each in self._loop.call(
            lambda ctx: self._listed(ctx, config, filter, before, limit)
        ):
            found = self._loop.call(lambda ctx: self._tuple(ctx, place, each))  # noqa: B023  called here
            if found is not None:
                yield found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's own word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the newest first."""
        for place, each in await self._loop.acall(
            lambda ctx: self._listed(ctx, config, filter, before, limit)
        ):
            found = await self._loop.acall(lambda ctx: self._tuple(ctx, place, each))  # noqa: B023  awaited here
            if found is not None:
                yield found

    async def _listed(
        self,
        ctx: _client.Client,
        config: RunnableConfig | None,
        wanted: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> "list[tuple[_checkpoints.Place, str]]":
        threads = self._threads(ctx)
        said: Mapping[str, Any] = _said(config) if config else {}
        records = await threads.records(said.get("thread_id"), said.get("checkpoint_ns"))
        only = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        named = [
            (_checkpoints.place_of(record), _checkpoints.about(record)["id"]) for record in records
        ]
        found: list[tuple[_checkpoints.Place, str]] = []
        for place, each in sorted(named, key=lambda it: it[1], reverse=True):
            if (only and each != only) or (end and each >= end):
                continue
            if wanted:
                body = await threads.body(place, each)
                metadata: Mapping[str, Any] = self._metadata(body) if body else {}  # pyright: ignore
                if any(metadata.get(name) != value for name, value in wanted.items()):
                    continue
            found.append((place, each))
        return list(islice(found, None if limit is None else max(limit, 0)))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        return self._loop.call(self._putting(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        return await self._loop.acall(self._putting(config, checkpoint, metadata, new_versions))

    def _putting(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> _loops.Work[RunnableConfig]:
        # Bytes are made now: the graph goes on, and changes what it was given.
        place, parent = _place(config), get_checkpoint_id(config)
        values = checkpoint["channel_values"]
        own = {name: each for name, each in checkpoint.items() if name != "channel_values"}

        def dumped(name: str) -> _checkpoints.Typed:
            return self.serde.dumps_typed(values[name])

        typed = self.serde.dumps_typed(own)
        about = self.serde.dumps_typed(get_checkpoint_metadata(config, metadata))
        versions = dict(checkpoint["channel_versions"])
        kept = versions.keys() - new_versions.keys()
        changed = {name: dumped(name) for name in values if name not in kept}

        async def put(ctx: _client.Client) -> RunnableConfig:
            threads, where = self._threads(ctx), dict[str, str]()
            before = await threads.body(place, parent) if parent else None
            if parent and parent != checkpoint["id"] and before:
                # A copy of a checkpoint names no new versions, and has others than its parent.
                known = self._checkpoint(before)["channel_versions"]
                for name, owner in before.owners(parent).items():
                    if name in kept and known.get(name) == versions[name]:
                        where[name] = owner
            more = {name: dumped(name) for name in values if name in kept and name not in where}
            await threads.put(
                place, checkpoint["id"], parent, typed, about, {**changed, **more}, where
            )
            return _config(place, checkpoint["id"])

        return put

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task has written, which belongs to a checkpoint."""
        self._loop.call(self._writing(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task has written, which belongs to a checkpoint."""
        await self._loop.acall(self._writing(config, writes, task_id, task_path))

    def _writing(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> _loops.Work[None]:
        place, checkpoint_id = _place(config), get_checkpoint_id(config) or ""
        typed = [(channel, self.serde.dumps_typed(value)) for channel, value in writes]
        head = {
            "task": task_id,
            "path": task_path,
            "writes": [(channel, kind) for channel, (kind, _) in typed],
        }
        chunks = [data for _, (_, data) in typed]

        async def write(ctx: _client.Client) -> None:
            if typed:
                await self._threads(ctx).put_writes(place, checkpoint_id, head, chunks)

        return write

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread."""
        self._loop.call(lambda ctx: self._threads(ctx).delete_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all of a thread."""
        await self._loop.acall(lambda ctx: self._threads(ctx).delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs have made, and their writes."""
        self._loop.call(lambda ctx: self._delete_for_runs(ctx, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs have made, and their writes."""
        await self._loop.acall(lambda ctx: self._delete_for_runs(ctx, run_ids))

    async def _delete_for_runs(self, ctx: _client.Client, run_ids: Sequence[str]) -> None:
        threads, run_ids = self._threads(ctx), _values.texts("run_ids", run_ids)
        gone: dict[str, list[_records.Record]] = {}
        for record in await threads.records(None):
            place = _checkpoints.place_of(record)
            body = await threads.body(place, _checkpoints.about(record)["id"])
            if body is not None and self._metadata(body).get("run_id") in run_ids:
                gone.setdefault(place.thread, []).append(record)
        for thread, records in gone.items():
            await self._delete(threads, thread, records)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all of a thread into another."""
        self._loop.call(lambda ctx: self._threads(ctx).copy(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all of a thread into another."""
        await self._loop.acall(
            lambda ctx: self._threads(ctx).copy(source_thread_id, target_thread_id)
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the newest ones, or those, too (`delete`).

        Those of a sub-graph's call go with the checkpoint that it was called from.
        """
        self._loop.call(lambda ctx: self._prune(ctx, thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the newest ones. See `prune`."""
        await self._loop.acall(lambda ctx: self._prune(ctx, thread_ids, strategy))

    async def _prune(self, ctx: _client.Client, thread_ids: Sequence[str], strategy: str) -> None:
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy {strategy!r} is neither 'keep_latest' nor 'delete'")
        threads = self._threads(ctx)
        for thread in _values.texts("thread_ids", thread_ids):
            if strategy == "delete":
                await threads.delete_thread(thread)
                continue
            records = await threads.records(thread)
            newest = {
                _checkpoints.about(record)["ns"]: record
                for record in sorted(records, key=lambda record: _checkpoints.about(record)["id"])
            }
            gone = [r for r in records if newest[_checkpoints.about(r)["ns"]] is not r]
            names = {record.key for record in gone}
            for ns, record in newest.items():
                if ":" in ns.rpartition("|")[2] and await self._called(threads, record) & names:
                    gone.append(record)
            await self._delete(threads, thread, gone)

    async def _called(self, threads: "_threads.Threads", record: _records.Record) -> set[str]:
        """Return the keys of the checkpoints from which a sub-graph was called."""
        place = _checkpoints.place_of(record)
        body = await threads.body(place, _checkpoints.about(record)["id"])
        parents = self._metadata(body).get("parents", {}) if body else {}
        return {_checkpoints.Place(place.thread, ns).key(of) for ns, of in parents.items()}

    async def _delete(
        self, threads: "_threads.Threads", thread: str, gone: Sequence[_records.Record]
    ) -> None:
        """Delete checkpoints, but those that the others replay a DeltaChannel from."""
        names = {record.key for record in gone}
        replayed: set[str] = set()
        records = await threads.records(thread)
        for record in records:
            if record.key in names:
                continue
            place = _checkpoints.place_of(record)
            body = await threads.body(place, _checkpoints.about(record)["id"])
            about: Mapping[str, Any] = self._metadata(body) if body else {}  # pyright: ignore
            left = set(about.get("counters_since_delta_snapshot", ()))
            for _ in records:
                if not left or body is None or not body.parent:
                    break
                replayed.add(place.key(body.parent))
                body = await threads.body(place, body.parent)
                left -= set(body.owners("")) if body else set()
        await threads.delete(thread, [each for each in gone if each.key not in replayed])


def _said(config: RunnableConfig) -> Mapping[str, Any]:
    return config.get("configurable", {})


def _place(config: RunnableConfig) -> _checkpoints.Place:
    said = _said(config)
    return _checkpoints.Place(str(said["thread_id"]), said.get("checkpoint_ns", ""))


def _config(place: _checkpoints.Place, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": place.thread,
            "checkpoint_ns": place.ns,
            "checkpoint_id": checkpoint_id,
        }
    }


def _ordered(batches: "Sequence[tuple[Any, Sequence[bytes]]]") -> "list[_Write]":
    """Return writes in the order in which a run applies them.

    Of one task's writes to a place the first counts, of what tells of errors or interrupts
    the last.
    """
    found: dict[tuple[str, int], tuple[str, _Write]] = {}
    for head, chunks in batches:
        for number, ((channel, kind), data) in enumerate(zip(head["writes"], chunks, strict=True)):
            index = WRITES_IDX_MAP.get(channel, number)
            write = (head["task"], channel, (kind, data))
            name = (head["task"], index)
            if index < 0 or name not in found:
                found[name] = (head["path"], write)
    ordered = sorted(found.items(), key=lambda it: (it[1][0], *it[0]))
    return [write for _, (_, write) in ordered]
