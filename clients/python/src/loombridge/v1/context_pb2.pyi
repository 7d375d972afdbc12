import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_SYSTEM: _ClassVar[Role]
    ROLE_USER: _ClassVar[Role]
    ROLE_ASSISTANT: _ClassVar[Role]
    ROLE_TOOL: _ClassVar[Role]

class StepOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_OUTCOME_UNSPECIFIED: _ClassVar[StepOutcome]
    STEP_OUTCOME_SUCCEEDED: _ClassVar[StepOutcome]
    STEP_OUTCOME_FAILED: _ClassVar[StepOutcome]
    STEP_OUTCOME_UNKNOWN: _ClassVar[StepOutcome]

class PromptFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROMPT_FORMAT_UNSPECIFIED: _ClassVar[PromptFormat]
    PROMPT_FORMAT_NEUTRAL: _ClassVar[PromptFormat]
    PROMPT_FORMAT_OPENAI_CHAT: _ClassVar[PromptFormat]

class TokenCertainty(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOKEN_CERTAINTY_UNSPECIFIED: _ClassVar[TokenCertainty]
    TOKEN_CERTAINTY_EXACT: _ClassVar[TokenCertainty]
    TOKEN_CERTAINTY_ESTIMATED: _ClassVar[TokenCertainty]
ROLE_UNSPECIFIED: Role
ROLE_SYSTEM: Role
ROLE_USER: Role
ROLE_ASSISTANT: Role
ROLE_TOOL: Role
STEP_OUTCOME_UNSPECIFIED: StepOutcome
STEP_OUTCOME_SUCCEEDED: StepOutcome
STEP_OUTCOME_FAILED: StepOutcome
STEP_OUTCOME_UNKNOWN: StepOutcome
PROMPT_FORMAT_UNSPECIFIED: PromptFormat
PROMPT_FORMAT_NEUTRAL: PromptFormat
PROMPT_FORMAT_OPENAI_CHAT: PromptFormat
TOKEN_CERTAINTY_UNSPECIFIED: TokenCertainty
TOKEN_CERTAINTY_EXACT: TokenCertainty
TOKEN_CERTAINTY_ESTIMATED: TokenCertainty

class ModelToolCall(_message.Message):
    __slots__ = ("id", "name", "arguments_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    arguments_json: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("role", "content", "blocks_json", "name", "tool_calls", "tool_call_id")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_JSON_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    role: Role
    content: str
    blocks_json: str
    name: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[ModelToolCall]
    tool_call_id: str
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., content: _Optional[str] = ..., blocks_json: _Optional[str] = ..., name: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[ModelToolCall, _Mapping]]] = ..., tool_call_id: _Optional[str] = ...) -> None: ...

class AppendMessagesRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "messages", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class AppendMessagesResponse(_message.Message):
    __slots__ = ("positions",)
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, positions: _Optional[_Iterable[int]] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("id", "tool_name", "minimal_args", "minimal_args_json", "observation", "outcome_ref", "outcome_path", "create_time", "success", "outcome", "thought", "error", "inline", "metadata", "session_id", "turn_id", "call_id", "position", "needs_offload")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    MINIMAL_ARGS_FIELD_NUMBER: _ClassVar[int]
    MINIMAL_ARGS_JSON_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_REF_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_PATH_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    THOUGHT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NEEDS_OFFLOAD_FIELD_NUMBER: _ClassVar[int]
    id: str
    tool_name: str
    minimal_args: _struct_pb2.Struct
    minimal_args_json: str
    observation: str
    outcome_ref: str
    outcome_path: str
    create_time: _timestamp_pb2.Timestamp
    success: bool
    outcome: StepOutcome
    thought: str
    error: str
    inline: str
    metadata: _struct_pb2.Struct
    session_id: str
    turn_id: str
    call_id: str
    position: int
    needs_offload: bool
    def __init__(self, id: _Optional[str] = ..., tool_name: _Optional[str] = ..., minimal_args: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., minimal_args_json: _Optional[str] = ..., observation: _Optional[str] = ..., outcome_ref: _Optional[str] = ..., outcome_path: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., success: bool = ..., outcome: _Optional[_Union[StepOutcome, str]] = ..., thought: _Optional[str] = ..., error: _Optional[str] = ..., inline: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., session_id: _Optional[str] = ..., turn_id: _Optional[str] = ..., call_id: _Optional[str] = ..., position: _Optional[int] = ..., needs_offload: bool = ...) -> None: ...

class ListStepsRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "page_size", "page_token", "json_form")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JSON_FORM_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    page_size: int
    page_token: str
    json_form: _memory_pb2.JsonForm
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., json_form: _Optional[_Union[_memory_pb2.JsonForm, str]] = ...) -> None: ...

