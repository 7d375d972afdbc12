"""Anthropic's Messages API."""

from typing import Any

from providers.rules import (
    Object,
    a_list,
    a_name,
    a_schema,
    a_text,
    an_address,
    an_object,
    need,
    sign,
    signed,
    some_base64,
)
from providers.serving import Turn

FIELDS = ("model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream")
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_MARKS = 4


def check(body: Object) -> None:
    """Refuse what the Messages API refuses."""
    an_object(body, "body", FIELDS, ("model", "max_tokens", "messages"))
    marks = Marks()
    names = [tool(each, f"tools.{i}", marks) for i, each in enumerate(body.get("tools", []))]
    need(len(set(names)) == len(names), "tools", "names must be unique")
    system = body.get("system", "")
    if not isinstance(system, str):
        for i, each in enumerate(a_list(system, "system")):
            need(each.get("type") == "text", f"system.{i}", "is no text")
            block(each, f"system.{i}", marks)
    conversation(a_list(body["messages"], "messages"), marks)


class Marks:
    """The cache marks so far."""

    def __init__(self) -> None:
        self.count = 0
        self.minutes = False

    def see(self, holder: Object, where: str) -> None:
        mark = holder.get("cache_control")
        if mark is None:
            return
        where = f"{where}.cache_control"
        an_object(mark, where, ("type", "ttl"), ("type",))
        need(mark["type"] == "ephemeral", where, "is of an unknown type")
        need(mark.get("ttl", "5m") in ("5m", "1h"), where, "has an unknown ttl")
        hour = mark.get("ttl") == "1h"
        need(not (hour and self.minutes), where, "a ttl of 1h comes behind one of 5m")
        self.minutes = self.minutes or not hour
        self.count += 1
        need(self.count <= MAX_MARKS, where, f"more than {MAX_MARKS} blocks have cache_control")


def tool(value: Any, where: str, marks: Marks) -> str:
    known = ("name", "description", "input_schema", "cache_control", "type", "strict")
    t = an_object(value, where, known, ("name", "input_schema"))
    a_schema(t["input_schema"], f"{where}.input_schema")
    marks.see(t, where)
    return a_name(t["name"], f"{where}.name", r"[a-zA-Z0-9_-]{1,128}")


