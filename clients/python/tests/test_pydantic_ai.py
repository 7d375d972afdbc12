"""The conversation store for Pydantic AI, on the real server."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

pytest.importorskip(
    "pydantic_ai.conversation_store", reason="Pydantic AI is not part of the lowest environment"
)

from pydantic_ai import Agent, BinaryContent, Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import loombridge
from loombridge import testing
from loombridge.pydantic_ai import LoomBridgeConversationStore, LoomBridgeToolset


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


async def test_an_agent_calls_the_tools_of_the_server(srv: testing.Server) -> None:
    asked: list[dict[str, object]] = [
        {"tool_name": "memory_save", "args": {"text": "Ann likes pears"}},
        {"tool_name": "fs_read_file", "args": {"path": ["a", "list"]}},
        {"tool_name": "fs_read_file", "args": {"path": "nowhere.txt"}},
        {"tool_name": "fs_list_dir", "args": {"path": float("nan")}},
    ]
    offered: list[set[str]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.append({tool.name for tool in info.function_tools})
        turn = len(offered) - 1
        if turn == len(asked):
            return ModelResponse([TextPart("Done.")])
        return ModelResponse([ToolCallPart(tool_call_id=f"c{turn}", **asked[turn])])  # pyright: ignore[reportArgumentType]

    with LoomBridgeToolset(srv.address, agent_id="desk") as toolset:
        agent = Agent(FunctionModel(model), toolsets=[toolset], retries=1)
        result = await agent.run("Remember me", conversation_id="ann")
        assert result.output == "Done."
        told = [part for message in result.all_messages() for part in message.parts]
        answers = [part.outcome for part in told if part.part_kind == "tool-return"]
        assert answers == ["success", "retried", "failed", "retried"]
        assert {"fs_read_file", "memory_save", "query_l4_memory"} < offered[0]
        # Another run enters and leaves it again.
        result = await Agent(TestModel(call_tools=["query_l1_memory"]), toolsets=[toolset]).run("?")
        assert "query_l1_memory" in result.output
    async with loombridge.connect(srv.address, agent_id="desk") as ctx:
        assert (await ctx.memory_query("pears"))[0].text == "Ann likes pears"
        entries = [each async for each in ctx.context.conversation(session_id="ann")]
        steps = [each.step for each in entries if each.step]
        assert [each.tool_name for each in steps] == ["memory:save", "fs:read_file", "fs:read_file"]
        few = LoomBridgeToolset(ctx, names=["fs:read_file", "word_count"], id="few")

        @ctx.tool
        def word_count(text: str) -> int:
            """Count the words of a text."""
            return len(text.split())

        await ctx.attach()
        result = await Agent(TestModel(call_tools=["word_count"]), toolsets=[few]).run("a b c")
        assert result.output == '{"word_count":"word_count → 1"}'
        assert few.id == "few"
