"""Tools: what there is, and what a call gave."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
)
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import grpc.aio

from loombridge import (
    _approvals,
    _audit,
    _brief,
    _errors,
    _profiles,
    _rpc,
    _servers,
    _spelling,
    _statuses,
    _steps,
    _stream,
    _values,
)
from loombridge.v1 import prompt_pb2
from loombridge.v1 import tools_pb2 as pb

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

LONGEST_TOOL = 600.0
"""Seconds the server lets a tool run, at most."""

ANSWER_MARGIN = 5.0
"""Seconds a call waits beyond its tool's timeout, so that a tool that ran out of
time comes back as a result with its step, and not as a broken call."""


@dataclass(frozen=True, slots=True, repr=False)
class ToolInfo(_brief.Brief):
    """One tool an agent may call."""

    name: str
    """What to call it by, such as `fs:read_file`; `fs_read_file` works too."""
    description: str
    """What it does, for a model."""
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""
    level: int
    """1: listed in prompts, 2: shell utilities, 3: scripts."""
    requires_approval: bool
    """A person must agree to each call."""
    category: str
    """Groups tools: `file`, `search` and others."""
    mutates: bool
    """It changes something outside the log; assumed of every agent's tool."""
    agent_id: str
    """The agent that provides it; empty for the server's own."""
    cli_equivalents: tuple[str, ...] = ()
    """Commands that do the like, such as `cat` for `fs:read_file`."""
    tokens: int = 0
    """About what its definition takes in a prompt; 0 for tools of no MCP server."""


@dataclass(frozen=True, slots=True, repr=False)
class ToolFailure(_brief.Brief):
    """Why a tool failed."""

    code: str
    """`invalid_arguments`, `not_found`, `permission_denied`, `too_large`, `timeout`,
    `failed`, `provider_away`: the agent that provides it is not attached, or
    `outcome_unknown`: the server stopped while it ran."""
    message: str
    """What went wrong, for people and models."""


@dataclass(frozen=True, slots=True, repr=False)
class ToolResult(_brief.Brief):
    """What a tool gave. A tool that fails is a result too, with `success` False."""

    success: bool
    """The tool did its work."""
    output: Any
    """Its result, as JSON says it, or bytes; None when it failed."""
    error: ToolFailure | None
    """Why it failed; None when it did not."""
    observation: str
    """The text for a model: one line, and where the rest can be read."""
    step: _steps.Step | None
    """What the log keeps of the call, without `inline`, for `output` holds the same;
    None when it could not be written."""
    blob: _steps.BlobInfo | None
    """Where the full result lies, when it was offloaded."""
    truncated: bool
    """Long text in `output` was cut; all of it is in `blob`."""
    record_error: str = ""
    """Why the log could not be written; empty when it was."""
    replayed: bool = False
    """It is the answer that the same `request_id` or `call_id` got before; nothing ran."""
    output_collected: bool = False
    """The blob with the full result, which that answer had, was collected since: `blob` is
    None."""
    redacted: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """How many secrets marks such as `[redacted:jwt]` stand for, by pattern; empty where the
    server does not redact, and in the answer to a repeated request."""

    def raise_for_error(self) -> "ToolResult":
        """Return the result itself, or raise when the tool failed.

        Raises:
            ToolFailedError: with the failure's code as its reason, in upper case.
        """
        if self.error is not None:
            raise _errors.ToolFailedError(self.error.message, reason=self.error.code.upper())
        return self


class ToolVerb(Coroutine[Any, Any, ToolResult]):
    """What `ctx.tool("name")` gives: await it for a call, or decorate with it."""

    def __init__(
        self,
        running: Coroutine[Any, Any, ToolResult],
        provide: Callable[[Any], Any],
    ) -> None:
        """Made by `ctx.tool`."""
        self._running = running
        self._provide = provide

    def __call__(self, function: FunctionT) -> FunctionT:
        """Provide a function under the name, instead of calling the tool."""
        self._running.close()
        self._provide(function)
        return function

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        """Call the tool."""
        return self._running.__await__()

    def send(self, value: Any, /) -> Any:
        """Go on with the call, as tasks do."""
        return self._running.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise in the call, as tasks do."""
        return self._running.throw(*error)

    def close(self) -> None:
        """Give the call up."""
        self._running.close()


def _id_of(approval: str | _approvals.PendingApproval | _approvals.RememberedApproval) -> str:
    if isinstance(approval, (_approvals.PendingApproval, _approvals.RememberedApproval)):
        return approval.id
    return _values.text("approval", approval)


def _arguments(value: Mapping[str, _values.JsonValue] | str | None, *, by_model: bool) -> str:
    """Return arguments as JSON text; the server reports faults in a model's arguments."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode() if by_model else value
    if by_model and value is not None:
        return _values.json_text("arguments", value)
    return _values.json_object("arguments", value or {})


