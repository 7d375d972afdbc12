"""Calls of tools that come again, and those that come too often."""

from pathlib import Path

import pytest

import loombridge
from loombridge import testing


async def test_same_call_runs_once(binary: Path, tmp_path: Path) -> None:
    """A call with the same call_id gives the first answer and runs nothing."""
    async with (
        testing.server(binary, args=["--workspace", str(tmp_path)]) as srv,
        loombridge.connect(srv.address, agent_id="a") as ctx,
    ):
        written = {"path": "log", "content": "x", "append": True}
        first = await ctx.tool("fs:write_file", written, turn_id="t", call_id="c")
        again = await ctx.tool("fs:write_file", written, turn_id="t", call_id="c")
        other = await ctx.tool("fs:write_file", written, turn_id="t", call_id="d")
        assert (first.replayed, again.replayed, other.replayed) == (False, True, False)
        assert again.output == first.output
        assert (tmp_path / "log").read_text() == "xx"


async def test_limit(binary: Path) -> None:
    """A call beyond a limit raises, and says when to come again."""
    async with (
        testing.server(binary, args=["--tool-limits", "fs:list_dir 1/m"]) as srv,
        loombridge.connect(srv.address, agent_id="a") as ctx,
    ):
        await ctx.tool("fs:list_dir")
        with pytest.raises(loombridge.ToolLimitError) as caught:
            await ctx.tool("fs:list_dir")
        assert (caught.value.tool, caught.value.rule) == ("fs:list_dir", "fs:list_dir 1/m")
        assert 30 < caught.value.retry_after <= 61
