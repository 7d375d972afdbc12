"""Where an adapter's calls run: one event loop, whatever thread or loop they come from."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, TypedDict, TypeVar

from loombridge import _background, _client, _connect, _values

ResultT = TypeVar("ResultT")
Work = Callable[[_client.Client], Coroutine[Any, Any, ResultT]]
"""What is done with a client, on its event loop."""


class Connection(TypedDict, total=False):
    """How an adapter connects, where it is not given a client: see `loombridge.connect`."""

    token: str | None
    """A bearer token, where the server asks for one."""
    tls: _connect.Tls | bool | None
    """True or a `Tls` for an encrypted connection."""
    timeout: _values.Seconds
    """Seconds that a call to the server may take."""


class OwnLoop:
    """An event loop in a separate thread, and a client that lives there.

    Both begin with the first call. Any thread and any event loop may call.
    """

    def __init__(self, connect: Callable[[], Awaitable[_client.Client]]) -> None:
        """Keep how to connect."""
        self._connect = connect
        self._background = _background.Background("loombridge-adapter", "the adapter")
        self._client: _client.Client | None = None
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

    def __init__(self, client: _client.Client) -> None:
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
                "this adapter uses a client of the running event loop: await its asynchronous "
                "methods, or make it from the server's address"
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


Loop: TypeAlias = OwnLoop | ClientLoop
"""Either of them."""


class Adapter:
    """What has such a loop until it is closed; a base of the adapters."""

    _loop: Loop
    _end: Callable[[], object]

    def _open(
        self,
        server: _client.Client | str | None,
        agent_id: str | None,
        default: str,
        connection: Connection,
    ) -> None:
        """Begin; the first call connects.

        Args:
            server: `host:port`, `unix:/path` or None, as of `loombridge.connect`; or a client.
            agent_id: the agent to act for.
            default: that agent where none is named and there is no client.
            connection: how to connect.

        Raises:
            ValueError: an argument that does not fit.
        """
        if isinstance(server, _client.Client):
            if agent_id not in (None, server.agent_id):
                raise ValueError("a client brings its own agent_id")
            self._loop = ClientLoop(server)
        else:
            connect = partial(_connect.connect, server, agent_id=agent_id or default, **connection)
            connect()  # Wrong arguments are reported now; it connects when awaited.
            self._loop = OwnLoop(connect)
        self._end = weakref.finalize(self, self._loop.close)

    def close(self) -> None:
        """End the connection, unless it is that of a client; twice is fine."""
        self._end()

    async def aclose(self) -> None:
        """End the connection, unless it is that of a client; twice is fine."""
        await asyncio.to_thread(self._end)

    def __enter__(self) -> Self:
        """Return it itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return it itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.aclose()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
