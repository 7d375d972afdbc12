"""Listing, keeping, searching and collecting blobs."""

# ruff: noqa: S106  a page token is no password

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

import loombridge
from fake import Call, Fake, refuse
from loombridge import _rpc
from loombridge.v1 import context_pb2 as pb

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def wire(moment: datetime) -> Timestamp:
    result = Timestamp()
    result.FromDatetime(moment)
    return result


BARE = pb.BlobInfo(
    ref="ab", path="workspace/outputs/read_001.txt", size=10, kind="text", create_time=wire(MOMENT)
)
FULL = pb.BlobInfo(
    ref="ab",
    path="archive/reports/read_001.txt",
    size=10,
    kind="text",
    step_id="step_001",
    session_id="s1",
    create_time=wire(MOMENT),
    agent_id="a1",
    category="read",
    media_type="image/png",
    ttl=Duration(seconds=90),
    expire_time=wire(MOMENT + timedelta(seconds=90)),
    tier=pb.BLOB_TIER_SHORT_TERM,
    important=True,
    archive=pb.BlobArchive(category="reports", tags=["x", "y"]),
    aliases=["workspace/outputs/read_001.txt"],
)
SEEN = loombridge.BlobInfo(
    ref="ab",
    path="archive/reports/read_001.txt",
    size=10,
    kind="text",
    step_id="step_001",
    session_id="s1",
    create_time=MOMENT,
    agent_id="a1",
    category="read",
    media_type="image/png",
    ttl=timedelta(seconds=90),
    expire_time=MOMENT + timedelta(seconds=90),
    tier="short_term",
    important=True,
    archive=loombridge.BlobArchive(category="reports", tags=("x", "y")),
    aliases=("workspace/outputs/read_001.txt",),
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01, 0.01))


async def test_listing_goes_through_all_pages(fake: Fake, ctx: loombridge.Client) -> None:
    pages = {
        "": pb.ListBlobsResponse(blobs=[FULL], next_page_token="p2"),
        "p2": pb.ListBlobsResponse(next_page_token="p3"),
        "p3": pb.ListBlobsResponse(
            blobs=[BARE], usage=pb.BlobUsage(count=2, bytes=20, max_bytes=100)
        ),
    }

    async def page(request: pb.ListBlobsRequest, _call: Call) -> pb.ListBlobsResponse:
        return pages[request.page_token]

    fake.on(_rpc.LIST_BLOBS, page)
    listing = ctx.context.list_blobs()
    assert listing.usage is None
    for _ in range(2):
        full, bare = [blob async for blob in listing]
        assert full == SEEN
        assert (bare.ttl, bare.expire_time, bare.archive) == (None,) * 3
        assert (bare.important, bare.aliases) == (False, ())
    assert listing.usage == loombridge.BlobUsage(count=2, bytes=20, max_bytes=100)
    assert [request.page_token for request in fake.requests] == ["", "p2", "p3"] * 2
    assert fake.requests[0] == pb.ListBlobsRequest(agent_id="a1", page_size=100)


async def test_listing_a_choice(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.LIST_BLOBS, pb.ListBlobsResponse())
    listing = ctx.context.list_blobs(
        session_id="s2",
        step_id="step_001",
        kind="text",
        category="read",
        tier="working",
        archived=True,
    )
    assert not [blob async for blob in listing]
    assert fake.requests == [
        pb.ListBlobsRequest(
            agent_id="a1",
            session_id="s2",
            step_id="step_001",
            kind="text",
            category="read",
            tier=pb.BLOB_TIER_WORKING,
            archived=True,
            page_size=100,
        )
    ]


async def test_promote(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.UPDATE_BLOB, FULL)
    kept = await ctx.context.promote_blob(
        "ab", tier="long_term", category="c", new_name="n.txt", important=True, request_id="q"
    )
    assert kept == SEEN
    await ctx.context.promote_blob("ab", tier="short_term")
    assert fake.requests == [
        pb.UpdateBlobRequest(
            agent_id="a1",
            name="ab",
            tier=pb.BLOB_TIER_LONG_TERM,
            category="c",
            new_name="n.txt",
            important=True,
            request_id="q",
        ),
        pb.UpdateBlobRequest(agent_id="a1", name="ab", tier=pb.BLOB_TIER_SHORT_TERM),
    ]


