"""The workspace: edits, scripts, and programs in the background."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from loombridge import _brief, _places, _rpc, _spelling, _tools, _values

LONGEST_READ = 60.0
"""Seconds that one reading of a job waits on the server, at most."""

READ_MARGIN = 10.0
"""Seconds such a reading may take beyond its wait."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a text file."""

    old: str
    """Text as it stands in the file, once; empty, for a file that is to be made."""
    new: str
    """Text to put in its place."""
    replace_all: bool = False
    """Replace it wherever it stands."""


@dataclass(frozen=True, slots=True, repr=False)
class EditedFile(_brief.Brief):
    """What an edit did, or with `dry_run` would do."""

    path: str
    """The file, as it was called."""
    replacements: int
    """How many places were replaced."""
    diff: str
    """The change, in the form of `diff -u`; the beginning of a long one."""
    sha256: str
    """Hash of the file with the change; the next edit's `expected_sha256`."""


@dataclass(frozen=True, slots=True, repr=False)
class ScriptResult(_brief.Brief):
    """What a script gave."""

    result: Any
    """What the function returned; of a script as a whole, the JSON that it printed, or
    None."""
    stdout: str
    """Its other output."""
    stderr: str
    """What it printed there."""
    cached: bool
    """An equal run gave it; nothing ran."""


@dataclass(frozen=True, slots=True, repr=False)
class JobStatus(_brief.Brief):
    """How far a program in the background is."""

    id: str
    """The job's id."""
    command: str
    """Its command line, cut where it is long."""
    status: str
    """`running`, `exited` by itself, `stopped`, or `failed`: it could not be run to its end."""
    exit_code: int | None
    """The exit code; None while it runs, or where a signal or a limit ended it."""
    limit: str
    """The limit that ended it, such as `memory`; empty for none."""
    problem: str
    """Why it failed; empty if it did not."""
    printed_bytes: int
    """How much it has printed."""

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self.status == "running"


class Job:
    """A program in the background, made by `ctx.workspace.start`.

    It ends with its session, or the server, at the latest. In `async with` it is stopped
    at the end of the block:

        async with await ctx.workspace.start("npm run dev") as job:
            async for text in job.output(): ...
    """

    id: str
    """The job's id, by which the tools `job:read` and `job:stop` know it too."""

    def __init__(self, workspace: "Workspace", id: str) -> None:  # noqa: A002  the job's own word
        """Made by the workspace."""
        self.id = id
        self._workspace = workspace

    async def output(self, *, offset: int = 0) -> AsyncIterator[str]:
        """Yield what it prints, stdout and stderr together, until it has ended.

        The server keeps the newest 16 MiB; what is older is passed over.

        Args:
            offset: the byte of all that it printed to begin with.

        Raises:
            ToolFailedError: the job is not there any more.
        """
        while True:
            read = await self._read(offset, LONGEST_READ)
            if read["output"]:
                yield read["output"]
            offset = read["next_offset"]
            if read["status"] != "running" and not read["output"]:
                return

    async def status(self) -> JobStatus:
        """Return how far it is."""
        for each in await self._workspace.jobs():
            if each.id == self.id:
                return each
        return _status(await self._read(0, 0))

    async def wait(self) -> JobStatus:
        """Wait until it has ended."""
        read = await self._read(0, 0)
        while read["status"] == "running":
            # Behind the last byte a reading waits for more, or for the end.
            read = await self._read(read["printed_bytes"], LONGEST_READ)
        return _status(read)

    async def stop(self) -> JobStatus:
        """Stop it with all that it started; harmless when it has ended."""
        return _status(await self._workspace.call("job:stop", {"job_id": self.id}))

    async def __aenter__(self) -> Self:
        """Return the job."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it, also where the block was cancelled."""
        await asyncio.shield(self.stop())

    async def _read(self, offset: int, wait: float) -> dict[str, Any]:
        arguments = {"job_id": self.id, "offset": offset, "wait": wait}
        return await self._workspace.call("job:read", arguments, timeout=wait + READ_MARGIN)


