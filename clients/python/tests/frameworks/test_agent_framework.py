"""History and memory for Microsoft's Agent Framework, on the real server."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="the Agent Framework is not installed")

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

import loombridge
from conftest import EXAMPLES
from interpreters import run
from loombridge import testing
from loombridge.agent_framework import LoomBridgeContextProvider, LoomBridgeHistoryProvider


class Model(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Answers with the number of the request, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[list[Message]] = []

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> ChatResponse:
        self.sent.append(list(messages))
        return ChatResponse(messages=[Message("assistant", [f"answer {len(self.sent)}"])])

    def texts(self) -> list[str]:
        """The words of the last request."""
        return [message.text for message in self.sent[-1]]


@pytest.fixture
async def history(srv: testing.Server) -> AsyncGenerator[LoomBridgeHistoryProvider, None]:
    async with LoomBridgeHistoryProvider(srv.address) as history:
        yield history


@pytest.fixture
async def memory(srv: testing.Server) -> AsyncGenerator[LoomBridgeContextProvider, None]:
    async with LoomBridgeContextProvider(srv.address) as memory:
        yield memory


async def ask(model: Model, providers: Sequence[Any], session: str | None, *asked: str) -> None:
    agent = Agent(model, context_providers=list(providers))
    for each in asked:
        of = None if session is None else agent.create_session(session_id=session)
        await agent.run(each, session=of)


async def test_a_session_goes_on_after_a_kill(
    history: LoomBridgeHistoryProvider, srv: testing.Server
) -> None:
    model = Model()
    await ask(model, [history], "s1", "one", "two")
    assert model.texts() == ["one", "answer 1", "two"]
    await srv.kill9()
    await srv.start()
    async with LoomBridgeHistoryProvider(srv.address) as again:
        await ask(model, [again], "s1", "three")
        assert model.texts() == ["one", "answer 1", "two", "answer 2", "three"]
        await ask(model, [again], "s2", "other")
        assert model.texts() == ["other"]
        await again.clear("s1")
        assert await again.get_messages("s1") == []
        assert [each.text for each in await again.get_messages("s2")] == ["other", "answer 4"]


async def test_messages_come_back_as_they_were(history: LoomBridgeHistoryProvider) -> None:
    said = [
        Message(
            "user", [Content.from_text("é\ud800"), Content.from_data(b"\x00\xff", "image/png")]
        ),
        Message("assistant", [Content.from_function_call("c1", "look", arguments='{"n": 1}')]),
        Message("tool", [Content.from_function_result("c1", result=[{"deep": [None, 0.1]}])]),
        Message("assistant", ["x" * 600_000], author_name="desk", message_id="m4"),
    ]
    await history.save_messages(None, said)
    await history.save_messages(None, [])
    back = await history.get_messages(None)
    assert [each.to_dict() for each in back] == [each.to_dict() for each in said]


async def test_what_is_kept_is_chosen(srv: testing.Server) -> None:
    async with LoomBridgeHistoryProvider(
        srv.address, load_messages=False, store_outputs=False
    ) as audit:
        model = Model()
        await ask(model, [audit], "s", "one", "two")
        assert model.texts() == ["two"]
        assert [each.text for each in await audit.get_messages("s")] == ["one", "two"]


async def test_what_fits_is_known_in_another_session(
    history: LoomBridgeHistoryProvider, memory: LoomBridgeContextProvider
) -> None:
    model = Model()
    await ask(model, [history, memory], "s1", "I am allergic to pears.")
    assert model.texts() == ["I am allergic to pears."]
    await ask(model, [history, memory], "s2", "Which pears am I allergic to?")
    known, asked = model.sent[-1]
    assert asked.text == "Which pears am I allergic to?"
    assert known.text.splitlines()[:2] == [memory.DEFAULT_CONTEXT_PROMPT, "I am allergic to pears."]
    assert known.additional_properties["_attribution"]["origin_session_ids"] == ["s1"]


async def test_a_person_is_remembered_by_all_agents(srv: testing.Server) -> None:
    model = Model()
    async with (
        LoomBridgeContextProvider(srv.address, user_id="ann") as first,
        LoomBridgeContextProvider(srv.address, user_id="ann", agent_id="other") as second,
        LoomBridgeContextProvider(srv.address, user_id="bob") as third,
    ):
        await ask(model, [first], None, "I am allergic to pears.")
        await ask(model, [second], None, "Which pears?")
        assert "I am allergic to pears." in model.texts()[0]
        await ask(model, [third], None, "Which pears?")
        assert model.texts() == ["Which pears?"]


async def test_nothing_is_asked_or_saved_without_words(
    memory: LoomBridgeContextProvider, srv: testing.Server
) -> None:
    model = Model()
    await ask(model, [memory], "s", " ")
    assert model.texts() == [" "]
    async with loombridge.connect(srv.address, agent_id="agent-framework") as ctx:
        assert [record.text for record in await ctx.memory.list()] == ["answer 1"]


async def test_an_error_of_the_server_is_typed(
    history: LoomBridgeHistoryProvider, memory: LoomBridgeContextProvider, srv: testing.Server
) -> None:
    await ask(Model(), [history, memory], "s", "one")
    await srv.kill9()
    for provider in (history, memory):
        with pytest.raises(loombridge.ServerUnreachableError):
            await ask(Model(), [provider], "s", "two")


async def test_what_an_agent_knows_after_a_kill(srv: testing.Server) -> None:
    example = EXAMPLES / "frameworks" / "agent_framework_agent.py"
    code, output = await run("-W", "default", example, LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    assert output.splitlines()[-2:] == [
        "monday: What now? I know: I am allergic to pears. (6 messages)",
        "tuesday: Which pears am I allergic to? I know: I am allergic to pears. (2 messages)",
    ]
