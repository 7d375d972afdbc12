"""A sandbox of Deep Agents whose commands and files are those of the server's workspace.

    from loombridge.deepagents import LoomBridgeSandbox

    with LoomBridgeSandbox("127.0.0.1:50051") as sandbox:
        agent = create_deep_agent(model, backend=sandbox)

Commands run confined, by the profile of the agent, and have audit records; relative paths and
`sandbox.folder()` are the workspace, and what programs write elsewhere is gone with them. The
workspace needs Python 3 and a shell. Install it with `pip install "loombridge[deepagents]"`.
"""

import base64
import posixpath
import shlex
from collections.abc import Sequence
from typing import Any, Unpack, cast

try:
    from deepagents.backends.protocol import (
        ExecuteResponse,
        FileDownloadResponse,
        FileUploadResponse,
    )
    from deepagents.backends.sandbox import BaseSandbox
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("deepagents", "langchain", "langchain_core"):
        raise
    raise ImportError(
        'loombridge.deepagents needs Deep Agents: pip install "loombridge[deepagents]"'
    ) from err

from loombridge import _client, _errors, _loops

__all__ = ["LoomBridgeSandbox"]

AGENT = "deepagents"
"""The default agent."""

SECONDS = 120
"""How long a command may take where the caller says nothing."""

MOST_SECONDS = 600
"""How long a server lets one take."""

SPARE_SECONDS = 30
"""How much longer the call waits than the command may take."""

_NO_FOLDER = "{{ [ ! -d {} ] || {{ echo Is a directory >&2; false; }}; }}"
"""What fails where a folder has the name of a file."""

PART = 384 << 10
"""Bytes of a file that one command carries, as base64."""


class LoomBridgeSandbox(_loops.Adapter, BaseSandbox):
    """A `SandboxBackendProtocol` on a server; close it, or use it in a `with` block.

    Any thread and any event loop may use it, and several processes the same workspace.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: who runs the commands; default `deepagents`, or the client's.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        self._agent = agent_id or (server.agent_id if isinstance(server, _client.Client) else AGENT)
        self._open(server, agent_id, AGENT, connection)

    @property
    def id(self) -> str:
        """The agent, whose commands it runs."""
        return self._agent

    def folder(self) -> str:
        """Return the path of the workspace, as commands see it."""
        return self.execute("pwd").output.strip()

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command line in the workspace.

        Args:
            command: what a shell reads.
            timeout: seconds until it is killed, at most 600; default 120, and 0 is 600.
        """
        return self._loop.call(lambda ctx: self._execute(ctx, command, timeout))

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,
    ) -> ExecuteResponse:
        """Run a command line in the workspace. See `execute`."""
        return await self._loop.acall(lambda ctx: self._execute(ctx, command, timeout))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files; each is there whole or not at all."""
        return self._loop.call(lambda ctx: self._upload(ctx, files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files; each is there whole or not at all."""
        return await self._loop.acall(lambda ctx: self._upload(ctx, files))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files."""
        return self._loop.call(lambda ctx: self._download(ctx, paths))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files."""
        return await self._loop.acall(lambda ctx: self._download(ctx, paths))

    async def _execute(
        self, ctx: _client.Client, command: str, timeout: int | None = None, stdin: str = ""
    ) -> ExecuteResponse:
        seconds = min(SECONDS if timeout is None else timeout or MOST_SECONDS, MOST_SECONDS)
        given: dict[str, Any] = {"command": command, "timeout": seconds}
        if stdin:
            given["stdin"] = stdin
        try:
            result = await ctx.tool("shell:run", given, timeout=seconds + SPARE_SECONDS)
        except _errors.InvalidArgumentsError as err:
            return ExecuteResponse(output=str(err))
        failure = result.error.message if result.error else ""
        if not isinstance(result.output, dict):
            return ExecuteResponse(output=failure or str(result.output or ""))
        said = cast("dict[str, Any]", result.output)
        output = "\n".join(text for text in (said.get("stdout"), said.get("stderr")) if text)
        return ExecuteResponse(
            output=output or failure,
            exit_code=said.get("exit_code"),
            truncated=result.truncated,
        )

    async def _upload(
        self, ctx: _client.Client, files: Sequence[tuple[str, bytes]]
    ) -> list[FileUploadResponse]:
        return [
            FileUploadResponse(path=path, error=await self._put(ctx, path, content))
            for path, content in files
        ]

    async def _put(self, ctx: _client.Client, path: str, content: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        name = shlex.quote(path)
        part = shlex.quote(f"{path}.loom-part")
        folder = shlex.quote(posixpath.dirname(path))
        test = _NO_FOLDER.format(name)
        for start in range(0, max(len(content), 1), PART):
            text = base64.b64encode(content[start : start + PART]).decode()
            into = ">>" if start else ">"
            made = f"mkdir -p -- {folder} && {test} && " if not start else ""
            done = await self._execute(ctx, f"{made}base64 -d {into} {part}", stdin=text)
            if done.exit_code != 0:
                return _problem(done.output)
        done = await self._execute(ctx, f"mv -f -- {part} {name}")
        return None if done.exit_code == 0 else _problem(done.output)

    async def _download(
        self, ctx: _client.Client, paths: Sequence[str]
    ) -> list[FileDownloadResponse]:
        return [await self._fetch(ctx, path) for path in paths]

    async def _fetch(self, ctx: _client.Client, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path=path, error="invalid_path")
        name, content = shlex.quote(path), b""
        while True:
            done = await self._execute(
                ctx,
                f"{_NO_FOLDER.format(name)} && "
                f"exec <{name} && tail -c +{len(content) + 1} | head -c {PART} | base64 -w 0",
            )
            if done.exit_code != 0:
                return FileDownloadResponse(path=path, error=_problem(done.output))
            part = base64.b64decode(done.output)
            content += part
            if len(part) < PART:
                return FileDownloadResponse(path=path, content=content)


def _problem(said: str) -> str:
    """Return the error of Deep Agents for what a command said."""
    lower = said.lower()
    for words, error in (
        ("no such file", "file_not_found"),
        ("is a directory", "is_directory"),
        ("permission denied", "permission_denied"),
        ("read-only file system", "permission_denied"),
    ):
        if words in lower:
            return error
    return said.strip() or "it failed, and said nothing"
