"""What prompts are made of: settings of a session, and of one call over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from loombridge import _brief, _values
from loombridge.v1 import prompt_pb2 as pb

PromptLayout: TypeAlias = Literal["three_phase", "task_context", "react", "partitioned"]
"""The order in which the sections of a prompt stand."""

ToolRendering: TypeAlias = Literal["parameter", "text"]
"""How a prompt offers its tools: as the provider's parameter, or in the system message."""

RuntimePosition: TypeAlias = Literal["append", "prepend"]
"""Where plan, past errors and the like stand: behind the newest user message or before."""

InjectionPhase: TypeAlias = Literal["system", "user_context", "runtime"]
"""The part of a prompt that a section stands in: the system message, a user message before
the history, or the end."""

CacheStrategy: TypeAlias = Literal["stable", "session", "dynamic"]
"""How long the text of a section stays as it is: for the session, for minutes, for one
prompt."""

PHASE_ENUM = pb.InjectionPhase.DESCRIPTOR
CACHE_ENUM = pb.CacheStrategy.DESCRIPTOR
LAYOUT_ENUM = pb.PromptLayout.DESCRIPTOR

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelection:
    """Which of the served tools stand in prompts.

    One stands there if its level is among the levels and the server has it itself, or if
    a name or pattern means it.
    """

    none: bool = False
    """Leave out all served tools."""
    levels: Sequence[int] = ()
    """Of 1, 2 and 3; at first 1."""
    names: Sequence[str] = ()
    """Names of tools, or patterns with `*` for any number of characters: at most 128. Tools
    of attached agents stand in prompts only so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What a prompt takes from memory, events and the workspace."""

    exclude: Sequence[str] = ()
    """Sections that prompts leave out: `skills`, `few_shot`, `notes`, `tasks`, `events`,
    `messages`, `user_memory`, `knowledge`, `playbook`, `plan`, `errors`, `rehydrated`,
    `goal`."""
    memory_layers: Sequence[str] = ()
    """The tiers whose tasks stand in prompts: `L1`, or `L1` and `L2`; at first `L1`."""
    user_memories: int | None = None
    """How many memories of agent and user at most, up to 100; at first as many as fit."""
    knowledge: int | None = None
    """How many pieces of knowledge at most, up to 100; at first 3."""
    knowledge_timeout: _values.Seconds | None = None
    """How long a prompt waits for knowledge before it goes without; at first 100 ms."""
    event_actions: Sequence[str] = ()
    """Actions of events that may stand in prompts: at most 32; at first `node.thinking` and
    `node.tool_call`. The best 20 stand there, none where there are fewer than two."""
    instructors: Sequence[str] = ()
    """Agents whose direct messages have the role that they ask for, and whose plans instruct:
    at most 32; initially none. Messages of others have the sender's name in front."""


@dataclass(frozen=True, slots=True, repr=False)
class Example(_brief.Brief):
    """What is asked, and what is to be answered; at most 16 KiB together."""

    input: str
    """What the user says."""
    output: str
    """What the model should answer."""


