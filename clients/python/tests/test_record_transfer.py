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
        assert got == loombridge.ImportedRecords(saved=301, unchanged=0, skipped=0, expired=0)
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
