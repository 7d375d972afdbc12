"""What lists things can be awaited and taken one by one; small requests that mean nothing."""

import warnings
from typing import Any

import pytest

import loombridge
from loombridge import sync, testing

LISTS = (
    "tools.list",
    "messages.list",
    "memory.list",
    "spaces.list",
    "context.list_blobs",
    "context.all_steps",
    "context.sessions",
    "context.conversation",
)


@pytest.mark.parametrize("what", LISTS)
async def test_a_list_is_awaited_or_taken_one_by_one(live: loombridge.Client, what: str) -> None:
    await live.memory_save("x")
    await live.send(live.agent_id, "hello")
    await live.context.append({"role": "user", "content": "hi"})
    await live.context.record_step("web:get", output="long " * 400)
    part, name = what.split(".")
    method: Any = getattr(getattr(live, part), name)
    awaited = list(await method())
    assert [each async for each in method()] == awaited
    if part in ("tools", "messages", "memory", "context"):
        assert awaited
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [each async for each in method()] == awaited


def test_the_same_without_async(srv: testing.Server) -> None:
    with sync.connect(srv.address, agent_id="a") as ctx:
        assert [each.name for each in ctx.tools.list()]
        ctx.memory_save("x")
        assert [each.text for each in ctx.memory.list()] == ["x"]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_of_nothing_is_refused(live: loombridge.Client, limit: int) -> None:
    for work in (live.memory_query("x", limit=limit), live.messages.list(limit=limit)):
        with pytest.raises(ValueError, match=f"limit must be at least 1, not {limit}"):
            await work


EMPTY: tuple[dict[str, Any], ...] = (
    {"role": "user"},
    {"role": "assistant"},
    {"role": "system", "content": None},
    {"role": "user", "text": "hi"},
    {"role": "user", "name": "ann"},
)


@pytest.mark.parametrize("message", EMPTY)
async def test_a_message_that_says_nothing_is_refused(
    live: loombridge.Client, message: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="message has no content: give "):
        await live.context.append(message)
    assert not [each async for each in live.context.conversation()]


async def test_an_empty_answer_of_a_model_is_kept(live: loombridge.Client) -> None:
    await live.context.append({"role": "user", "content": "hi"})
    await live.context.append({"role": "assistant", "content": ""})
    await live.context.append({"role": "assistant", "content": None, "refusal": "no"})
    assert len([each async for each in live.context.conversation()]) == 3


async def test_settings_have_one_name_more(live: loombridge.Client) -> None:
    told = await live.context.configure(settings=loombridge.PromptSettings(system="Be brief."))
    assert told.prompt.system == "Be brief."
    both = loombridge.PromptSettings()
    with pytest.raises(ValueError, match="two names of one argument"):
        await live.context.configure(prompt=both, settings=both)


async def test_an_error_of_the_server_is_told_alone(live: loombridge.Client) -> None:
    with pytest.raises(loombridge.LoomBridgeError) as caught:
        await live.memory.get(id="none")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("topic", ["a b", " ", "a. b", "a\u00a0b", "a\u3000b"])
async def test_a_topic_has_no_blanks(live: loombridge.Client, topic: str) -> None:
    with pytest.raises(loombridge.InvalidRequestError, match="topic holds a blank"):
        await live.emit(topic)
