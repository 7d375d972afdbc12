"""Run two servers on one PostgreSQL, and kill one of them under an agent's work.

`make cluster` runs it beside a PostgreSQL of its own, whose address is in the environment.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import loombridge

SAVES = 200
"""Records that are saved while a server is killed."""


LAST = 15
"""Lines of a server's log that a failure shows."""


class Bridge:
    """A server of the cluster."""

    def __init__(self, binary: str, name: str, store: str, root: Path) -> None:
        """Print its name and its folder: each has its own."""
        self.name, self.address = name, ""
        workspace = root / f"{name}-workspace"
        workspace.mkdir()
        self._command = [
            binary,
            "--addr",
            "127.0.0.1:0",
            "--store",
            store,
            "--bridge-name",
            name,
        ]
        self._command += ["--mesh", "embedded", "--workspace", str(workspace)]
        self._command += ["--data-dir", str(root / name), "--log-level", "warn"]
        self._log = root / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and return when it listens."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None  # noqa: S101  it was asked for
        line = (await self._process.stdout.readline()).decode().strip()
        if not line:
            raise SystemExit(f"{self.name} did not start: exit {await self._process.wait()}")
        self.address = line.removeprefix("listening on ")
        print(f"{self.name} serves at {self.address}")

    def last_words(self) -> str:
        """Return how it is, and the end of its log."""
        state = "never started"
        if self._process is not None:
            code = self._process.returncode
            state = "runs" if code is None else f"ended, exit {code}"
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join([f"{self.name}: {state}", *(f"  {line}" for line in lines[-LAST:])])

    async def end(self, *, kill: bool = False) -> None:
        """Stop it, or kill it."""
        if self._process is None or self._process.returncode is not None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        await self._process.wait()


async def save(bridges: list[Bridge], number: int) -> None:
    """Save a record at the first server that answers, by one request id."""
    why = ""
    for bridge in [*bridges, *bridges]:
        try:
            async with loombridge.connect(bridge.address, agent_id="ann", wait=0) as ctx:
                await ctx.memory_save(f"tide {number} of the moon", request_id=f"save-{number}")
                return
        except loombridge.LoomBridgeError as error:
            why += f"; {bridge.name}: {error}"
    raise SystemExit(f"no server took save {number}{why}")


async def read(bridge: Bridge, path: str) -> tuple[str, str]:
    """Read a file by way of a server until that works, and say why it did not at first."""
    refused, until = "", time.monotonic() + 60
    while True:
        try:
            async with loombridge.connect(bridge.address, agent_id="ann") as ctx:
                got = await ctx.tool("fs:read_file", {"path": path})
                return str(got.output["content"]), refused
        except loombridge.LoomBridgeError as error:
            if time.monotonic() > until:
                raise
            refused = refused or type(error).__name__
            await asyncio.sleep(0.05)


async def work(bridges: list[Bridge]) -> None:
    """Show what an agent sees of two servers, then of one."""
    first, second = bridges
    async with (
        loombridge.connect(first.address, agent_id="ann", session_id="s") as here,
        loombridge.connect(second.address, agent_id="ann", session_id="s") as there,
    ):
        await here.memory_save("The cluster has two servers")
        hits = await there.memory_query("How many servers has the cluster?")
        print(f"saved at {first.name}, found at {second.name}: {hits[0].record.text}")
        told = await here.emit("harbour.tide", {"height": 3})
        async for event in there.events.subscribe({"harbour.tide": told.sequence - 1}):
            print(f"emitted at {first.name}, heard at {second.name}: {event.payload}")
            break
        await here.tool("fs:write_file", {"path": "plan.txt", "content": "sail at noon"})
    text, _ = await read(second, "plan.txt")
    print(f"written in the workspace of {first.name}, read by way of {second.name}: {text}")
    killed = 0.0
    for number in range(SAVES):
        if number == SAVES // 2:
            print(f"kill -9 of {first.name}")
            killed = time.monotonic()
            await first.end(kill=True)
        await save(bridges, number)
        if number == SAVES // 2:
            print(f"the next save was acknowledged after {time.monotonic() - killed:.2f} s")
            bridges.reverse()
    async with loombridge.connect(second.address, agent_id="ann") as ctx:
        found = await ctx.memory_query("tide", limit=1)
        total = found.receipt.records
    if total != SAVES + 1:
        raise SystemExit(f"{total} records, {SAVES + 1} were acknowledged")
    print(f"{total} records acknowledged, {total} there: none lost, none twice")
    back = time.monotonic()
    reading = asyncio.create_task(read(second, "plan.txt"))
    await first.start()
    text, refused = await reading
    waited = time.monotonic() - back
    print(f"{first.name} is back; by way of {second.name}, refused before ({refused}),")
    print(f"its workspace is read again after {waited:.2f} s: {text}")


async def main(binary: str, store: str) -> None:
    """Start the servers, and end them whatever happens."""
    with tempfile.TemporaryDirectory() as folder:
        bridges = [Bridge(binary, name, store, Path(folder)) for name in ("bridge-1", "bridge-2")]
        try:
            for bridge in bridges:
                await bridge.start()
            await work(list(bridges))
        except (SystemExit, loombridge.LoomBridgeError) as error:
            print(
                f"cluster: {error}", *(b.last_words() for b in bridges), sep="\n", file=sys.stderr
            )
            raise SystemExit(1) from None
        finally:
            for bridge in bridges:
                await bridge.end()


asyncio.run(main(sys.argv[1], os.environ["LOOM_TEST_POSTGRES"]))
