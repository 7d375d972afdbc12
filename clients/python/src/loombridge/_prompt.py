"""Messages of a conversation, and the prompts assembled from them."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from loombridge import _brief, _definitions, _receipts, _sections, _spelling, _values
from loombridge.v1 import context_pb2 as pb

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
"""Who speaks: instructions (by either of two names), the one who asks, the model, or a
tool's result."""

PromptFormat: TypeAlias = Literal["neutral", "openai", "openai_responses", "anthropic", "gemini"]
"""The shape of an assembled prompt: the messages and tools of this package, or the request
of a provider's API; `openai` is Chat Completions."""

ROLE_ENUM = pb.Role.DESCRIPTOR

_MESSAGE_FIELDS = (
    "role",
    "content",
    "blocks",
    "name",
    "tool_calls",
    "tool_call_id",
    "pinned",
    "observation",
)


_CALL_INPUT = {"function": "arguments", "custom": "input"}
"""What a call gives its tool, by the type of the call."""


@dataclass(frozen=True, slots=True, repr=False)
class ToolCall(_brief.Brief):
    """A model's wish to call a tool."""

    id: str
    """The model's id of the call; at most 4 KiB. Empty where its host gave none."""
    name: str
    """The tool's name as the model wrote it."""
    arguments: str = ""
    """The arguments as the model wrote them; need not be JSON."""
    extra: Mapping[str, Any] | None = None
    """The provider's further fields of the call, kept as they came. Those of a free-form
    tool of OpenAI's hold `type`: `custom`; its `arguments` are any text."""


