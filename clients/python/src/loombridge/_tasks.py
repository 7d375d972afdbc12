"""Tasks: what an agent took up, the first tier of its memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from loombridge import _brief, _values
from loombridge.v1 import children_pb2
from loombridge.v1 import context_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class Task(_brief.Brief):
    """A unit of work: a step of a plan, a tool call, a thought.

    The last fifty of a session are the first tier of memory; the important ones
    move up, and a model finds them with the tools `query_l1_memory` to
    `query_l4_memory`. Besides `record_step(task=…)`, an event on the topic
    `execute` or `node.…` adds one. Of a task that was recorded with a step, prompts show
    the step: what was thought before it is the step's `thought`.
    """

    action: str
    """`execute`, `node.thinking`, `node.tool_call` or a word of your own."""
    task_id: str = ""
    """Names it within its agent; default: made by the server."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it was given, a JSON object of at most 64 KiB."""
    result: str = ""
    """What came of it, at most 64 KiB; empty while it is pending."""
    source_agent: str = ""
    """Who asked for it; default: the agent."""
    target_agent: str = ""
    """Who shall do it."""
    parent_task_id: str = ""
    """The task that it is a part of."""
    tags: Sequence[str] = ()
    """Labels: at most 64, each 1 to 128 bytes."""
    importance: float | None = None
    """From 0 to 1; over 0.6 it is kept beyond the last fifty. Default: by action."""
    create_time: datetime | None = None
    """When it was taken up; default: when the server got it."""


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task as the log keeps it, and where it is."""

    task: Task
    """The task."""
    session_id: str
    """The session it belongs to."""
    tiers: tuple[int, ...]
    """The tiers that have it: 1 while it is among the last of its session; 2, 3 or 4 once
    it is a record of memory."""


@dataclass(frozen=True, slots=True)
class TaskFold:
    """What became of the steps of a task that is done."""

    batch: int
    """The number of the batch, for `undo`; 0 where nothing was folded."""
    refs: tuple[str, ...]
    """Name the steps and messages that were folded, runs as `step_002..step_006`."""
    before_tokens: int
    """What they took in a prompt."""
    after_tokens: int
    """What stands for them."""
    problem: str
    """Why nothing was folded; empty where something was."""


def task_fold(m: children_pb2.CompleteTaskResponse) -> TaskFold:
    """Return the result of completing a task."""
    fold = m.fold
    return TaskFold(fold.number, tuple(fold.refs), fold.before_tokens, fold.after_tokens, m.problem)


def found_task(m: pb.ConversationEntry) -> FoundTask:
    """Return the answer to a look for a task as users see it."""
    return FoundTask(
        task=task(m.task),
        session_id=m.session_id,
        tiers=tuple(m.tiers),
    )


def task(m: pb.Task) -> Task:
    """Return a task as users see it."""
    return Task(
        action=m.action,
        task_id=m.task_id,
        parameters=_values.from_json(m.parameters_json) or {},
        result=m.result,
        source_agent=m.source_agent,
        target_agent=m.target_agent,
        parent_task_id=m.parent_task_id,
        tags=tuple(m.tags),
        importance=m.importance,
        create_time=_values.moment(m.create_time),
    )


def task_message(task: Task) -> pb.Task:
    """Return a task as the wire has it."""
    message = pb.Task(
        action=_values.text("action", task.action),
        task_id=_values.text("task_id", task.task_id),
        parameters_json=_values.json_object("parameters", task.parameters),
        result=_values.text("result", task.result),
        source_agent=_values.text("source_agent", task.source_agent),
        target_agent=_values.text("target_agent", task.target_agent),
        parent_task_id=_values.text("parent_task_id", task.parent_task_id),
        tags=_values.texts("tags", task.tags),
    )
    if task.importance is not None:
        message.importance = _values.number("importance", task.importance)
    if task.create_time is not None:
        message.create_time.CopyFrom(_values.timestamp("create_time", task.create_time))
    return message
