"""Checkpoints of LangGraph's SQLite checkpointers, copied to the real server."""

# pyright: basic
# LangGraph's graphs are typed in part.

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite", reason="the SQLite saver is not installed")

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from loombridge import testing
from loombridge.langgraph import Copied, LoomBridgeSaver, acopy_checkpoints, copy_checkpoints


class State(TypedDict):
    """What the graph knows."""

    steps: list[str]


def read(state: State) -> State:
    return {"steps": [*state["steps"], "read"]}


def ask(state: State) -> State:
    return {"steps": [*state["steps"], interrupt("May I?")]}


def graph(saver: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("read", read)
    builder.add_node("ask", ask)
    builder.add_edge(START, "read")
    builder.add_edge("read", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SqliteSaver]:
    """What two runs have left, which wait for an answer."""
    with SqliteSaver.from_conn_string(str(tmp_path / "made.db")) as saver:
        for name in ("ann", "bob"):
            graph(saver).invoke({"steps": [name]}, thread(name))
        yield saver


async def test_a_run_goes_on_where_it_was(srv: testing.Server, made: SqliteSaver) -> None:
    def copying() -> None:
        with LoomBridgeSaver(srv.address) as saver:
            *_, planned = copy_checkpoints(made, saver, dry_run=True)
            assert list(saver.list(None)) == []
            first, done = copy_checkpoints(made, saver)
            assert planned == done == Copied(copied=6, threads=2)
            assert first == Copied(copied=3, threads=1)
            for each in made.list(None):
                assert saver.get_tuple(each.config) == each
            *_, again = copy_checkpoints(made, saver)
            assert again == Copied(known=6, threads=2)
            assert graph(saver).get_state(thread("ann")).next == ("ask",)

    await asyncio.to_thread(copying)


async def test_an_asynchronous_one(srv: testing.Server, made: SqliteSaver, tmp_path: Path) -> None:
    async with (
        AsyncSqliteSaver.from_conn_string(str(tmp_path / "made.db")) as source,
        LoomBridgeSaver(srv.address) as saver,
    ):
        done = [each async for each in acopy_checkpoints(source, saver)]
        assert done[-1] == Copied(copied=6, threads=2)
        expected = [each async for each in source.alist(None)]
        assert [each async for each in saver.alist(None)] == expected
        done = [each async for each in acopy_checkpoints(source, saver)]
        assert done[-1] == Copied(known=6, threads=2)
