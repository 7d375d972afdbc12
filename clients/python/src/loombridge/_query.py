"""Asking memory: the request, the hits, and how they were found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, overload

from loombridge import _brief, _records, _relations, _spelling, _values
from loombridge.v1 import memory_pb2 as pb

QueryMode: TypeAlias = Literal["hybrid", "lexical", "vector"]
"""Which signals find candidates: words and vectors, words, or vectors."""

Signal: TypeAlias = Literal[
    "turn",
    "window",
    "session",
    "author",
    "date",
    "answer",
    "question",
    "reply",
    "brevity",
    "repeated",
    "newer",
    "several",
    "now",
]
"""A signal that records are ranked by."""

EmptyReason: TypeAlias = Literal[
    "",
    "nothing_stored",
    "nothing_relevant",
    "all_under_min_score",
    "all_excluded",
    "all_over_max_tokens",
]
"""Why a query found nothing; empty when it found something. `all_excluded`: the filter,
expiry or replacement took all."""

MODE_ENUM = pb.QueryMode.DESCRIPTOR
EMPTY_ENUM = pb.EmptyReason.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class SignalScore:
    """One signal's part of a rank."""

    name: str
    """The signal: `turn`, `window`, `session`, `author`, `date`, `vector`, `recency`,
    `importance` and such."""
    raw: float
    """What was measured, in the signal's own unit."""
    share: float
    """What it added to the rank."""


@dataclass(frozen=True, slots=True)
class HitExplanation:
    """How a score came about."""

    signals: tuple[SignalScore, ...]
    """What was added up, the strongest first."""
    matched_words: tuple[str, ...]
    """Words of the query that the record holds, as the index has them."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a record's text, from the beginning of a sentence or line to an end."""

    text: str
    """The stretch, byte for byte."""
    start: int
    """Where it begins in the record's text, in bytes of UTF-8 from 0."""
    end: int
    """The place of the first byte behind it."""


@dataclass(frozen=True, slots=True)
class Through:
    """The relation through which a record came along with a hit."""

    hit_id: str
    """The hit."""
    name: str
    """The relation's name."""
    outgoing: bool
    """It goes from the hit to the record; otherwise from the record to the hit."""
    replaced_id: str = ""
    """The id at the other end, where the record is one that has replaced that one."""


@dataclass(frozen=True, slots=True, repr=False)
class Hit(_brief.Brief):
    """One record found."""

    record: _records.Record
    """What was found. Its text is empty where there are `passages`."""
    score: float
    """From 0 to 1: how sure the search is that the record says something of what was
    asked. It can be compared between queries and owners."""
    owner: _records.Owner | None = None
    """Whose record it is, only where the query named owners."""
    explanation: HitExplanation | None = None
    """How the score came about, only where it was asked for."""
    older_ids: tuple[str, ...] = ()
    """Records that stated the same of the same before, the newest first: out of date."""
    passages: tuple[Passage, ...] = ()
    """The parts of a long text that fit into `max_tokens` and match the query best, in order.
    Empty: the text is whole. `ctx.memory.get(id=hit.record.id)` reads the whole."""
    through: Through | None = None
    """Set for a record that was not found itself and came along, with a score of 0."""

    @property
    def text(self) -> str:
        """The record's text, or its `passages` with ` … ` where something is left out."""
        if not self.passages:
            return self.record.text
        return " … ".join(passage.text for passage in self.passages)


