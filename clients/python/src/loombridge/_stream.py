"""What asynchronous iterators have in common: a wait that is given up loses nothing.

Cancelling a read of gRPC ends its call, and cancelling an asynchronous generator ends
the generator. So the code that fetches the next item runs in a separate task: a timeout
around `anext` ends the wait and not the work, and the next `anext` takes it up.
"""

import asyncio
import enum
import functools
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, overload

import grpc
import grpc.aio
from google.protobuf.message import Message

from loombridge import _errors, _rpc, _statuses

MESSAGES_AHEAD = 16
"""Messages that are read before they are asked for: so that many small ones cost a reader no extra
wait."""

BYTES_AHEAD = 64 << 10
"""Bytes of them, from which on no further one is read."""

ONE_READER = "another task waits for the next item; one reader at a time"

ItemT = TypeVar("ItemT")
ListT = TypeVar("ListT")
ParamT = ParamSpec("ParamT")
WireT = TypeVar("WireT")
RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class Pending(Generic[ItemT]):
    """One piece of work at a time, which goes on when who waits for it gives up.

    The work must not refer to the iterator that users hold: forgetting that one ends
    the work, which could not happen if the work kept it alive.
    """

    def __init__(self) -> None:
        """Begin without work."""
        self._task: asyncio.Task[ItemT] | None = None
        self._awaited = False

    async def get(self, work: Callable[[], Coroutine[Any, Any, ItemT]]) -> ItemT:
        """Return what the work gives: that which is under way, or else new work.

        Raises:
            RuntimeError: somebody waits for it already.
            StopAsyncIteration: `cancel` ended it.
            Exception: whatever the work raises.
        """
        if self._awaited:
            raise RuntimeError(ONE_READER)
        if self._task is None:
            self._task = asyncio.create_task(work())
            self._task.add_done_callback(_look_at)
        task = self._task
        self._awaited = True
        try:
            # asyncio.wait yields once even for what is done, and a timeout of 0 would
            # then never get it.
            if not task.done():
                await asyncio.wait({task})
        finally:
            self._awaited = False
        if self._task is not task:
            raise StopAsyncIteration
        self._task = None
        return task.result()

    def cancel(self) -> "asyncio.Task[ItemT] | None":
        """End the work, and return it; waiters learn that it has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        return task


def _look_at(task: "asyncio.Task[Any]") -> None:
    # The error of an abandoned wait shall not be reported as lost.
    if not task.cancelled():
        task.exception()


class Pages(Generic[WireT, ItemT]):
    """The items of pages that a generator fetches, one by one.

    `aclose`, or forgetting it, ends the generator. One reader at a time.
    """

    def __init__(
        self, pages: AsyncGenerator[Iterable[WireT], None], item: Callable[[WireT], ItemT]
    ) -> None:
        """Take over the generator, which has not begun yet; `item` makes the visible items."""
        self._pages = pages
        self._item = item
        self._wire: Iterator[WireT] = iter(())
        self._pending: Pending[Iterable[WireT]] = Pending()

    def __aiter__(self) -> Self:
        """Return it itself."""
        return self

    async def __anext__(self) -> ItemT:
        """Return the next item; a new page is fetched when it is needed."""
        while True:
            for each in self._wire:
                return self._item(each)
            self._wire = iter(await self._pending.get(_next_of(self._pages)))

    def __await__(self) -> Generator[Any, None, list[ItemT]]:
        """Return all items that are left, as a list."""
        return self._all().__await__()

    async def _all(self) -> list[ItemT]:
        return [item async for item in self]

    def at_hand(self) -> list[ItemT]:
        """Return the rest of the page that was fetched last; the next item comes behind it."""
        return [self._item(each) for each in self._wire]

    async def aclose(self) -> None:
        """End the generator; twice is fine."""
        self._wire = iter(())
        fetching = self._pending.cancel()
        if fetching is not None:
            await asyncio.wait({fetching})
        await self._pages.aclose()

    def __del__(self) -> None:
        """End the fetching of a page without waiters."""
        # The event loop may be gone already.
        with suppress(RuntimeError):
            self._pending.cancel()


class Listed(Generic[ListT, ItemT]):
    """Things that were listed: `await` it for all of them, or take them with `async for`."""

    def __init__(self, fetching: Coroutine[Any, Any, ListT]) -> None:
        """Take over a call, which has not begun yet."""
        self._fetching = fetching

    def __await__(self) -> Generator[Any, None, ListT]:
        """Return all of them."""
        return self._fetching.__await__()

    async def __aiter__(self) -> AsyncIterator[ItemT]:
        """Yield them one by one."""
        for item in cast("Iterable[ItemT]", await self._fetching):
            yield item


@overload
def listed(
    function: Callable[ParamT, Coroutine[Any, Any, tuple[ItemT, ...]]],
) -> Callable[ParamT, Listed[tuple[ItemT, ...], ItemT]]: ...


@overload
def listed(
    function: Callable[ParamT, Coroutine[Any, Any, list[ItemT]]],
) -> Callable[ParamT, Listed[list[ItemT], ItemT]]: ...


def listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let what a method lists be awaited, and taken one by one as well."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Listed[Any, Any]:
        return Listed(function(*args, **kwargs))

    return call


def _next_of(
    pages: AsyncGenerator[Iterable[WireT], None],
) -> Callable[[], Coroutine[Any, Any, Iterable[WireT]]]:
    async def work() -> Iterable[WireT]:
        return await anext(pages)

    return work


class Resume(enum.Enum):
    """When a call that found no server, or broke, is made again."""

    NEVER = "the work is done by asking again"
    AT_FIRST = "until something has come, which would come twice"
    ALWAYS = "the request says where to go on"


class Receiver(Generic[RequestT, ResponseT]):
    """Receives the messages of one call, and makes the call again where that helps.

    A task reads a few messages ahead, so that a cancelled reader cancels no read. It
    makes the call again only when all of them were taken: the request, which may say
    where to go on, is up to date then.
    """

    def __init__(
        self,
        transport: _rpc.Transport,
        method: "_rpc.Method[RequestT, ResponseT]",
        request: RequestT,
        timeout: float | None,
        resume: Resume,
        nothing: str,
    ) -> None:
        """Make no call yet; `nothing` says what did not come within the timeout, if any."""
        self.request = request
        """What the call asks for; a change holds from the next call on."""
        self.closed = False
        """Nothing more is received."""
        self._transport = transport
        self._method = method
        self._timeout = timeout
        self._resume = resume
        self._nothing = nothing
        self._call: grpc.aio.UnaryStreamCall[RequestT, ResponseT] | None = None
        self._pauses = iter(() if resume is Resume.NEVER else _rpc.RETRY_PAUSES)
        self._task: asyncio.Task[None] | None = None
        self._unread: deque[ResponseT] = deque()
        self._unread_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    async def next(self) -> ResponseT:
        """Return the next message.

        Raises:
            StopAsyncIteration: there is none, or it was closed.
            LoomBridgeError: the call failed, or nothing came within the timeout.
            RuntimeError: somebody waits for it already.
        """
        while not self._unread:
            if self._task is not None and self._task.done():
                task, self._task = self._task, None
                task.result()
            elif self.closed:
                raise StopAsyncIteration
            else:
                await self._wait()
        message = self._unread.popleft()
        self._unread_bytes -= message.ByteSize()
        _wake(self._writer)
        return message

    async def _wait(self) -> None:
        """Return when there is something to take, or nothing more will come."""
        if self._reader is not None:
            raise RuntimeError(ONE_READER)
        if self._task is None:
            self._task = asyncio.create_task(self._read_ahead())
            self._task.add_done_callback(_look_at)
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    async def _read_ahead(self) -> None:
        try:
            while (message := await self.receive()) is not None:
                self._unread.append(message)
                self._unread_bytes += message.ByteSize()
                _wake(self._reader)
                while len(self._unread) >= MESSAGES_AHEAD or self._unread_bytes > BYTES_AHEAD:
                    await self._until_taken()
        finally:
            _wake(self._reader)

    async def _until_taken(self) -> None:
        """Return when the reader has taken another message."""
        self._writer = asyncio.get_running_loop().create_future()
        await self._writer

    async def receive(self) -> ResponseT | None:
        """Return the next message from the wire, None at the end."""
        while True:
            if self._call is None:
                await self.all_taken()
                await self._transport.stand()
                self._call = self._transport.stream(self._method, self.request)
            try:
                async with asyncio.timeout(self._timeout):
                    return self._received(await self._transport.read(self._call))
            except grpc.aio.AioRpcError as err:
                unavailable = err.code() is grpc.StatusCode.UNAVAILABLE
                pause = next(self._pauses, None) if unavailable else None
                self._give_up(for_good=pause is None)
                if pause is None:
                    error = await self._transport.failure(err)
                    raise error from _statuses.cause(error, err)
            except TimeoutError as err:
                self._give_up(for_good=True)
                raise _errors.DeadlineExceededError(
                    f"{self._nothing} within {self._timeout:g} s", reason="DEADLINE_EXCEEDED"
                ) from err
            await asyncio.sleep(pause)

    async def all_taken(self) -> None:
        """Return when no message waits for the reader: the request is up to date."""
        while self._unread:
            await self._until_taken()

    def _received(self, message: ResponseT | None) -> ResponseT | None:
        self.closed = self.closed or message is None
        self._pauses = iter(_rpc.RETRY_PAUSES if self._resume is Resume.ALWAYS else ())
        return message

    def _give_up(self, *, for_good: bool) -> None:
        """Drop the call. One that can go on where it was is made again if asked to."""
        self.closed = self.closed or (for_good and self._resume is not Resume.ALWAYS)
        self._call = None

    def close(self) -> None:
        """End the call, and drop the items not taken; idempotent."""
        self.closed = True
        self._unread.clear()
        _wake(self._reader)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        if self._call is not None:
            self._call.cancel()


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


class Stream(Generic[RequestT, ResponseT]):
    """What users hold of a call that gives one answer after the other.

    `close`, leaving `async with`, and forgetting the stream all end the call. A wait
    that is cancelled does not: the next one goes on where it was.
    """

    def __init__(self, receiver: Receiver[RequestT, ResponseT]) -> None:
        """Begin without a call."""
        # The task that reads must not refer to the stream: forgetting it ends the task.
        self._receiver = receiver

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        self._receiver.close()

    def __del__(self) -> None:
        """End the call of a loop that was left; gRPC itself would keep it open."""
        # The event loop may be gone already, and with it the call.
        with suppress(RuntimeError):
            self.close()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the call."""
        self.close()
