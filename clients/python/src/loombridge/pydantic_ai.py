"""A conversation store of Pydantic AI whose messages are records, and the tools of the server.

    from loombridge.pydantic_ai import LoomBridgeConversationStore, LoomBridgeToolset

    agent = Agent(model, toolsets=[LoomBridgeToolset("127.0.0.1:50051")])
    async with LoomBridgeConversationStore("127.0.0.1:50051") as store:
        conversation = await store.load("ann") or Conversation(conversation_id="ann")
        await store.save(await agent.run("I like pears", conversation=conversation))

What was said is found by `memory_query` of the same agent, too. Install it with
`pip install "loombridge[pydantic-ai]"`.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Any, Self, Unpack

try:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic_ai import (
        AbstractToolset,
        ModelRetry,
        RunContext,
        ToolDefinition,
        ToolFailed,
        ToolsetTool,
    )
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_core import SchemaValidator, core_schema
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("pydantic", "pydantic_ai"):
        raise
    raise ImportError(
        "loombridge.pydantic_ai needs Pydantic AI with conversation stores: "
        'pip install "loombridge[pydantic-ai]"'
    ) from err

from loombridge import _client, _errors, _loops, _records, _tools, _values

__all__ = ["LoomBridgeConversationStore", "LoomBridgeToolset"]

AGENT = "pydantic-ai"
"""The default owner of the records."""

ENTRY_KIND = "pydantic.entry"
"""The kind of a message's record."""

RECORD_KIND = "pydantic.conversation"
"""The kind of a conversation's record."""

DIRECT = 8
"""Messages that are read one by one; more are read as a listing."""

UNNAMEABLE = re.compile(r"[^\w-]", re.ASCII)
"""What providers take in no name of a tool."""

NAME = "loom_bridge"
"""The member of a tool's metadata that has its name at the server."""

# In a list, for whose parts the settings hold, too.
_BINARY = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_ENTRIES = TypeAdapter(list[ConversationEntry], config=_BINARY)
_ANY = SchemaValidator(core_schema.any_schema())
_RECORDS = TypeAdapter(list[ConversationRecord], config=_BINARY)


