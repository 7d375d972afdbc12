"""What the server keeps of every tool call."""

from datetime import UTC, datetime, timedelta

import pytest

import loombridge
from loombridge import testing


async def test_audit(srv: testing.Server) -> None:
    """Each call has its record, whatever came of it."""
    # E07
    (srv.workspace / "notes.txt").write_text("hello\n")
    async with loombridge.connect(srv.address, agent_id="a", session_id="s1") as ctx:
        before = datetime.now(UTC) - timedelta(seconds=1)
        await ctx.tool("fs:read_file", {"path": "notes.txt"}, call_id="c1")
        await ctx.tool("fs:read_file", {"path": "../../etc/passwd"})
        with pytest.raises(loombridge.InvalidArgumentsError):
            await ctx.tool("fs:read_file", {"path": 5})
        with pytest.raises(loombridge.ToolNotFoundError):
            await ctx.tool("fs:reed", {"password": "swordfish"})
        records = [r async for r in ctx.tools.audit(since=before)]
        assert [(r.tool, r.outcome) for r in records] == [
            ("fs:reed", "refused"),
            ("fs:read_file", "refused"),
            ("fs:read_file", "denied"),
            ("fs:read_file", "ok"),
        ]
        assert records[0].arguments == {"password": "[redacted]"}
        first = records[-1]
        assert (first.agent_id, first.session_id, first.call_id) == ("a", "s1", "c1")
        denied = [r async for r in ctx.tools.audit(outcome="denied", agent_id="a")]
        assert [r.code for r in denied] == ["PERMISSION_DENIED"]
        assert not [r async for r in ctx.tools.audit(until=before)]
        with pytest.raises(ValueError, match="outcome must be one of"):
            ctx.tools.audit(outcome="bad")
