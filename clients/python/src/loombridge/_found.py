"""Where a text stood in the prompts of a session, and what took it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast

from loombridge import _brief, _receipts, _values
from loombridge.v1 import context_pb2 as pb

LossCause: TypeAlias = Literal["fold", "level", "renewal", "cap", "source"]
"""What took a text out of a prompt: a fold stands in its place, a level of pressure
shortened the history, the window was renewed, the section had no room for it, or what the
section is made of says it no longer."""


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A place of a text in a prompt."""

    section: str
    """Which section owns it."""
    message_index: int
    """The message, from 0; -1: in the tools."""
    ref: str
    """The message of the log that it stands in, such as `message_012`; empty elsewhere."""
    batch: int
    """The batch of the fold that it stands in; 0 for none."""


@dataclass(frozen=True, slots=True, repr=False)
class SentPrompt(_brief.Brief):
    """A prompt that a session has sent."""

    prompt_id: str
    """The id that its receipt gave it; `as_of_prompt` takes it."""
    number: int
    """Counts the prompts of the session, from 1."""
    last_position: int
    """Where the session's log ended."""
    model: str
    """What it was made for."""
    tokens: int
    """Its size."""
    parts: Mapping[str, int]
    """The tokens by section."""
    places: tuple[TextPlace, ...]
    """Where the text stands in it: at most 16."""
    create_time: datetime | None
    """When it was made, in UTC; None, and 0 in all that follows, where an older server made
    it."""
    expected_cached_tokens: int
    """As in its receipt."""
    cost: float
    """As in its receipt."""
    append_only_cost: float
    """As in its receipt."""
    fold_batch: int
    """The batch of folds that was made for it; 0: none."""
    renewals: int
    """How often the window had been renewed."""


@dataclass(frozen=True, slots=True, repr=False)
class TextOrigin(_brief.Brief):
    """A message or step that has a text."""

    ref: str
    """Its name, such as `message_012` or `step_007`."""
    position: int
    """Its place in the session's log."""
    source: str
    """The role of who said it, or the name of the tool."""
    part: str
    """`content`, `thought`, `arguments`, `result` or `error`."""
    arguments_json: str
    """The arguments of the step as they are kept; empty for messages."""


@dataclass(frozen=True, slots=True)
class TextLoss:
    """A prompt that no longer shows a text."""

    prompt_id: str
    """The first prompt that shows it nowhere."""
    number: int
    """That prompt's number."""
    section: str
    """Where it stood in the prompt before; empty where it was never shown."""
    cause: LossCause
    """What took it."""
    batch: _receipts.FoldBatch | None
    """The batch of folds that took it, if one did; its refs read back what it stands for."""
    reason: str
    """The cause in words, where the prompt's account has them."""


@dataclass(frozen=True, slots=True, repr=False)
class FoundInPrompts(_brief.Brief):
    """Where a text stood in the prompts of a session."""

    prompts: tuple[SentPrompt, ...]
    """All prompts that the session keeps, the oldest first."""
    origins: tuple[TextOrigin, ...]
    """The messages and steps that have the text, the oldest first: at most 32."""
    losses: tuple[TextLoss, ...]
    """What took it out of prompts, in their order: at most 64, the newest."""
    unread: tuple[str, ...]
    """What is damaged, and was therefore passed over, such as `prompt 3`: at most 64."""


def found(m: pb.FindInPromptsResponse) -> FoundInPrompts:
    """Return what a message says."""
    return FoundInPrompts(
        prompts=tuple(_sent(p) for p in m.prompts),
        origins=tuple(
            TextOrigin(
                ref=o.ref,
                position=o.position,
                source=o.source,
                part=o.part,
                arguments_json=o.arguments_json,
            )
            for o in m.origins
        ),
        losses=tuple(_loss(loss) for loss in m.losses),
        unread=tuple(m.unread),
    )


def _sent(m: pb.SentPrompt) -> SentPrompt:
    return SentPrompt(
        prompt_id=m.prompt_id,
        number=m.number,
        last_position=m.last_position,
        model=m.model,
        tokens=m.tokens,
        parts=dict(m.parts),
        places=tuple(
            TextPlace(section=p.section, message_index=p.message_index, ref=p.ref, batch=p.batch)
            for p in m.places
        ),
        create_time=_values.moment(m.create_time) if m.HasField("create_time") else None,
        expected_cached_tokens=m.expected_cached_tokens,
        cost=m.cost,
        append_only_cost=m.append_only_cost,
        fold_batch=m.fold_batch,
        renewals=m.renewals,
    )


def _loss(m: pb.TextLoss) -> TextLoss:
    cause = _values.enum_name(pb.LossCause.DESCRIPTOR, "LOSS_CAUSE_", m.cause)
    return TextLoss(
        prompt_id=m.prompt_id,
        number=m.number,
        section=m.section,
        cause=cast("LossCause", cause),
        batch=_receipts.fold_batch(m.batch) if m.HasField("batch") else None,
        reason=m.reason,
    )
