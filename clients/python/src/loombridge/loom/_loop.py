"""loom-py's cognitive loop: what it runs is recorded, what it asks is assembled.

The loop is made from an agent's `ctx`, after attaching, and holds nothing of ours. So
its classes are extended, once, and ask each time whether their ctx is attached:

- `ToolExecutor.execute_tool` records what it runs without `ctx.tool`;
- `StrategyExecutor.run_react` and `run_react_stream` work, for the run, on copies whose
  model is asked with the prompt that the server assembles, and whose tool executor
  offloads nothing into files and shows the server's steps.
"""

import contextlib
import copy
import functools
import importlib
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from loombridge import _steps
from loombridge.loom import _bridge, _calls, _run, _stand_ins

MARK = "_loombridge"
"""The attribute that leads from a loom-py object to the bridge it is attached to."""

_KEEPER = "_loombridge_keeper"
# The attribute that leads from a run's tool executor to its keeper.

_MESSAGE = re.compile(r"(?:(?:workspace/)?history/)?message_\d+(?:\.\w+)?")
# What a prompt calls a folded message: it belongs to the session, of which loom.v1 has none.

_log = logging.getLogger("loombridge.loom")


@dataclass(slots=True)
class Seen:
    """What `ctx.tool` did during one call of the cognitive loop."""

    keeper: _run.Keeper | None = None
    thought: str = ""
    called: bool = False
    error: str | None = None
    step: _steps.Step | None = None

    def record(self, bridge: _bridge.Bridge, call: _calls.Call) -> None:
        """Record a call of the loop, with what the model said before it."""
        if self.keeper is None:
            bridge.record(call)
            return
        thought, self.thought = self.thought, ""
        bridge.add(self.keeper.step(call, thought, self._take))

    def _take(self, step: _steps.Step) -> None:
        self.step = step

    def reads_message(self, name: str, payload: object) -> bool:
        """Say whether a call of the loop asks for a message of the run's session."""
        if self.keeper is None or name != "fs:read_file" or not isinstance(payload, Mapping):
            return False
        path: object = cast("Mapping[str, Any]", payload).get("path")
        return isinstance(path, str) and _MESSAGE.fullmatch(path) is not None

    async def read_message(self, bridge: _bridge.Bridge, payload: Mapping[str, Any]) -> str:
        """Read a message of the run's session; the server records that by itself."""
        client = await bridge.client()
        thought, self.thought = self.thought, ""
        session_id = self.keeper.run.session_id if self.keeper else ""
        result = await client.tools.run(
            "fs:read_file", payload, session_id=session_id, thought=_calls.clean(thought)
        )
        self.step = result.step
        if result.error is not None:
            self.error = f"{_calls.PREFIX}{result.error.message}"
            raise RuntimeError(self.error)
        return json.dumps(result.output)


seen: ContextVar[Seen | None] = ContextVar("loombridge_seen", default=None)
"""Set while the loop runs a tool."""


def bridge_of(ctx: object) -> _bridge.Bridge | None:
    """Return the bridge that a ctx is attached to."""
    found = getattr(ctx, MARK, None)
    return found if isinstance(found, _bridge.Bridge) else None


def watch(ctx: object) -> None:
    """Extend the cognitive loop of the package that a ctx comes from."""
    for package in {kind.__module__.partition(".")[0] for kind in type(ctx).__mro__}:
        _extend(package, "executor", "ToolExecutor", execute_tool=_watching)
        _extend(
            package,
            "strategies",
            "StrategyExecutor",
            run_react=_keeping,
            run_react_stream=_keeping_stream,
        )


def _extend(
    package: str, module: str, name: str, **extensions: Callable[[Callable[..., Any]], Any]
) -> None:
    try:
        kind: Any = getattr(importlib.import_module(f"{package}.cognitive.{module}"), name)
        methods = {method: getattr(kind, method) for method in extensions}
    except Exception as err:
        _log.debug("%s has no cognitive loop to watch: %s", package, err)
        return
    for method, extend in extensions.items():
        if not hasattr(methods[method], MARK):
            extended = extend(methods[method])
            setattr(extended, MARK, True)
            setattr(kind, method, extended)


