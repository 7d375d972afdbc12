"""What the store for LangGraph promises beyond the contract, on the real server."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

pytest.importorskip(
    "langgraph.store.base", reason="LangGraph is not part of the lowest environment"
)

from langgraph.store.base import GetOp, IndexConfig, PutOp

import loombridge
from letters import DIMS, Letters, letters, near
from loombridge import testing
from loombridge.langgraph import LoomBridgeStore


@pytest.fixture
def store(srv: testing.Server) -> Generator[LoomBridgeStore, None, None]:
    with LoomBridgeStore(srv.address, agent_id="a1") as store:
        yield store


# F08
def test_without_an_index_words_rank(store: LoomBridgeStore) -> None:
    store.put(("u", "ann"), "food", {"text": "Ann likes pears", "since": 2019})
    store.put(("u", "bob"), "food", {"text": "Bob eats plums"})
    store.put(("u", "eve"), "secret", {"text": "plums and pears"}, index=False)
    store.put(("u", "dan"), "note", {"title": "plums", "text": "none"}, index=["text"])
    first, *rest = store.search(("u",), query="who eats plums")
    assert (first.key, first.namespace) == ("food", ("u", "bob"))
    assert first.score is not None
    assert 0 < first.score <= 1
    assert {item.score for item in rest} == {None}
    assert len(rest) == 3
    assert store.search(("u",), query="2019")[0].value["since"] == 2019
    assert [i.score for i in store.search(("u",), query="plums", filter={"title": "plums"})] == [
        None
    ]
    assert len(store.search(("u",), query="plums", limit=2)) == 2
    assert len(store.search(("u",), query="plums", limit=2, offset=3)) == 1


def test_words_behind_a_filter_that_only_the_client_knows(store: LoomBridgeStore) -> None:
    ops = [PutOp(("w",), f"k{i:02}", {"text": "apple", "sub": {"n": i}}) for i in range(40)]
    store.batch(ops)
    found = store.search(("w",), query="apple", filter={"sub": {"n": 31}}, limit=1)
    assert [(item.key, item.score is None) for item in found] == [("k31", False)]


def test_times_tell_of_the_first_and_the_last_put(store: LoomBridgeStore) -> None:
    store.put(("t",), "k", {"n": 1})
    first = store.get(("t",), "k")
    store.put(("t",), "k", {"n": 2})
    second = store.get(("t",), "k")
    assert first is not None
    assert second is not None
    assert first.created_at == first.updated_at == second.created_at
    assert second.updated_at > second.created_at
    assert second.created_at.tzinfo is not None
    assert store.search(("t",))[0] == second


def test_the_whole_value_may_be_one_of_the_fields(srv: testing.Server) -> None:
    with LoomBridgeStore(srv.address, index=letters("title")) as store:
        store.put(("t",), "k", {"text": "xyz"}, index=["$"])
        assert store.search(("t",), query="xyz")[0].score


async def test_nothing_is_left_of_a_deleted_item(
    srv: testing.Server, live: loombridge.Client
) -> None:
    async def stored() -> int:
        return len([record async for record in live.memory.list()])

    async with LoomBridgeStore(live, index=letters("list[*]")) as store:
        await store.aput(("t",), "k", {"list": ["a", "b", "c"]})
        assert await stored() == 4
        await store.aput(("t",), "k", {"list": ["a", "b"]})
        assert await stored() == 3
        await store.aput(("t",), "k", {"list": ["a"]})
        assert await stored() == 1
        await store.aput(("t",), "k", {"list": ["a", "b", "c"]})
        await store.aput(("t",), "k", {"list": ["a", "b", "c"]}, index=False)
        assert await stored() == 1
        await store.aput(("t",), "k", {"list": ["a", "b", "c"]})
        await store.adelete(("t",), "k")
        assert await stored() == 0


async def test_vectors_that_were_left_over_are_passed_over(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live, index=letters("list[*]"))
    await store.aput(("t",), "k", {"list": ["xxx", "yyy"]})
    await store.aput(("t",), "other", {"list": ["zzz", "www"]})
    # As if a process had ended between the item and its vectors.
    await LoomBridgeStore(live).aput(("t",), "k", {"list": ["new"]})
    assert len([record async for record in live.memory.list()]) == 6
    found = await store.asearch(("t",), query="xxx")
    assert [(item.key, item.score is None) for item in found] == [("other", False), ("k", True)]
    assert found[1].value == {"list": ["new"]}


async def test_more_vectors_than_one_query_finds(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live, index=letters("list[*]"))
    many = {"list": [f"x{i}" for i in range(120)]}
    await store.abatch([PutOp(("t",), f"k{i}", many) for i in range(2)])
    await store.aput(("t",), "far", {"list": ["qqq"]})
    found = await store.asearch(("t",), query="x7", limit=3)
    assert {item.key for item in found[:2]} == {"k0", "k1"}
    assert found[0].score == near(1)
    assert found[2].key == "far"
    assert len(await store.asearch(("t",), query="x7", limit=500)) == 3


async def test_texts_are_embedded_once_and_where_the_caller_is(srv: testing.Server) -> None:
    class Here(Letters):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            assert asyncio.get_running_loop() is loop
            return self.embed_documents(texts)

    loop, embed = asyncio.get_running_loop(), Here()
    async with LoomBridgeStore(srv.address, index={"dims": DIMS, "embed": embed}) as store:
        ops = [PutOp(("t",), f"k{i}", {"same": "text"}) for i in range(3)]
        await store.abatch([*ops, PutOp(("t",), "k0", None)])
    assert embed.asked == ['{"same": "text"}']


async def test_functions_may_embed(srv: testing.Server) -> None:
    def plain(texts: Any) -> list[list[float]]:
        return Letters().embed_documents(list(texts))

    async def awaited(texts: Any) -> list[list[float]]:
        return plain(texts)

    for i, embed in enumerate((plain, awaited)):
        index: IndexConfig = {"dims": DIMS, "embed": embed}
        async with LoomBridgeStore(srv.address, agent_id=f"f{i}", index=index) as store:
            await store.aput(("t",), "k", {"text": "xxx"})
            assert (await store.asearch(("t",), query="xxx"))[0].score


class Fixed(Letters):
    """Gives three texts the vectors that tell the measures apart, in a type that is no list."""

    def embed_query(self, text: str) -> Any:
        letter = text[-3] if text.startswith("{") else text
        return Untold({"a": [1.0, 0.0, 0.0], "b": [2.0, 0.1, 0.0], "c": [0.0, 0.0, 1.0]}[letter])


class Untold(list[float]):
    """Is neither true nor false, as an array of numpy."""

    def __bool__(self) -> bool:
        """Refuse to say."""
        raise ValueError("neither")


MEASURED = {
    "cosine": [("a", 1.0), ("b", 2 / 4.01**0.5), ("c", 0.0)],
    "l2": [("a", 0.0), ("b", -(1.01**0.5)), ("c", -(2**0.5))],
    "inner_product": [("b", 2.0), ("a", 1.0), ("c", 0.0)],
}


@pytest.mark.parametrize("distance_type", MEASURED)
async def test_vectors_are_compared_as_the_index_says(
    srv: testing.Server, distance_type: str
) -> None:
    index: Any = {"dims": 3, "embed": Fixed(), "distance_type": distance_type}
    async with LoomBridgeStore(srv.address, index=index) as store:
        for letter in "cba":
            await store.aput(("t",), letter, {"text": letter})
        await store.aput(("t",), "none", {"text": "d"}, index=False)
        found = await store.asearch(("t",), query="a")
        scores = [(item.key, near(item.score)) for item in found if item.score is not None]
        assert scores == MEASURED[distance_type]
        assert [item.key for item in await store.asearch(("t",), query="a", limit=1, offset=1)] == [
            MEASURED[distance_type][1][0]
        ]
        assert found[-1].key == "none"


def test_an_index_that_nobody_knows_is_refused() -> None:
    index: Any = {"dims": 3, "embed": Letters(), "distance_type": "hamming"}
    with pytest.raises(ValueError, match="cosine, inner_product, l2"):
        LoomBridgeStore(index=index)


async def test_fields_have_an_older_name(srv: testing.Server) -> None:
    index: Any = {"dims": DIMS, "embed": Letters(), "text_fields": ["title"]}
    async with LoomBridgeStore(srv.address, index=index) as store:
        await store.aput(("t",), "k", {"title": "xxx", "text": "yyy"})
        assert (await store.asearch(("t",), query="xxx"))[0].score == near(1)


FILTERED: list[tuple[dict[str, Any], list[str]]] = [
    ({"day": {"$gt": "2026-01-31"}}, ["3"]),
    ({"day": {"$gte": "2026-01-31"}}, ["2", "3"]),
    ({"day": {"$lt": "2026-01-31"}}, ["1"]),
    ({"day": {"$gt": 2025}}, []),
    ({"n": {"$gt": "a"}}, []),
    ({"n": {"$gt": 10**400}}, ["3"]),
    ({"n": {"$lte": 10**400}}, ["1", "2"]),
    ({"day": {"$lt": 10**400}}, []),
    ({"n": {"$lt": float("inf")}}, ["1", "2", "3"]),
    ({"missing": {"$gt": "a"}}, []),
    ({"user.name": "Ann"}, ["1"]),
    ({"user.first-name.short": "A"}, ["2"]),
    ({"user.name": {"$ne": "Ann"}}, ["2", "3"]),
    ({"user.name.first": "Ann"}, []),
    ({"a.b": 1}, ["3"]),
    ({"user": {"first-name.short": "A"}}, ["2"]),
]


@pytest.mark.parametrize(("wanted", "keys"), FILTERED, ids=str)
def test_filters_beyond_those_of_in_memory_store(
    store: LoomBridgeStore, wanted: dict[str, Any], keys: list[str]
) -> None:
    store.put(("f",), "1", {"day": "2026-01-30", "n": 1, "user": {"name": "Ann"}})
    store.put(("f",), "2", {"day": "2026-01-31", "n": 2, "user": {"first-name": {"short": "A"}}})
    store.put(("f",), "3", {"day": "2026-02-01", "n": 10**401, "a.b": 1, "a": {"b": 2}})
    assert [item.key for item in store.search(("f",), filter=wanted)] == keys


async def test_another_dimension_is_refused(srv: testing.Server) -> None:
    short: IndexConfig = {"dims": 2, "embed": lambda texts: [[1.0, 2.0] for _ in texts]}
    async with LoomBridgeStore(srv.address, index=letters(), embedding_space="m") as store:
        await store.aput(("t",), "k", {"text": "a"})
    async with LoomBridgeStore(srv.address, index=short, embedding_space="m") as store:
        with pytest.raises(loombridge.EmbeddingMismatchError) as caught:
            await store.aput(("t",), "k", {"text": "a"})
    assert (caught.value.dimension, caught.value.want_dimension) == (2, DIMS)


async def test_items_are_memory_like_all_other(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live)
    await store.aput(("u", "ann"), "food", {"text": "Ann likes pears"})
    await live.memory_save("A fact that is no item about pears")
    hits = await live.memory_query("what does Ann like", filter='kind = "langgraph"')
    assert hits[0].record.metadata["value"] == {"text": "Ann likes pears"}
    assert len(await store.asearch((), query="pears")) == 1
    assert await store.alist_namespaces() == [("u", "ann")]


async def test_a_client_serves_its_own_loop_and_other_threads(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live)
    await store.aput(("t",), "k", {"n": 1})
    with pytest.raises(asyncio.InvalidStateError, match="asynchronous methods"):
        store.get(("t",), "k")
    item = await asyncio.to_thread(store.get, ("t",), "k")
    assert item is not None
    other = await asyncio.to_thread(lambda: asyncio.run(store.aget(("t",), "k")))
    assert other == item
    await store.aclose()
    assert await live.memory.get(key='langgraph:["t","k"]')
    with pytest.raises(ValueError, match="its own agent_id"):
        LoomBridgeStore(live, agent_id="another")


async def test_any_thread_and_loop_at_once(srv: testing.Server) -> None:
    async with LoomBridgeStore(srv.address) as store:
        store.put(("t",), "sync in a loop", {"n": 0})

        def many(name: str) -> None:
            for i in range(10):
                store.put(("t",), f"{name}{i}", {"n": i})

        threads = [threading.Thread(target=many, args=(f"thread{i}.",)) for i in range(4)]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(store.aput(("t",), "contested", {"n": i}) for i in range(30)))
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert len(await store.asearch(("t",), limit=100)) == 42
        ops = [GetOp(("t",), f"thread{i % 4}.{i % 10}") for i in range(100)]
        assert all(await store.abatch(ops))


async def test_people_have_a_store_of_their_own(srv: testing.Server) -> None:
    async with (
        LoomBridgeStore(srv.address, agent_id="one", user_id="ann") as one,
        LoomBridgeStore(srv.address, agent_id="two", user_id="ann") as two,
        LoomBridgeStore(srv.address, agent_id="one") as alone,
    ):
        await one.aput(("t",), "k", {"n": 1})
        found = await two.asearch((), query="n")
        assert [item.value for item in found] == [{"n": 1}]
        assert await alone.asearch(()) == []
        await two.adelete(("t",), "k")
        assert await one.aget(("t",), "k") is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"n": float("nan")}, ValueError),
        ({"n": object()}, TypeError),
        ({"n": {1: 2}}, TypeError),
        ({"n": "\ud800"}, ValueError),
        ({"n": b"bytes"}, TypeError),
    ],
)
def test_values_that_are_not_json_are_refused(
    store: LoomBridgeStore, value: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        store.put(("t",), "k", value)
    assert store.get(("t",), "k") is None


def test_a_value_that_is_too_large_is_refused(store: LoomBridgeStore) -> None:
    with pytest.raises(ValueError, match="262155 bytes of JSON; 262144 are allowed"):
        store.put(("t",), "k", {"text": "x" * (256 << 10)})
    store.put(("t",), "k", {"text": "x" * ((256 << 10) - 11)})
    tuples: Any = {"pair": (1, 2)}
    store.put(("t",), "k", tuples)
    item = store.get(("t",), "k")
    assert item is not None
    assert item.value == {"pair": [1, 2]}


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "value": (lambda store: store.put(("t",), "k", ["no mapping"]), "value must be a mapping"),
    "index": (lambda store: store.put(("t",), "k", {}, index="text"), "index must be a list"),
    "filter": (lambda store: store.search(("t",), filter="n = 1"), "filter must be a mapping"),
    "query": (lambda store: store.search(("t",), query=7), "query must be a str"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_of_other_types_are_told(name: str) -> None:
    act, message = WRONG[name]
    with pytest.raises(TypeError, match=message):
        act(LoomBridgeStore("127.0.0.1:1"))


def test_a_closed_store_says_so(srv: testing.Server) -> None:
    store = LoomBridgeStore(srv.address)
    store.put(("t",), "k", {})
    store.close()
    store.close()
    with pytest.raises(loombridge.ClientClosedError):
        store.get(("t",), "k")
    with pytest.raises(ValueError, match="address"):
        LoomBridgeStore("not an address")


def test_no_server_is_told_and_not_for_ever(srv: testing.Server) -> None:
    with (
        LoomBridgeStore("127.0.0.1:1", timeout=1) as store,
        pytest.raises(loombridge.ServerUnreachableError),
    ):
        store.get(("t",), "k")


def test_a_program_may_forget_to_close(srv: testing.Server) -> None:
    code = (
        "import sys; from loombridge.langgraph import LoomBridgeStore;"
        "store = LoomBridgeStore(sys.argv[1]); store.put(('t',), 'k', {'n': 1});"
        "other = LoomBridgeStore(sys.argv[1]); print(other.get(('t',), 'k').value); del other"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, srv.address],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = re.sub(r".*/langgraph/.*PendingDeprecationWarning: .*\n.*\n", "", done.stderr)  # its own
    assert (done.returncode, done.stdout, said) == (0, "{'n': 1}\n", "")


def test_without_langgraph_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['langgraph.store.base'] = None\n"
        "try:\n    import loombridge.langgraph\n"
        "except ImportError as err:\n    print(err)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "loombridge[langgraph]"' in done.stdout
