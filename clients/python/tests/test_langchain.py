"""The middleware for LangChain, on the real server."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="LangChain is not part of the lowest environment")

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

import loombridge
from loombridge import testing
from loombridge.langchain import LoomBridgeMiddleware
from loombridge.langgraph import LoomBridgeSaver

ANN: Any = {"configurable": {"thread_id": "ann"}}


class Told(BaseChatModel):
    """A model that says what it is told, and keeps what it was sent."""

    turns: list[Any]
    sent: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:
        self.sent.append(messages)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        assert isinstance(turn, AIMessage)
        return ChatResult(generations=[ChatGeneration(message=turn)])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "Told":
        return self

    @property
    def _llm_type(self) -> str:
        return "told"


def calls(*given: tuple[str, float], text: str = "") -> AIMessage:
    """Return a message that looks something up, by the ids of the calls."""
    return AIMessage(
        text,
        tool_calls=[
            {"name": "look_up", "args": {"page": page}, "id": name} for name, page in given
        ],
        usage_metadata={"input_tokens": 900, "output_tokens": 9, "total_tokens": 909},
    )


def look_up(page: int) -> str:
    """Look a page up."""
    return f"page {page}: " + " ".join(f"pear {page}.{line}" for line in range(400))


def agent(context: LoomBridgeMiddleware[Any], *turns: Any, **more: Any) -> tuple[Any, Told]:
    model = Told(turns=list(turns))
    made: Any = create_agent(
        model, [look_up], system_prompt="You know pears.", middleware=[context], **more
    )
    return made, model


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [f"{each.type}: {each.text[:20]}".rstrip() for each in messages]


@pytest.fixture
async def context(srv: testing.Server) -> AsyncGenerator[LoomBridgeMiddleware[Any], None]:
    async with LoomBridgeMiddleware[Any](srv.address) as context:
        yield context


async def log(srv: testing.Server, session: str = "ann") -> list[str]:
    """Return what a session holds."""
    async with loombridge.connect(srv.address, agent_id="langchain", session_id=session) as ctx:
        return [
            f"{each.message.role}: {each.message.content[:20]}".rstrip()
            if each.message
            else f"step: {each.step.call_id if each.step else ''}"
            async for each in ctx.context.conversation()
        ]


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_the_model_gets_what_it_would_get_without(
    way: str, srv: testing.Server, context: LoomBridgeMiddleware[Any]
) -> None:
    ann, model = agent(
        context, calls(("c1", 1), ("c2", 2), text="Two."), AIMessage("Both."), AIMessage("Bye.")
    )
    if way == "sync":
        first = await asyncio.to_thread(ann.invoke, said("What is on 1 and 2?"), ANN)
        last = await asyncio.to_thread(ann.invoke, said("Thanks."), ANN)
    else:
        first = await ann.ainvoke(said("What is on 1 and 2?"), ANN)
        last = await ann.ainvoke(said("Thanks."), ANN)
    told = first["messages"]
    assert [each.type for each in told] == ["human", "ai", "tool", "tool", "ai"]
    assert model.sent[1][1:] == told[:4]
    assert texts(model.sent[2]) == [
        "system: You know pears.",
        *texts(told),
        "human: Thanks.",
    ]
    assert last.keys() == {"messages"}
    assert await log(srv) == [
        "user: What is on 1 and 2?",
        "assistant: Two.",
        "step: c1",
        "step: c2",
        "assistant: Both.",
        "user: Thanks.",
        "assistant: Bye.",
    ]


async def test_a_long_run_folds_and_reads_back(srv: testing.Server) -> None:
    turns: list[Any] = [calls((f"c{page}", page), text=f"Page {page}.") for page in range(30)]
    back = {"name": "fs_read_file", "args": {"path": "step_001", "limit_bytes": 30}, "id": "back"}
    none = {"name": "fs_read_file", "args": {"path": "step_999"}, "id": "none"}
    turns += [AIMessage("", tool_calls=[back, none]), AIMessage("It is pear 0.1.")]
    async with LoomBridgeMiddleware[Any](srv.address, max_tokens=12_000) as context:
        ann, model = agent(context, *turns)
        result = await ann.ainvoke(said("Read 30 pages."), ANN)
    assert len(result["messages"]) == 65
    sizes = [sum(len(each.text) for each in sent) for sent in model.sent]
    assert max(sizes) < 12_000 * 4 < sum(len(each.text) for each in result["messages"])
    last = model.sent[-1]
    assert texts(last)[:2] == ["system: You know pears.", "human: Read 30 pages."]
    folded = "\n".join(each.text for each in last if isinstance(each, HumanMessage))
    assert "fs:read_file step_012" in folded
    assert 'look_up {"page": 26}' in folded
    found = {each.tool_call_id: each for each in last if isinstance(each, ToolMessage)}
    assert found["back"].text.endswith(look_up(0)[:30])
    assert found["none"].status == "error"
    assert "step_999" in found["none"].text


async def test_an_agent_goes_on_after_the_server_was_away(srv: testing.Server) -> None:
    async with (
        LoomBridgeMiddleware[Any](srv.address) as context,
        LoomBridgeSaver(srv.address) as saver,
    ):
        ann, _ = agent(context, calls(("c1", 1)), RuntimeError("no model"), checkpointer=saver)
        with pytest.raises(RuntimeError, match="no model"):
            await ann.ainvoke(said("What is on 1?"), ANN)
        await srv.kill9()
        alone, _ = agent(context)
        with pytest.raises(loombridge.ServerUnreachableError):
            await alone.ainvoke(said("Is anybody there?"), ANN)
    await srv.start()
    async with (
        LoomBridgeMiddleware[Any](srv.address) as context,
        LoomBridgeSaver(srv.address) as saver,
    ):
        ann, model = agent(context, AIMessage("It is pears."), checkpointer=saver)
        result = await ann.ainvoke(None, ANN)
    expected = ["human: What is on 1?", "ai:", "tool: page 1: pear 1.0 pea", "ai: It is pears."]
    assert texts(result["messages"]) == expected
    assert texts(model.sent[0])[1:] == expected[:3]
    assert await log(srv) == [
        "user: What is on 1?",
        "assistant:",
        "step: c1",
        "assistant: It is pears.",
    ]


async def test_what_was_recorded_is_not_recorded_again(
    srv: testing.Server, context: LoomBridgeMiddleware[Any]
) -> None:
    """A run that is killed before its place is kept begins anew with the same messages."""
    bob: Any = {"messages": [HumanMessage("Hello", id="h1")]}
    for answer in ("Lost.", "Kept."):
        ann, model = agent(context, RuntimeError("killed"), AIMessage(answer))
        with pytest.raises(RuntimeError):
            await ann.ainvoke(bob, ANN)
    assert texts(model.sent[0]) == ["system: You know pears.", "human: Hello"]
    assert await log(srv) == ["user: Hello"]


async def test_an_earlier_checkpoint_goes_on_without_what_came_after(
    srv: testing.Server, context: LoomBridgeMiddleware[Any]
) -> None:
    async with LoomBridgeSaver(srv.address) as saver:
        turns = [AIMessage(text) for text in ("One.", "Two.", "Three.", "Four.", "Five.")]
        ann, model = agent(context, *turns, checkpointer=saver)
        await ann.ainvoke(said("first"), ANN)
        after_first = await ann.aget_state(ANN)
        await ann.ainvoke(said("second"), ANN)
        after_second = await ann.aget_state(ANN)
        await ann.ainvoke(said("another"), after_first.config)
        assert texts(model.sent[2])[1:] == ["human: first", "ai: One.", "human: another"]
        forked = await ann.aget_state(ANN)
        assert forked.values["loom_bridge"]["session"].startswith("ann|")
        await ann.ainvoke(said("third"), after_second.config)
        assert texts(model.sent[3])[1:] == [
            *("human: first", "ai: One.", "human: second", "ai: Two."),
            "human: third",
        ]
        last = forked.values["messages"][-1]
        await ann.aupdate_state(forked.config, {"messages": [RemoveMessage(id=last.id)]})
        await ann.ainvoke(said("what?"), ANN)
        assert texts(model.sent[4])[1:] == [
            *("human: first", "ai: One.", "human: another"),
            "human: what?",
        ]


async def test_a_prompt_that_is_too_long_is_made_shorter(
    context: LoomBridgeMiddleware[Any],
) -> None:
    turns: list[Any] = [calls((f"c{page}", page)) for page in range(5)]
    ann, model = agent(context, *turns, ContextOverflowError("too long"), AIMessage("Done."))
    result = await ann.ainvoke(said("Read 5 pages."), ANN)
    assert result["messages"][-1].text == "Done."
    refused, taken = (sum(len(each.text) for each in sent) for sent in model.sent[-2:])
    assert taken < refused


async def test_what_a_provider_says_in_its_own_form_comes_back(
    context: LoomBridgeMiddleware[Any],
) -> None:
    """Blocks, pictures, invalid and failed calls are as the agent has them."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    call = {"type": "tool_use", "id": "c1", "name": "look_up", "input": {"page": 1}}
    again = AIMessage([thought, call], tool_calls=calls(("c1", 1)).tool_calls)
    invalid = AIMessage(
        "",
        tool_calls=calls(("c2", 2)).tool_calls,
        invalid_tool_calls=[{"name": "look_up", "args": "{page", "id": "c3", "error": "bad JSON"}],
    )
    picture = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    ann, model = agent(context, again, invalid, AIMessage("Well."), AIMessage("Still well."))
    asked = HumanMessage(["See:", picture])
    result = await ann.ainvoke({"messages": [asked]}, ANN)
    assert model.sent[1][1].content == ["See:", picture]
    assert model.sent[1][2].content == [thought, call]
    answers = {each.tool_call_id: each for each in model.sent[2] if isinstance(each, ToolMessage)}
    assert answers.keys() == {"c1", "c2", "c3"}
    assert "bad JSON" in answers["c3"].text
    assert result["messages"][-1].text == "Well."
    # Without the messages themselves, they are made of what the server has.
    await ann.ainvoke(said("And now?"), ANN)
    assert [each.type for each in model.sent[3]] == [
        *("system", "human", "ai", "tool", "ai", "tool", "tool", "ai", "human"),
    ]
    assert model.sent[3][2].content == [thought, call]


