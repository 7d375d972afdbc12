"""What an agent notes of its work, and the events that wait for its decision."""

from collections.abc import Mapping, Sequence

from loombridge import _rpc, _session, _spelling, _values, _working
from loombridge.v1 import prompt_pb2 as pb


@_spelling.helpful
class WorkingState(_session.InSession):
    """What an agent is at; reached as `ctx.working`.

    It stands in the prompts of its session, behind what the provider's cache keeps, and
    survives a restart of the server.
    """

    async def get(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> _working.Working:
        """Return all of it."""
        return await self.update(session_id=session_id, timeout=timeout)

    async def signal(
        self,
        *signals: _working.EventSignal,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _working.Working:
        """Say what happened elsewhere: at most 64; return what holds now.

        What is urgent reaches the agent's open stream at once, and its next prompt.

        Raises:
            WorkingTooLargeError: more than 512 events would wait.
            InvalidRequestError: a field breaks a rule.
        """
        return await self.update(
            signals=signals, request_id=request_id, session_id=session_id, timeout=timeout
        )

    async def acknowledge(
        self,
        event_id: str,
        decision: _working.EventDecision,
        *,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _working.Working:
        """Decide about an event that waits; return what holds now."""
        return await self.update(
            acknowledge={event_id: decision},
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )

    async def update(
        self,
        *,
        goal: str | None = None,
        plan: _working.Plan | Sequence[_working.PlanItem | str] | None = None,
        activate: Sequence[str] = (),
        deactivate: Sequence[str] = (),
        goal_progress: str | None = None,
        scratchpad: str | None = None,
        signals: Sequence[_working.EventSignal] = (),
        acknowledge: Mapping[str, _working.EventDecision] | None = None,
        add_questions: Sequence[str] = (),
        remove_questions: Sequence[str] = (),
        add_evidence: Sequence[_working.Evidence] = (),
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _working.Working:
        """Change it, and return the new state. Without arguments it only reads.

        Args:
            goal: what the agent works towards, for prompts that are given none; at most
                256 KiB. An empty one takes it away. Default: as it was.
            plan: how, as items or as texts of what is not begun; one without items takes
                it away. Default: as it was.
            activate: names of skills that prompts show in full.
            deactivate: names of skills that prompts show by name and description only.
            goal_progress: how far the agent is, at most 4 KiB. Default: as it was.
            scratchpad: what it notes for itself, at most 32 KiB. Default: as it was.
            signals: what happened elsewhere: at most 64.
            acknowledge: decisions by the id of the event that waits: at most 64.
            add_questions: what the agent wants to know, each on one line.
            remove_questions: answered questions, in the same words.
            add_evidence: pieces of knowledge; of more than 10 the least worth leave.
            request_id: makes the call safe to repeat, and repeats it when no server
                answers.
            session_id: default: the client's.
            timeout: seconds; default: the client's.

        Raises:
            InvalidRequestError: a field breaks a rule.
            RequestIdReusedError: `request_id` was used with other content.
            WorkingTooLargeError: prompts would show more than 4,000 tokens of it, or more
                than 512 events would wait; nothing was changed.
        """
        request = pb.UpdateWorkingRequest(
            agent_id=self._agent_id,
            session_id=self._session(session_id),
            activate=_values.texts("activate", activate),
            deactivate=_values.texts("deactivate", deactivate),
            signals=_working.signals_to_wire("signals", signals),
            acknowledge=[
                _working.acknowledgement_to_wire(event_id, decision)
                for event_id, decision in (acknowledge or {}).items()
            ],
            add_questions=_values.texts("add_questions", add_questions),
            remove_questions=_values.texts("remove_questions", remove_questions),
            add_evidence=[
                _working.evidence_to_wire(f"add_evidence[{i}]", each)
                for i, each in enumerate(add_evidence)
            ],
        )
        if goal is not None:
            request.goal = _values.text("goal", goal)
        if plan is not None:
            request.plan.CopyFrom(_working.plan_to_wire("plan", plan))
        if goal_progress is not None:
            request.goal_progress = _values.text("goal_progress", goal_progress)
        if scratchpad is not None:
            request.scratchpad = _values.text("scratchpad", scratchpad)
        place = {"agent_id", "session_id"}
        asks = all(each.name in place for each, _ in request.ListFields())
        request.request_id = _values.optional_text("request_id", request_id)
        answer = await self._transport.call(
            _rpc.UPDATE_WORKING, request, timeout=timeout, repeatable=bool(request_id) or asks
        )
        return _working.working(answer)
