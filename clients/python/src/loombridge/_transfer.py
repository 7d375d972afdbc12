"""Records on their way: watched as they change, exported and imported as lines."""

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import Self

from loombridge import _brief, _lines, _records, _rpc, _stream, _values
from loombridge.v1 import memory_pb2 as pb
from loombridge.v1 import transfer_pb2


@dataclass(frozen=True, slots=True, repr=False)
class RecordChange(_brief.Brief):
    """A change of a memory, or the word that there is none at the moment."""

    record: _records.Record | None
    """What was saved or changed, as it is now; else None."""
    deleted_id: str
    """The id of a record that was deleted or has expired; else empty. It may be one that
    was never seen."""
    position: str
    """Stands for this change and all before: `after=` goes on from here."""
    caught_up: bool
    """All changes made so far were seen."""


class RecordWatch(_stream.Stream[pb.WatchRecordsRequest, pb.WatchRecordsResponse]):
    """Changes of a memory: `async for change in ctx.memory.watch()`.

    When the connection breaks it goes on behind the last change that was handed out.
    `close`, leaving `async with`, or dropping it ends it.
    """

    def __init__(self, transport: _rpc.Transport, request: pb.WatchRecordsRequest) -> None:
        """Made by `ctx.memory.watch`."""
        super().__init__(
            _stream.Receiver(
                transport,
                _rpc.WATCH_RECORDS,
                request,
                None,
                _stream.Resume.ALWAYS,
                "no change came",
            )
        )

    def __aiter__(self) -> Self:
        """Return it itself."""
        return self

    async def __anext__(self) -> RecordChange:
        """Wait for the next change.

        Raises:
            PositionGoneError: what changed behind `after` is not known any more; drop what
                is known, and watch again without.
            ServerUnreachableError: no server answers any more; the next wait tries again.
        """
        message = await self._receiver.next()
        self._receiver.request.after = message.position
        saved = message.WhichOneof("change") == "saved"
        return RecordChange(
            record=_records.record(message.saved) if saved else None,
            deleted_id=message.deleted_id,
            position=message.position,
            caught_up=message.caught_up,
        )

    async def __aenter__(self) -> Self:
        """Return it itself; the call begins with the first wait."""
        return self


class RecordExport(_lines.Export):
    """Lines of an export: `async for line in ctx.memory.export_lines()`.

    Each loop begins anew.
    """

    _nothing = "no records were exported"


@dataclass(frozen=True, slots=True)
class ImportedRecords:
    """What became of the records of an import."""

    saved: int
    """How many are new."""
    unchanged: int
    """How many were there already, as they came."""
    skipped: int
    """How many were there as something else, and stayed so."""
    expired: int
    """How many had expired, and were left out."""
    archived: int = 0
    """How many records went into the archive, because the memory had more than its limit."""
    deleted: int = 0
    """How many the archive's own limit deleted for good."""
    import_id: str = ""
    """The id of the import, which the new records keep. It is undone by
    `ctx.memory.delete_matching` with the filter `import_id = "…" AND import_changes = 0` and
    tiers 2 to 4: records changed since stay."""


class Transfers:
    """The part of `ctx.memory` that records leave by and come in by, many at once."""

    _transport: _rpc.Transport
    _agent_id: str

    def watch(
        self,
        *,
        after: str | None = None,
        include_embeddings: bool = False,
        user_id: str | None = None,
    ) -> RecordWatch:
        """Return the changes of the memory, for `async for`, until the loop ends.

        First comes every record, or what changed behind `after`; then each further change
        when it is made. Whoever applies them in order, and keeps the last `position`, has a
        copy of the memory that goes on where it stopped. A record that changed several times
        meanwhile comes once. The tiers, and records replaced, archived or held are all there.

        Args:
            after: the `position` of the last change that was applied; default: none.
            include_embeddings: return the vectors too. One that the server's embedder adds
                later is no change.
            user_id: watch that person's memory instead of the agent's.

        Raises:
            PositionGoneError: what changed behind `after` is not known any more; once the
                loop begins.
        """
        request = pb.WatchRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            after=_values.optional_text("after", after),
            include_embeddings=include_embeddings,
        )
        return RecordWatch(self._transport, request)

    def export_lines(
        self, *, user_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> RecordExport:
        """Return the memory as lines of JSON, for `async for`.

        They hold everything that was stored: vectors, versions, times, relations. With a
        newline behind each they are a file of JSON Lines, which `import_lines` and
        `loom-bridge-server records import` take.

        Args:
            user_id: export that person's memory instead of the agent's.
            timeout: seconds without a further line; default: the client's.
        """
        request = transfer_pb2.ExportRequest(
            agent_id=self._agent_id, user_id=_values.optional_text("user_id", user_id)
        )
        return RecordExport(self._transport, request, timeout)

    async def import_lines(
        self,
        lines: Iterable[str] | AsyncIterable[str],
        *,
        skip_existing: bool = False,
        import_id: str | None = None,
        dry_run: bool = False,
        user_id: str | None = None,
        timeout: _values.Seconds = _lines.IMPORT_TIMEOUT,
    ) -> ImportedRecords:
        """Take lines of an export into the memory, behind the records that are there.

        An import that was interrupted can be made again: what is there already as it came
        is passed over.

        Args:
            lines: the lines of `export_lines`, such as an open file.
            skip_existing: leave a record as it is whose id comes with another content, in
                place of raising.
            import_id: the id that the new records keep; with the same one an import that was
                interrupted goes on as the same. Default: the server's.
            dry_run: check and count as the import would, and store nothing.
            user_id: import into that person's memory instead of the agent's.
            timeout: seconds for all of it.

        Raises:
            RecordExistsError: an id is there with another content, or another record has
                the key.
            InvalidRequestError: a line is not a line of an export; the error says which. Lines
                before it may be stored.
        """
        first = transfer_pb2.ImportRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            skip_existing=skip_existing,
            import_id=_values.optional_text("import_id", import_id),
            dry_run=dry_run,
        )
        answer = await _lines.send(self._transport, first, lines, timeout)
        return ImportedRecords(
            saved=answer.saved,
            unchanged=answer.unchanged,
            skipped=answer.skipped,
            expired=answer.expired,
            archived=answer.archived_count,
            deleted=answer.deleted_count,
            import_id=answer.import_id,
        )
