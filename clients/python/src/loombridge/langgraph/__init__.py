"""LangGraph's store and checkpointer on Loom Bridge: what graphs remember, and where they are.

    from loombridge.langgraph import LoomBridgeSaver, LoomBridgeStore

    server = "127.0.0.1:50051"
    with LoomBridgeStore(server) as store, LoomBridgeSaver(server) as saver:
        store.put(("users", "ann"), "food", {"text": "Ann likes pears"})
        store.search(("users",), query="what does Ann eat")
        graph = builder.compile(store=store, checkpointer=saver)

The store keeps the contract of `langgraph.store.base.BaseStore` as LangGraph's own
`InMemoryStore` does, and needs no index to search by words; the checkpointer keeps that of
`BaseCheckpointSaver`, and `copy_checkpoints` brings it what another one has. Install both with
`pip install "loombridge[langgraph]"`.
"""

try:
    from loombridge.langgraph._copying import Copied, acopy_checkpoints, copy_checkpoints
    from loombridge.langgraph._saver import LoomBridgeSaver
    from loombridge.langgraph._store import LoomBridgeStore
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("langgraph", "langchain_core"):
        raise
    raise ImportError(
        'loombridge.langgraph needs LangGraph\'s stores: pip install "loombridge[langgraph]"'
    ) from err

__all__ = ["Copied", "LoomBridgeSaver", "LoomBridgeStore", "acopy_checkpoints", "copy_checkpoints"]
