"""What a run of the cognitive loop works with in place of loom-py's own.

Each has the public methods and fields of what it stands for.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Any

from loombridge import _steps
from loombridge.loom import _run, _spans


class Model:
    """A run's model: as loom-py's, but asked with the prompt that the server assembles."""

    def __init__(self, llm: Any, keeper: _run.Keeper) -> None:
        """Ask llm for what the run asks."""
        self._llm = llm
        self._keeper = keeper

    def __getattr__(self, name: str) -> Any:
        """Return whatever else the model has."""
        return getattr(self._llm, name)

    async def generate(self, prompt: str, **kwargs: Any) -> str:
        """Return the model's answer."""
        asked = await self._prompt(prompt, kwargs)
        with _spans.noting(self._llm) as usage:
            words = await self._llm.generate(prompt=asked.text, **kwargs)
        self._keeper.heard(str(words), asked, usage)
        return words

    async def generate_stream(self, prompt: str, **kwargs: Any) -> AsyncIterator[str]:
        """Yield the model's answer as it comes."""
        asked = await self._prompt(prompt, kwargs)
        words: list[str] = []
        async for piece in self._llm.generate_stream(prompt=asked.text, **kwargs):
            words.append(piece)
            yield piece
        # loom-py asks for no usage of a stream.
        self._keeper.heard("".join(words), asked, None)

    async def _prompt(self, own: str, kwargs: dict[str, Any]) -> _run.Asked:
        model: object = getattr(getattr(self._llm, "config", None), "model", "")
        system: object = kwargs.get("system")
        return await self._keeper.prompt(
            own, str(system or ""), model if isinstance(model, str) else ""
        )


@dataclass(frozen=True, slots=True)
class NotOffloaded:
    """The answer to loom-py for an output: the output unchanged, because the server has it."""

    content: str
    original_size: int
    original_lines: int
    offloaded: bool = False
    file_path: str | None = None
    content_hash: str | None = None

    def to_observation(self, tool_name: str) -> str:
        """Return the output."""
        return self.content


class NoOffloader:
    """A `DataOffloader` that writes no files; earlier offloads can be read."""

    def __init__(self, offloader: Any) -> None:
        """Stand in for offloader."""
        self._offloader = offloader

    def __getattr__(self, name: str) -> Any:
        """Return whatever else the offloader has."""
        return getattr(self._offloader, name)

    def offload(self, content: str, *_args: Any, **_kwargs: Any) -> NotOffloaded:
        """Leave the output as it is."""
        return NotOffloaded(content, len(content), content.count("\n") + 1)

    def offload_json(self, data: Any, *_args: Any, **_kwargs: Any) -> NotOffloaded:
        """Leave the data as they are."""
        return self.offload(json.dumps(data, indent=2, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A step in one line, as loom-py's `CompactStep`."""

    id: str
    summary: str

    def __str__(self) -> str:
        """Return the line."""
        return f"• {self.summary}"


@dataclass(slots=True)
class ShownStep:
    """A step of the log with the fields of loom-py's `Step`."""

    id: str
    tool_name: str
    minimal_args: dict[str, Any]
    observation: str
    success: bool
    timestamp_ms: int
    outcome_ref: str | None = None
    """The path of the full result: `fs:read_file` reads it."""
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_compact(self) -> ShownLine:
        """Return the step in one line."""
        return ShownLine(self.id, self.observation)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


def shown_step(step: _steps.Step) -> ShownStep:
    """Return a step of the log as loom-py has its steps."""
    return ShownStep(
        id=step.id,
        tool_name=step.tool_name,
        minimal_args=dict(step.minimal_args),
        observation=step.observation,
        success=step.success,
        timestamp_ms=int(step.create_time.timestamp() * 1000),
        outcome_ref=step.outcome_path or None,
        error=step.error or None,
        metadata=dict(step.metadata),
    )
