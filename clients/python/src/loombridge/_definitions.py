"""Tools as a prompt offers them to a model: served ones, and the caller's own."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, Union, cast

from loombridge import _brief, _schema, _spelling, _tools, _values
from loombridge.v1 import prompt_pb2 as pb

_SCHEMA_FIELDS = ("parameters", "input_schema", "inputSchema")
"""What OpenAI and Gemini, Anthropic, and MCP call the schema of a tool's arguments."""

_SERVED = "served tools are chosen by settings=PromptSettings(tools=ToolSelection(names=[...]))"

_FIELDS = ("name", "description", *_SCHEMA_FIELDS)


@dataclass(frozen=True, slots=True, repr=False)
class ToolDefinition(_brief.Brief):
    """A tool as a prompt offers it to a model."""

    name: str
    """Its name; 1 to 128 bytes."""
    description: str = ""
    """What it does; at most 16 KiB."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON Schema of its arguments; at most 256 KiB. Empty: it has none."""


CallerTool: TypeAlias = Union[  # noqa: UP007  a quoted name has no | at run time
    ToolDefinition, _tools.ToolInfo, Mapping[str, Any], Callable[..., Any]
]
"""A tool of the caller's own: a definition, one of `ctx.tools.list()`, a mapping as OpenAI,
Anthropic, Gemini or MCP have it, or a Python function with type hints."""


def tools_to_wire(tools: object) -> list[pb.ToolDescriptor]:
    """Return the caller's own tools as the wire has them.

    Raises:
        TypeError: it is no sequence, or one of them is no tool.
        ValueError: a mapping has a field that could not be kept.
    """
    kind = _values.kind(tools)
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise TypeError(
            "tools must be a bool or a list of tools, such as ToolDefinition or a function, "
            f"not {kind}; {_SERVED}"
        )
    given = cast("Sequence[object]", tools)
    return [_wire(f"tools[{i}]", definition(f"tools[{i}]", each)) for i, each in enumerate(given)]


def definition(name: str, tool: object) -> ToolDefinition:
    """Return the description for the model of a tool given in any of its forms."""
    if isinstance(tool, ToolDefinition):
        return tool
    if isinstance(tool, _tools.ToolInfo):
        return ToolDefinition(tool.name, tool.description, tool.parameters)
    if isinstance(tool, Mapping):
        return _of_mapping(name, cast("Mapping[str, Any]", tool))
    if inspect.isfunction(tool) or inspect.ismethod(tool):
        text, notes = _schema.described(tool)
        return ToolDefinition(tool.__name__, text, _schema.parameters(tool, notes).schema)
    hint = f"; {_SERVED}" if isinstance(tool, str) else ""
    raise TypeError(
        f"{name} must be a ToolDefinition, a mapping or a function, not {type(tool).__name__}{hint}"
    )


def _of_mapping(name: str, tool: Mapping[str, Any]) -> ToolDefinition:
    fields = dict(tool)
    kind = fields.pop("type", None)
    if isinstance(fields.get("function"), Mapping) and len(fields) == 1:
        fields = dict(cast("Mapping[str, Any]", fields["function"]))
    if kind not in (None, "function", "custom"):
        raise ValueError(
            f"{name} is a tool of the provider's own, {kind!r}: add it to the tools of the prompt"
        )
    for key in [key for key, value in fields.items() if value is None]:
        del fields[key]
    if others := sorted(fields.keys() - set(_FIELDS)):
        near = _spelling.nearest(others[0], _FIELDS)
        hint = f"did you mean {near!r}?" if near else "add it to the tools of the prompt"
        raise ValueError(f"{name} has a field {others[0]!r} that has no place here: {hint}")
    schemas = [fields[key] for key in _SCHEMA_FIELDS if key in fields]
    if len(schemas) > 1:
        raise ValueError(f"{name} has more than one schema of its arguments")
    return ToolDefinition(
        name=_values.text(f"{name}.name", fields.get("name")),
        description=_values.optional_text(f"{name}.description", fields.get("description")),
        parameters=_values.mapping(f"{name}.parameters", schemas[0] if schemas else {}),
    )


def _wire(name: str, tool: ToolDefinition) -> pb.ToolDescriptor:
    parameters = _values.mapping(f"{name}.parameters", tool.parameters)
    return pb.ToolDescriptor(
        name=_values.text(f"{name}.name", tool.name),
        description=_values.text(f"{name}.description", tool.description),
        parameters_schema_json=_values.json_object(f"{name}.parameters", parameters)
        if parameters
        else "",
    )


def shown(tools_json: str) -> tuple[ToolDefinition, ...]:
    """Return the tools of a prompt in the neutral format."""
    return tuple(
        ToolDefinition(tool["name"], tool.get("description", ""), tool.get("parameters", {}))
        for tool in cast("list[Mapping[str, Any]]", _values.from_json(tools_json) or [])
    )
