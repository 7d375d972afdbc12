"""Children: agents that an agent spawns, and what they return."""

import asyncio
import uuid
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, TypeAlias

from loombridge import _brief, _errors, _rpc, _values
from loombridge.v1 import children_pb2 as pb

ChildStatus: TypeAlias = Literal["running", "succeeded", "failed"]
"""How far a child is."""

_STATUSES: dict[int, ChildStatus] = {
    pb.CHILD_STATUS_RUNNING: "running",
    pb.CHILD_STATUS_SUCCEEDED: "succeeded",
    pb.CHILD_STATUS_FAILED: "failed",
}

_WAIT = 20.0
"""Seconds that one call waits; a longer wait makes several."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What bounds a child. None is the server's default, 0 no bound."""

    steps: int | None = None
    """Steps that it may have; at first 20."""
    tokens_per_step: int | None = None
    """Tokens of a step in its prompts; at first 2,000."""
    files: int | None = None
    """Files of its workspace; at first 10."""
    bytes: int | None = None
    """What they may hold together; at first 1,000,000."""
    timeout: _values.Seconds | None = None
    """Seconds that it may take; at first 60."""


@dataclass(frozen=True, slots=True, repr=False)
class ChildAgent(_brief.Brief):
    """An agent that another one has spawned, as it was when this was asked for."""

    id: str
    """Its id."""
    parent: str
    """Who spawned it."""
    goal: str
    """What it shall do."""
    session_id: str
    """Its session."""
    depth: int
    """How many agents stand above it."""
    step_id: str
    """The step of the parent that spawned it."""
    status: ChildStatus
    """How far it is."""
    result: str
    """What it returned."""
    error: str
    """Why there is no result: its own text, `timeout` or `disconnected`."""
    result_step_id: str = ""
    """The step of the parent that has the whole result."""


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(_brief.Brief):
    """What came of several children."""

    children: tuple[ChildAgent, ...]
    """The children, in the order in which they were spawned."""
    pending: tuple[str, ...]
    """The ids of the children that have not."""
    text: str
    """What they returned, for a prompt: `[id] result`, a paragraph each; equal results
    once with all names, failures as `[id] ✗ error`. Pending ones are left out.
    At most 1 MiB: longer results are cut, and name the step that has them whole."""
    cut: bool = False
    """A result is cut in `text`, or left out of `children`; its `result_step_id` has it."""


class ChildFailedError(_errors.LoomBridgeError):
    """A child returned no result, but an error."""

    def __init__(self, child: ChildAgent) -> None:
        """Made by `Child.result`."""
        super().__init__(f"the child {child.id} failed: {child.error}")
        self.child = child


class Child:
    """A child that was spawned; made by `ctx.spawn`.

    Give its `id` and `session_id` to the process that does its work, which connects
    as this agent and ends with `await ctx.complete(...)`.
    """

    def __init__(self, family: "Family", spawned: ChildAgent) -> None:
        """Made by `ctx.spawn`."""
        self._family = family
        self.spawned: ChildAgent = spawned
        """The child as it was when it was spawned."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.spawned.id

    @property
    def session_id(self) -> str:
        """Its session."""
        return self.spawned.session_id

    @property
    def goal(self) -> str:
        """What it shall do."""
        return self.spawned.goal

    async def state(self, *, timeout: _values.Seconds | None = None) -> ChildAgent:
        """Return the child as it is now."""
        outcome = await self._family.gather([self.id], wait=0, timeout=timeout)
        return outcome.children[0]

    async def result(self, *, wait: _values.Seconds | None = None) -> str:
        """Wait until the child has returned; return its result.

        Args:
            wait: how many seconds at most; default: until it has.

        Raises:
            ChildFailedError: it failed, took too long, or was lost.
            TimeoutError: it has not returned in that time.
        """
        outcome = await self._family.gather([self.id], wait=wait)
        if outcome.pending:
            raise TimeoutError(f"the child {self.id} has not returned")
        child = outcome.children[0]
        if child.status == "failed":
            raise ChildFailedError(child)
        return child.result

    async def stop(
        self, error: str = "stopped by its parent", *, timeout: _values.Seconds | None = None
    ) -> None:
        """End the child as failed, unless it has returned."""
        try:
            await self._family.complete(self.id, "", error=error, timeout=timeout)
        except _errors.AgentEndedError:
            return


class Spawning:
    """A child that is being spawned: `await` it, or write `async with` to have it stopped.

    Leaving the block of `async with` stops a child that has not returned.
    """

    def __init__(
        self, family: "Family", request: pb.SpawnAgentRequest, timeout: _values.Seconds | None
    ) -> None:
        """Made by `ctx.spawn`."""
        self._family = family
        self._request = request
        self._timeout = timeout
        self._child: Child | None = None

    def __await__(self) -> Generator[object, None, Child]:
        """Spawn the child and return it."""
        return self._family.spawn(self._request, self._timeout).__await__()

    async def __aenter__(self) -> Child:
        """Spawn the child and return it."""
        self._child = await self
        return self._child

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the child, unless it has returned."""
        if self._child is not None:
            await self._child.stop()