@dataclass(frozen=True, slots=True, repr=False)
class Skill(_brief.Brief):
    """A set of instructions that can be activated for an agent.

    An active one stands in prompts in full, the others by name and description.
    """

    name: str
    """What it is called; 1 to 128 bytes."""
    description: str = ""
    """What it is for, in a line of at most 1 KiB."""
    text: str = ""
    """The text shown to the model while it is active, at most 64 KiB."""
    tools: Sequence[str] = ()
    """Names of tools that stand in prompts while it is active: at most 32."""
    active: bool = False
    """It is active from the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionLimits:
    """Caps, in tokens."""

    total: int | None = None
    """For all that is no message of the history; at first 12,000."""
    sections: Mapping[str, int] = field(default_factory=dict[str, int])
    """By the name of the section, at most 64."""


@dataclass(frozen=True, slots=True, repr=False)
class Injection(_brief.Brief):
    """A section of the caller's own."""

    name: str
    """Tells it from other sections: 1 to 64 bytes of letters, digits, `_`, `-` and `.`."""
    content: str
    """What it says, at most 256 KiB. A blank one is left out."""
    phase: InjectionPhase = "runtime"
    """Where it stands."""
    cache: CacheStrategy | None = None
    """How long it stays as it is; None: `dynamic`."""
    priority: int | None = None
    """From 0 to 100: the higher the earlier within its phase; None: 50."""
    max_tokens: int | None = None
    """Its cap; None: 12,000, which is also the most."""
    xml_tag: str = ""
    """Is put around it, such as `facts` for `<facts>`; empty: nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PromptSettings(_brief.Brief):
    """What prompts are made of. What is None or empty stays as it is.

    `ctx.context.configure(prompt=…)` keeps them for the session, `ctx.context.assemble(
    settings=…)` takes them for one prompt, overriding the session's.
    """

    layout: PromptLayout | None = None
    """The order of the sections; at first `three_phase`, or that of the preset."""
    system: str | None = None
    """The system prompt of calls that give none; at most 1 MiB."""
    tool_rendering: ToolRendering | None = None
    """How tools are offered; at first `parameter`, or what the preset says."""
    tools: ToolSelection | None = None
    """Which served tools stand in prompts; at first the server's own of level 1."""
    runtime_position: RuntimePosition | None = None
    """Where the runtime sections stand; at first `append`."""
    sources: SourceSettings | None = None
    """What a prompt takes from memory, events and the workspace."""
    few_shot: Sequence[Example] = ()
    """Examples: at most 32. Whole ones leave where they take more than their cap."""
    skills: Sequence[Skill] = ()
    """The agent's skills: at most 64, in addition to records of the kind `skill`."""
    agents_md: str | None = None
    """Stands in the place of the AGENTS.md of the workspace; at most 64 KiB."""
    user_id: str | None = None
    """A person whose memories the prompt may hold, in addition to the agent's; initially none."""
    limits: InjectionLimits | None = None
    """The caps of sections."""
    variation: float | None = None
    """How often the form of runtime sections varies, so that a model falls into no pattern:
    from 0, never, to 0.8; at first 0.3. The wording of tools, memory and the goal never does."""
    injections: Sequence[Injection] = ()
    """Further sections of the caller's: at most 32."""
    max_output_tokens: int | None = None
    """How much of the budget is left to the answer; at first none, unless the preset
    leaves some."""


def to_wire(name: str, value: object) -> pb.PromptSettings:
    """Return settings as the wire has them; what is None is left out.

    Raises:
        TypeError: something has not the type it must have.
        ValueError: an unknown name.
    """
    s = _instance(name, value, PromptSettings)
    result = pb.PromptSettings(
        system=_values.optional_text(f"{name}.system", s.system),
        agents_md=_values.optional_text(f"{name}.agents_md", s.agents_md),
        user_id=_values.optional_text(f"{name}.user_id", s.user_id),
        few_shot=[_example(each, at) for at, each in _items(f"{name}.few_shot", s.few_shot)],
        skills=[_skill(each, at) for at, each in _items(f"{name}.skills", s.skills)],
        injections=injections_to_wire(f"{name}.injections", s.injections),
        max_output_tokens=_integer(f"{name}.max_output_tokens", s.max_output_tokens),
    )
    if s.layout is not None:
        result.layout = cast(
            "pb.PromptLayout",
            _values.enum_number(f"{name}.layout", LAYOUT_ENUM, "PROMPT_LAYOUT_", s.layout),
        )
    if s.tool_rendering is not None:
        result.tool_rendering = cast(
            "pb.ToolRendering",
            _values.enum_number(
                f"{name}.tool_rendering",
                pb.ToolRendering.DESCRIPTOR,
                "TOOL_RENDERING_",
                s.tool_rendering,
            ),
        )
    if s.runtime_position is not None:
        result.runtime_position = cast(
            "pb.RuntimePosition",
            _values.enum_number(
                f"{name}.runtime_position",
                pb.RuntimePosition.DESCRIPTOR,
                "RUNTIME_POSITION_",
                s.runtime_position,
            ),
        )
    _put_parts(name, s, result)
    return result


