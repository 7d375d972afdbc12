"""Looking after an agent's blobs: list, keep, archive, search, collect."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, cast

from loombridge import _brief, _rpc, _session, _spelling, _steps, _stream, _values
from loombridge.v1 import context_pb2 as pb

BlobTier: TypeAlias = Literal["working", "short_term", "long_term"]
"""How much a blob is worth keeping: as it was made, at least a week, for ever."""

BLOBS_PER_PAGE = 100
"""Blobs that a listing asks for at a time."""


@dataclass(frozen=True, slots=True)
class BlobUsage:
    """What all blobs of an agent take. Equal content counts once."""

    count: int
    """Number of blobs."""
    bytes: int
    """What they hold together, before compression."""
    max_bytes: int
    """The agent's quota; 0 means none."""


@dataclass(frozen=True, slots=True, repr=False)
class BlobMatch(_brief.Brief):
    """A line that matches."""

    line: int
    """The line's number, from 1."""
    offset: int
    """Where in the blob the first match of the line begins, in bytes."""
    length: int
    """How many bytes match; of words, the length of the line as shown."""
    text: str
    """The line without its line feed, or at most 512 bytes of it around the match."""


@dataclass(frozen=True, slots=True, repr=False)
class BlobFound(_brief.Brief):
    """A blob and lines of it that match, in order."""

    blob: _steps.BlobInfo
    """What the lines lie in."""
    matches: tuple[BlobMatch, ...]
    """The lines; empty where only the blob itself was looked for or found."""
    more: bool
    """A blob of the archive has further lines."""


@dataclass(frozen=True, slots=True)
class KeptBlobs:
    """Numbers of paths that stay, each counted by the first reason that holds."""

    archived: int = 0
    """Lie in the archive."""
    long_term: int = 0
    """Were promoted for ever."""
    important: int = 0
    """Were marked so."""
    not_expired: int = 0
    """Have time left."""
    in_use: int = 0
    """Are being read by a tool."""
    referenced: int = 0
    """Are named by a session that goes on, or by a memory record."""


@dataclass(frozen=True, slots=True)
class CollectedGarbage:
    """What a collection deleted, and what it did not; a dry run: what it would."""

    deleted_count: int
    """Number of paths deleted."""
    freed_bytes: int
    """What the deleted blobs held, before compression."""
    deleted_refs: tuple[str, ...]
    """The blobs that went, each with its last path. Reading one of them later raises
    `BlobCollectedError`."""
    kept: KeptBlobs
    """The paths that stay."""
    more: bool
    """There may be more to delete: call again."""


class BlobListing:
    """Blobs of an agent: `async for blob in ctx.context.list_blobs()`.

    They are asked for page by page. Each loop begins anew.
    """

    def __init__(
        self,
        transport: _rpc.Transport,
        request: pb.ListBlobsRequest,
        timeout: _values.Seconds | None,
    ) -> None:
        """Made by `ctx.context.list_blobs`."""
        self._transport = transport
        self._request = request
        self._timeout = timeout
        self.usage: BlobUsage | None = None
        """What all blobs of the agent take; None until the first page has come."""

    def __aiter__(self) -> AsyncIterator[_steps.BlobInfo]:
        """Yield the blobs in the order of the paths they were made with."""
        return _stream.Pages(self._pages(), _steps.blob_info)

    def __await__(self) -> Generator[Any, None, list[_steps.BlobInfo]]:
        """Return all of them, as a list."""
        return _stream.Pages(self._pages(), _steps.blob_info).__await__()

    def _pages(self) -> AsyncGenerator[Iterable[pb.BlobInfo], None]:
        def blobs(answer: pb.ListBlobsResponse) -> Iterable[pb.BlobInfo]:
            self.usage = _usage(answer.usage)
            return answer.blobs

        return self._transport.pages(_rpc.LIST_BLOBS, self._request, blobs, self._timeout)


