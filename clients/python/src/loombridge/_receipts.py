"""How the history of a session is made, and the account of each prompt."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from loombridge import _brief, _sections, _settings, _values
from loombridge.v1 import context_pb2 as pb
from loombridge.v1 import prompt_pb2

HistoryPolicy: TypeAlias = Literal["ledger", "append_only", "preset"]
"""How a history is compacted: folded when that pays, never, or by a preset's rules."""

Preset: TypeAlias = Literal[
    "design",
    "reduction",
    "task_context",
    "partitioned",
    "three_phase",
    "chat",
    "research",
    "code",
    "debug",
]
"""A set of fixed rules: the last four give grouped lines, `task_context` the newest
messages that fit, in `three_phase` messages fade by age, and `partitioned` shrinks by levels of
pressure."""

PressureLevel: TypeAlias = Literal["snip", "micro", "collapse", "auto", "reactive", "renewal"]
"""What the preset `partitioned` does to a history under pressure: cut long texts, show
equal results once, make one text of the middle, keep the half that is worth most, and that
with a shorter cut; or begin a fresh window."""

HistoryStyle: TypeAlias = Literal["design", "reduction", "grouped"]
"""A layout of steps as text."""

FoldReason: TypeAlias = Literal["price", "budget", "caller"]
"""Why a batch was folded: it pays, it would not have fit, or `compact` asked for it."""

TokenCertainty: TypeAlias = Literal["exact", "anchored", "estimated"]
"""How sure a count is: by the model's own vocabulary, mostly as the provider reported
it, or a good estimate."""

POLICY_ENUM = pb.HistoryPolicy.DESCRIPTOR

_RUN = re.compile(r"([a-z]+_)(\d+)\.\.\1(\d+)", re.ASCII)


def _each_ref(refs: tuple[str, ...]) -> Iterator[str]:
    for ref in refs:
        if run := _RUN.fullmatch(ref):
            for number in range(int(run[2]), int(run[3]) + 1):
                yield f"{run[1]}{number:03}"
        else:
            yield ref


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of tokens and where it comes from."""

    tokens: int
    """The number."""
    counter: str
    """What counted: a vocabulary such as `o200k_base`, or the rule `anthropic` or
    `estimate`."""
    certainty: TokenCertainty
    """How sure it is."""

    @property
    def exact(self) -> bool:
        """Counted with the model's own vocabulary."""
        return self.certainty == "exact"


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """What a token costs, in any unit: only the ratios count."""

    input: float
    """One that is sent."""
    cached_input: float | None = None
    """One that the provider reads from its cache; None: as `input`."""
    cache_write: float | None = None
    """One that the provider writes to its cache; None: as `input`."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """How the history of a prompt is made. What is None stays as it is."""

    policy: HistoryPolicy | None = None
    """How it is compacted; at first `ledger`, or `preset` when one is named."""
    preset: Preset | None = None
    """The set of rules; needs the policy `preset` or no policy."""
    literal: bool | None = None
    """Let a preset's boundary move with every step, as its rules are written. At first
    False: it moves in batches, so that the provider's cache holds."""
    prices: TokenPrices | None = None
    """The model's prices, if its own are not known or not yours."""
    expected_steps: int | None = None
    """How many more steps the session will have; at first as many as there were."""
    max_result_tokens: int | None = None
    """What a prompt shows of one unfolded result, at most; at first 3000."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What holds for a session's prompts."""

    history: HistorySettings
    """How the history is made; None is the server's default."""
    model: str
    """The model for calls that name none; empty: the server's default."""
    max_tokens: int
    """The budget for calls that name none; 0: the server's default."""
    prompt: _settings.PromptSettings = _settings.PromptSettings()  # noqa: RUF009  frozen
    """What its prompts are made of; None or empty is the server's default."""


@dataclass(frozen=True, slots=True, repr=False)
class Fold(_brief.Brief):
    """Text that stands in a prompt in place of steps."""

    refs: tuple[str, ...]
    """The steps and messages it stands for, such as `step_012` or `message_017`: what
    `read_blob` and the tool `fs:read_file` return in full. Three or more in a row are one:
    `step_001..step_040`, with both ends; `each_ref` has them one by one."""
    tokens: int
    """What it takes."""
    before_tokens: int
    """What the steps took."""

    def each_ref(self) -> Iterator[str]:
        """Yield each step and message of `refs` by itself."""
        return _each_ref(self.refs)


