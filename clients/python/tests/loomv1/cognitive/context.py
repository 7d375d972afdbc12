"""What the loop keeps of its steps: reduced, offloaded into files, compacted."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class CompactStep:
    id: str
    summary: str

    def __str__(self) -> str:
        """Return the line."""
        return f"• {self.summary}"


@dataclass
class Step:
    id: str
    tool_name: str
    minimal_args: dict[str, Any]
    observation: str
    success: bool
    outcome_ref: str | None = None
    error: str | None = None

    def to_compact(self) -> CompactStep:
        return CompactStep(self.id, self.observation)


class StepReducer:
    def __init__(self) -> None:
        self._counter = 0

    def reduce(
        self,
        tool_name: str,
        args: dict[str, Any],
        result: Any,
        success: bool,
        error: str | None = None,
    ) -> Step:
        self._counter += 1
        shown = f"{tool_name} gave {str(result)[:200]}" if success else f"{tool_name}: {error}"
        return Step(f"step_{self._counter:03}", tool_name, args, shown, success, error=error)


@dataclass
class OffloadResult:
    offloaded: bool
    content: str
    file_path: str | None = None


class DataOffloader:
    def __init__(self, workspace_path: Path) -> None:
        self.workspace = workspace_path

    def offload(
        self, content: str, category: str, identifier: str, force: bool = False
    ) -> OffloadResult:
        lines = content.splitlines()
        if len(content) < 2048 and len(lines) < 50 and not force:
            return OffloadResult(False, content)
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        path = self.workspace / ".loom" / "cache" / category / f"{identifier}_{digest}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return OffloadResult(True, "\n".join([*lines[:10], "...", *lines[-10:]]), str(path))


@dataclass
class CompactedHistory:
    recent_steps: list[Step]
    compact_steps: list[CompactStep] = field(default_factory=list[CompactStep])


class StepCompactor:
    def compact(self, steps: list[Step]) -> CompactedHistory:
        return CompactedHistory(steps[-3:], [each.to_compact() for each in steps[:-3]][-10:])
