"""Prompts go through the providers' own libraries, to providers that are strict."""

import json
from hashlib import sha256
from typing import Any

import pytest

import loombridge
from providers.libraries import LIBRARIES, Library
from providers.rules import sign
from providers.serving import Call, Turn

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
EVERY = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


async def ask(
    library: Library, live: loombridge.Client, *turns: Turn, **options: Any
) -> tuple[Any, Any]:
    """Send the session's prompt; return the request that was taken and the answer."""
    with library.serve() as provider:
        provider.turns = list(turns)
        prompt = await live.context.assemble(
            goal="Look into it.",
            system="You read files.",
            model=library.model,
            format=library.format,
            **options,
        )
        answer = await library.ask(provider, prompt)
        assert provider.refusals == []
        return provider.requests[-1], answer


# E06, A02
@EVERY
async def test_a_loop_of_an_agent(library: Library, live: loombridge.Client) -> None:
    calls = [
        Call("fs_write_file", {"path": "a.txt", "content": "x"}, "call_1"),
        Call("fs_list_dir", {"path": "."}, "call_2"),
    ]
    await live.context.append({"role": "user", "content": "What is in a.txt?"})
    for turn in range(3):
        for call in calls:
            call.id = f"call_{turn}_{call.name}"
        request, answer = await ask(
            library, live, Turn("I look.", "I have to look.", calls), max_tokens=16_000
        )
        assert "fs_list_dir" in str(request["tools"])
        message = library.said(answer)
        await live.context.append(message)
        for call in calls:
            result = await live.tool(call.name, call.arguments, call_id=call.id)
            assert result.step
            assert result.step.tool_name == call.name.replace("_", ":", 1)
    request, answer = await ask(library, live)
    assert "Look into it." in str(request)
    assert "Done." in str(library.said(answer))


ANTHROPIC: list[Any] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is it?"},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            },
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "A document."},
            },
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": sign("hm")},
            {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "fs_stat", "input": {"path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "fs_stat", "input": {"path": "b"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t2", "content": "b", "is_error": True},
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
                ],
            },
        ],
    },
]

CHAT: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c.1", "type": "function", "function": {"name": "fs:stat", "arguments": "{}"}},
            {"id": "c.2", "type": "function", "function": {"name": "fs:stat", "arguments": "{"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c.1", "content": "a"},
    {"role": "tool", "tool_call_id": "c.2", "content": ""},
    {"role": "system", "content": "The disk is full."},
    {"role": "assistant", "content": "I cannot.  "},
]

RESPONSES: list[Any] = [
    {"role": "user", "content": [{"type": "input_text", "text": "What is it?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sign("rs_1")},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            },
            {"type": "function_call", "call_id": "c1", "name": "fs_stat", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "fs_stat", "arguments": "{}"},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "function_call_output", "call_id": "c1", "output": "a"}],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "b"},
]

GEMINI: list[Any] = [
    {"role": "user", "content": [{"text": "What is it?"}]},
    {
        "role": "assistant",
        "content": [
            {"text": "I think", "thought": True},
            {
                "functionCall": {"name": "fs_stat", "args": {"path": "a"}},
                "thoughtSignature": sign("gemini"),
            },
            {"functionCall": {"name": "fs_stat", "args": {"path": "b"}}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"functionResponse": {"name": "fs_stat", "response": {"output": "a"}}},
            {"functionResponse": {"name": "fs_stat", "response": {"output": "b"}}},
        ],
    },
]

CONVERSATIONS: dict[str, list[Any]] = {
    "anthropic": ANTHROPIC,
    "openai": CHAT,
    "responses": RESPONSES,
    "gemini": GEMINI,
}


@EVERY
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
async def test_a_session_of_another_provider(
    library: Library, conversation: list[Any], live: loombridge.Client
) -> None:
    await live.context.append(*conversation)
    request, _ = await ask(library, live)
    text = str(request)
    assert "What is it?" in text
    assert text.count("fs_stat") >= 2
    assert "fs:stat" not in text.partition("messages")[2]
    # Recorded again behind what there is, its ids repeat.
    await live.context.append(*conversation)
    await ask(library, live)


async def test_what_a_provider_said_comes_back_to_it(live: loombridge.Client) -> None:
    for name, conversation in CONVERSATIONS.items():
        await live.context.append(*conversation, session_id=name)
    anthropic, _ = await ask(LIBRARIES["anthropic"], live, session_id="anthropic", tools=False)
    assert anthropic["messages"][:2] == ANTHROPIC[:2]
    assert anthropic["messages"][2]["content"][:1] == ANTHROPIC[2]["content"][:1]
    responses, _ = await ask(LIBRARIES["responses"], live, session_id="responses", tools=False)
    assert responses["input"][1:5] == RESPONSES[1]["content"]
    gemini, _ = await ask(LIBRARIES["gemini"], live, session_id="gemini", tools=False)
    assert gemini["contents"][1]["parts"] == GEMINI[1]["content"]


# M05
async def test_marks_of_the_cache(live: loombridge.Client) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 200
    await live.context.append({"role": "user", "content": text})
    requests: list[Any] = []
    library = LIBRARIES["anthropic"]
    for turn in range(3):
        with library.serve() as provider:
            prompt = await live.context.assemble(
                goal="Go on.",
                system="You read files.",
                model=library.model,
                format="anthropic",
                max_tokens=100_000,
            )
            await library.ask(provider, prompt)
        requests.append(provider.requests[0])
        assert 1 <= len(prompt.cache_marks) == str(requests[-1]).count("cache_control") <= 4
        calls: list[Any] = [
            {"type": "tool_use", "id": f"t{turn}_{i}", "name": "fs_stat", "input": {"path": "a"}}
            for i in range(40)
        ]
        await live.context.append({"role": "assistant", "content": calls})
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "a"} for call in calls
        ]
        await live.context.append({"role": "user", "content": results})
    # A step of 40 calls is 80 blocks: the place of the last mark is marked again.
    assert marked(requests[1])[-1] in marked(requests[2])
    assert "Go on." in str(requests[2]["messages"][-1]["content"][-1])
    assert "cache_control" not in requests[2]["messages"][-1]["content"][-1]


