"""What many calls at once do to LangGraph's store, and what they leave."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip(
    "langgraph.store.base", reason="LangGraph is not part of the lowest environment"
)

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

import loombridge
from letters import DIMS, Letters
from loombridge import testing
from loombridge.langgraph import LoomBridgeStore, _coalescer


async def test_writes_of_an_item_keep_their_order(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live)
    for _ in range(5):
        await asyncio.gather(*(store.aput(("t",), "k", {"n": n}) for n in range(20)))
        item = await store.aget(("t",), "k")
        assert item is not None
        assert item.value == {"n": 19}
    # All items at once: put, deleted, put again.
    keys = [f"k{i}" for i in range(30)]
    await asyncio.gather(
        *(store.aput(("many",), key, {"n": 1}) for key in keys),
        *(store.adelete(("many",), key) for key in keys),
        *(store.aput(("many",), key, {"n": 2}) for key in keys),
    )
    found = await store.asearch(("many",), limit=100)
    assert {item.key: item.value["n"] for item in found} == dict.fromkeys(keys, 2)


async def test_a_get_sees_the_puts_before_it(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live)
    _, _, got, results, last = await asyncio.gather(
        store.aput(("t",), "k", {"n": 1}),
        store.aput(("t",), "k", {"n": 2}),
        store.aget(("t",), "k"),
        store.abatch([GetOp(("t",), "k"), PutOp(("t",), "k", {"n": 3})]),
        store.aget(("t",), "k"),
    )
    assert got is not None
    assert got.value == {"n": 2}
    assert results[0] == got
    assert last is not None
    assert last.value == {"n": 3}


class Slowly(Letters):
    """Embeds the first text last, and some not at all."""

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        if "first" in texts[0]:
            await asyncio.sleep(0.2)
        if "never" in texts[0]:
            raise RuntimeError("no vector")
        if "stuck" in texts[0]:
            await asyncio.Event().wait()
        return self.embed_documents(texts)


async def test_the_order_is_that_of_the_calls_not_of_the_embedder(srv: testing.Server) -> None:
    index: IndexConfig = {"dims": DIMS, "embed": Slowly()}
    async with LoomBridgeStore(srv.address, index=index) as store:
        await asyncio.gather(
            store.aput(("t",), "k", {"text": "first"}), store.aput(("t",), "k", {"text": "then"})
        )
        item = await store.aget(("t",), "k")
        assert item is not None
        assert item.value == {"text": "then"}


async def test_who_fails_or_leaves_lets_the_next_one_write(srv: testing.Server) -> None:
    index: IndexConfig = {"dims": DIMS, "embed": Slowly()}
    async with LoomBridgeStore(srv.address, index=index) as store:
        stuck = asyncio.create_task(store.aput(("t",), "k", {"text": "stuck"}))
        never = asyncio.create_task(store.aput(("t",), "k", {"text": "never"}))
        wrong = asyncio.create_task(store.aput(("t",), "k", {"text": object()}, index=False))
        last = asyncio.create_task(store.aput(("t",), "k", {"text": "last"}))
        await asyncio.sleep(0.1)
        assert not last.done()
        stuck.cancel()
        results = await asyncio.gather(stuck, never, wrong, last, return_exceptions=True)
        kinds = [type(each) for each in results]
        assert kinds == [asyncio.CancelledError, RuntimeError, TypeError, type(None)]
        item = await store.aget(("t",), "k")
        assert item is not None
        assert item.value == {"text": "last"}


async def test_one_who_waits_may_leave(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live, index={"dims": DIMS, "embed": Slowly()})
    first = asyncio.create_task(store.aput(("t",), "k", {"text": "first"}))
    second = asyncio.create_task(store.aput(("t",), "k", {"text": "second"}))
    await asyncio.sleep(0.05)
    second.cancel()
    third = asyncio.create_task(store.aget(("t",), "k"))
    await first
    with pytest.raises(asyncio.CancelledError):
        await second
    item = await third
    assert item is not None
    assert item.value == {"text": "first"}


def test_threads_write_one_item_after_the_other(srv: testing.Server) -> None:
    with LoomBridgeStore(srv.address) as store:

        def count() -> None:
            for _ in range(10):
                store.put(("t",), "k", {"n": threading.get_ident()})
                assert store.get(("t",), "k")

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.search(("t",))) == 1


async def test_thousands_of_calls_at_once(srv: testing.Server) -> None:
    async with LoomBridgeStore(srv.address, timeout=60) as store:
        calls: list[Any] = []
        for i in range(250):
            calls += [
                store.aput(("t", str(i % 2)), f"k{i % 50}", {"n": i}),
                store.aget(("t", str(i % 2)), f"k{i % 50}"),
                store.alist_namespaces(max_depth=1),
                store.asearch(("t",), query="none of them"),
                store.asearch(("t",), filter={"n": {"$gte": 0}}),
            ]
        results = await asyncio.gather(*calls)
        assert [item.value["n"] for item in results[1::5]] == list(range(250))
        assert len(await store.asearch(("t",), limit=100)) == 50


BAD_OPS: dict[str, Callable[[Any], Any]] = {
    "get": lambda namespace: GetOp(namespace, "k"),
    "put": lambda namespace: PutOp(namespace, "k", {"n": 2}),
    "delete": lambda namespace: PutOp(namespace, "k", None),
    "search": SearchOp,
    "prefix": lambda namespace: ListNamespacesOp((MatchCondition("prefix", namespace),)),
    "suffix": lambda namespace: ListNamespacesOp((MatchCondition("suffix", namespace),)),
}


@pytest.mark.parametrize("kind", BAD_OPS)
@pytest.mark.parametrize("namespace", [("a.b",), ("a", ""), ("a", 1), ("a\x00",)], ids=str)
def test_a_batch_with_a_bad_namespace_does_nothing(kind: str, namespace: Any) -> None:
    store = LoomBridgeStore("127.0.0.1:1")
    with pytest.raises(InvalidNamespaceError, match="label"):
        store.batch([PutOp(("fine",), "k", {}), BAD_OPS[kind](namespace)])


class Reader:
    """Reads when it is let, and counts."""

    def __init__(self) -> None:
        self.let, self.begun, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.count = 0

    async def __call__(self) -> list[dict[str, int]]:
        self.count += 1
        self.begun.set()
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return [{"count": self.count}]


def begin(
    coalescer: _coalescer.ReadCoalescer, name: str, reader: Reader
) -> "asyncio.Task[list[dict[str, int]]]":
    return asyncio.create_task(coalescer.read(name, reader))


async def test_equal_reads_that_wait_are_one() -> None:
    coalescer, block, same, other = _coalescer.ReadCoalescer(), Reader(), Reader(), Reader()
    blocking = [begin(coalescer, f"block{i}", block) for i in range(_coalescer.AT_ONCE)]
    await asyncio.sleep(0)
    waiting = [begin(coalescer, "same", same) for _ in range(100)]
    apart = begin(coalescer, "other", other)
    await asyncio.sleep(0)
    for reader in (block, same, other):
        reader.let.set()
    found = await asyncio.gather(*waiting)
    assert (block.count, same.count, other.count) == (_coalescer.AT_ONCE, 1, 1)
    found[0][0]["count"] = 7
    assert found[1] == [{"count": 1}]  # What is found belongs to who asked.
    await asyncio.gather(apart, *blocking)


async def test_a_read_that_has_begun_is_not_shared() -> None:
    coalescer, reader = _coalescer.ReadCoalescer(), Reader()
    early = begin(coalescer, "same", reader)
    await reader.begun.wait()
    late = begin(coalescer, "same", reader)
    reader.let.set()
    await asyncio.gather(early, late)
    assert reader.count == 2


async def test_a_read_that_nobody_waits_for_ends() -> None:
    coalescer, reader = _coalescer.ReadCoalescer(), Reader()
    tasks = [begin(coalescer, "same", reader) for _ in range(2)]
    await reader.begun.wait()
    tasks[0].cancel()
    await asyncio.sleep(0)
    assert not reader.cancelled.is_set()
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await reader.cancelled.wait()
