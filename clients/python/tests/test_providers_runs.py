"""Recorded runs of agents, as prompts for every provider.

LOOM_EVAL_DATA names the folder that holds trajectories/. Some runs of each file are
replayed, or all of them with LOOM_EVAL_ALL=1.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import loombridge
from providers import Provider
from providers.libraries import LIBRARIES

DATA = os.environ.get("LOOM_EVAL_DATA", "")
ALL = os.environ.get("LOOM_EVAL_ALL") == "1"

SAMPLE = 1
"""Runs of each file, where not all are asked for."""

PLACES = 4
"""Prompts of a run, evenly spread; the last one has all of it."""

MAX_TOKENS = 32_000
"""The budget, which makes long runs fold. Some demonstrations hold that much that stays."""

KNOWN = {
    "system": ("content",),
    "user": ("content",),
    "assistant": ("content", "tool_calls"),
    "tool": ("content", "tool_call_id"),
}
"""What of a message is the provider's; the rest was noted by who recorded it."""


def runs(name: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of runs. Those of the role exit end one."""
    with (Path(DATA) / "trajectories" / name).open() as lines:
        for i, line in enumerate(lines):
            if i >= SAMPLE and not ALL:
                return
            yield [
                {key: m[key] for key in ("role", *KNOWN[m["role"]]) if m.get(key) is not None}
                for m in json.loads(line)["messages"]
                if m["role"] in KNOWN
            ]


def places(messages: list[dict[str, Any]]) -> list[int]:
    """Return how many messages each prompt has."""
    return sorted({max(len(messages) * n // PLACES, 1) for n in range(1, PLACES + 1)})


# E06, M05
@pytest.mark.skipif(not DATA, reason="LOOM_EVAL_DATA names no folder of recorded runs")
@pytest.mark.parametrize("name", ["mini_swe_dev.jsonl", "tau_dev.jsonl", "swe_agent_demos.jsonl"])
async def test_recorded_runs_are_taken(name: str, live: loombridge.Client) -> None:
    sent = marks = steps = count = 0
    with ExitStack() as stack:
        served = {key: stack.enter_context(each.serve()) for key, each in LIBRARIES.items()}
        for messages in runs(name):
            count += 1
            session = f"{name}-{count}"
            done = 0
            for place in places(messages):
                for first in range(done, place, 100):
                    part = messages[first : min(first + 100, place)]
                    await live.context.append(*part, session_id=session)
                done = place
                for key, provider in served.items():
                    prompt = await ask(live, key, provider, session)
                    sent += 1
                    marks += len(prompt.cache_marks)
                    assert len(prompt.cache_marks) <= 4
            steps += sum(m["role"] == "assistant" for m in messages)
        refusals = [text for provider in served.values() for text in provider.refusals]
    print(f"{name}: {count} runs, {steps} steps, {sent} prompts, {marks} cache marks")
    assert refusals == []


async def ask(
    live: loombridge.Client, key: str, provider: Provider, session: str
) -> loombridge.Prompt:
    library = LIBRARIES[key]
    prompt = await live.context.assemble(
        goal="Go on.",
        system="You are an agent.",
        model=library.model,
        format=library.format,
        max_tokens=MAX_TOKENS,
        session_id=session,
    )
    await library.ask(provider, prompt)
    provider.requests.clear()
    return prompt
