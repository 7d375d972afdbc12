"""An agent's context: its log, its prompts, its blobs."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from loombridge import (
    _blobs,
    _conversation,
    _definitions,
    _history,
    _prompt,
    _receipts,
    _results,
    _rpc,
    _settings,
    _spelling,
    _steps,
    _stream,
    _tasks,
    _values,
)
from loombridge.v1 import children_pb2
from loombridge.v1 import context_pb2 as pb

STEPS_PER_PAGE = 100
"""Steps that `all_steps` asks for at a time; their texts fit one message."""

_FORMATS: Mapping[str, pb.PromptFormat] = {
    "neutral": pb.PROMPT_FORMAT_NEUTRAL,
    "openai": pb.PROMPT_FORMAT_OPENAI_CHAT,
    "openai_responses": pb.PROMPT_FORMAT_OPENAI_RESPONSES,
    "anthropic": pb.PROMPT_FORMAT_ANTHROPIC,
    "gemini": pb.PROMPT_FORMAT_GEMINI,
}


@_spelling.helpful
class Context(_history.History, _blobs.Blobs, _conversation.Conversations):
    """What an agent did and said, and its prompts; reached as `ctx.context`.

    Every call takes the client's session, unless it is given another by
    `session_id`, and `timeout` in seconds, unless the client's default will do.
    Steps by id, and blobs, may be of any of the agent's sessions.
    """

    async def assemble(
        self,
        *,
        goal: str = "",
        model: str | None = None,
        max_tokens: int | None = None,
        system: str = "",
        format: _prompt.PromptFormat = "neutral",  # noqa: A002  the API's own word
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
        """Build the session's prompt: system, tools, memory, history, goal.

        Old steps are folded when that pays, or when the prompt would not fit otherwise;
        `receipt` of the prompt says so. Folded steps can be read and unfolded again.

        Args:
            goal: what the agent works towards; it stands last. Default: that of
                `update_working`.
            model: the model the prompt is for; it chooses the token counter and the
                prices. Default: as configured, else `gpt-4o`.
            max_tokens: the budget of the whole prompt, tools included. Default: as
                configured, else what the window of the model leaves
                after room for the answer.
            system: the system prompt; it stands first. Default: as configured.
            format: `neutral` fills `messages` and `tools`; each other one the method of its
                name, whose dict is ready for the provider.
            tools: the caller's own, offered in addition to the served ones: definitions,
                mappings as OpenAI, Anthropic, Gemini or MCP have them, or Python functions
                with type hints. One of the name of a served tool takes its place. False
                leaves out all tools; which served ones there are is said by
                `settings.tools`.
            settings: what this prompt is made of; what is None or empty in it is as
                configured.
            injections: further sections of this prompt, in addition to the ones of `settings`.
            history: how the history is made, for this call; what is None in it is as
                configured.
            turn_id: the turn of the model that the prompt is for: the same one gets the
                same variation. Default: counted by the session's user messages.
            dry_run: store nothing: a fold that is due is shown and not kept.
            as_of_step: return the last prompt that the session had sent before this step was
                recorded, which the model answered with this call, byte for byte and in the
                format in which it was sent. A session keeps its last 512 prompts, fewer
                where they differ in more than 32 MiB of text.
            as_of_prompt: return the prompt that had this `prompt_id` in its receipt, in the
                same way.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            ContextOverflowError: it does not fit; names the largest part.
            InvalidRequestError: a field breaks a rule, such as an unknown preset.
            TypeError: `as_of_step` or `as_of_prompt` is given together with what makes a
                new prompt.
        """
        if format not in _FORMATS:
            raise ValueError(f"format must be one of {', '.join(_FORMATS)}, not {format!r}")
        request = pb.AssembleRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            goal=_values.text("goal", goal),
            model=_values.optional_text("model", model),
            system=_values.text("system", system),
            turn_id=_values.optional_text("turn_id", turn_id),
            dry_run=dry_run,
        )
        if format != "neutral":
            request.format = _FORMATS[format]
        if isinstance(tools, bool):
            request.without_tools = not tools
        else:
            request.tools.extend(_definitions.tools_to_wire(tools))
        if max_tokens is not None:
            request.max_tokens = _values.integer("max_tokens", max_tokens)
        if history is not None:
            request.history.CopyFrom(_receipts.settings_to_wire("history", history))
        if settings is not None:
            request.settings.CopyFrom(_settings.to_wire("settings", settings))
        if further := _settings.injections_to_wire("injections", injections):
            request.settings.injections.extend(further)
        _as_of(request, as_of_step, as_of_prompt)
        # A fold that a call stored before it was cut off stands in the repeated one, too.
        answer = await self._transport.call(
            _rpc.ASSEMBLE, request, timeout=timeout, repeatable=True
        )
        return _prompt.prompt(answer)

    async def append(
        self,
        *messages: _prompt.Message | Mapping[str, Any],
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> tuple[int, ...]:
        """Add messages to the session's log, atomically; return their positions.

        Args:
            messages: 1 to 256, in order; a mapping is taken in OpenAI's chat form.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a message breaks a rule.
            RequestIdReusedError: the request_id was used with other messages.
        """
        request = pb.AppendMessagesRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            messages=[
                _prompt.message_to_wire(f"messages[{i}]", each) for i, each in enumerate(messages)
            ],
            request_id=_values.optional_text("request_id", request_id),
        )
        answer = await self._transport.call(
            _rpc.APPEND_MESSAGES, request, timeout=timeout, repeatable=bool(request_id)
        )
        return tuple(answer.positions)

    async def record_step(
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
        """Add a step for a tool that the agent ran itself.

        It is reduced, offloaded and kept as one that `ctx.tool` ran. Halves of surrogate
        pairs, which models write and Python makes of odd file names, are mended.

        Args:
            tool_name: the tool's name; the server need not know it.
            arguments: what it was called with, a JSON object of at most 1 MiB.
            output: what it gave, kept byte for byte: a `str` as text, `bytes` as bytes, a
                `JsonText` as that JSON text, `Content` as content blocks; anything else as
                JSON. What is longer than 1 MiB is streamed, as are the file at a `Path`
                and an async iterator of bytes; at most 64 MiB, unless the server is set
                otherwise. Default: nothing.
            media_type: the format of bytes; default: what they look like.
            error: what went wrong, at most 64 KiB; default: the tool did its work.
            refused: the tool was not run at all; needs `error`.
            thought: what the model said before the call, kept with the step.
            turn_id: holds parallel calls of one model turn together.
            call_id: the model's own id of the call.
            pinned: prompts show the step as it is, whatever its age.
            task: what the step did in the words of the planner, for the first tier
                of memory; kept in the same commit.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule.
            RecordExistsError: the agent has another task of that id.
            RequestIdReusedError: `request_id` was used with other content.
        """
        request = pb.RecordStepRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            tool_name=_values.text("tool_name", tool_name),
            arguments_json=_values.json_object("arguments", arguments or {}, mend=True),
            success=error is None,
            refused=refused,
            error_message=_values.optional_text("error", error, mend=True),
            thought=_values.optional_text("thought", thought, mend=True),
            turn_id=_values.optional_text("turn_id", turn_id),
            call_id=_values.by_model("call_id", call_id),
            pinned=pinned,
            task=None if task is None else _tasks.task_message(task),
            request_id=_values.optional_text("request_id", request_id),
        )
        upload = None
        if not isinstance(output, _results.Unset):
            upload = _results.put(request, output, media_type)
        if upload is not None:
            return await self._upload_step(request, upload, timeout)
        answer = await self._transport.call(
            _rpc.RECORD_STEP, request, timeout=timeout, repeatable=bool(request_id)
        )
        return _steps.recorded_step(answer)

    async def _upload_step(
        self,
        request: pb.RecordStepRequest,
        upload: _results.Upload,
        timeout: _values.Seconds | None,
    ) -> _steps.RecordedStep:
        request.output_upload.CopyFrom(upload.announced)

        async def messages() -> AsyncIterator[pb.UploadStepRequest]:
            yield pb.UploadStepRequest(step=request)
            async for piece in upload.pieces():
                yield pb.UploadStepRequest(data=piece)

        answer = await self._transport.upload(
            _rpc.UPLOAD_STEP,
            messages,
            timeout=timeout,
            repeatable=bool(request.request_id) and upload.repeatable,
        )
        return _steps.recorded_step(answer)

    async def task(
        self, task_id: str, *, timeout: _values.Seconds | None = None
    ) -> _tasks.FoundTask:
        """Return a task of any session, whichever tier of memory it is in.

        Args:
            task_id: its id, or the `ref` of its summary, such as `task/t1`.
            timeout: seconds; default: the client's.

        Raises:
            RecordNotFoundError: the agent has no such task.
        """
        request = pb.ListConversationRequest(
            agent_id=self._agent_id,
            task_id=_values.text("task_id", task_id),
        )
        answer = await self._transport.call(_rpc.LIST_CONVERSATION, request, timeout=timeout)
        return _tasks.found_task(answer.entries[0])

    async def complete_task(
        self,
        task_id: str,
        conclusion: str = "",
        *,
        error: str | None = None,
        steps: Iterable[str] = (),
        timeout: _values.Seconds | None = None,
    ) -> _tasks.TaskFold:
        """Give a task its result, and fold its steps into that one line.

        Prompts of sessions that keep the ledger show `[Subtask <id>] <conclusion>` in the
        place of the steps, with the names by which these are read. `undo` takes that back.
        The same call again folds what was not.

        Args:
            task_id: its id.
            conclusion: what came of it, at most 64 KiB.
            error: why nothing came of it, in place of a conclusion.
            steps: the ids of its steps; default: what was said and done since it was taken
                up, without what belongs to other tasks of its action.
            timeout: seconds; default: the client's.

        Raises:
            AgentNotFoundError: the agent has no such task, and no such child.
            RecordExistsError: the task has another result.
            StepNotFoundError: a step is not one of the session.
        """
        request = children_pb2.CompleteTaskRequest(
            agent_id=self._agent_id,
            task_id=_values.text("task_id", task_id),
            conclusion=_values.text("conclusion", conclusion),
            failed=error is not None,
            error=_values.optional_text("error", error),
            step_ids=_values.texts("steps", steps),
        )
        answer = await self._transport.call(
            _rpc.COMPLETE_TASK, request, timeout=timeout, repeatable=True
        )
        return _tasks.task_fold(answer)

    async def steps(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> tuple[_steps.Step, ...]:
        """Return the last five steps of the session, oldest first."""
        answer = await self._transport.call(
            _rpc.LIST_STEPS, self._list_steps(session_id), timeout=timeout
        )
        return tuple(map(_steps.step, answer.steps))

    def all_steps(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> AsyncIterator[_steps.Step]:
        """Yield every step of the session, oldest first, page by page."""
        request = self._list_steps(session_id)
        request.page_size = STEPS_PER_PAGE
        pages = self._transport.pages(
            _rpc.LIST_STEPS, request, lambda answer: answer.steps, timeout
        )
        return _stream.Pages(pages, _steps.step)

    def _list_steps(self, session_id: str | None) -> pb.ListStepsRequest:
        return pb.ListStepsRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
        )

    async def step(self, step_id: str, *, timeout: _values.Seconds | None = None) -> _steps.Step:
        """Return one step of the agent, such as `step_001`, of whatever session.

        Raises:
            StepNotFoundError: there is no step of that id.
        """
        request = pb.GetStepRequest(
            agent_id=self._agent_id,
            step_id=_values.text("step_id", step_id),
        )
        answer = await self._transport.call(_rpc.GET_STEP, request, timeout=timeout)
        return _steps.step(answer)

    async def count_tokens(
        self, text: str, *, model: str = "gpt-4o", timeout: _values.Seconds | None = None
    ) -> _receipts.TokenCount:
        """Count a text of at most 1 MiB as a model would."""
        request = pb.CountTokensRequest(
            agent_id=self._agent_id,
            text=_values.text("text", text),
            model=_values.text("model", model),
        )
        answer = await self._transport.call(_rpc.COUNT_TOKENS, request, timeout=timeout)
        return _receipts.token_count(answer)

    async def count_messages(
        self,
        messages: Iterable[_prompt.Message | Mapping[str, Any]],
        *,
        model: str = "gpt-4o",
        timeout: _values.Seconds | None = None,
    ) -> _receipts.TokenCount:
        """Count messages as a request to a model holds them; nothing is stored.

        What the model's provider adds counts, too: to each message and, by OpenAI's rule,
        once to all.

        Args:
            messages: at most 256; a mapping is taken in OpenAI's chat form. None of them
                is 0 tokens.
            model: the model; an unknown one is estimated.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a message breaks a rule of `append`.
        """
        request = pb.CountTokensRequest(
            agent_id=self._agent_id,
            model=_values.text("model", model),
            messages=[
                _prompt.message_to_wire(f"messages[{i}]", each) for i, each in enumerate(messages)
            ],
        )
        answer = await self._transport.call(_rpc.COUNT_TOKENS, request, timeout=timeout)
        return _receipts.token_count(answer)

    async def read_blob(
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
        """Return what a prompt left out, all at once; see `stream_blob` for much of it.

        Args:
            name: what the prompt shows: a path, a step id, a message id such as
                `message_017`, or a ref of at least 12 digits; or a task's reference.
            offset: the first byte.
            limit: how many bytes at most; default: to the end.
            form: another form of the step's result than the name leads to: `original`,
                `text`, `stdout`, `stderr` or `media`.
            media_index: which one of several, for the form `media`.
            session_id: whose message is meant, as each session counts its own;
                default: the client's.
            timeout: seconds without a new piece; default: the client's.

        Raises:
            BlobNotFoundError: no blob under that name.
            BlobDamagedError: stored bytes do not match their hash.
        """
        async with self.stream_blob(
            name,
            offset=offset,
            limit=limit,
            form=form,
            media_index=media_index,
            session_id=session_id,
            timeout=timeout,
        ) as stream:
            return _results.BlobData(b"".join([piece async for piece in stream]))

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
    ) -> _steps.BlobStream:
        """Return the same as a stream of pieces; arguments as in `read_blob`."""
        request = pb.ReadBlobRequest(
            agent_id=self._agent_id,
            name=_values.text("name", name),
            offset=_values.long_integer("offset", offset),
            session_id=self._session(session_id),
            media_index=_values.integer("media_index", media_index),
        )
        if form is not None:
            request.form = _results.form(form)
        if limit is not None:
            request.limit = _values.long_integer("limit", limit)
            if limit < 1:
                raise ValueError(f"limit must be at least 1, not {limit}")
        seconds = self._transport.timeout
        if timeout is not None:
            seconds = _values.seconds("timeout", timeout)
        return _steps.BlobStream(self._transport, request, seconds)


def _as_of(request: pb.AssembleRequest, step: str | None, prompt: str | None) -> None:
    """Ask for a prompt of before, if one is named.

    Raises:
        TypeError: something is given that a prompt of before can't be made of.
    """
    if step is None and prompt is None:
        return
    if step is not None and prompt is not None:
        raise TypeError("give either as_of_step or as_of_prompt")
    said = {field.name for field, _ in request.ListFields()} - {"agent_id", "session_id"}
    if said:
        raise TypeError(f"a prompt of before is as it was sent: it takes no {sorted(said)[0]}")
    if step is not None:
        request.as_of_step_id = _values.text("as_of_step", step)
    else:
        request.as_of_prompt_id = _values.text("as_of_prompt", prompt)
