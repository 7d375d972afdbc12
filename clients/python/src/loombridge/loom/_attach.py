"""Where a loom-py agent and Loom Bridge meet."""

import asyncio
import copy
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from loombridge import _client, _connect, _receipts, _values
from loombridge.loom import _bridge, _calls, _loop, _run

AgentT = TypeVar("AgentT")
P = ParamSpec("P")
R = TypeVar("R")

_caller: ContextVar[str] = ContextVar("loombridge_caller", default="")
# Who called the agent's own tool that runs now.


def attach(
    agent: object,
    *,
    address: str | None = None,
    session_id: str = "",
    prompts: bool = True,
    max_tokens: int = _run.MAX_TOKENS,
    history: _receipts.HistorySettings | None = None,
    token: str | None = None,
    tls: _connect.Tls | bool | None = None,
    timeout: _values.Seconds = 30.0,
) -> _bridge.Bridge:
    """Give a loom-py agent its memory, record its steps, and assemble its prompts.

    Call it before `agent.start()` or `agent.run()`, or at any later time: what the
    agent does from then on counts. Attaching twice gives the first bridge again.

    Args:
        agent: an `Agent` of loom-py, or of a class derived from it.
        address: the server's `host:port`; default: the agent's own, which is
            LOOM_BRIDGE_ADDR unless it was given another.
        session_id: the session that gets all steps, and one run of the cognitive loop
            goes on where the one before ended. Default: each run has a session of its
            own, as loom-py's runs know nothing of each other; other steps get the
            server's default session.
        prompts: False leaves the prompts of the cognitive loop to loom-py.
        max_tokens: the budget of a prompt.
        history: how the history in a prompt is made; default: as the server does.
        token: a bearer token, where the server asks for one. Such a server has its
            native API, which this is, on another address than loom-py's, so `address`
            must be given as well; otherwise calls raise WrongAddressError.
        tls: as in `loombridge.connect`.
        timeout: seconds that a call may take, unless it is given another.

    Raises:
        TypeError: agent is no agent of loom-py; says what it lacks.
        ValueError: as `loombridge.connect`.
    """
    ctx, agent_id = _check(agent)
    found = _loop.bridge_of(ctx)
    if found is not None:
        return found
    settings = _run.Settings(session_id, _values.integer("max_tokens", max_tokens), history)
    if history is not None:
        _receipts.settings_to_wire("history", history)
    if address is None:
        own: object = getattr(getattr(agent, "client", None), "address", None)
        address = own if isinstance(own, str) and own else None

    def connecting() -> _connect.Connecting:
        return _connect.connect(
            address,
            agent_id=agent_id,
            session_id=session_id,
            token=token,
            tls=tls,
            timeout=timeout,
            # The bridge connects under a lock: who waits would wait for all before it.
            wait=0,
        )

    connecting()  # Finds wrong arguments now, where the user sees them.
    bridge = _bridge.Bridge(agent_id, connecting, settings if prompts else None)
    _extend_context(ctx, bridge)
    _follow_agent(agent, bridge)
    _loop.watch(ctx)
    return bridge


def with_bridge(
    agent: AgentT,
    *,
    address: str | None = None,
    session_id: str = "",
    prompts: bool = True,
    max_tokens: int = _run.MAX_TOKENS,
    history: _receipts.HistorySettings | None = None,
    token: str | None = None,
    tls: _connect.Tls | bool | None = None,
    timeout: _values.Seconds = 30.0,
) -> AgentT:
    """Attach an agent and return the agent itself.

    So that one line does both: `agent = with_bridge(Agent(...))`. Arguments and errors are as for
    `attach`.
    """
    attach(
        agent,
        address=address,
        session_id=session_id,
        prompts=prompts,
        max_tokens=max_tokens,
        history=history,
        token=token,
        tls=tls,
        timeout=timeout,
    )
    return agent


def _check(agent: object) -> tuple[Any, str]:
    """Return the agent's ctx and id."""
    ctx: Any = getattr(agent, "ctx", None) or getattr(agent, "_ctx", None)
    agent_id: object = getattr(agent, "agent_id", None)
    lacks = [
        what
        for what, there in (
            ("agent_id", isinstance(agent_id, str) and bool(agent_id)),
            ("ctx with an async tool()", inspect.iscoroutinefunction(getattr(ctx, "tool", None))),
            ("async start()", inspect.iscoroutinefunction(getattr(agent, "start", None))),
            ("async stop()", inspect.iscoroutinefunction(getattr(agent, "stop", None))),
        )
        if not there
    ]
    if lacks:
        raise TypeError(
            f"attach needs an Agent of loom-py; {type(agent).__name__} has no {', no '.join(lacks)}"
        )
    return ctx, str(agent_id)


