"""Long-term memory other than saving and querying: the care of its records."""

from collections.abc import AsyncIterable, Iterable, Mapping
from datetime import datetime

from loombridge import (
    _bulk,
    _counts,
    _extract,
    _query,
    _records,
    _relations,
    _rpc,
    _spelling,
    _transfer,
    _values,
)
from loombridge.v1 import memory_pb2 as pb

_VERSIONS = 100  # the server's largest page


@_spelling.helpful
class Memory(_extract.Extractor, _transfer.Transfers, _relations.Relations, _spelling.Helpful):
    """The records of an agent's memory; reached as `ctx.memory`.

    Saving one and querying are `ctx.memory_save` and `ctx.memory_query`. Every call
    takes `user_id`, for that person's memory instead of the agent's, and `timeout` in
    seconds, unless the client's default will do.
    """

    def __init__(self, transport: _rpc.Transport, agent_id: str, session_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id
        self._session_id = session_id

    async def get(
        self,
        *,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        include_embedding: bool = False,
        as_of: datetime | None = None,
        peek: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """Return one record, named by `id` or by `key`.

        Args:
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            user_id: read that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            include_embedding: return the vector too.
            as_of: return it as it was at that moment, by the server's clock; with a time
                zone. Default: as it is.
            peek: do not prolong its life, where it has a `sliding_ttl`; with `as_of` reading
                never does.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: there is none, or it has expired; with `as_of` also when it
                was saved later, or that version is kept no longer.
        """
        request = pb.GetRecordRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            include_embeddings=include_embedding,
            peek=peek,
        )
        _records.name(request, id, key)
        if as_of is not None:
            request.as_of.CopyFrom(_values.timestamp("as_of", as_of))
        answer = await self._at(space_id).call(_rpc.GET_RECORD, request, timeout=timeout)
        return _records.record(answer)

    async def update(
        self,
        *,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        text: str | None = None,
        kind: str | None = None,
        author: str | None = None,
        event_time: datetime | None = None,
        valid_until: datetime | None = None,
        metadata: Mapping[str, _values.JsonValue] | None = None,
        tags: Iterable[str] | None = None,
        importance: float | None = None,
        ttl: _values.Seconds | None = None,
        expire_time: datetime | None = None,
        sliding_ttl: _values.Seconds | None = None,
        embedding: Iterable[float] | None = None,
        embedding_space: str | None = None,
        pinned: bool | None = None,
        merge: bool = False,
        clear: Iterable[_records.RecordField] = (),
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """Change some fields of a record, named by `id` or by `key`; return it as it is now.

        None leaves a field unchanged; a given value replaces the old one, `metadata` and `tags` as
        a whole. The record as it was is kept as an earlier version. With `expected_version` it is
        a compare-and-set: read, change, and on `VersionConflictError` begin again.

        Args:
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            text: the content.
            kind: what it is.
            author: who said it.
            event_time: when the described event happened; with a time zone.
            valid_until: when it stops being true; with a time zone.
            metadata: a JSON object of at most 64 KiB.
            tags: at most 64 labels.
            importance: from 0 to 1.
            ttl: how long to keep it from now on.
            expire_time: the moment it goes, instead; with a time zone.
            sliding_ttl: how long to keep it after it was last read or found, instead.
            embedding: a vector of the caller's.
            embedding_space: the model it came from; required with `embedding`.
            pinned: what makes room or forgets passes over it.
            merge: change those members of the metadata that `metadata` has, and leave the
                others. No name of a member has a dot then. Default: `metadata` takes the
                place of all of it.
            clear: fields to empty, such as `("tags", "expiry")`.
            expected_version: the version that the record must have; default: any.
            user_id: change that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: there is none, or it has expired.
            VersionConflictError: it has another version than expected.
            InvalidRequestError: a field breaks a rule.
            EmbeddingMismatchError: the vector's space has another dimension.
            RequestIdReusedError: `request_id` was used with other content.
        """
        given = {
            "text": text,
            "kind": kind,
            "author": author,
            "event_time": event_time,
            "valid_until": valid_until,
            "metadata": metadata,
            "tags": tags,
            "importance": importance,
            "embedding": embedding,
            "pinned": pinned,
        }
        paths = {name for name, value in given.items() if value is not None}
        if not (ttl is None and expire_time is None and sliding_ttl is None):
            paths.add("expiry")
        if merge and metadata is not None:
            paths.remove("metadata")
            paths.update(f"metadata.{name}" for name in metadata)
        request = pb.UpdateRecordRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            request_id=_values.optional_text("request_id", request_id),
        )
        _records.name(request, id, key)
        request.update_mask.paths.extend(sorted(paths | _records.cleared(clear, paths)))
        if not request.update_mask.paths:
            raise ValueError("nothing to change: give a field, or clear one")
        draft = _records.RecordDraft(
            text=text or "",
            kind=kind,
            author=author,
            event_time=event_time,
            valid_until=valid_until,
            metadata=metadata,
            tags=tags or (),
            importance=importance,
            ttl=ttl,
            expire_time=expire_time,
            sliding_ttl=sliding_ttl,
            embedding=embedding,
            embedding_space=embedding_space,
            pinned=bool(pinned),
        )
        _records.fill(request.record, draft, "")
        if expected_version is not None:
            request.expected_version = _values.long_integer("expected_version", expected_version)
        answer = await self._at(space_id).call(
            _rpc.UPDATE_RECORD, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _records.record(answer)

    async def review(
        self,
        *,
        approve: bool,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """End the review of a record, and return it as it is now.

        A server may hold records of a tool or the web back until somebody has looked at
        them; `list_records(filter='review = "held"')` lists these. Approved, queries find
        it; rejected, they never do. Its origin stays.

        Args:
            approve: whether it is to be found.
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            expected_version: the version that was looked at; default: any.
            user_id: look in that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: there is none, or it has expired.
            VersionConflictError: it has another version than expected.
        """
        request = pb.UpdateRecordRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            request_id=_values.optional_text("request_id", request_id),
            review=pb.REVIEW_APPROVED if approve else pb.REVIEW_REJECTED,
        )
        _records.name(request, id, key)
        if expected_version is not None:
            request.expected_version = _values.long_integer("expected_version", expected_version)
        answer = await self._at(space_id).call(
            _rpc.UPDATE_RECORD, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _records.record(answer)

    async def archive(
        self,
        *,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        restore: bool = False,
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """Put a record into the archive, and return it as it is now.

        There it is read and listed, and found by queries with `include_archived` alone.

        Args:
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            restore: take it out of the archive instead.
            expected_version: the version that the record must have; default: any.
            user_id: look in that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: there is none, or it has expired.
            VersionConflictError: it has another version than expected.
        """
        request = pb.UpdateRecordRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            request_id=_values.optional_text("request_id", request_id),
            archived=not restore,
        )
        _records.name(request, id, key)
        if expected_version is not None:
            request.expected_version = _values.long_integer("expected_version", expected_version)
        answer = await self._at(space_id).call(
            _rpc.UPDATE_RECORD, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _records.record(answer)

    async def delete(
        self,
        *,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> str:
        """Take a record out of memory, with its vector and earlier versions; return its id.

        Args:
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            expected_version: the version that the record must have; default: any.
            user_id: delete from that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: there is none, or it has expired.
            VersionConflictError: it has another version than expected.
        """
        request = pb.DeleteRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            request_id=_values.optional_text("request_id", request_id),
        )
        _records.name(request, id, key)
        if expected_version is not None:
            request.expected_version = _values.long_integer("expected_version", expected_version)
        answer = await self._at(space_id).call(
            _rpc.DELETE_RECORDS, request, timeout=timeout, repeatable=bool(request_id)
        )
        return answer.id

    async def versions(
        self,
        *,
        id: str | None = None,  # noqa: A002  the record's own word
        key: str | None = None,
        limit: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> list[_records.Record]:
        """Return a record as it is and as it was before its changes, the newest first.

        Each version has its `update_time`, None for the first of all. The server keeps
        1,000 of a record by default. Reading them extends no expiry.

        Args:
            id: the record's id.
            key: the caller's own name for it; give exactly one of the two.
            limit: how many at most; default: all that are kept.
            user_id: look in that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            timeout: seconds for each 100 versions; default: the client's.

        Raises:
            RecordNotFoundError: there is none, or it has expired.
        """
        request = pb.ListRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
        )
        _records.name(request, id, key)
        most = None if limit is None else _values.integer("limit", limit)
        request.page_size = _VERSIONS if most is None else min(_VERSIONS, most)
        found = await self._at(space_id).items(
            _rpc.LIST_RECORDS, request, lambda answer: answer.records, timeout, most
        )
        return [_records.record(m) for m in found]

    async def delete_matching(
        self,
        filter: str,  # noqa: A002  the API's own word
        *,
        tiers: Iterable[int] | int | None = None,
        dry_run: bool = False,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> int:
        """Delete all records that a filter lets through; return how many that were.

        Those replaced by others go too; records saved or changed meanwhile stay, and in a person's
        memory other agents' records. They are deleted some dozens at a time: after an error the
        deleted ones are gone, and the call can be repeated.

        Args:
            filter: which ones, as in `memory_query`; `version >= 1` is all of them.
            tiers: the memory tiers, from 2 to 4; default: 4, the long-term one.
            dry_run: only count them.
            user_id: delete from that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            timeout: seconds; default: the client's.

        Raises:
            InvalidFilterError: the filter does not parse or names an unknown field.
        """
        request = pb.DeleteRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            filter=_values.text("filter", filter),
            tiers=_query.tiers(tiers),
            dry_run=dry_run,
        )
        answer = await self._at(space_id).call(
            _rpc.DELETE_RECORDS, request, timeout=timeout, repeatable=dry_run
        )
        return answer.deleted

    def list(
        self,
        *,
        filter: str | None = None,  # noqa: A002  the API's own word
        newest_first: bool = False,
        tiers: Iterable[int] | int | None = None,
        include_embeddings: bool = False,
        peek: bool = False,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        page_size: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _bulk.RecordListing:
        """Return the records, for `async for`, in the order in which they came.

        It includes replaced records, not expired ones. A record that is
        changed keeps its place; one that is saved meanwhile comes at the end.

        Args:
            filter: only matching records, as in `memory_query`; default: all.
            newest_first: reverse the order.
            tiers: the memory tiers, from 2 to 4; default: 4, the long-term one.
            include_embeddings: return the vectors too.
            peek: do not prolong the life of records with a `sliding_ttl`.
            as_of: list what the memory held at that moment, as in `memory_query`.
            valid_at: list what was true at that moment.
            page_size: how many to ask for at a time, for a loop that will end early;
                default and at most: 500.
            user_id: list that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            timeout: seconds for each page; default: the client's.

        Raises:
            InvalidFilterError: the filter does not parse or names an unknown field; once
                the loop begins.
        """
        request = pb.ListRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            filter=_values.optional_text("filter", filter),
            newest_first=newest_first,
            tiers=_query.tiers(tiers),
            include_embeddings=include_embeddings,
            peek=peek,
            page_size=_bulk.page_size(page_size),
        )
        _query.fill_moment(request, as_of, valid_at)
        return _bulk.RecordListing(self._at(space_id), request, timeout)

    def save_many(
        self,
        records: Iterable[_bulk.Savable] | AsyncIterable[_bulk.Savable],
        *,
        duplicates: _records.Duplicates | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _bulk.BatchSaving:
        """Save any number of records: `await` all answers, or `async for` one by one.

        They go in batches of at most 1,000 records and 4 MiB; each batch is stored as a
        whole or not at all. When one fails, those before it are stored.

        Args:
            records: what to save: `RecordDraft`s, mappings of their fields, or texts;
                one may supersede or derive from one before it.
            duplicates: `reinforce` adds nothing for a record that repeats one which is
                there, or one before it here; see `memory_save`. Default: all are saved.
            user_id: save to that person's memory, which all agents share.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            request_id: makes it safe to repeat with the same records, after whatever
                happened, and repeats a batch when no server answers. At most 100 bytes.
            timeout: seconds for each batch; default: the client's.

        Raises:
            TypeError: this is a single record, which `ctx.memory_save` saves.
            InvalidRequestError: a field breaks a rule; it is named with the record's
                place in its batch.
            RecordExistsError: an `id` or `key` is taken.
            RecordNotFoundError: a `supersedes` names no record.
            RequestIdReusedError: `request_id` was used with other content.
        """
        envelope = pb.BatchSaveRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            request_id=_values.optional_text("request_id", request_id),
            duplicates=_records.duplicates(duplicates),
        )
        return _bulk.BatchSaving(self._at(space_id), envelope, records, self._session_id, timeout)

    def reembed(
        self,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds = _bulk.REEMBED_TIMEOUT,
    ) -> _bulk.Reembedding:
        """Give all records vectors of the server's embedder, for `async for`.

        Memory goes on serving meanwhile. At the end, vectors of other spaces on the
        same records are gone.

        Args:
            user_id: in that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            timeout: seconds without a new vector.
        """
        request = pb.ReembedRequest(
            agent_id=self._agent_id, user_id=_values.optional_text("user_id", user_id)
        )
        return _bulk.Reembedding(self._at(space_id), request, _values.seconds("timeout", timeout))

    async def stats(
        self,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _counts.MemoryStats:
        """Return counts of the memory.

        Args:
            user_id: of that person's memory instead of the agent's.
            space_id: use the memory of that space instead; see `ctx.spaces`.
            timeout: seconds; default: the client's.
        """
        request = pb.ListRecordsRequest(
            agent_id=self._agent_id,
            user_id=_values.optional_text("user_id", user_id),
            stats_only=True,
        )
        m = await self._at(space_id).call(_rpc.LIST_RECORDS, request, timeout=timeout)
        return _counts.stats(m.stats)