class ListStepsResponse(_message.Message):
    __slots__ = ("steps", "next_page_token")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    next_page_token: str
    def __init__(self, steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("agent_id", "step_id", "json_form")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    JSON_FORM_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    step_id: str
    json_form: _memory_pb2.JsonForm
    def __init__(self, agent_id: _Optional[str] = ..., step_id: _Optional[str] = ..., json_form: _Optional[_Union[_memory_pb2.JsonForm, str]] = ...) -> None: ...

class GetStepResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: Step
    def __init__(self, step: _Optional[_Union[Step, _Mapping]] = ...) -> None: ...

class AssembleRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "goal", "model", "max_tokens", "system", "without_tools", "format")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    goal: str
    model: str
    max_tokens: int
    system: str
    without_tools: bool
    format: PromptFormat
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., goal: _Optional[str] = ..., model: _Optional[str] = ..., max_tokens: _Optional[int] = ..., system: _Optional[str] = ..., without_tools: bool = ..., format: _Optional[_Union[PromptFormat, str]] = ...) -> None: ...

class AssembleResponse(_message.Message):
    __slots__ = ("messages", "tools_json", "openai_chat_json", "tokens", "parts", "prefix_sha256")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_JSON_FIELD_NUMBER: _ClassVar[int]
    OPENAI_CHAT_JSON_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PREFIX_SHA256_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    tools_json: str
    openai_chat_json: str
    tokens: TokenCount
    parts: _containers.RepeatedCompositeFieldContainer[PromptPart]
    prefix_sha256: str
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., tools_json: _Optional[str] = ..., openai_chat_json: _Optional[str] = ..., tokens: _Optional[_Union[TokenCount, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[PromptPart, _Mapping]]] = ..., prefix_sha256: _Optional[str] = ...) -> None: ...

class PromptPart(_message.Message):
    __slots__ = ("name", "tokens")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    name: str
    tokens: int
    def __init__(self, name: _Optional[str] = ..., tokens: _Optional[int] = ...) -> None: ...

class TokenCount(_message.Message):
    __slots__ = ("tokens", "counter", "certainty")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    CERTAINTY_FIELD_NUMBER: _ClassVar[int]
    tokens: int
    counter: str
    certainty: TokenCertainty
    def __init__(self, tokens: _Optional[int] = ..., counter: _Optional[str] = ..., certainty: _Optional[_Union[TokenCertainty, str]] = ...) -> None: ...

class CountTokensRequest(_message.Message):
    __slots__ = ("agent_id", "text", "model")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    text: str
    model: str
    def __init__(self, agent_id: _Optional[str] = ..., text: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class CountTokensResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: TokenCount
    def __init__(self, count: _Optional[_Union[TokenCount, _Mapping]] = ...) -> None: ...

class BlobInfo(_message.Message):
    __slots__ = ("ref", "path", "size", "kind", "step_id", "session_id", "create_time")
    REF_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ref: str
    path: str
    size: int
    kind: str
    step_id: str
    session_id: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, ref: _Optional[str] = ..., path: _Optional[str] = ..., size: _Optional[int] = ..., kind: _Optional[str] = ..., step_id: _Optional[str] = ..., session_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReadBlobRequest(_message.Message):
    __slots__ = ("agent_id", "name", "offset", "limit")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    name: str
    offset: int
    limit: int
    def __init__(self, agent_id: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ReadBlobResponse(_message.Message):
    __slots__ = ("info", "data")
    INFO_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    info: BlobInfo
    data: bytes
    def __init__(self, info: _Optional[_Union[BlobInfo, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class RecordStepRequest(_message.Message):
    __slots__ = ("agent_id", "tool_name", "arguments", "arguments_json", "success", "output", "output_json", "error_message", "session_id", "thought", "turn_id", "call_id", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    THOUGHT_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    tool_name: str
    arguments: _struct_pb2.Struct
    arguments_json: str
    success: bool
    output: _struct_pb2.Value
    output_json: str
    error_message: str
    session_id: str
    thought: str
    turn_id: str
    call_id: str
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., arguments_json: _Optional[str] = ..., success: bool = ..., output: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., output_json: _Optional[str] = ..., error_message: _Optional[str] = ..., session_id: _Optional[str] = ..., thought: _Optional[str] = ..., turn_id: _Optional[str] = ..., call_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RecordStepResponse(_message.Message):
    __slots__ = ("step", "observation", "output_blob")
    STEP_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BLOB_FIELD_NUMBER: _ClassVar[int]
    step: Step
    observation: str
    output_blob: BlobInfo
    def __init__(self, step: _Optional[_Union[Step, _Mapping]] = ..., observation: _Optional[str] = ..., output_blob: _Optional[_Union[BlobInfo, _Mapping]] = ...) -> None: ...
