"""Sessions and memory."""

import json
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Unpack

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State
from google.genai import types
from pydantic_core import to_jsonable_python

from loombridge import _client, _errors, _filters, _loops, _records

AGENT = "google-adk"
"""The default owner of the records."""

SESSION_KIND = "adk.session"
"""The kind of the record that says a session's own state, and when it was changed last."""

STATE_KIND = "adk.state"
"""The kind of the record of a state that sessions share: an app's, or that of a user in one."""

EVENT_KIND = "adk.event"
"""The kind of an event's record."""

MEMORY_KIND = "adk.memory"
"""The kind of the record of something to remember."""

FOUND = 10
"""Memories that a search returns at most, as ADK's own service."""

TEXT_BYTES = 256 << 10
"""Bytes of a text that a server takes; of what is longer, the beginning is remembered."""

_Values = dict[str, Any]


class Service(_loops.Adapter):
    """What the services are made of."""

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: the agent that remembers; default `google-adk`, or the client's.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        self._open(server, agent_id, AGENT, connection)


class LoomBridgeSessionService(Service, BaseSessionService):
    """A `BaseSessionService` of ADK; close it, or use it in an `async with` block.

    Any event loop may use it, and several processes the same sessions. An event and the states
    that it changes are one commit; of two writers at the same time, the second adds to what the
    first has left. An event has at most 256 KiB of JSON, as has each state.
    """

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: _Values | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session.

        Raises:
            AlreadyExistsError: there is one with that id.
        """
        name = (session_id or "").strip() or str(uuid.uuid4())
        session = Session(
            app_name=app_name,
            user_id=user_id,
            id=name,
            last_update_time=datetime.now(UTC).timestamp(),
        )

        async def create(ctx: _client.Client) -> Session:
            while True:
                states = await _States.read(ctx, session, state or {})
                if states.head is not None:
                    raise AlreadyExistsError(f"Session with id {name} already exists.")
                if await states.write(ctx, session.last_update_time):
                    return session.model_copy(update={"state": states.merged()})

        return await self._loop.acall(create)

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events, or the newest of them; None: there is none."""
        session = Session(app_name=app_name, user_id=user_id, id=session_id.strip())
        most = config.num_recent_events if config else None
        since = config.after_timestamp if config else None

        async def get(ctx: _client.Client) -> Session | None:
            states = await _States.read(ctx, session)
            if states.head is None:
                return None
            events: list[Event] = []
            if most != 0:
                listing: AsyncIterator[_records.Record] = aiter(
                    ctx.memory.list(
                        filter=_filter(EVENT_KIND, app_name, user_id, session.id),
                        newest_first=True,
                        page_size=most and min(most, 500),
                    )
                )
                async for record in listing:
                    event = Event.model_validate_json(record.text)
                    if since is not None and event.timestamp < since:
                        break
                    events.insert(0, event)
                    if len(events) == most:
                        break
            return session.model_copy(
                update={
                    "state": states.merged(),
                    "events": events,
                    "last_update_time": states.updated,
                }
            )

        return await self._loop.acall(get)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of a user, or of all, without events; the one changed last last."""

        async def find(ctx: _client.Client) -> list[Session]:
            shared: dict[str | None, _Values] = {}
            async for record in ctx.memory.list(filter=_filter(STATE_KIND, app_name)):
                if not record.superseded_by:
                    shared[record.metadata["adk"].get("user")] = json.loads(record.text)
            sessions: list[Session] = []
            async for record in ctx.memory.list(filter=_filter(SESSION_KIND, app_name, user_id)):
                if record.superseded_by:
                    continue
                head, user = json.loads(record.text), record.metadata["adk"]["user"]
                sessions.append(
                    Session(
                        app_name=app_name,
                        user_id=user,
                        id=record.session_id,
                        state=_merged(head["state"], shared.get(None), shared.get(user)),
                        last_update_time=head["updated"],
                    )
                )
            return sorted(sessions, key=lambda s: (s.last_update_time, s.user_id, s.id))

        return ListSessionsResponse(sessions=await self._loop.acall(find))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session and its events; what it told of its user and app stays."""
        mine = _filter(None, app_name, user_id, session_id.strip())
        await self._loop.acall(lambda ctx: ctx.memory.delete_matching(mine))

    async def get_user_state(self, *, app_name: str, user_id: str) -> _Values:
        """Return what the sessions of a user share, without the prefix of its names."""

        async def get(ctx: _client.Client) -> _Values:
            record = await _get(ctx, _key(STATE_KIND, app_name, user_id))
            return json.loads(record.text) if record else {}

        return await self._loop.acall(get)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event to a session, and what it changes to the states.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        if event.partial or any(each.id == event.id and each == event for each in session.events):
            return event
        dumped = event.model_dump(mode="json", exclude_none=True)
        delta = event.actions.state_delta
        kept = {name: delta[name] for name in delta if not name.startswith(State.TEMP_PREFIX)}
        dumped.setdefault("actions", {})["state_delta"] = to_jsonable_python(kept)
        draft = _draft(EVENT_KIND, json.dumps(dumped), session, key=None)

        async def append(ctx: _client.Client) -> None:
            while True:
                states = await _States.read(ctx, session, kept)
                if states.head is None:
                    raise SessionNotFoundError(f"Session {session.id} not found.")
                if await states.write(ctx, event.timestamp, draft):
                    return

        await self._loop.acall(append)
        added = await super().append_event(session, event)
        session.last_update_time = event.timestamp
        return added


