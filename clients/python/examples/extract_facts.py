"""Facts out of a talk by a model of yours, on a running server (LOOM_BRIDGE_ADDR).

The model here is a function of four lines. With a real one it is
`loombridge.ChatModel(ask)`, where `ask(messages)` returns the text of its answer.
"""

import asyncio

import loombridge

TALK = (
    "Ann: I moved to Lisbon in May.",
    "Bob: Nice! How is the weather?",
    "Ann: Sunny. By the way, I am allergic to pears.",
)


def model(records: list[loombridge.Record]) -> list[dict[str, object]]:
    """Behave as a model: what somebody says of themselves is worth remembering."""
    said = [(record, *record.text.split(": ", 1)) for record in records]
    told = [(record, who, what) for record, who, what in said if "I " in what]
    return [{"text": f"{who} said: {what}", "derived_from": [r.id]} for r, who, what in told]


async def main() -> None:
    """Look first, then extract, then extract again: nothing is stored twice."""
    async with loombridge.connect(agent_id="extract", session_id="talk") as ctx:
        await ctx.memory.save_many(TALK)
        async for batch in ctx.memory.extract(model, dry_run=True):
            print("would keep:", *(draft.text for draft in batch.drafts), sep="\n  ")
        done = await ctx.memory.extract(model)
        print(f"read {done.read}, kept {done.derived}, refused {len(done.refused)}")
        print(f"then read {(await ctx.memory.extract(model)).read}")
        async for record in ctx.memory.list(filter="metadata.extract:*"):
            source = await ctx.memory.get(id=record.derived_from[0])
            print(f"{record.text!r} comes from {source.text!r}")


try:
    asyncio.run(main())
except loombridge.ServerUnreachableError as err:
    raise SystemExit(str(err)) from None
