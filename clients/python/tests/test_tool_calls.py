"""Calls of tools that come again, and those that come too often."""

import json
from pathlib import Path
from typing import Any

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
        for call_id in ("", "c", "c"):
            with pytest.raises(loombridge.ToolLimitError) as caught:
                await ctx.tool("fs:list_dir", turn_id="t", call_id=call_id)
            assert (caught.value.tool, caught.value.rule) == ("fs:list_dir", "fs:list_dir 1/m")
            assert 30 < caught.value.retry_after <= 61


MISTAKES: list[tuple[str, Any, str, str]] = [
    ("fs_red_file", {"path": "a"}, "not_found", "did you mean fs_read_file?"),
    ("functions.read file", {}, "not_found", "Tool not found"),
    ("fs_read_file", {}, "invalid_arguments", "path: is required"),
    ("fs_read_file", {"path": "a", "timeout_ms": 1}, "invalid_arguments", "timeout_ms"),
    ("fs_read_file", '{"path": "a', "invalid_arguments", "the text ends before"),
    ("fs_read_file", "[1]", "invalid_arguments", "must be a JSON object"),
    ("fs_read_file", ["a"], "invalid_arguments", "must be a JSON object"),
    ("fs_read_file", '{"path": "' + "x" * (1 << 20) + '"}', "invalid_arguments", "exceed"),
]
"""Calls that a model got wrong: the name, its arguments, the failure's code and text."""


@pytest.mark.parametrize(("name", "arguments", "code", "text"), MISTAKES, ids=range(len(MISTAKES)))
async def test_mistake_of_a_model_is_its_result(
    live: loombridge.Client, name: str, arguments: Any, code: str, text: str
) -> None:
    """The loop goes on, and the next prompt says why the call failed."""
    called = arguments if isinstance(arguments, str) else json.dumps(arguments)
    # A message of more than 1 MiB is refused: such a call came cut.
    call = loombridge.ToolCall("c1", name, called[: 1 << 10])
    await live.context.append({"role": "user", "content": "read a"})
    await live.context.append(loombridge.Message("assistant", tool_calls=(call,)))
    result = await live.tool(name, arguments, call_id="c1")
    assert not result.success
    assert result.error is not None
    assert result.error.code == code
    assert text in result.error.message
    assert result.step is not None
    prompt = await live.context.assemble(format="openai", model="gpt-4o", tools=False)
    said = [m["content"] for m in prompt.openai()["messages"] if m["role"] == "tool"]
    assert len(said) == 1
    assert text in said[0]


async def test_mistake_of_the_program_raises(live: loombridge.Client) -> None:
    """What no model can mend is an exception, with a call_id as without one."""
    with pytest.raises(loombridge.InvalidRequestError):
        await live.tool("fs:read_file", {"path": "a"}, call_id="c" * 5000)
    with pytest.raises(loombridge.ToolNotFoundError):
        await live.tool("fs:red_file", {"path": "a"})
    with pytest.raises(loombridge.InvalidArgumentsError, match="timeout"):
        await live.tool("shell:run", {"command": "echo", "timeout_ms": 1})