@_spelling.helpful
class Workspace:
    """Edits, scripts and programs in the workspace; reached as `ctx.workspace`.

    Each method but `owner` and `move` is a call of a tool and a step of the session. A tool
    that fails raises ToolFailedError, with its code as the reason, such as `NOT_FOUND`.
    """

    def __init__(
        self, transport: _rpc.Transport, agent_id: str, session_id: str, tools: _tools.Tools
    ) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id
        self._tools = tools

    async def call(
        self,
        name: str,
        arguments: Mapping[str, _values.JsonValue],
        *,
        timeout: _values.Seconds | None = None,
    ) -> dict[str, Any]:
        """Run a tool and return its output, a JSON object.

        Raises:
            ToolFailedError: the tool failed.
        """
        answer = await self._tools.run(
            name, arguments, session_id=self._session_id, timeout=timeout
        )
        output: dict[str, Any] = answer.raise_for_error().output
        return output

    async def edit(
        self,
        path: str,
        *edits: Edit | tuple[str, str],
        dry_run: bool = False,
        expected_sha256: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> EditedFile:
        """Change a text file by exact replacement: `edit("a.py", ("old text", "new text"))`.

        Args:
            path: the file.
            edits: an `Edit`, or the old and the new text, each; made in order, atomically.
            dry_run: return the diff and change nothing.
            expected_sha256: change nothing unless the file has this hash.
            timeout: seconds for the call; default: the client's.
        """
        if not edits:
            raise ValueError("edits: give at least one")
        made = [each if isinstance(each, Edit) else Edit(*each) for each in edits]
        arguments: dict[str, _values.JsonValue] = {
            "path": _values.text("path", path),
            "edits": [
                {"old_string": e.old, "new_string": e.new, "replace_all": e.replace_all}
                for e in made
            ],
            "dry_run": dry_run,
        }
        if expected_sha256 is not None:
            arguments["expected_sha256"] = _values.text("expected_sha256", expected_sha256)
        got = await self.call("fs:edit_file", arguments, timeout=timeout)
        return EditedFile(got["path"], got["replacements"], got["diff"], got["sha256"])

    async def run_script(
        self,
        path: str,
        function: str | None = None,
        args: Mapping[str, _values.JsonValue] | Sequence[_values.JsonValue] | None = None,
        *,
        cache: bool = True,
        timeout: _values.Seconds | None = None,
    ) -> ScriptResult:
        """Call a function of a Python script of the workspace, confined, or run all of it.

        Args:
            path: the script, such as `scripts/report.py`.
            function: the function; default: the script runs as a whole.
            args: arguments by name, or in order. Of a script as a whole: a list is its
                command line, a mapping its standard input as JSON. Default: none.
            cache: take the result of an equal run while the script, and what it read, are
                as they were.
            timeout: seconds it may run; default: the client's.
        """
        arguments: dict[str, _values.JsonValue] = {"path": path, "cache": cache}
        if function is not None:
            arguments["function"] = function
        if args is not None:
            arguments["args"] = args
        got = await self.call("python:run_script", arguments, timeout=timeout)
        return ScriptResult(
            got.get("result"), got.get("stdout", ""), got.get("stderr", ""), got["cached"]
        )

    async def start(
        self,
        command: str,
        *,
        cwd: str | None = None,
        lifetime: _values.Seconds | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Job:
        """Start a command line in the background, confined, and return at once.

        Args:
            command: the command line, such as `python3 -m http.server 8000`.
            cwd: the folder to run in; default: the workspace.
            lifetime: seconds after which it is stopped; default: it is not.
            timeout: seconds for the call; default: the client's.
        """
        arguments: dict[str, _values.JsonValue] = {"command": command, "background": True}
        if cwd is not None:
            arguments["cwd"] = _values.text("cwd", cwd)
        if lifetime is not None:
            arguments["timeout"] = _values.seconds("lifetime", lifetime)
        return Job(self, (await self.call("shell:run", arguments, timeout=timeout))["job_id"])

    async def jobs(self, *, timeout: _values.Seconds | None = None) -> tuple[JobStatus, ...]:
        """Return the session's jobs, oldest first: the running ones, and some that ended."""
        got = await self.call("job:list", {}, timeout=timeout)
        return tuple(map(_status, got["jobs"]))

    def job(self, id: str) -> Job:  # noqa: A002  the job's own word
        """Return a job of the session by its id."""
        return Job(self, _values.text("id", id))

    async def owner(
        self, *, timeout: _values.Seconds | None = None
    ) -> _places.WorkspaceOwner | None:
        """Return which of the servers on one store has the agent's workspace.

        Calls that touch it run there, wherever they are made. All agents of a tenant have
        one workspace, unless the servers run with `--own-workspace`.

        Returns:
            The server; None before the first call that touches the workspace, whose server
            gets it.

        Raises:
            WorkspaceElsewhereError: workspaces belong to no server here, because this one
                has its store alone, or all share one folder.
        """
        return await _places.read(self._transport, self._agent_id, timeout)

    async def move(
        self, *, to: str, timeout: _values.Seconds | None = None
    ) -> _places.WorkspaceOwner:
        """Give the agent's workspace to another server, for who runs the servers.

        No file is copied: the agent goes on with what lies in that server's folder. Calls
        and programs that run end where they run.

        Args:
            to: the name of the server, or its folder where several have one name; it must
                be registered (`ctx.status().bridges`).
            timeout: seconds; default: the client's.

        Raises:
            OperatorRequiredError: the credential does not say `operates`.
            ServerNotFoundError: no such server is registered, or several are.
            WorkspaceElsewhereError: as for `owner`.
        """
        return await _places.move(self._transport, self._agent_id, to, timeout)


def _status(told: Mapping[str, Any]) -> JobStatus:
    return JobStatus(
        id=told["job_id"],
        command=told["command"],
        status=told["status"],
        exit_code=told.get("exit_code"),
        limit=told.get("limit", ""),
        problem=told.get("problem", ""),
        printed_bytes=told["printed_bytes"],
    )
