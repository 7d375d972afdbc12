"""Direct messages: what agents say to each other."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from google.protobuf import json_format

from loombridge import _brief, _rpc, _stream, _values
from loombridge.v1 import messages_pb2 as pb


@dataclass(frozen=True, slots=True)
class SentMessage:
    """Proof that a message is kept."""

    task_id: str
    """Names it."""
    warning: str
    """What the sender should do better; mostly empty."""


@dataclass(frozen=True, slots=True, repr=False)
class DirectMessage(_brief.Brief):
    """What one agent says to another."""

    task_id: str
    """Names it within its target."""
    source: str
    """The agent that sent it."""
    target: str
    """The agent that it is for."""
    content: str
    """What it says."""
    priority: float
    """From 0 to 1; higher ones come first."""
    session_id: str
    """The session that it belongs to; empty for none."""
    parent_task_id: str
    """The task that it belongs to, or empty."""
    node: str
    """A second name under which the target finds it, or empty."""
    role: str
    """The role that it has in prompts; empty for that of a marked message."""
    metadata: Mapping[str, Any]
    """The sender's own fields."""
    time: datetime
    """When the server took it, in UTC."""
    ttl: timedelta | None
    """How long it lives; None is for ever."""


class Messages:
    """The direct messages for this agent; reached as `ctx.messages`. Send by `ctx.send`.

    An attached agent gets an event for each on the topic `agent.<its id>.messages`; prompts show
    them before the tasks.
    """

    def __init__(self, transport: _rpc.Transport, agent_id: str, session_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id

    async def send(
        self,
        target: str,
        content: str,
        *,
        priority: float | None = None,
        ttl: _values.Seconds | None = None,
        session_id: str | None = None,
        parent_task_id: str | None = None,
        role: str | None = None,
        node: str | None = None,
        metadata: Mapping[str, _values.JsonValue] | None = None,
        task_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> SentMessage:
        """Say something to one agent, attached or not. See `ctx.send`."""
        message = pb.DirectMessage(
            target_agent_id=_values.text("target", target),
            target_node_id=_values.optional_text("node", node),
            content=_values.text("content", content),
            context_role=_values.optional_text("role", role),
            priority=None if priority is None else _values.number("priority", priority),
            ttl=None if ttl is None else _values.duration("ttl", ttl),
            parent_task_id=_values.optional_text("parent_task_id", parent_task_id),
            session_id=self._session_id
            if session_id is None
            else _values.text("session_id", session_id),
            # A fresh id makes the call safe to repeat.
            task_id=f"task-{uuid.uuid4().hex}:event:node.message"
            if task_id is None
            else _values.text("task_id", task_id),
        )
        if metadata is not None:
            json_format.Parse(_values.json_object("metadata", metadata), message.metadata)
        request = pb.SendMessageRequest(agent_id=self._agent_id, message=message)
        answer = await self._transport.call(
            _rpc.SEND_MESSAGE, request, timeout=timeout, repeatable=True
        )
        return SentMessage(answer.task_id, answer.warning)

    @_stream.listed
    async def list(
        self,
        *,
        session_id: str | None = None,
        parent_task_id: str | None = None,
        limit: int | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[DirectMessage, ...]:
        """Return the live messages: by priority, the highest first, then the newest.

        Args:
            session_id: only messages of this session; default: of all.
            parent_task_id: only messages of a task.
            limit: how many at most; default 50.
            timeout: seconds for each page; default: the client's.
        """
        most = 50 if limit is None else _values.count("limit", limit)
        request = pb.ListMessagesRequest(
            agent_id=self._agent_id,
            session_id=_values.optional_text("session_id", session_id),
            parent_task_id=_values.optional_text("parent_task_id", parent_task_id),
            page_size=min(most, 1000),
        )
        found = await self._transport.items(
            _rpc.LIST_MESSAGES, request, lambda answer: answer.messages, timeout, most
        )
        return tuple(map(_message, found))

    async def delete(
        self, task_ids: str | Iterable[str], *, timeout: _values.Seconds | None = None
    ) -> int:
        """Remove messages that this agent is done with; return how many were there."""
        ids = [task_ids] if isinstance(task_ids, str) else _values.texts("task_ids", task_ids)
        request = pb.DeleteMessagesRequest(agent_id=self._agent_id, task_ids=ids)
        answer = await self._transport.call(_rpc.DELETE_MESSAGES, request, timeout=timeout)
        return answer.deleted


def _message(m: pb.DirectMessage) -> DirectMessage:
    return DirectMessage(
        task_id=m.task_id,
        source=m.source_agent_id,
        target=m.target_agent_id,
        content=m.content,
        priority=m.priority,
        session_id=m.session_id,
        parent_task_id=m.parent_task_id,
        node=m.target_node_id,
        role=m.context_role,
        metadata=json_format.MessageToDict(m.metadata) if m.HasField("metadata") else {},
        time=_values.moment(m.create_time),
        ttl=m.ttl.ToTimedelta() if m.HasField("ttl") else None,
    )
