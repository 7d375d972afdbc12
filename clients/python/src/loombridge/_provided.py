"""Tools that an agent provides: a function, its schema, and one run of it."""

import asyncio
import dataclasses
import inspect
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from loombridge import _errors, _results, _schema, _threads, _values
from loombridge.v1 import attach_pb2, prompt_pb2, tools_pb2

LONGEST_NAME = 128
"""Characters of a tool's name."""

LONGEST_DESCRIPTION = 16 << 10
"""Bytes of a tool's description."""

LARGEST_SCHEMA = 64 << 10
"""Bytes of the JSON Schema of a tool's arguments."""

LARGEST_OUTPUT = 3 << 20
"""Bytes of a result: it travels in one message, of which the server takes 4 MiB."""

TOOLS_PER_AGENT = 256
"""Tools that an agent may provide."""

CALLS_AT_ONCE = 256
"""Calls of this agent's tools that run at the same time; more wait, within their
timeout."""

CALLS_PER_TOOL = 64
"""Calls of one tool of them, so that one that hangs does not keep the others waiting."""

_log = logging.getLogger("loombridge")

_NAME = re.compile(rf"[A-Za-z0-9_:.\-/]{{1,{LONGEST_NAME}}}")

_CODES: Mapping[type[Exception], tools_pb2.ToolErrorCode] = {
    _schema.ArgumentsError: tools_pb2.TOOL_ERROR_CODE_INVALID_ARGUMENTS,
    FileNotFoundError: tools_pb2.TOOL_ERROR_CODE_NOT_FOUND,
    PermissionError: tools_pb2.TOOL_ERROR_CODE_PERMISSION_DENIED,
    TimeoutError: tools_pb2.TOOL_ERROR_CODE_TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class ProvidedTool:
    """A function that others may call by name."""

    name: str
    description: str
    function: Callable[..., Any]
    shape: _schema.Shape
    level: int = 1
    requires_approval: bool = False

    def wire(self) -> prompt_pb2.ToolDescriptor:
        """Return the tool's description for others."""
        return prompt_pb2.ToolDescriptor(
            name=self.name,
            description=self.description,
            parameters_schema_json=_values.json_text("parameters", self.shape.schema),
            level=self.level,
            requires_approval=self.requires_approval,
        )

    async def run(self, callee: _threads.Callee, arguments_json: str) -> str | bytes:
        """Run the function as `callee` does; return its result.

        It is text, bytes, or `JsonText` for all else.

        Raises:
            ArgumentsError: the arguments do not fit the function.
            Exception: whatever the function raises.
        """
        try:
            arguments = _values.from_json(arguments_json)
        except ValueError as err:
            raise _schema.ArgumentsError([f"arguments are not JSON: {err}"]) from err
        taken = self.shape.take("", {} if arguments is None else arguments)
        value = _plain(await callee(**taken))
        if isinstance(value, bytes | bytearray):
            return bytes(value)
        if isinstance(value, str):
            _values.text("the result", value)
            return value
        return _results.JsonText(_values.json_text("the result", value))


def provided_tool(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    parameters: Mapping[str, Any] | None,
    *,
    level: int = 1,
    requires_approval: bool = False,
) -> ProvidedTool:
    """Return a function as a tool, with what it does not say itself.

    Raises:
        TypeError: it is no function, or a parameter has no JSON form.
        ValueError: the name, the description, the schema or the level breaks a rule.
    """
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise TypeError(f"a tool must be a function, not {type(function).__name__}")
    text, notes = _schema.described(function)
    if parameters is None:
        shape = _schema.parameters(function, notes)
    else:
        shape = _given(function, parameters)
    tool = ProvidedTool(
        name=_values.text("name", function.__name__ if name is None else name),
        description=text if description is None else _values.text("description", description),
        function=function,
        shape=shape,
        level=level,
        requires_approval=requires_approval,
    )
    _check(tool)
    return tool


def _given(function: Callable[..., Any], parameters: Mapping[str, Any]) -> _schema.Shape:
    """Return a schema that the user wrote; arguments are only fitted to the signature."""
    signature = inspect.signature(function)

    def take(_path: str, value: Any) -> Any:
        if not isinstance(value, dict):
            raise _schema.ArgumentsError(["arguments must be an object"])
        try:
            signature.bind(**cast("dict[str, Any]", value))
        except TypeError as err:
            raise _schema.ArgumentsError([str(err)]) from err
        return cast("dict[str, Any]", value)

    return _schema.Shape(dict(_values.mapping("parameters", parameters)), take)


def _check(tool: ProvidedTool) -> None:
    if not _NAME.fullmatch(tool.name):
        raise ValueError(
            f"name must be 1 to {LONGEST_NAME} letters, digits and _ : . - /, not {tool.name!r}"
        )
    if len(tool.description.encode()) > LONGEST_DESCRIPTION:
        raise ValueError(f"the description of {tool.name} is over {LONGEST_DESCRIPTION} bytes")
    if len(tool.wire().parameters_schema_json.encode()) > LARGEST_SCHEMA:
        raise ValueError(f"the parameters of {tool.name} are over {LARGEST_SCHEMA} bytes")
    if tool.level not in (1, 2, 3):
        raise ValueError(f"the level of {tool.name} is {tool.level}, must be 1, 2 or 3")


@dataclass(frozen=True, slots=True)
class _Offer:
    """A tool, and what its calls share."""

    tool: ProvidedTool
    callee: _threads.Callee
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_PER_TOOL))


