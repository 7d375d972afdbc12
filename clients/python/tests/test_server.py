"""The client against the real binary: what the README and the protos promise."""

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

import loombridge
from loombridge import testing


async def test_memory_is_found_by_the_next_query(live: loombridge.Client) -> None:
    saved = await live.memory_save(
        "Bitcoin closed at 45,000", metadata={"source": "desk", "n": 2**70}, tags=["market"]
    )
    hits = await live.memory_query({"query": "Bitcoin price analysis", "limit": 5})
    assert [hit.record.id for hit in hits] == [saved.id]
    record = hits[0].record
    assert record.metadata == {"source": "desk", "n": 2**70}
    assert (record.kind, record.origin, record.tags) == ("fact", "agent", ("market",))
    assert record.create_time == saved.create_time
    assert 0 < hits[0].score <= 1
    assert hits.receipt.records == 1
    assert await live.memory.get(id=saved.id) == record


async def test_memory_filters_keys_and_replacement(live: loombridge.Client) -> None:
    first = await live.memory_save("The user is called Ann", key="user.name")
    with pytest.raises(loombridge.RecordExistsError, match=r"taken.*save with replace=True"):
        await live.memory_save("The user is called Bob", key="user.name")
    with pytest.raises(loombridge.RecordExistsError) as taken:
        await live.memory_save("The user is called Bob", id=first.id)
    assert "replace" not in str(taken.value)  # It replaces what a key names.
    second = await live.memory_save(
        "The user is called Bob", key="user.name", supersedes=first.id, tags=["name"]
    )
    assert (await live.memory.get(key="user.name")).id == second.id
    found = await live.memory_query("user called", filter='tags:"name"')
    assert [hit.record.id for hit in found] == [second.id]
    with pytest.raises(loombridge.InvalidFilterError) as unknown:
        await live.memory_query("user", filter='colour = "red"')
    assert str(unknown.value).count("served are") == 1
    assert str(unknown.value).endswith(" and metadata")
    with pytest.raises(loombridge.RecordNotFoundError):
        await live.memory.get(key="user.age")


async def test_memory_expires(live: loombridge.Client) -> None:
    saved = await live.memory_save("gone soon", ttl=timedelta(milliseconds=300))
    assert saved.expire_time
    assert saved.expire_time - saved.create_time == timedelta(milliseconds=300)
    await asyncio.sleep(0.4)
    assert not await live.memory_query("gone soon")


async def test_request_id_gives_the_first_answer(live: loombridge.Client) -> None:
    first = await live.memory_save("once", request_id="q1")
    assert await live.memory_save("once", request_id="q1") == first
    with pytest.raises(loombridge.RequestIdReusedError):
        await live.memory_save("twice", request_id="q1")


async def test_bad_input_names_every_field(live: loombridge.Client) -> None:
    with pytest.raises(loombridge.InvalidRequestError) as caught:
        await live.memory_save("", importance=2.0, tags=[""])
    assert {violation.field for violation in caught.value.violations} == {
        "text",
        "importance",
        "tags[0]",
    }


# D05
async def test_tool_steps_and_blobs(live: loombridge.Client, srv: testing.Server) -> None:
    text = "".join(f"line {i}\n" for i in range(1000))
    (srv.workspace / "a.txt").write_text(text)
    result = await live.tool("fs:read_file", {"path": "a.txt"}, thought="look")
    assert result.raise_for_error().output["content"] == text
    assert result.step
    assert result.blob
    assert (result.step.id, result.step.thought) == ("step_001", "look")
    assert result.blob.ref == hashlib.sha256(text.encode()).hexdigest()
    for name in (result.blob.path, result.blob.ref, result.step.id):
        assert await live.context.read_blob(name) == text.encode()
        again = await live.tool("fs:read_file", {"path": name})
        assert again.raise_for_error().output["content"] == text
    assert await live.context.read_blob("step_001", offset=5, limit=7) == text.encode()[5:12]
    step = await live.context.step("step_001")
    assert step.inline == result.output["content"]
    assert replace(step, inline="") == result.step
    every = [step async for step in live.context.all_steps()]
    assert [step.id for step in every] == ["step_001", "step_002", "step_003", "step_004"]
    assert len(await live.context.steps()) == 4
    with pytest.raises(loombridge.BlobNotFoundError):
        await live.context.read_blob("f" * 64)
    with pytest.raises(loombridge.StepNotFoundError):
        await live.context.step("step_999")


