"""What an agent is at: its goal, its plan, the skills that are active."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, cast

from loombridge import _brief, _values
from loombridge.v1 import prompt_pb2 as pb
from loombridge.v1 import working_pb2

PlanStatus: TypeAlias = Literal["pending", "in_progress", "done", "failed"]
"""How far an item of a plan is."""

STATUS_ENUM = pb.PlanStatus.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A step of a plan."""

    text: str
    """What to do: 1 to 1,024 bytes on one line."""
    status: PlanStatus = "pending"
    """How far it is."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan(_brief.Brief):
    """What an agent means to do."""

    items: Sequence[PlanItem] = ()
    """In order, at most 64; none is no plan."""


Urgency: TypeAlias = Literal["low", "normal", "high", "critical"]
"""How soon an event wants a decision; `high` and `critical` ask for an interrupt."""

EventDecision: TypeAlias = Literal["ignore", "defer", "replan", "decompose", "handoff", "terminate"]
"""What an agent decides about an event."""

URGENCY_ENUM = working_pb2.Urgency.DESCRIPTOR
DECISION_ENUM = working_pb2.EventDecision.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class EventSignal:
    """Something that happened outside of the agent."""

    event_id: str
    """Tells events apart: 1 to 128 bytes on one line."""
    summary: str
    """What happened: 1 to 512 bytes on one line."""
    type: str = ""
    """The sort of the event, at most 64 bytes; empty: `signal`."""
    urgency: Urgency = "normal"
    """How soon it wants a decision."""
    delta_h: float | None = None
    """A measured change from 0 to 1, in place of the urgency: up to 0.1 it is no event,
    over 0.8 critical, over 0.5 high, else low."""


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """An event that waits for a decision, or several of one type."""

    type: str
    """Theirs."""
    event_ids: tuple[str, ...]
    """Theirs; each can be acknowledged by itself."""
    summary: str
    """What happened, or how many there are."""
    urgency: Urgency
    """The highest of theirs."""
    sample: str = ""
    """The summary of the first of several."""


@dataclass(frozen=True, slots=True)
class EventVerdict:
    """A decision that was taken about an event."""

    event_id: str
    """That of the event."""
    decision: EventDecision
    """What was decided."""
    summary: str
    """What had happened."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of knowledge that the agent works with."""

    source: str
    """Where it comes from: 1 to 256 bytes on one line."""
    content: str
    """What it says: 1 to 16,384 bytes."""
    title: str = ""
    """What it is called, at most 256 bytes on one line."""
    score: float = 0.0
    """Its worth relative to others, from 0 to 1."""
    citation: str = ""
    """How it is named; empty: by its source."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What an agent sees of itself and of its prompt."""

    rho: float = 0.0
    """The share of the window that the session's last prompt took; it may be over 1."""
    token_budget: int = 0
    """How many tokens that prompt left."""
    goal_progress: str = ""
    """How far the agent is, in its own words; else `Goal: {goal}`."""
    error_count: int = 0
    """How many of the session's last 10 steps failed."""
    depth: int = 0
    """How many parents the agent has above it."""
    last_heartbeat: datetime | None = None
    """When its last heartbeat came, in UTC; None before the first."""
    interrupt_requested: bool = False
    """Whether an event waits that is high or critical."""


@dataclass(frozen=True, slots=True, repr=False)
class Working(_brief.Brief):
    """What an agent is at: it stands in the prompts of its session."""

    goal: str = ""
    """What the agent works towards, for prompts that are given none; empty: nothing."""
    plan: Plan = Plan()
    """How."""
    active_skills: tuple[str, ...] = ()
    """The skills that stand in prompts in full, in the order in which they became active."""
    scratchpad: str = ""
    """What it noted for itself."""
    pending_events: tuple[PendingEvent, ...] = ()
    """The events that wait for a decision: critical ones first, then the oldest."""
    decisions: tuple[EventVerdict, ...] = ()
    """The last 5 about events, the oldest first."""
    questions: tuple[str, ...] = ()
    """What it wants to know."""
    evidence: tuple[Evidence, ...] = ()
    """What it knows of that: at most 10 pieces."""
    citations: tuple[str, ...] = ()
    """Where from, each once: the newest 64."""
    dashboard: Dashboard = field(default=Dashboard(), compare=False)
    """What it sees of itself."""
    tokens: int = field(default=0, compare=False)
    """What prompts show of all this, without goal and skills: at most 4,000."""


