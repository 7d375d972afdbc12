"""Models: asked over HTTP. They return the words of an answer and nothing else.

What the provider counted is noted on the span of the call.
"""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Any


class Span:
    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name = name
        self.attributes = attributes

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


class Tracer:
    """Keeps the spans, as one that exports them would send them."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    @contextmanager
    def start_as_current_span(self, name: str, attributes: dict[str, Any]) -> Generator[Span]:
        self.spans.append(Span(name, attributes))
        yield self.spans[-1]


tracer = Tracer()


class LLMProvider:
    async def generate(self, prompt: str, *, system: str | None = None, **kwargs: Any) -> str:
        with tracer.start_as_current_span("llm.generate", attributes={}) as span:
            answer = await self.post(prompt, system=system, **kwargs)
            usage = answer.get("usage")
            if usage is not None:
                span.set_attribute("llm.usage.prompt_tokens", usage.get("prompt_tokens", 0))
                span.set_attribute("llm.usage.completion_tokens", usage.get("completion_tokens", 0))
            return answer["text"]

    async def generate_stream(self, prompt: str, **kwargs: Any) -> AsyncIterator[str]:
        answer = await self.post(prompt, **kwargs)
        yield answer["text"]

    async def post(self, prompt: str, **kwargs: Any) -> dict[str, Any]:
        """Send a prompt to the provider; return its answer."""
        raise NotImplementedError
