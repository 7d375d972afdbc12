"""An agent of LlamaIndex: pip install "loombridge[llama-index]"."""

# pyright: basic
# LlamaIndex is typed in part.

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory

from loombridge.llama_index import LoomBridgeMemoryBlock


class Model(MockFunctionCallingLLM):
    """Play the model: it says what it was told that somebody is; so no key is needed."""

    def __init__(self) -> None:
        """Answer by `_say`."""
        super().__init__(response_generator=_say)


def _say(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    known = [line.strip() for each in messages for line in str(each.content).splitlines()]
    pears = next((line for line in known if line.startswith("I am")), "nothing")
    return ChatMessage(f"I know: {pears}", role="assistant")


async def turns(session: str, *asked: str) -> None:
    """Ask the agent, whose short-term memory has room for little."""
    async with LoomBridgeMemoryBlock() as block:
        memory = Memory.from_defaults(
            session_id=session, memory_blocks=[block], token_limit=120, token_flush_size=40
        )
        agent = FunctionAgent(llm=Model())
        for each in asked:
            print(each[:29], await agent.run(user_msg=each, memory=memory), flush=True)
        if session == "monday":
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if os.fork() == 0:
        chatter = (f"Day {day}: " + "the weather is fine " * 12 for day in range(5))
        asyncio.run(turns("monday", "I am allergic to pears.", *chatter))
    os.wait()
    asyncio.run(turns("tuesday", "Which pears am I allergic to?"))
