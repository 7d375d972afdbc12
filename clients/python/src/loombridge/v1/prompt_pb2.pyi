import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from loombridge.v1 import working_pb2 as _working_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PromptLayout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROMPT_LAYOUT_UNSPECIFIED: _ClassVar[PromptLayout]
    PROMPT_LAYOUT_THREE_PHASE: _ClassVar[PromptLayout]
    PROMPT_LAYOUT_TASK_CONTEXT: _ClassVar[PromptLayout]
    PROMPT_LAYOUT_REACT: _ClassVar[PromptLayout]
    PROMPT_LAYOUT_PARTITIONED: _ClassVar[PromptLayout]

class ToolRendering(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_RENDERING_UNSPECIFIED: _ClassVar[ToolRendering]
    TOOL_RENDERING_PARAMETER: _ClassVar[ToolRendering]
    TOOL_RENDERING_TEXT: _ClassVar[ToolRendering]

class RuntimePosition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUNTIME_POSITION_UNSPECIFIED: _ClassVar[RuntimePosition]
    RUNTIME_POSITION_APPEND: _ClassVar[RuntimePosition]
    RUNTIME_POSITION_PREPEND: _ClassVar[RuntimePosition]

class InjectionPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INJECTION_PHASE_UNSPECIFIED: _ClassVar[InjectionPhase]
    INJECTION_PHASE_SYSTEM: _ClassVar[InjectionPhase]
    INJECTION_PHASE_USER_CONTEXT: _ClassVar[InjectionPhase]
    INJECTION_PHASE_RUNTIME: _ClassVar[InjectionPhase]

class CacheStrategy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_STRATEGY_UNSPECIFIED: _ClassVar[CacheStrategy]
    CACHE_STRATEGY_STABLE: _ClassVar[CacheStrategy]
    CACHE_STRATEGY_SESSION: _ClassVar[CacheStrategy]
    CACHE_STRATEGY_DYNAMIC: _ClassVar[CacheStrategy]

class PlanStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAN_STATUS_UNSPECIFIED: _ClassVar[PlanStatus]
    PLAN_STATUS_PENDING: _ClassVar[PlanStatus]
    PLAN_STATUS_IN_PROGRESS: _ClassVar[PlanStatus]
    PLAN_STATUS_DONE: _ClassVar[PlanStatus]
    PLAN_STATUS_FAILED: _ClassVar[PlanStatus]

class SectionOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SECTION_OUTCOME_UNSPECIFIED: _ClassVar[SectionOutcome]
    SECTION_OUTCOME_SHOWN: _ClassVar[SectionOutcome]
    SECTION_OUTCOME_CUT: _ClassVar[SectionOutcome]
    SECTION_OUTCOME_LEFT_OUT: _ClassVar[SectionOutcome]
    SECTION_OUTCOME_FAILED: _ClassVar[SectionOutcome]
    SECTION_OUTCOME_TIMED_OUT: _ClassVar[SectionOutcome]
    SECTION_OUTCOME_EMPTY: _ClassVar[SectionOutcome]

class FoldReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FOLD_REASON_UNSPECIFIED: _ClassVar[FoldReason]
    FOLD_REASON_PRICE: _ClassVar[FoldReason]
    FOLD_REASON_BUDGET: _ClassVar[FoldReason]
    FOLD_REASON_CALLER: _ClassVar[FoldReason]

class PressureLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRESSURE_LEVEL_UNSPECIFIED: _ClassVar[PressureLevel]
    PRESSURE_LEVEL_SNIP: _ClassVar[PressureLevel]
    PRESSURE_LEVEL_MICRO: _ClassVar[PressureLevel]
    PRESSURE_LEVEL_COLLAPSE: _ClassVar[PressureLevel]
    PRESSURE_LEVEL_AUTO: _ClassVar[PressureLevel]
    PRESSURE_LEVEL_REACTIVE: _ClassVar[PressureLevel]
    PRESSURE_LEVEL_RENEWAL: _ClassVar[PressureLevel]
PROMPT_LAYOUT_UNSPECIFIED: PromptLayout
PROMPT_LAYOUT_THREE_PHASE: PromptLayout
PROMPT_LAYOUT_TASK_CONTEXT: PromptLayout
PROMPT_LAYOUT_REACT: PromptLayout
PROMPT_LAYOUT_PARTITIONED: PromptLayout
TOOL_RENDERING_UNSPECIFIED: ToolRendering
TOOL_RENDERING_PARAMETER: ToolRendering
TOOL_RENDERING_TEXT: ToolRendering
RUNTIME_POSITION_UNSPECIFIED: RuntimePosition
RUNTIME_POSITION_APPEND: RuntimePosition
RUNTIME_POSITION_PREPEND: RuntimePosition
INJECTION_PHASE_UNSPECIFIED: InjectionPhase
INJECTION_PHASE_SYSTEM: InjectionPhase
INJECTION_PHASE_USER_CONTEXT: InjectionPhase
INJECTION_PHASE_RUNTIME: InjectionPhase
CACHE_STRATEGY_UNSPECIFIED: CacheStrategy
CACHE_STRATEGY_STABLE: CacheStrategy
CACHE_STRATEGY_SESSION: CacheStrategy
CACHE_STRATEGY_DYNAMIC: CacheStrategy
PLAN_STATUS_UNSPECIFIED: PlanStatus
PLAN_STATUS_PENDING: PlanStatus
PLAN_STATUS_IN_PROGRESS: PlanStatus
PLAN_STATUS_DONE: PlanStatus
PLAN_STATUS_FAILED: PlanStatus
SECTION_OUTCOME_UNSPECIFIED: SectionOutcome
SECTION_OUTCOME_SHOWN: SectionOutcome
SECTION_OUTCOME_CUT: SectionOutcome
SECTION_OUTCOME_LEFT_OUT: SectionOutcome
SECTION_OUTCOME_FAILED: SectionOutcome
SECTION_OUTCOME_TIMED_OUT: SectionOutcome
SECTION_OUTCOME_EMPTY: SectionOutcome
FOLD_REASON_UNSPECIFIED: FoldReason
FOLD_REASON_PRICE: FoldReason
FOLD_REASON_BUDGET: FoldReason
FOLD_REASON_CALLER: FoldReason
PRESSURE_LEVEL_UNSPECIFIED: PressureLevel
PRESSURE_LEVEL_SNIP: PressureLevel
PRESSURE_LEVEL_MICRO: PressureLevel
PRESSURE_LEVEL_COLLAPSE: PressureLevel
PRESSURE_LEVEL_AUTO: PressureLevel
PRESSURE_LEVEL_REACTIVE: PressureLevel
PRESSURE_LEVEL_RENEWAL: PressureLevel

class PromptSettings(_message.Message):
    __slots__ = ("layout", "system", "tool_rendering", "tools", "runtime_position", "sources", "few_shot", "skills", "agents_md", "user_id", "limits", "variation", "injections", "max_output_tokens")
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    TOOL_RENDERING_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_POSITION_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    FEW_SHOT_FIELD_NUMBER: _ClassVar[int]
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    AGENTS_MD_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    VARIATION_FIELD_NUMBER: _ClassVar[int]
    INJECTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    layout: PromptLayout
    system: str
    tool_rendering: ToolRendering
    tools: ToolSelection
    runtime_position: RuntimePosition
    sources: SourceSettings
    few_shot: _containers.RepeatedCompositeFieldContainer[Example]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    agents_md: str
    user_id: str
    limits: InjectionLimits
    variation: float
    injections: _containers.RepeatedCompositeFieldContainer[Injection]
    max_output_tokens: int
    def __init__(self, layout: _Optional[_Union[PromptLayout, str]] = ..., system: _Optional[str] = ..., tool_rendering: _Optional[_Union[ToolRendering, str]] = ..., tools: _Optional[_Union[ToolSelection, _Mapping]] = ..., runtime_position: _Optional[_Union[RuntimePosition, str]] = ..., sources: _Optional[_Union[SourceSettings, _Mapping]] = ..., few_shot: _Optional[_Iterable[_Union[Example, _Mapping]]] = ..., skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., agents_md: _Optional[str] = ..., user_id: _Optional[str] = ..., limits: _Optional[_Union[InjectionLimits, _Mapping]] = ..., variation: _Optional[float] = ..., injections: _Optional[_Iterable[_Union[Injection, _Mapping]]] = ..., max_output_tokens: _Optional[int] = ...) -> None: ...

class ToolSelection(_message.Message):
    __slots__ = ("none", "levels", "names")
    NONE_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    none: bool
    levels: _containers.RepeatedScalarFieldContainer[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, none: bool = ..., levels: _Optional[_Iterable[int]] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class SourceSettings(_message.Message):
    __slots__ = ("exclude", "memory_layers", "user_memories", "knowledge", "knowledge_timeout", "event_actions", "instructors")
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LAYERS_FIELD_NUMBER: _ClassVar[int]
    USER_MEMORIES_FIELD_NUMBER: _ClassVar[int]
    KNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    KNOWLEDGE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    EVENT_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTORS_FIELD_NUMBER: _ClassVar[int]
    exclude: _containers.RepeatedScalarFieldContainer[str]
    memory_layers: _containers.RepeatedScalarFieldContainer[str]
    user_memories: int
    knowledge: int
    knowledge_timeout: _duration_pb2.Duration
    event_actions: _containers.RepeatedScalarFieldContainer[str]
    instructors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, exclude: _Optional[_Iterable[str]] = ..., memory_layers: _Optional[_Iterable[str]] = ..., user_memories: _Optional[int] = ..., knowledge: _Optional[int] = ..., knowledge_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., event_actions: _Optional[_Iterable[str]] = ..., instructors: _Optional[_Iterable[str]] = ...) -> None: ...

class Example(_message.Message):
    __slots__ = ("input", "output")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    input: str
    output: str
    def __init__(self, input: _Optional[str] = ..., output: _Optional[str] = ...) -> None: ...

class Skill(_message.Message):
    __slots__ = ("name", "description", "text", "tools", "active")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    text: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    active: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., text: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., active: bool = ...) -> None: ...

