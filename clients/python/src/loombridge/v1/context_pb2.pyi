import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from loombridge.v1 import children_pb2 as _children_pb2
from loombridge.v1 import options_pb2 as _options_pb2
from loombridge.v1 import prompt_pb2 as _prompt_pb2
from loombridge.v1 import renewal_pb2 as _renewal_pb2
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
    ROLE_DEVELOPER: _ClassVar[Role]

class StepOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_OUTCOME_UNSPECIFIED: _ClassVar[StepOutcome]
    STEP_OUTCOME_SUCCEEDED: _ClassVar[StepOutcome]
    STEP_OUTCOME_FAILED: _ClassVar[StepOutcome]
    STEP_OUTCOME_UNKNOWN: _ClassVar[StepOutcome]

class ResultForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESULT_FORM_UNSPECIFIED: _ClassVar[ResultForm]
    RESULT_FORM_NONE: _ClassVar[ResultForm]
    RESULT_FORM_JSON: _ClassVar[ResultForm]
    RESULT_FORM_TEXT: _ClassVar[ResultForm]
    RESULT_FORM_BYTES: _ClassVar[ResultForm]

class PromptFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROMPT_FORMAT_UNSPECIFIED: _ClassVar[PromptFormat]
    PROMPT_FORMAT_NEUTRAL: _ClassVar[PromptFormat]
    PROMPT_FORMAT_OPENAI_CHAT: _ClassVar[PromptFormat]
    PROMPT_FORMAT_OPENAI_RESPONSES: _ClassVar[PromptFormat]
    PROMPT_FORMAT_ANTHROPIC: _ClassVar[PromptFormat]
    PROMPT_FORMAT_GEMINI: _ClassVar[PromptFormat]

class HistoryPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HISTORY_POLICY_UNSPECIFIED: _ClassVar[HistoryPolicy]
    HISTORY_POLICY_LEDGER: _ClassVar[HistoryPolicy]
    HISTORY_POLICY_APPEND_ONLY: _ClassVar[HistoryPolicy]
    HISTORY_POLICY_PRESET: _ClassVar[HistoryPolicy]

