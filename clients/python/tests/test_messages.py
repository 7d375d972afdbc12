"""Messages come back as they came, and what is misspelt is refused."""

from typing import Any

import pytest

import loombridge
from fake import Fake
from loombridge import _rpc
from loombridge.v1 import context_pb2 as pb

# As providers give them: OpenAI's old calls, DeepSeek's thoughts, Gemini's signatures,
# and what a library writes out though it is empty.
ASSISTANT: dict[str, Any] = {
    "role": "assistant",
    "content": "hm",
    "reasoning_content": "the user wants \u00e9, 1.0 and 1e5",
    "refusal": None,
    "annotations": [],
    "audio": None,
    "function_call": {"name": "old", "arguments": '{"n": 9007199254740993}'},
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "grep", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "AbC="}},
        }
    ],
}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "found", "is_error": False}
DEVELOPER = {"role": "developer", "content": "Be brief."}


async def test_what_a_provider_said_comes_back(live: loombridge.Client) -> None:
    user = {"role": "user", "content": [{"type": "text", "text": "q"}], "cache": {"ttl": 5}}
    await live.context.append(DEVELOPER, user, ASSISTANT, TOOL)
    prompt = await live.context.assemble(format="openai", tools=False)
    # A strict provider refuses fields that are not of Chat, and null for some that are.
    expected = [
        {
            k: v
            for k, v in m.items()
            if v is not None and k not in ("cache", "annotations", "is_error")
        }
        for m in (DEVELOPER, user, ASSISTANT, TOOL)
    ]
    assert prompt.openai()["messages"] == expected
    neutral = (await live.context.assemble(tools=False)).messages
    assert [message.role for message in neutral] == ["developer", "user", "assistant", "tool"]
    assert neutral[1].extra == {"cache": {"ttl": 5}}
    assert neutral[2].tool_calls[0].extra == {
        "extra_content": {"google": {"thought_signature": "AbC="}}
    }
    assert neutral[3].extra == {"is_error": False}
    # What was taken from a prompt can be given back as it is.
    await live.context.append(*neutral, session_id="s2")
    again = await live.context.assemble(format="openai", tools=False, session_id="s2")
    assert again.openai_json == prompt.openai_json


async def test_extras_are_kept_to_the_digit_and_counted(live: loombridge.Client) -> None:
    extra = {"a": 9007199254740993, "b": 1.0, "text": "word " * 300}
    await live.context.append(loombridge.Message("user", "hi", extra=extra))
    text = (await live.context.read_blob("message_001")).decode()
    assert '"a":9007199254740993,"b":1.0' in text
    assert (await live.context.assemble(tools=False)).tokens > 300


async def test_a_developer_is_never_folded(live: loombridge.Client) -> None:
    await live.context.append(DEVELOPER)
    for n in range(40):
        await live.context.append({"role": "assistant", "content": f"Step {n}. " * 50})
        await live.context.record_step("code:grep", {"n": n}, output=f"line {n}\n" * 200)
    prompt = await live.context.assemble(format="openai", tools=False, max_tokens=8000)
    assert prompt.receipt.folds
    assert prompt.openai()["messages"][0] == DEVELOPER


MISSPELT: list[tuple[dict[str, Any], str]] = [
    ({"role": "assistant", "toolcalls": []}, "has no field 'toolcalls': did you mean 'tool_calls'"),
    ({"role": "user", "Content": "x"}, "has no field 'Content': did you mean 'content'"),
    ({"role": "tool", "tool_callid": "c"}, "did you mean 'tool_call_id'"),
    ({"role": "user", "contents": "x"}, "did you mean 'content'"),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "functions": {"name": "f"}}]},
        "a tool call has no field 'functions': did you mean 'function'",
    ),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "costum"}]},
        "a call of type 'costum', neither 'function' nor 'custom'",
    ),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"nam": "f"}}]},
        "the function of a tool call has no field 'nam'",
    ),
    ({"role": "function", "content": "x"}, "role must be one of"),
]


@pytest.mark.parametrize(("message", "error"), MISSPELT)
async def test_what_is_misspelt_is_refused(
    fake: Fake, ctx: loombridge.Client, message: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        await ctx.context.append(message)
    assert fake.requests == []


async def test_extras_travel_as_text(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.APPEND_MESSAGES, pb.AppendMessagesResponse(positions=[1]))
    await ctx.context.append({"role": "user", "content": "x", "b": 1, "a": None, "extra": {"c": 2}})
    message = fake.requests[0].messages[0]
    assert message.extra_json == '{"c":2,"b":1}'
    with pytest.raises(TypeError, match=r"messages\[0\]\.extra is not JSON"):
        await ctx.context.append(loombridge.Message("user", extra={"a": {1}}))


async def test_the_server_refuses_extras_in_the_place_of_fields(live: loombridge.Client) -> None:
    with pytest.raises(loombridge.InvalidRequestError, match="content, which has its own field"):
        await live.context.append(loombridge.Message("user", "x", extra={"content": "y"}))


# G25
async def test_the_payload_of_a_task_loses_no_field(live: loombridge.Client) -> None:
    await live.emit("node.thinking", {"content": "so it is the cache", "importance": 0.9})
    (task,) = (await live.tool("query_l1_memory", {})).raise_for_error().output["items"]
    assert task["parameters"] == {"content": "so it is the cache"}
    with pytest.raises(loombridge.InvalidRequestError, match=r"payload\.content"):
        await live.emit("execute", {"content": 1, "parameters": {"content": 2}})
