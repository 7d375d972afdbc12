"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loombridge import (
    _agent,
    _backups,
    _blobs,
    _bulk,
    _children,
    _erasure,
    _events,
    _extract,
    _records,
    _sessions,
    _steps,
    _transfer,
    _values,
    _workspace,
)
from loombridge.sync import _twin


@_twin.documented(_children.Child)
class Child(_twin.Twin):
    """A child that was spawned; made by `ctx.spawn`."""

    @property
    def spawned(self) -> _children.ChildAgent:
        """The child as it was when it was spawned."""
        return self._get("spawned")

    @property
    def id(self) -> str:
        """Its id."""
        return self._get("id")

    @property
    def session_id(self) -> str:
        """Its session."""
        return self._get("session_id")

    @property
    def goal(self) -> str:
        """What it shall do."""
        return self._get("goal")

    def state(self, *, timeout: _values.Seconds | None = None) -> _children.ChildAgent:
        """Return the child as it is now."""
        return self._await("state", timeout=timeout)

    def result(self, *, wait: _values.Seconds | None = None) -> str:
        """Wait until the child has returned; return its result."""
        return self._await("result", wait=wait)

    def stop(
        self, error: str = "stopped by its parent", *, timeout: _values.Seconds | None = None
    ) -> None:
        """End the child as failed, unless it has returned."""
        return self._await("stop", error, timeout=timeout)


@_twin.documented(_backups.BackingUp)
class BackingUp(_twin.Streamed[_backups.BackupProgress], _twin.Entered):
    """The making of a backup: `await` it, or `for progress in ctx.backups.create()`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")


@_twin.documented(_bulk.BatchSaving)
class BatchSaving(_twin.Listed[_records.Saved]):
    """Records on their way into memory, made by `ctx.memory.save_many`."""


@_twin.documented(_blobs.BlobListing)
class BlobListing(_twin.Listed[_steps.BlobInfo]):
    """Blobs of an agent: `for blob in ctx.context.list_blobs()`."""

    @property
    def usage(self) -> _blobs.BlobUsage | None:
        """What all blobs of the agent take; None until the first page has come."""
        return self._get("usage")


@_twin.documented(_blobs.BlobSearch)
class BlobSearch(_twin.Streamed[_blobs.BlobFound], _twin.Entered):
    """What a search finds, as it is found: `for found in search`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")

    @property
    def next_page_token(self) -> str:
        """Continues the search of a named blob, as `page_token`. It comes with the last
        lines, and is empty when the blob was searched to its end. A search that took as
        long as the server allows stops there, perhaps with no line at all.
        """
        return self._get("next_page_token")

    @property
    def incomplete(self) -> bool:
        """The archive was too large to be read to its end, or the search took as long as
        the server allows; known at the end of the loop. Narrow the search by category
        and tags.
        """
        return self._get("incomplete")


@_twin.documented(_steps.BlobStream)
class BlobStream(_twin.Streamed[bytes], _twin.Entered):
    """The bytes of a blob, piece by piece: `for piece in stream`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")

    @property
    def info(self) -> _steps.BlobInfo | None:
        """What the blob is; None until the first piece was asked for."""
        return self._get("info")


@_twin.documented(_erasure.Erasing)
class Erasing(_twin.Streamed[_erasure.ErasureProgress], _twin.Entered):
    """The erasing of a subject: `await` it, or `for progress in ctx.admin.erase(…)`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")


@_twin.documented(_extract.Extracting)
class Extracting(_twin.Listed[_extract.ExtractedBatch]):
    """Records on their way through a model, made by `ctx.memory.extract`."""


@_twin.documented(_workspace.Job)
class Job(_twin.Entered):
    """A program in the background, made by `ctx.workspace.start`."""

    @property
    def id(self) -> str:
        """The job's id, by which the tools `job:read` and `job:stop` know it too."""
        return self._get("id")

    def output(self, *, offset: int = 0) -> Iterator[str]:
        """Yield what it prints, stdout and stderr together, until it has ended."""
        return _twin.Iterated(self._home, self._run("output", offset=offset))

    def status(self) -> _workspace.JobStatus:
        """Return how far it is."""
        return self._await("status")

    def wait(self) -> _workspace.JobStatus:
        """Wait until it has ended."""
        return self._await("wait")

    def stop(self) -> _workspace.JobStatus:
        """Stop it with all that it started; harmless when it has ended."""
        return self._await("stop")


@_twin.documented(_agent.Listener)
class Listener(_twin.Streamed[_events.Event], _twin.Entered):
    """The events of some topics, for a handler or a loop; made by `ctx.subscribe`."""

    @property
    def positions(self) -> Mapping[str, int | None]:
        """By exact topic, the sequence of the last event that came."""
        return self._get("positions")

    @property
    def dropped(self) -> int:
        """How many events were dropped because this agent was behind, as far as known."""
        return self._get("dropped")

    def __call__(self, function: _agent.HandlerT) -> _agent.HandlerT:
        """Give each event to a function; a plain one runs in a separate thread."""
        return self._await("__call__", function)

    def close(self) -> None:
        """End the subscription; twice is fine. A loop that waits ends."""
        return self._await("close")


@_twin.documented(_transfer.RecordExport)
class RecordExport(_twin.Listed[str]):
    """Lines of an export: `for line in ctx.memory.export_lines()`."""


@_twin.documented(_bulk.RecordListing)
class RecordListing(_twin.Listed[_records.Record]):
    """Records of a memory: `for record in ctx.memory.list()`."""


@_twin.documented(_transfer.RecordWatch)
class RecordWatch(_twin.Streamed[_transfer.RecordChange], _twin.Entered):
    """Changes of a memory: `for change in ctx.memory.watch()`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")


@_twin.documented(_bulk.Reembedding)
class Reembedding(_twin.Streamed[_bulk.ReembedProgress], _twin.Entered):
    """The making of new vectors: `for progress in ctx.memory.reembed()`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")


@_twin.documented(_sessions.SessionExport)
class SessionExport(_twin.Listed[str]):
    """Lines of an export: `for line in ctx.sessions.export_lines()`."""


@_twin.documented(_children.Spawning)
class Spawning(_twin.Made, Child):
    """A child that is being spawned: `await` it, or write `with` to have it stopped."""


@_twin.documented(_events.Subscription)
class Subscription(_twin.Streamed[_events.Event], _twin.Entered):
    """The events of some topics, in order per topic: `for event in subscription`."""

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        return self._await("close")

    @property
    def positions(self) -> Mapping[str, int | None]:
        """By topic, the sequence of the last event handed out. Pass it to
        `subscribe` to go on from there; None: not known yet, or a pattern.
        """
        return self._get("positions")

    @property
    def dropped_volatile(self) -> int:
        """How many volatile events the server dropped because the reader was behind."""
        return self._get("dropped_volatile")
