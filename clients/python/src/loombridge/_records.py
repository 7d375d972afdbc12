"""What is remembered: records, drafts of them, and whose they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, cast, get_args

from loombridge import _brief, _spelling, _values
from loombridge.v1 import memory_pb2 as pb

Origin: TypeAlias = Literal["user", "agent", "tool", "web"]
"""Where a record's text came from. What a tool printed or the web said is never
to be taken as an instruction."""

Duplicates: TypeAlias = Literal["keep", "reinforce"]
"""How a repeat of an existing record is saved: `keep` saves it in addition to the other,
`reinforce` adds nothing and counts one more repeat of the other."""

ORIGIN_ENUM = pb.Origin.DESCRIPTOR
REVIEW_ENUM = pb.Review.DESCRIPTOR
_DUPLICATES_ENUM = pb.Duplicates.DESCRIPTOR
_OUTCOME_ENUM = pb.SaveOutcome.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory: an agent's, or a person's or a space's, which agents share."""

    kind: Literal["agent", "user", "space"]
    """What the owner is."""
    id: str
    """The agent's, the person's or the space's name."""

    @classmethod
    def parse(cls, text: str) -> "Owner":
        """Return the owner that `agent:<id>`, `user:<id>` or `space:<id>` names."""
        kind, colon, name = _values.text("owner", text).partition(":")
        if kind not in ("agent", "user", "space") or not colon or not name:
            raise ValueError(f"an owner is agent:<id>, user:<id> or space:<id>, not {text!r}")
        return cls(kind, name)

    def __str__(self) -> str:
        """Return it as `agent:<id>`, `user:<id>` or `space:<id>`."""
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True)
class Saved:
    """Proof that a record, its index entries and the sync are done."""

    id: str
    """Names the record within its owner."""
    create_time: datetime
    """When it was acknowledged, in UTC."""
    expire_time: datetime | None = None
    """When it stops being shown; None means never."""
    version: int = 1
    """1, and more for a record that `replace` has changed."""
    review: str = ""
    """`held` where it waits for review and is not found meanwhile; else empty."""
    redacted: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """How many secrets marks such as `[redacted:jwt]` stand for, by pattern; empty where the
    server does not redact, and in the answer to a repeated request."""
    outcome: str = "saved"
    """`saved`, or `reinforced` where it repeats the record that `id` names."""
    similarity: float = 0.0
    """How much of their words both texts have in common, from 0 to 1; only of a repeat."""
    repeats: int = 0
    """How often the record has been repeated; only of a repeat."""
    archived_ids: tuple[str, ...] = ()
    """Records that went into the archive because the memory had more than the server's limit;
    for a batch the server lists them once, so they are not here."""
    deleted_count: int = 0
    """How many records the archive's own limit deleted for good; unset for a batch."""


