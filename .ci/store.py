"""Writes a store for the test of upgrades, with what its own program exports of it.

BINARY fills the store through the Python client, which with PYTHONPATH is that of the same
commit; NAME is a version, or a commit. The server is started twice, so that there are tables and
a log. The archive has `store` and, of agent a, `export`.

Usage: store.py BINARY NAME [FLAG...]
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import loombridge

ROOT = Path(__file__).resolve().parent.parent
STORES = ROOT / "server/cmd/loom-bridge-server/testdata/stores"
LONGEST = 30.0
"""Seconds that a start may take."""


async def first(address: str) -> None:
    """Store something of each kind that all versions know."""
    async with loombridge.connect(address, agent_id="a", session_id="s1") as ctx:
        await ctx.memory_save("Bitcoin closed at 45,000", key="btc", tags=["market"])
        await ctx.memory.update(key="btc", text="Bitcoin closed at 46,500", metadata={"n": 2})
        for n in range(8):
            text = f"The desk of Zürich holds {n} lots of contract {n * 17}"
            await ctx.memory_save(text, kind="fact", tags=[f"t{n % 3}"], author="anna")
        await ctx.memory_save("我有一只仓鼠", metadata={"lang": "zh"})
        vector = [0.6, 0.8, 0.0, 0.0]
        await ctx.memory_save("My hamster is Krümel", embedding=vector, embedding_space="own")
        await ctx.context.append({"role": "user", "content": "What did Bitcoin close at?"})
        await ctx.tool("fs:list_dir", {"path": "."})
        await ctx.tool("fs:read_file", {"path": "long.txt"})
        output = {"stdout": "F" * 9000, "exit_code": 1}
        await ctx.context.record_step("system:shell", {"command": "make"}, output=output)
        await ctx.context.record_step("system:shell", {"command": "false"}, error="it failed")
        await ctx.context.append({"role": "assistant", "content": "At 46,500."})
        for n in range(4):
            await ctx.emit("desk.news", {"headline": f"news {n}"})
        await ctx.context.assemble(goal="Write the report", model="gpt-4o")


async def second(address: str) -> None:
    """Add a little to what the first start left."""
    async with loombridge.connect(address, agent_id="b", session_id="s2") as ctx:
        await ctx.memory_save("b keeps one memory")
        await ctx.context.append({"role": "user", "content": "b speaks"})
    async with loombridge.connect(address, agent_id="a", session_id="s2") as ctx:
        await ctx.memory_save("The second start saved this")


def main(binary: str, name: str, *flags: str) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as scratch:
        data, work, out = (Path(scratch, part) for part in ("store", "work", "export"))
        work.mkdir()
        lines = (f"line {n}: position {n * 7 % 101} closed at {40000 + n * 13}" for n in range(400))
        (work / "long.txt").write_text("\n".join(lines))
        for part in (first, second):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                place = free.getsockname()
            address = f"{place[0]}:{place[1]}"
            command = [binary, "--addr", address, "--data-dir", data, "--workspace", work, *flags]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
                deadline = time.monotonic() + LONGEST
                while not answers(place):
                    if server.poll() is not None or time.monotonic() > deadline:
                        server.kill()
                        sys.exit(f"{binary} does not serve")
                    time.sleep(0.05)
                asyncio.run(part(address))
                server.terminate()
        export = [binary, "export", "--data-dir", data, "--agent", "a", "--out", out]
        subprocess.run(export, check=True)
        STORES.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(STORES / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for folder in (data, out):
                for file in sorted(folder.rglob("*")):
                    if file.is_file() and not file.name.startswith("LOG"):
                        archive.write(file, os.path.relpath(file, scratch))


def answers(place: tuple[str, int]) -> bool:
    """Tell whether somebody listens at an address."""
    with socket.socket() as caller:
        return caller.connect_ex(place) == 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
