"""A deep agent that works in the server's workspace: pip install "loombridge[deepagents]"."""

from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from loombridge.deepagents import LoomBridgeSandbox


class Told(GenericFakeChatModel):
    """A model that says what it is told; so no key is needed."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "Told":
        """Take the tools."""
        return self


def call(tool: str, **given: Any) -> AIMessage:
    """Return a call of a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": given, "id": tool}])


def main() -> None:
    """Write a file and run a program, as a model would ask for it."""
    with LoomBridgeSandbox() as sandbox:
        path = f"{sandbox.folder()}/fruit/pears.txt"
        turns = [
            call("write_file", file_path=path, content="Conference\nWilliams\n"),
            call("execute", command="sort -r fruit/pears.txt"),
            AIMessage("Both are sorted."),
        ]
        model = Told(messages=iter(turns))
        agent: Any = create_deep_agent(model, backend=sandbox)  # pyright: ignore[reportUnknownVariableType]
        result = agent.invoke({"messages": [("user", "Sort my pears.")]})
        for message in result["messages"]:
            if message.text:
                print(f"{message.type}: {' '.join(message.text.split())}")


if __name__ == "__main__":
    main()
