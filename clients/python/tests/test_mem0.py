"""mem0's names on a real server: results in its shapes, ids, filters, history, a model."""

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

import loombridge
from loombridge import testing
from loombridge.mem0 import AsyncMemory, Memory


@pytest.fixture
async def memory(srv: testing.Server) -> AsyncGenerator[AsyncMemory, None]:
    async with AsyncMemory(srv.address) as memory:
        yield memory


def texts(found: dict[str, Any]) -> list[str]:
    return [each["memory"] for each in found["results"]]


# Y31
async def test_imported_memories_are_found(
    memory: AsyncMemory, srv: testing.Server, binary: Path, tmp_path: Path
) -> None:
    file = tmp_path / "memories.json"
    old = {"id": "8b1c", "memory": "Ann likes pears", "metadata": {"shop": "north"}}
    whose = {"user_id": "ann", "run_id": "r1", "role": "user"}
    file.write_text(json.dumps({"results": [{**old, **whose}]}))
    arguments = ("import", "mem0", "--addr", srv.address, "--agent", "mem0", str(file))
    done = await asyncio.create_subprocess_exec(str(binary), *arguments)
    assert await done.wait() == 0
    (hit,) = (await memory.search("who likes pears", filters=whose))["results"]
    assert (hit["memory"], hit["metadata"]["shop"]) == ("Ann likes pears", "north")
    assert {name: hit[name] for name in whose} == whose
    assert texts(await memory.get_all(filters={"user_id": "bob"})) == []


# Y31
async def test_the_life_of_a_memory(memory: AsyncMemory) -> None:
    added = await memory.add(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "Ann", "content": "Ann likes pears"},
            {"role": "assistant", "content": "Noted."},
        ],
        user_id="ann",
        run_id="r1",
        metadata={"topic": "food"},
    )
    first, second = added["results"]
    assert {**first, "id": ""} == {
        "id": "",
        "memory": "Ann likes pears",
        "event": "ADD",
        "actor_id": "Ann",
        "role": "user",
    }
    assert (second["actor_id"], second["role"]) == (None, "assistant")
    (hit,) = (await memory.search("what does Ann like", filters={"user_id": "ann"}))["results"]
    assert 0.1 <= hit["score"] <= 1
    assert (hit["id"], hit["metadata"]) == (first["id"], {"topic": "food"})
    assert (hit["user_id"], hit["run_id"], hit["actor_id"], hit["role"]) == (
        "ann",
        "r1",
        "Ann",
        "user",
    )
    assert hit["created_at"] == hit["updated_at"]
    assert len(hit["hash"]) == 32
    changed = await memory.update(first["id"], "Ann likes figs", {"since": 2026, "user_id": "x"})
    assert changed == {"message": "Memory updated successfully!"}
    await memory.update(first["id"], data="Ann prefers figs")
    got = await memory.get(first["id"])
    assert got is not None
    assert (got["memory"], got["metadata"]) == (
        "Ann prefers figs",
        {"topic": "food", "since": 2026},
    )
    assert got["user_id"] == "ann"
    history = await memory.history(first["id"])
    assert [(each["event"], each["old_memory"], each["new_memory"]) for each in history] == [
        ("ADD", None, "Ann likes pears"),
        ("UPDATE", "Ann likes pears", "Ann likes figs"),
        ("UPDATE", "Ann likes figs", "Ann prefers figs"),
    ]
    assert await memory.delete(first["id"]) == {"message": "Memory deleted successfully!"}
    assert await memory.get(first["id"]) is None
    assert await memory.history(first["id"]) == []
    for gone in (memory.delete(first["id"]), memory.update(first["id"], "x")):
        with pytest.raises(ValueError, match="not found"):
            await gone


# Y31
async def test_ids_and_filters_choose(memory: AsyncMemory) -> None:
    for number, (user, agent) in enumerate([("ann", None), ("ann", "a1"), ("bob", "a1")]):
        await memory.add(
            f"note {number}",
            user_id=user,
            agent_id=agent,
            metadata={"n": number, "even": number % 2 == 0, "word": f"w{number}"},
        )
    every = {"user_id": "*"}
    for wanted, numbers in (
        ({"user_id": "ann"}, [0, 1]),
        ({"agent_id": "a1"}, [1, 2]),
        ({"user_id": "ann", "agent_id": "a1"}, [1]),
        ({**every, "n": 2}, [2]),
        ({**every, "n": {"gte": 1, "lt": 2}}, [1]),
        ({**every, "n": {"ne": 1}}, [0, 2]),
        ({**every, "word": {"in": ["w0", "w2"]}}, [0, 2]),
        ({**every, "word": {"nin": ["w0", "w2"]}}, [1]),
        ({**every, "even": True}, [0, 2]),
        ({**every, "OR": [{"n": 0}, {"word": "w1", "even": False}]}, [0, 1]),
        ({**every, "NOT": [{"n": 0}, {"n": 1}]}, [2]),
        ({**every, "AND": [{"n": {"gt": 0}}, {"even": True}]}, [2]),
        ({**every, "word": 'w"1'}, []),
    ):
        expected = [f"note {number}" for number in numbers]
        assert texts(await memory.get_all(filters=wanted)) == expected, wanted
        assert sorted(texts(await memory.search("note", filters=wanted))) == expected, wanted
    assert texts(await memory.get_all(user_id="ann", limit=1)) == ["note 0"]
    assert len(texts(await memory.search("note", agent_id="a1", top_k=1))) == 1
    assert texts(await memory.search("note", user_id="ann", threshold=1.0)) == []
    await memory.delete_all(user_id="ann")
    assert texts(await memory.get_all(filters=every)) == ["note 2"]
    await memory.reset()
    assert texts(await memory.get_all(filters=every)) == []