async def test_a_sub_agent_has_its_own_session(
    srv: testing.Server, context: LoomBridgeMiddleware[Any]
) -> None:
    below, model = agent(context, AIMessage("Pears, it says."), AIMessage("Figs, it says."))

    async def ask(question: str) -> str:
        """Ask another agent."""
        result = await below.ainvoke(said(question))
        return result["messages"][-1].text

    call = {"name": "ask", "args": {"question": "What is it?"}, "id": "c1"}
    again = {**call, "id": "c2"}
    turns = [AIMessage("", tool_calls=[each]) for each in (call, again)]
    above = Told(turns=[*turns, AIMessage("It says pears and figs.")])
    ann: Any = create_agent(above, [ask], middleware=[context])
    await ann.ainvoke(said("Ask it."), ANN)
    assert texts(model.sent[0]) == ["system: You know pears.", "human: What is it?"]
    assert texts(model.sent[1]) == ["system: You know pears.", "human: What is it?"]
    assert texts(above.sent[1]) == ["human: Ask it.", "ai:", "tool: Pears, it says."]
    assert len(await log(srv)) == 6


async def test_arguments_that_are_no_json_are_recorded(
    srv: testing.Server, context: LoomBridgeMiddleware[Any]
) -> None:
    ann, _ = agent(context, calls(("c1", float("nan"))), AIMessage("It has none."))
    told = (await ann.ainvoke(said("What is on no page?"), ANN))["messages"]
    assert [each.type for each in told] == ["human", "ai", "tool", "ai"]
    assert (await log(srv))[2] == "step: c1"


async def test_a_client_of_a_user(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="mine") as ctx:
        ann, _ = agent(LoomBridgeMiddleware[Any](ctx), AIMessage("Hello."), AIMessage("Again."))
        await ann.ainvoke(said("Hello?"))
        await ann.ainvoke(said("Hello?"))
        sessions = [each.session_id async for each in ctx.context.sessions()]
        assert len(sessions) == 2
        with pytest.raises(asyncio.InvalidStateError):
            ann.invoke(said("Hello?"))
