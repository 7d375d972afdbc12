"""The verbs of Loom Bridge, on a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051)."""

import asyncio

import loombridge


async def main() -> None:
    """Save, query, run a tool, emit, receive, and assemble the prompt."""
    async with loombridge.connect(agent_id="quickstart", session_id="s1") as ctx:
        saved = await ctx.memory_save("Bitcoin closed at 45,000", metadata={"source": "desk"})
        for hit in await ctx.memory_query({"query": "Bitcoin price", "limit": 5}):
            print(f"found: {hit.record.text} (score {hit.score:.2f})")
        print("did:  ", (await ctx.tool("fs:list_dir", {"path": "."})).observation)
        told = await ctx.emit("market.closed", {"record": saved.id})
        async for event in ctx.events.subscribe({"market.closed": told.sequence - 1}):
            print("heard:", event.topic, event.payload)
            break
        print("tokens:", (await ctx.context.assemble(goal="Sum up the market.")).parts)


try:
    asyncio.run(main())
except loombridge.ServerUnreachableError as err:
    raise SystemExit(str(err)) from None
