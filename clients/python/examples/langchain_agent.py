"""An agent of LangChain: pip install "loombridge[langchain,langgraph]"."""

# pyright: basic
# LangChain's agents are typed in part.

import os
import signal
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult

from loombridge.langchain import LoomBridgeMiddleware
from loombridge.langgraph import LoomBridgeSaver


class Asking(BaseChatModel):
    """A model that looks it up and says it; so no key is needed. It is killed the first time."""

    @property
    def _llm_type(self):
        return "asking"

    def bind_tools(self, tools, **kwargs):
        """Take the tools."""
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        last = messages[-1]
        if last.type == "human":
            said = AIMessage(
                "", tool_calls=[ToolCall(name="hours", args={"day": "Friday"}, id="1")]
            )
        elif os.getppid() == PARENT:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            said = AIMessage(f"On Friday it closes {last.text}.")
        return ChatResult(generations=[ChatGeneration(message=said)])


def hours(day: str) -> str:
    """Say when the desk closes."""
    print(f"looking {day} up", flush=True)
    return "at 17:30"


def work(begin: Any) -> None:
    """Run the agent, or go on where it was killed."""
    with LoomBridgeMiddleware(max_tokens=32_000) as context, LoomBridgeSaver() as saver:
        agent = create_agent(Asking(), [hours], middleware=[context], checkpointer=saver)
        result = agent.invoke(begin, {"configurable": {"thread_id": "ann"}}, durability="sync")
        for message in result["messages"]:
            if message.text:
                print(f"{message.type}: {message.text}")
        saver.delete_thread("ann")


if __name__ == "__main__":
    PARENT = os.getpid()
    if os.fork() == 0:
        work({"messages": [("user", "When does the desk close?")]})
    os.wait()
    work(None)
