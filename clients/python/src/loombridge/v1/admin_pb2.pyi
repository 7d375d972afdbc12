import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("version", "start_time", "durability", "store_format", "authentication", "tools", "store", "sandbox")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    STORE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATION_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    version: str
    start_time: _timestamp_pb2.Timestamp
    durability: str
    store_format: int
    authentication: bool
    tools: int
    store: StoreStatus
    sandbox: SandboxStatus
    def __init__(self, version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., durability: _Optional[str] = ..., store_format: _Optional[int] = ..., authentication: bool = ..., tools: _Optional[int] = ..., store: _Optional[_Union[StoreStatus, _Mapping]] = ..., sandbox: _Optional[_Union[SandboxStatus, _Mapping]] = ...) -> None: ...

class SandboxStatus(_message.Message):
    __slots__ = ("setting", "tier", "layers", "landlock_abi", "gaps", "problems", "profiles", "running_jobs")
    SETTING_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    LANDLOCK_ABI_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    RUNNING_JOBS_FIELD_NUMBER: _ClassVar[int]
    setting: str
    tier: str
    layers: _containers.RepeatedScalarFieldContainer[str]
    landlock_abi: int
    gaps: _containers.RepeatedScalarFieldContainer[str]
    problems: _containers.RepeatedScalarFieldContainer[str]
    profiles: _containers.RepeatedScalarFieldContainer[str]
    running_jobs: int
    def __init__(self, setting: _Optional[str] = ..., tier: _Optional[str] = ..., layers: _Optional[_Iterable[str]] = ..., landlock_abi: _Optional[int] = ..., gaps: _Optional[_Iterable[str]] = ..., problems: _Optional[_Iterable[str]] = ..., profiles: _Optional[_Iterable[str]] = ..., running_jobs: _Optional[int] = ...) -> None: ...

class StoreStatus(_message.Message):
    __slots__ = ("writable", "problem", "damage", "scrub_time")
    WRITABLE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    SCRUB_TIME_FIELD_NUMBER: _ClassVar[int]
    writable: bool
    problem: str
    damage: _containers.RepeatedScalarFieldContainer[str]
    scrub_time: _timestamp_pb2.Timestamp
    def __init__(self, writable: bool = ..., problem: _Optional[str] = ..., damage: _Optional[_Iterable[str]] = ..., scrub_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
