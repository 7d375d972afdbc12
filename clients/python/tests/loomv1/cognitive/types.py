"""What the loop's parts hand to each other."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ToolCall:
    name: str
    arguments: dict[str, Any]


@dataclass
class Observation:
    tool_name: str
    success: bool
    output: str
    error: str | None = None
    latency_ms: int = 0
    reduced_step: Any = None


@dataclass
class ThoughtStep:
    step: int
    reasoning: str
    tool_call: ToolCall | None = None
    observation: Observation | None = None
    reduced_step: Any = None


@dataclass
class CognitiveResult:
    answer: str
    steps: list[ThoughtStep] = field(default_factory=list[ThoughtStep])
    iterations: int = 0
    success: bool = True
    error: str | None = None
