"""The services for Google ADK, on the real server."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

pytest.importorskip("google.adk.sessions", reason="Google ADK is not installed")

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types

import loombridge
from conftest import EXAMPLES
from interpreters import run
from loombridge import testing
from loombridge.google_adk import LoomBridgeMemoryService, LoomBridgeSessionService


@pytest.fixture
async def sessions(srv: testing.Server) -> AsyncGenerator[LoomBridgeSessionService, None]:
    async with LoomBridgeSessionService(srv.address) as sessions:
        yield sessions


@pytest.fixture
async def memory(srv: testing.Server) -> AsyncGenerator[LoomBridgeMemoryService, None]:
    async with LoomBridgeMemoryService(srv.address) as memory:
        yield memory


def said(
    text: str, delta: dict[str, object] | None = None, *, at: float = 1_700_000_000.5
) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(
        author="ann", content=content, timestamp=at, actions=EventActions(state_delta=delta or {})
    )


async def get(sessions: LoomBridgeSessionService, name: str) -> Session:
    session = await sessions.get_session(app_name="app", user_id="ann", session_id=name)
    assert session is not None
    return session


async def test_a_session_outlives_its_server(srv: testing.Server) -> None:
    state = {"own": 1, "user:likes": ["pears"], "app:open": True, "temp:x": 1}
    async with LoomBridgeSessionService(srv.address) as sessions:
        session = await sessions.create_session(
            app_name="app", user_id="ann", state=state, session_id=" s1 "
        )
        picture = types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")
        event = said("I like figs", {"own": 2, "user:likes": ["figs"], "temp:y": 2})
        assert event.content is not None
        event.content.parts = [*(event.content.parts or []), picture]
        await sessions.append_event(session, event)
        assert session.state["temp:y"] == 2
    await srv.kill9()
    await srv.start()
    async with LoomBridgeSessionService(srv.address) as sessions:
        again = await get(sessions, "s1")
        assert again.state == {"own": 2, "user:likes": ["figs"], "app:open": True}
        assert again.events == [event]
        assert again.last_update_time == event.timestamp
        other = await sessions.create_session(app_name="app", user_id="bob")
        assert other.state == {"app:open": True}
        assert await sessions.get_user_state(app_name="app", user_id="ann") == {"likes": ["figs"]}
        listed = await sessions.list_sessions(app_name="app")
        assert [each.id for each in listed.sessions] == ["s1", other.id]
        assert listed.sessions[0].state == again.state
        await sessions.delete_session(app_name="app", user_id="ann", session_id="s1")
        assert not await sessions.get_session(app_name="app", user_id="ann", session_id="s1")
        assert await sessions.get_user_state(app_name="app", user_id="ann") == {"likes": ["figs"]}
        with pytest.raises(SessionNotFoundError):
            await sessions.append_event(again, said("Still there?"))
        assert len(again.events) == 1
    async with loombridge.connect(srv.address, agent_id="google-adk") as ctx:
        kinds = [record.kind for record in await ctx.memory.list()]
        assert sorted(kinds) == ["adk.session", "adk.state", "adk.state"]


async def test_of_two_writers_none_loses_anything(sessions: LoomBridgeSessionService) -> None:
    await sessions.create_session(app_name="app", user_id="ann", session_id="s")
    with pytest.raises(AlreadyExistsError):
        await sessions.create_session(app_name="app", user_id="ann", session_id="s")
    mine = [await get(sessions, "s") for _ in range(4)]
    events = [said(f"Event {n}", {f"own{n}": n, f"user:{n}": n}) for n in range(4)]
    await asyncio.gather(*map(sessions.append_event, mine, events))
    session = await get(sessions, "s")
    assert {event.id for event in session.events} == {event.id for event in events}
    assert session.state == {f"own{n}": n for n in range(4)} | {f"user:{n}": n for n in range(4)}


async def test_the_newest_events(sessions: LoomBridgeSessionService) -> None:
    session = await sessions.create_session(app_name="app", user_id="ann", session_id="*")
    for number in range(5):
        event = said(str(number), at=number)
        await sessions.append_event(session, event)
        await sessions.append_event(session, event)
    partial = said("partial")
    partial.partial = True
    await sessions.append_event(session, partial)

    async def times(**config: float) -> list[float]:
        got = await sessions.get_session(
            app_name="app",
            user_id="ann",
            session_id="*",
            config=GetSessionConfig.model_validate(config),
        )
        assert got is not None
        return [event.timestamp for event in got.events]

    assert await times() == [0, 1, 2, 3, 4]
    assert await times(num_recent_events=2) == [3, 4]
    assert await times(num_recent_events=0) == []
    assert await times(after_timestamp=2) == [2, 3, 4]
    assert await times(num_recent_events=2, after_timestamp=4) == [4]


async def test_memory(memory: LoomBridgeMemoryService) -> None:
    session = Session(app_name="app", user_id="ann", id="s", events=[said("I like ripe pears")])
    for _ in range(2):
        await memory.add_session_to_memory(session)
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Bob likes pears, too")]))
    await memory.add_memory(
        app_name="app", user_id="ann", memories=[entry], custom_metadata={"from": "bob"}
    )

    async def find(question: str, app: str = "app", user: str = "ann") -> list[MemoryEntry]:
        found = await memory.search_memory(app_name=app, user_id=user, query=question)
        return found.memories

    first, second = sorted(await find("pears"), key=lambda each: each.author or "")
    assert (second.author, second.timestamp) == ("ann", "2023-11-14T22:13:20.500000+00:00")
    assert first.custom_metadata == {"from": "bob"}
    assert await find("pears", app="other") == await find("pears", user="bob") == []
    assert await find(" ") == []
    await memory.delete_memory(app_name="other", user_id="ann", memory_id=first.id)
    await memory.delete_memory(app_name="app", user_id="ann", memory_id=second.id)
    (left,) = await find("pears")
    assert left == first


async def test_what_an_agent_knows_after_a_kill(srv: testing.Server) -> None:
    example = EXAMPLES / "frameworks" / "google_adk_agent.py"
    code, output = await run("-W", "default", example, LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    said = [line for line in output.splitlines() if line.startswith("ann:")]
    assert said == [
        "ann: I am allergic to pears. - Noted (messages: 1)",
        "ann: What am I allergic to? - I am allergic to pears. (messages: 3)",
    ], output
