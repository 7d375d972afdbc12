import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from loombridge.v1 import context_pb2 as _context_pb2
from loombridge.v1 import errors_pb2 as _errors_pb2
from loombridge.v1 import events_pb2 as _events_pb2
from loombridge.v1 import prompt_pb2 as _prompt_pb2
from loombridge.v1 import tools_pb2 as _tools_pb2
from loombridge.v1 import working_pb2 as _working_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttachRequest(_message.Message):
    __slots__ = ("ref", "hello", "publish", "subscribe", "unsubscribe", "tool_result", "heartbeat")
    REF_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    ref: int
    hello: AttachHello
    publish: _events_pb2.EmitRequest
    subscribe: _events_pb2.SubscribeRequest
    unsubscribe: AttachUnsubscribe
    tool_result: AttachToolResult
    heartbeat: AttachHeartbeat
    def __init__(self, ref: _Optional[int] = ..., hello: _Optional[_Union[AttachHello, _Mapping]] = ..., publish: _Optional[_Union[_events_pb2.EmitRequest, _Mapping]] = ..., subscribe: _Optional[_Union[_events_pb2.SubscribeRequest, _Mapping]] = ..., unsubscribe: _Optional[_Union[AttachUnsubscribe, _Mapping]] = ..., tool_result: _Optional[_Union[AttachToolResult, _Mapping]] = ..., heartbeat: _Optional[_Union[AttachHeartbeat, _Mapping]] = ...) -> None: ...

class AttachHello(_message.Message):
    __slots__ = ("agent_id", "session_id", "topics", "tools", "metadata", "capabilities", "parent_id", "heartbeat_interval")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    topics: _containers.RepeatedCompositeFieldContainer[_events_pb2.TopicPosition]
    tools: _containers.RepeatedCompositeFieldContainer[_prompt_pb2.ToolDescriptor]
    metadata: _containers.ScalarMap[str, str]
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    parent_id: str
    heartbeat_interval: _duration_pb2.Duration
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., topics: _Optional[_Iterable[_Union[_events_pb2.TopicPosition, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[_prompt_pb2.ToolDescriptor, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., capabilities: _Optional[_Iterable[str]] = ..., parent_id: _Optional[str] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AttachUnsubscribe(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, topics: _Optional[_Iterable[str]] = ...) -> None: ...

class AttachToolResult(_message.Message):
    __slots__ = ("call_id", "success", "output", "output_json", "output_text", "output_bytes", "error_message", "error_code")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TEXT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    success: bool
    output: _struct_pb2.Value
    output_json: str
    output_text: str
    output_bytes: _context_pb2.ResultBytes
    error_message: str
    error_code: _tools_pb2.ToolErrorCode
    def __init__(self, call_id: _Optional[str] = ..., success: bool = ..., output: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., output_json: _Optional[str] = ..., output_text: _Optional[str] = ..., output_bytes: _Optional[_Union[_context_pb2.ResultBytes, _Mapping]] = ..., error_message: _Optional[str] = ..., error_code: _Optional[_Union[_tools_pb2.ToolErrorCode, str]] = ...) -> None: ...

class AttachHeartbeat(_message.Message):
    __slots__ = ("signals",)
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    signals: _containers.RepeatedCompositeFieldContainer[_working_pb2.Signal]
    def __init__(self, signals: _Optional[_Iterable[_Union[_working_pb2.Signal, _Mapping]]] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("ready", "event", "answer", "tool_call", "dropped")
    READY_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    ready: _events_pb2.SubscriptionReady
    event: _events_pb2.Event
    answer: AttachAnswer
    tool_call: AttachToolCall
    dropped: int
    def __init__(self, ready: _Optional[_Union[_events_pb2.SubscriptionReady, _Mapping]] = ..., event: _Optional[_Union[_events_pb2.Event, _Mapping]] = ..., answer: _Optional[_Union[AttachAnswer, _Mapping]] = ..., tool_call: _Optional[_Union[AttachToolCall, _Mapping]] = ..., dropped: _Optional[int] = ...) -> None: ...

class AttachAnswer(_message.Message):
    __slots__ = ("ref", "error", "emitted", "ready", "interrupt_requested")
    REF_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    EMITTED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    ref: int
    error: AttachError
    emitted: _events_pb2.EmitResponse
    ready: _events_pb2.SubscriptionReady
    interrupt_requested: bool
    def __init__(self, ref: _Optional[int] = ..., error: _Optional[_Union[AttachError, _Mapping]] = ..., emitted: _Optional[_Union[_events_pb2.EmitResponse, _Mapping]] = ..., ready: _Optional[_Union[_events_pb2.SubscriptionReady, _Mapping]] = ..., interrupt_requested: bool = ...) -> None: ...

class AttachError(_message.Message):
    __slots__ = ("reason", "message", "fields")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    reason: _errors_pb2.ErrorReason
    message: str
    fields: _containers.ScalarMap[str, str]
    def __init__(self, reason: _Optional[_Union[_errors_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ..., fields: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AttachToolCall(_message.Message):
    __slots__ = ("call_id", "name", "arguments", "arguments_json", "caller_id", "timeout", "headers")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    CALLER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    name: str
    arguments: _struct_pb2.Struct
    arguments_json: str
    caller_id: str
    timeout: _duration_pb2.Duration
    headers: _containers.ScalarMap[str, str]
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., arguments_json: _Optional[str] = ..., caller_id: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...
