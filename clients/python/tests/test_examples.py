"""Every example runs: against the real binary, in an interpreter of its own."""

import re
from typing import Any

import pytest

import _model
import loombridge
import task_loop
from _pretend_model import Model, pretend_model
from conftest import EXAMPLES
from interpreters import run, run_each
from loombridge import testing

MAIN = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("_"))


def test_every_example_is_tested_here() -> None:
    assert MAIN == [
        "agents_session.py",
        "chat_anthropic.py",
        "chat_gemini.py",
        "chat_openai.py",
        "chat_responses.py",
        "claude_memory.py",
        "deep_agent.py",
        "explore_repo.py",
        "extract_facts.py",
        "graph_checkpoints.py",
        "graph_store.py",
        "langchain_agent.py",
        "long_run.py",
        "pydantic_conversation.py",
        "quickstart.py",
        "remember.py",
        "sub_agents.py",
        "sync_quickstart.py",
        "task_loop.py",
        "two_agents.py",
    ]


CHATS = [name for name in MAIN if name.startswith("chat_")]


async def test_chats(srv: testing.Server) -> None:
    environment = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "GEMINI_API_KEY": ""}
    told = await run_each(*([name] for name in CHATS), LOOM_BRIDGE_ADDR=srv.address, **environment)
    assert told == [(0, "It says: The harbour is closed until Monday.\n")] * len(CHATS)
    for name in CHATS:
        assert len((EXAMPLES / name).read_text().splitlines()) <= 50


def test_the_quickstart_is_short() -> None:
    assert len((EXAMPLES / "quickstart.py").read_text().splitlines()) <= 25


