"""Claude's memory tool on the real server: the words of its answers, and what they keep."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="Anthropic's library is not part of the lowest environment")

from anthropic.lib.tools import ToolError

import loombridge
from loombridge import testing
from loombridge.anthropic import AsyncLoomBridgeMemoryTool, LoomBridgeMemoryTool


@pytest.fixture
def memory(srv: testing.Server) -> Generator[LoomBridgeMemoryTool, None, None]:
    with LoomBridgeMemoryTool(srv.address) as memory:
        yield memory


def create(path: str, text: str = "text") -> dict[str, Any]:
    return {"command": "create", "path": path, "file_text": text}


def view(path: str, *lines: int) -> dict[str, Any]:
    return {"command": "view", "path": path, "view_range": list(lines) or None}


def replace(path: str, old: str, new: str) -> dict[str, Any]:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> dict[str, Any]:
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path: str) -> dict[str, Any]:
    return {"command": "delete", "path": path}


def rename(old: str, new: str) -> dict[str, Any]:
    return {"command": "rename", "old_path": old, "new_path": new}


def refused(memory: LoomBridgeMemoryTool, command: dict[str, Any]) -> str:
    with pytest.raises(ToolError) as err:
        memory.call(command)
    return str(err.value)


def test_a_file_is_made_seen_and_edited(memory: LoomBridgeMemoryTool) -> None:
    path = "/memories/a.txt"
    assert memory.call(create(path, "one\ntwo\nthree\n")) == (
        "File created successfully at: /memories/a.txt"
    )
    assert refused(memory, create(path)) == "File /memories/a.txt already exists"
    assert memory.call(replace(path, "two", "2")) == (
        "The memory file has been edited. Here is the snippet showing the change (with line "
        "numbers):\n     1\tone\n     2\t2\n     3\tthree\n     4\t"
    )
    assert memory.call(insert(path, 1, "new\n")) == "The file /memories/a.txt has been edited."
    assert memory.call(view(path, 2, 3)) == (
        "Here's the content of /memories/a.txt with line numbers:\n     2\tnew\n     3\t2"
    )
    assert "\n     4\tthree\n     5\t" in str(memory.call(view(path, 4, -1)))
    assert "range [0, 4]" in refused(memory, insert(path, 5, "x"))
    assert "did not appear verbatim" in refused(memory, replace(path, "seven", "x"))
    assert "in lines: 1, 2, 4, 4." in refused(memory, replace(path, "e", "x"))
    for command in (
        view("/memories/b"),
        replace("/memories/b", "x", "y"),
        insert("/memories/b", 0, "x"),
    ):
        assert refused(memory, command) == (
            "The path /memories/b does not exist. Please provide a valid path."
        )


def test_folders_are_listed_renamed_and_deleted(memory: LoomBridgeMemoryTool) -> None:
    for path, text in {
        "a/b/c/deep.txt": "xy",
        "a/d.txt": "",
        "e*.txt": "z" * 1536,
        ".hid": "x",
    }.items():
        memory.call(create(f"/memories/{path}", text))
    header = "Here're the files and directories up to 2 levels deep in"
    assert memory.call(view("/memories")) == (
        f"{header} /memories, excluding hidden items:\n1.5K\t/memories\n2B\t/memories/a/\n"
        "2B\t/memories/a/b/\n0B\t/memories/a/d.txt\n1.5K\t/memories/e*.txt"
    )
    assert "the file" not in refused(memory, create("/memories/a/d.txt/x"))
    assert "is not a directory" in refused(memory, create("/memories/a/d.txt/x"))
    assert "is not a file" in refused(memory, replace("/memories/a", "x", "y"))
    assert refused(memory, create("/memories/a")) == "File /memories/a already exists"
    assert "already exists" in refused(memory, rename("/memories/.hid", "/memories/a"))
    assert "does not exist" in refused(memory, rename("/memories/none", "/memories/x"))
    memory.call(insert("/memories/a/d.txt", 0, "first"))
    moved = memory.call(rename("/memories/a", "/memories/n"))
    assert moved == "Successfully renamed /memories/a to /memories/n"
    assert "does not exist" in refused(memory, view("/memories/a"))
    assert "\n     1\tfirst\n" in str(memory.call(view("/memories/n/d.txt")))
    memory.call(create("/memories/a/d.txt", "again"))
    assert memory.call(delete("/memories/n")) == "Successfully deleted /memories/n"
    assert "does not exist" in refused(memory, delete("/memories/n"))
    assert "again" in str(memory.call(view("/memories/a/d.txt")))
    memory.call(delete("/memories/e*.txt"))
    assert memory.clear_all_memory() == "All memory cleared"
    assert memory.call(view("/memories")) == (
        f"{header} /memories, excluding hidden items:\n0B\t/memories"
    )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "must start with /memories"),
        ("/memories/../etc/passwd", "would escape /memories directory"),
        ("/memories/a\x00b", "NUL"),
        ("/memories/" + "a" * 300, "240 bytes"),
    ],
)
def test_a_path_leads_nowhere_else(memory: LoomBridgeMemoryTool, path: str, why: str) -> None:
    for command in (create(path), view(path), delete(path), rename(path, "/memories/x")):
        assert why in refused(memory, command)
    assert "would be longer" in refused(memory, create("/memories/a", "x" * (256 << 10) + "x"))
    for command in (delete("/memories"), rename("/memories/", "/memories/x")):
        assert "the /memories directory itself" in refused(memory, command)


async def test_who_edit_at_the_same_time_lose_nothing(srv: testing.Server) -> None:
    async with AsyncLoomBridgeMemoryTool(srv.address, user_id="ann") as memory:
        await memory.call(create("/memories/a", ""))
        await asyncio.gather(*(memory.call(insert("/memories/a", 0, f"l{n}")) for n in range(5)))
        seen = str(await memory.call(view("/memories/a")))
        assert all(f"\tl{n}\n" in seen for n in range(5))
        assert memory.to_dict() == {"type": "memory_20250818", "name": "memory"}
        assert "already exists" in await refusal(memory, create("/memories/a"))
        await memory.call(replace("/memories/a", "l0", "pears"))
        await memory.call(rename("/memories/a", "/memories/b"))
    await srv.kill9()
    await srv.start()
    async with loombridge.connect(srv.address, agent_id="other") as ctx:
        (hit,) = await ctx.memory_query("pears", user_id="ann")
        assert "pears" in hit.text
    async with AsyncLoomBridgeMemoryTool(srv.address, user_id="ann") as memory:
        await memory.call(delete("/memories/b"))
        await memory.clear_all_memory()


async def refusal(memory: AsyncLoomBridgeMemoryTool, command: dict[str, Any]) -> str:
    with pytest.raises(ToolError) as err:
        await memory.call(command)
    return str(err.value)


# As if a process had been killed between the two commits of a renaming.
async def test_a_file_that_was_moved_is_not_there(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="claude") as ctx:
        memory = AsyncLoomBridgeMemoryTool(ctx)
        await memory.call(create("/memories/a"))
        (old,) = await ctx.memory.list()
        about = {"path": "/memories/b", "empty": False}
        new = loombridge.RecordDraft(
            text="text",
            key="memory_file:/memories/b",
            kind="memory_file",
            metadata=about,
            supersedes=old.id,
        )
        await ctx.memory.save_many([new])
        assert "does not exist" in await refusal(memory, view("/memories/a"))
        assert str(await memory.call(view("/memories"))).endswith("\n4B\t/memories/b")
        assert await memory.call(create("/memories/a", "new"))
        assert "new" in str(await memory.call(view("/memories/a")))
