import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import context_pb2 as _context_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from loombridge.v1 import prompt_pb2 as _prompt_pb2
from loombridge.v1 import servers_pb2 as _servers_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApprovalDecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_DECISION_UNSPECIFIED: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_DENY: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_ONCE: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_SESSION: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_AGENT: _ClassVar[ApprovalDecision]
    APPROVAL_DECISION_ALWAYS: _ClassVar[ApprovalDecision]

class AuditOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_OUTCOME_UNSPECIFIED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_UNKNOWN: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_OK: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_FAILED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_DENIED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_REFUSED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_REPLAYED: _ClassVar[AuditOutcome]

class ToolErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_ERROR_CODE_UNSPECIFIED: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_NOT_FOUND: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_PERMISSION_DENIED: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_TOO_LARGE: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_TIMEOUT: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_FAILED: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_OUTCOME_UNKNOWN: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_INVALID_ARGUMENTS: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_REFUSED: _ClassVar[ToolErrorCode]
    TOOL_ERROR_CODE_PROVIDER_AWAY: _ClassVar[ToolErrorCode]
APPROVAL_DECISION_UNSPECIFIED: ApprovalDecision
APPROVAL_DECISION_DENY: ApprovalDecision
APPROVAL_DECISION_ONCE: ApprovalDecision
APPROVAL_DECISION_SESSION: ApprovalDecision
APPROVAL_DECISION_AGENT: ApprovalDecision
APPROVAL_DECISION_ALWAYS: ApprovalDecision
AUDIT_OUTCOME_UNSPECIFIED: AuditOutcome
AUDIT_OUTCOME_UNKNOWN: AuditOutcome
AUDIT_OUTCOME_OK: AuditOutcome
AUDIT_OUTCOME_FAILED: AuditOutcome
AUDIT_OUTCOME_DENIED: AuditOutcome
AUDIT_OUTCOME_REFUSED: AuditOutcome
AUDIT_OUTCOME_REPLAYED: AuditOutcome
TOOL_ERROR_CODE_UNSPECIFIED: ToolErrorCode
TOOL_ERROR_CODE_NOT_FOUND: ToolErrorCode
TOOL_ERROR_CODE_PERMISSION_DENIED: ToolErrorCode
TOOL_ERROR_CODE_TOO_LARGE: ToolErrorCode
TOOL_ERROR_CODE_TIMEOUT: ToolErrorCode
TOOL_ERROR_CODE_FAILED: ToolErrorCode
TOOL_ERROR_CODE_OUTCOME_UNKNOWN: ToolErrorCode
TOOL_ERROR_CODE_INVALID_ARGUMENTS: ToolErrorCode
TOOL_ERROR_CODE_REFUSED: ToolErrorCode
TOOL_ERROR_CODE_PROVIDER_AWAY: ToolErrorCode

class Capability(_message.Message):
    __slots__ = ("kind", "name")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kind: str
    name: str
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class PendingApproval(_message.Message):
    __slots__ = ("id", "agent_id", "session_id", "call_id", "capability", "arguments_json", "expire_time", "tool", "parts", "digest", "rule", "also_allows")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ALSO_ALLOWS_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent_id: str
    session_id: str
    call_id: str
    capability: Capability
    arguments_json: str
    expire_time: _timestamp_pb2.Timestamp
    tool: str
    parts: _containers.RepeatedCompositeFieldContainer[ApprovalPart]
    digest: str
    rule: str
    also_allows: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., call_id: _Optional[str] = ..., capability: _Optional[_Union[Capability, _Mapping]] = ..., arguments_json: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tool: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[ApprovalPart, _Mapping]]] = ..., digest: _Optional[str] = ..., rule: _Optional[str] = ..., also_allows: _Optional[_Iterable[str]] = ...) -> None: ...