class BlobSearch(_stream.Stream[pb.SearchBlobsRequest, pb.SearchBlobsResponse]):
    """What a search finds, as it is found: `async for found in search`.

    Leaving an `async with` block, `close`, or dropping the search ends the call. One
    reader at a time. A search that finds no server is made again until something of it
    has come; one that breaks later raises `ServerUnreachableError`.
    """

    def __init__(
        self, transport: _rpc.Transport, request: pb.SearchBlobsRequest, timeout: float
    ) -> None:
        """Made by `ctx.context.search_blobs`."""
        super().__init__(
            _stream.Receiver(
                transport,
                _rpc.SEARCH_BLOBS,
                request,
                timeout,
                _stream.Resume.AT_FIRST,
                "nothing of the search came",
            )
        )
        self._blob: _steps.BlobInfo | None = None
        self.next_page_token: str = ""
        """Continues the search of a named blob, as `page_token`. It comes with the last
        lines, and is empty when the blob was searched to its end. A search that took as
        long as the server allows stops there, perhaps with no line at all."""
        self.incomplete: bool = False
        """The archive was too large to be read to its end, or the search took as long as
        the server allows; known at the end of the loop. Narrow the search by category
        and tags."""

    def __aiter__(self) -> Self:
        """Return the search itself."""
        return self

    async def __anext__(self) -> BlobFound:
        """Return the next blob of the archive, or the next lines of a named blob.

        A named blob without a match comes once, without lines.

        Raises:
            BlobNotFoundError: no blob under that name.
            BlobCollectedError: it was deleted as garbage.
            BlobDamagedError: stored bytes do not match their hash.
            InvalidRequestError: a field breaks a rule, such as an invalid regexp.
            DeadlineExceededError: nothing came within the timeout.
        """
        while True:
            message = await self._receiver.next()
            self.next_page_token = message.next_page_token
            self.incomplete = message.incomplete
            if message.HasField("blob"):
                self._blob = _steps.blob_info(message.blob)
            if self._blob is not None:
                return _found(self._blob, message)

    async def __aenter__(self) -> Self:
        """Return the search itself; the call begins with the first answer."""
        return self


