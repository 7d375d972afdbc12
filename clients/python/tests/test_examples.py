"""Every example runs: against the real binary, in an interpreter of its own."""

import asyncio
import importlib
import json
import os
import re
import signal
import sys
import textwrap
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import _model
import explore_repo
import loombridge
import task_loop
from _ledger import Blob, Ledger, Memory, Proof, sha256, verify
from _pretend_model import Model, pretend_model
from conftest import EXAMPLES
from interpreters import run, run_each
from loombridge import testing

MAIN = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("_"))


def small_repo(root: Path) -> Path:
    """Make a repository that takes the agent some thirty steps."""
    for i in range(12):
        folder = root / "pkg" / f"part{i:02}"
        folder.mkdir(parents=True)
        lines = "\n".join(f"// Line {n} of part {i}." for n in range(80))
        (folder / "doc.go").write_text(f"// Package part{i} does job {i}.\n{lines}\n")
        (folder / "part.go").write_text(f"package part{i}\n\ntype Worker{i} struct{{}}\n{lines}\n")
    (root / "README.md").write_text("# A small repository\n\nIt is here to be explored.\n")
    return root


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


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


def test_the_demo_asks_what_this_repository_says() -> None:
    for question, path in explore_repo.QUESTIONS:
        said = (EXAMPLES.parents[2] / path).read_text()
        words = re.findall(r"[a-z]{5,}", question.lower())
        missing = [word for word in words if word not in said.lower()]
        assert len(missing) <= 1, (question, missing)
    read = ["a.py", *(path for _, path in explore_repo.QUESTIONS), "folder", "b.py"]
    assert explore_repo.questions(read) == [question for question, _ in explore_repo.QUESTIONS]
    assert explore_repo.questions(["a.py", "folder", "b.py", "c.py"]) == [
        "What does the file b.py hold?",
        "What does the file c.py hold?",
    ]
    assert explore_repo.questions(["folder"]) == []


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
        ["I like pears. Noted. (known: [])", "What do I like? Pears. (known: ['I like pears.'])"],
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
        ["I like pears. Noted. (messages: 2)", "What do I like? Pears. (messages: 4)"],
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


async def test_the_first_lines_of_the_readme(srv: testing.Server, tmp_path: Path) -> None:
    readme = (EXAMPLES.parent / "README.md").read_text()
    code = readme.partition("```python\n")[2].partition("```")[0]
    assert len([line for line in code.splitlines() if line]) <= 10
    script = tmp_path / "first.py"
    script.write_text(code.replace("127.0.0.1:50051", srv.address))
    status, output = await run(script)
    assert status == 0, output
    assert "Bitcoin closed at 45,000" in output


async def test_the_long_run_of_the_readme(live: loombridge.Client) -> None:
    chapter = (EXAMPLES.parent / "README.md").read_text().partition("## Long runs")[2]
    code = chapter.partition("```python\n")[2].partition("```")[0]
    body = "".join(f"    {line}\n" for line in code.splitlines())
    scope: dict[str, Any] = {"json": json}
    exec(f"async def turn(ctx, goal, openai, run):\n{body}", scope)  # noqa: S102  our own text
    with pretend_model(2) as url:
        chat = SimpleNamespace(completions=Completions(url))
        for _ in range(3):
            await scope["turn"](live, "Find the fault", SimpleNamespace(chat=chat), str.format)
    assert [step.tool_name for step in await live.context.steps()] == ["read_module", "run_tests"]
    prompt = await live.context.assemble()
    assert prompt.messages[-1].content == "Module 7 leaks its connections."


def chapter_code(title: str) -> str:
    """Return the first program of a chapter of the README."""
    chapter = (EXAMPLES.parent / "README.md").read_text().partition(f"## {title}\n")[2]
    return chapter.partition("```python\n")[2].partition("```")[0]


