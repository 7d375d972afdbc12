"""What is misspelt, or called as elsewhere, is named as it is called here."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import loombridge
from loombridge import _spelling

KEYWORDS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda c: c.memory_query("x", top_k=5), "memory_query() has no 'top_k' (did you mean 'limit'"),
    (lambda c: c.memory_query("x", filters="a"), "no 'filters' (did you mean 'filter'"),
    (lambda c: c.memory_query("x", lmit=5), "no 'lmit' (did you mean 'limit'"),
    (lambda c: c.memory_save(content="x"), "memory_save() has no 'content' (did you mean 'text'"),
    (lambda c: c.memory_save("x", user="ann"), "no 'user' (did you mean 'user_id'"),
    (lambda c: c.memory_save("x", zzz=1), "no 'zzz'; there is text, key, kind"),
    (lambda c: c.memory.list(pagesize=1), "list() has no 'pagesize' (did you mean 'page_size'"),
    (lambda c: c.memory.get(ID="x"), "get() has no 'ID' (did you mean 'id'"),
    (lambda c: c.emit("t", data=1), "emit() has no 'data' (did you mean 'payload'"),
    (lambda c: c.tool("t", args={}), "tool() has no 'args' (did you mean 'arguments'"),
    (lambda c: c.subscribe("t", event_type="x"), "subscribe() has no 'event_type' (did you mean"),
    (lambda c: c.context.read_blob("x", session="s"), "no 'session' (did you mean 'session_id'"),
    (lambda c: c.context.record_step("t", result=1), "no 'result' (did you mean 'output'"),
    (lambda c: c.events.subscribe("t", evnt_types=()), "(did you mean 'event_types'"),
]


@pytest.mark.parametrize(("call", "message"), KEYWORDS)
async def test_an_argument_that_is_none(
    ctx: loombridge.Client, call: Callable[[Any], Any], message: str
) -> None:
    async def made() -> None:
        result = call(ctx)
        if inspect.isawaitable(result):
            await result

    with pytest.raises(TypeError, match=re.escape(message)):
        await made()


async def test_a_missing_argument_is_said_as_ever(ctx: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'text'"):
        await ctx.memory_save()
    with pytest.raises(TypeError, match="memory_save"):
        await ctx.memory_save("a", "b")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("add", "ctx.memory_save"),
        ("search", "ctx.memory_query"),
        ("save", "ctx.memory_save"),
        ("savemany", "save_many"),
        ("statz", "stats"),
    ],
)
async def test_a_method_that_is_none(ctx: loombridge.Client, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"did you mean {hint}?")):
        getattr(ctx.memory, name)
    assert not hasattr(ctx.memory, name)


async def test_a_method_of_the_client_that_is_none(ctx: loombridge.Client) -> None:
    client: Any = ctx
    with pytest.raises(AttributeError, match=r"did you mean memory_save\?"):
        client.memorysave("x")
    with pytest.raises(AttributeError, match=r"Client has no 'zzz'$"):
        client.zzz()


async def test_what_help_shows(ctx: loombridge.Client) -> None:
    signature = str(inspect.signature(ctx.tool))
    assert "name: Union[str, ~FunctionT, NoneType] = None" in signature
    assert "-> Any" not in signature
    assert "ToolResult" in signature
    assert inspect.iscoroutinefunction(ctx.memory_save)
    assert "text: str" in str(inspect.signature(ctx.memory_save))


def test_near_names() -> None:
    known = ("tool_calls", "content", "role")
    assert _spelling.nearest("toolcalls", known) == "tool_calls"
    assert _spelling.nearest("Content", known) == "content"
    assert _spelling.nearest("function_call", known) is None
    assert _spelling.nearest("reasoning_content", known) is None
    assert _spelling.nearest("", known) is None
