import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EraseShared(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERASE_SHARED_UNSPECIFIED: _ClassVar[EraseShared]
    ERASE_SHARED_AUTHORSHIP: _ClassVar[EraseShared]
    ERASE_SHARED_RECORDS: _ClassVar[EraseShared]

class EraseStep(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERASE_STEP_UNSPECIFIED: _ClassVar[EraseStep]
    ERASE_STEP_WAITING: _ClassVar[EraseStep]
    ERASE_STEP_COUNTING: _ClassVar[EraseStep]
    ERASE_STEP_ERASING: _ClassVar[EraseStep]
    ERASE_STEP_CHECKING: _ClassVar[EraseStep]
    ERASE_STEP_RECLAIMING: _ClassVar[EraseStep]

class EraseBytesState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERASE_BYTES_STATE_UNSPECIFIED: _ClassVar[EraseBytesState]
    ERASE_BYTES_STATE_RECLAIMED: _ClassVar[EraseBytesState]
    ERASE_BYTES_STATE_KEPT: _ClassVar[EraseBytesState]

class RelationDirection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RELATION_DIRECTION_UNSPECIFIED: _ClassVar[RelationDirection]
    RELATION_DIRECTION_OUT: _ClassVar[RelationDirection]
    RELATION_DIRECTION_IN: _ClassVar[RelationDirection]

class Duplicates(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DUPLICATES_UNSPECIFIED: _ClassVar[Duplicates]
    DUPLICATES_KEEP: _ClassVar[Duplicates]
    DUPLICATES_REINFORCE: _ClassVar[Duplicates]

class Review(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVIEW_UNSPECIFIED: _ClassVar[Review]
    REVIEW_HELD: _ClassVar[Review]
    REVIEW_APPROVED: _ClassVar[Review]
    REVIEW_REJECTED: _ClassVar[Review]

class Origin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORIGIN_UNSPECIFIED: _ClassVar[Origin]
    ORIGIN_USER: _ClassVar[Origin]
    ORIGIN_AGENT: _ClassVar[Origin]
    ORIGIN_TOOL: _ClassVar[Origin]
    ORIGIN_WEB: _ClassVar[Origin]

class SaveOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SAVE_OUTCOME_UNSPECIFIED: _ClassVar[SaveOutcome]
    SAVE_OUTCOME_SAVED: _ClassVar[SaveOutcome]
    SAVE_OUTCOME_REINFORCED: _ClassVar[SaveOutcome]

class QueryMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_MODE_UNSPECIFIED: _ClassVar[QueryMode]
    QUERY_MODE_HYBRID: _ClassVar[QueryMode]
    QUERY_MODE_LEXICAL: _ClassVar[QueryMode]
    QUERY_MODE_VECTOR: _ClassVar[QueryMode]

class EmptyReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EMPTY_REASON_UNSPECIFIED: _ClassVar[EmptyReason]
    EMPTY_REASON_NOTHING_STORED: _ClassVar[EmptyReason]
    EMPTY_REASON_NOTHING_RELEVANT: _ClassVar[EmptyReason]
    EMPTY_REASON_ALL_UNDER_MIN_SCORE: _ClassVar[EmptyReason]
    EMPTY_REASON_ALL_EXCLUDED: _ClassVar[EmptyReason]
    EMPTY_REASON_ALL_OVER_MAX_TOKENS: _ClassVar[EmptyReason]
ERASE_SHARED_UNSPECIFIED: EraseShared
ERASE_SHARED_AUTHORSHIP: EraseShared
ERASE_SHARED_RECORDS: EraseShared
ERASE_STEP_UNSPECIFIED: EraseStep
ERASE_STEP_WAITING: EraseStep
ERASE_STEP_COUNTING: EraseStep
ERASE_STEP_ERASING: EraseStep
ERASE_STEP_CHECKING: EraseStep
ERASE_STEP_RECLAIMING: EraseStep
ERASE_BYTES_STATE_UNSPECIFIED: EraseBytesState
ERASE_BYTES_STATE_RECLAIMED: EraseBytesState
ERASE_BYTES_STATE_KEPT: EraseBytesState
RELATION_DIRECTION_UNSPECIFIED: RelationDirection
RELATION_DIRECTION_OUT: RelationDirection
RELATION_DIRECTION_IN: RelationDirection
DUPLICATES_UNSPECIFIED: Duplicates
DUPLICATES_KEEP: Duplicates
DUPLICATES_REINFORCE: Duplicates
REVIEW_UNSPECIFIED: Review
REVIEW_HELD: Review
REVIEW_APPROVED: Review
REVIEW_REJECTED: Review
ORIGIN_UNSPECIFIED: Origin
ORIGIN_USER: Origin
ORIGIN_AGENT: Origin
ORIGIN_TOOL: Origin
ORIGIN_WEB: Origin
SAVE_OUTCOME_UNSPECIFIED: SaveOutcome
SAVE_OUTCOME_SAVED: SaveOutcome
SAVE_OUTCOME_REINFORCED: SaveOutcome
QUERY_MODE_UNSPECIFIED: QueryMode
QUERY_MODE_HYBRID: QueryMode
QUERY_MODE_LEXICAL: QueryMode
QUERY_MODE_VECTOR: QueryMode
EMPTY_REASON_UNSPECIFIED: EmptyReason
EMPTY_REASON_NOTHING_STORED: EmptyReason
EMPTY_REASON_NOTHING_RELEVANT: EmptyReason
EMPTY_REASON_ALL_UNDER_MIN_SCORE: EmptyReason
EMPTY_REASON_ALL_EXCLUDED: EmptyReason
EMPTY_REASON_ALL_OVER_MAX_TOKENS: EmptyReason

class EraseScopeRequest(_message.Message):
    __slots__ = ("subject", "dry_run", "shared")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    subject: EraseSubject
    dry_run: bool
    shared: EraseShared
    def __init__(self, subject: _Optional[_Union[EraseSubject, _Mapping]] = ..., dry_run: bool = ..., shared: _Optional[_Union[EraseShared, str]] = ...) -> None: ...

class EraseSubject(_message.Message):
    __slots__ = ("tenant", "agent_id", "user_id", "session_id", "filter", "step_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    agent_id: str
    user_id: str
    session_id: str
    filter: str
    step_id: str
    def __init__(self, tenant: _Optional[str] = ..., agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., filter: _Optional[str] = ..., step_id: _Optional[str] = ...) -> None: ...

class EraseScopeResponse(_message.Message):
    __slots__ = ("step", "entries", "result")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    step: EraseStep
    entries: int
    result: EraseResult
    def __init__(self, step: _Optional[_Union[EraseStep, str]] = ..., entries: _Optional[int] = ..., result: _Optional[_Union[EraseResult, _Mapping]] = ...) -> None: ...

class EraseResult(_message.Message):
    __slots__ = ("counts", "entries", "bytes", "bytes_state", "resumed", "certificate")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BYTES_STATE_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.ScalarMap[str, int]
    entries: int
    bytes: int
    bytes_state: EraseBytesState
    resumed: bool
    certificate: str
    def __init__(self, counts: _Optional[_Mapping[str, int]] = ..., entries: _Optional[int] = ..., bytes: _Optional[int] = ..., bytes_state: _Optional[_Union[EraseBytesState, str]] = ..., resumed: bool = ..., certificate: _Optional[str] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("id", "text", "key", "kind", "session_id", "author", "event_time", "create_time", "expire_time", "metadata", "metadata_json", "tags", "importance", "supersedes", "superseded_by", "derived_from", "origin", "tier", "embedding", "embedding_space", "version", "update_time", "pinned", "sliding_ttl", "agent_id", "archived", "archive_time", "repeats", "last_repeat_time", "review", "writer", "import_id", "valid_until", "relations")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    SLIDING_TTL_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    LAST_REPEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    key: str
    kind: str
    session_id: str
    author: str
    event_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    metadata: _struct_pb2.Struct
    metadata_json: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    importance: float
    supersedes: str
    superseded_by: str
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    origin: Origin
    tier: int
    embedding: _containers.RepeatedScalarFieldContainer[float]
    embedding_space: str
    version: int
    update_time: _timestamp_pb2.Timestamp
    pinned: bool
    sliding_ttl: _duration_pb2.Duration
    agent_id: str
    archived: bool
    archive_time: _timestamp_pb2.Timestamp
    repeats: int
    last_repeat_time: _timestamp_pb2.Timestamp
    review: Review
    writer: str
    import_id: str
    valid_until: _timestamp_pb2.Timestamp
    relations: _containers.RepeatedCompositeFieldContainer[RelationTo]
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., session_id: _Optional[str] = ..., author: _Optional[str] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., importance: _Optional[float] = ..., supersedes: _Optional[str] = ..., superseded_by: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., origin: _Optional[_Union[Origin, str]] = ..., tier: _Optional[int] = ..., embedding: _Optional[_Iterable[float]] = ..., embedding_space: _Optional[str] = ..., version: _Optional[int] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pinned: bool = ..., sliding_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., agent_id: _Optional[str] = ..., archived: bool = ..., archive_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., repeats: _Optional[int] = ..., last_repeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., review: _Optional[_Union[Review, str]] = ..., writer: _Optional[str] = ..., import_id: _Optional[str] = ..., valid_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., relations: _Optional[_Iterable[_Union[RelationTo, _Mapping]]] = ...) -> None: ...

class RelationTo(_message.Message):
    __slots__ = ("name", "to_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    to_id: str
    def __init__(self, name: _Optional[str] = ..., to_id: _Optional[str] = ...) -> None: ...

class Relation(_message.Message):
    __slots__ = ("from_id", "name", "to_id", "create_time")
    FROM_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    from_id: str
    name: str
    to_id: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, from_id: _Optional[str] = ..., name: _Optional[str] = ..., to_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RelateRecordsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "relations", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    relations: _containers.RepeatedCompositeFieldContainer[Relation]
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., relations: _Optional[_Iterable[_Union[Relation, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RelateRecordsResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: int
    def __init__(self, created: _Optional[int] = ...) -> None: ...

class UnrelateRecordsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "relations", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    relations: _containers.RepeatedCompositeFieldContainer[Relation]
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., relations: _Optional[_Iterable[_Union[Relation, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UnrelateRecordsResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: int
    def __init__(self, deleted: _Optional[int] = ...) -> None: ...

class ListRelationsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "id", "key", "direction", "names", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    id: str
    key: str
    direction: RelationDirection
    names: _containers.RepeatedScalarFieldContainer[str]
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., direction: _Optional[_Union[RelationDirection, str]] = ..., names: _Optional[_Iterable[str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRelationsResponse(_message.Message):
    __slots__ = ("record_id", "relations", "next_page_token")
    RECORD_ID_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    record_id: str
    relations: _containers.RepeatedCompositeFieldContainer[Relation]
    next_page_token: str
    def __init__(self, record_id: _Optional[str] = ..., relations: _Optional[_Iterable[_Union[Relation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RelatedOptions(_message.Message):
    __slots__ = ("direction", "names", "limit")
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    direction: RelationDirection
    names: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    def __init__(self, direction: _Optional[_Union[RelationDirection, str]] = ..., names: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ...) -> None: ...

class HitRelation(_message.Message):
    __slots__ = ("hit_id", "name", "outgoing", "replaced_id")
    HIT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OUTGOING_FIELD_NUMBER: _ClassVar[int]
    REPLACED_ID_FIELD_NUMBER: _ClassVar[int]
    hit_id: str
    name: str
    outgoing: bool
    replaced_id: str
    def __init__(self, hit_id: _Optional[str] = ..., name: _Optional[str] = ..., outgoing: bool = ..., replaced_id: _Optional[str] = ...) -> None: ...

class MemorySaveRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "text", "id", "key", "kind", "session_id", "author", "event_time", "metadata", "metadata_json", "tags", "importance", "ttl", "expire_time", "sliding_ttl", "embedding", "embedding_space", "supersedes", "derived_from", "origin", "request_id", "pinned", "replace", "duplicates", "valid_until", "relations")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SLIDING_TTL_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_SPACE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    text: str
    id: str
    key: str
    kind: str
    session_id: str
    author: str
    event_time: _timestamp_pb2.Timestamp
    metadata: _struct_pb2.Struct
    metadata_json: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    importance: float
    ttl: _duration_pb2.Duration
    expire_time: _timestamp_pb2.Timestamp
    sliding_ttl: _duration_pb2.Duration
    embedding: _containers.RepeatedScalarFieldContainer[float]
    embedding_space: str
    supersedes: str
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    origin: Origin
    request_id: str
    pinned: bool
    replace: bool
    duplicates: Duplicates
    valid_until: _timestamp_pb2.Timestamp
    relations: _containers.RepeatedCompositeFieldContainer[RelationTo]
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., text: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., session_id: _Optional[str] = ..., author: _Optional[str] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., importance: _Optional[float] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sliding_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., embedding: _Optional[_Iterable[float]] = ..., embedding_space: _Optional[str] = ..., supersedes: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., origin: _Optional[_Union[Origin, str]] = ..., request_id: _Optional[str] = ..., pinned: bool = ..., replace: bool = ..., duplicates: _Optional[_Union[Duplicates, str]] = ..., valid_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., relations: _Optional[_Iterable[_Union[RelationTo, _Mapping]]] = ...) -> None: ...

class MemorySaveResponse(_message.Message):
    __slots__ = ("id", "create_time", "expire_time", "version", "outcome", "similarity", "repeats", "archived_ids", "deleted_count", "review", "redacted")
    class RedactedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_IDS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    id: str
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    version: int
    outcome: SaveOutcome
    similarity: float
    repeats: int
    archived_ids: _containers.RepeatedScalarFieldContainer[str]
    deleted_count: int
    review: Review
    redacted: _containers.ScalarMap[str, int]
    def __init__(self, id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ..., outcome: _Optional[_Union[SaveOutcome, str]] = ..., similarity: _Optional[float] = ..., repeats: _Optional[int] = ..., archived_ids: _Optional[_Iterable[str]] = ..., deleted_count: _Optional[int] = ..., review: _Optional[_Union[Review, str]] = ..., redacted: _Optional[_Mapping[str, int]] = ...) -> None: ...

class MemoryOwner(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ...) -> None: ...

class MemoryQueryRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "query", "limit", "filter", "mode", "min_score", "include_embeddings", "max_tokens", "expand", "explain", "embedding", "embedding_space", "owners", "recency_weight", "recency_half_life", "importance_weight", "access_weight", "tiers", "without_signals", "peek", "as_of", "valid_at", "include_archived", "related")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPAND_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_SPACE_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    RECENCY_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RECENCY_HALF_LIFE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ACCESS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_SIGNALS_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    VALID_AT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    RELATED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    query: str
    limit: int
    filter: str
    mode: QueryMode
    min_score: float
    include_embeddings: bool
    max_tokens: int
    expand: bool
    explain: bool
    embedding: _containers.RepeatedScalarFieldContainer[float]
    embedding_space: str
    owners: _containers.RepeatedCompositeFieldContainer[MemoryOwner]
    recency_weight: float
    recency_half_life: _duration_pb2.Duration
    importance_weight: float
    access_weight: float
    tiers: _containers.RepeatedScalarFieldContainer[int]
    without_signals: _containers.RepeatedScalarFieldContainer[str]
    peek: bool
    as_of: _timestamp_pb2.Timestamp
    valid_at: _timestamp_pb2.Timestamp
    include_archived: bool
    related: RelatedOptions
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., query: _Optional[str] = ..., limit: _Optional[int] = ..., filter: _Optional[str] = ..., mode: _Optional[_Union[QueryMode, str]] = ..., min_score: _Optional[float] = ..., include_embeddings: bool = ..., max_tokens: _Optional[int] = ..., expand: bool = ..., explain: bool = ..., embedding: _Optional[_Iterable[float]] = ..., embedding_space: _Optional[str] = ..., owners: _Optional[_Iterable[_Union[MemoryOwner, _Mapping]]] = ..., recency_weight: _Optional[float] = ..., recency_half_life: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., importance_weight: _Optional[float] = ..., access_weight: _Optional[float] = ..., tiers: _Optional[_Iterable[int]] = ..., without_signals: _Optional[_Iterable[str]] = ..., peek: bool = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., include_archived: bool = ..., related: _Optional[_Union[RelatedOptions, _Mapping]] = ...) -> None: ...

class MemoryQueryResponse(_message.Message):
    __slots__ = ("hits", "receipt")
    HITS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[MemoryHit]
    receipt: QueryReceipt
    def __init__(self, hits: _Optional[_Iterable[_Union[MemoryHit, _Mapping]]] = ..., receipt: _Optional[_Union[QueryReceipt, _Mapping]] = ...) -> None: ...

class MemoryHit(_message.Message):
    __slots__ = ("record", "score", "owner", "explanation", "older_ids", "passages", "through")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    OLDER_IDS_FIELD_NUMBER: _ClassVar[int]
    PASSAGES_FIELD_NUMBER: _ClassVar[int]
    THROUGH_FIELD_NUMBER: _ClassVar[int]
    record: Record
    score: float
    owner: MemoryOwner
    explanation: HitExplanation
    older_ids: _containers.RepeatedScalarFieldContainer[str]
    passages: _containers.RepeatedCompositeFieldContainer[Passage]
    through: HitRelation
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., score: _Optional[float] = ..., owner: _Optional[_Union[MemoryOwner, _Mapping]] = ..., explanation: _Optional[_Union[HitExplanation, _Mapping]] = ..., older_ids: _Optional[_Iterable[str]] = ..., passages: _Optional[_Iterable[_Union[Passage, _Mapping]]] = ..., through: _Optional[_Union[HitRelation, _Mapping]] = ...) -> None: ...

class Passage(_message.Message):
    __slots__ = ("text", "start")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    text: str
    start: int
    def __init__(self, text: _Optional[str] = ..., start: _Optional[int] = ...) -> None: ...

class HitExplanation(_message.Message):
    __slots__ = ("signals", "matched_words")
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_WORDS_FIELD_NUMBER: _ClassVar[int]
    signals: _containers.RepeatedCompositeFieldContainer[SignalScore]
    matched_words: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, signals: _Optional[_Iterable[_Union[SignalScore, _Mapping]]] = ..., matched_words: _Optional[_Iterable[str]] = ...) -> None: ...

class SignalScore(_message.Message):
    __slots__ = ("name", "raw", "share")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    name: str
    raw: float
    share: float
    def __init__(self, name: _Optional[str] = ..., raw: _Optional[float] = ..., share: _Optional[float] = ...) -> None: ...

class QueryReceipt(_message.Message):
    __slots__ = ("left_out", "records", "degraded", "tokens", "empty_reason", "embedding_spaces", "reread", "lost")
    class LeftOutEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    EMPTY_REASON_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_SPACES_FIELD_NUMBER: _ClassVar[int]
    REREAD_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    left_out: _containers.ScalarMap[str, int]
    records: int
    degraded: _containers.RepeatedScalarFieldContainer[str]
    tokens: int
    empty_reason: EmptyReason
    embedding_spaces: _containers.RepeatedScalarFieldContainer[str]
    reread: int
    lost: int
    def __init__(self, left_out: _Optional[_Mapping[str, int]] = ..., records: _Optional[int] = ..., degraded: _Optional[_Iterable[str]] = ..., tokens: _Optional[int] = ..., empty_reason: _Optional[_Union[EmptyReason, str]] = ..., embedding_spaces: _Optional[_Iterable[str]] = ..., reread: _Optional[int] = ..., lost: _Optional[int] = ...) -> None: ...

class GetRecordRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "id", "key", "include_embeddings", "as_of", "peek")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    id: str
    key: str
    include_embeddings: bool
    as_of: _timestamp_pb2.Timestamp
    peek: bool
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., include_embeddings: bool = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., peek: bool = ...) -> None: ...

class DeleteRecordsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "filter", "tiers", "dry_run", "id", "key", "expected_version", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    filter: str
    tiers: _containers.RepeatedScalarFieldContainer[int]
    dry_run: bool
    id: str
    key: str
    expected_version: int
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., filter: _Optional[str] = ..., tiers: _Optional[_Iterable[int]] = ..., dry_run: bool = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteRecordsResponse(_message.Message):
    __slots__ = ("deleted", "not_owned", "id")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    NOT_OWNED_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    deleted: int
    not_owned: int
    id: str
    def __init__(self, deleted: _Optional[int] = ..., not_owned: _Optional[int] = ..., id: _Optional[str] = ...) -> None: ...

class UpdateRecordRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "id", "key", "record", "update_mask", "expected_version", "request_id", "review", "archived")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    id: str
    key: str
    record: MemorySaveRequest
    update_mask: _field_mask_pb2.FieldMask
    expected_version: int
    request_id: str
    review: Review
    archived: bool
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., record: _Optional[_Union[MemorySaveRequest, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ..., review: _Optional[_Union[Review, str]] = ..., archived: bool = ...) -> None: ...

class ListRecordsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "filter", "page_size", "page_token", "newest_first", "include_embeddings", "tiers", "peek", "as_of", "valid_at", "stats_only", "id", "key")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    VALID_AT_FIELD_NUMBER: _ClassVar[int]
    STATS_ONLY_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    filter: str
    page_size: int
    page_token: str
    newest_first: bool
    include_embeddings: bool
    tiers: _containers.RepeatedScalarFieldContainer[int]
    peek: bool
    as_of: _timestamp_pb2.Timestamp
    valid_at: _timestamp_pb2.Timestamp
    stats_only: bool
    id: str
    key: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., filter: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., newest_first: bool = ..., include_embeddings: bool = ..., tiers: _Optional[_Iterable[int]] = ..., peek: bool = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stats_only: bool = ..., id: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class ListRecordsResponse(_message.Message):
    __slots__ = ("records", "next_page_token", "stats")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    next_page_token: str
    stats: MemoryStats
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., stats: _Optional[_Union[MemoryStats, _Mapping]] = ...) -> None: ...

class BatchSaveRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "records", "request_id", "duplicates")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    records: _containers.RepeatedCompositeFieldContainer[MemorySaveRequest]
    request_id: str
    duplicates: Duplicates
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., records: _Optional[_Iterable[_Union[MemorySaveRequest, _Mapping]]] = ..., request_id: _Optional[str] = ..., duplicates: _Optional[_Union[Duplicates, str]] = ...) -> None: ...

class BatchSaveResponse(_message.Message):
    __slots__ = ("saved", "archived_ids", "deleted_count")
    SAVED_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_IDS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    saved: _containers.RepeatedCompositeFieldContainer[MemorySaveResponse]
    archived_ids: _containers.RepeatedScalarFieldContainer[str]
    deleted_count: int
    def __init__(self, saved: _Optional[_Iterable[_Union[MemorySaveResponse, _Mapping]]] = ..., archived_ids: _Optional[_Iterable[str]] = ..., deleted_count: _Optional[int] = ...) -> None: ...

class ReembedRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ...) -> None: ...

class ReembedResponse(_message.Message):
    __slots__ = ("embedding_space", "done", "total")
    EMBEDDING_SPACE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    embedding_space: str
    done: int
    total: int
    def __init__(self, embedding_space: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class MemoryStats(_message.Message):
    __slots__ = ("records", "unpacked", "segments", "spaces", "embedder_space", "pending", "archived")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    UNPACKED_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SPACES_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_SPACE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    records: int
    unpacked: int
    segments: int
    spaces: _containers.RepeatedCompositeFieldContainer[EmbeddingSpaceStats]
    embedder_space: str
    pending: int
    archived: int
    def __init__(self, records: _Optional[int] = ..., unpacked: _Optional[int] = ..., segments: _Optional[int] = ..., spaces: _Optional[_Iterable[_Union[EmbeddingSpaceStats, _Mapping]]] = ..., embedder_space: _Optional[str] = ..., pending: _Optional[int] = ..., archived: _Optional[int] = ...) -> None: ...

class EmbeddingSpaceStats(_message.Message):
    __slots__ = ("name", "dimension", "vectors")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    name: str
    dimension: int
    vectors: int
    def __init__(self, name: _Optional[str] = ..., dimension: _Optional[int] = ..., vectors: _Optional[int] = ...) -> None: ...

class WatchRecordsRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "after", "include_embeddings")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    after: str
    include_embeddings: bool
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., after: _Optional[str] = ..., include_embeddings: bool = ...) -> None: ...

class WatchRecordsResponse(_message.Message):
    __slots__ = ("saved", "deleted_id", "position", "caught_up")
    SAVED_FIELD_NUMBER: _ClassVar[int]
    DELETED_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    saved: Record
    deleted_id: str
    position: str
    caught_up: bool
    def __init__(self, saved: _Optional[_Union[Record, _Mapping]] = ..., deleted_id: _Optional[str] = ..., position: _Optional[str] = ..., caught_up: bool = ...) -> None: ...
