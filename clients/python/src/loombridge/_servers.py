"""Servers of the Model Context Protocol whose tools agents call."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loombridge import _brief, _rpc, _stream, _values
from loombridge.v1 import servers_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class McpServer(_brief.Brief):
    """A server of the Model Context Protocol, and how it is."""

    name: str
    """It stands in front of the names of its tools."""
    command: tuple[str, ...]
    """The program with its arguments; empty for an address, and for who does not run the
    server."""
    url: str
    """The address; empty for a program, and for who does not run the server."""
    configured: bool
    """It stands in the settings of the server, where alone it can be changed."""
    state: str
    """`connecting`, `ready` or `away`."""
    problem: str
    """Why it is away, or which of its tools are held back."""
    tools: int
    """How many tools can be called."""
    changed: tuple[str, ...]
    """Tools of which it said something else when they were seen first; held back until
    `refresh` accepts them."""
    tokens: int
    """About what all its tools would take in a prompt."""


class McpServers:
    """The servers whose tools the agents of the tenant call: `ctx.tools.servers`.

    To change them the credential must say `operates`.
    """

    def __init__(self, transport: _rpc.Transport) -> None:
        """Work over the calls of a client."""
        self._transport = transport

    @_stream.listed
    async def list(self, *, timeout: _values.Seconds | None = None) -> tuple[McpServer, ...]:
        """Return the servers, sorted by name."""
        request = pb.ListMcpServersRequest()
        found = await self._transport.items(
            _rpc.LIST_MCP_SERVERS, request, lambda answer: answer.servers, timeout
        )
        return tuple(map(_server, found))

    async def add(
        self,
        name: str,
        *,
        command: str = "",
        args: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        url: str = "",
        headers: Mapping[str, str] | None = None,
        protocol_version: str = "",
        timeout: _values.Seconds | None = None,
    ) -> McpServer:
        """Add a server, which is kept: a program, or an address.

        It is connected to in the background; `refresh` waits for it.

        Args:
            name: what stands in front of the names of its tools.
            command: the program, which runs in the sandbox.
            args: its arguments.
            env: further variables of the program.
            cwd: where it starts, relative to the workspace.
            url: the address, in the place of a command.
            headers: what goes with every request.
            protocol_version: the version to begin with; default: the newest.
            timeout: seconds for the call; default: the client's.

        Raises:
            McpServerExistsError: there is another one of that name.
            OperatorRequiredError: the credential does not say `operates`.
        """
        definition = pb.McpServerDefinition(
            name=_values.text("name", name),
            command=_values.text("command", command),
            args=list(args),
            env=dict(env or {}),
            cwd=_values.text("cwd", cwd),
            url=_values.text("url", url),
            headers=dict(headers or {}),
            protocol_version=_values.text("protocol_version", protocol_version),
        )
        request = pb.ConnectMcpServerRequest(definition=definition)
        answer = await self._transport.call(_rpc.CONNECT_MCP_SERVER, request, timeout=timeout)
        return _server(answer)

    async def remove(self, name: str, *, timeout: _values.Seconds | None = None) -> None:
        """Forget a server that was added.

        Raises:
            McpServerNotFoundError: there is no server of that name.
            McpServerConfiguredError: it stands in the settings of the server.
        """
        request = pb.RemoveMcpServerRequest(name=_values.text("name", name))
        await self._transport.call(_rpc.REMOVE_MCP_SERVER, request, timeout=timeout)

    async def refresh(
        self, name: str, *, accept_changed: bool = False, timeout: _values.Seconds | None = None
    ) -> McpServer:
        """Connect to a server anew, and return it when it is ready or away.

        Args:
            name: that of the server.
            accept_changed: say yes to the tools that are held back, see `McpServer.changed`.
            timeout: seconds for the call; default: the client's.

        Raises:
            McpServerNotFoundError: there is no server of that name.
        """
        request = pb.ConnectMcpServerRequest(
            name=_values.text("name", name), accept_changed=accept_changed
        )
        answer = await self._transport.call(_rpc.CONNECT_MCP_SERVER, request, timeout=timeout)
        return _server(answer)


def _server(m: pb.McpServer) -> McpServer:
    d = m.definition
    return McpServer(
        name=d.name,
        command=(d.command, *d.args) if d.command else (),
        url=d.url,
        configured=m.configured,
        state=pb.McpServerState.Name(m.state).removeprefix("MCP_SERVER_STATE_").lower(),
        problem=m.problem,
        tools=m.tools,
        changed=tuple(m.changed),
        tokens=m.tokens,
    )
