"""An agent on OpenAI's Responses (OPENAI_API_KEY; without one, a stand-in)."""

import asyncio
import uuid
from typing import Any

import openai

import loombridge
from _stand_in import QUESTION, SYSTEM, provider

MODEL = "gpt-5"


async def main() -> None:
    """Let the model answer a question, with the server's tools."""
    with provider("OPENAI_API_KEY") as access:
        gpt: Any = openai.AsyncOpenAI(**access)
        async with gpt, loombridge.connect(agent_id=f"notes-{uuid.uuid4()}") as ctx:
            await ctx.context.append({"role": "user", "content": QUESTION})
            while True:
                prompt = await ctx.context.assemble(
                    format="openai_responses", model=MODEL, system=SYSTEM
                )
                # Nothing is kept there: the thoughts come back here, encrypted.
                reply = await gpt.responses.create(
                    **prompt.openai_responses(),
                    model=MODEL,
                    store=False,
                    include=["reasoning.encrypted_content"],
                )
                message = loombridge.Message.from_openai_responses(reply)
                await ctx.context.append(message)
                for call in message.calls():
                    await ctx.tool(call.name, call.arguments, call_id=call.id)
                if not message.calls():
                    print(reply.output_text)
                    return


if __name__ == "__main__":
    asyncio.run(main())