@dataclass(frozen=True, slots=True)
class Partitions:
    """The tokens of a prompt by what they are part of."""

    system: int = 0
    """The system prompt, examples, and what callers add there."""
    memory: int = 0
    """What is known of the user and the task."""
    skill: int = 0
    """Active skills and tools."""
    history: int = 0
    """What was said and done, with tasks, events and direct messages."""
    working: int = 0
    """What the agent is at, and what else stands for this turn only."""


@dataclass(frozen=True, slots=True)
class FoldBatch:
    """What one call folded, and why."""

    number: int
    """Counts the batches of the session, from 1; `undo` takes it."""
    reason: FoldReason
    """Why."""
    refs: tuple[str, ...]
    """The steps and messages that were folded, as in `Fold.refs`."""
    before_tokens: int
    """What they took."""
    after_tokens: int
    """What stands for them."""
    level: PressureLevel | None = None
    """The level of pressure that it is of, with the preset `partitioned`."""

    def each_ref(self) -> Iterator[str]:
        """Yield each step and message of `refs` by itself."""
        return _each_ref(self.refs)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The account of a prompt: what was done to it, and what it should cost.

    Costs are in units of one input token, before the provider has answered; report its real counts
    with `ctx.context.report_usage`.
    """

    prompt_id: str
    """Names the prompt for `report_usage`."""
    policy: str
    """What made the history, such as `ledger`, `append_only` or `design`."""
    folds: tuple[Fold, ...]
    """What stands in the history in place of steps, in order."""
    batch: FoldBatch | None
    """What this call folded; None: nothing."""
    stable_tokens: int
    """How much of the prompt, from its beginning, the session's prompt before of the same
    model and format had too. 0 with the first one since the server started."""
    cost: float
    """What it should be billed: the stable part as read from the provider's cache, the
    rest as written to it."""
    append_only_cost: float
    """The same with nothing folded, and all of the prompt before in the cache."""
    pressure: float
    """The share of the budget that is taken, 0 to 1."""
    layout: _settings.PromptLayout | None = None
    """The order of the sections."""
    sections: tuple[_sections.PromptSection, ...] = ()
    """The sections of the prompt, in its order, and the ones left out."""
    difference: _sections.PromptDifference | None = None
    """Where the prompt first differs from the session's prompt before; None for the first
    one that the server knows of."""
    expected_cached_tokens: int = 0
    """How many tokens the provider should read from its cache: never more than this prompt
    or the one before has."""
    calls: int = 0
    """How many calls of tools the session has made."""
    faults: int = 0
    """How many of them asked again for what had been folded away."""
    reused: bool = False
    """The prompt is that of an earlier call: nothing that it is made of has changed."""
    sprint: int = 0
    """How often the session's window was renewed."""
    partitions: Partitions = Partitions()
    """The tokens by what they are part of."""

    def section(self, name: str) -> _sections.PromptSection | None:
        """Return the section of that name; None if the prompt knows of none."""
        return next((each for each in self.sections if each.name == name), None)


@dataclass(frozen=True, slots=True, repr=False)
class Compaction(_brief.Brief):
    """What `compact` folded, or the history as text."""

    batch: FoldBatch | None
    """What was folded; None: there was nothing to fold."""
    folds: tuple[Fold, ...]
    """What stands in the history now in place of steps, in order."""
    text: str
    """The history in the style that was asked for; else empty."""
    tokens: TokenCount
    """The size of the history, or of the text."""
    summary_problem: str = ""
    """Why the summary was left out; empty when it was not, or when there was none."""


@dataclass(frozen=True, slots=True)
class Undone:
    """What `undo` took back."""

    refs: tuple[str, ...]
    """The steps and messages that stand in full again, or in older folds, as in
    `Fold.refs`."""

    def each_ref(self) -> Iterator[str]:
        """Yield each step and message of `refs` by itself."""
        return _each_ref(self.refs)


@dataclass(frozen=True, slots=True)
class UsageLearned:
    """What the server learned from a provider's count."""

    ratio: float
    """The provider's token count divided by the count here."""
    missed_tokens: int = 0
    """How many tokens should have come from the provider's cache and did not."""


def settings_to_wire(name: str, value: object) -> pb.HistorySettings:
    """Return settings as the wire has them; what is None is left out."""
    if not isinstance(value, HistorySettings):
        raise TypeError(f"{name} must be a HistorySettings, not {type(value).__name__}")
    result = pb.HistorySettings(preset=_values.optional_text(f"{name}.preset", value.preset))
    if value.policy is not None:
        number = _values.enum_number(f"{name}.policy", POLICY_ENUM, "HISTORY_POLICY_", value.policy)
        # pyright knows enums of the wire by their names only; the number is the same.
        result.policy = cast("pb.HistoryPolicy", number)
    if value.literal is not None:
        result.literal = value.literal
    if value.prices is not None:
        result.prices.CopyFrom(_prices_to_wire(f"{name}.prices", value.prices))
    if value.expected_steps is not None:
        result.expected_steps = _values.integer(f"{name}.expected_steps", value.expected_steps)
    if value.max_result_tokens is not None:
        result.max_result_tokens = _values.integer(
            f"{name}.max_result_tokens", value.max_result_tokens
        )
    return result


