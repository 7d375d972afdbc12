"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from typing import Literal

from loombridge import _erasure, _spelling, _values
from loombridge.sync import _twin
from loombridge.sync._face.held import Erasing


@_spelling.helpful
@_twin.documented(_erasure.Admin)
class Admin(_twin.Twin, _spelling.Helpful):
    """What is for who runs the server; `ctx.admin`."""

    def erase(
        self,
        *,
        agent_id: str = "",
        user_id: str = "",
        session_id: str = "",
        step_id: str = "",
        filter: str = "",
        shared: Literal["authorship", "records"] | None = None,
        tenant: str = "",
        dry_run: bool = False,
        timeout: _values.Seconds = _erasure.ERASE_TIMEOUT,
    ) -> _erasure.Erased:
        """Erase all that the server has of an agent or a person: `await` it for an `Erased`."""
        return self._await(
            "erase",
            agent_id=agent_id,
            user_id=user_id,
            session_id=session_id,
            step_id=step_id,
            filter=filter,
            shared=shared,
            tenant=tenant,
            dry_run=dry_run,
            timeout=timeout,
        )

    def erase_iter(
        self,
        *,
        agent_id: str = "",
        user_id: str = "",
        session_id: str = "",
        step_id: str = "",
        filter: str = "",
        shared: Literal["authorship", "records"] | None = None,
        tenant: str = "",
        dry_run: bool = False,
        timeout: _values.Seconds = _erasure.ERASE_TIMEOUT,
    ) -> Erasing:
        """Erase all that the server has of an agent or a person: `await` it for an `Erased`."""
        return Erasing(
            self._home,
            self._run(
                "erase",
                agent_id=agent_id,
                user_id=user_id,
                session_id=session_id,
                step_id=step_id,
                filter=filter,
                shared=shared,
                tenant=tenant,
                dry_run=dry_run,
                timeout=timeout,
            ),
        )
