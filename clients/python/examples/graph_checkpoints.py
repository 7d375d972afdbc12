"""LangGraph's checkpointer: pip install "loombridge[langgraph]" langgraph."""

# pyright: basic
# LangGraph's graphs are typed in part.

import os
import signal
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from loombridge.langgraph import LoomBridgeSaver


class State(TypedDict):
    """What the graph knows."""

    steps: list[str]


def read(state: State) -> State:
    """Do what takes long."""
    return {"steps": [*state["steps"], f"read by {os.getpid()}"]}


def answer(state: State) -> State:
    """Be killed, the first time."""
    if os.getppid() == PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"steps": [*state["steps"], f"answered by {os.getpid()}"]}


def work(begin: State | None) -> None:
    """Run the graph, or go on where it was killed."""
    builder = StateGraph(State)
    builder.add_node("read", read)
    builder.add_node("answer", answer)
    builder.add_edge(START, "read")
    builder.add_edge("read", "answer")
    builder.add_edge("answer", END)
    with LoomBridgeSaver() as saver:
        graph = builder.compile(checkpointer=saver)
        thread: RunnableConfig = {"configurable": {"thread_id": "ann"}}
        print(f"next: {graph.get_state(thread).next}", flush=True)
        print(graph.invoke(begin, thread, durability="sync"))
        saver.delete_thread("ann")


if __name__ == "__main__":
    PARENT = os.getpid()
    if os.fork() == 0:
        work({"steps": []})
    os.wait()
    work(None)