def signals_to_wire(name: str, values: Sequence[EventSignal]) -> list[working_pb2.Signal]:
    """Return signals as the wire has them.

    Raises:
        TypeError: one is no EventSignal.
        ValueError: an urgency is none.
    """
    result: list[working_pb2.Signal] = []
    for i, each in enumerate(cast("Sequence[object]", values)):
        if not isinstance(each, EventSignal):
            raise TypeError(f"{name}[{i}] must be a EventSignal, not {type(each).__name__}")
        urgency = _values.enum_number(
            f"{name}[{i}].urgency", URGENCY_ENUM, "URGENCY_", each.urgency
        )
        m = working_pb2.Signal(
            event_id=_values.text(f"{name}[{i}].event_id", each.event_id),
            type=_values.text(f"{name}[{i}].type", each.type),
            summary=_values.text(f"{name}[{i}].summary", each.summary),
            urgency=cast("working_pb2.Urgency", urgency),
        )
        if each.delta_h is not None:
            m.delta_h = _values.number(f"{name}[{i}].delta_h", each.delta_h)
        result.append(m)
    return result


def acknowledgement_to_wire(event_id: object, decision: object) -> working_pb2.Acknowledgement:
    """Return a decision about an event as the wire has it."""
    number = _values.enum_number("decision", DECISION_ENUM, "EVENT_DECISION_", decision)
    return working_pb2.Acknowledgement(
        event_id=_values.text("event_id", event_id),
        decision=cast("working_pb2.EventDecision", number),
    )


def evidence_to_wire(name: str, value: object) -> working_pb2.Evidence:
    """Return a piece of knowledge as the wire has it."""
    if not isinstance(value, Evidence):
        raise TypeError(f"{name} must be an Evidence, not {type(value).__name__}")
    return working_pb2.Evidence(
        source=_values.text(f"{name}.source", value.source),
        title=_values.text(f"{name}.title", value.title),
        content=_values.text(f"{name}.content", value.content),
        score=_values.number(f"{name}.score", value.score),
        citation=_values.text(f"{name}.citation", value.citation),
    )


def plan_to_wire(name: str, value: object) -> pb.Plan:
    """Return a plan, or a list of its items or texts, as the wire has it.

    Raises:
        TypeError: it is neither.
        ValueError: the status of an item is none.
    """
    items = value.items if isinstance(value, Plan) else value
    if isinstance(items, str | bytes) or not isinstance(items, Sequence):
        raise TypeError(f"{name} must be a Plan or a list of items, not {type(value).__name__}")
    given = cast("Sequence[object]", items)
    return pb.Plan(items=[_item_to_wire(f"{name}[{i}]", each) for i, each in enumerate(given)])


def _item_to_wire(name: str, value: object) -> pb.PlanItem:
    item = PlanItem(value) if isinstance(value, str) else value
    if not isinstance(item, PlanItem):
        raise TypeError(f"{name} must be a PlanItem or a str, not {type(value).__name__}")
    result = pb.PlanItem(text=_values.text(f"{name}.text", item.text))
    number = _values.enum_number(f"{name}.status", STATUS_ENUM, "PLAN_STATUS_", item.status)
    # pyright knows enums of the wire by their names only; the number is the same.
    result.status = cast("pb.PlanStatus", number)
    return result


def working(m: pb.Working) -> Working:
    """Return what an agent is at as users see it."""
    return Working(
        goal=m.goal,
        plan=Plan(tuple(map(_item, m.plan.items))),
        active_skills=tuple(m.active_skills),
        scratchpad=m.scratchpad,
        pending_events=tuple(map(_pending, m.pending_events)),
        decisions=tuple(map(_verdict, m.decisions)),
        questions=tuple(m.questions),
        evidence=tuple(
            Evidence(e.source, e.content, e.title, e.score, e.citation) for e in m.evidence
        ),
        citations=tuple(m.citations),
        dashboard=_dashboard(m.dashboard),
        tokens=m.tokens,
    )


def _dashboard(m: working_pb2.Dashboard) -> Dashboard:
    beat = m.last_heartbeat_time
    return Dashboard(
        rho=m.rho,
        token_budget=m.token_budget,
        goal_progress=m.goal_progress,
        error_count=m.error_count,
        depth=m.depth,
        last_heartbeat=_values.moment(beat) if m.HasField("last_heartbeat_time") else None,
        interrupt_requested=m.interrupt_requested,
    )


def _pending(m: working_pb2.PendingEvent) -> PendingEvent:
    urgency = _values.enum_name(URGENCY_ENUM, "URGENCY_", m.urgency)
    return PendingEvent(m.type, tuple(m.event_ids), m.summary, cast("Urgency", urgency), m.sample)


def _verdict(m: working_pb2.Acknowledgement) -> EventVerdict:
    decision = _values.enum_name(DECISION_ENUM, "EVENT_DECISION_", m.decision)
    return EventVerdict(m.event_id, cast("EventDecision", decision), m.summary)


def _item(m: pb.PlanItem) -> PlanItem:
    status = _values.enum_name(STATUS_ENUM, "PLAN_STATUS_", m.status or pb.PLAN_STATUS_PENDING)
    return PlanItem(text=m.text, status=cast("PlanStatus", status))
