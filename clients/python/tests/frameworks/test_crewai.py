"""The storage for CrewAI, on the real server; with CrewAI itself, where it is installed."""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pydantic", reason="pydantic, whose models CrewAI's are, is not installed")

sys.path.append(str(Path(__file__).with_name("stand_in")))

from crewai.memory.types import MemoryRecord

from loombridge import testing
from loombridge.crewai import LoomBridgeStorage

BEGIN = datetime(2026, 1, 1, 12)


@pytest.fixture
def storage(srv: testing.Server) -> Iterator[LoomBridgeStorage]:
    with LoomBridgeStorage(srv.address) as storage:
        yield storage


def memory(number: int, scope: str, *categories: str, **metadata: object) -> MemoryRecord:
    return MemoryRecord(
        id=f"m{number}",
        content=f"Memory {number}",
        scope=scope,
        categories=list(categories),
        metadata=metadata,
        importance=number / 10,
        created_at=BEGIN + timedelta(minutes=number),
        embedding=[1.0, number / 4, 0.0],
        source="ann",
        private=number == 2,
    )


MEMORIES = [
    memory(1, "/crew/sales", "price", env="prod", n=1),
    memory(2, "/crew/sales/north", "price", "news", **{"odd key": True}),
    memory(3, "crew/sales*", env="test"),
    memory(4, "/", "news", env="prod", n=1.5),
]


def ids(memories: list[MemoryRecord]) -> list[str]:
    return [each.id for each in memories]


async def test_memories_outlive_their_server(srv: testing.Server) -> None:
    async with LoomBridgeStorage(srv.address) as storage:
        await storage.asave(MEMORIES)
    await srv.kill9()
    await srv.start()
    async with LoomBridgeStorage(srv.address) as storage:
        found = await storage.asearch([1.0, 0.0, 0.0], limit=2)
        assert ids([record for record, _ in found]) == ["m1", "m2"]
        assert round(found[0][1], 3) == 0.97
        assert found[1][0] == MEMORIES[1].model_copy(
            update={"categories": ["news", "price"], "embedding": None}
        )
        assert await storage.adelete(record_ids=["m1", "m9"]) == 1


def test_what_searches_find(storage: LoomBridgeStorage) -> None:
    storage.save(MEMORIES)

    def find(**conditions: object) -> list[str]:
        found = storage.search([1.0, 0.0, 0.0], **conditions)  # pyright: ignore[reportArgumentType]
        return ids([record for record, _ in found])

    assert find() == ["m1", "m2", "m3", "m4"]
    assert find(scope_prefix="/crew/sales/") == ["m1", "m2"]
    assert find(scope_prefix="/crew/sales*") == ["m3"]
    assert find(scope_prefix="/") == find(scope_prefix="") == find()
    assert find(categories=["news", "none"]) == ["m2", "m4"]
    assert find(metadata_filter={"env": "prod", "n": 1}) == ["m1"]
    assert find(metadata_filter={"odd key": True}) == ["m2"]
    assert find(min_score=0.85) == ["m1", "m2"]
    assert find(limit=0) == []
    assert storage.search([0.0, 0.0, 0.0]) == storage.search([1.0]) == []
    with pytest.raises(ValueError, match="metadata are compared"):
        find(metadata_filter={"env": ["prod"]})


def test_scopes_and_categories(storage: LoomBridgeStorage) -> None:
    assert storage.get_scope_info("/").record_count == storage.count() == 0
    storage.save(MEMORIES)
    assert storage.list_scopes() == ["/crew"]
    assert storage.list_scopes("/crew") == ["/crew/sales", "/crew/sales*"]
    assert storage.list_categories("/crew") == {"news": 1, "price": 2}
    assert storage.count("/crew/sales") == 2
    info = storage.get_scope_info("/crew/")
    assert info.path == "/crew"
    assert info.record_count == 3
    assert info.categories == ["news", "price"]
    assert (info.oldest_record, info.newest_record) == (
        MEMORIES[0].created_at,
        MEMORIES[2].created_at,
    )
    assert info.child_scopes == ["/crew/sales", "/crew/sales*"]
    assert ids(storage.list_records()) == ["m4", "m3", "m2", "m1"]
    assert ids(storage.list_records("/crew", limit=1, offset=1)) == ["m2"]


def test_changes_and_deletions(storage: LoomBridgeStorage) -> None:
    storage.save(MEMORIES)
    known = storage.get_record("m2")
    assert known is not None
    assert known.embedding == MEMORIES[1].embedding
    storage.update(known.model_copy(update={"content": "Changed", "embedding": [0.0, 0.0, 1.0]}))
    storage.update(memory(5, "/late"))
    ((changed, score),) = storage.search([0.0, 0.0, 1.0], limit=1)
    assert (changed.id, changed.content, score) == ("m2", "Changed", 1.0)
    assert storage.count() == 5
    storage.touch_records(["m2", "none"])
    touched = storage.get_record("m2")
    assert touched is not None
    assert touched.last_accessed > known.last_accessed
    assert touched.model_copy(update={"last_accessed": known.last_accessed}) == changed.model_copy(
        update={"embedding": touched.embedding}
    )
    assert storage.get_record("none") is storage.get_record("") is None
    assert storage.delete(older_than=MEMORIES[1].created_at) == 1
    assert storage.delete(record_ids=["m2"], scope_prefix="/late") == 0
    assert storage.delete(record_ids=[]) == 0
    assert storage.delete(categories=["price"], metadata_filter={"odd key": True}) == 1
    storage.reset("/crew")
    assert ids(storage.list_records()) == ["m5", "m4"]
    storage.reset()
    assert storage.count() == 0
