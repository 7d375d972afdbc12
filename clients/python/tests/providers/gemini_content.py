"""Gemini's generateContent."""

import base64
from typing import Any, cast

from providers.rules import (
    Object,
    a_list,
    a_name,
    a_text,
    an_object,
    need,
    sign,
    some_base64,
)
from providers.serving import Turn

FIELDS = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")
NAME = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"

FOREIGN = b"skip_thought_signature_validator"
"""What stands in for the signature of a call that another model made."""


def camel(value: Any, key: str = "") -> Any:
    """Return JSON with the names of fields as they are: they may come as in the proto, too."""
    if isinstance(value, list):
        return [camel(inner, key) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict) or key in ("args", "response"):
        return cast("Any", value)
    found: dict[str, Any] = {}
    for name, inner in cast("dict[str, Any]", value).items():
        first, *rest = name.split("_") if key != "properties" else [name]
        named = first + "".join(word.capitalize() for word in rest)
        found[named] = camel(inner, named if key != "properties" else "")
    return found


def check(body: Object) -> None:
    """Refuse what generateContent refuses."""
    body = camel(body)
    an_object(body, "body", FIELDS, ("contents",))
    names: list[str] = []
    for i, each in enumerate(body.get("tools", [])):
        t = an_object(each, f"tools.{i}", ("functionDeclarations",), ("functionDeclarations",))
        names += [declared(f, f"tools.{i}.{j}") for j, f in enumerate(t["functionDeclarations"])]
    need(len(set(names)) == len(names), "tools", "names must be unique")
    if "systemInstruction" in body:
        system = an_object(body["systemInstruction"], "system", ("parts", "role"), ("parts",))
        for i, each in enumerate(a_list(system["parts"], "system")):
            need("text" in an_object(each, f"system.{i}", ("text",), ()), "system", "is no text")
    contents = a_list(body["contents"], "contents")
    need(contents, "contents", "must not be empty")
    asked: list[str] = []
    before = ""
    for i, each in enumerate(contents):
        where = f"contents.{i}"
        c = an_object(each, where, ("role", "parts"), ("role", "parts"))
        need(c["role"] in ("user", "model"), where, f"{c['role']!r} is no role")
        need(i > 0 or c["role"] == "user", where, "the user must begin")
        need(c["role"] != before, where, "roles must alternate")
        before = c["role"]
        parts = a_list(c["parts"], where)
        need(parts, where, "must have parts")
        for j, p in enumerate(parts):
            part(p, c["role"], f"{where}.{j}")
        answers = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        need(
            len(answers) == len(asked),
            where,
            "the number of function response parts is not that of the function call parts",
        )
        need(sorted(answers) == sorted(asked), where, "function responses have other names")
        need(
            all("functionResponse" in p for p in parts[: len(answers)]),
            where,
            "function responses come first",
        )
        asked = called(parts, where)
    need(not asked, "contents", f"function calls without responses: {asked}")


def called(parts: Any, where: str) -> list[str]:
    """Return the names of the calls; the first one is signed."""
    calls = [p for p in parts if "functionCall" in p]
    if calls:
        need("thoughtSignature" in calls[0], where, "function call is missing a thought_signature")
    return [p["functionCall"]["name"] for p in calls]


def part(value: Any, role: str, where: str) -> None:
    run = ("executableCode", "codeExecutionResult")
    kinds = ("text", "functionCall", "functionResponse", "inlineData", "fileData", *run)
    p = an_object(value, where, (*kinds, "thought", "thoughtSignature"), ())
    need(sum(kind in p for kind in kinds) == 1, where, "must have exactly one kind of data")
    if "thoughtSignature" in p:
        signature = some_base64(p["thoughtSignature"], where, web=True)
        need(
            signature in (FOREIGN, base64.b64decode(sign("gemini"))),
            where,
            "the thought signature is not valid",
        )
    if "text" in p:
        need(a_text(p["text"], where) or "thoughtSignature" in p, where, "text must not be empty")
    elif "functionCall" in p:
        need(role == "model", where, "a function call is the model's")
        call = an_object(p["functionCall"], where, ("id", "name", "args"), ("name",))
        a_name(call["name"], where, NAME)
        need(isinstance(call.get("args", {}), dict), where, "args is not an object")
    elif "functionResponse" in p:
        need(role == "user", where, "a function response is the user's")
        known = ("id", "name", "response", "parts")
        response = an_object(p["functionResponse"], where, known, ("name", "response"))
        need(isinstance(response["response"], dict), where, "response is not an object")
        for j, each in enumerate(response.get("parts", [])):
            inner = an_object(each, f"{where}.{j}", ("inlineData", "fileData"), ())
            data(inner, f"{where}.{j}")
    elif any(kind in p for kind in run):
        need(role == "model", where, "code that ran is the model's")
    else:
        data(p, where)


def data(p: Object, where: str) -> None:
    if "inlineData" in p:
        blob = an_object(p["inlineData"], where, ("mimeType", "data"), ("mimeType", "data"))
        some_base64(blob["data"], where, web=True)
    else:
        file = an_object(p["fileData"], where, ("mimeType", "fileUri"), ("fileUri",))
        a_text(file["fileUri"], where)


SCHEMA = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
    "example",
]
KINDS = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}


def declared(value: Any, where: str) -> str:
    f = an_object(value, where, ("name", "description", "parameters"), ("name", "description"))
    if "parameters" in f:
        schema(f["parameters"], f"{where}.parameters")
        need(str(f["parameters"]["type"]).upper() == "OBJECT", where, "parameters are an object")
        need(f["parameters"].get("properties"), where, "properties should be non-empty for OBJECT")
    return a_name(f["name"], where, NAME)


def schema(value: Any, where: str) -> None:
    s = an_object(value, where, SCHEMA, ())
    kind = str(s.get("type", "")).upper()
    need(kind in KINDS or "anyOf" in s, where, f"{kind!r} is no type")
    if "format" in s:
        need(s["format"] in FORMATS.get(kind, ()), where, f"format {s['format']!r}")
    if "enum" in s:
        need(kind == "STRING" and all(isinstance(e, str) and e for e in s["enum"]), where, "enum")
    need(kind != "ARRAY" or "items" in s, where, "items is missing")
    for name, inner in s.get("properties", {}).items():
        schema(inner, f"{where}.{name}")
    for name in s.get("required", []):
        need(name in s.get("properties", {}), where, f"required {name} is no property")
    for inner in [*s.get("anyOf", []), *([s["items"]] if "items" in s else [])]:
        schema(inner, where)


def answer(body: Object, turn: Turn) -> dict[str, Any]:
    """Return what the model says."""
    parts: list[dict[str, Any]] = []
    if turn.thought:
        parts.append({"text": turn.thought, "thought": True})
    if turn.text:
        parts.append({"text": turn.text})
    for i, call in enumerate(turn.calls):
        found: dict[str, Any] = {"functionCall": {"name": call.name, "args": call.arguments}}
        if i == 0:
            found["thoughtSignature"] = sign("gemini")
        parts.append(found)
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        ],
        "modelVersion": body["model"],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 10,
            "totalTokenCount": 110,
        },
    }
