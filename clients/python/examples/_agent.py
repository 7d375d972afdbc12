"""The exploring agent's hands: act, save, share, and look at its own prompt."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import loombridge
from _ledger import Blob, Ledger, Memory, sha256
from _patience import insist
from _planner import Action, Finding
from loombridge import Prompt, PromptFormat, ToolResult

TOPIC = "repo.findings"

SYSTEM = (
    "You explore a source repository through tools. Look at folders, files and the use "
    "of names; say in a sentence or two what you learned."
)


ALWAYS_TOLD = 4
"""Steps at the beginning that are always printed."""


class Agent:
    """One agent at work.

    Each call has a request_id and is made until it is answered, so a server that dies
    in the middle costs time, and nothing else.
    """

    def __init__(
        self,
        ctx: loombridge.Client,
        *,
        goal: str,
        steps: int,
        every: int = 1,
        say: Callable[[str], None] = print,
    ) -> None:
        """Work towards goal with at most that many steps; print the first, and every n-th."""
        self.ctx = ctx
        self.goal = goal
        self.steps = steps
        self.model = "gpt-4o"
        """The model whose tokens are counted."""
        self.room = 64_000
        """Tokens that a prompt may have: old steps are folded long before."""
        self.ledger = Ledger()
        self.halfway = asyncio.Event()
        """Set when half of the steps are done, just before the next one begins."""
        self._every = every
        self._say = say
        self._run = uuid.uuid4().hex[:12]
        self._calls = 0

    @property
    def done(self) -> bool:
        """All steps are taken."""
        return len(self.ledger.steps) >= self.steps

    async def act(
        self, action: Action, *, call_id: str | None = None, turn_id: str | None = None
    ) -> ToolResult:
        """Run a tool, note the step and what it offloaded."""
        if len(self.ledger.steps) >= self.steps // 2:
            self.halfway.set()
        request_id = self._request_id("tool")
        result = await insist(
            lambda: self.ctx.tool(
                action.tool,
                action.arguments,
                thought=action.thought,
                call_id=call_id,
                turn_id=turn_id,
                request_id=request_id,
            )
        )
        if result.step is None:
            raise RuntimeError(f"{action.tool} ran, but was not recorded: {result.record_error}")
        self.ledger.steps.append(result.step.id)
        if result.blob is not None:
            await self._note_blob(result.blob, action, result.output)
        return result

    async def _note_blob(
        self, blob: loombridge.BlobInfo, action: Action, output: Mapping[str, Any] | None
    ) -> None:
        data = await insist(lambda: self.ctx.context.read_blob(blob.path))
        content = (output or {}).get("content")
        if action.tool == "fs:read_file" and isinstance(content, str) and content.encode() != data:
            raise RuntimeError(f"{blob.path} is not what {action.target} says")
        self.ledger.blobs.append(Blob(blob.path, blob.step_id, blob.ref, sha256(data)))

    async def remember(self, finding: Finding) -> None:
        """Save a finding and send it to the others."""
        request_id = self._request_id("memory")
        saved = await insist(
            lambda: self.ctx.memory_save(
                finding.text,
                kind="fact",
                metadata={"title": finding.title, "path": finding.path},
                tags=finding.tags,
                origin="tool",
                request_id=request_id,
            )
        )
        self.ledger.memories.append(Memory(saved.id, finding.text, finding.title, finding.path))
        await self._tell(saved.id, finding)

    async def _tell(self, record_id: str, finding: Finding) -> None:
        request_id = self._request_id("event")
        news = {"record": record_id, "title": finding.title, "path": finding.path}
        emitted = await insist(lambda: self.ctx.emit(TOPIC, news, request_id=request_id))
        self.ledger.events.append(emitted.sequence)

    async def prompt(self, format: PromptFormat = "neutral") -> Prompt:  # noqa: A002
        """Assemble the prompt that a model would get now."""
        prompt = await insist(
            lambda: self.ctx.context.assemble(
                goal=self.goal,
                system=SYSTEM,
                model=self.model,
                max_tokens=self.room,
                format=format,
            )
        )
        self.ledger.prompts.append(prompt.tokens)
        self.ledger.billed += prompt.receipt.cost
        self.ledger.append_only += prompt.receipt.append_only_cost
        if batch := prompt.receipt.batch:
            self._say(
                f"  fold      {len(list(batch.each_ref()))} steps, "
                f"{batch.before_tokens:,} tokens into {batch.after_tokens:,}, by {batch.reason}"
            )
        return prompt

    async def learn(self, prompt: Prompt, usage: Mapping[str, Any]) -> None:
        """Tell the server what the provider counted; it need not know the prompt any more."""
        with suppress(loombridge.PromptUnknownError):
            await insist(lambda: self.ctx.context.report_usage(prompt, usage))

    async def record(self, message: Mapping[str, Any]) -> None:
        """Keep a message of the conversation, in OpenAI's form."""
        request_id = self._request_id("message")
        await insist(lambda: self.ctx.context.append(message, request_id=request_id))

    def report(self, action: Action, result: ToolResult, prompt: Prompt) -> None:
        """Print one line about a step, if this step is to be printed."""
        taken = len(self.ledger.steps)
        if taken > ALWAYS_TOLD and taken % self._every:
            return
        text = result.observation.splitlines()[0]
        step = result.step.id if result.step else "?"
        self._say(f"  {step}  {prompt.tokens:>7,} tokens  {action.tool:<13} {_short(text)}")

    def _request_id(self, kind: str) -> str:
        self._calls += 1
        return f"{self._run}-{kind}-{self._calls}"


def _short(text: str) -> str:
    return text if len(text) <= 70 else text[:69] + "…"
