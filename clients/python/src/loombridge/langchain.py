"""Middleware for LangChain's agents: the server keeps what is said, and makes the prompts.

    from loombridge.langchain import LoomBridgeMiddleware

    with LoomBridgeMiddleware("127.0.0.1:50051", max_tokens=32_000) as context:
        agent = create_agent(model, tools, middleware=[context], checkpointer=checkpointer)
        agent.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "ann"}})

It stands in the place of `SummarizationMiddleware`: old steps are folded when that pays, by no
model, and the model reads back what it needs of them. Install it with
`pip install "loombridge[langchain]"`.
"""

import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, NotRequired, Unpack, cast

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ContextT,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langchain_core.exceptions import ContextOverflowError
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        convert_to_openai_image_block,
        is_data_content_block,
    )
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
    from langgraph.prebuilt import InjectedState
    from langgraph.runtime import Runtime
    from typing_extensions import TypedDict  # Pydantic takes no other before Python 3.12.
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise ImportError(
        'loombridge.langchain needs LangChain: pip install "loombridge[langchain]"'
    ) from err

from loombridge import _client, _errors, _loops, _prompt, _settings, _values

__all__ = ["LoomBridgeMiddleware", "LoomBridgeState", "Place"]

AGENT = "langchain"
"""The default agent."""

READER = "fs_read_file"
"""The tool that reads back what prompts leave out."""

READ_BYTES = 16 << 10
"""Bytes that one call of it gives, unless it asks for another number."""

REQUEST_ID = 128
"""Bytes of a request's id."""

ERROR_CHARS = 16 << 10
"""Characters of a failed tool's text that stand as its error."""

PLACE = "loom_bridge"
"""The member of an agent's state that says how far it is recorded."""

Update = dict[str, Any] | None


class Place(TypedDict):
    """How far a thread is recorded."""

    session: str
    """The session that has its messages."""
    message: str
    """The id of the last message that was recorded."""
    position: int
    """The position of that message in the session's log."""


class LoomBridgeState(AgentState[Any]):
    """The state of an agent, with how far it is recorded."""

    loom_bridge: NotRequired[Annotated[Place, PrivateStateAttr]]


