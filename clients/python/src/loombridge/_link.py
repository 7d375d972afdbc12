"""One Attach stream: what goes out waits its turn, what comes in is taken at once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import grpc
import grpc.aio

from loombridge import _errors, _rpc, _statuses
from loombridge.v1 import attach_pb2 as pb
from loombridge.v1 import events_pb2

CLOSE_TIMEOUT = 1.0
"""Seconds the server has to answer the end of a stream before it is cut off."""

_Call: TypeAlias = "grpc.aio.StreamStreamCall[pb.AttachRequest, pb.AttachResponse]"


class LinkEndedError(Exception):
    """The stream ended before the server answered."""


class Link:
    """An open stream and the tasks that live and die with it."""

    def __init__(self, transport: _rpc.Transport) -> None:
        """Open the stream; `open` says hello."""
        self.subscribed: dict[str, int] = {}
        """The topics it carries, with the version of each."""
        self._transport = transport
        self._call: _Call = transport.duplex(_rpc.ATTACH)
        self._out: asyncio.Queue[tuple[pb.AttachRequest, asyncio.Future[None]]] = asyncio.Queue()
        self._asked: dict[int, asyncio.Future[pb.AttachAnswer]] = {}
        self._ref = 0
        self._ended = False
        self._retired = False
        self._reader: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, hello: pb.AttachHello, timeout: float) -> events_pb2.SubscriptionReady:
        """Register the agent; return when it is in the directory.

        Raises:
            LoomBridgeError: the server refused, or no server answered in time.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._greet(hello)
        except TimeoutError:
            self.cut()
            raise _errors.DeadlineExceededError(
                f"the agent was not attached within {timeout:g} s", reason="DEADLINE_EXCEEDED"
            ) from None
        except BaseException:
            self.cut()
            raise

    async def _greet(self, hello: pb.AttachHello) -> events_pb2.SubscriptionReady:
        try:
            await self._call.write(pb.AttachRequest(hello=hello))
            message = await self._transport.read(self._call)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise await self._why() from None
        if message is None or not message.HasField("ready"):
            raise _errors.InternalError("the server attached the agent without `ready`")
        return message.ready

    async def _why(self) -> _errors.LoomBridgeError:
        """Return the error that ended the stream."""
        try:
            await self._transport.read(self._call)
        except grpc.aio.AioRpcError as err:
            error = _statuses.from_rpc(err, self._transport.address)
            error.__cause__ = err
            return error
        return _errors.ServerUnreachableError("the server ended the stream")

    def start(self, take: Callable[[pb.AttachResponse], None]) -> None:
        """Begin to read and write; `take` gets every message but answers."""
        self._reader = asyncio.create_task(self._read(take))
        self._reader.add_done_callback(_forget)
        self.live(self._write())

    def live(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run something for as long as the stream stands, at most."""
        return _keep(self._tasks, work)

    def serve(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that answers on this stream; a retired stream waits for it."""
        _keep(self._running, work).add_done_callback(lambda _task: self._finish_if_idle())

    async def _read(self, take: Callable[[pb.AttachResponse], None]) -> None:
        try:
            while True:
                try:
                    message = await self._transport.read(self._call)
                except grpc.aio.AioRpcError as err:
                    error = _statuses.from_rpc(err, self._transport.address)
                    raise error from _statuses.cause(error, err)
                if message is None:
                    raise _errors.ServerUnreachableError("the server ended the stream")
                asked = None
                if message.HasField("answer"):
                    asked = self._asked.pop(message.answer.ref, None)
                if asked is not None and not asked.done():
                    asked.set_result(message.answer)
                else:
                    take(message)
        finally:
            self._end()

    async def _write(self) -> None:
        while True:
            request, written = await self._out.get()
            try:
                await self._call.write(request)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # The reader learns why.
            if not written.done():
                written.set_result(None)

    def _end(self) -> None:
        self._ended = True
        for task in (*self._running, *self._tasks):
            task.cancel()
        for asked in self._asked.values():
            if not asked.done():
                asked.cancel()
        self._asked.clear()

    async def send(self, request: pb.AttachRequest) -> None:
        """Send a message; return when it is on its way."""
        if self._ended:
            raise LinkEndedError
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._out.put_nowait((request, written))
        await written

    async def ask(self, request: pb.AttachRequest) -> pb.AttachAnswer:
        """Send a message that has a `ref`, and return the server's answer."""
        if self._ended:
            raise LinkEndedError
        self._ref += 1
        ref = self._ref
        request.ref = ref
        asked: asyncio.Future[pb.AttachAnswer] = asyncio.get_running_loop().create_future()
        self._asked[ref] = asked
        try:
            await self.send(request)
            return await asked
        finally:
            self._asked.pop(ref, None)

    @property
    def reader(self) -> "asyncio.Task[None]":
        """The task that reads: it ends with the stream, with the error that ended it."""
        assert self._reader is not None  # noqa: S101  start comes first
        return self._reader

    @property
    def is_over(self) -> bool:
        """The stream has ended."""
        return self._ended

    def retire(self) -> None:
        """End the stream when it has answered what it was asked: another one took over."""
        self._retired = True
        self._finish_if_idle()

    def _finish_if_idle(self) -> None:
        if self._retired and not self._running and not self._ended:
            self.live(self._finish())

    async def _finish(self) -> None:
        await self._call.done_writing()

    async def close(self, closer: "asyncio.Task[Any] | None" = None) -> None:
        """Say goodbye, and end the stream and its tasks, all but the one that closes."""
        tasks = (self._running | self._tasks) - {closer}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._reader is not None and not self._ended:
            await self._call.done_writing()
            await asyncio.wait({self._reader}, timeout=CLOSE_TIMEOUT)
        self.cut()
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)

    def cut(self) -> None:
        """End the call at once; twice is fine."""
        self._ended = True
        self._call.cancel()


def _keep(
    tasks: "set[asyncio.Task[None]]", work: Coroutine[Any, Any, None]
) -> "asyncio.Task[None]":
    # The event loop holds tasks weakly; a set holds them for real.
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    task.add_done_callback(_forget)
    return task


def _forget(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()
