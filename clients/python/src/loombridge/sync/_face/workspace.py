"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loombridge import _places, _values, _workspace
from loombridge.sync import _twin
from loombridge.sync._face.held import Job


@_twin.documented(_workspace.Workspace)
class Workspace(_twin.Twin):
    """Edits, scripts and programs in the workspace; reached as `ctx.workspace`."""

    def call(
        self,
        name: str,
        arguments: Mapping[str, _values.JsonValue],
        *,
        timeout: _values.Seconds | None = None,
    ) -> dict[str, Any]:
        """Run a tool and return its output, a JSON object."""
        return self._await("call", name, arguments, timeout=timeout)

    def edit(
        self,
        path: str,
        *edits: _workspace.Edit | tuple[str, str],
        dry_run: bool = False,
        expected_sha256: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _workspace.EditedFile:
        """Change a text file by exact replacement: `edit("a.py", ("old text", "new text"))`."""
        return self._await(
            "edit", path, *edits, dry_run=dry_run, expected_sha256=expected_sha256, timeout=timeout
        )

    def run_script(
        self,
        path: str,
        function: str | None = None,
        args: Mapping[str, _values.JsonValue] | Sequence[_values.JsonValue] | None = None,
        *,
        cache: bool = True,
        timeout: _values.Seconds | None = None,
    ) -> _workspace.ScriptResult:
        """Call a function of a Python script of the workspace, confined, or run all of it."""
        return self._await("run_script", path, function, args, cache=cache, timeout=timeout)

    def start(
        self,
        command: str,
        *,
        cwd: str | None = None,
        lifetime: _values.Seconds | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Job:
        """Start a command line in the background, confined, and return at once."""
        return Job(
            self._home, self._await("start", command, cwd=cwd, lifetime=lifetime, timeout=timeout)
        )

    def jobs(self, *, timeout: _values.Seconds | None = None) -> tuple[_workspace.JobStatus, ...]:
        """Return the session's jobs, oldest first: the running ones, and some that ended."""
        return self._await("jobs", timeout=timeout)

    def job(self, id: str) -> Job:
        """Return a job of the session by its id."""
        return Job(self._home, self._run("job", id))

    def owner(self, *, timeout: _values.Seconds | None = None) -> _places.WorkspaceOwner | None:
        """Return which of the servers on one store has the agent's workspace."""
        return self._await("owner", timeout=timeout)

    def move(self, *, to: str, timeout: _values.Seconds | None = None) -> _places.WorkspaceOwner:
        """Give the agent's workspace to another server, for who runs the servers."""
        return self._await("move", to=to, timeout=timeout)