@dataclass(frozen=True, slots=True)
class QueryReceipt:
    """How a query was answered. Each candidate that is no hit is counted once."""

    filtered: int = 0
    """Candidates that the filter removed."""
    expired: int = 0
    """Candidates that had expired."""
    superseded: int = 0
    """Candidates that had been replaced."""
    archived: int = 0
    """How many candidates lie in the archive, which was not asked for."""
    under_min_score: int = 0
    """Candidates that scored too low."""
    records: int = 0
    """Records that the searched memories hold."""
    degraded: tuple[str, ...] = ()
    """What the search had to do without."""
    over_limit: int = 0
    """Candidates that fell to `limit`."""
    over_max_tokens: int = 0
    """Hits that fell to `max_tokens`."""
    over_max_bytes: int = 0
    """Hits that did not fit one message, the worst first: ask more narrowly."""
    tokens: int = 0
    """Tokens of the hits' texts or passages; only with `max_tokens`."""
    empty_reason: EmptyReason = ""
    """Why there are no hits."""
    embedding_spaces: tuple[str, ...] = ()
    """The spaces whose vectors were searched."""
    reread: int = 0
    """Records that were read again because they have changed or were replaced since."""
    lost: int = 0
    """Those of them that are missing because what they were then is kept no longer."""
    related_excluded: int = 0
    """Those that did not: the filter, their tier, expiry, replacement, archive or review."""
    related_over_limit: int = 0
    """Those that fell to `related.limit` or the size of an answer."""


