"""A server for this program: found or started, and ended with it."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from loombridge import _client, _connect, _errors, _values

BINARY_NAME = "loom-bridge-server"

BINARY_VARIABLE = "LOOM_BRIDGE_SERVER"
"""The environment's word on where the server's binary is."""

PACKAGE = "loombridge_server"
"""The package that brings the binary along: `pip install loombridge[server]`."""

STORE = Path(".loom", "store")
"""Where a folder's server keeps its data, as the server's own default says."""

STOP_TIMEOUT = 10.0
"""Seconds a server may take to end before it is killed; it promises two."""

LOG_TAIL = 4000
"""Characters of the log that a failed start shows."""

_READY = b"listening on "


class ServerError(Exception):
    """The server could not be found or did not start."""


def find_binary(binary: str | os.PathLike[str] | None = None) -> Path:
    """Return the server's binary.

    Looked for in this order: the argument, the environment variable
    LOOM_BRIDGE_SERVER, the installed package `loombridge-server`, the PATH, and
    `bin/` of the source tree this file lies in.

    Raises:
        ServerError: it is nowhere; says where it was looked for and how to get it.
    """
    named = binary or os.environ.get(BINARY_VARIABLE)
    built = Path(__file__).resolve().parents[4] / "bin" / BINARY_NAME
    found = named or _packaged() or shutil.which(BINARY_NAME) or built
    path = Path(found).absolute()
    if path.is_file() and os.access(path, os.X_OK):
        return path
    if named:
        raise ServerError(f"{path} is no program")
    raise ServerError(
        f"{BINARY_NAME} is neither in {BINARY_VARIABLE}, nor installed as loombridge[server], nor "
        f"in the PATH, nor at {built}; `make wheels` in the source tree makes what pip installs, "
        "`make build` the binary alone"
    )


def _packaged() -> Path | None:
    spec = find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / BINARY_NAME


class Companion:
    """The process that keeps a server for this program; its methods block."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start nothing yet."""
        self._command = command
        self._lock = threading.Lock()
        """Guards the process: it is started again once."""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the process, and return the server's address when it answers.

        Raises:
            ServerError: it did not; with the end of its log.
        """
        with self._lock:
            return self._start()

    def _start(self) -> str:
        with tempfile.TemporaryFile() as log:
            # In a separate session, so that Ctrl-C ends this program first, which then may
            # still save. Its end, of whatever kind, closes standard input.
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            assert process.stdout is not None  # noqa: S101  it was asked for above
            _, ready, address = process.stdout.readline().partition(_READY)
            if ready:
                self._process = process
                return address.decode().strip()
            _end(process)
            raise ServerError(self._failure(log, process.returncode))

    def _failure(self, log: BinaryIO, code: int) -> str:
        log.seek(0)
        tail = log.read().decode(errors="replace")[-LOG_TAIL:].strip()
        return f"{' '.join(self._command)} ended with code {code}; its log ends:\n{tail}"

    @property
    def ended(self) -> bool:
        """It served, and ended without being stopped: it was killed."""
        return self._process is not None and self._process.poll() is not None

    def revive(self) -> None:
        """Start it again, if it ended; the address stays.

        Raises:
            ServerUnreachableError: it did not start, with the end of its log.
        """
        with self._lock:
            if self._process is None or not self.ended:
                return
            old = self._process
            try:
                self._start()
            except ServerError as err:
                raise _errors.ServerUnreachableError(str(err)) from err
            _end(old)

    def stop(self) -> None:
        """Let the server finish and end, unless others use it; fine when it does not run."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Close a companion's pipes, and wait for its end."""
    with process:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()


class Local(_connect.Unentered):
    """A client to be, and the server that it needs: `async with` it."""

    call = "local"
    how = (
        "write `async with loombridge.local(...) as ctx:`; without async, "
        "`with loombridge.sync.local(...) as ctx:`"
    )

    def __init__(
        self, companion: Companion, agent_id: str, session_id: str, timeout: float
    ) -> None:
        """Made by `local`."""
        self.companion = companion
        self._agent_id = agent_id
        self._session_id = session_id
        self._timeout = timeout
        self._client: _client.Client | None = None

    def connecting(self, address: str) -> _connect.Connecting:
        """Return the client to be of the companion's server."""
        it = _connect.connect(
            address,
            agent_id=self._agent_id,
            session_id=self._session_id,
            timeout=self._timeout,
        )
        it.keeper = self.companion
        return it

    async def __aenter__(self) -> _client.Client:
        """Find or start the server, connect, and return the client."""
        starting = asyncio.ensure_future(asyncio.to_thread(self.companion.start))
        try:
            self._client = await self.connecting(await asyncio.shield(starting))
        except BaseException:
            await asyncio.wait([starting])
            await asyncio.to_thread(self.companion.stop)
            raise
        return self._client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client, and let the server end."""
        try:
            if self._client is not None:
                await self._client.close()
        finally:
            await asyncio.shield(asyncio.to_thread(self.companion.stop))


def local(
    folder: str | os.PathLike[str] = ".",
    *,
    agent_id: str,
    session_id: str = "",
    args: Sequence[str] = (),
    binary: str | os.PathLike[str] | None = None,
    timeout: _values.Seconds = 30.0,
) -> Local:
    """Connect an agent to the server of a folder, and start one if none runs.

    Use it as `async with local(...) as ctx:`. The folder is the workspace of tools; what the
    server keeps lies in `.loom/store` there, and stays. All programs and hosts that work on
    one folder share a server, which ends with the last of them, however that ends; one that is
    killed meanwhile is started again by the next call. With the environment variable
    LOOM_BRIDGE_ADDR it is the server there.

    Args:
        folder: the folder, which is made where it is missing; default: the current one.
        agent_id: the agent to act for.
        session_id: the session to work in; default: the server's default session.
        args: flags of the server, such as `("--embedder", "off")`, if this starts it.
        binary: the server's binary; default: the environment variable LOOM_BRIDGE_SERVER, the
            package that `pip install loombridge[server]` brings, the PATH, or `bin/` of the
            source tree.
        timeout: seconds that a call may take, unless it is given another.

    Raises:
        TypeError: an argument of a wrong type.
        ValueError: an empty agent, a timeout that is not positive.
        FileNotFoundError: the folder would lie in one that does not exist.
        ServerError: there is no binary; or, when entered: the server did not start.
        LoomBridgeError: when entered: what `connect` raises.
    """
    if not _values.text("agent_id", agent_id):
        raise ValueError("agent_id must not be empty")
    session_id = _values.text("session_id", session_id)
    seconds = _values.seconds("timeout", timeout)
    place = Path(folder).absolute()
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"{place} can't be made: there is no folder {place.parent}; make it first, or correct "
            "the path"
        )
    command = [str(find_binary(binary)), "local", "--workspace", str(place)]
    command += ["--data-dir", str(place / STORE), *args]
    return Local(Companion(command), agent_id, session_id, seconds)
