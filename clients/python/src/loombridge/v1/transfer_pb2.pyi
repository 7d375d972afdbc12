from loombridge.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ExportRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "sessions", "session_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    sessions: bool
    session_id: str
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., sessions: bool = ..., session_id: _Optional[str] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lines: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("agent_id", "user_id", "space_id", "sessions", "skip_existing", "import_id", "lines", "dry_run")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SKIP_EXISTING_FIELD_NUMBER: _ClassVar[int]
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    user_id: str
    space_id: str
    sessions: bool
    skip_existing: bool
    import_id: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    dry_run: bool
    def __init__(self, agent_id: _Optional[str] = ..., user_id: _Optional[str] = ..., space_id: _Optional[str] = ..., sessions: bool = ..., skip_existing: bool = ..., import_id: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ..., dry_run: bool = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("saved", "unchanged", "skipped", "expired", "archived_count", "deleted_count", "import_id", "results")
    SAVED_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    IMPORT_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    saved: int
    unchanged: int
    skipped: int
    expired: int
    archived_count: int
    deleted_count: int
    import_id: str
    results: int
    def __init__(self, saved: _Optional[int] = ..., unchanged: _Optional[int] = ..., skipped: _Optional[int] = ..., expired: _Optional[int] = ..., archived_count: _Optional[int] = ..., deleted_count: _Optional[int] = ..., import_id: _Optional[str] = ..., results: _Optional[int] = ...) -> None: ...
