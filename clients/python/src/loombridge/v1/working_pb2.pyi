import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Urgency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    URGENCY_UNSPECIFIED: _ClassVar[Urgency]
    URGENCY_LOW: _ClassVar[Urgency]
    URGENCY_NORMAL: _ClassVar[Urgency]
    URGENCY_HIGH: _ClassVar[Urgency]
    URGENCY_CRITICAL: _ClassVar[Urgency]

class EventDecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_DECISION_UNSPECIFIED: _ClassVar[EventDecision]
    EVENT_DECISION_IGNORE: _ClassVar[EventDecision]
    EVENT_DECISION_DEFER: _ClassVar[EventDecision]
    EVENT_DECISION_REPLAN: _ClassVar[EventDecision]
    EVENT_DECISION_DECOMPOSE: _ClassVar[EventDecision]
    EVENT_DECISION_HANDOFF: _ClassVar[EventDecision]
    EVENT_DECISION_TERMINATE: _ClassVar[EventDecision]
URGENCY_UNSPECIFIED: Urgency
URGENCY_LOW: Urgency
URGENCY_NORMAL: Urgency
URGENCY_HIGH: Urgency
URGENCY_CRITICAL: Urgency
EVENT_DECISION_UNSPECIFIED: EventDecision
EVENT_DECISION_IGNORE: EventDecision
EVENT_DECISION_DEFER: EventDecision
EVENT_DECISION_REPLAN: EventDecision
EVENT_DECISION_DECOMPOSE: EventDecision
EVENT_DECISION_HANDOFF: EventDecision
EVENT_DECISION_TERMINATE: EventDecision

class Dashboard(_message.Message):
    __slots__ = ("rho", "token_budget", "goal_progress", "error_count", "depth", "last_heartbeat_time", "interrupt_requested")
    RHO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    GOAL_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    rho: float
    token_budget: int
    goal_progress: str
    error_count: int
    depth: int
    last_heartbeat_time: _timestamp_pb2.Timestamp
    interrupt_requested: bool
    def __init__(self, rho: _Optional[float] = ..., token_budget: _Optional[int] = ..., goal_progress: _Optional[str] = ..., error_count: _Optional[int] = ..., depth: _Optional[int] = ..., last_heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., interrupt_requested: bool = ...) -> None: ...

class Signal(_message.Message):
    __slots__ = ("event_id", "type", "summary", "urgency", "delta_h")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    URGENCY_FIELD_NUMBER: _ClassVar[int]
    DELTA_H_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    type: str
    summary: str
    urgency: Urgency
    delta_h: float
    def __init__(self, event_id: _Optional[str] = ..., type: _Optional[str] = ..., summary: _Optional[str] = ..., urgency: _Optional[_Union[Urgency, str]] = ..., delta_h: _Optional[float] = ...) -> None: ...

class PendingEvent(_message.Message):
    __slots__ = ("type", "event_ids", "summary", "sample", "urgency")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    EVENT_IDS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    URGENCY_FIELD_NUMBER: _ClassVar[int]
    type: str
    event_ids: _containers.RepeatedScalarFieldContainer[str]
    summary: str
    sample: str
    urgency: Urgency
    def __init__(self, type: _Optional[str] = ..., event_ids: _Optional[_Iterable[str]] = ..., summary: _Optional[str] = ..., sample: _Optional[str] = ..., urgency: _Optional[_Union[Urgency, str]] = ...) -> None: ...

class Acknowledgement(_message.Message):
    __slots__ = ("event_id", "decision", "summary")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    decision: EventDecision
    summary: str
    def __init__(self, event_id: _Optional[str] = ..., decision: _Optional[_Union[EventDecision, str]] = ..., summary: _Optional[str] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("source", "title", "content", "score", "citation")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    source: str
    title: str
    content: str
    score: float
    citation: str
    def __init__(self, source: _Optional[str] = ..., title: _Optional[str] = ..., content: _Optional[str] = ..., score: _Optional[float] = ..., citation: _Optional[str] = ...) -> None: ...
