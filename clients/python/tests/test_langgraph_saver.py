"""The checkpointer for LangGraph on the real server: its contract, sharing, what is deleted."""

import random
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from itertools import chain
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest

pytest.importorskip(
    "langgraph.store.base", reason="LangGraph is not part of the lowest environment"
)

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command, interrupt  # pyright: ignore[reportMissingTypeStubs]

import loombridge
from loombridge import testing
from loombridge.langgraph import LoomBridgeSaver, _deltas

try:
    from langgraph.channels.delta import DeltaChannel  # pyright: ignore[reportMissingTypeStubs]
except ModuleNotFoundError:  # older versions keep each value whole
    DeltaChannel = None


@pytest.fixture
async def saver(srv: testing.Server) -> AsyncGenerator[LoomBridgeSaver, None]:
    async with LoomBridgeSaver(srv.address) as saver:
        yield saver


def at(thread: str, checkpoint_id: str | None = None, ns: str = "") -> RunnableConfig:
    said: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
    return {"configurable": said | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def id_of(config: RunnableConfig) -> str:
    said: Mapping[str, Any] = config.get("configurable", {})
    return said.get("checkpoint_id", "")


async def put(
    saver: LoomBridgeSaver, config: RunnableConfig, number: int, run: str = "r", **values: Any
) -> RunnableConfig:
    """Put a checkpoint that sets some channels; a channel of None is kept as it was."""
    before = await saver.aget_tuple(config) if id_of(config) else None
    checkpoint = empty_checkpoint()
    checkpoint["id"] = f"{number:08}"
    known: Mapping[str, Any] = before.checkpoint["channel_values"] if before else {}
    versions = before.checkpoint["channel_versions"] if before else {}
    checkpoint["channel_values"] = {**known, **values}
    checkpoint["channel_versions"] = {**versions, **dict.fromkeys(values, number)}
    new: dict[str, str | int | float] = dict.fromkeys(values, number)
    return await saver.aput(config, checkpoint, {"step": number, "run_id": run}, new)


async def got(saver: LoomBridgeSaver, config: RunnableConfig) -> dict[str, Any]:
    found = await saver.aget_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


async def test_it_conforms(srv: testing.Server) -> None:
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")
    agents = iter(range(100))

    @conformance.checkpointer_test(name="LoomBridgeSaver")
    async def ours() -> AsyncGenerator[LoomBridgeSaver, None]:
        async with LoomBridgeSaver(srv.address, agent_id=f"a{next(agents)}") as saver:
            yield saver

    report = await conformance.validate(ours)
    failed = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert not failed
    assert report.conformance_level() == "FULL"


async def test_checkpoints_share_what_does_not_change(
    saver: LoomBridgeSaver, srv: testing.Server
) -> None:
    source = random.Random(1)  # noqa: S311  no secret
    state = [source.randbytes(256).hex() for _ in range(512)]
    config, large = at("t"), source.randbytes(200_000)
    config = await put(saver, config, 0, state=state, large=large)
    before = size(srv.data_dir)
    for number in range(1, 60):
        state[source.randrange(512)] = source.randbytes(256).hex()
        state.append("more")
        config = await put(saver, config, number, state=list(state))
    assert size(srv.data_dir) - before < 60 * 4096
    async with LoomBridgeSaver(srv.address) as other:
        assert await got(other, at("t")) == {"state": state, "large": large}
        assert len((await got(other, at("t", "00000030")))["state"]) == 542
        listed = [each async for each in other.alist(at("t"), limit=3)]
        assert [id_of(each.config)[-2:] for each in listed] == [
            "59",
            "58",
            "57",
        ]


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def test_what_others_need_outlives_what_is_deleted(
    saver: LoomBridgeSaver, srv: testing.Server
) -> None:
    text = "".join(map(str, range(3000)))
    config = at("t")
    for number in range(8):
        values = {"text": f"{text}{number}", "n": number}
        if number == 0:
            values["first"] = "kept"
        config = await put(saver, config, number, run=f"r{number // 3}", **values)
    fork = await put(saver, at("t", "00000004"), 9, run="r2", text=f"{text}fork")
    await saver.adelete_for_runs(["r0", "r1"])
    await saver.acopy_thread("t", "copy")
    async with LoomBridgeSaver(srv.address) as other:
        ids = {id_of(each.config) async for each in other.alist(at("t"))}
        assert ids == {"00000006", "00000007", "00000009"}
        for number in (6, 7):
            assert await got(other, at("t", f"{number:08}")) == {
                "text": f"{text}{number}",
                "n": number,
                "first": "kept",
            }
        assert await got(other, fork) == {"text": f"{text}fork", "n": 4, "first": "kept"}
        assert len([each async for each in other.alist(at("copy"))]) == 3
        assert (await got(other, at("copy", "00000006")))["text"] == f"{text}6"
        await other.aprune(["copy"])
        assert await got(other, at("copy")) == {"text": f"{text}fork", "n": 4, "first": "kept"}
        assert len([each async for each in other.alist(at("copy"))]) == 1
        await other.adelete_thread("t")
        await other.aprune(["copy"], strategy="delete")
    async with loombridge.connect(srv.address, agent_id="langgraph") as ctx:
        assert await ctx.memory.list() == []
    with pytest.raises(ValueError, match="strategy"):
        await saver.aprune(["t"], strategy="some")


async def test_another_process_may_delete_what_one_remembers(
    saver: LoomBridgeSaver, srv: testing.Server
) -> None:
    text = "".join(map(str, range(3000)))
    config = await put(saver, at("t"), 0, text=text, kept=1)
    config = await put(saver, config, 1, text=text + "more")
    async with LoomBridgeSaver(srv.address) as other:
        assert await got(other, config) == {"text": text + "more", "kept": 1}
    async with LoomBridgeSaver(srv.address) as other:
        assert len([each async for each in other.alist(at("t"), filter={"step": 1})]) == 1
        await saver.aprune(["t"])
        assert await got(other, config) == {"text": text + "more", "kept": 1}
        lone = await put(other, config, 2, text=text + "last")
        await saver.adelete_thread("t")
        assert await other.aget_tuple(lone) is None
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"], checkpoint["channel_versions"] = {"it": 1}, {"it": 1}
        orphan = await saver.aput(at("t", "00000009"), checkpoint, {}, {})
        assert await got(other, orphan) == {"it": 1}


async def test_a_run_goes_on_while_another_process_prunes(
    saver: LoomBridgeSaver, srv: testing.Server
) -> None:
    text = "".join(map(str, range(3000)))
    config = await put(saver, at("t"), 0, text=text, kept=1)
    config = await put(saver, config, 1, text=text + "1")
    async with LoomBridgeSaver(srv.address) as other:
        await other.aprune(["t"])
    checkpoint = empty_checkpoint()
    for number in (2, 3):
        checkpoint["id"], values = f"{number:08}", {"text": f"{text}{number}", "kept": 1}
        checkpoint["channel_values"] = values
        checkpoint["channel_versions"] = {"text": number, "kept": 0}
        config = await saver.aput(config, checkpoint, {}, {"text": number})
    async with LoomBridgeSaver(srv.address) as other:
        assert await got(other, config) == values
    async with LoomBridgeSaver(srv.address) as other:
        await other.aprune(["t"])
        assert [each.checkpoint["channel_values"] async for each in other.alist(at("t"))] == [
            values
        ]


def joined(old: list[str], new: Sequence[list[str]]) -> list[str]:
    return [*old, *chain(*new)]


GROWS: Any = cast("Any", DeltaChannel(joined) if DeltaChannel else add)


class State(TypedDict):
    n: int
    said: Annotated[list[str], GROWS]


def counting(saver: LoomBridgeSaver) -> Any:
    def say(state: State) -> Any:
        return {"n": state["n"] + 1, "said": [f"a{len(state['said'])}"]}

    def count(state: State) -> Any:
        return {"n": state["n"] + 1}

    graph: Any = StateGraph(State)
    graph.add_node("a", say)
    graph.add_node("b", count)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    return graph.compile(checkpointer=saver)


async def test_a_copy_has_the_values_of_what_it_is_made_of(srv: testing.Server) -> None:
    with LoomBridgeSaver(srv.address) as saver:
        graph = counting(saver)
        graph.invoke({"n": 1, "said": []}, at("t"))
        before = next(each for each in graph.get_state_history(at("t")) if each.next == ("b",))
        copied = graph.update_state(before.config, None, as_node="__copy__")
        assert graph.get_state(copied).values == {"n": 2, "said": ["a0"]}


async def test_a_delta_channel_outlives_what_is_deleted(srv: testing.Server) -> None:
    with LoomBridgeSaver(srv.address) as saver:
        graph = counting(saver)
        for number in range(3):
            run: RunnableConfig = {**at("t"), "metadata": {"run_id": f"r{number}"}}
            graph.invoke({"n": 1, "said": [f"u{number}"]}, run)
        whole = graph.get_state(at("t")).values
        assert len(whole["said"]) == 6
        saver.delete_for_runs(["r0"])
        saver.prune(["t"])
    with LoomBridgeSaver(srv.address) as other:
        assert counting(other).get_state(at("t")).values == whole
        for single in ("t", "r0"):
            with pytest.raises(TypeError, match="list of str"):
                other.prune(single, strategy="delete")
            with pytest.raises(TypeError, match="list of str"):
                other.delete_for_runs(single)


async def test_a_checkpoint_may_be_put_again(saver: LoomBridgeSaver) -> None:
    config = await put(saver, at("t"), 1, n=1, text="x" * 3000)
    checkpoint = empty_checkpoint()
    checkpoint["id"] = id_of(config)
    checkpoint["channel_values"] = {"n": 1, "text": "x" * 3000, "unversioned": 2}
    checkpoint["channel_versions"] = {"n": 1, "text": 1}
    assert (
        await got(saver, await saver.aput(config, checkpoint, {}, {}))
        == (checkpoint["channel_values"])
    )


async def test_names_and_values_may_be_anything(saver: LoomBridgeSaver) -> None:
    odd = 'a"*\\\n é' + "x" * 300
    values: dict[str, Any] = {
        "a.b*": b"\x00\xff",
        "large": random.Random(2).randbytes(5 << 20),  # noqa: S311  no secret
        "none": None,
    }
    config = await put(saver, at(odd, ns="n|*:1"), 1, **values)
    await put(saver, at("a*"), 1, it=1)
    assert await got(saver, config) == values
    await saver.aput_writes(config, [("ch", b"x" * 300_000), ("other", odd)], "task", "path")
    found = await saver.aget_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", "ch", b"x" * 300_000), ("task", "other", odd)]
    assert (await got(saver, at("a*"))) == {"it": 1}
    await saver.adelete_thread(odd)
    assert await saver.aget_tuple(config) is None
    assert await saver.aget_tuple(at("aXX")) is None


async def test_a_killed_server_has_the_last_checkpoint(
    saver: LoomBridgeSaver, srv: testing.Server
) -> None:
    config = await put(saver, at("t"), 2, it="first")
    await put(saver, config, 1, it="older by its name")
    await srv.kill9()
    await srv.start()
    assert await got(saver, at("t")) == {"it": "first"}
    await put(saver, at("t"), 2, it="put again")
    async with LoomBridgeSaver(srv.address) as other:
        assert await got(other, at("t")) == {"it": "put again"}


async def test_synchronous_calls_do_the_same(srv: testing.Server) -> None:
    told: list[CheckpointTuple] = []

    def work() -> None:
        with LoomBridgeSaver(srv.address) as saver:
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"], checkpoint["channel_versions"] = {"it": 1}, {"it": 1}
            config = saver.put(at("t"), checkpoint, {"step": 1}, {"it": 1})
            saver.put_writes(config, [("ch", 1)], "task")
            saver.copy_thread("t", "u")
            saver.prune(["u"])
            saver.delete_for_runs(["none"])
            told.extend(saver.list(at("t")))
            assert saver.get_tuple(at("u")) is not None
            saver.delete_thread("u")
            assert saver.get_tuple(at("u")) is None

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (found,) = told
    assert found.checkpoint["channel_values"] == {"it": 1}
    assert found.pending_writes == [("task", "ch", 1)]


def test_a_delta_makes_the_new_of_the_old() -> None:
    source = random.Random(3)  # noqa: S311  no secret
    for length in (0, 10, 64, 65, 5000, 100_000):
        old = source.randbytes(length)
        for _ in range(20):
            new = bytearray(old)
            for _ in range(source.randrange(4)):
                place = source.randrange(len(new) + 1)
                new[place : place + source.randrange(90)] = source.randbytes(source.randrange(90))
            delta = _deltas.delta(old, bytes(new))
            assert delta is None or _deltas.apply(old, [delta]) == new
            assert delta is not None or length < 5000
        # A chain of them is applied at once.
        first, changes = bytes(old), list[bytes]()
        for _ in range(50):
            new = bytearray(old)
            place = source.randrange(len(new) + 1)
            new[place : place + source.randrange(90)] = source.randbytes(source.randrange(90))
            if (delta := _deltas.delta(old, bytes(new))) is not None:
                changes.append(delta)
                old = bytes(new)
        assert _deltas.apply(first, changes) == old
        assert len(changes) == 50 or length < 5000
    assert _deltas.delta(b"x" * 100_000, source.randbytes(100_000)) is None
    zeros = bytes(100_000)
    delta = _deltas.delta(zeros, zeros + b"end")
    assert delta is not None
    assert (len(delta) < 100, _deltas.apply(zeros, [delta])) == (True, zeros + b"end")


class Asked(TypedDict):
    answers: Annotated[list[str], add]


def ask(state: Asked) -> dict[str, list[str]]:
    return {"answers": [str(interrupt("what?")) if state else ""]}


def before(state: Asked) -> dict[str, list[str]]:
    return {"answers": state["answers"][:0]}


@pytest.mark.parametrize(
    ("durability", "kept", "left"),
    [("sync", None, [""]), ("exit", None, [""]), ("sync", True, ["", "call"])],
)
def test_calls_of_sub_graphs_go_when_they_are_over(
    srv: testing.Server, durability: Any, kept: bool | None, left: list[str]
) -> None:
    inner, outer = StateGraph(Asked), StateGraph(Asked)
    inner.add_node("before", before)  # pyright: ignore[reportUnknownMemberType]
    inner.add_node("ask", ask)  # pyright: ignore[reportUnknownMemberType]
    inner.add_edge(START, "before").add_edge("before", "ask")
    call: Any = inner.compile(checkpointer=kept)  # pyright: ignore[reportUnknownMemberType]
    outer.add_node("call", call)  # pyright: ignore[reportUnknownMemberType]
    outer.add_edge(START, "call")
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}

    def places(saver: LoomBridgeSaver) -> list[str]:
        found: list[Any] = [tup.config for tup in saver.list(config)]
        names = {each["configurable"].get("checkpoint_ns", "").partition(":")[0] for each in found}
        return sorted(names)

    with LoomBridgeSaver(srv.address) as saver:
        graph: Any = outer.compile(checkpointer=saver)  # pyright: ignore[reportUnknownMemberType]
        for turn in ("a", "b"):
            graph.invoke({"answers": [f"asked {turn}"]}, config, durability=durability)
            saver.prune(["t"])
            # What was called and waits is still there.
            assert places(saver) == ["", "call"]
            graph.invoke(Command(resume=turn), config, durability=durability)
        saver.prune(["t"])
        assert places(saver) == left
        assert len([*saver.list(config)]) == len(left)
        answers = graph.get_state(config).values["answers"]
        assert ("a" in answers, answers[-1]) == (True, "b")
