"""OpenAI's Chat Completions."""

import json
from typing import Any, cast

from providers.rules import (
    Object,
    a_list,
    a_name,
    a_schema,
    a_text,
    an_object,
    data_url,
    json_object,
    need,
    some_base64,
)
from providers.serving import Turn

FIELDS = ("model", "messages", "tools", "tool_choice", "max_tokens", "max_completion_tokens")
NAME = r"[a-zA-Z0-9_-]{1,64}"

ROLES = {
    "system": (("name",), ("content",)),
    "developer": (("name",), ("content",)),
    "user": (("name",), ("content",)),
    "assistant": (("name", "tool_calls", "refusal", "audio"), ()),
    "tool": (("name", "tool_call_id"), ("content", "tool_call_id")),
}


def check(body: Object) -> None:
    """Refuse what Chat Completions refuses."""
    an_object(body, "body", FIELDS, ("model", "messages"))
    if "tools" in body:
        need(body["tools"], "tools", "must not be empty")
    names = [tool(each, f"tools.{i}") for i, each in enumerate(body.get("tools", []))]
    need(len(set(names)) == len(names), "tools", "names must be unique")
    messages = a_list(body["messages"], "messages")
    need(messages, "messages", "at least one message is required")
    open_calls: list[str] = []
    for i, each in enumerate(messages):
        where = f"messages.{i}"
        need(isinstance(each, dict), where, "is not an object")
        each = cast("Object", each)
        need(each.get("role") in ROLES, where, "has no known role")
        known, required = ROLES[each["role"]]
        m = an_object(each, where, ("role", "content", *known), required)
        if m["role"] == "tool":
            need(
                m["tool_call_id"] in open_calls,
                where,
                "a tool message must follow a message with its tool_calls",
            )
            open_calls.remove(m["tool_call_id"])
        else:
            need(not open_calls, where, f"tool_call_ids without a response: {open_calls}")
            open_calls = calls(m, where)
        content(m, where)
        if "name" in m:
            a_name(m["name"], f"{where}.name", NAME)
    need(not open_calls, "messages", f"tool_call_ids without a response: {open_calls}")


def tool(value: Any, where: str) -> str:
    t = an_object(value, where, ("type", "function"), ("type", "function"))
    need(t["type"] == "function", where, "is no function")
    known = ("name", "description", "parameters", "strict")
    f = an_object(t["function"], where, known, ("name",))
    if "parameters" in f:
        a_schema(f["parameters"], f"{where}.parameters")
    return a_name(f["name"], f"{where}.name", NAME)


def calls(m: Object, where: str) -> list[str]:
    """Check the calls of a message; return their ids."""
    found: list[str] = []
    if "tool_calls" in m:
        need(m["tool_calls"], where, "tool_calls must not be empty")
    for j, each in enumerate(m.get("tool_calls", [])):
        at = f"{where}.tool_calls.{j}"
        need(isinstance(each, dict), at, "is not an object")
        kind = str(cast("Object", each).get("type"))
        need(kind in ("function", "custom"), at, "is neither a function nor custom")
        given = "arguments" if kind == "function" else "input"
        call = an_object(each, at, ("id", "type", kind), ("id", "type", kind))
        f = an_object(call[kind], at, ("name", given), ("name", given))
        a_name(f["name"], f"{at}.name", NAME)
        a_text(f[given], f"{at}.{given}")
        need(call["id"] not in found, at, "ids must be unique in a message")
        found.append(a_text(call["id"], at))
    return found


PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}


def content(m: Object, where: str) -> None:
    value = m.get("content")
    if value is None:
        need(m["role"] == "assistant", where, "content must not be null")
        need(m.get("tool_calls") or m.get("refusal"), where, "content is missing")
        return
    if isinstance(value, str):
        return
    blocks = a_list(value, f"{where}.content")
    need(blocks, where, "content must not be empty")
    for j, each in enumerate(blocks):
        at = f"{where}.content.{j}"
        kind = each.get("type")
        need(kind in PARTS[m["role"]], at, f"a {kind} is not taken from {m['role']}")
        part(each, kind, at)


def part(value: Any, kind: str, where: str) -> None:
    p = an_object(value, where, ("type", kind), (kind,))[kind]
    match kind:
        case "image_url":
            an_object(p, where, ("url", "detail"), ("url",))
            data_url(p["url"], where, r"image/[a-z+.-]+")
            need(p.get("detail", "auto") in ("auto", "low", "high"), where, "detail")
        case "input_audio":
            an_object(p, where, ("data", "format"), ("data", "format"))
            need(p["format"] in ("wav", "mp3"), where, "format")
            some_base64(p["data"], where)
        case "file":
            an_object(p, where, ("file_id", "file_data", "filename"), ())
            need("file_id" in p or "file_data" in p, where, "has no file")
            if "file_data" in p:
                need("filename" in p, where, "filename is missing")
                data_url(p["file_data"], where, "application/pdf")
        case _:
            a_text(p, where)


def answer(body: Object, turn: Turn) -> dict[str, Any]:
    """Return what the model says."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": dumped(call.arguments)},
            }
            for call in turn.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if turn.calls else "stop",
        "logprobs": None,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def dumped(arguments: dict[str, Any]) -> str:
    """Return the arguments of a call as text."""
    text = json.dumps(arguments)
    json_object(text, "arguments")
    return text
