"""Edits, scripts and programs in the background with a started server; who has a workspace."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import loombridge
from fake import Fake
from loombridge import _rpc, testing
from loombridge.v1 import admin_pb2


@asynccontextmanager
async def working(binary: Path, folder: Path) -> AsyncGenerator[loombridge.Client]:
    """Serve a workspace beside its store, and connect to it."""
    work = folder / "work"
    work.mkdir()
    args = ["--workspace", str(work), "--shell-allow", "echo,sleep,cat,python3"]
    async with (
        testing.server(binary, args=args) as srv,
        loombridge.connect(srv.address, agent_id="a", session_id="s") as ctx,
    ):
        yield ctx


async def test_edit(binary: Path, tmp_path: Path) -> None:
    """Edits are made all or none, and a changed file is noticed."""
    async with working(binary, tmp_path) as ctx:
        file = tmp_path / "work" / "a.txt"
        file.write_text("one\ntwo\ntwo\n")
        shown = await ctx.workspace.edit("a.txt", ("one", "1"), dry_run=True)
        assert "-one\n+1\n" in shown.diff
        assert file.read_text() == "one\ntwo\ntwo\n"
        done = await ctx.workspace.edit(
            "a.txt", ("one", "1"), loombridge.Edit("two", "2", replace_all=True)
        )
        assert (done.path, done.replacements, file.read_text()) == ("a.txt", 3, "1\n2\n2\n")
        assert done.sha256 != ""
        with pytest.raises(loombridge.ToolFailedError):
            await ctx.workspace.edit("a.txt", ("1", "one"), ("three", "3"))
        file.write_text("changed\n")
        with pytest.raises(loombridge.ToolFailedError):
            await ctx.workspace.edit("a.txt", ("changed", "x"), expected_sha256=done.sha256)
        assert file.read_text() == "changed\n"
        with pytest.raises(ValueError, match="at least one"):
            await ctx.workspace.edit("a.txt")


async def test_run_script(binary: Path, tmp_path: Path) -> None:
    """A function's result comes back, the second time from the cache."""
    async with working(binary, tmp_path) as ctx:
        script = tmp_path / "work" / "sums.py"
        script.write_text("def add(a, b):\n    print('adding')\n    return {'sum': a + b}\n")
        first = await ctx.workspace.run_script("sums.py", "add", {"a": 1, "b": 2})
        assert (first.result, first.stdout, first.cached) == ({"sum": 3}, "adding\n", False)
        again = await ctx.workspace.run_script("sums.py", "add", {"a": 1, "b": 2})
        assert (again.result, again.cached) == (first.result, True)
        script.write_text("def add(a, b):\n    return a * b\n")
        changed = await ctx.workspace.run_script("sums.py", "add", [3, 4])
        assert (changed.result, changed.cached) == (12, False)
        with pytest.raises(loombridge.ToolFailedError) as caught:
            await ctx.workspace.run_script("gone.py", "add")
        assert caught.value.reason == "NOT_FOUND"


async def test_jobs(binary: Path, tmp_path: Path) -> None:
    """A job is read while it runs, waited for and stopped."""
    async with working(binary, tmp_path) as ctx:
        job = await ctx.workspace.start("for i in 1 2 3; do echo $i; sleep 0.1; done; cat gone")
        printed = "".join([text async for text in job.output()])
        assert printed.startswith("1\n2\n3\n")
        assert "gone" in printed
        ended = await job.wait()
        assert (ended.status, ended.exit_code, ended.running) == ("exited", 1, False)
        assert ended.printed_bytes == len(printed.encode())
        assert await job.status() == ended

        async with await ctx.workspace.start("sleep 1000", lifetime=500) as sleeping:
            assert (await sleeping.status()).running
            waiting = asyncio.ensure_future(ctx.workspace.job(sleeping.id).wait())
            assert [each.id for each in await ctx.workspace.jobs()] == [job.id, sleeping.id]
        assert (await waiting).status == "stopped"
        assert (await sleeping.stop()).status == "stopped"
        with pytest.raises(loombridge.ToolFailedError) as caught:
            await ctx.workspace.job("job_gone").wait()
        assert caught.value.reason == "NOT_FOUND"


def place(server: str, *, away: bool = False) -> admin_pb2.BridgeStatus:
    return admin_pb2.BridgeStatus(
        name=server, address=f"{server}:50051", workspace=f"{server}:/work", away=away
    )


async def test_who_has_it(fake: Fake, ctx: loombridge.Client) -> None:
    """What the servers on one store answer comes back; nobody is None."""
    fake.on(_rpc.GET_STATUS, admin_pb2.GetStatusResponse())
    assert await ctx.workspace.owner() is None
    fake.on(_rpc.GET_STATUS, admin_pb2.GetStatusResponse(workspace=place("a", away=True)))
    at_a = loombridge.WorkspaceOwner(
        server="a",
        address="a:50051",
        folder="a:/work",
        away=True,
        answering=False,
    )
    assert await ctx.workspace.owner() == at_a
    fake.on(
        _rpc.MOVE_WORKSPACE,
        place("b"),
    )
    moved = await ctx.workspace.move(to="b")
    assert (moved.server, moved.away) == ("b", False)
    await ctx.workspace.move(to="b:/work")
    asked = admin_pb2.GetStatusRequest(agent_id="a1")
    assert fake.requests == [
        asked,
        asked,
        admin_pb2.MoveWorkspaceRequest(agent_id="a1", server="b"),
        admin_pb2.MoveWorkspaceRequest(agent_id="a1", server="b:/work"),
    ]


async def test_a_server_with_a_store_of_its_own(live: loombridge.Client) -> None:
    """Where workspaces belong to no server, asking and moving say so."""
    with pytest.raises(loombridge.WorkspaceElsewhereError):
        await live.workspace.owner()
    with pytest.raises(loombridge.WorkspaceElsewhereError):
        await live.workspace.move(to="b")
    with pytest.raises(loombridge.InvalidRequestError):
        await live.workspace.move(to="")