class HistoryStyle(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HISTORY_STYLE_UNSPECIFIED: _ClassVar[HistoryStyle]
    HISTORY_STYLE_DESIGN: _ClassVar[HistoryStyle]
    HISTORY_STYLE_REDUCTION: _ClassVar[HistoryStyle]
    HISTORY_STYLE_GROUPED: _ClassVar[HistoryStyle]

class CompressHint(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPRESS_HINT_UNSPECIFIED: _ClassVar[CompressHint]
    COMPRESS_HINT_SKIP: _ClassVar[CompressHint]
    COMPRESS_HINT_NORMAL: _ClassVar[CompressHint]
    COMPRESS_HINT_FORCE: _ClassVar[CompressHint]
    COMPRESS_HINT_SEARCH: _ClassVar[CompressHint]

class TokenCertainty(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOKEN_CERTAINTY_UNSPECIFIED: _ClassVar[TokenCertainty]
    TOKEN_CERTAINTY_EXACT: _ClassVar[TokenCertainty]
    TOKEN_CERTAINTY_ESTIMATED: _ClassVar[TokenCertainty]
    TOKEN_CERTAINTY_ANCHORED: _ClassVar[TokenCertainty]

class BlobTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BLOB_TIER_UNSPECIFIED: _ClassVar[BlobTier]
    BLOB_TIER_WORKING: _ClassVar[BlobTier]
    BLOB_TIER_SHORT_TERM: _ClassVar[BlobTier]
    BLOB_TIER_LONG_TERM: _ClassVar[BlobTier]

class BlobForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BLOB_FORM_UNSPECIFIED: _ClassVar[BlobForm]
    BLOB_FORM_ORIGINAL: _ClassVar[BlobForm]
    BLOB_FORM_TEXT: _ClassVar[BlobForm]
    BLOB_FORM_STDOUT: _ClassVar[BlobForm]
    BLOB_FORM_STDERR: _ClassVar[BlobForm]
    BLOB_FORM_MEDIA: _ClassVar[BlobForm]

class ConversationOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONVERSATION_ORDER_UNSPECIFIED: _ClassVar[ConversationOrder]
    CONVERSATION_ORDER_OLDEST_FIRST: _ClassVar[ConversationOrder]
    CONVERSATION_ORDER_NEWEST_FIRST: _ClassVar[ConversationOrder]

class LossCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_CAUSE_UNSPECIFIED: _ClassVar[LossCause]
    LOSS_CAUSE_FOLD: _ClassVar[LossCause]
    LOSS_CAUSE_LEVEL: _ClassVar[LossCause]
    LOSS_CAUSE_RENEWAL: _ClassVar[LossCause]
    LOSS_CAUSE_CAP: _ClassVar[LossCause]
    LOSS_CAUSE_SOURCE: _ClassVar[LossCause]
ROLE_UNSPECIFIED: Role
ROLE_SYSTEM: Role
ROLE_USER: Role
ROLE_ASSISTANT: Role
ROLE_TOOL: Role
ROLE_DEVELOPER: Role
STEP_OUTCOME_UNSPECIFIED: StepOutcome
STEP_OUTCOME_SUCCEEDED: StepOutcome
STEP_OUTCOME_FAILED: StepOutcome
STEP_OUTCOME_UNKNOWN: StepOutcome
RESULT_FORM_UNSPECIFIED: ResultForm
RESULT_FORM_NONE: ResultForm
RESULT_FORM_JSON: ResultForm
RESULT_FORM_TEXT: ResultForm
RESULT_FORM_BYTES: ResultForm
PROMPT_FORMAT_UNSPECIFIED: PromptFormat
PROMPT_FORMAT_NEUTRAL: PromptFormat
PROMPT_FORMAT_OPENAI_CHAT: PromptFormat
PROMPT_FORMAT_OPENAI_RESPONSES: PromptFormat
PROMPT_FORMAT_ANTHROPIC: PromptFormat
PROMPT_FORMAT_GEMINI: PromptFormat
HISTORY_POLICY_UNSPECIFIED: HistoryPolicy
HISTORY_POLICY_LEDGER: HistoryPolicy
HISTORY_POLICY_APPEND_ONLY: HistoryPolicy
HISTORY_POLICY_PRESET: HistoryPolicy
HISTORY_STYLE_UNSPECIFIED: HistoryStyle
HISTORY_STYLE_DESIGN: HistoryStyle
HISTORY_STYLE_REDUCTION: HistoryStyle
HISTORY_STYLE_GROUPED: HistoryStyle
COMPRESS_HINT_UNSPECIFIED: CompressHint
COMPRESS_HINT_SKIP: CompressHint
COMPRESS_HINT_NORMAL: CompressHint
COMPRESS_HINT_FORCE: CompressHint
COMPRESS_HINT_SEARCH: CompressHint
TOKEN_CERTAINTY_UNSPECIFIED: TokenCertainty
TOKEN_CERTAINTY_EXACT: TokenCertainty
TOKEN_CERTAINTY_ESTIMATED: TokenCertainty
TOKEN_CERTAINTY_ANCHORED: TokenCertainty
BLOB_TIER_UNSPECIFIED: BlobTier
BLOB_TIER_WORKING: BlobTier
BLOB_TIER_SHORT_TERM: BlobTier
BLOB_TIER_LONG_TERM: BlobTier
BLOB_FORM_UNSPECIFIED: BlobForm
BLOB_FORM_ORIGINAL: BlobForm
BLOB_FORM_TEXT: BlobForm
BLOB_FORM_STDOUT: BlobForm
BLOB_FORM_STDERR: BlobForm
BLOB_FORM_MEDIA: BlobForm
CONVERSATION_ORDER_UNSPECIFIED: ConversationOrder
CONVERSATION_ORDER_OLDEST_FIRST: ConversationOrder
CONVERSATION_ORDER_NEWEST_FIRST: ConversationOrder
LOSS_CAUSE_UNSPECIFIED: LossCause
LOSS_CAUSE_FOLD: LossCause
LOSS_CAUSE_LEVEL: LossCause
LOSS_CAUSE_RENEWAL: LossCause
LOSS_CAUSE_CAP: LossCause
LOSS_CAUSE_SOURCE: LossCause

class ModelToolCall(_message.Message):
    __slots__ = ("id", "name", "arguments_json", "extra_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    EXTRA_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    arguments_json: str
    extra_json: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ..., extra_json: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("role", "content", "blocks_json", "name", "tool_calls", "tool_call_id", "pinned", "observation", "extra_json")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_JSON_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    EXTRA_JSON_FIELD_NUMBER: _ClassVar[int]
    role: Role
    content: str
    blocks_json: str
    name: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[ModelToolCall]
    tool_call_id: str
    pinned: bool
    observation: bool
    extra_json: str
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., content: _Optional[str] = ..., blocks_json: _Optional[str] = ..., name: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[ModelToolCall, _Mapping]]] = ..., tool_call_id: _Optional[str] = ..., pinned: bool = ..., observation: bool = ..., extra_json: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("id", "tool_name", "minimal_args", "minimal_args_json", "observation", "outcome_ref", "outcome_path", "create_time", "success", "outcome", "thought", "error", "inline", "metadata", "session_id", "turn_id", "call_id", "position", "pinned", "result_form", "refused")
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
    PINNED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FORM_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
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
    pinned: bool
    result_form: ResultForm
    refused: bool
    def __init__(self, id: _Optional[str] = ..., tool_name: _Optional[str] = ..., minimal_args: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., minimal_args_json: _Optional[str] = ..., observation: _Optional[str] = ..., outcome_ref: _Optional[str] = ..., outcome_path: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., success: bool = ..., outcome: _Optional[_Union[StepOutcome, str]] = ..., thought: _Optional[str] = ..., error: _Optional[str] = ..., inline: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., session_id: _Optional[str] = ..., turn_id: _Optional[str] = ..., call_id: _Optional[str] = ..., position: _Optional[int] = ..., pinned: bool = ..., result_form: _Optional[_Union[ResultForm, str]] = ..., refused: bool = ...) -> None: ...

class ResultBytes(_message.Message):
    __slots__ = ("data", "media_type")
    DATA_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    media_type: str
    def __init__(self, data: _Optional[bytes] = ..., media_type: _Optional[str] = ...) -> None: ...

class ResultUpload(_message.Message):
    __slots__ = ("form", "media_type")
    FORM_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    form: ResultForm
    media_type: str
    def __init__(self, form: _Optional[_Union[ResultForm, str]] = ..., media_type: _Optional[str] = ...) -> None: ...

class ListStepsRequest(_message.Message):
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

class ListStepsResponse(_message.Message):
    __slots__ = ("steps", "next_page_token")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    next_page_token: str
    def __init__(self, steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("agent_id", "step_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    step_id: str
    def __init__(self, agent_id: _Optional[str] = ..., step_id: _Optional[str] = ...) -> None: ...

class AssembleRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "goal", "model", "max_tokens", "system", "without_tools", "format", "dry_run", "history", "settings", "tools", "turn_id", "as_of_step_id", "as_of_prompt_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    goal: str
    model: str
    max_tokens: int
    system: str
    without_tools: bool
    format: PromptFormat
    dry_run: bool
    history: HistorySettings
    settings: _prompt_pb2.PromptSettings
    tools: _containers.RepeatedCompositeFieldContainer[_prompt_pb2.ToolDescriptor]
    turn_id: str
    as_of_step_id: str
    as_of_prompt_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., goal: _Optional[str] = ..., model: _Optional[str] = ..., max_tokens: _Optional[int] = ..., system: _Optional[str] = ..., without_tools: bool = ..., format: _Optional[_Union[PromptFormat, str]] = ..., dry_run: bool = ..., history: _Optional[_Union[HistorySettings, _Mapping]] = ..., settings: _Optional[_Union[_prompt_pb2.PromptSettings, _Mapping]] = ..., tools: _Optional[_Iterable[_Union[_prompt_pb2.ToolDescriptor, _Mapping]]] = ..., turn_id: _Optional[str] = ..., as_of_step_id: _Optional[str] = ..., as_of_prompt_id: _Optional[str] = ...) -> None: ...

class AssembleResponse(_message.Message):
    __slots__ = ("messages", "tools_json", "prompt_json", "format", "tokens", "parts", "prefix_sha256", "receipt", "cache_marks")
    class PartsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_JSON_FIELD_NUMBER: _ClassVar[int]
    PROMPT_JSON_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PREFIX_SHA256_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    CACHE_MARKS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    tools_json: str
    prompt_json: str
    format: PromptFormat
    tokens: TokenCount
    parts: _containers.ScalarMap[str, int]
    prefix_sha256: str
    receipt: Receipt
    cache_marks: _containers.RepeatedCompositeFieldContainer[_prompt_pb2.CacheMark]
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., tools_json: _Optional[str] = ..., prompt_json: _Optional[str] = ..., format: _Optional[_Union[PromptFormat, str]] = ..., tokens: _Optional[_Union[TokenCount, _Mapping]] = ..., parts: _Optional[_Mapping[str, int]] = ..., prefix_sha256: _Optional[str] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ..., cache_marks: _Optional[_Iterable[_Union[_prompt_pb2.CacheMark, _Mapping]]] = ...) -> None: ...

class HistorySettings(_message.Message):
    __slots__ = ("policy", "preset", "literal", "prices", "expected_steps", "max_result_tokens")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    policy: HistoryPolicy
    preset: str
    literal: bool
    prices: TokenPrices
    expected_steps: int
    max_result_tokens: int
    def __init__(self, policy: _Optional[_Union[HistoryPolicy, str]] = ..., preset: _Optional[str] = ..., literal: bool = ..., prices: _Optional[_Union[TokenPrices, _Mapping]] = ..., expected_steps: _Optional[int] = ..., max_result_tokens: _Optional[int] = ...) -> None: ...

class TokenPrices(_message.Message):
    __slots__ = ("input", "cached_input", "cache_write")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
    input: float
    cached_input: float
    cache_write: float
    def __init__(self, input: _Optional[float] = ..., cached_input: _Optional[float] = ..., cache_write: _Optional[float] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("prompt_id", "policy", "folds", "batch", "stable_tokens", "cost", "append_only_cost", "pressure", "layout", "sections", "difference", "expected_cached_tokens", "calls", "faults", "reused", "partitions", "sprint")
    class PartitionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    FOLDS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    STABLE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    APPEND_ONLY_COST_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    SPRINT_FIELD_NUMBER: _ClassVar[int]
    prompt_id: str
    policy: str
    folds: _containers.RepeatedCompositeFieldContainer[FoldInfo]
    batch: _prompt_pb2.FoldBatch
    stable_tokens: int
    cost: float
    append_only_cost: float
    pressure: float
    layout: _prompt_pb2.PromptLayout
    sections: _containers.RepeatedCompositeFieldContainer[_prompt_pb2.SectionInfo]
    difference: _prompt_pb2.PromptDifference
    expected_cached_tokens: int
    calls: int
    faults: int
    reused: bool
    partitions: _containers.ScalarMap[str, int]
    sprint: int
    def __init__(self, prompt_id: _Optional[str] = ..., policy: _Optional[str] = ..., folds: _Optional[_Iterable[_Union[FoldInfo, _Mapping]]] = ..., batch: _Optional[_Union[_prompt_pb2.FoldBatch, _Mapping]] = ..., stable_tokens: _Optional[int] = ..., cost: _Optional[float] = ..., append_only_cost: _Optional[float] = ..., pressure: _Optional[float] = ..., layout: _Optional[_Union[_prompt_pb2.PromptLayout, str]] = ..., sections: _Optional[_Iterable[_Union[_prompt_pb2.SectionInfo, _Mapping]]] = ..., difference: _Optional[_Union[_prompt_pb2.PromptDifference, _Mapping]] = ..., expected_cached_tokens: _Optional[int] = ..., calls: _Optional[int] = ..., faults: _Optional[int] = ..., reused: bool = ..., partitions: _Optional[_Mapping[str, int]] = ..., sprint: _Optional[int] = ...) -> None: ...

class FoldInfo(_message.Message):
    __slots__ = ("refs", "tokens", "before_tokens")
    REFS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedScalarFieldContainer[str]
    tokens: int
    before_tokens: int
    def __init__(self, refs: _Optional[_Iterable[str]] = ..., tokens: _Optional[int] = ..., before_tokens: _Optional[int] = ...) -> None: ...

class ConfigureSessionRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "history", "model", "max_tokens", "reset", "request_id", "prompt")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    history: HistorySettings
    model: str
    max_tokens: int
    reset: bool
    request_id: str
    prompt: _prompt_pb2.PromptSettings
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., history: _Optional[_Union[HistorySettings, _Mapping]] = ..., model: _Optional[str] = ..., max_tokens: _Optional[int] = ..., reset: bool = ..., request_id: _Optional[str] = ..., prompt: _Optional[_Union[_prompt_pb2.PromptSettings, _Mapping]] = ...) -> None: ...

class ConfigureSessionResponse(_message.Message):
    __slots__ = ("history", "model", "max_tokens", "prompt")
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    history: HistorySettings
    model: str
    max_tokens: int
    prompt: _prompt_pb2.PromptSettings
    def __init__(self, history: _Optional[_Union[HistorySettings, _Mapping]] = ..., model: _Optional[str] = ..., max_tokens: _Optional[int] = ..., prompt: _Optional[_Union[_prompt_pb2.PromptSettings, _Mapping]] = ...) -> None: ...

class EndSessionRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "reward", "task_type")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    TASK_TYPE_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    reward: float
    task_type: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., reward: _Optional[float] = ..., task_type: _Optional[str] = ...) -> None: ...