def _extend_context(ctx: Any, bridge: _bridge.Bridge) -> None:
    setattr(ctx, _loop.MARK, bridge)
    ctx.memory_save = _lent(bridge, _client.Client.memory_save)
    ctx.memory_query = _lent(bridge, _client.Client.memory_query)
    ctx.tool = _recording(bridge, ctx.tool)


def _follow_agent(agent: Any, bridge: _bridge.Bridge) -> None:
    start, stop = agent.start, agent.stop

    @functools.wraps(start)
    async def opening(*args: Any, **kwargs: Any) -> Any:
        bridge.open()
        _record_own_tools(agent, bridge)
        return await start(*args, **kwargs)

    @functools.wraps(stop)
    async def closing(*args: Any, **kwargs: Any) -> Any:
        try:
            return await stop(*args, **kwargs)
        finally:
            await bridge.close()

    agent.start, agent.stop = opening, closing
    _record_own_tools(agent, bridge)
    serve = getattr(agent, "_handle_tool_call", None)
    if serve is not None:
        agent._handle_tool_call = _knowing_caller(serve)


def _lent(
    bridge: _bridge.Bridge, method: Callable[Concatenate[_client.Client, P], Awaitable[R]]
) -> Callable[P, Awaitable[R]]:
    """Return a method of the client as a function that connects when it is called."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return await method(await bridge.client(), *args, **kwargs)

    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    vars(call)["__signature__"] = signature.replace(parameters=parameters)
    return call


def _recording(bridge: _bridge.Bridge, tool: Callable[..., Awaitable[Any]]) -> Any:
    """Return `ctx.tool` with each call recorded."""

    @functools.wraps(tool)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        name: object = args[0] if args else kwargs.get("name")
        if not isinstance(name, str):
            return await tool(*args, **kwargs)
        payload: Any = kwargs.get("payload")
        arguments = _calls.snapshot(payload)
        seen = _loop.seen.get() or _loop.Seen()
        seen.called, seen.error = True, None
        if seen.reads_message(name, payload):
            return await seen.read_message(bridge, payload)
        try:
            output = await tool(*args, **kwargs)
        except BaseException as err:
            seen.error = _calls.said(err)
            seen.record(bridge, _calls.Call(name, arguments, "", _calls.why(err)))
            raise
        seen.record(bridge, _calls.Call(name, arguments, _calls.snapshot(output)))
        return output

    return recorded


def _record_own_tools(agent: Any, bridge: _bridge.Bridge) -> None:
    """Record the runs of the tools that the agent provides.

    Two agents may share one declaration, so a copy takes its place in the list.
    """
    declared: Any = getattr(agent, "_tool_decls", None)
    if not isinstance(declared, list):
        return
    tools = cast("list[Any]", declared)
    for i, tool in enumerate(tools):
        func = getattr(tool, "func", None)
        if func is not None and not hasattr(func, _loop.MARK):
            own = copy.copy(tool)
            own.func = _recording_own(bridge, str(getattr(tool, "name", "")), func)
            tools[i] = own


def _recording_own(bridge: _bridge.Bridge, name: str, func: Callable[..., Any]) -> Any:
    def record(arguments: str, result: object) -> None:
        # The agent's own call of it is recorded where it was made.
        if _caller.get() == bridge.agent_id:
            return
        try:
            bridge.record(
                _calls.Call(name, arguments, "" if result is None else json.dumps(result))
            )
        except (TypeError, ValueError, RecursionError) as err:
            # loom-py cannot answer with such a result either.
            failed(arguments, err)

    def failed(arguments: str, err: BaseException) -> None:
        if _caller.get() != bridge.agent_id:
            bridge.record(_calls.Call(name, arguments, "", _calls.why(err)))

    async def finish(arguments: str, result: Awaitable[Any]) -> Any:
        try:
            value = await result
        except BaseException as err:
            failed(arguments, err)
            raise
        record(arguments, value)
        return value

    @functools.wraps(func)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        arguments = _calls.snapshot(kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException as err:
            failed(arguments, err)
            raise
        if asyncio.iscoroutine(result):
            return finish(arguments, result)
        record(arguments, result)
        return result

    setattr(recorded, _loop.MARK, bridge)
    return recorded


def _knowing_caller(serve: Callable[..., Awaitable[Any]]) -> Any:
    """Return the handler of incoming calls with the caller's id kept while it runs."""

    @functools.wraps(serve)
    async def served(call: Any, *args: Any, **kwargs: Any) -> Any:
        headers: Any = getattr(call, "headers", None) or {}
        token = _caller.set(str(headers.get("x-agent-id", "")))
        try:
            return await serve(call, *args, **kwargs)
        finally:
            _caller.reset(token)

    return served
