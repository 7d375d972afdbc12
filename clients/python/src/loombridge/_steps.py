"""Steps of an agent and the blobs they offloaded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self, cast

from google.protobuf.json_format import MessageToDict

from loombridge import _brief, _rpc, _stream, _values
from loombridge.v1 import context_pb2 as pb


@dataclass(frozen=True, slots=True, repr=False)
class Step(_brief.Brief):
    """What the log keeps of one tool call: little, and the way back to all of it."""

    id: str
    """`step_` and the agent's counter from 1, at least three digits."""
    tool_name: str
    """The tool."""
    minimal_args: Mapping[str, Any]
    """What stays of the arguments."""
    observation: str
    """One line that says what happened; only a failure may have more."""
    outcome_ref: str
    """SHA-256 in hex of the full result, or empty when nothing was offloaded."""
    outcome_path: str
    """Path of that blob, or empty."""
    create_time: datetime
    """When the step was recorded, in UTC."""
    success: bool
    """The tool did its work."""
    outcome: str
    """`succeeded`, `failed`, or `unknown`: the server stopped while it ran."""
    thought: str
    """What the model said before the call."""
    error: str
    """The failure's text, or empty."""
    inline: str
    """The result text a prompt shows while the step is recent."""
    metadata: Mapping[str, Any]
    """Figures of the result, such as `size`, `sha256`, `type`."""
    session_id: str
    """The session it belongs to."""
    turn_id: str
    """Holds parallel calls together, or is empty."""
    call_id: str
    """The model's id of the call, or empty."""
    position: int
    """Its place in the session's log."""
    needs_offload: bool
    """The full result lies in a blob."""
    pinned: bool
    """Prompts show it as it is, whatever its age."""
    result_form: str = ""
    """Form in which the result was given: `none`, `json`, `text` or `bytes`; empty when
    that is not known."""
    refused: bool = False
    """The call was refused: the tool was not run at all, or met what it may not touch."""

    def to_observation(self) -> str:
        """Return the observation for a model, with where all of the result can be read."""
        if not self.needs_offload:
            return self.observation
        first, line, rest = self.observation.partition("\n")
        hint = "\nUse fs:read_file to retrieve if needed."
        return f"{first}. Saved to {self.outcome_path}{line}{rest}{hint}"


def ids(steps: object) -> object:
    """Return steps by their ids; anything else as it is."""
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        return steps
    given = cast("Iterable[object]", steps)
    return [each.id if isinstance(each, Step) else each for each in given]


@dataclass(frozen=True, slots=True)
class BlobArchive:
    """How a blob lies in the archive."""

    category: str
    """`reports`, `datasets`, `config` or `general`."""
    tags: tuple[str, ...]
    """The agent's own words for it."""


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """Offloaded bytes."""

    ref: str
    """SHA-256 of the bytes, in hex; its first 12 or more digits name it too."""
    path: str
    """Its path, such as `workspace/outputs/read_001.txt`."""
    size: int
    """Number of bytes."""
    kind: str
    """`text`, `json`, `log`, `image`, `audio` or `binary`."""
    step_id: str
    """The step that made it."""
    session_id: str
    """The session it was made in."""
    create_time: datetime
    """When it was stored, in UTC."""
    agent_id: str
    """Whose it is."""
    category: str
    """What sort of call made it, such as `read`, `search`, `shell` or `tool`; it
    decides how long the blob stays."""
    media_type: str
    """Its format, such as `image/png`; empty for text, and when unknown."""
    ttl: timedelta | None
    """How long it stays; None means for ever."""
    expire_time: datetime | None
    """When it expires, in UTC; None means never."""
    tier: str
    """How much it is worth keeping: `working`, `short_term` or `long_term`."""
    important: bool
    """It is kept although it has expired."""
    archive: BlobArchive | None
    """How it lies in the archive; None outside."""
    aliases: tuple[str, ...]
    """The paths it had before, which lead to it, too."""


@dataclass(frozen=True, slots=True, repr=False)
class RecordedStep(_brief.Brief):
    """What the log keeps of a tool that the agent ran itself."""

    step: Step
    """The step."""
    observation: str
    """The text for a model: one line, and where the rest can be read."""
    blob: BlobInfo | None
    """Where the full result lies, when it was offloaded."""
    task_id: str = ""
    """Names the task, where one was given."""
    replayed: bool = False
    """It is the answer that the same `request_id` got before."""
    output_collected: bool = False
    """The blob with the full result, which that answer had, was collected since: `blob` is
    None, and the step is all there is."""
    redacted: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """How many secrets marks such as `[redacted:jwt]` stand for, by pattern; empty where the
    server does not redact, and in the answer to a repeated request."""