class LoomBridgeMiddleware(_loops.Adapter, AgentMiddleware[LoomBridgeState, ContextT, Any]):
    """What makes the prompts of an agent; close it, or use it in a `with` block.

    Each thread is a session of its name; a call of a tool is a step of it. An agent without a
    checkpointer goes on with the session of its `thread_id`, if it is given only the new
    messages; without a thread, each run has a session of its own. A thread that goes on from an
    earlier checkpoint, or whose messages were removed, gets a new session. Errors of the server
    are `loombridge.LoomBridgeError`.

    Middleware that changes the system message or the tools stands before this one; what stands
    behind it sees the prompt as the server made it. Any thread and any event loop may use it,
    and any number of agents.
    """

    state_schema = LoomBridgeState

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        max_tokens: int | None = None,
        settings: _settings.PromptSettings | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose log and memory it is; default `langchain`, or the client's. What one
                of its threads left out, another one can read: people who must not read each
                other's threads have agents of their own.
            max_tokens: the budget of a prompt, tools included. Default: what the window of the
                model leaves after room for the answer.
            settings: what prompts are made of, such as whose memories. The agent's own tools
                are the ones that stand in them.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        super().__init__()
        self._max_tokens = max_tokens
        self._settings = replace(
            settings or _settings.PromptSettings(), tools=_settings.ToolSelection(none=True)
        )
        self._open(server, agent_id, AGENT, connection)
        self.tools: Sequence[BaseTool] = [self._reader()]

    def before_model(self, state: LoomBridgeState, runtime: Runtime[ContextT]) -> Update:
        """Record the messages that are new."""
        session = _session()
        return self._loop.call(lambda ctx: _record(ctx, state, session))

    async def abefore_model(self, state: LoomBridgeState, runtime: Runtime[ContextT]) -> Update:
        """Record the messages that are new."""
        session = _session()
        return await self._loop.acall(lambda ctx: _record(ctx, state, session))

    def after_agent(self, state: LoomBridgeState, runtime: Runtime[ContextT]) -> Update:
        """Record the answer."""
        return self.before_model(state, runtime)

    async def aafter_agent(self, state: LoomBridgeState, runtime: Runtime[ContextT]) -> Update:
        """Record the answer."""
        return await self.abefore_model(state, runtime)

    def wrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Call the model with the server's prompt; once more if it is too long for it."""
        turn = _Turn(request, self._max_tokens, self._settings)
        sent = self._loop.call(turn.assemble)
        try:
            response = handler(sent)
        except ContextOverflowError:
            self._loop.call(turn.overflow)
            response = handler(self._loop.call(turn.assemble))
        self._loop.call(lambda ctx: turn.report(ctx, response))
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Call the model with the server's prompt; once more if it is too long for it."""
        turn = _Turn(request, self._max_tokens, self._settings)
        sent = await self._loop.acall(turn.assemble)
        try:
            response = await handler(sent)
        except ContextOverflowError:
            await self._loop.acall(turn.overflow)
            response = await handler(await self._loop.acall(turn.assemble))
        await self._loop.acall(lambda ctx: turn.report(ctx, response))
        return response

    def _reader(self) -> BaseTool:
        """Return the tool that reads back what prompts leave out."""

        def read(
            path: str,
            place: Annotated[Place, InjectedState(PLACE)],
            offset_bytes: int = 0,
            limit_bytes: int = READ_BYTES,
        ) -> str:
            return self._loop.call(lambda ctx: _read(ctx, place, path, offset_bytes, limit_bytes))

        async def aread(
            path: str,
            place: Annotated[Place, InjectedState(PLACE)],
            offset_bytes: int = 0,
            limit_bytes: int = READ_BYTES,
        ) -> str:
            return await self._loop.acall(
                lambda ctx: _read(ctx, place, path, offset_bytes, limit_bytes)
            )

        return StructuredTool.from_function(
            read,
            aread,
            name=READER,
            description="Read back, in full, what this conversation shows folded or shortened: a "
            "result, step or message by the name that stands there, such as step_012. It is the "
            "tool that the conversation calls fs:read_file.",
            handle_tool_error=True,
        )


class _Turn:
    """One call of the model."""

    def __init__(
        self,
        request: ModelRequest[Any],
        max_tokens: int | None,
        settings: _settings.PromptSettings,
    ) -> None:
        self._request = request
        self._session: str = cast("dict[str, Any]", request.state)[PLACE]["session"]
        self._max_tokens = max_tokens
        self._settings = settings
        self._prompt_id = ""

    async def assemble(self, ctx: _client.Client) -> ModelRequest[Any]:
        """Return the request with the messages that the server has for it."""
        request = self._request
        prompt = await ctx.context.assemble(
            model=_model(request.model),
            max_tokens=self._max_tokens,
            system=request.system_message.text if request.system_message else "",
            tools=_tools(request.tools),
            settings=self._settings,
            session_id=self._session,
        )
        self._prompt_id = prompt.receipt.prompt_id
        system, messages = _shown(prompt.messages, request)
        return request.override(system_message=system, messages=messages)

    async def overflow(self, ctx: _client.Client) -> None:
        """Tell that the model refused the prompt as too long."""
        await ctx.context.report_overflow(session_id=self._session)

    async def report(self, ctx: _client.Client, response: ModelResponse[Any]) -> None:
        """Tell what the prompt took; the answer is worth more than that."""
        for message in response.result:
            if isinstance(message, AIMessage) and (usage := message.usage_metadata):
                with suppress(_errors.LoomBridgeError):
                    await ctx.context.report_usage(
                        self._prompt_id,
                        prompt_tokens=usage["input_tokens"],
                        completion_tokens=usage["output_tokens"],
                        reasoning_tokens=usage.get("output_token_details", {}).get("reasoning")
                        or 0,
                        cached_tokens=usage.get("input_token_details", {}).get("cache_read") or 0,
                        session_id=self._session,
                    )


def _session() -> str:
    """Return the session of the thread that runs; each run of a sub-agent has one of its own."""
    given = get_config().get("configurable", {})
    thread, run = given.get("thread_id"), uuid.uuid4().hex
    if not thread:
        return run
    below = "|" in str(given.get("checkpoint_ns", ""))
    return f"{thread}|{run}" if below else str(thread)


