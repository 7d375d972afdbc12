"""What an agent is at: its goal, its plan, the skills that are active."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from loombridge import _brief, _values
from loombridge.v1 import prompt_pb2 as pb

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


@dataclass(frozen=True, slots=True, repr=False)
class Working(_brief.Brief):
    """What an agent is at: it stands in the prompts of its session."""

    goal: str = ""
    """What the agent works towards, for prompts that are given none; empty: nothing."""
    plan: Plan = Plan()
    """How."""
    active_skills: tuple[str, ...] = ()
    """The skills that stand in prompts in full, in the order in which they became active."""


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
    )


def _item(m: pb.PlanItem) -> PlanItem:
    status = _values.enum_name(STATUS_ENUM, "PLAN_STATUS_", m.status or pb.PLAN_STATUS_PENDING)
    return PlanItem(text=m.text, status=cast("PlanStatus", status))
