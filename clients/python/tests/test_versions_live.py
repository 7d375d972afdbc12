"""The life of records: replaced, looked back at, deleted and copied, on a real server."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import loombridge
from loombridge import testing


async def test_a_record_has_a_past(live: loombridge.Client) -> None:
    first = await live.memory_save("She lives in Rome", key="city", tags=["home"])
    second = await live.memory_save("She lives in Oslo", key="city", replace=True)
    assert (second.id, second.version) == (first.id, 2)
    versions = await live.memory.versions(key="city")
    assert [v.text for v in versions] == ["She lives in Oslo", "She lives in Rome"]
    assert versions[0].update_time is not None
    assert versions[1].update_time is None
    assert await live.memory.versions(id=first.id, limit=1) == versions[:1]
    then = await live.memory.get(key="city", as_of=first.create_time)
    assert (then.text, then.tags) == ("She lives in Rome", ("home",))
    with pytest.raises(loombridge.RecordNotFoundError):
        await live.memory.get(key="city", as_of=first.create_time - timedelta(seconds=1))


async def test_a_filter_deletes(live: loombridge.Client) -> None:
    await live.memory.save_many({"text": f"leaf {i}", "tags": ["old"]} for i in range(5))
    await live.memory_save("the trunk")
    assert await live.memory.delete_matching('tags:"old"', dry_run=True) == 5
    assert await live.memory.delete_matching('tags:"old"') == 5
    assert [r.text async for r in live.memory.list()] == ["the trunk"]
    with pytest.raises(loombridge.InvalidFilterError):
        await live.memory.delete_matching("old")


async def test_repeats_reinforce(live: loombridge.Client) -> None:
    first = await live.memory_save("Ann owns two cats", duplicates="reinforce")
    assert (first.outcome, first.similarity, first.repeats) == ("saved", 0.0, 0)
    again = await live.memory_save("Note: Ann owns two cats.", duplicates="reinforce")
    assert (again.id, again.outcome, again.repeats) == (first.id, "reinforced", 1)
    assert 0.5 < again.similarity < 1
    batch = await live.memory.save_many(
        ["ann owns two cats", "Ann owns two cars"], duplicates="reinforce"
    )
    assert [s.outcome for s in batch] == ["reinforced", "saved"]
    record = await live.memory.get(id=first.id)
    assert (record.repeats, record.archived, record.archive_time) == (2, False, None)
    assert record.last_repeat_time is not None
    assert (await live.memory_save("Ann owns two cats")).id != first.id
    with pytest.raises(ValueError, match="keep"):
        await live.memory_save("Ann owns two cats", duplicates="drop")  # type: ignore[arg-type]


async def test_the_archive(binary: Path) -> None:
    async with (
        testing.server(binary, args=("--memory-limit", "2")) as server,
        loombridge.connect(server.address, agent_id="a") as ctx,
    ):
        first = await ctx.memory_save("the pump needs oil", importance=0)
        await ctx.memory_save("the pump is loud")
        third = await ctx.memory_save("the pump is red")
        assert third.archived_ids == (first.id,)
        hits = await ctx.memory_query("pump oil")
        assert first.id not in [h.record.id for h in hits]
        assert hits.receipt.archived == 1
        hits = await ctx.memory_query("pump oil", include_archived=True)
        assert hits[0].record.id == first.id
        assert hits[0].record.archived
        assert [r.id async for r in ctx.memory.list(filter="archived = true")] == [first.id]
        stats = await ctx.memory.stats()
        assert (stats.records, stats.archived) == (3, 1)
        restored = await ctx.memory.archive(id=first.id, restore=True)
        assert (restored.archived, restored.archive_time) == (False, None)
        archived = await ctx.memory.archive(id=third.id, expected_version=1)
        assert archived.archived
        assert archived.archive_time is not None
    async with (
        testing.server(binary, args=("--memory-limit", "1", "--archive-limit", "1")) as server,
        loombridge.connect(server.address, agent_id="a") as ctx,
    ):
        saved = [await ctx.memory_save(f"pump {i}") for i in range(4)]
        assert [s.deleted_count for s in saved] == [0, 0, 1, 1]
        assert saved[3].archived_ids == (saved[2].id,)
        lines = [line async for line in ctx.memory.export_lines()]
        await ctx.memory.save_many(["valve 1", "valve 2"], user_id="ann")
        answer = await ctx.memory.import_lines(lines, user_id="ann")
        assert (answer.saved, answer.archived, answer.deleted) == (2, 1, 2)


async def test_records_wait_for_review(binary: Path) -> None:
    async with (
        testing.server(binary, args=("--hold-origins", "tool,web")) as server,
        loombridge.connect(server.address, agent_id="a") as ctx,
    ):
        saved = await ctx.memory_save("the pump needs oil", origin="web", key="oil")
        assert saved.review == "held"
        assert not (await ctx.memory_query("pump oil")).hits
        assert [(r.id, r.review) async for r in ctx.memory.list(filter='review = "held"')] == [
            (saved.id, "held")
        ]
        approved = await ctx.memory.review(key="oil", approve=True, expected_version=1)
        assert (approved.review, approved.origin, approved.version) == ("approved", "web", 2)
        hit = (await ctx.memory_query("pump oil")).hits[0].record
        assert (hit.id, hit.origin, hit.review) == (saved.id, "web", "approved")
        with pytest.raises(loombridge.VersionConflictError):
            await ctx.memory.review(id=saved.id, approve=False, expected_version=1)
        assert (await ctx.memory.review(id=saved.id, approve=False)).review == "rejected"
        assert not (await ctx.memory_query("pump oil")).hits
        assert (await ctx.memory_save("the pump is loud", origin="user")).review == ""


async def test_the_store_is_copied(binary: Path, tmp_path: Path) -> None:
    copies = ("--backup-dir", str(tmp_path / "copies"), "--backup-interval", "0")
    async with (
        testing.server(binary, args=copies) as server,
        loombridge.connect(server.address, agent_id="operator") as ctx,
    ):
        await ctx.memory_save("worth keeping")
        first = await ctx.backups.create()
        steps = [progress async for progress in ctx.backups.create(full=True)]
        second = steps[-1].backup
        assert second is not None
        assert second.new_bytes == second.bytes == steps[-1].done == steps[-1].total
        assert await ctx.backups.list() == [second, first]


async def test_no_copies_without_a_folder(live: loombridge.Client) -> None:
    with pytest.raises(loombridge.NoBackupFolderError):
        await live.backups.list()
    with pytest.raises(loombridge.NoBackupFolderError):
        await live.backups.create()


async def test_old_records_go(binary: Path) -> None:
    """What is older than `--retain-records` goes, and the status counts it."""
    async with (
        testing.server(binary, args=("--retain-records", "50ms")) as server,
        loombridge.connect(server.address, agent_id="a1", session_id="s1") as ctx,
    ):
        kept = await ctx.memory_save("stays", pinned=True)
        await ctx.memory_save("goes")
        seen, left = None, list[str]()
        for _ in range(1000):
            seen = (await ctx.status()).retention
            left = [r.id async for r in ctx.memory.list()]
            if seen is not None and seen.deleted_records == 1 and left == [kept.id]:
                break
            await asyncio.sleep(0.01)
        assert seen is not None
        assert left == [kept.id]
        assert (seen.deleted_records, seen.failing) == (1, False)
