"""What a loom-py agent leaves in its log: each is sent on its own, in order."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from loombridge import _client, _errors, _prompt, _steps
from loombridge.loom import _calls

SEND_SECONDS = 10.0
"""Seconds that the server may take to record one entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(ABC):
    """Something to record."""

    session_id: str | None = None
    """The session that gets it; None: the client's."""
    over: Callable[[bool], None] = field(default=lambda _recorded: None)
    """Told once how it ended: recorded, or given up."""

    matters: ClassVar[bool] = True
    """The log has a gap without it."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What it is, for a message to people."""

    @property
    def size(self) -> int:
        """How much it holds, in characters."""
        return 0

    @abstractmethod
    async def send(self, client: _client.Client) -> None:
        """Record it. Sent again, it has no second effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Entry):
    """A tool call."""

    call: _calls.Call
    """The call."""
    thought: str = ""
    """What the model said before it."""
    taken: Callable[[_steps.Step], None] = field(default=lambda _step: None)
    """Given the step, once it is recorded."""

    @property
    def what(self) -> str:
        """What it is, for a message to people."""
        return f"a step of {self.call.name}"

    @property
    def size(self) -> int:
        """How much it holds, in characters."""
        return self.call.size + len(self.thought)

    async def send(self, client: _client.Client) -> None:
        """Record it."""
        step = _calls.recordable(self.call)
        recorded = await client.context.record_step(
            step.tool_name,
            step.arguments,
            output=step.output,
            error=step.error,
            thought=_calls.clean(self.thought)[: _calls.KEPT_ERROR],
            request_id=self.call.id,
            session_id=self.session_id,
            timeout=SEND_SECONDS,
        )
        self.taken(recorded.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(Entry):
    """The text other than tool calls."""

    role: _prompt.Role
    """Who said it."""
    text: str
    """What."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Makes recording it safe to repeat."""

    @property
    def what(self) -> str:
        """What it is, for a message to people."""
        return "a message"

    @property
    def size(self) -> int:
        """How much it holds, in characters."""
        return len(self.text)

    async def send(self, client: _client.Client) -> None:
        """Record it."""
        message = _prompt.Message(self.role, _calls.clean(self.text))
        await client.context.append(
            message, request_id=self.id, session_id=self.session_id, timeout=SEND_SECONDS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Entry):
    """What the provider counted for a prompt."""

    matters: ClassVar[bool] = False
    prompt_id: str
    """The prompt."""
    usage: Mapping[str, Any]
    """As reported by the provider."""

    @property
    def what(self) -> str:
        """What it is, for a message to people."""
        return "the usage of a prompt"

    async def send(self, client: _client.Client) -> None:
        """Report it."""
        try:
            await client.context.report_usage(
                self.prompt_id, self.usage, session_id=self.session_id, timeout=SEND_SECONDS
            )
        except _errors.PromptUnknownError:
            # The server was restarted in between: it learns from the next one.
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class End(Entry):
    """The end of a session."""

    matters: ClassVar[bool] = False

    @property
    def what(self) -> str:
        """What it is, for a message to people."""
        return "the end of a session"

    async def send(self, client: _client.Client) -> None:
        """Tell it."""
        await client.context.end(session_id=self.session_id, timeout=SEND_SECONDS)