@_spelling.helpful
class Tools:
    """The tools of the server; reached as `ctx.tools`. Running one is `ctx.tool`."""

    servers: _servers.McpServers
    """The servers of the Model Context Protocol whose tools agents call."""

    def __init__(self, transport: _rpc.Transport, agent_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self.servers = _servers.McpServers(transport)

    async def run(
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
    ) -> ToolResult:
        """Run a tool in a session, as `ctx.tool` does in the client's; see there."""
        seconds = self._transport.timeout
        if timeout is not None:
            seconds = _values.seconds("timeout", timeout)
        elif seconds > LONGEST_TOOL:
            seconds = LONGEST_TOOL
        request = pb.ToolRequest(
            agent_id=self._agent_id,
            name=_values.text("name", name, mend=bool(call_id)),
            arguments_json=_arguments(arguments, by_model=bool(call_id)),
            session_id=_values.text("session_id", session_id),
            timeout=_values.duration("timeout", seconds),
            thought=_values.optional_text("thought", thought),
            turn_id=_values.optional_text("turn_id", turn_id),
            call_id=_values.by_model("call_id", call_id),
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(
            _rpc.TOOL,
            request,
            timeout=seconds + ANSWER_MARGIN,
            repeatable=bool(request_id or call_id),
        )
        return result(answer)

    @_stream.listed
    async def list(
        self, levels: Iterable[int] = (), *, timeout: _values.Seconds | None = None
    ) -> tuple[ToolInfo, ...]:
        """Return the tools this agent may call, sorted by name.

        Args:
            levels: only tools of these levels; default: all.
            timeout: seconds for each page; default: the client's.
        """
        request = pb.ListToolsRequest(
            agent_id=self._agent_id,
            levels=[_values.integer("levels", level) for level in levels],
        )
        found = await self._transport.items(
            _rpc.LIST_TOOLS, request, lambda answer: answer.tools, timeout
        )
        return tuple(map(_tool_info, found))

    async def approvals(self) -> AsyncGenerator[_approvals.PendingApproval, None]:
        """Yield the calls that wait for a person: those there are, then each that comes.

        They are the calls of all other agents that the client's credential approves. Answer each
        by `approve` or `deny`. Without a watcher, calls that need approval are denied at once.

        Raises:
            ApprovalNotAllowedError: the credential approves no calls.
        """
        request = pb.WatchApprovalsRequest(agent_id=self._agent_id)
        await self._transport.stand()
        call = self._transport.stream(_rpc.WATCH_APPROVALS, request)
        try:
            while (change := await self._transport.read(call)) is not None:
                if change.HasField("pending"):
                    yield _approvals.pending(change.pending)
        except grpc.aio.AioRpcError as err:
            error = await self._transport.failure(err)
            raise error from _statuses.cause(error, err)
        finally:
            call.cancel()

    async def approve(
        self,
        approval: str | _approvals.PendingApproval,
        decision: str = "once",
        *,
        note: str = "",
        timeout: _values.Seconds | None = None,
    ) -> _approvals.PendingApproval:
        """Answer a call that waits.

        Args:
            approval: what `approvals` gave, or its `id`.
            decision: `once`, `deny`, or an approval that is remembered: `session`,
                `agent`, or `always`, which is for all agents.
            note: why, on one line of at most 1,000 bytes; after a no the model reads it.
            timeout: seconds for the call; default: the client's.

        Raises:
            ApprovalNotFoundError: no call waits under that id any more.
            ApprovalNotAllowedError: it is not the client's to decide.
        """
        enum = pb.ApprovalDecision.DESCRIPTOR
        number = _values.enum_number("decision", enum, "APPROVAL_DECISION_", decision)
        request = pb.ApproveCallRequest(
            agent_id=self._agent_id,
            id=_id_of(approval),
            decision=pb.ApprovalDecision.Name(number),
            note=_values.text("note", note),
        )
        answer = await self._transport.call(_rpc.APPROVE_CALL, request, timeout=timeout)
        return _approvals.pending(answer)

    async def deny(
        self,
        approval: str | _approvals.PendingApproval,
        *,
        note: str = "",
        timeout: _values.Seconds | None = None,
    ) -> _approvals.PendingApproval:
        """Say no to a call that waits: `approve` with the decision `deny`."""
        return await self.approve(approval, "deny", note=note, timeout=timeout)

    async def profile(
        self, tool: str, *, timeout: _values.Seconds | None = None
    ) -> _profiles.ToolProfile:
        """Return what the agent's calls of a tool may do.

        Args:
            tool: its registered name, such as `system:shell`.
            timeout: seconds for the call; default: the client's.

        Raises:
            ToolNotFoundError: the agent may call no tool of that name.
        """
        request = pb.ListToolsRequest(agent_id=self._agent_id, tool=_values.text("tool", tool))
        answer = await self._transport.call(_rpc.LIST_TOOLS, request, timeout=timeout)
        return _profiles.profile(answer.profile)

    async def remembered_approvals(
        self, *, timeout: _values.Seconds | None = None
    ) -> tuple[_approvals.RememberedApproval, ...]:
        """Return the answers that also hold for later calls."""
        request = pb.ListApprovalsRequest(agent_id=self._agent_id)
        found = await self._transport.items(
            _rpc.LIST_APPROVALS, request, lambda answer: answer.approvals, timeout
        )
        return tuple(map(_approvals.remembered, found))

    async def revoke(
        self,
        approval: str | _approvals.RememberedApproval,
        *,
        timeout: _values.Seconds | None = None,
    ) -> None:
        """Take a remembered answer back: what `remembered_approvals` gave, or its `id`.

        Raises:
            ApprovalNotFoundError: nothing is remembered under that id.
        """
        request = pb.RevokeApprovalRequest(agent_id=self._agent_id, id=_id_of(approval))
        await self._transport.call(_rpc.REVOKE_APPROVAL, request, timeout=timeout)

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
    ) -> AsyncIterator[_audit.AuditRecord]:
        """Yield the records of tool calls, last ended first, page by page.

        Args:
            agent_id: whose calls; default: all agents that the client may act for.
            session_id: only calls of a session; default: all.
            tool: only calls of a tool, by its registered name; default: all.
            outcome: only calls with this outcome: `ok`, `failed`, `denied`, `refused`,
                `replayed` or `unknown`; default: all.
            since: only calls from then on; default: all.
            until: only earlier calls; default: all.
            timeout: seconds for each page; default: the client's.
        """
        enum = pb.AuditOutcome.DESCRIPTOR
        request = pb.ListAuditRequest(
            agent_id=self._agent_id,
            caller_id=_values.optional_text("agent_id", agent_id),
            session_id=_values.optional_text("session_id", session_id),
            tool=_values.optional_text("tool", tool),
            outcome=pb.AuditOutcome.Name(
                _values.enum_number("outcome", enum, "AUDIT_OUTCOME_", outcome)
            )
            if outcome is not None
            else None,
            start_time=_values.timestamp("since", since) if since is not None else None,
            end_time=_values.timestamp("until", until) if until is not None else None,
        )
        pages = self._transport.pages(
            _rpc.LIST_AUDIT, request, lambda answer: answer.records, timeout
        )
        return _stream.Pages(pages, _audit.record)


def _tool_info(m: prompt_pb2.ToolDescriptor) -> ToolInfo:
    return ToolInfo(
        name=m.name,
        description=m.description,
        parameters=_values.from_json(m.parameters_schema_json) or {},
        level=m.level,
        requires_approval=m.requires_approval,
        category=m.category,
        mutates=m.mutates,
        agent_id=m.agent_id,
        cli_equivalents=tuple(m.cli_equivalents),
        tokens=m.tokens,
    )


def result(m: pb.ToolResponse) -> ToolResult:
    """Return the answer to a tool call as users see it."""
    code = _values.enum_name(pb.ToolErrorCode.DESCRIPTOR, "TOOL_ERROR_CODE_", m.error_code)
    return ToolResult(
        success=m.success,
        output=m.output_bytes.data
        if m.HasField("output_bytes")
        else _values.from_json(m.output_json),
        error=None if m.success else ToolFailure(code=code, message=m.error_message),
        observation=m.observation,
        step=_steps.step(m.step) if m.HasField("step") else None,
        blob=_steps.blob_info(m.output_blob) if m.HasField("output_blob") else None,
        truncated=m.output_truncated,
        record_error=m.record_error,
        replayed=m.replayed,
        output_collected=m.output_collected,
        redacted=dict(m.redacted),
    )
