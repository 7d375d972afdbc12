"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loombridge import _servers, _values
from loombridge.sync import _twin


@_twin.documented(_servers.McpServers)
class McpServers(_twin.Twin):
    """The servers whose tools the agents of the tenant call: `ctx.tools.servers`."""

    def list(self, *, timeout: _values.Seconds | None = None) -> tuple[_servers.McpServer, ...]:
        """Return the servers, sorted by name."""
        return self._await("list", timeout=timeout)

    def add(
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
    ) -> _servers.McpServer:
        """Add a server, which is kept: a program, or an address."""
        return self._await(
            "add",
            name,
            command=command,
            args=args,
            env=env,
            cwd=cwd,
            url=url,
            headers=headers,
            protocol_version=protocol_version,
            timeout=timeout,
        )

    def remove(self, name: str, *, timeout: _values.Seconds | None = None) -> None:
        """Forget a server that was added."""
        return self._await("remove", name, timeout=timeout)

    def refresh(
        self, name: str, *, accept_changed: bool = False, timeout: _values.Seconds | None = None
    ) -> _servers.McpServer:
        """Connect to a server anew, and return it when it is ready or away."""
        return self._await("refresh", name, accept_changed=accept_changed, timeout=timeout)
