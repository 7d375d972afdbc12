"""Checkpoints of LangGraph's SQLite checkpointers, copied to the real server."""

# pyright: basic
# LangGraph's graphs are typed in part.

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
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
from loombridge.langgraph import (
    Copied,
    LoomBridgeSaver,
    __main__,
    acopy_checkpoints,
    copy_checkpoints,
)


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


async def test_the_command(
    srv: testing.Server, made: SqliteSaver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def copy(source: Path, *more: str) -> tuple[int, str]:
        command = [str(source), *more, "--addr", srv.address, "--agent", "a"]
        code = await asyncio.to_thread(__main__.main, command)
        return code, "".join(capsys.readouterr()).strip()

    source = tmp_path / "made.db"
    assert await copy(source, "--dry-run") == (
        0,
        "6 checkpoints of 2 threads would be copied; 0 were there",
    )
    assert await copy(source) == (0, "6 checkpoints of 2 threads were copied; 0 were there")
    assert await copy(source) == (0, "0 checkpoints of 2 threads were copied; 6 were there")
    async with LoomBridgeSaver(srv.address, agent_id="a") as saver:
        expected = {each.checkpoint["id"] for each in made.list(None)}
        assert expected == {each.checkpoint["id"] async for each in saver.alist(None)}
    damaged, other, missing = (tmp_path / name for name in ("damaged", "other", "missing"))
    damaged.write_bytes(b"SQLite format 3\0" + bytes(8000))
    with closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE notes (note TEXT)")
    before = other.read_bytes()
    for bad in (damaged, other, missing):
        code, output = await copy(bad)
        assert (code, output.startswith(f"{bad}: ")) == (1, True), output
    assert other.read_bytes() == before
    assert not missing.exists()