class InjectionLimits(_message.Message):
    __slots__ = ("total", "sections")
    class SectionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    total: int
    sections: _containers.ScalarMap[str, int]
    def __init__(self, total: _Optional[int] = ..., sections: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Injection(_message.Message):
    __slots__ = ("name", "phase", "cache", "priority", "max_tokens", "xml_tag", "content")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    XML_TAG_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    phase: InjectionPhase
    cache: CacheStrategy
    priority: int
    max_tokens: int
    xml_tag: str
    content: str
    def __init__(self, name: _Optional[str] = ..., phase: _Optional[_Union[InjectionPhase, str]] = ..., cache: _Optional[_Union[CacheStrategy, str]] = ..., priority: _Optional[int] = ..., max_tokens: _Optional[int] = ..., xml_tag: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class PlanItem(_message.Message):
    __slots__ = ("text", "status")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    text: str
    status: PlanStatus
    def __init__(self, text: _Optional[str] = ..., status: _Optional[_Union[PlanStatus, str]] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[PlanItem]
    def __init__(self, items: _Optional[_Iterable[_Union[PlanItem, _Mapping]]] = ...) -> None: ...

class Working(_message.Message):
    __slots__ = ("goal", "plan", "active_skills", "dashboard", "scratchpad", "pending_events", "decisions", "questions", "evidence", "citations", "tokens")
    GOAL_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_SKILLS_FIELD_NUMBER: _ClassVar[int]
    DASHBOARD_FIELD_NUMBER: _ClassVar[int]
    SCRATCHPAD_FIELD_NUMBER: _ClassVar[int]
    PENDING_EVENTS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    CITATIONS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    goal: str
    plan: Plan
    active_skills: _containers.RepeatedScalarFieldContainer[str]
    dashboard: _working_pb2.Dashboard
    scratchpad: str
    pending_events: _containers.RepeatedCompositeFieldContainer[_working_pb2.PendingEvent]
    decisions: _containers.RepeatedCompositeFieldContainer[_working_pb2.Acknowledgement]
    questions: _containers.RepeatedScalarFieldContainer[str]
    evidence: _containers.RepeatedCompositeFieldContainer[_working_pb2.Evidence]
    citations: _containers.RepeatedScalarFieldContainer[str]
    tokens: int
    def __init__(self, goal: _Optional[str] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., active_skills: _Optional[_Iterable[str]] = ..., dashboard: _Optional[_Union[_working_pb2.Dashboard, _Mapping]] = ..., scratchpad: _Optional[str] = ..., pending_events: _Optional[_Iterable[_Union[_working_pb2.PendingEvent, _Mapping]]] = ..., decisions: _Optional[_Iterable[_Union[_working_pb2.Acknowledgement, _Mapping]]] = ..., questions: _Optional[_Iterable[str]] = ..., evidence: _Optional[_Iterable[_Union[_working_pb2.Evidence, _Mapping]]] = ..., citations: _Optional[_Iterable[str]] = ..., tokens: _Optional[int] = ...) -> None: ...

class UpdateWorkingRequest(_message.Message):
    __slots__ = ("agent_id", "session_id", "goal", "plan", "activate", "deactivate", "request_id", "goal_progress", "scratchpad", "signals", "acknowledge", "add_questions", "remove_questions", "add_evidence")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_FIELD_NUMBER: _ClassVar[int]
    DEACTIVATE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GOAL_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    SCRATCHPAD_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    ADD_QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    ADD_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    session_id: str
    goal: str
    plan: Plan
    activate: _containers.RepeatedScalarFieldContainer[str]
    deactivate: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    goal_progress: str
    scratchpad: str
    signals: _containers.RepeatedCompositeFieldContainer[_working_pb2.Signal]
    acknowledge: _containers.RepeatedCompositeFieldContainer[_working_pb2.Acknowledgement]
    add_questions: _containers.RepeatedScalarFieldContainer[str]
    remove_questions: _containers.RepeatedScalarFieldContainer[str]
    add_evidence: _containers.RepeatedCompositeFieldContainer[_working_pb2.Evidence]
    def __init__(self, agent_id: _Optional[str] = ..., session_id: _Optional[str] = ..., goal: _Optional[str] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., activate: _Optional[_Iterable[str]] = ..., deactivate: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ..., goal_progress: _Optional[str] = ..., scratchpad: _Optional[str] = ..., signals: _Optional[_Iterable[_Union[_working_pb2.Signal, _Mapping]]] = ..., acknowledge: _Optional[_Iterable[_Union[_working_pb2.Acknowledgement, _Mapping]]] = ..., add_questions: _Optional[_Iterable[str]] = ..., remove_questions: _Optional[_Iterable[str]] = ..., add_evidence: _Optional[_Iterable[_Union[_working_pb2.Evidence, _Mapping]]] = ...) -> None: ...

class SectionInfo(_message.Message):
    __slots__ = ("name", "tokens", "before_tokens", "max_tokens", "outcome", "reason", "refs", "left_out", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REFS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    tokens: int
    before_tokens: int
    max_tokens: int
    outcome: SectionOutcome
    reason: str
    refs: _containers.RepeatedScalarFieldContainer[str]
    left_out: _containers.RepeatedScalarFieldContainer[str]
    source: str
    def __init__(self, name: _Optional[str] = ..., tokens: _Optional[int] = ..., before_tokens: _Optional[int] = ..., max_tokens: _Optional[int] = ..., outcome: _Optional[_Union[SectionOutcome, str]] = ..., reason: _Optional[str] = ..., refs: _Optional[_Iterable[str]] = ..., left_out: _Optional[_Iterable[str]] = ..., source: _Optional[str] = ...) -> None: ...

class CacheMark(_message.Message):
    __slots__ = ("what", "message_index", "block_index", "tokens")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_INDEX_FIELD_NUMBER: _ClassVar[int]
    BLOCK_INDEX_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    what: str
    message_index: int
    block_index: int
    tokens: int
    def __init__(self, what: _Optional[str] = ..., message_index: _Optional[int] = ..., block_index: _Optional[int] = ..., tokens: _Optional[int] = ...) -> None: ...

class PromptDifference(_message.Message):
    __slots__ = ("section", "byte", "message_index")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    BYTE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_INDEX_FIELD_NUMBER: _ClassVar[int]
    section: str
    byte: int
    message_index: int
    def __init__(self, section: _Optional[str] = ..., byte: _Optional[int] = ..., message_index: _Optional[int] = ...) -> None: ...

class FoldBatch(_message.Message):
    __slots__ = ("number", "reason", "refs", "before_tokens", "after_tokens", "level")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REFS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AFTER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    number: int
    reason: FoldReason
    refs: _containers.RepeatedScalarFieldContainer[str]
    before_tokens: int
    after_tokens: int
    level: PressureLevel
    def __init__(self, number: _Optional[int] = ..., reason: _Optional[_Union[FoldReason, str]] = ..., refs: _Optional[_Iterable[str]] = ..., before_tokens: _Optional[int] = ..., after_tokens: _Optional[int] = ..., level: _Optional[_Union[PressureLevel, str]] = ...) -> None: ...

class ToolDescriptor(_message.Message):
    __slots__ = ("name", "description", "parameters_schema_json", "level", "requires_approval", "category", "mutates", "agent_id", "cli_equivalents", "tokens")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REQUIRES_APPROVAL_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    MUTATES_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLI_EQUIVALENTS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters_schema_json: str
    level: int
    requires_approval: bool
    category: str
    mutates: bool
    agent_id: str
    cli_equivalents: _containers.RepeatedScalarFieldContainer[str]
    tokens: int
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters_schema_json: _Optional[str] = ..., level: _Optional[int] = ..., requires_approval: bool = ..., category: _Optional[str] = ..., mutates: bool = ..., agent_id: _Optional[str] = ..., cli_equivalents: _Optional[_Iterable[str]] = ..., tokens: _Optional[int] = ...) -> None: ...
