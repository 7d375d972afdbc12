"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loombridge import _messages, _values
from loombridge.sync import _twin


@_twin.documented(_messages.Messages)
class Messages(_twin.Twin):
    """The direct messages for this agent; reached as `ctx.messages`. Send by `ctx.send`."""

    def send(
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
    ) -> _messages.SentMessage:
        """Say something to one agent, attached or not. See `ctx.send`."""
        return self._await(
            "send",
            target,
            content,
            priority=priority,
            ttl=ttl,
            session_id=session_id,
            parent_task_id=parent_task_id,
            role=role,
            node=node,
            metadata=metadata,
            task_id=task_id,
            timeout=timeout,
        )

    def list(
        self,
        *,
        session_id: str | None = None,
        parent_task_id: str | None = None,
        limit: int | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[_messages.DirectMessage, ...]:
        """Return the live messages: by priority, the highest first, then the newest."""
        return self._await(
            "list",
            session_id=session_id,
            parent_task_id=parent_task_id,
            limit=limit,
            timeout=timeout,
        )

    def delete(
        self, task_ids: str | Iterable[str], *, timeout: _values.Seconds | None = None
    ) -> int:
        """Remove messages that this agent is done with; return how many were there."""
        return self._await("delete", task_ids, timeout=timeout)
