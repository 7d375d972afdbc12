"""A long agent run that stays cheap: 60 steps, and what they cost.

Each turn: assemble the prompt, ask the model, report what it counted, record what came
of it. Old steps are folded by the server when that pays; the receipts say what the
prompts should be billed, and what they would be with nothing folded.

Needs a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051). The model plays a script
on this machine; the loop is the same with a real one.
"""

import asyncio
import json
import sys
import urllib.request
import uuid
from typing import Any

import loombridge
from _pretend_model import TOOLS, pretend_model

STEPS = 60
SYSTEM = "You look for a fault in a billing system. Use the tools; answer when you know."
GOAL = "Find out why invoices are late."
OFFERED = [loombridge.ToolDefinition(name, parameters={"type": "object"}) for name in TOOLS]
OURS_ALONE = loombridge.PromptSettings(system=SYSTEM, tools=loombridge.ToolSelection(none=True))


async def ask(url: str, prompt: dict[str, Any]) -> dict[str, Any]:
    """Send a prompt to the model; return its answer."""
    body = json.dumps({"model": "gpt-4o", **prompt}).encode()
    request = urllib.request.Request(  # noqa: S310  the server is our own
        f"{url}/chat/completions", body, {"Content-Type": "application/json"}
    )

    def post() -> dict[str, Any]:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return json.load(answer)

    return await asyncio.to_thread(post)


def run_tool(name: str, module: str) -> str:
    """Stand for the agent's own tools: some two thousand tokens of something or other."""
    part = module.removesuffix(".py")
    lines = [
        f"{part}/step{n:02}.py:{n * 13}: def settle_{name}_{n}(invoice): wait {n * 37} ms"
        for n in range(60)
    ]
    return "\n".join([*lines, f"ERROR: {part}: connection to db-{len(module)} not closed"])


async def main() -> None:
    """Run the loop, and print its cost."""
    billed = append_only = 0.0
    session = f"run-{uuid.uuid4().hex[:8]}"
    with pretend_model(STEPS) as url:
        async with loombridge.connect(agent_id="auditor", session_id=session) as ctx:
            await ctx.context.configure(prompt=OURS_ALONE, model="gpt-4o", max_tokens=100_000)
            await ctx.context.append({"role": "user", "content": GOAL})
            while True:
                prompt = await ctx.context.assemble(tools=OFFERED, format="openai")
                answer = await ask(url, prompt.openai())
                await ctx.context.report_usage(prompt, answer["usage"])
                message = answer["choices"][0]["message"]
                await ctx.context.append(message)
                billed += prompt.receipt.cost
                append_only += prompt.receipt.append_only_cost
                if batch := prompt.receipt.batch:
                    print(
                        f"folded {len(list(batch.each_ref()))} entries, "
                        f"{batch.before_tokens:,} tokens into {batch.after_tokens:,} "
                        f"({batch.reason})"
                    )
                if not message.get("tool_calls"):
                    break
                for call in message["tool_calls"]:
                    name, arguments = (call["function"][key] for key in ("name", "arguments"))
                    given = json.loads(arguments)
                    await ctx.context.record_step(
                        name, given, output=run_tool(name, given["module"]), call_id=call["id"]
                    )
            await ctx.context.end()
    print("answer:", message["content"])
    print(f"billed {billed:,.0f} units, append-only {append_only:,.0f}: {billed / append_only:.0%}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except loombridge.ServerUnreachableError as err:
        sys.exit(str(err))
