"""An agent on the loom.v1 wire, shaped as loom-py's, with stubs made for the test."""

import asyncio
import importlib
import json
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import grpc
import grpc.aio

PROTOS = Path(__file__).resolve().parents[4] / "proto"

PATIENCE = 30.0
"""Seconds that a test waits for a message; on a busy machine it may take one or two."""

BACKOFF = 0.5
"""Seconds before the second attempt to come back; loom-py doubles it up to ten."""

Handler: TypeAlias = Callable[["Peer", str, Any], Awaitable[None]]
Tool: TypeAlias = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Stubs:
    """The modules that protoc made."""

    event: Any
    action: Any
    bridge: Any
    services: Any
    """Stubs of the Bridge service."""
    bus: Any
    """Stubs of the EventBus service."""


def generate(folder: Path) -> Stubs:
    """Make the stubs of proto/loom/v1 in a folder that is on the path, and import them."""
    files = [str(path.relative_to(PROTOS)) for path in sorted(PROTOS.glob("loom/v1/*.proto"))]
    outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", *outputs, *files]
    subprocess.run(command, check=True)
    names = ("event_pb2", "action_pb2", "bridge_pb2", "bridge_pb2_grpc", "event_pb2_grpc")
    return Stubs(*(importlib.import_module(f"loom.v1.{name}") for name in names))


def meta(event: Any, key: str) -> str:
    """Read an envelope key as loom-py does: its own prefix first, then the bare one."""
    return event.metadata.get(f"loom.{key}") or event.metadata.get(key) or ""


