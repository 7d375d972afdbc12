"""A session of the OpenAI Agents SDK whose items are records of long-term memory.

    from loombridge.openai_agents import LoomBridgeSession

    session = LoomBridgeSession("ann", "127.0.0.1:50051")
    await Runner.run(agent, "What did I say about pears?", session=session)

What was said is found by `memory_query` of the same agent, too. Install it with
`pip install "loombridge[openai-agents]"`.
"""

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

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

from typing import Unpack

from loombridge import _client, _errors, _loops, _records, _values

__all__ = ["LoomBridgeSession"]

AGENT = "openai-agents"
"""The default owner of the records."""

KIND = "openai.item"
"""The kind of an item's record."""

PLACE = "openai"
"""The member of a record's metadata that says more of it."""

NO_WORDS = "-"
"""The text of a record that holds no item."""

TEXT_BYTES = 256 << 10
"""Bytes of a text that a server takes; a longer item lies in several records."""

NAMED = 60
"""Records that one filter names; it may have 4 KiB."""


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
        history = await self._loop.acall(lambda ctx: _history(ctx, self.session_id, limit))
        return [each.item for each in history.items]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind the others."""
        drafts = [draft for item in items for draft in _drafts(self.session_id, item, {})]

        async def add(ctx: _client.Client) -> None:
            if drafts:
                await ctx.memory.save_many(drafts)

        await self._loop.acall(add)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out and return it; None: there is none."""

        async def pop(ctx: _client.Client) -> TResponseInputItem | None:
            while newest := (await _history(ctx, self.session_id, 1)).items:
                first, *others = newest[0].ids
                # Whoever deletes its first record has it; another may have been faster.
                with suppress(_errors.RecordNotFoundError):
                    await ctx.memory.delete(id=first)
                    await _forget(ctx, others)
                    return newest[0].item
            return None

        return await self._loop.acall(pop)

    async def clear_session(self) -> None:
        """Take all items out."""
        await self._atomic_replace_items([])

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Put items in the place of those that are there; what the SDK's compaction calls.

        One commit adds the new items and a mark that says up to where they replace the old
        ones, which are deleted afterwards.
        """

        async def replace(ctx: _client.Client) -> bool:
            history = await _history(ctx, self.session_id)
            if history.newest is None and not items:
                return True
            batch = {"batch": uuid.uuid4().hex}
            drafts = [draft for item in items for draft in _drafts(self.session_id, item, batch)]
            mark = {**batch, "through": history.newest}
            saved = await ctx.memory.save_many([*drafts, _draft(self.session_id, NO_WORDS, mark)])
            # The newest goes when the others have gone: it says where the old ones end.
            await _forget(ctx, history.others)
            await _forget(ctx, [history.newest] if history.newest else [])
            await _forget(ctx, [] if items else [saved[-1].id])
            return True

        return await self._loop.acall(replace)


@dataclass
class _Item:
    """An item that is read, from its last record to its first."""

    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, record: _records.Record) -> int:
        """Put a record before the others; return how many it has."""
        self.ids.insert(0, record.id)
        self.texts.insert(0, record.text)
        return len(self.ids)

    @property
    def item(self) -> TResponseInputItem:
        return json.loads("".join(self.texts))


@dataclass
class _History:
    """What a session holds."""

    items: list[_Item] = field(default_factory=list)
    """The items, in order."""
    newest: str | None = None
    """The id of the newest record."""
    others: list[str] = field(default_factory=list)
    """The ids of the records before it that were read, the oldest first."""


async def _history(ctx: _client.Client, session_id: str, limit: int | None = None) -> _History:
    """Return what a session holds, or no more than the newest items of it."""
    found = _History()
    behind: list[_Item] = []
    """The items that were added after the newest replacement, the newest first."""
    inside: list[_Item] = []
    """Those that it put there."""
    mark: Mapping[str, Any] = {}
    """What it says."""
    begun: dict[str, _Item] = {}
    """Items of several records, of which some were read."""
    replaced = False
    async for record in _records_of(ctx, session_id, limit):
        if found.newest is None:
            found.newest = record.id
        else:
            found.others.insert(0, record.id)
        replaced = replaced or record.id == mark.get("through")
        about = _about(record)
        if "through" in about:
            mark = mark or about
        elif not replaced and about.get("batch") in (None, mark.get("batch")):
            name, parts = about.get("item", (record.id, 1))
            item = begun.setdefault(name, _Item())
            if item.take(record) == parts:
                (inside if "batch" in about else behind).append(item)
        if len(behind) == limit:
            break
    items = [*behind, *inside][:limit]
    found.items = items[::-1]
    return found


async def _records_of(
    ctx: _client.Client, session_id: str, limit: int | None
) -> AsyncIterator[_records.Record]:
    listing = ctx.memory.list(
        filter=f'session_id = {json.dumps(session_id)} AND kind = "{KIND}"',
        newest_first=True,
        page_size=None if limit is None else min(limit, 500),
    )
    async for record in listing:
        yield record


def _about(record: _records.Record) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", record.metadata.get(PLACE, {}))


def _drafts(
    session_id: str, item: TResponseInputItem, about: Mapping[str, Any]
) -> Sequence[_records.RecordDraft]:
    """Return the records that an item becomes: more than one, if it is long."""
    text = json.dumps(item, ensure_ascii=False)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # Half of a pair of surrogates, which JSON can say by an escape alone.
        text = json.dumps(item)
        size = len(text)
    if size <= TEXT_BYTES:
        return [_draft(session_id, text, about)]
    most = TEXT_BYTES // 4  # No character has more bytes.
    texts = [text[start : start + most] for start in range(0, len(text), most)]
    about = {**about, "item": [uuid.uuid4().hex, len(texts)]}
    return [_draft(session_id, each, about) for each in texts]


def _draft(session_id: str, text: str, about: Mapping[str, Any]) -> _records.RecordDraft:
    return _records.RecordDraft(
        text=text,
        kind=KIND,
        session_id=session_id,
        metadata={PLACE: about} if about else None,
    )


async def _forget(ctx: _client.Client, ids: Sequence[str]) -> None:
    """Delete records, those before first."""
    for start in range(0, len(ids), NAMED):
        named = (f'id = "{each}"' for each in ids[start : start + NAMED])
        await ctx.memory.delete_matching(" OR ".join(named))
