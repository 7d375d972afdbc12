"""What goes through the proxy is recorded, and memory is added to it."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import loombridge
from providers import anthropic_messages, openai_chat, openai_responses, serving
from proxying import (
    ANSWER,
    CHAT,
    EVENTS,
    FUNCTIONS,
    KEY,
    PATHS,
    TOOLS,
    Script,
    address,
    answered,
    asks,
    post,
    proxied,
    recorded,
)

anthropic: Any = pytest.importorskip("anthropic")
openai: Any = pytest.importorskip("openai")


@dataclass
class Flow:
    """An agent's loop with a provider's own library."""

    provider: Any
    turns: list[serving.Turn] = field(
        default_factory=lambda: [
            serving.Turn(
                "I look.",
                "I have to look.",
                [serving.Call("look", {"at": 1}, "c1"), serving.Call("look", {"at": 2}, "c2")],
            )
        ]
    )


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def anthropic_loop(url: str) -> str:
    """Ask with an image, answer two calls at once; thoughts go back signed."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    said: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image", "source": source},
            ],
        }
    ]
    async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY) as claude:
        while True:
            answer = await claude.messages.create(
                model="m", max_tokens=99, system="Look.", messages=said, tools=TOOLS
            )
            calls = [each for each in answer.content if each.type == "tool_use"]
            if not calls:
                return answer.content[0].text
            said.append({"role": "assistant", "content": answer.content})
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": f"seen {c.input['at']}"}
                for c in calls
            ]
            said.append({"role": "user", "content": results})


async def chat_loop(url: str) -> str:
    """Do the same by Chat Completions."""
    said: list[Any] = [
        {"role": "system", "content": "Look."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ],
        },
    ]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
        while True:
            answer = await gpt.chat.completions.create(
                model="gpt-4o", messages=said, tools=FUNCTIONS
            )
            message = answer.choices[0].message
            if not message.tool_calls:
                return message.content
            said.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                said.append({"role": "tool", "tool_call_id": call.id, "content": "seen"})


async def responses_loop(url: str) -> str:
    """Do the same by Responses."""
    said: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": f"data:image/png;base64,{PNG}",
                },
            ],
        }
    ]
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
        while True:
            answer = await gpt.responses.create(
                model="gpt-4o", instructions="Look.", input=said, tools=[tool]
            )
            calls = [each for each in answer.output if each.type == "function_call"]
            if not calls:
                return answer.output_text
            said += [each.model_dump(exclude_none=True) for each in answer.output]
            said += [
                {"type": "function_call_output", "call_id": c.call_id, "output": "seen"}
                for c in calls
            ]


LOOPS: list[Any] = [
    (anthropic_messages, anthropic_loop),
    (openai_chat, chat_loop),
    (openai_responses, responses_loop),
]


# N14, N15
@pytest.mark.parametrize(("provider", "loop"), LOOPS, ids=["anthropic", "chat", "responses"])
async def test_a_loop_with_the_providers_library(binary: Path, provider: Any, loop: Any) -> None:
    with serving.serve(provider.check, provider.answer) as strict:
        strict.turns = Flow(provider).turns
        async with proxied(binary, strict.url) as (srv, url):
            assert await loop(url) == "Done."
            want = [
                "user: What is it?",
                "assistant: c1 c2",
                "look",
                "look",
                "assistant: Done.",
            ]
            ((session, told),) = (await answered(srv)).items()
            assert re.fullmatch(r"proxy-[0-9a-f]{16}", session)
            assert told == want
        assert strict.refusals == []
        assert len(strict.requests) == 2


async def say(url: str, *said: str, **headers: str) -> Any:
    """Send a conversation by Chat Completions, as a stream; return the answer's headers."""
    messages: Any = [
        {"role": "assistant" if i % 2 else "user", "content": each} for i, each in enumerate(said)
    ]
    gpt: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    async with (
        gpt,
        gpt.chat.completions.with_streaming_response.create(
            model="m", messages=messages, stream=True, extra_headers=headers
        ) as raw,
    ):
        assert b"".join([each async for each in raw.iter_bytes()]) == b"".join(ANSWER)
        return raw.headers


# N15
async def test_which_session_a_conversation_is(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(10)]
        did = (await say(url, "A?"))["loom-did"]
        first = did.removeprefix("recorded 1 in ")
        # It goes on, though the program took the space off the answer's end.
        assert (await say(url, "A?", "Yes.", "B?"))["loom-did"] == f"recorded 1 in {first}"
        # The same beginning again is another one; so is what was said otherwise.
        assert (await say(url, "A?"))["loom-did"].startswith(f"recorded 1 in {first}-")
        await say(url, "A?", "No.", "B?")
        await say(url, "C?", **{"Loom-Session-Id": "mine", "Loom-Agent-Id": "me"})
        await say(url, "C?", "Yes.", "D?", **{"Loom-Session-Id": "mine", "Loom-Agent-Id": "me"})
        await say(url, "E?", **{"Loom-Session-Id": "mine", "Loom-Agent-Id": "me"})
        assert "loom-did" not in await say(url, "F?", **{"Loom-Off": "memory, record"})
        assert (await say(url, "G?", **{"Loom-Session-Id": "x" * 300}))["loom-did"] == (
            "recorded nothing: InvalidArgument"
        )
        # A server that was killed knows it by its log.
        await srv.kill9()
        await srv.start()
        url = await address(srv, starts=2)
        did = await say(url, "A?", "Yes.", "B?", "Yes.", "H?")
        assert did["loom-did"] == f"recorded 1 in {first}"
        for _, body in script.requests:
            assert b"Loom" not in body
        found = await answered(srv)
        a, b, yes = "user: A?", "user: B?", "assistant: Yes. "
        assert found.pop(first) == [a, yes, b, yes, "user: H?", yes]
        assert sorted(found.values()) == [[a, "assistant: No.", b, yes], [a, yes]]
        found = await answered(srv, "me")
        assert found == {"mine": ["user: C?", yes, "user: D?", yes, "user: E?", yes]}


