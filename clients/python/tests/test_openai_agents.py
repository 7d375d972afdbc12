"""The session for the OpenAI Agents SDK, on the real server."""

import asyncio
import math
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

pytest.importorskip("agents", reason="the SDK is not part of the lowest environment")

from agents import Agent, RunConfig, Runner, SessionSettings, ToolOutputText, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

import loombridge
from loombridge import testing
from loombridge.openai_agents import LoomBridgeHooks, LoomBridgeSession

QUIET = RunConfig(tracing_disabled=True)


def said(text: str) -> Any:
    return {"role": "user", "content": text}


def texts(items: object) -> list[str]:
    return [item["content"] for item in cast("list[dict[str, str]]", items)]


@pytest.fixture
async def session(srv: testing.Server) -> AsyncGenerator[LoomBridgeSession, None]:
    async with LoomBridgeSession("ann", srv.address) as session:
        yield session


async def test_items_come_back_in_order(session: LoomBridgeSession, srv: testing.Server) -> None:
    await session.add_items([said("a"), said("b")])
    await session.add_items([])
    await session.add_items([said("c")])
    assert texts(await session.get_items()) == ["a", "b", "c"]
    assert texts(await session.get_items(2)) == ["b", "c"]
    assert await session.get_items(0) == []
    assert await session.pop_item() == said("c")
    async with LoomBridgeSession("bob", srv.address) as other:
        assert await other.get_items() == []
        assert await other.pop_item() is None
    async with LoomBridgeSession("ann", srv.address, session_settings={"limit": 1}) as again:
        assert texts(await again.get_items()) == ["b"]
        assert again.session_settings == SessionSettings(limit=1)
    await session.clear_session()
    assert await session.get_items() == []


async def test_an_item_is_exact_and_may_be_long(
    session: LoomBridgeSession, srv: testing.Server
) -> None:
    long = said("é*\x00" * 300_000)
    odd = {"content": "\ud800 half", "type": "x", "deep": [[{"n": 0.1}]]}
    await session.add_items([said("a"), long, cast("Any", odd)])
    assert await session.get_items() == [said("a"), long, odd]
    assert await session.get_items(2) == [long, odd]
    await session.pop_item()
    assert await session.pop_item() == long
    assert await session.get_items() == [said("a")]
    async with loombridge.connect(srv.address, agent_id="openai-agents") as ctx:
        assert len(await ctx.memory.list()) == 1


async def test_two_who_pop_get_different_items(session: LoomBridgeSession) -> None:
    await session.add_items([said(str(n)) for n in range(8)])
    popped = await asyncio.gather(*(session.pop_item() for _ in range(8)))
    assert sorted(texts(popped)) == [str(n) for n in range(8)]
    assert await session.pop_item() is None


async def test_a_history_is_replaced_in_one_commit(
    session: LoomBridgeSession, srv: testing.Server
) -> None:
    async with loombridge.connect(srv.address, agent_id="openai-agents") as ctx:
        await session.add_items([said(str(n)) for n in range(5)])
        old = await ctx.memory.list()
        replaced = session._atomic_replace_items([said("sum")])  # pyright: ignore[reportPrivateUsage]  the SDK calls it
        assert await replaced
        await session.add_items([said("after")])
        assert texts(await session.get_items()) == ["sum", "after"]
        assert texts(await session.get_items(1)) == ["after"]
        left = await ctx.memory.list()
        assert not {record.id for record in old} & {record.id for record in left}
        assert len(left) == 3
        await session.clear_session()
        assert await ctx.memory.list() == []


# As if a process had been killed behind the commit, and another had added meanwhile.
async def test_what_a_replacement_left_is_not_seen(
    session: LoomBridgeSession, srv: testing.Server
) -> None:
    async with loombridge.connect(srv.address, agent_id="openai-agents") as ctx:
        await session.add_items([said("old"), said("older")])
        first, last = await ctx.memory.list()
        await session.add_items([said("meanwhile")])

        def draft(text: str, **about: object) -> loombridge.RecordDraft:
            return loombridge.RecordDraft(
                text=text, kind=first.kind, session_id="ann", metadata={"openai": about}
            )

        drafts = [draft('{"content":"sum"}', batch="b"), draft("-", batch="b", through=last.id)]
        await ctx.memory.save_many(drafts[:1])
        assert texts(await session.get_items()) == ["old", "older", "meanwhile"]
        await ctx.memory.save_many(drafts)
        assert texts(await session.get_items())[-1:] == ["meanwhile"]
        assert "old" not in texts(await session.get_items())
        await session.clear_session()
        assert await session.get_items() == []