def _prices_to_wire(name: str, value: object) -> pb.TokenPrices:
    if not isinstance(value, TokenPrices):
        raise TypeError(f"{name} must be a TokenPrices, not {type(value).__name__}")
    cached = value.input if value.cached_input is None else value.cached_input
    write = value.input if value.cache_write is None else value.cache_write
    return pb.TokenPrices(
        input=_values.number(f"{name}.input", value.input),
        cached_input=_values.number(f"{name}.cached_input", cached),
        cache_write=_values.number(f"{name}.cache_write", write),
    )


def session_settings(m: pb.ConfigureSessionResponse) -> SessionSettings:
    """Return what holds for a session as users see it."""
    return SessionSettings(
        history=_history_settings(m.history),
        model=m.model,
        max_tokens=m.max_tokens,
        prompt=_settings.settings(m.prompt),
    )


def _history_settings(m: pb.HistorySettings) -> HistorySettings:
    prices = m.prices
    return HistorySettings(
        policy=_policy(m.policy) if m.policy else None,
        preset=cast("Preset", m.preset) if m.preset else None,
        literal=m.literal if m.HasField("literal") else None,
        prices=TokenPrices(prices.input, prices.cached_input, prices.cache_write)
        if m.HasField("prices")
        else None,
        expected_steps=m.expected_steps or None,
        max_result_tokens=m.max_result_tokens or None,
    )


def _policy(value: int) -> HistoryPolicy:
    return cast("HistoryPolicy", _values.enum_name(POLICY_ENUM, "HISTORY_POLICY_", value))


def token_count(m: pb.TokenCount) -> TokenCount:
    """Return a count as users see it."""
    certainty = _values.enum_name(pb.TokenCertainty.DESCRIPTOR, "TOKEN_CERTAINTY_", m.certainty)
    return TokenCount(
        tokens=m.tokens, counter=m.counter, certainty=cast("TokenCertainty", certainty)
    )


def receipt(m: pb.Receipt) -> Receipt:
    """Return the account of a prompt as users see it."""
    return Receipt(
        prompt_id=m.prompt_id,
        policy=m.policy,
        folds=tuple(map(_fold, m.folds)),
        batch=fold_batch(m.batch) if m.HasField("batch") else None,
        stable_tokens=m.stable_tokens,
        cost=m.cost,
        append_only_cost=m.append_only_cost,
        pressure=m.pressure,
        layout=_settings.layout(m.layout),
        sections=tuple(map(_sections.section, m.sections)),
        difference=_sections.difference(m.difference) if m.HasField("difference") else None,
        expected_cached_tokens=m.expected_cached_tokens,
        calls=m.calls,
        faults=m.faults,
        reused=m.reused,
        sprint=m.sprint,
        partitions=Partitions(**m.partitions),
    )


def _fold(m: pb.FoldInfo) -> Fold:
    return Fold(
        refs=tuple(m.refs),
        tokens=m.tokens,
        before_tokens=m.before_tokens,
    )


def fold_batch(m: prompt_pb2.FoldBatch) -> FoldBatch:
    """Return the batch of a message."""
    reason = _values.enum_name(prompt_pb2.FoldReason.DESCRIPTOR, "FOLD_REASON_", m.reason)
    return FoldBatch(
        number=m.number,
        reason=cast("FoldReason", reason),
        refs=tuple(m.refs),
        before_tokens=m.before_tokens,
        after_tokens=m.after_tokens,
        level=pressure_level(m.level),
    )


def pressure_level(value: int) -> PressureLevel | None:
    """Return the name of a level of pressure; None for none."""
    enum = prompt_pb2.PressureLevel.DESCRIPTOR
    return cast("PressureLevel | None", _settings.name_or_none(enum, "PRESSURE_LEVEL_", value))


def compaction(m: pb.CompactHistoryResponse) -> Compaction:
    """Return the folded batch, or the text."""
    return Compaction(
        batch=fold_batch(m.batch) if m.HasField("batch") else None,
        folds=tuple(map(_fold, m.folds)),
        text=m.text,
        tokens=token_count(m.tokens),
        summary_problem=m.summary_problem,
    )
