"""The programs of the README and of docstrings run as they are printed."""

import asyncio
import importlib
import json
import signal
import sys
import textwrap
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import loombridge
from _pretend_model import pretend_model
from conftest import EXAMPLES
from interpreters import run
from loombridge import testing


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
