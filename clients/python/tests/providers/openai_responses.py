"""OpenAI's Responses."""

import json
from typing import Any

from providers.rules import (
    Object,
    a_list,
    a_name,
    a_schema,
    a_text,
    an_address,
    an_object,
    data_url,
    need,
    sign,
    signed,
)
from providers.serving import Turn

FIELDS = ("model", "instructions", "input", "tools", "tool_choice", "store", "include")
NAME = r"[a-zA-Z0-9_-]{1,64}"
CALLS = {
    "function_call": ("arguments", "function_call_output"),
    "custom_tool_call": ("input", "custom_tool_call_output"),
}

HARNESS = ("local_shell_call", "shell_call", "apply_patch_call", "computer_call")
"""Calls of OpenAI's own tools that the caller runs."""

HOSTED = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "compaction",
    "item_reference",
)


def check(body: Object) -> None:
    """Refuse what Responses refuses."""
    an_object(body, "body", FIELDS, ("model", "input"))
    names = [tool(each, f"tools.{i}") for i, each in enumerate(body.get("tools", []))]
    need(len(set(names)) == len(names), "tools", "names must be unique")
    if "instructions" in body:
        a_text(body["instructions"], "instructions")
    items = a_list(body["input"], "input")
    need(items or body.get("instructions"), "input", "must not be empty")
    open_calls: dict[str, str] = {}
    known: set[str] = set()
    for i, each in enumerate(items):
        where = f"input.{i}"
        need(isinstance(each, dict), where, "is not an object")
        kind = each.get("type", "message")
        following: Object = items[i + 1] if i + 1 < len(items) else {}
        if kind in CALLS:
            argument, output = CALLS[kind]
            fields = ("type", "id", "call_id", "name", argument, "status")
            c = an_object(each, where, fields, ("call_id", "name", argument))
            a_name(c["name"], f"{where}.name", NAME)
            a_text(c[argument], f"{where}.{argument}")
            need(c["call_id"] not in known, where, "call_ids must be unique")
            known.add(c["call_id"])
            open_calls[c["call_id"]] = output
        elif kind in HARNESS:
            need(each["call_id"] not in known, where, "call_ids must be unique")
            known.add(each["call_id"])
            open_calls[each["call_id"]] = f"{kind}_output"
        elif kind.endswith("_output"):
            fields = ("type", "id", "call_id", "output", "status", "max_output_length")
            c = an_object(each, where, fields, ("call_id", "output"))
            need(
                open_calls.pop(c["call_id"], "") == kind,
                where,
                f"no tool call found for {kind} with call_id {c['call_id']}",
            )
            if kind.removesuffix("_output") in HARNESS:
                continue
            parts(c["output"], where, ("input_text", "input_image", "input_file"))
        elif kind == "reasoning":
            reasoning(each, following, where)
        elif kind == "message":
            message(each, where)
        else:
            need(kind in HOSTED, where, f"{kind!r} is unknown")
    need(not open_calls, "input", f"no tool output found for {list(open_calls)}")


def tool(value: Any, where: str) -> str:
    known = ("type", "name", "description", "parameters", "strict")
    t = an_object(value, where, known, ("type", "name", "parameters", "strict"))
    need(t["type"] == "function", where, "is no function")
    a_schema(t["parameters"], f"{where}.parameters")
    if t["strict"] is not False:
        need(t["parameters"].get("additionalProperties") is False, where, "is not strict")
    return a_name(t["name"], f"{where}.name", NAME)


def reasoning(value: Any, following: Object, where: str) -> None:
    known = ("type", "id", "summary", "content", "encrypted_content", "status")
    r = an_object(value, where, known, ("id", "summary", "encrypted_content"))
    signed(r["id"], r["encrypted_content"], where)
    role = following.get("role", "assistant")
    need(
        following
        and role == "assistant"
        and not following.get("type", "message").endswith("_output"),
        where,
        "reasoning was provided without its required following item",
    )


def message(value: Any, where: str) -> None:
    known = ("type", "role", "content", "id", "status", "phase")
    m = an_object(value, where, known, ("role", "content"))
    roles = ("user", "system", "developer", "assistant")
    need(m["role"] in roles, where, f"{m['role']!r} is no role")
    if m["role"] == "assistant" and not isinstance(m["content"], str):
        need(a_text(m.get("id"), where).startswith("msg_"), where, "the id must begin with msg_")
        parts(m["content"], where, ("output_text", "refusal"))
        return
    parts(m["content"], where, ("input_text", "input_image", "input_file"))


PARTS = {
    "input_text": (("text",), ("text",)),
    "output_text": (("text", "annotations", "logprobs"), ("text", "annotations")),
    "refusal": (("refusal",), ("refusal",)),
    "input_image": (("image_url", "file_id", "detail"), ("detail",)),
    "input_file": (("file_data", "file_id", "file_url", "filename"), ()),
}


def parts(value: Any, where: str, kinds: tuple[str, ...]) -> None:
    if isinstance(value, str):
        return
    for j, each in enumerate(a_list(value, where)):
        at = f"{where}.{j}"
        kind = each.get("type")
        need(kind in kinds, at, f"{kind!r} is not taken here")
        known, required = PARTS[kind]
        p = an_object(each, at, ("type", *known), required)
        if kind == "input_image":
            need(("image_url" in p) != ("file_id" in p), at, "has no image, or two")
            if "image_url" in p:
                data_url(p["image_url"], at, r"image/[a-z+.-]+")
        elif kind == "input_file":
            need(any(name in p for name in known[:3]), at, "has no file")
            if "file_data" in p:
                need("filename" in p, at, "filename is missing")
                data_url(p["file_data"], at, "application/pdf")
            if "file_url" in p:
                an_address(p["file_url"], at)


def answer(body: Object, turn: Turn) -> dict[str, Any]:
    """Return what the model says."""
    output: list[dict[str, Any]] = []
    if turn.thought:
        identity = "rs_1"
        output.append(
            {
                "id": identity,
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": turn.thought}],
                "encrypted_content": sign(identity),
            }
        )
    if turn.text:
        text: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        output.append(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    output += [
        {
            "id": f"fc_{i}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }
        for i, call in enumerate(turn.calls)
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": body["model"],
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 110,
        },
    }
