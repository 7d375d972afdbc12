"""`python -m loombridge`: the version, and whether a server answers."""

import asyncio
import sys
from hashlib import sha256
from pathlib import Path

import loombridge
from loombridge import testing


async def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run the module; return its exit code and what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "loombridge",
        *arguments,
        env={"LOOM_BRIDGE_ADDR": "127.0.0.1:1", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_a_server_that_answers(srv: testing.Server) -> None:
    by_argument = await run(srv.address)
    by_environment = await run(LOOM_BRIDGE_ADDR=srv.address)
    for code, out, err in (by_argument, by_environment):
        version, server = out.splitlines()
        assert (code, err, version) == (0, "", f"loombridge {loombridge.__version__}")
        assert server.startswith("server ")
        assert "durability sync" in server


async def test_no_server() -> None:
    code, out, err = await run()
    assert (code, out) == (1, f"loombridge {loombridge.__version__}\n")
    assert "127.0.0.1:1" in err
    assert "loom-bridge-server" in err
    assert "Traceback" not in err


async def test_an_address_that_is_none() -> None:
    code, _, err = await run("nowhere")
    assert (code, err) == (2, "address must be host:port or unix:/path, not 'nowhere'\n")


async def test_only_the_version() -> None:
    assert await run("--version") == (0, f"{loombridge.__version__}\n", "")


async def test_a_server_that_asks_for_a_token(binary: Path, tmp_path: Path) -> None:
    digest = sha256(b"right").hexdigest()
    credentials = tmp_path / "credentials.toml"
    credentials.write_text(
        f'[[credential]]\ntoken_sha256 = "{digest}"\ntenant = "acme"\nagents = ["*"]\n'
    )
    async with testing.server(binary, args=["--credentials", str(credentials)]) as srv:
        code, _, err = await run(srv.address)
        assert code == 1
        assert "LOOM_BRIDGE_TOKEN" in err
        code, _, _ = await run(srv.address, LOOM_BRIDGE_TOKEN="wrong")  # noqa: S106
        assert code == 1
        code, _, err = await run(srv.address, LOOM_BRIDGE_TOKEN="right")  # noqa: S106
        assert (code, err) == (0, "")