class ApprovalPart(_message.Message):
    __slots__ = ("name", "text", "sha256", "bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    sha256: str
    bytes: int
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., sha256: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...

class WatchApprovalsRequest(_message.Message):
    __slots__ = ("agent_id",)
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    def __init__(self, agent_id: _Optional[str] = ...) -> None: ...

class WatchApprovalsResponse(_message.Message):
    __slots__ = ("pending", "closed_id")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    CLOSED_ID_FIELD_NUMBER: _ClassVar[int]
    pending: PendingApproval
    closed_id: str
    def __init__(self, pending: _Optional[_Union[PendingApproval, _Mapping]] = ..., closed_id: _Optional[str] = ...) -> None: ...

class ApproveCallRequest(_message.Message):
    __slots__ = ("agent_id", "id", "decision", "note")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    id: str
    decision: ApprovalDecision
    note: str
    def __init__(self, agent_id: _Optional[str] = ..., id: _Optional[str] = ..., decision: _Optional[_Union[ApprovalDecision, str]] = ..., note: _Optional[str] = ...) -> None: ...

class RememberedApproval(_message.Message):
    __slots__ = ("id", "capability", "decision", "agent_id", "session_id", "approver_id", "create_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVER_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    capability: Capability
    decision: ApprovalDecision
    agent_id: str
    session_id: str
    approver_id: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., capability: _Optional[_Union[Capability, _Mapping]] = ..., decision: _Optional[_Union[ApprovalDecision, str]] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., approver_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListApprovalsRequest(_message.Message):
    __slots__ = ("agent_id", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListApprovalsResponse(_message.Message):
    __slots__ = ("approvals", "next_page_token")
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    approvals: _containers.RepeatedCompositeFieldContainer[RememberedApproval]
    next_page_token: str
    def __init__(self, approvals: _Optional[_Iterable[_Union[RememberedApproval, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RevokeApprovalRequest(_message.Message):
    __slots__ = ("agent_id", "id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    id: str
    def __init__(self, agent_id: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class RevokeApprovalResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ("agent_id", "levels", "page_size", "page_token", "tool")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    levels: _containers.RepeatedScalarFieldContainer[int]
    page_size: int
    page_token: str
    tool: str
    def __init__(self, agent_id: _Optional[str] = ..., levels: _Optional[_Iterable[int]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., tool: _Optional[str] = ...) -> None: ...

class ListToolsResponse(_message.Message):
    __slots__ = ("tools", "next_page_token", "profile")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[_prompt_pb2.ToolDescriptor]
    next_page_token: str
    profile: ToolProfile
    def __init__(self, tools: _Optional[_Iterable[_Union[_prompt_pb2.ToolDescriptor, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., profile: _Optional[_Union[ToolProfile, _Mapping]] = ...) -> None: ...

class ToolProfile(_message.Message):
    __slots__ = ("rules", "refused", "problem")
    RULES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    rules: _struct_pb2.Struct
    refused: _containers.RepeatedCompositeFieldContainer[RefusedKey]
    problem: str
    def __init__(self, rules: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., refused: _Optional[_Iterable[_Union[RefusedKey, _Mapping]]] = ..., problem: _Optional[str] = ...) -> None: ...

class RefusedKey(_message.Message):
    __slots__ = ("key", "line", "reason")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    key: str
    line: int
    reason: str
    def __init__(self, key: _Optional[str] = ..., line: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ListAuditRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "tool", "outcome", "start_time", "end_time", "page_size", "page_token", "caller_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CALLER_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    tool: str
    outcome: AuditOutcome
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    caller_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., tool: _Optional[str] = ..., outcome: _Optional[_Union[AuditOutcome, str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., caller_id: _Optional[str] = ...) -> None: ...

class ListAuditResponse(_message.Message):
    __slots__ = ("records", "next_page_token")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[AuditRecord]
    next_page_token: str
    def __init__(self, records: _Optional[_Iterable[_Union[AuditRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AuditRecord(_message.Message):
    __slots__ = ("number", "agent_id", "session_id", "call_id", "request_id", "tool", "arguments_json", "profile", "approval", "outcome", "code", "create_time", "duration", "tier", "capability", "approval_note")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_NOTE_FIELD_NUMBER: _ClassVar[int]
    number: int
    agent_id: str
    session_id: str
    call_id: str
    request_id: str
    tool: str
    arguments_json: str
    profile: str
    approval: str
    outcome: AuditOutcome
    code: str
    create_time: _timestamp_pb2.Timestamp
    duration: _duration_pb2.Duration
    tier: str
    capability: str
    approval_note: str
    def __init__(self, number: _Optional[int] = ..., agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., call_id: _Optional[str] = ..., request_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., profile: _Optional[str] = ..., approval: _Optional[str] = ..., outcome: _Optional[_Union[AuditOutcome, str]] = ..., code: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., tier: _Optional[str] = ..., capability: _Optional[str] = ..., approval_note: _Optional[str] = ...) -> None: ...

class ToolRequest(_message.Message):
    __slots__ = ("agent_id", "name", "arguments", "arguments_json", "session_id", "timeout", "thought", "turn_id", "call_id", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    THOUGHT_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    name: str
    arguments: _struct_pb2.Struct
    arguments_json: str
    session_id: str
    timeout: _duration_pb2.Duration
    thought: str
    turn_id: str
    call_id: str
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., arguments_json: _Optional[str] = ..., session_id: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., thought: _Optional[str] = ..., turn_id: _Optional[str] = ..., call_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ToolResponse(_message.Message):
    __slots__ = ("success", "output", "output_json", "output_bytes", "error_message", "error_code", "output_truncated", "output_blob", "step", "observation", "recorded", "record_error", "replayed", "output_collected", "redacted")
    class RedactedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BLOB_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    RECORD_ERROR_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_COLLECTED_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    success: bool
    output: _struct_pb2.Value
    output_json: str
    output_bytes: _context_pb2.ResultBytes
    error_message: str
    error_code: ToolErrorCode
    output_truncated: bool
    output_blob: _context_pb2.BlobInfo
    step: _context_pb2.Step
    observation: str
    recorded: bool
    record_error: str
    replayed: bool
    output_collected: bool
    redacted: _containers.ScalarMap[str, int]
    def __init__(self, success: bool = ..., output: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., output_json: _Optional[str] = ..., output_bytes: _Optional[_Union[_context_pb2.ResultBytes, _Mapping]] = ..., error_message: _Optional[str] = ..., error_code: _Optional[_Union[ToolErrorCode, str]] = ..., output_truncated: bool = ..., output_blob: _Optional[_Union[_context_pb2.BlobInfo, _Mapping]] = ..., step: _Optional[_Union[_context_pb2.Step, _Mapping]] = ..., observation: _Optional[str] = ..., recorded: bool = ..., record_error: _Optional[str] = ..., replayed: bool = ..., output_collected: bool = ..., redacted: _Optional[_Mapping[str, int]] = ...) -> None: ...