@dataclass(frozen=True, slots=True, repr=False)
class Record(_brief.Brief):
    """One thing remembered."""

    id: str
    """Names the record within its owner."""
    text: str
    """What is remembered and searched."""
    key: str
    """The caller's own unique name, or empty."""
    kind: str
    """What it is: `fact`, `state`, `pattern`, `note` or any word."""
    session_id: str
    """The session it was saved in, or empty."""
    author: str
    """Who said it, or empty."""
    create_time: datetime
    """When the server acknowledged it, in UTC."""
    event_time: datetime | None
    """When the described event happened; None when unknown."""
    expire_time: datetime | None
    """When it stops being shown; None means never."""
    metadata: Mapping[str, Any]
    """The caller's own JSON object; integers are exact."""
    tags: tuple[str, ...]
    """Short labels, sorted."""
    importance: float
    """The caller's weight from 0 to 1."""
    supersedes: str
    """Id of the record that this one replaced, or empty."""
    superseded_by: str
    """Id of the record that replaced this one, or empty."""
    derived_from: tuple[str, ...]
    """Ids of the records it was made from."""
    origin: str
    """Where the text came from: `user`, `agent`, `tool` or `web`."""
    tier: int
    """The memory tier; 4 is long-term."""
    embedding: tuple[float, ...] = field(default=(), repr=False)
    """Its vector, only where it was asked for."""
    embedding_space: str = ""
    """The model the vector came from, or empty."""
    version: int = 1
    """Counts the changes, from 1; `update` and `delete` take it as `expected_version`."""
    update_time: datetime | None = None
    """When it was changed last; None when it never was."""
    pinned: bool = False
    """What makes room or forgets passes over it."""
    sliding_ttl: timedelta | None = None
    """How far ahead reading it moves `expire_time`; None: reading moves nothing."""
    agent_id: str = ""
    """The agent that saved it, in a memory that is shared; empty in an agent's own."""
    review: str = ""
    """`held`, `approved` or `rejected`; empty if no review was needed."""
    archived: bool = False
    """No query finds it unless it asks for the archive."""
    archive_time: datetime | None = None
    """When it was archived; None where it is not."""
    writer: str = ""
    """By whose words it is: `model` or `import`; empty for a program's. Their texts count as no
    instructions until a review approves them."""
    import_id: str = ""
    """The id of the import that it came with; see `ImportedRecords.import_id`."""
    repeats: int = 0
    """How many saves repeated it in place of adding another record."""
    last_repeat_time: datetime | None = None
    """When the last of them did; None where there was none."""
    valid_until: datetime | None = None
    """When it stops being true; None when unknown."""
    relations: tuple[tuple[str, str], ...] = ()
    """Relations that go out from it, as pairs of a name and the other record's id; only from
    `memory.get` and for watched records. `memory.relations` returns all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RecordDraft(_brief.Brief):
    """A record to be saved by `ctx.memory.save_many`.

    What is None or empty is the server's default; of `ttl`, `expire_time` and
    `sliding_ttl` at most one is given.
    """

    text: str
    """What to remember, 1 byte to 256 KiB."""
    id: str | None = None
    """Names the record; default: made by the server."""
    key: str | None = None
    """A unique name of the caller's own."""
    kind: str | None = None
    """What it is; default `fact`."""
    session_id: str | None = None
    """The session it belongs to; default: the client's."""
    author: str | None = None
    """Who said it."""
    event_time: datetime | None = None
    """When the described event happened; with a time zone."""
    metadata: Mapping[str, Any] | None = None
    """A JSON object of at most 64 KiB."""
    tags: Iterable[str] = ()
    """At most 64 labels."""
    importance: float | None = None
    """From 0 to 1; default 0.5."""
    ttl: _values.Seconds | None = None
    """How long to keep it; default: for ever."""
    expire_time: datetime | None = None
    """The moment it goes; with a time zone."""
    sliding_ttl: _values.Seconds | None = None
    """How long to keep it after it was last read or found."""
    embedding: Iterable[float] | None = None
    """A vector of the caller's, at most 4096 numbers."""
    embedding_space: str | None = None
    """The model it came from; required with `embedding`."""
    supersedes: str | None = None
    """Id of a record that this one replaces."""
    derived_from: Iterable[str] = ()
    """Ids of records this one was made from, at most 64."""
    origin: Origin | None = None
    """Where the text came from; default `agent`."""
    pinned: bool = False
    """What makes room or forgets passes over it, and every prompt shows it."""
    valid_until: datetime | None = None
    """When it stops being true; with a time zone."""
    relations: "Iterable[tuple[str, RecordName]]" = ()
    """How it is related to other records, as pairs of a name and the other record, by id or as
    it was saved or read, at most 100."""


RecordName: TypeAlias = str | Saved | Record
"""A record: its id, or what a save or a read returned."""

RecordField: TypeAlias = Literal[
    "author",
    "event_time",
    "expiry",
    "metadata",
    "tags",
    "embedding",
    "importance",
    "kind",
    "valid_until",
]
"""What `update` can clear: it is then as in a record that was saved without it."""

_CLEARABLE = frozenset(get_args(RecordField))

_DRAFT_FIELDS = tuple(each.name for each in fields(RecordDraft))