async def test_a_large_result_is_listed_searched_and_kept(
    live: loombridge.Client, srv: testing.Server
) -> None:
    (srv.workspace / "a.txt").write_text("".join(f"line {i}\n" for i in range(1000)))
    made = (await live.tool("fs:read_file", {"path": "a.txt"})).blob
    assert made
    assert (made.agent_id, made.category, made.tier) == ("a1", "read", "working")
    assert made.ttl
    assert made.expire_time == made.create_time + made.ttl
    listing = live.context.list_blobs(session_id="s1", step_id="step_001", kind="text")
    assert [blob async for blob in listing] == [made]
    assert listing.usage
    assert (listing.usage.count, listing.usage.bytes) == (1, made.size)
    assert not [blob async for blob in live.context.list_blobs(session_id="s2")]

    search = live.context.search_blobs(made.path, regexp="^LINE 9[0-9]$", ignore_case=True)
    found = [line for part in [part async for part in search] for line in part.matches]
    assert [line.text for line in found] == [f"line {i}" for i in range(90, 100)]
    assert (found[0].line, found[0].length) == (91, 7)
    data = await live.context.read_blob(made.ref, offset=found[0].offset, limit=found[0].length)
    assert data == b"line 90"
    lines, token = list[int](), ""
    while token or not lines:
        search = live.context.search_blobs(
            "step_001", literal="line", max_matches=300, page_token=token
        )
        lines += [match.line async for part in search for match in part.matches]
        token = search.next_page_token
    assert lines == list(range(1, 1001))

    kept = await live.context.promote_blob(made.ref, tier="long_term", new_name="lines.txt")
    assert kept.path == "persistent/a1/read/lines.txt"
    assert (kept.tier, kept.ttl, kept.expire_time) == ("long_term", None, None)
    assert made.path in kept.aliases
    assert [blob async for blob in live.context.list_blobs(tier="long_term")] == [kept]
    would = await live.context.collect_garbage(dry_run=True)
    assert (would.deleted_count, would.deleted_refs, would.more) == (0, (), False)
    assert would.kept.long_term == 1
    for name in (made.path, kept.path):
        assert len(await live.context.read_blob(name)) == made.size


async def test_the_archive_is_searched(live: loombridge.Client, srv: testing.Server) -> None:
    (srv.workspace / "a.txt").write_text("the quick brown fox\n" * 500)
    (srv.workspace / "b.txt").write_text("a lazy dog\n" * 1000)
    for number, tag in enumerate(("fox", "dog"), 1):
        await live.tool("fs:read_file", {"path": f"{'ab'[number - 1]}.txt"})
        blob = await live.context.archive_blob(
            f"step_00{number}", category="reports", tags=["animal", tag], request_id=tag
        )
        assert blob.archive
        assert blob.path.startswith("archive/reports/")
        assert (blob.archive.category, set(blob.archive.tags)) == ("reports", {"animal", tag})
    async with live.context.search_blobs(words="quick foxes fox") as search:
        found = [each async for each in search]
    assert [each.blob.step_id for each in found] == ["step_001"]
    assert found[0].more
    assert [line.text for line in found[0].matches] == ["the quick brown fox"] * 3
    assert not search.incomplete
    tagged = live.context.search_blobs(category="reports", tags=["animal"])
    assert {each.blob.step_id async for each in tagged} == {"step_001", "step_002"}
    assert len([blob async for blob in live.context.list_blobs(archived=True)]) == 2
    with pytest.raises(loombridge.BlobNotFoundError):
        await live.context.archive_blob("f" * 64)
    with pytest.raises(loombridge.InvalidRequestError):
        await anext(live.context.search_blobs("step_001", regexp="("))


async def test_tool_failures_and_refusals(live: loombridge.Client) -> None:
    missing = await live.tool("fs:read_file", {"path": "nothing"})
    assert missing.error
    assert missing.error.code == "not_found"
    escape = await live.tool("fs:read_file", {"path": "../secret"})
    assert escape.error
    assert escape.error.code == "permission_denied"
    with pytest.raises(loombridge.ToolNotFoundError) as unknown:
        await live.tool("fs:read")
    assert unknown.value.nearest == "fs:read_file"
    with pytest.raises(loombridge.InvalidArgumentsError) as wrong:
        await live.tool("fs:read_file", {"path": 5})
    assert wrong.value.violations
    assert wrong.value.schema["required"] == ["path"]


async def test_tools_are_listed(live: loombridge.Client) -> None:
    tools = await live.tools.list()
    names = [tool.name for tool in tools]
    assert names == sorted(names)
    assert {"fs:read_file", "fs:write_file", "fs:list_dir", "fs:search"} <= set(names)
    assert (await live.status()).tools == len(tools)


