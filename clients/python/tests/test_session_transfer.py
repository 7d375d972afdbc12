"""Sessions exported and imported, against a server."""

from pathlib import Path

import pytest

import loombridge
from loombridge.testing import Server


# Y44, Y45
async def test_sessions_are_exported_and_imported(srv: Server, tmp_path: Path) -> None:
    """What is exported and imported is the same export there, results included."""
    result = "".join(f"line {n} \u2028 of the log\n" for n in range(20_000))
    async with loombridge.connect(srv.address, agent_id="py-from", session_id="s1") as ctx:
        await ctx.context.append({"role": "user", "content": "When does the desk close?"})
        step = (await ctx.context.record_step("read", {"path": "log"}, output=result)).step
        await ctx.working.update(goal="Tell the hours")
        prompt = await ctx.context.assemble(model="gpt-4o", tools=False)
        alone = [line async for line in ctx.sessions.export_lines()]
        await ctx.context.append({"role": "user", "content": "And on Sunday?"}, session_id="s2")
        lines = [line async for line in ctx.sessions.export_lines()]
        assert [line async for line in ctx.sessions.export_lines(session_id="s1")] == alone
        assert [line async for line in ctx.sessions.export_lines(session_id="s3")] == []
        assert lines[: len(alone)] == alone
        assert len(lines) > len(alone)
    file = tmp_path / "sessions.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    async with loombridge.connect(srv.address, agent_id="py-to", session_id="s1") as ctx:
        dry = await ctx.sessions.import_lines(lines, dry_run=True)
        assert [line async for line in ctx.sessions.export_lines()] == []
        with file.open(encoding="utf-8", newline="\n") as opened:
            got = await ctx.sessions.import_lines(opened)
        assert got == dry == loombridge.ImportedSessions(saved=2, unchanged=0, results=1)
        again = ctx.sessions.export_lines()
        assert [line async for line in again] == lines
        assert [line async for line in again] == lines
        assert (await ctx.context.read_blob(step.id)).text() == result
        assert (await ctx.context.assemble(model="gpt-4o", tools=False)).messages == prompt.messages
        assert [each.session_id async for each in ctx.context.sessions()] == ["s1", "s2"]
        got = await ctx.sessions.import_lines(ctx.sessions.export_lines(session_id="s2"))
        assert (got.saved, got.unchanged) == (0, 1)
        await ctx.context.append({"role": "user", "content": "Thanks"})
        with pytest.raises(loombridge.RecordExistsError):
            await ctx.sessions.import_lines(alone)
        assert (await ctx.sessions.import_lines(alone, skip_existing=True)).skipped == 1


async def test_lines_that_are_none(srv: Server) -> None:
    """A line that can't stand where it does is named, and nothing of its session is stored."""
    async with loombridge.connect(srv.address, agent_id="py-whole", session_id="s1") as ctx:
        await ctx.context.append({"role": "user", "content": "When does the desk close?"})
        lines = [line async for line in ctx.sessions.export_lines()]
    async with loombridge.connect(srv.address, agent_id="py-part") as ctx:
        with pytest.raises(loombridge.InvalidRequestError, match="line 1"):
            await ctx.sessions.import_lines(["nothing"])
        with pytest.raises(loombridge.InvalidRequestError, match="end of session"):
            await ctx.sessions.import_lines(lines[:-1])
        with pytest.raises(TypeError, match="one text"):
            await ctx.sessions.import_lines(lines[0])
        assert [line async for line in ctx.sessions.export_lines()] == []
        assert (await ctx.sessions.import_lines(iter(lines))).saved == 1
