"""Tokens and TLS against the real binary."""

import logging
import socket
import subprocess
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import loombridge
from loombridge import testing
from loombridge.loom import attach
from loomv1.agent import Agent

TOKEN = "a token of this test"  # noqa: S105

CREDENTIALS = f"""
[[credential]]
token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"
tenant = "acme"
agents = ["research-*"]
"""


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for 127.0.0.1 and its key, made by Go's own tool."""
    folder = tmp_path_factory.mktemp("tls")
    goroot = subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()  # noqa: S607
    tool = Path(goroot) / "src" / "crypto" / "tls" / "generate_cert.go"
    command = ["go", "run", str(tool), "--host", "127.0.0.1", "--ca", "--ecdsa-curve", "P256"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
async def secured(
    binary: Path, certificate: Path, tmp_path: Path
) -> AsyncGenerator[testing.Server, None]:
    """A server that asks for a token, over TLS."""
    credentials = tmp_path / "credentials.toml"
    credentials.write_text(CREDENTIALS)
    args = [
        "--credentials",
        str(credentials),
        "--tls-cert",
        str(certificate / "cert.pem"),
        "--tls-key",
        str(certificate / "key.pem"),
    ]
    async with testing.server(binary, args=args) as srv:
        yield srv


async def test_a_known_token_over_tls(secured: testing.Server, certificate: Path) -> None:
    tls = loombridge.Tls(ca_file=certificate / "cert.pem")
    async with loombridge.connect(
        secured.address, agent_id="research-1", token=TOKEN, tls=tls
    ) as ctx:
        saved = await ctx.memory_save("kept for acme")
        assert (await ctx.memory.get(id=saved.id)).text == "kept for acme"
        assert (await ctx.status()).authentication


async def test_agents_of_others_and_unknown_tokens(
    secured: testing.Server, certificate: Path
) -> None:
    tls = loombridge.Tls(ca_file=certificate / "cert.pem")
    async with loombridge.connect(secured.address, agent_id="billing", token=TOKEN, tls=tls) as ctx:
        with pytest.raises(loombridge.AgentNotOwnedError):
            await ctx.memory_save("not mine")
    for token in (None, "guessed"):
        with pytest.raises(loombridge.UnauthenticatedError):
            async with loombridge.connect(
                secured.address, agent_id="research-1", token=token, tls=tls
            ):
                pytest.fail("the block was entered")


async def test_an_unknown_authority_is_not_trusted(secured: testing.Server) -> None:
    with pytest.raises(loombridge.ServerUnreachableError):
        await loombridge.connect(secured.address, agent_id="a", tls=True, timeout=10, wait=0)


async def test_an_address_that_serves_loom_v1_alone(
    binary: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = tmp_path / "credentials.toml"
    credentials.write_text(CREDENTIALS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        loom = f"127.0.0.1:{free.getsockname()[1]}"
    args = ["--credentials", str(credentials), "--loom-addr", loom, "--loom-tenant", "acme"]
    async with testing.server(binary, args=args) as srv:
        agent = Agent("research-1", [], address=loom)
        agent.client.answers.update({"one": lambda _call: "1", "two": lambda _call: "2"})
        bridge = attach(agent)
        await agent.start()
        memory: Any = agent.ctx
        with pytest.raises(loombridge.WrongAddressError, match=r"serves loom\.v1 only"):
            await memory.memory_save("text")
        with caplog.at_level(logging.WARNING, "loombridge.loom"):
            await agent.ctx.tool("one")
            await agent.ctx.tool("two")
            assert await bridge.flush()
        (record,) = caplog.records
        assert "does not serve loombridge.v1" in record.getMessage()
        await agent.stop()
        # Each call is bounded by its own timeout; a busy disk may take most of it.
        right = Agent("research-1", [], address=loom)
        attach(right, address=srv.address, token=TOKEN)
        await right.start()
        native: Any = right.ctx
        assert (await native.memory_save("text")).id
        await right.stop()
