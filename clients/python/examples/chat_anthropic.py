"""An agent on Anthropic's Messages API (ANTHROPIC_API_KEY; without one, a stand-in)."""

import asyncio
import uuid
from typing import Any

import anthropic

import loombridge
from _stand_in import QUESTION, SYSTEM, provider

MODEL = "claude-sonnet-4-6"


async def main() -> None:
    """Let the model answer a question, with the server's tools."""
    with provider("ANTHROPIC_API_KEY") as access:
        claude: Any = anthropic.AsyncAnthropic(**access)
        async with claude, loombridge.connect(agent_id=f"notes-{uuid.uuid4()}") as ctx:
            await ctx.context.append({"role": "user", "content": QUESTION})
            while True:
                prompt = await ctx.context.assemble(format="anthropic", model=MODEL, system=SYSTEM)
                reply = await claude.messages.create(
                    **prompt.anthropic(), model=MODEL, max_tokens=1024
                )
                message = loombridge.Message.from_anthropic(reply)
                await ctx.context.append(message)
                for call in message.calls():
                    await ctx.tool(call.name, call.arguments, call_id=call.id)
                if not message.calls():
                    print(reply.content[-1].text)
                    return


if __name__ == "__main__":
    asyncio.run(main())
