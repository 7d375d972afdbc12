"""What providers say that a prompt took."""

from collections.abc import Mapping
from typing import Any

from loombridge import _values
from loombridge.v1 import context_pb2 as pb


def usage_to_wire(usage: object) -> pb.ReportUsageRequest:
    """Return a provider's token counts, from any of the forms that providers use.

    OpenAI's `prompt_tokens` and `input_tokens` include tokens read from its cache; Anthropic's
    `input_tokens` leave them out, and tokens written to it.

    Raises:
        TypeError: usage is neither a mapping nor an object of a provider's library.
        ValueError: it does not say how many tokens the prompt had.
    """
    u = _values.mapping("usage", _dumped(usage))
    sent = _tokens(u, "prompt_tokens")
    if not sent:
        read, written = "cache_read_input_tokens", "cache_creation_input_tokens"
        sent = sum(_tokens(u, key) for key in ("input_tokens", read, written))
    if sent < 1:
        raise ValueError("usage must have prompt_tokens, as OpenAI's, or input_tokens")
    prompt_details = u.get("prompt_tokens_details") or u.get("input_tokens_details")
    answer_details = u.get("completion_tokens_details") or u.get("output_tokens_details")
    return pb.ReportUsageRequest(
        prompt_tokens=sent,
        completion_tokens=_tokens(u, "completion_tokens") or _tokens(u, "output_tokens"),
        reasoning_tokens=_tokens(answer_details, "reasoning_tokens"),
        cached_tokens=_tokens(prompt_details, "cached_tokens")
        or _tokens(u, "cached_tokens")
        or _tokens(u, "cache_read_input_tokens")
        or _tokens(u, "prompt_cache_hit_tokens"),
    )


def _dumped(usage: object) -> object:
    # The objects of the providers' own libraries.
    dump = getattr(usage, "model_dump", None)
    return dump() if callable(dump) else usage


def _tokens(usage: Mapping[str, Any] | None, key: str) -> int:
    found = None if usage is None else usage.get(key)
    return 0 if found is None else _values.integer(key, found)
