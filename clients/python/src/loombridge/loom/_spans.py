"""What loom-py notes of a model's call on its span: the tokens that the provider counted.

loom-py returns the words of an answer alone. The provider's usage stands in attributes of
the span `llm.generate`, which are set whether or not telemetry is exported. So the tracer
of the module that a model comes from is listened at.
"""

import inspect
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

USAGE = "llm.usage."
"""What the names of the attributes begin with; the rest is the provider's own word."""

_noted: ContextVar[dict[str, Any] | None] = ContextVar("loombridge_noted", default=None)
# What is noted of the call that runs in this task.


@contextmanager
def noting(llm: object) -> Generator[Mapping[str, Any]]:
    """Yield a mapping that gets the token counts of a model call in the block."""
    _listen(llm)
    noted: dict[str, Any] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def _listen(llm: object) -> None:
    """Listen at the tracers of the modules that a model's methods come from."""
    for kind in type(llm).__mro__:
        function = inspect.unwrap(vars(kind).get("generate", None) or _nothing)
        names: dict[str, Any] = getattr(function, "__globals__", {})
        tracer = names.get("tracer")
        if hasattr(tracer, "start_as_current_span") and not isinstance(tracer, _Tracer):
            names["tracer"] = _Tracer(tracer)


def _nothing() -> None:
    """Stand in for a method that a class does not have."""


class _Tracer:
    """A tracer whose spans are listened at."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracer, name)

    @contextmanager
    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Generator[Any]:
        with self._tracer.start_as_current_span(*args, **kwargs) as span:
            yield _Span(span)


class _Span:
    """A span whose attributes are listened at."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def __getattr__(self, name: str) -> Any:
        return getattr(self._span, name)

    def set_attribute(self, key: str, value: Any) -> Any:
        noted = _noted.get()
        if noted is not None and key.startswith(USAGE):
            noted[key.removeprefix(USAGE)] = value
        return self._span.set_attribute(key, value)
