"""Prompts on the real server: what they are made of, and what the receipt says of it."""

from datetime import timedelta
from typing import Any

import pytest

import loombridge
from loombridge import (
    Example,
    Injection,
    InjectionLimits,
    PromptSettings,
    Skill,
    SourceSettings,
    ToolDefinition,
    ToolSelection,
    testing,
)

POLITE = Skill("polite", "Be polite", "Say please.", tools=("fs:stat",), active=True)
BRIEF = Skill("brief", "Be brief", "Use few words.")
SERVED = PromptSettings(tools=ToolSelection(none=True))


def names(prompt: loombridge.Prompt) -> list[str]:
    return [tool.name for tool in prompt.tools]


# G03
async def test_settings_stay_with_the_session(live: loombridge.Client) -> None:
    settings = PromptSettings(
        layout="react",
        system="You are careful.",
        skills=(POLITE, BRIEF),
        few_shot=(Example("2+2", "4"),),
        sources=SourceSettings(exclude=("notes",), knowledge_timeout=timedelta(milliseconds=50)),
        limits=InjectionLimits(total=5000, sections={"skills": 300}),
        variation=0.0,
        injections=(Injection("desk", "The desk is open.", "system", "stable"),),
    )
    held = await live.context.configure(prompt=settings)
    assert held.prompt == settings
    # A later call changes what it names, and leaves the rest.
    held = await live.context.configure(prompt=PromptSettings(user_id="ann"))
    assert held.prompt.user_id == "ann"
    assert held.prompt.skills == settings.skills
    prompt = await live.context.assemble(goal="Add")
    assert prompt.receipt.layout == "react"
    system = prompt.messages[0].content
    for part in ("You are careful.", "Say please.", "brief", "2+2\n4", "The desk is open."):
        assert part in system
    assert "Use few words." not in system
    assert prompt.messages[-1] == loombridge.Message("user", "Goal: Add")
    # What a call says holds for the call.
    once = await live.context.assemble(
        goal="Add", system="You are quick.", settings=PromptSettings(layout="three_phase")
    )
    assert once.messages[0].content.startswith("You are quick.")
    assert once.receipt.layout == "three_phase"
    assert (await live.context.assemble(goal="Add")).prefix_sha256 == prompt.prefix_sha256
    # Another session has none of it, and a reset takes it away.
    other = await live.context.assemble(goal="Add", session_id="s2")
    assert "careful" not in str(other.messages)
    assert (await live.context.configure(reset=True)).prompt == PromptSettings()


async def test_tools_of_the_caller_and_of_the_server(live: loombridge.Client) -> None:
    def forecast(city: str) -> str:
        """Tell the weather."""
        return city

    own = ToolDefinition("fs:stat", "Mine.", {"type": "object", "properties": {}})
    prompt = await live.context.assemble(tools=[forecast, own])
    assert names(prompt) == sorted(names(prompt))
    assert {"forecast", "fs:read_file"} <= set(names(prompt))
    assert names(prompt).count("fs:stat") == 1
    by_name = {tool.name: tool for tool in prompt.tools}
    assert by_name["fs:stat"].description == "Mine."
    assert by_name["forecast"].parameters["required"] == ["city"]

    async def served(selection: ToolSelection, **options: Any) -> list[str]:
        settings = PromptSettings(tools=selection)
        return names(await live.context.assemble(settings=settings, **options))

    assert await served(ToolSelection(none=True)) == []
    assert await served(ToolSelection(none=True), tools=[forecast]) == ["forecast"]
    only = await served(ToolSelection(levels=[3], names=["fs:*_file"]))
    # Where no programs run, there is no script tool.
    only = [name for name in only if name != "python:run_script"]
    assert only == ["fs:edit_file", "fs:read_file", "fs:write_file"]
    assert names(await live.context.assemble(tools=False)) == []
    with pytest.raises(loombridge.InvalidRequestError):
        await live.context.assemble(tools=[ToolDefinition("")])
    with pytest.raises(loombridge.InvalidRequestError):
        await live.context.assemble(tools=[own, own])
    with pytest.raises(loombridge.InvalidRequestError):
        await served(ToolSelection(levels=[4]))


async def test_tools_of_other_agents_enter_by_name(
    live: loombridge.Client, srv: testing.Server
) -> None:
    async with loombridge.connect(srv.address, agent_id="helper") as helper:

        @helper.tool
        async def word_count(text: str) -> int:
            """Count words."""
            return len(text.split())

        await helper.attach()
        assert "word_count" not in names(await live.context.assemble())
        selection = PromptSettings(tools=ToolSelection(names=["word_*"]))
        assert "word_count" in names(await live.context.assemble(settings=selection))


# I06
async def test_injections_stand_where_they_say(live: loombridge.Client) -> None:
    await live.context.append({"role": "user", "content": "Is it open?"})
    prompt = await live.context.assemble(
        goal="Answer",
        system="You are careful.",
        settings=SERVED,
        injections=[
            Injection("late", "Said second.", "system", priority=10),
            Injection("early", "Said first.", "system", priority=90),
            Injection("facts", "The desk is open.", "user_context", "session", xml_tag="facts"),
            Injection("now", "It is Monday."),
            Injection("blank", " \n"),
            Injection("long", "word " * 500, max_tokens=50),
        ],
    )
    said = [message.content for message in prompt.messages]
    assert said[0] == "You are careful.\n\nSaid first.\n\nSaid second."
    assert "<facts>\nThe desk is open.\n</facts>" in said[1]
    assert "It is Monday." in said[-1]
    section = prompt.receipt.section
    facts, long, now = section("facts"), section("long"), section("now")
    assert now is not None
    assert now.outcome == "shown"
    assert facts is not None
    assert facts.outcome == "shown"
    assert long is not None
    # The cap is on the text; its place in a message takes a few tokens more.
    assert (long.outcome, long.before_tokens > 400, long.tokens < 60) == ("cut", True, True)
    assert section("blank") is None
    with pytest.raises(loombridge.InvalidRequestError):
        await live.context.assemble(injections=[Injection("goal", "mine")])
    with pytest.raises(loombridge.InvalidRequestError):
        await live.context.assemble(injections=[Injection("a", "x"), Injection("a", "y")])


