"""An agent on OpenAI's Chat Completions (OPENAI_API_KEY; without one, a stand-in)."""

import asyncio
import uuid
from typing import Any

import openai

import loombridge
from _stand_in import QUESTION, SYSTEM, provider

MODEL = "gpt-4o"


async def main() -> None:
    """Let the model answer a question, with the server's tools."""
    with provider("OPENAI_API_KEY") as access:
        gpt: Any = openai.AsyncOpenAI(**access)
        async with gpt, loombridge.connect(agent_id=f"notes-{uuid.uuid4()}") as ctx:
            await ctx.context.append({"role": "user", "content": QUESTION})
            while True:
                prompt = await ctx.context.assemble(format="openai", model=MODEL, system=SYSTEM)
                reply = await gpt.chat.completions.create(**prompt.openai(), model=MODEL)
                message = loombridge.Message.from_openai(
                    reply.choices[0].message.model_dump(exclude_none=True)
                )
                await ctx.context.append(message)
                for call in message.calls():
                    await ctx.tool(call.name, call.arguments, call_id=call.id)
                if not message.calls():
                    print(message.content)
                    return


if __name__ == "__main__":
    asyncio.run(main())