async def test_the_memory_of_the_readme(
    live: loombridge.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    await live.memory_save("Ann eats pears", tags=["food"], metadata={"year": 2025}, user_id="ann")
    body = "".join(f"    {line}\n" for line in chapter_code("Memory").splitlines())
    scope: dict[str, Any] = {}
    exec(f"async def ask(ctx):\n{body}", scope)  # noqa: S102  our own text
    await scope["ask"](live)
    assert "user:ann Ann eats pears" in capsys.readouterr().out
    found = await live.memory_query("pears", user_id="ann")
    await live.memory.delete(id=found[0].record.id, user_id="ann")
    await scope["ask"](live)
    assert capsys.readouterr().out == "nothing_stored\n"


async def run_chapter(title: str, **scope: Any) -> dict[str, Any]:
    """Run the first program of a chapter of the README; return its names."""
    return await run_code(chapter_code(title), **scope)


async def run_code(code: str, **scope: Any) -> dict[str, Any]:
    """Run a program that may await, with some names; return all its names."""
    body = "".join(f"    {line}\n" for line in code.splitlines())
    names = ", ".join(scope)
    exec(f"async def chapter({names}):\n{body}    return locals()", made := {})  # noqa: S102  our own text
    return await made["chapter"](**scope)


async def test_the_prompts_of_the_readme(
    live: loombridge.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await run_chapter("Prompts", ctx=live, loombridge=loombridge)
    told = capsys.readouterr().out.split()
    assert {"system", "tools", "skills", "user_memory", "knowledge", "goal", "shown"} <= set(told)
    text = found["prompt"].openai_json
    for known in ("You answer for the desk.", "allergic to pears", "17:30", "find the hours"):
        assert known in text
    assert "Answers in German" in text
    assert "Antworte" not in text


async def test_the_documents_of_their_docstring(
    live: loombridge.Client, srv: testing.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    code = docstring_code("loombridge.documents", srv)
    found = await run_code(code, ctx=live, text="x" * 1229)
    assert capsys.readouterr().out == "Read config.json (1.2KB)\n"
    assert found["messages"][0] == {"role": "system", "content": "Careful."}
    assert found["messages"][-1] == {"role": "user", "content": "When does the desk close?"}
    assert any("The desk closes at 17:30" in each["content"] for each in found["messages"])


async def test_the_facts_of_the_readme(
    live: loombridge.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    await live.memory_save("I like pears, says Ann")
    message = SimpleNamespace(content='["Ann likes pears"]')

    async def create(*, model: str, messages: Any) -> Any:
        assert model
        assert "I like pears" in messages[-1]["content"]
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    chat = SimpleNamespace(completions=SimpleNamespace(create=create))
    openai = SimpleNamespace(chat=chat)
    await run_chapter("Facts by a model of yours", ctx=live, loombridge=loombridge, openai=openai)
    assert capsys.readouterr().out == "1 1\n"


async def test_the_shared_memories_of_the_readme(live: loombridge.Client) -> None:
    found = await run_chapter("Shared memories", ctx=live)
    assert [hit.text for hit in found["hits"]] == ["The release is on Friday"]


def docstring_code(name: str, srv: testing.Server) -> str:
    """Return the program in a module's docstring, for a server of the test's."""
    doc = importlib.import_module(name).__doc__ or ""
    lines = [line for line in doc.splitlines() if not line or line.startswith("    ")]
    return textwrap.dedent("\n".join(lines)).replace("127.0.0.1:50051", srv.address)


def test_the_mem0_of_its_docstring(srv: testing.Server) -> None:
    scope: dict[str, Any] = {}
    exec(docstring_code("loombridge.mem0", srv), scope)  # noqa: S102  our own text
    assert [each["memory"] for each in scope["found"]] == ["Ann likes pears"]


def test_the_graph_of_its_docstring(srv: testing.Server) -> None:
    pytest.importorskip(
        "langgraph.store.base", reason="LangGraph is not part of the lowest environment"
    )

    def compiled(*, store: Any, checkpointer: Any) -> Any:
        assert checkpointer.get_tuple({"configurable": {"thread_id": "t"}}) is None
        return store.search((), query="pears")[0]

    scope: dict[str, Any] = {"builder": SimpleNamespace(compile=compiled)}
    exec(docstring_code("loombridge.langgraph", srv), scope)  # noqa: S102  our own text
    assert scope["graph"].value == {"text": "Ann likes pears"}


class Completions:
    """What the library of a provider has, as far as the README uses it."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def create(self, **request: Any) -> Any:
        body = json.dumps(request).encode()
        post = urllib.request.Request(f"{self._url}/chat/completions", body)  # noqa: S310
        with await asyncio.to_thread(urllib.request.urlopen, post) as answer:
            told = json.load(answer)

        def model_dump(*, exclude_none: bool) -> dict[str, Any]:
            assert exclude_none
            return told["choices"][0]["message"]

        message = SimpleNamespace(model_dump=model_dump)
        return SimpleNamespace(usage=told["usage"], choices=[SimpleNamespace(message=message)])


def agent_of_the_readme(srv: testing.Server) -> str:
    """Return the program that the README shows, for a server of the test's."""
    chapter = (EXAMPLES.parent / "README.md").read_text().partition("## Agents")[2]
    code = chapter.partition("```python\n")[2].partition("```")[0]
    return code.replace("127.0.0.1:50051", srv.address)


async def test_the_agent_of_the_readme(srv: testing.Server, live: loombridge.Client) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", agent_of_the_readme(srv))
    try:
        async with asyncio.timeout(60):
            counted = None
            while counted is None:
                with suppress(loombridge.ToolNotFoundError):
                    counted = await live.tool("word_count", {"text": "a b"})
            assert counted.output == 2
            assert (await live.request("math.add", {"a": 2, "b": 3})).payload == 5
    finally:
        process.terminate()
        await process.wait()


async def test_the_agent_of_the_readme_ends_with_ctrl_c(
    srv: testing.Server, live: loombridge.Client
) -> None:
    # A shell without job control starts what it runs in the background deaf to Ctrl-C.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        heard + agent_of_the_readme(srv),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        while "word_count" not in {tool.name for tool in await live.tools.list()}:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (0, "")


PATIENT = ["quickstart.py", "sync_quickstart.py", "two_agents.py", "remember.py", "long_run.py"]


async def test_without_a_server_an_example_says_what_to_do() -> None:
    names = [*PATIENT, "extract_facts.py", "task_loop.py"]
    told = await run_each(*([name] for name in names), LOOM_BRIDGE_ADDR="127.0.0.1:1")
    for name, (code, output) in zip(names, told, strict=True):
        assert code == 1, name
        assert output.splitlines() == [output.strip()], f"{name}: one line and no traceback"
        assert "Is one running there" in output, name


async def test_explore_repo_loses_nothing(binary: Path, tmp_path: Path) -> None:
    repo = small_repo(tmp_path / "repo")
    before = tree(repo)
    store = tmp_path / "store"
    code, output = await run(
        EXAMPLES / "explore_repo.py",
        "--server-binary",
        binary,
        "--repo",
        repo,
        "--data-dir",
        store,
        "--steps",
        "34",
        "--pace",
        "0",
    )
    assert code == 0, output
    assert output.count("restart   the server is back") == 2, output
    rows = numbers(output)
    assert rows["steps"] >= 30
    assert rows["blobs"] == rows["blobs byte-identical after kill -9"] > 5
    assert rows["memories saved"] == rows["memories found again"] > 5
    assert rows["events emitted"] == rows["events delivered across the kill"] > 5
    assert "events lost / duplicated" in output
    assert rows["prompts billed, units of a token"] > 0
    assert rows["append-only would be billed"] > 0
    assert tree(repo) == before
    assert not list(repo.glob(".explore-repo-*"))
    assert len(output.splitlines()) <= 60
    asked = r"^  question  What does the file (\S+) hold\?\n  memory    The file \1 has "
    assert len(re.findall(asked, output, re.MULTILINE)) == 2, output
    assert "lost nothing that it had acknowledged" in output
    assert "No language model took part." in output
    await look_into_the_store(output.splitlines()[-1], store)


async def look_into_the_store(command: str, store: Path) -> None:
    """Run the command that the demonstration ends with."""
    process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert process.returncode == 0
    assert b" records, " in told
    files = Path(f"{store}-files")
    assert (files / "steps.jsonl").exists()
    assert (files / "records.jsonl").exists()
    assert (files / "events.jsonl").exists()


async def test_the_proof_sees_what_is_missing(live: loombridge.Client) -> None:
    saved = await live.memory_save("The harbour is closed")
    written = await live.tool("fs:write_file", {"path": "a.txt", "content": "x" * 5000})
    read = await live.tool("fs:read_file", {"path": "a.txt"})
    assert written.step
    assert read.step
    assert read.blob
    right = Blob(read.blob.path, read.blob.step_id, read.blob.ref, sha256(b"x" * 5000))
    ledger = Ledger(
        steps=[written.step.id, read.step.id],
        blobs=[right],
        memories=[Memory(saved.id, "The harbour is closed", "Is the harbour open?")],
    )
    assert await verify(live, ledger) == Proof(blobs=1, memories=1)
    ledger.steps.append("step_003")
    ledger.blobs += [replace(right, sha256=sha256(b"y")), replace(right, ref="0" * 64)]
    ledger.memories += [
        Memory(saved.id, "The harbour is open", "harbour"),
        Memory("nobody", "No such record", "harbour"),
    ]
    proof = await verify(live, ledger)
    assert (proof.blobs, proof.memories) == (1, 1)
    assert len(proof.faults) == 1 + 3 + 1 + 2


def numbers(output: str) -> dict[str, int]:
    """Return the whole numbers of the closing table."""
    rows = (line.rsplit(maxsplit=1) for line in output.splitlines() if line.startswith("  "))
    return {
        row[0].strip(): int(row[1].replace(",", ""))
        for row in rows
        if len(row) == 2 and row[1].replace(",", "").isdecimal()
    }


async def test_explore_repo_refuses_what_it_cannot_use() -> None:
    refused = [
        (["--steps", "3"], "--steps must be at least"),
        (["--repo", "/nonexistent"], "is no folder"),
        (["--data-dir", str(EXAMPLES)], "is not empty"),
        (["--server-binary", "/nonexistent"], "/nonexistent is no program"),
        (["--llm"], "needs OPENAI_API_KEY"),
    ]
    told = await run_each(*(["explore_repo.py", *args] for args, _ in refused), OPENAI_API_KEY="")
    for (args, text), (code, output) in zip(refused, told, strict=True):
        assert code == 2, args
        assert text in output, args


class Script(BaseHTTPRequestHandler):
    """A model that follows a script: one list of tool calls for each turn."""

    turns: ClassVar[list[list[tuple[str, str]]]] = [
        [("fs_list_dir", '{"path": "."}'), ("fs_read_file", '{"path": "README.md"}')],
        [("fs_reed_file", '{"path": "README.md"}'), ("fs_read_file", "not JSON")],
        [("fs_read_file", '{"path": "pkg/part00/doc.go"}')] * 6,
        [],
    ]
    requests: ClassVar[list[dict[str, Any]]] = []
    keys: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.keys.append(self.headers["Authorization"])
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = len(self.requests)
        self.requests.append(body)
        calls = [
            {
                "id": f"call-{turn}-{i}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for i, (name, arguments) in enumerate(self.turns[turn])
        ]
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": calls}
        if not calls:
            message = {"role": "assistant", "content": "It is a small repository of twelve parts."}
        answer = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay silent."""


@contextmanager
def http_server(handler: type[BaseHTTPRequestHandler]) -> Generator[str, None, None]:
    """Serve on a free port while the block runs; give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_explore_repo_with_a_model(
    binary: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    left = tmp_path_factory.mktemp("left")
    repo = small_repo(tmp_path)
    with http_server(Script) as url:
        code, output = await run(
            EXAMPLES / "explore_repo.py",
            "--llm",
            "--server-binary",
            binary,
            "--repo",
            repo,
            "--steps",
            "12",
            TMPDIR=str(left),
            OPENAI_API_KEY="secret",
            OPENAI_BASE_URL=url,
            OPENAI_MODEL="gpt-4o-mini",
        )
    assert code == 0, output
    assert set(Script.keys) == {"Bearer secret"}
    assert {request["model"] for request in Script.requests} == {"gpt-4o-mini"}
    assert all(request["tools"] for request in Script.requests)
    rows = numbers(output)
    assert rows["steps"] == 9
    assert rows["memories saved"] == rows["memories found again"] == 1
    check_conversation(Script.requests[-1]["messages"])
    assert "The store is removed. To keep it" in output
    assert not [name for name in os.listdir(left) if "demo" in name]


def check_conversation(messages: list[dict[str, Any]]) -> None:
    """Every call is answered right behind the message that asked for it."""
    asked: list[str] = []
    answers: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == asked.pop(0)
            answers[message["tool_call_id"]] = str(message["content"])
        else:
            assert not asked
            asked = [call["id"] for call in message.get("tool_calls", ())]
    assert not asked
    assert "A small repository" in answers["call-0-1"]
    assert "fs_read_file" in answers["call-1-0"]
    assert "Refused" in answers["call-1-1"]
    assert "Package part0" in answers["call-2-0"]
    # What stands in the prompt already is not shown again.
    assert "unchanged: step_004" in answers["call-2-5"]
