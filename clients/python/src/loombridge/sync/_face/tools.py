"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from loombridge import _approvals, _audit, _profiles, _tools, _values
from loombridge.sync import _twin
from loombridge.sync._face.mcpservers import McpServers


@_twin.documented(_tools.Tools)
class Tools(_twin.Twin):
    """The tools of the server; reached as `ctx.tools`. Running one is `ctx.tool`."""

    @property
    def servers(self) -> McpServers:
        """The servers of the Model Context Protocol whose tools agents call."""
        return self._part("servers", McpServers)

    def run(
        self,
        name: str,
        arguments: Mapping[str, _values.JsonValue] | str | None = None,
        *,
        session_id: str,
        timeout: _values.Seconds | None = None,
        thought: str | None = None,
        turn_id: str | None = None,
        call_id: str | None = None,
        request_id: str | None = None,
    ) -> _tools.ToolResult:
        """Run a tool in a session, as `ctx.tool` does in the client's; see there."""
        return self._await(
            "run",
            name,
            arguments,
            session_id=session_id,
            timeout=timeout,
            thought=thought,
            turn_id=turn_id,
            call_id=call_id,
            request_id=request_id,
        )

    def list(
        self, levels: Iterable[int] = (), *, timeout: _values.Seconds | None = None
    ) -> tuple[_tools.ToolInfo, ...]:
        """Return the tools this agent may call, sorted by name."""
        return self._await("list", levels, timeout=timeout)

    def approvals(self) -> Iterator[_approvals.PendingApproval]:
        """Yield the calls that wait for a person: those there are, then each that comes."""
        return _twin.Iterated(self._home, self._run("approvals"))

    def approve(
        self,
        approval: str | _approvals.PendingApproval,
        decision: str = "once",
        *,
        note: str = "",
        timeout: _values.Seconds | None = None,
    ) -> _approvals.PendingApproval:
        """Answer a call that waits."""
        return self._await("approve", approval, decision, note=note, timeout=timeout)

    def deny(
        self,
        approval: str | _approvals.PendingApproval,
        *,
        note: str = "",
        timeout: _values.Seconds | None = None,
    ) -> _approvals.PendingApproval:
        """Say no to a call that waits: `approve` with the decision `deny`."""
        return self._await("deny", approval, note=note, timeout=timeout)

    def profile(
        self, tool: str, *, timeout: _values.Seconds | None = None
    ) -> _profiles.ToolProfile:
        """Return what the agent's calls of a tool may do."""
        return self._await("profile", tool, timeout=timeout)

    def remembered_approvals(
        self, *, timeout: _values.Seconds | None = None
    ) -> tuple[_approvals.RememberedApproval, ...]:
        """Return the answers that also hold for later calls."""
        return self._await("remembered_approvals", timeout=timeout)

    def revoke(
        self,
        approval: str | _approvals.RememberedApproval,
        *,
        timeout: _values.Seconds | None = None,
    ) -> None:
        """Take a remembered answer back: what `remembered_approvals` gave, or its `id`."""
        return self._await("revoke", approval, timeout=timeout)

    def audit(
        self,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        tool: str | None = None,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Iterator[_audit.AuditRecord]:
        """Yield the records of tool calls, last ended first, page by page."""
        return _twin.Iterated(
            self._home,
            self._run(
                "audit",
                agent_id=agent_id,
                session_id=session_id,
                tool=tool,
                outcome=outcome,
                since=since,
                until=until,
                timeout=timeout,
            ),
        )