class EndSessionResponse(_message.Message):
    __slots__ = ("last_position",)
    LAST_POSITION_FIELD_NUMBER: _ClassVar[int]
    last_position: int
    def __init__(self, last_position: _Optional[int] = ...) -> None: ...

class CompactHistoryRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "style", "keep_recent", "model", "max_tokens", "dry_run", "summary", "step_ids")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STYLE_FIELD_NUMBER: _ClassVar[int]
    KEEP_RECENT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    STEP_IDS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    style: HistoryStyle
    keep_recent: int
    model: str
    max_tokens: int
    dry_run: bool
    summary: str
    step_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., style: _Optional[_Union[HistoryStyle, str]] = ..., keep_recent: _Optional[int] = ..., model: _Optional[str] = ..., max_tokens: _Optional[int] = ..., dry_run: bool = ..., summary: _Optional[str] = ..., step_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CompactHistoryResponse(_message.Message):
    __slots__ = ("batch", "folds", "text", "tokens", "summary_problem")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    FOLDS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    batch: _prompt_pb2.FoldBatch
    folds: _containers.RepeatedCompositeFieldContainer[FoldInfo]
    text: str
    tokens: TokenCount
    summary_problem: str
    def __init__(self, batch: _Optional[_Union[_prompt_pb2.FoldBatch, _Mapping]] = ..., folds: _Optional[_Iterable[_Union[FoldInfo, _Mapping]]] = ..., text: _Optional[str] = ..., tokens: _Optional[_Union[TokenCount, _Mapping]] = ..., summary_problem: _Optional[str] = ...) -> None: ...

class UndoRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "batch", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    batch: int
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., batch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class UndoResponse(_message.Message):
    __slots__ = ("refs",)
    REFS_FIELD_NUMBER: _ClassVar[int]
    refs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, refs: _Optional[_Iterable[str]] = ...) -> None: ...

class ReportUsageRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "prompt_id", "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "overflow", "turn_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    prompt_id: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    overflow: bool
    turn_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., prompt_id: _Optional[str] = ..., prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., overflow: bool = ..., turn_id: _Optional[str] = ...) -> None: ...

class ReportUsageResponse(_message.Message):
    __slots__ = ("ratio", "missed_tokens", "level")
    RATIO_FIELD_NUMBER: _ClassVar[int]
    MISSED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ratio: float
    missed_tokens: int
    level: _prompt_pb2.PressureLevel
    def __init__(self, ratio: _Optional[float] = ..., missed_tokens: _Optional[int] = ..., level: _Optional[_Union[_prompt_pb2.PressureLevel, str]] = ...) -> None: ...

class CompressResultRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "tool_name", "tool_call_id", "content", "result_kind", "hint", "failed", "threshold_chars", "path", "exit_code", "compressed")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    RESULT_KIND_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_CHARS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    tool_name: str
    tool_call_id: str
    content: str
    result_kind: str
    hint: CompressHint
    failed: bool
    threshold_chars: int
    path: str
    exit_code: int
    compressed: bool
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., content: _Optional[str] = ..., result_kind: _Optional[str] = ..., hint: _Optional[_Union[CompressHint, str]] = ..., failed: bool = ..., threshold_chars: _Optional[int] = ..., path: _Optional[str] = ..., exit_code: _Optional[int] = ..., compressed: bool = ...) -> None: ...

