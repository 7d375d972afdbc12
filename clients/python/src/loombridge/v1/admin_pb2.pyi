import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import memory_pb2 as _memory_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScopeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCOPE_KIND_UNSPECIFIED: _ClassVar[ScopeKind]
    SCOPE_KIND_AGENT: _ClassVar[ScopeKind]
    SCOPE_KIND_USER: _ClassVar[ScopeKind]
    SCOPE_KIND_SPACE: _ClassVar[ScopeKind]
SCOPE_KIND_UNSPECIFIED: ScopeKind
SCOPE_KIND_AGENT: ScopeKind
SCOPE_KIND_USER: ScopeKind
SCOPE_KIND_SPACE: ScopeKind

class MoveWorkspaceRequest(_message.Message):
    __slots__ = ("agent_id", "server")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    server: str
    def __init__(self, agent_id: _Optional[str] = ..., server: _Optional[str] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ("agent_id",)
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    def __init__(self, agent_id: _Optional[str] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("version", "start_time", "durability", "store_format", "authentication", "tools", "store", "sandbox", "backups", "tool_calls", "redacted", "bridges", "retention", "workspace")
    class ToolCallsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class RedactedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    STORE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    BRIDGES_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    version: str
    start_time: _timestamp_pb2.Timestamp
    durability: str
    store_format: int
    authentication: bool
    tools: int
    store: StoreStatus
    sandbox: SandboxStatus
    backups: BackupStatus
    tool_calls: _containers.ScalarMap[str, int]
    redacted: _containers.ScalarMap[str, int]
    bridges: _containers.RepeatedCompositeFieldContainer[BridgeStatus]
    retention: RetentionStatus
    workspace: BridgeStatus
    def __init__(self, version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., durability: _Optional[str] = ..., store_format: _Optional[int] = ..., authentication: bool = ..., tools: _Optional[int] = ..., store: _Optional[_Union[StoreStatus, _Mapping]] = ..., sandbox: _Optional[_Union[SandboxStatus, _Mapping]] = ..., backups: _Optional[_Union[BackupStatus, _Mapping]] = ..., tool_calls: _Optional[_Mapping[str, int]] = ..., redacted: _Optional[_Mapping[str, int]] = ..., bridges: _Optional[_Iterable[_Union[BridgeStatus, _Mapping]]] = ..., retention: _Optional[_Union[RetentionStatus, _Mapping]] = ..., workspace: _Optional[_Union[BridgeStatus, _Mapping]] = ...) -> None: ...

class RetentionStatus(_message.Message):
    __slots__ = ("deleted_records", "sweep_time", "deleted_sessions", "failing")
    DELETED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    SWEEP_TIME_FIELD_NUMBER: _ClassVar[int]
    DELETED_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    deleted_records: int
    sweep_time: _timestamp_pb2.Timestamp
    deleted_sessions: int
    failing: bool
    def __init__(self, deleted_records: _Optional[int] = ..., sweep_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deleted_sessions: _Optional[int] = ..., failing: bool = ...) -> None: ...

class BridgeStatus(_message.Message):
    __slots__ = ("name", "address", "answering", "workspace", "away")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ANSWERING_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    AWAY_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    answering: bool
    workspace: str
    away: bool
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., answering: bool = ..., workspace: _Optional[str] = ..., away: bool = ...) -> None: ...

class CreateBackupRequest(_message.Message):
    __slots__ = ("full",)
    FULL_FIELD_NUMBER: _ClassVar[int]
    full: bool
    def __init__(self, full: bool = ...) -> None: ...

class CreateBackupResponse(_message.Message):
    __slots__ = ("bytes_done", "bytes_total", "backup")
    BYTES_DONE_FIELD_NUMBER: _ClassVar[int]
    BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    bytes_done: int
    bytes_total: int
    backup: Backup
    def __init__(self, bytes_done: _Optional[int] = ..., bytes_total: _Optional[int] = ..., backup: _Optional[_Union[Backup, _Mapping]] = ...) -> None: ...

class ListBackupsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListBackupsResponse(_message.Message):
    __slots__ = ("backups", "next_page_token")
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    backups: _containers.RepeatedCompositeFieldContainer[Backup]
    next_page_token: str
    def __init__(self, backups: _Optional[_Iterable[_Union[Backup, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListScopesRequest(_message.Message):
    __slots__ = ("tenant", "kind", "prefix", "page_size", "page_token", "agent_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    kind: ScopeKind
    prefix: str
    page_size: int
    page_token: str
    agent_id: str
    def __init__(self, tenant: _Optional[str] = ..., kind: _Optional[_Union[ScopeKind, str]] = ..., prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent_id: _Optional[str] = ...) -> None: ...

class ListScopesResponse(_message.Message):
    __slots__ = ("scopes", "next_page_token")
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    scopes: _containers.RepeatedCompositeFieldContainer[MemoryScope]
    next_page_token: str
    def __init__(self, scopes: _Optional[_Iterable[_Union[MemoryScope, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class MemoryScope(_message.Message):
    __slots__ = ("owner", "records", "archived", "bytes")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    owner: _memory_pb2.MemoryOwner
    records: int
    archived: int
    bytes: int
    def __init__(self, owner: _Optional[_Union[_memory_pb2.MemoryOwner, _Mapping]] = ..., records: _Optional[int] = ..., archived: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Backup(_message.Message):
    __slots__ = ("name", "create_time", "bytes", "new_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    NEW_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    create_time: _timestamp_pb2.Timestamp
    bytes: int
    new_bytes: int
    def __init__(self, name: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., bytes: _Optional[int] = ..., new_bytes: _Optional[int] = ...) -> None: ...

class BackupStatus(_message.Message):
    __slots__ = ("last", "failing")
    LAST_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    last: Backup
    failing: bool
    def __init__(self, last: _Optional[_Union[Backup, _Mapping]] = ..., failing: bool = ...) -> None: ...

class SandboxStatus(_message.Message):
    __slots__ = ("setting", "tier", "layers", "gaps", "problems")
    SETTING_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    setting: str
    tier: str
    layers: _containers.RepeatedScalarFieldContainer[str]
    gaps: _containers.RepeatedScalarFieldContainer[str]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, setting: _Optional[str] = ..., tier: _Optional[str] = ..., layers: _Optional[_Iterable[str]] = ..., gaps: _Optional[_Iterable[str]] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class StoreStatus(_message.Message):
    __slots__ = ("problem", "damage", "scrub_time")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    SCRUB_TIME_FIELD_NUMBER: _ClassVar[int]
    problem: str
    damage: _containers.RepeatedScalarFieldContainer[str]
    scrub_time: _timestamp_pb2.Timestamp
    def __init__(self, problem: _Optional[str] = ..., damage: _Optional[_Iterable[str]] = ..., scrub_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
