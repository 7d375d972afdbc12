import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import prompt_pb2 as _prompt_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Handoff(_message.Message):
    __slots__ = ("goal", "sprint", "progress_summary", "produced_artifacts", "open_tasks", "rho", "error_count", "depth", "handoff_time", "text")
    GOAL_FIELD_NUMBER: _ClassVar[int]
    SPRINT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    PRODUCED_ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TASKS_FIELD_NUMBER: _ClassVar[int]
    RHO_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    HANDOFF_TIME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    goal: str
    sprint: int
    progress_summary: str
    produced_artifacts: _containers.RepeatedScalarFieldContainer[str]
    open_tasks: _containers.RepeatedScalarFieldContainer[str]
    rho: float
    error_count: int
    depth: int
    handoff_time: _timestamp_pb2.Timestamp
    text: str
    def __init__(self, goal: _Optional[str] = ..., sprint: _Optional[int] = ..., progress_summary: _Optional[str] = ..., produced_artifacts: _Optional[_Iterable[str]] = ..., open_tasks: _Optional[_Iterable[str]] = ..., rho: _Optional[float] = ..., error_count: _Optional[int] = ..., depth: _Optional[int] = ..., handoff_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., text: _Optional[str] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("sprint", "snapshot_time", "working", "handoff")
    SPRINT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_TIME_FIELD_NUMBER: _ClassVar[int]
    WORKING_FIELD_NUMBER: _ClassVar[int]
    HANDOFF_FIELD_NUMBER: _ClassVar[int]
    sprint: int
    snapshot_time: _timestamp_pb2.Timestamp
    working: _prompt_pb2.Working
    handoff: Handoff
    def __init__(self, sprint: _Optional[int] = ..., snapshot_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., working: _Optional[_Union[_prompt_pb2.Working, _Mapping]] = ..., handoff: _Optional[_Union[Handoff, _Mapping]] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "turn_id", "goal", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    turn_id: str
    goal: str
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., turn_id: _Optional[str] = ..., goal: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("renewed", "snapshot")
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    renewed: bool
    snapshot: Snapshot
    def __init__(self, renewed: bool = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class GetSnapshotRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "sprint")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SPRINT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    sprint: int
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., sprint: _Optional[int] = ...) -> None: ...

class GetSnapshotResponse(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Snapshot
    def __init__(self, snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class ListSnapshotsRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSnapshotsResponse(_message.Message):
    __slots__ = ("snapshots", "next_page_token")
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    snapshots: _containers.RepeatedCompositeFieldContainer[Snapshot]
    next_page_token: str
    def __init__(self, snapshots: _Optional[_Iterable[_Union[Snapshot, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
