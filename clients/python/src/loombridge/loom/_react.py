"""The text form of a conversation, for models that are asked as loom-py asks them.

loom-py puts all of a prompt but its system part into one message, in which the model's
own words are marked as thought and action, and what a tool gave as observation.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from loombridge import _prompt

QUESTION = "What is your next thought, action or final answer?"
"""Stands last."""

_MARK = re.compile(r"^\s*Thought\s*\d*\s*:\s*", re.IGNORECASE)
_ACTION = re.compile(r"(?:^|\n)[ \t]*Action\s*\d*\s*:|```|\{", re.IGNORECASE)
# Where the thought before a call ends.


def goal(text: str) -> str:
    """Return a goal as the loop's first message."""
    return f"Goal: {text}"


def thought(words: str) -> str:
    """Return what a model's words say before the call they ask for."""
    return _MARK.sub("", _ACTION.split(words, maxsplit=1)[0]).strip()


def text(messages: Iterable[_prompt.Message]) -> str:
    """Return messages, except system messages, as one text that ends in a question."""
    said = [part for each in messages if each.role != "system" for part in _parts(each)]
    return "\n\n".join([*said, QUESTION])


def _parts(message: _prompt.Message) -> Iterable[str]:
    content = message.content or _of_blocks(message.blocks)
    if message.role == "tool":
        yield f"Observation: {content}"
        return
    if content:
        yield f"Thought: {content}" if message.tool_calls else content
    for call in message.tool_calls:
        yield f"Action: {_action(call)}"


def _action(call: _prompt.ToolCall) -> str:
    try:
        args = json.loads(call.arguments or "{}")
    except ValueError:
        args = call.arguments
    return json.dumps({"tool": call.name, "args": args}, ensure_ascii=False)


def _of_blocks(blocks: Any) -> str:
    return "" if blocks is None else json.dumps(blocks, ensure_ascii=False)


def counts(usage: object) -> bool:
    """Report whether a provider's usage contains the size of the prompt."""
    if not isinstance(usage, Mapping):
        return False
    told = cast("Mapping[str, Any]", usage)
    sizes = (told.get("prompt_tokens"), told.get("input_tokens"))
    return any(isinstance(size, int) and size > 0 for size in sizes)
