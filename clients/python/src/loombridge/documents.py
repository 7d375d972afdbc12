"""The names of the design documents, as thin classes over the calls of a client.

    from loombridge.documents import StepCompactor, StepReducer, TokenCounter
    from loombridge.documents import TaskContextManager, VectorKnowledgeBase

    step = await StepReducer(ctx).reduce("fs:read_file", {"path": "config.json"}, {"content": text})
    print((await StepCompactor(ctx).compact(step)).summary)         # Read config.json (1.2KB)
    base = VectorKnowledgeBase(ctx)
    await base.add("The desk closes at 17:30", title="Hours", source="desk.md")
    manager = TaskContextManager(TokenCounter(ctx), system_prompt="Careful.", knowledge_base=base)
    messages = await manager.build_context("When does the desk close?")

They are for who writes an agent by those documents. Nothing is computed here: the server
reduces, compacts, offloads and counts, and what these classes return is what it kept.
`ctx.context` has the same calls with all their options. There is no `MessageConverter`: tasks
become messages in the server, as it builds a prompt.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from loombridge import (
    _client,
    _context,
    _errors,
    _prompt,
    _receipts,
    _results,
    _settings,
    _steps,
    _values,
)

__all__ = [
    "KNOWLEDGE_KIND",
    "OFFLOAD_THRESHOLD",
    "OFFLOAD_TOOL",
    "SOURCES",
    "CompactStep",
    "ContextEngineeringManager",
    "DataOffloader",
    "EmbeddingProvider",
    "EventBusContextSource",
    "IsolatedContext",
    "KnowledgeItem",
    "MemoryContextSource",
    "StepCompactor",
    "StepReducer",
    "StructuralVariation",
    "TaskContextManager",
    "TodoRewriter",
    "TokenCounter",
    "VectorKnowledgeBase",
]

OFFLOAD_THRESHOLD = 1000
"""Bytes from which `DataOffloader.maybe_offload` puts data away."""

_GOAL_HEAD = "Current Goal: "

OFFLOAD_TOOL = "data:offload"
"""The tool of steps that hold data which is no step's result."""

KNOWLEDGE_KIND = "knowledge"
"""The kind of records that prompts take knowledge from."""

SOURCES = ("tasks", "events", "messages", "user_memory", "knowledge", "playbook", "notes")
"""The parts of a task's context other than its messages."""

EmbeddingProvider: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""An async function that returns one vector for each text."""


@dataclass(frozen=True, slots=True)
class CompactStep:
    """A step as one line."""

    id: str
    """The step's own."""
    summary: str
    """Such as `Read config.json (1.2KB)`."""


class StepReducer:
    """Keeps the part of a call that is needed to go on; the whole result can be read back."""

    def __init__(self, ctx: _client.Client) -> None:
        """Reduce steps of this client's agent and session."""
        self._context = ctx.context

    async def reduce(
        self,
        tool_name: str,
        args: Mapping[str, _values.JsonValue] | None = None,
        result: _results.Output = None,
        *,
        error: str | None = None,
        thought: str | None = None,
    ) -> _steps.Step:
        """Record a call by the rule of its tool, and return what is kept of it.

        The server counts the steps, and offloads what is too long for a prompt.

        Args:
            tool_name: such as `fs:read_file` or `fs_read_file`; any name will do.
            args: what the tool was called with.
            result: what it gave; fields that are missing or of another type count as
                empty.
            error: what went wrong; default: the tool did its work.
            thought: what the model said before the call.

        Raises:
            InvalidRequestError: the name or the arguments break a rule.
        """
        recorded = await self._context.record_step(
            tool_name, args, output=result, error=error, thought=thought
        )
        return recorded.step


