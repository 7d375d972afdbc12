"""Items of a session, each a record of long-term memory: what adapters keep a history in."""

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from loombridge import _client, _records

NO_WORDS = "-"
"""The text of a record that holds no item."""

TEXT_BYTES = 256 << 10
"""Bytes of a text that a server takes; a longer item lies in several records."""

NAMED = 60
"""Records that one filter names; it may have 4 KiB."""


@dataclass
class Item:
    """An item that is read, from its last record to its first."""

    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, record: _records.Record) -> int:
        """Put a record before the others; return how many it has."""
        self.ids.insert(0, record.id)
        self.texts.insert(0, record.text)
        return len(self.ids)

    @property
    def value(self) -> Any:
        """The item, as JSON says it."""
        return json.loads("".join(self.texts))


@dataclass
class History:
    """What a session holds."""

    items: list[Item] = field(default_factory=list)
    """The items, in order."""
    newest: str | None = None
    """The id of the newest record."""
    others: list[str] = field(default_factory=list)
    """The ids of the records before it that were read, the oldest first."""


@dataclass(frozen=True)
class Items:
    """How an adapter keeps items: their records' kind, and the member of their metadata."""

    kind: str
    place: str

    async def read(self, ctx: _client.Client, session_id: str, limit: int | None = None) -> History:
        """Return what a session holds, or no more than the newest items of it."""
        found = History()
        behind: list[Item] = []
        """The items that were added after the newest replacement, the newest first."""
        inside: list[Item] = []
        """Those that it put there."""
        mark: Mapping[str, Any] = {}
        """What it says."""
        begun: dict[str, Item] = {}
        """Items of several records, of which some were read."""
        replaced = False
        async for record in self._listed(ctx, session_id, limit):
            if found.newest is None:
                found.newest = record.id
            else:
                found.others.insert(0, record.id)
            replaced = replaced or record.id == mark.get("through")
            about = self._about(record)
            if "through" in about:
                mark = mark or about
            elif not replaced and about.get("batch") in (None, mark.get("batch")):
                name, parts = about.get("item", (record.id, 1))
                item = begun.setdefault(name, Item())
                if item.take(record) == parts:
                    (inside if "batch" in about else behind).append(item)
            if len(behind) == limit:
                break
        items = [*behind, *inside][:limit]
        found.items = items[::-1]
        return found

    async def add(self, ctx: _client.Client, session_id: str, items: Sequence[object]) -> None:
        """Add items behind the others, together or not at all."""
        drafts = [draft for item in items for draft in self._drafts(session_id, item, {})]
        if drafts:
            await ctx.memory.save_many(drafts)

    async def replace(self, ctx: _client.Client, session_id: str, items: Sequence[object]) -> None:
        """Put items in the place of those that are there.

        One commit adds the new items and a mark that says up to where they replace the old
        ones, which are deleted afterwards.
        """
        history = await self.read(ctx, session_id)
        if history.newest is None and not items:
            return
        batch = {"batch": uuid.uuid4().hex}
        drafts = [draft for item in items for draft in self._drafts(session_id, item, batch)]
        mark = {**batch, "through": history.newest}
        saved = await ctx.memory.save_many([*drafts, self._draft(session_id, NO_WORDS, mark)])
        # The newest goes when the others have gone: it says where the old ones end.
        await forget(ctx, history.others)
        await forget(ctx, [history.newest] if history.newest else [])
        await forget(ctx, [] if items else [saved[-1].id])

    async def _listed(
        self, ctx: _client.Client, session_id: str, limit: int | None
    ) -> AsyncIterator[_records.Record]:
        listing = ctx.memory.list(
            filter=f'session_id = {json.dumps(session_id)} AND kind = "{self.kind}"',
            newest_first=True,
            page_size=None if limit is None else min(limit, 500),
        )
        async for record in listing:
            yield record

    def _about(self, record: _records.Record) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", record.metadata.get(self.place, {}))

    def _drafts(
        self, session_id: str, item: object, about: Mapping[str, Any]
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
            return [self._draft(session_id, text, about)]
        most = TEXT_BYTES // 4  # No character has more bytes.
        texts = [text[start : start + most] for start in range(0, len(text), most)]
        about = {**about, "item": [uuid.uuid4().hex, len(texts)]}
        return [self._draft(session_id, each, about) for each in texts]

    def _draft(self, session_id: str, text: str, about: Mapping[str, Any]) -> _records.RecordDraft:
        return _records.RecordDraft(
            text=text,
            kind=self.kind,
            session_id=session_id,
            metadata={self.place: about} if about else None,
        )


async def forget(ctx: _client.Client, ids: Sequence[str]) -> None:
    """Delete records, those before first."""
    for start in range(0, len(ids), NAMED):
        named = (f'id = "{each}"' for each in ids[start : start + NAMED])
        await ctx.memory.delete_matching(" OR ".join(named))
