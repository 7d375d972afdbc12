"""Records watched, exported and imported, against a server."""

import asyncio
from pathlib import Path

import pytest

import loombridge
from loombridge.testing import Server


async def test_a_copy_follows(srv: Server) -> None:
    """A copy that is fed by changes alone is the memory, across two watches."""
    async with loombridge.connect(srv.address, agent_id="watched") as ctx:
        kept = await ctx.memory_save("kept", metadata={"n": 1})
        gone = await ctx.memory_save("gone")
        known: dict[str, str] = {}
        position = None
        async with ctx.memory.watch() as watch:
            async for change in watch:
                position = change.position
                if change.caught_up:
                    break
                assert change.record is not None
                known[change.record.id] = change.record.text
        assert known == {kept.id: "kept", gone.id: "gone"}
        await ctx.memory.delete(id=gone.id)
        await ctx.memory.update(id=kept.id, text="changed")
        async with ctx.memory.watch(after=position) as watch:
            first, second, third = [await anext(watch) for _ in range(3)]
            assert (first.deleted_id, first.record) == (gone.id, None)
            assert second.record is not None
            assert (second.record.id, second.record.text) == (kept.id, "changed")
            assert third.caught_up
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(watch)
            later = await ctx.memory_save("later")
            live = await anext(watch)
            assert live.record is not None
            assert live.record.id == later.id


async def test_a_position_of_another_memory(srv: Server) -> None:
    """A position that is not of this memory is an error of its own."""
    async with loombridge.connect(srv.address, agent_id="one") as one:
        position = (await anext(one.memory.watch())).position
    async with loombridge.connect(srv.address, agent_id="two") as two:
        with pytest.raises(loombridge.PositionGoneError):
            await anext(two.memory.watch(after=position))


async def test_export_and_import(srv: Server, tmp_path: Path) -> None:
    """What is exported and imported is the same export there; a file will do."""
    async with loombridge.connect(srv.address, agent_id="from") as ctx:
        await ctx.memory.save_many([f"note {n} \u2028 of the garden" for n in range(300)])
        await ctx.memory_save("old", key="k")
        await ctx.memory_save("new", key="k", replace=True)
        lines = [line async for line in ctx.memory.export_lines()]
    file = tmp_path / "memory.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    async with loombridge.connect(srv.address, agent_id="to") as ctx:
        with file.open(encoding="utf-8", newline="\n") as opened:
            got = await ctx.memory.import_lines(opened)
        assert (got.saved, got.unchanged, got.skipped, got.expired) == (301, 0, 0, 0)
        assert [line async for line in ctx.memory.export_lines()] == lines
        assert (await ctx.memory.import_lines(lines)).unchanged == 301
        assert [v.text for v in await ctx.memory.versions(key="k")] == ["new", "old"]
        other = [line.replace("note 7 ", "note 8 ") for line in lines]
        with pytest.raises(loombridge.RecordExistsError):
            await ctx.memory.import_lines(other)
        assert (await ctx.memory.import_lines(other, skip_existing=True)).skipped == 1
        with pytest.raises(loombridge.InvalidRequestError, match="line 1"):
            await ctx.memory.import_lines(["nothing"])
        with pytest.raises(TypeError, match="one text"):
            await ctx.memory.import_lines(lines[0])


async def test_an_import_is_undone(srv: Server) -> None:
    async with (
        loombridge.connect(srv.address, agent_id="py-undo-from") as there,
        loombridge.connect(srv.address, agent_id="py-undo") as ctx,
    ):
        for text in ("pears", "plums", "quinces"):
            await there.memory_save(text)
        lines = [line async for line in there.memory.export_lines()]
        await ctx.memory_save("apples")
        brought = await ctx.memory.import_lines(lines)
        mine = await ctx.memory.import_lines(lines, import_id="mine")
        assert (brought.saved, mine.unchanged, mine.import_id) == (3, 3, "mine")
        undo = f'import_id = "{brought.import_id}" AND import_changes = 0'
        changed, *_ = [r async for r in ctx.memory.list(filter=undo)]
        assert changed.import_id == brought.import_id
        await ctx.memory.update(id=changed.id, text="pears, and medlars")
        assert await ctx.memory.delete_matching(undo, tiers=(2, 3, 4)) == 2
        assert await ctx.memory.delete_matching(undo, tiers=(2, 3, 4)) == 0
        assert sorted([r.text async for r in ctx.memory.list()]) == [
            "apples",
            "pears, and medlars",
        ]
