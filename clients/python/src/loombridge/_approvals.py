"""Approvals: calls that wait for a person, and answers that are remembered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loombridge import _brief, _values
from loombridge.v1 import tools_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class ApprovalPart(_brief.Brief):
    """Something that a call will use, whole."""

    name: str
    """What it is, such as `command` or `file scripts/build.sh`."""
    text: str
    """All of it; a character without a shape is written as `<U+202E>`."""
    sha256: str
    """The hash of its bytes as they are, in hex."""
    bytes: int
    """How many these are."""


@dataclass(frozen=True, slots=True, repr=False)
class PendingApproval(_brief.Brief):
    """A call that waits for a person."""

    id: str
    """Names it for `approve`."""
    agent_id: str
    """Who called."""
    session_id: str
    """The session of the call."""
    call_id: str
    """The model's own id of the call; may be empty."""
    tool: str
    """The tool that was called."""
    kind: str
    """What it needs: `tool`, to use the tool; `host`, to reach a host; `read` or `write`,
    to read or change a place outside of the workspace."""
    name: str
    """The name of the tool, a host with its port, or an absolute path, which stands for
    everything below it."""
    arguments: Mapping[str, Any]
    """The arguments as the tool gets them, whole; of what the server knows as a secret a mark
    stands there."""
    expire_time: datetime
    """When it is denied without an answer."""
    parts: tuple[ApprovalPart, ...]
    """What else the call will use, whole: how and where it runs, the command, its input, the
    files that it starts."""
    digest: str
    """SHA-256, in hex, of arguments and parts: an approved call runs exactly these bytes or not at
    all."""
    rule: str
    """What a decision for more than this call would be remembered as."""
    also_allows: tuple[str, ...]
    """Three examples of what else that rule would allow."""


@dataclass(frozen=True, slots=True, repr=False)
class RememberedApproval(_brief.Brief):
    """An answer that also holds for later calls."""

    id: str
    """Names it for `revoke`."""
    kind: str
    """What was allowed: `tool`, `host`, `read` or `write`."""
    name: str
    """The name of the tool, the host or the place."""
    decision: str
    """For whom: `session`, `agent` or `always`."""
    agent_id: str
    """The agent that it is for; empty for all."""
    session_id: str
    """The session that it is for; empty for all."""
    approver_id: str
    """The agent id under which it was given."""
    create_time: datetime
    """When it was given."""


def pending(m: pb.PendingApproval) -> PendingApproval:
    """Return a call that waits as users see it."""
    return PendingApproval(
        id=m.id,
        agent_id=m.agent_id,
        session_id=m.session_id,
        call_id=m.call_id,
        tool=m.tool,
        kind=m.capability.kind,
        name=m.capability.name,
        arguments=_values.from_json(m.arguments_json) or {},
        expire_time=_values.moment(m.expire_time),
        parts=tuple(
            ApprovalPart(name=p.name, text=p.text, sha256=p.sha256, bytes=p.bytes) for p in m.parts
        ),
        digest=m.digest,
        rule=m.rule,
        also_allows=tuple(m.also_allows),
    )


def remembered(m: pb.RememberedApproval) -> RememberedApproval:
    """Return a remembered answer as users see it."""
    return RememberedApproval(
        id=m.id,
        kind=m.capability.kind,
        name=m.capability.name,
        decision=_values.enum_name(
            pb.ApprovalDecision.DESCRIPTOR, "APPROVAL_DECISION_", m.decision
        ),
        agent_id=m.agent_id,
        session_id=m.session_id,
        approver_id=m.approver_id,
        create_time=_values.moment(m.create_time),
    )
