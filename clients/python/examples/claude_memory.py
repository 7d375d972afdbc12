"""Claude's memory tool: pip install "loombridge[anthropic]"."""

import os
import signal

from loombridge.anthropic import LoomBridgeMemoryTool

NOTES = "/memories/ann.md"


def begin() -> None:
    """Do what a model would ask for, in `beta.messages.run_tools(…, tools=[memory])`."""
    with LoomBridgeMemoryTool() as memory:
        memory.call({"command": "create", "path": NOTES, "file_text": "Ann likes apples.\n"})
        edit = {"path": NOTES, "old_str": "apples", "new_str": "pears"}
        print(memory.call({"command": "str_replace", **edit}), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def go_on() -> None:
    """Look at what is known."""
    with LoomBridgeMemoryTool() as memory:
        print(memory.call({"command": "view", "path": "/memories"}))
        print(memory.call({"command": "view", "path": NOTES}))
        print(memory.call({"command": "delete", "path": NOTES}))


if __name__ == "__main__":
    if os.fork() == 0:
        begin()
    os.wait()
    go_on()
