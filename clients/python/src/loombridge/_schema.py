"""The JSON Schema of a function's parameters, and the way from JSON to arguments."""

import dataclasses
import enum
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema: TypeAlias = dict[str, Any]

_JSON_NAMES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    types.NoneType: "null",
}

_KNOWN = (
    "str, int, float, bool, None, list, dict, unions of these, Literal, Enum, dataclass, TypedDict"
)


class ArgumentsError(ValueError):
    """Arguments that do not fit; the text names every fault."""

    def __init__(self, faults: Iterable[str]) -> None:
        """Keep the faults."""
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


@dataclass(frozen=True, slots=True)
class Shape:
    """One type: what JSON Schema says of it, and how a JSON value becomes one."""

    schema: Schema
    take: Callable[[str, Any], Any]
    """Turns the value at a path into the type, or raises ArgumentsError."""


@dataclass(frozen=True, slots=True)
class Field:
    """One named value of an object."""

    name: str
    shape: Shape
    required: bool


def parameters(function: Callable[..., Any], notes: Mapping[str, str]) -> Shape:
    """Return the shape of a function's keyword arguments.

    Args:
        function: its parameters, their types and their defaults count.
        notes: descriptions of parameters by name.

    Raises:
        TypeError: a parameter has a type that JSON cannot say, or can't be given by
            name.
    """
    name = getattr(function, "__name__", "function")
    hints = _hints(function, name)
    fields: list[Field] = []
    open_ended = False
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            open_ended = True
            continue
        if each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL):
            raise TypeError(f"{name}: {each} can't be given by name, as tools are called")
        shape = _of(hints.get(each.name, Any), f"{name}: parameter {each.name}", ())
        if each.name in notes and "description" not in shape.schema:
            shape = Shape({**shape.schema, "description": notes[each.name]}, shape.take)
        fields.append(Field(each.name, shape, required=each.default is each.empty))
    return _object(fields, open_ended=open_ended)


def _hints(thing: Callable[..., Any] | type, name: str) -> dict[str, Any]:
    try:
        return get_type_hints(thing, include_extras=True)
    except NameError as err:
        raise TypeError(f"{name}: a type hint can't be resolved here: {err}") from err


def _of(hint: Any, where: str, outer: tuple[Any, ...]) -> Shape:
    """Return the shape of a type hint."""
    if hint is Any or hint is inspect.Parameter.empty or hint is object:
        return Shape({}, lambda _path, value: value)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _described(_of(args[0], where, outer), args[1:])
    if origin in (Required, NotRequired):
        return _of(args[0], where, outer)
    if origin in (Union, types.UnionType):
        return _union([_of(arg, where, outer) for arg in args])
    if origin is Literal:
        return _one_of(args, args)
    plain = origin or hint
    if plain in (list, Sequence, Iterable):
        return _list(_of(args[0], where, outer) if args else None)
    if plain in (dict, Mapping):
        if args and args[0] is not str:
            raise TypeError(f"{where}: the keys of a JSON object are strings, not {args[0]}")
        return _dict(_of(args[1], where, outer) if args else None)
    if hint is None or hint in _JSON_NAMES:
        return _scalar(types.NoneType if hint is None else hint)
    if inspect.isclass(hint):
        return _class(hint, where, outer)
    raise TypeError(f"{where} has the type {hint!r}, for which there is no JSON; known: {_KNOWN}")


def _described(shape: Shape, notes: Sequence[Any]) -> Shape:
    texts = [note for note in notes if isinstance(note, str)]
    return Shape({**shape.schema, "description": texts[0]}, shape.take) if texts else shape


def _class(kind: type, where: str, outer: tuple[Any, ...]) -> Shape:
    whole = cast("Any", kind)
    if issubclass(kind, enum.Enum):
        return _one_of([each.value for each in kind], list(kind))
    if kind in outer:
        raise TypeError(f"{where}: {kind.__name__} holds itself, which is not supported")
    if dataclasses.is_dataclass(whole):
        return _dataclass(whole, where, (*outer, whole))
    if is_typeddict(whole):
        return _object(
            Field(
                name, _of(hint, f"{where}.{name}", (*outer, whole)), name in whole.__required_keys__
            )
            for name, hint in _hints(whole, where).items()
        )
    raise TypeError(
        f"{where} has the type {kind.__name__}, for which there is no JSON; known: {_KNOWN}"
    )


def _dataclass(kind: Any, where: str, outer: tuple[Any, ...]) -> Shape:
    hints = _hints(kind, where)
    missing = dataclasses.MISSING
    inner = _object(
        Field(
            each.name,
            _of(hints[each.name], f"{where}.{each.name}", outer),
            each.default is missing and each.default_factory is missing,
        )
        for each in dataclasses.fields(kind)
        if each.init
    )

    def take(path: str, value: Any) -> Any:
        fields = inner.take(path, value)
        try:
            return kind(**fields)
        except ValueError as err:
            raise ArgumentsError([f"{path}: {err}"]) from err

    return Shape(inner.schema, take)


