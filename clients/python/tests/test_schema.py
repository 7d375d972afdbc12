"""What type hints say as JSON Schema, and what becomes of JSON arguments."""

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict, cast

import pytest

from loombridge import _provided, _schema, _threads


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        """Refuse what a schema can't say."""
        if self.x < 0:
            raise ValueError("x must not be negative")


class Options(TypedDict):
    depth: int
    follow: NotRequired[bool]


@dataclass
class Loop:
    inner: "Loop | None" = None


def shape_of(hint: Any) -> _schema.Shape:
    """Return the shape of a function with one parameter of a type."""

    def function(**_arguments: Any) -> None: ...

    def with_value(value: Any) -> None: ...

    with_value.__annotations__["value"] = hint
    return _schema.parameters(with_value if hint is not ... else function, {})


def take(hint: Any, value: Any) -> Any:
    return shape_of(hint).take("", {"value": value})["value"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list, {"type": "array"}),
        (dict, {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Point,
            {
                "type": "object",
                "properties": {
                    "x": {"type": "number"},
                    "y": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "follow": {"type": "boolean"}},
                "required": ["depth"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_schema_of_a_type(hint: Any, schema: dict[str, Any]) -> None:
    assert shape_of(hint).schema["properties"]["value"] == schema


@pytest.mark.parametrize(
    ("hint", "given", "taken"),
    [
        (int, 5, 5),
        (int, 5.0, 5),
        (int, 2**70, 2**70),
        (float, 5, 5.0),
        (float | None, None, None),
        (bool, True, True),
        (list[float], [1, 2.5], [1.0, 2.5]),
        (dict[str, list[int]], {"a": [1]}, {"a": [1]}),
        (int | str, "a", "a"),
        (Literal[1, True], True, True),
        (Colour, "blue", Colour.BLUE),
        (Point, {"x": 1}, Point(1.0)),
        (list[Point], [{"x": 1, "y": 2, "tags": ["t"]}], [Point(1.0, 2.0, ["t"])]),
        (Options, {"depth": 1}, {"depth": 1}),
        (Any, {"x": [None]}, {"x": [None]}),
    ],
)
def test_value_of_a_type(hint: Any, given: Any, taken: Any) -> None:
    result = take(hint, given)
    assert result == taken
    assert type(result) is type(taken)


@pytest.mark.parametrize(
    ("hint", "given", "text"),
    [
        (str, 5, "value must be a string, not an integer"),
        (int, True, "value must be an integer, not a boolean"),
        (int, 5.5, "value must be an integer, not a number"),
        (int, "5", "value must be an integer, not a string"),
        (float, "5", "value must be a number, not a string"),
        (bool, 1, "value must be a boolean, not an integer"),
        (list[int], [1, "x", None], "value[1] must be an integer, not a string; value[2] must be"),
        (list[int], "abc", "value must be an array, not a string"),
        (dict[str, int], {"a": "b"}, "value.a must be an integer, not a string"),
        (dict[str, int], None, "value must be an object, not null"),
        (int | None, "x", "value must be an integer, not a string or value must be null"),
        (Literal["a", "b"], "c", "value must be one of 'a', 'b', not 'c'"),
        (Literal[1], True, "value must be one of 1, not True"),
        (Colour, "green", "value must be one of 'red', 'blue', not 'green'"),
        (Point, {}, "value.x is missing"),
        (Point, {"x": 1, "z": 2}, "value.z is unknown; known are x, y, tags"),
        (Point, {"x": -1}, "value: x must not be negative"),
        (Options, {"follow": 1}, "value.depth is missing; value.follow must be a boolean"),
    ],
)
def test_faults_of_a_value(hint: Any, given: Any, text: str) -> None:
    with pytest.raises(_schema.ArgumentsError) as caught:
        take(hint, given)
    assert str(caught.value).startswith(text)


def test_all_faults_at_once() -> None:
    def function(a: int, b: str, c: bool = False) -> None: ...

    with pytest.raises(_schema.ArgumentsError) as caught:
        _schema.parameters(function, {}).take("", {"b": 1, "c": 2, "d": 3})
    assert caught.value.faults == (
        "a is missing",
        "b must be a string, not an integer",
        "c must be a boolean, not an integer",
        "d is unknown; known are a, b, c",
    )


def test_keywords_of_any_name() -> None:
    shape = shape_of(...)
    assert "additionalProperties" not in shape.schema
    assert shape.take("", {"x": 1}) == {"x": 1}


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (bytes, "parameter value has the type bytes, for which there is no JSON"),
        (set[int], "for which there is no JSON; known: str, int"),
        (dict[int, str], "the keys of a JSON object are strings"),
        (Callable[[], None], "for which there is no JSON"),
        (Loop, "Loop holds itself"),
        ("Missing", "a type hint can't be resolved here"),
    ],
)
def test_types_that_json_cannot_say(hint: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        shape_of(hint)


def test_parameters_that_cannot_be_named() -> None:
    def positional(a: int, /) -> None: ...
    def many(*values: int) -> None: ...

    for function in (positional, many):
        with pytest.raises(TypeError, match="can't be given by name"):
            _schema.parameters(function, {})


def documented(path: str, limit: int = 5, *, deep: Annotated[bool, "Its own."] = False) -> None:
    """Search a folder.

    Files that can't be read are left out.

    Args:
        path: where to search,
            with all that is under it.
        limit (int): how many at most.
        deep: not this one.

    Returns:
        nothing
    """


def test_docstrings_describe() -> None:
    tool = _provided.provided_tool(documented, None, None, None)
    assert tool.name == "documented"
    assert tool.description == "Search a folder.\n\nFiles that can't be read are left out."
    properties = json.loads(tool.wire().parameters_schema_json)["properties"]
    assert properties["path"]["description"] == "where to search, with all that is under it."
    assert properties["limit"]["description"] == "how many at most."
    assert properties["deep"]["description"] == "Its own."


def test_limits_of_a_tool() -> None:
    def function() -> None: ...

    with pytest.raises(ValueError, match="the description of function is over 16384 bytes"):
        _provided.provided_tool(function, None, "x" * 16385, None)
    with pytest.raises(ValueError, match="the parameters of function are over 65536 bytes"):
        _provided.provided_tool(function, None, None, {"x": "y" * 65536})
    with pytest.raises(TypeError, match="parameters must be a mapping"):
        _provided.provided_tool(function, None, None, cast("Any", [1]))
    with pytest.raises(ValueError, match="the level of function is 4, must be 1, 2 or 3"):
        _provided.provided_tool(function, None, None, None, level=4)


async def run(tool: _provided.ProvidedTool, arguments_json: str) -> str | bytes:
    return await tool.run(_threads.Threads().callee(tool.function), arguments_json)


async def test_a_schema_of_ones_own() -> None:
    def function(a: Any, b: Any = 2) -> Any:
        return [a, b]

    tool = _provided.provided_tool(function, None, None, {"type": "object"})
    assert await run(tool, '{"a":{"x":1}}') == '[{"x":1},2]'
    with pytest.raises(_schema.ArgumentsError, match="missing a required argument"):
        await run(tool, "{}")
    with pytest.raises(_schema.ArgumentsError, match="must be an object"):
        await run(tool, "[]")


async def test_what_a_tool_may_return() -> None:
    async def point() -> Point:
        return Point(1.5)

    def nothing() -> None: ...

    class Thing:
        def method(self, word: str) -> str:
            return word * 2

    assert json.loads(await run(_provided.provided_tool(point, None, None, None), "")) == {
        "x": 1.5,
        "y": 0.0,
        "tags": [],
    }
    assert await run(_provided.provided_tool(nothing, None, None, None), "{}") == "null"
    method = _provided.provided_tool(Thing().method, None, None, None)
    assert (method.name, await run(method, '{"word":"a"}')) == ("method", "aa")
