"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, overload

from loombridge import (
    _attach,
    _children,
    _client,
    _events,
    _handlers,
    _messages,
    _progress,
    _query,
    _records,
    _relations,
    _scopes,
    _spelling,
    _status,
    _tools,
    _values,
)
from loombridge.sync import _twin
from loombridge.sync._face.admin import Admin
from loombridge.sync._face.backups import Backups
from loombridge.sync._face.context import Context
from loombridge.sync._face.events import Events
from loombridge.sync._face.held import Child, Listener, Spawning
from loombridge.sync._face.memory import Memory
from loombridge.sync._face.messages import Messages
from loombridge.sync._face.sessions import Sessions
from loombridge.sync._face.spaces import Spaces
from loombridge.sync._face.tools import Tools
from loombridge.sync._face.workingstate import WorkingState
from loombridge.sync._face.workspace import Workspace


@_spelling.helpful
@_twin.documented(_client.Client)
class Client(_twin.Root, _spelling.Helpful):
    """One agent, connected; made by `loombridge.connect`."""

    @property
    def agent_id(self) -> str:
        """The agent this client acts for."""
        return self._get("agent_id")

    def status(self, *, timeout: _values.Seconds | None = None) -> _status.Status:
        """Return what the server is and how it stores."""
        return self._await("status", timeout=timeout)

    def scopes(
        self,
        *,
        kind: _scopes.ScopeKind | None = None,
        prefix: str = "",
        tenant: str = "",
        page_size: int = 100,
        page_token: str = "",
        timeout: _values.Seconds | None = None,
    ) -> _scopes.ScopePage:
        """Return whose memory the server has: agents, then spaces, then persons, by id."""
        return self._await(
            "scopes",
            kind=kind,
            prefix=prefix,
            tenant=tenant,
            page_size=page_size,
            page_token=page_token,
            timeout=timeout,
        )

    def subscribe(
        self,
        topics: str | Mapping[str, int | None],
        *,
        since: datetime | None = None,
        qos: _progress.QualityOfService | None = None,
        event_types: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        session_id: str | None = None,
        at_once: int = _handlers.HANDLERS_AT_ONCE,
        timeout: _values.Seconds | None = None,
    ) -> Listener:
        """Listen to topics, by a handler (`@ctx.subscribe("t")`) or in a loop."""
        return Listener(
            self._home,
            self._run(
                "subscribe",
                topics,
                since=since,
                qos=qos,
                event_types=event_types,
                headers=headers,
                session_id=session_id,
                at_once=at_once,
                timeout=timeout,
            ),
        )

    def request(
        self,
        topic: str,
        payload: _values.JsonValue | bytes | bytearray = None,
        *,
        headers: Mapping[str, str] | None = None,
        durable: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _events.Event:
        """Emit a request and return the first reply to it."""
        return self._await(
            "request", topic, payload, headers=headers, durable=durable, timeout=timeout
        )

    def reply(
        self,
        event: _events.Event,
        payload: _values.JsonValue | bytes | bytearray = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _events.Emitted:
        """Answer a request; the reply is kept in the store if the request was."""
        return self._await("reply", event, payload, headers=headers, timeout=timeout)

    def attach(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        capabilities: Iterable[str] = (),
        parent_id: str = "",
        heartbeat: _values.Seconds = _attach.HEARTBEAT,
    ) -> None:
        """Attach now; return when the agent and all its tools are in the directory."""
        return self._await(
            "attach",
            metadata=metadata,
            capabilities=capabilities,
            parent_id=parent_id,
            heartbeat=heartbeat,
        )

    def serve(self) -> None:
        """Stay attached until this is cancelled or the client is closed."""
        return self._await("serve")

    def spawn(
        self,
        child_id: str,
        *,
        goal: str,
        session_id: str | None = None,
        tools: Iterable[str] | None = None,
        profile: str | None = None,
        limits: _children.ChildLimits | None = None,
        grants: Iterable[str] = (),
        fork: bool | str = False,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Spawning:
        """Spawn a child: an agent with its own goal, session and workspace."""
        return Spawning(
            self._home,
            self._run(
                "spawn",
                child_id,
                goal=goal,
                session_id=session_id,
                tools=tools,
                profile=profile,
                limits=limits,
                grants=grants,
                fork=fork,
                request_id=request_id,
                timeout=timeout,
            ),
        )

    def gather(
        self,
        *children: Child | str,
        wait: _values.Seconds | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _children.Outcome:
        """Wait until children have returned, or failed; return what came of them."""
        return self._await("gather", *children, wait=wait, timeout=timeout)

    def complete(
        self, result: str, *, grants: Iterable[str] = (), timeout: _values.Seconds | None = None
    ) -> _children.ChildAgent:
        """Return the result of this agent, which another one has spawned."""
        return self._await("complete", result, grants=grants, timeout=timeout)

    def fail(self, error: str, *, timeout: _values.Seconds | None = None) -> _children.ChildAgent:
        """End this agent, which another one has spawned, without a result."""
        return self._await("fail", error, timeout=timeout)

    @property
    def memory(self) -> Memory:
        """The records of long-term memory."""
        return self._part("memory", Memory)

    @property
    def spaces(self) -> Spaces:
        """Memories that agents share, and who has access to them."""
        return self._part("spaces", Spaces)

    @property
    def admin(self) -> Admin:
        """Erasing, for who runs the server."""
        return self._part("admin", Admin)

    @property
    def backups(self) -> Backups:
        """Copies of the whole store, for who runs the server."""
        return self._part("backups", Backups)

    @property
    def sessions(self) -> Sessions:
        """Sessions as a whole, exported and imported."""
        return self._part("sessions", Sessions)

    @property
    def context(self) -> Context:
        """The session's log, prompts and blobs."""
        return self._part("context", Context)

    @property
    def working(self) -> WorkingState:
        """What the agent is at: goal, plan, notes, events."""
        return self._part("working", WorkingState)

    @property
    def tools(self) -> Tools:
        """What tools there are."""
        return self._part("tools", Tools)

    @property
    def workspace(self) -> Workspace:
        """Edits, scripts and programs in the background; which server has it."""
        return self._part("workspace", Workspace)

    @property
    def events(self) -> Events:
        """Listening to events."""
        return self._part("events", Events)

    @property
    def messages(self) -> Messages:
        """The direct messages for this agent."""
        return self._part("messages", Messages)

    @property
    def session_id(self) -> str:
        """The session it works in; empty: the server's default session."""
        return self._get("session_id")

    def memory_save(
        self,
        text: str,
        *,
        key: str | None = None,
        kind: str | None = None,
        metadata: Mapping[str, _values.JsonValue] | None = None,
        tags: Iterable[str] = (),
        importance: float | None = None,
        ttl: _values.Seconds | None = None,
        expire_time: datetime | None = None,
        sliding_ttl: _values.Seconds | None = None,
        event_time: datetime | None = None,
        valid_until: datetime | None = None,
        author: str | None = None,
        embedding: Iterable[float] | None = None,
        embedding_space: str | None = None,
        supersedes: str | None = None,
        derived_from: Iterable[str] = (),
        origin: _records.Origin | None = None,
        pinned: bool = False,
        relations: Iterable[tuple[str, str]] = (),
        replace: bool = False,
        duplicates: _records.Duplicates | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Saved:
        """Save one record; the very next query finds it."""
        return self._await(
            "memory_save",
            text,
            key=key,
            kind=kind,
            metadata=metadata,
            tags=tags,
            importance=importance,
            ttl=ttl,
            expire_time=expire_time,
            sliding_ttl=sliding_ttl,
            event_time=event_time,
            valid_until=valid_until,
            author=author,
            embedding=embedding,
            embedding_space=embedding_space,
            supersedes=supersedes,
            derived_from=derived_from,
            origin=origin,
            pinned=pinned,
            relations=relations,
            replace=replace,
            duplicates=duplicates,
            user_id=user_id,
            space_id=space_id,
            id=id,
            request_id=request_id,
            timeout=timeout,
        )

    def memory_query(
        self,
        request: Mapping[str, Any] | str | None = None,
        *,
        query: str | None = None,
        limit: int | None = None,
        filter: str | None = None,
        mode: _query.QueryMode | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        expand: bool = False,
        explain: bool = False,
        embedding: Iterable[float] | None = None,
        embedding_space: str | None = None,
        owners: Iterable[_records.Owner | str] | None = None,
        recency_weight: float | None = None,
        recency_half_life: _values.Seconds | None = None,
        importance_weight: float | None = None,
        access_weight: float | None = None,
        tiers: Iterable[int] | int | None = None,
        without_signals: Iterable[_query.Signal] | None = None,
        include_archived: bool = False,
        include_embeddings: bool = False,
        peek: bool = False,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        related: _relations.Related | Mapping[str, Any] | bool | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _query.Hits:
        """Find the records that fit best."""
        return self._await(
            "memory_query",
            request,
            query=query,
            limit=limit,
            filter=filter,
            mode=mode,
            min_score=min_score,
            max_tokens=max_tokens,
            expand=expand,
            explain=explain,
            embedding=embedding,
            embedding_space=embedding_space,
            owners=owners,
            recency_weight=recency_weight,
            recency_half_life=recency_half_life,
            importance_weight=importance_weight,
            access_weight=access_weight,
            tiers=tiers,
            without_signals=without_signals,
            include_archived=include_archived,
            include_embeddings=include_embeddings,
            peek=peek,
            as_of=as_of,
            valid_at=valid_at,
            related=related,
            user_id=user_id,
            space_id=space_id,
            timeout=timeout,
        )

    @overload
    def tool(self, name: str, /) -> _tools.ToolResult: ...

    @overload
    def tool(
        self,
        name: str,
        arguments: Mapping[str, _values.JsonValue] | str | None = None,
        *,
        timeout: _values.Seconds | None = None,
        thought: str | None = None,
        turn_id: str | None = None,
        call_id: str | None = None,
        request_id: str | None = None,
    ) -> _tools.ToolResult: ...

    @overload
    def tool(self, function: _client.FunctionT, /) -> _client.FunctionT: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        /,
        *,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        level: int | None = None,
        requires_approval: bool | None = None,
    ) -> Callable[[_client.FunctionT], _client.FunctionT]: ...

    def tool(
        self,
        name: str | _client.FunctionT | None = None,
        arguments: Mapping[str, _values.JsonValue] | str | None = None,
        *,
        timeout: _values.Seconds | None = None,
        thought: str | None = None,
        turn_id: str | None = None,
        call_id: str | None = None,
        request_id: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        level: int | None = None,
        requires_approval: bool | None = None,
    ) -> Any:
        """Run a tool: `ctx.tool("fs:read_file", {"path": "a"})`; or provide one."""
        return self._provide(
            "tool",
            name,
            arguments,
            timeout=timeout,
            thought=thought,
            turn_id=turn_id,
            call_id=call_id,
            request_id=request_id,
            description=description,
            parameters=parameters,
            level=level,
            requires_approval=requires_approval,
        )

    def emit(
        self,
        topic: str,
        payload: _values.JsonValue | bytes | bytearray = None,
        *,
        volatile: bool = False,
        headers: Mapping[str, str] | None = None,
        event_id: str | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        type: str | None = None,
        tags: Iterable[str] = (),
        needs_listener: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _events.Emitted:
        """Publish one event; it is synced when this returns, unless volatile."""
        return self._await(
            "emit",
            topic,
            payload,
            volatile=volatile,
            headers=headers,
            event_id=event_id,
            request_id=request_id,
            session_id=session_id,
            type=type,
            tags=tags,
            needs_listener=needs_listener,
            timeout=timeout,
        )

    def send(
        self,
        target: str,
        content: str,
        *,
        priority: float | None = None,
        ttl: _values.Seconds | None = None,
        session_id: str | None = None,
        parent_task_id: str | None = None,
        role: str | None = None,
        node: str | None = None,
        metadata: Mapping[str, _values.JsonValue] | None = None,
        task_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _messages.SentMessage:
        """Say something to one agent, attached or not: `ctx.send("desk", "Done.")`."""
        return self._await(
            "send",
            target,
            content,
            priority=priority,
            ttl=ttl,
            session_id=session_id,
            parent_task_id=parent_task_id,
            role=role,
            node=node,
            metadata=metadata,
            task_id=task_id,
            timeout=timeout,
        )