async def test_what_does_not_fit_is_refused(memory: AsyncMemory) -> None:
    for refused in (
        memory.add("x"),
        memory.add("x", user_id=" "),
        memory.add("x", user_id="a b"),
        memory.add(7, user_id="a"),  # pyright: ignore[reportArgumentType]
        memory.add([{"role": "user"}], user_id="a"),
        memory.add("x", user_id="a", infer=True),
        memory.add("x", user_id="a", metadata={"role": "king"}),
        memory.search("x"),
        memory.search("x", filters={"n": 1}),
        memory.search("x", user_id="a", filters={"n": {"contains": "y"}}),
        memory.search("x", user_id="a", filters={"n = 1 OR kind": "y"}),
        memory.search("x", user_id="a", filters={"n": [1]}),
        memory.get_all(),
        memory.delete_all(),
        memory.update("x"),
    ):
        with pytest.raises(ValueError, match=r"."):
            await refused
    with pytest.raises(TypeError, match="rerank"):
        await memory.search("x", user_id="a", rerank=True)  # pyright: ignore[reportCallIssue]
    assert texts(await memory.get_all(filters={"user_id": "*"})) == []


# Y31
async def test_a_model_reads_what_is_added(srv: testing.Server) -> None:
    def model(records: list[loombridge.Record]) -> Any:
        asked.append([each.text for each in records])
        return answers.pop(0)

    asked: list[list[str]] = []
    answers: list[Any] = [["Ann lives in Lisbon", {"text": "Ann likes pears", "tags": ["food"]}]]
    answers.append("rubbish")
    async with AsyncMemory(srv.address, model=model) as memory:
        said = [{"role": "user", "content": "I'm Ann, from Lisbon. Pears!"}]
        added = await memory.add(said, user_id="ann", metadata={"day": 1}, infer=True)
        assert texts(added) == ["Ann lives in Lisbon", "Ann likes pears"]
        assert asked == [["I'm Ann, from Lisbon. Pears!"]]
        every = await memory.get_all(user_id="ann")
        assert texts(every) == ["Ann lives in Lisbon", "Ann likes pears"]
        assert every["results"][0]["metadata"] == {"day": 1}
        with pytest.raises(ValueError, match="refused: a model returns a list, not str"):
            await memory.add("more", user_id="ann", infer=True)
        assert len(texts(await memory.get_all(user_id="ann"))) == 2
    async with loombridge.connect(srv.address, agent_id="mem0") as ctx:
        derived = await ctx.memory.get(id=added["results"][0]["id"])
        message = await ctx.memory.get(id=derived.derived_from[0])
        assert (message.kind, message.text) == ("mem0.message", "I'm Ann, from Lisbon. Pears!")


# Y31
def test_without_async(srv: testing.Server) -> None:
    with Memory(srv.address) as memory:
        added = memory.add("Ann likes pears", user_id="ann")["results"][0]
        assert texts(memory.search("pears", user_id="ann")) == ["Ann likes pears"]
        assert memory.update(added["id"], "Ann likes figs")
        assert len(memory.history(added["id"])) == 2
        got = memory.get(added["id"])
        assert got is not None
        assert got["memory"] == "Ann likes figs"
        assert texts(memory.get_all(user_id="ann")) == ["Ann likes figs"]
        memory.add("another", user_id="ann")
        memory.delete(added["id"])
        memory.delete_all(user_id="ann")
        memory.add("a third", agent_id="a1")
        memory.reset()
        assert memory.get_all(agent_id="a1") == {"results": []}

        async def cell() -> dict[str, Any]:
            return memory.add("from a notebook", run_id="r1")

        assert texts(asyncio.run(cell())) == ["from a notebook"]
    memory.close()
    with pytest.raises(loombridge.ClientClosedError):
        memory.get("x")
    assert "loombridge-mem0" not in [each.name for each in threading.enumerate()]


def test_both_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, list[tuple[str, Any, Any]]]:
        return {
            name: [
                (each.name, each.kind, each.default)
                for each in inspect.signature(member).parameters.values()
            ]
            for name, member in vars(kind).items()
            if not name.startswith("_")
        }

    assert methods(Memory) == methods(AsyncMemory)
    assert sorted(methods(Memory)) == [
        "add",
        "close",
        "delete",
        "delete_all",
        "get",
        "get_all",
        "history",
        "reset",
        "search",
        "update",
    ]


async def test_a_client_is_used_and_stays_open(live: loombridge.Client) -> None:
    async with AsyncMemory(live) as memory:
        await memory.add("Ann likes pears", user_id="ann")
    assert (await live.memory_query("pears"))[0].record.kind == "mem0"