class StepCompactor:
    """Shows steps as lines, by rules and without a model. It changes nothing."""

    def __init__(self, ctx: _client.Client) -> None:
        """Compact steps of this client's agent and session."""
        self._context = ctx.context

    async def compact(self, step: _steps.Step | str) -> CompactStep:
        """Return a step, or that of an id, as one line.

        Raises:
            BlobNotFoundError: the agent has no such step.
        """
        name = step.id if isinstance(step, _steps.Step) else _values.text("step", step)
        line = await self._context.read_blob(f"workspace/history/{name}.compact")
        return CompactStep(name, line.decode().rstrip("\n"))

    async def compact_many(
        self, steps: Iterable[_steps.Step | str] = (), keep_recent: int = 3
    ) -> str:
        """Return steps as text: the last in full, under `Previous steps:` a line for others.

        Args:
            steps: steps of the session, at most 1,000; default: all of them.
            keep_recent: how many stand in full, at least 1.

        Raises:
            StepNotFoundError: the session has not one of them.
        """
        return await self._text("design", steps, _positive("keep_recent", keep_recent), None)

    async def compact_history(
        self, steps: Iterable[_steps.Step | str] = (), token_budget: int = 500
    ) -> str:
        """Return steps as text: the last three in full, and lines for the earlier ones.

        Lines over the budget become `Earlier: {n} steps completed`. Of a few steps it saves
        little, since the last three have their results: `compact_many` leaves those out.

        Args:
            steps: steps of the session, at most 1,000; default: all of them.
            token_budget: what the lines may take, at least 1.

        Raises:
            StepNotFoundError: the session has not one of them.
        """
        return await self._text("reduction", steps, 3, _positive("token_budget", token_budget))

    async def _text(
        self, style: Any, steps: Iterable[_steps.Step | str], keep: int, budget: int | None
    ) -> str:
        done = await self._context.compact(
            style=style, steps=steps, keep_recent=keep, max_tokens=budget
        )
        return done.text


class DataOffloader:
    """Keeps long data out of the prompt, under a path that gives it back."""

    def __init__(self, ctx: _client.Client) -> None:
        """Offload data of this client's agent and session.

        Raises:
            TypeError: a path was given: the server keeps the data, and says where.
        """
        if not hasattr(ctx, "context"):
            raise TypeError(f"DataOffloader takes a client, as in DataOffloader(ctx), not {ctx!r}")
        self._context = ctx.context

    async def maybe_offload(
        self, data: _values.JsonValue | bytes, step_id: str, ext: str = "json"
    ) -> str | None:
        """Offload data of `OFFLOAD_THRESHOLD` bytes and more; None for less."""
        if len(_data(data)[1]) < OFFLOAD_THRESHOLD:
            return None
        return await self.offload(data, step_id, ext)

    async def offload(
        self, data: _values.JsonValue | bytes, step_id: str, ext: str = "json"
    ) -> str:
        """Return the path under which the server keeps data.

        The server offloads the results of steps as it records them: the data of such a
        step is not stored again, and `workspace/outputs/{step_id}.{ext}` leads to it.
        Data that is no step's result becomes the result of a new step of the tool `data:offload`,
        whose path is returned.

        Args:
            data: text, bytes, or anything else as JSON.
            step_id: the step that it is the result of.
            ext: the ending of the path, as the server chose it: `json`, `txt`, `log` or
                `bin`.
        """
        output, content = _data(data)
        if path := await self._kept(step_id, ext, content):
            return path
        recorded = await self._context.record_step(
            OFFLOAD_TOOL, {"step_id": _values.text("step_id", step_id)}, output=output
        )
        # What is short stays in the log, and is read back by the name of its step.
        return recorded.step.outcome_path or recorded.step.id

    async def _kept(self, step_id: str, ext: str, content: bytes) -> str | None:
        """Return a name that leads to the step's result, if that is the content."""
        for name in (f"workspace/outputs/{step_id}.{ext}", step_id):
            try:
                async with self._context.stream_blob(name) as stream:
                    digest = sha256()
                    async for piece in stream:
                        digest.update(piece)
            except (_errors.BlobNotFoundError, _errors.InvalidRequestError):
                continue
            if digest.digest() == sha256(content).digest():
                return name
        return None

    async def read(self, path: str) -> bytes:
        """Return the offloaded data, byte for byte.

        Raises:
            BlobNotFoundError: there is nothing under that path.
        """
        return await self._context.read_blob(path)


class IsolatedContext:
    """An agent's own context, not shared with other agents."""

    def __init__(self, ctx: _client.Client, root: str = "workspace") -> None:
        """Show the context of this client's agent.

        Args:
            ctx: the client.
            root: the folder that holds the folders of agents.
        """
        self._context = ctx.context
        self._agent_id = ctx.agent_id
        self._root = root.rstrip("/")

    @property
    def agent_id(self) -> str:
        """Whose context it is."""
        return self._agent_id

    @property
    def workspace(self) -> str:
        """The agent's own folder, `{root}/{agent_id}`, for paths of the file tools.

        That is a convention: agents that were not spawned work in one folder of the
        server, and nothing keeps them out of each other's.
        """
        return f"{self._root}/{self._agent_id}"

    async def steps(self) -> tuple[_steps.Step, ...]:
        """Return all steps of the session, oldest first; a new agent has none."""
        return tuple([step async for step in self._context.all_steps()])

    async def working_memory(self) -> tuple[_steps.Step, ...]:
        """Return the last five steps of the session, oldest first."""
        return await self._context.steps()


