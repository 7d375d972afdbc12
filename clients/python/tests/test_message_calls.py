"""What a message asks for, whoever wrote it."""

import dataclasses
from base64 import b64decode
from typing import Any

import pytest

import loombridge
from loombridge import Message, ToolCall

GEMINI: dict[str, Any] = {
    "role": "model",
    "parts": [
        {"text": "x"},
        {"functionCall": {"name": "n", "args": {}}},
        {"functionCall": {"name": "m", "id": "7"}},
        {"function_call": {"name": "n", "args": {"a": 1}}},
    ],
}
TWICE: dict[str, Any] = {
    "role": "model",
    "parts": [
        {"functionCall": {"name": "fs_list_dir", "args": {}}, "thoughtSignature": "c2lnbmVk"},
        {"functionCall": {"name": "fs_list_dir", "args": {}}},
    ],
}


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        (Message("assistant", "hm"), ()),
        (Message("assistant", tool_calls=(ToolCall("1", "n", "{}"),)), (ToolCall("1", "n", "{}"),)),
        (
            Message.from_anthropic(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "x", "signature": "s"},
                        {"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}},
                    ],
                }
            ),
            (ToolCall("1", "n", '{"a": 1}'),),
        ),
        (
            Message.from_openai_responses(
                [
                    {"type": "reasoning", "id": "r"},
                    {"type": "function_call", "call_id": "1", "name": "n", "arguments": "{}"},
                    {"type": "custom_tool_call", "call_id": "2", "name": "n", "input": "ls"},
                ]
            ),
            (ToolCall("1", "n", "{}"), ToolCall("2", "n", "ls")),
        ),
        (
            Message.from_gemini(GEMINI),
            (
                ToolCall("n-1", "n", "{}"),
                ToolCall("7", "m", "{}"),
                ToolCall("n-2", "n", '{"a": 1}'),
            ),
        ),
    ],
)
def test_calls(message: Message, calls: tuple[ToolCall, ...]) -> None:
    assert message.calls() == calls
    assert message.role == "assistant"


def test_what_is_no_message() -> None:
    with pytest.raises(TypeError, match="role"):
        Message.from_anthropic({"content": "x"})
    with pytest.raises(TypeError, match="content"):
        Message.from_gemini("x")
    assert Message.from_anthropic({"role": "user", "content": "x"}) == Message("user", "x")
    assert Message.from_gemini({"role": "user", "parts": [{"text": "x"}]}).role == "user"


async def test_a_form_that_was_not_asked_for(live: loombridge.Client) -> None:
    prompt = await live.context.assemble(format="anthropic", tools=False, goal="x")
    assert prompt.anthropic()["messages"]
    for form in (prompt.openai, prompt.openai_responses, prompt.gemini):
        with pytest.raises(ValueError, match="assemble with format="):
            form()


async def test_results_of_calls_without_ids(live: loombridge.Client) -> None:
    asked = Message.from_gemini(TWICE)
    await live.context.append({"role": "user", "content": "Look"}, asked)
    for call in asked.calls():
        await live.tool(call.name, {}, call_id=call.id)
    prompt = await live.context.assemble(format="gemini", model="gemini-2.5-pro", tools=False)
    contents = prompt.gemini()["contents"]
    assert [len(content["parts"]) for content in contents] == [1, 2, 2]
    signature = b64decode(TWICE["parts"][0]["thoughtSignature"])  # as the library takes it
    signed = {**TWICE["parts"][0], "thoughtSignature": signature}
    assert contents[1]["parts"] == [signed, TWICE["parts"][1]]
    assert all("functionResponse" in part for part in contents[2]["parts"])


async def test_a_mapping_in_the_form_of_a_message_loses_nothing(live: loombridge.Client) -> None:
    blocks = [{"type": "text", "text": "the long way"}]
    messages = [
        loombridge.Message(role="user", blocks=blocks),
        loombridge.Message(
            role="assistant",
            content="so",
            tool_calls=(loombridge.ToolCall(id="c", name="code:run", arguments='{"a": 1}'),),
        ),
        loombridge.Message(role="tool", content="done", tool_call_id="c"),
    ]
    for each in messages:
        await live.context.append(dataclasses.asdict(each))
    got = [entry.message async for entry in live.context.conversation()]
    assert got == messages
    await live.context.append({"role": "user", "blocks": blocks})
    last = [entry.message async for entry in live.context.conversation()][-1]
    assert last == messages[0]
    with pytest.raises(ValueError, match="content and blocks"):
        await live.context.append({"role": "user", "content": "x", "blocks": blocks})
