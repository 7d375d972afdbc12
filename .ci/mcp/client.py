"""A host of the Model Context Protocol, in Python's own library.

It saves, finds, reads a blob back, runs a tool, sees progress and the end of a call that
it gives up, and is refused without a token. Then it starts a server by itself, as hosts do
that speak over pipes.

Usage: client.py URL TOKEN SERVER
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import anyio
import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

URL, TOKEN, SERVER = sys.argv[1:]


def check(holds: object, seen: object) -> None:
    """End the program unless something holds."""
    if not holds:
        sys.exit(f"python: {seen}")


async def call(session: ClientSession, called: str, **arguments: object) -> str:
    """Return the text that a tool gives."""
    result = await session.call_tool(called, arguments)
    check(not result.is_error, result.content[0].text)
    return result.content[0].text


async def works() -> None:
    """Do what a host does in a day."""
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
    async with (
        streamable_http_client(URL, http_client=client) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        saved = json.loads(await call(session, "memory_save", text="Ada lives in Lisbon"))
        found = json.loads(await call(session, "memory_query", query="where does Ada live"))
        check(found["hits"][0]["id"] == saved["id"], found)
        long = "line of a log\n" * 5000
        step = json.loads(await call(session, "step_record", tool="bash", result=long))
        part = json.loads(await call(session, "blob_read", name=step["step"], offset=14, limit=13))
        check((part["text"], part["size"]) == ("line of a log", len(long)), part)
        blob = await session.read_resource(f"loom://blob/{step['blob']}")
        check(blob.contents[0].text == long, blob)
        listed = await call(session, "tool_run", name="fs:list_dir", arguments={"path": "."})
        check("entries" in listed, listed)

        told: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(done)

        waits = {"name": "system:shell", "arguments": {"command": "sleep", "args": ["1.2"]}}
        await session.call_tool("tool_run", waits, progress_callback=progress)
        check(told[1:] and told[-1] >= 1, told)
        waits["arguments"] = {"command": "sleep", "args": ["20"]}
        with anyio.move_on_after(0.2) as given_up:
            await session.call_tool("tool_run", waits)
        check(given_up.cancelled_caught, "a call that was given up went on")


async def refused() -> None:
    """Get the demand for a token."""
    async with httpx2.AsyncClient() as client:
        answer = await client.post(URL, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    asked = answer.headers.get("WWW-Authenticate", "")
    check((answer.status_code, asked[:6]) == (401, "Bearer"), answer)


async def starts() -> None:
    """Have a server started over pipes: what one host saves, the next one finds."""
    with tempfile.TemporaryDirectory() as folder:
        places = ["--data-dir", str(Path(folder) / "store"), "--workspace", folder]
        host = StdioServerParameters(
            command=SERVER,
            args=["mcp", *places],
            env={**os.environ, "XDG_RUNTIME_DIR": folder},
        )
        for n in range(2):
            async with stdio_client(host) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                if n == 0:
                    await call(session, "memory_save", text="Grace lives in Arlington")
                found = json.loads(await call(session, "memory_query", query="where is Grace"))
                check(found["hits"][0]["text"] == "Grace lives in Arlington", found)


asyncio.run(works())
asyncio.run(refused())
asyncio.run(starts())
print("python: saves, finds, reads, runs tools, shows progress, gives up, needs a token, starts")