@pytest.mark.parametrize("name", ["quickstart.py", "sync_quickstart.py"])
async def test_quickstart(name: str, srv: testing.Server) -> None:
    code, output = await run(EXAMPLES / name, LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    assert "found: Bitcoin closed at 45,000" in output
    assert "heard: market.closed" in output


# N07
async def test_two_agents(srv: testing.Server) -> None:
    code, output = await run(EXAMPLES / "two_agents.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    assert output.splitlines() == ["words: 6", "sum:   5 from helper"]


# C01, C04, P20
async def test_sub_agents(srv: testing.Server) -> None:
    code, output = await run(EXAMPLES / "sub_agents.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    told, _, steps = output.partition("step: ")
    assert told == "[north] 19 mm\n\n[south] 3 mm\n\n[west] ✗ its process was killed\n"
    assert sorted(steps.splitlines()) == [
        "Spawned sub-agent north",
        "step: Received sub result from north",
        "step: Received sub result from south",
        "step: Spawned sub-agent south",
        "step: Spawned sub-agent west",
        "step: agent:result failed: its process was killed",
    ]


# G02
async def test_the_task_loop_reaches_its_goal(srv: testing.Server) -> None:
    code, output = await run(EXAMPLES / "task_loop.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    lines = output.splitlines()
    assert lines[-1] == "answer: The total is 1000."
    assert [line[:6] for line in lines[:-1]] == [
        "turn 1",
        "turn 2",
        "turn 2",
        "turn 3",
        "turn 4",
        "turn 5",
    ]
    assert "turn 4 add_up → 1000" in lines
    async with loombridge.connect(srv.address, agent_id="clerk") as ctx:
        written = await ctx.tool("fs:read_file", {"path": "total.txt"})
        assert written.output["content"] == "1000"


async def test_the_task_loop_ends_when_no_tools_are_asked_for(live: loombridge.Client) -> None:
    said: list[dict[str, Any]] = [
        {"content": "", "tool_calls": [asked("c1", "nobody_knows"), asked("c2", "fs_list_dir")]},
        {"content": "Done."},
        {"content": "Never said."},
    ]

    class Told(Model):
        def say(self, request: dict[str, Any]) -> dict[str, Any]:
            prompts.append(request["messages"])
            return said[len(prompts) - 1]

    prompts: list[list[dict[str, Any]]] = []
    with pretend_model(Told()) as url:
        model = _model.Model(url, "gpt-4o", "none")
        assert await task_loop.run_task(live, model, "List it", []) == "Done."
    assert len(prompts) == 2
    answers = {m["tool_call_id"]: m["content"] for m in prompts[1] if m["role"] == "tool"}
    assert "Tool not found: nobody_knows" in answers["c1"]
    assert answers["c2"].startswith("Listed .")

    class Endless(Model):
        def say(self, request: dict[str, Any]) -> dict[str, Any]:
            return {"content": "", "tool_calls": [asked(f"e{next(numbers)}", "fs_list_dir")]}

    numbers = iter(range(1000))
    with pretend_model(Endless()) as url:
        model = _model.Model(url, "gpt-4o", "none")
        with pytest.raises(RuntimeError, match="not done after 20 turns"):
            await task_loop.run_task(live, model, "List it", [])


def asked(call_id: str, name: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


KILLED = {
    "agents_session.py": (
        "agents",
        [
            "I like pears. Noted. (known: [])",
            "What do I like? Pears. (known: ['I like pears.'])",
            "note → noted: pears",
            "note → noted: pears",
        ],
    ),
    "claude_memory.py": (
        "anthropic",
        ["     1\tAnn likes pears.", "     2\t", "Successfully deleted /memories/ann.md"],
    ),
    "graph_checkpoints.py": (
        "langgraph.graph",
        ["next: ()", "next: ('answer',)", "{'steps': ['read by 1', 'answered by 2']}"],
    ),
    "langchain_agent.py": (
        "langchain.agents",
        [
            "looking Friday up",
            "human: When does the desk close?",
            "tool: at 17:30",
            "ai: On Friday it closes at 17:30.",
        ],
    ),
    "pydantic_conversation.py": (
        "pydantic_ai.conversation_store",
        ["I like pears. Noted. (messages: 4)", "What do I like? Pears. (messages: 6)"],
    ),
}
"""By example what it needs, and its last lines."""


@pytest.mark.parametrize("name", KILLED)
async def test_what_is_known_after_a_kill(name: str, srv: testing.Server) -> None:
    needed, lines = KILLED[name]
    pytest.importorskip(needed, reason=f"{name} needs {needed}")
    code, output = await run(EXAMPLES / name, LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    for number, pid in enumerate(re.findall(r"by (\d+)", output), 1):
        output = output.replace(f"by {pid}", f"by {number}")
    assert output.splitlines()[-len(lines) :] == lines


async def test_remember(srv: testing.Server) -> None:
    for version in (2, 3):  # Run again, it saves nothing twice, and changes the record again.
        code, output = await run(EXAMPLES / "remember.py", LOOM_BRIDGE_ADDR=srv.address)
        assert code == 0, output
        lines = output.splitlines()
        assert lines[0] == "saved:   3 turns"
        assert lines[1].startswith("found:   I moved to Lisbon in March")
        assert f"changed: Ann's chess rating: 1900 (version {version})" in lines
        assert f"refused: version 1, it has {version}" in lines
        assert "asked:   user:ann: Ann's chess rating: 1900" in lines
        assert "nothing: nothing_relevant of 3 records" in lines
        assert lines[-2:] == [f"Ann:     {text}" for text in ANN_SAID]


ANN_SAID = [
    "Every week. My rating is 1850 now.",
    "I moved to Lisbon in March, for the new job at the harbour office.",
]


async def test_deep_agent(srv: testing.Server) -> None:
    pytest.importorskip("deepagents", reason="Deep Agents is not part of the lowest environment")
    code, output = await run(EXAMPLES / "deep_agent.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    assert output.splitlines()[-2:] == [
        "tool: Williams Conference [Command succeeded with exit code 0]",
        "ai: Both are sorted.",
    ]


async def test_graph_store(srv: testing.Server) -> None:
    pytest.importorskip(
        "langgraph.store.base", reason="LangGraph is not part of the lowest environment"
    )
    code, output = await run(EXAMPLES / "graph_store.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    assert output.splitlines() == [
        "found:  users/ann food: Ann likes ripe pears",
        "since:  2019 Ann likes ripe pears",
        "since:  2026 Ann lives in Lisbon",
        "now:    Ann prefers figs now",
        "spaces: [('users', 'ann'), ('users', 'bob')]",
    ]


async def test_long_run_is_cheaper_than_append_only(srv: testing.Server) -> None:
    code, output = await run(EXAMPLES / "long_run.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    told = re.search(r"billed ([\d,]+) units, append-only ([\d,]+): (\d+)%", output)
    assert told, output
    billed, append_only, share = (int(each.replace(",", "")) for each in told.groups())
    assert 0 < billed < append_only
    assert share == round(100 * billed / append_only)
    assert "answer: Module 7 leaks its connections." in output
    assert re.search(r"folded \d+ entries, [\d,]+ tokens into [\d,]+ \(price\)", output)


PATIENT = ["quickstart.py", "sync_quickstart.py", "two_agents.py", "remember.py", "long_run.py"]


async def test_without_a_server_an_example_says_what_to_do() -> None:
    names = [*PATIENT, "extract_facts.py", "task_loop.py"]
    told = await run_each(*([name] for name in names), LOOM_BRIDGE_ADDR="127.0.0.1:1")
    for name, (code, output) in zip(names, told, strict=True):
        assert code == 1, name
        assert output.splitlines() == [output.strip()], f"{name}: one line and no traceback"
        assert "Is one running there" in output, name