@dataclass(frozen=True, slots=True, repr=False)
class Message(_brief.Brief):
    """One message of a conversation."""

    role: Role
    """Who speaks."""
    content: str = ""
    """Plain text; at most 1 MiB together with all other text, and 4 MiB with the base64 of
    images, sounds and files."""
    blocks: Any = None
    """A JSON array of the provider's own content blocks, kept as they came;
    instead of `content`."""
    name: str = ""
    """The speaker's name; at most 256 bytes."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls an assistant asks for; at most 128."""
    tool_call_id: str = ""
    """Which call a tool message answers. Where the host gave the call no id it is empty, and
    the message answers the first call that waits and has its `name`."""
    pinned: bool = False
    """It stays in every prompt as it is. System and user messages always do."""
    observation: bool = False
    """A user message that holds what an action of the message before gave, as agents
    without tool calls write it: it is folded like the result of a tool."""
    extra: Mapping[str, Any] | None = None
    """The provider's further fields, such as `reasoning_content`, kept as they came:
    they stand in the message again in format `openai`."""

    @classmethod
    def from_openai(cls, message: Mapping[str, Any]) -> "Message":
        """Return a message that came in OpenAI's chat form.

        Content that is a list of blocks is kept as it came, and so are fields that are
        not known here, as `extra`; None counts as absent. The keys
        `pinned`, `observation` and `blocks`, which stands for such a list, are taken as
        well.

        Raises:
            TypeError: message is no mapping, or a field has not the type it must have.
            ValueError: it has no role, or an unknown one, or says nothing at
                all, or has both content and blocks, or has a field whose name is nearly
                that of another, such as `toolcalls`.
        """
        m = _values.mapping("message", message)
        extra = _extra("message", m, (*_MESSAGE_FIELDS, "tool_name"))
        role = cast("Role", m.get("role"))
        _role_number(role)
        if not m.keys() - {"role", "name", "id", "pinned"} or (
            role in ("user", "system", "developer")
            and m.get("content") is None
            and m.get("blocks") is None
        ):
            raise ValueError(
                f"message has no content: give {{'role': {role!r}, 'content': '...'}}; "
                f"it has {', '.join(map(repr, m))}"
            )
        content = m.get("content") or ""
        if m.get("blocks") is not None:
            if content:
                raise ValueError("message has content and blocks: give one of them")
            content = m["blocks"]
        calls: Sequence[Mapping[str, Any]] = m.get("tool_calls") or ()
        return cls(
            role=role,
            content=content if isinstance(content, str) else "",
            blocks=None if isinstance(content, str) else content,
            name=m.get("name") or m.get("tool_name") or "",
            tool_calls=tuple(_openai_call(call) for call in calls),
            tool_call_id=_values.by_model("tool_call_id", m.get("tool_call_id")),
            pinned=bool(m.get("pinned")),
            observation=bool(m.get("observation")),
            extra=extra,
        )

    @classmethod
    def from_anthropic(cls, message: object) -> "Message":
        """Return a message of Anthropic's: what `messages.create` gave, or a mapping.

        Its blocks are kept as they came, calls and signed thoughts with them.
        """
        m = _values.mapping("message", _plain(message))
        role = cast("Role", m.get("role"))
        _role_number(role)
        content = m.get("content") or ""
        if isinstance(content, str):
            return cls(role=role, content=content)
        return cls(role=role, blocks=content)

    @classmethod
    def from_openai_responses(cls, response: object) -> "Message":
        """Return what `responses.create` gave, or a list of its output items.

        The items are kept as they came, reasoning and calls with them.
        """
        return cls(role="assistant", blocks=_plain(getattr(response, "output", response)))

    @classmethod
    def from_gemini(cls, content: object) -> "Message":
        """Return a content of Gemini's: what `generate_content` gave, or a mapping.

        Its parts are kept as they came, calls and signatures with them.
        """
        candidates: Any = getattr(content, "candidates", None)
        plain = _values.mapping("content", _plain(candidates[0].content if candidates else content))
        role: Role = "assistant" if plain.get("role") == "model" else "user"
        return cls(role=role, blocks=plain.get("parts") or [])

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that the message asks for, also those in a provider's blocks.

        Gemini's need no id: those without one are called `{name}-{n}`, the n-th call of
        the tool in the message, and the server pairs results by that.
        """
        if self.tool_calls or not isinstance(self.blocks, list):
            return self.tool_calls
        named: dict[str, int] = {}
        found = [_call_in(block, named) for block in cast("list[object]", self.blocks)]
        return tuple(call for call in found if call is not None)


@dataclass(frozen=True, slots=True, repr=False)
class Prompt(_brief.Brief):
    """An assembled prompt: system, tools, history, goal."""

    tokens: int
    """Tokens of the whole prompt, tools included."""
    counter: str
    """What counted them: a vocabulary such as `o200k_base`, or the rule `anthropic` or
    `estimate`."""
    certainty: _receipts.TokenCertainty
    """How sure the count is."""
    parts: Mapping[str, int]
    """Tokens by section, such as `system`, `tools`, `history`, `goal`."""
    prefix_sha256: str
    """Hash of everything before the goal, in hex: equal for equal prefixes."""
    receipt: _receipts.Receipt
    """What was folded to make it fit, and what it should cost."""
    messages: tuple[Message, ...] = ()
    """The messages, in format `neutral`."""
    tools: tuple[_definitions.ToolDefinition, ...] = ()
    """The tools, in format `neutral`."""
    openai_json: str = ""
    """The exact text behind `openai()`, in format `openai`."""
    openai_responses_json: str = ""
    """The exact text behind `openai_responses()`, in format `openai_responses`."""
    anthropic_json: str = ""
    """The exact text behind `anthropic()`, in format `anthropic`."""
    gemini_json: str = ""
    """The exact text behind `gemini()`, in format `gemini`."""
    cache_marks: tuple[_sections.CacheMark, ...] = ()
    """Where the provider's cache should keep the prompt: at most 4, in order."""

    @property
    def exact(self) -> bool:
        """The tokens were counted with the model's own vocabulary."""
        return self.certainty == "exact"

    def openai(self) -> dict[str, Any]:
        """Return `messages` and `tools`, ready for a chat completions request.

        Each call makes a new dict, which the caller may change.

        Raises:
            ValueError: the prompt was not assembled with format="openai".
        """
        return _request("openai", self.openai_json)

    def openai_responses(self) -> dict[str, Any]:
        """Return `instructions`, `input` and `tools` for OpenAI's `responses.create`.

        Each call makes a new dict, which the caller may change.

        Raises:
            ValueError: the prompt was not assembled with format="openai_responses".
        """
        return _request("openai_responses", self.openai_responses_json)

    def anthropic(self) -> dict[str, Any]:
        """Return `system`, `messages` and `tools` for Anthropic's `messages.create`.

        The blocks up to which the provider should keep the prompt have `cache_control`.
        Each call makes a new dict, which the caller may change.

        Raises:
            ValueError: the prompt was not assembled with format="anthropic".
        """
        return _request("anthropic", self.anthropic_json)

    def gemini(self) -> dict[str, Any]:
        """Return `contents` and `config` for `models.generate_content` of google-genai.

        The config holds `system_instruction` and `tools` where there are any. Bytes are
        bytes, as the library wants them. Each call makes a new dict, which the caller
        may change.

        Raises:
            ValueError: the prompt was not assembled with format="gemini".
        """
        body = cast("dict[str, Any]", _with_bytes(_request("gemini", self.gemini_json)))
        config: dict[str, Any] = {}
        if "systemInstruction" in body:
            config["system_instruction"] = body["systemInstruction"]
        if "tools" in body:
            config["tools"] = body["tools"]
        return {"contents": body["contents"], **({"config": config} if config else {})}


