import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from loombridge.v1 import prompt_pb2 as _prompt_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChildStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHILD_STATUS_UNSPECIFIED: _ClassVar[ChildStatus]
    CHILD_STATUS_RUNNING: _ClassVar[ChildStatus]
    CHILD_STATUS_SUCCEEDED: _ClassVar[ChildStatus]
    CHILD_STATUS_FAILED: _ClassVar[ChildStatus]
CHILD_STATUS_UNSPECIFIED: ChildStatus
CHILD_STATUS_RUNNING: ChildStatus
CHILD_STATUS_SUCCEEDED: ChildStatus
CHILD_STATUS_FAILED: ChildStatus

class ChildLimits(_message.Message):
    __slots__ = ("steps", "tokens_per_step", "files", "bytes", "timeout")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    steps: int
    tokens_per_step: int
    files: int
    bytes: int
    timeout: _duration_pb2.Duration
    def __init__(self, steps: _Optional[int] = ..., tokens_per_step: _Optional[int] = ..., files: _Optional[int] = ..., bytes: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SpawnAgentRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "child_id", "goal", "child_session_id", "tools", "without_tools", "profile", "limits", "grants", "request_id", "fork_from")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    CHILD_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORK_FROM_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    child_id: str
    goal: str
    child_session_id: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    without_tools: bool
    profile: str
    limits: ChildLimits
    grants: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    fork_from: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., child_id: _Optional[str] = ..., goal: _Optional[str] = ..., child_session_id: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., without_tools: bool = ..., profile: _Optional[str] = ..., limits: _Optional[_Union[ChildLimits, _Mapping]] = ..., grants: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ..., fork_from: _Optional[str] = ...) -> None: ...

class ChildAgent(_message.Message):
    __slots__ = ("child_id", "parent_id", "goal", "session_id", "tools", "limits", "depth", "step_id", "status", "result", "error", "result_step_id", "spawn_time", "fork")
    CHILD_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SPAWN_TIME_FIELD_NUMBER: _ClassVar[int]
    FORK_FIELD_NUMBER: _ClassVar[int]
    child_id: str
    parent_id: str
    goal: str
    session_id: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    limits: ChildLimits
    depth: int
    step_id: str
    status: ChildStatus
    result: str
    error: str
    result_step_id: str
    spawn_time: _timestamp_pb2.Timestamp
    fork: bool
    def __init__(self, child_id: _Optional[str] = ..., parent_id: _Optional[str] = ..., goal: _Optional[str] = ..., session_id: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[ChildLimits, _Mapping]] = ..., depth: _Optional[int] = ..., step_id: _Optional[str] = ..., status: _Optional[_Union[ChildStatus, str]] = ..., result: _Optional[str] = ..., error: _Optional[str] = ..., result_step_id: _Optional[str] = ..., spawn_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fork: bool = ...) -> None: ...

class CompleteTaskRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "task_id", "conclusion", "failed", "error", "grants", "step_ids")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CONCLUSION_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    STEP_IDS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    task_id: str
    conclusion: str
    failed: bool
    error: str
    grants: _containers.RepeatedScalarFieldContainer[str]
    step_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., task_id: _Optional[str] = ..., conclusion: _Optional[str] = ..., failed: bool = ..., error: _Optional[str] = ..., grants: _Optional[_Iterable[str]] = ..., step_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CompleteTaskResponse(_message.Message):
    __slots__ = ("child", "fold", "problem")
    CHILD_FIELD_NUMBER: _ClassVar[int]
    FOLD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    child: ChildAgent
    fold: _prompt_pb2.FoldBatch
    problem: str
    def __init__(self, child: _Optional[_Union[ChildAgent, _Mapping]] = ..., fold: _Optional[_Union[_prompt_pb2.FoldBatch, _Mapping]] = ..., problem: _Optional[str] = ...) -> None: ...

class WaitAgentsRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "child_ids", "timeout")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_IDS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    child_ids: _containers.RepeatedScalarFieldContainer[str]
    timeout: _duration_pb2.Duration
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., child_ids: _Optional[_Iterable[str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WaitAgentsResponse(_message.Message):
    __slots__ = ("children", "pending", "outcome", "cut")
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    children: _containers.RepeatedCompositeFieldContainer[ChildAgent]
    pending: _containers.RepeatedScalarFieldContainer[str]
    outcome: str
    cut: bool
    def __init__(self, children: _Optional[_Iterable[_Union[ChildAgent, _Mapping]]] = ..., pending: _Optional[_Iterable[str]] = ..., outcome: _Optional[str] = ..., cut: bool = ...) -> None: ...
