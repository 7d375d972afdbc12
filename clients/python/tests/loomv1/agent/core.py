"""The client of the core, and a core in the test's own process behind it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

OK, ERROR = 0, 1


@dataclass
class ToolError:
    code: str = ""
    message: str = ""


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    timeout_ms: int = 0
    correlation_id: str = ""


@dataclass
class ToolResult:
    id: str
    status: int = OK
    output: str = ""
    error: ToolError = field(default_factory=ToolError)


@dataclass
class ServerMessage:
    """What the core sends on the stream: one of the two is set."""

    delivery: Any = None
    tool_call: ToolCall | None = None

    def WhichOneof(self, _name: str) -> str:  # noqa: N802  protobuf's own name
        return "delivery" if self.tool_call is None else "tool_call"


class BridgeClient:
    """Answers as the test tells it; an agent's own tools are relayed to the agent."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address or os.environ.get("LOOM_BRIDGE_ADDR", "127.0.0.1:50051")
        self.answers: dict[str, Callable[[ToolCall], Any]] = {}
        self.registered: list[str] = []
        self.connected = False
        self._pushed: asyncio.Queue[ServerMessage] = asyncio.Queue()
        self._relayed: dict[str, asyncio.Future[ToolResult]] = {}

    async def connect(self) -> None:
        self.connected = True

    async def close(self) -> None:
        self.connected = False

    async def register_agent(self, _agent_id: str, _topics: list[str], tools: list[Any]) -> bool:
        self.registered = [each.name for each in tools]
        return True

    async def event_stream(
        self, _agent_id: str, outbound: AsyncIterator[Any]
    ) -> AsyncIterator[ServerMessage]:
        async def take_results() -> None:
            async for message in outbound:
                if isinstance(message, ToolResult):
                    self._relayed.pop(message.id).set_result(message)

        async def stream() -> AsyncIterator[ServerMessage]:
            reader = asyncio.create_task(take_results())
            try:
                while True:
                    yield await self._pushed.get()
            finally:
                reader.cancel()

        return stream()

    async def forward_tool_call(self, call: ToolCall) -> ToolResult:
        if call.name in self.registered:
            return await self.relay(call)
        answer = self.answers[call.name](call)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, ToolResult):
            return answer
        return ToolResult(id=call.id, output=answer)

    async def relay(self, call: ToolCall) -> ToolResult:
        """Push a call to the agent, as another agent's would be, and await the result."""
        future: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._relayed[call.id] = future
        self._pushed.put_nowait(ServerMessage(tool_call=call))
        return await future

    def deliver(self, topic: str, event: Any) -> None:
        """Push an event to the agent."""
        self._pushed.put_nowait(ServerMessage(delivery=(topic, event)))