def _watching(execute: Callable[..., Awaitable[Any]]) -> Any:
    @functools.wraps(execute)
    async def executed(executor: Any, tool_call: Any, *args: Any, **kwargs: Any) -> Any:
        bridge = bridge_of(getattr(executor, "ctx", None))
        if bridge is None:
            return await execute(executor, tool_call, *args, **kwargs)
        arguments = _calls.snapshot(getattr(tool_call, "arguments", None))
        keeper: _run.Keeper | None = getattr(executor, _KEEPER, None)
        now = Seen(keeper, keeper.take_thought() if keeper else "")
        token = seen.set(now)
        try:
            observation = await execute(executor, tool_call, *args, **kwargs)
        finally:
            seen.reset(token)
        if _was_local(now, observation):
            now.record(bridge, _local(tool_call, arguments, observation))
        if keeper is not None:
            await _show_step(keeper, now, observation)
        return observation

    return executed


def _was_local(now: Seen, observation: Any) -> bool:
    """Say whether the loop's observation is of something that `ctx.tool` did not do.

    A call that the server refused may be run again in Python, when a person agrees.
    """
    if not now.called:
        return True
    succeeded = bool(getattr(observation, "success", False))
    return now.error is not None and (succeeded or getattr(observation, "error", None) != now.error)


def _local(tool_call: Any, arguments: str, observation: Any) -> _calls.Call:
    name = str(getattr(tool_call, "name", ""))
    if getattr(observation, "success", False):
        output = _calls.snapshot(getattr(observation, "output", None))
        return _calls.Call(name, arguments, output)
    error = str(getattr(observation, "error", None) or "failed")
    return _calls.Call(name, arguments, "", error)


async def _show_step(keeper: _run.Keeper, now: Seen, observation: Any) -> None:
    """Put the server's step in the place of the one that loom-py reduced."""
    if await keeper.is_recorded() and now.step is not None:
        # One without that field is of a loom-py that compacts nothing.
        with contextlib.suppress(AttributeError):
            observation.reduced_step = _stand_ins.shown_step(now.step)


def _keeping(run: Callable[..., Awaitable[Any]]) -> Any:
    @functools.wraps(run)
    async def kept(strategies: Any, goal: str, *args: Any, **kwargs: Any) -> Any:
        begun = _begin(strategies, goal)
        if begun is None:
            return await run(strategies, goal, *args, **kwargs)
        keeper, own = begun
        try:
            return await run(own, goal, *args, **kwargs)
        finally:
            keeper.end()

    return kept


def _keeping_stream(run: Callable[..., AsyncIterator[Any]]) -> Any:
    @functools.wraps(run)
    async def kept(strategies: Any, goal: str, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        begun = _begin(strategies, goal)
        keeper, own = begun or (None, strategies)
        try:
            stream: Any = run(own, goal, *args, **kwargs)
            async with contextlib.aclosing(stream):
                async for item in stream:
                    yield item
        finally:
            if keeper is not None:
                keeper.end()

    return kept


def _begin(strategies: Any, goal: str) -> tuple[_run.Keeper, Any] | None:
    """Return the keeper of a run that begins, and a loop of the run's own.

    The same loop may be run twice at once; only the copied parts belong to the run.
    """
    try:
        executor = strategies.tool_executor
        bridge = bridge_of(executor.ctx)
        keeper = bridge and bridge.begin(str(goal))
        if keeper is None:
            return None
        own = copy.copy(strategies)
        own.llm = _stand_ins.Model(strategies.llm, keeper)
        own.tool_executor = copy.copy(executor)
        setattr(own.tool_executor, _KEEPER, keeper)
        own.tool_executor.data_offloader = _stand_ins.NoOffloader(executor.data_offloader)
    except Exception as err:
        _log.warning("the agent keeps its own prompts: %s", err)
        return None
    return keeper, own
