"""What `ctx.memory` sends, and what comes back: against a fake server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

import loombridge
from fake import Call, Fake, refuse
from loombridge import _bulk, _rpc
from loombridge.v1 import memory_pb2 as pb

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def wire(moment: datetime) -> Timestamp:
    result = Timestamp()
    result.FromDatetime(moment)
    return result


async def answer_batch(request: pb.BatchSaveRequest, _call: Call) -> pb.BatchSaveResponse:
    saved = [pb.MemorySaveResponse(id=each.text) for each in request.records]
    return pb.BatchSaveResponse(saved=saved)


async def test_save_pinned_and_sliding(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.MEMORY_SAVE, pb.MemorySaveResponse(id="r1"))
    await ctx.memory_save("text", pinned=True, sliding_ttl=timedelta(minutes=1))
    assert fake.requests[0] == pb.MemorySaveRequest(
        agent_id="a1", session_id="s1", text="text", pinned=True, sliding_ttl=Duration(seconds=60)
    )


async def test_query_sends_all_it_was_given(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.MEMORY_QUERY, pb.MemoryQueryResponse())
    asked: dict[str, Any] = {
        "query": "price",
        "limit": 7,
        "filter": "pinned = true",
        "mode": "vector",
        "min_score": 0.25,
        "max_tokens": 300,
        "expand": True,
        "explain": True,
        "embedding": [1, 0.5],
        "embedding_space": "m",
        "owners": ["agent:a2", loombridge.Owner("user", "ann:lee")],
        "recency_weight": 0.5,
        "recency_half_life": timedelta(days=1),
        "importance_weight": 0.75,
        "access_weight": 0.25,
        "tiers": (2, 4),
        "without_signals": ["newer", "session"],
        "include_embeddings": True,
        "user_id": "u",
    }
    await ctx.memory_query(asked)
    await ctx.memory_query(**asked)
    first, second = fake.requests
    assert first == second
    assert first == pb.MemoryQueryRequest(
        agent_id="a1",
        user_id="u",
        query="price",
        limit=7,
        filter="pinned = true",
        mode=pb.QUERY_MODE_VECTOR,
        min_score=0.25,
        include_embeddings=True,
        max_tokens=300,
        expand=True,
        explain=True,
        embedding=[1, 0.5],
        embedding_space="m",
        owners=[pb.MemoryOwner(agent_id="a2"), pb.MemoryOwner(user_id="ann:lee")],
        recency_weight=0.5,
        recency_half_life=Duration(seconds=86400),
        importance_weight=0.75,
        access_weight=0.25,
        tiers=[2, 4],
        without_signals=["newer", "session"],
    )


async def test_a_vector_alone_may_be_the_query(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.MEMORY_QUERY, pb.MemoryQueryResponse())
    await ctx.memory_query(embedding=[1], embedding_space="m", mode="vector", tiers=3)
    assert (fake.requests[0].query, list(fake.requests[0].tiers)) == ("", [3])


async def test_hits_tell_their_owner_and_reasons(fake: Fake, ctx: loombridge.Client) -> None:
    record = pb.Record(
        id="r1",
        version=3,
        update_time=wire(MOMENT),
        pinned=True,
        sliding_ttl=Duration(seconds=5),
    )
    explanation = pb.HitExplanation(
        signals=[pb.SignalScore(name="turn", raw=2.5, share=0.75)], matched_words=["price"]
    )
    owner = pb.MemoryOwner(user_id="ann")
    receipt = pb.QueryReceipt(
        left_out={"over_limit": 5, "over_max_tokens": 6, "over_max_bytes": 8},
        tokens=7,
        empty_reason=pb.EMPTY_REASON_ALL_UNDER_MIN_SCORE,
        embedding_spaces=["m"],
    )
    fake.on(
        _rpc.MEMORY_QUERY,
        pb.MemoryQueryResponse(
            hits=[
                pb.MemoryHit(record=record, score=1, owner=owner, explanation=explanation),
                pb.MemoryHit(record=pb.Record(id="r2"), older_ids=["r1"]),
                pb.MemoryHit(
                    record=pb.Record(id="r3"),
                    passages=[
                        pb.Passage(text="First.", start=0),
                        pb.Passage(text="Last.", start=90),
                    ],
                ),
            ],
            receipt=receipt,
        ),
    )
    hits = await ctx.memory_query("price")
    assert hits[0].owner == loombridge.Owner.parse("user:ann")
    assert str(hits[0].owner) == "user:ann"
    assert hits[0].explanation == loombridge.HitExplanation(
        signals=(loombridge.SignalScore("turn", 2.5, 0.75),), matched_words=("price",)
    )
    assert (hits[1].owner, hits[1].explanation) == (None, None)
    assert (hits[0].older_ids, hits[1].older_ids) == ((), ("r1",))
    assert hits[2].passages == (
        loombridge.Passage("First.", 0, 6),
        loombridge.Passage("Last.", 90, 95),
    )
    assert hits[2].text == "First. … Last."
    assert (hits[0].passages, hits[0].text) == ((), hits[0].record.text)
    found = hits[0].record
    assert (found.version, found.pinned, found.update_time) == (3, True, MOMENT)
    assert found.sliding_ttl == timedelta(seconds=5)
    assert (hits[1].record.update_time, hits[1].record.sliding_ttl) == (None, None)
    assert hits.receipt == loombridge.QueryReceipt(
        over_limit=5,
        over_max_tokens=6,
        over_max_bytes=8,
        tokens=7,
        empty_reason="all_under_min_score",
        embedding_spaces=("m",),
    )
    assert loombridge.QueryReceipt().empty_reason == ""


async def test_update_names_what_it_changes(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.UPDATE_RECORD, pb.Record(id="r1", version=4))
    updated = await ctx.memory.update(
        key="k",
        text="new",
        importance=0,
        metadata={},
        pinned=False,
        sliding_ttl=5,
        clear=("tags", "author"),
        expected_version=3,
        user_id="u",
        request_id="q",
    )
    assert updated.version == 4
    sent = fake.requests[0]
    assert list(sent.update_mask.paths) == [
        "author",
        "expiry",
        "importance",
        "metadata",
        "pinned",
        "tags",
        "text",
    ]
    draft = pb.MemorySaveRequest(
        text="new", importance=0, metadata_json="{}", sliding_ttl=Duration(seconds=5)
    )
    assert sent.record == draft
    assert (sent.key, sent.user_id, sent.request_id) == ("k", "u", "q")
    assert sent.expected_version == 3
    await ctx.memory.update(id="r1", clear=["expiry"])
    assert list(fake.requests[1].update_mask.paths) == ["expiry"]
    assert not fake.requests[1].HasField("expected_version")
    assert fake.requests[1].record == pb.MemorySaveRequest()


async def test_delete(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.DELETE_RECORDS, pb.DeleteRecordsResponse(id="r1"))
    assert await ctx.memory.delete(key="k", expected_version=2, request_id="q") == "r1"
    assert fake.requests[0] == pb.DeleteRecordsRequest(
        agent_id="a1", key="k", expected_version=2, request_id="q"
    )


async def test_list_turns_the_pages(fake: Fake, ctx: loombridge.Client) -> None:
    async def page(request: pb.ListRecordsRequest, _call: Call) -> pb.ListRecordsResponse:
        number = int(request.page_token or 0)
        records = [pb.Record(id=f"r{number}{i}") for i in range(2)]
        token = str(number + 1) if number < 2 else ""
        return pb.ListRecordsResponse(records=records, next_page_token=token)

    fake.on(_rpc.LIST_RECORDS, page)
    listing = ctx.memory.list(
        filter="pinned = true", newest_first=True, tiers=[2, 3], include_embeddings=True
    )
    assert not fake.requests
    every = ["r00", "r01", "r10", "r11", "r20", "r21"]
    assert [record.id async for record in listing] == every
    assert [record.id async for record in listing] == every
    assert fake.requests[0] == pb.ListRecordsRequest(
        agent_id="a1",
        filter="pinned = true",
        newest_first=True,
        tiers=[2, 3],
        include_embeddings=True,
        page_size=500,
    )
    async for _ in ctx.memory.list():
        break
    assert len(fake.requests) == 7


async def test_list_asks_for_pages_as_large_as_told(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.LIST_RECORDS, pb.ListRecordsResponse())
    assert [record async for record in ctx.memory.list()] == []
    assert [record async for record in ctx.memory.list(page_size=7)] == []
    assert [request.page_size for request in fake.requests] == [500, 7]
    for wrong in (0, 501):
        with pytest.raises(ValueError, match="from 1 to 500"):
            ctx.memory.list(page_size=wrong)


async def test_save_many_takes_whatever_there_is(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.BATCH_SAVE, answer_batch)
    saved = await ctx.memory.save_many(
        [
            "just a text",
            {"text": "a mapping", "tags": ["t"], "session_id": ""},
            loombridge.RecordDraft(text="a draft", key="k", ttl=5, origin="web", pinned=True),
        ],
        user_id="u",
    )
    assert [each.id for each in saved] == ["just a text", "a mapping", "a draft"]
    assert fake.requests == [
        pb.BatchSaveRequest(
            agent_id="a1",
            user_id="u",
            records=[
                pb.MemorySaveRequest(text="just a text", session_id="s1"),
                pb.MemorySaveRequest(text="a mapping", tags=["t"]),
                pb.MemorySaveRequest(
                    text="a draft",
                    session_id="s1",
                    key="k",
                    ttl=Duration(seconds=5),
                    origin=pb.ORIGIN_WEB,
                    pinned=True,
                ),
            ],
        )
    ]
    assert await ctx.memory.save_many([]) == ()
    assert len(fake.requests) == 1


@pytest.mark.parametrize("one", ["text", {"text": "text"}, loombridge.RecordDraft(text="text")])
async def test_save_many_does_not_take_one(ctx: loombridge.Client, one: Any) -> None:
    with pytest.raises(TypeError, match="memory_save saves one"):
        await ctx.memory.save_many(one)


async def test_save_many_cuts_batches(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.BATCH_SAVE, answer_batch)

    async def texts() -> AsyncIterator[str]:
        for i in range(2500):
            yield str(i)

    ids = [saved.id async for saved in ctx.memory.save_many(texts(), request_id="import")]
    assert ids == [str(i) for i in range(2500)]
    assert [len(request.records) for request in fake.requests] == [1000, 1000, 500]
    assert [request.request_id for request in fake.requests] == [
        "import/0",
        "import/1",
        "import/2",
    ]
    fake.requests.clear()
    long = "x" * (200 << 10)
    await ctx.memory.save_many([long] * 45)
    assert [len(request.records) for request in fake.requests] == [20, 20, 5]
    assert all(request.ByteSize() <= 4 << 20 for request in fake.requests)
    assert {request.request_id for request in fake.requests} == {""}


async def test_what_is_saved_before_a_failure_is_told(fake: Fake, ctx: loombridge.Client) -> None:
    async def second_fails(request: pb.BatchSaveRequest, call: Call) -> pb.BatchSaveResponse:
        if len(fake.requests) == 2:
            await refuse(call, grpc.StatusCode.ALREADY_EXISTS, "taken", reason="RECORD_EXISTS")
        return await answer_batch(request, call)

    fake.on(_rpc.BATCH_SAVE, second_fails)
    saving = ctx.memory.save_many(str(i) for i in range(3000))
    answers = aiter(saving)
    for i in range(1000):
        assert (await anext(answers)).id == str(i)
    with pytest.raises(loombridge.RecordExistsError):
        await anext(answers)
    with pytest.raises(RuntimeError, match="call save_many again"):
        await saving


async def test_changes_are_repeated_only_with_a_request_id(
    fake: Fake, ctx: loombridge.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01,))

    async def away(_request: Any, call: Call) -> Any:
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "away")

    calls: list[tuple[Any, Callable[[str | None], Any]]] = [
        (_rpc.UPDATE_RECORD, lambda q: ctx.memory.update(id="r", text="t", request_id=q)),
        (_rpc.DELETE_RECORDS, lambda q: ctx.memory.delete(id="r", request_id=q)),
        (_rpc.BATCH_SAVE, lambda q: ctx.memory.save_many(["t"], request_id=q)),
    ]
    for method, call in calls:
        fake.on(method, away)
        for request_id, times in ((None, 1), ("q", 2)):
            fake.requests.clear()
            with pytest.raises(loombridge.ServerUnreachableError):
                await call(request_id)
            assert len(fake.requests) == times
    fake.on(_rpc.LIST_RECORDS, away)
    fake.requests.clear()
    with pytest.raises(loombridge.ServerUnreachableError):
        await ctx.memory.stats()
    assert len(fake.requests) == 2


async def test_reembed_tells_how_far_it_is(fake: Fake, ctx: loombridge.Client) -> None:
    async def work(request: pb.ReembedRequest, _call: Call) -> AsyncGenerator[pb.ReembedResponse]:
        assert (request.agent_id, request.user_id) == ("a1", "u")
        for done in (2, 4, 4):
            yield pb.ReembedResponse(embedding_space="m", done=done, total=4)

    fake.on_stream(_rpc.REEMBED, work)
    every = [progress async for progress in ctx.memory.reembed(user_id="u")]
    assert every == [loombridge.ReembedProgress("m", done, 4) for done in (2, 4, 4)]


async def test_reembed_that_stands_still(fake: Fake, ctx: loombridge.Client) -> None:
    ended = asyncio.Event()

    async def work(_request: pb.ReembedRequest, _call: Call) -> AsyncGenerator[pb.ReembedResponse]:
        yield pb.ReembedResponse(embedding_space="m", done=1, total=2)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    fake.on_stream(_rpc.REEMBED, work)
    work_of_ctx = ctx.memory.reembed(timeout=0.2)
    assert (await anext(work_of_ctx)).done == 1
    with pytest.raises(loombridge.DeadlineExceededError, match=r"within 0\.2 s"):
        await anext(work_of_ctx)
    await asyncio.wait_for(ended.wait(), 60)
    ended.clear()
    async with ctx.memory.reembed() as progress:
        async for _ in progress:
            break
    await asyncio.wait_for(ended.wait(), 60)
    assert [each async for each in progress] == []


async def test_reembed_without_an_embedder(fake: Fake, ctx: loombridge.Client) -> None:
    async def work(_request: pb.ReembedRequest, call: Call) -> AsyncGenerator[pb.ReembedResponse]:
        await refuse(call, grpc.StatusCode.FAILED_PRECONDITION, "none", reason="NO_EMBEDDER")
        yield pb.ReembedResponse()

    fake.on_stream(_rpc.REEMBED, work)
    with pytest.raises(loombridge.NoEmbedderError):
        await anext(ctx.memory.reembed())


async def test_stats(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.LIST_RECORDS,
        pb.ListRecordsResponse(
            stats=pb.MemoryStats(
                records=1,
                unpacked=4,
                segments=5,
                spaces=[pb.EmbeddingSpaceStats(name="m", dimension=384, vectors=7)],
                embedder_space="e",
                pending=8,
            )
        ),
    )
    assert await ctx.memory.stats(user_id="u") == loombridge.MemoryStats(
        records=1,
        unpacked=4,
        segments=5,
        spaces=(loombridge.EmbeddingSpace("m", 384, 7),),
        embedder_space="e",
        pending=8,
    )


async def test_a_conflict_has_its_versions(fake: Fake, ctx: loombridge.Client) -> None:
    async def conflict(_request: pb.UpdateRecordRequest, call: Call) -> pb.Record:
        await refuse(
            call,
            grpc.StatusCode.ABORTED,
            "changed",
            reason="VERSION_CONFLICT",
            metadata={"id": "r1", "expected_version": "3", "version": "5"},
        )
        raise AssertionError

    fake.on(_rpc.UPDATE_RECORD, conflict)
    with pytest.raises(loombridge.VersionConflictError) as caught:
        await ctx.memory.update(id="r1", text="t", expected_version=3)
    err = caught.value
    assert (err.id, err.expected_version, err.version) == ("r1", 3, 5)


def test_batches_fit_one_message() -> None:
    assert _bulk.RECORDS_PER_BATCH == 1000
    assert _bulk.BYTES_PER_BATCH < 4 << 20