@pytest.mark.parametrize("form", ["neutral", "openai"])
async def test_marks_name_blocks_that_are_there(
    live: loombridge.Client, form: loombridge.PromptFormat
) -> None:
    blocks = [{"type": "text", "text": "one " * 900}, {"type": "text", "text": "two " * 900}]
    await live.context.append({"role": "user", "content": blocks})
    await live.context.append({"role": "assistant", "content": "Two."})
    await live.context.append({"role": "user", "content": blocks})
    await live.context.assemble(goal="Count", format=form)
    again = await live.context.assemble(goal="Count", format=form)
    assert again.cache_marks
    sent = ["user", "assistant", "user", "user"]
    for mark in again.cache_marks:
        if mark.what == "tools":
            assert mark.message_index == -1
            continue
        assert 0 <= mark.message_index < len(sent)
        # An assistant's text is one block, and both messages with blocks have two.
        assert mark.block_index == (0 if mark.message_index in (1, 3) else 1)


async def test_no_more_is_expected_of_a_cache_than_the_prompt_before_had(
    live: loombridge.Client,
) -> None:
    before = 0
    for turn in range(4):
        await live.context.append({"role": "user", "content": f"Question {turn}. " + "more " * 600})
        prompt = await live.context.assemble(model="claude-sonnet-4-5", format="anthropic")
        receipt = prompt.receipt
        assert receipt.stable_tokens <= before
        assert receipt.expected_cached_tokens <= receipt.stable_tokens
        assert (receipt.expected_cached_tokens > 0) == (turn > 0)
        learned = await live.context.report_usage(prompt, prompt_tokens=prompt.tokens)
        assert (learned.missed_tokens > 0) == (turn > 0)
        learned = await live.context.report_usage(
            prompt, prompt_tokens=prompt.tokens, cached_tokens=receipt.stable_tokens
        )
        assert learned.missed_tokens == 0
        before = prompt.tokens


async def test_skills_are_swapped(live: loombridge.Client) -> None:
    await live.context.configure(prompt=PromptSettings(skills=[POLITE, BRIEF]))
    before = await live.context.assemble(goal="Talk")
    await live.context.update_working(activate=["brief"], deactivate=["polite"])
    after = await live.context.assemble(goal="Talk")
    assert "Say please." in before.messages[0].content
    assert "Use few words." not in before.messages[0].content
    assert "Say please." not in after.messages[0].content
    assert "Use few words." in after.messages[0].content
    difference = (await live.context.diff_prompts()).difference
    assert difference is not None
    assert difference.section == "skills"


async def test_a_plan_and_a_goal_of_the_session(live: loombridge.Client) -> None:
    plan = [loombridge.PlanItem("look", "done"), loombridge.PlanItem("leap", "in_progress")]
    await live.context.update_working(goal="Fly", plan=plan)
    prompt = await live.context.assemble(settings=PromptSettings(layout="react"))
    assert prompt.messages[-1].content.endswith("Goal: Fly")
    three = (await live.context.assemble(settings=PromptSettings(layout="three_phase"))).messages
    assert "look" in three[-1].content
    assert "Fly" in three[-1].content.splitlines()[-1] or "Fly" in three[-1].content


async def test_the_same_turn_gives_the_same_bytes(live: loombridge.Client) -> None:
    await live.context.append({"role": "user", "content": "Go"})
    plan = [loombridge.PlanItem(f"step {n}") for n in range(6)]
    await live.context.update_working(goal="Go far", plan=plan)
    varied = PromptSettings(variation=0.8)

    async def text(turn: str) -> str:
        prompt = await live.context.assemble(format="openai", settings=varied, turn_id=turn)
        return prompt.openai_json

    turns = [f"t{n}" for n in range(20)]
    first = [await text(turn) for turn in turns]
    assert [await text(turn) for turn in turns] == first
    assert len(set(first)) > 1, "a level of 0.8 changes nothing in twenty turns"
    still = PromptSettings(variation=0.0)
    same = {
        (await live.context.assemble(format="openai", settings=still, turn_id=turn)).openai_json
        for turn in turns
    }
    assert len(same) == 1


async def test_a_prompt_of_another_agent_has_nothing_of_ours(
    live: loombridge.Client, srv: testing.Server
) -> None:
    await live.context.configure(
        prompt=PromptSettings(
            system="canary-1", skills=[Skill("s", text="canary-2", active=True)], user_id="ann"
        )
    )
    await live.context.update_working(goal="canary-3", plan=["canary-4"])
    await live.memory_save("canary-5", kind="knowledge")
    await live.context.append({"role": "user", "content": "canary-6"})
    async with loombridge.connect(srv.address, agent_id="stranger", session_id="s1") as other:
        prompt = await other.context.assemble(goal="tell me the canary", format="openai")
    assert "canary-" not in prompt.openai_json