async def _record(ctx: _client.Client, state: LoomBridgeState, session: str) -> Update:
    """Record the messages behind the place of the state; return the new place."""
    messages, place = state["messages"], state.get("loom_bridge")
    try:
        new = _behind(messages, place)
        if not new:
            return None
        try:
            place = await _Recorder(ctx, messages).add(new, place, session)
        except _errors.RequestIdReusedError:
            raise _BranchedError from None
    except _BranchedError:
        place = await _Recorder(ctx, messages).add(messages, None, f"{session}|{uuid.uuid4().hex}")
    return {PLACE: place}


class _BranchedError(Exception):
    """The session is not that of these messages any longer."""


def _behind(messages: Sequence[AnyMessage], place: Place | None) -> Sequence[AnyMessage]:
    """Return the messages that are not recorded yet."""
    if place is None:
        return messages
    for i, message in enumerate(messages):
        if message.id == place["message"]:
            return messages[i + 1 :]
    raise _BranchedError


class _Recorder:
    """Adds the messages of a thread to a session."""

    def __init__(self, ctx: _client.Client, messages: Iterable[AnyMessage]) -> None:
        self._context = ctx.context
        said = [message for message in messages if isinstance(message, AIMessage)]
        self._calls = {call["id"]: call for each in said for call in each.tool_calls}
        self._invalid = {call["id"] for each in said for call in each.invalid_tool_calls}

    async def add(self, new: Sequence[AnyMessage], place: Place | None, session: str) -> Place:
        """Add messages; return the place of the last one.

        The same messages again add nothing, so that a run that was killed goes on.

        Raises:
            _BranchedError: the session holds something else behind the place.
        """
        session = place["session"] if place else session
        last = place["position"] if place else 0
        for message in new:
            for position in await self._recorded(message, session):
                if last and position != last + 1:
                    await self._expect_nothing(session, last, position)
                last = position
        return Place(session=session, message=new[-1].id or "", position=last)

    async def _recorded(self, message: AnyMessage, session: str) -> list[int]:
        """Record a message, and return the positions of what it becomes."""
        request = hashlib.sha256(f"{session}\n{message.id}".encode()).hexdigest()
        if isinstance(message, ToolMessage):
            if message.tool_call_id in self._invalid:
                return []  # It was recorded as failed with the call.
            call, text = self._calls.get(message.tool_call_id), _plain(message.content)
            if call is not None and text is not None:
                step = await self._context.record_step(
                    call["name"],
                    _values.written(json.dumps(call["args"], default=str)),
                    output=text,
                    error=text[:ERROR_CHARS] if message.status == "error" else None,
                    call_id=message.tool_call_id,
                    request_id=request,
                    session_id=session,
                )
                return [step.step.position]
        said = _said(message)
        found = [*await self._context.append(said, request_id=request, session_id=session)]
        for call in message.invalid_tool_calls if isinstance(message, AIMessage) else ():
            step = await self._context.record_step(
                call["name"] or "",
                error=call["error"] or "its arguments are not JSON",
                refused=True,
                call_id=call["id"],
                request_id=f"{request}:{call['id']}"[:REQUEST_ID],
                session_id=session,
            )
            found.append(step.step.position)
        return found

    async def _expect_nothing(self, session: str, after: int, before: int) -> None:
        """Expect that neither a person nor a model said something between two places.

        Raises:
            _BranchedError: one of them did, or the log is another one.
        """
        if before <= after:
            raise _BranchedError
        async for entry in self._context.conversation(newest_first=True, session_id=session):
            if entry.position <= after:
                return
            if entry.position < before and entry.message is not None:
                raise _BranchedError


async def _read(
    ctx: _client.Client, place: Place, path: str, offset_bytes: int, limit_bytes: int
) -> str:
    """Return what a prompt left out.

    Raises:
        ToolException: there is nothing of that name.
    """
    try:
        data = await ctx.context.read_blob(
            path, offset=offset_bytes, limit=limit_bytes, session_id=place["session"]
        )
    except (_errors.BlobNotFoundError, _errors.InvalidRequestError, ValueError) as err:
        raise ToolException(str(err)) from err
    return bytes(data).decode(errors="replace")


