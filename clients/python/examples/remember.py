"""Long-term memory, on a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051)."""

import asyncio
import sys

import loombridge

TALK = [
    ("Ann", "I moved to Lisbon in March, for the new job at the harbour office."),
    ("Bob", "And do you still play chess on Thursdays?"),
    ("Ann", "Every week. My rating is 1850 now."),
]


async def main() -> None:
    """Save a conversation, correct a fact, and ask with reasons."""
    async with loombridge.connect(agent_id="biographer", session_id="talk-1") as ctx:
        # Many at once; with a request_id the whole is safe to repeat.
        said = [loombridge.RecordDraft(text=text, author=author) for author, text in TALK]
        saved = await ctx.memory.save_many(said, request_id="talk-1")
        print(f"saved:   {len(saved)} turns")

        for hit in await ctx.memory_query("When did Ann move to Lisbon?", limit=1, explain=True):
            reasons = hit.explanation.signals if hit.explanation else ()
            print(f"found:   {hit.record.text} (score {hit.score:.2f})")
            print(f"because: {', '.join(signal.name for signal in reasons[:3])}")

        # Compare and set: who changed it first wins, the other reads again.
        rating = "Ann's chess rating: 1850"
        await ctx.memory_save(rating, key="ann.rating", user_id="ann", request_id="ann.rating")
        old = await ctx.memory.get(key="ann.rating", user_id="ann")
        new = await ctx.memory.update(
            key="ann.rating",
            text="Ann's chess rating: 1900",
            tags=["chess"],
            expected_version=old.version,
            user_id="ann",
        )
        print(f"changed: {new.text} (version {new.version})")
        try:
            await ctx.memory.update(id=new.id, text="1870", expected_version=1, user_id="ann")
        except loombridge.VersionConflictError as err:
            print(f"refused: version {err.expected_version}, it has {err.version}")

        # One question to the agent's own memory and to Ann's.
        owners = ["agent:biographer", "user:ann"]
        hits = await ctx.memory_query("chess rating", owners=owners, filter='tags:"chess"')
        print(f"asked:   {hits[0].owner}: {hits[0].record.text}")

        # Nothing is an answer, too.
        hits = await ctx.memory_query("zebra")
        print(f"nothing: {hits.receipt.empty_reason} of {hits.receipt.records} records")

        async for record in ctx.memory.list(filter='author = "Ann"', newest_first=True):
            print(f"Ann:     {record.text}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except loombridge.ServerUnreachableError as err:
        sys.exit(str(err))