class Family:
    """The calls about children."""

    def __init__(self, transport: _rpc.Transport, agent_id: str, session_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id

    def spawning(
        self,
        child_id: str,
        *,
        goal: str,
        session_id: str | None,
        tools: Iterable[str] | None,
        profile: str | None,
        limits: ChildLimits | None,
        grants: Iterable[str],
        fork: bool | str,
        request_id: str | None,
        timeout: _values.Seconds | None,
    ) -> Spawning:
        """Return a child to be spawned. See `ctx.spawn`."""
        names = None if tools is None else _values.texts("tools", tools)
        request = pb.SpawnAgentRequest(
            agent_id=self._agent_id,
            session_id=self._session_id,
            child_id=_values.text("child_id", child_id),
            goal=_values.text("goal", goal),
            child_session_id=_values.optional_text("session_id", session_id),
            tools=names or (),
            without_tools=names == [],
            profile=_values.optional_text("profile", profile),
            grants=_values.texts("grants", grants),
            # A fresh id makes the call safe to repeat.
            request_id=uuid.uuid4().hex
            if request_id is None
            else _values.text("request_id", request_id),
        )
        if fork is not False:
            request.fork_from = "" if fork is True else _values.text("fork", fork)
        if limits is not None:
            for name in ("steps", "tokens_per_step", "files", "bytes"):
                value = getattr(limits, name)
                if value is not None:
                    setattr(request.limits, name, _values.long_integer(f"limits.{name}", value))
            if limits.timeout is not None:
                request.limits.timeout.CopyFrom(_values.duration("limits.timeout", limits.timeout))
        return Spawning(self, request, timeout)

    async def spawn(self, request: pb.SpawnAgentRequest, timeout: _values.Seconds | None) -> Child:
        """Spawn a child."""
        answer = await self._transport.call(
            _rpc.SPAWN_AGENT, request, timeout=timeout, repeatable=True
        )
        return Child(self, _child(answer))

    async def complete(
        self,
        child_id: str,
        conclusion: str,
        *,
        error: str | None = None,
        grants: Iterable[str] = (),
        timeout: _values.Seconds | None = None,
    ) -> ChildAgent:
        """End a child. See `ctx.complete`."""
        request = pb.CompleteTaskRequest(
            agent_id=self._agent_id,
            task_id=child_id,
            conclusion=_values.text("conclusion", conclusion),
            failed=error is not None,
            error=_values.optional_text("error", error),
            grants=_values.texts("grants", grants),
        )
        answer = await self._transport.call(
            _rpc.COMPLETE_TASK, request, timeout=timeout, repeatable=True
        )
        return _child(answer.child)

    async def gather(
        self,
        children: Iterable[Child | str],
        *,
        wait: _values.Seconds | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Outcome:
        """Wait for children. See `ctx.gather`."""
        ids = [
            each.id if isinstance(each, Child) else _values.text("child", each) for each in children
        ]
        clock = asyncio.get_running_loop().time
        limit = self._transport.timeout
        if timeout is not None:
            limit = _values.seconds("timeout", timeout)
        end = None if wait is None else clock() + _values.wait("wait", wait)
        while True:
            left = _WAIT if end is None else min(max(end - clock(), 0.0), _WAIT)
            request = pb.WaitAgentsRequest(agent_id=self._agent_id, child_ids=ids)
            if not ids:
                request.session_id = self._session_id
            if left > 0:
                request.timeout.CopyFrom(_values.duration("wait", left))
            limit = (
                self._transport.timeout if timeout is None else _values.seconds("timeout", timeout)
            )
            answer = await self._transport.call(_rpc.WAIT_AGENTS, request, timeout=limit + left)
            if not answer.pending or (end is not None and clock() >= end):
                return Outcome(
                    tuple(map(_child, answer.children)),
                    tuple(answer.pending),
                    answer.outcome,
                    answer.cut,
                )


def _child(m: pb.ChildAgent) -> ChildAgent:
    return ChildAgent(
        id=m.child_id,
        parent=m.parent_id,
        goal=m.goal,
        session_id=m.session_id,
        depth=m.depth,
        step_id=m.step_id,
        status=_STATUSES.get(m.status, "running"),
        result=m.result,
        error=m.error,
        result_step_id=m.result_step_id,
    )