class CompressResultResponse(_message.Message):
    __slots__ = ("content", "compressed", "blob", "strategy")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    content: str
    compressed: bool
    blob: BlobInfo
    strategy: str
    def __init__(self, content: _Optional[str] = ..., compressed: bool = ..., blob: _Optional[_Union[BlobInfo, _Mapping]] = ..., strategy: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("agent_id", "text", "model", "messages")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    text: str
    model: str
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    def __init__(self, agent_id: _Optional[str] = ..., text: _Optional[str] = ..., model: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...

class BlobInfo(_message.Message):
    __slots__ = ("ref", "path", "size", "kind", "step_id", "session_id", "create_time", "agent_id", "category", "media_type", "ttl", "expire_time", "tier", "important", "archive", "aliases")
    REF_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    IMPORTANT_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    ref: str
    path: str
    size: int
    kind: str
    step_id: str
    session_id: str
    create_time: _timestamp_pb2.Timestamp
    agent_id: str
    category: str
    media_type: str
    ttl: _duration_pb2.Duration
    expire_time: _timestamp_pb2.Timestamp
    tier: BlobTier
    important: bool
    archive: BlobArchive
    aliases: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ref: _Optional[str] = ..., path: _Optional[str] = ..., size: _Optional[int] = ..., kind: _Optional[str] = ..., step_id: _Optional[str] = ..., session_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent_id: _Optional[str] = ..., category: _Optional[str] = ..., media_type: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tier: _Optional[_Union[BlobTier, str]] = ..., important: bool = ..., archive: _Optional[_Union[BlobArchive, _Mapping]] = ..., aliases: _Optional[_Iterable[str]] = ...) -> None: ...

class BlobArchive(_message.Message):
    __slots__ = ("category", "tags")
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    category: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, category: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class ReadBlobRequest(_message.Message):
    __slots__ = ("agent_id", "name", "offset", "limit", "session_id", "form", "media_index")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    MEDIA_INDEX_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    name: str
    offset: int
    limit: int
    session_id: str
    form: BlobForm
    media_index: int
    def __init__(self, agent_id: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., session_id: _Optional[str] = ..., form: _Optional[_Union[BlobForm, str]] = ..., media_index: _Optional[int] = ...) -> None: ...

class ReadBlobResponse(_message.Message):
    __slots__ = ("info", "data")
    INFO_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    info: BlobInfo
    data: bytes
    def __init__(self, info: _Optional[_Union[BlobInfo, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class RecordStepRequest(_message.Message):
    __slots__ = ("agent_id", "tool_name", "arguments", "arguments_json", "success", "output", "output_json", "output_text", "output_bytes", "output_upload", "refused", "error_message", "session_id", "thought", "turn_id", "call_id", "request_id", "pinned", "task")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TEXT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    THOUGHT_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    tool_name: str
    arguments: _struct_pb2.Struct
    arguments_json: str
    success: bool
    output: _struct_pb2.Value
    output_json: str
    output_text: str
    output_bytes: ResultBytes
    output_upload: ResultUpload
    refused: bool
    error_message: str
    session_id: str
    thought: str
    turn_id: str
    call_id: str
    request_id: str
    pinned: bool
    task: Task
    def __init__(self, agent_id: _Optional[str] = ..., tool_name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., arguments_json: _Optional[str] = ..., success: bool = ..., output: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., output_json: _Optional[str] = ..., output_text: _Optional[str] = ..., output_bytes: _Optional[_Union[ResultBytes, _Mapping]] = ..., output_upload: _Optional[_Union[ResultUpload, _Mapping]] = ..., refused: bool = ..., error_message: _Optional[str] = ..., session_id: _Optional[str] = ..., thought: _Optional[str] = ..., turn_id: _Optional[str] = ..., call_id: _Optional[str] = ..., request_id: _Optional[str] = ..., pinned: bool = ..., task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("task_id", "action", "parameters", "parameters_json", "source_agent", "target_agent", "parent_task_id", "result", "tags", "importance", "create_time")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_AGENT_FIELD_NUMBER: _ClassVar[int]
    TARGET_AGENT_FIELD_NUMBER: _ClassVar[int]
    PARENT_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    action: str
    parameters: _struct_pb2.Struct
    parameters_json: str
    source_agent: str
    target_agent: str
    parent_task_id: str
    result: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    importance: float
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, task_id: _Optional[str] = ..., action: _Optional[str] = ..., parameters: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., parameters_json: _Optional[str] = ..., source_agent: _Optional[str] = ..., target_agent: _Optional[str] = ..., parent_task_id: _Optional[str] = ..., result: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., importance: _Optional[float] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecordStepResponse(_message.Message):
    __slots__ = ("step", "observation", "output_blob", "task_id", "replayed", "output_collected", "redacted")
    class RedactedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STEP_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BLOB_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_COLLECTED_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    step: Step
    observation: str
    output_blob: BlobInfo
    task_id: str
    replayed: bool
    output_collected: bool
    redacted: _containers.ScalarMap[str, int]
    def __init__(self, step: _Optional[_Union[Step, _Mapping]] = ..., observation: _Optional[str] = ..., output_blob: _Optional[_Union[BlobInfo, _Mapping]] = ..., task_id: _Optional[str] = ..., replayed: bool = ..., output_collected: bool = ..., redacted: _Optional[_Mapping[str, int]] = ...) -> None: ...

class UploadStepRequest(_message.Message):
    __slots__ = ("step", "data")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    step: RecordStepRequest
    data: bytes
    def __init__(self, step: _Optional[_Union[RecordStepRequest, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ListBlobsRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "step_id", "kind", "category", "tier", "archived", "page_size", "page_token", "include_closed")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CLOSED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    step_id: str
    kind: str
    category: str
    tier: BlobTier
    archived: bool
    page_size: int
    page_token: str
    include_closed: bool
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., step_id: _Optional[str] = ..., kind: _Optional[str] = ..., category: _Optional[str] = ..., tier: _Optional[_Union[BlobTier, str]] = ..., archived: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_closed: bool = ...) -> None: ...

class ListBlobsResponse(_message.Message):
    __slots__ = ("blobs", "next_page_token", "usage")
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedCompositeFieldContainer[BlobInfo]
    next_page_token: str
    usage: BlobUsage
    def __init__(self, blobs: _Optional[_Iterable[_Union[BlobInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., usage: _Optional[_Union[BlobUsage, _Mapping]] = ...) -> None: ...

class BlobUsage(_message.Message):
    __slots__ = ("count", "bytes", "max_bytes")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    count: int
    bytes: int
    max_bytes: int
    def __init__(self, count: _Optional[int] = ..., bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class UpdateBlobRequest(_message.Message):
    __slots__ = ("agent_id", "name", "tier", "category", "new_name", "important", "request_id", "archive", "tags")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    NEW_NAME_FIELD_NUMBER: _ClassVar[int]
    IMPORTANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    name: str
    tier: BlobTier
    category: str
    new_name: str
    important: bool
    request_id: str
    archive: bool
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., name: _Optional[str] = ..., tier: _Optional[_Union[BlobTier, str]] = ..., category: _Optional[str] = ..., new_name: _Optional[str] = ..., important: bool = ..., request_id: _Optional[str] = ..., archive: bool = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class SearchBlobsRequest(_message.Message):
    __slots__ = ("agent_id", "name", "words", "literal", "regexp", "ignore_case", "category", "tags", "limit", "max_matches", "page_token", "session_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    REGEXP_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_MATCHES_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    name: str
    words: str
    literal: str
    regexp: str
    ignore_case: bool
    category: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    max_matches: int
    page_token: str
    session_id: str
    def __init__(self, agent_id: _Optional[str] = ..., name: _Optional[str] = ..., words: _Optional[str] = ..., literal: _Optional[str] = ..., regexp: _Optional[str] = ..., ignore_case: bool = ..., category: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., max_matches: _Optional[int] = ..., page_token: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class SearchBlobsResponse(_message.Message):
    __slots__ = ("blob", "matches", "next_page_token", "more", "incomplete")
    BLOB_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    blob: BlobInfo
    matches: _containers.RepeatedCompositeFieldContainer[BlobMatch]
    next_page_token: str
    more: bool
    incomplete: bool
    def __init__(self, blob: _Optional[_Union[BlobInfo, _Mapping]] = ..., matches: _Optional[_Iterable[_Union[BlobMatch, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., more: bool = ..., incomplete: bool = ...) -> None: ...

class BlobMatch(_message.Message):
    __slots__ = ("line", "offset", "length", "text")
    LINE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    line: int
    offset: int
    length: int
    text: str
    def __init__(self, line: _Optional[int] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class CollectGarbageRequest(_message.Message):
    __slots__ = ("agent_id", "dry_run", "request_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    dry_run: bool
    request_id: str
    def __init__(self, agent_id: _Optional[str] = ..., dry_run: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class CollectGarbageResponse(_message.Message):
    __slots__ = ("deleted_count", "freed_bytes", "deleted_refs", "kept", "more")
    class KeptEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DELETED_REFS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    freed_bytes: int
    deleted_refs: _containers.RepeatedScalarFieldContainer[str]
    kept: _containers.ScalarMap[str, int]
    more: bool
    def __init__(self, deleted_count: _Optional[int] = ..., freed_bytes: _Optional[int] = ..., deleted_refs: _Optional[_Iterable[str]] = ..., kept: _Optional[_Mapping[str, int]] = ..., more: bool = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("agent_id", "page_size", "page_token", "include_closed")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CLOSED_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    page_size: int
    page_token: str
    include_closed: bool
    def __init__(self, agent_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_closed: bool = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[SessionInfo]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[SessionInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SessionInfo(_message.Message):
    __slots__ = ("session_id", "last_position", "begin_time", "update_time", "ended", "closed")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_POSITION_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    last_position: int
    begin_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    ended: bool
    closed: bool
    def __init__(self, session_id: _Optional[str] = ..., last_position: _Optional[int] = ..., begin_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: bool = ..., closed: bool = ...) -> None: ...

class ListConversationRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "order", "page_size", "page_token", "task_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    order: ConversationOrder
    page_size: int
    page_token: str
    task_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., order: _Optional[_Union[ConversationOrder, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., task_id: _Optional[str] = ...) -> None: ...

class ListConversationResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConversationEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[ConversationEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ConversationEntry(_message.Message):
    __slots__ = ("position", "create_time", "message", "step", "task", "fold_batch", "session_id", "tiers")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    FOLD_BATCH_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    position: int
    create_time: _timestamp_pb2.Timestamp
    message: Message
    step: Step
    task: Task
    fold_batch: int
    session_id: str
    tiers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, position: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., message: _Optional[_Union[Message, _Mapping]] = ..., step: _Optional[_Union[Step, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., fold_batch: _Optional[int] = ..., session_id: _Optional[str] = ..., tiers: _Optional[_Iterable[int]] = ...) -> None: ...

class DiffPromptsRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "from_prompt_id", "to_prompt_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    TO_PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    from_prompt_id: str
    to_prompt_id: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., from_prompt_id: _Optional[str] = ..., to_prompt_id: _Optional[str] = ...) -> None: ...

class DiffPromptsResponse(_message.Message):
    __slots__ = ("from_prompt_id", "to_prompt_id", "difference", "from_excerpt", "to_excerpt")
    FROM_PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    TO_PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    FROM_EXCERPT_FIELD_NUMBER: _ClassVar[int]
    TO_EXCERPT_FIELD_NUMBER: _ClassVar[int]
    from_prompt_id: str
    to_prompt_id: str
    difference: _prompt_pb2.PromptDifference
    from_excerpt: str
    to_excerpt: str
    def __init__(self, from_prompt_id: _Optional[str] = ..., to_prompt_id: _Optional[str] = ..., difference: _Optional[_Union[_prompt_pb2.PromptDifference, _Mapping]] = ..., from_excerpt: _Optional[str] = ..., to_excerpt: _Optional[str] = ...) -> None: ...

class FindInPromptsRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "text")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    text: str
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class FindInPromptsResponse(_message.Message):
    __slots__ = ("prompts", "origins", "losses", "unread")
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    prompts: _containers.RepeatedCompositeFieldContainer[SentPrompt]
    origins: _containers.RepeatedCompositeFieldContainer[TextOrigin]
    losses: _containers.RepeatedCompositeFieldContainer[TextLoss]
    unread: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, prompts: _Optional[_Iterable[_Union[SentPrompt, _Mapping]]] = ..., origins: _Optional[_Iterable[_Union[TextOrigin, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[TextLoss, _Mapping]]] = ..., unread: _Optional[_Iterable[str]] = ...) -> None: ...

class SentPrompt(_message.Message):
    __slots__ = ("prompt_id", "number", "last_position", "model", "tokens", "parts", "places", "create_time", "expected_cached_tokens", "cost", "append_only_cost", "fold_batch", "renewals", "undone_position")
    class PartsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LAST_POSITION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    APPEND_ONLY_COST_FIELD_NUMBER: _ClassVar[int]
    FOLD_BATCH_FIELD_NUMBER: _ClassVar[int]
    RENEWALS_FIELD_NUMBER: _ClassVar[int]
    UNDONE_POSITION_FIELD_NUMBER: _ClassVar[int]
    prompt_id: str
    number: int
    last_position: int
    model: str
    tokens: int
    parts: _containers.ScalarMap[str, int]
    places: _containers.RepeatedCompositeFieldContainer[TextPlace]
    create_time: _timestamp_pb2.Timestamp
    expected_cached_tokens: int
    cost: float
    append_only_cost: float
    fold_batch: int
    renewals: int
    undone_position: int
    def __init__(self, prompt_id: _Optional[str] = ..., number: _Optional[int] = ..., last_position: _Optional[int] = ..., model: _Optional[str] = ..., tokens: _Optional[int] = ..., parts: _Optional[_Mapping[str, int]] = ..., places: _Optional[_Iterable[_Union[TextPlace, _Mapping]]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expected_cached_tokens: _Optional[int] = ..., cost: _Optional[float] = ..., append_only_cost: _Optional[float] = ..., fold_batch: _Optional[int] = ..., renewals: _Optional[int] = ..., undone_position: _Optional[int] = ...) -> None: ...

class TextPlace(_message.Message):
    __slots__ = ("section", "message_index", "ref", "batch")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_INDEX_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    section: str
    message_index: int
    ref: str
    batch: int
    def __init__(self, section: _Optional[str] = ..., message_index: _Optional[int] = ..., ref: _Optional[str] = ..., batch: _Optional[int] = ...) -> None: ...

class TextOrigin(_message.Message):
    __slots__ = ("ref", "position", "source", "part", "arguments_json")
    REF_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ref: str
    position: int
    source: str
    part: str
    arguments_json: str
    def __init__(self, ref: _Optional[str] = ..., position: _Optional[int] = ..., source: _Optional[str] = ..., part: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class TextLoss(_message.Message):
    __slots__ = ("prompt_id", "number", "section", "cause", "batch", "reason")
    PROMPT_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    prompt_id: str
    number: int
    section: str
    cause: LossCause
    batch: _prompt_pb2.FoldBatch
    reason: str
    def __init__(self, prompt_id: _Optional[str] = ..., number: _Optional[int] = ..., section: _Optional[str] = ..., cause: _Optional[_Union[LossCause, str]] = ..., batch: _Optional[_Union[_prompt_pb2.FoldBatch, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...