async def test_archive(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.UPDATE_BLOB, FULL)
    archived = await ctx.context.archive_blob(
        "ab", category="reports", tags=["x", "y"], new_name="n.txt", request_id="q"
    )
    assert archived == SEEN
    await ctx.context.archive_blob("ab")
    assert fake.requests == [
        pb.UpdateBlobRequest(
            archive=True,
            agent_id="a1",
            name="ab",
            category="reports",
            tags=["x", "y"],
            new_name="n.txt",
            request_id="q",
        ),
        pb.UpdateBlobRequest(archive=True, agent_id="a1", name="ab"),
    ]


async def test_collect(fake: Fake, ctx: loombridge.Client) -> None:
    kept = {"archived": 1, "long_term": 2, "important": 3}
    kept |= {"not_expired": 4, "in_use": 5, "referenced": 6}
    fake.on(
        _rpc.COLLECT_GARBAGE,
        pb.CollectGarbageResponse(
            deleted_count=7,
            freed_bytes=8,
            deleted_refs=["ab"],
            kept=kept,
            more=True,
        ),
    )
    assert await ctx.context.collect_garbage() == loombridge.CollectedGarbage(
        deleted_count=7,
        freed_bytes=8,
        deleted_refs=("ab",),
        kept=loombridge.KeptBlobs(**kept),
        more=True,
    )
    await ctx.context.collect_garbage(dry_run=True, request_id="q")
    assert fake.requests == [
        pb.CollectGarbageRequest(agent_id="a1"),
        pb.CollectGarbageRequest(agent_id="a1", dry_run=True, request_id="q"),
    ]


async def test_changes_are_made_again_with_a_request_id_only(
    fake: Fake, ctx: loombridge.Client
) -> None:
    async def away(_request: Any, call: Call) -> Any:
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "away")

    methods: list[_rpc.Method[Any, Any]] = [
        _rpc.UPDATE_BLOB,
        _rpc.UPDATE_BLOB,
        _rpc.COLLECT_GARBAGE,
    ]
    for method in methods:
        fake.on(method, away)
    for request_id, attempts in ((None, 1), ("q", 3)):
        for call in (
            ctx.context.promote_blob("ab", tier="long_term", request_id=request_id),
            ctx.context.archive_blob("ab", request_id=request_id),
            ctx.context.collect_garbage(request_id=request_id),
        ):
            fake.requests.clear()
            with pytest.raises(loombridge.ServerUnreachableError):
                await call
            assert len(fake.requests) == attempts


async def test_wrong_arguments_are_not_sent(fake: Fake, ctx: loombridge.Client) -> None:
    keep: Any = ctx.context
    with pytest.raises(ValueError, match="tier must be one of"):
        await keep.promote_blob("ab", tier="forever")
    with pytest.raises(TypeError, match="tags must be a list"):
        await keep.archive_blob("ab", tags="x")
    with pytest.raises(ValueError, match="at most one of words"):
        keep.search_blobs(words="a", literal="b")
    with pytest.raises(TypeError, match="max_matches must be an int"):
        keep.search_blobs("ab", literal="b", max_matches="many")
    assert not fake.requests


def lines(*numbers: int) -> list[pb.BlobMatch]:
    return [pb.BlobMatch(line=n, offset=10 * n + 1, length=3, text=f"l {n}") for n in numbers]


async def test_search_of_one_blob(fake: Fake, ctx: loombridge.Client) -> None:
    async def answer(_request: Any, _call: Call) -> AsyncGenerator[pb.SearchBlobsResponse, None]:
        yield pb.SearchBlobsResponse(blob=FULL, matches=lines(1, 2))
        yield pb.SearchBlobsResponse(matches=lines(3), next_page_token="p2")

    fake.on_stream(_rpc.SEARCH_BLOBS, answer)
    search = ctx.context.search_blobs(
        "ab", literal="l", ignore_case=True, max_matches=3, page_token="p1"
    )
    found = [each async for each in search]
    assert [each.blob for each in found] == [SEEN, SEEN]
    assert [[match.line for match in each.matches] for each in found] == [[1, 2], [3]]
    assert found[1].matches[0] == loombridge.BlobMatch(line=3, offset=31, length=3, text="l 3")
    assert (search.next_page_token, search.incomplete) == ("p2", False)
    assert fake.requests == [
        pb.SearchBlobsRequest(
            agent_id="a1",
            name="ab",
            literal="l",
            ignore_case=True,
            max_matches=3,
            page_token="p1",
            session_id="s1",
        )
    ]


