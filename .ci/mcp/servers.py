"""The reference servers of the Model Context Protocol, called by an agent of the bridge.

They are started in the sandbox by nothing but their command, as users write it. One of
them is reached over HTTP as well, in the protocol that it speaks.

Usage: servers.py SERVER NPM_BIN PYTHON_BIN NODE
"""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import loombridge
import loombridge.testing

SERVER, NPM, PYTHON, NODE = sys.argv[1:]

# What is called of each server, and what must stand in the answer.
CALLS: list[tuple[str, dict[str, object], str]] = [
    ("everything:echo", {"message": "hello"}, "hello"),
    ("everything:get-sum", {"a": 2, "b": 40}, "42"),
    ("web:echo", {"message": "over HTTP"}, "over HTTP"),
    ("files:write_file", {"path": "note.txt", "content": "written"}, "note.txt"),
    ("files:read_text_file", {"path": "note.txt"}, "written"),
    (
        "graph:create_entities",
        {"entities": [{"name": "Ada", "entityType": "person", "observations": ["in Lisbon"]}]},
        "Lisbon",
    ),
    ("graph:search_nodes", {"query": "Lisbon"}, "Ada"),
    ("git:git_status", {"repo_path": "."}, "note.txt"),
    ("time:get_current_time", {"timezone": "Europe/Lisbon"}, "Europe/Lisbon"),
]

SERVERS = {
    "everything": {"command": f"{NPM}/mcp-server-everything"},
    "files": {"command": f"{NPM}/mcp-server-filesystem", "args": ["."]},
    "graph": {
        "command": f"{NPM}/mcp-server-memory",
        "env": {"MEMORY_FILE_PATH": "/tmp/graph.json"},  # noqa: S108 inside, nobody else has it
    },
    "git": {"command": f"{PYTHON}/mcp-server-git"},
    "time": {"command": f"{PYTHON}/python", "args": ["-m", "mcp_server_time"]},
    "fetch": {"command": f"{PYTHON}/mcp-server-fetch"},
}


@contextlib.asynccontextmanager
async def over_http() -> AsyncGenerator[str]:
    """Serve the server `everything` on a free port; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(NPM).parent / "@modelcontextprotocol/server-everything/dist/index.js"
    process = subprocess.Popen(  # noqa: ASYNC220 it starts at once
        [NODE, str(script), "streamableHttp"],
        env=os.environ | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


async def main() -> int:
    """Call everything; return the exit code."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "--quiet", folder], check=True)  # noqa: ASYNC221, S607 short
        async with over_http() as address:
            servers = SERVERS | {"web": {"url": address}}
            env = {"LOOM_MCP_SERVERS": json.dumps(servers)}
            async with (
                loombridge.testing.server(SERVER, workspace=folder, env=env) as running,
                loombridge.connect(running.address, agent_id="me") as ctx,
            ):
                for _ in range(300):
                    found = await ctx.tools.servers.list()
                    if all(one.state == "ready" for one in found):
                        break
                    await asyncio.sleep(0.1)
                for one in found:
                    failed += one.state != "ready"
                    print(
                        f"{one.name}: {one.state} {one.problem}({one.identity},"
                        f" {one.protocol_version}), {one.tools} tools, {one.tokens} tokens"
                    )
                for name, arguments, expected in CALLS:
                    result = await ctx.tool(name, arguments)
                    good = result.success and expected in json.dumps(result.output)
                    failed += not good
                    if not good:
                        print(f"FAIL {name}: wanted {expected!r} in {result}")
    print(f"reference servers: {len(CALLS)} calls, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