def message_to_wire(name: str, value: object) -> pb.Message:
    """Return a message as the wire has it; a mapping is taken in OpenAI's form."""
    if isinstance(value, Mapping):
        value = Message.from_openai(cast("Mapping[str, Any]", value))
    if not isinstance(value, Message):
        raise TypeError(f"{name} must be a Message or a mapping, not {type(value).__name__}")
    result = pb.Message(
        content=_values.text(f"{name}.content", value.content, mend=True),
        name=_values.text(f"{name}.name", value.name, mend=True),
        tool_call_id=_values.by_model(f"{name}.tool_call_id", value.tool_call_id),
        tool_calls=[
            pb.ModelToolCall(
                id=_values.by_model(f"{name}.tool_calls[{i}].id", call.id),
                name=_values.by_model(f"{name}.tool_calls[{i}].name", call.name),
                arguments_json=_values.text(
                    f"{name}.tool_calls[{i}].arguments", call.arguments, mend=True
                ),
                extra_json=_extra_json(f"{name}.tool_calls[{i}].extra", call.extra),
            )
            for i, call in enumerate(value.tool_calls)
        ],
        pinned=value.pinned,
        observation=value.observation,
        extra_json=_extra_json(f"{name}.extra", value.extra),
    )
    # pyright knows enums of the wire by their names only; the number is the same.
    result.role = cast("pb.Role", _role_number(value.role))
    if value.blocks is not None:
        result.blocks_json = _values.json_text(f"{name}.blocks", value.blocks, mend=True)
    return result


def message(m: pb.Message) -> Message:
    """Return a message as users see it."""
    return Message(
        role=cast("Role", _values.enum_name(ROLE_ENUM, "ROLE_", m.role)),
        content=m.content,
        blocks=_values.from_json(m.blocks_json),
        name=m.name,
        tool_calls=tuple(
            ToolCall(
                id=call.id,
                name=call.name,
                arguments=call.arguments_json,
                extra=_values.from_json(call.extra_json),
            )
            for call in m.tool_calls
        ),
        tool_call_id=m.tool_call_id,
        pinned=m.pinned,
        observation=m.observation,
        extra=_values.from_json(m.extra_json),
    )


def prompt(m: pb.AssembleResponse) -> Prompt:
    """Return an assembled prompt as users see it."""
    count = _receipts.token_count(m.tokens)

    def text_in(form: int) -> str:
        return m.prompt_json if m.format == form else ""

    return Prompt(
        tokens=count.tokens,
        counter=count.counter,
        certainty=count.certainty,
        parts=dict(m.parts),
        prefix_sha256=m.prefix_sha256,
        receipt=_receipts.receipt(m.receipt),
        messages=tuple(message(each) for each in m.messages),
        tools=_definitions.shown(m.tools_json),
        openai_json=text_in(pb.PROMPT_FORMAT_OPENAI_CHAT),
        openai_responses_json=text_in(pb.PROMPT_FORMAT_OPENAI_RESPONSES),
        anthropic_json=text_in(pb.PROMPT_FORMAT_ANTHROPIC),
        gemini_json=text_in(pb.PROMPT_FORMAT_GEMINI),
        cache_marks=tuple(map(_sections.cache_mark, m.cache_marks)),
    )