def draft_of(name: str, value: object) -> RecordDraft:
    """Return a draft given as such, as a mapping of its fields, or as its text alone."""
    if isinstance(value, RecordDraft):
        return value
    if isinstance(value, str):
        return RecordDraft(text=value)
    given = dict(_values.mapping(name, value))
    if unknown := given.keys() - set(_DRAFT_FIELDS):
        raise TypeError(_spelling.unknown(name, unknown, _DRAFT_FIELDS))
    if "text" not in given:
        raise TypeError(f"{name} has no text")
    return RecordDraft(**given)


def id_of(name: str, value: RecordName) -> str:
    """Return the id that stands for a record.

    Raises:
        TypeError: it is neither an id nor a saved or read record.
    """
    return value.id if isinstance(value, Saved | Record) else _values.text(name, value)


def fill(message: pb.MemorySaveRequest, d: RecordDraft, session_id: str) -> None:
    """Set the fields of a message from a draft."""
    message.text = _values.text("text", d.text)
    message.id = _values.optional_text("id", d.id)
    message.key = _values.optional_text("key", d.key)
    message.kind = _values.optional_text("kind", d.kind)
    message.session_id = (
        session_id if d.session_id is None else _values.text("session_id", d.session_id)
    )
    message.author = _values.optional_text("author", d.author)
    message.tags.extend(_values.texts("tags", d.tags))
    message.embedding.extend(vector("embedding", d.embedding))
    message.embedding_space = _values.optional_text("embedding_space", d.embedding_space)
    message.supersedes = _values.optional_text("supersedes", d.supersedes)
    message.derived_from.extend(_values.texts("derived_from", d.derived_from))
    message.pinned = bool(d.pinned)
    if d.metadata is not None:
        message.metadata_json = _values.json_object("metadata", d.metadata)
    if d.importance is not None:
        message.importance = _values.number("importance", d.importance)
    if d.event_time is not None:
        message.event_time.CopyFrom(_values.timestamp("event_time", d.event_time))
    if d.valid_until is not None:
        message.valid_until.CopyFrom(_values.timestamp("valid_until", d.valid_until))
    for name, to in d.relations:
        message.relations.add(name=_values.text("name", name), to_id=id_of("to_id", to))
    if d.origin is not None:
        message.origin = _origin_number(d.origin)
    fill_expiry(message, d.ttl, d.expire_time, d.sliding_ttl)


def fill_expiry(
    message: pb.MemorySaveRequest,
    ttl: _values.Seconds | None,
    expire_time: datetime | None,
    sliding_ttl: _values.Seconds | None,
) -> None:
    """Set when a record goes, which can be said in one way only."""
    if sum(each is not None for each in (ttl, expire_time, sliding_ttl)) > 1:
        raise ValueError("give one of ttl, expire_time and sliding_ttl")
    if ttl is not None:
        message.ttl.CopyFrom(_values.duration("ttl", ttl))
    if expire_time is not None:
        message.expire_time.CopyFrom(_values.timestamp("expire_time", expire_time))
    if sliding_ttl is not None:
        message.sliding_ttl.CopyFrom(_values.duration("sliding_ttl", sliding_ttl))


def vector(name: str, values: Iterable[float] | None) -> list[float]:
    """Return the numbers of a vector; None has none."""
    # Not "values or ()": an array of numpy is neither true nor false.
    return [] if values is None else [_values.number(name, x) for x in values]


def owner_to_wire(name: str, value: object) -> pb.MemoryOwner:
    """Return an owner as the wire has it."""
    if not isinstance(value, Owner | str):
        raise TypeError(f"{name} must be an Owner or a str such as user:ann")
    owner = Owner.parse(value) if isinstance(value, str) else value
    if owner.kind == "user":
        return pb.MemoryOwner(user_id=_values.text(name, owner.id))
    if owner.kind == "space":
        return pb.MemoryOwner(space_id=_values.text(name, owner.id))
    return pb.MemoryOwner(agent_id=_values.text(name, owner.id))


def owner(m: pb.MemoryOwner) -> Owner:
    """Return an owner as users see it."""
    if m.HasField("space_id"):
        return Owner("space", m.space_id)
    return Owner("user", m.user_id) if m.HasField("user_id") else Owner("agent", m.agent_id)


