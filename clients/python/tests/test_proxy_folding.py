"""What passes a model's window is folded on its way through the proxy."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import loombridge
from providers import anthropic_messages, openai_chat, openai_responses, serving
from proxying import (
    ANSWER,
    EVENTS,
    FUNCTIONS,
    KEY,
    TOOLS,
    Script,
    answered,
    asks,
    post,
    proxied,
    sse,
)

anthropic: Any = pytest.importorskip("anthropic")
openai: Any = pytest.importorskip("openai")


TURNS = 24


def report(call: str) -> str:
    """Return what a call gives: a text that no other gives."""
    return "\n".join(f"line {i} of {call}-{i}.txt took {i * 7} ms" for i in range(30))


async def long_loop(provider: Any, url: str, headers: dict[str, str]) -> list[str]:
    """Call a tool in each turn until the model is done; return what the proxy did."""
    did: list[str] = []

    async def hear(response: Any) -> None:
        did.append(response.headers.get("loom-did", ""))

    said: list[Any] = [{"role": "user", "content": "Look at all, one by one. " * 10}]
    hooks: Any = {"response": [hear]}
    if provider is anthropic_messages:
        http: Any = anthropic.DefaultAsyncHttpxClient(event_hooks=hooks)
        async with anthropic.AsyncAnthropic(
            base_url=url, api_key=KEY, http_client=http, default_headers=headers
        ) as claude:
            while True:
                told = await claude.messages.create(
                    model="m", max_tokens=99, messages=said, tools=TOOLS
                )
                calls = [each.id for each in told.content if each.type == "tool_use"]
                if not calls:
                    return did
                results = [
                    {"type": "tool_result", "tool_use_id": call, "content": report(call)}
                    for call in calls
                ]
                said += [
                    {"role": "assistant", "content": told.content},
                    {"role": "user", "content": results},
                ]
    http = openai.DefaultAsyncHttpxClient(event_hooks=hooks)
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key=KEY, http_client=http, default_headers=headers
    ) as gpt:
        while provider is openai_chat:
            told = await gpt.chat.completions.create(model="m", messages=said, tools=FUNCTIONS)
            message = told.choices[0].message
            if not message.tool_calls:
                return did
            said.append(message.model_dump(exclude_none=True))
            said += [
                {"role": "tool", "tool_call_id": call.id, "content": report(call.id)}
                for call in message.tool_calls
            ]
        tool = {**FUNCTIONS[0]["function"], "type": "function", "strict": False}
        while True:
            told = await gpt.responses.create(model="m", input=said, tools=[tool])
            calls = [each.call_id for each in told.output if each.type == "function_call"]
            if not calls:
                return did
            said += [each.model_dump(exclude_none=True) for each in told.output]
            said += [
                {"type": "function_call_output", "call_id": call, "output": report(call)}
                for call in calls
            ]


# N15
@pytest.mark.parametrize(
    "provider",
    [anthropic_messages, openai_chat, openai_responses],
    ids=["anthropic", "chat", "responses"],
)
async def test_old_results_are_folded(binary: Path, provider: Any) -> None:
    turns = [
        serving.Turn(f"I look {i}.", "", [serving.Call("look", {"at": i}, f"c{i}")])
        for i in range(TURNS)
    ]
    with serving.serve(provider.check, provider.answer) as strict:
        async with proxied(binary, strict.url) as (srv, url):
            me = {"Loom-Agent-Id": "me", "Loom-Session-Id": "mine"}
            async with loombridge.connect(srv.address, agent_id="me", session_id="mine") as ctx:
                await ctx.context.configure(max_tokens=8000)
                strict.turns = list(turns)
                did = await long_loop(provider, url, me)
                assert strict.refusals == []
                sent = [each.get("messages") or each["input"] for each in strict.requests]
                assert len(sent) == TURNS + 1
                assert "folded" not in did[1]
                assert re.fullmatch(r"recorded \d in mine, folded \d+", did[-1])
                assert max(len(json.dumps(each)) for each in sent) < 32_000
                # The newest result stands as it is, and what was sent stands where it stood.
                for i in range(TURNS):
                    assert json.dumps(report(f"c{i}")) in json.dumps(sent[i + 1])
                kept = [sent[i + 1][: len(sent[i])] == sent[i] for i in range(TURNS)]
                assert kept.count(False) in range(1, TURNS // 2)
                # Each byte that was taken out is read back by the name that stands there.
                assert json.dumps(report("c0")) not in json.dumps(sent[-1])
                assert any('001 look {\\"at\\": 0}' in json.dumps(each) for each in sent)
                for i in range(TURNS):
                    name = f"step_{i + 1:03}"
                    assert bytes(await ctx.context.read_blob(name)).decode() == report(f"c{i}")
                # Its receipt is that of the session's prompts.
                found = await ctx.context.find_in_prompts()
                assert len(found.prompts) == TURNS + 1
                assert any(each.fold_batch for each in found.prompts)
            # Another session of the same has all, as the header says.
            strict.turns = list(turns)
            strict.requests.clear()
            whole = {**me, "Loom-Session-Id": "whole", "Loom-Off": "fold"}
            did = await long_loop(provider, url, whole)
            assert re.fullmatch(r"recorded \d in whole", did[-1])
            assert strict.refusals == []
            assert all(
                json.dumps(report(f"c{i}")) in json.dumps(strict.requests[-1]) for i in range(TURNS)
            )


def looked(calls: int) -> bytes:
    """Return a request of Chat Completions behind so many calls, for a model of 8,192 tokens."""
    said: list[Any] = [{"role": "user", "content": "Look at all."}]
    for i in range(calls):
        function = {"name": "look", "arguments": json.dumps({"at": i})}
        call = {"id": f"c{i}", "type": "function", "function": function}
        said += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": report(f"c{i}")},
        ]
    return json.dumps({"messages": said, "model": "gpt-4", "n": 1}, indent=1).encode()


# N15
async def test_what_the_window_has_room_for_stays(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(5)]
        path = f"{url}/v1/chat/completions"
        for calls in (2, 8):
            await post(path, looked(calls))
            assert script.requests[-1][1] == looked(calls)
        for calls in (30, 31):
            assert ", folded " in (await post(path, looked(calls)))["Loom-Did"]
            assert len(script.requests[-1][1]) < 8192 * 4
            told = json.loads(script.requests[-1][1])
            assert told["n"] == 1
            assert told["messages"][-1]["content"] == report(f"c{calls - 1}")
        # Nobody knows how much another model takes.
        other = looked(30).replace(b"gpt-4", b"m")
        await post(path, other)
        assert script.requests[-1][1] == other


USED: list[Any] = [
    (
        "/v1/chat/completions",
        sse(
            '{"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}',
            '{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":9}}',
        ),
    ),
    (
        "/v1/messages",
        sse(
            '{"type":"message_start","message":{"usage":{"input_tokens":100,'
            '"cache_read_input_tokens":700,"cache_creation_input_tokens":100,"output_tokens":1}}}',
            '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Yes"}}',
            '{"type":"message_delta","usage":{"output_tokens":9}}',
            '{"type":"message_stop"}',
        ),
    ),
    (
        "/v1/responses",
        sse(
            '{"type":"response.completed","response":{"id":"r","output":[{"type":"message",'
            '"role":"assistant","content":[{"type":"output_text","text":"Yes"}]}],'
            '"usage":{"input_tokens":900,"output_tokens":9}}}'
        ),
    ),
]


# N15
@pytest.mark.parametrize(("path", "answer"), USED, ids=["chat", "anthropic", "responses"])
async def test_what_the_provider_counts_is_learned(
    binary: Path, script: Script, path: str, answer: list[bytes]
) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, answer)]
        headers = {"Loom-Agent-Id": "me", "Loom-Session-Id": "mine"}
        await post(url + path, asks(path, "A?"), answer, **headers)
        assert (await answered(srv, "me"))["mine"] == ["user: A?", "assistant: Yes"]
        async with loombridge.connect(srv.address, agent_id="me", session_id="mine") as ctx:
            none = loombridge.PromptSettings(tools=loombridge.ToolSelection(none=True))
            prompt = await ctx.context.assemble(model="m", settings=none, dry_run=True)
            assert prompt.tokens in range(900, 950)
