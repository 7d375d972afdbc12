"""A session of the OpenAI Agents SDK whose items are records, and hooks that record steps.

    from loombridge.openai_agents import LoomBridgeHooks, LoomBridgeSession

    session = LoomBridgeSession("ann", "127.0.0.1:50051")
    hooks = LoomBridgeHooks("ann", "127.0.0.1:50051")
    await Runner.run(agent, "What did I say about pears?", session=session, hooks=hooks)

What was said is found by `memory_query` of the same agent, too; what its tools did are steps of
the session. Install it with `pip install "loombridge[openai-agents]"`.
"""

import uuid
from contextlib import suppress
from typing import Any, TypeAlias, Unpack, cast

try:
    from agents import (
        Agent,
        Handoff,
        RunContextWrapper,
        RunHooks,
        SessionSettings,
        Tool,
        TResponseInputItem,
        default_tool_error_function,
    )
    from agents.memory.session import SessionABC
    from agents.tool import default_tool_timeout_error_message
    from agents.tool_context import ToolContext
    from pydantic_core import to_jsonable_python
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("agents", "openai"):
        raise
    raise ImportError(
        "loombridge.openai_agents needs the OpenAI Agents SDK: "
        'pip install "loombridge[openai-agents]"'
    ) from err

from loombridge import _client, _errors, _items, _loops, _values

__all__ = ["LoomBridgeHooks", "LoomBridgeSession"]

AGENT = "openai-agents"
"""The default owner of the records."""

Context: TypeAlias = RunContextWrapper[Any]
"""Of a run, or of a call of a tool."""

ITEMS = _items.Items(kind="openai.item", place="openai")
"""How the items are kept."""


class LoomBridgeSession(_loops.Adapter, SessionABC):
    """A `Session` of the OpenAI Agents SDK; close it, or use it in an `async with` block.

    Any thread and any event loop may use it, and several processes the same session. Items
    are added together or not at all, up to 1,000 items of 4 MiB. `OpenAIResponsesCompactionSession`
    around it replaces a history in one commit: a process that is killed meanwhile leaves
    either the old one or the new one, and no item that is added meanwhile is lost.
    """

    def __init__(
        self,
        session_id: str,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            session_id: names the session among the agent's, at most 256 bytes.
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory the items are in; default `openai-agents`, or the client's.
            session_settings: how many items `get_items` returns at most.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        if not _values.text("session_id", session_id):
            raise ValueError("session_id must not be empty")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)
        self._open(server, agent_id, AGENT, connection)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, the oldest first.

        Args:
            limit: only so many of the newest; default: that of the settings, or else all.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        history = await self._loop.acall(lambda ctx: ITEMS.read(ctx, self.session_id, limit))
        return [each.value for each in history.items]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind the others."""
        await self._loop.acall(lambda ctx: ITEMS.add(ctx, self.session_id, items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out and return it; None: there is none."""

        async def pop(ctx: _client.Client) -> TResponseInputItem | None:
            while newest := (await ITEMS.read(ctx, self.session_id, 1)).items:
                first, *others = newest[0].ids
                # Whoever deletes its first record has it; another may have been faster.
                with suppress(_errors.RecordNotFoundError):
                    await ctx.memory.delete(id=first)
                    await _items.forget(ctx, others)
                    return newest[0].value
            return None

        return await self._loop.acall(pop)

    async def clear_session(self) -> None:
        """Take all items out."""
        await self._atomic_replace_items([])

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Put items in the place of those that are there; what the SDK's compaction calls."""
        await self._loop.acall(lambda ctx: ITEMS.replace(ctx, self.session_id, items))
        return True


class LoomBridgeHooks(_loops.Adapter, RunHooks[Any]):
    """`RunHooks` that record each call of a tool, and each handoff, as a step of a session.

    Close them, or use them in an `async with` block. Any thread and any event loop may use them,
    and any number of runs. A call is recorded when it ends, with what the model is told of it,
    before the model is. A tool whose exception ends the run is not recorded, for the SDK tells
    hooks nothing of it. Errors of the server end the run.
    """

    def __init__(
        self,
        session_id: str,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            session_id: names the session that has the steps, at most 256 bytes.
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose session it is; default `openai-agents`, or the client's.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        if not _values.text("session_id", session_id):
            raise ValueError("session_id must not be empty")
        self.session_id = session_id
        self._open(server, agent_id, AGENT, connection)

    async def on_tool_end(
        self, context: Context, agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        """Record the call."""
        name, arguments, call_id = tool.name, {}, None
        if isinstance(context, ToolContext):
            name, call_id = context.qualified_tool_name, context.tool_call_id
            arguments = _values.written(context.tool_arguments)
        output = _said(result)
        error = output if _failed(context, tool, output) else None
        await self._record(name, arguments, output, error, call_id)

    async def on_handoff(
        self, context: Context, from_agent: Agent[Any], to_agent: Agent[Any]
    ) -> None:
        """Record that another agent goes on."""
        name = Handoff.default_tool_name(to_agent)
        await self._record(name, {"from": from_agent.name}, {"assistant": to_agent.name})

    async def _record(
        self,
        name: str,
        arguments: dict[str, Any],
        output: Any,
        error: str | None = None,
        call_id: str | None = None,
    ) -> None:
        request = uuid.uuid4().hex
        await self._loop.acall(
            lambda ctx: ctx.context.record_step(
                name,
                arguments,
                output=output,
                error=error,
                call_id=call_id,
                request_id=request,
                session_id=self.session_id,
            )
        )


def _said(result: object) -> Any:
    """Return what a tool gave as JSON, or else as the text that the model is told."""
    with suppress(ValueError):  # It holds itself, or a number such as NaN.
        output = to_jsonable_python(result, fallback=str, bytes_mode="base64")
        if isinstance(output, str) or _values.json_text("output", output, mend=True):
            return output
    return str(result)


def _failed(context: Context, tool: Tool, output: object) -> bool:
    """Return whether an output is what the SDK says itself when a tool fails or takes too long."""
    if not isinstance(output, str):
        return False
    # Older versions say behind it what the exception says.
    if output.startswith(default_tool_error_function(context, Exception())):
        return True
    limit = cast("float | None", getattr(tool, "timeout_seconds", None))
    return limit is not None and output == default_tool_timeout_error_message(
        tool_name=tool.name, timeout_seconds=limit
    )