def _scalar(kind: type) -> Shape:
    name = _JSON_NAMES[kind]

    def take(path: str, value: Any) -> Any:
        if name == "integer" and isinstance(value, float) and value.is_integer():
            # Models write 5.0 where they mean 5, and JSON Schema counts it as one.
            return int(value)
        if name == "number" and _json_name(value) == "integer":
            return float(value)
        if _json_name(value) != name:
            raise _wrong(path, name, value)
        return value

    return Shape({"type": name}, take)


def _one_of(values: Sequence[Any], meant: Sequence[Any]) -> Shape:
    def take(path: str, value: Any) -> Any:
        for each, meaning in zip(values, meant, strict=True):
            # True equals 1 in Python, but not in JSON.
            if each == value and type(each) is type(value):
                return meaning
        names = ", ".join(map(repr, values))
        raise ArgumentsError([f"{path} must be one of {names}, not {value!r}"])

    return Shape({"enum": list(values)}, take)


def _union(shapes: Sequence[Shape]) -> Shape:
    def take(path: str, value: Any) -> Any:
        faults: list[str] = []
        for shape in shapes:
            try:
                return shape.take(path, value)
            except ArgumentsError as err:
                faults += err.faults
        raise ArgumentsError([" or ".join(dict.fromkeys(faults))])

    return Shape({"anyOf": [shape.schema for shape in shapes]}, take)


def _list(items: Shape | None) -> Shape:
    def take(path: str, value: Any) -> Any:
        if not isinstance(value, list):
            raise _wrong(path, "array", value)
        values = cast("list[Any]", value)
        if items is None:
            return values
        return _each((f"{path}[{i}]", items, each) for i, each in enumerate(values))

    return Shape({"type": "array"} | ({"items": items.schema} if items else {}), take)


def _dict(values: Shape | None) -> Shape:
    def take(path: str, value: Any) -> Any:
        if not isinstance(value, dict):
            raise _wrong(path, "object", value)
        pairs = cast("dict[str, Any]", value)
        if values is None:
            return pairs
        taken = _each((f"{path}.{key}", values, each) for key, each in pairs.items())
        return dict(zip(pairs, taken, strict=True))

    return Shape(
        {"type": "object"} | ({"additionalProperties": values.schema} if values else {}), take
    )


def _object(fields: Iterable[Field], *, open_ended: bool = False) -> Shape:
    known = {field.name: field for field in fields}
    required = [name for name, field in known.items() if field.required]
    schema: Schema = {
        "type": "object",
        "properties": {name: field.shape.schema for name, field in known.items()},
    }
    if required:
        schema["required"] = required
    if not open_ended:
        schema["additionalProperties"] = False

    def take(path: str, value: Any) -> Any:
        if not isinstance(value, dict):
            raise _wrong(path or "arguments", "object", value)
        given = cast("dict[str, Any]", value)
        prefix = f"{path}." if path else ""
        faults = [f"{prefix}{name} is missing" for name in required if name not in given]
        result: dict[str, Any] = {}
        for name, each in given.items():
            field = known.get(name)
            if field is None and not open_ended:
                faults.append(f"{prefix}{name} is unknown; known are {', '.join(known) or 'none'}")
                continue
            try:
                result[name] = field.shape.take(prefix + name, each) if field else each
            except ArgumentsError as err:
                faults += err.faults
        if faults:
            raise ArgumentsError(faults)
        return result

    return Shape(schema, take)


def _each(values: Iterable[tuple[str, Shape, Any]]) -> list[Any]:
    """Take several values, and all their faults at once."""
    result: list[Any] = []
    faults: list[str] = []
    for path, shape, value in values:
        try:
            result.append(shape.take(path, value))
        except ArgumentsError as err:
            faults += err.faults
    if faults:
        raise ArgumentsError(faults)
    return result


def _json_name(value: object) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _wrong(path: str, wanted: str, value: object) -> ArgumentsError:
    return ArgumentsError([f"{path} must be {_article(wanted)}, not {_article(_json_name(value))}"])


def _article(name: str) -> str:
    if name == "null":
        return name
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


_SECTION = re.compile(
    r"^(Args|Arguments|Returns|Yields|Raises|Examples?|Notes?):\s*$", re.MULTILINE
)
_PARAMETER = re.compile(r"^(\w+)(?: *\([^)]*\))?: *(.*)$")


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of a function and of each parameter.

    The sections of a docstring in Google's style stay out of the description; the
    texts of `Args` go to the parameters.
    """
    text = inspect.getdoc(function) or ""
    sections = _SECTION.split(text)
    notes: dict[str, str] = {}
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        if title in ("Args", "Arguments"):
            notes = _notes(inspect.cleandoc(body))
    return sections[0].strip(), notes


def _notes(body: str) -> dict[str, str]:
    notes: dict[str, str] = {}
    name = ""
    for line in body.splitlines():
        found = _PARAMETER.match(line)
        if found:
            name = found[1]
            notes[name] = found[2]
        elif name and line.strip():
            notes[name] = f"{notes[name]} {line.strip()}".strip()
    return notes
