"""A filled server and a browser, one of each for all tests.

LOOM_BRIDGE_SERVER is the server, CHROMIUM the browser.
"""

import os
from collections.abc import AsyncGenerator

import fill
import pytest
from playwright.async_api import Browser, async_playwright
from seen import Seen, free_port

from loombridge import testing


@pytest.fixture(scope="session")
async def server(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[testing.Server, str], None]:
    """A filled server, and where it serves HTTP."""
    port = free_port()
    settings = tmp_path_factory.mktemp("settings") / "loom.toml"
    settings.write_text('[[bind]]\ntool = "fs:list_dir"\napproval = "always"\n')
    args = ["--http-addr", f"127.0.0.1:{port}", "--config", str(settings)]
    async with testing.server(args=args) as srv:
        await fill.fill(srv.address)
        yield srv, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
async def browser() -> AsyncGenerator[Browser, None]:
    """A browser without a window."""
    async with async_playwright() as p:
        # A browser's own sandbox does not work for root; what it shows is this machine's.
        path = os.environ["CHROMIUM"]
        started = await p.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        await started.close()


@pytest.fixture
async def seen(browser: Browser, server: tuple[testing.Server, str]) -> AsyncGenerator[Seen, None]:
    """A page of the console, which must be sound at the end."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = Seen(await context.new_page(), server[1])
    yield page
    await page.is_sound()
    await context.close()
