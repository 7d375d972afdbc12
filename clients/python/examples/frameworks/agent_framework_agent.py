"""An agent of Microsoft's Agent Framework: pip install "loombridge[agent-framework]"."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    FunctionInvocationLayer,
    Message,
)

from loombridge.agent_framework import LoomBridgeContextProvider, LoomBridgeHistoryProvider


class Model(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Play the model: it says what it was told that somebody is; so no key is needed."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> ChatResponse:
        known = [line for each in messages for line in each.text.splitlines()]
        pears = next((line for line in known if line.startswith("I am")), "nothing")
        return ChatResponse(messages=[Message("assistant", [f"I know: {pears}"])])


async def turns(session: str, *asked: str) -> None:
    """Ask the agent in a session, which goes on where it was."""
    async with LoomBridgeHistoryProvider() as history, LoomBridgeContextProvider() as memory:
        agent = Agent(Model(), context_providers=[history, memory])
        for each in asked:
            answer = await agent.run(each, session=agent.create_session(session_id=session))
            before = await history.get_messages(session)
            print(f"{session}: {each} {answer.text} ({len(before)} messages)", flush=True)


async def killed() -> None:
    """Talk, and end at once."""
    await turns("monday", "I am allergic to pears.", "The weather is fine.")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if os.fork() == 0:
        asyncio.run(killed())
    os.wait()
    asyncio.run(turns("monday", "What now?"))
    asyncio.run(turns("tuesday", "Which pears am I allergic to?"))
