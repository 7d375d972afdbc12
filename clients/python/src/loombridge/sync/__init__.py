"""The synchronous client: the asynchronous one, on an event loop in a separate thread.

    with loombridge.sync.connect("127.0.0.1:50051", agent_id="researcher-1") as ctx:
        ctx.memory_save("Bitcoin closed at 45,000", metadata={"source": "desk"})
        for hit in ctx.memory_query("Bitcoin price"):
            print(hit.text)

Every method of `loombridge.Client` and its parts is there, with the same arguments: what is
awaited there is returned here, and `async for` is `for`. Where something is both, such as
`save_many`, the method returns all, and its twin with `_iter` at the end gives one by one.

Any thread may use a client, even one with its own event loop, as in a notebook.
Ctrl-C ends the wait and cancels the call. A client does not outlive a fork: connect in the
child, or start children by `spawn`.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

from loombridge import _background, _client, _connect, _local, _values
from loombridge.sync import _face, _twin
from loombridge.sync._face import *  # noqa: F403  its names are listed there


def connect(
    address: str | None = None,
    *,
    agent_id: str,
    session_id: str = "",
    token: str | None = None,
    tls: _connect.Tls | bool | None = None,
    timeout: _values.Seconds = 30.0,
    wait: _values.Seconds = _connect.WAIT,
) -> _face.Client:
    """Connect an agent to a Loom Bridge server, and return when it is connected.

    Use it as `with connect(...) as ctx:`, or close the client yourself; a forgotten client is
    closed at the end of the program.

    Args:
        address: `host:port` or `unix:/path`; default: the environment variable
            LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051.
        agent_id: the agent to act for.
        session_id: the session to work in; default: the server's default session.
        token: a bearer token, where the server asks for one.
        tls: True or a `Tls` for an encrypted connection. Default: plain, which is
            refused when a token would travel to another machine; False allows it.
        timeout: seconds that a call may take, unless it is given another.
        wait: seconds to look for the server when none answers at first; 0: look once.

    Raises:
        TypeError: an argument of a wrong type.
        ValueError: an invalid address, a timeout that is not positive, a negative wait, a token
            that would travel in the clear.
        ServerUnreachableError: no server answers in time, or it and the client do not agree
            on TLS.
        UnauthenticatedError: the token is not known, or the server asks for one.
        RuntimeError: the process was forked from one that had connected.
    """
    connecting = _connect.connect(
        address,
        agent_id=agent_id,
        session_id=session_id,
        token=token,
        tls=tls,
        timeout=timeout,
        wait=wait,
    )
    return _client_of(connecting)


def _client_of(connecting: _connect.Connecting) -> _face.Client:
    background = _background.Background("loombridge", "the client")

    async def work() -> _client.Client:
        return await connecting

    try:
        client = background.call(work)
    except BaseException:
        background.close()
        raise
    return _face.Client(_twin.Home(background, client), client)


def local(
    folder: str | os.PathLike[str] = ".",
    *,
    agent_id: str,
    session_id: str = "",
    args: Sequence[str] = (),
    binary: str | os.PathLike[str] | None = None,
    timeout: _values.Seconds = 30.0,
) -> AbstractContextManager[_face.Client]:
    """Connect an agent to the server of a folder, and start one if none runs.

    Use it as `with local(...) as ctx:`. Arguments and errors are those of `loombridge.local`;
    what happens there when it is entered, happens here as well.
    """
    return _Local(
        _local.local(
            folder,
            agent_id=agent_id,
            session_id=session_id,
            args=args,
            binary=binary,
            timeout=timeout,
        )
    )


class _Local(_connect.Unentered, AbstractContextManager[_face.Client]):
    """A client to be: `with` it."""

    call = "sync.local"
    how = "write `with loombridge.sync.local(...) as ctx:`"

    def __init__(self, it: _local.Local) -> None:
        """Start nothing yet."""
        self._with = _with(it)

    def __enter__(self) -> _face.Client:
        """Find or start the server, connect, and return the client."""
        return self._with.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Close the client, and let the server end."""
        return self._with.__exit__(kind, err, trace)


@contextmanager
def _with(it: _local.Local) -> Generator[_face.Client]:
    address = it.companion.start()
    try:
        with _client_of(it.connecting(address)) as client:
            yield client
    finally:
        it.companion.stop()


__all__ = ["connect", "local"]
__all__ += _face.__all__