class LoomBridgeMemoryService(Service, BaseMemoryService):
    """A `BaseMemoryService` of ADK; close it, or use it in an `async with` block.

    A user's memories are in that user's memory, which all agents share, and belong to the app.
    Only words are remembered. Any event loop may use it.
    """

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember the events of a session that are not remembered yet."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember those of some events that are not remembered yet."""
        drafts: dict[str, _records.RecordDraft] = {}
        for event in events:
            key = _key(MEMORY_KIND, app_name, session_id, event.id)
            entry = MemoryEntry(
                content=event.content or types.Content(),
                author=event.author,
                timestamp=datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
            )
            for draft in _memories(app_name, [entry], custom_metadata, session_id, key):
                drafts.setdefault(key, draft)

        async def save(ctx: _client.Client) -> None:
            missing = dict(drafts)
            while missing:
                listing = ctx.memory.list(
                    filter=_filter(MEMORY_KIND, app_name, session=session_id or ""),
                    user_id=user_id,
                )
                async for record in listing:
                    missing.pop(record.key, None)
                # Another may have been faster with one of them.
                with suppress(_errors.RecordExistsError):
                    await ctx.memory.save_many(missing.values(), user_id=user_id)
                    return

        await self._loop.acall(save)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember what is said outright, together or not at all."""
        drafts = _memories(app_name, memories, custom_metadata)

        async def save(ctx: _client.Client) -> None:
            if drafts:
                await ctx.memory.save_many(drafts, user_id=user_id)

        await self._loop.acall(save)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return what is remembered that fits a question best, ten memories at most."""

        async def find(ctx: _client.Client) -> list[MemoryEntry]:
            hits = await ctx.memory_query(
                query, filter=_filter(MEMORY_KIND, app_name), limit=FOUND, user_id=user_id
            )
            return [_entry(hit.record) for hit in hits]

        return SearchMemoryResponse(memories=await self._loop.acall(find) if query.strip() else [])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Forget a memory, by the id that a search returned; without one, nothing."""

        async def delete(ctx: _client.Client) -> None:
            mine = f"id = {_filters.literal(memory_id or '')} AND {_filter(MEMORY_KIND, app_name)}"
            await ctx.memory.delete_matching(mine, user_id=user_id)

        if memory_id:
            await self._loop.acall(delete)


class _States:
    """The three states of a session as they were read, with changes that are to be written."""

    def __init__(self, session: Session, read: Sequence[_records.Record | None]) -> None:
        self._session = session
        self.head = read[0]
        self._read = read
        head: _Values = json.loads(self.head.text) if self.head else {"state": {}, "updated": 0.0}
        self.updated: float = head["updated"]
        self._values: list[_Values] = [head["state"]]
        self._values += [json.loads(each.text if each else "{}") for each in read[1:]]
        self._changed = [True, False, False]

    @classmethod
    async def read(
        cls, ctx: _client.Client, session: Session, delta: Mapping[str, Any] | None = None
    ) -> "_States":
        """Read them, and change them by what an event or a new session brings."""
        app, user = session.app_name, session.user_id
        keys = (
            _key(SESSION_KIND, app, user, session.id),
            _key(STATE_KIND, app),
            _key(STATE_KIND, app, user),
        )
        states = cls(session, [await _get(ctx, key) for key in keys])
        for name, value in to_jsonable_python(delta or {}).items():
            if name.startswith(State.TEMP_PREFIX):
                continue
            prefixes = ("", State.APP_PREFIX, State.USER_PREFIX)
            place = next((i for i in (1, 2) if name.startswith(prefixes[i])), 0)
            states._values[place][name.removeprefix(prefixes[place])] = value
            states._changed[place] = True
        return states

    def merged(self) -> _Values:
        """Return them as a session shows them."""
        return _merged(*self._values)

    async def write(
        self, ctx: _client.Client, updated: float, *others: _records.RecordDraft
    ) -> bool:
        """Write what is changed, and other records, in one commit.

        Returns:
            False if another has changed one of them since they were read: nothing is written.
        """
        own = self._session
        head = json.dumps({"state": self._values[0], "updated": updated})
        texts = (head, json.dumps(self._values[1]), json.dumps(self._values[2]))
        places = [place for place in range(3) if self._changed[place]]
        drafts = list(others)
        for place in places:
            old, app, user = self._read[place], own.app_name, own.user_id
            if place == 0:
                key = _key(SESSION_KIND, app, user, own.id)
                drafts.append(_draft(SESSION_KIND, head, own, key, old))
                continue
            about = {"app": app} if place == 1 else {"app": app, "user": user}
            drafts.append(
                _records.RecordDraft(
                    text=texts[place],
                    key=_key(STATE_KIND, *about.values()),
                    kind=STATE_KIND,
                    metadata={"adk": about},
                    supersedes=old.id if old else None,
                )
            )
        # A key goes over only from the record that was read, and so to one writer.
        try:
            await ctx.memory.save_many(drafts)
        except (_errors.RecordExistsError, _errors.RecordNotFoundError):
            return False
        for old in [self._read[place] for place in places]:
            with suppress(_errors.RecordNotFoundError):
                if old is not None:
                    await ctx.memory.delete(id=old.id)
        return True


async def _get(ctx: _client.Client, key: str) -> _records.Record | None:
    with suppress(_errors.RecordNotFoundError):
        return await ctx.memory.get(key=key)
    return None


def _merged(own: _Values, app: _Values | None, user: _Values | None) -> _Values:
    return {
        **own,
        **{State.APP_PREFIX + name: value for name, value in (app or {}).items()},
        **{State.USER_PREFIX + name: value for name, value in (user or {}).items()},
    }


def _key(kind: str, *names: str | None) -> str:
    return f"{kind}:{json.dumps(names, ensure_ascii=False)}"


def _filter(kind: str | None, app: str, user: str | None = None, session: str | None = None) -> str:
    """Return the filter that lets such records through."""
    named = {
        "kind": kind,
        "metadata.adk.app": app,
        "metadata.adk.user": user,
        "session_id": session,
    }
    return " AND ".join(
        f"{field} = {_filters.literal(v)}" for field, v in named.items() if v is not None
    )


def _draft(
    kind: str,
    text: str,
    session: Session,
    key: str | None,
    old: _records.Record | None = None,
) -> _records.RecordDraft:
    """Return a record of a session."""
    return _records.RecordDraft(
        text=text,
        key=key,
        kind=kind,
        session_id=session.id,
        metadata={"adk": {"app": session.app_name, "user": session.user_id}},
        supersedes=old.id if old else None,
    )


def _memories(
    app: str,
    entries: Iterable[MemoryEntry],
    custom: Mapping[str, object] | None = None,
    session_id: str | None = None,
    key: str | None = None,
) -> list[_records.RecordDraft]:
    """Return the records of what has words."""
    drafts: list[_records.RecordDraft] = []
    for entry in entries:
        text = "\n".join(part.text for part in entry.content.parts or [] if part.text).strip()
        about = {"app": app, "role": entry.content.role or "user"}
        metadata = {**entry.custom_metadata, **(custom or {})}
        if text:
            drafts.append(
                _records.RecordDraft(
                    text=text.encode()[:TEXT_BYTES].decode(errors="ignore"),
                    key=key,
                    kind=MEMORY_KIND,
                    session_id=session_id or "",
                    author=entry.author,
                    event_time=_moment(entry.timestamp),
                    metadata={"adk": {**about, "custom": to_jsonable_python(metadata)}},
                )
            )
    return drafts


def _moment(timestamp: str | None) -> datetime | None:
    if timestamp is None:
        return None
    moment = datetime.fromisoformat(timestamp)
    return moment if moment.tzinfo else moment.astimezone()


def _entry(record: _records.Record) -> MemoryEntry:
    about = record.metadata["adk"]
    return MemoryEntry(
        id=record.id,
        content=types.Content(role=about["role"], parts=[types.Part(text=record.text)]),
        author=record.author or None,
        timestamp=record.event_time.isoformat() if record.event_time else None,
        custom_metadata=about["custom"],
    )
