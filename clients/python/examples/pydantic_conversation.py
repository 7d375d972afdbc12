"""A conversation and tools of Pydantic AI: pip install "loombridge[pydantic-ai]"."""

import asyncio
import os
import signal

from pydantic_ai import Agent, Conversation
from pydantic_ai.models.test import TestModel

from loombridge.pydantic_ai import LoomBridgeConversationStore, LoomBridgeToolset


async def turn(asked: str, answer: str) -> None:
    """Ask the agent, whose model says what it is told; so no key is needed."""
    model = TestModel(call_tools=["query_l4_memory"], custom_output_text=answer)
    async with LoomBridgeConversationStore() as store:
        known = await store.load("ann")
        conversation = known or Conversation(conversation_id="ann")
        with LoomBridgeToolset() as toolset:
            agent = Agent(model, toolsets=[toolset])
            result = await agent.run(asked, conversation=conversation)
        await store.save(result)
        print(f"{asked} {result.output} (messages: {len(result.all_messages())})", flush=True)
        if known is None:
            os.kill(os.getpid(), signal.SIGKILL)
        await store.delete("ann")


if __name__ == "__main__":
    if os.fork() == 0:
        asyncio.run(turn("I like pears.", "Noted."))
    os.wait()
    asyncio.run(turn("What do I like?", "Pears."))
