import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JsonForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JSON_FORM_UNSPECIFIED: _ClassVar[JsonForm]
    JSON_FORM_STRUCT: _ClassVar[JsonForm]
    JSON_FORM_TEXT: _ClassVar[JsonForm]

class Origin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORIGIN_UNSPECIFIED: _ClassVar[Origin]
    ORIGIN_USER: _ClassVar[Origin]
    ORIGIN_AGENT: _ClassVar[Origin]
    ORIGIN_TOOL: _ClassVar[Origin]
    ORIGIN_WEB: _ClassVar[Origin]

class QueryMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_MODE_UNSPECIFIED: _ClassVar[QueryMode]
    QUERY_MODE_HYBRID: _ClassVar[QueryMode]
    QUERY_MODE_LEXICAL: _ClassVar[QueryMode]
    QUERY_MODE_VECTOR: _ClassVar[QueryMode]
JSON_FORM_UNSPECIFIED: JsonForm
JSON_FORM_STRUCT: JsonForm
JSON_FORM_TEXT: JsonForm
ORIGIN_UNSPECIFIED: Origin
ORIGIN_USER: Origin
ORIGIN_AGENT: Origin
ORIGIN_TOOL: Origin
ORIGIN_WEB: Origin
QUERY_MODE_UNSPECIFIED: QueryMode
QUERY_MODE_HYBRID: QueryMode
QUERY_MODE_LEXICAL: QueryMode
QUERY_MODE_VECTOR: QueryMode

class Record(_message.Message):
    __slots__ = ("id", "text", "key", "kind", "session_id", "author", "event_time", "create_time", "expire_time", "metadata", "metadata_json", "tags", "importance", "supersedes", "superseded_by", "derived_from", "origin", "tier", "embedding", "embedding_space")
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
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., session_id: _Optional[str] = ..., author: _Optional[str] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., importance: _Optional[float] = ..., supersedes: _Optional[str] = ..., superseded_by: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., origin: _Optional[_Union[Origin, str]] = ..., tier: _Optional[int] = ..., embedding: _Optional[_Iterable[float]] = ..., embedding_space: _Optional[str] = ...) -> None: ...

class MemorySaveRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "text", "id", "key", "kind", "session_id", "author", "event_time", "metadata", "metadata_json", "tags", "importance", "ttl", "expire_time", "embedding", "embedding_space", "supersedes", "derived_from", "origin", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
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
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_SPACE_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
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
    embedding: _containers.RepeatedScalarFieldContainer[float]
    embedding_space: str
    supersedes: str
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    origin: Origin
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., text: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., session_id: _Optional[str] = ..., author: _Optional[str] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., metadata_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., importance: _Optional[float] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., embedding: _Optional[_Iterable[float]] = ..., embedding_space: _Optional[str] = ..., supersedes: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., origin: _Optional[_Union[Origin, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class MemorySaveResponse(_message.Message):
    __slots__ = ("id", "create_time", "expire_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class MemoryQueryRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "query", "limit", "filter", "mode", "min_score", "json_form", "include_embeddings")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    JSON_FORM_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    query: str
    limit: int
    filter: str
    mode: QueryMode
    min_score: float
    json_form: JsonForm
    include_embeddings: bool
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., query: _Optional[str] = ..., limit: _Optional[int] = ..., filter: _Optional[str] = ..., mode: _Optional[_Union[QueryMode, str]] = ..., min_score: _Optional[float] = ..., json_form: _Optional[_Union[JsonForm, str]] = ..., include_embeddings: bool = ...) -> None: ...

class MemoryQueryResponse(_message.Message):
    __slots__ = ("hits", "receipt")
    HITS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[MemoryHit]
    receipt: QueryReceipt
    def __init__(self, hits: _Optional[_Iterable[_Union[MemoryHit, _Mapping]]] = ..., receipt: _Optional[_Union[QueryReceipt, _Mapping]] = ...) -> None: ...

class MemoryHit(_message.Message):
    __slots__ = ("record", "score")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    record: Record
    score: float
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., score: _Optional[float] = ...) -> None: ...

class QueryReceipt(_message.Message):
    __slots__ = ("lexical_candidates", "filtered", "expired", "superseded", "under_min_score", "records", "index_sequence", "degraded")
    LEXICAL_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FILTERED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    UNDER_MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    INDEX_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    lexical_candidates: int
    filtered: int
    expired: int
    superseded: int
    under_min_score: int
    records: int
    index_sequence: int
    degraded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lexical_candidates: _Optional[int] = ..., filtered: _Optional[int] = ..., expired: _Optional[int] = ..., superseded: _Optional[int] = ..., under_min_score: _Optional[int] = ..., records: _Optional[int] = ..., index_sequence: _Optional[int] = ..., degraded: _Optional[_Iterable[str]] = ...) -> None: ...

class GetRecordRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "id", "key", "json_form", "include_embeddings")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    JSON_FORM_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    id: str
    key: str
    json_form: JsonForm
    include_embeddings: bool
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., id: _Optional[str] = ..., key: _Optional[str] = ..., json_form: _Optional[_Union[JsonForm, str]] = ..., include_embeddings: bool = ...) -> None: ...

class GetRecordResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: Record
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ...) -> None: ...
