"""The same without async, on a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051)."""

import loombridge
import loombridge.sync


def main() -> None:
    """Save, query, run a tool, emit, receive, and assemble the prompt."""
    with loombridge.sync.connect(agent_id="quickstart", session_id="s1") as ctx:
        saved = ctx.memory_save("Bitcoin closed at 45,000", metadata={"source": "desk"})
        for hit in ctx.memory_query({"query": "Bitcoin price", "limit": 5}):
            print(f"found: {hit.record.text} (score {hit.score:.2f})")
        print("did:  ", ctx.tool("fs:list_dir", {"path": "."}).observation)
        told = ctx.emit("market.closed", {"record": saved.id})
        with ctx.events.subscribe({"market.closed": told.sequence - 1}) as events:
            event = events.next(timeout=10)
        print("heard:", event.topic, event.payload)
        print("tokens:", ctx.context.assemble(goal="Sum up the market.").parts)


try:
    main()
except loombridge.ServerUnreachableError as err:
    raise SystemExit(str(err)) from None
