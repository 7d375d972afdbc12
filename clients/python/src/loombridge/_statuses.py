"""What a call that failed stands for: its status and details as one of our errors."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from loombridge import _errors, _reasons

# Statuses that gRPC itself makes, without a reason from the server.
_BY_CODE: Mapping[grpc.StatusCode, type[_errors.LoomBridgeError]] = {
    grpc.StatusCode.UNAVAILABLE: _errors.ServerUnreachableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: _errors.DeadlineExceededError,
    grpc.StatusCode.CANCELLED: _errors.CallCancelledError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: _errors.TooLargeError,
    grpc.StatusCode.UNAUTHENTICATED: _errors.UnauthenticatedError,
    grpc.StatusCode.INTERNAL: _errors.InternalError,
}


_UNKNOWN_API = "unknown service loombridge.v1."
# What a server in Go says where it serves something else.


def from_rpc(err: grpc.aio.AioRpcError, address: str) -> _errors.LoomBridgeError:
    """Return the error that a failed call stands for."""
    info, violations, retry = _details(err)
    message = err.details() or err.code().name
    if not info.reason:
        kind = _BY_CODE.get(err.code(), _errors.LoomBridgeError)
        if kind is _errors.ServerUnreachableError:
            message = _unreachable(address, message)
        if err.code() is grpc.StatusCode.UNIMPLEMENTED and _UNKNOWN_API in message:
            kind, message = _errors.WrongAddressError, _wrong_address(address)
        return kind(message, code=err.code().name)
    return _reasons.BY_REASON.get(info.reason, _errors.LoomBridgeError)(
        message,
        reason=info.reason,
        code=err.code().name,
        metadata={**info.metadata, **retry},
        violations=violations,
    )


def too_old(address: str, version: str, err: grpc.aio.AioRpcError) -> _errors.LoomBridgeError:
    """Return the error of a method that a server does not know."""
    known = f"version {version}" if version else "of a version that it does not tell"
    return _errors.ServerTooOldError(
        f"the server at {address} is {known}, and too old for this call: {err.details()}",
        code=err.code().name,
    )


def cause(error: _errors.LoomBridgeError, err: BaseException) -> BaseException | None:
    """Return what to name as the cause of an error; None for what says nothing more.

    A second traceback in front of the sentence that helps would hide it, so only what
    gRPC itself said of a call that no server answered has one.
    """
    told = error.reason or isinstance(
        error,
        _errors.ServerUnreachableError | _errors.WrongAddressError | _errors.ServerTooOldError,
    )
    return None if told else err


def _details(
    err: grpc.aio.AioRpcError,
) -> tuple[ErrorInfo, list[_errors.FieldViolation], Mapping[str, str]]:
    info, bad, again = ErrorInfo(), BadRequest(), RetryInfo()
    retry: dict[str, str] = {}
    try:
        # grpc_status is typed only in newer stubs than the oldest checker has.
        status = cast(
            "Status | None",
            rpc_status.from_call(cast("Any", err)),  # pyright: ignore[reportUnknownMemberType]
        )
    except (ValueError, DecodeError):
        # A proxy changed the code or the text on the way; both still stand.
        status = None
    details = cast("Sequence[Any]", status.details if status else ())
    for detail in details:
        detail.Unpack(info)
        detail.Unpack(bad)
        if detail.Unpack(again):
            retry["retry_after"] = str(again.retry_delay.ToTimedelta().total_seconds())
    return (
        info,
        [_errors.FieldViolation(v.field, v.description) for v in bad.field_violations],
        retry,
    )


def _unreachable(address: str, why: str) -> str:
    return (
        f"no Loom Bridge server answers at {address} ({why}). Is one running there "
        f"(loom-bridge-server --addr {address}), and do both sides agree on TLS?"
    )


def _wrong_address(address: str) -> str:
    return (
        f"{address} does not serve loombridge.v1; a server with credentials serves loom.v1 "
        "only on its --loom-addr. Give the native address and its token: "
        "connect(address, token=...), attach(agent, address=..., token=...)"
    )