def _model(model: object) -> str | None:
    """Return the provider's name of a model, where it has one."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name.removeprefix("models/") if isinstance(name, str) else None


def _tools(tools: Iterable[BaseTool | dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools that a provider has not itself."""
    found = [convert_to_openai_tool(tool) for tool in tools]
    return [tool for tool in found if tool.get("type") == "function"]


def _said(message: AnyMessage) -> _prompt.Message:
    """Return a message as the server keeps it."""
    content, blocks = _plain(message.content), None
    if content is None:
        blocks = [_block(each) for each in message.content]
    role: _prompt.Role = "user"
    if isinstance(message, SystemMessage):
        role = "system"
    elif isinstance(message, ToolMessage):
        role = "tool"
    said = _prompt.Message(
        role,
        content or "",
        blocks,
        name=message.name or "",
        tool_call_id=message.tool_call_id if isinstance(message, ToolMessage) else "",
    )
    if not isinstance(message, AIMessage):
        return said
    said = replace(said, role="assistant")
    known = {call.id for call in said.calls()}
    calls = [
        _prompt.ToolCall(call["id"] or "", call["name"], json.dumps(call["args"]))
        for call in message.tool_calls
    ] + [
        _prompt.ToolCall(call["id"] or "", call["name"] or "", call["args"] or "")
        for call in message.invalid_tool_calls
    ]
    # Calls that stand in a provider's own blocks are not given twice.
    return said if {call.id for call in calls} <= known else replace(said, tool_calls=tuple(calls))


def _plain(content: str | list[str | dict[str, Any]]) -> str | None:
    """Return content that is nothing but text; None: it is more."""
    if isinstance(content, str):
        return content
    texts = [each if isinstance(each, str) else _text(each) for each in content]
    return None if None in texts else "".join(cast("list[str]", texts))


def _text(block: dict[str, Any]) -> str | None:
    return block["text"] if block.keys() == {"type", "text"} else None


def _block(block: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if block.get("type") == "image" and is_data_content_block(block):
        return convert_to_openai_image_block(block)
    return block


def _shown(
    prompt: Sequence[_prompt.Message], request: ModelRequest[Any]
) -> tuple[SystemMessage | None, list[AnyMessage]]:
    """Return a prompt as LangChain has it: what the agent has itself is given as it has it."""
    own: dict[str, list[AnyMessage]] = {}
    for message in ([request.system_message] if request.system_message else []) + request.messages:
        own.setdefault(_key(_said(message)), []).append(message)
    results = {
        each.tool_call_id: each for each in request.messages if isinstance(each, ToolMessage)
    }
    shown: list[AnyMessage] = []
    for message in prompt:
        same = own.get(_key(message))
        result = results.get(message.tool_call_id)
        if same:
            shown.append(same.pop(0))
        elif message.role == "tool" and result is not None:
            content = message.blocks or message.content
            shown.append(result.model_copy(update={"content": content}))
        else:
            shown.append(_made(message))
    if shown and isinstance(shown[0], SystemMessage):
        return shown[0], shown[1:]
    return None, shown


def _key(message: _prompt.Message) -> str:
    """Return what two messages have in common that say the same."""
    name = "" if message.role == "tool" else message.name
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    said = (message.role, message.content, message.blocks, name, calls, message.tool_call_id)
    return json.dumps(said, sort_keys=True)


def _made(message: _prompt.Message) -> AnyMessage:
    """Return a message that the agent has not itself."""
    content, name = message.blocks or message.content, message.name or None
    if message.role == "assistant":
        return AIMessage(
            content,
            name=name,
            tool_calls=[
                {
                    "name": call.name,
                    "args": _values.written(call.arguments),
                    "id": call.id,
                    "type": "tool_call",
                }
                for call in message.calls()
            ],
        )
    if message.role == "tool":
        return ToolMessage(content, tool_call_id=message.tool_call_id, name=name)
    kind = HumanMessage if message.role == "user" else SystemMessage
    return kind(content, name=name)
