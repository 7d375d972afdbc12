"""A page of the console in a browser, what it did that it must not, and the API's answers.

AXE is the file of axe-core.
"""

import json
import os
import socket
import urllib.request
from pathlib import Path
from typing import Any

import fill
from playwright.async_api import ConsoleMessage, Page, Request, expect

AXE = Path(os.environ["AXE"]).read_text()
# What a busy machine may take for what is done in a moment.
expect.set_options(timeout=30_000)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(request: urllib.request.Request) -> str:
    """Return what stands at an address."""
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  loopback
        return answer.read().decode()


def ask(base: str, path: str, body: object = None) -> Any:
    """Return the answer of a call."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(base + path, data, headers)  # noqa: S310  loopback
    return json.loads(fetch(request))


class Seen:
    """A page, and what it did that it must not."""

    def __init__(self, page: Page, base: str) -> None:
        """Watch a page."""
        self.page, self.base = page, base
        self.wrong: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda err: self.wrong.append(str(err)))
        page.on("request", self._asked)
        page.on("dialog", lambda d: self.wrong.append(f"a dialog: {d.message}"))

    def _said(self, message: ConsoleMessage) -> None:
        # A call that is refused is the page's business, and the browser tells it anyway.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(self.base + "/"):
            self.wrong.append(f"asked {request.url}")

    async def open(self, path: str) -> Page:
        """Open an address of the console, and wait until it is drawn."""
        answer = await self.page.goto(self.base + "/console/" + path)
        assert answer is not None
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        await expect(self.page.locator("h1").first).to_be_visible()
        await expect(self.page.locator("main[aria-busy='true']")).to_have_count(0)
        return self.page

    async def is_sound(self) -> None:
        """Check that nothing of a text was run, and nothing else went wrong."""
        assert await self.page.evaluate("window.ran") is None
        assert self.wrong == []


def sent_in(base: str, session: str, agent: str = fill.AGENT) -> list[dict[str, Any]]:
    """Return the prompts that a session of an agent has sent."""
    quoted = [urllib.request.quote(name, safe="") for name in (session, agent)]
    answer = ask(base, "/v1/sessions/{}/prompts?agent_id={}".format(*quoted))
    return answer.get("prompts", [])


def prompts(base: str, session: str) -> list[str]:
    """Return their ids."""
    return [sent["promptId"] for sent in sent_in(base, session)]


async def faults(page: Page, only: list[str] | None = None) -> list[tuple[str, list[str]]]:
    """Return what excludes people from what a page shows: rules, and what breaks them."""
    options = {"resultTypes": ["violations"], **({"runOnly": only} if only else {})}
    await page.evaluate(AXE)
    found = await page.evaluate("options => axe.run(options)", options)
    return [
        (v["id"], [n["html"] for n in v["nodes"]])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
