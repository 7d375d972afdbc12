"""A session and steps of the OpenAI Agents SDK: pip install "loombridge[openai-agents]"."""

import asyncio
import os
import signal

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

import loombridge
from loombridge.openai_agents import LoomBridgeHooks, LoomBridgeSession


@function_tool
def note(fruit: str) -> str:
    """Note what somebody likes."""
    return f"noted: {fruit}"


async def turn(asked: str, answer: str) -> None:
    """Ask the agent, whose model says what it is told; so no key is needed."""
    calls = [function_call("note", {"fruit": "pears"}, call_id=asked)]
    model = ScriptedModel([calls, [assistant_message(answer)]])
    agent = Agent(name="Desk", model=model, tools=[note])
    async with loombridge.connect(agent_id="desk") as ctx:
        session, hooks = LoomBridgeSession("ann", ctx), LoomBridgeHooks("ann", ctx)
        known = [item.get("content") for item in await session.get_items()]
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, asked, session=session, hooks=hooks, run_config=config)
        print(f"{asked} {result.final_output} (known: {known[:1]})", flush=True)
        if not known:
            os.kill(os.getpid(), signal.SIGKILL)
        async for entry in ctx.context.conversation(session_id="ann"):
            print(entry.step and entry.step.observation)
        await session.clear_session()


if __name__ == "__main__":
    if os.fork() == 0:
        asyncio.run(turn("I like pears.", "Noted."))
    os.wait()
    asyncio.run(turn("What do I like?", "Pears."))
