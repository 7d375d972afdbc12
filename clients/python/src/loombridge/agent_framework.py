"""History and memory of Microsoft's Agent Framework, kept by the server.

    from loombridge.agent_framework import LoomBridgeContextProvider, LoomBridgeHistoryProvider

    history = LoomBridgeHistoryProvider("127.0.0.1:50051")
    memory = LoomBridgeContextProvider("127.0.0.1:50051", user_id="ann")
    agent = Agent(client, context_providers=[history, memory])
    await agent.run("What did I say about pears?", session=agent.create_session(session_id="s1"))

A session goes on where it stopped, in whichever process; what fits a question stands in its
prompt, of whichever session it is. Install it with `pip install "loombridge[agent-framework]"`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

try:
    from agent_framework import (
        AgentSession,
        ContextProvider,
        HistoryProvider,
        Message,
        SessionContext,
        SupportsAgentRun,
    )
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("agent_framework", "pydantic"):
        raise
    raise ImportError(
        "loombridge.agent_framework needs the Agent Framework: "
        'pip install "loombridge[agent-framework]"'
    ) from err

from loombridge import _client, _items, _loops, _query, _records

__all__ = ["LoomBridgeContextProvider", "LoomBridgeHistoryProvider"]

AGENT = "agent-framework"
"""The default owner of the records."""

ITEMS = _items.Items(kind="agent_framework.history", place="agent_framework")
"""How the messages of a history are kept."""

KIND = "agent_framework.message"
"""The kind of the record of what was said, as the memory has it."""

NO_SESSION = "default"
"""The session of an agent that runs without one."""

SAID = ("user", "assistant")
"""The roles whose words are remembered."""


class LoomBridgeHistoryProvider(_loops.Adapter, HistoryProvider):
    """A `HistoryProvider`; close it, or use it in an `async with` block.

    Any thread and any event loop may use it, and several processes the same session. What one
    run adds is there together or not at all, up to 1,000 messages of 4 MiB.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "loom_bridge_history"

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        source_id: str = DEFAULT_SOURCE_ID,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory the messages are in; default `agent-framework`, or the
                client's.
            source_id: names the provider among an agent's.
            load_messages: read the history before a run; without it, it is only kept.
            store_inputs: keep what a run is given.
            store_context_messages: keep what other providers add.
            store_context_from: only what providers of these names add.
            store_outputs: keep what a run answers.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        HistoryProvider.__init__(
            self,
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._open(server, agent_id, AGENT, connection)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, the oldest first."""
        history = await self._loop.acall(lambda ctx: ITEMS.read(ctx, session_id or NO_SESSION))
        return [Message.from_dict(item.value) for item in history.items]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add messages behind the others."""
        items = [message.to_dict() for message in messages]
        await self._loop.acall(lambda ctx: ITEMS.add(ctx, session_id or NO_SESSION, items))

    async def clear(self, session_id: str | None) -> None:
        """Take all messages of a session out."""
        await self._loop.acall(lambda ctx: ITEMS.replace(ctx, session_id or NO_SESSION, []))


class LoomBridgeContextProvider(_loops.Adapter, ContextProvider):
    """A `ContextProvider` of long-term memory; close it, or use it in an `async with` block.

    What users and agents say is saved behind each run, and what fits a question stands before
    it. Any thread and any event loop may use it, and several processes the same memory.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "loom_bridge_memory"
    DEFAULT_CONTEXT_PROMPT: ClassVar[str] = "What is remembered and may help:"

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        max_tokens: int = 1_000,
        source_id: str = DEFAULT_SOURCE_ID,
        context_prompt: str = DEFAULT_CONTEXT_PROMPT,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory it is; default `agent-framework`, or the client's.
            user_id: use that person's memory instead, which all agents share.
            max_tokens: how much of what is found stands in a prompt at most.
            source_id: names the provider among an agent's.
            context_prompt: stands above what is found.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        ContextProvider.__init__(self, source_id)
        self._user_id = user_id
        self._max_tokens = max_tokens
        self._context_prompt = context_prompt
        self._open(server, agent_id, AGENT, connection)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Put what is known of the input before it, a line for each record."""
        question = "\n".join(message.text for message in context.input_messages).strip()

        async def find(ctx: _client.Client) -> Sequence[_query.Hit]:
            return await ctx.memory_query(
                question,
                user_id=self._user_id,
                filter=f'kind != "{ITEMS.kind}"',
                max_tokens=self._max_tokens,
                limit=100,
            )

        hits: Sequence[_query.Hit] = await self._loop.acall(find) if question else ()
        if hits:
            lines = [self._context_prompt, *(" ".join(hit.text.split()) for hit in hits)]
            told = {hit.record.session_id for hit in hits} - {None, context.session_id}
            context.extend_messages(
                self,
                [Message("user", ["\n".join(lines)])],
                origin_session_ids=sorted(each for each in told if each),
            )

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Save what was said, together or not at all."""
        answered = context.response.messages if context.response else []
        drafts = [
            _records.RecordDraft(
                text=message.text.strip(),
                kind=KIND,
                session_id=context.session_id or NO_SESSION,
                metadata={ITEMS.place: {"role": message.role}},
            )
            for message in (*context.input_messages, *answered)
            if message.role in SAID and message.text.strip()
        ]

        async def save(ctx: _client.Client) -> None:
            await ctx.memory.save_many(drafts, user_id=self._user_id)

        if drafts:
            await self._loop.acall(save)
