"""The agent: its connection, its stream, its tools."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from loomv1.agent.core import ERROR, BridgeClient, ToolCall, ToolError, ToolResult
from loomv1.agent.event import Envelope, EventContext
from loomv1.agent.tools import Tool

EventHandler: TypeAlias = Callable[[EventContext, str, Envelope], Awaitable[None]]


class Agent:
    def __init__(
        self,
        agent_id: str,
        topics: Iterable[str],
        tools: Iterable[Callable[..., Any]] | None = None,
        address: str | None = None,
        on_event: EventHandler | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.topics = list(topics)
        self._tool_decls: list[Tool] = [vars(func)["__loom_tool__"] for func in tools or ()]
        self._on_event = on_event
        self.client = BridgeClient(address=address) if address else BridgeClient()
        self._ctx = EventContext(agent_id=agent_id, client=self.client)
        self._outbound_queue: asyncio.Queue[Any] = asyncio.Queue(maxsize=1024)
        self._ctx._bind(self._outbound_queue)  # pyright: ignore[reportPrivateUsage]
        self._stream_task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()

    @property
    def ctx(self) -> EventContext:
        return self._ctx

    async def start(self) -> None:
        await self.client.connect()
        topics = [*self.topics, f"agent.{self.agent_id}.replies"]
        await self.client.register_agent(self.agent_id, topics, self._tool_decls)

        async def outbound() -> AsyncIterator[Any]:
            while True:
                yield await self._outbound_queue.get()

        self._stream = await self.client.event_stream(self.agent_id, outbound())
        self._stream_task = asyncio.create_task(self._run_stream())

    async def _run_stream(self) -> None:
        async for message in self._stream:
            if message.WhichOneof("msg") == "delivery":
                topic, event = message.delivery
                if self._on_event:
                    await self._on_event(self._ctx, topic, event)
            elif message.tool_call is not None:
                await self._handle_tool_call(message.tool_call)

    async def _handle_tool_call(self, call: ToolCall) -> None:
        for tool in self._tool_decls:
            if tool.name != call.name:
                continue
            args: Any = json.loads(call.arguments) if call.arguments else {}
            try:
                result = tool.func(**args)
                if asyncio.iscoroutine(result):
                    result = await result
                output = json.dumps(result) if result is not None else ""
                answer = ToolResult(id=call.id, output=output)
            except Exception as err:
                answer = ToolResult(call.id, ERROR, "", ToolError("TOOL_ERROR", str(err)))
            await self._outbound_queue.put(answer)
            return
        error = ToolError("NOT_FOUND", f"Tool '{call.name}' not found")
        await self._outbound_queue.put(ToolResult(call.id, ERROR, "", error))

    async def stop(self) -> None:
        self._stopped.set()
        if self._stream_task is not None:
            self._stream_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._stream_task
        await self.client.close()
