"""The account of a prompt by its sections: what stands in it, and from where."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from loombridge import _brief, _values
from loombridge.v1 import prompt_pb2 as pb

SectionOutcome: TypeAlias = Literal["shown", "cut", "left_out", "failed", "timed_out", "empty"]
"""What became of a section: it stands there whole, or a part of it; there was no room, or the
settings leave it out; its source failed, or took too long; there was nothing to show."""

CachedPart: TypeAlias = Literal["tools", "stable", "session", "history"]
"""What stands before a mark for the provider's cache."""


@dataclass(frozen=True, slots=True, repr=False)
class PromptSection(_brief.Brief):
    """A section of a prompt, or one that was left out."""

    name: str
    """A built-in one such as `system`, `user_memory`, `history` or `goal`, or that of an
    `Injection`."""
    tokens: int
    """Its size in the prompt."""
    before_tokens: int
    """What it would take without its cap."""
    max_tokens: int
    """Its cap; 0 is none."""
    outcome: SectionOutcome
    """What became of it."""
    reason: str
    """Why something of it is missing, or there is nothing, or a warning; empty otherwise."""
    refs: tuple[str, ...]
    """What it shows, such as ids of records or tasks: at most 64."""
    left_out: tuple[str, ...]
    """What was found for it and had no room: at most 64."""
    source: str = ""
    """Where its text came from, for people, such as `AGENTS.md of the workspace, 312 bytes`."""


@dataclass(frozen=True, slots=True)
class CacheMark:
    """A place at which the provider's cache should keep the prompt."""

    what: CachedPart
    """What stands before it."""
    message_index: int
    """The message that it stands behind, from 0, as the format has them; -1 is behind the
    tools, -2 behind the system prompt where that is no message."""
    block_index: int
    """The content block of that message, from 0."""
    tokens: int
    """What stands before it."""


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """Where two prompts first differ."""

    section: str
    """Owns the first byte that differs, in the newer prompt; empty: they are the same."""
    byte: int
    """Its place in the layout that `prefix_sha256` is of, from 0."""
    message_index: int
    """The message that holds it, from 0; -1 is in the tools."""


def section(m: pb.SectionInfo) -> PromptSection:
    """Return the account of a section as users see it."""
    outcome = _values.enum_name(pb.SectionOutcome.DESCRIPTOR, "SECTION_OUTCOME_", m.outcome)
    return PromptSection(
        name=m.name,
        # A section that says nothing of it is as if it were dynamic.
        tokens=m.tokens,
        before_tokens=m.before_tokens,
        max_tokens=m.max_tokens,
        outcome=cast("SectionOutcome", outcome),
        reason=m.reason,
        refs=tuple(m.refs),
        left_out=tuple(m.left_out),
        source=m.source,
    )


def cache_mark(m: pb.CacheMark) -> CacheMark:
    """Return a mark for the provider's cache as users see it."""
    return CacheMark(
        what=cast("CachedPart", m.what),
        message_index=m.message_index,
        block_index=m.block_index,
        tokens=m.tokens,
    )


def difference(m: pb.PromptDifference) -> PromptDifference:
    """Return where two prompts first differ as users see it."""
    return PromptDifference(m.section, m.byte, m.message_index)
