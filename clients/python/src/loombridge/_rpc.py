"""One connection and how calls go over it: deadlines, retries, errors."""

import asyncio
import copy
import random
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast
from weakref import WeakSet

import grpc
import grpc.aio
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

from loombridge import _errors, _statuses, _values
from loombridge.v1 import (
    admin_pb2,
    attach_pb2,
    bridge_pb2,
    children_pb2,
    context_pb2,
    events_pb2,
    memory_pb2,
    messages_pb2,
    prompt_pb2,
    renewal_pb2,
    servers_pb2,
    sharing_pb2,
    tools_pb2,
    transfer_pb2,
)

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)
ItemT = TypeVar("ItemT")

RETRY_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each repetition of a call that found no server: enough for a
server that restarts, and an end within about three seconds if it is gone."""

LONGEST_PAUSE = 2.0
"""Seconds between two attempts to resume a stream, at most."""

HEALTH_CHECK = "/grpc.health.v1.Health/Check"


@dataclass(frozen=True, slots=True)
class Method(Generic[Req, Resp]):
    """One RPC: where it is, what it takes and gives."""

    service: str
    name: str
    request: type[Req]
    response: type[Resp]
    reads: bool
    """It changes nothing, so it may be repeated at will."""

    @property
    def path(self) -> str:
        """The RPC's path on the wire."""
        return f"/loombridge.v1.{self.service}/{self.name}"


