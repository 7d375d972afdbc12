"""Agents of loom-py for tests, and the steps that a fake server was given."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fake import Call
from loombridge.loom import Bridge, attach
from loombridge.v1 import context_pb2 as pb
from loomv1.agent import Agent, ToolCall, ToolError, ToolResult, tool


class Log:
    """The steps that a fake server was given."""

    def __init__(self) -> None:
        self.requests: list[pb.RecordStepRequest] = []

    async def answer(self, request: pb.RecordStepRequest, _call: Call) -> pb.RecordStepResponse:
        self.requests.append(request)
        return pb.RecordStepResponse(step=pb.Step(id=f"step_{len(self.requests):03}"))

    def steps(self) -> list[tuple[str, Any, Any]]:
        """Return the tool, the arguments and the output or error of each step."""
        return [
            (
                each.tool_name,
                json.loads(each.arguments_json),
                _output(each) if each.success else f"error: {each.error_message}",
            )
            for each in self.requests
        ]

    async def upload(
        self, requests: AsyncIterator[pb.UploadStepRequest], call: Call
    ) -> pb.RecordStepResponse:
        """Take a step whose output comes in parts, as if it had come in one."""
        messages = [message async for message in requests]
        request, text = messages[0].step, b"".join(m.data for m in messages[1:]).decode()
        if request.output_upload.form == pb.RESULT_FORM_JSON:
            request.output_json = text
        else:
            request.output_text = text
        return await self.answer(request, call)


def _output(request: pb.RecordStepRequest) -> Any:
    form = request.WhichOneof("output_form")
    return json.loads(request.output_json) if form == "output_json" else request.output_text


@asynccontextmanager
async def running(agent: Agent) -> AsyncGenerator[Bridge, None]:
    """Attach an agent and run it while the block runs."""
    bridge = attach(agent)
    await agent.start()
    try:
        yield bridge
    finally:
        await agent.stop()


def failing(code: str, message: str) -> Any:
    """Return an answer that says that a tool failed."""
    return lambda call: ToolResult(call.id, 1, "", ToolError(code, message))  # pyright: ignore


@tool("math.add")
def add(a: int, b: int) -> int:
    return a + b


@tool("text.shout")
async def shout(text: str) -> dict[str, str]:
    if not text:
        raise ValueError("nothing to shout")
    return {"text": text.upper()}


@tool("odd.thing")
def odd() -> object:
    return object()


def asked(name: str, arguments: str, caller: str = "other") -> ToolCall:
    return ToolCall(f"call-{name}-{arguments}", name, arguments, {"x-agent-id": caller})
