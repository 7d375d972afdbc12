"""A real server for tests and demonstrations: started, killed, started again.

async with loombridge.testing.server() as srv:
    async with loombridge.connect(srv.address, agent_id="a") as ctx:
        ...
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from loombridge._local import (
    BINARY_NAME,
    BINARY_VARIABLE,
    LOG_TAIL,
    STOP_TIMEOUT,
    ServerError,
    find_binary,
)

__all__ = ["BINARY_NAME", "BINARY_VARIABLE", "Server", "ServerError", "find_binary", "server"]

START_TIMEOUT = 30.0
"""Seconds a server may take to listen: it recovers its log first, on a machine that
may be busy with other tests."""

_READY = "listening on "

_SETTINGS = "LOOM_BRIDGE_"

_EMBEDDER = "LOOM_BRIDGE_EMBEDDER"


class Server:
    """One server process and its folders."""

    address: str
    """Where it listens, as `host:port`; stays the same across restarts."""
    data_dir: Path
    """Its data directory."""
    workspace: Path
    """What its tools work on."""
    log: Path
    """File with what it wrote to standard error."""

    def __init__(
        self,
        binary: Path,
        data_dir: Path,
        workspace: Path,
        log: Path,
        args: Sequence[str],
        env: Mapping[str, str],
    ) -> None:
        """Made by `server`."""
        self.address = "127.0.0.1:0"
        self.data_dir = data_dir
        self.workspace = workspace
        self.log = log
        self._command = [str(binary), "--data-dir", str(data_dir), "--workspace", str(workspace)]
        self._command += args
        # What a test finds must not depend on the machine, nor on how far vectors are.
        if not any(name.startswith(("--embedder", _EMBEDDER)) for name in (*args, *env)):
            self._command += ["--embedder", "off"]
        # Settings of the machine's own server must not reach this one.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_SETTINGS)}
        self._env = {**inherited, **env}
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running server.

        Raises:
            ServerError: it does not run.
        """
        return self._running().pid

    async def start(self) -> None:
        """Start the server and return when it listens.

        Raises:
            ServerError: it did not; with the end of its log.
        """
        if self._process is not None:
            raise ServerError("the server runs already")
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                "--addr",
                self.address,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._env,
            )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                self.address = await self._read_address(self._process)
        except BaseException as err:
            await self.kill9()
            if isinstance(err, TimeoutError):
                raise ServerError(self._failure(f"did not listen in {START_TIMEOUT:g} s")) from err
            raise

    async def _read_address(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None  # noqa: S101  it was asked for above
        async for line in process.stdout:
            _, ready, rest = line.decode(errors="replace").partition(_READY)
            if ready:
                self._drain = asyncio.create_task(_drop(process.stdout))
                return rest.split()[0]
        raise ServerError(self._failure(f"ended with code {await process.wait()}"))

    def _failure(self, what: str) -> str:
        tail = self.log.read_text(errors="replace")[-LOG_TAIL:]
        return f"{' '.join(self._command)} {what}; its log ends:\n{tail}"

    async def kill9(self) -> None:
        """Kill the server at once, as a power cut would; fine when it does not run."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """Let the server finish and end; fine when it does not run."""
        await self._end(signal.SIGTERM)

    async def restart(self) -> None:
        """Start the server again on the same address, data and workspace."""
        await self.stop()
        await self.start()

    async def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(sign)
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._drain is not None:
            await self._drain
            self._drain = None

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise ServerError("the server does not run")
        return self._process


@asynccontextmanager
async def server(
    binary: str | os.PathLike[str] | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    workspace: str | os.PathLike[str] | None = None,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[Server, None]:
    """Run a server on a free port of the loopback interface while the block runs.

    Args:
        binary: the server's binary; default: as `find_binary` finds it.
        data_dir: where it keeps its data; default: a folder that goes with the block.
        workspace: what its tools work on; default: a folder that goes with the block.
        args: further flags of the server. Unless they name an embedder, it has none.
        env: further environment variables of the server.

    Raises:
        ServerError: it could not be found or did not start.
    """
    path = find_binary(binary)
    with tempfile.TemporaryDirectory(prefix="loombridge-") as scratch:
        root = Path(scratch)
        work = Path(workspace) if workspace is not None else root / "workspace"
        work.mkdir(parents=True, exist_ok=True)
        srv = Server(
            binary=path,
            data_dir=(Path(data_dir) if data_dir is not None else root / "data").absolute(),
            workspace=work.absolute(),
            log=root / "server.log",
            args=args,
            env=env or {},
        )
        await srv.start()
        try:
            yield srv
        finally:
            await srv.stop()


async def _drop(stream: asyncio.StreamReader) -> None:
    # An unread pipe fills up and stops the server.
    while await stream.read(1 << 16):
        pass