class Peer:
    """One agent process: registers, streams, answers, and comes back when cut off.

    As in loom-py deliveries and tool calls are handled one at a time, and what is sent
    on the stream is the handshake, publishes and tool results.
    """

    def __init__(
        self,
        stubs: Stubs,
        address: str,
        agent_id: str,
        topics: list[str],
        tools: Mapping[str, Tool] | None = None,
        on_event: Handler | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.inbox: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.came_back = asyncio.Event()
        self.may_come_back = asyncio.Event()
        self.may_come_back.set()
        self.ended: list[grpc.StatusCode] = []
        self.errors: list[tuple[str, str]] = []
        """What loom-py would log, at level ERROR."""
        self._stubs = stubs
        self._address = address
        self._topics = [*topics, f"agent.{agent_id}.replies"]
        self._tools = dict(tools or {})
        self._on_event = on_event
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._channel: grpc.aio.Channel | None = None
        self._outbound: asyncio.Queue[Any] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Register and open the stream."""
        await self._open()
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Cancel the stream, as loom-py's `stop` does."""
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        if self._channel is not None:
            await self._channel.close()

    async def _open(self) -> None:
        if self._channel is not None:
            await self._channel.close()
        self._channel = grpc.aio.insecure_channel(self._address)
        self.stub = self._stubs.services.BridgeStub(self._channel)
        tools = [
            self._stubs.action.ToolDescriptor(name=name, parameters_schema="{}")
            for name in self._tools
        ]
        registered = await self.stub.RegisterAgent(
            self._stubs.bridge.AgentRegisterRequest(
                agent_id=self.agent_id, subscribed_topics=self._topics, tools=tools
            )
        )
        if not registered.success:
            raise RuntimeError(f"RegisterAgent failed: {registered.error_message}")
        # Of this stream alone: nothing that a test sends is to get lost with an old one.
        self._outbound = asyncio.Queue()
        self.stream = self.stub.EventStream(self._messages(self._outbound))
        # loom-py does not wait for the headers; they say that the stream stands.
        self.headers = await asyncio.wait_for(self.stream.initial_metadata(), PATIENCE)

    async def _messages(self, outbound: asyncio.Queue[Any]) -> AsyncIterator[Any]:
        ack = self._stubs.bridge.Ack(message_id=self.agent_id)
        yield self._stubs.bridge.ClientEvent(ack=ack)
        while True:
            yield await outbound.get()

    async def _read(self) -> None:
        while True:
            try:
                async for message in self.stream:
                    await self._handle(message)
            except grpc.aio.AioRpcError as err:
                self.ended.append(err.code())
            else:
                # loom-py stays deaf here for ever; the server must never end so.
                self.ended.append(grpc.StatusCode.OK)
                return
            await self._come_back()

    async def _come_back(self) -> None:
        pause = BACKOFF
        while True:
            await self.may_come_back.wait()
            try:
                await self._open()
            except (grpc.aio.AioRpcError, RuntimeError):
                await asyncio.sleep(pause)
                pause = min(2 * pause, 10.0)
            else:
                self.came_back.set()
                return

    async def _handle(self, message: Any) -> None:
        kind = message.WhichOneof("msg")
        if kind == "delivery":
            event = message.delivery.event
            future = self._pending.get(meta(event, "correlation_id"))
            if future is not None and not future.done():
                future.set_result(event)
            self.inbox.put_nowait((message.delivery.topic, event))
            if self._on_event is not None:
                await self._on_event(self, message.delivery.topic, event)
        elif kind == "tool_call":
            result = self._run(message.tool_call)
            self._outbound.put_nowait(self._stubs.bridge.ClientEvent(tool_result=result))
        elif kind == "err":
            self.errors.append((message.err.code, message.err.message))

    def _run(self, call: Any) -> Any:
        action = self._stubs.action
        try:
            result = self._tools[call.name](json.loads(call.arguments or "{}"))
        except Exception as err:
            error = action.ToolError(code="TOOL_ERROR", message=str(err))
            return action.ToolResult(id=call.id, status=action.TOOL_ERROR, error=error)
        output = "" if result is None else json.dumps(result)
        return action.ToolResult(id=call.id, status=action.TOOL_OK, output=output)

    def event(self, kind: str, payload: bytes = b"", **metadata: str) -> Any:
        """Make an event as loom-py does."""
        return self._stubs.event.Event(
            id=str(uuid.uuid4()),
            type=kind,
            timestamp_ms=int(time.time() * 1000),
            source="python",
            metadata={"loom.sender": self.agent_id}
            | {f"loom.{key}": value for key, value in metadata.items() if value},
            payload=payload,
            confidence=1.0,
            priority=50,
        )

    async def publish(self, topic: str, event: Any) -> str:
        """Publish on the stream; return the event's id."""
        publish = self._stubs.bridge.Publish(topic=topic, event=event)
        await self._outbound.put(self._stubs.bridge.ClientEvent(publish=publish))
        return event.id

    async def emit(self, topic: str, kind: str, payload: bytes = b"") -> str:
        """Make an event and publish it; return its id."""
        return await self.publish(topic, self.event(kind, payload))

    async def request(self, topic: str, payload: bytes, timeout: float) -> Any:
        """Publish a request and return the reply, found by the request's own id."""
        event = self.event("request", payload)
        future = self._pending[event.id] = asyncio.get_running_loop().create_future()
        try:
            await self.publish(topic, event)
            return await asyncio.wait_for(future, timeout)
        finally:
            del self._pending[event.id]

    async def reply(self, original: Any, payload: bytes) -> None:
        """Answer where the request says, or at its sender's mailbox."""
        topic = meta(original, "reply_to") or f"agent.{meta(original, 'sender')}.replies"
        correlation = meta(original, "correlation_id") or original.id
        thread = meta(original, "thread_id")
        event = self.event("reply", payload, correlation_id=correlation, thread_id=thread)
        await self.publish(topic, event)

    async def call(self, name: str, arguments: str = "", *, timeout_ms: int = 5000) -> Any:
        """Call a tool; return the whole result."""
        call_id = str(uuid.uuid4())
        headers = {"x-correlation-id": call_id, "x-agent-id": self.agent_id}
        result = await self.stub.ForwardToolCall(
            self._stubs.action.ToolCall(
                id=call_id,
                name=name,
                arguments=arguments,
                headers=headers,
                timeout_ms=timeout_ms,
                correlation_id=call_id,
            ),
            timeout=PATIENCE,
        )
        assert result.id == call_id
        return result

    async def next(self) -> tuple[str, Any]:
        """Return the next delivery: its topic as subscribed, and the event."""
        return await asyncio.wait_for(self.inbox.get(), PATIENCE)

    async def until(self, event_id: str) -> list[str]:
        """Return the ids of the deliveries up to and with this one."""
        ids: list[str] = []
        while not ids or ids[-1] != event_id:
            ids.append((await self.next())[1].id)
        return ids
