"""LangGraph's store on Loom Bridge: what graphs remember, in long-term memory.

    from loombridge.langgraph import LoomBridgeStore

    with LoomBridgeStore("127.0.0.1:50051", agent_id="assistant") as store:
        store.put(("users", "ann"), "food", {"text": "Ann likes pears"})
        store.search(("users",), query="what does Ann eat")
        graph = builder.compile(store=store)

It keeps the contract of `langgraph.store.base.BaseStore` as LangGraph's own
`InMemoryStore` does, and needs no index to search by words. Install it with
`pip install "loombridge[langgraph]"`.
"""

try:
    from loombridge.langgraph._store import LoomBridgeStore
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("langgraph", "langchain_core"):
        raise
    raise ImportError(
        'loombridge.langgraph needs LangGraph\'s stores: pip install "loombridge[langgraph]"'
    ) from err

__all__ = ["LoomBridgeStore"]
