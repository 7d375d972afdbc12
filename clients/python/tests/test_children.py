"""Children: agents that an agent spawns."""

import asyncio
import json

import pytest

import loombridge
from loombridge import testing


# C03, C04, C06, P18, P19, P20, P21
async def test_children(srv: testing.Server) -> None:
    """A parent spawns children, which work within their limits and return one result each."""
    async with loombridge.connect(srv.address, agent_id="kin-p", session_id="s1") as parent:
        async with parent.spawn("kin-1", goal="Count to three.", tools=["fs:write_file"]) as first:
            second = await parent.spawn("kin-2", goal="Count to three.")
            lazy = await parent.spawn(
                "kin-3", goal="Do nothing.", limits=loombridge.ChildLimits(timeout=0.2)
            )
            with pytest.raises(loombridge.AgentExistsError):
                await parent.spawn("kin-1", goal="Again.")
            async with loombridge.connect(
                srv.address, agent_id=first.id, session_id=first.session_id
            ) as child:
                prompt = await child.context.assemble(format="openai")
                assert "Goal: Count to three." in json.dumps(prompt.openai())
                wrote = await child.tool("fs:write_file", {"path": "n.txt", "content": "1 2 3"})
                assert wrote.success
                assert (srv.workspace / "kin-1" / "n.txt").read_text() == "1 2 3"
                refused = await child.tool("fs:read_file", {"path": "n.txt"})
                assert refused.error is not None
                assert "Permission denied" in refused.error.message
                done = await child.complete("one, two, three")
                assert (done.status, done.parent, done.depth) == ("succeeded", "kin-p", 1)
                with pytest.raises(loombridge.AgentEndedError):
                    await child.tool("fs:write_file", {"path": "n.txt", "content": "4"})
            async with loombridge.connect(srv.address, agent_id=second.id) as child:
                await child.complete("one, two, three")
            assert await first.result(wait=5) == "one, two, three"
            with pytest.raises(loombridge.ChildFailedError) as caught:
                await lazy.result(wait=10)
            assert caught.value.child.error == "timeout"
            outcome = await parent.gather(first, second, "kin-3", wait=5)
            assert not outcome.pending
            assert outcome.text == "[kin-1, kin-2] one, two, three\n\n[kin-3] ✗ timeout"
        steps = [each.observation for each in await parent.context.steps()]
        assert steps[:2] == ["Spawned sub-agent kin-2", "Spawned sub-agent kin-3"]
        assert "Received sub result from kin-1" in steps


async def test_a_block_stops_its_child(srv: testing.Server) -> None:
    """A child that has not returned when the block is left is stopped."""
    async with loombridge.connect(srv.address, agent_id="kin-q") as parent:
        async with parent.spawn("kin-4", goal="Wait.") as child:
            waiting = asyncio.create_task(child.result())
            assert (await parent.gather(child, wait=0)).pending == ("kin-4",)
        with pytest.raises(loombridge.ChildFailedError, match="stopped by its parent"):
            await waiting
        with pytest.raises(loombridge.AgentNotFoundError):
            await parent.gather("nobody", wait=0)


# C01, C03
async def test_forks(srv: testing.Server) -> None:
    """A fork knows what its parent knew when it sent a prompt, and nothing that came later."""
    async with loombridge.connect(srv.address, agent_id="kin-r", session_id="s1") as parent:
        for n in range(5):
            await parent.context.record_step("my.tool", output=f"found {n}: " + "words " * 50)
        sent = await parent.context.assemble(system="You are careful.", format="openai")
        await parent.context.record_step("my.tool", output="found later")
        await parent.context.assemble(format="openai")
        first = await parent.spawn("kin-5", goal="Go on.", fork=sent.receipt.prompt_id)
        last = await parent.spawn("kin-6", goal="Go on.", fork=True)
        for child, knows in ((first, False), (last, True)):
            async with loombridge.connect(
                srv.address, agent_id=child.id, session_id=child.session_id
            ) as ctx:
                prompt = await ctx.context.assemble(format="openai")
                messages = prompt.openai()["messages"]
                assert ("found later" in json.dumps(messages)) == knows
                assert messages[-1] == {"role": "user", "content": "Goal: Go on."}
                if not knows:
                    said = sent.openai()["messages"]
                    assert messages[: len(said)] == said
                    assert prompt.openai()["tools"] == sent.openai()["tools"]
        with pytest.raises(loombridge.PromptGoneError):
            await parent.spawn("kin-7", goal="Go on.", fork="nothing")
