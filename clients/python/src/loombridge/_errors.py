"""What can go wrong: one base class, one subclass per reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loombridge import _values


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field of a request that breaks a rule."""

    field: str
    """Path of the field, such as `messages[2].role`."""
    description: str
    """The rule it breaks, for people."""


class LoomBridgeError(Exception):
    """The base of every error this package raises for a call.

    Switch on the class or on `reason`, never on the text. Wrong types and values
    that cannot travel are plain `TypeError` and `ValueError`, before any call.
    """

    reason: str
    """Name of the `ErrorReason`, such as `RECORD_NOT_FOUND`; empty when the
    server gave none."""
    code: str
    """Name of the gRPC status code, such as `NOT_FOUND`; empty when the error
    did not come from a call."""
    message: str
    """What went wrong, for people."""
    metadata: Mapping[str, str]
    """Details of the reason, for programs."""
    violations: tuple[FieldViolation, ...]
    """The fields that break a rule; all of them at once."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        code: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[FieldViolation] = (),
    ) -> None:
        """Keep the fields; only `message` is needed."""
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.code = code
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)

    def __str__(self) -> str:
        """Return the message and, where it does not name them, the violations."""
        missing = [
            f"{v.field} {v.description}"
            for v in self.violations
            # The message may have in full what was cut to fit there.
            if v.description.removesuffix("…") not in self.message
        ]
        return "; ".join([self.message, *missing])

    def _number(self, key: str) -> int:
        value = self.metadata.get(key, "")
        return int(value) if value.isdecimal() else 0


class ServerUnreachableError(LoomBridgeError):
    """No server answers at the address, or the connection broke during a call.

    A call that changes something may or may not have taken effect; give it a
    `request_id` and make it again.
    """


class WrongAddressError(LoomBridgeError):
    """A server answers at the address, but does not serve this API there.

    One with credentials serves loom.v1 on a separate address, and nothing else there.
    """


class ServerTooOldError(LoomBridgeError):
    """The server does not know the method of a call, for it is older than the client.

    The message names the server's version and the method; nothing was done.
    """


class ClientClosedError(LoomBridgeError):
    """The client was closed before or during the call."""


class ToolFailedError(LoomBridgeError):
    """A tool failed; raised only by `ToolResult.raise_for_error`."""


class RequestFailedError(LoomBridgeError):
    """Who was asked by `ctx.request` could not answer; the message is its own."""

    @property
    def agent_id(self) -> str:
        """The agent that was asked; empty when unknown."""
        return self.metadata.get("agent_id", "")


class InvalidRequestError(LoomBridgeError):
    """Fields of the request break a rule; `violations` names each."""


class InternalError(LoomBridgeError):
    """A fault of the server; its log has the cause."""


class UnauthenticatedError(LoomBridgeError):
    """No credential, or one that the server does not know."""


class AgentNotOwnedError(LoomBridgeError):
    """The credential may not act for this agent."""


class AccessDeniedError(LoomBridgeError):
    """The agent has not the access that the call needs, or there is no such space."""

    @property
    def needed(self) -> str:
        """What it would have needed: `read`, `write` or `admin`."""
        return self.metadata.get("needed", "")


class SpaceExistsError(LoomBridgeError):
    """A space of that name is there, to which the agent has access."""


class LastAdminError(LoomBridgeError):
    """Nobody would administer the space any more; nothing was changed."""


class GrantNotFoundError(LoomBridgeError):
    """Nothing is granted to those agents."""


class SubjectNotFoundError(LoomBridgeError):
    """The store has nothing of the subject that is to be erased; nothing was changed."""


class BeingErasedError(LoomBridgeError):
    """The agent or the person is being erased; nothing was changed."""


class ErasureRunningError(LoomBridgeError):
    """Another subject is being erased; make the call again when that is over."""


class SubjectInUseError(LoomBridgeError):
    """Calls of the subject do not end when asked to; make the call again."""


class StoreSharedError(LoomBridgeError):
    """Other servers have the store open, so nothing was erased."""


class RequestIdReusedError(LoomBridgeError):
    """The `request_id` was used before with other content."""


class RequestElsewhereError(LoomBridgeError):
    """Another server on the same store carries the request out; call again for its answer."""


class RecordNotFoundError(LoomBridgeError):
    """No such record, or it has expired."""


class RecordExistsError(LoomBridgeError):
    """The `id`, `key` or name is taken by a record, session, task or message that differs."""

    def __str__(self) -> str:
        """Return the message, and how to save in the place of a record that has the key."""
        saved = super().__str__()
        if self.metadata.get("field") != "key":
            return saved
        return f"{saved}; to change that record, save with replace=True"


class InvalidFilterError(LoomBridgeError):
    """The filter does not parse, or names something unknown."""


class NoEmbedderError(LoomBridgeError):
    """The query mode needs vectors, and the server makes none."""


class VersionConflictError(LoomBridgeError):
    """The record has another version than expected: read it again and decide."""

    @property
    def id(self) -> str:
        """The record's id; empty when unknown."""
        return self.metadata.get("id", "")

    @property
    def expected_version(self) -> int:
        """The version that the call expected."""
        return self._number("expected_version")

    @property
    def version(self) -> int:
        """The version that the record has."""
        return self._number("version")


