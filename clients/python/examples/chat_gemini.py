"""An agent on Gemini's generateContent (GEMINI_API_KEY; without one, a stand-in)."""

import asyncio
import importlib
import uuid
from typing import Any

import loombridge
from _stand_in import QUESTION, SYSTEM, provider

MODEL = "gemini-2.5-pro"

# `from google import genai`, past the stubs of other packages of Google's.
genai: Any = importlib.import_module("google.genai")


async def main() -> None:
    """Let the model answer a question, with the server's tools."""
    with provider("GEMINI_API_KEY") as access:
        options = {"base_url": access["base_url"]} if "base_url" in access else None
        gemini = genai.Client(api_key=access["api_key"], http_options=options).aio
        async with gemini, loombridge.connect(agent_id=f"notes-{uuid.uuid4()}") as ctx:
            await ctx.context.append({"role": "user", "content": QUESTION})
            while True:
                prompt = await ctx.context.assemble(format="gemini", model=MODEL, system=SYSTEM)
                reply = await gemini.models.generate_content(**prompt.gemini(), model=MODEL)
                message = loombridge.Message.from_gemini(reply)
                await ctx.context.append(message)
                for call in message.calls():
                    await ctx.tool(call.name, call.arguments, call_id=call.id)
                if not message.calls():
                    print(reply.text)
                    return


if __name__ == "__main__":
    asyncio.run(main())
