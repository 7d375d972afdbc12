"""How a client comes to be: address, credentials, channel."""

import os
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

import grpc
import grpc.aio

from loombridge import _client, _errors, _rpc, _values
from loombridge.v1 import admin_pb2

DEFAULT_ADDRESS = "127.0.0.1:50051"
"""Where a server listens that was given no address."""

ADDRESS_VARIABLE = "LOOM_BRIDGE_ADDR"
"""The environment's word on the address; the server reads it too."""

WAIT = 3.0
"""Seconds in which a server may still come that is not there at first: who is started
together with it may be quicker."""

LARGEST_ANSWER = 64 << 20
"""Bytes of one answer, at most: a page of steps may carry a few MiB of text, and a
client must not be made to hold more than it can."""

RECONNECT_MS = (100, 2_000)
"""Milliseconds between attempts to connect: first and longest. gRPC's own longest of
two minutes would leave a client blind long after a server's restart."""

KEEPALIVE_MS = (30_000, 10_000)
"""Milliseconds of silence during a call after which the server's host is asked
whether it is still there, and how long it may take to answer. The server lets
clients ask every five seconds."""


_PROCESSES: set[int] = set()
"""The processes that connected: this one, or the one from which it was forked."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS; `Tls()` trusts the authorities that gRPC ships."""

    ca_file: str | os.PathLike[str] | None = None
    """PEM file of the authorities to trust; default: the ones that gRPC ships."""
    cert_file: str | os.PathLike[str] | None = None
    """PEM file of the client's own certificate chain, for mTLS."""
    key_file: str | os.PathLike[str] | None = None
    """PEM file of its private key; goes with `cert_file`."""
    server_name: str | None = None
    """Name in the server's certificate; default: the address's host."""

    def __post_init__(self) -> None:
        """Refuse half of a pair."""
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together")


class Unentered:
    """Explains how to get a client when it is used as one."""

    call = "connect"
    """The function that returned it."""
    how = (
        "write `async with loombridge.connect(...) as ctx:` or "
        "`ctx = await loombridge.connect(...)`; without async, loombridge.sync.connect(...)"
    )
    """What to write instead."""

    if not TYPE_CHECKING:  # A checker shall still name what is not there.

        def __getattr__(self, name: str) -> NoReturn:
            """Say how to get the client that was meant."""
            raise AttributeError(
                f"{self.call}() is not connected yet and has no {name}: {self.how}",
                name=name,
                obj=self,
            )

        def __enter__(self) -> NoReturn:
            """Refuse a plain `with`."""
            raise TypeError(f"{self.call}() can't be entered like this: {self.how}")

        def __exit__(self, *_: object) -> None:
            """Never called; a plain `with` looks for it before it enters."""

        def __await__(self) -> NoReturn:
            """Refuse an `await`."""
            raise TypeError(f"{self.call}() can't be awaited: {self.how}")


class Connecting(Unentered):
    """A client to be: `async with` it, or `await` it and close the client yourself."""

    def __init__(
        self,
        address: str,
        agent_id: str,
        session_id: str,
        token: str | None,
        tls: Tls | None,
        timeout: float,
        wait: float,
    ) -> None:
        """Made by `connect`."""
        self.keeper: _rpc.Keeper | None = None
        self._address = address
        self._agent_id = agent_id
        self._session_id = session_id
        self._token = token
        self._tls = tls
        self._timeout = timeout
        self._wait = wait
        self._client: _client.Client | None = None

    def __await__(self) -> Generator[None, None, _client.Client]:
        """Connect, and return the client when the server knows who it is."""
        return self._connect().__await__()

    async def _connect(self) -> _client.Client:
        # The channel belongs to the running event loop, so it is made only here.
        channel = _channel(self._address, self._tls)
        credentials = (("authorization", f"Bearer {self._token}"),) if self._token else ()
        # A balancer sends calls of one agent to one server by it.
        about = (*credentials, ("loom-agent", quote(self._agent_id)))
        transport = _rpc.Transport(channel, self._address, about, self._timeout, self.keeper)
        try:
            await transport.find(self._wait)
            # Health checks need no credential, so they say nothing about this one. A
            # server that is busy says so later.
            with suppress(_errors.OverloadedError):
                await transport.call(_rpc.GET_STATUS, admin_pb2.GetStatusRequest())
        except BaseException:
            await transport.close()
            raise
        return _client.Client(transport, self._agent_id, self._session_id)

    async def __aenter__(self) -> _client.Client:
        """Connect, and return the client when the server knows who it is."""
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        if self._client is not None:
            await self._client.close()


def connect(
    address: str | None = None,
    *,
    agent_id: str,
    session_id: str = "",
    token: str | None = None,
    tls: Tls | bool | None = None,
    timeout: _values.Seconds = 30.0,
    wait: _values.Seconds = WAIT,
) -> Connecting:
    """Connect an agent to a Loom Bridge server.

    Use it as `async with connect(...) as ctx:`, or `ctx = await connect(...)` and
    `await ctx.close()`.

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
        ServerUnreachableError: when entered or awaited: no server answers in time, or it
            and the client do not agree on TLS.
        UnauthenticatedError: when entered or awaited: the token is not known, or the
            server asks for one.
        RuntimeError: when entered or awaited: the process was forked from one that had
            connected.
    """
    if address is None:
        address = os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    target = _check_address(address)
    if not _values.text("agent_id", agent_id):
        raise ValueError("agent_id must not be empty")
    if token and tls is None and not _is_local(target):
        raise ValueError(
            f"the token would travel unencrypted to {target}; give tls=True, or "
            "tls=False if something else protects the connection"
        )
    return Connecting(
        target,
        agent_id,
        _values.text("session_id", session_id),
        None if token is None else _values.text("token", token),
        Tls() if tls is True else tls or None,
        _values.seconds("timeout", timeout),
        _values.wait("wait", wait),
    )


def _check_address(address: object) -> str:
    target = _values.text("address", address)
    if target.startswith("unix:"):
        return target
    host, colon, port = target.rpartition(":")
    if "/" in target or not host or not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"address must be host:port or unix:/path, not {target!r}")
    return target


def _is_local(target: str) -> bool:
    host = target.rpartition(":")[0]
    return (
        target.startswith("unix:")
        or host in ("localhost", "[::1]")
        or (host.startswith("127.") and host.replace(".", "").isdecimal())
    )


def _check_process() -> None:
    """Refuse what gRPC would crash at: a connection in the child of one that had connected."""
    if _PROCESSES and os.getpid() not in _PROCESSES:
        raise RuntimeError(
            "this process was forked from one that had connected, and gRPC does not survive "
            "that: connect after the fork only, or start processes by `spawn`"
        )
    _PROCESSES.add(os.getpid())


def _channel(target: str, tls: Tls | None) -> grpc.aio.Channel:
    _check_process()
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", LARGEST_ANSWER),
        ("grpc.max_send_message_length", LARGEST_ANSWER),
        ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS[0]),
        ("grpc.min_reconnect_backoff_ms", RECONNECT_MS[0]),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_MS[1]),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS[0]),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_MS[1]),
    ]
    if _is_local(target):
        # http_proxy in the environment is for other machines.
        options.append(("grpc.enable_http_proxy", 0))
    if tls is None:
        return grpc.aio.insecure_channel(target, options=options)
    if tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_bytes(tls.ca_file),
        private_key=_bytes(tls.key_file),
        certificate_chain=_bytes(tls.cert_file),
    )
    return grpc.aio.secure_channel(target, credentials, options=options)


def _bytes(file: str | os.PathLike[str] | None) -> bytes | None:
    return None if file is None else Path(file).read_bytes()
