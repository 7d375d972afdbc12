"""The providers' own libraries, pointed at the local providers.

Each one sends prompts by the library's call, after they were held against the types that
the library publishes for requests.
"""

import importlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import anthropic
import openai
from anthropic.types import message_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

import loombridge
from providers import (
    Provider,
    anthropic_messages,
    gemini_content,
    openai_chat,
    openai_responses,
    serve,
)

# Other packages have stubs of `google`, which hide this one from type checkers.
genai: Any = importlib.import_module("google.genai")


def whole(value: object) -> Any:
    """Return a value with lists in the place of what is only looked at when it is read."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {name: whole(inner) for name, inner in fields.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [whole(inner) for inner in cast("Iterable[object]", value)]
    return value


MESSAGES: TypeAdapter[Any] = TypeAdapter(message_create_params.MessageCreateParamsNonStreaming)
COMPLETIONS: TypeAdapter[Any] = TypeAdapter(
    completion_create_params.CompletionCreateParamsNonStreaming
)
RESPONSES: TypeAdapter[Any] = TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming)


def valid(adapter: TypeAdapter[Any], body: Mapping[str, Any]) -> None:
    """Hold a request against the library's own types, which drop what they do not know."""
    assert whole(adapter.validate_python(body)) == body


@dataclass(frozen=True)
class Library:
    """How a provider is served, and how its library asks it."""

    format: loombridge.PromptFormat
    model: str
    serve: Callable[[], AbstractContextManager[Provider]]
    ask: Callable[[Provider, loombridge.Prompt], Awaitable[Any]]
    """Send a prompt; return what the library gives."""
    said: Callable[[Any], loombridge.Message]
    """Make a message of that."""


async def ask_anthropic(provider: Provider, prompt: loombridge.Prompt) -> Any:
    body = prompt.anthropic()
    valid(MESSAGES, {**body, "model": "claude-sonnet-4-6", "max_tokens": 100})
    asking: Any = anthropic.AsyncAnthropic(api_key="x", base_url=provider.url, max_retries=0)
    async with asking as client:
        return await client.messages.create(**body, model="claude-sonnet-4-6", max_tokens=100)


async def ask_openai(provider: Provider, prompt: loombridge.Prompt) -> Any:
    body = prompt.openai()
    valid(COMPLETIONS, {**body, "model": "gpt-4o"})
    asking: Any = openai.AsyncOpenAI(api_key="x", base_url=provider.url, max_retries=0)
    async with asking as client:
        return await client.chat.completions.create(**body, model="gpt-4o")


async def ask_responses(provider: Provider, prompt: loombridge.Prompt) -> Any:
    body = prompt.openai_responses()
    valid(RESPONSES, {**body, "model": "gpt-5"})
    asking: Any = openai.AsyncOpenAI(api_key="x", base_url=provider.url, max_retries=0)
    async with asking as client:
        return await client.responses.create(**body, model="gpt-5")


async def ask_gemini(provider: Provider, prompt: loombridge.Prompt) -> Any:
    body = prompt.gemini()
    for content in body["contents"]:
        genai.types.Content.model_validate(content)
    genai.types.GenerateContentConfig.model_validate(body.get("config", {}))
    options = genai.types.HttpOptions(base_url=provider.url)
    asking: Any = genai.Client(api_key="x", http_options=options).aio
    async with asking as client:
        return await client.models.generate_content(**body, model="gemini-2.5-pro")


def from_chat(answer: Any) -> loombridge.Message:
    return loombridge.Message.from_openai(answer.choices[0].message.model_dump(exclude_none=True))


LIBRARIES = {
    "anthropic": Library(
        "anthropic",
        "claude-sonnet-4-6",
        lambda: serve(anthropic_messages.check, anthropic_messages.answer),
        ask_anthropic,
        loombridge.Message.from_anthropic,
    ),
    "openai": Library(
        "openai",
        "gpt-4o",
        lambda: serve(openai_chat.check, openai_chat.answer),
        ask_openai,
        from_chat,
    ),
    "responses": Library(
        "openai_responses",
        "gpt-5",
        lambda: serve(openai_responses.check, openai_responses.answer),
        ask_responses,
        loombridge.Message.from_openai_responses,
    ),
    "gemini": Library(
        "gemini",
        "gemini-2.5-pro",
        lambda: serve(gemini_content.check, gemini_content.answer),
        ask_gemini,
        loombridge.Message.from_gemini,
    ),
}