async def test_events_resume_across_kill_9(live: loombridge.Client, srv: testing.Server) -> None:
    await live.emit("t", {"n": 1})
    async with live.events.subscribe({"t": 0}) as subscription:
        assert (await anext(subscription)).payload == {"n": 1}
        await srv.kill9()
        await srv.start()
        await live.emit("t", {"n": 2**60}, request_id="q2")
        event = await anext(subscription)
    assert (event.sequence, event.payload, event.source) == (2, {"n": 2**60}, "a1")
    with pytest.raises(loombridge.PositionUnknownError):
        await anext(live.events.subscribe({"t": 99}))


async def test_events_from_now_on_volatile_and_bytes(live: loombridge.Client) -> None:
    await live.emit("t", "old")
    async with live.events.subscribe("t") as subscription:
        await live.emit("t", "new")
        emitted = await live.emit("t", b"\x00\xff", volatile=True, headers={"h": "v"})
        events = [await anext(subscription) for _ in range(2)]
    assert emitted.sequence == 0
    # A volatile event may overtake a durable one: they go different ways.
    by_sequence = {event.sequence: event for event in events}
    assert by_sequence[2].payload == "new"
    assert (by_sequence[0].payload, by_sequence[0].headers) == (b"\x00\xff", {"h": "v"})


async def test_reserved_topics_are_refused(live: loombridge.Client) -> None:
    with pytest.raises(loombridge.ReservedTopicError):
        await live.emit("agent.status", {"child_id": "r-2"})


async def test_prompt_holds_the_conversation_and_the_steps(
    live: loombridge.Client, srv: testing.Server
) -> None:
    (srv.workspace / "a.txt").write_text("hello")
    await live.context.append(
        {"role": "user", "content": "What does a.txt say?"},
        loombridge.Message(
            "assistant",
            tool_calls=(loombridge.ToolCall("c1", "fs_read_file", '{"path":"a.txt"}'),),
        ),
    )
    await live.tool("fs_read_file", {"path": "a.txt"}, call_id="c1")
    prompt = await live.context.assemble(goal="Answer.", system="Be brief.")
    roles = [message.role for message in prompt.messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert prompt.messages[3].tool_call_id == "c1"
    assert "hello" in prompt.messages[3].content
    assert set(prompt.parts) == {"system", "tools", "history", "goal"}
    # A few tokens belong to the frame that a provider puts around a prompt.
    assert 0 <= prompt.tokens - sum(prompt.parts.values()) < 10
    # The list of objects that fs:edit_file takes is beyond the published rule of counting.
    assert prompt.certainty == "estimated"
    assert (await live.context.assemble(goal="Answer.", system="Be brief.", tools=False)).exact
    chat = (await live.context.assemble(goal="Answer.", format="openai")).openai()
    assert [message["role"] for message in chat["messages"]] == roles[1:]
    assert all(tool["type"] == "function" for tool in chat["tools"])
    with pytest.raises(loombridge.ContextOverflowError) as caught:
        await live.context.assemble(goal="Answer.", max_tokens=50)
    assert caught.value.part
    assert caught.value.total_tokens > caught.value.max_tokens == 50


async def test_tokens(live: loombridge.Client) -> None:
    assert await live.context.count_tokens("hello world") == (
        loombridge.TokenCount(2, "o200k_base", "exact")
    )


async def test_two_agents_do_not_see_each_other(
    live: loombridge.Client, srv: testing.Server
) -> None:
    saved = await live.memory_save("mine alone")
    async with loombridge.connect(srv.address, agent_id="a2") as other:
        assert not await other.memory_query("mine alone")
        with pytest.raises(loombridge.RecordNotFoundError):
            await other.memory.get(id=saved.id)
        await other.memory_save("for all who serve Ann", user_id="ann")
    assert len(await live.memory_query("serve Ann", user_id="ann")) == 1


async def test_what_was_acknowledged_survives_kill_9(
    live: loombridge.Client, srv: testing.Server
) -> None:
    saved = [await live.memory_save(f"fact number {i}") for i in range(5)]
    pid = srv.pid
    await srv.kill9()
    await srv.start()
    assert srv.pid != pid
    for each in saved:
        assert (await live.memory.get(id=each.id)).id == each.id


async def test_stop_ends_subscriptions_and_restart_goes_on(
    live: loombridge.Client, srv: testing.Server
) -> None:
    async with live.events.subscribe("t", reconnect=False) as subscription:
        reading = asyncio.create_task(anext(subscription))
        await srv.restart()
        with pytest.raises((loombridge.ShuttingDownError, loombridge.ServerUnreachableError)):
            await reading
    assert (await live.status()).version
