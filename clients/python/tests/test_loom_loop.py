"""`loombridge.loom`: what the cognitive loop of loom-py runs is recorded."""

from pathlib import Path

from fake import Fake
from loomlog import Log, failing, running
from loomv1.agent import Agent
from loomv1.cognitive import executor


async def test_what_the_loop_runs_in_python_is_recorded(
    fake: Fake, log: Log, tmp_path: Path
) -> None:
    agent = Agent("a", [], address=fake.address)
    async with running(agent) as bridge:
        loop = executor.ToolExecutor(agent.ctx, permission_callback=lambda *_: True)
        path = tmp_path / "note.txt"
        arguments = {"path": str(path), "content": "hello"}
        seen = await loop.execute_tool(executor.ToolCall("fs:write_file", arguments))
        assert seen.success
        assert await bridge.flush()
    assert path.read_text() == "hello"
    output = {"path": str(path), "bytes_written": 5}
    assert log.steps() == [("fs:write_file", arguments, output)]


async def test_what_a_person_refuses_is_recorded(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    async with running(agent) as bridge:
        loop = executor.ToolExecutor(agent.ctx, permission_callback=lambda *_: False)
        seen = await loop.execute_tool(executor.ToolCall("fs:delete", {"path": "x"}))
        assert seen.error == "Action denied by user"
        assert await bridge.flush()
    assert log.steps() == [("fs:delete", {"path": "x"}, "error: Action denied by user")]


async def test_what_the_loop_sends_to_the_core_is_recorded_once(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    agent.client.answers["web:search"] = lambda _call: '{"count": 0}'
    agent.client.answers["web:fetch"] = failing("EXECUTION_ERROR", "Execution failed: 500")
    async with running(agent) as bridge:
        loop = executor.ToolExecutor(agent.ctx)
        await loop.execute_tool(executor.ToolCall("web:search", {"query": "x"}))
        await loop.execute_tool(executor.ToolCall("web:fetch", {"url": "y"}))
        assert await bridge.flush()
    assert log.steps() == [
        ("web:search", {"query": "x"}, {"count": 0}),
        ("web:fetch", {"url": "y"}, "error: Execution failed: 500"),
    ]


async def test_a_refusal_overruled_is_both_steps(fake: Fake, log: Log) -> None:
    agent = Agent("a", [], address=fake.address)
    refusal = "Permission denied: Command 'tar' is not allowed"
    agent.client.answers["system:shell"] = failing("EXECUTION_ERROR", refusal)
    async with running(agent) as bridge:
        loop = executor.ToolExecutor(agent.ctx, permission_callback=lambda *_: True)
        await loop.execute_tool(executor.ToolCall("system:shell", {"command": "tar"}))
        assert await bridge.flush()
    assert log.steps() == [
        ("system:shell", {"command": "tar"}, f"error: {refusal}"),
        ("system:shell", {"command": "tar"}, {"stdout": "ran", "exit_code": 0}),
    ]


async def test_the_loop_of_another_agent_is_left_alone(fake: Fake, log: Log) -> None:
    attached, other = Agent("a", [], address=fake.address), Agent("b", [])
    async with running(attached) as bridge:
        loop = executor.ToolExecutor(other.ctx)
        await loop.execute_tool(executor.ToolCall("fs:delete", {"path": "x"}))
        assert await bridge.flush()
    assert log.requests == []
