"""The local providers refuse what the real ones refuse: a request for each rule."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from providers import (
    RefusedError,
    anthropic_messages,
    gemini_content,
    openai_chat,
    openai_responses,
)
from providers.rules import sign

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PNG = "iVBORw0KGgo="

Body = Any
Spoil = Callable[[Any], object]


def anthropic() -> Body:
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be kind."}],
        "tools": [{"name": "fs_read_file", "description": "Reads.", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": sign("hm")},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "fs_read_file", "input": {}},
                    {"type": "tool_use", "id": "t2", "name": "fs_read_file", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "a"},
                    {"type": "tool_result", "tool_use_id": "t2", "content": []},
                    {"type": "text", "text": "Goal: go on"},
                ],
            },
        ],
    }
    return body


def chat() -> Body:
    function = {"name": "fs_read_file", "description": "Reads.", "parameters": SCHEMA}
    called = {"name": "fs_read_file", "arguments": "{}"}
    body: dict[str, Any] = {
        "model": "gpt-4o",
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": called},
                    {"id": "c2", "type": "function", "function": called},
                ],
            },
            {"role": "tool", "content": "a", "tool_call_id": "c2"},
            {"role": "tool", "content": "b", "tool_call_id": "c1"},
            {"role": "user", "content": "Goal: go on"},
        ],
    }
    return body


def responses() -> Body:
    call: dict[str, Any] = {"type": "function_call", "name": "fs_read_file", "arguments": "{}"}
    body: dict[str, Any] = {
        "model": "gpt-5",
        "instructions": "Be kind.",
        "tools": [
            {"type": "function", "name": "fs_read_file", "parameters": SCHEMA, "strict": False}
        ],
        "input": [
            {"type": "message", "role": "user", "content": "Look"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sign("rs_1")},
            {**call, "call_id": "c1"},
            {**call, "call_id": "c2"},
            {"type": "function_call_output", "call_id": "c1", "output": "a"},
            {"type": "function_call_output", "call_id": "c2", "output": "b"},
            {"type": "message", "role": "user", "content": "Goal: go on"},
        ],
    }
    return body


def gemini() -> Body:
    call: dict[str, Any] = {"functionCall": {"name": "fs_read_file", "args": {}}}
    response = {"functionResponse": {"name": "fs_read_file", "response": {"output": "a"}}}
    body: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "fs_read_file", "description": "Reads.", "parameters": SCHEMA}
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "Look"}]},
            {"role": "model", "parts": [{**call, "thoughtSignature": sign("gemini")}, call]},
            {"role": "user", "parts": [response, response, {"text": "Goal: go on"}]},
        ],
    }
    return body


def mark(*blocks: Any, ttl: str = "5m") -> None:
    for block in blocks:
        block["cache_control"] = {"type": "ephemeral", "ttl": ttl}


def five_marks(b: Body) -> None:
    content = b["messages"][2]["content"]
    mark(b["tools"][0], b["system"][0], *content)


ANTHROPIC: dict[str, tuple[Spoil, str]] = {
    "an unknown field": (lambda b: b.update(contents=[]), "contents is not permitted"),
    "an unknown field of a message": (lambda b: b["messages"][0].update(name="ann"), "permitted"),
    "an unknown field of a block": (
        lambda b: b["messages"][0]["content"][0].update(id="1"),
        "id is not permitted",
    ),
    "no messages": (lambda b: b.update(messages=[]), "at least one"),
    "no max_tokens": (lambda b: b.pop("max_tokens"), "max_tokens is missing"),
    "the model begins": (lambda b: b["messages"].pop(0), "the first message must be the user's"),
    "two messages of the user": (
        lambda b: b["messages"].insert(0, b["messages"][0]),
        "roles must alternate",
    ),
    "a system message within": (
        lambda b: b["messages"].insert(1, {"role": "system", "content": "x"}),
        "no role here",
    ),
    "a call without a result": (
        lambda b: b["messages"][2]["content"].pop(1),
        "tool_use t2 has no tool_result",
    ),
    "a call at the end": (lambda b: b["messages"].pop(), "has no tool_result"),
    "a result without a call": (
        lambda b: b["messages"][1]["content"].pop(),
        "tool_result t2 has no tool_use",
    ),
    "a result twice": (
        lambda b: b["messages"][2]["content"].insert(0, b["messages"][2]["content"][0]),
        "answered twice",
    ),
    "results behind text": (
        lambda b: b["messages"][2]["content"].reverse(),
        "tool_result blocks come first",
    ),
    "an id twice": (lambda b: b["messages"].extend(b["messages"][1:]), "must be unique"),
    "an id with a dot": (lambda b: b["messages"][1]["content"][2].update(id="a.b"), "match"),
    "five cache marks": (five_marks, "more than 4 blocks"),
    "an hour behind minutes": (
        lambda b: (mark(b["tools"][0]), mark(b["system"][0], ttl="1h")),
        "1h comes behind",
    ),
    "a mark on a thought": (lambda b: mark(b["messages"][1]["content"][0]), "no cache_control"),
    "a blank text": (lambda b: b["messages"][0]["content"][0].update(text=" \n"), "empty"),
    "no content": (lambda b: b["messages"][0].update(content=[]), "must not be empty"),
    "a thought behind text": (
        lambda b: b["messages"][1]["content"].insert(0, {"type": "text", "text": "x"}),
        "begins with one",
    ),
    "an edited thought": (
        lambda b: b["messages"][1]["content"][0].update(thinking="other"),
        "signature",
    ),
    "a thought of the user": (
        lambda b: b["messages"][0]["content"].append(b["messages"][1]["content"][0]),
        "belongs into assistant",
    ),
    "a call of the user": (
        lambda b: b["messages"][0]["content"].append(b["messages"][1]["content"][2]),
        "belongs into assistant",
    ),
    "a tool with a colon": (lambda b: b["tools"][0].update(name="fs:read_file"), "match"),
    "a call with a colon": (
        lambda b: b["messages"][1]["content"][2].update(name="fs:read_file"),
        "match",
    ),
    "a tool twice": (lambda b: b["tools"].append(b["tools"][0]), "unique"),
    "a schema of alternatives": (
        lambda b: b["tools"][0]["input_schema"].update(anyOf=[]),
        "at the top level",
    ),
    "a schema of a text": (lambda b: b["tools"][0]["input_schema"].update(type="text"), "type"),
    "arguments that are no object": (
        lambda b: b["messages"][1]["content"][2].update(input="{}"),
        "not an object",
    ),
    "an image of another type": (
        lambda b: b["messages"][0]["content"].append(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/bmp", "data": PNG},
            }
        ),
        "image/bmp is not taken",
    ),
    "an OpenAI block": (
        lambda b: b["messages"][0]["content"].append({"type": "image_url"}),
        "no type of a block",
    ),
    "white space at the end": (
        lambda b: b["messages"].append(
            {"role": "assistant", "content": [{"type": "text", "text": "x "}]}
        ),
        "ends in white space",
    ),
}

CHAT: dict[str, tuple[Spoil, str]] = {
    "an unknown field": (lambda b: b.update(input=[]), "input is not permitted"),
    "an unknown field of a message": (
        lambda b: b["messages"][2].update(reasoning="x"),
        "reasoning is not permitted",
    ),
    "an unknown role": (lambda b: b["messages"][2].update(role="human"), "no known role"),
    "a call without a result": (lambda b: b["messages"].pop(4), "without a response"),
    "a call at the end": (lambda b: b.update(messages=b["messages"][:4]), "without a response"),
    "a result without a call": (lambda b: b["messages"].pop(3), "must follow"),
    "a result behind other words": (
        lambda b: b["messages"].insert(5, b["messages"][2]),
        "without a response",
    ),
    "an id twice in a message": (
        lambda b: b["messages"][3]["tool_calls"][1].update(id="c1"),
        "unique",
    ),
    "an image in a result": (
        lambda b: b["messages"][4].update(content=[{"type": "image_url", "image_url": {}}]),
        "not taken from tool",
    ),
    "an Anthropic block": (
        lambda b: b["messages"][2].update(content=[{"type": "tool_result"}]),
        "not taken from user",
    ),
    "a tool with a colon": (
        lambda b: b["tools"][0]["function"].update(name="fs:read_file"),
        "match",
    ),
    "a speaker with a blank": (lambda b: b["messages"][2].update(name="a b"), "match"),
    "a schema of alternatives": (
        lambda b: b["tools"][0]["function"]["parameters"].update(oneOf=[]),
        "at the top level",
    ),
    "no content": (lambda b: b["messages"][2].update(content=None), "must not be null"),
    "no tools": (lambda b: b.update(tools=[]), "must not be empty"),
    "a call of another form": (
        lambda b: b["messages"][3]["tool_calls"][0].pop("function"),
        "function is missing",
    ),
}

RESPONSES: dict[str, tuple[Spoil, str]] = {
    "an unknown field": (lambda b: b.update(messages=[]), "messages is not permitted"),
    "an unknown item": (lambda b: b["input"].append({"type": "tool_use"}), "unknown"),
    "a call without an output": (lambda b: b["input"].pop(4), "no tool output found"),
    "an output without a call": (lambda b: b["input"].pop(2), "no tool call found"),
    "a call_id twice": (lambda b: b["input"].insert(3, b["input"][2]), "unique"),
    "an output of another kind": (
        lambda b: b["input"][4].update(type="custom_tool_call_output"),
        "no tool call found",
    ),
    "a thought of nothing": (
        lambda b: b["input"].append(b["input"][1]),
        "without its required following item",
    ),
    "an edited thought": (lambda b: b["input"][1].update(id="rs_2"), "signature"),
    "an unknown block": (
        lambda b: b["input"][0].update(content=[{"type": "text", "text": "x"}]),
        "not taken here",
    ),
    "an output text of the user": (
        lambda b: b["input"][0].update(content=[{"type": "output_text", "text": "x"}]),
        "not taken here",
    ),
    "a tool with a colon": (lambda b: b["tools"][0].update(name="fs:read_file"), "match"),
    "a strict schema that is none": (lambda b: b["tools"][0].update(strict=True), "strict"),
    "a tool in the form of Chat": (
        lambda b: b["tools"][0].update(function={}),
        "function is not permitted",
    ),
    "a role of Chat": (
        lambda b: b["input"][0].update(role="tool"),
        "no role",
    ),
}

GEMINI: dict[str, tuple[Spoil, str]] = {
    "an unknown field": (lambda b: b.update(messages=[]), "messages is not permitted"),
    "an unknown part": (
        lambda b: b["contents"][0]["parts"].append({"type": "text", "text": "x"}),
        "type is not permitted",
    ),
    "the model begins": (lambda b: b["contents"].pop(0), "the user must begin"),
    "a role of OpenAI": (lambda b: b["contents"][1].update(role="assistant"), "no role"),
    "two of the user": (lambda b: b["contents"].insert(0, b["contents"][0]), "alternate"),
    "a response too few": (lambda b: b["contents"][2]["parts"].pop(0), "number of function"),
    "a response too many": (
        lambda b: b["contents"][2]["parts"].insert(0, b["contents"][2]["parts"][0]),
        "number of function",
    ),
    "a call at the end": (lambda b: b["contents"].pop(), "without responses"),
    "a response of another name": (
        lambda b: b["contents"][2]["parts"][0].update(
            functionResponse={"name": "other", "response": {}}
        ),
        "other names",
    ),
    "responses behind text": (lambda b: b["contents"][2]["parts"].reverse(), "come first"),
    "a call without a signature": (
        lambda b: b["contents"][1]["parts"][0].pop("thoughtSignature"),
        "missing a thought_signature",
    ),
    "an edited signature": (
        lambda b: b["contents"][1]["parts"][0].update(thoughtSignature="AAAA"),
        "signature is not valid",
    ),
    "an empty text": (lambda b: b["contents"][0]["parts"][0].update(text=""), "not be empty"),
    "no parts": (lambda b: b["contents"][0].update(parts=[]), "must have parts"),
    "a response that is a text": (
        lambda b: b["contents"][2]["parts"][0]["functionResponse"].update(response="a"),
        "not an object",
    ),
    "a schema with additionalProperties": (
        lambda b: b["tools"][0]["functionDeclarations"][0]["parameters"].update(
            additionalProperties=False
        ),
        "not permitted",
    ),
    "a schema without properties": (
        lambda b: b["tools"][0]["functionDeclarations"][0].update(parameters={"type": "object"}),
        "non-empty",
    ),
    "two types": (
        lambda b: b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"].update(
            path={"type": ["string", "null"]}
        ),
        "is no type",
    ),
    "a name with a blank": (
        lambda b: b["tools"][0]["functionDeclarations"][0].update(name="read file"),
        "match",
    ),
}


def cases() -> list[Any]:
    """Return every rule of every provider."""
    providers: list[tuple[str, Any, Callable[[], Body], dict[str, tuple[Spoil, str]]]] = [
        ("anthropic", anthropic_messages, anthropic, ANTHROPIC),
        ("openai", openai_chat, chat, CHAT),
        ("responses", openai_responses, responses, RESPONSES),
        ("gemini", gemini_content, gemini, GEMINI),
    ]
    return [
        pytest.param(module, body, spoil, problem, id=f"{name}: {rule}")
        for name, module, body, rules in providers
        for rule, (spoil, problem) in rules.items()
    ]


@pytest.mark.parametrize(("module", "body", "spoil", "problem"), cases())
def test_a_request_that_is_refused(
    module: Any, body: Callable[[], Body], spoil: Spoil, problem: str
) -> None:
    module.check(copy.deepcopy(body()))
    spoiled = copy.deepcopy(body())
    spoil(spoiled)
    with pytest.raises(RefusedError, match=problem):
        module.check(spoiled)
