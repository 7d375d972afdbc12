"""Which of the servers on one store has an agent's workspace."""

from dataclasses import dataclass

from loombridge import _rpc, _values
from loombridge.v1 import admin_pb2 as pb


@dataclass(frozen=True, slots=True)
class WorkspaceOwner:
    """The server that has a workspace."""

    server: str
    """What the server was called when it was given the workspace (`--bridge-name`)."""
    address: str
    """Where the other servers reached it then."""
    folder: str
    """The folder that its tools work in: its name or that of its machine, a colon and the
    path."""
    away: bool
    """No server that is registered has that folder: calls that touch it raise
    WorkspaceAwayError."""
    answering: bool
    """It is the server that answered."""


async def read(
    transport: _rpc.Transport, agent_id: str, timeout: _values.Seconds | None
) -> WorkspaceOwner | None:
    """Ask who has the workspace of an agent."""
    request = pb.GetStatusRequest(agent_id=agent_id)
    answer = await transport.call(_rpc.GET_STATUS, request, timeout=timeout)
    return _owner(answer.workspace) if answer.HasField("workspace") else None


async def move(
    transport: _rpc.Transport, agent_id: str, to: str, timeout: _values.Seconds | None
) -> WorkspaceOwner:
    """Give the workspace of an agent to a server."""
    request = pb.MoveWorkspaceRequest(agent_id=agent_id, server=_values.text("to", to))
    answer = await transport.call(_rpc.MOVE_WORKSPACE, request, timeout=timeout)
    return _owner(answer)


def _owner(m: pb.BridgeStatus) -> WorkspaceOwner:
    return WorkspaceOwner(
        server=m.name,
        address=m.address,
        folder=m.workspace,
        away=m.away,
        answering=m.answering,
    )
