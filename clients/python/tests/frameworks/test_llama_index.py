"""The memory block for LlamaIndex, on the real server."""

from collections.abc import AsyncGenerator

import pytest

pytest.importorskip("llama_index.core.memory", reason="LlamaIndex is not installed")

from llama_index.core.base.llms.types import ChatMessage, ImageBlock
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

import loombridge
from conftest import EXAMPLES
from interpreters import run
from loombridge import testing
from loombridge.llama_index import LoomBridgeMemoryBlock


@pytest.fixture
async def block(srv: testing.Server) -> AsyncGenerator[LoomBridgeMemoryBlock, None]:
    async with LoomBridgeMemoryBlock(srv.address, user_id="ann") as block:
        yield block


@pytest.fixture
async def engine() -> AsyncGenerator[AsyncEngine, None]:
    """Where LlamaIndex has what is said now; what it makes itself it never closes."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")
    yield engine
    await engine.dispose()


def memory(block: LoomBridgeMemoryBlock, session: str, engine: AsyncEngine) -> Memory:
    return Memory.from_defaults(  # pyright: ignore[reportUnknownMemberType]
        session_id=session,
        memory_blocks=[block],
        token_limit=300,
        token_flush_size=100,
        chat_history_token_ratio=0.5,
        async_engine=engine,
    )


async def talk(mine: Memory) -> None:
    await mine.aput(ChatMessage("I am allergic to pears.", role="user"))
    for number in range(12):
        await mine.aput(ChatMessage(f"Noted: {number} " + "and so on " * 10, role="assistant"))
        await mine.aput(ChatMessage(f"Thing {number}?", role="user"))


async def test_what_was_said_long_ago_is_known_after_a_kill(
    srv: testing.Server, engine: AsyncEngine
) -> None:
    async with LoomBridgeMemoryBlock(srv.address) as block:
        await talk(memory(block, "s1", engine))
    await srv.kill9()
    await srv.start()
    async with LoomBridgeMemoryBlock(srv.address) as block:
        later = memory(block, "s2", engine)
        await later.aput(ChatMessage("What am I allergic to? Pears?", role="user"))
        assert "I am allergic to pears." in str(await later.aget())
    async with loombridge.connect(srv.address, agent_id="llama-index") as ctx:
        records = await ctx.memory.list()
        assert {record.session_id for record in records} == {"s1"}
        assert records[0].metadata["llama_index"]["role"] == "user"


async def test_what_is_found_is_shortened_from_its_end(block: LoomBridgeMemoryBlock) -> None:
    said = [ChatMessage(f"Pears of kind {number}", role="user") for number in range(20)]
    await block.aput(said, session_id="s")
    assert not any(message.additional_kwargs for message in said)
    found = await block.aget([ChatMessage("pears", role="user")])
    assert len(found.splitlines()) == 20
    shorter = await block.atruncate(found, 40)
    assert shorter is not None
    assert found.startswith(shorter)
    assert 0 < len(shorter.splitlines()) < 18
    assert await block.atruncate(found, 10_000) is None


async def test_nothing_is_asked_for_without_words(block: LoomBridgeMemoryBlock) -> None:
    assert await block.aget() == ""
    assert await block.aget([ChatMessage(" ", role="user")]) == ""
    await block.aput([ChatMessage(role="user", blocks=[ImageBlock(url="http://localhost/a.png")])])
    assert await block.aget([ChatMessage("pears", role="user")]) == ""


async def test_an_error_of_the_server_is_typed(srv: testing.Server) -> None:
    async with LoomBridgeMemoryBlock(srv.address) as block:
        await block.aput([ChatMessage("Pears", role="user")])
        await srv.kill9()
        with pytest.raises(loombridge.ServerUnreachableError):
            await block.aget([ChatMessage("pears", role="user")])


async def test_what_an_agent_knows_after_a_kill(srv: testing.Server) -> None:
    # LlamaIndex asks pydantic for what is deprecated there.
    example = EXAMPLES / "frameworks" / "llama_index_agent.py"
    code, output = await run("-W", "default", example, LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    answer = "Which pears am I allergic to? I know: I am allergic to pears."
    assert answer in output.splitlines(), output