async def test_an_agent_goes_on_where_a_killed_server_stopped(srv: testing.Server) -> None:
    model = ScriptedModel()
    agent = Agent(name="desk", model=model)
    async with LoomBridgeSession("ann", srv.address) as session:
        model.enqueue([assistant_message("Noted.")])
        await Runner.run(agent, "I like pears", session=session, run_config=QUIET)
    await srv.kill9()
    await srv.start()
    async with LoomBridgeSession("ann", srv.address) as session:
        model.enqueue([assistant_message("Pears.")])
        result = await Runner.run(agent, "What do I like?", session=session, run_config=QUIET)
        assert result.final_output == "Pears."
        assert texts(await session.get_items())[0] == "I like pears"
    async with loombridge.connect(srv.address, agent_id="openai-agents") as ctx:
        assert "I like pears" in (await ctx.memory_query("who likes pears"))[0].text


async def test_other_event_loops_and_threads_may_use_it(session: LoomBridgeSession) -> None:
    def elsewhere() -> None:
        asyncio.run(session.add_items([said("there")]))

    await asyncio.to_thread(elsewhere)
    await asyncio.to_thread(elsewhere)
    assert texts(await session.get_items()) == ["there", "there"]


@function_tool
def hours(day: str) -> dict[str, str]:
    """Say when the desk is open."""
    return {day: "9:00 to 17:30 " * 500}


@function_tool
def label() -> ToolOutputText:
    """Say what stands on the door."""
    return ToolOutputText(text="Desk")


@function_tool
def broken() -> str:
    """Fail."""
    raise OSError("no such desk")


@function_tool
def odd(number: float) -> list[Any]:
    """Return the number, and behind one that is infinite the list itself."""
    found: list[Any] = [number]
    if math.isinf(number):
        found.append(found)
    return found


@function_tool(timeout=0.01)
async def slow() -> str:
    """Take too long."""
    await asyncio.Event().wait()
    return "never"


async def test_what_tools_and_handoffs_did_are_steps(srv: testing.Server) -> None:
    other = Agent(name="Night desk", model=ScriptedModel([[assistant_message("It is closed.")]]))
    asked = [
        [function_call("hours", {"day": "Friday"}, call_id="c1")],
        [function_call(name, "{}", call_id=name) for name in ("label", "broken", "slow")],
        [function_call("transfer_to_night_desk", "{}", call_id="c5")],
    ]
    tools = [hours, label, broken, slow]
    agent = Agent(name="Desk", model=ScriptedModel(asked), tools=list(tools), handoffs=[other])
    async with loombridge.connect(srv.address, agent_id="desk") as ctx:
        async with LoomBridgeHooks("ann", ctx) as hooks:
            await Runner.run(agent, "When is it open?", hooks=hooks, run_config=QUIET)
            run = Runner.run_streamed(
                Agent(
                    name="again", model=ScriptedModel([*asked[:1], [assistant_message("Ok.")]])
                ).clone(tools=[hours]),
                "And now?",
                hooks=hooks,
                run_config=QUIET,
            )
            assert [event async for event in run.stream_events()]
        entries = [each async for each in ctx.context.conversation(session_id="ann")]
        steps = [each.step for each in entries if each.step]
        parallel = sorted(steps[1:4], key=lambda step: step.tool_name)
        told = [(each.tool_name, each.call_id, each.outcome) for each in steps]
        assert told[0] == told[-1] == ("hours", "c1", "succeeded")
        assert [(each.tool_name, each.outcome) for each in parallel] == [
            ("broken", "failed"),
            ("label", "succeeded"),
            ("slow", "failed"),
        ]
        assert told[4] == ("transfer_to_night_desk", "", "succeeded")
        assert steps[0].minimal_args == {"day": "Friday"}
        kept = await ctx.context.read_blob(steps[0].id, session_id="ann")
        assert b'"Friday": "9:00 to 17:30 ' in kept or b'"Friday":"9:00 to 17:30 ' in kept
        assert "timed out" in parallel[2].error


async def test_what_is_no_json_is_a_step_as_well(srv: testing.Server) -> None:
    given = ['{"number": NaN}', '{"number": 1e999}']
    turns = [[function_call("odd", each, call_id=each)] for each in given]
    model = ScriptedModel([*turns, [assistant_message("Ok.")]])
    async with loombridge.connect(srv.address, agent_id="desk") as ctx:
        hooks = LoomBridgeHooks("ann", ctx)
        run = Runner.run(Agent(name="Desk", model=model, tools=[odd]), "Go", hooks=hooks)
        assert (await run).final_output == "Ok."
        entries = [each async for each in ctx.context.conversation(session_id="ann")]
        steps = [each.step for each in entries if each.step]
        assert [each.minimal_args for each in steps] == [{"arguments": each} for each in given]
        kept = [await ctx.context.read_blob(each.id, session_id="ann") for each in steps]
        assert kept == [b"[nan]", b"[inf, [...]]"]


def test_wrong_settings_are_refused(srv: testing.Server) -> None:
    with pytest.raises(ValueError, match="session_id"):
        LoomBridgeSession("", srv.address)
    with pytest.raises(ValueError, match="session_id"):
        LoomBridgeHooks("", srv.address)
    with pytest.raises(TypeError, match="limitt"):
        LoomBridgeSession("ann", srv.address, session_settings={"limitt": 1})
