"""`ctx.memory` against the real binary."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import loombridge
from loombridge import testing


# F05
async def test_a_save_carries_everything(live: loombridge.Client) -> None:
    saved = await live.memory_save(
        "Ann prefers aisle seats",
        kind="pattern",
        key="seat",
        author="Ann",
        metadata={"n": 2**70, "deep": {"list": [1, {"x": None}]}},
        tags=["travel", "ann"],
        importance=0.875,
        event_time=datetime(2025, 3, 1, tzinfo=UTC),
        sliding_ttl=timedelta(days=2),
        embedding=[0.5, -1, 2],
        embedding_space="mine",
        origin="user",
        pinned=True,
        user_id="ann",
    )
    record = await live.memory.get(key="seat", user_id="ann", include_embedding=True)
    assert record.id == saved.id
    assert (record.kind, record.author, record.origin) == ("pattern", "Ann", "user")
    assert record.metadata == {"n": 2**70, "deep": {"list": [1, {"x": None}]}}
    assert (record.tags, record.importance, record.tier) == (("ann", "travel"), 0.875, 4)
    assert (record.embedding, record.embedding_space) == ((0.5, -1, 2), "mine")
    assert (record.version, record.update_time, record.pinned) == (1, None, True)
    assert record.sliding_ttl == timedelta(days=2)
    assert record.expire_time == record.create_time + timedelta(days=2)
    with pytest.raises(loombridge.RecordNotFoundError):
        await live.memory.get(key="seat")


# F06
async def test_a_query_without_a_limit_returns_five(live: loombridge.Client) -> None:
    await live.memory.save_many(f"apple number {i}" for i in range(8))
    hits = await live.memory_query({"query": "apples"})
    assert len(hits) == 5
    assert hits.receipt.records == 8
    assert hits.receipt.over_limit == 3
    assert len(await live.memory_query({"query": "apples", "limit": 7})) == 7


async def test_update_with_compare_and_set(live: loombridge.Client) -> None:
    await live.memory_save("one cat", key="count", tags=["t"], ttl=1000)

    conflicts: list[tuple[str, int, int]] = []

    async def count() -> None:
        while True:
            old = await live.memory.get(key="count")
            n = old.metadata.get("n", 0)
            try:
                await live.memory.update(
                    key="count",
                    text=f"{n + 1} cats",
                    metadata={"n": n + 1},
                    expected_version=old.version,
                )
            except loombridge.VersionConflictError as err:
                conflicts.append((err.id, err.expected_version - old.version, err.version))
            else:
                return

    await asyncio.gather(*(count() for _ in range(8)))
    record = await live.memory.get(key="count")
    assert {(name, off) for name, off, _ in conflicts} <= {(record.id, 0)}
    assert all(1 < version <= 9 for *_, version in conflicts)
    assert (record.text, record.metadata, record.version) == ("8 cats", {"n": 8}, 9)
    assert (record.tags, record.expire_time is None) == (("t",), False)
    assert record.update_time
    assert record.update_time >= record.create_time
    cleared = await live.memory.update(id=record.id, clear=("tags", "expiry", "metadata"))
    assert (cleared.tags, cleared.expire_time, cleared.metadata) == ((), None, {})
    assert [hit.record.id for hit in await live.memory_query("cats")] == [record.id]
    assert not (await live.memory_query("one")).hits
    with pytest.raises(loombridge.VersionConflictError):
        await live.memory.delete(key="count", expected_version=3)
    assert await live.memory.delete(key="count") == record.id
    with pytest.raises(loombridge.RecordNotFoundError):
        await live.memory.update(id=record.id, text="gone")
    assert (await live.memory_query("cats")).receipt.empty_reason == "nothing_stored"


async def test_the_empty_answer_says_why(live: loombridge.Client) -> None:
    await live.memory_save("the harbour is closed", tags=["news"])
    asked: list[dict[str, Any]] = [
        {"query": "harbour"},
        {"query": "zebra"},
        {"query": "harbour", "filter": 'tags:"other"'},
        {"query": "harbour", "max_tokens": 1},
        {"query": "harbour", "user_id": "nobody"},
    ]
    reasons = [(await live.memory_query(each)).receipt.empty_reason for each in asked]
    assert reasons == [
        "",
        "nothing_relevant",
        "all_excluded",
        "all_over_max_tokens",
        "nothing_stored",
    ]


async def test_query_explains_and_bounds(live: loombridge.Client) -> None:
    await live.memory.save_many(
        [{"text": f"The invoice of {name} is paid", "author": name} for name in ("Ann", "Bob")]
    )
    hits = await live.memory_query("what did Bob pay", explain=True, max_tokens=8)
    assert len(hits) == 1
    assert hits.receipt.over_max_tokens == 1
    assert 0 < hits.receipt.tokens <= 8
    best = hits[0]
    assert best.record.author == "Bob"
    assert best.explanation
    assert best.explanation.signals
    assert best.explanation.signals[0].share >= best.explanation.signals[-1].share
    assert best.explanation.matched_words


async def test_several_owners_are_one_memory(live: loombridge.Client) -> None:
    await live.memory_save("Agents know the harbour")
    await live.memory_save("Ann knows the harbour", user_id="ann")
    await live.memory_save("Bob knows the harbour", user_id="bob")
    owners = ["agent:a1", loombridge.Owner("user", "ann")]
    hits = await live.memory_query("harbour", owners=owners)
    assert {str(hit.owner) for hit in hits} == {"agent:a1", "user:ann"}
    assert hits.receipt.records == 2
    assert (await live.memory_query("harbour"))[0].owner is None


async def test_list_follows_the_pages(live: loombridge.Client) -> None:
    texts = [f"record {i} {'x' * 2000}" for i in range(1200)]
    saved = await live.memory.save_many(texts, request_id="r")
    assert await live.memory.save_many(texts, request_id="r") == saved
    assert [record.text async for record in live.memory.list()] == texts
    await live.memory.update(id=saved[3].id, text="changed", tags=["new"])
    newest = [record.text async for record in live.memory.list(newest_first=True)]
    assert newest[:2] == texts[:-3:-1]
    assert newest[-4] == "changed"
    found = [record.id async for record in live.memory.list(filter='tags:"new"')]
    assert found == [saved[3].id]
    with pytest.raises(loombridge.InvalidFilterError):
        await anext(aiter(live.memory.list(filter="colour = 1")))
    stats = await live.memory.stats()
    assert (stats.records, stats.spaces) == (1200, ())
    with pytest.raises(loombridge.RequestIdReusedError):
        await live.memory.save_many(["another"], request_id="r")


async def test_a_batch_is_saved_as_a_whole(live: loombridge.Client) -> None:
    with pytest.raises(loombridge.InvalidRequestError) as caught:
        await live.memory.save_many([{"text": "fine"}, {"text": "bad", "importance": 3}])
    assert [violation.field for violation in caught.value.violations] == ["records[1].importance"]
    drafts = [
        loombridge.RecordDraft(text="first", id="r1"),
        loombridge.RecordDraft(text="second", supersedes="r1", derived_from=["r1"]),
    ]
    _, second = await live.memory.save_many(drafts)
    assert [record.text async for record in live.memory.list()] == ["first", "second"]
    assert (await live.memory.get(id="r1")).superseded_by == second.id


# F08
async def test_what_only_its_vector_links_is_found(live: loombridge.Client) -> None:
    await live.memory_save("apples and pears", embedding=[1, 0, 0.1], embedding_space="m")
    far = await live.memory_save("a rope", embedding=[0, 1, 0], embedding_space="m")
    hits = await live.memory_query("fruit", embedding=[0.1, 1, 0], embedding_space="m")
    assert hits[0].record.id == far.id
    assert hits.receipt.embedding_spaces == ("m",)
    hits = await live.memory_query(
        embedding=[0, 1, 0], embedding_space="m", mode="vector", include_embeddings=True
    )
    assert (hits[0].record.embedding, hits[0].record.embedding_space) == ((0, 1, 0), "m")
    listed = [record.embedding async for record in live.memory.list(include_embeddings=True)]
    assert listed[1] == (0, 1, 0)
    with pytest.raises(loombridge.EmbeddingMismatchError) as caught:
        await live.memory_save("short", embedding=[1, 0], embedding_space="m")
    err = caught.value
    assert (err.embedding_space, err.dimension, err.want_dimension) == ("m", 2, 3)
    stats = await live.memory.stats()
    assert stats.spaces == (loombridge.EmbeddingSpace("m", 3, 2),)
    with pytest.raises(loombridge.NoEmbedderError):
        await live.memory_query("fruit", mode="vector")
    with pytest.raises(loombridge.NoEmbedderError):
        await anext(live.memory.reembed())


async def test_what_is_read_stays(live: loombridge.Client) -> None:
    await live.memory_save("read again", key="read", sliding_ttl=6)
    await live.memory_save("never read", key="unread", sliding_ttl=6)
    await live.memory_save("peeked", key="peeked", sliding_ttl=6)
    for _ in range(4):
        await asyncio.sleep(2)
        await live.memory.get(key="read")
        await live.memory_query("peeked", peek=True)
        async for record in live.memory.list(filter='key = "peeked"', peek=True):
            assert (await live.memory.get(key="peeked", peek=True)).id == record.id
    for gone in ("unread", "peeked"):
        with pytest.raises(loombridge.RecordNotFoundError):
            await live.memory.get(key=gone)


async def test_all_of_it_outlives_the_server(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="a1") as ctx:
        await ctx.memory.save_many(["kept", {"text": "changed", "key": "k"}, "deleted"])
        await ctx.memory.update(key="k", text="as it is now", pinned=True)
        await ctx.memory.delete(id=[record.id async for record in ctx.memory.list()][2])
        await srv.kill9()
        await srv.restart()
        texts = [(record.text, record.version) async for record in ctx.memory.list()]
    assert texts == [("kept", 1), ("as it is now", 2)]


# G25
async def test_task_moves_up(live: loombridge.Client) -> None:
    task = loombridge.Task(
        "node.planning",
        task_id="plan-1",
        parameters={"goal": "report"},
        result="three chapters",
        tags=("plan",),
        create_time=datetime(2026, 3, 1, tzinfo=UTC),
    )
    recorded = await live.context.record_step("planner:plan", output="ok", task=task)
    assert recorded.task_id == "plan-1"
    # Importance .8 by its action: it is in the second tier at once.
    second = await live.tool("query_l2_memory", {})
    assert second.output["count"] == 1
    assert "three chapters" in str(second.output["items"])
    whole = await live.tool("query_l1_memory", {})
    assert whole.output["items"][0]["parameters"] == {"goal": "report"}
    other = loombridge.Task("node.planning", task_id="plan-1", result="four chapters")
    with pytest.raises(loombridge.RecordExistsError):
        await live.context.record_step("planner:plan", output="ok", task=other)


# F04
async def test_long_term_memory_is_found_by_meaning_after_a_crash(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="a1", session_id="monday") as ctx:
        await ctx.memory_save(
            "retries stopped the flood", kind="pattern", embedding=[1, 0], embedding_space="m"
        )
    async with loombridge.connect(srv.address, agent_id="a1", session_id="sunday") as ctx:
        await ctx.memory_save("portfolio is hedged", kind="state")
    await srv.kill9()
    await srv.restart()
    async with loombridge.connect(srv.address, agent_id="a1", session_id="friday") as ctx:
        near = await ctx.memory_query(
            "back-off", embedding=[0.9, 0.1], embedding_space="m", mode="hybrid"
        )
        assert [hit.record.kind for hit in near] == ["pattern"]
        state = await ctx.memory_query("hedged portfolio", filter='kind = "state"')
        assert [hit.record.session_id for hit in state] == ["sunday"]


async def test_expansion_finds_no_less(live: loombridge.Client) -> None:
    await live.memory_save("deploy failed: disk full on the build machine", importance=0)
    await live.memory_save("deploy failed: disk full again", importance=0)
    await live.memory_save("deploy failed", importance=1)
    for min_score in (None, 0.2):
        plain, expanded = [
            await live.memory_query(
                "deploy failed", expand=expand, importance_weight=1, min_score=min_score
            )
            for expand in (False, True)
        ]
        assert len(expanded) >= len(plain) > 0


async def test_a_long_record_comes_in_passages(live: loombridge.Client) -> None:
    told = "The harbour pilot in Bergen is Marit, and she answers only before eight, naïvely."
    talk = "Then we spoke of the weather, of trains that are late, and of where to eat. " * 20
    whole = f"{talk}\n\n{told}\n\n{talk}"
    saved = await live.memory_save(whole)
    hits = await live.memory_query("Who is the harbour pilot?", max_tokens=40)
    assert hits.receipt.tokens <= 40
    (hit,) = hits
    assert (hit.record.id, hit.record.text) == (saved.id, "")
    assert hit.passages[0].text == told
    for passage in hit.passages:
        assert whole.encode()[passage.start : passage.end].decode() == passage.text
    assert (await live.memory.get(id=hit.record.id)).text == whole


# Y18, Y19
async def test_earlier_moments(live: loombridge.Client) -> None:
    old = await live.memory_save("She lives in Paris", event_time=datetime(2010, 1, 1, tzinfo=UTC))
    then = datetime.now(UTC)
    await live.memory_save(
        "She lives in Oslo", supersedes=old.id, event_time=datetime(2020, 1, 1, tzinfo=UTC)
    )
    held = await live.memory_query("where does she live", as_of=then)
    assert [hit.text for hit in held] == ["She lives in Paris"]
    assert held.receipt.reread == 1
    true = await live.memory_query("where does she live", valid_at=datetime(2015, 1, 1, tzinfo=UTC))
    assert [hit.text for hit in true] == ["She lives in Paris"]
    assert [record.text async for record in live.memory.list(as_of=then)] == ["She lives in Paris"]