class Toolbox:
    """The tools that one agent provides."""

    def __init__(self, threads: _threads.Threads) -> None:
        """Begin empty; `threads` run the plain functions."""
        self._threads = threads
        self._tools: dict[str, _Offer] = {}
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    def add(self, tool: ProvidedTool) -> None:
        """Add a tool, in place of an earlier one of the same name.

        Raises:
            ValueError: the tools become too many.
        """
        if tool.name not in self._tools and len(self._tools) >= TOOLS_PER_AGENT:
            raise ValueError(f"an agent can provide {TOOLS_PER_AGENT} tools at most")
        self._tools[tool.name] = _Offer(tool, self._threads.callee(tool.function))

    def wire(self) -> list[prompt_pb2.ToolDescriptor]:
        """Return the tools' descriptions for others."""
        return [offer.tool.wire() for offer in self._tools.values()]

    async def answer(self, call: attach_pb2.AttachToolCall) -> attach_pb2.AttachToolResult:
        """Run a tool for somebody; what it raises is an answer too."""
        offer = self._tools.get(call.name)
        if offer is None:
            text = f"this agent provides no tool {call.name}"
            return _failure(call.call_id, tools_pb2.TOOL_ERROR_CODE_NOT_FOUND, text)
        tool = offer.tool
        limit = asyncio.timeout(call.timeout.ToTimedelta().total_seconds() or None)
        try:
            async with limit, offer.slots, self._slots:
                output = await tool.run(offer.callee, call.arguments_json)
                return _succeeded(call.call_id, output)
        except _schema.ArgumentsError as err:
            return _failed(call.call_id, err)
        except Exception as err:
            if limit.expired():
                _log.warning("tool %s took longer than %s waits", tool.name, call.caller_id)
                return _failed(call.call_id, TimeoutError(f"{tool.name} did not end in time"))
            _log.warning("tool %s failed for %s", tool.name, call.caller_id, exc_info=err)
            return _failed(call.call_id, err)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def _succeeded(call_id: str, output: str | bytes) -> attach_pb2.AttachToolResult:
    """Return the answer to a call that did its work."""
    size = len(output if isinstance(output, bytes) else output.encode())
    if size > LARGEST_OUTPUT:
        return _failure(
            call_id,
            tools_pb2.TOOL_ERROR_CODE_TOO_LARGE,
            f"result of {size} bytes exceeds the limit of {LARGEST_OUTPUT}",
        )
    answer = attach_pb2.AttachToolResult(call_id=call_id, success=True)
    if isinstance(output, bytes):
        answer.output_bytes.data = output
    elif isinstance(output, _results.JsonText):
        answer.output_json = output
    else:
        answer.output_text = output
    return answer


def _failed(call_id: str, err: Exception) -> attach_pb2.AttachToolResult:
    """Return the answer to a call that raised."""
    text = _errors.said_by(err)
    if isinstance(err, _schema.ArgumentsError):
        text = f"invalid arguments: {text}"
    return _failure(call_id, _code(err), text)


def _code(err: Exception) -> tools_pb2.ToolErrorCode:
    if isinstance(err, _errors.ToolFailedError):
        # A tool that called another one and let its failure through.
        found = tools_pb2.ToolErrorCode.DESCRIPTOR.values_by_name.get(
            f"TOOL_ERROR_CODE_{err.reason}"
        )
        if found is not None:
            return cast("tools_pb2.ToolErrorCode", found.number)
    codes = (code for kind, code in _CODES.items() if isinstance(err, kind))
    return next(codes, tools_pb2.TOOL_ERROR_CODE_FAILED)


def _failure(
    call_id: str, code: tools_pb2.ToolErrorCode, message: str
) -> attach_pb2.AttachToolResult:
    return attach_pb2.AttachToolResult(
        call_id=call_id,
        error_code=code,
        error_message=message,
    )