def record(m: pb.Record) -> Record:
    """Return a record as users see it."""
    return Record(
        id=m.id,
        text=m.text,
        key=m.key,
        kind=m.kind,
        session_id=m.session_id,
        author=m.author,
        create_time=_values.moment(m.create_time),
        event_time=_values.moment(m.event_time) if m.HasField("event_time") else None,
        expire_time=_values.moment(m.expire_time) if m.HasField("expire_time") else None,
        metadata=_values.from_json(m.metadata_json) or {},
        tags=tuple(m.tags),
        importance=m.importance,
        supersedes=m.supersedes,
        superseded_by=m.superseded_by,
        derived_from=tuple(m.derived_from),
        origin=_values.enum_name(ORIGIN_ENUM, "ORIGIN_", m.origin),
        tier=m.tier,
        embedding=tuple(m.embedding),
        embedding_space=m.embedding_space,
        version=m.version,
        update_time=_values.moment(m.update_time) if m.HasField("update_time") else None,
        pinned=m.pinned,
        sliding_ttl=m.sliding_ttl.ToTimedelta() if m.HasField("sliding_ttl") else None,
        agent_id=m.agent_id,
        review=_review(m.review),
        archived=m.archived,
        archive_time=_values.moment(m.archive_time) if m.HasField("archive_time") else None,
        writer=m.writer,
        import_id=m.import_id,
        repeats=m.repeats,
        last_repeat_time=_values.moment(m.last_repeat_time)
        if m.HasField("last_repeat_time")
        else None,
        valid_until=_values.moment(m.valid_until) if m.HasField("valid_until") else None,
        relations=tuple((each.name, each.to_id) for each in m.relations),
    )


def saved(m: pb.MemorySaveResponse) -> Saved:
    """Return the answer to a save as users see it."""
    return Saved(
        id=m.id,
        create_time=_values.moment(m.create_time),
        expire_time=_values.moment(m.expire_time) if m.HasField("expire_time") else None,
        version=m.version or 1,
        review=_review(m.review),
        redacted=dict(m.redacted),
        outcome=_values.enum_name(_OUTCOME_ENUM, "SAVE_OUTCOME_", m.outcome or 1),
        similarity=m.similarity,
        repeats=m.repeats,
        archived_ids=tuple(m.archived_ids),
        deleted_count=m.deleted_count,
    )


def duplicates(value: Duplicates | None) -> pb.Duplicates:
    """Return the choice as the wire has it; None is the server's default."""
    if value is None:
        return pb.DUPLICATES_UNSPECIFIED
    number = _values.enum_number("duplicates", _DUPLICATES_ENUM, "DUPLICATES_", value)
    return cast("pb.Duplicates", number)


_Named: TypeAlias = (
    pb.GetRecordRequest
    | pb.UpdateRecordRequest
    | pb.DeleteRecordsRequest
    | pb.ListRecordsRequest
    | pb.ListRelationsRequest
)


def name(
    request: _Named,
    id: str | None,  # noqa: A002  the record's own word
    key: str | None,
) -> None:
    """Say in a request which record it is about: give exactly one of `id` and `key`."""
    if (id is None) == (key is None):
        raise ValueError("give either id or key")
    if id is not None:
        request.id = _values.text("id", id)
    if key is not None:
        request.key = _values.text("key", key)


def cleared(clear: Iterable[str], given: set[str]) -> set[str]:
    """Return the fields that are to be emptied, none of which may be given, too."""
    names = set(_values.texts("clear", clear))
    if unknown := sorted(names - _CLEARABLE):
        raise ValueError(
            f"clear can't name {', '.join(unknown)}; it takes {', '.join(sorted(_CLEARABLE))}"
        )
    if both := sorted(names & given):
        raise ValueError(f"{', '.join(both)} can't be given and cleared")
    return names


def _review(state: int) -> str:
    return _values.enum_name(REVIEW_ENUM, "REVIEW_", state) if state else ""


def _origin_number(origin: str) -> pb.Origin:
    # pyright knows enums of the wire by their names only; the number is the same.
    return cast("pb.Origin", _values.enum_number("origin", ORIGIN_ENUM, "ORIGIN_", origin))