def _put_parts(name: str, s: PromptSettings, result: pb.PromptSettings) -> None:
    if s.tools is not None:
        result.tools.CopyFrom(_selection(f"{name}.tools", s.tools))
    if s.sources is not None:
        result.sources.CopyFrom(_sources(f"{name}.sources", s.sources))
    if s.limits is not None:
        result.limits.CopyFrom(_limits(f"{name}.limits", s.limits))
    if s.variation is not None:
        result.variation = _values.number(f"{name}.variation", s.variation)


def injections_to_wire(name: str, values: object) -> list[pb.Injection]:
    """Return sections of the caller's as the wire has them."""
    return [_injection(each, at) for at, each in _items(name, values)]


def _injection(value: object, name: str) -> pb.Injection:
    s = _instance(name, value, Injection)
    result = pb.Injection(
        name=_values.text(f"{name}.name", s.name),
        content=_values.text(f"{name}.content", s.content),
        priority=None if s.priority is None else _values.integer(f"{name}.priority", s.priority),
        max_tokens=_integer(f"{name}.max_tokens", s.max_tokens),
        xml_tag=_values.text(f"{name}.xml_tag", s.xml_tag),
    )
    result.phase = cast(
        "pb.InjectionPhase",
        _values.enum_number(f"{name}.phase", PHASE_ENUM, "INJECTION_PHASE_", s.phase),
    )
    if s.cache is not None:
        result.cache = cast(
            "pb.CacheStrategy",
            _values.enum_number(f"{name}.cache", CACHE_ENUM, "CACHE_STRATEGY_", s.cache),
        )
    return result


def _example(value: object, name: str) -> pb.Example:
    s = _instance(name, value, Example)
    return pb.Example(
        input=_values.text(f"{name}.input", s.input),
        output=_values.text(f"{name}.output", s.output),
    )


def _skill(value: object, name: str) -> pb.Skill:
    s = _instance(name, value, Skill)
    return pb.Skill(
        name=_values.text(f"{name}.name", s.name),
        description=_values.text(f"{name}.description", s.description),
        text=_values.text(f"{name}.text", s.text),
        tools=_values.texts(f"{name}.tools", s.tools),
        active=_flag(f"{name}.active", s.active),
    )


def _selection(name: str, value: object) -> pb.ToolSelection:
    s = _instance(name, value, ToolSelection)
    return pb.ToolSelection(
        none=_flag(f"{name}.none", s.none),
        levels=[_values.integer(at, each) for at, each in _items(f"{name}.levels", s.levels)],
        names=_values.texts(f"{name}.names", s.names),
    )


def _sources(name: str, value: object) -> pb.SourceSettings:
    s = _instance(name, value, SourceSettings)
    return pb.SourceSettings(
        exclude=_values.texts(f"{name}.exclude", s.exclude),
        memory_layers=_values.texts(f"{name}.memory_layers", s.memory_layers),
        user_memories=_integer(f"{name}.user_memories", s.user_memories),
        knowledge=_integer(f"{name}.knowledge", s.knowledge),
        knowledge_timeout=_duration(f"{name}.knowledge_timeout", s.knowledge_timeout),
        event_actions=_values.texts(f"{name}.event_actions", s.event_actions),
        instructors=_values.texts(f"{name}.instructors", s.instructors),
    )


def _limits(name: str, value: object) -> pb.InjectionLimits:
    s = _instance(name, value, InjectionLimits)
    caps = _values.mapping(f"{name}.sections", s.sections)
    return pb.InjectionLimits(
        total=_integer(f"{name}.total", s.total),
        sections={
            _values.text(f"{name}.sections key", key): _values.integer(
                f"{name}.sections[{key!r}]", cap
            )
            for key, cap in caps.items()
        },
    )