class BlobStream(_stream.Stream[pb.ReadBlobRequest, pb.ReadBlobResponse]):
    """The bytes of a blob, piece by piece: `async for piece in stream`.

    A piece is at most 1 MiB, checked against its hash by the server. Leaving an
    `async with` block, `close`, or dropping the stream ends the call. One reader
    at a time. When the connection breaks, it goes on behind the last piece.
    """

    def __init__(
        self, transport: _rpc.Transport, request: pb.ReadBlobRequest, timeout: float
    ) -> None:
        """Made by `ctx.context.stream_blob`."""
        super().__init__(
            _stream.Receiver(
                transport,
                _rpc.READ_BLOB,
                request,
                timeout,
                _stream.Resume.ALWAYS,
                f"no piece of {request.name} came",
            )
        )
        self.info: BlobInfo | None = None
        """What the blob is; None until the first piece was asked for."""

    def __aiter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece.

        Raises:
            BlobNotFoundError: no blob under that name.
            BlobDamagedError: stored bytes do not match their hash.
            DeadlineExceededError: no piece came within the timeout.
        """
        while True:
            message = await self._receiver.next()
            if message.HasField("info"):
                self.info = blob_info(message.info)
            if message.data:
                self._move_on(len(message.data))
                return message.data

    def _move_on(self, size: int) -> None:
        # Where to go on if the connection breaks now. A limit of 0 would mean "to
        # the end", so the call that has given all it should is left to end.
        request = self._receiver.request
        request.offset += size
        if request.limit > size:
            request.limit -= size
        elif request.limit:
            self.close()

    async def __aenter__(self) -> Self:
        """Return the stream itself; the call begins with the first piece."""
        return self


def step(m: pb.Step) -> Step:
    """Return a step as users see it."""
    return Step(
        id=m.id,
        tool_name=m.tool_name,
        minimal_args=_values.from_json(m.minimal_args_json)
        or _figures(MessageToDict(m.minimal_args)),
        observation=m.observation,
        outcome_ref=m.outcome_ref,
        outcome_path=m.outcome_path,
        create_time=_values.moment(m.create_time),
        success=m.success,
        outcome=_values.enum_name(pb.StepOutcome.DESCRIPTOR, "STEP_OUTCOME_", m.outcome),
        thought=m.thought,
        error=m.error,
        inline=m.inline,
        metadata=_figures(MessageToDict(m.metadata)),
        session_id=m.session_id,
        turn_id=m.turn_id,
        call_id=m.call_id,
        position=m.position,
        needs_offload=bool(m.outcome_ref),
        pinned=m.pinned,
        result_form=_values.enum_name(pb.ResultForm.DESCRIPTOR, "RESULT_FORM_", m.result_form)
        if m.result_form
        else "",
        refused=m.refused,
    )


def recorded_step(m: pb.RecordStepResponse) -> RecordedStep:
    """Return the answer to a recorded step as users see it."""
    return RecordedStep(
        step=step(m.step),
        observation=m.observation,
        blob=blob_info(m.output_blob) if m.HasField("output_blob") else None,
        task_id=m.task_id,
        replayed=m.replayed,
        output_collected=m.output_collected,
        redacted=dict(m.redacted),
    )


def _figures(values: dict[str, Any]) -> dict[str, Any]:
    # A Struct holds every number as a float; sizes and counts are whole.
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in values.items()
    }


def blob_info(m: pb.BlobInfo) -> BlobInfo:
    """Return the description of a blob as users see it."""
    return BlobInfo(
        ref=m.ref,
        path=m.path,
        size=m.size,
        kind=m.kind,
        step_id=m.step_id,
        session_id=m.session_id,
        create_time=_values.moment(m.create_time),
        agent_id=m.agent_id,
        category=m.category,
        media_type=m.media_type,
        ttl=m.ttl.ToTimedelta() if m.HasField("ttl") else None,
        expire_time=_values.moment(m.expire_time) if m.HasField("expire_time") else None,
        tier=_values.enum_name(pb.BlobTier.DESCRIPTOR, "BLOB_TIER_", m.tier),
        important=m.important,
        archive=_archive(m.archive) if m.HasField("archive") else None,
        aliases=tuple(m.aliases),
    )


def _archive(m: pb.BlobArchive) -> BlobArchive:
    return BlobArchive(
        category=m.category,
        tags=tuple(m.tags),
    )
