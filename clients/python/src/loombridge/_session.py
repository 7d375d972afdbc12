"""The session that calls are made in."""

from loombridge import _rpc, _values


class InSession:
    """Calls of one agent, in its session unless they are given another."""

    def __init__(self, transport: _rpc.Transport, agent_id: str, session_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id

    def _session(self, session_id: str | None) -> str:
        return self._session_id if session_id is None else _values.text("session_id", session_id)
