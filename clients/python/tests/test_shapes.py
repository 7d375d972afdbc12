"""Conversations as providers and hosts write them are valid in every format."""

import json
import re
from pathlib import Path
from typing import Any, cast

import loombridge
from loombridge import testing
from providers import (
    RefusedError,
    anthropic_messages,
    gemini_content,
    openai_chat,
    openai_responses,
)
from providers.rules import sign

WORLD = Path(__file__).resolve().parents[3] / "context/content/testdata/world"
SHAPES = sorted(path.stem for path in WORLD.glob("*.json"))
NO_TOOLS = loombridge.PromptSettings(tools=loombridge.ToolSelection(none=True))

FORMATS: dict[loombridge.PromptFormat, tuple[str, Any, dict[str, Any]]] = {
    "openai": ("gpt-4o", openai_chat, {"model": "m"}),
    "openai_responses": ("gpt-4o", openai_responses, {"model": "m"}),
    "anthropic": ("claude-sonnet-4-5", anthropic_messages, {"model": "m", "max_tokens": 9}),
    "gemini": ("gemini-2.5-pro", gemini_content, {}),
}

HOSTS_OF_CHAT = re.compile("deepseek|kimi|openrouter|gemini_chat|qwen|mistral|ollama|langchain")
"""Shapes of hosts that take fields in Chat that OpenAI does not."""


def read(name: str) -> dict[str, Any]:
    """Return a shape, with signatures as the pretended providers make them."""
    text = (WORLD / f"{name}.json").read_text()
    return json.loads(re.sub(r"SIGN\(([^)]*)\)", lambda found: sign(found[1]), text))


def message(form: str, m: dict[str, Any]) -> loombridge.Message:
    """Return a message as a client of its provider hands it over."""
    match form:
        case "mixed":
            return message(m["as"], m["message"])
        case "claude_code":
            return loombridge.Message.from_anthropic(m["message"])
        case "anthropic":
            return loombridge.Message.from_anthropic(m)
        case "gemini":
            return loombridge.Message.from_gemini(m)
        case "codex":
            return message("openai_responses", m["payload"])
        case "openai_responses":
            theirs = m.get("role") == "user" or m["type"].endswith("_output")
            if theirs:
                return loombridge.Message(role="user", blocks=m.get("content", [m]))
            return loombridge.Message.from_openai_responses([m])
        case _:
            return loombridge.Message.from_openai(m)


def without_host_fields(body: dict[str, Any]) -> dict[str, Any]:
    for each in body["messages"]:
        for name in ("reasoning_content", "reasoning", "reasoning_details"):
            each.pop(name, None)
        for call in each.get("tool_calls", ()):
            for name in ("index", "extra_content"):
                call.pop(name, None)
        if each["role"] == "tool":
            each.pop("tool_name", None)
    return body


async def problems(name: str, client: loombridge.Client) -> list[str]:
    """Return what is wrong with the prompts of a shape."""
    shape = read(name)
    for m in shape["messages"]:
        await client.context.append(message(shape["form"], m))
    found: list[str] = []
    for form, (model, provider, beside) in FORMATS.items():
        prompt = await client.context.assemble(
            model=model, format=form, settings=NO_TOOLS, tools=False, max_tokens=20_000
        )
        text = cast("str", getattr(prompt, f"{form}_json"))
        body = json.loads(text)
        if form == "openai" and HOSTS_OF_CHAT.match(name):
            body = without_host_fields(body)
        try:
            provider.check({**beside, **body})
        except RefusedError as err:
            found.append(f"{form}: {err}: {text}")
        said = json.dumps(body, ensure_ascii=False).replace("\\\\", "\\")
        found += [f"{form} lacks {each!r}: {text}" for each in shape["shows"] if each not in said]
        never = [*shape.get("never", ()), *(("cache_control",) if form != "anthropic" else ())]
        found += [f"{form} has {each!r}" for each in never if each in said]
        for owner, kept in shape.get("keeps", {}).items():
            found += [
                f"{form} and {each!r} of {owner}: {text}"
                for each in kept
                if (owner == form) != (each in text)
            ]
    return [f"{name}: {each}" for each in found]


async def test_every_shape_is_valid_in_every_format(srv: testing.Server) -> None:
    assert len(SHAPES) >= 80
    found: list[str] = []
    for name in SHAPES:
        async with loombridge.connect(srv.address, agent_id=name, session_id="s1") as client:
            found += await problems(name, client)
    assert not found, "\n".join(found)
