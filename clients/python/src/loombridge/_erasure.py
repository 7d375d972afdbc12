"""Erasing an agent or a person from a server that runs, for who runs it."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Self, cast

from loombridge import _errors, _rpc, _spelling, _stream, _values
from loombridge.v1 import memory_pb2 as pb

ERASE_TIMEOUT = 600.0
"""Seconds within which the server says something of an erasure."""

_STEP = pb.EraseStep.DESCRIPTOR
_SHARED = pb.EraseShared.DESCRIPTOR
_BYTES_STATE = pb.EraseBytesState.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, or what a dry run found."""

    counts: Mapping[str, int]
    """What there was when the erasure began, by kind, such as `records`, `steps`, `blobs`,
    `events`. A kind of which there was nothing is missing."""
    entries: int
    """How many entries of the store those were, with all that belongs to them."""
    bytes: int
    """What these held."""
    bytes_state: str
    """`reclaimed`: the bytes are gone, too; `kept`: the engine gives them back in its own
    time, in PostgreSQL with VACUUM; `unspecified` of a dry run."""
    resumed: bool
    """Whether the erasure had begun with an earlier call, or before the server started."""
    certificate: str
    """What was erased and what is not claimed, as signed JSON: write it to a file, which
    `loom-bridge-server erase verify` checks. Empty of a dry run."""


@dataclass(frozen=True, slots=True)
class ErasureProgress:
    """How far an erasure is."""

    step: str
    """What it does: `waiting`, `counting`, `erasing`, `checking`, `reclaiming`."""
    entries: int
    """How many entries of the store the step has looked at or erased."""
    erased: Erased | None
    """What was erased; None until the end."""


class Erasing(_stream.Stream[pb.EraseScopeRequest, pb.EraseScopeResponse]):
    """The erasing of a subject: `await` it, or `async for progress in ctx.admin.erase(…)`.

    Leaving the loop does not end it: the same call again waits for it.
    """

    def __init__(
        self, transport: _rpc.Transport, request: pb.EraseScopeRequest, timeout: float
    ) -> None:
        """Made by `ctx.admin.erase`."""
        super().__init__(
            _stream.Receiver(
                transport,
                _rpc.ERASE_SCOPE,
                request,
                timeout,
                _stream.Resume.NEVER,
                "whether all was erased is not known; make the call again",
            )
        )

    def __aiter__(self) -> Self:
        """Return it itself."""
        return self

    async def __anext__(self) -> ErasureProgress:
        """Wait until it is further.

        Raises:
            OperatorRequiredError: the credential does not say `operates`.
            SubjectNotFoundError: the store has nothing of the subject.
            ErasureRunningError: another subject is being erased.
            SubjectInUseError: calls of the subject do not end.
            StoreSharedError: other servers have the store open.
            DeadlineExceededError: nothing came within the timeout.
        """
        m = await self._receiver.next()
        return ErasureProgress(
            step=_values.enum_name(_STEP, "ERASE_STEP_", m.step),
            entries=m.entries,
            erased=_erased(m.result) if m.HasField("result") else None,
        )

    def __await__(self) -> Generator[Any, None, Erased]:
        """Wait until it is done, and return the result."""
        return self._done().__await__()

    async def _done(self) -> Erased:
        erased: Erased | None = None
        async with self:
            async for progress in self:
                erased = progress.erased
        if erased is None:
            raise _errors.ServerUnreachableError("the stream of an erasure ended early")
        return erased

    async def __aenter__(self) -> Self:
        """Return it itself; the work begins with the first answer."""
        return self


@_spelling.helpful
class Admin(_spelling.Helpful):
    """What is for who runs the server; `ctx.admin`.

    With authentication the credential must say `operates`.
    """

    def __init__(self, transport: _rpc.Transport) -> None:
        """Made by the client."""
        self._transport = transport

    def erase(
        self,
        *,
        agent_id: str = "",
        user_id: str = "",
        session_id: str = "",
        step_id: str = "",
        filter: str = "",  # noqa: A002
        shared: Literal["authorship", "records"] | None = None,
        tenant: str = "",
        dry_run: bool = False,
        timeout: _values.Seconds = ERASE_TIMEOUT,
    ) -> Erasing:
        """Erase all that the server has of an agent or a person: `await` it for an `Erased`.

        Calls for the subject are refused until all is done. A server that is killed goes on
        by itself when it starts.

        Args:
            agent_id: the agent whose data goes; give it, or `user_id`.
            user_id: the person whose memory goes, with the prompts that were made with it.
            session_id: of the agent only this session, and what it saved in that.
            step_id: of the agent only this step, such as `step_012`: its call, its result and
                what has them; with `session_id` it must be one of that session.
            filter: only the records that this expression lets through.
            shared: what becomes of records that the agent saved into the memory of persons and
                spaces: `authorship`, the default, takes its name off them; `records` takes them
                with it.
            tenant: whose they are; default: the credential's.
            dry_run: only count; nothing is changed.
            timeout: seconds between two signs of progress.

        Raises:
            ValueError: it is not either an agent or a person.
        """
        if bool(agent_id) == bool(user_id):
            raise ValueError("give one of agent_id and user_id: whose data goes")
        whose = pb.EraseSubject(tenant=tenant)
        if agent_id:
            whose.agent_id = _values.text("agent_id", agent_id)
        else:
            whose.user_id = _values.text("user_id", user_id)
        whose.session_id = _values.text("session_id", session_id)
        whose.step_id = _values.text("step_id", step_id)
        whose.filter = _values.text("filter", filter)
        request = pb.EraseScopeRequest(subject=whose, dry_run=dry_run)
        if shared is not None:
            number = _values.enum_number("shared", _SHARED, "ERASE_SHARED_", shared)
            request.shared = cast("pb.EraseShared", number)
        return Erasing(self._transport, request, _values.wait("timeout", timeout))


def _erased(m: pb.EraseResult) -> Erased:
    return Erased(
        counts=MappingProxyType(dict(m.counts)),
        entries=m.entries,
        bytes=m.bytes,
        bytes_state=_values.enum_name(_BYTES_STATE, "ERASE_BYTES_STATE_", m.bytes_state),
        resumed=m.resumed,
        certificate=m.certificate,
    )
