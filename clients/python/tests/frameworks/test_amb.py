"""The provider for the Agent Memory Benchmark, as the benchmark calls it."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import EXAMPLES
from interpreters import run

sys.path.extend(
    [str(Path(__file__).with_name("stand_in")), str(EXAMPLES / "frameworks")],
)

import amb_provider
from memory_bench.memory import REGISTRY
from memory_bench.memory.base import MemoryProvider
from memory_bench.models import Document

STAND_IN = str(Path(__file__).with_name("stand_in"))


@pytest.fixture
def provider() -> Iterator[MemoryProvider]:
    provider = REGISTRY["loom-bridge"]()
    yield provider
    provider.cleanup()


TURNS = [
    {"speaker": "Ann", "dia_id": "D1:1", "text": "My bees moved out in May."},
    {"speaker": "Bob", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a hive on a roof"},
]
DOCUMENTS = [
    Document("s1", json.dumps(TURNS), "conv-1", timestamp="2023-05-08T13:56:00+00:00"),
    Document("s2", "", "conv-1", messages=[{"role": "user", "content": "I keep two goats."}]),
    Document("d1", "Goats eat hay. " * 9_000, "conv-2", timestamp="a Sunday"),
    Document("d2", " ", "conv-2"),
]


async def test_what_is_ingested_is_retrieved(provider: MemoryProvider, tmp_path: Path) -> None:
    store = tmp_path / "store"
    provider.prepare(store, unit_ids={"conv-1", "conv-2"})
    await provider.async_ingest(DOCUMENTS)
    await provider.async_ingest(DOCUMENTS[:2])
    asked = ["When did the bees move out?", "What is on the roof?", "How many goats?"]
    answers = await asyncio.gather(
        *(provider.async_retrieve(query, k=1, user_id="conv-1") for query in asked)
    )
    assert [(documents[0].id, raw) for documents, raw in answers] == [
        ("s1", None),
        ("s1", None),
        ("s2", None),
    ]
    bees = answers[0][0][0]
    assert bees.content == "[2023-05-08T13:56:00+00:00] Ann: My bees moved out in May."
    assert bees.timestamp == "2023-05-08T13:56:00+00:00"
    assert answers[1][0][0].content.endswith("Bob: Look! [image: a hive on a roof]")
    found, _ = provider.retrieve("goats", k=9, user_id="conv-1")
    assert {document.id for document in found} <= {"s1", "s2"}
    assert found[0].content == "user: I keep two goats."
    found, _ = provider.retrieve("goats", k=9, user_id="conv-2", query_timestamp="2024-01-01")
    assert {document.id for document in found} == {"d1"}
    assert len(found) == -(-len(DOCUMENTS[2].content) // amb_provider.TEXT_CHARS)
    # A run without ingestion goes on with what is there; another begins anew.
    provider.cleanup()
    provider.prepare(store, reset=False)
    assert provider.retrieve("goats", user_id="conv-1")[0]
    provider.prepare(store)
    assert provider.retrieve("goats", user_id="conv-1") == ([], None)


async def test_the_command_of_the_benchmark_knows_it() -> None:
    code, output = await run(str(amb_provider.__file__), PYTHONPATH=STAND_IN)
    assert (code, output) == (0, "memory providers: loom-bridge\n")
