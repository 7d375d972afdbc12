"""Two agents: one offers a tool and answers requests, the other one uses both.

Needs a running server (LOOM_BRIDGE_ADDR, or 127.0.0.1:50051).
"""

import asyncio
import sys

import loombridge


async def main() -> None:
    """Connect both agents and let one work for the other."""
    async with (
        loombridge.connect(agent_id="helper") as helper,
        loombridge.connect(agent_id="writer") as writer,
    ):

        @helper.tool
        async def word_count(text: str) -> int:
            """Count the words of a text."""
            return len(text.split())

        @helper.subscribe("math.add")
        async def on_add(event: loombridge.Event) -> None:
            await helper.reply(event, {"sum": event.payload["a"] + event.payload["b"]})

        await helper.attach()  # Others find it from here on; `serve()` would stay for ever.

        counted = await writer.tool("word_count", {"text": "to be or not to be"})
        print("words:", counted.raise_for_error().output)

        answer = await writer.request("math.add", {"a": 2, "b": 3}, timeout=5)
        print("sum:  ", answer.payload["sum"], "from", answer.source)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except loombridge.ServerUnreachableError as err:
        sys.exit(str(err))
