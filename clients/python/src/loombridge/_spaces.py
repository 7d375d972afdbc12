"""Memories that agents share: spaces, and who has access to them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from loombridge import _memory, _rpc, _stream, _values
from loombridge.v1 import sharing_pb2 as pb

Access: TypeAlias = Literal["read", "write", "admin"]
"""What agents may do with a memory; each includes those before it."""

_ACCESS = pb.Access.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """A space to which the agent has access."""

    space_id: str
    """Its name."""
    access: str
    """What the agent may do: `read`, `write` or `admin`."""
    create_time: datetime
    """When it was made, in UTC."""


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """Access that was given."""

    grantee: str
    """The id of an agent, or the beginning of ids and `*`."""
    access: str
    """What those agents may do: `read`, `write` or `admin`."""
    granted_by: str
    """The agent that gave it."""
    grant_time: datetime
    """When it was given, in UTC."""


class SpaceMemory(_memory.Memory):
    """The records of a space, made by `ctx.spaces.open`: `ctx.memory` for that space.

    Its methods take neither `user_id` nor `space_id`. Saving one and querying are
    `ctx.memory_save` and `ctx.memory_query` with `space_id`.
    """


class Spaces:
    """Spaces, and who has access to them and to the memories of persons: `ctx.spaces`.

    A space is a memory with a name that agents share. `ctx.memory_save` and
    `ctx.memory_query` save and find there with `space_id=`, and what reads, changes, lists
    and deletes records in `ctx.memory` takes it, too; `open` gives all of `ctx.memory` for it.
    """

    def __init__(self, transport: _rpc.Transport, agent_id: str, session_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id

    async def open(self, space_id: str, *, timeout: _values.Seconds | None = None) -> "SpaceMemory":
        """Return the records of a space, for all that `ctx.memory` does with the agent's.

        Raises:
            AccessDeniedError: the agent may not read it, or there is none.
        """
        transport = self._transport.within(_name(space_id))
        opened = SpaceMemory(transport, self._agent_id, self._session_id)
        await opened.stats(timeout=timeout)
        return opened

    async def create(self, space_id: str, *, timeout: _values.Seconds | None = None) -> SpaceInfo:
        """Make a space, which this agent then administers.

        Raises:
            SpaceExistsError: the agent has access to one of that name.
            AccessDeniedError: others have one of that name.
            QuotaExceededError: there are as many spaces as there may be.
        """
        request = pb.CreateSpaceRequest(agent_id=self._agent_id, space_id=_name(space_id))
        answer = await self._transport.call(_rpc.CREATE_SPACE, request, timeout=timeout)
        return _space(answer)

    async def delete(self, space_id: str, *, timeout: _values.Seconds | None = None) -> None:
        """Delete a space with all its records.

        All access ends at once; the call returns when the records are deleted. They are deleted
        even if the call is abandoned.

        Raises:
            AccessDeniedError: the agent does not administer it, or there is none.
        """
        request = pb.DeleteSpaceRequest(agent_id=self._agent_id, space_id=_name(space_id))
        await self._transport.call(_rpc.DELETE_SPACE, request, timeout=timeout)

    @_stream.listed
    async def list(self, *, timeout: _values.Seconds | None = None) -> tuple[SpaceInfo, ...]:
        """Return the spaces to which this agent has access, by name."""
        request = pb.ListSpacesRequest(agent_id=self._agent_id)
        found = await self._transport.items(
            _rpc.LIST_SPACES, request, lambda answer: answer.spaces, timeout
        )
        return tuple(map(_space, found))

    async def grant(
        self,
        space_id: str | None = None,
        *,
        to: str,
        access: Access,
        user_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> AccessGrant:
        """Give agents access to a memory, or another access than they were granted.

        Args:
            space_id: the space.
            to: the id of an agent, or the beginning of ids and `*`.
            access: what they may do.
            user_id: the person, in the place of a space.
            timeout: seconds; default: the client's.

        Raises:
            AccessDeniedError: this agent does not administer the memory.
            LastAdminError: the space would have no admin.
            QuotaExceededError: there are as many grants as there may be.
        """
        request = pb.GrantAccessRequest(
            agent_id=self._agent_id,
            grantee=_values.text("to", to),
            access=cast("pb.Access", _values.enum_number("access", _ACCESS, "ACCESS_", access)),
            **_owner(space_id, user_id),
        )
        answer = await self._transport.call(_rpc.GRANT_ACCESS, request, timeout=timeout)
        return _grant(answer)

    async def revoke(
        self,
        space_id: str | None = None,
        *,
        to: str,
        user_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> None:
        """Take a grant back: it holds from the next call on, and ends watches.

        Args:
            space_id: the space.
            to: the pattern that was granted access, letter for letter.
            user_id: the person, in the place of a space.
            timeout: seconds; default: the client's.

        Raises:
            AccessDeniedError: this agent does not administer the memory.
            GrantNotFoundError: nothing is granted to that pattern.
            LastAdminError: the space would have no admin.
        """
        request = pb.RevokeAccessRequest(
            agent_id=self._agent_id, grantee=_values.text("to", to), **_owner(space_id, user_id)
        )
        await self._transport.call(_rpc.REVOKE_ACCESS, request, timeout=timeout)

    async def grants(
        self,
        space_id: str | None = None,
        *,
        user_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[AccessGrant, ...]:
        """Return the grants of a space, or of a person's memory, by pattern.

        Raises:
            AccessDeniedError: this agent does not administer the memory.
        """
        request = pb.ListGrantsRequest(agent_id=self._agent_id, **_owner(space_id, user_id))
        found = await self._transport.items(
            _rpc.LIST_GRANTS, request, lambda answer: answer.grants, timeout
        )
        return tuple(map(_grant, found))


def _name(space_id: str) -> str:
    return _values.text("space_id", space_id)


def _owner(space_id: str | None, user_id: str | None) -> dict[str, Any]:
    if (space_id is None) == (user_id is None):
        raise TypeError("give one of space_id and user_id")
    if user_id is not None:
        return {"user_id": _values.text("user_id", user_id)}
    return {"space_id": _name(cast("str", space_id))}


def _access(number: int) -> str:
    return _values.enum_name(_ACCESS, "ACCESS_", number)


def _space(m: pb.Space) -> SpaceInfo:
    return SpaceInfo(m.space_id, _access(m.access), _values.moment(m.create_time))


def _grant(m: pb.Grant) -> AccessGrant:
    return AccessGrant(m.grantee, _access(m.access), m.granted_by, _values.moment(m.grant_time))
