"""The history of a session: how it is made, folded and unfolded again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from loombridge import (
    _compress,
    _prompt,
    _receipts,
    _renewal,
    _rpc,
    _settings,
    _spelling,
    _steps,
    _usage,
    _values,
    _working,
)
from loombridge.v1 import context_pb2 as pb
from loombridge.v1 import prompt_pb2


@_spelling.helpful
class History(_renewal.Renewals):
    """The history of a session, and what its prompts cost; reached as `ctx.context`."""

    async def configure(
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
        """Say how the session's prompts are made; return what holds now.

        Without arguments it only reads. Arguments of `assemble` take precedence.

        Args:
            history: how the history is made; what is None in it stays as it was.
            prompt: what prompts are made of; what is None or empty in it stays as it was.
            settings: the same by the name that `assemble` has for it.
            model: the model for calls that name none, at most 128 bytes.
            max_tokens: the budget for calls that name none.
            reset: go back to the server's defaults before the rest is set.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule, such as an unknown preset.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = pb.ConfigureSessionRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            model=_values.optional_text("model", model),
            reset=reset,
            request_id=_values.optional_text("request_id", request_id),
        )
        if prompt is not None and settings is not None:
            raise ValueError("prompt and settings are two names of one argument; give one")
        prompt = settings if prompt is None else prompt
        if history is not None:
            request.history.CopyFrom(_receipts.settings_to_wire("history", history))
        if max_tokens is not None:
            request.max_tokens = _values.integer("max_tokens", max_tokens)
        if prompt is not None:
            request.prompt.CopyFrom(_settings.to_wire("prompt", prompt))
        given = (history, prompt, model, max_tokens)
        asks = all(each is None for each in given) and not reset
        answer = await self._transport.call(
            _rpc.CONFIGURE_SESSION, request, timeout=timeout, repeatable=bool(request_id) or asks
        )
        return _receipts.session_settings(answer)

    async def update_working(
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
        """Say what the agent is at: its goal, its plan, its skills; return what holds now.

        It stands in the session's prompts from here on. Without arguments it only reads.

        Args:
            goal: what the agent works towards, for prompts that are given none; at most
                256 KiB. An empty one takes it away. Default: as it was.
            plan: how, as items or as texts of what is not begun; one without items takes
                it away. Default: as it was.
            activate: names of skills that prompts show in full: declared by the session, or of
                records of the kind `skill`.
            deactivate: names of skills that prompts show by name and description only.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule, such as an undeclared skill.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = prompt_pb2.UpdateWorkingRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            activate=_values.texts("activate", activate),
            deactivate=_values.texts("deactivate", deactivate),
            request_id=_values.optional_text("request_id", request_id),
        )
        if goal is not None:
            request.goal = _values.text("goal", goal)
        if plan is not None:
            request.plan.CopyFrom(_working.plan_to_wire("plan", plan))
        asks = goal is None and plan is None and not activate and not deactivate
        answer = await self._transport.call(
            _rpc.UPDATE_WORKING, request, timeout=timeout, repeatable=bool(request_id) or asks
        )
        return _working.working(answer)

    async def end(
        self,
        *,
        reward: float | None = None,
        task_type: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> int:
        """Say that the session is over; return the position of its last entry, or 0.

        Blobs that only it needs may then be collected when they expire. Whatever is
        recorded later opens it again.

        Args:
            reward: how well it went, from -1 to 1; from 0.7 on the server drafts a playbook
                of it (a record of kind `playbook` with status `draft`), one for each
                session.
            task_type: which tasks that playbook is for; default: any.
            session_id: default: the client's.
            timeout: seconds; default: the client's.
        """
        request = pb.EndSessionRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            task_type=_values.optional_text("task_type", task_type),
        )
        if reward is not None:
            request.reward = reward
        # A session that is over stays so when it is said twice.
        answer = await self._transport.call(
            _rpc.END_SESSION, request, timeout=timeout, repeatable=True
        )
        return answer.last_position

    async def compact(
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
        """Fold now what may be folded, whatever it costs; or return the steps as text.

        `assemble` folds by itself when that pays. This is for the end of a task, after
        which its steps matter little; `undo` takes it back.

        Args:
            style: return the steps as text, laid out so, and fold nothing.
            keep_recent: how many steps the text shows in full; default 3.
            steps: the steps of the session, or their ids, that the text is of, at most
                1,000; default: all.
            model: the model whose tokens count; default: the session's.
            max_tokens: the budget of the history; default: none. Of a text in style
                `reduction`, that of the lines of earlier steps; default 500.
            summary: your, or your model's, summary of the folded part. It stands at the
                head of the fold and replaces none of its lines. One that is blank or
                longer than 500 tokens is left out; `Compaction.summary_problem` says so.
            dry_run: return what would be folded and store nothing.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule.
            StepNotFoundError: the session has not one of `steps`.
        """
        request = pb.CompactHistoryRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            model=_values.optional_text("model", model),
            summary=_values.optional_text("summary", summary),
            dry_run=dry_run,
            step_ids=_values.texts("steps", _steps.ids(steps)),
        )
        if style is not None:
            number = _values.enum_number(
                "style", pb.HistoryStyle.DESCRIPTOR, "HISTORY_STYLE_", style
            )
            # pyright knows enums of the wire by their names only; the number is the same.
            request.style = cast("pb.HistoryStyle", number)
        if keep_recent is not None:
            request.keep_recent = _values.integer("keep_recent", keep_recent)
        if max_tokens is not None:
            request.max_tokens = _values.integer("max_tokens", max_tokens)
        answer = await self._transport.call(
            _rpc.COMPACT_HISTORY,
            request,
            timeout=timeout,
            repeatable=dry_run or style is not None,
        )
        return _receipts.compaction(answer)

    async def undo(
        self,
        batch: _receipts.FoldBatch | int | None = None,
        *,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.Undone:
        """Take the last batch of folds back.

        The next prompt is, byte for byte, the one before, plus later additions.

        Args:
            batch: the batch that must be the last one, as a receipt names it, so that
                no other is undone; default: whichever is the last.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            NothingToUndoError: the session has no fold, or the last one is another.
            RequestIdReusedError: `request_id` was used with other content.
        """
        number = batch.number if isinstance(batch, _receipts.FoldBatch) else batch
        request = pb.UndoRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            batch=_values.long_integer("batch", number or 0),
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(
            _rpc.UNDO, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _receipts.Undone(refs=tuple(answer.refs))

    async def report_usage(
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
        """Tell what the provider counted for a prompt; later counts learn from it.

        Args:
            prompt: the prompt, or the `prompt_id` of its receipt.
            usage: the `usage` of the provider's answer, as a mapping or as the object
                of its library: OpenAI's, Anthropic's, or one like them. Or instead:
            prompt_tokens: all that was sent, tools and cached tokens included.
            completion_tokens: the answer.
            reasoning_tokens: the part of the answer that is not sent again.
            cached_tokens: the part of the prompt that came from the provider's cache.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            PromptUnknownError: it is not one of the session's last, or is from before
                the server was restarted.
        """
        if (usage is None) == (prompt_tokens is None):
            raise TypeError("give either usage or prompt_tokens")
        if usage is not None:
            request = _usage.usage_to_wire(usage)
        else:
            request = pb.ReportUsageRequest(
                prompt_tokens=_values.integer("prompt_tokens", prompt_tokens),
                completion_tokens=_values.integer("completion_tokens", completion_tokens),
                reasoning_tokens=_values.integer("reasoning_tokens", reasoning_tokens),
                cached_tokens=_values.integer("cached_tokens", cached_tokens),
            )
        name = prompt.receipt.prompt_id if isinstance(prompt, _prompt.Prompt) else prompt
        request.agent_id = self._agent_id
        request.session_id = self._session(session_id)
        request.prompt_id = _values.text("prompt", name)
        answer = await self._transport.call(_rpc.REPORT_USAGE, request, timeout=timeout)
        return _receipts.UsageLearned(
            ratio=answer.ratio,
            missed_tokens=answer.missed_tokens,
        )

    async def report_overflow(
        self,
        *,
        turn_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _receipts.PressureLevel | None:
        """Tell that a provider refused the last prompt as too long.

        The turn's next prompt is made shorter than the budget asks for, once.

        Args:
            turn_id: that of the prompt; default: the end of the log names the turn.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Returns:
            `reactive` with the preset `partitioned`; None under another policy, whose
            history was folded at once as far as it may be.

        Raises:
            ContextOverflowError: it was reported in this turn before; names what takes
                most of the prompt.
        """
        request = pb.ReportUsageRequest(
            overflow=True,
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            turn_id=_values.optional_text("turn_id", turn_id),
        )
        answer = await self._transport.call(_rpc.REPORT_USAGE, request, timeout=timeout)
        return _receipts.pressure_level(answer.level)

    async def compress(
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
        """Shorten one result of a tool, and keep the whole under a path.

        What would not get shorter stays as it is. Results that are recorded as steps
        need no such call: `assemble` shows them as it should.

        Args:
            tool_name: the tool, at most 128 bytes.
            content: the result, at most 1 MiB: text, or anything else as JSON.
            kind: what it is; default: by the tool's name, else by what it looks like.
            hint: what to do with it.
            failed: the tool failed; its text stays, up to 3000 tokens.
            threshold_chars: the length that stays as it is; default 1500.
            path: the file that a result of kind `file` shows.
            exit_code: that of a result of kind `exec`.
            compressed: content is already the short form of a result; it stays as it is.
            tool_call_id: the model's id of the call.
            session_id: the session the stored whole belongs to; default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule.
            BlobQuotaExceededError: the agent's blobs take all they may.
        """
        request = pb.CompressResultRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            tool_name=_values.text("tool_name", tool_name),
            tool_call_id=_values.optional_text("tool_call_id", tool_call_id),
            content=_compress.content_text(content),
            result_kind=_values.optional_text("kind", kind),
            hint=_compress.hint_number(hint),
            failed=failed,
            path=_values.optional_text("path", path),
            compressed=compressed,
        )
        if threshold_chars is not None:
            request.threshold_chars = _values.integer("threshold_chars", threshold_chars)
        if exit_code is not None:
            request.exit_code = _values.integer("exit_code", exit_code)
        # The same result lies under the same path, however often it is kept.
        answer = await self._transport.call(
            _rpc.COMPRESS_RESULT, request, timeout=timeout, repeatable=True
        )
        return _compress.compressed_result(answer)
