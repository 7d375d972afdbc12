"""What handlers are given: the context, and the envelope of an event."""

import asyncio
import json
import uuid
from dataclasses import dataclass
from typing import Any

from loomv1.agent.core import OK, BridgeClient, ToolCall


@dataclass
class Envelope:
    id: str
    type: str
    payload: bytes = b""


class EventContext:
    def __init__(self, agent_id: str, client: BridgeClient) -> None:
        self.agent_id = agent_id
        self.client = client
        self._outbound_queue: asyncio.Queue[Any] = asyncio.Queue()

    async def emit(self, topic: str, *, type: str, payload: bytes = b"") -> None:  # noqa: A002
        await self._outbound_queue.put((topic, Envelope(str(uuid.uuid4()), type, payload)))

    async def tool(
        self,
        name: str,
        *,
        payload: Any = None,
        timeout_ms: int = 5000,
        headers: dict[str, str] | None = None,
    ) -> str:
        arguments = ""
        if payload is not None:
            arguments = payload if isinstance(payload, str) else json.dumps(payload)
        call_id = str(uuid.uuid4())
        own = {"x-correlation-id": call_id, "x-agent-id": self.agent_id}
        call = ToolCall(call_id, name, arguments, {**own, **(headers or {})}, timeout_ms, call_id)
        result = await self.client.forward_tool_call(call)
        if result.status == OK:
            return result.output
        raise RuntimeError(f"Tool call failed: {result.error.message}")

    def _bind(self, outbound_queue: asyncio.Queue[Any]) -> None:
        self._outbound_queue = outbound_queue
