"""A server in the test's own process that answers as the test tells it."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from loombridge import _rpc
from loombridge.v1 import admin_pb2

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)
Call: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

HEALTHY = b"\x08\x01"
"""HealthCheckResponse with status SERVING, on the wire."""


class Fake:
    """Answers calls by functions the test sets, and remembers what it was asked."""

    def __init__(self) -> None:
        self.address = ""
        self.health: tuple[grpc.StatusCode, str] | None = None
        """What health checks are refused with, code and reason; None: all is well."""
        self.requests: list[Any] = []
        self.metadata: list[dict[str, str | bytes]] = []
        self.identity: tuple[grpc.StatusCode, str] | None = None
        """What the first real call of a client is refused with; None: it is known."""
        self._entering = 0
        self._unary: dict[str, Callable[[Any, Call], Awaitable[Any]]] = {}
        self._streams: dict[str, Callable[[Any, Call], AsyncGenerator[Any, None]]] = {}
        """Of a stream in both directions, the request is the stream of requests."""

    def on(
        self,
        method: _rpc.Method[Req, Resp],
        answer: Resp | Callable[[Req, Call], Awaitable[Resp]],
    ) -> None:
        """Answer a method with a message, or by a function."""

        async def same(_request: Req, _call: Call) -> Resp:
            return cast("Resp", answer)

        self._unary[method.path] = same if isinstance(answer, Message) else answer

    def on_stream(
        self,
        method: _rpc.Method[Req, Resp],
        answer: Callable[[Req, Call], AsyncGenerator[Resp, None]],
    ) -> None:
        """Answer a streaming method by a generator."""
        self._streams[method.path] = answer

    def on_duplex(
        self,
        method: _rpc.Method[Req, Resp],
        answer: Callable[[AsyncIterator[Req], Call], AsyncGenerator[Resp, None]],
    ) -> None:
        """Answer a stream of requests by a generator."""
        self._streams[method.path] = answer

    def on_upload(
        self,
        method: _rpc.Method[Req, Resp],
        answer: Callable[[AsyncIterator[Req], Call], Awaitable[Resp]],
    ) -> None:
        """Answer a method that takes many requests, by a function."""
        self._unary[method.path] = answer

    def handler(self, method: _rpc.Method[Any, Any]) -> "grpc.RpcMethodHandler[Any, Any]":
        """Return what gRPC calls for a method."""

        async def unary(request: Any, call: Call) -> Any:
            if method is _rpc.GET_STATUS and self._entering:
                return await self._enter(call)
            self._note(request, call)
            return await self._unary[method.path](request, call)

        async def stream(request: Any, call: Call) -> AsyncGenerator[Any, None]:
            self._note(request, call)
            async for message in self._streams[method.path](request, call):
                yield message

        async def duplex(requests: AsyncIterator[Any], call: Call) -> AsyncGenerator[Any, None]:
            self.metadata.append(dict(cast("Any", call.invocation_metadata())))
            async for message in self._streams[method.path](requests, call):
                yield message

        async def upload(requests: AsyncIterator[Any], call: Call) -> Any:
            self.metadata.append(dict(cast("Any", call.invocation_metadata())))
            return await self._unary[method.path](requests, call)

        if method is _rpc.UPLOAD_STEP:
            return grpc.stream_unary_rpc_method_handler(
                cast("Any", upload), method.request.FromString, method.response.SerializeToString
            )
        if method is _rpc.ATTACH:
            return grpc.stream_stream_rpc_method_handler(
                cast("Any", duplex), method.request.FromString, method.response.SerializeToString
            )
        if method in (_rpc.READ_BLOB, _rpc.SEARCH_BLOBS, _rpc.SUBSCRIBE, _rpc.REEMBED):
            return grpc.unary_stream_rpc_method_handler(
                cast("Any", stream), method.request.FromString, method.response.SerializeToString
            )
        return grpc.unary_unary_rpc_method_handler(
            cast("Any", unary), method.request.FromString, method.response.SerializeToString
        )

    async def healthy(self, _request: bytes, call: Call) -> bytes:
        """Answer a health check, by which every client begins."""
        self.metadata.append(dict(cast("Any", call.invocation_metadata())))
        if self.health is not None:
            await refuse(call, self.health[0], "no", reason=self.health[1])
        self._entering += 1
        return HEALTHY

    async def _enter(self, call: Call) -> admin_pb2.GetStatusResponse:
        """Answer what a client asks behind its health check; tests hear nothing of it."""
        self._entering -= 1
        if self.identity is not None:
            await refuse(call, self.identity[0], "no", reason=self.identity[1])
        return admin_pb2.GetStatusResponse()

    def _note(self, request: Any, call: Call) -> None:
        self.requests.append(request)
        self.metadata.append(dict(cast("Any", call.invocation_metadata())))


async def refuse(
    call: Call,
    code: grpc.StatusCode,
    message: str,
    *,
    reason: str = "",
    metadata: dict[str, str] | None = None,
    violations: Sequence[tuple[str, str]] = (),
) -> None:
    """End a call with an error as the real server sends it."""
    details: list[Message] = []
    if reason:
        details.append(ErrorInfo(reason=reason, domain="loombridge.v1", metadata=metadata or {}))
    if violations:
        bad = BadRequest()
        for field, description in violations:
            bad.field_violations.add(field=field, description=description)
        details.append(bad)
    status = Status(code=code.value[0], message=message)
    for detail in details:
        packed = AnyMessage()
        cast("Any", packed).Pack(detail)
        status.details.append(packed)
    rich = cast("Any", rpc_status).to_status(status)
    await cast("Any", call).abort_with_status(rich)


def methods() -> list[_rpc.Method[Any, Any]]:
    """Return every method the client knows."""
    return [m for m in vars(_rpc).values() if isinstance(m, _rpc.Method)]


@asynccontextmanager
async def fake_server(port: int = 0) -> AsyncGenerator[Fake, None]:
    """Run a fake on a free port while the block runs."""
    fake = Fake()
    srv = grpc.aio.server()
    by_service: dict[str, dict[str, Any]] = {}
    for method in methods():
        by_service.setdefault(method.service, {})[method.name] = fake.handler(method)

    check: dict[str, Any] = {
        "Check": grpc.unary_unary_rpc_method_handler(cast("Any", fake.healthy))
    }
    handlers = [
        grpc.method_handlers_generic_handler(f"loombridge.v1.{service}", table)
        for service, table in by_service.items()
    ]
    handlers.append(grpc.method_handlers_generic_handler("grpc.health.v1.Health", check))
    srv.add_generic_rpc_handlers(handlers)
    fake.address = f"127.0.0.1:{srv.add_insecure_port(f'127.0.0.1:{port}')}"
    await srv.start()
    try:
        yield fake
    finally:
        await srv.stop(None)