class EmbeddingMismatchError(LoomBridgeError):
    """A vector has another dimension than the others of its space."""

    @property
    def embedding_space(self) -> str:
        """The space."""
        return self.metadata.get("embedding_space", "")

    @property
    def dimension(self) -> int:
        """How many numbers the vector has."""
        return self._number("dimension")

    @property
    def want_dimension(self) -> int:
        """How many it must have."""
        return self._number("want_dimension")


class EmbedderUnavailableError(LoomBridgeError):
    """The server's embedder does not answer, and the call can't do without."""


class QuotaExceededError(LoomBridgeError):
    """A tenant or an agent has its share of something that stays; waiting does not help."""

    @property
    def share(self) -> str:
        """What there is no more of, such as `bytes of agents' tools`."""
        return self.metadata.get("share", "")


class McpServerNotFoundError(LoomBridgeError):
    """There is no server of the Model Context Protocol of that name."""


class McpServerExistsError(LoomBridgeError):
    """There is another server of the Model Context Protocol of that name."""


class McpServerConfiguredError(LoomBridgeError):
    """The server of the Model Context Protocol stands in the settings of the server."""


class ToolNameTakenError(LoomBridgeError):
    """The name of a provided tool means a tool of the server or of another agent.

    Names that models write alike, such as `a:b` and `a_b`, are one name.
    """

    @property
    def tool(self) -> str:
        """The name that was refused."""
        return self.metadata.get("tool", "")

    @property
    def agent_id(self) -> str:
        """The agent whose tool it is; empty for the server's own."""
        return self.metadata.get("agent_id", "")


class ToolNotAllowedError(LoomBridgeError):
    """The credential does not let its agents provide a tool of this name."""

    @property
    def tool(self) -> str:
        """The name that was refused."""
        return self.metadata.get("tool", "")


class NobodyListensError(LoomBridgeError):
    """Nobody is subscribed to the topic; the event was not emitted."""


class ToolNotFoundError(LoomBridgeError):
    """No tool of that name."""

    @property
    def nearest(self) -> str:
        """Name of the tool that is spelled most like it; empty when unknown."""
        return self.metadata.get("nearest", "")


class InvalidArgumentsError(LoomBridgeError):
    """The tool's arguments do not match its schema."""

    @property
    def schema(self) -> Any:
        """The JSON Schema they must match; None when the server sent none."""
        try:
            return _values.from_json(self.metadata.get("schema", ""))
        except ValueError:
            return None


class StoreFailedError(LoomBridgeError):
    """An earlier write failed; the server takes no writes until it is started again.

    Reading goes on.
    """


class StoreUnreachableError(LoomBridgeError):
    """The server of the store does not answer; nothing was written, so try again."""


class StoreDamagedError(LoomBridgeError):
    """What the call needs can't be read from the server's disk."""


class StepNotFoundError(LoomBridgeError):
    """No step of that id."""


class OperatorRequiredError(LoomBridgeError):
    """The call is for who runs the server; the credential does not say `operates`."""


class NoBackupFolderError(LoomBridgeError):
    """The server was started without `--backup-dir`, so there are no backups."""


class BackupRunningError(LoomBridgeError):
    """A backup is being made or removed; try again when that is over."""


class ApprovalNotAllowedError(LoomBridgeError):
    """The credential approves no calls, or not of that agent, or the call is the own one."""


class ApprovalNotFoundError(LoomBridgeError):
    """No call waits for approval, or no approval is remembered, under that id."""


class BlobNotFoundError(LoomBridgeError):
    """No blob under that path, step id or ref."""


class BlobCollectedError(LoomBridgeError):
    """The blob was there, expired, and was collected as garbage."""


class BlobQuotaExceededError(LoomBridgeError):
    """The agent's blobs take all it may have."""


class BlobDamagedError(LoomBridgeError):
    """Stored bytes do not match their hash."""


class WorkingTooLargeError(LoomBridgeError):
    """Prompts would show too much of what the agent is at; nothing was changed."""


class NoRenewalError(LoomBridgeError):
    """The policy of the session's history never renews its window."""


