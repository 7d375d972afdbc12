"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from loombridge import _spaces, _values
from loombridge.sync import _twin
from loombridge.sync._face.spacememory import SpaceMemory


@_twin.documented(_spaces.Spaces)
class Spaces(_twin.Twin):
    """Spaces, and who has access to them and to the memories of persons: `ctx.spaces`."""

    def open(self, space_id: str, *, timeout: _values.Seconds | None = None) -> SpaceMemory:
        """Return the records of a space, for all that `ctx.memory` does with the agent's."""
        return SpaceMemory(self._home, self._await("open", space_id, timeout=timeout))

    def create(self, space_id: str, *, timeout: _values.Seconds | None = None) -> _spaces.SpaceInfo:
        """Make a space, which this agent then administers."""
        return self._await("create", space_id, timeout=timeout)

    def delete(self, space_id: str, *, timeout: _values.Seconds | None = None) -> None:
        """Delete a space with all its records."""
        return self._await("delete", space_id, timeout=timeout)

    def list(self, *, timeout: _values.Seconds | None = None) -> tuple[_spaces.SpaceInfo, ...]:
        """Return the spaces to which this agent has access, by name."""
        return self._await("list", timeout=timeout)

    def grant(
        self,
        space_id: str | None = None,
        *,
        to: str,
        access: _spaces.Access,
        user_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _spaces.AccessGrant:
        """Give agents access to a memory, or another access than they were granted."""
        return self._await(
            "grant", space_id, to=to, access=access, user_id=user_id, timeout=timeout
        )

    def revoke(
        self,
        space_id: str | None = None,
        *,
        to: str,
        user_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> None:
        """Take a grant back: it holds from the next call on, and ends watches."""
        return self._await("revoke", space_id, to=to, user_id=user_id, timeout=timeout)

    def grants(
        self,
        space_id: str | None = None,
        *,
        user_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[_spaces.AccessGrant, ...]:
        """Return the grants of a space, or of a person's memory, by pattern."""
        return self._await("grants", space_id, user_id=user_id, timeout=timeout)
