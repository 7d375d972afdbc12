"""Connecting, credentials, closing."""

import asyncio
import time
import traceback
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, fake_server
from loombridge import _connect, _rpc
from loombridge.v1 import admin_pb2


async def test_with_and_await_give_the_same_client(fake: Fake) -> None:
    fake.on(_rpc.GET_STATUS, admin_pb2.GetStatusResponse(version="1"))
    async with loombridge.connect(fake.address, agent_id="a", session_id="s") as ctx:
        assert (ctx.agent_id, ctx.session_id) == ("a", "s")
        await ctx.status()
    ctx = await loombridge.connect(fake.address, agent_id="a")
    await ctx.status()
    await ctx.close()
    async with await loombridge.connect(fake.address, agent_id="a") as ctx:
        await ctx.status()


async def test_close_twice_and_use_after_it(fake: Fake) -> None:
    async with loombridge.connect(fake.address, agent_id="a") as ctx:
        await ctx.close()
        await ctx.close()
        with pytest.raises(loombridge.ClientClosedError):
            await ctx.status()
        with pytest.raises(loombridge.ClientClosedError):
            await ctx.context.read_blob("x")
        with pytest.raises(loombridge.ClientClosedError):
            await anext(ctx.events.subscribe("t"))


async def test_close_ends_calls_under_way(fake: Fake) -> None:
    begun = asyncio.Event()

    async def answer(_request: Any, _call: Call) -> Any:
        begun.set()
        await asyncio.sleep(60)

    fake.on(_rpc.GET_STATUS, answer)
    ctx = await loombridge.connect(fake.address, agent_id="a")
    task = asyncio.create_task(ctx.status())
    await begun.wait()
    await ctx.close()
    with pytest.raises(loombridge.ClientClosedError):
        await task


async def test_a_cancelled_task_is_cancelled(fake: Fake, ctx: loombridge.Client) -> None:
    begun = asyncio.Event()

    async def answer(_request: Any, _call: Call) -> Any:
        begun.set()
        await asyncio.sleep(60)

    fake.on(_rpc.GET_STATUS, answer)
    task = asyncio.create_task(ctx.status())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_token_travels_with_every_call(fake: Fake) -> None:
    fake.on(_rpc.GET_STATUS, admin_pb2.GetStatusResponse())
    async with loombridge.connect(fake.address, agent_id="a", token="secret") as ctx:  # noqa: S106
        await ctx.status()
    assert [m.get("authorization") for m in fake.metadata] == ["Bearer secret"] * 2
    assert all(m.get("loom-agent") for m in fake.metadata)


def test_token_stays_off_open_wires() -> None:
    with pytest.raises(ValueError, match=r"unencrypted to example\.org:1"):
        loombridge.connect("example.org:1", agent_id="a", token="secret")  # noqa: S106
    for address in ("127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/tmp/x"):
        loombridge.connect(address, agent_id="a", token="secret")  # noqa: S106
    loombridge.connect("example.org:1", agent_id="a", token="secret", tls=False)  # noqa: S106
    loombridge.connect("example.org:1", agent_id="a", token="secret", tls=True)  # noqa: S106
    with pytest.raises(ValueError, match="unencrypted"):
        loombridge.connect("127.evil.org:1", agent_id="a", token="secret")  # noqa: S106


def test_half_a_client_certificate_is_refused() -> None:
    with pytest.raises(ValueError, match="cert_file and key_file go together"):
        loombridge.Tls(cert_file="client.pem")


async def test_tls_against_a_plain_server_is_unreachable(fake: Fake) -> None:
    with pytest.raises(loombridge.ServerUnreachableError):
        await loombridge.connect(fake.address, agent_id="a", tls=True, timeout=5, wait=0)


async def test_address_comes_from_the_environment(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_connect.ADDRESS_VARIABLE, fake.address)
    async with loombridge.connect(agent_id="a"):
        pass
    assert fake.metadata
    monkeypatch.setenv(_connect.ADDRESS_VARIABLE, "")
    assert "127.0.0.1:50051" in str(vars(loombridge.connect(agent_id="a")))


async def test_proxies_of_the_environment_are_not_for_this_machine(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:1")
    async with loombridge.connect(fake.address, agent_id="a"):
        pass


async def test_a_server_may_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01,))
    async with fake_server() as gone:
        port = int(gone.address.rpartition(":")[2])
    connecting = asyncio.ensure_future(_connected(gone.address))
    await asyncio.sleep(0.2)
    assert not connecting.done()
    async with fake_server(port):
        await (await connecting).close()


async def _connected(address: str) -> loombridge.Client:
    return await loombridge.connect(address, agent_id="a", wait=30)


@pytest.mark.parametrize("wait", [0, 0.3])
async def test_a_server_that_does_not_come(wait: float) -> None:
    begin = time.monotonic()
    with pytest.raises(loombridge.ServerUnreachableError) as caught:
        await loombridge.connect("127.0.0.1:1", agent_id="a", wait=wait)
    assert wait <= time.monotonic() - begin < wait + 20
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("Traceback") == 1
    with pytest.raises(ValueError, match="wait must not be less than zero"):
        loombridge.connect("127.0.0.1:1", agent_id="a", wait=-1)


async def test_a_server_that_refuses_is_not_asked_again(fake: Fake) -> None:
    fake.health = (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    with pytest.raises(loombridge.UnauthenticatedError):
        await loombridge.connect(fake.address, agent_id="a", wait=30)
    assert len(fake.metadata) == 1


async def test_a_token_that_is_not_known_is_said_on_entering(fake: Fake) -> None:
    fake.identity = (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    with pytest.raises(loombridge.UnauthenticatedError):
        async with loombridge.connect(fake.address, agent_id="a", token="bad"):  # noqa: S106
            pytest.fail("the block was entered")
    fake.identity = (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    async with loombridge.connect(fake.address, agent_id="a"):
        pass


def test_connect_alone_is_no_client() -> None:
    ctx: Any = loombridge.connect("127.0.0.1:1", agent_id="a")
    with pytest.raises(AttributeError, match=r"no memory_save: write `async with .* or `ctx = aw"):
        ctx.memory_save("text")
    assert not hasattr(ctx, "nothing")
