"""The conversation store for Pydantic AI, on the real server."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

pytest.importorskip(
    "pydantic_ai.conversation_store", reason="Pydantic AI is not part of the lowest environment"
)

from pydantic_ai import Agent, BinaryContent, Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.models.test import TestModel

import loombridge
from loombridge import testing
from loombridge.pydantic_ai import LoomBridgeConversationStore


@pytest.fixture
async def store(srv: testing.Server) -> AsyncGenerator[LoomBridgeConversationStore, None]:
    async with LoomBridgeConversationStore(srv.address) as store:
        yield store


async def say(store: LoomBridgeConversationStore, name: str, text: str, scope: str = "s") -> None:
    agent = Agent(TestModel(custom_output_text=f"heard {text}"))
    conversation = await store.load(name) or Conversation(conversation_id=name)
    await store.save(await agent.run(text, conversation=conversation), scope=scope)


async def test_a_conversation_goes_on_where_a_killed_server_stopped(srv: testing.Server) -> None:
    async with LoomBridgeConversationStore(srv.address) as store:
        await say(store, "ann", "I like pears")
    await srv.kill9()
    await srv.start()
    async with LoomBridgeConversationStore(srv.address) as store:
        await say(store, "ann", "What do I like?")
        loaded = await store.load("ann")
        assert loaded is not None
        assert len(loaded.messages) == 4
        assert "I like pears" in str(loaded.messages[0])
        assert loaded.usage.requests == 2
        assert await store.load("ann", scope="other") is None
        assert await store.load("bob") is None
    async with loombridge.connect(srv.address, agent_id="pydantic-ai") as ctx:
        assert "pears" in (await ctx.memory_query("likes pears"))[0].text
        assert len(await ctx.memory.list()) == 5


async def test_one_of_two_writers_is_refused(store: LoomBridgeConversationStore) -> None:
    await say(store, "ann", "first")
    done = await asyncio.gather(
        say(store, "ann", "a"), say(store, "ann", "b"), return_exceptions=True
    )
    assert sorted(map(type, done), key=str) in (
        [type(None), ConversationConflict],
        [ConversationConflict, type(None)],
    )
    loaded = await store.load("ann")
    assert loaded is not None
    assert len(loaded.messages) == 4


async def test_what_a_fork_needs_outlives_what_is_deleted(
    store: LoomBridgeConversationStore, srv: testing.Server
) -> None:
    await say(store, "ann", "first")
    await say(store, "ann*", "other", scope="t")
    forked = await store.fork("ann")
    await store.delete("ann")
    loaded = await store.load(forked.conversation_id)
    assert loaded is not None
    assert len(loaded.messages) == 2
    assert [each.conversation_id for each in await store.read_records(scope="t")] == ["ann*"]
    await store.delete(forked.conversation_id)
    await store.delete("ann*")
    async with loombridge.connect(srv.address, agent_id="pydantic-ai") as ctx:
        assert {record.kind for record in await ctx.memory.list()} <= {"pydantic.entry"}
    with pytest.raises(KeyError):
        await store.read_entry("none")


async def test_bytes_come_back(store: LoomBridgeConversationStore) -> None:
    picture = BinaryContent(bytes(range(256)), media_type="image/png")
    agent = Agent(TestModel(custom_output_text="seen"))
    conversation = Conversation(conversation_id="ann")
    await store.save(await agent.run(["what is it?", picture], conversation=conversation))
    for limit in (None, 1, 2, 20):
        loaded = await store.load("ann", limit=limit)
        assert loaded is not None
        assert len(loaded.messages) == min(limit or 2, 2)
    assert repr(picture.data) in repr(loaded.messages[0])