def _items(name: str, values: object) -> list[tuple[str, Any]]:
    """Return the items of a list, each with the name to call it by in an error."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name} must be a list, not {type(values).__name__}")
    return [(f"{name}[{i}]", each) for i, each in enumerate(cast("Sequence[Any]", values))]


def _instance(name: str, value: object, kind: type[ItemT]) -> ItemT:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, not {_values.kind(value)}")
    return value


def _flag(name: str, value: object) -> bool:
    return _instance(name, value, bool)


def _integer(name: str, value: object) -> int:
    """Return an integer; None is 0, which the wire takes as not given.

    Raises:
        ValueError: it is 0, which would silently be the default.
    """
    if value is None:
        return 0
    number = _values.integer(name, value)
    if number == 0:
        raise ValueError(f"{name} must not be 0: None leaves it as it is")
    return number


def _duration(name: str, value: object) -> Duration | None:
    return None if value is None else _values.duration(name, value)


def settings(m: pb.PromptSettings) -> PromptSettings:
    """Return settings as users see them; what is not set is None or empty."""
    return PromptSettings(
        layout=layout(m.layout),
        system=m.system or None,
        tool_rendering=cast(
            "ToolRendering | None",
            name_or_none(pb.ToolRendering.DESCRIPTOR, "TOOL_RENDERING_", m.tool_rendering),
        ),
        tools=_seen_selection(m.tools) if _says(m.tools) else None,
        runtime_position=cast(
            "RuntimePosition | None",
            name_or_none(pb.RuntimePosition.DESCRIPTOR, "RUNTIME_POSITION_", m.runtime_position),
        ),
        sources=_seen_sources(m.sources) if _says(m.sources) else None,
        few_shot=tuple(Example(each.input, each.output) for each in m.few_shot),
        skills=tuple(map(_seen_skill, m.skills)),
        agents_md=m.agents_md or None,
        user_id=m.user_id or None,
        limits=InjectionLimits(
            total=m.limits.total or None,
            sections=dict(m.limits.sections),
        )
        if _says(m.limits)
        else None,
        variation=m.variation if m.HasField("variation") else None,
        injections=tuple(map(_seen_injection, m.injections)),
        max_output_tokens=m.max_output_tokens or None,
    )


def _says(m: Message) -> bool:
    """Tell whether anything is set within a message."""
    return bool(m.ListFields())


def layout(value: int) -> PromptLayout | None:
    """Return the name of a layout."""
    return cast("PromptLayout | None", name_or_none(LAYOUT_ENUM, "PROMPT_LAYOUT_", value))


def phase(value: int) -> InjectionPhase | None:
    """Return the name of a phase; None for what stands in none of them."""
    return cast("InjectionPhase | None", name_or_none(PHASE_ENUM, "INJECTION_PHASE_", value))


def cache(value: int) -> CacheStrategy | None:
    """Return the name of a cache strategy."""
    return cast("CacheStrategy | None", name_or_none(CACHE_ENUM, "CACHE_STRATEGY_", value))


def name_or_none(enum: Any, prefix: str, value: int) -> str | None:
    """Return the short lower-case name of an enum value; None if it is unset."""
    return _values.enum_name(enum, prefix, value) if value else None


def _seen_selection(m: pb.ToolSelection) -> ToolSelection:
    return ToolSelection(none=m.none, levels=tuple(m.levels), names=tuple(m.names))


def _seen_sources(m: pb.SourceSettings) -> SourceSettings:
    waits = m.HasField("knowledge_timeout")
    return SourceSettings(
        exclude=tuple(m.exclude),
        memory_layers=tuple(m.memory_layers),
        user_memories=m.user_memories or None,
        knowledge=m.knowledge or None,
        knowledge_timeout=m.knowledge_timeout.ToTimedelta() if waits else None,
        event_actions=tuple(m.event_actions),
        instructors=tuple(m.instructors),
    )


def _seen_skill(m: pb.Skill) -> Skill:
    return Skill(
        name=m.name,
        description=m.description,
        text=m.text,
        tools=tuple(m.tools),
        active=m.active,
    )


def _seen_injection(m: pb.Injection) -> Injection:
    return Injection(
        name=m.name,
        content=m.content,
        phase=phase(m.phase) or "runtime",
        cache=cache(m.cache),
        priority=m.priority if m.HasField("priority") else None,
        max_tokens=m.max_tokens or None,
        xml_tag=m.xml_tag,
    )
