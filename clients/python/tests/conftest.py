"""Fixtures: a fake server in this process, and the real binary."""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

import loombridge
from fake import Fake, fake_server
from fake_attach import Attach
from loombridge import _rpc, testing
from loombridge.v1 import events_pb2
from loomlog import Log
from proxying import script as script

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that leaves out what wants a server of its own."""
    parser.addoption("--without-server", action="store_true", help="only tests without a server")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that run the binary, if they are not wanted."""
    if config.getoption("--without-server"):
        live = {item for item in items if "binary" in getattr(item, "fixturenames", ())}
        config.hook.pytest_deselected(items=list(live))
        items[:] = [item for item in items if item not in live]


@pytest.fixture
async def fake() -> AsyncGenerator[Fake, None]:
    """A server in this process that answers as the test tells it."""
    async with fake_server() as srv:
        yield srv


@pytest.fixture
async def ctx(fake: Fake) -> AsyncGenerator[loombridge.Client, None]:
    """A client of the fake, agent `a1` in session `s1`."""
    async with loombridge.connect(fake.address, agent_id="a1", session_id="s1") as client:
        yield client


@pytest.fixture
def log(fake: Fake) -> Log:
    """What the fake server records."""
    log = Log()
    fake.on(_rpc.RECORD_STEP, log.answer)
    fake.on_upload(_rpc.UPLOAD_STEP, log.upload)
    return log


@pytest.fixture
def attach(fake: Fake) -> Attach:
    """The server's side of attached agents."""
    served = Attach()
    fake.on_duplex(_rpc.ATTACH, served)
    return served


@pytest.fixture
async def agent(
    fake: Fake, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[loombridge.Client, None]:
    """An agent of the fake, which takes its events; it attaches again quickly."""

    async def emitted(request: events_pb2.EmitRequest, _call: Any) -> events_pb2.EmitResponse:
        durable = request.delivery == events_pb2.DELIVERY_DURABLE
        return events_pb2.EmitResponse(event_id=request.event_id, sequence=int(durable))

    fake.on(_rpc.EMIT, emitted)
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01, 0.01))
    async with loombridge.connect(fake.address, agent_id="a1", session_id="s1") as client:
        yield client


@pytest.fixture(scope="session")
def binary() -> Path:
    """The server's binary: LOOM_BRIDGE_SERVER, or built from this tree now."""
    if os.environ.get(testing.BINARY_VARIABLE):
        return testing.find_binary()
    command = ["go", "build", "-o", "bin/loom-bridge-server", "./server/cmd/loom-bridge-server"]
    if shutil.which("go") is None:
        pytest.fail(f"no server to test: go is missing; in {ROOT} run: {' '.join(command)}")
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        pytest.fail(f"no server to test: {' '.join(command)} says:\n{built.stderr}")
    return ROOT / "bin" / "loom-bridge-server"


@pytest.fixture
async def srv(binary: Path) -> AsyncGenerator[testing.Server, None]:
    """A real server on a free port, on folders of its own."""
    async with testing.server(binary) as server:
        yield server


@pytest.fixture
async def live(srv: testing.Server) -> AsyncGenerator[loombridge.Client, None]:
    """A client of the real server, agent `a1` in session `s1`."""
    async with loombridge.connect(srv.address, agent_id="a1", session_id="s1") as client:
        yield client


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape what is no UTF-8 in a test's output, which its process could not pass on."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report
