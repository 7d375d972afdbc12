"""Copies the checkpoints of another checkpointer of LangGraph, such as SQLite's or PostgreSQL's."""

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, CheckpointTuple

from loombridge.langgraph._saver import LoomBridgeSaver


@dataclass(frozen=True)
class Copied:
    """What a copy has done, or a dry run would do."""

    copied: int = 0
    """Checkpoints that were copied, with the writes of their tasks."""
    known: int = 0
    """Checkpoints that were there already, and were left as they are."""
    threads: int = 0
    """Threads that the checkpoints are of."""


def copy_checkpoints(
    source: BaseCheckpointSaver[Any],
    target: LoomBridgeSaver,
    *,
    dry_run: bool = False,
) -> Iterator[Copied]:
    """Copy all checkpoints; yield after each thread what was done so far.

    A thread's checkpoints go in the order in which they were made. What is there already stays,
    so a copy that was cut short is begun again. The source must not change meanwhile.

    Args:
        source: where the checkpoints are, such as a `SqliteSaver` or `PostgresSaver`.
        target: where they go.
        dry_run: only count.
    """
    copied = known = 0
    ids = _by_thread(each.config for each in source.list(None))
    for threads, configs in enumerate(ids, 1):
        for config in configs:
            if target.get_tuple(config) is not None:
                known += 1
                continue
            copied += 1
            found = None if dry_run else source.get_tuple(config)
            if found is not None:
                # The writes go first: a checkpoint that is there has them.
                for task, writes in _writes(found).items():
                    target.put_writes(config, writes, task)
                target.put(_parent(found), found.checkpoint, found.metadata, _versions(found))
        yield Copied(copied, known, threads)


async def acopy_checkpoints(
    source: BaseCheckpointSaver[Any],
    target: LoomBridgeSaver,
    *,
    dry_run: bool = False,
) -> AsyncIterator[Copied]:
    """Copy all checkpoints, as `copy_checkpoints` does, from an asynchronous checkpointer."""
    copied = known = 0
    ids = _by_thread([each.config async for each in source.alist(None)])
    for threads, configs in enumerate(ids, 1):
        for config in configs:
            if await target.aget_tuple(config) is not None:
                known += 1
                continue
            copied += 1
            found = None if dry_run else await source.aget_tuple(config)
            if found is not None:
                for task, writes in _writes(found).items():
                    await target.aput_writes(config, writes, task)
                await target.aput(
                    _parent(found), found.checkpoint, found.metadata, _versions(found)
                )
        yield Copied(copied, known, threads)


def _by_thread(configs: Iterable[RunnableConfig]) -> list[list[RunnableConfig]]:
    """Return which checkpoints there are, for each thread the oldest first."""
    threads: dict[str, list[RunnableConfig]] = {}
    for config in configs:
        threads.setdefault(config.get("configurable", {})["thread_id"], []).append(config)
    # Ids of checkpoints grow with time.
    return [
        sorted(each, key=lambda c: c.get("configurable", {})["checkpoint_id"])
        for each in threads.values()
    ]


def _parent(found: CheckpointTuple) -> RunnableConfig:
    """Return what a checkpoint is put with: its place, and the id of the one that it follows."""
    said = dict(found.config.get("configurable", {}))
    before = (found.parent_config or {}).get("configurable", {})
    return {"configurable": {**said, "checkpoint_id": before.get("checkpoint_id")}}


def _versions(found: CheckpointTuple) -> ChannelVersions:
    """Return the channels whose values a checkpoint brings: all, as its parent may be gone."""
    return found.checkpoint["channel_versions"]


def _writes(found: CheckpointTuple) -> dict[str, list[tuple[str, Any]]]:
    """Return by task what was written."""
    writes: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in found.pending_writes or []:
        writes.setdefault(task, []).append((channel, value))
    return writes
