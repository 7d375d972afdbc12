"""Windows that begin anew: what is kept of the one before."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from loombridge import _brief, _rpc, _session, _spelling, _values, _working
from loombridge.v1 import renewal_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot(_brief.Brief):
    """What an agent was at when its window was renewed."""

    sprint: int
    """Counts the renewals of the session, from 1. One that was undone keeps its number."""
    time: datetime
    """When that was."""
    working: _working.Working
    """Its working state, with the last 5 of its decisions. The dashboard is that of the
    window that ended."""
    handoff: str
    """The text that the renewed window begins with."""
    produced_artifacts: tuple[str, ...]
    """Names of what the sprint brought forth: results that were offloaded, and the files
    that its calls were about most."""


@dataclass(frozen=True, slots=True, repr=False)
class Renewal(_brief.Brief):
    """What `renew` did."""

    renewed: bool
    """The window began anew; False: the turn had a renewal or another level before, or the
    request was answered before."""
    snapshot: Snapshot | None
    """That of the session's last renewal; None: there was none."""


@_spelling.helpful
class Renewals(_session.InSession):
    """The windows of a session; a part of `ctx.context`."""

    async def renew(
        self,
        *,
        goal: str | None = None,
        turn_id: str | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Renewal:
        """Begin the window anew, as a prompt does by itself that would take all of it.

        What the agent is at is kept as a snapshot and stays as it is, half of the history
        leaves the prompts, and a handoff stands first. A turn has one renewal.

        Args:
            goal: as in `assemble`; default: that of the working state, or the newest
                message of the user.
            turn_id: names the turn; default: the end of the log does.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            NoRenewalError: the session's policy never renews its window.
            ContextOverflowError: the window would not fit even then.
        """
        request = pb.RenewRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            goal=_values.optional_text("goal", goal),
            turn_id=_values.optional_text("turn_id", turn_id),
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(_rpc.RENEW, request, timeout=timeout)
        found = answer.HasField("snapshot")
        return Renewal(answer.renewed, _snapshot(answer.snapshot) if found else None)

    async def snapshot(
        self,
        sprint: int | None = None,
        *,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Snapshot:
        """Return what the agent was at when its window was renewed.

        Args:
            sprint: that of the renewal, from 1; default: the last one.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            SnapshotNotFoundError: the window was not renewed that often.
        """
        request = pb.ListSnapshotsRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            sprint=0 if sprint is None else _values.count("sprint", sprint),
            last=sprint is None,
        )
        answer = await self._transport.call(_rpc.LIST_SNAPSHOTS, request, timeout=timeout)
        return _snapshot(answer.snapshots[0])

    async def snapshots(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> AsyncIterator[Snapshot]:
        """Yield all snapshots of the session, the oldest first."""
        request = pb.ListSnapshotsRequest(
            agent_id=self._agent_id, session_id=self._session(session_id)
        )
        async for page in self._transport.pages(
            _rpc.LIST_SNAPSHOTS, request, lambda answer: answer.snapshots, timeout
        ):
            for each in page:
                yield _snapshot(each)


def _snapshot(m: pb.Snapshot) -> Snapshot:
    return Snapshot(
        sprint=m.sprint,
        time=_values.moment(m.snapshot_time),
        working=_working.working(m.working),
        handoff=m.handoff,
        produced_artifacts=tuple(m.produced_artifacts),
    )