class SnapshotNotFoundError(LoomBridgeError):
    """The session's window was not renewed that often."""


class ContextOverflowError(LoomBridgeError):
    """The prompt does not fit its budget."""

    @property
    def part(self) -> str:
        """What takes most room.

        `system`, `tools`, `goal`, or a piece of the history such as
        `step_002 (fs:read_file)`.
        """
        return self.metadata.get("part", "")

    @property
    def part_tokens(self) -> int:
        """Tokens of the largest part."""
        return self._number("part_tokens")

    @property
    def total_tokens(self) -> int:
        """Tokens of the whole prompt."""
        return self._number("total_tokens")

    @property
    def max_tokens(self) -> int:
        """Tokens that were allowed."""
        return self._number("max_tokens")


class NothingToUndoError(LoomBridgeError):
    """The session has no fold, or its last batch is another one."""


class PromptUnknownError(LoomBridgeError):
    """The prompt is not one of the session's last, or is from before a restart."""


class PromptGoneError(LoomBridgeError):
    """A prompt that was sent before can't be made again, as something is gone since."""

    @property
    def missing(self) -> str:
        """What is no longer there."""
        return self.metadata.get("missing", "")


class ReservedTopicError(LoomBridgeError):
    """Only the server emits on the topic."""


class PositionUnknownError(LoomBridgeError):
    """The topic has no such sequence yet."""


class PositionGoneError(LoomBridgeError):
    """What changed behind a position is not known any more; watch again without one."""


class SlowConsumerError(LoomBridgeError):
    """The subscriber did not read for too long; resume from its `positions`."""


class TooLargeError(LoomBridgeError):
    """Something exceeds a stated limit."""


class OverloadedError(LoomBridgeError):
    """Too much work is waiting; try again later."""

    @property
    def share(self) -> str:
        """What the share of is used up, such as `open streams`; empty for something else."""
        return self.metadata.get("share", "")


class ToolLimitError(LoomBridgeError):
    """A limit of the tool has no room for the call, which did not run."""

    @property
    def tool(self) -> str:
        """The tool that was called."""
        return self.metadata.get("tool", "")

    @property
    def rule(self) -> str:
        """The limit, such as `web:* 30/m per tenant`."""
        return self.metadata.get("rule", "")

    @property
    def retry_after(self) -> float:
        """Seconds to wait before the call is made again."""
        return float(self.metadata.get("retry_after", 0))


class StorageFullError(LoomBridgeError):
    """The server's disk has no room; nothing was written."""


class ShuttingDownError(LoomBridgeError):
    """The server is stopping; connect again."""


class DeadlineExceededError(LoomBridgeError):
    """The call took longer than its timeout; it may have taken effect."""


class CallCancelledError(LoomBridgeError):
    """The call was given up, by this client or on the way."""


class OutcomeUnknownError(LoomBridgeError):
    """The store failed while writing.

    Whether the call took effect shows when it is made again with the same
    `request_id`.
    """


class AgentLimitExceededError(LoomBridgeError):
    """An agent has used up one of its limits, or has too many children at once."""

    @property
    def limit(self) -> str:
        """Which: such as `steps`, `files`, `bytes` or `children_of_parent`."""
        return self.metadata.get("limit", "")


class MaxDepthExceededError(LoomBridgeError):
    """The agent is as deep as one may be, so it has no children."""


class AgentExistsError(LoomBridgeError):
    """The id of the child is that of an agent, or of an entry of the workspace."""


class AgentNotFoundError(LoomBridgeError):
    """Nobody has spawned an agent of that id, or somebody else has."""


class AgentEndedError(LoomBridgeError):
    """The child has its result, and does nothing more."""


class WorkspaceAwayError(LoomBridgeError):
    """The server that has the agent's workspace is not reached; nothing ran."""

    @property
    def server(self) -> str:
        """What that server is called."""
        return self.metadata.get("server", "")


class WorkspaceElsewhereError(LoomBridgeError):
    """Another server has the agent's workspace, and no mesh joins the two; nothing ran.

    Or workspaces belong to no server here, where one is asked for.
    """

    @property
    def server(self) -> str:
        """What that server is called."""
        return self.metadata.get("server", "")

    @property
    def address(self) -> str:
        """Where it is reached."""
        return self.metadata.get("address", "")


class ServerNotFoundError(LoomBridgeError):
    """No server of that name is registered with the store, or several are."""


def said_by(err: Exception) -> str:
    """Return what an exception of the user's says, or its name, so that it can travel."""
    try:
        text = str(err) or type(err).__name__
    except Exception:
        # Whatever is raised, who waits for it gets an answer.
        text = type(err).__name__
    # A lone surrogate must not break the stream.
    return text.encode(errors="replace").decode()