def marked(request: Any) -> list[tuple[int, int]]:
    """Return the messages and blocks that have a cache mark."""
    return [
        (i, j)
        for i, message in enumerate(request["messages"])
        for j, block in enumerate(message["content"])
        if "cache_control" in block
    ]


class Cache:
    """Anthropic's cache: entries end at marks, and a mark looks back twenty blocks."""

    def __init__(self) -> None:
        self.entries: set[str] = set()

    def ask(self, request: Any) -> tuple[int, int]:
        """Return how many blocks are read, and how many could be."""
        blocks = [*request.get("tools", []), *request.get("system", [])]
        for message in request["messages"]:
            blocks += message["content"]
        prefix, prefixes, marks = "", [""], list[int]()
        for n, block in enumerate(blocks, 1):
            plain = {key: value for key, value in block.items() if key != "cache_control"}
            prefix = sha256((prefix + json.dumps(plain)).encode()).hexdigest()
            prefixes.append(prefix)
            if "cache_control" in block:
                marks.append(n)
        held = [n for n, each in enumerate(prefixes) if each in self.entries]
        found = [n for n in held if any(mark - 20 < n <= mark for mark in marks)]
        self.entries |= {prefixes[n] for n in marks}
        return max(found, default=0), max(held, default=0)


# M05
async def test_no_entry_of_the_cache_is_missed(live: loombridge.Client) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 200
    read_again = 0
    for parallel in range(1, 41):
        session, cache = f"s{parallel}", Cache()
        await live.context.append({"role": "user", "content": text}, session_id=session)
        for turn in range(3):
            prompt = await live.context.assemble(
                goal=f"Go on {turn}.",
                model="claude-sonnet-4-6",
                format="anthropic",
                max_tokens=100_000,
                session_id=session,
            )
            read, could = cache.ask(prompt.anthropic())
            assert read == could, f"{parallel} calls, prompt {turn}"
            read_again += read > 0
            calls: list[Any] = [
                {"type": "tool_use", "id": f"t{turn}_{i}", "name": "fs_stat", "input": {}}
                for i in range(parallel)
            ]
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": "a"} for call in calls
            ]
            await live.context.append(
                {"role": "assistant", "content": calls},
                {"role": "user", "content": results},
                session_id=session,
            )
    assert read_again == 2 * 40