# N15
async def test_an_answer_that_breaks_is_not_recorded(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        # It closes in the middle of a call; then it sends what no provider sends.
        length = {**EVENTS, "Connection": "close"}
        script.answers = [
            (200, length, [*CHAT[:4]]),
            (200, EVENTS, [b"data: {\x00]\n", b"\xff" * (1 << 20)]),
        ]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as gpt:
            for _ in range(2):
                async with gpt.chat.completions.with_streaming_response.create(
                    model="m", messages=[{"role": "user", "content": "A?"}], stream=True
                ) as raw:
                    assert [each async for each in raw.iter_bytes()]
        script.answers = [(200, EVENTS, ANSWER)]
        await say(url, "A?")
        assert list((await answered(srv)).values()) == [["user: A?", "assistant: Yes. "]]


# N15
@pytest.mark.parametrize("path", PATHS)
async def test_memory_stands_behind_what_the_user_says(
    binary: Path, script: Script, path: str
) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(11)]
        me = {"Loom-Agent-Id": "me"}
        question, thanks = "Which fruit is best?", "And where may pears grow?"
        kind = "input_text" if path == PATHS[2] else "text"
        block = [{"type": kind, "text": question}]
        # Nothing is remembered: what is sent is the program's own, byte for byte.
        for body in (asks(path, question), asks(path, question, "Apples.", block)):
            assert "memory" not in (await post(url + path, body, **me))["Loom-Did"]
            assert script.requests[-1][1] == body
        async with loombridge.connect(srv.address, agent_id="me") as ctx:
            await ctx.memory_save("The best fruit is a <pear>, and pears grow in Ghent.")
        for said in (f"{question} 2", [{"type": kind, "text": f"{question} 3"}]):
            did = await post(url + path, asks(path, said), **me)
            assert did["Loom-Did"].endswith(", memory 1")
            first = script.requests[-1][1]
            found = json.loads(first)["input" if kind == "input_text" else "messages"]
            told = found[0]["content"]
            assert "<user_memory>" in (told if isinstance(told, str) else told[1]["text"])
            # It stands there again in what follows, so that a provider's cache holds.
            await post(url + path, asks(path, said, "Pears.", thanks), **me)
            second = script.requests[-1][1]
            start = first.split(b"</user_memory>")[0]
            assert second.startswith(start)
            assert second.count(b"<user_memory>") == 2
            off = asks(path, said, "Pears.", thanks)
            await post(url + path, off, **me, **{"Loom-Off": "memory, record"})
            assert script.requests[-1][1] == off
        for told in (await recorded(srv, "me")).values():
            assert not any("user_memory" in each for each in told)
        await post(url + path, asks(path, f"{question} 4"))
        assert b"user_memory" not in script.requests[-1][1], "another agent's memory"
        # What is erased stands in no request any more, nor where it stood before.
        async with loombridge.connect(srv.address, agent_id="me") as ctx:
            await ctx.admin.erase(agent_id="me")
        for said in (f"{question} 2", [{"type": kind, "text": f"{question} 3"}]):
            body = asks(path, said, "Pears.", thanks)
            await post(url + path, body, **me)
            assert script.requests[-1][1] == body


# N15
async def test_memory_is_as_it_is_when_it_is_asked(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        path = PATHS[0]

        async def told(*said: str) -> str:
            script.answers = [(200, EVENTS, ANSWER)]
            await post(url + path, asks(path, *said), **{"Loom-Agent-Id": "me"})
            return script.requests[-1][1].decode()

        async with loombridge.connect(srv.address, agent_id="me") as ctx:
            question = "Which number opens the gate?"
            assert "memory" not in await told(question)
            first = await ctx.memory_save("The number of the gate is 4711.", key="gate")
            talk = (question, "It is 4711.", "Is that the number of the gate?")
            # Another conversation that begins with the same words knows what was saved since.
            assert "4711" in (await told(question)).split("user_memory")[1]
            assert (await told(*talk)).count("<user_memory>") == 2
            await ctx.memory_save("The number of the gate is 1234.", key="gate", replace=True)
            assert "1234" in (await told(question)).split("user_memory")[1]
            # What was replaced or is deleted is said no more, in a conversation that was told it
            # neither.
            later = await told(*talk, "Yes.", "Which gate?")
            assert "gate is 4711" not in later
            assert later.count("gate is 1234") == 2
            await ctx.memory.delete(id=first.id)
            for said in ((question,), talk, (*talk, "Yes.", "Which gate?")):
                assert "user_memory" not in await told(*said)


# N15
async def test_what_is_read_has_room(binary: Path, script: Script) -> None:
    """A request for which its tenant has no room in memory is passed on, and not recorded."""
    async with proxied(binary, script.url, "--max-message-bytes", "4000000") as (srv, url):
        script.answers = [(200, EVENTS, ANSWER) for _ in range(3)]
        assert (await say(url, "A?"))["loom-did"].startswith("recorded 1 in ")
        long = "B" * 1_500_000
        assert (await say(url, long))["loom-did"] == "recorded nothing: Unavailable"
        assert long.encode() in script.requests[-1][1]
        assert (await say(url, "C?"))["loom-did"].startswith("recorded 1 in ")
        told = [items[0] for items in (await answered(srv)).values()]
        assert sorted(told) == ["user: A?", "user: C?"]
