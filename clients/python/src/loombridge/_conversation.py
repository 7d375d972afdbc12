"""What was said and done, read back: sessions, what is in one, how prompts differ."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from loombridge import (
    _brief,
    _found,
    _prompt,
    _rpc,
    _sections,
    _session,
    _spelling,
    _steps,
    _stream,
    _tasks,
    _values,
)
from loombridge.v1 import context_pb2 as pb

ENTRIES_PER_PAGE = 100
"""Entries, or sessions, that are asked for at a time; a page has fewer where they would
not fit one message."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What is known of a session."""

    session_id: str
    """Its id."""
    last_position: int
    """The place of its last entry in its log, from 1; 0 where it has only tasks."""
    begin_time: datetime
    """When the first of its entries and tasks was recorded, in UTC."""
    update_time: datetime
    """When the last of them was recorded, in UTC."""
    ended: bool
    """It is over, and nothing was recorded since."""
    closed: bool
    """It is ended, or nothing was recorded in it for a while: listings leave it out."""


@dataclass(frozen=True, slots=True, repr=False)
class ConversationEntry(_brief.Brief):
    """A message, a step or a task of a session: exactly one of the three is set."""

    position: int
    """Its place in the log, from 1. A task has no place; it gets the place of the entry before it,
    such as the step that it was recorded with; 0 for none."""
    create_time: datetime
    """When it was recorded, in UTC; of a task, when it was taken up."""
    message: _prompt.Message | None = None
    """Something that was said, as it came."""
    step: _steps.Step | None = None
    """A call of a tool."""
    task: _tasks.Task | None = None
    """A unit of work that the agent took up."""
    fold_batch: int = 0
    """The batch of folds by which prompts show it; 0 where none does: they show it in
    full, or by the rules of a preset."""


@dataclass(frozen=True, slots=True)
class PromptsDiff:
    """How two prompts of a session differ."""

    from_prompt_id: str
    """The older one."""
    to_prompt_id: str
    """The newer one."""
    difference: _sections.PromptDifference | None
    """Where they first differ; None when they are the same."""
    from_excerpt: str
    """What stands at the first difference in the older one, at most 256 bytes."""
    to_excerpt: str
    """The same of the newer one."""


@_spelling.helpful
class Conversations(_session.InSession):
    """The conversations of an agent, read back; reached as `ctx.context`."""

    def sessions(
        self, *, include_closed: bool = False, timeout: _values.Seconds | None = None
    ) -> AsyncIterator[SessionInfo]:
        """Yield the agent's sessions in the order of their ids, page by page.

        Args:
            include_closed: also ended sessions, and sessions without an entry for the server's
                idle time (1 hour).
            timeout: seconds for each page; default: the client's.
        """
        request = pb.ListSessionsRequest(
            agent_id=self._agent_id, page_size=ENTRIES_PER_PAGE, include_closed=include_closed
        )
        pages = self._transport.pages(
            _rpc.LIST_SESSIONS, request, lambda answer: answer.sessions, timeout
        )
        return _stream.Pages(pages, _session_info)

    def conversation(
        self,
        *,
        newest_first: bool = False,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> AsyncIterator[ConversationEntry]:
        """Yield what was said and done in the session, folded or not, as it came.

        Args:
            newest_first: begin at its end.
            session_id: default: the client's.
            timeout: seconds for each page; default: the client's.
        """
        order = (
            pb.CONVERSATION_ORDER_NEWEST_FIRST
            if newest_first
            else pb.CONVERSATION_ORDER_OLDEST_FIRST
        )
        request = pb.ListConversationRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            order=order,
            page_size=ENTRIES_PER_PAGE,
        )
        pages = self._transport.pages(
            _rpc.LIST_CONVERSATION, request, lambda answer: answer.entries, timeout
        )
        return _stream.Pages(pages, _entry)

    async def diff_prompts(
        self,
        from_prompt: str | None = None,
        to_prompt: str | None = None,
        *,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> PromptsDiff:
        """Say where two prompts that the session has sent differ.

        Args:
            from_prompt: the `prompt_id` of the older one; default: the one before the
                other.
            to_prompt: that of the newer one; default: the session's last.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            PromptGoneError: one of them was never sent, or can't be made again.
        """
        request = pb.DiffPromptsRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            from_prompt_id=_values.optional_text("from_prompt", from_prompt),
            to_prompt_id=_values.optional_text("to_prompt", to_prompt),
        )
        answer = await self._transport.call(_rpc.DIFF_PROMPTS, request, timeout=timeout)
        return _prompts_diff(answer)

    async def find_in_prompts(
        self,
        text: str = "",
        *,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _found.FoundInPrompts:
        """Say in which prompts that the session has sent a text stood, and what took it out.

        Args:
            text: found letter by letter, within one message: at most 4 KiB; default: the
                prompts are listed alone.
            session_id: default: the client's.
            timeout: seconds; default: the client's.
        """
        request = pb.FindInPromptsRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            text=_values.text("text", text),
        )
        answer = await self._transport.call(_rpc.FIND_IN_PROMPTS, request, timeout=timeout)
        return _found.found(answer)


def _prompts_diff(m: pb.DiffPromptsResponse) -> PromptsDiff:
    return PromptsDiff(
        from_prompt_id=m.from_prompt_id,
        to_prompt_id=m.to_prompt_id,
        difference=_sections.difference(m.difference) if m.HasField("difference") else None,
        from_excerpt=m.from_excerpt,
        to_excerpt=m.to_excerpt,
    )


def _session_info(m: pb.SessionInfo) -> SessionInfo:
    return SessionInfo(
        session_id=m.session_id,
        last_position=m.last_position,
        begin_time=_values.moment(m.begin_time),
        update_time=_values.moment(m.update_time),
        ended=m.ended,
        closed=m.closed,
    )


def _entry(m: pb.ConversationEntry) -> ConversationEntry:
    return ConversationEntry(
        position=m.position,
        create_time=_values.moment(m.create_time),
        message=_prompt.message(m.message) if m.HasField("message") else None,
        step=_steps.step(m.step) if m.HasField("step") else None,
        task=_tasks.task(m.task) if m.HasField("task") else None,
        fold_batch=m.fold_batch,
    )
