"""A parent and three researchers, each in a separate process; one of them is killed.

A researcher gets its goal and nothing else of the parent's. It has its own session and workspace,
and returns one result. The parent goes on with the results.

Needs a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051).
"""

import asyncio
import re
import sys
import uuid

import loombridge

RAIN = {
    "north": "12 mm on Monday, 7 mm on Friday",
    "south": "3 mm on Sunday",
    "west": "9 mm on Tuesday",
}


async def research(agent_id: str, session_id: str) -> None:
    """Do the work of one researcher, in its own process."""
    async with loombridge.connect(agent_id=agent_id, session_id=session_id) as ctx:
        prompt = await ctx.context.assemble()
        goal = next(m.content for m in prompt.messages if "Goal: " in m.content)
        print("at work", flush=True)
        if agent_id.startswith("west"):
            await asyncio.Event().wait()  # It is killed before it is done.
        total = sum(int(amount) for amount in re.findall(r"(\d+) mm", goal))
        await ctx.tool("fs:write_file", {"path": "sum.txt", "content": str(total)})
        await ctx.complete(f"{total} mm")


async def look_after(child: loombridge.Child) -> None:
    """Start a researcher's process; end the child with it, if it returned nothing.

    If no one reports the failure, the server ends a child itself: when its time is over, or when it
    had a stream and has been away for ten seconds.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, child.id, child.session_id, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None  # noqa: S101  it was asked for
    await process.stdout.readline()
    if child.id.startswith("west"):
        process.kill()
    await process.communicate()
    if process.returncode != 0:
        await child.stop("its process was killed")


async def main() -> None:
    """Spawn the researchers, wait for them, and print their results."""
    run = uuid.uuid4().hex[:6]  # An id is used once: a run has its own.
    async with loombridge.connect(agent_id=f"forecaster-{run}") as ctx:
        children = [
            await ctx.spawn(f"{place}-{run}", goal=f"Add up the rain: {rain}.")
            for place, rain in RAIN.items()
        ]
        await asyncio.gather(*map(look_after, children))
        outcome = await ctx.gather(*children)
        print(outcome.text.replace(f"-{run}", ""))
        async for step in ctx.context.all_steps():  # All that the parent's prompts have of it.
            print("step:", step.observation.replace(f"-{run}", ""))


if __name__ == "__main__":
    try:
        asyncio.run(research(*sys.argv[1:]) if sys.argv[1:] else main())
    except loombridge.ServerUnreachableError as err:
        sys.exit(str(err))
