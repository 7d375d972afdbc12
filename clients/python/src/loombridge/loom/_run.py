"""One run of a cognitive loop, whose history the server keeps."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from loombridge import _client, _errors, _prompt, _receipts, _steps
from loombridge.loom import _calls, _entries, _react

MAX_TOKENS = 32_000
"""The budget of a prompt unless `attach` is given another: what the models of today all
have room for, with their answer."""

RECORD_SECONDS = 5.0
"""Seconds that a prompt waits for the steps before it to be recorded."""

AWAY_SECONDS = 0.1
"""The same after it waited in vain, until the server is back."""

ASSEMBLE_SECONDS = 10.0
"""Seconds that the server may take to assemble a prompt."""

_log = logging.getLogger("loombridge.loom")


@dataclass(frozen=True, slots=True)
class Settings:
    """How an attached agent's prompts are made."""

    session_id: str = ""
    """The one session of all runs; empty: each run has its own."""
    max_tokens: int = MAX_TOKENS
    """The budget of a prompt."""
    history: _receipts.HistorySettings | None = None
    """How the history is made; None: as the server does."""


@dataclass(slots=True)
class Run:
    """One run of the cognitive loop, and what its prompts cost so far."""

    goal: str
    """What it works towards."""
    session_id: str
    """The session that has its steps, which `ctx.context` of the client takes."""
    prompts: int = 0
    """How many prompts the server assembled."""
    own_prompts: int = 0
    """How many loom-py made by itself, since the server could not."""
    cost: float = 0.0
    """What the assembled ones should be billed, in units of one input token."""
    append_only_cost: float = 0.0
    """The same with nothing folded."""
    receipt: _receipts.Receipt | None = field(default=None, repr=False)
    """The account of the last one."""


class Keeper:
    """Brings what a run does into the log, and gets its prompts from there.

    Whatever goes wrong, the loop goes on with the prompt that loom-py made.
    """

    def __init__(
        self,
        goal: str,
        settings: Settings,
        client: Callable[[], Awaitable[_client.Client]],
        add: Callable[[_entries.Entry], None],
    ) -> None:
        """Begin a run; `client` returns the connected client, `add` records an entry."""
        self.run = Run(goal, settings.session_id or f"run-{uuid.uuid4().hex[:12]}")
        self._own_session = not settings.session_id
        self._settings = settings
        self._client = client
        self._add = add
        self._words = ""
        # What the model said last, until it is known whether a call came of it.
        self._waiting = 0
        self._recorded = asyncio.Event()
        self._recorded.set()
        self._patience = RECORD_SECONDS
        self._gap = False
        self._told = False
        self._say("user", _react.goal(goal))

    async def prompt(self, own: str, system: str, model: str) -> "Asked":
        """Return the prompt to send: assembled, or else loom-py's own."""
        self._say_words()
        try:
            prompt = await self._assemble(system, model)
            asked = Asked(_react.text(prompt.messages), prompt.receipt.prompt_id)
        except Exception as err:
            # Whatever it is, the loop has another prompt.
            self._tell(err)
            self.run.own_prompts += 1
            return Asked(own)
        self.run.prompts += 1
        self.run.cost += prompt.receipt.cost
        self.run.append_only_cost += prompt.receipt.append_only_cost
        self.run.receipt = prompt.receipt
        return asked

    async def _assemble(self, system: str, model: str) -> _prompt.Prompt:
        if not await self.is_recorded():
            raise _errors.ServerUnreachableError("steps of the run are not recorded")
        client = await self._client()
        return await client.context.assemble(
            model=_calls.clean(model) or None,
            max_tokens=self._settings.max_tokens,
            system=_calls.clean(system),
            tools=False,
            history=self._settings.history,
            session_id=self.run.session_id,
            timeout=ASSEMBLE_SECONDS,
        )

    async def is_recorded(self) -> bool:
        """Wait until all of the run so far is recorded; False: not in time, or never."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._recorded.wait()
        done = self._recorded.is_set()
        self._patience = RECORD_SECONDS if done else AWAY_SECONDS
        return done and not self._gap

    def heard(self, words: str, asked: "Asked", usage: object) -> None:
        """Take what the model answered, and what its provider counted."""
        self._words = words
        if asked.prompt_id and _react.counts(usage):
            self._add(
                _entries.Usage(
                    session_id=self.run.session_id,
                    prompt_id=asked.prompt_id,
                    usage=cast("Mapping[str, Any]", usage),
                )
            )

    def take_thought(self) -> str:
        """Return what the model said before the call that runs now."""
        words, self._words = self._words, ""
        return _react.thought(words)

    def step(
        self, call: _calls.Call, thought: str, taken: Callable[[_steps.Step], None]
    ) -> _entries.Step:
        """Return a call of this run as an entry of its session."""
        self._wait_for_one()
        return _entries.Step(
            session_id=self.run.session_id,
            over=self._over,
            call=call,
            thought=thought,
            taken=taken,
        )

    def end(self) -> None:
        """Record what was said last; nothing more comes of this run."""
        self._say_words()
        if self._own_session:
            self._add(_entries.End(session_id=self.run.session_id))

    def _say_words(self) -> None:
        words, self._words = self._words, ""
        if words:
            self._say("assistant", words)

    def _say(self, role: _prompt.Role, text: str) -> None:
        self._wait_for_one()
        self._add(
            _entries.Words(session_id=self.run.session_id, over=self._over, role=role, text=text)
        )

    def _wait_for_one(self) -> None:
        self._waiting += 1
        self._recorded.clear()

    def _over(self, recorded: bool) -> None:
        self._waiting -= 1
        self._gap = self._gap or not recorded
        if not self._waiting:
            self._recorded.set()

    def _tell(self, err: Exception) -> None:
        level = logging.DEBUG if self._told else logging.WARNING
        self._told = True
        _log.log(level, "the agent goes on with loom-py's own prompts: %s", err)


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt as it goes to the model."""

    text: str
    """Its text."""
    prompt_id: str = ""
    """Its name, when the server assembled it."""
