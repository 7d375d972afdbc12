"""Whose memory a server has."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from loombridge import _rpc, _status, _values
from loombridge.v1 import admin_pb2 as pb

ScopeKind: TypeAlias = Literal["agent", "user", "space"]
"""What owns a memory."""

_KIND = pb.ScopeKind.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """An owner and what its memory holds, by the counts that the store keeps."""

    kind: str
    """What it is: `agent`, `user` or `space`."""
    id: str
    """Its id."""
    records: int
    """How many records there are, those replaced and archived included."""
    archived: int
    """How many of them lie in the archive."""
    bytes: int
    """The approximate size of records and index in the store; on RocksDB without recent writes."""


@dataclass(frozen=True, slots=True)
class ScopePage:
    """A page of owners."""

    scopes: tuple[MemoryScope, ...]
    """The owners."""
    next_page_token: str
    """Gets the next page; empty when there is none. A page may be empty and have a next one."""


async def read(
    transport: _rpc.Transport,
    kind: ScopeKind | None,
    prefix: str,
    tenant: str,
    agent_id: str,
    page_size: int,
    page_token: str,
    timeout: _values.Seconds | None,
) -> ScopePage:
    """Ask for a page."""
    number = _values.enum_number("kind", _KIND, "SCOPE_KIND_", kind) if kind else 0
    request = pb.ListScopesRequest(
        tenant=tenant,
        kind=cast("pb.ScopeKind", number),
        prefix=prefix,
        page_size=page_size,
        page_token=page_token,
        agent_id=agent_id,
    )
    answer = await transport.call(_rpc.LIST_SCOPES, request, timeout=timeout)
    return ScopePage(tuple(map(_scope, answer.scopes)), answer.next_page_token)


def _scope(m: pb.MemoryScope) -> MemoryScope:
    field = m.owner.WhichOneof("owner") or "agent_id"
    return MemoryScope(
        kind=field.removesuffix("_id"),
        id=getattr(m.owner, field),
        records=m.records,
        archived=m.archived,
        bytes=m.bytes,
    )


class Overseer:
    """What is asked of the server itself."""

    _transport: _rpc.Transport
    agent_id: str

    async def status(self, *, timeout: _values.Seconds | None = None) -> _status.Status:
        """Return what the server is and how it stores."""
        return await _status.read(self._transport, timeout)

    async def scopes(
        self,
        *,
        kind: ScopeKind | None = None,
        prefix: str = "",
        tenant: str = "",
        page_size: int = 100,
        page_token: str = "",
        timeout: _values.Seconds | None = None,
    ) -> ScopePage:
        """Return whose memory the server has: agents, then spaces, then persons, by id.

        With authentication it is what the credential or this agent administers.

        Args:
            kind: owners of one kind alone; default: all.
            prefix: what the ids begin with.
            tenant: whose they are; default: the credential's.
            page_size: how many at most, up to 1,000.
            page_token: the `next_page_token` of the page before.
            timeout: seconds; default: the client's.

        Raises:
            OperatorRequiredError: another tenant's, without `operates`.
        """
        return await read(
            self._transport, kind, prefix, tenant, self.agent_id, page_size, page_token, timeout
        )
