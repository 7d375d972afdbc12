"""What the running server is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from loombridge import _rpc, _values
from loombridge.v1 import admin_pb2


@dataclass(frozen=True, slots=True)
class Bridge:
    """A server on a store that several have together."""

    name: str
    """What its operator calls it."""
    address: str
    """Where the others reach it."""
    answering: bool
    """It is the one that answered."""
    workspace: str = ""
    """The folder that its tools work in; empty where all have one folder."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What a server deletes for its age, and has deleted since it was started."""

    deleted_records: int
    """Records that went so."""
    deleted_sessions: int
    """Sessions that went so."""
    sweep_time: datetime | None
    """When the last look ended that left nothing behind, in UTC; None: there was none."""
    failing: bool
    """The last one could not delete something; the server's log says why."""


@dataclass(frozen=True, slots=True)
class Status:
    """The running server."""

    version: str
    """Its version."""
    start_time: datetime
    """When it began to serve, in UTC."""
    durability: str
    """`sync`, `wal` or `none`: what an acknowledged write has survived."""
    store_format: int
    """Version of its on-disk format."""
    authentication: bool
    """Callers need a credential."""
    tools: int
    """How many tools are registered."""
    writable: bool = True
    """Whether writes can succeed."""
    problem: str = ""
    """Why they can't; empty while they can."""
    damage: tuple[str, ...] = ()
    """What of its store was found damaged, a part each."""
    scrub_time: datetime | None = None
    """When all of its store had last been read back; None since it was started."""
    tool_outcomes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The calls of tools, by all agents, since it was started, by how they ended: `ok`,
    `refused`, or the code of the failure."""
    bridges: tuple[Bridge, ...] = ()
    """The servers that have its store together; none where it has it for itself."""
    redacted: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many secrets were taken out, by each pattern that the server looks for."""
    retention: Retention | None = None
    """Deletions by age; None: the server's version does not report them."""

    @property
    def tool_calls(self) -> int:
        """Calls of tools, by all agents, since it was started."""
        return sum(self.tool_outcomes.values())

    @property
    def failed_tool_calls(self) -> int:
        """Those among them that did not succeed."""
        return self.tool_calls - self.tool_outcomes.get("ok", 0)


async def read(transport: _rpc.Transport, timeout: _values.Seconds | None) -> Status:
    """Ask the server what it is and how it stores."""
    m = await transport.call(_rpc.GET_STATUS, admin_pb2.GetStatusRequest(), timeout=timeout)
    return Status(
        version=m.version,
        start_time=_values.moment(m.start_time),
        durability=m.durability,
        store_format=m.store_format,
        authentication=m.authentication,
        tools=m.tools,
        writable=not m.store.problem,
        problem=m.store.problem,
        damage=tuple(m.store.damage),
        scrub_time=_values.moment(m.store.scrub_time) if m.store.HasField("scrub_time") else None,
        tool_outcomes=dict(m.tool_calls),
        redacted=dict(m.redacted),
        retention=_retention(m.retention) if m.HasField("retention") else None,
        bridges=tuple(
            Bridge(
                name=b.name,
                address=b.address,
                answering=b.answering,
                workspace=b.workspace,
            )
            for b in m.bridges
        ),
    )


def _retention(m: admin_pb2.RetentionStatus) -> Retention:
    return Retention(
        deleted_records=m.deleted_records,
        deleted_sessions=m.deleted_sessions,
        sweep_time=_values.moment(m.sweep_time) if m.HasField("sweep_time") else None,
        failing=m.failing,
    )
