"""The same loop, driven by a language model over OpenAI's chat completions API."""

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import loombridge
from _agent import Agent
from _planner import Action, Finding

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o"

ROOM = 112_000
"""Tokens of a prompt: a window of 128,000, less what the model may answer."""

TIMEOUT = 120.0
"""Seconds a model may take to answer."""


class ModelError(Exception):
    """The model could not be reached, or did not answer as it should."""


@dataclass(frozen=True)
class Model:
    """Where the model is and how to ask it."""

    url: str
    name: str
    key: str

    @classmethod
    def from_environment(cls) -> "Model":
        """Take OPENAI_API_KEY, and OPENAI_BASE_URL and OPENAI_MODEL where they are set."""
        key = os.environ.get("OPENAI_API_KEY", "")
        if not key:
            raise ModelError("--llm needs OPENAI_API_KEY in the environment")
        url = os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
        if not url.startswith(("http://", "https://")):
            raise ModelError(f"OPENAI_BASE_URL is no web address: {url}")
        return cls(url.rstrip("/"), os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL, key)

    async def ask(self, prompt: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Send a prompt, its messages and tools; return the model's message and the usage."""
        return await asyncio.to_thread(self._post, {"model": self.name, **prompt})

    def _post(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        request = urllib.request.Request(  # noqa: S310  checked to be http(s) above
            f"{self.url}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
                told = cast("dict[str, Any]", json.load(answer))
                return told["choices"][0]["message"], told.get("usage") or {}
        except urllib.error.HTTPError as err:
            text = err.read(500).decode(errors="replace")
            raise ModelError(f"{self.url} answers {err.code}: {text}") from err
        except (OSError, ValueError, LookupError) as err:
            raise ModelError(f"{self.url} gives no answer that can be used: {err}") from err


async def explore(agent: Agent, model: Model, say: Callable[[str], None]) -> None:
    """Let the model choose the tools until it is content or the steps are used up."""
    turn = 0
    while not agent.done:
        turn += 1
        prompt = await agent.prompt("openai")
        message, usage = await model.ask(prompt.openai())
        if usage:
            await agent.learn(prompt, usage)
        kept = {key: message[key] for key in ("content", "tool_calls") if message.get(key)}
        if kept:
            await agent.record({"role": "assistant", **kept})
        text = str(kept.get("content", "")).strip()
        if text:
            say(f"  model: {text.splitlines()[0][:90]}")
            await agent.remember(Finding(text.splitlines()[0][:200], text, "", ("model",)))
        calls: list[dict[str, Any]] = kept.get("tool_calls", [])
        if not calls:
            return
        for call in calls:
            await _run(agent, call, f"turn-{turn}", prompt)


async def _run(
    agent: Agent, call: Mapping[str, Any], turn_id: str, prompt: loombridge.Prompt
) -> None:
    """Run one call; a refusal becomes a result too, so that the model sees it."""
    function: Mapping[str, Any] = call["function"]
    try:
        arguments = json.loads(function.get("arguments") or "{}")
        action = Action(str(function["name"]), arguments, "")
        result = await agent.act(action, call_id=str(call["id"]), turn_id=turn_id)
    except (loombridge.LoomBridgeError, TypeError, ValueError, LookupError) as err:
        refusal = {"role": "tool", "tool_call_id": call["id"], "content": f"Refused: {err}"}
        await agent.record(refusal)
    else:
        agent.report(action, result, prompt)
