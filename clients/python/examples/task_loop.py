"""An agent's loop: build the context, ask the model, run the tools it asks for, again.

It ends when the model asks for no more tools. The tools are the server's, which runs and records
them, and a function of this file, which is recorded as a step.

Needs a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051). The model stands in for a
real one on this machine: it knows nothing but what its prompt says.
"""

import asyncio
import json
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import loombridge
from _model import Model
from _pretend_model import Clerk, pretend_model

SYSTEM = "You are a careful clerk. Use the tools; answer when the task is done."
BOOKS = {"january.txt": "rent, amount: 900", "may.txt": "amount: 41\namount: 59", "june.txt": ""}
TASK = "Add up the amounts in {folder}/ and write the sum to total.txt."

MOST_TURNS = 20
"""A model that has not finished by then never will."""


def add_up(amounts: list[int]) -> int:
    """Return the sum of some amounts."""
    return sum(amounts)


async def run_task(
    ctx: loombridge.Client, model: Model, task: str, own: Sequence[Callable[..., Any]]
) -> str:
    """Work on a task until the model asks for no more tools; return what it says then."""
    for turn in range(MOST_TURNS):
        prompt = await ctx.context.assemble(
            goal=task, system=SYSTEM, model=model.name, tools=own, format="openai"
        )
        message, usage = await model.ask(prompt.openai())
        await ctx.context.report_usage(prompt, usage)
        await ctx.context.append(message)
        calls: list[dict[str, Any]] = message.get("tool_calls", [])
        if not calls:
            return str(message["content"])
        for call in calls:
            print("turn", turn + 1, await run_tool(ctx, call, own))
    raise RuntimeError(f"the task is not done after {MOST_TURNS} turns")


async def run_tool(
    ctx: loombridge.Client, call: dict[str, Any], own: Sequence[Callable[..., Any]]
) -> str:
    """Run a tool of the server, or a function of our own; return what came of it, in short."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    mine = {function.__name__: function for function in own}
    if name in mine:
        given = json.loads(arguments)
        output = mine[name](**given)
        recorded = await ctx.context.record_step(name, given, output=output, call_id=call["id"])
        return recorded.step.observation
    # What the model got wrong is a result as well: the next prompt has it.
    result = await ctx.tool(name, arguments, call_id=call["id"])
    return result.observation.splitlines()[0]


async def main() -> None:
    """Lay out the books, and let the model work on them."""
    folder = f"books_{uuid.uuid4().hex[:8]}"
    with pretend_model(Clerk()) as url:
        async with loombridge.connect(agent_id="owner") as owner:
            for name, text in BOOKS.items():
                await owner.tool("fs:write_file", {"path": f"{folder}/{name}", "content": text})
        async with loombridge.connect(agent_id="clerk", session_id=folder) as ctx:
            model = Model(url, "gpt-4o", key="none")
            print("answer:", await run_task(ctx, model, TASK.format(folder=folder), [add_up]))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except loombridge.ServerUnreachableError as err:
        sys.exit(str(err))