class TokenCounter:
    """Counts as a model would: by its own vocabulary, or a rule of its provider."""

    def __init__(self, ctx: _client.Client, model: str = "gpt-4o") -> None:
        """Count for a model; an unknown one is estimated."""
        self.context: _context.Context = ctx.context
        self.model = model

    async def count(self, text: str) -> int:
        """Return the tokens of a text of at most 1 MiB."""
        return (await self.context.count_tokens(text, model=self.model)).tokens

    async def estimate_tokens(self, text: str) -> int:
        """Return the same: budgets are checked with the counter that counts everything."""
        return await self.count(text)

    async def count_messages(self, messages: Iterable[_prompt.Message | Mapping[str, Any]]) -> int:
        """Return the tokens of a request with these messages, what the provider adds too."""
        return (await self.context.count_messages(messages, model=self.model)).tokens


@dataclass(frozen=True, slots=True)
class KnowledgeItem:
    """A piece of knowledge that fits a query."""

    title: str
    """What it is called, or empty."""
    content: str
    """What it says."""
    source: str
    """Where it is from, or empty."""
    type: str
    """What sort of text it is, or empty."""
    score: float
    """From 0 to 1: how sure the search is."""


class VectorKnowledgeBase:
    """Knowledge that prompts take from by themselves: records of the kind `knowledge`."""

    def __init__(
        self,
        ctx: _client.Client,
        embedding_provider: EmbeddingProvider | None = None,
        embedding_space: str = "documents",
    ) -> None:
        """Keep knowledge in the memory of this client's agent.

        Args:
            ctx: the client.
            embedding_provider: makes the vectors of `add` and `query`. Default: the
                server's embedder, where it has one, and words.
            embedding_space: names the provider's model, as vectors of different ones
                are never compared.
        """
        self._ctx = ctx
        self._embed = embedding_provider
        self._space = embedding_space

    async def add(
        self,
        content: str,
        *,
        title: str = "",
        source: str = "",
        type: str = "",  # noqa: A002  the documents' own word
        request_id: str | None = None,
    ) -> str:
        """Keep a piece of knowledge; return the id of its record."""
        given = {"title": title, "source": source, "type": type}
        saved = await self._ctx.memory_save(
            content,
            kind=KNOWLEDGE_KIND,
            metadata={key: value for key, value in given.items() if value},
            request_id=request_id,
            **await self._vector(content),
        )
        return saved.id

    async def query(self, query: str, limit: int = 3) -> list[KnowledgeItem]:
        """Return the pieces that fit a query best, the best first."""
        hits = await self._ctx.memory_query(
            query,
            limit=limit,
            filter=f'kind = "{KNOWLEDGE_KIND}"',
            **await self._vector(query),
        )
        return [
            KnowledgeItem(
                title=_text(hit.record.metadata.get("title")),
                content=hit.record.text,
                source=_text(hit.record.metadata.get("source")),
                type=_text(hit.record.metadata.get("type")),
                score=hit.score,
            )
            for hit in hits
        ]

    async def _vector(self, text: str) -> dict[str, Any]:
        if self._embed is None:
            return {}
        (vector,) = await self._embed([text])
        return {"embedding": vector, "embedding_space": self._space}


@dataclass(frozen=True, slots=True)
class MemoryContextSource:
    """Recent tasks, as a source of `TaskContextManager`."""

    layers: Sequence[str] = ("L1",)
    """The tiers whose tasks are taken: `L1`, or `L1` and `L2`."""


@dataclass(frozen=True, slots=True)
class EventBusContextSource:
    """Events of the agent and its parent, as a source of `TaskContextManager`."""

    actions: Sequence[str] = ("node.thinking", "node.tool_call")
    """Which events are taken, at most 32 actions: the best 20, none where there are fewer
    than two."""


