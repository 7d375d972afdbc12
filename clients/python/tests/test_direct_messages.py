"""Direct messages between agents."""

import json
from datetime import timedelta

import pytest

import loombridge
from loombridge import testing


async def test_direct_messages(srv: testing.Server) -> None:
    """A message is told, listed and shown in the target's prompt, once however often sent."""
    async with (
        loombridge.connect(srv.address, agent_id="msg-a", session_id="s1") as sender,
        loombridge.connect(srv.address, agent_id="msg-b", session_id="s1") as target,
        target.events.subscribe("agent.msg-b.messages") as told,
    ):
        first = await sender.send("msg-b", "The key is under the mat.", task_id="t1")
        again = await sender.send("msg-b", "The key is under the mat.", task_id="t1")
        assert (again.task_id, again.warning) == (first.task_id, "")
        with pytest.raises(loombridge.RecordExistsError):
            await sender.send("msg-b", "It is not.", task_id="t1")
        urgent = await sender.send(
            "msg-b",
            "Call before noon. " * 60,
            priority=0.9,
            ttl=60,
            session_id="s2",
            parent_task_id="p",
            role="user",
            node="node-7",
            metadata={"n": [1, None]},
        )
        assert "1000 characters" in urgent.warning
        event = await anext(told)
        assert event.payload["parameters"]["content"] == "The key is under the mat."
        assert (await anext(told)).payload["task_id"] == urgent.task_id

        one, two = await target.messages.list()
        assert (one.task_id, one.source, one.role, one.priority) == (
            urgent.task_id,
            "msg-a",
            "user",
            0.9,
        )
        assert (one.ttl, one.metadata, one.node) == (
            timedelta(seconds=60),
            {"n": [1.0, None]},
            "node-7",
        )
        assert (two.content, two.session_id, two.ttl) == ("The key is under the mat.", "s1", None)
        assert await target.messages.list(session_id="s1") == (two,)
        assert await target.messages.list(parent_task_id="p", limit=1) == (one,)

        prompt = await target.context.assemble(goal="Go home.", format="openai")
        assert "[Direct message from msg-a] The key is under the mat." in json.dumps(
            prompt.openai()
        )
        assert await target.messages.delete([one.task_id, two.task_id]) == 2
        assert await target.messages.delete("t1") == 0
        assert await target.messages.list() == ()


async def test_bad_messages(srv: testing.Server) -> None:
    """What breaks a rule is refused, by the client or by the server."""
    async with loombridge.connect(srv.address, agent_id="msg-c") as ctx:
        with pytest.raises(loombridge.InvalidRequestError, match="content"):
            await ctx.send("msg-d", " ")
        with pytest.raises(loombridge.InvalidRequestError, match="priority"):
            await ctx.send("msg-d", "x", priority=1.5)
        with pytest.raises(TypeError, match="content"):
            await ctx.send("msg-d", 1)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="ttl"):
            await ctx.send("msg-d", "x", ttl=0)
