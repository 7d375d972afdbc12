"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from loombridge import (
    _blobs,
    _compress,
    _context,
    _conversation,
    _definitions,
    _found,
    _prompt,
    _receipts,
    _renewal,
    _results,
    _settings,
    _steps,
    _tasks,
    _values,
    _working,
)
from loombridge.sync import _twin
from loombridge.sync._face.held import BlobListing, BlobSearch, BlobStream


@_twin.documented(_context.Context)
class Context(_twin.Twin):
    """What an agent did and said, and its prompts; reached as `ctx.context`."""

    def sessions(
        self, *, include_closed: bool = False, timeout: _values.Seconds | None = None
    ) -> Iterator[_conversation.SessionInfo]:
        """Yield the agent's sessions in the order of their ids, page by page."""
        return _twin.Iterated(
            self._home, self._run("sessions", include_closed=include_closed, timeout=timeout)
        )

    def conversation(
        self,
        *,
        newest_first: bool = False,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> Iterator[_conversation.ConversationEntry]:
        """Yield what was said and done in the session, folded or not, as it came."""
        return _twin.Iterated(
            self._home,
            self._run(
                "conversation", newest_first=newest_first, session_id=session_id, timeout=timeout
            ),
        )

    def diff_prompts(
        self,
        from_prompt: str | None = None,
        to_prompt: str | None = None,
        *,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _conversation.PromptsDiff:
        """Say where two prompts that the session has sent differ."""
        return self._await(
            "diff_prompts", from_prompt, to_prompt, session_id=session_id, timeout=timeout
        )

    def find_in_prompts(
        self,
        text: str = "",
        *,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _found.FoundInPrompts:
        """Say in which prompts that the session has sent a text stood, and what took it out."""
        return self._await("find_in_prompts", text, session_id=session_id, timeout=timeout)

    def list_blobs(
        self,
        *,
        session_id: str | None = None,
        step_id: str | None = None,
        kind: str | None = None,
        category: str | None = None,
        tier: _blobs.BlobTier | None = None,
        archived: bool = False,
        include_closed: bool = False,
        timeout: _values.Seconds | None = None,
    ) -> BlobListing:
        """Return the agent's blobs, for `for`; without arguments the blobs of open sessions."""
        return BlobListing(
            self._home,
            self._run(
                "list_blobs",
                session_id=session_id,
                step_id=step_id,
                kind=kind,
                category=category,
                tier=tier,
                archived=archived,
                include_closed=include_closed,
                timeout=timeout,
            ),
        )

    def promote_blob(
        self,
        name: str,
        *,
        tier: Literal["short_term", "long_term"],
        category: str | None = None,
        new_name: str | None = None,
        important: bool = False,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _steps.BlobInfo:
        """Keep a blob longer, or for ever, and give it a path under `persistent/`."""
        return self._await(
            "promote_blob",
            name,
            tier=tier,
            category=category,
            new_name=new_name,
            important=important,
            request_id=request_id,
            timeout=timeout,
        )

    def archive_blob(
        self,
        name: str,
        *,
        category: str | None = None,
        tags: Iterable[str] = (),
        new_name: str | None = None,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _steps.BlobInfo:
        """Put a blob into the archive, where it stays, with a path under `archive/`."""
        return self._await(
            "archive_blob",
            name,
            category=category,
            tags=tags,
            new_name=new_name,
            request_id=request_id,
            timeout=timeout,
        )

    def search_blobs(
        self,
        name: str | None = None,
        *,
        words: str | None = None,
        literal: str | None = None,
        regexp: str | None = None,
        ignore_case: bool = False,
        category: str | None = None,
        tags: Iterable[str] = (),
        limit: int | None = None,
        max_matches: int | None = None,
        page_token: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> BlobSearch:
        """Return the matching lines of one blob, or blobs of the archive, for `for`."""
        return BlobSearch(
            self._home,
            self._run(
                "search_blobs",
                name,
                words=words,
                literal=literal,
                regexp=regexp,
                ignore_case=ignore_case,
                category=category,
                tags=tags,
                limit=limit,
                max_matches=max_matches,
                page_token=page_token,
                session_id=session_id,
                timeout=timeout,
            ),
        )

    def collect_garbage(
        self,
        *,
        dry_run: bool = False,
        request_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _blobs.CollectedGarbage:
        """Delete the agent's blobs that have expired and that nothing refers to."""
        return self._await(
            "collect_garbage", dry_run=dry_run, request_id=request_id, timeout=timeout
        )

    def renew(
        self,
        *,
        goal: str | None = None,
        turn_id: str | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _renewal.Renewal:
        """Begin the window anew, as a prompt does by itself that would take all of it."""
        return self._await(
            "renew",
            goal=goal,
            turn_id=turn_id,
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )

    def snapshot(
        self,
        sprint: int | None = None,
        *,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _renewal.Snapshot:
        """Return what the agent was at when its window was renewed."""
        return self._await("snapshot", sprint, session_id=session_id, timeout=timeout)

    def snapshots(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> Iterator[_renewal.Snapshot]:
        """Yield all snapshots of the session, the oldest first."""
        return _twin.Iterated(
            self._home, self._run("snapshots", session_id=session_id, timeout=timeout)
        )

    def configure(
        self,
        history: _receipts.HistorySettings | None = None,
        *,
        prompt: _settings.PromptSettings | None = None,
        settings: _settings.PromptSettings | None = None,
        model: str | None = None,
        max_tokens: int | None = None,
        reset: bool = False,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.SessionSettings:
        """Say how the session's prompts are made; return what holds now."""
        return self._await(
            "configure",
            history,
            prompt=prompt,
            settings=settings,
            model=model,
            max_tokens=max_tokens,
            reset=reset,
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )

    def update_working(
        self,
        *,
        goal: str | None = None,
        plan: _working.Plan | Sequence[_working.PlanItem | str] | None = None,
        activate: Sequence[str] = (),
        deactivate: Sequence[str] = (),
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _working.Working:
        """Say what the agent is at: its goal, its plan, its skills; return what holds now."""
        return self._await(
            "update_working",
            goal=goal,
            plan=plan,
            activate=activate,
            deactivate=deactivate,
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )

    def end(
        self,
        *,
        reward: float | None = None,
        task_type: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> int:
        """Say that the session is over; return the position of its last entry, or 0."""
        return self._await(
            "end", reward=reward, task_type=task_type, session_id=session_id, timeout=timeout
        )

    def compact(
        self,
        *,
        style: _receipts.HistoryStyle | None = None,
        keep_recent: int | None = None,
        steps: Iterable[_steps.Step | str] = (),
        model: str | None = None,
        max_tokens: int | None = None,
        summary: str | None = None,
        dry_run: bool = False,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.Compaction:
        """Fold now what may be folded, whatever it costs; or return the steps as text."""
        return self._await(
            "compact",
            style=style,
            keep_recent=keep_recent,
            steps=steps,
            model=model,
            max_tokens=max_tokens,
            summary=summary,
            dry_run=dry_run,
            session_id=session_id,
            timeout=timeout,
        )

    def undo(
        self,
        batch: _receipts.FoldBatch | int | None = None,
        *,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.Undone:
        """Take the last batch of folds back."""
        return self._await(
            "undo", batch, request_id=request_id, session_id=session_id, timeout=timeout
        )

    def report_usage(
        self,
        prompt: _prompt.Prompt | str,
        usage: Mapping[str, Any] | object = None,
        *,
        prompt_tokens: int | None = None,
        completion_tokens: int = 0,
        reasoning_tokens: int = 0,
        cached_tokens: int = 0,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.UsageLearned:
        """Tell what the provider counted for a prompt; later counts learn from it."""
        return self._await(
            "report_usage",
            prompt,
            usage,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            reasoning_tokens=reasoning_tokens,
            cached_tokens=cached_tokens,
            session_id=session_id,
            timeout=timeout,
        )

    def report_overflow(
        self,
        *,
        turn_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.PressureLevel | None:
        """Tell that a provider refused the last prompt as too long."""
        return self._await(
            "report_overflow", turn_id=turn_id, session_id=session_id, timeout=timeout
        )

    def compress(
        self,
        tool_name: str,
        content: _values.JsonValue,
        *,
        kind: _compress.ResultKind | None = None,
        hint: _compress.CompressHint = "normal",
        failed: bool = False,
        threshold_chars: int | None = None,
        path: str | None = None,
        exit_code: int | None = None,
        compressed: bool = False,
        tool_call_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _compress.CompressedResult:
        """Shorten one result of a tool, and keep the whole under a path."""
        return self._await(
            "compress",
            tool_name,
            content,
            kind=kind,
            hint=hint,
            failed=failed,
            threshold_chars=threshold_chars,
            path=path,
            exit_code=exit_code,
            compressed=compressed,
            tool_call_id=tool_call_id,
            session_id=session_id,
            timeout=timeout,
        )

    def assemble(
        self,
        *,
        goal: str = "",
        model: str | None = None,
        max_tokens: int | None = None,
        system: str = "",
        format: _prompt.PromptFormat = "neutral",
        tools: bool | Sequence[_definitions.CallerTool] = True,
        settings: _settings.PromptSettings | None = None,
        injections: Sequence[_settings.Injection] = (),
        history: _receipts.HistorySettings | None = None,
        turn_id: str | None = None,
        dry_run: bool = False,
        as_of_step: str | None = None,
        as_of_prompt: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _prompt.Prompt:
        """Build the session's prompt: system, tools, memory, history, goal."""
        return self._await(
            "assemble",
            goal=goal,
            model=model,
            max_tokens=max_tokens,
            system=system,
            format=format,
            tools=tools,
            settings=settings,
            injections=injections,
            history=history,
            turn_id=turn_id,
            dry_run=dry_run,
            as_of_step=as_of_step,
            as_of_prompt=as_of_prompt,
            session_id=session_id,
            timeout=timeout,
        )

    def append(
        self,
        *messages: _prompt.Message | Mapping[str, Any],
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[int, ...]:
        """Add messages to the session's log, atomically; return their positions."""
        return self._await(
            "append", *messages, request_id=request_id, session_id=session_id, timeout=timeout
        )

    def record_step(
        self,
        tool_name: str,
        arguments: Mapping[str, _values.JsonValue] | None = None,
        *,
        output: _results.Output | _results.Unset = _results.UNSET,
        media_type: str | None = None,
        error: str | None = None,
        refused: bool = False,
        thought: str | None = None,
        turn_id: str | None = None,
        call_id: str | None = None,
        pinned: bool = False,
        task: _tasks.Task | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _steps.RecordedStep:
        """Add a step for a tool that the agent ran itself."""
        return self._await(
            "record_step",
            tool_name,
            arguments,
            output=output,
            media_type=media_type,
            error=error,
            refused=refused,
            thought=thought,
            turn_id=turn_id,
            call_id=call_id,
            pinned=pinned,
            task=task,
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )

    def task(self, task_id: str, *, timeout: _values.Seconds | None = None) -> _tasks.FoundTask:
        """Return a task of any session, whichever tier of memory it is in."""
        return self._await("task", task_id, timeout=timeout)

    def complete_task(
        self,
        task_id: str,
        conclusion: str = "",
        *,
        error: str | None = None,
        steps: Iterable[str] = (),
        timeout: _values.Seconds | None = None,
    ) -> _tasks.TaskFold:
        """Give a task its result, and fold its steps into that one line."""
        return self._await(
            "complete_task", task_id, conclusion, error=error, steps=steps, timeout=timeout
        )

    def steps(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> tuple[_steps.Step, ...]:
        """Return the last five steps of the session, oldest first."""
        return self._await("steps", session_id=session_id, timeout=timeout)

    def all_steps(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> Iterator[_steps.Step]:
        """Yield every step of the session, oldest first, page by page."""
        return _twin.Iterated(
            self._home, self._run("all_steps", session_id=session_id, timeout=timeout)
        )

    def step(self, step_id: str, *, timeout: _values.Seconds | None = None) -> _steps.Step:
        """Return one step of the agent, such as `step_001`, of whatever session."""
        return self._await("step", step_id, timeout=timeout)

    def count_tokens(
        self, text: str, *, model: str = "gpt-4o", timeout: _values.Seconds | None = None
    ) -> _receipts.TokenCount:
        """Count a text of at most 1 MiB as a model would."""
        return self._await("count_tokens", text, model=model, timeout=timeout)

    def count_messages(
        self,
        messages: Iterable[_prompt.Message | Mapping[str, Any]],
        *,
        model: str = "gpt-4o",
        timeout: _values.Seconds | None = None,
    ) -> _receipts.TokenCount:
        """Count messages as a request to a model holds them; nothing is stored."""
        return self._await("count_messages", messages, model=model, timeout=timeout)

    def read_blob(
        self,
        name: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        form: _results.BlobForm | None = None,
        media_index: int = 0,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _results.BlobData:
        """Return what a prompt left out, all at once; see `stream_blob` for much of it."""
        return self._await(
            "read_blob",
            name,
            offset=offset,
            limit=limit,
            form=form,
            media_index=media_index,
            session_id=session_id,
            timeout=timeout,
        )

    def stream_blob(
        self,
        name: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        form: _results.BlobForm | None = None,
        media_index: int = 0,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> BlobStream:
        """Return the same as a stream of pieces; arguments as in `read_blob`."""
        return BlobStream(
            self._home,
            self._run(
                "stream_blob",
                name,
                offset=offset,
                limit=limit,
                form=form,
                media_index=media_index,
                session_id=session_id,
                timeout=timeout,
            ),
        )
