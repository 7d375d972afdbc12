"""A session of the OpenAI Agents SDK: pip install "loombridge[openai-agents]"."""

import asyncio
import os
import signal

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message

from loombridge.openai_agents import LoomBridgeSession


async def turn(asked: str, answer: str) -> None:
    """Ask the agent, whose model says what it is told; so no key is needed."""
    agent = Agent(name="Desk", model=ScriptedModel([[assistant_message(answer)]]))
    async with LoomBridgeSession("ann") as session:
        known = [item.get("content") for item in await session.get_items()]
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, asked, session=session, run_config=config)
        print(f"{asked} {result.final_output} (known: {known[:1]})", flush=True)
        if not known:
            os.kill(os.getpid(), signal.SIGKILL)
        await session.clear_session()


if __name__ == "__main__":
    if os.fork() == 0:
        asyncio.run(turn("I like pears.", "Noted."))
    os.wait()
    asyncio.run(turn("What do I like?", "Pears."))
