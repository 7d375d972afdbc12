"""What streams of answers have in common: they end their call."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Generic, TypeVar

import grpc

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class Stream(Generic[RequestT, ResponseT]):
    """Holds the call of a stream, if it has one, and ends it.

    `close`, leaving `async with`, and forgetting the stream all end the call.
    """

    def __init__(self) -> None:
        """Begin without a call."""
        self._call: grpc.aio.UnaryStreamCall[RequestT, ResponseT] | None = None
        self._closed = False

    def close(self) -> None:
        """End the call; twice is fine. A reader that waits ends its loop."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()

    def _was_closed(self) -> bool:
        """Tell a read that `close` ended from a task that was cancelled."""
        task = asyncio.current_task()
        return self._closed and not (task and task.cancelling())

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