def conversation(messages: Any, marks: Marks) -> None:
    need(messages, "messages", "at least one message is required")
    asked: list[str] = []
    ids: set[str] = set()
    before = ""
    for i, each in enumerate(messages):
        where = f"messages.{i}"
        m = an_object(each, where, ("role", "content"), ("role", "content"))
        need(m["role"] in ("user", "assistant"), where, f"{m['role']!r} is no role here")
        need(i > 0 or m["role"] == "user", where, "the first message must be the user's")
        need(m["role"] != before, where, "roles must alternate")
        before = m["role"]
        content = m["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = a_list(content, f"{where}.content")
        need(blocks, where, "content must not be empty")
        answered = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        for each_id in asked:
            need(each_id in answered, where, f"tool_use {each_id} has no tool_result")
        for each_id in answered:
            need(each_id in asked, where, f"tool_result {each_id} has no tool_use before it")
        need(len(set(answered)) == len(answered), where, "a tool_use is answered twice")
        asked = said(blocks, m["role"], where, ids, marks)
    need(not asked, "messages", f"tool_use {asked} has no tool_result")
    last = messages[-1]
    if last["role"] == "assistant":
        text = last["content"][-1].get("text", "")
        need(text == text.rstrip(), "messages", "the last assistant text ends in white space")


def said(blocks: Any, role: str, where: str, ids: set[str], marks: Marks) -> list[str]:
    """Check the blocks of a message; return the ids of its calls."""
    thoughts = ("thinking", "redacted_thinking")
    calls: list[str] = []
    for j, each in enumerate(blocks):
        at = f"{where}.content.{j}"
        block(each, at, marks)
        kind = each["type"]
        if kind in (*thoughts, "tool_use"):
            need(role == "assistant", at, f"{kind} belongs into assistant messages")
        if kind in ("tool_result", "image", "document"):
            need(role == "user", at, f"{kind} belongs into user messages")
        if kind in OWN or kind.endswith("_tool_result"):
            need(role == "assistant", at, f"{kind} belongs into assistant messages")
        if kind.endswith("_tool_result"):
            before = [b.get("id") for b in blocks[:j] if b["type"] in OWN]
            need(each["tool_use_id"] in before, at, "has no tool use before it")
        if kind == "tool_result":
            need(all(b["type"] == kind for b in blocks[:j]), at, "tool_result blocks come first")
        if kind in thoughts:
            need(blocks[0]["type"] in thoughts, at, "a message with thoughts begins with one")
        if kind == "tool_use":
            need(each["id"] not in ids, at, "tool_use ids must be unique")
            ids.add(each["id"])
            calls.append(each["id"])
    return calls


BLOCKS = {
    "text": (("text", "citations"), ("text",)),
    "thinking": (("thinking", "signature"), ("thinking", "signature")),
    "redacted_thinking": (("data",), ("data",)),
    "tool_use": (("id", "name", "input", "caller"), ("id", "name", "input")),
    "tool_result": (("tool_use_id", "content", "is_error"), ("tool_use_id",)),
    "image": (("source",), ("source",)),
    "document": (("source", "title", "context", "citations"), ("source",)),
    "search_result": (("source", "title", "content", "citations"), ("source", "title", "content")),
    "server_tool_use": (("id", "name", "input"), ("id", "name", "input")),
    "mcp_tool_use": (("id", "name", "server_name", "input"), ("id", "name", "server_name")),
    "web_search_tool_result": (("tool_use_id", "content"), ("tool_use_id", "content")),
    "code_execution_tool_result": (("tool_use_id", "content"), ("tool_use_id", "content")),
    "mcp_tool_result": (("tool_use_id", "is_error", "content"), ("tool_use_id", "content")),
    "compaction": (("content",), ("content",)),
    "container_upload": (("file_id",), ("file_id",)),
}
OWN = ("server_tool_use", "mcp_tool_use", "compaction")
"""What the model says of tools that the provider runs; results of those belong to it, too."""


def block(value: Any, where: str, marks: Marks) -> None:
    """Check a content block by itself."""
    need(isinstance(value, dict), where, "is not an object")
    kind = value.get("type")
    need(kind in BLOCKS, where, f"{kind!r} is no type of a block")
    known, required = BLOCKS[kind]
    b = an_object(value, where, ("type", "cache_control", *known), required)
    marks.see(b, where)
    match kind:
        case "text":
            need(a_text(b["text"], where).strip(), where, "text must not be empty")
        case "thinking":
            need("cache_control" not in b, where, "thinking takes no cache_control")
            signed(b["thinking"], b["signature"], where)
        case "redacted_thinking":
            need("cache_control" not in b, where, "thinking takes no cache_control")
            some_base64(b["data"], where)
        case "tool_use":
            a_name(b["id"], f"{where}.id", r"[a-zA-Z0-9_-]+")
            a_name(b["name"], f"{where}.name", r"[a-zA-Z0-9_-]{1,128}")
            need(isinstance(b["input"], dict), where, "input is not an object")
        case "tool_result":
            content = b.get("content", "")
            if not isinstance(content, str):
                for j, each in enumerate(a_list(content, f"{where}.content")):
                    kinds = ("text", "image", "document", "search_result")
                    need(each["type"] in kinds, where, "content")
                    block(each, f"{where}.content.{j}", marks)
        case "image":
            source(b["source"], f"{where}.source", IMAGES)
        case "document":
            source(b["source"], f"{where}.source", ("application/pdf",))
        case _:
            pass


def source(value: Any, where: str, kinds: tuple[str, ...]) -> None:
    kind = value.get("type")
    if kind == "url":
        an_address(an_object(value, where, ("type", "url"), ("url",))["url"], where)
        return
    s = an_object(value, where, ("type", "media_type", "data"), ("media_type", "data"))
    if kind == "text" and kinds[0] not in IMAGES:
        need(s["media_type"] == "text/plain", where, "a text is text/plain")
        need(a_text(s["data"], where).strip(), where, "text must not be empty")
        return
    need(kind == "base64", where, f"{kind!r} is no source")
    need(s["media_type"] in kinds, where, f"{s['media_type']} is not taken")
    some_base64(s["data"], where)


def answer(body: Object, turn: Turn) -> dict[str, Any]:
    """Return what the model says."""
    content: list[dict[str, Any]] = []
    if turn.thought:
        thinking = {"type": "thinking", "thinking": turn.thought, "signature": sign(turn.thought)}
        content.append(thinking)
    if turn.text:
        content.append({"type": "text", "text": turn.text, "citations": None})
    for call in turn.calls:
        use = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        content.append(use)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 0},
    }
