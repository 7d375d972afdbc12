"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from datetime import datetime

from loombridge import (
    _bulk,
    _counts,
    _extract,
    _lines,
    _memory,
    _records,
    _relations,
    _spelling,
    _transfer,
    _values,
)
from loombridge.sync import _twin
from loombridge.sync._face.held import (
    BatchSaving,
    Extracting,
    RecordExport,
    RecordListing,
    RecordWatch,
    Reembedding,
)


@_spelling.helpful
@_twin.documented(_memory.Memory)
class Memory(_twin.Twin, _spelling.Helpful):
    """The records of an agent's memory; reached as `ctx.memory`."""

    def relate(
        self,
        from_id: _records.RecordName,
        name: str,
        to_id: _records.RecordName,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> bool:
        """Relate a record to another, as in `relate(ann, "prefers", oat_milk)`."""
        return self._await(
            "relate",
            from_id,
            name,
            to_id,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def relate_many(
        self,
        relations: Iterable[_relations.Relation],
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> int:
        """Make relations, at most 100, in one commit; return how many are new."""
        return self._await(
            "relate_many",
            relations,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def unrelate(
        self,
        from_id: _records.RecordName,
        name: str,
        to_id: _records.RecordName,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> bool:
        """End a relation; return whether it was there."""
        return self._await(
            "unrelate",
            from_id,
            name,
            to_id,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def relations(
        self,
        *,
        id: str | None = None,
        key: str | None = None,
        direction: _relations.RelationDirection | None = None,
        names: Iterable[str] = (),
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[_relations.Relation, ...]:
        """Return how a record is related: what goes out from it first, each by name."""
        return self._await(
            "relations",
            id=id,
            key=key,
            direction=direction,
            names=names,
            user_id=user_id,
            space_id=space_id,
            timeout=timeout,
        )

    def watch(
        self,
        *,
        after: str | None = None,
        include_embeddings: bool = False,
        user_id: str | None = None,
    ) -> RecordWatch:
        """Return the changes of the memory, for `for`, until the loop ends."""
        return RecordWatch(
            self._home,
            self._run("watch", after=after, include_embeddings=include_embeddings, user_id=user_id),
        )

    def export_lines(
        self, *, user_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> RecordExport:
        """Return the memory as lines of JSON, for `for`."""
        return RecordExport(self._home, self._run("export_lines", user_id=user_id, timeout=timeout))

    def import_lines(
        self,
        lines: Iterable[str] | AsyncIterable[str],
        *,
        skip_existing: bool = False,
        import_id: str | None = None,
        dry_run: bool = False,
        user_id: str | None = None,
        timeout: _values.Seconds = _lines.IMPORT_TIMEOUT,
    ) -> _transfer.ImportedRecords:
        """Take lines of an export into the memory, behind the records that are there."""
        return self._await(
            "import_lines",
            _twin.fed(lines),
            skip_existing=skip_existing,
            import_id=import_id,
            dry_run=dry_run,
            user_id=user_id,
            timeout=timeout,
        )

    def extract(
        self,
        model: _extract.Model,
        *,
        name: str = "facts",
        only: Callable[[_records.Record], bool] | None = None,
        batch_size: int = _extract.BATCH,
        dry_run: bool = False,
        model_timeout: _values.Seconds = _extract.MODEL_TIMEOUT,
        user_id: str | None = None,
    ) -> _extract.Extracted:
        """Have a model of yours read the records that it has not read, and keep what it makes."""
        return self._await(
            "extract",
            model,
            name=name,
            only=only,
            batch_size=batch_size,
            dry_run=dry_run,
            model_timeout=model_timeout,
            user_id=user_id,
        )

    def extract_iter(
        self,
        model: _extract.Model,
        *,
        name: str = "facts",
        only: Callable[[_records.Record], bool] | None = None,
        batch_size: int = _extract.BATCH,
        dry_run: bool = False,
        model_timeout: _values.Seconds = _extract.MODEL_TIMEOUT,
        user_id: str | None = None,
    ) -> Extracting:
        """Have a model of yours read the records that it has not read, and keep what it makes."""
        return Extracting(
            self._home,
            self._run(
                "extract",
                model,
                name=name,
                only=only,
                batch_size=batch_size,
                dry_run=dry_run,
                model_timeout=model_timeout,
                user_id=user_id,
            ),
        )

    def get(
        self,
        *,
        id: str | None = None,
        key: str | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        include_embedding: bool = False,
        as_of: datetime | None = None,
        peek: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """Return one record, named by `id` or by `key`."""
        return self._await(
            "get",
            id=id,
            key=key,
            user_id=user_id,
            space_id=space_id,
            include_embedding=include_embedding,
            as_of=as_of,
            peek=peek,
            timeout=timeout,
        )

    def update(
        self,
        *,
        id: str | None = None,
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
        """Change some fields of a record, named by `id` or by `key`; return it as it is now."""
        return self._await(
            "update",
            id=id,
            key=key,
            text=text,
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
            pinned=pinned,
            merge=merge,
            clear=clear,
            expected_version=expected_version,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def review(
        self,
        *,
        approve: bool,
        id: str | None = None,
        key: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """End the review of a record, and return it as it is now."""
        return self._await(
            "review",
            approve=approve,
            id=id,
            key=key,
            expected_version=expected_version,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def archive(
        self,
        *,
        id: str | None = None,
        key: str | None = None,
        restore: bool = False,
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _records.Record:
        """Put a record into the archive, and return it as it is now."""
        return self._await(
            "archive",
            id=id,
            key=key,
            restore=restore,
            expected_version=expected_version,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def delete(
        self,
        *,
        id: str | None = None,
        key: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> str:
        """Take a record out of memory, with its vector and earlier versions; return its id."""
        return self._await(
            "delete",
            id=id,
            key=key,
            expected_version=expected_version,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def versions(
        self,
        *,
        id: str | None = None,
        key: str | None = None,
        limit: int | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> builtins.list[_records.Record]:
        """Return a record as it is and as it was before its changes, the newest first."""
        return self._await(
            "versions",
            id=id,
            key=key,
            limit=limit,
            user_id=user_id,
            space_id=space_id,
            timeout=timeout,
        )

    def delete_matching(
        self,
        filter: str,
        *,
        tiers: Iterable[int] | int | None = None,
        dry_run: bool = False,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> int:
        """Delete all records that a filter lets through; return how many that were."""
        return self._await(
            "delete_matching",
            filter,
            tiers=tiers,
            dry_run=dry_run,
            user_id=user_id,
            space_id=space_id,
            timeout=timeout,
        )

    def list(
        self,
        *,
        filter: str | None = None,
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
    ) -> RecordListing:
        """Return the records, for `for`, in the order in which they came."""
        return RecordListing(
            self._home,
            self._run(
                "list",
                filter=filter,
                newest_first=newest_first,
                tiers=tiers,
                include_embeddings=include_embeddings,
                peek=peek,
                as_of=as_of,
                valid_at=valid_at,
                page_size=page_size,
                user_id=user_id,
                space_id=space_id,
                timeout=timeout,
            ),
        )

    def save_many(
        self,
        records: Iterable[_bulk.Savable] | AsyncIterable[_bulk.Savable],
        *,
        duplicates: _records.Duplicates | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[_records.Saved, ...]:
        """Save any number of records: `await` all answers, or `for` one by one."""
        return self._await(
            "save_many",
            _twin.fed(records),
            duplicates=duplicates,
            user_id=user_id,
            space_id=space_id,
            request_id=request_id,
            timeout=timeout,
        )

    def save_many_iter(
        self,
        records: Iterable[_bulk.Savable] | AsyncIterable[_bulk.Savable],
        *,
        duplicates: _records.Duplicates | None = None,
        user_id: str | None = None,
        space_id: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> BatchSaving:
        """Save any number of records: `await` all answers, or `for` one by one."""
        return BatchSaving(
            self._home,
            self._run(
                "save_many",
                _twin.fed(records),
                duplicates=duplicates,
                user_id=user_id,
                space_id=space_id,
                request_id=request_id,
                timeout=timeout,
            ),
        )

    def reembed(
        self,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds = _bulk.REEMBED_TIMEOUT,
    ) -> Reembedding:
        """Give all records vectors of the server's embedder, for `for`."""
        return Reembedding(
            self._home, self._run("reembed", user_id=user_id, space_id=space_id, timeout=timeout)
        )

    def stats(
        self,
        *,
        user_id: str | None = None,
        space_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _counts.MemoryStats:
        """Return counts of the memory."""
        return self._await("stats", user_id=user_id, space_id=space_id, timeout=timeout)