class TaskContextManager:
    """Builds the messages for a task: system prompt, what happened, knowledge, the task."""

    def __init__(
        self,
        token_counter: TokenCounter,
        sources: Iterable[str | MemoryContextSource | EventBusContextSource] | None = None,
        max_tokens: int = 4000,
        system_prompt: str = "",
        knowledge_base: VectorKnowledgeBase | None = None,
    ) -> None:
        """Say what contexts are made of.

        Args:
            token_counter: counts for a model, and brings the client along.
            sources: which of `SOURCES` are taken, by name or as a source with options of its
                own; default: all.
            max_tokens: what a context may take.
            system_prompt: stands first.
            knowledge_base: is asked with each task. Default: no knowledge is taken.

        Raises:
            ValueError: a source is none.
        """
        names: list[str] = []
        options: dict[str, Any] = {}
        given = SOURCES if sources is None else sources
        for source in _values.texts("sources", given) if isinstance(given, str) else given:
            if isinstance(source, MemoryContextSource):
                names.append("tasks")
                options["memory_layers"] = source.layers
            elif isinstance(source, EventBusContextSource):
                names.append("events")
                options["event_actions"] = source.actions
            else:
                names.append(source)
        chosen = set(_values.texts("sources", names))
        if unknown := sorted(chosen - set(SOURCES)):
            raise ValueError(f"sources has {unknown[0]!r}; there is {', '.join(SOURCES)}")
        if knowledge_base is None:
            chosen.discard("knowledge")
        else:
            chosen.add("knowledge")
        self._counter = token_counter
        self._max_tokens = max_tokens
        self._system = system_prompt
        self._sources = _settings.SourceSettings(
            exclude=tuple(name for name in SOURCES if name not in chosen), **options
        )

    async def build_context(self, task: str) -> list[dict[str, str]]:
        """Return the messages for a task: role and content each, the task last.

        Tools are no messages, and take nothing of the limit. Over it the middle leaves: the
        system prompt and the newest stay.

        Raises:
            ContextOverflowError: system prompt and task do not fit.
        """
        prompt = await self._assembled(task, tools=False)
        return [{"role": each.role, "content": each.content} for each in prompt.messages]

    async def build(self, task: str) -> _prompt.Prompt:
        """Return the same as a prompt, with its tools, which take their room, and its receipt."""
        return await self._assembled(task, tools=True)

    async def _assembled(self, task: str, *, tools: bool) -> _prompt.Prompt:
        return await self._counter.context.assemble(
            goal=task,
            model=self._counter.model,
            max_tokens=self._max_tokens,
            system=self._system,
            tools=tools,
            history=_receipts.HistorySettings(preset="task_context"),
            settings=_settings.PromptSettings(
                layout="task_context",
                sources=self._sources,
                limits=_settings.InjectionLimits(
                    total=max(12_000, self._max_tokens), sections={"tasks": self._max_tokens}
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class StructuralVariation:
    """How often the form of runtime sections varies, by the session and the turn alone."""

    level: float = 0.3
    """From 0 to 0.8; 0 leaves the form as it is."""


class TodoRewriter:
    """Says the goal and how far it is at the end of prompts, where models heed it most."""

    def __init__(self, ctx: _client.Client) -> None:
        """Show the goal and the plan of this client's agent and session."""
        self._context = ctx.context

    async def rewrite(self, goal: str = "") -> str:
        """Return the block that ends the session's prompts, and record nothing.

        Args:
            goal: what the agent works towards; default: that of `update_working`. Where
                there is none, the block is empty.
        """
        prompt = await self._context.assemble(
            goal=goal,
            tools=False,
            dry_run=True,
            settings=_settings.PromptSettings(layout="three_phase"),
        )
        last = prompt.messages[-1].content if prompt.messages else ""
        _, head, block = last.rpartition(_GOAL_HEAD)
        return head + block


class ContextEngineeringManager:
    """Builds prompts of layout `three_phase`, which end with what `TodoRewriter` says."""

    def __init__(
        self,
        ctx: _client.Client,
        variation: StructuralVariation | None = None,
    ) -> None:
        """Build prompts of this client's agent and session.

        Args:
            ctx: the client.
            variation: how their form varies. Default: as configured.
        """
        self._context = ctx.context
        self._settings = _settings.PromptSettings(
            layout="three_phase",
            variation=variation and variation.level,
        )

    async def prepare(self, goal: str = "", *, model: str | None = None) -> _prompt.Prompt:
        """Return the session's prompt: varied, in the cache's order, the goal last.

        Raises:
            ContextOverflowError: what must stand in it does not fit.
        """
        return await self._context.assemble(goal=goal, model=model, settings=self._settings)


def _data(data: object) -> tuple[_results.Output, bytes]:
    """Return data as a step's output, and the bytes that the server keeps of it."""
    if isinstance(data, bytes | bytearray):
        return bytes(data), bytes(data)
    if isinstance(data, str):
        return data, _values.text("data", data).encode()
    text = _values.json_text("data", data)
    return _results.JsonText(text), text.encode()


def _positive(name: str, value: int) -> int:
    if _values.integer(name, value) < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
