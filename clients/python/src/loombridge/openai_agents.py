"""A session of the OpenAI Agents SDK whose items are records of long-term memory.

    from loombridge.openai_agents import LoomBridgeSession

    session = LoomBridgeSession("ann", "127.0.0.1:50051")
    await Runner.run(agent, "What did I say about pears?", session=session)

What was said is found by `memory_query` of the same agent, too. Install it with
`pip install "loombridge[openai-agents]"`.
"""

from contextlib import suppress
from typing import Any, Unpack

try:
    from agents import SessionSettings, TResponseInputItem
    from agents.memory.session import SessionABC
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("agents", "openai"):
        raise
    raise ImportError(
        "loombridge.openai_agents needs the OpenAI Agents SDK: "
        'pip install "loombridge[openai-agents]"'
    ) from err

from loombridge import _client, _errors, _items, _loops, _values

__all__ = ["LoomBridgeSession"]

AGENT = "openai-agents"
"""The default owner of the records."""

ITEMS = _items.Items(kind="openai.item", place="openai")
"""How the items are kept."""


class LoomBridgeSession(_loops.Adapter, SessionABC):
    """A `Session` of the OpenAI Agents SDK; close it, or use it in an `async with` block.

    Any thread and any event loop may use it, and several processes the same session. Items
    are added together or not at all, up to 1,000 items of 4 MiB. `OpenAIResponsesCompactionSession`
    around it replaces a history in one commit: a process that is killed meanwhile leaves
    either the old one or the new one, and no item that is added meanwhile is lost.
    """

    def __init__(
        self,
        session_id: str,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            session_id: names the session among the agent's, at most 256 bytes.
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory the items are in; default `openai-agents`, or the client's.
            session_settings: how many items `get_items` returns at most.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        if not _values.text("session_id", session_id):
            raise ValueError("session_id must not be empty")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)
        self._open(server, agent_id, AGENT, connection)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, the oldest first.

        Args:
            limit: only so many of the newest; default: that of the settings, or else all.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        history = await self._loop.acall(lambda ctx: ITEMS.read(ctx, self.session_id, limit))
        return [each.value for each in history.items]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind the others."""
        await self._loop.acall(lambda ctx: ITEMS.add(ctx, self.session_id, items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out and return it; None: there is none."""

        async def pop(ctx: _client.Client) -> TResponseInputItem | None:
            while newest := (await ITEMS.read(ctx, self.session_id, 1)).items:
                first, *others = newest[0].ids
                # Whoever deletes its first record has it; another may have been faster.
                with suppress(_errors.RecordNotFoundError):
                    await ctx.memory.delete(id=first)
                    await _items.forget(ctx, others)
                    return newest[0].value
            return None

        return await self._loop.acall(pop)

    async def clear_session(self) -> None:
        """Take all items out."""
        await self._atomic_replace_items([])

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Put items in the place of those that are there; what the SDK's compaction calls."""
        await self._loop.acall(lambda ctx: ITEMS.replace(ctx, self.session_id, items))
        return True
