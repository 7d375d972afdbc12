"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loombridge import _dashboard, _values, _working
from loombridge.sync import _twin


@_twin.documented(_dashboard.WorkingState)
class WorkingState(_twin.Twin):
    """What an agent is at; reached as `ctx.working`."""

    def get(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> _working.Working:
        """Return all of it."""
        return self._await("get", session_id=session_id, timeout=timeout)

    def signal(
        self,
        *signals: _working.EventSignal,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _working.Working:
        """Say what happened elsewhere: at most 64; return what holds now."""
        return self._await(
            "signal", *signals, request_id=request_id, session_id=session_id, timeout=timeout
        )

    def acknowledge(
        self,
        event_id: str,
        decision: _working.EventDecision,
        *,
        request_id: str | None = None,
        session_id: str | None = None,
        timeout: _values.Seconds | None = None,
    ) -> _working.Working:
        """Decide about an event that waits; return what holds now."""
        return self._await(
            "acknowledge",
            event_id,
            decision,
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )

    def update(
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
        """Change it, and return the new state. Without arguments it only reads."""
        return self._await(
            "update",
            goal=goal,
            plan=plan,
            activate=activate,
            deactivate=deactivate,
            goal_progress=goal_progress,
            scratchpad=scratchpad,
            signals=signals,
            acknowledge=acknowledge,
            add_questions=add_questions,
            remove_questions=remove_questions,
            add_evidence=add_evidence,
            request_id=request_id,
            session_id=session_id,
            timeout=timeout,
        )