class LoomBridgeConversationStore(_loops.Adapter, ConversationStore):
    """A `ConversationStore` of Pydantic AI; close it, or use it in an `async with` block.

    Any event loop may use it, and several processes the same conversations. A save is one
    commit, up to 1,000 messages of 4 MiB; a message has at most 256 KiB of JSON. The messages
    of a deleted conversation go with it, unless the store has forks, which may need them.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory the messages are in; default `pydantic-ai`, or the
                client's.
            user_id: keep them in that person's memory instead, which all agents share.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        self._user_id = user_id
        self._open(server, agent_id, AGENT, connection)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None: there is none."""

        async def read(ctx: _client.Client) -> ConversationRecord | None:
            found = await self._get(ctx, _key(RECORD_KIND, conversation_id))
            return None if found is None else _record(found)

        return await self._loop.acall(read)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records, or those of a scope, the one that was saved last first."""
        found = await self._loop.acall(self._all)
        mine = [each for each in found if scope is None or each.scope == scope]
        return sorted(mine, key=lambda each: each.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new messages, in place of the record with a revision."""
        name = record.conversation_id
        drafts = [_entry_draft(name, entry) for entry in new_entries]
        head = record.head_id
        known = head is None or any(entry.id == head for entry in new_entries)
        text = _RECORDS.dump_json([record]).decode()

        async def write(ctx: _client.Client) -> None:
            old = await self._expect(ctx, name, expected_revision)
            if not known and await self._get(ctx, _key(ENTRY_KIND, head or "")) is None:
                raise ConversationConflict(name)
            # The key goes over only from the one that was read, and so to one writer.
            own = _draft(name, RECORD_KIND, name, text, old.id if old else None)
            try:
                await ctx.memory.save_many([*drafts, own], user_id=self._user_id)
            except (_errors.RecordExistsError, _errors.RecordNotFoundError):
                raise ConversationConflict(name) from None
            if old is not None:
                await self._forget(ctx, old.id)

        await self._loop.acall(write)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation, and its messages unless there are forks."""

        async def delete(ctx: _client.Client) -> None:
            old = await self._expect(ctx, conversation_id, expected_revision)
            try:
                await ctx.memory.delete(id=old.id if old else "", user_id=self._user_id)
            except _errors.RecordNotFoundError:
                raise ConversationConflict(conversation_id) from None
            if not any(each.forked_from for each in await self._all(ctx)):
                await ctx.memory.delete_matching(_of(conversation_id), user_id=self._user_id)

        await self._loop.acall(delete)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return a message.

        Raises:
            KeyError: there is none.
        """
        (entry,) = await self.read_history(entry_id, limit=1)
        return entry

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the messages up to one, in order, or only so many of the last.

        Raises:
            KeyError: one of them is not there.
        """

        async def read(ctx: _client.Client) -> list[ConversationEntry]:
            known: dict[str, ConversationEntry] = {}
            entries: list[ConversationEntry] = []
            name = head_id
            while name is not None and (limit is None or len(entries) < limit):
                if name not in known:
                    known |= await self._entries(
                        ctx, name, alone=limit is not None and limit <= DIRECT
                    )
                entries.append(known[name])
                name = known[name].parent_id
            return entries[::-1]

        return await self._loop.acall(read)

    async def _entries(
        self, ctx: _client.Client, entry_id: str, *, alone: bool
    ) -> dict[str, ConversationEntry]:
        """Return a message, and those that were saved with the same conversation."""
        found = await self._get(ctx, _key(ENTRY_KIND, entry_id))
        if found is None:
            raise KeyError(entry_id)
        records = [found]
        if not alone:
            mine = _of(found.metadata["pydantic"]["conversation"])
            records += [each async for each in ctx.memory.list(filter=mine, user_id=self._user_id)]
        entries = [_ENTRIES.validate_json(each.text)[0] for each in records]
        return {entry.id: entry for entry in entries}

    async def _expect(
        self, ctx: _client.Client, name: str, revision: str | None
    ) -> _records.Record | None:
        """Return what is stored of a conversation, if it has a revision."""
        old = await self._get(ctx, _key(RECORD_KIND, name))
        if (_record(old).revision if old else None) != revision:
            raise ConversationConflict(name)
        return old

    async def _get(self, ctx: _client.Client, key: str) -> _records.Record | None:
        with suppress(_errors.RecordNotFoundError):
            return await ctx.memory.get(key=key, user_id=self._user_id)
        return None

    async def _forget(self, ctx: _client.Client, record_id: str) -> None:
        with suppress(_errors.RecordNotFoundError):
            await ctx.memory.delete(id=record_id, user_id=self._user_id)

    async def _all(self, ctx: _client.Client) -> list[ConversationRecord]:
        listing: AsyncIterator[_records.Record] = aiter(
            ctx.memory.list(filter=f'kind = "{RECORD_KIND}"', user_id=self._user_id)
        )
        found = [record async for record in listing]
        return [_record(each) for each in found if not each.superseded_by]


class LoomBridgeToolset(_loops.Adapter, AbstractToolset[Any]):
    """The tools that the agent may call on a server: its files, shell, memory, those of others.

    Their calls run by the agent's profile, and are steps of the session that the conversation
    names. What is wrong with the arguments, the model may mend; a tool that fails is a failed
    result, which the model reads. Any event loop and any number of agents may use it. Agents
    enter and leave it with each run, so that leaving an `async with` block does not close it:
    `close` does, or a `with` block.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        names: Iterable[str] | None = None,
        id: str | None = None,  # noqa: A002  the framework's own word
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: who calls; default `pydantic-ai`, or the client's.
            names: which tools, such as `["memory:save", "fs:read_file"]`; default: all of
                level 1. For models, `_` stands in the place of `:`.
            id: names the toolset among an agent's, for durable execution.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        self._names = None if names is None else _values.texts("names", names)
        self._id = id
        self._open(server, agent_id, AGENT, connection)

    @property
    def id(self) -> str | None:
        """The name that it was given."""
        return self._id

    async def __aenter__(self) -> Self:
        """Return it itself."""
        return self

    async def __aexit__(self, *args: object) -> None:
        """Do nothing: a run has ended, and others may follow."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools as they are now."""
        found = await self._loop.acall(self._listed)
        return {
            tool.name: ToolsetTool(
                toolset=self, tool_def=tool, max_retries=ctx.max_retries, args_validator=_ANY
            )
            for tool in found
        }

    async def _listed(self, client: _client.Client) -> list[ToolDefinition]:
        names = self._names
        found = await client.tools.list((1,) if names is None else ())
        return [
            ToolDefinition(
                name=UNNAMEABLE.sub("_", tool.name),
                parameters_json_schema=dict(tool.parameters),
                description=tool.description,
                metadata={NAME: tool.name},
            )
            for tool in found
            if names is None or tool.name in names
        ]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """Call a tool; return what a model reads of its result.

        Raises:
            ModelRetry: the arguments do not fit.
            ToolFailed: the tool failed, or was called too often.
        """
        called: str = (tool.tool_def.metadata or {}).get(NAME, name)

        async def run(client: _client.Client) -> _tools.ToolResult:
            session = ctx.conversation_id or client.session_id
            return await client.tools.run(
                called, tool_args, session_id=session, call_id=ctx.tool_call_id
            )

        try:
            result = await self._loop.acall(run)
        except _errors.ToolLimitError as err:
            raise ToolFailed(str(err)) from err
        except ValueError as err:  # They are no JSON, such as NaN.
            raise ModelRetry(str(err)) from err
        if result.success:
            return result.observation
        if result.error and result.error.code == "invalid_arguments":
            raise ModelRetry(result.observation)
        raise ToolFailed(result.observation)


def _key(kind: str, name: str) -> str:
    return f"{kind}:{_values.text('id', name)}"


def _of(conversation: str) -> str:
    """Return the filter that lets the messages of a conversation through."""
    name = json.dumps(conversation).replace("*", "\\\\*")
    return f'kind = "{ENTRY_KIND}" AND metadata.pydantic.conversation = {name}'


def _record(stored: _records.Record) -> ConversationRecord:
    return _RECORDS.validate_json(stored.text)[0]


def _entry_draft(conversation: str, entry: ConversationEntry) -> _records.RecordDraft:
    text = _ENTRIES.dump_json([entry]).decode()
    return _draft(conversation, ENTRY_KIND, entry.id, text)


def _draft(
    conversation: str, kind: str, name: str, text: str, supersedes: str | None = None
) -> _records.RecordDraft:
    return _records.RecordDraft(
        text=text,
        key=_key(kind, name),
        kind=kind,
        metadata={"pydantic": {"conversation": conversation}},
        supersedes=supersedes,
    )