async def test_search_of_the_archive(fake: Fake, ctx: loombridge.Client) -> None:
    async def answer(
        request: pb.SearchBlobsRequest, _call: Call
    ) -> AsyncGenerator[pb.SearchBlobsResponse, None]:
        if request.words:
            yield pb.SearchBlobsResponse(blob=FULL, matches=lines(1), more=True)
            yield pb.SearchBlobsResponse(blob=BARE)
        # It may be that nothing was found, in what was read.
        yield pb.SearchBlobsResponse(blob=BARE if request.words else None, incomplete=True)

    fake.on_stream(_rpc.SEARCH_BLOBS, answer)
    async with ctx.context.search_blobs(
        words="l m", category="reports", tags=["x"], limit=7
    ) as search:
        found = [each async for each in search]
    assert [(each.blob.path, each.more) for each in found] == [
        (FULL.path, True),
        (BARE.path, False),
        (BARE.path, False),
    ]
    assert search.incomplete
    nothing = ctx.context.search_blobs(regexp="^x")
    assert not [each async for each in nothing]
    assert nothing.incomplete
    assert fake.requests == [
        pb.SearchBlobsRequest(
            agent_id="a1",
            words="l m",
            category="reports",
            tags=["x"],
            limit=7,
            session_id="s1",
        ),
        pb.SearchBlobsRequest(agent_id="a1", regexp="^x", session_id="s1"),
    ]


async def test_search_is_made_again_until_something_came(
    fake: Fake, ctx: loombridge.Client
) -> None:
    async def breaks(
        request: pb.SearchBlobsRequest, call: Call
    ) -> AsyncGenerator[pb.SearchBlobsResponse, None]:
        if request.name == "late" and len(fake.requests) == 3:
            yield pb.SearchBlobsResponse(blob=FULL)
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "away")

    fake.on_stream(_rpc.SEARCH_BLOBS, breaks)
    search = ctx.context.search_blobs("late", literal="l")
    assert (await anext(search)).blob == SEEN
    with pytest.raises(loombridge.ServerUnreachableError):
        await anext(search)
    with pytest.raises(StopAsyncIteration):
        await anext(search)
    assert len(fake.requests) == 3
    fake.requests.clear()
    with pytest.raises(loombridge.ServerUnreachableError):
        await anext(ctx.context.search_blobs("never", literal="l"))
    assert len(fake.requests) == 3


async def test_search_errors_silence_and_close(fake: Fake, ctx: loombridge.Client) -> None:
    left = asyncio.Event()

    async def answer(
        request: pb.SearchBlobsRequest, call: Call
    ) -> AsyncGenerator[pb.SearchBlobsResponse, None]:
        if request.name == "gone":
            await refuse(call, grpc.StatusCode.NOT_FOUND, "gone", reason="BLOB_COLLECTED")
        yield pb.SearchBlobsResponse(blob=FULL)
        try:
            await asyncio.sleep(60)
        finally:
            left.set()

    fake.on_stream(_rpc.SEARCH_BLOBS, answer)
    with pytest.raises(loombridge.BlobCollectedError):
        await anext(ctx.context.search_blobs("gone", literal="l"))
    with pytest.raises(loombridge.DeadlineExceededError, match="nothing of the search"):
        assert [each async for each in ctx.context.search_blobs("ab", literal="l", timeout=0.5)]
    await asyncio.wait_for(left.wait(), 60)
    left.clear()
    async with ctx.context.search_blobs("ab", literal="l") as search:
        assert (await anext(search)).blob == SEEN
    await asyncio.wait_for(left.wait(), 60)
    assert not [each async for each in search]


async def test_close_ends_a_loop_that_waits(fake: Fake, ctx: loombridge.Client) -> None:
    async def found(_request: Any, _call: Call) -> AsyncGenerator[pb.SearchBlobsResponse, None]:
        yield pb.SearchBlobsResponse(blob=FULL)
        await asyncio.sleep(60)

    async def piece(_request: Any, _call: Call) -> AsyncGenerator[pb.ReadBlobResponse, None]:
        yield pb.ReadBlobResponse(data=b"x")
        await asyncio.sleep(60)

    fake.on_stream(_rpc.SEARCH_BLOBS, found)
    fake.on_stream(_rpc.READ_BLOB, piece)
    for stream in (ctx.context.search_blobs("ab", literal="l"), ctx.context.stream_blob("ab")):
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        stream.close()
        with pytest.raises(StopAsyncIteration):
            await waiting
    stream = ctx.context.search_blobs("ab", literal="l")
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
