"""Where a store's calls run: one event loop, whatever thread or loop they come from."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import loombridge
from loombridge import _background

ResultT = TypeVar("ResultT")
Work = Callable[[loombridge.Client], Coroutine[Any, Any, ResultT]]
"""What is done with a client, on its event loop."""


class OwnLoop:
    """An event loop in a separate thread, and a client that lives there.

    Both begin with the first call. Any thread and any event loop may call.
    """

    def __init__(self, connect: Callable[[], Awaitable[loombridge.Client]]) -> None:
        """Keep how to connect."""
        self._connect = connect
        self._background = _background.Background("loombridge-store", "the store")
        self._client: loombridge.Client | None = None
        """Used on the loop alone, as the lock below."""
        self._connecting = asyncio.Lock()

    def call(self, work: Work[ResultT]) -> ResultT:
        """Do work and wait for it."""
        return self._background.call(lambda: self._do(work))

    async def acall(self, work: Work[ResultT]) -> ResultT:
        """Do work; cancelling the caller cancels it."""
        return await self._background.acall(lambda: self._do(work))

    async def _do(self, work: Work[ResultT]) -> ResultT:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
        return await work(self._client)

    def close(self) -> None:
        """End the calls, the connection and the thread; twice is fine."""
        self._background.close(self._end)

    async def _end(self) -> None:
        if self._client is not None:
            await self._client.close()


class ClientLoop:
    """The client of a user, on the event loop that it belongs to."""

    def __init__(self, client: loombridge.Client) -> None:
        """Take the running loop for the client's; without one, the first that calls."""
        self._client = client
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def call(self, work: Work[ResultT]) -> ResultT:
        """Do work and wait for it, from another thread than the loop's.

        Raises:
            asyncio.InvalidStateError: this is the loop's own thread, which would wait
                for itself.
        """
        if self._loop is None or _running() is self._loop:
            raise asyncio.InvalidStateError(
                "this store uses a client of the running event loop: await its a-methods, "
                "such as aget, or make the store from the server's address"
            )
        return asyncio.run_coroutine_threadsafe(work(self._client), self._loop).result()

    async def acall(self, work: Work[ResultT]) -> ResultT:
        """Do work; cancelling the caller cancels it."""
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if loop is self._loop:
            return await work(self._client)
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(work(self._client), self._loop)
        )

    def close(self) -> None:
        """Do nothing: the client is its user's to close."""


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