@_spelling.helpful
class Blobs(_session.InSession):
    """The blobs of an agent, of all its sessions; reached as `ctx.context`."""

    def list_blobs(
        self,
        *,
        session_id: str | None = None,
        step_id: str | None = None,
        kind: str | None = None,
        category: str | None = None,
        tier: BlobTier | None = None,
        archived: bool = False,
        include_closed: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> BlobListing:
        """Return the agent's blobs, for `async for`; without arguments the blobs of open sessions.

        Args:
            session_id: only blobs made in this session; default: in any.
            step_id: only blobs of this step.
            kind: only `text`, `json`, `log`, `image`, `audio` or `binary`.
            category: only blobs made by this sort of call, such as `read`.
            tier: only blobs of this tier.
            archived: only blobs in the archive.
            include_closed: also blobs of closed sessions (`SessionInfo.closed`), if neither
                session nor step is given; archived blobs and blobs in long-term memory are always
                included.
            timeout: seconds for each page; default: the client's.
        """
        request = pb.ListBlobsRequest(
            agent_id=self._agent_id,
            session_id=_values.optional_text("session_id", session_id),
            step_id=_values.optional_text("step_id", step_id),
            kind=_values.optional_text("kind", kind),
            category=_values.optional_text("category", category),
            archived=archived,
            include_closed=include_closed,
            page_size=BLOBS_PER_PAGE,
        )
        if tier is not None:
            request.tier = _tier(tier)
        return BlobListing(self._transport, request, timeout)

    async def promote_blob(
        self,
        name: str,
        *,
        tier: Literal["short_term", "long_term"],
        category: str | None = None,
        new_name: str | None = None,
        important: bool = False,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _steps.BlobInfo:
        """Keep a blob longer, or for ever, and give it a path under `persistent/`.

        Its earlier paths still lead to it. A blob is never lowered.

        Args:
            name: a path, a step id or a ref of at least 12 digits.
            tier: `short_term`, at least a week, or `long_term`, for ever.
            category: the folder of its new path; default: the blob's own category.
            new_name: the last part of its new path; default: that of the path it was
                made with. One that is taken gets `_2` before its ending.
            important: keep it although it has expired; default: as before.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            timeout: seconds; default: the client's.

        Raises:
            BlobNotFoundError: no blob under that name.
            BlobCollectedError: it was deleted as garbage.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = pb.UpdateBlobRequest(
            agent_id=self._agent_id,
            name=_values.text("name", name),
            tier=_tier(tier),
            category=_values.optional_text("category", category),
            new_name=_values.optional_text("new_name", new_name),
            important=important,
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(
            _rpc.UPDATE_BLOB, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _steps.blob_info(answer)

    async def archive_blob(
        self,
        name: str,
        *,
        category: str | None = None,
        tags: Iterable[str] = (),
        new_name: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _steps.BlobInfo:
        """Put a blob into the archive, where it stays, with a path under `archive/`.

        Its earlier paths still lead to it.

        Args:
            name: a path, a step id or a ref of at least 12 digits.
            category: `reports`, `datasets`, `config` or `general`; default: `general`.
            tags: words by which it is found, at most 32; they take the place of those
                it had.
            new_name: the last part of its new path; default: that of the path it was
                made with. One that is taken gets `_2` before its ending.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            timeout: seconds; default: the client's.

        Raises:
            BlobNotFoundError: no blob under that name.
            BlobCollectedError: it was deleted as garbage.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = pb.UpdateBlobRequest(
            archive=True,
            agent_id=self._agent_id,
            name=_values.text("name", name),
            category=_values.optional_text("category", category),
            tags=_values.texts("tags", tags),
            new_name=_values.optional_text("new_name", new_name),
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(
            _rpc.UPDATE_BLOB, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _steps.blob_info(answer)

    def search_blobs(
        self,
        name: str | None = None,
        *,
        words: str | None = None,
        literal: str | None = None,
        regexp: str | None = None,
        ignore_case: bool = False,
        category: str | None = None,
        tags: Iterable[str] = (),
        limit: int | None = None,
        max_matches: int | None = None,
        page_token: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> BlobSearch:
        """Return the matching lines of one blob, or blobs of the archive, for `async for`.

        Args:
            name: search this blob, by `literal` or `regexp`: any name that `read_blob`
                takes. Default: search the archive.
            words: find blobs of the archive that hold these words, in their text, name
                or tags, the best first.
            literal: find lines that hold this text.
            regexp: find lines that match, in the syntax of RE2. Of `words`, `literal`
                and `regexp` give at most one; in the archive none is fine.
            ignore_case: `literal` and `regexp` match either case.
            category: only blobs of this category of the archive.
            tags: only blobs of the archive that have all of these.
            limit: how many blobs of the archive at most, up to 100; default: 5.
            max_matches: how many lines of a blob at most, up to 1,000; default: 100 of
                one blob, 3 of each one of the archive.
            page_token: continues the search of one blob: its `next_page_token`.
            session_id: whose messages a name such as `message_017` means; default: the
                client's.
            timeout: seconds without a new answer; default: the client's.
        """
        if sum(pattern is not None for pattern in (words, literal, regexp)) > 1:
            raise ValueError("give at most one of words, literal and regexp")
        request = pb.SearchBlobsRequest(
            agent_id=self._agent_id,
            name=_values.optional_text("name", name),
            ignore_case=ignore_case,
            category=_values.optional_text("category", category),
            tags=_values.texts("tags", tags),
            page_token=_values.optional_text("page_token", page_token),
            session_id=self._session(session_id),
        )
        if words is not None:
            request.words = _values.text("words", words)
        if literal is not None:
            request.literal = _values.text("literal", literal)
        if regexp is not None:
            request.regexp = _values.text("regexp", regexp)
        if limit is not None:
            request.limit = _values.integer("limit", limit)
        if max_matches is not None:
            request.max_matches = _values.integer("max_matches", max_matches)
        seconds = self._transport.timeout
        if timeout is not None:
            seconds = _values.seconds("timeout", timeout)
        return BlobSearch(self._transport, request, seconds)

    async def collect_garbage(
        self,
        *,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> CollectedGarbage:
        """Delete the agent's blobs that have expired and that nothing refers to.

        The server does the same by itself every ten minutes. Without a `request_id` the
        call is safe to repeat, too, and returns what it did itself.

        Args:
            dry_run: return what would be deleted and delete nothing.
            request_id: makes a repeated call give the first answer again, and repeats it
                when no server answers.
            timeout: seconds; default: the client's.
        """
        request = pb.CollectGarbageRequest(
            agent_id=self._agent_id,
            dry_run=dry_run,
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(
            _rpc.COLLECT_GARBAGE, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _collected(answer)


def _tier(tier: str) -> pb.BlobTier:
    # pyright knows enums of the wire by their names only; the number is the same.
    number = _values.enum_number("tier", pb.BlobTier.DESCRIPTOR, "BLOB_TIER_", tier)
    return cast("pb.BlobTier", number)


def _usage(m: pb.BlobUsage) -> BlobUsage:
    return BlobUsage(count=m.count, bytes=m.bytes, max_bytes=m.max_bytes)


def _found(blob: _steps.BlobInfo, m: pb.SearchBlobsResponse) -> BlobFound:
    return BlobFound(blob=blob, matches=tuple(map(_match, m.matches)), more=m.more)


def _match(m: pb.BlobMatch) -> BlobMatch:
    return BlobMatch(line=m.line, offset=m.offset, length=m.length, text=m.text)


def _collected(m: pb.CollectGarbageResponse) -> CollectedGarbage:
    return CollectedGarbage(
        deleted_count=m.deleted_count,
        freed_bytes=m.freed_bytes,
        deleted_refs=tuple(m.deleted_refs),
        kept=KeptBlobs(**m.kept),
        more=m.more,
    )
