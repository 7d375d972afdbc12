"""The audit: what is kept of each tool call."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from loombridge import _brief, _values
from loombridge.v1 import tools_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class AuditRecord(_brief.Brief):
    """What is kept of one tool call."""

    agent_id: str
    """Who called."""
    session_id: str
    """The session of the call."""
    tool: str
    """The tool's registered name, or the name that was called when there is none."""
    arguments: Mapping[str, Any]
    """The arguments, reduced as in the step, with what looks like a secret left out."""
    outcome: str
    """`ok`, `failed`, `denied`, `refused`, `replayed` or `unknown`."""
    code: str
    """Why it did not succeed; empty when it did."""
    approval: str
    """How it came to be allowed, or not; empty if no approval was needed."""
    profile: str
    """The name of what the call was allowed; empty for none."""
    capability: str
    """What the approval was about where that is not the use of the tool, such as
    `host api.github.com:443`."""
    approval_note: str
    """What the person said beside the answer; may be empty."""
    create_time: datetime
    """When the call came in."""
    duration: timedelta
    """How long it took."""
    tier: str
    """How the tool's process was confined; empty where it started none."""
    call_id: str
    """The model's own id of the call; may be empty."""
    request_id: str
    """Made the call safe to repeat; may be empty."""
    number: int
    """Number of the record in its epoch."""


def record(m: pb.AuditRecord) -> AuditRecord:
    """Return a record as users see it."""
    return AuditRecord(
        agent_id=m.agent_id,
        session_id=m.session_id,
        tool=m.tool,
        arguments=_values.from_json(m.arguments_json) or {},
        outcome=_values.enum_name(pb.AuditOutcome.DESCRIPTOR, "AUDIT_OUTCOME_", m.outcome),
        code=m.code,
        approval=m.approval,
        profile=m.profile,
        capability=m.capability,
        approval_note=m.approval_note,
        create_time=_values.moment(m.create_time),
        duration=m.duration.ToTimedelta(),
        tier=m.tier,
        call_id=m.call_id,
        request_id=m.request_id,
        number=m.number,
    )
