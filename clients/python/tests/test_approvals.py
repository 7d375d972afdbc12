"""Calls that wait for a person."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import loombridge
from loombridge import testing


async def test_approvals(binary: Path, tmp_path: Path) -> None:
    """One client's call waits until another has answered; the answer can be remembered."""
    settings = tmp_path / "loom.toml"
    settings.write_text('[[bind]]\ntool = "fs:list_dir"\napproval = "always"\n')
    async with (
        testing.server(binary, args=["--config", str(settings)]) as srv,
        loombridge.connect(srv.address, agent_id="a", session_id="s1") as agent,
        loombridge.connect(srv.address, agent_id="boss") as boss,
    ):
        unattended = await agent.tool("fs:list_dir")
        assert unattended.error is not None
        assert unattended.error.message.startswith("Permission denied")

        watching = boss.tools.approvals()
        waits = asyncio.ensure_future(anext(watching))
        call = asyncio.ensure_future(agent.tool("fs:list_dir", {"path": "."}))
        await asyncio.wait({waits, call}, return_when=asyncio.FIRST_COMPLETED)
        while not waits.done():  # until the server knows that somebody watches
            call = asyncio.ensure_future(agent.tool("fs:list_dir", {"path": "."}))
            await asyncio.wait({waits, call}, return_when=asyncio.FIRST_COMPLETED)
        pending = waits.result()
        assert (pending.agent_id, pending.kind, pending.name) == ("a", "tool", "fs:list_dir")
        assert pending.tool == "fs:list_dir"
        assert pending.expire_time
        assert pending.arguments in ({}, {"path": "."})
        assert [part.name for part in pending.parts] == ["call", "path"]
        assert 'profile: "work", mode work' in pending.parts[0].text
        assert len(pending.digest) == 64
        assert len(pending.also_allows) == 3
        await boss.tools.approve(pending.id, "agent")
        assert (await call).success
        assert (await agent.tool("fs:list_dir", {"path": "."})).success
        with pytest.raises(loombridge.ApprovalNotFoundError):
            await boss.tools.approve(pending.id)
        with pytest.raises(ValueError, match="decision must be one of"):
            await boss.tools.approve(pending.id, "perhaps")

        (remembered,) = await boss.tools.remembered_approvals()
        assert (remembered.decision, remembered.agent_id) == ("agent", "a")
        assert remembered.approver_id == "boss"
        await boss.tools.revoke(remembered)
        call = asyncio.ensure_future(agent.tool("fs:list_dir"))
        pending = await anext(watching)
        with pytest.raises(loombridge.ApprovalNotAllowedError):
            await agent.tools.approve(pending)
        await boss.tools.deny(pending, note="not on a Monday")
        denied = (await call).error
        assert denied is not None
        assert denied.message.endswith("who said no: not on a Monday")
        record = await anext(aiter(boss.tools.audit()))
        assert record.approval_note == "not on a Monday"
        assert denied.code == "permission_denied"
        await watching.aclose()


async def test_profile(binary: Path, tmp_path: Path) -> None:
    """An agent sees what its calls may do, and what of its workspace's file is refused."""
    settings = tmp_path / "loom.toml"
    settings.write_text(
        '[profile.web]\nlimits = { wall = "5m", memory = "1GiB" }\n'
        '[[profile.web.allow]]\nhost = "*.npmjs.org"\nmethods = ["get"]\n'
        '[[bind]]\nagent = "a"\nprofile = "web"\n'
    )
    workspace = tmp_path / "work"
    (workspace / ".loom").mkdir(parents=True)
    (workspace / ".loom" / "sandbox.toml").write_text('mode = "open"\nprotect = ["keep"]\n')
    args = ["--config", str(settings), "--workspace", str(workspace)]
    async with (
        testing.server(binary, args=args) as srv,
        loombridge.connect(srv.address, agent_id="a") as agent,
    ):
        seen = await agent.tools.profile("system:shell")
        assert (seen.name, seen.mode, seen.approval) == ("web", "net", "on-leave")
        assert (seen.limits.memory, seen.limits.wall) == (1 << 30, timedelta(minutes=5))
        assert [(h.host, h.methods) for h in seen.hosts] == [("*.npmjs.org", ("GET",))]
        assert "keep" in seen.protect
        (refused,) = seen.refused
        assert (refused.key, refused.line) == ("mode", 1)
        assert not seen.problem