_RPCS = {
    rpc.input_type.full_name: rpc
    for file in (
        admin_pb2,
        bridge_pb2,
        context_pb2,
        events_pb2,
        memory_pb2,
        sharing_pb2,
        tools_pb2,
        transfer_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
    for rpc in service.methods
}
"""What the protos say of each RPC, by the type of its requests, which no two share."""


def _method(request: type[Req], response: type[Resp]) -> Method[Req, Resp]:
    """Return the RPC that takes such requests."""
    rpc = _RPCS[request.DESCRIPTOR.full_name]
    reads = rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    return Method(rpc.containing_service.name, rpc.name, request, response, reads)


MEMORY_SAVE = _method(memory_pb2.MemorySaveRequest, memory_pb2.MemorySaveResponse)
MEMORY_QUERY = _method(memory_pb2.MemoryQueryRequest, memory_pb2.MemoryQueryResponse)
TOOL = _method(tools_pb2.ToolRequest, tools_pb2.ToolResponse)
EMIT = _method(events_pb2.EmitRequest, events_pb2.EmitResponse)
ATTACH = _method(attach_pb2.AttachRequest, attach_pb2.AttachResponse)
GET_RECORD = _method(memory_pb2.GetRecordRequest, memory_pb2.Record)
UPDATE_RECORD = _method(memory_pb2.UpdateRecordRequest, memory_pb2.Record)
RELATE_RECORDS = _method(memory_pb2.RelateRecordsRequest, memory_pb2.RelateRecordsResponse)
UNRELATE_RECORDS = _method(memory_pb2.UnrelateRecordsRequest, memory_pb2.UnrelateRecordsResponse)
LIST_RELATIONS = _method(memory_pb2.ListRelationsRequest, memory_pb2.ListRelationsResponse)
DELETE_RECORDS = _method(memory_pb2.DeleteRecordsRequest, memory_pb2.DeleteRecordsResponse)
LIST_RECORDS = _method(memory_pb2.ListRecordsRequest, memory_pb2.ListRecordsResponse)
BATCH_SAVE = _method(memory_pb2.BatchSaveRequest, memory_pb2.BatchSaveResponse)
WATCH_RECORDS = _method(memory_pb2.WatchRecordsRequest, memory_pb2.WatchRecordsResponse)
EXPORT = _method(transfer_pb2.ExportRequest, transfer_pb2.ExportResponse)
IMPORT = _method(transfer_pb2.ImportRequest, transfer_pb2.ImportResponse)
ERASE_SCOPE = _method(memory_pb2.EraseScopeRequest, memory_pb2.EraseScopeResponse)
REEMBED = _method(memory_pb2.ReembedRequest, memory_pb2.ReembedResponse)
CREATE_SPACE = _method(sharing_pb2.CreateSpaceRequest, sharing_pb2.Space)
DELETE_SPACE = _method(sharing_pb2.DeleteSpaceRequest, sharing_pb2.DeleteSpaceResponse)
LIST_SPACES = _method(sharing_pb2.ListSpacesRequest, sharing_pb2.ListSpacesResponse)
GRANT_ACCESS = _method(sharing_pb2.GrantAccessRequest, sharing_pb2.Grant)
REVOKE_ACCESS = _method(sharing_pb2.RevokeAccessRequest, sharing_pb2.RevokeAccessResponse)
LIST_GRANTS = _method(sharing_pb2.ListGrantsRequest, sharing_pb2.ListGrantsResponse)
APPEND_MESSAGES = _method(context_pb2.AppendMessagesRequest, context_pb2.AppendMessagesResponse)
RECORD_STEP = _method(context_pb2.RecordStepRequest, context_pb2.RecordStepResponse)
UPLOAD_STEP = _method(context_pb2.UploadStepRequest, context_pb2.RecordStepResponse)
LIST_STEPS = _method(context_pb2.ListStepsRequest, context_pb2.ListStepsResponse)
GET_STEP = _method(context_pb2.GetStepRequest, context_pb2.Step)
ASSEMBLE = _method(context_pb2.AssembleRequest, context_pb2.AssembleResponse)
CONFIGURE_SESSION = _method(
    context_pb2.ConfigureSessionRequest, context_pb2.ConfigureSessionResponse
)
UPDATE_WORKING = _method(prompt_pb2.UpdateWorkingRequest, prompt_pb2.Working)
LIST_SESSIONS = _method(context_pb2.ListSessionsRequest, context_pb2.ListSessionsResponse)
LIST_CONVERSATION = _method(
    context_pb2.ListConversationRequest, context_pb2.ListConversationResponse
)
END_SESSION = _method(context_pb2.EndSessionRequest, context_pb2.EndSessionResponse)
COMPACT_HISTORY = _method(context_pb2.CompactHistoryRequest, context_pb2.CompactHistoryResponse)
DIFF_PROMPTS = _method(context_pb2.DiffPromptsRequest, context_pb2.DiffPromptsResponse)
FIND_IN_PROMPTS = _method(context_pb2.FindInPromptsRequest, context_pb2.FindInPromptsResponse)
UNDO = _method(context_pb2.UndoRequest, context_pb2.UndoResponse)
RENEW = _method(renewal_pb2.RenewRequest, renewal_pb2.RenewResponse)
LIST_SNAPSHOTS = _method(renewal_pb2.ListSnapshotsRequest, renewal_pb2.ListSnapshotsResponse)
REPORT_USAGE = _method(context_pb2.ReportUsageRequest, context_pb2.ReportUsageResponse)
COMPRESS_RESULT = _method(context_pb2.CompressResultRequest, context_pb2.CompressResultResponse)
COUNT_TOKENS = _method(context_pb2.CountTokensRequest, context_pb2.TokenCount)
READ_BLOB = _method(context_pb2.ReadBlobRequest, context_pb2.ReadBlobResponse)
LIST_BLOBS = _method(context_pb2.ListBlobsRequest, context_pb2.ListBlobsResponse)
UPDATE_BLOB = _method(context_pb2.UpdateBlobRequest, context_pb2.BlobInfo)
SEARCH_BLOBS = _method(context_pb2.SearchBlobsRequest, context_pb2.SearchBlobsResponse)
COLLECT_GARBAGE = _method(context_pb2.CollectGarbageRequest, context_pb2.CollectGarbageResponse)
SPAWN_AGENT = _method(children_pb2.SpawnAgentRequest, children_pb2.ChildAgent)
COMPLETE_TASK = _method(children_pb2.CompleteTaskRequest, children_pb2.CompleteTaskResponse)
WAIT_AGENTS = _method(children_pb2.WaitAgentsRequest, children_pb2.WaitAgentsResponse)
LIST_TOOLS = _method(tools_pb2.ListToolsRequest, tools_pb2.ListToolsResponse)
WATCH_APPROVALS = _method(tools_pb2.WatchApprovalsRequest, tools_pb2.WatchApprovalsResponse)
APPROVE_CALL = _method(tools_pb2.ApproveCallRequest, tools_pb2.PendingApproval)
LIST_APPROVALS = _method(tools_pb2.ListApprovalsRequest, tools_pb2.ListApprovalsResponse)
REVOKE_APPROVAL = _method(tools_pb2.RevokeApprovalRequest, tools_pb2.RevokeApprovalResponse)
LIST_MCP_SERVERS = _method(servers_pb2.ListMcpServersRequest, servers_pb2.ListMcpServersResponse)
CONNECT_MCP_SERVER = _method(servers_pb2.ConnectMcpServerRequest, servers_pb2.McpServer)
REMOVE_MCP_SERVER = _method(servers_pb2.RemoveMcpServerRequest, servers_pb2.RemoveMcpServerResponse)
LIST_AUDIT = _method(tools_pb2.ListAuditRequest, tools_pb2.ListAuditResponse)
SEND_MESSAGE = _method(messages_pb2.SendMessageRequest, messages_pb2.SendMessageResponse)
LIST_MESSAGES = _method(messages_pb2.ListMessagesRequest, messages_pb2.ListMessagesResponse)
DELETE_MESSAGES = _method(messages_pb2.DeleteMessagesRequest, messages_pb2.DeleteMessagesResponse)
SUBSCRIBE = _method(events_pb2.SubscribeRequest, events_pb2.SubscribeResponse)
CREATE_BACKUP = _method(admin_pb2.CreateBackupRequest, admin_pb2.CreateBackupResponse)
MOVE_WORKSPACE = _method(admin_pb2.MoveWorkspaceRequest, admin_pb2.BridgeStatus)
LIST_BACKUPS = _method(admin_pb2.ListBackupsRequest, admin_pb2.ListBackupsResponse)
LIST_SCOPES = _method(admin_pb2.ListScopesRequest, admin_pb2.ListScopesResponse)
GET_STATUS = _method(admin_pb2.GetStatusRequest, admin_pb2.GetStatusResponse)


def pauses() -> Iterator[float]:
    """Yield the pauses between attempts to resume, without end, with jitter."""
    pause = RETRY_PAUSES[0]
    while True:
        yield _jitter(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _jitter(pause: float) -> float:
    # Many clients lose one server at the same moment; they must not return so.
    return pause * random.uniform(0.75, 1.25)  # noqa: S311


class Keeper(Protocol):
    """What keeps a server for this program alone."""

    @property
    def ended(self) -> bool:
        """It was killed."""
        ...

    def revive(self) -> None:
        """Start the server again, where it ended; this blocks.

        Raises:
            ServerUnreachableError: it did not start.
        """
        ...


class _Life:
    """What all know that share a channel: whether it is closed, and who keeps its server."""

    over = False
    keeper: Keeper | None = None


class Transport:
    """A channel with the credentials and the default timeout of its user."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: str,
        metadata: tuple[tuple[str, str], ...],
        timeout: float,
        keeper: Keeper | None = None,
    ) -> None:
        """Take over the channel: closing the transport closes it."""
        self.address = address
        self.timeout = timeout
        self._channel = channel
        self._metadata = (*metadata, ("loom-json", "text"))
        self._life = _Life()
        self._life.keeper = keeper
        self._space_id = ""
        # Many versions of grpcio leave streams open when their channel closes. A stream
        # without a reference ends by itself, so it is not held here either.
        self._streams: WeakSet[grpc.aio.Call] = WeakSet()

    def within(self, space_id: str) -> "Transport":
        """Return this transport for requests that are about the memory of a space."""
        other = copy.copy(self)
        other._space_id = space_id
        return other

    def _about(self, request: Req) -> Req:
        """Say whose memory a request is about."""
        if self._space_id:
            setattr(request, "space_id", self._space_id)  # noqa: B010  not every message has it
        return request

    async def call(
        self,
        method: Method[Req, Resp],
        request: Req,
        *,
        timeout: _values.Seconds | None = None,
        repeatable: bool = False,
    ) -> Resp:
        """Make a call, within `timeout` over all its attempts.

        It is made again when no server answers and the method reads or the call is
        `repeatable` (its request carries a request_id).
        """
        rpc = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )

        async def attempt(seconds: float) -> Resp:
            return await rpc(request, timeout=seconds, metadata=self._metadata)

        self._about(request)
        return await self._attempts(attempt, timeout, repeatable=method.reads or repeatable)

    async def pages(
        self,
        method: Method[Req, Resp],
        request: Req,
        items: Callable[[Resp], Iterable[ItemT]],
        timeout: _values.Seconds | None = None,
    ) -> AsyncGenerator[Iterable[ItemT], None]:
        """Yield what a List method lists, page for page, each within `timeout`."""
        request = copy.deepcopy(request)
        while True:
            answer = await self.call(method, request, timeout=timeout)
            yield items(answer)
            token: str = getattr(answer, "next_page_token")  # noqa: B009  every List has it
            if not token:
                return
            setattr(request, "page_token", token)  # noqa: B010

    async def items(
        self,
        method: Method[Req, Resp],
        request: Req,
        items: Callable[[Resp], Iterable[ItemT]],
        timeout: _values.Seconds | None = None,
        most: int | None = None,
    ) -> list[ItemT]:
        """Return what a List method lists, all or so many, each page within `timeout`."""
        found: list[ItemT] = []
        async for page in self.pages(method, request, items, timeout):
            found += page
            if most is not None and len(found) >= most:
                break
        return found[:most]

    async def upload(
        self,
        method: Method[Req, Resp],
        messages: Callable[[], AsyncIterator[Req]],
        *,
        timeout: _values.Seconds | None = None,
        repeatable: bool = False,
    ) -> Resp:
        """Make a call with many requests, under the rules of `call`.

        It is made again with what `messages` returns then.
        """
        rpc = self._channel.stream_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )

        async def attempt(seconds: float) -> Resp:
            broken: list[Exception] = []

            async def sent() -> AsyncIterator[Req]:
                try:
                    async for message in messages():
                        yield self._about(message)
                except Exception as err:
                    broken.append(err)
                    raise

            try:
                return await rpc(sent(), timeout=seconds, metadata=self._metadata)
            except asyncio.CancelledError:
                # gRPC cancels a call whose messages can't be made, and says no more.
                if broken:
                    raise broken[0] from None
                raise

        return await self._attempts(attempt, timeout, repeatable=repeatable)

    async def _attempts(
        self,
        attempt: Callable[[float], Awaitable[Resp]],
        timeout: _values.Seconds | None,
        *,
        repeatable: bool,
    ) -> Resp:
        seconds = self.timeout if timeout is None else _values.seconds("timeout", timeout)
        now = asyncio.get_running_loop().time
        deadline = now() + seconds
        waits = map(_jitter, RETRY_PAUSES if repeatable else ())
        while True:
            await self.stand()
            try:
                return await attempt(deadline - now())
            except grpc.aio.AioRpcError as err:
                wait = next(waits, None) if err.code() is grpc.StatusCode.UNAVAILABLE else None
                if wait is None or now() + wait >= deadline:
                    error = await self.failure(err)
                    raise error from _statuses.cause(error, err)
            except asyncio.CancelledError:
                self.check_cancelled()
                raise
            await asyncio.sleep(wait)

    def stream(
        self, method: Method[Req, Resp], request: Req
    ) -> grpc.aio.UnaryStreamCall[Req, Resp]:
        """Open a stream; it has no deadline."""
        self.check_open()
        rpc = self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        call = rpc(self._about(request), metadata=self._metadata)
        self._streams.add(call)
        return call

    def duplex(self, method: Method[Req, Resp]) -> grpc.aio.StreamStreamCall[Req, Resp]:
        """Open a stream in both directions; it has no deadline."""
        self.check_open()
        rpc = self._channel.stream_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        call = rpc(metadata=self._metadata)
        self._streams.add(call)
        return call

    async def read(
        self,
        call: "grpc.aio.UnaryStreamCall[Req, Resp] | grpc.aio.StreamStreamCall[Req, Resp]",
    ) -> Resp | None:
        """Return the next message of a stream, None at its end."""
        try:
            message = await call.read()
        except asyncio.CancelledError:
            self.check_cancelled()
            raise
        # At the end gRPC gives an object that is no message.
        return cast("Resp", message) if isinstance(message, Message) else None

    async def stand(self) -> None:
        """Start the program's own server again, if it was killed.

        Nothing was sent yet, so this is no repetition of a call.

        Raises:
            LoomBridgeError: the client is closed, or the server did not start.
        """
        self.check_open()
        keeper = self._life.keeper
        if keeper is not None and keeper.ended:
            await asyncio.to_thread(keeper.revive)
            await self.find(LONGEST_PAUSE)  # gRPC pauses between its attempts to connect

    async def find(self, wait: float) -> None:
        """Return when the server answers; look for it so many seconds, at least once.

        Raises:
            LoomBridgeError: it did not, or refused.
        """
        now = asyncio.get_running_loop().time
        give_up = now() + wait
        for pause in pauses():
            error = await self._probe()
            if error is None:
                return
            left = give_up - now()
            if error.code != grpc.StatusCode.UNAVAILABLE.name or left <= 0:
                raise error
            # The last look is at the very end.
            await asyncio.sleep(min(pause, left))

    async def _probe(self) -> _errors.LoomBridgeError | None:
        """Ask the server whether it is there, by the standard health check."""

        def same(data: bytes) -> bytes:
            return data

        rpc = self._channel.unary_unary(
            HEALTH_CHECK, request_serializer=same, response_deserializer=same
        )
        try:
            await rpc(b"", timeout=self.timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as err:
            # Whoever answers at all, though not about its health, is there.
            if err.code() is not grpc.StatusCode.UNIMPLEMENTED:
                return _statuses.from_rpc(err, self.address)
        return None

    async def failure(self, err: grpc.aio.AioRpcError) -> _errors.LoomBridgeError:
        """Return the error that a failed call stands for; an old server is asked its version."""
        error = _statuses.from_rpc(err, self.address)
        if err.code() is not grpc.StatusCode.UNIMPLEMENTED or error.reason:
            return error
        rpc = self._channel.unary_unary(
            GET_STATUS.path,
            request_serializer=GET_STATUS.request.SerializeToString,
            response_deserializer=GET_STATUS.response.FromString,
        )
        try:
            request = GET_STATUS.request()
            status = await rpc(request, timeout=self.timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as other:
            # It serves this API, though it may keep its status to itself.
            if other.code() is grpc.StatusCode.PERMISSION_DENIED:
                return _statuses.too_old(self.address, "", err)
            return error
        return _statuses.too_old(self.address, status.version, err)

    def check_open(self) -> None:
        """Raise ClientClosedError when the client is closed."""
        if self._life.over:
            raise _errors.ClientClosedError("the client is closed")

    def check_cancelled(self) -> None:
        """Tell a call that `close` ended from a task that was cancelled."""
        task = asyncio.current_task()
        if self._life.over and not (task and task.cancelling()):
            raise _errors.ClientClosedError("the client was closed during the call") from None

    async def close(self) -> None:
        """Cancel what is under way and close the channel; twice is fine."""
        self._life.over = True
        for call in list(self._streams):
            call.cancel()
        await self._channel.close()