@dataclass(frozen=True, slots=True, repr=False)
class Hits(_brief.Brief, Sequence[Hit]):
    """What a query found: a sequence of hits, best first, and its receipt."""

    hits: tuple[Hit, ...] = ()
    """The hits, best first; equal scores newest first."""
    receipt: QueryReceipt = QueryReceipt()
    """How they were found."""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        """Return one hit, or a tuple of some."""
        return self.hits[index]

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Return how many records were found."""
        return len(self.hits)


def query_request(
    agent_id: str, request: Mapping[str, Any] | str | None, given: Mapping[str, Any]
) -> pb.MemoryQueryRequest:
    """Return a query as the wire has it: the positional request and the keywords."""
    asked = _merge(request, given)
    if asked.get("query") is None and asked.get("embedding") is None:
        raise TypeError("query is missing")
    result = pb.MemoryQueryRequest(
        agent_id=agent_id,
        query=_values.optional_text("query", asked.get("query")),
        user_id=_values.optional_text("user_id", asked.get("user_id")),
        space_id=_values.optional_text("space_id", asked.get("space_id")),
        filter=_values.optional_text("filter", asked.get("filter")),
        include_embeddings=bool(asked.get("include_embeddings")),
        expand=bool(asked.get("expand")),
        explain=bool(asked.get("explain")),
        peek=bool(asked.get("peek")),
        embedding=_records.vector("embedding", asked.get("embedding")),
        embedding_space=_values.optional_text("embedding_space", asked.get("embedding_space")),
        owners=_owners(asked.get("owners")),
        tiers=tiers(asked.get("tiers")),
        without_signals=_values.texts("without_signals", asked.get("without_signals") or ()),
    )
    result.include_archived = bool(asked.get("include_archived"))
    _fill_numbers(result, asked)
    if related := asked.get("related"):
        result.related.CopyFrom(_relations.options(related))
    fill_moment(result, asked.get("as_of"), asked.get("valid_at"))
    if (mode := asked.get("mode")) is not None:
        number = _values.enum_number("mode", MODE_ENUM, "QUERY_MODE_", mode)
        result.mode = cast("pb.QueryMode", number)
    return result


def _merge(request: Mapping[str, Any] | str | None, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(request, str):
        request = {"query": request}
    asked = dict(_values.mapping("request", request or {}))
    if unknown := asked.keys() - given.keys():
        raise TypeError(_spelling.unknown("the query", unknown, given))
    for name, value in given.items():
        if value is not None and asked.setdefault(name, value) is not value:
            raise TypeError(f"{name} is given twice")
    return asked


def _fill_numbers(result: pb.MemoryQueryRequest, asked: Mapping[str, Any]) -> None:
    if (limit := asked.get("limit")) is not None:
        result.limit = _values.count("limit", limit)
    if (tokens := asked.get("max_tokens")) is not None:
        result.max_tokens = _values.integer("max_tokens", tokens)
    if (least := asked.get("min_score")) is not None:
        result.min_score = _values.number("min_score", least)
    if (weight := asked.get("recency_weight")) is not None:
        result.recency_weight = _values.number("recency_weight", weight)
    if (weight := asked.get("importance_weight")) is not None:
        result.importance_weight = _values.number("importance_weight", weight)
    if (weight := asked.get("access_weight")) is not None:
        result.access_weight = _values.number("access_weight", weight)
    if (age := asked.get("recency_half_life")) is not None:
        result.recency_half_life.CopyFrom(_values.duration("recency_half_life", age))


def fill_moment(
    message: "pb.MemoryQueryRequest | pb.ListRecordsRequest", as_of: object, valid_at: object
) -> None:
    """Set the moment that is asked for."""
    if as_of is not None:
        message.as_of.CopyFrom(_values.timestamp("as_of", as_of))
    if valid_at is not None:
        message.valid_at.CopyFrom(_values.timestamp("valid_at", valid_at))


def _owners(values: object) -> list[pb.MemoryOwner]:
    if values is None:
        return []
    if isinstance(values, str | _records.Owner) or not isinstance(values, Iterable):
        raise TypeError("owners must be a list, such as ['agent:a1', 'user:ann']")
    items = cast("Iterable[object]", values)
    return [_records.owner_to_wire(f"owners[{i}]", each) for i, each in enumerate(items)]


def tiers(values: object) -> list[int]:
    """Return memory tiers, given as one number or several."""
    if values is None:
        return []
    items = cast("Iterable[object]", values) if isinstance(values, Iterable) else (values,)
    return [_values.integer("tiers", each) for each in items]


def hits(m: pb.MemoryQueryResponse) -> Hits:
    """Return the answer to a query as users see it."""
    return Hits(hits=tuple(map(_hit, m.hits)), receipt=_receipt(m.receipt))


def _hit(m: pb.MemoryHit) -> Hit:
    return Hit(
        record=_records.record(m.record),
        score=m.score,
        owner=_records.owner(m.owner) if m.HasField("owner") else None,
        explanation=_explanation(m.explanation) if m.HasField("explanation") else None,
        older_ids=tuple(m.older_ids),
        passages=tuple(
            Passage(p.text, p.start, p.start + len(p.text.encode())) for p in m.passages
        ),
        through=_through(m.through) if m.HasField("through") else None,
    )


def _through(m: pb.HitRelation) -> Through:
    return Through(m.hit_id, m.name, m.outgoing, m.replaced_id)


def _explanation(m: pb.HitExplanation) -> HitExplanation:
    return HitExplanation(
        signals=tuple(SignalScore(name=s.name, raw=s.raw, share=s.share) for s in m.signals),
        matched_words=tuple(m.matched_words),
    )


def _receipt(m: pb.QueryReceipt) -> QueryReceipt:
    reason = ""
    if m.empty_reason != pb.EMPTY_REASON_UNSPECIFIED:
        reason = _values.enum_name(EMPTY_ENUM, "EMPTY_REASON_", m.empty_reason)
    return QueryReceipt(
        filtered=m.left_out.get("filtered", 0),
        expired=m.left_out.get("expired", 0),
        superseded=m.left_out.get("superseded", 0),
        archived=m.left_out.get("archived", 0),
        under_min_score=m.left_out.get("under_min_score", 0),
        records=m.records,
        degraded=tuple(m.degraded),
        over_limit=m.left_out.get("over_limit", 0),
        over_max_tokens=m.left_out.get("over_max_tokens", 0),
        over_max_bytes=m.left_out.get("over_max_bytes", 0),
        tokens=m.tokens,
        empty_reason=cast("EmptyReason", reason),
        embedding_spaces=tuple(m.embedding_spaces),
        reread=m.reread,
        lost=m.lost,
        related_excluded=m.left_out.get("related_excluded", 0),
        related_over_limit=m.left_out.get("related_over_limit", 0),
    )
