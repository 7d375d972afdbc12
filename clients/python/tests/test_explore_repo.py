"""The demo: an agent explores a repository, and loses nothing."""

import asyncio
import json
import os
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import explore_repo
import loombridge
from _ledger import Blob, Ledger, Memory, Proof, sha256, verify
from conftest import EXAMPLES
from interpreters import run, run_each


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
