"""What the rules of all providers are made of."""

import base64
import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias, cast

Object: TypeAlias = Mapping[str, Any]


class RefusedError(Exception):
    """A request that the provider answers with status 400."""


def need(holds: object, where: str, problem: str) -> None:
    """Refuse the request unless something holds."""
    if not holds:
        raise RefusedError(f"{where}: {problem}")


def an_object(
    value: object, where: str, known: Collection[str], required: Collection[str]
) -> Object:
    """Return an object that has no fields but the known ones, and all required ones."""
    need(isinstance(value, dict), where, "is not an object")
    found = cast("dict[str, Any]", value)
    for name in required:
        need(name in found, where, f"{name} is missing")
    for name in found:
        need(name in known, where, f"{name} is not permitted")
    return found


def a_list(value: object, where: str) -> Sequence[Any]:
    need(isinstance(value, list), where, "is not a list")
    return cast("list[Any]", value)


def a_text(value: object, where: str) -> str:
    need(isinstance(value, str), where, "is not a text")
    return cast("str", value)


def a_name(value: object, where: str, pattern: str) -> str:
    name = a_text(value, where)
    need(re.fullmatch(pattern, name), where, f"{name!r} does not match {pattern}")
    return name


def some_base64(value: object, where: str, *, web: bool = False) -> bytes:
    """Return the bytes of a text; `web` takes the alphabet of addresses, too."""
    text = a_text(value, where)
    if web:
        text = text.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    need(data, where, "is not base64")
    return data


def an_address(value: object, where: str) -> None:
    need(re.match(r"https?://\S+$", a_text(value, where)), where, "is no web address")


def data_url(value: object, where: str, kinds: str) -> None:
    """Take a data URL of a media type, or a web address."""
    text = a_text(value, where)
    if text.startswith("data:"):
        kind, _, payload = text.partition(";base64,")
        need(re.fullmatch(f"data:{kinds}", kind), where, f"{kind} is not taken")
        some_base64(payload, where)
    else:
        an_address(text, where)


def json_object(value: object, where: str) -> None:
    try:
        decoded = json.loads(a_text(value, where))
    except ValueError:
        decoded = None
    need(isinstance(decoded, dict), where, "is not a JSON object")


KINDS = ("object", "array", "string", "number", "integer", "boolean", "null")


def a_schema(value: object, where: str, *, root: bool = True) -> None:
    """Take a JSON Schema of arguments: its root is an object without alternatives."""
    need(isinstance(value, dict), where, "is not an object")
    schema = cast("dict[str, Any]", value)
    if root:
        need(schema.get("type") == "object", where, "the type is not 'object'")
        for name in ("anyOf", "oneOf", "allOf", "not", "enum"):
            need(name not in schema, where, f"{name} is not permitted at the top level")
    kinds = schema.get("type", "object")
    for kind in cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]:
        need(kind in KINDS, where, f"{kind!r} is no type")
    properties = schema.get("properties", {})
    need(isinstance(properties, dict), where, "the properties are no object")
    for name, inner in cast("dict[str, Any]", properties).items():
        if inner is not True:
            a_schema(inner, f"{where}.properties.{name}", root=False)
    for name in a_list(schema.get("required", []), f"{where}.required"):
        a_text(name, f"{where}.required")
    items = schema.get("items")
    if isinstance(items, dict):
        a_schema(cast("dict[str, Any]", items), f"{where}.items", root=False)


def sign(thought: str) -> str:
    """Sign a thought as the pretended provider does."""
    return base64.b64encode(hashlib.sha256(f"thought {thought}".encode()).digest()).decode()


def signed(thought: str, signature: object, where: str) -> None:
    need(signature == sign(thought), where, "the signature is not that of the thought")
