"""At a prompt and in a log, answers are shown in short."""

import dataclasses
from typing import Any

import loombridge
from loombridge import _brief

LONG = "x" * 100_000


async def test_answers_of_a_real_server_are_shown_in_short(live: loombridge.Client) -> None:
    lines = "\n".join(f"line {n} of the result" for n in range(2000))
    recorded = await live.context.record_step("my:tool", {"text": lines}, output=lines)
    await live.context.append({"role": "user", "content": lines})
    await live.memory_save(lines, metadata={"lines": lines.split("\n")})
    await live.emit("t", {"lines": lines.split("\n")})
    event = await anext(live.subscribe({"t": 0}))
    answers: list[Any] = [
        recorded,
        recorded.step,
        (await live.context.steps())[0],
        await live.context.assemble(goal=lines[:2000], max_tokens=60_000),
        await anext(aiter(live.memory.list())),
        await live.memory_query("line 7"),
        (await live.memory_query("line 7"))[0],
        event,
    ]
    for answer in answers:
        shown = repr(answer)
        assert len(shown) < 6000, shown
        assert shown.startswith(f"{type(answer).__name__}(")
        assert lines[:300] not in shown


def test_the_beginning_and_the_end_of_a_text_are_shown() -> None:
    shown = repr(loombridge.Message("user", f"begin {LONG} end"))
    assert "'begin xxx" in shown
    assert "xxx end'" in shown
    assert len(shown) < _brief.SHOWN_TEXT + 200


def test_short_ones_are_shown_whole() -> None:
    call = loombridge.ToolCall("c1", "grep", "{}")
    message = loombridge.Message("assistant", "hm", tool_calls=(call,))
    fields = ", ".join(
        f"{each.name}={getattr(message, each.name)!r}" for each in dataclasses.fields(message)
    )
    assert repr(message) == f"Message({fields})"
    assert "ToolCall(id='c1', name='grep', arguments='{}', extra=None)" in repr(message)


def test_payloads_of_any_kind_are_bounded() -> None:
    deep: Any = "end"
    for _ in range(1000):
        deep = [deep]
    for value in (
        LONG.encode(),
        [LONG] * 1000,
        {str(n): LONG for n in range(1000)},
        deep,
        10**4000,
    ):
        task = loombridge.Task("execute", parameters={"value": value})
        assert len(repr(task)) < 3000
