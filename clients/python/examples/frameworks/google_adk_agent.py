"""An agent of Google ADK: pip install "loombridge[google-adk]"."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai import types

from loombridge.google_adk import LoomBridgeMemoryService, LoomBridgeSessionService


class Model(BaseLlm):
    """Play the model: it repeats what was said first; so no key is needed."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer."""
        known = [part.text for each in llm_request.contents for part in each.parts or []]
        text = f"{known[0] if len(known) > 1 else 'Noted'} (messages: {len(known)})"
        content = types.Content(role="model", parts=[types.Part(text=text)])
        yield LlmResponse(content=content)


async def turn(asked: str) -> None:
    """Ask the agent, and be killed the first time."""
    agent = Agent(name="helper", model=Model(model="scripted"))
    async with LoomBridgeSessionService() as sessions, LoomBridgeMemoryService() as memory:
        runner = Runner(
            app_name="app", agent=agent, session_service=sessions, memory_service=memory
        )
        known = await sessions.get_session(app_name="app", user_id="ann", session_id="s1")
        if known is None:
            await sessions.create_session(app_name="app", user_id="ann", session_id="s1")
        content = types.Content(role="user", parts=[types.Part(text=asked)])
        answers = runner.run_async(user_id="ann", session_id="s1", new_message=content)
        async for event in answers:
            if event.content and event.content.parts:
                print(f"ann: {asked} - {event.content.parts[0].text}", flush=True)
        if known is None:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if os.fork() == 0:
        asyncio.run(turn("I am allergic to pears."))
    os.wait()
    asyncio.run(turn("What am I allergic to?"))
