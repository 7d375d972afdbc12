"""How long items of LangGraph's store stay, on the real server."""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

pytest.importorskip(
    "langgraph.store.base", reason="LangGraph is not part of the lowest environment"
)

from langgraph.store.base import InvalidNamespaceError, PutOp

import loombridge
from letters import letters, near
from loombridge import testing
from loombridge.langgraph import LoomBridgeStore, _leases


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every reading prolong, however short ago the last one was."""
    monkeypatch.setattr(_leases, "STEPS", 1e12)


async def expiry(live: loombridge.Client, key: str) -> datetime:
    record = await live.memory.get(key=f'langgraph:["t","{key}"]')
    assert record.expire_time is not None
    return record.expire_time


def test_time_to_live(srv: testing.Server) -> None:
    # Spans are long beside what a busy machine may take for a call.
    with LoomBridgeStore(srv.address, ttl={"default_ttl": 6 / 60}) as store:
        store.put(("t",), "read", {"n": 1})
        store.put(("t",), "unread", {"n": 2})
        store.put(("t",), "peeked", {"n": 2})
        store.put(("t",), "for ever", {"n": 3}, ttl=None)
        store.put(("t",), "changed", {"n": 4})
        store.put(("t",), "changed", {"n": 5}, ttl=None)
        for _ in range(4):
            time.sleep(1.8)
            assert store.get(("t",), "read")
            store.get(("t",), "peeked", refresh_ttl=False)
            assert store.list_namespaces() == [("t",)]
        assert store.get(("t",), "unread") is None
        assert store.get(("t",), "peeked") is None
        assert {item.key for item in store.search(("t",))} == {"read", "for ever", "changed"}
        time.sleep(6.6)
        assert [item.key for item in store.search(("t",))] == ["for ever", "changed"]
        assert store.list_namespaces() == [("t",)]
        store.put(("t",), "read", {"n": 6})
        assert store.get(("t",), "read")


def test_time_to_live_without_refresh(srv: testing.Server) -> None:
    with LoomBridgeStore(srv.address, ttl={"refresh_on_read": False}) as store:
        store.put(("t",), "k", {"n": 1}, ttl=6 / 60)
        store.put(("t",), "asked", {"n": 2}, ttl=6 / 60)
        assert store.get(("t",), "k")
        time.sleep(1.8)
        assert store.search(("t",))
        assert store.search(("t",), filter={"n": 2}, refresh_ttl=True)
        time.sleep(4.8)
        assert store.get(("t",), "k") is None
        assert store.get(("t",), "asked")


def test_vectors_live_as_long_as_their_item_is_read(srv: testing.Server) -> None:
    with LoomBridgeStore(srv.address, index=letters("a", "b")) as store:
        store.put(("t",), "k", {"a": "xxx", "b": "yyy"}, ttl=6 / 60)
        for _ in range(4):
            time.sleep(1.8)
            assert store.get(("t",), "k")
        score = store.search(("t",), query="yyy")[0].score
        assert score == near(1)


Read = Callable[[LoomBridgeStore, bool | None], Awaitable[Any]]

READS: dict[str, Read] = {
    "get": lambda store, refresh: store.aget(("t",), "k", refresh_ttl=refresh),
    "search": lambda store, refresh: store.asearch(("t",), filter={"n": 1}, refresh_ttl=refresh),
    "query": lambda store, refresh: store.asearch(
        ("t",), query="one", limit=1, refresh_ttl=refresh
    ),
}


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("by_default", [True, False])
@pytest.mark.usefixtures("always")
async def test_a_call_says_whether_it_prolongs(
    live: loombridge.Client, kind: str, by_default: bool
) -> None:
    store = LoomBridgeStore(live, ttl={"refresh_on_read": by_default})
    puts = [PutOp(("t",), "k", {"n": 1, "w": "one"}, ttl=5), PutOp(("t",), "l", {"n": 2}, ttl=5)]
    await store.abatch(puts)
    for refresh in (None, False, True):
        before = await expiry(live, "k"), await expiry(live, "l")
        assert await READS[kind](store, refresh)
        after = await expiry(live, "k"), await expiry(live, "l")
        assert (after[0] > before[0]) == (by_default if refresh is None else refresh)
        assert after[1] == before[1]  # It is not what was read.


@pytest.mark.usefixtures("always")
async def test_to_prolong_an_item_is_not_to_change_it(live: loombridge.Client) -> None:
    store = LoomBridgeStore(live, index=letters("a", "b"))
    await store.aput(("t",), "k", {"a": "xxx", "b": "yyy"}, ttl=5)
    first = await store.aget(("t",), "k")
    before = await expiry(live, "k")
    for _ in range(3):
        assert await store.aget(("t",), "k") == first
        assert (await store.asearch(("t",), query="xxx"))[0].updated_at == first.updated_at  # pyright: ignore[reportOptionalMemberAccess]
    assert await expiry(live, "k") > before
    await store.aput(("t",), "k", {"a": "zzz"}, ttl=5)
    second = await store.aget(("t",), "k")
    assert first is not None
    assert second is not None
    assert second.updated_at > first.updated_at
    assert second.created_at == first.created_at


def test_not_every_reading_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(_leases, "time", type("Clock", (), {"monotonic": lambda: now}))
    leases = _leases.Leases()
    assert leases.renew("a", 60)
    assert not leases.renew("a", 60)
    assert leases.renew("b", 60)
    now += 59 / _leases.STEPS
    assert not leases.renew("a", 60)
    now += 2 / _leases.STEPS
    assert leases.renew("a", 60)
    for i in range(2 * _leases.MOST):
        assert leases.renew(f"many {i}", 60)
    now += 60
    assert leases.renew("a", 60)


# Y33
def test_the_versions_of_an_item(srv: testing.Server, always: None) -> None:
    with LoomBridgeStore(srv.address, index=letters("a", "b")) as store:
        ns = ("t",)
        assert store.history(ns, "item") == []
        for number in range(3):
            store.put(ns, "item", {"a": f"text {number}", "b": "x" * number * 40_000}, ttl=10)
            # Reading prolongs it, which is no version.
            store.get(ns, "item")
        newest, *older = found = store.history(ns, "item")
        assert [item.value["a"] for item in found] == ["text 2", "text 1", "text 0"]
        assert [len(item.value["b"]) for item in found] == [80_000, 40_000, 0]
        assert newest == store.get(ns, "item")
        assert {item.created_at for item in found} == {newest.created_at}
        puts = [item.updated_at for item in found]
        assert puts == sorted(puts, reverse=True)
        assert len(set(puts)) == 3
        assert store.history(ns, "item", limit=2) == [newest, older[0]]
        store.put(ns, "other", {"a": "alone"})
        assert len(store.history(ns, "other")) == 1
        store.delete(ns, "item")
        assert store.history(ns, "item") == []
        with pytest.raises(InvalidNamespaceError):
            store.history(("a.b",), "item")


# Y33
async def test_looking_back_and_peeking_prolong_nothing(srv: testing.Server, always: None) -> None:
    async with (
        LoomBridgeStore(srv.address, agent_id="a1") as store,
        loombridge.connect(srv.address, agent_id="a1") as live,
    ):
        await store.aput(("t",), "item", {"n": 1}, ttl=10)
        await store.aput(("t",), "item", {"n": 2}, ttl=10)
        before = await expiry(live, "item")
        assert [item.value for item in await store.ahistory(("t",), "item")] == [
            {"n": 2},
            {"n": 1},
        ]
        assert await store.aget(("t",), "item", refresh_ttl=False)
        assert await store.asearch(("t",), query="n", refresh_ttl=False)
        assert await store.alist_namespaces() == [("t",)]
        assert await expiry(live, "item") == before
        assert await store.aget(("t",), "item")
        assert await expiry(live, "item") > before
