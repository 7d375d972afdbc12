"""The client: one agent's hold on a Loom Bridge server."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, cast, overload

from loombridge import (
    _agent,
    _backups,
    _children,
    _context,
    _dashboard,
    _erasure,
    _events,
    _family,
    _memory,
    _messages,
    _provided,
    _query,
    _records,
    _relations,
    _rpc,
    _scopes,
    _sessions,
    _spaces,
    _spelling,
    _tools,
    _values,
    _workspace,
)
from loombridge.v1 import events_pb2, memory_pb2

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@_spelling.helpful
class Client(_family.Spawner, _agent.Agent, _scopes.Overseer, _spelling.Helpful):
    """One agent, connected; made by `loombridge.connect`.

    Any number of tasks of one event loop may use it at once. Every call takes
    `timeout` in seconds (or a `timedelta`), unless the client's default will do;
    running out raises `DeadlineExceededError`. Calls that find no server raise
    `ServerUnreachableError`: reads are tried again for about three seconds first, changes only
    with a `request_id`. With one, the same call again gives the first answer instead of a
    second effect.
    """

    memory: _memory.Memory
    """The records of long-term memory."""
    spaces: _spaces.Spaces
    """Memories that agents share, and who has access to them."""
    admin: _erasure.Admin
    """Erasing, for who runs the server."""
    backups: _backups.Backups
    """Copies of the whole store, for who runs the server."""
    sessions: _sessions.Sessions
    """Sessions as a whole, exported and imported."""
    context: _context.Context
    """The session's log, prompts and blobs."""
    working: _dashboard.WorkingState
    """What the agent is at: goal, plan, notes, events."""
    tools: _tools.Tools
    """What tools there are."""
    workspace: _workspace.Workspace
    """Edits, scripts and programs in the background; which server has it."""
    events: _events.Events
    """Listening to events."""
    messages: _messages.Messages
    """The direct messages for this agent."""
    session_id: str
    """The session it works in; empty: the server's default session."""

    def __init__(self, transport: _rpc.Transport, agent_id: str, session_id: str) -> None:
        """Made by `loombridge.connect`."""
        super().__init__(transport, agent_id, session_id, self.emit)
        self.session_id = session_id
        self.memory = _memory.Memory(transport, agent_id, session_id)
        self.spaces = _spaces.Spaces(transport, agent_id, session_id)
        self.admin = _erasure.Admin(transport)
        self.backups = _backups.Backups(transport)
        self.sessions = _sessions.Sessions(transport, agent_id)
        self.context = _context.Context(transport, agent_id, session_id)
        self.working = _dashboard.WorkingState(transport, agent_id, session_id)
        self.tools = _tools.Tools(transport, agent_id)
        self.workspace = _workspace.Workspace(transport, agent_id, session_id, self.tools)
        self.events = _events.Events(transport, agent_id)
        self.messages = _messages.Messages(transport, agent_id, session_id)
        self._agent_name = agent_id
        self._family = _children.Family(transport, agent_id, session_id)

    async def memory_save(
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
        id: str | None = None,  # noqa: A002  the record's own word
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Saved:
        """Save one record; the very next query finds it.

        Args:
            text: what to remember, 1 byte to 256 KiB.
            key: a unique name of the caller's own.
            kind: what it is; default `fact`.
            metadata: a JSON object of at most 64 KiB.
            tags: at most 64 labels.
            importance: from 0 to 1; default 0.5.
            ttl: how long to keep it, in seconds or as a `timedelta`; default: for ever.
            expire_time: the moment it goes, instead of `ttl`; with a time zone.
            sliding_ttl: how long to keep it after it was last read or found, instead.
            event_time: when the described event happened; with a time zone.
            valid_until: when it stops being true, for queries with `valid_at`.
            author: who said it.
            embedding: a vector of the caller's, at most 4096 numbers.
            embedding_space: the model it came from; required with `embedding`.
            supersedes: id of a record that this one replaces.
            derived_from: ids of records this one was made from, at most 64.
            origin: where the text came from; default `agent`.
            pinned: what makes room or forgets passes over it.
            relations: how it is related to other records, as pairs of a name and an id, such
                as `[("part_of", plan.id)]`; see `memory.relate`. Not with `replace`.
            replace: a record that has the `key` already becomes this one, field by field,
                under its own id; what it was stays among its `memory.versions`.
            duplicates: `reinforce` adds nothing where a record says the same already, and
                counts a repeat of that one, which `id` of the answer names then; it looks at
                records saved with `reinforce` only. `keep` saves it all the same. Default:
                the server's setting, by default `keep`.
            user_id: save to that person's memory, which agents share.
            space_id: save to the memory of that space; see `ctx.spaces`.
            id: names the record; default: made by the server.
            request_id: makes the call safe to repeat.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule.
            RecordExistsError: `id` or `key` is taken.
            RecordNotFoundError: `supersedes` names no record.
            EmbeddingMismatchError: the vector's space has another dimension.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = memory_pb2.MemorySaveRequest(
            agent_id=self.agent_id,
            user_id=_values.optional_text("user_id", user_id),
            space_id=_values.optional_text("space_id", space_id),
            request_id=_values.optional_text("request_id", request_id),
            replace=replace,
            duplicates=_records.duplicates(duplicates),
        )
        draft = _records.RecordDraft(
            text=text,
            id=id,
            key=key,
            kind=kind,
            author=author,
            event_time=event_time,
            valid_until=valid_until,
            metadata=metadata,
            tags=tags,
            importance=importance,
            ttl=ttl,
            expire_time=expire_time,
            sliding_ttl=sliding_ttl,
            embedding=embedding,
            embedding_space=embedding_space,
            supersedes=supersedes,
            derived_from=derived_from,
            origin=origin,
            pinned=pinned,
            relations=relations,
        )
        _records.fill(request, draft, self.session_id)
        answer = await self._transport.call(
            _rpc.MEMORY_SAVE, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _records.saved(answer)

    async def memory_query(
        self,
        request: Mapping[str, Any] | str | None = None,
        *,
        query: str | None = None,
        limit: int | None = None,
        filter: str | None = None,  # noqa: A002  the API's own word
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
        """Find the records that fit best.

        Args:
            request: the query as text, or a mapping of the arguments below, such as
                `{"query": "price", "limit": 5}`; or leave it out and use keywords.
            query: what to look for, at most 8 KiB; may be missing in mode `vector` with
                an `embedding`.
            limit: how many hits at most; default 5, with max_tokens 100; at most 100.
            filter: only records that it lets through, after AIP-160, such as
                `tags:"market" AND (metadata.price > 40000 OR key = "ci*")`.
            mode: which signals to use; default `hybrid`.
            min_score: drop hits under this score, from 0 to 1.
            max_tokens: bound the texts of all hits together, and fill the bound with what
                says most: short records whole, of long ones `passages`.
            expand: search a second time with words that the first hits suggest: finds
                more, less exactly.
            explain: say of each hit how its score came about.
            embedding: a vector of the query, in place of the server's embedder.
            embedding_space: the model it came from; required with `embedding`.
            owners: memories to search together as one, such as
                `["agent:a1", "user:ann"]`, at most 16; default: the agent's.
            recency_weight: how much newer records are preferred, from 0 to 1: at most
                that part of a score is taken from an old one. Default 0.
            recency_half_life: the age at which half of that is taken; default 30 days.
            importance_weight: the same for records of importance 0. Default 0.
            access_weight: the same for records without reads; needs a server that
                counts accesses (`--count-accesses`), or the receipt says so. Default 0.
            tiers: the memory tiers to search, from 2 to 4; default: 4, the long-term one.
            without_signals: signals that records are not ranked by, to see what each is
                worth, such as `["session", "newer"]`.
            include_archived: find what lies in the archive, too.
            include_embeddings: return the vectors too.
            peek: do not prolong the life of what is found that has a `sliding_ttl`.
            as_of: search what the memory held at that moment, by the server's clock: records
                as they were, and none that was saved later. What is gone since is not there.
            valid_at: search what was true at that moment: from `event_time`, or without one
                from when it was saved, until `valid_until` or until what replaced it.
            related: bring what is one relation away from the hits, behind them: True, or
                `Related(direction="out", names=("part_of",), limit=10)`.
            user_id: search that person's memory instead of the agent's.
            space_id: search the memory of that space instead.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule.
            InvalidFilterError: the filter does not parse or names an unknown field.
            NoEmbedderError: mode `vector` on a server that makes no vectors.
            EmbedderUnavailableError: mode `vector`, and the embedder does not answer.
            TypeError: the mapping has a key that is not an argument.
        """
        given: dict[str, Any] = {
            "query": query,
            "limit": limit,
            "filter": filter,
            "mode": mode,
            "min_score": min_score,
            "max_tokens": max_tokens,
            "expand": expand or None,
            "explain": explain or None,
            "embedding": embedding,
            "embedding_space": embedding_space,
            "owners": owners,
            "recency_weight": recency_weight,
            "recency_half_life": recency_half_life,
            "importance_weight": importance_weight,
            "access_weight": access_weight,
            "tiers": tiers,
            "without_signals": without_signals,
            "include_archived": include_archived or None,
            "include_embeddings": include_embeddings or None,
            "peek": peek or None,
            "as_of": as_of,
            "valid_at": valid_at,
            "related": related or None,
            "user_id": user_id,
            "space_id": space_id,
        }
        message = _query.query_request(self.agent_id, request, given)
        answer = await self._transport.call(_rpc.MEMORY_QUERY, message, timeout=timeout)
        return _query.hits(answer)

    @overload
    def tool(self, name: str, /) -> _tools.ToolVerb: ...

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
    ) -> Coroutine[Any, Any, _tools.ToolResult]: ...

    @overload
    def tool(self, function: FunctionT, /) -> FunctionT: ...

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
    ) -> Callable[[FunctionT], FunctionT]: ...

    def tool(
        self,
        name: str | FunctionT | None = None,
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
    ) -> (
        Coroutine[Any, Any, _tools.ToolResult]
        | _tools.ToolVerb
        | FunctionT
        | Callable[[FunctionT], FunctionT]
    ):
        """Run a tool: `await ctx.tool("fs:read_file", {"path": "a"})`; or provide one.

        A call is recorded as a step of the session. A tool that fails is a result with
        `success` False, not an exception; `raise_for_error` makes it one.

        As a decorator, `@ctx.tool` or `@ctx.tool("name", description="...")`, it makes
        a function a tool that every agent can call: the type hints say what it takes,
        the docstring what it does. A plain function runs in a thread. What it raises is
        the error of the call: FileNotFoundError, PermissionError and TimeoutError keep
        their meaning, ToolFailedError its reason. A call that takes longer than its
        caller waits, or whose stream breaks, is cancelled.

        Args:
            name: the tool's name, such as `fs:read_file`. To provide one: default is
                the function's.
            arguments: its arguments, a JSON object of at most 1 MiB; or its text, as a model
                wrote it.
            timeout: seconds the tool may run, at most 600; default: the client's
                timeout. The answer itself gets five seconds more.
            thought: what the model said before the call, kept with the step.
            turn_id: holds parallel calls of one model turn together.
            call_id: the model's own id of the call. What the model got wrong, such as an
                unknown tool or bad arguments, is then a result with `success` False, which
                its next prompt shows, and no exception. The same call again, in the same
                turn and session, gives the first answer: the tool runs once. With other
                arguments it is another call. A model whose ids repeat needs a `turn_id`;
                without one, tools that only read run again.
            request_id: makes the call safe to repeat: the tool runs once. With other
                content it is refused.
            description: to provide one: what it does, for a model; default: the
                function's docstring.
            parameters: to provide one: the JSON Schema of its arguments; default: made
                from the function's type hints, which then are checked as well.
            level: to provide one: 1 (the default) stands in every agent's prompts, 2
                and 3 can be called and stand in none.
            requires_approval: to provide one: a person must agree to each call; the
                server can't ask anybody and refuses it.

        Raises:
            ToolNotFoundError: no tool of that name; `nearest` is the likely one. Without a
                `call_id`.
            InvalidArgumentsError: the arguments do not match the schema of a tool of the
                server, or name some that it has not. Without a `call_id`. An agent's tool
                answers with the failure `invalid_arguments`.
            ToolLimitError: the tool may not be called that often; `retry_after` says when
                it may.
            RequestIdReusedError: `request_id` was used with other content.
            TypeError: a function has a parameter for which there is no JSON.
        """
        call: dict[str, Any] = {
            "arguments": arguments,
            "timeout": timeout,
            "thought": thought,
            "turn_id": turn_id,
            "call_id": call_id,
            "request_id": request_id,
        }
        is_call = any(value is not None for value in call.values())
        described = (description, parameters, level, requires_approval)
        is_decorator = callable(name) or name is None or any(it is not None for it in described)
        if is_call and is_decorator:
            raise TypeError("a tool is either called or provided, not both")

        def provide(function: FunctionT) -> FunctionT:
            given = None if callable(name) else name
            self._attachment.provide(
                _provided.provided_tool(
                    function,
                    given,
                    description,
                    parameters,
                    level=1 if level is None else level,
                    requires_approval=bool(requires_approval),
                )
            )
            return function

        if is_decorator:
            return provide(name) if callable(name) else provide
        running = self.tools.run(cast("str", name), session_id=self.session_id, **call)
        return running if is_call else _tools.ToolVerb(running, provide)

    async def emit(
        self,
        topic: str,
        payload: _values.JsonValue | bytes | bytearray = None,
        *,
        volatile: bool = False,
        headers: Mapping[str, str] | None = None,
        event_id: str | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        type: str | None = None,  # noqa: A002  the event's own word
        tags: Iterable[str] = (),
        needs_listener: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _events.Emitted:
        """Publish one event; it is synced when this returns, unless volatile.

        Args:
            topic: where to: dot-separated words, 1 to 256 bytes.
            payload: JSON, or bytes; at most 1 MiB. Default: JSON null.
            volatile: only for current listeners; never stored, no sequence.
            headers: the emitter's own pairs: at most 32, together at most 8 KiB.
            event_id: names the event; default: made by the server.
            request_id: makes a durable emit safe to repeat; it is the agent's own.
            session_id: default: the client's.
            type: what sort of event it is, at most 256 bytes.
            tags: at most 32 labels.
            needs_listener: emit only where somebody is subscribed to the topic; for
                a durable event an agent that is briefly away counts as well.
            timeout: seconds; default: the client's.

        Raises:
            NobodyListensError: `needs_listener`, and there is none.
            ReservedTopicError: the topic has a meaning that is not served.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = events_pb2.EmitRequest(
            agent_id=self.agent_id,
            topic=_values.text("topic", topic),
            headers=_values.text_map("headers", headers or {}),
            delivery=events_pb2.DELIVERY_VOLATILE if volatile else events_pb2.DELIVERY_DURABLE,
            session_id=self.session_id
            if session_id is None
            else _values.text("session_id", session_id),
            event_id=_values.optional_text("event_id", event_id),
            request_id=_values.optional_text("request_id", request_id),
            type=_values.optional_text("type", type),
            tags=_values.texts("tags", tags),
            needs_listener=needs_listener,
        )
        if isinstance(payload, bytes | bytearray):
            request.payload_bytes = bytes(payload)
        else:
            request.payload_json = _values.json_text("payload", payload)
        answer = await self._transport.call(
            _rpc.EMIT, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _events.emitted(answer)

    async def send(
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
        """Say something to one agent, attached or not: `await ctx.send("desk", "Done.")`.

        The message is durable when the call returns. It stands before the tasks in the
        target's prompts, and the target gets an event on `agent.<target>.messages`.

        Args:
            target: whom it is for.
            content: what it says, at most 8,192 bytes; be brief.
            priority: from 0 to 1, higher ones come first; default 0.5.
            ttl: seconds that it lives; default: for ever.
            session_id: the session that it belongs to; default: the client's.
            parent_task_id: the task that it belongs to.
            role: the role that it asks for in prompts: `system`, `user` or `assistant`.
                Targets whose settings name the sender among the `instructors` give it;
                with others it has the assistant's. It begins with
                `[Direct message from sender]` in each.
            node: a second name under which the target finds it.
            metadata: fields of one's own, at most 4,096 bytes of JSON.
            task_id: names it: the same id with the same message is one message, however
                often it is sent. Default: made here.
            timeout: seconds; default: the client's.

        Raises:
            RecordExistsError: the target has another message under that `task_id`.
            QuotaExceededError: the target has as many messages as it may have.
        """
        return await self.messages.send(
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

    async def close(self) -> None:
        """End every call, handler and tool, and the connection; twice is fine."""
        await self._leave()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        await self.close()
