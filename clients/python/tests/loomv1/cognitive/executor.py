"""How the loop runs a tool: by the core, or after a person's word in Python itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loomv1.agent.event import EventContext
from loomv1.cognitive.types import Observation, ToolCall

TOOLS_REQUIRING_APPROVAL = {"fs:write_file", "fs:delete"}


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
            shown, step = self._process_tool_result(tool_call, output, True)
            return Observation(tool_call.name, True, shown[:2000], reduced_step=step)
        except Exception as err:
            refused = "Permission denied" in str(err) and self.permission_callback
            if refused and await self._request_permission(tool_call, str(err)):
                return await self._execute_with_approval(tool_call)
            _, step = self._process_tool_result(tool_call, "", False, str(err))
            return Observation(tool_call.name, False, "", str(err), reduced_step=step)

    def _process_tool_result(
        self, tool_call: ToolCall, raw_output: str, success: bool, error: str | None = None
    ) -> tuple[str, Any]:
        name, args = tool_call.name, tool_call.arguments
        if self.step_reducer is None:
            return raw_output, None
        if not success:
            return "", self.step_reducer.reduce(name, args, None, success=False, error=error)
        offloaded = self.data_offloader.offload(
            content=raw_output, category="tool_output", identifier=name.replace(":", "_")
        )
        step = self.step_reducer.reduce(name, args, offloaded.content, success=True)
        if offloaded.offloaded:
            step.outcome_ref = offloaded.file_path
        return offloaded.content, step

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
