"""Many records at once: listing them, saving them, giving them new vectors."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Mapping,
)
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, cast

from loombridge import _records, _rpc, _stream, _values
from loombridge.v1 import memory_pb2 as pb

RECORDS_PER_PAGE = 500
"""Records that a listing asks for at a time; the server ends a page of long ones earlier."""

RECORDS_PER_BATCH = 1000
"""Records that one BatchSave takes."""

BYTES_PER_BATCH = (4 << 20) - (64 << 10)
"""Bytes of one BatchSave: the server's default limit of a message, less what the envelope and the
next record's own length may add."""

REEMBED_TIMEOUT = 300.0
"""Seconds that a server may work on new vectors without progress: it reports after some hundred
records, which a model on a small machine takes minutes for."""

Savable: TypeAlias = _records.RecordDraft | Mapping[str, Any] | str
"""What `save_many` takes: a draft, a mapping of its fields, or its text alone."""


def page_size(value: object) -> int:
    """Return how many records a listing asks for at a time."""
    if value is None:
        return RECORDS_PER_PAGE
    size = _values.integer("page_size", value)
    if not 1 <= size <= RECORDS_PER_PAGE:
        raise ValueError(f"page_size must be from 1 to {RECORDS_PER_PAGE}, not {size}")
    return size


class RecordListing:
    """Records of a memory: `async for record in ctx.memory.list()`.

    They are asked for page by page. Each loop begins anew.
    """

    def __init__(
        self,
        transport: _rpc.Transport,
        request: pb.ListRecordsRequest,
        timeout: _values.Seconds | None,
    ) -> None:
        """Made by `ctx.memory.list`."""
        self._transport = transport
        self._request = request
        self._timeout = timeout

    def __aiter__(self) -> AsyncIterator[_records.Record]:
        """Yield the records in the order asked for."""
        return _stream.Pages(self._pages(), _records.record)

    def __await__(self) -> Generator[Any, None, list[_records.Record]]:
        """Return all of them, as a list."""
        return _stream.Pages(self._pages(), _records.record).__await__()

    def _pages(self) -> AsyncGenerator[Iterable[pb.Record], None]:
        return self._transport.pages(
            _rpc.LIST_RECORDS, self._request, lambda answer: answer.records, self._timeout
        )


class BatchSaving:
    """Records on their way into memory, made by `ctx.memory.save_many`.

    `await` it for all answers, or take them one by one as the batches are stored:

        async for saved in ctx.memory.save_many(records): ...

    Nothing is sent before that. It works once.
    """

    def __init__(
        self,
        transport: _rpc.Transport,
        envelope: pb.BatchSaveRequest,
        records: Iterable[Savable] | AsyncIterable[Savable],
        session_id: str,
        timeout: _values.Seconds | None,
    ) -> None:
        """Made by `ctx.memory.save_many`."""
        # A text would be saved letter by letter, and a mapping by its keys.
        if isinstance(cast("object", records), str | Mapping | _records.RecordDraft):
            raise TypeError("records must be a list of them; ctx.memory_save saves one")
        self._transport = transport
        self._envelope = envelope
        self._records = records
        self._session_id = session_id
        self._timeout = timeout
        self._begun = False

    def __await__(self) -> Generator[Any, None, tuple[_records.Saved, ...]]:
        """Save all of them; return the answers in the order of the records."""
        return self._all().__await__()

    async def _all(self) -> tuple[_records.Saved, ...]:
        return tuple([saved async for saved in self])

    def __aiter__(self) -> AsyncIterator[_records.Saved]:
        """Save batch after batch; yield the answers in the order of the records.

        A wait for the next answer that is cancelled stops no batch: the next wait gets
        its answers. Leaving the loop leaves the rest unsaved.
        """
        if self._begun:
            raise RuntimeError("these records were saved; call save_many again")
        self._begun = True
        return _stream.Pages(self._answers(), _records.saved)

    async def _answers(self) -> AsyncGenerator[Iterable[pb.MemorySaveResponse], None]:
        number = 0
        async for batch in self._batches():
            if self._envelope.request_id:
                batch.request_id = f"{self._envelope.request_id}/{number}"
            answer = await self._transport.call(
                _rpc.BATCH_SAVE, batch, timeout=self._timeout, repeatable=bool(batch.request_id)
            )
            number += 1
            yield answer.saved

    async def _batches(self) -> AsyncIterator[pb.BatchSaveRequest]:
        """Yield requests that are as large as they may be.

        Where one ends hangs on the records alone, so that a repeated call cuts them
        alike and its request_ids mean the same.
        """
        batch, size = self._empty(), 0
        async for draft in self._drafts():
            more = draft.ByteSize()
            if batch.records and (
                len(batch.records) == RECORDS_PER_BATCH or size + more > BYTES_PER_BATCH
            ):
                yield batch
                batch, size = self._empty(), 0
            batch.records.append(draft)
            size += more + 8  # Its tag and length.
        if batch.records:
            yield batch

    def _empty(self) -> pb.BatchSaveRequest:
        batch = pb.BatchSaveRequest()
        batch.CopyFrom(self._envelope)
        return batch

    async def _drafts(self) -> AsyncIterator[pb.MemorySaveRequest]:
        count = 0
        async for each in _each(self._records):
            draft = pb.MemorySaveRequest()
            _records.fill(draft, _records.draft_of(f"records[{count}]", each), self._session_id)
            yield draft
            count += 1


async def _each(items: Iterable[Savable] | AsyncIterable[Savable]) -> AsyncIterator[Savable]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """How far a memory's new vectors are."""

    embedding_space: str
    """The space that they are in."""
    done: int
    """Records that have a vector in it; equal to `total` at the end."""
    total: int
    """How many records there are."""


class Reembedding(_stream.Stream[pb.ReembedRequest, pb.ReembedResponse]):
    """The making of new vectors: `async for progress in ctx.memory.reembed()`.

    Leaving an `async with` block, `close`, or dropping it stops the work; what is done
    stays done, and another call goes on from there.
    """

    def __init__(
        self, transport: _rpc.Transport, request: pb.ReembedRequest, timeout: float
    ) -> None:
        """Made by `ctx.memory.reembed`."""
        super().__init__(
            _stream.Receiver(
                transport,
                _rpc.REEMBED,
                request,
                timeout,
                _stream.Resume.NEVER,
                "no vectors were made",
            )
        )

    def __aiter__(self) -> Self:
        """Return it itself."""
        return self

    async def __anext__(self) -> ReembedProgress:
        """Wait until some more records have their vectors.

        Raises:
            NoEmbedderError: the server makes no vectors.
            EmbedderUnavailableError: the server's embedder does not answer.
            ServerUnreachableError: the connection broke; call again to go on.
            DeadlineExceededError: nothing came within the timeout.
        """
        message = await self._receiver.next()
        return ReembedProgress(
            embedding_space=message.embedding_space, done=message.done, total=message.total
        )

    async def __aenter__(self) -> Self:
        """Return it itself; the work begins with the first answer."""
        return self
