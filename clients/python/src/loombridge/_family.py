"""What an agent does with the agents that it spawns, and with the one that spawned it."""

from collections.abc import Iterable

from loombridge import _children, _values


class Spawner:
    """The verbs of spawning and returning."""

    _family: _children.Family
    _agent_name: str

    def spawn(
        self,
        child_id: str,
        *,
        goal: str,
        session_id: str | None = None,
        tools: Iterable[str] | None = None,
        profile: str | None = None,
        limits: _children.ChildLimits | None = None,
        grants: Iterable[str] = (),
        fork: bool | str = False,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _children.Spawning:
        """Spawn a child: an agent with its own goal, session and workspace.

        `async with ctx.spawn("researcher-1", goal="…") as child:` stops a child that has
        not returned when the block is left; `child = await ctx.spawn(...)` leaves it to
        its limits. The child gets nothing of this agent's but its goal and the grants.

        Args:
            child_id: its id: that of no other agent, and of no entry of the workspace.
            goal: what it shall do.
            session_id: its session; default: a new one.
            tools: the tools that it may call; default: this agent's.
            profile: name of a profile of the server's that also bounds its calls.
            limits: what bounds it; default: 20 steps, 60 seconds and so on.
            grants: names of blobs of this agent's that it may read, by their refs.
            fork: let its prompts begin, byte for byte, as the last one of this session did,
                or as that with a `prompt_id`, so that the provider's cache serves them: the
                child knows what this agent knew then, and has its tools. Not with `tools`.
            request_id: makes the call safe to repeat; default: made here.
            timeout: seconds; default: the client's.

        Raises:
            AgentExistsError: the id is in use.
            MaxDepthExceededError: this agent is too deep to have children.
            AgentLimitExceededError: it has too many at once, or no step left.
            PromptGoneError: the prompt to fork from can't be made again.
        """
        return self._family.spawning(
            child_id,
            goal=goal,
            session_id=session_id,
            tools=tools,
            profile=profile,
            limits=limits,
            grants=grants,
            fork=fork,
            request_id=request_id,
            timeout=timeout,
        )

    async def gather(
        self,
        *children: _children.Child | str,
        wait: _values.Seconds | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _children.Outcome:
        """Wait until children have returned, or failed; return what came of them.

        Args:
            children: children or their ids; default: all of this client's session.
            wait: how many seconds to wait at most; default: until all have.
            timeout: seconds that a call may take beyond that; default: the client's.

        Raises:
            AgentNotFoundError: one of them is no child of this agent.
        """
        return await self._family.gather(children, wait=wait, timeout=timeout)

    async def complete(
        self,
        result: str,
        *,
        grants: Iterable[str] = (),
        timeout: _values.Seconds | None = None,
    ) -> _children.ChildAgent:
        """Return the result of this agent, which another one has spawned.

        The same result again changes nothing. Nothing else can be done afterwards.

        Args:
            result: what came of its goal, at most 256 KiB.
            grants: names of blobs of this agent's that its parent may read, by their refs.
            timeout: seconds; default: the client's.

        Raises:
            AgentEndedError: it has another result, such as `timeout`.
        """
        return await self._family.complete(self._agent_name, result, grants=grants, timeout=timeout)

    async def fail(
        self, error: str, *, timeout: _values.Seconds | None = None
    ) -> _children.ChildAgent:
        """End this agent, which another one has spawned, without a result."""
        return await self._family.complete(self._agent_name, "", error=error, timeout=timeout)
