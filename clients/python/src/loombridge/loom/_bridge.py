"""The connection behind an attached agent."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from loombridge import _client, _connect, _errors, _values
from loombridge.loom import _calls, _entries, _recorder, _run

FLUSH_SECONDS = 10.0
"""Seconds that `flush` waits by default."""

CLOSE_SECONDS = 2.0
"""Seconds that `agent.stop()` may wait for steps to be recorded: enough for hundreds, and
no long wait for a server that is gone."""

RUNS = 100
"""Runs that a bridge remembers."""

_log = logging.getLogger("loombridge.loom")


class Bridge:
    """What an attached agent has on Loom Bridge; returned by `attach`.

    It connects when first needed, finds a server again that was restarted, and closes
    with the agent. An agent that is started again opens it again. It belongs to the
    event loop of the agent.
    """

    agent_id: str
    """The agent it acts for."""

    def __init__(
        self,
        agent_id: str,
        connecting: Callable[[], _connect.Connecting],
        prompts: _run.Settings | None,
    ) -> None:
        """Made by `attach`; without `prompts`, loom-py makes its own."""
        self.agent_id = agent_id
        self._prompts = prompts
        self._runs: deque[_run.Run] = deque(maxlen=RUNS)
        self._connecting = connecting
        self._lock = asyncio.Lock()
        # Guarded by the lock, so that calls made at once open one connection.
        self._client: _client.Client | None = None
        self._closed = False
        self._recorder = _recorder.Recorder(self.client)

    @property
    def lost(self) -> int:
        """How many calls were not recorded; the log says why."""
        return self._recorder.lost

    @property
    def runs(self) -> tuple[_run.Run, ...]:
        """The last runs of the cognitive loop: their sessions, and what they cost."""
        return tuple(self._runs)

    async def client(self) -> _client.Client:
        """Return the connected client: prompts, steps, blobs, events of this agent.

        Raises:
            ServerUnreachableError: no server answers.
            ClientClosedError: the agent was stopped.
        """
        async with self._lock:
            if self._closed:
                raise _errors.ClientClosedError("the agent was stopped")
            if self._client is None:
                self._client = await self._connecting()
            return self._client

    async def flush(self, timeout: _values.Seconds = FLUSH_SECONDS) -> bool:
        """Wait until every call so far is recorded, or given up; False: not in time."""
        return await self._recorder.flush(_values.seconds("timeout", timeout))

    async def close(self) -> None:
        """Record what waits and close; `agent.stop()` does it. Twice is fine."""
        try:
            await self._recorder.close(CLOSE_SECONDS)
        finally:
            self._closed = True
            async with self._lock:
                client, self._client = self._client, None
            if client is not None:
                await client.close()

    def open(self) -> None:
        """Take it up again after `close`; `agent.start()` does it."""
        self._closed = False

    def begin(self, goal: str) -> _run.Keeper | None:
        """Begin a run of the cognitive loop; None when loom-py makes its prompts."""
        if self._prompts is None or self._closed:
            return None
        keeper = _run.Keeper(goal, self._prompts, self.client, self.add)
        self._runs.append(keeper.run)
        return keeper

    def record(self, call: _calls.Call) -> None:
        """Take a call to be recorded; never raises and never waits."""
        self.add(_entries.Step(call=call))

    def add(self, entry: _entries.Entry) -> None:
        """Take something to be recorded; never raises and never waits."""
        try:
            if not self._closed:
                self._recorder.add(entry)
                return
            why = "the agent was stopped"
        except Exception as err:
            why = _calls.said(err)
        if entry.matters:
            _log.warning("%s is not recorded: %s", entry.what, why)
        entry.over(False)