def _request(format: PromptFormat, text: str) -> dict[str, Any]:  # noqa: A002  the API's own word
    if not text:
        raise ValueError(f'assemble with format="{format}" to get this form')
    return cast("dict[str, Any]", json.loads(text))


def _with_bytes(value: object, key: str = "") -> object:
    """Return a value of Gemini's JSON with bytes where they stand as base64."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if key in ("args", "response", "parameters"):
            return fields
        return {name: _with_bytes(inner, name) for name, inner in fields.items()}
    if isinstance(value, list):
        return [_with_bytes(inner) for inner in cast("list[object]", value)]
    if isinstance(value, str) and key in ("data", "thoughtSignature", "thought_signature"):
        # Libraries write either alphabet of base64.
        return base64.b64decode(value.replace("-", "+").replace("_", "/"))
    return value


def _plain(value: object) -> Any:
    """Return what the library of a provider gave as JSON has it, without what is None."""
    dump: Any = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {name: _plain(inner) for name, inner in fields.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(inner) for inner in cast("Sequence[object]", value)]
    return value


def _call_in(block: object, named: dict[str, int]) -> ToolCall | None:
    """Return the call that a block of any provider's is; named counts those without id."""
    if not isinstance(block, dict):
        return None
    b = cast("dict[str, Any]", block)
    match b.get("type"):
        case "tool_use":
            return ToolCall(b.get("id") or "", b["name"], json.dumps(b.get("input") or {}))
        case "function_call":
            return ToolCall(b.get("call_id") or "", b["name"], b.get("arguments") or "")
        case "custom_tool_call":
            return ToolCall(b.get("call_id") or "", b["name"], b.get("input") or "")
        case None:
            call: Any = b.get("functionCall") or b.get("function_call")
            if call is None:
                return None
            name: str = call["name"]
            named[name] = named.get(name, 0) + 1
            identity = call.get("id") or f"{name}-{named[name]}"
            return ToolCall(identity, name, json.dumps(call.get("args") or {}))
        case _:
            return None


def _openai_call(call: Mapping[str, Any]) -> ToolCall:
    kind = call.get("type") or "function"
    if kind not in _CALL_INPUT:
        raise ValueError(
            f"tool_calls hold a call of type {kind!r}, neither 'function' nor 'custom'"
        )
    function: Mapping[str, Any] = call.get(kind) or {}
    given, own = _CALL_INPUT[kind], ("id", "type", kind)
    if not function and "name" in call:  # as ToolCall has it
        function = {name: call[name] for name in ("name", given) if name in call}
        own = (*own, "name", given)
    if unknown := sorted(function.keys() - {"name", given}):
        raise ValueError(f"the {kind} of a tool call has no field {unknown[0]!r}")
    extra = _extra("a tool call", call, own)
    arguments: object = function.get(given) or ""
    if isinstance(arguments, Mapping):  # Ollama's
        arguments = _values.json_object("arguments", cast("Mapping[str, Any]", arguments))
    return ToolCall(
        id=_values.by_model("id", call.get("id")),
        name=_values.by_model("name", function.get("name")),
        arguments=cast("str", arguments),
        extra=extra if kind == "function" else {**(extra or {}), "type": kind},
    )


def _extra(what: str, fields: Mapping[str, Any], known: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the fields without an attribute, as they came.

    Raises:
        ValueError: one is nearly called as one that has.
    """
    given = fields.get("extra")
    extra = dict(_values.mapping("extra", given)) if given is not None else {}
    for name, value in fields.items():
        if name in known or name == "extra" or value is None:
            continue
        near = _spelling.nearest(name, known)
        if near is not None:
            raise ValueError(f"{what} has no field {name!r}: did you mean {near!r}?")
        extra[name] = value
    return extra or None


def _extra_json(name: str, extra: Mapping[str, Any] | None) -> str:
    if extra is None:
        return ""
    return _values.json_text(name, _values.mapping(name, extra), mend=True)


def _role_number(role: object) -> int:
    return _values.enum_number("role", ROLE_ENUM, "ROLE_", role)
