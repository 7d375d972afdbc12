import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import messages_pb2 as _messages_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Delivery(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_UNSPECIFIED: _ClassVar[Delivery]
    DELIVERY_DURABLE: _ClassVar[Delivery]
    DELIVERY_VOLATILE: _ClassVar[Delivery]

class QualityOfService(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUALITY_OF_SERVICE_UNSPECIFIED: _ClassVar[QualityOfService]
    QUALITY_OF_SERVICE_REALTIME: _ClassVar[QualityOfService]
    QUALITY_OF_SERVICE_BATCHED: _ClassVar[QualityOfService]
    QUALITY_OF_SERVICE_BACKGROUND: _ClassVar[QualityOfService]
DELIVERY_UNSPECIFIED: Delivery
DELIVERY_DURABLE: Delivery
DELIVERY_VOLATILE: Delivery
QUALITY_OF_SERVICE_UNSPECIFIED: QualityOfService
QUALITY_OF_SERVICE_REALTIME: QualityOfService
QUALITY_OF_SERVICE_BATCHED: QualityOfService
QUALITY_OF_SERVICE_BACKGROUND: QualityOfService

class Event(_message.Message):
    __slots__ = ("id", "topic", "sequence", "source", "session_id", "create_time", "payload", "payload_json", "payload_bytes", "headers", "type", "tags")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    topic: str
    sequence: int
    source: str
    session_id: str
    create_time: _timestamp_pb2.Timestamp
    payload: _struct_pb2.Value
    payload_json: str
    payload_bytes: bytes
    headers: _containers.ScalarMap[str, str]
    type: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., topic: _Optional[str] = ..., sequence: _Optional[int] = ..., source: _Optional[str] = ..., session_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., payload: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., payload_json: _Optional[str] = ..., payload_bytes: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., type: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class EmitRequest(_message.Message):
    __slots__ = ("agent_id", "topic", "payload", "payload_json", "payload_bytes", "headers", "delivery", "session_id", "event_id", "request_id", "type", "tags", "needs_listener")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    NEEDS_LISTENER_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    topic: str
    payload: _struct_pb2.Value
    payload_json: str
    payload_bytes: bytes
    headers: _containers.ScalarMap[str, str]
    delivery: Delivery
    session_id: str
    event_id: str
    request_id: str
    type: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    needs_listener: bool
    def __init__(self, agent_id: _Optional[str] = ..., topic: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., payload_json: _Optional[str] = ..., payload_bytes: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., delivery: _Optional[_Union[Delivery, str]] = ..., session_id: _Optional[str] = ..., event_id: _Optional[str] = ..., request_id: _Optional[str] = ..., type: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., needs_listener: bool = ...) -> None: ...

class EmitResponse(_message.Message):
    __slots__ = ("event_id", "sequence", "create_time")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    sequence: int
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, event_id: _Optional[str] = ..., sequence: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TopicPosition(_message.Message):
    __slots__ = ("topic", "after_sequence", "since", "quality_of_service", "event_types", "headers", "session_id")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    QUALITY_OF_SERVICE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    after_sequence: int
    since: _timestamp_pb2.Timestamp
    quality_of_service: QualityOfService
    event_types: _containers.RepeatedScalarFieldContainer[str]
    headers: _containers.ScalarMap[str, str]
    session_id: str
    def __init__(self, topic: _Optional[str] = ..., after_sequence: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., quality_of_service: _Optional[_Union[QualityOfService, str]] = ..., event_types: _Optional[_Iterable[str]] = ..., headers: _Optional[_Mapping[str, str]] = ..., session_id: _Optional[str] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("agent_id", "topics")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    topics: _containers.RepeatedCompositeFieldContainer[TopicPosition]
    def __init__(self, agent_id: _Optional[str] = ..., topics: _Optional[_Iterable[_Union[TopicPosition, _Mapping]]] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ("ready", "event", "dropped_volatile")
    READY_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_VOLATILE_FIELD_NUMBER: _ClassVar[int]
    ready: SubscriptionReady
    event: Event
    dropped_volatile: int
    def __init__(self, ready: _Optional[_Union[SubscriptionReady, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., dropped_volatile: _Optional[int] = ...) -> None: ...

class SubscriptionReady(_message.Message):
    __slots__ = ("positions", "server_time", "heartbeat_interval")
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[TopicPosition]
    server_time: _timestamp_pb2.Timestamp
    heartbeat_interval: _duration_pb2.Duration
    def __init__(self, positions: _Optional[_Iterable[_Union[TopicPosition, _Mapping]]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
