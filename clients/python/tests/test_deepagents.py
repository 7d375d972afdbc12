"""The sandbox for Deep Agents, on the real server."""

import asyncio
import os
from collections.abc import AsyncGenerator

import pytest

pytest.importorskip(
    "deepagents.backends.sandbox", reason="Deep Agents is not part of the lowest environment"
)

from loombridge import connect, testing
from loombridge.deepagents import PART, LoomBridgeSandbox


@pytest.fixture
async def box(srv: testing.Server) -> AsyncGenerator[LoomBridgeSandbox, None]:
    async with LoomBridgeSandbox(srv.address) as box:
        yield box


async def test_commands(srv: testing.Server, box: LoomBridgeSandbox) -> None:
    done = await box.aexecute("echo said; echo problem >&2; exit 3")
    assert (done.output, done.exit_code, done.truncated) == ("said\n\nproblem\n", 3, False)
    assert (await asyncio.to_thread(box.execute, "true")).exit_code == 0
    late = await box.aexecute("exec sleep 100", timeout=1)
    assert late.exit_code != 0
    assert late.output
    refused = await box.aexecute("")
    assert (refused.exit_code, "command" in refused.output) == (None, True)
    async with connect(srv.address, agent_id="deepagents") as ctx:
        steps = [each async for each in ctx.context.conversation()]
        assert steps[0].step is not None
        assert steps[0].step.tool_name == "shell:run"


async def test_files(box: LoomBridgeSandbox) -> None:
    """The files are the workspace's, whatever their names and bytes are."""
    root = (await box.aexecute("pwd")).output.strip()
    assert await asyncio.to_thread(box.folder) == root
    path = f"{root}/a folder/it's $HOME.bin"
    content = os.urandom(PART * 2 + 7)
    empty = f"{root}/empty"
    answers = await box.aupload_files([(path, content), (empty, b""), ("pears", b"")])
    assert [each.error for each in answers] == [None, None, "invalid_path"]
    assert [each.path for each in answers] == [path, empty, "pears"]
    got = await box.adownload_files([path, empty, root, f"{root}/none", "pears"])
    assert [each.content for each in got] == [content, b"", None, None, None]
    assert [each.error for each in got][2:] == ["is_directory", "file_not_found", "invalid_path"]
    (over,) = await asyncio.to_thread(box.upload_files, [(path, b"short")])
    assert over.error is None
    (read,) = await asyncio.to_thread(box.download_files, [path])
    assert read.content == b"short"
    listed = await box.als(f"{root}/a folder")
    assert [each["path"] for each in listed.entries or []] == [path]
    (kept,) = await box.aupload_files([("/etc/pears", b"x")])
    assert kept.error == "permission_denied"
    (folder,) = await box.aupload_files([(root, b"x")])
    assert folder.error == "is_directory"


async def test_work(box: LoomBridgeSandbox) -> None:
    """What Deep Agents makes of commands works here: its tools are these."""
    root = (await box.aexecute("pwd")).output.strip()
    path = f"{root}/pears.txt"
    assert (await box.awrite(path, "Conference\nWilliams\n")).error is None
    edited = await box.aedit(path, "Williams", "Nelis")
    assert (edited.error, edited.occurrences) == (None, 1)
    read = await box.aread(path)
    assert read.file_data is not None
    assert read.file_data["content"].splitlines() == ["Conference", "Nelis"]
    found = await box.agrep("Nelis", path=root)
    assert [(each["path"], each["line"]) for each in found.matches or []] == [(path, 2)]
    globbed = await box.aglob("*.txt", path=root)
    assert [each["path"].endswith("pears.txt") for each in globbed.matches or []] == [True]
    if hasattr(box, "delete"):  # as sandboxes of older versions can't
        assert (await asyncio.to_thread(box.delete, path)).error is None
        assert (await box.aread(path)).error


async def test_client_of_a_user(srv: testing.Server) -> None:
    async with connect(srv.address, agent_id="mine") as ctx:
        box = LoomBridgeSandbox(ctx)
        assert box.id == "mine"
        assert (await box.aexecute("echo here")).output == "here\n"
        with pytest.raises(asyncio.InvalidStateError):
            box.execute("true")
        with pytest.raises(ValueError, match="agent_id"):
            LoomBridgeSandbox(ctx, agent_id="other")
