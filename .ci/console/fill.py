"""Fill a server with what the console shows: memories, a session with prompts, calls.

    fill.py ADDRESS

Every text has a payload that would tell if a page ran it.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import loombridge

AGENT = "analyst"
SESSION = "market"
PAYLOADS = (
    '<img src=x onerror="window.ran=1">',
    "<script>window.ran=1</script>",
    '"><svg onload=window.ran=1>',
    "javascript:window.ran=1",
    "</textarea></style></title><script>window.ran=1</script>",
    "{{constructor.constructor('window.ran=1')()}}",
    "\u202egnp.exe\u2066 \x1b[31m \ufeff",
)
FACTS_AT_13 = 6
"""The fact of a day of the month whose number an answer says of something else."""
FACTS = (
    (
        "Bitcoin closed at 45,000 on Monday, after a week of falling volume.",
        "fact",
        ("market", "btc"),
    ),
    ("Ann prefers short answers with a table, and dislikes adjectives.", "preference", ("ann",)),
    ("The desk's risk limit for one position is 2 % of its capital.", "rule", ("desk", "risk")),
    (
        "Ether follows Bitcoin with a lag of about four hours in quiet weeks.",
        "fact",
        ("market", "eth"),
    ),
    (
        "The exchange's API allows 20 requests a second, and bans for an hour beyond.",
        "fact",
        ("api",),
    ),
    (
        "On 3 March the feed was down for two hours; candles of that time are missing.",
        "event",
        ("feed",),
    ),
    ("Volume of Bitcoin doubles on days of inflation figures.", "fact", ("market", "btc")),
    ("Ann lives in Oslo and works from nine to five.", "fact", ("ann",)),
    (
        "A stop below the last low was hit in 7 of 10 trades of the momentum rule.",
        "lesson",
        ("desk",),
    ),
    ("Reports go out at 17:00 Oslo time, as PDF.", "rule", ("desk", "report")),
)


def payloads() -> list[str]:
    """Return 200 texts, each of which would run something in a page that took it as such."""
    tags = ("img src=x", "svg", "body", "details open", "video src=x", "audio src=x", "iframe", "a")
    tags += ("input autofocus", "marquee")
    events = ("onerror", "onload", "onfocus", "ontoggle", "onstart")
    forms = ("<{} {}=window.ran=1>", "\"'><{} {}='window.ran=1'>", "`-->]]><{} {}=window.ran=1//")
    forms += ("\x00<{} {}=window.ran=1 ",)
    return [form.format(tag, event) for tag in tags for event in events for form in forms]


async def remember(ctx: loombridge.Client, fillers: int) -> None:
    """Save records with versions, relations, a replacement and hostile texts."""
    saved = []
    for n, (text, kind, tags) in enumerate(FACTS):
        told = datetime.now(UTC) - timedelta(days=3 * n)
        if n == FACTS_AT_13:
            told = told.replace(day=13)
        saved.append(
            await ctx.memory_save(
                text,
                key=f"fact/{n}",
                kind=kind,
                tags=tags,
                importance=0.3 + n / 15,
                metadata={"source": "desk", "row": n},
                event_time=told,
            )
        )
    newer = await ctx.memory_save(
        "Bitcoin closed at 47,200 on Tuesday.", supersedes=saved[0].id, tags=("market", "btc")
    )
    await ctx.memory.relate(newer.id, "explained_by", saved[6].id)
    await ctx.memory.relate(saved[3].id, "follows", newer.id)
    for price in ("2.5 %", "3 %"):
        text = f"The desk's risk limit for one position is {price} of its capital."
        await ctx.memory.update(id=saved[2].id, text=text)
    for n, payload in enumerate(PAYLOADS):
        visible = payload.replace("\x1b", "")
        await ctx.memory_save(
            f"Hostile bitcoin note {n}: {payload}",
            author=visible[:64],
            tags=(visible[:64],),
            kind="note",
            metadata={visible[:40]: payload},
        )
    await ctx.memory_save("Ann asked for the weekly report on Fridays.", user_id="ann")
    for n, space in enumerate((PAYLOADS[0], "desk")):
        await ctx.spaces.create(space)
        await ctx.spaces.grant(space, to="clerk", access="write" if n else "read")
        await ctx.spaces.grant(space, to=f"{PAYLOADS[2]}*", access="read")
    for n in range(fillers):
        await ctx.memory_save(
            f"Trade {n} of the desk closed with {n % 13 - 6} points.", kind="trade"
        )


async def converse(ctx: loombridge.Client, rounds: int) -> None:
    """Ask, call tools and make prompts, so many that steps are folded."""
    await ctx.context.configure(max_tokens=9000)
    await ctx.context.update_working(goal=f"Report the week's market to Ann. {PAYLOADS[0]}")
    for n in range(rounds):
        await ctx.context.append(
            {"role": "user", "content": f"Question {n}: what moved bitcoin? {PAYLOADS[n % 7]}"}
        )
        for call in range(2):
            rows = "\n".join(f"{n}.{call}.{row}, close {45000 + 17 * row}" for row in range(60))
            await ctx.context.record_step(
                "market:candles",
                {"symbol": "BTC", "day": n, "note": PAYLOADS[n % 7]},
                output=f"{PAYLOADS[(n + call) % 7]}\n{rows}",
                thought=f"Look at day {n}.",
            )
        await ctx.context.assemble(system="You are the desk's analyst. " + PAYLOADS[1])
        await ctx.context.append(
            {"role": "assistant", "content": f"Answer {n}: volume did. {PAYLOADS[(n + 3) % 7]}"}
        )
    await ctx.context.record_step(
        "market:order", {"symbol": "ETH"}, error=f"The market is closed. {PAYLOADS[2]}"
    )


async def provide(ctx: loombridge.Client) -> None:
    """Make prompts in the forms of the providers."""
    await ctx.context.append({"role": "user", "content": f"Hello. {PAYLOADS[0]}"})
    for form in ("anthropic", "openai", "openai_responses", "gemini"):
        await ctx.context.assemble(system=f"You are {PAYLOADS[1]}", format=form)
    await ctx.context.renew()
    await ctx.context.assemble(system="You begin anew.")


async def branch(ctx: loombridge.Client) -> None:
    """Fold, take it back, and leave the session in two ways."""
    for n in range(6):
        await ctx.context.record_step("market:candles", {"day": n}, output=f"{n}, closed\n" * 200)
    await ctx.context.assemble()
    await ctx.context.compact()
    await ctx.context.assemble()
    await ctx.context.undo()
    await ctx.context.assemble()
    await ctx.spawn("twin", goal="Go on with Ether.", fork=True)
    await ctx.spawn("helper", goal="Look at the news.")
    await ctx.context.assemble()


async def work(ctx: loombridge.Client) -> None:
    """Call tools of the server, and emit events."""
    await ctx.tool("fs:write_file", {"path": "notes.md", "content": f"# Notes\n{PAYLOADS[0]}\n"})
    await ctx.tool("fs:read_file", {"path": "notes.md"})
    await ctx.tool("fs:list_dir", {"path": "."})
    await ctx.tool("fs:read_file", {"path": "missing.md"})
    await ctx.spawn("checker", goal=f"Check the candles. {PAYLOADS[2]}")
    for n in range(3):
        await ctx.emit("market.closed", {"day": n, "note": PAYLOADS[n]})


async def fill(address: str, rounds: int = 14, fillers: int = 40) -> None:
    """Fill the server at an address."""
    async with loombridge.connect(address, agent_id=AGENT, session_id=SESSION) as ctx:
        await remember(ctx, fillers)
        await converse(ctx, rounds)
        await work(ctx)
    async with loombridge.connect(address, agent_id=AGENT, session_id="forms") as ctx:
        await provide(ctx)
    async with loombridge.connect(address, agent_id=AGENT, session_id="branches") as ctx:
        await branch(ctx)
    async with loombridge.connect(address, agent_id=PAYLOADS[0], session_id=PAYLOADS[1]) as ctx:
        await ctx.memory.save_many({"text": text.replace("\x00", "")} for text in payloads())
        for text in PAYLOADS:
            await ctx.context.append({"role": "user", "content": text})
        await ctx.context.assemble(system=PAYLOADS[2])
    async with loombridge.connect(address, agent_id="clerk", session_id="inbox") as ctx:
        await ctx.memory_save("The clerk files what the analyst writes.")
        await ctx.context.append({"role": "user", "content": "File the report."})
        await ctx.send(AGENT, f"The report is filed. {PAYLOADS[0]}")


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1]))
